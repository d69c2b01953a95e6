"""Late products: in loops, sums take the product that comes later in a step; what is added stays the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.graph.legalize.late_products import put_late_products_first
from hologram.graph.multiply_add import fuse_products
from hologram.graph.pipeline import canonicalise
from hologram.ir.graph import Graph, bodies
from hologram.ir.interpreter import evaluate
from hologram.ir.node import Node

Step = Callable[[Any, Any], Any]

LATE: dict[str, Step] = {
    "second": lambda c, x: c * 0.5 + hnp.sin(c) * x,
    "first": lambda c, x: hnp.sin(c) * x + c * 0.5,
    "subtracted": lambda c, x: c * 0.5 - hnp.sin(c) * x,
    "subtracted from": lambda c, x: hnp.sin(c) * x - c * 0.5,
    "negated": lambda c, x: c * 0.5 + -(hnp.sin(c) * x),
}


def _loop(step: Step, shape: tuple[int, ...] = ()) -> Graph:
    def f(start: Any, xs: Any) -> Any:
        return hg.scan(lambda c, x: (step(c, x), c), start, xs)

    return canonicalise(hg.make_graph(f)(np.zeros(shape, np.float32), np.zeros((7, *shape), np.float32)), "standard")


def _body(graph: Graph) -> Graph:
    return next(bodies(n)[-1].graph for n in graph.nodes() if bodies(n))


def _fused(graph: Graph) -> Node:
    (found,) = (n for n in fuse_products(_body(put_late_products_first(graph))).nodes() if n.op.name == "mad")
    return found


@pytest.mark.parametrize("shape", [(), (4,)])
@pytest.mark.parametrize("name", LATE)
def test_sums_take_the_later_product(name: str, shape: tuple[int, ...]) -> None:
    below = {"sin", "neg"}
    factors = {n.op.name for x in _fused(_loop(LATE[name], shape)).inputs[:2] for n in (x, *x.inputs) if n.op.name in below}
    assert "sin" in factors, _body(put_late_products_first(_loop(LATE[name], shape)))


@pytest.mark.parametrize("name", LATE)
def test_what_is_added_stays(name: str) -> None:
    """Zeros keep their signs, too."""
    graph = _loop(LATE[name], (6,))
    start = np.array([0.0, -0.0, 1.5, -2.5, np.inf, np.nan], np.float32)
    xs = np.random.default_rng(1).choice(np.array([0.0, -0.0, 1.25, -3.0], np.float32), (7, 6))
    for got, want in zip(evaluate(put_late_products_first(graph), [start, xs]), evaluate(graph, [start, xs]), strict=True):
        np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
        np.testing.assert_array_equal(np.where(np.isnan(got), 0, got.view(np.int32)), np.where(np.isnan(want), 0, want.view(np.int32)))


STAYS: dict[str, Step] = {
    "equally late": lambda c, x: c * 0.5 + c * x,
    "the first is later": lambda c, x: c * 0.5 + x * x,
    "one product": lambda c, x: x + hnp.sin(c) * x,
}


@pytest.mark.parametrize("name", STAYS)
def test_other_sums_stay(name: str) -> None:
    graph = _loop(STAYS[name])
    assert put_late_products_first(graph) is graph


def test_only_loops_know_what_is_late() -> None:
    graph = canonicalise(hg.make_graph(lambda c, x: c * 0.5 + hnp.sin(c) * x)(np.zeros(4, np.float32), np.zeros(4, np.float32)), "standard")
    assert put_late_products_first(graph) is graph


def test_while_loops_and_loops_in_loops_have_late_products() -> None:
    def inner(x: Any, c: Any) -> Any:
        return hg.fori_loop(0, 5, lambda i, v: v * 0.5 + hnp.sin(v) * x, c)

    def f(x: Any) -> Any:
        return hg.while_loop(lambda c: c.sum() < 9, lambda c: hnp.cos(c) * x + inner(x, c) * 0.25, x)

    kernels = hg.jit(f).lower(np.zeros(4, np.float32)).compile().as_text("kernels").split("kernel(")
    found = {factors for kernel in kernels if (factors := _factors(kernel)) is not None}
    assert found == {("load", "sin"), ("const", "load")}  # of the inner loop, and of the outer one, which waits for the inner one


def _factors(kernel: str) -> tuple[str, ...] | None:
    """What the factors in the only ``mad`` of a kernel are computed by, in order of their names; None where it has none."""
    made = dict(line.strip().split(" = ") for line in kernel.splitlines() if " = v" not in line and ") : " in line)
    found = [x[4:].split(")")[0].split(", ") for x in made.values() if x.startswith("mad(")]
    return tuple(sorted(made[x].split("(")[0] for x in found[0][:2])) if found else None
