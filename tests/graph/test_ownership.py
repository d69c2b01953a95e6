"""Ownership: random programs of updates keep every value, whatever shares a buffer; updates copy only where an old array is read later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import CompileError
from hologram.graph.execution_plan import ExecutionPlan
from hologram.graph.lower.control_step import Carry, ControlStep
from hologram.graph.ownership import Ownership, verify_ownership
from hologram.graph.pipeline import canonicalise, compile_to_plan
from hologram.graph.report import memory_of

ROWS, COLUMNS = 5, 110  # rows beyond what is kept in registers, arrays that are worth staying in place when a step replaces them


class Numpy:
    """What a program of steps means: arrays that never change."""

    @staticmethod
    def updated(x: np.ndarray, key: Any, value: Any) -> np.ndarray:
        out = x.copy()
        out[key] = value
        return out

    @staticmethod
    def loop(count: int, body: Callable[[int, Any], Any], state: Any) -> Any:
        for i in range(count):
            state = body(i, state)
        return state

    @staticmethod
    def chosen(which: Any, branches: list[Callable[..., Any]], state: Any) -> Any:
        return branches[int(which)](state)


class Hologram:
    """The same on Tensors."""

    updated = staticmethod(lambda x, key, value: x.at[key].set(value))
    loop = staticmethod(lambda count, body, state: hg.fori_loop(0, count, body, state))
    chosen = staticmethod(lambda which, branches, state: hg.cond(which == 1, branches[1], branches[0], state))


Step = tuple[Any, ...]


def key_of(how: str, i: Any, a: int) -> Any:
    """What a step reads or writes: a row, an element, a part of a row, a column."""
    row = (i + a) % ROWS
    return {"row": row, "element": (row, (i * 3 + a) % COLUMNS), "part": (row, slice(a, a + 7)), "column": (slice(None), (i + a) % COLUMNS)}[how]


def run(steps: list[Step], on: Any, arrays: list[Any], i: Any = 1) -> list[Any]:
    """Runs steps on versions of arrays: each step makes a new version of one of them; old ones stay readable."""
    versions = list(arrays)
    count = len(arrays)
    for kind, which, how, a, b in steps:
        target, source = versions[-1 - which % count], versions[b % len(versions)]
        if kind == "set":
            value = source[key_of(how, i, b)] + target[key_of(how, i, a + 1)]
            versions.append(on.updated(target, key_of(how, i, a), value))
        elif kind == "swap":
            r, s = target[key_of(how, i, a)], target[key_of(how, i, b)]
            versions.append(on.updated(on.updated(target, key_of(how, i, a), s), key_of(how, i, b), r))
        elif kind == "scale":
            versions.append(target * 0.5 + source)
        elif kind == "exchange":
            versions += [source, target]
        elif kind == "branch":
            chosen = [lambda x, how=how, a=a: on.updated(x, key_of(how, i, a), 2.0), lambda x: x]
            versions.append(on.chosen(i % 2, chosen, target))
        else:
            inner = [("set", which, how, a, b), ("swap", which, how, b, a)][: 1 + a % 2]
            state = on.loop(3, lambda j, s, inner=inner: tuple(run(inner, on, list(s), j)[-count:]), tuple(versions[-count:]))
            versions += list(state)
    return versions


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["set", "set", "swap", "scale", "exchange", "branch", "loop"]),
        st.integers(0, 3),
        st.sampled_from(["row", "element", "part", "column"]),
        st.integers(0, 6),
        st.integers(0, 6),
    ),
    min_size=1,
    max_size=6,
)


def arrays(count: int) -> list[np.ndarray]:
    return [np.random.default_rng(k).integers(-8, 8, (ROWS, COLUMNS)).astype(np.float64) for k in range(count)]


@given(STEPS, st.integers(1, 2), st.lists(st.integers(0, 20), min_size=1, max_size=3))
def test_random_updates_keep_every_value(steps: list[Step], count: int, kept: list[int]) -> None:
    def program(on: Any) -> Callable[..., Any]:
        def f(*xs: Any) -> Any:
            versions = run(steps, on, list(xs))
            return [versions[k % len(versions)] for k in kept] + [versions[-1]]

        return f

    given = arrays(count)
    wanted = program(Numpy)(*given)
    found = hg.jit(program(Hologram))(*given)
    donated = hg.jit(program(Hologram), donate_argnums=tuple(range(count)))(*map(hg.tensor, given))
    for a, b, c in zip(wanted, found, donated, strict=True):
        np.testing.assert_array_equal(np.asarray(b), a)
        np.testing.assert_array_equal(np.asarray(c), a)


@given(STEPS, st.integers(1, 2), st.integers(1, 4))
def test_random_updates_in_loops_keep_every_value(steps: list[Step], count: int, length: int) -> None:
    steps = [s for s in steps if s[0] != "loop"]

    def program(on: Any) -> Callable[..., Any]:
        return lambda *xs: on.loop(length, lambda i, s: tuple(run(steps, on, list(s), i)[-count:]), xs)

    given = arrays(count)
    for a, b in zip(program(Numpy)(*given), hg.jit(program(Hologram))(*given), strict=True):
        np.testing.assert_array_equal(np.asarray(b), a)


# --- where copies are left --------------------------------------------------------------------------------------------


def plan_of(f: Callable[..., Any], *args: Any) -> ExecutionPlan:
    return compile_to_plan(canonicalise(hg.make_graph(f)(*args), "standard"), "standard")


A = np.ones((100, 100))


def loop_of(plan: ExecutionPlan) -> ControlStep:
    return next(s for s in plan.steps if isinstance(s, ControlStep))


def test_an_updated_carry_stays_in_place() -> None:
    step = loop_of(plan_of(lambda x: hg.fori_loop(0, 9, lambda i, a: a.at[i].set(a[i + 1] * 2.0), x), A))
    assert [c for c, n in zip(step.carries, step.execution_plans[-1].outputs, strict=True) if n.node.ndim == 2] == [Carry.IN_PLACE]
    assert [c for p in step.execution_plans for c in p.copies if "argument" not in c.why] == []


def test_a_carry_whose_boundary_comes_from_elsewhere_stays_in_place() -> None:
    def step(i: Any, fields: Any) -> Any:
        e, h = fields
        e = e.at[0].set(i * 1.0).at[1:].add(0.5 * (h[1:] - h[:-1]))
        return e, h.at[:-1].add(0.7 * (e[1:] - e[:-1]))

    def f(e: Any, h: Any) -> Any:
        return hg.fori_loop(0, 9, step, (e, h))

    carries = loop_of(plan_of(f, A, A)).carries
    assert carries.count(Carry.IN_PLACE) >= 2 and Carry.TWO_BUFFERS not in carries[-2:]
    e, h = np.ones((100, 100)), np.arange(10_000.0).reshape(100, 100)
    found = hg.jit(f)(e, h)
    e, h = e.copy(), h.copy()
    for i in range(9):
        e[0] = i
        e[1:] += 0.5 * (h[1:] - h[:-1])
        h[:-1] += 0.7 * (e[1:] - e[:-1])
    np.testing.assert_allclose(found[0], e)
    np.testing.assert_allclose(found[1], h)


def eliminated(k: Any, a: Any) -> Any:
    """A step of an elimination: all of the array, then a column of it made of the old one and the new one."""
    below = hnp.arange(100) > k
    factors = a[:, k] / a[k, k]
    new = a - hnp.where(below, factors, 0.0)[:, None] * hnp.where(below, a[k], 0.0)
    return new.at[:, k].set(hnp.where(below, factors, new[:, k]))


REPLACED = {
    "an elimination": eliminated,
    "a column of the old array": lambda k, a: (a * 0.5 + 1.0).at[:, 0].set(a[:, k]),
    "a row in all rows": lambda k, a: a - a[k] * 0.25,
    "a part of the new array": lambda k, a: (lambda b: b.at[k].set(b[:, 3] + b[k]))(a * 0.5 + 1.0),
    "an element in a condition": lambda k, a: hnp.where(a > a[3, k], a, a * 0.5),
}


@pytest.mark.parametrize("name", REPLACED)
def test_an_array_that_is_replaced_as_a_whole_stays_in_place_where_only_windows_of_it_are_wanted(name: str) -> None:
    step = REPLACED[name]

    def f(x: Any) -> Any:
        return hg.fori_loop(0, 9, step, x)

    assert loop_of(plan_of(f, A)).carries[-1] is Carry.IN_PLACE
    x = np.random.default_rng(0).uniform(1, 2, (100, 100)) + 9 * np.eye(100)
    wanted = hg.tensor(x)
    for i in range(9):
        wanted = hg.tensor(np.asarray(hg.jit(step)(i, wanted)))
    np.testing.assert_allclose(hg.jit(f)(x), wanted, rtol=1e-13)


def test_rows_swap_without_a_copy_of_the_array() -> None:
    def swap(i: Any, x: Any) -> Any:
        r, s = x[i], x[99 - i]
        return x.at[i].set(s).at[99 - i].set(r)

    step = loop_of(plan_of(lambda x: hg.fori_loop(0, 9, swap, x), A))
    assert Carry.IN_PLACE in step.carries


def test_an_old_array_that_is_wanted_is_copied_once_and_the_plan_says_why() -> None:
    def f(x: Any, i: Any) -> Any:
        y = hnp.cumsum(x, axis=0)
        z = y.at[i].set(1.0)
        return z, hnp.sum(z @ y)

    plan = plan_of(f, A, 3)
    assert [c.why.split()[-1] for c in plan.copies] == ["later"]
    assert "float64[100, 100]: step" in str(memory_of(plan))


def test_what_reads_an_array_goes_before_its_update() -> None:
    def f(x: Any, i: Any) -> Any:
        y = hnp.exp(x)
        z = y.at[i].set(0.0)
        return z, hnp.sum(y, axis=0)

    plan = plan_of(f, A, 3)
    assert plan.copies == []


def test_updates_of_an_argument_copy_it_unless_it_is_donated() -> None:
    plan = plan_of(lambda x, i: x.at[i].set(0.0), A, 3)
    assert len(plan.copies) == 1 and "donated" in plan.copies[0].why
    assert plan.donors() == [[0]]


def test_the_verifier_finds_a_read_after_an_update() -> None:
    def f(x: Any, i: Any) -> Any:
        y = hnp.cumsum(x, axis=0)
        z = y.at[i].set(0.0)
        return hnp.sum(z, axis=0) * hnp.max(y, axis=1)

    owned = plan_of(f, A, 3)._owned
    verify_ownership(owned)
    copied = next(s for s in owned.steps if s.shared())
    ((result, operand),) = copied.shared()
    late = Ownership(owned.lowered)
    late.steps = sorted(late.steps, key=lambda s: s.reads() == [operand] and s is not copied)
    late._unite(operand, result)
    with pytest.raises(CompileError, match="finds another array"):
        verify_ownership(late)
