"""Numbers with uncertainties beside Tensors, and through jitted functions."""

from __future__ import annotations

import math
import operator

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from tests.support.runner.libraries import library

uncertainties, arrays = library("uncertainties"), library("uncertainties.unumpy")
A, S = np.array([3.0, 2.0, 4.0]), np.array([0.1, 0.2, 0.3])


@pytest.mark.filterwarnings("ignore::hologram.errors.FallbackWarning")
@pytest.mark.parametrize("act", [operator.add, operator.mul, operator.truediv, operator.sub])
def test_arrays_of_numbers_with_uncertainties(act: object) -> None:
    x, t = arrays.uarray(hg.tensor(A), hg.tensor(S)), hg.tensor(A)
    for found, wanted in ((act(x, t), act(x, A)), (act(t, x), act(A, x))):  # type: ignore[operator]
        assert type(found) is np.ndarray
        np.testing.assert_array_equal(arrays.nominal_values(found), arrays.nominal_values(wanted))
        np.testing.assert_array_equal(arrays.std_devs(found), arrays.std_devs(wanted))


def test_jitted_functions_with_their_gradients() -> None:
    f = hg.jit(lambda x, y: hnp.sin(x) * y)
    slopes = [hg.jit(hg.grad(f, i)) for i in (0, 1)]
    with_uncertainty = uncertainties.wrap(lambda *v: float(f(*map(np.float64, v))), [lambda *v, g=g: float(g(*map(np.float64, v))) for g in slopes])
    found = with_uncertainty(uncertainties.ufloat(1.0, 0.1), uncertainties.ufloat(2.0, 0.2))
    assert found.n == pytest.approx(2 * math.sin(1))
    assert found.s == pytest.approx(math.hypot(2 * math.cos(1) * 0.1, math.sin(1) * 0.2))


def test_covariances() -> None:
    covariance = np.array([[0.1, 0.02], [0.02, 0.2]])
    x, y = uncertainties.correlated_values(hg.tensor([1.0, 2.0]), hg.tensor(covariance))
    assert (x - y).s == pytest.approx(math.sqrt(0.1 + 0.2 - 0.04))
    jacobian = hg.jacfwd(lambda p: hnp.stack([p[0] * p[1], p[0] - p[1]]))(np.array([1.0, 2.0]))
    np.testing.assert_allclose(uncertainties.covariance_matrix([x * y, x - y]), jacobian @ covariance @ jacobian.T, rtol=1e-6)
