"""The package as a whole: its metadata, and what importing it costs. ``make wheel`` builds and tries wheel and sdist."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from hologram.version import __version__

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def _python(code: str) -> str:
    return subprocess.run([sys.executable, "-W", "error", "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def test_the_version_is_written_once(project: dict[str, Any]) -> None:
    assert project["dynamic"] == ["version"] and re.fullmatch(r"\d+\.\d+\.\d+", __version__)
    assert _python("import hologram; print(hologram.__version__)") == __version__
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None and newest[1] == __version__


def test_every_folder_of_modules_is_a_package() -> None:
    folders = {p.parent for p in (ROOT / "hologram").rglob("*.py")}
    assert [str(f) for f in folders if not (f / "__init__.py").exists()] == []


def test_what_every_module_imports_is_a_dependency(project: dict[str, Any]) -> None:
    """Optional packages are imported inside functions, or by what is imported once they have been."""
    declared = {re.split(r"[<>=\[]", d)[0] for d in project["dependencies"]}
    folder = ROOT / "hologram"
    modules = [p for p in folder.rglob("*.py") if p.relative_to(folder).parts[0] not in ("dask", "libraries")]
    statements = [s for p in modules for s in ast.parse(p.read_text()).body]
    names = [a.name for s in statements if isinstance(s, ast.Import) for a in s.names] + [
        s.module for s in statements if isinstance(s, ast.ImportFrom)
    ]
    used = {n.partition(".")[0] for n in names if n}
    assert used - set(sys.stdlib_module_names) - {"hologram"} <= declared


def test_the_oldest_version_of_every_dependency_is_tested(project: dict[str, Any]) -> None:
    """By ``make test-oldest``."""
    pinned = [line.split("==")[0] for line in _python("import runpy; runpy.run_path('tools/oldest.py', run_name='__main__')").splitlines()]
    declared = [re.split(r"[<>=\[]", d)[0] for d in project["dependencies"]]
    assert set(declared) <= set(pinned)
    oldest = project["requires-python"].removeprefix(">=")
    assert f"OLDEST_PYTHON ?= python{oldest}\n" in (ROOT / "Makefile").read_text()


@pytest.mark.parametrize("name", ["LICENSE", "CONTRIBUTING.md", "CHANGELOG.md", "README.md", "docs/README.md", "hologram/py.typed"])
def test_files_that_belong_to_a_release(name: str) -> None:
    assert (ROOT / name).exists()


def test_importing_loads_no_compiler() -> None:
    heavy = ("llvmlite", "networkx", "torch", "jax", "scipy", "matplotlib")
    assert _python(f"import sys, hologram, hologram.numpy; print([m for m in {heavy} if m in sys.modules])") == "[]"


def test_importing_costs_little_more_than_numpy() -> None:
    """The aim is 0.1 s over NumPy's own import; the best of a few runs, since other processes run meanwhile."""
    code = "import time, numpy; t = time.perf_counter(); import hologram; print(time.perf_counter() - t)"
    assert min(float(_python(code)) for _ in range(3)) < 0.1


def test_links_between_pages_lead_somewhere() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    links = [(p, m) for p in pages for m in re.findall(r"\]\((?!https?:|#)([^)#]+)", p.read_text())]
    assert links and [(str(p), m) for p, m in links if not (p.parent / m).exists()] == []


def test_the_tour_of_the_readme_runs_as_it_stands(capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "README.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    said = capsys.readouterr().out
    assert len(blocks) >= 4 and "; scalar operations" in said and "1.414" in said
