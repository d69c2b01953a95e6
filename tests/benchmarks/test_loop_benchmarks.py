"""The loop benchmarks: programs agree with NumPy in Hologram and as plain loops, a worker answers, and rows say what is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import loop_report, process
from benchmarks.loop_programs import CASES, PROGRAMS
from benchmarks.loop_programs.frameworks import FRAMEWORKS, Prepared, agree, as_arrays, compared
from benchmarks.loop_programs.program import Asked, Program
from benchmarks.loop_programs.sizes import MEASURED, SMALL, small

LOOPS = [name for name, program in PROGRAMS.items() if program.numba is not None]


def _arguments(name: str) -> tuple[Any, ...]:
    return PROGRAMS[name].arguments(np.random.default_rng(1), *small(name))


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_agree_with_numpy(name: str) -> None:
    program, arguments = PROGRAMS[name], _arguments(name)
    expected = as_arrays(program.reference(*arguments))
    for now, before in zip(as_arrays(arguments), as_arrays(_arguments(name)), strict=True):
        np.testing.assert_array_equal(now, before)
    result = FRAMEWORKS["hologram"](program, arguments)()
    assert agree(program, compared(program, arguments, result), expected)


@pytest.mark.parametrize("name", LOOPS)
def test_plain_loops_agree_with_numpy(name: str) -> None:
    """What Numba compiles, by Python."""
    program = PROGRAMS[name]
    assert program.numba is not None
    with np.errstate(over="ignore"):
        found = as_arrays(program.numba(*_arguments(name)))
    assert agree(program, found, as_arrays(program.reference(*_arguments(name))))


def test_every_program_has_sizes() -> None:
    assert set(MEASURED) == set(PROGRAMS) >= set(SMALL)
    for name, program in PROGRAMS.items():
        for size in (small(name), *MEASURED[name]):
            assert len(size) == len(MEASURED[name][0])
            assert all(of is None or of(*size) > 0 for of in (program.steps, program.nbytes))


def test_results_replace_donated_arguments() -> None:
    program = Program("next", "", lambda rng: (), lambda x, y: x, lambda f, x, y: x, donated=1)
    call = Prepared(lambda x, y: (x + y, y), program, (1, 2))
    assert [call(), call()] == [(3, 2), (5, 2)] and call.planned() is None


@pytest.mark.parametrize(
    ("found", "expected", "same"),
    [
        ([1.0, 2.0], [1.0, 2.0 + 1e-9], True),
        ([1.0, 2.0], [1.0, 2.1], False),
        ([1, 2], [1, 3], False),
        ([1, 2], [1.0, 2.0], False),
        ([np.inf, 1.0], [np.inf, 1.0], True),
        ([1.0], [1.0, 2.0], False),
    ],
)
def test_results_are_compared_whole(found: list[float], expected: list[float], same: bool) -> None:
    program = PROGRAMS["life"]
    assert agree(program, [np.array(found)], [np.array(expected)]) == same
    assert not agree(program, [np.array(found)], [np.array(expected)] * 2)


def test_a_worker_answers_and_tells_errors(tmp_path: Path) -> None:
    with process.Worker("benchmarks.loop_worker", "numpy", str(tmp_path), "0.01", quiet=True) as worker:
        answer = worker.ask("triangular solve 100")
        assert answer["first"] > 0 and np.load(answer["file"])["arr_0"].shape == (100,)
        assert worker.ask("nothing")["error"].startswith("KeyError")


def test_a_late_worker_is_ended(tmp_path: Path) -> None:
    with process.Worker("benchmarks.loop_worker", "numpy", str(tmp_path), "0.01", seconds=0.01, quiet=True) as worker:
        assert worker.ask("triangular solve 100") == {"error": "no answer in 0.01 s"} and worker.process is None


def _row(asked: Asked, ours: dict[str, Any], jax: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> loop_report.Row:
    program = Program("p", "g", lambda rng: (), abs, abs, asked=asked, steps=lambda n: n)
    monkeypatch.setitem(CASES, "p 10", (program, (10,)))
    return loop_report.row("p 10", {"hologram": ours, "jax": jax}, floor=1e-6)


@pytest.mark.parametrize(
    ("asked", "met"),
    [
        (Asked(jax=0.5), True),
        (Asked(jax=0.4), False),
        (Asked(jax=0.5, numba=0.1), True),
        (Asked(numba=1.0), None),
        (Asked(floor=2.0), True),
        (Asked(floor=1.9), False),
        (Asked(step=2e-7), True),
        (Asked(jax=0.5, step=1e-7), False),
    ],
)
def test_requirements_are_judged(asked: Asked, met: bool | None, monkeypatch: pytest.MonkeyPatch) -> None:
    fast, slow = {"time": 2e-6, "first": 0.1, "agrees": True}, {"time": 4e-6, "first": 0.1, "agrees": True}
    assert _row(asked, fast, slow, monkeypatch)["met"] == met


def test_trouble_is_told_and_meets_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    right, wrong = ({"time": 1e-6, "first": 0.1, "agrees": agrees} for agrees in (True, False))
    failed = _row(Asked(jax=1), {"error": "no such thing"}, right, monkeypatch)
    differs = _row(Asked(jax=2), wrong, right, monkeypatch)
    of_a_wrong_peer = _row(Asked(jax=2), right, wrong, monkeypatch)
    assert failed["met"] is differs["met"] is False and of_a_wrong_peer["met"] is None
    loop_report.write({"threads": 1, "frameworks": ["hologram", "jax"], "first": False, "cases": [failed, differs]}, tmp_path)
    text = (tmp_path / "loops.md").read_text()
    assert "- p 10, hologram: no such thing" in text and "| p 10 | 1.0 | 1.0 WRONG | 1.0 |" in text and (tmp_path / "loops.json").exists()
    assert "hologram 1.0 WRONG" in loop_report.line(differs)
