"""Reductions that are wanted under masks alone: rows that no result reads are not reduced, and every result keeps its bits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp
from hologram.graph.kernel.ir import Loop
from hologram.graph.legalize.demand_masks import mask_demanded
from hologram.ir.graph import Graph
from hologram.ir.interpreter import evaluate
from hologram.ir.node import Node
from tests.support.building import Draft, kernels, scheduled
from tests.support.devices.c_harness import run as run_in_c
from tests.support.kernel_interpreter import run_schedule
from tests.support.needs import needs_compilers
from tests.support.optable import compiler, mismatch, seeded

ROWS, TERMS = 128, 64  # of as many terms as are worth masks
REDUCTIONS = ("reduce_sum", "reduce_max", "reduce_min", "reduce_prod")


class Scores:
    """Rows of terms that are reduced, and what is made of the results under masks."""

    def __init__(self, op: str = "reduce_sum", is_product: bool = True) -> None:
        self.d = d = Draft()
        self.x, self.y, self.end = d.input(ROWS, TERMS), d.input(TERMS), d.input(dtype="int64")
        terms = d("mul", self.x, d.spread(self.y, self.x.shape, 1)) if is_product else self.x
        self.reduced = d(op, terms, (1,))

    def where(self, value: Node, compare: str = "le", other: float = -np.inf, is_inverted: bool = False) -> Node:
        d = self.d
        mask = d(compare, d("iota", value.shape, 0, "int64"), d.spread(self.end, value.shape))
        fill = d.spread(d.const(other), value.shape)
        return d("select", mask, *((fill, value) if is_inverted else (value, fill)))

    def arrays(self, end: int) -> list[np.ndarray]:
        rng = seeded("scores", end)
        x = rng.standard_normal((ROWS, TERMS)).astype(np.float32)
        x[ROWS // 2, 3], x[-1, 0], x[0, -1] = np.inf, np.nan, -0.0
        return [x, rng.standard_normal(TERMS).astype(np.float32), np.array(end)]


def is_masked(graph: Graph) -> bool:
    """Whether some loop over a row has an end of its own, and no other instruction for what it leaves out."""
    ends = [s for k in kernels(scheduled(graph)) for s in k.walk() if isinstance(s, Loop) and s.extent == TERMS and s.accs and s.limit is not None]
    return bool(ends)


def check(graph: Graph, arrays: list[np.ndarray]) -> None:
    """The bits of the reference, by the kernel interpreter and the machine, in every precision that has them."""
    with np.errstate(all="ignore"):
        wanted = evaluate(graph, arrays)
        found = [run_schedule(scheduled(graph), arrays), compiler()(graph, precision="exact").run_numpy(arrays)]
    for results in found:
        for got, want in zip(results, wanted, strict=True):
            assert not mismatch(got, want, 0).any(), (got, want)


@pytest.mark.parametrize("is_product", [False, True])
@pytest.mark.parametrize("op", REDUCTIONS)
def test_rows_beyond_the_mask_are_not_reduced(op: str, is_product: bool) -> None:
    s = Scores(op, is_product)
    graph = s.d.graph(s.where(s.d("mul", s.reduced, s.d.spread(s.d.const(0.125), (ROWS,)))))
    assert is_masked(graph)
    for end in (-5, -1, 0, 1, 63, ROWS - 1, ROWS, 10**12):
        check(graph, s.arrays(end))


@given(
    st.sampled_from(["lt", "le", "gt", "ge", "eq"]),
    st.booleans(),
    st.sampled_from(["reshape", "transpose", "neg", "twice", "gather"]),
    st.integers(-2, ROWS + 2),
)
def test_ways_to_the_mask(compare: str, is_inverted: bool, way: str, end: int) -> None:
    s = Scores()
    d, x = s.d, s.reduced
    results = []
    if way == "reshape":
        x = d("reshape", d("reshape", x, (8, ROWS // 8)), (ROWS,))
    elif way == "transpose":
        x = d("reshape", d("transpose", d("reshape", x, (1, ROWS)), (1, 0)), (ROWS,))
    elif way == "neg":
        x = d("neg", x)
    elif way == "twice":
        results = [s.where(d("abs", x), "eq", 1.0)]
    else:
        results = [d("gather", x, s.end, (0,), (1,), 0)]
    graph = d.graph(s.where(x, compare, is_inverted=is_inverted), *results)
    assert is_masked(graph)
    check(graph, s.arrays(end))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint64"])
@pytest.mark.parametrize("size", [1, 3])
def test_elements_outside_of_a_window_are_not_reduced(size: int, dtype: str) -> None:
    s = Scores()
    start = s.d.input(dtype=dtype)
    graph = s.d.graph(s.d("gather", s.reduced, start, (0,), (size,), 0))
    assert is_masked(graph)
    for at in (0, 1, 5, ROWS - size - 1, ROWS - size):
        check(graph, [*s.arrays(0), np.array(at, dtype)])


def test_what_is_wanted_elsewhere_is_not_masked() -> None:
    def masked(results: Any) -> bool:
        s = Scores()
        return is_masked(s.d.graph(*results(s)))

    assert masked(lambda s: [s.where(s.reduced)])
    assert not masked(lambda s: [s.where(s.reduced), s.reduced])
    assert not masked(lambda s: [s.where(s.reduced), s.d("reduce_sum", s.reduced, (0,))])
    assert not masked(lambda s: [s.where(s.reduced), s.d("add", s.d.part(s.reduced, 0, 0, 1), s.d.spread(s.d.const(1.0), (1,)))])


def test_masks_that_depend_on_what_they_would_mask_are_none() -> None:
    s = Scores()
    zero, d = s.d.spread(s.d.const(0.0), (ROWS,)), s.d
    own = d("select", d("gt", s.reduced, zero), s.reduced, zero)
    graph = d.graph(own)
    assert not is_masked(graph)
    check(graph, s.arrays(5))
    found = d("cast", d("reduce_max", s.reduced, (0,)), "int64")  # a number made of all results
    after = d("select", d("le", d("iota", (ROWS,), 0, "int64"), d.spread(found, (ROWS,))), s.reduced, zero)
    graph = d.graph(after)
    assert not is_masked(graph)
    check(graph, s.arrays(5))


def test_graphs_without_masks_stay_as_they_are() -> None:
    s = Scores()
    graph = s.d.graph(s.reduced)
    assert mask_demanded(graph) is graph


@pytest.mark.parametrize("precision", ["exact", "standard", "fast"])
def test_steps_of_a_factorization(precision: Any) -> None:
    """A column of Cholesky's factor wants the rows from its own on, and its own element."""

    def column(j: Any, f: Any) -> Any:
        rows = hnp.arange(a.shape[0])
        v = hnp.asarray(a)[:, j] - f @ f[j]
        return f.at[:, j].set(hnp.where(rows >= j, v / hnp.sqrt(v[j]), 0.0))

    m = seeded("positive").standard_normal((96, 96))
    a = m @ m.T / 96 + 2 * np.eye(96)
    program = hg.jit(lambda: hg.fori_loop(0, 96, column, hnp.zeros(a.shape, np.float64)), precision=precision)
    assert "below taken" in program.lower().as_text("kernels")
    np.testing.assert_allclose(np.asarray(program()), np.linalg.cholesky(a), rtol=1e-12, atol=1e-12)


def test_sums_under_masks_are_rounded_as_those_without() -> None:
    """In each precision rows that count have the bits that they have where all do."""
    k, q, t = seeded("k").standard_normal((256, 64)).astype(np.float32), seeded("q").standard_normal(64).astype(np.float32), np.array(100)
    for precision in ("exact", "standard", "fast"):
        every = np.asarray(hg.jit(lambda k, q: (k * q).sum(1), precision=precision)(k, q))
        some = np.asarray(hg.jit(lambda k, q, t: hnp.where(hnp.arange(256) <= t, (k * q).sum(1), 0), precision=precision)(k, q, t))
        np.testing.assert_array_equal(some, np.where(np.arange(256) <= 100, every, 0))


@needs_compilers
@pytest.mark.parametrize("op", REDUCTIONS)
def test_devices_keep_the_bits(op: str, tmp_path: Path) -> None:
    s = Scores(op)
    graph = s.d.graph(s.where(s.reduced))
    arrays = s.arrays(50)
    with np.errstate(all="ignore"):
        (got,), (want,) = run_in_c(scheduled(graph), arrays, tmp_path), evaluate(graph, arrays)
    assert not mismatch(got, want, 0).any(), (got, want)
