"""What the backward pass of a compiled model computes again instead of reading what the forward pass saved."""

from __future__ import annotations

from typing import Any

import torch
from functorch.compile import min_cut_rematerialization_partition
from torch import fx
from torch.utils.checkpoint import CheckpointPolicy

from hologram.graph.regions import DEEPEST, LARGER, LEAST_BYTES

aten = torch.ops.aten
PRODUCTS = (aten.mm.default, aten.bmm.default)


def partition(joint: fx.GraphModule, joint_inputs: Any, **options: Any) -> tuple[fx.GraphModule, fx.GraphModule]:
    """AOTAutograd's joint graph as forward and backward: a minimum cut that saves neither large scores nor what is made of them.

    Both graphs then hold attention from queries and keys on, and are compiled without scores in memory (:mod:`hologram.graph.regions`). Scores
    that the model returns are saved: they are in memory anyway.
    """
    scores, constants = _forward(joint.graph)
    for node in _returned(joint.graph, scores):
        del scores[node]
    if scores:
        for node in (*scores, *constants):
            node.meta["recompute"], node.meta["ac_graph_id"] = CheckpointPolicy.MUST_RECOMPUTE, 0
    return min_cut_rematerialization_partition(joint, joint_inputs, **options)


def _forward(graph: fx.Graph) -> tuple[dict[fx.Node, int], list[fx.Node]]:
    """Of the forward pass: scores and what is made of them, with how many there are; and what is made of no argument, as masks are."""
    scores: dict[fx.Node, int] = {}
    constants: dict[fx.Node, None] = {}
    backward: set[fx.Node] = set()
    for node in graph.nodes:
        inputs = node.all_input_nodes
        if node.name.startswith("tangents") or any(x in backward for x in inputs):
            backward.add(node)
        elif node.op == "call_function" and (size := _scores(node, scores)):
            scores[node] = size
        elif node.op == "call_function" and all(x in constants for x in inputs) and not _is_random(node):
            constants[node] = None
    return scores, list(constants)


def _returned(graph: fx.Graph, scores: dict[fx.Node, int]) -> set[fx.Node]:
    """Scores that the graph gives, and all that they are made of."""
    given = set(graph.output_node().all_input_nodes)
    for node in reversed(graph.nodes):
        if node in given and node in scores:
            given.update(node.all_input_nodes)
    return given & scores.keys()


def _scores(node: fx.Node, scores: dict[fx.Node, int]) -> int:
    """How many scores a node is, or is made of element by element or row by row; 0 for any other node."""
    size = _size(node)
    if node.target not in PRODUCTS:
        return size if not _is_random(node) and any(scores.get(x) == size for x in node.all_input_nodes) else 0
    sizes = [_size(x) for x in node.all_input_nodes]
    if not size or not all(sizes) or size * node.meta["val"].element_size() < LEAST_BYTES or size < LARGER * max(sizes):
        return 0
    return size if node.args[0].meta["val"].shape[-1] <= DEEPEST else 0  # type: ignore[union-attr]


def _size(node: fx.Node) -> int:
    """The number of elements; 0 where that is not one known number."""
    value = node.meta.get("val")
    return value.numel() if isinstance(value, torch.Tensor) and all(isinstance(n, int) for n in value.shape) else 0


def _is_random(node: fx.Node) -> bool:
    return torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())
