"""Distributions of counts. Everything is computed in float64, the acceptance ratios included."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hologram import dtypes
from hologram.control.loops import while_loop
from hologram.dtypes import DType
from hologram.errors import DTypeError
from hologram.ir.op import Shape
from hologram.numpy.along_axes.reductions import all
from hologram.numpy.arguments import element_type
from hologram.numpy.creation import zeros, zeros_like
from hologram.numpy.elementwise.functions import FUNCTIONS, clip, where
from hologram.numpy.shaping.shapes import broadcast_to
from hologram.random.continuous import as_type, open_unit, result_shape, unit
from hologram.random.discrete import bernoulli
from hologram.random.keys import fold_in, split
from hologram.random.rejection import first_accepted
from hologram.special import gammaln
from hologram.support.user_lines import located
from hologram.trace.checks import shape_of
from hologram.trace.tensor import Tensor

_abs, _floor, _log, _log1p, _sqrt = (FUNCTIONS[name] for name in ("abs", "floor", "log", "log1p", "sqrt"))
WIDE = dtypes.float64
_FEW = 10.0  # up to this mean events are counted one by one


def _integer_type(dtype: Any, what: str) -> DType:
    to = dtypes.default_int if dtype is None else element_type(dtype)
    if not to.is_integer:
        raise located(DTypeError(f"{what} gives integers, not {to}"))
    return to


def _parameter(x: Any, shape: Shape, what: str) -> Tensor:
    return broadcast_to(as_type(x, WIDE, what), shape)


def _waiting(key: Any, gap: Any, limit: Tensor) -> Tensor:
    """How many of the gaps ``gap(key)`` fit into ``limit``, one after the other."""

    def step(state: tuple[Tensor, Tensor, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        i, passed, count = state
        passed = passed + gap(fold_in(key, i))
        return i + 1, passed, where(passed <= limit, count + 1, count)

    start = (zeros((), dtype=dtypes.int64), zeros_like(limit), zeros_like(limit))
    return while_loop(lambda state: ~all(state[1] > limit), step, start)[2]


def _log_of_part(count: Tensor, deviation: Tensor, mean: Tensor) -> Tensor:
    """The logarithm of ``mean**count * exp(-mean) / count!``, where ``count = mean + deviation``, without differences of large numbers.

    It is ``-mean * h(deviation / mean)`` for ``h(e) = (1 + e) * log(1 + e) - e``, less what Stirling's ``count * log(count) - count`` lacks of
    ``log(count!)``.
    """
    some = where(count > 0, count, 1.0)
    inverse = 1 / where(count < 16, 16.0, count)
    series = 0.5 * _log(2 * math.pi * some) + inverse * (1 / 12 - inverse * inverse * (1 / 360 - inverse * inverse / 1260))
    few = where(count < 16, some, 1.0)
    lacking = where(count < 16, gammaln(few + 1) - few * _log(few) + few, series)
    e = deviation / mean
    beyond = mean * ((1 + e) * _log1p(where(count > 0, e, 0.0)) - e)
    return where(count > 0, -lacking - beyond, -mean)


# --- Poisson ---------------------------------------------------------------------------------------------------------


def _many_events(key: Any, mean: Tensor, few: Tensor) -> Tensor:
    """Transformed rejection (Hörmann, The transformed rejection method for generating Poisson random variables, 1993: PTRS) for a mean from 10 up.

    What is drawn is the count less the whole part of the mean, which has all its digits where the count has more of them than a float64.
    """
    whole = _floor(mean)
    part = mean - whole
    b = 0.931 + 2.53 * _sqrt(mean)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    squeeze = 0.9277 - 3.6224 / (b - 2)

    def propose(key: Tensor) -> tuple[Tensor, Tensor]:
        first, second = split(key)
        u = unit(first, mean.shape, WIDE, "poisson") - 0.5
        v = open_unit(second, mean.shape, WIDE, "poisson")
        rest = 0.5 - _abs(u)
        k = _floor((2 * a / rest + b) * u + part + 0.43)
        count = whole + k
        possible = (count >= 0) & ((rest >= 0.013) | (v <= rest))
        ratio = _log_of_part(count, k - part, mean)
        accepted = ((rest >= 0.07) & (v <= squeeze)) | (possible & (_log(v * inverse_alpha / (a / (rest * rest) + b)) <= ratio))
        return k, accepted

    return first_accepted(propose, key, zeros_like(mean), few)


def poisson(key: Any, lam: Any, shape: Any = None, dtype: Any = None) -> Tensor:
    """Poisson distribution of mean ``lam``, up to 2**60; -1 where ``lam`` is negative, NaN or larger.

    ``shape`` is by default that of ``lam``; int64 unless ``dtype`` says otherwise. Raises DTypeError for a type that is no integer.

    >>> hg.random.poisson(hg.random.key(0), 3.0, (5,))
    Tensor([2, 2, 2, 6, 3], dtype=int64)
    """
    to, extents = _integer_type(dtype, "poisson"), result_shape(shape, "poisson", lam)
    mean = _parameter(lam, extents, "poisson")
    valid = (mean >= 0) & (mean <= 2.0**60)
    few = mean < _FEW
    small, large = split(key)
    counted = _waiting(small, lambda k: -_log(open_unit(k, extents, WIDE, "poisson")), where(valid & few, mean, -1.0))
    drawn = _many_events(large, where(valid & ~few, mean, _FEW), few | ~valid)
    whole = where(valid & ~few, _floor(mean), 0.0).astype(np.int64)
    total = where(valid, whole + where(few, counted, drawn).astype(np.int64), -1)
    return clip(total, *_ends(to)).astype(to)


def _ends(dtype: DType) -> tuple[int, int]:
    """The least and the greatest count of that type, as far as int64 has them."""
    info = np.iinfo(dtype.np)
    return max(int(info.min), -1), min(int(info.max), 2**63 - 1)


# --- trials ----------------------------------------------------------------------------------------------------------


def geometric(key: Any, p: Any, shape: Any = None, dtype: Any = None) -> Tensor:
    """Geometric distribution: how many trials with probability ``p`` it takes until the first success, at least 1.

    The greatest integer where ``p`` is 0. ``shape`` is by default that of ``p``; int64 unless ``dtype`` says otherwise.

    >>> hg.random.geometric(hg.random.key(0), 0.5, (5,))
    Tensor([2, 3, 1, 1, 1], dtype=int64)
    """
    to, extents = _integer_type(dtype, "geometric"), result_shape(shape, "geometric", p)
    return _trials(key, _parameter(p, extents, "geometric"), "geometric").astype(to)


def _trials(key: Any, p: Tensor, what: str) -> Tensor:
    return _floor(_log(open_unit(key, p.shape, WIDE, what)) / _log1p(-p)) + 1


def _many_successes(key: Any, n: Tensor, p: Tensor, few: Tensor) -> Tensor:
    """Transformed rejection (Hörmann, The generation of binomial random variates, 1993: BTRS) for p up to 1/2 and a mean from 10 up."""
    q = 1 - p
    deviation = _sqrt(n * p * q)
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = n * p + 0.5
    squeeze = 0.92 - 4.2 / b
    alpha = (2.83 + 5.1 / b) * deviation
    mode = _floor((n + 1) * p)

    def log_probability(k: Tensor) -> Tensor:  # but for a constant
        return _log_of_part(k, k - n * p, n * p) + _log_of_part(n - k, n * p - k, n * q)

    at_mode = log_probability(mode)

    def propose(key: Tensor) -> tuple[Tensor, Tensor]:
        first, second = split(key)
        u = unit(first, n.shape, WIDE, "binomial") - 0.5
        v = open_unit(second, n.shape, WIDE, "binomial")
        rest = 0.5 - _abs(u)
        k = _floor((2 * a / rest + b) * u + c)
        possible = (k >= 0) & (k <= n)
        count = where(possible, k, mode)
        ratio = log_probability(count) - at_mode
        accepted = possible & (((rest >= 0.07) & (v <= squeeze)) | (_log(v * alpha / (a / (rest * rest) + b)) <= ratio))
        return k, accepted

    return first_accepted(propose, key, zeros_like(n), few)


def binomial(key: Any, n: Any, p: Any, shape: Any = None, dtype: Any = None) -> Tensor:
    """Binomial distribution: successes among ``n`` trials with probability ``p``; -1 where ``n`` is not from 0 to 2**53, or ``p`` not from 0 to 1.

    ``shape`` is by default that to which ``n`` and ``p`` broadcast; int64 unless ``dtype`` says otherwise. Raises DTypeError for a type that is no
    integer.

    >>> hg.random.binomial(hg.random.key(0), 10, 0.5, (5,))
    Tensor([5, 4, 5, 6, 6], dtype=int64)
    """
    to, extents = _integer_type(dtype, "binomial"), result_shape(shape, "binomial", n, p)
    trials, chance = _floor(_parameter(n, extents, "binomial")), _parameter(p, extents, "binomial")
    valid = (trials >= 0) & (trials <= 2.0**53) & (chance >= 0) & (chance <= 1)
    rarer = where(valid, where(chance > 0.5, 1 - chance, chance), 0.0)
    few = ~(trials * rarer >= _FEW)
    small, large = split(key)
    sparse = where(few, rarer, 0.5)
    counted = _waiting(small, lambda k: _trials(k, sparse, "binomial"), where(valid & few, trials, -1.0))
    drawn = _many_successes(large, where(few, 2 * _FEW, trials), where(few, 0.5, rarer), few)
    found = where(few, counted, drawn)
    return where(valid, where(chance > 0.5, trials - found, found), -1.0).astype(to)


def rademacher(key: Any, shape: Any = (), dtype: Any = None) -> Tensor:
    """Rademacher distribution: -1 or 1 with equal probabilities; int64 unless ``dtype`` says otherwise. Raises DTypeError for unsigned types.

    >>> hg.random.rademacher(hg.random.key(0), (5,))
    Tensor([-1, -1,  1,  1, -1], dtype=int64)
    """
    to = dtypes.default_int if dtype is None else element_type(dtype)
    if to.kind not in "if":
        raise located(DTypeError(f"rademacher gives signed numbers, not {to}"))
    return bernoulli(key, 0.5, shape_of(shape, "rademacher")).astype(to) * 2 - 1
