"""Where a test process stopped that was killed by a signal: told at the end of the run, where the names of failed tests stand."""

from __future__ import annotations

import faulthandler
import tempfile
from pathlib import Path
from typing import Any

import pytest

_OPTION = "crash_folder"


class Controller:
    """Gives workers a folder to write to, and prints what they left there."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="hologram-crashes-")

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput[_OPTION] = self._folder.name

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        for file in sorted(Path(self._folder.name).iterdir()):
            own = [line for line in file.read_text().splitlines() if "site-packages" not in line]  # without the test runner's frames
            if own:
                terminalreporter.section(f"{file.name} stopped here")
                terminalreporter.write_line("\n".join(own))
        self._folder.cleanup()


class Worker:
    """Writes the threads' frames to a file of the worker's own when a signal stops it."""

    def __init__(self, worker: dict[str, Any]) -> None:
        self._file = (Path(worker[_OPTION]) / worker["workerid"]).open("w")

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        faulthandler.enable(self._file)

    @pytest.hookimpl(tryfirst=True)
    def pytest_unconfigure(self) -> None:
        faulthandler.disable()
        self._file.close()


def register(config: pytest.Config) -> None:
    """Adds what this process needs: it is a worker of xdist, or what starts them."""
    worker = getattr(config, "workerinput", None)
    config.pluginmanager.register(Controller() if worker is None else Worker(worker))
