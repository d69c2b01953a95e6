"""The pass manager: what a pass is, and how a list of passes runs. The passes themselves are listed in :mod:`hologram.graph.pipeline`.

A :class:`Pass` has a name, by which ``HOLOGRAM_DISABLE_PASSES`` leaves it out unless it is required. At ``HOLOGRAM_DEBUG=6`` each pass prints its
result if it changed something, with the rewrite rules that fired. ``HOLOGRAM_VERIFY`` checks the result with the pass's own verifier.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from hologram.errors import PassLimitError, RewriteError
from hologram.graph.canonical.integer_ranges import Ranges
from hologram.graph.rewrite.rewriter import Watch
from hologram.graph.schedule.tiles import TileConfig
from hologram.graph.size_conditions import SizeConditions
from hologram.ir.graph import Carries
from hologram.settings import settings
from hologram.support.debug import PASSES, noted, watchers

MAX_ROUNDS = 64  # of a Repeat; every round needs a movement that the one before set free

Observer = Callable[["Pass", Any], None]


@dataclass(slots=True)
class Context:
    """What passes share.

    ``precision`` is the guarantee that rewrites keep; ``tile`` says how the target tiles products, None for none; up to ``hold`` bytes of folded
    constants are kept. ``constants`` are the inputs of the graph that have the same value each time it runs, ``ranges`` those in which its inputs
    are, if that is known, ``carries`` those of the body of a loop. The passes fill ``fired`` (how often each rewrite rule fired, by pass) and
    ``seconds`` (time, by pass).
    """

    precision: str
    tile: TileConfig | None = None
    hold: int = 0
    constants: Sequence[int] = ()
    ranges: Ranges | None = None
    carries: Carries = ()
    observer: Observer | None = None  # is shown what each pass gives
    watch: Watch | None = None  # is shown each firing of a rewrite rule, those in bodies too
    fired: dict[str, Counter[str]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    count: Counter[str] = field(default_factory=Counter)  # of the pass that runs
    conditions: SizeConditions = field(default_factory=SizeConditions)  # of sizes at which static programs sum in the same order

    def nested(self, constants: Sequence[int] = (), ranges: Ranges | None = None, carries: Carries = ()) -> Context:
        """The context of a graph inside of the graph: it counts for itself."""
        return Context(self.precision, self.tile, constants=constants, ranges=ranges, carries=carries, watch=self.watch)

    @property
    def exact(self) -> bool:
        """Whether sums keep the canonical reduction order."""
        return self.precision == "exact"

    def rules(self) -> Counter[str]:
        """How often each rule fired, in all passes together."""
        return sum(self.fired.values(), Counter())


def _always(context: Context) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Pass:
    """``run(value, context)`` gives the new value, or the old object itself where nothing changed.

    ``verify(value, when)`` raises CompileError for a malformed result. A ``required`` pass also runs where it is disabled. ``when`` says for which
    targets and precisions the pass runs at all, ``kind`` of which ops there must be some in a graph.
    """

    name: str
    run: Callable[[Any, Context], Any]
    verify: Callable[[Any, str], None] | None = None
    required: bool = False
    when: Callable[[Context], bool] = _always
    kind: str | None = None


@dataclass(frozen=True, slots=True)
class Repeat:
    """Passes that run again as long as the first of them changes something."""

    passes: tuple[Pass, ...]


def run_passes(value: Any, passes: Sequence[Pass | Repeat], context: Context) -> Any:
    """``value`` after all passes that are not disabled. Raises :class:`CompileError` where a pass leaves something malformed."""
    for p in passes:
        value = _repeat(value, p, context) if isinstance(p, Repeat) else _run(value, p, context)
    return value


def _repeat(value: Any, p: Repeat, context: Context) -> Any:
    """``value`` when nothing changes any more, or after :data:`MAX_ROUNDS`, each of which gives what is right. Where passes are verified, those that
    undo one another are refused: the second half of the rounds shows them, which most programs do not come to."""
    seen = set[str]()
    for n in range(MAX_ROUNDS):
        moved = _run(value, p.passes[0], context)
        if moved is value:
            break
        value = run_passes(moved, p.passes[1:], context)
        if settings.verify and n >= MAX_ROUNDS // 2:
            text = str(value)
            if text in seen:
                raise PassLimitError(f"the passes {' and '.join(q.name for q in p.passes)} undo one another, and never end:\n{text}")
            seen.add(text)
    return value


def _run(value: Any, p: Pass, context: Context) -> Any:
    if (p.kind is not None and p.kind not in value.kinds()) or not p.when(context) or (p.name in settings.disabled_passes and not p.required):
        return value
    fired = context.count = Counter() if context.count else context.count
    start = time.perf_counter_ns()
    try:
        out = p.run(value, context)
    except RewriteError as e:
        raise RewriteError(f"in the pass {p.name}, {e}") from e
    context.seconds[p.name] = context.seconds.get(p.name, 0.0) + (time.perf_counter_ns() - start) * 1e-9
    if watchers:
        noted(f"pass {p.name}", start)
    if fired:
        context.fired.setdefault(p.name, Counter()).update(fired)
    if out is not value:
        _changed(p, out, fired)
    if context.observer is not None:
        context.observer(p, out)
    return out


def _changed(p: Pass, out: Any, fired: Counter[str]) -> None:
    """Prints and verifies what a pass made, as the settings ask."""
    if settings.debug >= PASSES:
        counts = ", ".join(f"{name} {n}" for name, n in fired.most_common())
        print(f"--- {p.name}{': ' if counts else ''}{counts}\n{out}", file=sys.stderr)
    if settings.verify and p.verify is not None:
        p.verify(out, f"after the pass {p.name}")
