"""Starting programs by torchrun, on this machine."""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port: int = s.getsockname()[1]
        return port


class Launched(subprocess.Popen[str]):
    """A program whose output goes to a file: a pipe that nobody reads meanwhile stops the program once it is full."""

    def __init__(self, command: list[str], **options: Any) -> None:
        self.printed = tempfile.TemporaryFile("w+")
        self._text: str | None = None
        super().__init__(command, stdout=self.printed, stderr=subprocess.STDOUT, text=True, **options)

    def output(self) -> str:
        """What it has printed, when it has ended."""
        if self._text is None:
            with self.printed:
                self.printed.seek(0)
                self._text = self.printed.read()
        return self._text


def torchrun(size: int, module: str, *arguments: object, restarts: int = 0) -> Launched:
    """Starts ``python -m module`` as ``size`` processes. :func:`end` gives what they print."""
    options = [f"--nproc-per-node={size}", f"--max-restarts={restarts}", "--monitor-interval=0.1", "--master-addr=127.0.0.1"]
    command = [sys.executable, "-m", "torch.distributed.run", *options, f"--master-port={free_port()}", "-m", module, *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "HOLOGRAM_VERIFY": "0"}  # what simulated ranks verify
    return Launched(command, env=environment, cwd=ROOT)


def end(process: Launched, seconds: float) -> str:
    """What a program printed until its end, which comes within some seconds, or is brought about then."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.terminate()
        process.wait()
    return process.output()


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
