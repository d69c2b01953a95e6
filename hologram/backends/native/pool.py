"""The threads of the pool: Python's daemon threads, which live in native code without the GIL (:mod:`.code.pool`).

They start at the first call of a graph that has parallel kernels. Around ``fork`` they are stopped, and both sides start their own when
they need them; when the interpreter exits they are stopped for good, and what still runs then runs on its caller's thread.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
import time

from hologram.backends.native import guarded_memory
from hologram.backends.native.code.records import CACHE_LINE, JOB_SLOTS, SCRATCH_BYTES, Job, Worker
from hologram.backends.native.module import Module, Record, immortal, module
from hologram.backends.native.processors import usable_processors
from hologram.backends.native_lang.language import size_of
from hologram.settings import settings
from hologram.support.once import once

MAX_THREADS = 256
SPIN_SECONDS = 100e-6  # how long a worker without work waits before it sleeps: about what waking one takes on a virtual machine, ...
TAIL_SECONDS = 1e-3  # ... and while a job is under way, whose last pieces others run
WAKE_SECONDS = 30e-6  # work that is worth waking a worker for
POLL_SECONDS = 10e-3  # between looks for signals
FORK_SECONDS = 0.2  # how long a fork waits for workers to end
EXIT_SECONDS = 5.0  # how long the interpreter's exit waits for a kernel that runs
SEATS = 4  # calls from so many threads at one time find scratch for all their guests


class _Pool:
    def __init__(self, m: Module) -> None:
        self.state, self.lock = m.pool, threading.RLock()
        self.threads: list[threading.Thread] = []
        self.asked = 0  # set_num_threads
        self.closed = False
        self._main = m.function("hg_worker_main", None, ctypes.c_void_p, gil=False)
        self._stop = m.function("hg_stop_workers", None, gil=False)
        self._now = m.function("hg_now", ctypes.c_int64)
        self._memory = immortal((ctypes.c_char * (JOB_SLOTS * size_of(Job) + MAX_THREADS * size_of(Worker) + CACHE_LINE))())
        self._scratch: list[ctypes.Array[ctypes.c_char]] = []
        self._set_up()

    def _set_up(self) -> None:
        s, start = self.state, _aligned(self._memory)
        s.jobs, s.workers = start, start + JOB_SLOTS * size_of(Job)
        s.nap = _new_lock()
        s.start = id(immortal(self.start))
        s.main_thread = threading.main_thread().ident or 0
        frequency = self._ticks_per_second()
        s.spin_ticks, s.tail_ticks = int(SPIN_SECONDS * frequency), int(TAIL_SECONDS * frequency)
        s.wake_ticks, s.poll_ticks = int(WAKE_SECONDS * frequency), int(POLL_SECONDS * frequency)
        s.wanted = int(self.count() > 1)

    def _ticks_per_second(self) -> float:
        t0, n0 = time.perf_counter_ns(), self._now()
        while (t := time.perf_counter_ns()) - t0 < 300_000:
            pass
        return float((self._now() - n0) / (t - t0) * 1e9)

    def count(self) -> int:
        return min(MAX_THREADS, self.asked or settings.num_threads or usable_processors())

    def _worker(self, i: int) -> Record:
        """The record of worker i, made at its first use and then kept."""
        worker = Record(Worker, self.state.workers + i * size_of(Worker))
        worker.lock = worker.lock or _new_lock()
        worker.scratch = worker.scratch or _new_scratch()
        worker.sleeping = 0
        return worker

    def start(self) -> None:
        """Starts the workers, if they are wanted and do not run."""
        with self.lock:
            if not self.state.wanted or self.closed or not self._have_ended():
                return
            self.state.wanted = 0
            for i in range(self.count() - 1):
                name, address = f"hologram-{i + 1}", self._worker(i).address
                thread = threading.Thread(target=self._main, args=(address,), name=name, daemon=True)
                self.threads.append(thread)  # before it runs: an interrupt may come in between, and it must be woken to be stopped
                self.state.n_workers = i + 1
                try:
                    thread.start()
                except RuntimeError:  # no more threads, or the interpreter is about to exit: fewer do
                    self.threads.pop()
                    self.state.n_workers = i
                    return

    def stop(self, timeout: float | None = None) -> None:
        """Stops the workers, for which it waits so many seconds; the next parallel call after they have ended starts them anew."""
        with self.lock:
            self._stop()
            for thread in self.threads:
                if thread.ident is not None:
                    thread.join(timeout)
            self._have_ended()
            self.state.wanted = int(self.count() > 1)

    def _have_ended(self) -> bool:
        """Whether no worker is there, nor one that has been told to stop and still runs."""
        if not any(t.is_alive() for t in self.threads):
            self.threads.clear()
            self.state.n_workers = self.state.stop = 0
        return not self.threads

    def before_fork(self) -> None:
        """A process with one thread forks without a warning. A worker that does not get the GIL to end stays in the parent."""
        self.lock.acquire()
        self.stop(FORK_SECONDS)

    def after_fork_in_parent(self) -> None:
        self.lock.release()

    def after_fork_in_child(self) -> None:
        """Other threads, and the jobs they had in flight, do not exist here."""
        self.lock = threading.RLock()
        self.threads.clear()
        s = self.state
        ctypes.memset(s.jobs, 0, JOB_SLOTS * size_of(Job))
        for i in range(s.n_workers):
            Record(Worker, s.workers + i * size_of(Worker)).lock = 0  # who knows who held it
        s.n_workers = s.stop = 0
        s.wanted = int(self.count() > 1)
        s.open, s.nap, s.main_thread = 0, _new_lock(), threading.get_ident()
        s.fork = s.guests = 0  # OpenMP does not survive a fork

    def share_openmp(self, fork: int, thread_number: int) -> None:
        with self.lock:
            n = SEATS * max(self.count() - 1, 0)
            records = immortal((ctypes.c_char * (n * size_of(Worker) + CACHE_LINE))())
            start = _aligned(records)
            for i in range(n):
                Record(Worker, start + i * size_of(Worker)).scratch = _new_scratch()
            s = self.state
            s.seats, s.n_seats, s.team, s.thread_number = start, n, self.count(), thread_number
            s.fork = fork if n else 0

    def close(self) -> None:
        self.closed = True
        self.stop(EXIT_SECONDS)
        self.state.wanted = 0


def _new_scratch() -> int:
    """Scratch of a thread, which stays; between guard pages where checked programs are made."""
    return (settings.checked and guarded_memory.allocate(SCRATCH_BYTES)) or _aligned(immortal((ctypes.c_char * (SCRATCH_BYTES + CACHE_LINE))()))


def _aligned(memory: ctypes.Array[ctypes.c_char]) -> int:
    return (ctypes.addressof(memory) + CACHE_LINE - 1) // CACHE_LINE * CACHE_LINE


def _new_lock() -> int:
    """A lock of CPython's, held."""
    allocate, acquire = ctypes.pythonapi.PyThread_allocate_lock, ctypes.pythonapi.PyThread_acquire_lock
    allocate.restype, acquire.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_int]
    lock = allocate()
    if lock is None:
        raise MemoryError("no lock for a worker thread")
    acquire(lock, 1)
    return int(lock)


@once
def the_pool() -> _Pool:
    """The process's pool; its threads do not run before they are needed."""
    made = _Pool(module())
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=made.before_fork, after_in_parent=made.after_fork_in_parent, after_in_child=made.after_fork_in_child)
    atexit.register(made.close)
    return made


def num_threads() -> int:
    """Threads that a parallel kernel may use, the caller's included."""
    return the_pool().count()


def set_num_threads(n: int) -> None:
    """From now on parallel kernels use ``n`` threads, the caller's included; 0: what the machine allows."""
    pool = the_pool()
    with pool.lock:
        pool.asked = n
        pool.stop()
        pool.state.team = min(pool.count(), pool.state.n_seats // SEATS + 1)


def share_openmp(fork: int, thread_number: int) -> None:
    """From now on long parallel calls are OpenMP regions (:mod:`.code.team`), of as many threads as now are allowed, or fewer: for processes in
    which a library uses OpenMP between them. ``fork`` and ``thread_number`` are addresses of GOMP_parallel and omp_get_thread_num."""
    the_pool().share_openmp(fork, thread_number)
