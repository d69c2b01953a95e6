"""Short titles of kernels: what they mainly compute, in the words of users."""

from __future__ import annotations

from hologram.graph.fusion.groups import Group
from hologram.graph.lower.lowered import Lowered
from hologram.ir.node import Node, estimated_bytes
from hologram.primitives.scalar.elementwise import PRODUCTS

MAX_NAMES = 3  # ops that a title lists
MIN_EXPANSION = 2  # how many times larger than its factors the terms of a matrix product are
_WORDS = {
    "reduce_sum": "sum", "reduce_max": "maximum", "reduce_min": "minimum", "reduce_prod": "product", "argmax": "argmax", "argmin": "argmin",
    "broadcast": "copy", "const": "constant", "reshape": "copy", "transpose": "transpose", "slice": "copy", "mad": "multiply-add", "fused_mul": "mul",
}  # fmt: skip


def title_of(low: Lowered) -> str:
    """Such as ``matrix product, sigmoid, mul``."""
    if low.is_copy:
        return "copy"
    if low.kernel.ready is not None:
        return low.kernel.ready[0].replace("_", " ")
    names = list(dict.fromkeys(_name(n) for n in low.group.nodes))
    if all(n.op.kind in ("elementwise", "movement") for n in low.group.nodes):
        names = list(dict.fromkeys([*_inner(low.group), *names]))
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return ", ".join(names[:MAX_NAMES]) + more


def _name(node: Node) -> str:
    if node.op.name == "reduce_sum" and _is_matrix_product(node):
        return "matrix product"
    return _WORDS.get(node.op.name, node.op.name.replace("_", " "))


def _inner(group: Group) -> list[str]:
    """The elementwise ops that values are made of directly."""
    inner = [x for n in group.nodes for x in n.inputs if x.op.kind == "elementwise" and x.op.name not in ("cast", "select")]
    return [_name(n) for n in inner][:MAX_NAMES]


def _is_matrix_product(node: Node) -> bool:
    """Whether a sum is of products of two arrays that are both much smaller than their products together."""
    (terms,) = node.inputs
    while terms.op.kind in ("movement",) and terms.inputs:
        terms = terms.inputs[0]
    if terms.op not in PRODUCTS or len(terms.inputs) != 2:
        return False
    return all(estimated_bytes(terms) >= MIN_EXPANSION * estimated_bytes(_source(x)) for x in terms.inputs)


def _source(node: Node) -> Node:
    """What movements and casts make a factor of."""
    while node.inputs and (node.op.kind == "movement" or node.op.name == "cast"):
        node = node.inputs[0]
    return node
