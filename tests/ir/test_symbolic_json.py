"""Symbolic integers as JSON: the same integer comes back, and data of no integer is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hologram.ir.symbolic import Int, floordiv, mod, var
from hologram.ir.symbolic_json import Malformed, decode, encode

VARIABLES = {"n": var("n", 2), "m": var("m", 2, 100)}
INTEGERS = st.recursive(
    st.one_of(st.integers(-(2**10), 2**10), st.sampled_from(list(VARIABLES.values()))),
    lambda of: st.one_of(
        st.tuples(of, of).map(lambda p: p[0] + p[1]),
        st.tuples(of, of).map(lambda p: p[0] * p[1]),
        st.tuples(of, st.integers(1, 9)).map(lambda p: floordiv(*p)),
        st.tuples(of, st.sampled_from([3, VARIABLES["m"], VARIABLES["n"] + 1])).map(lambda p: mod(*p)),
    ),
    max_leaves=5,
)


def nothing(divisor: Int) -> None:
    pass


@given(INTEGERS)
def test_integers_come_back(n: Int) -> None:
    data = json.loads(json.dumps(encode(n)))
    assert decode(data, VARIABLES.__getitem__, nothing) == n


@pytest.mark.parametrize(
    "data",
    [None, 1.0, True, "n", [], {}, 2**70, [1], [[]], [["n"]], [[1.0, "n"]], [[1, 2]], [[1, ["*", 1, 2]]], [[1, ["//", 1]]], [[1, ["//", "n", 2]]]],
)
def test_other_data_is_refused(data: Any) -> None:
    with pytest.raises(Malformed):
        decode(data, VARIABLES.__getitem__, nothing)


def test_deep_and_large_data_is_refused() -> None:
    deep: Any = 1
    for _ in range(50):
        deep = [[1, ["//", deep, 2]]]
    for data in (deep, [[1, "n"]] * 5000, [[1, *["n"] * 20]]):
        with pytest.raises(Malformed):
            decode(data, VARIABLES.__getitem__, nothing)
