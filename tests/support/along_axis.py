"""Gathers and scatters along one axis, as NumPy's ``take`` and its reverse, on a builder."""

from __future__ import annotations

from hologram.ir.node import Builder, Node
from hologram.ir.op import TABLE, Shape


def take(b: Builder, x: Node, indices: Node, axis: int) -> Node:
    """``x`` at ``indices`` along ``axis``, whose place the indices' axes take."""
    windows = b(TABLE["gather"], (x, indices), ((axis,), (1,), 0))
    taken = b.reshape(windows, (*indices.shape, *x.shape[:axis], *x.shape[axis + 1 :]))
    rank = indices.ndim
    return b.transpose(taken, (*range(rank, rank + axis), *range(rank), *range(rank + axis, taken.ndim)))


def scattered_shape(shape: Shape, indices: Shape, axis: int, batch: int = 0) -> Shape:
    """The shape of the updates."""
    return (*shape[:axis], *indices[batch:], *shape[axis + 1 :])


def scatter(b: Builder, op: str, x: Node, indices: Node, updates: Node, axis: int, batch: int = 0) -> Node:
    """``x`` with ``updates``, the indices' axes in the place of ``axis``; the first ``batch`` axes are shared by all."""
    places, rest = range(axis, axis + indices.ndim - batch), range(axis + indices.ndim - batch, updates.ndim)
    moved = b.transpose(updates, (*range(batch), *places, *range(batch, axis), *rest))
    windows = b.reshape(moved, (*indices.shape, *x.shape[batch:axis], 1, *x.shape[axis + 1 :]))
    return b(TABLE[op], (x, windows, indices), ((axis,), batch))
