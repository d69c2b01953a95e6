"""Collectives beside computation: in threads of their own, on a slow wire, between real processes, and when a call ends early."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest

import hologram as hg
from hologram.distributed import PartitionSpec, simulate, simulation
from hologram.errors import DistributedError
from hologram.primitives.host import lanes
from hologram.support.world import Alone
from tests.support.distributed import overlap_program
from tests.support.distributed.overlap import SIZE, gradients, weights
from tests.support.distributed.starting import HAS_TORCH, said_by_ranks

P = PartitionSpec


def test_a_slow_wire_does_not_hold_up_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first gradients are sent by the world's lane, while the program goes on to compute; with the same bits."""
    want = simulate(2).run(overlap_program.results)
    threads: list[str] = []
    waits = simulation._Messages.wait

    def slow(self: Any, sent: bool = True) -> None:
        threads.append(threading.current_thread().name)
        time.sleep(0.01)
        waits(self, sent)

    monkeypatch.setattr(simulation._Messages, "wait", slow)
    assert simulate(2).run(overlap_program.results) == want
    assert "hologram collectives" in threads


def test_a_rank_that_fails_beside_a_collective_ends_the_others() -> None:
    def main() -> None:
        mesh = hg.make_mesh((2,), "x")
        rank = hg.distributed.process_index()
        step = hg.jit(hg.shard_map(gradients, mesh, P(), P(), check_vma=False))
        if rank == 1:
            raise ValueError("rank 1 is gone")
        with pytest.raises(DistributedError, match="rank 1 failed"):
            step(weights(), np.ones((SIZE, SIZE), np.float32))

    with pytest.raises(ValueError, match="rank 1 is gone"):
        simulate(2).run(main)
    assert not lanes._under_way


def test_collectives_of_a_lane_run_in_the_order_of_their_starts() -> None:
    world, seen = Alone(), []  # type: ignore[var-annotated]
    lane, gate = lanes.Lane(world), threading.Event()
    first = lane.submit(world, lambda: (gate.wait(5), seen.append(1))[1])
    later = [lane.submit(world, lambda i=i: seen.append(i)) for i in (2, 3)]  # type: ignore[misc]
    assert lane.is_busy and not first.is_done
    gate.set()
    for ticket in (*later, first):
        ticket.wait()
    assert seen == [1, 2, 3] and not lane.is_busy
    failed = lane.submit(world, lambda: 1 / 0)  # type: ignore[arg-type, return-value]
    with pytest.raises(ZeroDivisionError):
        failed.wait()


@pytest.mark.skipif(not HAS_TORCH, reason="torch is not installed")
def test_real_processes_with_an_interrupt() -> None:
    said = said_by_ranks("tests.support.distributed.overlap_program", 2)
    want = simulate(2).run(overlap_program.results)
    assert [said[r]["results"] for r in range(2)] == want
    assert said[0]["network"] == said[1]["network"]
    assert 0.5 < said[0]["interrupted"] < 20 and said[0]["left"] == 0
    assert said[0]["predicted"] < 20 * said[0]["measured"] and said[0]["measured"] < 20 * said[0]["predicted"]  # on a machine that does other work
