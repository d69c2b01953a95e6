"""Large products by cuBLAS.

A kernel that is a matrix product and nothing else, or a batch of such, is left to the library where it is so large that the library's tuning
outweighs a launch outside of a captured graph. :mod:`hologram.graph.fusion.library_products` sees to it that such products stand alone. In
``precision="exact"`` none is.
"""

from __future__ import annotations

from typing import NamedTuple

from hologram import dtypes
from hologram.backends.c.analysis.gemm import Product, product_of
from hologram.dtypes import DType
from hologram.graph.fusion.library_products import FACTORS
from hologram.graph.kernel.ir import Acc, Accumulate, Kernel
from hologram.ir.instruction import Ins
from hologram.ir.op import TABLE
from hologram.ir.symbolic import Atom, Expr, Int, atoms, is_static, split_linear
from hologram.primitives.scalar.elementwise import PRODUCTS
from hologram.settings import settings
from hologram.support.precision import TF32

MIN_FLOPS = 2.0**33  # a tenth of a millisecond of a large device


class Operand(NamedTuple):
    """Parameter ``number`` of the kernel: matrices of ``dtype``, whose rows, or columns if they are ``transposed``, lie ``stride`` elements apart.
    The next matrix of a batch is ``apart`` elements behind."""

    number: int
    dtype: DType
    stride: int
    transposed: bool
    apart: int = 0


class Gemm(NamedTuple):
    """``out = left @ right``, of ``rows`` by ``terms`` and ``terms`` by ``columns``, by rows; with ``tf32`` factors may be rounded to TF32.
    ``batch``: how many such products."""

    rows: int
    columns: int
    terms: int
    left: Operand
    right: Operand
    out: Operand
    tf32: bool = False
    batch: int = 1

    @property
    def flops(self) -> float:
        return 2.0 * self.batch * self.rows * self.columns * self.terms

    def __str__(self) -> str:
        times = f"{self.batch} times " if self.batch > 1 else ""
        return f"cuBLAS: {times}{self.rows} x {self.terms} by {self.terms} x {self.columns}, {self.left.dtype} to {self.out.dtype}"


def gemm_of(kernel: Kernel, tf32: bool = False) -> Gemm | None:
    """The matrix product that a kernel is, if it is nothing else."""
    p = product_of(kernel) if not kernel.symbols else None
    factors = _factors(p) if p is not None else None
    if p is None or factors is None or len(p.stores) != 1 or p.stores[0].mask is not None:
        return None
    r, t, q = p.rows.loop.var, p.columns.loop.var, p.down.var
    batch = _batch(kernel, p.stores[0].index, r, t)
    left, right = (_operand(kernel, x.attrs[0], x.attrs[1], *axes, batch) for x, axes in zip(factors, ((r, q), (q, t)), strict=True))
    out = _operand(kernel, p.stores[0].buffer, p.stores[0].index, r, t, batch)
    if left is None or right is None or out is None or out.transposed or not _stores_the_sum(p):
        return None
    count = 1 if batch is None else int(batch.high or 0) + 1
    return Gemm(_extent(p.stores[0].index, r), _extent(p.stores[0].index, t), p.terms, left, right, out, tf32, count)


def _factors(p: Product) -> list[Ins] | None:
    """The loads of both factors, if all that is summed is their product."""
    accumulates = [s for s in p.down.body if isinstance(s, Accumulate)]
    if len(p.core) != 1 or p.core[0].op not in PRODUCTS or len(accumulates) != 1 or accumulates[0].args != (p.core[0],):
        return None
    if accumulates[0].acc.op.monoid is not TABLE["add"] or len(p.rows.staged) != 1 or len(p.columns.staged) != 1:
        return None
    loads = [_loaded(p.rows.staged[0]), _loaded(p.columns.staged[0])]
    plain = all(x.op == "load" and not x.args and x.dtype in FACTORS for x in loads) and loads[0].dtype is loads[1].dtype
    return loads if plain else None


def _loaded(v: Ins) -> Ins:
    """What ``v`` is, or is the float32 of."""
    return v.args[0] if v.opname == "cast" and v.dtype is dtypes.float32 and v.args[0].dtype.is_narrow_float else v


def _stores_the_sum(p: Product) -> bool:
    """Whether the result is the sum itself, or its rounding to the type of the factors."""
    value = p.stores[0].value
    rounded = isinstance(value, Ins) and value.opname == "cast" and isinstance(value.args[0], Acc) and value.dtype is _loaded(p.rows.staged[0]).dtype
    return isinstance(value, Acc) or rounded


def _batch(kernel: Kernel, index: Int, down: str, across: str) -> Atom | None:
    """Which of several matrices a parallel iteration works on, of all where it writes; None where there is but one."""
    first = split_linear(index, down)
    second = split_linear(first[1], across) if first is not None else None
    terms = list(second[1].terms) if second is not None and isinstance(second[1], Expr) else []
    return terms[0][0] if len(terms) == 1 and len(terms[0]) == 1 and terms[0][0].high is not None else None


def _operand(kernel: Kernel, buffer: object, index: Int, down: str, across: str, batch: Atom | None) -> Operand | None:
    """Matrices from the first element on, with neighbours in one of their two directions."""
    first = split_linear(index, down)
    second = split_linear(first[1], across) if first is not None else None
    if first is None or second is None or not (is_static(first[0]) and is_static(second[0])):
        return None
    apart = second[1].terms.get((batch,)) if batch is not None and isinstance(second[1], Expr) and len(second[1].terms) == 1 else 0
    if apart is None or (apart == 0 and second[1] != 0):
        return None
    b = next(b for b in kernel.params if b is buffer)
    steps = int(first[0]), int(second[0])
    if 1 not in steps or 0 in steps:
        return None
    transposed = steps[1] != 1
    return Operand(kernel.params.index(b), b.dtype, steps[transposed], transposed, apart)


def _extent(index: Int, name: str) -> int:
    return next(a.high + 1 for a in atoms(index) if a.name == name and a.high is not None)


def choice(kernel: Kernel, precision: str) -> Gemm | None:
    """The library's call that is better than the kernel; None where the kernel is as good."""
    found = gemm_of(kernel, precision == TF32 or settings.tf32) if precision != "exact" else None
    return found if found is not None and found.flops >= MIN_FLOPS else None
