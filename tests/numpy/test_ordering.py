"""The order of complex numbers, against NumPy; different slices in a known number of places, against what NumPy finds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import hologram as hg
import hologram.numpy as hnp

PARTS = st.sampled_from([-1.0, 0.0, 2.0, np.inf, -np.inf, np.nan])
NUMBERS = st.builds(complex, PARTS, PARTS)


@given(arrays(np.complex64, (3, 5), elements=NUMBERS))
@settings(max_examples=40, deadline=None)
def test_complex_numbers_are_sorted_as_in_numpy(x: np.ndarray) -> None:
    np.testing.assert_array_equal(hnp.sort(x, axis=0), np.sort(x, axis=0))
    np.testing.assert_array_equal(hnp.sort(x, axis=None), np.sort(x, axis=None))
    np.testing.assert_array_equal(hnp.argsort(x), np.argsort(x, kind="stable"))


def test_complex_sorts_are_traced_and_differentiated() -> None:
    x = np.array([2 + 1j, -1 + 3j, 2 - 1j, 0 + 0j])
    want = np.sort(x)
    np.testing.assert_array_equal(hg.jit(hg.lax.sort)(x), want)
    np.testing.assert_array_equal(hg.vmap(hnp.sort)(np.stack([x, x[::-1]])), [want, want])
    np.testing.assert_array_equal(hnp.sort(x, descending=True), want[::-1])
    slope = hg.grad(lambda r: hnp.sum(hnp.real(hnp.sort(r + 1j * r)) * np.arange(3.0)))(np.array([3.0, 1.0, 2.0]))
    np.testing.assert_array_equal(slope, [2.0, 0.0, 1.0])


@pytest.mark.parametrize("reverse", [False, True])
def test_running_extremes_of_complex_numbers(reverse: bool) -> None:
    x = np.array([1 + 2j, 0.5 - 1j, 0.5 - 2j, 3, 1 + 3j], np.complex64)
    line = x[::-1] if reverse else x
    for f, pick in ((hg.lax.cummax, max), (hg.lax.cummin, min)):
        want = [pick(line[: i + 1], key=lambda z: (z.real, z.imag)) for i in range(5)]
        for g in (f, hg.jit(f, static_argnames="reverse")):
            np.testing.assert_array_equal(g(x, reverse=reverse), want[::-1] if reverse else want)


def _unique(m: Any, x: Any, axis: int | None, **options: Any) -> Any:
    return m.unique(x, return_index=True, return_inverse=True, return_counts=True, axis=axis, **options)


@given(arrays(np.int64, (4, 3, 2), elements=st.integers(0, 1)), st.integers(-3, 2), st.integers(1, 6))
@settings(max_examples=25, deadline=None)
def test_different_slices_in_so_many_places(x: np.ndarray, axis: int, size: int) -> None:
    values, where, inverse, counts = (np.asarray(v) for v in _unique(hnp, x, axis, size=size, fill_value=7))
    want = _unique(np, x, axis)
    there = min(size, want[0].shape[axis])
    first = tuple([slice(there)])
    line, wanted = np.moveaxis(values, axis, 0), np.moveaxis(want[0], axis, 0)
    np.testing.assert_array_equal(line[:there], wanted[:there])
    assert line.shape[0] == size and (line[there:] == 7).all()
    np.testing.assert_array_equal(where[first], want[1][first])
    np.testing.assert_array_equal(inverse, want[2].reshape(-1))
    np.testing.assert_array_equal(counts, [*want[3][first], *[0] * (size - there)])


def test_slices_of_floats_and_complex_numbers() -> None:
    x = np.array([[1.0, np.nan], [1.0, np.nan], [0.0, 2.0]])
    np.testing.assert_array_equal(hg.jit(lambda v: hnp.unique(v, axis=0, size=3))(x), np.unique(x, axis=0))
    z = np.array([[2, 1j], [1, 0], [2, 1j]])
    np.testing.assert_array_equal(hnp.unique(z, axis=0, size=2), np.unique(z, axis=0))
    np.testing.assert_array_equal(hnp.unique(z, size=4), np.unique(z))


@pytest.mark.parametrize("exponent", [np.int8(-1), np.int64(-3), np.array(-2), -1])
@pytest.mark.parametrize("base", [np.array([2, 3], np.int32), np.array([2, 3], np.uint8), 2])
def test_integers_have_no_known_negative_powers(base: Any, exponent: Any) -> None:
    for work in (lambda: hnp.asarray(base) ** exponent, lambda: hnp.power(base, exponent)):
        with pytest.raises(hg.errors.DTypeError, match="negative power"):
            work()
    assert float(hnp.asarray(2.0) ** exponent) == 2.0**exponent


def test_signs_and_powers_of_lax() -> None:
    signs = np.asarray(hg.lax.sign(np.array([-0.0, 0.0, -2.0, 3.0, np.nan], np.float32)))
    np.testing.assert_array_equal(signs, [0, 0, -1, 1, np.nan])
    assert np.signbit(signs).tolist()[:3] == [True, False, True]
    np.testing.assert_allclose(hg.lax.exp2(np.array([1 + 2j, 0.5 - 1j])), 2 ** np.array([1 + 2j, 0.5 - 1j]), rtol=1e-14)


def _as_numbers(x: Any) -> np.ndarray:
    """NaN where a part is NaN."""
    x = np.asarray(x)
    return np.where(np.isnan(x), np.nan, x)


@given(arrays(np.complex64, (2, 3, 4), elements=NUMBERS), st.sampled_from([None, 0, -1, (0, 2), (0, 1, 2)]), st.booleans())
@settings(max_examples=40, deadline=None)
def test_complex_extremes_are_those_of_numpy(x: np.ndarray, axis: Any, keepdims: bool) -> None:
    mask = np.arange(24).reshape(x.shape) % 3 > 0
    for name in ("max", "min"):
        for options in ({}, {"initial": 1 - 1j}, {"initial": 0.5, "where": mask}):
            want = getattr(np, name)(x, axis=axis, keepdims=keepdims, **options)
            np.testing.assert_array_equal(_as_numbers(getattr(hnp, name)(x, axis=axis, keepdims=keepdims, **options)), _as_numbers(want))
        if not isinstance(axis, tuple):
            index = getattr(hnp, "arg" + name)(x, axis=axis, keepdims=keepdims)
            np.testing.assert_array_equal(index, getattr(np, "arg" + name)(x, axis=axis, keepdims=keepdims))


def test_complex_extremes_are_traced_and_differentiated() -> None:
    x = np.array([[2 + 1j, 2 + 3j, 2 - 1j, 0 + 9j], [1j, -1j, 0, -5 + 1j]])
    for dynamic in (False, True):
        np.testing.assert_array_equal(hg.jit(lambda x: (hnp.max(x, 1), hnp.min(x, 0)), dynamic=dynamic)(x)[0], x.max(1))
    np.testing.assert_array_equal(hg.vmap(hnp.argmax)(x), x.argmax(1))
    slope = hg.grad(lambda r: hnp.real(hnp.max(r + 1j * r)))(np.array([3.0, 1.0, 2.0]))
    np.testing.assert_array_equal(slope, [1.0, 0.0, 0.0])
