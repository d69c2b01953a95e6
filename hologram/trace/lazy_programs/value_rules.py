"""Whether the bits of a graph may depend on which of its numbers are operands, by rules that look at the value of a number.

Sums take the products that they add up unrounded (:mod:`hologram.graph.multiply_add`), and a choice between values is gone where its condition is
known. So a product behind a choice is rounded in a program with operands, and not in one by value.
"""

from __future__ import annotations

from collections.abc import Sequence

from hologram.ir.leaves import const
from hologram.ir.node import Node

_SUMS = ("add", "sub", "reduce_sum")
_SEEN_THROUGH = ("neg", "select", "cast")  # besides movement: what may vanish, or what sums look through


def depends_on_values(order: Sequence[Node]) -> bool:
    """Whether a program of the nodes in ``order`` may give other bits where constants are operands."""
    return any(_depends(x) for x in order)


def _depends(x: Node) -> bool:
    if x.dtype.kind not in "fc":
        return False
    if x.op.name == "cast":
        return moved(x.inputs[0]).op is const  # for whose value a rule may look
    return x.op.name in _SUMS and any(_is_chosen_product(i, False) for i in x.inputs)


def moved(x: Node) -> Node:
    """What is moved to give ``x``."""
    while x.inputs and x.op.kind in ("movement", "mark"):
        x = x.inputs[0]
    return x


def _is_chosen_product(x: Node, chosen: bool) -> bool:
    """Whether a value may be a product behind a choice: rules make products of powers, quotients and more."""
    x = moved(x)
    if x.op.name not in _SEEN_THROUGH:
        return chosen and x.op.kind == "elementwise"
    is_choice = x.op.name == "select"
    return any(_is_chosen_product(i, chosen or is_choice) for i in x.inputs[is_choice:])
