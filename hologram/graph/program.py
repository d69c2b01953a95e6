"""Kernels in order, with every buffer's place: what a backend needs to run a graph.

Slots of a call: inputs, hidden constants, outputs, then integers: the symbols of symbolic extents, and for graphs with symbols the
arena offset of each intermediate, since its size is known only then.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from hologram.errors import ShapeError
from hologram.graph.blocking.blocked_loops import DEVICE_BLOCK_BYTES, block_regions
from hologram.graph.constants.fold import fold_constants
from hologram.graph.constants.loop_prepack import pack_before_loops
from hologram.graph.fusion.fuse import fuse
from hologram.graph.fusion.groups import Call, Group, operands
from hologram.graph.kernel.verify import verify_kernel
from hologram.graph.legalize.legalize import legalize
from hologram.graph.library.attention.device_kernel import WIDEST_BYTES
from hologram.graph.library.attention.device_kernel import lower_attention as lower_attention_by_tiles
from hologram.graph.library.attention.kernel import lower_attention
from hologram.graph.library.attention.match import join_attention
from hologram.graph.library.attention.nodes import REDUCED
from hologram.graph.library.attention.reduced_kernel import lower_reduced
from hologram.graph.library.attention.region_tiles import reduce_in_tiles
from hologram.graph.library.sort.merge import lower_sort
from hologram.graph.library.sort.radix import lower_digits
from hologram.graph.lower.control_step import ControlStep
from hologram.graph.lower.group import lower
from hologram.graph.lower.host_step import HostStep
from hologram.graph.lower.lowered import Lowered
from hologram.graph.lower.native_sort import lower_native
from hologram.graph.lower.scatters import lower_scatter
from hologram.graph.lower.sorted_scatters import lower_runs
from hologram.graph.memory import plan as planner
from hologram.graph.memory.verify import verify_plan
from hologram.graph.schedule.tiles import CpuTileConfig, GpuTileConfig, TileConfig
from hologram.graph.verify_graph import verified
from hologram.ir.graph import Graph
from hologram.ir.node import Node, topological
from hologram.ir.op import Shape
from hologram.ir.symbolic import Int, atoms, is_static, split_linear, substitute, var
from hologram.settings import settings

UNKNOWN_NS = 100_000.0  # what a kernel whose extent is a symbol is taken to cost


class Output:
    """A result: ``kind`` input or constant (the argument itself, number ``index``), or computed (output slot ``index``)."""

    __slots__ = ("kind", "index", "node")

    def __init__(self, kind: str, index: int, node: Node) -> None:
        self.kind, self.index, self.node = kind, index, node


class Schedule:
    """``steps`` in order: kernels, control steps with schedules of their own, and host steps. ``slot_of`` gives a node's slot; intermediates are in
    ``temporaries`` with their lifetimes, the workspaces of control steps among them. What depends on constants alone, up to ``hold`` bytes of it, is
    left to the schedule ``ahead``: the i-th of its results is the constant whose storage is ``FoldedConstant(i)``."""

    def __init__(self, graph: Graph, precision: str = "exact", tile: TileConfig | None = None, hold: int = 0, prepared: bool = False) -> None:
        self.precision, self.tile = precision, tile
        self.ahead: Schedule | None = None
        graph = graph if prepared else self._prepared(graph)
        apart = fold_constants(graph, hold, tile, precision == "exact") if hold else None
        if apart is not None:
            graph = verified(apart.graph, "computed_ahead")
            self.ahead = Schedule(verified(apart.values, "computed_ahead"), precision, tile, prepared=True)
        self.graph = graph
        nodes = topological(graph.outputs)
        self.inputs = graph.inputs
        self.constants = [n for n in nodes if n.op.name == "leaf"]
        self.outputs, computed = _outputs(graph, self.inputs, self.constants)
        self.groups = fuse(Graph(graph.inputs, computed), keep_16bit=isinstance(tile, GpuTileConfig))
        self.steps = self._lower(computed)
        self.slot_of: dict[Node, int] = {}
        for n in [*self.inputs, *self.constants, *computed]:
            self.slot_of[n] = len(self.slot_of)
        self.computed = computed
        self._handed_out = {computed[o.index]: o.node.shape for o in self.outputs if o.kind == "computed"}
        self.temporaries = self._lifetimes()
        self.symbols = _symbols(self.inputs)
        self.static = not self.symbols
        first = len(self.slot_of)
        self.symbol_slots = {s: first + i for i, s in enumerate(self.symbols)}
        if not self.static:
            self.symbol_slots.update({f"arena{i}": first + len(self.symbols) + i for i in range(len(self.temporaries))})

    def _prepared(self, graph: Graph, constants: Collection[int] = ()) -> Graph:
        """``graph``, bodies inside of it included, as fusion takes it. ``constants``: which of its inputs are the same whenever it
        runs, or in all steps of a loop."""
        tile = self.tile
        if tile is not None and self.precision != "exact":  # first what attention leaves to derivatives, then all that is not one kernel
            nbytes, widest = (DEVICE_BLOCK_BYTES, WIDEST_BYTES) if isinstance(tile, GpuTileConfig) else (None, None)
            if isinstance(tile, GpuTileConfig) and tile.tile_16bit is not None:
                graph = verified(reduce_in_tiles(graph), "reduce_in_tiles")
            graph = verified(block_regions(graph, self.precision, 1, nbytes), "block_regions")
            graph = verified(join_attention(graph, widest), "join_attention")
            graph = verified(block_regions(graph, self.precision, 0, nbytes), "block_regions")
        shared = tile.shared_bytes if isinstance(tile, GpuTileConfig) else None
        graph = legalize(graph, self.precision, isinstance(tile, CpuTileConfig) and tile.pairs, split_k=shared is None, shared_bytes=shared)
        packed = pack_before_loops(verified(graph, "prepare"), constants, self._prepared, tile, self.precision == "exact")
        return verified(packed, "pack_before_loops")

    def result_shape(self, node: Node) -> Shape:
        """The shape that a computed value is handed out with: that of the reshape it stands for."""
        return self._handed_out.get(node, node.shape)

    @property
    def kernels(self) -> list[Lowered]:
        """All kernels in order, those of bodies where the bodies stand."""
        out: list[Lowered] = []
        for step in self.steps:
            if isinstance(step, ControlStep):
                out += [k for s in step.schedules for k in s.kernels]
            elif isinstance(step, Lowered):
                out.append(step)
        return out

    @property
    def host_steps(self) -> list[HostStep]:
        """All calls of routines of the host, those of bodies where the bodies stand."""
        out: list[HostStep] = []
        for step in self.steps:
            if isinstance(step, ControlStep):
                out += [h for s in step.schedules for h in s.host_steps]
            elif isinstance(step, HostStep):
                out.append(step)
        return out

    @property
    def cost(self) -> float:
        """Rough nanoseconds on one thread; for symbolic extents a guess."""
        return sum(_kernel_cost(s) if isinstance(s, Lowered) else s.cost for s in self.steps)

    def _lower(self, computed: list[Node]) -> list[Lowered | ControlStep | HostStep]:
        roots = {r for g in self.groups for r in (g.results if isinstance(g, Call) else g.nodes)}
        stored = set(computed)
        for g in self.groups:
            if isinstance(g, Call):
                stored.update(operands(g.node) if g.node.op.kind == "control" else g.node.inputs)
                continue
            for r in g.nodes:
                stored |= _read_elsewhere(r, g, roots)
        steps: list[Lowered | ControlStep | HostStep] = []
        for g in self.groups:
            if isinstance(g, Call) and g.node.op.kind == "host":
                steps.append(HostStep(g))
            elif isinstance(g, Call):
                steps.append(ControlStep(g, lambda body: Schedule(body, self.precision, self.tile, prepared=True)))
            else:
                steps += self._kernels_of(g, roots, stored)
        if settings.verify:
            for step in steps:
                if isinstance(step, Lowered):
                    verify_kernel(step.kernel)
        return steps

    def _kernels_of(self, group: Group, roots: set[Node], stored: set[Node]) -> list[Lowered]:
        match group.nodes[0].op.kind:
            case "scatter":
                return lower_scatter(group, roots, self.precision)
            case "attention":
                if isinstance(self.tile, GpuTileConfig):
                    return [(lower_reduced if group.nodes[0].op is REDUCED else lower_attention_by_tiles)(group, roots, self.tile)]
                assert self.tile is not None
                return [lower_attention(group, roots, self.tile)]
            case "native":
                return lower_sort(group) if isinstance(self.tile, GpuTileConfig) else [lower_native(group)]
            case "runs":
                return lower_runs(group, roots, self.precision)
            case "digits":
                assert isinstance(self.tile, GpuTileConfig)
                return [lower_digits(group, roots, self.tile.shared_bytes)]
        return lower(group, roots, stored, self.precision, self.tile)

    def _lifetimes(self) -> list[tuple[Node | ControlStep, int, int, tuple[Node, ...]]]:
        """``(node, first step, last step, inputs whose place it may take)`` of each intermediate."""
        first: dict[Node | ControlStep, int] = {}
        last: dict[Node | ControlStep, int] = {}
        heirs: dict[Node | ControlStep, tuple[Node, ...]] = {}
        for k, low in enumerate(self.steps):
            if isinstance(low, ControlStep) and low.nbytes:
                first[low] = last[low] = k
            for n in low.bindings:
                if n not in self.slot_of:
                    first.setdefault(n, k)
                    last[n] = k
            for out, old in low.in_place:
                n = low.bindings[out]
                if n not in self.slot_of:
                    heirs[n] = (*heirs.get(n, ()), low.bindings[old])
        return [(n, first[n], last[n], heirs.get(n, ())) for n in first]

    def donors(self) -> list[list[int]]:
        """For each computed result the inputs in whose memory it may be computed, if the caller gives that up."""
        last: dict[Node, int] = {}
        number = {n: i for i, n in enumerate(self.inputs)}
        for k, low in enumerate(self.steps):
            for n in low.bindings:
                last[n] = k
        returned = {self.inputs[o.index] for o in self.outputs if o.kind == "input"}
        found: dict[Node, list[int]] = {c: [] for c in self.computed}
        for k, low in enumerate(self.steps):
            for out, old in low.in_place:
                result, source = low.bindings[out], low.bindings[old]
                if result in found and source in number and source not in returned and last[source] == k and source.size == result.size:
                    found[result].append(number[source])
        return list(found.values())

    def plan(self, values: Mapping[str, int]) -> planner.Plan:
        """Addresses of the intermediates, for given values of the symbols."""
        number = {n: i for i, (n, *_) in enumerate(self.temporaries)}
        lifetimes = []
        for n, first, last, heirs in self.temporaries:
            nbytes = n.nbytes if isinstance(n, ControlStep) else _concrete(n.size, values) * n.dtype.itemsize
            lifetimes.append(planner.Lifetime(number[n], nbytes, first, last, tuple(number[h] for h in heirs if h in number)))
        plan = planner.plan(lifetimes)
        if settings.verify:
            verify_plan(lifetimes, plan)
        return plan

    def offset(self, node: Node | ControlStep, plan: planner.Plan | None) -> Int:
        """The arena offset of an intermediate: a number, or the symbol that will hold it."""
        i = next(i for i, (n, *_) in enumerate(self.temporaries) if n is node)
        return var(f"arena{i}") if plan is None else plan.buffers[i].offset


def _kernel_cost(low: Lowered) -> float:
    chunks = low.kernel.chunks
    return chunks * low.kernel.cost if isinstance(chunks, int) else UNKNOWN_NS


def _concrete(x: Int, values: Mapping[str, int]) -> int:
    out = substitute(x, values)
    assert isinstance(out, int)
    return out


def concrete_shape(shape: Shape, values: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(_concrete(n, values) for n in shape)


def _symbols(inputs: list[Node]) -> list[str]:
    return sorted({a.name for n in inputs for e in n.shape for a in atoms(e)})


def bind_symbols(inputs: list[Node], shapes: list[tuple[int, ...]]) -> dict[str, int]:
    """Values of the symbols from the shapes of actual inputs, whose extents are linear in one symbol each. ShapeError where they contradict."""
    values: dict[str, int] = {}
    for n, shape in zip(inputs, shapes, strict=True):
        for e, size in zip(n.shape, shape, strict=True):
            if not is_static(e):
                (name,) = {a.name for a in atoms(e)}
                linear = split_linear(e, name)
                assert linear is not None
                coefficient, rest = (_concrete(part, {}) for part in linear)
                values.setdefault(name, (size - rest) // coefficient)
            if _concrete(e, values) != size:
                raise ShapeError(f"an argument has shape {list(shape)}; it should be {list(n.shape)}, with {values}")
    return values


def _outputs(graph: Graph, inputs: list[Node], constants: list[Node]) -> tuple[list[Output], list[Node]]:
    """Where each result comes from, and the nodes to compute. A reshape of a value is that value's memory."""
    outputs: list[Output] = []
    computed: dict[Node, int] = {}
    given, held = ({n: i for i, n in enumerate(nodes)} for nodes in (inputs, constants))
    whole = set(graph.outputs)
    for n in graph.outputs:
        if n.op.name == "input":
            outputs.append(Output("input", given[n], n))
        elif n.op.name == "leaf":
            outputs.append(Output("constant", held[n], n))
        else:
            base = n
            while base.op.name == "reshape":
                base = base.inputs[0]
            if base is n or base.op.kind == "leaf" or base in whole or base in computed:
                base = n
            outputs.append(Output("computed", computed.setdefault(base, len(computed)), n))
    return outputs, list(computed)


def _read_elsewhere(root: Node, group: Any, roots: set[Node]) -> set[Node]:
    """Roots of other groups that ``root`` is made of."""
    out: set[Node] = set()
    seen: set[Node] = set()
    stack = list(root.inputs)
    while stack:
        n = stack.pop()
        if n in seen:
            continue
        seen.add(n)
        if n in roots:
            if n not in group.members:
                out.add(n)
        else:
            stack.extend(n.inputs)
    return out
