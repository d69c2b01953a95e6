"""Attention matching: ``softmax(scores(q kᵀ)) v`` in a canonical graph becomes one node.

What is recognised, by structure and not by name: a product over the keys whose one factor is ``exp(s - max s) / sum exp(s - max s)`` along them, and
``s`` is made, element by element, of a product of queries and keys (scale, masks, biases and caps in any number). Where nothing else reads what is
between the two products, they and the softmax become one ``attention`` node, which :mod:`hologram.graph.library.attention.kernel` lowers to one
kernel: scores stay in a core's cache (Rabe and Staats 2021; Dao et al. 2022). Sums then have not the canonical reduction order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np

from hologram import dtypes
from hologram.graph.bounded import Worklist
from hologram.graph.legalize.variation import Variation
from hologram.graph.library.attention.nodes import ATTENTION, SCORES, movement_source
from hologram.graph.size_conditions import SizeConditions
from hologram.ir.graph import Graph
from hologram.ir.index_maps import Index, is_simple, linear, propagate_index, variables
from hologram.ir.node import Builder, Node, const_value
from hologram.ir.op import Shape
from hologram.ir.symbolic import Int, atoms, split_linear, substitute, var
from hologram.ir.traversal import post_order, reachable, users_of

MIN_QUERIES = 16  # queries of a head from which on it pays: they are the lanes
MIN_KEYS = 8  # keys, and elements of a query or a value
MAX_HEAD_WIDTH = 512  # elements of a query or a value: what a core keeps of them must fit


class _Match(NamedTuple):
    """A result of attention, the nodes that it is made of in the old graph, and which of their axes, in which order, are those of the attention node:
    axes of extent 1 are left out, and the order is that of the scores."""

    result: Node
    axes: tuple[int, ...]  # of the result, in the order in which the node gives them
    queries: Node
    keys: Node
    factor_axes: tuple[int, ...]  # of queries and keys
    product: Node  # of queries and keys
    scores: Node
    score_axes: tuple[int, ...]
    values: Node
    value_axes: tuple[int, ...]
    row_axis: int
    key_axis: int
    safe: bool


def join_attention(graph: Graph, widest_bytes: int | None = None, conditions: SizeConditions | None = None) -> Graph:
    """``graph`` with attention nodes where it computes attention, of values of at most ``widest_bytes``; the graph itself where it does not.
    ``conditions`` is told for which of its symbols static graphs have no further attention nodes."""
    nodes = graph.nodes()
    if not any(n.op.name == "reduce_max" for n in nodes):
        return graph
    found = {m.result: m for m in _Search(nodes, graph.outputs, widest_bytes, conditions or SizeConditions()).matches()}
    if not found:
        return graph
    b = Builder()
    made: dict[Node, Node] = {}
    for node in nodes:
        match = found.get(node)
        made[node] = b.like(node, tuple(made[x] for x in node.inputs)) if match is None else _joined(b, match, made)
    return graph.mapped(made)


def _joined(b: Builder, m: _Match, made: dict[Node, Node]) -> Node:
    scores = rebuild_scores(b, m.scores, {m.product: b(SCORES, (), (m.product.shape, m.product.dtype.name, len(made)))}, made)
    queries, keys = (select_axes(b, made[x], m.factor_axes) for x in (m.queries, m.keys))
    values = select_axes(b, made[m.values], m.value_axes)
    out = b(ATTENTION, (queries, keys, select_axes(b, scores, m.score_axes), values), (m.row_axis, m.key_axis, m.safe))
    order = sorted(m.axes)
    return b.reshape(b.transpose(out, tuple(m.axes.index(x) for x in order)), m.result.shape)


def select_axes(b: Builder, x: Node, axes: tuple[int, ...]) -> Node:
    """``x`` with the given axes in this order, without its others, of extent 1."""
    others = [i for i in range(x.ndim) if i not in axes]
    return b.reshape(b.transpose(x, (*others, *axes)), tuple(x.shape[i] for i in axes))


def rebuild_scores(
    b: Builder, scores: Node, instead: Mapping[Node, Node], made: Mapping[Node, Node], like: Callable[[Node, tuple[Node, ...]], Node] | None = None
) -> Node:
    """The finished scores, made of what stands ``instead`` of some nodes, of products among them, and of what else was ``made``. ``like``: how a node
    is made of other inputs, if not as it is."""
    new, like = dict(instead), like or b.like
    for n in _walk(scores):
        if n not in new and any(x in new for x in n.inputs):
            new[n] = like(n, tuple(new.get(x) or made[x] for x in n.inputs))
    return new[scores]


def _walk(scores: Node) -> list[Node]:
    """What finished scores are made of, element by element, inputs first; down to what is in memory or computed by itself."""
    return post_order([scores], lambda n: n.inputs if _is_inside(n) else ())


def _is_inside(node: Node) -> bool:
    """Whether each element of the node is made of one element of each of its inputs, so that a kernel makes it where it is wanted."""
    return node.op.kind == "elementwise" or is_simple(node)


def _is(node: Node, value: float) -> bool:
    return node.op.name == "const" and bool(const_value(node) == value)


class _Product(NamedTuple):
    """A sum of products along one axis of the terms."""

    factors: tuple[Node, Node]
    axis: int
    results: dict[int, int]  # the axis of the sums for each other long axis of the terms


def product_of(node: Node) -> _Product | None:
    if node.op.name != "reduce_sum" or len(node.attrs[0]) != 1:
        return None
    summed = terms = node.inputs[0]
    if terms.op.name == "reshape":  # by axes of extent 1
        terms = terms.inputs[0]
    f, g = terms.inputs if terms.op.name == "mul" else (summed, summed)
    ((axis,),) = node.attrs
    own, other = non_unit_axes(terms.shape), non_unit_axes(summed.shape)
    if not f.shape == g.shape == terms.shape or axis not in other or [terms.shape[i] for i in own] != [summed.shape[i] for i in other]:
        return None
    along = own[other.index(axis)]
    return _Product((f, g), along, {i: j - (j > axis) for i, j in zip(own, other, strict=True) if i != along}) if terms.op.name == "mul" else None


def non_unit_axes(shape: Shape) -> list[int]:
    """The axes that are not of extent 1."""
    return [i for i, n in enumerate(shape) if n != 1]


def axis_correspondence(index: Index, own: Shape, of: Shape) -> dict[int, int] | None:
    """Of an index into ``own`` in the variables of ``of``: the axis of ``of`` that each long axis of ``own`` walks; None unless it is one to one."""
    names = {v: i for i, v in enumerate(variables(of)) if v != 0}
    axis_map = {i: names.get(index[i], -1) for i in non_unit_axes(own)}
    return axis_map if len(set(axis_map.values()) - {-1}) == len(axis_map) else None


class _Search:
    def __init__(self, nodes: list[Node], outputs: Iterable[Node], widest_bytes: int | None, conditions: SizeConditions) -> None:
        self.nodes, self.outputs, self.widest_bytes, self.conditions = nodes, set(outputs), widest_bytes, conditions
        self.users = users_of(nodes)
        self.varies = Variation()
        for n in self.nodes:
            self.varies.note(n)

    def matches(self) -> list[_Match]:
        return [m for n in self.nodes if (m := self._match(n)) is not None]

    def _match(self, result: Node) -> _Match | None:
        last = product_of(result)
        if last is None or result.dtype not in (dtypes.float32, dtypes.float64):
            return None
        for weights, values in (last.factors, last.factors[::-1]):
            p, index = movement_source(weights, variables(weights.shape))
            soft = _softmax(p)
            axis_map = None if soft is None else axis_correspondence(index, p.shape, weights.shape)
            if soft is not None and axis_map is not None:
                return self._around(result, last, p, {s: axis_map[i] for s, i in soft.axis_map.items()}, values, soft)
        return None

    def _around(self, result: Node, last: _Product, p: Node, axis_map: dict[int, int], values: Node, soft: _Softmax) -> _Match | None:
        """The match around a softmax; ``axis_map``: the axis of the last product's terms for each axis of the scores."""
        space, length, axis = values.shape, soft.scores.shape, last.axis
        others = set(non_unit_axes(space)) - set(axis_map.values())
        inner = self._first_product(soft.scores, soft.axis)
        if axis_map.get(soft.axis) != axis or len(others) != 1 or inner is None:
            return None
        (wide,), (product, there, summed, queries, keys) = others, inner
        if dtypes.compute_type(product.dtype) is not result.dtype:  # a kernel computes in one type
            return None
        of_queries, of_keys, of_values = (self.varies.of(x) for x in (queries, keys, values))
        sizes = length[soft.axis], queries.shape[summed], space[wide]
        rows = [i for i in axis_map if i != soft.axis and there[i] in of_queries and there[i] not in of_keys and axis_map[i] not in of_values]
        if not {axis, wide} <= of_values:
            return None
        row = self._own_axis({i: length[i] for i in rows}, *sizes)
        if row is None:
            return None
        if self.widest_bytes is not None and space[wide] * values.dtype.itemsize > self.widest_bytes:
            return None
        inside = {*filter(_is_inside, _walk(soft.scores)), *soft.nodes, *_between(result, p)}
        if not self._has_no_other_reader(product, inside, result) or not _is_contiguous(values, wide):
            return None
        axes = non_unit_axes(length)
        kept = [axis_map[i] for i in axes]
        return _Match(
            result,
            tuple(last.results[x] for x in (*kept, wide) if x != axis),
            queries,
            keys,
            (*(there[i] for i in axes), summed),
            product,
            soft.scores,
            tuple(axes),
            values,
            (*kept, wide),
            axes.index(row),
            axes.index(soft.axis),
            soft.safe,
        )

    def _own_axis(self, rows: dict[int, Int], *sizes: Int) -> int | None:
        """Of the axes of rows the one that iterations cut in blocks, the longest: one whose extent is known in a call alone, if there is one. None
        where a kernel is not worth it. Notes for which sizes it is that are not known."""
        if all(isinstance(n, int) for n in (*sizes, *rows.values())):
            row = max(rows, key=lambda i: (rows[i], i), default=None)
            return row if row is not None and _worth(rows[row], *sizes) else None
        keys, *widths = sizes
        if self.widest_bytes is not None or not all(isinstance(n, int) for n in widths):
            self._require_few(list(rows.values()), *sizes)
            return None
        known = max((n for n in rows.values() if isinstance(n, int)), default=0)
        unknown = [i for i, n in rows.items() if not isinstance(n, int)]
        row = max(unknown) if unknown else max(rows, key=lambda i: (rows[i], i), default=None)
        if row is None or not _worth(max(known, MIN_QUERIES) if unknown else known, keys if isinstance(keys, int) else MIN_KEYS, *widths):
            return None
        self.conditions.require(keys, MIN_KEYS)
        for i in unknown if known < MIN_QUERIES else ():
            self.conditions.require(rows[i], MIN_QUERIES)
        return row

    def _require_few(self, rows: list[Int], *sizes: Int) -> None:
        """Notes for which sizes attention of varying rows, keys or widths is too small for a kernel of its own."""
        if any(isinstance(n, int) and n < MIN_KEYS for n in sizes) or all(isinstance(n, int) and n < MIN_QUERIES for n in rows):
            return
        varying = next((n for n in sizes if not isinstance(n, int)), None)
        for n in rows if varying is None else [varying]:
            self.conditions.require(n, most=(MIN_QUERIES if varying is None else MIN_KEYS) - 1)

    def _first_product(self, scores: Node, key_axis: int) -> tuple[Node, dict[int, int], int, Node, Node] | None:
        """The product of queries and keys that scores are made of: it, the axis of its terms for each axis of the scores, the one summed, queries,
        keys."""
        for node, indices in elements_read(scores).items():
            product = product_of(node)
            if product is None or len(indices) != 1:
                continue
            (index,) = indices
            axis_map = axis_correspondence(index, node.shape, scores.shape)
            if axis_map is None or sorted(axis_map.values()) != non_unit_axes(scores.shape):
                continue
            axis, there = product.axis, {axis_map[own]: term for term, own in product.results.items()}
            for queries, keys in (product.factors, product.factors[::-1]):
                q, k = self.varies.of(queries), self.varies.of(keys)
                if axis in q and axis in k and there[key_axis] in k and there[key_axis] not in q:
                    return node, there, axis, queries, keys
        return None

    def _has_no_other_reader(self, product: Node, allowed: set[Node], result: Node) -> bool:
        """Whether what is made of the first product is read by ``allowed`` nodes and ``result`` only."""
        made = reachable([product], lambda n: [u for u in self.users.get(n, ()) if u is not result])
        return all(n not in self.outputs and (n is product or n in allowed) for n in made)


def _between(result: Node, p: Node) -> set[Node]:
    """The terms of the last product, and the movements between them and the softmax."""
    terms = result.inputs[0]
    out = {terms}
    if terms.op.name == "reshape":
        terms = terms.inputs[0]
        out.add(terms)
    for x in terms.inputs:
        while x is not p and is_simple(x):
            out.add(x)
            x = x.inputs[0]
    return out


def elements_read(scores: Node) -> dict[Node, set[Index]]:
    """What finished scores are made of, and which elements of it an element of theirs reads."""
    elements_read: dict[Node, set[Index]] = {}
    stack = Worklist("join_attention", [(scores, variables(scores.shape))])
    for node, index in stack:
        elements_read.setdefault(node, set()).add(index)
        if _is_inside(node):
            stack.add((x, at) for x, at, _ in propagate_index(node, index, ()))
    return elements_read


def _worth(rows: Int, keys: Int, depth: Int, width: Int) -> bool:
    known = [n for n in (rows, keys, depth, width) if isinstance(n, int)]
    return len(known) == 4 and rows >= MIN_QUERIES and min(known) >= MIN_KEYS and max(depth, width) <= MAX_HEAD_WIDTH  # type: ignore[operator,type-var]


def _is_contiguous(values: Node, axis: int) -> bool:
    """Whether the elements of a value are neighbours in memory."""
    core, index = movement_source(values, variables(values.shape))
    split = split_linear(linear(index, core.shape), f"d{axis}")
    return split is not None and split[0] == 1


# --- the softmax -----------------------------------------------------------------------------------------------------


class _Softmax(NamedTuple):
    scores: Node
    axis: int
    axis_map: dict[int, int]  # the axis of the softmax for each long axis of the scores
    safe: bool
    nodes: set[Node]


def _softmax(p: Node) -> _Softmax | None:
    """The parts of ``exp(s - top) / total``, or of ``exp(s - top) * (1 / total)``, along one axis of s; ``safe``: top and total are such that rows of
    -inf give zeros."""
    if p.op.name not in ("div", "mul"):
        return None
    first, second = p.inputs
    return _softmax_of(p, first, second) or (_softmax_of(p, second, first) if p.op.name == "mul" else None)


def _softmax_of(p: Node, weights: Node, total: Node) -> _Softmax | None:
    nodes: set[Node] = {p}
    exponentials, index = _trace_movement(weights, variables(weights.shape), nodes)
    if exponentials.op.name != "exp" or exponentials.inputs[0].op.name != "sub":
        return None
    scores, top = exponentials.inputs[0].inputs
    axis_map = axis_correspondence(index, exponentials.shape, p.shape)
    if axis_map is None or not scores.shape == top.shape == exponentials.shape or not weights.shape == total.shape == p.shape:
        return None
    nodes.add(exponentials.inputs[0])
    value, at = _trace_movement(total, variables(total.shape), nodes)
    if p.op.name == "mul":
        if value.op.name != "div" or not _is(value.inputs[0], 1.0):
            return None
        value = value.inputs[1]
    lower = _match_row_reduction(top, variables(top.shape), "reduce_max", scores, variables(scores.shape), (-np.inf, 0.0), nodes)
    upper = _match_row_reduction(value, at, "reduce_sum", exponentials, index, (0.0, 1.0), nodes)
    return _Softmax(scores, lower[0], axis_map, lower[1], nodes) if lower is not None and lower == upper else None


def _trace_movement(node: Node, index: Index, nodes: set[Node]) -> tuple[Node, Index]:
    """What a chain of movements moves, and where its element stands; the chain joins ``nodes``."""
    while is_simple(node):
        nodes.add(node)
        ((node, index, _),) = propagate_index(node, index, ())
    nodes.add(node)
    return node, index


def _match_row_reduction(
    value: Node, index: Index, op: str, x: Node, at: Index, instead: tuple[float, float], nodes: set[Node]
) -> tuple[int, bool] | None:
    """Of element ``index`` of a value that reduces ``x`` by ``op``: the axis, and whether ``instead[1]`` stands for ``instead[0]``. ``at`` is an
    element of the row of ``x``, in the same variables."""
    node, index = _trace_movement(value, index, nodes)
    safe = node.op.name == "select"
    if safe:
        test, then, otherwise = node.inputs
        nodes.add(test)
        if test.op.name != "eq" or otherwise not in test.inputs or not any(_is(t, instead[0]) for t in test.inputs) or not _is(then, instead[1]):
            return None
        node, index = _trace_movement(otherwise, index, nodes)
    if node.op.name != op or len(node.attrs[0]) != 1:
        return None
    (reduced,), ((along,),) = node.inputs, node.attrs
    key = var("key", 0, _last(reduced.shape[along]))
    core, there = _trace_movement(reduced, (*index[:along], key, *index[along:]), nodes)
    same, here = _trace_movement(x, at, nodes)
    for axis in non_unit_axes(x.shape) if core is same else ():
        if there == tuple(substitute(e, {a.name: key for a in atoms(at[axis])}) for e in here):
            return axis, safe
    return None


def _last(n: Int) -> int | None:
    return n - 1 if isinstance(n, int) else None
