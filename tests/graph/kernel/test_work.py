"""The work of kernels: operations and bytes as one would count them by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp
from hologram import dtypes
from hologram.graph.kernel.ir import Buffer, Kernel, Loop, Store
from hologram.graph.kernel.work import work_of
from hologram.ir.instruction import Ins
from hologram.ir.symbolic import var
from hologram.report.data.overview import amount, duration, percent, quantity
from tests.support.pages.report_programs import chain


def kernels(f: Any, *args: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = hg.explain(f)(*args).data()["parts"][0]["kernels"]
    return found


@pytest.mark.parametrize(("m", "n", "k"), [(64, 64, 64), (120, 200, 96), (256, 64, 128)])
def test_products_of_matrices(m: int, n: int, k: int) -> None:
    (kernel,) = kernels(lambda a, b: a @ b, np.ones((m, k), np.float32), np.ones((k, n), np.float32))
    assert kernel["flops"] == pytest.approx(2 * m * n * k, rel=0.1) and kernel["title"] == "matrix product"
    assert kernel["bytes"] == 4 * (m * k + k * n + m * n)


def test_elements_are_counted_once_and_only_those_that_are_read() -> None:
    x = np.ones((1000, 8), np.float32)
    (kernel,) = kernels(lambda x: x[:10] * 2.0 + x[:10], x)
    assert kernel["bytes"] == 2 * 4 * 80 and kernel["flops"] in (80, 160)


def test_loops_that_end_early_are_counted_as_far_as_they_go() -> None:
    x = np.ones((256, 256), np.float32)
    full = sum(k["flops"] for k in kernels(lambda a, b: a @ b, x, x))
    half = sum(k["flops"] for k in kernels(lambda a, b: hnp.tril(a) @ b, x, x))
    assert half <= 1.5 * full


def test_kernels_of_loops_run_as_often_as_the_loop() -> None:
    def looped(x: Any) -> Any:
        return hg.fori_loop(0, 12, lambda i, c: hnp.cumsum(c), x)

    assert [k["times"] for k in kernels(looped, np.ones(64, np.float32)) if k["path"]] == [12]


@given(st.integers(1, 40), st.integers(1, 12), st.integers(0, 12), st.integers(1, 200))
def test_iterations_are_counted_up_to_the_limit(outer: int, extent: int, step: int, limit: int) -> None:
    """Against a count by hand: tiles of ``extent`` that start at multiples of ``step``, and end at ``limit``."""
    around, inside = Loop("parallel", "p", 0, outer), Loop("serial", "q", var("p") * step, extent, limit)
    out = Buffer("b0", dtypes.float32, "out", 10_000)
    inside.body = [Store(out, var("q"), Ins.const(1.0, dtypes.float32))]
    around.body = [inside]
    kernel = Kernel()
    kernel.params, kernel.body = [out], [around]
    runs = sum(max(0, min(p * step + extent, limit) - p * step) for p in range(outer))
    assert work_of(kernel, {}).written == pytest.approx(4 * runs)


def test_large_programs_have_bounded_reports() -> None:
    data = hg.explain(chain(150))(np.ones((8, 8), np.float32), np.ones((8, 8), np.float32)).data()
    (part,) = data["parts"]
    assert len(part["stages"][0]["nodes"]) > 600 and sum(map(len, part["code"]["texts"])) <= 500_000


def test_numbers_have_three_digits() -> None:
    assert [duration(s) for s in (0.00123456, 2.5e-6, 3e-9, 12.0)] == ["1.23 ms", "2.5 µs", "3 ns", "12 s"]
    assert [amount(n) for n in (88, 262144, 1572864, 1023 * 2**20)] == ["88 bytes", "256 KiB", "1.5 MiB", "1023 MiB"]
    assert [quantity(n) for n in (12, 33816576, 2.5e9)] == ["12", "33.8 million", "2.5 billion"]
    assert [percent(x) for x in (0.323, 0.004, 1.0)] == ["32 %", "0.4 %", "100 %"]
