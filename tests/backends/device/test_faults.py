"""Devices when something goes wrong: forks, memory that is found missing late, handles of work that failed, devices that are lost."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.backends.device.memory import MAX_LENT
from hologram.backends.null.device import Device, Event, numbered
from hologram.backends.opencl import device as opencl_device
from hologram.errors import DeviceError, OutOfMemory
from hologram.ir import devices
from tests.support.needs import needs_opencl

FORKS = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
X = np.random.default_rng(0).standard_normal((30, 40)).astype(np.float32)


class Failure(Exception):
    """What a driver might raise."""


@pytest.fixture
def null(monkeypatch: pytest.MonkeyPatch) -> Iterator[Device]:
    """One whose driver may raise :class:`Failure`, which is of memory where it says so."""
    found = numbered(5)
    monkeypatch.setattr(found, "errors", (Failure,), raising=False)
    monkeypatch.setattr(found, "is_out_of_memory", lambda e: "memory" in str(e))
    yield found
    gc.collect()
    found.runtime.pool.trim()


# --- forks -----------------------------------------------------------------------------------------------------------


def status_of_child(body: Any) -> int:
    """The exit status of a child process that runs ``body``, which is killed where it hangs."""
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        try:
            os._exit(0 if body() else 1)
        finally:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@FORKS
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_waits_for_the_threads_that_use_a_device() -> None:
    device, f = devices.find("null:5"), hg.jit(lambda x: hnp.cumulative_sum(x, axis=0) + 1, device="null:5")
    f(X)
    inside, over = threading.Event(), threading.Event()

    def use() -> None:
        with device.lock:
            inside.set()
            time.sleep(0.2)
            over.set()

    thread = threading.Thread(target=use)
    thread.start()
    inside.wait()
    assert status_of_child(lambda: over.is_set() and f(X).device == "null:5") == 0
    thread.join()


@needs_opencl
@FORKS
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forks_while_threads_compute_and_read() -> None:
    f, over = hg.jit(lambda x: x * 2, device="opencl"), threading.Event()
    f(X)

    def use() -> None:
        while not over.is_set():
            np.asarray(f(X))

    threads = [threading.Thread(target=use) for _ in range(2)]
    for t in threads:
        t.start()
    found = [status_of_child(lambda: True) for _ in range(10)]
    over.set()
    for t in threads:
        t.join(20)
    assert found == [0] * 10 and not any(t.is_alive() for t in threads)


@needs_opencl
@FORKS
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_is_told_that_a_driver_does_not_outlive_a_fork() -> None:
    f = hg.jit(lambda x: x * 2, device="opencl")
    y, seen = f(X), f(X)
    np.asarray(seen)

    def refused(action: Any) -> bool:
        try:
            action()
        except DeviceError as e:
            return "opencl:0 is gone: its driver does not outlive a fork" in str(e)
        return False

    def child() -> bool:
        there = [lambda: f(X), lambda: np.asarray(y), lambda: hg.device_put(X, "opencl"), lambda: hg.stream("opencl")]
        alive = np.array_equal(np.asarray(seen), X * 2) and hg.jit(lambda x: x + 1)(X).device == "cpu"
        return all(refused(action) for action in there) and alive

    assert status_of_child(child) == 0
    np.testing.assert_array_equal(np.asarray(y), X * 2)


# --- calls inside of calls -------------------------------------------------------------------------------------------


@needs_opencl
def test_a_call_inside_of_a_call_shares_nothing_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    f, other = hg.jit(lambda x: hnp.cumulative_sum(hnp.exp(x), axis=0) @ x.T, device="opencl"), X[::-1].copy()
    wanted = [np.cumsum(np.exp(x), axis=0) @ x.T for x in (X, other)]
    inner: list[Any] = []
    queue = type(devices.find("opencl").queue)
    launch = queue._launch

    def interrupted(*args: Any) -> None:
        launch(*args)
        if not inner:
            inner.append(None)
            inner[0] = f(other)  # as a finaliser may, or the handler of a signal

    np.testing.assert_allclose(np.asarray(f(X)), wanted[0], rtol=1e-3)
    monkeypatch.setattr(queue, "_launch", interrupted)
    np.testing.assert_allclose(np.asarray(f(X)), wanted[0], rtol=1e-3)
    np.testing.assert_allclose(np.asarray(inner[0]), wanted[1], rtol=1e-3)


@needs_opencl
def test_an_interrupt_between_arguments_of_a_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    f = hg.jit(lambda x: hnp.sin(x) * 2, device="opencl")
    x, y = (hg.block_until_ready(hg.device_put(a, "opencl")) for a in (X, X + 1))
    hg.block_until_ready(f(x))

    def half_told(bound: Any, queue: Any, slots: Any, workspace: Any) -> None:
        for i, (slot, _, _) in enumerate(bound.operands):
            bound.kernel.set_arg(2 * i, slots[slot][0])
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(opencl_device.Bound, "enqueue", half_told)
        with pytest.raises(KeyboardInterrupt):
            f(y)
    assert np.allclose(np.asarray(f(x)), np.sin(X) * 2, rtol=1e-5)


# --- memory ----------------------------------------------------------------------------------------------------------


def test_memory_that_is_missing_at_a_launch_is_given_back_by_others_first(null: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    f = hg.jit(lambda x: hnp.cumulative_sum(x, axis=0) @ x.T, device="null:5")
    f(X)
    kept = hg.device_put(np.zeros(10**6, np.float32), "null:5")
    del kept
    gc.collect()
    queue, launch = type(null.queue), type(null.queue)._launch
    cached: list[int] = []

    def lazy(*args: Any) -> None:
        cached.append(null.runtime.pool.statistics()["cached"])
        if cached[-1] > 10**6:
            raise Failure("there is no memory at a launch")
        launch(*args)

    monkeypatch.setattr(queue, "_launch", lazy)
    assert f(X).device == "null:5" and cached[0] > 10**6 > cached[-1]


def test_memory_that_is_missing_at_every_launch_is_an_error_that_names_what_is_there(null: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    f, x = hg.jit(lambda x: hnp.cumulative_sum(x, axis=0) @ x.T), hg.device_put(X, "null:5")
    f(x)
    gc.collect()
    live = null.runtime.pool.statistics()["live"]

    def full(*_: Any) -> None:
        raise Failure("there is no memory at a launch")

    with monkeypatch.context() as patch:
        patch.setattr(type(null.queue), "_launch", full)
        message = r"null:5 has no memory for .* \(there is no memory at a launch\); it holds: .*a copy of float32\[30, 40\] 4,800.*test_faults"
        with pytest.raises(OutOfMemory, match=message):
            f(x)
    gc.collect()
    null.runtime.pool.trim()
    assert null.runtime.pool.statistics()["live"] == live == null.taken
    assert f(x).device == "null:5"


@needs_opencl
def test_memory_that_is_missing_when_a_kernel_begins_is_an_error_where_the_value_is_read() -> None:
    device: Any = devices.find("opencl")
    f = hg.jit(lambda x: x * 2, device="opencl")
    f(X)
    device.runtime.finish()
    live = device.runtime.pool.statistics()["live"]
    gate = device.cl.UserEvent(device.context)
    device.queue._commands.append(gate)
    y = f(X)
    gate.set_status(-4)  # CL_MEM_OBJECT_ALLOCATION_FAILURE
    with pytest.raises(OutOfMemory, match=r"opencl:0 has no memory .*MEM_OBJECT_ALLOCATION_FAILURE.*it holds: .*result 0 float32\[30, 40\]"):
        np.asarray(y)
    del y
    gc.collect()
    assert device.runtime.pool.statistics()["live"] == live
    np.testing.assert_array_equal(np.asarray(f(X)), X * 2)


@pytest.mark.parametrize("verb", ["wait_for", "record"])
def test_handles_are_not_lost_where_a_queue_fails(verb: str, null: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    f, stream = hg.jit(lambda x: x * 2), hg.stream("null:5")
    null.runtime.pool.trim()
    before = null.taken
    monkeypatch.setattr(Event, "is_done", lambda event: False)  # nothing is known to have ended
    for _ in range(MAX_LENT):
        x = hg.block_until_ready(hg.device_put(X, "null:5"))
        with stream:
            f(x)
        del x

    def fails(*_: Any) -> None:
        raise Failure("the context is lost")

    with monkeypatch.context() as patch:
        patch.setattr(type(null.queue), verb, fails)
        for _ in range(2):
            with contextlib.suppress(DeviceError):
                hg.device_put(X, "null:5")
    del stream
    gc.collect()
    null.runtime.pool.trim()
    assert null.taken == before == null.runtime.pool.statistics()["live"] and null.runtime.pool.statistics()["cached"] == 0
