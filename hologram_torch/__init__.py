"""Hologram for PyTorch: ``torch.compile(model, backend="hologram")``, zero-copy conversion, and what else torch's users reach Hologram by.

Names are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hologram_torch import aten, interop
    from hologram_torch.compile import Explanation, backend, explain
    from hologram_torch.interop import from_torch, to_torch

_WHERE = {
    "Explanation": "compile",
    "backend": "compile",
    "explain": "compile",
    "from_torch": "interop",
    "to_torch": "interop",
}
_MODULES = ("aten", "interop")

__all__ = ["Explanation", "aten", "backend", "explain", "from_torch", "interop", "to_torch"]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value: Any = import_module("hologram_torch." + name)
    elif name in _WHERE:
        value = getattr(import_module("hologram_torch." + _WHERE[name]), name)
    else:
        raise AttributeError(f"module 'hologram_torch' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
