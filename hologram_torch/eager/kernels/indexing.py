"""Kernels of ops that take indices: masks become coordinates, and indices out of range raise.

The table's functions clamp indices, as compiled code does. Here an index whose values are known is checked before the op is recorded. For others a
check is recorded beside the op, and raises when the values are computed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import torch
from torch._ops import OpOverload

import hologram as hg
from hologram import numpy as hnp
from hologram.errors import IndexOutOfRange
from hologram_torch import aten as table
from hologram_torch.aten.shapes.indexing import COUNTED, INDEX_ARGUMENTS, PUT, ranges
from hologram_torch.eager.recording import pending, templates
from hologram_torch.eager.storage import values
from hologram_torch.eager.storage.storages import make

aten = torch.ops.aten
Kernel = Callable[..., Any]
Indices = list[torch.Tensor | None]


def _are_within(indices: hg.Tensor, low: int, size: int) -> hg.Tensor:
    return hnp.all((indices >= low) & (indices < size))


def check(op: OpOverload, index: torch.Tensor, low: int, size: int) -> None:
    """Raises IndexOutOfRange, now or when values are computed, unless all elements of ``index`` are from ``low`` up and below ``size``."""
    error = IndexOutOfRange(f"{op.name()}: an index is out of range for an axis of {size} elements")
    if values.is_here(index) and not values.is_known(index):
        pending.expect(templates.apply(_are_within, [values.read(index), low, size], {}), error)
        return
    known = values.host(index) if values.is_here(index) else index
    if known.numel() and (int(known.min()) < low or int(known.max()) >= size):
        raise error


def _are_counts_right(name: str, *args: Any) -> hg.Tensor:
    return reduce(hnp.logical_and, [_are_within(*found) for found in ranges(name, args)])


def _check_counts(op: OpOverload, name: str, args: tuple[Any, ...]) -> None:
    """Checks numbers of elements when values are computed: raises IndexOutOfRange unless they are right for the function of that name."""
    pending.expect(templates.apply(_are_counts_right, [name, *map(values.operand, args)], {}), IndexOutOfRange(f"{op.name()}: takes {COUNTED[name]}"))


def checked(op: OpOverload, functional: OpOverload, kernel: Kernel) -> Kernel:
    """``kernel`` of ``op`` with a check of its index, if it has one; ``functional`` is the op whose work it does."""
    name = functional.name()
    found = INDEX_ARGUMENTS.get(name)
    if found is None and name not in (PUT, *COUNTED):
        return kernel

    def run(*args: Any, **options: Any) -> Any:
        x = args[0]
        if found is not None:
            x, index = args[found.x], args[found.indices]
            check(op, index, 0, x.shape[0 if found.dim is None else args[found.dim]] if x.ndim else 1)
        elif name == PUT:
            check(op, args[1], -x.numel(), x.numel())
        if name in COUNTED:
            _check_counts(op, name, args)
        return kernel(*args, **options)

    return run


# --- x[indices] ------------------------------------------------------------------------------------------------------


def _indices(op: OpOverload, x: torch.Tensor, given: Indices) -> list[Any]:
    """The indices of ``x[...]``, masks as the coordinates of their true elements. CPU tensors may index, as they may on any device."""
    found: list[Any] = []
    for i in given:
        if i is None:
            found.append(None)
        elif i.dtype in (torch.bool, torch.uint8):
            mask = values.host(i) if values.is_here(i) else i
            if mask.shape != x.shape[len(found) : len(found) + mask.ndim]:
                raise IndexOutOfRange(f"{op.name()}: a mask of shape {list(mask.shape)} for axes {len(found)} and on of shape {list(x.shape)}")
            found += [values.upload(coordinate) for coordinate in mask.nonzero(as_tuple=True)]
        else:
            check(op, i, -x.shape[len(found)], x.shape[len(found)])
            found.append(values.read(i) if values.is_here(i) else values.upload(i))
    return found


def _is_mask(indices: Indices, new: torch.Tensor) -> bool:
    """Whether ``x[mask] = number``, which needs no coordinates."""
    return len(indices) == 1 and values.is_here(indices[0]) and indices[0].dtype is torch.bool and new.ndim == 0  # type: ignore[union-attr]


def _put(op: OpOverload, function: Kernel, x: torch.Tensor, indices: Indices, new: torch.Tensor, accumulate: bool) -> hg.Tensor:
    keys = [values.operand(indices[0])] if _is_mask(indices, new) else _indices(op, x, indices)
    source = values.read(new) if values.is_here(new) else values.upload(new)
    return templates.apply(function, [values.read(x), keys, source, accumulate], {})


def kernels() -> dict[OpOverload, Kernel]:
    """The kernels of ``x[...]`` and ``x[...] = y``."""
    read, put = table.lookup(aten.index.Tensor), table.lookup(aten.index_put.default)
    assert read is not None and put is not None

    def index(x: torch.Tensor, indices: Indices) -> torch.Tensor:
        return make(templates.apply(read, [values.read(x), _indices(aten.index.Tensor, x, indices)], {}))

    def index_put(x: torch.Tensor, indices: Indices, new: torch.Tensor, accumulate: bool = False) -> torch.Tensor:
        return make(_put(aten.index_put.default, put, x, indices, new, accumulate))

    def index_put_(x: torch.Tensor, indices: Indices, new: torch.Tensor, accumulate: bool = False, unsafe: bool = False) -> torch.Tensor:
        values.store(aten.index_put_.default, x, _put(aten.index_put_.default, put, x, indices, new, accumulate))
        return x

    return {
        aten.index.Tensor: index,
        aten.index_put.default: index_put,
        aten.index_put_.default: index_put_,
        aten._index_put_impl_.default: index_put_,
    }
