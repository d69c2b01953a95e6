"""Counters of profiled programs: their memory, and what Python reads of it (:mod:`.code.counters` writes).

A program has a :class:`ProgramCounters` for as long as its code may run. Counters only grow: who wants to know what happened in some time reads them
before and after. So any number of profiles may be under way, and what programs do meanwhile is of no account. The memory is the process's own; a
forked child has a copy.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from hologram.backends import object_cache as disk
from hologram.backends.llvm.toolchain import target
from hologram.backends.native.code import counters as code
from hologram.backends.native.code.counters import COUNTER_BYTES, EVENTS, LANES
from hologram.backends.native.code.records import CACHE_LINE, Worker
from hologram.backends.native.module import Module, Record, module
from hologram.backends.native_lang.language import Routine, offset_of, size_of
from hologram.backends.native_lang.translate import module_ir
from hologram.settings import settings
from hologram.support import forks
from hologram.support.once import once

WARM_SECONDS = 0.02  # between two looks at both clocks, at least
COUNTER_WORDS, EVENT_WORDS = COUNTER_BYTES // 8, code.EVENT_BYTES // 8
_KINDS = 7  # bits of the kind of an event
_LONGEST = offset_of(code.Counter, "longest") // 8

_lock = forks.guard(forks.RUNTIME, threading.RLock())


class Sums(NamedTuple):
    """What one thread has counted of one step: see :class:`hologram.backends.native.code.counters.Counter`. Times are ticks."""

    calls: int
    wall: int
    busy: int
    chunks: int
    iterations: int


class Logged(NamedTuple):
    """An event: a step's ``start`` and ``end`` in ticks on ``lane``. ``address`` is that of its counter, ``kind`` CALL, SHARED, ALONE or CHUNK."""

    address: int
    kind: int
    start: int
    end: int
    lane: int
    thread: int
    amount: int


def _memory(nbytes: int) -> mmap.mmap:
    """Zeros, of which pages that nobody touches cost nothing."""
    if os.name != "posix":
        return mmap.mmap(-1, nbytes)
    return mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0))


class _Recorder:
    """The lanes of the process, and the code that writes to them."""

    def __init__(self) -> None:
        found = _load()
        self.symbols = {r.symbol: found.address(r.symbol) for r in _routines()}
        self._code = found
        self._hooks: list[Any] = []
        self._now = ctypes.CFUNCTYPE(ctypes.c_int64)(self.symbols["hg_profile_now"])
        lanes, events = LANES * size_of(code.Lane), LANES * EVENTS * code.EVENT_BYTES
        self._memory = _memory(lanes + events)
        words = np.frombuffer(self._memory, np.int64)
        self.lanes = words[: lanes // 8].reshape(LANES, -1)
        self.events = words[lanes // 8 :].reshape(LANES, EVENTS, EVENT_WORDS)
        address = words.ctypes.data
        for name, value in {"lanes": address, "events": address + lanes}.items():
            self._cell(name).value = value
        self.origin = self.both_clocks()

    def _cell(self, name: str) -> ctypes.c_int64:
        return ctypes.c_int64.from_address(self._code.address(code.recorder.symbol) + offset_of(code.Recorder, name))  # type: ignore[attr-defined]

    def set_hook(self, hook: Callable[[int], Any] | None) -> None:
        """``hook`` is told the address of a step's counter where the step begins, and minus that where it ends."""
        if hook is not None and hook not in self._hooks:
            self._hooks.append(hook)  # for ever: calls under way may have it
        self._cell("hook").value = 0 if hook is None else id(hook)

    def both_clocks(self) -> tuple[int, int]:
        """The time in ticks, and in nanoseconds of ``time.perf_counter_ns``: the closest pair of some."""
        best = (1 << 62, 0, 0)
        for _ in range(5):
            before = time.perf_counter_ns()
            ticks = self._now()
            after = time.perf_counter_ns()
            best = min(best, (after - before, ticks, (before + after) // 2))
        return best[1:]

    def logged_words(self) -> np.ndarray:
        """How many events each lane has logged."""
        return self.lanes[:, 2].copy()


def _routines() -> list[Routine]:
    return [x for x in vars(code).values() if isinstance(x, Routine) and x.exported]


def _load() -> target.Code:
    """The linked code of the routines that count, compiled once for a machine."""
    routines, of = _routines(), target.host()
    text, externals = module_ir(routines, of.architecture)
    key = disk.key("counters", disk.python_abi(), text) if settings.cache else None
    found = disk.load(key) if key is not None else None
    if found is None:
        found = target.compile_ir(text, of, opt="quick")
        if key is not None:
            disk.store(key, found, kind="runtime")
    symbols = {name: ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0 for name in externals}
    return target.link(found, symbols, [x.symbol for x in (*routines, code.recorder)])  # type: ignore[attr-defined]


@once
def _made() -> _Recorder:
    return _Recorder()


def recorder() -> _Recorder:
    """The process's recorder, which stays."""
    with _lock:
        return _made()


def symbols() -> dict[str, int]:
    """Addresses of what profiled code calls."""
    return recorder().symbols


# --- programs --------------------------------------------------------------------------------------------------------


class ProgramCounters:
    """The counters of one loaded program: ``steps`` of them a lane. ``plan()`` gives its execution plan, ``name`` is what was traced."""

    def __init__(self, steps: int, plan: Callable[[], Any], name: str) -> None:
        self.steps, self.plan, self.name = steps, plan, name
        stride = (steps * COUNTER_BYTES + CACHE_LINE - 1) // CACHE_LINE * CACHE_LINE
        self._memory = _memory(CACHE_LINE + LANES * stride)
        words = np.frombuffer(self._memory, np.int64)
        words[0] = stride
        self.address: int = words.ctypes.data
        self.first, self.end = self.address + CACHE_LINE, self.address + CACHE_LINE + stride  # of the counters in lane 0
        lanes = words[CACHE_LINE // 8 :].reshape(LANES, stride // 8)
        self._counters = lanes[:, : steps * COUNTER_WORDS].reshape(LANES, steps, COUNTER_WORDS)

    def read(self) -> dict[int, np.ndarray]:
        """By lane, the counters of all steps as they are now: rows of :class:`Sums`."""
        used = np.flatnonzero(recorder().lanes[:, 0])
        return {int(n): self._counters[n, :, : len(Sums._fields)].copy() for n in (0, *used)}

    def take_longest(self) -> np.ndarray:
        """Ticks of the longest call of each step since this was asked last."""
        found: np.ndarray = self._counters[:, :, _LONGEST].max(axis=0)
        used = np.flatnonzero(self._counters[:, 0, _LONGEST])
        self._counters[used, :, _LONGEST] = 0
        return found

    def step_at(self, address: int) -> int | None:
        """Which step the counter at this address is of; None where it is another program's."""
        return (address - self.first) // COUNTER_BYTES if self.first <= address < self.end else None


class Watch:
    """``programs`` that may run while somebody watches, and the ticks of the longest call of each of their steps meanwhile. The programs stay."""

    def __init__(self, programs: list[ProgramCounters]) -> None:
        self.programs = programs
        self.longest: dict[ProgramCounters, np.ndarray] = {}

    def longest_of(self, program: ProgramCounters) -> np.ndarray:
        found = self.longest.get(program)
        return np.zeros(program.steps, np.int64) if found is None else found


_live: weakref.WeakSet[ProgramCounters] = weakref.WeakSet()
_watching: list[Watch] = []


def new_program(steps: int, plan: Callable[[], Any], name: str) -> ProgramCounters:
    """The counters of a program that is loaded now."""
    made = ProgramCounters(steps, plan, name)
    with _lock:
        recorder()
        _live.add(made)
        for w in _watching:
            w.programs.append(made)
    return made


def programs() -> list[ProgramCounters]:
    """Those that may run."""
    with _lock:
        return list(_live)


def watch() -> Watch:
    """The programs that there are, to which those that come are added until :func:`unwatch`."""
    with _lock:
        _tell_longest()
        _watching.append(Watch(list(_live)))
        return _watching[-1]


def unwatch(watched: Watch) -> None:
    """Ends a :func:`watch`."""
    with _lock:
        if watched in _watching:
            _tell_longest()
            _watching.remove(watched)


def _tell_longest() -> None:
    """All who watch learn of the longest calls since one of them began or ended: none sees calls of a time in which it did not watch."""
    for p in {*_live, *(p for w in _watching for p in w.programs)}:
        found = p.take_longest()
        for w in _watching:
            w.longest[p] = np.maximum(w.longest_of(p), found)


# --- reading ---------------------------------------------------------------------------------------------------------


def events_since(before: np.ndarray) -> tuple[list[Logged], int]:
    """The events that lanes have logged since :meth:`_Recorder.logged_words` was ``before``, in no order, and how many of them are lost: newer ones
    are in their place."""
    found: list[Logged] = []
    lost = 0
    r = recorder()
    for lane, now in enumerate(r.logged_words().tolist()):
        first = max(int(before[lane]), now - EVENTS)
        lost += first - int(before[lane])
        for n in range(first, now):
            sequence, what, start, end, thread, amount = r.events[lane, n % EVENTS, :6].tolist()
            if sequence == n + 1:
                found.append(Logged(what & ~_KINDS, what & _KINDS, start, end, lane, thread, amount))
            else:
                lost += 1
    return found, lost


def ticks_per_second(start: tuple[int, int], end: tuple[int, int]) -> float:
    """How fast ticks count, from two pairs of :meth:`_Recorder.both_clocks` far enough apart."""
    origin = recorder().origin
    if end[1] - start[1] < WARM_SECONDS * 1e9:
        start = origin
    while end[1] - start[1] < WARM_SECONDS * 1e9:  # this process has just begun to profile
        time.sleep(WARM_SECONDS / 4)
        end = recorder().both_clocks()
    return (end[0] - start[0]) / (end[1] - start[1]) * 1e9


def worker_names() -> dict[int, str]:
    """The lanes of the pool's workers, and of OpenMP's threads that take their place, with names."""
    m: Module = module()
    owners = {int(owner): n for n, owner in enumerate(recorder().lanes[:, 0].tolist()) if owner}
    names = {}
    for kind, records, count in (("hologram", m.pool.workers, m.pool.n_workers), ("openmp", m.pool.seats, m.pool.n_seats)):
        for i in range(count):
            scratch = Record(Worker, records + i * size_of(Worker)).scratch
            if scratch in owners:
                names[owners[scratch]] = f"{kind}-{i + 1}"
    return names
