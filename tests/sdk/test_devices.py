"""Buffers of executors on devices: elements stay there from op to op, and are what they are on the CPU, however buffers are read and written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hologram as hg
from hologram.errors import DeviceError, FreedBufferError
from hologram.ir import devices
from tests.support.needs import needs_opencl

SIZE = 64


def counts(name: str) -> dict[str, int]:
    """What the device has been told to do since this was last asked."""
    device = devices.find(name)
    found = {what: n for what, n in device.counts.items() if not what.startswith("bytes")}
    device.counts.clear()
    return found


@needs_opencl
def test_buffers_are_copied_in_once_and_results_stay() -> None:
    with hg.Executor("opencl") as executor:
        a, b, c = (executor.allocate(SIZE) for _ in range(3))
        a.from_numpy(np.arange(SIZE))
        b.fill(2)
        counts("opencl")
        hg.ops.vector_add(executor, a, b, c)
        assert counts("opencl") == {"copies_in": 2, "launches": 1}
        for _ in range(4):
            hg.ops.vector_mul(executor, c, b, a)
            hg.ops.vector_add(executor, a, b, c)
        assert counts("opencl") == {"launches": 8}
        assert a.on_device and b.on_device and c.on_device
        assert hg.ops.reduce_sum(executor, b, executor.allocate(1)) == 2 * SIZE
        assert counts("opencl")["copies_out"] == 1
        a.copy_from(b)
        assert counts("opencl") == {}
        hg.ops.vector_neg(executor, a, a)
        assert b.to_bytes() == np.full(SIZE, 2, np.float32).tobytes() and b.on_device
        np.testing.assert_array_equal(a.to_numpy(), np.full(SIZE, -2))
        assert not a.on_device


@needs_opencl
def test_views_see_what_ops_write_and_ops_what_views_hold() -> None:
    with hg.Executor("opencl") as executor:
        a, b = executor.allocate(SIZE), executor.allocate_boundary(5, 16, 16)
        b.fill(3)
        view, shared = a.to_numpy(), np.asarray(b)
        hg.ops.vector_add(executor, a, b, a)
        assert view.tolist() == [3] * SIZE
        view[:] = 1
        shared[:] = 5
        hg.ops.vector_add(executor, a, b, b)
        assert shared.tolist() == [6] * SIZE
        del view
        hg.ops.vector_neg(executor, a, a)
        assert a.on_device and not b.on_device
        wrapped = np.ones(SIZE, np.float32)
        hg.ops.vector_add(executor, a, b, hg.Buffer.wrap(wrapped))
        assert wrapped.tolist() == [5] * SIZE


@needs_opencl
def test_parts_leave_the_rest() -> None:
    with hg.Executor("opencl") as executor:
        a, out = executor.allocate(SIZE), executor.allocate(SIZE)
        a.fill(1)
        out.fill(7)
        alias = executor.allocate(SIZE)
        hg.ops.memcpy(executor, out, alias)
        hg.ops.vector_neg(executor, a, out, n=10)
        assert out.to_numpy().tolist() == [-1] * 10 + [7] * (SIZE - 10)
        assert alias.to_numpy().tolist() == [7] * SIZE


@needs_opencl
def test_freed_buffers_and_refused_writes() -> None:
    with hg.Executor("opencl") as executor:
        a, b = executor.allocate(SIZE), executor.allocate(SIZE)
        hg.ops.vector_add(executor, a, a, b)
        with pytest.raises(hg.errors.DTypeError):
            b.from_numpy(np.zeros(SIZE, np.complex64))
        assert b.on_device  # what was refused changed nothing
        a.free()
        for use in (a.to_numpy, a.to_bytes, lambda: a.ptr, lambda: hg.ops.vector_neg(executor, a, b), lambda: b.copy_from(a)):
            with pytest.raises(FreedBufferError):
                use()


ACTIONS = ("add", "part", "neg", "sum", "fill", "numpy", "write", "bytes", "copy", "copy_from", "view", "let go")


@needs_opencl
@given(st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 2), st.integers(0, 2), st.integers(0, 2)), max_size=12))
def test_any_order_of_uses_gives_what_the_cpu_gives(steps: list[tuple[str, int, int, int]]) -> None:
    with hg.Executor("opencl") as there, hg.Executor("cpu") as here:
        assert _replayed(there, steps) == _replayed(here, steps)


def _replayed(executor: hg.Executor, steps: list[tuple[str, int, int, int]]) -> list[list[float]]:
    buffers: list[Any] = [executor.allocate(SIZE), executor.allocate_boundary(1, 16, 16), executor.allocate(SIZE)]
    held: dict[int, np.ndarray] = {}
    seen: list[list[float]] = []
    for number, (action, i, j, k) in enumerate(steps):
        a, b, out = buffers[i], buffers[j], buffers[k]
        if action in ("add", "part"):
            hg.ops.vector_add(executor, a, b, out, *([5] if action == "part" else []))
        elif action == "neg":
            hg.ops.vector_neg(executor, a, out)
        elif action == "sum":
            seen.append([hg.ops.reduce_sum(executor, a, out)])
        elif action == "fill":
            a.fill(number)
        elif action == "numpy":
            a.from_numpy(np.arange(SIZE) + number)
        elif action == "write" and i in held:
            held[i][j] = number
        elif action == "bytes":
            a.from_bytes(b.to_bytes())
        elif action == "copy":
            hg.ops.memcpy(executor, a, out)
        elif action == "copy_from":
            a.copy_from(b)
        elif action == "view":
            held[i] = a.to_numpy()
        elif action == "let go":
            held.pop(i, None)
        seen += [view.tolist() for view in held.values()]
    return seen + [np.frombuffer(b.to_bytes(), np.float32).tolist() for b in buffers]


def test_a_device_without_values_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hologram.sdk.executor.devices.resolve", lambda name: "null:0")
    with hg.Executor("opencl") as executor:
        a, b = executor.allocate(SIZE), executor.allocate(SIZE)
        counts("null:0")
        for _ in range(3):
            hg.ops.vector_add(executor, a, b, b)
        assert counts("null:0") == {"copies_in": 2, "launches": 3}
        with pytest.raises(DeviceError, match="computes nothing"):
            b.to_numpy()
