"""What is written anew in AOTAutograd's graphs before they are partitioned."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import fx

aten = torch.ops.aten


def simplify(module: fx.GraphModule) -> None:
    """Attention whose log-sum-exp nobody reads, as in inference, becomes plain attention, which is one kernel."""
    for node in module.graph.find_nodes(op="call_function", target=aten._scaled_dot_product_flash_attention_for_cpu.default):
        parts = list(node.users)
        if all(p.target is operator.getitem and p.args[1] == 0 for p in parts):
            _plain_attention(module.graph, node, parts)


def _plain_attention(graph: fx.Graph, node: fx.Node, parts: list[fx.Node]) -> None:
    given: list[Any] = list(node.args)
    q, k, v, dropout_p, is_causal = given + [0.0, False][len(given) - 3 :]
    arguments = (q, k, v, node.kwargs.get("attn_mask"), dropout_p, is_causal)
    with graph.inserting_before(node):
        plain = graph.call_function(aten.scaled_dot_product_attention.default, arguments, {"scale": node.kwargs.get("scale")})
    for part in parts:
        plain.meta.update(part.meta)
        part.replace_all_uses_with(plain)
        graph.erase_node(part)
    graph.erase_node(node)
