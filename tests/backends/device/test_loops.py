"""Loops on devices: conditions that are read a batch at one time, steps that are begun in vain, long scans; on OpenCL and on a CUDA without a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.backends.cuda import device as cuda_device
from hologram.backends.device import loops
from hologram.support.progress import bars
from tests.support.devices.fake_cuda import FakeApi
from tests.support.devices.some_devices import available
from tests.support.needs import needs_compilers

X = np.random.default_rng(0).standard_normal((6, 8)).astype(np.float32)


@pytest.fixture(params=["opencl", "cuda"])
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    yield available(request.param, monkeypatch)
    hg.clear_caches()


def steps(n: Any, x: Any) -> Any:
    """``n`` steps of a map that is chaotic: one more or less is another value."""
    return hg.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[2], hnp.sin(c[1]) * 3 + x), (0, x, x * 2))


def test_a_loop_ends_where_its_condition_says(device: Any) -> None:
    f, want = hg.jit(steps, device=device.name), hg.jit(steps)
    for n in (0, 1, 2, 3, 7, 8, 15, 16, 31, 50):  # ends of batches, and what is beside them
        got = f(n, X)
        for g, w in zip(got, want(n, X), strict=True):
            np.testing.assert_allclose(np.asarray(g), np.asarray(w), rtol=1e-5, atol=1e-5)


def test_conditions_are_read_by_batches(device: Any) -> None:
    f, x = hg.jit(steps, device=device.name), hg.device_put(X, device.name)
    f(100, x)
    device.counts.clear()
    f(100, x)
    assert device.counts["copies_out"] == 1 + 4 + -(-85 // 16)  # 1, 2, 4 and 8 steps, and 16 at one time from then on


def test_steps_that_are_dear_are_not_begun_in_vain(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "IN_VAIN_NS", 0.0)
    f, x = hg.jit(steps, device=device.name), hg.device_put(X, device.name)
    device.counts.clear()
    f(20, x)
    assert device.counts["copies_out"] == 21


def test_a_loop_makes_do_with_the_memory_that_there_is(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    f, x = hg.jit(steps, device=device.name), hg.device_put(np.tile(X, (64, 8)), device.name)
    want, pool = hg.jit(steps)(60, np.tile(X, (64, 8))), device.runtime.pool
    hg.block_until_ready(f(0, x))
    monkeypatch.setattr(pool, "limit", pool.allocated_bytes)  # all that a loop without steps begun in vain needs
    device.counts.clear()
    got = f(60, x)
    assert device.counts["copies_out"] == 61
    np.testing.assert_allclose(np.asarray(got[1]), np.asarray(want[1]), rtol=1e-4, atol=1e-4)


def test_callbacks_run_once_a_step(device: Any) -> None:
    seen = []

    def note(i: Any) -> Any:
        seen.append(int(i))
        return i + 1

    f = hg.jit(
        lambda n: hg.while_loop(lambda i: i < n, lambda i: hg.pure_callback(note, hg.ShapeDtypeStruct((), np.int64), i), 0), device=device.name
    )
    assert int(f(5)) == 5 and seen == [0, 1, 2, 3, 4]


PROGRAMS: dict[str, Any] = {
    "a while_loop in a while_loop": lambda x: hg.while_loop(
        lambda c: c[0] < 5, lambda c: (c[0] + 1, hg.while_loop(lambda d: hnp.max(d) < 100.0 * (c[0] + 1), lambda d: d * 1.5 + 1, c[1])), (0, abs(x))
    ),
    "a while_loop in a scan": lambda x: hg.scan(lambda c, y: (steps(3, c)[1] + y, hnp.sum(c)), x[0], x),
    "a scan in a while_loop": lambda x: hg.while_loop(
        lambda c: c[0] < 9, lambda c: (c[0] + 1, hg.scan(lambda d, y: (d * 0.5 + y, d[:3]), c[1], x)[0]), (0, x[0])
    ),
    "carries that change places": lambda x: hg.while_loop(lambda c: c[0] < 11, lambda c: (c[0] + 1, c[2], c[3], c[1]), (0, x, x + 1, x + 2)),
    "a condition of constants": lambda x: hg.while_loop(lambda c: c[0] < hnp.sum(abs(x)), lambda c: (c[0] + 1, c[1] + x), (0, x)),
    "a long scan": lambda x: hg.scan(lambda c, y: (c * 0.5 + y, c + 1), x[0], hnp.tile(x, (25, 1))),
    "a long scan of odd rows in reverse": lambda x: hg.scan(
        lambda c, y: (c * 0.5 + y, (c[:1], hnp.sum(y))), x[0, :7], hnp.tile(x[:, :7], (33, 1))[:193], reverse=True
    ),
    "a long loop of which nobody wants the steps": lambda x: hg.fori_loop(0, 129, lambda i, c: hnp.sin(c) + x * i, x),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_loops_are_those_of_the_cpu(device: Any, name: str) -> None:
    f = PROGRAMS[name]
    run, want = hg.jit(f, device=device.name, precision="exact"), hg.jit(f, precision="exact")(X)
    for _ in range(3):  # kernel by kernel, and captured
        for g, w in zip(hg.tree.leaves(run(X)), hg.tree.leaves(want), strict=True):
            np.testing.assert_allclose(np.asarray(g), np.asarray(w), rtol=2e-6, atol=1e-6)


@needs_compilers
def test_batches_are_captured(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = FakeApi()
    fake = cuda_device.Device(cuda, 0)  # type: ignore[arg-type]
    monkeypatch.setattr(cuda_device, "found", lambda: ([fake], None))
    f, x = hg.jit(steps, device="cuda"), hg.device_put(X, "cuda")
    for _ in range(2):
        f(60, x)
    cuda.counts.clear()
    want = hg.jit(steps)(60, X)
    np.testing.assert_allclose(np.asarray(f(60, x)[1]), np.asarray(want[1]), rtol=1e-4, atol=1e-4)
    assert cuda.counts["graphs"] == 4 + 3 and cuda.counts["launches"] < 10
    monkeypatch.setattr("hologram.backends.cuda.recording.MAX_LAUNCHES", 200)
    long = hg.jit(lambda x: hg.scan(lambda c, y: (hnp.cumulative_sum(c) + y, hnp.sum(c)), x[0], hnp.tile(x, (100, 1))), device="cuda")
    long(x)
    cuda.counts.clear()
    long(x)
    assert cuda.counts["graphs"] >= 9 and cuda.counts["launches"] < 100  # 64 steps are one launch
    hg.clear_caches()


def test_loops_count_what_they_have_begun(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[tuple[str, int | None, int]] = []
    monkeypatch.setattr(bars.Watch, "wake", lambda self: None)
    monkeypatch.setattr(bars.Watch, "remove", lambda self, bar: counted.append((bar.label, bar.total, bar.done)) or self.own.pop(id(bar)))
    f = hg.jit(lambda n, x: hg.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, hnp.sin(c[1])), (0, x), progress="while"), device=device.name)
    f(37, X)
    assert [c for c in counted if c[0] == "while"] == [("while", None, 37)]
    g = hg.jit(lambda x: hg.scan(lambda c, _: (hnp.sin(c), None), x, None, 193, progress="scan")[0], device=device.name)
    np.testing.assert_allclose(np.asarray(g(X)), np.asarray(hg.jit(g.__wrapped__)(X)), rtol=1e-5, atol=1e-6)
    assert [c for c in counted if c[0] == "scan"][:1] == [("scan", 193, 193)]
