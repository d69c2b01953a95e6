"""Starting a module as several processes, as torchrun would."""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
TIMEOUT = 150.0  # seconds for each process, most of which go into importing torch
HAS_TORCH = importlib.util.find_spec("torch") is not None


def said_by_ranks(module: str, size: int) -> dict[int, dict[str, Any]]:
    """The line of JSON that each rank of a program prints."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(size), "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    started = [
        subprocess.Popen(
            [sys.executable, "-m", module],
            env=os.environ | where | {"RANK": str(r)},
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for r in range(size)
    ]
    try:
        texts = [p.communicate(timeout=TIMEOUT) for p in started]
    finally:
        for p in started:
            p.kill()
    said = {s["rank"]: s for out, _ in texts for s in map(json.loads, out.splitlines())}
    assert len(said) == size, texts
    return said
