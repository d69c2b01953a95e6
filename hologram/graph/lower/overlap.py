"""Overlap of collectives with computation, and buckets of small sums.

A collective starts behind the last step that writes one of its operands, and is waited for before the first step that reads one of its results. Where
what lies between takes next to no time it is one step, which starts and waits; but small ones that need not wait for each other all start before the
first is waited for, so their latencies pass together. For more to lie between, steps that need fewer collectives, one behind
the other, come before those that need more.

The arrays of sums (and of maxima, of minima) over the same ranks are collected in buckets, each one call, in the order in which they come to be
there: a bucket is closed once its bytes take a few times as long as a message's latency (the alpha-beta model of the world), unless the next array is
there at once. Elements are added in the order of ranks whatever is beside them, so buckets change no bit.

The order of collectives is the plan's, the same on all ranks.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hologram.graph.collective_depth import is_exchange
from hologram.graph.lower.collective_step import DONE, START, WHOLE, CollectiveStep
from hologram.graph.lower.host_step import HostStep
from hologram.graph.lower.lowered import Lowered
from hologram.graph.lower.steps import LoweredGraph, Step
from hologram.ir.node import Node
from hologram.primitives.host import collectives
from hologram.primitives.host.collective_calls import SMALL_BYTES
from hologram.primitives.host.exchanges import is_one_exchange
from hologram.support.world import Network

MIN_OVERLAP_NS = 100_000.0  # of computation that pays for another thread
BUCKET_LATENCIES = 4.0  # that the bytes of a full bucket take
UNKNOWN_NS = 100_000.0  # what a kernel whose extent is a symbol is taken to cost
_MERGED = (collectives.psum, collectives.pmax, collectives.pmin)


@dataclass
class _Bucket:
    """Operands and results of one call. It is ready behind step ``ready`` and needed before step ``needed``."""

    node: Node
    operands: list[Node]
    results: list[Node]
    ready: int
    needed: int

    @property
    def nbytes(self) -> float:
        sizes = [x.size for x in self.operands]
        return float(sum(n * x.dtype.itemsize for n, x in zip(sizes, self.operands, strict=True) if isinstance(n, int)))

    @property
    def is_sent_at_once(self) -> bool:
        """Whether ranks send all of it when it begins, and it is little: its messages then need no thread of their own."""
        is_static = all(isinstance(x.size, int) for x in self.operands)
        return is_static and self.nbytes <= SMALL_BYTES and is_one_exchange(self.node.op.name, int(self.nbytes), self.node.attrs[-3], 0)

    @property
    def key(self) -> Any:
        """What calls have in common that may be one. The user's line is not part of it."""
        return self.node.op, self.node.attrs[:-1]

    def steps(self, number: int, is_split: bool) -> tuple[CollectiveStep, ...]:
        node = self.node
        if list(node.inputs) != self.operands:
            node = Node(node.op, tuple(self.operands), node.attrs, self.operands[0].shape, self.operands[0].dtype)
        return tuple(CollectiveStep(node, self.results, phase, number) for phase in ((START, DONE) if is_split else (WHOLE,)))


def is_collective(step: Step) -> bool:
    """Whether a step exchanges data between ranks."""
    return isinstance(step, HostStep) and is_exchange(step.node)


def overlap_collectives(lowered: LoweredGraph, network: Network) -> LoweredGraph:
    """The same steps, collectives in buckets, those with something to compute beside them in two steps."""
    if not any(map(is_collective, lowered.steps)):
        return lowered
    steps = _by_depth(lowered.steps)
    elapsed = [0.0, *itertools.accumulate(map(_cost, steps))]
    buckets = _merged(_buckets(steps), elapsed, network)
    together = _sent_together(buckets)
    before: list[list[Step]] = [[] for _ in range(len(steps) + 1)]  # of each step: waits, and what is whole
    behind: list[list[Step]] = [[] for _ in range(len(steps) + 1)]  # then starts
    for number, bucket in enumerate(sorted(buckets, key=lambda b: b.ready)):
        beside = elapsed[bucket.needed] - elapsed[bucket.ready + 1]
        *starts, last = bucket.steps(number, beside >= MIN_OVERLAP_NS or id(bucket) in together)
        behind[bucket.ready + 1] += starts
        before[bucket.needed].append(last)
    out: list[Step] = []
    for k in range(len(steps) + 1):
        out += [*before[k], *behind[k]]
        if k < len(steps) and not is_collective(steps[k]):
            out.append(steps[k])
    return LoweredGraph(lowered.fused, out)


def _sent_together(buckets: Sequence[_Bucket]) -> set[int]:
    """Of the buckets that are sent at once, those that can be on the wire beside another of them: both begin before one is waited for."""
    found: set[int] = set()
    last: _Bucket | None = None  # that is needed last
    for b in sorted([b for b in buckets if b.is_sent_at_once], key=lambda b: b.ready):
        if last is not None and b.ready + 1 < last.needed:
            found |= {id(last), id(b)}
        if last is None or b.needed > last.needed:
            last = b
    return found


def _by_depth(steps: Sequence[Step]) -> list[Step]:
    """The steps, those first for which the fewest collectives, each needing the one before, must have ended; else in their order."""
    depth: dict[Node, int] = {}
    found: list[int] = []
    for s in steps:
        found.append(max((depth.get(x, 0) for x in s.reads()), default=0))
        for x in s.writes():
            depth[x] = max(found[-1] + is_collective(s), depth.get(x, 0))
    return [steps[i] for i in sorted(range(len(steps)), key=found.__getitem__)]


def _cost(step: Step) -> float:
    """Rough nanoseconds of computation."""
    if is_collective(step):
        return 0.0
    if not isinstance(step, Lowered):
        return step.cost
    iterations = step.kernel.iterations
    return iterations * step.kernel.cost if isinstance(iterations, int) else UNKNOWN_NS


def _buckets(steps: Sequence[Step]) -> Iterator[_Bucket]:
    """Each collective, of sums each array, with where it is ready and where it is needed. What one collective gives another is there where it is
    needed first."""
    written: dict[Node, int] = {}
    read: dict[Node, list[int]] = {}
    for k, s in enumerate(steps):
        for n in s.reads():
            read.setdefault(n, []).append(k)
    for k, s in enumerate(steps):
        if not is_collective(s):
            written.update(dict.fromkeys(s.writes(), k))
            continue
        assert isinstance(s, HostStep)
        pairs = [([x], [r]) for x, r in zip(s.node.inputs, s.results, strict=True)] if s.op in _MERGED else [(list(s.node.inputs), s.results)]
        for operands, results in pairs:
            ready = max(written.get(x, -1) for x in operands)
            needed = min((j for r in results for j in read.get(r, ()) if j > k), default=len(steps))
            written.update(dict.fromkeys(results, needed - 1))
            yield _Bucket(s.node, operands, list(results), ready, needed)


def _merged(buckets: Iterator[_Bucket], elapsed: Sequence[float], network: Network) -> list[_Bucket]:
    full = BUCKET_LATENCIES * (network.latency + network.rendezvous) * network.bandwidth
    found: list[_Bucket] = []
    last: dict[Any, _Bucket] = {}
    for b in sorted(buckets, key=lambda b: b.ready):
        if b.node.op not in _MERGED or not all(isinstance(x.size, int) for x in b.operands):
            found.append(b)
            continue
        a = last.get(b.key)
        delay = math.inf if a is None else 1e-9 * (elapsed[b.ready + 1] - elapsed[a.ready + 1])
        if a is not None and min(a.needed, b.needed) - b.ready > 1 and (a.nbytes < full or delay < network.latency):
            a.operands += b.operands
            a.results += b.results
            a.ready, a.needed = b.ready, min(a.needed, b.needed)
        else:
            last[b.key] = b
            found.append(b)
    return found
