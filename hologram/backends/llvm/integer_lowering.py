"""Vectors of integers where machines have none of the instructions: conversions from floats that saturate, and quotients.

LLVM takes both apart into scalars. Conversions here limit the float first, or choose the ends afterwards where the type cannot tell the largest
integer from its successor. Quotients of up to 32 bits are found in floats: x / y lies 1 / y or more below the next integer, and is rounded by less
than x / y times 2**-p in a type of p digits, which is less than that where x is below 2**p.
"""

from __future__ import annotations

from hologram.backends.llvm.text import FunctionText, Reg, float_bits, scalar_type, vector
from hologram.dtypes import DType

_DIGITS = {"float": 24, "double": 53}
_DIVIDED_IN = {8: "float", 16: "float", 32: "double"}


def saturated(f: FunctionText, x: Reg, to: DType) -> Reg:
    """Floats, truncated, as integers of type ``to``: those beyond its ends become the ends, NaN 0."""
    signed, bits = to.kind == "i", max(to.bits, 32)
    most = 2 ** (to.bits - signed) - 1
    least = float(-most - 1 if signed else 0)
    is_exact = most.bit_length() <= _DIGITS[x.type]

    def literal(value: float) -> Reg:
        return f.splat(Reg(float_bits(value, x.type), x.type, 1), x.width)

    def integer(value: int, t: str) -> Reg:
        return f.splat(Reg(str(value), t, 1), x.width)

    def choose(when: str, a: Reg, b: Reg, then: Reg, other: Reg) -> Reg:
        test = f.emit(f"fcmp {when} {a.typed}, {b.text}", "i1", x.width)
        return f.emit(f"select {test.typed}, {then.typed}, {other.typed}", then.type, x.width)

    t = f"i{bits}"
    inside = choose("ogt", x, literal(least), x, literal(least))  # NaN comes to the least, too
    if is_exact:
        inside = choose("olt", inside, literal(float(most)), inside, literal(float(most)))
    else:
        inside = choose("olt", inside, literal(float(most + 1)), inside, literal(0.0))
    is_signed = signed or bits > to.bits
    out = f.emit(f"fpto{'si' if is_signed else 'ui'} {inside.typed} to {vector(t, x.width)}", t, x.width)
    if not is_exact:
        out = choose("oge", x, literal(float(most + 1)), integer(most, t), out)
    if signed:
        out = choose("uno", x, x, integer(0, t), out)
    if bits == to.bits:
        return out
    return f.emit(f"trunc {out.typed} to {vector(scalar_type(to), x.width)}", scalar_type(to), x.width)


def divides(d: DType, width: int) -> bool:
    """Whether :func:`divided` serves: vectors of integers of up to 32 bits. Division by what LLVM knows is better left to it: it multiplies."""
    return width > 1 and d.bits in _DIVIDED_IN


def divided(f: FunctionText, x: Reg, y: Reg, d: DType, remainder: bool) -> Reg:
    """``x / y``, truncated, or what is left over; ``y`` is not 0, nor -1."""
    kind, width = ("s" if d.kind == "i" else "u"), x.width
    wide, whole = _DIVIDED_IN[d.bits], vector("i32", width)

    def widened(a: Reg) -> Reg:
        return f.emit(f"{kind}itofp {a.typed} to {vector(wide, width)}", wide, width)

    exact = f.emit(f"fdiv {widened(x).typed}, {widened(y).text}", wide, width)
    q = f.emit(f"fpto{kind}i {exact.typed} to {whole}", "i32", width)
    if d.bits < 32:
        q = f.emit(f"trunc {q.typed} to {vector(x.type, width)}", x.type, width)
    return f.int_op("sub", x, f.int_op("mul", q, y)) if remainder else q
