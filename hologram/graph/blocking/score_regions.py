"""Region search: parts of a graph that can be computed block by block along one axis, such as attention and its derivatives.

Scores, products of queries and keys, are much larger than what they are made of, and what is wanted of them is small again: sums of products with
values, sums down the queries. What is between, element by element or reduced along the keys (a softmax, its derivative), is a *region*. Where one
axis runs through all of it, rows of queries or heads, each block of that axis needs its own scores only, and nothing of their size need be in memory
(Rabe and Staats 2021; Dao et al. 2022). No form is presupposed: masks, caps, biases, derivatives of maxima, cross entropy over many classes are
regions as they stand.

- The *entries* of a region are the large products. Its *exits* are what others read: sums of products with something from outside, sums over the
  axis, and what is left of a row.
- What an exit gives may come back into the region, as the cotangents of attention come from its results. Exits then have *levels*: one level's
  are computed in one loop, which computes again what it needs of the region.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import NamedTuple

from hologram.graph.bounded import Worklist
from hologram.graph.collective_depth import collective_depths
from hologram.graph.legalize.variation import Variation
from hologram.graph.library.attention.nodes import movement_source
from hologram.graph.size_conditions import SizeConditions
from hologram.ir.graph import Graph
from hologram.ir.index_maps import is_simple, propagate_index, variables
from hologram.ir.node import Node
from hologram.ir.symbolic import Int, atoms, substitute
from hologram.ir.traversal import users_of

LARGE_EXTENT = 2**14  # that a symbolic extent counts as, where what it could be is looked for
MIN_PRODUCT_BYTES = 4 * 2**20  # of a large product
MIN_EXPANSION_RATIO = 2  # than its factors, so many times, is what may be computed again
MAX_PRODUCT_DEPTH = 512  # sums of so many products at most are cheap enough to compute again


class Region(NamedTuple):
    """``axes``: the axis of each of its nodes, in the graph's order. ``levels``: of each exit. ``large``: the size of its entries."""

    seed: Node
    axes: dict[Node, int]
    levels: dict[Node, int]
    large: int

    rows: int  # of its entry for each index of the axis: 0 where both factors have the axis, as heads of attention do

    @property
    def axis(self) -> int:
        """The axis of the entry it was found from."""
        return self.axes[self.seed]

    def axis_of(self, node: Node) -> int | None:
        """The axis in one of its nodes or exits; None for a sum over it."""
        if node in self.axes:
            return self.axes[node]
        (x,), (axes,) = node.inputs, node.attrs
        axis = self.axes[x]
        return None if axis in axes else axis - sum(i < axis for i in axes)


class NotLocal(Exception):
    """Some element of a region needs more than its own index along the axis."""


def axis_of_input(node: Node, k: int, axis: int) -> int | None:
    """Which axis of input ``k`` an axis of the node is; None where the input is the same all along it. Raises NotLocal where it is neither."""
    x = node.inputs[k]
    if node.op.kind == "reduce" and node.op.monoid is not None:
        return [i for i in range(x.ndim) if i not in node.attrs[0]][axis]
    if node.op.kind != "elementwise" and not is_simple(node):
        raise NotLocal
    here = variables(node.shape)
    _, index, _ = propagate_index(node, here, ())[k]
    names = set(atoms(here[axis]))
    found = [i for i, e in enumerate(index) if not names.isdisjoint(atoms(e))]
    if not found:
        return None
    (found_axis, *more) = found
    if more or index[found_axis] != here[axis] or x.shape[found_axis] != node.shape[axis]:
        raise NotLocal
    return found_axis


def axis_of_user(user: Node, x: Node, axis: int) -> int:
    """Which axis of ``user`` is an axis of its input ``x``. Raises NotLocal where there is none."""
    k = user.inputs.index(x)
    for i, n in enumerate(user.shape):
        if n == x.shape[axis] and n != 1:
            try:
                if axis_of_input(user, k, i) == axis:
                    return i
            except NotLocal:
                pass
    raise NotLocal


class Search:
    """What is found once for a graph, and the regions in it. ``nodes`` are in topological order.

    Entries are of known sizes; with ``extent`` they are those of symbolic rows or columns, each of which counts as that many.
    """

    def __init__(self, nodes: Sequence[Node], outputs: Iterable[Node] = (), extent: int = 0) -> None:
        self.nodes, self.extent = nodes, extent
        self.outputs = set(outputs)
        self.users = users_of(nodes)
        self.depth = collective_depths(nodes)
        self.varies = Variation()
        self.entries: dict[Node, None] = {}
        self.after_entries: set[Node] = set()  # large nodes made, element by element, of entries
        for n in self.nodes:
            self.varies.note(n)
            if self._is_entry(n):
                self.entries[n] = None
                self.after_entries.add(n)
            elif _is_inside(n) and any(x in self.after_entries for x in n.inputs):
                self.after_entries.add(n)

    def _is_entry(self, node: Node) -> bool:
        """Whether the node is a product, or several added up, much larger than its factors, of few terms each."""
        size = size_of(node, self.extent)
        if node.op.name != "reduce_sum" or len(node.attrs[0]) != 1 or size * node.dtype.itemsize < MIN_PRODUCT_BYTES:
            return False
        depth = node.inputs[0].shape[node.attrs[0][0]]
        if not isinstance(depth, int) or depth > MAX_PRODUCT_DEPTH:
            return False
        found = products(node)
        if self.extent and not any(self._is_symbolic(terms) for terms in found):
            return False
        return bool(found) and all(size >= MIN_EXPANSION_RATIO * _extent(f, self.varies.of(f), self.extent) for terms in found for f in terms.inputs)

    def _is_symbolic(self, terms: Node) -> bool:
        """Whether an axis along which one of two factors varies alone is of symbolic extent."""
        first, second = (set(self.varies.of(f)) for f in terms.inputs)
        return any(not isinstance(terms.shape[axis], int) for axis in first ^ second)

    def require_none(self, conditions: SizeConditions) -> None:
        """Notes for which sizes no product of varying extents is an entry, where some product may become a softmax."""
        if any(n.op.name == "exp" for n in self.nodes):
            for n in self.nodes:
                if n.op.name == "reduce_sum" and not isinstance(n.size, int) and products(n):
                    conditions.require(n.size, most=MIN_PRODUCT_BYTES // n.dtype.itemsize - 1)

    def regions(self) -> list[Region]:
        """Regions that have nothing in common but what each of them makes of little, like masks."""
        taken: set[Node] = set()
        found = []
        for seed in self.entries:
            if seed in taken:
                continue
            region = self._around(seed)
            if region is not None and not any(n in taken for n in region.axes if n in self.after_entries):
                found.append(region)
                taken.update(region.axes)
        return found

    def _around(self, seed: Node) -> Region | None:
        """The region of an entry along the first axis that does; of several, one with the fewest levels."""
        best = None
        for axis, n in enumerate(seed.shape):
            if n == 1:
                continue
            try:
                region = _RegionGrowth(self, seed, axis).region()
            except NotLocal:
                continue
            if region is not None and (best is None or max(region.levels.values()) < max(best.levels.values())):
                best = region
        return best


def rematerialized(nodes: Sequence[Node]) -> set[Node]:
    """Of ``nodes``, in topological order, what is cheaper to compute again than to keep: large products that become exponentials, what is made of
    them element by element, and what is made of no array, as masks are."""
    search = Search(nodes)
    source: dict[Node, Node] = {}
    out: set[Node] = set()
    for n in nodes:
        if n in search.entries:
            source[n] = n
        elif n in search.after_entries:
            source[n] = next(source[x] for x in n.inputs if x in source)
        elif n.op.kind == "elementwise" and all(x in out or x.op.name in ("const", "iota") for x in n.inputs):
            out.add(n)
    exponentials = {e for n, e in source.items() if n.op.name == "exp"}
    out.update(n for n, e in source.items() if e in exponentials)
    return out | {terms for e in exponentials for terms in (e.inputs[0], *products(e))}


def products(node: Node) -> list[Node]:
    """The products that are added up to the terms of a sum; none if anything else is."""
    found, terms = [], Worklist("block_regions", node.inputs[:1])
    for x in terms:
        if x.op.name == "add" and all(y.shape == x.shape for y in x.inputs):
            terms.add(x.inputs)
        elif x.op.name == "mul":
            found.append(x)
        else:
            return []
    return found


def has_symbolic_scores(graph: Graph) -> bool:
    """Whether a graph has attention of symbolic rows or keys: a product of that many exponentials of a product. Of known sizes, if these are large,
    it is computed block by block, and its scores are in no memory."""
    search = Search(graph.nodes(), graph.outputs, LARGE_EXTENT)
    weights: set[Node] = set()
    for n in search.nodes:
        if (n.op.name == "exp" and n in search.after_entries) or (_is_inside(n) and any(x in weights for x in n.inputs)):
            weights.add(n)
        elif n.op.name == "reduce_sum" and n.inputs[0] in weights and products(n):
            return True
    return False


def size_of(node: Node, extent: int = 0) -> int:
    """The number of elements, where symbols are ``extent``."""
    return _number(node.size, extent)


def _number(n: Int, extent: int) -> int:
    if isinstance(n, int):
        return n
    found = substitute(n, {a.name: extent for a in atoms(n)}) if extent else 0
    assert isinstance(found, int)
    return found


def _extent(x: Node, axes: Iterable[int], extent: int = 1) -> int:
    """How many elements a broadcast is made of, where symbolic extents are made of symbols that are ``extent``."""
    return prod(_number(x.shape[i], extent or 1) for i in axes)


def _is_inside(node: Node) -> bool:
    """Whether each element of the node is made of one element of each of its inputs."""
    return node.op.kind == "elementwise" or is_simple(node)


class _RegionGrowth:
    """The nodes around an entry, and their axes.

    Large nodes are followed both ways, to what reads them only where they are made of entries; small ones, what reductions leave of a row, to what
    reads them, unless that waits for a further collective: the region would wait with it. Invariant: what is made of entries and large is read in the
    region or by exits only.
    """

    def __init__(self, search: Search, seed: Node, axis: int) -> None:
        self.search, self.seed, self.large = search, seed, size_of(seed)
        self.axes: dict[Node, int] = {}
        self.exits: set[Node] = set()
        self.waiting = [(seed, axis)]

    def region(self) -> Region | None:
        """The region; None where nothing comes back from its rows, or no axis is shared. Raises NotLocal."""
        while self.waiting:
            node, axis = self.waiting.pop()
            if node in self.axes:
                if self.axes[node] != axis:
                    raise NotLocal
                continue
            self.axes[node] = axis
            self._users(node, axis)
            if self._is_large(node):
                self._inputs(node, axis)
        inside = self._inside()
        if not self._is_softmax(inside):
            return None
        self.exits.update(n for n in self.axes if n not in inside and any(x in inside and self._is_large(x) for x in n.inputs))
        rows = {n for n in inside if not self._is_large(n) and self._is_read_outside(n, inside)}
        exits = self.exits | rows
        axes = {n: self.axes[n] for n in self.search.nodes if n in inside}
        return Region(self.seed, axes, self._levels(axes, exits), self.large, self._rows()) if exits else None

    def _is_large(self, node: Node) -> bool:
        return size_of(node) >= self.large

    def _users(self, node: Node, axis: int) -> None:
        large = self._is_large(node)
        if large and node not in self.search.after_entries:
            return  # made of little, as masks are: whoever wants it makes it
        if large and node in self.search.outputs:
            raise NotLocal
        for user in self.search.users.get(node, ()):
            if user.op.kind == "reduce" and user.op.monoid is not None and (wide := size_of(node) > self.large or axis in user.attrs[0]):
                if wide and user in self.search.entries:
                    self.waiting.append((user, axis_of_user(user, node, axis)))
                elif large:
                    self._exit(user, axis)
                continue
            if not large and self.search.depth[user] > self.search.depth[node]:
                continue
            try:
                self.waiting.append((user, axis_of_user(user, node, axis)))
            except NotLocal:
                if large:
                    raise

    def _exit(self, user: Node, axis: int) -> None:
        if axis in user.attrs[0] and user.op.name != "reduce_sum":
            raise NotLocal
        self.exits.add(user)

    def _inputs(self, node: Node, axis: int) -> None:
        for k, x in enumerate(node.inputs):
            if self._is_large(x) and (_is_inside(x) or x in self.search.entries) and (found_axis := axis_of_input(node, k, axis)) is not None:
                self.waiting.append((x, found_axis))

    def _inside(self) -> set[Node]:
        """The nodes found that are large, or that come back to large ones."""
        inside: set[Node] = set()
        for n in reversed(self.search.nodes):
            if n in self.axes and (self._is_large(n) or any(u in inside for u in self.search.users.get(n, ()))):
                inside.add(n)
        return inside

    def _is_softmax(self, inside: set[Node]) -> bool:
        """Whether exponentials meet what comes back from their rows, or are weights as they are: what is between other products is left alone,
        since to compute it again costs more than to keep it."""
        if not any(n.op.name == "exp" for n in inside):
            return False
        weights = (movement_source(f, variables(f.shape))[0] for e in self.exits for f in e.inputs[0].inputs)
        return not all(map(self._is_large, inside)) or any(w.op.name == "exp" for w in weights)

    def _is_read_outside(self, node: Node, inside: set[Node]) -> bool:
        return node in self.search.outputs or any(u not in inside and u not in self.exits for u in self.search.users[node])

    def _rows(self) -> int:
        """See :class:`Region`: the elements of the factor that has the axis, along all axes that the other lacks."""
        (terms, *_) = products(self.seed)
        axis = axis_of_input(self.seed, 0, self.axes[self.seed])
        first, second = (self.search.varies.of(f) for f in terms.inputs)
        if axis in first and axis in second:
            return 0
        unshared = (first - second) if axis in first else (second - first)
        return _extent(terms, unshared - {axis})

    def _levels(self, inside: dict[Node, int], exits: set[Node]) -> dict[Node, int]:
        level: dict[Node, int] = {}
        for n in self.search.nodes:
            here = n in inside or n in exits
            level[n] = max((level[x] + (x in exits and not (here and x in inside)) for x in n.inputs), default=0)
        return {n: level[n] for n in self.search.nodes if n in exits}
