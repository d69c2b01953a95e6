"""Movement of realised values by NumPy: views of memory, and programs that compute nothing, run without being compiled.

A view of a realised value is shown to NumPy as NumPy's own view (:func:`view_of`); nothing is copied. An expression whose ops move elements, compare
them, combine such answers, or convert integers has one result whoever computes it, bit for bit, so NumPy runs it op by op, by the ops' references
(:class:`HostMovement`). A kernel that moves large arrays is faster, but has to be compiled: :class:`Spent` says when it is time to.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from hologram.ir.aval import aval
from hologram.ir.leaves import const, leaf
from hologram.ir.node import Node
from hologram.ir.op import TABLE
from hologram.primitives.complex.parts import imag, real
from hologram.primitives.indexing import gather
from hologram.primitives.iota import iota
from hologram.primitives.movement import broadcast, reshape, slice_, transpose
from hologram.primitives.scalar import elementwise as ew
from hologram.support.lru_cache import Recent
from hologram.trace.recorder import Pending, storage_module

MAX_HELD = 8  # times its own bytes that an array which is handed out may keep alive
COMPILE_BYTES = 16 << 20  # that NumPy moves in about the time that a program takes to compile, ...
COMPILE_NODE_BYTES = 1 << 20  # ... and that each of its nodes adds
CALL_BYTES = 1 << 16  # that it moves in about the time that a compiled program takes to be looked up and called
STEP_BYTES = 1 << 12  # that it moves in about the time that one op of its own takes to be called

_VIEWS = {reshape, transpose, broadcast, slice_, real, imag}
_DEPTH = attrgetter("depth")  # of a node is greater than those of its inputs
_MOVEMENT = {op for op in TABLE.values() if op.kind in ("movement", "gather")}
_LOGIC = {ew.and_, ew.or_, ew.xor, ew.not_}
_RUN = _MOVEMENT | _LOGIC | {leaf, const, iota, real, imag, ew.cast, ew.eq, ew.ne, ew.lt, ew.le, ew.gt, ew.ge}


# --- views -----------------------------------------------------------------------------------------------------------


def is_view(node: Any) -> bool:
    """Whether a node may be a view of another, or a value itself: the others have no :func:`view_of` them."""
    op = node.op
    return op is leaf or op is gather or op in _VIEWS


def view_of(node: Pending) -> np.ndarray | None:
    """The elements of a pending node that is a realised value on the host, or a view of one, as a read-only array over its memory; None for others.

    The node keeps the array. No node may settle meanwhile.
    """
    chain: list[Any] = []
    while node.array is None and node.op is not leaf:
        if node.op not in _VIEWS and not _is_known_window(node):
            return None
        chain.append(node)
        node = node.inputs[0]  # type: ignore[assignment]
    array = node.array
    if array is None:
        array = node.array = _leaf_array(node)
    for n in reversed(chain):
        if array is None or (n.op is reshape and not _is_in_place(array, n.shape)):
            return None
        array = n.op.reference(array, *[_leaf_array(x) for x in n.inputs[1:]], *n.attrs)
    if chain and array is not None:
        array.flags.writeable = False
        chain[0].array = array
    return array


def _leaf_array(node: Node) -> np.ndarray | None:
    """The elements of a leaf, over its memory; None for one on a device."""
    storages, storage = storage_module(), node.attrs[0]
    return storages.view(storage) if type(storage) is storages.Storage else None


def _is_known_window(node: Node) -> bool:
    """Whether a node is one window of an array, which begins where realised numbers say."""
    return node.op is gather and all(x.op is leaf and not x.shape and _leaf_array(x) is not None for x in node.inputs[1:])


def _is_in_place(array: np.ndarray, shape: tuple[int, ...]) -> bool:
    """Whether an array takes the shape without being copied: certain ones, not all."""
    return array.flags.c_contiguous or [n for n in array.shape if n != 1] == [n for n in shape if n != 1]


def is_lendable(array: np.ndarray) -> bool:
    """Whether a view may be handed out: what takes arrays of any strides takes it, and it keeps little alive besides what it shows."""
    memory: Any = array
    while isinstance(memory, np.ndarray) and memory.base is not None:
        memory = memory.base
    return MAX_HELD * array.nbytes >= getattr(memory, "nbytes", 0) and all(s >= 0 for s in array.strides)


# --- programs --------------------------------------------------------------------------------------------------------


def is_run(node: Any) -> bool:
    """Whether NumPy gives the bits of a node as any kernel does."""
    op = node.op
    if op is ew.cast:
        return node.inputs[0].dtype.kind in "biu"  # of floats, a NaN's bits are anyone's
    return op in _RUN and (op not in _LOGIC or node.dtype.kind == "b")


def _cost(node: Any) -> int:
    return STEP_BYTES + math.prod(node.shape) * node.dtype.itemsize


def value_of(node: Pending) -> np.ndarray | None:
    """The elements of a pending node that NumPy computes in less time than a program takes to be called; None for others. No node may settle
    meanwhile."""
    order: list[Any] = [node]
    left = CALL_BYTES
    for n in order:  # which grows while it is walked
        if n.array is None and n.op is leaf:
            n.array = _leaf_array(n)
            if n.array is None:
                return None
        elif n.array is None:
            left -= _cost(n)
            if left < 0 or not is_run(n):
                return None
            order += [x for x in n.inputs if x not in order]
    arrays: dict[Any, Any] = {}
    for n in sorted(order, key=_DEPTH):
        arrays[n] = n.op.reference(*[arrays[x] for x in n.inputs], *n.attrs) if n.array is None else n.array
    return np.asarray(arrays[node])


class HostMovement:
    """An expression as NumPy computes it: an executable of the storages of its leaves, all on the host.

    ``order`` are its nodes, for which :func:`is_run` holds, the leaves in the order of their storages; ``roots`` are those that are wanted. Numbers
    that programs take behind the leaves are among the nodes. ``spent`` counts what it moves, where it has run before.
    """

    __slots__ = ("_leaves", "_results", "_steps", "spent")
    remote = False
    reusable: tuple[Any, ...] = ()  # no result takes the memory of an argument

    def __init__(self, order: Sequence[Any], roots: Sequence[Any], spent: Spent | None) -> None:
        self.spent = spent
        leaves = [n for n in order if n.op is leaf]
        computed = sorted((n for n in order if n.op is not leaf), key=_DEPTH)
        number = {n: i for i, n in enumerate([*leaves, *computed])}
        self._leaves = len(leaves)
        self._steps = [(n.op.reference, [number[x] for x in n.inputs], n.attrs) for n in computed]
        self._results = [(number[n], aval(n.dtype, n.shape)) for n in roots]

    def run(self, inputs: Sequence[Any], donated: Any = None, sizes: Any = None) -> list[Any]:
        """Storages of the results. Raises OutOfMemory and MemoryError."""
        storages = storage_module()
        arrays = [storages.view(s) for s in inputs[: self._leaves]]
        for reference, taken, attrs in self._steps:
            arrays.append(reference(*[arrays[i] for i in taken], *attrs))
        return [storages.copied(of, arrays[i]) for i, of in self._results]


class Spent:
    """How much NumPy has moved for programs that are not compiled. A program is worth compiling once that took as long."""

    __slots__ = ("_bytes",)

    def __init__(self, limit: int) -> None:
        self._bytes = Recent(limit)

    def allows(self, key: Any, order: Sequence[Any]) -> bool:
        """Whether NumPy may run the program of this key, of the nodes ``order``, once more; then it is counted."""
        cost = (self._bytes.get(key) or 0) + sum(_cost(n) for n in order if n.op is not leaf)
        if cost > COMPILE_BYTES + COMPILE_NODE_BYTES * len(order):
            return False
        self._bytes.put(key, cost)
        return True

    def has_run(self, key: Any) -> bool:
        """Whether NumPy has run the program of this key."""
        return self._bytes.get(key) is not None

    def exhaust(self, key: Any) -> None:
        """NumPy is not to run the program of this key any more."""
        self._bytes.put(key, math.inf)

    def clear(self) -> None:
        self._bytes.clear()


__all__ = ["HostMovement", "Spent", "is_lendable", "is_run", "is_view", "value_of", "view_of"]
