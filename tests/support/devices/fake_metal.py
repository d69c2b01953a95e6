"""PyObjC's module ``Metal`` without a Mac: kernels are compiled by the host's compiler beside the header ``emulation/metal_stdlib``.

Commands run when their buffer is waited for, so what is encoded and never committed is never done. What PyObjC does not convert, and what Metal's
validation refuses, fails here: numbers that are not Python's own, too short bytes, encoders open at the wrong time, copies of parts of words.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.support.devices.c_harness import compile_kernels, new_folder

_HEAD = re.compile(r"^\[\[max_total_threads_per_threadgroup\((\d+)\)\]\] kernel void (\w+)\((.*)\) {$", re.MULTILINE)
MAX_BYTES = 4096  # of setBytes
MTLResourceStorageModeShared = 0


def _whole(*numbers: int) -> None:
    """What Objective-C has as NSUInteger."""
    assert all(type(n) is int and 0 <= n < 2**64 for n in numbers), numbers


def MTLSizeMake(x: int, y: int, z: int) -> tuple[int, int, int]:
    _whole(x, y, z)
    assert min(x, y, z) > 0
    return x, y, z


class Buffer:
    def __init__(self, nbytes: int) -> None:
        self.memory = np.full(nbytes, 0xDD, np.uint8)

    def contents(self) -> Buffer:
        return self

    def as_buffer(self, nbytes: int) -> memoryview:
        assert nbytes <= self.memory.nbytes
        return memoryview(self.memory)[:nbytes]


class CommandBuffer:
    """``running``: those that were committed, in order, whatever their queue."""

    def __init__(self, device: Device) -> None:
        self.device, self.actions, self._status, self._error = device, [], 0, None
        self.encoder: Encoder | None = None

    actions: list[Callable[[], None]]

    def _settled(self) -> None:
        """Nothing is encoded at the moment, and more may be."""
        assert self._status == 0 and (self.encoder is None or not self.encoder.open)

    def _encode(self, kind: type[Encoder]) -> Encoder:
        self._settled()
        self.encoder = kind(self)
        return self.encoder

    def computeCommandEncoder(self) -> Encoder:
        return self._encode(ComputeEncoder)

    def blitCommandEncoder(self) -> Encoder:
        return self._encode(BlitEncoder)

    def encodeSignalEvent_value_(self, event: dict[str, int], value: int) -> None:
        self._settled()
        _whole(value)
        self.actions.append(lambda: event.update(value=value))

    def encodeWaitForEvent_value_(self, event: dict[str, int], value: int) -> None:
        self._settled()
        _whole(value)

        def check() -> None:
            assert event.get("value", 0) >= value, "work does not wait for what comes before it"

        self.actions.append(check)

    def commit(self) -> None:
        self._settled()
        self._status = 2
        self.device.running.append(self)

    def waitUntilCompleted(self) -> None:
        while self._status < 4:
            first = self.device.running.pop(0)
            for action in first.actions:
                action()
            first._status, first._error = (5, self.device.broken) if self.device.broken else (4, None)

    def status(self) -> int:
        return self._status

    def error(self) -> Any:
        return self._error


class Encoder:
    def __init__(self, buffer: CommandBuffer) -> None:
        self.buffer, self.open = buffer, True

    def endEncoding(self) -> None:
        assert self.open
        self.open = False


class BlitEncoder(Encoder):
    def copyFromBuffer_sourceOffset_toBuffer_destinationOffset_size_(self, source: Buffer, start: int, to: Buffer, at: int, nbytes: int) -> None:
        _whole(start, at, nbytes)
        assert self.open and start % 4 == at % 4 == nbytes % 4 == 0 < nbytes
        assert start + nbytes <= source.memory.nbytes and at + nbytes <= to.memory.nbytes

        def copy() -> None:
            to.memory[at : at + nbytes] = source.memory[start : start + nbytes]

        self.buffer.actions.append(copy)


class ComputeEncoder(Encoder):
    def __init__(self, buffer: CommandBuffer) -> None:
        super().__init__(buffer)
        self.bound: dict[int, tuple[Any, int]] = {}
        self.state: Any = None

    def setComputePipelineState_(self, state: Any) -> None:
        assert self.open
        self.state = state

    def setBuffer_offset_atIndex_(self, buffer: Buffer, offset: int, index: int) -> None:
        _whole(offset, index)
        assert self.open and type(buffer) is Buffer and offset <= buffer.memory.nbytes
        self.bound[index] = buffer.memory, offset

    def setBytes_length_atIndex_(self, data: bytes, nbytes: int, index: int) -> None:
        _whole(nbytes, index)
        assert self.open and 0 < nbytes <= min(MAX_BYTES, memoryview(data).nbytes)
        self.bound[index] = np.frombuffer(data[:nbytes], np.uint8).copy(), 0

    def dispatchThreadgroups_threadsPerThreadgroup_(self, groups: tuple[int, int, int], items: tuple[int, int, int]) -> None:
        assert self.open
        library, name, count, most = self.state
        assert items[0] <= most
        held = [self.bound[i] for i in range(count)]
        self.buffer.device.launches += 1

        def run() -> None:
            args = (ctypes.c_void_p * count)(*(memory.ctypes.data + offset for memory, offset in held))
            library.hg_run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64]
            call = ctypes.cast(getattr(library, f"call_{name}"), ctypes.c_void_p)
            assert not library.hg_run(call, args, groups[0], items[0]), f"items of {name} wait at different barriers"

        self.buffer.actions.append(run)


class Library:
    def __init__(self, source: str) -> None:
        calls = []
        self.counts: dict[str, tuple[int, int]] = {}  # of parameters, and the most items of a group
        for items, name, parameters in _HEAD.findall(source):
            bound = [p for p in parameters.split(", ") if "[[buffer(" in p]
            self.counts[name] = len(bound), int(items)
            values = []
            for i, p in enumerate(bound):
                assert f"[[buffer({i})]]" in p
                kind = p.rpartition("&")[0] or p.rpartition("*")[0]
                values.append(f"*({kind} *)args[{i}]" if "&" in p else f"({kind} *)args[{i}]")
            grid = "(uint)group, (uint)groups, (uint)item"
            calls.append(
                f"EXPORT void call_{name}(void **args, int64_t group, int64_t groups, int64_t item) {{ {name}({', '.join([*values, grid])}); }}\n"
            )
        self.library = ctypes.CDLL(str(compile_kernels(source, "".join(calls), "metal", new_folder())))

    def newFunctionWithName_(self, name: str) -> tuple[Any, str, int, int]:
        return self.library, name, *self.counts[name]


class MTLCompileOptions:
    fast = True

    @classmethod
    def alloc(cls) -> MTLCompileOptions:
        return cls()

    def init(self) -> MTLCompileOptions:
        return self

    def setFastMathEnabled_(self, on: bool) -> None:
        self.fast = on


class Device:
    """``broken``: what the next command buffers fail with."""

    def __init__(self) -> None:
        self.running: list[CommandBuffer] = []
        self.broken: str | None = None
        self.launches = 0
        self.memory_bytes = 2**26
        self.taken = 0

    def name(self) -> str:
        return "Fake"

    def maxBufferLength(self) -> int:
        return self.memory_bytes

    recommendedMaxWorkingSetSize = maxBufferLength

    def currentAllocatedSize(self) -> int:
        return self.taken

    def newCommandQueue(self) -> Device:
        return self

    def commandBuffer(self) -> CommandBuffer:
        return CommandBuffer(self)

    def newEvent(self) -> dict[str, int]:
        return {}

    def newBufferWithLength_options_(self, nbytes: int, options: int) -> Buffer | None:
        _whole(nbytes, options)
        assert nbytes > 0
        if self.taken + nbytes > self.memory_bytes:
            return None
        self.taken += nbytes
        return Buffer(nbytes)

    def newBufferWithBytes_length_options_(self, data: memoryview, nbytes: int, options: int) -> Buffer | None:
        _whole(nbytes, options)
        assert data.c_contiguous and 0 < nbytes <= data.nbytes
        if self.taken + nbytes > self.memory_bytes:
            return None
        made = Buffer(nbytes)
        made.memory[:] = np.frombuffer(data, np.uint8)
        return made

    def newLibraryWithSource_options_error_(self, source: str, options: MTLCompileOptions, error: None) -> tuple[Library | None, str | None]:
        assert not options.fast and error is None
        try:
            return Library(source), None
        except AssertionError as e:
            return None, str(e)

    def newComputePipelineStateWithFunction_error_(self, function: Any, error: None) -> tuple[Any, None]:
        assert error is None
        return function, None
