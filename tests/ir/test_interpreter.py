"""The reference interpreter, and the written order of docs/internals/ir.md against a second, element-by-element account of it."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hologram import dtypes
from hologram.dtypes import DType
from hologram.errors import ShapeError
from hologram.ir.graph import Graph
from hologram.ir.interpreter import evaluate, evaluate_node
from hologram.ir.leaves import input_
from hologram.ir.node import Builder, const_attrs
from hologram.ir.symbolic import var
from hologram.primitives import TABLE, Op
from tests.support.optable import mismatch, one_op_graph, rows, seeded, special_values, tame_values

Combine = Callable[[Any, Any], Any]


def run(name: str, x: np.ndarray, *attrs: Any) -> np.ndarray:
    return evaluate(one_op_graph(TABLE[name], attrs, [x]), [x])[0]


# --- the written order, literally ------------------------------------------------------------------------------------


def row_form(combine: Combine, x: list[Any]) -> Any:
    if len(x) > 3072:
        return row_form(combine, [row_form(combine, x[i : i + 3072]) for i in range(0, len(x), 3072)])
    lanes: list[Any] = [None] * 32
    for i, e in enumerate(x):
        lanes[i % 32] = e if lanes[i % 32] is None else combine(lanes[i % 32], e)
    for h in (16, 8, 4, 2, 1):
        for i in range(h):
            if lanes[i + h] is not None:
                lanes[i] = combine(lanes[i], lanes[i + h])
    return lanes[0]


def column_form(combine: Combine, x: list[Any]) -> Any:
    if len(x) > 3072:
        return column_form(combine, [column_form(combine, x[i : i + 3072]) for i in range(0, len(x), 3072)])
    result = x[0]
    for e in x[1:]:
        result = combine(result, e)
    return result


def scan_last(combine: Combine, x: list[Any]) -> list[Any]:
    y: list[Any] = []
    over_pages = None
    for p in range(0, len(x), 3072):
        page: list[Any] = []
        for g in range(p, min(p + 3072, len(x)), 16):
            z = x[g : min(g + 16, p + 3072, len(x))]
            for h in (1, 2, 4, 8):
                z = [combine(z[i - h], z[i]) if i >= h else z[i] for i in range(len(z))]
            page += z if not page else [combine(page[-1], e) for e in z]
        y += page if over_pages is None else [combine(over_pages, e) for e in page]
        over_pages = page[-1] if over_pages is None else combine(over_pages, page[-1])
    return y


def scan_other(combine: Combine, x: list[Any]) -> list[Any]:
    y = [x[0]]
    for e in x[1:]:
        y.append(combine(y[-1], e))
    return y


def scalars(x: np.ndarray) -> list[Any]:
    """The elements as scalars of the compute type."""
    return list(x.astype(dtypes.compute_type(dtypes.of(x.dtype)).np))


def larger(a: Any, b: Any) -> Any:
    if a != a or b != b:
        return a + b
    return b if b > a or (a == b and np.signbit(a) > np.signbit(b)) else a


def smaller(a: Any, b: Any) -> Any:
    if a != a or b != b:
        return a + b
    return b if b < a or (a == b and np.signbit(a) < np.signbit(b)) else a


COMBINE: dict[str, Combine] = {"add": operator.add, "mul": operator.mul, "max": larger, "min": smaller, "or": operator.or_, "and": operator.and_}


def combiner(row: Op) -> Combine:
    assert row.monoid is not None
    return COMBINE[row.monoid.name]


def values(d: DType, n: int, special: bool, *seed: Any) -> np.ndarray:
    rng = seeded(d, n, special, *seed)
    x = tame_values(d, n, rng)
    if special and n:
        x[rng.integers(0, n, 2)] = rng.choice(special_values(d), 2)
    return x


LENGTHS = [1, 2, 15, 16, 17, 31, 33, 65, 3071, 3072, 3073, 6145]
TYPES = [dtypes.float32, dtypes.float16, dtypes.bfloat16, dtypes.float64, dtypes.int8, dtypes.bool_]
REDUCES = [r for r in rows("reduce") if r.monoid is not None]


@pytest.mark.parametrize("row", REDUCES, ids=lambda r: r.name)
def test_reductions_keep_the_written_order(row: Op, everything: bool) -> None:
    for i, n in enumerate(LENGTHS):
        for j, d in enumerate(t for t in TYPES if t.kind in row.kinds):
            if not everything and (i + j) % 3:
                continue
            for special in (False, True):
                x = values(d, n, special, row.name)
                combine = combiner(row)
                for form, array, axis in ((row_form, x.reshape(1, n), 1), (column_form, x.reshape(n, 1), 0)):
                    with np.errstate(all="ignore"):
                        want = np.array([form(combine, scalars(x))]).astype(d.np)
                    assert not mismatch(run(row.name, array, (axis,)), want, 0).any(), (d, n, form)


@pytest.mark.parametrize("row", rows("scan"), ids=lambda r: r.name)
def test_scans_keep_the_written_order(row: Op, everything: bool) -> None:
    for i, n in enumerate(LENGTHS):
        for j, d in enumerate(t for t in TYPES if t.kind in row.kinds):
            if not everything and (i + j) % 3:
                continue
            x = values(d, n, i % 2 == 0, row.name)
            combine = combiner(row)
            for scan, array, axis in ((scan_last, x, 0), (scan_other, x.reshape(n, 1), 0)):
                with np.errstate(all="ignore"):
                    forwards = np.array(scan(combine, scalars(x))).astype(d.np)
                    backwards = np.array(scan(combine, scalars(x[::-1]))).astype(d.np)[::-1]
                assert not mismatch(run(row.name, array, axis, False).ravel(), forwards, 0).any(), (d, n, scan)
                assert not mismatch(run(row.name, array, axis, True).ravel(), backwards, 0).any(), (d, n, scan)


def test_neighbouring_axes_are_read_in_c_order() -> None:
    x = values(dtypes.float32, 3 * 40 * 50, False).reshape(3, 40, 50)
    combine = combiner(TABLE["reduce_sum"])
    assert run("reduce_sum", x, (1, 2)).tolist() == [row_form(combine, list(x[i].ravel())) for i in range(3)]
    assert run("reduce_sum", x, (0, 1)).tolist() == [column_form(combine, list(x[:, :, k].ravel())) for k in range(50)]
    assert run("reduce_sum", x, ()).tobytes() == x.tobytes()


def test_axes_apart_are_reduced_run_by_run_the_last_first() -> None:
    x = values(dtypes.float16, 3 * 4 * 50, False).reshape(3, 4, 50)
    combine = combiner(TABLE["reduce_sum"])
    rows_first = np.array([[row_form(combine, scalars(x[i, j])) for j in range(4)] for i in range(3)], np.float32)
    want = [column_form(combine, list(rows_first[:, j])) for j in range(4)]
    assert run("reduce_sum", x, (0, 2)).tolist() == np.array(want).astype(np.float16).tolist()


def test_16_bit_sums_are_rounded_once() -> None:
    x = np.ones(5000, np.float16)
    assert run("reduce_sum", x, (0,)) == 5000
    assert run("cumsum", x, 0, False)[-1] == 5000
    assert run("cumsum", x.reshape(-1, 1), 0, False)[2049, 0] == np.float16(2050)


@pytest.mark.parametrize("d", [dtypes.float32, dtypes.bfloat16, dtypes.int64])
def test_numpy_agrees(d: DType) -> None:
    x = values(d, 6200, False).reshape(2, 3100)
    wide = x.astype(np.float64 if d.is_float else np.int64)
    close: dict[str, Any] = dict(rtol=0.02 if d.bits == 16 else 1e-4, atol=0.05 if d.bits == 16 else 1e-3)
    np.testing.assert_allclose(run("reduce_sum", x, (0, 1)).astype(float), wide.sum(), **close)
    np.testing.assert_allclose(run("cumsum", x, 1, False).astype(float), wide.cumsum(1), **close)
    assert (run("reduce_max", x, (1,)) == x.max(1)).all()
    assert (run("argmin", x, 1) == x.argmin(1)).all()


# --- ends of reductions ----------------------------------------------------------------------------------------------


def test_empty_reductions() -> None:
    x = np.zeros((0, 2), np.float32)
    assert run("reduce_sum", x, (0,)).tobytes() == np.zeros(2, np.float32).tobytes()  # +0.0
    assert run("reduce_prod", x, (0,)).tolist() == [1, 1]
    assert run("reduce_sum", x, (1,)).shape == (0,)
    assert run("reduce_max", x, (1,)).shape == (0,)
    assert run("cumsum", x, 0, False).shape == (0, 2)
    assert run("reduce_any", x != 0, (0,)).tolist() == [False, False]
    assert run("reduce_all", x != 0, (0,)).tolist() == [True, True]
    with pytest.raises(ShapeError):
        run("reduce_max", x, (0,))


def test_a_sum_of_negative_zeros_is_negative_zero() -> None:
    for shape, axis in (((5,), 0), ((5, 1), 0), ((4000,), 0)):
        assert np.signbit(run("reduce_sum", np.full(shape, -0.0, np.float32), (axis,))).all()


def test_nan_and_ties_in_argmax_and_argmin() -> None:
    x = np.array([0.0, -0.0, 1, np.nan, 1, np.nan], np.float32)
    assert run("argmax", x, 0) == 3 and run("argmin", x, 0) == 3
    assert run("argmax", x[:2], 0) == 0 and run("argmin", x[:2], 0) == 0
    assert run("argmax", x[2::2], 0) == 0
    assert run("argmax", np.array([False, True, True]), 0) == 1
    assert np.isnan(run("reduce_max", x, (0,)))


# --- the interpreter -------------------------------------------------------------------------------------------------


def test_several_outputs_shared_nodes_and_constants() -> None:
    build = Builder()
    x = build(input_, (), (0, (3,), "float32", None))
    two = build(TABLE["const"], (), const_attrs(2, dtypes.float32))
    double = build(TABLE["mul"], (x, two))
    total = build(TABLE["reduce_sum"], (double,), ((0,),))
    graph = Graph([x], [double, total, x])
    a = np.array([1, 2, 3], np.float32)
    outs = evaluate(graph, [a])
    assert [o.tolist() for o in outs] == [[2, 4, 6], 12, [1, 2, 3]]


def test_leaves_hold_their_values() -> None:
    class Storage:
        def __init__(self, a: np.ndarray) -> None:
            self.a = a

        def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
            return self.a

    build = Builder()
    leaf = build(TABLE["leaf"], (), (Storage(np.arange(6, dtype=np.int32)), (2, 3), "int32"))
    count = build(TABLE["iota"], (), ((2, 3), 1, "int32"))
    assert evaluate(Graph([], [build(TABLE["sub"], (leaf, count))]), [])[0].tolist() == [[0, 0, 0], [3, 3, 3]]


def test_symbols_take_their_values() -> None:
    n = var("n")
    build = Builder()
    x = build(input_, (), (0, (n, 2), "float32", None))
    flipped = build(TABLE["slice"], (x,), ((n - 1, 0), (-1, 2), (-1, 1)))
    flat = build(TABLE["reshape"], (flipped,), ((n * 2,),))
    count = build(TABLE["iota"], (), ((n * 2,), 0, "float32"))
    graph = Graph([x], [build(TABLE["add"], (flat, count))])
    for size in (1, 4):
        a = np.arange(2 * size, dtype=np.float32).reshape(size, 2)
        assert evaluate(graph, [a], {"n": size})[0].tolist() == (a[::-1].ravel() + np.arange(2 * size)).tolist()


def test_a_deep_chain_is_no_recursion() -> None:
    build = Builder()
    x = y = build(input_, (), (0, (), "int64", None))
    one = build(TABLE["const"], (), const_attrs(1, dtypes.int64))
    for _ in range(20_000):
        y = build(TABLE["add"], (y, one))
    assert evaluate(Graph([x], [y]), [np.array(0)])[0] == 20_000


def test_a_reference_that_breaks_its_type_rule_is_caught() -> None:
    build = Builder()
    x = build(input_, (), (0, (3,), "float32", None))
    with pytest.raises(AssertionError, match="the type rule gives float32"):
        evaluate_node(build(TABLE["neg"], (x,)), [np.zeros(3)])


def test_slices_that_reach_the_front() -> None:
    x = np.arange(5)
    assert run("slice", x, (4,), (-1,), (-1,)).tolist() == [4, 3, 2, 1, 0]
    assert run("slice", x, (4,), (-1,), (-3,)).tolist() == [4, 1]
    assert run("slice", x, (-1,), (-1,), (-1,)).tolist() == []
    assert run("slice", x, (1,), (5,), (3,)).tolist() == [1, 4]
