"""What the functions of this package do with their arguments: floats, computed wide enough; integers for each axis; formats of images."""

from __future__ import annotations

import operator
from typing import Any

from hologram import dtypes
from hologram.dtypes import DType
from hologram.errors import ArgumentError, DTypeError
from hologram.numpy.arguments import array, permuted, reshaped, wrap
from hologram.primitives.op import Shape
from hologram.symbolic import Int
from hologram.trace.node import Node
from hologram.trace.recorder import cast_node, located
from hologram.trace.tensor import Tensor

__all__ = ["SpaceFormat", "cast", "floats", "integers", "space_format"]


def floats(x: Any, what: str) -> tuple[Tensor, DType]:
    """``x`` in the type it is computed in (float32 for 16-bit floats), and the type of the result. Raises DTypeError for complex numbers."""
    node = array(x, what)
    if node.dtype.is_complex:
        raise located(DTypeError(f"{what}: takes real numbers, not {node.dtype.name}"))
    node = cast_node(node, dtypes.to_inexact(node.dtype))
    return wrap(cast_node(node, dtypes.compute_type(node.dtype))), node.dtype


def cast(x: Tensor, dtype: DType) -> Tensor:
    return wrap(cast_node(array(x, "cast"), dtype))


def integers(what: str, name: str, value: Any, count: int, least: int) -> tuple[int, ...]:
    """An integer for all of ``count`` axes, or one for each. Raises ArgumentError where it is neither, or one is below ``least``."""
    try:
        given = tuple(operator.index(v) for v in value) if isinstance(value, (tuple, list)) else (operator.index(value),)
    except TypeError:
        raise located(ArgumentError(f"{what}: {name} is an integer, or {count} of them, not {value!r}")) from None
    if len(given) not in (1, count) or any(v < least for v in given):
        raise located(ArgumentError(f"{what}: {name} is an integer from {least} up, or {count} of them, not {value!r}"))
    return given if len(given) == count else given * count


class SpaceFormat:
    """How the axes of images lie: channels before the space axes, or last."""

    __slots__ = ("rank", "last")

    def __init__(self, rank: int, last: bool) -> None:
        self.rank, self.last = rank, last

    def channels_first(self, x: Node) -> tuple[Node, bool]:
        """``x`` as (N, C, space…), and whether it had no axis N."""
        lacks = len(x.shape) == self.rank + 1
        if lacks:
            x = reshaped(x, (1, *x.shape))
        return (permuted(x, (0, self.rank + 1, *range(1, self.rank + 1))) if self.last else x), lacks

    def restored(self, x: Node, lacks: bool) -> Node:
        """What :meth:`channels_first` undoes."""
        if self.last:
            x = permuted(x, (0, *range(2, self.rank + 2), 1))
        return reshaped(x, x.shape[1:]) if lacks else x

    def along_channels(self, n: Int) -> Shape:
        """The shape in which ``n`` values, one a channel, broadcast with images."""
        return (n,) if self.last else (n, *[1] * self.rank)


def space_format(what: str, rank: int, name: str) -> SpaceFormat:
    """The format called ``"NCHW"`` or ``"NHWC"``, for ``rank`` space axes. Raises ArgumentError for other names."""
    space = "DHW"[3 - rank :]
    if name not in (first := f"NC{space}", last := f"N{space}C"):
        raise located(ArgumentError(f"{what}: data_format is {first!r} or {last!r}, not {name!r}"))
    return SpaceFormat(rank, name == last)
