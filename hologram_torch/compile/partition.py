"""Partition of an FX graph: which nodes Hologram computes, in which segments, and which nodes PyTorch computes between them."""

from __future__ import annotations

import functools
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import torch
from torch import fx
from torch._ops import OpOverload

import hologram as hg
from hologram import numpy as hnp
from hologram.ir.graph import Graph
from hologram.ir.node import Node
from hologram.ir.strides import Movement, contiguous_strides, own_movement
from hologram.ir.symbolic import Expr, Int
from hologram.ir.symbolic import symbols_of as variables_of
from hologram.trace.operators import node_of, wrap
from hologram.trace.recorder import Trace
from hologram.trace.symbolic_extent import extent
from hologram.trace.tensor import Tensor
from hologram_torch.aten import lookup
from hologram_torch.aten.linear_algebra.factorizations import AMBIGUOUS
from hologram_torch.aten.shapes.movement import LAYOUT_SENSITIVE
from hologram_torch.bridge.element_types import dtype_of, torch_dtype_of
from hologram_torch.bridge.strided import base_of, shown
from hologram_torch.compile.control import FORMS, Bodies, Refused, indices_out_of_range
from hologram_torch.compile.frozen import base_array
from hologram_torch.compile.fx_types import Sizes, Symbols, TensorType, UnknownSize, symbols_of, typed
from hologram_torch.compile.positions import FORMS as POSITIONAL
from hologram_torch.compile.positions import NUMBERS, NoPosition
from hologram_torch.compile.preferences import why_by_torch
from hologram_torch.compile.sized_forms import FORMS as SIZED
from hologram_torch.compile.sized_forms import is_symbolic
from hologram_torch.compile.symbolic_sizes import SymbolicSizes
from hologram_torch.compile.targets import HOST, why_not
from hologram_torch.compile.user_lines import UNKNOWN, line_of

_SEEDED = torch.Tag.nondeterministic_seeded
_ASSIGN = torch.ops.aten.copy_.default


@dataclass(slots=True)
class Segment:
    """Nodes that become one compiled graph on ``device``.

    - ``inputs``, ``outputs``: tensors of torch on the device, or numbers on the CPU; ``constants``: inputs whose values are part of the graph.
    - ``views``: other values that are read of the segment, each with the input or output of whose memory it is a view.
    - ``indexing``: the nodes whose indices are checked. The graph's last result, a bool, says whether an index is out of range. On devices other than
      the CPU it says whether one ever was: the last input is what is known so far.
    - ``carriers``: symbolic sizes that none of the inputs says; the graph has an input for each, of which nothing is read.
    """

    device: str
    nodes: list[fx.Node] = field(default_factory=list)
    inputs: list[fx.Node] = field(default_factory=list)
    constants: list[fx.Node] = field(default_factory=list)
    outputs: list[fx.Node] = field(default_factory=list)
    views: list[tuple[fx.Node, fx.Node]] = field(default_factory=list)
    indexing: list[str] = field(default_factory=list)
    carriers: list[Int] = field(default_factory=list)


class Partition:
    """The partition of a graph with known sizes.

    - ``name``: that of the graphs of Hologram, which profiles show.
    - ``types``: the types of all values; ``reasons``: for each node that PyTorch computes, why.
    - ``stages``: in their order, each a list of segments, one a device, and the nodes of PyTorch that may read them.
    - ``portable``: numbers on the CPU that depend on no tensor; each segment that reads one computes it itself.
    - ``frozen``: arguments that are constants, with their values.
    - ``positions``: integers that segments take as operands (:mod:`positions`). Raises NoPosition where one has to be known.
    - ``replayed``: results that PyTorch's view ops make of a tensor that the caller has, each with these nodes: no strides and offset in the
      memory of that tensor say the view.
    """

    def __init__(self, name: str, graph: fx.Graph, sizes: Sizes, frozen: Mapping[fx.Node, torch.Tensor], positions: Symbols = frozenset()) -> None:
        self.name, self.graph, self.frozen, self.sizes = name, graph, frozen, sizes
        self.types: dict[fx.Node, Any] = {n: _type_of(n, sizes, positions) for n in graph.nodes if n.op != "output"}
        self.positions = {n for n in graph.nodes if n.op != "output" and symbols_of(n.meta.get("val")) & positions}
        self.bodies = Bodies(self.types, sizes, self._computed)
        self.placeholders = list(graph.find_nodes(op="placeholder"))
        (output,) = graph.find_nodes(op="output")
        self.results: Sequence[Any] = output.args[0] if isinstance(output.args[0], (list, tuple)) else (output.args[0],)
        self.reasons: dict[fx.Node, str] = {}
        self.portable: set[fx.Node] = set()
        self._place = {n: i for i, n in enumerate(graph.nodes)}
        self._missing: dict[str, str | None] = {}  # why Hologram has no such device
        self._try_all()
        self._require_positions()
        self.replayed = {x: chain for x in self.results if isinstance(x, fx.Node) and (chain := self._replayed(x)) is not None}
        self.stages = self._stages()

    # --- what Hologram can compute -----------------------------------------------------------------------------------------

    def layout(self, node: fx.Node) -> Movement:
        """The movement by which a tensor's memory is read: as it lies where that is possible, else as a contiguous copy."""
        of = self.types[node]
        return own_movement(of.shape, of.strides) or _in_c_order(of.shape)

    def _try_all(self) -> None:
        """Records every node once, to find out which ones Hologram has."""
        with Trace("graph") as trace:
            trace.line = UNKNOWN
            values: dict[fx.Node, Any] = {}
            for node in self.graph.nodes:
                if node.op == "call_function" and not self._is_number(node):
                    recorded = len(trace.lines)
                    try:
                        values[node] = self._computed(node, lambda n: values[n] if n in values else self._stand_in(trace, n))
                        self._require_kernels(node, islice(trace.lines, recorded, None))
                    except Refused as e:
                        self.reasons[node] = str(e)
                    except Exception as e:  # noqa: BLE001  whatever a row raises, PyTorch computes the node, and explain() says why
                        self.reasons[node] = f"{type(e).__name__}: {e}"
                    else:
                        self._note_portable(node)

    def _require_positions(self) -> None:
        """Raises NoPosition where PyTorch reads a position, or a value that depends on one is no operand of a segment."""
        for x in self.positions:
            refused = next((u for u in (x, *x.users) if u in self.reasons), None)
            if refused is not None:
                raise NoPosition(f"{refused.name}: {self.reasons[refused]}")
            if x in self.results and x.op != "placeholder":
                raise NoPosition(f"{x.name} is a result")

    def _require_kernels(self, node: fx.Node, recorded: Iterable[Node]) -> None:
        """Raises Refused for ops on another device that Hologram runs on the host, since PyTorch has kernels for them."""
        if self.device_of(node) != HOST and any(n.op.kind == "host" for n in recorded):
            raise Refused("a routine of the host computes it in Hologram")

    def _note_portable(self, node: fx.Node) -> None:
        of = self.types[node]
        is_scalar = isinstance(of, TensorType) and (of.device, of.shape) == (HOST, ())
        if is_scalar and all(x in self.portable or (x in self.positions and x.op == "placeholder") for x in node.all_input_nodes):
            self.portable.add(node)

    def device_of(self, node: fx.Node) -> str:
        """The device of the node's results."""
        of = self.types[node]
        first = next((t for t in of if isinstance(t, TensorType)), None) if isinstance(of, list) else of
        return first.device if isinstance(first, TensorType) else HOST

    def _is_number(self, node: fx.Node) -> bool:
        return isinstance(self.types[node], (int, float, bool, Expr))

    def _stand_in(self, trace: Trace, node: fx.Node) -> Any:
        of = self.types[node]
        if not isinstance(of, TensorType):
            raise Refused(f"{node.name} is no tensor")
        return wrap(trace.input(of.shape, dtype_of(of.dtype)))

    def _computed(self, node: fx.Node, value_of: Callable[[fx.Node], Any]) -> Any:
        """Records the node in the open trace. Raises Refused, or what its row raises."""
        if node.target is operator.getitem:
            source, index = node.args
            if source in self.reasons:
                raise Refused("a part of what PyTorch computes")
            return value_of(source)[index]  # type: ignore[arg-type]

        def operand(n: fx.Node) -> Any:
            return extent(self.types[n]) if self._is_number(n) else value_of(n)

        value = functools.partial(fx.map_arg, fn=operand)
        if node.target in FORMS and self.device_of(node) == HOST:
            made = list(FORMS[node.target](self.bodies, value, *node.args))
            self._check(made, self.types[node], HOST)
            return made
        args, options = value((node.args, node.kwargs))
        if node in self.positions and node.target in NUMBERS:
            return node.target(*args)
        row = self._row(node)
        if node.target in POSITIONAL and any(x in self.positions for x in node.all_input_nodes):
            row = functools.partial(POSITIONAL[node.target], self.types[node])
        elif node.target in SIZED and any(is_symbolic(self.types[x]) for x in (node, *node.all_input_nodes)):
            row = functools.partial(SIZED[node.target], self.types[node])
        made = row(*args, **{k: v for k, v in options.items() if k != "device"})  # it is the one where the results are
        self._check(made, self.types[node], self.device_of(node))
        return made

    def _row(self, node: fx.Node) -> Callable[..., Any]:
        op = node.target
        row = lookup(op) if isinstance(op, OpOverload) else None
        if op is _ASSIGN:
            raise Refused("an argument takes a new value")
        if row is None:
            raise Refused("the table of ATen ops has no row for it")
        if op in AMBIGUOUS and any(part.args[1] in AMBIGUOUS[op] for part in node.users):
            raise Refused("the signs of its vectors are those of the routine that finds them: PyTorch's")
        device = self.device_of(node)
        if (reason := self._why_not(device) or why_by_torch(node, self.types)) is not None:
            raise Refused(reason)
        for x in node.all_input_nodes:
            of = self.types[x]
            if isinstance(of, TensorType):
                if of.device != device and (of.device, of.shape) != (HOST, ()):
                    raise Refused(f"{x.name} is on {of.device}, and the result on {device}")
                if op in LAYOUT_SENSITIVE and of.strides != contiguous_strides(of.shape):
                    raise Refused(f"it depends on the strides of {x.name}, which is not contiguous")
        return row

    def _why_not(self, device: str) -> str | None:
        if device not in self._missing:
            self._missing[device] = why_not(device)
        return self._missing[device]

    def _check(self, made: Any, expected: Any, device: str) -> None:
        """Raises Refused unless the value has the type that torch promises."""
        if isinstance(expected, list):
            if not isinstance(made, (list, tuple)) or len(made) != len(expected):
                raise Refused(f"torch gives {len(expected)} results")
            for m, e in zip(made, expected, strict=True):
                self._check(m, e, device)
        elif isinstance(expected, TensorType):
            if type(made) is not Tensor:
                raise Refused("torch gives a tensor")
            found = (node_of(made).shape, torch_dtype_of(made.dtype))
            if expected.device != device or found != (expected.shape, expected.dtype):
                raise Refused(f"torch gives {expected.dtype}{list(expected.shape)} on {expected.device}, Hologram {found[1]}{list(found[0])}")

    # --- pieces ------------------------------------------------------------------------------------------------------------

    def _stages(self) -> list[tuple[list[Segment], list[fx.Node]]]:
        """Orders segments and PyTorch's nodes in stages.

        A node of Hologram belongs to the first stage in which its device's segment has all its inputs; a node of PyTorch comes after the segments of
        its stage. The CPU's segment is the first of a stage, since others read numbers of it. Nodes that draw random numbers keep their order.
        """
        stage: dict[fx.Node, int] = {}
        drawn = 0
        segments: dict[tuple[int, str], Segment] = {}
        others: dict[int, list[fx.Node]] = {}
        for node in self.graph.nodes:
            if node.op != "call_function" or self._is_number(node):
                continue
            by_torch = node in self.reasons
            at = max([0, *(stage[x] + (x in self.reasons and not by_torch) for x in node.all_input_nodes if x in stage)])
            if by_torch:
                if isinstance(node.target, OpOverload) and _SEEDED in node.target.tags:
                    at = drawn = max(at, drawn)
                others.setdefault(at, []).append(node)
            else:
                device = self.device_of(node)
                segments.setdefault((at, device), Segment(device)).nodes.append(node)
            stage[node] = at
        self._connect(segments)
        count = max([-1, *(i for i, _ in segments), *others]) + 1
        ordered = sorted(segments.items(), key=lambda entry: entry[1].device != HOST)
        return [([s for (at, _), s in ordered if at == i], others.get(i, [])) for i in range(count)]

    def _connect(self, segments: dict[tuple[int, str], Segment]) -> None:
        """Finds the inputs of each segment, and which of its values are read outside of it."""
        returned = {x for x in self.results if isinstance(x, fx.Node) and x not in self.replayed}
        for segment in segments.values():
            home = set(segment.nodes)
            segment.nodes = self._with_numbers(segment.nodes)
            own = set(segment.nodes)
            inputs: dict[fx.Node, None] = {}
            wanted = []
            for node in segment.nodes:
                for x in node.all_input_nodes:
                    if x not in own and not self._is_number(x) and self.types[x] is not None:
                        inputs[x] = None
                if isinstance(self.types[node], TensorType) and node in home and (node in returned or self._is_read_beyond(node, own)):
                    wanted.append(node)
            segment.constants = [x for x in inputs if self._is_constant(x)]
            segment.inputs = [x for x in inputs if not self._is_constant(x)]
            self._share(segment, own, wanted)
        for at in [i for i, s in segments.items() if not s.outputs and not s.views]:
            del segments[at]

    def _is_constant(self, node: fx.Node) -> bool:
        """Whether a segment may contain the value as a constant: tensors that have to be copied for each call are no constants."""
        of = self.types[node]
        return node in self.frozen and own_movement(of.shape, of.strides) is not None

    def _with_numbers(self, nodes: list[fx.Node]) -> list[fx.Node]:
        """Adds the portable numbers that ``nodes`` read, before them."""
        found: set[fx.Node] = set()
        todo = [x for node in nodes for x in node.all_input_nodes]
        while todo:
            x = todo.pop()
            if x in self.portable and x not in found:
                found.add(x)
                todo += x.all_input_nodes  # of which arguments are no portable numbers, but inputs
        own = set(nodes)
        return sorted(found - own, key=self._place.__getitem__) + nodes

    def _is_read_beyond(self, node: fx.Node, own: set[fx.Node]) -> bool:
        """Whether nodes outside of ``own`` read the value as a tensor."""
        alone = node in self.portable
        return any(u not in own and (u in self.reasons or not alone) for u in node.users if u.op != "output")

    def _share(self, segment: Segment, own: set[fx.Node], wanted: list[fx.Node]) -> None:
        """Splits the values that are read of a segment into outputs and views.

        Views are those of tensors that exist and of outputs, and those that would otherwise be stored several times or with gaps.
        """
        bases = {x: self._base(x, own) for x in wanted}
        if any(None in (self.types[x].offset, self.types[base].offset) and base is not x for x, base in bases.items()):
            raise NoPosition("where a view that is read begins")
        count = Counter(bases.values())
        outputs: dict[fx.Node, None] = {}
        for x, base in bases.items():
            if base is x or (base in own and base not in bases and count[base] == 1 and self.is_dense(x)):
                outputs[x] = None
            else:
                segment.views.append((x, base))
                if base in own:
                    outputs[base] = None
        segment.outputs = list(outputs)

    def _base(self, node: fx.Node, own: set[fx.Node]) -> fx.Node:
        """The tensor of whose memory ``node`` is a view, through torch's view ops; the node itself where it is no view.

        It is the last of the segment ``own``, or an input of it: of what is before that, another segment may have stored a view alone.
        """
        of, base = self.types[node], node
        while base in own:
            source = viewed(base)
            if source is None:
                return base
            under = self.types[source]
            if not isinstance(under, TensorType) or (under.dtype, under.device) != (of.dtype, of.device):
                return base
            if under.lazy != self.types[base].lazy:  # a pending negation, which is computed
                return base
            base = source
        return base

    def _replayed(self, node: fx.Node) -> list[fx.Node] | None:
        """The view ops that make a result of an argument or of another result: where they change the type of its elements, or a conjugation or
        negation is pending. None for other results."""
        chain: list[fx.Node] = []
        source: fx.Node | None = node
        while source is not None and source.op != "placeholder" and (source is node or source not in self.results):
            chain.append(source)
            source = viewed(source)
        if source is None or not all(isinstance(self.types[x], TensorType) for x in (source, node)):
            return None
        kinds = {(of.dtype, of.lazy) for of in (self.types[x] for x in (source, *chain)) if isinstance(of, TensorType)}
        return chain[::-1] if len(kinds) > 1 or (source.op == "placeholder" and self.types[source].lazy) else None

    def is_dense(self, node: fx.Node) -> bool:
        of = self.types[node]
        found = own_movement(of.shape, of.strides)
        return found is not None and found.is_dense

    def overwritten(self, segment: Segment, node: fx.Node) -> fx.Node | None:
        """The assignment that makes an output the new value of an argument, if the output may be computed in the argument's memory.

        That is where nothing outside of the segment reads the old value, nor, where PyTorch gives the new one other strides, the new value by
        itself. None where there is no such assignment.
        """
        assignments = [u for u in node.users if u.target is _ASSIGN]
        if len(assignments) != 1 or assignments[0].args[1] is not node:
            return None
        argument: Any = assignments[0].args[0]
        if (
            argument not in segment.inputs
            or argument.op != "placeholder"
            or argument in self.results
            or argument in [base for _, base in segment.views]
            or self.types[argument].lazy  # what stands in its place is a copy
        ):
            return None
        own = {*segment.nodes, assignments[0]}
        given, made = self.types[argument], self.types[node]
        alike = (given.shape, given.dtype, given.device) == (made.shape, made.dtype, made.device) and self.is_dense(argument)
        unread = node not in self.results and all(u in own for u in node.users) and node not in [base for _, base in segment.views]
        if not alike or not (unread or given.strides == made.strides) or any(u not in own for u in argument.users):
            return None
        return assignments[0]

    # --- one segment -------------------------------------------------------------------------------------------------------

    def stored_type(self, segment: Segment, node: fx.Node) -> TensorType:
        """The type that an output is computed with: of the argument that it overwrites, else its own."""
        assignment = self.overwritten(segment, node)
        found: TensorType = self.types[node if assignment is None else assignment.args[0]]  # type: ignore[index]
        return found

    def output_layout(self, segment: Segment, node: fx.Node) -> Movement:
        """The layout that an output is computed in: that of its stored type where it leaves no gaps, else C order."""
        of = self.stored_type(segment, node)
        found = own_movement(of.shape, of.strides)
        return found if found is not None and found.is_dense else _in_c_order(of.shape)

    def record(self, segment: Segment) -> Graph:
        """Records the segment as a graph of Hologram, from the base arrays of its inputs to those of its outputs."""
        with Trace(self.name) as trace:
            trace.line = UNKNOWN
            values: dict[fx.Node, Any] = {}
            for x in segment.inputs:
                layout = self.layout(x)
                values[x] = shown(layout, wrap(trace.input(layout.base, dtype_of(self.types[x].dtype))))
            for x in segment.constants:
                layout = self.layout(x)
                values[x] = shown(layout, hg.asarray(base_array(self.frozen[x], layout.base)))
            out_of_range: list[Tensor] = []
            for node in segment.nodes:
                trace.line = line_of(node)
                values[node], found = self.bodies.checked(lambda node=node: self._computed(node, values.__getitem__))  # type: ignore[misc]
                found += indices_out_of_range(node, values)
                segment.indexing += [f"{node.name} = {node.target}"] * bool(found)
                out_of_range += found
            trace.line = UNKNOWN
            results = [base_of(self.output_layout(segment, x), values[x]) for x in segment.outputs]
            if out_of_range:
                before = [] if segment.device == HOST else [wrap(trace.input((), dtype_of(torch.bool)))]
                results.append(functools.reduce(hnp.logical_or, before + out_of_range))
            return self._with_sizes(segment, trace, [node_of(x) for x in results])

    def _with_sizes(self, segment: Segment, trace: Trace, results: list[Node]) -> Graph:
        """The graph, with an input more for each symbolic size that no other input says: an array of that extent, of which nothing is read."""
        graph = trace.graph(results)
        if isinstance(self.sizes, SymbolicSizes):
            for slack in trace.assumptions:
                self.sizes.assume(slack)
            said = variables_of([x.shape for x in graph.inputs])
            wanted = variables_of([(n.shape, n.attrs) for n in graph.nodes()]) - said
            segment.carriers = [v for v in self.sizes.values() if variables_of(v) & wanted]
            for v in segment.carriers:
                trace.input((v,), dtype_of(torch.bool))
        return trace.graph(results)


def _type_of(node: fx.Node, sizes: Sizes, positions: Symbols) -> Any:
    """The type of a node's value; None for what tells a size that is not known before (:mod:`unknown_sizes`)."""
    try:
        return typed(node.meta.get("val"), sizes, positions)
    except UnknownSize:
        if node.op != "call_function":
            raise
        return None


def viewed(node: fx.Node) -> fx.Node | None:
    """The tensor of which one of PyTorch's view ops makes ``node``; None where none does."""
    of = node
    if of.target is operator.getitem and isinstance(of.args[0], fx.Node):
        of = of.args[0]
    is_view = isinstance(of.target, OpOverload) and of.target.is_view
    return of.args[0] if is_view and of.args and isinstance(of.args[0], fx.Node) else None


def _in_c_order(shape: tuple[Any, ...]) -> Movement:
    """The layout of a contiguous tensor."""
    found = own_movement(shape, contiguous_strides(shape))
    assert found is not None
    return found
