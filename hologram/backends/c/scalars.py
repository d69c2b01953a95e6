"""One scalar instruction of kernel IR as an expression in C: table rows, casts, constants, and called decompositions."""

from __future__ import annotations

from typing import Any

import numpy as np

from hologram import dtypes
from hologram.backends.c.analysis.vectors import ACCESS_BYTES
from hologram.backends.c.dialects import Dialect
from hologram.backends.c.helpers import NARROW
from hologram.dtypes import DType
from hologram.ir.expression_builder import Rare, decompose
from hologram.primitives.complex import parts as complexes


def type_name(d: DType) -> str:
    """The type of a value: narrow floats are their bits."""
    if d.kind == "b":
        return "bool"
    if d.is_narrow_float:
        return f"u{d.bits}"
    return f"c{d.bits}" if d.is_complex else f"{d.kind}{d.bits}"


def memory_name(d: DType) -> str:
    """The type of an element in memory: bool is a byte that holds 0 or 1."""
    return "u8" if d.kind == "b" else type_name(d)


class Lines:
    """Lines of C, indented by their blocks."""

    def __init__(self, depth: int = 0) -> None:
        self.lines: list[str] = []
        self.depth = depth

    def do(self, line: str) -> None:
        self.lines.append("  " * self.depth + line)

    def open(self, head: str) -> None:
        self.do(f"{head} {{" if head else "{")
        self.depth += 1

    def close(self) -> None:
        self.depth -= 1
        self.do("}")

    def __str__(self) -> str:
        return "".join(line + "\n" for line in self.lines)


class Scalars:
    """Writes expressions of one program in one dialect; ``functions`` collects the decompositions that they call, callees first."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.functions: dict[str, str] = {}
        self.vectors: dict[str, str] = {}  # declarations of the types that :meth:`vector` names

    def vector(self, d: DType, width: int) -> str:
        """The type of ``width`` neighbours in memory, declared once."""
        kind = memory_name(d)
        name = f"hg_{kind}x{width}"
        align = self.dialect.align.format(n=min(ACCESS_BYTES, d.itemsize * width))
        self.vectors.setdefault(name, f"struct {align} {name} {{ {kind} v[{width}]; }};\ntypedef struct {name} {name};\n")
        return name

    # --- constants -----------------------------------------------------------------------------------------------------

    def literal(self, d: DType, raw: bytes) -> str:
        """A constant from its bits; one that is negative stands in parentheses."""
        if d.kind == "b":
            return "true" if raw[0] else "false"
        if d.is_complex:
            half, part = d.itemsize // 2, dtypes.real_of(d)
            return f"hg_{type_name(d)}({self.literal(part, raw[:half])}, {self.literal(part, raw[half:])})"
        if d.is_narrow_float:
            return f"{int.from_bytes(raw, 'little')}"
        if d.is_float:
            return self._float(d, raw)
        return self.integer(int.from_bytes(raw, "little", signed=d.kind == "i"), d)

    def integer(self, n: int, d: DType = dtypes.int64) -> str:
        if d.kind == "u":
            return f"(u64){n}U{self.dialect.long}" if d.bits == 64 else f"{n}u"
        if n == -(2 ** (d.bits - 1)):  # whose magnitude has no literal
            return f"({self.integer(n + 1, d)} - 1)"
        text = f"{n}{self.dialect.long if abs(n) >= 2**31 else ''}"
        return text if n >= 0 else f"({text})"

    def _float(self, d: DType, raw: bytes) -> str:
        value = np.frombuffer(raw, d.np)[0]
        if not np.isfinite(value):
            bits = int.from_bytes(raw, "little")
            return f"hg_{type_name(d)}((u{d.bits})0x{bits:X}{'' if d.bits == 32 else 'U' + self.dialect.long})"
        short = not value or 1e-4 < abs(value) < 1e7
        text = np.format_float_positional(value, trim="0") if short else np.format_float_scientific(value, trim="0")
        text += "f" if d.bits == 32 else ""
        return f"({text})" if text.startswith("-") else text

    # --- rows ----------------------------------------------------------------------------------------------------------

    def row(self, op: Any, attrs: tuple[Any, ...], types: tuple[DType, ...], out: DType, args: list[str]) -> str:
        """An elementwise row of operands ``args``, which are names or literals."""
        if op.name == "cast":
            return self.cast(args[0], types[0], out)
        if op.name == "bitcast":
            return self.bitcast(args[0], types[0], out)
        if op is complexes.complex_:
            return f"hg_{type_name(out)}({args[0]}, {args[1]})"
        if op is complexes.real or op is complexes.imag:
            return f"{args[0]}.{'x' if op is complexes.real else 'y'}"
        if op.spelling is None:
            return f"{self._function(op, attrs, types)}({', '.join(args)})"
        return self.spell(op, types[-1] if op.name == "select" else types[0], args)

    def spell(self, op: Any, d: DType, args: list[str]) -> str:
        """The table's own text for operands of type ``d``."""
        wide = "u64" if d.bits == 64 else "u32"
        return str(op.spelling[d.kind]["c"].format(*args, t=type_name(d), w=wide, f=self.suffix(d)))

    def suffix(self, d: DType) -> str:
        return self.dialect.single if d.bits == 32 else ""

    def bitcast(self, x: str, a: DType, b: DType) -> str:
        """The same bits as another type of the same width; narrow floats are bits already."""
        whole = f"u{a.bits}"
        if a.is_float and not a.is_narrow_float:
            x = f"hg_bits_f{a.bits}({x})"
            return f"hg_f{b.bits}({x})" if b.is_float else x if b.kind == "u" else f"({type_name(b)}){x}"
        if b.is_float and not b.is_narrow_float:
            return f"hg_f{b.bits}(({whole}){x})"
        return f"({type_name(b)}){x}"

    def cast(self, x: str, a: DType, b: DType) -> str:
        """As ``primitives.scalar.elementwise.cast_reference`` says."""
        if a is b:
            return x
        if a.is_narrow_float:
            wide = f"hg_{NARROW[a]}_to_f32({x})"
            return wide if b is dtypes.float32 else self.cast(wide, dtypes.float32, b)
        if b.kind == "b":
            return f"{x} != 0"
        if b.is_narrow_float:
            return f"hg_f32_to_{NARROW[b]}({self._single(x, a)})"
        if a.is_float and b.is_integer:
            return f"hg_{type_name(a)}_to_{type_name(b)}({x})"
        return f"({type_name(b)}){x}"

    def _single(self, x: str, a: DType) -> str:
        """float32 that rounds to a narrow float as ``x`` does."""
        if a.is_float:
            return x if a is dtypes.float32 else f"hg_odd_f32({x})"
        if a.bits <= 16 or a.kind == "b":
            return f"(f32){x}"
        return f"hg_odd_f32((f64){x})" if a.bits == 32 else f"hg_odd_f32(hg_odd_{type_name(a)}({x}))"

    # --- decompositions ------------------------------------------------------------------------------------------------

    def _function(self, op: Any, attrs: tuple[Any, ...], types: tuple[DType, ...]) -> str:
        """The name of the function that computes a decomposed row."""
        tag = "_".join([op.name, *(type_name(d) for d in types), *map(_clean, attrs)])
        name = f"hgf_{tag}"
        if name not in self.functions:
            params, body, out = decompose(op, types, attrs)
            names: dict[Any, str] = {p: f"x{i}" for i, p in enumerate(params)}
            lines = Lines(1)
            self._straight(body, names, lines)
            lines.do(f"return {self._operand(out, names)};")
            head = ", ".join(f"const {type_name(p.dtype)} {names[p]}" for p in params)
            self.functions[name] = f"{self.dialect.function}{type_name(out.dtype)} {name}({head}) {{\n{lines}}}\n"
        return name

    def _operand(self, v: Any, names: dict[Any, str]) -> str:
        if v not in names and v.op == "const":
            names[v] = self.literal(v.dtype, v.attrs[1])
        return names[v]

    def _straight(self, body: list[Any], names: dict[Any, str], lines: Lines) -> None:
        for ins in body:
            if ins.op == "const":
                continue
            name = f"v{len(names)}"
            args = [self._operand(a, names) for a in ins.args]
            kind = type_name(ins.dtype)
            if isinstance(ins, Rare):
                lines.do(f"{kind} {name} = {args[1]};")
                names[ins] = name
                lines.open(f"if ({args[0]})")
                inner = dict(names)
                self._straight(ins.body, inner, lines)
                lines.do(f"{name} = {self._operand(ins.slow, inner)};")
                lines.close()
            else:
                lines.do(f"const {kind} {name} = {self.row(ins.op, ins.attrs, tuple(a.dtype for a in ins.args), ins.dtype, args)};")
                names[ins] = name


def _clean(x: Any) -> str:
    return "".join(c if c.isalnum() else "_" for c in str(x))
