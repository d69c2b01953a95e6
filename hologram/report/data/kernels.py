"""Kernels and steps as data: loop nests, buffers, work, the least time that the machine needs, the user's lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from hologram.backends.limits import Limits
from hologram.graph.execution_plan import ExecutionPlan
from hologram.graph.fusion.groups import Group
from hologram.graph.kernel.ir import Kernel, Loop, Stmt
from hologram.graph.kernel.printer import loop_text, print_kernel
from hologram.graph.kernel.work import at_sizes, work_of
from hologram.graph.lower.control_step import ControlStep
from hologram.graph.lower.lowered import Lowered
from hologram.ir.graph import Graph
from hologram.ir.node import Node
from hologram.primitives.control import project, scan
from hologram.report.data.graphs import type_of
from hologram.report.data.references import References
from hologram.report.data.titles import title_of

MAX_LINE_DISTANCE = 4  # of nodes whose lines a kernel has where its own have none


class Found(NamedTuple):
    """A kernel of a plan: ``path`` names the loops and branches around it, ``step`` is that of the outermost plan, ``times`` how often it runs in
    one run of that."""

    low: Lowered
    plan: ExecutionPlan
    path: tuple[str, ...]
    step: int
    times: int


def kernels_of(plan: ExecutionPlan, sizes: Mapping[str, int]) -> list[Found]:
    """All kernels in the order of :attr:`ExecutionPlan.kernels`."""
    return list(_found(plan, sizes, (), None, 1))


def _found(plan: ExecutionPlan, sizes: Mapping[str, int], path: tuple[str, ...], step: int | None, times: int) -> Iterator[Found]:
    for k, s in enumerate(plan.steps):
        at = k if step is None else step
        if isinstance(s, Lowered):
            yield Found(s, plan, path, at, times)
        elif isinstance(s, ControlStep):
            again = at_sizes(s.node.attrs[3], sizes) if s.node.op is scan else 1
            for i, body in enumerate(s.execution_plans):
                name = s.node.op.name if len(s.execution_plans) == 1 else f"{s.node.op.name} {i}"
                yield from _found(body, sizes, (*path, name), at, times * again)


def kernel_ids(plan: ExecutionPlan, found: Sequence[Found], prefix: str = "k") -> dict[Group | Node, list[str]]:
    """The ids of each group's kernels, and of those in the bodies of each control node of ``plan``."""
    ids: dict[Group | Node, list[str]] = {}
    for i, f in enumerate(found):
        step = plan.steps[f.step]
        ids.setdefault(f.low.group if isinstance(step, Lowered) else step.node, []).append(f"{prefix}{i}")
    return ids


def kernel_data(id: str, found: Found, lines: Sequence[Graph], sizes: Mapping[str, int], limits: Limits, references: References) -> dict[str, Any]:
    """One kernel. ``lines``: graphs that know the user's lines of its nodes."""
    low, kernel = found.low, found.low.kernel
    work = work_of(kernel, sizes)
    seconds, bound = limits.seconds(work.nbytes, work.operations, work.itemsize)
    return {
        "id": id,
        "title": title_of(low),
        "path": list(found.path),
        "step": found.step,
        "times": found.times,
        "places": references.places(_lines(low.group, lines)),
        "values": [type_of(n) for n in low.writes()],
        "buffers": [_buffer(n, b, found) for n, b in zip(low.bindings, kernel.params, strict=True)],
        "iterations": str(kernel.iterations),
        "loops": _loops(kernel),
        "text": print_kernel(kernel).rstrip(),
        "bytes": round(work.nbytes),
        "flops": round(work.operations),
        "least_seconds": seconds,
        "bound": bound,
        "is_copy": low.is_copy,
    }


def _lines(group: Group, graphs: Sequence[Graph]) -> Iterator[Any]:
    """The lines of what a group computes; those of its values twice, so that they come first."""
    found = [line_of(n, graphs) for v in group.nodes for n in (v, v, *v.inputs)]
    level = [x for v in group.nodes for x in v.inputs]
    for _ in range(MAX_LINE_DISTANCE):
        if any(found):
            break
        level = [x for n in level for x in n.inputs]
        found = [line_of(n, graphs) for n in level]
    yield from found


def line_of(node: Node, graphs: Sequence[Graph]) -> Any:
    """The user's line of a node, from the first of ``graphs`` that knows it; None where none does."""
    return next((g.lines[node] for g in graphs if g.lines.get(node) is not None), None)


def _buffer(node: Node, parameter: Any, found: Found) -> dict[str, Any]:
    return {"name": parameter.name, "role": parameter.role, "type": type_of(node), "is": origin(node, found.plan)}


def origin(node: Node, plan: ExecutionPlan) -> str:
    """What an array of a plan is: ``argument 0``, ``result 1``, or the op that computes it."""
    if node in plan.inputs:
        return f"argument {plan.inputs.index(node)}"
    if node in plan.constants:
        return f"constant {plan.constants.index(node)}"
    if node in plan.computed:
        return f"result {plan.computed.index(node)}"
    return f"result {node.attrs[0]} of {node.inputs[0].op.name}" if node.op is project else node.op.name


def _loops(kernel: Kernel) -> list[str]:
    """The longest way down the nest: ``parallel p 172``."""
    if kernel.ready is not None:
        return [f"library routine {kernel.ready[0]}"]
    return max(_ways(kernel.body), key=len, default=[])


def _ways(body: list[Stmt]) -> Iterator[list[str]]:
    for s in body:
        if isinstance(s, Loop):
            here = loop_text(s)
            yield [here]
            for rest in _ways(s.body):
                yield [here, *rest]


def steps_data(plan: ExecutionPlan, kernels: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """What runs in each step of a plan: ``kind`` kernel, control or host, ``title``, and the ids of its ``kernels``."""
    inside: dict[int, list[str]] = {}
    for k in kernels:
        inside.setdefault(k["step"], []).append(k["id"])
    titles = {k["id"]: k["title"] for k in kernels}
    out = []
    for i, s in enumerate(plan.steps):
        ids = inside.get(i, [])
        if isinstance(s, Lowered):
            out.append({"kind": "kernel", "title": titles[ids[0]], "kernels": ids})
        else:
            kind = "control" if isinstance(s, ControlStep) else "host"
            out.append({"kind": kind, "title": s.node.op.name, "kernels": ids})
    return out
