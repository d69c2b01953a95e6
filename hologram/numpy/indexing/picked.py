"""Reading an element, or a small part, of a value that is at hand, or moving all of a small one: a copy, for which nothing is recorded and no program
runs."""

from __future__ import annotations

from typing import Any

import numpy as np

from hologram.dtypes import DType
from hologram.ir.aval import recent_aval
from hologram.numpy.indexing.views import ELEMENT, share
from hologram.trace import recorder
from hologram.trace.host_movement import is_lendable
from hologram.trace.lazy import shown
from hologram.trace.native_operators import make_reading_native
from hologram.trace.operators import own_leaf
from hologram.trace.recorder import Pending, storage_module
from hologram.trace.tensor import Tensor

READS = 32  # of elements and small parts by Python, until native code reads them

_vectors: dict[DType, dict[int, Any]] = {}  # for each type the Avals of small vectors that slices have chosen, by their extents
_reads = 0
MAX_COPIED_BYTES = 1 << 16  # of a part that is copied at once where reading it would copy it in any case


def picked(x: Tensor, key: Any) -> Tensor | None:
    """``x[key]`` by integers, slices, None and Ellipsis, of a value on the host or a view of one; None for other keys, for parts that are better
    views than copies, where a trace or a transform is under way, and for what indexing raises errors for."""
    node: Any = x._node
    if node is None and not recorder.traces_in_progress:
        node = own_leaf(x)
    if type(node) is not Pending or x._weak:
        return None
    array = node.array
    if array is None:
        array = shown(x)
        if array is None:
            return None
    storages, dtype = storage_module(), node.dtype
    vectors = _vectors.get(dtype) or _vectors.setdefault(dtype, {})
    found = storages.pick(array, key, None if type(key) is slice else recent_aval(dtype, ()), vectors)
    if found is False:
        plain = _with_python_integers(key)
        return None if plain is key else picked(x, plain)
    if type(found) is int:
        if found <= storages.SMALL_BYTES // dtype.itemsize:
            vectors[found] = recent_aval(dtype, (found,))
    elif found is not True:
        return _part(x, found, key, node) if type(key) is slice else _element(found)
    try:
        part = array[key]
    except (IndexError, ValueError):
        return None
    if type(part) is not np.ndarray:  # a scalar of no axes, by an empty key
        return _element(storages.copy_of(part))
    if part.nbytes > storages.SMALL_BYTES and (part.nbytes > MAX_COPIED_BYTES or is_lendable(part)):
        return None
    return _part(x, storages.small_copy(recent_aval(dtype, part.shape), part), key, node)


def _part(x: Tensor, storage: Any, key: Any, node: Any) -> Tensor:
    """The Tensor of a part of ``x`` that ``key`` chooses, whose elements were copied."""
    _count_read()
    t = Tensor()
    t._node, t._storage, t._weak = None, storage, False
    share(x, t, (key, node.shape, node.dtype))
    return t


def _with_python_integers(key: Any) -> Any:
    """``key`` with Python's integers for NumPy's; the key itself where it has none."""
    if type(key) is tuple:
        return tuple([int(p) if isinstance(p, np.integer) else p for p in key]) if any(isinstance(p, np.integer) for p in key) else key
    return int(key) if isinstance(key, np.integer) else key


def small_array(x: Tensor) -> np.ndarray | None:
    """The elements of a small value that is at hand, which are moved sooner than it is recorded that they move; None for other Tensors, and where a
    trace or a transform is under way."""
    if recorder.traces_in_progress or recorder.levels_under_way():
        return None
    node: Any = x._node or own_leaf(x)
    if type(node) is not Pending or x._weak:
        return None
    array = shown(x) if node.array is None else node.array
    return array if array is not None and array.nbytes <= storage_module().SMALL_BYTES else None


def copied(array: np.ndarray, dtype: DType) -> Tensor:
    """A Tensor of its own with the elements of a small array of this type."""
    t = Tensor()
    t._node, t._storage, t._weak = None, storage_module().small_copy(recent_aval(dtype, array.shape), array), False
    return t


def _element(storage: Any) -> Tensor:
    """The Tensor of an element that integers pick."""
    _count_read()
    t = Tensor()
    t._node, t._storage, t._weak, t._alias = None, storage, False, ELEMENT
    return t


def _count_read() -> None:
    """Has native code read elements from now on, when many have been read."""
    global _reads
    _reads += 1
    if _reads == READS:
        make_reading_native(ELEMENT, share, _vectors)
