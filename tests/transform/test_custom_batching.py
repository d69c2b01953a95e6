"""Functions with a rule for stacks of their own; the passes of reverse mode as two functions; functions of scalars as ufuncs."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.custom_batching import custom_vmap, sequential_vmap
from hologram.errors import ArgumentError, ShapeError, TransformError
from tests.support.comparing import close

X = np.array([0.5, 1.0, 2.0], np.float32)


def ruled() -> tuple[Any, list[Any]]:
    """A product whose rule for stacks is a quotient, and what the rule was asked."""
    asked: list[Any] = []

    @custom_vmap
    def product(x: Any, y: Any) -> Any:
        return {"z": x * y}

    @product.def_vmap
    def rule(size: int, batched: list[bool], x: Any, y: Any) -> Any:
        asked.append((size, batched))
        return {"z": x / y}, {"z": True}

    return product, asked


@pytest.mark.parametrize("jitted", [False, True])
def test_the_rule_stands_for_the_function_under_vmap(jitted: bool) -> None:
    product, asked = ruled()
    way = hg.jit if jitted else lambda f: f
    np.testing.assert_allclose(way(product)(X, 2.0)["z"], X * 2)
    np.testing.assert_allclose(way(hg.vmap(product, (0, None)))(X, 2.0)["z"], X / 2)
    np.testing.assert_allclose(way(hg.vmap(lambda x: product(x + 1, x)["z"] * 3))(X), (X + 1) / X * 3, rtol=1e-6)
    assert asked == [(3, [True, False]), (3, [True, True])]
    np.testing.assert_allclose(way(hg.vmap(lambda x: product(2.0, 3.0)["z"] + x))(X), 6 + X)
    assert hg.vmap(product, (0, None))(X, 2.0)["z"].dtype == np.float32  # weak arguments stay weak
    nested = hg.vmap(hg.vmap(product, (0, None)), (None, 0))(X, X)["z"]
    np.testing.assert_allclose(nested, X[None] / X[:, None])


def test_derivatives_are_those_of_what_is_computed() -> None:
    product, _ = ruled()
    np.testing.assert_allclose(hg.grad(lambda x, y: product(x, y)["z"])(3.0, 5.0), 5.0)
    np.testing.assert_allclose(hg.grad(lambda x: hg.vmap(product)(x, X)["z"].sum())(X), 1 / X)
    np.testing.assert_allclose(hg.vmap(hg.grad(lambda x, y: product(x, y)["z"]))(X, X + 1), X + 1)
    np.testing.assert_allclose(hg.jvp(lambda x: hg.vmap(product, (0, None))(x, 2.0)["z"], (X,), (X,))[1], X / 2)


def test_results_may_be_alike_for_all() -> None:
    @custom_vmap
    def f(x: Any, y: Any) -> Any:
        return x, y

    f.def_vmap(lambda size, batched, x, y: ((x, y), tuple(batched)))
    a, b = hg.vmap(f, (0, None))(X, 4.0)
    np.testing.assert_array_equal(a, X)
    np.testing.assert_array_equal(b, [4.0] * 3)


def test_examples_one_by_one(capsys: pytest.CaptureFixture[str]) -> None:
    @sequential_vmap
    def f(x: Any, scale: Any) -> Any:
        hg.debug.print("{}", x)
        return {"y": x * scale}

    for way in (hg.vmap(f, (0, None)), hg.jit(hg.vmap(f, (0, None)))):
        np.testing.assert_array_equal(hg.block_until_ready(way(X, 2.0))["y"], X * 2)
        assert capsys.readouterr().out.split() == ["0.5", "1.0", "2.0"]
    both = hg.vmap(hg.vmap(f))(np.ones((2, 3)), np.ones((2, 3)))["y"]
    assert both.shape == (2, 3) and len(hg.block_until_ready(both).numpy()) == 2 and capsys.readouterr().out.count("1.0") == 6


def test_calls_that_no_example_takes_part_in_are_plain_ones(capsys: pytest.CaptureFixture[str]) -> None:
    product, asked = ruled()
    printing = custom_vmap(lambda x: hg.debug.print("{}", x) or x * 2)  # without a rule
    got = hg.vmap(lambda x: x + printing(hnp.asarray(4.0)) + product(2.0, 3.0)["z"])(X)
    np.testing.assert_array_equal(got, X + 14)
    assert not asked and capsys.readouterr().out.split() == ["4.0"]
    looped = hg.vmap(lambda x: hg.lax.fori_loop(0, 2, lambda _, c: product(c, 2.0)["z"], x))(X)  # in the body of a loop the rule stands, too
    np.testing.assert_allclose(looped, X / 4)


def test_rules_that_do_not_fit_are_refused() -> None:
    f = custom_vmap(lambda x: x)
    with pytest.raises(TransformError, match="has no rule: give it one with def_vmap"):
        hg.vmap(f)(X)
    for rule, error in (
        (lambda size, batched, x: x, ArgumentError),
        (lambda size, batched, x: ((x, x), True), ArgumentError),
        (lambda size, batched, x: (x[:2], True), ShapeError),
    ):
        f.def_vmap(rule)
        with pytest.raises(error):
            hg.vmap(f)(X)
    with pytest.raises(ArgumentError):
        custom_vmap(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("jitted", [False, True])
def test_the_passes_of_reverse_mode_as_functions(jitted: bool) -> None:
    x, w = np.arange(12, dtype=np.float32).reshape(3, 4) / 10, np.arange(8, dtype=np.float32).reshape(4, 2) / 10
    loss = lambda x, w: hnp.tanh(x @ w).sum()  # noqa: E731
    fwd, bwd = hg.fwd_and_bwd(loss, (0, 1), jitted=jitted)
    for k in (1.0, 2.0):
        y, residuals = fwd(x * k, w)
        np.testing.assert_allclose(y, loss(x * k, w), rtol=1e-6)
        for got, want in zip(bwd(residuals, 3.0), hg.grad(lambda x, w: 3 * loss(x, w), (0, 1))(x * k, w), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5)
    assert max(leaf.size for leaf in hg.tree.leaves(residuals)) <= 12, "of a product the factors are kept"
    fwd, bwd = hg.fwd_and_bwd(lambda x: (hg.lax.scan(lambda c, a: (hnp.sin(c) + a, c), x[0], x)[0], {"a": x}), -1, has_aux=True, jitted=jitted)
    y, residuals, aux = fwd(x)
    want = hg.vjp(lambda x: hg.lax.scan(lambda c, a: (hnp.sin(c) + a, c), x[0], x)[0], x)[1](y)[0]
    np.testing.assert_allclose(bwd(residuals, y), want, rtol=1e-5)
    np.testing.assert_array_equal(aux["a"], x)


def test_functions_of_scalars_as_ufuncs() -> None:
    add = hnp.frompyfunc(operator.add, 2, 1, identity=0)
    assert isinstance(add, hnp.ufunc) and (add.nin, add.nout, add.identity) == (2, 1, 0)
    np.testing.assert_array_equal(add.outer(X, X), np.add.outer(X, X))
    np.testing.assert_array_equal(add.accumulate(X), np.cumsum(X))
    assert add.reduce(np.zeros(0, np.float32)) == 0 and add.reduce(X) == X.sum()

    def maximum(a: Any, b: Any) -> Any:  # the name says nothing
        return hnp.where(a > b, b, a)

    assert hnp.frompyfunc(maximum, 2, 1).reduce(X) == X.min()
    both = hnp.frompyfunc(lambda a: (a, -a), 1, 2)
    np.testing.assert_array_equal(hg.jit(lambda x: both(x)[1])(X), -X)
    for wrong in ((operator.add, 0, 1), (operator.add, 2, 0), (3, 2, 1)):
        with pytest.raises(ArgumentError):
            hnp.frompyfunc(*wrong)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="takes 2 arguments, not 1"):
        add(X)


def test_functions_with_rules_are_transposed() -> None:
    @hg.custom_batching.custom_vmap
    def tripled(x: Any) -> Any:
        return 3 * x

    @tripled.def_vmap
    def _(axis_size: int, in_batched: list[bool], x: Any) -> Any:
        return 3 * x, in_batched[0]

    x = np.arange(3.0)
    close(hg.vmap(lambda c: hg.linear_transpose(tripled, 1.0)(c)[0])(x), 3 * x)
