"""Fusion: how many kernels programs become, and the invariant that groups in their order are a schedule."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from hologram.graph.execution_plan import ExecutionPlan
from hologram.graph.fusion.grouping import MAX_GROUP_VALUES
from hologram.graph.fusion.groups import KERNEL_COST, Group, reduction_axes, unpaged
from hologram.graph.kernel.ir import Loop
from hologram.graph.kernel.printer import print_kernel
from hologram.ir.graph import Graph
from hologram.ir.index_maps import Guard, Index, propagate_index, propagate_through_gather, variables
from hologram.ir.node import Node
from hologram.ir.symbolic import substitute, var
from tests.support.building import Draft, adam, count, kernels, layer_norm, log_sum_exp, scheduled, softmax
from tests.support.graphs.small_graphs import small_graphs

ROW_SHAPES = [(64, 128), (3, 5, 100), (7, 5000)]


def loops(schedule: ExecutionPlan, kind: str) -> int:
    return sum(isinstance(s, Loop) and s.kind == kind for k in kernels(schedule) for s in k.walk())


# --- how many kernels ------------------------------------------------------------------------------------------------


def test_chain_with_several_results_is_one_kernel() -> None:
    d = Draft()
    x = d.input(1000)
    a = d("add", x, d.const(1))
    b = d("mul", a, a)
    s = d.schedule(a, b, d("sub", b, x))
    assert len(s.kernels) == 1
    assert [count(s.kernels[0].kernel, op) for op in ("load", "add", "mul", "sub")] == [1, 1, 1, 1]


def test_adam_is_one_kernel_with_three_results() -> None:
    d = Draft()
    s = d.schedule(*adam(d, 1000))
    assert len(s.kernels) == 1 and loops(s, "lanes") == 1
    assert [b.role for b in s.kernels[0].kernel.params].count("out") == 3
    assert count(s.kernels[0].kernel, "load") == 4


@pytest.mark.parametrize("shape", ROW_SHAPES)
def test_softmax_is_one_kernel(shape: tuple[int, ...]) -> None:
    d = Draft()
    s = d.schedule(softmax(d, d.input(*shape)))
    assert len(s.kernels) == 1
    (kernel,) = kernels(s)
    assert count(kernel, "exp") == 1 and len(kernel.scratch) == 1  # the exponentials stay in scratch between the passes
    assert sum(b.role != "scratch" for b in kernel.params) == 2


@pytest.mark.parametrize("shape", ROW_SHAPES)
def test_layer_norm_is_one_kernel(shape: tuple[int, ...]) -> None:
    d = Draft()
    assert len(d.schedule(layer_norm(d, d.input(*shape), d.input(shape[-1]), d.input(shape[-1]))).kernels) == 1


@pytest.mark.parametrize("shape", ROW_SHAPES)
def test_log_sum_exp_is_one_kernel(shape: tuple[int, ...]) -> None:
    d = Draft()
    s = d.schedule(log_sum_exp(d, d.input(*shape)))
    assert len(s.kernels) == 1 and not s.kernels[0].kernel.scratch


def test_reduction_takes_its_prologue_and_epilogue() -> None:
    d = Draft()
    x, y = d.input(40, 500), d.input(40, 500)
    distance = d("sqrt", d("reduce_sum", d("square", d("sub", x, y)), (1,)))
    assert len(d.schedule(d("mul", distance, d.const(3))).kernels) == 1


def test_long_vector_is_reduced_in_pages_and_then_once_more() -> None:
    d = Draft()
    x = d.input(1_000_000)
    s = d.schedule(d("sqrt", d("reduce_sum", d("square", x), (0,))))
    assert len(s.kernels) == 2


def test_short_vector_over_its_sum_is_one_kernel_and_a_long_one_three() -> None:
    for n, expected in ((2_000, 1), (100_000, 3)):
        d = Draft()
        x = d.input(n)
        assert len(d.schedule(d("div", x, d.over_rows("reduce_sum", x))).kernels) == expected


def test_stencil_reads_its_neighbours_by_index() -> None:
    d = Draft()
    x = d.input(50, 60)
    inner = d.part(x, 0, 1, 49)
    around = [d.part(d.part(x, 0, 0, 48), 1, 1, 59), d.part(d.part(x, 0, 2, 50), 1, 1, 59), d.part(inner, 1, 0, 58), d.part(inner, 1, 2, 60)]
    total = around[0]
    for a in around[1:]:
        total = d("add", total, a)
    new = d("pad", d("mul", total, d.const(0.25)), d.const(0), (1, 1), (1, 1))
    s = d.schedule(new)
    assert len(s.kernels) == 1 and not s.temporaries
    assert count(s.kernels[0].kernel, "load") == 4


def test_dear_value_that_two_results_share_is_computed_once() -> None:
    d = Draft()
    x = d.input(1000)
    e = d("exp", x)
    s = d.schedule(d("add", e, x), d("mul", e, x))
    assert len(s.kernels) == 1 and not s.temporaries
    assert count(s.kernels[0].kernel, "exp") == 1


@pytest.mark.parametrize(("op", "expected"), [("exp", 2), ("square", 1)])
def test_value_read_at_shifted_places_is_kept_where_it_is_dear(op: str, expected: int) -> None:
    d = Draft()
    y = d(op, d.input(1000))
    s = d.schedule(d("add", d.part(y, 0, 1, 1000), d.part(y, 0, 0, 999)))
    assert len(s.kernels) == expected and len(s.temporaries) == expected - 1
    assert sum(count(k, op) for k in kernels(s)) == (1 if op == "exp" else 2)


def test_dear_row_value_is_computed_once_a_row() -> None:
    d = Draft()
    x, scale = d.input(40, 100), d.input(40)
    s = d.schedule(d("mul", x, d.spread(d("exp", scale), x.shape, 0)))
    before = kernels(s)[0].body if len(s.kernels) > 1 else next(b for b in kernels(s)[0].body if isinstance(b, Loop)).body
    assert sum(count(k, "exp") for k in kernels(s)) == 1
    assert len(s.kernels) > 1 or any(getattr(i, "opname", "") == "exp" for i in before)


def test_independent_reductions_of_one_shape_share_a_kernel() -> None:
    d = Draft()
    x, y = d.input(64, 128), d.input(64, 128)
    s = d.schedule(*(d(op, a, (1,)) for op in ("reduce_sum", "reduce_max", "reduce_min") for a in (x, y)), d("argmax", x, 1))
    assert len(s.kernels) == 1 and count(s.kernels[0].kernel, "load") == 2


def test_reductions_of_other_shapes_or_axes_are_kernels_of_their_own() -> None:
    d = Draft()
    x, y = d.input(64, 128), d.input(64, 100)
    assert len(d.schedule(d("reduce_sum", x, (1,)), d("reduce_sum", y, (1,))).kernels) == 2
    assert len(d.schedule(d("reduce_sum", x, (1,)), d("reduce_sum", x, (0,))).kernels) == 2


def test_kept_dimension_is_no_obstacle() -> None:
    d = Draft()
    x = d.input(30, 40)
    kept = d("reshape", d("reduce_max", x, (1,)), (30, 1))
    assert len(d.schedule(d("sub", x, d.spread(kept, x.shape, 0, 1)), kept).kernels) == 1


def test_columns_are_reduced_and_used_in_one_kernel() -> None:
    d = Draft()
    x = d.input(300, 200)
    s = d.schedule(d("sub", x, d.spread(d("reduce_sum", x, (0,)), x.shape, 1)))
    assert len(s.kernels) == 1 and loops(s, "serial") == 2


def test_scan_takes_its_prologue_and_epilogue() -> None:
    for axis in (0, 1):
        d = Draft()
        x = d.input(100, 1000)
        assert len(d.schedule(d("mul", d("cumsum", d("square", x), axis, False), d.const(2))).kernels) == 1


def test_long_scan_is_three_kernels() -> None:
    """The totals of pages, what stands before each page, and the scan itself."""
    d = Draft()
    s = d.schedule(d("cumsum", d("square", d.input(100_000)), 0, False))
    assert len(s.kernels) == 3
    assert sum(isinstance(n, Node) for n, *_ in s.temporaries) == 2


def test_long_chain_is_cut_where_kernels_are_full() -> None:
    d = Draft()
    x = d.input(1000)
    for i in range(3000):
        x = d("add", x, d.const(i))
    s = d.schedule(x)
    assert 3000 / KERNEL_COST <= len(s.kernels) <= 2 * 3000 / KERNEL_COST + 1
    assert all(g.cost <= KERNEL_COST + 1 for g in s.groups)


def test_many_results_are_kernels_of_so_many_each() -> None:
    """So what a program with n results says of its arguments' memory is as long as n, not as its square."""
    d, n = Draft(), 5 * MAX_GROUP_VALUES
    s = d.schedule(*[d("neg", d.input(8)) for _ in range(n)])
    assert [len(g.nodes) for g in s.groups] == [MAX_GROUP_VALUES] * 5
    assert s.donors() == [[*range(i - i % MAX_GROUP_VALUES, i - i % MAX_GROUP_VALUES + MAX_GROUP_VALUES)] for i in range(n)]


def test_cuts_keep_what_movement_moves() -> None:
    d = Draft()
    x, bias = d.input(64, 128), d.input(128)
    wide = d.spread(bias, x.shape, 1)
    expensive = d.spread(d("exp", bias), x.shape, 1)
    for _ in range(1000):
        x = d("add", d("mul", x, wide), expensive)
    s = d.schedule(x)
    assert len(s.kernels) > 3 and not any(n.op.kind == "movement" for n, *_ in s.temporaries)


def test_time_of_fusion_grows_with_the_program_not_faster() -> None:
    """A chain of shifted sums: without values kept on the way, its reads would double with every step."""
    d = Draft()
    x = d.input(400)
    for _ in range(200):
        n = x.shape[0]
        x = d("add", d.part(x, 0, 1, n), d.part(x, 0, 0, int(n) - 1))
    s = d.schedule(x)
    assert sum(len(list(k.walk())) for k in kernels(s)) < 200 * 20


def _rolled(d: Draft, x: Node, i: int) -> Node:
    return d("concatenate", d.part(x, 0, 1, 60), d.part(x, 0, 0, 1), 0)


def _mixed(d: Draft, x: Node, i: int) -> Node:
    return d("transpose", d("reshape", x, [(6, 10), (4, 15), (3, 20)][i % 3]), (1, 0))


@pytest.mark.parametrize("step", [_rolled, _mixed])
def test_long_chains_of_movement_have_short_kernels(step: Any) -> None:
    """Each step of these doubles the index arithmetic, or the places read, of the one before."""
    d = Draft()
    x = d.input(60)
    for i in range(60):
        x = step(d, x, i)
    s = d.schedule(d("neg", x))
    assert sum(len(print_kernel(k)) for k in kernels(s)) < 60 * 2000


# --- the invariant ---------------------------------------------------------------------------------------------------


class Checker:
    """Follows what each value reads, apart from how fusion found the groups."""

    def __init__(self, groups: list[Group]) -> None:
        self.groups = groups
        self.number = {r: k for k, g in enumerate(groups) for r in g.nodes}

    def check(self) -> None:
        assert len(self.number) == sum(len(g.nodes) for g in self.groups), "a value is in two groups"
        for k, g in enumerate(self.groups):
            done: set[Node] = set()
            for value in g.nodes:
                self.covers(g, value)
                for read, index in self.reads(g, value):
                    assert self.number[read] <= k, "a value reads a later group"
                    if self.number[read] == k:
                        assert read in done, "a value reads one that comes after it in its group"
                        assert index == g.index_of(read), "a value reads another element of its own group"
                done.add(value)

    def covers(self, g: Group, value: Node) -> None:
        """The elements at which the group computes ``value`` are all of its elements, and no others."""
        index = g.index_of(value)
        assert index is not None
        space = [range(int(n)) for n in g.shape]
        wanted = itertools.product(*(range(int(n)) for n in (unpaged(value) or value).shape))
        assert {tuple(substitute(e, values(p)) for e in index) for p in itertools.product(*space)} == set(wanted)

    def reads(self, g: Group, value: Node) -> list[tuple[Node, Index]]:
        if reduction_axes(value) is not None:
            stack: list[tuple[Node, Index, Guard]] = [(value.inputs[0], variables(g.shape), ())]
        elif value.op.kind == "scatter":
            stack = [(x, variables(x.shape), ()) for x in value.inputs]
        else:
            index = g.index_of(value)
            assert index is not None
            base = unpaged(value)
            stack = [(base, index, ())] if base is not None else self.inputs(value, index, ())
        out, seen = [], set()
        while stack:
            item = stack.pop()
            if item in seen:
                continue
            seen.add(item)
            node, index, guard = item
            if node in self.number:
                out.append((node, index))
            elif node.op.kind != "leaf":
                stack += self.inputs(node, index, guard)
        return out

    def inputs(self, node: Node, index: Index, guard: Guard) -> list[tuple[Node, Index, Guard]]:
        if node.op.kind == "leaf":
            return []
        if node.op.kind != "gather":
            return propagate_index(node, index, guard)
        where, then = propagate_through_gather(node, index)
        x, *starts = node.inputs
        somewhere = tuple(var(f"elsewhere{id(node)}_{k}") for k in range(len(starts)))
        return [*((s, where, guard) for s in starts), (x, then(somewhere), guard)]


def values(position: tuple[int, ...]) -> dict[str, Any]:
    return {f"d{i}": v for i, v in enumerate(position)}


@given(small_graphs())
def test_groups_are_a_schedule(graph: Graph) -> None:
    Checker(scheduled(graph).groups).check()


def test_groups_of_wide_programs_are_a_schedule() -> None:
    """Many independent values, so that the look back for a group is cut off."""
    d = Draft()
    rng = np.random.default_rng(0)
    pool = [d.input(4, n) for n in (3, 5, 7) for _ in range(3)]
    for _ in range(300):
        x = pool[rng.integers(len(pool))]
        op = ["exp", "square", "rows", "cumsum"][rng.integers(4)]
        pool.append(d.over_rows("reduce_max", x) if op == "rows" else d("cumsum", x, 1, False) if op == "cumsum" else d(op, x))
    Checker(d.schedule(*pool[-100:]).groups).check()
