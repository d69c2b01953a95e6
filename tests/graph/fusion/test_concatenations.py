"""Concatenations of concatenations: how much a kernel looks through."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hologram as hg


@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize("shape", [(96,), (96, 7), (500,)])
def test_kernels_of_an_associative_scan_stay_small(shape: tuple[int, ...], dtype: str) -> None:
    """Each level joins what the level below it joined: no kernel looks through the pieces of many."""
    x = np.arange(np.prod(shape)).reshape(shape).astype(dtype) % 5

    def scan(x: Any) -> Any:
        return hg.associative_scan(lambda a, b: a + b, x)

    lowered = hg.jit(scan).lower(x)
    assert max(kernel.count("load(") for kernel in lowered.as_text("kernels").split("\n\n")) <= 30
    np.testing.assert_array_equal(np.asarray(lowered.compile()(x)), np.cumsum(x, 0, dtype=dtype))
