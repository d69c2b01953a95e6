"""vmap against a Python loop: every row of the op table, axes, nesting, errors."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import ArgumentError, ShapeError, TracedValueError
from hologram.primitives import TABLE, Op
from hologram.trace.operators import node_of, wrap
from hologram.trace.recorder import record
from tests.support.optable import cases_of, seeded

RNG = np.random.default_rng(0)
SIZE = 3


def close(got: Any, want: Any) -> None:
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-12, atol=1e-12)


def stackable_rows() -> list[Op]:
    """All but rows whose operands are bound to each other, which shuffling would undo."""
    kinds = ("elementwise", "movement", "reduce", "scan", "gather", "scatter", "contraction")
    return [r for r in TABLE.values() if r.kind in kinds and not r.tests.get("guard")]


def some_cases(row: Op) -> Iterator[tuple[tuple[Any, ...], list[np.ndarray]]]:
    """A few cases of moderate size, of float64 where the row takes it."""
    kind = "f" if "f" in row.kinds else row.kinds[-1]
    found = [(attrs, arrays) for _, attrs, arrays in itertools.islice(cases_of(row, True), 3000) if all(a.size < 60 for a in arrays)]
    chosen = [c for c in found if c[1][0].dtype.kind == kind and c[1][0].size and c[1][0].dtype.itemsize in (1, 8)]
    step = max(1, len(chosen) // 5)
    yield from chosen[::step][:5]


@pytest.mark.costly(3)
@pytest.mark.parametrize("row", stackable_rows(), ids=lambda r: r.name)
def test_a_row_on_a_stack(row: Op) -> None:
    """Every combination of stacked and shared inputs gives what a loop gives, bit for bit but for scans and sums."""
    for attrs, arrays in some_cases(row):
        rng = seeded("stack", row.name, attrs)
        stacks = [np.stack([rng.permutation(a.ravel()).reshape(a.shape) for _ in range(SIZE)]) for a in arrays]
        choices = list(itertools.product((True, False), repeat=len(arrays)))[:-1]
        for flags in choices[:3]:
            given = [s if flag else a for s, a, flag in zip(stacks, arrays, flags, strict=True)]
            f = lambda *xs, attrs=attrs: wrap(record(row, tuple([node_of(hnp.asarray(x)) for x in xs]), attrs))  # noqa: E731
            got = hg.vmap(f, tuple(0 if flag else None for flag in flags))(*given).numpy()
            want = [row.reference(*[s[i] if flag else a for s, a, flag in zip(stacks, arrays, flags, strict=True)], *attrs) for i in range(SIZE)]
            about = f"{row.name}{attrs} {flags}"
            rtol = 0 if row.exact and row.kind not in ("reduce", "scan", "scatter", "contraction") else 1e-6
            wide = np.complex128 if got.dtype.kind == "c" else np.float64
            np.testing.assert_allclose(got.astype(wide), np.stack(want).astype(wide), rtol=rtol, atol=1e-300, err_msg=about)


# --- axes and trees --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("in_axes", [0, 1, -1, (0, None), (2, 1), [None, 0]])
@pytest.mark.parametrize("out_axes", [0, 1, -1])
def test_axes(in_axes: Any, out_axes: int) -> None:
    axes = (in_axes, in_axes) if isinstance(in_axes, int) else tuple(in_axes)
    shape = (4, 4, 4)
    x, y = RNG.standard_normal(shape), RNG.standard_normal(shape)
    got = hg.vmap(lambda x, y: x + 2 * y.sum(0), in_axes, out_axes)(x, y)

    def part(a: np.ndarray, axis: int | None, i: int) -> np.ndarray:
        return a if axis is None else a.take(i, axis)

    want = [part(x, axes[0], i) + 2 * part(y, axes[1], i).sum(0) for i in range(4)]
    close(got, np.stack(want, out_axes))


def test_trees_and_keywords() -> None:
    p = {"w": RNG.standard_normal((5, 3)), "b": RNG.standard_normal(3)}
    x = RNG.standard_normal((3, 5))

    def f(p: Any, x: Any, scale: Any) -> Any:
        return {"y": p["w"] * x[0] * scale, "both": (p["b"], x)}

    got = hg.vmap(f, ({"w": 1, "b": 0}, None), {"y": 1, "both": (0, 1)})(p, x[:, 0], scale=np.arange(3.0))
    close(got["y"], p["w"] * x[0, 0] * np.arange(3.0))
    close(got["both"][0], p["b"])
    close(got["both"][1], np.stack([x[:, 0]] * 3, 1))


def test_axis_size_and_constant_results() -> None:
    close(hg.vmap(lambda: hnp.ones(2), axis_size=4)(), np.ones((4, 2)))
    close(hg.vmap(lambda x: 3.0)(np.zeros(2)), [3.0, 3.0])


def test_vmap_of_vmap() -> None:
    x, y = RNG.standard_normal((4, 3)), RNG.standard_normal((5, 3))
    pairs = hg.vmap(hg.vmap(lambda a, b: hnp.sum(a * b), (None, 0)), (0, None))
    close(pairs(x, y), x @ y.T)
    close(hg.jit(pairs)(x, y), x @ y.T)


def test_products_of_matrices() -> None:
    a, b = RNG.standard_normal((4, 2, 3)), RNG.standard_normal((4, 3, 5))
    close(hg.vmap(hnp.matmul)(a, b), a @ b)
    close(hg.vmap(hnp.matmul, (0, None))(a, b[0]), a @ b[0])
    close(hg.vmap(lambda a: a @ a.T)(a), a @ a.transpose(0, 2, 1))


def test_indexing_by_examples() -> None:
    x, i = RNG.standard_normal((4, 6)), np.array([[0, 5], [1, 1], [3, 2], [-1, 0]])
    close(hg.vmap(lambda x, i: x[i])(x, i), np.take_along_axis(x, i % 6, 1))
    close(hg.vmap(lambda i: hnp.asarray(x[0])[i])(i), x[0][i])
    close(hg.vmap(lambda x: x[np.array([2, 0])])(x), x[:, [2, 0]])


def test_vmap_of_gradients_is_the_gradient_of_each() -> None:
    x = RNG.standard_normal((6, 4))
    loss = lambda v: hnp.sum(hnp.sin(v) * hnp.exp(-v * v))  # noqa: E731
    want = np.exp(-x * x) * (np.cos(x) - 2 * x * np.sin(x))
    close(hg.vmap(hg.grad(loss))(x), want)
    close(hg.jit(hg.vmap(hg.grad(loss)))(x), want)
    close(hg.grad(lambda x: hnp.sum(hg.vmap(loss)(x)))(x), want)
    close(hg.jit(hg.grad(lambda x: hnp.sum(hg.vmap(lambda v: hg.jvp(loss, (v,), (hnp.ones_like(v),))[1])(x))))(x).shape, x.shape)


def test_vmap_of_hessians() -> None:
    x = RNG.standard_normal((5, 3))
    want = np.stack([np.diag(6 * v) + 1 for v in x])
    close(hg.vmap(hg.hessian(lambda v: hnp.sum(v**3) + 0.5 * hnp.sum(v) ** 2))(x), want)


def test_scalars_of_each_example_spread() -> None:
    s, m = np.arange(3.0), RNG.standard_normal((2, 4))
    close(hg.vmap(lambda s: m * s + s)(s), m * s[:, None, None] + s[:, None, None])
    close(
        hg.vmap(lambda s, r: hnp.where(s > 0.5, r, s))(s, RNG.standard_normal((3, 4)) * 0 + 7), np.where(s[:, None] > 0.5, 7, s[:, None] * np.ones(4))
    )


def test_long_chains_in_a_stack() -> None:
    def f(x: Any) -> Any:
        for _ in range(1500):
            x = x * 1.0 + 0.001
        return x

    close(hg.vmap(f)(np.zeros(3)), np.full(3, 1.5))


def test_symbolic_stacks() -> None:
    g = hg.jit(hg.vmap(lambda x, y: x[::-1] * y.sum() + 1), dynamic={0: (0,), 1: (0,)})
    for n in (2, 5):
        x, y = RNG.standard_normal((n, 3)), RNG.standard_normal((n, 2))
        close(g(x, y), x[:, ::-1] * y.sum(1, keepdims=True) + 1)


# --- errors ----------------------------------------------------------------------------------------------------------

X = np.zeros((3, 2))
ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: hg.vmap(lambda x: x if x[0] > 0 else -x)(X), TracedValueError, "every example of a vmap"),
    (lambda: hg.jit(hg.vmap(lambda x: float(x[0])))(X), TracedValueError, "while tracing"),
    (lambda: hg.vmap(lambda x, y: x)(X, X[:2]), ShapeError, "extents 3 and 2"),
    (lambda: hg.vmap(lambda x: x, 2)(X), ShapeError, "in_axes 2"),
    (lambda: hg.vmap(lambda x: x, 0, 5)(X), ShapeError, "out_axes 5"),
    (lambda: hg.vmap(lambda x: x, None)(X), ArgumentError, "no argument is mapped"),
    (lambda: hg.vmap(lambda x: x, (0, 0))(X), ArgumentError, "2 entries for 1"),
    (lambda: hg.vmap(lambda x: x, ({"a": 0},))(X), ArgumentError, "does not match"),
    (lambda: hg.vmap(lambda x: x, 0, None)(X), ArgumentError, "out_axes"),
    (lambda: hg.vmap(lambda x: x, axis_size=4)(X), ShapeError, "extents 4 and 3"),
]


@pytest.mark.parametrize(("act", "kind", "message"), ERRORS)
def test_error(act: Callable[[], Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message) as caught:
        act()
    assert "test_vmap.py" in str(caught.value)
