"""What a call must know of a program besides its code, as the disk cache keeps it: where constants, results and donated memory come from."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from hologram.backends import object_cache as cache
from hologram.errors import CompileError
from hologram.graph.execution_plan import ExecutionPlan
from hologram.graph.memory.call_sizes import CallSizes, Cost
from hologram.graph.memory.symbolic_arena import SymbolicLifetime
from hologram.ir import symbolic_json
from hologram.ir.graph import Graph
from hologram.ir.leaves import FoldedConstant, leaf
from hologram.ir.node import Node
from hologram.ir.symbolic import Expr, Int, bounds, evaluator, variables_of


def of(s: ExecutionPlan, precision: str, leaves: list[Any]) -> dict[str, Any]:
    """What a call must know besides the facts of any plan."""
    folded = [] if s.initializer is None else s.initializer.graph.outputs
    return {
        "constants": _numbered(s.constants, leaves),
        "folded": [_known_as(x, precision, leaves) for x in folded],
        "donors": s.donors(),
        "sizes": None if s.static else _sizes(s),
    }


def of_initializer(s: ExecutionPlan, leaves: list[Any]) -> dict[str, Any]:
    """The same, of the program that computes the folded constants."""
    return {"constants": _numbered(s.constants, leaves)}


def describes(known: dict[str, Any], traced: Graph, leaves: list[Any]) -> bool:
    """Whether metadata from the disk can be that of the graph: memory is taken and passed on as it says."""
    if not cache.fits(known, {"constants": [(str, int)], "folded": [(str, [int], (str, [int]))], "donors": [[int]], "sizes": object}):
        return False
    inputs, results = ([_type_of(x) for x in nodes] for nodes in (traced.inputs, traced.outputs))
    constants, computed = known["constants"], known["computed"]
    sources = {"input": inputs, "computed": computed, "constant": constants}
    return (
        all(_is_index(i, {"leaf": leaves, "folded": known["folded"]}.get(kind, ())) for kind, i in constants)
        and all(_is_index(i, leaves) for _, read, _ in known["folded"] for i in read)
        and len(known["donors"]) == len(computed)
        and all(_is_index(i, inputs) for donors in known["donors"] for i in donors)
        and len(known["outputs"]) == len(results)
        and all(_is_index(i, sources.get(kind, ())) for kind, i in known["outputs"])
        and all(kind == "constant" or sources[kind][i] == type for (kind, i), type in zip(known["outputs"], results, strict=True))
        and all(t in results for t in computed)
        and (_is_static(known, traced) or call_sizes(known, traced) is not None)
    )


def verify(known: dict[str, Any], traced: Graph, leaves: list[Any]) -> None:
    """Raises CompileError for metadata that, read from the disk, would be refused."""
    if not describes(json.loads(json.dumps(known)), traced, leaves):
        raise CompileError(f"what a call must know of a program does not describe it: {known}")


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
    return [x.dtype.name, list(map(symbolic_json.encode, x.shape))]


def _known_as(value: Node, precision: str, leaves: list[Any]) -> tuple[str, list[int], list[Any]]:
    """What computes a folded constant, the leaves that it takes, and its type."""
    graph = Graph([], [value])
    return cache.key("folded", str(graph), precision), [i for _, i in _numbered([n for n in graph.nodes() if n.op is leaf], leaves)], _type_of(value)


def _sizes(s: ExecutionPlan) -> dict[str, Any]:
    encode = symbolic_json.encode
    lifetimes = [[encode(b.nbytes), b.first, b.last, list(b.may_alias)] for b in s.sizes.lifetimes]
    return {"symbols": s.symbols, "lifetimes": lifetimes, "fixed": s.fixed_cost, "work": encode(s.work)}


_SIZES = {"symbols": [str], "lifetimes": [(object, int, int, [int])], "fixed": float, "work": object}


def call_sizes(known: dict[str, Any], traced: Graph) -> CallSizes | None:
    """What calls must know of sizes that vary; None where metadata does not tell it, as that of a program without symbols."""
    sizes: Any = known["sizes"]
    if not cache.fits(sizes, _SIZES):
        return None
    bound = {a.name: Expr({(a,): 1}) for a in traced.variables()}
    try:
        variables = {name: bound[name] for name in sizes["symbols"]}

        def integer(data: Any) -> Int:
            return symbolic_json.decode(data, variables.__getitem__, _check_divisor)

        shapes = [tuple(map(integer, shape)) for _, shape in known["computed"]]
        lifetimes = [SymbolicLifetime(integer(nbytes), first, last, tuple(others)) for nbytes, first, last, others in sizes["lifetimes"]]
        # not kept as a polynomial, whose quotients would have other bounds than those of :func:`hologram.ir.symbolic.at_least`
        cost = Cost(sizes["fixed"], evaluator(integer(sizes["work"]), sizes["symbols"]))
    except (symbolic_json.Malformed, KeyError):
        return None
    if not all(b.first <= b.last and _may_be_positive(b.nbytes + 1) and all(_is_index(i, lifetimes) for i in b.may_alias) for b in lifetimes):
        return None
    return CallSizes(sizes["symbols"], shapes, lifetimes, cost)


def _is_static(known: dict[str, Any], traced: Graph) -> bool:
    """Whether the code may be without symbols: what reads none of them loses them on its way through the compiler."""
    sizes_of_inputs = [x.shape for x in traced.inputs]
    return known["sizes"] is None and not variables_of(sizes_of_inputs) and cache.fits(known["computed"], [(str, [int])])


def _check_divisor(b: Int) -> None:
    if not _may_be_positive(b):
        raise symbolic_json.Malformed("a divisor", b)


def _may_be_positive(n: Int) -> bool:
    _, high = bounds(n)
    return high is None or high > 0


def _numbered(constants: list[Node], leaves: list[Any]) -> list[tuple[str, int]]:
    """Of each constant whether it is a leaf of the traced graph or folded, and which."""
    number = {id(x): i for i, x in enumerate(leaves)}
    return [("folded", s.index) if isinstance(s := c.attrs[0], FoldedConstant) else ("leaf", number[id(s)]) for c in constants]


def leaves_of(graph: Graph) -> list[Any]:
    """Storages of the graph's hidden parameters, in topological order, each once."""
    out: dict[int, Any] = {}
    for n in graph.nodes():
        if n.op.name == "leaf":
            out.setdefault(id(n.attrs[0]), n.attrs[0])
    return list(out.values())
