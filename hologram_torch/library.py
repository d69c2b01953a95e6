"""``torch.ops.hologram.*``: the operations of :mod:`hologram_torch.functional` as ops of torch's dispatcher. Importing this module registers them.

For each row of the table of operations there are two ops: itself, and ``NAME_backward(grad, *arguments)``, the gradients with respect to its tensors.
``torch.compile`` and ``torch.export`` keep them as they are in the graphs they make, whatever backend compiles the rest. Schemas follow from the
annotations, types and shapes of results from the functions of torch that the operations stand for.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch

import hologram as hg
from hologram_torch import functional
from hologram_torch.operation import TABLE, WRITTEN, Row
from hologram_torch.wrap import wrap

NAMESPACE = "hologram"


def _functional_schema(row: Row) -> tuple[inspect.Signature, str]:
    """The parameters of an op of the row, without those that say where to write the result, and its schema."""
    signature = row.function.__signature__
    kept = [p for p in signature.parameters.values() if p.name not in WRITTEN]
    prototype: Any = lambda *args: None  # noqa: E731
    hints = inspect.get_annotations(row.function.__wrapped__, eval_str=True)
    prototype.__signature__ = signature.replace(
        parameters=[p.replace(annotation=hints[p.name]) for p in kept], return_annotation=hints["return"]
    )
    return signature.replace(parameters=kept), torch.library.infer_schema(prototype, mutates_args=())
