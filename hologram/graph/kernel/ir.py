"""The kernel IR: loops, loads, stores and scalar instructions.

A :class:`Kernel` is a function of buffers and integer symbols. Its body is a list of statements:

- :class:`Ins`: one scalar SSA instruction, an elementwise op or one of ``load``, ``const``, ``index`` (an integer
  expression as a value), ``inside`` (``0 <= expression < size``), ``scan`` (running value of an accumulator);
- :class:`Store`, :class:`Accumulate`, :class:`Prefetch`;
- :class:`Loop`, of kind ``parallel`` (outermost; iterations, of all parallel loops of a kernel, are independent and shared among threads),
  ``lanes`` (iterations are independent but for accumulators: vector lanes, or threads of a block) or ``serial``.

There are no movement ops here: reshape, transpose, broadcast and slice have become index arithmetic
(:mod:`hologram.ir.symbolic`). Extents may hold symbols. Accumulators follow the canonical reduction order
(docs/internals/ir.md): a ``lanes`` loop reduces horizontally, a ``serial`` loop vertically.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias, TypeGuard

from hologram import dtypes
from hologram.dtypes import DType
from hologram.ir.instruction import Ins
from hologram.ir.op import Op
from hologram.ir.symbolic import Int, var
from hologram.primitives.scalar.elementwise import PRODUCTS, fused_mul

KERNEL_OPS = ("load", "const", "index", "inside", "scan")


class Buffer:
    """A parameter of a kernel, or scratch of the thread that runs it. ``role``: ``in``, ``out``, ``inout`` or ``scratch``."""

    __slots__ = ("name", "dtype", "role", "size")

    def __init__(self, name: str, dtype: DType, role: str, size: Int) -> None:
        self.name, self.dtype, self.role, self.size = name, dtype, role, size


class Acc:
    """An accumulator of a loop; read as a value after the loop. ``op`` is the reduction or scan whose monoid it runs."""

    __slots__ = ("op", "dtype", "value_dtype", "name", "level", "stage")
    level: int
    stage: int

    def __init__(self, op: Op, value_dtype: DType, dtype: DType) -> None:
        self.op, self.value_dtype, self.dtype = op, value_dtype, dtype
        self.name = ""


Value: TypeAlias = "Ins | Acc"


class Accumulate:
    """``acc <- acc o value`` (and the element's index for ``argmax`` and ``argmin``). A ``serial`` loop may do so several times an iteration."""

    __slots__ = ("acc", "args")

    def __init__(self, acc: Acc, args: tuple[Value, ...]) -> None:
        self.acc, self.args = acc, args


class Store:
    """``buffer[index] = value``, where ``mask`` holds (None: always)."""

    __slots__ = ("buffer", "index", "value", "mask")

    def __init__(self, buffer: Buffer, index: Int, value: Value, mask: Value | None = None) -> None:
        self.buffer, self.index, self.value, self.mask = buffer, index, value, mask


class Prefetch:
    """A hint that ``buffer[index]`` will be read soon. It may lie outside the buffer."""

    __slots__ = ("buffer", "index")

    def __init__(self, buffer: Buffer, index: Int) -> None:
        self.buffer, self.index = buffer, index


class Loop:
    """``for var in start .. min(start + extent, limit)``; ``accs`` are reset on entry and hold their results on exit.

    ``shared``: how many iterations of the parallel loop, from a multiple of it on, write the same to scratch here. A thread that has just run
    another of them may pass the loop by. ``repeats``: iterations of the parallel loop may write the same values to one element, as do those that
    take the last rows in whole tiles.
    """

    __slots__ = ("kind", "var", "start", "extent", "limit", "accs", "body", "shared", "repeats")

    def __init__(self, kind: str, var: str, start: Int, extent: Int, limit: Int | None = None) -> None:
        self.kind, self.var, self.start, self.extent, self.limit = kind, var, start, extent, limit
        self.accs: list[Acc] = []
        self.body: list[Stmt] = []
        self.shared: Int = 1
        self.repeats = False


Stmt: TypeAlias = "Ins | Store | Accumulate | Prefetch | Loop"


class Kernel:
    """``params`` in call order, then ``symbols``. ``iterations`` is the extent of the parallel loop, or of all of them together, ``cost`` rough
    nanoseconds of one parallel iteration.

    ``work``: rough picoseconds of all parallel iterations together, where sizes decide it; else 0.

    ``ready``: there is no body, the backend has the kernel under this name; the integers follow the parameters.
    """

    __slots__ = ("params", "scratch", "symbols", "body", "iterations", "cost", "work", "ops", "note", "ready")

    def __init__(self) -> None:
        self.params: list[Buffer] = []
        self.scratch: list[Buffer] = []
        self.symbols: list[str] = []
        self.body: list[Stmt] = []
        self.iterations: Int = 1
        self.cost = 0.0
        self.work: Int = 0
        self.ops = 0
        self.note = ""
        self.ready: tuple[str, tuple[Int, ...]] | None = None

    def integers(self) -> tuple[Int, ...]:
        """What follows the parameters in a call."""
        return self.ready[1] if self.ready is not None else tuple(var(s) for s in self.symbols)

    def walk(self) -> Iterator[Stmt]:
        return walk(self.body)


def walk(body: list[Stmt]) -> Iterator[Stmt]:
    """Statements and those of the loops among them, in the order of the text."""
    stack = [iter(body)]
    while stack:
        for s in stack[-1]:
            yield s
            if isinstance(s, Loop):
                stack.append(iter(s.body))
                break
        else:
            stack.pop()


def float16_factors(v: Value) -> tuple[Ins, Ins] | None:
    """The 16-bit floats of one type whose product ``v`` is, each of them made float32; None for any other value."""
    if not isinstance(v, Ins) or v.op not in PRODUCTS or v.dtype is not dtypes.float32:
        return None
    x, y = (f.args[0] if isinstance(f, Ins) and f.opname == "cast" else f for f in v.args)
    return (x, y) if x.dtype is y.dtype and x.dtype.is_16bit_float else None


def is_fused_product(v: Value) -> TypeGuard[Ins]:
    """Whether a value is a product that a sum takes before it is rounded."""
    return isinstance(v, Ins) and v.op is fused_mul


def summed_terms(kernel: Kernel, opname: str) -> frozenset[Ins]:
    """The instructions ``opname`` that sums, and nothing else, read: a backend may compute them with the sum."""
    summed: set[Ins] = set()
    others: set[object] = set()
    for s in kernel.walk():
        if isinstance(s, Accumulate):
            (first, *rest) = s.args
            if isinstance(first, Ins) and first.opname == opname and s.acc.op.name == "reduce_sum":
                summed.add(first)
            else:
                others.add(first)
            others.update(rest)
        elif isinstance(s, Ins):
            others.update(s.args)
        elif isinstance(s, Store):
            others.update((s.value, s.mask))
    return frozenset(summed - others)


def integers_of(kernel: Kernel) -> list[Int]:
    """Every extent and index expression of a kernel."""
    return [kernel.iterations, *integers_in(kernel.body)]


def integers_in(body: list[Stmt]) -> list[Int]:
    """Every extent and index expression of statements and of the loops among them."""
    out: list[Int] = []
    for s in walk(body):
        if isinstance(s, Loop):
            out += [s.start, s.extent, s.shared] + ([s.limit] if s.limit is not None else [])
        elif isinstance(s, Store):
            out.append(s.index)
        elif isinstance(s, Ins) and s.op in ("load", "index", "inside"):
            out += [e for e in s.attrs if not isinstance(e, Buffer)]
    return out
