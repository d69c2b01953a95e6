"""docs/command_line.md: it lists all commands, checks and statuses, and its examples print what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hologram.command_line.doctor.examination import CHECKS
from hologram.command_line.main import COMMANDS, STATUSES, main

TEXT = (Path(__file__).parents[2] / "docs" / "command_line.md").read_text()


def section(title: str) -> str:
    return TEXT.split(f"\n## {title}\n")[1].split("\n## ")[0]


def test_every_command_has_a_section() -> None:
    assert re.findall(r"^\| `hologram (\w+)` \|", TEXT, re.MULTILINE) == list(COMMANDS)
    assert re.findall(r"^## (\w+)$", TEXT, re.MULTILINE) == list(COMMANDS)


def test_statuses_are_those_of_the_help() -> None:
    documented = re.findall(r"^\| (\d+) \|", section("Data and exit statuses"), re.MULTILINE)
    assert documented == re.findall(r"^  (\d+)", STATUSES, re.MULTILINE)


def test_every_check_is_listed_and_shown() -> None:
    text = section("doctor")
    listed = [name for row in re.findall(r"^\| ([\w ,]+) \|", text, re.MULTILINE)[1:] for name in row.split(", ")]
    assert listed == list(CHECKS)
    assert [name for name in CHECKS if re.search(rf"^  \w+ +{name}  ", text, re.MULTILINE)] == list(CHECKS)


def test_the_explained_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    text = section("explain")
    (source,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (shapes, stage, said) = re.findall(r'\$ hologram explain model.py:layer --shapes "(.*)" --stage (\w+)\n(.*?)```', text, re.DOTALL)[0]
    Path("model.py").write_text(source)
    assert main(["explain", "model.py:layer", "--shapes", shapes, "--stage", stage]) == 0
    assert capsys.readouterr().out == said
