"""Losses whose definition by torch's decomposition is another than that of its kernels."""

from __future__ import annotations

from hologram import numpy as hnp
from hologram.errors import ArgumentError
from hologram.trace.tensor import Tensor
from hologram_torch.aten.registry import implements

NONE, MEAN = 0, 1  # torch's numbers of reductions


def _labelled(target: Tensor) -> tuple[Tensor, Tensor]:
    """Of rows of labels, which end at the first -1: which entries are labels, and by class, whether it is one."""
    classes = target.shape[1]
    valid = hnp.cumsum(hnp.astype(target == -1, hnp.int64), axis=1) == 0
    of_class = (target[:, :, None] == hnp.arange(classes)) & valid[:, :, None]
    return valid, hnp.any(of_class, axis=1)


@implements("multilabel_margin_loss_forward")
def multilabel_margin_loss_forward(x: Tensor, target: Tensor, reduction: int) -> tuple[Tensor, Tensor]:
    """Means over the classes of ``max(0, 1 - x[label] + x[other])``, summed over the labels of a row; and which classes are labels."""
    if x.ndim > 2 or x.shape != target.shape:
        raise ArgumentError(f"multilabel_margin_loss: scores of shape {list(x.shape)} and labels of shape {list(target.shape)}")
    scores, labels = hnp.atleast_2d(x), hnp.atleast_2d(target)
    valid, is_label = _labelled(labels)
    of_labels = hnp.take_along_axis(scores, hnp.where(valid, labels, 0), axis=1)
    margins = hnp.maximum(1 - of_labels[:, :, None] + scores[:, None, :], 0)
    counted = hnp.where(valid[:, :, None] & ~is_label[:, None, :], margins, 0)
    losses = hnp.sum(counted, axis=(1, 2)) / scores.shape[1]
    is_target = hnp.reshape(hnp.astype(is_label, x.dtype), target.shape)
    if reduction == NONE:
        return losses if x.ndim == 2 else losses[0], is_target
    return hnp.mean(losses) if reduction == MEAN else hnp.sum(losses), is_target
