"""Small work runs at once: an expression of a new structure is not compiled before that pays.

It runs op by op (:mod:`hologram.backends.op_by_op`), with the bits of the compiled program. The time that this takes, by estimate, is counted for
each structure. When it comes to a part of what compiling takes, the structure is compiled.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

from hologram.errors import HologramError, is_defect
from hologram.ir.graph import Graph
from hologram.ir.leaves import leaf
from hologram.primitives.control import project
from hologram.primitives.host import fourier
from hologram.primitives.markers import place
from hologram.settings import settings
from hologram.support import debug
from hologram.trace.compiling import native_steps, op_by_op, op_by_op_for_sizes, op_by_op_in_one_pass

COMPILE_NS = 8e6  # that compiling a program takes, ...
COMPILE_NODE_NS = 1e6  # ... and each of its nodes adds
BUDGET = 1 / 2  # of what compiling takes, for one structure
MAX_RUNS = 128  # of one expression with the same numbers by Python: what comes as often tends to come on
KERNEL_RUNS = 64  # of it by Python, until native code gets it though ops of it have to be compiled first
MAX_RUN = 1 / 64  # of what compiling takes: a longer run is not small work
MAX_ELEMENTS = 1 << 14  # of a value that is computed: larger ones are worth fusion, and memory that is used again
GRANT = 1 / 8  # of what a structure has left, for the runs of one expression by native code until they are counted
ELEMENT_NS = 0.5  # of an element of an op
SIZES_NS = 6e5  # that a graph takes to be recorded with symbols and legalized
MAX_NODES = 512  # of an expression: splitting a larger one into steps takes long, too

_KINDS = frozenset(("leaf", "elementwise", "movement", "gather", "reduce", "scan", "mark"))
_TRANSFORMS = (fourier.fft, fourier.rfft, fourier.irfft)  # which have plans of their own, compiled or not


class Immediate:
    """A program that runs op by op, and what it costs the structure that it belongs to. ``left``: how often Python may still run it, where it is for
    one set of numbers."""

    __slots__ = ("program", "structure", "left", "native", "runs")
    remote = False
    reusable: tuple[Any, ...] = ()

    def __init__(self, program: Any, structure: Any, runs: float = MAX_RUNS) -> None:
        self.program, self.structure, self.left = program, structure, runs
        self.native: Any = None  # its form for native code, once it is known; False: it has none
        self.runs = 0  # that native code has been granted

    @property
    def nbytes(self) -> int:
        return int(self.program.nbytes)

    def run(self, inputs: Sequence[Any], donated: Any = None, sizes: Any = None) -> list[Any]:
        self.structure.left -= self.program.ns
        self.left -= 1
        if self.left <= 0:
            self.structure.left = 0.0
        start = time.perf_counter_ns()
        found: list[Any] = self.program.run(inputs, None, sizes)
        if debug.watchers:
            debug.noted("an expression op by op", start)
        return found

    def for_native_code(self) -> Any:
        """The program in the form in which native code runs it, when it has come again; None before, and where there is none."""
        if self.native is None:
            ran = MAX_RUNS - self.left
            if ran > 0 and (made := native_form(self.program, ran >= KERNEL_RUNS)) is not None:
                self.native = made
            elif ran > KERNEL_RUNS:
                self.native = False
        return self.native or None

    def granted(self) -> int:
        """How often native code may run it until Python is asked again, which takes a part of what the structure has left; what ran is charged."""
        used = self.runs - self.native.left
        self.structure.left -= used * self.native.ns
        if self.native.left:
            self.runs -= used
            return self.runs
        self.runs = int(self.structure.left * GRANT / self.native.ns)
        if self.runs < MAX_RUNS:
            self.structure.left = 0.0
        return self.runs


def moved_natively(walk: Any) -> tuple[Any, int] | None:
    """The program of a walk that moves elements in the form in which native code runs it, and how often it may until that has taken as long as
    compiling it; None where it has none."""
    try:
        program = op_by_op(walk.graph(), math.inf)
    except HologramError as e:
        if settings.verify and is_defect(e):
            raise
        return None
    native = None if program is None else native_form(program, True)
    return None if native is None else (native, int(BUDGET * compile_ns(walk.order) / native.ns))


def native_form(program: Any, compiles: bool) -> Any:
    """The form in which native code runs a program op by op; None where it has none. Kernels that are not ready are compiled where ``compiles`` says
    so."""
    try:
        return native_steps(program, compiles)
    except HologramError as e:
        if settings.verify and is_defect(e):
            raise
        return None


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
        if x.op is place or not (x.op.kind in _KINDS or x.op in _TRANSFORMS or (x.op is project and x.inputs[0].op in _TRANSFORMS)):
            return False
        if x.op is not leaf:
            n = math.prod(x.shape)
            if n > MAX_ELEMENTS:
                return False
            ns += ELEMENT_NS * x.op.cost * n
    return ns <= MAX_RUN * compile_ns(order)


def at_once(walk: Any, structure: Any) -> Immediate | None:
    """The program of a small walk, which costs ``structure``, where it is made in one pass over its nodes; None where it takes longer."""
    sources = [x for x in walk.order if x.op is leaf] + walk.scalar_nodes
    found = op_by_op_in_one_pass(walk.order, sources, walk.roots, MAX_RUN * compile_ns(walk.order))
    return None if found is None else _counted(found, structure)


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
    return _counted(found, structure)


def for_sizes(graph: Graph, structure: Any, sizes: Mapping[str, int], nodes: int) -> Immediate | None:
    """The program of a small graph with symbols, whose values now are ``sizes``, which costs ``structure``; None where there is none."""
    try:
        found = op_by_op_for_sizes(graph, sizes, MAX_RUN * (COMPILE_NS + COMPILE_NODE_NS * nodes))
    except Exception as e:  # of whatever kind: the graph by value serves, and tells what is wrong with the expression
        if settings.verify and (is_defect(e) or not isinstance(e, HologramError)):
            raise
        return None
    return None if found is None else _counted(found, structure, math.inf)


def _counted(found: Any, structure: Any, runs: float = MAX_RUNS) -> Immediate:
    structure.left -= found.prepare_ns
    structure.spent += found.prepare_ns
    debug.tell(debug.GRAPHS, "op by op", lambda: found.as_text("legalized"))
    return Immediate(found, structure, runs)


__all__ = ["Immediate", "at_once", "compile_ns", "for_sizes", "immediate", "is_small"]
