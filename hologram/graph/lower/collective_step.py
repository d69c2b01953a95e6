"""Steps of collectives: the whole of one, or its start and the wait for it.

Several sums of one program may be one step: its node has the operands of all, its results are those of all.
"""

from __future__ import annotations

from collections.abc import Sequence

from hologram.graph.lower.host_step import CALL_NS, HostStep
from hologram.ir.node import Node

WHOLE, START, DONE = "", "start", "done"


class CollectiveStep(HostStep):
    """``phase`` is WHOLE, START or DONE. A start and its wait have the same ``number``, and both bind all operands and results: these stay as they
    are in between."""

    __slots__ = ("number", "phase")

    def __init__(self, node: Node, results: Sequence[Node], phase: str = WHOLE, number: int = 0) -> None:
        self.node, self.results, self.workspace = node, list(results), None
        self.bindings = [*self.operands(), *self.writes()]
        self.cost = CALL_NS
        self.phase, self.number = phase, number

    def operands(self) -> list[Node]:
        """The arrays that the collective reads."""
        return super().reads()

    def reads(self) -> list[Node]:
        return [*self.operands(), *self.writes()] if self.phase == DONE else self.operands()

    @property
    def title(self) -> str:
        """The op, and which part of it."""
        return f"{self.op.name} {self.phase}".strip()
