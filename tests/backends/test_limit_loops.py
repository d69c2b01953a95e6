"""The loops that find the machine's limits do the work that they are said to do."""

from __future__ import annotations

import numpy as np
import pytest

from hologram.backends import limit_loops as limits
from hologram.backends.llvm.toolchain import target
from hologram.backends.native.pool import num_threads
from hologram.settings import override


@pytest.mark.parametrize("machine", ["", "x86-64"])
@pytest.mark.parametrize("loop", limits.LOOPS)
@pytest.mark.parametrize("nbytes", [4096, 1 << 20, (1 << 20) + 12_288])
def test_streams_go_through_the_working_set(monkeypatch: pytest.MonkeyPatch, nbytes: int, loop: str, machine: str) -> None:
    """Of each thread's part a copy moves the first half to the second; a read sums it up, vector by vector."""
    made: list[np.ndarray] = []
    allocate = limits._aligned
    monkeypatch.setattr(limits, "_aligned", lambda n: made.append(allocate(n)) or made[-1])
    if machine and target.host().architecture != "x86_64":
        pytest.skip("a level of x86-64")
    with override(target=machine):
        run, moved = limits.stream(loop, nbytes, moved=2 * nbytes)
        (memory,) = made
        parts = memory.reshape(num_threads(), -1).view(np.int32)
        parts[:] = np.arange(parts.size).reshape(parts.shape)
        before, lanes = parts.copy(), target.host().vector_bytes // 4
        run()
    assert moved % memory.nbytes == 0 and moved >= min(nbytes, memory.nbytes)
    first, second = np.split(before, 2, axis=1)
    if loop != "read":
        np.testing.assert_array_equal(parts, np.hstack([first, first]))
        return
    sums = moved // memory.nbytes * before.reshape(len(before), -1, lanes).sum(axis=1, dtype=np.int32)
    np.testing.assert_array_equal(parts[:, :lanes], sums)


def test_the_chains_do_what_they_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """All chains go to 2, the fixed point of x / 2 + 1; the sum of the accumulators is their number times that."""
    kept: list[np.ndarray] = []
    allocate = limits._aligned
    monkeypatch.setattr(limits, "_aligned", lambda n: kept.append(allocate(n)) or kept[-1])
    run, operations = limits.multiply_adds()
    run()
    host = target.host()
    pieces = kept[0].view(np.float32).reshape(-1, limits.LINE)
    lanes = host.vector_bytes // 4
    np.testing.assert_allclose(pieces[:, :lanes], 2.0 * limits._accumulators(host), rtol=1e-6)
    assert operations == 2 * len(pieces) * limits.STEPS * limits._accumulators(host) * lanes


@pytest.mark.parametrize("machine", ["", "x86-64", "x86-64-v3"])
def test_the_loops_are_made_for_other_machines(machine: str) -> None:
    """Vectors of 16 bytes and few registers, as well as those of the host."""
    if machine and target.host().architecture != "x86_64":
        pytest.skip("levels of x86-64")
    with override(target=machine):
        host = target.host()
        text = target.assembly(limits._ir(host), host)
        loop = text.partition("multiply_add:")[2]
        assert len([line for line in loop.splitlines() if "fmadd" in line or "mulps" in line or "fmla" in line]) == limits._accumulators(host)
