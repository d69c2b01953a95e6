"""The watch over collectives: which ranks wait for each other, at different collectives, for ever.

A rank that has waited for a while leaves a note in the process group's store: at which calls its threads are, and for whom they wait. Two ranks that
wait for each other, but never at the same call, twice looked at, run different programs. Their connections are closed, and all ranks are told why.

The first fault that a rank finds, of a rank that is lost or late, is noted there, too: what others find is then its consequence.

Ctrl-C is looked for, too: it cannot interrupt a wait inside of the engine, which ends where the connections are closed.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from hologram.distributed.interrupts import Interrupts
from hologram.errors import DistributedError
from hologram.primitives.host.lanes import GRACE
from hologram.support.world import Call

PERIOD = 0.5  # seconds between looks
PATIENCE = 1.0  # seconds of waiting after which a rank leaves notes
END = 5.0  # seconds that the thread has to end
_VERDICT, _FAULT = "hologram/differ", "hologram/fault"
_MAX_HOPS = 8  # from rank to rank, in search of the one that all others wait for


def _nothing() -> None:
    """Nothing is connected."""


class _Wait(NamedTuple):
    """One wait of a thread. As JSON in a rank's note it is a list."""

    number: int
    peer: int
    text: str
    shown: str


class Fault(NamedTuple):
    """What rank ``by`` has found of another one."""

    by: int
    is_late: bool
    text: str


class Watch:
    """``waits`` and ``goes_on`` are called around each wait and cost next to nothing. ``close()`` ends the rank's connections."""

    def __init__(self, store: Any, rank: int, close: Callable[[], None]) -> None:
        self._store, self._rank, self._close = store, rank, close
        self._waits: dict[int, tuple[int, Call, float]] = {}  # the peer, the call, and since when
        self._numbers = itertools.count(1)
        self._beat = 0
        self._seen: dict[int, tuple[list[_Wait], int, list[_Wait]]] = {}  # of another rank, when it was looked at before: waits for it, and its note
        self._end = threading.Event()
        self._interrupted: float | None = None  # since when
        if store is not None:
            self._interrupts = Interrupts()
            self._thread = threading.Thread(target=self._run, name="hologram collectives watch", daemon=True)
            self._thread.start()

    def waits(self, peer: int, call: Call) -> int:
        """The thread is about to wait for a message from ``peer``, or to it. The number of this wait."""
        number = next(self._numbers)
        self._waits[number] = peer, call, time.monotonic()
        return number

    def goes_on(self, number: int) -> None:
        """A wait has ended."""
        del self._waits[number]

    def has_waits(self) -> bool:
        """Whether a thread waits for a message."""
        return bool(self._waits)

    def end(self) -> None:
        """No more looks. The thread has then ended, so it is not inside of the engine while the interpreter ends."""
        self._end.set()
        if self._store is not None:
            self._interrupts.end()
            self._thread.join(END)
            if self._thread.is_alive():  # inside of the engine, whose rank 0 does not answer
                return
        self._store, self._close = None, _nothing  # which belong to the process group, and to whom this belongs

    def require_alike(self) -> None:
        """Raises DistributedError where some rank has found two that run different programs."""
        found = None
        if self._store is not None:
            with contextlib.suppress(RuntimeError):  # the store is gone with its process
                found = self._store.get(_VERDICT).decode() if self._store.check([_VERDICT]) else None
        if found is not None:
            raise DistributedError(found)

    def first_fault(self, found: Fault | None = None) -> Fault | None:
        """The fault that was noted first; ``found``, which is noted, where there was none."""
        with contextlib.suppress(RuntimeError):  # the store is gone with its process
            if self._store is not None and found is not None:
                return Fault(*json.loads(self._store.compare_set(_FAULT, "", json.dumps(found))))
            if self._store is not None and self._store.check([_FAULT]):
                return Fault(*json.loads(self._store.get(_FAULT)))
        return found

    def hanging(self, peer: int) -> int:
        """The rank that keeps ``peer`` from coming: it waits for nobody. Found by the notes of those who wait, which they renew."""
        seen = {self._rank}
        while self._store is not None and peer not in seen and len(seen) <= _MAX_HOPS:
            seen.add(peer)
            waits = self._renewed(peer)
            peer = next((w.peer for w in waits if w.peer not in seen), peer)
        return peer

    def _renewed(self, rank: int) -> list[_Wait]:
        """The waits of a rank that still waits; none of another one. Those noted last where the store goes meanwhile, with its process."""
        note = None
        with contextlib.suppress(RuntimeError):
            note = self._note(rank)
            end = time.monotonic() + 2 * PERIOD
            while note is not None and time.monotonic() < end and self.first_fault() is None:
                time.sleep(PERIOD / 5)
                now = self._note(rank)
                if now is not None and now[0] != note[0]:
                    return now[1]
            return []
        return [] if note is None else note[1]

    def _note(self, rank: int) -> tuple[int, list[_Wait]] | None:
        """How often a rank has noted its waits, and those that it noted last."""
        key = f"hologram/waits/{rank}"
        if not self._store.check([key]):
            return None
        beat, waits = json.loads(self._store.get(key))
        return beat, [_Wait(*w) for w in waits]

    def _run(self) -> None:
        with self._interrupts:
            self._look_again_and_again()

    def _look_again_and_again(self) -> None:
        while not self._end.is_set():
            if self._interrupts.wait(PERIOD):
                self._interrupted = time.monotonic()
            self._end_interrupted()
            since = time.monotonic() - PATIENCE
            waits = [_Wait(number, peer, call.text, str(call)) for number, (peer, call, begun) in self._waits.copy().items() if begun < since]
            if waits:
                with contextlib.suppress(RuntimeError):
                    self._look(waits)

    def _end_interrupted(self) -> None:
        """Closes the connections where a wait outlasts an interrupt."""
        if self._interrupted is not None and time.monotonic() > self._interrupted + GRACE:
            if any(begun < self._interrupted for _, _, begun in self._waits.copy().values()):
                self._close()
            self._interrupted = None

    def _look(self, waits: list[_Wait]) -> None:
        """Leaves a note, and reads those of the ranks that are waited for."""
        self._beat += 1
        self._store.set(f"hologram/waits/{self._rank}", json.dumps([self._beat, waits]))
        for peer in dict.fromkeys(w.peer for w in waits):
            note = self._note(peer)
            if note is not None:
                mine, (beat, theirs) = [w for w in waits if w.peer == peer], note
                seen = self._seen.get(peer)
                self._seen[peer] = mine, beat, theirs
                if seen is not None and beat != seen[1]:  # it lives
                    self._compare([w for w in mine if w in seen[0]], peer, [w for w in theirs if w in seen[2] and w.peer == self._rank])

    def _compare(self, here: list[_Wait], peer: int, there: list[_Wait]) -> None:
        """The waits of this rank for another, and the other's for this one, of which each looked twice."""
        same = {w.text for w in here} & {w.text for w in there}
        if not there or same or not any(w.number in self._waits for w in here):
            return
        self._store.set(_VERDICT, str(unequal(*sorted([(self._rank, here[0].shown), (peer, there[0].shown)]))))
        self._close()


def unequal(first: tuple[int, str], second: tuple[int, str]) -> DistributedError:
    """The error of two ranks, ``(rank, call)`` each, that are at different collectives."""
    return DistributedError(f"ranks run different programs: rank {first[0]} is at {first[1]}, rank {second[0]} at {second[1]}")
