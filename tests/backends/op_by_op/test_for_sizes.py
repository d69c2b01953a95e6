"""Graphs with symbols that run op by op: at each size the bits of the program that is made for that size alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hologram.backends.native import storage
from hologram.backends.op_by_op import ready_kernels
from hologram.backends.op_by_op.for_sizes import op_by_op_for_sizes
from hologram.backends.op_by_op.program import op_by_op
from hologram.ir.graph import Graph
from hologram.ir.node import Node
from hologram.ir.symbolic import size_operand
from tests.support.building import Draft

_SIZES = (2, 3, 7, 40, 300)


def _elementwise(d: Draft, n: Any) -> Node:
    x = d.input(n)
    return d("add", d("mul", d("exp", x), d.input()), x)


def _rows(d: Draft, n: Any) -> Node:
    return d("reduce_sum", d("exp", d.input(n, 5)), (1,))


def _columns(d: Draft, n: Any) -> Node:
    return d("reduce_max", d.input(n, 5), (0,))


def _window(d: Draft, n: Any) -> Node:
    return d("exp", d.part(d.input(400), 0, 3, n + 3))


def _counted(d: Draft, n: Any) -> Node:
    return d("mul", d("iota", (n,), 0, "float32"), d.spread(d.input(), (n,)))


def _joined(d: Draft, n: Any) -> Node:
    x = d.input(n)
    return d("concatenate", d.part(x, 0, 1, n), d.part(x, 0, 0, 1), 0)


def _twice(d: Draft, n: Any) -> Node:
    return d("reshape", d("exp", d.input(n, 2)), (2 * n,))


def _squares(d: Draft, n: Any) -> Node:
    x = d.input(n)
    return d("reduce_sum", d("mul", x, x), (0,))


_GRAPHS: list[Callable[[Draft, Any], Node]] = [_elementwise, _rows, _columns, _window, _counted, _joined, _twice, _squares]


def _graph(make: Callable[[Draft, Any], Node], n: Any) -> Graph:
    d = Draft()
    return d.graph(make(d, n))


@pytest.mark.parametrize("uses", [0, 10**6])
@pytest.mark.parametrize("make", _GRAPHS, ids=lambda f: f.__name__[1:])
def test_each_size_has_the_bits_of_its_own_program(make: Callable[[Draft, Any], Node], uses: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By kernels and by references."""
    monkeypatch.setattr(ready_kernels, "REFERENCE_USES", uses)
    ready_kernels.clear()
    program = op_by_op_for_sizes(_graph(make, size_operand(0)), {"size0": 40}, 1e12)
    assert program is not None
    for n in _SIZES:
        graph = _graph(make, n)
        rng = np.random.default_rng(n)
        inputs = [storage.copy_of(rng.standard_normal(x.shape).astype(x.dtype.np)) for x in graph.inputs]  # type: ignore[arg-type]
        own = op_by_op(graph, 1e12)
        assert own is not None
        for got, want in zip(program.run(inputs, None, {"size0": n}), own.run(inputs), strict=True):
            assert got.aval is want.aval
            assert storage.view(got).tobytes() == storage.view(want).tobytes()


def test_what_has_no_step_for_all_sizes_or_takes_long_is_left() -> None:
    n = size_operand(0)
    d = Draft()
    assert op_by_op_for_sizes(d.graph(d("cumsum", d.input(n), 0, False)), {"size0": 40}, 1e12) is None
    graph = _graph(_elementwise, n)
    assert op_by_op_for_sizes(graph, {"size0": 10**9}, 1e6) is None
    assert op_by_op_for_sizes(graph, {"size0": 10}, 1e6) is not None
