"""The page as a file: one that needs nothing else, small, and safe whatever names and lines a program has."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import ArgumentError
from hologram.report import write_profile
from hologram.report.data.profiled import profile_data
from hologram.report.render import SCRIPTS, page
from tests.support.pages.report_programs import block_gradient, profiled

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "hologram" / "report"
MAX_BYTES = 2_000_000


def test_a_transformer_block_is_one_small_file(tmp_path: Path) -> None:
    explanation = block_gradient()
    path = tmp_path / "report.html"
    explanation.html(path, profiled(explanation.data()))
    text = path.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>") and len(text.encode()) < MAX_BYTES
    markup = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    assert not re.findall(r"""(?:src|href)=["'](?!#|data:,)[^"']+""", markup) and "@import" not in text and "url(http" not in text


def test_a_profile_alone_has_a_page(tmp_path: Path) -> None:
    kernels = [{"name": "matmul", "program": 0, "kind": "kernel", "calls": 4, "seconds": 4e-3, "bytes": 100, "flops": 1000, "lines": [[__file__, 1]]}]
    write_profile({"kernels": kernels, "programs": [{"name": "f", "device": "cpu", "calls": 4, "seconds": 5e-3}]}, tmp_path / "profile.html")
    assert "matmul" in (tmp_path / "profile.html").read_text(encoding="utf-8")
    with pytest.raises(ArgumentError, match="a profile has kernels"):
        write_profile({}, tmp_path / "profile.html")


def test_what_a_program_is_called_cannot_end_the_script() -> None:
    def evil(x: Any) -> Any:
        return hnp.exp(x)  # </script><script>alert(1)</script>

    evil.__name__ = "</title></script><b>"
    text = page(hg.explain(evil)(hnp.ones(3)).data())
    assert "<b>" not in re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)
    assert text.count("</script>") == 3


def test_every_script_is_part_of_the_page_and_is_installed() -> None:
    assert {p.name for p in (FOLDER / "page").glob("*.js")} == set(SCRIPTS)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert set(project["tool"]["setuptools"]["package-data"]["hologram.report"]) == {"page/*", "vendor/*"}


def test_code_of_others_comes_with_its_licence() -> None:
    vendor = FOLDER / "vendor"
    listed = (vendor / "README.md").read_text()
    for script in vendor.glob("*.js"):
        assert f"`{script.name}`" in listed
    assert "Permission is hereby granted" in (vendor / "LICENSE.dagre.txt").read_text()
    assert "Permission is hereby granted" in page(hg.explain(lambda x: x)(hnp.ones(3)).data())


def test_a_page_of_a_profile_has_the_shares_of_its_table() -> None:
    """Programs that ran a different number of times: the time of all their calls counts."""
    f, g = hg.jit(lambda x: hnp.tanh(x) + 1), hg.jit(lambda x: hnp.sum(x @ x, axis=0))
    x = np.ones((64, 64), np.float32)
    with hg.profile() as p:
        for _ in range(20):
            hg.block_until_ready(f(x))
        for _ in range(3):
            hg.block_until_ready(g(x))
    data = profile_data(p)
    found = [k for part in data["parts"] for k in part["kernels"]]
    kernels = [k for k in p.kernels if k.seconds]
    assert sum(k["seconds"] for k in found) == pytest.approx(sum(k.seconds or 0.0 for k in kernels))
    assert sorted(k["least_seconds"] * k["times"] / k["seconds"] for k in found) == pytest.approx(
        sorted(p.measured.share_of_roofline(k) or 0.0 for k in kernels)
    )
