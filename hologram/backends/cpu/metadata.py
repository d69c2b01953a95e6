"""What a call must know of a program besides its code, as the disk cache keeps it: where constants, results and donated memory come from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hologram.backends import object_cache as cache
from hologram.graph.execution_plan import ExecutionPlan
from hologram.ir.graph import Graph
from hologram.ir.leaves import FoldedConstant, leaf
from hologram.ir.node import Node


def of(s: ExecutionPlan, precision: str, leaves: list[Any]) -> dict[str, Any]:
    """What a call must know besides the facts of any plan."""
    folded = [] if s.initializer is None else s.initializer.graph.outputs
    return {"constants": _numbered(s.constants, leaves), "held": [_known_as(x, precision, leaves) for x in folded], "donors": s.donors()}


def of_initializer(s: ExecutionPlan, leaves: list[Any]) -> dict[str, Any]:
    """The same, of the program that computes the folded constants."""
    return {"constants": _numbered(s.constants, leaves)}


def describes(known: dict[str, Any], traced: Graph, leaves: list[Any]) -> bool:
    """Whether metadata from the disk can be that of the graph: memory is taken and passed on as it says."""
    if not cache.fits(known, {"constants": [(str, int)], "held": [(str, [int], (str, [int]))], "donors": [[int]]}):
        return False
    inputs, results = ([_type_of(x) for x in nodes] for nodes in (traced.inputs, traced.outputs))
    constants, computed = known["constants"], known["computed"]
    sources = {"input": inputs, "computed": computed, "constant": constants}
    return (
        all(_is_index(i, {"leaf": leaves, "held": known["held"]}.get(kind, ())) for kind, i in constants)
        and all(_is_index(i, leaves) for _, read, _ in known["held"] for i in read)
        and len(known["donors"]) == len(computed)
        and all(_is_index(i, inputs) for donors in known["donors"] for i in donors)
        and len(known["outputs"]) == len(results)
        and all(_is_index(i, sources.get(kind, ())) for kind, i in known["outputs"])
        and all(kind == "constant" or sources[kind][i] == type for (kind, i), type in zip(known["outputs"], results, strict=True))
        and all(t in results for t in computed)
    )


def describes_initializer(known: dict[str, Any], types: list[Any], leaves: list[Any]) -> bool:
    """The same, of the graph of values of ``types`` that depend on constants alone."""
    return (
        cache.fits(known, {"constants": [(str, int)]})
        and all(_is_index(i, leaves) for _, i in known["constants"])
        and all(kind == "computed" and _is_index(i, known["computed"]) for kind, i in known["outputs"])
        and [known["computed"][i] for _, i in known["outputs"]] == types
        and all(t in types for t in known["computed"])
    )


def _is_index(i: int, of: Sequence[Any]) -> bool:
    return 0 <= i < len(of)


def _type_of(x: Node) -> list[Any]:
    """As metadata has it."""
    return [x.dtype.name, list(x.shape)]


def _known_as(value: Node, precision: str, leaves: list[Any]) -> tuple[str, list[int], list[Any]]:
    """What computes a value that is held, the leaves that it takes, and its type."""
    graph = Graph([], [value])
    return cache.key("held", str(graph), precision), [i for _, i in _numbered([n for n in graph.nodes() if n.op is leaf], leaves)], _type_of(value)


def _numbered(constants: list[Node], leaves: list[Any]) -> list[tuple[str, int]]:
    """Of each constant whether it is a leaf of the traced graph or held, and which."""
    number = {id(x): i for i, x in enumerate(leaves)}
    return [("held", s.index) if isinstance(s := c.attrs[0], FoldedConstant) else ("leaf", number[id(s)]) for c in constants]


def leaves_of(graph: Graph) -> list[Any]:
    """Storages of the graph's hidden parameters, in topological order, each once."""
    out: dict[int, Any] = {}
    for n in graph.nodes():
        if n.op.name == "leaf":
            out.setdefault(id(n.attrs[0]), n.attrs[0])
    return list(out.values())
