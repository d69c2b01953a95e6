"""``torch.compile(model, backend="hologram")``.

Dynamo captures a graph, AOTAutograd makes it functional, splits off the backward pass and writes it in core ATen ops; here each of the two
graphs becomes compiled code of Hologram (:mod:`program`), except for the nodes that it does not have, which PyTorch computes (:mod:`partition`).
"""

from __future__ import annotations

from hologram_torch.compile.backend import backend
from hologram_torch.compile.report import Explanation, explain

__all__ = ["Explanation", "backend", "explain"]
