"""What pending values are kept for: the bits of an expression do not depend on how often its parts were computed before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.trace import lazy

X, Y, Z = np.random.default_rng(0).standard_normal((3, 40)).astype(np.float32)

SUMS: dict[str, Callable[[Any], Any]] = {
    "a sum": lambda p: p + Z,
    "a difference": lambda p: Z - p,
    "a moved product": lambda p: p[::-1] + Z,
    "a negated product": lambda p: Z - (-p),
    "a sum of many": lambda p: (p.reshape(8, 5)).sum(1),
}


@pytest.mark.parametrize("name", SUMS)
def test_a_product_is_as_unrounded_at_each_realisation(name: str) -> None:
    product = hg.tensor(X) * hg.tensor(Y)
    expected = np.asarray(hg.jit(lambda x, y: SUMS[name](x * y))(X, Y))
    for _ in range(4):
        np.testing.assert_array_equal(np.asarray(SUMS[name](product)), expected)


def test_factors_are_computed_at_most_twice() -> None:
    counted: list[int] = []

    def expensive(x: Any) -> Any:
        return hnp.exp(hnp.sin(x))

    factor = expensive(hg.tensor(X))
    product = factor * hg.tensor(Y)
    for _ in range(3):
        hg.eval(product + Z)
        counted.append(factor._node.op.name == "leaf")
    assert counted == [False, True, True]


def test_a_chain_of_products_is_not_computed_anew_each_time() -> None:
    y = hg.tensor(X)
    for _ in range(50):
        y = y * hg.tensor(Y)
        hg.eval(y + Z)
    assert len(lazy._Walk([(y + Z)._node]).order) <= 8
