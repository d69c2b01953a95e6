"""Constants that are packed without NumPy have the bits that NumPy gives them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hologram import dtypes
from hologram.dtypes import DType
from hologram.errors import HologramError
from hologram.ir.node import const_attrs
from hologram.trace import recorder

NUMBERS = (
    0,
    0.0,
    -0.0,
    0j,
    False,
    True,
    1,
    -1,
    2.5,
    float("nan"),
    -float("nan"),
    float("inf"),
    -float("inf"),
    np.float32(-0.0),
    np.int8(0),
    2**53 - 1,
)


def _bits(value: Any, dtype: DType) -> Any:
    return recorder.constant(value, dtype).attrs


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
@given(st.one_of(st.sampled_from(NUMBERS), st.integers(-128, 127), st.floats(width=32), st.floats()))
def test_bits_are_numpys(dtype: DType, value: Any) -> None:
    for _ in range(2):  # the second of which may be remembered
        try:
            found = _bits(value, dtype)
        except HologramError:  # which the type does not hold
            return
        with np.errstate(all="ignore"):
            assert found == const_attrs(value, dtype)
