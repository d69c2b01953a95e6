"""Scalars in the steps of loops: indices and conversions are right for all values, and what is usual takes the short way."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp
from hologram import dtypes
from hologram.backends.llvm.graph import loops
from hologram.backends.llvm.toolchain.target import host
from hologram.ir.interpreter import evaluate

Function = Callable[..., Any]
RNG = np.random.default_rng(0)
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["bfloat16", "float16", "float32", "float64"]
WHOLE = [0, 1, 126, 127, 128, 129, 255, 256, 32767, 32768, 65535, 65536, 2**31 - 1, 2**31, 2**32, 2**62, 2**63 - 1024, 2**63, 2**64]
SPECIAL = [np.nan, np.inf, 1e300, 0.0, 0.3, 0.5, 0.999, 1e-300, *WHOLE, *[w - 0.5 for w in WHOLE[:14]], *[w + 0.5 for w in WHOLE[:14]]]


def _check(f: Function, *args: Any) -> None:
    found = hg.tree.leaves(hg.jit(f)(*args))
    for a, want in zip(found, evaluate(hg.make_graph(f)(*args), [np.asarray(a) for a in args]), strict=True):
        np.testing.assert_array_equal(np.asarray(a), want)


def _each(f: Function, xs: Any) -> Any:
    """``f`` of each element, by a loop whose steps depend on one another."""

    def step(last: Any, x: Any) -> Any:
        y = f(x)
        return last ^ y, y

    return hg.scan(step, f(xs[0]) * 0, xs)


@pytest.mark.parametrize("b", INTEGERS)
@pytest.mark.parametrize("a", FLOATS)
def test_conversions_saturate(a: str, b: str) -> None:
    with np.errstate(all="ignore"):
        xs = np.array([*SPECIAL, *[-x for x in SPECIAL]], float).astype(dtypes.of(a).np)
    _check(lambda xs: _each(lambda x: x.astype(b), xs), xs)


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8"])
def test_results_of_reductions_are_clamped(dtype: str) -> None:
    """A total, a test of all elements, and what is made of them stand where instructions do otherwise."""
    x = np.arange(-3, 57).reshape(5, 12).astype(dtype)
    for reduced in (hnp.sum, hnp.max, hnp.min, hnp.argmax):
        _check(lambda x, r=reduced: hnp.minimum(r(x, 1), 7), x)
        _check(lambda x, r=reduced: hnp.minimum(hnp.maximum(r(x, 1), 0), 7), x)
        _check(lambda x, r=reduced: hnp.minimum(hnp.maximum(x[0][hnp.minimum(r(x, 1), 3)], 0), 5), x)
    _check(lambda x: hnp.clip(hnp.where(hnp.all(x > 0, 1), x.sum(1), x.max(1)), 0, 9), x)


def _read(x: Any, at: Any) -> Any:
    return hg.scan(lambda s, i: (s * 0.5 + x[i], x[i]), 0.0, at)


def _read_window(x: Any, at: Any) -> Any:
    return hg.scan(lambda s, i: (s * 0.5 + hg.lax.dynamic_slice(x, (i,), (3,)).sum(), None), 0.0, at)[0]


def _write(x: Any, at: Any) -> Any:
    return hg.scan(lambda x, i: (x.at[i].set(x[i] + 1), None), x, at)[0]


def _add(x: Any, at: Any) -> Any:
    return hg.scan(lambda x, i: (x.at[i].add(1), None), x, at)[0]


def _clipped(x: Any, at: Any) -> Any:
    return hg.scan(lambda x, i: (x.at[hnp.clip(i, 2, 7)].add(x[hnp.clip(i, 0, 5)]), None), x, at)[0]


@pytest.mark.crossed
@pytest.mark.parametrize("f", [_read, _read_window, _write, _add, _clipped])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_indices_inside_and_outside(f: Function, dtype: str) -> None:
    x = RNG.integers(0, 9, 10).astype(np.float64)
    ends = np.iinfo(dtype)
    at = np.array([3, 9, 10, 11, 0, 127, ends.max, ends.max - 5] + [-1, -9, -10, -11, -12, -128, ends.min, ends.min + 5] * (ends.min < 0), dtype)
    _check(f, x, at)
    for i in at:
        _check(f, x, np.full(2, i))


extremes = st.lists(st.tuples(*[st.integers(-(2**63), 2**63 - 1)] * 3), min_size=1, max_size=8)


@settings(max_examples=30, deadline=None)
@given(extremes, st.booleans())
def test_minima_and_maxima(rows: list[tuple[int, int, int]], is_signed: bool) -> None:
    xs = np.array(rows, np.int64).view(np.int64 if is_signed else np.uint64)

    def f(xs: Any) -> Any:
        def step(c: Any, x: Any) -> Any:
            return (hnp.minimum(c[0], hnp.maximum(x[0], x[1])), hnp.maximum(c[1], hnp.minimum(x[1], x[2]))), c[0]

        return hg.scan(step, (xs[0, 0], xs[0, 1]), xs)

    _check(f, xs)


# --- the code -------------------------------------------------------------------------------------------------------------


def _text(f: Function, *args: Any) -> str:
    text: str = hg.jit(f).lower(*args).as_text("llvm")
    return text[text.index("@graph(") :].partition("\n}")[0]


def _block(text: str, wanted: str) -> str:
    """The first basic block that has some instruction."""
    return next(b for b in re.split(r"^[\w.]+:.*$", text, flags=re.MULTILINE) if re.search(wanted, b))


INDICES = RNG.integers(0, 10, 100)


def test_indices_in_range_take_one_comparison() -> None:
    text = _text(lambda x, at: hg.scan(lambda s, i: (s + x[i], None), 0.0, at)[0], RNG.standard_normal(1000), INDICES)
    block = _block(text, r"load i64")
    assert "icmp ugt i64" in block and "br i1" in block
    assert not re.search("select|smax|smin", block)


@pytest.mark.skipif(host().architecture != "x86_64", reason="an instruction of x86-64")
def test_conversions_take_one_comparison() -> None:
    text = _text(lambda x: hg.scan(lambda s, v: ((s ^ v.astype("int32")) * 3, None), 0, x)[0], RNG.standard_normal(1000))
    block = _block(text, r"load double")
    assert "cvttsd2si64" in block and "llvm.fptosi.sat" not in block


def test_what_is_less_is_chosen_without_a_branch() -> None:
    """Both are values of the program; a clamp, which is usually idle, may become a branch."""
    xs = RNG.integers(0, 100, (2, 300))

    def f(xs: Any) -> Any:
        return hg.scan(lambda s, x: (hnp.minimum(s, x[0]) + x[1], None), 0, (xs[0], xs[1]))[0]

    assert "!unpredictable" in _text(f, xs)
    assert "!unpredictable" not in _text(lambda xs: hg.scan(lambda s, x: (hnp.minimum(s, 7) + x, None), 0, xs)[0], xs[0])


def test_what_a_step_waits_for_is_compared_once() -> None:
    """The value of the last step takes part in one comparison and one choice, between it and what is known before."""
    xs = RNG.integers(0, 100, (4, 300))

    def step(s: Any, x: Any) -> Any:
        return hnp.where(x[0] == x[1], x[3], hnp.maximum(x[2], s)), None

    text = _text(lambda xs: hg.scan(step, 0, tuple(xs[i] for i in range(4)))[0], xs)
    block = _block(text, r"llvm\.expect\.i64")
    (bound,) = re.findall(r"(%\S+) = call i64 @llvm\.expect", block)[:1]
    compared = re.findall(rf"icmp \w+ i64 .*{re.escape(bound)}(?![\w.])", block)
    assert len(compared) == 1
    assert len(re.findall(r"= select", block)) == 3 * len(re.findall(r"@llvm\.expect", block))


@given(st.integers(2, 2**44), st.integers(1, 2**20))
def test_equal_parts(length: int, most: int) -> None:
    part = loops._equal_part(length, min(most, length - 1))
    assert part == min(most, length - 1) or (part < most and length % part == 0 and 3 * part >= min(most, length - 1))
    assert loops._equal_part(1_000_000, 2**18) == 250_000
