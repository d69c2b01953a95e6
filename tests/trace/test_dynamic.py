"""Symbolic extents: one executable serves every size, with the bits that the graph of that size has by the reference."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import HologramError, ShapeError, TracedValueError
from hologram.ir.graph import Graph
from hologram.ir.interpreter import evaluate
from hologram.ir.node import Node
from hologram.ir.symbolic import floordiv, var
from hologram.primitives.reductions import PAGE
from tests.support.building import Draft, layer_norm, product, scheduled, softmax
from tests.support.kernel_interpreter import run_schedule
from tests.support.optable import compiler, mismatch, ordinary_values, rows, seeded

SIZES = [0, 1, 2, 31, 32, 33, 3071, 3072, 3073, 10_000]
FEW_SIZES = [0, 1, 3, 33]  # for the second symbol, and for what is interpreted

Program = Callable[[Draft, Any], Sequence[Node]]


def _map(d: Draft, n: Any) -> list[Node]:
    x, y = d.input(n), d.input(n)
    s = d("add", x, d("mul", y, d.const(3)))
    return [s, d("max", s, x), d("gt", x, y)]


def _map_of_rows(d: Draft, n: Any) -> list[Node]:
    x, row, column = d.input(n, 5), d.input(5), d.input(n)
    return [d("sub", d("mul", x, d.spread(row, x.shape, 1)), d.spread(column, x.shape, 0))]


def _map_of_columns(d: Draft, n: Any) -> list[Node]:
    x, row, column = d.input(5, n), d.input(n), d.input(5)
    return [d("sub", d("mul", x, d.spread(row, x.shape, 1)), d.spread(column, x.shape, 0))]


def _types(d: Draft, n: Any) -> list[Node]:
    x, y, z = d.input(n, dtype="float16"), d.input(n, dtype="int8"), d.input(n, dtype="bool")
    return [d("select", z, d("add", x, d("cast", y, "float16")), x), d("not", z), d("cast", d("iota", (n,), 0, "int64"), "bfloat16")]


def _row_reduction(d: Draft, n: Any) -> list[Node]:
    x = d.input(n, 40)
    return [d("reduce_sum", d("square", x), (1,)), d("reduce_max", x, (1,)), d("argmin", x, 1)]


def _row_kernels(d: Draft, n: Any) -> list[Node]:
    x = d.input(n, 40)
    return [layer_norm(d, x, d.input(40), d.input(40)), d("div", x, d.over_rows("reduce_sum", x))]


def _reduction_of_symbolic_rows(d: Draft, n: Any) -> list[Node]:
    x = d.input(3, n)
    return [d("reduce_sum", x, (1,)), d("reduce_prod", x, (1,)), d("div", x, d.over_rows("reduce_sum", x))]


def _column_reduction(d: Draft, n: Any) -> list[Node]:
    x = d.input(n, 7)
    total = d("reduce_sum", x, (0,))
    return [total, d("sub", x, d.spread(total, x.shape, 1)), d("reduce_any", d("gt", x, d.const(1)), (0,))]


def _reduction_to_symbolic_columns(d: Draft, n: Any) -> list[Node]:
    return [d("reduce_sum", d.input(7, n), (0,)), d("reduce_sum", d.input(3, n, 2), (0, 2))]


def _full_reduction(d: Draft, n: Any) -> list[Node]:
    x, y = d.input(n), d.input(n, 3)
    return [d("reduce_sum", x, (0,)), d("reduce_sum", y, (0, 1)), d("reduce_sum", d.input(n, dtype="int16"), (0,))]


def _extremes(d: Draft, n: Any) -> list[Node]:
    x = d.input(3, n)
    y = d("transpose", x, (1, 0))
    return [f for z, axis in ((x, 1), (y, 0)) for f in (d("reduce_max", z, (axis,)), d("argmax", z, axis))] + [d("reduce_min", x, (0, 1))]


def _scans(d: Draft, n: Any) -> list[Node]:
    x, y, z = d.input(n), d.input(3, n), d.input(n, 3)
    rows = [d("cumsum", x, 0, False), d("cumsum", x, 0, True), d("cumsum", y, 1, False)]
    return [*rows, d("cumsum", z, 0, False), d("cumsum", z, 1, True), d("cummax", z, 0, True)]


def _reshapes(d: Draft, n: Any) -> list[Node]:
    x, y = d.input(n, 6), d.input(2, n)
    flat = d("reshape", x, (6 * n,))
    turned = d("reshape", d("transpose", x, (1, 0)), (6 * n,))
    return [d("neg", d("reshape", x, (2 * n, 3))), d("neg", turned), d("add", flat, turned), d("neg", d("reshape", y, (2 * n,)))]


def _flips(d: Draft, n: Any) -> list[Node]:
    x = d.input(n, 4)
    turned = d("reshape", d("transpose", x, (1, 0)), (4 * n,))
    return [d.part(x, 0, n - 1, -1, -1), d.part(turned, 0, 4 * n - 1, -1, -1)]


def _edges(d: Draft, n: Any) -> list[Node]:
    x, y = d.input(n), d.input(n, 3)
    padded = d("pad", x, d.const(7), (2,), (3,))
    joined = d("concatenate", y, y, y, 0)
    return [padded, d("concatenate", x, padded, x, 0), joined, d("pad", y, d.const(1), (1, 1), (0, 2))]


def _slices(d: Draft, n: Any) -> list[Node]:
    x = d.input(n + 2, 3)
    inner = [d.part(x, 0, i, n + i) for i in range(3)]
    return [d("add", d("add", inner[0], inner[1]), inner[2]), d.part(x, 0, 0, n + 2, 2), d.part(x, 0, n + 1, 0, -3)]


def _gathers(d: Draft, n: Any) -> list[Node]:
    x, at = d.input(10, n), d.input(n, dtype="int64")
    table = d.input(10)
    wrapped = d("rem", at, d.const(10, "int64"))
    return [d.take(table, wrapped, 0), d.take(x, d("rem", d.input(4, dtype="int64"), d.const(10, "int64")), 0)]


def _products(d: Draft, n: Any) -> list[Node]:
    """Of rows that may be one, or none: tiles have several."""
    x, w = d.input(2 * n, 16), d.input(16, 32)
    few = [d.part(x, 0, n, 2 * n), d.part(x, 0, 0, 2 * n, 2)]
    return [product(d, rows, w) for rows in [*few, x]]


def _expensive(d: Draft, n: Any) -> list[Node]:
    """Values between kernels, whose places in the arena depend on the size."""
    x = d.input(n)
    y = d("fmod", x, d.const(3))
    z = d("fmod", d("add", y, d("pad", d.part(y, 0, 0, n), d.const(0), (0,), (0,))), d.const(2))
    return [d("concatenate", y, z, d("cumsum", z, 0, True), 0), d("reduce_sum", z, (0,))]


PROGRAMS: dict[str, tuple[Program, int]] = {  # and the least size
    name.strip("_"): (program, least)
    for name, program, least in [
        ("map", _map, 0),
        ("map_of_rows", _map_of_rows, 0),
        ("map_of_columns", _map_of_columns, 0),
        ("types", _types, 0),
        ("row_reduction", _row_reduction, 0),
        ("row_kernels", _row_kernels, 0),
        ("reduction_of_symbolic_rows", _reduction_of_symbolic_rows, 0),
        ("column_reduction", _column_reduction, 0),
        ("reduction_to_symbolic_columns", _reduction_to_symbolic_columns, 0),
        ("full_reduction", _full_reduction, 0),
        ("extremes", _extremes, 1),
        ("scans", _scans, 0),
        ("reshapes", _reshapes, 0),
        ("flips", _flips, 0),
        ("edges", _edges, 0),
        ("slices", _slices, 0),
        ("gathers", _gathers, 0),
        ("products", _products, 0),
        ("expensive", _expensive, 0),
    ]
}


def graph_of(program: Program, n: Any) -> Graph:
    d = Draft()
    outputs = program(d, n)
    return d.graph(*outputs)


def arguments(graph: Graph) -> list[np.ndarray]:
    rng = seeded(*(str(x.shape) for x in graph.inputs))
    sizes = [[int(n) for n in x.shape] for x in graph.inputs]
    return [ordinary_values(x.dtype, int(np.prod(s)), rng, -2.0, 2.0).reshape(s) for x, s in zip(graph.inputs, sizes, strict=True)]


def assert_same(got: Sequence[np.ndarray], graph: Graph, arrays: list[np.ndarray], about: str) -> None:
    for k, (g, w) in enumerate(zip(got, evaluate(graph, arrays), strict=True)):
        assert g.dtype == w.dtype and g.shape == w.shape, f"{about}: result {k} is {g.dtype}{g.shape}, not {w.dtype}{w.shape}"
        wrong = mismatch(g, w, 0)
        assert not wrong.any(), f"{about}: result {k} has {wrong.sum()} wrong of {w.size}: {g[wrong][:4]}, not {w[wrong][:4]}"


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_size_has_the_references_bits(name: str) -> None:
    program, least = PROGRAMS[name]
    executable = compiler()(graph_of(program, var("n0", least)), precision="exact")
    for n in SIZES:
        if n >= least:
            graph = graph_of(program, n)
            arrays = arguments(graph)
            assert_same(executable.run_numpy(arrays), graph, arrays, f"n0 = {n}")


@pytest.mark.parametrize("name", PROGRAMS)
def test_kernels_of_every_size_stay_in_range(name: str) -> None:
    """The same kernels, interpreted: no access beyond an array, no element left out."""
    program, least = PROGRAMS[name]
    schedule = scheduled(graph_of(program, var("n0", least)))
    for n in FEW_SIZES:
        if n >= least:
            graph = graph_of(program, n)
            arrays = arguments(graph)
            assert_same(run_schedule(schedule, arrays), graph, arrays, f"n0 = {n}")


def _two_symbols(d: Draft, sizes: Any) -> list[Node]:
    n, m = sizes
    x, y = d.input(n, m), d.input(m, n)
    both = d("add", x, d("transpose", y, (1, 0)))
    flat = d("reshape", both, (n * m,))
    return [both, d("reduce_sum", both, (0,)), d("reduce_sum", both, (1,)), d("reduce_sum", flat, (0,)), d.part(flat, 0, n * m - 1, -1, -1)]


def test_two_symbols() -> None:
    executable = compiler()(graph_of(_two_symbols, (var("n0"), var("n1"))), precision="exact")
    for n in FEW_SIZES:
        for m in [*FEW_SIZES, 3073]:
            graph = graph_of(_two_symbols, (n, m))
            arrays = arguments(graph)
            assert_same(executable.run_numpy(arrays), graph, arrays, f"n0 = {n}, n1 = {m}")


def test_softmax_of_symbolic_rows() -> None:
    """Math functions: within their bound, whatever the number of rows."""

    def program(d: Draft, n: Any) -> list[Node]:
        return [softmax(d, d.input(n, 50))]

    executable = compiler()(graph_of(program, var("n0")))
    for n in (0, 1, 7, 1000):
        graph = graph_of(program, n)
        arrays = arguments(graph)
        (got,), (want,) = executable.run_numpy(arrays), evaluate(graph, arrays)
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_size_of_a_result_may_be_a_quotient() -> None:
    def program(d: Draft, n: Any) -> list[Node]:
        return [d.part(d.input(n), 0, 0, n, 3)]

    schedule = scheduled(graph_of(program, var("n0")))
    assert schedule.computed[0].shape == (floordiv(var("n0") + 2, 3),)
    executable = compiler()(graph_of(program, var("n0")))
    for n in (0, 1, 2, 3, 4, 100):
        assert executable.run_numpy([np.arange(n, dtype=np.float32)])[0].tolist() == list(range(0, n, 3))


def test_sizes_that_contradict_each_other_are_refused() -> None:
    n = var("n0")
    d = Draft()
    executable = compiler()(d.graph(d("add", d.input(n, 3), d.input(n, 3))))
    for shapes in (((4, 3), (5, 3)), ((4, 3), (4, 2))):
        with pytest.raises(ShapeError, match="should be"):
            executable.run_numpy([np.zeros(s, np.float32) for s in shapes])
    d = Draft()
    with pytest.raises(ShapeError, match="should be"):
        compiler()(d.graph(d("neg", d.input(2 * n)))).run_numpy([np.zeros(3, np.float32)])


REDUCTIONS = [r for r in rows("reduce") if r.attrs == ("axes",)]
POSITIONS = [r for r in rows("reduce") if r.attrs == ("axis",)]


def lone(rows: int, n: int) -> np.ndarray:
    """Rows that are all False or all True but for one element."""
    out = np.repeat(np.arange(rows) % 2 == 1, n).reshape(rows, n)
    places = n - 1 - np.arange(rows) * 197 % n
    out[np.arange(rows), places] ^= True
    return out


@pytest.mark.crossed
@pytest.mark.parametrize("n", [PAGE, PAGE + 1, 2 * PAGE + 33])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "float16", "float64"])
def test_many_long_rows_are_reduced_page_by_page_in_one_kernel(dtype: str, n: int) -> None:
    """Enough rows that none is cut: static and symbolic extents, rows and columns."""

    def program(d: Draft, size: Any) -> list[Node]:
        inputs = ((d.input(17, size, dtype=dtype), 1), (d.input(size, 40, dtype=dtype), 0))
        found = [d(r.name, z, (axis,)) for r in REDUCTIONS for z, axis in inputs if z.dtype.kind in r.kinds]
        return found + [d(r.name, z, axis) for r in POSITIONS for z, axis in inputs]

    graph = graph_of(program, n)
    arrays = arguments(graph)
    if dtype == "bool":  # one element decides, anywhere in a row
        arrays = [lone(17, n), lone(40, n).T.copy()]
    want = evaluate(graph, arrays)
    for of in (graph, graph_of(program, var("n0", 1))):
        executable = compiler()(of, precision="exact")
        for k, (g, w) in enumerate(zip(executable.run_numpy(arrays), want, strict=True)):
            assert not mismatch(g, w, 0).any(), f"result {k} of {of.outputs[k]}"


def test_reductions_of_many_symbolic_rows_stay_one_kernel() -> None:
    d = Draft()
    assert len(d.schedule(softmax(d, d.input(var("n0"), var("n1")))).kernels) == 1


def test_sizes_that_an_extent_may_have_are_not_compared() -> None:
    """One program serves all sizes, so a branch on one of them would be silently wrong for the others."""
    x = np.ones((5, 3), np.float32)
    for wrong in (lambda t: t * 2 if t.shape[0] == 3 else t, lambda t: t * 2 if t.shape[0] > 7 else t, lambda t: t if t.size != 15 else t * 2):
        with pytest.raises(TracedValueError, match="symbolic"):
            hg.jit(wrong, dynamic={0: (0,)})(x)
    decided = hg.jit(lambda t: t * 2 if t.shape[0] > 1 and t.shape[0] != 0 and t.shape[1] == 3 else t, dynamic={0: (0,)})
    np.testing.assert_array_equal(np.asarray(decided(x)), 2 * x)
    shaped = hg.jit(lambda t: hnp.reshape(t, (t.shape[0] * t.shape[1],)) + hnp.zeros((t.shape[0] * 3,)), dynamic={0: (0,)})
    np.testing.assert_array_equal(np.asarray(shaped(x)), x.ravel())


# --- every function --------------------------------------------------------------------------------------------------


def _of_one_array() -> list[str]:
    from tests.fuzz.catalogue import catalogue, parameters

    def required(name: str) -> list[str]:
        return [p.name for p in parameters(name) if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]

    return [name for name in catalogue() if len(required(name)) == 1]


@pytest.mark.parametrize("name", _of_one_array())
def test_symbolic_extents_are_taken_or_refused(name: str) -> None:
    """Tracing any function of one array for symbolic extents raises none but Hologram's own errors."""
    module, _, function = name.partition(".")
    f = getattr(getattr(hg, module), function)
    options: dict[str, Any] = {"numpy.nonzero": {"size": 4}, "numpy.flatnonzero": {"size": 4}, "numpy.fromstring": {"sep": ","}}.get(name, {})
    options |= {"v": 2} if name == "special.bessel_jn" else {}
    for x in (np.ones((3, 5)), np.ones((4, 4)), np.ones(6), np.ones((3, 5), np.int64)):
        with contextlib.suppress(HologramError):
            hg.jit(lambda x: f(x, **options), dynamic=True).lower(x)


def test_pieces_of_which_one_has_a_symbolic_size() -> None:
    """Each piece is a box of its own, with nests for ranges of sizes."""
    f = lambda c, x: hnp.concatenate([hnp.exp(c), x], 2) * 2  # noqa: E731
    of_all, of_one = hg.jit(f, dynamic={0: 2}), hg.jit(f, dynamic=False)
    x = np.ones((1, 2, 1, 4), np.float32)
    for n in (9, 5, 40, 700):
        c = np.random.default_rng(n).random((1, 2, n, 4), np.float32)
        np.testing.assert_array_equal(of_all(c, x), of_one(c, x))
