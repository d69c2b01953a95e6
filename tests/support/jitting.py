"""What the tests of jitted functions share."""

from __future__ import annotations

import functools
from collections import namedtuple
from typing import Any

import numpy as np
import pytest

import hologram as hg
from hologram.backends.native.module import why_not_native
from hologram.trace import tree

X = np.arange(6, dtype=np.float32)
Y = np.array([1.0, -1.0, 2.0, 0.5, 3.0, -2.0], np.float32)
Point = namedtuple("Point", "x y")


def close(got: Any, want: Any) -> None:
    for g, w in zip(tree.leaves(got), tree.leaves(want), strict=True):
        w = np.asarray(w)
        assert type(g) is hg.Tensor and g.shape == w.shape and g.dtype == w.dtype
        np.testing.assert_allclose(np.asarray(g), w, rtol=1e-6)


class Counted:
    """A function that knows how often it was traced."""

    def __init__(self, f: Any) -> None:
        self.f, self.count = f, 0
        functools.update_wrapper(self, f)

    def __call__(self, *args: Any, **options: Any) -> Any:
        self.count += 1
        return self.f(*args, **options)


native_only = pytest.mark.skipif(why_not_native() is not None, reason=str(why_not_native()))
