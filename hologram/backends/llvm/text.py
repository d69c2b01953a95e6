"""Writing one LLVM function as text: names, types, vectors, counted loops. Knows nothing of kernels: the native language
is written with it, too."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import NamedTuple

from hologram.dtypes import DType, real_of

MAX_UNROLLED = 16  # iterations of a loop that may be unrolled where others are not

_SCALAR = {"bool": "i1", "bfloat16": "i16", "float16": "half", "float32": "float", "float64": "double"}


def scalar_type(d: DType) -> str:
    """The register type: bool is i1, bfloat16 and 8-bit floats travel as their bits."""
    return _SCALAR.get(d.name) or f"i{d.bits}"


def memory_type(d: DType) -> str:
    """The type in memory: bool is a byte that holds 0 or 1."""
    return "i8" if d.kind == "b" else scalar_type(d)


def alignment(d: DType) -> int:
    """To how many bytes elements in memory are aligned: those of a complex type as their parts."""
    return real_of(d).itemsize


def vector(t: str, width: int) -> str:
    return t if width == 1 else f"<{width} x {t}>"


def suffix(t: str, width: int) -> str:
    """The intrinsic suffix of a type: ``v16f32``, ``i64``."""
    s = {"half": "f16", "float": "f32", "double": "f64", "ptr": "p0"}.get(t, t)
    return s if width == 1 else f"v{width}{s}"


def literal(name: str, text: str) -> str:
    """A text that ends in a zero, as the global ``name`` of its module."""
    raw = text.encode() + b"\0"
    spelled = "".join(rf"\{b:02X}" for b in raw)
    return f'@{name} = private unnamed_addr constant [{len(raw)} x i8] c"{spelled}"'


def float_bits(value: float, t: str) -> str:
    """A floating-point constant as LLVM reads it exactly: the bits of its double, or of the half itself."""
    if t == "half":
        return "0xH" + struct.pack(">e", value).hex().upper()
    return "0x" + struct.pack(">d", value).hex().upper()


class Reg(NamedTuple):
    """A value: its text (a register or a literal), scalar type and number of lanes (1: uniform)."""

    text: str
    type: str
    width: int

    @property
    def typed(self) -> str:
        return f"{vector(self.type, self.width)} {self.text}"


class FunctionText:
    """Appends instructions to the current block of one function."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.counter = 0
        self.label = "entry"
        self.entry: list[str] = []  # allocas and the like, placed first
        self.kept_rolled = ""  # metadata of loops that are not to be unrolled, where some are
        self.types: dict[str, str] = {}  # of uniform registers, where known

    def mark(self) -> tuple[int, int, str]:
        """How far the text is; see :meth:`back_to`."""
        return len(self.lines), len(self.entry), self.label

    def back_to(self, mark: tuple[int, int, str]) -> None:
        """Drops what was appended since ``mark``, a place in the same or an enclosing block."""
        lines, entry, self.label = mark
        del self.lines[lines:], self.entry[entry:]

    def name(self, hint: str = "v") -> str:
        self.counter += 1
        return f"%{hint}{self.counter}"

    def emit(self, text: str, type_: str = "", width: int = 1) -> Reg:
        """Appends ``%n = text``; gives the new register."""
        r = self.name()
        self.lines.append(f"  {r} = {text}")
        if type_ and width == 1:
            self.types[r] = type_
        return Reg(r, type_, width)

    def do(self, text: str) -> None:
        self.lines.append("  " + text)

    def reserve(self, count: int = 1) -> int:
        """Keeps lines free at this place, for :meth:`fill`; gives the number of the first."""
        self.lines.extend([""] * count)
        return len(self.lines) - count

    def fill(self, line: int, text: str) -> None:
        """Writes an instruction into a line that was kept free."""
        self.lines[line] = "  " + text

    def start(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.label = label

    def fresh_label(self, hint: str) -> str:
        self.counter += 1
        return f"{hint}{self.counter}"

    def splat(self, r: Reg, width: int) -> Reg:
        if r.width == width:
            return r
        assert r.width == 1, (r, width)
        if not r.text.startswith("%"):
            return Reg(f"splat ({r.type} {r.text})", r.type, width)
        t = vector(r.type, width)
        one = self.emit(f"insertelement {t} poison, {r.type} {r.text}, i64 0")
        return self.emit(f"shufflevector {t} {one.text}, {t} poison, <{width} x i32> zeroinitializer", r.type, width)

    def int_op(self, op: str, a: Reg, b: Reg) -> Reg:
        w = max(a.width, b.width)
        a, b = self.splat(a, w), self.splat(b, w)
        return self.emit(f"{op} {a.typed}, {b.text}", a.type, w)

    def slot(self, t: str, count: int, align: int = 64) -> str:
        """Stack memory, allocated once on entry."""
        r = self.name("slot")
        self.entry.append(f"  {r} = alloca {t}, i64 {count}, align {align}")
        self.types[r] = "ptr"
        return r

    def counted(
        self,
        start: Reg,
        stop: Reg,
        step: int,
        carried: Sequence[Reg],
        body: Callable[[Reg, list[Reg]], Sequence[Reg]],
        at_least_once: bool = False,
        may_unroll: bool = True,
    ) -> list[Reg]:
        """``for i in range(start, stop, step)`` carrying registers; returns their final values. ``body(i, carried) -> next``. A short loop that
        ``may_unroll`` is one that LLVM unrolls."""
        before, loop, done = self.label, self.fresh_label("loop"), self.fresh_label("done")
        if at_least_once:
            self.do(f"br label %{loop}")
        else:
            c = self.emit(f"icmp slt i64 {start.text}, {stop.text}")
            self.do(f"br i1 {c.text}, label %{loop}, label %{done}")
        self.start(loop)
        head = LoopHead(self, before, start, carried)
        after = list(body(head.index, head.carried))
        nxt = self.emit(f"add nsw i64 {head.index.text}, {step}", "i64", 1)
        again = self.emit(f"icmp slt i64 {nxt.text}, {stop.text}")
        latch = self.label
        is_short = may_unroll and start.text.isdigit() and stop.text.isdigit() and int(stop.text) - int(start.text) <= MAX_UNROLLED * step
        rolled = "" if is_short or not self.kept_rolled else f", !llvm.loop {self.kept_rolled}"
        self.do(f"br i1 {again.text}, label %{loop}, label %{done}{rolled}")
        head.close(latch, nxt, after)
        self.start(done)
        if at_least_once:
            return after
        out = []
        for first, last in zip(carried, after, strict=True):
            t = vector(first.type, first.width)
            out.append(self.emit(f"phi {t} [ {first.text}, %{before} ], [ {last.text}, %{latch} ]", first.type, first.width))
        return out

    def branch_around(self, condition: Reg, body: Callable[[], Reg], otherwise: Reg, likely: bool = False) -> Reg:
        """``condition ? body() : otherwise`` with a real branch."""
        before, then, done = self.label, self.fresh_label("then"), self.fresh_label("endif")
        self.do(f"br i1 {condition.text}, label %{then}, label %{done}, !prof !{3 if likely else 0}")
        self.start(then)
        r = body()
        last = self.label
        self.do(f"br label %{done}")
        self.start(done)
        t = vector(r.type, r.width)
        return self.emit(f"phi {t} [ {r.text}, %{last} ], [ {otherwise.text}, %{before} ]", r.type, r.width)

    def only_if(self, condition: Reg, body: Callable[[], object]) -> None:
        """Runs ``body()``, which gives nothing, where ``condition`` holds."""
        then, done = self.fresh_label("then"), self.fresh_label("endif")
        self.do(f"br i1 {condition.text}, label %{then}, label %{done}")
        self.start(then)
        body()
        self.do(f"br label %{done}")
        self.start(done)

    def either(self, condition: Reg, body: Callable[[], object], otherwise: Callable[[], object]) -> None:
        """Runs ``body()`` where ``condition`` holds, and ``otherwise()`` where it does not; they give nothing."""
        then, other, done = self.fresh_label("then"), self.fresh_label("else"), self.fresh_label("endif")
        self.do(f"br i1 {condition.text}, label %{then}, label %{other}")
        for label, part in ((then, body), (other, otherwise)):
            self.start(label)
            part()
            self.do(f"br label %{done}")
        self.start(done)

    def text(self, header: str) -> str:
        return "\n".join([header + " {", "entry:", *self.entry, *self.lines, "}", ""])


class LoopHead:
    """The phi nodes at the head of a loop: its ``index``, and the registers that it has ``carried`` so far. Written when the loop's body is."""

    def __init__(self, f: FunctionText, before: str, start: Reg, carried: Sequence[Reg]) -> None:
        self.f, self.before, self.first = f, before, [start, *carried]
        self.index = Reg(f.name("i"), "i64", 1)
        self.carried = [Reg(f.name("c"), r.type, r.width) for r in carried]
        f.types.update({r.text: r.type for r in (self.index, *self.carried) if r.width == 1})
        self.at = f.reserve(len(self.first))

    def close(self, latch: str, following: Reg, after: Sequence[Reg]) -> None:
        """The block ``latch`` goes back to the head with the index ``following``, and with ``after`` carried."""
        for k, (r, first, last) in enumerate(zip([self.index, *self.carried], self.first, [following, *after], strict=True)):
            phi = f"phi {vector(r.type, r.width)} [ {first.text}, %{self.before} ], [ {last.text}, %{latch} ]"
            self.f.fill(self.at + k, f"{r.text} = {phi}")


def lane_numbers(width: int, t: str = "i64") -> Reg:
    return Reg("<" + ", ".join(f"{t} {i}" for i in range(width)) + ">", t, width)


def shuffle_half(f: FunctionText, r: Reg, low: bool) -> Reg:
    """The lower or upper half of the lanes."""
    half = r.width // 2
    first = 0 if low else half
    mask = ", ".join(f"i32 {first + i}" for i in range(half))
    if half == 1:
        return f.emit(f"extractelement {r.typed}, i64 {first}", r.type, 1)
    return f.emit(f"shufflevector {r.typed}, {vector(r.type, r.width)} poison, <{half} x i32> <{mask}>", r.type, half)


def widened(f: FunctionText, r: Reg, width: int) -> Reg:
    """``r`` with lanes of zeros behind its own."""
    if r.width == 1:
        return f.emit(f"insertelement {vector(r.type, width)} zeroinitializer, {r.typed}, i64 0", r.type, width)
    order = ", ".join(f"i32 {min(i, r.width)}" for i in range(width))
    return f.emit(f"shufflevector {r.typed}, {vector(r.type, r.width)} zeroinitializer, <{width} x i32> <{order}>", r.type, width)


def narrowed(f: FunctionText, r: Reg, width: int) -> Reg:
    """The first lanes of ``r``."""
    if width == 1:
        return f.emit(f"extractelement {r.typed}, i64 0", r.type, 1)
    order = ", ".join(f"i32 {i}" for i in range(width))
    return f.emit(f"shufflevector {r.typed}, {vector(r.type, r.width)} poison, <{width} x i32> <{order}>", r.type, width)


def pieces(f: FunctionText, r: Reg, width: int) -> list[Reg]:
    """``r`` as vectors of ``width`` lanes; a narrower one as one whose lanes repeat."""
    if r.width == width:
        return [r]
    out = []
    for first in range(0, r.width, width):
        order = ", ".join(f"i32 {first + i % r.width}" for i in range(width))
        out.append(f.emit(f"shufflevector {r.typed}, {vector(r.type, r.width)} poison, <{width} x i32> <{order}>", r.type, width))
    return out


def joined_pieces(f: FunctionText, parts: list[Reg]) -> Reg:
    """Vectors of one width, a power of two of them, as one."""
    while len(parts) > 1:
        width = 2 * parts[0].width
        order = ", ".join(f"i32 {i}" for i in range(width))
        pairs = zip(parts[::2], parts[1::2], strict=True)
        parts = [f.emit(f"shufflevector {a.typed}, {b.typed}, <{width} x i32> <{order}>", a.type, width) for a, b in pairs]
    return parts[0]


def replaced(f: FunctionText, r: Reg, first: Reg) -> Reg:
    """``r`` with its first lanes replaced by those of ``first``."""
    if r.width == first.width:
        return first
    n, t = first.width, vector(r.type, r.width)
    order = ", ".join(f"i32 {i}" if i < n else "i32 poison" for i in range(r.width))
    wide = f.emit(f"shufflevector {first.typed}, {vector(first.type, n)} poison, <{r.width} x i32> <{order}>", r.type, r.width)
    order = ", ".join(f"i32 {i if i < n else r.width + i}" for i in range(r.width))
    return f.emit(f"shufflevector {t} {wide.text}, {t} {r.text}, <{r.width} x i32> <{order}>", r.type, r.width)
