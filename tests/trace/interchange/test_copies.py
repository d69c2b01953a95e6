"""``copy=`` of what makes arrays: when values are copied, when memory is borrowed, and when a needed copy is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import ArgumentError


def test_array_copies_unless_told_otherwise() -> None:
    """As in NumPy: ``copy=None`` and ``False`` borrow the memory, and False refuses what needs a copy."""
    x = np.ones(3, np.float32)
    own, borrowed, strict = hnp.array(x), hnp.array(x, copy=None), hnp.array(x, copy=False)
    x[0] = 5
    assert [float(t[0]) for t in (own, borrowed, strict)] == [1.0, 5.0, 5.0]
    assert hnp.array(x, copy=None, dtype="int32").dtype == hnp.int32
    with pytest.raises(ArgumentError, match="needs a copy, which copy=False forbids"):
        hnp.array(x, copy=False, dtype="int32")


@pytest.mark.parametrize("data", [[1, 2], (1.0,), [], 2.5, 3, 1j, True, np.float32(3), range(3), [np.ones(2)]], ids=repr)
def test_what_is_always_copied_is_refused(data: Any) -> None:
    for make in (hnp.asarray, hnp.array, hg.asarray, np.asarray):
        with pytest.raises(ValueError, match="copy"):
            make(data, copy=False)


def test_copies_of_tensors() -> None:
    x = hnp.ones(3)
    assert hnp.asarray(x, copy=False) is x and hnp.asarray(x, dtype="float32", copy=False) is x
    assert hnp.asarray(hnp.asarray(2.5), dtype="float32", copy=False) == 2.5
    with pytest.raises(ValueError, match="float32 to float16 needs a copy"):
        hnp.asarray(x, dtype="float16", copy=False)
    y = hnp.from_dlpack(x, copy=True)
    y[0] = 7.0
    assert float(x[0]) == 1.0 and hnp.from_dlpack(x, copy=False) is x
