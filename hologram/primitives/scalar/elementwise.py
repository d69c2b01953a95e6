"""Elementwise ops that machines have: arithmetic, comparison, selection, bits, rounding and casts.

``spelling`` maps a kind of the first operand to an instruction for LLVM and an expression in C. Placeholders: ``{0} {1} {2}``
operands, ``{t}`` the operand type; for LLVM ``{s}`` its intrinsic suffix, ``{fl}`` floating-point flags, ``{k}`` the letter of
signedness; for C ``{w}`` the unsigned type in which integers wrap, ``{f}`` the suffix of functions. Semantics that a machine
instruction does not have by itself (shifts beyond the width, division by zero, float to integer) are decomposed in
:mod:`hologram.primitives.scalar.composite`, so no poison and no trap can be reached.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hologram import dtypes
from hologram.dtypes import DType
from hologram.errors import DTypeError, ShapeError
from hologram.ir.op import Op, Shape, register


def broadcast_shape(op: str, inputs: tuple[Any, ...]) -> Shape:
    """The common shape of elementwise inputs: all equal, or ``()``."""
    shape: Shape = ()
    for x in inputs:
        if x.shape:
            if shape and x.shape != shape:
                raise ShapeError(f"{op}: shapes {list(shape)} and {list(x.shape)} differ")
            shape = x.shape
    return shape


def same_type(name: str, kinds: str, result: DType | None = None, first: int = 0) -> Any:
    """Type rule: inputs from ``first`` on share one dtype of the given kinds; the result has it, or ``result``."""

    def infer(inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> tuple[Shape, DType]:
        d = inputs[first].dtype
        for x in inputs[first:]:
            if x.dtype is not d:
                raise DTypeError(f"{name}: element types {d} and {x.dtype} differ")
        if d.kind not in kinds:
            raise DTypeError(f"{name} does not take {d}")
        return broadcast_shape(name, inputs), result or d

    return infer


def quiet(f: Any) -> Any:
    """The reference computes narrow floats in float32, as every backend does, and raises no floating-point warning."""

    def reference(*xs: Any) -> Any:
        with np.errstate(all="ignore"):
            d = xs[0].dtype
            if d.itemsize < 4 and dtypes.of(d).is_narrow_float:  # tests compute references in wider types than there are here
                return np.asarray(f(*(x.astype(np.float32) if getattr(x, "dtype", None) == d else x for x in xs)))
            return np.asarray(f(*xs))

    reference.plain = f  # type: ignore[attr-defined]  # what it wraps, for types that need no wrapping
    return reference


def rounded(f: Any) -> Any:
    """As :func:`quiet`, with the result rounded to the type of the first operand."""
    inner = quiet(f)

    def reference(*xs: Any) -> Any:
        with np.errstate(all="ignore"):
            return inner(*xs).astype(xs[0].dtype)

    reference.plain = f  # type: ignore[attr-defined]
    return reference


def _define(
    name: str, arity: int, reference: Any, kinds: str, spelling: dict[str, str], c: str | dict[str, str], *, compare: bool = False, **more: Any
) -> Op:
    """``spelling`` for LLVM by kinds, ``c`` the same for C, or one text for all kinds."""
    rule = same_type(name, kinds, dtypes.bool_ if compare else None)
    in_c = {k: v for ks, v in ({kinds: c} if isinstance(c, str) else c).items() for k in ks}
    by_kind = {k: {"llvm": v, "c": in_c[k]} for ks, v in spelling.items() for k in ks}
    make = quiet if compare else rounded
    return register(Op(name, "elementwise", arity, rule, make(reference), spelling=by_kind, kinds=kinds, **more))


def _algebra(*words: str) -> frozenset[str]:
    return frozenset(words)


_CA = _algebra("commutative", "associative")
_CAI = _algebra("commutative", "associative", "idempotent")


def _intrinsic(name: str, arity: int, flags: str = "") -> str:
    """A call of LLVM's intrinsic ``name`` on ``arity`` operands of the operand type."""
    operands = ", ".join(f"{{t}} {{{i}}}" for i in range(arity))
    return f"call {flags}{{t}} @llvm.{name}.{{s}}({operands})"


# arithmetic; on bool, add is "or" and mul is "and"
_ADD = {"f": "fadd {fl}{t} {0}, {1}", "iu": "add {t} {0}, {1}", "b": "or {t} {0}, {1}"}
_MUL = {"f": "fmul {fl}{t} {0}, {1}", "iu": "mul {t} {0}, {1}", "b": "and {t} {0}, {1}"}
_WRAP = "({{t}})(({{w}}){{0}} {} ({{w}}){{1}})"  # integers in C: unsigned, where overflow wraps
_ADD_C = {"f": "{0} + {1}", "iu": _WRAP.format("+"), "b": "{0} | {1}"}
_SUB_C = {"f": "{0} - {1}", "iu": _WRAP.format("-")}
_MUL_C = {"f": "{0} * {1}", "iu": _WRAP.format("*"), "b": "{0} & {1}"}
_NEG_C = {"f": "-{0}", "iu": "({t})(({w})0 - ({w}){0})"}
_ABS_C = {"f": "fabs{f}({0})", "i": "{0} < 0 ? ({t})(({w})0 - ({w}){0}) : {0}", "u": "{0}"}
_ABS = {"f": _intrinsic("fabs", 1), "i": "call {t} @llvm.abs.{s}({t} {0}, i1 false)", "u": "freeze {t} {0}"}
add = _define("add", 2, np.add, "biuf", _ADD, _ADD_C, algebra=_CA, identity=0, symbol="+")
sub = _define("sub", 2, np.subtract, "iuf", {"f": "fsub {fl}{t} {0}, {1}", "iu": "sub {t} {0}, {1}"}, _SUB_C, symbol="-")
mul = _define("mul", 2, np.multiply, "biuf", _MUL, _MUL_C, algebra=_CA, identity=1, symbol="*")
div = _define("div", 2, np.divide, "f", {"f": "fdiv {fl}{t} {0}, {1}"}, "{0} / {1}", cost=4, symbol="/")
_NEG = {"f": "fneg {t} {0}", "iu": "sub {t} zeroinitializer, {0}"}
neg = _define("neg", 1, np.negative, "iuf", _NEG, _NEG_C, algebra=_algebra("involution"), symbol="-")
abs_ = _define("abs", 1, np.abs, "iuf", _ABS, _ABS_C, algebra=_algebra("idempotent"))
sqrt = _define("sqrt", 1, np.sqrt, "f", {"f": _intrinsic("sqrt", 1, "{fl}")}, "sqrt{f}({0})", cost=6, tests={"low": 0.0})
copysign = _define("copysign", 2, np.copysign, "f", {"f": _intrinsic("copysign", 2)}, "copysign{f}({0}, {1})")
# a*b + c, rounded once where the machine can, twice elsewhere; made of a user's own ops by hologram.graph.multiply_add, never in exact mode
_MAD = {"f": _intrinsic("fmuladd", 3, "{fl}")}
mad = _define("mad", 3, lambda a, b, c: a * b + c, "f", _MAD, "fma{f}({0}, {1}, {2})", exact=False, tests={"guard": "positive"})
# a*b as the term of a sum, which adds it with one rounding where the machine can; made by hologram.graph.multiply_add alone
fused_mul = _define("fused_mul", 2, np.multiply, "f", {"f": _MUL["f"]}, _MUL_C["f"], algebra=_algebra("commutative"))
PRODUCTS = (mul, fused_mul)


def _extreme(f: Any, sign: Any) -> Any:
    """IEEE 754-2019 maximum or minimum: NaN if either is NaN, and -0 < +0, which NumPy leaves open; ``sign`` settles equal zeros."""

    def reference(a: Any, b: Any) -> Any:
        out = f(a, b)
        if a.dtype.kind != "f" or np.count_nonzero(out) == out.size:
            return out
        zero = np.zeros_like(out)
        return np.where((a == 0) & (b == 0), np.where(sign(np.signbit(a), np.signbit(b)), -zero, zero), out)

    return reference


_MAX = {"f": _intrinsic("maximum", 2), "iu": _intrinsic("{k}max", 2), "b": "or {t} {0}, {1}"}
_MIN = {"f": _intrinsic("minimum", 2), "iu": _intrinsic("{k}min", 2), "b": "and {t} {0}, {1}"}
_MAX_C = {"f": "hg_max_{t}({0}, {1})", "iu": "{0} > {1} ? {0} : {1}", "b": "{0} | {1}"}
_MIN_C = {"f": "hg_min_{t}({0}, {1})", "iu": "{0} < {1} ? {0} : {1}", "b": "{0} & {1}"}
max_ = _define("max", 2, _extreme(np.maximum, np.logical_and), "biuf", _MAX, _MAX_C, algebra=_CAI)
min_ = _define("min", 2, _extreme(np.minimum, np.logical_or), "biuf", _MIN, _MIN_C, algebra=_CAI)

floor = _define("floor", 1, np.floor, "f", {"f": _intrinsic("floor", 1)}, "floor{f}({0})", algebra=_algebra("idempotent"))
ceil = _define("ceil", 1, np.ceil, "f", {"f": _intrinsic("ceil", 1)}, "ceil{f}({0})", algebra=_algebra("idempotent"))
trunc = _define("trunc", 1, np.trunc, "f", {"f": _intrinsic("trunc", 1)}, "trunc{f}({0})", algebra=_algebra("idempotent"))
round_ = _define("round", 1, np.rint, "f", {"f": _intrinsic("roundeven", 1)}, "rint{f}({0})", algebra=_algebra("idempotent"))


def _comparison(name: str, reference: Any, ordered: str, integer: str, symbol: str, **more: Any) -> Op:
    """With a NaN every comparison is false, but for ``ne``."""
    spelling = {"f": f"fcmp {ordered} {{t}} {{0}}, {{1}}", "biu": f"icmp {integer} {{t}} {{0}}, {{1}}"}
    return _define(name, 2, reference, "biuf", spelling, f"{{0}} {symbol} {{1}}", compare=True, symbol=symbol, **more)


eq = _comparison("eq", np.equal, "oeq", "eq", "==", algebra=_algebra("commutative"))
ne = _comparison("ne", np.not_equal, "une", "ne", "!=", algebra=_algebra("commutative"))
lt = _comparison("lt", np.less, "olt", "{k}lt", "<")
le = _comparison("le", np.less_equal, "ole", "{k}le", "<=")
gt = _comparison("gt", np.greater, "ogt", "{k}gt", ">")
ge = _comparison("ge", np.greater_equal, "oge", "{k}ge", ">=")

and_ = _define("and", 2, np.bitwise_and, "biu", {"biu": "and {t} {0}, {1}"}, "({t})({0} & {1})", algebra=_CAI, symbol="&")
or_ = _define("or", 2, np.bitwise_or, "biu", {"biu": "or {t} {0}, {1}"}, "({t})({0} | {1})", algebra=_CAI, symbol="|")
xor = _define("xor", 2, np.bitwise_xor, "biu", {"biu": "xor {t} {0}, {1}"}, "({t})({0} ^ {1})", algebra=_CA, symbol="^")
not_ = _define(
    "not", 1, np.invert, "biu", {"biu": "xor {t} {0}, {ones}"}, {"b": "!{0}", "iu": "({t})~{0}"}, algebra=_algebra("involution"), symbol="~"
)
# how many bits are 1, of unsigned integers
popcount = _define("popcount", 1, np.bitwise_count, "u", {"u": _intrinsic("ctpop", 1)}, "({t})hg_popcount_{w}({0})", cost=2)


def _infer_select(inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> tuple[Shape, DType]:
    c, a, b = inputs
    if c.dtype is not dtypes.bool_ or a.dtype is not b.dtype:
        raise DTypeError(f"select takes a bool and two values of one type, not {c.dtype}, {a.dtype}, {b.dtype}")
    return broadcast_shape("select", inputs), a.dtype


def _infer_cast(inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> tuple[Shape, DType]:
    return inputs[0].shape, dtypes.of(attrs[0])


def _infer_bitcast(inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> tuple[Shape, DType]:
    to = dtypes.of(attrs[0])
    if to.bits != inputs[0].dtype.bits or "b" in (to.kind, inputs[0].dtype.kind):
        raise DTypeError(f"bitcast from {inputs[0].dtype} to {to}: widths differ")
    return inputs[0].shape, to


def _select(c: Any, a: Any, b: Any) -> Any:
    return np.where(c, a, b).astype(a.dtype)


def _truncated_quotient(a: Any, b: Any) -> Any:
    """NumPy floors: one is put back where a remainder is left and the signs differ."""
    q = a // b
    return np.where((q * b != a) & ((a < 0) != (b < 0)), q + 1, q)


def cast_reference(x: Any, to: str) -> Any:
    """Float to integer truncates, saturates at the ends and maps NaN to 0; integers wrap; anything to bool is ``!= 0``.

    A conversion to a float rounds once.
    """
    d = dtypes.of(to)
    with np.errstate(all="ignore"):
        if d.kind in "iu" and x.dtype.kind not in "biu":
            info = np.iinfo(d.np)
            y = np.trunc(np.nan_to_num(x.astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf))
            low, high = float(info.min), float(info.max)
            inside = np.where((y > low) & (y < high), y, 0.0).astype(d.np)
            return np.where(y >= high, info.max, np.where(y <= low, info.min, inside)).astype(d.np)
        if d.kind == "b":
            return np.asarray(x != 0)
        return dtypes.rounded_once(x, d)


# the text of casts is the renderers' own
_SELECT = {k: {"llvm": "select {c} {0}, {t} {1}, {t} {2}", "c": "{0} ? {1} : {2}"} for k in "biufc"}
_CAST = {k: {"llvm": "cast", "c": "cast"} for k in "biufc"}
_BITCAST = {k: {"llvm": "bitcast {t} {0} to {T}", "c": "bitcast"} for k in "iuf"}
select = register(Op("select", "elementwise", 3, _infer_select, _select, spelling=_SELECT, kinds="b"))
cast = register(Op("cast", "elementwise", 1, _infer_cast, cast_reference, attrs=("dtype",), spelling=_CAST, kinds="biufc"))
bitcast = register(
    Op(
        "bitcast",
        "elementwise",
        1,
        _infer_bitcast,
        lambda x, to: x.view(dtypes.of(to).np),
        attrs=("dtype",),
        spelling=_BITCAST,
        kinds="iuf",
    )
)
# What users reach are the guarded forms of composite.py. These assume an integer divisor that is neither 0 nor the -1 of INT_MIN / -1,
# and a shift count from 0 to the width - 1. On floats ``rem_trunc`` is C's ``fmod``, which is exact and has no precondition.
_REM_C = {"f": "fmod{f}({0}, {1})", "iu": "({t})({0} % {1})"}
_REM = {"f": "frem {t} {0}, {1}", "iu": "{k}rem {t} {0}, {1}"}
div_trunc = _define("div_trunc", 2, _truncated_quotient, "iu", {"iu": "{k}div {t} {0}, {1}"}, "({t})({0} / {1})", cost=16, tests={"guard": "divisor"})
rem_trunc = _define("rem_trunc", 2, np.fmod, "iuf", _REM, _REM_C, cost=16, tests={"guard": "divisor"})
shl_low = _define("shl_low", 2, np.left_shift, "iu", {"iu": "shl {t} {0}, {1}"}, "({t})(({w}){0} << {1})", tests={"guard": "count"})
shr_low = _define(
    "shr_low", 2, np.right_shift, "iu", {"i": "ashr {t} {0}, {1}", "u": "lshr {t} {0}, {1}"}, "({t})({0} >> {1})", tests={"guard": "count"}
)
