"""Accumulators in C: monoids, and the canonical order in which the items of a group combine their partial results.

In a horizontal reduction item ``32*w + l`` of a group is lane l of page w: a group takes as many pages at one time as it has 32 items. Lanes combine
as a tree in memory that the group shares, pages in their order, so the result depends neither on how many items there are nor on the device.
"""

from __future__ import annotations

from hologram.backends.c.scalars import Scalars, type_name
from hologram.dtypes import DType, int64
from hologram.graph.kernel.ir import Acc
from hologram.ir.op import TABLE
from hologram.primitives.reductions import INDEX_MAX, identity_bits


class Monoid:
    """One accumulator: its components are variables, the value and for ``argmax`` and ``argmin`` also its index, the smaller of equals."""

    def __init__(self, acc: Acc, scalars: Scalars) -> None:
        self.acc, self.scalars = acc, scalars
        self.by_position = acc.op.monoid is None
        self.types: list[DType] = [acc.value_dtype, int64] if self.by_position else [acc.value_dtype]

    @property
    def identity(self) -> list[str]:
        first = self.scalars.literal(self.acc.value_dtype, identity_bits(self.acc.op, self.acc.value_dtype))
        return [first, self.scalars.integer(INDEX_MAX)] if self.by_position else [first]

    def declare(self, names: list[str]) -> str:
        parts = zip(self.types, names, self.identity, strict=True)
        return " ".join(f"{type_name(d)} {name} = {start};" for d, name, start in parts)

    def combine(self, into: list[str], a: list[str], b: list[str]) -> str:
        """The statements ``into = a o b``, ``a`` being the earlier; ``into`` may be ``a``."""
        if not self.by_position:
            return f"{into[0]} = {self.scalars.spell(self.acc.op.monoid, self.acc.value_dtype, [a[0], b[0]])};"
        kind = type_name(self.acc.value_dtype)
        wins = f"hg_y {'>' if self.acc.op.name == 'argmax' else '<'} hg_x"
        same = "hg_y == hg_x"
        if self.acc.value_dtype.is_float:  # the first NaN before all numbers
            wins, same = f"{wins} || (hg_y != hg_y && hg_x == hg_x)", f"({same} || (hg_y != hg_y && hg_x != hg_x))"
        taken = f"const {kind} hg_x = {a[0]}, hg_y = {b[0]}; const i64 hg_i = {a[1]}, hg_j = {b[1]};"
        chosen = f"const bool hg_later = {wins} || ({same} && hg_j < hg_i);"
        return f"{{ {taken} {chosen} {into[0]} = hg_later ? hg_y : hg_x; {into[1]} = hg_later ? hg_j : hg_i; }}"

    def fused(self, into: str, factors: list[str]) -> str:
        """The statement that adds a product to a sum with one rounding."""
        return f"{into} = {self.scalars.spell(TABLE['mad'], self.acc.value_dtype, [*factors, into])};"
