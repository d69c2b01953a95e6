"""Rules of updates: scatters, and what chooses between an array and its update."""

from __future__ import annotations

from hologram import dtypes
from hologram.dtypes import DType
from hologram.graph.rewrite.rewriter import Rewriter, Rule
from hologram.graph.rewrite.rule import rule_fn
from hologram.ir.node import Node
from hologram.primitives.dropped_updates import update_for_select


def _chosen_updates(b: Rewriter, dtype: DType) -> list[Node]:
    x, updates, start = b.argument(dtype, 5, 4), b.argument(dtype, 2, 4), b.argument(dtypes.int64)
    updated = b.make("scatter_set", x, updates, start, attrs=((0,), 0))
    stack, windows, starts = b.argument(dtype, 3, 6), b.argument(dtype, 3, 2, 1), b.argument(dtypes.uint8, 3, 2)
    placed = b.make("scatter_set", stack, windows, starts, attrs=((1,), 1))
    each = b.make("broadcast", b.argument(dtypes.bool_, 3), attrs=((3, 6), (0,)))
    return [b.make("select", b.argument(dtypes.bool_), updated, x), b.make("select", each, stack, placed)]


@rule_fn(
    ("select",),
    "select-update",
    "select(p, scatter(x, u, i), x) = scatter(x, u, select(p, i, -1)) where p is one for a scatter's shared axes",
    "exact",
    among=("@scatter",),
    examples=_chosen_updates,
)
def select_update(node: Node, b: Rewriter) -> Node | None:
    """Users first: an update that somebody else reads is made in any case."""
    p, x, y = node.inputs
    return update_for_select(p, x, y, b.has_one_use, b) if x.shape == y.shape == node.shape else None


RULES: list[Rule] = [select_update]
