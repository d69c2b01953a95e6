"""Legalization of convolutions: vertical reductions of products of windows and weights.

A product of tiles wants long columns whose elements are neighbours, rows that share them, and for each row one number at a time. Where rows of the
result are long, the columns are its last space axis: windows are what is shared, weights the numbers. Where they are short, as in the derivative
by the weights, or fill registers worse, or are steps apart in memory, the columns are the channels of the result: weights, channels last, are shared,
windows the numbers. The order of the sum is the same.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import NamedTuple

from hologram.graph.schedule.nest import NARROW
from hologram.graph.schedule.tiles import block_width, lanes
from hologram.ir.node import Builder, Node
from hologram.ir.op import TABLE, Op
from hologram.ir.symbolic import Int, prod
from hologram.ir.traversal import topological

MIN_WINDOW_COLUMNS = 28  # windows in a row from which they make good columns
CHANNELS_WORK_RATIO = 1.1  # how much more work by windows outweighs that weights and results are transposed
BLOCK_COLUMNS, HALF_REGISTER_COLUMNS = 64, 8  # columns of a block of float32 with registers of 64 bytes, and of half a one
MAX_UNROLLED_TERMS = 32  # of a window that are written out
SPLIT_K_TERMS = 2048  # terms of a sum by one panel of weights, which so stays in the second-level cache

MIN_SPLIT_K_TERMS = SPLIT_K_TERMS // 8  # shorter ones are more results than sums


class Products(NamedTuple):
    """What is summed over ``axes``, neighbours, and the order in which the axes that are left are (groups, n, o, windows…)."""

    terms: Node
    axes: tuple[int, ...]
    order: tuple[int, ...]


def window_products(b: Builder, x: Node, w: Node, steps: tuple[int, ...], dilations: tuple[int, ...]) -> Products:
    sizes, o, rank = w.shape[3:], w.shape[1], len(steps)
    seen = b(TABLE["windows"], (x,), (sizes, steps, dilations))
    counts = seen.shape[3 + rank :]
    if isinstance(counts[-1], int) and isinstance(o, int) and _prefers_channels(counts[-1], o, steps[-1]):
        return _by_channels(b, seen, w, rank)
    shape = (*x.shape[:2], o, x.shape[2], *sizes, *counts)
    windows = b(TABLE["broadcast"], (seen,), (shape, (0, 1, *range(3, 4 + 2 * rank))))
    weights = b(TABLE["broadcast"], (w,), (shape, (0, *range(2, 4 + rank))))
    return Products(b(TABLE["mul"], (windows, weights)), tuple(range(3, 4 + rank)), tuple(range(3 + rank)))


def _prefers_channels(windows: int, channels: int, step: int) -> bool:
    """Whether the columns are better channels than windows in a row, ``step`` elements apart."""
    if windows < min(MIN_WINDOW_COLUMNS, channels):
        return True
    return channels >= 2 * NARROW and (step > 1 or _busy_lanes(windows) > CHANNELS_WORK_RATIO * _busy_lanes(channels))


def _busy_lanes(columns: int) -> float:
    """Lanes that compute, for each column."""
    return lanes(columns, block_width(columns, BLOCK_COLUMNS, HALF_REGISTER_COLUMNS), HALF_REGISTER_COLUMNS) / columns


def _by_channels(b: Builder, seen: Node, w: Node, rank: int) -> Products:
    """Terms (groups, n, windows…, c, sizes…, o)."""
    transposed = b(TABLE["transpose"], (seen,), ((0, 1, *range(3 + rank, 3 + 2 * rank), *range(2, 3 + rank)),))
    last = b(TABLE["transpose"], (w,), ((0, *range(2, 3 + rank), 1),))
    shape = (*transposed.shape, w.shape[1])
    windows = b(TABLE["broadcast"], (transposed,), (shape, tuple(range(3 + 2 * rank))))
    weights = b(TABLE["broadcast"], (last,), (shape, (0, *range(2 + rank, 4 + 2 * rank))))
    return Products(b(TABLE["mul"], (windows, weights)), tuple(range(2 + rank, 3 + 2 * rank)), (0, 1, 2 + rank, *range(2, 2 + rank)))


def split_k_axes(b: Builder, terms: Node, axes: tuple[int, ...]) -> tuple[Node, list[tuple[int, ...]]]:
    """The terms, and runs of axes to sum over one after the other such that each is of moderate length. An axis may be cut in two.

    One whose extent has no divisor of about the right size stays whole.
    """
    extents = [terms.shape[a] for a in axes]
    k = len(axes)
    while k > 1 and _fits(prod(extents[k - 1 :])):
        k -= 1
    inside = prod(extents[k:])
    if k == 1 and _fits(prod(extents)) or not isinstance(inside, int) or not isinstance(n := extents[k - 1], int):
        return terms, [axes]
    near = next((d for d in range(min(n, SPLIT_K_TERMS // inside), 0, -1) if n % d == 0), 1)
    if near * inside < MIN_SPLIT_K_TERMS:
        return terms, [axes]
    at = axes[k - 1]
    cut = b(TABLE["reshape"], (terms,), ((*terms.shape[:at], n // near, near, *terms.shape[at + 1 :]),))
    return cut, [tuple(range(at + 1, axes[-1] + 2)), tuple(range(axes[0], at + 1))]


def _fits(n: Int) -> bool:
    return isinstance(n, int) and n <= SPLIT_K_TERMS


# --- short sums ------------------------------------------------------------------------------------------------------


def max_unrolled_terms(x: Node) -> int:
    """Up to how many terms a sum of ``x`` is better written out, each a value of its own: few where channels share windows, which tiles do better."""
    if x.op.name == "windows":
        return MAX_UNROLLED_TERMS
    seen = [f for f in x.inputs if f.op.name == "broadcast" and f.inputs[0].op.name == "windows"] if x.op.name == "mul" else []
    if not seen:
        return 0
    channels = seen[0].shape[2]
    return MAX_UNROLLED_TERMS if isinstance(channels, int) and channels < NARROW else NARROW - 1


def unroll_reduction(b: Builder, monoid: Op, x: Node, axes: tuple[int, ...]) -> Node:
    """``x`` reduced over neighbouring axes in their order, one operation for each element."""
    total: Node | None = None
    for indices in itertools.product(*[range(x.shape[a]) for a in axes]):
        term = _at_indices(b, x, dict(zip(axes, indices, strict=True)))
        total = term if total is None else b(monoid, (total, term))
    assert total is not None
    return total


def _at_indices(b: Builder, x: Node, indices: dict[int, int]) -> Node:
    """``x`` at an index along some axes, which go; of a product each factor there, lest the whole product be kept."""
    return map_factors(b, x, lambda f: _slice_at(b, f, indices))[x]


def _slice_at(b: Builder, x: Node, indices: dict[int, int]) -> Node:
    start = tuple(indices.get(a, 0) for a in range(x.ndim))
    stop = tuple(indices[a] + 1 if a in indices else n for a, n in enumerate(x.shape))
    part = b(TABLE["slice"], (x,), (start, stop, (1,) * x.ndim))
    return b(TABLE["reshape"], (part,), (tuple(n for a, n in enumerate(x.shape) if a not in indices),))


def map_factors(b: Builder, x: Node, change: Callable[[Node], Node]) -> dict[Node, Node]:
    """A product of what ``change`` makes of the factors of ``x``, these being products of others as well: each part once, by the part of ``x``
    that it stands for. What is no product is its own only factor."""
    made: dict[Node, Node] = {}
    for n in topological([x], stop=lambda n: n.op.name != "mul"):
        made[n] = b(n.op, tuple([made[f] for f in n.inputs]), n.attrs) if n.op.name == "mul" else change(n)
    return made
