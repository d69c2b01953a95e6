"""What checks ask of the machine, in one object, so that tests can put another machine in its place."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hologram.backends.native.processors import usable_processors

COMMAND_SECONDS = 60.0  # longer than drivers take that compile something when they are looked for


def _run(command: Sequence[str]) -> str | None:
    """What a command prints; None where it is not there, fails, or takes too long."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_SECONDS, stdin=subprocess.DEVNULL, errors="replace")
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout if done.returncode == 0 else None


@dataclass(frozen=True)
class Machine:
    """A machine and a process there. ``root`` is where /proc, /sys and /etc are looked for; ``system`` is ``sys.platform``."""

    system: str = sys.platform
    root: Path = Path("/")
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    processors: int = field(default_factory=lambda: os.cpu_count() or 1)
    affinity: int | None = field(default_factory=lambda: len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None)
    process: int = field(default_factory=os.getpid)
    load: Callable[[], float] = lambda: os.getloadavg()[0]
    command: Callable[[Sequence[str]], str | None] = _run
    pause: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.perf_counter

    @property
    def is_linux(self) -> bool:
        return self.system.startswith("linux")

    @property
    def is_mac(self) -> bool:
        return self.system == "darwin"

    @property
    def usable(self) -> int:
        """Processors that Hologram uses if it is not told otherwise."""
        return usable_processors(self.root, self.affinity or self.processors)

    def text(self, path: str | Path) -> str | None:
        """The text of a small file under the root, without space around it; None where it cannot be read."""
        try:
            return (self.root / path).read_text(errors="replace").strip()
        except OSError:
            return None


def this_machine() -> Machine:
    """The machine that runs this process."""
    return Machine()
