"""Rules of updates: scatters, and what chooses between an array and its update."""

from __future__ import annotations

from hologram import dtypes
from hologram.dtypes import DType
from hologram.graph.rewrite.rewriter import Rewriter, Rule
from hologram.graph.rewrite.rule import rule_fn
from hologram.ir.node import Node
from hologram.ir.op import TABLE
from hologram.primitives.indexing import keeps_what_it_drops


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
    for updated, kept, sense in ((x, y, True), (y, x, False)):
        updates = _updates_between(updated, kept, b)
        if updates and kept.shape == node.shape and all(_is_shared(p, u) for u in updates):
            for u in reversed(updates):
                kept = _where(u, kept, p, sense, b)
            return kept
    return None


def _updates_between(updated: Node, kept: Node, b: Rewriter) -> list[Node]:
    """The updates that make ``updated`` of ``kept``, the last one first; none if something else does, or others read it on the way."""
    found = []
    while updated is not kept:
        if updated.op.kind != "scatter" or not b.has_one_use(updated) or not keeps_what_it_drops(updated):
            return []
        found.append(updated)
        updated = updated.inputs[0]
    return found


def _is_shared(p: Node, update: Node) -> bool:
    """Whether a condition is the same all over each part of an array that shares windows."""
    return not p.shape or (p.op.name == "broadcast" and all(d < update.attrs[1] for d in p.attrs[1]))


def _where(update: Node, x: Node, p: Node, sense: bool, b: Rewriter) -> Node:
    """The update of ``x`` where ``p`` is ``sense``: elsewhere its windows are at -1, and so are dropped."""
    _, updates, start, *rest = update.inputs
    if start.dtype.kind != "i":
        start = b.cast(start, dtypes.int64)
    if p.shape:
        p = b(TABLE["broadcast"], (p.inputs[0],), (start.shape, p.attrs[1]))
    nowhere = b.const(-1, start.dtype)
    chosen = b(TABLE["select"], (p, start, nowhere) if sense else (p, nowhere, start))
    return b(update.op, (x, updates, chosen, *rest), update.attrs)


RULES: list[Rule] = [select_update]
