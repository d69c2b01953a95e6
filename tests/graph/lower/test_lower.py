"""Lowering: the index arithmetic of movement, and kernels interpreted against the reference."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import hologram as hg
import hologram.numpy as hnp
from hologram.graph.execution_plan import ExecutionPlan
from hologram.graph.kernel.ir import Loop
from hologram.graph.kernel.parser import parse_kernel
from hologram.graph.lower.code_placement import MAX_KEPT_BYTES
from hologram.graph.lower.lowered import in_place_in_all, in_place_pairs
from hologram.graph.pipeline import canonicalise
from hologram.ir.graph import Graph
from hologram.ir.index_maps import Guard, Index, linear, propagate_index, variables
from hologram.ir.instruction import Ins
from hologram.ir.interpreter import evaluate
from hologram.ir.node import Node
from hologram.ir.symbolic import Int, substitute, var
from hologram.primitives.reductions import PAGE
from tests.support.building import Draft, adam, count, kernels, product, scheduled
from tests.support.graphs.movement_chains import movement_chains
from tests.support.graphs.random_graphs import arguments, seeds, values_of
from tests.support.graphs.small_graphs import small_graphs
from tests.support.kernel_interpreter import Interpreter, Memory, run_schedule
from tests.support.optable import mismatch, seeded

# --- index arithmetic ------------------------------------------------------------------------------------------------


def holds(guard: Guard, at: dict[str, Int]) -> bool:
    return all(0 <= number(e, at) < number(size, at) for e, size in guard)


def number(e: Int, at: dict[str, Int]) -> int:
    """The value of an expression, with divisions as machines do them: of numbers that are not negative."""
    out = substitute(e, at)
    assert isinstance(out, int)
    return out


def element(node: Node, index: Index, guard: Guard, at: dict[str, Int]) -> int:
    """The value at ``index``, of a leaf that counts its elements."""
    while True:
        if node.op.name == "const":
            return int(np.frombuffer(node.attrs[1], np.int64)[0])
        if node.op.kind == "leaf":
            assert holds(guard, at)
            position = number(linear(index, node.shape), at)
            assert 0 <= position < node.size  # type: ignore[operator]
            return position
        wanted = propagate_index(node, index, guard)
        inside = [w for w in wanted if holds(w[2], at)]
        assert len(inside) == (len(wanted) if node.op.name == "pad" and len(inside) > 1 else 1), "an element comes from one place"
        node, index, guard = inside[0]


@given(movement_chains())
def test_index_arithmetic_finds_numpys_element(chain: tuple[Node, Node]) -> None:
    first, last = chain
    counting = np.arange(int(first.size)).reshape([int(n) for n in first.shape])  # type: ignore[arg-type]
    (want,) = evaluate(Graph([first], [last]), [counting])
    index = variables(last.shape)
    for position in itertools.product(*(range(int(n)) for n in last.shape)):
        at: dict[str, Int] = {f"d{i}": p for i, p in enumerate(position)}
        assert element(last, index, (), at) == want[position]


@given(movement_chains(), seeds)
def test_movement_is_interpreted_as_numpy_does_it(chain: tuple[Node, Node], seed: int) -> None:
    """The same chains as kernels: their masks and merged loops included."""
    first, last = chain
    x = seeded(seed).integers(0, 1000, [int(n) for n in first.shape])
    graph = Graph([first], [last, last] if last is first else [last])
    (want, *_) = evaluate(graph, [x])
    assert np.array_equal(run_schedule(scheduled(graph), [x])[0], want)


def test_reshape_that_keeps_axes_divides_nothing() -> None:
    d = Draft()
    n = var("n0")
    for shape, to in [((4, 6, 5), (24, 5)), ((4, 6, 5), (4, 30)), ((4, 1, 5), (4, 5)), ((n, 4, 5), (n, 20)), ((3, n), (3, 1, n))]:
        s = d.schedule(d("neg", d("reshape", d.input(*shape), to)))
        assert not any(a.args for k in kernels(s) for i in k.walk() if getattr(i, "op", "") == "load" for a in _top_atoms(i.attrs[1]))  # type: ignore[union-attr]


def _top_atoms(e: Int) -> list[Any]:
    return [] if isinstance(e, int) else [a for m in e.terms for a in m]


# --- kernels, interpreted --------------------------------------------------------------------------------------------


@given(small_graphs(), seeds)
def test_kernels_mean_what_the_graph_means(graph: Graph, seed: int) -> None:
    """Every load in range and written before, every element of a result written once, and the reference's bits."""
    arrays = arguments(graph, seed, special=True)
    values = values_of(graph, arrays)
    for out, got in zip(graph.outputs, run_schedule(scheduled(graph), arrays), strict=True):
        assert got.dtype == out.dtype.np and got.shape == out.shape
        assert not mismatch(got, values[out], 0).any()


def paged_programs(d: Draft) -> list[Node]:
    x, y = d.input(2, 2 * PAGE + 5, dtype="float64"), d.input(PAGE + 3, 1, dtype="float64")
    outputs = [d("reduce_sum", x, (1,)), d("reduce_sum", x, (0, 1)), d("reduce_sum", y, (0,)), d("argmax", x, 1)]
    outputs += [d("cumsum", x, 1, reverse) for reverse in (False, True)]
    return [*outputs, d("cumsum", y, 0, True), d("argmax", d("reshape", d("concatenate", x, x, x, 0), (6 * (2 * PAGE + 5),)), 0)]


def test_paged_kernels_mean_what_the_graph_means() -> None:
    d = Draft()
    graph = d.graph(*paged_programs(d))
    rng = seeded("paged")
    arrays = [rng.standard_normal([int(n) for n in x.shape]) for x in graph.inputs]
    for got, want in zip(run_schedule(scheduled(graph), arrays), evaluate(graph, arrays), strict=True):
        assert not mismatch(got, want, 0).any()


@pytest.mark.parametrize("rows", [2, 5, 6, 7, 13])
@pytest.mark.parametrize("columns", [16, 17, 64, 150])
def test_products_share_reads_among_rows(rows: int, columns: int) -> None:
    d = Draft()
    x, y = d.input(3, rows, 9), d.input(3, 9, columns)
    total = product(d, x, y)
    graph = d.graph(total, d("sub", d("square", total), d.spread(d.input(columns), total.shape, 2)))
    rng = seeded(rows, columns)
    arrays = [rng.standard_normal([int(n) for n in i.shape]).astype(np.float32) for i in graph.inputs]
    schedule = scheduled(graph)
    (kernel,) = kernels(schedule)
    assert sum(len(s.accs) for s in kernel.walk() if isinstance(s, Loop)) == -(
        -rows // -(-rows // 6)
    )  # no row is run twice where fewer at once will do
    for got, want in zip(run_schedule(schedule, arrays), evaluate(graph, arrays), strict=True):
        assert not mismatch(got, want, 0).any()


def aliased(schedule: ExecutionPlan, memory: dict[Node, Memory]) -> None:
    """Runs each kernel with one output where an input was, for every pair that it allows."""
    for lowered in schedule.kernels:
        k = lowered.kernel
        for pair in [None, *lowered.in_place]:
            params = []
            for b, node in zip(k.params, lowered.bindings, strict=True):
                params.append(Memory(int(b.size), b.dtype.np) if b.role == "out" else Memory.of(memory[node].values))  # type: ignore[arg-type]
            if pair is not None:
                params[pair[0]].values = params[pair[1]].values.view(k.params[pair[0]].dtype.np)
            Interpreter(k, params, {}).run()
            for b, node, m in zip(k.params, lowered.bindings, params, strict=True):
                if b.role == "out":
                    assert pair is None or m.values.tobytes() == memory[node].values.tobytes(), f"in place {pair}:\n{k}"
                    memory[node] = m if pair is None else memory[node]


@given(small_graphs(), seeds)
def test_results_may_stand_where_kernels_say_so(graph: Graph, seed: int) -> None:
    schedule = scheduled(graph)
    memory = {n: Memory.of(a) for n, a in zip(schedule.inputs, arguments(graph, seed, special=True), strict=True)}
    aliased(schedule, memory)


def test_adam_may_update_in_place() -> None:
    d = Draft()
    (lowered,) = d.schedule(*adam(d, 100)).kernels
    pairs = {(lowered.kernel.params[o].name, lowered.kernel.params[i].name) for o, i in lowered.in_place}
    assert len(pairs) == 12  # any of three results in the place of any of four arguments


ROW, ROWS, SHIFTED = (
    f"""kernel(b0: float32[40] in, b1: float32[10] in, b2: float32[40] out)
  parallel p from 0 count {count}
    lanes i from 0 count 10
      v0 = load({read}) : float32
      b2[{written}] = v0
"""
    for count, read, written in ((1, "b1, i", "i"), (3, "b0, i+10*p+10", "i+10*p+10"), (3, "b0, i+10*p", "i+10*p+10"))
)


@pytest.mark.parametrize(("parts", "expected"), [((ROW, ROWS), [(2, 0)]), ((ROWS, ROW), [(2, 0)]), ((ROW, SHIFTED), []), ((ROWS, SHIFTED), [])])
def test_parts_that_do_not_read_an_input_leave_results_in_its_place(parts: tuple[str, ...], expected: list[tuple[int, int]]) -> None:
    kernels = [parse_kernel(text) for text in parts]
    assert in_place_in_all([(k, in_place_pairs(k)) for k in kernels]) == expected


# --- what lowering promises ------------------------------------------------------------------------------------------


def test_scratch_of_a_kernel_is_bounded() -> None:
    d = Draft()
    n = 36_000
    x = d.input(20, n)
    expensive = [d("fmod", x, d.const(0.5 + i)) for i in range(12)]
    total = d("sub", expensive[0], d.over_rows("reduce_max", expensive[0]))
    for y in expensive[1:]:
        total = d("add", total, d("sub", y, d.over_rows("reduce_max", y)))
    for k in kernels(d.schedule(total)):
        assert sum(int(b.size) * b.dtype.itemsize for b in k.scratch) <= MAX_KEPT_BYTES  # type: ignore[arg-type]


def test_gathered_rows_are_read_through_indices_in_scratch() -> None:
    """An expensive index is kept from pass to pass, and what it names is found in each."""
    d = Draft()
    x, at = d.input(1000), d.input(8, 300, dtype="int64")
    y = d.take(x, d("rem", at, d.const(1000, "int64")), 0)
    graph = d.graph(d("sub", y, d.over_rows("reduce_max", y)))
    schedule = scheduled(graph)
    (kernel,) = kernels(schedule)
    assert count(kernel, "rem") == 1 and len(kernel.scratch) == 1
    rng = seeded("gathered")
    arrays = [rng.standard_normal(1000).astype(np.float32), rng.integers(0, 10**6, (8, 300))]
    (got,), (want,) = run_schedule(schedule, arrays), evaluate(graph, arrays)
    assert np.array_equal(got, want)


def test_an_index_has_a_name_for_each_extent() -> None:
    """One value is an index of arrays of many extents: where known to be inside each, and where a kernel must see."""
    d = Draft()
    extents = (3, 7, 2, 5, 11)
    xs, at = [d.input(n) for n in extents], d.input(20, dtype="int64")
    total = d.take(xs[0], at, 0)
    for x in xs[1:]:
        total = d("add", total, d.take(x, at, 0))
    graph = d.graph(total)
    schedule = scheduled(graph)
    assert not [s for k in kernels(schedule) for s in k.symbols]
    rng = seeded("extents")
    arrays = [rng.standard_normal(n).astype(np.float32) for n in extents] + [rng.integers(0, 2, 20)]
    (got,), (want,) = run_schedule(schedule, arrays), evaluate(graph, arrays)
    assert np.array_equal(got, want)


def test_row_work_is_done_once_a_row() -> None:
    d = Draft()
    x = d.input(40, 100)
    (kernel,) = kernels(d.schedule(d("mul", x, d.spread(d("neg", d.input(40)), x.shape, 0))))
    (lanes,) = (s for s in kernel.walk() if isinstance(s, Loop) and s.kind == "lanes")
    assert count(kernel, "neg") == 1 and not any(isinstance(s, Ins) and s.opname == "neg" for s in lanes.body)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_division_by_a_symbol_has_no_negative_numerator(n: int) -> None:
    """Kernels divide unsigned numbers. What stands behind the edge of an array counts down to index 0."""
    d = Draft()
    rows = var("n0")
    flat = d("reshape", d("transpose", d.input(rows, 4), (1, 0)), (4 * rows,))
    graph = d.graph(d.part(flat, 0, 4 * rows - 1, -1, -1))
    x = seeded("flipped").standard_normal((n, 4)).astype(np.float32)
    (got,) = run_schedule(scheduled(graph), [x])
    assert np.array_equal(got, x.T.reshape(-1)[::-1])


@pytest.mark.parametrize("width", [128, 100])
def test_shifted_rows_that_are_summed_in_pages_are_read_along_memory(width: int) -> None:
    """Pages do not end where rows do: places in rows are quotients and remainders, which shifts leave together."""

    def f(x: Any) -> Any:
        p = hnp.pad(x, 1)
        return (x * (p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:])).sum()

    x = seeded("shifted", width).standard_normal((90, width))
    made = kernels(scheduled(canonicalise(hg.make_graph(f)(x), "standard"), "standard"))
    places = [str(s.attrs[1]) for k in made for s in k.walk() if isinstance(s, Ins) and s.op == "load"]
    assert len(places) >= 5 and not [e for e in places if "%" in e or "//" in e]
    np.testing.assert_allclose(np.asarray(hg.jit(f)(x)), evaluate(hg.make_graph(f)(x), [x])[0], rtol=1e-12)
