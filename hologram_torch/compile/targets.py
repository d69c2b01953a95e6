"""What differs between the devices that segments are computed on: how a program is compiled and called, and where its results are allocated.

A call has the addresses of tensors that PyTorch allocated, arguments and results alike. So memory passes without copies, PyTorch's rules for its
lifetime hold, and on CUDA a program is work in PyTorch's current stream like any other.
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
from hologram.trace.compiling import compile_graph
from hologram_torch.bridge import cuda
from hologram_torch.bridge.element_types import dtype_of
from hologram_torch.bridge.interop import in_kept_memory
from hologram_torch.bridge.threads import share

HOST = "cpu"
MIN_MAPPED_BYTES = 64 << 10  # bytes of a result from which on memory that stays mapped is worth the dearer object
SCALAR_BYTES = 16  # from one scalar to the next of those that are copied to a device together

Name = Callable[[Any, str], str]  # gives a value a name in the function that is written


class Compiled(NamedTuple):
    """A segment's program. ``run`` takes the addresses of all inputs and then of all that is computed. ``outputs`` says of each result whether it is
    an ``input``, a ``constant`` or ``computed``, and which; ``constants`` are addresses; ``donors[i]`` are inputs in whose memory the i-th
    computed result may be put. ``bound`` is what ``run`` calls on another device than the CPU."""

    executable: Any
    run: Callable[..., None]
    outputs: Sequence[tuple[str, int]]
    constants: Sequence[int]
    donors: Sequence[Sequence[int]]
    bound: Any = None


class Check(NamedTuple):
    """How a program's verdict on its indices is read: statements before the call and after it, the expression of the address that the verdict is
    written to, and that of the address of the verdict so far, if the program takes one."""

    before: list[str]
    after: list[str]
    written: str
    known: str | None


class Host:
    """The CPU: a call returns when its results are there."""

    max_donated_bytes: float = NONTEMPORAL_BYTES  # larger results are written past the caches, in memory of their own
    move = staticmethod(ctypes.memmove)

    def __init__(self) -> None:
        share()
        self.empty = getattr(guards, "_empty_strided_cpu", torch.empty_strided)  # of shape, strides and type; the former is half the cost

    def compile(self, graph: Graph, precision: str) -> Compiled:
        executable: Any = compile_graph(graph, precision)
        return Compiled(executable, executable.bound(), executable.outputs, [c.data for c in executable.constants], executable.donors)

    def kept(self, shape: tuple[int, ...], strides: tuple[int, ...], dtype: torch.dtype, nbytes: int) -> Callable[[], torch.Tensor] | None:
        """What makes a tensor of memory that stays mapped when it is freed; None where that gains nothing."""
        repeats = any(n > 1 and step == 0 for n, step in zip(shape, strides, strict=True))  # elements share memory
        if nbytes < MIN_MAPPED_BYTES or repeats:
            return None
        return partial(in_kept_memory, aval(dtype_of(dtype), shape), tuple(n * dtype.itemsize for n in strides), dtype)

    def check(self, program: Compiled, nodes: str, name: Name, verdict: str) -> Check:
        """``verdict`` is a variable's name."""
        made = f"{verdict} = {name(self.empty, 'empty')}((), (), {name(torch.bool, 't')})"
        return Check([made], [f"if {verdict}.item(): {name(partial(raise_out_of_range, nodes, 'the'), 'raise')}()"], f"{verdict}.data_ptr()", None)

    def carry(self, sizes: Sequence[int]) -> Callable[..., torch.Tensor]:
        raise AssertionError("scalars of other devices are not read here")


class Cuda:
    """A CUDA device, which Hologram can use: calls return before it is done."""

    max_donated_bytes = float("inf")

    def __init__(self, name: str) -> None:
        self.name, self.device = name, torch.device(name)
        self.empty = cuda.empty_on(self.device)
        self.stream = cuda.raw_stream(self.device)

    def compile(self, graph: Graph, precision: str) -> Compiled:
        from hologram.backends.cuda.bound import Bound

        executable: Any = compile_graph(graph, cuda.float32_precision() if precision == "standard" else precision, self.name)
        bound = Bound(executable, torch.cuda.empty_cache)
        schedule = executable.schedule
        outputs = [(o.kind, o.index) for o in schedule.outputs]
        return Compiled(executable, self._run(bound), outputs, bound.constants, schedule.donors(), bound)

    def _run(self, bound: Any) -> Callable[..., None]:
        stream, is_capturing, take = self.stream, cuda.is_capturing, self._taken

        def run(*addresses: int) -> None:
            if is_capturing():
                bound.captured(stream(), addresses, take)
            else:
                bound(stream(), addresses)

        return run

    def _taken(self, nbytes: int) -> int:
        """The address of memory of a graph that PyTorch captures: what is allocated then is the graph's, also when the tensor is gone."""
        return self.empty((nbytes,), (1,), torch.uint8).data_ptr()

    def move(self, to: int, source: int, nbytes: int) -> None:
        from hologram.backends.cuda.bound import copy

        copy(cuda.device_named(self.name), self.stream(), to, source, nbytes)

    def kept(self, shape: tuple[int, ...], strides: tuple[int, ...], dtype: torch.dtype, nbytes: int) -> None:
        """PyTorch's memory of the device stays mapped."""

    def check(self, program: Compiled, nodes: str, name: Name, verdict: str) -> Check:
        """A program that finds an index out of range says so in the host's memory, and the next call reads it there: none waits for its own."""
        flag = program.bound.flag()

        def complain() -> None:
            flag.clear()
            raise_out_of_range(nodes, "an earlier call of the")

        before = f"if {name(flag, 'flag')}.is_set(): {name(complain, 'raise')}()"
        known, (kind, index) = len(program.executable.schedule.inputs) - 1, program.outputs[-1]
        in_place = kind == "computed" and known in program.donors[index]
        return Check([before], [], str(flag.address if in_place else flag.other), str(flag.address))

    def carry(self, sizes: Sequence[int]) -> Callable[..., torch.Tensor]:
        """A function of the addresses of scalars on the CPU, of these numbers of bytes, that gives a tensor with them on the device, ``SCALAR_BYTES``
        apart. They go by one copy, from memory that nobody else has."""
        device, room = self.device, (SCALAR_BYTES * len(sizes),)

        def carried(*addresses: int) -> torch.Tensor:
            staged = torch.empty(room, dtype=torch.uint8)
            at = staged.data_ptr()
            for address, nbytes in zip(addresses, sizes, strict=True):
                ctypes.memmove(at, address, nbytes)
                at += SCALAR_BYTES
            return cuda.sent(staged, device)

        return carried


def raise_out_of_range(nodes: str, whose: str) -> None:
    raise IndexOutOfRange(f"an index is out of range in {whose} compiled graph's {nodes}")


def target(device: str) -> Host | Cuda:
    """What computes on ``device``, which :func:`why_not` has nothing against."""
    return Host() if device == HOST else Cuda(device)


def why_not(device: str) -> str | None:
    """Why Hologram computes no tensors of a device of PyTorch's; None where it does."""
    if device == HOST:
        return None
    if not device.startswith("cuda"):
        return f"the result is on {device}; Hologram computes tensors on the CPU and on CUDA devices"
    try:
        return cuda.device_named(device).why_not("standard", True)
    except DeviceError as e:
        return str(e)
