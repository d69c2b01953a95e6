"""Demand masks: what is thrown away is not computed. A reduction whose results a mask discards gets that mask.

Of ``where(positions <= t, scores, -inf)`` the scores beyond t are wanted by nobody, though each is a long sum. So the sum is taken of what the mask
lets through, and of the identity elsewhere; the loop of a row that is masked then has no iteration (:mod:`hologram.graph.lower.masked_rows`).

Invariant: a reduction R gets a mask M only where

- each way from R to a result leads through a ``select`` that takes its other operand, or a ``gather`` that takes other elements, where M is false.
  So whatever R is there, no result has other bits;
- no value that M is made of depends on R, and M is cheap: comparisons of indices with numbers, which are computed again where R is;
- R runs along the last axes, as rows do. R's terms stay products where they were, so that sums round them as before.

Wanted is found from the results backwards: what a value is wanted for is the union over its readers. An elementwise reader wants what is wanted of
itself, a reshape or transpose the same elsewhere, a ``select`` what its condition lets through, a ``gather`` its window, any other reader everything.
"""

from __future__ import annotations

from functools import reduce

import numpy as np

from hologram import dtypes
from hologram.graph.multiply_add import factors_of, product_of
from hologram.ir.graph import Graph
from hologram.ir.node import Builder, Node
from hologram.ir.symbolic import prod
from hologram.ir.traversal import reachable, topological

MIN_ROW_ELEMENTS = 32  # of a row that is worth a branch
MIN_MASKED_TERMS = 2**12  # of all rows together, from which masks of their own pay
MAX_MASKS = 4  # whose union is wanted of a value
MAX_MASK_COST = 16  # of the ops that a mask is made of
_COMPARISONS = ("lt", "le", "gt", "ge", "eq")
_SUMMED_WITH_THEIR_SUMS = ("pair_dot", "fused_mul")

Masks = tuple[Node, ...] | None  # of whose union elements are wanted; None: all are


def mask_demanded(graph: Graph) -> Graph:
    """``graph`` with masks on reductions that are wanted under masks alone; the graph itself where there are none."""
    kinds = graph.kinds()
    if "reduce" not in kinds or not ("gather" in kinds or "select" in graph.op_names()):
        return graph
    nodes = graph.nodes()
    number = {n: i for i, n in enumerate(nodes)}
    candidates = [n for n in nodes if _is_of_rows(n)]
    wanted = _wanted(graph, nodes) if candidates else {}
    masks = {n: m for n in candidates if (m := _mask(wanted.get(n), n, number)) is not None}
    return _masked(graph, nodes, masks) if masks else graph


def _is_of_rows(n: Node) -> bool:
    """Whether a node reduces the last axes of what may be masked, for many results."""
    if n.op.kind != "reduce" or n.op.monoid is None or n.inputs[0].op.name in _SUMMED_WITH_THEIR_SUMS:
        return False
    (x,), (axes,) = n.inputs, n.attrs
    length, terms = prod(x.shape[a] for a in axes), x.size
    is_large = isinstance(length, int) and isinstance(terms, int) and length >= MIN_ROW_ELEMENTS and terms >= MIN_MASKED_TERMS
    return is_large and n.size != 1 and axes == tuple(range(n.ndim, x.ndim))


# --- what is wanted -----------------------------------------------------------------------------------------------------------------------


def _wanted(graph: Graph, nodes: list[Node]) -> dict[Node, Masks]:
    """The masks of all values, in nodes of the graph and new ones; a value that is not there is wanted nowhere."""
    b = Builder()
    found: dict[Node, Masks] = dict.fromkeys(graph.outputs)
    for reader in reversed(nodes):
        if reader not in found:
            continue
        for k, x in enumerate(reader.inputs):
            if x not in found or found[x] is not None:
                found[x] = _union(found.get(x, ()), _wanted_by(b, reader, k, found[reader]))
    return found


def _union(a: Masks, b: Masks) -> Masks:
    if a is None or b is None:
        return None
    both = tuple(dict.fromkeys((*a, *b)))
    return both if len(both) <= MAX_MASKS else None


def _wanted_by(b: Builder, reader: Node, k: int, wanted: Masks) -> Masks:
    """What of its input ``k`` a node reads, of which ``wanted`` is wanted."""
    x = reader.inputs[k]
    if reader.op.name == "gather" and k == 0:
        return _window(b, reader)
    if reader.op.name == "select" and k > 0 and x.shape == reader.shape:
        condition = b.fit(reader.inputs[0], reader.shape)
        return (condition if k == 1 else b.make("not", condition),)
    if wanted is None or x.size == 1:
        return None
    if reader.op.kind == "elementwise" and x.shape == reader.shape:
        return wanted
    if reader.op.name == "reshape":
        return tuple([b.reshape(m, x.shape) for m in wanted])
    if reader.op.name == "transpose":
        (perm,) = reader.attrs
        return tuple([b.transpose(m, tuple(perm.index(i) for i in range(x.ndim))) for m in wanted])
    return None


def _window(b: Builder, reader: Node) -> Masks:
    """Where the one window is that a gather reads."""
    (x, *starts), (axes, sizes, batch) = reader.inputs, reader.attrs
    if batch or starts[0].shape or not all(isinstance(n, int) for n in (*x.shape, *sizes)):
        return None
    parts: list[Node] = []
    for start, axis, size in zip(starts, axes, sizes, strict=True):  # starts are such that windows are inside
        first = b.cast(start, dtypes.int64)
        at = b.make("iota", attrs=(x.shape, axis, "int64"))
        ends = [("eq", first)] if size == 1 else [("ge", first), ("lt", b.make("add", first, b.const(size, dtypes.int64)))]
        parts += [b.make(name, at, b.fit(end, x.shape)) for name, end in ends]
    return (reduce(lambda p, q: b.make("and", p, q), parts),)


# --- which masks pay ----------------------------------------------------------------------------------------------------------------------


def _mask(masks: Masks, n: Node, number: dict[Node, int]) -> tuple[Node, ...] | None:
    """The masks of a reduction, whose union is wanted, where they pay; else None."""
    return masks if masks and all(_pays(m, n, number) for m in masks) else None


def _pays(mask: Node, n: Node, number: dict[Node, int]) -> bool:
    """Whether a mask compares indices with what is there before ``n``, and costs little."""
    cost, has_range = 0, False
    for x in reachable([mask], lambda x: x.inputs if _is_again(x) else ()):
        if _is_again(x):
            cost += x.op.cost
            has_range = has_range or (x.op.name in _COMPARISONS and any(map(_is_index, x.inputs)))
        elif x.op.name not in ("const", "iota") and number.get(x, len(number)) >= number[n]:
            return False  # it may depend on what is masked
    return has_range and cost <= MAX_MASK_COST


def _is_again(x: Node) -> bool:
    """Whether a value is computed again wherever it is wanted."""
    return x.op.kind in ("elementwise", "movement")


def _is_index(x: Node) -> bool:
    """Whether a value is made of indices by movement and sums."""
    return any(
        y.op.name == "iota" for y in reachable([x], lambda y: y.inputs if y.op.kind == "movement" or y.op.name in ("add", "sub", "cast") else ())
    )


# --- masks ----------------------------------------------------------------------------------------------------------------------------------


def _masked(graph: Graph, nodes: list[Node], masks: dict[Node, tuple[Node, ...]]) -> Graph:
    """``graph`` with masks on some of its reductions."""
    b = Builder()
    made: dict[Node, Node] = {}
    for node in nodes:
        if node not in masks:
            made[node] = b.with_inputs(node, tuple([made[x] for x in node.inputs]))
            continue
        for x in topological(masks[node], stop=made.__contains__):
            if x not in made:
                made[x] = b.with_inputs(x, tuple([made[y] for y in x.inputs]))
        mask = reduce(lambda p, q: b.make("or", p, q), [made[m] for m in masks[node]])
        made[node] = b(node.op, (_terms(b, node, mask, made),), node.attrs)
    return graph.mapped(made)


def _terms(b: Builder, n: Node, mask: Node, made: dict[Node, Node]) -> Node:
    """What ``n`` reduces where ``mask`` holds, and the identity elsewhere. A product's is that of 0 and -0."""
    (x,) = n.inputs
    inside = b.make("broadcast", mask, attrs=(x.shape, tuple(range(n.ndim))))

    def under(value: Node, other: object) -> Node:
        return b.make("select", inside, b.fit(value, x.shape), b.full(other, x.dtype, x.shape))

    product = product_of(x) if n.op.name == "reduce_sum" else None
    if product is None:
        return under(made[x], n.op.identity(x.dtype))
    first, second = factors_of(b, product, made)
    return b.make("mul", under(first, np.float64(0.0)), under(second, np.float64(-0.0)))
