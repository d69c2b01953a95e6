"""The reference interpreter, which is the meaning of a graph: it runs each op's ``reference`` on NumPy arrays.

Every backend and every rewrite rule is tested against it. It is written to be read, not to be fast.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hologram.ir.graph import Graph
from hologram.ir.leaves import input_
from hologram.ir.node import Node
from hologram.ir.op import MULTI_RESULT
from hologram.ir.symbolic import Expr, substitute


def evaluate(graph: Graph, inputs: Sequence[np.ndarray], symbols: Mapping[str, int] | None = None) -> list[np.ndarray]:
    """The graph's outputs for ``inputs``, arrays of the input nodes' shapes and types; ``symbols`` gives symbolic extents their values."""
    sizes = symbols or {}
    values: dict[Node, np.ndarray] = {}
    for node in graph.nodes():
        arguments = [inputs[node.attrs[0]]] if node.op is input_ else [values[x] for x in node.inputs]
        values[node] = evaluate_node(node, arguments, sizes)
    return [values[x] for x in graph.outputs]


def evaluate_node(node: Node, arrays: Sequence[np.ndarray], symbols: Mapping[str, int] | None = None) -> np.ndarray:
    """One node on the values of its inputs; an ``input`` node takes its argument. The result's shape and type are checked against the node's."""
    sizes = symbols or {}
    if node.op.kind in MULTI_RESULT:  # a list of results, which "project" nodes pick
        return node.op.reference(*arrays, *node.attrs)
    shape = _concrete(node.shape, sizes)
    value = np.asarray(node.op.reference(*arrays, *_concrete(node.attrs, sizes)))
    if value.shape != shape or value.dtype != node.dtype.np:
        raise AssertionError(f"{node.op}: the type rule gives {node.dtype}{list(shape)}, the reference {value.dtype}{list(value.shape)}")
    return value


def _concrete(x: Any, symbols: Mapping[str, int]) -> Any:
    """``x`` with every symbolic integer in it replaced by its value."""
    if isinstance(x, Expr):
        return substitute(x, symbols)
    return tuple(_concrete(e, symbols) for e in x) if isinstance(x, tuple) else x
