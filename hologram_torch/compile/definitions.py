"""Functions of torch that AOTAutograd writes as other ops by a wrong decomposition, defined here as eager mode computes them.

AOTAutograd takes these decompositions before it asks a backend for its own, so that Dynamo's graph has to call the definitions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import fx
from torch.nn import _reduction
from torch.nn import functional as F

_NARROW = (torch.float16, torch.bfloat16)


def multilabel_margin_loss(x: torch.Tensor, target: torch.Tensor, reduction: int = 1) -> torch.Tensor:
    """``torch._C._nn.multilabel_margin_loss``. The decomposition adds up the labels that padding stands for, too, as if they were label 0."""
    if x.ndim > 2 or x.shape != target.shape:
        raise ValueError(f"multilabel_margin_loss: scores of shape {list(x.shape)} and labels of shape {list(target.shape)}")
    if x.dtype in _NARROW and torch.is_autocast_enabled(x.device.type):
        x = x.float()
    scores, labels = torch.atleast_2d(x), torch.atleast_2d(target)
    classes = scores.shape[1]
    valid = (labels == -1).cumsum(1) == 0
    is_label = ((labels[:, :, None] == torch.arange(classes, device=labels.device)) & valid[:, :, None]).any(1)
    margins = torch.relu(1 - scores.gather(1, torch.where(valid, labels, 0))[:, :, None] + scores[:, None, :])
    losses = torch.where(valid[:, :, None] & ~is_label[:, None, :], margins, 0).sum((1, 2)) / classes
    if reduction == 0:
        return losses if x.ndim == 2 else losses[0]
    return losses.mean() if reduction == 1 else losses.sum()


def _named_reduction(x: torch.Tensor, target: torch.Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean") -> torch.Tensor:
    """:func:`multilabel_margin_loss` with the arguments of ``torch.nn.functional``."""
    if size_average is not None or reduce is not None:
        reduction = _reduction.legacy_get_string(size_average, reduce, emit_warning=False)
    return multilabel_margin_loss(x, target, _reduction.get_enum(reduction))


_DEFINITIONS: dict[Any, Callable[..., torch.Tensor]] = {
    F.multilabel_margin_loss: _named_reduction,
    torch._C._nn.multilabel_margin_loss: multilabel_margin_loss,
}
_FIRST = {"input": "x", "self": "x"}  # names of the first argument


def define(module: fx.GraphModule) -> None:
    """Replaces the functions in Dynamo's graph, and in the graphs of its branches and loops, by their definitions."""
    for part in module.modules():
        if not isinstance(part, fx.GraphModule):
            continue
        found = [n for target in _DEFINITIONS for n in part.graph.find_nodes(op="call_function", target=target)]
        for node in found:
            node.target = _DEFINITIONS[node.target]
            node.kwargs = {_FIRST.get(name, name): x for name, x in node.kwargs.items()}
        if found:
            part.recompile()
