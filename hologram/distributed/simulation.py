"""Simulated worlds: the ranks of a mesh as threads of one process. Programs and collectives are the very same, and so are the bits."""

from __future__ import annotations

import collections
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from hologram.distributed.watch import unequal
from hologram.errors import ArgumentError, DistributedError, DistributedTimeoutError
from hologram.support.user_lines import located
from hologram.support.world import Call, Network, playing
from hologram.trace.checks import as_function, integer, number

DEFAULT_TIMEOUT = 60.0


class Simulation:
    """``size`` ranks that threads play; see :func:`simulate`."""

    def __init__(self, size: int, timeout: float) -> None:
        self.size, self.timeout = size, timeout

    def run(self, function: Callable[..., Any], *args: Any, **keywords: Any) -> list[Any]:
        """``function(*args, **keywords)`` on every rank at once; the results in the order of ranks. What a rank raises first is raised."""
        as_function(function, "simulate")
        switchboard = _Switchboard(self.size, self.timeout)
        results: list[Any] = [None] * self.size

        def play(rank: int) -> None:
            with playing(_Rank(rank, self.size, switchboard)):
                try:
                    results[rank] = function(*args, **keywords)
                except BaseException as e:
                    switchboard.fail(rank, e)
                else:
                    switchboard.leave(rank)

        threads = [threading.Thread(target=play, args=(rank,), name=f"rank {rank}", daemon=True) for rank in range(self.size)]
        for t in threads:
            t.start()
        try:
            for t in threads:
                t.join()
        except BaseException as e:  # an interrupt: ranks that wait for each other are let go
            switchboard.fail(-1, e)
            raise
        if switchboard.failure is not None:
            rank, error = switchboard.failure
            if self.size > 1:
                error.add_note(f"on rank {rank} of {self.size} simulated ones")
            raise error
        return results


def simulate(size: int, timeout: float = DEFAULT_TIMEOUT) -> Simulation:
    """A world of ``size`` ranks in this process, for development and tests: ``simulate(8).run(main)`` calls ``main`` in eight threads, in each of
    which it is one of eight processes.

    Collectives give the same bits as between processes. A rank that waits longer than ``timeout`` seconds for another raises
    DistributedTimeoutError.

    >>> def main():
    ...     mesh = hg.distributed.make_mesh((4,), "x")
    ...     P = hg.distributed.PartitionSpec
    ...     total = hg.shard_map(lambda x: hg.lax.psum(x.sum(), "x"), mesh=mesh, in_specs=P("x"), out_specs=P())
    ...     return int(total(np.arange(8)))
    >>> hg.distributed.simulate(4).run(main)
    [28, 28, 28, 28]
    """
    if integer(size, "simulate", "the number of ranks") < 1:
        raise located(ArgumentError(f"simulate: a number of ranks is at least 1, not {size}"))
    return Simulation(size, number(timeout, "simulate", "timeout"))


class _Switchboard:
    """The messages under way between ranks, and which ranks are gone."""

    def __init__(self, size: int, timeout: float) -> None:
        self.timeout = timeout
        self.changed = threading.Condition()
        self.boxes: dict[tuple[int, int, int], _Box] = collections.defaultdict(_Box)  # from a rank to another, of a phase
        self.failure: tuple[int, BaseException] | None = None
        self.left: set[int] = set()

    def fail(self, rank: int, error: BaseException) -> None:
        with self.changed:
            if self.failure is None:
                self.failure = rank, error
            self.changed.notify_all()

    def leave(self, rank: int) -> None:
        with self.changed:
            self.left.add(rank)
            self.changed.notify_all()

    def post(self, source: int, to: Mapping[int, np.ndarray], call: Call, phase: int) -> None:
        with self.changed:
            for rank, data in to.items():
                box = self.boxes[source, rank, phase]
                box.messages[box.posted] = call, data.copy()
                box.posted += 1
            self.changed.notify_all()

    def ask(self, source: int, to: int, phase: int) -> int:
        """The number of the next message from one rank to another that nobody has asked for: the order is that in which collectives begin."""
        with self.changed:
            box = self.boxes[source, to, phase]
            box.asked += 1
            return box.asked - 1

    def take(self, source: int, to: int, call: Call, phase: int, number: int) -> tuple[Call, np.ndarray]:
        """The message of a number from one rank to another. Raises DistributedError where it will not come."""
        end = time.monotonic() + self.timeout
        with self.changed:
            messages = self.boxes[source, to, phase].messages
            while number not in messages:
                if self.failure is not None:
                    raise DistributedError(f"rank {to}, in {call}: rank {self.failure[0]} failed: {self.failure[1]}")
                if source in self.left:
                    raise DistributedError(f"rank {to}, in {call}: rank {source} has ended its program")
                if not self.changed.wait(max(0.0, end - time.monotonic())) and number not in messages:
                    raise DistributedTimeoutError(f"rank {to}, in {call}: rank {source} did not come to it within {self.timeout:g} s")
            return messages.pop(number)


class _Box:
    """Messages from one rank to another that have not been taken, by their number; how many were posted, and how many asked for."""

    def __init__(self) -> None:
        self.messages: dict[int, tuple[Call, np.ndarray]] = {}
        self.posted = self.asked = 0


class _Rank:
    """A world as one rank sees it."""

    network = Network()

    def __init__(self, rank: int, size: int, switchboard: _Switchboard) -> None:
        self.rank, self.size, self.switchboard = rank, size, switchboard
        self.lock = threading.RLock()
        self.lane: Any = None

    def begin(self, call: Call, sends: Mapping[int, Any], receives: Mapping[int, Any], phase: int = 0) -> _Messages:
        self.switchboard.post(self.rank, sends, call, phase)
        return _Messages(self, call, receives, phase)

    def fail(self, error: BaseException, messages: Any = None) -> None:
        """What a rank raises ends all."""

    def close(self) -> None:
        self.switchboard.fail(self.rank, DistributedError("a program with collectives under way has ended"))


class _Messages:
    """Messages that a rank will take."""

    def __init__(self, rank: _Rank, call: Call, receives: Mapping[int, Any], phase: int) -> None:
        self.rank, self.call, self.phase = rank, call, phase
        self.receives = {source: (into, rank.switchboard.ask(source, rank.rank, phase)) for source, into in receives.items()}

    def wait(self, sent: bool = True) -> None:
        here, call = self.rank.rank, self.call
        for source, (into, place) in self.receives.items():
            other, data = self.rank.switchboard.take(source, here, call, self.phase, place)
            if other.text != call.text:
                raise unequal((here, str(call)), (source, str(other)))
            into[...] = data
        self.receives.clear()
