"""Program writer: a partitioned FX graph as the text of one Python function, which calls compiled segments and PyTorch."""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import fx
from torch.autograd import profiler

from hologram.backends.llvm.memory import CACHE_LINE
from hologram.ir.strides import contiguous_strides, own_movement
from hologram.ir.symbolic import Expr, Int
from hologram.ir.symbolic import symbols_of as variables_of
from hologram_torch.bridge.profiler import RANGES
from hologram_torch.compile.fx_types import NUMBER, TensorType
from hologram_torch.compile.partition import Partition, Segment, viewed
from hologram_torch.compile.simplify import is_token
from hologram_torch.compile.symbolic_sizes import SymbolicSizes, size_sources
from hologram_torch.compile.targets import SCALAR_BYTES, Compiled, CpuTarget, CudaTarget, target

Call = Callable[[list[Any]], Any]


def conform(x: torch.Tensor, shape: tuple[int, ...], strides: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """``x`` with these strides and of this type: itself where it has them, else a copy."""
    if x.dtype is dtype and (x.stride() == strides or 0 in shape):
        return x
    if 0 not in strides:
        return torch.empty_strided(shape, strides, dtype=dtype, device=x.device).copy_(x)
    once = x[tuple([slice(0, 1) if step == 0 else slice(None) for step in strides])]
    return torch.empty_strided(once.shape, strides, dtype=dtype, device=x.device).copy_(once).expand(shape)


class ProgramWriter:
    """Writes the text of the function, and collects the values of its global names.

    With symbolic sizes (:mod:`symbolic_sizes`) the function finds their values, and calls ``otherwise`` where an assumption fails.
    """

    def __init__(self, module: fx.GraphModule, partition: Partition, precision: str, otherwise: Call | None = None) -> None:
        self.module, self.partition, self.precision = module, partition, precision
        self.lines: list[str] = []
        self.names: dict[str, Any] = {"hg_conform": conform, "hg_otherwise": otherwise}
        self.names |= {"hg_int64": ctypes.c_int64, "hg_float64": ctypes.c_double, "hg_addressof": ctypes.addressof}
        self.names |= {"hg_profiler": profiler, "hg_ranges": RANGES}
        self.executables: list[Any] = []
        self._targets: dict[str, CpuTarget | CudaTarget] = {}
        self._variables = 0
        self._contiguous: dict[fx.Node, str] = {}
        self._known: dict[tuple[type, Any], str] = {}
        self._ready: set[str] = set()
        self._replays: dict[fx.Node, str] = {}
        self._in_place: set[fx.Node] = set()  # outputs that may be in the memory of arguments
        self.assigned: set[fx.Node] = set()  # assignments to arguments in whose memory the values are computed

    def write(self) -> Callable[[list[Any]], tuple[Any, ...]]:
        """Writes and compiles the function: it takes a list of arguments, which it empties, and returns a tuple of results. Raises NotSymbolic where
        it cannot be for all sizes."""
        self._arguments()
        for segments, others in self.partition.stages:
            for segment in segments:
                self._segment(segment)
            for node in others:
                if node not in self.assigned:
                    self._by_torch(node)
        results = [self._result(x) for x in self.partition.results]
        followed = "if hg_profiler._is_profiler_enabled is not hg_ranges.is_on: hg_ranges.follow()"
        text = "\n    ".join(["def call(args):", *self._taken(), followed, *self.lines, f"return ({''.join(r + ', ' for r in results)})"])
        exec(compile(text, "<hologram program>", "exec"), self.names)  # noqa: S102
        call = self.names["call"]
        call._boxed_call = True
        return call

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices of the segments."""
        return tuple(self._targets)

    # --- names -------------------------------------------------------------------------------------------------------------

    def _name(self, value: Any, hint: str) -> str:
        """A global name for a value; equal values of one type share a name."""
        try:
            key = (type(value), value)
            found = self._known.get(key)
        except TypeError:
            key, found = (object, id(value)), None
        if found is None:
            found = self._known[key] = f"hg_{hint}{len(self.names)}"
            self.names[found] = value
        return found

    def _variable(self, hint: str) -> str:
        """A new name for a local value."""
        self._variables += 1
        return f"hg_{hint}_{self._variables}"

    def _value(self, x: Any) -> str:
        """The expression of an argument or result in the function."""
        if isinstance(x, fx.Node):
            of = self.partition.types[x]
            return f"({of})" if isinstance(of, (bool, int, Expr)) else x.name
        if isinstance(x, tuple):  # which ops of higher order tell from a list
            return f"({''.join(self._value(v) + ', ' for v in x)})"
        if isinstance(x, list):
            return f"[{', '.join(self._value(v) for v in x)}]"
        if isinstance(x, slice):
            return f"slice({self._value(x.start)}, {self._value(x.stop)}, {self._value(x.step)})"
        if x is None or type(x) in (bool, int, str):
            return repr(x)
        return self._name(x, "v")

    def _extents(self, of: tuple[Int, ...]) -> str:
        """The expression of a shape or of strides."""
        if any(isinstance(n, Expr) for n in of):
            return f"({''.join(f'{n}, ' for n in of)})"
        return self._name(of, "n")

    # --- statements --------------------------------------------------------------------------------------------------------

    def _taken(self) -> list[str]:
        """Statements that take the arguments, and find the values of symbolic sizes."""
        names, sizes = [p.name for p in self.partition.placeholders], self.partition.sizes
        if not names:
            return []
        lines = [f"{', '.join(names)}, = args"]
        if isinstance(sizes, SymbolicSizes):
            sources = size_sources(self.partition.placeholders)
            said: dict[Int, str] = {}
            for symbol, variable in sizes.items():
                said.setdefault(variable, sources[symbol])
            lines += [f"{variable} = {source}" for variable, source in said.items()]
            failed = [f"{sources[s]} != {v}" for s, v in sizes.items() if sources[s] != said[v]] + [f"{slack} < 0" for slack in sizes.assumptions]
            lines.append(f"if {' or '.join(failed)}: return hg_otherwise(args)")
        return [*lines, "args.clear()"]

    def _arguments(self) -> None:
        for p in self.partition.placeholders:
            of = self.partition.types[p]
            if isinstance(of, TensorType) and of.lazy:
                self.lines += [f"{p.name}_pending = {p.name}", f"{p.name} = {p.name}.resolve_conj().resolve_neg()"]
                if own_movement(of.shape, of.strides) is not None:
                    self._conform(p.name, of)  # copies of tensors with gaps have none
            if isinstance(of, TensorType) and p.name.startswith("tangents") and not is_token(p):
                self._conform(p.name, of)
        for node in self.module.graph.find_nodes(op="get_attr"):
            self.names[node.name] = operator.attrgetter(node.target)(self.module)

    def _conform(self, name: str, of: TensorType) -> None:
        """Writes that a value is made to have the strides and the type that the graph promises.

        Kernels of PyTorch may give other strides, or, where their arguments' strides differ, another type.
        """
        shape, strides, dtype = self._extents(of.shape), self._extents(of.strides), self._name(of.dtype, "t")
        self.lines.append(f"if {name}.stride() != {strides} or {name}.dtype is not {dtype}: {name} = hg_conform({name}, {shape}, {strides}, {dtype})")

    def _address(self, node: fx.Node) -> str:
        of = self.partition.types[node]
        if node in self.partition.positions or of is NUMBER:
            name = f"{node.name}_at"
            if name not in self._ready:
                self._ready.add(name)
                self.lines.append(f"{name} = {'hg_float64' if of is NUMBER else 'hg_int64'}({node.name})")
            return f"hg_addressof({name})"
        if own_movement(of.shape, of.strides) is None:
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
            of, start = self.partition.types[x], self.partition.types[x].offset - self.partition.types[base].offset
            offset = str(start) if base in segment.outputs and base not in self._in_place else f"{base.name}.storage_offset() + {start}"
            self.lines.append(f"{x.name} = {base.name}.as_strided({self._extents(of.shape)}, {self._extents(of.strides)}, {offset})")

    def _target(self, device: str) -> CpuTarget | CudaTarget:
        if device not in self._targets:
            self._targets[device] = target(device)
        return self._targets[device]

    def _compiled(self, segment: Segment) -> None:
        there = self._target(segment.device)
        graph = self.partition.record(segment)
        sizes = sorted(variables_of([x.shape for x in graph.inputs]))
        program = there.compile(graph, self.precision, sizes)
        self.executables.append(program.executable)
        sources = self._sources(segment, there)
        gapped: list[tuple[fx.Node, str]] = []
        donated = self._donated(segment, program)
        after: list[str] = []
        tensors = []
        for node in segment.outputs:
            if node in donated:
                tensors.append(node.name)
                after += self._overwrite(segment, node, donated[node], there)
            else:
                tensors.append(self._allocate(segment, node, gapped, there))
        targets = [(f"{t}.data_ptr()", self._nbytes(segment, node)) for t, node in zip(tensors, segment.outputs, strict=True)]
        if segment.indexing:
            check = there.check(program, ", ".join(segment.indexing), self._name, self._variable("out_of_range"))
            self.lines += check.before
            after = [*check.after, *after]
            targets.append((check.written, 1))
            sources += [check.known] if check.known is not None else []
        sources += ["0"] * len(segment.carriers)
        self._call(program, there, sources, targets, sizes)
        self.lines += after
        for node, made in gapped:
            of = self.partition.types[node]
            options = self._extents(of.shape), self._extents(of.strides), self._name(of.dtype, "t")
            self.lines.append(f"{node.name} = hg_conform({made}, {', '.join(options)})")

    def _call(
        self, program: Compiled, there: CpuTarget | CudaTarget, sources: list[str], targets: list[tuple[str, Int]], sizes: Sequence[str]
    ) -> None:
        """Writes the call of a program, and copies of results that it does not compute. ``sources`` and ``targets`` are expressions of addresses;
        targets have their numbers of bytes. ``sizes`` are symbolic sizes that the program is run for."""
        written: dict[int, str] = {}
        copies: list[str] = []
        for (to, nbytes), (kind, index) in zip(targets, program.outputs, strict=True):
            if kind == "computed" and index not in written:
                written[index] = to
            else:
                found = {"computed": written, "constant": program.constants, "input": sources}[kind][index]  # type: ignore[index]
                copies.append(f"{self._name(there.move, 'move')}({to}, {found}, {nbytes})")
        if written:
            run = self._name(program.run, "run") + (f"({', '.join(sizes)})" if sizes else "")
            self.lines.append(f"{run}({', '.join(sources + [written[i] for i in range(len(written))])})")
        self.lines += copies

    def _sources(self, segment: Segment, there: CpuTarget | CudaTarget) -> list[str]:
        """Expressions of the addresses of the inputs; scalars on the CPU are copied to another device first."""
        away = [x for x in segment.inputs if self.partition.types[x].device != segment.device]
        if not away:
            return [self._address(x) for x in segment.inputs]
        transfer = there.scalar_transfer([self.partition.types[x].dtype.itemsize for x in away])
        name = self._variable("scalars")
        self.lines.append(f"{name} = {self._name(transfer, 'transfer')}({', '.join(self._address(x) for x in away)})")
        self.lines.append(f"{name}_at = {name}.data_ptr()")
        transferred = {x: f"{name}_at + {SCALAR_BYTES * i}" for i, x in enumerate(away)}
        return [transferred.get(x) or self._address(x) for x in segment.inputs]

    def _donated(self, segment: Segment, program: Compiled) -> dict[fx.Node, fx.Node]:
        """Donated arguments: outputs that become the new values of arguments and are computed in the arguments' memory, with the assignments."""
        found: dict[fx.Node, fx.Node] = {}
        for node, (kind, index) in zip(segment.outputs, program.outputs, strict=False):
            assignment = self.partition.overwritten(segment, node)
            if assignment is not None and kind == "computed" and segment.inputs.index(assignment.args[0]) in program.donors[index]:  # type: ignore[arg-type]
                found[node] = assignment
        return found

    def _overwrite(self, segment: Segment, node: fx.Node, assignment: fx.Node, there: CpuTarget | CudaTarget) -> list[str]:
        """Writes that an output is computed in its argument's memory. Returns what is to be written after the call.

        A large result needs memory that is aligned to cache lines, which tensors of PyTorch are, but perhaps not their parts.
        """
        argument, nbytes = assignment.args[0], self._nbytes(segment, node)
        given = argument.name  # type: ignore[union-attr]
        self._in_place.add(node)
        self.assigned.add(assignment)
        self.lines.append(f"{node.name} = {assignment.name} = {given}")
        if isinstance(nbytes, int) and nbytes < there.aligned_bytes:
            return []
        made = self._allocation(self.partition.stored_type(segment, node), nbytes, there)
        large = "" if isinstance(nbytes, int) else f"{nbytes} >= {there.aligned_bytes} and "
        self.lines.append(f"if {large}{given}.data_ptr() % {CACHE_LINE}: {node.name} = {made}")
        return [f"if {node.name} is not {given}: {given}.copy_({node.name})"]

    def _allocate(self, segment: Segment, node: fx.Node, gapped: list[tuple[fx.Node, str]], there: CpuTarget | CudaTarget) -> str:
        """Writes the allocation of an output. One whose strides leave gaps is computed in C order first, and noted in ``gapped``."""
        of, name = self.partition.stored_type(segment, node), node.name
        found = own_movement(of.shape, of.strides)
        if found is None or not found.is_dense:
            of, name = replace(of, strides=contiguous_strides(of.shape)), node.name + "_c"
            gapped.append((node, name))
        self.lines.append(f"{name} = {self._allocation(of, self._nbytes(segment, node), there)}")
        return name

    def _allocation(self, of: TensorType, nbytes: Int, there: CpuTarget | CudaTarget) -> str:
        """The expression of new memory for a tensor without gaps."""
        options = self._extents(of.shape), self._extents(of.strides), self._name(of.dtype, "t")
        if isinstance(nbytes, Expr):
            if isinstance(there, CpuTarget) and 0 not in of.strides:
                return f"{self._name(there.empty_of_any_size, 'empty')}({', '.join(options)}, {nbytes})"
            return f"{self._name(there.empty, 'empty')}({', '.join(options)})"
        allocator = there.mapped_allocator(of.shape, of.strides, of.dtype, nbytes)  # type: ignore[arg-type]  # known, as nbytes are
        if allocator is not None:
            return f"{self._name(allocator, 'allocator')}()"
        return f"{self._name(there.empty, 'empty')}({', '.join(options)})"

    def _nbytes(self, segment: Segment, node: fx.Node) -> Int:
        size: Int = self.partition.types[node].dtype.itemsize
        for n in self.partition.output_layout(segment, node).base:
            size *= n
        return size

    def _by_torch(self, node: fx.Node) -> None:
        arguments = [self._value(x) for x in node.args] + [f"{k}={self._value(v)}" for k, v in node.kwargs.items()]
        if node.target is torch.ops.aten.copy_.default and self._is_pending(node.args[0]):
            arguments[0] = f"{arguments[0]}_pending"  # the argument itself, not what was computed of it
        if node.target is operator.getitem:
            self.lines.append(f"{node.name} = {arguments[0]}[{arguments[1]}]")
        else:
            self.lines.append(f"{node.name} = {self._name(node.target, 'op')}({', '.join(arguments)})")
        of = self.partition.types[node]
        if isinstance(of, TensorType) and of is not NUMBER and not is_token(node):
            # torch conjugates complex tensors, and numbers as in `_conj(1j)`, lazily, and does not always say so when it traces
            if of.lazy or of.dtype.is_complex or any(self._is_complex(x) for x in node.all_input_nodes):
                self.lines.append(f"{node.name} = {node.name}.resolve_conj().resolve_neg()")
            self._conform(node.name, of)

    def _result(self, x: Any) -> str:
        """The expression of a result; writes the view ops of one that is replayed, once."""
        if x not in self.partition.replayed:
            return self._value(x)
        if x not in self._replays:
            self._replays[x] = self._replay(x)
        return self._replays[x]

    def _replay(self, node: fx.Node) -> str:
        """Writes the view ops that make a result of a tensor that the caller has, which may be another such result. Returns the result's name."""
        chain = self.partition.replayed[node]
        source: Any = viewed(chain[0]) if chain else node
        name = f"{source.name}_pending" if self._is_pending(source) else self._result(source)
        for x in chain:
            of: Any = x.args[0] if x.target is operator.getitem else x
            arguments = [name, *[self._value(a) for a in of.args[1:]], *[f"{k}={self._value(v)}" for k, v in of.kwargs.items()]]
            made = self._variable("view")
            part = f"[{x.args[1]}]" if of is not x else ""
            self.lines.append(f"{made} = {self._name(of.target, 'op')}({', '.join(arguments)}){part}")
            name = made
        return name

    def _is_pending(self, node: Any) -> bool:
        """Whether it is an argument of the program whose conjugation or negation PyTorch has put off."""
        return isinstance(node, fx.Node) and node.op == "placeholder" and self.partition.types[node].lazy

    def _is_complex(self, node: fx.Node) -> bool:
        of = self.partition.types[node]
        return isinstance(of, TensorType) and of.dtype.is_complex
