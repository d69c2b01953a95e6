"""Where the elements of a strided tensor lie, as a C-contiguous array that shows them after slices, a transpose and a broadcast.

Compiled graphs know C-contiguous arrays only. A tensor of torch has strides; most of them are a contiguous array (the *body*) seen through
movement, which costs nothing in a graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hologram import numpy as hnp

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """``body`` is the shape of the contiguous array; its axis i holds the tensor's axis ``axes[i]``, as its first elements.

    Axes of the tensor that are not in ``axes`` have one element, or repeat one element.
    """

    shape: Shape
    body: Shape
    axes: Shape

    @property
    def dense(self) -> bool:
        """Whether every element of the body is one of the tensor's."""
        return self.body == tuple(self.shape[a] for a in self.axes)

    def seen(self, body: Any) -> Any:
        """The tensor's value as a Tensor, for a Tensor that is the body's."""
        if not self.dense:
            body = body[tuple(slice(self.shape[a]) for a in self.axes)]
        order = sorted(range(len(self.axes)), key=self.axes.__getitem__)
        if order != list(range(len(order))):
            body = hnp.permute_dims(body, tuple(order))
        if len(self.axes) != len(self.shape):
            body = hnp.reshape(body, tuple(n if a in self.axes else 1 for a, n in enumerate(self.shape)))
        return body if tuple(body.shape) == self.shape else hnp.broadcast_to(body, self.shape)

    def body_of(self, value: Any) -> Any:
        """The body that shows ``value``, a Tensor of this shape; for dense layouts."""
        if len(self.axes) != len(self.shape):
            value = value[tuple(slice(None) if a in self.axes else 0 for a in range(len(self.shape)))]
        ranks = {a: i for i, a in enumerate(sorted(self.axes))}
        order = tuple(ranks[a] for a in self.axes)
        return value if order == tuple(range(len(order))) else hnp.permute_dims(value, order)


def contiguous(shape: Sequence[int]) -> Shape:
    """The strides of a tensor in C order."""
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


def layout_of(shape: Sequence[int], strides: Sequence[int]) -> Layout | None:
    """The layout of a tensor; None where its memory is no contiguous array seen through slices of whole rows: ``x[:, ::2]``, overlapping windows."""
    shape = tuple(shape)
    if 0 in shape:
        return Layout(shape, shape, tuple(range(len(shape))))
    axes = sorted((a for a, n in enumerate(shape) if n > 1 and strides[a] != 0), key=lambda a: -strides[a])
    if axes and strides[axes[-1]] != 1:
        return None
    body = [shape[a] for a in axes]
    for i in range(1, len(axes)):
        outer, inner = strides[axes[i - 1]], strides[axes[i]]
        if outer % inner != 0 or outer // inner < body[i]:
            return None
        body[i] = outer // inner
    return Layout(shape, tuple(body), tuple(axes))
