"""Scalars of which it is known whether a processor predicts them.

In the steps of loops indices are wrapped and clamped, and floats saturate where they become integers. Almost all of them are in range. So a step
compares once, and goes on with the index as it is, or with the machine's own conversion; what mends the others is on a path of its own. Minima and
maxima are the other way round.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from hologram.backends.llvm.text import FunctionText, Reg, vector
from hologram.dtypes import DType
from hologram.graph.kernel.ir import Value
from hologram.ir.instruction import Ins


class Clamped(NamedTuple):
    """``value`` where it is from 0 to ``most``."""

    value: Ins
    most: int


def clamped(ins: Ins) -> Clamped | None:
    """A signed integer between 0 and a number: ``min(max(x, 0), most)``, where ``x`` may be ``select(i < 0, i + n, i)``."""
    if ins.opname != "min" or ins.dtype.kind != "i":
        return None
    low, most = _with_number(ins)
    if not isinstance(low, Ins) or most is None or most < 0 or low.opname != "max":
        return None
    x, least = _with_number(low)
    return Clamped(_unwrapped(x), most) if isinstance(x, Ins) and least == 0 else None


def _unwrapped(x: Ins) -> Ins:
    """``i`` of an index that is counted from the end where ``i`` is negative."""
    if x.opname != "select":
        return x
    test, _, i = x.args
    is_test = isinstance(test, Ins) and test.opname == "lt" and test.args[0] is i and _number(test.args[1]) == 0
    return i if isinstance(i, Ins) and is_test else x


def is_wrapped(ins: Ins) -> bool:
    """Whether an index is another one, or that and an extent where it is negative."""
    return bool(ins.name) and ins.opname == "select" and _unwrapped(ins) is not ins


def _with_number(ins: Ins) -> tuple[Value | None, int | None]:
    """The operand of a commutative op that is no number, and the other one, which is."""
    x, y = ins.args
    if _number(y) is not None:
        return x, _number(y)
    return (y, _number(x)) if _number(x) is not None else (None, None)


def _number(v: Any) -> int | None:
    return int(np.frombuffer(v.attrs[1], v.dtype.np)[0]) if isinstance(v, Ins) and v.op == "const" else None


def is_bound(ins: Ins) -> bool:
    """Whether an integer is another one, or one that no value surpasses, as ``shorten_recurrences`` makes it."""
    if ins.opname != "select" or ins.dtype.kind not in "iu":
        return False
    ends = np.iinfo(ins.dtype.np)
    return any(_number(v) in (ends.min, ends.max) for v in ins.args[1:])


def bound(f: FunctionText, select: str, t: str) -> Reg:
    """A bound as one value: LLVM would compare with both of what it may be, and choose between the results when the last value comes."""
    return f.emit(f"call {t} @llvm.expect.{t}({t} {f.emit(select, t, 1).text}, {t} 0)", t, 1)


def wrapped(f: FunctionText, x: Reg, from_end: Reg) -> Reg:
    """``x`` where it is not negative, else ``from_end``, by a branch."""
    return f.branch_around(f.emit(f"icmp slt {x.typed}, 0", "i1", 1), lambda: f.emit(f"freeze {from_end.typed}", x.type, 1), x)


def or_clamped(f: FunctionText, x: Reg, most: int, slow: Callable[[], Reg]) -> Reg:
    """``x`` where it is from 0 to ``most``, else ``slow()``."""
    outside = f.emit(f"icmp ugt {x.typed}, {most}", "i1", 1)
    return f.branch_around(outside, slow, x)


def converts(d: DType) -> bool:
    """Whether :func:`converted` makes integers of this type, which 64 signed bits hold."""
    return d.kind in "iu" and d.bits + (d.kind == "u") <= 64


def converted(f: FunctionText, x: Reg, to: DType, slow: Callable[[], Reg]) -> Reg:
    """A float or double, truncated, as an integer; ``slow()`` where that is beyond the ends of its type, or no number.

    An instruction of x86-64 makes 64 bits of it. What they cannot hold becomes the least of them, which no narrower type contains.
    """
    count, name = (2, "sse2.cvttsd2si64") if x.type == "double" else (4, "sse.cvttss2si64")
    lanes = f.emit(f"insertelement {vector(x.type, count)} poison, {x.typed}, i64 0", x.type, count)
    wide = f.emit(f"call i64 @llvm.x86.{name}({lanes.typed})", "i64", 1)
    if to.bits == 64:
        return f.branch_around(f.emit(f"icmp eq i64 {wide.text}, {-(2**63)}", "i1", 1), slow, wide)
    narrow = f.emit(f"trunc i64 {wide.text} to i{to.bits}", f"i{to.bits}", 1)
    again = f.emit(f"{'s' if to.kind == 'i' else 'z'}ext {narrow.typed} to i64", "i64", 1)
    return f.branch_around(f.emit(f"icmp ne i64 {wide.text}, {again.text}", "i1", 1), slow, narrow)


def extreme(f: FunctionText, x: Reg, y: Reg, d: DType, greater: bool) -> Reg:
    """The greater or the less of two integers, without a branch.

    Nothing predicts which of two computed values is less. LLVM does not know that, and makes branches of minima in loops (x86-cmov-conversion),
    unless the choice is marked as unpredictable. Its own form of a minimum cannot carry the mark. So the comparison is hidden, as one of even
    chances, from the passes that would make one of it.
    """
    order = "ug" if d.kind == "u" else "sg"
    first = f.emit(f"icmp {order}t {(x if greater else y).typed}, {(y if greater else x).text}", "i1", 1)
    even = f.emit(f"call i1 @llvm.expect.with.probability.i1({first.typed}, i1 true, double 0.5)", "i1", 1)
    return f.emit(f"select {even.typed}, {x.typed}, {y.typed}, !unpredictable !1", x.type, 1)
