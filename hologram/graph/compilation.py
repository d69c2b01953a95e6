"""One graph on its way through the pipeline, as far as somebody asked: a program whose code is in the disk cache is never scheduled at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from hologram.graph.execution_plan import ExecutionPlan
from hologram.graph.kernel.printer import print_kernel
from hologram.graph.memory.arena import ArenaAllocation
from hologram.graph.pass_manager import Context, Pass, run_passes
from hologram.graph.pipeline import PIPELINE, canonicalise, check_disabled, compile_to_plan, passes
from hologram.graph.report import Cost, Memory, Reduction, cost_of, memory_of, reduction_of
from hologram.graph.schedule.tiles import TileConfig
from hologram.graph.verify_graph import verify_extents
from hologram.ir.graph import Graph
from hologram.settings import settings
from hologram.support import debug
from hologram.support.cached_property import cached_property
from hologram.support.precision import guarantee

Texts = Mapping[str, Callable[[], str]]


class Compilation:
    """``traced`` for a target that tiles products as ``tile`` says (None: it does not). ``precision`` is what the user asked for, ``guarantee`` what
    rewrites keep; ``placement`` says why it runs where it does, if Hologram chose. ``tiled``: products of devices have tiles, or are refused."""

    def __init__(self, traced: Graph, precision: str, tile: TileConfig | None, placement: str | None = None, tiled: bool = False) -> None:
        self.traced, self.precision, self.tile, self.placement, self.tiled = traced, precision, tile, placement, tiled
        self.guarantee = guarantee(precision)
        if settings.disabled_passes:
            check_disabled()
        self.hold = settings.hold_limit

    def context(self) -> Context:
        return Context(self.guarantee, self.tile, self.hold)

    @property
    def is_planned(self) -> bool:
        """Whether the plan is there already, so that what it says costs nothing."""
        return {"_reduced", "execution_plan"} <= self.__dict__.keys()

    @property
    def canonical(self) -> Graph:
        return self._reduced[0]

    @cached_property
    def _reduced(self) -> tuple[Graph, Counter[str]]:
        """The canonical graph, and how often each rule fired on the way to it."""
        context = self.context()
        with debug.timed("canonical reduction"):
            graph = canonicalise(self.traced, self.guarantee, context)
        _tell_times(context)
        return graph, context.rules()

    @cached_property
    def execution_plan(self) -> ExecutionPlan:
        context, canonical = self.context(), self.canonical
        with debug.timed("scheduling"):
            plan = compile_to_plan(canonical, context=context)
        _tell_times(context)
        return plan

    def allocate(self, values: Mapping[str, int]) -> ArenaAllocation:
        """Addresses of the intermediates, for given values of the symbols."""
        self.verify_sizes(values)
        return self.execution_plan.allocate(values)

    def verify_sizes(self, values: Mapping[str, int]) -> None:
        """With ``settings.verify`` raises CompileError for values of the symbols at which an extent is negative."""
        if settings.verify:
            verify_extents(self.canonical.nodes(), values)

    # --- seeing inside -------------------------------------------------------------------------------------------------

    def texts(self, generated: Texts) -> Texts:
        """How to print each stage; ``generated`` are those of a backend, which follow."""
        common: dict[str, Callable[[], str]] = {
            "trace": lambda: str(self.traced),
            "canonical": lambda: str(self.canonical),
            "legalized": lambda: self._after("legalized"),
            "folded": lambda: self._after("folded"),
            "groups": lambda: self._after("groups"),
            "kernels": lambda: "\n".join(print_kernel(k.kernel) for k in self.execution_plan.kernels),
            "plan": lambda: str(self.execution_plan),
        }
        return common | dict(generated)

    def as_text(self, stage: str, generated: Texts, where: str) -> str:
        """The program at ``stage``: trace, a stage of the pipeline, one of ``generated``; or after the pass of that name, where it last ran.

        Raises ValueError for another, in which ``where`` names the device.
        """
        texts = self.texts(generated)
        if stage in texts:
            return texts[stage]()
        names = list(dict.fromkeys(p.name for p in passes()))
        if stage not in names:
            raise ValueError(f"no stage {stage!r}; {where} has {', '.join(texts)}, and the passes {', '.join(names)}")
        return self._after_pass(stage)

    def _after(self, stage: str) -> str:
        """The value after a stage of the pipeline, which runs again for it."""
        value: Any = self.canonical
        context = self.context()
        for name, these in PIPELINE[1:]:
            value = run_passes(value, these, context)
            if name == stage:
                break
        return str(value)

    def _after_pass(self, name: str) -> str:
        """The value after a pass, which runs again for it."""
        found = [f"the pass {name} does not run for this target, precision and settings"]
        context = self.context()

        def note(p: Pass, value: Any) -> None:
            if p.name == name:
                found[0] = str(value)

        context.observer = note
        compile_to_plan(canonicalise(self.traced, self.guarantee, context), context=context)
        return found[0]

    @property
    def initializer(self) -> str | None:
        """The graph of what depends on constants alone and is computed once."""
        found = self.execution_plan.initializer
        return None if found is None else str(found.graph)

    def reduction(self) -> Reduction:
        return reduction_of(self.traced, self.canonical, self.execution_plan, self._reduced[1])

    def memory_analysis(self) -> Memory:
        return memory_of(self.execution_plan)

    def cost_analysis(self) -> Cost:
        return cost_of(self.execution_plan)


def _tell_times(context: Context) -> None:
    """Prints the time of each pass, those of bodies within the pass that runs them."""
    for name, seconds in context.seconds.items():
        debug.tell_time(f"pass {name}", seconds)
