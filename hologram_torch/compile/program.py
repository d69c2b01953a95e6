"""A partitioned FX graph as one Python function: compiled segments on the addresses of tensors, and calls of PyTorch between them."""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import fx
from torch._C._dynamo import guards

from hologram.backends.cpu.memory_code import STREAM_BYTES
from hologram.errors import IndexOutOfRange
from hologram.trace.aval import aval
from hologram.trace.compiling import compile_graph
from hologram_torch.compile.layout import contiguous, layout_of
from hologram_torch.compile.partition import Analysis, Segment
from hologram_torch.compile.simplify import is_token
from hologram_torch.compile.values import TensorType
from hologram_torch.interop import dtype_of, in_kept_memory
from hologram_torch.threads import share

allocate: Callable[..., torch.Tensor] = getattr(guards, "_empty_strided_cpu", torch.empty_strided)  # the former is half the cost
FAULTING = 64 << 10  # bytes of a result from which on memory that stays mapped is worth the dearer object


def like(x: torch.Tensor, shape: tuple[int, ...], strides: tuple[int, ...]) -> torch.Tensor:
    """``x`` with these strides: itself, or a copy."""
    if x.stride() == strides or 0 in shape:
        return x
    return torch.empty_strided(shape, strides, dtype=x.dtype).copy_(x)


def raise_stray(nodes: str) -> None:
    raise IndexOutOfRange(f"an index is out of range in the compiled graph's {nodes}")


class Writer:
    """Writes the text of the function, and what its names mean."""

    def __init__(self, module: fx.GraphModule, analysis: Analysis, precision: str) -> None:
        self.module, self.analysis, self.precision = module, analysis, precision
        self.lines: list[str] = []
        self.names: dict[str, Any] = {
            "hg_empty": allocate,
            "hg_like": like,
            "hg_kept": in_kept_memory,
            "hg_move": ctypes.memmove,
            "hg_raise": raise_stray,
        }
        self.executables: list[Any] = []
        self._contiguous: dict[fx.Node, str] = {}
        self._known: dict[tuple[type, Any], str] = {}
        self._ready: set[str] = set()
        self.assigned: set[fx.Node] = set()  # assignments to arguments in whose memory the values are computed

    def write(self) -> Callable[[list[Any]], tuple[Any, ...]]:
        """The function: of a list of arguments, which it empties, to a tuple of results."""
        share()
        self._arguments()
        for segment, others in self.analysis.stages:
            if segment is not None:
                self._segment(segment)
            for node in others:
                if node not in self.assigned:
                    self._by_torch(node)
        results = [self._value(x) for x in self.analysis.results]
        text = "\n    ".join(["def call(args):", *self.lines, f"return ({''.join(r + ', ' for r in results)})"])
        exec(compile(text, "<hologram program>", "exec"), self.names)  # noqa: S102
        call = self.names["call"]
        call._boxed_call = True
        return call

    # --- names -------------------------------------------------------------------------------------------------------------

    def _name(self, value: Any, hint: str) -> str:
        """A global name for a value, one for equal values of one type where they can be compared."""
        try:
            key = (type(value), value)
            found = self._known.get(key)
        except TypeError:
            key, found = (object, id(value)), None
        if found is None:
            found = self._known[key] = f"hg_{hint}{len(self.names)}"
            self.names[found] = value
        return found

    def _value(self, x: Any) -> str:
        """The expression of an argument or result in the function."""
        if isinstance(x, fx.Node):
            of = self.analysis.types[x]
            return repr(of) if isinstance(of, (bool, int)) else x.name
        if isinstance(x, (list, tuple)):
            return f"[{', '.join(self._value(v) for v in x)}]"
        if isinstance(x, slice):
            return f"slice({self._value(x.start)}, {self._value(x.stop)}, {self._value(x.step)})"
        if x is None or type(x) in (bool, int, str):
            return repr(x)
        return self._name(x, "v")

    # --- statements --------------------------------------------------------------------------------------------------------

    def _arguments(self) -> None:
        names = [p.name for p in self.analysis.placeholders]
        if names:
            self.lines.append(f"{', '.join(names)}, = args")
            self.lines.append("args.clear()")
        for p in self.analysis.placeholders:
            of = self.analysis.types[p]
            if isinstance(of, TensorType) and of.lazy:
                self.lines.append(f"{p.name} = {p.name}.resolve_conj().resolve_neg()")
            if isinstance(of, TensorType) and p.name.startswith("tangents") and not is_token(p):
                self._restride(p.name, of)
        for node in self.module.graph.find_nodes(op="get_attr"):
            self.names[node.name] = operator.attrgetter(node.target)(self.module)

    def _restride(self, name: str, of: TensorType) -> None:
        shape, strides = self._name(of.shape, "n"), self._name(of.strides, "n")
        self.lines.append(f"if {name}.stride() != {strides}: {name} = hg_like({name}, {shape}, {strides})")

    def _address(self, node: fx.Node) -> str:
        of = self.analysis.types[node]
        if layout_of(of.shape, of.strides) is None:
            name = f"{node.name}_c"
            if name not in self._ready:
                self._ready.add(name)
                self.lines.append(f"{name} = {node.name}.contiguous()")
            return f"{name}.data_ptr()"
        return f"{node.name}.data_ptr()"

    def _segment(self, segment: Segment) -> None:
        if segment.outputs:
            self._compiled(segment)
        for x, base in segment.views:
            of, start = self.analysis.types[x], self.analysis.types[x].offset - self.analysis.types[base].offset
            offset = str(start) if base in segment.outputs else f"{base.name}.storage_offset() + {start}"
            self.lines.append(f"{x.name} = {base.name}.as_strided({self._name(of.shape, 'n')}, {self._name(of.strides, 'n')}, {offset})")

    def _compiled(self, segment: Segment) -> None:
        executable: Any = compile_graph(self.analysis.record(segment), self.precision)
        self.executables.append(executable)
        run = self._name(executable.bound(), "run")
        sources = [self._address(x) for x in segment.inputs]
        written: dict[int, str] = {}
        copies: list[str] = []
        laid: list[tuple[fx.Node, str]] = []
        donated = self._donated(segment, executable)
        targets = [(donated.get(node) or self._allocate(node, laid), self._nbytes(node)) for node in segment.outputs]
        if segment.indexing:
            targets.append((f"hg_stray{len(self.executables)}", 1))
            self.lines.append(f"{targets[-1][0]} = hg_empty((), (), {self._name(torch.bool, 't')})")
        for (target, nbytes), (kind, index) in zip(targets, executable.outputs, strict=True):
            if kind == "computed" and index not in written:
                written[index] = target
            elif kind == "constant":
                copies.append(f"hg_move({target}.data_ptr(), {executable.constants[index].data}, {nbytes})")
            else:
                source = f"{written[index]}.data_ptr()" if kind == "computed" else sources[index]
                copies.append(f"hg_move({target}.data_ptr(), {source}, {nbytes})")
        if written:
            self.lines.append(f"{run}({', '.join(sources + [written[i] + '.data_ptr()' for i in range(len(written))])})")
        self.lines += copies
        if segment.indexing:
            self.lines.append(f"if {targets[-1][0]}.item(): hg_raise({', '.join(segment.indexing)!r})")
        for node, target in laid:
            of = self.analysis.types[node]
            self.lines.append(f"{node.name} = hg_like({target}, {self._name(of.shape, 'n')}, {self._name(of.strides, 'n')})")

    def _donated(self, segment: Segment, executable: Any) -> dict[fx.Node, str]:
        """Arguments in whose memory outputs are computed that become their new values; by both names the arguments go from then on."""
        found: dict[fx.Node, str] = {}
        for node, (kind, index) in zip(segment.outputs, executable.outputs, strict=False):
            assignment = self.analysis.overwritten(segment, node)
            if assignment is None or kind != "computed" or self._nbytes(node) >= STREAM_BYTES:
                continue
            argument: Any = assignment.args[0]
            if segment.inputs.index(argument) in executable.donors[index]:
                found[node] = argument.name
                self.lines.append(f"{node.name} = {assignment.name} = {argument.name}")
                self.assigned.add(assignment)
        return found

    def _allocate(self, node: fx.Node, laid: list[tuple[fx.Node, str]]) -> str:
        """Writes the allocation of an output; one whose strides leave gaps is computed in C order first, and noted in ``laid``."""
        of = self.analysis.types[node]
        name, strides = node.name, of.strides
        if not self.analysis.is_dense(node):
            name, strides = node.name + "_c", contiguous(of.shape)
            laid.append((node, name))
        shape, dtype = self._name(of.shape, "n"), self._name(of.dtype, "t")
        if self._nbytes(node) < FAULTING or self._repeats(of):
            self.lines.append(f"{name} = hg_empty({shape}, {self._name(strides, 'n')}, {dtype})")
        else:
            kept = self._name(aval(dtype_of(of.dtype), of.shape), "a")
            in_bytes = self._name(tuple(n * of.dtype.itemsize for n in strides), "n")
            self.lines.append(f"{name} = hg_kept({kept}, {in_bytes}, {dtype})")
        return name

    @staticmethod
    def _repeats(of: TensorType) -> bool:
        """Whether elements of the tensor share memory."""
        return any(n > 1 and step == 0 for n, step in zip(of.shape, of.strides, strict=True))

    def _nbytes(self, node: fx.Node) -> int:
        size = self.analysis.types[node].dtype.itemsize
        for n in self.analysis.output_layout(node).body:
            size *= n
        return size

    def _by_torch(self, node: fx.Node) -> None:
        arguments = [self._value(x) for x in node.args] + [f"{k}={self._value(v)}" for k, v in node.kwargs.items()]
        if node.target is operator.getitem:
            self.lines.append(f"{node.name} = {arguments[0]}[{arguments[1]}]")
        else:
            self.lines.append(f"{node.name} = {self._name(node.target, 'op')}({', '.join(arguments)})")
        of = self.analysis.types[node]
        if isinstance(of, TensorType) and of.device == "cpu" and not is_token(node):
            if of.lazy or any(self._is_complex(x) for x in node.all_input_nodes):
                self.lines.append(f"{node.name} = {node.name}.resolve_conj().resolve_neg()")
            self._restride(node.name, of)

    def _is_complex(self, node: fx.Node) -> bool:
        of = self.analysis.types[node]
        return isinstance(of, TensorType) and of.dtype.is_complex
