"""Rewrites a canonical graph into one that fusion takes, in the graph's own ops: last step before kernels.

- A reduction's axes become one run of neighbours; runs are reduced one after the other, the last first.
- Narrow floats are summed and scanned in float32 and rounded once.
- A reverse scan is a scan between two flips. What is computed from a long scan element by element is computed in its pages.
- A long reduction of few rows is cut in pages, and so can be shared among threads; a long scan is cut in pages with a carry. The written order
  of reductions makes both give the same bits.
- An empty reduction is its value; one over a few neighbours is written out.
- Scatters and sorts have the form that :mod:`hologram.graph.legalize.scatters` and :mod:`hologram.graph.legalize.sorts` give them.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from hologram import dtypes
from hologram.dtypes import DType
from hologram.graph.legalize.bf16_dot import in_pairs
from hologram.graph.legalize.convolutions import PART, by_factors, few_terms, in_parts, window_products, written_out
from hologram.graph.legalize.paged_scans import in_pages, side_by_side
from hologram.graph.legalize.scatters import prepare_scatter
from hologram.graph.legalize.short_reductions import is_short, reduced
from hologram.graph.legalize.sorted_scatters import is_order_free, reduction_by
from hologram.graph.legalize.sorts import LongSorts, prepare_sort
from hologram.graph.schedule.choose import BAND, COLUMNS, LONG_ROW_BYTES, UNCACHED_BYTES
from hologram.graph.schedule.layout import places, step
from hologram.ir.graph import Graph
from hologram.ir.node import Builder, Node, const_attrs, topological
from hologram.ir.op import MULTIPLE, TABLE, Shape
from hologram.ir.symbolic import Int, floordiv, prod
from hologram.primitives.reductions import LAST, PAGE, adjacent_runs

MAX_IN_KERNEL = 256 * PAGE  # a longer reduction is always cut, lest a chunk take long
BAND_PIECES = 32  # pieces of bands that keep threads busy, where rows are as many
MANY_GROUPS = 1024  # blocks of columns that keep a device busy
LEAST_BAND = 16  # rows of a band
CUT_PAGES = 2  # up to which a reduction or a scan is one piece, however few there are
POSITION_PAGES = 4  # up to which positions of extremes are found in one piece
MANY_PAGES = 64  # of a scan: to add up so many totals one after the other takes long where many could at one time
LONG_COLUMN = 256  # elements of a scan
MANY_ROWS = 16  # results that are independent and so already fill the machine


def prepare(graph: Graph, precision: str = "exact", by_pairs: bool = False, by_parts: bool = True, shared_bytes: int | None = None) -> Graph:
    """``by_pairs``: products of bfloat16 may be summed two at a time; ``by_parts``: long sums of products part by part. ``shared_bytes``: what groups
    share on a device, None elsewhere."""
    b = Builder()
    long = None if shared_bytes is None else LongSorts(shared_bytes, partial(_running_sum, b))
    varies = None if precision == "exact" else Variation(by_pairs, by_parts)
    made: dict[Node, Node] = {}
    lines: dict[Node, Any] = {}
    for node in graph.nodes():
        inputs = tuple(made[x] for x in node.inputs)
        new = _prepare(b, node, inputs, varies, long)
        if varies is not None:
            varies.note(new)
        made[node] = new
        if node in graph.lines:
            lines.setdefault(new, graph.lines[node])
    return Graph([made[x] for x in graph.inputs], [made[x] for x in graph.outputs], lines)


class Variation:
    """Along which axes a node's elements differ; all axes for what is not known. ``by_pairs``, ``by_parts``: as :func:`prepare` has it."""

    def __init__(self, by_pairs: bool = False, by_parts: bool = True) -> None:
        self.by_pairs, self.by_parts = by_pairs, by_parts
        self.axes: dict[Node, frozenset[int]] = {}

    def of(self, node: Node) -> frozenset[int]:
        return self.axes.get(node) or frozenset(range(node.ndim)) if node.shape else frozenset()

    def note(self, node: Node) -> None:
        if node.op.kind == "elementwise" or node.op.name == "slice":
            self.axes[node] = frozenset[int]().union(*(self.of(x) for x in node.inputs))
        elif node.op.name == "broadcast":
            (x,), (_, dims) = node.inputs, node.attrs
            inside = self.of(x)
            self.axes[node] = frozenset(d for i, d in enumerate(dims) if i in inside and x.shape[i] != 1)


# From how many terms, and up to how many, a sum of products of so many vectors with a matrix is taken along the memory of the matrix, which is
# then read once for each of them: what more vectors share is packed.
FEW_VECTORS = {1: (16, math.inf), 2: (128, math.inf), 3: (128, math.inf), 4: (1024, PART)}
LEAST_PRODUCT = 8  # extents from which a sum of products is worth the loops of a matrix product


def _products(b: Builder, op: Any, x: Node, varies: Variation) -> Node | None:
    """A sum over the last axis whose terms are products, or sums of products, by :func:`_product`; None for anything else."""
    if op.name != "reduce_sum" or not x.dtype.is_float:
        return None
    made: dict[Node, Node] = {}
    for n in topological([x], stop=lambda n: not _adds(n, x)):
        total = b(n.op, tuple([made[i] for i in n.inputs])) if _adds(n, x) else _product(b, op, n, varies) if n.op.name == "mul" else None
        if total is None:
            return None
        made[n] = total
    return made[x]


def _adds(n: Node, x: Node) -> bool:
    """Whether the terms of ``x`` go on as those of the inputs of ``n``."""
    return n.op.name == "add" and all(f.shape == x.shape for f in n.inputs)


def _product(b: Builder, op: Any, x: Node, varies: Variation) -> Node | None:
    """A sum over the last axis of products whose factors each lack one of the other axes: a matrix product. It is summed down columns.

    The columns are the last axis that one factor lacks, so that rows share what they read of the other: another order than the written one.
    """
    last = x.ndim - 1
    first, second = (varies.of(f) for f in x.inputs)
    if last not in first or last not in second:
        return None
    long = [i for i in range(last) if isinstance(x.shape[i], int) and x.shape[i] >= LEAST_PRODUCT]  # type: ignore[operator]
    lonely = [i for i in long if (i in first) != (i in second)]
    columns = max(lonely, default=None)
    if not any((i in first) != (columns in first) for i in lonely):
        columns = _along_memory(x, lonely)
    if columns is None:
        return None
    kept = [i for i in range(last) if i != columns]
    turned = b(TABLE["transpose"], (x,), ((*kept, last, columns),))
    result = _reduce_product(b, op, *_in_bands(b, op, turned, (last - 1,)), varies)
    order = [*kept, columns]
    back = tuple(order.index(i) for i in range(last))
    return result if back == tuple(range(last)) else b(TABLE["transpose"], (result,), (back,))


def _along_memory(x: Node, lonely: list[int]) -> int | None:
    """Of a product with a vector, the axis along which its matrix lies in memory, where that is not the reduced one."""
    for f in x.inputs:
        if f.op.name == "transpose" and (axis := f.attrs[0].index(x.ndim - 1)) in lonely:
            return axis
    return None


def _lies_along(x: Node, run: tuple[int, ...], varies: Variation) -> bool:
    """Whether ``x`` is products of few vectors and a matrix, summed down columns, whose matrix lies in memory along the summed axis."""
    n = x.shape[run[0]]
    if x.op.name != "mul" or len(run) > 1 or not isinstance(n, int):
        return False
    columns = {i for i in range(run[0] + 1, x.ndim) if x.shape[i] != 1}
    for matrix, vector in (x.inputs, x.inputs[::-1]):
        of_matrix, of_vector = varies.of(matrix), varies.of(vector)
        vectors = prod(size for i, size in enumerate(x.shape) if i not in of_matrix)
        least, most = FEW_VECTORS.get(vectors, (math.inf, 0)) if isinstance(vectors, int) else (math.inf, 0)
        if least <= n <= most and run[0] in of_matrix & of_vector and columns and columns <= of_matrix - of_vector:
            return any(step(e, run[0]) == 1 and all(step(e, c) != 1 for c in columns) for e in places(matrix))
    return False


def _is_product(x: Node, run: tuple[int, ...], varies: Variation) -> bool:
    """Whether ``x`` is products whose factors each lack one of the other axes, long ones, summed down columns. Sums that are too long for panels are
    products of short ones, too: they then go part by part."""
    if x.op.name != "mul" or len(run) > 1:
        return False
    first, second = (varies.of(f) for f in x.inputs)
    count = x.shape[run[0]]
    least = 2 if isinstance(count, int) and count > PART else LEAST_PRODUCT
    long = [i for i, n in enumerate(x.shape) if isinstance(n, int) and n >= least and i not in run]
    lonely = {i in first for i in long if (i in first) != (i in second)}
    return len(lonely) == 2 and run[0] in first and run[0] in second


def _reduce_product(b: Builder, op: Any, x: Node, run: tuple[int, ...], varies: Variation) -> Node:
    reduce = _reduce_parts if varies.by_parts else _reduce_run
    found = in_pairs(b, x, run[-1]) if varies.by_pairs else None
    if found is None:
        return reduce(b, op, x, run)
    pairs, last = found
    total = reduce(b, op, pairs, run)
    return total if last is None else b(TABLE["add"], (total, last))


def _reduce_parts(b: Builder, op: Any, x: Node, run: tuple[int, ...]) -> Node:
    """Reduces one run of axes, a long one part by part: panels of what rows share then stay in the second-level cache."""
    x, runs = in_parts(b, x, run)
    for part in runs:
        x = _reduce_run(b, op, x, part)
    return x


def _prepare(b: Builder, node: Node, inputs: tuple[Node, ...], varies: Variation | None, long: LongSorts | None) -> Node:
    if node.op.kind in MULTIPLE:
        return b(node.op, inputs, node.attrs)  # whose own size is only that of its first result
    if node.op.kind == "mark":
        return inputs[0]  # where the pass that forgets them is disabled
    if node.size == 0 and node.op.kind != "leaf":
        return _full(b, 0, node.dtype, node.shape)  # no element, so no work
    if node.op.kind == "reduce" and node.op.monoid is not None:
        return _reduce(b, node, inputs[0], varies)
    if node.op.kind == "reduce":
        return _position(b, node.op, _cast(b, inputs[0], dtypes.compute_type(inputs[0].dtype)), *node.attrs)
    if node.op.kind == "contraction":
        return _convolution(b, node, inputs, varies is None)
    if node.op.kind == "scan":
        assert node.op.monoid is not None
        at_once = long is not None and (varies is not None or is_order_free(node.op.monoid, inputs[0].dtype))
        return _scan(b, node, inputs[0], at_once)
    if node.op.kind == "scatter":
        return prepare_scatter(b, node, inputs, long, varies is None)
    if node.op.kind == "sort":
        return prepare_sort(b, node, inputs[0], long)
    return in_pages(b, node, inputs) or b(node.op, inputs, node.attrs)


def _const(b: Builder, value: Any, d: DType) -> Node:
    return b(TABLE["const"], (), const_attrs(value, d))


def _cast(b: Builder, x: Node, d: DType) -> Node:
    return x if x.dtype is d else b(TABLE["cast"], (x,), (d.name,))


def _reshape(b: Builder, x: Node, shape: Shape) -> Node:
    return x if x.shape == shape else b(TABLE["reshape"], (x,), (shape,))


def _without_ones(b: Builder, x: Node, rank: int, varies: Variation) -> Node:
    """``x`` without the axes after the first ``rank``, of one element all; of a product each factor, lest the product be kept from its sum."""
    shape = x.shape[:rank]

    def narrowed(f: Node) -> Node:
        if f.shape in ((), shape):
            return f
        if f.op.name == "broadcast" and all(d < rank for d in f.attrs[1]):
            return b(f.op, f.inputs, (shape, f.attrs[1]))
        return f.inputs[0] if f.op.name == "reshape" and f.inputs[0].shape == shape else _reshape(b, f, shape)

    if x.shape in ((), shape):
        return x
    made = by_factors(b, x, narrowed)
    for new in made.values():
        varies.note(new)
    return made[x]


def _full(b: Builder, value: Any, d: DType, shape: Shape) -> Node:
    c = _const(b, value, d)
    return b(TABLE["broadcast"], (c,), (shape, ())) if shape else c


def _reduce(b: Builder, node: Node, x: Node, varies: Variation | None) -> Node:
    op, (axes,) = node.op, node.attrs
    if not axes:
        return x
    n = prod(x.shape[a] for a in axes)
    if n == 0:
        return _full(b, op.empty(x.dtype), x.dtype, node.shape)  # type: ignore[misc]
    x = _cast(b, x, dtypes.compute_type(x.dtype))
    if varies is not None and all(x.shape[a] == 1 for a in range(axes[-1] + 1, x.ndim)):
        x = _without_ones(b, x, axes[-1] + 1, varies)  # a column of one element is summed as a row
    for run in reversed(adjacent_runs(axes)):
        if varies is not None and run == (x.ndim - 1,) and (products := _products(b, op, x, varies)):
            x = products
        elif varies is not None and op.name == "reduce_sum" and x.dtype.is_float and _lies_along(x, run, varies):
            order = (*(i for i in range(x.ndim) if i != run[0]), run[0])
            x = _reduce_run(b, op, b(TABLE["transpose"], (x,), (order,)), (x.ndim - 1,))
        elif varies is not None and op.name == "reduce_sum" and x.dtype.is_float and _is_product(x, run, varies):
            x = _reduce_product(b, op, x, run, varies)
        elif varies is not None:
            x = _reduce_run(b, op, *(_in_bands if varies.by_parts else _in_many_bands)(b, op, x, run))
        else:
            x = _reduce_run(b, op, x, run)
    return _cast(b, _reshape(b, x, node.shape), node.dtype)


def _in_bands(b: Builder, op: Any, x: Node, run: tuple[int, ...]) -> tuple[Node, tuple[int, ...]]:
    """The partial results of bands of rows, and the axis left to reduce, where many long rows become one: another order than the written one.

    Memory is then read along rows, many at once, as it lies; down a block of columns it gives half of its bandwidth.
    """
    first, last = run[0], run[-1]
    n, width = prod(x.shape[first : last + 1]), prod(x.shape[last + 1 :])
    if not isinstance(n, int) or not isinstance(width, int) or sum(size != 1 for i, size in enumerate(x.shape) if i not in run) != 1:
        return x, run  # several results' axes may be rows and columns of a product, whose terms are far more than its factors
    if prod(x.shape[:first]) != 1:
        return x, run
    if n % BAND or n == BAND or width * x.dtype.itemsize < LONG_ROW_BYTES or n * width * x.dtype.itemsize < UNCACHED_BYTES:
        return x, run
    most = max(1, n // (BAND * BAND_PIECES))
    rows = BAND * next(k for k in range(most, 0, -1) if n % (BAND * k) == 0)
    banded = _reshape(b, x, (*x.shape[:first], n // rows, rows, *x.shape[last + 1 :]))
    return b(op, (banded,), ((first + 1,),)), (first,)


def _in_many_bands(b: Builder, op: Any, x: Node, run: tuple[int, ...]) -> tuple[Node, tuple[int, ...]]:
    """The partial results of bands of rows, as many as keep a device busy, and the axis left to reduce: another order than the written one."""
    first, last = run[0], run[-1]
    n, rows, columns = prod(x.shape[first : last + 1]), prod(x.shape[:first]), x.shape[last + 1 :]
    groups = rows * floordiv(prod(columns) + (COLUMNS - 1), COLUMNS)
    if not columns or not isinstance(n, int) or not isinstance(groups, int) or groups >= MANY_GROUPS:
        return x, run
    bands = next((k for k in range(min(n // LEAST_BAND, MANY_GROUPS // max(1, groups)), 1, -1) if n % k == 0), 1)
    if bands == 1:
        return x, run
    banded = _reshape(b, x, (*x.shape[:first], bands, n // bands, *columns))
    return b(op, (banded,), ((first + 1,),)), (first,)


def _convolution(b: Builder, node: Node, inputs: tuple[Node, ...], exact: bool) -> Node:
    """Windows times weights, summed in one run of axes; where order is free, a long sum by channels is cut along its axes."""
    steps, dilations = node.attrs
    x, w = (_cast(b, v, dtypes.compute_type(v.dtype)) for v in inputs)
    if x.size == 0:
        return _full(b, 0, node.dtype, node.shape)
    products = window_products(b, x, w, steps, dilations)
    reduce = _reduce_run if exact or products.axes[0] == 3 else _reduce_parts
    total = reduce(b, TABLE["reduce_sum"], products.terms, products.axes)
    turned = total if products.order == tuple(range(total.ndim)) else b(TABLE["transpose"], (total,), (products.order,))
    return _cast(b, turned, node.dtype)


def _reduce_run(b: Builder, op: Any, x: Node, run: tuple[int, ...], cut: bool = False) -> Node:
    """Reduces one run of axes; ``cut``: it already holds the partial results of pages."""
    first, last = run[0], run[-1]
    rows, columns, n = x.shape[:first], x.shape[last + 1 :], prod(x.shape[first : last + 1])
    if columns and isinstance(n, int) and n <= few_terms(x):
        return written_out(b, op.monoid, x, run)
    if is_short(x, run):
        return reduced(b, op.monoid, x, run)
    if not _needs_cut(rows, columns, n, cut):
        return b(op, (x,), (run,))
    x = _reshape(b, x, (*rows, n, *columns))
    pages = _in_pages(b, x, first, n, op.identity(x.dtype))
    partial = b(op, (pages,), ((first + 1,),))
    return _reduce_run(b, op, partial, (first,), True)


def _position(b: Builder, op: Any, x: Node, axis: int) -> Node:
    """argmax or argmin; of a long vector first within each page, then among the pages' extremes."""
    n = x.size
    if x.ndim != 1 or not isinstance(n, int) or n <= POSITION_PAGES * PAGE:
        return b(op, (x,), (axis,))
    extreme = TABLE["reduce_max" if op.name == "argmax" else "reduce_min"]
    pages = _in_pages(b, x, 0, n, extreme.identity(x.dtype))
    inside = b(op, (pages,), (1,))
    page = b(op, (b(extreme, (pages,), ((1,),)),), (0,))
    at = b(TABLE["take"], (inside, page), (0,))
    return b(TABLE["add"], (b(TABLE["mul"], (page, _const(b, PAGE, dtypes.int64))), at))


def _needs_cut(rows: Shape, columns: Shape, n: Int, cut: bool) -> bool:
    """Whether pages become results of their own. Where n is a symbol, it may be long, or so short that a page of padding costs more than it: it is
    cut, once, only where that happens few times."""
    independent = prod(rows) * (floordiv(prod(columns) + (COLUMNS - 1), COLUMNS) if columns else 1)
    few = isinstance(independent, int) and independent < MANY_ROWS
    if not isinstance(n, int):
        return few and not cut
    return n > MAX_IN_KERNEL or (few and n > CUT_PAGES * PAGE)


def _in_pages(b: Builder, x: Node, axis: int, n: Int, identity: Any, size: int = PAGE) -> Node:
    """Axis ``axis`` of extent n becomes (pages, size), filled up with the identity."""
    pages = floordiv(n + (size - 1), size)
    missing = pages * size - n
    if missing != 0:
        zero = (0,) * x.ndim
        x = b(TABLE["pad"], (x, _const(b, identity, x.dtype)), (zero, (*zero[:axis], missing, *zero[axis + 1 :])))
    return _reshape(b, x, (*x.shape[:axis], pages, size, *x.shape[axis + 1 :]))


def _slice_axis(b: Builder, x: Node, axis: int, start: Int, stop: Int, step: int = 1) -> Node:
    starts: list[Int] = [0] * x.ndim
    stops, steps = list(x.shape), [1] * x.ndim
    starts[axis], stops[axis], steps[axis] = start, stop, step
    return b(TABLE["slice"], (x,), (tuple(starts), tuple(stops), tuple(steps)))


def _flip(b: Builder, x: Node, axis: int) -> Node:
    return _slice_axis(b, x, axis, x.shape[axis] - 1, -1, -1)


def _scan(b: Builder, node: Node, x: Node, at_once: bool) -> Node:
    """``at_once``: what stands before pages may be found out of the written order, side by side instead of one after the other."""
    axis, reverse = node.attrs
    x = _cast(b, x, dtypes.compute_type(x.dtype))
    if reverse:
        x = _flip(b, x, axis)
    n = x.shape[axis]
    if axis == x.ndim - 1 and not (isinstance(n, int) and n <= PAGE):
        return side_by_side(b, _cast(b, _scan_of_pages(b, node.op, x, axis, at_once), node.dtype), n, reverse)
    bands = _bands_of_scan(x, axis) if at_once else 1
    x = _scan_of_bands(b, node.op, x, axis, bands) if bands > 1 else b(node.op, (x,), (axis, False))
    return _cast(b, _flip(b, x, axis) if reverse else x, node.dtype)


def _bands_of_scan(x: Node, axis: int) -> int:
    """In how many bands a scan down columns is cut that has few of them to do side by side; 1: none."""
    n, rows, columns = x.shape[axis], prod(x.shape[:axis]), prod(x.shape[axis + 1 :])
    groups = rows * floordiv(columns + (COLUMNS - 1), COLUMNS)
    if axis == x.ndim - 1 or not isinstance(n, int) or not isinstance(groups, int) or n < LONG_COLUMN or groups >= MANY_GROUPS:
        return 1
    most = min(math.isqrt(n), MANY_GROUPS // max(1, groups))
    return next((k for k in range(most, most // 4, -1) if n % k == 0), most)


def _scan_of_bands(b: Builder, op: Any, x: Node, axis: int, bands: int) -> Node:
    """Totals of bands, what stands before each, and the scan again, out of the written order."""
    n = x.shape[axis]
    assert isinstance(n, int)
    parts = _in_pages(b, x, axis, n, op.identity(x.dtype), -(-n // bands))
    totals = _reduce_run(b, reduction_by(op.monoid), parts, (axis + 1,))
    before = _moved_on(b, b(op, (totals,), (axis, False)), axis, op.identity(x.dtype))
    spread = b(TABLE["broadcast"], (before,), (parts.shape, tuple(i for i in range(parts.ndim) if i != axis + 1)))
    out = b(op.monoid, (spread, b(op, (parts,), (axis + 1, False))))
    whole = _reshape(b, out, (*x.shape[:axis], out.shape[axis] * out.shape[axis + 1], *x.shape[axis + 1 :]))
    return whole if whole.shape == x.shape else _slice_axis(b, whole, axis, 0, n)


def _moved_on(b: Builder, x: Node, axis: int, identity: Any) -> Node:
    """``x`` one further along ``axis``; the first is the identity."""
    moved = _slice_axis(b, x, axis, 0, x.shape[axis] - 1)
    low = tuple(1 if i == axis else 0 for i in range(x.ndim))
    return b(TABLE["pad"], (moved, _const(b, identity, x.dtype)), (low, (0,) * x.ndim))


def _running_sum(b: Builder, x: Node) -> Node:
    """Of integers, along the last axis."""
    return _scan(b, Node(TABLE["cumsum"], (x,), (x.ndim - 1, False), x.shape, x.dtype), x, True)


def _scan_of_pages(b: Builder, op: Any, x: Node, axis: int, at_once: bool) -> Node:
    """The running values of a long axis, (…, pages, PAGE)."""
    pages = _in_pages(b, x, axis, x.shape[axis], op.identity(x.dtype))
    inside = b(op, (pages,), (axis + 1, False))
    carry = _carry(b, op, b(op, (pages,), (axis + 1, LAST)), axis, at_once)
    spread = b(TABLE["broadcast"], (carry,), (inside.shape, tuple(range(carry.ndim))))
    return b(op.monoid, (spread, inside))


def _carry(b: Builder, op: Any, totals: Node, axis: int, at_once: bool) -> Node:
    """What stands before each page: the running totals, left to right, moved on by one; the first is the identity."""
    n = totals.shape[axis]
    if at_once and isinstance(n, int) and n > MANY_PAGES:
        running = _running(b, op, totals, axis)
    else:
        running = b(op, (_reshape(b, totals, (*totals.shape, 1)),), (axis, False))
    return _reshape(b, _moved_on(b, running, axis, op.identity(totals.dtype)), (*totals.shape, 1))


def _running(b: Builder, op: Any, totals: Node, axis: int) -> Node:
    """The running values as those of a row, long ones by pages again."""
    n = totals.shape[axis]
    if isinstance(n, int) and n <= PAGE:
        return b(op, (totals,), (axis, False))
    return side_by_side(b, _scan_of_pages(b, op, totals, axis, True), n, False)
