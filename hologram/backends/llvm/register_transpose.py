"""Elements that lie next to each other down a serial loop, and far apart across the lanes in it: square blocks, transposed in registers.

A gather costs as much for each element as a load for a vector, and here it would fetch a cache line for each. A block of n by n elements is n loads
down and n·log2(n) shuffles; then it is there as n vectors across, one for each of n iterations of the serial loop.
"""

from __future__ import annotations

from hologram.backends.llvm.strided_access import largest_step
from hologram.backends.llvm.text import FunctionText, Reg, vector
from hologram.graph.kernel.ir import Loop
from hologram.ir.instruction import Ins
from hologram.ir.symbolic import Expr, atoms, bounds, split_linear


def find_transposed(loop: Loop, vector_bytes: int) -> tuple[int, list[Ins]] | None:
    """For a serial loop around lanes, and at most values that they share: the side of its blocks and the loads to be transposed, if there are any."""
    *head, lanes = loop.body
    if not isinstance(lanes, Loop) or loop.accs or not all(isinstance(s, Ins) and s.op != "scan" for s in head):
        return None
    if lanes.kind != "lanes" or lanes.accs or any(isinstance(s, Loop) for s in lanes.body):
        return None
    loads = [s for s in lanes.body if isinstance(s, Ins) and s.op == "load" and _is_transposed(s, loop.var, lanes.var, vector_bytes)]
    sides = {vector_bytes // s.attrs[0].dtype.itemsize for s in loads}
    if len(sides) != 1:
        return None
    (side,) = sides
    return (side, loads) if all(isinstance(n, int) and n >= side for n in (loop.extent, lanes.extent)) else None


def _is_transposed(load: Ins, down: str, across: str, vector_bytes: int) -> bool:
    buffer, index = load.attrs
    named = {a.name for a in atoms(index)}
    if load.args or buffer.dtype.kind == "b" or down not in named or any(n.startswith("taken") for n in named):
        return False
    a = split_linear(index, across)
    if row_of(load, down) is None or a is None:
        return False
    return not isinstance(a[0], int) or abs(a[0]) > largest_step(vector_bytes // buffer.dtype.itemsize)


def row_of(load: Ins, down: str) -> tuple[int, int] | None:
    """``(step, offset)``: of whole stretches of memory down a loop the load reads every ``step``-th element from ``offset`` on; None where they
    are far apart, or a stretch may not lie in the buffer."""
    buffer, index = load.attrs
    split = split_linear(index, down)
    if split is None:
        return None
    step, rest = split
    if not isinstance(step, int) or step not in (1, 2):
        return None
    offset = (rest.terms.get((), 0) if isinstance(rest, Expr) else rest) % step
    low, high = bounds(index)
    inside = isinstance(buffer.size, int) and low is not None and high is not None and low >= offset and high - offset + step <= buffer.size
    return (step, offset) if step == 1 or inside else None


def every(f: FunctionText, whole: Reg, step: int, offset: int) -> Reg:
    """Every ``step``-th lane, from ``offset`` on."""
    lanes = range(offset, whole.width, step)
    order = ", ".join(f"i32 {i}" for i in lanes)
    return f.emit(f"shufflevector {whole.typed}, {vector(whole.type, whole.width)} poison, <{len(lanes)} x i32> <{order}>", whole.type, len(lanes))


def transpose(f: FunctionText, rows: list[Reg]) -> list[Reg]:
    """The columns of a square block: quarters are exchanged, at each size from half of the block down to single elements."""
    n = len(rows)
    k = n // 2
    while k:
        for i in range(n):
            if i & k == 0:
                a, b = rows[i], rows[i + k]
                rows[i] = _blend(f, a, b, [j if j & k == 0 else n + j - k for j in range(n)])
                rows[i + k] = _blend(f, a, b, [j + k if j & k == 0 else n + j for j in range(n)])
        k //= 2
    return rows


def _blend(f: FunctionText, a: Reg, b: Reg, lanes: list[int]) -> Reg:
    order = ", ".join(f"i32 {j}" for j in lanes)
    return f.emit(f"shufflevector {a.typed}, {vector(b.type, b.width)} {b.text}, <{len(lanes)} x i32> <{order}>", a.type, a.width)
