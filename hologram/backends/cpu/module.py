"""A scheduled graph as one LLVM module: its kernels, each once, and the function that runs them in order.

``i64 graph(ptr bufs, ptr ctx)``: ``bufs`` holds an 8-byte slot for each input, hidden constant, output and integer symbol, in this
order; ``ctx`` is the call's context (scratch pages at offset 0, arena at 8). Returns 0, or non-zero where the call was cancelled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hologram.backends.cpu.llvm_text import FunctionText, Reg
from hologram.backends.cpu.render import Integers, KernelWriter
from hologram.backends.cpu.scalar_code import Functions
from hologram.graph.kernel_ir import Kernel
from hologram.graph.kernel_text import print_kernel
from hologram.symbolic import Int

SERIAL_NS = 6_000.0  # less work than this stays on the calling thread
GRAIN_NS = 12_000.0  # work that a thread takes at one time

ATTRIBUTES = """
declare i64 @hg_parallel_for(ptr, ptr, ptr, i64, i64)
attributes #0 = { nounwind }
attributes #1 = { nounwind alwaysinline }
!0 = !{!"branch_weights", i32 1, i32 2000}
!1 = !{}
!2 = !{i32 1}
"""


class Place:
    """Where a kernel's parameter is: slot ``index`` of ``bufs``, or ``offset`` bytes into the arena (an Int: it may be a symbol)."""

    __slots__ = ("index", "offset")

    def __init__(self, index: int | None, offset: Int = 0) -> None:
        self.index, self.offset = index, offset


def render_module(kernels: Sequence[Kernel], places: Sequence[Sequence[Place]], symbols: Mapping[str, int], precision: str, target: Any) -> str:
    """The module's text. ``places[i]`` says where the parameters of ``kernels[i]`` are, ``symbols`` in which slot each symbol is."""
    functions = Functions(target.native_half)
    texts: list[str] = []
    names: dict[str, str] = {}
    order: list[str] = []
    for k in kernels:
        key = print_kernel(k)
        if key not in names:
            names[key] = f"kernel{len(names)}"
            texts.append(KernelWriter(k, functions, precision, target).render(names[key]))
        order.append(names[key])
    graph = _graph_function(kernels, order, places, symbols)
    return "\n".join([*functions.text.values(), *texts, graph, ATTRIBUTES])


def _graph_function(kernels: Sequence[Kernel], names: Sequence[str], places: Sequence[Sequence[Place]], symbols: Mapping[str, int]) -> str:
    f = FunctionText()
    integers = Integers(f)
    scratch = f.emit("load ptr, ptr %ctx, align 8", "ptr", 1)
    arena = f.emit(f"load ptr, ptr {f.emit('getelementptr i8, ptr %ctx, i64 8').text}, align 8", "ptr", 1)
    pointers: dict[int, Reg] = {}

    def slot(index: int, t: str) -> Reg:
        at = f.emit(f"getelementptr i64, ptr %bufs, i64 {index}")
        return f.emit(f"load {t}, ptr {at.text}, align 8", t, 1)

    for name, index in symbols.items():
        integers.vars[name] = slot(index, "i64")
    for kernel_places in places:
        for p in kernel_places:
            if p.index is not None and p.index not in pointers:
                pointers[p.index] = slot(p.index, "ptr")
    size = max((len(k.params) + len(k.symbols) for k in kernels), default=0)
    args = f.slot("i64", max(1, size), 8)
    for k, name, kernel_places in zip(kernels, names, places, strict=True):
        values = [
            pointers[p.index] if p.index is not None else f.emit(f"getelementptr i8, ptr {arena.text}, {integers.integer(p.offset).typed}", "ptr", 1)
            for p in kernel_places
        ]
        values += [integers.vars[s] for s in k.symbols]
        for i, v in enumerate(values):
            at = f.emit(f"getelementptr i64, ptr {args}, i64 {i}")
            f.do(f"store {v.typed}, ptr {at.text}, align 8")
        _launch(f, integers, k, name, args, scratch)
    f.do("ret i64 0")
    return f.text("define i64 @graph(ptr %bufs, ptr %ctx) #0")


def _launch(f: FunctionText, integers: Integers, k: Kernel, name: str, args: str, scratch: Reg) -> None:
    chunks = integers.integer(k.chunks)
    if isinstance(k.chunks, int) and (k.chunks == 1 or k.chunks * k.cost < SERIAL_NS):
        f.do(f"call void @{name}(ptr {args}, i64 0, i64 {chunks.text}, ptr {scratch.text})")
        return
    grain = max(1, int(GRAIN_NS / k.cost))
    stop = f.emit(f"call i64 @hg_parallel_for(ptr %ctx, ptr @{name}, ptr {args}, {chunks.typed}, i64 {grain})", "i64", 1)
    cancelled, on, off = f.emit(f"icmp ne i64 {stop.text}, 0"), f.fresh_label("on"), f.fresh_label("off")
    f.do(f"br i1 {cancelled.text}, label %{off}, label %{on}, !prof !0")
    f.start(off)
    f.do(f"ret i64 {stop.text}")
    f.start(on)
