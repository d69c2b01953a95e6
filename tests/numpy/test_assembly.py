"""NumPy's smaller names, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import ArgumentError, ShapeError, TracedValueError

X = np.random.default_rng(0).standard_normal((4, 6))
HOLES = np.where(X > 1, np.nan, X)

CASES: dict[str, Callable[[Any], Any]] = {
    "splits": lambda xp: [*xp.hsplit(X, 3), *xp.vsplit(X, [1, 3]), *xp.dsplit(X.reshape(4, 3, 2), 2), *xp.hsplit(X[0], 2)],
    "delete": lambda xp: [xp.delete(X, 1, 0), xp.delete(X, [0, -1], 1), xp.delete(X, slice(1, 3), 1), xp.delete(X, 5)],
    "insert": lambda xp: [xp.insert(X, 1, 9.0, axis=0), xp.insert(X, [0, 3], 5.0, axis=1), xp.insert(X[0], 2, np.array([1.0, 2.0]))],
    "diagonals": lambda xp: [xp.diag(X, 1), xp.diag(X[0]), xp.diag(X[0], -2), xp.diag(X[0], 2), xp.diagflat(X[:2, :2])],
    "products": lambda xp: [xp.kron(X, X[:2]), xp.kron(X[0], X), xp.cross(X[:, :3], X[:, 3:]), xp.vdot(X, X)],
    "grids": lambda xp: [xp.indices((2, 3)), *xp.ix_([0, 2], [1, 3]), *xp.diag_indices(3), *xp.tril_indices(3), *xp.triu_indices(3, 1, 4)],
    "places": lambda xp: [*xp.unravel_index(np.array([5, 11]), (3, 4)), xp.ravel_multi_index((np.array([1, 2]), np.array([1, 3])), (3, 4))],
    "select": lambda xp: xp.select([X > 1, X > 0], [X, X * 2], -1.0),
    "choose": lambda xp: xp.choose(np.array([0, 2, 1, 5]), [X[:, 0], X[:, 1], X[:, 2]], mode="clip"),
    "extremes": lambda xp: [xp.fmax(HOLES, 0.5), xp.fmin(0.5, HOLES)],
    "roundings": lambda xp: [xp.fix(X * 3), xp.fabs(X), *xp.modf(np.array([1.5, -2.25, -0.0, np.inf]))],
    "powers": lambda xp: [xp.float_power(np.abs(X), 1.5), xp.logaddexp2(X, 1.0)],
    "infinities": lambda xp: [xp.isposinf(np.array([np.inf, -np.inf, 1.0])), xp.isneginf(np.array([np.inf, -np.inf, 1.0]))],
    "spaces": lambda xp: [xp.logspace(0, 2, 5, dtype=np.float64), xp.geomspace(1, 16, 5, dtype=np.float64)],
    "from a function": lambda xp: xp.fromfunction(lambda i, j: i * 2 + j, (3, 4), dtype=np.float64),
    "equivalence": lambda xp: [xp.array_equiv(X, X), xp.array_equiv(X[:1], X), xp.array_equiv(X, X[:, :2]), xp.ndim(X)],
}


@pytest.mark.parametrize("name", CASES)
def test_as_numpy(name: str) -> None:
    got, want = CASES[name](hnp), CASES[name](np)
    for g, w in zip(*[v if isinstance(v, list) else [v] for v in (got, want)], strict=True):
        assert np.shape(g) == np.shape(w)
        np.testing.assert_allclose(g, w, rtol=1e-12)


@pytest.mark.parametrize(
    ("error", "work"),
    [
        (ShapeError, lambda: hnp.cross(X, X)),
        (ShapeError, lambda: hnp.diag(X.reshape(2, 2, 6))),
        (ArgumentError, lambda: hnp.select([X > 0], [])),
        (ArgumentError, lambda: hnp.choose(np.array([0]), [X], mode="raise")),
    ],
)
def test_errors(error: Any, work: Any) -> None:
    with pytest.raises(error):
        work()


def test_spaces_between_ends_that_have_none() -> None:
    """NaN or infinity, and no warning of NumPy's."""
    assert np.isnan(hnp.geomspace(-1, 5, 4).numpy()[1:-1]).all()
    assert hnp.logspace(0, 400, 3, dtype="float64").numpy()[-1] == np.inf


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_insertion_before_traced_indices(axis: int | None) -> None:
    """The size follows from how many indices there are; those out of range are clamped, as those of a gather."""
    x = np.arange(6.0).reshape(2, 3)
    n = 6 if axis is None else x.shape[axis]
    made = hg.jit(lambda x, i: hnp.insert(x, i, 9.0, axis=axis))
    for i in (0, 1, -1, n, -n):
        np.testing.assert_array_equal(made(x, i), np.insert(x, i, 9.0, axis=axis))
        np.testing.assert_array_equal(made(x, hnp.asarray([i, 0, i])), np.insert(x, [i, 0, i], 9.0, axis=axis))
    np.testing.assert_array_equal(made(x, 99), np.insert(x, n, 9.0, axis=axis))
    np.testing.assert_array_equal(made(x, -99), np.insert(x, 0, 9.0, axis=axis))
    np.testing.assert_array_equal(made(x, hnp.asarray(1, dtype="uint8")), np.insert(x, 1, 9.0, axis=axis))
    several = hg.jit(lambda x, i: hnp.insert(x.reshape(-1), i, [7.0, 8.0]))
    np.testing.assert_array_equal(several(x, 2), np.insert(x, 2, [7.0, 8.0]))
    np.testing.assert_array_equal(several(x, hnp.asarray([3, 2])), np.insert(x, [3, 2], [7.0, 8.0]))
    each = hg.vmap(lambda i: hnp.insert(x, i, 9.0, axis=axis))(hnp.arange(2))
    np.testing.assert_array_equal(each, [np.insert(x, i, 9.0, axis=axis) for i in range(2)])
    with pytest.raises(TracedValueError, match="mask|depends on the indices"):
        hg.jit(lambda x, m: hnp.insert(x, m, 9.0))(x, hnp.asarray([True, False]))
