"""Loop unrolling: several iterations of a serial loop as one, each a copy of the body with known indices along the last axes.

Where a sum runs along axes that memory does not walk as one (the elements of a window in each channel), every step divides to find its index. Written
out, the last axes' indices are constants, and what is left is one step along the first.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from hologram.graph.kernel.ir import Accumulate, Loop, Prefetch, Stmt, Store, Value
from hologram.ir.instruction import Ins
from hologram.ir.symbolic import Expr, Int, atoms, substitute, var

MAX_UNROLLED_STEPS = 16  # that are written out


def steps_at_once(extents: list[int]) -> int:
    """How many steps along axes of ``extents``, the last innermost, are written out: all those along the last axes, as far as they are few."""
    steps = 1
    for n in reversed(extents[1:]):
        if steps * n > MAX_UNROLLED_STEPS:
            break
        steps *= n
    return steps


def unroll(loop: Loop, steps: int) -> list[Ins]:
    """Writes out ``steps`` iterations at a time of a loop that starts at 0 and whose extent they divide; the order of its sums stays.

    Gives what no longer depends on the loop, which goes before it: where an edge is, is known for each element of a window.
    """
    assert loop.start == 0 and loop.limit is None and isinstance(loop.extent, int) and loop.extent % steps == 0
    loop.extent //= steps
    body, loop.body = loop.body, []
    across = steps * var(loop.var, 0, loop.extent - 1)
    alike: dict[Any, Ins] = {}
    fixed: dict[Ins, None] = {}
    for k in range(steps):
        made: dict[Value, Value] = {}
        for s in body:
            copy = _copied(s, {loop.var: across + k}, made)
            if isinstance(s, Ins) and isinstance(copy, Ins):
                key = (copy.op, copy.args, copy.attrs, copy.dtype)
                first = made[s] = alike.setdefault(key, copy)
                if first is not copy:
                    continue
                if _is_fixed(copy, loop, fixed):
                    fixed[copy] = None
                    continue
            loop.body.append(copy)
    return list(fixed)


def _is_fixed(ins: Ins, loop: Loop, fixed: Container[Value]) -> bool:
    inside = {a.name for x in ins.attrs if isinstance(x, Expr) for a in atoms(x)}
    return ins.op != "load" and loop.var not in inside and all(a in fixed for a in ins.args)


def _copied(s: Stmt, values: dict[str, Int], made: dict[Value, Value]) -> Stmt:
    def at(x: Any) -> Any:
        return substitute(x, values) if isinstance(x, Expr) else x

    match s:
        case Ins():
            return Ins(s.op, tuple(made.get(a, a) for a in s.args), tuple(at(x) for x in s.attrs), s.dtype)
        case Store():
            return Store(s.buffer, at(s.index), made.get(s.value, s.value), made.get(s.mask, s.mask) if s.mask is not None else None)
        case Accumulate():
            return Accumulate(s.acc, tuple(made.get(a, a) for a in s.args))
        case Prefetch():
            return Prefetch(s.buffer, at(s.index))
    raise AssertionError("a loop that is written out holds no loops")
