"""Policies of ``checkpoint``: the same values and derivatives; what is kept is not computed again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from tests.support.optable import seeded

W = seeded("policy", "w").standard_normal((3, 6, 6)) / 3
X = seeded("policy", "x").standard_normal((4, 6))
POLICIES = [
    None,
    hg.checkpoint_policies.everything_saveable,
    hg.checkpoint_policies.nothing_saveable,
    hg.checkpoint_policies.dots_saveable,
    hg.checkpoint_policies.dots_with_no_batch_dims_saveable,
    hg.checkpoint_policies.save_from_both_policies(hg.checkpoint_policies.dots_saveable, hg.checkpoint_policies.nothing_saveable),
]


def layers(x: Any, w: Any) -> Any:
    for i in range(3):
        x = hnp.tanh(hnp.sin(x @ w[i]) @ w[i].T)
    return x


@pytest.mark.parametrize("policy", POLICIES, ids=lambda p: getattr(p, "__name__", "none"))
def test_derivatives(policy: Any) -> None:
    f = hg.checkpoint(layers, policy=policy)
    loss, plain = (lambda x, w, g=g: hnp.sum(g(x, w) ** 2) for g in (f, layers))
    np.testing.assert_allclose(hg.jit(loss)(X, W), plain(X, W), rtol=1e-12)
    for got, want in zip(hg.jit(hg.grad(loss, (0, 1)))(X, W), hg.grad(plain, (0, 1))(X, W), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)


def test_in_scans() -> None:
    f = hg.checkpoint(layers, policy=hg.checkpoint_policies.dots_saveable)
    step = lambda x, w: (f(x, w[None].repeat(3, 0)), None)  # noqa: E731
    scanned = hg.jit(hg.grad(lambda w: hnp.sum(hg.scan(step, hnp.asarray(X), w)[0] ** 2)))(W)
    want = hg.jit(hg.grad(lambda w: hnp.sum(hg.scan(lambda x, w: (layers(x, w[None].repeat(3, 0)), None), hnp.asarray(X), w)[0] ** 2)))(W)
    np.testing.assert_allclose(scanned, want, rtol=1e-9, atol=1e-12)


def test_second_derivatives_and_stacks() -> None:
    f = hg.checkpoint(lambda x: hnp.sum(hnp.sin(x @ W[0]) @ W[1]), policy=hg.checkpoint_policies.dots_saveable)
    plain = lambda x: hnp.sum(hnp.sin(x @ W[0]) @ W[1])  # noqa: E731
    np.testing.assert_allclose(hg.hessian(f)(X[0]), hg.hessian(plain)(X[0]), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(hg.vmap(hg.grad(f))(X), hg.vmap(hg.grad(plain))(X), rtol=1e-9, atol=1e-12)


def test_what_is_kept_is_not_computed_again() -> None:
    def products(policy: Any) -> int:
        f = hg.jit(hg.grad(lambda x, w: hnp.sum(hg.checkpoint(layers, policy=policy)(x, w) ** 2), 1))
        return f.lower(X, W).as_text("canonical").count("reduce_sum")

    policies = hg.checkpoint_policies
    kept, anew = products(policies.dots_saveable), products(policies.nothing_saveable)
    assert kept < anew and products(None) == anew and products(policies.dots_with_no_batch_dims_saveable) == kept


def test_decorator_and_static_arguments() -> None:
    @hg.remat(static_argnums=(1,), prevent_cse=False)
    def f(x: Any, kind: str) -> Any:
        return hnp.sin(x) if kind == "sin" else hnp.cos(x)

    assert float(hg.grad(f)(0.0, "sin")) == 1.0


def test_products_in_batches_are_told_apart() -> None:
    def kept(f: Any, *args: Any) -> int:
        seen: list[Any] = []
        policy = hg.checkpoint_policies.dots_with_no_batch_dims_saveable
        hg.grad(hg.checkpoint(lambda *xs: hnp.sum(f(*xs) ** 2), policy=lambda n: bool(policy(n)) and not seen.append(n)))(*args)
        return len(seen)

    assert kept(lambda x, w: x @ w, X, W[0]) == 1
    assert kept(lambda x, w: x[:, None, :] @ w, X[:3], W) == 0


INNER: dict[str, Any] = {
    "scan": lambda c, a: hg.scan(lambda c, a: (c * a, c + a), c, a),
    "fori_loop": lambda c, a: hg.fori_loop(0, 3, lambda i, c: hnp.sin(c * a[i]), c),
    "cond": lambda c, a: hg.cond(c[0] < 1, lambda c: c * 2, hnp.sin, c * a[0]),
    "eigh": lambda c, a: hnp.linalg.eigvalsh(hnp.diag(c) + hnp.outer(a[0], a[0])),
    "shared": lambda c, a: (y := hnp.sin(c * a[0]), hnp.exp(y) * y),
}


@pytest.mark.parametrize("policy", [None, hg.checkpoint_policies.everything_saveable])
@pytest.mark.parametrize("name", INNER)
def test_results_may_be_read_before_the_pullback(name: str, policy: Any) -> None:
    arguments = np.arange(2.0) + 0.5, np.linspace(0.1, 1, 6).reshape(3, 2)
    want, plain = hg.vjp(INNER[name], *arguments)
    found, pullback = hg.vjp(hg.checkpoint(INNER[name], policy=policy), *arguments)
    for leaf in hg.tree.leaves(found):
        np.asarray(leaf)
    for a, b in zip(hg.tree.leaves(pullback(found)), hg.tree.leaves(plain(want)), strict=True):
        assert np.any(np.asarray(b))
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
