"""The Metal backend on a Metal without a Mac (``fake_metal.py``)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.backends.metal import device as metal_device
from hologram.backends.metal.device import Device
from hologram.errors import CompileError, DeviceError, OutOfMemory, UnsupportedError
from tests.support.devices import fake_metal
from tests.support.needs import needs_compilers

pytestmark = needs_compilers


@pytest.fixture
def metal(monkeypatch: pytest.MonkeyPatch) -> Iterator[fake_metal.Device]:
    fake = fake_metal.Device()
    found = [Device(fake_metal, 0, fake)]
    monkeypatch.setattr(metal_device, "found", lambda: (found, None))
    yield fake
    hg.clear_caches()


def values(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def normal(x: Any, gain: Any) -> Any:
    centred = x - hnp.mean(x, axis=1, keepdims=True)
    return centred / hnp.sqrt(hnp.mean(centred**2, axis=1, keepdims=True) + 1e-5) * gain


def test_programs_run_on_what_stays_there(metal: fake_metal.Device) -> None:
    x, gain, w = values(11, 40), values(40), values(40, 30)
    y = hg.jit(normal, device="metal")(x, gain)
    z = hg.jit(lambda y, w: hnp.maximum(y @ w, 0), device="metal")(y, w)
    assert not metal.running[-1].status() >= 4 and z.device == "metal:0"
    centred = x - x.mean(1, keepdims=True)
    want = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5) * gain
    assert np.allclose(np.asarray(y), want, atol=1e-5) and np.allclose(np.asarray(z), np.maximum(want @ w, 0), atol=1e-4)


def test_a_call_is_one_command_buffer(metal: fake_metal.Device) -> None:
    f = hg.jit(lambda x: hnp.cumsum(hnp.exp(x) / hnp.sum(hnp.exp(x))), device="metal")
    x = hg.device_put(values(500), "metal")
    hg.block_until_ready(x)
    y = f(x)
    assert metal.launches > 1 and len(metal.running) == 1
    e = np.exp(values(500))
    assert np.allclose(np.asarray(y), np.cumsum(e / e.sum()), rtol=1e-5)


@pytest.mark.parametrize("count", [1, 5, 7, 1000, 70001])
def test_copies_of_parts_of_words(metal: fake_metal.Device, count: int) -> None:
    """A Mac's encoders copy whole words only."""
    x = np.random.default_rng(count).integers(0, 256, count, np.uint8)
    there = hg.device_put(x, "metal")
    assert np.array_equal(np.asarray(there), x)
    assert np.array_equal(np.asarray(hg.jit(lambda a: (a + 1).astype(hnp.uint8), device="metal")(there)), (x + 1).astype(np.uint8))


def test_sizes_that_are_symbols(metal: fake_metal.Device) -> None:
    f = hg.jit(lambda x: hnp.max(x * 2, axis=1), device="metal", dynamic={0: 0})
    for n in (3, 8):
        x = values(n, 70)
        assert np.array_equal(np.asarray(f(x)), (x * 2).max(1))


def test_streams_wait_for_each_other(metal: fake_metal.Device) -> None:
    f = hg.jit(lambda x: x * 2 + 1, device="metal")
    x = f(values(100))
    device = metal_device.found()[0][0]
    queue = device.new_queue()
    device.runtime.enter(queue)
    try:
        y = f(x)
    finally:
        device.runtime.leave(queue)
    assert np.array_equal(np.asarray(y), (values(100) * 2 + 1) * 2 + 1)


def test_what_metal_lacks_is_refused(metal: fake_metal.Device) -> None:
    with pytest.raises(DeviceError, match="subnormals"):
        hg.jit(lambda x: x + 1, device="metal", precision="exact")(values(4))
    with pytest.raises(UnsupportedError, match="float64"):
        hg.jit(lambda x: x + 1, device="metal")(np.ones(4))


def test_errors(metal: fake_metal.Device) -> None:
    device = metal_device.found()[0][0]
    with pytest.raises(CompileError, match=r"(?s)metal:0 does not compile.*>\s+3 .*nonsense"):
        device.build("#include <metal_stdlib>\nkernel void kernel0(uint i [[thread_position_in_grid]]) {\n  nonsense;\n}\n", ["kernel0"])
    y = hg.jit(lambda x: x + 1, device="metal")(values(4))
    metal.broken = "the GPU was reset"
    with pytest.raises(DeviceError, match="metal:0 failed: the GPU was reset"):
        np.asarray(y)
    metal.broken = None
    metal.memory_bytes = metal.taken + 1000
    with pytest.raises(OutOfMemory, match="metal:0 has no"):
        hg.device_put(values(1000), "metal")
    metal.memory_bytes = metal.taken + 5000  # for the array, and not for what brings it there
    with pytest.raises(OutOfMemory, match=r"metal:0 has no memory .*4,000 bytes to be copied find no room"):
        hg.device_put(values(1000), "metal")


def test_why_there_is_none() -> None:
    try:
        import Metal  # noqa: F401
    except ImportError:
        assert "hologram-compute[metal]" in str(metal_device.found()[1]) and "metal" in hg.devices().missing
