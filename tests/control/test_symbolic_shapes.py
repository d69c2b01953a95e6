"""Loops and branches over symbolic shapes: the bits of the static programs at every size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp

W = hg.tensor(np.linspace(-1, 1, 9, dtype=np.float32).reshape(3, 3))
SIZES = (5, 7, 2, 40)


def _counted(t: Any) -> Any:
    return hg.while_loop(lambda c: c[0] < 7, lambda c: (c[0] + 1, hnp.sort(c[1], axis=0) @ W), (0, t))[1]


FLOWS: dict[str, Callable[[Any], Any]] = {
    "carry": lambda t: hg.scan(lambda c, w: (c + w.sum(), c * 2), t, W),
    "sequence": lambda t: hg.scan(lambda c, r: (c + r, c * r), t[0], t),
    "both": lambda t: hg.scan(lambda c, r: (c * 0.5 + r[0], c[0]), t, t),
    "reverse": lambda t: hg.scan(lambda c, r: (c + r, c * r), t[0], t, reverse=True),
    "length": lambda t: hg.scan(lambda c, _: (c * 1.01, c.sum()), t, None, t.shape[0]),
    "fori": lambda t: hg.fori_loop(0, t.shape[0], lambda i, c: c + i, t),
    "from 2": lambda t: hg.fori_loop(2, t.shape[0], lambda i, c: c + i, t[0]),
    "fixed": lambda t: hg.fori_loop(0, 5, lambda i, c: c * 1.5 + t, t),
    "index": lambda t: hg.fori_loop(0, t.shape[0], lambda i, c: c + t[i], t[0]),
    "element": lambda t: hg.fori_loop(0, 5, lambda i, c: c * t[1, 0] + t[-1, 1], t[0, 0]),
    "element of a carry": lambda t: hg.scan(lambda c, r: (c.at[0].set(c[1] + t[0, 0]), c[0] * r), t[0], t),
    "arenas that shrink": lambda t: (hnp.sort(hnp.cumsum(hnp.arange(48 - t.shape[0]) * t[0, 0])), hnp.sort(hnp.cumsum(t, 0), 0)),
    "while": lambda t: hg.while_loop(lambda c: hnp.all(c < 10), lambda c: c + 1, t),
    "sorted": _counted,
    "cond": lambda t: hg.cond(hnp.all(t > 0), lambda c: c + 1, lambda c: hnp.cumsum(c, axis=0), t),
    "switch": lambda t: hg.switch((t.sum() > 2).astype(int), [lambda c: (c + 1, hnp.sin(c).sum()), lambda c: (c[::-1], c[0, 0])], t),
    "nested": lambda t: hg.fori_loop(0, 3, lambda i, c: hg.fori_loop(0, t.shape[0], lambda j, d: d * 0.9 + t[j], c), t),
    "products": lambda t: hg.fori_loop(0, 3, lambda i, c: hg.nn.softmax(c @ c.T) @ c, t),
    "updates": lambda t: hg.fori_loop(0, t.shape[0], lambda i, c: c.at[i].set(c[i] * 2 + c[0]), t),
    "vmap": lambda t: hg.vmap(lambda y: hg.fori_loop(0, 3, lambda i, c: c + y, y))(t),
    "closed over": lambda t: hg.fori_loop(0, 3, lambda i, c: c + hnp.exp(W).sum() + hnp.arange(t.shape[0])[:, None], t),
    "of arguments": lambda t: hg.fori_loop(0, 3, lambda i, c: c + (c * hnp.arange(t.shape[0])).sum(), t[0, 0]),
    "spread": lambda t: hg.fori_loop(0, 3, lambda i, c: c + hnp.broadcast_to(c, (t.shape[0],)).sum(), t[0, 0]),
    "complex": lambda t: hg.fori_loop(0, 3, lambda i, c: c * (1 + 1j), t + 0j),
    "fft": lambda t: hg.fori_loop(0, 2, lambda i, c: hg.fft.ifft(hg.fft.fft(c, axis=0) * 1.1, axis=0), t + 0j),
    "random": lambda t: hg.fori_loop(0, 3, lambda i, c: c + hg.random.normal(hg.random.key(3), c.shape), t),
    "grad of fori": lambda t: hg.grad(lambda y: hg.fori_loop(0, 4, lambda i, c: hnp.sin(c) * 1.5, y).sum())(t),
    "grad of scan": lambda t: hg.grad(lambda y: hg.scan(lambda c, r: (hnp.sin(c) + r, c * r), y[0], y)[1].sum())(t),
    "grad of length": lambda t: hg.grad(lambda y: hg.fori_loop(0, y.shape[0], lambda i, c: c * y[i] + 1, y[0]).sum())(t),
    "jvp": lambda t: hg.jvp(lambda y: hg.while_loop(lambda c: hnp.all(c < 10), lambda c: c * 1.5 + 1, y), (t,), (t,))[1],
    "rnn": lambda t: hg.grad(lambda w: hg.scan(lambda h, x: (hnp.tanh(h @ w + x), h.sum()), hnp.zeros(3), t)[1].sum())(W),
}


def given_rows(n: int) -> np.ndarray:
    return np.random.default_rng(n).uniform(0, 1, (n, 3)).astype(np.float32)


def assert_same(f: Any, flow: Callable[[Any], Any], n: int) -> None:
    static = hg.jit(flow, precision="exact", dynamic=False)
    for got, want in zip(hg.tree.leaves(f(given_rows(n))), hg.tree.leaves(static(given_rows(n))), strict=True):
        got, want = np.asarray(got), np.asarray(want)
        assert got.dtype == want.dtype and got.shape == want.shape
        np.testing.assert_array_equal(got, want)


@pytest.mark.costly(2)
@pytest.mark.parametrize("name", FLOWS)
def test_every_size_has_the_bits_of_its_static_program(name: str) -> None:
    f = hg.jit(FLOWS[name], dynamic={0: 0}, precision="exact")
    for n in SIZES:
        assert_same(f, FLOWS[name], n)
    assert len(f._specialisations) == 1


@pytest.mark.parametrize("name", ["nested", "switch", "grad of scan"])
def test_checked_kernels(name: str) -> None:
    with hg.settings.override(checked=True):
        f = hg.jit(FLOWS[name], dynamic={0: 0}, precision="exact")
        for n in SIZES[:2]:
            assert_same(f, FLOWS[name], n)


def test_a_loop_from_beyond_the_extent_is_compiled_for_its_size() -> None:
    """It is taken that a loop does not end before it starts."""
    flow = lambda t: hg.fori_loop(4, t.shape[0], lambda i, c: c + i, t[0])  # noqa: E731
    f = hg.jit(flow, dynamic={0: 0}, precision="exact")
    for n in (6, 5, 4, 3, 2):
        assert_same(f, flow, n)
    assert len(f._specialisations) == 3


STEPS: list[Callable[[Any, Any], Any]] = [
    lambda c, t: c + t,
    lambda c, t: c[::-1] * 0.5,
    lambda c, t: c - c.mean(axis=0),
    lambda c, t: hnp.cumsum(c, axis=0) * 0.1,
    lambda c, t: hg.cond(c[0, 0] > 0.3, lambda x: x * 2, lambda x: x + t, c),
    lambda c, t: hg.fori_loop(0, 2, lambda i, x: x + t[i], c),
    lambda c, t: hg.scan(lambda x, r: (x * 0.9 + r, r * 2), c, c)[1],
    lambda c, t: hnp.concatenate([c[1:], t[:1]]),
    lambda c, t: c @ W,
]


@settings(max_examples=settings().max_examples // 10)
@given(st.lists(st.integers(0, len(STEPS) - 1), min_size=1, max_size=4), st.integers(0, 3), st.lists(st.integers(2, 30), min_size=2, max_size=3))
def test_random_bodies(steps: list[int], count: int, sizes: list[int]) -> None:
    def flow(t: Any) -> Any:
        def body(_: Any, c: Any) -> Any:
            for k in steps:
                c = STEPS[k](c, t)
            return c

        return hg.fori_loop(0, count, body, t)

    f = hg.jit(flow, dynamic={0: 0}, precision="exact")
    for n in sizes:
        assert_same(f, flow, n)
