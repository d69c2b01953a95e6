"""Ranks that end in every way in which a program ends: ``python -m tests.support.distributed.exits REPEATS``.

This process imports all that ranks need, and forks pairs of ranks, so that a way to end costs no import. It prints a line of JSON for each pair: the
way, how each rank has ended, and what both have written.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.distributed as engine

import hologram as hg
from hologram.distributed import PartitionSpec, initialize, process_count, process_index, shutdown
from hologram.errors import DistributedError
from tests.support.distributed.launching import free_port

P = PartitionSpec
RANKS = 2
SECONDS = 30.0  # that a pair has
PAUSE = 0.002
HANG = "hangs"


def total(x: Any = 1.0) -> float:
    mesh = hg.make_mesh((process_count(),), "i")
    return float(hg.shard_map(lambda v: hg.lax.psum(v, "i"), mesh, P(), P(), check_vma=False)(np.float32(x)))


def join() -> None:
    initialize(timeout=SECONDS)
    assert total() == RANKS


# --- ways to end -----------------------------------------------------------------------------------------------------


def exits() -> None:
    join()
    sys.exit(3)


def raises() -> None:
    join()
    raise ValueError("the end")


def is_interrupted() -> None:
    join()
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(SECONDS)


def shuts_down() -> None:
    """No thread of the engine is left: its own free Python objects, too."""
    before = len(os.listdir("/proc/self/task")) if sys.platform == "linux" else 0
    join()
    engine.all_reduce(torch.ones(1))
    shutdown()
    if before:
        assert len(os.listdir("/proc/self/task")) == before


def sums_in_torch() -> None:
    """A thread of the engine frees the array of a sum that nobody has waited for."""
    join()
    engine.all_reduce(torch.ones(1), async_op=True)


def shuts_down_twice() -> None:
    join()
    shutdown()
    shutdown()


def joins_again() -> None:
    join()
    shutdown()
    os.environ["MASTER_PORT"] = os.environ["SECOND_PORT"]
    join()


def threads_wait() -> None:
    """A thread of the first rank waits for the second, which does not come."""
    join()
    if process_index() == 0:
        threading.Thread(target=_total_in_vain, daemon=True).start()
    time.sleep(random.uniform(0, 0.05))


def thread_and_peer_wait() -> None:
    """The same, and the other rank ends a while later."""
    join()
    if process_index() == 0:
        threading.Thread(target=_total_in_vain, daemon=True).start()
        time.sleep(0.02)
    else:
        time.sleep(0.5)


def _total_in_vain() -> None:
    try:
        total()
    except DistributedError:
        time.sleep(SECONDS)


def forks() -> None:
    """A child of a rank ends as any program does, and takes nothing from its parent."""
    join()
    child = os.fork()
    if child == 0:
        try:
            total()
        except DistributedError as e:
            sys.exit(0 if "forked" in str(e) else str(e))
        sys.exit("a child sums with the connections of its parent")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert total(2.0) == 2 * RANKS


def destroys_the_group() -> None:
    join()
    engine.destroy_process_group()


def has_a_group_of_its_own() -> None:
    engine.init_process_group("gloo")
    join()


def has_a_group_and_shuts_down() -> None:
    engine.init_process_group("gloo")
    join()
    shutdown()
    engine.destroy_process_group()


def checkpoints() -> None:
    """A thread writes when the program ends."""
    join()
    folder = os.environ["FOLDER"]
    hg.distributed.checkpoint.save(folder, {"x": np.ones(1 << 16, np.float32)}, 1, background=True)


WAYS: dict[Callable[[], None], int] = {  # and the status
    join: 0,
    exits: 3,
    raises: 1,
    is_interrupted: -signal.SIGINT,
    shuts_down: 0,
    sums_in_torch: 0,
    shuts_down_twice: 0,
    joins_again: 0,
    threads_wait: 0,
    thread_and_peer_wait: 0,
    forks: 0,
    destroys_the_group: 0,
    has_a_group_of_its_own: 0,
    has_a_group_and_shuts_down: 0,
    checkpoints: 0,
}


# --- pairs of ranks --------------------------------------------------------------------------------------------------


def serve(repeats: int) -> Callable[[], None] | None:
    """Forks all pairs, one after the other. In a rank: how it is to end."""
    for way in [way for _ in range(repeats) for way in WAYS]:
        ports = {"MASTER_PORT": str(free_port()), "SECOND_PORT": str(free_port())}
        where = {"MASTER_ADDR": "127.0.0.1", "WORLD_SIZE": str(RANKS), **ports}
        with tempfile.TemporaryFile("w+") as printed, tempfile.TemporaryDirectory() as folder:
            started: list[int] = []
            for rank in range(RANKS):
                sys.stdout.flush()
                pid = os.fork()
                if pid == 0:
                    os.environ.update(where | {"RANK": str(rank), "FOLDER": folder})
                    for stream in (1, 2):
                        os.dup2(printed.fileno(), stream)
                    return way
                started.append(pid)
            ended = _ended(started)
            printed.seek(0)
            print(json.dumps({"way": way.__name__, "ended": ended, "want": WAYS[way], "said": printed.read()}), flush=True)
    return None


def _ended(started: list[int]) -> list[int | str]:
    """The exit statuses, negative ones those of signals."""
    found: dict[int, int | str] = {}
    end = time.monotonic() + SECONDS
    while len(found) < len(started):
        for pid in started:
            if pid not in found:
                done, status = os.waitpid(pid, os.WNOHANG)
                if done:
                    found[pid] = os.waitstatus_to_exitcode(status)
                elif time.monotonic() > end:
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
                    found[pid] = HANG
        time.sleep(PAUSE)
    return [found[pid] for pid in started]


if __name__ == "__main__":
    way = serve(int(sys.argv[1]))
    if way is not None:
        way()
