"""Where rules make bits depend on which numbers are operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.trace import lazy
from hologram.trace.lazy_programs.value_rules import depends_on_values

X, Y = (hg.tensor(np.arange(5, dtype=np.float32)) for _ in range(2))
SHARED = X * Y

GRAPHS: dict[str, tuple[Callable[[], Any], bool]] = {
    "no product": (lambda: hnp.sin(X) + Y, False),
    "a product in a sum": (lambda: X * Y + X, False),
    "a product that is moved": (lambda: (X * Y)[::-1] + X, False),
    "a product with two users": (lambda: hnp.stack([SHARED + X, SHARED]), False),
    "two products in a sum": (lambda: X * X + Y * Y, False),
    "a sum of products": (lambda: (X * Y).sum(), False),
    "a chosen product in a sum": (lambda: hnp.where(X > 1, X * Y, Y) + X, True),
    "a chosen product that is negated and moved": (lambda: X - (-hnp.where(X > 1, X * Y, Y))[::-1], True),
    "a sum of chosen products": (lambda: hnp.where(X > 1, X * Y, Y).sum(), True),
    "a chosen square": (lambda: hnp.where(X > 1, X**2, Y).sum(), True),
    "a chosen array": (lambda: hnp.where(X > 1, X, Y).sum(), False),
    "a chosen product": (lambda: hnp.where(X > 1, X * Y, Y), False),
    "integers": (lambda: (X.astype(int) * 3 + X.astype(int) * 2).sum(), False),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_dependence_on_values(name: str) -> None:
    make, expected = GRAPHS[name]
    assert depends_on_values(lazy._Walk([make()._node]).order) == expected
