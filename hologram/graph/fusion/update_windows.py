"""Windows of arrays that are updated: what comes of an update and wants a part of the old array has it from memory of its own.

``r = x[i]; y = x.at[i].set(x[j]); z = y.at[j].set(r)`` swaps two rows. Were ``r`` read where ``z`` is computed, the old array would have to outlive
its update, as a copy. So ``r`` is materialized: :mod:`hologram.graph.ownership` then puts the step that reads it before the update.
"""

from __future__ import annotations

from collections.abc import Set

from hologram.ir.node import Node

MIN_SHARE = 4  # an array has at least so many times the elements of a window that is kept apart


def windows_read_before_updates(nodes: list[Node], materialized: Set[Node]) -> set[Node]:
    """Parts of updated arrays that are wanted, by whatever is not materialized on the way, for what depends on an update of the same array."""
    updates: dict[Node, int] = {}  # of arrays in memory: the updates that change them, as bits
    bit: dict[Node, int] = {}
    for n in nodes:
        if n.op.kind == "scatter":
            bit[n] = 1 << len(bit)
            x = _in_memory(n.inputs[0])
            updates[x] = updates.get(x, 0) | bit[n]
    if not updates:
        return set()
    after = _updates_behind(nodes, bit)
    wanted = _updates_behind_readers(nodes, after, materialized)
    found = set()
    for n in nodes:
        if n.op.kind in ("gather", "movement") and n.op.name != "reshape":
            x = _moved_from(n)
            if updates.get(x, 0) & wanted[n] and _is_window(n, x):
                found.add(n)
    return found


def _updates_behind(nodes: list[Node], bit: dict[Node, int]) -> dict[Node, int]:
    """Which updates a node depends on, itself left out."""
    after: dict[Node, int] = {}
    for n in nodes:
        bits = 0
        for x in n.inputs:
            bits |= after[x] | bit.get(x, 0)
        after[n] = bits
    return after


def _updates_behind_readers(nodes: list[Node], after: dict[Node, int], materialized: Set[Node]) -> dict[Node, int]:
    """Which updates the kernels depend on that compute a node anew."""
    wanted = dict.fromkeys(nodes, 0)
    for n in reversed(nodes):
        bits = after[n] if n in materialized else after[n] | wanted[n]
        for x in n.inputs:
            wanted[x] |= bits
    return wanted


def _in_memory(x: Node) -> Node:
    while x.op.name == "reshape":
        (x,) = x.inputs
    return x


def _moved_from(x: Node) -> Node:
    """What is read through gathers and movement."""
    while x.op.kind in ("gather", "movement"):
        x = x.inputs[0]
    return x


def _is_window(n: Node, x: Node) -> bool:
    return isinstance(n.size, int) and isinstance(x.size, int) and MIN_SHARE * n.size <= x.size
