"""Graphs that run op by op: the bits of compiled programs, for every op and for random graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, note

from hologram.backends.native import storage
from hologram.backends.op_by_op import ready_kernels
from hologram.backends.op_by_op.program import OpByOp, op_by_op
from hologram.ir.graph import Graph
from hologram.ir.op import TABLE
from hologram.settings import override
from hologram.trace import compiling
from tests.support.building import Draft
from tests.support.graphs.random_graphs import arguments, exact_graphs, seeds, smooth_graphs
from tests.support.graphs.roundings import quotients, sums_of_products
from tests.support.optable import Case, cases_of, compiler, mismatch, one_op_graph, rows

KINDS = ("elementwise", "movement", "reduce", "scan", "gather")
SAMPLE = 12  # cases of an op


def _program(graph: Graph) -> OpByOp | None:
    return op_by_op(graph, 1e12)


def _run(program: OpByOp, arrays: list[np.ndarray]) -> list[np.ndarray]:
    return [storage.view(s) for s in program.run([storage.copy_of(a) for a in arrays])]


def _assert_same_bits(graph: Graph, arrays: list[np.ndarray]) -> None:
    program = _program(graph)
    assert program is not None
    wanted = compiler()(graph, precision="standard").run_numpy(arrays)
    for got, want in zip(_run(program, arrays), wanted, strict=True):
        assert got.dtype == want.dtype and got.shape == want.shape
        assert not mismatch(got, want, 0).any()


def _cases(row: Any) -> list[Case]:
    found = list(cases_of(row, False))
    return found[:: max(1, len(found) // SAMPLE)]


# of those that assume a divisor that is not 0, users reach the guarded forms: the rest of a vector behind an array's end may be anything
TRUSTING = ("div_trunc", "rem_trunc")


@pytest.mark.costly(3)
@pytest.mark.parametrize("row", [r for kind in KINDS for r in rows(kind) if r.name not in TRUSTING], ids=lambda r: r.name)
def test_each_op_has_the_bits_of_its_kernel(row: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ready_kernels, "REFERENCE_USES", 0)
    ran = 0
    for case in _cases(row):
        _, attrs, arrays = case
        graph = one_op_graph(row, attrs, arrays)
        if _program(graph) is not None:
            _assert_same_bits(graph, arrays)
            ran += 1
    assert ran or not _cases(row) or row.name in ("fused_mul", "pair_dot", "sort_key", "sort_value")  # which only the compiler writes


@given(sums_of_products(), seeds)
def test_sums_of_products(graph: Graph, seed: int) -> None:
    _assert_same_bits(graph, arguments(graph, seed, False))


@given(quotients(), seeds)
def test_quotients(graph: Graph, seed: int) -> None:
    _assert_same_bits(graph, arguments(graph, seed, False))


@given(exact_graphs() | smooth_graphs(), seeds)
def test_random_graphs(graph: Graph, seed: int) -> None:
    program = _program(graph)
    if program is not None:
        note(program.as_text("legalized"))
        _assert_same_bits(graph, arguments(graph, seed, False))


@pytest.mark.parametrize("row", [r for kind in ("reduce", "scan") for r in rows(kind)], ids=lambda r: r.name)
def test_references_have_the_bits_of_kernels(row: Any) -> None:
    """They are used until a kernel pays."""
    ready_kernels.clear()
    for _, attrs, arrays in _cases(row):
        graph = one_op_graph(row, attrs, arrays)
        if _program(graph) is not None:
            _assert_same_bits(graph, arrays)


def test_a_kernel_is_compiled_when_an_op_is_used_often(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    monkeypatch.setattr(ready_kernels, "Kernel", lambda s, real=ready_kernels.Kernel: made.append(s) or real(s))
    monkeypatch.setattr(ready_kernels, "REFERENCE_USES", 3)
    ready_kernels.clear()
    for n in range(2, 9):
        d = Draft()
        _assert_same_bits(d.graph(d("reduce_sum", d.input(n), (0,))), [np.linspace(0, 1, n, dtype=np.float32)])
        assert len(made) == (n > 4)


def test_terms_that_are_rounded_with_their_sum_do_not_run_alone() -> None:
    """Machines with an instruction for pairs of bfloat16 round each product with the sum, and take subnormal numbers for zeros."""
    d = Draft()
    products = d.build(TABLE["pair_dot"], (d.input(3, 4, dtype="uint32"), d.input(3, 4, dtype="uint32")))
    assert _program(d.graph(d.build(TABLE["reduce_sum"], (products,), ((1,),)))) is None
    assert _program(d.graph(products)) is None


@pytest.mark.crossed
@pytest.mark.parametrize("shape", [(5, 1), (1, 9, 1), (3, 40, 1, 1), (40, 1), (7,), (1, 7), (6, 2), (1,), (1, 1)])
@pytest.mark.parametrize("op", ["cumsum", "cumprod", "reduce_sum", "reduce_prod"])
@pytest.mark.parametrize("uses", [0, 10**6])
def test_orders_along_axes_beside_axes_of_one_element(uses: int, op: str, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """By kernels and by references."""
    monkeypatch.setattr(ready_kernels, "REFERENCE_USES", uses)
    for axis in range(len(shape)):
        for seed in range(8):
            d = Draft()
            x = d.input(*shape)
            attrs = ((axis,),) if op.startswith("reduce") else (axis, False)
            array = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
            _assert_same_bits(d.graph(d.build(TABLE[op], (x,), attrs)), [array])


def test_kernels_serve_all_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    monkeypatch.setattr(ready_kernels, "Kernel", lambda s, real=ready_kernels.Kernel: made.append(s) or real(s))
    monkeypatch.setattr(ready_kernels, "REFERENCE_USES", 0)
    ready_kernels.clear()
    for shape in ((1,), (5,), (40,), (3, 7), (1, 1), (2, 3, 4)):
        d = Draft()
        x = d.input(*shape)
        graph = d.graph(d("reduce_sum", d("mul", d("exp", x), x), (len(shape) - 1,)), d("tanh", x))
        _assert_same_bits(graph, [np.linspace(-1, 1, x.size, dtype=np.float32).reshape(shape)])  # type: ignore[arg-type]
    assert len(made) <= 2 * 3  # each for arrays, and for scalars or columns


def test_what_has_no_kernel_for_all_sizes_or_takes_long_is_left() -> None:
    d = Draft()
    assert _program(one_op_graph(*next(iter(cases_of(TABLE["sort"], False))))) is None
    d = Draft()
    graph = d.graph(d("exp", d.input(1000)))
    assert op_by_op(graph, 1000) is None and _program(graph) is not None


def test_precision_follows_settings() -> None:
    """Kernels for another target are others."""
    d = Draft()
    x = d.input(40)
    graph = d.graph(d("exp", x))
    for target in ("x86-64", ""):
        with override(target=target):
            _assert_same_bits(graph, [np.linspace(-3, 3, 40, dtype=np.float32)])


def test_results_are_storages_of_their_types() -> None:
    d = Draft()
    x = d.input(4, 5)
    graph = d.graph(x, d("reshape", x, (20,)), d("transpose", x, (1, 0)), d.const(3.0, "float32"))
    program = compiling.op_by_op(graph, 1e12)
    a = np.arange(20, dtype=np.float32).reshape(4, 5)
    found = [storage.view(s) for s in program.run([storage.copy_of(a)])]
    for got, want in zip(found, (a, a.reshape(20), a.T, np.float32(3)), strict=True):
        np.testing.assert_array_equal(got, want)
