"""Kernels of torch's ops on lists of tensors. A list is one op to the dispatcher, and one template."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._ops import OpOverload

from hologram.errors import ArgumentError
from hologram.trace.apply import wrap
from hologram.trace.recorder import constant
from hologram_torch.aten import lookup
from hologram_torch.aten.foreach import NUMBERS, TENSORS, ListOp, list_ops
from hologram_torch.bridge.element_types import dtype_of
from hologram_torch.eager.kernels.variants import applied, written
from hologram_torch.eager.storage.impl import StorageImpl
from hologram_torch.eager.storage.storages import impl_of, make
from hologram_torch.eager.storage.values import is_here, store

aten = torch.ops.aten
_OVERLOADS = {"List": ("Tensor",), "Tensor": ("Tensor",)} | dict.fromkeys(("Scalar", "ScalarList"), ("Tensor_Scalar", "Scalar", "Tensor"))
_LIFTED = (torch.float32, torch.float64)  # types whose ops take a number as an element of that type


def kernels() -> dict[OpOverload, Callable[..., Any]]:
    """A kernel for each op on lists whose op on one tensor has a row in the table."""
    found = {}
    for of in list_ops():
        function = _row(of)
        if function is not None and of.listed[0] and of.op is not aten._foreach_copy_.default:
            found[of.op] = _kernel(of, function)
    return found


def _row(of: ListOp) -> Callable[..., Any] | None:
    """The row of the op on one tensor; None where there is none for these arguments."""
    names = (*_OVERLOADS.get(of.op._schema.overload_name, ()), "default")
    ops = [getattr(packet, name) for packet in of.packets for name in names if name in packet.overloads()]
    return next((row for op in ops if (row := lookup(op)) is not None), None)


def _kernel(of: ListOp, function: Callable[..., Any]) -> Callable[..., Any]:
    op, types = of.op, [str(a.type) for a in of.op._schema.arguments if not a.kwarg_only]
    numbers = types.index(NUMBERS) if NUMBERS in types else None
    in_place = bool(written(op))
    each = of.on_each(function)

    def run(*args: Any, **options: Any) -> list[torch.Tensor] | None:
        if numbers is not None:
            args = (*args[:numbers], _elements(op, args[numbers], args[0]), *args[numbers + 1 :])
        if not in_place:
            return [make(x) for x in applied(op, each, args, options)]
        lists = [x for x, kind in zip(args, types, strict=False) if kind == TENSORS]
        if len(args[0]) == 1 or not _reads_written(lists):
            write(args, options)
            return None
        for i in range(len(args[0])):
            write(tuple([x[i : i + 1] if of_each else x for x, of_each in zip(args, of.listed, strict=False)]), options)
        return None

    def write(args: tuple[Any, ...], options: dict[str, Any]) -> None:
        for t, x in zip(args[0], applied(op, each, args, options), strict=True):
            store(op, t, x)

    return run


def _reads_written(lists: Sequence[Sequence[torch.Tensor]]) -> bool:
    """Whether a tensor of the first list shares its storage with a later tensor of any list, which would read what was written."""
    first: dict[StorageImpl, int] = {}
    for i, t in enumerate(lists[0]):
        first.setdefault(impl_of(t), i)
    return any(first.get(impl_of(t), i) < i for tensors in lists for i, t in enumerate(tensors) if is_here(t))


def _elements(op: OpOverload, numbers: Sequence[Any], tensors: Sequence[torch.Tensor]) -> list[Any]:
    """Converts numbers to elements of their tensors' types, so that the same template serves other numbers in the next step.

    Raises ArgumentError unless there is one for each tensor.
    """
    if len(numbers) != len(tensors):
        raise ArgumentError(f"{op.name()}: takes a number for each of {len(tensors)} tensors, not {len(numbers)}")
    return [
        wrap(constant(x, dtype_of(t.dtype))) if t.dtype in _LIFTED and type(x) is not complex else x for x, t in zip(numbers, tensors, strict=True)
    ]
