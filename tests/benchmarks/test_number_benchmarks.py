"""The benchmark of numbers that change: cases give what NumPy gives, and rows say what is asked."""

from __future__ import annotations

import pytest

from benchmarks import numbers
from benchmarks.number_cases import CASES
from hologram.trace import compiling

SMALL = [name for name, case in CASES.items() if "numpy" in case.frameworks and not name.startswith(("a script", "iterate"))]


@pytest.mark.parametrize("name", SMALL)
def test_cases_agree_with_numpy(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "compile_graph", compiling.compile_graph)  # as it was, afterwards
    case = CASES[name]
    found = {f: numbers.turns(numbers.MAKERS[f](), case, limit=0) for f in ("numpy", "hologram")}
    row = numbers.row(case, found)
    assert not row["wrong"] and found["hologram"]["turns"] > case.warm
    assert name in numbers.line(row) and name in numbers.markdown([row], ["numpy", "hologram"])


def test_wrong_results_and_missed_requirements_are_told() -> None:
    case = CASES["zeros(k) + 1"]
    good = {"time": 1e-6, "programs": 2, "turns": 9, "values": [[1.0, 1.0]]}
    assert numbers.row(case, {"hologram": good, "numpy": good})["met"]
    assert numbers.row(case, {"hologram": {**good, "values": [[1.0, 2.0]]}, "numpy": good})["wrong"]
    assert not numbers.row(case, {"hologram": {**good, "time": 1.0}, "numpy": good})["met"]
    assert not numbers.row(case, {"hologram": {**good, "programs": 20}, "numpy": good})["met"]
    assert "error" in numbers.line(numbers.row(case, {"hologram": {"error": "an error"}}))
