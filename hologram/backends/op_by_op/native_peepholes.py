"""What native code knows of peepholes: their steps as records, by which it runs expressions at first sight
(:mod:`hologram.backends.native.code.first_sight`)."""

from __future__ import annotations

import ctypes
import functools
import math
import operator
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hologram.backends.native import storage
from hologram.backends.native.code.expression_records import OpRules, Peephole
from hologram.backends.native.code.expression_records import PeepholeStep as StepRecord
from hologram.backends.native.code.first_sight import MAX_STEPS
from hologram.backends.native.code.peepholes import CONSTANT, INNER
from hologram.backends.native.code.walk import MIXER
from hologram.backends.native.module import METH_FASTCALL, immortal, module
from hologram.backends.native_lang.language import fields_of, size_of
from hologram.backends.op_by_op.native_steps import StepForm, form_of
from hologram.backends.op_by_op.peepholes import KINDS, Operand, PeepholeStep, operands_that_matter
from hologram.ir.aval import aval
from hologram.ir.node import Node
from hologram.ir.op import TABLE, Op
from hologram.settings import field_listeners, listeners
from hologram.support.once import once

MAX_PEEPHOLES = 1024  # after which all are forgotten, and learnt anew
SIGHTS = 1024  # expressions that are remembered to have run at first sight, a power of 2
PS_OF_ELEMENT = 250  # for each unit of an op's cost
MAX_INPUTS = 8  # of an op

_WORD = (1 << 64) - 1


class KnownPeepholes:
    """The peepholes that native code knows. There is one in a process."""

    def __init__(self) -> None:
        m = module()
        self._state = state = m.expressions
        self._table = _table(2 * MAX_PEEPHOLES)
        self._kept: list[Any] = []  # records, and what they refer to
        self._keys: set[bytes] = set()
        self._others: set[bytes] = set()  # keys of nodes whose steps depend on more
        self._known_ops: set[Op] = set()
        self._op_records = _op_records()
        self._sights = _table(SIGHTS)
        state.peepholes, state.peephole_mask = ctypes.addressof(self._table), 2 * MAX_PEEPHOLES - 1
        state.sights, state.sights_mask = ctypes.addressof(self._sights), SIGHTS - 1
        state.run_steps = m.address("hg_steps_graph")
        self._state.peepholes_kept = id(self._kept)
        self._find_keys = m.builtin("hg_peephole_keys", "peephole_keys", METH_FASTCALL)
        listeners.append(self.clear)
        field_listeners["op_by_op"].append(self.clear)

    def clear(self, _: Any = None) -> None:
        """Forgets all peepholes; runs under way finish."""
        self._state.n_peepholes = 0
        for table in (self._table, self._sights):
            ctypes.memset(table, 0, ctypes.sizeof(table))
        self._kept, self._keys, self._others = [], set(), set()
        self._state.peepholes_kept = id(self._kept)

    @property
    def runs(self) -> int:
        """How many expressions have run at first sight."""
        return int(self._state.n_sights)

    def learn(self, roots: Sequence[Any], nodes: Sequence[Any], steps: Callable[[], Mapping[Any, list[PeepholeStep]]]) -> None:
        """Knows the peepholes of pending ``nodes``, which are those of the walk from ``roots``; ``steps`` gives what is known of them."""
        for x in nodes:
            if x.op.kind in KINDS and x.op not in self._known_ops:
                self._know(x.op)
        keys = self._keys_of(roots, nodes)
        new = {x: key for x, key in keys.items() if key not in self._keys and key not in self._others}
        found = steps() if new else {}
        if len(self._keys) + len(new) > MAX_PEEPHOLES or len(self._others) > MAX_PEEPHOLES:
            self.clear()
        for x, key in new.items():
            if x not in found:
                self._others.add(key)
            elif key not in self._keys and (forms := _forms(x, found[x])) is not None:
                self._add(key, found[x], forms)

    def _know(self, op: Op) -> None:
        """Tells native code on which ops of operands the steps of an op depend."""
        self._known_ops.add(op)
        record, masks = self._op_records[op]
        wanted = operands_that_matter(op)
        for i, other in enumerate(TABLE.values()):
            if other in wanted:
                masks[i >> 6] = (masks[i >> 6] | 1 << (i & 63)) & _WORD
        record[list(fields_of(OpRules)).index("is_known")] = 1

    def _keys_of(self, roots: Sequence[Any], nodes: Sequence[Any]) -> dict[Any, bytes]:
        """The keys of the nodes that have some."""
        found = self._find_keys(*roots)
        keys, at = {}, 0
        for x in nodes if found else ():
            (n,) = struct.unpack_from("q", found, at)
            if n:
                keys[x] = found[at + 8 : at + 8 + 8 * n]
            at += 8 + 8 * n
        return keys

    def _add(self, key: bytes, steps: Sequence[PeepholeStep], forms: Sequence[StepForm]) -> None:
        fingerprint = _fingerprint(key)
        constants = {x: storage.of_bits(aval(x.dtype, ()), x.attrs[1]) for s in steps for x in s.operands if isinstance(x, Node)}
        record = _packed(fingerprint, key, steps, forms, constants)
        place = fingerprint & (len(self._table) - 1)
        while self._table[place]:
            place = (place + 1) & (len(self._table) - 1)
        node = steps[-1].part
        self._kept.append((record, node.op, node.attrs, [f.kept for f in forms], constants))
        self._keys.add(key)
        self._table[place] = ctypes.addressof(record)
        self._state.n_peepholes = len(self._keys)


def _table(places: int) -> Any:
    return immortal((ctypes.c_int64 * places)())


def _op_records() -> dict[Op, tuple[Any, Any]]:
    """The record :class:`OpRules` of each op, and its masks; native code finds them by the op."""
    places = 1 << (2 * len(TABLE)).bit_length()
    table, n_masks = _table(places), -(-len(TABLE) // 64)
    found = {}
    for number, op in enumerate(TABLE.values()):
        masks = immortal((ctypes.c_uint64 * n_masks)())
        values = {"op": id(immortal(op)), "number": number, "is_known": 0, "masks": ctypes.addressof(masks)}
        record = immortal((ctypes.c_int64 * (size_of(OpRules) // 8))(*[values[name] for name in fields_of(OpRules)]))
        place = (id(op) * MIXER & _WORD) >> 40 & (places - 1)
        while table[place]:
            place = (place + 1) & (places - 1)
        table[place] = ctypes.addressof(record)
        found[op] = record, masks
    state = module().expressions
    state.op_rules, state.op_rules_mask = ctypes.addressof(table), places - 1
    return found


def _fingerprint(key: bytes) -> int:
    """As native code computes it."""
    words = struct.unpack(f"{len(key) // 8}Q", key)
    found = len(words)
    for word in words:
        found = (found ^ word) * MIXER & _WORD
        found ^= found >> 29
    found |= 1
    return found - (1 << 64) if found >> 63 else found


def _forms(x: Any, steps: Sequence[PeepholeStep]) -> list[StepForm] | None:
    """What native code does for the steps of a node; None where it has nothing for one, or that is for one size."""
    if len(x.inputs) > MAX_INPUTS or len(steps) > MAX_STEPS:
        return None
    forms = [form for s in steps if (form := form_of(s.known, s.part)) is not None and _is_for_all_sizes(form, s.part)]
    return forms if len(forms) == len(steps) else None


def _is_for_all_sizes(form: StepForm, part: Node) -> bool:
    if part.op.kind == "reduce":
        return bool(form.graph) and sorted(_sizes(form)) == [1, _work(part)]
    return bool(form.loop) or (bool(form.graph) and _sizes(form) == ((_work(part),) if part.shape else ()))


def _work(part: Node) -> Any:
    """How many elements a step computes, or reduces."""
    return part.inputs[0].size if part.op.kind == "reduce" else part.size


def _sizes(form: StepForm) -> tuple[int, ...]:
    return form.args[form.result_at + 1 :][: form.n_sizes]


def _size_at(form: StepForm, part: Node) -> int:
    """Where a kernel takes the number of elements of arrays."""
    return form.result_at + 1 + _sizes(form).index(_work(part)) if form.n_sizes else 0


def _packed(fingerprint: int, key: bytes, steps: Sequence[PeepholeStep], forms: Sequence[StepForm], constants: Mapping[Node, Any]) -> Any:
    """The record :class:`Peephole`, followed by its key, the addresses of its constants, its steps, and their arrays."""
    of_step, head = size_of(StepRecord) // 8, size_of(Peephole) // 8
    before = [*struct.unpack(f"{len(key) // 8}q", key), *[s.data for s in constants.values()]]
    operands = [[_operand(x, constants) for x in s.operands] for s in steps]
    arrays = sum([len(o) + len(f.args) + len(f.strides) for o, f in zip(operands, forms, strict=True)])
    first = head + len(before)
    made: Any = (ctypes.c_int64 * (first + of_step * len(steps) + arrays))()
    start, at = ctypes.addressof(made), first + of_step * len(steps)
    words: list[int] = []
    heads: list[int] = []
    for step, form, codes in zip(steps, forms, operands, strict=True):
        values = {
            "graph": form.graph,
            "loop": form.loop,
            "data": form.data,
            "is_array": int(bool(step.part.shape)),
            "size_at": _size_at(form, step.part),
            "result_at": form.result_at,
            "n_operands": len(codes),
            "n_args": len(form.args),
        }
        for name, of in (("operands", codes), ("args", form.args), ("strides", form.strides)):
            values[name] = start + 8 * (at + len(words))
            words += of
        heads += [values[name] for name in fields_of(StepRecord)]
    values = {
        "fingerprint": fingerprint,
        "n_key": len(key) // 8,
        "key": start + 8 * head,
        "constants": start + 8 * (head + len(key) // 8),
        "n_steps": len(steps),
        "steps": start + 8 * first,
        "arena_bytes": max([f.arena_bytes for f in forms]),
        "flags": functools.reduce(operator.or_, [f.flags for f in forms]),
        "cost_ps": math.ceil(PS_OF_ELEMENT * sum([s.part.op.cost for s in steps])),
        "is_reduction": int(steps[-1].part.op.kind == "reduce"),
    }
    made[:] = [*[values[name] for name in fields_of(Peephole)], *before, *heads, *words]
    return made


def _operand(x: Operand, constants: Mapping[Node, Any]) -> int:
    """An operand of a step as native code has it."""
    if isinstance(x, Node):
        return CONSTANT + list(constants).index(x)
    if isinstance(x, int):
        return -1 - x
    return x[0] if len(x) == 1 else INNER + 2 * x[0] + x[1]


@once
def known_peepholes() -> KnownPeepholes:
    """What native code knows of peepholes."""
    return KnownPeepholes()


__all__ = ["KnownPeepholes", "known_peepholes"]
