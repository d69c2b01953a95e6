"""``hologram explain``: what becomes of a function, at each stage, as text and as data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hologram.command_line.explain import PRECISIONS, STAGES, _complete_function
from hologram.command_line.main import main
from hologram.command_line.result import Status
from hologram.support import precision
from hologram.trace.call.stages import Explanation

SCRIPT = """
import hologram as hg
import hologram.numpy as hnp

@hg.jit
def layer(w, x):
    return hnp.tanh(x @ w["w"] + w["b"])

def total(x, axis=0):
    return hnp.sum(x * x, axis=axis)

def wrong(x, y):
    return x + y

def fails(x):
    raise KeyError("inside")

if __name__ == "__main__":
    raise SystemExit("this part must not run")
"""


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "model.py"
    path.write_text(SCRIPT)
    return str(path)


def test_the_summary(script: str, capsys: Any) -> None:
    assert main(["explain", f"{script}:layer", "--shapes", "{w: f32[8,4], b: f32[4]}, f32[16,8]"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("layer\n\n--- traced ---") and "float32[16, 4]" in out and "model.py:7" in out and "--- memory ---" in out


def test_devices_that_are_not_there(script: str, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hologram.ir.devices._found", lambda kind: ([], "no CuPy"))
    for device, status in (("cuda", Status.MISSING), ("cuda:1", Status.MISSING), ("gpux", Status.WRONG_USE)):
        assert main(["explain", f"{script}:total", "--shapes", "f32[8,8]", "--device", device]) == status
        said = capsys.readouterr().err
        assert f"device {device!r} is not available" in said and "(at " not in said


def test_plain_values_are_a_part_of_the_program(script: str, capsys: Any) -> None:
    for shapes, result in (("f32[16,8], axis=1", "float32[16]"), ("f32[16,8], 0", "float32[8]"), ("f32[16,8], (0, 1)", "float32[]")):
        assert main(["explain", f"{script}:total", "--shapes", shapes, "--stage", "trace"]) == 0
        assert capsys.readouterr().out.splitlines()[-2].partition("#")[0].strip().endswith(result)


@pytest.mark.parametrize("stage", STAGES[1:])
def test_each_stage(script: str, capsys: Any, stage: str) -> None:
    assert main(["explain", f"{script}:total", "--shapes", "f32[16,8], axis=1", "--stage", stage]) == 0
    out = capsys.readouterr().out
    assert out.strip() and "--- traced ---" not in out


def test_a_stage_that_is_none(script: str, capsys: Any) -> None:
    assert main(["explain", f"{script}:total", "--shapes", "f32[16]", "--stage", "kernel"]) == Status.WRONG_USE
    assert "kernels" in capsys.readouterr().err  # one of those that there are


def test_as_json(script: str, capsys: Any) -> None:
    assert main(["explain", f"{script}:total", "--shapes", "f32[16,8], axis=1", "--json", "--stage", "trace"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["arguments"], found["keywords"], found["stage"]) == (["float32[16,8]"], {"axis": 1}, "trace")
    assert found["text"].startswith("graph(%0: float32[16, 8])")
    assert found["reduction"]["kernels"] == 1 and all(isinstance(n, int) for n in found["reduction"]["rules"].values())
    assert found["cost"]["bytes_moved"] == 16 * 8 * 4 + 16 * 4 and found["memory"]["argument_bytes"] == 16 * 8 * 4


@pytest.mark.parametrize(
    ("function", "shapes", "status", "said"),
    [
        ("total", "", Status.WRONG_USE, "takes (x, axis=0): missing a required argument: 'x'; --shapes"),
        ("total", "f32, 1, 2", Status.WRONG_USE, "too many positional arguments"),
        ("totl", "f32", Status.WRONG_USE, "has no 'totl'; there is total"),
        ("wrong", "f32[3], f32[4]", Status.FOUND, "ShapeError: add: shapes [3] and [4] do not broadcast"),
        ("fails", "f32[3]", Status.FOUND, "KeyError: 'inside'"),
    ],
)
def test_errors(script: str, capsys: Any, function: str, shapes: str, status: int, said: str) -> None:
    assert main(["explain", f"{script}:{function}", "--shapes", shapes]) == status
    err = capsys.readouterr().err
    assert said in err and "command_line" not in err  # no frames of ours


def test_options_of_jit(script: str, capsys: Any) -> None:
    assert main(["explain", f"{script}:total", "--shapes", "f32[16]", "--device", "null", "--precision", "exact"]) == 0
    assert main(["explain", f"{script}:layer", "--shapes", "{w: f32[8,4], b: f32[4]}, f32[16,8]", "--precision", "exact"]) == Status.WRONG_USE
    assert "is jitted" in capsys.readouterr().err
    assert set(PRECISIONS) == set(precision.PRECISIONS)


def test_a_function_of_a_module(capsys: Any) -> None:
    assert main(["explain", "hologram.nn:gelu", "--shapes", "f32[16]", "--stage", "trace"]) == 0
    assert capsys.readouterr().out.startswith("graph(%0: float32[16])")


def test_a_page(script: str, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "report.html"
    arguments = ["explain", f"{script}:total", "--shapes", "f32[16]", "--html", str(page)]
    monkeypatch.setattr(Explanation, "html", lambda self, path: path.write_text("<html>"), raising=False)
    monkeypatch.setattr(Explanation, "json", lambda self, path: path.write_text('{"kernels": []}'), raising=False)
    assert main(arguments) == 0 and page.read_text() == "<html>" and f"{page} written" in capsys.readouterr().out
    assert main([*arguments, "--json"]) == 0 and json.loads(capsys.readouterr().out)["report"] == {"kernels": []}
    monkeypatch.delattr(Explanation, "html")
    if not hasattr(Explanation, "html"):
        assert main(arguments) == Status.MISSING and "no report as html" in capsys.readouterr().err


def test_completion_of_functions(script: str) -> None:
    folder = Path(script).parent
    assert f"{script}:" in _complete_function(f"{folder}/")
    assert _complete_function(f"{script}:to") == [f"{script}:total"]
