"""Builder of kernel IR statements, for kernels that are written by hand: each function appends a statement to a body."""

from __future__ import annotations

import itertools
from typing import Any

from hologram import dtypes
from hologram.dtypes import DType
from hologram.graph.kernel.ir import Buffer, Kernel, Loop, Prefetch, Stmt, Store, Value, integers_of
from hologram.ir.instruction import Ins
from hologram.ir.op import TABLE
from hologram.ir.symbolic import Expr, Int, atoms, counter, substitute

_OF_TRUTH = ("eq", "lt", "le")  # ops whose result is not of their operands' type


def apply(body: list[Stmt], op: str, *args: Value) -> Ins:
    """An op on values of one type, or one that gives the type of its last operand."""
    ins = Ins(TABLE[op], args, (), dtypes.bool_ if op in _OF_TRUTH else args[-1].dtype)
    body.append(ins)
    return ins


def const(body: list[Stmt], value: float, d: DType) -> Ins:
    ins = Ins.const(value, d)
    body.append(ins)
    return ins


def load(body: list[Stmt], b: Buffer, at: Int, mask: Value | None = None) -> Ins:
    """An element; zero where ``mask`` does not hold."""
    ins = Ins.load(b, at, mask)
    body.append(ins)
    return ins


def cast(body: list[Stmt], x: Value, d: DType) -> Value:
    if x.dtype is d:
        return x
    ins = Ins(TABLE["cast"], (x,), (d.name,), d)
    body.append(ins)
    return ins


def index(body: list[Stmt], e: Int, d: DType = dtypes.int64) -> Ins:
    """An index expression as a value."""
    ins = Ins.index(e, d)
    body.append(ins)
    return ins


def inside(body: list[Stmt], e: Int, size: Int) -> Ins:
    """Whether ``0 <= e < size``."""
    ins = Ins.inside(e, size)
    body.append(ins)
    return ins


def min_index(body: list[Stmt], x: Int, y: Int) -> Ins:
    return apply(body, "min", index(body, x), index(body, y))


def clamped_index(body: list[Stmt], x: Int, most: Int) -> Ins:
    """``x``, but ``most`` where it is more, and 0 where that is less."""
    return apply(body, "max", min_index(body, x, most), index(body, 0))


def finish_kernel(kernel: Kernel) -> None:
    """Notes what follows from a kernel's statements: the symbols that they need from a call, and how many ops they are. Gives values
    that have one name, in different places, a name each."""
    uniquify_names(kernel.body, {}, set())
    own = {s.var if isinstance(s, Loop) else s.name for s in kernel.walk() if isinstance(s, (Loop, Ins))}
    kernel.symbols = sorted({a.name for e in integers_of(kernel) for a in atoms(e)} - own)
    kernel.ops = sum(1 for s in kernel.walk() if isinstance(s, Ins) and not isinstance(s.op, str))


def uniquify_names(body: list[Stmt], names: dict[str, Int], seen: set[str]) -> None:
    """``names``: what stands for the values that have another name here than they were given."""
    names = dict(names)

    def renamed(e: Any) -> Any:
        return substitute(e, names) if isinstance(e, Expr) else e

    for s in body:
        if isinstance(s, Loop):
            s.start, s.extent, s.limit, s.shared = renamed(s.start), renamed(s.extent), renamed(s.limit), renamed(s.shared)
            uniquify_names(s.body, names, seen)
        elif isinstance(s, Store | Prefetch):
            s.index = renamed(s.index)
        elif isinstance(s, Ins):
            s.attrs, s.extent = tuple(map(renamed, s.attrs)), renamed(s.extent)
            if s.name in seen:
                name = next(f"{s.name}_{k}" for k in itertools.count(2) if f"{s.name}_{k}" not in seen)
                names[s.name], s.name = counter(name, s.extent), name
            seen |= {s.name} - {""}


def named(ins: Ins, name: str, size: Int | None = None, assumed: bool = False) -> Int:
    """The value as an integer that index expressions may hold, from 0 up to ``size`` - 1 where that is known; ``assumed``: see :class:`Ins`."""
    ins.name, ins.extent, ins.assumed = name, size, assumed
    return counter(name, size)
