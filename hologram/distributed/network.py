"""What messages between the processes cost (the alpha-beta model), measured, and kept in the disk cache beside the rates of devices."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from typing import Any

import numpy as np

from hologram.backends import object_cache as disk
from hologram.errors import DistributedError
from hologram.support.user_lines import located
from hologram.support.world import Call, Network, current_world

SMALL, LARGE = 8, 1 << 24  # bytes of a message
MESSAGES = 64  # that a rank sends at once
ROUNDS = 40
LARGE_ROUNDS = 4
TIMEOUT = 120.0  # seconds for processes that measure
_FIELDS = set(Network._fields)


def known(processes: int, is_local: bool) -> Network | None:
    """What so many processes on this machine, or on several, have measured; None where none have."""
    key = _key(processes, is_local)
    found = disk.load_entry(key, lambda data, meta: meta.keys() == _FIELDS and all(type(x) is float and x > 0 for x in meta.values()))
    return None if found is None else Network(**found[1])


def _key(processes: int, is_local: bool) -> str:
    return disk.key("network", f"{processes} processes", "one machine" if is_local else "several machines")


def measure_network() -> Network:
    """Measures latency, bandwidth and the cost of each message between the processes; all call it. It takes about a second.

    Each rank sends to the next one, all at the same time. What rank 0 measures holds for all, decides from then on which small sums are one call, and
    is kept on this machine for as many processes. Raises DistributedError where one process runs alone.

    >>> hg.distributed.simulate(2).run(hg.distributed.measure_network)[0].latency > 0
    True
    """
    world = current_world()
    if world.size < 2:
        raise located(DistributedError("measure_network: one process runs: there is no network between processes"))
    right, left = (world.rank + 1) % world.size, (world.rank - 1) % world.size
    call = Call(f"measure_network of {world.size}", "")
    out, into = np.zeros(LARGE, np.uint8), np.zeros(LARGE, np.uint8)

    def send(nbytes: int, times: int = 1) -> None:
        messages = [world.begin(call, {right: out[:nbytes]}, {left: into[:nbytes]}) for _ in range(times)]
        for m in messages:
            m.wait()

    with world.lock:
        small = _fastest(lambda: send(SMALL), ROUNDS)
        many = _fastest(lambda: send(SMALL, MESSAGES), ROUNDS // 4)
        large = _fastest(lambda: send(LARGE), LARGE_ROUNDS)
        figures = np.array([small, LARGE / max(large - small, 1e-6), max(many - small, 1e-9) / (MESSAGES - 1)])
        for rank in range(1, world.size):
            if world.rank in (0, rank):
                sends, receives = ({rank: figures.view(np.uint8)}, {}) if world.rank == 0 else ({}, {0: figures.view(np.uint8)})
                world.begin(call, sends, receives, 1).wait()
    world.network = Network(*map(float, figures))
    names = getattr(world, "names", None)
    if names is not None and world.rank == 0:
        _keep(world.network, world.size, is_local=len({_host(n) for n in names}) == 1)
    return world.network


def _host(name: str) -> str:
    return name.partition("host ")[2].partition(",")[0]


def _fastest(run: Any, times: int) -> float:
    """Seconds of the fastest run: other work makes them slower, never faster."""
    run()
    found = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        found.append(time.perf_counter() - start)
    return min(found)


def _keep(network: Network, processes: int, is_local: bool) -> None:
    """Keeps measured figures on this machine."""
    disk.store(_key(processes, is_local), b"", network._asdict(), kind="rates")


def measure_here(processes: int = 2) -> Network:
    """Starts processes on this machine that measure the network between them, and keeps what they find. Raises DistributedError where they fail."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "hologram.distributed.network", f"127.0.0.1:{port}", str(processes), str(rank)],
            env=os.environ | {"OMP_NUM_THREADS": "1"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(processes)
    ]
    try:
        texts = [p.communicate(timeout=TIMEOUT)[1] for p in started]
    except subprocess.TimeoutExpired:
        texts = [f"they took more than {TIMEOUT:g} s"]
    finally:
        for p in started:
            p.kill()
    found = known(processes, is_local=True)
    if found is None:
        said = next((line for text in texts for line in reversed(text.splitlines()) if line), "they said nothing")
        raise located(DistributedError(f"the network between {processes} processes of this machine cannot be measured: {said}"))
    return found


def main() -> None:
    """One of the processes that :func:`measure_here` starts."""
    from hologram.distributed.processes import initialize, shutdown

    address, processes, rank = sys.argv[1:]
    initialize(address, int(processes), int(rank), timeout=TIMEOUT)
    measure_network()
    shutdown()


if __name__ == "__main__":
    main()
