"""Calls of programs on devices without Python: what native code serves, what it leaves to Python, and faults of the driver under it."""

from __future__ import annotations

import gc
import itertools
import os
import sys
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.backends.cuda import device as cuda_device
from hologram.backends.cuda.api import Api
from hologram.backends.device.runtime import APART_BYTES
from hologram.backends.native.module import why_not_native
from hologram.errors import DeviceError, DonatedBufferError, OutOfMemory
from tests.support.devices.fake_cuda import FakeError
from tests.support.devices.fake_driver import NativeFakeApi
from tests.support.devices.some_devices import install
from tests.support.needs import needs_compilers

pytestmark = [needs_compilers, pytest.mark.skipif(why_not_native() is not None, reason="native calls are off")]


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Iterator[NativeFakeApi]:
    """Two devices that are not there, and a driver in C."""
    fake = NativeFakeApi(devices=2)
    install(fake, monkeypatch)
    yield fake
    hg.clear_caches()
    gc.collect()


def values(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def there(*shape: int, seed: int = 0, device: str = "cuda") -> Any:
    x = hg.device_put(values(*shape, seed=seed), device)
    hg.block_until_ready(x)
    return x


def step(x: Any, w: Any) -> Any:
    return hnp.tanh(x @ w) + hnp.sum(x)


def on_host(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    return np.tanh(x @ w) + x.sum()


def warm(cuda: NativeFakeApi, f: Any, *args: Any, **options: Any) -> None:
    """Calls until native code serves: there are as many calls before as events are in use at one time."""
    before = cuda.called("launch")
    for _ in range(40):
        hg.block_until_ready(f(*args, **options))
        if cuda.called("launch") > before:
            return
    raise AssertionError("native code does not serve the call")


def served(cuda: NativeFakeApi, f: Any, *args: Any, **options: Any) -> tuple[Any, int]:
    """A call's result, and how many launches of native code it made."""
    before = cuda.called("launch")
    result = f(*args, **options)
    return result, cuda.called("launch") - before


def test_a_call_without_python(cuda: NativeFakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    f, x, w = hg.jit(step, device="cuda"), there(6, 20), there(20, 20, seed=1)
    warm(cuda, f, x, w)
    device = cuda_device.found()[0][0]
    launches = device.counts["launches"]
    monkeypatch.setattr(device.executable, "run", None)
    for seed in range(5):
        x = there(6, 20, seed=seed)
        y, native = served(cuda, f, x, w)
        assert native == 1 and y.device == "cuda:0" and y.shape == (6, 20)
        assert np.allclose(np.asarray(y), on_host(np.asarray(x), np.asarray(w)), rtol=1e-4)
    assert device.counts["launches"] == launches + 5


def test_calls_return_before_the_device_is_done(cuda: NativeFakeApi) -> None:
    turn = np.linalg.qr(values(20, 20, seed=1))[0]
    f, w, y, want = hg.jit(lambda x, w: hnp.cos(x @ w) * 0.5, device="cuda"), hg.device_put(turn, "cuda"), there(20, 20), values(20, 20)
    warm(cuda, f, y, w)
    before, waiting = cuda.called("launch"), []
    for _ in range(300):  # results read results, and more calls are begun than may be under way
        y, want = f(y, w), np.cos(want @ turn) * 0.5
        cuda.catch_up()
        waiting.append(len(cuda.streams[0]))
    assert cuda.called("launch") > before and min(waiting[100:]) > 20
    assert np.allclose(np.asarray(y), want, rtol=1e-3)


def test_the_table_is_copied_only_where_addresses_changed(cuda: NativeFakeApi) -> None:
    f, w = hg.jit(step, device="cuda"), there(20, 20, seed=1)
    xs = [there(6, 20, seed=s) for s in range(3)]
    warm(cuda, f, xs[0], w)
    hg.block_until_ready(f(xs[0], w))
    before = cuda.called("copy_in")
    for _ in range(10):
        hg.block_until_ready(f(xs[0], w))
    assert cuda.called("copy_in") == before
    add, total = hg.jit(hnp.add), there(6, 20)
    for k in range(100):  # more tables on their way than there are copies of one
        total = add(total, f(xs[k % 3], w))
    assert cuda.called("copy_in") > before + 50
    want = values(6, 20) + sum(on_host(np.asarray(xs[k % 3]), np.asarray(w)).astype(np.float64) for k in range(100))
    assert np.allclose(np.asarray(total), want, rtol=1e-3)


def test_containers_keywords_and_static_arguments(cuda: NativeFakeApi) -> None:
    def model(params: Any, x: Any, n: int, *, scale: Any) -> Any:
        for layer in params["layers"]:
            x = hnp.tanh(x @ layer["w"] + layer["b"])
        return {"y": x * n, "rest": [(x.sum(), None)], "scaled": x * scale}

    f = hg.jit(model, static_argnames="n", device="cuda")
    params = {"layers": [{"w": there(8, 8, seed=i), "b": there(8, seed=i)} for i in range(5)]}
    x, scale = there(4, 8), there(8, seed=9)
    warm(cuda, f, params, x, 3, scale=scale)
    got, native = served(cuda, f, params, x, 3, scale=scale)
    assert native == 1 and list(got) == ["rest", "scaled", "y"] and got["rest"][0][1] is None
    want = hg.jit(model, static_argnames="n")(*hg.tree.map(np.asarray, (params, x)), 3, scale=np.asarray(scale))
    for a, b in zip(hg.tree.flatten(got)[0], hg.tree.flatten(want)[0], strict=True):
        assert np.allclose(np.asarray(a), np.asarray(b), rtol=1e-4, atol=1e-5)
    assert served(cuda, f, params, x, 4, scale=scale)[1] == 0


def test_constants_and_intermediates(cuda: NativeFakeApi) -> None:
    table = values(20, 20, seed=5)
    f = hg.jit(lambda x: hnp.cumsum(hnp.exp(x @ table), axis=0) @ table, device="cuda")
    x = there(6, 20)
    warm(cuda, f, x)
    cuda_device.found()[0][0].runtime.pool.trim()  # takes the arena away, and all free memory
    for _ in range(3):
        want = np.cumsum(np.exp(np.asarray(x) @ table), axis=0) @ table
        assert np.allclose(np.asarray(f(x)), want, rtol=1e-3)
    warm(cuda, f, x)


def test_arguments_that_are_left_to_python(cuda: NativeFakeApi) -> None:
    f = hg.jit(lambda x, s: (step(x, x) * s, x), device="cuda")
    g = hg.jit(lambda x, s: step(x, x) * s, device="cuda")
    x = there(6, 6)
    want = on_host(np.asarray(x), np.asarray(x))
    for _ in range(20):
        for s in (2.0, np.float32(2), np.full((6, 6), 2, np.float32), hg.tensor(np.full((6, 6), 2, np.float32))):
            y, native = served(cuda, g, x, s)
            assert native == 0 and np.allclose(np.asarray(y), 2 * want, rtol=1e-4)
        (y, same), native = served(cuda, f, x, there(6, 6, seed=1))
        assert native == 0 and np.array_equal(np.asarray(same), np.asarray(x))
    with pytest.raises(DeviceError, match="cuda:1"):
        hg.jit(step)(x, there(6, 6, device="cuda:1"))
    moved = g(there(6, 6, device="cuda:1"), x)
    assert moved.device == "cuda:0"


def test_programs_follow_their_arguments(cuda: NativeFakeApi) -> None:
    f = hg.jit(step)
    for device in ("cuda:0", "cuda:1", "cpu", "cuda:0"):
        x, w = there(6, 20, device=device), there(20, 20, seed=1, device=device)
        for _ in range(20):
            y = f(x, w)
        assert y.device == device and np.allclose(np.asarray(y), on_host(values(6, 20), values(20, 20, seed=1)), rtol=1e-4)
    assert {1, 2} == set(cuda.contexts)


def test_sizes_that_vary(cuda: NativeFakeApi) -> None:
    f, w = hg.jit(step, device="cuda", dynamic={0: 0}), there(20, 20, seed=1)
    for n in (4, 7):
        x = there(n, 20)
        warm(cuda, f, x, w)
    for n in (4, 7, 9):
        x = there(n, 20)
        y, native = served(cuda, f, x, w)
        assert native == (n != 9) and np.allclose(np.asarray(y), on_host(np.asarray(x), np.asarray(w)), rtol=1e-4)


def test_native_calls_that_are_switched_off(cuda: NativeFakeApi) -> None:
    f, x, w = hg.jit(step, device="cuda"), there(6, 20), there(20, 20, seed=1)
    warm(cuda, f, x, w)
    with hg.settings.override(native=False):
        y, native = served(cuda, f, x, w)
        assert native == 0 and np.allclose(np.asarray(y), on_host(np.asarray(x), np.asarray(w)), rtol=1e-4)
    del y  # whose memory the next result takes
    assert served(cuda, f, x, w)[1] == 1


def test_calls_while_tracing(cuda: NativeFakeApi) -> None:
    f, x, w = hg.jit(step, device="cuda"), there(6, 20), there(20, 20, seed=1)
    warm(cuda, f, x, w)
    y, native = served(cuda, hg.jit(lambda x: f(x, w) * 2), x)
    assert native == 0 and np.allclose(np.asarray(y), 2 * on_host(np.asarray(x), np.asarray(w)), rtol=1e-4)


@pytest.mark.parametrize("raw", [True, False])
def test_the_current_stream_of_pytorch(monkeypatch: pytest.MonkeyPatch, raw: bool) -> None:
    class Stream(NamedTuple):
        cuda_stream: int

    asked = {"_cuda_getCurrentRawStream": lambda number: 70 + number} if raw else {}
    cuda = SimpleNamespace(is_initialized=lambda: True, current_stream=lambda number: Stream(70 + number))
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(_C=SimpleNamespace(**asked), cuda=cuda))
    assert Api.current_stream(Api.__new__(Api), 1) == 71


def test_functions_of_a_driver_are_found_all_or_none() -> None:
    found = Api.__new__(Api).addresses
    assert found is None or all(found)


# --- memory ----------------------------------------------------------------------------------------------------------


def test_donated_arguments(cuda: NativeFakeApi) -> None:
    f, w = hg.jit(step, device="cuda", donate_argnums=0), there(20, 20, seed=1)
    for _ in range(25):
        f(there(6, 20), w)
    x, told = there(6, 20), there(6, 20)
    address = told.__cuda_array_interface__["data"][0]
    del [there(6, 20) for _ in range(3)][:]  # for results
    given, kept = x._storage.memory.piece, told._storage.memory.piece
    for t, free in ((x, True), (told, False)):  # whoever was told of memory may read it
        y, native = served(cuda, f, t, w)
        assert native == 1 and np.allclose(np.asarray(y), on_host(values(6, 20), np.asarray(w)), rtol=1e-4)
        assert ((given if t is x else kept).what is None, t._storage is None) == (free, free)
    assert kept.handle.address == address
    with pytest.raises(DonatedBufferError):
        f(x, w)


def test_nothing_is_left(cuda: NativeFakeApi) -> None:
    f, x, w = hg.jit(step, device="cuda"), there(6, 20), there(20, 20, seed=1)
    warm(cuda, f, x, w)
    blocks = []
    for _ in range(4):
        for _ in range(200):
            hg.block_until_ready(f(x, w))
        gc.collect()
        blocks.append(sys.getallocatedblocks())
    grown = [after - before for before, after in itertools.pairwise(blocks)]
    assert min(grown) < 20, grown  # what a call leaves grows each time; a table that grows does so once
    del f, x, w
    hg.clear_caches()
    gc.collect()
    hg.clear_caches()
    assert not cuda.live and not cuda.host and not cuda.graphs


def test_large_arguments_and_constants_that_came_from_the_host(cuda: NativeFakeApi) -> None:
    """Their memory is of the queue of large copies."""
    large, closed_over = values(300, 300), values(300, 300, seed=1)
    f, x = hg.jit(lambda x: x * 2 + closed_over, device="cuda"), there(300, 300)
    device = cuda_device.found()[0][0]
    queue = device.queue
    assert x._storage.memory.queue is not queue and x.nbytes >= APART_BYTES
    warm(cuda, f, x)
    device.spare_events += [cuda.new_event() for _ in range(10)]
    for _ in range(3):  # until there is memory for two results
        y, native = served(cuda, f, x)
    assert native == 1
    event = x._storage.memory.uses[queue]
    assert not event.is_done()
    piece = x._storage.memory.piece
    del x
    for seed in range(2, 6):  # may not take the memory while a call reads it
        z = there(300, 300, seed=seed)
        assert z._storage.memory.piece is not piece or event.is_done()
    assert np.allclose(np.asarray(y), large * 2 + closed_over, rtol=1e-5)


def test_memory_that_another_stream_uses_is_not_taken(cuda: NativeFakeApi) -> None:
    f, w = hg.jit(step, device="cuda"), there(20, 20, seed=1)
    warm(cuda, f, there(6, 20), w)
    other = hg.stream("cuda")
    for seed in range(6):
        y = f(there(6, 20, seed=seed), w)
        with other:
            z, native = served(cuda, f, y, w)
        assert native == 0
        want = np.asarray(y).copy()
        del y
        assert np.allclose(np.asarray(z), on_host(want, np.asarray(w)), rtol=1e-4)


# --- streams and threads ---------------------------------------------------------------------------------------------


def test_streams_have_replays_of_their_own(cuda: NativeFakeApi) -> None:
    f = hg.jit(step, device="cuda")
    for _ in range(3):
        with hg.stream("cuda"):
            x, w = there(6, 20), there(20, 20, seed=1)
            warm(cuda, f, x, w)
            assert np.allclose(np.asarray(f(x, w)), on_host(np.asarray(x), np.asarray(w)), rtol=1e-4)
        del x, w
        gc.collect()
    assert len(cuda.graphs) <= 2  # of the last stream, and of the one before it at the most
    x, w = there(6, 20), there(20, 20, seed=1)
    warm(cuda, f, x, w)
    cuda.stream = cuda.new_stream()
    y, native = served(cuda, f, x, w)
    assert native == 0 and np.allclose(np.asarray(y), on_host(np.asarray(x), np.asarray(w)), rtol=1e-4)


def test_threads(cuda: NativeFakeApi) -> None:
    f, w = hg.jit(step, device="cuda"), there(20, 20, seed=1)
    warm(cuda, f, there(6, 20), w)
    failures: list[Any] = []

    def work(seed: int) -> None:
        try:
            x = there(6, 20, seed=seed)
            want = on_host(np.asarray(x), np.asarray(w))
            for _ in range(30):
                held = [f(x, w) for _ in range(5)]
                assert np.allclose(np.asarray(held[-1]), want, rtol=1e-4)
        except BaseException as e:  # of a thread
            failures.append(e)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures and cuda.called("launch") > 100


def test_a_device_that_another_thread_has(cuda: NativeFakeApi) -> None:
    f, x, w = hg.jit(step, device="cuda"), there(6, 20), there(20, 20, seed=1)
    warm(cuda, f, x, w)
    lock, got = cuda_device.found()[0][0].lock, []
    with lock:
        t = threading.Thread(target=lambda: got.append(f(x, w)))
        t.start()
        t.join(0.2)
        assert not got
    t.join()
    assert np.allclose(np.asarray(got[0]), on_host(np.asarray(x), np.asarray(w)), rtol=1e-4)


def test_the_context_of_the_caller_stays(cuda: NativeFakeApi) -> None:
    f, x, w = hg.jit(step, device="cuda:1"), there(6, 20, device="cuda:1"), there(20, 20, seed=1, device="cuda:1")
    warm(cuda, f, x, w)
    del cuda.contexts[:]
    pushed = cuda.called("push_current")
    y, native = served(cuda, f, x, w)
    assert native == 1 and cuda.called("push_current") == cuda.called("pop_current") == pushed + 1
    np.asarray(y)
    assert cuda.contexts == [2]
    with cuda.on(1):
        f(x, w)
    assert cuda.called("push_current") == pushed + 1


def test_a_finaliser_that_calls_the_function_inside_of_a_call(cuda: NativeFakeApi) -> None:
    f, x, w = hg.jit(step, device="cuda"), there(6, 20), there(20, 20, seed=1)
    warm(cuda, f, x, w)
    want, inner = on_host(np.asarray(x), np.asarray(w)), []

    class Loop:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            inner.append(f(x, w))

    before = gc.get_threshold()
    gc.set_threshold(1, 1, 1)
    try:
        for _ in range(50):
            Loop()
            y = f(x, w)
    finally:
        gc.set_threshold(*before)
    assert len(inner) >= 10
    for t in (y, *inner):
        assert np.allclose(np.asarray(t), want, rtol=1e-4)


@pytest.mark.parametrize("name", ["current_stream", "record", "is_done"])  # the queue, the table's copies, collecting what has ended
def test_an_interrupt_inside_of_a_call_reaches_its_caller(cuda: NativeFakeApi, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    f, w = hg.jit(step, device="cuda"), there(20, 20, seed=1)
    xs = [there(6, 20, seed=s) for s in range(3)]
    warm(cuda, f, xs[0], w)
    device = cuda_device.found()[0][0]
    device.spare_events += [cuda.new_event() for _ in range(100)]  # so that native code serves every call
    method, armed, interrupted = getattr(cuda, name), False, 0

    def interrupt(*args: Any) -> Any:
        nonlocal armed
        if armed:
            armed = False
            raise KeyboardInterrupt
        return method(*args)

    monkeypatch.setattr(cuda, name, interrupt)
    for k in range(80):
        armed = True
        try:
            f(xs[k % 3], w)
        except KeyboardInterrupt:
            interrupted += 1
    armed = False
    assert interrupted >= 4
    assert np.allclose(np.asarray(f(xs[0], w)), on_host(np.asarray(xs[0]), np.asarray(w)), rtol=1e-4)


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("name", ["launch", "record"])  # between kernels of a first call; while copies of a table are waited for
def test_a_call_inside_of_a_call_by_python(cuda: NativeFakeApi, monkeypatch: pytest.MonkeyPatch, name: str, native: bool) -> None:
    f, w = hg.jit(lambda x, w: hnp.cumsum(hnp.exp(x @ w), axis=0) @ w, device="cuda"), there(20, 20, seed=1)
    xs = [there(6, 20, seed=s) for s in range(4)]
    want = [np.cumsum(np.exp(np.asarray(x) @ np.asarray(w)), axis=0) @ np.asarray(w) for x in xs]
    method, armed, inner = getattr(cuda, name), False, []

    def interrupted(*args: Any) -> None:
        nonlocal armed
        method(*args)
        if armed:
            armed = False
            inner.append(f(xs[3], w))

    monkeypatch.setattr(cuda, name, interrupted)
    with hg.settings.override(native=native):
        for k in range(40):
            armed = k == 0 or name == "record" and k % 5 > 0  # so that calls of either kind turn the table over
            y = f(xs[k % 3], w)
            armed = False
            assert np.allclose(np.asarray(y), want[k % 3], rtol=1e-3)
    assert inner
    for z in inner:
        assert np.allclose(np.asarray(z), want[3], rtol=1e-3)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_process_is_told(cuda: NativeFakeApi) -> None:
    f, x, w = hg.jit(step, device="cuda"), there(6, 20), there(20, 20, seed=1)
    warm(cuda, f, x, w)
    child = os.fork()
    if child == 0:
        try:
            f(x, w)
        except DeviceError as e:
            os._exit(0 if "fork" in str(e) else 1)
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert served(cuda, f, x, w)[1] == 1


# --- faults ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", ["copy_in", "launch", "record", "get_current"])
def test_a_driver_that_refuses_a_call_once(cuda: NativeFakeApi, function: str) -> None:
    f, w = hg.jit(step, device="cuda"), there(20, 20, seed=1)
    warm(cuda, f, there(6, 20), w)
    for seed in range(6):
        x = there(6, 20, seed=seed)
        cuda.fail(function, 700, seed % 2)
        y = f(x, w)
        assert np.allclose(np.asarray(y), on_host(np.asarray(x), np.asarray(w)), rtol=1e-4)
    cuda.fail(function, 0, 0)
    warm(cuda, f, x, w)


@pytest.mark.parametrize("function", ["push_current", "pop_current"])
def test_a_context_that_cannot_be_entered(cuda: NativeFakeApi, function: str) -> None:
    f, x, w = hg.jit(step, device="cuda:1"), there(6, 20, device="cuda:1"), there(20, 20, seed=1, device="cuda:1")
    warm(cuda, f, x, w)
    cuda.fail(function, 201, 1)
    assert np.allclose(np.asarray(f(x, w)), on_host(np.asarray(x), np.asarray(w)), rtol=1e-4)
    assert served(cuda, f, x, w)[1] == 1


@pytest.mark.parametrize("words, error", [("cudaErrorIllegalAddress", DeviceError), ("cudaErrorMemoryAllocation", OutOfMemory)])
def test_a_driver_that_refuses_all_calls(cuda: NativeFakeApi, monkeypatch: pytest.MonkeyPatch, words: str, error: Any) -> None:
    def refused(*_: Any) -> Any:
        raise FakeError(f"{words}: no more")

    f, x, w = hg.jit(step, device="cuda"), there(6, 20), there(20, 20, seed=1)
    warm(cuda, f, x, w)
    live = []
    with monkeypatch.context() as patch:
        patch.setattr(cuda, "launch_graph", refused)
        cuda.fail("launch", 700, 1000)
        for _ in range(6):
            with pytest.raises(error, match=words):
                f(x, w)
            live.append(len(cuda.live))
    cuda.fail("launch", 0, 0)
    assert live[2] == live[-1]
    warm(cuda, f, x, w)
    assert np.allclose(np.asarray(f(x, w)), on_host(np.asarray(x), np.asarray(w)), rtol=1e-4)


def test_values_that_failed_are_refused(cuda: NativeFakeApi) -> None:
    f, x, w = hg.jit(step, device="cuda"), there(20, 20), there(20, 20, seed=1)
    warm(cuda, f, x, w)
    y = f(x, w)
    cuda.broken = "cudaErrorLaunchFailure: unspecified"
    with pytest.raises(DeviceError, match="LaunchFailure"):
        np.asarray(y)
    cuda.broken = None
    with pytest.raises(DeviceError, match="LaunchFailure"):
        f(y, w)
    assert np.allclose(np.asarray(f(x, w)), on_host(np.asarray(x), np.asarray(w)), rtol=1e-4)
