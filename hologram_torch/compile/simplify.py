"""Simplification of AOTAutograd's graphs before they are partitioned."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import fx
from torch._higher_order_ops.effects import with_effects

aten = torch.ops.aten


def simplify(module: fx.GraphModule) -> None:
    """Rewrites two patterns of AOTAutograd's graphs.

    Attention whose log-sum-exp is not read, as in inference, becomes plain attention, which is one kernel. Checks of LAPACK's ``info``, which raise
    or do nothing, lose the tokens that order effects.
    """
    for node in module.graph.find_nodes(op="call_function", target=aten._scaled_dot_product_flash_attention_for_cpu.default):
        parts = list(node.users)
        if all(p.target is operator.getitem and p.args[1] == 0 for p in parts):
            _plain_attention(module.graph, node, parts)
    for node in module.graph.find_nodes(op="call_function", target=with_effects):
        if node.args[1] is aten._linalg_check_errors.default:
            _plain_test(module.graph, node)


def _plain_attention(graph: fx.Graph, node: fx.Node, parts: list[fx.Node]) -> None:
    given: list[Any] = list(node.args)
    q, k, v, dropout_p, is_causal = given + [0.0, False][len(given) - 3 :]
    arguments = (q, k, v, node.kwargs.get("attn_mask"), dropout_p, is_causal)
    options = {"scale": node.kwargs.get("scale"), "enable_gqa": bool(q.meta["val"].shape[1] != k.meta["val"].shape[1])}
    with graph.inserting_before(node):
        plain = graph.call_function(aten.scaled_dot_product_attention.default, arguments, options)
    for part in parts:
        plain.meta.update(part.meta)
        part.replace_all_uses_with(plain)
        graph.erase_node(part)
    graph.erase_node(node)


def _plain_test(graph: fx.Graph, node: fx.Node) -> None:
    token, test, *arguments = node.args
    with graph.inserting_before(node):
        graph.call_function(test, tuple(arguments), dict(node.kwargs))  # type: ignore[arg-type]
    for part in list(node.users):  # the token that follows; a test has no result
        part.replace_all_uses_with(token)  # type: ignore[arg-type]
        graph.erase_node(part)
    graph.erase_node(node)


def is_token(node: fx.Node) -> bool:
    """Whether the value of ``node`` may be a token, which orders effects and is no tensor at run time."""
    if node.target is operator.getitem and node.args[1] == 0:
        return node.args[0].target is with_effects  # type: ignore[union-attr]
    return node.op == "placeholder" and all(u.op == "output" or (u.target is with_effects and u.args[0] is node) for u in node.users)
