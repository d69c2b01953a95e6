"""Row staging: rewrites kernels of rows so that all items of a group fetch what 32 lanes a page then reduce.

The canonical order gives a horizontal reduction 32 lanes a page, too few to keep memory busy. This pass goes from kernel IR to kernel IR:

- *Split*: a reduction with expensive work before it (``exp``) becomes a loop that does the work and stores the value in scratch, and a reduction of
  that scratch.
- *Copy*: a row that a reduction reads, or that several loops read, is copied to scratch before the first of them. All of them read the copy.

Scratch is memory that the group shares. The new loops have no accumulators, so items take neighbours 16 bytes at a time with many accesses under
way (:mod:`.vectors`), and the group may have more items than reduce. What is added, and in which order, stays the same; copies keep the type that
the row has in memory, so bits do too. Maxima keep the canonical order as well: from shared memory it costs little, and nothing has to be said of
zeros and NaNs.

A kernel that reads its row once for a cheap reduction stays as it is: many small groups hide what memory takes. So does a row that does not fit.

Memory needs 4.2 TB/s x 0.7 us / 132 = 23 KiB under way on a unit of an H200. A group of 256 items that copies a row of 4,096 float32 has 16 KiB
under way, a warp with a row of 1,024 has 4 KiB.
"""

from __future__ import annotations

from collections.abc import Sequence

from hologram.backends.c.analysis.accesses import stored
from hologram.graph.kernel.ir import Accumulate, Buffer, Kernel, Loop, Stmt, Store, Value, is_fused_product
from hologram.ir.instruction import Ins
from hologram.ir.symbolic import Expr, Int, split_linear, var
from hologram.primitives.reductions import LANES

MIN_COST = 8  # of the work before a reduction that is worth a loop of its own
MAX_GROUP_ITEMS = 256
ALIGNMENT = 64  # of scratch

Row = tuple[Buffer, Int, int]  # elements of a buffer from an index on, and how many


def stage_rows(kernel: Kernel, local_bytes: int) -> Kernel:
    """The kernel with staged rows, or the kernel itself. ``local_bytes``: of memory that a group may share, 0 where rows are not staged."""
    parallel = [s for s in kernel.body if isinstance(s, Loop)]
    lanes = [s for s in kernel.walk() if isinstance(s, Loop) and s.kind == "lanes"]
    if len(parallel) != 1 or parallel[0].kind != "parallel" or any(isinstance(s, Loop) for loop in lanes for s in loop.body):
        return kernel
    staging = _Staging(kernel, local_bytes - _taken(kernel, lanes))
    body = staging.rewritten(parallel[0].body)
    if not staging.scratch and not staging.split:
        return kernel
    return _with_body(kernel, parallel[0], body, staging.scratch)


def _taken(kernel: Kernel, lanes: list[Loop]) -> int:
    """Bytes of shared memory that the kernel has use for already: scratch, and what results of reductions are combined in."""
    partial = sum(a.value_dtype.itemsize + (8 if a.op.monoid is None else 0) for loop in lanes for a in loop.accs)
    return sum(_bytes(int(b.size), b.dtype.itemsize) for b in kernel.scratch) + partial * (MAX_GROUP_ITEMS + 2 * LANES)


def _bytes(size: int, itemsize: int) -> int:
    return -(-size * itemsize // ALIGNMENT) * ALIGNMENT


def _with_body(kernel: Kernel, parallel: Loop, body: list[Stmt], scratch: list[Buffer]) -> Kernel:
    out = Kernel()
    for name in Kernel.__slots__:
        setattr(out, name, getattr(kernel, name))
    out.scratch = [*kernel.scratch, *scratch]
    changed = _loop_with(parallel, body)
    out.body = [changed if s is parallel else s for s in kernel.body]
    return out


def _loop_with(loop: Loop, body: list[Stmt], reduces: bool = True) -> Loop:
    """The loop with another body, and without its accumulators where it does not reduce."""
    out = Loop(loop.kind, loop.var, loop.start, loop.extent, loop.limit)
    out.accs, out.body, out.shared, out.repeats = loop.accs if reduces else [], body, loop.shared, loop.repeats
    return out


def _is_row(s: Stmt) -> bool:
    """Whether a statement is a loop of lanes over a whole row of known length."""
    return (
        isinstance(s, Loop)
        and s.kind == "lanes"
        and isinstance(s.extent, int)
        and isinstance(s.start, int)
        and s.start == 0
        and s.limit is None
        and not any(isinstance(i, Ins) and i.op == "scan" for i in s.body)
    )


class _Staging:
    """``scratch``: what was added; ``split``: whether a reduction was split; ``room``: bytes that scratch may still take."""

    def __init__(self, kernel: Kernel, room: int) -> None:
        self.kernel, self.room, self.split = kernel, room, False
        self.written = stored(kernel.body)
        self.scratch: list[Buffer] = []

    def rewritten(self, body: list[Stmt]) -> list[Stmt]:
        parts = [part for s in body for part in (self._parts(s) if isinstance(s, Loop) and _is_row(s) else [s])]
        copied = self._copied([s for s in parts if isinstance(s, Loop) and _is_row(s)])
        out: list[Stmt] = []
        there: set[Row] = set()
        for s in parts:
            if not isinstance(s, Loop) or not _is_row(s):
                out.append(s)
                continue
            rows = {r: load for r, load in _rows(s, self.written).items() if r in copied}
            out += [_copy(s, load, copied[r]) for r, load in rows.items() if r not in there]
            there.update(rows)
            out.append(_redirected(s, {r: copied[r] for r in rows}) if rows else s)
        return out

    def _new(self, of: Buffer | Value, size: int) -> Buffer | None:
        """Scratch for a row, where there is room."""
        nbytes = _bytes(size, of.dtype.itemsize)
        if nbytes > self.room:
            return None
        self.room -= nbytes
        self.scratch.append(Buffer(f"row{len(self.scratch)}", of.dtype, "scratch", size))
        return self.scratch[-1]

    # --- copies --------------------------------------------------------------------------------------------------------

    def _copied(self, loops: list[Loop]) -> dict[Row, Buffer]:
        """The rows to copy, those that most loops read first, and where to."""
        uses: dict[Row, list[Loop]] = {}
        for loop in loops:
            for row in _rows(loop, self.written):
                uses.setdefault(row, []).append(loop)
        if not self.split and all(len(users) == 1 for users in uses.values()):
            return {}
        wanted = [r for r, users in uses.items() if len(users) > 1 or users[0].accs]
        found = {r: self._new(r[0], r[2]) for r in sorted(wanted, key=lambda r: -len(uses[r]))}
        return {r: b for r, b in found.items() if b is not None}

    # --- splits --------------------------------------------------------------------------------------------------------

    def _parts(self, loop: Loop) -> list[Stmt]:
        """The loop, or the work and the reduction that it is split into."""
        own = {s for s in loop.body if isinstance(s, Ins)}
        sums = [s for s in loop.body if isinstance(s, Accumulate)]
        cost = sum(s.op.cost for s in own if not isinstance(s.op, str))
        if not sums or cost < MIN_COST or any(a.op.monoid is None for a in loop.accs):
            return [loop]
        values = list(dict.fromkeys(v for s in sums for v in _summands(s) if v in own))
        kept = {s.value: s.buffer for s in loop.body if isinstance(s, Store) and _keeps(s, loop)}
        need = [v for v in values if v not in kept]
        if sum(_bytes(int(loop.extent), v.dtype.itemsize) for v in need) > self.room:
            return [loop]
        self.split = True
        kept |= {v: self._new(v, loop.extent) for v in need}  # type: ignore[arg-type, misc]
        return self._halves(loop, values, kept)

    def _halves(self, loop: Loop, values: Sequence[Value], kept: dict[Value, Buffer]) -> list[Stmt]:
        at, had = _place(loop), {s.value for s in loop.body if isinstance(s, Store) and _keeps(s, loop)}
        others = {a for s in loop.body if isinstance(s, Ins) for a in s.args}
        others |= {v for s in loop.body if isinstance(s, Store) for v in (s.value, s.mask)}
        work: list[Stmt] = [
            s for s in loop.body if not isinstance(s, Accumulate) and not (isinstance(s, Ins) and is_fused_product(s) and s not in others)
        ]
        work += [Store(kept[v], at, v) for v in values if v not in had]
        loads: dict[Value, Ins] = {v: Ins.load(kept[v], at) for v in values}
        body: list[Stmt] = list(loads.values())
        for s in loop.body:
            if isinstance(s, Accumulate):
                (first, *rest) = s.args
                if is_fused_product(first):
                    first = first.copy(loads, lambda a: a)
                    body.append(first)
                body.append(Accumulate(s.acc, (loads.get(first, first), *rest)))
        return [_loop_with(loop, work, False), _loop_with(loop, body)]


def _keeps(s: Store, loop: Loop) -> bool:
    """Whether a store puts each value at its own place in scratch."""
    return s.buffer.role == "scratch" and s.mask is None and split_linear(s.index, loop.var) == (1, 0) and s.buffer.dtype is s.value.dtype


def _summands(s: Accumulate) -> tuple[Value, ...]:
    return s.args[0].args if is_fused_product(s.args[0]) else s.args[:1]


def _row_of(s: Stmt, loop: Loop, written: set[Buffer]) -> Row | None:
    """The row whose elements a statement loads, one each iteration in turn."""
    if not isinstance(s, Ins) or s.op != "load" or s.args or s.attrs[0].role != "in" or s.attrs[0] in written:
        return None
    split = split_linear(s.attrs[1], loop.var)
    if split is None or isinstance(split[0], Expr) or split[0] != 1 or not isinstance(loop.extent, int):
        return None
    inner = {i.name for i in loop.body if isinstance(i, Ins) and i.name}
    if isinstance(split[1], Expr) and any(_depends(split[1], name) for name in inner):
        return None
    return s.attrs[0], split[1], loop.extent


def _depends(e: Expr, name: str) -> bool:
    split = split_linear(e, name)
    return split is None or split[0] != 0


def _rows(loop: Loop, written: set[Buffer]) -> dict[Row, Ins]:
    """The rows that a loop reads, with a load of each."""
    return {r: s for s in loop.body if isinstance(s, Ins) and (r := _row_of(s, loop, written)) is not None}


def _copy(loop: Loop, load: Ins, to: Buffer) -> Loop:
    """The loop that copies a row, of which ``load`` loads an element."""
    element = Ins.load(*load.attrs)
    return _loop_with(loop, [element, Store(to, _place(loop), element)], False)


def _place(loop: Loop) -> Int:
    """The index of an iteration's element in a copy."""
    return var(loop.var, 0, loop.extent - 1 if isinstance(loop.extent, int) else None)


def _redirected(loop: Loop, copies: dict[Row, Buffer]) -> Loop:
    """The loop, which loads elements of the copies."""
    values: dict[Value, Ins] = {}
    body: list[Stmt] = []
    for s in loop.body:
        if isinstance(s, Ins):
            row = _row_of(s, loop, set())
            new = Ins.load(copies[row], _place(loop)) if row in copies else s.copy(values, lambda a: a)
            new.name, new.extent, new.assumed = s.name, s.extent, s.assumed
            values[s] = new
            body.append(new)
        elif isinstance(s, Store):
            body.append(Store(s.buffer, s.index, values.get(s.value, s.value), values.get(s.mask, s.mask) if s.mask is not None else None))
        elif isinstance(s, Accumulate):
            body.append(Accumulate(s.acc, tuple(values.get(a, a) for a in s.args)))
        else:
            body.append(s)
    return _loop_with(loop, body)
