"""Copies beside what a device computes: what waits for what, on devices that compute nothing, on OpenCL, and on a CUDA without a GPU."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.backends.cuda import device as cuda_device
from hologram.backends.device.runtime import Runtime
from hologram.backends.null import device as null_device
from hologram.ir import devices
from tests.support.devices.fake_cuda import FakeApi
from tests.support.needs import needs_compilers, needs_opencl

LARGE = np.random.default_rng(0).standard_normal((300, 300)).astype(np.float32)


class Point(null_device.Event):
    def __init__(self, number: int) -> None:
        self.number = number


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What queues of null devices are asked for: (queue, verb, event)."""
    found: list[tuple[Any, ...]] = []

    def noting(verb: str) -> Any:
        return lambda queue, *args: found.append((queue, verb, None))

    for verb in ("_write", "_launch"):
        monkeypatch.setattr(null_device.Queue, verb, noting(verb))

    def record(queue: Any) -> Point:
        found.append((queue, "record", len(found)))
        return Point(len(found) - 1)

    monkeypatch.setattr(null_device.Queue, "record", record)
    monkeypatch.setattr(null_device.Queue, "wait_for", lambda queue, event: found.append((queue, "wait", event.number)))
    monkeypatch.setattr(Point, "is_done", lambda point: False)  # nothing is known to have ended
    return found


def test_a_large_argument_comes_by_a_queue_of_its_own(log: list[tuple[Any, ...]]) -> None:
    device = devices.find("null:6")
    f = hg.jit(lambda x, y: x * 2 + y, device="null:6")
    f(LARGE, np.float32(1))
    uploads = device.runtime._uploads
    assert [(q is uploads, what) for q, what, _ in log] == [
        (True, "_write"),
        (True, "record"),
        (False, "wait"),
        (False, "_write"),
        (False, "_launch"),
        (False, "record"),
    ]
    assert log[2][2] == log[1][2]
    for _ in range(2):  # into other memory
        log.clear()
        f(LARGE, np.float32(1))
        assert [(q is uploads, what) for q, what, _ in log][:2] == [(True, "_write"), (True, "record")]
    log.clear()
    f(LARGE, np.float32(1))  # and in the end the copy waits for the call that was the first to use its memory, and for nothing else
    assert [(q is uploads, what) for q, what, _ in log][:3] == [(True, "wait"), (True, "_write"), (True, "record")] and log[0][2] == 5


def test_copies_do_not_wait_for_what_has_nothing_to_do_with_them(log: list[tuple[Any, ...]]) -> None:
    x = hg.device_put(LARGE, "null:6")
    hg.jit(lambda x: x + 1)(x)
    log.clear()
    y = hg.device_put(LARGE, "null:6")
    assert [what for _, what, _ in log] == ["_write", "record"] and y.device == "null:6"


def test_a_graph_of_two_devices_waits_where_it_must(log: list[tuple[Any, ...]]) -> None:
    @hg.jit
    def two(x: Any) -> Any:
        a = hnp.tanh(hg.device_put(x, "null:6")) @ x
        b = hg.device_put(a, "null:7")
        return b * b

    assert two(LARGE).device == "null:7"
    first, second = (devices.find(f"null:{i}") for i in (6, 7))
    launches = [q.device for q, what, _ in log if what == "_launch"]
    assert launches and set(launches) == {first, second}
    for device in (first, second):
        own = [(what, q is device.runtime._uploads) for q, what, _ in log if q.device is device]
        assert own.index(("wait", False)) < own.index(("_launch", False))


@pytest.fixture
def closed() -> Iterator[Any]:
    """The OpenCL device, whose queue of programs does nothing until the second is called."""
    device: Any = devices.find("opencl")
    f = hg.jit(lambda x: x * 2, device="opencl")
    f(LARGE)
    device.runtime.finish()
    gate = device.cl.UserEvent(device.context)
    device.queue._commands.append(device.cl.enqueue_barrier(device.queue.queue, wait_for=[gate]))
    yield device, lambda: gate.set_status(0)
    if gate.command_execution_status > 0:
        gate.set_status(0)
    device.runtime.finish()


@needs_opencl
def test_uploads_end_while_the_device_computes(closed: Any) -> None:
    device, opens = closed
    f = hg.jit(lambda x: x * 2, device="opencl")
    slow = f(LARGE)
    x = hg.block_until_ready(hg.device_put(LARGE + 1, "opencl"))
    np.testing.assert_array_equal(np.asarray(x), LARGE + 1)  # and so do downloads
    assert not slow._storage.made.has_ended()
    y = f(x)
    opens()
    np.testing.assert_array_equal(np.asarray(slow), LARGE * 2)
    np.testing.assert_array_equal(np.asarray(y), (LARGE + 1) * 2)


@needs_opencl
def test_memory_of_uploads_is_not_used_again_too_early(closed: Any) -> None:
    _, opens = closed
    f = hg.jit(lambda x: x * 2, device="opencl")
    results = [f(hg.device_put(LARGE + i, "opencl")) for i in range(4)]  # each copy goes while a call is to read it
    gc.collect()
    more = [f(LARGE - i) for i in range(4)]
    opens()
    for i in range(4):
        np.testing.assert_array_equal(np.asarray(results[i]), (LARGE + i) * 2)
        np.testing.assert_array_equal(np.asarray(more[i]), (LARGE - i) * 2)


@needs_opencl
def test_threads_compute_while_another_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    device: Any = devices.find("opencl")
    f = hg.jit(lambda x: x * 2, device="opencl")
    y, begun, over = hg.block_until_ready(f(LARGE)), threading.Event(), threading.Event()
    reader = device.runtime._reader
    read = reader._read

    def slow(*args: Any) -> None:
        begun.set()
        assert over.wait(20)
        read(*args)

    monkeypatch.setattr(reader, "_read", slow)
    thread = threading.Thread(target=lambda: np.asarray(y))
    thread.start()
    begun.wait(20)
    hg.block_until_ready(f(LARGE))
    over.set()
    thread.join()


@needs_compilers
def test_streams_of_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeApi()
    found = [cuda_device.Device(fake, 0)]  # type: ignore[arg-type]
    monkeypatch.setattr(cuda_device, "found", lambda: (found, None))
    f = hg.jit(lambda x: hnp.tanh(x) * 2, device="cuda")
    slow = f(LARGE)
    assert fake.streams[0]
    x = hg.block_until_ready(hg.device_put(LARGE + 1, "cuda"))
    assert fake.streams[0] and np.array_equal(np.asarray(x), LARGE + 1) and fake.streams[0]
    interface = x.__cuda_array_interface__  # somebody reads it in the stream at hand
    seen: list[np.ndarray] = []
    fake._put(0, lambda: seen.append(fake.array_at(interface["data"][0], LARGE)))
    del x
    gc.collect()
    addresses = []
    for _ in range(5):  # each goes while the stream reads it
        again = hg.device_put(LARGE * 0, "cuda")
        addresses.append(again.__cuda_array_interface__["data"][0])
    hg.block_until_ready(again)
    assert interface["data"][0] in addresses  # the same memory, after it was read
    np.testing.assert_array_equal(seen[0], LARGE + 1)
    np.testing.assert_allclose(np.asarray(slow), np.tanh(LARGE) * 2, rtol=1e-5)
    del again, slow, f
    hg.clear_caches()


@needs_compilers
def test_memory_whose_address_was_told_is_not_donated(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [cuda_device.Device(FakeApi(), 0)]  # type: ignore[arg-type]
    monkeypatch.setattr(cuda_device, "found", lambda: (found, None))
    f = hg.jit(lambda x: x * 2, device="cuda", donate_argnums=0)
    told, other = (hg.block_until_ready(hg.device_put(LARGE, "cuda")) for _ in range(2))
    address = told.__cuda_array_interface__["data"][0]  # whoever asked holds the Tensor
    for x in (told, other):
        f(x)
    assert told._storage.memory.handle.address == address and other._storage is None
    hg.clear_caches()


@needs_compilers
def test_constants_of_another_device_are_read_without_the_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else two threads, each of which reads the other's device, could wait for each other for ever."""
    fake = FakeApi(devices=2)
    found = [cuda_device.Device(fake, i) for i in range(2)]  # type: ignore[arg-type]
    monkeypatch.setattr(cuda_device, "found", lambda: (found, None))
    there = hg.device_put(LARGE, "cuda:0")
    free: list[bool] = []

    def look() -> None:
        free.append(found[1].lock.acquire(timeout=1))
        if free[-1]:
            found[1].lock.release()

    def read(runtime: Any, *args: Any) -> None:
        other = threading.Thread(target=look)
        other.start()
        other.join()
        original(runtime, *args)

    original = Runtime.read
    monkeypatch.setattr(Runtime, "read", read)
    y = hg.jit(lambda x: x + there, device="cuda:1")(LARGE)
    assert free == [True] and np.array_equal(np.asarray(y), LARGE * 2)
    hg.clear_caches()
