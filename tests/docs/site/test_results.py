"""The page of measured figures, with results of benchmarks and without."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from docs.site import results

ROW = {"case": "gelu 1000", "group": "pipelines", "bytes": 8000, "flops": 0.0, "floor": 1e-6}
MEASURED: dict[str, Any] = {
    "machine": "a machine",
    "threads": 2,
    "bandwidth": 5e10,
    "frameworks": ["hologram", "numpy", "jax"],
    "cases": [
        ROW
        | {"results": {"hologram": {"time": 2e-6, "agrees": True}, "numpy": {"time": 8e-6, "agrees": True}, "jax": {"time": 1e-6, "agrees": False}}},
        ROW | {"case": "tanh 1000", "results": {"hologram": {"error": "no"}, "numpy": {"time": 8e-6, "agrees": True}}},
    ],
}


def test_figures_of_the_readme_are_read() -> None:
    machine, groups = results.from_readme((results.ROOT / "README.md").read_text())
    assert "2026" in machine and set(groups) == set(results.SUBJECTS)
    rows = {row.case: row.times for rows in groups.values() for row in rows}
    assert all(results.OURS in times and min(times.values()) > 0 for times in rows.values()) and len(rows) > 40
    assert [r.case for r in groups["Calls with eight elements"]][0] == "dispatch add n=8" and "matmul 64" in rows


def test_wrong_results_are_left_out() -> None:
    (rows,) = results.from_results(MEASURED).values()
    assert rows[0].times == pytest.approx({"Hologram": 2.0, "NumPy": 8.0, "floor": 1.0}) and "Hologram" not in rows[1].times


def test_operations_are_grouped_by_size() -> None:
    time = {"results": {"hologram": {"time": 1e-6, "agrees": True}}}
    cases = [
        ROW | time | {"case": case, "group": group}
        for case, group in (("exp 1000", "exp"), ("exp 10000", "exp"), ("multiply add 1000", "multiply add"))
    ]
    cases += [ROW | time | {"case": f"gelu {n}"} for n in range(5)]
    groups = results.from_results({"cases": cases})
    assert {name: len(rows) for name, rows in groups.items()} == {
        "Operations on 1,000 elements": 2,
        "Operations on 10,000 elements": 1,
        "Pipelines": 5,
    }


@pytest.mark.parametrize("measured", [False, True])
def test_the_page_has_plots_and_says_where_they_are_from(measured: bool, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    folder = tmp_path / "results"
    if measured:
        folder.mkdir()
        (folder / "results.json").write_text(json.dumps(MEASURED))
    written = results.write(tmp_path / "site", folder)
    text = (tmp_path / "site" / "measured.md").read_text()
    assert written == {p for p in (tmp_path / "site").rglob("*") if p.is_file()}
    assert all(f"(figures/{p.name})" in text for p in written if p.suffix == ".png") and len(written) == (2 if measured else 7)
    assert ("is not here: `make bench`" in text) != measured and ("Measured on this machine" in text and "## Tables" in text) == measured
