"""Small work runs at once: an expression of a new structure is not compiled before that pays.

It runs op by op (:mod:`hologram.backends.op_by_op`), with the bits of the compiled program. The time that this takes, by estimate, is counted for
each structure. When it comes to a part of what compiling takes, the structure is compiled.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

from hologram.errors import HologramError, is_defect
from hologram.ir.graph import Graph
from hologram.ir.leaves import leaf
from hologram.primitives.markers import place
from hologram.settings import settings
from hologram.support import debug
from hologram.trace.compiling import op_by_op

COMPILE_NS = 6e6  # that compiling a program takes, ...
COMPILE_NODE_NS = 2e6  # ... and each of its nodes adds
BUDGET = 1 / 2  # of what compiling takes, for one structure
MAX_RUNS = 32  # of one expression with the same numbers: what comes as often tends to come on
MAX_RUN = 1 / 64  # of what compiling takes: a longer run is not small work
MAX_ELEMENTS = 1 << 14  # of a value that is computed: larger ones are worth fusion, and memory that is used again
LEGALIZE_NS = 2e5  # that a graph takes to be split into steps
ELEMENT_NS = 0.5  # of an element of an op
MAX_NODES = 64

_KINDS = frozenset(("leaf", "elementwise", "movement", "gather", "reduce", "scan", "mark"))


class Immediate:
    """A program that runs op by op, and what it costs the structure that it belongs to. ``left``: how often it may still run."""

    __slots__ = ("program", "structure", "left")
    remote = False
    reusable: tuple[Any, ...] = ()

    def __init__(self, program: Any, structure: Any) -> None:
        self.program, self.structure, self.left = program, structure, MAX_RUNS

    @property
    def nbytes(self) -> int:
        return int(self.program.nbytes)

    def run(self, inputs: Sequence[Any], donated: Any = None, sizes: Any = None) -> list[Any]:
        self.structure.left -= self.program.ns
        self.left -= 1
        if self.left <= 0:
            self.structure.left = 0.0
        start = time.perf_counter_ns()
        found: list[Any] = self.program.run(inputs)
        if debug.watchers:
            debug.noted("an expression op by op", start)
        return found


def compile_ns(order: Sequence[Any]) -> float:
    """About what compiling a walk's nodes takes."""
    return COMPILE_NS + COMPILE_NODE_NS * len(order)


def is_small(walk: Any) -> bool:
    """Whether a walk may be run op by op in a time that is far below what compiling it takes."""
    order = walk.order
    if not settings.op_by_op or walk.device is not None or len(order) > MAX_NODES:
        return False
    ns = 0.0
    for x in order:
        if x.op.kind not in _KINDS or x.op is place:
            return False
        if x.op is not leaf:
            n = math.prod(x.shape)
            if n > MAX_ELEMENTS:
                return False
            ns += ELEMENT_NS * x.op.cost * n
    return ns <= MAX_RUN * compile_ns(order)


def immediate(graph: Graph, structure: Any, nodes: int) -> Immediate | None:
    """The program of a small graph, which costs ``structure``; None where an op has to be compiled with others, or takes long."""
    try:
        found = op_by_op(graph, MAX_RUN * (COMPILE_NS + COMPILE_NODE_NS * nodes))
    except HologramError as e:  # the compiler tells what is wrong with the expression
        if settings.verify and is_defect(e):
            raise
        found = None
    if found is None:
        structure.left = 0.0
        return None
    structure.left -= LEGALIZE_NS
    debug.tell(debug.GRAPHS, "op by op", lambda: found.as_text("legalized"))
    return Immediate(found, structure)


__all__ = ["Immediate", "compile_ns", "immediate", "is_small"]
