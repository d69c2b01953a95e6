"""Hologram: array programs traced, fused, planned ahead, and run as one native call.

Names are imported when they are first used, so that ``import hologram`` costs little more than ``import numpy``. Examples in docstrings assume
``import hologram as hg``, ``import hologram.numpy as hnp`` and ``import numpy as np``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hologram.libraries import tell_libraries
from hologram.version import __version__

if TYPE_CHECKING:
    from hologram import (
        config,
        custom_batching,
        custom_derivatives,
        debug,
        distributed,
        dtypes,
        errors,
        experimental,
        fft,
        flatten_util,
        image,
        lax,
        linalg,
        nn,
        numpy,
        random,
        scipy,
        settings,
        sharding,
        sparse,
        special,
        tree,
        tree_util,
        typing,
    )
    from hologram.config import debug_infs, debug_nans, enable_x64
    from hologram.control import associative_scan, cond, fori_loop, scan, switch, while_loop
    from hologram.control.callbacks import pure_callback
    from hologram.control.effects import io_callback
    from hologram.control.progress import progress
    from hologram.distributed.array import (
        make_array_from_callback,
        make_array_from_process_local_data,
        make_array_from_single_device_arrays,
    )
    from hologram.distributed.mesh import NamedSharding, make_mesh
    from hologram.distributed.mesh import PartitionSpec as P
    from hologram.distributed.processes import process_count, process_index
    from hologram.distributed.shard_map import shard_map
    from hologram.notebook.images import as_image
    from hologram.profiling.profile import profile
    from hologram.saved.exporting import export
    from hologram.saved.loading import load
    from hologram.sdk import backend, ops
    from hologram.sdk.buffer import Buffer
    from hologram.sdk.executor import Executor
    from hologram.trace.call.abstract_eval import ShapeDtypeStruct, eval_shape
    from hologram.trace.call.explain import explain
    from hologram.trace.call.jit import disable_jit, jit
    from hologram.trace.call.stages import make_graph
    from hologram.trace.call.stages import make_graph as make_jaxpr
    from hologram.trace.convert import asarray, from_dlpack, tensor
    from hologram.trace.devices import (
        clear_caches,
        default_backend,
        default_device,
        device_count,
        device_get,
        device_put,
        devices,
        local_devices,
        set_num_threads,
    )
    from hologram.trace.devices import device_count as local_device_count
    from hologram.trace.lazy import block_until_ready
    from hologram.trace.lazy import evaluate as eval
    from hologram.trace.scopes import effects_barrier, ensure_compile_time_eval, named_call, named_scope, typeof
    from hologram.trace.streams import stream
    from hologram.trace.tensor import Tensor
    from hologram.trace.tensor import Tensor as Array
    from hologram.transform import checkpoint_policies
    from hologram.transform.api import grad, hessian, jacfwd, jacrev, jvp, linearize, stop_gradient, value_and_grad, vjp
    from hologram.transform.api import jacrev as jacobian
    from hologram.transform.checkpoint import checkpoint
    from hologram.transform.checkpoint import checkpoint as remat
    from hologram.transform.closures import closure_convert, custom_gradient, fwd_and_bwd, linear_transpose
    from hologram.transform.custom import custom_jvp, custom_vjp
    from hologram.transform.stacking import vmap

_WHERE = {
    "Array": "trace.tensor:Tensor",
    "Buffer": "sdk.buffer",
    "Executor": "sdk.executor",
    "NamedSharding": "distributed.mesh",
    "P": "distributed.mesh:PartitionSpec",
    "ShapeDtypeStruct": "trace.call.abstract_eval",
    "Tensor": "trace.tensor",
    "as_image": "notebook.images",
    "asarray": "trace.convert",
    "associative_scan": "control.associative",
    "block_until_ready": "trace.call.native_dispatch",
    "checkpoint": "transform.checkpoint",
    "clear_caches": "trace.devices",
    "closure_convert": "transform.closures",
    "cond": "control.branches",
    "custom_gradient": "transform.closures",
    "custom_jvp": "transform.custom",
    "custom_vjp": "transform.custom",
    "debug_infs": "config",
    "debug_nans": "config",
    "default_backend": "trace.devices",
    "default_device": "trace.devices",
    "device_count": "trace.devices",
    "device_get": "trace.devices",
    "device_put": "trace.devices",
    "devices": "trace.devices",
    "disable_jit": "trace.call.jit",
    "effects_barrier": "trace.scopes",
    "enable_x64": "config",
    "ensure_compile_time_eval": "trace.scopes",
    "eval": "trace.lazy:evaluate",
    "eval_shape": "trace.call.abstract_eval",
    "explain": "trace.call.explain",
    "export": "saved.exporting",
    "fori_loop": "control.loops",
    "from_dlpack": "trace.convert",
    "fwd_and_bwd": "transform.closures",
    "grad": "transform.api",
    "hessian": "transform.api",
    "io_callback": "control.effects",
    "jacfwd": "transform.api",
    "jacobian": "transform.api:jacrev",
    "jacrev": "transform.api",
    "jit": "trace.call.jit",
    "jvp": "transform.api",
    "linear_transpose": "transform.closures",
    "linearize": "transform.api",
    "load": "saved.loading",
    "local_device_count": "trace.devices:device_count",
    "local_devices": "trace.devices",
    "make_array_from_callback": "distributed.array",
    "make_array_from_process_local_data": "distributed.array",
    "make_array_from_single_device_arrays": "distributed.array",
    "make_graph": "trace.call.stages",
    "make_jaxpr": "trace.call.stages:make_graph",
    "make_mesh": "distributed.mesh",
    "named_call": "trace.scopes",
    "named_scope": "trace.scopes",
    "process_count": "distributed.processes",
    "process_index": "distributed.processes",
    "profile": "profiling.profile",
    "progress": "control.progress",
    "pure_callback": "control.callbacks",
    "remat": "transform.checkpoint:checkpoint",
    "scan": "control.loops",
    "set_num_threads": "trace.devices",
    "shard_map": "distributed.shard_map",
    "stop_gradient": "transform.api",
    "stream": "trace.streams",
    "switch": "control.branches",
    "tensor": "trace.convert",
    "typeof": "trace.scopes",
    "value_and_grad": "transform.api",
    "vjp": "transform.api",
    "vmap": "transform.stacking",
    "while_loop": "control.loops",
}
_PACKAGES = (
    "config", "custom_batching", "custom_derivatives", "debug", "distributed", "dtypes", "errors", "experimental", "fft", "flatten_util", "image",
    "lax", "linalg", "nn", "numpy", "random", "scipy", "settings", "sharding", "sparse", "special", "tree", "tree_util", "typing",
)  # fmt: skip
_MODULES = {name: name for name in _PACKAGES} | {
    "backend": "sdk.backend", "checkpoint_policies": "transform.checkpoint_policies", "dask": "dask", "ops": "sdk.ops",
}  # fmt: skip

__all__ = [
    "Array", "Buffer", "Executor", "NamedSharding", "P", "ShapeDtypeStruct", "Tensor", "__version__", "as_image", "asarray", "associative_scan",
    "backend", "block_until_ready", "checkpoint", "checkpoint_policies", "clear_caches", "closure_convert", "cond", "config", "custom_batching",
    "custom_derivatives", "custom_gradient", "custom_jvp", "custom_vjp", "debug", "debug_infs", "debug_nans", "default_backend", "default_device",
    "device_count", "device_get", "device_put", "devices", "disable_jit", "distributed", "dtypes", "effects_barrier", "enable_x64",
    "ensure_compile_time_eval", "errors", "eval", "eval_shape", "experimental", "explain", "export", "fft", "flatten_util", "fori_loop",
    "from_dlpack", "fwd_and_bwd", "grad", "hessian", "image", "io_callback", "jacfwd", "jacobian", "jacrev", "jit", "jvp", "lax", "linalg",
    "linear_transpose", "linearize", "load", "local_device_count", "local_devices", "make_array_from_callback", "make_array_from_process_local_data",
    "make_array_from_single_device_arrays", "make_graph", "make_jaxpr",
    "make_mesh", "named_call", "named_scope", "nn", "numpy", "ops", "process_count", "process_index", "profile", "progress", "pure_callback",
    "random", "remat", "scan", "scipy", "set_num_threads", "settings", "shard_map", "sharding", "sparse", "special", "stop_gradient", "stream",
    "switch", "tensor", "tree", "tree_util", "typeof", "typing", "value_and_grad", "vjp", "vmap", "while_loop",
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
        raise AttributeError(f"module 'hologram' has no attribute {name!r}{_like(name)}")
    globals()[name] = value
    return value


def _like(name: str) -> str:
    from hologram.support.wording import did_you_mean

    return did_you_mean(name, __all__)


def __dir__() -> list[str]:
    return sorted(__all__)


tell_libraries()
