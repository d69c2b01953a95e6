"""Scalarization: every element that a group's values are made of becomes a scalar instruction, each once.

Movement turns into index arithmetic.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hologram import dtypes
from hologram.dtypes import DType
from hologram.graph.canonical.integer_ranges import Range
from hologram.graph.fusion.groups import Group, is_scan_total, reduction_axes
from hologram.graph.kernel.ir import Acc, Buffer, Value
from hologram.graph.legalize.paged_scans import is_reversed, unpaged
from hologram.graph.memory.overwritten import Unread
from hologram.graph.schedule.index_split import Box
from hologram.ir.index_maps import Guard, Index, is_certainly_inside, linear, propagate_index, propagate_through_gather, variables
from hologram.ir.instruction import Ins
from hologram.ir.node import Node, const_attrs
from hologram.ir.op import TABLE, Op
from hologram.ir.symbolic import Int, counter, is_static, prod, var
from hologram.primitives.reductions import REDUCED_BY, identity_bits


def _known_index(value: Value) -> Int | None:
    """The index expression that a value stands for; None for one that is loaded or computed."""
    if isinstance(value, Ins) and value.op == "const" and value.dtype.is_integer:
        return int(np.frombuffer(value.attrs[1], value.dtype.np)[0])
    return value.attrs[0] if isinstance(value, Ins) and value.op == "index" and value.dtype is dtypes.int64 else None


def _is_clamped(value: Value, extent: Int) -> bool:
    """Whether a value is ``min(max(x, low), high)`` with ``0 <= low`` and ``high < extent``, in either order."""
    found: dict[str, int] = {}
    while isinstance(value, Ins) and value.opname in ("min", "max") and value.opname not in found:
        known = [_known_index(a) for a in value.args]
        end = next((k for k in (0, 1) if isinstance(known[k], int)), None)
        if end is None:
            return False
        found[value.opname], value = known[end], value.args[1 - end]  # type: ignore[assignment]
    low, high = found.get("max", -1), found.get("min")
    return low >= 0 and high is not None and is_certainly_inside(low, extent) and is_certainly_inside(high, extent)


def _unchanged(op: Op, args: tuple[Value, ...]) -> Value | None:
    """The operand that an op gives as it is, since another is the op's identity or the condition a constant; else None. Graphs have none of these,
    but parts of an iteration space do, where pads read what they fill with."""
    if op.name == "select":
        condition = _bits(args[0])
        return None if condition is None else args[1] if condition != b"\0" else args[2]
    reduced = REDUCED_BY.get(op)
    if reduced is not None and args[0].dtype.kind in reduced.kinds:
        for x, other in (args, args[::-1]):
            if (bits := _bits(x)) is not None and bits == identity_bits(reduced, x.dtype):
                return other
    return None


def _bits(value: Value) -> bytes | None:
    """Those of a constant."""
    return value.attrs[1] if isinstance(value, Ins) and value.op == "const" else None


class PendingStore:
    """A value that goes to memory, where ``mask`` holds (None: always)."""

    __slots__ = ("buffer", "index", "value", "mask")

    def __init__(self, buffer: Buffer, index: Int, value: Value, mask: Value | None) -> None:
        self.buffer, self.index, self.value, self.mask = buffer, index, value, mask


class ScalarProgram:
    """The instructions of a group, or of boxes of it of one shape, in dependency order, each element once."""

    def __init__(self, group: Group, materialized: set[Node], boxes: Sequence[Box | None] = (None,), whole: ScalarProgram | None = None) -> None:
        self.group, self.materialized, self.boxes = group, materialized, boxes
        self.box = boxes[0]  # the one at hand
        self.shape = group.shape if self.box is None else self.box.shape
        self.order: list[Value] = []
        self.made: dict[Any, Value] = {}
        self.defined: dict[Node, Value] = {}
        self.accumulates: dict[Acc, tuple[Value, ...]] = {}
        self.buffers: dict[Node, Buffer] = {} if whole is None else whole.buffers
        self.numbers: Iterator[int] = itertools.count(1) if whole is None else whole.numbers  # of the names in a kernel, whatever its boxes
        self.unread: Mapping[Node, Unread] = {} if whole is None else whole.unread  # what is not worth writing
        self.taken = 0  # how many values index expressions go through

    def _index_of(self, node: Node) -> Index:
        index = self.group.index_of(node) if self.box is None else self.box.elements()
        assert index is not None
        return index

    def buffer(self, node: Node, role: str) -> Buffer:
        b = self.buffers.get(node)
        if b is None:
            b = self.buffers[node] = Buffer(f"b{len(self.buffers)}", node.dtype, role, node.size)
        return b

    def store(self, node: Node) -> PendingStore:
        """How a value is written: only where its element exists, if it is the joined pages of a scan."""
        index = self._index_of(node)
        mask = None
        if unpaged(node) is not None:
            *rows, page, i = index
            at, n = page * self.group.shape[-1] + i, node.shape[-1]
            index = (*rows, n - 1 - at if is_reversed(node) else at)
            mask = self._mask(((at, n),)) if n != prod(self.group.shape[-2:]) else None
        return PendingStore(self.buffer(node, "out"), linear(index, node.shape), self.defined[node], mask)

    def define_nodes(self, stored: set[Node]) -> list[PendingStore]:
        """Computes the group's values; how those in ``stored`` are written."""
        writes: dict[Node, list[PendingStore]] = {r: [] for r in self.group.nodes if r in stored}
        for box in self.boxes:
            self.box, self.defined = box, {}
            for node in self.group.nodes:
                self.define(node)
            for node, found in writes.items():
                if not self._is_unread(node):
                    found.append(self.store(node))
        return list(itertools.chain(*writes.values()))

    def _is_unread(self, node: Node) -> bool:
        """Whether nobody reads the elements of the box at hand."""
        unread = self.unread.get(node)
        if unread is None or self.box is None or self.group.shape != node.shape:
            return False
        count = self.box.shape[unread.axis]
        return isinstance(count, int) and unread.holds(self.box.start[unread.axis], count, self.box.step[unread.axis])

    def define(self, node: Node) -> None:
        axes = reduction_axes(node)
        if axes is None:
            index = self._index_of(node)
            if node.op.kind in ("scatter", "runs"):  # what the updates are then written over
                self.defined[node] = self.element(node.inputs[0], index, ())
                return
            self.defined[node] = self.element(unpaged(node) or node, index, ())
            return
        x = self.element(node.inputs[0], variables(self.group.shape), ())
        if node.op.kind == "scan":
            self.defined[node] = self._scan(node, x)
            return
        acc = Acc(node.op, x.dtype, node.dtype)
        args: tuple[Value, ...] = (x,)
        if node.op.monoid is None:
            args = (x, self.emit("index", (), (variables(self.group.shape)[axes[0]],), dtypes.int64))
        self._accumulate(acc, args)
        self.defined[node] = self._unless_empty(node, acc)

    def _unless_empty(self, node: Node, acc: Acc) -> Value:
        """Over no elements a sum is +0.0, while its accumulator stays at the identity, -0.0; only symbolic extents come to that."""
        op, d = node.op, node.dtype
        n = prod(self.group.shape[a] for a in self.group.axes or ())
        if is_static(n) or op.monoid is None or op.empty is None:
            return acc
        empty, identity = const_attrs(op.empty(d), d), const_attrs(op.identity(d), d)
        if empty == identity:
            return acc
        return self._select(self.emit("inside", (), (0, n), dtypes.bool_), acc, self.emit("const", (), empty, d))

    def _accumulate(self, acc: Acc, args: tuple[Value, ...]) -> None:
        self.accumulates[acc] = args
        self.order.append(acc)

    def _scan(self, node: Node, x: Value) -> Value:
        """A scan's running value; two scans of one input share it, be it only the last value that is wanted."""
        key = ("scan", node.op, x)
        got = self.made.get(key)
        if got is None:
            acc = Acc(node.op, x.dtype, x.dtype)
            running = self.emit("scan", (x,), (acc,), x.dtype)
            self._accumulate(acc, (running,))
            got = self.made[key] = running
        assert isinstance(got, Ins)
        return got.attrs[0] if is_scan_total(node) else got

    def element(self, node: Node, index: Index, guard: Guard) -> Value:
        """The value of one element, by an explicit stack: a chain's length is no recursion."""
        stack = [(node, index, guard)]
        while stack:
            top = stack[-1]
            if top in self.made:
                stack.pop()
                continue
            made = self._try(*top)
            if isinstance(made, list):
                stack.extend(made)
            else:
                self.made[top] = made
                stack.pop()
        return self.made[(node, index, guard)]

    def _try(self, node: Node, index: Index, guard: Guard) -> Value | list[tuple[Node, Index, Guard]]:
        """The element's value, or the elements that must be made first."""
        if node in self.defined:
            return self.defined[node]
        if node.op.name == "const":
            return self.emit("const", (), node.attrs, node.dtype)
        if node.op.name == "iota":
            return self.emit("index", (), (index[node.attrs[1]],), node.dtype)
        if node.op.kind == "leaf" or (node in self.materialized and node not in self.group.members):
            mask = self._mask(guard) if node.shape else None
            return self.emit("load", () if mask is None else (mask,), (self.buffer(node, "in"), linear(index, node.shape)), node.dtype)
        if node.op.kind == "gather":
            return self._gather(node, index, guard)
        wanted = propagate_index(node, index, guard)
        missing = [w for w in wanted if w not in self.made]
        if missing:
            return missing[::-1]
        args = tuple(self.made[w] for w in wanted)
        if node.op.kind == "elementwise":
            return self._elementwise(node, args)
        if node.op.name == "pad" and len(args) == 2:
            mask = self._mask(wanted[0][2][len(guard) :])
            assert mask is not None
            return self._select(mask, args[0], args[1])
        if node.op.name == "concatenate":
            out = args[-1]
            for w, a in zip(wanted[-2::-1], args[-2::-1], strict=True):
                mask = self._mask(w[2][-1:])
                assert mask is not None
                out = self._select(mask, a, out)
            return out
        return args[0]

    def _gather(self, node: Node, index: Index, guard: Guard) -> Value | list[tuple[Node, Index, Guard]]:
        x, *starts = node.inputs
        where, then = propagate_through_gather(node, index)
        first = [(s, where, guard) for s in starts]
        missing = [f for f in first if f not in self.made]
        if missing:
            return missing[::-1]
        axes, sizes, _ = node.attrs
        at = [self._start(self.made[f], x.shape[a] - size + 1) for f, a, size in zip(first, axes, sizes, strict=True)]
        element = (x, then(tuple(at)), guard)
        return self.made[element] if element in self.made else [element]

    def _start(self, value: Value, extent: Int) -> Int:
        """A value that is an index from 0 up to ``extent`` - 1, for index expressions."""
        known = _known_index(value)
        if known is not None and is_certainly_inside(known, extent):
            return known
        return counter(self._name(self._cast(value, dtypes.int64), extent), extent)

    def checked_start(self, starts: Node, index: Index, extent: Int, known_range: Range | None = None) -> tuple[Int, Value | None]:
        """The start of a window for index expressions, and whether it is one of the ``extent`` at which a window fits: None where it certainly is.
        ``known_range``: in which all ``starts`` are."""
        value = self.element(starts, index, ())
        known = _known_index(value)
        if known is not None and is_certainly_inside(known, extent):
            return known, None
        if _is_clamped(value, extent) or (known_range is not None and all(is_certainly_inside(e, extent) for e in known_range)):
            return self._start(value, extent), None
        name = self._name(self._cast(value, dtypes.int64), None)
        unchecked = var(name, None, None)  # as it comes, any number of 64 bits
        return counter(name, extent), self.emit("inside", (), (unchecked, extent), dtypes.bool_)

    def _name(self, value: Value, extent: Int | None) -> str:
        """What index expressions call a value: an index from 0 up to ``extent`` - 1, or any integer (None). Each extent has a name of its own."""
        key = ("named", value, extent)
        if key not in self.made:
            if not isinstance(value, Ins):
                value = self.emit(TABLE["cast"], (value,), ("int64",), dtypes.int64)  # only instructions have names
            if value.name:  # it has one of another extent: each has an instruction of its own, so that no name is lost
                value = Ins("index", (), (var(value.name, None, None),), dtypes.int64)
                self.order.append(value)
            self.taken += 1
            value.name, value.extent = self.fresh_name(), extent
            self.made[key] = value
        made = self.made[key]
        assert isinstance(made, Ins)
        return made.name

    def fresh_name(self) -> str:
        """A name that no other value of the kernel has."""
        return f"taken{next(self.numbers)}"

    def _mask(self, guard: Guard) -> Value | None:
        out: Value | None = None
        for e, size in guard:
            one = self.emit("inside", (), (e, size), dtypes.bool_)
            out = one if out is None else self.emit(TABLE["and"], (out, one), (), dtypes.bool_)
        return out

    def _select(self, mask: Value, a: Value, b: Value) -> Value:
        return self.computed(TABLE["select"], (mask, a, b), (), a.dtype)

    def _elementwise(self, node: Node, args: tuple[Value, ...]) -> Value:
        return self.computed(node.op, args, node.attrs, node.dtype)

    def computed(self, op: Op, args: tuple[Value, ...], attrs: tuple[Any, ...], dtype: DType) -> Value:
        """An elementwise op; narrow floats compute in float32 and round the result."""
        same = _unchanged(op, args)
        if same is not None:
            return same
        if op.name in ("cast", "select", "bitcast") or not any(a.dtype.is_narrow_float for a in args):
            return self.emit(op, args, attrs, dtype)
        wide = tuple(self._cast(a, dtypes.compute_type(a.dtype)) for a in args)
        return self._cast(self.emit(op, wide, attrs, dtypes.compute_type(dtype)), dtype)

    def _cast(self, v: Value, d: DType) -> Value:
        return v if v.dtype is d else self.emit(TABLE["cast"], (v,), (d.name,), d)

    def emit(self, op: Any, args: tuple[Value, ...], attrs: tuple[Any, ...], d: DType) -> Ins:
        key = (op, args, attrs, d)
        got = self.made.get(key)
        if got is None:
            got = self.made[key] = Ins(op, args, attrs, d)
            self.order.append(got)
        assert isinstance(got, Ins)
        return got
