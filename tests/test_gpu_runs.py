"""The runner of the tests on GPUs: tests that die, hang or break the device are told by name, and all others are run."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.gpu.runs import Chunk, Runs

GPU = Path(__file__).parent / "gpu"
TESTS = """\
import os, time
def test_before(): pass
def test_dies(): os._exit(7)
def test_fails(): assert 1 + 1 == 3
def test_hangs(): time.sleep(100)
def test_after(): pass
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(GPU / "conftest.py", tmp_path / "conftest.py")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_some.py").write_text(TESTS)
    return tmp_path


def results(folder: Path, names: list[str], device: str, **options: float) -> tuple[dict[str, str], str]:
    runs = Runs(device, 1, options.get("seconds", 100), options.get("each", 100), folder / "report", folder=folder)
    runs.run([Chunk([f"test_some.py::{name}" for name in names])])
    told = [json.loads(line) for line in (folder / "report").read_text().splitlines()]
    return {t["test"].rpartition("::")[2]: t["outcome"] for t in told}, runs.summary()


def test_a_process_that_dies_or_hangs_takes_one_test_with_it(folder: Path) -> None:
    found, said = results(folder, ["test_before", "test_dies", "test_hangs", "test_after"], "cpu", each=15)
    assert found == {"test_before": "passed", "test_dies": "died", "test_hangs": "hung", "test_after": "passed"}
    assert "2 passed" in said and "died: " in said


def test_a_device_that_is_lost_is_told_from_a_test_that_fails(folder: Path) -> None:
    names = ["test_fails", "test_after"]
    assert results(folder, names, "cpu")[0] == {"test_fails": "failed", "test_after": "passed"}
    assert results(folder, names, "null:0")[0] == {"test_fails": "lost", "test_after": "passed"}  # no value can be read there


def test_what_there_is_no_time_for_is_told(folder: Path) -> None:
    found, said = results(folder, ["test_after"], "cpu", seconds=-1)
    assert found == {} and "no time for 1 tests" in said
