"""The photograph: the example's pipeline gives NumPy's picture in few kernels, and draws it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from examples import photo


def test_the_pipeline_is_numpys_in_few_kernels() -> None:
    picture = photo.read(photo.sample())[40:203, 150:300]

    def pipeline(picture: Any) -> Any:
        return photo.develop(hnp, picture)

    compiled = hg.jit(pipeline).lower(picture).compile()
    after, facts = compiled(picture)
    expected, expected_facts = photo.develop(np, picture)
    assert after.dtype == expected.dtype == np.float32
    assert np.abs(np.asarray(after) - expected).max() < 1e-4
    assert {k: float(v) for k, v in facts.items()} == pytest.approx({k: float(v) for k, v in expected_facts.items()}, abs=1e-5)
    reduction, memory = compiled.reduction(), compiled.memory_analysis()
    assert reduction.kernels <= reduction.traced / 4
    assert memory.peak <= 1.05 * memory.lower_bound


def test_the_pipeline_changes_what_is_seen() -> None:
    picture = photo.read(photo.sample())
    after, facts = photo.develop(np, picture)
    before = picture / 255
    assert after.shape == before.shape and after.min() >= 0 and after.max() <= 1
    assert np.abs(after - before).mean() > 0.05
    detail = [np.abs(np.diff(v, axis=0)).mean() for v in (before, after)]
    assert detail[1] > 1.5 * detail[0]
    assert facts["darkest"] < 0.01 and facts["brightest"] > 0.9


def test_the_report_is_written(tmp_path: Path) -> None:
    photo.explain(photo.read(photo.sample())[:40, :50], tmp_path / "new" / "report.html")
    assert "photo.py" in (tmp_path / "new" / "report.html").read_text(encoding="utf-8")


def test_the_picture_is_drawn(tmp_path: Path) -> None:
    picture = photo.read(photo.sample())[::4, ::4]
    photo.draw(picture, picture / np.float32(255), tmp_path / "new" / "photo.png")
    drawn = photo.read(tmp_path / "new" / "photo.png")
    assert drawn.shape[0] > 1000 and drawn.std() > 20
