"""Joins of many pending values: lists that grow compile nothing, bits are those of one program, and a join that comes again gets its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.settings import override
from hologram.trace.lazy_programs import joins

X = np.linspace(0.5, 1.5, 700, dtype=np.float32)

_ITEMS: dict[str, Callable[[Any, int], Any]] = {
    "products": lambda x, i: x * (i + 1.25),
    "negated products": lambda x, i: -(x * (i + 1.25)),
    "functions": lambda x, i: hnp.exp(x * (0.5 / (i + 1))),
    "sums of products": lambda x, i: x * (i + 1.25) + x[::-1] * 0.3,
    "transposed": lambda x, i: hnp.sin(x.reshape(7, 100) * (i + 1.25)).T,
    "values": lambda x, i: hg.block_until_ready(x * (i + 1.25)),
    "numbers": lambda x, i: (x * (i + 1.25)).sum(),
    "comparisons": lambda x, i: x > 0.7 + i * 0.01,
}
_JOINS: dict[str, Callable[[Any], Any]] = {"stack": hnp.stack, "last axis": lambda xs: hnp.stack(xs, axis=-1), "hstack": hnp.hstack}
_IN_NUMPY: dict[str, Callable[[Any], Any]] = {"stack": np.stack, "last axis": lambda xs: np.stack(xs, axis=-1), "hstack": np.hstack}


@pytest.mark.parametrize("join", _JOINS)
@pytest.mark.parametrize("name", _ITEMS)
def test_growing_lists_have_the_bits_of_one_program(name: str, join: str) -> None:
    x, items = hg.tensor(X), []
    for i in range(12):
        items.append(_ITEMS[name](x, i))
        found = np.asarray(_JOINS[join](items))
        if i in (3, 7, 11):
            wanted = hg.jit(lambda x, n=i: _JOINS[join]([_ITEMS[name](x, j) for j in range(n + 1)]), dynamic=False)
            if name != "values":
                assert found.tobytes() == np.asarray(wanted(x)).tobytes()
            arrays = [np.asarray(_ITEMS[name](x, j)) for j in range(i + 1)]
            np.testing.assert_array_equal(found, _IN_NUMPY[join](arrays))


@pytest.mark.parametrize("op_by_op", [False, True])
def test_growing_lists_compile_nothing(op_by_op: bool, compilations: list[Any]) -> None:
    with override(op_by_op=op_by_op, cache=False):
        x, state, states = hg.tensor(np.tile(X, 40)), hg.tensor(np.tile(X, 40)), []
        for i in range(joins.MIN_OPERANDS + 30):
            if i == joins.MIN_OPERANDS:
                compilations.clear()
            state = hnp.sin(state) + x * 0.25
            states.append(state)
            np.asarray(hnp.stack(states))
        assert len(compilations) <= 1


def test_a_product_that_is_joined_is_still_taken_unrounded_by_sums() -> None:
    def products() -> list[Any]:
        x = hg.tensor(X)
        return [x * (1.1 + i) for i in range(6)]

    def sums(items: list[Any]) -> list[bytes]:
        return [np.asarray(y + hg.tensor(X[::-1].copy())).tobytes() for y in items] + [np.asarray(1.0 - (-y)).tobytes() for y in items]

    apart = sums(products())
    items = products()
    for _ in range(3):
        np.asarray(hnp.stack(items))
    assert sums(items) == apart


def test_a_join_that_comes_again_has_a_program(compilations: list[Any]) -> None:
    with override(op_by_op=False, cache=False):
        x = hg.tensor(X)
        first = np.asarray(hnp.stack([hnp.exp(x * (i + 0.3)) for i in range(8)]))
        for _ in range(joins.RUNS):
            compilations.clear()
            np.testing.assert_array_equal(np.asarray(hnp.stack([hnp.exp(x * (i + 0.3)) for i in range(8)])), first)
        assert len(compilations) == 1
        np.testing.assert_array_equal(np.asarray(hnp.stack([hnp.exp(x * (i + 0.3)) for i in range(8)])), first)
        assert len(compilations) == 1


def test_large_joins_are_compiled(compilations: list[Any]) -> None:
    x = hg.tensor(np.ones(1 << 20, np.float32))
    np.asarray(hnp.stack([hnp.exp(x * (i + 0.3)) for i in range(6)]))
    assert len(compilations) == 1 and len(compilations[0].outputs) == 1
