"""Spaces cut in boxes: concatenations and pads as loop nests of their own, one for each piece."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import hologram as hg
import hologram.numpy as hnp
from hologram.graph.kernel.ir import Kernel, Loop
from hologram.graph.lower import group
from hologram.graph.schedule import index_split
from hologram.ir.graph import Graph
from hologram.ir.interpreter import evaluate
from hologram.ir.node import Node
from tests.support.building import Draft, count, kernels, scheduled
from tests.support.graphs.movement_chains import movement_chains
from tests.support.graphs.random_graphs import arguments, seeds, values_of
from tests.support.graphs.small_graphs import small_graphs
from tests.support.kernel_interpreter import run_schedule
from tests.support.optable import mismatch, seeded

MANY = index_split.MAX_SELECTED_PIECES + 3


@contextmanager
def eager() -> Iterator[None]:
    """Every space that can be cut is cut."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("MIN_BOX_RUN", "MIN_SPLIT_ELEMENTS", "MIN_SPLIT_LANES", "MAX_SELECTED_PIECES"):
            patch.setattr(index_split, name, 1)
        patch.setattr(group, "MAX_SPLIT_WORK_RATIO", 10**9)
        yield


def nests(kernel: Kernel) -> list[Loop]:
    return [s for s in kernel.body if isinstance(s, Loop)]


# --- meaning ---------------------------------------------------------------------------------------------------------


@given(movement_chains(), seeds)
def test_boxes_of_movement_mean_what_numpy_does(chain: tuple[Node, Node], seed: int) -> None:
    first, last = chain
    x = seeded(seed).integers(0, 1000, [int(n) for n in first.shape])
    graph = Graph([first], [last, last] if last is first else [last])
    (want, *_) = evaluate(graph, [x])
    with eager():
        schedule = scheduled(graph)
    assert np.array_equal(run_schedule(schedule, [x])[0], want)


@given(small_graphs(), seeds)
def test_boxes_mean_what_the_graph_means(graph: Graph, seed: int) -> None:
    arrays = arguments(graph, seed, special=True)
    values = values_of(graph, arrays)
    with eager():
        schedule = scheduled(graph)
    for out, got in zip(graph.outputs, run_schedule(schedule, arrays), strict=True):
        assert not mismatch(got, values[out], 0).any()


def pieces(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    rng = seeded(*shapes)
    return [rng.standard_normal(s).astype(np.float32) for s in shapes]


PROGRAMS: dict[str, tuple[Callable[..., Any], list[np.ndarray]]] = {
    "many": (lambda xp, *a: xp.concatenate(a), pieces(*[(n,) for n in (500, 3072, 1, 4097, 64, 100, 3073)])),
    "few": (lambda xp, *a: xp.concatenate([a[0], a[1] * 2]), pieces((7000,), (5000,))),
    "rows": (lambda xp, *a: xp.concatenate(a, axis=0) + 1, pieces(*[(n, 70) for n in (3, 1, 9, 2, 30, 4)])),
    "columns": (lambda xp, *a: xp.concatenate(a, axis=1), pieces(*[(9, n) for n in (300, 64, 65, 200, 80, 90)])),
    "middle": (lambda xp, *a: xp.concatenate(a, axis=1), pieces(*[(3, n, 33) for n in (5, 6, 7, 8, 9)])),
    "stacked": (lambda xp, *a: xp.stack(a) * a[0], pieces(*[(1000,)] * MANY)),
    "between": (lambda xp, *a: xp.stack(a, axis=-1), pieces(*[(1000,)] * MANY)),
    "summed": (lambda xp, *a: xp.concatenate(a).reshape(-1, 10) * 2, pieces(*[(1000,)] * MANY)),
    "read elsewhere": (lambda xp, *a: xp.concatenate(a)[::-1][5:4000] - xp.concatenate(a)[:3995], pieces(*[(700 + n,) for n in range(MANY)])),
    "padded": (lambda xp, x: xp.pad(x, ((2, 3), (1, 1)), constant_values=7) * 2, pieces((100, 60))),
    "padded twice": (lambda xp, x, y: xp.pad(xp.concatenate([x, y]), 9, constant_values=-1), pieces((1500,), (1501,))),
    "stepped": (lambda xp, *a: xp.concatenate(a)[5000:3:-3], pieces(*[(900 + n,) for n in range(MANY)])),
    "two results": (lambda xp, *a: (xp.concatenate(a), xp.concatenate(a[::-1]) * 2), pieces(*[(400 + n,) for n in range(MANY)])),
    "taking turns": (lambda xp, x, y: xp.stack([x, y], axis=2).reshape(40, -1)[:, 3:] * 2, pieces((40, 50), (40, 50))),
    "three in turn": (lambda xp, x, y, z: xp.stack([x, y, z], axis=1).reshape(-1, 50)[1:-2], pieces((40, 50), (40, 50), (40, 50))),
    "scalars": (lambda xp, x: xp.stack([x[i] * x[i + 1] for i in range(60)]), pieces((61,))),
    "nested": (
        lambda xp, *a: xp.concatenate([xp.concatenate(a), xp.concatenate([x * 2 for x in a])]),
        pieces(*[(300 + n,) for n in range(MANY)]),
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_pieces_stand_where_numpy_puts_them(name: str) -> None:
    program, arrays = PROGRAMS[name]
    want = program(np, *arrays)
    for threads in (1, 2):
        hg.set_num_threads(threads)
        try:
            got = hg.jit(lambda *a: program(hnp, *a), precision="exact")(*arrays)
        finally:
            hg.set_num_threads(0)
        for g, w in zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]:
            np.testing.assert_array_equal(np.asarray(g), w)


def test_a_slice_written_anew() -> None:
    x, y = pieces((5000,), (900,))
    want = x.copy()
    want[100:1000] = y
    for donated in ((), (0,)):
        got = hg.jit(lambda x, y: x.at[100:1000].set(y), donate_argnums=donated)(hg.tensor(x), y)
        np.testing.assert_array_equal(np.asarray(got), want)


# --- shape of the code -----------------------------------------------------------------------------------------------


def test_each_piece_has_a_nest_that_reads_it_alone() -> None:
    d = Draft()
    parts = [d.input(1000 + i) for i in range(16)]
    (kernel,) = kernels(d.schedule(d("exp", d("concatenate", *parts, 0))))
    assert len(nests(kernel)) == 16 == count(kernel, "load") == count(kernel, "exp")
    assert count(kernel, "select") == count(kernel, "inside") == 0


@pytest.mark.parametrize("axis", [1, 2])
def test_pieces_that_take_turns_are_read_without_selects(axis: int) -> None:
    """One nest computes elements side by side where pieces take turns along the last axis; along another, each has a nest."""
    d = Draft()
    parts = [d("reshape", d.input(30, 20, 40), (30, 20, 1, 40) if axis == 1 else (30, 20, 40, 1)) for _ in range(2)]
    turns = d("reshape", d("concatenate", *parts, axis + 1), (30, 40, 40) if axis == 1 else (30, 20, 80))
    (kernel,) = kernels(d.schedule(d.part(turns, axis, 1, int(turns.shape[axis]) - 1)))
    assert len(nests(kernel)) == (2 if axis == 1 else 1) and count(kernel, "load") == 2
    assert count(kernel, "select") == count(kernel, "inside") == 0


def test_few_elements_are_selected() -> None:
    d = Draft()
    (kernel,) = kernels(d.schedule(d("concatenate", d.input(8), d.input(9), 0)))
    assert len(nests(kernel)) == 1 == count(kernel, "select")


def test_what_saves_nothing_is_not_cut() -> None:
    """An edge of a pad costs one select: not worth a second copy of a long chain."""
    d = Draft()
    y = d("pad", d.input(5000), d.const(0), (1,), (1,))
    for _ in range(10):
        y = d("tanh", y)
    (kernel,) = kernels(d.schedule(y))
    assert len(nests(kernel)) == 1 and count(kernel, "tanh") == 10


def test_more_pieces_than_a_kernel_should_hold() -> None:
    d = Draft()
    graph = d.graph(d("concatenate", *(d.input(2, 3) for _ in range(700)), 1))
    arrays = [np.full((2, 3), i, np.float32) for i in range(700)]
    with eager():
        schedule = scheduled(graph)
    assert 1 < len(schedule.steps) < 10
    assert np.array_equal(run_schedule(schedule, arrays)[0], np.concatenate(arrays, axis=1))


def test_rows_of_many_pieces_are_reduced_once_put_together() -> None:
    d = Draft()
    whole = d("concatenate", *(d.input(500) for _ in range(MANY)), 0)
    ks = kernels(d.schedule(d("reduce_sum", d("square", whole), (0,))))
    assert sum(count(k, "select") for k in ks) == 0


def test_derivatives_of_slices_grow_linearly() -> None:
    """The derivative of reading a part is a pad; a sum of many is as long as the array, not as long as the pads together."""

    def kernels_and_peak(parts: int) -> tuple[int, float]:
        width = 24_000 // parts

        def f(x: Any) -> Any:
            return sum(hnp.sum(hnp.sin(x[i * width : (i + 1) * width]) * (i + 1)) for i in range(parts))

        compiled = hg.jit(hg.grad(f)).lower(np.zeros(24_000, np.float32)).compile()
        return compiled.reduction().kernels, compiled.memory_analysis().peak

    assert kernels_and_peak(5)[0] == 1
    kernels_of_twenty, peak = kernels_and_peak(20)
    assert kernels_of_twenty <= 2 and peak <= 4 * 24_000 * 1.2


# --- gathers in boxes ------------------------------------------------------------------------------------------------

PIECES: dict[str, Callable[[Any, Any], Any]] = {  # (namespace, array): what falls into boxes, some of one element
    "roll": lambda np_, x: np_.roll(x, 1),
    "roll back": lambda np_, x: np_.roll(x, -3),
    "pad": lambda np_, x: np_.pad(x, (1, 70)),
    "concatenate": lambda np_, x: np_.concatenate([x[:1], x, x[5:], x[:2]]),
    "prepended": lambda np_, x: np_.diff(x, prepend=0.0),
    "join_kernels ends": lambda np_, x: np_.concatenate([x[-1:], x[:-1] * 2, x[:1]]),
    "elements": lambda np_, x: _with_elements(x),
    "stack": lambda np_, x: np_.stack([x, np_.roll(x, 2)], 1),
}


def _with_elements(x: Any) -> Any:
    """``x`` with 1 added at 7 and 2 taken away at 9."""
    if isinstance(x, np.ndarray):
        x = x.copy()
        x[7] += 1
        x[9] -= 2
        return x
    return x.at[7].add(1).at[9].add(-2)


@pytest.mark.crossed
@pytest.mark.parametrize("n", [50, 1100, 5000])
@pytest.mark.parametrize("name", PIECES)
def test_boxes_of_gathered_elements(name: str, n: int) -> None:
    """Each box gathers for itself: several values of a kernel are indices, each by a name of its own."""
    draw = seeded(name + str(n))
    x, i, j = draw.standard_normal(n).astype(np.float32), draw.integers(0, n, n), draw.integers(0, n, n)

    def f(np_: Any, x: Any, i: Any, j: Any) -> Any:
        return PIECES[name](np_, x[i] + x[j[i]])

    want = f(np, x, i, j)
    for precision in ("exact", "standard", "fast"):
        got = np.asarray(hg.jit(lambda x, i, j: f(hnp, x, i, j), precision=precision)(x, i, j))
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(np.asarray(f(hnp, hg.tensor(x), hg.tensor(i), hg.tensor(j))), want, rtol=1e-6, atol=1e-6)


def test_one_value_indexes_axes_of_several_extents() -> None:
    """What is in range of one axis need not be in range of another."""
    x, y = np.arange(20.0, dtype=np.float32), np.arange(30.0, dtype=np.float32)
    i = np.array([0, 7, 19, 3])
    f = hg.jit(lambda x, y, i: (x[i] * y[i]).at[i % 4].add(x[i]), precision="exact")
    want = x[i] * y[i]
    np.add.at(want, i % 4, x[i])
    assert np.array_equal(np.asarray(f(x, y, i)), want)


def test_boxes_add_nothing_that_a_pad_fills_in() -> None:
    x = np.random.default_rng(0).standard_normal((40, 50)).astype(np.float32)

    def f(x: Any) -> Any:
        return hnp.pad(x, ((6, 0), (0, 0)), constant_values=-0.0) + hnp.pad(x, ((0, 6), (0, 0)), constant_values=-0.0)

    made = hg.jit(f, precision="exact")
    assert made.lower(x).compile().as_text("kernels").count("= add(") == 1
    np.testing.assert_array_equal(made(x).numpy(), np.pad(x, ((6, 0), (0, 0))) + np.pad(x, ((0, 6), (0, 0))))
