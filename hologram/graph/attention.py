"""Attention as a node of a graph, and what fusion must know of it.

``attention`` nodes are made by :mod:`hologram.graph.attention_match`, and lowered to one kernel each by :mod:`hologram.graph.attention_kernel`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hologram import dtypes
from hologram.dtypes import DType
from hologram.graph.access import Index, is_simple, requests, variables
from hologram.primitives.op import Op, Shape
from hologram.trace.node import Node


def _infer_scores(inputs: tuple[Node, ...], attrs: tuple[Any, ...]) -> tuple[Shape, DType]:
    shape, name, _ = attrs
    return shape, dtypes.of(name)


def _infer_attention(inputs: tuple[Node, ...], attrs: tuple[Any, ...]) -> tuple[Shape, DType]:
    *_, scores, values = inputs
    _, keys, _ = attrs
    return (*scores.shape[:keys], *scores.shape[keys + 1 :], values.shape[-1]), values.dtype


def _attention(queries: np.ndarray, keys: np.ndarray, scores: np.ndarray, values: np.ndarray, row_axis: int, key_axis: int, safe: bool) -> np.ndarray:
    """The meaning, given the finished scores."""
    top = scores.max(key_axis, keepdims=True)
    weights = np.exp(scores - (np.where(np.isneginf(top), 0, top) if safe else top))
    total = weights.sum(key_axis, keepdims=True)
    weights = weights / (np.where(total == 0, 1, total) if safe else total)
    return np.asarray((weights[..., None] * values).sum(key_axis))


# stands, in what finished scores are made of, for the products of queries and keys; ``number`` tells one attention of a graph from the others
SCORES = Op("scores", "leaf", 0, _infer_scores, lambda products, *_: products, attrs=("shape", "dtype", "number"))
# (queries (S…, E), keys (S…, E), finished scores (S…), values (S…, D)) give S… without the key axis, and D. Queries are one for all keys; keys and
# values are one for all rows. ``safe``: a row that sees no key gives zeros, else NaN
ATTENTION = Op("attention", "attention", 4, _infer_attention, _attention, attrs=("row_axis", "key_axis", "safe"), cost=100)


def of_scores(nodes: list[Node]) -> set[Node]:
    """Of ``nodes``, in topological order, those that finished scores are made of: computed by the kernel of their attention and nowhere else."""
    out: set[Node] = set()
    for n in nodes:
        if n.op is SCORES or (n.op is not ATTENTION and any(x in out for x in n.inputs)):
            out.add(n)
    return out


def kept_for(nodes: list[Node], halves: bool) -> set[Node]:
    """Keys and values of attention nodes: the products read them again and again, so they stand in memory. ``halves``: 16-bit floats as such."""
    found = {_unmoved(x) for n in nodes if n.op is ATTENTION for x in (n.inputs[1], n.inputs[3])}
    found = {_unmoved(x.inputs[0]) if halves and x.op.name == "cast" and x.inputs[0].dtype.itemsize == 2 else x for x in found}
    return {x for x in found if x.op.kind != "leaf"}


def _unmoved(x: Node) -> Node:
    return moved(x, variables(x.shape))[0]


def moved(node: Node, index: Index) -> tuple[Node, Index]:
    """What a movement without fills moves, and where its element stands."""
    while is_simple(node):
        ((node, index, _),) = requests(node, index, ())
    return node, index
