"""Shared divisors: many numbers divided by one are multiplied by its reciprocal (:mod:`hologram.primitives.scalar.division`).

The rule reads the graph alone, as that of :mod:`hologram.graph.multiply_add` does, so that kernels, loops and backends give the same bits. A quotient
takes the reciprocal where its dividend differs along the last axis and its divisor does not.
A dividend that a reduction gave, as in a mean, is divided: computing it took longer. That of a product of matrices did not, whose factors are read
many times each.

Narrow floats are divided as float32 and rounded once, as everywhere.
"""

from __future__ import annotations

import numpy as np

from hologram import dtypes
from hologram.dtypes import DType
from hologram.graph.legalize.short_reductions import unrolled_terms
from hologram.graph.legalize.variation import Variation
from hologram.ir.graph import Graph
from hologram.ir.node import Builder, Node, const_value
from hologram.ir.op import TABLE


def is_scale(x: Node) -> bool:
    """Whether a value scales divisors: kernels compute it before the loop along the last axis."""
    return x.op.name == "unit_scale"


def is_part_of_quotient(x: Node) -> bool:
    """Whether a value is one of the products that, with one division, stand for a quotient."""
    return x.op.name == "mul" and any(is_scale(i) or (i.op.name == "div" and any(map(is_scale, i.inputs[1].inputs))) for i in x.inputs)


def share_divisors(graph: Graph) -> Graph:
    """``graph`` with the quotients of one divisor for many numbers as products; the graph itself where there are none."""
    if "div" not in graph.op_names():
        return graph
    nodes = graph.nodes()
    if not any(x.op.name == "div" and x.shape and x.dtype.is_float for x in nodes):
        return graph
    b, varies = Builder(), Variation()
    made: dict[Node, Node] = {}
    for node in nodes:
        varies.note(node)
        inputs = tuple([made[x] for x in node.inputs])
        made[node] = by_reciprocal(b, node, inputs) if is_shared_divisor(node, varies) else b.with_inputs(node, inputs)
    return graph.mapped(made)


def is_shared_divisor(node: Node, varies: Variation) -> bool:
    """Whether a node is a quotient of which others have the divisor, too."""
    if node.op.name != "div" or not node.shape or not node.dtype.is_float:
        return False
    x, y = node.inputs
    last = node.ndim - 1
    return last not in varies.of(y) and last in varies.of(x) and not _is_reduced(x, varies)


def _is_reduced(x: Node, varies: Variation) -> bool:
    """Whether a value is the result of a reduction, moved or cast, other than a contraction."""
    while x.op.kind == "movement" or x.op.name == "cast":
        x = x.inputs[0]
    if unrolled := unrolled_terms(x):
        return not _is_contraction(unrolled[0], varies)
    return x.op.kind == "reduce" and not _is_contraction(x.inputs[0], varies)


def _is_contraction(terms: Node, varies: Variation) -> bool:
    """Whether terms are products, of which each factor is the same along an axis along which the other differs."""
    while terms.op.kind == "movement":
        terms = terms.inputs[0]
    if terms.op.kind != "elementwise" or (len(terms.inputs) != 2 and terms.op.name != "mad"):
        return False
    first, second = map(varies.of, terms.inputs[:2])
    return bool(first - second) and bool(second - first)


def by_reciprocal(b: Builder, node: Node, inputs: tuple[Node, ...]) -> Node:
    """``x / y`` as ``(x * s) * (1 / (y * s))``. What is made of ``y`` alone has its shape; kernels compute it before the loop along the last axis."""
    compute = dtypes.compute_type(node.dtype)
    x, y = inputs
    scale, near = _of_constant(b, y, compute) if y.op.name == "const" else _of_values(b, b.cast(y, compute))
    return b.cast(b(TABLE["mul"], (b(TABLE["mul"], (b.cast(x, compute), scale)), near)), node.dtype)


def _of_values(b: Builder, y: Node) -> tuple[Node, Node]:
    """The power of two that scales ``y``, and the reciprocal of what comes out."""
    scale = b(TABLE["unit_scale"], (y,))
    return scale, b(TABLE["div"], (b.const(1.0, y.dtype), b(TABLE["mul"], (y, scale))))


def _of_constant(b: Builder, y: Node, compute: DType) -> tuple[Node, Node]:
    """The same of a constant, as constants."""
    with np.errstate(all="ignore"):
        value = const_value(y).astype(compute.np)
        scale = TABLE["unit_scale"].reference(value)
        return b.const(scale, compute), b.const(compute.np.type(1) / (value * scale), compute)
