"""Carries that change places: values are those of copies, and no step copies an array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp
from hologram.backends.llvm.graph.rotation import Rotation
from hologram.backends.llvm.graph.writer import COPY
from hologram.ir.interpreter import evaluate

Function = Callable[..., Any]
RNG = np.random.default_rng(0)


def _check(f: Function, *args: Any) -> None:
    found = hg.tree.leaves(hg.jit(f)(*args))
    wanted = evaluate(hg.make_graph(f)(*args), [np.asarray(a) for a in args])
    for a, want in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(np.asarray(a), want)


def _loop(step: Function, length: int) -> Function:
    return lambda *arrays: hg.fori_loop(0, length, step, arrays)


def _swap(i: Any, c: Any) -> Any:
    return c[1], c[0].at[i % 7].set(c[1][0] + 1)


def _wave(i: Any, c: Any) -> Any:
    return 2 * c[0] - c[1], c[0]


def _history(i: Any, c: Any) -> Any:
    return c[1], c[2], c[0] + c[2]


def _shifted(i: Any, c: Any) -> Any:
    return c[2], c[0].at[1].add(1), c[1].at[0].add(c[2][2])


def _twice(i: Any, c: Any) -> Any:
    """One array goes to two places."""
    return c[1], c[0] + 1, c[1]


def _read_late(i: Any, c: Any) -> Any:
    """The array that is changed is read after that as well."""
    changed = c[0].at[i % 5].set(9.0)
    return c[1], changed + c[0][::-1] * 0.5


STEPS = [(_swap, 2), (_wave, 2), (_history, 3), (_shifted, 3), (_twice, 3), (_read_late, 2)]


@pytest.mark.parametrize(("step", "carries"), STEPS)
@pytest.mark.parametrize("length", [0, 1, 2, 3, 4, 5, 6, 7, 12])
def test_values(step: Function, carries: int, length: int) -> None:
    _check(_loop(step, length), *RNG.integers(0, 9, (carries, 60)).astype(np.float64))


@pytest.mark.parametrize(("step", "carries"), STEPS)
def test_results_that_nobody_wants_arguments_that_are_given_and_nests(step: Function, carries: int) -> None:
    arrays = list(RNG.integers(0, 9, (carries, 60)).astype(np.float64))
    f = _loop(step, 9)
    for k in range(carries):
        _check(lambda *a, k=k: f(*a)[k], *arrays)
    _check(lambda *a: hg.fori_loop(0, 4, lambda i, c: tuple(hg.fori_loop(0, 5, step, c)), a), *arrays)
    _check(lambda a: f(*[a] * carries), arrays[0])
    given = hg.jit(f, donate_argnums=tuple(range(carries)))(*[hg.tensor(a.copy()) for a in arrays])
    for a, b in zip(given, hg.jit(f)(*arrays), strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())
    _check(hg.vmap(f), *[np.stack([a, a + 1, a * 2]) for a in arrays])


@pytest.mark.parametrize("step", [_swap, _shifted])
def test_derivatives(step: Function) -> None:
    arrays = list(RNG.integers(0, 9, (3 if step is _shifted else 2, 60)).astype(np.float64))
    _check(hg.grad(lambda *a: sum((x**2).sum() for x in _loop(step, 6)(*a))), *arrays)


# Of each carry after a step: which one it was, and what happens to it.
outputs = st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["same", "update", "negated", "sum"])), min_size=4, max_size=4)


@settings(max_examples=40, deadline=None)
@given(outputs, st.integers(0, 13), st.booleans())
def test_random_steps(made: list[tuple[int, str]], length: int, stacks: bool) -> None:
    def step(c: Any, i: Any) -> Any:
        after = []
        for k, (j, how) in enumerate(made):
            x = c[j]
            after.append({"same": x, "update": x.at[(i + k) % 50].set(c[k][j]), "negated": -x, "sum": (x + c[k]) % 17}[how])
        return tuple(after), c[0] if stacks else c[0][:2]

    _check(lambda *a: hg.scan(step, a, hnp.arange(length)), *RNG.integers(0, 9, (4, 50)).astype(np.float64))


@given(st.permutations(range(5)), st.integers(1, 5), st.integers(0, 200))
def test_all_end_where_they_are_wanted(order: list[int], kept: int, length: int) -> None:
    """A carry in whose place a step takes no carry's buffer takes a free one."""
    rotation = Rotation(list(range(5)), [s if s < kept else None for s in order])
    last = list(range(5 + rotation.free))
    buffers = rotation.starts(length, last)
    for _ in range(length):
        buffers = rotation.step(buffers)
    assert buffers == last


def test_steps_copy_nothing() -> None:
    """Each array is copied to its first buffer, before the loop, which threads share by columns, and the loop carries two pointers."""
    text = hg.jit(_loop(_swap, 100)).lower(*np.zeros((2, 1000, 1000))).as_text("llvm")
    before, loop = (text[text.index(f"@{name}(") :].partition("\n}")[0] for name in ("graph", "loop_chunk0"))
    assert loop.count("phi ptr") == 2
    assert COPY in before and COPY not in loop and "memcpy" not in loop and "@kernel" not in loop
