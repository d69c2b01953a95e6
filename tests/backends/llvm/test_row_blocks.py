"""Columns of streamed inputs, reduced a few rows at a time: the written order's bits, for every monoid, edge and machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.backends.llvm.row_blocks import streaming_lanes, streaming_loop
from hologram.graph.kernel.ir import Kernel, Loop
from hologram.graph.lower import prefetch
from hologram.graph.pipeline import canonicalise
from hologram.graph.schedule import streamed
from hologram.ir.interpreter import evaluate
from hologram.primitives.reductions import PAGE
from hologram.settings import override
from tests.support.building import kernels, scheduled
from tests.support.needs import needs_levels
from tests.support.optable import mismatch, seeded

TARGETS = ("", *(pytest.param(level, marks=needs_levels) for level in ("x86-64-v3", "x86-64")))
REDUCTIONS = ("sum", "prod", "max", "min", "argmax", "argmin")


@pytest.fixture(autouse=True)
def every_input_is_large(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Inputs of any size are streamed; nothing that was compiled otherwise is found."""
    monkeypatch.setattr(streamed, "MIN_PREFETCHED_BYTES", 0)
    monkeypatch.setattr(prefetch, "MIN_PREFETCHED_ROW_BYTES", 0)
    with override(cache=False):
        yield


def streams(made: list[Kernel]) -> bool:
    return any(streaming_loop(s) is not None for k in made for s in k.walk() if isinstance(s, Loop) and s.kind == "lanes")


def check(program: Callable[..., Any], *arrays: np.ndarray, precision: str = "exact") -> None:
    """The program streams, and gives the bits of the reference."""
    graph = hg.make_graph(program)(*arrays)
    assert streams(kernels(scheduled(canonicalise(graph, precision), precision)))
    with np.errstate(all="ignore"):
        wanted = evaluate(graph, arrays)
    got = hg.jit(program, precision=precision)(*arrays)
    for g, want in zip(got if isinstance(got, tuple) else (got,), wanted, strict=True):
        assert not mismatch(np.asarray(g), want, 0).any()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("columns", [4, 31, 128, 130, 200])
def test_edges_of_rows_and_columns(columns: int, target: str) -> None:
    with override(target=target):
        for rows in (33, 40, 41, 47):
            x = seeded(rows, columns).standard_normal((rows, columns)).astype(np.float32)
            check(lambda x: hnp.sum(x, axis=0), x)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint8"])
@pytest.mark.parametrize("op", REDUCTIONS)
def test_every_monoid(op: str, dtype: str) -> None:
    x = (seeded(op, dtype).standard_normal((45, 70)) * 3).astype(dtype)
    if x.dtype.kind == "f":
        x[5, 7], x[-1, 3], x[2, 9] = np.nan, -0.0, -np.inf
    check(lambda x: getattr(hnp, op)(x, axis=0), x)


@pytest.mark.parametrize("rows", [PAGE, PAGE + 1, 2 * PAGE + 5])
def test_partial_results_of_pages(rows: int) -> None:
    x = seeded(rows).standard_normal((rows, 20)).astype(np.float32)
    check(lambda x: (hnp.sum(x, axis=0), hnp.argmax(x, axis=0)), x)


@pytest.mark.parametrize("checked", [False, True])
def test_what_stands_around_the_rows(checked: bool) -> None:
    """A product with an epilogue, whose other factor is computed for each row; several sums in one kernel."""
    rng = seeded("around")
    x, w, b = (rng.standard_normal(s).astype(np.float32) for s in ((40,), (40, 133), (133,)))
    with override(checked=checked):
        check(lambda x, w, b: hnp.maximum(hnp.maximum(x, 0) @ w + b, 0) * b, x, w, b)
        check(lambda x, w: (x @ w, hnp.max(w, axis=0), hnp.sum(w * w, axis=0)), x, w)


@pytest.mark.parametrize("precision", ["standard", "fast"])
def test_other_precisions_have_the_bits_of_other_loops(precision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = seeded(precision)
    x, w = rng.standard_normal(100).astype(np.float32), rng.standard_normal((100, 150)).astype(np.float32)
    blocked = np.asarray(hg.jit(lambda x, w: hnp.tanh(x @ w), precision=precision)(x, w))
    monkeypatch.setattr(streamed, "MIN_PREFETCHED_BYTES", 2**40)
    other = np.asarray(hg.jit(lambda x, w: hnp.tanh(x @ w), precision=precision)(x, w))
    np.testing.assert_array_equal(blocked.view(np.int32), other.view(np.int32))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("heads", "width"), [(8, 64), (6, 40), (4, 13), (3, 64), (2, 5)])
def test_neighbouring_rows_are_read_together(heads: int, width: int, target: str) -> None:
    """Sums over positions of what lies by position, head and element: heads are neighbours in memory, with shares of their own."""
    rng = seeded("heads", heads, width)
    shares, values = rng.standard_normal((heads, 41)).astype(np.float32), rng.standard_normal((41, heads, width)).astype(np.float32)
    values[3, 0, 0], values[40, -1, -1] = np.inf, -0.0
    with override(target=target):
        check(lambda s, v: (s.T[:, :, None] * v).sum(0), shares, values)
        check(lambda s, v: (s.T[:, :, None] * v).sum(0)[None] * s[:, :1] + 1, shares, values)


def test_blocks_of_rows_go_out_of_the_loop_over_neighbours() -> None:
    shares, values = np.ones((8, 40), np.float32), np.ones((40, 8, 64), np.float32)
    made = kernels(scheduled(canonicalise(hg.make_graph(lambda s, v: (s.T[:, :, None] * v).sum(0))(shares, values), "exact"), "exact"))
    (around,) = (s for k in made for s in k.walk() if isinstance(s, Loop) and s.kind == "serial" and streaming_lanes(s) is not None)
    assert around.extent == 4  # half of the heads, for two threads


@pytest.mark.parametrize(("width", "columns"), [(500, 128), (512, 256), (1536, 256), (2048, 256)])
def test_streamed_columns_are_wide(width: int, columns: int) -> None:
    made = kernels(scheduled(canonicalise(hg.make_graph(lambda x: x.sum(0))(np.ones((40, width), np.float32)), "exact"), "exact"))
    assert [s.extent for k in made for s in k.walk() if isinstance(s, Loop) and s.kind == "lanes"] == [columns]


def test_rows_that_are_known_in_a_call_alone() -> None:
    program = hg.jit(lambda x, w: x @ w, dynamic=True, precision="exact")
    for rows in (1, 33, 40, 47):
        rng = seeded("symbolic", rows)
        x, w = rng.standard_normal(rows), rng.standard_normal((rows, 50))
        want = evaluate(hg.make_graph(lambda x, w: x @ w)(x, w), (x, w))[0]
        assert not mismatch(np.asarray(program(x, w)), want, 0).any()


def test_inputs_are_streamed_where_a_program_reads_many() -> None:
    """Each is small enough for a cache, all of them are not."""

    def program(x: Any, weights: Any) -> Any:
        for w in weights:
            x = hnp.tanh(x @ w)
        return x

    found = {}
    for layers in (2, 30):
        weights = [np.zeros((512, 512), np.float32) for _ in range(layers)]
        found[layers] = streamed.prefetched_bytes(hg.make_graph(program)(np.zeros(512, np.float32), weights))
    assert found == {2: streamed.MIN_PREFETCHED_BYTES, 30: streamed.MIN_STREAMED_BYTES}
