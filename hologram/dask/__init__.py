"""Dask arrays whose blocks are Tensors, and the compilation of what Dask computes block by block.

Dask knows Tensors once both libraries are imported. :func:`fuse` compiles the blockwise part of arrays' graphs, :func:`optimize` is the same as an
optimiser of arrays for Dask. Needs the library ``dask`` with its arrays.
"""

from __future__ import annotations

from typing import Any

try:
    from hologram.dask.optimization import fuse, optimize
except ModuleNotFoundError as e:
    if (e.name or "").partition(".")[0] != "dask":
        raise
    raise ModuleNotFoundError('hologram.dask needs Dask\'s arrays: pip install "dask[array]"', name=e.name) from None

__all__ = ["fuse", "optimize"]


def __dir__() -> list[Any]:
    return sorted(__all__)
