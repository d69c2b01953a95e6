"""The code that decides on numbers computes what polynomials with divisions give, and requires what it is told to."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hologram.backends.native.code.number_code import MAX_REGISTERS
from hologram.backends.native.module import module
from hologram.backends.native.number_code import NumberCodeBuilder, NumberCodeError
from hologram.ir.symbolic import evaluator, floordiv, mod, var
from tests.support.runtime_programs import natively

pytestmark = natively

A, B = var("a", 2), var("b", 2)


@st.composite
def polynomials(draw: Any, depth: int = 3) -> Any:
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from([A, B, 1, 3, -2, 7]))
    x, y = draw(polynomials(depth=depth - 1)), draw(polynomials(depth=depth - 1))
    kind = draw(st.sampled_from(["add", "sub", "mul", "floordiv", "mod"]))
    divisor = draw(st.integers(2, 9))
    made = {
        "add": lambda: x + y,
        "sub": lambda: x - y,
        "mul": lambda: x * y,
        "floordiv": lambda: floordiv(x, divisor),
        "mod": lambda: mod(x, divisor),
    }
    return made[kind]()


def decided(build: NumberCodeBuilder, numbers: list[int]) -> list[int] | None:
    """The registers; None where the numbers are not taken."""
    record = build.record([], [])
    registers = (ctypes.c_int64 * MAX_REGISTERS)(*numbers)
    decide = module().function("hg_number_code_decide", ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)
    return list(registers) if decide(ctypes.addressof(record), ctypes.addressof(registers)) else None


@given(polynomials(), st.integers(2, 200), st.integers(2, 200))
def test_polynomials_have_their_values(x: Any, a: int, b: int) -> None:
    build = NumberCodeBuilder(2, {"a": 0, "b": 1})
    at = build.register(x)
    found = decided(build, [a, b])
    assert found is not None and found[at] == evaluator(x, ["a", "b"])(a, b)


@given(polynomials(), polynomials(), st.integers(2, 50), st.integers(2, 50))
def test_conditions_are_those_of_python(x: Any, y: Any, a: int, b: int) -> None:
    left, right = evaluator((x, y), ["a", "b"])(a, b)
    for require, holds in (("require_equal", left == right), ("require_at_least", left >= right)):
        build = NumberCodeBuilder(2, {"a": 0, "b": 1})
        getattr(build, require)(build.register(x), build.register(y))
        assert (decided(build, [a, b]) is not None) == holds


@pytest.mark.parametrize("a", [2**31 + 1, 2**40, -(2**40)])
def test_products_that_might_not_be_exact_are_not_taken(a: int) -> None:
    build = NumberCodeBuilder(2, {"a": 0, "b": 1})
    build.register(A * B)
    assert decided(build, [a, 3]) is None


def test_what_there_is_no_code_for() -> None:
    build = NumberCodeBuilder(1, {"a": 0})
    with pytest.raises(NumberCodeError, match="b is none"):
        build.register(B + 1)
    with pytest.raises(NumberCodeError, match="large"):
        build.register(1 << 62)
    with pytest.raises(NumberCodeError, match="too many"):
        for n in range(MAX_REGISTERS):
            build.register(n)
