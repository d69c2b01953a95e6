"""What depends on nothing but constants is computed once, ahead of all calls, and held.

Constants are ``leaf`` nodes: the arrays that a program closes over, whose values never change. A value that is made of them alone, and that
something else reads which depends on arguments, becomes a leaf itself; a graph of its own computes it. Two kinds of values are held:

- results of work (elementwise work, reductions, gathers, concatenations …) that are no larger than the constants that they are made of. So nothing
  is held that is a small array spread or drawn out; what is computed from numbers and counters alone is no larger work than reading it.
- factors of products whose elements the product's loops would have to pack in each call: they are held in *panels*, in the order in which a tile of
  the product reads them, (blocks of columns, …, summed axis, columns of a block), the last block filled up. See ``loops.py``.

This works on prepared graphs (:mod:`hologram.graph.prepare`), where products have their final form.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from hologram.graph.layout import places, step
from hologram.graph.loops import FAR_BYTES, NARROW, Sharing, Tile, panel_width
from hologram.graph.prepare import Variation
from hologram.primitives.leaves import leaf
from hologram.primitives.op import TABLE
from hologram.symbolic import Int, prod
from hologram.trace.node import Builder, Graph, Node, const_attrs, topological

_PURE = ("elementwise", "movement", "reduce", "scan", "gather")  # kinds of work that is done ahead
_TERMS = ("mul", "pair_dot")  # of sums of products


class Held:
    """Stands for the storage of a value that is computed ahead: its number among them."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index


class Ahead(NamedTuple):
    """A graph in which values are leaves whose storages are :class:`Held`, and the graph without inputs whose results these values are."""

    graph: Graph
    values: Graph


def computed_ahead(graph: Graph, limit: int, tile: Sharing | None) -> Ahead | None:
    """``graph`` in two parts, values of up to ``limit`` bytes together being held; None where there is nothing to hold. ``tile``: as for lowering."""
    nodes = graph.nodes()
    if not any(n.op is leaf for n in nodes):
        return None
    found = _Search(nodes, limit, tile)
    if not found.held:
        return None
    return Ahead(found.rest(graph), Graph([], list(found.held)))


class _Search:
    """``made_of`` gives the leaves that a value is made of, for those that are made of nothing else; ``held`` the values to hold, each with its leaf;
    ``instead`` what a reader reads in the place of one of its inputs."""

    def __init__(self, nodes: list[Node], limit: int, tile: Sharing | None) -> None:
        self.build, self.left, self.tile = Builder(), limit, tile
        self.held: dict[Node, Node] = {}
        self.instead: dict[tuple[Node, Node], Node] = {}
        self.made_of = _constants(nodes)
        self.works: set[Node] = set()
        for n in nodes:
            if n in self.made_of and n.op.kind != "leaf" and (_is_work(n) or any(x in self.works for x in n.inputs)):
                self.works.add(n)
        self.varies = Variation()
        self.summed = _summed(nodes)
        for n in nodes:
            self.varies.note(n)
            if n not in self.made_of:
                for x in dict.fromkeys(n.inputs):
                    if self.made_of.get(x):
                        self._look_at(n, x)

    def _look_at(self, reader: Node, x: Node) -> None:
        """Holds what ``reader`` reads as ``x``, or what that is moved from, where it pays."""
        value = self._panels(reader, x) if reader in self.summed else None
        if value is not None:
            self.instead[reader, x] = value
            return
        while x.op.kind == "movement" and len(x.inputs) == 1 and x.inputs[0].size <= x.size:  # type: ignore[operator]
            x = x.inputs[0]
        if x in self.works and _nbytes([x]) <= _nbytes(self.made_of[x]):
            self._hold(x)

    def _hold(self, x: Node) -> Node | None:
        """The leaf that stands for ``x``, None where there is no room for it."""
        if x not in self.held:
            if _nbytes([x]) > self.left:
                return None
            self.left -= _nbytes([x])
            self.held[x] = self.build(leaf, (), (Held(len(self.held)), x.shape, x.dtype.name))
        return self.held[x]

    def rest(self, graph: Graph) -> Graph:
        """The graph that reads what is held."""
        image: dict[Node, Node] = dict(self.held)
        for n in graph.nodes():
            if n not in image:
                inputs = tuple([self.instead[n, x] if (n, x) in self.instead else image[x] for x in n.inputs])
                image[n] = n if inputs == n.inputs else Node(n.op, inputs, n.attrs, n.shape, n.dtype)
        lines = {image[n]: line for n, line in graph.lines.items() if n in image}
        return Graph(graph.inputs, [n if n in self.held else image[n] for n in graph.outputs], lines)

    # --- panels --------------------------------------------------------------------------------------------------------

    def _panels(self, terms: Node, factor: Node) -> Node | None:
        """``factor`` as it is read from panels, where rows of the product share it and it does not lie as their loops read it."""
        if not isinstance(self.tile, Tile) or len(terms.inputs) != 2 or not isinstance(terms.size, int):
            return None
        other = terms.inputs[terms.inputs[0] is factor]
        own, others = ({i for i in self.varies.of(f) if terms.shape[i] != 1} for f in (factor, other))
        columns = terms.ndim - 1
        rows, down = others - own, sorted(own & others)
        if columns not in own - others or not rows or not down or self.summed[terms] < NARROW:  # type: ignore[operator]
            return None
        width = panel_width(int(terms.shape[columns]), terms.dtype.itemsize, self.tile)
        if factor not in self.works and not _is_far(factor, down[-1], columns):
            return None
        axes = sorted(own)
        core = self._core(factor, axes)
        held = self._hold(self._cut(core, width))
        if held is None:
            return None
        b = self.build
        back = b(TABLE["transpose"], (held,), ((*range(1, core.ndim), 0, core.ndim),))
        flat = b(TABLE["reshape"], (back,), ((*core.shape[:-1], prod(back.shape[-2:])),))
        whole = b(TABLE["slice"], (flat,), ((0,) * core.ndim, core.shape, (1,) * core.ndim))
        return b(TABLE["broadcast"], (whole,), (terms.shape, tuple(axes)))

    def _core(self, factor: Node, axes: list[int]) -> Node:
        """``factor`` along ``axes`` alone: it is the same along the others. What computes it says nothing of these, so programs can share it."""
        made: dict[Node, Node] = {}
        for n in topological([factor], stop=lambda n: n.op.kind != "elementwise" and n.op.name != "slice"):
            made[n] = self._narrowed(n, axes, made) if n.shape else n
        return self.build(TABLE["reshape"], (made[factor],), (tuple(factor.shape[i] for i in axes),))

    def _narrowed(self, n: Node, axes: list[int], made: dict[Node, Node]) -> Node:
        """``n`` with its axes other than ``axes`` cut to one element."""
        b, shape = self.build, tuple(size if i in axes else 1 for i, size in enumerate(n.shape))
        if n.op.kind == "elementwise":
            return b(n.op, tuple([made[x] for x in n.inputs]), n.attrs)
        if n.op.name == "broadcast":
            return b(n.op, n.inputs, (shape, n.attrs[1]))
        whole = (0,) * n.ndim, shape, (1,) * n.ndim
        if n.op.name != "slice":
            return b(TABLE["slice"], (n,), whole)
        cut = [tuple([part[i] if i in axes else first[i] for i in range(n.ndim)]) for part, first in zip(n.attrs, whole, strict=True)]
        return b(n.op, (made[n.inputs[0]],), tuple(cut))

    def _cut(self, x: Node, width: int) -> Node:
        """The last axis in blocks of ``width``, which come first; the last one is filled up."""
        b = self.build
        *before, n = x.shape
        blocks = -(-n // width)
        if n % width:
            zero = b(TABLE["const"], (), const_attrs(0, x.dtype))
            x = b(TABLE["pad"], (x, zero), ((0,) * x.ndim, (*[0] * len(before), blocks * width - n)))
        cut = b(TABLE["reshape"], (x,), ((*before, blocks, width),))
        return b(TABLE["transpose"], (cut,), ((len(before), *range(len(before)), len(before) + 1),))


def _constants(nodes: Iterable[Node]) -> dict[Node, frozenset[Node]]:
    """The leaves that a value is made of, for values of static size that are made of leaves, numbers and counters alone."""
    found: dict[Node, frozenset[Node]] = {}
    for n in nodes:
        if n.op is leaf:
            found[n] = frozenset([n])
        elif n.op.kind == "leaf" and n.op.name != "input" or n.op.kind in _PURE and isinstance(n.size, int) and all(x in found for x in n.inputs):
            found[n] = frozenset[Node]().union(*(found[x] for x in n.inputs))
    return found


def _is_work(n: Node) -> bool:
    """Whether reading ``n`` costs more than reading what it is made of: not for plain movement."""
    return n.op.kind != "movement" or len(n.inputs) > 1


def _summed(nodes: Iterable[Node]) -> dict[Node, Int]:
    """The terms of sums of products, and how many are summed; of those that are summed part by part, of a part."""
    found: dict[Node, Int] = {}
    for n in nodes:
        if n.op.name == "reduce_sum":
            (x,), (axes,) = n.inputs, n.attrs
            terms = x.inputs[0] if x.op.name == "reshape" else x
            if terms.op.name in _TERMS:
                found[terms] = prod(x.shape[a] for a in axes)
    return found


def _is_far(factor: Node, down: int, columns: int) -> bool:
    """Whether neighbours across the columns are no neighbours in memory, or those along the summed axis lie far apart."""
    for e in places(factor):
        apart = step(e, down)
        if step(e, columns) != 1 or not isinstance(apart, int) or apart * factor.dtype.itemsize >= FAR_BYTES:
            return True
    return False


def _nbytes(nodes: Iterable[Node]) -> int:
    return sum(n.size * n.dtype.itemsize for n in nodes)
