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
from typing import Any, NamedTuple

from hologram.backends.native.calls import flags
from hologram.backends.native.code import walk as code
from hologram.backends.native.code.expression_records import Donor, Expression, Root
from hologram.backends.native.code.object_layout import UnknownLayout, slot_offset
from hologram.backends.native.module import METH_FASTCALL, Record, check_size, immortal, module, why_not_native
from hologram.backends.native.native_storage import size_class
from hologram.backends.native.number_code import NumberCodeBuilder, NumberCodeError
from hologram.backends.native.pool import the_pool
from hologram.backends.native_lang.language import fields_of, size_of
from hologram.dtypes import ALL, DType, float32, float64
from hologram.ir.aval import Aval, aval, recent_aval
from hologram.ir.leaves import const, leaf
from hologram.ir.op import MULTI_RESULT, TABLE
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
        self._kept: dict[Any, Any] = {}  # records and what they refer to, by the fingerprints of expressions, and of structures the program's token
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
        self._structure = m.builtin("hg_expression_structure", "structure", METH_FASTCALL)
        self._prepare_structures()
        listeners.append(self.clear)
        atexit.register(self.clear)  # no program goes while this module does

    def _prepare_structures(self) -> None:
        """Tells native code what structures are made of."""
        state = self._state
        state.aval_kind, state.aval_of = slot_offset(Aval, "kind"), id(immortal(recent_aval))
        state.dtype_name = slot_offset(DType, "name")
        ops = [w for op, mask in size_masks().items() for w in (id(op), mask)]
        state.op_sizes, state.n_op_sizes = ctypes.addressof(immortal((ctypes.c_int64 * len(ops))(*ops))), len(ops) // 2
        names = [id(d.name) for d in ALL if d.kind in "biu"]
        state.integer_types, state.n_integer_types = ctypes.addressof(immortal((ctypes.c_int64 * len(names))(*names))), len(names)

    def __len__(self) -> int:
        return len(self._kept)

    def clear(self, _: Any = None) -> None:
        """Forgets all expressions; runs under way finish."""
        self._state.known = self._state.structures = 0
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
            **_values(fingerprint, executable, executable.arena_bytes),
            "needs_donor": int(executable.long),
            "left": runs,
            "n_steps": executable.n_steps,
            "steps": executable.steps,
        }
        arrays = {"key": key, "constants": [s.data for s in executable.constants], "roots": results}
        record = _packed(values, arrays, [(*donor, *found) for donor, found in zip(donors, uses, strict=True)])
        kept = [x.attrs[0].aval if x.op is leaf else x.attrs for x in nodes], executable.computed, executable.constants
        if executable.n_steps:
            executable.record = record
        self._insert(fingerprint, fingerprint, record, (kept, executable if executable.n_steps else weakref.ref(executable, self.clear)))
        return True

    def add_structure(self, nodes: Sequence[Any], asked: int, roots: Sequence[Any], executable: Any, of: NumbersAndConditions) -> bool:
        """As :meth:`add`, for all expressions of one structure whose numbers the program ``executable`` takes: ``of`` has those of ``nodes``, the
        program's :class:`NumberConditions`, values of the symbols up to which it is to be found, and what names it."""
        numbers = Numbers(*of)
        if not _is_served(executable, False, numbers.at_most) or settings.debug >= debug.TIMINGS or settings.nans or settings.profile:
            return False
        found = self._structure(*nodes[:asked])
        if found is None or len(roots) != len(executable.donors):
            return False
        fingerprint, *words = struct.unpack(f"{len(found) // 8}q", found)
        key, given = words[: len(words) - len(numbers.now)], tuple(words[len(words) - len(numbers.now) :])
        if given != tuple(map(_as_integer, numbers.now)) or any(x.op.kind in (*MULTI_RESULT, "control") for x in nodes):
            return False
        try:
            code_of_numbers, arena_bytes = _number_code(executable, numbers)
        except NumberCodeError:
            return False
        used = sum(x.op is leaf or x.op is const for x in nodes) + len(executable.constants) + 2 * len(roots) + 2
        if used + (0 if executable.sizes is None else executable.sizes.integers) > code.MAX_SLOTS:
            return False
        check_size(arena_bytes)
        number = {x: i for i, x in enumerate(nodes)}
        results = [w for r in roots for w in _words_of_root({"node": number[r], "dtype_name": id(r.dtype.name)})]
        values = {**_values(fingerprint, executable, arena_bytes), "left": -1, "numbers": ctypes.addressof(code_of_numbers)}
        record = _packed(values, {"key": key, "constants": [s.data for s in executable.constants], "roots": results}, ())
        kept = [x.attrs[0].aval.kind if x.op is leaf else x.attrs for x in nodes], code_of_numbers, executable.constants
        self._insert((fingerprint, numbers.token), fingerprint, record, (kept, weakref.ref(executable, self.clear)))
        self._state.structures += 1
        return True

    def _address(self, known_by: Any) -> int:
        """The record of an expression that is known."""
        return ctypes.addressof(self._kept[known_by][0])

    def _insert(self, known_by: Any, fingerprint: int, record: Any, kept: Any) -> None:
        before = self._address(known_by) if known_by in self._kept else 0
        if not before and len(self._kept) == MAX_EXPRESSIONS:
            self.clear()
        place = fingerprint & (_PLACES - 1)
        while self._table[place] not in (0, before):
            place = (place + 1) & (_PLACES - 1)
        self._kept[known_by] = everything = record, kept
        Record(Expression, ctypes.addressof(record)).kept = id(everything)
        self._table[place] = ctypes.addressof(record)
        self._state.known = len(self._kept)


NumbersAndConditions = tuple[Sequence[Any], Any, Mapping[str, int], object]  # the fields of Numbers


class Numbers(NamedTuple):
    """The numbers ``now`` of an expression, and what holds of all that its program takes: :class:`NumberConditions` of lazily recorded programs.

    ``at_most`` are values of the symbols up to which the program is to be found; ``token`` names the program.
    """

    now: Sequence[Any]
    conditions: Any
    at_most: Mapping[str, int]
    token: object


def _is_served(executable: Any, may_donate: bool, at_most: Mapping[str, int] | None = None) -> bool:
    """Whether native code runs this program: one for the CPU whose results are all computed, in short or in memory of arguments, and whose sizes are
    known, or ``at_most`` these."""
    if getattr(executable, "address", None) is None or not executable.computes_all_results:
        return False
    if at_most is None or executable.sizes is None:
        return executable.computed is not None and (may_donate or not executable.long)
    return not executable.is_long_up_to(at_most)


def _values(fingerprint: int, executable: Any, arena_bytes: int) -> dict[str, int]:
    """Fields of a record :class:`Expression`."""
    return {
        "fingerprint": fingerprint,
        "program": id(executable),
        "graph": executable.address,
        "arena_bytes": arena_bytes,
        "flags": flags(False, executable.parallel),
    }


def _as_integer(number: Any) -> int:
    """A number as native code has it: the bits of an integer constant are an integer of 64 bits."""
    if type(number) is not tuple:
        return int(number)
    return int.from_bytes(number[1].ljust(8, b"\0"), "little", signed=True)


def _number_code(executable: Any, numbers: Numbers) -> tuple[Any, int]:
    """The record by which native code takes the numbers, and bytes of the arena. Raises NumberCodeError."""
    rules = numbers.conditions
    build = NumberCodeBuilder(len(numbers.now), rules.symbols)
    register = build.register
    for slot, value in rules.fixed.items():
        build.require_equal(slot, register(_as_integer(value)))
    for i, j in rules.equal:
        build.require_equal(i, j)
    for name, slot in rules.symbols.items():
        build.require_at_least(slot, register(2))
        build.require_at_least(register(numbers.at_most[name]), slot)
    for i, e in rules.defined:
        build.require_equal(i, register(e))
    for e, (least, most) in rules.ranges.items():
        build.require_at_least(register(e), register(least))
        build.require_at_least(register(most), register(e))
    call = executable.call_up_to(numbers.at_most)
    for e, room in call.needed:
        build.require_at_least(register(room), register(e))
    integers = [*[build.symbol(s) for s in call.symbols], *[register(n) for n in call.offsets]]
    return build.record(rules.constants, integers), call.arena_bytes


def size_masks() -> dict[Any, int]:
    """For each op that has sizes among its attributes a bit for each of these."""
    return {op: sum(1 << i for i, name in enumerate(op.attrs + op.optional) if name in op.sizes) for op in TABLE.values() if op.sizes}


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
    return _words_of_root({"node": node, "aval": id(of), "nbytes": of.nbytes, "size_class": size_class(of.nbytes), "dtype_name": id(of.dtype.name)})


def _words_of_root(values: Mapping[str, int]) -> tuple[int, ...]:
    return tuple([values.get(name, 0) for name in fields_of(Root)])


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
        values[name], values["n_" + name] = start + 8 * at, len(words) // (size_of(Root) // 8 if name == "roots" else 1)
        made[at : at + len(words)] = words
        at += len(words)
    values["donors"], values["n_donors"], uses = start + 8 * at, len(donors), at + of_donor * len(donors)
    for root, number, node, words in donors:
        fields = {"root": root, "leaf": number, "node": node, "uses": start + 8 * uses, "n_uses": len(words)}
        made[at : at + of_donor] = [fields[name] for name in fields_of(Donor)]
        made[uses : uses + len(words)] = words
        at, uses = at + of_donor, uses + len(words)
    made[:head] = [values.get(name, 0) for name in fields_of(Expression)]
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
