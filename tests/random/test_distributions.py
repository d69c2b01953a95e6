"""hologram.random: distributions made by rejection or of several numbers, against SciPy's; the same draws everywhere; derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

import hologram as hg
from hologram import errors
from hologram.trace import tree

pytestmark = pytest.mark.costly(2)

R = hg.random
N = 10_000

CONTINUOUS: dict[str, tuple[Callable[[Any, Any], Any], Any]] = {
    **{f"gamma {a}": (lambda k, d, a=a: R.gamma(k, a, (N,), d), stats.gamma(a)) for a in (0.1, 1.0, 3.0, 1e4)},
    "loggamma": (lambda k, d: R.loggamma(k, 0.01, (N,), d), stats.loggamma(0.01)),
    "beta": (lambda k, d: R.beta(k, 0.5, 2.0, (N,), d), stats.beta(0.5, 2)),
    "chisquare": (lambda k, d: R.chisquare(k, 3.0, (N,), d), stats.chi2(3)),
    "t": (lambda k, d: R.t(k, 3.0, (N,), d), stats.t(3)),
    "logistic": (lambda k, d: R.logistic(k, (N,), d), stats.logistic()),
    "cauchy": (lambda k, d: R.cauchy(k, (N,), d), stats.cauchy()),
    "pareto": (lambda k, d: R.pareto(k, 2.5, (N,), d), stats.pareto(2.5)),
    "weibull_min": (lambda k, d: R.weibull_min(k, 2.0, 1.5, (N,), d), stats.weibull_min(1.5, scale=2)),
    "rayleigh": (lambda k, d: R.rayleigh(k, 2.0, (N,), d), stats.rayleigh(scale=2)),
    "lognormal": (lambda k, d: R.lognormal(k, 0.5, (N,), d), stats.lognorm(0.5)),
    **{f"generalized_normal {p}": (lambda k, d, p=p: R.generalized_normal(k, p, (N,), d), stats.gennorm(p)) for p in (0.5, 3.0, 100.0)},
    "generalized_normal 1e5": (lambda k, d: R.generalized_normal(k, 1e5, (N,), d), stats.uniform(-1, 2)),
    **{f"f {m} {n}": (lambda k, d, m=m, n=n: R.f(k, m, n, (N,), d), stats.f(m, n)) for m, n in ((5.0, 12.0), (2.0, 0.5))},
    "far truncated_normal": (lambda k, d: R.truncated_normal(k, 6.0, 9.0, (N,), d), stats.truncnorm(6, 9)),
}
COUNTS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    **{f"poisson {m}": (lambda k, m=m: R.poisson(k, m, (N,)), stats.poisson(m)) for m in (0.3, 9.9, 10.0, 1000.0)},
    **{
        f"binomial {n} {p}": (lambda k, n=n, p=p: R.binomial(k, n, p, (N,)), stats.binom(n, p))
        for n, p in ((5, 0.3), (40, 0.9), (100, 0.5), (10**6, 0.3), (10**15, 1e-14))
    },
    "geometric": (lambda k: R.geometric(k, 0.3, (N,)), stats.geom(0.3)),
}


@pytest.mark.parametrize("name", CONTINUOUS)
def test_laws(name: str, everything: bool) -> None:
    """In both types, or in one of them as a sample."""
    draw, law = CONTINUOUS[name]
    types = ["float32", "float64"]
    for dtype in types if everything else types[len(name) % 2 :][:1]:
        x = draw(R.key(31), dtype)
        assert x.dtype.name == dtype and x.shape == (N,)
        assert stats.kstest(np.asarray(x, np.float64), law.cdf).pvalue > 1e-3


SHORT: dict[str, Callable[[Any, Any], Any]] = {
    **{name: draw for name, (draw, _) in CONTINUOUS.items()},
    "normal": lambda k, d: R.normal(k, (N,), d),
    "moved normal": lambda k, d: R.normal(k, (N,), d, 3.0, 0.75),
    "truncated_normal": lambda k, d: R.truncated_normal(k, -1.0, 2.0, (N,), d),
    "exponential": lambda k, d: R.exponential(k, (N,), d),
    "gumbel": lambda k, d: R.gumbel(k, (N,), d),
    "laplace": lambda k, d: R.laplace(k, (N,), d),
    "dirichlet": lambda k, d: R.dirichlet(k, hg.asarray(np.array([0.5, 2.0, 3.0], np.float32)), (N // 10,), d),
    "multivariate_normal": lambda k, d: R.multivariate_normal(k, np.ones(2, np.float32), np.eye(2, dtype=np.float32), (N // 10,), d),
    "ball": lambda k, d: R.ball(k, 3, shape=(N // 10,), dtype=d),
    "initial normal": lambda k, d: hg.nn.initializers.normal(k, (N,), d or "float32", stddev=0.3),
    "initial uniform": lambda k, d: hg.nn.initializers.uniform(k, (N,), d or "float32", limit=0.3),
    "initial weights": lambda k, d: hg.nn.initializers.lecun_normal(k, (50, 60), d or "float32"),
}
WIDER = ("gamma", "loggamma", "beta", "chisquare", "t", "f", "generalized_normal", "dirichlet", "ball")  # computed in float64


@pytest.mark.costly(3)
@pytest.mark.parametrize("name", SHORT)
def test_short_floats_are_rounded_once(name: str, everything: bool) -> None:
    """A 16-bit sample is the float32 (or float64) one, rounded: 16 bits are too few to draw with. In both types, or in one of them as a sample."""
    wide = "float64" if name.split()[0] in WIDER else "float32"
    whole = np.asarray(SHORT[name](R.key(5), wide))
    types = [hg.numpy.float16, hg.numpy.bfloat16]
    for dtype in types if everything else types[len(name) % 2 :][:1]:
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(np.asarray(SHORT[name](R.key(5), dtype)), whole.astype(dtype))


def _ends(dtype: Any) -> list[tuple[float, float]]:
    """Ranges that are hard to keep: of a few numbers, of all numbers, of the smallest, far from 0, empty."""
    limits = hg.numpy.finfo(dtype)
    one, least, most = 1.0 + limits.eps, limits.smallest_normal * limits.eps, limits.max
    return [
        (1.0, one), (1.0, 1 + 3 * limits.eps), (-one, -1.0), (-1.0, 1.0), (-most, most), (0.0, most), (-most, 0.5), (most * (1 - limits.eps), most),
        (0.0, least), (-least, 0.0), (-least, least), (100.0, 101.0), (-3.0, 0.0), (2.0, 2.0), (3.0, 1.0),
    ]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_uniform_numbers_stay_in_their_range(dtype: str) -> None:
    to = getattr(hg.numpy, dtype)
    ends = np.array(_ends(to), np.float64).astype(to)
    low, high = ends[:, :1], ends[:, 1:]
    arrays = np.asarray(hg.jit(lambda low, high: R.uniform(R.key(9), (len(ends), 2000), to, low, high))(low, high))
    numbers = np.stack([np.asarray(hg.jit(lambda a=a, b=b: R.uniform(R.key(9), (2000,), to, float(a), float(b)))()) for a, b in ends.tolist()])
    for x in (arrays, numbers):
        assert np.isfinite(x).all() and (x >= low).all() and ((x < high) | (low >= high)).all()
    assert abs(np.mean(arrays[4] / high[4, 0], dtype=np.float64)) < 0.05  # all numbers of the type
    slopes = hg.vmap(hg.grad(lambda a, b: hg.numpy.sum(R.uniform(R.key(9), (50,), "float64", a, b)), (0, 1)))(*np.array([[1.0, -2.0], [1.5, 7.0]]))
    np.testing.assert_allclose(np.add(*slopes), 50.0, rtol=1e-12)


@pytest.mark.parametrize("name", COUNTS)
def test_counts(name: str) -> None:
    draw, law = COUNTS[name]
    x = np.asarray(draw(R.key(33)))
    assert x.dtype == np.int64
    low, high = int(law.ppf(0.002)), int(law.ppf(0.998))
    edges = np.unique(np.linspace(low - 1, high, 40).astype(int))  # bins end at these counts
    counts = np.bincount(np.searchsorted(edges, x), minlength=edges.size + 1)
    p = np.diff(np.concatenate([[0.0], law.cdf(edges), [1.0]]))
    kept = p * N > 5
    counts, p = np.append(counts[kept], counts[~kept].sum()), np.append(p[kept], p[~kept].sum())
    if p[-1] < 1e-4:
        assert counts[-1] <= 5
        counts, p = counts[:-1], p[:-1]
    assert stats.chisquare(counts, p / p.sum() * counts.sum()).pvalue > 1e-3


LARGE = {
    **{f"poisson {m}": (lambda k, m=m: R.poisson(k, m, (N,)), int(m), m**0.5) for m in (1e13, 1e15, 1e17, 2.0**60)},
    **{
        f"binomial {n} {p}": (lambda k, n=n, p=p: R.binomial(k, n, p, (N,)), int(n * p), (n * p * (1 - p)) ** 0.5)
        for n, p in ((10**15, 0.5), (2**53, 1e-6))
    },
}


@pytest.mark.parametrize("name", LARGE)
def test_large_counts_are_normal(name: str) -> None:
    """Logarithms of probabilities are no differences of numbers of that size, and odd counts are there."""
    draw, mean, deviation = LARGE[name]
    x = np.asarray(draw(R.key(34)))
    assert stats.kstest((x - mean) / deviation, "norm").pvalue > 1e-3
    assert abs((x % 2).mean() - 0.5) < 0.03


def test_ratios_of_numbers_that_no_float_has() -> None:
    """Of few degrees of freedom numerator and denominator are less than the least float."""
    x = np.asarray(R.f(R.key(35), 0.01, 0.01, (N,)))
    assert not np.isnan(x).any() and abs((x < 1).mean() - 0.5) < 0.02


@pytest.mark.parametrize(("dtype", "greatest"), [("int8", 127), ("uint16", 65535)])
def test_counts_beyond_their_type(dtype: str, greatest: int) -> None:
    """A count that the type does not have is the greatest that it has."""
    assert (np.asarray(R.poisson(R.key(7), 1e9, (20,), dtype)) == greatest).all()
    assert R.poisson(R.key(7), -1.0, (2,), dtype).tolist() == [0 if dtype.startswith("u") else -1] * 2


def test_vectors() -> None:
    alpha = np.array([1.0, 2.0, 3.0])
    x = np.asarray(R.dirichlet(R.key(1), alpha, (N,), "float64"))
    np.testing.assert_allclose(x.sum(1), 1.0, rtol=1e-14)
    assert stats.kstest(x[:, 1], stats.beta(2, 4).cdf).pvalue > 1e-3
    assert np.isfinite(np.asarray(R.dirichlet(R.key(1), np.full(4, 1e-4), (50,)))).all()
    for p in (1, 2, 4.0, 5000.0):
        b = np.asarray(R.ball(R.key(2), 3, p, (N,), "float64"))
        largest = np.abs(b).max(1, keepdims=True)
        norm = largest[:, 0] * ((np.abs(b) / largest) ** p).sum(1) ** (1 / p)
        assert stats.kstest(norm**3, "uniform").pvalue > 1e-3 and np.abs(b.mean(0)).max() < 0.02
    mean, cov = np.array([1.0, -1.0]), np.array([[2.0, 0.5], [0.5, 1.0]])
    z = np.asarray(R.multivariate_normal(R.key(3), mean, cov, (N,), "float64"))
    white = np.linalg.solve(np.linalg.cholesky(cov), (z - mean).T)
    assert all(stats.kstest(row, "norm").pvalue > 1e-3 for row in white) and abs(np.corrcoef(white)[0, 1]) < 0.04
    assert R.multivariate_normal(R.key(3), np.zeros((4, 1, 2)), np.stack([cov] * 3)).shape == (4, 3, 2)


def test_rademacher() -> None:
    x = np.asarray(R.rademacher(R.key(4), (N,)))
    assert set(x.tolist()) == {-1, 1} and abs(x.mean()) < 0.04
    assert R.rademacher(R.key(4), 3, "float32").dtype == np.float32


def test_parameters_broadcast() -> None:
    x = np.asarray(R.gamma(R.key(5), np.array([1.0, 50.0]), (N, 2)))
    np.testing.assert_allclose(x.mean(0), [1, 50], rtol=0.05)
    x = np.asarray(R.poisson(R.key(5), np.array([[2.0], [200.0]]), (2, N)))
    np.testing.assert_allclose(x.mean(1), [2, 200], rtol=0.05)
    assert R.beta(R.key(5), np.ones((3, 1)), np.ones(4)).shape == (3, 4)
    assert R.binomial(R.key(5), np.arange(5), 0.5).shape == (5,)


def test_parameters_out_of_range() -> None:
    """No loop waits for a sample that never comes."""
    inf, nan = np.inf, np.nan
    np.testing.assert_array_equal(R.gamma(R.key(6), np.array([-1.0, 0.0, nan, inf])), [nan, nan, nan, inf])
    assert R.poisson(R.key(6), np.array([-1.0, 0.0, nan, inf])).tolist() == [-1, 0, -1, -1]
    assert R.binomial(R.key(6), np.array([-1.0, 0.0, 5.0, 5.0, 5.0, nan]), np.array([0.5, 0.5, 0.0, 1.0, 2.0, 0.5])).tolist() == [-1, 0, 0, 5, -1, -1]
    assert R.geometric(R.key(6), np.array([1.0, 1e-300])).tolist() == [1, np.iinfo(np.int64).max]


DRAWS: dict[str, Callable[[Any], Any]] = {
    "gamma": lambda k: R.gamma(k, np.array([0.3, 4.0, 90.0])),
    "beta": lambda k: R.beta(k, 0.5, 3.0, (4,)),
    "dirichlet": lambda k: R.dirichlet(k, np.array([0.5, 3.0])),
    "t": lambda k: R.t(k, 3.0, (4,)),
    "poisson": lambda k: R.poisson(k, np.array([0.5, 8.0, 90.0])),
    "binomial": lambda k: R.binomial(k, np.array([3, 50, 900]), 0.4),
    "ball": lambda k: R.ball(k, 3, shape=(2,)),
    "truncated_normal": lambda k: R.truncated_normal(k, np.array([-1.0, 3.0]), np.array([0.5, 4.0])),
}


@pytest.mark.parametrize("name", DRAWS)
def test_the_same_everywhere(name: str) -> None:
    """Lazily, for every key of a stack, however long each takes; jitted and in a loop."""
    draw = DRAWS[name]
    keys = np.asarray(R.split(R.key(7), 5))
    want = np.stack([np.asarray(draw(k)) for k in keys])
    np.testing.assert_array_equal(hg.vmap(draw)(keys), want)
    if name in ("gamma", "poisson"):
        np.testing.assert_array_equal(hg.jit(draw)(keys[2]), want[2])
        np.testing.assert_array_equal(hg.scan(lambda c, k: (c, draw(k)), 0.0, keys)[1], want)


@pytest.mark.parametrize("a", [0.05, 30.0, 2e6])
def test_derivatives_of_gamma(a: float) -> None:
    """That of the quantile."""
    x = np.asarray(R.gamma(R.key(8), a, (6,), "float64"))
    q, step = stats.gamma.cdf(x, a), 1e-5 * a
    want = (stats.gamma.ppf(q, a + step) - stats.gamma.ppf(q, a - step)) / (2 * step)
    for derivative in (hg.jacfwd, hg.jacrev):
        got = derivative(lambda a: R.gamma(R.key(8), a, (6,), "float64"))(np.float64(a))
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_derivatives_of_what_is_made_of_gamma() -> None:
    mean = hg.jit(hg.grad(lambda a, b: R.beta(R.key(9), a, b, (N,), "float64").mean(), (0, 1)))(np.float64(2.0), np.float64(3.0))
    np.testing.assert_allclose(mean, [3 / 25, -2 / 25], rtol=0.05)
    slope = hg.vmap(hg.grad(lambda a, k: R.gamma(k, a, (), "float64")))(np.array([0.5, 2.5]), R.split(R.key(1), 2))
    assert all(np.isfinite(leaf).all() for leaf in tree.leaves(slope))


@pytest.mark.parametrize(
    ("error", "work"),
    [
        (errors.DTypeError, lambda: R.gamma(R.key(0), 1.0, dtype="int32")),
        (errors.DTypeError, lambda: R.poisson(R.key(0), 1.0, dtype="float32")),
        (errors.DTypeError, lambda: R.rademacher(R.key(0), 3, "uint8")),
        (errors.ShapeError, lambda: R.dirichlet(R.key(0), 1.0)),
        (errors.ShapeError, lambda: R.multivariate_normal(R.key(0), np.zeros(2), np.eye(3))),
        (errors.ShapeError, lambda: R.multivariate_normal(R.key(0), np.zeros((4, 2)), np.eye(2), (3,))),
        (errors.ArgumentError, lambda: R.ball(R.key(0), 3, 0.5)),
        (errors.AxisOutOfRange, lambda: R.permutation(R.key(0), 10, axis=1)),
        (errors.ShapeError, lambda: R.gamma(R.key(0), np.ones(3), (2,))),
    ],
)
def test_errors(error: Any, work: Any) -> None:
    with pytest.raises(error):
        work()


def test_complex_normal_numbers() -> None:
    """The values that other libraries with this generator give."""
    two = R.normal(R.key(7), (2,), "complex128")
    np.testing.assert_allclose(two, [0.24862191 - 0.36817454j, -0.81614277 - 0.22538821j], rtol=1e-7)
    z = np.asarray(R.normal(R.key(0), (20_000,), "complex64", loc=1 + 2j, scale=3.0))
    assert z.dtype == np.complex64 and abs(z.mean() - (1 + 2j)) < 0.06
    assert abs(z.real.var() - 4.5) < 0.15 and abs(z.imag.var() - 4.5) < 0.15
