"""Vertical reductions on the CPU: iterations are equally long where a number of columns about as large as usual goes into the width."""

from __future__ import annotations

import re

import numpy as np
import pytest

import hologram as hg
from hologram.graph.schedule.choose import COLUMNS, _even_columns


def _parallel(width: int, dtype: str) -> tuple[int, int, bool]:
    """Iterations of the kernel of a sum of columns, columns of each, and whether the last ones are fewer."""
    x = np.ones((100, width), dtype)
    text = hg.jit(lambda x: x.sum(0)).lower(x).as_text("kernels")
    match = re.search(r"parallel p from 0 count (\d+)\n +lanes t from \S+ count (\d+)( below)?", text)
    assert match is not None, text
    return int(match[1]), int(match[2]), match[3] is not None


@pytest.mark.parametrize(("width", "dtype", "columns"), [(400, "float64", 200), (400, "float32", 80), (1000, "float64", 200), (1024, "float32", 128)])
def test_iterations_are_equally_long(width: int, dtype: str, columns: int) -> None:
    assert _parallel(width, dtype) == (width // columns, columns, False)
    x = np.random.default_rng(0).standard_normal((100, width)).astype(dtype)
    np.testing.assert_allclose(np.asarray(hg.jit(lambda x: x.sum(0))(x)), x.sum(0), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("width", [397, 1002])
def test_no_number_goes_into_the_width(width: int) -> None:
    assert _parallel(width, "float64") == (-(-width // COLUMNS), COLUMNS, True)


@pytest.mark.parametrize("itemsize", [1, 4, 16])
@pytest.mark.parametrize("about", [1, 2, 3, 64, COLUMNS])
def test_iterations_have_columns_however_few_are_asked_for(about: int, itemsize: int) -> None:
    assert all(_even_columns(width, itemsize, about) >= 1 for width in range(1, 300))
