"""The SDK's examples do what they say, and its benchmark measures what it says."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import hologram as hg
from benchmarks import sdk
from examples import ffi_vector_add, sdk_basics
from hologram.sdk.table import ROWS


def test_the_line_is_the_one_of_least_squares(capsys: pytest.CaptureFixture[str]) -> None:
    x, y = sdk_basics.points(2000)
    with hg.Executor("cpu") as executor:
        sdk_basics.tour(executor)
        slope, intercept, loss = sdk_basics.fit(executor, x, y, 80, 0.5)
    np.testing.assert_allclose([slope, intercept], np.polyfit(x, y, 1), atol=1e-4)
    np.testing.assert_allclose(loss, np.mean((slope * x + intercept - y) ** 2), rtol=1e-4)
    out = capsys.readouterr().out
    assert "boundary   3072 float32" in out and "class 7" in out
    assert "a wrapped array, changed in place: [ 0. 10. 20. 30.]" in out


def test_vectors_are_added_by_handle(capsys: pytest.CaptureFixture[str]) -> None:
    assert ffi_vector_add.added([1.0, 2.5], [3.0, -1.0]) == [4.0, 1.5]
    x, y = np.random.default_rng(0).standard_normal((2, 100)).astype(np.float32)
    np.testing.assert_array_equal(ffi_vector_add.added_bytes(x, y), x + y)
    ffi_vector_add.main()
    assert "by JSON:  [11.0, 22.0, 33.0]" in capsys.readouterr().out


def test_every_op_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "sdk.md").read_text()
    assert not [name for name in ROWS if not re.search(rf"`[^`]*\b{name}\b[^`]*`", page)]


def _once(calls: dict[str, Callable[[], object]]) -> dict[str, object]:
    return {name: call() for name, call in calls.items()}


def test_the_benchmark_measures_what_it_says() -> None:
    with hg.Executor("cpu") as executor:
        for op in ("add", "sub", "mul", "div", "relu"):
            found = _once(sdk.element_wise(executor, op, 100))
            assert {"hologram", "NumPy"} <= set(found)
        for _, calls in sdk.transfers(executor, 100):
            _once(calls)
        _once(sdk.lifetimes(executor))
    best = sdk.best_of({"nothing": lambda: None}, 2)
    assert 0 < best["nothing"] < 1e-4
    assert sdk.table(["a", "b"], [["1", "2"]]) == "| a | b |\n| --- | --- |\n| 1 | 2 |"
