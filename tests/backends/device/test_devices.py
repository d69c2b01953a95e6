"""Arrays on devices, calls that return before they are done, streams, memory, and what devices fail with."""

from __future__ import annotations

import gc
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.backends.build import build
from hologram.backends.device import runtime
from hologram.backends.device.backend import DeviceBackend
from hologram.backends.native import storage as host
from hologram.backends.native.module import why_not_native
from hologram.backends.opencl import device as opencl
from hologram.errors import DeviceError, DonatedBufferError, IntegerRangeError, OutOfMemory, UnsupportedError
from hologram.ir import devices
from hologram.trace.call.signature import Signature
from tests.support.needs import needs_opencl

X = np.random.default_rng(0).standard_normal((30, 40)).astype(np.float32)


@pytest.fixture
def device() -> Any:
    return devices.find("opencl")


@pytest.fixture
def counts(device: Any) -> Counter[str]:
    """What the device was asked for since the test began, when read by ``counts[…]``; cleared here."""
    device.counts.clear()
    return device.counts


@pytest.fixture
def null() -> Any:
    found = devices.find("null:0")
    found.counts.clear()
    return found


# --- where arrays live -----------------------------------------------------------------------------------------------


@needs_opencl
def test_chains_of_calls_move_nothing(counts: Counter[str]) -> None:
    x = hg.device_put(X, "opencl")
    assert x.device == "opencl:0" and counts["bytes_in"] == X.nbytes
    step = hg.jit(lambda a: hnp.tanh(a) + 1)  # which runs where its argument is
    y = step(step(step(x)))
    assert y.device == "opencl:0" and counts["launches"] == 3
    assert counts["copies_in"] == 1 and counts["copies_out"] == 0
    want = X
    for _ in range(3):
        want = np.tanh(want) + 1
    np.testing.assert_allclose(np.asarray(y), want, rtol=1e-6)
    np.asarray(y), float(y[0, 0])
    assert counts["bytes_out"] == X.nbytes + 4  # once, and the element


@needs_opencl
def test_calls_are_told_apart_by_their_numbers_and_arrays() -> None:
    f, x = hg.jit(lambda a, b: a + b, device="opencl"), hg.device_put(X, "opencl")
    swapped = np.asfortranarray(X).astype(">f4")
    others: list[Any] = [1, 1.5, True, 2**40, X, X[0], X.astype(np.float64), X.astype(np.int8), swapped, X.T.copy().T, 1j, np.float32(2), x]
    for _ in range(2):
        for b in others:
            got, want = f(x, b), hg.jit(lambda a, b: a + b)(X, np.asarray(b) if b is x else b)
            assert got.dtype == want.dtype and np.array_equal(np.asarray(got), np.asarray(want)), b
    with pytest.raises(IntegerRangeError):
        f(x, 2**70)


@needs_opencl
def test_expressions_run_where_their_values_are(counts: Counter[str]) -> None:
    x = hg.device_put(X, "opencl")
    y = (x * 2 + hg.asarray(X)).sum(axis=0)
    assert y.device == "opencl:0"
    np.testing.assert_allclose(y.numpy(), (X * 3).sum(axis=0), rtol=1e-5, atol=1e-5)
    assert (hg.asarray(X) + 1).device == "cpu"


@pytest.mark.skipif(why_not_native() is not None, reason="native calls are off")
def test_calls_with_containers_are_matched_natively(null: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tensors of the device, arrays of the host and numbers; results that are computed, and one that is an argument."""
    f = hg.jit(lambda p, s, *, x: {"y": p["a"][0] @ x * s, "z": [p["b"], (None, p["a"][1] + s)]}, device="null")
    a, b = hg.device_put([X, X[0]], "null")
    params, options = {"b": b, "a": (a, X[1])}, {"x": hg.tensor(X.T)}
    f(params, 2.0, **options)
    monkeypatch.setattr(Signature, "flatten_call", None)
    launches = null.counts["launches"]
    got = f(params, 3.0, **options)
    assert null.counts["launches"] > launches and list(got) == ["y", "z"] and got["z"][1][0] is None
    assert [(t.shape, t.device) for t in (got["y"], got["z"][0], got["z"][1][1])] == [(s, "null:0") for s in ((30, 30), (40,), (40,))]
    with pytest.raises(TypeError):  # what does not fit goes to Python
        f(params, 3, **options)


@needs_opencl
def test_to_a_device_and_back() -> None:
    x = hg.tensor([1.0, 2.0], device="opencl")
    assert x.device == "opencl:0" and x.to_device("opencl:0") is x
    back = x.to_device("cpu")
    assert back.device == "cpu" and back.tolist() == [1.0, 2.0]
    tree = hg.device_put({"a": X, "b": [1.5, x]}, "opencl")
    assert [t.device for t in hg.tree.leaves(tree)] == ["opencl:0"] * 3
    assert tree["b"][1] is x and hg.device_put(tree["a"]).device == "cpu"
    assert [hnp.zeros(3, device="opencl").device, hnp.arange(3, device="opencl").device, hnp.eye(2, device="opencl").device] == ["opencl:0"] * 3
    assert hnp.zeros(3).device == "cpu" and hnp.asarray(X, device="opencl").device == "opencl:0"


@needs_opencl
@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint64, np.float16, np.float64, np.complex64])
def test_every_type_there_and_back(dtype: Any) -> None:
    x = (np.arange(7) % 2).astype(dtype)
    there = hg.device_put(x, "opencl")
    assert there.dtype == x.dtype and np.array_equal(np.asarray(there), x)
    assert np.array_equal(np.from_dlpack(there), x) if x.dtype != bool else True


@needs_opencl
def test_a_borrowed_array_may_change_after_the_call() -> None:
    x = X.copy()
    f = hg.jit(lambda a: a * 2, device="opencl")
    y, z = f(x), hg.device_put(x, "opencl")
    x[:] = 0
    np.testing.assert_array_equal(np.asarray(y), X * 2)
    np.testing.assert_array_equal(np.asarray(z), X)


@needs_opencl
def test_a_program_for_the_cpu_takes_values_of_a_device(counts: Counter[str]) -> None:
    x = hg.device_put(X, "opencl")
    y = hg.jit(lambda a: a + 1, device="cpu")(x)
    assert y.device == "cpu" and np.array_equal(np.asarray(y), X + 1)
    weights = hg.device_put(X, "opencl")
    assert hg.jit(lambda a: a @ weights.T)(X).device == "opencl:0"  # where the weights are
    assert hg.jit(lambda a: a @ weights.T, device="cpu")(X).device == "cpu"


@needs_opencl
def test_weights_are_copied_once(counts: Counter[str]) -> None:
    weights = hg.tensor(X)
    f = hg.jit(lambda a: a @ weights.T, device="opencl")
    x = hg.device_put(X, "opencl")
    f(x), f(x)
    assert counts["copies_in"] == 2


@needs_opencl
def test_arguments_and_constants_as_results_are_on_the_device() -> None:
    table = hg.tensor([1.0, 2.0])
    same, constant = hg.jit(lambda a: (a, table), device="opencl")(X)
    assert same.device == constant.device == "opencl:0"
    assert np.array_equal(np.asarray(same), X) and constant.tolist() == [1.0, 2.0]


def test_values_of_two_devices_do_not_meet() -> None:
    a, b = hg.device_put(X, "null:0"), hg.device_put(X, "null:1")
    with pytest.raises(DeviceError, match="values on null:0 and on null:1 meet.*device_put.*test_devices"):
        (a + b).numpy()
    with pytest.raises(DeviceError, match="meet in one computation"):
        hg.jit(lambda a, b: a + b)(a, b)


@needs_opencl
def test_values_go_to_another_device_without_its_lock(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "_made", [])  # what is left behind here is nobody else's
    other = opencl.Device(device.cl, 1, device.device)
    free: list[bool] = []
    read = device.runtime.read

    def watched(*args: Any) -> None:
        def look() -> None:
            free.append(other.lock.acquire(blocking=False))
            if free[-1]:
                other.lock.release()

        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        read(*args)

    monkeypatch.setattr(device.runtime, "read", watched)
    moved = other.runtime.put(hg.device_put(X, "opencl")._storage)
    np.testing.assert_array_equal(host.view(moved.on_host()), X)
    program = build(DeviceBackend(other), hg.make_graph(lambda a: a * 2)(X), "standard")
    np.testing.assert_array_equal(host.view(program.run([hg.device_put(X, "opencl")._storage])[0].on_host()), X * 2)
    assert free == [True, True]


@pytest.mark.parametrize("name", ["null:\u00b2", "null:-1", "null:", "nothing", "auto"])
def test_a_name_that_no_device_has(name: str) -> None:
    with pytest.raises(DeviceError, match="is not available.*test_devices"):
        hg.device_put(X, name)


def test_a_device_that_is_not_there() -> None:
    for f in (lambda: hg.device_put(X, "opencl:77"), lambda: hg.tensor(X, device="nowhere"), lambda: hnp.zeros(3, device="null:x")):
        with pytest.raises(DeviceError, match="is not available.*there is 'cpu'.*test_devices"):
            f()


@needs_opencl
def test_donated_memory_is_used_again(device: Any) -> None:
    f = hg.jit(lambda a: a + 1, donate_argnums=0)
    x = hg.device_put(X, "opencl")
    for _ in range(3):
        x = f(x)
    before = device.runtime.pool.statistics()["peak"]
    for _ in range(20):
        x = f(x)
    assert device.runtime.pool.statistics()["peak"] == before
    y = f(x)
    with pytest.raises(DonatedBufferError):
        x.numpy()
    np.testing.assert_allclose(np.asarray(y), X + 24, rtol=1e-5)


@needs_opencl
def test_gradients_stay_on_the_device(counts: Counter[str]) -> None:
    x = hg.device_put(X, "opencl")
    g = hg.jit(hg.grad(lambda a: hnp.sum(hnp.sin(a) * a)))(x)
    assert g.device == "opencl:0" and counts["copies_out"] == 0
    np.testing.assert_allclose(np.asarray(g), np.cos(X) * X + np.sin(X), rtol=1e-4, atol=1e-5)
    assert hg.vmap(lambda r: r * 2)(x).device == "opencl:0"


# --- loops, branches, sorts and routines of the host -----------------------------------------------------------------

SPD = (X[:, :30] @ X[:, :30].T + 40 * np.eye(30)).astype(np.float32)
PROGRAMS: dict[str, Any] = {
    "scan": lambda x: hg.scan(lambda c, y: (c * 0.5 + y, c), x[0], x),
    "scan_of_scalars": lambda x: hg.scan(lambda c, y: (c + y, c * y), hnp.asarray(np.float32(0)), x[:, 0]),
    "scan_of_odd_rows": lambda x: hg.scan(lambda c, y: (c + hnp.sum(y), y[::-1]), hnp.asarray(np.float32(0)), x[:, :7]),
    "scan_in_reverse": lambda x: hg.scan(lambda c, y: (y, c), x[0], x, reverse=True),
    "fori_loop": lambda x: hg.fori_loop(0, 5, lambda i, c: c + x * i, x),
    "while_loop": lambda x: hg.while_loop(lambda c: hnp.sum(c[1]) < 500, lambda c: (c[1], abs(c[0]) + 1), (x, x)),
    "while_loop_without_steps": lambda x: hg.while_loop(lambda c: hnp.sum(c) > 1e9, lambda c: c + 1, x),
    "cond": lambda x: hg.cond(x[0, 0] > 0, lambda a: a + 1, lambda a: a, x),
    "switch": lambda x: [hg.switch(i, [lambda a: a, lambda a: a * 2, lambda a: hnp.flip(a)], x) for i in range(3)],
    "loop_in_a_loop": lambda x: hg.scan(lambda c, y: (hg.fori_loop(0, 3, lambda i, d: d * 0.5 + y, c), hnp.max(c)), x[0], x),
    "gradient_of_a_scan": hg.grad(lambda x: hnp.sum(hg.scan(lambda c, y: (hnp.tanh(c + y), c), x[0], x)[1])),
    "sort": lambda x: (hnp.sort(x, axis=1), hnp.argsort(x, axis=0), hnp.sort(x.astype(hnp.float16), descending=True)),
    "cholesky": lambda x: hg.linalg.cholesky(hnp.asarray(SPD) + x[:, :1] * 0),
    "fft": lambda x: abs(hg.fft.fft(x)),
    "callback": lambda x: hg.pure_callback(lambda a: a * 2, hg.ShapeDtypeStruct(x.shape, x.dtype), x + 1) - 1,
    "routine_in_a_loop": lambda x: hg.fori_loop(0, 3, lambda i, c: hg.linalg.inv(c), hnp.asarray(SPD) + x[0, 0] * 0),
    "gather_and_scatter": lambda x: hnp.zeros((40,)).at[hnp.argsort(x[0])].add(x[1][::-1]),
}


@needs_opencl
@pytest.mark.parametrize("name", PROGRAMS)
def test_control_flow_and_routines_agree_with_the_cpu(name: str) -> None:
    f = PROGRAMS[name]
    got, want = hg.jit(f, device="opencl", precision="exact")(X), hg.jit(f, precision="exact")(X)
    for g, w in zip(hg.tree.leaves(got), hg.tree.leaves(want), strict=True):
        assert g.device == "opencl:0"
        np.testing.assert_allclose(np.asarray(g), np.asarray(w), rtol=1e-5, atol=1e-5)


@needs_opencl
def test_routines_of_the_host_are_seen(counts: Counter[str]) -> None:
    x = hg.device_put(SPD, "opencl")
    f = hg.jit(lambda a: hnp.sort(hg.linalg.cholesky(a), axis=0))
    assert f.lower(x).compile().reduction().host_calls == 1
    f(x)
    assert counts["copies_out"] == 1 and counts["copies_in"] == 1 + 1


@needs_opencl
def test_an_error_of_a_callback_is_the_callers() -> None:
    def fails(a: Any) -> Any:
        raise ValueError("mine")

    f = hg.jit(lambda x: hg.pure_callback(fails, hg.ShapeDtypeStruct((), np.float32), x), device="opencl")
    with pytest.raises(ValueError, match="mine"):
        f(np.float32(1))


# --- asynchrony ------------------------------------------------------------------------------------------------------


@needs_opencl
def test_a_callback_may_wait_for_another_thread_that_uses_the_device() -> None:
    double = hg.jit(lambda a: a * 2, device="opencl")

    def elsewhere(a: np.ndarray) -> np.ndarray:
        out: list[np.ndarray] = []
        thread = threading.Thread(target=lambda: out.append(np.asarray(double(a))), daemon=True)
        thread.start()
        thread.join(timeout=20)
        return out[0]

    f = hg.jit(lambda a: hg.pure_callback(elsewhere, a, a + 1) - 1, device="opencl")
    np.testing.assert_array_equal(np.asarray(f(X)), (X + 1) * 2 - 1)


@pytest.fixture
def gate(device: Any) -> Iterator[Any]:
    """A function that closes the device's queue, and gives what opens it with a status: 0, or the error that what waits there then fails with."""
    cl, closed = device.cl, []

    def close() -> Any:
        event = cl.UserEvent(device.context)
        closed.append(event)
        device.queue._commands.append(cl.enqueue_barrier(device.queue.queue, wait_for=[event]))
        return event.set_status

    yield close
    for event in closed:
        if event.command_execution_status > 0:
            event.set_status(0)
    device.runtime.finish()


@needs_opencl
def test_a_call_returns_before_the_device_is_done(gate: Any) -> None:
    x = hg.device_put(X, "opencl")
    f = hg.jit(lambda a: a * 2)
    f(x)
    opened = gate()
    y = f(f(x))
    z = y + 1
    hg.eval(z)
    assert not y._storage.made.has_ended() and not z._storage.made.has_ended()
    opened(0)
    np.testing.assert_array_equal(np.asarray(z), X * 4 + 1)
    assert y._storage.made.has_ended()
    assert hg.block_until_ready({"a": y, "b": [z, 3]})["a"] is y


@needs_opencl
def test_a_failure_surfaces_where_the_value_is_read(gate: Any, capfd: Any) -> None:
    f, g = hg.jit(lambda a: a * 2, device="opencl"), hg.jit(lambda a: a + 1)
    f(X), g(f(X))
    opened = gate()
    y = f(X)
    z = g(y)
    opened(-5)
    reads: list[Any] = [lambda y, z: hg.block_until_ready(z), lambda y, z: np.asarray(y), lambda y, z: float(z[0, 0]), lambda y, z: g(y)]
    for read in reads:
        with pytest.raises(DeviceError, match="opencl:0 failed.*test_devices"):
            read(y, z)
    del y, z
    np.testing.assert_array_equal(np.asarray(f(X)), X * 2)  # later work is not touched


@needs_opencl
def test_streams_do_not_wait_for_one_another(gate: Any) -> None:
    f = hg.jit(lambda a: a * 2, device="opencl")
    f(X)
    stream = hg.stream("opencl")
    assert "opencl:0" in repr(stream) and stream.device == "opencl:0"
    opened = gate()
    slow = f(X)
    with stream:
        fast = hg.block_until_ready(f(X + 1))
        both = slow + fast
        hg.eval(both)
    assert not slow._storage.made.has_ended()
    np.testing.assert_array_equal(np.asarray(fast), (X + 1) * 2)
    opened(0)
    np.testing.assert_array_equal(np.asarray(both), X * 2 + (X + 1) * 2)
    stream.synchronize()


@needs_opencl
def test_memory_lent_to_a_stream_is_not_used_again_too_early(gate: Any) -> None:
    f = hg.jit(lambda a: a * 2, device="opencl")
    x = hg.device_put(X, "opencl")
    f(x)
    with hg.stream("opencl"):
        y = f(x)
    del x
    z = f(hg.device_put(X + 5, "opencl"))
    np.testing.assert_array_equal(np.asarray(y), X * 2)
    np.testing.assert_array_equal(np.asarray(z), (X + 5) * 2)


def test_the_cpu_has_no_streams() -> None:
    with pytest.raises(DeviceError, match="the CPU has no streams.*test_devices"):
        hg.stream()
    with pytest.raises(DeviceError, match="is not available"):
        hg.stream("opencl:88")


@needs_opencl
def test_a_stream_is_left_by_the_thread_that_entered_it() -> None:
    first, second = hg.stream("opencl"), hg.stream("opencl")
    with pytest.raises(DeviceError, match="not inside of that stream of opencl:0.*test_devices"):
        first.__exit__(None, None, None)
    running = devices.find("opencl").runtime
    first.__enter__()
    second.__enter__()
    inner = running.queue
    first.__exit__(None, None, None)  # not the innermost, as with generators that take turns
    assert running.queue is inner
    second.__exit__(None, None, None)
    assert running.queue is running.device.queue


# --- memory ----------------------------------------------------------------------------------------------------------


def test_a_full_device_names_what_fills_it(null: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    gc.collect()
    null.runtime.pool.trim()
    monkeypatch.setattr(null.runtime.pool, "limit", 3 * X.nbytes)
    x = hg.device_put(X, "null:0")
    f = hg.jit(lambda a: a + 1)
    y = f(x)
    message = r"null:0 has no 4,800 bytes for result 0 float32\[30, 40\] of .*test_devices.py:\d+ \(the limit is 14,400"
    with pytest.raises(OutOfMemory, match=message) as e:
        f(y)
    assert "it holds: " in str(e.value) and "a copy of float32[30, 40] 4,800" in str(e.value) and "result 0 float32[30, 40]" in str(e.value)
    del e, x
    gc.collect()
    z = f(y)  # what was given back is enough again
    held = null.runtime.pool.statistics()["live"]
    del y, z
    gc.collect()
    assert null.runtime.pool.statistics()["live"] < held


def test_a_stream_that_goes_gives_its_memory_back() -> None:
    null = devices.find("null:4")
    f = hg.jit(lambda a: hnp.cumulative_sum(a * 2, axis=0) @ a.T, device="null:4")
    x = hg.device_put(X, "null:4")
    before, kept = null.taken, []
    for _ in range(5):
        with hg.stream("null:4"):
            kept.append(f(x))
    gc.collect()
    assert null.runtime.pool.statistics()["cached"] == 0  # what was kept for streams that are no more
    held = null.taken
    assert held >= before + 5 * kept[0].nbytes
    del kept
    assert null.runtime.pool.statistics()["live"] == null.taken == before


def test_nothing_leaks(null: Any) -> None:
    gc.collect()
    null.runtime.pool.trim()
    taken, live = null.taken, null.runtime.pool.statistics()["live"]
    f = hg.jit(lambda a: hnp.cumulative_sum(hnp.cumulative_sum(a, axis=0) @ a.T, axis=1), device="null:0")
    f(X)
    once = null.taken
    for _ in range(30):
        f(X)
    assert null.taken == once  # a steady state allocates nothing
    gc.collect()
    assert null.runtime.pool.statistics()["live"] == live
    hg.clear_caches()
    assert null.taken <= taken


@needs_opencl
def test_a_full_device_after_which_nothing_is_lost(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    f = hg.jit(lambda a: a * 2, device="opencl")
    want = np.asarray(f(X))
    gc.collect()
    device.runtime.pool.trim()

    def full(nbytes: int) -> Any:
        raise device.cl.MemoryError("clCreateBuffer failed: MEM_OBJECT_ALLOCATION_FAILURE")

    live = device.runtime.pool.statistics()["live"]
    with monkeypatch.context() as patch:
        patch.setattr(device, "allocate", full)
        with pytest.raises(OutOfMemory, match="MEM_OBJECT_ALLOCATION_FAILURE.*it holds"):
            f(X)
    gc.collect()
    assert device.runtime.pool.statistics()["live"] == live
    np.testing.assert_array_equal(np.asarray(f(X)), want)


class Lost(Exception):
    """What a driver might raise."""


@pytest.mark.parametrize("verb", ["_write", "_launch", "_copy", "_read", "record", "allocate", "build"])
def test_whatever_a_driver_fails_in_is_a_device_error_and_leaks_nothing(verb: str, null: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def run() -> Any:
        return hg.jit(lambda x: hg.fft.fft(hg.scan(lambda c, y: (c + y, c[:3]), x[0], x)[1] + 1), device="null:0")(X)

    gc.collect()
    null.runtime.pool.trim()
    live = null.runtime.pool.statistics()["live"]

    def fails(*_: Any, **__: Any) -> Any:
        raise Lost("the context is lost")

    with monkeypatch.context() as patch:
        patch.setattr(null, "errors", (Lost,), raising=False)
        patch.setattr(null if verb in ("allocate", "build") else type(null.queue), verb, fails)
        with pytest.raises(DeviceError, match="null:0 failed: the context is lost.*test_devices"):
            run()
    gc.collect()
    assert null.runtime.pool.statistics()["live"] == live
    assert run().device == "null:0"


@needs_opencl
def test_reference_counts_give_memory_back_at_once(device: Any) -> None:
    before = device.runtime.pool.statistics()["live"]
    x = hg.device_put(X, "opencl")
    assert device.runtime.pool.statistics()["live"] > before
    device.runtime.finish()
    del x
    assert device.runtime.pool.statistics()["live"] == before


# --- null devices ----------------------------------------------------------------------------------------------------


def test_null_devices_plan_render_and_count(null: Any) -> None:
    f = hg.jit(lambda x: hnp.sum(hnp.exp(x @ x.T), axis=1), device="null")
    y = f(X)
    assert y.device == "null:0" and y.shape == (30,)
    assert repr(y) == "Tensor(without values, shape=(30,), dtype=float32, device=null:0)"
    assert null.counts["launches"] == f.lower(X).compile().reduction().kernels
    assert null.counts["bytes_in"] == X.nbytes and null.counts["bytes_out"] == 0
    assert "__kernel" in f.lower(X).compile().as_text("opencl")
    with pytest.raises(DeviceError, match="null:0 computes nothing.*test_devices"):
        np.asarray(y)
    hg.block_until_ready(y)


def test_null_devices_run_loops_that_need_no_value(null: Any) -> None:
    hg.jit(PROGRAMS["scan"], device="null")(X)
    assert null.counts["launches"] >= len(X)
    hg.jit(PROGRAMS["cholesky"], device="null")(X)
    with pytest.raises(UnsupportedError, match="null:0 computes no values, and the end of a while_loop depends on one.*test_devices"):
        hg.jit(PROGRAMS["while_loop"], device="null")(X)


def test_there_are_as_many_null_devices_as_one_asks_for() -> None:
    assert [hg.device_put(X, f"null:{i}").device for i in (0, 1, 17)] == ["null:0", "null:1", "null:17"]
    assert "null:0" not in hg.devices()
