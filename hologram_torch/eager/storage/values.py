"""Reads and writes of the device's tensors: between a tensor of torch and the Tensor that its storage holds."""

from __future__ import annotations

from typing import Any

import torch

import hologram as hg
from hologram import numpy as hnp
from hologram.errors import DeviceError, DTypeError, ShapeError
from hologram.ir.strides import Strided
from hologram_torch.aten.types import cast
from hologram_torch.bridge.interop import from_torch
from hologram_torch.bridge.strided import read_view, write_view
from hologram_torch.eager.identity import NAME
from hologram_torch.eager.recording import templates
from hologram_torch.eager.storage.impl import TYPES, StorageImpl
from hologram_torch.eager.storage.storages import impl_of, make

PLAIN = frozenset({float, int, bool, type(None)})  # types of what is no tensor, which costs torch longer to tell
TENSORS = frozenset({torch.Tensor, torch.nn.Parameter})  # and of what is one


def read(t: torch.Tensor) -> hg.Tensor:
    """The elements of a tensor of the device, as a Tensor of its shape."""
    impl = impl_of(t)
    return _resolved(t, _through(impl, t)) if impl.viewed else impl.value


def _resolved(t: torch.Tensor, value: hg.Tensor) -> hg.Tensor:
    """Applies the lazy conjugation and negation of ``t`` to ``value``, on the way from or to memory: each is its own inverse."""
    if t.is_conj():
        value = hnp.conj(value)
    return -value if t.is_neg() else value


def _through(impl: StorageImpl, t: torch.Tensor) -> hg.Tensor:
    impl = impl.typed(t.dtype)
    if _is_whole(impl, t):
        return impl.value if impl.shape == t.shape else templates.apply(hnp.reshape, [impl.value, tuple(t.shape)], {})
    return templates.apply(read_view, [impl.value, _view_of(t)], {})


def _view_of(t: torch.Tensor) -> Strided:
    return Strided(tuple(t.shape), t.stride(), int(t.storage_offset()))


def _is_whole(impl: StorageImpl, t: torch.Tensor) -> bool:
    return t.is_contiguous() and (t.shape == impl.shape or t.numel() == impl.value.size)


def write(t: torch.Tensor, value: hg.Tensor) -> None:
    """Writes ``value`` to a tensor of the device. All tensors over its storage see it."""
    impl = impl_of(t)
    if not impl.viewed:
        impl.write(value)
        return
    impl, value = impl.typed(t.dtype), _resolved(t, value)
    if _is_whole(impl, t):
        impl.write(value)
    else:
        impl.write(templates.apply(write_view, [impl.value, _view_of(t), value], {}))


def store(op: Any, t: torch.Tensor, value: hg.Tensor) -> None:
    """Writes the result of ``op`` to ``t`` by the rules of in-place operations.

    Raises DTypeError where the type of the result is of a higher kind than that of ``t``, ShapeError where the shapes differ.
    """
    value = templates.strong(value)
    shape, of = value._aval()
    dtype = TYPES[of]
    if dtype is not t.dtype:
        if not torch.can_cast(dtype, t.dtype):
            raise DTypeError(f"{op.name()}: a result of {dtype} does not fit a tensor of {t.dtype}")
        value = cast(value, t.dtype)
    if shape != t.shape:
        raise ShapeError(f"{op.name()}: a result of shape {list(shape)} does not fit a tensor of shape {list(t.shape)}")
    write(t, value)


def operand(x: Any) -> Any:
    """Converts a kernel's argument to what the table's functions take.

    A tensor of the device becomes the Tensor of its elements, a CPU tensor without axes its value; lists are converted item by item. Raises
    DeviceError for other tensors.
    """
    kind = type(x)
    if kind in PLAIN:
        return x
    if kind in TENSORS or isinstance(x, torch.Tensor):
        try:
            return read(x)
        except DeviceError:
            if x.ndim == 0 and x.device.type == "cpu":
                return upload(x)
            raise
    if kind in (list, tuple):
        return [operand(e) for e in x]
    return x


def result(x: Any) -> Any:
    """Converts what a function of the table returns to tensors of torch."""
    if type(x) is hg.Tensor:
        return make(x)
    if type(x) in (list, tuple):
        return type(x)(result(e) for e in x)
    return x


def host(t: torch.Tensor) -> torch.Tensor:
    """The elements of a tensor of the device as a CPU tensor over memory that must not be written."""
    impl = impl_of(t)
    found = impl.typed(t.dtype).host().as_strided(t.shape, t.stride(), t.storage_offset()) if impl.viewed else impl.host()
    found = found.conj() if t.is_conj() else found
    return torch._neg_view(found) if t.is_neg() else found


def is_known(t: torch.Tensor) -> bool:
    """Whether the elements of a tensor of the device have been computed."""
    return impl_of(t).value._storage is not None


def upload(t: torch.Tensor) -> hg.Tensor:
    """Copies the elements of a CPU tensor to a Tensor."""
    return from_torch(t, copy=True)


def is_here(x: Any) -> bool:
    """Whether ``x`` is a tensor of the device."""
    return isinstance(x, torch.Tensor) and x.device.type == NAME
