"""The watch over collectives: which ranks wait for each other, at different collectives, for ever.

A rank that has waited for a while leaves a note in the process group's store: at which call it is, and for whom it waits. Two ranks that wait for
each other at different calls, twice looked at, run different programs. Their connections are closed, and all ranks are told why.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from hologram.errors import DistributedError
from hologram.support.world import Call

PERIOD = 0.5  # seconds between looks
PATIENCE = 1.0  # seconds of waiting after which a rank leaves notes
_VERDICT = "hologram/differ"


class _Wait(NamedTuple):
    number: int
    peer: int
    call: Call
    since: float


class Watch:
    """``waits`` and ``goes_on`` are called around each wait and cost next to nothing. ``close()`` ends the rank's connections."""

    def __init__(self, store: Any, rank: int, close: Callable[[], None]) -> None:
        self._store, self._rank, self._close = store, rank, close
        self._wait: _Wait | None = None
        self._number = self._beat = 0
        self._seen: dict[int, list[Any]] = {}  # the note of another rank when it was looked at before, of the same wait
        self._end = threading.Event()
        if store is not None:
            threading.Thread(target=self._run, name="hologram collectives watch", daemon=True).start()

    def waits(self, peer: int, call: Call) -> None:
        """The rank is about to wait for a message from ``peer``, or to it."""
        self._number += 1
        self._wait = _Wait(self._number, peer, call, time.monotonic())

    def goes_on(self) -> None:
        """The rank waits no more."""
        self._wait = None

    def end(self) -> None:
        """No more looks."""
        self._end.set()

    def require_alike(self) -> None:
        """Raises DistributedError where some rank has found two that run different programs."""
        found = None
        if self._store is not None:
            with contextlib.suppress(RuntimeError):  # the store is gone with its process
                found = self._store.get(_VERDICT).decode() if self._store.check([_VERDICT]) else None
        if found is not None:
            raise DistributedError(found)

    def _run(self) -> None:
        while not self._end.wait(PERIOD):
            wait = self._wait
            if wait is not None and time.monotonic() - wait.since > PATIENCE:
                with contextlib.suppress(RuntimeError):
                    self._look(wait)

    def _look(self, wait: _Wait) -> None:
        """Leaves a note, and reads that of the rank that is waited for."""
        self._beat += 1
        note = [wait.number, wait.peer, wait.call.text, str(wait.call), self._beat]
        self._store.set(f"hologram/waits/{self._rank}", json.dumps(note))
        key = f"hologram/waits/{wait.peer}"
        if not self._store.check([key]):
            return
        other = json.loads(self._store.get(key))
        before = self._seen.get(wait.number)
        self._seen = {wait.number: other}
        lives = before is not None and before[:4] == other[:4] and before[4] != other[4]
        if lives and other[1] == self._rank and other[2] != wait.call.text and self._wait is wait:
            here, there = (self._rank, str(wait.call)), (wait.peer, other[3])
            self._store.set(_VERDICT, str(unequal(*sorted([here, there]))))
            self._close()


def unequal(first: tuple[int, str], second: tuple[int, str]) -> DistributedError:
    """The error of two ranks, ``(rank, call)`` each, that are at different collectives."""
    return DistributedError(f"ranks run different programs: rank {first[0]} is at {first[1]}, rank {second[0]} at {second[1]}")
