"""Activations: elementwise functions between layers.

Each takes anything array-like of real numbers and gives a Tensor of the same shape and float type (integers become floats). Narrow floats
are computed in float32 and rounded once. At a corner, the derivative is the one of the left side.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from hologram import numpy as hnp
from hologram.errors import ShapeError
from hologram.ir.symbolic import mod
from hologram.numpy.arguments import axis_of, cast, floats
from hologram.support.user_lines import located
from hologram.trace.decisions import decided
from hologram.trace.recorder import plain
from hologram.trace.tensor import Tensor

__all__ = [
    "celu", "elu", "gelu", "glu", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh", "identity", "leaky_relu", "log1mexp", "log_sigmoid", "mish",
    "relu", "relu6", "selu", "sigmoid", "silu", "soft_sign", "softplus", "sparse_plus", "sparse_sigmoid", "squareplus", "swish", "tanh",
]  # fmt: skip


def _activation(f: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """``f``, written for Tensors of a type that is computed in, for any array-like."""

    @functools.wraps(f)
    def activation(x: Any, /, *args: Any, **options: Any) -> Tensor:
        values, dtype = floats(x, f.__name__)
        return cast(f(values, *args, **options), dtype)

    return activation


# --- rectifiers ------------------------------------------------------------------------------------------------------


@_activation
def relu(x: Any) -> Tensor:
    """Rectified linear unit: ``max(x, 0)``; NaN stays.

    Shape and float type are those of ``x``; integers become float32. Raises DTypeError for complex numbers. So do all activations.

    >>> hg.nn.relu([-1.0, 0.0, 2.0])
    Tensor([0., 0., 2.], dtype=float32)
    """
    return hnp.where(x <= 0, 0.0, x)


@_activation
def relu6(x: Any) -> Tensor:
    """Rectified linear unit up to 6: ``min(max(x, 0), 6)``; NaN stays. The slope is 0 at 0 and 6. Types and errors are those of :func:`relu`.

    >>> hg.nn.relu6([-1.0, 2.0, 9.0])
    Tensor([0., 2., 6.], dtype=float32)
    """
    return hnp.where(x <= 0, 0.0, hnp.where(x >= 6, 6.0, x))


@_activation
def hard_tanh(x: Any) -> Tensor:
    """Hyperbolic tangent made of lines: ``x`` limited to -1 and 1; NaN stays. The slope is 1 at -1 and 1. Types and errors are those of :func:`relu`.

    >>> hg.nn.hard_tanh([-3.0, 0.5, 3.0])
    Tensor([-1. ,  0.5,  1. ], dtype=float32)
    """
    return hnp.where(x < -1, -1.0, hnp.where(x > 1, 1.0, x))


@_activation
def leaky_relu(x: Any, negative_slope: Any = 0.01) -> Tensor:
    """Leaky rectified linear unit: ``x``, times ``negative_slope`` where it is below 0. Types and errors are those of :func:`relu`.

    >>> hg.nn.leaky_relu([-2.0, 3.0], negative_slope=0.5)
    Tensor([-1.,  3.], dtype=float32)
    """
    return hnp.where(x >= 0, x, negative_slope * x)


def _expm1_below_0(x: Tensor) -> Tensor:
    """``exp(x) - 1`` where ``x`` is not above 0; what is above cannot overflow, nor can its derivative."""
    return hnp.expm1(hnp.where(x > 0, 0.0, x))


@_activation
def elu(x: Any, alpha: Any = 1.0) -> Tensor:
    """Exponential linear unit: ``x`` above 0, else ``alpha * (exp(x) - 1)`` (Clevert et al. 2015). Types and errors are those of :func:`relu`.

    >>> hg.nn.elu([-1.0, 2.0])
    Tensor([-0.63212055,  2.        ], dtype=float32)
    """
    return hnp.where(x > 0, x, alpha * _expm1_below_0(x))


@_activation
def celu(x: Any, alpha: Any = 1.0) -> Tensor:
    """Continuously differentiable exponential linear unit: ``x`` above 0, else ``alpha * (exp(x / alpha) - 1)`` (Barron 2017).

    Smooth for every ``alpha`` above 0. Types and errors are those of :func:`relu`.

    >>> hg.nn.celu([-1.0, 2.0], alpha=2.0)
    Tensor([-0.78693867,  2.        ], dtype=float32)
    """
    return hnp.where(x > 0, x, alpha * _expm1_below_0(x / alpha))


@_activation
def selu(x: Any) -> Tensor:
    """Scaled exponential linear unit: the :func:`elu` that keeps mean 0 and variance 1 from layer to layer (Klambauer et al. 2017).

    Types and errors are those of :func:`relu`.

    >>> hg.nn.selu([-1.0, 2.0])
    Tensor([-1.1113307,  2.101402 ], dtype=float32)
    """
    alpha, scale = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946
    return scale * hnp.where(x > 0, x, alpha * _expm1_below_0(x))


# --- smooth functions ------------------------------------------------------------------------------------------------


@_activation
def sigmoid(x: Any) -> Tensor:
    """Logistic function: ``1 / (1 + exp(-x))``, without overflow. Types and errors are those of :func:`relu`.

    >>> hg.nn.sigmoid([0.0, 2.0])
    Tensor([0.5     , 0.880797], dtype=float32)
    """
    return hnp.sigmoid(x)


@_activation
def tanh(x: Any) -> Tensor:
    """Hyperbolic tangent. Types and errors are those of :func:`relu`.

    >>> hg.nn.tanh([0.0, 1.0])
    Tensor([0.       , 0.7615941], dtype=float32)
    """
    return hnp.tanh(x)


@_activation
def silu(x: Any) -> Tensor:
    """Sigmoid linear unit, also called swish: ``x * sigmoid(x)``. Types and errors are those of :func:`relu`.

    >>> hg.nn.silu([0.0, 2.0])
    Tensor([0.      , 1.761594], dtype=float32)
    """
    return x * hnp.sigmoid(x)


swish = silu


@_activation
def gelu(x: Any, approximate: bool = True) -> Tensor:
    """Gaussian error linear unit: ``x`` times the normal distribution function at ``x`` (Hendrycks and Gimpel 2016).

    ``approximate``: ``x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))``, at most 5e-4 away; otherwise exact. Types and errors are those of
    :func:`relu`.

    >>> hg.nn.gelu([-1.0, 1.0])
    Tensor([-0.158808,  0.841192], dtype=float32)
    >>> hg.nn.gelu([-1.0, 1.0], approximate=False)
    Tensor([-0.15865526,  0.8413447 ], dtype=float32)
    """
    if not approximate:
        return 0.5 * x * hnp.erfc(x * -math.sqrt(0.5))
    # sigmoid(2 u) is (1 + tanh(u)) / 2 without its cancellation; beyond 30 it is 0 or 1 in every type, and x**3 must not overflow in the derivative
    near = hnp.clip(x, -30.0, 30.0)
    return x * hnp.sigmoid(2 * math.sqrt(2 / math.pi) * (near + 0.044715 * near * near * near))


@_activation
def softplus(x: Any) -> Tensor:
    """Smooth rectifier: ``log(1 + exp(x))``, without overflow. Types and errors are those of :func:`relu`.

    >>> hg.nn.softplus([0.0, 100.0])
    Tensor([  0.6931472, 100.       ], dtype=float32)
    """
    return hnp.logaddexp(x, 0.0)


@_activation
def log_sigmoid(x: Any) -> Tensor:
    """Logarithm of the logistic function: ``log(sigmoid(x))``, without overflow. Types and errors are those of :func:`relu`.

    >>> hg.nn.log_sigmoid([0.0, -100.0])
    Tensor([  -0.6931472, -100.       ], dtype=float32)
    """
    return -hnp.logaddexp(-x, 0.0)


@_activation
def mish(x: Any) -> Tensor:
    """Self-regularized activation: ``x * tanh(softplus(x))`` (Misra 2019). Types and errors are those of :func:`relu`.

    >>> hg.nn.mish([-1.0, 1.0])
    Tensor([-0.30340147,  0.8650984 ], dtype=float32)
    """
    return x * hnp.tanh(hnp.logaddexp(x, 0.0))


def glu(x: Any, /, axis: int = -1) -> Tensor:
    """Gated linear unit: the first half of ``x`` along ``axis`` times the sigmoid of the second.

    Types are those of :func:`relu`. Raises ShapeError for an odd extent.

    >>> hg.nn.glu([1.0, 2.0, 0.0, 100.0])
    Tensor([0.5, 2. ], dtype=float32)
    """
    values, dtype = floats(x, "glu")
    axis = axis_of(axis, values.ndim, "glu")
    if not decided(-mod(plain(values.shape[axis]), 2)):
        raise located(ShapeError(f"glu: axis {axis} of {list(values.shape)} has no halves"))
    first, second = hnp.split(values, 2, axis=axis)
    return cast(first * hnp.sigmoid(second), dtype)


# --- of pieces -------------------------------------------------------------------------------------------------------


@_activation
def hard_sigmoid(x: Any) -> Tensor:
    """Piecewise linear sigmoid: ``relu6(x + 3) / 6``. Types and errors are those of :func:`relu`.

    >>> hg.nn.hard_sigmoid([-4.0, 0.0, 1.5])
    Tensor([0.  , 0.5 , 0.75], dtype=float32)
    """
    return relu6(x + 3) / 6


@_activation
def hard_silu(x: Any) -> Tensor:
    """Piecewise quadratic SiLU: ``x * hard_sigmoid(x)``; also called ``hard_swish``. Types and errors are those of :func:`relu`.

    >>> hg.nn.hard_silu([-4.0, 0.0, 1.5])
    Tensor([-0.   ,  0.   ,  1.125], dtype=float32)
    """
    return x * hard_sigmoid(x)


hard_swish = hard_silu


@_activation
def identity(x: Any) -> Tensor:
    """``x`` itself, as a float. Types and errors are those of :func:`relu`.

    >>> hg.nn.identity([1, 2])
    Tensor([1., 2.], dtype=float32)
    """
    return x


@_activation
def log1mexp(x: Any) -> Tensor:
    """``log(1 - exp(-x))`` of positive numbers, without loss of digits (Mächler 2012). Types and errors are those of :func:`relu`.

    >>> hg.nn.log1mexp([1e-10, 1.0])
    Tensor([-23.02585  ,  -0.4586752], dtype=float32)
    """
    small = x < math.log(2)
    near = hnp.log(-hnp.expm1(hnp.where(small, -x, -1.0)))
    return hnp.where(small, near, hnp.log1p(-hnp.exp(hnp.where(small, -1.0, -x))))


@_activation
def soft_sign(x: Any) -> Tensor:
    """``x / (1 + |x|)``. Types and errors are those of :func:`relu`.

    >>> hg.nn.soft_sign([-1.0, 0.0, 3.0])
    Tensor([-0.5 ,  0.  ,  0.75], dtype=float32)
    """
    return x / (1 + hnp.abs(x))


@_activation
def sparse_plus(x: Any) -> Tensor:
    """Rectified linear unit with a parabola from -1 to 1, ``(x + 1)**2 / 4``. Types and errors are those of :func:`relu`.

    >>> hg.nn.sparse_plus([-2.0, 0.0, 3.0])
    Tensor([0.  , 0.25, 3.  ], dtype=float32)
    """
    return hnp.where(x <= -1, 0.0, hnp.where(x >= 1, x, (x + 1) ** 2 / 4))


@_activation
def sparse_sigmoid(x: Any) -> Tensor:
    """Piecewise linear sigmoid, the derivative of :func:`sparse_plus`: ``(x + 1) / 2`` from -1 to 1. Types and errors are those of :func:`relu`.

    >>> hg.nn.sparse_sigmoid([-2.0, 0.0, 0.5])
    Tensor([0.  , 0.5 , 0.75], dtype=float32)
    """
    return hnp.clip((x + 1) / 2, 0.0, 1.0)


@_activation
def squareplus(x: Any, b: Any = 4) -> Tensor:
    """Smooth rectified linear unit: ``(x + sqrt(x**2 + b)) / 2``. Types and errors are those of :func:`relu`.

    >>> hg.nn.squareplus([-1.0, 0.0, 1.0])
    Tensor([0.618034, 1.      , 1.618034], dtype=float32)
    """
    return (x + hnp.sqrt(x * x + b)) / 2
