"""The softmax family, and normalisation of rows. Narrow floats are computed in float32 and rounded once."""

from __future__ import annotations

from typing import Any

from hologram import numpy as hnp
from hologram import special
from hologram.numpy.along_axes.reductions import logsumexp
from hologram.numpy.arguments import cast, floats
from hologram.trace.tensor import Tensor

__all__ = ["layer_norm", "log_softmax", "logmeanexp", "logsumexp", "rms_norm", "softmax", "standardize"]

Axes = int | tuple[int, ...] | None


def softmax(x: Any, /, axis: Axes = -1, where: Any = None) -> Tensor:
    """:func:`hologram.special.softmax`, along the last axis unless ``axis`` says another.

    >>> hg.nn.softmax([[0.0, 1.0, 2.0]])
    Tensor([[0.09003057, 0.24472845, 0.6652409 ]], dtype=float32)
    """
    return special.softmax(x, axis, where)


def log_softmax(x: Any, /, axis: Axes = -1, where: Any = None) -> Tensor:
    """:func:`hologram.special.log_softmax`, along the last axis unless ``axis`` says another.

    >>> hg.nn.log_softmax([[0.0, 1.0, 2.0]])
    Tensor([[-2.4076061 , -1.407606  , -0.40760604]], dtype=float32)
    """
    return special.log_softmax(x, axis, where)


def _standardized(values: Tensor, axis: Axes, epsilon: float) -> Tensor:
    centred = values - hnp.mean(values, axis=axis, keepdims=True)
    return centred * hnp.rsqrt(hnp.mean(centred * centred, axis=axis, keepdims=True) + epsilon)


def standardize(x: Any, /, axis: Axes = -1, mean: Any = None, variance: Any = None, epsilon: float = 1e-5, where: Any = None) -> Tensor:
    """Standardizes along ``axis``: ``x`` less its mean, over its standard deviation; ``epsilon`` is added to the variance.

    ``mean`` and ``variance`` may be given, and ``where`` tells which elements they are of; all broadcast with ``x``.
    Types and errors are those of :func:`softmax`.

    >>> hg.nn.standardize([1.0, 2.0, 3.0])
    Tensor([-1.2247356,  0.       ,  1.2247356], dtype=float32)
    """
    values, dtype = floats(x, "standardize")
    if mean is None and variance is None and where is None:
        return cast(_standardized(values, axis, epsilon), dtype)
    centre = hnp.mean(values, axis, keepdims=True, where=where) if mean is None else mean
    own = hnp.mean(values, axis, keepdims=True, where=where)
    spread = hnp.mean(hnp.square(values - own), axis, keepdims=True, where=where) if variance is None else variance
    return cast((values - centre) * hnp.rsqrt(spread + epsilon), dtype)


def layer_norm(x: Any, /, weight: Any = None, bias: Any = None, axis: Axes = -1, epsilon: float = 1e-5) -> Tensor:
    """Layer normalization: :func:`standardize`, then times ``weight`` and plus ``bias``, which broadcast with ``x`` (Ba et al. 2016).

    The float type is that of ``x``. Raises ShapeError where they do not broadcast.

    >>> hg.nn.layer_norm([1.0, 2.0, 3.0], weight=2.0, bias=1.0)
    Tensor([-1.4494712,  1.       ,  3.4494712], dtype=float32)
    """
    values, dtype = floats(x, "layer_norm")
    return cast(_affine(_standardized(values, axis, epsilon), weight, bias), dtype)


def logmeanexp(x: Any, /, axis: Axes = None, where: Any = None, keepdims: bool = False) -> Tensor:
    """Logarithm of the mean of exponentials over ``axis``, or of all, without overflow.

    ``where`` tells which elements count. Types and errors are those of :func:`softmax`.

    >>> hg.nn.logmeanexp([1000.0, 1000.0])
    Tensor(1000., dtype=float32)
    """
    values, dtype = floats(x, "logmeanexp")
    if where is not None:
        counted = hnp.sum(hnp.broadcast_to(where, values.shape), axis, keepdims=keepdims)
        return cast(logsumexp(values, axis, keepdims=keepdims, where=where) - hnp.log(counted.astype(values.dtype)), dtype)
    total = logsumexp(values, axis, keepdims=keepdims)
    return cast(total - hnp.log(hnp.asarray(values.size / max(total.size, 1))), dtype)


def rms_norm(x: Any, /, weight: Any = None, axis: Axes = -1, epsilon: float = 1e-6) -> Tensor:
    """Root mean square normalization: ``x`` over the root of its mean square along ``axis``, times ``weight`` (Zhang and Sennrich 2019).

    ``epsilon`` is added to the mean. The float type is that of ``x``. Raises ShapeError where ``weight`` does not broadcast.

    >>> hg.nn.rms_norm([3.0, 4.0])
    Tensor([0.8485281, 1.1313708], dtype=float32)
    """
    values, dtype = floats(x, "rms_norm")
    return cast(_affine(values * hnp.rsqrt(hnp.mean(values * values, axis=axis, keepdims=True) + epsilon), weight, None), dtype)


def _affine(x: Tensor, weight: Any, bias: Any) -> Tensor:
    scaled = x if weight is None else x * weight
    return scaled if bias is None else scaled + bias
