"""Long chains of pending ops are cut where they were cut before: few programs, all of them small, with the bits of steps that are read one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp
from hologram.trace.lazy_programs import cuts
from hologram.trace.operators import CUT_DEPTH, DEPTH_LIMIT

R = np.random.default_rng(0)
X = R.standard_normal(40).astype(np.float32)
M = (R.standard_normal((5, 5)) / 5).astype(np.float32)
STEPS = 700
MOST = 6  # programs of one loop: of its beginning, of a cut, and of values that later cuts find wanted

Step = Callable[[Any, int], Any]


def waves(state: Any, k: int) -> Any:
    x, v = state
    v = v * 0.99 - hnp.sin(x) * 0.3
    return x + v * 0.01, v


def descent(w: Any, k: int) -> Any:
    return w - 0.01 * hg.grad(lambda w: hnp.sum(hnp.tanh(X.reshape(8, 5) @ w) ** 2))(w)


def descents(state: Any, k: int) -> Any:
    """Two weights, each read by the gradients of both."""
    gradients = hg.grad(lambda p: hnp.sum((hnp.tanh(X.reshape(8, 5) @ p[0]) @ p[1]) ** 2))(state)
    return tuple(w - 0.01 * g for w, g in zip(state, gradients, strict=True))


def averages(state: Any, k: int) -> Any:
    """Running sums with a number of each step, as an optimiser has them."""
    x, m = state
    m = 0.9 * m + (0.1 + 0.5 / (k + 2)) * hnp.cos(x)
    return x - 0.1 * m / hnp.sqrt(hnp.mean(m * m) + 0.25), m


LOOPS: dict[str, tuple[Step, Any]] = {
    "a chain": (lambda x, k: x * 0.999 + X / (k + 1.5), X),
    "waves": (waves, (X, X)),
    "a descent": (descent, M),
    "descents of two": (descents, (M, M)),
    "averages": (averages, (X, X)),
    "movements": (lambda x, k: hnp.concatenate([x[1:], x[:1] * 0.5 + 0.1]), X),
    "matrices": (lambda a, k: hnp.tanh(a @ a.T) + a, M),
    "results of one op": (lambda a, k: hnp.linalg.qr(a + 1.0)[1], M),
    "a loop": (lambda x, k: hg.fori_loop(0, 3, lambda i, c: hnp.sin(c) + x[0], x) - 0.5, X),
    "elements": (lambda x, k: x.at[k % 40].set(x[0] * 0.5) + 0.25, X),
    "sums of products": (lambda x, k: x * X[0] + x * x * 0.001 - 0.5, X / 8),
}


@pytest.fixture(autouse=True)
def _no_cuts() -> None:
    cuts._cuts.clear()


def run(name: str, steps: int, read: bool) -> list[np.ndarray]:
    step, start = LOOPS[name]
    state = hg.tree.map(hg.tensor, start)
    for k in range(steps):
        state = step(state, k)
        if read:
            hg.eval(state)
    return [np.asarray(x) for x in hg.tree.leaves(state)]


@pytest.mark.parametrize("name", [name for name in LOOPS if name != "elements"])  # each of which is at another index
@pytest.mark.usefixtures("compiled_at_once")
def test_loops_that_read_nothing_have_few_programs_all_of_them_small(name: str, compilations: list[Any]) -> None:
    run(name, STEPS, False)
    assert len(compilations) <= MOST
    assert max(len(graph.nodes()) for graph in compilations) < 8 * CUT_DEPTH


@pytest.mark.costly(3)
@pytest.mark.parametrize("name", LOOPS)
def test_values_are_those_of_steps_that_are_read(name: str) -> None:
    for found, wanted in zip(run(name, 400, False), run(name, 400, True), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_a_cut_falls_where_one_fell_before() -> None:
    run("waves", STEPS, False)
    known = len(cuts._cuts)
    run("waves", STEPS, False)
    assert len(cuts._cuts) == known <= 3


def test_large_values_wait_for_longer_chains(compilations: list[Any]) -> None:
    x = hg.tensor(np.ones(1 << 16, np.float32))
    y = x
    for _ in range(DEPTH_LIMIT - 2):
        y = y * 0.5 + x
    assert not compilations or len(compilations) == 1  # of both ops of a step


def test_nothing_is_cut_under_vmap() -> None:
    def f(x: Any) -> Any:
        for _ in range(2 * CUT_DEPTH):
            x = hnp.sin(x) + 0.5
        return x

    wanted = X.copy()
    for _ in range(2 * CUT_DEPTH):
        wanted = np.sin(wanted) + np.float32(0.5)
    np.testing.assert_allclose(np.asarray(hg.vmap(f)(X)), wanted, rtol=1e-4)
    np.testing.assert_allclose(np.asarray(hg.vmap(hg.grad(f))(X)).shape, X.shape)


@given(st.lists(st.integers(0, 6), min_size=1, max_size=6), st.integers(0, 5), st.integers(150, 260))
def test_random_loops_have_the_bits_of_steps_that_are_read(body: list[int], held: int, steps: int) -> None:
    """Values of steps before are held, and read late."""
    ops: list[Callable[[Any, Any], Any]] = [
        lambda x, y: x + y * 0.25, lambda x, y: hnp.sin(x), lambda x, y: x * y, lambda x, y: x[::-1], lambda x, y: hnp.maximum(x, y - 1.0),
        lambda x, y: x - x.max(), lambda x, y: hnp.where(y > 0, x, y),
    ]  # fmt: skip

    def loop(read: bool) -> list[np.ndarray]:
        x, y, kept = hg.tensor(X), hg.tensor(X[::-1].copy()), []
        for k in range(steps):
            for op in body:
                x = ops[op](x, y)
            x, y = y, hnp.clip(x, -2.0, 2.0)
            if read:
                hg.eval(x, y)
            if k % 50 == held:
                kept.append(y)
        return [np.asarray(v) for v in (x, y, *kept)]

    for found, wanted in zip(loop(False), loop(True), strict=True):
        np.testing.assert_array_equal(found, wanted)
