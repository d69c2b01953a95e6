"""Hologram: array programs traced, fused, planned ahead, and run as one native call.

Names are imported when they are first used, so that ``import hologram`` costs little more than ``import numpy``. Examples in docstrings assume
``import hologram as hg``, ``import hologram.numpy as hnp`` and ``import numpy as np``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hologram.version import __version__

if TYPE_CHECKING:
    from hologram import dtypes, errors, fft, lax, linalg, nn, numpy, random, settings, special
    from hologram.control import associative_scan, cond, fori_loop, scan, switch, while_loop
    from hologram.control.callbacks import pure_callback
    from hologram.control.progress import progress
    from hologram.notebook.images import as_image
    from hologram.profiling.profile import profile
    from hologram.saved.exporting import export
    from hologram.saved.loading import load
    from hologram.sdk import backend, ops
    from hologram.sdk.buffer import Buffer
    from hologram.sdk.executor import Executor
    from hologram.trace import tree
    from hologram.trace.call.abstract_eval import ShapeDtypeStruct, eval_shape
    from hologram.trace.call.explain import explain
    from hologram.trace.call.jit import disable_jit, jit
    from hologram.trace.call.stages import make_graph
    from hologram.trace.convert import asarray, from_dlpack, tensor
    from hologram.trace.devices import clear_caches, default_device, device_put, devices, set_num_threads
    from hologram.trace.lazy import block_until_ready
    from hologram.trace.lazy import evaluate as eval
    from hologram.trace.streams import stream
    from hologram.trace.tensor import Tensor
    from hologram.transform.api import grad, hessian, jacfwd, jacrev, jvp, linearize, stop_gradient, value_and_grad, vjp
    from hologram.transform.checkpoint import checkpoint
    from hologram.transform.custom import custom_jvp, custom_vjp
    from hologram.transform.stacking import vmap

_WHERE = {
    "Buffer": "sdk.buffer",
    "Executor": "sdk.executor",
    "ShapeDtypeStruct": "trace.call.abstract_eval",
    "Tensor": "trace.tensor",
    "as_image": "notebook.images",
    "asarray": "trace.convert",
    "associative_scan": "control.associative",
    "block_until_ready": "trace.call.native_dispatch",
    "checkpoint": "transform.checkpoint",
    "clear_caches": "trace.devices",
    "cond": "control.branches",
    "custom_jvp": "transform.custom",
    "custom_vjp": "transform.custom",
    "default_device": "trace.devices",
    "device_put": "trace.devices",
    "devices": "trace.devices",
    "disable_jit": "trace.call.jit",
    "eval": "trace.lazy:evaluate",
    "eval_shape": "trace.call.abstract_eval",
    "explain": "trace.call.explain",
    "export": "saved.exporting",
    "fori_loop": "control.loops",
    "from_dlpack": "trace.convert",
    "grad": "transform.api",
    "hessian": "transform.api",
    "jacfwd": "transform.api",
    "jacrev": "transform.api",
    "jit": "trace.call.jit",
    "jvp": "transform.api",
    "linearize": "transform.api",
    "load": "saved.loading",
    "make_graph": "trace.call.stages",
    "progress": "control.progress",
    "profile": "profiling.profile",
    "pure_callback": "control.callbacks",
    "scan": "control.loops",
    "set_num_threads": "trace.devices",
    "stop_gradient": "transform.api",
    "stream": "trace.streams",
    "switch": "control.branches",
    "tensor": "trace.convert",
    "value_and_grad": "transform.api",
    "vjp": "transform.api",
    "vmap": "transform.stacking",
    "while_loop": "control.loops",
}
_PACKAGES = ("dtypes", "errors", "fft", "lax", "linalg", "nn", "numpy", "random", "settings", "special")
_MODULES = {name: name for name in _PACKAGES} | {"backend": "sdk.backend", "dask": "dask", "ops": "sdk.ops", "tree": "trace.tree"}

__all__ = [
    "Buffer", "Executor", "ShapeDtypeStruct", "Tensor", "__version__", "as_image", "asarray", "associative_scan", "backend",
    "block_until_ready", "checkpoint", "clear_caches", "cond", "custom_jvp", "custom_vjp", "default_device", "device_put", "devices", "disable_jit",
    "dtypes", "errors", "eval", "eval_shape", "explain", "export", "fft", "fori_loop", "from_dlpack", "grad", "hessian", "jacfwd", "jacrev", "jit",
    "jvp", "lax", "linalg", "linearize", "load", "make_graph", "nn", "numpy", "ops", "profile", "progress", "pure_callback", "random", "scan",
    "set_num_threads", "settings", "special", "stop_gradient", "stream", "switch", "tensor", "tree", "value_and_grad", "vjp", "vmap", "while_loop",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value: Any = import_module("hologram." + _MODULES[name])
    elif name in _WHERE:
        module, _, attribute = _WHERE[name].partition(":")
        value = getattr(import_module("hologram." + module), attribute or name)
    elif name.endswith("_f32"):  # the SDK's ops for float32
        value = getattr(import_module("hologram.sdk.ops"), name)
    else:
        raise AttributeError(f"module 'hologram' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
