"""Accuracy (ULP) and speed (nanoseconds an element, in cache, one thread) of the vector math decompositions.

Each decomposition is written out as LLVM vector code on its own, without the compiler's other stages, once for this machine
and once for the same machine without FMA. ``python benchmarks/vector_math.py [name ...] [--points N] [--quick]`` prints a table.
"""

from __future__ import annotations

import ctypes
import struct
import time
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from hologram import dtypes
from hologram.dtypes import DType

_LLVM_TYPE = {"bool": "i1", "float32": "float", "float64": "double"} | {f"{u}int{b}": f"i{b}" for u in ("", "u") for b in (8, 16, 32, 64)}
_SUFFIX = {"float32": "f32", "float64": "f64"}


class Emitter:
    """The text of one LLVM function under construction, all values ``width`` lanes wide."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.lines: list[str] = []
        self.count = 0
        self.block = "body"
        self.declared: dict[str, str] = {}

    def type(self, d: DType) -> str:
        return f"<{self.width} x {_LLVM_TYPE[d.name]}>"

    def fresh(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def emit(self, text: str, dtype: DType) -> Vector:
        name = self.fresh()
        self.lines.append(f"  {name} = {text}")
        return Vector(self, name, dtype)

    def call(self, intrinsic: str, dtype: DType, *args: Vector) -> Vector:
        kinds = [self.type(a.dtype) for a in args]
        self.declared[intrinsic] = f"declare {self.type(dtype)} @{intrinsic}({', '.join(kinds)})"
        operands = ", ".join(f"{k} {a.name}" for k, a in zip(kinds, args, strict=True))
        return self.emit(f"call {self.type(dtype)} @{intrinsic}({operands})", dtype)

    def start_block(self, name: str) -> None:
        self.lines.append(f"{name}:")
        self.block = name


class Vector:
    """The ``Value`` interface that decompositions are written against, emitting LLVM text as it goes."""

    def __init__(self, e: Emitter, name: str, dtype: DType) -> None:
        self.e, self.name, self.dtype = e, name, dtype

    def const_bits(self, bits: int) -> Vector:
        if self.dtype.is_float:
            value = struct.unpack("f" if self.dtype.bits == 32 else "d", bits.to_bytes(self.dtype.itemsize, "little"))[0]
            wide = struct.unpack("<Q", struct.pack("<d", value))[0]
            return Vector(self.e, f"splat ({_LLVM_TYPE[self.dtype.name]} 0x{wide:016X})", self.dtype)
        return Vector(self.e, f"splat ({_LLVM_TYPE[self.dtype.name]} {bits})", self.dtype)

    def const(self, number: float) -> Vector:
        if self.dtype.is_float:
            return self.const_bits(int.from_bytes(self.dtype.np.type(number).tobytes(), "little"))
        return self.const_bits(int(number))

    def _lift(self, other: Any) -> Vector:
        return other if isinstance(other, Vector) else self.const(other)

    def _binary(self, other: Any, f: str, i: str, swap: bool = False) -> Vector:
        a, b = self, self._lift(other)
        assert a.dtype is b.dtype, (f, i, a.dtype, b.dtype)
        if swap:
            a, b = b, a
        return self.e.emit(f"{f if self.dtype.is_float else i} {self.e.type(self.dtype)} {a.name}, {b.name}", self.dtype)

    def __add__(self, other: Any) -> Vector:
        return self._binary(other, "fadd", "add")

    def __sub__(self, other: Any) -> Vector:
        return self._binary(other, "fsub", "sub")

    def __rsub__(self, other: Any) -> Vector:
        return self._binary(other, "fsub", "sub", swap=True)

    def __mul__(self, other: Any) -> Vector:
        return self._binary(other, "fmul", "mul")

    def __truediv__(self, other: Any) -> Vector:
        return self._binary(other, "fdiv", "")

    def __rtruediv__(self, other: Any) -> Vector:
        return self._binary(other, "fdiv", "", swap=True)

    def __and__(self, other: Any) -> Vector:
        return self._binary(other, "", "and")

    def __or__(self, other: Any) -> Vector:
        return self._binary(other, "", "or")

    def __xor__(self, other: Any) -> Vector:
        return self._binary(other, "", "xor")

    def __lshift__(self, other: Any) -> Vector:
        return self._binary(other, "", "shl")

    def __rshift__(self, other: Any) -> Vector:
        return self._binary(other, "", "ashr" if self.dtype.kind == "i" else "lshr")

    __radd__, __rmul__, __rand__, __ror__, __rxor__ = __add__, __mul__, __and__, __or__, __xor__

    def __invert__(self) -> Vector:
        return self ^ -1

    def __neg__(self) -> Vector:
        if self.dtype.is_float:
            return self.e.emit(f"fneg {self.e.type(self.dtype)} {self.name}", self.dtype)
        return 0 - self

    def _compare(self, other: Any, f: str, i: str) -> Vector:
        other = self._lift(other)
        assert self.dtype is other.dtype, (self.dtype, other.dtype)
        if not self.dtype.is_float and i not in ("eq", "ne"):
            i = ("s" if self.dtype.kind == "i" else "u") + i
        op = f"fcmp {f}" if self.dtype.is_float else f"icmp {i}"
        return self.e.emit(f"{op} {self.e.type(self.dtype)} {self.name}, {other.name}", dtypes.bool_)

    def __lt__(self, other: Any) -> Vector:
        return self._compare(other, "olt", "lt")

    def __le__(self, other: Any) -> Vector:
        return self._compare(other, "ole", "le")

    def __gt__(self, other: Any) -> Vector:
        return self._compare(other, "ogt", "gt")

    def __ge__(self, other: Any) -> Vector:
        return self._compare(other, "oge", "ge")

    def eq(self, other: Any) -> Vector:
        return self._compare(other, "oeq", "eq")

    def ne(self, other: Any) -> Vector:
        return self._compare(other, "une", "ne")

    def isnan(self) -> Vector:
        return self._compare(self, "uno", "")

    def mad(self, y: Any, z: Any) -> Vector:
        return self.e.call(f"llvm.fmuladd.v{self.e.width}{_SUFFIX[self.dtype.name]}", self.dtype, self, self._lift(y), self._lift(z))

    def select(self, a: Any, b: Any) -> Vector:
        if not isinstance(a, Vector):
            a = b._lift(a)
        b = a._lift(b)
        t = self.e.type(a.dtype)
        assert a.dtype is b.dtype and self.dtype is dtypes.bool_
        return self.e.emit(f"select {self.e.type(dtypes.bool_)} {self.name}, {t} {a.name}, {t} {b.name}", a.dtype)

    def rare(self, slow: Callable[[], Vector], fast: Vector) -> Vector:
        """``select(slow(), fast)``, with a branch around the slow code that is taken unless a lane needs it."""
        e, w = self.e, self.e.width
        tag = e.fresh()[1:]
        e.declared["reduce.or"] = f"declare i1 @llvm.vector.reduce.or.v{w}i1(<{w} x i1>)"
        any_lane = e.fresh()
        e.lines.append(f"  {any_lane} = call i1 @llvm.vector.reduce.or.v{w}i1(<{w} x i1> {self.name})")
        e.lines.append(f"  br i1 {any_lane}, label %slow_{tag}, label %join_{tag}, !prof !0")
        before = e.block
        e.start_block(f"slow_{tag}")
        mixed = self.select(slow(), fast)
        e.lines.append(f"  br label %join_{tag}")
        after = e.block
        e.start_block(f"join_{tag}")
        return e.emit(f"phi {e.type(fast.dtype)} [{mixed.name}, %{after}], [{fast.name}, %{before}]", fast.dtype)

    def bitcast(self, dtype: DType) -> Vector:
        if _LLVM_TYPE[dtype.name] == _LLVM_TYPE[self.dtype.name]:
            return Vector(self.e, self.name, dtype)
        return self.e.emit(f"bitcast {self.e.type(self.dtype)} {self.name} to {self.e.type(dtype)}", dtype)

    def cast(self, dtype: DType) -> Vector:
        a, b, e = self.dtype, dtype, self.e
        if a.is_float and b.is_float:
            op = "fpext" if b.bits > a.bits else "fptrunc"
        elif a.is_float:
            letter = "s" if b.kind == "i" else "u"
            return e.call(f"llvm.fpto{letter}i.sat.v{e.width}i{b.bits}.v{e.width}{_SUFFIX[a.name]}", b, self)
        elif b.is_float:
            op = "sitofp" if a.kind == "i" else "uitofp"
        elif a.kind != "b" and a.bits == b.bits:
            return Vector(e, self.name, b)
        else:
            op = ("sext" if a.kind == "i" else "zext") if b.bits > a.bits or a.kind == "b" else "trunc"
        return e.emit(f"{op} {e.type(a)} {self.name} to {e.type(b)}", b)

    def _unary(self, intrinsic: str) -> Vector:
        return self.e.call(f"llvm.{intrinsic}.v{self.e.width}{_SUFFIX[self.dtype.name]}", self.dtype, self)

    def abs(self) -> Vector:
        return self._unary("fabs")

    def sqrt(self) -> Vector:
        return self._unary("sqrt")

    def floor(self) -> Vector:
        return self._unary("floor")

    def ceil(self) -> Vector:
        return self._unary("ceil")

    def trunc(self) -> Vector:
        return self._unary("trunc")

    def round(self) -> Vector:
        return self._unary("roundeven")

    def copysign(self, other: Any) -> Vector:
        return self.e.call(f"llvm.copysign.v{self.e.width}{_SUFFIX[self.dtype.name]}", self.dtype, self, self._lift(other))

    def max(self, other: Any) -> Vector:
        return self.e.call(f"llvm.maximum.v{self.e.width}{_SUFFIX[self.dtype.name]}", self.dtype, self, self._lift(other))

    def min(self, other: Any) -> Vector:
        return self.e.call(f"llvm.minimum.v{self.e.width}{_SUFFIX[self.dtype.name]}", self.dtype, self, self._lift(other))


def render(f: Callable[..., Any], arity: int, dtype: DType, width: int) -> str:
    """LLVM text of ``void kernel(out, in0, in1, n)``, n a multiple of ``width``."""
    e = Emitter(width)
    t = e.type(dtype)
    args = []
    for i in range(arity):
        pointer = e.fresh()
        e.lines.append(f"  {pointer} = getelementptr {_LLVM_TYPE[dtype.name]}, ptr %in{i}, i64 %i")
        args.append(e.emit(f"load {t}, ptr {pointer}, align {dtype.itemsize}", dtype))
    result = f(*args)
    pointer = e.fresh()
    body = "\n".join(e.lines)
    return f"""
define void @kernel(ptr noalias %out, ptr noalias %in0, ptr noalias %in1, i64 %n) {{
entry:
  br label %body
body:
  %i = phi i64 [0, %entry], [%next, %{e.block}]
{body}
  {pointer} = getelementptr {_LLVM_TYPE[dtype.name]}, ptr %out, i64 %i
  store {t} {result.name}, ptr {pointer}, align {dtype.itemsize}
  %next = add i64 %i, {width}
  %more = icmp ult i64 %next, %n
  br i1 %more, label %body, label %exit
exit:
  ret void
}}
!0 = !{{!"branch_weights", i32 1, i32 2000}}
""" + "\n".join(e.declared.values())


class Kernel:
    """A compiled decomposition: ``kernel(*arrays)`` gives a new array of the first one's shape and type."""

    def __init__(self, f: Callable[..., Any], arity: int, dtype: DType, fma: bool = True, width: int | None = None) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        features = llvm.get_host_cpu_features().flatten() + ",-prefer-256-bit"
        if not fma:
            features += ",-fma,-fma4,-avx512f,-avx512vl,-avx512dq,-avx512bw"
        wide = 64 if fma and "+avx512f" in features else 32
        self.width = width or wide // dtype.itemsize
        self.dtype, self.arity = dtype, arity
        self.text = render(f, arity, dtype, self.width)
        module = llvm.parse_assembly(self.text)
        module.verify()
        machine = llvm.Target.from_default_triple().create_target_machine(cpu=llvm.get_host_cpu_name(), features=features, opt=3)
        options = llvm.create_pipeline_tuning_options(speed_level=3)
        options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = False
        llvm.create_pass_builder(machine, options).getModulePassManager().run(module, llvm.create_pass_builder(machine, options))
        self.assembly = machine.emit_assembly(module)
        self.engine = llvm.create_mcjit_compiler(module, machine)
        self.engine.finalize_object()
        signature = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
        self.call = signature(self.engine.get_function_address("kernel"))

    def __call__(self, *arrays: np.ndarray) -> np.ndarray:
        n = arrays[0].size
        padded = -(-n // self.width) * self.width
        ins = []
        for a in arrays:
            buffer = np.ones(padded, self.dtype.np)
            buffer[:n] = a.ravel()
            ins.append(buffer)
        out = np.empty(padded, self.dtype.np)
        self.call(out.ctypes.data, ins[0].ctypes.data, ins[-1].ctypes.data, padded)
        return out[:n].reshape(arrays[0].shape)

    def nanoseconds(self, *arrays: np.ndarray, repeat: int = 30, rounds: int = 8) -> float:
        """The best time an element over 4,096 elements, in cache."""
        n = 4096
        ins = [np.ascontiguousarray(np.resize(a, n), self.dtype.np) for a in arrays]
        out = np.empty(n, self.dtype.np)
        pointers = out.ctypes.data, ins[0].ctypes.data, ins[-1].ctypes.data, n
        best = float("inf")
        for _ in range(repeat):
            start = time.perf_counter_ns()
            for _ in range(rounds):
                self.call(*pointers)
            best = min(best, time.perf_counter_ns() - start)
        return best / (rounds * n)
