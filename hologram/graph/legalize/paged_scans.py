"""Paged scans: the pages of a long scan, and elementwise work on its result done in the same pages.

A long scan runs on pages of its axis; its result is the pages side by side, the end of the last cut off, in reverse order if the scan is
reversed. :func:`unpaged` finds the value in pages behind such a result: its elements are stored where they belong, nothing is moved. Elementwise
ops on a scan's result are done in pages as well (:func:`in_pages`), so that the kernel of the scan does them.
"""

from __future__ import annotations

from typing import Any

from hologram.ir.node import Builder, Node
from hologram.ir.op import TABLE
from hologram.ir.symbolic import Int
from hologram.ir.traversal import reachable
from hologram.primitives.reductions import PAGE

MAX_PAGED_OPS = 64  # elementwise ops between a scan and its result


def join_pages(b: Builder, pages: Node, n: Int, reverse: bool) -> Node:
    """The first ``n`` elements of (…, pages, PAGE) as one axis, or these from the last to the first."""
    *rows, count, size = pages.shape
    whole = b(TABLE["reshape"], (pages,), ((*rows, count * size),))
    zeros, ones = (0,) * len(rows), (1,) * len(rows)
    start, stop, step = (n - 1, -1, -1) if reverse else (0, n, 1)
    return b(TABLE["slice"], (whole,), ((*zeros, start), (*rows, stop), (*ones, step)))


def unpaged(node: Node) -> Node | None:
    """The value in pages, computed from a scan, that stands side by side in ``node``; None for any other node."""
    if node.op.name != "slice" or node.inputs[0].op.name != "reshape" or node.ndim == 0:
        return None
    whole, (start, _, step) = node.inputs[0], node.attrs
    base, rows = whole.inputs[0], node.shape[:-1]
    if base.ndim != node.ndim + 1 or base.shape[:-2] != rows or whole.shape != (*rows, base.shape[-2] * base.shape[-1]):
        return None
    if start[:-1] != (0,) * len(rows) or step[:-1] != (1,) * len(rows) or (start[-1], step[-1]) not in ((0, 1), (node.shape[-1] - 1, -1)):
        return None
    return base if _scan_below(base) is not None else None


def is_reversed(node: Node) -> bool:
    """Whether an unpaged value has its pages from the last to the first."""
    return node.attrs[2][-1] == -1


def _scan_below(base: Node) -> Node | None:
    """The scan that elementwise ops make ``base`` of."""

    def inputs(n: Node) -> list[Node]:
        return [x for x in n.inputs if x.shape == base.shape] if n.op.kind == "elementwise" else []

    passed = 0
    for n in reachable([base], inputs):
        if n.op.kind == "scan":
            return n
        passed += n.op.kind == "elementwise"
        if passed == MAX_PAGED_OPS:
            break
    return None


def in_pages(b: Builder, node: Node, inputs: tuple[Node, ...]) -> Node | None:
    """An elementwise op on a scan's result, or such a result reversed, by way of its pages; None where that is no gain."""
    first = next((x for x in inputs if unpaged(x) is not None), None)
    if first is None:
        return None
    base, reverse, n = unpaged(first), is_reversed(first), first.shape[-1]
    assert base is not None
    if node.op.name == "slice":
        return join_pages(b, base, n, not reverse) if node.attrs == _flip_of(first) else None
    if node.op.kind != "elementwise":
        return None
    parts = []
    for x in inputs:
        pages = unpaged(x)
        if pages is not None and is_reversed(x) == reverse and _scan_below(pages) is _scan_below(base):
            parts.append(pages)
        elif _is_plain(x):
            parts.append(_paged(b, x, base, reverse))
        else:
            return None  # it may need the scan's result, or what is computed later
    out = join_pages(b, b(node.op, tuple(parts), node.attrs), n, reverse)
    return out if unpaged(out) is not None else None


def _flip_of(x: Node) -> tuple[Any, ...]:
    """The attributes of the slice that reverses the last axis."""
    *rows, n = x.shape
    return ((*(0,) * len(rows), n - 1), (*rows, -1), (*(1,) * len(rows), -1))


def _is_plain(x: Node) -> bool:
    """Whether no reduction, scan or call stands between ``x`` and what is in memory, as far as is looked."""
    made_of = (n for n in reachable([x], lambda n: n.inputs) if n.op.kind != "leaf")
    return all(n.op.kind in ("elementwise", "movement") and k < MAX_PAGED_OPS for k, n in enumerate(made_of))


def _paged(b: Builder, x: Node, base: Node, reverse: bool) -> Node:
    """``x`` as it stands beside the pages of ``base``."""
    if not x.shape:
        return x
    *rows, n = x.shape
    if reverse:
        x = b(TABLE["slice"], (x,), _flip_of(x))
    missing = base.shape[-2] * PAGE - n
    if missing != 0:
        zeros = (0,) * len(rows)
        x = b(TABLE["pad"], (x, b.const(0, x.dtype)), ((*zeros, 0), (*zeros, missing)))
    return b(TABLE["reshape"], (x,), (base.shape,))
