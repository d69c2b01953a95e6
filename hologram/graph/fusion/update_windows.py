"""Windows of arrays that are updated: what comes of an update and wants a part of the old array has it from memory of its own.

``r = x[i]; y = x.at[i].set(x[j]); z = y.at[j].set(r)`` swaps two rows. Were ``r`` read where ``z`` is computed, the old array would have to outlive
its update, as a copy. So ``r`` is materialized: :mod:`hologram.graph.ownership` then puts the step that reads it before the update. The same holds
for two arrays whose updates read windows of one another: neither kernel could go first. And no kernel computes ``r`` beside what needs the update.

A value computed element by element of a loop's carry and as large, which takes the carry's place (``a = a - f[:, None] * a[k]``), changes an array
like an update does, but all of it: its own kernel, too, has windows of the old array from elsewhere.
"""

from __future__ import annotations

from collections.abc import Set

from hologram.ir.graph import Carries
from hologram.ir.node import Node, estimated_bytes
from hologram.ir.symbolic import is_static
from hologram.ir.traversal import reachable

MIN_SHARE = 4  # an array has at least so many times the elements of a window that is kept apart
MIN_REPLACED_BYTES = 2**12  # of a carry, from which a second buffer costs more than a kernel for windows of it
_MOVES = ("movement", "gather")


class Updates:
    """The scatters of ``nodes``, and what takes a carry's place as a whole. Sets of them are bits: ``bit`` of each, ``of`` those that change an
    array."""

    def __init__(self, nodes: list[Node], carries: Carries) -> None:
        changed = {n: _in_memory(n.inputs[0]) for n in nodes if n.op.kind == "scatter"}
        self.replacing = {n: x for x, y in carries if (n := _replacing(x, y)) is not None}
        changed.update(self.replacing)
        self.arrays = list(changed.values())
        self.bit = {n: 1 << k for k, n in enumerate(changed)}
        self.of: dict[Node, int] = {}
        for n, x in changed.items():
            self.of[x] = self.of.get(x, 0) | self.bit[n]

    def behind(self, nodes: list[Node]) -> dict[Node, int]:
        """The updates that each node depends on; itself only where that changes all of an array."""
        after: dict[Node, int] = {}
        for n in nodes:
            bits = self.bit[n] if n in self.replacing else 0
            for x in n.inputs:
                bits |= after[x] | self.bit.get(x, 0)
            after[n] = bits
        return after


def materialized_for_updates(nodes: list[Node], materialized: Set[Node], carries: Carries = ()) -> set[Node]:
    """Parts of updated arrays that are wanted, by whatever is not materialized on the way, for what depends on an update of the same array; and the
    arrays that an update changes of whose new values, beside it, parts are wanted: these are not computed twice."""
    updates = Updates(nodes, carries)
    if not updates.of:
        return set()
    after = updates.behind(nodes)
    materialized = {*materialized, *updates.replacing}
    wanted = _updates_behind_readers(nodes, after, materialized)
    windows = {n: bits for n in nodes if (bits := _updates_of_window(n, updates.of))}
    found = {n for n, bits in windows.items() if bits & wanted[n]}
    left = {n: bits for n, bits in windows.items() if n not in found}
    apart = found | _windows_of_one_another(nodes, left, after, updates.bit, {*materialized, *found})
    return apart | {x for x in map(_moved_from, windows) if x.op.kind == "elementwise"} | (updates.replacing.keys() if apart else set())


def _replacing(carry: Node, result: Node) -> Node | None:
    """The value that takes the place of a whole carry, if there is one: it reads the carry element by element, beside windows of it."""
    if not is_static(carry.size) or estimated_bytes(carry) < MIN_REPLACED_BYTES:
        return None
    n = _in_memory(result)
    while n.op.kind == "scatter":
        n = _in_memory(n.inputs[0])
    if n.op.kind != "elementwise" or n.shape != carry.shape or n.dtype.bits != carry.dtype.bits:
        return None
    made_of = set(reachable([n], lambda m: m.inputs if m.op.kind == "elementwise" else ()))
    moves = [m for m in made_of if m.op.kind in _MOVES]
    moved = reachable(moves, lambda m: m.inputs if m.op.kind in ("elementwise", *_MOVES) and not _is_window(m, carry) else ())
    return n if carry in made_of and carry not in moved else None


class UpdateOrder:
    """Which materialized values read little of an array that an update changes, and which need the update: one kernel of both would need a copy."""

    def __init__(self, nodes: list[Node], materialized: Set[Node], carries: Carries = ()) -> None:
        updates = Updates(nodes, carries)
        self._needs = updates.behind(nodes) if updates.of else {}
        self._before: dict[Node, int] = {}
        arrays, changing = updates.arrays, updates.of
        read: dict[Node, int] = {}
        for n in nodes if updates.of else ():
            read[n] = 0
            for x in n.inputs:
                read[n] |= changing.get(_in_memory(x), 0) | (0 if x in materialized else read[x])
            self._before[n] = sum(1 << k for k in _positions(read[n]) if _is_window(n, arrays[k])) if n in materialized else 0

    def clash(self, x: Node, y: Node) -> bool:
        """Whether one value is to be computed before an update that the other needs."""
        return bool(self._needs) and bool(self._before[x] & self._needs[y] or self._before[y] & self._needs[x])


def _updates_of_window(n: Node, updates: dict[Node, int]) -> int:
    """The updates that change the array of which a node is a window."""
    if n.op.kind not in _MOVES or n.op.name == "reshape":
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
    while x.op.kind in _MOVES:
        x = x.inputs[0]
    return x


def _is_window(n: Node, x: Node) -> bool:
    return isinstance(n.size, int) and isinstance(x.size, int) and MIN_SHARE * n.size <= x.size
