"""``numpy.polyfit``: polynomials fitted by least squares. The name is :mod:`hologram.numpy`'s; the code stands here, above the solvers it calls."""

from __future__ import annotations

import operator
from typing import Any

from hologram import dtypes
from hologram.errors import ArgumentError, ShapeError
from hologram.linalg.systems import lstsq
from hologram.numpy.along_axes.reductions import sum
from hologram.numpy.analysis.calculus import vander
from hologram.numpy.arguments import array, wrap
from hologram.numpy.elementwise.functions import FUNCTIONS
from hologram.numpy.introspection.types import finfo
from hologram.support.user_lines import located
from hologram.trace.checks import integer
from hologram.trace.operators import promoted
from hologram.trace.tensor import Tensor

__all__ = ["polyfit"]


def polyfit(x: Any, y: Any, deg: int, rcond: float | None = None, full: bool = False, w: Any = None, cov: bool = False) -> Tensor:
    """Polynomial of degree ``deg`` with the least sum of squares of ``w * (p(x) - y)``: deg + 1 coefficients, the highest power first.

    For ``y`` of shape (n, k) there are k polynomials, in columns. Columns of powers are scaled to length 1; singular values up to ``rcond`` times
    the largest, by default n ε, count as 0. Raises ShapeError for points that do not pair, or a negative degree, and ArgumentError for NumPy's
    ``full`` and ``cov``, which ask for more than the coefficients.

    >>> hnp.round(hnp.polyfit([0.0, 1.0, 2.0], [1.0, 3.0, 5.0], 1), 3)
    Tensor([2., 1.], dtype=float32)
    """
    if full is not False or cov is not False:
        raise located(ArgumentError("polyfit gives the coefficients alone: full and cov stay False"))
    weights = 1.0 if w is None else w
    nodes, dtype, _ = promoted("polyfit", [wrap(array(v, "polyfit")) for v in (x, y, weights)], dtypes.to_inexact)
    at, values, scale = (wrap(n) for n in nodes)
    degree = integer(deg, "polyfit", "a degree")
    if degree < 0 or at.ndim != 1 or values.ndim not in (1, 2) or values.shape[0] != at.shape[0] or at.shape[0] == 0:
        raise located(ShapeError(f"polyfit: degree {degree} through points of shapes {list(at.shape)} and {list(values.shape)}"))
    powers = vander(at, degree + 1)
    if scale.ndim:
        powers, values = powers * scale[:, None], values * (scale if values.ndim == 1 else scale[:, None])
    lengths = FUNCTIONS["sqrt"](sum(powers * powers, 0))
    threshold = operator.index(at.shape[0]) * finfo(dtype.np).eps if rcond is None else rcond
    found = lstsq(powers / lengths, values, rcond=threshold).x
    return found / (lengths if found.ndim == 1 else lengths[:, None])
