"""Expensive values of a row are computed at the head of the row by its readers, where rows are long and nobody goes along them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from hologram.graph.fusion.rematerialize_rows import MIN_ROW_ELEMENTS
from hologram.ir.interpreter import evaluate
from hologram.ir.node import Node
from tests.support.building import Draft, kernels
from tests.support.kernel_interpreter import run_schedule
from tests.support.optable import mismatch, seeded

ROWS, WIDTH = 20, MIN_ROW_ELEMENTS + 8


def scaled(d: Draft, width: int = WIDTH) -> Node:
    x = d.input(ROWS, width)
    return d("mul", x, d.spread(d("sqrt", d("square", d.input(ROWS))), x.shape, 0))


def two_readers(d: Draft) -> list[Node]:
    head = d("sqrt", d("square", d.input(ROWS)))
    x, y = d.input(ROWS, WIDTH), d.input(ROWS, 2 * WIDTH)
    return [d("mul", v, d.spread(head, v.shape, 0)) for v in (x, y)]


def reads_along(d: Draft) -> list[Node]:
    """The same scale for a transposed array, whose lanes go along it."""
    head = d("sqrt", d("square", d.input(WIDTH)))
    x, y = d.input(WIDTH, WIDTH), d.input(WIDTH, WIDTH)
    return [d("mul", x, d.spread(head, x.shape, 0)), d("add", y, d.spread(head, y.shape, 1))]


def summed_down(d: Draft) -> list[Node]:
    """The scale varies along the reduced axis: each step of the sum would compute it anew."""
    return [d("reduce_sum", scaled(d), (0,))]


def kept_and_returned(d: Draft) -> list[Node]:
    head = d("sqrt", d("square", d.input(ROWS)))
    x = d.input(ROWS, WIDTH)
    return [d("mul", x, d.spread(head, x.shape, 0)), head]


PROGRAMS: dict[str, tuple[Callable[[Draft], list[Node]], int]] = {
    "scaled": (lambda d: [scaled(d)], 1),
    "short rows": (lambda d: [scaled(d, MIN_ROW_ELEMENTS // 2)], 2),
    "summed along rows": (lambda d: [d("reduce_sum", scaled(d), (1,))], 1),
    "two readers": (two_readers, 2),
    "read along": (reads_along, 3),
    "summed down": (summed_down, 2),
    "kept and returned": (kept_and_returned, 2),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_heads_of_rows(name: str) -> None:
    program, count = PROGRAMS[name]
    d = Draft()
    graph = d.graph(*program(d))
    schedule = d.schedule(*graph.outputs)
    assert len(kernels(schedule)) == count
    arrays = [seeded(name, i).standard_normal([int(n) for n in x.shape]).astype(np.float32) for i, x in enumerate(graph.inputs)]
    for got, want in zip(run_schedule(schedule, arrays), evaluate(graph, arrays), strict=True):
        assert not mismatch(got, want, 0).any()


def test_a_broadcast_without_axes_has_no_rows() -> None:
    d = Draft()
    graph = d.graph(d("broadcast", d("sqrt", d("square", d("reshape", d.input(1), ()))), (), ()))
    (got,) = run_schedule(d.schedule(*graph.outputs), [np.array([-2.0], np.float32)])
    assert got == 2
