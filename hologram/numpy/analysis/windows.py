"""Window functions: weights of ``M`` samples, known when the program is traced; and what one of them is made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hologram import dtypes
from hologram.numpy.arguments import wrap
from hologram.numpy.elementwise.functions import FUNCTIONS
from hologram.primitives import TABLE
from hologram.trace.checks import computed, integer, number
from hologram.trace.convert import tensor
from hologram.trace.operators import promoted, unary_operator
from hologram.trace.tensor import Tensor

__all__ = ["bartlett", "blackman", "hamming", "hanning", "i0", "kaiser"]

_i0e = unary_operator(TABLE["i0e"])


def _window(weights: Callable[..., Any], M: int, *shape: float) -> Tensor:
    n = integer(M, weights.__name__, "a number of samples")
    return tensor(computed(weights.__name__, n, 8, lambda: weights(n, *shape)), dtype=dtypes.default_float)


def bartlett(M: int) -> Tensor:
    """Bartlett window of ``M`` samples, float32: a triangle that is zero at both ends.

    >>> hnp.bartlett(5)
    Tensor([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """
    return _window(np.bartlett, M)


def blackman(M: int) -> Tensor:
    """Blackman window of ``M`` samples, float32: ``0.42 - 0.5*cos(2πn/(M-1)) + 0.08*cos(4πn/(M-1))``.

    >>> hnp.round(hnp.blackman(5), 2)
    Tensor([-0.  ,  0.34,  1.  ,  0.34, -0.  ], dtype=float32)
    """
    return _window(np.blackman, M)


def hamming(M: int) -> Tensor:
    """Hamming window of ``M`` samples, float32: ``0.54 - 0.46*cos(2πn/(M-1))``.

    >>> hnp.hamming(3)
    Tensor([0.08, 1.  , 0.08], dtype=float32)
    """
    return _window(np.hamming, M)


def hanning(M: int) -> Tensor:
    """Hann window of ``M`` samples, float32: ``0.5 - 0.5*cos(2πn/(M-1))``.

    >>> hnp.hanning(5)
    Tensor([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """
    return _window(np.hanning, M)


def i0(x: Any) -> Tensor:
    """Modified Bessel function of the first kind, of order 0, by element; :mod:`hologram.special` has its kin.

    >>> hnp.i0([0.0, 1.0])
    Tensor([1.       , 1.2660658], dtype=float32)
    """
    (node,), _, weak = promoted("i0", (x,), dtypes.to_inexact, keep=True)
    return unscaled_bessel(wrap(node, weak), _i0e)


def unscaled_bessel(x: Tensor, scaled: Callable[[Any], Tensor]) -> Tensor:
    """``exp(|x|) * scaled(x)``; |x| with the slope at 0 that the scaled functions' derivatives take for granted, sign(0) = 0."""
    return FUNCTIONS["exp"](x * FUNCTIONS["sign"](x)) * scaled(x)


def kaiser(M: int, beta: float) -> Tensor:
    """Kaiser window of ``M`` samples, float32: ``i0(beta*sqrt(1 - (2n/(M-1) - 1)**2)) / i0(beta)``.

    >>> hnp.kaiser(3, 2.0)
    Tensor([0.43867627, 1.        , 0.43867627], dtype=float32)
    """
    return _window(np.kaiser, M, number(beta, "kaiser", "beta"))
