"""Maxima and minima whose index is wanted too: one comparison serves both."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hologram as hg

SPECIAL = np.array([0.0, -0.0, -1.0, 1.0, -np.inf, np.inf, np.nan, -np.nan])


def both(axis: int) -> Any:
    return hg.jit(lambda x: (x.max(axis), x.argmax(axis), x.min(axis), x.argmin(axis)))


def alone(axis: int) -> Any:
    return hg.jit(lambda x: x.max(axis)), hg.jit(lambda x: x.min(axis))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", [(5, 7), (64, 24), (3, 300), (600, 3)])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_bits_are_those_of_extremes_alone(dtype: type, shape: tuple[int, int], axis: int) -> None:
    """Whatever zeros, infinities and NaN there are."""
    together, (greatest, least) = both(axis), alone(axis)

    @given(st.sets(st.sampled_from(range(len(SPECIAL))), min_size=1), st.integers(0, 2**31))
    def check(kinds: set[int], seed: int) -> None:
        x = np.random.default_rng(seed).choice(SPECIAL[sorted(kinds)], shape).astype(dtype)
        high, at_high, low, at_low = map(np.asarray, together(x))
        assert high.tobytes() == np.asarray(greatest(x)).tobytes() and low.tobytes() == np.asarray(least(x)).tobytes()
        assert (at_high == x.argmax(axis)).all() and (at_low == x.argmin(axis)).all()

    check()


def test_extremes_beside_their_index_compare_once() -> None:
    """What a maximum alone needs, integers that tell of NaN, is not computed; with another operand it is."""
    x = np.ones((64, 64), np.float32)
    together = hg.jit(lambda x: (x.max(0), x.argmax(0))).lower(x).as_text("llvm")
    apart = hg.jit(lambda x: ((x + 1).max(0), x.argmax(0))).lower(x).as_text("llvm")
    assert "smax" not in together and "smin" not in together
    assert "smax" in apart and "smin" in apart
