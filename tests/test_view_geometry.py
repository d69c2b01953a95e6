"""hologram.ir.strides: views as movement, beside NumPy's strided views."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hologram.ir.strides import Movement, Strided, contiguous_strides, movement, own_movement


def applied(found: Movement, array: np.ndarray) -> np.ndarray:
    """The view that a movement makes of an array."""
    flat = np.concatenate([array.reshape(-1), np.full(found.padded - array.size, -1, array.dtype)])
    part = flat.reshape(found.base)[tuple(s.slice for s in found.slices)].reshape([found.shape[a] for a in found.axes])
    part = part.transpose([found.axes.index(a) for a in sorted(found.axes)])
    return np.broadcast_to(part.reshape([n if a in found.axes else 1 for a, n in enumerate(found.shape)]), found.shape)


def strided(array: np.ndarray, view: Strided) -> np.ndarray:
    flat = array.reshape(-1)[view.offset :]
    return np.lib.stride_tricks.as_strided(flat, view.shape, [s * array.itemsize for s in view.strides])


@st.composite
def views(draw: Any) -> tuple[tuple[int, ...], Strided]:
    """A shape, and a view of an array of it by slices, selected indices and permutations."""
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=4)))
    view = Strided(shape, contiguous_strides(shape))
    for _ in range(draw(st.integers(0, 3))):
        axis = draw(st.integers(0, len(view.shape) - 1))
        start = draw(st.integers(0, view.shape[axis] - 1))
        view = view.sliced(axis, start, draw(st.integers(start + 1, view.shape[axis])), draw(st.integers(1, 3)))
        view = view.permuted(draw(st.permutations(range(len(view.shape)))))
        if len(view.shape) > 1 and draw(st.booleans()):
            view = view.selected(0, draw(st.integers(0, view.shape[0] - 1)))
    return shape, view


@given(views())
def test_slices_and_permutations_are_movement(case: tuple[tuple[int, ...], Strided]) -> None:
    shape, view = case
    array = np.arange(math.prod(shape)).reshape(shape)
    found = movement(view, shape)
    assert found is not None
    np.testing.assert_array_equal(applied(found, array), strided(array, view))
    assert view.last < array.size and view.is_contiguous == strided(array, view).flags.c_contiguous


@given(views())
def test_a_view_is_movement_of_its_own_memory(case: tuple[tuple[int, ...], Strided]) -> None:
    view = case[1]._replace(offset=0)
    found = own_movement(view.shape, view.strides)
    if found is not None:
        array = np.arange(max(math.prod(found.base), view.last + 1))
        np.testing.assert_array_equal(applied(found, array[: found.padded]), strided(array, view))
        assert found.is_dense == (found.padded == math.prod(view.shape[a] for a in found.axes))


@pytest.mark.parametrize("shape, strides", [((4, 2), (1, 1)), ((3, 3), (2, 1)), ((4,), (2,))])
def test_what_has_no_array_of_its_own(shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    assert own_movement(shape, strides) is None


def test_windows_that_overlap_are_no_movement() -> None:
    assert movement(Strided((4, 2), (1, 1)), (5,)) is None


def test_empty_and_repeated() -> None:
    assert contiguous_strides((2, 0, 3)) == (3, 3, 1)
    empty = own_movement((2, 0), (1, 1))
    assert empty is not None and empty.base == (2, 0) and empty.is_dense
    repeated = Strided((3, 2), (0, 1))
    assert repeated.repeats and not Strided((1, 2), (0, 1)).repeats
    found = own_movement(repeated.shape, repeated.strides)
    assert found is not None and found.base == (2,) and found.axes == (1,)
