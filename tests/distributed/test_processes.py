"""Real processes on the loopback: the bits of simulated ranks, and clear errors where a process dies, hangs or runs something else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import Any

import pytest

import hologram as hg
from hologram.distributed.environment import Place, find_place, first_node
from hologram.errors import ArgumentError, DistributedError
from tests.support.distributed import program
from tests.support.distributed.launching import ROOT, free_port, needs_torch

STREAMS = ("stdin", "stdout", "stderr")
TIMEOUT = 150.0  # seconds for all processes of a test, most of which go into importing torch


def run(size: int, fault: str, timeout: float) -> dict[int, dict[str, Any]]:
    """What each rank of the program says, as torchrun would start it; a rank that is killed says nothing."""
    where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(size), "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "error::RuntimeWarning", "-m", "tests.support.distributed.program", fault, str(timeout)]
    started = [
        subprocess.Popen(command, env=os.environ | where | {"RANK": str(r)}, cwd=ROOT, text=True, **dict.fromkeys(STREAMS, subprocess.PIPE))
        for r in range(size)
    ]
    end = time.monotonic() + TIMEOUT
    try:
        texts = [p.communicate(timeout=max(0.1, end - time.monotonic())) for p in started]  # closes a rank's stdin when those before it have ended
    finally:
        for p in started:
            p.kill()
    said = {s["rank"]: s for out, _ in texts for s in map(json.loads, out.splitlines())}
    assert said, texts
    return said


@needs_torch
@pytest.mark.parametrize(
    ("size", "fault", "timeout", "error", "texts"),
    [
        (4, "differs", 60.0, "DistributedError", ["ranks run different programs: rank 0 is at psum", "rank 1 at pmax"]),
        (
            2,
            "dies",
            60.0,
            "DistributedError",
            ["rank 0, in psum of float32[3] over 'i' of 2 at program.py", "rank 1 (host ", "is lost"],
        ),
        (2, "hangs", 2.0, "DistributedTimeoutError", ["rank 1 (host ", "did not come to it within 2 s"]),
        (4, "dies", 60.0, "DistributedError", ["rank 1 (host ", "is lost"]),
        (4, "hangs", 4.0, "DistributedTimeoutError", ["rank 1 (host ", "did not come to it within 4 s"]),
    ],
)
def test_processes_have_the_bits_of_simulated_ranks_and_end_together(size: int, fault: str, timeout: float, error: str, texts: list[str]) -> None:
    said = run(size, fault, timeout)
    for rank, want in enumerate(hg.distributed.simulate(size).run(program.results)):
        if rank in said:
            assert said[rank]["results"] == want
    for rank in range(size):
        if rank != 1:
            assert said[rank]["error"] == error and said[rank]["seconds"] < 30, said[rank]
            assert all(text in said[rank]["message"] for text in texts), said[rank]["message"]


@needs_torch
def test_an_interrupt_ends_a_wait_for_another_process() -> None:
    """Rank 1 comes to the collective only when rank 0 has ended."""
    said = run(2, "interrupted", 120.0)
    assert said[0]["error"] == "KeyboardInterrupt" and said[0]["seconds"] >= 1, said[0]
    assert said[1]["error"] == "DistributedError", said[1]


# --- where processes meet --------------------------------------------------------------------------------------------

TORCHRUN = {"MASTER_ADDR": "host1", "MASTER_PORT": "29500", "WORLD_SIZE": "4", "RANK": "3"}
SLURM = {"SLURM_JOB_ID": "20007", "SLURM_STEP_NODELIST": "gpu[03-07,11],login1", "SLURM_PROCID": "1", "SLURM_NTASKS": "8"}


@pytest.mark.parametrize(
    ("arguments", "environment", "place"),
    [
        ((None, None, None), TORCHRUN, Place("host1", 29500, 4, 3)),
        ((None, None, None), TORCHRUN | {"TORCHELASTIC_USE_AGENT_STORE": "True"}, Place("host1", 29500, 4, 3, True)),
        ((None, None, None), TORCHRUN | SLURM, Place("host1", 29500, 4, 3)),
        ((None, None, None), SLURM, Place("gpu03", 20007, 8, 1)),
        (("there:1234", 2, 1), {}, Place("there", 1234, 2, 1)),
        (("[::1]:1234", 2, 1), {}, Place("::1", 1234, 2, 1)),
        (("127.0.0.1:1", None, None), TORCHRUN, Place("127.0.0.1", 1, 4, 3)),
    ],
)
def test_places_are_read_from_arguments_and_environment(arguments: Any, environment: dict[str, str], place: Place) -> None:
    assert find_place(*arguments, environment) == place
    assert place.is_local == (place.host in ("::1", "127.0.0.1"))


@pytest.mark.parametrize(("nodes", "first"), [("a,b", "a"), ("n[1-4]", "n1"), ("n[007,9]-ib,m", "n007-ib"), ("rack2-node3", "rack2-node3")])
def test_first_node_of_a_list(nodes: str, first: str) -> None:
    assert first_node(nodes) == first


@pytest.mark.parametrize(
    ("arguments", "environment", "error", "message"),
    [
        ((None, None, None), {}, DistributedError, "neither .* say coordinator_address, num_processes, process_id"),
        (("h:1", 2, None), {}, DistributedError, "say process_id"),
        (("h", 2, 0), {}, ArgumentError, "is host:port, not 'h'"),
        (("h:x", 2, 0), {}, ArgumentError, "port is an integer, not 'x'"),
        (("h:1", 2, 2), {}, ArgumentError, "process_id 2 of 2 processes"),
        ((None, None, None), TORCHRUN | {"RANK": "-1"}, ArgumentError, "process_id -1 of 4"),
    ],
)
def test_places_that_are_incomplete(arguments: Any, environment: dict[str, str], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        find_place(*arguments, environment)


@needs_torch
def test_processes_that_do_not_come() -> None:
    with pytest.raises(ArgumentError, match="a time-out is positive"):
        hg.distributed.initialize(timeout=0)
    with pytest.raises(DistributedError, match="initialize: the processes did not come together"):
        hg.distributed.initialize(f"127.0.0.1:{free_port()}", 2, 1, initialization_timeout=1)
    assert not hg.distributed.is_initialized()
    hg.distributed.shutdown()
