"""Vector quantization."""

from __future__ import annotations

from typing import Any

import hologram.numpy as hnp
from hologram import dtypes
from hologram.errors import ShapeError
from hologram.numpy.arguments import wrap
from hologram.support.user_lines import located
from hologram.trace.operators import promoted
from hologram.trace.tensor import Tensor

__all__ = ["vq"]


def vq(obs: Any, code_book: Any, check_finite: bool = True) -> tuple[Tensor, Tensor]:
    """The code nearest to each observation: ``(codes, distances)``, of observations (n, d), or numbers (n,), and codes (k, d), or (k,).

    Codes are int64; ``check_finite`` is ignored. Raises ShapeError where the shapes do not fit.

    >>> hg.scipy.cluster.vq.vq([[0.0, 1.0], [5.0, 5.0]], [[0.0, 0.0], [4.0, 5.0]])
    (Tensor([0, 1], dtype=int64), Tensor([1., 1.], dtype=float32))
    """
    nodes, _, _ = promoted("vq", (obs, code_book), dtypes.to_inexact)
    points, codes = map(wrap, nodes)
    if points.ndim != codes.ndim or points.ndim not in (1, 2) or (points.ndim == 2 and points.shape[1] != codes.shape[1]):
        raise located(ShapeError(f"vq: observations of shape {list(points.shape)} for codes of shape {list(codes.shape)}"))
    if points.ndim == 1:
        points, codes = points[:, None], codes[:, None]
    squares = hnp.sum((points[:, None, :] - codes[None, :, :]) ** 2, axis=-1)
    nearest = hnp.argmin(squares, axis=1)
    return nearest, hnp.sqrt(hnp.min(squares, axis=1))
