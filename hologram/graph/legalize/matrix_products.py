"""Matrix products, recognised as sums of products whose factors broadcast along different axes, and reduced down columns. Not in ``exact``."""

from __future__ import annotations

import math
from typing import Any

from hologram.graph.legalize.bf16_dot import pair_bfloat16
from hologram.graph.legalize.convolutions import SPLIT_K_TERMS, split_k_axes
from hologram.graph.legalize.reductions import reduce_run, row_blocked
from hologram.graph.legalize.variation import Variation
from hologram.graph.schedule.layout import memory_offsets, stride_along
from hologram.ir.node import Builder, Node
from hologram.ir.op import TABLE
from hologram.ir.symbolic import Int, prod
from hologram.ir.traversal import topological

# From how many terms, and up to how many, a sum of products of so many vectors with a matrix is taken along the memory of the matrix, which is
# then read once for each of them: what more vectors share is packed.
MATVEC_TERM_RANGES = {1: (16, math.inf), 2: (128, math.inf), 3: (128, math.inf), 4: (1024, SPLIT_K_TERMS)}
MIN_MATMUL_EXTENT = 8  # extents from which a sum of products is worth the loops of a matrix product


def reduce_as_matmul(b: Builder, op: Any, x: Node, varies: Variation) -> Node | None:
    """A sum over the last axis whose terms are products, or sums of products, by :func:`_reduce_product_as_matmul`; None for anything else."""
    if op.name != "reduce_sum" or not x.dtype.is_float:
        return None
    made: dict[Node, Node] = {}
    for n in topological([x], stop=lambda n: not _adds(n, x)):
        total = (
            b(n.op, tuple([made[i] for i in n.inputs]))
            if _adds(n, x)
            else _reduce_product_as_matmul(b, op, n, varies)
            if n.op.name == "mul"
            else None
        )
        if total is None:
            return None
        made[n] = total
    return made[x]


def _is_long(n: Int, least: int, varies: Variation) -> bool:
    """Whether an extent is ``least`` or more, as a symbolic one may be: of those the CPU has tiles."""
    return n >= least if isinstance(n, int) else varies.split_k


def _adds(n: Node, x: Node) -> bool:
    """Whether the terms of ``x`` go on as those of the inputs of ``n``."""
    return n.op.name == "add" and all(f.shape == x.shape for f in n.inputs)


def _reduce_product_as_matmul(b: Builder, op: Any, x: Node, varies: Variation) -> Node | None:
    """A sum over the last axis of products whose factors each lack one of the other axes: a matrix product. It is summed down columns.

    The columns are the last axis that one factor lacks, so that rows share what they read of the other: not the canonical reduction order.
    """
    last = x.ndim - 1
    first, second = (varies.of(f) for f in x.inputs)
    if last not in first or last not in second:
        return None
    long = [i for i in range(last) if _is_long(x.shape[i], MIN_MATMUL_EXTENT, varies)]
    unshared = [i for i in long if (i in first) != (i in second)]
    columns = max(unshared, default=None)
    if not any((i in first) != (columns in first) for i in unshared):
        columns = _along_memory(x, unshared)
    if columns is None:
        return None
    kept = [i for i in range(last) if i != columns]
    transposed = b(TABLE["transpose"], (x,), ((*kept, last, columns),))
    result = reduce_matmul(b, op, *row_blocked(b, op, transposed, (last - 1,)), varies)
    order = [*kept, columns]
    back = tuple(order.index(i) for i in range(last))
    return result if back == tuple(range(last)) else b(TABLE["transpose"], (result,), (back,))


def _along_memory(x: Node, unshared: list[int]) -> int | None:
    """Of a product with a vector, the axis along which its matrix lies in memory, where that is not the reduced one."""
    for f in x.inputs:
        if f.op.name == "transpose" and (axis := f.attrs[0].index(x.ndim - 1)) in unshared:
            return axis
    return None


def is_matvec_along_memory(x: Node, run: tuple[int, ...], varies: Variation) -> bool:
    """Whether ``x`` is products of few vectors and a matrix, summed down columns, whose matrix lies in memory along the summed axis."""
    n = x.shape[run[0]]
    if x.op.name != "mul" or len(run) > 1 or not isinstance(n, int):
        return False
    columns = {i for i in range(run[0] + 1, x.ndim) if x.shape[i] != 1}
    for matrix, vector in (x.inputs, x.inputs[::-1]):
        of_matrix, of_vector = varies.of(matrix), varies.of(vector)
        vectors = prod(size for i, size in enumerate(x.shape) if i not in of_matrix)
        least, most = MATVEC_TERM_RANGES.get(vectors, (math.inf, 0)) if isinstance(vectors, int) else (math.inf, 0)
        if least <= n <= most and run[0] in of_matrix & of_vector and columns and columns <= of_matrix - of_vector:
            return any(stride_along(e, run[0]) == 1 and all(stride_along(e, c) != 1 for c in columns) for e in memory_offsets(matrix))
    return False


def is_matmul(x: Node, run: tuple[int, ...], varies: Variation) -> bool:
    """Whether ``x`` is products whose factors each lack one of the other axes, long ones, summed down columns. Sums that are too long for panels are
    products of short ones, too: they then go part by part."""
    if x.op.name != "mul" or len(run) > 1:
        return False
    first, second = (varies.of(f) for f in x.inputs)
    count = x.shape[run[0]]
    least = 2 if isinstance(count, int) and count > SPLIT_K_TERMS else MIN_MATMUL_EXTENT
    long = [i for i, n in enumerate(x.shape) if _is_long(n, least, varies) and i not in run]
    unshared = {i in first for i in long if (i in first) != (i in second)}
    return len(unshared) == 2 and run[0] in first and run[0] in second


def reduce_matmul(b: Builder, op: Any, x: Node, run: tuple[int, ...], varies: Variation) -> Node:
    reduce = reduce_split_k if varies.split_k else reduce_run
    found = pair_bfloat16(b, x, run[-1]) if varies.by_pairs else None
    if found is None:
        return reduce(b, op, x, run)
    pairs, last = found
    total = reduce(b, op, pairs, run)
    return total if last is None else b(TABLE["add"], (total, last))


def reduce_split_k(b: Builder, op: Any, x: Node, run: tuple[int, ...]) -> Node:
    """Reduces one run of axes, a long one part by part: panels of what rows share then stay in the second-level cache."""
    x, runs = split_k_axes(b, x, run)
    for part in runs:
        x = reduce_run(b, op, x, part)
    return x
