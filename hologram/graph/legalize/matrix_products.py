"""Matrix products, recognised as sums of products whose factors broadcast along different axes, and reduced down columns. Not in ``exact``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hologram.graph.legalize.bf16_dot import is_of_bfloat16, pair_bfloat16
from hologram.graph.legalize.convolutions import SPLIT_K_TERMS, split_k_axes
from hologram.graph.legalize.reductions import reduce_run, row_blocked
from hologram.graph.legalize.variation import Variation
from hologram.graph.schedule.layout import memory_offsets, stride_along
from hologram.graph.size_conditions import SizeConditions
from hologram.ir.node import Builder, Node
from hologram.ir.op import TABLE
from hologram.ir.symbolic import MAX_EXTENT, Int, prod
from hologram.ir.traversal import topological

# From how many terms, and up to how many, a sum of products of so many vectors with a matrix is taken along the memory of the matrix, which is
# then read once for each of them: what more vectors share is packed.
MATVEC_TERM_RANGES = {1: (16, MAX_EXTENT), 2: (128, MAX_EXTENT), 3: (128, MAX_EXTENT), 4: (1024, SPLIT_K_TERMS)}
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


def _is_long(n: Int, least: int) -> bool:
    """Whether an extent is at least so large; those that vary are taken for it."""
    return not isinstance(n, int) or n >= least


def _require_long(x: Node, axes: Iterable[int], varies: Variation) -> None:
    """Notes that extents that vary must be as long as they were taken for."""
    for i in axes:
        varies.conditions.require(x.shape[i], MIN_MATMUL_EXTENT)


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
    long = [i for i in range(last) if _is_long(x.shape[i], MIN_MATMUL_EXTENT)]
    unshared = [i for i in long if (i in first) != (i in second)]
    columns = max(unshared, default=None)
    if not any((i in first) != (columns in first) for i in unshared):
        columns = _along_memory(x, unshared)
    if columns is None:
        return None
    _require_long(x, unshared, varies)
    kept = [i for i in range(last) if i != columns]
    transposed = b(TABLE["transpose"], (x,), ((*kept, last, columns),))
    terms = (transposed, (last - 1,)) if len(unshared) > 1 else row_blocked(b, op, transposed, (last - 1,), varies)
    result = reduce_matmul(b, op, *terms, varies)
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
    if x.op.name != "mul" or len(run) > 1:
        return False
    columns = {i for i in range(run[0] + 1, x.ndim) if x.shape[i] != 1}
    for matrix, vector in (x.inputs, x.inputs[::-1]):
        of_matrix, of_vector = varies.of(matrix), varies.of(vector)
        if run[0] not in of_matrix & of_vector or not columns or not columns <= of_matrix - of_vector:
            continue
        if not any(stride_along(e, run[0]) == 1 and all(stride_along(e, c) != 1 for c in columns) for e in memory_offsets(matrix)):
            continue
        return _takes_vectors(prod(size for i, size in enumerate(x.shape) if i not in of_matrix), n, varies.conditions)
    return False


def _takes_vectors(vectors: Int, n: Int, conditions: SizeConditions) -> bool:
    """Whether products of so many vectors, of ``n`` terms, are summed along the memory of the matrix: numbers of vectors that vary are taken for
    large ones, and of terms for those in the range."""
    if not isinstance(vectors, int):
        conditions.require(vectors, max(MATVEC_TERM_RANGES) + 1)
        return False
    if vectors not in MATVEC_TERM_RANGES:
        return False
    least, most = MATVEC_TERM_RANGES[vectors]
    conditions.require(n, least, most)
    return not isinstance(n, int) or least <= n <= most


def is_matmul(x: Node, run: tuple[int, ...], varies: Variation) -> bool:
    """Whether ``x`` is products whose factors each lack one of the other axes, long ones, summed down columns. Sums that are too long for panels are
    products of short ones, too: they then go part by part."""
    if x.op.name != "mul" or len(run) > 1:
        return False
    first, second = (varies.of(f) for f in x.inputs)
    count = x.shape[run[0]]
    unshared = [i for i in range(x.ndim) if (i in first) != (i in second) and i not in run]

    def has_columns_and_rows(least: int) -> bool:
        return len({i in first for i in unshared if _is_long(x.shape[i], least)}) == 2

    if run[0] not in first or run[0] not in second or not has_columns_and_rows(2):
        return False
    varies.conditions.require(count, most=SPLIT_K_TERMS)
    if isinstance(count, int) and count > SPLIT_K_TERMS:
        return True
    found = has_columns_and_rows(MIN_MATMUL_EXTENT)
    if found and varies.by_pairs and is_of_bfloat16(x):  # elsewhere either way has the same order
        _require_long(x, unshared, varies)
    return found


def reduce_matmul(b: Builder, op: Any, x: Node, run: tuple[int, ...], varies: Variation) -> Node:
    def reduce(terms: Node) -> Node:
        return reduce_split_k(b, op, terms, run, varies) if varies.split_k else reduce_run(b, op, terms, run)

    found = pair_bfloat16(b, x, run[-1]) if varies.by_pairs else None
    if found is None:
        if varies.by_pairs and is_of_bfloat16(x):
            varies.conditions.never(x.shape[run[-1]])
        return reduce(x)
    pairs, last = found
    total = reduce(pairs)
    return total if last is None else b(TABLE["add"], (total, last))


def reduce_split_k(b: Builder, op: Any, x: Node, run: tuple[int, ...], varies: Variation) -> Node:
    """Reduces one run of axes, a long one part by part: panels of what rows share then stay in the second-level cache. One whose length varies is
    one piece."""
    varies.conditions.require(prod(x.shape[a] for a in run), most=SPLIT_K_TERMS)
    x, runs = split_k_axes(b, x, run)
    for part in runs:
        x = reduce_run(b, op, x, part)
    return x
