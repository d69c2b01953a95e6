"""A profile under way: what is read when it begins, and what became of it when it ends.

Any number of profiles may be under way, in any threads. While one is, ``settings.profile`` is on, so that whatever compiles, or finds, a program
takes one with counters; those that callers have by address are exchanged.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping

from hologram.backends import limits, timing
from hologram.backends.native import counters, storage
from hologram.backends.native.counters import Logged
from hologram.backends.native.pool import num_threads
from hologram.profiling import ranges, switch
from hologram.profiling.devices import add_devices
from hologram.profiling.measure import CpuPrograms, Reading, Timeline, difference, lane_threads, thread_names
from hologram.profiling.peaks import Peak
from hologram.profiling.records import Machine, Measured, Phase
from hologram.support import debug


class Session:
    """One profile, from :meth:`start` to :meth:`stop`."""

    def start(self) -> None:
        """From now on what happens is a part of the profile."""
        recorder = counters.recorder()
        self._phases: list[tuple[str, int, int, str]] = []
        self._watch = counters.watch()
        try:
            switch.on(self)
            opener = ranges.at_work()
            if opener is not None:
                ranges.start(self, opener)
        except BaseException:
            self._end()
            raise
        self._before = {id(p): p.read() for p in self._watch.programs}
        self._threads = thread_names()
        self._logged = recorder.logged_words()
        self._log = timing.start()
        self._live, self._peak = storage.statistics()["live"], Peak()
        debug.watchers.append(self._note)
        self._start = recorder.both_clocks()

    def _note(self, name: str, start: int, end: int) -> None:
        """A phase of a compilation."""
        self._phases.append((name, start, end, threading.current_thread().name))

    def _end(self) -> None:
        counters.unwatch(self._watch)
        switch.off(self)
        ranges.stop(self)

    def stop(self) -> Measured:
        """Ends the profile: what it has seen."""
        try:
            end = counters.recorder().both_clocks()
            debug.watchers[:] = [w for w in debug.watchers if w != self._note]
            after = {id(p): p.read() for p in self._watch.programs}
            logged, lost = counters.events_since(self._logged)
        finally:
            commands = timing.stop(self._log)
            memory = self._memory_at_end()
            self._end()
        measured = Measured((end[1] - self._start[1]) * 1e-9, self._machine(), lost_events=lost + commands.lost, memory=memory)
        self._add_programs(measured, after, logged, end)
        measured.phases = [Phase(name, self._since(a), (b - a) * 1e-9, thread) for name, a, b, thread in self._phases if a >= self._start[1]]
        add_devices(measured, commands.commands, self._start[1])
        measured.events.sort(key=lambda e: (e.start, -e.seconds))
        return measured

    def _add_programs(self, measured: Measured, after: Mapping[int, Reading], logged: list[Logged], end: tuple[int, int]) -> None:
        """Programs of the CPU, and their events."""
        clock = Timeline(self._start, end, self._threads)
        events = [e for e in logged if e.start >= self._start[0]]
        cpu = CpuPrograms(clock, lane_threads(events, clock.thread))
        for p in self._watch.programs:
            counted = difference(self._before.get(id(p), {}), after.get(id(p), {}))
            if counted:
                cpu.add(p, counted, self._watch.longest_of(p))
        measured.programs, measured.kernels = cpu.programs, cpu.kernels
        measured.events = [e for e in map(cpu.event, events) if e is not None]

    def _since(self, nanoseconds: int) -> float:
        return (nanoseconds - self._start[1]) * 1e-9

    def _memory_at_end(self) -> dict[str, int]:
        """Bytes of arrays."""
        peak, found = self._peak.end(), storage.statistics()
        return {"before": self._live, "after": found["live"], "peak": peak, "cached": found["cached"]}

    @staticmethod
    def _machine() -> Machine:
        """Limits of the CPU, measured where no other profile is disturbed."""
        return Machine(limits.known() if switch.is_on() else limits.limits(), num_threads())
