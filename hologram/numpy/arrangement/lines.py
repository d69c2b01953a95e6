"""Functions of vectors, applied along an axis, and of arrays, applied over several axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hologram.errors import ShapeError, TracedValueError
from hologram.ir.symbolic import prod
from hologram.numpy.arguments import array, as_tensor, axis_of, wrap
from hologram.numpy.shaping.joining import stack
from hologram.numpy.shaping.shapes import expand_dims, moveaxis
from hologram.support.user_lines import located
from hologram.trace.checks import as_function
from hologram.trace.recorder import current, transforming
from hologram.trace.tensor import Tensor
from hologram.transform.stacking import vmap

__all__ = ["apply_along_axis", "apply_over_axes"]


def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **options: Any) -> Tensor:
    """Applies a function to every vector along ``axis``, all at once by :func:`hologram.vmap`; one by one where it reads values.

    ``func1d(vector, *args, **options)`` gives an array; its axes stand where ``axis`` was. Raises ArgumentError for what is no function, and what
    ``vmap`` raises; a function that reads values is a TracedValueError while tracing.

    >>> hnp.apply_along_axis(lambda v: v - v.mean(), 1, [[1.0, 3.0], [2.0, 6.0]])
    Tensor([[-1.,  1.],
            [-2.,  2.]], dtype=float32)
    """
    as_function(func1d, "apply_along_axis")
    t = wrap(array(arr, "apply_along_axis"))
    a = axis_of(axis, t.ndim, "apply_along_axis")
    rows = moveaxis(t, a, -1)
    others = rows.shape[:-1]
    lines = rows.reshape((prod(others), rows.shape[-1]))
    try:
        found = vmap(lambda row: as_tensor(func1d(row, *args, **options), "apply_along_axis"))(lines)
    except TracedValueError:
        if current() is not None or transforming() or not lines.shape[0]:
            raise
        found = stack([wrap(array(func1d(line, *args, **options), "apply_along_axis")) for line in lines])
    made = found.shape[1:]
    apart = found.reshape((*others, *made))
    return moveaxis(apart, tuple(range(len(others), len(others) + len(made))), tuple(range(a, a + len(made))))


def apply_over_axes(func: Callable[[Any, int], Any], a: Any, axes: Any) -> Tensor:
    """Applies ``func(a, axis)`` over one of ``axes`` after the other; an axis that it removes comes back with extent 1.

    Raises ArgumentError for what is no function, ShapeError where a result has another number of axes.

    >>> hnp.apply_over_axes(hnp.sum, [[1, 2], [3, 4]], [0, 1])
    Tensor([[10]], dtype=int64)
    """
    as_function(func, "apply_over_axes")
    t = wrap(array(a, "apply_over_axes"))
    for axis in axes if isinstance(axes, (tuple, list)) else (axes,):
        i = axis_of(axis, t.ndim, "apply_over_axes")
        result = wrap(array(func(t, i), "apply_over_axes"))
        if result.ndim == t.ndim - 1:
            result = expand_dims(result, i)
        if result.ndim != t.ndim:
            raise located(ShapeError(f"apply_over_axes: the function gives {result.ndim} axes for {t.ndim}"))
        t = result
    return t
