"""Legalization: rewrites a canonical graph into the forms that kernels have, in the graph's own ops.

- A reduction's axes become one run of adjacent axes; runs are reduced one after the other, the last first.
- Narrow floats are summed and scanned in float32 and rounded once.
- A reverse scan is a scan between two flips. What is computed from a long scan element by element is computed in its pages.
- A long reduction of few rows is cut in pages, and so can be shared among threads; a long scan is cut in pages with a carry. The canonical
  reduction order makes both give the same bits.
- An empty reduction is its value; one over a few adjacent elements is unrolled.
- Scatters and sorts have the form that :mod:`hologram.graph.legalize.scatters` and :mod:`hologram.graph.legalize.sorts` give them."""

from __future__ import annotations

from functools import partial

from hologram import dtypes
from hologram.graph.legalize.convolutions import map_factors, window_products
from hologram.graph.legalize.matrix_products import is_matmul, is_matvec_along_memory, reduce_as_matmul, reduce_matmul, reduce_split_k
from hologram.graph.legalize.paged_scans import in_pages
from hologram.graph.legalize.reductions import reduce_position, reduce_run, row_blocked, row_blocked_for_device
from hologram.graph.legalize.scans import legalize_scan, running_sum
from hologram.graph.legalize.scatters import legalize_scatter
from hologram.graph.legalize.sorts import LongSorts, legalize_sort
from hologram.graph.legalize.variation import Variation
from hologram.graph.size_conditions import SizeConditions
from hologram.ir.graph import Graph
from hologram.ir.node import Builder, Node
from hologram.ir.op import MULTI_RESULT, TABLE
from hologram.ir.symbolic import prod
from hologram.primitives.reductions import adjacent_runs, is_order_free

_LEGAL_KINDS = frozenset(("leaf", "elementwise", "movement", "gather"))  # of which graphs are legal as they are


def legalize(
    graph: Graph,
    precision: str = "exact",
    by_pairs: bool = False,
    split_k: bool = True,
    shared_bytes: int | None = None,
    conditions: SizeConditions | None = None,
) -> Graph:
    """``by_pairs``: products of bfloat16 may be summed two at a time; ``split_k``: long sums of products part by part. ``shared_bytes``: what groups
    share on a device, None elsewhere. ``conditions`` is told in which ranges of its symbols static programs sum in the same order."""
    if graph.kinds() <= _LEGAL_KINDS and not any(0 in n.shape for n in graph.nodes()):
        return graph
    b = Builder()
    long = None if shared_bytes is None else LongSorts(shared_bytes, partial(running_sum, b))
    varies = None if precision == "exact" else Variation(by_pairs, split_k, conditions)
    made: dict[Node, Node] = {}
    for node in graph.nodes():
        inputs = tuple(made[x] for x in node.inputs)
        new = _legalize_node(b, node, inputs, varies, long)
        if varies is not None:
            varies.note(new)
        made[node] = new
    return graph.mapped(made)


def _legalize_node(b: Builder, node: Node, inputs: tuple[Node, ...], varies: Variation | None, long: LongSorts | None) -> Node:
    if node.op.kind in MULTI_RESULT:
        return b(node.op, inputs, node.attrs)  # whose own size is only that of its first result
    if node.op.kind == "mark":
        return inputs[0]  # where the pass that forgets them is disabled
    if node.size == 0 and node.op.kind != "leaf":
        return b.full(0, node.dtype, node.shape)  # no element, so no work
    if node.op.kind == "reduce" and node.op.monoid is not None:
        return _reduce(b, node, inputs[0], varies)
    if node.op.kind == "reduce":
        return reduce_position(b, node.op, b.cast(inputs[0], dtypes.compute_type(inputs[0].dtype)), *node.attrs)
    if node.op.kind == "contraction":
        return _convolution(b, node, inputs, varies)
    if node.op.kind == "scan":
        assert node.op.monoid is not None
        at_once = long is not None and (varies is not None or is_order_free(node.op.monoid, inputs[0].dtype))
        return legalize_scan(b, node, inputs[0], at_once)
    if node.op.kind == "scatter":
        return legalize_scatter(b, node, inputs, long, varies is None)
    if node.op.kind == "sort":
        return legalize_sort(b, node, inputs[0], long)
    return in_pages(b, node, inputs) or b.with_inputs(node, inputs)


def _without_ones(b: Builder, x: Node, rank: int, varies: Variation) -> Node:
    """``x`` without the axes after the first ``rank``, of one element all; of a product each factor, lest the product be kept from its sum."""
    shape = x.shape[:rank]

    def narrowed(f: Node) -> Node:
        if f.shape in ((), shape):
            return f
        if f.op.name == "broadcast" and all(d < rank for d in f.attrs[1]):
            return b(f.op, f.inputs, (shape, f.attrs[1]))
        return f.inputs[0] if f.op.name == "reshape" and f.inputs[0].shape == shape else b.reshape(f, shape)

    if x.shape in ((), shape):
        return x
    made = map_factors(b, x, narrowed)
    for new in made.values():
        varies.note(new)
    return made[x]


def _reduce(b: Builder, node: Node, x: Node, varies: Variation | None) -> Node:
    op, (axes,) = node.op, node.attrs
    if not axes:
        return x
    n = prod(x.shape[a] for a in axes)
    if n == 0:
        return b.full(op.empty(x.dtype), x.dtype, node.shape)  # type: ignore[misc]
    x = b.cast(x, dtypes.compute_type(x.dtype))
    if varies is not None and all(x.shape[a] == 1 for a in range(axes[-1] + 1, x.ndim)):
        x = _without_ones(b, x, axes[-1] + 1, varies)  # a column of one element is summed as a row
    for run in reversed(adjacent_runs(axes)):
        if varies is not None and run == (x.ndim - 1,) and (products := reduce_as_matmul(b, op, x, varies)):
            x = products
        elif varies is not None and op.name == "reduce_sum" and x.dtype.is_float and is_matvec_along_memory(x, run, varies):
            order = (*(i for i in range(x.ndim) if i != run[0]), run[0])
            x = reduce_run(b, op, b(TABLE["transpose"], (x,), (order,)), (x.ndim - 1,))
        elif varies is not None and op.name == "reduce_sum" and x.dtype.is_float and is_matmul(x, run, varies):
            x = reduce_matmul(b, op, x, run, varies)
        elif varies is not None:
            x = reduce_run(b, op, *(row_blocked(b, op, x, run, varies) if varies.split_k else row_blocked_for_device(b, op, x, run)))
        else:
            x = reduce_run(b, op, x, run)
    return b.cast(b.reshape(x, node.shape), node.dtype)


def _convolution(b: Builder, node: Node, inputs: tuple[Node, ...], varies: Variation | None) -> Node:
    """Windows times weights, summed in one run of axes; where order is free, a long sum by channels is cut along its axes."""
    steps, dilations = node.attrs
    x, w = (b.cast(v, dtypes.compute_type(v.dtype)) for v in inputs)
    if x.size == 0:
        return b.full(0, node.dtype, node.shape)
    products = window_products(b, x, w, steps, dilations)
    args = b, TABLE["reduce_sum"], products.terms, products.axes
    total = reduce_run(*args) if varies is None or products.axes[0] == 3 else reduce_split_k(*args, varies)
    transposed = total if products.order == tuple(range(total.ndim)) else b(TABLE["transpose"], (total,), (products.order,))
    return b.cast(transposed, node.dtype)
