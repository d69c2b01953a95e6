"""Choices between an array and its update, written as updates whose windows may be dropped: a window at -1 does not lie in an array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from hologram.dtypes import DType
from hologram.ir.node import Node
from hologram.ir.op import Op
from hologram.primitives.indexing import keeps_what_it_drops
from hologram.primitives.movement import broadcast
from hologram.primitives.scalar.elementwise import cast, select


class Build(Protocol):
    """What makes nodes: a builder of graphs, or the recorder."""

    def __call__(self, op: Op, inputs: tuple[Node, ...], attrs: tuple[Any, ...] = ()) -> Node: ...

    def const(self, value: Any, dtype: DType) -> Node: ...


def dropped_unless(p: Node, sense: bool, update: Node, inputs: tuple[Node, ...], build: Build) -> Node:
    """The scatter ``update`` on ``inputs`` where ``p``, one for all that shares windows, is ``sense``; elsewhere its windows are dropped."""
    x, updates, start, *rest = inputs
    if start.dtype.kind != "i":
        start = build(cast, (start,), ("int64",))
    if p.shape:
        p = build(broadcast, (p.inputs[0],), (start.shape, p.attrs[1]))
    nowhere = build.const(-1, start.dtype)
    chosen = build(select, (p, start, nowhere) if sense else (p, nowhere, start))
    return build(update.op, (x, updates, chosen, *rest), update.attrs)


def update_for_select(p: Node, x: Node, y: Node, is_free: Callable[[Node], bool], build: Build) -> Node | None:
    """``select(p, x, y)`` as updates of the one of which the other is made by updates; None where neither is.

    Only updates go into it for which ``is_free`` holds: the others are made in any case.
    """
    for updated, kept, sense in ((x, y, True), (y, x, False)):
        updates = _updates_between(updated, kept, is_free)
        if all(_is_shared(p, u) for u in updates):
            for u in reversed(updates):
                kept = dropped_unless(p, sense, u, (kept, *u.inputs[1:]), build)
            if updates:
                return kept
    return None


def _updates_between(updated: Node, kept: Node, is_free: Callable[[Node], bool]) -> list[Node]:
    """The updates that make ``updated`` of ``kept``, the last one first; none if something else does."""
    found = []
    while updated is not kept:
        if updated.op.kind != "scatter" or not is_free(updated) or not keeps_what_it_drops(updated):
            return []
        found.append(updated)
        updated = updated.inputs[0]
    return found


def _is_shared(p: Node, update: Node) -> bool:
    """Whether a condition is the same all over each part of an array that shares windows."""
    return not p.shape or (p.op is broadcast and all(d < update.attrs[1] for d in p.attrs[1]))


__all__ = ["Build", "dropped_unless", "update_for_select"]
