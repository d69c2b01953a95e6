"""What the functions of this package do with their arguments: floats, computed wide enough; integers for each axis; formats of images."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec

from hologram.errors import ArgumentError
from hologram.ir.node import Node
from hologram.ir.op import Shape
from hologram.ir.symbolic import Int
from hologram.numpy.arguments import permuted, reshaped
from hologram.support.user_lines import located
from hologram.trace.checks import choice
from hologram.trace.tensor import Tensor

__all__ = ["SpaceFormat", "by_rank", "integers", "space_format"]

P = ParamSpec("P")


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


def formats(rank: int) -> tuple[str, str]:
    """Names of the formats of images with ``rank`` space axes: channels first and channels last."""
    space = "DHW"[3 - rank :]
    return f"NC{space}", f"N{space}C"


def space_format(what: str, rank: int, name: str | None) -> SpaceFormat:
    """The format called ``"NCHW"`` or ``"NHWC"``, for ``rank`` space axes; channels first for None. Raises ArgumentError for other names."""
    first, last = formats(rank)
    return SpaceFormat(rank, name is not None and choice(name, what, "data_format", (first, last)) == last)


def by_rank(name: str, f: Callable[Concatenate[str, int, P], Tensor], of_one: str, of_three: str) -> list[Callable[P, Tensor]]:
    """The functions ``name1d``, ``name2d`` and ``name3d`` that ``f(what, rank, ...)`` is for one, two and three space axes.

    ``f`` is documented for two; ``of_one`` and ``of_three`` are examples for one and three. Its parameter ``data_format``, by default None, has the
    format with channels first as the default of each.
    """
    described = {1: ("one space axis", of_one), 3: ("three space axes", of_three)}
    functions = []
    for rank in (1, 2, 3):
        first, last = formats(rank)
        doc = f.__doc__
        if rank in described:
            axes, example = described[rank]
            doc = f'As :func:`{name}2d`, with {axes}; ``data_format`` is ``"{first}"`` or ``"{last}"``.\n\n{example}\n'
        functions.append(_of_rank(f"{name}{rank}d", rank, f, doc))
    return functions


def _of_rank(name: str, rank: int, f: Callable[Concatenate[str, int, P], Tensor], doc: str | None) -> Callable[P, Tensor]:
    def function(*args: P.args, **options: P.kwargs) -> Tensor:
        return f(name, rank, *args, **options)

    _, _, *parameters = inspect.signature(f).parameters.values()
    shown = [p.replace(default=formats(rank)[0]) if p.name == "data_format" else p for p in parameters]
    function.__signature__ = inspect.Signature(shown, return_annotation=Tensor)  # type: ignore[attr-defined]
    function.__name__, function.__qualname__, function.__module__, function.__doc__ = name, name, f.__module__, doc
    return function
