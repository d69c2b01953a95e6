"""Interpolation on grids."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import hologram.numpy as hnp
from hologram.errors import ArgumentError, ShapeError
from hologram.numpy.arguments import as_tensor
from hologram.scipy.linalg.arguments import inexact
from hologram.support.user_lines import located
from hologram.trace.checks import choice, items
from hologram.trace.tensor import Tensor

__all__ = ["RegularGridInterpolator"]

_METHODS = ("linear", "nearest")


class RegularGridInterpolator:
    """Interpolation between values on a rectangular grid, whose points need not be evenly spaced.

    - ``points``: for each of d axes the coordinates (n,), ascending. ``values`` (n0, …, n(d-1), …) may have axes behind.
    - ``method``: ``linear`` or ``nearest``.
    - ``fill_value``: the value beyond the grid, NaN by default; None extrapolates. A coordinate that is NaN gives NaN.
      ``bounds_error=True`` is not there, since traced values cannot raise.

    Raises ShapeError where the shapes do not fit, ArgumentError for other options.

    >>> f = hg.scipy.interpolate.RegularGridInterpolator(([0.0, 1.0, 3.0],), hnp.asarray([0.0, 10.0, 30.0]))
    >>> f([[0.5], [2.0], [4.0]])
    Tensor([ 5., 20., nan], dtype=float32)
    """

    def __init__(self, points: Any, values: Any, method: str = "linear", bounds_error: bool = False, fill_value: Any = float("nan")) -> None:
        what = "RegularGridInterpolator"
        self.method = choice(method, what, "method", _METHODS)
        if bounds_error:
            raise located(ArgumentError(f"{what}: bounds_error is not there: values beyond the grid are fill_value"))
        self.values = inexact(values, what)
        self.grid = tuple(inexact(p, what) for p in items(points, what, "axes"))
        self.fill_value = fill_value
        if len(self.grid) > self.values.ndim:
            raise located(ShapeError(f"{what}: {len(self.grid)} axes of points for values of shape {list(self.values.shape)}"))
        for i, p in enumerate(self.grid):
            if p.ndim != 1 or p.shape[0] != self.values.shape[i] or p.shape[0] < 2:
                raise located(ShapeError(f"{what}: points of shape {list(p.shape)} for axis {i} of values of shape {list(self.values.shape)}"))

    def __call__(self, xi: Any, method: str | None = None) -> Tensor:
        """Values (…, …) at points (…, d), or at d arrays of coordinates that broadcast; ``method`` is another than the object's."""
        kind = self.method if method is None else choice(method, "RegularGridInterpolator", "method", _METHODS)
        coordinates = self._coordinates(xi)
        shape = hnp.broadcast_shapes(*(c.shape for c in coordinates))
        flat = [hnp.broadcast_to(c, shape).reshape((-1,)) for c in coordinates]
        out = self._interpolated(flat, kind)
        beyond = [(c < g[0]) | (c > g[-1]) for c, g in zip(flat, self.grid, strict=True)]
        rest = (slice(None), *[None] * (out.ndim - 1))
        for outside in beyond if self.fill_value is not None else ():
            out = hnp.where(outside[rest], hnp.asarray(self.fill_value).astype(out.dtype), out)
        for c in flat:
            out = hnp.where(hnp.isnan(c)[rest], float("nan"), out)
        return out.reshape((*shape, *self.values.shape[len(self.grid) :]))

    def _coordinates(self, xi: Any) -> list[Tensor]:
        """One array for each axis."""
        if isinstance(xi, tuple):
            found = [as_tensor(x, "RegularGridInterpolator") for x in xi]
        else:
            t = as_tensor(xi, "RegularGridInterpolator")
            d = len(self.grid)
            t = t[..., None] if not t.ndim and d == 1 else t.reshape((-1, d)) if t.ndim == 1 and isinstance(t.size, int) and t.size % d == 0 else t
            found = [t[..., i] for i in range(t.shape[-1])] if t.ndim else []
        if len(found) != len(self.grid):
            raise located(ShapeError(f"RegularGridInterpolator: points of {len(found)} coordinates in a grid of {len(self.grid)} axes"))
        return [c if c.dtype.kind == "f" else c.astype(g.dtype) for c, g in zip(found, self.grid, strict=True)]

    def _interpolated(self, coordinates: Sequence[Tensor], kind: str) -> Tensor:
        """The sum over the corners of the cells that points lie in."""
        corners = []
        for c, g in zip(coordinates, self.grid, strict=True):
            cell = hnp.clip(hnp.searchsorted(g, c, side="right") - 1, 0, g.shape[0] - 2)
            share = (c - g[cell]) / (g[cell + 1] - g[cell])
            if kind == "nearest":
                corners.append([(hnp.where(share <= 0.5, cell, cell + 1), None)])
            else:
                corners.append([(cell, 1 - share), (cell + 1, share)])
        behind = (slice(None), *[None] * (self.values.ndim - len(self.grid)))
        terms = []
        for corner in itertools.product(*corners):
            term = self.values[tuple(at for at, _ in corner)]
            for _, weight in corner:
                term = term if weight is None else term * weight[behind]
            terms.append(term)
        return sum(terms[1:], terms[0])
