"""One scalar instruction of kernel IR as LLVM text, at any number of lanes: table rows, casts, and called decompositions."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from hologram import dtypes
from hologram.backends.llvm import float_extremes, integer_lowering, predicted, rounding
from hologram.backends.llvm.text import FunctionText, Reg, float_bits, joined_pieces, narrowed, pieces, scalar_type, suffix, vector
from hologram.backends.llvm.toolchain.target import Target
from hologram.dtypes import DType, FloatFormat
from hologram.ir.expression_builder import Rare, decompose
from hologram.ir.instruction import Ins
from hologram.ir.op import TABLE, Op
from hologram.primitives.complex import parts as complexes

SINGLE = dtypes.float32.format
FLAGS = {"exact": "", "standard": "", "fast": "nsz "}


class Machine(NamedTuple):
    """What helper functions depend on of the machine."""

    native_half: bool
    rounds: bool
    saturates: bool
    vector_bytes: int
    is_x86_64: bool


class Functions:
    """The helper functions of one module: each decomposition once for each width, and what is rare in it apart."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.text: dict[str, str] = {}

    @staticmethod
    def of(target: Target) -> Functions:
        return Functions(Machine(target.native_half, target.rounds, target.saturates, target.vector_bytes, target.architecture == "x86_64"))

    def call(self, ins: Ins, width: int) -> str:
        """The name of the function that computes a decomposed row on ``width`` lanes."""
        fixed = tuple(i for i, a in enumerate(ins.args) if _is_constant(a))
        name, texts = _decomposed(ins.op, tuple(a.dtype for a in ins.args), ins.attrs, fixed, width, self.machine)
        self.text.update(texts)
        return name

    def outlined(self, tag: str, ins: Rare, captured: dict[Ins, Reg], width: int) -> str:
        """The name of the function that computes the slow value of ``ins`` from what its body has ``captured``, on ``width`` lanes. ``tag`` names
        it."""
        name = f"@hg.{tag}.v{width}"
        f = FunctionText()
        env = {v: Reg(f"%p{i}", r.type, 1 if r.width == 1 else width) for i, (v, r) in enumerate(captured.items())}
        signature = ", ".join(r.typed for r in env.values())
        code = ScalarCode(f, self, "", tag=tag)
        code.straight(ins.body, env, width)
        result = code.operand(ins.slow, env, width)
        f.do(f"ret {result.typed}")
        self.text[name] = f.text(f"define internal {vector(result.type, width)} {name}({signature}) #2")
        return name


@lru_cache(maxsize=1024)
def _decomposed(
    op: Op, types: tuple[DType, ...], attrs: tuple[Any, ...], fixed: tuple[int, ...], width: int, machine: Machine
) -> tuple[str, dict[str, str]]:
    """The name of the function of a decomposed row, and the texts of all functions that it takes, its own among them. The operands that are ``fixed``
    are constants."""
    functions = Functions(machine)
    tag = ".".join([op.name, *(d.name for d in types), *(_clean(a) for a in attrs), *(f"c{i}" for i in fixed)])
    name = f"@hg.{tag}.v{width}"
    params, body, out = _decomposition(op, types, attrs)
    f = FunctionText()
    env: dict[Any, Reg] = {p: Reg(f"%p{i}", scalar_type(p.dtype), width) for i, p in enumerate(params)}
    signature = ", ".join(env[p].typed for p in params)
    code = ScalarCode(f, functions, "", {params[i] for i in fixed}, tag)
    code.straight(body, env, width)
    result = code.operand(out, env, width)
    f.do(f"ret {result.typed}")
    functions.text[name] = f.text(f"define internal {vector(result.type, width)} {name}({signature}) #1")
    return name, functions.text


@lru_cache(maxsize=1024)
def _decomposition(op: Op, types: tuple[DType, ...], attrs: tuple[Any, ...]) -> tuple[list[Ins], list[Any], Ins]:
    return decompose(op, types, attrs)


def _captured(ins: Rare, env: dict[Any, Reg]) -> dict[Ins, Reg]:
    """The values from outside that the body of ``ins`` reads, in its order."""
    found: dict[Ins, Reg] = {}
    made: set[Any] = set()

    def read(v: Any) -> None:
        if v not in made and not _is_constant(v):
            found[v] = env[v]

    def walk(body: list[Any]) -> None:
        for i in body:
            for a in i.args:
                read(a)
            if isinstance(i, Rare):
                walk(i.body)
                read(i.slow)
            made.add(i)

    walk(ins.body)
    read(ins.slow)
    return found


def _may_be_taken_for_min(ins: Ins) -> bool:
    """Whether LLVM may make a min or max of one type and a cast out of a choice between values of which one is cast: it swaps the operands of the
    comparison there, so zeros of two signs are chosen between the other way round. Arguments of functions may come from casts."""
    test = ins.args[0]
    if not isinstance(test, Ins) or test.opname not in ("lt", "le", "gt", "ge") or test.args[0].dtype.kind != "f":
        return False
    if ins.dtype.kind != "f" or any(_is_constant(a) and np.frombuffer(a.attrs[1], a.dtype.np)[0] != 0 for a in test.args):
        return False
    return any(map(_may_be_cast, (*test.args, *ins.args[1:])))


def _may_be_cast(v: Any) -> bool:
    """Whether a value comes, or may come, from another type."""
    return isinstance(v, Ins) and v.opname in ("param", "cast")


def _is_constant(v: Any) -> bool:
    return isinstance(v, Ins) and v.op == "const"


def _single_bits(value: float) -> int:
    return int(np.float32(value).view(np.uint32))


def _clean(x: Any) -> str:
    return "".join(c if c.isalnum() else "_" for c in str(x))


def constant(d: DType, raw: bytes) -> Reg:
    """A literal of type ``d`` from its bits."""
    t = scalar_type(d)
    if d is dtypes.bool_:
        return Reg("true" if raw[0] else "false", t, 1)
    if t.startswith("i"):  # complex numbers are only moved, as bits
        return Reg(str(int.from_bytes(raw, "little", signed=d.kind == "i")), t, 1)
    value = np.frombuffer(raw, d.np)[0]
    if np.isnan(value):
        if t == "half":
            return Reg(float_bits(float("nan"), t), t, 1)
        return Reg("0x7FF8000000000000", t, 1)
    return Reg(float_bits(float(value), t), t, 1)


class ScalarCode:
    """Writes instructions into a function. ``env`` maps IR values to registers; ``known``: values that LLVM finds to be constants; ``tag`` names
    what the function computes."""

    def __init__(self, f: FunctionText, functions: Functions, flags: str, known: Iterable[Any] = (), tag: str = "") -> None:
        self.f, self.functions, self.flags, self.known = f, functions, flags, set(known)
        self.is_inlined = False  # whether what is written becomes part of a loop of the graph function
        self.machine, self.tag, self.rares = functions.machine, tag, 0

    def operand(self, v: Any, env: dict[Any, Reg], width: int) -> Reg:
        r = env.get(v)
        if r is None:
            if isinstance(v, Ins) and v.op == "const":
                r = env[v] = constant(v.dtype, v.attrs[1])
            else:
                raise AssertionError(f"value {v.opname if isinstance(v, Ins) else v} used before it was computed")
        return self.f.splat(r, width) if width != 1 else r

    def straight(self, body: list[Any], env: dict[Any, Reg], width: int) -> None:
        for ins in body:
            if isinstance(ins, Rare):
                env[ins] = self.rare(ins, env, width)
            elif ins.op != "const":
                env[ins] = self.row(ins, env, width)

    def rare(self, ins: Rare, env: dict[Any, Reg], width: int) -> Reg:
        """A branch around the call of a function for the slow value. LLVM compiles long integer code of wide vectors slowly, and the slow value is
        not worth that at every use: the function exists once, and takes as many lanes as a register has."""
        f = self.f
        condition, fast = (self.operand(a, env, width) for a in ins.args)
        any_lane = condition
        if width > 1:
            any_lane = f.emit(f"call i1 @llvm.vector.reduce.or.v{width}i1({condition.typed})", "i1", 1)
        captured = _captured(ins, env)
        lanes = 1 if width == 1 else self.machine.vector_bytes // max((v.dtype.itemsize for v in captured), default=8)
        name = self.functions.outlined(f"{self.tag}.rare{self.rares}", ins, captured, lanes)
        self.rares += 1

        def slow() -> Reg:
            count = max(1, width // lanes)
            parts = zip(*(pieces(f, r, lanes) if r.width > 1 else [r] * count for r in captured.values()), strict=True)
            t = vector(fast.type, lanes)
            values = [f.emit(f"call {t} {name}({', '.join(r.typed for r in part)})", fast.type, lanes) for part in parts]
            value = joined_pieces(f, values) if width >= lanes else narrowed(f, values[0], width)
            return f.emit(f"select {condition.typed}, {value.typed}, {fast.typed}", fast.type, width)

        return f.branch_around(any_lane, slow, fast)

    def row(self, ins: Ins, env: dict[Any, Reg], width: int) -> Reg:
        """An elementwise row; uniform where every operand is."""
        op: Any = ins.op
        if all(env[a].width == 1 if a in env else True for a in ins.args):
            width = 1
        args = [self.operand(a, env, width) for a in ins.args]
        if op.name == "select" and _may_be_taken_for_min(ins):
            args[0] = self._compared_apart(ins.args[0], env, args[0].width)
        if all(map(self._knows, ins.args)):
            self.known.add(ins)
        if op.name == "cast":
            return self.cast(args[0], ins.args[0].dtype, ins.dtype)
        if op is complexes.complex_:
            return self.joined(args[0], args[1], ins.dtype)
        if op is complexes.real or op is complexes.imag:
            return self.part(args[0], int(op is complexes.imag), ins, env)
        t = scalar_type(ins.dtype)
        if op.spelling is None:
            name = self.functions.call(ins, width)
            return self.f.emit(f"call {vector(t, width)} {name}({', '.join(a.typed for a in args)})", t, width)
        if op.name in rounding.OPS and not self.machine.rounds:
            return rounding.rounded(self.f, op.name, args[0])
        d = ins.args[-1].dtype if op.name == "select" else ins.args[0].dtype
        if op.name in ("div_trunc", "rem_trunc") and d.is_integer and integer_lowering.divides(d, width) and not self._knows(ins.args[1]):
            return integer_lowering.divided(self.f, args[0], args[1], d, op.name == "rem_trunc")
        if op.name in ("max", "min") and self.machine.is_x86_64 and float_extremes.has_short_form(t) and not any(map(_is_constant, ins.args)):
            return float_extremes.extreme(self.f, args[0], args[1], op.name == "max", any(map(_may_be_cast, ins.args)))
        found = self._predicted(ins, args, env) if width == 1 else None
        return found or self.f.emit(self.spell(op, d, ins.dtype, args, width), t, width)

    def _predicted(self, ins: Ins, args: list[Reg], env: dict[Any, Reg]) -> Reg | None:
        """A scalar by a short way to what it usually is; None where there is none."""
        op: Any = ins.op
        if op.name in ("max", "min") and ins.dtype.kind in "iu" and not any(map(self._knows, ins.args)):
            return predicted.extreme(self.f, args[0], args[1], ins.dtype, op.name == "max")
        if predicted.is_bound(ins):
            return predicted.bound(self.f, self.spell(op, ins.dtype, ins.dtype, args, 1), args[1].type)
        if not self.is_inlined:
            return None
        usual = predicted.clamped(ins)
        if usual is not None:
            x = self.operand(usual.value, env, 1)
            return predicted.or_clamped(self.f, x, usual.most, lambda: self.f.emit(self.spell(op, ins.dtype, ins.dtype, args, 1), args[0].type, 1))
        return predicted.wrapped(self.f, args[2], args[1]) if predicted.is_wrapped(ins) else None

    def _compared_apart(self, test: Ins, env: dict[Any, Reg], width: int) -> Reg:
        """A comparison of which LLVM does not see what is compared."""
        key = "apart", test, width
        if key not in env:
            x, y = (self.operand(a, env, width) for a in test.args)
            name = f"@llvm.arithmetic.fence.{suffix(x.type, width)}"
            x = self.f.emit(f"call {vector(x.type, width)} {name}({x.typed})", x.type, width)
            env[key] = self.f.emit(self.spell(test.op, test.args[0].dtype, test.dtype, [x, y], width), "i1", width)
        return env[key]

    def _knows(self, v: Any) -> bool:
        return v in self.known or _is_constant(v)

    def spell(self, op: Any, d: DType, out: DType, args: list[Reg], width: int) -> str:
        t = scalar_type(d)
        ones = "splat (i1 true)" if d.kind == "b" and width > 1 else "true" if d.kind == "b" else f"splat ({t} -1)" if width > 1 else "-1"
        template = op.spelling[d.kind]["llvm"]
        if width == 1:
            template = template.replace("zeroinitializer", "0")
        return template.format(
            *(a.text for a in args),
            t=vector(t, width),
            T=vector(scalar_type(out), width),
            c=vector("i1", width),
            s=suffix(t, width),
            k="s" if d.kind == "i" else "u",
            ones=ones,
            fl=self.flags,
        )

    def fused(self, d: DType, args: list[Reg]) -> Reg:
        """The product of two values and a third, by one fused multiply-add where the machine has it."""
        return self.f.emit(self.spell(TABLE["mad"], d, d, args, args[-1].width), scalar_type(d), args[-1].width)

    # --- complex numbers, which are the bits of their two parts, the real one first ---------------------------

    def part(self, x: Reg, which: int, ins: Ins, env: dict[Any, Reg]) -> Reg:
        """The real or imaginary part; both are picked from one view of the bits."""
        t, w = scalar_type(ins.dtype), x.width
        key = "parts", ins.args[0], w
        if key not in env:
            env[key] = self.f.emit(f"bitcast {x.typed} to {vector(t, 2 * w)}", t, 2 * w)
        if w == 1:
            return self.f.emit(f"extractelement {env[key].typed}, i64 {which}", t, 1)
        order = ", ".join(f"i32 {2 * i + which}" for i in range(w))
        return self.f.emit(f"shufflevector {env[key].typed}, {vector(t, 2 * w)} poison, <{w} x i32> <{order}>", t, w)

    def joined(self, re: Reg, im: Reg, d: DType) -> Reg:
        f, t, w = self.f, re.type, re.width
        if w == 1:
            one = f.emit(f"insertelement {vector(t, 2)} poison, {re.typed}, i64 0", t, 2)
            both = f.emit(f"insertelement {one.typed}, {im.typed}, i64 1", t, 2)
        else:
            order = ", ".join(f"i32 {i}, i32 {w + i}" for i in range(w))
            both = f.emit(f"shufflevector {re.typed}, {im.typed}, <{2 * w} x i32> <{order}>", t, 2 * w)
        return f.emit(f"bitcast {both.typed} to {vector(scalar_type(d), w)}", scalar_type(d), w)

    # --- casts ---------------------------------------------------------------------------------------------------------

    def cast(self, x: Reg, a: DType, b: DType) -> Reg:
        """As ``primitives.scalar.elementwise.cast_reference`` says: truncate and saturate, wrap, or test against zero."""
        f, w = self.f, x.width
        if a is b:
            return x
        if b.kind == "b":
            zero = vector(x.type, w)
            if a.is_float:
                x, a = self._widened(x, a)
                return f.emit(f"fcmp une {vector(x.type, w)} {x.text}, {'zeroinitializer' if w > 1 else '0.0'}", "i1", w)
            return f.emit(f"icmp ne {zero} {x.text}, {'zeroinitializer' if w > 1 else '0'}", "i1", w)
        if a.is_float and b.is_float:
            return self._float_to_float(x, a, b)
        if a.is_float:
            x, a = self._widened(x, a)
            if w > 1 and not self.machine.saturates:
                return integer_lowering.saturated(f, x, b)
            s, t = ("s" if b.kind == "i" else "u"), scalar_type(b)

            def saturated() -> Reg:
                return f.emit(f"call {vector(t, w)} @llvm.fpto{s}i.sat.{suffix(t, w)}.{suffix(x.type, w)}({x.typed})", t, w)

            in_step = self.is_inlined and w == 1 and self.machine.is_x86_64 and predicted.converts(b)
            return predicted.converted(f, x, b, saturated) if in_step else saturated()
        if b.is_float:
            return self._integer_to_float(x, a, b)
        t = scalar_type(b)
        if b.bits < a.bits and a.kind != "b":
            return f.emit(f"trunc {x.typed} to {vector(t, w)}", t, w)
        if b.bits == a.bits and a.kind != "b":
            return x
        return f.emit(f"{'sext' if a.kind == 'i' else 'zext'} {x.typed} to {vector(t, w)}", t, w)

    def _integer_to_float(self, x: Reg, a: DType, b: DType) -> Reg:
        to = scalar_type(dtypes.compute_type(b))
        if b.is_narrow_float and a.bits > 16:  # through float64, rounded once at the end
            to = "double"
            if a.bits == 64:
                return self._wide_integer_to_narrow(x, a, b)
        r = self.f.emit(f"{'si' if a.kind == 'i' else 'ui'}tofp {x.typed} to {vector(to, x.width)}", to, x.width)
        if not b.is_narrow_float:
            return r
        return self._float_to_float(r, dtypes.float64 if to == "double" else dtypes.float32, b)

    def _wide_integer_to_narrow(self, x: Reg, a: DType, b: DType) -> Reg:
        """64-bit integers do not fit float64: a sticky lowest bit keeps the final rounding right."""
        f, w, t = self.f, x.width, vector(x.type, x.width)

        def imm(v: int) -> str:
            return f"splat (i64 {v})" if w > 1 else str(v)

        low = f.emit(f"and {t} {x.text}, {imm(2047)}", x.type, w)
        sticky = f.emit(f"icmp ne {t} {low.text}, {imm(0)}", "i1", w)
        bit = f.emit(f"zext {sticky.typed} to {t}", x.type, w)
        high = f.emit(f"and {t} {x.text}, {imm(-2048)}", x.type, w)
        big = f.emit(f"or {t} {high.text}, {f.emit(f'shl {t} {bit.text}, {imm(11)}', x.type, w).text}", x.type, w)
        magnitude = f.emit(f"call {t} @llvm.abs.{suffix('i64', w)}({t} {x.text}, i1 false)", x.type, w) if a.kind == "i" else x
        large = f.emit(f"icmp ugt {t} {magnitude.text}, {imm(1 << 52)}", "i1", w)
        chosen = f.emit(f"select {large.typed}, {big.typed}, {x.typed}", x.type, w)
        r = f.emit(f"{'si' if a.kind == 'i' else 'ui'}tofp {chosen.typed} to {vector('double', w)}", "double", w)
        return self._float_to_float(r, dtypes.float64, b)

    def _widened(self, x: Reg, a: DType) -> tuple[Reg, DType]:
        if a.is_narrow_float:
            return self._float_to_float(x, a, dtypes.float32), dtypes.float32
        return x, a

    def _float_to_float(self, x: Reg, a: DType, b: DType) -> Reg:
        f, w = self.f, x.width
        single, double = vector("float", w), vector("double", w)
        if a.is_narrow_float:
            x = self._to_single(x, a)
            return x if b is dtypes.float32 else self._float_to_float(x, dtypes.float32, b)
        if b is dtypes.float64:
            return f.emit(f"fpext {x.typed} to {double}", "double", w)
        if b is dtypes.float32:
            return f.emit(f"fptrunc {x.typed} to {single}", "float", w)
        if a is dtypes.float64:
            x = self._round_to_odd(x)
        return self._from_single(x, b)

    def _imm(self, value: int, width: int, t: str = "i32") -> str:
        return f"splat ({t} {value})" if width > 1 else str(value)

    def _round_to_odd(self, x: Reg) -> Reg:
        """float64 to float32 with an inexact result's last bit set, so that a second rounding is as good as one."""
        f, w = self.f, x.width
        i32, i1 = vector("i32", w), "i1"
        near = f.emit(f"fptrunc {x.typed} to {vector('float', w)}", "float", w)
        back = f.emit(f"fpext {near.typed} to {vector('double', w)}", "double", w)
        bits = f.emit(f"bitcast {near.typed} to {i32}", "i32", w)
        inexact = f.emit(f"fcmp one {back.typed}, {x.text}", i1, w)
        ax = f.emit(f"call {vector('double', w)} @llvm.fabs.{suffix('double', w)}({x.typed})", "double", w)
        ab = f.emit(f"call {vector('double', w)} @llvm.fabs.{suffix('double', w)}({back.typed})", "double", w)
        up = f.emit(f"fcmp ogt {ab.typed}, {ax.text}", i1, w)  # rounded away from zero: step back, then set the bit
        step = f.emit(f"zext {up.typed} to {i32}", "i32", w)
        low = f.emit(f"sub {i32} {bits.text}, {step.text}", "i32", w)
        odd = f.emit(f"or {i32} {low.text}, {self._imm(1, w)}", "i32", w)
        out = f.emit(f"select {inexact.typed}, {odd.typed}, {bits.typed}", "i32", w)
        return f.emit(f"bitcast {out.typed} to {vector('float', w)}", "float", w)

    def _to_single(self, x: Reg, a: DType) -> Reg:
        f, w = self.f, x.width
        single, i32 = vector("float", w), vector("i32", w)
        if a is dtypes.bfloat16:
            wide = f.emit(f"zext {x.typed} to {i32}", "i32", w)
            high = f.emit(f"shl {i32} {wide.text}, {self._imm(16, w)}", "i32", w)
            return f.emit(f"bitcast {high.typed} to {single}", "float", w)
        if a is dtypes.float16 and self.machine.native_half:
            return f.emit(f"fpext {x.typed} to {single}", "float", w)
        own = f"i{a.bits}"
        h = x if x.type == own else f.emit(f"bitcast {x.typed} to {vector(own, w)}", own, w)
        return self._to_single_by_bits(f.emit(f"zext {h.typed} to {i32}", "i32", w), a.format)

    def _to_single_by_bits(self, wide: Reg, form: FloatFormat) -> Reg:
        """Exponent and fraction move up; a product with a power of two mends the bias and normalises subnormals."""
        f, w = self.f, wide.width
        single, i32 = vector("float", w), vector("i32", w)
        sign_bit = 1 << (form.bits - 1)
        body = f.emit(f"and {i32} {wide.text}, {self._imm(sign_bit - 1, w)}", "i32", w)
        moved = f.emit(f"shl {i32} {body.text}, {self._imm(SINGLE.fraction_bits - form.fraction_bits, w)}", "i32", w)
        small = f.emit(f"bitcast {moved.typed} to {single}", "float", w)
        scale = Reg(float_bits(2.0 ** (SINGLE.bias - form.bias), "float"), "float", 1)
        scaled = f.emit(f"fmul {small.typed}, {f.splat(scale, w).text}", "float", w)
        bits = f.emit(f"bitcast {scaled.typed} to {i32}", "i32", w)
        chosen = bits
        if form.has_infinity:
            infinite = f.emit(f"icmp eq {i32} {body.text}, {self._imm(form.beyond, w)}", "i1", w)
            chosen = f.emit(f"select {infinite.typed}, {i32} {self._imm(SINGLE.beyond, w)}, {chosen.typed}", "i32", w)
        nan = f.emit(f"icmp ugt {i32} {body.text}, {self._imm(form.greatest, w)}", "i1", w)
        chosen = f.emit(f"select {nan.typed}, {i32} {self._imm(SINGLE.nan, w)}, {chosen.typed}", "i32", w)
        sign = f.emit(f"and {i32} {wide.text}, {self._imm(sign_bit, w)}", "i32", w)
        sign = f.emit(f"shl {i32} {sign.text}, {self._imm(32 - form.bits, w)}", "i32", w)
        out = f.emit(f"or {i32} {chosen.text}, {sign.text}", "i32", w)
        return f.emit(f"bitcast {out.typed} to {single}", "float", w)

    def _from_single(self, x: Reg, b: DType) -> Reg:
        f, w = self.f, x.width
        i32, i16 = vector("i32", w), vector("i16", w)
        if b is dtypes.float16 and self.machine.native_half:
            return f.emit(f"fptrunc {x.typed} to {vector('half', w)}", "half", w)
        bits = f.emit(f"bitcast {x.typed} to {i32}", "i32", w)

        def op(name: str, a: Reg, value: int) -> Reg:
            return f.emit(f"{name} {i32} {a.text}, {self._imm(value, w)}", "i32", w)

        if b is dtypes.bfloat16:
            odd = op("and", op("lshr", bits, 16), 1)
            rounded = f.emit(f"add {i32} {op('add', bits, 0x7FFF).text}, {odd.text}", "i32", w)
            nan = f.emit(f"fcmp uno {x.typed}, {x.text}", "i1", w)
            quiet = op("or", bits, 0x400000)
            chosen = f.emit(f"select {nan.typed}, {quiet.typed}, {rounded.typed}", "i32", w)
            return f.emit(f"trunc {op('lshr', chosen, 16).typed} to {i16}", "i16", w)
        out = self._from_single_by_bits(bits, b.format, op)
        return out if b is not dtypes.float16 else f.emit(f"bitcast {out.typed} to {vector('half', w)}", "half", w)

    def _from_single_by_bits(self, bits: Reg, form: FloatFormat, op: Any) -> Reg:
        f, w = self.f, bits.width
        i32, own = vector("i32", w), f"i{form.bits}"
        dropped = SINGLE.fraction_bits - form.fraction_bits
        magnitude = op("and", bits, 0x7FFFFFFF)
        # normal results: rebias, round half to even on the last bit that is kept
        odd = op("and", op("lshr", magnitude, dropped), 1)
        biased = op("add", magnitude, (form.bias - SINGLE.bias) * (1 << SINGLE.fraction_bits) + (1 << (dropped - 1)) - 1)
        normal = op("lshr", f.emit(f"add {i32} {biased.text}, {odd.text}", "i32", w), dropped)
        large = f.emit(f"icmp ugt {i32} {normal.text}, {self._imm(form.beyond, w)}", "i1", w)
        normal = f.emit(f"select {large.typed}, {i32} {self._imm(form.beyond, w)}, {normal.typed}", "i32", w)
        small = f.emit(f"icmp ult {i32} {magnitude.text}, {self._imm(_single_bits(form.least_normal), w)}", "i1", w)
        r = f.emit(f"select {small.typed}, {self._subnormal(magnitude, form, op).typed}, {normal.typed}", "i32", w)
        nan = f.emit(f"icmp ugt {i32} {magnitude.text}, {self._imm(SINGLE.beyond, w)}", "i1", w)
        r = f.emit(f"select {nan.typed}, {i32} {self._imm(form.nan, w)}, {r.typed}", "i32", w)
        sign = op("and", op("lshr", bits, 32 - form.bits), 1 << (form.bits - 1))
        joined = f.emit(f"or {i32} {r.text}, {sign.text}", "i32", w)
        return f.emit(f"trunc {joined.typed} to {vector(own, w)}", own, w)

    def _subnormal(self, magnitude: Reg, form: FloatFormat, op: Any) -> Reg:
        """A sum with a power of two whose last bit is that of the format's subnormal numbers, so that the machine rounds."""
        f, w = self.f, magnitude.width
        single = vector("float", w)
        power = 2.0 ** (form.least_exponent - form.fraction_bits + SINGLE.fraction_bits)
        x = f.emit(f"bitcast {magnitude.typed} to {single}", "float", w)
        total = f.emit(f"fadd {x.typed}, {f.splat(Reg(float_bits(power, 'float'), 'float', 1), w).text}", "float", w)
        return op("sub", f.emit(f"bitcast {total.typed} to {vector('i32', w)}", "i32", w), _single_bits(power))
