"""Prediction of programs on meshes that are not there: time and memory of a rank.

The program of one rank is compiled as it would be there. Its steps are gone through with two clocks, that of computation and that of the wire: a
kernel takes the time of its roofline (or of what was measured), a collective that of the alpha-beta model, from its start on and after those before
it; a wait moves the first clock to the second.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hologram.backends.limits import limits
from hologram.distributed.array import ShardedArray
from hologram.distributed.mesh import Mesh
from hologram.distributed.messages import ROOM_BYTES
from hologram.distributed.network import known
from hologram.errors import ArgumentError
from hologram.graph.execution_plan import ExecutionPlan
from hologram.graph.kernel.work import work_of
from hologram.graph.lower.collective_step import DONE, START, CollectiveStep
from hologram.graph.lower.control_step import ControlStep
from hologram.graph.lower.lowered import Lowered
from hologram.graph.lower.overlap import is_collective
from hologram.graph.lower.steps import Step
from hologram.primitives.host.collective_calls import SMALL_BYTES
from hologram.primitives.host.exchanges import is_one_exchange, reduced_together, small_bytes
from hologram.support.user_lines import located
from hologram.support.world import Call, Network, playing
from hologram.trace import tree
from hologram.trace.call.abstract_eval import ShapeDtypeStruct
from hologram.trace.call.jit import jit
from hologram.trace.checks import as_function, number

__all__ = ["Prediction", "predict"]
REPEATS = 5
MAX_CACHED_BYTES = 1 << 26  # more than caches hold
_REDUCTIONS = ("psum", "pmax", "pmin")


@dataclass(frozen=True)
class Prediction:
    """What a call takes on each rank: ``seconds`` in all, of which ``compute_seconds`` are spent in computation and ``exposed_seconds`` in waits for
    collectives; these take ``communication_seconds`` on the wire, and the rank sends ``bytes_sent`` in ``messages``. ``peak_bytes`` are those of
    arguments, constants, results and intermediates together.

    >>> mesh = hg.distributed.Mesh([0, 1], "x")
    >>> P = hg.distributed.PartitionSpec
    >>> f = hg.shard_map(lambda x: hg.lax.psum(x, "x"), mesh, P(), P())
    >>> hg.distributed.predict(f, mesh)(np.ones(2, np.float32)).messages
    1
    """

    seconds: float
    compute_seconds: float
    communication_seconds: float
    exposed_seconds: float
    bytes_sent: int
    messages: int
    peak_bytes: int

    def __str__(self) -> str:
        hidden = self.communication_seconds - self.exposed_seconds
        return (
            f"{self.seconds * 1e3:,.3f} ms a call: {self.compute_seconds * 1e3:,.3f} ms of computation, "
            f"{self.exposed_seconds * 1e3:,.3f} ms of waits; {max(0.0, hidden) * 1e3:,.3f} ms of communication behind computation\n"
            f"{self.bytes_sent:,} bytes sent in {self.messages:,} messages; peak {self.peak_bytes:,} bytes"
        )


def predict(
    f: Callable[..., Any], mesh: Mesh, network: Network | None = None, *, measure: bool = False, ranks_per_core: float | None = None
) -> Callable[..., Prediction]:
    """Tells what a call of ``f``, a program over ``mesh``, takes on each rank, where the mesh is not there: a function of the arguments.

    Arguments are as in the call; a :class:`hologram.ShapeDtypeStruct` may stand for an array, and with ``sharding`` for one that is divided.
    ``network`` is what messages cost, by default what :func:`measure_network` found here. Computation takes the time of the machine's roofline, which
    is the least that it can take; ``measure``: what rank 0's program takes here, without its messages. Ranks are alike, with a machine like this one
    each; loops whose end nobody knows take one step. ``ranks_per_core``: that many ranks of one machine take turns on each core, and in its
    caches, and messages, which the same cores copy, hide behind nothing; ``network`` is then what :func:`measure_network` found among as many ranks.

    Raises ArgumentError for what is no mesh, and for fewer than one rank on a core; and what tracing and compiling raise.

    >>> P = hg.distributed.PartitionSpec
    >>> mesh = hg.distributed.Mesh(np.arange(1024), "data")
    >>> f = hg.shard_map(lambda x: hg.lax.psum(x, "data"), mesh, P(), P(), check_vma=False)
    >>> network = hg.distributed.Network(latency=20e-6, bandwidth=10e9)
    >>> hg.distributed.predict(f, mesh, network)(hg.ShapeDtypeStruct((1 << 20,), "float32")).bytes_sent
    8380416
    """
    if not isinstance(mesh, Mesh):
        raise located(ArgumentError(f"predict takes a Mesh, not a {type(mesh).__name__}"))
    turns = None if ranks_per_core is None else number(ranks_per_core, "predict", "ranks_per_core")
    if turns is not None and turns < 1:
        raise located(ArgumentError(f"predict: ranks_per_core is at least 1, not {turns:g}: for several cores a rank, set the number of threads"))
    as_function(f, "predict")

    def predicted(*args: Any) -> Prediction:
        world = _Planned(mesh, network or known(2, True) or Network())
        with playing(world):
            here = tree.map(lambda leaf: _part(leaf, mesh), args)
            compiled = jit(lambda *given: f(*given), dynamic=False).lower(*here).compile()
            memory = compiled.memory_analysis()
            peak = memory.peak + memory.argument_bytes + memory.constant_bytes + memory.result_bytes
            if turns is not None and turns > 1:
                others = min(mesh.size, turns * (os.cpu_count() or 1)) - 1
                world.share_caches(int(others * peak))
            seconds = _measured(compiled, here, world) if measure else None
        clocks = _Clocks(world.network, turns)
        clocks.run(compiled.executable.compilation.execution_plan, seconds)
        return clocks.prediction(peak)

    return predicted


def _part(leaf: Any, mesh: Mesh) -> Any:
    """A rank's part of an argument that is divided."""
    sharding = getattr(leaf, "sharding", None)
    if not isinstance(leaf, ShapeDtypeStruct) or sharding is None:
        return leaf
    return ShardedArray(ShapeDtypeStruct(sharding.shard_shape(leaf.shape, "predict"), leaf.dtype), sharding)


class _Planned:
    """A world of which only one rank is there: its messages are neither sent nor received."""

    def __init__(self, mesh: Mesh, network: Network) -> None:
        self.rank, self.size, self.network = int(mesh.devices.reshape(-1)[0]), int(mesh.devices.max()) + 1, network
        self.lock = threading.RLock()
        self.lane: Any = None
        self.seconds = 0.0  # that others have had
        self._of_others: np.ndarray | None = None
        self._is_begun = False

    def share_caches(self, nbytes: int) -> None:
        """While this rank waits, others go through so many bytes of theirs, in the caches that were its own."""
        self._of_others = np.ones(min(nbytes, MAX_CACHED_BYTES), np.uint8)

    def begin(self, call: Call, sends: Mapping[int, Any], receives: Mapping[int, Any], phase: int = 0) -> _Planned:
        for into in receives.values():
            into[...] = 0
        self._is_begun = True
        return self

    def wait(self, sent: bool = True) -> None:
        """Nothing comes; but others have their turns, once for all that has begun."""
        if self._is_begun and self._of_others is not None:
            start = time.perf_counter()
            np.add(self._of_others, 1, out=self._of_others)
            self.seconds += time.perf_counter() - start
        self._is_begun = False

    def fail(self, error: BaseException, messages: Any = None) -> None:
        """Nobody else is there."""

    def close(self) -> None:
        """Nothing is under way."""


def _measured(compiled: Any, args: tuple[Any, ...], world: _Planned) -> float:
    """Seconds of a call without messages and without the turns of others, the least of some."""

    def array(x: Any) -> Any:
        return np.zeros(x.shape, x.dtype) if isinstance(x, ShapeDtypeStruct) else x

    given, best = tree.map(array, args), float("inf")
    for _ in range(REPEATS + 1):
        start, world.seconds = time.perf_counter(), 0.0
        for x in tree.leaves(compiled(*given)):
            x.block_until_ready()
        best = min(best, time.perf_counter() - start - world.seconds)
    return best


class _Clocks:
    """The clocks of a rank, in seconds. ``turns``: how many ranks share its core."""

    def __init__(self, network: Network, turns: float | None) -> None:
        self.network, self.limits, self.turns = network, limits(), turns
        self.now = self.wire = self.computed = self.busy = self.exposed = 0.0
        self.bytes = self.messages = 0
        self.scale = 1.0
        self.is_measured = False  # with what collectives compute
        self._ends: dict[int, float] = {}

    def run(self, plan: ExecutionPlan, measured: float | None) -> None:
        """Goes through a plan, whose computation takes ``measured`` seconds in all."""
        if measured is not None:
            whole = sum(self._seconds(s) for s in plan.steps)
            self.scale = measured / whole if whole else 1.0
        self.scale *= self.turns or 1.0
        self.is_measured = measured is not None
        for s in plan.steps:
            self._step(s)

    def _step(self, step: Step) -> None:
        if isinstance(step, CollectiveStep) and step.phase == DONE:
            self._wait(self._ends.pop(step.number))
        elif is_collective(step):
            end = self._exchange(step)
            if isinstance(step, CollectiveStep) and step.phase == START:
                self._ends[step.number] = end
            else:
                self._wait(end)
        else:
            self._compute(step)

    def _compute(self, step: Step) -> None:
        self._spend(self._seconds(step))
        if isinstance(step, ControlStep):
            times = _times(step)
            for s in (s for p in step.execution_plans for s in p.steps if is_collective(s)):
                if not (isinstance(s, CollectiveStep) and s.phase == DONE):
                    for _ in range(times):
                        self._wait(self._exchange(s))

    def _spend(self, seconds: float) -> None:
        if self.turns is not None:  # messages and computation take turns
            self._wait(self.wire)
        self.now += self.scale * seconds
        self.computed += self.scale * seconds

    def _seconds(self, step: Step) -> float:
        """Of computation, by the roofline; of loops by what the compiler reckons with."""
        if is_collective(step):
            return 0.0
        if not isinstance(step, Lowered):
            return step.cost * 1e-9
        done = work_of(step.kernel, {})
        return self.limits.seconds(done.nbytes, done.operations, done.itemsize)[0]

    def _exchange(self, step: Any) -> float:
        """When a collective that starts now has ended."""
        name, ranks = step.op.name, step.node.attrs[-3]
        sizes = [x.size * x.dtype.itemsize for x in step.node.inputs]
        pieces = len(reduced_together(list(zip([x.dtype for x in step.node.inputs], sizes, strict=True))))
        rounds, nbytes, messages = traffic(name, sum(sizes), ranks, pieces)
        latency = self.network.latency + (self.network.rendezvous if messages and nbytes / messages > ROOM_BYTES else 0.0)
        seconds = rounds * latency + nbytes / self.network.bandwidth + max(0, messages - rounds) * self.network.message
        is_sent_at_once = sum(sizes) <= SMALL_BYTES and is_one_exchange(name, sum(sizes), ranks, 0)
        if not self.is_measured:
            moved = combined_bytes(name, sum(sizes), ranks)
            self._spend(moved * self.limits.byte_of(moved) * 1e-9)
        if is_sent_at_once:  # its latency passes beside that of what is on the wire
            self.wire = max(self.now + seconds, self.wire + nbytes / self.network.bandwidth + messages * self.network.message)
        else:
            self.wire = max(self.wire, self.now) + seconds
        self.busy += seconds
        self.bytes += nbytes
        self.messages += messages
        return self.wire

    def _wait(self, end: float) -> None:
        self.exposed += max(0.0, end - self.now)
        self.now = max(self.now, end)

    def prediction(self, peak: int) -> Prediction:
        return Prediction(self.now, self.computed, self.busy, self.exposed, self.bytes, self.messages, peak)


def _times(step: ControlStep) -> int:
    """How often the body of a loop runs; once, where nobody knows."""
    length = step.node.attrs[3] if step.node.op.name == "scan" else 1
    return length if isinstance(length, int) else 1


def combined_bytes(name: str, nbytes: int, ranks: int) -> int:
    """Bytes that the busiest rank reads and writes to reduce arrays of ``nbytes`` on each rank."""
    if ranks == 1 or name not in (*_REDUCTIONS, "psum_scatter"):
        return 0
    part = nbytes if name in _REDUCTIONS and nbytes <= small_bytes(ranks) else nbytes // ranks
    return (ranks + 1) * part


def traffic(name: str, nbytes: int, ranks: int, pieces: int = 1) -> tuple[int, int, int]:
    """Of a collective over arrays of ``nbytes`` on each rank: messages one after the other, bytes that the busiest rank sends, and how many messages.
    A large reduction has ``pieces`` that are reduced one after the other.

    See :mod:`hologram.primitives.host.exchanges`.
    """
    others = ranks - 1
    if not others:
        return 0, 0, 0
    if name in _REDUCTIONS:
        if nbytes > small_bytes(ranks):
            return 2 * pieces, 2 * (nbytes - nbytes // ranks), 2 * others * pieces
        return (1, nbytes, 1) if ranks == 2 else (2, others * nbytes, others)
    if name in ("all_gather", "pbroadcast"):
        return 1, others * nbytes, others
    if name == "ppermute":
        return 1, nbytes, 1
    return 1, nbytes - nbytes // ranks, others  # psum_scatter, all_to_all
