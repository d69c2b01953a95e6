"""Canonical form on graphs dense in rules: few arguments, few ops, so that identities, cancellations and compositions meet all the time."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hologram import dtypes
from hologram.dtypes import DType
from hologram.graph.canonical.normal_form import is_normal
from hologram.graph.pass_manager import Context
from hologram.graph.pipeline import canonicalise
from hologram.graph.rewrite.rewriter import Rewriter
from hologram.ir.graph import Graph
from hologram.ir.interpreter import evaluate
from hologram.ir.node import Builder, Node
from hologram.primitives import TABLE
from hologram.support.precision import GUARANTEES
from tests.support.optable import mismatch, special_values

FAMILIES: dict[str, tuple[tuple[str, ...], tuple[DType, ...]]] = {
    "ring": (("add", "sub", "mul", "neg", "const", "const"), (dtypes.float32, dtypes.int8, dtypes.uint8)),
    "field": (("mul", "div", "neg", "sub", "const", "square", "sqrt", "abs"), (dtypes.float32, dtypes.float16)),
    "powers": (("mul", "div", "exp", "log", "sqrt", "rsqrt", "pow", "neg", "const"), (dtypes.float32, dtypes.float64)),
    "logic": (("and", "or", "xor", "not", "const", "lt", "eq", "select"), (dtypes.bool_, dtypes.uint8, dtypes.int8)),
    "order": (("max", "min", "neg", "abs", "lt", "le", "not", "select", "const"), (dtypes.float32, dtypes.int8, dtypes.bool_)),
    "movement": (("reshape", "transpose", "slice", "broadcast", "pad", "concatenate", "neg", "max"), (dtypes.float32, dtypes.int8)),
    "rows": (("reduce_sum", "reduce_max", "broadcast", "transpose", "reshape", "mul", "add", "sub", "slice"), (dtypes.float32, dtypes.int8)),
}
CONSTANTS = [0, 1, 2, -0.0, 4, 0.5]


class Growth:
    """Grows a graph op by op from a seed; ops that do not take what there is are passed over."""

    def __init__(self, seed: int, family: str) -> None:
        self.rng = np.random.default_rng(seed)
        self.ops, types = FAMILIES[family]
        self.dtype = types[seed % len(types)]
        self.b = Rewriter(lambda node: (), Counter())
        shapes: list[tuple[int, ...]] = [(2, 3), (2, 3), (3,), (), (1, 3)]
        self.pool = [self.b.argument(self.dtype, *shapes[self.rng.integers(5)]) for _ in range(3)]
        self.inputs = list(self.pool)

    def pick(self, fits: Any) -> Node | None:
        among = [n for n in self.pool[-6:] if fits(n)] or [n for n in self.pool if fits(n)]
        return among[self.rng.integers(len(among))] if among else None

    def step(self) -> None:
        name = self.ops[self.rng.integers(len(self.ops))]
        x = self.pick(lambda n: True)
        assert x is not None
        made = self.make(name, x)
        if made is not None and int(made.size) <= 200:  # type: ignore[arg-type]
            self.pool.append(made)

    def make(self, name: str, x: Node) -> Node | None:
        b, rng = self.b, self.rng
        number = x.dtype is self.dtype
        if name == "const":
            return b.const(CONSTANTS[rng.integers(len(CONSTANTS))], self.dtype)
        row = TABLE[name]
        if row.kind == "elementwise" and name != "select":
            others = [self.pick(lambda n: n.dtype is x.dtype and (n.shape in ((), x.shape) or not x.shape)) for _ in range((row.arity or 1) - 1)]
            operands = [x, *(y for y in others if y is not None)]
            return b.make(name, *operands[:: rng.choice([-1, 1])]) if x.dtype.kind in row.kinds and len(operands) == row.arity else None
        if name == "select":
            c = self.pick(lambda n: n.dtype is dtypes.bool_ and n.shape in ((), x.shape))
            y = self.pick(lambda n: n.dtype is x.dtype and n.shape in ((), x.shape))
            return b.make("select", c, x, y) if c is not None and y is not None else None
        if not number or not x.shape:
            return None
        return self.move(name, x)

    def move(self, name: str, x: Node) -> Node | None:
        b, rng = self.b, self.rng
        shape = tuple(int(n) for n in x.shape)  # type: ignore[arg-type]
        match name:
            case "reshape":
                n = int(np.prod(shape))
                choices = [(n,), (1, n), (n, 1), (*shape, 1), (2, n // 2), tuple(m for m in shape if m != 1)]
                chosen = choices[rng.integers(len(choices))]
                return b.make(name, x, attrs=(chosen,)) if int(np.prod(chosen)) == n else None
            case "transpose":
                return b.make(name, x, attrs=(tuple(int(a) for a in rng.permutation(len(shape))),))
            case "slice":
                low = [int(rng.integers(n + 1)) if n else 0 for n in shape]
                high = [int(rng.integers(a, n + 1)) for a, n in zip(low, shape, strict=True)]
                back = rng.random(len(shape)) < 0.3
                starts = tuple(h - 1 if r and h > a else a for a, h, r in zip(low, high, back, strict=True))
                stops = tuple(a - 1 if r and h > a else h for a, h, r in zip(low, high, back, strict=True))
                steps = tuple(int(rng.integers(1, 3)) * (-1 if r and h > a else 1) for a, h, r in zip(low, high, back, strict=True))
                return b.make(name, x, attrs=(starts, stops, steps))
            case "broadcast":
                at = int(rng.integers(len(shape) + 1))
                out = (*shape[:at], 2, *shape[at:])
                return b.make(name, x, attrs=(out, tuple(a + (a >= at) for a in range(len(shape)))))
            case "pad":
                widths = [tuple(int(w) for w in rng.integers(0, 2, len(shape))) for _ in range(2)]
                return b.make(name, x, b.const(1, x.dtype), attrs=tuple(widths))
            case "concatenate":
                axis = int(rng.integers(len(shape)))
                y = self.pick(lambda n: n.dtype is x.dtype and n.shape == x.shape)
                return b.make(name, x, y or x, attrs=(axis,))
        axes = tuple(int(a) for a in np.flatnonzero(rng.random(len(shape)) < 0.6))
        return b.make(name, x, attrs=(axes,)) if all(shape[a] for a in axes) else None


def graph_from(seed: int, family: str) -> Graph:
    growth = Growth(seed, family)
    for _ in range(14):
        growth.step()
    return Graph(growth.inputs, growth.pool[-2:])


@pytest.mark.parametrize("family", FAMILIES)
@given(seed=st.integers(0, 10**6))
def test_dense_graphs(family: str, seed: int) -> None:
    graph = graph_from(seed, family)
    rng = np.random.default_rng(seed)
    arrays = [rng.choice(special_values(x.dtype), x.shape) for x in graph.inputs]
    want = evaluate(graph, arrays)
    for precision in GUARANTEES:
        once = canonicalise(graph, precision, Context(precision))
        assert str(canonicalise(once, precision)) == str(once)
        if precision == "exact":
            for got, w in zip(evaluate(once, arrays), want, strict=True):
                assert not mismatch(got, w, 0).any(), f"{graph}\n{once}"


def _with_operands_exchanged(graph: Graph, rng: np.random.Generator) -> Graph:
    """``graph`` with the operands of some of its commutative ops in the other order."""
    b = Builder()
    made: dict[Node, Node] = {}
    for n in graph.nodes():
        inputs = tuple([made[x] for x in n.inputs])
        made[n] = b.like(n, inputs[::-1] if "commutative" in n.op.algebra and rng.random() < 0.5 else inputs)
    return graph.mapped(made)


@pytest.mark.parametrize("family", FAMILIES)
@given(seed=st.integers(0, 10**6))
def test_what_is_said_to_be_normal_keeps_its_nodes(family: str, seed: int) -> None:
    graph = graph_from(seed, family)
    for precision in GUARANTEES:
        once = canonicalise(graph, precision)
        assert is_normal(once, precision) or any(0 in n.shape for n in once.nodes()), f"{once}"
        for other in (graph, _with_operands_exchanged(once, np.random.default_rng(seed))):
            if is_normal(other, precision):
                context = Context(precision)
                again = canonicalise(other, precision, context)
                assert set(context.rules()) <= {"commute"} and len(again.nodes()) == len(other.nodes()), f"{other}\n{again}"
