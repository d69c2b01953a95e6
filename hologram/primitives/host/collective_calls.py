"""Calls of collectives: among which ranks, in which thread, and what a failure does. What is known before the arrays come is found once.

A call runs in the thread of the program. One that is to be beside the program begins there too where it is small, and one exchange: nothing is to be
done before the program waits for it. Others have a lane (:mod:`hologram.primitives.host.lanes`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from hologram import dtypes
from hologram.errors import DistributedError
from hologram.primitives.host import exchanges, lanes
from hologram.primitives.host.exchanges import Arrays, Peers
from hologram.support.world import Call, World, current_world

SMALL_BYTES = 1 << 16  # of a collective: to hand it to another thread takes longer than its messages
Shapes = tuple[tuple[dtypes.DType, tuple[int, ...]], ...]


class Reference:
    """The meaning of a collective for this rank. What :meth:`prepare` gives writes the results where they are wanted."""

    def __init__(self, name: str, results: Any) -> None:
        self.name, self.results = name, results

    def __call__(self, *args: Any) -> list[np.ndarray]:
        count = sum(isinstance(a, np.ndarray) for a in args)
        arrays, attrs = [np.asarray(a, order="C") for a in args[:count]], args[count:]
        types = tuple([(dtypes.of(a.dtype), a.shape) for a in arrays])
        like = tuple([SimpleNamespace(shape=shape, dtype=dtype, size=math.prod(shape)) for dtype, shape in types])
        out = [np.empty(shape, dtype.np) for shape, dtype in self.results(like, attrs)]
        self.prepare(types, attrs)(out, arrays)
        return out

    def prepare(self, types: Shapes, attrs: tuple[Any, ...]) -> Collective:
        """The collective of arrays of some types."""
        return _collective(self.name, types, attrs)


class _Seat(NamedTuple):
    """The place of a rank in a collective. ``at_once``: it sends all that it sends when the collective begins, and that is little."""

    members: tuple[int, ...]
    others: tuple[int, ...]
    position: int
    call: Call
    at_once: bool


class Collective:
    """A collective of arrays of known types, for every rank that runs it."""

    __slots__ = ("_attrs", "_move", "_name", "_own", "_seats", "_types")

    def __init__(self, name: str, types: Shapes, attrs: tuple[Any, ...]) -> None:
        self._name, self._types, self._attrs = name, types, attrs
        self._move, self._own = exchanges.RUN[name], attrs[:-4]
        self._seats: dict[tuple[int, int], _Seat] = {}

    def __call__(self, out: Arrays, arrays: Arrays) -> None:
        """From arrays without gaps into others. After an exception the world runs no other collective."""
        world = current_world()
        lane = world.lane
        if lane is None or not lane.is_busy:
            self._whole(world, out, arrays)
        else:
            lanes.in_turn(world, partial(self._whole, world, out, arrays))

    def start(self, out: Arrays, arrays: Arrays, context: int, pending_at: int, number: int) -> None:
        """Begins it, for :func:`lanes.finish`."""
        world = current_world()
        lane = world.lane
        if (lane is None or not lane.is_busy) and self._seat(world).at_once:
            with world.lock:
                steps = self._steps(world, out, arrays, is_beside=True)
                next(steps, None)
            lanes.begun(world, partial(_finish, steps), context, pending_at, number)
        else:
            lanes.start(world, partial(self._whole, world, out, arrays), context, pending_at, number)

    def _whole(self, world: World, out: Arrays, arrays: Arrays) -> None:
        with world.lock:
            _finish(self._steps(world, out, arrays))

    def _steps(self, world: World, out: Arrays, arrays: Arrays, is_beside: bool = False) -> Iterator[None]:
        members, others, position, call, _ = self._seat(world)
        peers = Peers(world, members, others, position, call, is_beside)
        try:
            yield from self._move(peers, arrays, out, *self._own)
        except BaseException as e:
            world.fail(e, peers.under_way)
            if not isinstance(e, (Exception, GeneratorExit)):  # an interrupt: nobody may write into memory that is given up
                world.close()
            raise

    def _seat(self, world: World) -> _Seat:
        """Raises DistributedError for a mesh that does not fit."""
        found = self._seats.get((world.rank, world.size))
        if found is None:
            found = self._seats[world.rank, world.size] = self._placed(world)
        return found

    def _placed(self, world: World) -> _Seat:
        *own, axes, size, mesh, place = self._attrs
        if max(mesh[2], default=math.prod(mesh[1]) - 1) >= world.size:
            has = f"the mesh {dict(zip(*mesh[:2], strict=True))} has more ranks than the {world.size} that run{place}"
            raise DistributedError(f"{self._name}: {has}")
        given = ", ".join(f"{dtype}{list(shape)}" for dtype, shape in self._types)
        settings = f" with {', '.join(map(str, own))}" if own else ""
        members, position = group(world.rank, axes, mesh)
        nbytes = sum(math.prod(shape) * dtype.itemsize for dtype, shape in self._types)
        at_once = nbytes <= SMALL_BYTES and exchanges.is_one_exchange(self._name, nbytes, len(members), position)
        call = Call(f"{self._name} of {given} over {', '.join(map(repr, axes))} of {size}{settings}", place)
        others = tuple([i for i in range(len(members)) if i != position])
        return _Seat(members, others, position, call, at_once)


_collective: Callable[..., Collective] = lru_cache(maxsize=1024)(Collective)


def _finish(steps: Iterator[None]) -> None:
    for _ in steps:
        pass


@lru_cache(maxsize=4096)
def group(rank: int, axes: tuple[str, ...], mesh: tuple[Any, ...]) -> tuple[tuple[int, ...], int]:
    """The ranks that take part with ``rank`` in a collective over ``axes``, in their order, and its own number among them.

    Raises DistributedError for a rank outside of the mesh.
    """
    names, shape, ranks = mesh
    grid = np.asarray(ranks or range(math.prod(shape))).reshape(shape)
    found = np.argwhere(grid == rank)
    if not len(found):
        raise DistributedError(f"rank {rank} is not in the mesh {dict(zip(names, shape, strict=True))}")
    own = dict(zip(names, found[0], strict=True))
    taking_part = [n for n in names if n in axes]
    line = grid[tuple(slice(None) if n in axes else own[n] for n in names)].transpose([taking_part.index(a) for a in axes])
    members = tuple(int(r) for r in line.reshape(-1))
    return members, members.index(rank)
