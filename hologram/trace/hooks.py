"""Calls from modules of this package into modules that are written in terms of them: a Tensor's operators are below Tensors, which are below the
conversions to Tensors; reports stand above all. Each hook is found by name when it is first called, so no module imports one above it."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

realise: Callable[..., None]  # (*tensors): computes pending Tensors
relieve: Callable[[Any], None]  # (tensor): cuts a long chain of pending ops
shown: Callable[[Any], Any]  # (tensor): a view's elements as an array, None for other Tensors
tensor_beside: Callable[[Any, Any], Any]  # (numbers, dtype): the Tensor of nested lists beside an operand of a type
put: Callable[[Any, Any], Any]  # (tensor, device): as hologram.device_put
tensor: Callable[..., Any]  # (array): as hologram.tensor
asarray: Callable[..., Any]  # (array): as hologram.asarray
weak_number: Callable[[Any], Any]  # (number): the weakly typed Tensor of a Python number
tensor_of_extent: Callable[[Any], Any]  # (extent): a symbolic extent as a scalar Tensor
ufunc: Callable[..., Any]  # what __array_ufunc__ gives
function: Callable[..., Any]  # what __array_function__ gives
device_put_sharded: Callable[[Any, Any], Any]  # (pytree, sharding): as hologram.device_put
with_shardings: Callable[..., Any]  # (function, in_shardings, out_shardings, static positions): the function that divides what comes and goes
by_parts: Callable[[Any, Any], Any]  # (op, operands): an elementwise op of operands of which one is divided among processes
gathered: Callable[[Any], Any]  # (array): all of an array that is divided among processes
exports: Any  # the module of what other libraries read of a Tensor's memory
index: Callable[[Any, Any], Any]  # (tensor, key): the part that a key chooses
assignment: Any  # the module of assignments to elements
arrow: Any  # the module of Arrow's C data interface
report_data: Callable[..., dict[str, Any]]  # (lowered, profile): as Explanation.data
write_report: Callable[..., None]  # (path, data): a page of what Explanation.data gives
write_report_data: Callable[..., None]  # (path, data): the same in JSON

_MODULES = {
    "realise": "trace.lazy",
    "relieve": "trace.lazy_programs.cuts",
    "shown": "trace.lazy",
    "tensor_beside": "trace.convert",
    "put": "trace.convert",
    "tensor": "trace.convert",
    "asarray": "trace.convert",
    "weak_number": "trace.convert",
    "tensor_of_extent": "trace.operators",
    "ufunc": "trace.interchange.numpy_protocols",
    "function": "trace.interchange.numpy_protocols",
    "index": "numpy.indexing.read",
    "assignment": "numpy.indexing.assignment:",
    "arrow": "trace.interchange.arrow:",
    "device_put_sharded": "distributed.placement:device_put",
    "with_shardings": "distributed.shardings:with_shardings",
    "by_parts": "distributed.by_parts:apply",
    "gathered": "distributed.gathering:gathered",
    "exports": "trace.interchange.memory:",
    "report_data": "report.data.program:program_data",
    "write_report": "report:write",
    "write_report_data": "report:write_json",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(name)
    module, colon, attribute = _MODULES[name].partition(":")
    home = import_module(f"hologram.{module}")
    found = globals()[name] = home if colon and not attribute else getattr(home, attribute or name)
    return found
