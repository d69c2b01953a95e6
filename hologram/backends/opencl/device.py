"""OpenCL devices through pyopencl, which is imported when the first is asked for."""

from __future__ import annotations

import threading
import warnings
from functools import cache
from typing import Any

from hologram.backends.c.mapping import LOCAL_BYTES, MOST_ITEMS
from hologram.cached import cached_property
from hologram.errors import CompileError, DeviceError, OutOfMemory

_OUT_OF_MEMORY = ("MEM_OBJECT_ALLOCATION_FAILURE", "OUT_OF_RESOURCES", "OUT_OF_HOST_MEMORY", "INVALID_BUFFER_SIZE")
_CONTEXT_LINES = 6  # of the source, around a line that the compiler complains of


class Device:
    """One device: ``name`` is what users call it. Its context and queue are made when they are first needed; ``lock`` guards the queue."""

    def __init__(self, cl: Any, number: int, device: Any) -> None:
        self.cl, self.device = cl, device
        self.name = f"opencl:{number}"
        self.lock = threading.RLock()
        config = device.single_fp_config
        self.is_gpu = bool(device.type & cl.device_type.GPU)
        self.has_double = bool(device.double_fp_config)
        self.divides_exactly = bool(config & cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT)
        self.keeps_subnormals = bool(config & cl.device_fp_config.DENORM)
        self.units = int(device.max_compute_units)
        self.most_items = int(device.max_work_group_size)
        self.local_bytes = int(device.local_mem_size)
        self.largest_buffer = int(device.max_mem_alloc_size)

    def __repr__(self) -> str:
        return f"{self.name}: {self.device.name.strip()} ({self.device.platform.name.strip()})"

    @cached_property
    def context(self) -> Any:
        return self.cl.Context([self.device])

    @cached_property
    def queue(self) -> Any:
        return self.cl.CommandQueue(self.context)

    def why_not(self, precision: str, double: bool) -> str | None:
        """Why programs of a precision, with float64 or without, cannot run here; None where they can."""
        if double and not self.has_double:
            return "it has no float64, which the program needs"
        if precision == "exact" and not (self.divides_exactly and self.keeps_subnormals):
            return "it does not round float32 division and square roots as IEEE 754 does, or flushes subnormals; precision='exact' needs both"
        if self.local_bytes < LOCAL_BYTES:
            return f"it has {self.local_bytes:,} bytes of local memory; kernels use up to {LOCAL_BYTES:,}"
        if self.most_items < MOST_ITEMS:
            return f"its work-groups have {self.most_items} items at most; kernels use up to {MOST_ITEMS}"
        return None

    def build(self, source: str, options: tuple[str, ...]) -> Any:
        """The program of ``source``. Raises CompileError with the compiler's words and the lines that they are about."""
        options = (*options, *(("-cl-fp32-correctly-rounded-divide-sqrt",) if self.divides_exactly else ()))
        program = self.cl.Program(self.context, source)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what compilers print beside a program that builds
                return program.build(list(options), devices=[self.device], cache_dir=False)
        except self.cl.Error as e:
            try:
                log = program.get_build_info(self.device, self.cl.program_build_info.LOG) or str(e)
            except self.cl.Error:
                log = str(e)
            raise CompileError(f"{self.name} does not compile a program:\n{log.strip()}\n\n{numbered(source, log)}") from None

    def buffer(self, nbytes: int, what: str, others: dict[str, int]) -> Any:
        """Memory for ``what``. Raises OutOfMemory, which names it and ``others`` that are there already."""
        try:
            if nbytes > self.largest_buffer:
                raise MemoryError(f"the largest buffer of the device has {self.largest_buffer:,} bytes")
            return self.cl.Buffer(self.context, self.cl.mem_flags.READ_WRITE, max(1, nbytes))
        except (self.cl.Error, MemoryError) as e:
            if isinstance(e, self.cl.Error) and not is_out_of_memory(e):
                raise self.failure(e) from None
            held = ", ".join(f"{name} {n:,}" for name, n in sorted(others.items(), key=lambda entry: -entry[1])[:8]) or "nothing"
            raise OutOfMemory(f"{self.name} has no {nbytes:,} bytes for {what} ({e}); the call holds: {held}") from None

    def failure(self, e: Exception) -> Exception:
        """What an error of the driver is for the user."""
        return OutOfMemory(f"{self.name}: {e}") if is_out_of_memory(e) else DeviceError(f"{self.name} failed: {e}")


def is_out_of_memory(e: Exception) -> bool:
    return any(code in str(e) for code in _OUT_OF_MEMORY)


def numbered(source: str, log: str) -> str:
    """Numbered lines of ``source``: those around each that ``log`` names, all where it names none."""
    lines = source.splitlines()
    named = {n for n in _line_numbers(log) if 0 < n <= len(lines)}
    wanted = [i for i in range(1, len(lines) + 1) if not named or any(abs(i - n) <= _CONTEXT_LINES for n in named)]
    return "\n".join(f"{'>' if i in named else ' '}{i:5} {lines[i - 1]}" for i in wanted)


def _line_numbers(log: str) -> list[int]:
    """Of messages such as ``<source>:12:3: error: …``."""
    out = []
    for line in log.splitlines():
        parts = line.split(":")
        out += [int(a) for a, b in zip(parts[1:], parts[2:], strict=False) if a.isdigit() and b.isdigit()][:1]
    return out


@cache
def _found() -> tuple[list[Device], str | None]:
    """The devices, and why there are none."""
    try:
        import pyopencl as cl
    except ImportError as e:
        return [], f'pyopencl cannot be imported ({e}): pip install "hologram-compute[opencl]"'
    try:
        platforms = cl.get_platforms()
    except cl.Error as e:
        return [], f"there is no OpenCL platform ({e}): install a driver, or PoCL for the CPU"
    found, reasons = [], []
    for platform in platforms:
        try:
            found += platform.get_devices()
        except cl.Error as e:
            reasons.append(f"{platform.name.strip()}: {e}")
    devices = [Device(cl, i, d) for i, d in enumerate(found)]
    return devices, None if devices else "no OpenCL platform has a device" + (f" ({'; '.join(reasons)})" if reasons else "")


def devices() -> list[Device]:
    return _found()[0]


def why_none() -> str | None:
    """Why there is no device; None where there is one."""
    return _found()[1]


def device(name: str) -> Device:
    """The device that ``name`` means: ``opencl`` is the first GPU, or else the first device. Raises DeviceError, which says what there is."""
    found, reason = _found()
    if reason is not None:
        raise DeviceError(f"device {name!r} is not available: {reason}")
    if name == "opencl":
        return next((d for d in found if d.is_gpu), found[0])
    for d in found:
        if d.name == name:
            return d
    raise DeviceError(f"device {name!r} is not available; there is {', '.join(map(repr, found))}")
