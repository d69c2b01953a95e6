"""Distributions of hologram.scipy.stats beside SciPy's: densities, probabilities, quantiles, samples, derivatives, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
import hologram.scipy.stats as hs
from hologram.errors import ArgumentError, HologramError, ShapeError, UnsupportedError
from hologram.scipy.stats.family import Continuous, Discrete

ss = pytest.importorskip("scipy.stats", reason="SciPy, with which results are compared, is not installed")

pytestmark = pytest.mark.costly(2)

CONTINUOUS: dict[str, tuple[float, ...]] = {
    "beta": (2.0, 3.0), "cauchy": (), "chi2": (3.0,), "expon": (), "f": (3.0, 5.0), "gamma": (2.5,), "gennorm": (1.5,), "gumbel_l": (),
    "gumbel_r": (), "halfnorm": (), "invgamma": (2.5,), "laplace": (), "logistic": (), "lognorm": (0.7,), "norm": (), "pareto": (2.5,),
    "rayleigh": (), "t": (4.0,), "truncnorm": (-1.0, 2.0), "uniform": (), "vonmises": (2.0,), "weibull_min": (1.7,), "wrapcauchy": (0.3,),
}  # fmt: skip
DISCRETE: dict[str, tuple[float, ...]] = {
    "bernoulli": (0.3,), "betabinom": (7, 2.0, 3.0), "binom": (7, 0.3), "geom": (0.3,), "nbinom": (3.5, 0.4), "poisson": (3.2,),
}  # fmt: skip
X = np.concatenate([np.linspace(-4, 7, 12), [0.0, 1.0, -1.0, 30.0, -30.0, np.nan]])
K = np.array([-2.0, -1, 0, 0.5, 1, 2, 3, 4, 7, 8, 20, np.nan])
Q = np.array([-0.1, 0.0, 1e-12, 0.01, 0.3, 0.5, 0.9, 0.999, 1.0, 1.1, np.nan])
OF_INCOMPLETE = {"beta", "chi2", "f", "gamma", "gennorm", "invgamma", "t", "binom", "nbinom", "poisson"}  # probabilities need these functions
EXACTER = {("halfnorm", "ppf"), ("f", "isf")}  # than SciPy, whose results lose digits next to 0


def compare(name: str, method: str, x: np.ndarray, *args: float, **named: float) -> None:
    with np.errstate(all="ignore"):
        want = getattr(getattr(ss, name), method)(x, *args, **named)
    try:
        got = getattr(getattr(hs, name), method)(x, *args, **named).numpy()
    except UnsupportedError:
        assert method not in ("pdf", "logpdf", "pmf", "logpmf")
        assert name in OF_INCOMPLETE | {"betabinom", "vonmises"}
        return
    finite = np.isfinite(want) | ~np.isfinite(got)  # where SciPy's logarithm of an underflow is infinite, ours is right
    rounding = 1e-3 if (name, method) in EXACTER else 1e-9
    np.testing.assert_allclose(got[finite], want[finite], rtol=rounding, atol=1e-14, err_msg=f"{name}.{method}")


DENSITIES = ("pdf", "logpdf")
PROBABILITIES = ("cdf", "sf", "logcdf", "logsf")
QUANTILES = ("ppf", "isf")


@pytest.mark.parametrize("method", (*DENSITIES, *PROBABILITIES, *QUANTILES))
@pytest.mark.parametrize("name", CONTINUOUS)
@pytest.mark.crossed(3)
def test_continuous_distributions(name: str, method: str, everything: bool) -> None:
    if name == "vonmises" and method not in DENSITIES:
        pytest.skip("the density alone is there")
    for named in ({}, {"loc": 0.5, "scale": 2.0}) if everything else ({"loc": 0.5, "scale": 2.0},):
        compare(name, method, Q if method in QUANTILES else X, *CONTINUOUS[name], **named)


@pytest.mark.parametrize("method", ("pmf", "logpmf", *PROBABILITIES, "ppf"))
@pytest.mark.parametrize("name", DISCRETE)
@pytest.mark.crossed(3)
def test_discrete_distributions(name: str, method: str) -> None:
    if method == "ppf":
        compare(name, method, Q, *DISCRETE[name])
    else:
        compare(name, method, K, *DISCRETE[name], loc=1)


SAMPLED = sorted({**CONTINUOUS, **DISCRETE}.keys() - {"vonmises", "wrapcauchy"})


def test_samples_have_the_distribution(everything: bool) -> None:
    for name in SAMPLED if everything else SAMPLED[::4]:
        check_samples(name)


def check_samples(name: str) -> None:
    parameters = {**CONTINUOUS, **DISCRETE}[name]
    distribution = getattr(hs, name)
    drawn = distribution.rvs(*parameters, size=4000, random_state=hg.random.key(1))
    law = getattr(ss, name)(*parameters)
    if isinstance(distribution, Continuous):
        assert drawn.dtype == np.float32 and ss.kstest(drawn.numpy(), law.cdf).pvalue > 1e-3
    else:
        assert isinstance(distribution, Discrete) and drawn.dtype == np.int64
        counts = np.bincount(drawn.numpy(), minlength=30) / 4000
        assert np.abs(np.cumsum(counts) - law.cdf(np.arange(len(counts)))).max() < 0.04


@pytest.mark.parametrize("name", CONTINUOUS)
def test_derivatives_of_densities_beyond_the_support_too(name: str) -> None:
    x, step = np.linspace(-3.13, 6.91, 7), 1e-6
    found = hg.jit(hg.vmap(hg.grad(lambda v: getattr(hs, name).logpdf(v, *CONTINUOUS[name]))))(x).numpy()
    with np.errstate(all="ignore"):
        high, low = (getattr(ss, name).logpdf(x + s, *CONTINUOUS[name]) for s in (step, -step))
        want = (high - low) / (2 * step)
    np.testing.assert_allclose(found, np.where(np.isfinite(want), want, 0), rtol=1e-5, atol=1e-5)


def test_parameters_are_differentiated_and_checked() -> None:
    slope = hg.grad(lambda s: hs.norm.logpdf(1.0, 0.0, s))(np.float64(2.0))
    np.testing.assert_allclose(float(slope), -0.5 + 1 / 8)
    assert np.isnan(hs.norm.pdf(0.0, 0.0, -1.0).item()) and np.isnan(hs.gamma.pdf(1.0, -1.0).item()) and np.isnan(hs.geom.pmf(1, 1.5).item())
    assert hs.norm.logpdf(np.float32(1)).dtype == np.float32 and hs.norm.cdf([1, 2]).dtype == np.float32


def test_vectors() -> None:
    cov, x, mean = np.array([[2.0, 0.5], [0.5, 1.0]]), np.random.default_rng(0).standard_normal((5, 2)), np.array([0.1, 0.2])
    for c in (cov, 2.0, np.array([1.0, 2.0])):
        np.testing.assert_allclose(hs.multivariate_normal.logpdf(x, mean, c).numpy(), ss.multivariate_normal.logpdf(x, mean, c))
    stacked = hs.multivariate_normal.logpdf(x[:2], mean, np.stack([cov, 2 * cov])).numpy()
    np.testing.assert_allclose(stacked, [ss.multivariate_normal.logpdf(x[i], mean, (i + 1) * cov) for i in range(2)])
    parts, alpha = np.array([[0.2, 0.3], [0.3, 0.3], [0.5, 0.4]]), np.array([1.0, 2.0, 3.0])
    for p in (parts, parts[:2]):
        np.testing.assert_allclose(hs.dirichlet.pdf(p, alpha).numpy(), ss.dirichlet.pdf(p, alpha))
    assert hs.dirichlet.logpdf(parts * 2, alpha).numpy().tolist() == [-np.inf, -np.inf]
    counts = [[1, 2, 3], [1, 1, 1]]
    np.testing.assert_allclose(hs.multinomial.pmf(counts, 6, [0.2, 0.3, 0.5]).numpy(), ss.multinomial.pmf(counts, 6, [0.2, 0.3, 0.5]), rtol=1e-5)
    drawn = hs.multivariate_normal.rvs(mean, cov, size=(3,), random_state=hg.random.key(0))
    assert drawn.shape == (3, 2) and hs.dirichlet.rvs(alpha, size=4, random_state=hg.random.key(0)).shape == (4, 3)


def test_vectors_of_one_element_are_numbers() -> None:
    x, logpdf = np.array([1.0, 2.0, 3.0]), hs.multivariate_normal.logpdf
    for parameters in ((), (0.5,), (0.5, 2.0), ([0.5], 2.0), (0.5, [[2.0]]), ([0.5], [[2.0]]), ([0.5], [2.0])):
        want = ss.multivariate_normal.logpdf(x, *parameters)
        np.testing.assert_allclose(logpdf(x, *parameters).numpy(), want, rtol=1e-6, err_msg=str(parameters))
        np.testing.assert_allclose(hg.vmap(lambda v, p=parameters: logpdf(v, *p))(x).numpy().reshape(-1), want, rtol=1e-6)
    np.testing.assert_allclose(logpdf(x[:, None], [0.5], [[2.0]]).numpy(), ss.multivariate_normal.logpdf(x[:, None], [0.5], [[2.0]]))
    assert logpdf(x[:, None], 0.5, 2.0).shape == (3, 1) and logpdf(1.0).shape == ()  # each element is a number, as in JAX
    assert logpdf(np.ones((4, 3)), np.zeros(3), 2.0).shape == (4,) and logpdf([1.0, 2.0], 0.0, np.eye(2)).shape == ()


WRONG: list[Any] = [
    (lambda: hs.norm.logpdf(0, 0, 1, 2), ArgumentError, "parameters"),
    (lambda: hs.norm.logpdf(0, 0, loc=1), ArgumentError, "loc"),
    (lambda: hs.gamma.logpdf(1.0), ArgumentError, "a must be given"),
    (lambda: hs.gamma.pdf(1.0, 2.0, shape=3), ArgumentError, "shape"),
    (lambda: hs.norm.pdf(1j), ArgumentError, "real"),
    (lambda: hs.vonmises.cdf(1.0, 2.0), UnsupportedError, "no cdf"),
    (lambda: hs.norm.rvs(size=3), ArgumentError, "random_state is a key"),
    (lambda: hs.dirichlet.logpdf([0.5, 0.5], [1.0]), ShapeError, "parts"),
    (lambda: hs.multivariate_normal.logpdf([1.0, 2.0], 0.0, np.eye(3)), ShapeError, "covariance"),
    (lambda: hs.multivariate_normal.logpdf([1.0], 0.0, 1.0, allow_singular=True), ArgumentError, "allow_singular"),
    (lambda: hs.multinomial.pmf([1, 2], 3, [0.5]), ShapeError, "outcomes"),
]


@pytest.mark.parametrize(("call", "kind", "text"), WRONG)
def test_errors_are_kind_and_located(call: Any, kind: type[HologramError], text: str) -> None:
    with pytest.raises(kind, match=text) as found:
        call()
    assert "test_distributions.py" in str(found.value)


def test_a_log_likelihood_is_fitted_under_jit() -> None:
    """The gradient of a likelihood of many terms, all parameters at once."""
    data = np.random.default_rng(3).gamma(2.0, 1.5, 200)
    loss = hg.jit(hg.grad(lambda p: -hnp.sum(hs.gamma.logpdf(data, p[0], scale=p[1]))))
    a, s = 2.1, 1.4
    digamma = pytest.importorskip("scipy.special").digamma
    want = [200 * digamma(a) - np.log(data / s).sum(), -(data / s**2 - a / s).sum()]
    np.testing.assert_allclose(loss(np.array([a, s])).numpy(), want, rtol=1e-9)


FAR = [
    ("beta", "sf", 1e-100, (0.01, 3.0), 0.898495), ("beta", "isf", 1e-50, (2.0, 3.0), 1.0), ("f", "cdf", np.inf, (2.0, 3.0), 1.0),
    ("chi2", "ppf", 1 - 1e-10, (2.0,), 46.05170169440018), ("chi2", "isf", 1 - 1e-10, (2.0,), 2.0000001655807435e-10),
    ("invgamma", "cdf", -0.0, (7.0,), 0.0), ("invgamma", "isf", 1e-300, (1.0,), 1e300), ("rayleigh", "pdf", np.inf, (), 0.0),
    ("t", "sf", 7.5, (100.0,), 1.3286199631860367e-11), ("t", "sf", 30.0, (1e6,), 6.010047116832059e-198),
    ("t", "ppf", 1e-300, (1.0,), -3.183098861837907e299), ("truncnorm", "isf", 1e-50, (30.0, np.inf), 33.6159389802518),
    ("binom", "ppf", 0.5, (10, 0.0), 0.0), ("nbinom", "ppf", 0.5, (5, 1.0), 0.0), ("geom", "logsf", 1e6, (0.3,), -356674.9439387323),
    ("nbinom", "logcdf", 1000.0, (5, 0.3), -3.030644265164836e-147),
]  # fmt: skip


@pytest.mark.parametrize(("name", "method", "x", "shapes", "want"), FAR)
def test_far_tails_and_ends(name: str, method: str, x: float, shapes: tuple[float, ...], want: float) -> None:
    np.testing.assert_allclose(float(getattr(getattr(hs, name), method)(np.float64(x), *shapes)), want, rtol=1e-9)
