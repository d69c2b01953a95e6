"""Sums of cotangents of parts of an array: the same bits, signs of zeros too, for known and symbolic extents."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp

SLICES = st.tuples(st.integers(0, 3), st.integers(0, 2), st.sampled_from([1, 2, 3, -1, -2]))


def _part(x: Any, first: int, last: int, step: int) -> Any:
    return x[first : x.shape[0] - last][::step]


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@given(parts=st.lists(SLICES, min_size=2, max_size=4), n=st.integers(7, 9), seed=st.integers(0, 99))
@settings(max_examples=12, deadline=None)
def test_symbolic_extents_keep_the_bits(dtype: Any, parts: list[tuple[int, int, int]], n: int, seed: int) -> None:
    x = np.ones((n, 2), dtype)

    def gradient(x: Any, ct: Any) -> Any:
        read, vjp = hg.vjp(lambda x: [_part(x, *p) for p in parts], x)
        return vjp([ct[: part.shape[0]] for part in read])[0]

    ct = np.random.default_rng(seed).choice([-0.0, 1.5], (n, 2)).astype(dtype)
    if ct.dtype.kind == "c":
        ct = np.asarray(ct * dtype(1 + 1j))
    known, symbolic = (np.asarray(hg.jit(gradient, dynamic=d)(x, ct)) for d in (False, True))
    np.testing.assert_array_equal(known.view(np.uint32), symbolic.view(np.uint32))


@pytest.mark.costly(2)
@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan_of_a_symbolic_extent(reverse: bool) -> None:
    def gradient(x: Any, ct: Any) -> Any:
        y, vjp = hg.vjp(lambda x: hg.associative_scan(hnp.maximum, x, reverse=reverse), x)
        assert y.shape == x.shape
        return y, vjp(ct)[0]

    known, symbolic = hg.jit(gradient), hg.jit(gradient, dynamic=True)
    for n in (3, 4, 7, 10):
        x = np.random.default_rng(n).integers(-9, 9, (n, 3)).astype(np.float32)
        ct = np.random.default_rng(n).choice([-0.0, 1.5, -2.0], x.shape).astype(np.float32)
        for want, got in zip(known(x, ct), symbolic(x, ct), strict=True):
            np.testing.assert_array_equal(np.asarray(got), np.asarray(want))
            if n == 3:  # every step has elements, as the symbolic program has it: signs of zeros agree, too
                np.testing.assert_array_equal(np.signbit(got), np.signbit(want))
