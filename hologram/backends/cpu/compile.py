"""A plan as native code: its text, its modules, and the object code, from the disk cache where it is there."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from hologram.backends import object_cache as cache
from hologram.backends.llvm.fft.plan import PREFIX
from hologram.backends.llvm.graph import lapack
from hologram.backends.llvm.graph.counters import COUNTERS, steps_of
from hologram.backends.llvm.graph.module import ModuleWriter
from hologram.backends.llvm.graph.writer import routines_of
from hologram.backends.llvm.toolchain import target
from hologram.backends.native import calls, fourier
from hologram.backends.native.code.counters import MAX_STEPS
from hologram.backends.native.code.records import PARALLEL, TEAM
from hologram.backends.native.processors import usable_processors
from hologram.errors import CompileError
from hologram.graph.execution_plan import ExecutionPlan
from hologram.graph.lower.control_step import ControlStep
from hologram.ir.aval import MAX_BYTES
from hologram.ir.symbolic_json import encode
from hologram.support import debug
from hologram.support.cached_property import cached_property

LONG_NS = 50_000.0  # a call that is expected to take longer gives up the GIL
# From which on a call is an OpenMP region where another library's threads are OpenMP's, unless it calls routines that have threads themselves:
# workers of our own would mostly sleep when such a call comes.
TEAM_NS = 15_000.0


_FACTS = {
    "outputs": [(str, int)],
    "computed": [(str, list)],
    "arena": int,
    "long": bool,
    "brief": bool,
    "routines": [str],
    "parallel": int,
    "objects": [int],
}


class CompiledModule:
    """The code of ``plan`` for ``machine``, ``checked`` or not, as text."""

    def __init__(self, plan: ExecutionPlan, precision: str, machine: target.Target, checked: bool = False, profiled: bool = False) -> None:
        self.execution_plan, self.target, self.profiled = plan, machine, profiled
        self._writer = ModuleWriter(precision, machine, checked, profiled).render(plan, plan.allocate({}) if plan.static else None)
        self.llvm = self._writer.whole()
        # LLVM's passes
        self.pipeline = "loops" if any(isinstance(s, ControlStep) for s in plan.steps) else "kernel"

    @property
    def modules(self) -> list[str]:
        """The modules that are compiled in parallel: that of the graph, and those of kernels."""
        return self._writer.modules(usable_processors)

    @property
    def functions(self) -> dict[str, list[str]]:
        """The names of the functions of each kernel, by the kernel's text."""
        found: dict[str, list[str]] = {}
        for (text, *_), name in self._writer.names.items():
            found.setdefault(text, []).append(name)
        return found

    @property
    def facts(self) -> dict[str, Any]:
        """What a call of any plan must know."""
        s, routines = self.execution_plan, routines_of(self.llvm)
        has_bars = "call ptr @hg_bar_begin(" in self.llvm  # whoever draws them needs the GIL, and may end the call
        counted = {"steps": steps_of(s)} if self.profiled else {}
        return counted | {
            "outputs": [(o.kind, o.index) for o in s.outputs],
            "computed": [(n.dtype.name, list(map(encode, s.result_shape(n)))) for n in s.computed],
            "arena": s.allocate({}).arena_bytes if s.static else 0,
            "long": is_long(s.cost) or has_bars,
            "brief": not is_long(s.donated_cost) and not has_bars,
            "routines": routines,
            "parallel": (PARALLEL | TEAM * (s.cost > TEAM_NS and all(r.startswith(PREFIX) for r in routines)))
            * ("@hg_parallel_for(ptr %ctx" in self.llvm),
        }


def is_long(cost: float) -> bool:
    """Whether a call of so many nanoseconds gives up the GIL."""
    return cost > LONG_NS


Known = dict[str, Any]


class ObjectCode(NamedTuple):
    """Objects of machine code, what a call must know of them, and whether they are from the disk cache."""

    objects: list[bytes]
    known: Known
    stored: bool


@dataclass(eq=False)
class Source:
    """What the code of one plan is generated from. ``key`` is that of the disk cache, None where it is not asked. ``plan()`` is asked for only where
    the cache has no code; ``meta(plan)`` tells what a call must know besides the facts of any plan, and ``describes(known)`` whether what the cache
    has can be the caller's. ``profiled`` code counts what it does; ``name`` is what was traced."""

    key: str | None
    plan: Callable[[], ExecutionPlan]
    precision: str
    machine: target.Target
    checked: bool
    profiled: bool
    name: str
    meta: Callable[[ExecutionPlan], Known]
    describes: Callable[[Known], bool]

    @cached_property
    def module(self) -> CompiledModule:
        """The module's text."""
        return CompiledModule(self.plan(), self.precision, self.machine, self.checked, self.profiled)

    def generate(self) -> ObjectCode:
        """Object code from the disk cache, else generated and stored there."""
        found = None if self.key is None else cache.load_entry(self.key, self._fits)
        if found is None:
            return self._generated()
        code, known = found
        ends = itertools.accumulate(known["objects"])
        return ObjectCode([code[end - n : end] for n, end in zip(known["objects"], ends, strict=True)], known, stored=True)

    def _generated(self) -> ObjectCode:
        self.plan()  # tells its own times
        with debug.timed("lowering"):
            made = self.module
            modules, known = made.modules, made.facts | self.meta(made.execution_plan)
        with debug.timed("code generation"):
            objects = target.compile_modules(modules, made.target, [made.pipeline, *["kernel"] * (len(modules) - 1)])
        if self.key is not None:
            cache.store(self.key, b"".join(objects), known | {"objects": [len(o) for o in objects]}, kind="program")
        return ObjectCode(objects, known, stored=False)

    def link(self, code: ObjectCode) -> tuple[target.Code, Known]:
        """Linked code, and what a call must know of it. Stored code that cannot be linked is generated again."""
        try:
            with debug.timed("linking"):
                return self._linked(code), code.known
        except (CompileError, KeyError) as e:
            if not code.stored:
                raise
            assert self.key is not None
            cache.refuse(self.key, f"its code cannot be linked ({e})")
        return self.link(self._generated())

    def _linked(self, code: ObjectCode) -> target.Code:
        names = code.known["routines"]
        plans = fourier.plans(n for n in names if n.startswith(PREFIX))
        symbols = calls.symbols() | lapack.addresses(n for n in names if n not in plans) | {n: p.address for n, p in plans.items()}
        if not self.profiled:
            return target.link(code.objects, symbols, kept=plans)
        from hologram.backends.native import counters  # loads native code that profiled programs alone need

        counted = counters.new_program(code.known["steps"], self.plan, self.name)
        return target.link(code.objects, symbols | counters.symbols() | {COUNTERS: counted.address}, kept=(plans, counted))

    def _fits(self, code: bytes, known: Known) -> bool:
        facts = _FACTS | {"steps": int} if self.profiled else _FACTS
        return cache.fits(known, facts) and _consistent(code, known) and self.describes(known)


def _consistent(code: bytes, known: Known) -> bool:
    flags, sizes = known["parallel"], known["objects"]
    if not 0 < known.get("steps", 1) <= MAX_STEPS:
        return False
    return 0 <= flags <= PARALLEL | TEAM and 0 <= known["arena"] <= MAX_BYTES and min(sizes, default=0) > 0 and sum(sizes) == len(code)
