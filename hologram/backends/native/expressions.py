"""Lazily recorded expressions that native code knows: those that have run before, each with its program.

An expression is found by its exact key (:mod:`.code.expressions`), which is made of addresses: of op definitions, types and attributes. What they
belong to is kept alive here for as long as the expression is known. All are forgotten when a setting changes, when a program goes, and when there are
too many.
"""

from __future__ import annotations

import atexit
import ctypes
import struct
import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hologram.backends.native.calls import flags
from hologram.backends.native.code import expressions as code
from hologram.backends.native.code.object_layout import UnknownLayout, slot_offset
from hologram.backends.native.code.records import Donor, Expression, Root
from hologram.backends.native.module import METH_FASTCALL, Record, check_size, immortal, module, why_not_native
from hologram.backends.native.native_storage import size_class
from hologram.backends.native.pool import the_pool
from hologram.backends.native_lang.language import fields_of, size_of
from hologram.dtypes import float32, float64
from hologram.ir.aval import Aval, aval
from hologram.ir.leaves import const, leaf
from hologram.ir.op import MULTI_RESULT
from hologram.settings import listeners, settings
from hologram.support import debug

MAX_EXPRESSIONS = 1024
_PLACES = 2 * MAX_EXPRESSIONS

_NODE_SLOTS = ("op", "inputs", "attrs", "shape", "dtype", "seen", "depth", "array")


class KnownExpressions:
    """The expressions that native code knows. There is one in a process.

    ``realise(*tensors)`` is a builtin function: it computes Tensors whose expression is known and gives True; else it does nothing and gives False.
    Its caller holds the lock under which nodes settle.
    """

    def __init__(self, node_class: type, operands: dict[Any, Any], by_value: Iterable[float], max_scalars: int) -> None:
        the_pool()
        m = module()
        self._state = state = m.expressions
        self._table: Any = immortal((ctypes.c_uint64 * _PLACES)())
        self._kept: dict[int, Any] = {}  # records and what they refer to, by the fingerprints of expressions
        state.table, state.mask = ctypes.addressof(self._table), _PLACES - 1
        for name in ("visited", "visits"):
            setattr(state, name, ctypes.addressof(immortal((ctypes.c_uint64 * code.VISITED)())))
        for name in _NODE_SLOTS:
            setattr(state, f"node_{name}", slot_offset(node_class, name))
        state.pending_type, state.leaf, state.const = id(immortal(node_class)), id(immortal(leaf)), id(immortal(const))
        state.max_scalars = min(max_scalars, code.SCALARS)
        state.operands, state.nothing, state.zero = id(immortal(operands)), id(immortal(())), id(immortal(0))
        numbers, floats = sorted(by_value), [(id(d.name), id(immortal(aval(d, ()))), d.itemsize) for d in (float32, float64)]
        state.by_value, state.n_by_value = ctypes.addressof(immortal((ctypes.c_double * len(numbers))(*numbers))), len(numbers)
        words = [w for row in floats for w in row]
        state.float_types, state.n_float_types = ctypes.addressof(immortal((ctypes.c_int64 * len(words))(*words))), len(floats)
        self.realise = m.builtin("hg_expression_realise", "realise", METH_FASTCALL)
        self._key = m.builtin("hg_expression_key", "key", METH_FASTCALL)
        listeners.append(self.clear)
        atexit.register(self.clear)  # no program goes while this module does

    def __len__(self) -> int:
        return len(self._kept)

    def clear(self, _: Any = None) -> None:
        """Forgets all expressions; runs under way finish."""
        self._state.known = 0
        ctypes.memset(self._table, 0, ctypes.sizeof(self._table))
        self._kept = {}

    def add(
        self, nodes: Sequence[Any], asked: int, roots: Sequence[Any], executable: Any, donors: Sequence[tuple[int, int]] = (), runs: int = -1
    ) -> bool:
        """Knows the expression of the first ``asked`` of ``nodes`` from now on; False where native code cannot serve it.

        ``nodes`` are the nodes of its walk in order, which are not yet settled; ``roots`` those that become values by ``executable``, in the order of
        its results. ``donors``: numbers of results, and of leaves in whose memory they may be put, of the same type. After ``runs`` Python is to
        serve it again, where that is not negative.
        """
        donors = [] if settings.checked else donors
        if not _is_served(executable, bool(donors)) or settings.debug >= debug.TIMINGS or settings.nans or settings.profile:
            return False
        found = self._key(*nodes[:asked])
        if found is None:
            return False
        fingerprint, *key = struct.unpack(f"{len(found) // 8}q", found)
        if fingerprint in self._kept and Record(Expression, self._address(fingerprint)).left != 0:  # the same one, or one in a million of millions
            return True
        number = {x: i for i, x in enumerate(nodes)}
        if len(roots) != len(executable.computed) or not _is_key_of(key, nodes, number):
            return False
        slots = sum(x.op is leaf or x.op is const for x in nodes) + len(executable.constants) + 2 * len(roots)
        if slots > code.MAX_SLOTS:
            return False
        check_size(executable.arena_bytes)
        results = [w for r, of in zip(roots, executable.computed, strict=True) for w in _root_words(number[r], of)]
        uses = [_uses(nodes, roots, leaf_number) for _, leaf_number in donors]
        values = {
            "fingerprint": fingerprint,
            "n_key": len(key),
            "program": id(executable),
            "kept": 0,
            "graph": executable.address,
            "arena_bytes": executable.arena_bytes,
            "flags": flags(False, executable.parallel),
            "needs_donor": int(executable.long),
            "left": runs,
            "n_steps": executable.n_steps,
            "steps": executable.steps,
            "n_constants": len(executable.constants),
            "n_roots": len(roots),
            "n_donors": len(donors),
        }
        arrays = {"key": key, "constants": [s.data for s in executable.constants], "roots": results}
        record = _packed(values, arrays, [(*donor, *found) for donor, found in zip(donors, uses, strict=True)])
        kept = [x.attrs[0].aval if x.op is leaf else x.attrs for x in nodes], executable.computed, executable.constants
        if executable.n_steps:
            executable.record = record
        self._insert(fingerprint, record, (kept, executable if executable.n_steps else weakref.ref(executable, self.clear)))
        return True

    def _address(self, fingerprint: int) -> int:
        """The record of an expression that is known."""
        return ctypes.addressof(self._kept[fingerprint][0])

    def _insert(self, fingerprint: int, record: Any, kept: Any) -> None:
        before = self._address(fingerprint) if fingerprint in self._kept else 0
        if not before and len(self._kept) == MAX_EXPRESSIONS:
            self.clear()
        place = fingerprint & (_PLACES - 1)
        while self._table[place] not in (0, before):
            place = (place + 1) & (_PLACES - 1)
        self._kept[fingerprint] = everything = record, kept
        Record(Expression, ctypes.addressof(record)).kept = id(everything)
        self._table[place] = ctypes.addressof(record)
        self._state.known = len(self._kept)


def _is_served(executable: Any, may_donate: bool) -> bool:
    """Whether native code runs this program: one for the CPU and known sizes whose results are all computed, in short or in memory of arguments."""
    return (
        getattr(executable, "address", None) is not None
        and executable.computed is not None
        and (may_donate or not executable.long)
        and executable.computes_all_results
    )


def _is_key_of(key: Sequence[int], nodes: Sequence[Any], number: Mapping[Any, int]) -> bool:
    """Whether native code has walked these nodes in this order. Not where one gives several results: who holds the others is no part of the key."""
    at = 1
    for x in nodes:
        expected = [number[y] for y in x.inputs]
        if x.op.kind in MULTI_RESULT or key[at] & ~1 != id(x.op) or list(key[at + 2 : at + 2 + len(expected)]) != expected:
            return False
        at += 2 + len(expected)
    return at == len(key)


def _root_words(node: int, of: Aval) -> tuple[int, ...]:
    """The words of a record :class:`Root`."""
    check_size(of.nbytes)
    values = {"node": node, "aval": id(of), "nbytes": of.nbytes, "size_class": size_class(of.nbytes), "dtype_name": id(of.dtype.name)}
    return tuple([values[name] for name in fields_of(Root)])


def _uses(nodes: Sequence[Any], roots: Sequence[Any], leaf_number: int) -> tuple[int, list[int]]:
    """The place of a leaf, and words of a record :class:`Donor`: how often nodes of an expression refer to it, and to those that need it, below the
    roots."""
    first = [i for i, x in enumerate(nodes) if x.op is leaf][leaf_number]
    needed = [first]
    words: list[int] = []
    for i in needed:  # which grows while it is walked
        users = [j for j, x in enumerate(nodes) for y in x.inputs if y is nodes[i]]
        words += (i, len(users))
        needed += [j for j in dict.fromkeys(users) if nodes[j] not in roots and j not in needed]
    return first, words


def _packed(values: dict[str, int], arrays: dict[str, list[int]], donors: Sequence[tuple[int, int, int, list[int]]]) -> Any:
    """A record :class:`Expression`, followed by its arrays of words."""
    head, of_donor = size_of(Expression) // 8, size_of(Donor) // 8
    sizes = [*map(len, arrays.values()), of_donor * len(donors), *[len(words) for *_, words in donors]]
    made: Any = (ctypes.c_int64 * (head + sum(sizes)))()
    start = ctypes.addressof(made)
    at = head
    for name, words in arrays.items():
        values[name] = start + 8 * at
        made[at : at + len(words)] = words
        at += len(words)
    values["donors"], uses = start + 8 * at, at + of_donor * len(donors)
    for root, number, node, words in donors:
        fields = {"root": root, "leaf": number, "node": node, "uses": start + 8 * uses, "n_uses": len(words)}
        made[at : at + of_donor] = [fields[name] for name in fields_of(Donor)]
        made[uses : uses + len(words)] = words
        at, uses = at + of_donor, uses + len(words)
    made[:head] = [values[name] for name in fields_of(Expression)]
    return made


def known_expressions(node_class: type, operands: dict[Any, Any], by_value: Iterable[float], max_scalars: int) -> KnownExpressions | None:
    """What native code is to know of pending nodes; None where calls go through Python.

    ``node_class`` is that of pending nodes; ``operands`` holds the Storages of constants that are arguments, by their attributes, and None for
    others; ``by_value`` are numbers that programs have by value, as they have what is not finite. At most ``max_scalars`` constants are arguments.
    """
    if why_not_native() is not None:
        return None
    try:
        return KnownExpressions(node_class, operands, by_value, max_scalars)
    except UnknownLayout:
        return None
