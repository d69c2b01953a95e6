"""A graph after fusion: its groups in order, what they compute, and where each result of the program comes from."""

from __future__ import annotations

from collections.abc import Sequence

from hologram.graph.fusion.fuse import fuse
from hologram.graph.fusion.groups import Call, Group
from hologram.ir.graph import Carries, Graph
from hologram.ir.node import Node
from hologram.ir.traversal import topological


class Output:
    """A result: ``kind`` input or constant (the argument itself, number ``index``), or computed (output slot ``index``)."""

    __slots__ = ("kind", "index", "node")

    def __init__(self, kind: str, index: int, node: Node) -> None:
        self.kind, self.index, self.node = kind, index, node


class FusedGraph:
    """``groups`` compute ``computed``, the nodes of the output slots. ``outputs`` says of each result where it comes from; ``constants`` are the
    graph's leaves."""

    __slots__ = ("graph", "constants", "outputs", "computed", "groups")

    def __init__(self, graph: Graph, constants: list[Node], outputs: list[Output], computed: list[Node], groups: list[Group | Call]) -> None:
        self.graph, self.constants, self.outputs, self.computed, self.groups = graph, constants, outputs, computed, groups

    def __str__(self) -> str:
        names = {n: f"%{i}" for i, n in enumerate(self.graph.nodes())}
        return "\n".join([str(self.graph), *[_described(i, g, names) for i, g in enumerate(self.groups)]])


def fuse_graph(graph: Graph, on_device: bool, library_flops: float, carries: Carries = ()) -> FusedGraph:
    """``graph`` after fusion. ``on_device``, ``library_flops`` and ``carries``: as :func:`hologram.graph.fusion.fuse.fuse` has it."""
    constants = [n for n in topological(graph.outputs) if n.op.name == "leaf"]
    outputs, computed = _outputs(graph, constants)
    return FusedGraph(graph, constants, outputs, computed, fuse(Graph(graph.inputs, computed), on_device, library_flops, carries))


def _described(number: int, group: Group | Call, names: dict[Node, str]) -> str:
    if isinstance(group, Call):
        return f"group {number}: calls {group.node.op.name} for {_listed(group.results, names)}"
    axes = "" if group.axes is None else f", reduced along {', '.join(map(str, group.axes))}"
    return f"group {number}: over {list(group.shape)}{axes}, computes {_listed(group.nodes, names)}"


def _listed(nodes: Sequence[Node], names: dict[Node, str]) -> str:
    return ", ".join(f"{names.get(n, '%?')} = {n.op.name}" for n in nodes) or "nothing"


def _outputs(graph: Graph, constants: list[Node]) -> tuple[list[Output], list[Node]]:
    """Where each result comes from, and the nodes to compute. A reshape of a value is that value's memory."""
    outputs: list[Output] = []
    computed: dict[Node, int] = {}
    given, folded = ({n: i for i, n in enumerate(nodes)} for nodes in (graph.inputs, constants))
    whole = set(graph.outputs)
    for n in graph.outputs:
        if n.op.name == "input":
            outputs.append(Output("input", given[n], n))
        elif n.op.name == "leaf":
            outputs.append(Output("constant", folded[n], n))
        else:
            base = n
            while base.op.name == "reshape":
                base = base.inputs[0]
            if base is n or base.op.kind == "leaf" or base in whole or base in computed:
                base = n
            outputs.append(Output("computed", computed.setdefault(base, len(computed)), n))
    return outputs, list(computed)
