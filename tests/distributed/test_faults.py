"""Faults: trainings whose ranks are killed at random moments go on from the last complete checkpoint, and Ctrl-C ends all ranks."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import hologram as hg
from examples import data_parallel
from hologram.distributed import checkpoint, process_allgather, simulate
from tests.support.distributed.launching import Launched, children, end, needs_torch, torchrun
from tests.support.distributed.training import EVERY
from tests.support.runner.libraries import library

library("safetensors.numpy")
RANKS = 2
CHECKPOINTS = 3  # that ranks write at most until one is killed
PATIENCE = 60.0  # seconds for all ranks to come back
PAUSE = 0.01  # seconds between two looks
SPARE = 50  # restarts beside those after kills: of ranks that time out where the machine stands still


def starts(folder: Path) -> list[tuple[int, int, int]]:
    """The rank, the process and the first step of each start, in pairs of both ranks."""
    file = folder / "resumed"
    text = file.read_text() if file.exists() else ""
    found = [tuple(map(int, line.split())) for line in text.splitlines(keepends=True) if line.endswith("\n")]
    return found  # type: ignore[return-value]


def whole(folder: Path, step: int) -> Any:
    """The state of a checkpoint."""

    def read() -> Any:
        found = checkpoint.restore(folder, data_parallel.begin(hg.make_mesh((1,), "data"), zero=True), step)
        return [np.asarray(x) for x in hg.tree.leaves(process_allgather(found["momentum"])) + found["weights"]]

    return simulate(1).run(read)[0]


def wait_until(condition: Callable[[], Any], running: Launched, what: str) -> None:
    """Counts its own pauses, not the clock: a machine that stands still is no rank that hangs."""
    for _ in range(round(PATIENCE / PAUSE)):
        if condition():
            return
        assert running.poll() is None, f"torchrun has ended: {end(running, 1)}"
        time.sleep(PAUSE)
    raise AssertionError(what)


def kill_one(folder: Path, running: Launched, rng: random.Random) -> int:
    """Kills a rank at a random moment: while it starts, or after some more checkpoints. The last checkpoint then."""
    parent = running.pid
    if rng.random() < 0.2:
        wait_until(lambda: len(children(parent)) == RANKS, running, "no ranks start")
        time.sleep(rng.uniform(0, 2))
    else:
        more = (checkpoint.latest(folder / "checkpoints") or 0) + EVERY * rng.randint(0, CHECKPOINTS)
        wait_until(lambda: (checkpoint.latest(folder / "checkpoints") or 0) >= more, running, "ranks make no progress")
        wait_until(lambda: len(children(parent)) == RANKS, running, "no ranks are left")
        time.sleep(rng.uniform(0, 0.1))
    alive, last = children(parent), checkpoint.latest(folder / "checkpoints") or 0
    os.kill(rng.choice(alive), signal.SIGKILL)
    wait_until(lambda: not set(children(parent)) & set(alive), running, "a rank goes on without the other")
    return last


@needs_torch
def test_trainings_go_on_from_the_last_checkpoint(tmp_path: Path, everything: bool) -> None:
    """A rank hangs, and then ranks are killed: the state at the end has the bits of a training that nothing interrupted."""
    kills, rng = 100 if everything else 1, random.Random(3)
    steps = (kills * (CHECKPOINTS + 1) + 4) * EVERY  # more than are made in so many lives
    (tmp_path / "hang").touch()
    running, lasts = torchrun(RANKS, "tests.support.distributed.training", tmp_path, steps, 5, restarts=kills + SPARE), []
    try:
        wait_until(lambda: len(starts(tmp_path)) > RANKS, running, "a rank that hangs is not started anew")
        for _ in range(kills):
            lasts.append(kill_one(tmp_path, running, rng))
    finally:
        said = end(running, PATIENCE + steps / 10 if len(lasts) == kills else 1)
    assert running.returncode == 0, said
    assert "DistributedTimeoutError" in said and "did not come to it within 5 s" in said and "data_parallel.py" in said
    assert len(os.listdir(tmp_path / "checkpoints")) == 2, "what was interrupted is left"
    firsts = [step for _, _, step in starts(tmp_path)]
    assert firsts == sorted(firsts) and all(step % EVERY == 0 for step in firsts) and EVERY in firsts
    assert lasts == sorted(lasts) and max(firsts) >= lasts[-1], "what was there before the last kill is gone on from"
    simulate(RANKS).run(data_parallel.train, steps, True, str(tmp_path / "straight"), EVERY)
    for found, want in zip(whole(tmp_path / "checkpoints", steps), whole(tmp_path / "straight", steps), strict=True):
        np.testing.assert_array_equal(found, want)
    print(f"{kills} kills, begun at steps {firsts[::RANKS]}")


@needs_torch
def test_ctrl_c_ends_all_ranks(tmp_path: Path) -> None:
    running = torchrun(RANKS, "tests.support.distributed.training", tmp_path, 100_000, 30)
    wait_until(lambda: len(starts(tmp_path)) == RANKS, running, "no ranks start")
    ranks = children(running.pid)
    assert len(ranks) == RANKS
    time.sleep(0.2)
    for pid in [running.pid, *ranks]:  # as a terminal does
        os.kill(pid, signal.SIGINT)
    end(running, 30)
    assert not any(Path(f"/proc/{pid}").exists() for pid in ranks)
