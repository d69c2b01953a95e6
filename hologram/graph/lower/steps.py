"""Lowering: fusion groups become kernels, loops and branches become control steps, calls of the host stay calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from hologram.graph.canonical.integer_ranges import Range
from hologram.graph.canonical.loop_ranges import NO_RANGES, GraphRanges
from hologram.graph.fusion.fused_graph import FusedGraph
from hologram.graph.fusion.groups import Call, Group, operands
from hologram.graph.kernel.printer import print_kernel
from hologram.graph.library.attention.device_kernel import lower_attention as lower_attention_by_tiles
from hologram.graph.library.attention.kernel import lower_attention
from hologram.graph.library.attention.nodes import REDUCED_SCORES
from hologram.graph.library.attention.reduced_kernel import lower_reduced
from hologram.graph.library.sort.merge import lower_sort
from hologram.graph.library.sort.radix import lower_digits
from hologram.graph.lower.control_step import ControlStep, PlanOf
from hologram.graph.lower.group import lower
from hologram.graph.lower.host_step import HostStep
from hologram.graph.lower.lowered import Lowered
from hologram.graph.lower.native_sort import lower_native
from hologram.graph.lower.scatters import lower_scatter
from hologram.graph.lower.sorted_scatters import lower_runs
from hologram.graph.memory.overwritten import Unread, unread_planes
from hologram.graph.schedule.streamed import prefetched_bytes
from hologram.graph.schedule.tiles import CpuTileConfig, GpuTileConfig, TileConfig
from hologram.ir.node import Node
from hologram.ir.traversal import reachable

Step = Lowered | ControlStep | HostStep


class LoweredGraph:
    """A fused graph and the ``steps`` that compute it, in order."""

    __slots__ = ("fused", "steps")

    def __init__(self, fused: FusedGraph, steps: list[Step]) -> None:
        self.fused, self.steps = fused, steps

    @property
    def kernels(self) -> list[Lowered]:
        """All kernels in order, those of bodies where the bodies stand."""
        return kernels_of(self.steps)

    @property
    def own_kernels(self) -> list[Lowered]:
        """The kernels that are not in a body."""
        return [s for s in self.steps if isinstance(s, Lowered)]

    def __str__(self) -> str:
        return "\n".join(print_kernel(k.kernel) for k in self.kernels)


def kernels_of(steps: list[Step]) -> list[Lowered]:
    out: list[Lowered] = []
    for step in steps:
        if isinstance(step, ControlStep):
            out += [k for s in step.execution_plans for k in s.kernels]
        elif isinstance(step, Lowered):
            out.append(step)
    return out


def host_steps_of(steps: list[Step]) -> list[HostStep]:
    """All calls of routines of the host, those of bodies where the bodies stand."""
    out: list[HostStep] = []
    for step in steps:
        if isinstance(step, ControlStep):
            out += [h for s in step.execution_plans for h in s.host_steps]
        elif isinstance(step, HostStep):
            out.append(step)
    return out


def all_steps(steps: Iterable[Step]) -> Iterator[Step]:
    """All steps in order, those of bodies after the step that runs them."""
    for step in steps:
        yield step
        if isinstance(step, ControlStep):
            for plan in step.execution_plans:
                yield from all_steps(plan.steps)


def lower_groups(fused: FusedGraph, precision: str, tile: TileConfig | None, plan_of: PlanOf, ranges: GraphRanges = NO_RANGES) -> LoweredGraph:
    """The steps of all groups. ``plan_of`` gives the execution plan of a body, which is legalized already, for inputs of some ranges; ``ranges`` are
    those of the graph."""
    materialized = {r for g in fused.groups for r in (g.results if isinstance(g, Call) else g.nodes)}
    stored = _stored(fused, materialized)
    prefetched, unread = prefetched_bytes(fused.graph), unread_planes(fused.graph)
    steps: list[Step] = []
    for g in fused.groups:
        if isinstance(g, Call):
            steps.append(HostStep(g) if g.node.op.kind == "host" else ControlStep(g, plan_of, ranges.bodies.get(g.node)))
        else:
            steps += _kernels_of(g, materialized, stored, precision, tile, ranges.values, prefetched, unread)
    return LoweredGraph(fused, steps)


def _stored(fused: FusedGraph, materialized: set[Node]) -> set[Node]:
    """The materialized values that are written to memory: results, and what another group or a call reads."""
    stored = set(fused.computed)
    for g in fused.groups:
        if isinstance(g, Call):
            stored.update(operands(g.node) if g.node.op.kind == "control" else g.node.inputs)
            continue
        for r in g.nodes:
            stored |= _read_elsewhere(r, g, materialized)
    return stored


def _kernels_of(
    group: Group,
    materialized: set[Node],
    stored: set[Node],
    precision: str,
    tile: TileConfig | None,
    ranges: Mapping[Node, Range | None],
    prefetched: int,
    unread: Mapping[Node, Unread],
) -> list[Lowered]:
    match group.nodes[0].op.kind:
        case "scatter":
            return lower_scatter(group, materialized, precision, ranges, by_vectors=isinstance(tile, CpuTileConfig))
        case "attention":
            if isinstance(tile, GpuTileConfig):
                return [(lower_reduced if group.nodes[0].op is REDUCED_SCORES else lower_attention_by_tiles)(group, materialized, tile)]
            assert tile is not None
            return [lower_attention(group, materialized, tile)]
        case "native":
            return lower_sort(group) if isinstance(tile, GpuTileConfig) else [lower_native(group)]
        case "runs":
            return lower_runs(group, materialized, precision)
        case "digits":
            assert isinstance(tile, GpuTileConfig)
            return [lower_digits(group, materialized, tile.shared_bytes)]
    return lower(group, materialized, stored, precision, tile, prefetched, unread)


def _read_elsewhere(node: Node, group: Group, materialized: set[Node]) -> set[Node]:
    """Materialized values of other groups that ``node`` is made of."""
    read = reachable(node.inputs, lambda n: () if n in materialized else n.inputs)
    return {n for n in read if n in materialized and n not in group.members}
