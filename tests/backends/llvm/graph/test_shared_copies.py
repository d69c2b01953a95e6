"""Large arrays that a loop needs copies of are copied by several threads, in parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hologram as hg
from hologram.backends.llvm.graph.writer import COPIED_BYTES, COPY, MIN_SHARED_BYTES


def stepped(x: Any) -> Any:
    """The argument stays as it is, so the loop has a copy of it."""
    return hg.fori_loop(0, 5, lambda i, x: x.at[i].set(x[i + 1] + 1), x)


def reference(x: np.ndarray) -> np.ndarray:
    x = x.copy()
    x[:5] = x[1:6] + 1
    return x


@pytest.mark.parametrize("beyond", [0, 1, 7, COPIED_BYTES // 8 - 1])
def test_the_last_part_may_be_shorter(beyond: int) -> None:
    x = np.random.default_rng(0).standard_normal(MIN_SHARED_BYTES // 8 + beyond)
    f = hg.jit(stepped)
    assert f"@{COPY}" in f.lower(x).as_text("llvm")
    kept = x.copy()
    assert np.asarray(f(x)).tobytes() == reference(x).tobytes() and x.tobytes() == kept.tobytes()


def test_small_arrays_are_copied_by_the_caller() -> None:
    x = np.random.default_rng(0).standard_normal(MIN_SHARED_BYTES // 8 - 1)
    f = hg.jit(stepped)
    assert f"@{COPY}" not in f.lower(x).as_text("llvm")
    assert np.asarray(f(x)).tobytes() == reference(x).tobytes()


@pytest.mark.parametrize("n", [6, 1000, MIN_SHARED_BYTES // 8 + 5])
def test_sizes_that_vary(n: int) -> None:
    x = np.random.default_rng(0).standard_normal(n)
    assert np.asarray(hg.jit(stepped, dynamic=True)(x)).tobytes() == reference(x).tobytes()
