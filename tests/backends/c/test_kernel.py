"""Kernel IR as C: the whole op table in each dialect, what compilers say of them, and kernels run as threads."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hologram import dtypes
from hologram.backends.c.analysis.gemm import GPU_TILE, MATRIX_UNIT_TILE
from hologram.backends.c.dialects import DIALECTS
from hologram.backends.c.grid import Mapping
from hologram.backends.c.helpers import HELPERS, needed
from hologram.backends.c.scalars import Scalars
from hologram.backends.c.source import Program
from hologram.errors import UnsupportedError
from hologram.graph.execution_plan import ExecutionPlan
from hologram.graph.kernel.ir import Buffer
from hologram.graph.kernel.printer import print_kernel
from hologram.graph.legalize import scans
from hologram.graph.pipeline import compile_to_plan
from hologram.graph.schedule import tiles
from hologram.ir.graph import Graph
from hologram.ir.interpreter import evaluate
from hologram.primitives import TABLE, Op
from hologram.settings import override
from tests.support.building import Draft, kernels, layer_norm, product, softmax
from tests.support.devices.c_harness import run
from tests.support.graphs.products import MATRIX_UNITS, PRODUCTS
from tests.support.graphs.programs import PROGRAMS
from tests.support.needs import needs_compilers
from tests.support.optable import mismatch, one_op_graph, rows, seeded, signatures, tame_values


def program(name: str, dialect: str) -> Program:
    make, precision = PROGRAMS[name]
    d = Draft()
    return Program(kernels(d.schedule(*make(d), precision=precision)), dialect, precision)


def _graphs(row: Op) -> list[Graph]:
    """A graph of one op for each of its signatures."""
    out = []
    for types, attrs in signatures(row):
        out.append(one_op_graph(row, attrs, [np.zeros(40, d.np) for d in types]))
    return out


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_elementwise_row_renders(dialect: str) -> None:
    """Each row of the table, of every type; what a dialect without float64 lacks is refused by name."""
    refused = 0
    for row in rows("elementwise"):
        for graph in _graphs(row):
            schedule = compile_to_plan(graph, "exact")
            try:
                text = Program([k.kernel for k in schedule.kernels], dialect, "exact").text
            except UnsupportedError as e:
                assert DIALECTS[dialect].double is None and "float64" in str(e)
                refused += 1
                continue
            assert "kernel0" in text or not schedule.kernels
            if DIALECTS[dialect].double is None:
                assert not re.search(r"\b(f64|double)\b", text)
    assert (refused > 0) == (DIALECTS[dialect].double is None)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_renders(name: str, dialect: str) -> None:
    p = program(name, dialect)
    assert p.text.count("{") == p.text.count("}")
    assert set(p.names.values()) == set(re.findall(r"\bkernel\d+(?=\()", p.text))


def test_rows_that_renderers_spell_have_a_spelling_in_c() -> None:
    spelled = [r for r in TABLE.values() if r.spelling is not None]
    assert len(spelled) > 25
    for row in spelled:
        assert all({"llvm", "c"} <= set(texts) for texts in row.spelling.values()), row  # type: ignore[union-attr]


def test_helpers_come_with_those_they_call() -> None:
    assert needed("x = hg_f16_to_f32(y)") == ["hg_f16_to_f32"]
    for name, text in HELPERS.items():
        assert re.search(rf"\b{name}\(", text)


# --- how kernels are laid on items -----------------------------------------------------------------------------------


def mapping(name: str) -> list[Mapping]:
    p = program(name, "opencl")
    return list(p.mappings.values())


def test_rows_take_32_items_a_page() -> None:
    assert [m.items for m in mapping("row_sum")] == [32]
    d = Draft()
    (long,) = kernels(d.schedule(*[d("reduce_max", d.input(20, 10_000), (1,))]))
    assert Mapping(long, Scalars(DIALECTS["opencl"])).items == 128


def test_teams_share_a_group_where_they_exchange_in_registers() -> None:
    d = Draft()
    (rows,) = kernels(d.schedule(softmax(d, d.input(200, 1000))))
    opencl, cuda = (Mapping(rows, Scalars(DIALECTS[name])) for name in ("opencl", "cuda"))
    assert (opencl.width, opencl.iterations, opencl.by_subgroup) == (32, 1, False)
    assert (cuda.width, cuda.iterations, cuda.items) == (32, 8, 256) and cuda.local <= DIALECTS["cuda"].local_bytes
    assert cuda.groups(200) == 25 and opencl.groups(200) == 200


def test_neighbours_are_read_and_written_16_bytes_at_once() -> None:
    text = program("chain", "cuda").text
    assert "*(const hg_f32x4 *)(b0 + " in text and "*(hg_f32x4 *)(b3 + " in text


def test_kernels_without_lanes_have_an_iteration_an_item() -> None:
    last = mapping("long_scan")[1]
    assert last.by_item


def test_scratch_that_does_not_fit_is_a_workspace() -> None:
    k = kernels(_scheduled("softmax"))[0]
    scalars = Scalars(DIALECTS["opencl"])
    assert Mapping(k, scalars).workspace == 0
    k.scratch[0].size = scalars.dialect.local_bytes // 4
    big = Mapping(k, scalars)
    assert big.in_workspace and big.workspace == scalars.dialect.local_bytes
    assert not Mapping(k, Scalars(DIALECTS["cuda"])).in_workspace
    assert isinstance(k.scratch[0], Buffer) and "hg_workspace" in Program([k], "opencl").text


def _scheduled(name: str) -> ExecutionPlan:
    make, precision = PROGRAMS[name]
    d = Draft()
    return d.schedule(*make(d), precision=precision)


def test_products_are_fused_where_contraction_is_allowed_only() -> None:
    def text(precision: str) -> str:
        d = Draft()
        x, y = d.input(100), d.input(100)
        return Program(kernels(d.schedule(d("add", y, d("mul", x, y)), precision=precision)), "cuda", precision).text

    assert "fmaf(" in text("standard") and "fmaf(" not in text("exact")


# --- kernels that run ------------------------------------------------------------------------------------------------


def _reduced_any(d: Draft) -> list[Any]:
    x = d.input(5, 70, dtype="bool")
    return [d("reduce_any", x, (1,)), d("reduce_all", x, (0,))]


def _long_rows(d: Draft) -> list[Any]:
    x = d.input(2, 7000)
    return [d("reduce_sum", x, (1,)), d("argmax", x, 1)]


def _wide_scan(d: Draft) -> list[Any]:
    return [d("cumsum", d.input(3, 130), 1, False), d("cummax", d.input(2, 40, dtype="int32"), 1, True)]


def _scattered(d: Draft) -> list[Any]:
    return [d.scatter("scatter_add", d.input(6, 40), d.input(9, dtype="int32"), d.input(9, 40), 0, 0)]


def _neighbours(d: Draft) -> list[Any]:
    """Elements side by side: of several widths, beginning on and off a vector's edge, with and without a rest."""
    x, h, m = d.input(3, 6403), d.input(3, 6403, dtype="float16"), d.input(6403, dtype="bool")
    wide = d("select", d.spread(m, x.shape, 1), d("cast", h, "float32"), x)
    return [wide, d("add", x, d.part(d.input(3, 6500), 1, 40, 6443))]


def _doubles(d: Draft) -> list[Any]:
    y = d.input(9, 128, dtype="float64")
    return [d("mul", y, d.part(d.input(9, 136, dtype="float64"), 1, 3, 131))]


RUN = {
    "softmax": lambda d: [softmax(d, d.input(5, 70))],
    "many_rows": lambda d: [softmax(d, d.input(37, 128))],
    "neighbours": _neighbours,
    "doubles": _doubles,
    "layer_norm": lambda d: [layer_norm(d, d.input(4, 50), d.input(50), d.input(50))],
    "product": lambda d: [product(d, d.input(6, 9), d.input(9, 20))],
    "reduced_any": _reduced_any,
    "long_rows": _long_rows,
    "wide_scan": _wide_scan,
    "scattered": _scattered,
    "bits": lambda d: [d("popcount", d.input(90, dtype=t)) for t in ("uint8", "uint32", "uint64")],
    "halves": lambda d: [d("reduce_sum", d.input(3, 40, dtype="bfloat16"), (1,)), d("exp", d.input(30, dtype="float16"))],
}


@pytest.mark.crossed
@needs_compilers
@pytest.mark.parametrize("dialect", ["c", "cuda", "metal"])
@pytest.mark.parametrize("name", RUN)
def test_kernels_give_the_reference(name: str, dialect: str, tmp_path: Path) -> None:
    """A coroutine for each work-item: barriers are where they must be, and teams exchange what they must."""
    if name == "doubles" and DIALECTS[dialect].double is None:
        pytest.skip(f"{dialect} has no float64")
    d = Draft()
    graph = d.graph(*RUN[name](d))
    rng = seeded(name)
    arrays = [_values(x, rng) for x in graph.inputs]
    got = run(compile_to_plan(graph, "exact"), arrays, tmp_path, dialect=dialect)
    for g, w in zip(got, evaluate(graph, arrays), strict=True):
        inexact = name in ("softmax", "many_rows", "halves") and w.dtype.kind != "b"
        assert not mismatch(g, w, 8 if inexact else 0).any()


@pytest.mark.crossed
@needs_compilers
@pytest.mark.parametrize("dialect", ["c", "cuda", "metal"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_by_panels_give_the_reference(name: str, dialect: str, tmp_path: Path) -> None:
    d = Draft()
    graph = d.graph(*PRODUCTS[name](d))
    rng = seeded(name)
    arrays = [_values(x, rng) for x in graph.inputs]
    schedule = compile_to_plan(graph, "exact", GPU_TILE)
    assert [Mapping(k, Scalars(DIALECTS[dialect])).product is not None for k in kernels(schedule)] == [True]
    for g, w in zip(run(schedule, arrays, tmp_path, dialect=dialect, groups=2), evaluate(graph, arrays), strict=True):
        assert not mismatch(g, w, 0).any()


@needs_compilers
@pytest.mark.parametrize("shape", [(960, 40), (3, 500, 70)])
def test_few_columns_are_summed_in_bands(shape: tuple[int, ...], tmp_path: Path) -> None:
    d = Draft()
    x = d.input(*shape)
    axis = len(shape) - 2
    graph = d.graph(d("reduce_sum", d("square", x), (axis,)), d("reduce_max", x, (axis,)))
    schedule = compile_to_plan(graph, "standard", GPU_TILE)
    assert len(kernels(schedule)) == 2 and len(kernels(compile_to_plan(graph, "exact", GPU_TILE))) == 1
    array = seeded(shape).integers(-9, 9, shape).astype(np.float32)
    for g, w in zip(run(schedule, [array], tmp_path, "standard", dialect="cuda"), evaluate(graph, [array]), strict=True):
        np.testing.assert_array_equal(g, w)


@needs_compilers
@pytest.mark.parametrize(("dialect", "dtype"), [("cuda", "float32"), ("metal", "int32"), ("c", "int64")])
def test_what_stands_before_pages_is_found_side_by_side(dialect: str, dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scans, "MAX_SEQUENTIAL_PAGES", 4)
    d = Draft()
    x = d.input(2, 17_000, dtype=dtype)
    graph = d.graph(d("cumsum", x, 1, dtype == "int32"), d("cummax", x, 1, False))
    schedule = compile_to_plan(graph, "standard", GPU_TILE)
    assert not any(k.iterations == 2 and not k.scratch and "lanes" not in print_kernel(k) for k in kernels(schedule))
    array = seeded(dtype).integers(-100, 100, x.shape).astype(x.dtype.np)
    for g, w in zip(run(schedule, [array], tmp_path, "standard", dialect=dialect), evaluate(graph, [array]), strict=True):
        np.testing.assert_array_equal(g, w)  # sums of small integers are exact in any order


@needs_compilers
@pytest.mark.parametrize(
    ("op", "shape", "axis", "dtype", "reverse"),
    [("cumsum", (1024, 5), 0, "float32", False), ("cumsum", (2, 997, 3), 1, "int32", True), ("cummax", (1000, 4), 0, "float32", True)],
)
def test_long_columns_are_scanned_in_bands(op: str, shape: tuple[int, ...], axis: int, dtype: str, reverse: bool, tmp_path: Path) -> None:
    d = Draft()
    graph = d.graph(d(op, d.input(*shape, dtype=dtype), axis, reverse))
    schedule = compile_to_plan(graph, "standard", GPU_TILE)
    assert max(k.iterations for k in kernels(schedule) if isinstance(k.iterations, int)) >= 25
    array = seeded(op, shape).integers(-9, 9, shape).astype(dtype)
    (got,), (want,) = run(schedule, [array], tmp_path, "standard", dialect="metal"), evaluate(graph, [array])
    np.testing.assert_array_equal(got, want)


@needs_compilers
@pytest.mark.parametrize("name", MATRIX_UNITS)
def test_matrix_units_give_nearly_the_reference(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each product of two 16-bit floats is exact in float32; the sums differ in their order."""
    if name == "wide":
        monkeypatch.setattr(tiles, "MIN_DEVICE_PANELS", 1)
    d = Draft()
    graph = d.graph(*MATRIX_UNITS[name](d))
    arrays = [_values(x, seeded(name)) for x in graph.inputs]
    schedule = compile_to_plan(graph, "standard", MATRIX_UNIT_TILE)
    (kernel,), scalars, by_request = kernels(schedule), Scalars(DIALECTS["cuda"]), name == "tf32"
    assert Mapping(kernel, scalars, "standard").on_matrix_units != by_request
    with override(tf32=by_request):
        assert Mapping(kernel, scalars, "standard").on_matrix_units and not Mapping(kernel, scalars, "exact").on_matrix_units
        (got,), (want,) = run(schedule, arrays, tmp_path, "standard", dialect="cuda"), evaluate(graph, arrays)
    rounded = 2.0**-7 if want.dtype == dtypes.bfloat16.np else 1e-4
    np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=rounded, atol=0.05 if by_request else 1e-4)


def _values(node: Any, rng: np.random.Generator) -> np.ndarray:
    if node.dtype is dtypes.int32:
        return rng.integers(0, 6, node.shape).astype(np.int32)
    return tame_values(node.dtype, int(np.prod(node.shape)), rng).reshape(node.shape)
