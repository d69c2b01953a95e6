"""Smaller chunks: a kernel whose parallel loop cuts a loop of lanes, cut into more parts."""

from __future__ import annotations

from hologram.graph.kernel.ir import Kernel, Loop, Prefetch, Stmt, Store
from hologram.ir.instruction import Ins
from hologram.ir.symbolic import split_linear, symbols_of, var


def in_chunks_of(kernel: Kernel, lanes: int) -> Kernel:
    """``kernel`` with chunks of so many ``lanes``, if its own are longer and the parallel loop's variable says where lanes begin, and nothing else;
    otherwise ``kernel`` itself. Each element is computed as before."""
    loops = [s for s in kernel.body if isinstance(s, Loop)]
    if len(loops) != 1 or kernel.scratch or kernel.ready is not None:
        return kernel
    (parallel,) = loops
    inner = [s for s in parallel.body if isinstance(s, Loop)]
    of_lanes = {(loop.kind, split_linear(loop.start, parallel.var), loop.extent, loop.limit) for loop in inner}
    if len(of_lanes) != 1 or any(loop.accs or loop.shared != 1 for loop in inner) or parallel.start != 0 or parallel.limit is not None:
        return kernel
    ((kind, start, extent, limit),) = of_lanes
    if kind != "lanes" or not isinstance(extent, int) or not isinstance(parallel.extent, int) or start not in ((extent, 0), (0, 0)):
        return kernel
    if extent <= lanes or (start == (0, 0) and parallel.extent != 1) or _uses(parallel, parallel.var):
        return kernel
    end = extent * parallel.extent if limit is None else limit
    return _cut(kernel, parallel, lanes, end, kernel.cost * lanes / extent) if isinstance(end, int) else kernel


def _cut(kernel: Kernel, parallel: Loop, lanes: int, end: int, cost: float) -> Kernel:
    out, count = Kernel(), -(-end // lanes)
    out.params, out.symbols, out.ops, out.note, out.cost, out.iterations = kernel.params, kernel.symbols, kernel.ops, kernel.note, cost, count
    whole = Loop(parallel.kind, parallel.var, 0, count)
    for s in parallel.body:
        if isinstance(s, Loop):
            part = Loop(s.kind, s.var, lanes * var(parallel.var), lanes, end if end % lanes else None)
            part.body = s.body
            whole.body.append(part)
        else:
            whole.body.append(s)
    out.body = [whole if s is parallel else s for s in kernel.body]
    return out


def _uses(parallel: Loop, name: str) -> bool:
    """Whether the body of a parallel loop holds ``name``, but for the starts of the loops right in it."""
    stack: list[tuple[Stmt, int]] = [(s, 0) for s in parallel.body]
    while stack:
        s, depth = stack.pop()
        if isinstance(s, Loop):
            stack += [(inside, depth + 1) for inside in s.body]
            held = symbols_of((s.extent, s.limit, *([s.start] if depth else [])))
        elif isinstance(s, Store | Prefetch):
            held = symbols_of(s.index)
        else:
            held = symbols_of(s.attrs) if isinstance(s, Ins) else set()
        if name in held:
            return True
    return False
