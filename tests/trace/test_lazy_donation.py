"""Lazy programs change an array where it is when nobody else holds its value, and only then."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp

N = 8192  # elements: more bytes than are copied sooner than counted


def realised(x: Any) -> Any:
    hg.eval(x)
    return x


def updated(x: Any, i: Any, value: float) -> Any:
    return realised(x.at[i].set(value))


@pytest.fixture
def index() -> Any:
    """An index in memory, and the program of an update compiled: the call that compiles donates nothing."""
    i = hg.tensor(np.int64(3))
    updated(realised(hnp.zeros(N)), i, 1.0)
    return i


def address(x: Any) -> int:
    return int(x._storage.data)


def test_a_value_that_is_let_go_is_changed_where_it_is(index: Any) -> None:
    x = realised(hnp.zeros(N))
    before = address(x)
    x = x.at[index].set(1.0)
    hg.eval(x)
    assert address(x) == before
    assert np.asarray(x).sum() == 1


HOLDERS: dict[str, Callable[[Any], Any]] = {
    "a Tensor": lambda x: x,
    "a NumPy view": np.asarray,
    "a part of it": lambda x: x[:5],
    "an expression": lambda x: x * 2.0,
    "an expression of an expression": lambda x: (x * 2.0).sum() + 1.0,
    "DLPack": lambda x: np.from_dlpack(x),
    "a memoryview": lambda x: memoryview(np.asarray(x)),
    "a closure of a function that is traced later": lambda x: hg.jit(lambda y: y + x),
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_a_value_that_somebody_holds_stays(index: Any, holder: str) -> None:
    x = realised(hnp.zeros(N))
    held = HOLDERS[holder](x)
    x = x.at[index].set(1.0)
    hg.eval(x)
    found = held(realised(hnp.zeros(N))) if callable(held) else held
    assert np.asarray(found).sum() in (0, 1 if "expression of" in holder else 0)
    assert np.asarray(x).sum() == 1


def test_the_pending_way_to_an_update_stays_right(index: Any) -> None:
    x = realised(hnp.ones(N))
    for _ in range(3):  # the first compiles
        y = x * 3.0
        z = realised(y.at[index].set(0.0))
        assert float(z.sum()) == 3 * (N - 1)
        assert float(y.sum()) == 3 * N
    w = x * 3.0
    del x
    z = realised(w.at[index].set(0.0))
    gc.collect()
    assert float(w.sum()) == 3 * N


def test_borrowed_memory_stays(index: Any) -> None:
    a = np.zeros(N, np.float32)
    x = hnp.asarray(a)
    x = x.at[index].set(1.0)
    hg.eval(x)
    assert a.sum() == 0


def test_a_transform_under_way_keeps_values(index: Any) -> None:
    def f(x: Any) -> Any:
        y = x * x
        hg.eval(y)
        y = y.at[index].set(0.0)
        hg.eval(y)
        return y.sum()

    for _ in range(3):
        g = np.asarray(hg.grad(f)(hnp.full(N, 2.0)))
        assert g[3] == 0 and g.sum() == 4 * (N - 1)
