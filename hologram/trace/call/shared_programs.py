"""Programs that jitted functions share whose graphs are the same, or differ in numbers alone: ``jit(lambda x: x * k)`` for one ``k`` after another.

A function is traced anew each time, so its numbers may decide types, shapes and control flow. What then has the structure of a graph before, at the
same lines of the user's file, is not compiled again: the first numbers have a program by value; when others come, a program is made in which those
that changed are operands, bound for each function to its own numbers.

Operands are floats and integers that scale, shift or divide what depends on arguments, or are compared with it, and of which no rewrite rule, nor
the processor, makes anything else. All other numbers, extents and attributes stay values. So a result has the same bits whichever program gives it.
Where rules that look at numbers might make a difference (:mod:`hologram.trace.lazy_programs.value_rules`), or where the compiler finds other loops
for operands, each set of numbers is compiled.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Collection, Sequence
from typing import Any

from hologram.backends.device.storage import DeviceStorage
from hologram.errors import HologramError, is_defect
from hologram.ir.devices import CPU
from hologram.ir.graph import Graph, bodies
from hologram.ir.leaves import const, input_, leaf
from hologram.ir.node import Builder, Node, const_value
from hologram.primitives.markers import mark, stop
from hologram.settings import settings
from hologram.support import debug, forks
from hologram.support.lru_cache import Recent
from hologram.trace import compiling
from hologram.trace.lazy_programs.structure import KNOWN_TO_RULES, storage_of
from hologram.trace.lazy_programs.value_rules import depends_on_values

FAMILY_LIMIT = 1024
SETS_BY_VALUE = 4  # latest sets of numbers of one family whose programs by value are kept
PROGRAMS_PER_FAMILY = 8  # with operands
MAX_NODES = 2048  # of a graph: larger ones are looked through for long, and seldom come again
MAX_LEAF_BYTES = 1 << 20  # of arrays that a graph closes over, which its program keeps alive

_KINDS = frozenset(("leaf", "elementwise", "movement", "reduce", "scan", "gather", "scatter", "sort", "contraction", "control", "project", "mark"))
_MARKS = (mark, stop)  # which say nothing of values
_MAY_COUNT = frozenset(("gather", "scatter", "sort", "control"))  # where ranges of integers tell the compiler something
_BLIND = frozenset(("add", "sub", "mul", "div", "lt", "le", "gt", "ge", "eq", "ne", "max", "min"))  # ops that take any number alike

Numbers = tuple[Any, ...]


class _Program:
    """A program in which ``varying`` numbers are operands, and the others are those of ``numbers``."""

    def __init__(self, executable: Any, numbers: Numbers, varying: Collection[int]) -> None:
        self.executable, self.numbers, self.varying = executable, numbers, sorted(varying)
        self._fixed = [i for i in range(len(numbers)) if i not in varying]

    def bound(self, numbers: Numbers, graph: Graph) -> Any:
        """The program for ``numbers``, those of ``graph``; None where it does not take them."""
        if any([numbers[i] != self.numbers[i] for i in self._fixed]):
            return None
        return self.executable.with_last_inputs([storage_of(numbers[i]) for i in self.varying], graph)


class _Family:
    """What is known of the graphs of one structure."""

    def __init__(self) -> None:
        self.by_value: dict[Numbers, Any] = {}  # the latest programs
        self.programs: list[_Program] = []
        self.has_no_operands = False

    def find(self, numbers: Numbers, graph: Graph) -> Any:
        found = self.by_value.get(numbers)
        programs = iter(self.programs)
        while found is None and (p := next(programs, None)) is not None:
            found = p.bound(numbers, graph)
        return found

    def varying(self, numbers: Numbers) -> set[int]:
        """Which numbers have changed, those that did so before included."""
        before = min([*self.by_value, *[p.numbers for p in self.programs]], key=lambda s: sum(a != b for a, b in zip(s, numbers, strict=True)))
        changed = {i for i, (a, b) in enumerate(zip(before, numbers, strict=True)) if a != b}
        return changed.union(*[p.varying for p in self.programs[:1]])

    def keep(self, numbers: Numbers, executable: Any) -> None:
        self.by_value[numbers] = executable
        if len(self.by_value) > SETS_BY_VALUE:
            del self.by_value[next(iter(self.by_value))]

    def add(self, program: _Program) -> None:
        self.programs.insert(0, program)
        del self.programs[PROGRAMS_PER_FAMILY:]

    @property
    def nbytes(self) -> int:
        return sum([e.nbytes for e in self.by_value.values()]) + sum([p.executable.nbytes for p in self.programs])


_families = Recent(FAMILY_LIMIT, lambda: settings.program_limit)
_lock = threading.RLock()  # of what families have


@forks.in_child
def _after_fork() -> None:
    global _lock
    _lock = threading.RLock()


def clear() -> None:
    """Forgets all programs."""
    _families.clear()


def compiled(graph: Graph, precision: str, device: str | None, homes: Sequence[str], blocked: bool, name: str) -> Any:
    """The executable of a traced graph, as :func:`hologram.trace.compiling.compile_graph` gives it: that of an earlier one where it can serve."""
    nodes = graph.nodes()
    if device not in (None, CPU) or not _is_shared(graph, nodes, precision):
        return compiling.compile_graph(graph, precision, device, homes, blocked=blocked, name=name)
    candidates = _numbers(nodes)
    numbers = tuple([x.attrs for x in candidates])
    key = (_structure(graph, nodes, candidates), precision, settings.code, blocked, name)
    with _lock:
        family = _families.get(key) or _Family()
        found = family.find(numbers, graph)
        varying = family.varying(numbers) if found is None and family.by_value and not family.has_no_operands else None
    if found is None and varying:
        found = _with_operands(family, graph, candidates, varying, (precision, device, blocked, name))
    if found is None:
        found = compiling.compile_graph(graph, precision, device, homes, blocked=blocked, name=name)
        if not hasattr(found, "with_last_inputs"):
            return found
        with _lock:
            family.keep(numbers, found)
    _families.put(key, family, family.nbytes)
    return found


def _is_shared(graph: Graph, nodes: Sequence[Node], precision: str) -> bool:
    """Whether programs of such graphs are kept for other functions: without what runs on devices, is called back, or differs by more than values."""
    if precision not in ("standard", "exact") or settings.profile or settings.nans or debug.watchers or settings.debug:
        return False
    if len(nodes) > MAX_NODES or not _is_plain(graph) or graph.symbols():
        return False
    held = [x.attrs[0] for x in nodes if x.op is leaf]
    return not any([type(s) is DeviceStorage for s in held]) and sum([s.aval.nbytes for s in held]) <= MAX_LEAF_BYTES


def _is_plain(graph: Graph) -> bool:
    """Whether a graph, and what is inside of it, has ops alone that hold no Python objects, and are no routines of the host."""
    kinds = graph.kinds()
    if not kinds <= _KINDS or ("mark" in kinds and not all([x.op in _MARKS for x in graph.nodes() if x.op.kind == "mark"])):
        return False
    return "control" not in kinds or all([_is_plain(b.graph) for x in graph.nodes() if x.op.kind == "control" for b in bodies(x)])


def _structure(graph: Graph, nodes: Sequence[Node], numbers: Sequence[Node]) -> Any:
    """A graph without its ``numbers``, and the lines that it comes from."""
    at = {x: i for i, x in enumerate(nodes)}
    apart = set(numbers)
    rows = [(x.op, _attributes(x, x in apart), x.dtype, tuple([at[i] for i in x.inputs]), graph.lines.get(x)) for x in nodes]
    return len(graph.inputs), tuple(rows), tuple([at[x] for x in graph.outputs])


def _attributes(x: Node, is_number: bool) -> Any:
    """What is the same of a node in all graphs of one structure: neither a number, nor the token of a trace."""
    if x.op is input_:
        return x.attrs[:3]
    return x.attrs[0] if is_number else () if x.op.kind == "mark" else x.attrs


# --- which numbers may be operands -----------------------------------------------------------------------------------


def _numbers(nodes: Sequence[Node]) -> list[Node]:
    """The constants that may be operands; none where rules might see a difference."""
    counts = any([x.op.kind in _MAY_COUNT for x in nodes])
    arguments: set[Node] = set()  # and what depends on them
    refused: set[Node] = set()
    for x in nodes:
        if x.op is input_ or not arguments.isdisjoint(x.inputs):
            arguments.add(x)
        for k, i in enumerate(x.inputs):
            if i.op is const and not (_takes_any(x, k) and x.inputs[1 - k] in arguments):
                refused.add(i)
    found = [x for x in nodes if x.op is const and x not in refused and x.attrs[0] != "bool" and _is_any(x, counts)]
    return [] if depends_on_values(nodes, set(found)) else found


def _takes_any(x: Node, position: int) -> bool:
    """Whether an op makes the same of its operand at ``position`` whether that is known or not."""
    name = x.op.name
    if name not in _BLIND or x.inputs[position].dtype.is_complex:
        return False
    return name != "div" or position == 0 or abs(math.frexp(float(const_value(x.inputs[1])))[0]) != 0.5


def _is_any(x: Node, counts: bool) -> bool:
    """Whether neither rules nor processors make anything special of a constant."""
    value = const_value(x)
    if x.dtype.kind == "f":
        return abs(float(value)) <= x.dtype.format.largest / 4 and float(value) not in KNOWN_TO_RULES  # doubled it is finite
    return x.dtype.is_integer and not counts and abs(int(value)).bit_count() > 1


# --- programs with operands ------------------------------------------------------------------------------------------


def _with_operands(family: _Family, graph: Graph, candidates: Sequence[Node], varying: set[int], options: tuple[Any, ...]) -> Any:
    """The program of ``graph`` whose ``varying`` numbers are operands, bound to these; None where each set of numbers is to be compiled."""
    precision, device, blocked, name = options
    numbers = tuple([x.attrs for x in candidates])
    operands = [candidates[i] for i in sorted(varying)]
    opened = _opened(graph, operands)
    try:
        is_alike = compiling.are_alike(graph, opened, list(map(const_value, operands)), precision)
        executable = compiling.compile_graph(opened, precision, device, blocked=blocked, name=name) if is_alike else None
    except HologramError as e:  # what is wrong with the user's program, the one by value tells
        if settings.verify and is_defect(e):
            raise
        executable = None
    with _lock:
        if executable is None:
            family.has_no_operands = True
            return None
        program = _Program(executable, numbers, varying)
        family.add(program)
        return program.bound(numbers, graph)


def _opened(graph: Graph, numbers: Sequence[Node]) -> Graph:
    """``graph`` with further inputs in the place of ``numbers``."""
    build = Builder()
    image: dict[Node, Node] = {}
    for i, x in enumerate((*graph.inputs, *numbers)):
        attrs = x.attrs if x.op is input_ else (i, x.shape, x.dtype.name, None)
        image[x] = build(input_, (), attrs)
    for x in graph.nodes():
        if x not in image:
            image[x] = build.with_inputs(x, tuple([image[i] for i in x.inputs]))
    opened = graph.mapped(image, [image[x] for x in (*graph.inputs, *numbers)])
    opened.name = graph.name
    return opened
