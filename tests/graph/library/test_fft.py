"""How lengths of Fourier transforms are factored."""

from __future__ import annotations

from math import prod

from hypothesis import given
from hypothesis import strategies as st

from hologram.graph.library.fft import sizes

SMOOTH = st.lists(st.sampled_from(sizes.PRIMES), max_size=8).map(prod)


@given(SMOOTH, st.sampled_from([1, 2, 4, 8, 16]))
def test_radices_multiply_to_the_length(n: int, width: int) -> None:
    assert sizes.is_smooth(n)
    assert prod(sizes.radices_of_lanes(n)[1]) == prod(sizes.radices_of_row(n, width)[1]) == n


@given(st.integers(2, 2**21))
def test_convolutions_have_room(n: int) -> None:
    m = sizes.convolution_length(n)
    assert 2 * n - 1 <= m < 4 * n and sizes.is_smooth(m)
    if sizes.is_long(n, 4):
        found = sizes.parts(sizes.smooth_length(n))
        assert found is not None and prod(found) == sizes.smooth_length(n) and min(found) >= sizes.MIN_PART


@given(st.integers(1, 100), st.sampled_from([1, 2, 4, 8, 16]))
def test_vectors_fit_the_lanes(lanes: int, width: int) -> None:
    narrow = sizes.vector_width(lanes, width)
    assert narrow <= lanes < 2 * narrow or narrow == width <= lanes
    assert sizes.vectors(lanes, width) >= 1
