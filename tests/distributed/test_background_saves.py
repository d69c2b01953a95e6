"""Saves that are written beside the program, and trainings of real processes that go on with another number of them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hologram as hg
from examples import data_parallel
from hologram import errors
from hologram.distributed import NamedSharding, PartitionSpec, checkpoint, process_allgather, process_index, simulate
from hologram.distributed.checkpoint import background, folder
from tests.support.distributed.launching import ROOT, end, needs_torch, torchrun
from tests.support.runner.libraries import library

pytestmark = pytest.mark.costly(2)

library("safetensors.numpy")
P = PartitionSpec
WRITER = "hologram.distributed.checkpoint.background.write_parts"


def state(step: int) -> dict[str, Any]:
    """Of one rank of two: a part of one array, all of another."""
    mesh = hg.make_mesh((2,), "a")
    return {"x": hg.device_put(np.arange(8.0) + step, NamedSharding(mesh, P("a"))), "y": np.full(3, step), "step": step}


def read(directory: Path, step: int | None = None) -> Any:
    found = checkpoint.restore(directory, state(0), step)
    return np.asarray(process_allgather(found["x"])).tolist(), found["y"].tolist(), found["step"]


def wanted(step: int) -> Any:
    return (np.arange(8.0) + step).tolist(), [step] * 3, step


def test_the_program_goes_on_and_changes_its_arrays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()

    def slow(file: Path, parts: Any) -> int:
        assert gate.wait(20)
        return folder.write_parts(file, parts)

    monkeypatch.setattr(WRITER, slow)

    def main() -> Any:
        first = state(1)
        checkpoint.save(tmp_path, first, 1, background=True)
        first["y"][:] = 99
        assert checkpoint.latest(tmp_path) is None
        process_allgather(process_index())  # collectives of the program go on
        gate.set()
        checkpoint.save(tmp_path, state(2), 2, background=True)
        checkpoint.wait()
        return read(tmp_path, 1), read(tmp_path)

    assert simulate(2).run(main) == [(wanted(1), wanted(2))] * 2
    assert sorted(os.listdir(tmp_path / "step_00000002")) == ["index.json", *[folder.file_name(r, 2) for r in (0, 1)]]


def test_files_are_those_of_a_save_that_is_waited_for(tmp_path: Path) -> None:
    for where, beside in (("a", True), ("b", False)):
        simulate(2).run(lambda w=where, b=beside: (checkpoint.save(tmp_path / w, state(3), 3, background=b), checkpoint.wait()))  # type: ignore[misc]
    for name in os.listdir(tmp_path / "a" / "step_00000003"):
        assert (tmp_path / "a" / "step_00000003" / name).read_bytes() == (tmp_path / "b" / "step_00000003" / name).read_bytes()


@pytest.mark.parametrize("failing", [0, 1])
@pytest.mark.parametrize("next_call", ["wait", "save"])
def test_errors_come_to_the_next_save_or_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: int, next_call: str) -> None:
    def disk_full(file: Path, parts: Any) -> int:
        if f"rank_{failing:05d}" in file.name and "00000001" in file.parent.name:
            raise OSError("no space left")
        return folder.write_parts(file, parts)

    monkeypatch.setattr(WRITER, disk_full)

    def main() -> Any:
        checkpoint.save(tmp_path, state(1), 1, background=True)
        try:
            checkpoint.wait() if next_call == "wait" else checkpoint.save(tmp_path, state(2), 2)
        except Exception as e:
            told = e
        assert checkpoint.latest(tmp_path) is None
        checkpoint.save(tmp_path, state(3), 3, background=True)
        checkpoint.wait()
        checkpoint.wait()  # nothing is under way
        return told, read(tmp_path)

    said = simulate(2).run(main)
    assert [found for _, found in said] == [wanted(3)] * 2 and os.listdir(tmp_path) == ["step_00000003"]
    assert isinstance(said[failing][0], OSError) and "no space" in str(said[failing][0])
    other = said[1 - failing][0]
    assert isinstance(other, errors.CheckpointError) and f"save of step 1: rank {failing} has failed" in str(other)


def test_an_interrupted_save_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever call of the system is the last: what was saved before is the latest."""
    simulate(2).run(lambda: checkpoint.save(tmp_path, state(0), 0))
    left, lock = [0], threading.Lock()

    class PowerLoss(Exception):
        """No rank does anything from then on."""

    def failing(original: Any) -> Any:
        def call(*args: Any, **keywords: Any) -> Any:
            with lock:
                left[0] -= 1
                if left[0] < 0:
                    raise PowerLoss
            return original(*args, **keywords)

        return call

    def main() -> Any:
        try:
            checkpoint.save(tmp_path, state(1), 1, background=True)
            checkpoint.wait()
        except Exception as e:
            return type(e).__name__
        return None

    for name in ("replace", "rename", "fsync"):
        monkeypatch.setattr(os, name, failing(getattr(os, name)))
    for attempt in range(40):
        left[0] = attempt
        said = simulate(2).run(main)
        left[0] = 1000
        latest = checkpoint.latest(tmp_path)
        assert simulate(2).run(lambda: read(tmp_path)) == [wanted(latest or 0)] * 2
        if latest == 1:
            break
        assert set(said) <= {"PowerLoss", "CheckpointError"}
    assert attempt > 8


def test_a_program_that_ends_without_a_wait(tmp_path: Path) -> None:
    def run(text: str) -> str:
        imports = "import sys, hologram as hg\nfrom hologram.distributed import checkpoint\nfrom hologram.distributed.checkpoint import background\n"
        save = f"\ncheckpoint.save({str(tmp_path)!r}, {{'x': hg.numpy.ones(3)}}, int(sys.argv[1]), background=True)"
        program = [sys.executable, "-c", imports + text + save, "4"]
        run = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
        return run.stderr

    assert not run("") and checkpoint.latest(tmp_path) == 4
    for found in tmp_path.iterdir():
        found.rename(tmp_path.parent / "elsewhere")
    assert "the checkpoint of step 4 was not written: no disk" in run("def w(*_): raise OSError('no disk')\nbackground.write_parts = w")
    assert checkpoint.latest(tmp_path) is None
    assert not background._under_way


@needs_torch
def test_processes_go_on_as_another_number_of_them(tmp_path: Path, everything: bool) -> None:
    """With the bits of simulated ranks that do the same."""
    options = ["--zero", "--checkpoints"]
    for ranks, steps in ((2, 10), (3 if everything else 1, 20)):
        running = torchrun(ranks, "examples.data_parallel", *options, tmp_path / "real", "--steps", steps)
        said = end(running, 120)
        assert running.returncode == 0, said
        simulate(ranks).run(data_parallel.train, steps, True, str(tmp_path / "simulated"))

    def whole(name: str) -> list[Any]:
        found = checkpoint.restore(tmp_path / name, data_parallel.begin(hg.make_mesh((1,), "data"), zero=True))
        return [np.asarray(x).tolist() for x in hg.tree.leaves(process_allgather(found["momentum"])) + found["weights"]] + [found["step"]]

    real, simulated = (simulate(1).run(whole, name)[0] for name in ("real", "simulated"))
    assert real == simulated and real[-1] == 20
