"""Minima and maxima of floats on x86-64.

The machine's own minimum gives its second operand where an operand is NaN and where both are zeros. In both orders it gives each of the two there,
and one number everywhere else. So the bits of both answers, joined by or, are NaN where an operand is, and -0 where one of two zeros is. These are
three short instructions; what LLVM makes of ``llvm.minimum`` takes the sign of a scalar through a general register. A maximum is the negated minimum
of negated operands.
"""

from __future__ import annotations

from hologram.backends.llvm.text import FunctionText, Reg, suffix, vector

_INTEGERS = {"float": "i32", "double": "i64"}


def has_short_form(t: str) -> bool:
    """Whether :func:`extreme` takes floats of this LLVM type."""
    return t in _INTEGERS


def extreme(f: FunctionText, x: Reg, y: Reg, greater: bool, may_be_cast: bool) -> Reg:
    """IEEE 754-2019 maximum or minimum of two registers of one type and width. ``may_be_cast``: an operand may come from another float type, in which
    LLVM would compute the minimum then, with other zeros."""
    if greater:
        x, y = _negated(f, x), _negated(f, y)
    if may_be_cast:
        x, y = _fenced(f, x), _fenced(f, y)
    integer = _INTEGERS[x.type]
    answers = [f.emit(f"bitcast {_lesser(f, a, b).typed} to {vector(integer, x.width)}", integer, x.width) for a, b in ((x, y), (y, x))]
    joined = f.int_op("or", *answers)
    least = f.emit(f"bitcast {joined.typed} to {vector(x.type, x.width)}", x.type, x.width)
    return _negated(f, least) if greater else least


def _lesser(f: FunctionText, x: Reg, y: Reg) -> Reg:
    """One instruction: the second operand where neither is less."""
    less = f.emit(f"fcmp olt {x.typed}, {y.text}", "i1", x.width)
    return f.emit(f"select {less.typed}, {x.typed}, {y.typed}", x.type, x.width)


def _negated(f: FunctionText, x: Reg) -> Reg:
    return f.emit(f"fneg {x.typed}", x.type, x.width)


def _fenced(f: FunctionText, x: Reg) -> Reg:
    return f.emit(f"call {vector(x.type, x.width)} @llvm.arithmetic.fence.{suffix(x.type, x.width)}({x.typed})", x.type, x.width)
