"""What differs between vector lanes: values that depend on the variable of a ``lanes`` loop.

Lanes run together, so the loops inside a ``lanes`` loop have one range for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable

from hologram.graph.kernel.ir import Loop, Value
from hologram.ir.instruction import Ins
from hologram.ir.symbolic import variables_of


class Lanes:
    """Follows the statements of a kernel in their order."""

    def __init__(self) -> None:
        self.depth = 0  # of lanes loops
        self.names: set[str] = set()  # of variables and values that differ
        self.values: set[Value] = set()

    def enter(self, loop: Loop) -> None:
        if loop.kind == "lanes":
            self.depth += 1
            self.names.add(loop.var)

    def leave(self, loop: Loop) -> None:
        """An accumulator is one for all lanes of its own loop, and one for each lane of the loops around it."""
        if loop.kind == "lanes":
            self.depth -= 1
            self.names.discard(loop.var)
        if self.depth:
            self.values.update(loop.accs)

    def instruction(self, s: Ins) -> None:
        if self.depth and (s.op == "scan" or any(a in self.values for a in s.args) or self.differ(s.attrs)):
            self.values.add(s)
            if s.name:
                self.names.add(s.name)

    def differ(self, integers: Iterable[object]) -> bool:
        """Whether one of ``integers``, between which anything else may stand, differs between lanes."""
        return bool(self.names) and any(a.name in self.names for e in integers for a in variables_of(e))
