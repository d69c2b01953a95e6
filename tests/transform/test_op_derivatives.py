"""Derivatives of every row of the op table against finite differences: forward and reverse mode, second order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram import fft, linalg, transform  # noqa: F401 - attach the rules
from hologram.control import callbacks  # noqa: F401 - likewise
from hologram.errors import TransformError
from hologram.ir.op import NoDerivative
from hologram.primitives import TABLE, Op
from hologram.primitives.host import collectives
from hologram.trace.operators import node_of, wrap
from hologram.trace.recorder import record
from tests.support.optable import cases_of, seeded

STEP = 1e-6
CONTROL = ("control", "project", "mark")
COMPLEX = [TABLE[name] for name in ("real", "imag", "complex", "conj")]  # see test_complex.py


def of_row(row: Op, attrs: tuple[Any, ...]) -> Callable[..., Any]:
    """The row as a function of Tensors."""
    return lambda *xs: wrap(record(row, tuple([node_of(hnp.asarray(x)) for x in xs]), attrs))


@pytest.mark.parametrize("row", TABLE.values(), ids=lambda r: r.name)
def test_every_row_has_a_derivative_or_says_why_not(row: Op) -> None:
    if row in (collectives.pmax, collectives.pmin):  # of which JAX has none either: a derivative raises
        assert row.jvp is None
        with pytest.raises(TransformError, match=row.name):
            hg.vmap(hg.grad(lambda x: getattr(hg.lax, row.name)(x, "i")), axis_name="i")(np.ones(3))
        return
    assert row.jvp is not None, f"{row.name} has no jvp"
    assert type(row.jvp) is not NoDerivative or row.jvp.reason


DOMAINS: dict[str, tuple[float, float]] = {
    "acosh": (1.2, 3.0), "tan": (-1.2, 1.2), "sin": (-3.0, 3.0), "cos": (-3.0, 3.0), "asin": (-0.9, 0.9), "acos": (-0.9, 0.9),
    "atanh": (-0.9, 0.9), "erfinv": (-0.9, 0.9), "log1p": (-0.9, 3.0), "cbrt": (0.2, 3.0), "reciprocal": (0.2, 3.0), "rem": (0.6, 0.9),
    "fmod": (0.6, 0.9), "rem_trunc": (0.6, 0.9), "lgamma": (0.2, 3.0), "digamma": (0.2, 3.0),
}  # fmt: skip


def smooth_values(row: Op, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    low, high = row.tests.get("low"), row.tests.get("high")
    low, high = DOMAINS.get(row.name, (0.2 if low == 0.0 else -2.0 if low is None else max(low, -2.0), 2.0 if high is None else min(high, 2.0)))
    return rng.uniform(low, high, shape)


def differentiable_rows() -> list[Op]:
    """Rows of real numbers."""
    rows = [r for r in TABLE.values() if r.kind not in (*CONTROL, "host") and r not in COMPLEX]
    return [r for r in rows if r.jvp is not None and type(r.jvp) is not NoDerivative]


def smooth_cases(row: Op) -> Iterator[tuple[tuple[Any, ...], list[np.ndarray]]]:
    """``(attrs, arrays)`` of float64 where the row is smooth; integer arrays stay as they are."""
    if row.kind == "elementwise":
        for attrs in (
            [(n,) for n in (-2, 0, 1, 2, 3, 5)]
            if row.attrs == ("n",)
            else [(1,), (3,)]
            if row.attrs == ("order",)
            else [("float64",)]
            if row.attrs == ("dtype",)
            else [()]
        ):
            for shape in ((), (3, 4)):
                rng = seeded(row.name, attrs, shape)
                arrays = [smooth_values(row, shape, rng) for _ in range(row.arity or 2)]
                yield attrs, [arrays[0] > 0, *arrays[1:]] if row.name == "select" else arrays
        return
    found = 0
    for _, attrs, arrays in cases_of(row, True):
        floats = [a for a in arrays if a.dtype.kind == "f"]
        if not floats or any(a.dtype != np.float64 or a.size > 90 for a in floats) or floats[0].size == 0:
            continue
        rng = seeded(row.name, attrs, found)
        if found % 3 == 0:
            yield attrs, [rng.uniform(0.5, 2.0, a.shape) if a.dtype.kind == "f" else a for a in arrays]
        found += 1
        if found > 36:
            return


def differences(f: Callable[..., np.ndarray], arrays: list[np.ndarray], tangents: list[np.ndarray | None]) -> np.ndarray:
    """The central difference of a NumPy function in a direction."""

    def at(step: float) -> np.ndarray:
        return f(*[a if t is None else a + step * t for a, t in zip(arrays, tangents, strict=True)])

    return (at(STEP) - at(-STEP)) / (2 * STEP)


@pytest.mark.parametrize("row", differentiable_rows(), ids=lambda r: r.name)
def test_forward_and_reverse_mode_of_a_row(row: Op) -> None:
    """jvp against differences of the reference; then <u, J v> = <J' u, v>."""
    for attrs, arrays in smooth_cases(row):
        rng = seeded("direction", row.name, attrs)
        active = [i for i, a in enumerate(arrays) if a.dtype.kind == "f"]
        tangents = [rng.standard_normal(a.shape) if i in active else None for i, a in enumerate(arrays)]

        def f(*xs: Any, arrays: list[np.ndarray] = arrays, attrs: Any = attrs) -> Any:
            values: list[Any] = list(arrays)
            for i, x in zip([i for i, a in enumerate(arrays) if a.dtype.kind == "f"], xs, strict=True):
                values[i] = x
            return of_row(row, attrs)(*values)

        primals = [arrays[i] for i in active]
        directions = [tangents[i] for i in active]
        _, forward = hg.jvp(f, primals, directions)
        want = differences(lambda *xs, attrs=attrs: row.reference(*xs, *attrs), arrays, tangents)
        about = f"{row.name}{attrs} {[a.shape for a in arrays]}"
        np.testing.assert_allclose(forward.numpy(), want, rtol=2e-6, atol=2e-7, err_msg=about)
        out, pull = hg.vjp(f, *primals)
        u = rng.standard_normal(out.shape)
        back = pull(u)
        product = sum(np.sum(b.numpy() * t) for b, t in zip(back, directions, strict=True))
        np.testing.assert_allclose(np.sum(u * forward.numpy()), product, rtol=1e-9, atol=1e-10, err_msg=about)


@pytest.mark.costly(2)
@pytest.mark.parametrize("row", [r for r in differentiable_rows() if r.transpose is None or r.kind == "elementwise"], ids=lambda r: r.name)
def test_second_order_of_a_row(row: Op) -> None:
    """The derivative of the gradient, forward over reverse and reverse over reverse, against differences of the gradient."""
    for attrs, arrays in list(smooth_cases(row))[1:3]:
        active = [i for i, a in enumerate(arrays) if a.dtype.kind == "f"]
        rng = seeded("second", row.name, attrs)
        weights = rng.standard_normal(row.reference(*arrays, *attrs).shape)

        def loss(*xs: Any, arrays: list[np.ndarray] = arrays, attrs: Any = attrs, active: list[int] = active, weights: Any = weights) -> Any:
            values: list[Any] = list(arrays)
            for i, x in zip(active, xs, strict=True):
                values[i] = x
            y = of_row(row, attrs)(*values)
            return hnp.sum(y * y * weights)

        argnums = tuple(range(len(active)))
        gradient = hg.grad(loss, argnums)
        primals = [arrays[i] for i in active]
        directions = [rng.standard_normal(a.shape) for a in primals]
        plus, minus = (gradient(*[p + s * d for p, d in zip(primals, directions, strict=True)]) for s in (STEP, -STEP))
        want = [(a.numpy() - b.numpy()) / (2 * STEP) for a, b in zip(plus, minus, strict=True)]
        _, forward = hg.jvp(gradient, primals, directions)
        _, pull = hg.vjp(gradient, *primals)
        reverse = pull(tuple(directions))  # the Hessian is symmetric
        for w, a, b in zip(want, forward, reverse, strict=True):
            np.testing.assert_allclose(a.numpy(), w, rtol=1e-5, atol=1e-6, err_msg=f"{row.name}{attrs}")
            np.testing.assert_allclose(b.numpy(), a.numpy(), rtol=1e-8, atol=1e-9, err_msg=f"{row.name}{attrs}")
