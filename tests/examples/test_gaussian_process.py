"""The Gaussian process: likelihood, gradient and predictions are scikit-learn's, and what is predicted fits heights that were not seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib import image

import hologram as hg
from examples import gaussian_process as gp


def regressor(theta: np.ndarray) -> Any:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

    kernel = ConstantKernel(np.exp(theta[0])) * Matern(np.exp(theta[1]), nu=1.5) + WhiteKernel(np.exp(theta[2]))
    return GaussianProcessRegressor(kernel, alpha=0.0, optimizer=None)


@pytest.mark.parametrize("theta", [np.zeros(3), np.array([0.5, -1.0, -3.0])])
def test_likelihood_and_predictions_are_scikit_learns(theta: np.ndarray) -> None:
    data = gp.load(30)
    x, y = data.x[data.seen], data.y[data.seen]
    model = regressor(theta).fit(x[:, None], y)
    value, gradient = hg.jit(hg.value_and_grad(gp.log_likelihood))(theta, x, y)
    want, slope = model.log_marginal_likelihood(model.kernel_.theta, eval_gradient=True)
    np.testing.assert_allclose(float(value), want, rtol=1e-10)
    np.testing.assert_allclose(np.asarray(gradient), slope, rtol=1e-8, atol=1e-9)
    mean, deviation = (np.asarray(a) for a in gp.predict(theta, x, y, data.x))
    for got, wanted in zip((mean, deviation), model.predict(data.x[:, None], return_std=True), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-7, atol=1e-9)


def test_it_learns_the_profile(tmp_path: Path) -> None:
    data = gp.load()
    x, y, hidden = data.x[data.seen], data.y[data.seen], ~data.seen
    theta, values = (np.asarray(a) for a in gp.fit(np.zeros(3), x, y, 200))
    assert values[-1] > values[0] + 50 and np.abs(values[-1] - values[-20]) < 1
    mean, deviation = (np.asarray(a) for a in gp.predict(theta, x, y, data.x))
    error, lines = (np.sqrt(np.mean((guess - data.y)[hidden] ** 2)) for guess in (mean, np.interp(data.x, x, y)))
    assert error < lines
    assert 0.9 < np.mean(np.abs(mean - data.y)[hidden] < 1.96 * deviation[hidden]) < 1
    path = tmp_path / "new" / "gp.png"
    gp.draw(data, mean, deviation, values, path)
    top, bottom = np.split(image.imread(path)[:, :, :3], [450], axis=0)
    assert top.std() > 0.05 and bottom.std() > 0.03
