"""What the executables of all backends have in common: arguments as arrays, the text of each stage, and reports."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hologram.backends.native import storage
from hologram.graph.compilation import Compilation
from hologram.graph.execution_plan import ExecutionPlan
from hologram.graph.report import Cost, Memory, Reduction
from hologram.ir.aval import Aval
from hologram.ir.graph import Graph
from hologram.support import debug

NODE_BYTES = 8192  # about what the compiler's objects and code take for a node of a graph


class Runnable(ABC):
    """What runs storages and can run arrays.

    ``reusable`` are computed results, their types, and the inputs in whose memory :meth:`run` may put them.
    """

    reusable: Sequence[tuple[int, Aval, list[int]]] = ()
    nbytes: int = 0  # about what the program keeps in memory

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


def tell_program(compilation: Compilation, device: Callable[[], object], language: str, source: Callable[[], object]) -> None:
    """Goes up the ladder of :mod:`hologram.support.debug` for a program whose code is ``source`` in ``language``."""
    debug.tell(debug.DEVICES, "device", device)
    debug.tell(debug.KERNELS, "kernels", lambda: compilation.texts({})["kernels"]())
    debug.tell(debug.SOURCE, language, source)
    debug.tell(debug.GRAPHS, "traced graph", lambda: compilation.traced)
    debug.tell(debug.GRAPHS, "canonical graph", lambda: compilation.canonical)


class BaseExecutable(Runnable):
    """A compiled graph on one device. ``compilation`` is the graph's way through the pipeline; ``where`` the device, in the words of errors."""

    where: str

    def __init__(self, compilation: Compilation) -> None:
        self.compilation = compilation
        self.traced, self.precision, self.guarantee = compilation.traced, compilation.precision, compilation.guarantee
        self.allocate = compilation.allocate
        self.nbytes = NODE_BYTES * len(self.traced.nodes())
        self.lazy_runs = 0  # for an expression that native code does not know: see hologram.trace.lazy_programs.known

    @property
    def canonical(self) -> Graph:
        return self.compilation.canonical

    @property
    def execution_plan(self) -> ExecutionPlan:
        return self.compilation.execution_plan

    @property
    def placement(self) -> str | None:
        """Why it runs where it does, if Hologram chose."""
        return self.compilation.placement

    # --- seeing inside -------------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def _texts(self) -> Mapping[str, Callable[[], str]]:
        """The stages of code generation, which follow those of the pipeline."""

    @property
    def stages(self) -> tuple[str, ...]:
        """What :meth:`as_text` takes, besides the names of passes."""
        return tuple(self.compilation.texts(self._texts))

    @property
    def initializer(self) -> str | None:
        """The graph of what depends on constants alone and is computed once."""
        return self.compilation.initializer

    def as_text(self, stage: str = "kernels") -> str:
        """The program at ``stage``, one of :attr:`stages`, or after the pass of that name. Raises ValueError for another."""
        return self.compilation.as_text(stage, self._texts, self.where)

    def kernel_code(self) -> tuple[str, dict[str, str]]:
        """The language, and the generated code of each kernel by the kernel's text. Kernels that are a part of the graph's function have none."""
        return "", {}

    def reduction(self) -> Reduction:
        return self.compilation.reduction()

    def memory_analysis(self) -> Memory:
        return self.compilation.memory_analysis()

    def cost_analysis(self) -> Cost:
        return self.compilation.cost_analysis()
