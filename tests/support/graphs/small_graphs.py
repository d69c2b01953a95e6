"""Random graphs for the compiler's middle: as in ``random_graphs``, but small, and with gathers, scatters, products, and reductions put back."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from hologram import dtypes
from hologram.ir.graph import Graph
from hologram.ir.node import Node, const_attrs
from hologram.ir.symbolic import prod
from hologram.primitives import TABLE
from tests.support.along_axis import scatter, scattered_shape, take
from tests.support.graphs.random_graphs import EXACT, EXACT_TYPES, RANGED, Growth
from tests.support.optable import rows

SHAPES: list[tuple[int, ...]] = [(), (1,), (5,), (0,), (17,), (3, 5), (5, 5), (4, 1, 7), (2, 3, 4), (1, 33), (6, 40), (7, 9), (9, 17)]
MAX_ELEMENTS = 500
SCATTERS = rows("scatter")


class SmallGrowth(Growth):
    def _input(self, i: int) -> Node:
        shape, dtype = self.draw(st.sampled_from(SHAPES)), self.draw(st.sampled_from(self.types))
        return self.build(TABLE["input"], (), (i, shape, dtype.name, None))

    def step(self) -> None:
        before = len(self.pool)
        steps = {0: self.take, 1: self.scatter, 2: self.normalise, 3: self.normalise, 4: self.product}
        step = steps.get(self.draw(st.integers(0, 12)))
        if step is not None:
            step(self.draw(st.sampled_from(self.pool[-4:])))
        else:
            super().step()
        if len(self.pool) > before and self.pool[-1].size > MAX_ELEMENTS:  # type: ignore[operator]
            self.pool.pop()

    def real(self) -> Node | None:
        """A value that casts to integers."""
        found = [x for x in self.pool if not x.dtype.is_complex]
        return self.draw(st.sampled_from(found)) if found else None

    def take(self, x: Node) -> None:
        """Elements of ``x`` at places that another value names, bent into range."""
        axes = [a for a, n in enumerate(x.shape) if n != 0]
        if not axes:
            return
        axis = self.draw(st.sampled_from(axes))
        at = self.real()
        if at is None:
            return
        if at.dtype is not dtypes.int64:
            at = self.build(TABLE["cast"], (at,), ("int64",))
        n = self.build(TABLE["const"], (), const_attrs(x.shape[axis], dtypes.int64))
        self.pool.append(take(self.build, x, self.build(TABLE["rem"], (at, n)), axis))

    def normalise(self, x: Node) -> None:
        """``x`` with what it gives along some axes, as softmax and its like are made."""
        rows = [r for r in self.ranged if r.kind == "reduce" and r.monoid is not None and x.dtype.kind in r.kinds]
        if not x.shape or 0 in x.shape or not rows:
            return
        row = self.draw(st.sampled_from(rows))
        first = self.draw(st.integers(0, x.ndim - 1))
        axes = tuple(range(first, self.draw(st.integers(first, x.ndim - 1)) + 1))
        small = self.build(row, (x,), (axes,))
        wide = self.build(TABLE["broadcast"], (small,), (x.shape, tuple(a for a in range(x.ndim) if a not in axes)))
        self.pool.append(self.build(TABLE["xor" if x.dtype.kind == "b" else self.draw(st.sampled_from(["sub", "max"]))], (x, wide)))

    def product(self, x: Node) -> None:
        """A matrix product, by the front end's own expansion."""
        if x.ndim != 2 or x.dtype.kind not in "iuf":
            return
        fitting = [y for y in self.pool if y.ndim == 2 and y.dtype is x.dtype and y.shape[0] == x.shape[1]]
        if not fitting:
            return
        y = self.draw(st.sampled_from(fitting))
        space = (*x.shape, y.shape[1])
        if prod(space) > 4 * MAX_ELEMENTS:  # type: ignore[operator]
            return
        terms = (self.build(TABLE["broadcast"], (a,), (space, dims)) for a, dims in ((x, (0, 1)), (y, (1, 2))))
        self.pool.append(self.build(TABLE["reduce_sum"], (self.build(TABLE["mul"], tuple(terms)),), ((1,),)))

    def scatter(self, x: Node) -> None:
        """``x`` with updates at places that another value names; those out of range are dropped."""
        row = self.draw(st.sampled_from(SCATTERS))
        if not x.shape or x.dtype.kind not in row.kinds:
            return
        axis = self.draw(st.integers(0, x.ndim - 1))
        at = self.real()
        if at is None:
            return
        if not at.dtype.is_integer:
            at = self.build(TABLE["cast"], (at,), ("int32",))
        shape = scattered_shape(x.shape, at.shape, axis)
        if prod(shape) > MAX_ELEMENTS:  # type: ignore[operator]
            return
        counted = shape and x.dtype.kind in "if" and self.draw(st.booleans())
        one = self.build(TABLE["const"], (), const_attrs(1, x.dtype))
        updates = self.build(TABLE["broadcast"], (one,), (shape, ()))
        if counted:
            updates = self.build(TABLE["iota"], (), (shape, len(shape) - 1, x.dtype.name))
        self.pool.append(scatter(self.build, row.name, x, at, updates, axis))


@st.composite
def small_graphs(draw: Any) -> Graph:
    growth = SmallGrowth(draw, EXACT_TYPES, EXACT, RANGED)
    for _ in range(draw(st.integers(3, 20))):
        growth.step()
    return growth.finish()
