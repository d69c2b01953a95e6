"""Attention ops: the nodes that the compiler makes of attention, and what fusion must know of them.

``attention`` nodes are made by :mod:`hologram.graph.library.attention.match`, and lowered to one kernel each by
:mod:`hologram.graph.library.attention.kernel`, or :mod:`hologram.graph.library.attention.device_kernel` on devices. ``reduced_scores``, of which
derivatives on devices consist, are made by :mod:`hologram.graph.library.attention.region_tiles` and lowered by
:mod:`hologram.graph.library.attention.reduced_kernel`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hologram import dtypes
from hologram.dtypes import DType
from hologram.ir.index_maps import Index, is_simple, propagate_index, variables
from hologram.ir.node import Node
from hologram.ir.op import TABLE, Op, Shape
from hologram.ir.traversal import topological, users_of


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


def _infer_reduced(inputs: tuple[Node, ...], attrs: tuple[Any, ...]) -> tuple[Shape, DType]:
    scores, *others = inputs
    _, walked, _, factored = attrs
    return (*scores.shape[:walked], *scores.shape[walked + 1 :], *(others[0].shape[-1:] if factored else ())), scores.dtype


def _reduced(scores: np.ndarray, *others: Any) -> np.ndarray:
    """The meaning, given the finished scores."""
    *factors, _, walked, name, factored = others
    terms = scores[..., None] * factors[0] if factored else scores
    return np.asarray(TABLE[name].reference(terms, (walked,)))


# (scores (S…), factor (S…, D) if ``factored``, and of each product that scores are made of its two factors (S…, E)): the scores, times the factor,
# reduced along the walked axis. Factors and second factors are one for all indices of the own axis, first factors for all of the walked axis
REDUCED_SCORES = Op(
    "reduced_scores", "attention", None, _infer_reduced, _reduced, attrs=("own_axis", "walked_axis", "reduction", "factored"), cost=100
)
ATTENTION_OPS = (SCORES, ATTENTION, REDUCED_SCORES)  # that only the compiler writes, so that the op table does not have them


def score_nodes(nodes: list[Node]) -> set[Node]:
    """Of ``nodes``, in topological order, those that finished scores are made of: computed by the kernel of their attention and nowhere else."""
    out: set[Node] = set()
    for n in nodes:
        if n.op is SCORES or (n.op not in (ATTENTION, REDUCED_SCORES) and any(x in out for x in n.inputs)):
            out.add(n)
    return out


def score_products(scores: Node) -> list[Node]:
    """What stands for products in finished scores, in the order of their numbers."""
    found = topological([scores], lambda n: n.op in (ATTENTION, REDUCED_SCORES))
    return sorted((n for n in found if n.op is SCORES), key=lambda n: int(n.attrs[2]))


def attention_operands(nodes: list[Node], keep_narrow: bool) -> set[Node]:
    """What the products of attention nodes read again and again, so that it stands in memory: keys and values; all factors of scores that are
    reduced. ``keep_narrow``: narrow floats as such."""
    found = {_unmoved(x) for x in _read_again(nodes)}
    found = {_unmoved(x.inputs[0]) if keep_narrow and is_widened(x) else x for x in found}
    return {x for x in found if x.op.kind != "leaf"}


def rematerialized_by_attention(nodes: list[Node], keep_narrow: bool) -> set[Node]:
    """What none but kernels of attention read, and they make wherever they do: masks that are made of no array, and, if ``keep_narrow``, factors that
    are made float32."""
    inside = score_nodes(nodes)
    users = users_of(nodes)
    of_nothing: set[Node] = set()
    for n in nodes:
        if n.op.name in ("const", "iota") or ((n.op.kind == "elementwise" or is_simple(n)) and all(x in of_nothing for x in n.inputs)):
            of_nothing.add(n)
    own: set[Node] = set()  # read by attention alone
    for n in reversed(nodes):
        if n in of_nothing or is_simple(n) or is_widened(n):
            if n in users and all(u in inside or u in own or u.op in (ATTENTION, REDUCED_SCORES) for u in users[n]):
                own.add(n)
    return {n for n in own if n in of_nothing or (keep_narrow and is_widened(n))}


def _read_again(nodes: list[Node]) -> list[Node]:
    return [x for n in nodes for x in ((n.inputs[1], n.inputs[3]) if n.op is ATTENTION else n.inputs[1:] if n.op is REDUCED_SCORES else ())]


def is_widened(x: Node) -> bool:
    """Whether it is a narrow float that was made float32."""
    return x.op.name == "cast" and x.inputs[0].dtype.is_narrow_float


def _unmoved(x: Node) -> Node:
    return movement_source(x, variables(x.shape))[0]


def movement_source(node: Node, index: Index) -> tuple[Node, Index]:
    """What a movement without fills moves, and where its element stands."""
    while is_simple(node):
        ((node, index, _),) = propagate_index(node, index, ())
    return node, index
