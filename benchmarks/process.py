"""A process that measures cases: it reads a name a line and answers with a line of JSON."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any

Answer = dict[str, Any]


class Worker(contextlib.AbstractContextManager["Worker"]):
    """The process of ``python -m`` with ``arguments``. One that does not answer in ``seconds``, or dies, is replaced at the next question."""

    def __init__(self, *arguments: str, seconds: float = 600, quiet: bool = False, environment: Mapping[str, str] | None = None) -> None:
        self.command = [sys.executable, "-m", *arguments]
        self.seconds = seconds
        self.errors = subprocess.DEVNULL if quiet else None
        self.environment = {**os.environ, **(environment or {})}
        self.process: subprocess.Popen[str] | None = None

    def ask(self, name: str) -> Answer:
        """The answer; one with the key ``error`` where there is none."""
        process = self.process = self.process or self._started()
        assert process.stdin is not None and process.stdout is not None
        start = time.monotonic()
        late = threading.Timer(self.seconds, process.kill)
        late.start()
        try:
            process.stdin.write(f"{name}\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except OSError:
            line = ""
        finally:
            late.cancel()
        if line:
            return dict(json.loads(line))
        status = self.end()
        return {"error": f"no answer in {self.seconds:g} s" if time.monotonic() - start > self.seconds else f"its process ended with status {status}"}

    def _started(self) -> subprocess.Popen[str]:
        return subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True, env=self.environment)

    def end(self) -> int | None:
        """Ends the process; gives its status, if there was one."""
        process, self.process = self.process, None
        if process is None:
            return None
        process.kill()
        with contextlib.suppress(OSError):  # what was written and never read
            process.communicate()
        return process.returncode

    def __exit__(self, *_: object) -> None:
        self.end()
