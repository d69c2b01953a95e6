"""The pool of threads: chunks, signals, forks, exits, processors."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import threading
import time

import numpy as np
import pytest

from hologram import dtypes
from hologram.backends.native import pool, storage
from hologram.backends.native.code.records import Worker
from hologram.backends.native.dispatch import Dispatch, Output, Spec, TensorLeaf
from hologram.backends.native.module import Record
from hologram.backends.native.processors import usable_processors
from hologram.ir.aval import aval
from tests.support.runtime_programs import CHUNK, F8, Calls, adder, natively, parallel, python, run_add, tensor, values

pytestmark = natively


@pytest.mark.parametrize("n_threads", [1, 2, 5])
@pytest.mark.parametrize("long", [False, True])
def test_every_chunk_runs_for_any_number_of_threads(n_threads, long, threads):
    threads(n_threads)
    assert pool.num_threads() == n_threads
    for grain in (1, 3, 1000):
        code = parallel(grain)
        for chunks in (1, 2, 3, 7, 200):
            x = np.arange(chunks * CHUNK, dtype=np.float32)
            for _ in range(5):
                assert (run_add(code, x, long=long) == 2 * x).all()
    assert pool.the_pool().state.n_workers == n_threads - 1


def test_sleeping_workers_join_long_work(threads):
    code, x = parallel(1, rounds=100), np.ones(400 * CHUNK, np.float32)

    def seconds(n_threads: int) -> float:
        threads(n_threads)
        run_add(code, x)
        time.sleep(0.02)  # now workers sleep
        start = time.perf_counter()
        run_add(code, x)
        return time.perf_counter() - start

    assert any(seconds(2) < 1.2 * seconds(1) for _ in range(5))


def test_workers_stay_awake_while_a_job_is_under_way(threads):
    """The next job comes before one that has fallen asleep is awake again."""
    threads(2)
    run_add(parallel(1), np.ones(20 * CHUNK, np.float32))
    made = pool.the_pool()
    worker, state = Record(Worker, made.state.workers), made.state
    before = state.tail_ticks
    _sleeps(worker)
    state.open, state.tail_ticks = 1, 1 << 62  # the caller of a job runs its last piece
    try:
        run_add(parallel(1, rounds=100), np.ones(400 * CHUNK, np.float32))  # wakes the worker
        time.sleep(0.05)
        assert not worker.sleeping
    finally:
        state.open, state.tail_ticks = 0, before
    _sleeps(worker)


def _sleeps(worker: Record) -> None:
    """Waits until a worker sleeps."""
    deadline = time.perf_counter() + 5
    while not worker.sleeping:
        assert time.perf_counter() < deadline
        time.sleep(0.001)


def test_sleeping_workers_stop_while_guests_take_their_place(threads):
    threads(2)
    run_add(parallel(1), np.ones(20 * CHUNK, np.float32))
    time.sleep(0.02)  # now workers sleep
    made = pool.the_pool()
    workers, made.state.guests = list(made.threads), 1
    try:
        made.stop(timeout=5)
    finally:
        made.state.guests = 0
    assert workers
    assert not any(w.is_alive() for w in workers)


def test_many_python_threads_at_once(threads, add8):
    threads(3)
    code, small = parallel(1), adder(add8, TensorLeaf(F8), TensorLeaf(F8))[0]
    n = 20 * CHUNK
    a = aval(dtypes.float32, (n,))
    made = []
    for long in (False, True):
        d = Dispatch(Calls(), "f")
        d.add(Spec((TensorLeaf(a), TensorLeaf(a)), 0, [Output(a)], code.address("graph"), code, symbols=[n], long=long))
        made.append(d)
    stop, errors = time.perf_counter() + 2.0, []

    def work(k):
        x, y = tensor(np.full(n, k, np.float32)), tensor(np.arange(n, dtype=np.float32))
        s = tensor(np.full(8, k, np.float32))
        want = np.arange(n, dtype=np.float32) + k
        while time.perf_counter() < stop:
            for d in made:
                if not (values(d.call(x, y)) == want).all():
                    errors.append(k)
            if values(small.call(s, s)).tolist() != [2.0 * k] * 8:
                errors.append(k)

    workers = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for w in workers:
        w.start()
    for i in range(10):
        time.sleep(0.15)
        pool.set_num_threads(1 + i % 4)
    for w in workers:
        w.join()
    assert not errors


def test_specialisations_may_go_while_their_code_runs():
    n = 8 * CHUNK
    a = aval(dtypes.float32, (n,))
    x = tensor(np.ones(n, np.float32))
    d = Dispatch(lambda *args: None, "f")
    stop, bad = threading.Event(), []

    def work():
        while not stop.is_set():
            out = d.call(x, x)
            if out is not None and not (values(out) == 2).all():
                bad.append(out)

    workers = [threading.Thread(target=work) for _ in range(3)]
    for w in workers:
        w.start()
    for _ in range(5):
        code = parallel(1)
        d.add(Spec((TensorLeaf(a), TensorLeaf(a)), 0, [Output(a)], code.address("graph"), code, symbols=[n], long=True))
        del code
        time.sleep(0.01)
        d.clear()
        gc.collect()
    stop.set()
    for w in workers:
        w.join()
    assert not bad


SLOW = {"grain": 1, "rounds": 20_000}  # about 10 ms a chunk


@pytest.fixture
def interruptible():
    """SIGINT raises KeyboardInterrupt, also where the process was started with the signal ignored, as shells start jobs in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.usefixtures("interruptible")
def test_interrupt_cancels_a_long_call(n_threads, threads):
    threads(n_threads)
    code = parallel(**SLOW)
    n = 2000 * CHUNK
    a = aval(dtypes.float32, (n,))
    x = tensor(np.ones(n, np.float32))
    d = Dispatch(Calls(), "f")
    d.add(Spec((TensorLeaf(a), TensorLeaf(a)), 0, [Output(a)], code.address("graph"), code, symbols=[n], long=True))
    live = storage.statistics()["live"]
    for call in (lambda: d.call(x, x), lambda: run_add(code, np.ones(n, np.float32), long=True)):
        timer = threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        start = time.perf_counter()
        with pytest.raises(KeyboardInterrupt):
            call()
        assert time.perf_counter() - start < 5
        timer.join()
    gc.collect()
    assert storage.statistics()["live"] == live
    quick = parallel(1)
    assert (run_add(quick, np.ones(8 * CHUNK, np.float32), long=True) == 2).all()


def test_signal_handlers_may_call(add8):
    code, d, got = parallel(**SLOW), adder(add8, TensorLeaf(F8), TensorLeaf(F8))[0], []
    x = tensor(np.ones(8, np.float32))
    before = signal.signal(signal.SIGALRM, lambda *_: got.append(values(d.call(x, x)).tolist()))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        out = run_add(code, np.ones(30 * CHUNK, np.float32), long=True)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert got == [[2.0] * 8] and (out == 2).all()


def test_workers_start_anew_when_those_before_have_ended(threads):
    threads(2)
    slow, fast = parallel(**SLOW), parallel(1)
    x, made = np.ones(40 * CHUNK, np.float32), pool.the_pool()
    run_add(fast, x)
    caller = threading.Thread(target=lambda: run_add(slow, x, long=True))
    caller.start()
    time.sleep(0.05)  # a worker is in the middle of a chunk
    before = list(made.threads)
    made.stop(timeout=0)
    for _ in range(3):
        assert (run_add(fast, x) == 2 * x).all()
        assert made.threads == before or not any(t.is_alive() for t in before)
    caller.join()
    deadline = time.perf_counter() + 5
    while any(t.is_alive() for t in before) and time.perf_counter() < deadline:
        time.sleep(0.01)
    assert (run_add(fast, x) == 2 * x).all()
    assert made.state.n_workers == 1 and made.state.stop == 0 and made.threads != before


def test_other_threads_run_during_a_long_call():
    code, ticks, done = parallel(**SLOW), [], threading.Event()

    def count():
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    t = threading.Thread(target=count)
    t.start()
    run_add(code, np.ones(30 * CHUNK, np.float32), long=True)
    done.set()
    t.join()
    assert len(ticks) > 10


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_fork(threads):
    threads(3)
    code = parallel(1)
    x = np.arange(100 * CHUNK, dtype=np.float32)
    assert (run_add(code, x) == 2 * x).all() and pool.the_pool().state.n_workers == 2
    for _ in range(3):
        child = os.fork()
        if child == 0:
            good = False
            with contextlib.suppress(BaseException):
                good = all((run_add(code, x) == 2 * x).all() for _ in range(20)) and pool.the_pool().state.n_workers == 2
            os._exit(0 if good else 1)
        assert (run_add(code, x) == 2 * x).all() and pool.the_pool().state.n_workers == 2
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_fork_while_other_threads_call():
    done = python(
        """
        pool.set_num_threads(3)
        code, x, stop = parallel(1), np.ones(50 * CHUNK, np.float32), threading.Event()
        def work():
            while not stop.is_set():
                assert (run_add(code, x, long=True) == 2).all()
        workers = [threading.Thread(target=work) for _ in range(3)]
        for w in workers: w.start()
        for i in range(10):
            child = os.fork()
            if child == 0:
                ok = all((run_add(code, x, long=True) == 2).all() for _ in range(10))
                os._exit(0 if ok else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        stop.set()
        for w in workers: w.join()
        print("done")
        """
    )
    assert done.stdout == "done\n" and done.returncode == 0, done


@pytest.mark.costly(2)
@pytest.mark.parametrize("daemon", ["True", "False"])
def test_exit_with_work_in_flight(daemon):
    done = python(
        f"""
        pool.set_num_threads(3)
        code = parallel(1, 1000)
        x = np.ones(400 * CHUNK, np.float32)
        def work():
            for _ in range(2):
                run_add(code, x, long=True)
        for _ in range(3):
            threading.Thread(target=work, daemon={daemon}).start()
        time.sleep(0.1)
        assert pool.the_pool().state.n_workers == 2
        print("leaving")
        """
    )
    assert done.stdout == "leaving\n" and done.returncode == 0, done


def test_calls_after_the_pool_has_closed():
    done = python(
        """
        import atexit
        pool.set_num_threads(3)
        code, x = parallel(1), np.ones(50 * CHUNK, np.float32)
        atexit.register(lambda: print((run_add(code, x) == 2).all(), pool.the_pool().state.n_workers))
        pool.the_pool().close()
        """
    )
    assert done.stdout == "True 0\n" and done.returncode == 0, done


def test_storages_that_outlive_the_interpreter_do_no_harm():
    done = python(
        """
        import builtins
        builtins.kept = [tensor(np.ones(1000)), storage.view(storage.copy_of(np.ones(5))), memoryview(storage.copy_of(np.ones(5)))]
        builtins.code = parallel(1)
        """
    )
    assert done.returncode == 0, done


def test_processors_within_quota(tmp_path):
    everything = usable_processors(tmp_path)
    assert everything >= 1
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/box/inner\n")
    inner = tmp_path / "sys/fs/cgroup/box/inner"
    inner.mkdir(parents=True)
    (inner / "cpu.max").write_text("max 100000\n")
    assert usable_processors(tmp_path) == everything
    (inner.parent / "cpu.max").write_text("50000 100000\n")
    assert usable_processors(tmp_path) == 1
    (tmp_path / "proc/self/cgroup").write_text("4:memory:/\n1:cpu,cpuacct:/job\n")
    job = tmp_path / "sys/fs/cgroup/cpu,cpuacct/job"
    job.mkdir(parents=True)
    (job / "cpu.cfs_quota_us").write_text("-1\n")
    (job / "cpu.cfs_period_us").write_text("100000\n")
    assert usable_processors(tmp_path) == everything
    (job / "cpu.cfs_quota_us").write_text("90000\n")
    assert usable_processors(tmp_path) == 1
