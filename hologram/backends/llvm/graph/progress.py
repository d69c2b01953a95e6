"""Steps of loops counted for a bar: a plain store in the loop, into a slot of the runtime's (:mod:`hologram.backends.native.code.progress`).

The attribute ``progress`` of a loop says that it has a bar. Where a step takes a while each step stores; short steps store where the loop looks for
signals. The store is volatile: it is made when it stands, and keeps nothing else from moving past it.
"""

from __future__ import annotations

from hologram.backends.llvm.abi import BAR_DONE_AT, BAR_LABEL_BYTES
from hologram.backends.llvm.graph.writer import GraphWriter
from hologram.backends.llvm.text import Reg
from hologram.graph.canonical.loop_ranges import counter_step
from hologram.ir.graph import Graph
from hologram.ir.node import Node, const_value
from hologram.primitives.control import label_of

STORED_NS = 20.0  # of a step: longer ones store each time
UNKNOWN = Reg("-1", "i64", 1)


class LoopBar:
    """The bar of one loop. ``each_step`` says whether steps of ``step_ns`` nanoseconds store one by one."""

    def __init__(self, w: GraphWriter, label: str, total: Reg, step_ns: float, name: str | None = None) -> None:
        self.w, self.each_step = w, step_ns >= STORED_NS
        f = w.f
        self.slot = Reg(f.name("bar") if name is None else name, "ptr", 1)
        f.types[self.slot.text] = "ptr"
        f.do(f"{self.slot.text} = call ptr @hg_bar_begin(ptr %ctx, ptr {w.text(fitted(label)).text}, {total.typed})")
        w.poll()
        self.place = f.emit(f"getelementptr i8, ptr {self.slot.text}, i64 {BAR_DONE_AT}", "ptr", 1)

    def store(self, done: Reg) -> None:
        """So many steps are done."""
        self.w.f.do(f"store volatile {done.typed}, ptr {self.place.text}, align 8")

    def end(self, done: Reg | None = None) -> None:
        """The loop ends, after ``done`` steps where nobody has counted them before."""
        if done is not None:
            self.store(done)
        self.w.f.do(f"call void @hg_bar_end(ptr %ctx, ptr {self.slot.text})")
        self.w.poll()


def label_at(w: GraphWriter, node: Node) -> str | None:
    """The label of a loop's bar; None where it has none, as inside of what threads share."""
    found = label_of(node.attrs)
    return found[0] if found and not w.is_outlined else None


def fitted(label: str) -> str:
    """A label of the bytes that a slot has for it, zeros behind."""
    raw = label.encode()[: BAR_LABEL_BYTES - 1].decode(errors="ignore")
    return raw + "\0" * (BAR_LABEL_BYTES - 1 - len(raw.encode()))


def add_chunk(w: GraphWriter, slot: str) -> None:
    """In a function for chunks of a loop: one more chunk is done."""
    f = w.f
    place = f.emit(f"getelementptr i8, ptr {slot}, i64 {BAR_DONE_AT}", "ptr", 1)
    count = f.emit("sub i64 %end, %begin", "i64", 1)
    f.emit(f"atomicrmw add ptr {place.text}, {count.typed} monotonic, align 8")


def trips(w: GraphWriter, cond: Graph, body: Graph, consts: int, places: list[Reg]) -> Reg:
    """How many steps a while loop makes, whose arguments are at ``places`` before it begins: where it counts up to a number that no step changes."""
    (test,) = cond.outputs
    if test.op.name not in ("lt", "le"):
        return UNKNOWN
    x, limit = test.inputs
    if x not in cond.inputs[consts:] or x.dtype.kind not in "iu" or not _is_fixed(limit, cond, body, consts):
        return UNKNOWN
    by = counter_step(body, consts, cond.inputs.index(x) - consts)
    if by is None or by < 1:
        return UNKNOWN
    first, last = (_number(w, n, cond, places) for n in (x, limit))
    distance = w.f.int_op("sub", last, first)
    more = w.f.int_op("add", distance, Reg(str(by - (test.op.name == "lt")), "i64", 1))
    some = w.f.emit(f"call i64 @llvm.smax.i64({more.typed}, i64 0)", "i64", 1)
    return w.f.int_op("udiv", some, Reg(str(by), "i64", 1))


def _is_fixed(x: Node, cond: Graph, body: Graph, consts: int) -> bool:
    """Whether an operand of the condition is the same in each step."""
    if x.op.name == "const":
        return True
    if x not in cond.inputs:
        return False
    i = cond.inputs.index(x)
    return i < consts or body.outputs[i - consts] is body.inputs[i]


def _number(w: GraphWriter, x: Node, cond: Graph, places: list[Reg]) -> Reg:
    """A scalar integer as 64 bits."""
    if x.op.name == "const":
        return Reg(str(int(const_value(x))), "i64", 1)
    t = f"i{x.dtype.bits}"
    value = w.f.emit(f"load {t}, ptr {places[cond.inputs.index(x)].text}, align {x.dtype.itemsize}", t, 1)
    extend = "sext" if x.dtype.kind == "i" else "zext"
    return value if x.dtype.bits == 64 else w.f.emit(f"{extend} {value.typed} to i64", "i64", 1)
