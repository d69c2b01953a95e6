"""The table of README.md is written from the results of a run."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks import readme_table

ROWS = readme_table.TABLE.search(readme_table.README.read_text())


def results() -> dict[str, Any]:
    """Of all cases of the table: Hologram is the best of the first alone."""
    assert ROWS
    cases = [
        {
            "case": case,
            "floor": 0.0 if i == 1 else 1.5e-6,
            "results": {
                "hologram": {"time": (2 if i == 0 else 4) * 1e-6, "agrees": True},
                "numpy": {"time": 3.456e-6, "agrees": True},
                "numexpr": {"time": 1e-9, "agrees": False},
            },
        }
        for i, case in enumerate(readme_table.cases_of(ROWS[3]))
    ]
    return {"bandwidth": 71.4e9, "peak": 300e9, "threads": 4, "cases": cases}


def test_the_best_of_each_row_is_bold() -> None:
    text = readme_table.with_results(readme_table.README.read_text(), results(), "2030-01-31")
    found = readme_table.TABLE.search(text)
    assert found and "71 GB/s of memory, 300 GFLOP/s" in found[2] and "4 threads, on 2030-01-31" in found[2].replace("\n", " ")
    first, second, *_ = found[3].splitlines()[2:]
    assert first.endswith("| **2.00** | 3.46 |  |  | 1.50 |") and second.endswith("| 4.00 | **3.46** |  |  |  |")
    assert text.count("\n") == readme_table.README.read_text().count("\n")


def test_results_may_be_by_case() -> None:
    rows = {
        row["case"]: {"limit": row["floor"]} | {f: {"time": r["time"], "wrong": not r["agrees"]} for f, r in row["results"].items()}
        for row in results()["cases"]
    }
    text, other = (readme_table.with_results(readme_table.README.read_text(), given, "2030-01-31") for given in (rows, results()))
    tables = [found[3] for t in (text, other) if (found := readme_table.TABLE.search(t))]
    assert tables[0] == tables[1] and len(tables) == 2 and "2030-01-31" in text
    rows["dispatch add n=8"]["hologram"] = {"error": "no"}
    with pytest.raises(SystemExit, match="dispatch add n=8 failed or is wrong in hologram"):
        readme_table.with_results(text, rows, "2030-01-31")


def test_the_table_of_the_readme_has_the_best_of_each_row_bold() -> None:
    assert ROWS
    rows = []
    for line in ROWS[3].splitlines()[2:]:
        case, *cells, floor = [cell.strip(" *") for cell in line.strip("|").split("|")]
        times = {f: float(cell.replace(",", "")) for f, cell in zip(readme_table.NAMES, cells, strict=True) if cell}
        rows.append((case, times, float(floor.replace(",", "")) if floor else None))
    assert readme_table.table(rows) == ROWS[3]


@pytest.mark.parametrize(
    "change", [{"results": {"hologram": {"error": "no"}}}, {"results": {"hologram": {"time": 1.0, "agrees": False}}}, {"case": "other"}]
)
def test_what_is_missing_or_wrong_is_not_written(change: dict[str, Any]) -> None:
    found = results()
    found["cases"][0] |= change
    with pytest.raises(SystemExit, match="dispatch add n=8"):
        readme_table.with_results(readme_table.README.read_text(), found, "2030-01-31")


@pytest.mark.parametrize(("microseconds", "text"), [(0.2, "0.20"), (9.994, "9.99"), (9.996, "10.0"), (99.96, "100"), (1234.5, "1,234")])
def test_figures_have_three_digits(microseconds: float, text: str) -> None:
    assert readme_table.figure(microseconds) == text
