"""Times of copies, and of what devices do, while profiles are made: launches and copies between two marks of the driver's own clock.

A queue that can be timed gives, for each command, a function that tells its begin and end when the device is done (:meth:`Queue.timed`). All of them
are asked when the profile ends, so nothing waits before. Of queues that cannot, commands are counted and have no time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

MAX_COMMANDS = 1 << 17  # that are kept

Times = Callable[[], tuple[float, float]]  # begin and end, in nanoseconds of time.perf_counter_ns


class Command(NamedTuple):
    """``what`` is a step that was launched, with its program, or the name of a copy of ``nbytes``. ``thread``: where it is on the time line."""

    device: str
    what: Any
    nbytes: int
    thread: str
    times: Times | None


class Log:
    """The commands of all devices, and copies, the first :data:`MAX_COMMANDS` of them."""

    def __init__(self) -> None:
        self.commands: list[Command] = []
        self.lost = 0

    def add(self, command: Command) -> None:
        if len(self.commands) < MAX_COMMANDS:
            self.commands.append(command)
        else:
            self.lost += 1


logs: list[Log] = []  # of the profiles under way


def start() -> Log:
    """The log of what devices do from now on."""
    made = Log()
    logs.append(made)
    return made


def stop(log: Log) -> Log:
    """Ends a log."""
    logs[:] = [x for x in logs if x is not log]
    return log


def timed(queue: Any, what: Any, nbytes: int, action: Callable[[], Any]) -> None:
    """Puts a command in a queue, and notes it."""
    device = queue.device.name
    _note(Command(device, what, nbytes, device, queue.timed(action)))


def copied(what: str, nbytes: int, start: int) -> None:
    """Notes a copy that this thread began at ``start``, and has made."""
    end = time.perf_counter_ns()
    _note(Command("cpu", what, nbytes, threading.current_thread().name, lambda: (start, end)))


def _note(command: Command) -> None:
    for log in list(logs):
        log.add(command)
