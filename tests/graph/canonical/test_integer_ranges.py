"""Integer ranges hold every value that an op may give."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hologram import dtypes
from hologram.graph.canonical.integer_ranges import joined, range_of, type_range
from hologram.ir.leaves import input_
from hologram.ir.node import Builder

BINARY = ("add", "sub", "mul", "max", "min", "rem", "floordiv", "and", "shr", "lt", "le", "eq", "ne")
RANGES = st.tuples(st.integers(-128, 127), st.integers(-128, 127)).map(lambda r: (min(r), max(r)))


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("name", BINARY)
@given(x=RANGES, y=RANGES)
def test_binary_ops_stay_within(name: str, dtype: str, x: tuple[int, int], y: tuple[int, int]) -> None:
    d = dtypes.of(dtype)
    low = type_range(d)[0]  # type: ignore[index]
    x, y = ((a - low - 128, b - low - 128) for a, b in (x, y))
    build = Builder()
    operands = [build(input_, (), (i, (), dtype, None)) for i in range(2)]
    node = build.make(name, *operands)
    found = range_of(node, [x, y])
    assert found is not None
    first, second = np.meshgrid(*(np.unique(np.linspace(a, b, 9).astype(int)).astype(d.np) for a, b in (x, y)))
    if name in ("rem", "floordiv"):
        first, second = first[second != 0], second[second != 0]
    with np.errstate(all="ignore"):
        values = node.op.reference(first, second)
    assert all(found[0] <= int(v) <= found[1] for v in values.ravel())


@pytest.mark.parametrize("name", ["and", "or", "max"])
@pytest.mark.parametrize("x", [(0, 0), (1, 1), (0, 1)])
@pytest.mark.parametrize("y", [(0, 0), (1, 1), (0, 1)])
def test_truth_values(name: str, x: tuple[int, int], y: tuple[int, int]) -> None:
    build = Builder()
    node = build.make(name, *(build(input_, (), (i, (), "bool", None)) for i in range(2)))
    values = {int(node.op.reference(np.bool_(a), np.bool_(b))) for a in x for b in y}
    assert range_of(node, [x, y]) == (min(values), max(values))


def test_casts_that_lose_bits_have_the_range_of_their_type() -> None:
    build = Builder()
    node = build.make("cast", build(input_, (), (0, (), "int64", None)), attrs=("int8",))
    assert range_of(node, [(0, 100)]) == (0, 100)
    assert range_of(node, [(0, 300)]) == (-128, 127)


def test_what_is_not_a_number_has_no_range() -> None:
    build = Builder()
    x = build(input_, (), (0, (3,), "float32", None))
    assert range_of(build.make("neg", x), [None]) is None
    assert range_of(build.make("lt", x, x), [None, None]) == (0, 1)
    assert joined([(0, 1), None]) is None


def test_counters_of_elements_end_before_the_extent() -> None:
    build = Builder()
    node = build.make("iota", attrs=((4, 5), 1, "int64"))
    assert range_of(node, []) == (0, 4)
    assert range_of(build.make("pad", node, build.const(-1, dtypes.int64), attrs=((0, 0), (1, 1))), [(0, 4), (-1, -1)]) == (-1, 4)
