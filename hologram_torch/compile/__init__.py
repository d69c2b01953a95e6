"""The backend of ``torch.compile(model, backend="hologram")``.

Dynamo captures a graph. AOTAutograd makes it functional, splits off the backward pass and writes both in core ATen ops. Each of the two graphs then
becomes one Python function (:mod:`program_writer`) that calls compiled code of Hologram, and PyTorch for the nodes that Hologram does not have
(:mod:`partition`).
"""

from __future__ import annotations

from hologram_torch.compile.backend import backend
from hologram_torch.compile.report import Explanation, explain

__all__ = ["Explanation", "backend", "explain"]
