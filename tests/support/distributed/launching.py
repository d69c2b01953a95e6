"""Starting programs by torchrun, on this machine."""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port: int = s.getsockname()[1]
        return port


def torchrun(size: int, module: str, *arguments: object, restarts: int = 0) -> subprocess.Popen[str]:
    """Starts ``python -m module`` as ``size`` processes. What they print comes from the one that is returned."""
    options = [f"--nproc-per-node={size}", f"--max-restarts={restarts}", "--monitor-interval=0.1", "--master-addr=127.0.0.1"]
    command = [sys.executable, "-m", "torch.distributed.run", *options, f"--master-port={free_port()}", "-m", module, *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "HOLOGRAM_VERIFY": "0"}  # what simulated ranks verify
    return subprocess.Popen(command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def end(process: subprocess.Popen[str], seconds: float) -> str:
    """What a program printed until its end, which comes within some seconds."""
    try:
        return process.communicate(timeout=seconds)[0]
    finally:
        process.terminate()
        process.wait()


def children(pid: int) -> list[int]:
    """The processes that a process has started and that live."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
        except OSError:  # which has ended
            continue
        if int(parent) == pid and state != "Z":
            found.append(int(folder.name))
    return sorted(found)
