"""Transposed factors: what a large product would read in steps far apart is kept in memory in the order in which it is read.

In the gradient of a weight, ``x.T @ dy``, the terms of a row of ``x.T`` are whole rows of ``x`` apart. Each tile of rows would touch a line of the
cache for each of its terms, and the next tile the same ones again. A transposed copy costs one pass, which is short beside a product of many
columns, whatever the numbers of its rows and terms, which may be symbolic. Few columns do not pay for it; tiles then pack their rows
(:mod:`hologram.graph.lower.row_panels`).
"""

from __future__ import annotations

from collections.abc import Set

from hologram.graph.fusion.library_products import ProductAxes, product_axes
from hologram.graph.legalize.variation import Variation
from hologram.graph.schedule.tiles import FAR_BYTES, MIN_PACKED_ROWS, MIN_PANEL_TERMS
from hologram.ir.index_maps import is_simple, linear, propagate_index, variables
from hologram.ir.node import Node
from hologram.ir.symbolic import Int, is_static, prod, split_linear, typical
from hologram.primitives.scalar.elementwise import PRODUCTS

MIN_TERMS = MIN_PACKED_ROWS * MIN_PANEL_TERMS * FAR_BYTES // 8  # of a product that is large


def transposed_factors(nodes: list[Node], materialized: Set[Node]) -> set[Node]:
    """The factors of large matrix products among ``nodes``, in topological order, that are to be kept as they are read. ``materialized``: what stands
    in memory anyway."""
    sums = [n for n in nodes if n.op.name == "reduce_sum" and _is_large(_terms(n))]
    if not sums:
        return set()
    varies = Variation()
    for n in nodes:
        varies.note(n)
    return {f for n in sums for f in _factors(n, varies, materialized)}


def _terms(node: Node) -> Node:
    """What a sum adds; before a reshape, which cuts long sums in parts."""
    (x,) = node.inputs
    return x.inputs[0] if x.op.name == "reshape" else x


def _summed(node: Node, terms: Node) -> set[int]:
    """The axes of the terms along which a sum runs."""
    (x,) = node.inputs
    steps = [typical(prod(x.shape[a + 1 :])) for a in node.attrs[0]]
    found = [(i, typical(prod(terms.shape[i + 1 :])), typical(n)) for i, n in enumerate(terms.shape)]
    return {i for step in steps for i, own, n in found if own <= step < own * n}


def _is_large(terms: Node) -> bool:
    return terms.op in PRODUCTS and typical(terms.size) >= MIN_TERMS


def _factors(node: Node, varies: Variation, materialized: Set[Node]) -> list[Node]:
    terms = _terms(node)
    if not is_static(terms.shape[-1]):  # of few columns, a copy would be a large part of the work
        return []
    summed = _summed(node, terms)
    axes = product_axes(terms, summed, varies)
    if axes is None or terms.ndim - 1 in summed:
        return []
    moved = [f for f in terms.inputs if f.op.name == "broadcast" and f.inputs[0].op.kind in ("elementwise", "movement")]
    return [f.inputs[0] for f in moved if f.inputs[0] not in materialized and _is_far(f, axes, varies.of(f), _places(f, materialized))]


def _is_far(factor: Node, axes: ProductAxes, of_factor: Set[int], places: list[Int]) -> bool:
    """Whether a factor of many rows, which differs along the axes ``of_factor``, is the same for all of many columns, and has its terms far apart and
    its rows next to each other in memory, at ``places``."""
    rows = sorted(i for i in of_factor - axes.summed - axes.batch if factor.shape[i] != 1)
    columns = factor.ndim - 1
    if not rows or columns in of_factor or columns in axes.batch:
        return False
    term, row, itemsize = max(axes.summed), rows[-1], factor.dtype.itemsize
    least = {term: MIN_PANEL_TERMS, row: MIN_PACKED_ROWS, columns: FAR_BYTES // itemsize}  # of fewer columns tiles pack nothing but their rows
    if any(typical(factor.shape[axis]) < n for axis, n in least.items()):
        return False
    steps = [(_step(p, term), _step(p, row)) for p in places]
    whole = [(down, across) for down, across in steps if down != 0 and across != 0]
    return bool(whole) and all(across == 1 and down is not None and down * itemsize >= FAR_BYTES for down, across in whole)


def _step(place: Int, axis: int) -> int | None:
    """How far neighbours along an axis are from each other; None where that is not known."""
    found = split_linear(place, f"d{axis}")
    return found[0] if found is not None and isinstance(found[0], int) else None


def _places(factor: Node, materialized: Set[Node]) -> list[Int]:
    """Where, in what it is made of, the elements of a factor lie; none where that is not known."""
    out: list[Int] = []
    waiting = [(factor, variables(factor.shape))]
    seen = set(waiting)
    while waiting:
        node, index = waiting.pop()
        if node in materialized:
            out.append(linear(index, node.shape))
        elif node.op.kind == "elementwise" or (node.op.kind == "movement" and is_simple(node)):
            for x, at, _ in propagate_index(node, index, ()):
                if (x, at) not in seen:
                    seen.add((x, at))
                    waiting.append((x, at))
        elif node.op.kind == "movement":
            return []
        elif node.shape:
            out.append(linear(index, node.shape))
    return out
