"""What a profile tells: records of programs, kernels, phases and events, and the same as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from hologram.backends.limits import Limits

VERSION = 1  # of the form of :meth:`Measured.as_dict`


@dataclass
class Kernel:
    """One step of a program, and what its calls took, all together.

    ``seconds`` pass on the calling thread from begin to end, of which it waits ``wait_seconds`` for other threads; ``threads`` has the seconds that
    each thread works. They are None where a step is so small a part of a loop that it is not timed by itself; its calls are then not counted either.
    ``iterations``: of a loop its steps, of a kernel those of its parallel loop that threads shared. ``bytes`` and ``flops`` are those of one call.
    ``parent`` is the number of the loop or branch around it in the list of kernels, ``itemsize`` of the widest floats in it, in bytes.
    """

    name: str
    kind: str  # kernel, copy, loop, branch, host, transfer
    program: int
    step: int
    calls: int
    seconds: float | None
    longest_seconds: float | None
    wait_seconds: float
    threads: dict[str, float]
    iterations: int
    chunks: int
    bytes: int | None
    flops: int | None
    lines: list[tuple[str, int]]
    tile: dict[str, Any]
    parent: int | None
    itemsize: int = 4

    @property
    def balance(self) -> float | None:
        """How evenly threads work: their mean time by the longest, 1 for equal times; None for work of one thread."""
        times = list(self.threads.values())
        return sum(times) / len(times) / max(times) if len(times) > 1 and max(times) > 0 else None

    def rate(self, amount: int | None) -> float | None:
        """An amount of one call, by second."""
        return amount * self.calls / self.seconds if amount is not None and self.seconds else None


@dataclass
class Program:
    """A compiled program: ``seconds`` of its ``calls``, begin to end; ``device`` is where it ran. "copies" stands for the copies to and
    from it, and has no calls."""

    name: str
    device: str
    calls: int
    seconds: float


@dataclass
class Phase:
    """A part of a compilation; ``start`` counts from the profile's begin. Phases contain others: passes are parts of the reduction and scheduling."""

    name: str
    start: float
    seconds: float
    thread: str


@dataclass
class Event:
    """A span on the time line: a ``call`` of a program, a ``launch`` of one of its kernels, or a ``chunk``, what one thread ran of it."""

    name: str
    kind: str
    start: float
    seconds: float
    thread: str
    program: int
    kernel: int | None


@dataclass
class Machine:
    """What roofs are made of: the limits of the CPU; None if they are not measured."""

    limits: Limits | None
    threads: int

    def as_dict(self) -> dict[str, Any]:
        """Bytes a second from memory and from the fastest cache, operations on float32 a second, threads."""
        names = {"bytes_per_second": "byte", "cached_bytes_per_second": "cached_byte", "flops_per_second": "operation"}
        rates = {name: None if self.limits is None else 1e9 / getattr(self.limits, of) for name, of in names.items()}
        return rates | {"threads": self.threads}


@dataclass
class Measured:
    """All that a profile knows. ``memory`` has bytes of arrays: live before and after, the peak, cached. ``lost_events`` are too old to be kept."""

    seconds: float
    machine: Machine
    programs: list[Program] = field(default_factory=list)
    kernels: list[Kernel] = field(default_factory=list)
    phases: list[Phase] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    lost_events: int = 0
    memory: Mapping[str, int] = field(default_factory=dict)

    def share_of_roofline(self, k: Kernel) -> float | None:
        """The least time that a kernel's bytes and operations take (:mod:`hologram.backends.limits` defines it), by what they took; None where either
        is not known."""
        limits = self.machine.limits
        if k.kind not in ("kernel", "copy") or not k.seconds or limits is None or self.programs[k.program].device != "cpu":
            return None
        if k.bytes is None and k.flops is None:
            return None
        return limits.seconds(k.bytes or 0, k.flops or 0, k.itemsize)[0] * k.calls / k.seconds

    def as_dict(self) -> dict[str, Any]:
        """Plain data, which JSON can hold."""
        found = asdict(self) | {"machine": self.machine.as_dict()}
        for k, data in zip(self.kernels, found["kernels"], strict=True):
            data["lines"] = [list(line) for line in k.lines]
            data["balance"], data["roofline"] = k.balance, self.share_of_roofline(k)
            data["bytes_per_second"], data["flops_per_second"] = k.rate(k.bytes), k.rate(k.flops)
        return {"version": VERSION, **found}
