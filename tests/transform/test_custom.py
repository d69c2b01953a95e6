"""Derivatives that a user gives, and functions that are computed again: ``custom_jvp``, ``custom_vjp``, ``checkpoint``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import ArgumentError, DifferentiationError
from tests.support.comparing import close

# --- rules of one's own ----------------------------------------------------------------------------------------------


@hg.custom_jvp
def log1pexp(x: Any) -> Any:
    return hnp.log(1.0 + hnp.exp(x))


@log1pexp.defjvp
def _(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    return log1pexp(x), (1 - 1 / (1 + hnp.exp(x))) * t


def test_custom_jvp() -> None:
    close(log1pexp(1.0), math.log(1 + math.e))
    close(hg.grad(log1pexp)(np.float32(100.0)), 1.0)
    close(hg.jit(hg.grad(log1pexp))(np.float32(100.0)), 1.0)
    xs = np.array([0.5, 60.0], np.float32)
    want = 1 - 1 / (1 + np.exp(xs))
    close(hg.vmap(hg.grad(log1pexp))(xs), want, 1e-6)
    close(hg.grad(lambda x: hnp.sum(hg.vmap(log1pexp)(x)))(xs), want, 1e-6)
    close(hg.jvp(log1pexp, (xs,), (xs,))[1], want * xs, 1e-6)
    s = 1 / (1 + np.exp(-0.5))
    close(hg.grad(hg.grad(log1pexp))(np.float64(0.5)), s * (1 - s))


def _jvp_of_closed(y: Any) -> Any:
    f = hg.custom_jvp(lambda x: x * y)
    f.defjvps(lambda tangent, result, x: 7 * tangent)
    return f


def _vjp_of_closed(y: Any) -> Any:
    f = hg.custom_vjp(lambda x: x * y)
    f.defvjp(lambda x: (x * y, None), lambda residuals, cotangent: (7 * cotangent,))
    return f


def _jvp_of_plain(y: Any) -> Any:
    f = hg.custom_jvp(lambda k, x: x * k, nondiff_argnums=(0,))
    f.defjvp(lambda k, primals, tangents: (primals[0] * k, 7 * tangents[0]))
    return lambda x: f(y, x)


@pytest.mark.parametrize("closed", [_jvp_of_closed, _vjp_of_closed, _jvp_of_plain])
@pytest.mark.parametrize("derivative", [hg.grad, hg.hessian, hg.jacfwd, lambda f: hg.jit(hg.grad(f)), lambda f: hg.grad(hg.jit(f))])
@pytest.mark.parametrize(
    "use",
    [
        lambda f, y: f(y),
        lambda f, y: f(3.0),
        lambda f, y: hg.vmap(f)(hnp.ones(3)).sum(),
        lambda f, y: hg.scan(lambda c, _: (f(c), None), 1.0, None, 3)[0],
        lambda f, y: hg.cond(y > 0, f, lambda x: x, y),
        lambda f, y: hg.checkpoint(f)(y),
    ],
)
def test_derivatives_by_what_a_function_closes_over_are_refused(closed: Any, derivative: Any, use: Any) -> None:
    with pytest.raises(DifferentiationError, match="pass it as one"):
        derivative(lambda y: use(closed(y), y))(2.0)


@pytest.mark.parametrize("closed", [_jvp_of_closed, _vjp_of_closed, _jvp_of_plain])
def test_functions_may_close_over_what_is_not_differentiated(closed: Any) -> None:
    assert hg.grad(closed(2.0))(3.0) == 7.0
    assert hg.jit(lambda y: hg.grad(closed(y))(3.0))(2.0) == 7.0
    assert hg.grad(lambda x: closed(hg.stop_gradient(x))(x))(3.0) == 7.0
    assert (hg.vmap(lambda y: hg.grad(closed(y))(3.0))(hnp.ones(4)) == 7.0).all()


@hg.custom_jvp
def quotient(x: Any, y: Any) -> Any:
    return x / y


@quotient.defjvp
def _(primals: Any, tangents: Any) -> Any:
    (x, y), (t, u) = primals, tangents
    return quotient(x, y), quotient(t, y) - quotient(x * u, y * y)


def test_rules_that_call_their_functions_on_tangents() -> None:
    x, y = np.array([1.0, 2.0, 3.0]), 4.0
    assert hg.grad(quotient, (0, 1))(3.0, y) == (0.25, -3 / 16)
    close(hg.vmap(hg.grad(quotient), (0, None))(x, y), np.full(3, 0.25))
    close(hg.grad(lambda x: hg.vmap(quotient, (0, None))(x, y).sum())(x), np.full(3, 0.25))
    close(hg.grad(lambda x: hnp.sum(hg.checkpoint(quotient)(x * x, y) * x))(x), 3 * x * x / 4)
    assert hg.grad(hg.grad(lambda x: quotient(x**3, y)))(2.0) == 3.0
    assert hg.jvp(hg.grad(lambda x: quotient(x**3, y)), (2.0,), (1.0,)) == (3.0, 3.0)
    assert hg.grad(lambda x: hg.scan(lambda c, _: (quotient(c, y), None), x, None, length=2)[0])(1.0) == 1 / 16


def test_custom_jvps_by_argument() -> None:
    @hg.custom_jvp
    def f(x: Any, y: Any) -> Any:
        return hnp.sin(x) * y

    f.defjvps(lambda t, out, x, y: 10 * hnp.cos(x) * y * t, None)
    gx, gy = hg.grad(f, (0, 1))(0.3, 2.0)
    close(gx, 20 * math.cos(0.3))
    close(gy, 0.0)


def make_clipped() -> Any:
    def f(low: float, x: Any, y: Any) -> Any:
        return x * y

    clipped = hg.custom_vjp(f, nondiff_argnums=(0,))
    clipped.defvjp(lambda low, x, y: (x * y, (x, y)), lambda low, saved, c: (hnp.maximum(c * saved[1], low), None))
    return clipped


def test_custom_vjp() -> None:
    f = make_clipped()
    gx, gy = hg.grad(lambda x, y: f(-1.0, x, y) * 3.0, (0, 1))(2.0, 5.0)
    close(gx, 15.0)
    close(gy, 0.0)
    xs, y = np.array([1.0, 2.0]), -4.0
    close(hg.vmap(hg.grad(lambda x: f(-1.0, x, y)))(xs), [-1.0, -1.0])
    close(hg.jit(hg.grad(lambda x: hnp.sum(hg.vmap(lambda x: f(-1.0, x, y))(x))))(xs), [-1.0, -1.0])
    close(hg.jacfwd(hg.grad(lambda x: f(-1e9, x, 3.0) ** 2))(np.float64(2.0)), 18.0)
    with pytest.raises(DifferentiationError, match="forward mode"):
        hg.jvp(lambda x: f(0.0, x, x), (1.0,), (1.0,))
    with pytest.raises(DifferentiationError, match="forward mode"):
        hg.jacfwd(lambda x: f(0.0, x, x))(1.0)


@pytest.mark.parametrize(
    ("returned", "want"),
    [
        ({"a": 1.0, "b": None}, (1, 0, 0)),
        ({"a": None, "b": (None, 1.0)}, (0, 0, 1)),
        ({"a": None, "b": None}, (0, 0, 0)),
        (None, (0, 0, 0)),
        ({"a": 1.0, "b": (2.0, 3.0)}, (1, 2, 3)),
    ],
)
def test_none_stands_for_zeros_in_place_of_a_part_of_a_pytree(returned: Any, want: Any) -> None:
    @hg.custom_vjp
    def f(parameters: Any, x: Any) -> Any:
        return sum(map(hnp.sum, hg.tree.leaves(parameters))) * x

    backward: Any = lambda _, g: (hg.tree.map(lambda v: v * g * hnp.ones(2), returned), g)  # noqa: E731
    f.defvjp(lambda parameters, x: (f(parameters, x), None), backward)
    parameters: Any = {"a": hnp.ones(2), "b": (hnp.ones(2), hnp.ones(2)), "nothing": None}
    returned = returned and {**returned, "nothing": None}
    for gradient in (hg.grad(f, (0, 1)), hg.jit(hg.grad(f, (0, 1)))):
        found, by_x = gradient(parameters, 2.0)
        assert hg.tree.structure(found) == hg.tree.structure(parameters)
        close(hnp.stack(hg.tree.leaves(found)), np.repeat(np.array(want)[:, None], 2, axis=1))
        close(by_x, 1.0)
    for wrong in ({"a": hnp.ones(2)}, {"a": None, "b": hnp.ones(2), "nothing": None}, [None, None, None]):
        f.defvjp(lambda parameters, x: (f(parameters, x), None), lambda _, g, wrong=wrong: (wrong, g))
        with pytest.raises(ArgumentError, match="structure"):
            hg.grad(f)(parameters, 2.0)


def test_shared_arguments_of_a_stack_sum_their_cotangents() -> None:
    @hg.custom_vjp
    def f(x: Any, y: Any) -> Any:
        return x * y

    f.defvjp(lambda x, y: (x * y, (x, y)), lambda saved, c: (c * saved[1], c * saved[0]))
    xs = np.array([1.0, 2.0, 4.0])
    gx, gy = hg.grad(lambda x, y: hnp.sum(hg.vmap(f, (0, None))(x, y)), (0, 1))(xs, 3.0)
    close(gx, [3, 3, 3])
    close(gy, 7.0)


def test_rules_inside_loops() -> None:
    @hg.custom_jvp
    def square(x: Any) -> Any:
        return x * x

    square.defjvps(lambda t, out, x: 10 * x * t)

    @hg.custom_vjp
    def cube(x: Any) -> Any:
        return x**3

    cube.defvjp(lambda x: (x**3, x), lambda x, c: (c * x * x * 30,))
    x = np.float64(0.5)
    for f, want in ((square, 10**3 * 0.5**7), (cube, 30**3 * 0.5**26), (hg.checkpoint(lambda x: x * x), 8 * 0.5**7)):
        loop: Any = lambda x, f=f: hg.scan(lambda c, _: (f(c), None), x, None, length=3)[0]  # noqa: E731
        close(hg.grad(loop)(x), want)
        close(hg.jit(hg.vmap(hg.grad(loop)))(np.array([0.0, 0.5])), [0.0, want])


def test_rules_that_are_missing_or_wrong() -> None:
    with pytest.raises(DifferentiationError, match="no rule"):
        hg.grad(hg.custom_jvp(lambda x: x))(1.0)
    bad = hg.custom_jvp(lambda x: x)
    bad.defjvp(lambda p, t: p[0])
    with pytest.raises(ArgumentError, match="returns"):
        hg.grad(bad)(1.0)


# --- recomputing -----------------------------------------------------------------------------------------------------


def test_checkpoint_keeps_values_and_reaches_closures() -> None:
    x, w = np.linspace(0.1, 1.0, 5), np.float64(1.5)

    def f(c: Any) -> Any:
        def loss(w: Any, x: Any) -> Any:
            g = c(lambda x: x * w / (1.0 + x * x * w))
            return hnp.sum(g(g(x)))

        return loss

    plain, again = f(lambda g: g), f(hg.checkpoint)
    for transform in (lambda h: hg.grad(h, (0, 1)), lambda h: hg.jit(hg.grad(h, (0, 1))), lambda h: hg.hessian(h, (0, 1))):
        want, got = transform(plain)(w, x), transform(again)(w, x)
        for a, b in zip(hg.tree.leaves(want), hg.tree.leaves(got), strict=True):
            close(b, a.numpy())


def test_checkpoint_is_visible_in_the_memory_plan() -> None:
    def layer(x: Any) -> Any:
        for _ in range(4):
            x = hnp.cumsum(x / (1.0 + x * x), axis=0)
        return x

    def peak(wrap_layer: Any) -> int:
        def loss(x: Any) -> Any:
            for _ in range(4):
                x = wrap_layer(layer)(x)
            return hnp.sum(x)

        return hg.jit(hg.grad(loss)).lower(np.ones((64, 64), np.float32)).compile().memory_analysis().peak

    assert peak(hg.checkpoint) < 0.75 * peak(lambda f: f)


def test_derivatives_have_the_lines_of_what_they_derive() -> None:
    def f(x: Any) -> Any:
        y = hnp.sin(x)
        return hnp.sum(y * y)

    first = f.__code__.co_firstlineno
    graph = hg.make_graph(hg.grad(hg.checkpoint(f)))(np.ones(3))
    lines = {n.op.name: graph.lines[n][1] - first for n in graph.nodes() if n.op.name in ("cos", "mul")}
    assert lines["cos"] == 1
