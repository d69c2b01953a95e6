"""What is known of each step of a program without running it: what it computes, moves and comes from, and how it was tiled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hologram.graph.execution_plan import ExecutionPlan
from hologram.graph.kernel.ir import Kernel, Loop
from hologram.graph.kernel.printer import loop_text
from hologram.graph.kernel.work import Work, work_of
from hologram.graph.lower.control_step import ControlStep
from hologram.graph.lower.host_step import HostStep, work
from hologram.graph.lower.lowered import Lowered
from hologram.graph.lower.steps import Step
from hologram.ir.node import Node
from hologram.ir.traversal import post_order

MAX_NAMED_OPS = 4  # that the name of a kernel tells
_FREE_KINDS = ("movement", "leaf", "project", "input", "const", "mark")
_PRODUCTS = ("fused_mul", "mul", "mad")  # whose first two operands are factors


@dataclass(frozen=True)
class Facts:
    """Of one step. ``bytes`` and ``flops`` are those of one call: arrays that are read or written, once each, and scalar operations; None where sizes
    are known in a call alone, or the work is a routine's. ``parent`` is the number of the loop or branch around it, ``itemsize`` of the widest
    floats."""

    name: str
    kind: str
    bytes: int | None = None
    flops: int | None = None
    lines: tuple[tuple[str, int], ...] = ()
    tile: Mapping[str, Any] = field(default_factory=dict)
    parent: int | None = None
    itemsize: int = 4


def facts_of(plan: ExecutionPlan) -> list[Facts]:
    """The facts of all steps, in the order of their counters (:func:`hologram.graph.lower.steps.all_steps`)."""
    return list(_facts(plan, None, iter(range(1 << 62))))


def _facts(plan: ExecutionPlan, parent: int | None, numbers: Iterator[int]) -> Iterator[Facts]:
    for step in plan.steps:
        number = next(numbers)
        yield _of(step, plan, parent)
        if isinstance(step, ControlStep):
            for inside in step.execution_plans:
                yield from _facts(inside, number, numbers)


def _of(step: Step, plan: ExecutionPlan, parent: int | None) -> Facts:
    lines = plan.graph.lines
    if isinstance(step, Lowered):
        nodes = _computed(step)
        kind = "copy" if step.is_copy else "kernel"
        done = _work(step.kernel)
        nbytes, flops = (None, None) if done is None else (round(done.nbytes), round(done.operations))
        itemsize = 4 if done is None else done.itemsize
        return Facts(_name(step, nodes), kind, nbytes, flops, _lines(nodes, lines), _tile(step.kernel), parent, itemsize)
    own = _lines([step.node], lines)
    if isinstance(step, HostStep):
        return Facts(step.title, "host", _bytes(step.bindings), int(work(step.node)), own, parent=parent)
    inside = {line for p in step.execution_plans for line in _lines(p.graph.nodes(), p.graph.lines)}
    kind = "branch" if step.node.op.name == "switch" else "loop"
    return Facts(step.node.op.name, kind, lines=tuple(dict.fromkeys([*own, *sorted(inside)])), parent=parent)


def _computed(low: Lowered) -> list[Node]:
    """The nodes that a kernel computes, in topological order."""
    written = low.writes()
    read = set(low.reads()) - set(written)
    return [n for n in post_order(written, lambda n: () if n in read else n.inputs) if n not in read]


def _name(low: Lowered, nodes: list[Node]) -> str:
    """The ops that do the work, reductions and products first."""
    if low.is_copy:
        return "copy"
    if low.kernel.ready is not None:
        return low.kernel.ready[0]
    ops = [n.op for n in nodes if n.op.kind not in _FREE_KINDS and n.op.name != "fused_mul"]
    names = ["matmul" if op.name == "reduce_sum" and _is_product(nodes) else op.name for op in sorted(ops, key=lambda op: op.kind == "elementwise")]
    found = list(dict.fromkeys(names)) or ["copy"]
    more = f"+{len(found) - MAX_NAMED_OPS}" if len(found) > MAX_NAMED_OPS else ""
    return "_".join([*found[:MAX_NAMED_OPS], *filter(None, [more])])


def _is_product(nodes: list[Node]) -> bool:
    """Whether a sum of products reads each factor many times, as a product of matrices does."""
    terms = [x for n in nodes if n.op.name == "reduce_sum" for x in _sources(n.inputs[0]) if x.op.name in _PRODUCTS]
    return any(all(_is_repeated(f, t) for f in t.inputs[:2]) for t in terms)


def _sources(x: Node) -> list[Node]:
    """``x``, and what it is a movement of."""
    found = [x]
    while found[-1].op.kind == "movement":
        found.append(found[-1].inputs[0])
    return found


def _is_repeated(factor: Node, term: Node) -> bool:
    smallest, size = min((x.size for x in _sources(factor) if isinstance(x.size, int)), default=None), term.size
    return smallest is not None and isinstance(size, int) and 2 * smallest <= size


def _bytes(nodes: list[Node]) -> int | None:
    total = 0
    for n in dict.fromkeys(nodes):
        size = n.size
        if not isinstance(size, int):
            return None
        total += size * n.dtype.itemsize
    return total


def _work(k: Kernel) -> Work | None:
    """What a kernel does in a call; None where sizes are known in a call alone."""
    is_known = isinstance(k.iterations, int) and all(isinstance(p.size, int) for p in k.params)
    return work_of(k, {}) if is_known else None


def _lines(nodes: list[Node], lines: Mapping[Node, Any]) -> tuple[tuple[str, int], ...]:
    found = {lines[n] for n in nodes if lines.get(n) is not None and n.op.kind not in ("input", "leaf", "const")}
    return tuple(sorted((str(file), int(line)) for file, line in found))


def _tile(k: Kernel) -> dict[str, Any]:
    """The nest of loops that has the most accumulators, outermost first, and what a thread keeps beside registers."""
    chains = list(_chains(k.body, ())) or [()]
    deepest = max(chains, key=lambda chain: (len(chain[-1].accs) if chain else 0, len(chain)))
    return {
        "iterations": k.iterations if isinstance(k.iterations, int) else str(k.iterations),
        "loops": " › ".join(loop_text(loop) for loop in deepest),
        "accumulators": len(deepest[-1].accs) if deepest else 0,
        "scratch_bytes": sum(b.size * b.dtype.itemsize for b in k.scratch if isinstance(b.size, int)),
    }


def _chains(body: list[Any], around: tuple[Loop, ...]) -> Iterator[tuple[Loop, ...]]:
    """Each loop with those around it."""
    for s in body:
        if isinstance(s, Loop):
            chain = (*around, s)
            yield chain
            yield from _chains(s.body, chain)
