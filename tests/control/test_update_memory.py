"""Memory of transformed loops with updates: reverse mode keeps what steps overwrite, stacks and forward mode update in place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.graph.execution_plan import ExecutionPlan
from hologram.graph.lower.control_step import MIN_NAMED_BYTES, Carry, ControlStep
from hologram.graph.lower.lowered import Lowered
from hologram.graph.pipeline import canonicalise, compile_to_plan
from hologram.ir.node import nbytes
from hologram.primitives.control import switch

STEPS, SMALL, LARGE = 40, 2000, 16000
STARTS = np.random.default_rng(3).integers(0, SMALL - 8, STEPS)
Program = Callable[[Any, Any], Any]


def windows(x: Any, starts: Any) -> Any:
    def step(x: Any, start: Any) -> Any:
        old = hg.lax.dynamic_slice(x, (start,), (8,))
        return hg.lax.dynamic_update_slice(x, hnp.tanh(old) * 2.0, (start,)), old.sum()

    return hg.scan(step, x, starts)[0]


def elements(x: Any, starts: Any) -> Any:
    return hg.fori_loop(0, STEPS, lambda i, x: x.at[starts[i]].multiply(hnp.sin(x[i + 1])).at[i].max(x[starts[i]]), x)


def rows(x: Any, starts: Any) -> Any:
    y = x.reshape(-1, 10)
    return hg.fori_loop(0, STEPS, lambda i, y: y.at[i + 1].set(hnp.sin(y[i]) * y[i + 2]), y)


def several_carries(x: Any, starts: Any) -> Any:
    def step(c: Any, start: Any) -> Any:
        x, y, total = c
        return (x.at[start].add(hnp.sin(y[start])), y.at[start + 1].set(x[start] * total), total * x[start + 2]), None

    x, y, total = hg.scan(step, (x, x * 2.0, 1.0), starts)[0]
    return x + y * total


def nested(x: Any, starts: Any) -> Any:
    def outer(i: Any, y: Any) -> Any:
        return hg.fori_loop(0, 3, lambda j, y: y.at[starts[i] + j].set(hnp.sin(y[j]) * x[starts[i]]), y)

    return hg.fori_loop(0, STEPS, outer, x * 1.5)


def branches(x: Any, starts: Any) -> Any:
    def step(y: Any, start: Any) -> Any:
        y = hg.cond(start % 2 == 0, lambda y: y.at[start].set(hnp.sin(y[start]) * x[start + 1]), lambda y: y, y)
        return hg.switch(
            start % 3, [lambda y: y, lambda y: y.at[0].multiply(hnp.cos(y[start])), lambda y: y.at[start + 1].add(y[start] ** 2)], y
        ), None

    return hg.scan(step, x * 1.5, starts)[0]


def chosen_by_where(x: Any, starts: Any) -> Any:
    return hg.fori_loop(0, STEPS, lambda i, x: hnp.where(starts[i] % 2 == 0, x.at[starts[i]].set(hnp.sin(x[i])), x), x)


def recomputed(x: Any, starts: Any) -> Any:
    @hg.checkpoint
    def step(x: Any, start: Any) -> Any:
        row = hnp.sin(hg.lax.dynamic_slice(x, (start,), (4,)))
        return hg.lax.dynamic_update_slice(x, row * hnp.cos(row), (start,)), None

    return hg.scan(step, x, starts)[0]


def many_steps(x: Any, starts: Any) -> Any:
    """With the first of the starts as the number of steps."""
    return hg.while_loop(lambda c: c[0] < starts[0] % STEPS, lambda c: (c[0] + 1, c[1].at[starts[c[0]]].set(hnp.sin(c[1][c[0]]))), (0, x))[1]


REVERSIBLE = [windows, elements, rows, several_carries, nested, branches, chosen_by_where]
PROGRAMS = [*REVERSIBLE, many_steps]


def plan_of(f: Callable[..., Any], *args: Any) -> ExecutionPlan:
    return compile_to_plan(canonicalise(hg.make_graph(f)(*args), "standard"), "standard")


def loops(plan: ExecutionPlan) -> Iterator[ControlStep]:
    for step in plan.steps:
        if isinstance(step, ControlStep):
            yield step
            for inside in step.execution_plans:
                yield from loops(inside)


def assert_in_place(f: Callable[..., Any], *args: Any) -> None:
    """Whether all large carries of ``f`` are changed where they are, and no step or branch makes such arrays."""
    plan = plan_of(f, *args)
    for step in loops(plan):
        kept = [c for c, x in zip(step.carries, step.execution_plans[-1].graph.outputs, strict=False) if nbytes(x) >= MIN_NAMED_BYTES]
        assert step.node.op is switch or set(kept) <= {Carry.IN_PLACE}, f"{step.node}: {kept}"
        assert max(p.allocate({}).peak for p in step.execution_plans) < 8 * SMALL, f"{step.node}: arrays as large as a carry in a step"
    assert [c for c in plan.copies if "argument" not in c.why] == []


def gradient(f: Program) -> Program:
    return hg.grad(lambda x, starts: (f(x, starts) ** 2).sum())


def peak(f: Program, n: int) -> int:
    lowered = hg.jit(f).lower(np.ones(n), STARTS)
    return lowered.compile().memory_analysis().peak  # type: ignore[no-any-return]


@pytest.mark.parametrize("f", REVERSIBLE)
def test_reverse_mode_keeps_windows(f: Program) -> None:
    """For more elements a few arrays take more memory, not an array a step."""
    assert_in_place(gradient(f), np.ones(SMALL), STARTS)
    growth = (peak(gradient(f), LARGE) - peak(gradient(f), SMALL)) / (8 * (LARGE - SMALL))
    assert growth <= 4.1


def test_recomputed_steps_keep_their_carries() -> None:
    """What ``checkpoint`` keeps is the argument of a step, the whole array; the loop in it keeps windows."""
    assert (peak(gradient(recomputed), LARGE) - peak(gradient(recomputed), SMALL)) / (8 * (LARGE - SMALL)) >= STEPS

    def whole(x: Any, starts: Any) -> Any:
        return hg.checkpoint(windows)(x, starts)

    assert_in_place(gradient(whole), np.ones(SMALL), STARTS)
    assert peak(gradient(whole), LARGE) - peak(gradient(whole), SMALL) <= 4.1 * 8 * (LARGE - SMALL)


@pytest.mark.parametrize("f", PROGRAMS)
def test_forward_mode_updates_in_place(f: Program) -> None:
    assert_in_place(lambda x, t, starts: hg.jvp(lambda x: f(x, starts), (x,), (t,)), np.ones(SMALL), np.ones(SMALL), STARTS)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("f", PROGRAMS)
def test_stacks_are_updated_in_place(f: Program, shared: bool) -> None:
    starts = np.stack([STARTS, STARTS[::-1]])
    assert_in_place(hg.vmap(f, in_axes=(None if shared else 0, 0)), np.ones(SMALL) if shared else np.ones((2, SMALL)), starts)


@pytest.mark.parametrize("f", REVERSIBLE)
def test_gradients_of_stacks_update_in_place(f: Program) -> None:
    assert_in_place(hg.vmap(gradient(f)), np.ones((2, SMALL)), np.stack([STARTS, STARTS[::-1]]))


def test_second_derivatives_update_in_place() -> None:
    assert_in_place(lambda x, t, s: hg.jvp(lambda x: gradient(windows)(x, s), (x,), (t,)), np.ones(SMALL), np.ones(SMALL), STARTS)


def test_the_cotangent_of_what_steps_read_is_one_array() -> None:
    """Several windows a step, in a loop in a loop and in branches: nothing of the array's size is made in a step."""

    def f(m: Any, starts: Any) -> Any:
        def step(total: Any, i: Any) -> Any:
            row = hg.cond(i % 2 == 0, lambda: m[i] * m[i, 3], lambda: hnp.sin(m[i + 1]))
            return hg.fori_loop(0, 2, lambda j, t: t + (row * m[j + i]).sum() * t, total), None

        return hg.scan(step, 1.0, starts)[0]

    plan = plan_of(hg.grad(f), np.ones((90, 90)), np.arange(20))
    inside = [s for loop in loops(plan) for p in loop.execution_plans for s in p.steps if isinstance(s, Lowered) and not s.is_copy]
    assert not [k for k in inside if any(b.role == "out" and b.size == 8100 for b in k.kernel.params)]
    assert_in_place(hg.grad(f), np.ones((90, 90)), np.arange(20))


def test_an_unwanted_last_value_takes_no_buffer() -> None:
    def f(x: Any, starts: Any) -> Any:
        return hg.scan(lambda x, s: (x.at[s].add(1.0), x[s + 1]), hnp.zeros_like(x), starts)[1]

    assert peak(f, LARGE) < 8 * LARGE * 1.1
