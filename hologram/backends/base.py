"""What the executables of all backends have in common: the graph on its way to kernels, its text at each stage, and reports."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hologram.backends.native import storage
from hologram.graph.kernel.printer import print_kernel
from hologram.graph.memory.plan import Plan
from hologram.graph.pass_manager import Context
from hologram.graph.program import Schedule
from hologram.graph.report import Cost, Memory, Reduction, cost_of, memory_of, reduction_of
from hologram.graph.verify_graph import verify_extents
from hologram.ir.graph import Graph
from hologram.settings import settings
from hologram.support import debug
from hologram.support.cached_property import cached_property
from hologram.support.precision import guarantee


class Runnable(ABC):
    """What runs storages and can run arrays."""

    @abstractmethod
    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """Storages of the results for storages of the inputs."""

    def replays(self, inputs: Sequence[Any]) -> Any:
        """The captured calls with inputs like these storages (None for what is no Tensor), as :class:`replays.Replays`; None where no call is
        captured."""
        return None

    def run_numpy(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """As :meth:`run`, on NumPy arrays; the results are views, and there when it returns."""
        return [storage.view(o) for o in self.run([storage.copy_of(np.asarray(x)) for x in inputs])]


class BaseExecutable(Runnable):
    """A graph that is compiled for one device. ``canonical`` reduces a graph, as :func:`hologram.graph.pass_manager.canonicalise` does."""

    placement: str | None = None
    tile: Any  # of products: what Schedule takes
    where: str  # the device, in the words of errors

    def __init__(self, traced: Graph, precision: str, canonical: Callable[[Graph, str, Context], Graph]) -> None:
        self.traced, self.precision, self._canonical = traced, precision, canonical
        self.guarantee = guarantee(precision)
        self.hold = settings.hold_limit  # bytes of what is computed once from constants

    @property
    def canonical(self) -> Graph:
        return self._reduced[0]

    @cached_property
    def _reduced(self) -> tuple[Graph, Counter[str]]:
        """The canonical graph, and how often each rule fired on the way to it."""
        context = Context(self.guarantee)
        with debug.timed("canonical reduction"):
            graph = self._canonical(self.traced, self.guarantee, context)
        return graph, context.rules()

    @cached_property
    def schedule(self) -> Schedule:
        return Schedule(self.canonical, self.guarantee, self.tile, self.hold)

    def plan(self, values: Mapping[str, int]) -> Plan:
        """Addresses of the intermediates, for given values of the symbols."""
        if settings.verify:
            verify_extents(self.canonical.nodes(), values)
        return self.schedule.plan(values)

    # --- seeing inside -------------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def _texts(self) -> Mapping[str, Callable[[], str]]:
        """The backend's own stages, which follow the common ones."""

    @property
    def _all_texts(self) -> Mapping[str, Callable[[], str]]:
        common = {
            "trace": lambda: str(self.traced),
            "canonical": lambda: str(self.canonical),
            "kernels": lambda: "\n".join(print_kernel(k.kernel) for k in self.schedule.kernels),
        }
        return common | dict(self._texts)

    @property
    def stages(self) -> tuple[str, ...]:
        """What :meth:`as_text` takes."""
        return tuple(self._all_texts)

    @property
    def ahead(self) -> str | None:
        """The graph of what depends on constants alone and is computed once."""
        found = self.schedule.ahead
        return None if found is None else str(found.graph)

    def as_text(self, stage: str = "kernels") -> str:
        """The program at ``stage``, one of :attr:`stages`. Raises ValueError for another."""
        text = self._all_texts.get(stage)
        if text is None:
            raise ValueError(f"no stage {stage!r}; {self.where} has {', '.join(self.stages)}")
        return text()

    def _tell(self, device: Callable[[], object], source: str, text: Callable[[], object]) -> None:
        """Goes up the ladder of :mod:`hologram.support.debug`; ``source`` is the language of ``text``."""
        debug.tell(debug.DEVICES, "device", device)
        debug.tell(debug.KERNELS, "kernels", lambda: self.as_text("kernels"))
        debug.tell(debug.SOURCE, source, text)
        debug.tell(debug.GRAPHS, "traced graph", lambda: self.traced)
        debug.tell(debug.GRAPHS, "canonical graph", lambda: self.canonical)

    def reduction(self) -> Reduction:
        return reduction_of(self.traced, self.canonical, self.schedule, self._reduced[1])

    def memory_analysis(self) -> Memory:
        return memory_of(self.schedule)

    def cost_analysis(self) -> Cost:
        return cost_of(self.schedule)
