"""Random graphs whose bits depend on which products are rounded with sums, and which quotients are products with reciprocals."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from hologram.ir.graph import Graph
from hologram.ir.node import Node
from tests.support.building import Draft

SHAPES = [(), (7,), (40,), (4, 9), (33, 3), (5, 70)]
STEPS = ["mul", "mul", "add", "add", "sub", "neg", "transpose", "reduce_sum"]


@st.composite
def sums_of_products(draw: Any) -> Graph:
    """Sums, products and what moves and negates them, some reduced."""
    d = Draft()
    shape, dtype = draw(st.sampled_from(SHAPES)), draw(st.sampled_from(["float32", "float64"]))
    pool = [d.input(*shape, dtype=dtype) for _ in range(3)]
    made: list[Node] = []
    for op in draw(st.lists(st.sampled_from(STEPS), min_size=2, max_size=10)):
        x = draw(st.sampled_from(pool))
        if op == "reduce_sum":
            made.append(d(op, x, (draw(st.integers(0, x.ndim - 1)),) if x.ndim else ()))
        elif op == "transpose":
            pool.append(d(op, d(op, x, tuple(range(x.ndim))[::-1]), tuple(range(x.ndim))[::-1]))
        else:
            pool.append(d(op, x) if op == "neg" else d(op, x, draw(st.sampled_from(pool))))
    return d.graph(pool[-1], *made, *draw(st.lists(st.sampled_from(pool), max_size=2)))


@st.composite
def quotients(draw: Any) -> Graph:
    """Sums, products and quotients of arrays, rows, columns and numbers."""
    d = Draft()
    dtype = draw(st.sampled_from(["float32", "float64"]))
    shape = draw(st.sampled_from([(7,), (3, 40), (33, 3)]))
    pool = [d.input(*shape, dtype=dtype), d.input(*shape, dtype=dtype)]
    for op in draw(st.lists(st.sampled_from(["div", "div", "mul", "add", "neg", "sum"]), min_size=2, max_size=8)):
        x, y = draw(st.sampled_from(pool)), draw(st.sampled_from(pool))
        axis = draw(st.integers(0, len(shape) - 1))
        if op == "neg":
            pool.append(d(op, x))
        elif op == "sum":
            rest = tuple(a for a in range(len(shape)) if a != axis)
            pool.append(d("broadcast", d("reduce_sum", x, (axis,)), shape, rest))
        else:
            pool.append(d(op, x, draw(st.sampled_from([y, d.const(3.0, dtype), d.input(dtype=dtype)]))))
    return d.graph(*pool[2:])
