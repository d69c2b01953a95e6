"""A group of fused roots becomes one kernel.

Three steps. *Values*: every element that a root is made of becomes a scalar instruction, with movement ops turned into index
arithmetic. *Loops*: axes that every access walks alike merge into one, and the merged axes become a parallel loop and an inner
loop of lanes. *Stages*: what depends on a reduction's result runs in a later pass over the row; dear values that a later pass
needs again are kept in the thread's scratch pages, cheap ones are computed again.
"""

from __future__ import annotations

from typing import Any

from hologram import dtypes
from hologram.dtypes import DType
from hologram.graph.access import Guard, Index, linear, requests, take_index, variables
from hologram.graph.fuse import Group, is_last, reduction_axes, unpaged
from hologram.graph.kernel_ir import Acc, Accumulate, Buffer, Ins, Kernel, Loop, Prefetch, Store, Value
from hologram.graph.loops import PACK_BYTES, Nest, Tile, choose_nest
from hologram.primitives.op import TABLE
from hologram.symbolic import Expr, Int, atoms, is_static, prod, split_linear, substitute, var
from hologram.trace.node import Node, const_attrs

KEEP_COST = 8  # an instruction this dear is kept in scratch rather than computed in two passes
SCRATCH_BYTES = 24 * 12288
LARGE_BYTES = 8 * 2**20  # inputs from this size on are not in the second-level cache
LONG_ROW_BYTES = 2048


class Write:
    """A value that goes to memory, where ``mask`` holds (None: always)."""

    __slots__ = ("buffer", "index", "value", "mask")

    def __init__(self, buffer: Buffer, index: Int, value: Value, mask: Value | None) -> None:
        self.buffer, self.index, self.value, self.mask = buffer, index, value, mask


class Lowered:
    """A kernel, the nodes behind its parameters, and which outputs may stand where an input stood."""

    __slots__ = ("kernel", "bindings", "in_place", "group")

    def __init__(self, kernel: Kernel, bindings: list[Node], group: Group) -> None:
        self.kernel, self.bindings, self.group = kernel, bindings, group
        self.in_place: list[tuple[int, int]] = []


def lower(group: Group, roots: set[Node], stored: set[Node], precision: str = "exact", tile: Tile | None = None) -> Lowered:
    """The kernel of ``group``; those of its roots that are in ``stored`` are written to memory, roots of other groups are read from it."""
    values = Values(group, roots)
    for root in group.roots:
        values.define(root)
    stores = [values.store(r) for r in group.roots if r in stored]
    plain = tile if not values.taken and not any(isinstance(v, Ins) and v.op == "scan" for v in values.order) else None
    loads = [v.attrs[1] for v in values.order if isinstance(v, Ins) and v.op == "load"]
    itemsize = max((v.dtype.itemsize for v in values.accumulates), default=4)
    nest = choose_nest(group.shape, group.axes, _expressions(values, stores), loads, plain, itemsize)
    return _Emission(group, values, stores, nest, precision).lowered()


def _expressions(values: Values, stores: list[Write]) -> list[Int]:
    out = [w.index for w in stores]
    for ins in values.order:
        if isinstance(ins, Ins):
            if ins.op == "load":
                out.append(ins.attrs[1])
            elif ins.op in ("index", "inside"):
                out.append(ins.attrs[0])
    return out


# --- values ----------------------------------------------------------------------------------------------------------


class Values:
    """The instructions of a group, in dependency order, each element once."""

    def __init__(self, group: Group, roots: set[Node]) -> None:
        self.group, self.roots = group, roots
        self.order: list[Value] = []
        self.made: dict[Any, Value] = {}
        self.defined: dict[Node, Value] = {}
        self.accumulates: dict[Acc, tuple[Value, ...]] = {}
        self.buffers: dict[Node, Buffer] = {}
        self.taken = 0

    def buffer(self, node: Node, role: str) -> Buffer:
        b = self.buffers.get(node)
        if b is None:
            b = self.buffers[node] = Buffer(f"b{len(self.buffers)}", node.dtype, role, node.size)
        return b

    def store(self, root: Node) -> Write:
        """How a root is written: only where its element exists, if it is a scan's pages put side by side."""
        index = self.group.index_of(root)
        assert index is not None
        mask = None
        if unpaged(root) is not None:
            *rows, page, i = index
            at = page * self.group.shape[-1] + i
            index = (*rows, at)
            mask = self._mask(((at, root.shape[-1]),)) if root.shape[-1] != prod(self.group.shape[-2:]) else None
        return Write(self.buffer(root, "out"), linear(index, root.shape), self.defined[root], mask)

    def define(self, root: Node) -> None:
        axes = reduction_axes(root)
        if axes is None:
            index = self.group.index_of(root)
            assert index is not None
            if root.op.kind == "scatter":  # what the updates are then written over
                self.defined[root] = self.element(root.inputs[0], index, ())
                return
            self.defined[root] = self.element(unpaged(root) or root, index, ())
            return
        x = self.element(root.inputs[0], variables(self.group.shape), ())
        if root.op.kind == "scan":
            self.defined[root] = self._scan(root, x)
            return
        acc = Acc(root.op, x.dtype, root.dtype)
        args: tuple[Value, ...] = (x,)
        if root.op.monoid is None:
            args = (x, self.emit("index", (), (variables(self.group.shape)[axes[0]],), dtypes.int64))
        self._accumulate(acc, args)
        self.defined[root] = self._unless_empty(root, acc)

    def _unless_empty(self, root: Node, acc: Acc) -> Value:
        """Over no elements a sum is +0.0, while its accumulator stays at the identity, -0.0; only symbolic extents come to that."""
        op, d = root.op, root.dtype
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

    def _scan(self, root: Node, x: Value) -> Value:
        """A scan's running value; two scans of one input share it, be it only the last value that is wanted."""
        key = ("scan", root.op, x)
        got = self.made.get(key)
        if got is None:
            acc = Acc(root.op, x.dtype, x.dtype)
            running = self.emit("scan", (x,), (acc,), x.dtype)
            self._accumulate(acc, (running,))
            got = self.made[key] = running
        assert isinstance(got, Ins)
        return got.attrs[0] if is_last(root) else got

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
        if node.op.kind == "leaf" or (node in self.roots and node not in self.group.members):
            mask = self._mask(guard) if node.shape else None
            return self.emit("load", () if mask is None else (mask,), (self.buffer(node, "in"), linear(index, node.shape)), node.dtype)
        if node.op.kind == "gather":
            return self._take(node, index, guard)
        wanted = requests(node, index, guard)
        missing = [w for w in wanted if w not in self.made]
        if missing:
            return missing[::-1]
        args = tuple(self.made[w] for w in wanted)
        if node.op.kind == "elementwise":
            return self._row(node, args)
        if node.op.name == "pad":
            mask = self._mask(wanted[0][2][len(guard) :])
            return args[0] if mask is None else self._select(mask, args[0], args[1])
        if node.op.name == "concatenate":
            out = args[-1]
            for w, a in zip(wanted[-2::-1], args[-2::-1], strict=True):
                mask = self._mask(w[2][-1:])
                assert mask is not None
                out = self._select(mask, a, out)
            return out
        return args[0]

    def _take(self, node: Node, index: Index, guard: Guard) -> Value | list[tuple[Node, Index, Guard]]:
        x, indices = node.inputs
        where, then = take_index(node, index)
        first = (indices, where, guard)
        if first not in self.made:
            return [first]
        (axis,) = node.attrs
        at = self._name(self._cast(self.made[first], dtypes.int64), x.shape[axis])
        second = (x, then(at), guard)
        return self.made[second] if second in self.made else [second]

    def place(self, indices: Node, index: Index, size: Int) -> tuple[Int, Value]:
        """Where an element of ``indices`` points, for an axis of extent ``size``, and whether that is in range."""
        value = self._cast(self.element(indices, index, ()), dtypes.int64)
        at = self._name(value, size)
        return at, self.emit("inside", (), (at, size), dtypes.bool_)

    def _name(self, ins: Value, size: Int) -> Int:
        """A variable that stands for a value in index expressions."""
        if not isinstance(ins, Ins):
            ins = self.emit(TABLE["cast"], (ins,), ("int64",), dtypes.int64)  # only instructions have names
        if not ins.name:
            self.taken += 1
            ins.name = f"taken{self.taken}"
        return var(ins.name, 0, size - 1 if isinstance(size, int) else None)

    def _mask(self, guard: Guard) -> Value | None:
        out: Value | None = None
        for e, size in guard:
            one = self.emit("inside", (), (e, size), dtypes.bool_)
            out = one if out is None else self.emit(TABLE["and"], (out, one), (), dtypes.bool_)
        return out

    def _select(self, mask: Value, a: Value, b: Value) -> Value:
        return self.emit(TABLE["select"], (mask, a, b), (), a.dtype)

    def _row(self, node: Node, args: tuple[Value, ...]) -> Value:
        """An elementwise op; 16-bit floats compute in float32 and round the result."""
        op = node.op
        if op.name in ("cast", "select", "bitcast") or not any(a.dtype.is_float and a.dtype.bits == 16 for a in args):
            return self.emit(op, args, node.attrs, node.dtype)
        wide = tuple(self._cast(a, dtypes.compute_type(a.dtype)) for a in args)
        return self._cast(self.emit(op, wide, node.attrs, dtypes.compute_type(node.dtype)), node.dtype)

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


def _at_row(x: Any, row: Int) -> Any:
    """An index expression at a row; anything else as it is."""
    return substitute(x, {"row": row}) if isinstance(x, Expr) else x


def _needs(w: Write) -> list[Value]:
    return [w.value] if w.mask is None else [w.value, w.mask]


# --- emission --------------------------------------------------------------------------------------------------------

TOP = 0  # level of what no loop variable touches


class _Emission:
    """Places instructions in loops, pass by pass."""

    def __init__(self, group: Group, values: Values, stores: list[Write], nest: Nest, precision: str) -> None:
        self.group, self.values, self.nest = group, values, nest
        self.kernel = Kernel()
        self.stores = [Write(w.buffer, nest.rewrite(w.index), w.value, w.mask) for w in stores]
        self.order = values.order
        for v in self.order:
            if isinstance(v, Ins):
                self._rewrite(v)
        self.element_level = nest.element_level
        self.row_level = nest.element_level - 1
        self.row_start: list[Ins] = []
        self.of_row: set[Value] = set()
        self.packed: set[Value] = set()
        if nest.rows_at_once > 1:
            self._tile()
        for v in self.order:
            self._annotate(v)
        if nest.packs:
            self.packed = self._shared_by_rows()
        if precision != "exact":
            self._share_divisors()

    def _tile(self) -> None:
        """Several rows a chunk: what depends on the row is there once for each, the rest once."""
        nest = self.nest
        first = Ins("index", (), (nest.row,), dtypes.int64)
        last = Ins("const", (), const_attrs(nest.last_row, dtypes.int64), dtypes.int64)
        start = Ins(TABLE["min"], (first, last), (), dtypes.int64)
        start.name = "row"
        self.row_start = [first, last, start]
        of_row: dict[Value, list[Value]] = {}
        order: list[Value] = []
        for v in self.order:
            copies = self._rows_of(v, of_row)
            of_row[v] = copies
            if len(set(copies)) > 1:
                self.of_row.update(copies)
            order += dict.fromkeys(copies)
        self.order = order
        self.stores = [
            Write(w.buffer, _at_row(w.index, self.nest.row_var + r), of_row[w.value][r], of_row[w.mask][r] if w.mask else None)
            for w in self.stores
            for r in range(nest.rows_at_once)
        ]

    def _shared_by_rows(self) -> set[Value]:
        """What rows share and read again and again: kept in scratch for the rows of a chunk, if the kernel makes one pass."""
        if any(isinstance(v, Acc) and v.stage > 1 for v in self.order):
            return set()
        users = [a for v in self.order if isinstance(v, Ins) and v in self.of_row for a in v.args]
        users += [a for args in self.values.accumulates.values() for a in args]
        shared = [v for v in dict.fromkeys(users) if isinstance(v, Ins) and v.level == self.element_level and v not in self.of_row]
        nbytes = sum(v.dtype.itemsize for v in shared) * self.nest.scratch_size
        return set(shared) if isinstance(nbytes, int) and nbytes <= PACK_BYTES else set()

    def _pack(self) -> list[Any]:
        """The loops that fill scratch with what the rows share."""
        down, across = self.nest.pack_loops()
        needed: set[Value] = set()
        stack: list[Value] = list(self.packed)
        while stack:
            v = stack.pop()
            if isinstance(v, Ins) and v not in needed and v.level > 1:
                needed.add(v)
                stack.extend(v.args)
        renamed: dict[Value, Value] = {}
        for v in self.order:
            if v in needed and isinstance(v, Ins):
                copy = renamed[v] = self._copy(v, renamed)
                across.body.append(copy)
                if v in self.packed:
                    across.body.append(Store(self._scratch(v), self.nest.scratch_index, copy))
        down.body.append(across)
        return [down]

    def _rows_of(self, v: Value, of_row: dict[Value, list[Value]]) -> list[Value]:
        """The value for each row of a chunk: one for all where it does not depend on the row."""
        n = self.nest.rows_at_once
        if isinstance(v, Acc):
            args = self.values.accumulates.pop(v)
            accs = [Acc(v.row, v.value_dtype, v.dtype) for _ in range(n)]
            for r, acc in enumerate(accs):
                self.values.accumulates[acc] = tuple(of_row[a][r] for a in args)
            return list(accs)
        expressions = [a for a in v.attrs if isinstance(a, Expr)]
        if not any(a.name == "row" for e in expressions for a in atoms(e)) and all(of_row[a][0] is of_row[a][-1] for a in v.args):
            return [v] * n
        return [Ins(v.op, tuple(of_row[a][r] for a in v.args), tuple(_at_row(a, self.nest.row_var + r) for a in v.attrs), v.dtype) for r in range(n)]

    def _share_divisors(self) -> None:
        """Many numbers divided by one that is fixed in the loop: see :mod:`hologram.primitives.division`."""
        order: list[Value] = []
        made: dict[Any, Ins] = {}

        def emit(op: str, *args: Value, like: Value) -> Ins:
            ins = made.get((op, args))
            if ins is None:
                ins = made[op, args] = Ins(TABLE[op], args, (), like.dtype)
                self._annotate(ins)
                order.append(ins)
            return ins

        for v in self.order:
            if isinstance(v, Ins) and v.opname == "div" and v.level == self.element_level and v.args[1].level < v.level:
                x, y = v.args
                scale = emit("unit_scale", y, like=y)
                one = Ins("const", (), const_attrs(1.0, y.dtype), y.dtype)
                self._annotate(one)
                order.append(one)
                near = emit("div", one, emit("mul", y, scale, like=y), like=y)
                v.op, v.args = TABLE["mul"], (emit("mul", x, scale, like=v), near)
            order.append(v)
        self.order = order

    def _rewrite(self, ins: Ins) -> None:
        if ins.op == "load":
            ins.attrs = (ins.attrs[0], self.nest.rewrite(ins.attrs[1]))
        elif ins.op == "index":
            ins.attrs = (self.nest.rewrite(ins.attrs[0]),)
        elif ins.op == "inside":
            ins.attrs = (self.nest.rewrite(ins.attrs[0]), ins.attrs[1])

    def _annotate(self, v: Value) -> None:
        """``level``: the loop whose variables it needs; ``stage``: the pass after which its inputs are complete."""
        if isinstance(v, Acc):
            args = self.values.accumulates[v]
            v.level = self.row_level
            v.stage = 1 + max(a.stage for a in args)
            return
        level = stage = 0
        for a in v.args:
            level, stage = max(level, a.level), max(stage, a.stage)
        if v.op in ("load", "index", "inside"):
            e = v.attrs[1] if v.op == "load" else v.attrs[0]
            for atom in atoms(e):
                known = self.nest.level_of.get(atom.name)
                if known is None:
                    named = next((o for o in self.order if isinstance(o, Ins) and o.name == atom.name), None)
                    if named is not None:
                        level, stage = max(level, named.level), max(stage, named.stage)
                else:
                    level = max(level, known)
        if v.op == "scan":
            level = self.element_level
        v.level, v.stage = level, stage

    def lowered(self) -> Lowered:
        k, nest = self.kernel, self.nest
        k.body += [v for v in self._needed_outside() if v.level == TOP]
        parallel = Loop("parallel", "p", 0, nest.chunks)
        k.body.append(parallel)
        body = parallel.body
        for level, loop in nest.outer_loops():
            body += self._pack() if self.packed and level == 1 else []
            body += self.row_start if loop.kind == "lanes" else []
            body += self._at(level)
            body.append(loop)
            body = loop.body
        self._passes(body)
        self._finish(nest.chunks)
        out = Lowered(k, [n for n, b in self.values.buffers.items()], self.group)
        out.in_place = self._in_place()
        return out

    def _needed_outside(self) -> list[Ins]:
        """Instructions outside the element loop that anything wants, in order."""
        if not hasattr(self, "_outside"):
            wanted: set[Value] = set()
            stack: list[Value] = [v for w in self.stores for v in _needs(w)]
            stack += [a for args in self.values.accumulates.values() for a in args]
            while stack:
                v = stack.pop()
                if v in wanted:
                    continue
                wanted.add(v)
                if isinstance(v, Ins):
                    stack.extend(v.args)
                    stack.extend(self._named_in(v))
            self._outside = [v for v in self.order if v in wanted and isinstance(v, Ins) and v.level < self.element_level]
        return self._outside

    def _named_in(self, v: Ins) -> list[Ins]:
        """The values that an instruction's index goes through."""
        if v.op not in ("load", "index", "inside") or not self.values.taken:
            return []
        e = v.attrs[1] if v.op == "load" else v.attrs[0]
        names = {a.name for a in atoms(e)}
        return [o for o in self.order if isinstance(o, Ins) and o.name and o.name in names]

    def _at(self, level: int) -> list[Ins]:
        return [v for v in self._needed_outside() if v.level == level and v.stage == 0]

    def _passes(self, body: list[Any]) -> None:
        """Row-level work and one element loop for each stage, in turn."""
        row = [v for v in self._needed_outside() if v.level == self.row_level]
        element_stores = [w for w in self.stores if self._store_level(w) == self.element_level]
        accs = [v for v in self.order if isinstance(v, Acc)]
        last = max([a.stage for a in accs] + [w.value.stage + 1 for w in element_stores] + [0])
        plans = self._plan_passes(accs, element_stores, last)
        for stage in range(last):
            body += [v for v in row if v.stage == stage]
            targets, kept, loop_accs = plans[stage]
            now = [w for w in element_stores if w.value.stage == stage]
            if targets or loop_accs or now:
                body += self._element_loops(stage, targets, kept, loop_accs, now)
        body += [v for v in row if v.stage >= last]
        body += [Store(w.buffer, w.index, w.value, w.mask) for w in self.stores if self._store_level(w) != self.element_level]

    def _store_level(self, w: Write) -> int:
        level = max([w.value.level] + [self.nest.level_of.get(a.name, 0) for a in atoms(w.index)])
        return level if level == self.element_level else min(level, self.row_level)

    def _plan_passes(self, accs: list[Acc], stores: list[Write], last: int) -> list[Any]:
        """For each pass: the instructions to run, those to keep for later passes, the accumulators."""
        kept: dict[Ins, int] = {}
        wants: list[set[Ins]] = []
        for stage in range(last):
            loop_accs = [a for a in accs if a.stage == stage + 1]
            roots: list[Value] = [x for a in loop_accs for x in self.values.accumulates[a]]
            roots += [v for w in stores if w.value.stage == stage for v in _needs(w)]
            wants.append(self._closure(roots, stage, kept))
        done: set[Ins] = set()
        while len(done) < len(kept):  # what is kept is made in its own pass, and may need what is kept by an earlier one
            ins = next(i for i in kept if i not in done)
            done.add(ins)
            wants[kept[ins]] |= self._closure([ins], kept[ins], kept)
        plans = []
        for stage in range(last):
            run = [v for v in self.order if isinstance(v, Ins) and v in wants[stage]]
            plans.append((run, kept, [a for a in accs if a.stage == stage + 1]))
        return plans

    def _closure(self, roots: list[Value], stage: int, kept: dict[Ins, int]) -> set[Ins]:
        """Element-level instructions that ``roots`` need in this pass; dear ones of earlier passes are kept, not repeated."""
        out: set[Ins] = set()
        stack = list(roots)
        while stack:
            v = stack.pop()
            if not isinstance(v, Ins) or v in out or v.level != self.element_level:
                continue
            out.add(v)
            if v in self.packed:
                continue
            if v.stage < stage and (v in kept or self._worth_keeping(v, kept)):
                kept[v] = v.stage
                continue
            stack.extend(v.args)
            stack.extend(self._named_in(v))
        return out

    def _worth_keeping(self, v: Ins, kept: dict[Ins, int]) -> bool:
        """Whether ``v`` is dear, and there is room for it beside ``kept``."""
        if isinstance(v.op, str):
            return v.op == "scan"
        count = self.nest.row_elements
        if v.op.cost < KEEP_COST or not isinstance(count, int):
            return False
        return sum(count * k.dtype.itemsize for k in [*kept, v]) <= SCRATCH_BYTES

    def _element_loops(self, stage: int, run: list[Ins], kept: dict[Ins, int], accs: list[Acc], stores: list[Write]) -> list[Any]:
        outer, inner = self.nest.element_loops()
        inner.accs = accs
        renamed: dict[Value, Value] = {}
        body = inner.body
        for v in run:
            if v in self.packed or (v in kept and kept[v] < stage):
                load = Ins("load", (), (self._scratch(v), self.nest.scratch_index), v.dtype)
                load.name = v.name  # an index may go through it
                renamed[v] = load
                body.append(load)
                continue
            same = stage == v.stage and all(renamed.get(a, a) is a for a in v.args)
            copy = v if same else self._copy(v, renamed)
            renamed[v] = copy
            body.append(copy)
            if v in kept:
                body.append(Store(self._scratch(v), self.nest.scratch_index, copy))
        for a in accs:
            args = self.values.accumulates[a]
            if not (isinstance(args[0], Ins) and args[0].op == "scan"):  # a scan accumulates by itself
                body.append(Accumulate(a, tuple(renamed.get(x, x) for x in args)))
        if stage == 1:
            body += self._next_row()
        body += [Store(w.buffer, w.index, renamed.get(w.value, w.value), renamed.get(w.mask, w.mask) if w.mask else None) for w in stores]
        return outer

    def _next_row(self) -> list[Any]:
        """Hints for the following row of large inputs: the second pass computes on cached data while memory is idle."""
        out: dict[Any, Prefetch] = {}
        for v in self.order:
            if not (isinstance(v, Ins) and v.op == "load" and v.stage == 0 and v.level == self.element_level):
                continue
            b, index = v.attrs
            row = self.nest.row_elements
            step = split_linear(index, "p")
            large = is_static(b.size) and is_static(row) and b.size * b.dtype.itemsize >= LARGE_BYTES and row * b.dtype.itemsize >= LONG_ROW_BYTES
            if large and step is not None and step[0] == row:
                out[b] = Prefetch(b, index + row)
        return list(out.values())

    def _copy(self, v: Ins, renamed: dict[Value, Value]) -> Ins:
        """The instruction again, on what its operands have become in this pass."""
        out = Ins(v.op, tuple(renamed.get(a, a) for a in v.args), v.attrs, v.dtype)
        out.level, out.stage, out.name = v.level, v.stage, v.name
        return out

    def _scratch(self, v: Ins) -> Buffer:
        for b in self.kernel.scratch:
            if b.name == f"s{self.order.index(v)}":
                return b
        b = Buffer(f"s{self.order.index(v)}", v.dtype, "scratch", self.nest.scratch_size)
        self.kernel.scratch.append(b)
        return b

    def _finish(self, chunks: Int) -> None:
        k = self.kernel
        k.params = list(self.values.buffers.values())
        k.chunks = chunks
        names = sorted({a.name for e in integers_of(k) for a in atoms(e) if a.name not in self.nest.level_of and not a.name.startswith("taken")})
        k.symbols = names
        k.ops = sum(1 for v in self.order if isinstance(v, Ins) and not isinstance(v.op, str))
        per_element = sum(v.op.cost if not isinstance(v.op, str) else 1 for v in self.order if isinstance(v, Ins) and v.level == self.element_level)
        elements = prod(n for n in self.group.shape)
        if is_static(elements) and isinstance(chunks, int) and isinstance(elements, int):
            k.cost = 3.0 + elements / max(1, chunks) * (0.02 * per_element + 0.03)
        else:
            k.cost = 3.0 + 3000 * 0.05 * per_element

    def _in_place(self) -> list[tuple[int, int]]:
        """``(out, in)`` parameters where the input is only read at the very element that is then written, in one pass."""
        loops = [s for s in self.kernel.walk() if isinstance(s, Loop) and s.kind == "lanes"]
        if len(loops) > 1 or self.row_start:  # the last rows of a tiled kernel may run twice
            return []
        reads: dict[Buffer, set[Int]] = {}
        for s in self.kernel.walk():
            if isinstance(s, Ins) and s.op == "load":
                reads.setdefault(s.attrs[0], set()).add(s.attrs[1])
        params = self.kernel.params
        out = []
        for w in self.stores:
            if self._store_level(w) != self.element_level:
                continue
            for other, places in reads.items():
                if other in params and places == {w.index} and other.dtype.itemsize == w.buffer.dtype.itemsize:
                    out.append((params.index(w.buffer), params.index(other)))
        return out


def integers_of(kernel: Kernel) -> list[Int]:
    """Every extent and index expression of a kernel."""
    out: list[Int] = [kernel.chunks]
    for s in kernel.walk():
        if isinstance(s, Loop):
            out += [s.start, s.extent] + ([s.limit] if s.limit is not None else [])
        elif isinstance(s, Store):
            out.append(s.index)
        elif isinstance(s, Ins) and s.op in ("load", "index", "inside"):
            out += [e for e in s.attrs if not isinstance(e, Buffer)]
    return out
