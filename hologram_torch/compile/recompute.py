"""Recomputation of attention scores: the backward pass of a compiled model computes them again instead of reading saved ones."""

from __future__ import annotations

from typing import Any

import torch
from functorch.compile import min_cut_rematerialization_partition
from torch import fx
from torch._functorch._aot_autograd.descriptors import InputMutationAOTOutput
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import CheckpointPolicy

from hologram.graph.blocking.score_regions import MAX_PRODUCT_DEPTH, MIN_EXPANSION_RATIO, MIN_PRODUCT_BYTES

aten = torch.ops.aten
EXPONENTIALS = (aten._softmax.default, aten.exp.default)


def split_joint_graph(joint: fx.GraphModule, joint_inputs: Any, **options: Any) -> tuple[fx.GraphModule, fx.GraphModule]:
    """Splits AOTAutograd's joint graph into forward and backward, by a minimum cut that saves no large attention scores and nothing made of them.

    Both graphs then contain attention from queries and keys on, and are compiled without scores in memory
    (:mod:`hologram.graph.blocking.score_regions`). Scores that the model returns are saved, since they are in memory anyway.
    """
    scores, constants = ({}, []) if _overwrites_later(joint.graph) else _forward(joint.graph)
    for node in _returned(joint.graph, scores):
        del scores[node]
    if scores:
        for node in (*scores, *constants):
            node.meta["recompute"], node.meta["ac_graph_id"] = CheckpointPolicy.MUST_RECOMPUTE, 0
    return min_cut_rematerialization_partition(joint, joint_inputs, **options)


def _forward(graph: fx.Graph) -> tuple[dict[fx.Node, fx.Node], list[fx.Node]]:
    """The scores of the forward pass with the product that each is made of, and the nodes that depend on no argument, such as masks.

    Scores are large products that become exponentials, and all that is made of them by elements or rows. Scores that depend on an argument which the
    graph assigns to are left out, since the backward pass would read its new value.
    """
    scores: dict[fx.Node, fx.Node] = {}
    constants: dict[fx.Node, None] = {}
    backward: set[fx.Node] = set()
    overwritten = {node.args[0] for node in graph.find_nodes(op="call_function", target=aten.copy_.default)}
    for node in graph.nodes:
        inputs = node.all_input_nodes
        if any(x in overwritten for x in inputs):
            overwritten.add(node)
        if node.name.startswith("tangents") or any(x in backward for x in inputs):
            backward.add(node)
        elif node.op == "call_function" and (product := _product(node, scores)) is not None:
            scores[node] = product
        elif node.op == "call_function" and all(x in constants for x in inputs) and not _is_random(node):
            constants[node] = None
    exponentials = {product for node, product in scores.items() if node.target in EXPONENTIALS}
    exponentials -= {product for node, product in scores.items() if node in overwritten}
    return {node: product for node, product in scores.items() if product in exponentials}, list(constants)


def _overwrites_later(graph: fx.Graph) -> bool:
    """Whether arguments are assigned to after the forward graph, so that the backward pass would read the new values. Autograd sees these
    assignments."""
    return any(isinstance(given, InputMutationAOTOutput) for given in tree_leaves(graph.output_node().meta.get("desc", ())))


def _returned(graph: fx.Graph, scores: dict[fx.Node, fx.Node]) -> set[fx.Node]:
    """The scores that the graph returns, and the scores that these are made of."""
    given = set(graph.output_node().all_input_nodes)
    for node in reversed(graph.nodes):
        if node in given and node in scores:
            given.update(node.all_input_nodes)
    return given & scores.keys()


def _product(node: fx.Node, scores: dict[fx.Node, fx.Node]) -> fx.Node | None:
    """The large product that a node is, or is made of without a loss of size; None for other nodes."""
    size = _size(node)
    if node.target is not aten.bmm.default:
        found = (scores[x] for x in node.all_input_nodes if x in scores and _size(x) == size)
        return None if _is_random(node) else next(found, None)
    sizes = [_size(x) for x in node.all_input_nodes]
    if not size or not all(sizes) or size * node.meta["val"].element_size() < MIN_PRODUCT_BYTES or size < MIN_EXPANSION_RATIO * max(sizes):
        return None
    return node if node.args[0].meta["val"].shape[-1] <= MAX_PRODUCT_DEPTH else None  # type: ignore[union-attr]


def _size(node: fx.Node) -> int:
    """The number of elements; 0 where it is not known."""
    value = node.meta.get("val")
    return value.numel() if isinstance(value, torch.Tensor) and all(isinstance(n, int) for n in value.shape) else 0


def _is_random(node: fx.Node) -> bool:
    return torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())
