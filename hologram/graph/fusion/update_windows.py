"""Windows of arrays that are updated: what comes of an update and wants a part of the old array has it from memory of its own.

``r = x[i]; y = x.at[i].set(x[j]); z = y.at[j].set(r)`` swaps two rows. Were ``r`` read where ``z`` is computed, the old array would have to outlive
its update, as a copy. So ``r`` is materialized: :mod:`hologram.graph.ownership` then puts the step that reads it before the update. The same holds
for two arrays whose updates read windows of one another: neither kernel could go first. And no kernel computes ``r`` beside what needs the update.
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
    windows = {n: bits for n in nodes if (bits := _updates_of_window(n, updates))}
    found = {n for n, bits in windows.items() if bits & wanted[n]}
    return found | _windows_of_one_another(nodes, {n: bits for n, bits in windows.items() if n not in found}, after, bit, {*materialized, *found})


class UpdateOrder:
    """Which materialized values read little of an array that an update changes, and which need the update: one kernel of both would need a copy."""

    def __init__(self, nodes: list[Node], materialized: Set[Node]) -> None:
        scatters = [n for n in nodes if n.op.kind == "scatter"]
        self._needs = _updates_behind(nodes, {n: 1 << k for k, n in enumerate(scatters)}) if scatters else {}
        self._before: dict[Node, int] = {}
        arrays = [_in_memory(n.inputs[0]) for n in scatters]
        changing: dict[Node, int] = {}
        for k, x in enumerate(arrays):
            changing[x] = changing.get(x, 0) | 1 << k
        read: dict[Node, int] = {}
        for n in nodes if scatters else ():
            read[n] = 0
            for x in n.inputs:
                read[n] |= changing.get(_in_memory(x), 0) | (0 if x in materialized else read[x])
            self._before[n] = sum(1 << k for k in _positions(read[n]) if _is_window(n, arrays[k])) if n in materialized else 0

    def clash(self, x: Node, y: Node) -> bool:
        """Whether one value is to be computed before an update that the other needs."""
        return bool(self._needs) and bool(self._before[x] & self._needs[y] or self._before[y] & self._needs[x])


def _updates_of_window(n: Node, updates: dict[Node, int]) -> int:
    """The updates that change the array of which a node is a window."""
    if n.op.kind not in ("gather", "movement") or n.op.name == "reshape":
        return 0
    x = _moved_from(n)
    return updates.get(x, 0) if _is_window(n, x) else 0


def _windows_of_one_another(
    nodes: list[Node], windows: dict[Node, int], after: dict[Node, int], bit: dict[Node, int], materialized: Set[Node]
) -> set[Node]:
    """Windows that updates read of arrays whose updates would have to come before these."""
    readers = dict.fromkeys(nodes, 0)  # the updates whose kernels compute a node
    for n in reversed(nodes):
        bits = bit.get(n, 0) or (0 if n in materialized else readers[n])
        for x in n.inputs:
            readers[x] |= bits
    left = {n: changed for n, changed in windows.items() if readers[n]}
    before = _orders(left, readers, after, bit)
    found: set[Node] = set()
    for n, changed in windows.items():
        if any(_all_before(u, before) & changed & ~(1 << u) for u in _positions(readers[n])):
            found.add(n)
            del left[n]
            before = _orders(left, readers, after, bit)
    return found


def _orders(windows: dict[Node, int], readers: dict[Node, int], after: dict[Node, int], bit: dict[Node, int]) -> list[int]:
    """For each update those that must come before it: what it needs, and what reads windows of the array that it changes."""
    before = [after[u] for u in bit]
    for n, changed in windows.items():
        for v in _positions(changed):
            before[v] |= readers[n] & ~(1 << v)
    return before


def _positions(bits: int) -> list[int]:
    return [k for k in range(bits.bit_length()) if bits >> k & 1]


def _all_before(u: int, before: list[int]) -> int:
    """All updates that must come before one, directly or through others."""
    found, waiting = 0, before[u]
    while waiting:
        k = waiting.bit_length() - 1
        found |= 1 << k
        waiting = (waiting | before[k]) & ~found
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
