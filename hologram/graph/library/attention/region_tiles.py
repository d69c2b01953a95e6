"""Attention derivatives on GPUs with matrix units: each reduction in a region of :mod:`hologram.graph.blocking.score_regions` becomes a kernel that
computes the scores again.

A ``reduced_scores`` node (:mod:`hologram.graph.library.attention.nodes`) has what its scores are made of: products of 16-bit floats, element by
element, and rows that other such nodes reduced. So the derivative of attention is a kernel for each of its gradients, and for what a softmax and its
derivative have of a row, and none of them writes scores (Dao et al. 2022). Scores that are factors of a product are rounded as its other factor is.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from hologram import dtypes
from hologram.graph.blocking.score_regions import Region, Search
from hologram.graph.library.attention.device_kernel import MAX_MATRIX_UNIT_WIDTH, rounded_type
from hologram.graph.library.attention.match import above, compact, long_axes, product_of, reached, walked
from hologram.graph.library.attention.nodes import REDUCED, SCORES, moved
from hologram.ir.graph import Graph
from hologram.ir.index_maps import variables
from hologram.ir.node import Builder, Node
from hologram.ir.op import TABLE

MAX_PRODUCTS = 2  # of which scores are made: each is in registers


class _Plan(NamedTuple):
    """A reduction of scores: their node, their long axes, which of these the parallel iterations own and which they walk, the products with their
    factors and the axes of these; the factor of scores and its axes, if there is one; and ``terms``, the axes of what is reduced in the order of the
    new node."""

    root: Node
    scores: Node
    axes: tuple[int, ...]
    own: int
    walked: int
    products: dict[Node, tuple[Node, Node, tuple[int, ...]]]
    factor: tuple[Node, tuple[int, ...]] | None
    terms: tuple[int, ...]


def reduce_in_tiles(graph: Graph) -> Graph:
    """``graph`` with ``reduced_scores`` nodes for the derivatives in its regions; the graph itself where matrix units can make none."""
    search = Search(graph.nodes(), graph.outputs)
    plans: dict[Node, _Plan] = {}
    rows: dict[Node, _Plan] = {}
    for region in search.regions() if search.entries else ():
        found = _plans(search, region)
        if found is not None:
            rows.update(found[0])
            plans.update(found[1])
    return _rewritten(graph, rows, plans) if plans else graph


def _plans(search: Search, region: Region) -> tuple[dict[Node, _Plan], dict[Node, _Plan]] | None:
    """Of the reductions that scores are made of, and of those that others read; the forward pass, where it stands by itself, is left. None unless
    all of them can be made."""
    reductions = [n for n in search.nodes if n.op.kind == "reduce" and n not in search.entries and _is_large(search, region, n.inputs[0])]
    first = 1 if max(region.levels.values()) else 0
    wanted = [n for n in reductions if region.levels.get(n, 0) >= first]
    rows = [n for n in reductions if n in region.axes]
    made = {n: _Planner(search, n).plan() for n in dict.fromkeys([*rows, *wanted])}
    if not wanted or None in made.values():
        return None
    return {n: made[n] for n in rows}, {n: made[n] for n in wanted if n not in rows or n in region.levels}  # type: ignore[misc]


def _is_large(search: Search, region: Region, x: Node) -> bool:
    return x in region.axes and x in search.after_entries


class _Planner:
    def __init__(self, search: Search, root: Node) -> None:
        self.search, self.root, self.terms = search, root, root.inputs[0]

    def plan(self) -> _Plan | None:
        root, terms = self.root, self.terms
        if root.op.name not in ("reduce_sum", "reduce_max") or root.dtype is not dtypes.float32:
            return None
        for scores, factor in self._splits():
            core, index = moved(scores, variables(scores.shape))
            axis_map = walked(index, core.shape, terms.shape)
            if axis_map is None or sorted(axis_map) != long_axes(core.shape):
                continue
            others = set(long_axes(terms.shape)) - set(axis_map.values())
            reduced = [i for i in axis_map if axis_map[i] in root.attrs[0]]
            if len(others) != (factor is not None) or not reduced or others & set(root.attrs[0]):
                continue
            along = max(reduced, key=lambda i: (core.shape[i], i))
            return self._around(core, along, axis_map, factor, others)
        return None

    def _splits(self) -> Iterator[tuple[Node, Node | None]]:
        """What is reduced as scores, and as scores times a factor."""
        terms, large = self.terms, self.search.after_entries
        if terms.op.name == "mul" and self.root.op.name == "reduce_sum":
            for scores, factor in (terms.inputs, terms.inputs[::-1]):
                if scores.shape == factor.shape == terms.shape and scores in large and factor not in large:
                    yield scores, factor
        yield terms, None

    def _around(self, scores: Node, along: int, axis_map: dict[int, int], factor: Node | None, others: set[int]) -> _Plan | None:
        axes = long_axes(scores.shape)
        products = self._products(scores, along, axes)
        if not products or len(products) > MAX_PRODUCTS:
            return None
        own = max(set.intersection(*(p[3] for p in products.values())), key=lambda i: (scores.shape[i], i), default=None)
        factors = [x for p in products.values() for x in p[:2]] + ([factor] if factor is not None else [])
        kinds = {rounded_type(x) for x in factors}
        if own is None or len(kinds) != 1 or None in kinds:
            return None
        wide = tuple(others)
        if factor is not None:
            width, of_factor = self.terms.shape[wide[0]], self.search.varies.of(factor)
            if not isinstance(width, int) or width > MAX_MATRIX_UNIT_WIDTH or axis_map[own] in of_factor or axis_map[along] not in of_factor:
                return None
        kept = tuple(axis_map[i] for i in axes)
        return _Plan(
            self.root,
            scores,
            tuple(axes),
            axes.index(own),
            axes.index(along),
            {n: p[:3] for n, p in products.items()},
            (factor, (*kept, *wide)) if factor is not None else None,
            (*(i for i in kept if i != axis_map[along]), *wide),
        )

    def _products(self, scores: Node, along: int, axes: list[int]) -> dict[Node, tuple[Node, Node, tuple[int, ...], set[int]]]:
        """The products that scores are made of: the factor that is one along the walked axis, the other, the axes of their terms, and which axes
        could be the own one; none unless all are such."""
        found: dict[Node, tuple[Node, Node, tuple[int, ...], set[int]]] = {}
        for node, indices in reached(scores).items():
            if node not in self.search.entries:
                continue
            product = product_of(node)
            if product is None or node.shape != scores.shape or indices != {variables(scores.shape)}:
                return {}
            there = {own: term for term, own in product.results.items()}
            for x, y in (product.factors, product.factors[::-1]):
                of_x, of_y = self.search.varies.of(x), self.search.varies.of(y)
                if there[along] in of_y and there[along] not in of_x and product.axis in of_x & of_y:
                    own = {i for i in axes if isinstance(scores.shape[i], int) and there[i] in of_x and there[i] not in of_y}
                    found[node] = x, y, (*(there[i] for i in axes), product.axis), own
                    break
            else:
                return {}
        return found


def _rewritten(graph: Graph, rows: dict[Node, _Plan], plans: dict[Node, _Plan]) -> Graph:
    b = Builder()
    made: dict[Node, Node] = {}
    reduced: dict[Node, Node] = {}  # what scores are made of instead of what the graph has
    numbers = itertools.count(len(graph.nodes()))
    for n in graph.nodes():
        made[n] = b.like(n, tuple(made[x] for x in n.inputs))
        if n in rows:
            reduced[n] = _made(b, rows[n], made, reduced, numbers)
        if n in plans:
            made[n] = reduced[n] if n in reduced else _made(b, plans[n], made, reduced, numbers)
    return graph.mapped(made)


def _divided_once(b: Builder, node: Node, inputs: tuple[Node, ...]) -> Node:
    """``node`` on other inputs; what all of a row is divided by is divided once."""
    if node.op.name != "div" or inputs[1].op.name != "broadcast" or inputs[1].inputs[0].ndim in (0, node.ndim):
        return b.like(node, inputs)
    (row,), attrs = inputs[1].inputs, inputs[1].attrs
    share = b(TABLE["div"], (b.const(1.0, row.dtype), row))
    return b(TABLE["mul"], (inputs[0], b(TABLE["broadcast"], (share,), attrs)))


def _made(b: Builder, p: _Plan, made: dict[Node, Node], reduced: dict[Node, Node], numbers: Iterator[int]) -> Node:
    """The node of a reduction, and what gives its result the form that the graph has."""
    products = {n: b(SCORES, (), (n.shape, n.dtype.name, next(numbers))) for n in p.products}
    scores = compact(b, above(b, p.scores, {**reduced, **products}, made, partial(_divided_once, b)), p.axes)
    inputs = [scores]
    if p.factor is not None:
        inputs.append(compact(b, made[p.factor[0]], p.factor[1]))
    for x, y, axes in p.products.values():
        inputs += [compact(b, made[f], axes) for f in (x, y)]
    out = b(REDUCED, tuple(inputs), (p.own, p.walked, p.root.op.name, p.factor is not None))
    rest = tuple(i for i, axis in enumerate(p.terms) if axis in p.root.attrs[0])
    if rest:
        out = b(p.root.op, (out,), (rest,))
    kept = [axis for axis in p.terms if axis not in p.root.attrs[0]]
    return b.reshape(b.transpose(out, tuple(kept.index(i) for i in sorted(kept))), p.root.shape)
