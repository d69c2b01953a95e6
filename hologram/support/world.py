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


class Network(NamedTuple):
    """What messages between processes cost (the alpha-beta model): each ``latency`` seconds, and one second for each ``bandwidth`` bytes that a rank
    sends; of many at once each further one ``message`` seconds. One of more than
    64 KiB takes ``rendezvous`` seconds more, until its receiver is known to be there.

    All ranks have the same figures, since these decide which collectives go together.

    >>> hg.distributed.Network(latency=20e-6, bandwidth=10e9)
    Network(latency=2e-05, bandwidth=10000000000.0, message=5e-06, rendezvous=0.0)
    """

    latency: float = 100e-6
    bandwidth: float = 1e9
    message: float = 5e-6
    rendezvous: float = 0.0


class Pending(Protocol):
    """Messages under way."""

    def wait(self, sent: bool = True) -> None:
        """Until all have come, and with ``sent`` all have gone. Raises DistributedError where a rank is lost, late or at another call."""


class World(Protocol):
    """``size`` processes, of which this is number ``rank``. One thread at a time has ``lock`` and begins messages. ``lane`` is the thread that runs
    collectives beside the program, None until one is to."""

    rank: int
    size: int
    network: Network
    lock: Any
    lane: Any

    def begin(self, call: Call, sends: Mapping[int, Any], receives: Mapping[int, Any], phase: int = 0) -> Pending:
        """Begins to send buffers to ranks and to fill others from ranks; buffers are arrays of bytes without gaps, which stay until the wait.

        Messages of one call and phase between two ranks arrive in their order.
        """

    def fail(self, error: BaseException, messages: Any = None) -> None:
        """No other collective runs."""

    def close(self) -> None:
        """Ends all messages under way, here and elsewhere, with an error."""


class Alone:
    """A process without others."""

    rank, size, network = 0, 1, Network()

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.lane: Any = None

    def begin(self, call: Call, sends: Mapping[int, Any], receives: Mapping[int, Any], phase: int = 0) -> Alone:
        assert not sends and not receives
        return self

    def wait(self, sent: bool = True) -> None:
        """Nothing is under way."""

    def fail(self, error: BaseException, messages: Any = None) -> None:
        """Without others there is nothing to keep together."""

    def close(self) -> None:
        """Nothing is under way."""


class _Here(threading.local):
    world: World | None = None


_here = _Here()
_process: list[World] = [Alone()]


def current_world() -> World:
    """The world of this thread."""
    return _here.world or _process[0]


def process_world() -> Any:
    """The world of the process."""
    return _process[0]


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
