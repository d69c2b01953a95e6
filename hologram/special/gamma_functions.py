"""The gamma function and its kin: products, quotients, zeta functions."""

from __future__ import annotations

import math
from typing import Any

from hologram.errors import ArgumentError
from hologram.numpy.elementwise.functions import FUNCTIONS, where
from hologram.special.basic import digamma, gammaln
from hologram.special.common import absolute, exp, floor, isinf, isnan, log, log_beta, series, stirling_rest
from hologram.special.elementwise import Function, in_float64
from hologram.support.user_lines import located
from hologram.trace.checks import integer
from hologram.trace.tensor import Tensor

__all__ = ["beta", "betaln", "binom", "factorial", "gamma", "gammasgn", "loggamma", "multigammaln", "poch", "psi", "rgamma", "zeta", "zetac"]

psi = digamma
_FACTORS = 20  # of a binomial coefficient's product
_FAR = 33.0  # from here on Stirling's formula, below the recurrence to [2, 3)


def _gamma_positive(x: Tensor) -> Tensor:
    """For x > 0: exact for small integers."""
    far = x >= _FAR
    y = where(far, 2.0, x)
    low = y < 2.0
    shift = where(low, 2.0 - floor(y), 0.0)
    below = where(shift > 0, y, 1.0) * where(shift > 1, y + 1.0, 1.0)
    y = y + shift
    product = y * 0 + 1.0
    for _ in range(int(_FAR) - 3):
        above = y >= 3.0
        y = where(above, y - 1.0, y)
        product = where(above, product * y, product)
    near = product * exp(gammaln(y)) / below
    z = FUNCTIONS["minimum"](where(far, x, _FAR), 200.0)  # where the result overflows
    root = z ** (0.5 * z - 0.25)
    return where(far, math.sqrt(2 * math.pi) * exp(stirling_rest(z)) * root * exp(-z) * root, near)


def _gamma(x: Tensor) -> Tensor:
    """Below 0: ``-pi / (x sin(pi x) gamma(-x))``."""
    mirrored = x < 0
    positive = _gamma_positive(where(mirrored, -x, where(x == 0, 1.0, x)))
    turn = x - FUNCTIONS["rint"](x)
    odd = FUNCTIONS["remainder"](FUNCTIONS["rint"](x), 2.0) == 1
    sine = FUNCTIONS["sin"](math.pi * where(mirrored & (turn != 0), turn, 0.5))
    below = math.pi / (where(odd, -sine, sine) * positive * where(mirrored, -x, 1.0))
    below = where((turn == 0) | isinf(x), math.nan, below)
    return where(mirrored, below, where(x == 0, FUNCTIONS["copysign"](math.inf, x), where(isinf(x), math.inf, positive)))


_gamma_function: Function = Function(_gamma, [lambda x: _gamma_function(x) * digamma(x)])


def gamma(x: Any) -> Tensor:
    """Gamma function; exact for the integers 1 to 23, NaN at -1, -2, …, infinite at 0.

    The result has the shape and float type of ``x``, float32 for integers. Raises DTypeError for complex numbers.

    >>> hg.special.gamma([0.5, 5.0, -1.5])
    Tensor([ 1.7724539, 24.       ,  2.3632717], dtype=float32)
    """
    return in_float64("gamma", _gamma_function, x)


def gammasgn(x: Any) -> Tensor:
    """Sign of the gamma function; NaN at -1, -2, ….

    >>> hg.special.gammasgn([2.5, -0.5, -1.5])
    Tensor([ 1., -1.,  1.], dtype=float32)
    """

    def sign(x: Tensor) -> Tensor:
        whole = floor(x)
        odd = FUNCTIONS["remainder"](whole, 2.0) == 1
        below = where((whole == x) | isnan(x), math.nan, where(odd, -1.0, 1.0))
        return where(x > 0, 1.0, where(x == 0, FUNCTIONS["copysign"](1.0, x), below))

    return in_float64("gammasgn", sign, x)


def loggamma(x: Any) -> Tensor:
    """Logarithm of the gamma function of real numbers; NaN below 0, where it is complex. :func:`gammaln` is that of its magnitude.

    >>> hg.special.loggamma([5.0, -0.5])
    Tensor([3.1780539,       nan], dtype=float32)
    """
    return in_float64("loggamma", lambda x: where(x < 0, math.nan, gammaln(x)), x)


_rgamma = Function(
    lambda x: where(_is_pole(x), 0.0, _reciprocal(x)),
    [lambda x: where(_is_pole(x), _slope_at_pole(x), -_reciprocal(x) * digamma(where(_is_pole(x), 1.0, x)))],
)


def _is_pole(x: Tensor) -> Tensor:
    return (x <= 0) & (floor(x) == x)


def _reciprocal(x: Tensor) -> Tensor:
    """Beyond the range of gamma: below 0 from the reflection formula, which is a product here."""
    far = x < -170.0
    y = where(_is_pole(x), 1.0, where(far, x, x * 0 - 170.5))
    sine = FUNCTIONS["sin"](math.pi * (y - 2.0 * FUNCTIONS["rint"](0.5 * y)))
    beyond = sine / math.pi * exp(gammaln(1.0 - y))
    return where(far, beyond, 1.0 / _gamma_function(where(far | _is_pole(x), 1.0, x)))


def _slope_at_pole(x: Tensor) -> Tensor:
    """``(-1)**n n!`` at -n."""
    n = where(_is_pole(x), -x, 0.0)
    return where(FUNCTIONS["remainder"](n, 2.0) == 1, -1.0, 1.0) * _gamma_function(n + 1.0)


def rgamma(x: Any) -> Tensor:
    """Reciprocal of the gamma function, 0 at its poles.

    >>> hg.special.rgamma([0.0, 1.0, 4.0])
    Tensor([0.        , 1.        , 0.16666667], dtype=float32)
    """
    return in_float64("rgamma", _rgamma, x)


def beta(a: Any, b: Any) -> Tensor:
    """Beta function ``gamma(a) gamma(b) / gamma(a + b)`` of numbers that broadcast; infinite at its poles.

    >>> hg.special.beta([1.0, 2.0], 3.0)
    Tensor([0.33333334, 0.08333334], dtype=float32)
    """
    return in_float64("beta", _beta, a, b)


def _at_poles(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """``(a, b, sign, value, there)``: the arguments by which beta is ``sign`` times what they give, and, ``there``, the ``value`` that it has, 0 or
    infinite: at poles of the gamma function, and of infinite arguments.

    Of a = -n the poles of ``gamma(a)`` and ``gamma(a + b)`` cancel for whole b from 1 to n: ``beta(a, b) = (-1)**b beta(1 - a - b, b)``.
    """
    at_a, at_b = _is_pole(a), _is_pole(b)
    cancels_a = at_a & (a > -math.inf) & (b > 0) & (floor(b) == b) & (a + b <= 0)
    cancels_b = at_b & (b > -math.inf) & (a > 0) & (floor(a) == a) & (a + b <= 0)
    other = where(cancels_a, b, where(cancels_b, a, 0.0))
    sign = where(2.0 * floor(0.5 * other) == other, 1.0, -1.0)
    endless = ((a == math.inf) & ~isnan(b)) | ((b == math.inf) & ~isnan(a))
    finite = where(a == math.inf, b, a)  # beta goes as gamma(finite) times a power of the argument that grows
    grows = gammasgn(where(endless & (finite < 0) & ~_is_pole(finite), finite, 1.0)) * math.inf
    poles = (at_a | at_b) & ~cancels_a & ~cancels_b & ~isnan(a) & ~isnan(b)
    value = where(poles, math.inf, where(finite > 0, 0.0, grows))
    there = poles | endless
    p = where(there, 1.0, where(cancels_a, 1.0 - a - b, a))
    q = where(there, 1.0, where(cancels_b, 1.0 - a - b, b))
    return p, q, sign, value, there


def _beta(a: Tensor, b: Tensor) -> Tensor:
    a, b, sign, value, there = _at_poles(a, b)
    return where(there, value, sign * _regular_beta(a, b))


def _regular_beta(a: Tensor, b: Tensor) -> Tensor:
    n = a + b
    small = (absolute(a) < 150) & (absolute(b) < 150) & (absolute(n) < 150)
    direct = _gamma_function(where(small, a, 1.0)) * _rgamma(where(small, n, 2.0)) * _gamma_function(where(small, b, 1.0))
    p, q = where(small, 1.0, a), where(small, 1.0, b)
    return where(small, direct, gammasgn(a) * gammasgn(b) * gammasgn(where(_is_pole(n), 1.0, n)) * exp(_regular_betaln(p, q)))


def _betaln(a: Tensor, b: Tensor) -> Tensor:
    """The logarithm of the beta function's magnitude."""
    a, b, _, value, there = _at_poles(a, b)
    return where(there, where(value == 0, -math.inf, math.inf), _regular_betaln(a, b))


def _regular_betaln(a: Tensor, b: Tensor) -> Tensor:
    positive = (a > 0) & (b > 0)
    p, q = where(positive, a, 1.0), where(positive, b, 1.0)
    u, v = where(positive, 1.0, a), where(positive, 1.0, b)
    return where(positive, log_beta(p, q), gammaln(u) + gammaln(v) - gammaln(u + v))


def betaln(a: Any, b: Any) -> Tensor:
    """Logarithm of the beta function's magnitude; the arguments broadcast.

    >>> hg.special.betaln([1.0, 2.0], 3.0)
    Tensor([-1.0986123, -2.4849067], dtype=float32)
    """
    return in_float64("betaln", _betaln, a, b)


def binom(n: Any, k: Any) -> Tensor:
    """Binomial coefficient ``n! / (k! (n - k)!)`` of real numbers, which broadcast.

    Exact for whole ``n`` and ``k <= 20`` while ``n`` times it is below 2**53.
    0 where ``k`` is a negative integer, or one above a whole ``n``. NaN for negative integers ``n``.

    >>> hg.special.binom([5.0, 4.5], 2.0)
    Tensor([10.   ,  7.875], dtype=float32)
    """
    return in_float64("binom", _binomial, n, k)


def _binomial(n: Tensor, k: Tensor) -> Tensor:
    """By a product for small whole k, else from gamma functions, or for large numbers from the beta function."""
    small = (absolute(n) < 150) & (absolute(k) < 150) & (absolute(n - k) < 150)
    u, v = where(small, n, 1.0), where(small, k, 1.0)
    direct = _gamma_function(u + 1.0) * _rgamma(v + 1.0) * _rgamma(u - v + 1.0)
    a, b = n - k + 1.0, k + 1.0
    positive = (a > 0) & (b > 0) & ~small
    p, q = where(positive, a, 1.0), where(positive, b, 1.0)
    far = where(positive, exp(-log_beta(p, q) - log(where(positive, n + 1.0, 1.0))), where(_is_pole(a) | _is_pole(b), 0.0, math.nan))
    whole = floor(k) == k
    product = where(whole & (k >= 0) & (k <= _FACTORS), _product(n, k), where(small, direct, far))
    wrong = isnan(n) | isnan(k) | ((n < 0) & (floor(n) == n))
    return where(wrong, math.nan, product)


def _product(n: Tensor, k: Tensor) -> Tensor:
    """``(n - k + 1) / 1 * (n - k + 2) / 2 * … * n / k``; exact where the quotients' products are."""
    total = n * 0 + 1.0
    for i in range(1, _FACTORS + 1):
        total = where(k >= i, total * (n + (float(i) - k)) / float(i), total)
    return total


def _constant(x: Tensor) -> Tensor:
    from hologram.transform.api import stop_gradient

    held: Tensor = stop_gradient(x)
    return held


def factorial(n: Any) -> Tensor:
    """Factorial ``gamma(n + 1)``, 0 below 0, as SciPy's with ``exact=False``.

    >>> hg.special.factorial([0, 3, 5])
    Tensor([  1.,   6., 120.], dtype=float32)
    """
    return in_float64("factorial", lambda n: where(n < 0, 0.0, _gamma_function(where(n < 0, 0.0, n) + 1.0)), n)


def poch(z: Any, m: Any) -> Tensor:
    """Pochhammer symbol: the rising factorial ``gamma(z + m) / gamma(z)``, z > 0, or a pole of ``gamma(z)``. Infinite where only ``gamma(z + m)`` is.

    >>> hg.special.poch([1.0, 2.0], 3.0)
    Tensor([ 6., 24.], dtype=float32)
    """

    def rising(z: Tensor, m: Tensor) -> Tensor:
        at_start, at_end = _is_pole(z) & (z > -math.inf), _is_pole(z + m) & (z + m > -math.inf)
        cancels = at_start & at_end  # where poch(z, m) = (-1)**m poch(1 - z - m, m)
        sign = where(cancels & (2.0 * floor(0.5 * m) != m), -1.0, 1.0)
        endless = (m == math.inf) | ((z == math.inf) & (m != 0))
        upward = gammasgn(where((z < 0) & ~_is_pole(z), z, 1.0)) * math.inf
        value = where(at_start, 0.0, where(at_end, math.inf, where(m > 0, upward, 0.0)))
        there = ((at_start ^ at_end) | endless) & ~isnan(z) & ~isnan(m) & (m > -math.inf) & (z > -math.inf)
        start = where(there, 1.0, where(cancels, 1.0 - z - m, z))
        return where(there, value, sign * regular(start, where(there, 1.0, m)))

    def regular(z: Tensor, m: Tensor) -> Tensor:
        small = (absolute(z) < 150) & (absolute(z + m) < 150)
        u, v = where(small, z, 1.0), where(small, m, 1.0)
        direct = _gamma_function(u + v) * _rgamma(u)
        up, down = ~small & (z > 0) & (m > 0), ~small & (z + m > 0) & (m < 0)
        low, step = where(up, z, where(down, z + m, 1.0)), where(up | down, absolute(m), 1.0)
        far = gammaln(step) - log_beta(low, step)
        return where(m == 0, 1.0, where(small, direct, where(up | down, exp(where(up, far, -far)), math.nan)))

    return in_float64("poch", rising, z, m)


def multigammaln(a: Any, d: int) -> Tensor:
    """Logarithm of the multivariate gamma function of dimension ``d``, a known integer; defined for ``a > (d - 1)/2``.

    Raises ArgumentError for a ``d`` that is not positive.

    >>> hg.special.multigammaln([2.0, 3.0], 2)
    Tensor([0.4515827, 1.550195 ], dtype=float32)
    """
    n = integer(d, "multigammaln", "a dimension")
    if n < 1:
        raise located(ArgumentError(f"multigammaln takes a positive dimension, not {n}"))

    def total(a: Tensor) -> Tensor:
        found = sum((gammaln(a - 0.5 * j) for j in range(1, n)), gammaln(a)) + 0.25 * n * (n - 1) * math.log(math.pi)
        return where(a > 0.5 * (n - 1), found, math.nan)

    return in_float64("multigammaln", total, a)


# --- zeta ------------------------------------------------------------------------------------------------------------

_NEAR_ZERO = 0.05  # where 1 - s would lose the digits of s
_TERMS = 12  # summed one by one before the Euler-Maclaurin formula
_EULER_MACLAURIN = (1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000, 1 / 74724249600, -3617 / 10670622842880000)


def _hurwitz(s: Tensor, q: Tensor) -> Tensor:
    """Sum of ``(q + k)**-s``, q > 0, as far as -10 in s: smallest terms first."""
    a = q + float(_TERMS)
    square = 1.0 / (a * a)
    rising, factors = s, []
    for j, c in enumerate(_EULER_MACLAURIN):
        factors.append(c * rising)
        rising = rising * (s + (2 * j + 1)) * (s + (2 * j + 2))
    total = (0.5 + series(square, factors) / a + a / (s - 1.0)) * exp(-s * log(a))
    for k in reversed(range(_TERMS)):
        total = total + (q + float(k)) ** -s
    return total


_hurwitz_zeta: Function = Function(
    lambda s, q: _hurwitz_at(s, q),
    [None, lambda s, q: -s * _hurwitz_zeta(s + 1.0, q)],
)


def _hurwitz_at(s: Tensor, q: Tensor) -> Tensor:
    """Infinite at s = 1 and q = 0, 1 / q**s where that is all that is left; NaN for s < 1 and for q < 0."""
    inside = (s > 1) & (q > 0) & ~isinf(q)
    s_, q_ = where(inside, s, 2.0), where(inside, q, 1.0)
    large = q_ > 1e8
    near = _hurwitz(s_, where(large, 1.0, q_))
    far = (1.0 / (s_ - 1.0) + 0.5 / q_) * exp((1.0 - s_) * log(q_))
    edge = where((s == 1) | ((s > 1) & (q <= 0) & (floor(q) == q)), math.inf, where((s > 1) & (q > 0), 0.0, math.nan))
    return where(inside, where(large, far, near), where(isnan(q), math.nan, edge))


_riemann_zeta = Function(lambda s: _riemann(s), [None])


def _riemann(s: Tensor) -> Tensor:
    """Below ``-_NEAR_ZERO``: ``2 (2 pi)**(s - 1) sin(pi s / 2) gamma(1 - s) zeta(1 - s)``."""
    mirrored = s < -_NEAR_ZERO
    t = where(mirrored, 1.0 - s, where(s == 1, 2.0, s))
    direct = _hurwitz(t, t * 0 + 1.0)
    turn = 0.25 * where(mirrored, s, 0.0)
    sine = FUNCTIONS["sin"](2 * math.pi * (turn - FUNCTIONS["rint"](turn)))
    sine = where(FUNCTIONS["remainder"](s, 2.0) == 0, (s - _constant(s)) * (0.5 * math.pi * FUNCTIONS["cos"](2 * math.pi * turn)), sine)
    half = exp(0.5 * (gammaln(t) - t * math.log(2 * math.pi)))
    below = 2.0 * half * sine * direct * half
    below = where((s < -180) & (FUNCTIONS["remainder"](s, 2.0) == 0), 0.0, below)
    return where(mirrored, below, where(s == 1, math.inf, where(s > 60, 1.0 + exp(-math.log(2) * s), direct)))


def zeta(x: Any, q: Any = None) -> Tensor:
    """Riemann zeta function of real numbers, or with ``q`` Hurwitz's: the sum of ``(k + q)**-x`` over k >= 0, for x > 1 and q > 0.

    Both arguments have derivatives. Infinite at x = 1; of Hurwitz's NaN for x < 1, and for q < 0 but at -1, -2, …, where it is infinite.

    >>> hg.special.zeta([2.0, 0.0, -1.0])
    Tensor([ 1.644934  , -0.5       , -0.08333334], dtype=float32)
    >>> hg.special.zeta(2.0, [1.0, 2.0])
    Tensor([1.644934  , 0.64493406], dtype=float32)
    """
    return in_float64("zeta", _riemann_zeta, x) if q is None else in_float64("zeta", _hurwitz_zeta, x, q)


def zetac(x: Any) -> Tensor:
    """``zeta(x) - 1``, accurate for large ``x``.

    >>> hg.special.zetac([2.0, 50.0])
    Tensor([6.4493406e-01, 8.8817842e-16], dtype=float32)
    """

    def less_one(s: Tensor) -> Tensor:
        large = s > 2
        inside = large & (s < 1100)
        t = where(inside, s, 3.0)
        return where(large, where(inside, _hurwitz(t, t * 0 + 2.0), 0.0), _riemann_zeta(where(large, 2.0, s)) - 1.0)

    return in_float64("zetac", less_one, x)
