"""Collectives that run beside the program: each world has a lane, a thread that runs them one after the other, in the order of their starts. Small
ones may begin in the program's own thread, which does the rest when it waits for them.

The program starts a collective, computes, and waits for it. The memory of one under way is the program's: a call that ends early
(:func:`settle`) waits until nobody reads or writes there.
"""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Callable
from queue import SimpleQueue

from hologram.errors import DistributedError
from hologram.support.world import World

GRACE = 5.0  # seconds that collectives have to end by themselves where the program has ended early

Job = Callable[[], None]


class Ticket:
    """A collective that was given to a lane."""

    __slots__ = ("_done", "_error", "_job", "_world")

    def __init__(self, world: World, job: Job) -> None:
        self._world, self._job, self._done = world, job, threading.Event()
        self._error: BaseException | None = None

    def run(self) -> None:
        """In the lane."""
        try:
            self._job()
        except BaseException as e:
            self._error = e
        finally:
            self._done.set()

    def wait(self) -> None:
        """Until it is done. Raises what it raised."""
        self._done.wait()
        if self._error is not None:
            raise self._error

    def settle(self) -> None:
        """Until its memory is free; the world ends where others do not come to it."""
        if not self._done.wait(GRACE):
            error = DistributedError("a program with collectives under way has ended")
            self._world.fail(error)
            self._world.close()
            self._done.wait()

    @property
    def is_done(self) -> bool:
        return self._done.is_set()


class Begun:
    """A collective whose messages are on their way, of which the caller's thread does the rest."""

    __slots__ = ("_rest", "_world")

    def __init__(self, world: World, rest: Job) -> None:
        self._world, self._rest = world, rest

    def wait(self) -> None:
        """Until it is done. Raises what it raises."""
        self._rest()

    def settle(self) -> None:
        """Until its memory is free."""
        _lane(self._world).submit(self._world, self._rest).settle()


class Lane:
    """The thread of a world."""

    def __init__(self, world: World) -> None:
        self._queue: SimpleQueue[Ticket | None] = SimpleQueue()
        self._last: Ticket | None = None
        weakref.finalize(world, self._queue.put, None)
        threading.Thread(target=_serve, args=(self._queue,), name="hologram collectives", daemon=True).start()

    @property
    def is_busy(self) -> bool:
        """Whether a collective is under way or waits for its turn."""
        return self._last is not None and not self._last.is_done

    def submit(self, world: World, job: Job) -> Ticket:
        """Runs ``job`` after those before it."""
        self._last = ticket = Ticket(world, job)
        self._queue.put(ticket)
        return ticket


def _serve(queue: SimpleQueue[Ticket | None]) -> None:
    while (ticket := queue.get()) is not None:
        ticket.run()
        del ticket  # and what its memory belongs to


# By the context of the call and the number of the collective in its program, or in the body of a loop that runs meanwhile: the last has begun last.
_under_way: dict[tuple[int, int], list[Ticket | Begun]] = {}


def _lane(world: World) -> Lane:
    if world.lane is None:
        world.lane = Lane(world)
    found: Lane = world.lane
    return found


def in_turn(world: World, job: Job) -> None:
    """Runs a collective after those that are under way in this world."""
    ticket = _lane(world).submit(world, job)
    try:
        return ticket.wait()
    finally:
        ticket.settle()


def start(world: World, job: Job, context: int, pending_at: int, number: int) -> None:
    """Gives a collective to the world's lane. ``context`` is that of the call, which counts its collectives at ``pending_at``."""
    _note(_lane(world).submit(world, job), context, pending_at, number)


def begun(world: World, rest: Job, context: int, pending_at: int, number: int) -> None:
    """The same of one that has begun, and whose ``rest`` runs when the program waits for it."""
    _note(Begun(world, rest), context, pending_at, number)


def _note(ticket: Ticket | Begun, context: int, pending_at: int, number: int) -> None:
    ctypes.c_int64.from_address(context + pending_at).value += 1
    _under_way.setdefault((context, number), []).append(ticket)


def finish(context: int, pending_at: int, number: int) -> None:
    """Waits for a collective. Raises what it raised; where that is an interrupt of the wait, it is still under way."""
    of_number = _under_way[context, number]
    of_number[-1].wait()
    ctypes.c_int64.from_address(context + pending_at).value -= 1
    of_number.pop()
    if not of_number:
        del _under_way[context, number]


def settle(context: int) -> None:
    """Waits until no collective of a call that has ended early is under way."""
    for key in [k for k in list(_under_way) if k[0] == context]:
        for ticket in _under_way.pop(key):
            ticket.settle()
