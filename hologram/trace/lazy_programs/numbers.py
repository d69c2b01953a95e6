"""Programs of lazily recorded graphs in which numbers are operands.

The *structure* of a graph is its key without its numbers (:mod:`.structure`): extents and offsets among types and attributes, and integer
constants. The first numbers of a structure have a program by value. When others come, a program is made in which those that changed are operands:
constants become arguments, sizes become symbols, one for all that changed alike. The graph is recorded again with these, and its types are inferred
anew (:mod:`.recording`). Sizes that inference needs to be equal are defined by one another; each call checks that they are. Where inference, or
the compiler, does not take symbols, the structure keeps programs by value.

Floats and complex numbers never come here: they are arguments from the first call on (:func:`.structure.scalar_operand`), but for those that
rewrite rules look for. So the bits of a result depend on the numbers, not on which came before: an integer is exact either way, and sums have one
order. Only rules that look at a number may make a difference. Graphs where they do keep programs by value (:mod:`.value_rules`).
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

from hologram.errors import HologramError, is_defect
from hologram.ir.graph import Graph
from hologram.primitives.markers import place
from hologram.settings import settings
from hologram.support import debug
from hologram.support.lru_cache import Recent
from hologram.trace.compiling import compile_once
from hologram.trace.host_movement import is_run
from hologram.trace.lazy_programs.cache import keep, programs
from hologram.trace.lazy_programs.conditions import NumberConditions, conditions_of
from hologram.trace.lazy_programs.donation import MIN_DONATED_BYTES
from hologram.trace.lazy_programs.explanation import tell, tell_miss
from hologram.trace.lazy_programs.immediate import BUDGET, SIZES_NS, Immediate, compile_ns, for_sizes, is_small
from hologram.trace.lazy_programs.notes import note, noted
from hologram.trace.lazy_programs.recording import Recording
from hologram.trace.lazy_programs.structure import Numbers, clear_memos, places, storage_of
from hologram.trace.lazy_programs.value_rules import depends_on_values
from hologram.trace.recorder import remember

STRUCTURE_LIMIT = 1024
PROGRAMS_PER_STRUCTURE = 8  # with operands; numbers that none of them takes have programs by value
_REMEMBERED = 4  # latest sets of numbers by value, with which new ones are compared
_FREQUENT_USES = 64  # of one set of numbers until it gets a program by value, which is found faster
_FREQUENT_LARGE_USES = 4  # the same of sizes of large arrays, for which it is faster
_FREQUENT_SETS = 8  # that may do so, for one structure
_KNOWN_LIMIT = 256
_MAX_NODES = 4096  # of a graph whose sizes become symbols
# --- programs --------------------------------------------------------------------------------------------------------


class Found(NamedTuple):
    """A program for a set of numbers: what it takes beside the leaves and floats, and the values of its symbols."""

    executable: Any
    operands: list[Any]
    sizes: dict[str, int] | None
    token: object  # its key among the programs that are kept; None of one that takes no numbers


class Program:
    """A program in which some numbers are operands.

    ``sizes(numbers)`` gives the values of the symbols for other numbers; None where the program does not take them.
    """

    def __init__(self, conditions: NumberConditions) -> None:
        self.conditions = conditions
        self.sizes = conditions.symbols_of()
        self.token = object()  # its key among the programs that are kept
        self.runs = self.handed_over = 0  # by Python since native code last got it, and how often it has
        self.up_to: dict[str, int] = {}  # the sizes up to which it has

    def found(self, numbers: Numbers) -> Found | None:
        """The program for ``numbers``, if it takes them."""
        sizes = self.sizes(numbers)
        executable = None if sizes is None else programs.get(self.token)
        return (
            None if executable is None else Found(executable, [_constant(numbers[i]) for i in self.conditions.constants], sizes or None, self.token)
        )


_constants: dict[tuple[str, bytes], Any] = {}


def _constant(attrs: tuple[str, bytes]) -> Any:
    """The storage of an integer constant."""
    found = _constants.get(attrs)
    if found is None:
        found = storage_of(attrs)
        remember(_constants, attrs, found)
    return found


class Structure:
    """What is known of the graphs of one structure, whose key is ``key``."""

    __slots__ = ("key", "programs", "seen", "by_value", "frequent", "moved_sets", "left", "spent", "moves", "_earlier")

    def __init__(self, key: tuple[Any, ...], order: Sequence[Any]) -> None:
        self.key = key
        self.left = BUDGET * compile_ns(order)  # nanoseconds that it may run op by op until it is compiled
        self.spent = 0.0  # nanoseconds that went into steps of single sets of numbers, since steps for all were last looked for
        self.moves = all(map(is_run, order))  # whether NumPy gives its bits
        self._earlier: Numbers | None | type = Structure  # which stands for what was not yet looked for
        self.frequent = 0  # how many sets have got programs by value for their uses
        self.moved_sets = 0  # how many sets that NumPy moves native code has got
        self.programs: list[Program] = []
        self.seen: list[Numbers] = []  # the latest sets that have programs by value, or ran op by op
        self.by_value = False  # whether it stays at them

    def find(self, numbers: Numbers) -> Found | None:
        for p in self.programs:
            found = p.found(numbers)
            if found is not None and (type(found.executable) is not Immediate or self.left > 0):
                return found
        self.programs = [p for p in self.programs if programs.get(p.token) is not None]
        return None

    def program_of(self, token: object) -> Program | None:
        """The program that is kept by this key."""
        return next((p for p in self.programs if p.token is token), None)

    def note(self, numbers: Numbers) -> None:
        """Remembers numbers that have no program with operands."""
        self.seen.append(numbers)
        del self.seen[:-_REMEMBERED]

    def nearest(self, numbers: Numbers) -> Numbers | None:
        """Of the sets before, the one that differs least."""
        return min(reversed(self.seen), key=lambda s: sum(map(operator.ne, s, numbers)), default=None)

    def earlier(self, numbers: Numbers) -> Numbers | None:
        """A set that an earlier process noted."""
        if self._earlier is Structure:
            self._earlier = noted(self.key, numbers)
        return self._earlier  # type: ignore[return-value]


class Known:
    """What served a set of numbers, by its key, and how often that may serve it again until the set gets a program by value, which is found sooner,
    computes in place, and has loops of known extents."""

    __slots__ = ("token", "operands", "sizes", "structure", "left")

    def __init__(self, found: Found, structure: Structure, left: int) -> None:
        _, self.operands, self.sizes, self.token = found  # the program may go
        self.structure, self.left = structure, left

    def is_frequent(self) -> bool:
        """Counts a use; whether it is one too many."""
        self.left -= 1
        if self.left > 0 or self.structure.frequent == _FREQUENT_SETS:
            return False
        self.structure.frequent += 1
        return True


structures = Recent(STRUCTURE_LIMIT)


def structure_of(key: tuple[Any, ...], order: Sequence[Any]) -> Structure:
    """The structure of this key, of graphs of the nodes ``order``: one object while it is kept, so that it is hashed in no time."""
    found: Structure | None = structures.get(key)
    if found is None:
        structures.put(key, found := Structure(key, order))
    return found


_known: dict[Any, Known | object] = {}
_ONCE = object()  # stands for what served a set of numbers once: most come no more


class Generalised(NamedTuple):
    """A program to be compiled for a walk, its graph, and where it goes."""

    walk: Any
    program: Program
    graph: Graph
    structure: Structure
    numbers: Numbers
    noted: Numbers | None  # what the disk cache is to keep
    is_op_by_op: bool = False  # whether it is to be steps, not compiled as a whole

    def compiled(self, device: str | None) -> Found | None:
        """The program, compiled, or as steps; None where the compiler does not take it, or it has none."""
        if self.is_op_by_op:
            made = for_sizes(self.graph, self.structure, self.program.sizes(self.numbers) or {}, len(self.walk.order))
            if made is None:
                self.structure.note(self.numbers)
            return None if made is None else self._kept(made)
        try:
            executable = compile_once(("lazy numbers", self.structure, self.numbers), lambda: self.graph, device=device)
        except Exception as e:  # of whatever kind: the program by value serves, and tells what is wrong with the expression
            if settings.verify and (is_defect(e) or not isinstance(e, HologramError)):
                raise
            why = f"{type(e).__name__}: {e}"
            debug.tell(debug.GRAPHS, "no program for all numbers", lambda: why)
            tell(self.walk, "compiled by value after all", why.partition("\n")[0])
            self.structure.by_value = True
            self.structure.seen.append(self.numbers)
            return None
        if self.noted is not None:
            note(self.structure.key, self.noted)
        return self._kept(executable)

    def _kept(self, executable: Any) -> Found | None:
        keep(self.program.token, executable)
        self.structure.programs.insert(0, self.program)
        del self.structure.programs[PROGRAMS_PER_STRUCTURE:]
        return self.program.found(self.numbers)


def look_up(walk: Any) -> Found | Generalised | Structure | None:
    """The program with operands for a walk whose key has none by value, or what to compile as one; the structure of a walk that may run op by op;
    None where it is to be compiled by value."""
    structure, numbers = walk.structure, walk.numbers
    known = _known.get(walk.key)
    if type(known) is Known:
        executable = programs.get(known.token)
        if not known.is_frequent() and executable is not None:
            return Found(executable, known.operands, known.sizes, known.token)
        _known.pop(walk.key)
        if known.left <= 0:
            tell(walk, "compiled by value, because these numbers come often")
            return None
    found = structure.find(numbers)
    if found is not None:
        return _remembered(walk, found, known is _ONCE)
    if structure.left > 0 and is_small(walk):
        if structure.spent >= SIZES_NS and (made := _steps_for_sizes(walk)) is not None:
            tell(walk, "runs op by op from now on for all numbers that change")
            return made
        structure.note(numbers)
        tell(walk, "runs op by op, because it is small and has hardly run so far")
        return structure
    return _to_compile(walk)


def _remembered(walk: Any, found: Found, again: bool) -> Found | Structure:
    """What serves numbers that have a program, which is looked up sooner when they come ``again``. Those whose steps are for all numbers get their
    own then: native code runs these."""
    structure: Structure = walk.structure
    if again and type(found.executable) is Immediate:
        structure.note(walk.numbers)
        return structure
    if len(_known) >= _KNOWN_LIMIT:
        _known.clear()
    left = _FREQUENT_LARGE_USES if found.sizes and is_large(walk) else _FREQUENT_USES
    _known[walk.key] = Known(found, structure, left) if again else _ONCE
    return found


def _steps_for_sizes(walk: Any) -> Generalised | None:
    """Steps with operands for a structure of which many sets of numbers had steps of their own; None where there are none."""
    structure: Structure = walk.structure
    structure.spent = 0.0
    before = None if structure.by_value else structure.nearest(walk.numbers)
    made = None if before is None else _generalised(walk, before, None)
    return made._replace(is_op_by_op=True) if isinstance(made, Generalised) else None


def _to_compile(walk: Any) -> Generalised | None:
    """A program with operands for numbers that no program takes; None for one by value."""
    structure: Structure = walk.structure
    numbers: Numbers = walk.numbers
    before = structure.nearest(numbers)
    earlier = None if before is not None or structure.by_value else structure.earlier(numbers)
    made: Generalised | str = "numbers of this structure stay values"
    if before is not None and not structure.by_value:
        made = _generalised(walk, before, before)
    elif earlier is not None:
        made = _generalised(walk, earlier, None)
    tell_miss(walk, numbers, before, made if isinstance(made, str) else None)
    if isinstance(made, Generalised):
        return made
    structure.note(numbers)
    return None


def is_large(walk: Any) -> bool:
    """Whether an argument is so large that results are put into its memory."""
    return any([s.aval.nbytes >= MIN_DONATED_BYTES for s in walk.storages])


def clear() -> None:
    """Forgets all structures."""
    structures.clear()
    _known.clear()
    _constants.clear()
    clear_memos()


def _nodes_of(order: Sequence[Any], slots: Sequence[int]) -> set[Any]:
    """The nodes that have the numbers in ``slots``."""
    of = [node for node, names in places(order) for _ in names]
    return {of[i] for i in slots}


def _generalised(walk: Any, before: Numbers, noted: Numbers | None) -> Generalised | str:
    """The program in which what differs from the numbers before is an operand; why there is none, where there can be none."""
    structure: Structure = walk.structure
    numbers: Numbers = walk.numbers
    differing = [i for i, (a, b) in enumerate(zip(numbers, before, strict=True)) if a != b]
    constants = [i for i in differing if type(numbers[i]) is tuple]
    sizes = [i for i in differing if type(numbers[i]) is not tuple]
    if not differing:
        return "no number is new"
    if walk.device is not None or any(x.op is place for x in walk.order):
        return "a device computes it"
    if sizes and min(numbers[i] for i in sizes) < 2:
        return "a size is below 2"
    if sizes and len(walk.order) > _MAX_NODES:
        return f"it has more than {_MAX_NODES} nodes"
    if depends_on_values(walk.order, _nodes_of(walk.order, differing)):
        return "rewrite rules look at its numbers"
    groups: dict[tuple[int, int], list[int]] = {}
    for i in sizes:
        groups.setdefault((numbers[i], before[i]), []).append(i)
    try:
        made = Recording(walk, set(constants), groups)
        program = Program(conditions_of(numbers, constants, made))
    except (HologramError, TypeError) as e:  # what the type rules do not take
        structure.by_value = structure.by_value or len(structure.seen) >= _REMEMBERED
        return f"with symbols: {str(e).partition(chr(10))[0]}"
    if program.sizes(numbers) is None:
        return "an extent is 0 or 1, or a program by value sums in another order"
    return Generalised(walk, program, made.graph, structure, numbers, noted)
