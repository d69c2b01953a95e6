"""Builder of straight-line scalar code: decompositions in the op table are written with :class:`Value`.

A decomposition is a function of Values that returns a Value; running it once appends its instructions to a block.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hologram.dtypes import DType
from hologram.ir.instruction import Ins
from hologram.ir.node import const_attrs
from hologram.ir.op import TABLE, Op


class Rare(Ins):
    """``condition ? slow : fast`` where the slow value is wanted seldom: a renderer may branch around ``body``."""

    __slots__ = ("body", "slow")
    body: list[Any]
    slow: Ins


class Block:
    """A list of instructions under construction; equal instructions are made once."""

    def __init__(self, parent: Block | None = None) -> None:
        self.body: list[Any] = []
        self.made: dict[Any, Ins] = {}
        self.parent = parent

    def emit(self, op: Op | str, args: tuple[Ins, ...], attrs: tuple[Any, ...], dtype: DType) -> Ins:
        key = (op, args, attrs, dtype)
        scope: Block | None = self
        while scope is not None:
            got = scope.made.get(key)
            if got is not None:
                return got
            scope = scope.parent
        ins = self.made[key] = Ins(op, args, attrs, dtype)
        self.body.append(ins)
        return ins


class _Typed:
    """Stands in for a node where an op's type rule is asked."""

    __slots__ = ("dtype",)
    shape = ()

    def __init__(self, dtype: DType) -> None:
        self.dtype = dtype


class Value:
    """A scalar value with operators. Python numbers beside it become constants of its type."""

    __slots__ = ("_code", "ins")

    def __init__(self, code: Code, ins: Ins) -> None:
        self._code, self.ins = code, ins

    @property
    def dtype(self) -> DType:
        return self.ins.dtype

    @property
    def code(self) -> Code:
        """What builds this value."""
        return self._code

    def op(self, name: str, *others: Any, attrs: tuple[Any, ...] = ()) -> Value:
        return self._code.apply(TABLE[name], (self, *(self._lift(o) for o in others)), attrs)

    def _lift(self, x: Any) -> Value:
        return x if isinstance(x, Value) else self.const(x)

    def const(self, number: Any) -> Value:
        return self._code.const(number, self.dtype)

    def const_bits(self, bits: int) -> Value:
        d = self.dtype
        raw = (bits & ((1 << d.bits) - 1)).to_bytes(d.itemsize, "little")
        return self._code.const(np.frombuffer(raw, d.np)[0], d)

    def __add__(self, o: Any) -> Value:
        return self.op("add", o)

    def __radd__(self, o: Any) -> Value:
        return self._lift(o).op("add", self)

    def __sub__(self, o: Any) -> Value:
        return self.op("sub", o)

    def __rsub__(self, o: Any) -> Value:
        return self._lift(o).op("sub", self)

    def __mul__(self, o: Any) -> Value:
        return self.op("mul", o)

    def __rmul__(self, o: Any) -> Value:
        return self._lift(o).op("mul", self)

    def __truediv__(self, o: Any) -> Value:
        return self.op("div", o)

    def __rtruediv__(self, o: Any) -> Value:
        return self._lift(o).op("div", self)

    def __neg__(self) -> Value:
        return self.op("neg")

    def __lt__(self, o: Any) -> Value:
        return self.op("lt", o)

    def __le__(self, o: Any) -> Value:
        return self.op("le", o)

    def __gt__(self, o: Any) -> Value:
        return self.op("gt", o)

    def __ge__(self, o: Any) -> Value:
        return self.op("ge", o)

    def eq(self, o: Any) -> Value:
        return self.op("eq", o)

    def ne(self, o: Any) -> Value:
        return self.op("ne", o)

    def __and__(self, o: Any) -> Value:
        return self.op("and", o)

    def __or__(self, o: Any) -> Value:
        return self.op("or", o)

    def __xor__(self, o: Any) -> Value:
        return self.op("xor", o)

    def __invert__(self) -> Value:
        return self.op("not")

    def __lshift__(self, o: Any) -> Value:
        return self.op("shl_low", o)

    def __rshift__(self, o: Any) -> Value:
        return self.op("shr_low", o)

    def mad(self, y: Any, z: Any) -> Value:
        return self.op("mad", y, z)

    def select(self, a: Any, b: Any) -> Value:
        a, b = self._pair(a, b)
        return self._code.apply(TABLE["select"], (self, a, b), ())

    @staticmethod
    def _pair(a: Any, b: Any) -> tuple[Value, Value]:
        if not isinstance(a, Value):
            a = b.const(a)
        return a, a._lift(b)

    def rare(self, slow: Callable[[], Value], fast: Value) -> Value:
        return self._code.rare(self, slow, fast)

    def bitcast(self, d: DType) -> Value:
        return self if d is self.dtype else self.op("bitcast", attrs=(d.name,))

    def cast(self, d: DType) -> Value:
        return self if d is self.dtype else self.op("cast", attrs=(d.name,))

    def abs(self) -> Value:
        return self.op("abs")

    def sqrt(self) -> Value:
        return self.op("sqrt")

    def floor(self) -> Value:
        return self.op("floor")

    def ceil(self) -> Value:
        return self.op("ceil")

    def trunc(self) -> Value:
        return self.op("trunc")

    def round(self) -> Value:
        return self.op("round")

    def copysign(self, o: Any) -> Value:
        return self.op("copysign", o)

    def max(self, o: Any) -> Value:
        return self.op("max", o)

    def min(self, o: Any) -> Value:
        return self.op("min", o)

    def isnan(self) -> Value:
        return self.ne(self)


class Code:
    """Emits Values into a block."""

    def __init__(self, block: Block) -> None:
        self.block = block

    def value(self, ins: Ins) -> Value:
        return Value(self, ins)

    def const(self, number: Any, d: DType) -> Value:
        return Value(self, self.block.emit("const", (), const_attrs(number, d), d))

    def apply(self, op: Op, args: tuple[Value, ...], attrs: tuple[Any, ...]) -> Value:
        _, dtype = op.infer(tuple(_Typed(a.dtype) for a in args), attrs)
        return Value(self, self.block.emit(op, tuple(a.ins for a in args), attrs, dtype))

    def rare(self, condition: Value, slow: Callable[[], Value], fast: Value) -> Value:
        outer = self.block
        self.block = Block(outer)
        try:
            value = slow()
        finally:
            inner, self.block = self.block, outer
        ins = Rare("rare", (condition.ins, fast.ins), (), fast.dtype)
        ins.body, ins.slow = inner.body, value.ins
        outer.body.append(ins)
        return Value(self, ins)


def decompose(op: Op, dtypes_in: tuple[DType, ...], attrs: tuple[Any, ...]) -> tuple[list[Ins], list[Any], Ins]:
    """``(parameters, body, result)`` of an op's decomposition for given input types."""
    assert op.lower is not None
    block = Block()
    code = Code(block)
    params = [Ins("param", (), (i,), d) for i, d in enumerate(dtypes_in)]
    out = op.lower(*(code.value(p) for p in params), *attrs)
    return params, block.body, out.ins


__all__ = ["Block", "Code", "Rare", "Value", "decompose"]
