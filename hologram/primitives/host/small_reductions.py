"""Reductions of few bytes: one message from each rank, in memory that is kept. Who sends what to whom, and every view, is made once for each call
site; a call copies its arrays in, and its results out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from hologram.support.world import Call, Pending

MAX_BYTES = 1 << 12  # of all arrays of a rank: copies of more cost more than new views
MAX_PLACES = 1024  # call sites whose memory is kept

Arrays = Sequence[np.ndarray]
Combine = Callable[[Arrays, np.ndarray], None]  # arrays of all ranks, in their order, into a result
_ALIGNMENT = 64


class Peers(Protocol):
    """The ranks of one call of a collective, as :mod:`hologram.primitives.host.exchanges` has them."""

    members: tuple[int, ...]
    position: int
    call: Call

    def begin_bytes(self, sends: dict[int, np.ndarray], receives: dict[int, np.ndarray]) -> Pending: ...


class _Plan:
    """The memory of one call at a time. The first of more than two ranks ``collects``: it sends the results to all."""

    __slots__ = ("collects", "gives", "own", "parts", "receives", "results", "sends")

    def __init__(self, members: tuple[int, ...], position: int, arrays: Arrays) -> None:
        n = len(members)
        nbytes = sum(a.nbytes for a in arrays)
        rows = np.empty((n + 1, -(-nbytes // _ALIGNMENT) * _ALIGNMENT), np.uint8)[:, :nbytes]  # of each rank, and of the results
        views = [_views(row, arrays) for row in rows]
        self.own, self.results = views[position], views[n]
        self.parts = [[views[i][k] for i in range(n)] for k in range(len(arrays))]
        self.collects = n > 2 and position == 0
        others = [i for i in range(n) if i != position] if n == 2 or self.collects else [0]
        self.receives = {members[i]: rows[i] if n == 2 or self.collects else rows[n] for i in others}
        self.sends = {} if self.collects else {members[i]: rows[position] for i in others}
        self.gives = {members[i]: rows[n] for i in others} if self.collects else {}


def _views(row: np.ndarray, arrays: Arrays) -> list[np.ndarray]:
    """Arrays like ``arrays`` that lie one after the other."""
    ends = np.cumsum([a.nbytes for a in arrays])
    return [row[end - a.nbytes : end].view(a.dtype).reshape(a.shape) for a, end in zip(arrays, ends, strict=True)]


_free: dict[Any, list[_Plan]] = {}


def reduce_small(peers: Peers, arrays: Arrays, out: Arrays, combine: Combine) -> Iterator[None]:
    """Reduces at most ``MAX_BYTES`` of each of several ranks. After a failure the memory belongs to the messages."""
    key = peers.call.text, peers.members, peers.position
    try:
        plan = _free[key].pop()
    except (KeyError, IndexError):
        plan = _Plan(peers.members, peers.position, arrays)
    for mine, a in zip(plan.own, arrays, strict=True):
        mine[...] = a
    messages = peers.begin_bytes(plan.sends, plan.receives)
    if plan.collects:
        messages.wait()
        _combine(plan, combine)
        messages = peers.begin_bytes(plan.gives, {})
    yield
    messages.wait()
    if len(peers.members) == 2:
        _combine(plan, combine)
    for to, result in zip(out, plan.results, strict=True):
        to[...] = result
    if len(_free) >= MAX_PLACES:
        _free.clear()
    _free.setdefault(key, []).append(plan)


def _combine(plan: _Plan, combine: Combine) -> None:
    for parts, result in zip(plan.parts, plan.results, strict=True):
        combine(parts, result)
