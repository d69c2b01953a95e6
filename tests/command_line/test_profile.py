"""``hologram profile``: a script under the profiler, whose table follows what the script printed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import hologram as hg
from hologram.command_line.main import main
from hologram.command_line.result import Status

SCRIPT = """
import sys, hologram
print('args', sys.argv[1:], hologram.profile.active)
assert sys.argv[-1] != 'fail', 'failed'
sys.exit(int(sys.argv[-1]))
"""


class Profile:
    """What this command asks of ``hg.profile``."""

    active = False

    def __enter__(self) -> Profile:
        Profile.active = True
        return self

    def __exit__(self, *error: Any) -> None:
        Profile.active = False

    def table(self) -> str:
        return "kernel  time\nfused_0  3 us"

    def as_dict(self) -> dict[str, Any]:
        return {"kernels": [{"name": "fused_0"}]}

    def html(self, path: Path) -> None:
        path.write_text("<html>")

    def to_perfetto(self, path: Path) -> None:
        path.write_text("[]")


@pytest.fixture
def profiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hg, "profile", Profile, raising=False)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return path


@pytest.mark.usefixtures("profiler")
def test_the_table_follows_the_script(script: Path, capsys: Any) -> None:
    assert main(["profile", str(script), "--json", "0"]) == 0  # what follows the script is the script's
    assert capsys.readouterr().out == "args ['--json', '0'] True\nkernel  time\nfused_0  3 us\n"


@pytest.mark.usefixtures("profiler")
def test_as_json_and_as_a_trace(script: Path, tmp_path: Path, capsys: Any) -> None:
    assert main(["profile", "--json", "--trace", str(tmp_path / "trace.json"), str(script), "5"]) == 5
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert found["profile"] == {"kernels": [{"name": "fused_0"}]} and found["status"] == 5 and "args ['5'] True" in err
    assert (tmp_path / "trace.json").read_text() == "[]"
    assert main(["profile", "--html", str(tmp_path / "page.html"), str(script), "0"]) == 0
    assert (tmp_path / "page.html").read_text() == "<html>"


def test_options_behind_the_script_are_told_of(script: Path, tmp_path: Path, capsys: Any) -> None:
    """They are the script's, silently."""
    main(["profile", str(script), "0", "--html", str(tmp_path / "page.html")])
    assert "--html stands behind the script" in capsys.readouterr().err and not (tmp_path / "page.html").exists()


def test_a_profile_without_pages(script: Path, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hg, "profile", type("Bare", (Profile,), {"html": None}), raising=False)
    assert main(["profile", "--html", str(tmp_path / "page.html"), str(script), "0"]) == Status.MISSING
    assert "no report as html" in capsys.readouterr().err


@pytest.mark.usefixtures("profiler")
def test_a_script_that_fails_is_profiled_till_then(script: Path, capsys: Any) -> None:
    assert main(["profile", str(script), "fail"]) == Status.FOUND
    out, err = capsys.readouterr()
    assert "fused_0" in out and "AssertionError: failed" in err and "command_line" not in err and "runpy" not in err


def test_without_a_script_or_a_profiler(script: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["profile", "nowhere.py"]) == Status.WRONG_USE
    assert "there is no script nowhere.py" in capsys.readouterr().err
    monkeypatch.delattr(hg, "profile", raising=False)
    if not hasattr(hg, "profile"):
        assert main(["profile", str(script), "0"]) == Status.MISSING
        out, err = capsys.readouterr()
        assert "has no profiler" in err and "args" not in out
