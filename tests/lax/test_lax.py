"""Windows whose starts are computed, against NumPy: eager, jitted, stacked, differentiated, in loops, saved, of symbolic sizes; roll."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp
from hologram import lax
from hologram.errors import ArgumentError, DTypeError, HologramError, ShapeError
from tests.support.optable import seeded

TYPES = [np.bool_, np.int8, np.uint32, np.int64, np.float16, np.float32, np.float64, np.complex64]


def array_of(shape: tuple[int, ...], dtype: Any = np.float64) -> np.ndarray:
    found = seeded("lax", shape, str(dtype)).standard_normal(shape) * 5
    return (found + 1j * found[::-1] if dtype is np.complex64 else found).astype(dtype)


def corner(starts: Any, shape: Any, sizes: Any) -> tuple[slice, ...]:
    """Where a window lies: negative starts count from the end, and then it is moved inside."""
    found = []
    for s, n, size in zip(starts, shape, sizes, strict=True):
        first = min(max(s + n if s < 0 else s, 0), n - size)
        found.append(slice(first, first + size))
    return tuple(found)


def put(x: np.ndarray, update: np.ndarray, starts: Any) -> np.ndarray:
    out = x.copy()
    out[corner(starts, x.shape, update.shape)] = update.astype(x.dtype)
    return out


windows = st.tuples(st.integers(1, 5), st.integers(1, 40), st.integers(0, 5), st.integers(0, 40), st.integers(-50, 50), st.integers(-50, 50))


@given(windows, st.sampled_from(TYPES), st.sampled_from([np.int8, np.int32, np.int64]))
def test_slices_and_updates(window: tuple[int, ...], dtype: Any, index: Any) -> None:
    n, m, a, b, i, j = window
    sizes = min(a, n), min(b, m)
    x, u = array_of((n, m), dtype), array_of(sizes, dtype)
    where = corner((i, j), x.shape, sizes)
    for starts in ((i, j), (index(i), j), tuple(map(index, (i, j)))):
        np.testing.assert_array_equal(hg.lax.dynamic_slice(x, starts, sizes).numpy(), x[where])
        np.testing.assert_array_equal(hg.lax.dynamic_update_slice(x, u, starts).numpy(), put(x, u, (i, j)))
    np.testing.assert_array_equal(hg.lax.dynamic_slice(x, hnp.asarray([i, j]), sizes).numpy(), x[where])


@pytest.mark.parametrize("dtype", TYPES)
def test_jitted(dtype: Any) -> None:
    x, u = array_of((7, 300), dtype), array_of((3, 70), dtype)
    read, write = (
        hg.jit(f) for f in (lambda x, i, j: hg.lax.dynamic_slice(x, (i, j), (3, 70)), lambda x, u, i, j: hg.lax.dynamic_update_slice(x, u, (i, j)))
    )
    for i, j in itertools.product((-9, -2, 0, 3, 6), (-400, -75, 0, 100, 299)):
        np.testing.assert_array_equal(read(x, i, j).numpy(), x[corner((i, j), x.shape, (3, 70))])
        np.testing.assert_array_equal(write(x, u, i, j).numpy(), put(x, u, (i, j)))


def test_along_one_axis() -> None:
    x = array_of((4, 5, 6))
    for axis, i in itertools.product((0, 1, 2, -1), (-9, -1, 0, 2, 9)):
        n = x.shape[axis]
        first, last = (min(max(i + n if i < 0 else i, 0), n - size) for size in (2, 1))
        part = np.take(x, range(first, first + 2), axis)
        np.testing.assert_array_equal(hg.lax.dynamic_slice_in_dim(x, np.int32(i), 2, axis).numpy(), part)
        np.testing.assert_array_equal(hg.lax.dynamic_index_in_dim(x, hnp.asarray(i), axis).numpy(), np.take(x, [last], axis))
        np.testing.assert_array_equal(hg.lax.dynamic_index_in_dim(x, i, axis, keepdims=False).numpy(), np.take(x, last, axis))
        want = np.moveaxis(x.copy(), axis, 0)
        want[first : first + 2] = 7
        got = hg.lax.dynamic_update_slice_in_dim(x, np.full_like(part, 7), i, axis)
        np.testing.assert_array_equal(got.numpy(), np.moveaxis(want, 0, axis))
        want = np.moveaxis(x.copy(), axis, 0)
        want[last] = 3
        for shape in (np.take(x, 0, axis).shape, np.take(x, [0], axis).shape):
            got = hg.lax.dynamic_update_index_in_dim(x, np.full(shape, 3.0), hnp.asarray(i), axis)
            np.testing.assert_array_equal(got.numpy(), np.moveaxis(want, 0, axis))


def test_stacks_and_derivatives() -> None:
    x, u = array_of((3, 6, 8)), array_of((3, 2, 3))
    i, j = np.array([0, -1, 9]), np.array([2, 5, -8])
    starts = list(zip(i, j, strict=True))
    read = lambda x, i, j: hg.lax.dynamic_slice(x, (i, j), (2, 3))  # noqa: E731
    write = lambda x, u, i, j: hg.lax.dynamic_update_slice(x, u, (i, j))  # noqa: E731
    places = [corner(s, (6, 8), (2, 3)) for s in starts]
    np.testing.assert_array_equal(hg.vmap(read)(x, i, j).numpy(), [x[k][p] for k, p in enumerate(places)])
    np.testing.assert_array_equal(hg.vmap(read, (None, 0, None))(x[0], i, 2).numpy(), [x[0][corner((a, 2), (6, 8), (2, 3))] for a in i])
    np.testing.assert_array_equal(hg.vmap(write)(x, u, i, j).numpy(), [put(x[k], u[k], s) for k, s in enumerate(starts)])
    np.testing.assert_array_equal(hg.vmap(write, (None, 0, 0, 0))(x[0], u, i, j).numpy(), [put(x[0], u[k], s) for k, s in enumerate(starts)])
    for k, (s, place) in enumerate(zip(starts, places, strict=True)):
        ct = np.zeros_like(x[k])
        ct[place] = 2 * x[k][place]
        got = hg.jit(hg.grad(lambda x, i, j: hnp.sum(read(x, i, j) ** 2)))(x[k], *s)
        np.testing.assert_allclose(got.numpy(), ct)
        dx, du = hg.jit(hg.grad(lambda x, u, i, j: hnp.sum(write(x, u, i, j) ** 2), (0, 1)))(x[k], u[k], *s)
        np.testing.assert_allclose(du.numpy(), 2 * u[k])
        np.testing.assert_allclose(dx.numpy(), 2 * put(x[k], 0 * u[k], s))


def test_in_a_loop() -> None:
    """Each step reads one window and writes another; the kernels of a step touch no more, but for the copy."""
    x = array_of((50, 40))

    def step(i: Any, x: Any) -> Any:
        row = hg.lax.dynamic_slice(x, (i, 3), (1, 20))
        return hg.lax.dynamic_update_slice(x, row + x[i, 0], (i + 1, 5))

    want = x.copy()
    for i in range(30):
        want[i + 1, 5:25] = want[i, 3:23] + want[i, 0]
    f = hg.jit(lambda x: hg.fori_loop(0, 30, step, x), precision="exact")
    np.testing.assert_array_equal(f(x).numpy(), want)
    text = f.lower(x).as_text("canonical")
    assert text.count("scatter_set") == 1 and "select" not in text.split("scatter_set")[1] and "pad" not in text


def test_symbolic_sizes_and_programs_in_files() -> None:
    f = hg.jit(lambda x, u, i: (hg.lax.dynamic_update_slice(x, u, (i, 0)), hg.lax.dynamic_slice_in_dim(x, i, u.shape[0])), dynamic={0: (0,), 1: (0,)})
    x, u = array_of((9, 4)), array_of((3, 4))
    for program in (f, hg.load(hg.export(f, x, u, np.int64(0)).to_bytes())):
        for n, m in ((9, 3), (200, 150)):
            x, u = array_of((n, 4)), array_of((m, 4))
            for i in (-n - 3, -2, 0, 4, n):
                changed, part = program(x, u, np.int64(i))
                np.testing.assert_array_equal(changed.numpy(), put(x, u, (i, 0)))
                np.testing.assert_array_equal(part.numpy(), x[corner((i, 0), x.shape, u.shape)])


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.uint16])
def test_computed_rolls(axis: int | None, dtype: Any) -> None:
    x = array_of((5, 17))
    f = hg.jit(lambda x, k: hnp.roll(x, k, axis=axis))
    for k in (0, 1, 3, 16, 100, *(() if dtype is np.uint16 else (-1, -17, -50))):
        np.testing.assert_array_equal(f(x, dtype(k)).numpy(), np.roll(x, k, axis))
    np.testing.assert_array_equal(hnp.roll(x, (hnp.asarray(2), -1), axis=(0, 1)).numpy(), np.roll(x, (2, -1), (0, 1)))
    assert hnp.roll(np.zeros((0, 3)), hnp.asarray(2), axis=0).shape == (0, 3)
    with pytest.raises(ArgumentError, match="a shift is an integer, not float64"):
        hnp.roll(x, hnp.asarray(2.0, dtype="float64"))


@pytest.mark.parametrize(
    ("error", "work"),
    [
        (ShapeError, lambda x: hg.lax.dynamic_slice(x, (0,), (1, 1))),
        (ShapeError, lambda x: hg.lax.dynamic_slice(x, (0, 0), (1,))),
        (ShapeError, lambda x: hg.lax.dynamic_slice(x, (0, 0), (1, 4))),
        (ShapeError, lambda x: hg.lax.dynamic_slice(x, (0, 0), (-1, 1))),
        (ShapeError, lambda x: hg.lax.dynamic_slice(x, hnp.zeros((2, 1), dtype=int), (1, 1))),
        (ShapeError, lambda x: hg.lax.dynamic_slice(x, (hnp.asarray([1, 2]), 0), (1, 1))),
        (ArgumentError, lambda x: hg.lax.dynamic_slice(x, 0, (1, 1))),
        (DTypeError, lambda x: hg.lax.dynamic_slice(x, (0.5, 0), (1, 1))),
        (ShapeError, lambda x: hg.lax.dynamic_update_slice(x, np.zeros(2), (0, 0))),
        (ShapeError, lambda x: hg.lax.dynamic_update_slice(x, np.zeros((3, 1)), (0, 0))),
        (DTypeError, lambda x: hg.lax.dynamic_update_slice(x, np.zeros((1, 1), complex), (0, 0))),
        (ShapeError, lambda x: hg.lax.dynamic_update_index_in_dim(x, np.zeros((2, 3)), 0)),
    ],
)
def test_errors(error: type[HologramError], work: Any) -> None:
    with pytest.raises(error, match=r"dynamic_|at\[\]"):
        work(np.zeros((2, 3)))


@pytest.mark.parametrize("padding", ["SAME", "SAME_LOWER"])
@pytest.mark.parametrize(("window", "stride"), [(1, 3), (2, 3), (3, 2), (5, 4)])
def test_same_padding_of_symbolic_extents(window: int, stride: int, padding: str) -> None:
    """Windows shorter than a stride have programs for each sign of the width."""

    def sums(x: Any) -> Any:
        return lax.reduce_window(x, 0.0, lax.add, (window,), (stride,), padding)

    symbolic, static = hg.jit(sums, dynamic=True), hg.jit(sums, dynamic=False)
    for n in (2, 4, 5, 9, 12):
        x = np.arange(n, dtype=np.float32) + 1
        np.testing.assert_array_equal(symbolic(x), static(x))
