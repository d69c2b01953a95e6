"""OpenCL devices through pyopencl, which is imported when the first is asked for."""

from __future__ import annotations

import time
import warnings
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from hologram.backends import object_cache as disk
from hologram.backends.c.dialects import OPENCL
from hologram.backends.c.grid import MAX_ITEMS
from hologram.backends.device import driver, runtime
from hologram.backends.device.driver import Launch, Place
from hologram.backends.device.listing import numbered
from hologram.backends.timing import Times
from hologram.errors import CompileError
from hologram.settings import settings
from hologram.support.cached_property import cached_property
from hologram.support.once import once

_OUT_OF_MEMORY = ("MEM_OBJECT_ALLOCATION_FAILURE", "OUT_OF_RESOURCES", "OUT_OF_HOST_MEMORY", "INVALID_BUFFER_SIZE")

_NO_MEMORY = (-4, -6)  # CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_HOST_MEMORY


class Event(driver.Event):
    """``commands``: the events of all commands up to here since the event before."""

    def __init__(self, cl: Any, commands: list[Any]) -> None:
        self.cl, self.commands = cl, commands

    def is_done(self) -> bool:
        found = [c.command_execution_status for c in self.commands]
        if any(status < self.cl.command_execution_status.COMPLETE for status in found):
            self.wait()
        return all(status == self.cl.command_execution_status.COMPLETE for status in found)

    def wait(self) -> None:
        try:
            for c in self.commands:
                c.wait()  # which raises where the command failed, and does not say why
        except self.cl.Error:
            if any(c.command_execution_status in _NO_MEMORY for c in self.commands):
                raise self.cl.MemoryError("a command failed: MEM_OBJECT_ALLOCATION_FAILURE") from None
            raise


class Bound:
    """A kernel object of one launch, which remembers its arguments: those that are as in the call before are not set again."""

    __slots__ = ("cl", "kernel", "operands", "workspace", "size", "_last", "_last_workspace")

    def __init__(self, cl: Any, launch: Launch) -> None:
        self.cl, self.operands = cl, launch.operands
        self.kernel = cl.Kernel(launch.kernel.program, launch.kernel.function_name)
        self.size = (launch.groups * launch.items,), (launch.items,)
        first = 2 * len(launch.operands)
        for i, n in enumerate(launch.integers, first):
            self.kernel.set_arg(i, np.int64(n))
        self.workspace = first + len(launch.integers) if launch.workspace else None
        self._last: list[Place] = [(None, -1)] * len(launch.operands)
        self._last_workspace: Any = None

    def enqueue(self, queue: Any, slots: Sequence[Place], workspace: Any) -> Any:
        last = self._last
        for i, (slot, offset, itemsize) in enumerate(self.operands):
            place = buffer, base = slots[slot]
            before, start = last[i]
            if before is not buffer:
                self.kernel.set_arg(2 * i, buffer)
            if start != base:
                self.kernel.set_arg(2 * i + 1, np.int64((base + offset) // itemsize))
            last[i] = place
        if self.workspace is not None and workspace is not self._last_workspace:
            self.kernel.set_arg(self.workspace, workspace)
            self._last_workspace = workspace
        return self.cl.enqueue_nd_range_kernel(queue, self.kernel, *self.size)


def _times_of(command: Any, put: int) -> tuple[float, float]:
    """When a command ran. It was told of its queue at ``put``, which relates the device's clock to the host's."""
    command.wait()
    told = command.profile
    return put + (told.start - told.queued), put + (told.end - told.queued)


HELD_CALLS = 4  # calls whose commands, and the arrays that they copied, are held after the next: PoCL may look at commands that have ended


class Queue(driver.Queue):
    """An in-order command queue."""

    device: Device

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self.cl = device.cl
        self.queue = self.cl.CommandQueue(device.context)
        self._commands: list[Any] = []
        self._last: list[Any] = []
        self._ended: deque[list[Any]] = deque(maxlen=HELD_CALLS)
        self._tells_times = False

    def _write(self, to: Place, array: np.ndarray) -> None:
        buffer, offset = to
        self._commands.append(self.cl.enqueue_copy(self.queue, buffer, array, dst_offset=offset, is_blocking=False))

    def _read(self, array: np.ndarray, source: Place) -> None:
        buffer, offset = source
        self.cl.enqueue_copy(self.queue, array, buffer, src_offset=offset, is_blocking=True)

    def _copy(self, to: Place, source: Place, nbytes: int) -> None:
        command = self.cl.enqueue_copy(self.queue, to[0], source[0], byte_count=nbytes, dst_offset=to[1], src_offset=source[1])
        self._commands.append(command)

    def _launch(self, launch: Launch, slots: Sequence[Place], workspace: Any) -> None:
        bound, launch.bound = launch.bound, None  # a call inside of this one makes its own; what an interrupt leaves half told goes
        if bound is None:
            bound = Bound(self.cl, launch)
        self._commands.append(bound.enqueue(self.queue, slots, workspace))
        launch.bound = bound

    def timed(self, action: Callable[[], Any]) -> Times | None:
        """By the profiling of commands, which the queue has from the first time on."""
        if not self._tells_times:
            self.queue.finish()
            self.queue = self.cl.CommandQueue(self.device.context, properties=self.cl.command_queue_properties.PROFILING_ENABLE)
            self._tells_times = True
        before, put = len(self._commands), time.perf_counter_ns()
        action()
        if len(self._commands) == before:  # a read, which has waited
            end = time.perf_counter_ns()
            return lambda: (put, end)
        return partial(_times_of, self._commands[-1], put)

    def record(self) -> Event:
        if self._commands:
            self._ended.append(self._last)
            self._last = self._commands
            self._commands = []
        self.queue.flush()
        return Event(self.cl, self._last)

    def wait_for(self, event: driver.Event) -> None:
        assert isinstance(event, Event)
        if event.commands:
            self._commands.append(self.cl.enqueue_barrier(self.queue, wait_for=event.commands[-1:]))

    def finish(self) -> None:
        self.queue.finish()


class Device(runtime.Device):
    """One device. Its context and queue are made when they are first needed."""

    dialect = OPENCL

    def __init__(self, cl: Any, number: int, device: Any) -> None:
        super().__init__()
        self.cl, self.device = cl, device
        self.name = f"opencl:{number}"
        self.errors = (cl.Error,)
        config = device.single_fp_config
        self.kind = "gpu" if device.type & cl.device_type.GPU else "cpu"
        self.has_double = bool(device.double_fp_config)
        self.divides_exactly = bool(config & cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT)
        self.keeps_subnormals = bool(config & cl.device_fp_config.DENORM)
        self.units = int(device.max_compute_units)
        self.most_items = int(device.max_work_group_size)
        self.local_bytes = int(device.local_mem_size)
        self.largest_buffer = int(device.max_mem_alloc_size)
        self.memory_bytes = int(device.global_mem_size)

    def describe(self) -> str:
        return f"{self.device.name.strip()} ({self.device.platform.name.strip()}, driver {self.device.driver_version.strip()})"

    @cached_property
    def context(self) -> Any:
        return self.cl.Context([self.device])

    def new_queue(self) -> Queue:
        return Queue(self)

    def why_not(self, precision: str, double: bool) -> str | None:
        if double and not self.has_double:
            return "it has no float64, which the program needs"
        if precision == "exact" and not (self.divides_exactly and self.keeps_subnormals):
            return "it does not round float32 division and square roots as IEEE 754 does, or flushes subnormals; precision='exact' needs both"
        if self.local_bytes < self.dialect.local_bytes:
            return f"it has {self.local_bytes:,} bytes of local memory; kernels use up to {self.dialect.local_bytes:,}"
        if self.most_items < MAX_ITEMS:
            return f"its work-groups have {self.most_items} items at most; kernels use up to {MAX_ITEMS}"
        return None

    def why_no_compiler(self) -> str | None:
        """Why the driver of a CPU compiles nothing: one that is older than the processor may not know it. GPUs are taken to know their own."""
        if self.kind == "gpu":
            return None
        program = self.cl.Program(self.context, "__kernel void nothing(__global int *x) { *x = 0; }")
        try:
            self._built(program, [])
        except self.cl.Error as e:
            return " ".join(self._log(program, e).split())
        return None

    def _log(self, program: Any, error: Exception) -> str:
        """What the compiler says of a program that does not build."""
        try:
            return program.get_build_info(self.device, self.cl.program_build_info.LOG).strip() or str(error)
        except self.cl.Error:
            return str(error)

    def build(self, source: str, names: Sequence[str]) -> dict[str, Any]:
        if not names:
            return {}
        options = [*OPENCL.options, *(["-cl-fp32-correctly-rounded-divide-sqrt"] if self.divides_exactly else [])]
        if settings.codegen_level == 0:
            options.append("-cl-opt-disable")
        built = self._remembered(source, options) if self.kind == "gpu" else self._compiled(source, options)
        return {name: self.cl.Kernel(built, name) for name in names}

    def _remembered(self, source: str, options: list[str]) -> Any:
        """By way of the disk cache. Not for PoCL, which has one, and of a program that it is asked for compiles every kernel in many forms."""
        key = disk.key("opencl", self.describe(), self.device.version, " ".join(options), source)
        built = self._loaded(disk.load(key), options)
        if built is None:
            built = self._compiled(source, options)
            disk.store(key, built.get_info(self.cl.program_info.BINARIES)[0], kind="opencl")
        return built

    def _loaded(self, binary: bytes | None, options: list[str]) -> Any:
        """A program from the disk cache; None where it is not there, or the driver does not take it any more."""
        if binary is None:
            return None
        try:
            return self._built(self.cl.Program(self.context, [self.device], [binary]), options)
        except self.cl.Error:
            return None

    def _compiled(self, source: str, options: list[str]) -> Any:
        program = self.cl.Program(self.context, source)
        try:
            return self._built(program, options)
        except self.cl.Error as e:
            log = self._log(program, e)
            raise CompileError(f"{self.name} does not compile a program:\n{log}\n\n{numbered(source, log)}") from None

    def _built(self, program: Any, options: list[str]) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what compilers print beside a program that builds
            return program.build(options, devices=[self.device], cache_dir=False)

    def allocate(self, nbytes: int) -> Any:
        return self.cl.Buffer(self.context, self.cl.mem_flags.READ_WRITE, nbytes)

    def release(self, handle: Any) -> None:
        handle.release()

    def is_out_of_memory(self, e: BaseException) -> bool:
        return super().is_out_of_memory(e) or any(code in str(e) for code in _OUT_OF_MEMORY)


@once
def found() -> tuple[list[Device], str | None]:
    """The devices, and why there are none."""
    try:
        import pyopencl as cl
    except ImportError as e:
        return [], f'pyopencl cannot be imported ({e}): pip install "hologram-compute[opencl]"'
    try:
        platforms = cl.get_platforms()
    except cl.Error as e:
        return [], f"there is no OpenCL platform ({e}): install a driver, or PoCL for the CPU"
    there, reasons = [], []
    for platform in platforms:
        try:
            there += platform.get_devices()
        except cl.Error as e:
            reasons.append(f"{platform.name.strip()}: {e}")
    devices: list[Device] = []
    for d in there:
        device = Device(cl, len(devices), d)
        if (reason := device.why_no_compiler()) is None:
            devices.append(device)
        else:
            reasons.append(f"{device.describe()}: {reason}")
    return devices, None if devices else "no OpenCL platform has a device" + (f" ({'; '.join(reasons)})" if reasons else "")
