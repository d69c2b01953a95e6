"""Symbolic extents: one executable serves every size, with the bits that the graph of that size has by the reference."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from building import Draft, layer_norm, scheduled, softmax
from hypothesis import given
from hypothesis import strategies as st
from kernel_interpreter import run_schedule
from optable import compiler, mismatch, rows, seeded
from test_random_graphs import ordinary_values

import hologram as hg
import hologram.numpy as hnp
from hologram.backends.reference import evaluate
from hologram.errors import ArgumentError, LeakedTracerError, ShapeError, TracedValueError
from hologram.primitives.reductions import PAGE
from hologram.symbolic import floordiv, var
from hologram.trace.node import Graph, Node

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
    return [d("take", table, wrapped, 0), d("take", x, d("rem", d.input(4, dtype="int64"), d.const(10, "int64")), 0)]


def _dear(d: Draft, n: Any) -> list[Node]:
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
        ("dear", _dear, 0),
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


# --- extents as traced functions see them ----------------------------------------------------------------------------

X = np.arange(15, dtype=np.float32).reshape(5, 3)


@functools.lru_cache
def _remembered(n: Any) -> int:
    return 1


@pytest.mark.parametrize(
    "look_up",
    [
        lambda t: t * {5: 2}.get(t.shape[0], 1),
        lambda t: t * 2 if t.shape in {(5, 3): "known"} else t,
        lambda t: t * 2 if t.shape[0] in {5, 6} else t,
        lambda t: t * _remembered(t.shape[0]),
        lambda t: t * _remembered(t.shape),
        lambda t: t * _remembered(t.size // 2 + 1),
    ],
)
def test_extents_are_not_looked_up(look_up: Callable[[Any], Any]) -> None:
    with pytest.raises(TracedValueError, match=r"hash\(.*symbolic.*test_dynamic.py"):
        hg.jit(look_up, dynamic={0: 0})(X)


@pytest.mark.parametrize(
    "read",
    [
        lambda n: n == 5,
        lambda n: n == 5.0,
        lambda n: n == np.int64(5),
        lambda n: np.int64(5) == n,
        lambda n: -n == -5,
        lambda n: 2 * n - 1 == 9,
        lambda n: n in range(9),
        lambda n: n < 5.5,
        lambda n: n // 2 > 2,
        lambda n: n**2 == 25,
        lambda n: bool(n - 2),
        lambda n: list(range(n)),
        lambda n: [7, 8][n],
        lambda n: float(n),
        lambda n: int(n),
        lambda n: n // -n,
    ],
)
def test_what_needs_the_value_of_an_extent_is_refused(read: Callable[[Any], Any]) -> None:
    with pytest.raises(TracedValueError, match="symbolic.*test_dynamic.py") as caught:
        hg.jit(lambda t: t if read(t.shape[0]) else 2 * t, dynamic=True)(X)
    assert "n0 = 5, n1 = 3" in "".join(caught.value.__notes__)


def test_comparisons_that_bounds_decide() -> None:
    def decided(t: Any) -> Any:
        n = t.shape[0]  # 2 or more
        answers = [n == n, n != 0, n != 1.0, n != 2.5, n != None, n != "n", n > 1, n >= 2, n > 1.5, bool(n), -n < 0, abs(-n) == n]  # noqa: E711
        assert all(answers) and not (n < 2 or n <= 1.9 or 2 * n == 3 or 0 > n or n == float("nan")), answers
        return t

    hg.jit(decided, dynamic=True)(X)


def test_arithmetic_of_extents() -> None:
    def count(t: Any) -> Any:
        n = t.shape[0]
        half = -(-n // 2)  # rounded up
        return n + 1, 2 * n, n - 7, n * n, n**3, half, n % 3, -n % 3, divmod(n, 4), n / 2, 1 / n, 1.5 * n, n**-1, np.float32(2) * n, np.int8(2) * n

    f = hg.jit(count, dynamic=True)
    for size in (2, 5, 8, 9):
        n = size
        want = [n + 1, 2 * n, n - 7, n * n, n**3, -(-n // 2), n % 3, -n % 3, n // 4, n % 4, n / 2, 1 / n, 1.5 * n, 1 / n, 2 * n, 2 * n]
        got = hg.tree.leaves(f(np.zeros(size)))
        np.testing.assert_allclose([float(x) for x in got], want, rtol=1e-6)


def test_extents_beside_tensors() -> None:
    def means(t: Any) -> Any:
        n = t.shape[0]
        return t.sum(axis=0) / n, n * t, t == n, hnp.sqrt(n), hg.asarray(n), hnp.maximum(t, n - 2), n

    f = hg.jit(means, dynamic={0: 0})
    for size in (2, 5, 6):
        x = X.ravel()[:size]
        want = [x.mean(), size * x, x == size, np.sqrt(size), size, np.maximum(x, size - 2), size]
        for g, w in zip(f(x), want, strict=True):
            np.testing.assert_allclose(g, w, rtol=1e-6)
        assert [g.dtype for g in f(x)] == [np.float32, np.float32, bool, np.float32, np.int64, np.float32, np.int64]


def test_what_is_cut_at_computed_extents() -> None:
    """Bounds that may be negative mean the other end; sizes where they are get a program of their own."""

    def parts(t: Any) -> Any:
        n = t.shape[0]
        return (
            t[n - 5 :],
            t[: n - 4],
            t[n // 3 : n // 2],
            t[-n:],
            t[(n - 5) // 2 : n],
            t[: -(n // 2)],
            t[n - 3 :: -1],
            t[n - 1],
            t[: (n - 6) % 4],
            t[: -(n // 4)],
        )

    f = hg.jit(parts, dynamic=True)
    for n in [2, 3, 4, 5, 6, 7, 8, 13, 5, 4]:
        x = np.arange(n, dtype=np.float32)
        for k, (got, want) in enumerate(zip(f(x), parts(x), strict=True)):
            np.testing.assert_array_equal(got, want, err_msg=f"part {k} of {n}")


# --- two symbols -----------------------------------------------------------------------------------------------------


def test_different_symbols_are_different_sizes() -> None:
    """Equal sizes share a symbol, so each answer holds for every call that its program serves."""
    f = hg.jit(lambda a, b: hnp.ones(()) * (a.shape == b.shape) + 2 * (3 * a.shape[0] + 1 == 3 * b.shape[0] + 1), dynamic=True)
    for n, m in [(5, 7), (5, 5), (7, 5), (2, 9), (9, 9), (1, 1), (1, 5), (0, 0)]:
        assert float(f(np.ones(n), np.ones(m))) == 3.0 * (n == m), (n, m)
    for undecidable in (lambda a, b: a if 2 * a.shape[0] == b.shape[0] else b, lambda a, b: a if a.shape[0] < b.shape[0] else b):
        with pytest.raises(TracedValueError, match="symbolic"):
            hg.jit(undecidable, dynamic=True)(np.ones(5), np.ones(10))
    with pytest.raises(TracedValueError, match="symbolic"):  # a static axis may have the size of a dynamic one
        hg.jit(lambda a, b: a if a.shape[0] == b.shape[0] else b, dynamic={0: 0})(np.ones(5), np.ones(10))


PAIRS: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "add": (lambda a, b: a + b, "n,k n,k"),
    "where": (lambda a, b: hnp.where(a > 0, a, b), "n,k n,k"),
    "matmul": (lambda a, b: a @ b, "k,n n,k"),
    "concatenate": (lambda a, b: hnp.concatenate([a, b], axis=1), "n,k n,m"),
    "stack": (lambda a, b: hnp.stack([a, b]), "n,k n,k"),
    "einsum-like": (lambda a, b: hnp.tensordot(a, b, axes=1), "k,n n,m"),
    "set": (lambda a, b: a.at[1:].set(b[1:]), "n,k n,k"),
    "take": (lambda a, b: hnp.take(a, hnp.arange(b.shape[0]), axis=0) + 0 * b[:, :1], "n,k n,k"),
}


@pytest.mark.parametrize("name", PAIRS)
def test_two_sizes_that_an_op_wants_equal(name: str) -> None:
    """Equal in a call: served. Different: a ShapeError, whatever was compiled before; or where the op allows it what NumPy's rules give."""
    f, shapes = PAIRS[name]
    g = hg.jit(f, dynamic=True)

    def argument(which: int, n: int) -> np.ndarray:
        sizes = {"n": n, "k": 3, "m": 4}
        shape = [sizes[s] for s in shapes.split()[which].split(",")]
        return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)

    for n, m in [(5, 5), (5, 7), (8, 8), (2, 9), (4, 4), (3, 3), (3, 5)]:
        a, b = argument(0, n), argument(1, m)
        try:
            want = np.asarray(f(hg.tensor(a), hg.tensor(b)))
        except ShapeError:
            with pytest.raises(ShapeError):
                g(a, b)
        else:
            np.testing.assert_array_equal(g(a, b), want)


def test_sizes_that_happen_to_fit() -> None:
    """One program serves all sizes, also those where this would not fit."""
    with pytest.raises(ShapeError, match=r"2\*n0 and n1 differ") as caught:
        hg.jit(lambda a, b: hnp.concatenate([a, a]) + b, dynamic=True)(np.ones(5), np.ones(10))
    assert "n0 = 5, n1 = 10" in "".join(caught.value.__notes__)


# --- what dynamic names ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dynamic", "args", "message"),
    [
        ({0: 2}, (X,), "dynamic names axis 2 of a, which has 2 axes"),
        ({"a": (0, -3)}, (X,), "dynamic names axis -3 of a, which has 2 axes"),
        ({"b": 0}, (X, 2.0), "dynamic names axis 0 of b, which has 0 axes"),
        ({1: 0}, (X, hg.tensor(1)), "dynamic names axis 0 of b, which has 0 axes"),
        ({0: 1}, ({"u": X[0], "v": 1},), "dynamic names axis 1 of a, which has 1 axes"),
        ({2: 0}, (X, X), "dynamic names argument 2, which this call does not have"),
        ({"c": 0}, (X, X), "dynamic names c, which this call does not have"),
    ],
)
def test_dynamic_names_what_a_call_has(dynamic: Any, args: Any, message: str) -> None:
    def f(a: Any, b: Any = None, *rest: Any, **more: Any) -> Any:
        return hg.tree.leaves(a)[0] * 2

    with pytest.raises(ArgumentError, match=message + ".*test_dynamic.py"):
        hg.jit(f, dynamic=dynamic)(*args)


def test_dynamic_of_what_may_be_left_out() -> None:
    def f(a: Any, b: Any = None) -> Any:
        return hg.tree.leaves(a)[0] * 2

    hg.jit(f, dynamic={"b": 0, 0: -1})(X)
    hg.jit(f, dynamic={"b": 0})(X, None)
    hg.jit(f, dynamic={0: -1, "a": 0})({"u": X, "step": 3})
    for options, message in [
        ({"dynamic": {0: 0}, "static_argnums": 0}, "dynamic: a is static"),
        ({"dynamic": {0: "x"}}, "axes of a are integers"),
        ({"dynamic": {0: (0, 1.5)}}, "axes of a are integers"),
    ]:
        with pytest.raises(ArgumentError, match=message):
            hg.jit(f, **options)


@pytest.mark.parametrize(
    "flow",
    [
        lambda t: hg.scan(lambda c, r: (c + r, c), t[0], t),
        lambda t: hg.fori_loop(0, t.shape[0], lambda i, c: c + i, t),
        lambda t: hg.while_loop(lambda c: hnp.all(c < 10), lambda c: c + 1, t),
        lambda t: hg.cond(hnp.all(t > 0), lambda c: c + 1, lambda c: c, t),
        lambda t: hg.switch(1, [lambda c: c + 1, lambda c: c], t),
        lambda t: hg.associative_scan(lambda p, q: p + q, t),
    ],
)
def test_control_flow_over_symbolic_shapes(flow: Callable[[Any], Any]) -> None:
    with pytest.raises(ShapeError, match="static shapes; leave the axis out of jit's dynamic.*test_dynamic.py"):
        hg.jit(flow, dynamic=True)(X)


@pytest.mark.parametrize(
    "use",
    [
        lambda n: hnp.zeros((n,)),
        lambda n: hnp.ones(5)[:n],
        lambda n: hnp.ones(5)[n - 1],
        lambda n: hnp.ones(5) * n,
        lambda n: n / 2,
        lambda n: hg.asarray(n),
        lambda n: hg.jit(lambda t: t[:n])(X),
        lambda n: hg.jit(lambda t: hnp.reshape(t, (n * 3,)), dynamic=True)(X),
    ],
)
def test_extents_do_not_leave_their_trace(use: Callable[[Any], Any]) -> None:
    kept: list[Any] = []
    hg.jit(lambda t: kept.append(t.shape[0]) or t, dynamic=True)(X)
    with pytest.raises(LeakedTracerError, match="extent .* outside, its trace.*test_dynamic.py"):
        use(kept[0])


def test_extents_of_bodies_belong_to_the_trace_around_them() -> None:
    def f(t: Any, u: Any) -> Any:
        kept: list[Any] = []
        total = hg.fori_loop(0, 3, lambda i, c: kept.append(u.shape[0]) or c + u.shape[0], t)
        return total + kept[0]

    assert float(hg.jit(f, dynamic={1: 0})(1.0, X)) == 21.0


STEPS: list[Callable[[Any, Any, Any], Any]] = [
    lambda x, n, xp: x[n // 2 :],
    lambda x, n, xp: x[: n - 1],
    lambda x, n, xp: x[::-1],
    lambda x, n, xp: x[1:] + x[:-1],
    lambda x, n, xp: x * n - n // 3,
    lambda x, n, xp: x[n - 3 :],
    lambda x, n, xp: x[-2:],
    lambda x, n, xp: x[::2],
    lambda x, n, xp: x[n % 3 :],
    lambda x, n, xp: x[: -(n // 4)],
    lambda x, n, xp: x.sum() / n + x,
    lambda x, n, xp: xp.concatenate([x, x[: n // 2]]),
    lambda x, n, xp: xp.cumsum(x),
    lambda x, n, xp: xp.reshape(xp.stack([x, x]), (2 * n,)),
    lambda x, n, xp: x[n - 1] + xp.pad(x, (1, 2)),
    lambda x, n, xp: x[(n - 4) // 2 :],
    lambda x, n, xp: x + xp.arange(n),
    lambda x, n, xp: x[n - 5 : n - 2],
]


@given(st.lists(st.integers(0, len(STEPS) - 1), min_size=1, max_size=4), st.lists(st.integers(2, 40), min_size=3, max_size=6))
def test_random_programs_over_sizes_that_vary(steps: list[int], sizes: list[int]) -> None:
    """NumPy's values for every size, in whatever order the sizes come."""

    def program(x: Any, xp: Any) -> Any:
        for k in steps:
            x = STEPS[k](x, x.shape[0], xp)
        return x

    f = hg.jit(lambda x: program(x, hnp), dynamic=True)
    for n in sizes:
        x = np.arange(n, dtype=np.float64) % 7
        try:
            with np.errstate(all="ignore"):
                want = program(x, np)
        except (IndexError, ZeroDivisionError):  # nothing is left to index or to divide by
            continue
        np.testing.assert_allclose(np.asarray(f(x)), want, rtol=1e-12)
