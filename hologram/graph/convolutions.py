"""Convolutions, on their way to kernels: sums, in column form, of products of windows and weights."""

from __future__ import annotations

from hologram.primitives.op import TABLE
from hologram.trace.node import Builder, Node


def window_products(b: Builder, x: Node, w: Node, steps: tuple[int, ...], dilations: tuple[int, ...]) -> Node:
    """The products (groups, n, o, c, sizes…, windows…) that a convolution sums over its axes from 3 on to the last size's."""
    (groups, n, c, *_), (_, o, _, *sizes) = x.shape, w.shape
    rank = len(steps)
    seen = b(TABLE["windows"], (x,), (tuple(sizes), steps, dilations))
    counts = seen.shape[3 + rank :]
    shape = (groups, n, o, c, *sizes, *counts)
    windows = b(TABLE["broadcast"], (seen,), (shape, (0, 1, *range(3, 4 + 2 * rank))))
    weights = b(TABLE["broadcast"], (w,), (shape, (0, *range(2, 4 + rank))))
    return b(TABLE["mul"], (windows, weights))
