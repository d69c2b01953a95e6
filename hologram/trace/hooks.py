"""Calls from modules of this package into modules that are written in terms of them: a Tensor's operators are below Tensors, which are below the
conversions to Tensors. Each hook is found by name when it is first called, so no module imports one above it."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

realise: Callable[..., None]  # (*tensors): computes pending Tensors
shown: Callable[[Any], Any]  # (tensor): a view's elements as an array, None for other Tensors
tensor_beside: Callable[[Any, Any], Any]  # (numbers, dtype): the Tensor of nested lists beside an operand of a type
put: Callable[[Any, Any], Any]  # (tensor, device): as hologram.device_put
tensor: Callable[..., Any]  # (array): as hologram.tensor
tensor_of_extent: Callable[[Any], Any]  # (extent): a symbolic extent as a scalar Tensor
ufunc: Callable[..., Any]  # what __array_ufunc__ gives
function: Callable[..., Any]  # what __array_function__ gives

_MODULES = {
    "realise": "lazy",
    "shown": "lazy",
    "tensor_beside": "convert",
    "put": "convert",
    "tensor": "convert",
    "tensor_of_extent": "operators",
    "ufunc": "numpy_protocols",
    "function": "numpy_protocols",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(name)
    found = globals()[name] = getattr(import_module(f"hologram.trace.{_MODULES[name]}"), name)
    return found
