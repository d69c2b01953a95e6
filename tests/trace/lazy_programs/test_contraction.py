"""Where contraction makes bits depend on a program's form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.trace import lazy
from hologram.trace.lazy_programs.contraction import depends_on_form

X, Y = (hg.tensor(np.arange(5, dtype=np.float32)) for _ in range(2))
SHARED = X * Y

GRAPHS: dict[str, tuple[Callable[[], Any], bool, bool]] = {  # whether it depends on the form, where sizes are operands, and where integers are
    "no product": (lambda: hnp.sin(X) + Y, False, False),
    "a product": (lambda: X * Y, False, False),
    "a product in a sum": (lambda: X * Y + X, False, False),
    "a product that is moved": (lambda: (X * Y)[::-1] + X, True, False),
    "a product with two users": (lambda: hnp.stack([SHARED + X, SHARED]), True, False),
    "a product with two users that do not add": (lambda: hnp.stack([hnp.maximum(SHARED, X), SHARED]), False, False),
    "two products in a sum": (lambda: X * X + Y * Y, True, True),
    "a product and what ends in one": (lambda: X * Y - hnp.exp(X), True, True),
    "a negated product": (lambda: -(X * X) + Y * Y, True, True),
    "a chosen product": (lambda: hnp.where(X > 1, X * Y, Y) + X, True, True),
    "a sum of products": (lambda: (X * Y).sum(), True, False),
    "a running sum of exponentials": (lambda: hnp.cumsum(hnp.exp(X)), True, False),
    "a maximum of products": (lambda: (X * Y).max(), False, False),
    "a sum of sines": (lambda: hnp.sin(X).sum(), False, False),
    "complex numbers": (lambda: X * 1j + Y, True, True),
    "integers": (lambda: (X.astype(int) * 3 + X.astype(int) * 2).sum(), False, False),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_dependence_on_form(name: str) -> None:
    make, by_sizes, by_integers = GRAPHS[name]
    walk = lazy._Walk([make()._node])
    assert depends_on_form(walk.order, walk.roots, True) == by_sizes
    assert depends_on_form(walk.order, walk.roots, False) == by_integers
