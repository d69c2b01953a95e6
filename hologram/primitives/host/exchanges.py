"""How collectives run: each is one or two exchanges of bytes between ranks, and sums in the order of ranks.

A sum of little data is everyone's data sent to the first rank, and the result sent back; of much data, each rank gets its part of everyone's, adds it
up, and sends the part to everyone, so each byte crosses the wire twice; block by block, so that a block is added up, in the cache, while the next is
on the wire. Either way element after element is added in the order of ranks, 16-bit floats in float32 and rounded once: the bits depend on nothing
but the values and the number of ranks, whatever else is reduced with them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from hologram import dtypes
from hologram.errors import DistributedError
from hologram.primitives.host.lanes import in_turn
from hologram.support.world import Call, Pending, World, current_world

LATENCY_BYTES = 100_000  # that the wire carries in the time that an exchange takes anyway
MAX_SMALL_BYTES = 1 << 20  # of a sum, that each rank sends to every other
MAX_SCRATCH_BYTES = 1 << 26
MIN_ALONE_BYTES = 1 << 20  # of an array that is reduced without being copied beside others
BLOCK_BYTES = 1 << 22  # of a sum, that are on the wire at one time: large enough for the wire, small enough for the cache
BLOCKS_AHEAD = 2
PARTS, RESULTS = 0, 1  # phases of a sum

Arrays = Sequence[np.ndarray]


@lru_cache(maxsize=4096)
def group(rank: int, axes: tuple[str, ...], mesh: tuple[Any, ...]) -> tuple[tuple[int, ...], int]:
    """The ranks that take part with ``rank`` in a collective over ``axes``, in their order, and its own number among them.

    Raises DistributedError for a rank outside of the mesh.
    """
    names, shape, ranks = mesh
    grid = np.asarray(ranks or range(int(np.prod(shape)))).reshape(shape)
    found = np.argwhere(grid == rank)
    if not len(found):
        raise DistributedError(f"rank {rank} is not in the mesh {dict(zip(names, shape, strict=True))}")
    own = dict(zip(names, found[0], strict=True))
    taking_part = [n for n in names if n in axes]
    line = grid[tuple(slice(None) if n in axes else own[n] for n in names)].transpose([taking_part.index(a) for a in axes])
    members = tuple(int(r) for r in line.reshape(-1))
    return members, members.index(rank)


class Reference:
    """The meaning of a collective for this rank. ``into`` writes the results where they are wanted."""

    def __init__(self, name: str, results: Any) -> None:
        self.name, self.results, self.run = name, results, _RUN[name]

    def __call__(self, *args: Any) -> list[np.ndarray]:
        arrays, attrs = _parted(args)
        like = tuple(SimpleNamespace(shape=a.shape, dtype=dtypes.of(a.dtype), size=a.size) for a in arrays)
        out = [np.empty(shape, dtype.np) for shape, dtype in self.results(like, attrs)]
        self.into(out, *args)
        return out

    def into(self, out: Arrays, *args: Any) -> None:
        in_turn(*self.job(out, *args))

    def job(self, out: Arrays, *args: Any) -> tuple[World, Callable[[], None]]:
        """The world of this thread, and the collective in it, for another thread to run."""
        arrays, attrs = _parted(args)
        world = current_world()
        return world, lambda: self.within(world, out, arrays, attrs)

    def within(self, world: World, out: Arrays, arrays: Arrays, attrs: tuple[Any, ...]) -> None:
        """The collective in a world, from arrays into others. After an exception the world runs no other."""
        found = _call(self.name, world.rank, world.size, tuple([(a.dtype, a.shape) for a in arrays]), attrs)
        with world.lock:
            peers = _Peers(world, *found)
            try:
                self.run(peers, [np.asarray(a, order="C") for a in arrays], out, *attrs[:-4])
            except BaseException as e:
                world.fail(e, peers.under_way)
                raise


@lru_cache(maxsize=4096)
def _call(name: str, rank: int, running: int, types: tuple[Any, ...], attrs: tuple[Any, ...]) -> tuple[tuple[int, ...], int, Call]:
    """The ranks that take part, the rank's place among them, and what the call is called. Raises DistributedError for a mesh that does not fit."""
    *own, axes, size, mesh, place = attrs
    if max(mesh[2], default=int(np.prod(mesh[1])) - 1) >= running:
        raise DistributedError(f"{name}: the mesh {dict(zip(*mesh[:2], strict=True))} has more ranks than the {running} that run{place}")
    given = ", ".join(f"{dtype}{list(shape)}" for dtype, shape in types)
    settings = f" with {', '.join(map(str, own))}" if own else ""
    return *group(rank, axes, mesh), Call(f"{name} of {given} over {', '.join(map(repr, axes))} of {size}{settings}", place)


def _parted(args: tuple[Any, ...]) -> tuple[list[np.ndarray], tuple[Any, ...]]:
    count = sum(isinstance(a, np.ndarray) for a in args)
    return list(args[:count]), args[count:]


class _Peers:
    """The ranks of one call of a collective."""

    def __init__(self, world: World, members: tuple[int, ...], position: int, call: Call) -> None:
        self.world, self.members, self.position, self.call = world, members, position, call
        self.others = [i for i in range(len(members)) if i != position]
        self.under_way: list[Pending] = []

    def begin(self, sends: dict[int, np.ndarray], receives: dict[int, np.ndarray], phase: int = PARTS) -> Pending:
        """As :meth:`World.begin`, by position among the members, of arrays without gaps."""
        sent, received = ({self.members[i]: _bytes(a) for i, a in some.items() if a.size} for some in (sends, receives))
        messages = self.world.begin(self.call, sent, received, phase)
        self.under_way.append(messages)
        return messages

    def exchange(self, sends: dict[int, np.ndarray], receives: dict[int, np.ndarray]) -> None:
        """Sends and receives, and waits for both."""
        self.begin(sends, receives).wait()


def _bytes(a: np.ndarray) -> np.ndarray:
    return a.reshape(-1).view(np.uint8)


# --- reductions ------------------------------------------------------------------------------------------------------


def _reduction(combine: Callable[..., Any]) -> Callable[..., None]:
    def run(peers: _Peers, arrays: Arrays, out: Arrays) -> None:
        whole = sum(a.nbytes for a in arrays)
        reduce = _reduce_small if whole <= small_bytes(len(peers.members)) else _reduce_large
        reduce(peers, arrays, out, combine)

    return run


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
    dtype = dtypes.of(out.dtype)
    with np.errstate(all="ignore"):
        if dtype.is_float and dtype.bits < 32:
            wide = parts[0].astype(np.float32)
            for p in parts[1:]:
                combine(wide, p.astype(np.float32), out=wide)
            out[...] = wide.astype(out.dtype)
            return
        combine(parts[0], parts[1], out=out)
        for p in parts[2:]:
            combine(out, p, out=out)


def _reduce_small(peers: _Peers, arrays: Arrays, out: Arrays, combine: Callable[..., Any]) -> None:
    """One message of all of the arrays from everyone to the first rank, and one of the results back; two ranks send each other theirs."""
    message = _joined(arrays)
    size, n, me = message.size, len(peers.members), peers.position
    if n > 2 and me > 0:
        peers.exchange({0: message}, {0: (result := np.empty(size, np.uint8))})
        return _parted_into(out, result)
    inbox = {i: a[:size] for i, a in _inbox(peers, size, message.dtype).items()}
    arrived = peers.begin({i: message for i in peers.others if n == 2}, inbox)
    arrived.wait(sent=False)
    start = 0
    for a, o in zip(arrays, out, strict=True):
        of = [a if i == me else inbox[i][start : start + a.nbytes].view(a.dtype).reshape(a.shape) for i in range(n)]
        start += a.nbytes
        _combined(of, o, combine)
    if n > 2:
        peers.begin(dict.fromkeys(peers.others, _joined(out)), {}).wait()
    return arrived.wait()


def _joined(arrays: Arrays) -> np.ndarray:
    """The bytes of all arrays."""
    return _bytes(arrays[0]) if len(arrays) == 1 else np.concatenate([_bytes(a) for a in arrays])


def _parted_into(out: Arrays, message: np.ndarray) -> None:
    """The bytes of all arrays, written into these."""
    start = 0
    for o in out:
        o[...] = message[start : start + o.nbytes].view(o.dtype).reshape(o.shape)
        start += o.nbytes


def _reduce_large(peers: _Peers, arrays: Arrays, out: Arrays, combine: Callable[..., Any]) -> None:
    """Each rank reduces its part of the elements, and sends it to everyone; small arrays of one type together."""
    for dtype in dict.fromkeys(a.dtype for a in arrays):
        alike = [(a.reshape(-1), o) for a, o in zip(arrays, out, strict=True) if a.dtype == dtype]
        small = [(a, o) for a, o in alike if a.nbytes < MIN_ALONE_BYTES] if len(alike) > 1 else []
        for a, o in alike:
            if not small or a.nbytes >= MIN_ALONE_BYTES:
                _reduce_parts(peers, a, o.reshape(-1), combine)
        if small:
            result = np.empty(sum(a.size for a, _ in small), dtype)
            _reduce_parts(peers, np.concatenate([a for a, _ in small]), result, combine)
            start = 0
            for a, o in small:
                o[...] = result[start : start + a.size].reshape(o.shape)
                start += a.size


def _reduce_parts(peers: _Peers, x: np.ndarray, out: np.ndarray, combine: Callable[..., Any]) -> None:
    """Every rank adds up one part of ``x``, in blocks: while one is added up the next ones are under way."""
    n, me = len(peers.members), peers.position
    ends = [x.size * i // n for i in range(n + 1)]
    most = min(BLOCK_BYTES, MAX_SCRATCH_BYTES // (BLOCKS_AHEAD * n))
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
    """Memory of a thread that is used again: fresh pages cost as much as the wire."""

    def __init__(self) -> None:
        self.memory: dict[int, np.ndarray] = {}


_scratch = _Scratch()


def _inbox(peers: _Peers, size: int, dtype: np.dtype[Any], number: int = 0) -> dict[int, np.ndarray]:
    """Room for ``size`` elements of every other rank, until the thread's next call. Of ``BLOCKS_AHEAD`` such rooms, the one of a number."""
    nbytes = -(-size * dtype.itemsize // 64) * 64
    needed = nbytes * len(peers.others)
    memory = _scratch.memory.get(number)
    if memory is None or needed > memory.size:
        memory = np.empty(needed, np.uint8)
        if needed <= MAX_SCRATCH_BYTES:
            _scratch.memory[number] = memory
    return {p: memory[k * nbytes :][: size * dtype.itemsize].view(dtype) for k, p in enumerate(peers.others)}


def _psum_scatter(peers: _Peers, arrays: Arrays, out: Arrays, axis: int) -> None:
    slices = _slices(arrays[0], axis)
    own = slices[peers.position, ...]
    inbox = {i: a.reshape(own.shape) for i, a in _inbox(peers, own.size, own.dtype).items()}
    peers.exchange({i: slices[i, ...] for i in peers.others}, inbox)
    _combined([inbox.get(i, own) for i in range(len(peers.members))], out[0], np.add)


# --- movement --------------------------------------------------------------------------------------------------------


def _slices(x: np.ndarray, axis: int) -> np.ndarray:
    """The slices along an axis, each without gaps."""
    return np.asarray(np.moveaxis(x, axis, 0), order="C")


def _collected(peers: _Peers, sends: dict[int, np.ndarray], own: np.ndarray, out: np.ndarray, axis: int) -> None:
    """What others send, and the rank's ``own``, as slices along an axis of ``out``."""
    direct = axis == 0 and out.flags.c_contiguous
    slices = out if direct else np.empty((out.shape[axis], *out.shape[:axis], *out.shape[axis + 1 :]), out.dtype)
    slices[peers.position] = own
    peers.exchange(sends, {i: slices[i, ...] for i in peers.others})
    if not direct:
        out[...] = np.moveaxis(slices, 0, axis)


def _all_gather(peers: _Peers, arrays: Arrays, out: Arrays, axis: int) -> None:
    _collected(peers, dict.fromkeys(peers.others, arrays[0]), arrays[0], out[0], axis)


def _all_to_all(peers: _Peers, arrays: Arrays, out: Arrays, axis: int) -> None:
    slices = _slices(arrays[0], axis)
    _collected(peers, {i: slices[i, ...] for i in peers.others}, slices[peers.position], out[0], axis)


def _ppermute(peers: _Peers, arrays: Arrays, out: Arrays, perm: tuple[tuple[int, int], ...]) -> None:
    (x,), (to,), me = arrays, out, peers.position
    source = next((s for s, d in perm if d == me), None)
    if source is None:
        to[...] = 0
    elif source == me:
        to[...] = x
    sends = {d: x for s, d in perm if s == me and d != me}
    peers.exchange(sends, {} if source is None or source == me else {source: to})


def _pbroadcast(peers: _Peers, arrays: Arrays, out: Arrays, source: int) -> None:
    (x,), (to,), me = arrays, out, peers.position
    if me == source:
        to[...] = x
    peers.exchange(dict.fromkeys(peers.others, x) if me == source else {}, {} if me == source else {source: to})


def _axis_index(peers: _Peers, arrays: Arrays, out: Arrays) -> None:
    out[0][...] = peers.position


_RUN: dict[str, Callable[..., None]] = {
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
