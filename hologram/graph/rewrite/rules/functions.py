"""Compositions of functions that are one function: ``tanh(x) + 1`` is a sigmoid."""

from __future__ import annotations

import numpy as np

from hologram.dtypes import DType
from hologram.graph.rewrite.pattern import c, spelled, x, y
from hologram.graph.rewrite.rewriter import Rewriter, Rule
from hologram.graph.rewrite.rule import rule, rule_fn
from hologram.ir.node import Node, const_value

_sigmoid = spelled("sigmoid")


def _one_plus_tanh(b: Rewriter, dtype: DType) -> list[Node]:
    return [b.make("add", b.make("tanh", b.argument(dtype, 4)), b.const(1, dtype))] if dtype.is_float else []


@rule_fn(
    ("add",),
    "one-plus-tanh",
    "tanh(x) + 1 = sigmoid(x * 2) * 2",
    "standard",
    among=("tanh",),
    within=("tanh", "const"),
    examples=_one_plus_tanh,
)
def one_plus_tanh(node: Node, b: Rewriter) -> Node | None:
    """Where tanh has no other use. The sum cancels for negative x: what it loses there, the product has."""
    for f, other in (node.inputs, node.inputs[::-1]):
        if f.op.name == "tanh" and other.op.name == "const" and const_value(other) == 1 and b.has_one_use(f):
            two = b.const(2, node.dtype)
            return b.make("mul", b.make("sigmoid", b.make("mul", f.inputs[0], two)), two)
    return None


def _doubles(c: Node) -> bool:
    with np.errstate(over="ignore"):
        return bool(np.isfinite(const_value(c) * const_value(c).dtype.type(2)))


# top-down: a tanh with a second use stays
RULES: list[Rule] = [one_plus_tanh]

# what that rule leaves: sigmoid is at most 1, so that doubling it is exact and never overflows
DOUBLED_SIGMOID: list[Rule] = [
    rule("double-sigmoid", "(sigmoid(x) * 2) * c = sigmoid(x) * (2 * c)", "standard", (_sigmoid(x) * 2) * c, _sigmoid(x) * (c * 2), where=_doubles),
    rule("halve-sigmoid", "(sigmoid(x) * 2) * (y * 0.5) = sigmoid(x) * y", "standard", (_sigmoid(x) * 2) * (y * 0.5), _sigmoid(x) * y),
    rule("double-multiple", "(x * c) * 2 = x * (c * 2)", "standard", (x * c) * 2, x * (c * 2), kinds="f", where=_doubles),
]
