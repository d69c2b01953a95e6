"""The code of the documentation runs, and prints what the comments beside it say."""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.comparing import same_values
from tests.support.optable import seeded
from tests.support.runner.libraries import library

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [
    "index.md",
    "getting_started.md",
    "debugging.md",
    "from_numpy_and_jax.md",
    "scipy.md",
    "export.md",
    "benchmarks.md",
    "sdk.md",
    "buffers.md",
    "buffers_and_arrow.md",
    "distributed.md",
    "notebooks.md",
    "profiling.md",
    "report.md",
    "with_scipy.md",
]
PAGES += [f"how_to/{p.name}" for p in sorted((DOCS / "how_to").glob("*.md"))]
LIBRARIES = {
    "dask_and_xarray.md": ["dask.array", "distributed", "xarray"],
    "sharded_training.md": ["safetensors"],
    "with_data_frames.md": ["pandas", "polars", "pyarrow"],
    "with_graphs_and_plots.md": ["networkx", "matplotlib"],
    "with_sympy.md": ["sympy", "scipy"],
    "with_tensor_algebra.md": ["einops", "opt_einsum", "tensorly"],
    "with_units_and_uncertainties.md": ["pint", "uncertainties"],
}  # pages whose code needs what may not be installed

SWITCHED = {"with_scikit_learn.md": (["sklearn", "scipy"], "SCIPY_ARRAY_API")}  # pages whose libraries read a switch when they are imported


def run(path: Path, compares: bool = True) -> dict[str, Any]:
    """Runs the blocks of a page in one namespace, and gives that. The comment behind a ``print`` that fits on a line is what it prints, unless the
    page has other comments there (``compares``)."""
    page = path.name
    names: dict[str, Any] = {"__name__": page}
    text = path.read_text()
    for found in re.finditer(r"```python\n(.*?)```", text, re.DOTALL):
        first = text[: found.start(1)].count("\n")
        lines = found[1].split("\n")
        for statement in ast.parse(found[1]).body:
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                exec(compile(ast.Module([ast.increment_lineno(statement, first)], []), page, "exec"), names)
            line = lines[(statement.end_lineno or 0) - first - 1]
            shown = re.fullmatch(r" *print\(.*\)  # (.*)", line)
            if compares and shown and "\n" not in said.getvalue().rstrip("\n"):
                assert said.getvalue().rstrip("\n") == shown[1], f"{page}: {line}"
    return names


@pytest.mark.parametrize("page", PAGES)
def test_pages_run_as_they_stand(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run(DOCS / page)


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")  # of clusters
@pytest.mark.parametrize("page", LIBRARIES)
def test_pages_about_libraries_run_as_they_stand(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in LIBRARIES[page]:
        library(name)
    monkeypatch.chdir(tmp_path)
    run(DOCS / page)


@pytest.mark.parametrize("page", SWITCHED)
def test_pages_about_switched_libraries_run_as_they_stand(page: str, tmp_path: Path) -> None:
    libraries, switch = SWITCHED[page]
    for name in libraries:
        library(name)
    code = f"from pathlib import Path; from tests.docs.test_docs import run; run(Path({str(DOCS / page)!r}))"
    environment = {**os.environ, switch: "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# --- the README's functions, at sizes on both sides of what decides how a kernel is made ----------------------------


@pytest.fixture(scope="module")
def readme() -> dict[str, Any]:
    return run(ROOT / "README.md", compares=False)


@pytest.mark.parametrize("n", [0, 1, 7, 8, 17, 33, 1000, 3073, 20_000])
def test_elementwise_code_of_the_readme(readme: dict[str, Any], n: int) -> None:
    same_values(readme["gelu"].__wrapped__, seeded("gelu").standard_normal(n, dtype=np.float32), exact=False)


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 8), (2, 7), (5, 17), (33, 2), (33, 130), (2, 3100), (600, 64)])
def test_reductions_of_the_readme(readme: dict[str, Any], rows: int, columns: int) -> None:
    same_values(readme["softmax"].__wrapped__, seeded("softmax").standard_normal((rows, columns), dtype=np.float32), exact=False)


@pytest.mark.parametrize(("batch", "terms", "columns"), [(1, 1, 1), (2, 7, 2), (5, 8, 1), (20, 8, 3), (20, 9, 2), (5, 40, 17), (64, 8, 8)])
def test_derivatives_of_the_readme(readme: dict[str, Any], batch: int, terms: int, columns: int) -> None:
    draw = seeded("loss")
    w = draw.standard_normal((terms, columns), dtype=np.float32)
    x, y = draw.standard_normal((batch, 4, terms), dtype=np.float32), draw.standard_normal((batch, 4, columns), dtype=np.float32)
    same_values(readme["per_example"], w, x, y, exact=False)
    same_values(readme["per_example"], w, x[:, 0], y[:, 0], exact=False)
    same_values(readme["step"].__wrapped__, w, x[0], y[0], exact=False)
