"""The code of the documentation runs, and prints what the comments beside it say."""

from __future__ import annotations

import ast
import contextlib
import io
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"
PAGES = ["getting_started.md", "from_numpy_and_jax.md", "export.md", "benchmarks.md", "sdk.md", "buffers.md"]


def run(page: str) -> None:
    """Runs the blocks of a page in one namespace. The comment behind a ``print`` that fits on a line is what it prints."""
    names: dict[str, object] = {"__name__": page}
    text = (DOCS / page).read_text()
    for found in re.finditer(r"```python\n(.*?)```", text, re.DOTALL):
        first = text[: found.start(1)].count("\n")
        lines = found[1].split("\n")
        for statement in ast.parse(found[1]).body:
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                exec(compile(ast.Module([ast.increment_lineno(statement, first)], []), page, "exec"), names)
            line = lines[(statement.end_lineno or 0) - first - 1]
            shown = re.fullmatch(r" *print\(.*\)  # (.*)", line)
            if shown and "\n" not in said.getvalue().rstrip("\n"):
                assert said.getvalue().rstrip("\n") == shown[1], f"{page}: {line}"


@pytest.mark.parametrize("page", PAGES)
def test_pages_run_as_they_stand(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run(page)
