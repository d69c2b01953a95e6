"""Processes on this machine that measure the network between them, started for that."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

from hologram.distributed.network import known, measure_network
from hologram.distributed.processes import initialize, shutdown
from hologram.errors import DistributedError
from hologram.support.user_lines import located
from hologram.support.world import Network

TIMEOUT = 120.0  # seconds for processes that measure


def measure_here(processes: int = 2) -> Network:
    """Starts processes on this machine that measure the network between them, and keeps what they find. Raises DistributedError where they fail."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "hologram.distributed.local_measurement", f"127.0.0.1:{port}", str(processes), str(rank)],
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
    address, processes, rank = sys.argv[1:]
    initialize(address, int(processes), int(rank), timeout=TIMEOUT)
    measure_network()
    shutdown()


if __name__ == "__main__":
    main()
