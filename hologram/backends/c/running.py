"""Scans: running values, in the written order. In lanes all items take elements side by side, turn by turn, GROUPs of 16 at one time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hologram.backends.c.accumulate import Monoid
from hologram.backends.c.mapping import scans
from hologram.backends.c.row_form import ITEM
from hologram.backends.c.scalars import memory_name, type_name
from hologram.errors import CompileError
from hologram.graph.kernel_ir import Ins, Loop
from hologram.primitives.reductions import GROUP

if TYPE_CHECKING:
    from hologram.backends.c.walk import KernelWriter


def turns(w: KernelWriter, loop: Loop, name: str, start: str, stop: str) -> None:
    """A loop of lanes that scans, until the row ends; items beyond its end only keep step."""
    assert scans(loop)
    if not all(a.row.kind == "scan" for a in loop.accs):
        raise CompileError(f"a loop of lanes both scans and reduces\n{w.kernel}")
    base = w.fresh("turn")
    w.f.open(f"for (i64 {base} = {start}; {base} < {stop}; {base} += {w.mapping.width})")
    w.f.do(f"const i64 {name} = {base} + {ITEM};")
    w.live = w.fresh("live")
    w.f.do(f"const bool {w.live} = {name} < {stop};")
    w.block(loop.body)
    w.live = None
    w.f.close()


def scan(w: KernelWriter, s: Ins) -> str:
    """The variable with the running value: of a serial loop the accumulator's; in lanes by groups of 16, whose carries every item adds up."""
    (acc,) = s.attrs
    monoid, carry, x = Monoid(acc, w.scalars), w.state[acc], w.env[s.args[0]]
    kind = type_name(s.dtype)
    if w.live is not None:
        return _side_by_side(w, monoid, carry, x, kind, s.name or w.fresh("v"))
    w.f.do(monoid.combine(carry, carry, [x]))
    name = w.fresh("v")
    w.f.do(f"const {kind} {name} = {carry[0]};")
    return name


def _side_by_side(w: KernelWriter, monoid: Monoid, carry: list[str], x: str, kind: str, name: str) -> str:
    f, z, before = w.f, w.fresh("group"), w.fresh("before")
    array = w.shared_array(memory_name(monoid.types[0]), "scan", w.mapping.width)
    f.do(f"{kind} {z} = {x};")
    f.do(f"if (!{w.live}) {z} = {monoid.identity[0]};")
    w.barrier()
    f.do(f"{array}[{ITEM}] = {z};")
    w.barrier()
    f.open(f"for (int hg_step = 1; hg_step < {GROUP}; hg_step <<= 1)")
    f.do(f"{kind} {before} = {monoid.identity[0]};")
    f.do(f"if ({ITEM} % {GROUP} >= hg_step) {before} = {array}[{ITEM} - hg_step];")
    w.barrier()
    f.do(f"if ({ITEM} % {GROUP} >= hg_step) {monoid.combine([z], [before], [z])}")
    f.do(f"{array}[{ITEM}] = {z};")
    w.barrier()
    f.close()
    last = f"{array}[hg_last]"
    f.do(f"{kind} {name} = {carry[0]};")
    f.open(f"for (i64 hg_last = {GROUP - 1}; hg_last < {ITEM} / {GROUP} * {GROUP}; hg_last += {GROUP})")
    f.do(monoid.combine([name], [name], [last]))
    f.close()
    f.do(monoid.combine([name], [name], [z]))
    f.open(f"for (i64 hg_last = {GROUP - 1}; hg_last < {w.mapping.width}; hg_last += {GROUP})")
    f.do(monoid.combine(carry, carry, [last]))
    f.close()
    return name
