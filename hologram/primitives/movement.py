"""Movement ops: they rearrange elements and compute nothing. In kernels they become index arithmetic.

Extents may be symbols: sizes are compared as polynomials, and an index is refused only where it is certainly out of range.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hologram.dtypes import DType
from hologram.errors import DTypeError, ShapeError
from hologram.ir.op import Op, Shape, register
from hologram.ir.symbolic import Int, bounds, prod


def _certainly_above(a: Int, b: Int) -> bool:
    if type(a) is type(b) is int:
        return a > b
    low, _ = bounds(a - b)
    return low is not None and low > 0


def _require_rank(op: str, shape: Shape, **attrs: tuple[Any, ...]) -> None:
    for name, value in attrs.items():
        if len(value) != len(shape):
            raise ShapeError(f"{op}: {name} {list(value)} for the {len(shape)} axes of shape {list(shape)}")


def _infer_reshape(inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> tuple[Shape, DType]:
    (x,), (shape,) = inputs, attrs
    if prod(x.shape) != prod(shape):
        raise ShapeError(f"reshape: {list(x.shape)} has {prod(x.shape)} elements, {list(shape)} has {prod(shape)}")
    return shape, x.dtype


def _infer_transpose(inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> tuple[Shape, DType]:
    (x,), (perm,) = inputs, attrs
    if sorted(perm) != list(range(len(x.shape))):
        raise ShapeError(f"transpose: {list(perm)} does not permute the axes of shape {list(x.shape)}")
    return tuple(x.shape[i] for i in perm), x.dtype


def _infer_broadcast(inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> tuple[Shape, DType]:
    (x,), (shape, dims) = inputs, attrs
    _require_rank("broadcast", x.shape, dims=dims)
    if any(a >= b for a, b in zip((-1, *dims), (*dims, len(shape)), strict=True)):
        raise ShapeError(f"broadcast: dims {list(dims)} do not ascend within the {len(shape)} axes of {list(shape)}")
    if any(n != 1 and n != shape[d] for n, d in zip(x.shape, dims, strict=True)):
        raise ShapeError(f"broadcast: {list(x.shape)} does not stretch to {list(shape)} along the axes {list(dims)}")
    return shape, x.dtype


def _broadcast(x: np.ndarray, shape: tuple[int, ...], dims: tuple[int, ...]) -> np.ndarray:
    if not x.ndim:  # as np.broadcast_to, in a fifth of its time
        return np.ndarray(shape, x.dtype, x.tobytes(), 0, (0,) * len(shape))
    placed = [1] * len(shape)
    for n, d in zip(x.shape, dims, strict=True):
        placed[d] = n
    return np.broadcast_to(x.reshape(placed), shape)


def slice_extent(start: Int, stop: Int, step: int) -> Int:
    """How many elements ``start, start + step, …`` has before ``stop``."""
    if step < 0:
        start, stop, step = stop, start, -step
    return (stop - start + (step - 1)) // step


def _infer_slice(inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> tuple[Shape, DType]:
    (x,), (start, stop, step) = inputs, attrs
    if not len(x.shape) == len(start) == len(stop) == len(step):
        _require_rank("slice", x.shape, start=start, stop=stop, step=step)
    extents: list[Int] = []
    for n, a, b, s in zip(x.shape, start, stop, step, strict=True):
        if s == 1 and type(n) is type(a) is type(b) is int and 0 <= a <= b <= n:  # mostly
            extents.append(b - a)
            continue
        if s == 0:
            raise ShapeError("slice: step 0")
        low, high, lowest, highest = (a, b, 0, n) if s > 0 else (b, a, -1, n - 1)
        if _certainly_above(lowest, low) or _certainly_above(low, high) or _certainly_above(high, highest):
            raise ShapeError(f"slice: {a}:{b}:{s} leaves the axis of extent {n} in shape {list(x.shape)}")
        extents.append(slice_extent(a, b, s))
    return tuple(extents), x.dtype


def python_slice(start: int, stop: int, step: int) -> slice:
    """The slice of Python's that chooses ``start, start + step, …`` before ``stop``, where a stop of -1 is before the first element."""
    if slice_extent(start, stop, step) == 0:
        return slice(0, 0)
    return slice(start, None if stop < 0 else stop, step)


def _slice(x: np.ndarray, start: tuple[int, ...], stop: tuple[int, ...], step: tuple[int, ...]) -> np.ndarray:
    return np.asarray(x[tuple(map(python_slice, start, stop, step))])


def _infer_pad(inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> tuple[Shape, DType]:
    (x, fill), (low, high) = inputs, attrs
    _require_rank("pad", x.shape, low=low, high=high)
    if fill.shape or fill.dtype is not x.dtype:
        raise DTypeError(f"pad: the fill value of a {x.dtype} is a scalar {x.dtype}, not {fill.dtype}{list(fill.shape)}")
    if any(_certainly_above(0, p) for p in (*low, *high)):
        raise ShapeError(f"pad: negative widths {list(low)}, {list(high)}")
    return tuple(a + n + b for a, n, b in zip(low, x.shape, high, strict=True)), x.dtype


def _pad(x: np.ndarray, fill: np.ndarray, low: tuple[int, ...], high: tuple[int, ...]) -> np.ndarray:
    out = np.full([a + n + b for a, n, b in zip(low, x.shape, high, strict=True)], fill, x.dtype)
    out[tuple(slice(a, a + n) for a, n in zip(low, x.shape, strict=True))] = x
    return out


def _infer_concatenate(inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> tuple[Shape, DType]:
    (axis,) = attrs
    if not inputs:
        raise ShapeError("concatenate: no arrays")
    first = inputs[0]
    if not 0 <= axis < len(first.shape):
        raise ShapeError(f"concatenate: axis {axis} of shape {list(first.shape)}")
    total: Int = 0
    before, behind = first.shape[:axis], first.shape[axis + 1 :]
    for x in inputs:
        if x.dtype is not first.dtype:
            raise DTypeError(f"concatenate: element types {first.dtype} and {x.dtype} differ")
        if len(x.shape) != len(first.shape) or x.shape[:axis] != before or x.shape[axis + 1 :] != behind:
            raise ShapeError(f"concatenate: shapes {list(first.shape)} and {list(x.shape)} differ beside axis {axis}")
        total = total + x.shape[axis]
    return (*before, total, *behind), first.dtype


reshape = register(
    Op("reshape", "movement", 1, _infer_reshape, lambda x, shape: x.reshape(shape), attrs=("shape",), sizes=("shape",), kinds="biufc", cost=0)
)
transpose = register(Op("transpose", "movement", 1, _infer_transpose, lambda x, perm: x.transpose(perm), attrs=("perm",), kinds="biufc", cost=0))
broadcast = register(Op("broadcast", "movement", 1, _infer_broadcast, _broadcast, attrs=("shape", "dims"), sizes=("shape",), kinds="biufc", cost=0))
slice_ = register(Op("slice", "movement", 1, _infer_slice, _slice, attrs=("start", "stop", "step"), sizes=("start", "stop"), kinds="biufc", cost=0))
pad = register(Op("pad", "movement", 2, _infer_pad, _pad, attrs=("low", "high"), sizes=("low", "high"), kinds="biufc"))
concatenate = register(
    Op("concatenate", "movement", None, _infer_concatenate, lambda *xs: np.concatenate(xs[:-1], axis=xs[-1]), attrs=("axis",), kinds="biufc")
)
