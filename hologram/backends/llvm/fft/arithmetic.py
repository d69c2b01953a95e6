"""Vectors of real and of complex numbers in one LLVM function: arithmetic, interleaving, loads and stores.

A complex vector is a pair of real ones. In memory complex numbers are of one of these formats:

- ``c``: interleaved, the real part first, as arrays have them;
- ``s``: the same, where the parts are exchanged: the inverse transform of x is the transform of x with exchanged parts, with exchanged parts;
- ``p``: planar, in two arrays;
- ``r``: real parts only; what is loaded has an imaginary part of 0;
- ``i``: imaginary parts only, which are stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hologram.backends.llvm.text import FunctionText, float_bits, suffix, vector

Complex = tuple[str, str]

FLOATS = {"f32": ("float", 4), "f64": ("double", 8)}


class Lanes:
    """Vectors of ``width`` elements of type ``kind``, ``f32`` or ``f64``."""

    def __init__(self, f: FunctionText, kind: str, width: int) -> None:
        self.f, self.kind, self.width = f, kind, width
        self.t, self.itemsize = FLOATS[kind]
        self.v = vector(self.t, width)
        self.intrinsics: set[str] = set()

    def _do(self, text: str) -> str:
        return self.f.emit(text).text

    # --- real arithmetic -------------------------------------------------------------------------------------------------

    def constant(self, value: float) -> str:
        """A number in all lanes."""
        bits = float_bits(float(np.float32(value)) if self.kind == "f32" else value, self.t)
        return bits if self.width == 1 else f"splat ({self.t} {bits})"

    def add(self, a: str, b: str) -> str:
        return self._do(f"fadd {self.v} {a}, {b}")

    def sub(self, a: str, b: str) -> str:
        return self._do(f"fsub {self.v} {a}, {b}")

    def mul(self, a: str, b: str) -> str:
        return self._do(f"fmul {self.v} {a}, {b}")

    def negative(self, a: str) -> str:
        return self._do(f"fneg {self.v} {a}")

    def fma(self, a: str, b: str, c: str) -> str:
        """a b + c, rounded once where the machine can."""
        name = f"llvm.fmuladd.{suffix({'float': 'f32', 'double': 'f64'}[self.t], self.width)}"
        self.intrinsics.add(f"declare {self.v} @{name}({self.v}, {self.v}, {self.v})")
        return self._do(f"call {self.v} @{name}({self.v} {a}, {self.v} {b}, {self.v} {c})")

    # --- complex arithmetic ----------------------------------------------------------------------------------------------

    def plus(self, a: Complex, b: Complex) -> Complex:
        return self.add(a[0], b[0]), self.add(a[1], b[1])

    def minus(self, a: Complex, b: Complex) -> Complex:
        return self.sub(a[0], b[0]), self.sub(a[1], b[1])

    def times(self, a: Complex, w: Complex) -> Complex:
        real = self.fma(a[0], w[0], self.negative(self.mul(a[1], w[1])))
        return real, self.fma(a[0], w[1], self.mul(a[1], w[0]))

    def scaled(self, a: Complex, s: str) -> Complex:
        return self.mul(a[0], s), self.mul(a[1], s)

    # --- memory ----------------------------------------------------------------------------------------------------------

    def place(self, base: str, index: str, scale: int = 1) -> str:
        """The address of element ``scale * index``."""
        return self._do(f"getelementptr [{scale} x {self.t}], ptr {base}, i64 {index}")

    def load_at(self, base: str, index: str, width: int | None = None) -> str:
        return self._do(f"load {vector(self.t, width or self.width)}, ptr {self.place(base, index)}, align {self.itemsize}")

    def store_at(self, base: str, index: str, value: str, width: int | None = None) -> None:
        self.f.do(f"store {vector(self.t, width or self.width)} {value}, ptr {self.place(base, index)}, align {self.itemsize}")

    def splat_at(self, base: str, index: str) -> str:
        """One element in all lanes."""
        one = self.load_at(base, index, 1)
        return self.splat(one)

    def splat(self, one: str) -> str:
        if self.width == 1:
            return one
        first = self._do(f"insertelement {self.v} poison, {self.t} {one}, i64 0")
        return self._do(f"shufflevector {self.v} {first}, {self.v} poison, <{self.width} x i32> zeroinitializer")

    def load(self, form: str, base: str, imaginary: str, index: str) -> Complex:
        """Complex elements from ``index`` on."""
        if form == "p":
            return self.load_at(base, index), self.load_at(imaginary, index)
        if form == "r":
            return self.load_at(base, index), self.constant(0.0)
        place = self.place(base, index, 2)
        if self.width == 1:
            second = self._do(f"getelementptr {self.t}, ptr {place}, i64 1")
            parts = [self._do(f"load {self.t}, ptr {p}, align {self.itemsize}") for p in (place, second)]
        else:
            whole = self._do(f"load {vector(self.t, 2 * self.width)}, ptr {place}, align {self.itemsize}")
            wide = f"{vector(self.t, 2 * self.width)} {whole}, {vector(self.t, 2 * self.width)} poison"
            parts = [self._do(f"shufflevector {wide}, {indices(range(k, 2 * self.width, 2))}") for k in (0, 1)]
        return (parts[1], parts[0]) if form == "s" else (parts[0], parts[1])

    def store(self, form: str, base: str, imaginary: str, index: str, value: Complex) -> None:
        """Stores complex elements from ``index`` on."""
        if form in "pri":
            self.store_at(base, index, value[form == "i"])
            if form == "p":
                self.store_at(imaginary, index, value[1])
            return
        first, second = (value[1], value[0]) if form == "s" else value
        place = self.place(base, index, 2)
        if self.width == 1:
            at = self._do(f"getelementptr {self.t}, ptr {place}, i64 1")
            self.f.do(f"store {self.t} {first}, ptr {place}, align {self.itemsize}")
            self.f.do(f"store {self.t} {second}, ptr {at}, align {self.itemsize}")
            return
        order = [i + k * self.width for i in range(self.width) for k in (0, 1)]
        whole = self._do(f"shufflevector {self.v} {first}, {self.v} {second}, {indices(order)}")
        self.f.do(f"store {vector(self.t, 2 * self.width)} {whole}, ptr {place}, align {self.itemsize}")

    # --- shuffles --------------------------------------------------------------------------------------------------------

    def reversed(self, a: str) -> str:
        if self.width == 1:
            return a
        return self._do(f"shufflevector {self.v} {a}, {self.v} poison, {indices(range(self.width - 1, -1, -1))}")

    def part(self, a: str, width: int, start: int, count: int) -> str:
        """``count`` of the ``width`` elements of a vector."""
        if count == width:
            return a
        v = vector(self.t, width)
        if count == 1:
            return self._do(f"extractelement {v} {a}, i64 {start}")
        return self._do(f"shufflevector {v} {a}, {v} poison, {indices(range(start, start + count))}")

    def interleaved(self, vectors: Sequence[str], width: int) -> list[str]:
        """The first elements of all vectors, then the second ones, and so on: as many vectors of the same ``width``."""
        count = len(vectors)
        if count == 1 or width == 1:
            return list(vectors)
        if count % 2:
            return [self._picked(vectors, width, i * width) for i in range(count)]
        v, out = vector(self.t, width), []
        for a, b in zip(self.interleaved(vectors[::2], width), self.interleaved(vectors[1::2], width), strict=True):
            for half in (0, width // 2):
                order = [half + i + k * width for i in range(width // 2) for k in (0, 1)]
                out.append(self._do(f"shufflevector {v} {a}, {v} {b}, {indices(order)}"))
        return out

    def _picked(self, vectors: Sequence[str], width: int, start: int) -> str:
        """Elements from ``start`` on of what :meth:`interleaved` makes of an odd number of vectors."""
        count, v = len(vectors), vector(self.t, width)
        source = [((start + e) % count, (start + e) // count) for e in range(width)]
        first, *others = sorted({k for k, _ in source})
        order = [i if k == first else -1 for k, i in source]
        made = self._do(f"shufflevector {v} {vectors[first]}, {v} poison, {indices(order)}")
        for other in others:
            order = [width + i if k == other else e for e, (k, i) in enumerate(source)]
            made = self._do(f"shufflevector {v} {made}, {v} {vectors[other]}, {indices(order)}")
        return made


def indices(order: Any) -> str:
    """The mask of a shuffle; -1 is any element."""
    order = list(order)
    return f"<{len(order)} x i32> <{', '.join('i32 ' + ('poison' if i < 0 else str(i)) for i in order)}>"


# --- loops -------------------------------------------------------------------------------------------------------------------


def counted(f: FunctionText, count: str, body: Callable[[str], None]) -> None:
    """Runs ``body`` for 0, 1, …, count - 1; at least once."""
    _loop(f, body, lambda i: (f.emit(f"add i64 {i}, 1").text, f"icmp ult i64 {{}}, {count}"))


def covered(f: FunctionText, count: str, width: int, body: Callable[[str], None]) -> None:
    """Runs ``body`` for the starts of stretches of ``width`` that cover 0, …, count - 1; the last one may overlap the one before. ``count`` is at
    least ``width``."""
    if width == 1:
        return counted(f, count, body)
    last = f.emit(f"sub i64 {count}, {width}").text

    def following(i: str) -> tuple[str, str]:
        moved = f.emit(f"add i64 {i}, {width}").text
        return f.emit(f"call i64 @llvm.smin.i64(i64 {moved}, i64 {last})").text, f"icmp slt i64 {i}, {last}"

    return _loop(f, body, following)


def _loop(f: FunctionText, body: Callable[[str], None], following: Callable[[str], tuple[str, str]]) -> None:
    head, done, before = f.fresh_label("head"), f.fresh_label("done"), f.label
    i, after = f.name("i"), f.name("after")
    f.do(f"br label %{head}")
    f.start(head)
    phi = len(f.lines)
    body(i)
    moved, again = following(i)
    f.lines.insert(phi, f"  {i} = phi i64 [ 0, %{before} ], [ {moved}, %{f.label} ]")
    f.do(f"{after} = {again.format(moved)}")
    f.do(f"br i1 {after}, label %{head}, label %{done}")
    f.start(done)
