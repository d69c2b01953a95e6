"""Python loops of steps that are not jitted: closures, transforms and loops made anew in each step find the programs of the step before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp

R = np.random.default_rng(0)
X = R.standard_normal((6, 4, 3)).astype(np.float32)
W = (R.standard_normal((3, 3)) * 0.3).astype(np.float32)
STEPS = 8
WARM = 4  # steps that may compile: the second is recorded of computed weights, and one that has another number makes that an operand


pytestmark = pytest.mark.usefixtures("compiled_at_once")


def recurrent(cell: Callable[..., Any]) -> Callable[[Any, int], Any]:
    """A loss of a recurrent network, whose cell closes over the weights."""

    def loss(w: Any, k: int) -> Any:
        h, _ = hg.scan(lambda h, x: (cell(w, h, x), None), hnp.zeros((4, 3)), X)
        return hnp.sum(h**2)

    return loss


def plain(w: Any, h: Any, x: Any) -> Any:
    return hnp.tanh(h @ w + x)


def remade(w: Any, h: Any, x: Any) -> Any:
    """With rules of derivatives that are made anew each time."""
    f = hg.custom_vjp(lambda y: hnp.tanh(y))
    f.defvjp(lambda y: (hnp.tanh(y), y), lambda y, t: (t * (1 - hnp.tanh(y) ** 2),))
    return f(h @ w + x)


def with_tangents(w: Any, h: Any, x: Any) -> Any:
    f = hg.custom_jvp(lambda y: hnp.tanh(y))
    f.defjvp(lambda p, t: (hnp.tanh(p[0]), t[0] * (1 - hnp.tanh(p[0]) ** 2)))
    return f(h @ w + x)


def stopped(w: Any, h: Any, x: Any) -> Any:
    return hnp.tanh(h @ w + hg.stop_gradient(x * w[0, 0]))


def branch(w: Any, h: Any, x: Any) -> Any:
    return hg.cond(h[0, 0] > 0, hg.checkpoint(lambda: hnp.tanh(h @ w + x)), lambda: h * w[0, 0] + x)


def inner_loop(w: Any, h: Any, x: Any) -> Any:
    return hg.fori_loop(0, 3, lambda i, c: hg.checkpoint(hnp.tanh)(c @ w + x), h)


def solved(w: Any, k: int) -> Any:
    """Implicit derivatives of a fixed point."""
    find = lambda f, y: hg.while_loop(lambda c: hnp.sum(abs(f(c))) > 1e-3, lambda c: c - 0.5 * f(c), y)  # noqa: E731
    y = hg.lax.custom_root(lambda y: y - hnp.tanh(w @ y * 0.3 + X[0, 0]), hnp.zeros(3), find, lambda g, b: hnp.linalg.solve(hg.jacobian(g)(b), b))
    return hnp.sum(y**2)


LOSSES: dict[str, Callable[[Any, int], Any]] = {
    "dense": lambda w, k: hnp.sum(hnp.tanh(X[0] @ w) ** 2),
    "a number of each step": lambda w, k: hnp.sum(hnp.tanh(X[0] @ w) ** 2) * (0.5 + 1.0 / (k + 3)),
    "recurrent": recurrent(plain),
    "recomputed": recurrent(lambda w, h, x: hg.checkpoint(lambda a, b: hnp.tanh(a @ w + b))(h, x)),
    "a rule of reverse mode": recurrent(remade),
    "a rule of forward mode": recurrent(with_tangents),
    "stopped gradients": recurrent(stopped),
    "branches": recurrent(branch),
    "loops in loops": recurrent(inner_loop),
    "recomputed outside": lambda w, k: hg.checkpoint(recurrent(plain))(w, k),
    "a fixed point": solved,
    "examples": lambda w, k: hnp.mean(hg.vmap(lambda x: hnp.sum(hg.checkpoint(lambda y: hnp.sin(y @ w))(x)))(X)),
    "an associative scan": lambda w, k: hnp.sum(hg.associative_scan(lambda a, b: hnp.sin(a) + b @ w, X) ** 2),
    "dropped elements": lambda w, k: hnp.sum((X[0] @ w) * hg.random.bernoulli(hg.random.key(k), 0.5, (4, 3))),
    "a batch of each step": lambda w, k: hnp.sum((X[:, :, 0] @ hnp.ones((4, 3)) @ w)[hg.random.permutation(hg.random.key(k), 6)[:3]] ** 2),
}


@pytest.mark.parametrize("name", LOSSES)
def test_steps_of_a_training_loop_compile_nothing_after_the_first(name: str, compilations: list[Any]) -> None:
    loss = LOSSES[name]
    w = hg.tensor(W)
    for k in range(STEPS):
        if k == WARM:
            compilations.clear()
        value, slope = hg.value_and_grad(lambda w, k=k: loss(w, k))(w)
        w = w - 0.01 * slope
        assert np.isfinite(float(value))
    assert not compilations


SECOND: dict[str, Callable[..., Any]] = {
    "hessian": lambda f, w: hg.hessian(f)(w).sum((2, 3)),
    "products with a Hessian": lambda f, w: hg.jvp(hg.grad(f), (w,), (w * 0.5,))[1],
    "linearize": lambda f, w: hg.linearize(f, w)[1](w) * w,
    "a pullback": lambda f, w: hg.vjp(f, w)[1](hnp.ones(()))[0],
    "gradients of examples": lambda f, w: hg.vmap(hg.grad(f))(hnp.stack([w, 2 * w])).sum(0),
}


FORWARD = ("hessian", "products with a Hessian", "linearize")  # which a rule of reverse mode does not serve


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        (name, cell)
        for name in SECOND
        for cell in ("recurrent", "recomputed", "a rule of reverse mode", "branches")
        if name not in FORWARD or cell != "a rule of reverse mode"
    ],
)
def test_steps_with_other_derivatives_compile_nothing_after_the_first(name: str, cell: str, compilations: list[Any]) -> None:
    loss = LOSSES[cell]
    w = hg.tensor(W)
    for k in range(STEPS):
        if k == WARM:
            compilations.clear()
        w = w - 0.001 * SECOND[name](lambda w, k=k: loss(w, k), w)
        assert np.isfinite(np.asarray(w)).all()
    assert not compilations
