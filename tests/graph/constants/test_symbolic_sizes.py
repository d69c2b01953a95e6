"""Symbolic extents beside arrays that a program closes over: nothing that depends on a size is computed ahead of the call that says it."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.backends.native.storage import copy_of
from hologram.graph.constants.fold import fold_constants
from hologram.graph.legalize.legalize import legalize
from hologram.graph.pipeline import canonicalise
from hologram.ir.graph import Graph
from hologram.ir.interpreter import evaluate
from hologram.ir.node import Builder, Node
from hologram.ir.op import TABLE, Shape
from hologram.ir.symbolic import Expr, is_static, substitute, symbols_of, var
from hologram.settings import override
from tests.support.building import Draft, product
from tests.support.optable import compiler, mismatch

N = var("n0", 2)
SIZES = [2, 3, 7, 40]
BY_SIZE = ("shape", "start", "stop", "low", "high")  # attributes that hold extents and bounds, which may be symbols


class Mixed(Draft):
    """Random programs over an argument of symbolic extent and closed-over arrays, by every op that takes sizes among its attributes."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.rng = random.Random(seed)
        self.x = self.input(N, 3)
        values = np.random.default_rng(seed)
        self.arrays = [self.leaf(values.integers(-4, 5, shape).astype(np.float32)) for shape in ((6,), (4, 3), (5, 4, 3))]
        self.at = self.leaf(values.integers(0, 2, 4))
        self.pool = [self.x, *self.arrays]

    def leaf(self, x: np.ndarray) -> Node:
        return self.build(TABLE["leaf"], (), (copy_of(x), x.shape, x.dtype.name))

    def pick(self, among: list[Any]) -> Any:
        return self.rng.choice(among)

    def step(self) -> None:
        x = self.pick([*self.arrays, *self.pool[-5:]])
        steps = [
            self.counted,
            self.spread_out,
            self.padded,
            self.reshaped,
            self.cut,
            self.cut,
            self.taken,
            self.put,
            self.reduced,
            self.together,
            self.scanned,
        ]
        made = self.pick(steps)(x)
        if made.ndim <= 3 and len(symbols_of(made.shape)) <= 1:
            self.pool.append(made)

    def axis(self, x: Node) -> int:
        return self.rng.randrange(x.ndim)

    def extent(self) -> Node:
        """The size as a number: the last index of an axis one longer."""
        return self("cast", self("reshape", self.part(self("iota", (N + 1,), 0, "int64"), 0, N, N + 1), ()), "float32")

    def counted(self, x: Node) -> Node:
        return self.pick(
            [self.extent(), self("iota", (N,), 0, "float32"), self("iota", (N + 1, 3), 0, "float32"), self("iota", (2 * N,), 0, "float32")]
        )

    def spread_out(self, x: Node) -> Node:
        return self.spread(x, (N, *x.shape), *range(1, x.ndim + 1)) if x.ndim < 3 else x

    def padded(self, x: Node) -> Node:
        if not x.ndim:
            return x
        axis = self.axis(x)
        widths = [tuple(self.pick([0, 1, N]) if a == axis else 0 for a in range(x.ndim)) for _ in range(2)]
        return self("pad", x, self.const(1), *widths)

    def reshaped(self, x: Node) -> Node:
        return self("reshape", x, self.pick([(x.size,), (*x.shape, 1)]))

    def cut(self, x: Node) -> Node:
        """Neighbours at a place that the size says, a flip, or every second element; of an axis of static extent, at a place that is in range."""
        if not x.ndim:
            return x
        axis = self.axis(x)
        n = x.shape[axis]
        if is_static(n):
            start = self.pick([0, N - N // n * n]) if isinstance(n, int) and n > 0 else 0
            return self.part(x, axis, start, start + 1) if n != 0 else x
        return self.pick([self.part(x, axis, n - 2, n), self.part(x, axis, n - 1, -1, -1), self.part(x, axis, 0, n, 2), self.part(x, axis, 1, 2)])

    def taken(self, x: Node) -> Node:
        if not x.ndim:
            return x
        axis = self.axis(x)
        return self.take(x, self("min", self.at, self.const(0 if x.shape[axis] in (0, 1) else 1, "int64")), axis) if x.shape[axis] != 0 else x

    def put(self, x: Node) -> Node:
        if not x.ndim:
            return x
        axis = self.axis(x)
        shape: Shape = (*x.shape[:axis], 4, *x.shape[axis + 1 :])
        return self.scatter("scatter_add", x, self.at, self.spread(self.extent(), shape), axis, 0)

    def reduced(self, x: Node) -> Node:
        axes = tuple(a for a in range(x.ndim) if self.rng.random() < 0.6)
        return self(self.pick(["reduce_sum", "reduce_max"] if 0 not in x.shape else ["reduce_sum"]), x, axes)

    def together(self, x: Node) -> Node:
        y = self.pick([y for y in self.pool if y.shape in ((), x.shape)] or [x])
        if x.ndim == y.ndim == 2 and self.rng.random() < 0.3:
            return product(self, x, self("transpose", y, (1, 0)))
        return self(self.pick(["add", "sub", "max"]), x, y)

    def scanned(self, x: Node) -> Node:
        return self("cumsum", x, self.axis(x), self.rng.random() < 0.5) if x.ndim else x

    def finish(self) -> Graph:
        """Results that depend on the argument, so that what else there is may be held."""
        total = self("reduce_sum", self.x, (0, 1))
        return self.graph(*[self("max", y, total) if y.ndim else self("add", y, total) for y in self.pool[-4:]])


def grown(seed: int) -> Graph:
    d = Mixed(seed)
    for _ in range(4 + seed % 6):
        d.step()
    return d.finish()


def at_size(graph: Graph, n: int) -> Graph:
    """``graph`` for one size of its argument."""
    b, made = Builder(), dict[Node, Node]()
    for x in graph.nodes():
        made[x] = b(x.op, tuple([made[i] for i in x.inputs]), _at(x.attrs, n))
    return Graph([made[x] for x in graph.inputs], [made[x] for x in graph.outputs])


def _at(x: Any, n: int) -> Any:
    if isinstance(x, Expr):
        return substitute(x, {"n0": n})
    return tuple(_at(e, n) for e in x) if isinstance(x, tuple) else x


def test_programs_have_every_op_that_takes_sizes() -> None:
    wanted = {r.name for r in TABLE.values() if r.kind in ("leaf", "movement") and set(r.attrs) & set(BY_SIZE)} - {"example"}
    found = {x.op.name for seed in range(300) for x in grown(seed).nodes() if symbols_of(x.attrs)}
    assert found >= wanted - {"leaf"} and wanted >= {"iota", "broadcast", "reshape", "slice", "pad"}, wanted - found


@pytest.mark.parametrize("precision", ["exact", "standard"])
def test_what_is_computed_ahead_depends_on_no_size(precision: str) -> None:
    """Of arrays and numbers alone, whatever else there is; and there is something."""
    held = 0
    for seed in range(400):
        graph = legalize(canonicalise(grown(seed), precision), precision)
        found = fold_constants(graph, 2**30, None, precision == "exact")
        if found is not None:
            held += len(found.values.outputs)
            assert not any(symbols_of((x.shape, x.attrs)) for x in found.values.nodes()), f"seed {seed}:\n{found.values}"
    assert held > 40


@pytest.mark.parametrize("part", range(4))
def test_every_size_gives_what_its_own_program_does(part: int, everything: bool) -> None:
    for seed in range(part, 400 if everything else 32, 4):
        graph = grown(seed)
        made = compiler()(graph, precision="exact")
        for n in SIZES:
            static = at_size(graph, n)
            x = np.random.default_rng(n).integers(-4, 5, (n, 3)).astype(np.float32)
            want = evaluate(static, [x])
            results = [made.run_numpy([x])]
            if n == SIZES[seed % 4]:
                results.append(compiler()(static, precision="exact").run_numpy([x]))
            for got in results:
                for g, w in zip(got, want, strict=True):
                    assert g.shape == w.shape and not mismatch(g, w, 0).any(), f"seed {seed}, n0 = {n}:\n{graph}"


W = hg.tensor(np.arange(12, dtype=np.float32).reshape(4, 3))
AT = hg.tensor(np.array([1, 0, 3]))
BIG = hg.tensor(np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32))
FUNCTIONS = {
    "index": lambda x: x[AT],
    "take": lambda x: hnp.take(x, AT, axis=0),
    "take along": lambda x: hnp.take_along_axis(x, AT[:, None], axis=0),
    "set": lambda x: x.at[AT].set(0.0),
    "add": lambda x: x.at[AT, 1].add(W[1]),
    "quotient": lambda x: (W / x.shape[0]).sum() + x,
    "spread": lambda x: (hnp.broadcast_to(W, (x.shape[0], 4, 3)) * x[:, None]).sum(0),
    "counter": lambda x: hnp.arange(x.shape[0])[AT] * x[AT, 0],
    "reversed counter": lambda x: hnp.arange(x.shape[0])[::-1][:3] * W[:, :].sum(0) + x[0],
    "full": lambda x: hnp.full((3,), x.shape[0]) * W[0] + x[0],
    "row": lambda x: BIG[x.shape[0] // 2] * x[0, 0],
    "column": lambda x: BIG[:, x.shape[0] : x.shape[0] + 1] * x[0],
    "product": lambda x: x @ hnp.tanh(W.T * x.shape[0]),
    "product of a part": lambda x: BIG[:, : x.shape[0]] @ x,
    "gradient": lambda x: hg.grad(lambda y: (y[AT] * hnp.arange(y.shape[0])[AT, None]).sum() * W.mean())(x),
    "mean": lambda x: x.mean(0) + (BIG @ BIG).mean() / x.size,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_sizes_and_closed_over_arrays(name: str) -> None:
    f = FUNCTIONS[name]
    made = hg.jit(f, dynamic={0: 0})
    for n in (5, 7, 40):
        x = np.linspace(-1, 1, 3 * n, dtype=np.float32).reshape(n, 3)
        want = np.asarray(hg.jit(f)(x))
        np.testing.assert_allclose(made(x), want, rtol=1e-5, atol=1e-6)
    with override(hold_limit=0):
        np.testing.assert_allclose(hg.jit(f, dynamic={0: 0})(x), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("weight", ["transposed", "scaled", "of many rows"])
def test_constant_factors_are_in_panels_for_any_number_of_rows(weight: str) -> None:
    """Each call would pack them otherwise. The initializer is that of the static program."""
    w = np.random.default_rng(3).standard_normal((768, 96)).astype(np.float32)
    made = {"transposed": lambda: w.T, "scaled": lambda: hnp.asarray(w.T) * 1.5, "of many rows": lambda: np.ascontiguousarray(w.T)}[weight]

    def product(x: Any) -> Any:
        return x @ made() + 1

    symbolic = hg.jit(product, dynamic={0: 0}, precision="exact")
    rows = np.random.default_rng(4).standard_normal((70, 96)).astype(np.float32)
    programs = [f.lower(rows).compile() for f in (symbolic, hg.jit(product, dynamic=False, precision="exact"))]
    ahead = [p.as_text("folded").partition("main, runs in each call")[0] for p in programs]
    assert "initializer" in ahead[0] and ahead[0] == ahead[1]
    assert "scratch" not in programs[0].as_text("kernels")
    for n in (2, 3, 5, 6, 7, 48, 70):
        np.testing.assert_array_equal(symbolic(rows[:n]), hg.jit(product, dynamic=False, precision="exact")(rows[:n]))
