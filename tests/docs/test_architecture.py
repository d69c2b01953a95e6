"""The pages that explain the compiler say what the code does: printed stages, the table of passes, paths, terms."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from hologram.backends.llvm.toolchain import target
from hologram.graph.pipeline import PIPELINE, passes
from hologram.settings import override

ROOT = next(p for p in Path(__file__).parents if (p / "pyproject.toml").exists())
DOCS = ROOT / "docs"
PAGE = DOCS / "architecture.md"
TEXT = PAGE.read_text()
SHOWN = dict(re.findall(r"```text (\w+)\n(.*?)```", TEXT, re.DOTALL))
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
MODULES = [str(p.relative_to(ROOT)) for folder in ("hologram*", "tests", "benchmarks", "examples") for p in ROOT.glob(f"{folder}/**/*.py")]
NAMES = (
    "ops",
    "backend",
    "checkpoint_policies",
    "config",
    "custom_batching",
    "custom_derivatives",
    "flatten_util",
    "image",
    "sharding",
    "typing",
)  # modules of names alone
MINOR = ("dlpack", "version", *NAMES)  # packages that the picture leaves out
MAX_WORDS = {"architecture": 1500, "add_a_backend": 600, "add_a_schedule": 400}


@pytest.fixture(scope="module")
def lowered(fully_compiled: None) -> Any:
    """The page's program, compiled for a processor on which its machine code is known, where this machine can run that."""
    (source,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(source.replace("print(", "str("), "program.py", "exec"), names)
    with override(target="x86-64-v3" if target.host().has("avx2") else ""):
        names["lowered"].compile()
    return names["lowered"]


def _normal(line: str) -> str:
    """A line of LLVM IR or assembly without its numbers: those of registers, offsets, vectors' widths."""
    return " ".join(re.sub(r"%[\w.]+", "%", re.sub(r"\d+\(", "(", line)).split())


@pytest.mark.parametrize("stage", ["trace", *(s.name for s in PIPELINE)])
def test_stages_print_what_the_page_shows(lowered: Any, stage: str) -> None:
    """Where the page has an ellipsis, lines are left out."""
    rest = lowered.as_text(stage).strip() + "\n"
    pieces = re.split(r"^…\n", SHOWN[stage], flags=re.MULTILINE)
    assert rest.startswith(pieces[0]) and rest.endswith(pieces[-1]), rest
    for piece in pieces:
        assert piece in rest, rest
        rest = rest[rest.index(piece) + len(piece) :]


@pytest.mark.parametrize("stage", ["llvm", "asm"])
def test_excerpts_are_in_generated_code(lowered: Any, stage: str) -> None:
    """But for the numbers of registers and offsets."""
    if stage == "asm" and not target.host().has("avx2"):
        pytest.skip("the page shows code for x86-64-v3")
    rest = [_normal(line) for line in lowered.as_text(stage).splitlines()]
    for line in map(_normal, SHOWN[stage].splitlines()):
        if line != "…":
            assert line in rest, line
            rest = rest[rest.index(line) + 1 :]


def test_the_picture_has_the_layers_that_are_checked() -> None:
    rows = [re.split(r", ", line) for line in re.findall(r"^│ ([\w, ]+?)(?:: .*)? *│$", TEXT, re.MULTILINE)]
    where = {name: i for i, names in enumerate(rows) for name in names}
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    for contract in (c for c in contracts if c["type"] == "layers" and c.get("containers", ["hologram"]) == ["hologram"]):
        layers = [[n for n in re.split(r"[ |:]+", layer) if n not in ("hologram", *MINOR)] for layer in contract["layers"]]
        assert all(name in where for names in layers for name in names), layers
        assert all(where[a] <= where[b] for above, below in pairwise(filter(None, layers)) for a in above for b in below), layers


def test_the_table_lists_the_passes_of_the_pipeline() -> None:
    rows = re.findall(r"^\| `(\w+)` \| [\w ]+ \| [\w, ]+ \| [^|]+ \| ([^|]+) \|$", TEXT, re.MULTILINE)
    found = list({p.name: p for p in passes()}.values())
    assert [name for name, _ in rows] == [p.name for p in found]
    for (name, switch), p in zip(rows, found, strict=True):
        assert (switch == "required") == p.required, name
        assert ("; " in switch) == (p.when is not found[0].when), name


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_paths_and_links_exist(page: Path) -> None:
    """Whole paths from the root, files by the end of their path, and links."""
    text = page.read_text()
    for path in re.findall(r"(?<![\w/.])(?:hologram(?:_torch|_ffi)?|tests|docs|examples)/[\w/.]*[\w/]", text):
        assert (ROOT / path).exists(), path
    for path in re.findall(r"`([\w/]+\.py)`", text):
        assert any(f"/{known}".endswith(f"/{path}") for known in MODULES), path
    for link in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
        assert link.startswith("http") or (page.parent / link).exists(), link


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda p: p.stem)
def test_pages_say_first_what_they_are_for(page: Path) -> None:
    """And the list of pages has each."""
    title, empty, first = page.read_text().split("\n", 2)
    assert title.startswith("# ") and not empty
    assert re.match(r"[\w`*\[]", first) and not first.startswith("```"), first[:80]
    assert page.name == "README.md" or f"]({page.relative_to(DOCS)})" in (DOCS / "README.md").read_text()


@pytest.mark.parametrize(("page", "most"), MAX_WORDS.items())
def test_pages_stay_short(page: str, most: int) -> None:
    (path,) = DOCS.rglob(f"{page}.md")
    assert len(path.read_text().replace("|", " ").split()) <= most


def test_terms_of_the_glossary_occur() -> None:
    """In the code or on another page; and they are in order."""
    terms = re.findall(r"^\| \*\*(.+?)\*\* \|", (DOCS / "glossary.md").read_text(), re.MULTILINE)
    assert len(terms) > 20 and all(a.lower() < b.lower() for a, b in pairwise(terms))
    others = [p for p in DOCS.rglob("*.md") if p.name != "glossary.md"] + list((ROOT / "hologram").rglob("*.py"))
    words = " ".join(" ".join(p.read_text().split()) for p in others).lower()
    assert not [term for term in terms if not re.search(r"\b" + re.sub(r"[ -]", "[ _-]?", term.lower()), words)]


USE_OF_A_BACKEND = """
import numpy as np, hologram as hg, hologram.numpy as hnp
assert "numpy:0" in hg.devices(), hg.devices()
f = hg.jit(lambda x: hnp.tanh(x).sum(axis=1), device="numpy")
x = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
np.testing.assert_allclose(f(x), np.tanh(x).sum(1), rtol=1e-6)
assert f.lower(x).as_text("numpy") == "the interpreter" and "step 0" in f.lower(x).as_text("plan")
"""


def test_the_backend_of_the_guide_runs(tmp_path: Path) -> None:
    """As a package of its own, found by its entry point."""
    text = (DOCS / "guides" / "add_a_backend.md").read_text()
    (module,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    ((group, entry),) = re.findall(r"```toml\n\[project\.entry-points\.\"(.+)\"\]\n(.*)\n```", text)
    (tmp_path / "numpy_backend.py").write_text(module)
    info = tmp_path / "other-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{group}]\n{entry.replace(chr(34), '')}\n")
    paths = os.pathsep.join([str(tmp_path), *sys.path])
    subprocess.run([sys.executable, "-c", USE_OF_A_BACKEND], check=True, env={**os.environ, "PYTHONPATH": paths})
