"""NumPy's objects that are indexed: grids (``mgrid``, ``ogrid``), joined pieces (``r_``, ``c_``), and indices themselves (``s_``, ``index_exp``)."""

from __future__ import annotations

from typing import Any

import numpy as np

from hologram import dtypes
from hologram.errors import ArgumentError
from hologram.numpy.arguments import array, wrap
from hologram.numpy.shaping.joining import concat
from hologram.numpy.shaping.shapes import atleast_1d, expand_dims
from hologram.support.user_lines import located
from hologram.trace.convert import tensor
from hologram.trace.tensor import Tensor

__all__ = ["c_", "index_exp", "mgrid", "ogrid", "r_", "s_"]

index_exp, s_ = np.index_exp, np.s_


def _counted(values: np.ndarray) -> Tensor:
    """In the default type of its kind."""
    return tensor(values, dtype=dtypes.default_float if values.dtype.kind == "f" else dtypes.default_int)


class _Grid:
    """Slices give coordinates: ``start:stop:step``, or with an imaginary step ``start:stop:count`` including the end."""

    def __init__(self, dense: bool) -> None:
        self._dense = dense

    def __getitem__(self, key: Any) -> Any:
        if self._dense:
            return _counted(np.mgrid[key])
        found = np.ogrid[key]
        return _counted(found) if isinstance(found, np.ndarray) else tuple(_counted(a) for a in found)


class _Joined:
    """Slices, numbers and arrays one after the other: along the first axis, or as columns."""

    def __init__(self, columns: bool) -> None:
        self._columns = columns

    def __getitem__(self, key: Any) -> Tensor:
        parts = [self._part(k) for k in (key if isinstance(key, tuple) else (key,))]
        return concat(parts, axis=-1 if self._columns else 0)

    def _part(self, k: Any) -> Tensor:
        if isinstance(k, str):
            raise located(ArgumentError(f"r_ and c_ take no directives such as {k!r}"))
        t = atleast_1d(_counted(np.r_[k]) if isinstance(k, slice) else wrap(array(k, "r_")))
        return expand_dims(t, -1) if self._columns and t.ndim == 1 else t


mgrid, ogrid = _Grid(True), _Grid(False)
r_, c_ = _Joined(False), _Joined(True)
