"""A graph on several devices: its parts, each compiled for its device, run in order. What a part reads from another device is copied there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from hologram.backends.base import Runnable
from hologram.backends.residence import on_host
from hologram.graph.placement.device_parts import Part
from hologram.graph.report import Cost, Reduction
from hologram.ir.graph import Graph
from hologram.ir.node import Node


class Parts(list[Any]):
    """Reports of the parts, one under the other."""

    def __init__(self, headings: Sequence[str], reports: Sequence[Any]) -> None:
        super().__init__(reports)
        self.headings = headings

    def __str__(self) -> str:
        return "\n\n".join(f"[{heading}]\n{report}" for heading, report in zip(self.headings, self, strict=True))


class Split(Runnable):
    """Runs a graph whose nodes are computed on several devices. ``executables`` are those of the ``parts``; ``why`` tells how it was
    decided."""

    remote = True
    long = True
    initializer: str | None = None

    def __init__(self, traced: Graph, graph: Graph, parts: Sequence[Part], executables: Sequence[Any], why: str) -> None:
        self.traced, self._graph, self._parts, self._executables = traced, graph, parts, executables
        self.constants = [n.attrs[0] for n in graph.nodes() if n.op.name == "leaf"]
        self.placement: str | None = self._described(why)

    @property
    def executables(self) -> list[Any]:
        """Those of the parts, in order."""
        return list(self._executables)

    def _described(self, why: str) -> str:
        """Which part is where, and what goes from one to the other."""
        made = {n: i for i, p in enumerate(self._parts) for n in p.outputs}
        lines = [why]
        for heading, p in zip(self._headings, self._parts, strict=True):
            reads = [f"{x.dtype}{list(x.shape)} of part {made[x]}" for x in p.inputs if x in made]
            lines.append(f"{heading}: {len(p.graph.nodes()) - len(p.inputs)} operations" + (f"; reads {', '.join(reads)}" if reads else ""))
        return "\n".join(lines)

    @property
    def _headings(self) -> list[str]:
        return [f"part {i} on {p.device}" for i, p in enumerate(self._parts)]

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """Storages of the results, each where it was computed, for storages of the inputs, wherever they are."""
        values: dict[Node, Any] = dict(zip(self._graph.inputs, inputs, strict=True))
        values |= {n: n.attrs[0] for n in self._graph.outputs if n.op.name == "leaf"}
        for part, executable in zip(self._parts, self._executables, strict=True):
            arguments = [values[x] for x in part.inputs]
            results = executable.run(arguments if executable.remote else [on_host(x) for x in arguments])
            values.update(zip(part.outputs, results, strict=True))
        return [values[n] for n in self._graph.outputs]

    # --- seeing inside -------------------------------------------------------------------------------------------------

    def _each(self, report: Callable[[Any], Any]) -> Parts:
        return Parts(self._headings, [report(e) for e in self._executables])

    def as_text(self, stage: str = "kernels") -> str:
        """The program at ``stage``: trace, placement, and those that all its devices have."""
        if stage == "trace":
            return str(self.traced)
        return str(self.placement) if stage == "placement" else str(self._each(lambda e: e.as_text(stage)))

    def reduction(self) -> Reduction:
        """The sum over the parts."""
        found: list[Reduction] = list(self._each(lambda e: e.reduction()))
        rules: Counter[str] = sum((Counter(r.rules) for r in found), Counter())
        traced, canonical, kernels, before, after, host = (sum(column) for column in zip(*[_numbers(r) for r in found], strict=True))
        return Reduction(traced, canonical, kernels, before, after, host, rules)

    def memory_analysis(self) -> Parts:
        return self._each(lambda e: e.memory_analysis())

    def cost_analysis(self) -> Cost:
        """The sum over the parts: what goes from one to another counts as moved by both."""
        found: list[Cost] = list(self._each(lambda e: e.cost_analysis()))
        return Cost(*[sum(c) for c in zip(*[(c.bytes_moved, c.intermediate_bytes, c.operations) for c in found], strict=True)])


def _numbers(r: Reduction) -> tuple[int, ...]:
    return r.traced, r.canonical, r.kernels, r.arithmetic_traced, r.arithmetic_canonical, r.host_calls
