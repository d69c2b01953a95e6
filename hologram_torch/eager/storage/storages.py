"""Storages: torch's side of the device's storages, and the making of tensors over them.

Torch's own storage of a tensor on the device has no memory. Its Python object, which lives as long as the storage does, carries the elements, a
:class:`~hologram_torch.eager.storage.impl.StorageImpl`. Where torch checks bounds (views with an offset) a storage needs its size in bytes: tensors
get such a storage, still without memory, when the first view of them is made.
"""

from __future__ import annotations

import math
from typing import Any
from weakref import ref

import torch
from torch._C import DispatchKey, DispatchKeySet
from torch._C._acc import create_empty_tensor

import hologram as hg
from hologram import numpy as hnp
from hologram.errors import ArgumentError, DeviceError, UnsupportedError
from hologram.ir.strides import contiguous_strides
from hologram_torch.bridge.interop import from_torch
from hologram_torch.eager.identity import NAME
from hologram_torch.eager.storage.impl import StorageImpl, empty_value

torch.utils.rename_privateuse1_backend(NAME)  # before a device of this name can be written down
DEVICE = torch.device(NAME, 0)
NATIVE = DispatchKeySet(DispatchKey.CPU)  # torch's kernels that set geometry alone, and touch no memory
_set_storage = torch.ops.aten.set_.source_Storage_storage_offset


class Storage(torch.UntypedStorage):
    """A storage of the device. Torch's copies of storages (``deepcopy``, ``torch.save``) copy its elements."""

    impl: StorageImpl

    def nbytes(self) -> int:
        return self.impl.nbytes

    size = nbytes

    def __len__(self) -> int:
        return self.impl.nbytes

    def __getitem__(self, index: Any) -> Any:
        return torch.UntypedStorage.__getitem__(sized_storage(self.impl), index)

    def __setitem__(self, index: Any, value: Any) -> None:
        torch.UntypedStorage.__setitem__(sized_storage(self.impl), index, value)

    def copy_(self, source: Any, non_blocking: Any = None) -> Any:
        if source.nbytes() != self.nbytes():
            raise ArgumentError(f"copy_: {source.nbytes()} bytes into a storage of {self.nbytes()}")
        self.impl.typed(torch.uint8).write(_bytes(source.cpu()))
        return self

    def data_ptr(self) -> int:
        """A number that tells storages apart; it is no address."""
        return id(self.impl)

    def clone(self) -> torch.UntypedStorage:
        made = sized_storage(StorageImpl(self.impl.value))
        made.__class__ = torch.UntypedStorage  # what torch asserts of a copy
        return made

    def cpu(self) -> torch.UntypedStorage:
        """The bytes, in memory of their own."""
        return self.impl.host().clone(memory_format=torch.contiguous_format).untyped_storage()

    def __reduce__(self) -> Any:
        return storage_of_bytes, (self.cpu(),)

    def byteswap(self, dtype: torch.dtype) -> None:
        raise UnsupportedError(f"byteswap: a storage on {NAME} has no memory to write to: use .cpu()")

    def _write_file(self, *options: Any) -> None:
        self.cpu()._write_file(*options)

    def _set_from_file(self, *options: Any) -> torch.UntypedStorage:
        read = torch.UntypedStorage(self.nbytes())._set_from_file(*options)
        self.impl.typed(torch.uint8).write(_bytes(read))
        return self


def _bytes(source: torch.UntypedStorage) -> hg.Tensor:
    """A copy of the bytes of a CPU storage."""
    return from_torch(torch.empty(0, dtype=torch.uint8).set_(source), copy=True)


def storage_of_bytes(source: torch.UntypedStorage) -> torch.UntypedStorage:
    """A storage of the device with the bytes of a CPU storage. The first tensor that reads it gives the element type."""
    return sized_storage(StorageImpl(_bytes(source)))


def sized_storage(impl: StorageImpl) -> torch.UntypedStorage:
    """The storage over ``impl`` that torch knows by its size, for tensors of any shape and strides; made once."""
    made = impl.sized()
    if made is None:
        made = _marked(torch._C._construct_storage_from_data_pointer(0, DEVICE, impl.nbytes), impl)
        impl.viewed, impl.sized = True, ref(made)
    return made


def teach_torch_to_make_storages() -> None:
    """Makes ``torch.UntypedStorage(n, device="hologram")`` work. Torch's own constructor looks for an allocator, which the device does not have,
    and crashes."""
    plain = torch.UntypedStorage.__new__

    def make_storage(cls: type[Any], *args: Any, **options: Any) -> Any:
        device = options.get("device")
        if device is None or torch.device(device).type != NAME:
            return plain(cls, *args, **options)
        if not (len(args) == 1 and isinstance(args[0], int)):
            raise UnsupportedError(f"UntypedStorage: on {NAME} it takes a number of bytes")
        return sized_storage(StorageImpl(empty_value(args, torch.uint8), unwritten=True))

    torch.UntypedStorage.__new__ = make_storage  # type: ignore[method-assign]


def _marked(storage: Any, impl: StorageImpl) -> Storage:
    """Turns a storage that torch has made into the storage of ``impl``."""
    storage.__class__ = Storage
    storage.impl = impl
    return storage


def make(value: hg.Tensor) -> torch.Tensor:
    """A new tensor of the device with the elements ``value``."""
    return over(StorageImpl(value))


def over(impl: StorageImpl) -> torch.Tensor:
    """A tensor of the shape of ``impl`` over a new storage of it."""
    t = create_empty_tensor(impl.shape, impl.dtype)
    _marked(t.untyped_storage(), impl)
    return t


def make_strided(value: hg.Tensor, stride: Any) -> torch.Tensor:
    """A new tensor with the elements ``value``, which lie in memory in the order of ``stride``: strides of a permutation of C order."""
    order = sorted(range(value.ndim), key=lambda i: (-stride[i], i))
    t = make(hnp.permute_dims(value, tuple(order)))
    return set_geometry(t, impl_of(t), 0, value.shape, stride)


def meta_of(t: torch.Tensor) -> torch.Tensor:
    """A meta tensor with the shape, strides and type of ``t``."""
    return torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device="meta")


def impl_of(t: torch.Tensor) -> StorageImpl:
    """The storage implementation of a tensor of the device. Raises DeviceError for a tensor from elsewhere."""
    try:
        return t.untyped_storage().impl  # type: ignore[attr-defined]
    except (AttributeError, NotImplementedError):
        raise DeviceError(f"a tensor on {t.device} met one on {NAME}: move it with .to({NAME!r}), or the other with .cpu()") from None


def size_storage(t: torch.Tensor) -> None:
    """Gives ``t`` the storage that torch knows by its size, so that torch's kernels can set the geometry of ``t`` or of views of it."""
    impl = impl_of(t)
    if impl.sized() is t.untyped_storage():
        return
    impl.viewed = True
    if impl.nbytes:
        _set_storage.redispatch(NATIVE, t, sized_storage(impl), t.storage_offset(), t.size(), t.stride())


def set_geometry(t: torch.Tensor, impl: StorageImpl, offset: Any, size: Any, stride: Any) -> torch.Tensor:
    """Makes ``t`` a tensor over ``impl`` with this offset, shape and strides, in elements."""
    impl.viewed = True
    return _set_storage.redispatch(NATIVE, t, sized_storage(impl), offset, size, stride)


def resize(t: torch.Tensor, size: Any) -> None:
    """Gives ``t`` the shape ``size`` in C order.

    It stays in its storage where that is large enough; else it gets a new one that begins with the elements of the old one.
    """
    impl, size = impl_of(t).typed(t.dtype), tuple(size)
    count, offset = math.prod(size), t.storage_offset()
    if offset + count > impl.value.size:
        flat = hnp.reshape(impl.value, (-1,))
        impl = StorageImpl(hnp.pad(flat, (0, offset + count - flat.size)))
    set_geometry(t, impl, offset, size, contiguous_strides(size))
