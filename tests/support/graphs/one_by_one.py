"""Legalized graphs run by a program for each node: the bits that kernels of many nodes must give."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hologram.backends.llvm.toolchain import target
from hologram.graph.pass_manager import Context, run_passes
from hologram.graph.pipeline import LEGALIZE, canonicalise
from hologram.ir.graph import Graph
from hologram.ir.leaves import input_
from hologram.ir.node import Builder, Node, const_value
from tests.support.optable import compiler, mismatch


def one_by_one(graph: Graph, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The results of a legalized graph by a program for each node; for a sum of products with these."""
    values: dict[Node, np.ndarray] = {}
    terms = set[Node]()
    for node in graph.nodes():
        if node.op.name == "fused_mul" or (node.op.kind == "movement" and node.inputs[0] in terms):
            terms.add(node)
        elif node.op.name != "const":
            values[node] = arrays[node.attrs[0]] if node.op is input_ else _alone(node, values)
    return [values[x] if x in values else const_value(x) for x in graph.outputs]


def _alone(node: Node, values: dict[Node, np.ndarray]) -> np.ndarray:
    b, given, made = Builder(), list[np.ndarray](), dict[Node, Node]()

    def copy(n: Node) -> Node:
        if n not in made:
            if n in values and n is not node:
                made[n] = b(input_, (), (len(given), n.shape, n.dtype.name, None))
                given.append(values[n])
            else:
                made[n] = b.like(n, tuple(copy(x) for x in n.inputs))
        return made[n]

    out = copy(node)
    inputs = sorted((n for n in b.table.values() if n.op is input_), key=lambda n: n.attrs[0])
    (result,) = compiler()(Graph(inputs, [out]), precision="standard").run_numpy(given)
    return np.asarray(result)


def legalized(graph: Graph) -> Graph:
    """A graph as the CPU's kernels get it in ``standard``."""
    legal: Graph = run_passes(canonicalise(graph, "standard"), LEGALIZE, Context("standard", target.host().tile))
    return legal


def same(got: Sequence[np.ndarray], want: Sequence[np.ndarray]) -> bool:
    """Whether results have the same bits, NaNs being one class."""
    return all(not mismatch(np.asarray(g), np.asarray(w), 0).any() for g, w in zip(got, want, strict=True))
