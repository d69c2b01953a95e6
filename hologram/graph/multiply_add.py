"""Fused multiply-adds: which products are rounded together with the sum that reads them.

The rule reads the graph alone. So it does not depend on how values are grouped into kernels, on loops, vectors, threads or the target, and no backend
fuses anything by itself:

- A sum or difference of float32 or float64 takes an operand that is a product, the first where both are. It becomes ``mad``. In loops the later
  product is the first (:mod:`hologram.graph.legalize.late_products`).
- A ``reduce_sum`` takes the products that it sums. They become ``fused_mul``: each is added to what its accumulator holds with one rounding. Where
  partial sums combine, they are added.

A product may be moved (not broadcast), and negated, on its way to the sum. A product less its own floor, or another integer near it, is not fused:
the integer was found from the rounded product. So a fraction lies in its range, and is 0 where the product is an integer. Nothing else is fused: no
product of narrow floats, which is rounded to its type, none that is cast on the way, no scan and no scatter.

How often a product is read plays no part: readers that are no sums get it rounded. So a value depends on the expression that it stands for, not on
what else a program computes, and a program gives the bits of its parts evaluated one by one.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from hologram import dtypes
from hologram.ir.graph import Graph
from hologram.ir.node import Builder, Node, const_value
from hologram.ir.op import TABLE

_TYPES = (dtypes.float32, dtypes.float64)
_MOVES = ("reshape", "transpose", "slice")  # through which a sum sees a product
LOOKED_THROUGH = frozenset(("neg", *_MOVES))  # ops behind which a sum may see a product
TO_INTEGERS = ("floor", "ceil", "trunc", "round", "cast", "neg", *_MOVES)  # from a product to an integer near it


class Product(NamedTuple):
    """A ``mul`` node, what moves it, the outermost first, and whether it is negated on the way."""

    node: Node
    moves: tuple[Node, ...]
    negated: bool


def product_of(x: Node, padded: bool = False) -> Product | None:
    """The product whose elements ``x`` has, and perhaps the neutral element of sums besides where it may be ``padded``; None where ``x`` is anything
    else."""
    if x.dtype not in _TYPES:
        return None
    moves, negated = [], False
    while x.op.name in _MOVES or x.op.name == "neg" or (padded and _pads_with_nothing(x)):
        if x.op.name == "neg":
            negated = not negated
        else:
            moves.append(x)
        x = x.inputs[0]
    return Product(x, tuple(moves), negated) if x.op.name == "mul" else None


def _pads_with_nothing(x: Node) -> bool:
    if x.op.name != "pad" or x.inputs[1].op.name != "const":
        return False
    fill = const_value(x.inputs[1])
    return bool(fill == 0 and np.signbit(fill))


def fuse_products(graph: Graph) -> Graph:
    """``graph`` with the products that sums take written as ``mad`` and ``fused_mul``; the graph itself where there are none."""
    if "mul" not in graph.op_names():
        return graph
    nodes = graph.nodes()
    if not any([x.op.name in _FUSED and any([product_of(i, padded=True) is not None for i in x.inputs]) for x in nodes]):
        return graph
    b = Builder()
    made: dict[Node, Node] = {}
    changed = False
    for node in nodes:
        rule = _FUSED.get(node.op.name)
        fused = None if rule is None else rule(b, node, made)
        changed = changed or fused is not None
        made[node] = fused or b.with_inputs(node, tuple([made[x] for x in node.inputs]))
    return graph.mapped(made) if changed else graph


def fused_sum(b: Builder, node: Node, made: Mapping[Node, Node]) -> Node | None:
    """A sum or difference of two operands as ``mad``; None where it takes no product. The difference of a product and itself stays 0."""
    for k in (0, 1):
        product = product_of(node.inputs[k])
        if product is None or node.inputs[k].shape != node.shape or _is_integer_near(node.inputs[1 - k], product.node):
            continue
        other = made[node.inputs[1 - k]]
        if node.op.name == "sub" and k == 0:
            other = _negated(b, other)
        elif node.op.name == "sub":
            product = product._replace(negated=not product.negated)
        return b(TABLE["mad"], (*factors_of(b, product, made), other))
    return None


def _is_integer_near(x: Node, product: Node) -> bool:
    """Whether ``x`` is what ``product`` is rounded to."""
    while x is not product and x.op.name in TO_INTEGERS:
        x = x.inputs[0]
    return x is product


def _fused_reduction(b: Builder, node: Node, made: dict[Node, Node]) -> Node | None:
    """A ``reduce_sum`` of products over ``fused_mul``; None for any other. What fills a product up is one too: of 0 and -0, which adds nothing."""
    product = product_of(node.inputs[0], padded=True)
    if product is None:
        return None
    first = next((i for i, move in enumerate(product.moves) if move.op.name == "pad"), len(product.moves))
    terms = b(TABLE["fused_mul"], factors_of(b, product._replace(moves=product.moves[first:]), made))
    for move in reversed(product.moves[:first]):
        terms = b(move.op, (terms,), move.attrs)
    return b(node.op, (terms,), node.attrs)


_FUSED = {"add": fused_sum, "sub": fused_sum, "reduce_sum": _fused_reduction}


def factors_of(b: Builder, product: Product, made: Mapping[Node, Node]) -> tuple[Node, ...]:
    """The factors of a product where its moves take them; one of them negated, a constant if there is one, where the product is."""
    factors = [made[f] for f in product.node.inputs]
    if product.negated:
        k = int(factors[0].op.name != "const" and factors[1].op.name == "const")
        factors[k] = _negated(b, factors[k])
    if not product.moves:
        return tuple(factors)
    return tuple([_moved(b, f, product, zero) for f, zero in zip(factors, (0.0, -0.0), strict=True)])


def _negated(b: Builder, x: Node) -> Node:
    if x.op.name != "const":
        return b(TABLE["neg"], (x,))
    name, bits = x.attrs  # of one of _TYPES, whose sign is the highest bit
    sign = 0 if sys.byteorder == "big" else len(bits) - 1
    return b(x.op, (), (name, bits[:sign] + bytes([bits[sign] ^ 0x80]) + bits[sign + 1 :]))


def _moved(b: Builder, factor: Node, product: Product, zero: float) -> Node:
    """A factor where the moves of its product take it, filled up with ``zero``; a scalar factor of an array is one for all elements."""
    is_padded = any(move.op.name == "pad" for move in product.moves)
    if not factor.shape and product.node.shape:
        if not is_padded:
            return factor
        factor = b.fit(factor, product.node.shape)
    for move in reversed(product.moves):
        fill = (b.const(zero, factor.dtype),) if move.op.name == "pad" else ()
        factor = b(move.op, (factor, *fill), move.attrs)
    return factor
