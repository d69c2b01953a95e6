"""Transforms in one another: random compositions against nested dual numbers, and the corners of their arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import hypothesis
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import ArgumentError, DifferentiationError

X = np.array([0.3, -1.2, 2.0])


def close(got: Any, want: Any, rtol: float = 1e-9, atol: float = 1e-10) -> None:
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=rtol, atol=atol)


# --- random compositions ---------------------------------------------------------------------------------------------


class Dual:
    """A value with its derivative in one direction; both may be duals of the level around it. What a composition means, in a few lines."""

    __array_ufunc__ = None

    def __init__(self, value: Any, tangent: Any) -> None:
        self.value, self.tangent = value, tangent

    def __add__(self, other: Any) -> Dual:
        v, t = parts(other)
        return Dual(self.value + v, self.tangent + t)

    def __mul__(self, other: Any) -> Dual:
        v, t = parts(other)
        return Dual(self.value * v, self.tangent * v + self.value * t)

    __radd__, __rmul__ = __add__, __mul__


def parts(x: Any) -> tuple[Any, Any]:
    return (x.value, x.tangent) if isinstance(x, Dual) else (x, 0.0)


def plain(x: Any) -> np.ndarray:
    return plain(x.value) if isinstance(x, Dual) else x


class Reference:
    """The functions that programs are made of, and the transforms, on NumPy arrays and duals."""

    def linear(self, f: Callable[[np.ndarray], Any], x: Any) -> Any:
        return Dual(self.linear(f, x.value), self.linear(f, x.tangent)) if isinstance(x, Dual) else f(x)

    def sin(self, x: Any) -> Any:
        return Dual(self.sin(x.value), self.cos(x.value) * x.tangent) if isinstance(x, Dual) else np.sin(x)

    def cos(self, x: Any) -> Any:
        return Dual(self.cos(x.value), -1.0 * self.sin(x.value) * x.tangent) if isinstance(x, Dual) else np.cos(x)

    def exp(self, x: Any) -> Any:
        return Dual(self.exp(x.value), self.exp(x.value) * x.tangent) if isinstance(x, Dual) else np.exp(x)

    def sum(self, x: Any) -> Any:
        return self.linear(np.sum, x)

    def roll(self, x: Any) -> Any:
        return self.linear(lambda v: np.roll(v, 1), x)

    def slope(self, g: Any, x: Any, direction: Any) -> Any:
        return parts(g(Dual(x, direction)))[1]


REFERENCE = Reference()


COMPILED = SimpleNamespace(sin=hnp.sin, cos=hnp.cos, exp=hnp.exp, sum=hnp.sum, roll=lambda x: hnp.roll(x, 1))

Program = Callable[[Any, Any], Any]  # of the namespace and a vector: a number
PROGRAMS: list[Program] = [
    lambda xp, x: xp.sum(xp.sin(x) * xp.roll(x)),
    lambda xp, x: xp.sum(xp.exp(x * x * -0.5) * x),
    lambda xp, x: xp.sum(x * xp.roll(x)) * xp.sum(xp.cos(x)),
    lambda xp, x: xp.sin(xp.sum(x * x) * 0.3) + xp.sum(x * x * x) * 0.1,
]

W = np.array([0.7, -0.4, 0.2])
Scalar = Callable[[Any], Any]  # of a vector: a number
DIRECTIONAL: list[Callable[[Scalar, Any, Any], Any]] = [  # g, x and a direction: ways to the one derivative
    lambda g, x, w: hg.jvp(g, (x,), (w,))[1],
    lambda g, x, w: hnp.sum(hg.grad(g)(x) * w),
    lambda g, x, w: hnp.sum(hg.vjp(g, x)[1](1.0)[0] * w),
    lambda g, x, w: hg.linearize(g, x)[1](w),
    lambda g, x, w: hg.jacfwd(g)(x) @ w,
    lambda g, x, w: hg.jacrev(g)(x) @ w,
    lambda g, x, w: hnp.sum(hg.jit(hg.grad(g))(x) * w),
    lambda g, x, w: hg.vmap(lambda t: hg.jvp(g, (x,), (t,))[1])(hnp.stack([w, w * 2.0]))[0],
    lambda g, x, w: hnp.sum(hg.vmap(hg.grad(g))(hnp.stack([x * 2.0, x]))[1] * w),
]


def with_own_jvp(g: Scalar) -> Scalar:
    made = hg.custom_jvp(g)
    made.defjvp(lambda primals, tangents: hg.jvp(g, primals, tangents))
    return made


AS_THEY_WERE: list[Callable[[Scalar], Scalar]] = [hg.jit, hg.checkpoint, with_own_jvp, lambda g: lambda x: hg.cond(True, g, lambda x: 0.0 * g(x), x)]


def differentiated(f: Scalar, meaning: Scalar, way: Any, direction: np.ndarray | None) -> tuple[Scalar, Scalar]:
    """In the direction of ``direction``, or of the argument itself for None."""
    if direction is None:
        return lambda x: way(f, x, x), lambda x: REFERENCE.slope(meaning, x, x)
    return lambda x: way(f, x, hnp.asarray(direction)), lambda x: REFERENCE.slope(meaning, x, direction)


def in_a_loop(f: Scalar, meaning: Scalar) -> tuple[Scalar, Scalar]:
    start, factors = np.float64(0.0), np.array([1.0, 1.5])
    return lambda x: hg.scan(lambda c, a: (c + f(x * a), None), start, factors)[0], lambda x: meaning(x) + meaning(x * 1.5)


def in_a_branch(f: Scalar, meaning: Scalar) -> tuple[Scalar, Scalar]:
    return (
        lambda x: hg.cond(x[0] > 0, lambda x: f(x) * 2.0, lambda x: f(x * x), x),
        lambda x: meaning(x) * 2.0 if plain(x)[0] > 0 else meaning(x * x),
    )


def in_a_stack(f: Scalar, meaning: Scalar) -> tuple[Scalar, Scalar]:
    return lambda x: hnp.sum(hg.vmap(f)(hnp.stack([x, x * 0.5]))), lambda x: meaning(x) + meaning(x * 0.5)


@st.composite
def compositions(draw: Any) -> tuple[Scalar, Scalar]:
    """A function and its meaning: up to three derivatives, in any of the ways to them, amid transforms that change nothing, loops and branches."""
    program = draw(st.sampled_from(PROGRAMS))
    pair: tuple[Scalar, Scalar] = functools.partial(program, COMPILED), functools.partial(program, REFERENCE)
    derivatives = 0
    for kind in draw(st.lists(st.sampled_from(["derivative", "derivative", "along x", "same", "loop", "branch", "stack"]), min_size=1, max_size=5)):
        if kind == "same":
            pair = draw(st.sampled_from(AS_THEY_WERE))(pair[0]), pair[1]
        elif kind in ("derivative", "along x"):
            derivatives += 1
            if derivatives <= 3:
                pair = differentiated(*pair, draw(st.sampled_from(DIRECTIONAL)), W if kind == "derivative" else None)
        else:
            pair = {"loop": in_a_loop, "branch": in_a_branch, "stack": in_a_stack}[kind](*pair)
    return pair


@hypothesis.settings(max_examples=hypothesis.settings().max_examples * 2 // 5)
@given(compositions(), st.integers(0, 2**32 - 1), st.booleans())
def test_random_compositions(pair: tuple[Scalar, Scalar], seed: int, jitted: bool) -> None:
    f, meaning = pair
    x = np.random.default_rng(seed).uniform(-1, 1, 3)
    want = meaning(x)
    close((hg.jit(f) if jitted else f)(x), want, 1e-8, 1e-8 * (1 + abs(float(want))))


# --- arguments -------------------------------------------------------------------------------------------------------


def test_results_that_no_example_changes_are_given_once() -> None:
    m = np.arange(12.0).reshape(3, 4)
    doubled, shared = hg.vmap(lambda x: (x * 2, hnp.ones(2) + 1), out_axes=(0, None))(m)
    close(doubled, m * 2)
    close(shared, [2.0, 2.0])
    with pytest.raises(ArgumentError, match="depends on the example"):
        hg.vmap(lambda x: x, out_axes=None)(m)
    with pytest.raises(ArgumentError, match="in_axes True"):
        hg.vmap(lambda x: x, in_axes=True)(m)


def test_auxiliary_values_come_in_a_pair() -> None:
    for transform in (hg.grad, hg.value_and_grad, hg.jacfwd, hg.jacrev):
        with pytest.raises(ArgumentError, match=r"has_aux the function returns \(result, aux\)"):
            transform(lambda x: hnp.stack([x[0], x[1]]), has_aux=True)(X)
    (value, (aux, nothing)), slope = hg.value_and_grad(lambda x: (hnp.sum(x * x), (x + 1, None)), has_aux=True)(X)
    close(value, np.sum(X * X))
    close(aux, X + 1)
    close(slope, 2 * X)
    assert nothing is None


def test_an_argument_is_named_once() -> None:
    with pytest.raises(ArgumentError, match="name an argument twice"):
        hg.grad(lambda x, y: x * y, argnums=(0, -2))(1.0, 2.0)


def test_functions_of_no_arrays() -> None:
    assert hg.jacfwd(lambda x: hnp.ones(3))(()) == ()
    assert hg.jacrev(lambda x: hnp.ones(3))(()) == ()
    assert hg.grad(lambda x: hnp.asarray(2.0))({}) == {}


def test_rules_of_ones_own_take_keywords_and_defaults_by_position() -> None:
    @hg.custom_jvp
    def f(x: Any, y: Any, scale: Any = 2.0) -> Any:
        return x * y * scale

    @f.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        (x, y, scale), (t, _, _) = primals, tangents
        return x * y * scale, 10 * t * y * scale

    close(hg.grad(lambda x: f(x, y=3.0))(np.float64(1.0)), 60.0)
    close(hg.grad(lambda x: f(y=3.0, scale=1.0, x=x))(np.float64(1.0)), 30.0)
    close(hg.jit(lambda x: f(x, y=3.0))(np.float64(1.0)), 6.0)
    with pytest.raises(ArgumentError, match="custom_jvp: f: missing a required argument: 'y'"):
        hg.grad(lambda x: f(x))(1.0)

    @hg.custom_vjp
    def g(x: Any, *, scale: Any = 2.0) -> Any:
        return x * scale

    g.defvjp(lambda x: (x, None), lambda saved, c: (c,))
    with pytest.raises(ArgumentError, match="takes scale by keyword only"):
        hg.grad(lambda x: g(x))(1.0)


# --- loops -----------------------------------------------------------------------------------------------------------


def test_bounds_of_numpys_integers_are_known() -> None:
    power = lambda x: hg.fori_loop(np.int64(0), np.int32(3), lambda i, c: c * x, x)  # noqa: E731
    close(hg.grad(power)(np.float64(2.0)), 32.0)


@pytest.mark.parametrize(("low", "high", "dtype"), [(0, 3, "int64"), (np.int32(0), 3, "int32"), (np.int32(0), np.int64(3), "int64")])
def test_counters_have_the_type_of_the_bounds(low: Any, high: Any, dtype: str) -> None:
    count = lambda low, high: hg.fori_loop(low, high, lambda i, c: i, np.asarray(0, dtype))  # noqa: E731
    for found in (count(low, high), count(hnp.asarray(low), high), hg.jit(count)(low, high)):
        assert str(found.dtype) == (dtype if np.ndim(low) or type(low) is not int else "int64") and int(found) == 2


def test_scan_takes_a_list_of_two() -> None:
    last, every = hg.scan(cast(Any, lambda c, x: [c + x, c]), np.float64(0.0), X)
    close(last, X.sum())
    close(every, [0.0, 0.3, -0.9])


def test_reverse_mode_through_a_while_loop_that_leaves_the_value_alone() -> None:
    def f(x: Any) -> Any:
        _, kept = hg.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1]), (0, x * x))
        return x * kept

    close(hg.grad(f)(np.float64(2.0)), 12.0)
    close(hg.hessian(f)(np.float64(2.0)), 12.0)
    both = lambda x: hg.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1], c[2] * c[1]), (0, x, np.float64(1.0)))  # noqa: E731
    close(hg.jvp(lambda x: both(x)[1:], (np.float64(2.0),), (np.float64(1.0),))[1], [1.0, 12.0])
    with pytest.raises(DifferentiationError, match="while_loop has no derivative in reverse mode"):
        hg.grad(lambda x: both(x)[2])(np.float64(2.0))


# --- smooth functions written in pieces, and grids -------------------------------------------------------------------


@pytest.mark.parametrize("name", ["logaddexp", "logaddexp2"])
def test_logarithms_of_sums_at_the_edges(name: str) -> None:
    """Values as NumPy's; the slopes are shares: of the larger one, of infinities of one sign half each, of no number NaN."""
    ends = np.array([-np.inf, -800.0, -1.0, 0.0, 1.0, 800.0, np.inf, np.nan])
    x, y = (g.ravel() for g in np.meshgrid(ends, ends))
    with np.errstate(invalid="ignore"):
        want = getattr(np, name)(x, y)
        base = 2.0 if name == "logaddexp2" else np.e
        apart = np.where(x == y, 0.0, x - y)
    np.testing.assert_allclose(getattr(hnp, name)(x, y), want, rtol=1e-15, atol=1e-16)
    shares = hg.jit(hg.vmap(hg.grad(getattr(hnp, name), (0, 1))))(x, y)
    with np.errstate(over="ignore"):
        close(shares[0], 1 / (1 + base**-apart))
        close(shares[1], 1 / (1 + base**apart))


def derivatives_at_0(f: Any, orders: int) -> list[float]:
    found = []
    for _ in range(orders):
        f = hg.grad(f)
        found.append(float(f(np.float64(0.0))))
    return found


def test_smooth_functions_keep_their_derivatives_where_the_pieces_meet() -> None:
    """By series: softplus is log 2 + x/2 + x²/8 - x⁴/192, sinc is 1 - (πx)²/3! + (πx)⁴/5!."""
    close(derivatives_at_0(hg.nn.softplus, 4), [1 / 2, 1 / 4, 0, -1 / 8])
    close(derivatives_at_0(lambda x: hnp.logaddexp(3 * x, x), 2), [2.0, 1.0])
    close(derivatives_at_0(lambda x: hnp.logaddexp2(3 * x, x), 2), [2.0, np.log(2.0)])
    close(derivatives_at_0(hnp.sinc, 4), [0, -(np.pi**2) / 3, 0, np.pi**4 / 5])
    x = np.linspace(-1, 1, 12).reshape(4, 3)
    close(hg.hessian(lambda w: hnp.sum(hg.nn.softplus(x @ w)))(np.zeros(3)), x.T @ x / 4)


def test_the_ends_of_grids_have_derivatives() -> None:
    a = np.float64(1.3)
    for jit in (lambda f: f, hg.jit):
        close(jit(hg.jacrev(lambda a: hnp.linspace(a, 2 * a, 4)))(a), [1, 4 / 3, 5 / 3, 2])
        close(jit(hg.jacfwd(lambda a: hnp.linspace(0, a, 4, endpoint=False)))(a), [0, 1 / 4, 1 / 2, 3 / 4])
        close(jit(hg.jacrev(lambda a: hnp.geomspace(a, 2 * a, 3)))(a), [1, np.sqrt(2), 2])
        want = np.log(10) * np.array([1, 1.5, 2]) * np.logspace(a, 2 * a, 3)
        close(jit(hg.jacrev(lambda a: hnp.logspace(a, 2 * a, 3)))(a), want)
    close(hg.jit(lambda a: hnp.linspace(a, 7, 5))(np.float64(-1.0)), np.linspace(-1, 7, 5))
    close(hg.jacfwd(lambda a: hnp.linspace(a, 2 * a, 3, axis=-1))(np.ones(2))[..., 0], [[1, 1.5, 2], [0, 0, 0]])
