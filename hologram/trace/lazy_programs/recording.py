"""A walk's graph recorded again, with some of its numbers as operands."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from hologram.errors import HologramError
from hologram.ir.graph import Body, Graph, bodies
from hologram.ir.leaves import const, input_, leaf
from hologram.ir.node import Builder, Node
from hologram.ir.symbolic import MAX_EXTENT, Expr, Int, atoms, bounds, floordiv, prod, size_operand, substitute, symbols_of
from hologram.ir.traversal import topological
from hologram.primitives.control import project, projected_types, switch
from hologram.primitives.host.factorizations import TALL, WIDE, is_ordered, svd, wanted_of
from hologram.primitives.host.fourier import irfft
from hologram.primitives.movement import reshape
from hologram.support.user_lines import at_line
from hologram.trace.compiling import size_conditions
from hologram.trace.lazy_programs.structure import body_forms, places

_PER_ELEMENT = frozenset(("leaf", "elementwise", "movement", "gather", "mark"))  # kinds of ops in loops of symbolic extents
_SYMBOLIC_KINDS = frozenset(("leaf", "elementwise", "movement", "reduce", "scan", "gather", "mark", "sort", "scatter", "host", "project", "control"))


class _DefinedError(Exception):
    """A symbol was defined: the graph is to be recorded again."""


def _sums_in_one_order(body: Body) -> bool:
    """Whether a loop's body computes no float for which the compiler may choose an order by sizes: no sum, and nothing that may become one."""
    return all([x.dtype.kind not in "fc" or (x.op.kind in _PER_ELEMENT and not _is_outer_product(x)) for x in body.graph.nodes()])


def _is_outer_product(x: Node) -> bool:
    return x.op.name == "mul" and all([i.op.name == "broadcast" for i in x.inputs])


class Recording:
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
        self.ordered: dict[Int, tuple[int, int]] = {}  # ranges of rows less columns
        while True:
            self.ordered.clear()
            try:
                self.graph: Graph = self._graph()
            except _DefinedError:
                continue
            return

    def extents(self) -> list[Int]:
        """Extents that are made of symbols, each once: at sizes where one of them is 1, rules of static programs see another axis."""
        found = dict.fromkeys(n for x in self.graph.nodes() for n in x.shape if isinstance(n, Expr) and str(n) not in self.symbols)
        return [n for n in found if (bounds(n)[0] or 0) < 2]

    def conditions(self) -> Mapping[Int, tuple[int, int]]:
        """The ranges in which sizes must be, so that matrices are as tall as they are, and programs by value sum in the same order."""
        if not self.symbols or not any(x.op.kind == "reduce" and x.dtype.kind in "fc" for x in self.graph.nodes()):
            return self.ordered
        return {**self.ordered, **size_conditions(self.graph)}

    def _size(self, number: Int, slot: int) -> Int:
        name = self.symbol_of.get(slot)
        if name is None:
            return number
        return self.defined.get(name, self.symbols[name])

    def _graph(self) -> Graph:
        """The graph. Raises _DefinedError after another symbol was defined, and TypeError or HologramError where there is none."""
        build = Builder()
        made: dict[Any, Node] = {}  # by the nodes of the walk, and the slots of constants in bodies
        slots_of: dict[Node, range] = {}
        slot = 0
        inputs: dict[str, list[tuple[Any, Any, str]]] = {"leaf": [], "float": [], "integer": []}
        for node, names in places(self.walk.order):
            slots = slots_of[node] = range(slot, slot := slot + len(names))
            if node.op is leaf:
                shape = tuple([self._size(n, i) for n, i in zip(node.shape, slots, strict=True)])
                inputs["leaf"].append((node, shape, node.dtype.name))
            elif node.op is const and names and slots[0] in self.constants:
                inputs["integer"].append((node, (), node.dtype.name))
            elif node.op.kind == "control":
                inputs["integer"] += [(i, (), self.walk.numbers[i][0]) for i in slots if i in self.constants]
        inputs["float"] = [(node, (), node.dtype.name) for node in self.walk.scalar_nodes]
        sources = [x for of in inputs.values() for x in of]
        for i, (key, shape, dtype) in enumerate(sources):
            made[key] = build(input_, (), (i, shape, dtype, None))
        for node in topological(self.walk.roots, stop=made.__contains__):
            if node not in made:
                made[node] = self._made(build, node, tuple([made[x] for x in node.inputs]), slots_of.get(node, ()), made)
        return Graph([made[x] for x, _, _ in sources], [made[x] for x in self.walk.roots], name=f"expression{at_line()}")

    def _made(self, build: Builder, node: Node, operands: tuple[Node, ...], slots: Iterable[int], made: Mapping[Any, Node]) -> Node:
        """The node again, of other operands and with operands in ``slots``; ``made`` has the constants of bodies."""
        given = node.attrs
        if node.op.kind == "control":
            operands, given = self._control(node, operands, list(slots), made)
        elif node.op is svd:
            given = self._ordered(operands[0], given)
        elif node.op is project:
            given = (given[0], projected_types(operands[0])[given[0]][0], given[2])
        elif node.op is not const:
            given = self._attrs(node, iter(slots))
        try:
            new = build(node.op, operands, given)
        except (HologramError, TypeError):
            if self._define(node, operands, given):
                raise _DefinedError from None
            raise
        self._require_right(node, new)
        return new

    def _attrs(self, node: Node, slots: Iterator[int]) -> tuple[Any, ...]:
        """A node's attributes with symbols."""
        if not node.op.sizes:
            return node.attrs
        return tuple([self._sizes(value, slots) if name in node.op.sizes else value for name, value in node.op.named(node.attrs)])

    def _sizes(self, value: Any, slots: Iterator[int]) -> Any:
        """Sizes of an attribute, or one."""
        return tuple([self._size(n, next(slots)) for n in value]) if type(value) is tuple else self._size(value, next(slots))

    def _control(
        self, node: Node, operands: tuple[Node, ...], slots: list[int], made: Mapping[Any, Node]
    ) -> tuple[tuple[Node, ...], tuple[Any, ...]]:
        """Operands and attributes of a control node whose bodies take constants in ``slots`` as arguments."""
        constants = [i for i in slots if i in self.constants]
        at = 0 if node.op is switch else dict(node.op.named(node.attrs))["consts"]
        rest = iter(slots)
        attrs: list[Any] = []
        for name, value in node.op.named(node.attrs):
            if type(value) is Body:
                value = self._body(value, rest, constants, at)
            elif type(value) is tuple and node.op is switch:
                value = tuple([self._body(b, rest, constants, at) for b in value])
            elif name in node.op.sizes:
                value = self._sizes(value, rest)
            elif name == "consts":
                value += len(constants)
            attrs.append(value)
        at += node.op is switch  # behind the index
        return (*operands[:at], *[made[i] for i in constants], *operands[at:]), tuple(attrs)

    def _body(self, body: Body, slots: Iterator[int], constants: Sequence[int], at: int) -> Body:
        """A body that takes ``constants`` as its arguments from number ``at`` on."""
        build = Builder()
        made: dict[Any, Node] = {}
        added = [build(input_, (), (at + k, (), self.walk.numbers[i][0], None)) for k, i in enumerate(constants)]
        made.update(zip(constants, added, strict=True))
        for node, _, numbers in body_forms(body):
            own = list(itertools.islice(slots, len(numbers)))
            if node.op is input_:
                index, shape, dtype, token = node.attrs
                index += len(constants) if index >= at else 0
                made[node] = build(input_, (), (index, self._sizes(shape, iter(own)), dtype, token))
            elif node.op is const and own and own[0] in made:
                made[node] = made[own[0]]
            else:
                made[node] = self._made(build, node, tuple([made[x] for x in node.inputs]), own, made)
        inputs = [made[x] for x in body.graph.inputs]
        inputs[at:at] = added
        return Body(Graph(inputs, [made[x] for x in body.graph.outputs]))

    def _ordered(self, x: Node, attrs: tuple[Any, ...]) -> tuple[Any, ...]:
        """The attributes of ``svd``. Where extents do not tell whether there are more rows than columns, it stays as it is now, under a condition on
        sizes."""
        (mode,) = attrs
        rows_less_columns = x.shape[-2] - x.shape[-1]
        if mode != wanted_of(mode) or is_ordered(rows_less_columns):
            return attrs
        now = substitute(rows_less_columns, self.now)
        tall = isinstance(now, int) and now >= 0
        self.ordered[rows_less_columns] = (0, MAX_EXTENT) if tall else (-MAX_EXTENT, 0)
        return (mode + (TALL if tall else WIDE),)

    def _require_right(self, node: Node, new: Node) -> None:
        """Raises TypeError where symbols are more than an op takes, or a type comes out wrong."""
        if tuple([substitute(n, self.now) for n in new.shape]) != node.shape or new.dtype is not node.dtype:
            raise TypeError(f"{node.op.name} of symbolic extents is {new.shape}")
        if node.op.kind == "control" and symbols_of(new.attrs) and not all(map(_sums_in_one_order, bodies(node))):
            raise TypeError(f"{node.op.name} may sum in another order for symbolic extents")
        if node.op.kind not in _SYMBOLIC_KINDS and any(symbols_of((x.shape, x.attrs)) for x in (new, *new.inputs)):
            raise TypeError(f"{node.op.name} takes no symbolic extents")

    def _define(self, node: Node, operands: tuple[Node, ...], attrs: tuple[Any, ...]) -> bool:
        """Defines a symbol, so that the type rule of ``node`` may hold; whether it could."""
        if node.op is reshape:
            a, b = prod(operands[0].shape), prod(attrs[0])
            return self._equal(a, b) or self._equal(b, a)
        if node.op is irfft:
            axes, n, _ = attrs
            return self._equal(operands[0].shape[axes[-1]], floordiv(n, 2) + 1)
        for e in (e for x in operands for e in x.shape if isinstance(e, Expr)):
            pair = substitute(e, self.now), substitute(e, self.before)
            name = self.by_pair.get(pair)  # type: ignore[arg-type]
            if name is not None and name not in self.defined and self._equal(self.symbols[name], e):
                return True
        return False

    def _equal(self, a: Int, b: Int) -> bool:
        """Defines a symbol of ``a``, which stands in one term, so that ``a`` equals ``b``."""
        if not isinstance(a, Expr):
            return False
        for name in dict.fromkeys(x.name for monomial in a.terms for x in monomial if not x.args):
            value = None if name in self.defined or name not in self.symbols else _solved(b - a, name)
            if isinstance(value, Expr):
                self.defined = {s: substitute(e, {name: value}) for s, e in self.defined.items()} | {name: value}
                return True
        return False


def _solved(zero: Int, name: str) -> Int | None:
    """The symbol ``name`` as a polynomial in others, so that ``zero`` is 0, where it stands in one term, whose other factors all terms have; None
    where it does not. Symbols are not 0."""
    terms = zero.terms if isinstance(zero, Expr) else {}
    at = [m for m in terms if any(x.name == name for x in m)]
    if len(at) != 1 or any(x.args for x in at[0]) or sum(x.name == name for x in at[0]) != 1:
        return None
    common, factor = [x for x in at[0] if x.name != name], terms[at[0]]
    found: dict[Any, int] = {}
    for monomial, c in terms.items():
        if monomial != at[0]:
            rest = list(monomial)
            for x in common:
                if x not in rest:
                    return None
                rest.remove(x)
            if c % factor or any(name in {y.name for y in atoms(Expr({(x,): 1}))} for x in rest):
                return None
            found[tuple(rest)] = -c // factor
    return Expr(found) if any(found) else None  # a number that varies is no constant
