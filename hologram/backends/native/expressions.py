"""Lazily recorded expressions that native code knows: those that have run before, each with its program.

An expression is found by its exact key (:mod:`.code.expressions`), which is made of addresses: of op definitions, types and attributes. What they belong
to is kept alive here for as long as the expression is known. All are forgotten when a setting changes, when a program goes, and when there are too many.
"""

from __future__ import annotations

import ctypes
import struct
import weakref
from collections.abc import Sequence
from typing import Any

from hologram.backends.native.calls import flags
from hologram.backends.native.code import expressions as code
from hologram.backends.native.code.object_layout import UnknownLayout, slot_offset
from hologram.backends.native.code.records import Expression, Root
from hologram.backends.native.module import METH_O, check_size, immortal, module, why_not_native
from hologram.backends.native.native_storage import size_class
from hologram.backends.native.pool import the_pool
from hologram.backends.native_lang.language import fields_of, size_of
from hologram.ir.aval import Aval
from hologram.ir.leaves import const, leaf
from hologram.settings import listeners, settings
from hologram.support import debug

MAX_EXPRESSIONS = 1024
_PLACES = 2 * MAX_EXPRESSIONS

_NODE_SLOTS = ("op", "inputs", "attrs", "shape", "dtype", "seen", "depth", "array")


class KnownExpressions:
    """The expressions that native code knows. There is one in a process.

    ``realise(tensor)`` is a builtin function: it computes a Tensor whose expression is known and gives True; else it does nothing and gives False. Its
    caller holds the lock under which nodes settle.
    """

    def __init__(self, node_class: type, operands: dict[Any, Any]) -> None:
        the_pool()
        m = module()
        self._state = state = m.expressions
        self._table: Any = immortal((ctypes.c_uint64 * _PLACES)())
        self._kept: list[Any] = []
        state.table, state.mask = ctypes.addressof(self._table), _PLACES - 1
        for name in ("visited", "visits"):
            setattr(state, name, ctypes.addressof(immortal((ctypes.c_uint64 * code.VISITED)())))
        for name in _NODE_SLOTS:
            setattr(state, f"node_{name}", slot_offset(node_class, name))
        state.pending_type, state.leaf, state.const = id(immortal(node_class)), id(immortal(leaf)), id(immortal(const))
        state.operands, state.nothing, state.zero = id(immortal(operands)), id(immortal(())), id(immortal(0))
        self.realise = m.builtin("hg_expression_realise", "realise", METH_O)
        self._key = m.builtin("hg_expression_key", "key", METH_O)
        listeners.append(self.clear)

    def __len__(self) -> int:
        return len(self._kept)

    def clear(self, _: Any = None) -> None:
        """Forgets all expressions; runs under way finish."""
        self._state.known = 0
        ctypes.memset(self._table, 0, ctypes.sizeof(self._table))
        self._kept = []

    def add(self, nodes: Sequence[Any], roots: Sequence[Any], executable: Any) -> bool:
        """Knows the expression of ``nodes[0]`` from now on; False where native code cannot serve it.

        ``nodes`` are the nodes of its walk in order, which are not yet settled; ``roots`` those that become values by ``executable``, in the order of its
        results.
        """
        if not _is_served(executable) or settings.debug >= debug.TIMINGS or settings.nans or settings.profile:
            return False
        found = self._key(nodes[0])
        if found is None:
            return False
        fingerprint, *key = struct.unpack(f"{len(found) // 8}q", found)
        number = {x: i for i, x in enumerate(nodes)}
        if [number[r] for r in roots][0] != 0 or len(roots) != len(executable.computed):
            return False
        slots = sum(x.op is leaf or x.op is const for x in nodes) + len(executable.constants) + 2 * len(roots)
        if slots > code.MAX_SLOTS:
            return False
        check_size(executable.arena_bytes)
        results = [w for r, of in zip(roots, executable.computed, strict=True) for w in _root_words(number[r], of)]
        record = _packed(
            {"fingerprint": fingerprint, "program": id(executable), "graph": executable.address, "arena_bytes": executable.arena_bytes}
            | {"flags": flags(False, executable.parallel), "n_key": len(key), "n_roots": len(roots), "n_constants": len(executable.constants)},
            {"key": key, "constants": [s.data for s in executable.constants], "roots": results},
        )
        kept = [x.attrs[0].aval if x.op is leaf else x.attrs for x in nodes], executable.computed, executable.constants
        self._insert(fingerprint, record, (kept, weakref.ref(executable, self.clear)))
        return True

    def _insert(self, fingerprint: int, record: Any, kept: Any) -> None:
        if len(self._kept) == MAX_EXPRESSIONS:
            self.clear()
        place = fingerprint & (_PLACES - 1)
        while self._table[place]:
            place = (place + 1) & (_PLACES - 1)
        self._kept.append((record, kept))
        self._table[place] = ctypes.addressof(record)
        self._state.known = len(self._kept)


def _is_served(executable: Any) -> bool:
    """Whether native code runs this program: one for the CPU and known sizes, which is short, and computes all of its results in memory of their own."""
    return (
        getattr(executable, "address", None) is not None
        and executable.computed is not None
        and not executable.long
        and executable.computes_all_results
    )


def _root_words(node: int, of: Aval) -> tuple[int, ...]:
    """The words of a record :class:`Root`."""
    check_size(of.nbytes)
    values = {"node": node, "aval": id(of), "nbytes": of.nbytes, "size_class": size_class(of.nbytes), "dtype_name": id(of.dtype.name)}
    return tuple([values[name] for name in fields_of(Root)])


def _packed(values: dict[str, int], arrays: dict[str, list[int]]) -> Any:
    """A record :class:`Expression`, followed by its arrays of words."""
    head = size_of(Expression) // 8
    made = (ctypes.c_int64 * (head + sum(map(len, arrays.values()))))()
    at = head
    for name, words in arrays.items():
        values[name] = ctypes.addressof(made) + 8 * at
        made[at : at + len(words)] = words
        at += len(words)
    made[:head] = [values[name] for name in fields_of(Expression)]
    return made


def known_expressions(node_class: type, operands: dict[Any, Any]) -> KnownExpressions | None:
    """What native code is to know of pending nodes; None where calls go through Python.

    ``node_class`` is that of pending nodes; ``operands`` holds the Storages of constants that are arguments, by their attributes, and None for others.
    """
    if why_not_native() is not None:
        return None
    try:
        return KnownExpressions(node_class, operands)
    except UnknownLayout:
        return None
