"""From counters to records: what happened between two readings, step by step."""

from __future__ import annotations

import threading
from bisect import bisect_right, insort
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from hologram.backends.native import counters
from hologram.backends.native.code.counters import CALL, CHUNK
from hologram.backends.native.counters import Logged, ProgramCounters, Sums
from hologram.profiling.facts import Facts, facts_of
from hologram.profiling.records import Event, Kernel, Program

Reading = Mapping[int, np.ndarray]
_EVENTS = {CALL: "call", CHUNK: "chunk"}  # others are launches


def thread_names() -> dict[int, str]:
    """Python's threads that are alive, by their identity."""
    return {t.ident: t.name for t in threading.enumerate() if t.ident is not None}


class Timeline:
    """Ticks as seconds since a profile began, and lanes as the names of threads, of which ``threads`` were there then."""

    def __init__(self, start: tuple[int, int], end: tuple[int, int], threads: Mapping[int, str]) -> None:
        self.per_second = counters.ticks_per_second(start, end)
        self.origin = start[0]
        self._workers = counters.worker_names()
        self._threads = {**threads, **thread_names()}

    def seconds(self, ticks: int) -> float:
        return float(ticks / self.per_second)

    def at(self, ticks: int) -> float:
        """When a tick was."""
        return self.seconds(ticks - self.origin)

    def lane(self, number: int) -> str:
        """The threads that count in a lane."""
        return self._workers.get(number, f"caller {number}" if number else "other threads")

    def thread(self, event: Logged) -> str:
        """The thread of an event."""
        if event.lane in self._workers:
            return self._workers[event.lane]
        return self._threads.get(event.thread, f"thread {event.thread}") if event.thread else self.lane(event.lane)


def difference(before: Reading, after: Reading) -> Reading:
    """What was counted between two readings, of the lanes in which anything was."""
    found = {lane: now - before[lane] if lane in before else now for lane, now in after.items()}
    return {lane: delta for lane, delta in found.items() if delta.any()}


class CpuPrograms:
    """Programs and their kernels, from what was counted of them."""

    def __init__(self, time: Timeline, lane_threads: Mapping[int, str]) -> None:
        self.time, self._lane_threads = time, lane_threads
        self.programs: list[Program] = []
        self.kernels: list[Kernel] = []
        self._places: list[tuple[int, ProgramCounters, int, int]] = []  # of counters: address, and the numbers of a program and its first kernel

    def add(self, of: ProgramCounters, counted: Reading, longest: np.ndarray) -> None:
        """A program that has run. ``longest``: ticks of each step's longest call."""
        calls = sum(int(v[0, 0]) for v in counted.values())
        wall = sum(int(v[0, 1]) for v in counted.values())
        insort(self._places, (of.first, of, len(self.programs), len(self.kernels)), key=lambda place: place[0])
        facts = facts_of(of.plan())
        first = len(self.kernels)
        self.kernels += [self._kernel(n, f, counted, first, int(longest[1 + n])) for n, f in enumerate(facts)]
        self.programs.append(Program(of.name or "expression", "cpu", calls, self.time.seconds(wall)))

    def _kernel(self, number: int, facts: Facts, counted: Reading, first: int, longest: int) -> Kernel:
        rows = {lane: Sums(*map(int, v[1 + number])) for lane, v in counted.items()}
        calls = sum(s.calls for s in rows.values())
        busy: dict[str, float] = {}
        for lane, s in rows.items():
            if s.busy:
                name = self._lane_threads.get(lane) or self.time.lane(lane)
                busy[name] = busy.get(name, 0.0) + self.time.seconds(s.busy)
        wait = sum(max(0, s.wall - s.busy) for s in rows.values() if s.calls)
        return Kernel(
            name=facts.name,
            kind=facts.kind,
            program=len(self.programs),
            step=number,
            calls=calls,
            seconds=self.time.seconds(sum(s.wall for s in rows.values())) if calls else None,
            longest_seconds=self.time.seconds(longest) if calls else None,
            wait_seconds=self.time.seconds(wait),
            threads=busy,
            iterations=sum(s.iterations for s in rows.values()),
            chunks=sum(s.chunks for s in rows.values()),
            bytes=facts.bytes,
            flops=facts.flops,
            lines=list(facts.lines),
            tile=dict(facts.tile),
            parent=None if facts.parent is None else first + facts.parent,
            itemsize=facts.itemsize,
        )

    def event(self, logged: Logged) -> Event | None:
        """An event of one of the programs; None for another's."""
        at = bisect_right(self._places, logged.address, key=lambda place: place[0]) - 1
        _, of, program, first = self._places[max(at, 0)] if self._places else (0, None, 0, 0)
        step = None if of is None else of.step_at(logged.address)
        if step is None:
            return None
        kernel = None if step == 0 else first + step - 1
        name = self.programs[program].name if kernel is None else self.kernels[kernel].name
        start, end = self.time.at(logged.start), self.time.at(logged.end)
        return Event(name, _EVENTS.get(logged.kind, "launch"), start, end - start, self.time.thread(logged), program, kernel)


def lane_threads(events: Sequence[Logged], name: Callable[[Logged], str]) -> dict[int, str]:
    """The thread of each lane that one thread alone logged in."""
    found: dict[int, set[str]] = {}
    for e in events:
        found.setdefault(e.lane, set()).add(name(e))
    return {lane: next(iter(names)) for lane, names in found.items() if len(names) == 1}
