"""A program as a function of addresses, for a library that has its own memory on the device, such as PyTorch.

Arguments are read and results written where that library has put them; a call only adds work to one of its streams. Nothing is recorded of the call:
memory that the library takes and gives back in the order of its stream needs no more.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Sequence, Set
from typing import Any, NamedTuple

from hologram.backends.cuda.device import Block, Device, Queue
from hologram.backends.cuda.executable import CudaExecutable
from hologram.backends.cuda.interop import ALIGNMENT
from hologram.backends.device.memory import Memory
from hologram.backends.device.runtime import Work
from hologram.backends.device.steps import Call, Slots, Steps
from hologram.errors import DeviceError, OutOfMemory
from hologram.graph.execution_plan import concrete_shape
from hologram.ir.aval import aval

ARENA, WORKSPACE = 0, 1  # what a call needs on its way
_FLAG_BYTES = 2 * ALIGNMENT
_captured: set[Bound] = set()  # what other libraries' graphs may launch at any time: they do not tell when they are gone


class Taken(NamedTuple):
    """Memory of a graph that the other library captures, which lives as long as that graph does. Nothing else in the graph has it before nobody holds
    ``owner``."""

    address: int
    owner: object


class Bound:
    """``executable``, without symbols, on addresses. ``reclaim()`` has the other library give back memory that it keeps for reuse."""

    def __init__(self, executable: CudaExecutable, reclaim: Callable[[], None]) -> None:
        self.executable, self.device, self.runtime = executable, executable.device, executable.runtime
        block, computed, _, _ = executable.static
        self._block, self._reclaim = block, reclaim
        inputs = executable.execution_plan.inputs
        self._inputs = len(inputs)
        self._sizes = [aval(x.dtype, concrete_shape(x.shape, {})).nbytes for x in inputs] + [a.nbytes for a in computed]
        self._constants = executable.placed_constants
        for c in self._constants:
            c.wait()  # so that they are there in whichever stream a call is
        self._between = [(c.memory.handle, 0) for c in self._constants]
        self.queues: set[Queue] = set()  # in which calls have been put
        self._flags: list[Flag] = []

    @property
    def constants(self) -> list[int]:
        """The addresses of the constants on the device."""
        return [handle.address for handle, _ in self._between]

    def __call__(self, stream: int, addresses: Sequence[int]) -> None:
        """Puts a call in ``stream``, of the device: ``addresses`` are of all inputs and then of all computed results, C-contiguous. A result may lie
        where one of its ``donors`` lies. Copies stand for memory whose address kernels cannot take.

        Raises DeviceError where the driver fails, OutOfMemory where there is no memory for intermediates.
        """
        device = self.device
        if device.gone is not None:
            device.require()
        merged = 0
        for a in addresses:
            merged |= a
        with device.lock:
            queue = device.queue_of(stream)
            if queue not in self.queues:
                self._enter(queue)
            device.inside += 1
            try:
                if merged % ALIGNMENT:
                    self._through_copies(queue, addresses)
                else:
                    self._put(queue, addresses)
            except device.errors as e:
                raise device.failure(e) from None
            finally:
                device.inside -= 1

    def captured(self, stream: int, addresses: Sequence[int], take: Callable[[int], Taken]) -> None:
        """As a call, where ``stream`` is being captured by the other library: its graph will repeat the launches with these addresses. ``take``
        gives memory of that graph. Raises DeviceError for a program in which the host has a part."""
        block, device = self._block, self.device
        if not (block.whole and block.unattended):
            raise DeviceError(f"a stream of {device.name} is being captured, and the host has a part in this program")
        if any(a % ALIGNMENT for a in addresses):
            raise DeviceError(f"a stream of {device.name} is being captured, and an argument does not begin at a multiple of {ALIGNMENT} bytes")
        _captured.add(self)
        arena, workspace = (take(n) if n else None for n in (block.arena, block.workspace))  # both are held until the launches are in the graph
        slots = self._slots(addresses, Block(arena.address) if arena is not None else None)
        with device.lock:
            device.translated(lambda: self._one_by_one(device.queue_of(stream), slots, Block(workspace.address) if workspace is not None else None))

    def flag(self) -> Flag:
        """A new flag for the program, which it keeps."""
        self._flags.append(Flag(self.device, self.queues))
        return self._flags[-1]

    # --- a call --------------------------------------------------------------------------------------------------------

    def _enter(self, queue: Queue) -> None:
        """Constants are used in ``queue`` from now on."""
        for c in self._constants:
            c.memory.used(queue, None)
        self.queues.add(queue)

    def _put(self, queue: Queue, addresses: Sequence[int]) -> None:
        block, executable = self._block, self.executable
        arena = self._scratch(ARENA, block.arena, queue) if block.arena else None
        workspace = self._scratch(WORKSPACE, block.workspace, queue) if block.workspace else None
        slots = self._slots(addresses, arena.handle if arena is not None else None)
        with Work(self.runtime, queue) as work:
            executable.enqueue(block, Call(work, workspace.handle if workspace is not None else None, executable.enqueue), slots)
            if work.kept:
                self.runtime.submit(work)

    def _slots(self, addresses: Sequence[int], arena: Block | None) -> Slots:
        slots: list[tuple[Any, int]] = [(Block(a), 0) for a in addresses]
        slots[self._inputs : self._inputs] = self._between
        # where kernels read and write nothing in the arena, any place will do
        slots.append((arena, 0) if arena is not None or not slots else slots[0])
        return slots

    def _scratch(self, kind: int, nbytes: int, queue: Queue) -> Memory:
        """Shared with all work of the queue, where that cannot come in between."""
        pool, line = self.runtime.pool, self.executable.line

        def take() -> Memory:
            what = "workspaces" if kind else "intermediates"
            if self._block.whole and self.device.inside < 2:
                return pool.scratch(kind, nbytes, queue, lambda: f"{what} of {line}")
            return pool.take(nbytes, queue, lambda: f"{what} of {line}")

        try:
            return take()
        except OutOfMemory:
            self._reclaim()
            return take()

    def _through_copies(self, queue: Queue, addresses: Sequence[int]) -> None:
        """Arguments that begin anywhere, as rows of a matrix may, are copied first; results afterwards."""
        given = list(addresses)
        held: list[Memory] = []
        for i, (a, nbytes) in enumerate(zip(addresses, self._sizes, strict=True)):
            if a % ALIGNMENT:
                held.append(self.runtime.pool.take(nbytes, queue, lambda: f"a copy of an argument of {self.executable.line}"))
                given[i] = held[-1].handle.address
                if i < self._inputs:
                    queue.copy((held[-1].handle, 0), (Block(a), 0), nbytes)
        self._put(queue, given)
        for i in range(self._inputs, len(given)):
            if given[i] != addresses[i]:
                queue.copy((Block(addresses[i]), 0), (Block(given[i]), 0), self._sizes[i])

    def _one_by_one(self, queue: Queue, slots: Slots, workspace: Any) -> None:
        with Work(self.runtime, queue) as work:
            self._block.run(Call(work, workspace, _inline), slots)


def _inline(steps: Steps, call: Call, slots: Slots) -> None:
    steps.run(call, slots)


def copy(device: Device, stream: int, to: int, source: int, nbytes: int) -> None:
    """Copies within the device, after what is in the stream. Raises DeviceError where the driver fails."""
    device.guarded(lambda: device.queue_of(stream).copy((Block(to), 0), (Block(source), 0), nbytes))


class Flag:
    """Two bytes of the host's memory, at ``address`` and ``other``, that a program writes, and the host reads without waiting for it: page-locked, so
    that devices can. ``queues`` are those in which the program is put."""

    def __init__(self, device: Device, queues: Set[Queue]) -> None:
        self._device, self._queues, self.address = device, queues, 0
        self.address = self._device.guarded(lambda: self._device.cuda.allocate_host(_FLAG_BYTES))
        self.other = self.address + ALIGNMENT
        self._bytes = [ctypes.c_uint8.from_address(a) for a in (self.address, self.other)]
        self.clear()

    def is_set(self) -> bool:
        """Whether either byte is not 0."""
        return any(b.value for b in self._bytes)

    def clear(self) -> None:
        for b in self._bytes:
            b.value = 0

    def __del__(self) -> None:
        device = self._device
        if self.address and device.gone is None and not device.cuda.ended:
            with contextlib.suppress(*device.errors):  # of a device that is lost
                for queue in self._queues:  # in which the program may still be under way
                    queue.finish()
                device.cuda.free_host(self.address)
