"""Tutorials run as the notebooks that they are, cell by cell, and print what ``tests/docs/tutorials`` says.

``...`` there stands for anything, such as counts that the compiler may better.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
from pathlib import Path
from typing import Any

import matplotlib
import pytest

DOCS = next(p for p in Path(__file__).parents if (p / "pyproject.toml").exists()) / "docs"
TUTORIALS = sorted((DOCS / "tutorials").glob("*.py"))
PRINTED = Path(__file__).with_name("tutorials")
CELL = re.compile(r"^# %%(?P<markdown> \[markdown\])?\n(?P<text>.*?)(?=^# %%|\Z)", re.MULTILINE | re.DOTALL)
MIN_FIGURES = 1


def cells(text: str) -> list[tuple[int, bool, str]]:
    """The cells of a script in percent format: the line before the first of each, whether it is code, its text."""
    return [(text[: m.start("text")].count("\n"), m["markdown"] is None, m["text"]) for m in CELL.finditer(text)]


def run(path: Path) -> str:
    """Runs the code of a tutorial; gives what it prints."""
    names: dict[str, Any] = {"__name__": "__main__"}
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        for before, is_code, text in cells(path.read_text()):
            if is_code:
                exec(compile("\n" * before + text, str(path), "exec"), names)
    return said.getvalue()


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda p: p.stem)
def test_tutorials_print_what_they_should(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if path.stem == "pytorch":
        pytest.importorskip("torch")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    monkeypatch.chdir(tmp_path)
    try:
        printed = run(path)
        assert len(plt.get_fignums()) >= MIN_FIGURES
    finally:
        plt.close("all")
    wanted = (PRINTED / f"{path.stem}.txt").read_text()
    assert doctest.OutputChecker().check_output(wanted, printed, doctest.ELLIPSIS), printed


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda p: p.stem)
def test_tutorials_are_notebooks(path: Path) -> None:
    """All text is in cells, the first has the title, text alternates with code that draws or prints."""
    text = path.read_text()
    found = cells(text)
    assert text.startswith("# %% [markdown]\n# # ") and sum(is_code for _, is_code, _ in found) >= 5
    for _, is_code, cell in found:
        assert is_code or all(line.startswith("#") for line in cell.split("\n") if line), cell
    assert f"]({path.name})" in (path.parent / "index.md").read_text() and f"\n{path.stem}\n" in (path.parent / "index.md").read_text()


def test_cells_are_found() -> None:
    assert cells("# %% [markdown]\n# # A\n\n# %%\nx = 1\n\n# %%\ny = 2\n") == [
        (1, False, "# # A\n\n"),
        (4, True, "x = 1\n\n"),
        (7, True, "y = 2\n"),
    ]
