"""The benchmarks themselves: cases compute what they say in every framework at hand, and reports are complete."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import products, report, worker
from benchmarks.cases import CASES
from benchmarks.frameworks import FRAMEWORKS, map_tree
from benchmarks.launches import entry_instructions

SMALL = [name for name, case in CASES.items() if case.nbytes < 100_000]


def _results(framework: str, name: str) -> list[np.ndarray]:
    result = FRAMEWORKS[framework](CASES[name], CASES[name].arguments(np.random.default_rng(1)))()
    return [np.asarray(r) for r in (result if isinstance(result, tuple) else (result,))]


@pytest.mark.parametrize("name", SMALL)
def test_cases_agree_with_numpy(name: str) -> None:
    for got, expected in zip(_results("hologram", name), _results("numpy", name), strict=True):
        assert got.shape == expected.shape and np.allclose(got, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", SMALL)
def test_bytes_are_those_of_arguments_and_results(name: str) -> None:
    sizes: list[int] = []
    map_tree(lambda a: sizes.append(a.nbytes), CASES[name].arguments(np.random.default_rng(1)))
    written = sum(r.nbytes for r in _results("numpy", name))
    assert sum(sizes) <= CASES[name].nbytes <= sum(sizes) + written


def test_the_time_of_a_call_is_measured() -> None:
    calls: list[None] = []
    assert 0 < worker.median_seconds(lambda: calls.append(None), 0.01) < 1e-3 and len(calls) > 100


@pytest.fixture
def results() -> dict[str, Any]:
    def row(name: str, group: str, ours: dict[str, Any]) -> dict[str, Any]:
        theirs = {"time": 2e-6, "first": 0.1, "agrees": True}
        return {"case": name, "group": group, "bytes": 12_000, "floor": 1e-6, "results": {"hologram": ours, "numpy": theirs}}

    fast, wrong, broken = {"time": 1e-6, "first": 0.1, "agrees": True}, {"time": 4e-6, "first": 0.1, "agrees": False}, {"error": "no"}
    return {
        "threads": 2,
        "bandwidth": 12e9,
        "frameworks": ["hologram", "numpy"],
        "cases": [row("add 1000", "add", fast), row("add 10000", "add", wrong), row("gelu", "pipelines", broken)],
        "compile time": [{"case": "gelu", "framework": "hologram", "import": 50.0, "first call": 20.0, "second process": 1.0}],
        "throughput": [{"operations": 1000, "to kernels": 1.5, "first call": 2.5}, {"operations": 10_000, "error": "no"}],
        "launches": [{"case": "gelu", "operations": 9, "canonical": 8, "kernels": 1, "XLA's launches": 2}],
        "memory": [{"case": "gelu", "peak": 6400, "lower bound": 6400, "page faults a call": 0.0}],
    }


def test_a_report_is_complete(results: dict[str, Any], tmp_path: Path) -> None:
    report.write(results, tmp_path)
    assert json.loads((tmp_path / "results.json").read_text())["cases"] == results["cases"]
    assert (tmp_path / "operations.png").stat().st_size > 5_000
    text = (tmp_path / "results.md").read_text()
    for line in (
        "| add 1000 | 1.00 | 1.00 | 2.00 | 0.50 | 1.00 | 12.0 |",
        "| add 10000 | 1.00 | 4.00 WRONG | 2.00 | 2.00 | 4.00 | 3.0 |",
        "| gelu | 1.00 | error | 2.00 |  |  |  |",
        "| gelu | hologram | 50.0 | 20.0 | 1.0 |  |  |",
        "| 1,000 | 1.5 | 2.5 |",
        "| gelu | 9 | 8 | 1 | 2 |",
        "| gelu | 6,400 | 6,400 | 0.0 |",
    ):
        assert line in text.splitlines()


@pytest.fixture
def product_results(results: dict[str, Any]) -> dict[str, Any]:
    ours, theirs = ({"time": t, "first": 0.1, "agrees": True} for t in (2e-3, 4e-3))
    row = {"case": "512x512", "group": "products", "bytes": 3 * 2**20, "flops": 2.0 * 512**3, "floor": 1e-3}
    return results | {"cases": [row | {"results": {"hologram": ours, "numpy": theirs}}], "peak": 268e9}


def test_products_are_compared_with_the_peak(product_results: dict[str, Any], tmp_path: Path) -> None:
    report.write(product_results, tmp_path)
    lines = (tmp_path / "results.md").read_text().splitlines()
    assert "| case | floor | hologram | numpy | ratio | × floor | % of peak |" in lines
    assert "| 512x512 | 1,000.00 | 2,000.00 | 4,000.00 | 0.50 | 2.00 | 50% |" in lines
    assert (tmp_path / "products.png").stat().st_size > 5_000 and not (tmp_path / "operations.png").exists()


def test_the_page_on_products_takes_the_table(product_results: dict[str, Any], tmp_path: Path) -> None:
    page = tmp_path / "products.md"
    page.write_text("before\n<!-- measured -->\nold\n<!-- /measured -->\nafter\n")
    for _ in range(2):
        products.document(product_results, "| new |", tmp_path)
    text = page.read_text()
    assert text.startswith("before\n<!-- measured -->") and text.endswith("<!-- /measured -->\nafter\n")
    assert text.count("| new |") == 1 and "old" not in text and "268 GFLOP/s" in text
    assert (tmp_path / "products.png").exists()
    assert "<!-- measured -->" in (Path(__file__).parents[2] / "docs" / "products.md").read_text()


def test_bfloat16_is_saved_as_float32(tmp_path: Path) -> None:
    import ml_dtypes

    path = worker.save_arrays([np.arange(3).astype(ml_dtypes.bfloat16)], tmp_path / "x.npz")
    assert np.load(path)["arr_0"].dtype == np.float32


def test_a_line_names_what_is_wrong(results: dict[str, Any]) -> None:
    assert "hologram 4.00 WRONG" in report.line(results["cases"][1]) and "hologram error" in report.line(results["cases"][2])


def test_xlas_launches_are_those_of_the_entry_computation() -> None:
    module = """HloModule jit_f

%fused (p: f32[8]) -> f32[8] {
  %p = f32[8]{0} parameter(0)
  ROOT %e = f32[8]{0} exponential(%p)
}

ENTRY %main.5 (x: f32[8], y: f32[8]) -> (f32[8], f32[]) {
  %x = f32[8]{0} parameter(0)
  %c = f32[] constant(0)
  %f = f32[8]{0} fusion(%x), kind=kLoop, calls=%fused
  %r = f32[] reduce(%f, %c), dimensions={0}, to_apply=%add
  ROOT %t = (f32[8]{0}, f32[]) tuple(%f, %r)
}
"""
    assert entry_instructions(module) == 2
