"""CUDA devices.

Work goes to the stream that PyTorch or CuPy works in at the moment, so arrays pass between them and Hologram without a wait; ``hg.stream`` has
streams of its own. Programs are compiled by NVRTC for the device's own architecture, and cubins kept in the disk cache.
"""

from __future__ import annotations

import contextlib
import ctypes
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hologram.backends import object_cache as disk
from hologram.backends.c.analysis.gemm import MATRIX_UNIT_TILE
from hologram.backends.c.dialects import CUDA
from hologram.backends.cuda import library
from hologram.backends.cuda.api import Api, CompilerError, Matrix, api
from hologram.backends.cuda.library import Gemm
from hologram.backends.cuda.recording import COPY, COPY_TEXT
from hologram.backends.device import driver, runtime
from hologram.backends.device.driver import Launch, Place
from hologram.backends.device.listing import numbered
from hologram.backends.timing import Times
from hologram.errors import CompileError, DeviceError
from hologram.graph.schedule.tiles import GpuTileConfig
from hologram.support.cached_property import cached_property
from hologram.support.once import once

PER_THREAD_STREAM = 2  # a name for another stream in each thread
CLOCK_SECONDS = 10.0  # after which times since an event are told too coarsely
OLDEST = 80  # whose matrix units take bfloat16
INSTALL = 'pip install "hologram-compute[cuda]"'


class Block:
    """Device memory at ``address``."""

    __slots__ = ("address",)

    def __init__(self, address: int) -> None:
        self.address = address


class Event(driver.Event):
    """An event of CUDA, which another takes over when this object goes."""

    __slots__ = ("device", "cuda", "event")

    def __init__(self, device: Device, stream: int) -> None:
        self.device, self.cuda = device, device.cuda
        with self.cuda.on(device.number):
            self.event = device.spare_events.pop() if device.spare_events else self.cuda.new_event()
            self.cuda.record(self.event, stream)

    def is_done(self) -> bool:
        return self.cuda.is_done(self.event)

    def wait(self) -> None:
        self.cuda.wait(self.event)

    def __del__(self) -> None:
        if hasattr(self, "event"):
            self.device.spare_events.append(self.event)


class Clock:
    """An event ``origin`` that was reached ``at`` a time of the host: it relates the device's clock to the host's."""

    __slots__ = ("cuda", "origin", "at")

    def __init__(self, device: Device) -> None:
        self.cuda = device.cuda
        with self.cuda.on(device.number):
            self.origin = self.cuda.new_timed_event()
            self.cuda.record(self.origin, 0)
            self.cuda.wait(self.origin)
        self.at = time.perf_counter_ns()

    def __del__(self) -> None:
        if hasattr(self, "at") and not self.cuda.ended:
            with contextlib.suppress(*self.cuda.errors):  # of a device that is lost
                self.cuda.destroy_event(self.origin)


class Marks:
    """Two events around a command."""

    __slots__ = ("device", "cuda", "clock", "first", "second")

    def __init__(self, device: Device, clock: Clock) -> None:
        self.device, self.cuda, self.clock = device, device.cuda, clock
        with self.cuda.on(device.number):
            self.first, self.second = self.cuda.new_timed_event(), self.cuda.new_timed_event()

    def times(self) -> tuple[float, float]:
        with self.cuda.on(self.device.number):
            self.cuda.wait(self.second)
            begin = self.clock.at + self.cuda.elapsed(self.clock.origin, self.first)
            return begin, begin + self.cuda.elapsed(self.first, self.second)

    def __del__(self) -> None:
        if hasattr(self, "second") and not self.cuda.ended:
            with contextlib.suppress(*self.cuda.errors):  # of a device that is lost
                self.cuda.destroy_event(self.first)
                self.cuda.destroy_event(self.second)


class Queue(driver.Queue):
    """A stream of CUDA."""

    device: Device

    def __init__(self, device: Device, stream: int) -> None:
        super().__init__(device)
        self.cuda, self.stream = device.cuda, stream

    def _write(self, to: Place, array: np.ndarray) -> None:
        self._copied(_address(to), array.__array_interface__["data"][0], array.nbytes)

    def _read(self, array: np.ndarray, source: Place) -> None:
        self._copied(array.ctypes.data, _address(source), array.nbytes)
        self.finish()

    def _copy(self, to: Place, source: Place, nbytes: int) -> None:
        self._copied(_address(to), _address(source), nbytes)

    def _copied(self, to: int, source: int, nbytes: int) -> None:
        with self.cuda.on(self.device.number):
            self.cuda.copy(to, source, nbytes, self.stream)

    def _launch(self, launch: Launch, slots: Sequence[Place], workspace: Any) -> None:
        addresses = [slots[s][0].address + slots[s][1] + offset for s, offset, _ in launch.operands]
        if isinstance(launch.kernel, Gemm):
            return self._multiply(launch.kernel, addresses)
        bound, launch.bound = launch.bound, None  # a call inside of this one makes its own
        if bound is None:
            bound = Arguments([0, *addresses, *launch.integers, *([0] if launch.workspace else [])])
        bound.set(addresses, workspace.address if launch.workspace else 0)
        with self.cuda.on(self.device.number):
            kernel = launch.kernel
            self.cuda.launch(kernel.function, launch.groups, launch.items, bound.address, self.stream, kernel.shared)
        launch.bound = bound

    def _multiply(self, gemm: Gemm, addresses: Sequence[int]) -> None:
        """By the library, which takes matrices by columns: ``out`` transposed is ``right`` transposed times ``left`` transposed."""
        self.device.count(library_calls=1)
        of = gemm.right, gemm.left, gemm.out
        first, second, out = (Matrix(addresses[x.number], x.dtype.name, x.stride, x.transposed, x.apart) for x in of)
        with self.cuda.on(self.device.number):
            self.cuda.multiply(gemm.columns, gemm.rows, gemm.terms, first, second, out, self.stream, gemm.tf32, gemm.batch)

    def timed(self, action: Callable[[], Any]) -> Times:
        """Between two events of the stream."""
        marks = Marks(self.device, self.device.clock())
        with self.cuda.on(self.device.number):
            self.cuda.record(marks.first, self.stream)
            action()
            self.cuda.record(marks.second, self.stream)
        return marks.times

    def record(self) -> Event:
        return Event(self.device, self.stream)

    def wait_for(self, event: driver.Event) -> None:
        assert isinstance(event, Event)
        with self.cuda.on(self.device.number):  # each device has a default stream of its own
            self.cuda.wait_in(self.stream, event.event)

    def follow(self, stream: int) -> None:
        """What is put here from now on begins after the work so far of ``stream``, another library's."""
        if stream != self.stream:
            self.wait_for(Event(self.device, stream))

    def finish(self) -> None:
        with self.cuda.on(self.device.number):
            self.cuda.synchronize(self.stream)


class _OwnQueue(Queue):
    """A stream that goes with its queue."""

    def __del__(self) -> None:
        if not self.cuda.ended:
            with contextlib.suppress(*self.cuda.errors):  # of a device that is lost
                self.cuda.destroy_stream(self.stream)


def _address(place: Place) -> int:
    handle, offset = place
    return int(handle.address) + offset


class Arguments:
    """Arguments of a kernel, integers of 64 bits: the address of its table first (0: none), then its pointers, ``address`` as CUDA takes them."""

    __slots__ = ("_values", "_addresses", "address")

    def __init__(self, values: Sequence[int]) -> None:
        self._values = (ctypes.c_int64 * len(values))(*values)
        start = ctypes.addressof(self._values)
        self._addresses = (ctypes.c_void_p * len(values))(*range(start, start + 8 * len(values), 8))
        self.address = ctypes.addressof(self._addresses)

    def set(self, pointers: Sequence[int], workspace: int) -> None:
        for i, p in enumerate(pointers, 1):
            self._values[i] = p
        if workspace:
            self._values[-1] = workspace


class Kernel:
    """A function of a module, which is unloaded when none of its kernels is held. ``shared``: bytes of shared memory that its launches supply."""

    __slots__ = ("function", "module", "shared")

    def __init__(self, function: int, module: Module) -> None:
        self.function, self.module = function, module
        self.shared = 0

    def supply(self, nbytes: int) -> None:
        """Launches supply ``nbytes`` of shared memory from now on."""
        with self.module.there():
            self.module.cuda.allow_shared(self.function, nbytes)
        self.shared = nbytes


class Module:
    """The functions of a cubin on one device, where calls about them are to be made."""

    def __init__(self, cuda: Api, number: int, cubin: bytes) -> None:
        self.cuda, self.number = cuda, number
        with self.there():
            self.handle = cuda.load(cubin)

    def there(self) -> contextlib.AbstractContextManager[None]:
        return self.cuda.on(self.number)

    def kernel(self, name: str) -> Kernel:
        with self.there():
            return Kernel(self.cuda.function(self.handle, name), self)

    def __del__(self) -> None:
        if hasattr(self, "handle") and not self.cuda.ended:
            with contextlib.suppress(*self.cuda.errors), self.there():  # of a device that is lost
                self.cuda.unload(self.handle)


class Device(runtime.Device):
    """One device, ``cuda:0`` and so on in CUDA's own order."""

    dialect = CUDA
    kind = "gpu"
    fails_for_good = True  # the context is of no use any more

    def __init__(self, cuda: Api, number: int) -> None:
        super().__init__()
        self.cuda, self.number = cuda, number
        self.name = f"cuda:{number}"
        self.errors = cuda.errors
        self.properties = cuda.properties(number)
        self.units = self.properties.units
        self.memory_bytes = self.largest_buffer = self.properties.memory_bytes
        self._queues: dict[int, Queue] = {}
        self.spare_events: list[int] = []
        self._clock: Clock | None = None

    def clock(self) -> Clock:
        """The device's clock beside the host's."""
        found = self._clock
        if found is None or time.perf_counter_ns() - found.at > CLOCK_SECONDS * 1e9:
            found = self._clock = Clock(self)
        return found

    def describe(self) -> str:
        return f"{self.properties.name}, {self.properties.arch} ({self.cuda.versions()})"

    def why_not(self, precision: str, double: bool) -> str | None:
        older = int(self.properties.arch.removeprefix("sm_")) < OLDEST
        return f"its architecture is {self.properties.arch}, and kernels need sm_{OLDEST} or later" if older else None

    @property
    def tile(self) -> GpuTileConfig:  # type: ignore[override]
        return MATRIX_UNIT_TILE._replace(library_flops=library.MIN_FLOPS)

    @property
    def queue(self) -> Queue:
        """Of the stream that PyTorch or CuPy works in."""
        return self.queue_of(self.cuda.current_stream(self.number))

    def queue_of(self, stream: int) -> Queue:
        """The queue that puts work in a stream, which may be another library's. Raises DeviceError for the one that is another in each thread: memory
        goes from thread to thread, and nobody but its own can wait for what is there."""
        found = self._queues.get(stream)
        if found is None:
            if stream == PER_THREAD_STREAM:
                raise DeviceError(f"{self.name}: the per-thread default stream of CUDA ({stream}) is no place for work: use a stream, or the default")
            found = self._queues.setdefault(stream, Queue(self, stream))
        return found

    def new_queue(self) -> Queue:
        with self.cuda.on(self.number):
            return _OwnQueue(self, self.cuda.new_stream())

    def build(self, source: str, names: Sequence[str]) -> dict[str, Any]:
        if not names:
            return {}
        module = Module(self.cuda, self.number, self._cubin(source))
        return {name: module.kernel(name) for name in names}

    @cached_property
    def copy_kernel(self) -> Kernel:
        """Copies within the device, of captured calls."""
        return self.build(COPY_TEXT, [COPY])[COPY]

    def _cubin(self, source: str) -> bytes:
        """From the disk cache, if it is there."""
        options = (*CUDA.options, f"--gpu-architecture={self.properties.arch}")
        key = disk.key("cuda", self.cuda.compiler_version(), *options, source)
        cubin = disk.load(key)
        if cubin is None:
            try:
                cubin = self.cuda.compile(source, options)
            except CompilerError as e:
                raise CompileError(f"{self.name} does not compile a program:\n{str(e).strip()}\n\n{numbered(source, str(e))}") from None
            disk.store(key, cubin, kind="cuda")
        return cubin

    def allocate(self, nbytes: int) -> Block:
        with self.cuda.on(self.number):
            return Block(self.cuda.allocate(nbytes))

    def release(self, handle: Block) -> None:
        self.cuda.free(handle.address)

    def is_out_of_memory(self, e: BaseException) -> bool:
        return super().is_out_of_memory(e) or self.cuda.is_out_of_memory(e)


@once
def found() -> tuple[list[Device], str | None]:
    """The devices, and why there are none."""
    try:
        cuda = api()
    except ImportError as e:
        return [], f"CuPy cannot be imported ({e}): {INSTALL}"
    try:
        count = cuda.count()
    except cuda.errors as e:
        return [], f"CUDA has no driver or no device ({e})"
    return [Device(cuda, i) for i in range(count)], None if count else "CUDA has no device"
