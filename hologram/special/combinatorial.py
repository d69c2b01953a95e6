"""Numbers of combinations, and Bernoulli's numbers."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import hologram.numpy as hnp
from hologram.errors import ArgumentError
from hologram.numpy.elementwise.functions import FUNCTIONS, where
from hologram.special.elementwise import in_float64
from hologram.special.gamma_functions import binom
from hologram.support.user_lines import located
from hologram.trace.checks import integer
from hologram.trace.tensor import Tensor

__all__ = ["bernoulli", "comb"]

floor = FUNCTIONS["floor"]


def comb(N: Any, k: Any, *, repetition: bool = False) -> Tensor:
    """How many ways there are to choose ``k`` of ``N`` things, with ``repetition`` or without, as floats; 0 where ``k < 0``, ``N < 0`` or ``k > N``.

    Exact for ``k <= 20`` while ``N`` times the result is below 2**53. The arguments broadcast. ``math.comb`` computes Python integers of any size.

    >>> hg.special.comb([4, 5], 2)
    Tensor([ 6., 10.], dtype=float32)
    """

    def count(n: Tensor, k: Tensor) -> Tensor:
        if repetition:
            n = where((n == 0) & (k == 0), 1.0, n + k - 1.0)  # one way to choose nothing of nothing
        possible = (n >= 0) & (k >= 0) & (k <= n)
        found: Tensor = where(possible, binom(where(possible, n, 1.0), where(possible, k, 1.0)), 0.0)
        return found

    return in_float64("comb", count, N, k)


def bernoulli(n: int) -> Tensor:
    """Bernoulli's numbers from 0 to ``n``: an array (n + 1,) in the default float type; the second is -1/2. Infinite where they are too large.

    Raises ArgumentError for a negative ``n``.

    >>> hg.special.bernoulli(4)
    Tensor([ 1.        , -0.5       ,  0.16666667,  0.        , -0.03333334],
           dtype=float32)
    """
    count = integer(n, "bernoulli", "n")
    if count < 0:
        raise located(ArgumentError(f"bernoulli takes an n from 0 up, not {count}"))
    numbers = [Fraction(1)]
    for m in range(1, count + 1):
        known = -sum((math.comb(m + 1, k) * b for k, b in enumerate(numbers) if b), Fraction(0)) / (m + 1)
        numbers.append(known if m % 2 == 0 or m == 1 else Fraction(0))
    return hnp.asarray([_as_float(b) for b in numbers])


def _as_float(x: Fraction) -> float:
    try:
        return float(x)
    except OverflowError:
        return math.copysign(math.inf, x)
