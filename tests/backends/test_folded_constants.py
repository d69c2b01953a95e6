"""What programs on devices compute once from constants: values, launches, memory; on OpenCL, on a CUDA without a GPU, and on a null device."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.backends import folded_constants
from hologram.errors import OutOfMemory
from hologram.settings import override
from tests.support.devices.some_devices import available

Function = Callable[..., Any]


@pytest.fixture(params=["opencl", "cuda", "null"])
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    yield available(request.param, monkeypatch)
    hg.clear_caches()


def _array(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed + sum(shape)).standard_normal(shape).astype(np.float32)


def _live(device: Any) -> int:
    gc.collect()
    return int(device.runtime.pool.statistics()["live"])


def _same(device: Any, got: Any, want: np.ndarray) -> None:
    """The values are ``want``, on devices that have any."""
    hg.block_until_ready(got)
    if device.has_values:
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-4, atol=1e-4)


def test_work_on_constants_is_done_by_the_first_call(device: Any) -> None:
    w, v, x = hg.tensor(_array(300)), hg.tensor(_array(300, seed=1)), _array(300)
    f = hg.jit(lambda x: x * hnp.exp(w) + hnp.sum(v * v), device=device.name)
    given = hg.device_put(x, device.name)
    want = x * np.exp(np.asarray(w)) + (np.asarray(v) ** 2).sum()
    launches, uploads = [], []
    for _ in range(4):
        device.counts.clear()
        _same(device, f(given), want)
        launches.append(device.counts["launches"])
        uploads.append(device.counts["copies_in"])
    assert launches[0] > 1 and launches[1:] == [1] * 3
    assert uploads[0] == 2 and not any(uploads[1:])
    assert "exp" not in f.lower(given).as_text("kernels")
    with override(hold_limit=0):
        assert "exp" in f.lower(given).as_text("kernels")
        _same(device, f(given), want)


def test_what_is_held_is_memory_of_the_device_as_long_as_programs_live(device: Any) -> None:
    x, w = hg.device_put(_array(3000), device.name), hg.tensor(_array(3000))
    hg.block_until_ready(hg.jit(lambda x: x + 1, device=device.name)(x))
    before, known = _live(device), len(folded_constants._known)
    first = hg.jit(lambda x: x * hnp.exp(w), device=device.name).lower(x).compile()
    second = hg.jit(lambda x: x - hnp.exp(w), device=device.name).lower(x).compile()
    for made in (first, second):
        hg.block_until_ready(made(x))
        assert made.memory_analysis().held_bytes == made.memory_analysis().constant_bytes == 12_000
        assert 12_000 <= _live(device) - before < 14_000  # both programs hold the same, and not what it is made of
    assert len(folded_constants._known) == known + 1
    assert "folded constant 0 float32[3000]" in device.runtime.pool.holdings()
    del first, made
    assert _live(device) - before >= 12_000
    del second
    assert _live(device) == before and len(folded_constants._known) == known


def test_reports_say_what_is_held(device: Any) -> None:
    w, x = hg.tensor(_array(300)), _array(300)
    text = str(hg.explain(hg.jit(lambda x: x * hnp.exp(w), device=device.name))(x))
    assert "--- computed once ---" in text and "1,200 computed once and held" in text


def test_loops_read_what_is_held(device: Any) -> None:
    w, x = hg.tensor(_array(40, 64)), hg.device_put(_array(5, 40), device.name)
    f = hg.jit(lambda x: hg.scan(lambda c, _: (hnp.clip(c @ hnp.exp(w)[:, :40] / 40, -1, 1), None), x, None, length=6)[0], device=device.name)
    kernels = f.lower(x).compile().reduction().kernels
    want = _array(5, 40)
    for _ in range(6):
        want = np.clip(want @ np.exp(np.asarray(w))[:, :40] / 40, -1, 1)
    for _ in range(3):
        _same(device, f(x), want)
    device.counts.clear()
    hg.block_until_ready(f(x))
    assert device.counts["launches"] == (1 if "cuda" in device.name else 6 * kernels)  # those of steps, captured on CUDA, and nothing before the loop


def test_a_device_without_room_says_what_for(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    w, x = hg.tensor(_array(300_000)), hg.device_put(_array(300_000), device.name)
    f = hg.jit(lambda x: x * hnp.exp(w), device=device.name)
    pool = device.runtime.pool
    pool.trim()
    with monkeypatch.context() as m:
        m.setattr(pool, "limit", pool.allocated_bytes + 1_500_000)
        with pytest.raises(OutOfMemory, match="folded constant 0 float32"):
            f(x)
    _same(device, f(x), _array(300_000) * np.exp(np.asarray(w)))
