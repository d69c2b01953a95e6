"""Distances between all pairs of rows."""

from __future__ import annotations

import math

import numpy as np

from hologram import numpy as hnp
from hologram.trace.tensor import Tensor
from hologram_torch.aten.registry import implements


def _differences(a: Tensor, b: Tensor) -> Tensor:
    """Of every row of ``a`` (…, p, m) and every row of ``b`` (…, r, m): (…, p, r, m)."""
    return hnp.expand_dims(a, axis=-2) - hnp.expand_dims(b, axis=-3)


def _norms(differences: Tensor, p: float) -> Tensor:
    """The p-norms along the last axis."""
    sizes = hnp.abs(differences)
    if p == 0:
        return hnp.astype(hnp.sum(sizes != 0, axis=-1), sizes.dtype)
    if p == 1:
        return hnp.sum(sizes, axis=-1)
    if p == 2:
        return hnp.sqrt(hnp.sum(sizes * sizes, axis=-1))
    if math.isinf(p):
        return hnp.max(sizes, axis=-1) if sizes.shape[-1] else hnp.sum(sizes, axis=-1)
    return hnp.pow(hnp.sum(hnp.pow(sizes, p), axis=-1), 1.0 / p)


def _slopes(differences: Tensor, p: float, distances: Tensor) -> Tensor:
    """The derivatives of the norms ``distances`` in the differences (…, m); 0 for pairs at the distance 0."""
    if p == 0:
        return hnp.zeros_like(differences)
    if p == 1:
        return hnp.sign(differences)
    far = hnp.expand_dims(hnp.where(distances == 0, 1.0, distances), axis=-1)
    if math.isinf(p):
        slopes = hnp.sign(differences) * (hnp.abs(differences) == far)
    elif p == 2:
        slopes = differences / far
    else:
        slopes = hnp.sign(differences) * hnp.pow(hnp.abs(differences) / far, p - 1)
    return hnp.where(differences == 0, 0.0, slopes)


@implements("_cdist_forward")
def cdist(a: Tensor, b: Tensor, p: float, compute_mode: int | None) -> Tensor:
    """The p-norms of the differences (…, p, r). They are computed from the differences in every mode, none by a product of matrices."""
    return _norms(_differences(a, b), p)


@implements("_euclidean_dist")
def euclidean(a: Tensor, b: Tensor) -> Tensor:
    return cdist(a, b, 2.0, None)


@implements("_cdist_backward")
def cdist_backward(gradient: Tensor, a: Tensor, b: Tensor, p: float, distances: Tensor) -> Tensor:
    """The gradient in ``a``; 0 for pairs at the distance 0."""
    return hnp.sum(_slopes(_differences(a, b), p, distances) * hnp.expand_dims(gradient, axis=-1), axis=-2)


# --- of the rows of one array ----------------------------------------------------------------------------------------


def _pairs(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The pairs of rows i < j, in order, and the differences x[i] - x[j]."""
    i, j = (hnp.asarray(part) for part in np.triu_indices(x.shape[0], 1))
    return i, j, hnp.take(x, i, axis=0) - hnp.take(x, j, axis=0)


@implements("_pdist_forward")
def pdist(x: Tensor, p: float = 2.0) -> Tensor:
    return _norms(_pairs(x)[2], p)


@implements("_pdist_backward")
def pdist_backward(gradient: Tensor, x: Tensor, p: float, distances: Tensor) -> Tensor:
    i, j, differences = _pairs(x)
    shares = _slopes(differences, p, distances) * hnp.expand_dims(gradient, axis=-1)
    return hnp.zeros_like(x).at[i].add(shares).at[j].add(-shares)
