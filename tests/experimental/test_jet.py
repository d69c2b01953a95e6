"""Taylor mode beside nested derivatives."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import ArgumentError
from hologram.experimental.jet import jet

R = np.random.default_rng(3)
W, V = R.normal(size=(5, 3)), R.normal(size=(2, 5))
ORDER = 5


@hg.custom_jvp
def softly(x: Any) -> Any:
    return hnp.log1p(hnp.exp(x))


softly.defjvp(lambda primals, tangents: (softly(*primals), tangents[0] / (1 + hnp.exp(-primals[0]))))

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "network": lambda x: hnp.tanh(V @ hnp.tanh(W @ x)),
    "quotients": lambda x: hnp.exp(x) / (1 + x**2) + hnp.sqrt(4 + hnp.sin(x)),
    "powers": lambda x: (2 + x**2) ** 1.7 * hnp.arctan(x) ** 3,
    "special": lambda x: hg.special.erf(x) + hg.nn.softplus(x) + hg.special.gammaln(3 + x * x),
    "linear algebra": lambda x: hg.linalg.solve(hnp.eye(3) * 5 + hnp.outer(x, x), hnp.cos(x)),
    "loop": lambda x: hg.lax.scan(lambda c, v: (hnp.sin(c) * v + c, c * v), x, hnp.arange(3.0))[0],
    "branch": lambda x: hg.lax.cond(x.sum() > 100, hnp.cos, lambda v: v * hnp.exp(v), x),
    "custom": lambda x: softly(x) * x,
    "reductions": lambda x: hnp.sum(hnp.sort(x) * x[::-1]) + hnp.max(x) * hnp.prod(x),
    "linear": lambda x: 3 * x + x[::-1],
    "constant": lambda x: x * 0 + hnp.ones(3),
    "batch": lambda x: hg.vmap(lambda a: a * hnp.exp(a))(x),
}


def along(f: Callable[[Any], Any], x: np.ndarray, series: list[np.ndarray]) -> list[Any]:
    """Derivatives of ``f`` along the curve by the parameter, by nested forward mode."""

    def curve(t: Any) -> Any:
        return f(x + sum(s * t ** (k + 1) / math.factorial(k + 1) for k, s in enumerate(series)))

    found, g = [], curve
    for _ in series:
        g = (lambda h: lambda t: hg.jvp(h, (t,), (hnp.ones_like(t),))[1])(g)
        found.append(np.asarray(g(hnp.asarray(np.float64(0)))))
    return found


@pytest.mark.parametrize("name", FUNCTIONS)
def test_beside_nested_derivatives(name: str) -> None:
    f, order = FUNCTIONS[name], 3 if name in ("linear algebra", "special", "loop") else ORDER
    x, series = R.normal(size=3), [R.normal(size=3) for _ in range(order)]
    value, found = hg.jit(lambda x, s: jet(f, (x,), (s,)))(x, series)
    np.testing.assert_allclose(value, f(x), rtol=1e-12)
    wanted = along(f, x, series)
    for got, exact in zip(found, wanted, strict=True):
        np.testing.assert_allclose(got, exact, rtol=1e-9, atol=1e-9 * max(1.0, np.abs(exact).max()))


def test_pytrees_and_taylor_coefficients() -> None:
    def f(p: Any, y: Any) -> Any:
        return {"product": p["a"] * y, "sum": [p["a"] + y]}

    a = [{"a": 1.0}, {"a": 2.0}, {"a": 0.5}]
    value, found = jet(f, ({"a": 2.0}, 3.0), (a, [1.0, 0.0, 0.0]))
    assert float(value["product"]) == 6.0
    assert [float(x) for x in found["product"]] == [5.0, 8.0, 7.5]
    assert [float(x) for x in found["sum"][0]] == [2.0, 2.0, 0.5]
    coefficients = [{"a": x["a"] / math.factorial(k)} for k, x in enumerate(a, 1)]
    _, found = jet(f, ({"a": 2.0}, 3.0), (coefficients, [1.0, 0.0, 0.0]), factorial_scaled=False)
    assert [float(x) for x in found["product"]] == [5.0, 4.0, 1.25]
    assert jet(hnp.sin, (1.0,), ([],))[1] == []


def test_high_orders_grow_slowly() -> None:
    """Of a chain of products and functions the graph of all orders is polynomial in the order."""
    _, found = hg.jit(lambda x: jet(lambda x: hnp.tanh(x) * hnp.exp(hnp.sin(x)) / (2 + x), (x,), ([1.0] + [0.0] * 11,)))(np.float64(0.3))
    assert len(found) == 12
    assert np.isfinite([float(x) for x in found]).all()


def test_derivatives_and_batches_of_jets() -> None:
    second = lambda x: jet(lambda v: v**4, (x,), ([1.0, 0.0],))[1][1]  # noqa: E731
    assert float(hg.grad(second)(2.0)) == pytest.approx(48.0)
    np.testing.assert_allclose(hg.vmap(second)(np.array([1.0, 2.0])), [12.0, 48.0])


def test_arguments_that_do_not_fit() -> None:
    with pytest.raises(ArgumentError, match="one list"):
        jet(hnp.add, (1.0, 2.0), ([1.0],))
    with pytest.raises(ArgumentError, match="as many orders"):
        jet(hnp.add, (1.0, 2.0), ([1.0], [1.0, 2.0]))
    with pytest.raises(ArgumentError):
        jet(hnp.sin, (hnp.ones(3),), ([hnp.ones(2)],))
