"""Programs of lazily recorded graphs in which numbers are operands.

The *structure* of a graph is its key (:class:`hologram.trace.lazy._Walk`) without its numbers: extents and offsets among types and attributes, and
integer constants. The first numbers of a structure have a program by value. When others come, a program is made in which those that changed are
operands: constants become arguments, sizes become symbols, one for all that changed alike. The graph is recorded again with these, and its types are
inferred anew. Sizes that inference needs to be equal are defined by one another; each call checks that they are. Where inference, or the
compiler, does not take symbols, the structure keeps programs by value.

Floats and complex numbers never come here: they are arguments from the first call on (:func:`scalar_operand`), but for those that rewrite rules
look for. So the bits of a result depend on the numbers, not on which came before: an integer is exact either way, and sums have one order. Only
contraction may depend on a program's form. Graphs where it does keep programs by value (:mod:`hologram.trace.contraction`).
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from hologram import dtypes
from hologram.errors import HologramError
from hologram.ir.aval import Aval, aval
from hologram.ir.graph import Graph
from hologram.ir.leaves import const, input_, leaf
from hologram.ir.node import Builder, Node
from hologram.ir.op import Op
from hologram.ir.symbolic import Expr, Int, atoms, evaluator, prod, size_operand, substitute, symbols_of
from hologram.ir.traversal import topological
from hologram.primitives.markers import place
from hologram.primitives.movement import reshape
from hologram.settings import settings
from hologram.support import debug
from hologram.support.lru_cache import Recent
from hologram.trace.compiling import compile_once
from hologram.trace.contraction import depends_on_form
from hologram.trace.lazy_donation import MIN_DONATED_BYTES
from hologram.trace.program_cache import keep, programs
from hologram.trace.recorder import remember, storage_module

STRUCTURE_LIMIT = 1024
PROGRAMS_PER_STRUCTURE = 8  # with operands; numbers that none of them takes have programs by value
_REMEMBERED = 4  # latest sets of numbers by value, with which new ones are compared
_FREQUENT_USES = 64  # of one set of numbers until it gets a program by value, which is found faster
_FREQUENT_LARGE_USES = 4  # the same of sizes of large arrays, for which it is faster
_FREQUENT_SETS = 8  # that may do so, for one structure
_KNOWN_LIMIT = 256
_MAX_NODES = 256  # of a graph whose sizes become symbols
_KNOWN_TO_RULES = frozenset((0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5))  # and what is not finite
_SYMBOLIC_KINDS = frozenset(("leaf", "elementwise", "movement", "reduce", "scan", "gather", "mark"))

Numbers = tuple[Any, ...]

# --- floats ----------------------------------------------------------------------------------------------------------

_operands: dict[tuple[str, bytes], Any] = {}


def scalar_operand(attrs: tuple[Any, ...]) -> Any:
    """The storage of a constant that is an argument of every program; None for one that programs have by value."""
    try:
        return _operands[attrs]
    except KeyError:
        storage = _storage(attrs) if _is_operand(attrs) else None
        remember(_operands, attrs, storage)
        return storage


def _is_operand(attrs: tuple[str, bytes]) -> bool:
    dtype = dtypes.of(attrs[0])
    if dtype.kind not in "fc":
        return False
    value = complex(np.frombuffer(attrs[1], dtype.np)[0])
    return value.imag != 0 or (math.isfinite(value.real) and value.real not in _KNOWN_TO_RULES)


def _storage(attrs: tuple[str, bytes]) -> Any:
    """The storage of a constant."""
    return storage_module().of_bits(aval(dtypes.of(attrs[0]), ()), attrs[1])


# --- structures ------------------------------------------------------------------------------------------------------


class Form(NamedTuple):
    """Attributes without their numbers; these; and what each is called."""

    rest: Any
    numbers: Numbers
    names: tuple[str, ...]


_forms: dict[tuple[Op, tuple[Any, ...]], Form] = {}


def _form(op: Op, attrs: tuple[Any, ...]) -> Form:
    found = _forms.get((op, attrs))
    if found is None:
        found = _make_form(op, attrs)
        remember(_forms, (op, attrs), found)
    return found


def _make_form(op: Op, attrs: tuple[Any, ...]) -> Form:
    if op is const:
        integer = attrs[0][0] not in "fc" and attrs[0] != "bfloat16"
        return Form((attrs[0],), (attrs,), ("a constant",)) if integer else Form(attrs, (), ())
    rest: list[Any] = []
    numbers: list[int] = []
    names: list[str] = []
    for name, value in zip(op.attrs, attrs, strict=True):
        if name in op.sizes:
            rest.append(len(value))
            numbers += value
            names += [f"{op.name}'s {name}"] * len(value)
        else:
            rest.append(value)
    return Form(tuple(rest), tuple(numbers), tuple(names))


def split(key: tuple[Any, ...]) -> tuple[tuple[Any, ...], Numbers]:
    """A key's structure, and its numbers in order."""
    rest: list[Any] = list(key[:2])
    numbers: list[Any] = []
    op: Any = None
    add = rest.append
    for x in key[2:]:
        kind = type(x)
        if kind is Op:
            op = x
        elif kind is Aval:
            numbers += x.shape
            x = x.kind
        elif kind is tuple:
            found = _form(op, x)
            x = found.rest
            numbers += found.numbers
        add(x)
    return tuple(rest), tuple(numbers)


def _places(order: Sequence[Node]) -> Iterator[tuple[Node, tuple[str, ...]]]:
    """The nodes of a walk that have numbers, and their names, as :func:`split` lists them."""
    for node in order:
        if node.op is leaf:
            yield node, ("an argument's shape",) * len(node.shape)
        elif node.attrs and (node.op.kind != "mark" or node.op is place) and not (node.op is const and scalar_operand(node.attrs) is not None):
            yield node, _form(node.op, node.attrs).names


# --- programs --------------------------------------------------------------------------------------------------------


class Found(NamedTuple):
    """A program for a set of numbers: what it takes beside the leaves and floats, and the values of its symbols."""

    executable: Any
    operands: list[Any]
    sizes: dict[str, int] | None
    token: object  # its key among the programs that are kept


class Program:
    """A program in which some numbers are operands.

    ``fixed`` are the numbers that it has by value, ``equal`` pairs that must be equal; ``constants`` the numbers that are arguments, ``symbols`` the
    numbers that symbols stand for, ``defined`` further numbers with the polynomials that they must equal.
    """

    def __init__(self, numbers: Numbers, constants: list[int], groups: dict[str, list[int]], defined: dict[str, Int]) -> None:
        varying = {*constants, *(i for slots in groups.values() for i in slots)}
        self._fixed = _getter([i for i in range(len(numbers)) if i not in varying])
        self._values = self._fixed(numbers)
        twins = [(i, slots[0]) for slots in groups.values() for i in slots[1:]]
        self._first, self._second = _getter([i for i, _ in twins]), _getter([j for _, j in twins])
        self._constants, self._symbols = constants, [(s, slots[0]) for s, slots in groups.items() if s not in defined]
        self._defined = [(groups[s][0], evaluator(e, [s for s, _ in self._symbols])) for s, e in defined.items()]
        self.token = object()  # its key among the programs that are kept

    def found(self, numbers: Numbers) -> Found | None:
        """The program for ``numbers``, if it takes them."""
        if self._fixed(numbers) != self._values or self._first(numbers) != self._second(numbers):
            return None
        sizes = {s: numbers[i] for s, i in self._symbols}
        if sizes and min(sizes.values()) < 2:
            return None
        for i, value in self._defined:
            if value(*sizes.values()) != numbers[i]:
                return None
        executable = programs.get(self.token)
        return None if executable is None else Found(executable, [_constant(numbers[i]) for i in self._constants], sizes or None, self.token)


def _getter(slots: list[int]) -> Callable[[Numbers], Any]:
    """What picks numbers out."""
    return operator.itemgetter(*slots) if slots else _nothing


def _nothing(numbers: Numbers) -> None:
    return None


_constants: dict[tuple[str, bytes], Any] = {}


def _constant(attrs: tuple[str, bytes]) -> Any:
    """The storage of an integer constant."""
    found = _constants.get(attrs)
    if found is None:
        found = _storage(attrs)
        remember(_constants, attrs, found)
    return found


class Structure:
    """What is known of the graphs of one structure."""

    __slots__ = ("programs", "seen", "by_value", "frequent")

    def __init__(self) -> None:
        self.frequent = 0  # how many sets have got programs by value for their uses
        self.programs: list[Program] = []
        self.seen: list[Numbers] = []  # the latest sets that have programs by value
        self.by_value = False  # whether it stays at them

    def find(self, numbers: Numbers) -> Found | None:
        for p in self.programs:
            found = p.found(numbers)
            if found is not None:
                return found
        self.programs = [p for p in self.programs if programs.get(p.token) is not None]
        return None

    def nearest(self, numbers: Numbers) -> Numbers | None:
        """Of the sets before, the one that differs least."""
        return min(reversed(self.seen), key=lambda s: sum(map(operator.ne, s, numbers)), default=None)


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
_known: dict[Any, Known] = {}


class Generalised(NamedTuple):
    """A program to be compiled, its graph, and where it goes."""

    program: Program
    graph: Graph
    structure: Structure
    key: Any
    numbers: Numbers

    def compiled(self, device: str | None) -> Found | None:
        """The program, compiled; None where the compiler does not take it."""
        try:
            executable = compile_once(("lazy numbers", self.key, self.numbers), lambda: self.graph, device=device)
        except Exception as e:  # of whatever kind: the program by value serves, and tells what is wrong with the expression
            why = f"{type(e).__name__}: {e}"
            debug.tell(debug.GRAPHS, "no program for all numbers", lambda: why)
            self.structure.by_value = True
            self.structure.seen.append(self.numbers)
            return None
        keep(self.program.token, executable)
        self.structure.programs.insert(0, self.program)
        del self.structure.programs[PROGRAMS_PER_STRUCTURE:]
        return self.program.found(self.numbers)


def look_up(walk: Any) -> Found | Generalised | None:
    """The program with operands for a walk whose key has none by value, or what to compile as one; None where it is to be compiled by value."""
    known = _known.get(walk.key)
    if known is not None:
        executable = programs.get(known.token)
        if not known.is_frequent() and executable is not None:
            return Found(executable, known.operands, known.sizes, known.token)
        _known.pop(walk.key)
        if known.left <= 0:
            return None
    key, numbers = split(walk.key)
    structure: Structure | None = structures.get(key)
    if structure is None:
        structures.put(key, structure := Structure())
    found = structure.find(numbers)
    if found is not None:
        if len(_known) >= _KNOWN_LIMIT:
            _known.clear()
        _known[walk.key] = Known(found, structure, _FREQUENT_LARGE_USES if found.sizes and _is_large(walk) else _FREQUENT_USES)
        return found
    return _to_compile(walk, structure, key, numbers)


def _to_compile(walk: Any, structure: Structure, key: Any, numbers: Numbers) -> Generalised | None:
    """A program with operands for numbers that no program takes; None for one by value."""
    before = structure.nearest(numbers)
    made = None
    if before is not None and not structure.by_value:
        made = _generalised(walk, structure, key, numbers, before)
    _tell(walk, numbers, before, made)
    if made is None:
        structure.seen.append(numbers)
        del structure.seen[:-_REMEMBERED]
    return made


def _is_large(walk: Any) -> bool:
    return any(s.aval.nbytes >= MIN_DONATED_BYTES for s in walk.storages)


def clear() -> None:
    """Forgets all structures."""
    structures.clear()
    for memo in (_known, _operands, _constants, _forms):
        memo.clear()


def _tell(walk: Any, numbers: Numbers, before: Numbers | None, made: Generalised | None) -> None:
    """Says on stderr why an expression is compiled, where ``explain_misses`` asks for it."""
    if settings.explain_misses:
        print(explanation(walk, numbers, before, made is not None), file=sys.stderr)


def explanation(walk: Any, numbers: Numbers, before: Numbers | None, operands: bool) -> str:
    """One line for each number that differs from those ``before``."""
    name = f"lazy expression of {len(walk.order)} nodes, {walk.roots[0].op.name}"
    if before is None:
        return f"{name}: compiled, because its structure is new"
    names = [n for _, of in _places(walk.order) for n in of]
    changed = [f"  {n} changed: {_shown(a)} -> {_shown(b)}" for n, a, b in zip(names, before, numbers, strict=True) if a != b]
    if not changed:
        return f"{name}: compiled again for the same numbers: the code had been evicted"
    end = "  from now on these are operands" if operands else "  it is compiled by value"
    return "\n".join([f"{name}: compiled again, because", *dict.fromkeys(changed), end])


def _shown(number: Any) -> Any:
    return np.frombuffer(number[1], number[0])[0].item() if type(number) is tuple else number


# --- recording again -------------------------------------------------------------------------------------------------


def _generalised(walk: Any, structure: Structure, key: Any, numbers: Numbers, before: Numbers) -> Generalised | None:
    """The program in which what differs between two sets of numbers is an operand; None where there can be none."""
    differing = [i for i, (a, b) in enumerate(zip(numbers, before, strict=True)) if a != b]
    constants = [i for i in differing if type(numbers[i]) is tuple]
    sizes = [i for i in differing if type(numbers[i]) is not tuple]
    if not differing or walk.device is not None or (sizes and (min(numbers[i] for i in sizes) < 2 or len(walk.order) > _MAX_NODES)):
        return None
    if any(x.op is place for x in walk.order) or depends_on_form(walk.order, walk.roots, bool(sizes)):
        return None
    groups: dict[tuple[int, int], list[int]] = {}
    for i in sizes:
        groups.setdefault((numbers[i], before[i]), []).append(i)
    try:
        made = _Recording(walk, set(constants), groups)
    except (HologramError, TypeError):  # what the type rules do not take
        structure.by_value = structure.by_value or len(structure.seen) >= _REMEMBERED
        return None
    return Generalised(Program(numbers, constants, made.slots, made.defined), made.graph, structure, key, numbers)


class _Recording:
    """The graph of ``walk`` again: constants in the slots ``constants`` are arguments, sizes in ``groups``, by their values now and before, symbols.

    ``slots`` are those of each symbol, ``defined`` the symbols that are polynomials in others.
    """

    def __init__(self, walk: Any, constants: set[int], groups: dict[tuple[int, int], list[int]]) -> None:
        self.walk, self.constants = walk, constants
        symbols = {pair: size_operand(i) for i, pair in enumerate(groups)}
        names = {pair: str(e) for pair, e in symbols.items()}
        self.symbols = {str(e): e for e in symbols.values()}
        self.slots = {names[pair]: slots for pair, slots in groups.items()}
        self.symbol_of = {i: s for s, slots in self.slots.items() for i in slots}
        self.now = {s: pair[0] for pair, s in names.items()}
        self.before = {s: pair[1] for pair, s in names.items()}
        self.by_pair = names
        self.defined: dict[str, Int] = {}
        while True:
            graph = self._graph()
            if graph is not None:
                self.graph: Graph = graph
                return

    def _size(self, number: Int, slot: int) -> Int:
        name = self.symbol_of.get(slot)
        if name is None:
            return number
        return self.defined.get(name, self.symbols[name])

    def _graph(self) -> Graph | None:
        """The graph, or None after another symbol was defined. Raises where there is none."""
        build = Builder()
        made: dict[Node, Node] = {}
        attrs: dict[Node, tuple[Any, ...]] = {}
        slot = 0
        inputs: dict[str, list[tuple[Node, Any]]] = {"leaf": [], "float": [], "integer": []}
        for node, names in _places(self.walk.order):
            slots = range(slot, slot := slot + len(names))
            if node.op is leaf:
                inputs["leaf"].append((node, tuple([self._size(n, i) for n, i in zip(node.shape, slots, strict=True)])))
            elif node.op is const and names and slots[0] in self.constants:
                inputs["integer"].append((node, ()))
            elif node.op is not const:
                attrs[node] = self._attrs(node, slots)
        inputs["float"] = [(node, ()) for node in self.walk.scalar_nodes]
        sources = [x for of in inputs.values() for x in of]
        for i, (node, shape) in enumerate(sources):
            made[node] = build(input_, (), (i, shape, node.dtype.name, None))
        for node in topological(self.walk.roots, stop=made.__contains__):
            if node not in made:
                operands = tuple([made[x] for x in node.inputs])
                try:
                    made[node] = build(node.op, operands, attrs.get(node, node.attrs))
                except (HologramError, TypeError):
                    if self._define(node, operands, attrs.get(node, node.attrs)):
                        return None
                    raise
                self._require_right(node, made[node])
        return Graph([made[x] for x, _ in sources], [made[x] for x in self.walk.roots])

    def _attrs(self, node: Node, slots: range) -> tuple[Any, ...]:
        """A node's attributes with symbols."""
        out: list[Any] = []
        rest = iter(slots)
        for name, value in zip(node.op.attrs, node.attrs, strict=True):
            out.append(tuple([self._size(n, next(rest)) for n in value]) if name in node.op.sizes else value)
        return tuple(out)

    def _require_right(self, node: Node, new: Node) -> None:
        """Raises TypeError where symbols are more than an op takes, or a type comes out wrong."""
        if tuple([substitute(n, self.now) for n in new.shape]) != node.shape or new.dtype is not node.dtype:
            raise TypeError(f"{node.op.name} of symbolic extents is {new.shape}")
        if node.op.kind not in _SYMBOLIC_KINDS and any(symbols_of((x.shape, x.attrs)) for x in (new, *new.inputs)):
            raise TypeError(f"{node.op.name} takes no symbolic extents")

    def _define(self, node: Node, operands: tuple[Node, ...], attrs: tuple[Any, ...]) -> bool:
        """Defines a symbol, so that the type rule of ``node`` may hold; whether it could."""
        if node.op is reshape:
            a, b = prod(operands[0].shape), prod(attrs[0])
            return self._equal(a, b) or self._equal(b, a)
        for e in (e for x in operands for e in x.shape if isinstance(e, Expr)):
            pair = substitute(e, self.now), substitute(e, self.before)
            name = self.by_pair.get(pair)  # type: ignore[arg-type]
            if name is not None and name not in self.defined and self._equal(self.symbols[name], e):
                return True
        return False

    def _equal(self, a: Int, b: Int) -> bool:
        """Defines the symbol of which ``a`` is a multiple so that ``a`` equals ``b``."""
        if not isinstance(a, Expr) or len(a.terms) != 1:
            return False
        ((monomial, factor),) = a.terms.items()
        terms = b.terms if isinstance(b, Expr) else {(): b}
        if len(monomial) != 1 or monomial[0].args or any(c % factor for c in terms.values()):
            return False
        name = monomial[0].name
        if name in self.defined or name in {x.name for x in atoms(b)}:
            return False
        value: Int = Expr({m: c // factor for m, c in terms.items()}) if isinstance(b, Expr) else b // factor
        if not isinstance(value, Expr):
            return False
        self.defined = {s: substitute(e, {name: value}) for s, e in self.defined.items()} | {name: value}
        return True
