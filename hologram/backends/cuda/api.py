"""The calls of CUDA that Hologram makes, a method each. Nothing else imports CuPy.

Addresses, streams, events, modules, functions and graphs are integers, as CUDA's handles are. All errors of CUDA are :attr:`Api.errors`.

CuPy's own kernel classes add ``-ftz=true``, which flushes float32 subnormals to zero; so programs are compiled by NVRTC itself, with the flags of the
dialect (``--ftz=false``) and nothing else.
"""

from __future__ import annotations

import atexit
import ctypes
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import numpy as np

from hologram.support.cached_property import cached_property
from hologram.support.once import once

NOT_READY = 600  # cudaErrorNotReady
MAX_THREADS_PER_BLOCK = 0  # CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK
MAX_DYNAMIC_SHARED_BYTES = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_OUT_OF_MEMORY = ("MemoryAllocation", "OUT_OF_MEMORY", "ALLOC_FAILED")  # of the runtime, the driver, cuBLAS


class Properties(NamedTuple):
    """Of a device: ``arch`` is such as ``sm_90``, ``units`` its multiprocessors, bytes of memory."""

    name: str
    arch: str
    units: int
    memory_bytes: int


class Matrix(NamedTuple):
    """A matrix by columns, ``stride`` elements apart; by rows where it is ``transposed``. The next of several is ``apart`` elements behind it."""

    address: int
    dtype: str
    stride: int
    transposed: bool
    apart: int = 0


class Addresses(NamedTuple):
    """Of functions of the driver, as native code calls them."""

    copy_in: int
    launch: int
    record: int
    get_current: int
    push_current: int
    pop_current: int


_DRIVER = {
    "copy_in": "cuMemcpyHtoDAsync_v2",
    "launch": "cuGraphLaunch",
    "record": "cuEventRecord",
    "get_current": "cuCtxGetCurrent",
    "push_current": "cuCtxPushCurrent_v2",
    "pop_current": "cuCtxPopCurrent_v2",
}


class CompilerError(Exception):
    """NVRTC's log."""


class LibraryError(Exception):
    """What cuBLAS says."""


class _Blas(NamedTuple):
    """What calls of cuBLAS need, looked up once. ``scalars``: the addresses of one and zero, in ``numbers``, and how sums are computed, for
    float32 and for float64."""

    multiply: Callable[..., None]
    multiply_all: Callable[..., None]
    handle: Callable[[], int]
    error: type[Exception]
    types: dict[str, int]
    numbers: list[np.ndarray]
    scalars: list[tuple[int, int, int]]
    turned: tuple[int, int]
    tf32: int
    algorithm: int


class _Thread(threading.local):
    """``bound``: whether a device's context is current in this thread, so that functions of the driver can be called."""

    bound = False


class _NamedStream:
    """A stream's handle under the protocol of CUDA's streams."""

    def __init__(self, stream: int) -> None:
        self.stream = stream

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.stream


class _Visit(AbstractContextManager[None]):
    """Another device is the current one for a while."""

    def __init__(self, runtime: Any, number: int, before: int) -> None:
        self.runtime, self.number, self.before = runtime, number, before

    def __enter__(self) -> None:
        self.runtime.setDevice(self.number)

    def __exit__(self, *error: object) -> None:
        self.runtime.setDevice(self.before)


_THERE = nullcontext()


class Api:
    """CUDA by way of CuPy. Raises ImportError where CuPy is not there.

    ``ended``: the interpreter ends, where finalisers have nothing to do: what they would give back goes with the process, and CuPy may be gone first.
    """

    ended = False

    def __init__(self) -> None:
        import cupy
        from cupy_backends.cuda.api import driver, runtime
        from cupy_backends.cuda.libs import nvrtc

        self._cupy, self._driver, self._runtime, self._nvrtc = cupy, driver, runtime, nvrtc
        self._thread = _Thread()
        atexit.register(setattr, self, "ended", True)
        self.errors: tuple[type[Exception], ...] = (runtime.CUDARuntimeError, driver.CUDADriverError, LibraryError)

    def is_out_of_memory(self, e: BaseException) -> bool:
        return any(code in str(e) for code in _OUT_OF_MEMORY)

    # --- devices -------------------------------------------------------------------------------------------------------

    def count(self) -> int:
        """How many devices there are. Raises one of :attr:`errors` where there is no driver."""
        return int(self._runtime.getDeviceCount())

    def properties(self, number: int) -> Properties:
        p = self._runtime.getDeviceProperties(number)
        return Properties(p["name"].decode(), f"sm_{p['major']}{p['minor']}", int(p["multiProcessorCount"]), int(p["totalGlobalMem"]))

    def versions(self) -> str:
        """Of the driver and of the runtime, as far as CUDA they are."""
        driver, runtime = (f"{v // 1000}.{v % 1000 // 10}" for v in (self._runtime.driverGetVersion(), self._runtime.runtimeGetVersion()))
        return f"driver for CUDA {driver}, CUDA {runtime}, CuPy {self._cupy.__version__}"

    def on(self, number: int) -> AbstractContextManager[None]:
        """What is called inside is for that device; the thread's own current device is as before afterwards."""
        before = self._runtime.getDevice()
        return _THERE if before == number else _Visit(self._runtime, number, before)

    def _bind(self) -> None:
        """To be called before functions of the driver: unlike those of the runtime, they do not bring the current device's context into a thread."""
        if not self._thread.bound:
            self._runtime.setDevice(self._runtime.getDevice())
            self._thread.bound = True

    # --- memory --------------------------------------------------------------------------------------------------------

    def allocate(self, nbytes: int) -> int:
        """The address of device memory, aligned to 256 bytes."""
        return int(self._runtime.malloc(nbytes))

    def free(self, address: int) -> None:
        """Waits for work that uses the memory."""
        self._runtime.free(address)

    def allocate_host(self, nbytes: int) -> int:
        """The address of page-locked memory of the host, from which copies run by themselves."""
        return int(self._runtime.hostAlloc(nbytes, 0))

    def free_host(self, address: int) -> None:
        self._runtime.freeHost(address)

    def copy(self, to: int, source: int, nbytes: int, stream: int) -> None:
        """Between any two places; the addresses say where they are."""
        self._runtime.memcpyAsync(to, source, nbytes, self._runtime.memcpyDefault, stream)

    # --- streams and events --------------------------------------------------------------------------------------------

    def new_stream(self) -> int:
        """One that does not wait for the default stream."""
        return int(self._runtime.streamCreateWithFlags(self._runtime.streamNonBlocking))

    def destroy_stream(self, stream: int) -> None:
        self._runtime.streamDestroy(stream)

    def current_stream(self, number: int) -> int:
        """The stream that PyTorch, if it is in use and has one, or else CuPy works in; 0 is the default stream."""
        torch = sys.modules.get("torch")
        if torch is not None and torch.cuda.is_initialized():
            stream = _stream_of_torch(torch, number)
            if stream:
                return stream
        return int(self._cupy.cuda.get_current_stream(number).ptr)

    def synchronize(self, stream: int) -> None:
        self._runtime.streamSynchronize(stream)

    def new_event(self) -> int:
        """Of the current device."""
        return int(self._runtime.eventCreateWithFlags(self._runtime.eventDisableTiming))

    def new_timed_event(self) -> int:
        """As :meth:`new_event`, of which :meth:`elapsed` may be asked."""
        return int(self._runtime.eventCreateWithFlags(0))

    def elapsed(self, first: int, second: int) -> float:
        """Nanoseconds from one event to another, both of which have been reached."""
        return float(self._runtime.eventElapsedTime(first, second)) * 1e6

    def destroy_event(self, event: int) -> None:
        self._runtime.eventDestroy(event)

    def record(self, event: int, stream: int) -> None:
        """The event is now after the stream's work so far."""
        self._runtime.eventRecord(event, stream)

    def is_done(self, event: int) -> bool:
        status = self._runtime.eventQuery(event)  # which CuPy does not check
        if status not in (0, NOT_READY):
            raise self._runtime.CUDARuntimeError(status)
        return bool(status == 0)

    def wait(self, event: int) -> None:
        self._runtime.eventSynchronize(event)

    def wait_in(self, stream: int, event: int) -> None:
        self._runtime.streamWaitEvent(stream, event)

    # --- programs ------------------------------------------------------------------------------------------------------

    def compiler_version(self) -> str:
        return ".".join(map(str, self._nvrtc.getVersion()))

    def compile(self, source: str, options: Sequence[str]) -> bytes:
        """The cubin of a program. Raises CompilerError with NVRTC's log, or why there is no NVRTC."""
        try:
            program = self._nvrtc.createProgram(source, "program.cu", (), ())
        except RuntimeError as e:
            raise CompilerError(str(e)) from None
        try:
            self._nvrtc.compileProgram(program, tuple(options))
            return bytes(self._nvrtc.getCUBIN(program))
        except self._nvrtc.NVRTCError as e:
            raise CompilerError(self._nvrtc.getProgramLog(program) or str(e)) from None
        finally:
            self._nvrtc.destroyProgram(program)

    def load(self, cubin: bytes) -> int:
        """A module of the current device."""
        self._bind()
        return int(self._driver.moduleLoadData(cubin))

    def unload(self, module: int) -> None:
        """Of the current device."""
        self._bind()
        self._driver.moduleUnload(module)

    def function(self, module: int, name: str) -> int:
        """A function, which is loaded: else CUDA loads it at its first launch, which may be one that is captured."""
        self._bind()
        found = int(self._driver.moduleGetFunction(module, name))
        self._driver.funcGetAttribute(MAX_THREADS_PER_BLOCK, found)
        return found

    def allow_shared(self, function: int, nbytes: int) -> None:
        """Launches of the function, of the current device, may supply so many bytes of shared memory."""
        self._bind()
        self._driver.funcSetAttribute(function, MAX_DYNAMIC_SHARED_BYTES, nbytes)

    def launch(self, function: int, groups: int, items: int, arguments: int, stream: int, shared: int) -> None:
        """``arguments`` is the address of an array of the addresses of the kernel's arguments; ``shared``: bytes of memory that a group shares."""
        self._bind()
        self._driver.launchKernel(function, groups, 1, 1, items, 1, 1, shared, stream, arguments, 0)

    @cached_property
    def multiplies(self) -> bool:
        """Whether there is cuBLAS, which a CuPy without its libraries lacks. Loads it."""
        try:
            from cupy_backends.cuda.libs import cublas  # noqa: F401
        except ImportError:
            return False
        return True

    def multiply(self, rows: int, columns: int, terms: int, left: Matrix, right: Matrix, out: Matrix, stream: int, tf32: bool, batch: int) -> None:
        """``out = left @ right`` by cuBLAS, ``batch`` times, sums of 16-bit floats in float32; ``tf32``: float32 may be rounded to TF32 first."""
        blas = self._blas
        one, zero, how = blas.scalars[left.dtype == "float64"]
        if tf32 and left.dtype == "float32":
            how = blas.tf32
        a, b, c = ((x.address, blas.types[x.dtype], x.stride, x.apart) for x in (left, right, out))
        turned = blas.turned[left.transposed], blas.turned[right.transposed]
        try:
            with self._stream(stream):  # where CuPy's calls of cuBLAS work
                if batch == 1:
                    blas.multiply(blas.handle(), *turned, rows, columns, terms, one, *a[:3], *b[:3], zero, *c[:3], how, blas.algorithm)
                else:
                    blas.multiply_all(blas.handle(), *turned, rows, columns, terms, one, *a, *b, zero, *c, batch, how, blas.algorithm)
        except blas.error as e:
            raise LibraryError(f"cuBLAS: {e}") from None

    @cached_property
    def _blas(self) -> _Blas:
        from cupy.cuda import device
        from cupy_backends.cuda.libs import cublas

        runtime = self._runtime
        types = {"float16": runtime.CUDA_R_16F, "bfloat16": runtime.CUDA_R_16BF, "float32": runtime.CUDA_R_32F, "float64": runtime.CUDA_R_64F}
        numbers = [np.array([1, 0], t) for t in (np.float32, np.float64)]
        hows = cublas.CUBLAS_COMPUTE_32F, cublas.CUBLAS_COMPUTE_64F
        scalars = [(n.ctypes.data, n.ctypes.data + n.itemsize, how) for n, how in zip(numbers, hows, strict=True)]
        turned, tf32 = (cublas.CUBLAS_OP_N, cublas.CUBLAS_OP_T), cublas.CUBLAS_COMPUTE_32F_FAST_TF32
        calls = cublas.gemmEx, cublas.gemmStridedBatchedEx, lambda: device.get_cublas_handle()  # looked up again: tests may stand in for it
        return _Blas(*calls, cublas.CUBLASError, types, numbers, scalars, turned, tf32, cublas.CUBLAS_GEMM_DEFAULT)

    def _stream(self, stream: int) -> Any:
        """Where CuPy's calls in this thread work in a ``with`` statement."""
        return _THERE if self._cupy.cuda.get_current_stream().ptr == stream else self._external(stream)

    def _external(self, stream: int) -> Any:
        """A stream of CuPy's, whose versions before 14 do not know the protocol."""
        kind = self._cupy.cuda.Stream
        return kind.from_external(_NamedStream(stream)) if hasattr(kind, "from_external") else self._cupy.cuda.ExternalStream(stream)

    # --- graphs --------------------------------------------------------------------------------------------------------

    def begin_capture(self, stream: int) -> None:
        """What is put in the stream from now on is recorded, and not run. Whatever else is called meanwhile, as by finalisers, is allowed."""
        self._runtime.streamBeginCapture(stream, self._runtime.streamCaptureModeRelaxed)

    def end_capture(self, stream: int) -> int:
        """What was recorded, ready to be launched."""
        graph = self._runtime.streamEndCapture(stream)
        try:
            return int(self._runtime.graphInstantiate(graph))
        finally:
            self._runtime.graphDestroy(graph)

    def launch_graph(self, graph: int, stream: int) -> None:
        self._runtime.graphLaunch(graph, stream)

    @cached_property
    def addresses(self) -> Addresses | None:
        """The driver's functions for native code, to which streams, events and graphs of the runtime are what they are to itself; None where the
        driver cannot be asked for them."""
        try:
            library = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
            return Addresses(**{field: ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0 for field, name in _DRIVER.items()})
        except (OSError, AttributeError):
            return None

    def current_context(self) -> int:
        """The context that this thread works in, for native code; 0 where that has no functions to call."""
        if self.addresses is None:
            return 0
        context = ctypes.c_void_p()
        ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_void_p))(self.addresses.get_current)(ctypes.byref(context))
        return context.value or 0

    def destroy_graph(self, graph: int) -> None:
        self._runtime.graphExecDestroy(graph)

    # --- arrays of others ----------------------------------------------------------------------------------------------

    def as_array(self, address: int, nbytes: int, shape: tuple[int, ...], dtype: Any, number: int, owner: Any) -> Any:
        """A CuPy array of memory that ``owner`` keeps alive."""
        cuda = self._cupy.cuda
        memory = cuda.UnownedMemory(address, nbytes, owner, number)
        return self._cupy.ndarray(shape, dtype, cuda.MemoryPointer(memory, 0))

    def device_of(self, address: int) -> int:
        """The number of the device whose memory an address is of."""
        return int(self._runtime.pointerGetAttributes(address).device)

    def contiguous(self, x: Any, number: int) -> Any:
        """A CuPy array with a copy of ``x``, in C order, made in the device's current stream."""
        with self.on(number), self._stream(self.current_stream(number)):
            return self._cupy.array(self._cupy.asarray(x), order="C", copy=True)

    def from_dlpack(self, x: Any, number: int) -> Any:
        """A CuPy array of the memory of ``x``, whose work so far comes first in the device's current stream."""
        with self.on(number), self._stream(self.current_stream(number)):
            return self._cupy.from_dlpack(x)


def _stream_of_torch(torch: Any, number: int) -> int:
    """PyTorch's current stream, by the function that its own compiled code asks, where there is one: it makes no object."""
    ask = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    return int(ask(number) if ask is not None else torch.cuda.current_stream(number).cuda_stream)


@once
def api() -> Api:
    """The one of the process. Raises ImportError where CuPy is not there."""
    return Api()
