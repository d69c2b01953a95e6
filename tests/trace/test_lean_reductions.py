"""Reductions that are recorded on the spot are those that the general function records: the same op, type, shape, value and errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import HologramError
from hologram.ir.leaves import leaf

FUNCTIONS = ("sum", "prod", "max", "min", "any", "all", "argmax", "argmin")
DTYPES = ("float32", "float64", "float16", "int64", "int8", "uint8", "bool", "complex64")
AXES: tuple[Any, ...] = (None, 0, 1, -1, 2, True, 1.0, (0, 1))


def _outcome(f: Callable[[], Any]) -> Any:
    """What a function records, and its value; or the type of its error, and what it says."""
    try:
        found = f()
        node = found._node
        recorded = (node.op, node.attrs, node.shape, node.dtype, [x.dtype for x in node.inputs])
        value = np.asarray(found)
        return recorded, value.dtype, value.shape, value.tobytes()
    except (HologramError, TypeError) as e:
        return type(e), str(e).partition(" (at ")[0]


@given(st.sampled_from(FUNCTIONS), st.sampled_from(DTYPES), st.sampled_from(AXES), st.lists(st.integers(0, 3), min_size=0, max_size=3))
def test_what_is_recorded_again_is_what_was_recorded_first(name: str, dtype: str, axis: Any, shape: list[int]) -> None:
    function = getattr(hnp, name)
    x = hg.tensor(np.arange(int(np.prod(shape))).reshape(shape).astype(dtype))
    first = _outcome(lambda: function.__wrapped__(x, axis))
    for _ in range(3):  # the first of which may be learnt from
        assert _outcome(lambda: function(x, axis)) == first
        assert _outcome(lambda: getattr(x, name)(axis)) == first


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_pending_operand_stays_pending(name: str) -> None:
    function = getattr(hnp, name)
    x = hg.tensor([[1.0, 2.0], [3.0, 4.0]])
    function(x, 0), function(x, 0)
    y = x + 1
    found = function(y, 0)
    below = found._node.inputs[0]
    assert y._storage is None and y._node.op is not leaf and (below is y._node or below.inputs == (y._node,))
    np.testing.assert_array_equal(found, getattr(np, name)(np.asarray(x) + 1, 0))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_traces_and_transforms_see_it(name: str) -> None:
    function = getattr(hnp, name)
    x = hg.tensor(np.arange(12.0, dtype=np.float32).reshape(3, 4) - 5)
    function(x, 0), function(x, 0)
    np.testing.assert_array_equal(hg.jit(lambda v: function(v, 0))(x), function(x, 0))
    np.testing.assert_array_equal(hg.vmap(lambda v: function(v, 0))(x), function(x, 1))


def test_a_weak_operand_keeps_its_type() -> None:
    number = hg.asarray(3.5) * 2
    assert [hnp.sum(number).dtype, hnp.sum(number).dtype] == [np.dtype("float32")] * 2


def test_long_chains_are_realised() -> None:
    x = hg.tensor([1.0, 2.0])
    for _ in range(3000):
        x = x.sum() + hg.tensor([0.0, 0.0])
        x = x * 0.5
    assert x._node.depth <= 1002 and float(x[0]) == 1.5


@pytest.mark.parametrize(
    "exponent", [2, 16, 17, -17, 2.5, 2.0, 17.0, 0.5, -0.5, float("inf"), float("nan"), True, 1 + 1j, np.float32(3), np.int64(20)]
)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "complex64"])
def test_powers_recorded_again_are_those_recorded_first(dtype: str, exponent: Any) -> None:
    x = hg.tensor(np.array([1, 2, 3]).astype(dtype))
    for other in (2.75, 19, 40.5):  # which teach the operator
        _outcome(lambda other=other: x**other)
    first = _outcome(lambda: hnp.power(x, exponent))
    for _ in range(3):
        assert _outcome(lambda: x**exponent) == first
