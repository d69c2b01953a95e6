"""The memory map as data: where each buffer lies and when, the peak, what makes it, and the lower bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hologram.graph.execution_plan import ExecutionPlan
from hologram.graph.kernel.work import at_sizes
from hologram.graph.lower.control_step import ControlStep
from hologram.graph.memory.arena import LINE_BYTES, PAGE_BYTES, POOL_PAGES, Placement
from hologram.ir.graph import Graph
from hologram.ir.node import Node, symbolic_bytes
from hologram.report.data.graphs import type_of
from hologram.report.data.kernels import line_of, origin
from hologram.report.data.references import References


def memory_data(plan: ExecutionPlan, sizes: Mapping[str, int], lines: Sequence[Graph], references: References) -> dict[str, Any]:
    """The arena at these values of the symbols. Addresses and sizes are in bytes, times in steps of the plan."""
    allocation, kernels = plan.allocate(sizes), plan.kernels
    buffers = []
    for i, (what, *_) in enumerate(plan.temporaries):
        buffers.append(_buffer(allocation.buffers[i], what, plan, lines, references))
    _name_heirs(buffers)
    alive = [sum(-(-b["bytes"] // LINE_BYTES) * LINE_BYTES for b in buffers if _holds(b, step)) for step in range(len(plan.steps))]
    peak_step = max(range(len(alive)), key=alive.__getitem__, default=0)
    at_peak = [i for i, b in enumerate(buffers) if _holds(b, peak_step)]
    return {
        "page_bytes": PAGE_BYTES,
        "pages": POOL_PAGES,
        "arena": allocation.arena_bytes,
        "lower_bound": allocation.lower_bound,
        "alive": alive,
        "peak_step": peak_step,
        "at_peak": sorted(at_peak, key=lambda i: -buffers[i]["bytes"]),
        "buffers": buffers,
        "arguments": _total(plan.inputs, sizes),
        "constants": _total(plan.constants, sizes),
        "folded": 0 if plan.initializer is None else _total(plan.initializer.graph.outputs, sizes),
        "results": _total(plan.computed, sizes),
        "scratch": max((sum(at_sizes(b.size, sizes) * b.dtype.itemsize for b in k.kernel.scratch) for k in kernels), default=0),
    }


def _total(nodes: Sequence[Node], sizes: Mapping[str, int]) -> int:
    return sum(at_sizes(symbolic_bytes(n), sizes) for n in nodes)


def _name_heirs(buffers: Sequence[dict[str, Any]]) -> None:
    """Says of each buffer which one takes over its address, in place, in the last step that reads it."""
    begin = {(b["offset"], b["first"]): i for i, b in enumerate(buffers) if b["bytes"]}
    for b in buffers:
        heir = begin.get((b["offset"], b["last"]))
        if b["bytes"] and b["first"] < b["last"] and heir is not None:
            b["heir"] = heir


def _holds(buffer: Mapping[str, Any], step: int) -> bool:
    """Whether bytes of the arena are counted as this buffer's in a step: those that an heir takes over there are the heir's."""
    until = buffer["last"] - ("heir" in buffer)
    return bool(buffer["bytes"]) and buffer["first"] <= step <= until


def _buffer(placed: Placement, what: Node | ControlStep, plan: ExecutionPlan, lines: Sequence[Graph], references: References) -> dict[str, Any]:
    is_array = isinstance(what, Node)
    node = what if isinstance(what, Node) else what.node
    out = {
        "is": origin(node, plan) if is_array else f"workspace of {node.op.name}",
        "type": type_of(node) if is_array else f"{placed.nbytes} bytes",
        "offset": placed.offset,
        "bytes": placed.nbytes,
        "first": placed.first,
        "last": placed.last,
    }
    if placed.class_index is not None:
        out["page"] = placed.class_index
    place = references.place(line_of(node, lines))
    return out if place is None else out | {"place": place}
