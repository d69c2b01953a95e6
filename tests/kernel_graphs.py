"""Random graphs for the compiler's middle: as in ``test_random_graphs``, but small, and with gathers."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from test_random_graphs import EXACT, EXACT_TYPES, RANGED, Growth

from hologram import dtypes
from hologram.primitives import TABLE
from hologram.trace.node import Graph, Node, const_attrs

SHAPES: list[tuple[int, ...]] = [(), (1,), (5,), (0,), (17,), (3, 5), (5, 5), (4, 1, 7), (2, 3, 4), (1, 33), (6, 40)]
MOST_ELEMENTS = 500


class SmallGrowth(Growth):
    def _input(self, i: int) -> Node:
        shape, dtype = self.draw(st.sampled_from(SHAPES)), self.draw(st.sampled_from(self.types))
        return self.build(TABLE["input"], (), (i, shape, dtype.name, None))

    def step(self) -> None:
        before = len(self.pool)
        if self.draw(st.integers(0, 7)) == 0:
            self.take(self.draw(st.sampled_from(self.pool)))
        else:
            super().step()
        if len(self.pool) > before and self.pool[-1].size > MOST_ELEMENTS:  # type: ignore[operator]
            self.pool.pop()

    def take(self, x: Node) -> None:
        """Elements of ``x`` at places that another value names, bent into range."""
        axes = [a for a, n in enumerate(x.shape) if n != 0]
        if not axes:
            return
        axis = self.draw(st.sampled_from(axes))
        at = self.draw(st.sampled_from(self.pool))
        if at.dtype is not dtypes.int64:
            at = self.build(TABLE["cast"], (at,), ("int64",))
        n = self.build(TABLE["const"], (), const_attrs(x.shape[axis], dtypes.int64))
        self.pool.append(self.build(TABLE["take"], (x, self.build(TABLE["rem"], (at, n))), (axis,)))


@st.composite
def small_graphs(draw: Any) -> Graph:
    growth = SmallGrowth(draw, EXACT_TYPES, EXACT, RANGED)
    for _ in range(draw(st.integers(3, 20))):
        growth.step()
    return growth.finish()
