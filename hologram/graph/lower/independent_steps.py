"""Loops whose steps are independent: they may run in any order, and by several threads at a time.

The steps of a scan are independent if each of its carries is

- a *counter*, to which each step adds the same number: a step knows its value from its own number; or
- an array that no step reads, and of which each writes a window of its own: along some axis the window starts at a counter (and a constant), and a
  step moves the counter by at least the window's extent. What a window that is not inside of the array does, which is nothing, does not depend on
  other steps.

What a step reads of its sequences and writes of its stacked results is its own anyway.
"""

from __future__ import annotations

from hologram.graph.canonical.loop_ranges import counter_step
from hologram.graph.lower.control_step import Carry, ControlStep
from hologram.ir.graph import Graph
from hologram.ir.node import Node
from hologram.ir.traversal import users_of
from hologram.primitives.control import scan
from hologram.primitives.indexing import window_sizes


def independent_steps(step: ControlStep) -> dict[int, int] | None:
    """By how much each step moves each counter among the carries of a loop whose steps are independent; None for any other step of a program."""
    if step.node.op is not scan:
        return None
    graph, consts, carries = step.execution_plans[0].graph, step.consts, step.node.attrs[2]
    length = step.node.attrs[3]
    counters = {k: by for k in range(carries) if (by := _counts_by(graph, consts + k, counter_step(graph, consts, k), length))}
    moved = {graph.inputs[consts + k]: by for k, by in counters.items()}
    users = users_of(graph.nodes())
    for k in range(carries):
        if k not in counters and not (step.carries[k] is Carry.IN_PLACE and _writes_its_own(graph, consts, k, moved, users)):
            return None
    return counters


def _counts_by(graph: Graph, argument: int, by: int | None, length: int) -> int | None:
    """``by``, where a counter that each of ``length`` steps moves by it is a number whose type does not wrap on the way."""
    x = graph.inputs[argument]
    return by if by is not None and x.shape == () and abs(by) * length < 2 ** (x.dtype.bits - 1) else None


def _writes_its_own(graph: Graph, consts: int, k: int, moved: dict[Node, int], users: dict[Node, list[Node]]) -> bool:
    """Whether all that a step does with carry ``k`` is to write a window of its own."""
    n = graph.inputs[consts + k]
    was_written = False
    while n is not graph.outputs[k]:
        readers = users.get(n, [])
        if len(readers) != 1 or n in graph.outputs:
            return False
        (reader,) = readers
        if reader.op.kind == "scatter" and reader.inputs[0] is n and n not in reader.inputs[1:]:
            if was_written or not _is_own(reader, moved):
                return False
            was_written = True
        elif reader.op.name != "reshape":
            return False
        n = reader
    return was_written and graph.outputs.count(n) == 1 and not users.get(n)


def _is_own(scatter: Node, moved: dict[Node, int]) -> bool:
    """Whether no two steps write the same element."""
    (_, updates, *starts), (axes, batch) = scatter.inputs, scatter.attrs
    if any(n != 1 for n in starts[0].shape[batch:]):
        return False  # several windows a step
    sizes = window_sizes(updates.shape, starts[0].shape, axes, batch)
    return any(_lies_apart(start, size, moved) for start, size in zip(starts, sizes, strict=True))


def _lies_apart(start: Node, extent: object, moved: dict[Node, int]) -> bool:
    """Whether windows of an extent that begin at ``start`` do not meet from step to step."""
    while start not in moved:
        if start.op.name in ("reshape", "broadcast") or (start.op.name == "cast" and start.dtype.bits >= start.inputs[0].dtype.bits):
            start = start.inputs[0]
        elif start.op.name in ("add", "sub") and _is_number(start.inputs[1]):
            start = start.inputs[0]
        elif start.op.name in ("add", "sub") and _is_number(start.inputs[0]):
            start = start.inputs[1]
        else:
            return False
    return isinstance(extent, int) and abs(moved[start]) >= extent


def _is_number(x: Node) -> bool:
    while x.op.name in ("reshape", "broadcast"):
        x = x.inputs[0]
    return x.op.name == "const"
