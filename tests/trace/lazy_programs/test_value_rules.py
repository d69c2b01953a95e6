"""Where rules make bits depend on which numbers are operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.trace import lazy
from hologram.trace.lazy_programs.structure import places
from hologram.trace.lazy_programs.value_rules import depends_on_values

X, Y = (hg.tensor(np.arange(5, dtype=np.float32)) for _ in range(2))
SHARED = X * Y
COUNTED = hnp.arange(5)

GRAPHS: dict[str, tuple[Callable[[], Any], bool]] = {
    "no product": (lambda: hnp.sin(X) + Y, False),
    "a product in a sum": (lambda: X * Y + X, False),
    "a product that is moved": (lambda: (X * Y)[::-1] + X, False),
    "a product with two users": (lambda: hnp.stack([SHARED + X, SHARED]), False),
    "two products in a sum": (lambda: X * X + Y * Y, False),
    "a sum of products": (lambda: (X * Y).sum(), False),
    "a product that data choose": (lambda: hnp.where(X > Y, X * Y, Y) + X, False),
    "a product that numbers choose": (lambda: hnp.where(hnp.arange(5) > 3, X * Y, Y) + X, True),
    "a product that a moved number chooses": (lambda: X - (-hnp.where(hnp.astype(X, int) > 7, X * Y, Y))[::-1], True),
    "a sum of products that numbers choose": (lambda: hnp.where(COUNTED * 2 > 6, X * Y, Y).sum(), True),
    "a choice by a number of terms": (lambda: hnp.where(hnp.broadcast_to(hnp.asarray(2), (5,)).sum() > 3, X * Y, Y).sum(), True),
    "a square that data choose": (lambda: hnp.where(X > Y, X**2, Y).sum(), False),
    "a choice between what may be the same": (lambda: hnp.where(X > Y, *[hnp.pad(X, p)[:5] * X for p in ((1, 0), (0, 1))]).sum(), True),
    "a choice by what may be the same": (lambda: hnp.where(hnp.greater(*[hnp.pad(X, p)[:5] for p in ((1, 0), (0, 1))]), X * Y, Y).sum(), True),
    "a difference of what may be the same product": (lambda: hnp.subtract(*[hnp.pad(X, p)[:5] * Y for p in ((1, 0), (0, 1))]), True),
    "a difference of what is moved": (lambda: hnp.subtract(*[hnp.pad(X, p)[:5] for p in ((1, 0), (0, 1))]), False),
    "integers that may be the same": (lambda: hnp.where(X > Y, X * Y, Y).sum() + (hnp.arange(5) * 7 - hnp.arange(5) * 8)[0], False),
    "an array that numbers choose": (lambda: hnp.where(hnp.arange(5) > 3, X, Y).sum(), False),
    "a chosen product": (lambda: hnp.where(hnp.arange(5) > 3, X * Y, Y), False),
    "a converted number": (lambda: X + hnp.astype(hnp.asarray(7), "float32"), True),
    "integers": (lambda: (X.astype(int) * 3 + X.astype(int) * 2).sum(), False),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_dependence_on_values(name: str) -> None:
    """Where all numbers vary."""
    make, expected = GRAPHS[name]
    order = lazy._Walk([make()._node]).order
    assert depends_on_values(order, {node for node, names in places(order) if names}) == expected
    assert not depends_on_values(order, set())


def test_choices_of_choices_are_walked_once() -> None:
    x = X * Y
    for _ in range(60):
        x = hnp.where(X > Y, x, -x)
    order = lazy._Walk([(x + Y)._node]).order
    assert not depends_on_values(order, {node for node, names in places(order) if names})
