"""Ranks of one program on this machine, each a process pinned to a core."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from typing import Any

SECONDS = 600  # that ranks have


def run_ranks(module: str, arguments: list[str], ranks: int) -> list[dict[str, Any]]:
    """Runs ``python -m module arguments`` on each rank, whose environment is as torchrun makes it; the lines of JSON that the first prints."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    common = {"WORLD_SIZE": ranks, "LOCAL_WORLD_SIZE": ranks, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "GLOO_SOCKET_IFNAME": "lo"}
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdout=subprocess.PIPE if r == 0 else subprocess.DEVNULL,
            stderr=None if r == 0 else subprocess.DEVNULL,
            text=True,
            env=os.environ | {k: str(v) for k, v in (common | {"RANK": r, "LOCAL_RANK": r}).items()},
        )
        for r in range(ranks)
    ]
    try:
        printed, _ = processes[0].communicate(timeout=SECONDS)
    finally:
        for p in processes:
            p.kill()
    return [json.loads(line) for line in printed.splitlines() if line.startswith("{")]


def pin() -> int:
    """Pins this rank to a core; the number of cores."""
    if not hasattr(os, "sched_setaffinity"):
        return os.cpu_count() or 1
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[int(os.environ["RANK"]) % len(cores)]})
    return len(cores)
