"""``map``: a function of each element, in a loop or by batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp
from hologram.control import map as lax_map
from hologram.errors import ArgumentError, HologramError, ShapeError


@given(n=st.integers(0, 9), size=st.none() | st.integers(1, 11))
def test_map(n: int, size: int | None) -> None:
    rng = np.random.default_rng(n)
    xs = {"a": rng.standard_normal((n, 3)), "b": np.arange(n)}

    def f(x: Any) -> Any:
        return x["a"] * x["b"], (x["a"].sum(), x["b"])

    want = xs["a"] * xs["b"][:, None], (xs["a"].sum(1), xs["b"])
    for got in (lax_map(f, xs, batch_size=size), hg.jit(lambda xs: lax_map(f, xs, batch_size=size))(xs)):
        for g, w in zip(hg.tree.leaves(got), hg.tree.leaves(want), strict=True):
            assert g.dtype == w.dtype and g.shape == w.shape
            np.testing.assert_allclose(g, w, rtol=1e-12)


def test_map_under_transforms() -> None:
    x = np.array([1.0, 2.0, 3.0])
    for size in (None, 2):
        np.testing.assert_allclose(hg.grad(lambda x, size=size: lax_map(lambda v: v**3, x, batch_size=size).sum())(x), 3 * x**2)
        stacked = hg.vmap(lambda x, size=size: lax_map(hnp.sin, x, batch_size=size))(np.stack([x, -x]))
        np.testing.assert_allclose(stacked, np.sin([x, -x]))


def test_batches_are_one_loop_of_vectors() -> None:
    text = hg.jit(lambda x: lax_map(hnp.sin, x, batch_size=4)).lower(np.ones(12)).as_text("trace")
    assert "scan" in text and "float64[4]" in text


def test_refusals() -> None:
    refused: list[tuple[Any, type[HologramError], str]] = [
        (lambda: lax_map(1, np.ones(2)), ArgumentError, "map takes a function"),
        (lambda: lax_map(hnp.sin, np.ones(2), batch_size=0), ArgumentError, "a batch of 0 elements"),
        (lambda: lax_map(hnp.sin, 1.0, batch_size=2), ShapeError, "a scalar has no axis"),
        (lambda: lax_map(hnp.sin, (), batch_size=2), ArgumentError, "at least one array"),
        (lambda: lax_map(lambda x: x[0], (np.ones(2), np.ones(3)), batch_size=2), ArgumentError, "first axes of different extents"),
    ]
    for call, kind, message in refused:
        with pytest.raises(kind, match=message + ".*test_maps.py"):
            call()
