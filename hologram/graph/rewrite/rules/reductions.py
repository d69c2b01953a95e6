"""Reductions of broadcasts, transposes, reshapes and unit axes; what commutes with a sum or an extreme.

The order in which a sum of floats is taken is part of its meaning (``docs/internals/ir.md``): a rule here is exact where the op is
indifferent to order, or where the runs of reduced axes and their forms stay what they are. Reordering alone is ``standard``.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from hologram import dtypes
from hologram.dtypes import DType
from hologram.graph.rewrite.rewriter import Rewriter, Rule
from hologram.graph.rewrite.rule import Examples, rule_fn
from hologram.graph.rewrite.rules.reshape_groups import groups, rest, taken
from hologram.ir.node import Node, const_value
from hologram.ir.op import Op, Shape
from hologram.ir.symbolic import Expr, Int, bounds, prod
from hologram.primitives.reductions import adjacent_runs

Axes = tuple[int, ...]


# --- the canonical reduction order -----------------------------------------------------------------------------------------------


def indifferent(op: Op, dtype: DType) -> bool:
    """Whether the order of elements does not show in the result's bits."""
    if op.monoid is None:
        return True  # argmax and argmin settle ties by index, and the axis stays
    return not dtype.is_float or "idempotent" in op.monoid.algebra


def runs_of(shape: Shape, axes: Axes) -> list[tuple[Int, bool]]:
    """For each run of reduced axes, in the order of axes: how many elements, and whether it is reduced horizontally. Runs of one element do not
    count; of two elements, both forms are one."""
    out = []
    for run in adjacent_runs(axes):
        n = prod(shape[a] for a in run)
        if n != 1:
            out.append((n, len(shape) - 1 in run and n != 2))
    return out


def reduced_axes(node: Node) -> Axes:
    return node.attrs[0] if node.op.monoid is not None else (node.attrs[0],)


def reduce_like(b: Rewriter, node: Node, x: Node, axes: Axes) -> Node:
    """The reduction of ``node`` over other axes of another array; ``x`` itself over none."""
    if not axes:
        return x
    return b(node.op, (x,), (axes,) if node.op.monoid is not None else (axes[0],))


def _keeps_order(node: Node, x: Node, axes: Axes) -> bool:
    """Whether reducing ``x`` over ``axes`` in place of ``node`` combines the same elements in the same order."""
    return indifferent(node.op, node.dtype) or runs_of(node.inputs[0].shape, reduced_axes(node)) == runs_of(x.shape, axes)


# f(node, b) -> (the rewritten node, whether the order of elements is the same), or None
Ordered = Callable[[Node, Rewriter], tuple[Node, bool] | None]


def _by_order(f: Ordered, name: str, algebra: str, over: str, examples: Examples, otherwise: str) -> list[Rule]:
    """Two rules: exact where the order is kept, and ``otherwise``."""

    def kept(node: Node, b: Rewriter) -> Node | None:
        out = f(node, b)
        return out[0] if out is not None and out[1] else None

    def reordered(node: Node, b: Rewriter) -> Node | None:
        out = f(node, b)
        return out[0] if out is not None and not out[1] else None

    exact = rule_fn(("@reduce",), name, algebra, "exact", over=(over,), examples=examples)(kept)
    return [exact, rule_fn(("@reduce",), f"{name}-reordered", algebra, otherwise, over=(over,), examples=examples)(reordered)]


def _each(b: Rewriter, x: Node, *axes: Axes) -> list[Node]:
    """The reductions that take x's type, over each of the given axes."""
    names = ("reduce_any",) if x.dtype.kind == "b" else ("reduce_max", "reduce_sum")
    return [b.make(n, x, attrs=(a,)) for n in names for a in axes] + [b.make("argmax", x, attrs=a) for a in axes if len(a) == 1]


# --- axes of extent 1 ------------------------------------------------------------------------------------------------


def _over_units(b: Rewriter, dtype: DType) -> list[Node]:
    x = b.argument(dtype, 3, 1, 4)
    return _each(b, x, (1,), (1, 2), (0, 1))


@rule_fn(("@reduce",), "reduce-units", "the reduction over an axis of extent 1 drops the axis", "exact", examples=_over_units, shallow=True)
def reduce_units(node: Node, b: Rewriter) -> Node | None:
    x, axes = node.inputs[0], reduced_axes(node)
    dropped = tuple(a for a in axes if x.shape[a] == 1)
    if not dropped and axes:
        return None
    if node.op.monoid is None:
        return b.full(0, node.dtype, node.shape)
    kept = rest(x.ndim, dropped)
    smaller = b.make("reshape", x, attrs=(taken(x.shape, kept),))
    remaining = tuple(i for i, a in enumerate(kept) if a in axes)
    return reduce_like(b, node, smaller, remaining) if _keeps_order(node, smaller, remaining) else None


def _scans_of_one(b: Rewriter, dtype: DType) -> list[Node]:
    return [b.make("cummax", b.argument(dtype, 3, 1), attrs=(1, False))]


@rule_fn(("@scan",), "scan-unit", "the running value along an axis of extent 1 is x", "exact", examples=_scans_of_one)
def scan_unit(node: Node, b: Rewriter) -> Node | None:
    return node.inputs[0] if node.inputs[0].shape[node.attrs[0]] == 1 else None


# --- movement below a reduction --------------------------------------------------------------------------------------


def _over_transposes(b: Rewriter, dtype: DType) -> list[Node]:
    return _each(b, b.make("transpose", b.argument(dtype, 3, 4, 5), attrs=((2, 0, 1),)), (0,), (1,), (2,), (0, 2))


def _reduce_transpose(node: Node, b: Rewriter) -> tuple[Node, bool]:
    below, axes = node.inputs[0], reduced_axes(node)
    x, perm = below.inputs[0], below.attrs[0]
    positions = taken(perm, axes)
    kept = taken(perm, rest(below.ndim, axes))
    inner = reduce_like(b, node, x, tuple(sorted(positions)))
    order = tuple(sorted(kept).index(a) for a in kept)
    in_order = indifferent(node.op, node.dtype) or list(positions) == sorted(positions)
    return b.make("transpose", inner, attrs=(order,)), in_order and _keeps_order(node, x, tuple(sorted(positions)))


def _over_reshapes(b: Rewriter, dtype: DType) -> list[Node]:
    split = b.make("reshape", b.argument(dtype, 6, 4), attrs=((2, 3, 4),))
    unit = b.make("reshape", b.argument(dtype, 4, 3), attrs=((4, 1, 3, 1),))
    return [*_each(b, split, (0, 1), (2,)), *_each(b, unit, (0,), (2,), (1, 2))]


def _reduce_reshape(node: Node, b: Rewriter) -> Node | None:
    below, axes = node.inputs[0], reduced_axes(node)
    x = below.inputs[0]
    runs = groups(x.shape, below.shape)
    if runs is None or node.op.monoid is None and any(len(olds) != 1 for olds, news in runs if axes[0] in news):
        return None
    positions: list[int] = []
    for olds, news in runs:
        reduced = [a in axes for a in news]
        if any(reduced) and not all(reduced):
            return None
        if any(reduced):
            positions.extend(olds)
    if not positions or not _keeps_order(node, x, tuple(positions)):
        return None
    return b.make("reshape", reduce_like(b, node, x, tuple(positions)), attrs=(node.shape,))


@rule_fn(
    ("@reduce",),
    "reduce-reshape",
    "reduce(reshape(x)) = reshape(reduce(x)) where runs of axes stay whole",
    "exact",
    over=("reshape",),
    examples=_over_reshapes,
)
def reduce_reshape(node: Node, b: Rewriter) -> Node | None:
    return _reduce_reshape(node, b)


def _over_broadcasts(b: Rewriter, dtype: DType) -> list[Node]:
    return _each(b, b.make("broadcast", b.argument(dtype, 4, 5), attrs=((3, 4, 5, 2), (1, 2))), (1,), (2,), (1, 2))


def _reduce_broadcast(node: Node, b: Rewriter) -> tuple[Node, bool] | None:
    """Where every reduced axis is one of the array's own."""
    below, axes = node.inputs[0], reduced_axes(node)
    dims = below.attrs[1]
    if not all(a in dims for a in axes):
        return None
    return _below_broadcast(node, b, axes)


def _below_broadcast(node: Node, b: Rewriter, axes: Axes) -> tuple[Node, bool]:
    """Reduces what is broadcast, over those of ``axes`` that it has, and broadcasts the result."""
    below = node.inputs[0]
    x, dims = below.inputs[0], below.attrs[1]
    inner = tuple(dims.index(a) for a in axes if a in dims)
    kept = rest(below.ndim, reduced_axes(node))
    positions = tuple(kept.index(a) for a in dims if a in kept)
    return b.make("broadcast", reduce_like(b, node, x, inner), attrs=(node.shape, positions)), _keeps_order(node, x, inner)


def _over_new_axes(b: Rewriter, dtype: DType) -> list[Node]:
    return _each(b, b.make("broadcast", b.argument(dtype, 4), attrs=((3, 4, 2), (1,))), (0,), (0, 1), (0, 1, 2))


@rule_fn(("@reduce",), "extreme-broadcast", "max(broadcast(x)) = max(x) along new axes", "exact", over=("broadcast",), examples=_over_new_axes)
def extreme_broadcast(node: Node, b: Rewriter) -> Node | None:
    below, axes = node.inputs[0], reduced_axes(node)
    new = [a for a in axes if a not in below.attrs[1]]
    if not new or not all(_not_empty(below.shape[a]) for a in new):
        return None
    if node.op.monoid is None:
        return b.full(0, node.dtype, node.shape)
    return _below_broadcast(node, b, axes)[0] if "idempotent" in node.op.monoid.algebra else None


def _not_empty(n: Int) -> bool:
    low, _ = bounds(n)
    return low is not None and low >= 1


def _sum_broadcast(node: Node, b: Rewriter) -> Node | None:
    below, axes = node.inputs[0], reduced_axes(node)
    times = prod(below.shape[a] for a in axes if a not in below.attrs[1])
    if isinstance(times, Expr) or times == 1:
        return None
    factor = times % (1 << node.dtype.bits) if node.dtype.is_integer else times
    return b.make("mul", _below_broadcast(node, b, axes)[0], b.const(factor, node.dtype))


_SUM_BROADCAST = "sum(broadcast(x)) = n * sum(x) along new axes of n elements"


@rule_fn(("reduce_sum",), "sum-broadcast", _SUM_BROADCAST, "exact", over=("broadcast",), examples=_over_new_axes)
def sum_broadcast(node: Node, b: Rewriter) -> Node | None:
    return _sum_broadcast(node, b) if node.dtype.is_integer else None


@rule_fn(("reduce_sum",), "sum-broadcast-float", _SUM_BROADCAST, "fast", over=("broadcast",), examples=_over_new_axes)
def sum_broadcast_float(node: Node, b: Rewriter) -> Node | None:
    return _sum_broadcast(node, b) if node.dtype.is_float else None


# --- reductions of reductions ----------------------------------------------------------------------------------------


def _over_reductions(b: Rewriter, dtype: DType) -> list[Node]:
    x = b.argument(dtype, 3, 4, 5)
    pairs = [(r, o) for r in _each(b, x, (2,), (1, 2)) for o in ((0,), (1,)) if r.op.monoid is not None and o[0] < r.ndim]
    return [b(r.op, (r,), (o,)) for r, o in pairs]


def _reduce_reduce(node: Node, b: Rewriter) -> tuple[Node, bool] | None:
    below = node.inputs[0]
    if below.op is not node.op or node.op.monoid is None:
        return None
    x, first, second = below.inputs[0], reduced_axes(below), reduced_axes(node)
    axes = tuple(sorted((*first, *taken(rest(x.ndim, first), second))))
    apart = runs_of(below.shape, second) + runs_of(x.shape, first) == runs_of(x.shape, axes) and dtypes.compute_type(node.dtype) is node.dtype
    return reduce_like(b, node, x, axes), indifferent(node.op, node.dtype) or apart and max(taken(rest(x.ndim, first), second)) < min(first)


# --- what commutes with a reduction ----------------------------------------------------------------------------------


def _sum_of_negatives(b: Rewriter, dtype: DType) -> list[Node]:
    return [b.make("reduce_sum", b.make("neg", b.argument(dtype, 3, 4)), attrs=((1,),))] if dtype.kind in "iuf" else []


def _sum_neg(node: Node, b: Rewriter) -> Node:
    return b.make("neg", reduce_like(b, node, node.inputs[0].inputs[0], node.attrs[0]))


@rule_fn(("reduce_sum",), "sum-neg", "sum(-x) = -sum(x)", "exact", over=("neg",), examples=_sum_of_negatives)
def sum_neg(node: Node, b: Rewriter) -> Node | None:
    return _sum_neg(node, b) if node.dtype.is_integer else None


@rule_fn(("reduce_sum",), "sum-neg-float", "sum(-x) = -sum(x)", "fast", over=("neg",), examples=_sum_of_negatives)
def sum_neg_float(node: Node, b: Rewriter) -> Node | None:
    return _sum_neg(node, b) if node.dtype.is_float else None


def _extremes_of_negatives(b: Rewriter, dtype: DType) -> list[Node]:
    negative = b.make("neg", b.argument(dtype, 3, 4)) if dtype.is_float else None
    return [b.make(n, negative, attrs=((0,),)) for n in ("reduce_max", "reduce_min")] if negative is not None else []


@rule_fn(("reduce_max", "reduce_min"), "extreme-neg", "max(-x) = -min(x)", "exact", over=("neg",), examples=_extremes_of_negatives)
def extreme_neg(node: Node, b: Rewriter) -> Node | None:
    if not node.dtype.is_float:
        return None  # the least integer has no negative
    other = "reduce_min" if node.op.name == "reduce_max" else "reduce_max"
    return b.make("neg", b.make(other, node.inputs[0].inputs[0], attrs=node.attrs))


def _quantified_negations(b: Rewriter, dtype: DType) -> list[Node]:
    if dtype.kind != "b":
        return []
    negated = b.make("not", b.argument(dtype, 3, 4))
    return [b.make(n, negated, attrs=((0,),)) for n in ("reduce_any", "reduce_all")]


@rule_fn(("reduce_any", "reduce_all"), "quantified-not", "any(not p) = not all(p)", "exact", over=("not",), examples=_quantified_negations)
def quantified_not(node: Node, b: Rewriter) -> Node | None:
    other = "reduce_all" if node.op.name == "reduce_any" else "reduce_any"
    return b.make("not", b.make(other, node.inputs[0].inputs[0], attrs=node.attrs))


def _scaled_sums(b: Rewriter, dtype: DType) -> list[Node]:
    if dtype.kind == "b":
        return []
    x, row = b.argument(dtype, 3, 4), b.make("broadcast", b.argument(dtype, 3), attrs=((3, 4), (0,)))
    return [b.make("reduce_sum", b.make("mul", x, s), attrs=((1,),)) for s in (b.const(3, dtype), b.argument(dtype), row)]


def _sum_scaled(node: Node, b: Rewriter) -> Node | None:
    axes = node.attrs[0]
    for x, factor in (node.inputs[0].inputs, node.inputs[0].inputs[::-1]):
        if not x.shape:
            continue
        if not factor.shape:
            return b.make("mul", reduce_like(b, node, x, axes), factor)
        if factor.op.name == "broadcast" and not any(a in axes for a in factor.attrs[1]):
            kept = rest(x.ndim, axes)
            positions = tuple(kept.index(a) for a in factor.attrs[1])
            return b.make("mul", reduce_like(b, node, x, axes), b.make("broadcast", factor.inputs[0], attrs=(node.shape, positions)))
    return None


_SUM_SCALED = "sum(x * s) = sum(x) * s for s the same along the axes"


@rule_fn(("reduce_sum",), "sum-scaled", _SUM_SCALED, "exact", over=("mul",), examples=_scaled_sums)
def sum_scaled(node: Node, b: Rewriter) -> Node | None:
    return _sum_scaled(node, b) if node.dtype.is_integer else None


@rule_fn(("reduce_sum",), "sum-scaled-float", "sum(x * c) = sum(x) * c for |c| >= 1", "fast", over=("mul",), examples=_scaled_sums)
def sum_scaled_float(node: Node, b: Rewriter) -> Node | None:
    """A smaller factor may be what keeps the sum from overflowing."""
    x, factor = sorted(node.inputs[0].inputs, key=lambda n: n.op.name == "const")
    if not node.dtype.is_float or factor.op.name != "const" or not 1 <= abs(float(const_value(factor))) < math.inf:
        return None
    return b.make("mul", reduce_like(b, node, x, node.attrs[0]), factor)


RULES: list[Rule] = [
    reduce_units,
    scan_unit,
    *_by_order(_reduce_transpose, "reduce-transpose", "reduce(transpose(x)) = transpose(reduce(x))", "transpose", _over_transposes, "standard"),
    reduce_reshape,
    extreme_broadcast,
    sum_broadcast,
    sum_broadcast_float,
    *_by_order(_reduce_broadcast, "reduce-broadcast", "reduce(broadcast(x)) = broadcast(reduce(x))", "broadcast", _over_broadcasts, "standard"),
    *_by_order(_reduce_reduce, "reduce-reduce", "reduce(reduce(x)) = reduce(x)", "@reduce", _over_reductions, "fast"),
    sum_neg,
    sum_neg_float,
    extreme_neg,
    quantified_not,
    sum_scaled,
    sum_scaled_float,
]
