"""The 96-class pool against a model, and memory that stays flat over many allocations."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hologram as hg
from hologram.errors import OutOfMemory
from hologram.sdk.pool import CLASSES, PAGE_BYTES

ACTIONS = st.lists(st.tuples(st.sampled_from(["allocate", "view", "write", "free", "drop"]), st.integers(0, 5)), max_size=60)


class Model:
    """Buffers and views by class, and the number that every element of a page holds."""

    def __init__(self) -> None:
        self.executor = hg.Executor("cpu")
        self.buffers: dict[int, hg.Buffer] = {}
        self.views: dict[int, list[np.ndarray]] = {}
        self.marks: dict[int, int] = {}

    def held(self) -> set[int]:
        return set(self.buffers) | {index for index, found in self.views.items() if found}

    def allocate(self, index: int, step: int) -> None:
        if index in self.held():
            with pytest.raises(OutOfMemory, match=f"the page of class {index} is in use"):
                self.executor.allocate_boundary(index, 48, 256)
        else:
            self.buffers[index] = self.executor.allocate_boundary(index, 48, 256)
            self.marks[index] = 0

    def view(self, index: int, step: int) -> None:
        if index in self.buffers:
            made = self.buffers[index]
            self.views.setdefault(index, []).append(made.to_numpy() if step % 2 else np.from_dlpack(made))

    def write(self, index: int, step: int) -> None:
        if index in self.buffers:
            self.buffers[index].fill(step)
            self.marks[index] = step

    def free(self, index: int, step: int) -> None:
        if index in self.buffers:
            self.buffers.pop(index).free() if step % 2 else self.buffers.pop(index)  # a buffer that dies is freed, too

    def drop(self, index: int, step: int) -> None:
        if self.views.get(index):
            self.views[index].pop()

    def check(self) -> None:
        held = self.held()
        assert self.executor._pool.free_classes() == sorted(set(range(CLASSES)) - held)
        for index in held:
            views = [*self.views.get(index, []), *([self.buffers[index].to_numpy()] if index in self.buffers else [])]
            assert all((v == self.marks[index]).all() for v in views)
            assert len({v.__array_interface__["data"][0] for v in views}) == 1
            assert views[0].__array_interface__["data"][0] % 64 == 0


@given(actions=ACTIONS)
def test_pages_have_one_owner_until_the_last_view_dies(actions: list[tuple[str, int]]) -> None:
    model = Model()
    for step, (action, index) in enumerate(actions, 1):
        getattr(model, action)(index, step)
        model.check()
    model.executor.cleanup()
    model.buffers.clear()
    model.check()
    model.views.clear()
    assert model.executor._pool.free_classes() == list(range(CLASSES))


def test_pages_of_different_classes_do_not_overlap() -> None:
    with hg.Executor("cpu") as executor:
        made = [executor.allocate_boundary(i, 48, 256) for i in range(CLASSES)]
        for i, b in enumerate(made):
            b.fill(i)
        assert [b.class_index for b in made] == list(range(CLASSES))
        assert all((b.to_numpy() == i).all() for i, b in enumerate(made))
        assert {b.ptr - made[0].ptr for b in made} == {i * PAGE_BYTES for i in range(CLASSES)}


def test_executors_have_pages_of_their_own() -> None:
    with hg.Executor("cpu") as one, hg.Executor("cpu") as other:
        a, b = one.allocate_boundary(0, 48, 256), other.allocate_boundary(0, 48, 256)
        a.fill(1)
        assert not b.to_numpy().any()


def _resident() -> int:
    """Bytes of memory that the process has in use."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the system does not tell how much memory is resident")
def test_memory_stays_flat(everything: bool) -> None:
    cycles = 1_000_000 if everything else 40_000
    with hg.Executor("cpu") as executor:

        def cycle(count: int) -> None:
            for i in range(count):
                executor.allocate_boundary(i % CLASSES, 48, 256).free()
                executor.allocate(3000 + i % 7)
                held = executor.allocate(10)
                hg.ops.vector_neg(executor, held, held)

        cycle(2000)
        before = _resident()
        cycle(cycles)
        assert _resident() - before < 4 << 20
        assert len(executor._buffers) <= 1
        assert executor._pool.free_classes() == list(range(CLASSES))
