"""``hologram completion``, and what completes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hologram.command_line.completion import SHELLS
from hologram.command_line.main import main
from hologram.command_line.result import Status


@pytest.mark.parametrize("shell", SHELLS)
def test_scripts(shell: str, capsys: Any) -> None:
    pytest.importorskip("argcomplete")
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "hologram" in script and "_ARGCOMPLETE" in script
    assert main(["completion", shell, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["script"].strip("\n") == script.strip("\n")


def completions(line: str, tmp_path: Path) -> list[str]:
    """What a shell is answered that asks at the end of a line."""
    answer = tmp_path / "answer"
    environment = os.environ | {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_STDOUT_FILENAME": str(answer), "_ARGCOMPLETE_IFS": "\n"}
    environment |= {"COMP_LINE": line, "COMP_POINT": str(len(line)), "_ARGCOMPLETE_SUPPRESS_SPACE": "1"}
    done = subprocess.run([sys.executable, "-m", "hologram"], env=environment, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return [word.strip() for word in answer.read_text().split("\n")]


@pytest.mark.parametrize(
    ("line", "expected"),
    [("hologram ", "doctor"), ("hologram cache ", "verify"), ("hologram explain f.py:f --stage ", "kernels"), ("hologram explain ", "model.py:")],
)
def test_answers(tmp_path: Path, line: str, expected: str) -> None:
    pytest.importorskip("argcomplete")
    (tmp_path / "model.py").write_text("def f(x):\n    return x\n")
    env_path = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parents[2]), *(os.path.abspath(p) for p in env_path.split(os.pathsep) if p)])
    try:
        assert expected in completions(line, tmp_path)
    finally:
        os.environ["PYTHONPATH"] = env_path


def test_without_argcomplete(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setitem(sys.modules, "argcomplete", None)
    assert main(["completion", "bash"]) == Status.MISSING
    assert "pip install" in capsys.readouterr().err
    monkeypatch.setenv("_ARGCOMPLETE", "1")  # the shell asks, and gets no answer
    assert main(["cache", "size"]) == 0
