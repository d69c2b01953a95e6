"""Updates of elements by a function of what they are, ``ufunc.at``: a scatter where there is one, else index after index."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hologram.control.loops import scan
from hologram.dtypes import DType
from hologram.errors import DTypeError, ShapeError
from hologram.ir.symbolic import prod
from hologram.numpy.arguments import array, cast, element_type, wrap
from hologram.numpy.creation import arange
from hologram.numpy.elementwise.functions import where
from hologram.numpy.indexing.read import read
from hologram.numpy.indexing.updates import Updates
from hologram.numpy.shaping.shapes import broadcast_to
from hologram.support.user_lines import located
from hologram.trace.operators import SCALARS
from hologram.trace.tensor import Tensor

_SCATTERS = {"add": "add", "subtract": "subtract", "multiply": "multiply", "maximum": "max", "minimum": "min"}
_KINDS = "buifc"  # each of which holds those before it


def at(f: Callable[..., Tensor], name: str, x: Any, key: Any, values: Any) -> Tensor:
    """See :meth:`~hologram.numpy.ufuncs.ufunc.ufunc.at`."""
    t = wrap(array(x, f"{name}.at"))
    v = values if values is None or type(values) in SCALARS else wrap(array(values, f"{name}.at"))
    d = t._aval()[1]
    if _is_mask(key) and key.shape == t.shape[: key.ndim] and getattr(v, "ndim", 0) <= t.ndim - key.ndim:
        new = _applied(f, name, t, v, d)
        mask = wrap(array(key, f"{name}.at"))
        return where(mask.reshape((*mask.shape, *[1] * (t.ndim - mask.ndim))), new, t)
    new = _applied(f, name, read(t, key), v, d)
    if name in _SCATTERS and d.kind in "iuf":
        update: Callable[[Any], Tensor] = getattr(Updates(t)[key], _SCATTERS[name])
        return update(v)
    if _are_unique(t, key):
        return Updates(t)[key].set(new)
    return _in_turn(f, t, key, None if v is None else broadcast_to(v, new.shape))


def _is_mask(key: Any) -> bool:
    return isinstance(key, (Tensor, np.ndarray)) and key.dtype == np.bool_


def _applied(f: Callable[..., Tensor], name: str, current: Tensor, v: Any, dtype: DType) -> Tensor:
    """``f`` of the elements, in the type ``dtype`` of the array. Raises DTypeError where that loses a kind, ShapeError for more results."""
    new = f(current) if v is None else f(current, v)
    kind = element_type(new.dtype)
    if _KINDS.index(kind.kind) > _KINDS.index(dtype.kind):
        raise located(DTypeError(f"{name}.at: {kind} does not fit {dtype}"))
    if new.shape != current.shape:
        raise located(ShapeError(f"{name}.at: values of shape {list(v.shape)} for a selection of shape {list(current.shape)}"))
    return cast(new, dtype)


def _parts(key: Any) -> tuple[Any, ...]:
    return key if type(key) is tuple else (key,)


def _leading(key: Any, ndim: int) -> int:
    """How many of the first axes an index chooses from; all others are taken whole."""
    simple = all(type(p) in (int, Tensor, list) or isinstance(p, (np.ndarray, np.integer)) for p in _parts(key))
    return len(_parts(key)) if simple and not any(np.asarray(p).dtype == np.bool_ for p in _parts(key) if type(p) is not Tensor) else ndim


def _are_unique(t: Tensor, key: Any) -> bool:
    """Whether an index is known to name no element twice."""
    parts = _parts(key)
    if any(type(p) is Tensor for p in parts):
        return False
    if all(p is None or p is Ellipsis or isinstance(p, (int, slice, np.integer)) for p in parts):
        return True
    shape = t.shape[: _leading(key, t.ndim)]
    chosen = np.arange(int(prod(shape))).reshape(shape)[tuple(np.asarray(p) if type(p) is list else p for p in parts)]
    return np.unique(chosen).size == chosen.size


def _in_turn(f: Callable[..., Tensor], t: Tensor, key: Any, values: Tensor | None) -> Tensor:
    """The update at one index after the other, in C order."""
    shape = t.shape[: _leading(key, t.ndim)]
    rest, count = t.shape[len(shape) :], prod(shape)
    places = Updates(arange(count).reshape(shape))[key].get(mode="fill", fill_value=count)  # the count itself, which is out of range, is dropped
    updates = None if values is None else values.reshape((prod(places.shape), *rest))

    def step(rows: Tensor, update: Any) -> tuple[Tensor, None]:
        i, v = update
        new = f(rows[i]) if v is None else f(rows[i], v)
        return rows.at[i].set(cast(new, t._aval()[1])), None

    result: Tensor = scan(step, t.reshape((count, *rest)), (places.reshape(-1), updates))[0]
    return result.reshape(t.shape)
