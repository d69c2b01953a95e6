"""Calls of a graph as one launch: what a call puts in its stream is captured once, and replayed with the addresses of each call.

The first call with given sizes runs as on any device. The second is recorded: its launches, whose operands are slots of the call, are captured as
a CUDA graph, in which kernels find the addresses of slots in a table in device memory. From then on a call refreshes the table by one asynchronous
copy, if any address changed, and launches the graph. Of calls with routines of the host, or with conditions that the host reads, the steps of loops
between two of these are captured; the rest runs as the first.
"""

from __future__ import annotations

import contextlib
import ctypes
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from hologram.backends import timing
from hologram.backends.cuda.device import Arguments, Device, Queue
from hologram.backends.cuda.library import choice
from hologram.backends.cuda.recording import NotRecordable, Recording, recorded
from hologram.backends.cuda.replays import Natively, can_be_replayed, record
from hologram.backends.device.driver import Place
from hologram.backends.device.executable import MAX_SIZES, Executable, Sized
from hologram.backends.device.memory import Memory
from hologram.backends.device.runtime import Runtime
from hologram.backends.device.steps import Call, Steps
from hologram.backends.device.storage import DeviceStorage
from hologram.backends.native.replays import Replays
from hologram.errors import DeviceError, OutOfMemory
from hologram.settings import settings

MAX_REPLAYS = 128  # of an executable
ONCE, BY_KERNEL = "called once", "launched kernel by kernel"  # what is not captured yet, or cannot be
TABLES = 32  # host copies of a table that may be on their way to the device, in two halves


class Replay:
    """A captured call of one stream: memory that it takes on its way, its table, and the graph."""

    def __init__(self, queue: Queue, recording: Recording, slots: int) -> None:
        self.queue, self.cuda = queue, queue.device.cuda
        self.graph = 0
        self.memories = [_memory(queue, n) for n in recording.memories]
        self.own = [m.handle.address for m in self.memories]
        self.kernels = [x.kernel for x in recording.launches]  # their modules stay loaded
        with self.cuda.on(queue.device.number):
            self.table = Table(queue, slots + 1 + len(self.own))
            self.graph = self._captured(recording)
            self.context = self.cuda.current_context()

    def _captured(self, recording: Recording) -> int:
        stream = self.cuda.new_stream()  # the default stream cannot be captured
        try:
            self.cuda.begin_capture(stream)
            try:
                for x in recording.launches:
                    arguments = Arguments([self.table.address, *x.arguments])
                    self.cuda.launch(x.kernel.function, x.groups, x.items, arguments.address, stream, x.kernel.shared)
            except self.cuda.errors:
                with contextlib.suppress(*self.cuda.errors):
                    self.cuda.destroy_graph(self.cuda.end_capture(stream))
                raise
            return self.cuda.end_capture(stream)
        finally:
            self.cuda.destroy_stream(stream)

    def run(self, slots: Sequence[Place], workspace: Any) -> None:
        """``slots`` are inputs, constants, results, arena; ``workspace`` a handle, or None."""
        addresses = [handle.address + offset for handle, offset in slots]
        addresses.append(0 if workspace is None else workspace.address)
        addresses += self.own
        with self.cuda.on(self.queue.device.number):
            self.table.refresh(addresses)
            self.cuda.launch_graph(self.graph, self.queue.stream)

    def __del__(self) -> None:
        if self.graph and not self.cuda.ended:
            with contextlib.suppress(*self.cuda.errors):  # of a device that is lost
                self.queue.finish()
                self.cuda.destroy_graph(self.graph)


class Table:
    """Addresses in device memory, and copies of them on the host, from which they go there while the caller goes on. ``state``: which copy is the
    latest, and whether the device has it. Native code does the same as :meth:`refresh`."""

    def __init__(self, queue: Queue, count: int) -> None:
        self.queue, self.cuda, self.count = queue, queue.device.cuda, count
        self.host = 0
        self._pack = struct.Struct(f"{count}q")
        self.nbytes = self._pack.size
        self._memory = _memory(queue, self.nbytes)
        self.address = self._memory.handle.address
        self.host = self.cuda.allocate_host(self.nbytes * TABLES)
        self._copies = (ctypes.c_char * (self.nbytes * TABLES)).from_address(self.host)
        self._halves: list[Any] = [None, None]  # events after which a half is free
        self.copies = TABLES
        self.state = (ctypes.c_int64 * 2)(TABLES - 1, 0)
        self.state_address = ctypes.addressof(self.state)

    def refresh(self, addresses: list[int]) -> None:
        """Brings ``addresses`` to the device, if they are not there, from a copy that is not under way any more."""
        latest, is_there = self.state
        if is_there and self._pack.unpack_from(self._copies, latest * self.nbytes) == tuple(addresses):
            return
        turn = (latest + 1) % TABLES
        if turn % (TABLES // 2) == 0:
            self.turn_over()
        at = turn * self.nbytes
        self._pack.pack_into(self._copies, at, *addresses)
        self.state[:] = [turn, 0]
        self.cuda.copy(self.address, self.host + at, self.nbytes, self.queue.stream)
        self.state[1] = 1

    def turn_over(self) -> None:
        """Before the first copy of a half is written to: waits until none of the half is under way."""
        half = (self.state[0] + 1) % TABLES // (TABLES // 2)
        self._halves[1 - half] = self.queue.record()
        if self._halves[half] is not None:
            self._halves[half].wait()

    def turned_over(self) -> bool:
        """As :meth:`turn_over`, for native code: False where the device fails, of which the same call by Python tells."""
        try:
            self.turn_over()
        except self.cuda.errors:
            return False
        return True

    def __del__(self) -> None:
        if self.host and not self.cuda.ended:
            with contextlib.suppress(*self.cuda.errors):
                self.queue.finish()
                self.cuda.free_host(self.host)


def _memory(queue: Queue, nbytes: int) -> Memory:
    return queue.device.runtime.pool.take(nbytes, queue, lambda: "memory of a captured call")


def _captured(steps: Steps, queue: Queue, slots: int) -> Replay | None:
    """None where launching the kernels one by one is better, or all that there is memory for."""
    try:
        recording = recorded(steps, slots, lambda: queue.device.copy_kernel)
        return Replay(queue, recording, slots) if len(recording.launches) >= _least_launches(queue) else None
    except (NotRecordable, OutOfMemory):
        return None
    except queue.device.errors as e:
        if not queue.device.is_out_of_memory(e):
            raise
        return None


def _with_record(replay: Replay, sized: Sized, constants: list[Any]) -> tuple[Any, Any]:
    """What native code reads of a captured call, and what that keeps alive."""
    table, keep = record(replay, sized, constants)
    return table, (replay, keep)


def _current_queue(runtime: Runtime) -> Any:
    """Where a call goes; None where it is one inside of another, and where nothing can be put, of which the call by Python tells."""
    try:
        return runtime.current_queue() if runtime.device.inside == 0 else None
    except DeviceError:
        return None
    except runtime.device.errors:
        return None


def _least_launches(queue: Queue) -> int:
    """Of a call that is captured: one kernel is launched as fast by itself, but only a captured call can be replayed by native code."""
    return 1 if can_be_replayed(queue.device) else 2


class CudaExecutable(Executable):
    """As the executable of every device, with calls that are one launch. ``library``: the kernels in whose place cuBLAS is called, by name."""

    device: Device

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        for k in self._kernels:
            if nbytes := self.program.mappings[k.kernel].dynamic:
                self.device.translated(partial(self._maker.kernels[self.program.names[k.kernel]].supply, nbytes))
        chosen = {self.program.names[k.kernel]: choice(k.kernel, self.precision) for k in self._kernels}
        wanted = {name: gemm for name, gemm in chosen.items() if gemm is not None}
        self.library = wanted if wanted and self.device.cuda.multiplies else {}
        self._maker.kernels = {**self._maker.kernels, **self.library}
        self._calls: dict[tuple[Steps, Queue], Replay | str] = {}
        self._native: dict[Steps, Natively] = {}

    @property
    def captured(self) -> int:
        """How many calls, of different sizes or streams, are one launch."""
        return sum(type(c) is Replay for c in self._calls.values())

    @property
    def _texts(self) -> Mapping[str, Callable[[], str]]:
        notes = "".join(f"// {name} is not launched, but {gemm}\n" for name, gemm in self.library.items())
        return {self.program.dialect.name: lambda: notes + self.program.text}

    def enqueue(self, steps: Steps, call: Call, slots: Sequence[Place]) -> None:
        if timing.logs:  # each launch is to have its time
            return steps.run(call, slots)
        if self.device.inside > 1:  # the table and the captured call may be in the hands of the call around
            return steps.run(call, slots)
        queue: Any = call.work.queue
        key = steps, queue
        found = self._calls.get(key)
        if found is None:
            found = self._first(key)
        elif found is ONCE:
            found = self._calls[key] = _captured(steps, queue, len(slots)) or BY_KERNEL
            self._tell_native(steps)
        if type(found) is not Replay:
            return steps.run(call, slots)
        found.run(slots, call.workspace)
        self.device.counts["launches"] += 1

    def _first(self, key: tuple[Steps, Queue]) -> str:
        """Notes a first call. What was captured for queues that are gone is let go."""
        gone = [k for k in self._calls if k[1].retired]
        if len(self._calls) - len(gone) >= MAX_REPLAYS:
            gone.append(next(k for k in self._calls if k not in gone))  # the oldest
        for k in gone:
            del self._calls[k]
            self._tell_native(k[0])
        self._calls[key] = ONCE
        return ONCE

    # --- calls without Python ------------------------------------------------------------------------------------------

    def replays(self, inputs: Sequence[Any]) -> Replays | None:
        """For inputs that are all on this device, and results that are all computed."""
        if settings.profile or not self._only_computed or not can_be_replayed(self.device) or not all(self._is_here(x) for x in inputs):
            return None
        sized = self.static if self.execution_plan.static else self._at_sizes([x.aval.shape for x in inputs])
        with self.device.lock:
            found = self._native.get(sized.block)
            if found is None:
                if len(self._native) >= MAX_SIZES:
                    self._native.pop(next(iter(self._native))).replays.known = ()
                found = self._native[sized.block] = Natively(sized, Replays(partial(_current_queue, self.runtime)))
                self._tell_native(sized.block)
        return found.replays

    def _is_here(self, x: Any) -> bool:
        return type(x) is DeviceStorage and x.runtime is self.runtime

    def _tell_native(self, steps: Steps) -> None:
        """Native code learns which calls of a block are captured, and which are no longer."""
        known = self._native.get(steps)
        if known is not None:
            replays = [c for (s, _), c in self._calls.items() if s is steps and type(c) is Replay]
            known.replays.known = tuple(x for r in replays for x in _with_record(r, known.sized, self.placed_constants))


Device.executable = CudaExecutable
