"""Scans: running values, in the canonical order. In lanes all items take neighbouring elements, a stretch at a time, GROUPs of 16 at one time."""

from __future__ import annotations

from hologram.backends.c.accumulators import Monoid
from hologram.backends.c.analysis.scans import find_turns
from hologram.backends.c.emitter import ITEM, Emitter
from hologram.backends.c.grid import scans
from hologram.backends.c.scalars import memory_name, type_name
from hologram.backends.c.scan_turns import TurnsWriter
from hologram.errors import CompileError
from hologram.graph.kernel.ir import Loop
from hologram.graph.kernel.printer import print_kernel
from hologram.ir.instruction import Ins
from hologram.primitives.reductions import GROUP


def scan_lanes(w: Emitter, loop: Loop, name: str, start: str, stop: str) -> None:
    """A loop of lanes that scans, until the row ends; items beyond its end only keep step."""
    assert scans(loop)
    if not all(a.op.kind == "scan" for a in loop.accs):
        raise CompileError(f"a loop of lanes both scans and reduces\n{print_kernel(w.kernel)}")
    turns = find_turns(loop, w.mapping.width) if w.dialect.subgroup_barrier is not None else None
    if turns is not None:
        TurnsWriter(w, loop, name, start, stop, turns).write()
        return
    base = w.fresh("turn")
    w.f.open(f"for (i64 {base} = {start}; {base} < {stop}; {base} += {w.mapping.width})")
    w.f.do(f"const i64 {name} = {base} + {ITEM};")
    w.live = w.fresh("live")
    w.f.do(f"const bool {w.live} = {name} < {stop};")
    w.block(loop.body)
    w.live = None
    w.f.close()


def scan(w: Emitter, s: Ins) -> str:
    """The variable with the running value: of a serial loop the accumulator's; in lanes by groups of 16, whose carries every item adds up."""
    (acc,) = s.attrs
    monoid, carry, x = Monoid(acc, w.scalars), w.state[acc], w.env[s.args[0]]
    kind = type_name(s.dtype)
    if w.live is not None:
        return _parallel_scan(w, monoid, carry, x, kind, s.name or w.fresh("v"))
    w.f.do(monoid.combine(carry, carry, [x]))
    name = w.fresh("v")
    w.f.do(f"const {kind} {name} = {carry[0]};")
    return name


def _parallel_scan(w: Emitter, monoid: Monoid, carry: list[str], x: str, kind: str, name: str) -> str:
    """GROUPs scan themselves; the first item then takes the carry through all of them, and each item what stands before its own."""
    f, z, groups = w.f, w.fresh("group"), w.mapping.width // GROUP
    f.do(f"{kind} {z} = {x};")
    f.do(f"if (!{w.live}) {z} = {monoid.identity[0]};")
    (_in_registers if w.dialect.subgroup_barrier is not None else _in_memory)(w, monoid, z, kind)
    memory = memory_name(monoid.types[0])
    lasts, before = w.shared_array(memory, "lasts", groups), w.shared_array(memory, "before", groups + 1)
    f.do(f"if ({ITEM} % {GROUP} == {GROUP - 1}) {lasts}[{ITEM} / {GROUP}] = {z};")
    w.barrier()
    f.open(f"if ({ITEM} == 0)")
    w.unroll()
    f.open(f"for (int hg_at = 0; hg_at < {groups}; ++hg_at)")
    f.do(f"{before}[hg_at] = {carry[0]};")
    f.do(monoid.combine(carry, carry, [f"{lasts}[hg_at]"]))
    f.close()
    f.do(f"{before}[{groups}] = {carry[0]};")
    f.close()
    w.barrier()
    f.do(f"{kind} {name};")
    f.do(monoid.combine([name], [f"{before}[{ITEM} / {GROUP}]"], [z]))
    f.do(f"{carry[0]} = {before}[{groups}];")
    return name


def _in_registers(w: Emitter, monoid: Monoid, z: str, kind: str) -> None:
    """A GROUP's running values, by exchanges in a subgroup."""
    f, before = w.f, w.fresh("before")
    w.unroll()
    f.open(f"for (int hg_step = 1; hg_step < {GROUP}; hg_step <<= 1)")
    f.do(f"const {kind} {before} = hg_up({z}, hg_step);")
    f.do(f"if ({ITEM} % {GROUP} >= hg_step) {{ {monoid.combine([z], [before], [z])} }}")
    f.close()


def _in_memory(w: Emitter, monoid: Monoid, z: str, kind: str) -> None:
    """The same through memory that the group shares."""
    f, before = w.f, w.fresh("before")
    array = w.shared_array(memory_name(monoid.types[0]), "scan", w.mapping.width)
    w.barrier()
    f.do(f"{array}[{ITEM}] = {z};")
    w.barrier()
    f.open(f"for (int hg_step = 1; hg_step < {GROUP}; hg_step <<= 1)")
    f.do(f"{kind} {before} = {monoid.identity[0]};")
    f.do(f"if ({ITEM} % {GROUP} >= hg_step) {before} = {array}[{ITEM} - hg_step];")
    w.barrier()
    f.do(f"if ({ITEM} % {GROUP} >= hg_step) {{ {monoid.combine([z], [before], [z])} }}")
    f.do(f"{array}[{ITEM}] = {z};")
    w.barrier()
    f.close()
