"""The outer planets: energy, angular momentum and Kepler's third law hold; the method is of second order and runs as one loop."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib import image

from examples import nbody


def test_energy_swings_and_does_not_drift(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    places, errors = nbody.report(20.0, 4000)
    assert np.abs(errors).max() < 5e-5
    assert abs(errors[-1000:].mean() - errors[:1000].mean()) < 0.1 * np.abs(errors).max()
    assert "steps a second" in capsys.readouterr().out
    path = tmp_path / "new" / "nbody.png"
    nbody.draw(places, errors, 20.0, path)
    left, right = np.split(image.imread(path)[:, :, :3], 2, axis=1)
    assert left.std() > 0.03 and right.std() > 0.03


def test_it_is_numpys_to_the_last_digits() -> None:
    places, energies = nbody.integrate(10.0, 50)
    state = nbody.start(np)
    for _ in range(50):
        state = nbody.leapfrog(np, state, 10.0)
    np.testing.assert_allclose(places.numpy()[-1], state.place, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(float(energies[-1]), nbody.energy(np, state), rtol=1e-12)


def test_errors_fall_with_the_square_of_the_step() -> None:
    ends = [nbody.integrate(days, round(8000 / days))[0].numpy()[-1] for days in (40.0, 20.0, 10.0, 2.5)]
    errors = [np.abs(end - ends[-1]).max() for end in ends[:-1]]
    assert 3.7 < errors[0] / errors[1] < 4.3 and 3.7 < errors[1] / errors[2] < 4.5


def test_planets_keep_keplers_third_law() -> None:
    """A year's square is the cube of the semi-major axis, within what the planets' pulls on each other change."""
    days = 20.0
    places = nbody.integrate(days, 20_000)[0].numpy()
    seen = places[:, 1:] - places[:, :1]
    for i in range(3):  # those that go round several times
        radius = np.linalg.norm(seen[:, i], axis=-1)
        angle = np.unwrap(np.arctan2(seen[:, i, 1], seen[:, i, 0]))
        period = 2 * np.pi * len(angle) * days / (angle[-1] - angle[0])
        axis = (radius.min() + radius.max()) / 2
        kepler = 2 * np.pi * np.sqrt(axis**3 / (nbody.GRAVITY * (nbody.MASSES[0] + nbody.MASSES[i + 1])))
        assert period == pytest.approx(kepler, rel=0.02)
