"""Constant folding: what depends on nothing but constants is computed once, before all calls.

Constants are ``leaf`` nodes: the arrays that a program closes over, whose values never change. A value that is made of them alone, and that
something else reads which depends on arguments, becomes a leaf itself; a graph of its own computes it. What the steps of a loop do not change is as
good as constant there: it is computed before the loop (:mod:`hologram.graph.constants.loop_prepack`). These values are folded:

- results of work (elementwise work, reductions, gathers, concatenations …) that are no larger than the constants that they are made of. So nothing
  is folded that is a small array spread or drawn out, and nothing that is made of numbers and counters alone.
- factors of products whose elements the product's loops would have to pack in each call: they are folded in *panels*, in the order in which a tile of
  the product reads them, (blocks of columns, …, summed axis, columns of a block), the last block filled up. See ``tiles.py``. Rows of such a product
  may be of any number.

This works on legalized graphs (:mod:`hologram.graph.legalize.legalize`), where products have their final form.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeGuard

from hologram.graph.legalize.variation import Variation
from hologram.graph.schedule.layout import memory_offsets, stride_along
from hologram.graph.schedule.nest import NARROW
from hologram.graph.schedule.tiles import FAR_BYTES, CpuTileConfig, TileConfig, panel_width
from hologram.ir.graph import Graph
from hologram.ir.leaves import FoldedConstant, input_, leaf
from hologram.ir.node import Builder, Node
from hologram.ir.op import TABLE, Op
from hologram.ir.symbolic import Int, bounds, prod, symbols_of
from hologram.ir.traversal import reachable, topological
from hologram.primitives.scalar.elementwise import PRODUCTS

_PURE = ("elementwise", "movement", "reduce", "scan", "gather")  # kinds of work that is done ahead
MIN_PANELS = 4  # keep the threads busy
MAX_ONE_THREAD_BYTES = 2**18  # a matrix that one thread may as well read
MAX_FILL_RATIO = 2  # times what it is made of: the most that a value may have which stands in memory anyway
_TERMS = (*(op.name for op in PRODUCTS), "pair_dot")  # of sums of products


class Folded(NamedTuple):
    """A graph in which some values are given, as leaves whose storages are :class:`FoldedConstant` or as further inputs, and the graph whose results
    these values are."""

    graph: Graph
    values: Graph


def fold_constants(graph: Graph, limit: int, tile: TileConfig | None, exact: bool) -> Folded | None:
    """``graph`` in two parts, values of up to ``limit`` bytes together being folded; None where there is nothing to fold. ``tile``: as for lowering;
    ``exact``: sums keep their order."""
    leaves = [n for n in graph.nodes() if n.op is leaf]
    if not graph.inputs or not leaves:
        return None  # or nothing reads what would be folded
    found = _Search(graph, leaves, limit, tile, exact)
    return Folded(found.rest(), Graph([], list(found.folded))) if found.folded else None


def prepacked(body: Graph, given: Sequence[Node], limit: int, tile: TileConfig | None, exact: bool) -> Folded | None:
    """``body`` with further inputs, at the end, for what depends on nothing but its inputs ``given`` and is read in panels, or by loops and branches;
    ``values`` computes it from ``given``."""
    found = _Search(body, given, limit, tile, exact, in_body=True)
    if not found.folded:
        return None
    rest = found.rest()
    return Folded(Graph([*rest.inputs, *found.folded.values()], rest.outputs, rest.lines), Graph(given, list(found.folded)))


class _TransposedSum(NamedTuple):
    """A sum along rows as one down columns: what its terms are, the factor that is no constant, the new order of the terms' axes, the panels, and
    the order in which the axes of the new sum are those of the old one."""

    product: Op
    other: Node
    order: tuple[int, ...]
    view: Node
    back: tuple[int, ...]


class _Search:
    """``made_of`` gives the constants that a value is made of, for those that are made of nothing else, ``works`` those of them that are more than
    moved; ``folded`` the values to fold, each with the leaf or the input that stands for it; ``instead`` what a reader reads in the place of one of
    its inputs; ``transposed`` the sums along rows that become sums down columns of panels."""

    def __init__(self, graph: Graph, constants: Sequence[Node], limit: int, tile: TileConfig | None, exact: bool, in_body: bool = False) -> None:
        self.graph, self.left, self.tile, self.exact, self.in_body = graph, limit, tile, exact, in_body
        self.build, self.varies = Builder(), Variation()
        self.folded: dict[Node, Node] = {}
        self.instead: dict[tuple[Node, Node], Node] = {}
        self.transposed: dict[Node, _TransposedSum] = {}
        nodes = graph.nodes()
        self.build.table.update({(n.op, n.inputs, n.attrs): n for n in nodes})  # what is made is interned with what is there
        self.made_of, self.summed = _constants(nodes, constants), _summed(nodes)
        self.works = _works(nodes, self.made_of)
        for n in nodes:
            self.varies.note(n)
            if n not in self.made_of:
                self._note_transposed(n)
        self._spread_factors(nodes)
        for n in self._readers():
            for x in dict.fromkeys(n.inputs):
                if self.made_of.get(x):
                    self._look_at(n, x)

    def _spread_factors(self, nodes: Iterable[Node]) -> None:
        """Holds in panels the constant factors of products with a varying number of rows. Spread along these, a factor is itself no constant."""
        spread = {n for n in nodes if n.op.name == "broadcast" and n not in self.made_of and self.made_of.get(n.inputs[0])}
        self.made_of |= {n: self.made_of[n.inputs[0]] for n in spread}
        self.works |= {n for n in spread if n.inputs[0] in self.works}
        for terms in self.summed:
            for x in terms.inputs:
                if x in spread and terms not in self.transposed and (value := self._panels(terms, x)) is not None:
                    self.instead[terms, x] = value
        self.made_of = {n: of for n, of in self.made_of.items() if n not in spread}

    def _readers(self) -> list[Node]:
        """What depends on arguments, but for the terms of sums that are transposed."""
        outputs = [x for x in self.graph.outputs if x not in self.made_of]
        return [n for n in reachable(outputs, self._arguments_of) if n not in self.transposed]

    def _arguments_of(self, n: Node) -> list[Node]:
        """What ``n`` reads that depends on arguments."""
        return [self.transposed[n].other] if n in self.transposed else [x for x in n.inputs if x not in self.made_of and (n, x) not in self.instead]

    def _look_at(self, reader: Node, x: Node) -> None:
        """Holds what ``reader`` reads as ``x``, or what that is moved from, where it pays."""
        value = self._panels(reader, x) if reader in self.summed else None
        if value is not None:
            self.instead[reader, x] = value
            return
        if reader.op.kind == "control":
            self._look_at_operand(x)
            return
        while x.op.kind == "movement" and len(x.inputs) == 1 and _is_no_larger(x.inputs[0], x):
            x = x.inputs[0]
        if self.in_body:
            return  # canonical reduction has taken out of bodies what pays
        if x in self.works and self._extent(x) == x.size and _fits(_nbytes([x]), _nbytes(self.made_of[x])):
            self._fold(x)

    def _look_at_operand(self, x: Node) -> None:
        """Holds what a loop or branch reads as ``x``, unless it stands in memory."""
        while x.op.name == "reshape":
            (x,) = x.inputs
        if x.op.kind != "leaf" and _fits(_nbytes([x]), MAX_FILL_RATIO * _nbytes(self.made_of[x])):
            self._fold(x)

    def _extent(self, x: Node) -> Int:
        """How many elements of ``x`` may differ: fewer than it has where it is spread."""
        return prod(n for i, n in enumerate(x.shape) if i in self.varies.of(x))

    def _fold(self, x: Node) -> Node | None:
        """What stands for ``x``, None where there is no room for it."""
        if x not in self.folded:
            nbytes = _nbytes([x])
            if not _fits(nbytes, self.left):
                return None
            self.left -= nbytes
            folded = FoldedConstant(len(self.folded))
            attrs = (len(self.graph.inputs) + folded.index, x.shape, x.dtype.name, folded) if self.in_body else (folded, x.shape, x.dtype.name)
            self.folded[x] = self.build(input_ if self.in_body else leaf, (), attrs)
        return self.folded[x]

    def rest(self) -> Graph:
        """The graph that reads what is folded."""
        graph, image = self.graph, dict(self.folded)
        for n in graph.nodes():
            if n in self.transposed:
                image[n] = self._down_columns(self.transposed[n], image[self.transposed[n].other])
            elif n not in image:
                inputs = tuple([self.instead[n, x] if (n, x) in self.instead else image[x] for x in n.inputs])
                image[n] = n if inputs == n.inputs else Node(n.op, inputs, n.attrs, n.shape, n.dtype)
        lines = {image[n]: line for n, line in graph.lines.items() if n in image}
        return Graph(graph.inputs, [n if n in self.folded else image[n] for n in graph.outputs], lines)

    # --- panels --------------------------------------------------------------------------------------------------------

    def _panels(self, terms: Node, factor: Node) -> Node | None:
        """``factor`` as it is read from panels, where it does not lie as the product's loops read it."""
        if not isinstance(self.tile, CpuTileConfig) or len(terms.inputs) != 2:
            return None
        own, others = self._axes(terms, factor)
        columns, down = terms.ndim - 1, sorted(own & others)
        if not all(isinstance(terms.shape[i], int) for i in own) or not isinstance(self.summed[terms], int):
            return None  # rows alone may be of any number
        if columns not in own - others or not down or self.summed[terms] < NARROW:  # type: ignore[operator]
            return None
        if not others - own and not self._suits_vectors(factor, terms.shape[columns]):
            return None
        if factor not in self.works and not _is_far(factor, down[-1], columns):
            return None
        return self._view(terms, factor, sorted(own), tuple(range(terms.ndim)))

    def _note_transposed(self, node: Node) -> None:
        """Notes a product of few vectors and a constant matrix that is summed along its rows, or in bands of them, and is better summed down the
        columns of its panels."""
        found = None if self.exact or not isinstance(self.tile, CpuTileConfig) else _whole_sum(node)
        if found is None:
            return
        terms, order = found
        *results, summed = order
        if not isinstance(terms.size, int) or terms.shape[summed] < NARROW:  # type: ignore[operator]
            return
        for factor, other in (terms.inputs, terms.inputs[::-1]):
            own, others = self._axes(terms, factor)
            columns = max(own - others, default=None)
            if not self.made_of.get(factor) or columns is None or summed not in own & others or not self._suits_vectors(factor, terms.shape[columns]):
                continue
            kept = [a for a in results if a != columns]
            view = self._view(terms, factor, sorted(own), (*kept, summed, columns))
            if view is not None:
                self.transposed[node] = _TransposedSum(
                    terms.op, other, (*kept, summed, columns), view, tuple([*kept, columns].index(a) for a in results)
                )

    def _down_columns(self, t: _TransposedSum, other: Node) -> Node:
        """The sum that was noted, of ``other`` and the panels."""
        b = self.build
        terms = b(t.product, (b(TABLE["transpose"], (other,), (t.order,)), t.view))
        total = b(TABLE["reduce_sum"], (terms,), ((terms.ndim - 2,),))
        return b(TABLE["transpose"], (total,), (t.back,))

    def _axes(self, terms: Node, factor: Node) -> tuple[set[int], set[int]]:
        """The axes along which ``factor`` varies, and along which the other factor does."""
        other = terms.inputs[terms.inputs[0] is factor]
        own, others = ({i for i in self.varies.of(f) if terms.shape[i] != 1} for f in (factor, other))
        return own, others

    def _suits_vectors(self, factor: Node, columns: Int) -> bool:
        """Whether panels do for products with single vectors, which read each element once: no larger than what they are made of, and enough of
        them to keep threads busy."""
        assert isinstance(self.tile, CpuTileConfig)
        size = self._extent(factor) * factor.dtype.itemsize
        panels = columns * factor.dtype.itemsize // self.tile.nbytes if isinstance(columns, int) else 0
        return _fits(size, _nbytes(self.made_of.get(factor, ()))) and (panels >= MIN_PANELS or panels > 0 and _fits(size, MAX_ONE_THREAD_BYTES))

    def _view(self, terms: Node, factor: Node, axes: list[int], order: tuple[int, ...]) -> Node | None:
        """``factor``, which varies along ``axes``, as it is read from panels, with the terms' axes in ``order``. None where there is no room."""
        assert isinstance(self.tile, CpuTileConfig)
        b, positions = self.build, [order.index(a) for a in axes]
        perm = tuple(sorted(range(len(axes)), key=positions.__getitem__))
        core = b(TABLE["transpose"], (self._core(factor, axes),), (perm,))
        folded = self._fold(self._cut(core, panel_width(int(core.shape[-1]), terms.dtype.itemsize, self.tile)))
        if folded is None:
            return None
        back = b(TABLE["transpose"], (folded,), ((*range(1, core.ndim), 0, core.ndim),))
        flat = b(TABLE["reshape"], (back,), ((*core.shape[:-1], prod(back.shape[-2:])),))
        whole = b(TABLE["slice"], (flat,), ((0,) * core.ndim, core.shape, (1,) * core.ndim))
        return b(TABLE["broadcast"], (whole,), (tuple(terms.shape[a] for a in order), tuple(sorted(positions))))

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
            zero = b.const(0, x.dtype)
            x = b(TABLE["pad"], (x, zero), ((0,) * x.ndim, (*[0] * len(before), blocks * width - n)))
        cut = b(TABLE["reshape"], (x,), ((*before, blocks, width),))
        return b(TABLE["transpose"], (cut,), ((len(before), *range(len(before)), len(before) + 1),))


def _constants(nodes: Iterable[Node], constants: Sequence[Node]) -> dict[Node, frozenset[Node]]:
    """Which of ``constants`` a value is made of, for values that are made of them, numbers and counters alone. What an attribute makes of the size
    of an argument is none of these, however it is used: bounds of a slice give as static a shape to a part of a counter that is as long as the
    argument."""
    found = {x: frozenset([x]) for x in constants}
    for n in nodes:
        if n not in found and (is_constant(n) or n.op.kind in _PURE and not symbols_of(n.attrs) and n.inputs and all(x in found for x in n.inputs)):
            found[n] = frozenset[Node]().union(*(found[x] for x in n.inputs))
    return found


def is_constant(n: Node) -> bool:
    """Whether the node is a number, a counter or an array that is the same in all calls."""
    return n.op.kind == "leaf" and n.op is not input_ and not symbols_of(n.attrs)


def _works(nodes: Iterable[Node], among: Mapping[Node, Any]) -> set[Node]:
    """Of ``among`` those with work in them."""
    found: set[Node] = set()
    for n in nodes:
        if n in among and n.op.kind != "leaf" and (_is_work(n) or any(x in found for x in n.inputs)):
            found.add(n)
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


def _whole_sum(node: Node) -> tuple[Node, tuple[int, ...]] | None:
    """Of a sum of products over one axis, taken along rows or in blocks of rows: the terms, and their axes in the order of the result's, the summed
    one at the end. None for anything else."""
    if node.op.name != "reduce_sum":
        return None
    (x,), (axes,) = node.inputs, node.attrs
    order = tuple(range(x.ndim))
    if x.op.name == "reduce_sum" and x.inputs[0].op.name == "reshape":
        terms, (axis,), inside = x.inputs[0].inputs[0], axes, x.inputs[0].shape
        if x.attrs[0] != (axis + 1,) or terms.shape != (*inside[:axis], inside[axis] * inside[axis + 1], *inside[axis + 2 :]):
            return None
        order = (*range(axis), *range(axis + 1, terms.ndim), axis)
    elif axes != (x.ndim - 1,):
        return None
    elif x.op.name == "transpose":
        terms, order = x.inputs[0], x.attrs[0]
    else:
        terms = x
    return (terms, order) if terms.op in PRODUCTS else None


def _is_far(factor: Node, down: int, columns: int) -> bool:
    """Whether neighbours across the columns are no neighbours in memory, or those along the summed axis lie far apart."""
    for e in memory_offsets(factor):
        apart = stride_along(e, down)
        if stride_along(e, columns) != 1 or not isinstance(apart, int) or apart * factor.dtype.itemsize >= FAR_BYTES:
            return True
    return False


def _is_no_larger(x: Node, y: Node) -> bool:
    """Whether ``x`` has no more elements than ``y``, whatever symbolic extents are."""
    slack, _ = bounds(y.size - x.size)
    return slack is not None and slack >= 0


def _fits(nbytes: Int, limit: Int) -> TypeGuard[int]:
    return isinstance(nbytes, int) and isinstance(limit, int) and nbytes <= limit


def _nbytes(nodes: Iterable[Node]) -> Int:
    return sum(n.size * n.dtype.itemsize for n in nodes)
