"""Random chains of movement ops."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from hologram.ir.node import Node
from tests.support.building import Draft


def factorisations(n: int) -> st.SearchStrategy[tuple[int, ...]]:
    """Shapes of ``n`` elements."""

    @st.composite
    def draw_shape(draw: Any) -> tuple[int, ...]:
        shape, rest = [], n
        while rest > 1:
            f = draw(st.sampled_from([k for k in range(2, rest + 1) if rest % k == 0]))
            shape.append(f)
            rest //= f
        for _ in range(draw(st.integers(0, 2))):
            shape.insert(draw(st.integers(0, len(shape))), 1)
        return tuple(shape)

    return draw_shape()


class Movements:
    """Draws a movement op on a value."""

    def __init__(self, draw: Any, d: Draft) -> None:
        self.draw, self.d = draw, d

    def step(self, x: Node) -> Node:
        kind = self.draw(st.sampled_from(["reshape", "transpose", "slice", "broadcast", "pad", "concatenate", "windows"]))
        out: Node = getattr(self, kind)(x)
        return out if 0 < out.size <= 400 else x  # type: ignore[operator]

    def reshape(self, x: Node) -> Node:
        return self.d("reshape", x, self.draw(factorisations(int(x.size))))  # type: ignore[arg-type]

    def transpose(self, x: Node) -> Node:
        return self.d("transpose", x, tuple(self.draw(st.permutations(range(x.ndim)))))

    def slice(self, x: Node) -> Node:
        parts = []
        for n in x.shape:
            low, high = sorted(self.draw(st.tuples(st.integers(0, n), st.integers(0, n))))
            step = self.draw(st.sampled_from([1, 1, 2, 3]))
            parts.append((low, high, step) if self.draw(st.booleans()) or low == high else (high - 1, low - 1, -step))
        return self.d("slice", x, *zip(*parts, strict=True)) if parts else x

    def broadcast(self, x: Node) -> Node:
        shape = [self.draw(st.sampled_from([1, 3])) if n == 1 else n for n in x.shape]
        dims = list(range(x.ndim))
        at = self.draw(st.integers(0, x.ndim))
        shape.insert(at, self.draw(st.integers(1, 3)))
        return self.d("broadcast", x, tuple(shape), tuple(i if i < at else i + 1 for i in dims))

    def pad(self, x: Node) -> Node:
        widths = st.lists(st.integers(0, 2), min_size=x.ndim, max_size=x.ndim).map(tuple)
        return self.d("pad", x, self.d.const(-1, "int64"), self.draw(widths), self.draw(widths))

    def windows(self, x: Node) -> Node:
        if not x.ndim:
            return x
        size, step, dilation = (self.draw(st.integers(1, 3)) for _ in range(3))
        fits = (size - 1) * dilation < int(x.shape[-1])
        return self.d("windows", x, (size,), (step,), (dilation,)) if fits else x

    def concatenate(self, x: Node) -> Node:
        if not x.ndim:
            return x
        axis = self.draw(st.integers(0, x.ndim - 1))
        flipped = self.d.part(x, axis, x.shape[axis] - 1, -1, -1)
        return self.d("concatenate", x, flipped, *[x] * self.draw(st.integers(0, 1)), axis)


@st.composite
def movement_chains(draw: Any) -> tuple[Node, Node]:
    d = Draft()
    x = first = d.input(*draw(st.sampled_from([(12,), (3, 4), (2, 3, 5), (1, 7), (6, 6), ()])), dtype="int64")
    moves = Movements(draw, d)
    for _ in range(draw(st.integers(1, 7))):
        x = moves.step(x)
    return first, x
