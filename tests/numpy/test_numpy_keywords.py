"""Keywords of NumPy's functions that code written for NumPy passes: those that say nothing of values, and those that do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import ArgumentError
from hologram.numpy.numpy_keywords import KEYWORDS

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
