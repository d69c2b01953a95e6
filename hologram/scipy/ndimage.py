"""Interpolation in images of any number of axes."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable
from typing import Any

import hologram.numpy as hnp
from hologram import dtypes
from hologram.errors import ArgumentError, ShapeError, UnsupportedError
from hologram.numpy.arguments import as_tensor
from hologram.support.user_lines import located
from hologram.trace.checks import choice, integer, items
from hologram.trace.tensor import Tensor

__all__ = ["map_coordinates"]

_MODES = ("constant", "nearest", "wrap", "mirror", "reflect", "grid-constant", "grid-wrap", "grid-mirror")


def _clamped(i: Tensor, n: int) -> Tensor:
    return hnp.clip(i, 0, n - 1)


def _mirrored(i: Tensor, n: int) -> Tensor:
    """Mirrored at the centres of the outermost elements."""
    period = 2 * (n - 1)
    if not period:
        return hnp.zeros_like(i)
    j = i % period
    return hnp.minimum(j, period - j)


def _reflected(i: Tensor, n: int) -> Tensor:
    """Mirrored at the edges of the outermost elements."""
    j = i % (2 * n)
    return hnp.minimum(j, 2 * n - 1 - j)


_MOVED: dict[str, Callable[[Tensor, int], Tensor]] = {
    "nearest": _clamped,
    "wrap": lambda i, n: i % n,
    "mirror": _mirrored,
    "reflect": _reflected,
}


def map_coordinates(input: Any, coordinates: Any, order: int, mode: str = "constant", cval: Any = 0.0) -> Tensor:
    """Values of an array at coordinates between its elements, interpolated: the nearest element (``order=0``) or linearly (``order=1``).

    - ``coordinates``: for each axis of ``input`` an array, or one array (axes, …); they broadcast, and give the shape of the result.
    - ``mode``: what lies beyond the array: ``cval`` (``constant``), the outermost element (``nearest``), the other side (``wrap``), or the mirror
      image, about the centre (``mirror``) or the edge (``reflect``) of the outermost element. As in JAX, between an outermost element and ``cval``
      beyond it there is interpolation too, and ``wrap`` has the period of the extent: SciPy's ``grid-constant`` and ``grid-wrap``, which are names
      for it here.

    The result has the type of ``input``; of integers it is rounded, halves away from zero. Raises ShapeError for coordinates of another number of
    axes, UnsupportedError for an order above 1, ArgumentError for another mode.

    >>> hg.scipy.ndimage.map_coordinates([0.0, 10.0, 20.0], [[0.5, 1.25]], order=1)
    Tensor([ 5. , 12.5], dtype=float32)
    """
    what = "map_coordinates"
    image = as_tensor(input, what)
    points = [as_tensor(c, what) for c in items(coordinates, what, "coordinates")]
    if len(points) != image.ndim:
        raise located(ShapeError(f"{what}: coordinates of {len(points)} axes in an array of {image.ndim}"))
    degree = integer(order, what, "order")
    if degree not in (0, 1):
        raise located(UnsupportedError(f"{what}: the orders 0 and 1 are there, not {degree}"))
    named = choice(mode, what, "mode", _MODES)
    edge = "reflect" if named == "grid-mirror" else named.removeprefix("grid-")
    if not all(map(operator.index, image.shape)):
        raise located(ArgumentError(f"{what}: an array without elements, of shape {list(image.shape)}"))
    if not points:
        return image
    neighbours = [_neighbours(c, degree, n, edge) for c, n in zip(points, image.shape, strict=True)]
    beyond = hnp.asarray(cval)
    total: Tensor | None = None
    for corner in itertools.product(*neighbours):
        value = image[tuple(at for at, _, _ in corner)]
        inside = functools.reduce(operator.and_, [valid for _, valid, _ in corner if valid is not None], True)
        if edge == "constant":
            value = hnp.where(inside, value, beyond.astype(value.dtype))
        weight = functools.reduce(operator.mul, [w for _, _, w in corner])
        term = value * weight
        total = term if total is None else total + term
    out = total if image.dtype.kind not in "iu" else hnp.trunc(total + hnp.copysign(0.5, total))
    return hnp.asarray(out).astype(image.dtype)


def _neighbours(c: Tensor, degree: int, n: int, edge: str) -> list[tuple[Tensor, Any, Any]]:
    """The elements along one axis that a value is made of: index, whether it is inside, weight."""
    points = c if c.dtype.kind == "f" else c.astype(dtypes.default_float)
    low = hnp.floor(points + 0.5) if degree == 0 else hnp.floor(points)
    part = points - low
    found = [(low, 1.0)] if degree == 0 else [(low, 1 - part), (low + 1, part)]
    out: list[tuple[Tensor, Any, Any]] = []
    for at, weight in found:
        index = at.astype("int64")
        if edge == "constant":
            out.append((hnp.clip(index, 0, n - 1), (index >= 0) & (index < n), weight))
        else:
            out.append((_MOVED[edge](index, n), None, weight))
    return out
