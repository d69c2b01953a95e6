"""Calls of a graph as one launch: what a call puts in its stream is captured once, and replayed with the addresses of each call.

The first call with given sizes runs as on any device. The second is recorded: its launches, whose places are slots of the call, are captured as
a CUDA graph, in which each kernel takes its arguments from its part of a table in device memory. From then on a call refreshes the table by one
asynchronous copy, if any address changed, and launches the graph. Calls with routines of the host, or with conditions that the host reads, all run
as the first.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from hologram.backends.common.driver import Place
from hologram.backends.common.executable import Executable
from hologram.backends.common.memory import Memory
from hologram.backends.common.steps import Block, Call
from hologram.backends.cuda.device import Queue, launch
from hologram.backends.cuda.library import choice
from hologram.backends.cuda.recording import WORKSPACE, Launched, NotRecordable, Recording, recorded
from hologram.errors import OutOfMemory

MOST_LAUNCHES = 4096  # of a captured call
MOST_REPLAYS = 128  # of an executable
TABLES = 32  # host copies of a table that may be on their way to the device, in two halves


class Replay:
    """A captured call of one stream: its table, the host's copies of it, memory that it takes on its way, and the graph."""

    def __init__(self, queue: Queue, recording: Recording) -> None:
        launches = recording.launches
        self.queue, self.cuda = queue, queue.device.cuda
        self.host = self.graph = 0
        self.memories = [self._memory(n) for n in recording.memories]
        self.own = [m.handle.address for m in self.memories]
        self.kernels = [x.kernel for x in launches]  # their modules stay loaded
        slots, offsets, starts = _table(launches)
        self.slots, self.offsets = np.array(slots, np.intp), np.array(offsets, np.int64)
        self.nbytes = self.offsets.nbytes
        self._halves: list[Any] = [None, None]  # events after which a half is free
        self._turn = TABLES - 1
        self.table = self._memory(self.nbytes)
        self.address = self.table.handle.address
        with self.cuda.on(queue.device.number):
            self.host = self.cuda.allocate_host(max(8, self.nbytes * TABLES))
            self.graph = self._captured(launches, starts)
        self._last: list[int] = []

    def _memory(self, nbytes: int) -> Memory:
        return self.queue.device.runtime.pool.take(nbytes, self.queue, lambda: "memory of a captured call")

    def _captured(self, launches: Sequence[Launched], starts: Sequence[int]) -> int:
        stream = self.cuda.new_stream()  # the default stream cannot be captured
        self.cuda.begin_capture(stream)
        try:
            for x, start in zip(launches, starts, strict=True):
                arguments = [self.address + 8 * start] + [0] * (len(x.places) + len(x.integers) + x.workspace)
                launch(self.cuda, x.kernel, x.groups, x.items, arguments, stream)
        finally:
            graph = self.cuda.end_capture(stream)
            self.cuda.destroy_stream(stream)
        return graph

    def run(self, addresses: list[int], workspace: int) -> None:
        """``addresses`` of the slots: inputs, constants, results, arena; and of the workspace."""
        addresses += self.own
        addresses += workspace, 0
        with self.cuda.on(self.queue.device.number):
            if addresses != self._last:
                self._refresh(np.array(addresses, np.int64)[self.slots] + self.offsets)
                self._last = addresses
            self.cuda.launch_graph(self.graph, self.queue.stream)

    def _refresh(self, values: np.ndarray) -> None:
        """Brings the table to the device, from a copy that is not under way any more."""
        turn = self._turn = (self._turn + 1) % TABLES
        half, place = divmod(turn, TABLES // 2)
        if place == 0:
            self._halves[1 - half] = self.queue.record()
            if self._halves[half] is not None:
                self._halves[half].wait()
        source = self.host + turn * self.nbytes
        self.cuda.write_host(source, values)
        self.cuda.copy(self.address, source, self.nbytes, self.queue.stream)

    def __del__(self) -> None:
        with contextlib.suppress(*self.cuda.errors):  # of a device that is lost
            self.queue.finish()
            if self.graph:
                self.cuda.destroy_graph(self.graph)
            if self.host:
                self.cuda.free_host(self.host)


def _table(launches: Sequence[Launched]) -> tuple[list[int], list[int], list[int]]:
    """The slot and the offset of every argument of the launches, and where each launch's begin. Integers are offsets from the slot of 0."""
    slots: list[int] = []
    offsets: list[int] = []
    starts: list[int] = []
    for x in launches:
        starts.append(len(slots))
        for slot, offset in x.places:
            slots.append(slot)
            offsets.append(offset)
        for n in x.integers:
            slots.append(-1)
            offsets.append(n)
        if x.workspace:
            slots.append(WORKSPACE)
            offsets.append(0)
    return slots, offsets, starts


class _Calls:
    """The calls of a block in a queue: the first is run, the second captured, if it can be."""

    def __init__(self, block: Block) -> None:
        self.block, self.count = block, 0
        self.replay: Replay | None = None

    def enqueue(self, queue: Queue, call: Call, slots: Sequence[Place]) -> None:
        self.count += 1
        if self.count == 2:
            self.replay = _captured(self.block, queue, len(slots))
        if self.replay is None:
            return self.block.run(call, slots)
        workspace = call.workspace.address if call.workspace is not None else 0
        self.replay.run([handle.address + offset for handle, offset in slots], workspace)
        queue.device.count(launches=1)


def _captured(block: Block, queue: Queue, slots: int) -> Replay | None:
    """None where launching the kernels one by one is better, or all that there is memory for."""
    try:
        recording = recorded(block, slots, queue.device.copy_kernel)
        return Replay(queue, recording) if 1 < len(recording.launches) <= MOST_LAUNCHES else None
    except (NotRecordable, OutOfMemory):
        return None


class CudaExecutable(Executable):
    """As the executable of every device, with calls that are one launch. ``library``: the kernels in whose place cuBLAS is called, by name."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        chosen = {self.program.names[k.kernel]: choice(k.kernel, self.precision) for k in self._kernels}
        self.library = {name: gemm for name, gemm in chosen.items() if gemm is not None}
        self._maker.kernels = {**self._maker.kernels, **self.library}
        self._calls: dict[tuple[int, Queue], _Calls] = {}

    @property
    def captured(self) -> int:
        """How many calls, of different sizes or streams, are one launch."""
        return sum(c.replay is not None for c in self._calls.values())

    def as_text(self, stage: str = "kernels") -> str:
        text = super().as_text(stage)
        if stage != self.program.dialect.name:
            return text
        return "".join(f"// {name} is not launched, but {gemm}\n" for name, gemm in self.library.items()) + text

    def enqueue(self, block: Block, call: Call, slots: Sequence[Place]) -> None:
        queue = call.work.queue
        assert isinstance(queue, Queue)
        key = id(block), queue  # the entry keeps the block, so no other has its id
        calls = self._calls.get(key)
        if calls is None:
            self._calls = {k: c for k, c in self._calls.items() if not k[1].retired}
            if len(self._calls) >= MOST_REPLAYS:
                del self._calls[next(iter(self._calls))]
            calls = self._calls[key] = _Calls(block)
        calls.enqueue(queue, call, slots)
