"""Reductions, scans and sorts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from hologram import numpy as hnp
from hologram.control import associative_scan
from hologram.ir.symbolic import Expr
from hologram.trace.tensor import Tensor
from hologram_torch.aten.registry import implements, rows
from hologram_torch.aten.types import cast, inexact, opmath, tensor_of, type_of

Axes = tuple[int, ...] | None


def axes_of(dim: int | Sequence[int] | None) -> Axes:
    """The axes that a schema's ``dim`` means: all of them for None and for none."""
    if dim is None:
        return None
    return (dim,) if isinstance(dim, int) else tuple(dim) or None


def _flat(x: Tensor) -> Tensor:
    return hnp.reshape(x, (-1,))


def with_axes(x: Tensor) -> Tensor:
    """A Tensor without axes as one of one element: ATen lets axis 0 or -1 of it be reduced."""
    return hnp.reshape(x, (1,)) if x.ndim == 0 else x


def _along(reduce: Callable[..., Tensor], x: Tensor, dim: Any, keepdim: bool) -> Tensor:
    """``reduce`` over ``dim``, for Tensors without axes too."""
    axes = axes_of(dim)
    if x.ndim == 0:
        return hnp.reshape(reduce(with_axes(x), axis=None, keepdims=False), ())
    return reduce(x, axis=axes, keepdims=keepdim)


def _summed_type(dtype: torch.dtype) -> torch.dtype:
    return dtype if dtype.is_floating_point or dtype.is_complex else torch.int64


def _accumulated(reduce: Callable[..., Tensor], x: Tensor, dim: Any, keepdim: bool, dtype: torch.dtype | None) -> Tensor:
    """``reduce`` over ``dim`` in ``dtype``; Hologram's sums of small integers are of 64 bits, whose low bits are those that torch gives."""
    of = dtype or _summed_type(type_of(x))
    return cast(_along(reduce, cast(x, of), dim, keepdim), of)


@implements("sum", "sum.dim_IntList")
def sum(x: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Tensor:
    return _accumulated(hnp.sum, x, dim, keepdim, dtype)


@implements("prod", "prod.dim_int")
def prod(x: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Tensor:
    return _accumulated(hnp.prod, x, dim, keepdim, dtype)


@implements("mean", "mean.dim")
def mean(x: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Tensor:
    return _along(hnp.mean, cast(x, dtype), dim, keepdim)


@implements("any", "any.dim", "any.dims")
def any_(x: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    return cast(_along(hnp.any, cast(x, torch.bool), dim, keepdim), _truth(x))


@implements("all", "all.dim", "all.dims")
def all_(x: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    return cast(_along(hnp.all, cast(x, torch.bool), dim, keepdim), _truth(x))


def _truth(x: Tensor) -> torch.dtype:
    """uint8, torch's old bool, stays what it is."""
    return torch.uint8 if type_of(x) is torch.uint8 else torch.bool


def _extreme(reduce: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def row(x: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
        return _along(reduce, x, dim, keepdim)

    return row


rows({"amax max": hnp.max, "amin min": hnp.min}, _extreme)


def _position(find: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def row(x: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
        if x.ndim == 0:
            return hnp.zeros((), dtype=hnp.int64)
        if dim is not None:
            return find(x, axis=dim, keepdims=keepdim)
        return hnp.reshape(find(_flat(x), axis=0), (1,) * x.ndim if keepdim else ())

    return row


rows({"argmax": hnp.argmax, "argmin": hnp.argmin}, _position)


def _with_position(functions: tuple[Callable[..., Tensor], Callable[..., Tensor]]) -> Callable[..., tuple[Tensor, Tensor]]:
    reduce, find = functions

    def row(x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
        return _along(reduce, x, dim, keepdim), _position(find)(x, dim, keepdim)

    return row


implements("max.dim")(_with_position((hnp.max, hnp.argmax)))
implements("min.dim")(_with_position((hnp.min, hnp.argmin)))


@implements("var.correction")
def var(x: Tensor, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> Tensor:
    return var_mean(x, dim, correction=correction, keepdim=keepdim)[0]


def _degrees_of_freedom(values: Tensor, axes: Sequence[int], correction: Any) -> Any:
    """How many elements there are along the axes, less ``correction``, and not less than 0: a Tensor where an extent is symbolic."""
    count: Any = 1
    for axis in axes:
        count *= values.shape[axis]
    if not isinstance(count, Expr):
        return float(max(count - correction, 0))
    return hnp.maximum(tensor_of(count, type_of(hnp.real(values))) - correction, 0)


@implements("var_mean.correction")
def var_mean(x: Tensor, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    dtype = type_of(x)
    values = with_axes(cast(x, opmath(dtype)))
    axes = tuple(range(values.ndim)) if axes_of(dim) is None else axes_of(dim)
    centre = hnp.mean(values, axis=axes, keepdims=True)
    deviation = hnp.abs(values - centre)
    squares = hnp.sum(deviation * deviation, axis=axes, keepdims=True)
    variance = squares / _degrees_of_freedom(values, axes or (), 1 if correction is None else correction)
    shape = () if x.ndim == 0 else None if keepdim else tuple(n for i, n in enumerate(x.shape) if i not in {a % x.ndim for a in axes or ()})
    if shape is not None:
        centre, variance = hnp.reshape(centre, shape), hnp.reshape(variance, shape)
    real = dtype.to_real() if dtype.is_complex else dtype
    return cast(variance, real), cast(centre, dtype)


@implements("linalg_vector_norm")
def vector_norm(x: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Tensor:
    values = cast(x, dtype)
    of = type_of(values)
    size = hnp.abs(cast(values, opmath(of)))
    ord = float(ord)
    if ord == 2:
        found = hnp.sqrt(_along(hnp.sum, size * size, dim, keepdim))
    elif ord == 1:
        found = _along(hnp.sum, size, dim, keepdim)
    elif ord == 0:
        found = _along(hnp.sum, cast(size != 0, type_of(size)), dim, keepdim)
    elif ord in (float("inf"), -float("inf")):
        found = _along(hnp.max if ord > 0 else hnp.min, size, dim, keepdim)
    else:
        found = hnp.pow(_along(hnp.sum, hnp.pow(size, ord), dim, keepdim), 1.0 / ord)
    return cast(found, of.to_real() if of.is_complex else of)


# --- scans -----------------------------------------------------------------------------------------------------------


def _scan(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def row(x: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Tensor:
        of = dtype or _summed_type(type_of(x))
        return cast(hnp.reshape(function(with_axes(cast(x, of)), axis=dim), x.shape), of)

    return row


rows({"cumsum": hnp.cumsum, "cumprod": hnp.cumprod}, _scan)


@implements("logcumsumexp")
def logcumsumexp(x: Tensor, dim: int) -> Tensor:
    """By pairs, so that no sum leaves the range of the exponentials."""
    return hnp.reshape(associative_scan(hnp.logaddexp, with_axes(cast(x, inexact(type_of(x)))), axis=dim), x.shape)


def _running_extreme(functions: tuple[Callable[..., Tensor], Callable[..., Tensor]]) -> Callable[..., tuple[Tensor, Tensor]]:
    scan, reaches = functions

    def row(x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
        values = with_axes(x)
        best = scan(values, axis=dim)
        here = reaches(values, best)
        if type_of(x).is_floating_point:
            here = here | hnp.isnan(values)
        n = values.shape[dim]
        indices = hnp.reshape(hnp.arange(n), tuple(n if i == dim % values.ndim else 1 for i in range(values.ndim)))
        latest = hnp.cummax(hnp.where(here, indices, 0), axis=dim)
        return hnp.reshape(best, x.shape), hnp.reshape(latest, x.shape)

    return row


implements("cummax")(_running_extreme((hnp.cummax, hnp.greater_equal)))
implements("cummin")(_running_extreme((hnp.cummin, hnp.less_equal)))


# --- sorts -----------------------------------------------------------------------------------------------------------


@implements("sort")
def sort(x: Tensor, dim: int = -1, descending: bool = False) -> tuple[Tensor, Tensor]:
    values = with_axes(x)
    order = hnp.argsort(values, axis=dim, descending=descending)
    return hnp.reshape(hnp.take_along_axis(values, order, axis=dim), x.shape), hnp.reshape(order, x.shape)


@implements("sort.stable")
def sort_stable(x: Tensor, *, stable: bool | None, dim: int = -1, descending: bool = False) -> tuple[Tensor, Tensor]:
    return sort(x, dim, descending)


@implements("topk")
def topk(x: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Tensor, Tensor]:
    values, indices = sort(with_axes(x), dim, largest)
    first = (slice(None),) * (dim % values.ndim) + (slice(k),)
    shape = () if x.ndim == 0 else None
    found = values[first], indices[first]
    return found if shape is None else (hnp.reshape(found[0], shape), hnp.reshape(found[1], shape))


@implements("logsumexp")
def logsumexp(x: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    values = cast(x, inexact(type_of(x)))
    return _along(_complex_logsumexp if type_of(x).is_complex else hnp.logsumexp, values, dim, keepdim)


def _complex_logsumexp(x: Tensor, *, axis: Axes, keepdims: bool) -> Tensor:
    top = hnp.max(hnp.real(x), axis=axis, keepdims=True)
    top = hnp.where(hnp.isfinite(top), top, 0.0)
    found = hnp.log(hnp.sum(hnp.exp(x - top), axis=axis, keepdims=keepdims))
    return found + (top if keepdims else hnp.reshape(top, found.shape))
