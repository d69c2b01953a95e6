"""Layouts of memory with symbolic sizes: what is found for all sizes is what is found for each."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hologram.ir.strides import contiguous_strides, own_movement
from hologram.ir.symbolic import substitute, var

N, M = var("n", 2), var("m", 2)
SHAPES: list[tuple[Any, ...]] = [(N,), (3, N, 8), (N, M), (2, N + 1, 4), (N, 1, 5), (N, M + 2, 3), (4, N - 3 * M + 130, N, 3)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@given(data=st.data())
def test_permuted_arrays(shape: tuple[Any, ...], data: Any) -> None:
    order = data.draw(st.permutations(range(len(shape))))
    sizes = {"n": data.draw(st.integers(2, 40)), "m": data.draw(st.integers(2, 40))}
    strides = contiguous_strides(shape)
    view = tuple(shape[i] for i in order), tuple(strides[i] for i in order)
    found = own_movement(*view)
    known = own_movement(*(tuple(substitute(n, sizes) for n in part) for part in view))  # type: ignore[arg-type]
    assert found is not None and known is not None and found.is_dense
    assert [substitute(n, sizes) for n in found.base] == list(known.base) and found.axes == known.axes


def test_parts_of_rows_have_gaps() -> None:
    found = own_movement((N, 4), (8, 1))
    assert found is not None and not found.is_dense and found.base == (N, 8)
    assert own_movement((N, M), (8, 1)) is None  # rows may overlap
    assert own_movement((N, 4), (8, 2)) is None
