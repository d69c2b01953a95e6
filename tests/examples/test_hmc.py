"""The sampler: leaps conserve the energy and can be undone, the chain finds the posterior, and the effective sample size is right."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib import image

import hologram as hg
import hologram.numpy as hnp
from examples import hmc


def test_the_chain_finds_the_posterior(tmp_path: Path) -> None:
    data = hmc.load(5)
    draws, accepted = (np.asarray(a) for a in hmc.chain(hg.random.key(1), data.x, data.y, 2000, 500))
    assert draws.shape == (2000, 6) and draws.dtype == np.float64
    assert 0.6 < accepted.mean() < 0.95
    best, sizes = hmc.fit(data), hmc.effective_size(draws)
    assert sizes.min() > 200
    assert np.all(np.abs(draws.mean(0) - best) < 0.5 * draws.std(0))
    curvature = -np.asarray(hg.hessian(hmc.log_posterior)(best, data.x, data.y))
    laplace = np.sqrt(np.diag(np.linalg.inv(curvature)))  # the deviations of the normal distribution with the posterior's curvature
    np.testing.assert_allclose(draws.std(0), laplace, rtol=0.2)
    path = tmp_path / "new" / "hmc.png"
    hmc.draw(draws, best, data.names, path)
    left, right = np.split(image.imread(path)[:, :, :3], 2, axis=1)
    assert left.std() > 0.03 and right.std() > 0.03


def test_scikit_learns_fit_is_the_maximum_of_the_posterior() -> None:
    data = hmc.load()
    gradient = np.asarray(hg.jit(hg.grad(hmc.log_posterior))(hmc.fit(data), data.x, data.y))
    assert np.abs(gradient).max() < 1e-2


def test_the_motion_can_be_undone_and_keeps_the_energy() -> None:
    def log_density(place: hg.Tensor) -> hg.Tensor:
        return -hnp.sum(place**4) / 4

    place, momentum = np.array([0.5, -0.3]), np.array([1.0, 0.4])
    there, arriving = hmc.propose(place, momentum, 0.05, log_density)
    back, returning = hmc.propose(there, -arriving, 0.05, log_density)
    np.testing.assert_allclose(back.numpy(), place, atol=1e-12)
    np.testing.assert_allclose(returning.numpy(), -momentum, atol=1e-12)
    before, after = (float(hnp.sum(p**2) / 2 - log_density(q)) for q, p in ((hnp.asarray(place), hnp.asarray(momentum)), (there, arriving)))
    assert after == pytest.approx(before, rel=1e-3)
    assert np.abs(there.numpy() - place).max() > 0.3


def test_the_effective_size_of_a_known_chain() -> None:
    """For draws x[i] = a x[i-1] + noise it is n (1 - a) / (1 + a)."""
    rng, n = np.random.default_rng(0), 100_000
    noise = rng.standard_normal((n, 3))
    draws, factors = noise.copy(), np.array([0.0, 0.5, 0.9])
    for i in range(1, n):
        draws[i] = factors * draws[i - 1] + noise[i]
    np.testing.assert_allclose(hmc.effective_size(draws), n * (1 - factors) / (1 + factors), rtol=0.1)
