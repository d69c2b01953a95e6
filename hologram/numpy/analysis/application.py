"""Functions applied along axes, where conditions hold, and over broadcast arguments."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from functools import wraps
from typing import Any

import numpy as np

from hologram import dtypes
from hologram.errors import ArgumentError, ShapeError
from hologram.ir.symbolic import prod
from hologram.numpy.arguments import array, array_as, as_tensor, wrap
from hologram.numpy.elementwise.functions import where
from hologram.numpy.shaping.shapes import broadcast_arrays, broadcast_to
from hologram.numpy.ufuncs.ufunc import ufunc
from hologram.support.user_lines import located
from hologram.trace import tree
from hologram.trace.checks import as_function, integer, items
from hologram.trace.operators import broadcast_shapes
from hologram.trace.recorder import cast_node
from hologram.trace.tensor import Tensor
from hologram.transform.stacking import vmap

__all__ = ["frompyfunc", "piecewise", "vectorize"]


def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **options: Any) -> Tensor:
    """Evaluates a piecewise function: by element the last of ``funclist`` whose condition holds, else the one more at its end, else 0.

    Functions are called with all of ``x``, ``args`` and ``options``, and may be numbers. The result has shape and type of ``x``. Raises
    ArgumentError where the numbers of functions and conditions do not fit, ShapeError for a condition that does not broadcast to ``x``.

    >>> x = hnp.asarray([-2.0, 0.5, 3.0])
    >>> hnp.piecewise(x, [x < 0, x > 1], [-1.0, lambda v: v * v, 0.0])
    Tensor([-1.,  0.,  9.], dtype=float32)
    """
    t = wrap(array(x, "piecewise"))
    masks = [wrap(cast_node(array(c, "piecewise"), dtypes.bool_)) for c in _conditions(condlist, t.ndim)]
    for mask in masks:
        if broadcast_shapes("piecewise", (mask.shape, t.shape)) != t.shape:
            raise located(ShapeError(f"piecewise: a condition of shape {list(mask.shape)} for an array of shape {list(t.shape)}"))
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


def _conditions(condlist: Any, ndim: int) -> Sequence[Any]:
    """The conditions for an array of ``ndim`` axes: those of a list, or of an array of more axes; what is one condition stands for a list of it."""
    if isinstance(condlist, (tuple, list)):
        return [condlist] if ndim and condlist and isinstance(condlist[0], (bool, int, np.generic)) else condlist
    axes = getattr(condlist, "ndim", 0)
    return [condlist[i] for i in range(len(condlist))] if axes > ndim else [condlist]


def vectorize(pyfunc: Callable[..., Any], *, excluded: Collection[Any] = (), signature: str | None = None) -> Callable[..., Any]:
    """Makes a function of scalars one of arrays, which broadcast: one :func:`hologram.vmap` over all elements.

    With a ``signature`` such as ``"(n,k),(k)->(n)"`` it is a function of arrays with these last axes, and the axes before them broadcast; letters are
    extents, which must agree. Arguments that are ``excluded``, by position or name, are handed on as they are. Raises ArgumentError for a signature
    that does not parse, and for another number of arguments, ShapeError for fewer axes and for extents that do not agree.

    >>> hnp.vectorize(lambda a, b: hnp.where(a > b, a - b, a + b))([1, 2, 3], 2)
    Tensor([3, 4, 1], dtype=int64)
    >>> hnp.vectorize(hnp.dot, signature="(n),(n)->()")([[1, 2], [3, 4]], [1, 10])
    Tensor([21, 43], dtype=int64)
    """
    as_function(pyfunc, "vectorize")
    excluded = items(excluded, "vectorize", "positions and names")
    inputs, outputs = (None, None) if signature is None else _parsed(signature)

    @wraps(pyfunc)
    def function(*args: Any, **options: Any) -> Any:
        chosen = [i for i in range(len(args)) if i not in excluded]
        if not set(options) <= set(excluded) and options:
            raise located(ArgumentError(f"vectorize: keywords are excluded arguments, not {', '.join(sorted(set(options) - set(excluded)))}"))

        def of_chosen(*some: Any) -> Any:
            places = dict(zip(chosen, some, strict=True))
            return pyfunc(*[places.get(i, x) for i, x in enumerate(args)], **options)

        if not chosen:
            return pyfunc(*args, **options)
        return _over_leading_axes(of_chosen, [as_tensor(args[i], "vectorize") for i in chosen], inputs, outputs)

    return function


def frompyfunc(func: Callable[..., Any], /, nin: int, nout: int, *, identity: Any = None) -> ufunc:
    """A function of ``nin`` scalars with ``nout`` results as a ufunc: of arrays, which broadcast, with methods such as ``reduce`` and ``outer``.

    It is mapped over all elements by :func:`hologram.vmap`. Folds go from the first element to the last, or in any order where there is an
    ``identity``, the result of a fold of nothing. Raises ArgumentError for what is no function and for numbers below 1.

    >>> spread = hnp.frompyfunc(lambda a, b: hnp.maximum(a, b) - hnp.minimum(a, b), 2, 1)
    >>> spread([1, 5], 3), spread.reduce(hnp.asarray([1, 5, 2]))
    (Tensor([2, 2], dtype=int64), Tensor(2, dtype=int64))
    """
    as_function(func, "frompyfunc")
    takes, gives = integer(nin, "frompyfunc", "nin"), integer(nout, "frompyfunc", "nout")
    if takes < 1 or gives < 1:
        raise located(ArgumentError(f"frompyfunc: a function of {takes} arguments and {gives} results is none"))
    mapped = vectorize(func)

    def function(*args: Any) -> Any:
        if len(args) != takes:
            raise located(ArgumentError(f"{function.__name__} takes {takes} arguments, not {len(args)}"))
        return mapped(*args)

    function.__name__, function.__doc__ = f"{getattr(func, '__name__', 'func')} (vectorized)", getattr(func, "__doc__", None)
    return ufunc(function, gives, identity, nin=takes)


def _parsed(signature: str) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """The names of the last axes of arguments and of results."""
    if not isinstance(signature, str):
        raise located(ArgumentError(f"vectorize: a signature is a text, not {type(signature).__name__}"))
    text = signature.replace(" ", "")
    group = r"\((?:\w+(?:,\w+)*)?\)"
    if not re.fullmatch(rf"(?:{group}(?:,{group})*)?->{group}(?:,{group})*", text):
        raise located(ArgumentError(f"vectorize: a signature is such as '(n,k),(k)->(n)', not {signature!r}"))
    sides = [[tuple(filter(None, names[1:-1].split(","))) for names in re.findall(group, side)] for side in text.split("->")]
    return sides[0], sides[1]


def _over_leading_axes(f: Callable[..., Any], arrays: list[Tensor], inputs: Any, outputs: Any) -> Any:
    if inputs is not None and len(inputs) != len(arrays):
        raise located(ArgumentError(f"vectorize: {len(arrays)} arguments for a signature of {len(inputs)}"))
    cores = inputs or [()] * len(arrays)
    extents: dict[str, Any] = {}
    for x, names in zip(arrays, cores, strict=True):
        _check_core("an argument", x.shape, names, extents)
    leading = broadcast_shapes("vectorize", [x.shape[: x.ndim - len(names)] for x, names in zip(arrays, cores, strict=True)])
    count = prod(leading)
    rows = [
        broadcast_to(x, (*leading, *x.shape[x.ndim - len(c) :])).reshape((count, *x.shape[x.ndim - len(c) :]))
        for x, c in zip(arrays, cores, strict=True)
    ]
    found = vmap(f)(*rows) if leading else f(*arrays)
    skipped = 1 if leading else 0
    if outputs is not None:
        results = list(found) if isinstance(found, (tuple, list)) else [found]
        if len(results) != len(outputs):
            raise located(ArgumentError(f"vectorize: {len(results)} results for a signature of {len(outputs)}"))
        for r, names in zip(results, outputs, strict=True):
            _check_core("a result", as_tensor(r, "vectorize").shape[skipped:], names, extents, exactly=True)
    return tree.map(lambda r: r.reshape((*leading, *r.shape[1:])), found) if leading else found


def _check_core(what: str, shape: Any, names: tuple[str, ...], extents: dict[str, Any], exactly: bool = False) -> None:
    """Raises ShapeError where a shape does not end in the axes ``names``; notes their extents. A number is its own extent."""
    core = shape[len(shape) - len(names) :] if len(names) <= len(shape) else None
    if core is None or (exactly and len(shape) != len(names)):
        raise located(ShapeError(f"vectorize: {what} of shape {list(shape)} for the axes ({','.join(names)})"))
    for name, n in zip(names, core, strict=True):
        if extents.setdefault(name, int(name) if name.isdigit() else n) != n:
            raise located(ShapeError(f"vectorize: the extent {name} is {extents[name]} and, in {what} of shape {list(shape)}, {n}"))
