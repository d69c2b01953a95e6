"""Profiles of programs on devices: launches and copies have the times that drivers tell. OpenCL runs for real, CUDA on one without a GPU."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.backends import timing
from hologram.profiling.profile import Profile
from tests.support.devices.fake_cuda import FakeApi
from tests.support.devices.some_devices import install
from tests.support.needs import needs_compilers, needs_opencl

X = np.linspace(-1, 1, 64 * 48, dtype=np.float32).reshape(64, 48)
LATE = 1e-3  # seconds by which clocks of devices may be apart from the host's


def softmax(x: Any) -> Any:
    e = hnp.exp(x - hnp.max(x, axis=1, keepdims=True))
    return e / hnp.sum(e, axis=1, keepdims=True)


def check(p: Profile, device: str, calls: int) -> None:
    """A program and its copies, with times."""
    program = next(i for i, x in enumerate(p.programs) if x.name == "softmax")
    assert p.programs[program].device == device and p.programs[program].calls == calls
    kernels = [k for k in p.kernels if k.program == program]
    assert kernels and all(k.calls == calls and k.seconds is not None and set(k.threads) == {device} for k in kernels)
    assert all(k.lines and k.flops for k in kernels) and all(p.measured.share_of_roofline(k) is None for k in kernels)
    copies = {k.name: k for k in p.kernels if k.kind == "transfer"}
    assert copies["copy to the device"].bytes == X.nbytes and copies["copy to the host"].calls >= 1
    own = [e for e in p.events if e.thread == device]
    assert len(own) >= len(kernels) * calls
    assert all(-LATE <= e.start and e.start + e.seconds <= p.seconds + LATE and e.seconds >= 0 for e in own)
    assert not timing.logs


@needs_opencl
def test_opencl_tells_times() -> None:
    f = hg.jit(softmax, device="opencl")
    want = np.asarray(f(X))
    with hg.profile() as p:
        for _ in range(3):
            got = np.asarray(f(X))
    assert got.tobytes() == want.tobytes()
    check(p, hg.jit(softmax, device="opencl")(X).device, 3)
    assert "GB/s" in str(p.table())


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeApi]:
    fake = FakeApi(devices=1)
    install(fake, monkeypatch)
    yield fake
    hg.clear_caches()
    gc.collect()


@needs_compilers
def test_cuda_tells_times(cuda: FakeApi) -> None:
    """By pairs of events, which are given back."""
    f = hg.jit(softmax, device="cuda")
    for _ in range(4):
        want = np.asarray(f(X))
    with hg.profile() as p:
        for _ in range(3):
            got = np.asarray(f(X))
    assert got.tobytes() == want.tobytes()
    check(p, "cuda:0", 3)
    gc.collect()
    assert cuda.counts["timed_events"] <= 1, "one stays, by which the clocks are compared"


@needs_compilers
def test_captured_calls_are_not_replayed_in_profiles(cuda: FakeApi) -> None:
    f = hg.jit(lambda x: hnp.cumsum(hnp.cumsum(x, axis=1), axis=0), device="cuda")
    made = f.lower(X).compile()
    for g in (f, made):
        for _ in range(4):
            want = np.asarray(g(X))
        before = cuda.counts["graphs"]
        with hg.profile() as p:
            got = np.asarray(g(X))
        assert got.tobytes() == want.tobytes() and cuda.counts["graphs"] == before > 0
        assert [k.calls for k in p.kernels if k.kind == "kernel"] == [1, 1]
        g(X)
        assert cuda.counts["graphs"] == before + 1


@needs_compilers
def test_loops_on_devices(cuda: FakeApi) -> None:
    f = hg.jit(lambda x: hg.fori_loop(0, 4, lambda i, x: hnp.cumsum(x, axis=1) * 0.5, x), device="cuda")
    f(X)
    p = hg.profile(f)(X)
    inside = [k for k in p.kernels if k.parent is not None]
    assert inside and sum(k.calls for k in inside) % 4 == 0


def test_commands_without_times_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    p = hg.profile(hg.jit(softmax, device="null"))(X)
    assert any(k.calls == 1 and k.seconds is None for k in p.kernels)
