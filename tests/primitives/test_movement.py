"""The meaning of slices, gathers and broadcasts, which views of NumPy give where they can, against definitions element by element."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from hologram.primitives.complex.parts import imag, real
from hologram.primitives.indexing import gather, windows_shape
from hologram.primitives.movement import broadcast, slice_

EXTENTS = st.integers(0, 5)
SHAPES = st.lists(EXTENTS, max_size=3).map(tuple)


def array(shape: tuple[int, ...]) -> np.ndarray:
    return np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape)


@settings(deadline=None)
@given(st.data())
def test_slices(data: Any) -> None:
    x = array(data.draw(SHAPES))
    triples = []
    for n in x.shape:
        low, high = sorted(data.draw(st.tuples(st.integers(0, n), st.integers(0, n))))
        step = data.draw(st.integers(1, 3))
        triples.append((low, high, step) if data.draw(st.booleans()) else (high - 1, low - 1, -step))
    start, stop, step = (tuple(t[i] for t in triples) for i in range(3))
    got = slice_.reference(x, start, stop, step)
    want = x[np.ix_(*map(np.arange, start, stop, step))]
    np.testing.assert_array_equal(got, want, strict=True)
    assert not got.size or not x.ndim or np.shares_memory(got, x)


@settings(deadline=None)
@given(st.data())
def test_gathers(data: Any) -> None:
    x = array(data.draw(st.lists(EXTENTS, min_size=1, max_size=3).map(tuple)))
    batch = data.draw(st.integers(0, x.ndim - 1))
    axes = tuple(sorted(data.draw(st.sets(st.integers(batch, x.ndim - 1), min_size=1))))
    sizes = tuple(data.draw(st.sampled_from([min(1, x.shape[a]), data.draw(st.integers(0, x.shape[a]))])) for a in axes)
    places = (*x.shape[:batch], *data.draw(st.lists(st.integers(0, 3), max_size=2)))
    starts = [np.random.default_rng(a).integers(0, x.shape[a] - n + 1, places).astype(np.int64) for a, n in zip(axes, sizes, strict=True)]
    got = gather.reference(x, *starts, axes, sizes, batch)
    assert got.shape == windows_shape(x.shape, places, axes, sizes, batch)
    for at in np.ndindex(places):
        window: list[Any] = [*at[:batch], *[slice(None)] * (x.ndim - batch)]
        for a, s, n in zip(axes, starts, sizes, strict=True):
            window[a] = slice(s[at], s[at] + n)
        np.testing.assert_array_equal(got[at], x[tuple(window)])
    assert places or not got.size or np.shares_memory(got, x)


@given(st.data())
def test_broadcasts(data: Any) -> None:
    shape = data.draw(SHAPES)
    dims = tuple(sorted(data.draw(st.sets(st.integers(0, len(shape) - 1)) if shape else st.just(set()))))
    x = array(tuple(shape[d] if data.draw(st.booleans()) else 1 for d in dims))
    got = broadcast.reference(x, shape, dims)
    assert got.shape == shape and got.dtype == x.dtype
    for at in np.ndindex(shape):
        assert got[at] == x[tuple(at[d] if n != 1 else 0 for d, n in zip(dims, x.shape, strict=True))]


def test_parts_of_complex_numbers_are_views() -> None:
    z = np.array([1 + 2j, np.nan - 0j], np.complex64)
    assert real.reference(z).tobytes() == np.ascontiguousarray(z.real).tobytes() and np.shares_memory(real.reference(z), z)
    assert imag.reference(z).tobytes() == np.ascontiguousarray(z.imag).tobytes() and np.shares_memory(imag.reference(z), z)
