"""Programs that native code runs op by op: the bits of compiled programs, for every op and for random graphs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples

from hologram.backends.native import storage
from hologram.backends.native.module import why_not_native
from hologram.backends.op_by_op import ready_kernels
from hologram.backends.op_by_op.native_steps import native_program
from hologram.backends.op_by_op.program import op_by_op
from hologram.ir.graph import Graph
from hologram.ir.leaves import input_
from hologram.settings import override
from hologram.trace import lazy, operators, recorder
from hologram.trace.lazy_programs import immediate, known
from tests.support.building import Draft
from tests.support.graphs.random_graphs import arguments, exact_graphs, seeds, smooth_graphs
from tests.support.graphs.roundings import quotients, sums_of_products
from tests.support.optable import Case, cases_of, compiler, mismatch, one_op_graph, rows

pytestmark = pytest.mark.skipif(why_not_native() is not None, reason=f"no native calls: {why_not_native()}")

RUNS = 5  # by Python twice at most, handed over by the third time, then by native code
SAMPLE = 8  # cases of an op
WITHOUT = {"div_trunc", "rem_trunc", "fused_mul", "pair_dot", "sort_key", "sort_value"}  # what users do not reach alone
BY_PYTHON = {"concatenate", "pad", "gather", "windows", "barrier", "real", "imag", "complex", "conj"}  # no views; pairs of numbers


@pytest.fixture(autouse=True)
def all_graphs(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """All graphs run op by op, however large, and are handed over when they come again."""
    for name in ("MAX_NODES", "MAX_ELEMENTS", "MAX_RUN", "BUDGET"):
        monkeypatch.setattr(immediate, name, 10**9)
    monkeypatch.setattr(immediate, "KERNEL_RUNS", 0)
    monkeypatch.setattr(lazy, "MOVED_PER_WALK", 1)
    lazy.clear()
    with override(op_by_op=True):
        yield
    lazy.clear()


def _recorded(graph: Graph, arrays: list[np.ndarray]) -> list[Any]:
    """The outputs of a graph, recorded lazily on Tensors of ``arrays``."""
    made: dict[Any, Any] = {}
    for n in graph.nodes():
        if n.op is input_:
            made[n] = recorder.leaf_node(storage.copy_of(arrays[n.attrs[0]]))
        else:
            made[n] = recorder.pending(n.op, tuple([made[x] for x in n.inputs]), n.attrs, n.shape, n.dtype)
    return [operators.wrap(made[x]) for x in graph.outputs]


def _runs(graph: Graph, arrays: list[np.ndarray]) -> tuple[list[list[np.ndarray]], int]:
    """The results of a graph, again and again; how often native code gave them."""
    found, natively = [], 0
    for _ in range(RUNS):
        tensors = _recorded(graph, arrays)
        natively += known.realise_known(tensors)
        lazy.realise(*tensors)
        found.append([storage.view(t._storage) for t in tensors])
    return found, natively


def _assert_same_bits(graph: Graph, arrays: list[np.ndarray]) -> int:
    """The bits of each run are those of the compiled program; how often native code gave them."""
    wanted = compiler()(graph, precision="standard").run_numpy(arrays)
    found, natively = _runs(graph, arrays)
    for results in found:
        for got, want in zip(results, wanted, strict=True):
            assert got.dtype == want.dtype and got.shape == want.shape
            assert not mismatch(got, want, 0).any()
    return natively


def _cases(row: Any) -> list[Case]:
    found = list(cases_of(row, False))
    return found[:: max(1, len(found) // SAMPLE)]


@pytest.mark.costly(5)
@pytest.mark.parametrize("row", [r for kind in ("elementwise", "movement", "reduce", "scan") for r in rows(kind)], ids=lambda r: r.name)
def test_each_op_has_the_bits_of_its_kernel(row: Any) -> None:
    if row.name in WITHOUT:
        return
    natively = 0
    for _, attrs, arrays in _cases(row):
        graph = one_op_graph(row, attrs, arrays)
        if not any(0 in n.shape or n.dtype.is_complex for n in graph.nodes()):
            natively += _assert_same_bits(graph, arrays)
    assert natively or row.name in BY_PYTHON


@examples(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sums_of_products() | quotients() | exact_graphs() | smooth_graphs(), seeds)
def test_random_graphs(graph: Graph, seed: int) -> None:
    lazy.clear()
    program = op_by_op(graph, 1e12)
    if program is not None and not any(n.op.kind == "leaf" for n in graph.outputs):
        _assert_same_bits(graph, arguments(graph, seed, False))


def test_intermediates_share_memory() -> None:
    """A chain has two of them at a time, however long it is; a value that is wanted later keeps its own."""
    d = Draft()
    x = y = d.input(1000)
    chain = [y := d("sub", d("abs", y), x) for _ in range(20)]
    program = op_by_op(d.graph(chain[-1]), 1e12)
    assert program is not None and (native := native_program(program, True)) is not None
    assert native.arena_bytes < 4 * 4096
    _assert_same_bits(d.graph(d("sub", chain[-1], chain[3])), [np.linspace(-2, 2, 1000, dtype=np.float32)])


def test_moved_values_are_copied_where_they_lie_elsewhere() -> None:
    d = Draft()
    x = d.input(6, 4)
    turned = d("transpose", d("abs", x), (1, 0))
    part = d("slice", turned, (3, 5), (0, -1), (-1, -2))
    flat = d("reshape", d("neg", x), (24,))
    graph = d.graph(d("sub", turned, d("abs", turned)), d("abs", part), d("floor", flat))
    assert _assert_same_bits(graph, [np.linspace(-2, 2, 24, dtype=np.float32).reshape(6, 4)]) >= RUNS - 3


def test_results_that_are_arguments_or_one_another_are_copies() -> None:
    d = Draft()
    x = d.input(6)
    y = d("abs", x)
    assert _assert_same_bits(d.graph(d("reshape", x, (2, 3)), y, d("reshape", y, (3, 2)), y), [np.linspace(-2, 2, 6, dtype=np.float32)])


def test_kernels_are_compiled_only_where_asked() -> None:
    ready_kernels.clear()
    d = Draft()
    x = d.input(40)
    program = op_by_op(d.graph(d("cast", x, "int32")), 1e12)
    assert program is not None
    assert native_program(program, False) is None
    assert native_program(program, True) is not None
