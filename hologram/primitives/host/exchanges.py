"""How collectives run: each is one or two exchanges of bytes between ranks, and sums in the order of ranks.

A sum of little data is everyone's data sent to the first rank, and the result sent back; of much data, each rank gets its part of everyone's, adds it
up, and sends the part to everyone, so each byte crosses the wire twice; block by block, so that a block is added up, in the cache, while the next is
on the wire. Either way element after element is added in the order of ranks, 16-bit floats in float32 and rounded once: the bits depend on nothing
but the values and the number of ranks, whatever else is reduced with them.

Each is a generator, which pauses where this rank has sent all that others wait for, and has nothing to do before their messages come.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from hologram import dtypes
from hologram.primitives.host import small_reductions
from hologram.support.world import Call, Pending, World

LATENCY_BYTES = 100_000  # that the wire carries in the time that an exchange takes anyway
MAX_SMALL_BYTES = 1 << 19  # of a sum, that each rank sends to every other
MAX_SCRATCH_BYTES = 1 << 26
MIN_ALONE_BYTES = 1 << 20  # of an array that is reduced without being copied beside others
MIN_BLOCK_BYTES, MAX_BLOCK_BYTES = 1 << 22, 1 << 23  # of a sum, that are on the wire at one time: for less the messages cost more than the wire
BLOCKS_AHEAD = 2
PARTS, RESULTS = 0, 1  # phases of a sum

Arrays = Sequence[np.ndarray]
Steps = Iterator[None]


class Peers:
    """The ranks of one call of a collective. ``is_beside``: the program goes on between its start and its wait."""

    __slots__ = ("call", "is_beside", "members", "others", "position", "under_way", "world")

    def __init__(self, world: World, members: tuple[int, ...], others: Sequence[int], position: int, call: Call, is_beside: bool = False) -> None:
        self.world, self.members, self.others, self.position, self.call, self.is_beside = world, members, others, position, call, is_beside
        self.under_way: list[Pending] = []

    def begin(self, sends: dict[int, np.ndarray], receives: dict[int, np.ndarray], phase: int = PARTS) -> Pending:
        """As :meth:`World.begin`, by position among the members, of arrays without gaps."""
        sent, received = ({self.members[i]: _bytes(a) for i, a in some.items() if a.size} for some in (sends, receives))
        return self.begin_bytes(sent, received, phase)

    def begin_bytes(self, sends: dict[int, np.ndarray], receives: dict[int, np.ndarray], phase: int = PARTS) -> Pending:
        """As :meth:`World.begin`."""
        messages = self.world.begin(self.call, sends, receives, phase)
        self.under_way.append(messages)
        return messages


def _bytes(a: np.ndarray) -> np.ndarray:
    return a.reshape(-1).view(np.uint8)


# --- reductions ------------------------------------------------------------------------------------------------------


def _reduction(combine: Callable[..., Any]) -> Callable[..., Steps]:
    def into(parts: Arrays, out: np.ndarray) -> None:
        _combined(parts, out, combine)

    def run(peers: Peers, arrays: Arrays, out: Arrays) -> Steps:
        n, nbytes = len(peers.members), sum([a.nbytes for a in arrays])
        if n > 1 and 0 < nbytes <= small_reductions.MAX_BYTES:
            return small_reductions.reduce_small(peers, arrays, out, into)
        if nbytes > small_bytes(n):
            _reduce_large(peers, arrays, out, combine)
            return iter(())
        if n > 2:
            return (_reduce_at_first if peers.position else _reduce_as_first)(peers, arrays, out, combine)
        return _reduce_with_other(peers, arrays, out, combine)

    return run


def is_one_exchange(name: str, nbytes: int, ranks: int, position: int) -> bool:
    """Whether a rank sends all that it sends when a collective begins."""
    return name not in ("psum", "pmax", "pmin") or (nbytes <= small_bytes(ranks) and (ranks <= 2 or position > 0))


def small_bytes(n: int) -> int:
    """Up to how many bytes one exchange of everything costs ``n`` ranks less than two of parts: n - 1 times the data on the wire in the place of
    2 (n - 1) / n times, and half the exchanges."""
    more = (n - 1) * (1 - 2 / n)
    return MAX_SMALL_BYTES if more <= LATENCY_BYTES / MAX_SMALL_BYTES else int(LATENCY_BYTES / more)


def _combined(parts: Arrays, out: np.ndarray, combine: Callable[..., Any]) -> None:
    """The parts, in their order, combined into ``out``; floats of 16 bits and less in float32."""
    if len(parts) == 1:
        np.copyto(out, parts[0])
        return
    with np.errstate(all="ignore"):
        if out.dtype.itemsize < 4 and dtypes.of(out.dtype).is_float:
            wide = parts[0].astype(np.float32)
            for p in parts[1:]:
                combine(wide, p.astype(np.float32), out=wide)
            out[...] = wide.astype(out.dtype)
            return
        combine(parts[0], parts[1], out=out)
        for p in parts[2:]:
            combine(out, p, out=out)


def _reduce_with_other(peers: Peers, arrays: Arrays, out: Arrays, combine: Callable[..., Any]) -> Steps:
    """Two ranks send each other one message of all arrays."""
    message = _joined(arrays)
    inbox = _inbox(peers, message.size, message.dtype)
    messages = peers.begin(dict.fromkeys(peers.others, message), inbox)
    yield
    messages.wait()
    _combine_messages(peers, arrays, inbox, out, combine)


def _reduce_at_first(peers: Peers, arrays: Arrays, out: Arrays, combine: Callable[..., Any]) -> Steps:
    """One message of all arrays to the first rank, and one of the results back."""
    message = _joined(arrays)
    result = np.empty(message.size, np.uint8)
    messages = peers.begin({0: message}, {0: result})
    yield
    messages.wait()
    start = 0
    for o in out:
        o[...] = result[start : start + o.nbytes].view(o.dtype).reshape(o.shape)
        start += o.nbytes


def _reduce_as_first(peers: Peers, arrays: Arrays, out: Arrays, combine: Callable[..., Any]) -> Steps:
    """The same, of the first rank."""
    inbox = _inbox(peers, sum([a.nbytes for a in arrays]), np.dtype(np.uint8))
    peers.begin({}, inbox).wait()
    _combine_messages(peers, arrays, inbox, out, combine)
    results = peers.begin(dict.fromkeys(peers.others, _joined(out)), {})
    yield
    results.wait()


def _combine_messages(peers: Peers, arrays: Arrays, inbox: dict[int, np.ndarray], out: Arrays, combine: Callable[..., Any]) -> None:
    """Reduces all arrays, of which the others' are in one message each."""
    start = 0
    for a, o in zip(arrays, out, strict=True):
        end = start + a.nbytes
        theirs = {i: m[start:end].view(a.dtype).reshape(a.shape) for i, m in inbox.items()}
        _combined([theirs.get(i, a) for i in range(len(peers.members))], o, combine)
        start = end


def _joined(arrays: Arrays) -> np.ndarray:
    """The bytes of all arrays."""
    return _bytes(arrays[0]) if len(arrays) == 1 else np.concatenate([_bytes(a) for a in arrays])


def _reduce_large(peers: Peers, arrays: Arrays, out: Arrays, combine: Callable[..., Any]) -> None:
    """Each rank reduces its part of the elements, and sends it to everyone."""
    for group in reduced_together([(a.dtype, a.nbytes) for a in arrays]):
        if len(group) == 1:
            _reduce_parts(peers, arrays[group[0]].reshape(-1), out[group[0]].reshape(-1), combine)
            continue
        joined = np.concatenate([arrays[i].reshape(-1) for i in group])
        result = np.empty_like(joined)
        _reduce_parts(peers, joined, result, combine)
        start = 0
        for i in group:
            out[i][...] = result[start : start + out[i].size].reshape(out[i].shape)
            start += out[i].size


def reduced_together(types: Sequence[tuple[Any, int]]) -> list[list[int]]:
    """Which of arrays of some dtypes and bytes are reduced as one in a large reduction, each after the one before: small ones of one dtype."""
    groups: list[list[int]] = []
    for dtype in dict.fromkeys(d for d, _ in types):
        alike = [i for i, (d, _) in enumerate(types) if d == dtype]
        groups += [[i] for i in alike if types[i][1] >= MIN_ALONE_BYTES]
        groups.append([i for i in alike if types[i][1] < MIN_ALONE_BYTES])
    return [g for g in groups if g]


def _reduce_parts(peers: Peers, x: np.ndarray, out: np.ndarray, combine: Callable[..., Any]) -> None:
    """Every rank adds up one part of ``x``, in blocks: while one is added up the next ones are under way."""
    n, me = len(peers.members), peers.position
    ends = [x.size * i // n for i in range(n + 1)]
    share = -(-x.nbytes // n)
    most = min(max(share // BLOCKS_AHEAD, MIN_BLOCK_BYTES), MAX_BLOCK_BYTES, MAX_SCRATCH_BYTES // (BLOCKS_AHEAD * n))
    block = max(1, most // x.itemsize)
    count = -(-max(ends[i + 1] - ends[i] for i in range(n)) // block)

    def part(i: int, b: int) -> slice:
        return slice(min(ends[i] + b * block, ends[i + 1]), min(ends[i] + (b + 1) * block, ends[i + 1]))

    inboxes = [_inbox(peers, min(block, ends[me + 1] - ends[me]), x.dtype, k) for k in range(min(BLOCKS_AHEAD, count))]
    results = [peers.begin({}, {i: out[part(i, b)] for i in peers.others}, RESULTS) for b in range(count)]

    def ask(b: int) -> Pending:
        mine = part(me, b)
        into = {i: a[: mine.stop - mine.start] for i, a in inboxes[b % BLOCKS_AHEAD].items()}
        return peers.begin({i: x[part(i, b)] for i in peers.others}, into)

    asked = [ask(b) for b in range(len(inboxes))]
    for b in range(count):
        mine, inbox = part(me, b), inboxes[b % BLOCKS_AHEAD]
        asked[b].wait(sent=False)
        size = mine.stop - mine.start
        _combined([x[mine] if i == me else inbox[i][:size] for i in range(n)], out[mine], combine)
        results.append(peers.begin({i: out[mine] for i in peers.others}, {}, RESULTS))
        if b + BLOCKS_AHEAD < count:
            asked.append(ask(b + BLOCKS_AHEAD))
    for messages in (*results, *asked):
        messages.wait()


class _Scratch(threading.local):
    """Memory of a thread that is used again by its next collective: fresh pages cost as much as the wire."""

    def __init__(self) -> None:
        self.memory: dict[int, np.ndarray] = {}


_scratch = _Scratch()


def _inbox(peers: Peers, size: int, dtype: np.dtype[Any], number: int = 0) -> dict[int, np.ndarray]:
    """Room for ``size`` elements of every other rank, until the thread's next call. Of ``BLOCKS_AHEAD`` such rooms, the one of a number."""
    nbytes = -(-size * dtype.itemsize // 64) * 64
    needed = nbytes * len(peers.others)
    memory = None if peers.is_beside else _scratch.memory.get(number)
    if memory is None or needed > memory.size:
        memory = np.empty(needed, np.uint8)
        if needed <= MAX_SCRATCH_BYTES and not peers.is_beside:
            _scratch.memory[number] = memory
    return {p: memory[k * nbytes :][: size * dtype.itemsize].view(dtype) for k, p in enumerate(peers.others)}


def _psum_scatter(peers: Peers, arrays: Arrays, out: Arrays, axis: int) -> Steps:
    slices = _slices(arrays[0], axis)
    own = slices[peers.position, ...]
    inbox = {i: a.reshape(own.shape) for i, a in _inbox(peers, own.size, own.dtype).items()}
    messages = peers.begin({i: slices[i, ...] for i in peers.others}, inbox)
    yield
    messages.wait()
    _combined([inbox.get(i, own) for i in range(len(peers.members))], out[0], np.add)


# --- movement --------------------------------------------------------------------------------------------------------


def _slices(x: np.ndarray, axis: int) -> np.ndarray:
    """The slices along an axis, each without gaps."""
    return np.asarray(np.moveaxis(x, axis, 0), order="C")


def _collected(peers: Peers, sends: dict[int, np.ndarray], own: np.ndarray, out: np.ndarray, axis: int) -> Steps:
    """What others send, and the rank's ``own``, as slices along an axis of ``out``."""
    direct = axis == 0 and out.flags.c_contiguous
    slices = out if direct else np.empty((out.shape[axis], *out.shape[:axis], *out.shape[axis + 1 :]), out.dtype)
    slices[peers.position] = own
    messages = peers.begin(sends, {i: slices[i, ...] for i in peers.others})
    yield
    messages.wait()
    if not direct:
        out[...] = np.moveaxis(slices, 0, axis)


def _all_gather(peers: Peers, arrays: Arrays, out: Arrays, axis: int) -> Steps:
    return _collected(peers, dict.fromkeys(peers.others, arrays[0]), arrays[0], out[0], axis)


def _all_to_all(peers: Peers, arrays: Arrays, out: Arrays, axis: int) -> Steps:
    slices = _slices(arrays[0], axis)
    return _collected(peers, {i: slices[i, ...] for i in peers.others}, slices[peers.position], out[0], axis)


def _ppermute(peers: Peers, arrays: Arrays, out: Arrays, perm: tuple[tuple[int, int], ...]) -> Steps:
    (x,), (to,), me = arrays, out, peers.position
    source = next((s for s, d in perm if d == me), None)
    if source is None:
        to[...] = 0
    elif source == me:
        to[...] = x
    sends = {d: x for s, d in perm if s == me and d != me}
    messages = peers.begin(sends, {} if source is None or source == me else {source: to})
    yield
    messages.wait()


def _pbroadcast(peers: Peers, arrays: Arrays, out: Arrays, source: int) -> Steps:
    (x,), (to,), me = arrays, out, peers.position
    if me == source:
        to[...] = x
    messages = peers.begin(dict.fromkeys(peers.others, x) if me == source else {}, {} if me == source else {source: to})
    yield
    messages.wait()


def _axis_index(peers: Peers, arrays: Arrays, out: Arrays) -> Steps:
    out[0][...] = peers.position
    return iter(())


RUN: dict[str, Callable[..., Steps]] = {
    "psum": _reduction(np.add),
    "pmax": _reduction(np.maximum),
    "pmin": _reduction(np.minimum),
    "all_gather": _all_gather,
    "psum_scatter": _psum_scatter,
    "all_to_all": _all_to_all,
    "ppermute": _ppermute,
    "pbroadcast": _pbroadcast,
    "axis_index": _axis_index,
}
