"""Placement by minimum cut: where nodes are computed at least cost, the CPU and one device to choose from.

**Costs** are nanoseconds, of rates that are measured once a machine (:mod:`hologram.backends.rates`): each *vertex*, a node with what picks its
results, costs its scalar operations, the bytes that it reads and writes in memory, and on a device a launch. Chains fuse, so only values that stand
in memory for certain are written and launched for: results, and what is no element-wise op and no movement. A value that the other side reads is
carried there once, however many read it.

**Cut.** An arc from the CPU's side to a vertex has the capacity of its cost on the device, one from the vertex to the device's side that of its
cost on the CPU. The carriage of a value is an arc to a point of its own, from which arcs of no limit lead to its readers. The least cut parts the
vertices at the least total cost: Stone, *Multiprocessor Scheduling with the Aid of Network Flow Algorithms*, 1977.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from hologram.graph.lower.host_step import work
from hologram.graph.report import nbytes
from hologram.ir.graph import Graph, bodies
from hologram.ir.leaves import input_
from hologram.ir.node import Node
from hologram.ir.op import MULTI_RESULT
from hologram.ir.symbolic import is_static, prod
from hologram.primitives.control import scan, switch

NEVER = math.inf
ASSUMED_STEPS = 100  # of a while loop, as far as anyone knows
MAX_VERTICES = 5_000  # above this a graph is not cut: it goes where the whole of it costs less
_FUSED = ("elementwise", "movement", "mark")  # kinds that leave nothing in memory


@dataclass(frozen=True, slots=True)
class Rates:
    """What a device takes, in nanoseconds: a call of a program and the wait for it, each launch in it, a scalar operation, a byte of its memory read
    or written; a transfer from the host or back, and each byte of it."""

    call: float
    launch: float
    operation: float
    byte: float
    transfer: float = 0.0
    transfer_byte: float = 0.0

    def __str__(self) -> str:
        here = (
            f"a call {self.call / 1e3:,.1f} us, a launch {self.launch / 1e3:,.2f} us, {_giga(self.operation)} GFLOP/s, memory {_giga(self.byte)} GB/s"
        )
        there = f"; a transfer {self.transfer / 1e3:,.1f} us and {_giga(self.transfer_byte)} GB/s" if self.transfer else ""
        return here + there

    def carriage(self, bytes_moved: int) -> float:
        return self.transfer + self.transfer_byte * bytes_moved


def _giga(nanoseconds: float) -> str:
    """How many billions a second, of what takes so long."""
    return f"{1 / nanoseconds:,.1f}" if nanoseconds else "unmeasurable"


class Value(NamedTuple):
    """What ``source`` gives ``readers`` (vertices), and the cost to carry it to the device, or from it."""

    source: int
    readers: tuple[int, ...]
    to_device: float
    from_device: float


@dataclass(slots=True)
class Problem:
    """``on_cpu[i]`` and ``on_device[i]`` are what vertex i costs there; NEVER where it cannot be."""

    on_cpu: list[float] = field(default_factory=list)
    on_device: list[float] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)

    def vertex(self, on_cpu: float, on_device: float) -> int:
        self.on_cpu.append(on_cpu)
        self.on_device.append(on_device)
        return len(self.on_cpu) - 1

    def cost(self, chosen: Sequence[bool]) -> float:
        """The total where vertex i is on the device if ``chosen[i]``."""
        total = sum(d if c else h for c, h, d in zip(chosen, self.on_cpu, self.on_device, strict=True))
        for v in self.values:
            if any(chosen[r] != chosen[v.source] for r in v.readers):
                total += v.from_device if chosen[v.source] else v.to_device
        return total


def minimum_cut(problem: Problem) -> list[bool]:
    """For each vertex whether it is on the device, at the least total cost. Some choice must cost less than NEVER."""
    import networkx

    g = networkx.DiGraph()
    for i, (cpu, device) in enumerate(zip(problem.on_cpu, problem.on_device, strict=True)):
        g.add_edge("cpu", i, **_capacity(device))
        g.add_edge(i, "device", **_capacity(cpu))
    for k, v in enumerate(problem.values):
        if v.to_device:
            g.add_edge(v.source, ("to", k), **_capacity(v.to_device))
            g.add_edges_from((("to", k), r) for r in v.readers)
        if v.from_device:
            g.add_edge(("from", k), v.source, **_capacity(v.from_device))
            g.add_edges_from((r, ("from", k)) for r in v.readers)
    _, (on_cpu, _) = networkx.minimum_cut(g, "cpu", "device")
    return [i not in on_cpu for i in range(len(problem.on_cpu))]


def _capacity(cost: float) -> dict[str, int]:
    """Whole picoseconds, since flow algorithms stall on fractions; nothing where there is no limit."""
    return {} if cost == NEVER else {"capacity": round(cost * 1000)}


# --- graphs ----------------------------------------------------------------------------------------------------------


class Placement(NamedTuple):
    """``where`` says of every node that is computed whether it is on the device. Costs in nanoseconds: of this, and of everything in one place."""

    where: dict[Node, bool]
    cost: float
    cpu_cost: float
    device_cost: float

    def __str__(self) -> str:
        there = sum(self.where.values())
        cut = f"{len(self.where) - there} operations on the CPU and {there} on the device: {self.cost / 1e3:,.1f} us"
        return f"{cut}; all on the CPU {self.cpu_cost / 1e3:,.1f} us, all on the device {self.device_cost / 1e3:,.1f} us"


def place(graph: Graph, at_device: Sequence[bool], cpu: Rates, device: Rates) -> Placement:
    """Where the nodes of a graph in canonical form are computed, of static shapes. ``at_device`` says which arguments are on the device; where none
    is, results are taken to be read by the CPU."""
    problem, of = problem_of(graph, at_device, cpu, device)
    here = [c == NEVER for c in problem.on_cpu]
    there = [d != NEVER for d in problem.on_device]
    chosen = _chosen(problem, here, there, device.call)
    where = {n: chosen[i] for n, i in of.items() if n.op is not input_}
    return Placement(where, problem.cost(chosen) + device.call * any(where.values()), problem.cost(here), problem.cost(there) + device.call)


def problem_of(graph: Graph, at_device: Sequence[bool], cpu: Rates, device: Rates) -> tuple[Problem, dict[Node, int]]:
    """What :func:`place` solves, but for the call: vertices of the arguments, which stay where they are, and of all that is computed."""
    problem = Problem()
    of: dict[Node, int] = {x: problem.vertex(*((NEVER, 0.0) if there else (0.0, NEVER))) for x, there in zip(graph.inputs, at_device, strict=True)}
    stored = {n for n in graph.nodes() if n.op.kind not in (*_FUSED, "leaf")} | set(graph.outputs)
    nodes = [n for n in graph.nodes() if n.op.kind != "leaf"]
    for n in nodes:
        if n.op.kind == "project":
            of[n] = of[n.inputs[0]]
        else:
            moved = _moved(n, stored)
            of[n] = problem.vertex(_time(n, cpu, cpu, moved, n in stored), _time(n, device, cpu, moved, n in stored))
    reader = None if any(at_device) else problem.vertex(0.0, NEVER)
    problem.values += _values(graph, nodes, of, reader, device)
    return problem, of


def _chosen(problem: Problem, here: list[bool], there: list[bool], call: float) -> list[bool]:
    """The least cut, or the better of the two sides; the device's must be worth a call."""
    best = minimum_cut(problem) if len(problem.on_cpu) <= MAX_VERTICES else min(here, there, key=problem.cost)
    return here if problem.cost(here) <= problem.cost(best) + call else best


def _values(graph: Graph, nodes: list[Node], of: Mapping[Node, int], reader: int | None, device: Rates) -> list[Value]:
    readers: dict[Node, dict[int, None]] = {}
    for n in nodes:
        for x in n.inputs:
            if x in of and of[x] != of[n]:
                readers.setdefault(x, {})[of[n]] = None
    for x in graph.outputs:
        if reader is not None and x in of:
            readers.setdefault(x, {})[reader] = None
    return [Value(of[x], tuple(found), *[device.carriage(nbytes(x))] * 2) for x, found in readers.items()]


def _moved(n: Node, stored: set[Node]) -> int:
    """Bytes that a node reads and writes in memory."""
    read = sum(min(nbytes(x), max(nbytes(n), 1)) if n.op.kind == "movement" else nbytes(x) for x in n.inputs if x in stored or x.op.kind == "leaf")
    return read + (nbytes(n) if n in stored else 0)


def _time(n: Node, rates: Rates, cpu: Rates, moved: int, is_stored: bool) -> float:
    """What a node costs at ``rates``. Routines of the host run at those of ``cpu`` wherever they are called."""
    launch = rates.launch if is_stored else 0.0
    if n.op.kind == "control":
        return launch + _control(n, rates, cpu)
    if n.op.kind == "host":
        carried = 0.0 if rates is cpu else sum(rates.carriage(nbytes(x)) for x in (*n.inputs, n))
        return launch + work(n) * cpu.operation + carried
    return launch + _count(n) * rates.operation + moved * rates.byte


def _control(n: Node, rates: Rates, cpu: Rates) -> float:
    """A loop's steps one after the other, a choice's longest branch; what decides comes back from the device each time."""
    inside = [sum(_time(x, rates, cpu, nbytes(x), x.op.kind not in (*_FUSED, "leaf")) for x in b.graph.nodes()) for b in bodies(n)]
    inside = [t + rates.launch for t in inside]
    if n.op is scan:
        return n.attrs[3] * inside[0]
    return max(inside) + rates.transfer if n.op is switch else ASSUMED_STEPS * (sum(inside) + rates.transfer)


def _count(n: Node) -> float:
    """Scalar operations of a node that is none of control flow."""
    if n.op.kind in (*MULTI_RESULT, "movement", "leaf", "project", "mark"):
        return 0.0
    if n.op.kind == "contraction":
        w = n.inputs[1]
        return 2.0 * int(n.size) * int(prod(w.shape[2:]))
    return float(int((n.inputs[0] if n.op.kind in ("reduce", "sort") else n).size) * n.op.cost)


def is_placeable(graph: Graph) -> bool:
    """Whether the sizes of a graph are known."""
    return all(is_static(e) for x in graph.inputs for e in x.shape)
