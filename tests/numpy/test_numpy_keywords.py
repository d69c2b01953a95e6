"""Keywords of NumPy's functions that code written for NumPy passes: those that say nothing of values, and those that do."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import ArgumentError, DTypeError
from hologram.numpy.numpy_keywords import KEYWORDS
from hologram.trace import tree

X = np.array([[3.0, 1.0, 2.0], [6.0, np.nan, 5.0]])
F = np.array([0.0, 1.0, 15.6, 27.0, 343.0])
CALLS: list[Callable[..., Any]] = [
    lambda xp, x: xp.sum(x, out=None),
    lambda xp, x: xp.max(x, axis=1, out=None),
    lambda xp, x: xp.sort(x[0], kind="stable"),
    lambda xp, x: xp.argsort(x[0], kind="mergesort", order=None),
    lambda xp, x: xp.ravel(x, order="C"),
    lambda xp, x: xp.reshape(x, (3, 2), order="C"),
    *[lambda xp, x, o=o: xp.ravel(x, order=o) for o in "FAK"],
    *[lambda xp, x, o=o: xp.reshape(x, (3, -1), order=o) for o in "FA"],
    lambda xp, x: xp.reshape(x, -1, order="F"),
    lambda xp, x: xp.reshape(x[:, :2], (1, 2, 2, 1), order="F"),
    lambda xp, x: x.flatten("F"),
    lambda xp, x: x.ravel("F"),
    lambda xp, x: x.ravel(order="F"),
    lambda xp, x: x.reshape(3, 2, order="F"),
    lambda xp, x: x.T.reshape((2, -1), order="F"),
    lambda xp, x: np.ravel(x, order="F"),
    lambda xp, x: np.reshape(x, (3, 2), "F"),
    lambda xp, x: xp.stack(xp.unravel_index(xp.asarray([1, 4, 5]), (2, 3), order="F")),
    lambda xp, x: xp.ravel_multi_index((xp.asarray([1, 0]), xp.asarray([2, 1])), (2, 3), order="F"),
    lambda xp, x: xp.copy(x, order="K"),
    lambda xp, x: xp.quantile(x[0], q=0.3),
    lambda xp, x: xp.percentile(x[0], q=[10, 30], out=None, overwrite_input=False),
    lambda xp, x: xp.nanmean(x, dtype=np.float32, out=None),
    lambda xp, x: xp.nanvar(x, axis=0, dtype=np.float64),
    lambda xp, x: xp.nanstd(x, dtype=np.float32),
    lambda xp, x: xp.gradient(x[0], edge_order=2),
    lambda xp, x: xp.gradient(F, np.array([0.0, 1.0, 2.5, 3.0, 7.0]), edge_order=2),
    lambda xp, x: xp.gradient(F, 0.5, edge_order=1),
    lambda xp, x: xp.asarray([1.0, 2.0], dtype=np.float64, order="C"),
    lambda xp, x: xp.zeros_like(x, order="K", subok=True),
    lambda xp, x: xp.full((2, 2), 3.0, dtype=np.float64, order="F"),
    lambda xp, x: xp.take(x, indices=[0, 2], axis=1),
    lambda xp, x: xp.repeat(x, repeats=2, axis=0),
    lambda xp, x: x.astype(dtype=np.float32),
    lambda xp, x: x.astype(np.float32, order="C", copy=False),
    lambda xp, x: x.sum(axis=0, out=None),
    lambda xp, x: x.copy(order="C"),
    lambda xp, x: x.flatten("C"),
    lambda xp, x: x.ravel(order="C"),
    lambda xp, x: x.reshape((3, 2), order="C"),
]


@pytest.mark.parametrize("call", CALLS)
def test_as_numpy(call: Callable[..., Any]) -> None:
    want = call(np, X)
    got = call(hnp, hg.tensor(X))
    np.testing.assert_allclose(got, want, rtol=1e-6 if want.dtype == np.float32 else 1e-12)
    assert got.dtype == want.dtype and type(got) is hg.Tensor
    np.testing.assert_array_equal(hg.jit(lambda x: call(hnp, x))(X), got)


def test_what_says_something_of_values_is_refused() -> None:
    x = hg.tensor(X)
    for act in (
        lambda: hnp.sum(x, out=np.zeros(())),  # type: ignore[call-arg]
        lambda: hnp.sort(x, kind="other"),  # type: ignore[call-arg]
        lambda: hnp.sort(x, order="field"),  # type: ignore[call-arg]
        lambda: x.ravel(order="B"),
        lambda: hnp.unravel_index([1], (2, 2), order="K"),
        lambda: hnp.gradient(X[0], edge_order=3),
    ):
        with pytest.raises(ArgumentError, match="out=|kind=|order=|order is|edge_order"):
            act()


def test_every_name_is_there() -> None:
    for name in KEYWORDS:
        assert hasattr(hnp, name) and hasattr(np, name) or name == "astype", name


KNOTS, V = np.array([0.5, 3.0, 1.0, 2.2]), np.array([1.0, -2.0, 0.5, np.nan])
COUNTS, SHARES = np.array([1, 2, 1, 3]), np.array([0.5, 1.0, 2.0, 0.1])
ROWS = np.array([[1.0, 2.0, 4.0, 8.0], [3.0, -1.0, 0.5, 2.0]])
MATRICES = np.arange(24.0).reshape(2, 3, 4) ** 2 + np.eye(3, 4)
SQUARE = np.array([[2.0, 1.0, 0.0], [5.0, 3.0, 1.0], [7.0, 8.0, 4.0]])
OPTIONS: dict[str, Any] = {
    "array_equal": lambda xp, a: [xp.array_equal(a(V), a(V), equal_nan=True), xp.array_equal(a(V), a(KNOTS), True)],
    "interp": lambda xp, a: [xp.interp(a(ROWS), a(KNOTS), a(SHARES), period=p) for p in (2.5, -4.0, 1)],
    "concatenate": lambda xp, a: [xp.concatenate([a(ROWS), a(ROWS)], axis=1, dtype="float32"), xp.concatenate([a(COUNTS), a(V)], dtype="complex128")],
    "concatenate unsafely": lambda xp, a: xp.concatenate([a(ROWS), a(ROWS)], dtype="int32", casting="unsafe"),
    "stack": lambda xp, a: [f([a(COUNTS), a(COUNTS)], dtype="int16") for f in (xp.stack, xp.vstack, xp.hstack)],
    "linspace": lambda xp, a: xp.linspace(0.0, 3.0, 4, endpoint=False, retstep=True, dtype="float64")[0],
    "meshgrid": lambda xp, a: xp.meshgrid(a(V), a(COUNTS), a(KNOTS[:2]), sparse=True),
    "meshgrid of indices": lambda xp, a: xp.meshgrid(a(V), a(COUNTS), indexing="ij", sparse=True, copy=False),
    "cov": lambda xp, a: [
        xp.cov(a(ROWS), fweights=a(COUNTS)), xp.cov(a(ROWS), aweights=a(SHARES), bias=True),
        xp.cov(a(ROWS), None, ddof=2, fweights=a(COUNTS), aweights=a(SHARES)), xp.cov(a(ROWS + 1j * ROWS[::-1]), aweights=a(SHARES)),
    ],
    "svd": lambda xp, a: [xp.linalg.svd(a(MATRICES), compute_uv=False), xp.linalg.svd(a(MATRICES), False, False)],
    "eigvalsh": lambda xp, a: [xp.linalg.eigvalsh(a(SQUARE), UPLO="U"), xp.linalg.eigvalsh(a(SQUARE + 1j * SQUARE.T), "U")],
    "eigh": lambda xp, a: xp.linalg.eigh(a(SQUARE), UPLO="U")[0],
    "pinv": lambda xp, a: [xp.linalg.pinv(a(MATRICES), rcond=0.1), xp.linalg.pinv(a(MATRICES), rcond=np.array([1e-3, 0.5]))],
    "matrix_rank": lambda xp, a: [xp.linalg.matrix_rank(a(MATRICES), tol=t) for t in (1e-3, 20.0, np.array([1.0, 1e9]))],
    "vecdot": lambda xp, a: xp.vecdot(a(ROWS), a(ROWS), axis=0),
}  # fmt: skip


@pytest.mark.parametrize("name", OPTIONS)
def test_options_of_numpy(name: str) -> None:
    """Of hologram.numpy's functions, of NumPy's on Tensors, and under jit: as NumPy has them, without a fallback."""
    call, want = OPTIONS[name], OPTIONS[name](np, lambda x: x)
    for f in (
        lambda: call(hnp, hg.tensor),
        lambda: call(np, hg.tensor) if name != "linspace" else call(hnp, hg.tensor),
        hg.jit(lambda: call(hnp, hg.tensor)),
    ):
        for g, w in zip(tree.leaves(f()), tree.leaves(want), strict=True):
            assert not isinstance(g, np.ndarray) and np.shape(g) == np.shape(w)
            np.testing.assert_allclose(g, w, rtol=1e-12, atol=1e-12)
            assert np.asarray(g).dtype == np.asarray(w).dtype or not hasattr(g, "dtype")


def test_distances_of_linspace() -> None:
    for options in ({"num": 4}, {"num": 4, "endpoint": False}, {"num": 1}, {"num": 0}):
        np.testing.assert_equal(hnp.linspace(1, 4, retstep=True, **options)[1], np.linspace(1, 4, retstep=True, **options)[1])
    assert float(hg.grad(lambda x: hnp.linspace(0.0, x, 5, retstep=True)[1])(2.0)) == 0.25


def test_refused_options() -> None:
    for call, error in (
        (lambda: hnp.concatenate([ROWS], dtype="int32"), DTypeError), (lambda: hnp.stack([COUNTS], dtype="float32", casting="safe"), DTypeError),
        (lambda: hnp.interp(V, KNOTS, KNOTS, period=0), ArgumentError), (lambda: hnp.linalg.eigh(SQUARE, UPLO="X"), ArgumentError),
    ):  # fmt: skip
        with pytest.raises(error):
            call()


NAMED: list[Callable[..., Any]] = [
    lambda xp, x: xp.linspace(start=np.float64(0), stop=np.float64(3), num=4), lambda xp, x: xp.clip(x, a_min=1.5, a_max=3.0),
    lambda xp, x: xp.clip(a=x, a_min=2, a_max=None), lambda xp, x: xp.sum(a=x[0], axis=0), lambda xp, x: xp.isclose(a=x, b=x, equal_nan=True),
    lambda xp, x: xp.eye(N=2, M=3, k=1, dtype=np.float64), lambda xp, x: xp.tile(A=x, reps=(2, 1)), lambda xp, x: xp.array(object=x),
    lambda xp, x: xp.moveaxis(x, source=0, destination=1), lambda xp, x: xp.array_split(ary=x, indices_or_sections=2, axis=1)[0],
    lambda xp, x: xp.searchsorted(a=xp.asarray(F), v=x[0]), lambda xp, x: xp.expand_dims(a=x, axis=0), lambda xp, x: xp.roll(a=x, shift=1, axis=1),
    lambda xp, x: xp.pad(array=x, pad_width=1), lambda xp, x: xp.select(condlist=[x > 2], choicelist=[x], default=0.0),
    lambda xp, x: xp.tensordot(a=x, b=x, axes=2), lambda xp, x: xp.insert(arr=x, obj=1, values=7.0, axis=1), lambda xp, x: xp.cov(m=x[:, :1], ddof=0),
    lambda xp, x: xp.linalg.solve(a=xp.asarray(np.eye(2)), b=x), lambda xp, x: xp.linalg.norm(x=x[0]), lambda xp, x: xp.fft.fft(a=x, n=4),
]  # fmt: skip


@pytest.mark.parametrize("call", NAMED)
def test_numpys_names_of_arguments(call: Callable[..., Any]) -> None:
    got, want = call(hnp, hg.tensor(X)), call(np, X)
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(hg.jit(lambda x: call(hnp, x))(X), got)


def test_arguments_are_named_once() -> None:
    for act in (
        lambda: hnp.sum(X, a=X),  # type: ignore[call-arg]
        lambda: hnp.clip(X, 1, a_min=2),  # type: ignore[call-arg]
        lambda: hnp.clip(X, min=1, a_min=2),  # type: ignore[call-arg]
        lambda: hnp.isclose(b=X),  # type: ignore[call-arg]
        lambda: hnp.sum(b=X),  # type: ignore[call-arg]
    ):
        with pytest.raises(TypeError, match="argument"):
            act()


def test_functions_with_numpys_names_are_pickled() -> None:
    for f in (hnp.roll, hnp.sum, hnp.array, hg.linalg.solve, hg.fft.fft):
        assert pickle.loads(pickle.dumps(f)) is f


def test_options_of_sets() -> None:
    a, b = np.array([5, 1, 3, 5, 9]), np.array([[9, 7, 5], [7, 1, 1]])
    for g, w in zip(hnp.intersect1d(hg.tensor(a), b, return_indices=True), np.intersect1d(a, b, return_indices=True), strict=True):
        np.testing.assert_array_equal(g, w)
    big = np.array([2**63 + 1, 4], np.uint64), np.array([-1, 4])
    assert [np.asarray(x).tolist() for x in hnp.intersect1d(*big, return_indices=True)] == [[4], [1], [1]]
    np.testing.assert_array_equal(hnp.isin(a, b, assume_unique=True, invert=True, kind="table"), np.isin(a, b, invert=True))
    for name in ("intersect1d", "setdiff1d", "setxor1d"):
        np.testing.assert_array_equal(getattr(hnp, name)(a[4:0:-1], b[0], assume_unique=True), getattr(np, name)(a[4:0:-1], b[0], assume_unique=True))
    with pytest.raises(ArgumentError, match="kind"):
        hnp.isin(a, b, kind="hash")
