"""Functions applied along axes, where conditions hold, and over broadcast arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from hologram import dtypes
from hologram.errors import ArgumentError, ShapeError, TracedValueError
from hologram.ir.symbolic import prod
from hologram.numpy.arguments import array, array_as, axis_of, wrap
from hologram.numpy.elementwise import where
from hologram.numpy.joining import stack
from hologram.numpy.shapes import broadcast_arrays, expand_dims, moveaxis
from hologram.support.user_lines import located
from hologram.trace import tree
from hologram.trace.checks import as_function, items
from hologram.trace.recorder import cast_node, current, transforming
from hologram.trace.tensor import Tensor
from hologram.transform.stacking import vmap

__all__ = ["apply_along_axis", "apply_over_axes", "piecewise", "vectorize"]


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
        found = vmap(lambda row: func1d(row, *args, **options))(lines)
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


def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **options: Any) -> Tensor:
    """Evaluates a piecewise function: by element the last of ``funclist`` whose condition holds, else the one more at its end, else 0.

    Functions are called with all of ``x``, ``args`` and ``options``, and may be numbers. The result has shape and type of ``x``. Raises
    ArgumentError where the numbers of functions and conditions do not fit.

    >>> x = hnp.asarray([-2.0, 0.5, 3.0])
    >>> hnp.piecewise(x, [x < 0, x > 1], [-1.0, lambda v: v * v, 0.0])
    Tensor([-1.,  0.,  9.], dtype=float32)
    """
    t = wrap(array(x, "piecewise"))
    conditions = condlist if isinstance(condlist, (tuple, list)) and (not condlist or not isinstance(condlist[0], (bool, int))) else [condlist]
    masks = [wrap(cast_node(array(c, "piecewise"), dtypes.bool_)) for c in conditions]
    funclist = items(funclist, "piecewise", "functions")
    extra = len(funclist) - len(masks)
    if extra not in (0, 1):
        raise located(ArgumentError(f"piecewise: {len(funclist)} functions for {len(masks)} conditions"))
    dtype = t._aval()[1]

    def values(f: Any) -> Tensor:
        return wrap(array_as(f(t, *args, **options) if callable(f) else f, dtype, "piecewise"))

    result = broadcast_arrays(values(funclist[-1] if extra else 0), t)[0]
    for mask, f in zip(masks, funclist, strict=False):
        result = where(mask, values(f), result)
    return result


def vectorize(pyfunc: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a function of scalars one of arrays, which broadcast: one :func:`hologram.vmap` over all elements.

    >>> hnp.vectorize(lambda a, b: hnp.where(a > b, a - b, a + b))([1, 2, 3], 2)
    Tensor([3, 4, 1], dtype=int64)
    """

    @wraps(pyfunc)
    def function(*args: Any) -> Any:
        if not args:
            return pyfunc()
        arrays = broadcast_arrays(*args)
        shape = arrays[0].shape
        if not shape:
            return pyfunc(*arrays)
        found = vmap(pyfunc)(*(x.reshape(-1) for x in arrays))
        return tree.map(lambda r: r.reshape((*shape, *r.shape[1:])), found)

    return function
