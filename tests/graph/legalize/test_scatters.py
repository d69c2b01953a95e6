"""Scatters on the CPU against their reference: fixed order of duplicates, pieces, fusion with neighbours, symbolic extents."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hologram.ir.graph import Graph
from hologram.ir.interpreter import evaluate
from hologram.ir.leaves import input_
from hologram.ir.node import Builder
from hologram.ir.symbolic import var
from hologram.primitives import TABLE, Op
from hologram.primitives.indexing import pieces
from tests.support.along_axis import scatter
from tests.support.optable import assert_agree, compiler, one_op_graph, rows

named = pytest.mark.parametrize("row", rows("scatter"), ids=lambda r: r.name)


def arguments(shape: tuple[int, ...], indices: tuple[int, ...], axis: int, batch: int, dtype: Any = np.float32) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    updates = (*indices, *shape[batch:axis], 1, *shape[axis + 1 :])
    x, u = ((rng.standard_normal(s) * 3).astype(dtype) for s in (shape, updates))
    return [x, u, rng.integers(-2, shape[axis] + 2, indices)]


def check(row: Op, attrs: tuple[tuple[int, ...], int], arrays: list[np.ndarray]) -> Any:
    graph = one_op_graph(row, attrs, arrays)
    executable = compiler()(graph, precision="exact")
    assert_agree((row, attrs, arrays), executable.run_numpy(arrays)[0], evaluate(graph, arrays)[0])
    return executable


@pytest.mark.crossed
@named
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8])
@pytest.mark.parametrize("m", [20_000, 20_003])
def test_many_updates_of_few_places(row: Op, dtype: Any, m: int) -> None:
    arrays = arguments((100,), (m,), 0, 0, dtype)
    executable = check(row, ((0,), 0), arrays)
    assert max(k.kernel.iterations for k in executable.execution_plan.kernels) >= (16 if row.monoid else 1)


def test_pieces_are_a_function_of_sizes() -> None:
    assert pieces(100, 100) == 1
    assert pieces(100_000, 1_000_000) == 4
    assert pieces(10, 1_000_000) == 16
    assert pieces(var("n"), 1_000_000) == 1


@named
def test_wide_rows_in_blocks(row: Op) -> None:
    check(row, ((1,), 0), arguments((2, 9, 300), (4, 5), 1, 0))
    check(row, ((1,), 1), arguments((3, 9, 300), (3, 7), 1, 1))


def test_neighbours_fuse() -> None:
    """What updates and indices are made of is computed where they are wanted; two kernels in all."""
    build = Builder()
    shapes = [((50,), "float32"), ((2000,), "int64"), ((2000,), "float32")]
    x, i, u = (build(input_, (), (k, s, d, None)) for k, (s, d) in enumerate(shapes))
    twice = build(TABLE["add"], (u, u))
    moved = build(TABLE["add"], (i, i))
    out = scatter(build, "scatter_add", build(TABLE["neg"], (x,)), moved, twice, 0)
    graph = Graph([x, i, u], [build(TABLE["mul"], (out, x))])
    rng = np.random.default_rng(1)
    arrays = [rng.standard_normal(50).astype("f"), rng.integers(-3, 28, 2000), rng.standard_normal(2000).astype("f")]
    executable = compiler()(graph, precision="exact")
    np.testing.assert_array_equal(executable.run_numpy(arrays)[0], evaluate(graph, arrays)[0])
    assert len(executable.execution_plan.kernels) == 3


def test_symbolic_extents() -> None:
    build = Builder()
    n, m = var("n"), var("m")
    x, u, i = (build(input_, (), (k, *a, None)) for k, a in enumerate([((n, 3), "float32"), ((m, 1, 3), "float32"), ((m,), "int64")]))
    graph = Graph([x, u, i], [build(TABLE["scatter_add"], (x, u, i), ((0,), 0))])
    executable = compiler()(graph, precision="exact")
    for sizes in [(4, 9), (300, 2), (1, 1)]:
        arrays = arguments((sizes[0], 3), (sizes[1],), 0, 0)
        want = TABLE["scatter_add"].reference(*arrays, (0,), 0)
        np.testing.assert_array_equal(executable.run_numpy(arrays)[0], want)
