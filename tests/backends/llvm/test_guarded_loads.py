"""Loads of which some lanes, rows or both are outside: against NumPy, at every width of vectors and around it, as code for each level of x86-64."""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.backends.llvm.toolchain.target import _LEVELS, _features_of
from hologram.settings import override
from tests.support.graphs.guarded_programs import GUARDED

HERE = llvm.get_host_cpu_features()
LEVELS = [level for level in _LEVELS if all(HERE.get(f, True) for f in _features_of(level))] if "sse2" in HERE else [""]
WIDTHS = (3, 5, 7, 8, 12, 15, 17, 24, 31, 40)


@pytest.mark.crossed
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8])
@pytest.mark.parametrize("level", LEVELS)
def test_guarded_loads(level: str, dtype: Any) -> None:
    rng = np.random.default_rng(0)
    with override(target=level, cache=False):
        for width in WIDTHS:
            x = rng.integers(-9, 9, (3, width)).astype(dtype)
            for name, got in hg.jit(lambda x: {n: f(hnp, x) for n, f in GUARDED.items()})(x).items():
                np.testing.assert_array_equal(got, GUARDED[name](np, x).astype(got.dtype), err_msg=f"{name} of {width} columns")
