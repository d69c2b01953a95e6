"""Metal devices. PyObjC's module ``Metal`` is imported when the first is asked for.

Buffers are in memory that the host and the GPU share. Work is encoded into one command buffer until an event is recorded or a value is read; what the
host writes goes by way of a buffer of its own, so that it comes after the work before it.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from hologram.backends.c.dialects import METAL
from hologram.backends.device import driver, runtime
from hologram.backends.device.driver import Launch, Place
from hologram.backends.device.listing import numbered
from hologram.errors import CompileError
from hologram.support.cached_property import cached_property
from hologram.support.once import once

INSTALL = 'pip install "hologram-compute[metal]"'
COMPLETED, FAILED = 4, 5  # of MTLCommandBufferStatus
WORD = 4  # bytes: what encoders of copies ask of places and sizes, on a Mac
COPY, COPY_ITEMS, COPY_GROUPS = "hg_copy", 256, 1024
_COPY_PARAMS = ("device u8 *to", "device const u8 *from", "constant i64 &to_at", "constant i64 &from_at", "constant i64 &nbytes")
COPY_TEXT = f"""\
{METAL.prelude}
{METAL.kernel.format(name=COPY, items=COPY_ITEMS, params=", ".join([*(f"{p} [[buffer({i})]]" for i, p in enumerate(_COPY_PARAMS)), *METAL.extra]))} {{
  const i64 step = (i64)hg_group_count * {COPY_ITEMS};
  for (i64 i = (i64)hg_group_id * {COPY_ITEMS} + hg_item_id; i < nbytes; i += step) to[to_at + i] = from[from_at + i];
}}
"""  # for copies that are not of whole words
UNITS = 32  # what there is no way to ask for: so many groups with a workspace each, at most, keep a GPU of Apple's busy


class MetalError(Exception):
    """What a command buffer, a compiler or an allocator says."""


class NoMemory(MetalError):
    """There is none for a buffer by way of which the host writes."""


class Event(driver.Event):
    """The end of a command buffer, which sets the queue's signal to ``value``. None for the beginning of a queue."""

    def __init__(self, buffer: Any, signal: Any, value: int) -> None:
        self.buffer, self.signal, self.value = buffer, signal, value

    def is_done(self) -> bool:
        if self.buffer is None:
            return True
        status = self.buffer.status()
        if status == FAILED:
            raise MetalError(str(self.buffer.error()))
        return bool(status == COMPLETED)

    def wait(self) -> None:
        if self.buffer is not None:
            self.buffer.waitUntilCompleted()
            self.is_done()


class Queue(driver.Queue):
    """A command queue, the command buffer that is being filled, and its encoder."""

    device: Device

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self.metal = device.metal
        self.queue = device.device.newCommandQueue()
        self.signal, self.value = device.device.newEvent(), 0
        self._buffer: Any = None
        self._encoder: Any = None
        self._encodes = ""  # what the encoder is for
        self._last = Event(None, self.signal, 0)

    def _filling(self) -> Any:
        if self._buffer is None:
            self._buffer = self.queue.commandBuffer()
        return self._buffer

    def _encoding(self, what: str) -> Any:
        """An encoder for ``compute`` or ``blit``."""
        if self._encodes != what:
            self._end_encoding()
            buffer = self._filling()
            self._encoder = buffer.computeCommandEncoder() if what == "compute" else buffer.blitCommandEncoder()
            self._encodes = what
        return self._encoder

    def _end_encoding(self) -> None:
        if self._encoder is not None:
            self._encoder.endEncoding()
        self._encoder, self._encodes = None, ""

    def _write(self, to: Place, array: np.ndarray) -> None:
        source = self.device.device.newBufferWithBytes_length_options_(array.data, array.nbytes, self.metal.MTLResourceStorageModeShared)
        if source is None:
            raise NoMemory(f"{array.nbytes:,} bytes to be copied find no room")
        self._copy(to, (source, 0), array.nbytes)

    def _read(self, array: np.ndarray, source: Place) -> None:
        buffer, offset = source
        self.finish()
        array[:] = np.frombuffer(buffer.contents().as_buffer(offset + array.nbytes), np.uint8)[offset:].view(array.dtype).reshape(array.shape)

    def _copy(self, to: Place, source: Place, nbytes: int) -> None:
        (target, to_at), (origin, from_at) = to, source
        if to_at % WORD == from_at % WORD == nbytes % WORD == 0:
            return self._encoding("blit").copyFromBuffer_sourceOffset_toBuffer_destinationOffset_size_(*source, *to, nbytes)
        groups = min(COPY_GROUPS, -(-nbytes // COPY_ITEMS))
        launch = Launch(self.device.copy_kernel, groups, COPY_ITEMS, [(0, 0, 1), (1, 0, 1)], [to_at, from_at, nbytes], 0)
        self._launch(launch, [(target, 0), (origin, 0)], None)

    def _launch(self, launch: Launch, slots: Sequence[Place], workspace: Any) -> None:
        encoder = self._encoding("compute")
        encoder.setComputePipelineState_(launch.kernel)
        for i, (buffer, offset) in enumerate(launch.at(slots)):
            encoder.setBuffer_offset_atIndex_(buffer, offset, i)
        for i, n in enumerate(launch.integers, len(launch.operands)):
            encoder.setBytes_length_atIndex_(struct.pack("q", n), 8, i)
        if launch.workspace:
            encoder.setBuffer_offset_atIndex_(workspace, 0, len(launch.operands) + len(launch.integers))
        groups, items = (self.metal.MTLSizeMake(n, 1, 1) for n in (launch.groups, launch.items))
        encoder.dispatchThreadgroups_threadsPerThreadgroup_(groups, items)

    def record(self) -> Event:
        if self._buffer is not None:
            self._end_encoding()
            self.value += 1
            self._buffer.encodeSignalEvent_value_(self.signal, self.value)
            self._buffer.commit()
            self._last = Event(self._buffer, self.signal, self.value)
            self._buffer = None
        return self._last

    def wait_for(self, event: driver.Event) -> None:
        assert isinstance(event, Event)
        if event.buffer is not None:
            self._end_encoding()
            self._filling().encodeWaitForEvent_value_(event.signal, event.value)

    def finish(self) -> None:
        self.record().wait()


class Device(runtime.Device):
    """One GPU."""

    dialect = METAL
    kind = "gpu"
    units = UNITS
    errors = (MetalError,)

    def __init__(self, metal: Any, number: int, device: Any) -> None:
        super().__init__()
        self.metal, self.device = metal, device
        self.name = f"metal:{number}"
        self.largest_buffer = int(device.maxBufferLength())
        self.memory_bytes = int(device.recommendedMaxWorkingSetSize())

    def describe(self) -> str:
        return f"{self.device.name()} (Metal)"

    def why_not(self, precision: str, double: bool) -> str | None:
        return "Metal may flush subnormals, and precision='exact' keeps them" if precision == "exact" else None

    def build(self, source: str, names: Sequence[str]) -> dict[str, Any]:
        if not names:
            return {}
        options = self.metal.MTLCompileOptions.alloc().init()
        options.setFastMathEnabled_(False)
        library, error = self.device.newLibraryWithSource_options_error_(source, options, None)
        if library is None:
            log = str(error)
            raise CompileError(f"{self.name} does not compile a program:\n{log.strip()}\n\n{numbered(source, log)}")
        return {name: self._pipeline(library, name) for name in names}

    def _pipeline(self, library: Any, name: str) -> Any:
        state, error = self.device.newComputePipelineStateWithFunction_error_(library.newFunctionWithName_(name), None)
        if state is None:
            raise CompileError(f"{self.name} does not make a pipeline of {name}: {error}")
        return state

    @cached_property
    def copy_kernel(self) -> Any:
        return self.build(COPY_TEXT, [COPY])[COPY]

    def allocate(self, nbytes: int) -> Any:
        buffer = self.device.newBufferWithLength_options_(nbytes, self.metal.MTLResourceStorageModeShared)
        if buffer is None:
            raise MemoryError(f"of {self.memory_bytes:,} bytes {self.device.currentAllocatedSize():,} are taken")
        return buffer

    def is_out_of_memory(self, e: BaseException) -> bool:
        return super().is_out_of_memory(e) or isinstance(e, NoMemory)

    def release(self, handle: Any) -> None:
        """A buffer goes when nothing refers to it, command buffers included."""

    def new_queue(self) -> Queue:
        return Queue(self)


@once
def found() -> tuple[list[Device], str | None]:
    """The devices, and why there are none."""
    try:
        import Metal
    except ImportError as e:
        return [], f"PyObjC's bindings of Metal cannot be imported ({e}): on a Mac, {INSTALL}"
    there = list(Metal.MTLCopyAllDevices())
    return [Device(Metal, i, d) for i, d in enumerate(there)], None if there else "Metal has no device"
