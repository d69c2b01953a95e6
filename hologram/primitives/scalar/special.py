"""Special functions: ops whose decompositions are in :mod:`hologram.primitives.expansions`'s ``gamma``, ``bessel`` and ``normal``.

Rows name their bounds under ``ulps``; those of the gamma family hold for arguments that are not negative (polygamma: up to order 5).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hologram.dtypes import DType
from hologram.errors import ArgumentError
from hologram.ir.op import Op, Shape, register
from hologram.primitives.expansions import bessel, gamma, normal
from hologram.primitives.scalar.elementwise import rounded, same_type
from hologram.primitives.scalar.mathematics import erf_of, erfc_of, erfcx_far, erfinv_of, gauss, in_wider_type, pi_like


def _define(name: str, reference: Callable[..., Any], lower: Callable[..., Any], cost: int, tests: dict[str, Any], **more: Any) -> Op:
    more = {"infer": same_type(name, "f"), "arity": 1, **more}
    return register(Op(name, "elementwise", reference=rounded(reference), lower=lower, cost=cost, exact=False, kinds="f", tests=tests, **more))


# --- gamma -----------------------------------------------------------------------------------------------------------

_SHIFT = 24  # the references' asymptotic series are used from here on


def _number(x: Any, digits: str) -> Any:
    return x.dtype.type(digits)


def _zeta_less_one(k: int, like: Any) -> Any:
    """Sum of j**-k over j >= 2, by the Euler-Maclaurin formula."""
    j = np.arange(2, 100, dtype=like.dtype)
    n = like.dtype.type(100)
    rest = n ** (1 - k) / (k - 1) + n**-k / 2 + k * n ** (-k - 1) / 12 - k * (k + 1) * (k + 2) * n ** (-k - 3) / 720
    rest = rest + k * (k + 1) * (k + 2) * (k + 3) * (k + 4) * n ** (-k - 5) / 30240
    return np.sum(j**-k) + rest


def _lgamma_about_two(w: Any) -> Any:
    """lgamma(2 + w), |w| <= 1/2: w*(1 - Euler's constant) and the sum of (zeta(k) - 1) * (-w)**k / k."""
    total = w * (1 - _number(w, "0.577215664901532860606512090082402431"))
    for k in range(2, 40):
        total = total + _zeta_less_one(k, w) * (-w) ** k / k
    return total


def _stirling(x: Any) -> Any:
    series = (1 / _number(x, "12"), -1 / _number(x, "360"), 1 / _number(x, "1260"), -1 / _number(x, "1680"), 1 / _number(x, "1188"))
    square = 1 / np.square(x)
    tail = np.zeros_like(x)
    for c in reversed(series):
        tail = tail * square + c
    return (x - 0.5) * (np.log(x) - 1) + (np.log(2 * pi_like(x)) - 1) / 2 + tail / x


def _lgamma_positive(x: Any) -> Any:
    w = x - np.where(x < 0.5, 0.0, np.where(x < 1.5, 1.0, 2.0))
    near = _lgamma_about_two(np.clip(w, -0.5, 0.5)) - np.where(x < 1.5, np.log1p(w), 0.0) - np.where(x < 0.5, np.log(x), 0.0)
    small = np.clip(x, 2.0, _SHIFT)
    product = np.ones_like(x)
    for k in range(_SHIFT):
        product = product * np.where(small + k < _SHIFT, small + k, 1.0)
    moved = small + np.maximum(np.ceil(_SHIFT - small), 0.0)
    far = np.where(x < _SHIFT, _stirling(moved) - np.log(product), _stirling(np.maximum(x, _SHIFT)))
    return np.where(x <= 2.5, near, far)


def _lgamma(x: Any) -> Any:
    a = np.where(x < 0, -x, x)
    direct = _lgamma_positive(np.where(np.isinf(a), 1.0, a))
    turn = a - np.round(a)
    mirrored = np.log(pi_like(x) / (a * np.abs(np.sin(pi_like(x) * turn)))) - direct
    return np.where(np.isinf(a) | (a == 0), np.inf, np.where(x < 0, mirrored, direct))


def _digamma_positive(x: Any) -> Any:
    total = np.zeros_like(x)
    b = x
    for _ in range(_SHIFT):
        total = total + np.where(b < _SHIFT, 1 / b, 0.0)
        b = np.where(b < _SHIFT, b + 1, b)
    square = 1 / np.square(b)
    tail = square * (
        1 / _number(x, "12") - square * (1 / _number(x, "120") - square * (1 / _number(x, "252") - square * (1 / _number(x, "240") - square / 132)))
    )
    return np.log(b) - 0.5 / b - tail - total


def _digamma_about_zero(x: Any) -> Any:
    """digamma for |x - zero| <= 1/16: the sum of -zeta(k + 1, zero) * (zero - x)**k, the zero in two parts so that the difference is right."""
    zero, rest = gamma.DIGAMMA_ZERO
    w = (x.dtype.type(zero) - x) + x.dtype.type(rest)
    total = np.zeros_like(x)
    for k in reversed(range(1, 20)):
        total = w * (total - _hurwitz(x.dtype.type(zero), k + 1))
    return total


def _digamma(x: Any) -> Any:
    direct = _digamma_positive(np.where(x < 0, 1 - x, x))
    near = np.abs(x - gamma.DIGAMMA_ZERO[0]) <= 1 / 16
    direct = np.where(near, _digamma_about_zero(np.where(near, x, gamma.DIGAMMA_ZERO[0])), direct)
    direct = np.where(x == 0, np.copysign(np.inf, -x), direct)
    turn = x - np.round(x)
    mirrored = np.where(turn == 0, np.nan, direct - pi_like(x) / np.tan(pi_like(x) * turn))
    return np.where(x < 0, mirrored, direct)


def _hurwitz(b: Any, s: int) -> Any:
    """Sum of ``(b + k)**-s`` over k >= 0."""
    terms = _SHIFT + s
    total = np.zeros_like(b)
    a = b + terms
    rising = s / a
    for j, c in enumerate(("12", "-720", "30240", "-1209600", "47900160")):
        total = total + rising / _number(b, c)
        rising = rising * (s + 2 * j + 1) * (s + 2 * j + 2) / np.square(a)
    total = (total + 0.5 + a / (s - 1)) / a**s
    for k in reversed(range(terms)):
        total = total + 1 / (b + k) ** s
    return total


def _polygamma(x: Any, order: int) -> Any:
    factorial = np.prod(np.arange(1, order + 1, dtype=x.dtype))
    sign = 1 if order % 2 else -1
    direct = sign * factorial * _hurwitz(np.where(x < 0, 1 - x, x), order + 1)
    direct = np.where(np.isposinf(x), 0.0 * sign, direct)
    turn = x - np.round(x)
    cotangent = 1 / np.tan(pi_like(x) * turn)
    turned = np.zeros_like(x)
    for c in reversed(gamma.cotangent_derivative(order)):
        turned = turned * cotangent + c
    mirrored = -sign * direct - turned * pi_like(x) ** (order + 1)
    pole = np.inf if order % 2 else np.nan
    return np.where(x < 0, np.where(turn == 0, pole, mirrored), direct)


def _infer_polygamma(inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> tuple[Shape, DType]:
    if not 1 <= attrs[0] <= gamma.MAX_DERIVATIVES:
        raise ArgumentError(f"polygamma takes orders from 1 to {gamma.MAX_DERIVATIVES}, not {attrs[0]}")
    return same_type("polygamma", "f")(inputs, attrs)


def _polygamma_reference(x: Any, order: int) -> Any:
    return in_wider_type(lambda x: _polygamma(x, order))(x)


_POSITIVE = {"low": 0.0, "high": 20.0, "guard": "positive", "ulps": 3}
lgamma = _define("lgamma", in_wider_type(_lgamma), gamma.lgamma, 120, _POSITIVE)
digamma = _define("digamma", in_wider_type(_digamma), gamma.digamma, 110, _POSITIVE)
polygamma = _define(
    "polygamma",
    _polygamma_reference,
    gamma.polygamma,
    150,
    {**_POSITIVE, "ulps": 8},
    infer=_infer_polygamma,
    attrs=("order",),
)


# --- Bessel ----------------------------------------------------------------------------------------------------------


def _scaled_bessel(x: Any, order: int) -> Any:
    """exp(-|x|) * I(x): the power series to 40, then the asymptotic one."""
    a = np.abs(x)
    near = np.minimum(a, 40.0)
    term = total = np.where(order == 1, near / 2, np.ones_like(near))
    for k in range(1, 90):
        term = term * np.square(near / 2) / (k * (k + order))
        total = total + term
    far = np.maximum(a, 40.0)
    term = series = np.ones_like(far)
    for k in range(1, 40):
        term = term * -(4 * order * order - (2 * k - 1) ** 2) / (k * 8 * far)
        series = series + term
    result = np.where(a < 40.0, total * np.exp(-near), series / np.sqrt(2 * pi_like(x) * far))
    return np.where(np.isnan(x), x, np.copysign(result, x) if order == 1 else result)


_BESSEL = {"low": -20.0, "high": 20.0, "ulps": 4}
i0e = _define("i0e", in_wider_type(lambda x: _scaled_bessel(x, 0)), bessel.i0e, 70, _BESSEL)
i1e = _define("i1e", in_wider_type(lambda x: _scaled_bessel(x, 1)), bessel.i1e, 70, _BESSEL)


# --- the normal distribution -----------------------------------------------------------------------------------------


def _half_gauss(x: Any) -> Any:
    """exp(-x**2 / 2), the square being taken of two parts so that it is exact."""
    short = x.astype(np.float32).astype(x.dtype)
    return np.exp(-np.square(short) / 2) * np.exp(-(x - short) * (x + short) / 2)


def _ndtr(x: Any) -> Any:
    a = np.clip(np.abs(x), 0.5, 60.0)
    root = np.sqrt(x.dtype.type(0.5))
    tail = _half_gauss(a) * erfcx_far(np.maximum(a * root, 0.5)) / 2
    near = erfc_of(-np.clip(x, -1.0, 1.0) * root) / 2
    result = np.where(np.abs(x) < 1.0, near, np.where(x < 0, tail, 1 - tail))
    return np.where(np.isnan(x), x, np.where(np.abs(x) > 60, (x > 0) * 1.0, result))


def _ndtri(p: Any) -> Any:
    """Newton's iteration on the logarithm of the tail, from Winitzki's approximation; erfinv about 1/2."""
    inside = (p > 0) & (p < 1)
    q = np.where(inside, np.minimum(p, 1 - p), 0.25)
    middle = np.sqrt(_number(p, "2")) * erfinv_of(np.where(q > 0.2, 2 * p - 1, 0.0))
    q = np.minimum(q, 0.3)
    w = np.log(4 * q * (1 - q))
    t = 2 / (pi_like(p) * 0.147) + w / 2
    z = np.sqrt(2 * (np.sqrt(np.square(t) - w / 0.147) - t))
    for _ in range(6):
        tail = erfcx_far(np.maximum(z * np.sqrt(p.dtype.type(0.5)), 0.2)) / 2
        z = z + (np.log(tail / q) - np.square(z) / 2) * tail * np.sqrt(2 * pi_like(p))
    result = np.where(np.abs(p - 0.5) < 0.3, middle, np.where(p < 0.5, -z, z))
    return np.where(inside, result, np.where(p == 0, -np.inf, np.where(p == 1, np.inf, np.nan)))


def _erfcx(x: Any) -> Any:
    below = np.clip(x, -110.0, 0.5)
    far = np.where(x > 1e10, 1 / (x * np.sqrt(pi_like(x))), erfcx_far(np.clip(x, 0.5, 1e10)))
    return np.where(x >= 0.5, far, np.where(np.isnan(x), x, erfc_of(below) / gauss(below)))


def _normal_within(x: Any) -> Any:
    return erf_of(x * np.sqrt(x.dtype.type(0.5)))


normal_within = _define("normal_within", in_wider_type(_normal_within), normal.normal_within, 14, {"low": -6.0, "high": 6.0, "ulps": 4})
ndtr = _define("ndtr", in_wider_type(_ndtr), normal.ndtr, 64, {"low": -6.0, "high": 6.0, "ulps": 3})
ndtri = _define("ndtri", in_wider_type(_ndtri), normal.ndtri, 70, {"low": 0.0, "high": 1.0, "ulps": 3})
erfcx = _define("erfcx", in_wider_type(_erfcx), normal.erfcx, 90, {"low": -3.0, "high": 10.0, "ulps": 4})


# --- products with logarithms ----------------------------------------------------------------------------------------


def _product_with(name: str) -> Op:
    """``x * log(y)`` or ``x * log1p(y)``, 0 where x is 0 unless y is NaN. An op of its own, as its slope at x = 0 is the logarithm, infinite or
    not."""

    def reference(x: Any, y: Any) -> Any:
        return np.where((x == 0) & ~np.isnan(y), 0.0, x * getattr(np, name)(y))

    def lower(x: Any, y: Any) -> Any:
        return (x.eq(0.0) & y.eq(y)).select(x.const(0.0), x * y.op(name))

    return _define(f"x{name}y", in_wider_type(reference), lower, 26, {"low": 0.0, "high": 10.0, "ulps": 3}, arity=2)


xlogy = _product_with("log")
xlog1py = _product_with("log1p")

__all__ = ["digamma", "erfcx", "i0e", "i1e", "lgamma", "ndtr", "ndtri", "normal_within", "polygamma", "xlog1py", "xlogy"]
