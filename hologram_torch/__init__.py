"""Hologram for PyTorch: ``torch.compile(model, backend="hologram")``, zero-copy conversion, and what else torch's users reach Hologram by.

Importing it makes the backend known to torch, and ``device="hologram"`` unless torch has a GPU (:mod:`hologram_torch.api.device` says why). When
torch imports it, because a program compiles for the backend by its name, it changes nothing until a program uses one of its names. Names are
imported when they are first used.

The code stands in packages: ``api`` (what users call), ``autograd`` (programs with derivatives), ``compile`` (the backend of ``torch.compile``),
``eager`` (``device="hologram"``), ``aten`` (the table of ATen's ops) and ``bridge`` (values that cross). The other modules here are public names.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hologram_torch import devices, discovery

if TYPE_CHECKING:
    from hologram.sdk.backend import BackendType
    from hologram.sdk.buffer import Buffer
    from hologram.sdk.executor import Executor
    from hologram_torch import aten, functional, interop, library, nn, utils
    from hologram_torch.api.buffers import buffer_to_tensor, create_executor_for_tensor, match_device, tensor_to_buffer, validate_tensor_compatible
    from hologram_torch.api.conversion import Conversion, convert
    from hologram_torch.api.device import device, get_backend, is_available, list_available_backends, set_backend
    from hologram_torch.api.wrapping import wrap
    from hologram_torch.bridge.interop import from_torch, to_torch
    from hologram_torch.compile.backend import backend
    from hologram_torch.compile.report import Explanation, explain

_WHERE = {
    "BackendType": "hologram.sdk.backend",
    "Buffer": "hologram.sdk.buffer",
    "Conversion": "hologram_torch.api.conversion",
    "Executor": "hologram.sdk.executor",
    "Explanation": "hologram_torch.compile",
    "backend": "hologram_torch.compile",
    "buffer_to_tensor": "hologram_torch.api.buffers",
    "convert": "hologram_torch.api.conversion",
    "create_executor_for_tensor": "hologram_torch.api.buffers",
    "device": "hologram_torch.api.device",
    "explain": "hologram_torch.compile",
    "from_torch": "hologram_torch.bridge.interop",
    "get_backend": "hologram_torch.api.device",
    "is_available": "hologram_torch.api.device",
    "list_available_backends": "hologram_torch.api.device",
    "match_device": "hologram_torch.api.buffers",
    "set_backend": "hologram_torch.api.device",
    "tensor_to_buffer": "hologram_torch.api.buffers",
    "to_torch": "hologram_torch.bridge.interop",
    "validate_tensor_compatible": "hologram_torch.api.buffers",
    "wrap": "hologram_torch.api.wrapping",
}
_MODULES = ("aten", "functional", "interop", "library", "nn", "utils")

__all__ = [
    "BackendType", "Buffer", "Conversion", "Executor", "Explanation", "aten", "backend", "buffer_to_tensor", "convert", "create_executor_for_tensor",
    "device", "devices", "explain", "from_torch", "functional", "get_backend", "interop", "is_available", "library", "list_available_backends",
    "match_device", "nn", "set_backend", "tensor_to_buffer", "to_torch", "utils", "validate_tensor_compatible", "wrap",
]  # fmt: skip

_is_known = False  # to torch


def _announce() -> None:
    """Makes the backend, and the device, known to torch, once; not while torch imports this."""
    global _is_known
    if not _is_known and not discovery.is_lookup():
        _is_known = True
        discovery.register()
        devices.enable_beside_no_gpu()


_announce()


def __getattr__(name: str) -> Any:
    if name in __all__:
        _announce()
    if name in _MODULES:
        value: Any = import_module("hologram_torch." + name)
    elif name in _WHERE:
        value = getattr(import_module(_WHERE[name]), name)
    else:
        raise AttributeError(f"module 'hologram_torch' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
