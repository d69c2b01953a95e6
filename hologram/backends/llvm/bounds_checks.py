"""Checked kernels: before each access the indices that it touches are compared with the size of the buffer.

An access that would leave its buffer is reported to the call, which raises BoundsError once its threads have stopped, and goes to memory that belongs
to nobody: what is loaded there is zero, what is stored there is lost. All lanes of a vector are compared, or, under a mask, all live ones; what a
vector reads beside the elements that are wanted counts too. Hints to the caches are not compared, since they access nothing.
"""

from __future__ import annotations

from hologram.backends.llvm.text import FunctionText, Reg, lane_numbers, literal, vector
from hologram.graph.kernel.ir import Buffer, Kernel, Store
from hologram.graph.kernel.printer import Names, print_kernel, statement_text
from hologram.ir.instruction import Ins
from hologram.ir.symbolic import Int

# Functions of the runtime that checked code calls: :mod:`hologram.backends.native.code.checked`.
DECLARATIONS = """
declare ptr @hg_violated(ptr, ptr, ptr, i64, i64, i64)
declare void @hg_poison(ptr, i64)
declare void @hg_poison_result(ptr, i64, ptr, i64)
"""


def symbolic_sizes(kernel: Kernel) -> list[Int]:
    """Sizes of parameters that depend on symbols; checked kernels take them, after the call's context, as integers."""
    return [b.size for b in kernel.params if not isinstance(b.size, int)]


class BoundsChecks:
    """Writes the comparisons of one kernel."""

    def __init__(self, f: FunctionText, kernel: Kernel) -> None:
        self.f, self.kernel = f, kernel
        self.name, self.context = "", Reg("null", "ptr", 1)
        self.sizes: dict[Buffer, Reg] = {}
        self._kernel_text = print_kernel(kernel)
        self._statements: dict[Ins | Store, str] = {}
        self._texts: dict[str, str] = {}  # literals by their text

    def begin(self, name: str, context: Reg, sizes: list[Reg]) -> None:
        """At the start of the function ``name``: the register of the call's context, and those of :func:`symbolic_sizes`."""
        self.name, self.context = name, context
        symbolic = iter(sizes)
        for b in self.kernel.params + self.kernel.scratch:
            self.sizes[b] = Reg(str(b.size), "i64", 1) if isinstance(b.size, int) else next(symbolic)
        names = Names()
        for s in self.kernel.walk():
            line = statement_text(s, names)
            if isinstance(s, (Ins, Store)):
                self._statements[s] = line

    def poison_scratch(self, pointers: dict[Buffer, str]) -> None:
        """Nothing in scratch is left from other chunks or kernels."""
        for b in self.kernel.scratch:
            assert isinstance(b.size, int)
            self.f.do(f"call void @hg_poison(ptr {pointers[b]}, i64 {b.size * b.dtype.itemsize})")

    @property
    def literals(self) -> list[str]:
        """What stands beside the function in its module."""
        return [literal(name, text) for text, name in self._texts.items()]

    def guard(self, p: Reg, statement: Ins | Store, buffer: Buffer, first: Reg, count: int = 1, step: int = 1, live: Reg | None = None) -> Reg:
        """``p``, or memory of nobody where one of the elements ``first + step*k``, ``k < count``, is not in the buffer.

        ``first`` may be a vector of ``count`` elements, which stand for themselves. Only ``live`` ones count, of which there is a mask, one bit for
        all, or None.
        """
        if first.width == 1 and count == 1 and live is not None and live.width > 1:
            live = self.f.emit(f"extractelement {live.typed}, i64 0", "i1", 1)
        if first.width == 1 and step in (1, -1) and (live is None or live.width == 1):
            outside, index = self._range_outside(buffer, first, count, step)
            if live is not None:
                outside = self.f.int_op("and", outside, live)
        else:
            outside, index = self._lanes_outside(buffer, first, count, step, live)
        return self.f.branch_around(outside, lambda: self.f.splat(self._report(statement, buffer, index), p.width), p)

    def _range_outside(self, buffer: Buffer, first: Reg, count: int, step: int) -> tuple[Reg, Reg]:
        """Whether neighbours are not all in the buffer, and which is not."""
        f, size = self.f, self.sizes[buffer]
        low = first if step > 0 else f.emit(f"sub i64 {first.text}, {count - 1}", "i64", 1)
        high = f.emit(f"add i64 {low.text}, {count - 1}", "i64", 1)
        below = f.emit(f"icmp slt i64 {low.text}, 0", "i1", 1)
        above = f.emit(f"icmp sge i64 {high.text}, {size.text}", "i1", 1)
        index = f.emit(f"select i1 {below.text}, {low.typed}, {high.typed}", "i64", 1)
        return f.int_op("or", below, above), index

    def _lanes_outside(self, buffer: Buffer, first: Reg, count: int, step: int, live: Reg | None) -> tuple[Reg, Reg]:
        """Whether a live lane is not in the buffer, and the largest index that is not; negative ones are larger than all others."""
        f, n = self.f, max(first.width, count)
        index = first
        if first.width == 1 and step:
            index = f.int_op("add", first, f.int_op("mul", lane_numbers(n), Reg(str(step), "i64", 1)))
        index = f.splat(index, n)
        outside = f.emit(f"icmp uge {index.typed}, {f.splat(self.sizes[buffer], n).text}", "i1", n)
        if live is not None:
            outside = f.int_op("and", outside, f.splat(live, n))
        largest = f.emit(f"select {outside.typed}, {index.typed}, {vector('i64', n)} zeroinitializer", "i64", n)
        return (
            f.emit(f"call i1 @llvm.vector.reduce.or.v{n}i1({outside.typed})", "i1", 1),
            f.emit(f"call i64 @llvm.vector.reduce.umax.v{n}i64({largest.typed})", "i64", 1),
        )

    def _report(self, statement: Ins | Store, buffer: Buffer, index: Reg) -> Reg:
        texts = ", ".join(f"ptr {self._text(t)}" for t in (f"{buffer.name}\n{self._statements[statement]}", self._kernel_text))
        writes = int(isinstance(statement, Store))
        call = f"call ptr @hg_violated({self.context.typed}, {texts}, {index.typed}, {self.sizes[buffer].typed}, i64 {writes})"
        return self.f.emit(call, "ptr", 1)

    def _text(self, text: str) -> str:
        return "@" + self._texts.setdefault(text, f"{self.name}.text{len(self._texts)}")
