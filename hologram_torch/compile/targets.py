"""Targets: how a segment's program is compiled, called and given memory, on the CPU and on CUDA devices.

A call takes the addresses of arguments and results, all of them tensors that PyTorch allocated. So there are no copies, PyTorch's rules for the
lifetime of memory hold, and on CUDA a program is work in PyTorch's current stream.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch._C._dynamo import guards

from hologram.backends.llvm.memory import NONTEMPORAL_BYTES
from hologram.errors import DeviceError, IndexOutOfRange
from hologram.ir.aval import aval
from hologram.ir.graph import Graph
from hologram.support.lru_cache import Recent
from hologram.trace.compiling import compile_graph
from hologram_torch.bridge import cuda
from hologram_torch.bridge.element_types import dtype_of
from hologram_torch.bridge.interop import in_kept_memory
from hologram_torch.bridge.threads import share
from hologram_torch.compile.symbolic_sizes import NotSymbolic

HOST = "cpu"
MIN_MAPPED_BYTES = 64 << 10  # bytes of a result from which on memory that stays mapped is worth the dearer object
MAX_BOUND_SIZES = 64  # sizes for which a program keeps its plan of memory
SCALAR_BYTES = 16  # from one scalar to the next of those that are copied to a device together

Name = Callable[[Any, str], str]  # gives a value a name in the function that is written


class Compiled(NamedTuple):
    """A segment's compiled program.

    - ``run``: takes the addresses of all inputs, and then of all computed results. ``bound`` is what it calls on devices other than the CPU.
    - ``outputs``: for each result whether it is an ``input``, a ``constant`` or ``computed``, and its number among these.
    - ``constants``: their addresses. ``donors[i]``: inputs in whose memory the i-th computed result may be stored.
    """

    executable: Any
    run: Callable[..., Any]
    outputs: Sequence[tuple[str, int]]
    constants: Sequence[int]
    donors: Sequence[Sequence[int]]
    bound: Any = None


class AtSizes:
    """A program with symbolic sizes: from their values, in the order of ``names``, to the function of addresses that runs it."""

    __slots__ = ("_bound", "_executable", "_names")

    def __init__(self, executable: Any, names: Sequence[str]) -> None:
        self._executable, self._names = executable, names
        self._bound = Recent(MAX_BOUND_SIZES)

    def __call__(self, *sizes: int) -> Callable[..., None]:
        found: Callable[..., None] | None = self._bound.get(sizes)
        if found is None:
            found = self._executable.bound(sizes=dict(zip(self._names, sizes, strict=True)))
            self._bound.put(sizes, found)
        return found


class IndexCheck(NamedTuple):
    """How a call learns that an index was out of range.

    ``before``, ``after``: statements around the call. ``written``: the expression of the address that the program writes its flag to; ``known``: that
    of the flag so far, if the program takes one.
    """

    before: list[str]
    after: list[str]
    written: str
    known: str | None


class CpuTarget:
    """The CPU: a call returns when its results are there."""

    aligned_bytes: float = NONTEMPORAL_BYTES  # results from this size on are written past the caches, and start between no lines of these
    move = staticmethod(ctypes.memmove)

    def __init__(self) -> None:
        share()
        self.empty = getattr(guards, "_empty_strided_cpu", torch.empty_strided)  # of shape, strides and type; the former is half the cost

    def compile(self, graph: Graph, precision: str, sizes: Sequence[str] = ()) -> Compiled:
        """Compiles a graph whose symbolic sizes are ``sizes``: if there are any, ``run`` takes their values and gives the function of addresses."""
        executable: Any = compile_graph(graph, precision)
        run = AtSizes(executable, sizes) if sizes else executable.bound()
        return Compiled(executable, run, executable.outputs, [c.data for c in executable.constants], executable.donors)

    def mapped_allocator(
        self, shape: tuple[int, ...], strides: tuple[int, ...], dtype: torch.dtype, nbytes: int
    ) -> Callable[[], torch.Tensor] | None:
        """A function that allocates memory which stays mapped when it is freed; None where that gains nothing."""
        repeats = any(n > 1 and step == 0 for n, step in zip(shape, strides, strict=True))  # elements share memory
        if nbytes < MIN_MAPPED_BYTES or repeats:
            return None
        return partial(in_kept_memory, aval(dtype_of(dtype), shape), tuple(n * dtype.itemsize for n in strides), dtype)

    def empty_of_any_size(self, shape: tuple[int, ...], strides: tuple[int, ...], dtype: torch.dtype, nbytes: int) -> torch.Tensor:
        """A new tensor without gaps, of a size that is known in the call."""
        if nbytes < MIN_MAPPED_BYTES:
            return self.empty(shape, strides, dtype)  # type: ignore[call-arg]
        return in_kept_memory(aval(dtype_of(dtype), shape), tuple([n * dtype.itemsize for n in strides]), dtype)

    def check(self, program: Compiled, nodes: str, name: Name, verdict: str) -> IndexCheck:
        """The check of the program's indices; ``verdict`` is the name of the variable for its flag."""
        made = f"{verdict} = {name(self.empty, 'empty')}((), (), {name(torch.bool, 't')})"
        complain = name(partial(raise_out_of_range, nodes, "the"), "raise")
        return IndexCheck([made], [f"if {verdict}.item(): {complain}()"], f"{verdict}.data_ptr()", None)

    def scalar_transfer(self, sizes: Sequence[int]) -> Callable[..., torch.Tensor]:
        raise AssertionError("scalars of other devices are not read here")


class CudaTarget:
    """A CUDA device: calls return before the device is done."""

    aligned_bytes = float("inf")

    def __init__(self, name: str) -> None:
        self.name, self.device = name, torch.device(name)
        self.empty = cuda.empty_on(self.device)
        self.stream = cuda.raw_stream(self.device)

    def compile(self, graph: Graph, precision: str, sizes: Sequence[str] = ()) -> Compiled:
        from hologram.backends.cuda.bound import Bound, Taken

        if sizes:
            raise NotSymbolic("programs of a device are bound to memory of known sizes")

        def take(nbytes: int) -> Taken:
            """New memory of the CUDA graph that PyTorch captures: of that graph's pool, to which it returns with the tensor."""
            memory = self.empty((nbytes,), (1,), torch.uint8)
            return Taken(memory.data_ptr(), memory)

        executable: Any = compile_graph(graph, cuda.float32_precision() if precision == "standard" else precision, self.name)
        bound = Bound(executable, torch.cuda.empty_cache)
        plan = executable.execution_plan
        outputs = [(o.kind, o.index) for o in plan.outputs]
        return Compiled(executable, self._run(bound, take), outputs, bound.constants, plan.donors(), bound)

    def _run(self, bound: Any, take: Callable[[int], Any]) -> Callable[..., None]:
        stream, is_capturing = self.stream, cuda.is_capturing

        def run(*addresses: int) -> None:
            if is_capturing():
                bound.captured(stream(), addresses, take)
            else:
                bound(stream(), addresses)

        return run

    def move(self, to: int, source: int, nbytes: int) -> None:
        from hologram.backends.cuda.bound import copy

        copy(cuda.device_named(self.name), self.stream(), to, source, nbytes)

    def mapped_allocator(self, shape: tuple[int, ...], strides: tuple[int, ...], dtype: torch.dtype, nbytes: int) -> None:
        """None: PyTorch's memory on the device stays mapped."""

    def check(self, program: Compiled, nodes: str, name: Name, verdict: str) -> IndexCheck:
        """The check of the program's indices: the program sets a flag in host memory, which the next call reads, so that no call waits for its
        own."""
        flag = program.bound.flag()

        def complain() -> None:
            flag.clear()
            raise_out_of_range(nodes, "an earlier call of the")

        before = f"if {name(flag, 'flag')}.is_set(): {name(complain, 'raise')}()"
        known, (kind, index) = len(program.executable.execution_plan.inputs) - 1, program.outputs[-1]
        in_place = kind == "computed" and known in program.donors[index]
        return IndexCheck([before], [], str(flag.address if in_place else flag.other), str(flag.address))

    def scalar_transfer(self, sizes: Sequence[int]) -> Callable[..., torch.Tensor]:
        """A function of the addresses of CPU scalars of these sizes in bytes that copies them to one tensor on the device, ``SCALAR_BYTES`` apart.

        They go by one copy, from memory that nobody else has.
        """
        device, room = self.device, (SCALAR_BYTES * len(sizes),)

        def transferred(*addresses: int) -> torch.Tensor:
            staged = torch.empty(room, dtype=torch.uint8)
            at = staged.data_ptr()
            for address, nbytes in zip(addresses, sizes, strict=True):
                ctypes.memmove(at, address, nbytes)
                at += SCALAR_BYTES
            return cuda.sent(staged, device)

        return transferred


def raise_out_of_range(nodes: str, whose: str) -> None:
    raise IndexOutOfRange(f"an index is out of range in {whose} compiled graph's {nodes}")


def target(device: str) -> CpuTarget | CudaTarget:
    """The target of ``device``. :func:`why_not` says whether there is one."""
    return CpuTarget() if device == HOST else CudaTarget(device)


def why_not(device: str) -> str | None:
    """The reason why Hologram computes no tensors on ``device``; None where it does."""
    if device == HOST:
        return None
    if not device.startswith("cuda"):
        return f"the result is on {device}; Hologram computes tensors on the CPU and on CUDA devices"
    try:
        return cuda.device_named(device).why_not("standard", True)
    except DeviceError as e:
        return str(e)
