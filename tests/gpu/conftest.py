"""What these tests tell the process that started them (``python tests/gpu``): which begins, how each ends, and which of them broke the device."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
import pytest

import hologram as hg
from hologram.errors import HologramError

LOST = 3  # exit status of a process whose device does not work any more
MAX_WORDS = 3000  # of a report: its end


def _tell(**what: Any) -> None:
    path = os.environ.get("HOLOGRAM_TEST_REPORT")
    if path:
        with open(path, "a") as report:
            report.write(json.dumps(what) + "\n")


def _is_lost() -> bool:
    """Whether the device computes nothing any more: an error of a kernel stays with a CUDA context for good."""
    try:
        np.asarray(hg.jit(lambda x: x + 1, device=os.environ["HOLOGRAM_TEST_DEVICE"])(np.ones(3, np.float32)))
    except HologramError:
        return True
    return False


def pytest_runtest_logstart(nodeid: str) -> None:
    _tell(test=nodeid)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when != "call" and report.passed:
        return
    _tell(test=report.nodeid, outcome=report.outcome, seconds=round(report.duration, 2), words=report.longreprtext[-MAX_WORDS:])
    if report.failed and "HOLOGRAM_TEST_DEVICE" in os.environ and _is_lost():
        _tell(test=report.nodeid, outcome="lost", seconds=round(report.duration, 2), words=report.longreprtext[-MAX_WORDS:])
        pytest.exit(f"the device does not work any more after {report.nodeid}", LOST)
