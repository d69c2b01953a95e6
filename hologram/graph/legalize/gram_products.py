"""Gram products: of a matrix times its own transpose, half is computed, and the rest is a copy.

``x.T @ x`` is symmetric: its elements at (i, j) and (j, i) are sums of the same products in the same order, so they have the same bits. Its rows are
cut in up to :data:`MAX_STRIPS`. Of each strip the product from its own columns on is computed, 10 of 16 blocks in all; the blocks before them are
transposes of blocks of the strips above. The factors need not be one node: they are compared element by element, for canonical reduction may have
moved a transpose into either. BLAS has ``syrk`` for such products.

Invariant: strips are sums in the order of the whole product. So they have rows and columns enough to be matrix products, as it is one.
"""

from __future__ import annotations

from typing import NamedTuple

from hologram.graph.fusion.library_products import product_axes
from hologram.graph.legalize.variation import Variation
from hologram.graph.library.attention.nodes import movement_source
from hologram.ir.graph import Graph
from hologram.ir.index_maps import Index, variables
from hologram.ir.node import Builder, Node
from hologram.ir.op import TABLE
from hologram.ir.symbolic import prod

MAX_STRIPS = 4
MIN_STRIP_ROWS = 128  # of fewer, tiles read what rows share too often
MIN_ROWS = 2 * MIN_STRIP_ROWS
MIN_TERMS = 256  # of its sums: the copy of half of the elements costs as much as some tens of terms
ALIGNED = 16  # elements: strips begin at lines of the cache; no less than a matrix product has rows at least
MAX_COMPARED = 64  # nodes of a factor that are compared with those of the other


class _Gram(NamedTuple):
    """The axes of the terms of a product along which its rows and its columns are."""

    rows: int
    columns: int


def halve_gram_products(graph: Graph) -> Graph:
    """``graph`` with strips of symmetric products; the graph itself where there are none."""
    if not any(_may_be_large(n) for n in graph.nodes()):
        return graph
    varies = Variation()
    found: dict[Node, _Gram] = {}
    for n in graph.nodes():
        varies.note(n)
        if _may_be_large(n) and (gram := _gram(n, varies)) is not None:
            found[n] = gram
    if not found:
        return graph
    build = Builder()
    made: dict[Node, Node] = {}
    parts: dict[Node, list[Node]] = {}
    for n in graph.nodes():
        inputs = tuple(made[x] for x in n.inputs)
        if n in found:
            parts[n] = _strips(build, n, inputs[0], found[n])
            made[n] = _whole(build, parts[n], *_axes_of_result(n, found[n]))
        else:
            made[n] = build.with_inputs(n, inputs)
    halved = graph.mapped(made)
    for n, strips in parts.items():
        if n in graph.lines:
            halved.lines.update(dict.fromkeys(strips, graph.lines[n]))
    return halved


def _may_be_large(n: Node) -> bool:
    if n.op.name != "reduce_sum" or not n.dtype.is_float or n.inputs[0].op.name != "mul":
        return False
    size = n.inputs[0].size
    return isinstance(size, int) and size >= MIN_ROWS * MIN_ROWS * MIN_TERMS


def _gram(node: Node, varies: Variation) -> _Gram | None:
    """The axes of a large product whose factors are each other's mirror image; None for other sums."""
    (terms,), (summed,) = node.inputs, node.attrs
    axes = product_axes(terms, set(summed), varies)
    if axes is None:
        return None
    first, second = terms.inputs
    own = [[i for i in sorted(varies.of(f) - axes.summed - axes.batch) if terms.shape[i] != 1] for f in (first, second)]
    if len(own[0]) != 1 or len(own[1]) != 1:
        return None
    (rows,), (columns,) = own
    n, count = terms.shape[rows], prod(terms.shape[i] for i in axes.summed)
    if n != terms.shape[columns] or n < MIN_ROWS or count < MIN_TERMS:  # type: ignore[operator]
        return None
    at = variables(terms.shape)
    mirrored = [*at]
    mirrored[rows], mirrored[columns] = at[columns], at[rows]
    return _Gram(min(rows, columns), max(rows, columns)) if _are_alike(first, at, second, tuple(mirrored)) else None


def _are_alike(x: Node, at: Index, y: Node, there: Index) -> bool:
    """Whether each element ``at`` of ``x`` is computed as the element ``there`` of ``y`` is, from the same elements."""
    waiting = [(x, at, y, there)]
    seen: set[tuple[Node, Index, Node, Index]] = set()
    while waiting:
        x, at, y, there = waiting.pop()
        (x, at), (y, there) = movement_source(x, at), movement_source(y, there)
        if (x, at) == (y, there) or (x, at, y, there) in seen:
            continue
        if x.op is not y.op or x.op.kind != "elementwise" or x.attrs != y.attrs or len(seen) == MAX_COMPARED:
            return False
        seen.add((x, at, y, there))
        waiting += [(f, at if f.shape else (), g, there if g.shape else ()) for f, g in zip(x.inputs, y.inputs, strict=True)]
    return True


def _strips(build: Builder, node: Node, terms: Node, gram: _Gram) -> list[Node]:
    """Of each strip of rows the product from its own columns on."""
    n = terms.shape[gram.rows]
    assert isinstance(n, int)
    starts = _starts(n)
    out = []
    for start, stop in zip(starts, [*starts[1:], n], strict=True):
        factors = [build.slice_axis(build.slice_axis(f, gram.rows, start, stop), gram.columns, start, n) for f in terms.inputs]
        out.append(build(node.op, (build.make("mul", *factors),), node.attrs))
    return out


def _axes_of_result(node: Node, gram: _Gram) -> tuple[int, int]:
    (summed,) = node.attrs
    rows, columns = (axis - sum(i < axis for i in summed) for axis in gram)
    return rows, columns


def _whole(build: Builder, strips: list[Node], rows: int, columns: int) -> Node:
    """The product, put together of strips and of what mirrors them."""
    order = list(range(strips[0].ndim))
    order[rows], order[columns] = columns, rows
    whole: list[Node] = []
    at = [0] * len(strips)  # the first column of the strip that comes next, in those before it
    for k, strip in enumerate(strips):
        height = strip.shape[rows]
        mirrors = [build.transpose(build.slice_axis(strips[i], columns, at[i], at[i] + height), tuple(order)) for i in range(k)]
        whole.append(build(TABLE["concatenate"], (*mirrors, strip), (columns,)) if mirrors else strip)
        at = [start + height if i <= k else start for i, start in enumerate(at)]  # type: ignore[misc]
    return build(TABLE["concatenate"], tuple(whole), (rows,))


def _starts(n: int) -> list[int]:
    """Where strips of ``n`` rows begin; the last is the longest."""
    strips = max(1, min(MAX_STRIPS, n // MIN_STRIP_ROWS))
    each = n // strips // ALIGNED * ALIGNED
    return [k * each for k in range(strips)]
