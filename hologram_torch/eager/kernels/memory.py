"""Kernels that allocate, copy, and set shapes and strides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._ops import OpOverload

from hologram import numpy as hnp
from hologram.errors import UnsupportedError
from hologram.trace.tensor import Tensor
from hologram_torch.aten.types import cast
from hologram_torch.eager.identity import NAME
from hologram_torch.eager.storage import values
from hologram_torch.eager.storage.impl import StorageImpl, empty_value
from hologram_torch.eager.storage.storages import NATIVE, impl_of, make, meta_of, over, resize, set_geometry, size_storage

aten = torch.ops.aten
_DENSE = (None, torch.contiguous_format, torch.preserve_format)  # C order is kept, or made
kernels: dict[OpOverload, Callable[..., Any]] = {}


def _kernel_of(*ops: OpOverload) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        kernels.update(dict.fromkeys(ops, function))
        return function

    return decorate


# --- allocation ------------------------------------------------------------------------------------------------------


def _refuse(what: str, layout: torch.layout | None, pin_memory: bool | None) -> None:
    if layout not in (None, torch.strided):
        raise UnsupportedError(f"{what}: tensors of layout {layout} are not supported on this device")
    if pin_memory:
        raise UnsupportedError(f"{what}: pin_memory is for CPU tensors")


@_kernel_of(aten.empty.memory_format)
def empty(
    size: Any,
    *,
    dtype: torch.dtype | None = None,
    layout: torch.layout | None = None,
    device: Any = None,
    pin_memory: bool | None = None,
    memory_format: torch.memory_format | None = None,
) -> torch.Tensor:
    _refuse("empty", layout, pin_memory)
    dtype = dtype or torch.get_default_dtype()
    if memory_format in _DENSE:
        return over(StorageImpl(empty_value(size, dtype), unwritten=True))
    stride = torch.empty(size, device="meta", memory_format=memory_format).stride()
    return empty_strided(size, stride, dtype=dtype)


@_kernel_of(aten.empty_strided.default)
def empty_strided(
    size: Any,
    stride: Any,
    *,
    dtype: torch.dtype | None = None,
    layout: torch.layout | None = None,
    device: Any = None,
    pin_memory: bool | None = None,
) -> torch.Tensor:
    _refuse("empty_strided", layout, pin_memory)
    dtype = dtype or torch.get_default_dtype()
    meta = torch.empty_strided(size, stride, dtype=dtype, device="meta")
    if meta.is_contiguous():
        return over(StorageImpl(empty_value(size, dtype), unwritten=True))
    count = 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
    t = over(StorageImpl(empty_value((count,), dtype), unwritten=True))
    return set_geometry(t, impl_of(t), 0, size, stride)


# --- copies ----------------------------------------------------------------------------------------------------------


def _converted(t: torch.Tensor, dtype: torch.dtype) -> Tensor:
    """The elements of a tensor of the device or the CPU."""
    return cast(values.read(t) if values.is_here(t) else values.upload(t.to(device="cpu", dtype=dtype)), dtype)


@_kernel_of(aten.copy_.default)
def copy_(target: torch.Tensor, source: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    """Copies between tensors of the device, and between these and the CPU's, with conversion and broadcasting."""
    if not values.is_here(target):
        return target.copy_(values.host(source))
    found = _converted(source, target.dtype)
    size = tuple(target.shape)
    values.write(target, found if found.shape == size else hnp.broadcast_to(found, size))
    return target


@_kernel_of(aten._copy_from_and_resize.default)
def _copy_from_and_resize(source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    target.resize_(source.shape)
    return copy_(target, source)


@_kernel_of(aten._to_copy.default)
def _to_copy(
    t: torch.Tensor,
    *,
    dtype: torch.dtype | None = None,
    layout: torch.layout | None = None,
    device: torch.device | None = None,
    pin_memory: bool | None = None,
    non_blocking: bool = False,
    memory_format: torch.memory_format | None = None,
) -> torch.Tensor:
    """``t.to(…)`` from and to the device. A copy to the CPU is complete when this returns, whatever ``non_blocking`` says."""
    dtype, to = dtype or t.dtype, device or t.device
    if to.type != NAME:
        like = torch.empty_strided(t.shape, t.stride(), dtype=dtype, device=to)
        target = torch.empty_like(like, layout=layout, pin_memory=pin_memory or False, memory_format=memory_format or torch.preserve_format)
        return target.copy_(values.host(t))
    _refuse("to", layout, pin_memory)
    if memory_format in _DENSE and t.is_contiguous():
        return make(_converted(t, dtype))
    stride = torch.empty_like(meta_of(t), memory_format=memory_format or torch.preserve_format).stride()
    return copy_(empty_strided(t.shape, stride, dtype=dtype), t)


@_kernel_of(aten.clone.default)
def clone(t: torch.Tensor, *, memory_format: torch.memory_format | None = None) -> torch.Tensor:
    """Copies ``t``. That costs nothing where it is in C order, since elements are immutable."""
    if memory_format is torch.contiguous_format:
        return make(values.read(t))
    return _to_copy(t, memory_format=memory_format)


@_kernel_of(aten.zero_.default)
def zero_(t: torch.Tensor) -> torch.Tensor:
    values.write(t, empty_value(t.shape, t.dtype))
    return t


@_kernel_of(aten._local_scalar_dense.default)
def _local_scalar_dense(t: torch.Tensor) -> Any:
    return values.host(t).item()


# --- assignment to .data ---------------------------------------------------------------------------------------------

_EXCHANGEABLE = ("CPU", "CUDA", "HIP", "XPU", "MPS", "HPU", "MTIA", "PrivateUse1")  # torch's own list, and this device


def _is_dense(t: torch.Tensor) -> bool:
    """Whether ``t`` is a strided tensor of a device whose tensors may take over the memory of another: not sparse, not meta, no wrapper."""
    keys = torch._C._dispatch_keys(t)
    return any(keys.has(getattr(torch._C.DispatchKey, name)) for name in _EXCHANGEABLE)


@_kernel_of(aten._has_compatible_shallow_copy_type.default)
def has_compatible_shallow_copy_type(t: torch.Tensor, source: torch.Tensor) -> bool:
    """Whether ``t.data = source`` is allowed.

    Torch's own answer knows no devices of libraries. ``Module.to`` would then make new Parameters, which optimisers and tied layers do not have.
    """
    return _is_dense(t) and _is_dense(source)


# --- geometry --------------------------------------------------------------------------------------------------------


@_kernel_of(aten.as_strided.default)
def as_strided(t: torch.Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> torch.Tensor:
    size_storage(t)
    offset = t.storage_offset() if storage_offset is None else storage_offset
    return aten.as_strided.default.redispatch(NATIVE, t, size, stride, offset)


@_kernel_of(aten.as_strided_.default)
def as_strided_(t: torch.Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> torch.Tensor:
    size_storage(t)
    offset = t.storage_offset() if storage_offset is None else storage_offset
    return set_geometry(t, impl_of(t), offset, size, stride)


@_kernel_of(aten.unfold.default)
def unfold(t: torch.Tensor, dimension: int, size: int, step: int) -> torch.Tensor:
    meta = meta_of(t).unfold(dimension, size, step)
    return as_strided(t, meta.shape, meta.stride())


def _native_view(op: OpOverload) -> Callable[..., Any]:
    """Torch's own kernel, for views that need no size of the storage."""

    def view(t: torch.Tensor, *args: Any) -> torch.Tensor:
        impl_of(t).viewed = True
        return op.redispatch(NATIVE, t, *args)

    return view


for _op in (aten.view.default, aten._reshape_alias.default, aten.alias.default):  # the last makes lazy conjugates and negatives
    kernels[_op] = _native_view(_op)


def _retyped_view(op: OpOverload) -> Callable[..., Any]:
    """Torch's own kernel, for views that reinterpret the bytes as another type."""

    def view(t: torch.Tensor, *args: Any) -> torch.Tensor:
        size_storage(t)
        return op.redispatch(NATIVE, t, *args)

    return view


for _op in (aten.view.dtype, aten.view_as_real.default, aten.view_as_complex.default):
    kernels[_op] = _retyped_view(_op)


@_kernel_of(aten.set_.source_Storage_storage_offset)
def set_to_part(t: torch.Tensor, source: Any, storage_offset: int, size: Any, stride: Any = ()) -> torch.Tensor:
    strides = stride if len(stride) == len(size) else torch.empty(size, device="meta").stride()
    return set_geometry(t, source.impl, storage_offset, size, strides)


@_kernel_of(aten.set_.source_Storage)
def set_to_storage(t: torch.Tensor, source: Any) -> torch.Tensor:
    return set_geometry(t, source.impl, 0, (source.nbytes() // t.element_size(),), (1,))


@_kernel_of(aten.set_.source_Tensor)
def set_to_tensor(t: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
    return set_geometry(t, impl_of(source), source.storage_offset(), source.size(), source.stride())


@_kernel_of(aten.set_.default)
def set_to_nothing(t: torch.Tensor) -> torch.Tensor:
    return set_geometry(t, StorageImpl(empty_value((0,), t.dtype)), 0, (0,), (1,))


@_kernel_of(aten.resize_.default)
def resize_(t: torch.Tensor, size: Any, *, memory_format: torch.memory_format | None = None) -> torch.Tensor:
    if memory_format not in _DENSE:
        raise UnsupportedError(f"resize_: the memory format {memory_format} is not supported on this device")
    if tuple(size) != tuple(t.shape):
        resize(t, size)
    return t
