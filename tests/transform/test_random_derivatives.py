"""Derivatives of random programs: against differences, forward against reverse, the Hessian by two ways."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hypothesis
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp
from tests.support.comparing import close

UNARY: list[Callable[[Any], Any]] = [
    hnp.sin,
    hnp.tanh,
    lambda x: hnp.exp(-x * x),
    lambda x: x[::-1],
    lambda x: hnp.cumsum(x, axis=0),
    lambda x: x - hnp.mean(x),
    lambda x: hnp.roll(x, 1),
    lambda x: hnp.log(2.0 + x * x),
    lambda x: hnp.sqrt(1.0 + x * x),
    lambda x: x * hnp.sum(x),
    lambda x: hnp.concat([x[2:], x[:2]]),
    lambda x: hnp.where(x > 0.1, x * 3.0, x),
    lambda x: x / (1.0 + hnp.abs(x)),
    lambda x: x[np.array([0, 0, 3, 1])],
    lambda x: hnp.pad(x[1:-1], 1),
    lambda x: hnp.reshape(hnp.reshape(x, (2, 2)).T, (4,)),
    lambda x: hnp.outer(x, x)[1],
    lambda x: x / hnp.max(hnp.abs(x) + 1.0),
]
BINARY: list[Callable[[Any, Any], Any]] = [
    lambda x, y: x + y,
    lambda x, y: x * y,
    lambda x, y: x - 2.0 * y,
    lambda x, y: x / (2.0 + y * y),
    hnp.hypot,
]


@st.composite
def programs(draw: Any) -> Callable[[Any], Any]:
    steps = draw(st.lists(st.tuples(st.integers(0, len(UNARY) + len(BINARY) - 1), st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=6))

    def program(x: Any) -> Any:
        values = [x]
        for op, i, j in steps:
            a, b = values[i % len(values)], values[j % len(values)]
            values.append(UNARY[op](a) if op < len(UNARY) else BINARY[op - len(UNARY)](a, b))
        return values[-1]

    return program


@hypothesis.settings(max_examples=hypothesis.settings().max_examples * 2 // 5)
@given(programs(), st.integers(0, 2**32 - 1))
def test_random_programs(f: Callable[[Any], Any], seed: int) -> None:
    """Gradient against differences; forward against reverse; the Hessian by two ways; all under jit."""
    rng = np.random.default_rng(seed)
    x, t, w = rng.standard_normal(4) + 0.05, rng.standard_normal(4), rng.standard_normal(4)
    loss = lambda z: hnp.sum(f(z) * w)  # noqa: E731
    _, forward = hg.jvp(loss, (x,), (t,))
    g = hg.jit(hg.grad(loss))(x)
    scale = 1.0 + np.abs(g.numpy()).max()
    close(forward, np.sum(g.numpy() * t), 1e-8, 1e-8 * scale)
    h = 1e-5
    close(forward, (float(loss(x + h * t)) - float(loss(x - h * t))) / (2 * h), 1e-4, 1e-5 * scale * 10)
    h1, h2 = hg.jit(hg.hessian(loss))(x), hg.jacrev(hg.jacfwd(loss))(x)
    close(h1, h2.numpy(), 1e-7, 1e-7 * (1.0 + np.abs(h2.numpy()).max()))
