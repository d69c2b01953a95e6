"""Programs: traced functions of Hologram with fixed shapes and types, which run on the memory of torch's tensors.

A program is traced when its results' types are asked for, and compiled when it first runs. Transforms of it (its tangents, its form for a stack of
examples, its forward and backward halves) are programs too, so derivatives of any order and nesting use the same code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

import hologram as hg
from hologram.backends.native import storage
from hologram.backends.residence import on_host
from hologram.dtypes import DType
from hologram.errors import ArgumentError, DeviceError
from hologram.ir.aval import aval
from hologram.ir.devices import CPU
from hologram.ir.graph import Graph
from hologram.ir.node import Node
from hologram.ir.op import Shape
from hologram.ir.traversal import topological
from hologram.support.cached_property import cached_property
from hologram.support.lru_cache import Recent
from hologram.support.user_lines import located
from hologram.trace import compiling
from hologram.trace.operators import wrap
from hologram.trace.recorder import Trace, record
from hologram.transform.arguments import array_node, result_node
from hologram.transform.nodes import has_tangents
from hologram_torch.bridge import cuda, interop
from hologram_torch.bridge.element_types import dtype_of, torch_dtype_of
from hologram_torch.bridge.profiler import follow

MAPPED_BYTES = 32 << 20  # bytes of a result from which on the C library maps fresh memory for it each time, which faults at every page
MAX_VARIANTS = 64  # forms kept of one program: masks of differentiated arguments, axes of stacks

Type = tuple[Shape, DType]
Function = Callable[..., Sequence[Any]]


class Program:
    """``function(*Tensors) -> sequence of Tensors`` for arguments of ``types``. ``name`` is for messages, ``device`` is one of Hologram's."""

    def __init__(self, name: str, function: Function, types: Sequence[Type], device: str = CPU) -> None:
        self.name, self.function, self.types, self.device = name, function, tuple(types), device
        self.forward_backward = Recent(MAX_VARIANTS)  # its forms for autograd, by which arguments are differentiated
        self._variants = Recent(MAX_VARIANTS)

    @cached_property
    def graph(self) -> Graph:
        """The traced function. What it raises passes through."""
        with Trace(self.name) as trace:
            arguments = [wrap(trace.input(shape, dtype)) for shape, dtype in self.types]
            return trace.graph([result_node(x, self.name) for x in self.function(*arguments)])

    @property
    def results(self) -> list[Type]:
        """Shapes and types of the results."""
        return [(x.shape, x.dtype) for x in self.graph.outputs]

    @cached_property
    def executable(self) -> Any:
        """The compiled graph."""
        return compiling.compile_graph(self.graph, device=self.device)

    # --- running -------------------------------------------------------------------------------------------------------

    def run(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Runs the program on tensors of its types, on the CPU or on its CUDA device. No result shares memory with an argument."""
        follow()
        given = [plain(x, self.name, self.device) for x in tensors]
        if self.device != CPU:
            return self._run_elsewhere(given)
        computed = [make() for make in self.makers]
        self.bound(*[x.data_ptr() for x in given], *[x.data_ptr() for x in computed])
        return computed if self._is_what_is_computed else self._gathered(given, computed)

    @cached_property
    def bound(self) -> Callable[..., None]:
        """The native function: it takes the addresses of the arguments and of the computed results."""
        found: Callable[..., None] = self.executable.bound()
        return found

    @cached_property
    def makers(self) -> list[Callable[[], torch.Tensor]]:
        """For each computed result, a function that allocates an uninitialised tensor for it."""
        return [maker(a.shape, torch_dtype_of(a.dtype)) for a in self.executable.computed]

    @cached_property
    def _is_what_is_computed(self) -> bool:
        """Whether the results are exactly the computed values, in order."""
        outputs = list(self.executable.outputs)
        return outputs == [("computed", i) for i in range(len(outputs))]

    @property
    def is_plain(self) -> bool:
        """Whether the program is compiled for the CPU and computes one result from arguments that are neither empty nor complex."""
        if self.device != CPU or "executable" not in vars(self) or list(self.executable.outputs) != [("computed", 0)]:
            return False
        return not any(0 in shape or dtype.is_complex for shape, dtype in self.types)

    def _gathered(self, given: Sequence[torch.Tensor], computed: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The results in order. Each is a tensor of its own: values that occur twice, arguments and constants are copied."""
        handed_out: set[int] = set()
        results = []
        for (kind, index), (shape, _) in zip(self.executable.outputs, self.results, strict=True):
            if kind == "computed" and index not in handed_out:
                handed_out.add(index)
                results.append(computed[index])
                continue
            found = {"input": given, "computed": computed, "constant": self._constants}[kind][index]
            results.append(found.reshape(shape).clone())
        return results

    @cached_property
    def _constants(self) -> list[torch.Tensor]:
        return [interop.to_torch(storage.view(s)) for s in self.executable.constants]

    def _run_elsewhere(self, given: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Runs the program on a device other than the CPU. Results are where the arguments are."""
        there = any(cuda.holds(x) for x in given)
        lent = [cuda.borrowed(x) if there else storage.borrow(interop.to_numpy(x)) for x in given]
        found = compiling.run(self.executable, lent)
        return self._taken(found) if there else [interop.to_torch(storage.view(on_host(s)), copy=True) for s in found]

    def _taken(self, found: Sequence[Any]) -> list[torch.Tensor]:
        """The values on a device as tensors there: computed values as they are, arguments and constants copied."""
        handed_out: set[int] = set()
        results = []
        for output, s in zip(self.executable.execution_plan.outputs, found, strict=True):
            own = output.kind == "computed" and output.index not in handed_out
            handed_out.add(output.index)
            results.append(cuda.tensor_of(s) if own else cuda.tensor_of(s).clone())
        return results

    # --- transforms ----------------------------------------------------------------------------------------------------

    def _variant(self, key: Any, make: Callable[[], Any]) -> Any:
        """Returns ``make()``, cached under ``key``."""
        found = self._variants.get(key)
        if found is None:
            found = make()
            self._variants.put(key, found)
        return found

    def tangent(self, moving: tuple[bool, ...]) -> Program:
        """The program of the arguments, and then of a tangent for each that is ``moving``, that gives the tangents of the float results."""
        return self._variant(("tangent", moving), lambda: self._tangent(moving))

    def _tangent(self, moving: tuple[bool, ...]) -> Program:
        n = len(self.types)
        differentiable = [has_tangents(dtype) for _, dtype in self.results]

        def pushed(*values: Any) -> list[Any]:
            primals = list(values[:n])

            def of_moving(*chosen: Any) -> Any:
                results = self.function(*chosen_among(primals, moving, chosen))
                return [y for y, kept in zip(results, differentiable, strict=True) if kept]

            return hg.jvp(of_moving, [x for x, m in zip(primals, moving, strict=True) if m], list(values[n:]))[1]

        return Program(self.name, pushed, [*self.types, *[t for t, m in zip(self.types, moving, strict=True) if m]], self.device)

    def stacked(self, axes: tuple[int | None, ...], size: int) -> Program:
        """The program for ``size`` examples along an axis of each argument; None for an argument that all examples share. Results have the
        examples in front."""
        return self._variant(("stacked", axes, size), lambda: self._stacked(axes, size))

    def _stacked(self, axes: tuple[int | None, ...], size: int) -> Program:
        types = [
            (shape, dtype) if axis is None else ((*shape[:axis], size, *shape[axis:]), dtype)
            for (shape, dtype), axis in zip(self.types, axes, strict=True)
        ]
        return Program(self.name, hg.vmap(lambda *xs: list(self.function(*xs)), in_axes=axes, axis_size=size), types, self.device)


def chosen_among(values: Sequence[Any], flags: Sequence[bool], chosen: Sequence[Any]) -> list[Any]:
    """Replaces those ``values`` whose flag is True by ``chosen``, in order."""
    replacements = iter(chosen)
    return [next(replacements) if flag else x for x, flag in zip(values, flags, strict=True)]


_OWN_MEMORY = (torch.Tensor, torch.nn.Parameter)


def plain(x: torch.Tensor, name: str, device: str = CPU) -> torch.Tensor:
    """The tensor's value in contiguous memory of the CPU, or of CUDA where the program's ``device`` is not the CPU. Copies only where it has to.

    Raises DeviceError for tensors on other devices, ArgumentError for other layouts and for wrappers of other tensors.
    """
    if type(x) in _OWN_MEMORY and x.is_cpu and x.is_contiguous() and not x.is_neg() and not x.is_conj() and _address(x):
        return x
    if not (x.is_cpu or (device != CPU and cuda.holds(x))):
        raise located(DeviceError(f"{name}: an argument is on {x.device}, the others are not"))
    if x.layout is not torch.strided:
        raise located(ArgumentError(f"{name}: an argument has layout {x.layout}, not torch.strided: call to_dense()"))
    if type(x).__torch_dispatch__ is torch.Tensor.__torch_dispatch__:
        x = x.clone() if x._is_zerotensor() else x  # those have no memory
        x = x.resolve_conj().resolve_neg().contiguous()
        if _address(x) is not None:
            return x
    raise located(ArgumentError(f"{name}: a {type(x).__name__} that stands for another tensor has no memory of its own to read"))


def _address(x: torch.Tensor) -> int | None:
    """The address of the tensor's memory. None for a tensor that has none: one of a transform that has ended or does not work by dispatch."""
    try:
        return x.data_ptr()
    except RuntimeError:
        return None


def maker(shape: tuple[int, ...], dtype: torch.dtype) -> Callable[[], torch.Tensor]:
    """Returns a function that allocates an uninitialised C-contiguous tensor of this shape and type."""
    if 0 in shape:
        return lambda: torch.empty(shape, dtype=dtype, device="cpu")
    of = aval(dtype_of(dtype), shape)
    if of.nbytes >= MAPPED_BYTES:
        return partial(interop.in_kept_memory, of, None, dtype)
    # torch takes half as long to make a tensor like another as to make one of a shape; a scalar stretched to the shape costs no memory,
    # and what is like it is contiguous
    return partial(torch.empty_like, torch.empty((), dtype=dtype, device="cpu").expand(shape))


def recorded(outputs: Sequence[Node], values: dict[Node, Node]) -> list[Node]:
    """Records ``outputs`` of another trace in the current one, with nodes replaced as ``values`` says."""
    made = dict(values)
    for n in topological(outputs, stop=made.__contains__):
        if n not in made:
            made[n] = record(n.op, tuple([made[x] for x in n.inputs]), n.attrs)
    return [made[x] for x in outputs]


def replaying(outputs: Sequence[Node], ends: Sequence[Node]) -> Function:
    """Returns the function from the values of ``ends`` to ``outputs``, both nodes of a trace that has ended."""

    def replay(*values: Any) -> list[Any]:
        given = [array_node(x, "replay")[0] for x in values]
        return [wrap(x) for x in recorded(outputs, dict(zip(ends, given, strict=True)))]

    return replay
