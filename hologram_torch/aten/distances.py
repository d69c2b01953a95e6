"""Distances between all pairs of rows."""

from __future__ import annotations

import math

from hologram import numpy as hnp
from hologram.trace.tensor import Tensor
from hologram_torch.aten.registry import implements


def _differences(a: Tensor, b: Tensor) -> Tensor:
    """Of every row of ``a`` (…, p, m) and every row of ``b`` (…, r, m): (…, p, r, m)."""
    return hnp.expand_dims(a, axis=-2) - hnp.expand_dims(b, axis=-3)


@implements("_cdist_forward")
def cdist(a: Tensor, b: Tensor, p: float, compute_mode: int | None) -> Tensor:
    """The p-norms of the differences (…, p, r). They are computed from the differences in every mode, none by a product of matrices."""
    sizes = hnp.abs(_differences(a, b))
    if p == 0:
        return hnp.astype(hnp.sum(sizes != 0, axis=-1), a.dtype)
    if p == 1:
        return hnp.sum(sizes, axis=-1)
    if p == 2:
        return hnp.sqrt(hnp.sum(sizes * sizes, axis=-1))
    if math.isinf(p):
        return hnp.max(sizes, axis=-1) if a.shape[-1] else hnp.sum(sizes, axis=-1)
    return hnp.pow(hnp.sum(hnp.pow(sizes, p), axis=-1), 1.0 / p)


@implements("_euclidean_dist")
def euclidean(a: Tensor, b: Tensor) -> Tensor:
    return cdist(a, b, 2.0, None)


@implements("_cdist_backward")
def cdist_backward(gradient: Tensor, a: Tensor, b: Tensor, p: float, distances: Tensor) -> Tensor:
    """The gradient in ``a``; 0 for pairs at the distance 0."""
    differences = _differences(a, b)
    if p == 0:
        return hnp.zeros_like(a)
    if p == 1:
        shares = hnp.sign(differences)
    else:
        far = hnp.expand_dims(hnp.where(distances == 0, 1.0, distances), axis=-1)
        if math.isinf(p):
            shares = hnp.sign(differences) * (hnp.abs(differences) == far)
        elif p == 2:
            shares = differences / far
        else:
            shares = hnp.sign(differences) * hnp.pow(hnp.abs(differences) / far, p - 1)
        shares = hnp.where(differences == 0, 0.0, shares)
    return hnp.sum(shares * hnp.expand_dims(gradient, axis=-1), axis=-2)
