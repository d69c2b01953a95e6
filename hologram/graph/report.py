"""Reports on a compiled graph: how far it was reduced, its cost, and its memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hologram.graph.execution_plan import ExecutionPlan
from hologram.graph.memory.arena import ArenaAllocation
from hologram.ir.graph import Graph, bodies
from hologram.ir.node import Node
from hologram.ir.symbolic import prod
from hologram.primitives.control import scan, switch
from hologram.support.wording import counted


@dataclass(frozen=True)
class Reduction:
    """Operations as traced, after canonical reduction, and kernels launched; scalar operations before and after; calls of host routines;
    and how often each rewrite rule fired.

    Work of routines is in the first two, and not in the scalar operations. Rules count in a body of control flow, too, unless an earlier program
    has reduced the same body.
    """

    traced: int
    canonical: int
    kernels: int
    arithmetic_traced: int
    arithmetic_canonical: int
    host_calls: int = 0
    rules: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        host = f" and {counted(self.host_calls, 'call')} of the host" if self.host_calls else ""
        rules = ", ".join(f"{name} {n}" for name, n in sorted(self.rules.items(), key=lambda r: (-r[1], r[0])))
        return (
            f"{counted(self.traced, 'operation')} traced -> {self.canonical:,} canonical -> {counted(self.kernels, 'kernel')}{host}; "
            f"scalar operations {self.arithmetic_traced:,} -> {self.arithmetic_canonical:,}" + (f"\nrules fired: {rules}" if rules else "")
        )


@dataclass(frozen=True)
class Cost:
    """Least bytes moved (inputs, constants and results once each), bytes of intermediates written and read, scalar operations."""

    bytes_moved: int
    intermediate_bytes: int
    operations: int

    def __str__(self) -> str:
        return f"{self.bytes_moved:,} bytes in and out, {self.intermediate_bytes:,} through intermediates, {self.operations:,} scalar operations"


@dataclass(frozen=True)
class Memory:
    """The plan of the intermediates, and the bytes of arguments, constants and results. Of the constants ``held_bytes`` are computed once, from
    others that calls may not read at all. ``copies`` names the arrays that updates copy, each with the reason."""

    plan: ArenaAllocation
    argument_bytes: int
    constant_bytes: int
    result_bytes: int
    scratch_bytes: int
    held_bytes: int = 0
    copies: tuple[str, ...] = ()

    @property
    def peak(self) -> int:
        return self.plan.peak

    @property
    def lower_bound(self) -> int:
        return self.plan.lower_bound

    def __str__(self) -> str:
        held = f" ({self.held_bytes:,} computed once and held)" if self.held_bytes else ""
        return (
            f"arguments {self.argument_bytes:,} bytes, constants {self.constant_bytes:,}{held}, results {self.result_bytes:,}, "
            f"scratch of a thread {self.scratch_bytes:,}\n{self.plan}" + "".join(f"\nupdates copy {c}" for c in self.copies)
        )


def _operations(graph: Graph) -> int:
    """Operations of a graph, those of each body once."""
    total = 0
    for n in graph.nodes():
        if n.op.kind == "control":
            total += sum(_operations(b.graph) for b in bodies(n))
        elif n.op.kind not in ("leaf", "project"):
            total += 1
    return total


def _arithmetic(graph: Graph) -> int:
    """Scalar operations: of a scan in all its steps, of a while loop in one, of a choice in its longest branch."""
    total = 0
    for n in graph.nodes():
        if n.op.kind == "control":
            inside = [_arithmetic(b.graph) for b in bodies(n)]
            total += n.attrs[3] * inside[0] if n.op is scan else max(inside) if n.op is switch else sum(inside)
        elif n.op.kind not in ("movement", "leaf", "project", "host"):
            size = prod((n.inputs[0] if n.op.kind == "reduce" else n).shape)
            total += size if isinstance(size, int) else 0
    return total


def reduction_of(traced: Graph, canonical: Graph, plan: ExecutionPlan, rules: Mapping[str, int]) -> Reduction:
    kernels, host = len(plan.kernels), len(plan.host_steps)
    return Reduction(_operations(traced), _operations(canonical), kernels, _arithmetic(traced), _arithmetic(canonical), host, rules)


def nbytes(node: Node) -> int:
    """Bytes of an array; 0 where a symbol is among its extents."""
    size = node.size
    return size * node.dtype.itemsize if isinstance(size, int) else 0


def _nbytes(nodes: list[Node]) -> int:
    return sum(map(nbytes, nodes))


def cost_of(plan: ExecutionPlan) -> Cost:
    moved = _nbytes([*plan.inputs, *plan.constants, *plan.computed])
    between = 2 * _nbytes([n for n, *_ in plan.temporaries if isinstance(n, Node)])
    return Cost(moved, between, _arithmetic(plan.graph))


def memory_of(plan: ExecutionPlan) -> Memory:
    """For static shapes the addresses; with symbols those at extent 1."""
    allocation = plan.allocate(dict.fromkeys(plan.symbols, 1))
    scratch = max((sum(int(b.size) * b.dtype.itemsize for b in k.kernel.scratch) for k in plan.kernels), default=0)
    held = 0 if plan.initializer is None else _nbytes(plan.initializer.graph.outputs)
    copies = tuple(f"{c.of.dtype}{list(c.of.shape)}: {c.why}" for c in plan.copies)
    return Memory(allocation, _nbytes(plan.inputs), _nbytes(plan.constants), _nbytes(plan.computed), scratch, held, copies)
