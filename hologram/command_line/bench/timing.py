"""Times what is compared in turns, and holds it against the machine's limits."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

MIN_SECONDS = 2e-4  # seconds of one timing: a clock's question costs less than a thousandth of it
ROUNDS = 3  # at least
TIMINGS = 4  # in a turn: the first may find threads asleep
PAUSE = 0.03  # seconds

Times = dict[str, float]  # seconds of a call of each contender: "hologram", "numpy", "limit"


class Call(NamedTuple):
    """A callable and its arguments."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Measure:
    """What is compared. ``limit`` is a call that nothing is faster than, or the least seconds. ``work`` is that of a call. ``unit`` is of a rate
    (work in a second) or else of a time; it is ``scale`` of SI's."""

    name: str
    about: str
    unit: str
    scale: float
    hologram: Call
    numpy: Call | None = None
    limit: Call | float | None = None
    work: float = 1.0
    is_rate: bool = False

    def value(self, seconds: float) -> float:
        """What a call of so many seconds is, in ``unit``."""
        return (self.work / seconds if self.is_rate else seconds) / self.scale


@dataclass(frozen=True)
class Measured:
    """What came out, in ``unit``."""

    name: str
    about: str
    unit: str
    is_rate: bool
    hologram: float
    numpy: float | None
    limit: float | None
    share_of_limit: float | None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def measured(measures: Iterable[Callable[[], Measure]], seconds: float) -> list[Measured]:
    """Makes the measures, one after the other, and takes ``seconds`` for each."""
    return [_judged(measure, _times(measure, seconds)) for measure in (make() for make in measures)]


def _judged(measure: Measure, times: Times) -> Measured:
    floor = measure.limit if isinstance(measure.limit, float) else times.get("limit")
    share = None if floor is None else floor / times["hologram"]
    values = [None if t is None else measure.value(t) for t in (times.get("numpy"), floor)]
    return Measured(measure.name, measure.about, measure.unit, measure.is_rate, measure.value(times["hologram"]), values[0], values[1], share)


def _times(measure: Measure, seconds: float) -> Times:
    """Rounds in which each contender has its turn, for as long as ``seconds``; of each the fastest timing counts. A turn begins with a pause, so that
    threads of the one before that wait for more work without sleeping, as those of BLAS libraries do, go to sleep."""
    contenders = ("hologram", measure.hologram), ("numpy", measure.numpy), ("limit", measure.limit)
    calls = {name: c for name, c in contenders if isinstance(c, Call)}
    repeats = {name: _repeats(c) for name, c in calls.items()}
    best = dict.fromkeys(calls, float("inf"))
    end, rounds = time.perf_counter() + seconds, 0
    while rounds < ROUNDS or time.perf_counter() < end:
        for name, call in calls.items():
            time.sleep(PAUSE)
            best[name] = min(best[name], *[_time(call, repeats[name]) for _ in range(TIMINGS)])
        rounds += 1
    return best


def _repeats(call: Call) -> int:
    """Calls of one timing, after a first that compiles and allocates."""
    _time(call, 1)
    n = 1
    while _time(call, n) * n < MIN_SECONDS:
        n *= 2
    return n


def _time(call: Call, repeats: int) -> float:
    """Seconds of a call, of some in a row."""
    function, arguments, turns = call.function, call.arguments, range(repeats)
    start = time.perf_counter()
    for _ in turns:
        function(*arguments)
    return max(time.perf_counter() - start, 1e-12) / repeats
