"""The gamma distribution and those made of it. Everything is computed in float64 and rounded once.

Samples are differentiable in their parameters: implicitly, as the derivative of the quantile that they are (Figurnov, Mohamed & Mnih, Implicit
reparameterization gradients, 2018).
"""

from __future__ import annotations

from typing import Any

from hologram import dtypes
from hologram.control.loops import while_loop
from hologram.ir.op import Shape
from hologram.numpy.along_axes.reductions import any
from hologram.numpy.creation import ones_like, zeros_like
from hologram.numpy.elementwise.functions import FUNCTIONS, logaddexp, where
from hologram.numpy.shaping.shapes import broadcast_to
from hologram.random.continuous import as_type, float_type, open_unit, result_shape, standard_normal
from hologram.random.keys import split
from hologram.random.rejection import first_accepted
from hologram.special import digamma
from hologram.trace.tensor import Tensor
from hologram.transform.custom import custom_jvp

_exp, _log, _sqrt = FUNCTIONS["exp"], FUNCTIONS["log"], FUNCTIONS["sqrt"]
WIDE = dtypes.float64
_LARGE = 1e6  # from here on the derivative is that of the normal distribution that the gamma distribution has become


def _log_sample(key: Any, a: Tensor) -> Tensor:
    """Logarithms of standard gamma numbers of shape ``a`` > 0.

    The method is that of Marsaglia & Tsang, A simple method for generating gamma variables, 2000; where ``a`` < 1, of ``a + 1``, times a power of a
    uniform number.
    """
    shape = a.shape
    small = a < 1
    valid = (a > 0) & FUNCTIONS["isfinite"](a)
    d = where(valid, where(small, a + 1, a), 1.0) - 1 / 3
    c = 1 / (3 * _sqrt(d))

    def propose(key: Tensor) -> tuple[Tensor, Tensor]:
        normal, uniform = split(key)
        z = standard_normal(normal, shape, WIDE, "gamma")
        root = 1 + c * z
        inside = root > 0
        v = where(inside, root * root * root, 1.0)
        accepted = _log(open_unit(uniform, shape, WIDE, "gamma")) < 0.5 * z * z + d - d * v + d * _log(v)
        return v, inside & accepted

    rounds, last = split(key)
    v = first_accepted(propose, rounds, ones_like(a), ~valid)
    boost = where(small, _log(open_unit(last, shape, WIDE, "gamma")) / where(valid, a, 1.0), 0.0)
    found = _log(d) + _log(v) + boost
    return where(valid, found, where(a > 0, float("inf"), float("nan")))


def _slope(a: Tensor, y: Tensor) -> Tensor:
    """The derivative of the logarithm ``y`` of a sample by ``a``: of the distribution function, by its power series, over the density."""
    x = _exp(y)
    series = (a < _LARGE) & (y > -700)
    b = where(series, a, 1.0)
    known = where(series, y, 0.0)
    z = _exp(known)

    def step(state: tuple[Tensor, Tensor, Tensor, Tensor, Tensor]) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        n, term, psi, weight, total = state
        total = total + term * (psi - known)
        weight = weight + term
        n = n + 1
        return n, term * z / (b + n), psi + 1 / (b + n), weight, total

    start = (zeros_like(b), 1 / b, digamma(b + 1), zeros_like(b), zeros_like(b))
    total = while_loop(lambda state: any(state[1] > 1e-17 * state[3]), step, start)[4]
    tiny = (digamma(a + 1) - y) / a
    return where(series, total, where(y <= -700, tiny, (0.5 + 0.5 * x / a) / x))


_differentiable = custom_jvp(_log_sample)
_differentiable.defjvps(None, lambda tangent, out, key, a: tangent * _slope(a, out))


def log_gamma(key: Any, a: Any, shape: Shape, what: str) -> Tensor:
    """Logarithms of standard gamma numbers, in float64."""
    return _differentiable(key, broadcast_to(as_type(a, WIDE, what), shape))


def gamma(key: Any, a: Any, shape: Any = None, dtype: Any = None) -> Tensor:
    """Gamma distribution of shape parameter ``a`` and scale 1; NaN where ``a`` is not positive.

    ``shape`` is by default that of ``a``; types and errors are those of :func:`uniform`.

    >>> hg.random.gamma(hg.random.key(0), 2.0, (3,))
    Tensor([0.9645099 , 1.2409568 , 0.18460113], dtype=float32)
    """
    to = float_type(dtype, "gamma")
    return _exp(log_gamma(key, a, result_shape(shape, "gamma", a), "gamma")).astype(to)


def loggamma(key: Any, a: Any, shape: Any = None, dtype: Any = None) -> Tensor:
    """Logarithm of the gamma distribution: of :func:`gamma`, finite for small ``a``, too. Arguments, types and errors are those of it.

    >>> hg.random.loggamma(hg.random.key(0), 0.01, (3,))
    Tensor([-253.09569 ,   -8.777258,  -36.39545 ], dtype=float32)
    """
    to = float_type(dtype, "loggamma")
    return log_gamma(key, a, result_shape(shape, "loggamma", a), "loggamma").astype(to)


def beta(key: Any, a: Any, b: Any, shape: Any = None, dtype: Any = None) -> Tensor:
    """Beta distribution of parameters ``a`` and ``b``, on [0, 1]. Shape, types and errors are those of :func:`uniform`.

    >>> hg.random.beta(hg.random.key(0), 2.0, 3.0, (3,))
    Tensor([0.6556729, 0.7272313, 0.3731908], dtype=float32)
    """
    to, extents = float_type(dtype, "beta"), result_shape(shape, "beta", a, b)
    keys = split(key)
    x, y = log_gamma(keys[0], a, extents, "beta"), log_gamma(keys[1], b, extents, "beta")
    return _exp(x - logaddexp(x, y)).astype(to)


def chisquare(key: Any, df: Any, shape: Any = None, dtype: Any = None) -> Tensor:
    """Chi-squared distribution of ``df`` degrees of freedom. Shape, types and errors are those of :func:`uniform`.

    >>> hg.random.chisquare(hg.random.key(0), 3.0, (3,))
    Tensor([1.1982386 , 1.6343243 , 0.12679806], dtype=float32)
    """
    to, extents = float_type(dtype, "chisquare"), result_shape(shape, "chisquare", df)
    return (2 * _exp(log_gamma(key, as_type(df, WIDE, "chisquare") / 2, extents, "chisquare"))).astype(to)


def t(key: Any, df: Any, shape: Any = None, dtype: Any = None) -> Tensor:
    """Student's t distribution of ``df`` degrees of freedom. Shape, types and errors are those of :func:`uniform`.

    >>> hg.random.t(hg.random.key(0), 5.0, (3,))
    Tensor([ 2.237396  , -0.49215993,  0.41808584], dtype=float32)
    """
    to, extents = float_type(dtype, "t"), result_shape(shape, "t", df)
    keys = split(key)
    half = as_type(df, WIDE, "t") / 2
    z = standard_normal(keys[0], extents, WIDE, "t")
    return (z * _sqrt(half) * _exp(-0.5 * log_gamma(keys[1], half, extents, "t"))).astype(to)
