"""A walk's graph recorded again, with some of its numbers as operands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hologram.errors import HologramError
from hologram.ir.graph import Graph
from hologram.ir.leaves import const, input_, leaf
from hologram.ir.node import Builder, Node
from hologram.ir.symbolic import MAX_EXTENT, Expr, Int, atoms, bounds, floordiv, prod, size_operand, substitute, symbols_of
from hologram.ir.traversal import topological
from hologram.primitives.control import project, result_types
from hologram.primitives.host.factorizations import TALL, WIDE, is_ordered, svd, wanted_of
from hologram.primitives.host.fourier import irfft
from hologram.primitives.movement import reshape
from hologram.support.user_lines import at_line
from hologram.trace.compiling import size_conditions
from hologram.trace.lazy_programs.structure import as_tuple, places

_SYMBOLIC_KINDS = frozenset(("leaf", "elementwise", "movement", "reduce", "scan", "gather", "mark", "sort", "scatter", "host", "project"))


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
            graph = self._graph()
            if graph is not None:
                self.graph: Graph = graph
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

    def _graph(self) -> Graph | None:
        """The graph, or None after another symbol was defined. Raises where there is none."""
        build = Builder()
        made: dict[Node, Node] = {}
        attrs: dict[Node, tuple[Any, ...]] = {}
        slot = 0
        inputs: dict[str, list[tuple[Node, Any]]] = {"leaf": [], "float": [], "integer": []}
        for node, names in places(self.walk.order):
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
                given = attrs.get(node, node.attrs)
                if node.op is svd:
                    given = self._ordered(operands[0], given)
                elif node.op is project:
                    given = (given[0], result_types(operands[0])[given[0]][0], given[2])
                try:
                    made[node] = build(node.op, operands, given)
                except (HologramError, TypeError):
                    if self._define(node, operands, given):
                        return None
                    raise
                self._require_right(node, made[node])
        return Graph([made[x] for x, _ in sources], [made[x] for x in self.walk.roots], name=f"expression{at_line()}")

    def _attrs(self, node: Node, slots: range) -> tuple[Any, ...]:
        """A node's attributes with symbols."""
        out: list[Any] = []
        rest = iter(slots)
        for name, value in node.op.named(node.attrs):
            if name in node.op.sizes:
                sizes = tuple([self._size(n, next(rest)) for n in as_tuple(value)])
                value = sizes if type(value) is tuple else sizes[0]
            out.append(value)
        return tuple(out)

    def _ordered(self, x: Node, attrs: tuple[Any, ...]) -> tuple[Any, ...]:
        """The attributes of ``svd``. Where extents do not tell whether there are more rows than columns, it stays as it is now, under a condition on
        sizes."""
        (mode,) = attrs
        rows_less_columns = x.shape[-2] - x.shape[-1]
        if mode != wanted_of(mode) or is_ordered(rows_less_columns):
            return attrs
        tall = substitute(rows_less_columns, self.now) >= 0
        self.ordered[rows_less_columns] = (0, MAX_EXTENT) if tall else (-MAX_EXTENT, 0)
        return (mode + (TALL if tall else WIDE),)

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
        for monomial, factor in a.terms.items():
            if len(monomial) != 1 or monomial[0].args or monomial[0].name in self.defined:
                continue
            name = monomial[0].name
            rest = b - (a - factor * self.symbols[name])  # which is factor times the symbol
            if not isinstance(rest, Expr) or name in {x.name for x in atoms(rest)} or any(c % factor for c in rest.terms.values()):
                continue
            value = Expr({m: c // factor for m, c in rest.terms.items()})
            self.defined = {s: substitute(e, {name: value}) for s, e in self.defined.items()} | {name: value}
            return True
        return False
