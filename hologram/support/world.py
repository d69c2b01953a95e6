"""The world: the processes that run a program together, as collectives see them.

A thread sees the world of its process, which ``hologram.distributed.initialize`` sets, unless it plays a rank of a simulated one.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol


class Call(NamedTuple):
    """What a rank is about to exchange data for. ``text`` is compared between ranks before data moves; ``place`` is the user's line."""

    text: str
    place: str

    def __str__(self) -> str:
        return self.text + self.place


class World(Protocol):
    """``size`` processes, of which this is number ``rank``."""

    rank: int
    size: int

    def exchange(self, call: Call, sends: Mapping[int, Any], receives: Mapping[int, Any]) -> None:
        """Sends buffers to ranks and fills others from ranks; buffers are arrays of bytes without gaps.

        Messages between two ranks arrive in their order. Raises DistributedError where a rank is lost, late or at another call.
        """


class Alone:
    """A process without others."""

    rank, size = 0, 1

    def exchange(self, call: Call, sends: Mapping[int, Any], receives: Mapping[int, Any]) -> None:
        assert not sends and not receives


class _Here(threading.local):
    world: World | None = None


_here = _Here()
_process: list[World] = [Alone()]


def current_world() -> World:
    """The world of this thread."""
    return _here.world or _process[0]


def set_world(world: World | None) -> None:
    """Gives the process a world; None: it is alone."""
    _process[0] = Alone() if world is None else world


@contextlib.contextmanager
def playing(world: World) -> Iterator[None]:
    """This thread is a rank of ``world`` for a block."""
    before = _here.world
    try:
        _here.world = world
        yield
    finally:
        _here.world = before
