"""Reports of compiled models: which nodes Hologram computes, in how many kernels, and which nodes PyTorch computes, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from hologram.support.wording import counted
from hologram_torch.compile.backend import Observer, make_backend


@dataclass(frozen=True, slots=True)
class Fallback:
    """A node that PyTorch computes: its name in the graph, its op, and why."""

    node: str
    op: str
    reason: str


@dataclass(frozen=True, slots=True)
class ProgramReport:
    """The report of one graph: its stage (``forward``, ``backward`` or ``inference``), the number of nodes that Hologram computes, of segments and
    of kernels, the nodes that PyTorch computes, and the devices of the segments."""

    stage: str
    nodes: int
    segments: int
    kernels: int
    fallbacks: tuple[Fallback, ...]
    devices: tuple[str, ...] = ()


@dataclass(slots=True)
class Explanation:
    """All programs of a call of :func:`explain`, in the order in which they were made; ``str()`` is a readable account of them.

    >>> hologram_torch.Explanation().programs
    []
    """

    programs: list[ProgramReport] = field(default_factory=list)

    @property
    def fallbacks(self) -> Counter[str]:
        """How often PyTorch computes each op."""
        return Counter(f.op for p in self.programs for f in p.fallbacks)

    def __str__(self) -> str:
        lines = []
        for i, p in enumerate(self.programs):
            where = f" on {' and '.join(p.devices)}" if p.devices else ""
            made = f"{counted(p.nodes, 'node')} in {counted(p.segments, 'segment')}{where}, {counted(p.kernels, 'kernel')}"
            lines.append(f"program {i} ({p.stage}): {made}; {len(p.fallbacks)} by PyTorch")
            lines += [f"  {f.node} = {f.op}: {f.reason}" for f in p.fallbacks]
        return "\n".join(lines) or "nothing was compiled: Dynamo found no graph, or skips the code, as it does for recurrent layers"


def _reported(stage: str, module: fx.GraphModule, writer: Any) -> ProgramReport:
    nodes = [n for n in module.graph.nodes if n.op == "call_function"]
    reasons = writer.partition.reasons
    fallbacks = tuple(Fallback(n.name, str(n.target), reasons[n]) for n in nodes if n in reasons and n not in writer.assigned)
    kernels = sum(len(e.execution_plan.kernels) for e in writer.executables)
    return ProgramReport(stage, len(nodes) - len(fallbacks), len(writer.executables), kernels, fallbacks, writer.devices)


def recorder(into: Explanation) -> Observer:
    """An observer for :func:`make_backend` that adds each program to ``into``."""
    return lambda stage, module, writer: into.programs.append(_reported(stage, module, writer))


def explain(model: Callable[..., Any]) -> Callable[..., Explanation]:
    """Explains a compilation: ``explain(model)(*args)`` compiles and runs ``model`` as ``torch.compile`` would, and says what became of it.

    The backend is ``hologram``. The backward pass is compiled with the forward pass where the result requires a gradient. Dynamo is reset before and
    after: it keeps what it has skipped, such as an LSTM, by the code that called it, and would skip other modules too. Compiled models are compiled
    anew when next called.

    >>> found = hologram_torch.explain(lambda x: torch.relu(x) + 1)(torch.tensor([-1.0, 2.0]))
    >>> len(found.programs), found.programs[0].fallbacks
    (1, ())
    """

    def explained(*args: Any, **options: Any) -> Explanation:
        found = Explanation()
        torch._dynamo.reset()
        torch.compile(model, backend=make_backend(recorder(found)))(*args, **options)
        torch._dynamo.reset()
        return found

    return explained
