"""Rounding to whole numbers on machines without an instruction for it, where LLVM would call a C library that may not have the function.

Adding and subtracting 2**m, m being the stored bits of the mantissa, rounds a magnitude below it to the nearest integer, ties to even. Whatever
is as large is whole already, or infinite, or NaN.
"""

from __future__ import annotations

from hologram.backends.llvm.text import FunctionText, Reg, float_bits, suffix, vector

_MANTISSA = {"float": 23, "double": 52}
OPS = ("floor", "ceil", "trunc", "round")  # rows of the op table


def rounded(f: FunctionText, op: str, x: Reg) -> Reg:
    """The value of row ``op`` for ``x``, by operations that every machine has. Zeros keep their sign."""
    t, width = x.type, x.width
    whole = vector(t, width)

    def literal(value: float) -> Reg:
        return f.splat(Reg(float_bits(value, t), t, 1), width)

    def emit(text: str) -> Reg:
        return f.emit(text, t, width)

    def signed(magnitude: Reg) -> Reg:
        return emit(f"call {whole} @llvm.copysign.{suffix(t, width)}({magnitude.typed}, {x.typed})")

    def moved(y: Reg, when: str, than: Reg, by: float) -> Reg:
        """``y + by`` where y lies on that side of ``than``."""
        beyond = f.emit(f"fcmp {when} {y.typed}, {than.text}", "i1", width)
        step = emit(f"fadd {y.typed}, {literal(by).text}")
        return emit(f"select {beyond.typed}, {step.typed}, {y.typed}")

    big = literal(2.0 ** _MANTISSA[t])
    magnitude = emit(f"call {whole} @llvm.fabs.{suffix(t, width)}({x.typed})")
    up = emit(f"fadd {magnitude.typed}, {big.text}")
    nearest = emit(f"fsub {up.typed}, {big.text}")
    if op == "round":
        found = signed(nearest)
    elif op == "trunc":
        found = signed(moved(nearest, "ogt", magnitude, -1.0))
    elif op == "floor":
        found = moved(signed(nearest), "ogt", x, -1.0)
    else:
        found = signed(moved(signed(nearest), "olt", x, 1.0))
    small = f.emit(f"fcmp olt {magnitude.typed}, {big.text}", "i1", width)
    return emit(f"select {small.typed}, {found.typed}, {x.typed}")
