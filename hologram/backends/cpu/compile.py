"""A schedule as native code: its text, its modules, and the object code, from the disk cache where it is there."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from hologram.backends import object_cache as cache
from hologram.backends.llvm.graph import lapack
from hologram.backends.llvm.graph.module import ModuleWriter
from hologram.backends.llvm.graph.writer import routines_of
from hologram.backends.llvm.toolchain import target
from hologram.backends.native import calls
from hologram.backends.native.code.records import PARALLEL, TEAM
from hologram.backends.native.module import MAX_ALLOCATION_BYTES
from hologram.backends.native.processors import usable_processors
from hologram.errors import CompileError
from hologram.graph.lower.control_step import ControlStep
from hologram.graph.program import Schedule
from hologram.support import debug

LONG_NS = 50_000.0  # a call that is expected to take longer gives up the GIL
# From which on a call is an OpenMP region where another library's threads are OpenMP's, unless it calls routines that have threads themselves:
# workers of our own would mostly sleep when such a call comes.
TEAM_NS = 15_000.0


_FACTS = {"outputs": [(str, int)], "computed": [(str, [int])], "arena": int, "long": bool, "routines": [str], "parallel": int, "objects": [int]}


class Scheduled:
    """The code of ``schedule`` for ``machine``, ``checked`` or not, as text."""

    def __init__(self, schedule: Schedule, precision: str, machine: target.Target, checked: bool = False) -> None:
        self.schedule, self.target = schedule, machine
        self._writer = ModuleWriter(precision, machine, checked).render(schedule, schedule.plan({}) if schedule.static else None)
        self.llvm = self._writer.whole()
        # LLVM's passes
        self.pipeline = "loops" if any(isinstance(s, ControlStep) for s in schedule.steps) else "kernel"

    @property
    def modules(self) -> list[str]:
        """The modules that are compiled side by side. Kernels that loops call are a part of the graph's module."""
        return self._writer.modules(usable_processors()) if self.pipeline == "kernel" else [self.llvm]

    @property
    def facts(self) -> dict[str, Any]:
        """What a call of any schedule must know."""
        s, routines = self.schedule, routines_of(self.llvm)
        return {
            "outputs": [(o.kind, o.index) for o in s.outputs],
            "computed": [(n.dtype.name, list(s.result_shape(n))) for n in s.computed] if s.static else [],
            "arena": s.plan({}).arena_bytes if s.static else 0,
            "long": s.cost > LONG_NS,
            "routines": routines,
            "parallel": (PARALLEL | TEAM * (s.cost > TEAM_NS and not routines)) * ("@hg_parallel_for(ptr %ctx" in self.llvm),
        }


Known = dict[str, Any]


def load(
    key: str | None, make: Callable[[], Scheduled], meta: Callable[[Schedule], Known], describes: Callable[[Known], bool]
) -> tuple[target.Code, Known]:
    """The linked code of what ``make`` gives, and what a call must know of it: its facts and what ``meta`` tells.

    Both come from the disk cache where it has ``key``, and ``describes`` says that what it has can be the caller's; without a key it is not asked.
    """
    found = None if key is None else _stored(key, describes)
    if found is not None:
        return found
    with debug.timed("lowering"):
        made = make()
        modules, known = made.modules, made.facts | meta(made.schedule)
    with debug.timed("code generation"):
        objects = target.compile_modules(modules, made.target, made.pipeline)
    if key is not None:
        cache.store(key, b"".join(objects), known | {"objects": [len(o) for o in objects]})
    return _linked(objects, known), known


def _stored(key: str, describes: Callable[[Known], bool]) -> tuple[target.Code, Known] | None:
    """What the disk cache has, if it can be used."""
    found = cache.load_entry(key, lambda code, known: cache.fits(known, _FACTS) and _consistent(code, known) and describes(known))
    if found is None:
        return None
    code, known = found
    ends = itertools.accumulate(known["objects"])
    try:
        return _linked([code[end - n : end] for n, end in zip(known["objects"], ends, strict=True)], known), known
    except (CompileError, KeyError) as e:
        cache.refuse(key, f"its code cannot be linked ({e})")
        return None


def _consistent(code: bytes, known: Known) -> bool:
    flags, sizes = known["parallel"], known["objects"]
    return 0 <= flags <= PARALLEL | TEAM and 0 <= known["arena"] <= MAX_ALLOCATION_BYTES and min(sizes, default=0) > 0 and sum(sizes) == len(code)


def _linked(objects: list[bytes], known: Known) -> target.Code:
    return target.link(objects, calls.symbols() | lapack.addresses(known["routines"]))
