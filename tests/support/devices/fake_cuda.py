"""A CUDA without a GPU, in the place of ``hologram.backends.cuda.api.Api``: device memory is the host's, kernels are compiled by the host's compiler.

As on a device, work in a stream is done later: when something waits for it. So what a caller must keep alive or unchanged is used late, memory that
was freed is overwritten and not given to anything else for a while, and addresses outside of live allocations are refused.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import re
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from hologram import dtypes
from hologram.backends.c.dialects import SLOT_BIT
from hologram.backends.cuda.api import CompilerError, Matrix, Properties
from tests.support.devices.c_harness import SHARED_BYTES, compile_kernels, new_folder

_HEAD = re.compile(r'extern "C" __global__ void __launch_bounds__\((\d+), \d+\) (\w+)\((.*?)\) {')
_FREED = 0xDD
MAX_QUARANTINED, MAX_QUARANTINE_BYTES = 256, 64 << 20  # pieces of freed memory that are kept from reuse


class FakeError(RuntimeError):
    """What CUDA's functions raise."""


class FakeArray:
    """An array as CuPy has them. ``values``: its shape, type and strides, and the elements that it begins with."""

    def __init__(self, cuda: FakeApi, address: int, values: np.ndarray, stream: int, owner: Any = None) -> None:
        self.cuda, self.address, self.values, self.stream, self.owner = cuda, address, values, stream, owner

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        strides = None if self.values.flags.c_contiguous else self.values.strides
        data = self.address, False
        return dict(shape=self.values.shape, typestr=self.values.dtype.str, data=data, strides=strides, version=3, stream=self.stream or 1)

    def __dlpack__(self, stream: Any = None) -> FakeArray:
        return self  # in the place of a capsule

    def get(self) -> np.ndarray:
        self.cuda.finish()
        return self.cuda.array_at(self.address, self.values)


class _Point:
    """A point in the work of a stream, reached at a time in nanoseconds."""

    def __init__(self, todo: list[Callable[[], None]]) -> None:
        self.todo, self.reached, self.at = todo, False, 0

    def reach(self) -> None:
        self.reached, self.at = True, time.perf_counter_ns()

    def wait(self) -> None:
        while not self.reached:
            self.todo.pop(0)()


def _by_columns(x: Matrix, shape: tuple[int, int]) -> np.ndarray:
    dtype = dtypes.of(x.dtype).np
    steps = (x.stride, 1) if x.transposed else (1, x.stride)
    extent = 1 + sum((n - 1) * s for n, s in zip(shape, steps, strict=True))
    flat = np.ctypeslib.as_array((ctypes.c_uint8 * (extent * dtype.itemsize)).from_address(x.address)).view(dtype)
    return np.lib.stride_tricks.as_strided(flat, shape, tuple(s * dtype.itemsize for s in steps))


def _placed(table: int, place: int) -> int:
    """An address, from a slot of a table and an offset."""
    slot, offset = divmod(place, 1 << SLOT_BIT)
    return int(ctypes.c_int64.from_address(table + 8 * slot).value) + offset


class FakeApi:
    """``memory_bytes`` of each of ``devices``; ``counts`` of calls; ``broken``: what the next wait for a stream finds."""

    errors: tuple[type[Exception], ...] = (FakeError,)
    multiplies = True
    ended = False
    addresses: Any = None

    def __init__(self, devices: int = 1, memory_bytes: int = 2**28) -> None:
        self.devices, self.memory_bytes = devices, memory_bytes
        self.counts: Counter[str] = Counter()
        self.broken: str | None = None
        self.current = 0
        self.streams: dict[int, list[Callable[[], None]]] = {0: []}
        self.stream = 0  # that others work in
        self.live: dict[int, np.ndarray] = {}
        self.freed: deque[tuple[int, np.ndarray]] = deque()  # the oldest first
        self._quarantine_bytes = 0
        self.host: dict[int, np.ndarray] = {}
        self.events: dict[int, _Point] = {}
        self.timed: set[int] = set()  # those of them that are asked for times
        self.capturing: dict[int, list[Callable[[], None]]] = {}
        self.graphs: dict[int, list[Callable[[], None]]] = {}
        self.modules: dict[int, tuple[ctypes.CDLL, dict[str, tuple[int, str]]]] = {}
        self.functions: dict[int, tuple[int, str, int, str, bool]] = {}
        self.allowed: dict[int, int] = {}  # shared memory of functions
        self._numbers = itertools.count(3)  # 1 and 2 are names of default streams
        self._folder = new_folder()

    def is_out_of_memory(self, e: BaseException) -> bool:
        return "MemoryAllocation" in str(e)

    def count(self) -> int:
        return self.devices

    def properties(self, number: int) -> Properties:
        return Properties("Fake", "sm_90", 4, self.memory_bytes)

    def versions(self) -> str:
        return "no driver"

    @contextlib.contextmanager
    def on(self, number: int) -> Iterator[None]:
        before, self.current = self.current, number
        yield
        self.current = before

    # --- memory --------------------------------------------------------------------------------------------------------

    def allocate(self, nbytes: int) -> int:
        if sum(a.nbytes for a in list(self.live.values())) + nbytes > self.memory_bytes:
            raise FakeError("cudaErrorMemoryAllocation: out of memory")
        return self._kept(self.live, nbytes)

    def _kept(self, where: dict[int, np.ndarray], nbytes: int) -> int:
        array = np.full(nbytes + 256, _FREED, np.uint8)
        address = -(-array.ctypes.data // 256) * 256
        start = address - array.ctypes.data
        where[address] = array[start : start + max(nbytes, 1)]
        return address

    def free(self, address: int) -> None:
        self.finish()
        memory = self.live.pop(address)
        memory.fill(_FREED)
        self.freed.append((address, memory))
        self._quarantine_bytes += memory.nbytes
        while len(self.freed) > MAX_QUARANTINED or self._quarantine_bytes > MAX_QUARANTINE_BYTES:
            self._quarantine_bytes -= self.freed.popleft()[1].nbytes

    def allocate_host(self, nbytes: int) -> int:
        return self._kept(self.host, nbytes)

    def free_host(self, address: int) -> None:
        del self.host[address]

    def copy(self, to: int, source: int, nbytes: int, stream: int) -> None:
        self.counts["copies"] += 1
        self._put(stream, lambda: ctypes.memmove(to, source, nbytes))

    def holds(self, address: int) -> bool:
        """Whether an address is of memory that is allocated."""
        return any(start <= address < start + a.nbytes for start, a in list(self.live.items()))

    def was_freed(self, address: int) -> bool:
        """Whether an address is of memory that was freed lately."""
        return any(start <= address < start + a.nbytes for start, a in list(self.freed))

    # --- arrays of others ----------------------------------------------------------------------------------------------

    def array(self, values: np.ndarray, stream: int = 0, offset: int = 0) -> FakeArray:
        """Another library's array, which its stream fills later; ``offset`` bytes from an aligned address."""
        address = self.allocate(values.nbytes + offset) + offset
        self._put(stream, lambda: ctypes.memmove(address, values.ctypes.data, values.nbytes))
        return FakeArray(self, address, values, stream)

    def array_at(self, address: int, like: np.ndarray) -> np.ndarray:
        """What is there at the moment."""
        flat = (ctypes.c_uint8 * like.nbytes).from_address(address)
        return np.frombuffer(bytes(flat), like.dtype).reshape(like.shape)

    def contiguous(self, x: FakeArray, number: int) -> FakeArray:
        values = np.empty(x.values.shape, x.values.dtype)
        made = FakeArray(self, self.allocate(values.nbytes), values, x.stream)
        nbytes, strides = values.nbytes, x.values.strides

        def copy() -> None:
            flat = np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(x.address))
            values[...] = np.lib.stride_tricks.as_strided(flat.view(values.dtype), values.shape, strides)
            ctypes.memmove(made.address, values.ctypes.data, nbytes)

        self._put(x.stream, copy)
        return made

    def as_array(self, address: int, nbytes: int, shape: tuple[int, ...], dtype: Any, number: int, owner: Any) -> FakeArray:
        return FakeArray(self, address, np.empty(shape, dtype), self.stream, owner)

    def from_dlpack(self, x: Any, number: int) -> Any:
        return x.__dlpack__(stream=self.stream)

    def device_of(self, address: int) -> int:
        return 0

    # --- streams and events --------------------------------------------------------------------------------------------

    def new_stream(self) -> int:
        number = next(self._numbers)
        self.streams[number] = []
        return number

    def destroy_stream(self, stream: int) -> None:
        self.synchronize(stream)
        del self.streams[stream]

    def current_stream(self, number: int) -> int:
        return self.stream

    def _put(self, stream: int, action: Callable[[], object]) -> None:
        self.capturing.get(stream, self.streams[stream]).append(action)  # type: ignore[arg-type]

    def synchronize(self, stream: int) -> None:
        todo = self.streams[stream]
        while todo:
            todo.pop(0)()
        if self.broken is not None:
            raise FakeError(self.broken)

    def finish(self) -> None:
        for stream in list(self.streams):
            self.synchronize(stream)

    def new_event(self) -> int:
        return next(self._numbers)

    def new_timed_event(self) -> int:
        self.counts["timed_events"] += 1
        self.timed.add(number := next(self._numbers))
        return number

    def elapsed(self, first: int, second: int) -> float:
        assert self.events[first].reached and self.events[second].reached
        return float(self.events[second].at - self.events[first].at)

    def destroy_event(self, event: int) -> None:
        self.counts["timed_events"] -= 1
        self.events.pop(event, None)

    def record(self, event: int, stream: int) -> None:
        point = self.events[event] = _Point(self.streams[stream])
        if event in self.timed and not self.streams[stream]:
            point.reach()  # at once: it has a time
        else:
            self._put(stream, point.reach)

    def is_done(self, event: int) -> bool:
        return self.events[event].reached

    def wait(self, event: int) -> None:
        self.events[event].wait()
        if self.broken is not None:
            raise FakeError(self.broken)

    def wait_in(self, stream: int, event: int) -> None:
        """For what was recorded by now, whatever is recorded there later."""
        self._put(stream, self.events[event].wait)

    # --- programs ------------------------------------------------------------------------------------------------------

    def compiler_version(self) -> str:
        return "the host's"

    def compile(self, source: str, options: Sequence[str]) -> bytes:
        self.counts["compiled"] += 1
        if "--ftz=false" not in options:
            raise CompilerError("subnormals would be flushed")
        calls = []
        for _, name, parameters in _HEAD.findall(source):
            types = [p.rpartition("*")[0] + "*" if "*" in p else "i64" for p in parameters.split(", ")]
            values = ", ".join(f"*({t} *)args[{i}]" for i, t in enumerate(types))
            calls.append(f"EXPORT void call_{name}(void **args, int64_t group, int64_t groups, int64_t item) {{ {name}({values}); }}\n")
        try:
            library = compile_kernels(source, "".join(calls), "cuda", new_folder())
        except AssertionError as e:
            raise CompilerError(str(e)) from None
        kinds = {name: "".join("p" if "*" in p else "i" for p in parameters.split(", ")) for _, name, parameters in _HEAD.findall(source)}
        wants = {name for name, body in re.findall(r"(\w+)\([^()]*\) \{\n(.*?)\n\}", source, re.DOTALL) if "(hg_shared)" in body}
        sizes = " ".join(f"{name}={items}={kinds[name]}={int(name in wants)}" for items, name, _ in _HEAD.findall(source))
        return f"{sizes}\n".encode() + library.read_bytes()

    def load(self, cubin: bytes) -> int:
        sizes, _, code = cubin.partition(b"\n")
        number = next(self._numbers)
        path = self._folder / f"module{number}.so"
        path.write_bytes(code)
        kernels = {name: (int(n), kinds, wants == "1") for name, n, kinds, wants in (entry.split("=") for entry in sizes.decode().split())}
        self.modules[number] = ctypes.CDLL(str(path)), kernels
        return number

    def unload(self, module: int) -> None:
        self.finish()
        del self.modules[module]

    def function(self, module: int, name: str) -> int:
        number = next(self._numbers)
        self.functions[number] = module, name, *self.modules[module][1][name]
        return number

    def allow_shared(self, function: int, nbytes: int) -> None:
        assert nbytes <= SHARED_BYTES
        self.allowed[function] = nbytes

    def launch(self, function: int, groups: int, items: int, arguments: int, stream: int, shared: int) -> None:
        self.counts["launches"] += stream not in self.capturing
        module, name, expected, kinds, wants_shared = self.functions[function]
        assert items == expected and 0 < groups < 2**31
        assert shared <= self.allowed.get(function, 0) and (shared > 0) == wants_shared
        library = self.modules[module][0]
        call = ctypes.cast(getattr(library, f"call_{name}"), ctypes.c_void_p)
        addresses = (ctypes.c_void_p * len(kinds)).from_address(arguments)
        values = np.array([ctypes.c_int64.from_address(a).value for a in addresses])  # the driver copies arguments

        def run() -> None:
            self._check(name, kinds, values)
            args = (ctypes.c_void_p * len(values))(*(values.ctypes.data + 8 * i for i in range(len(values))))
            library.hg_run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64]
            if library.hg_run(call, args, groups, items):
                raise FakeError(f"cudaErrorLaunchFailure: items of {name} wait at different barriers")

        self._put(stream, run)

    def _check(self, name: str, kinds: str, values: np.ndarray) -> None:
        """Refuses addresses that are not of live memory, those in a table too."""
        table, *given = (int(v) for v in values)
        if table:
            assert self.holds(table), f"the table of {name}"
            given = [_placed(table, v) if kind == "p" else v for kind, v in zip(kinds[1:], given, strict=True)]
        for kind, value in zip(kinds[1:], given, strict=True):
            if kind == "p" and not self._is_valid(value):
                raise FakeError(f"cudaErrorIllegalAddress: {value:#x} in {name}")

    def _is_valid(self, address: int) -> bool:
        return self.holds(address)

    def multiply(self, rows: int, columns: int, terms: int, left: Matrix, right: Matrix, out: Matrix, stream: int, tf32: bool, batch: int) -> None:
        def run() -> None:
            shapes = [(rows, terms), (terms, columns), (rows, columns)]
            for i in range(batch):
                each = [x._replace(address=x.address + i * x.apart * np.dtype(dtypes.of(x.dtype).np).itemsize) for x in (left, right, out)]
                a, b, c = (_by_columns(x, shape) for x, shape in zip(each, shapes, strict=True))
                c[...] = a.astype(np.float32) @ b.astype(np.float32)

        self.counts["products"] += 1
        self._put(stream, run)

    # --- graphs --------------------------------------------------------------------------------------------------------

    def begin_capture(self, stream: int) -> None:
        assert stream, "the default stream cannot be captured"
        self.capturing[stream] = []

    def end_capture(self, stream: int) -> int:
        number = next(self._numbers)
        self.graphs[number] = self.capturing.pop(stream)
        return number

    def launch_graph(self, graph: int, stream: int) -> None:
        self.counts["graphs"] += 1
        for action in self.graphs[graph]:
            self._put(stream, action)

    def current_context(self) -> int:
        return 0

    def destroy_graph(self, graph: int) -> None:
        del self.graphs[graph]
