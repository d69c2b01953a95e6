"""Torch's ops on lists of tensors, in which its optimisers are written: a list is one op to the dispatcher, and is recorded from one template."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch._ops import OpOverload

from hologram.errors import ArgumentError
from hologram.trace.apply import wrap
from hologram.trace.recorder import constant
from hologram_torch.aten import lookup
from hologram_torch.bridge.element_types import dtype_of
from hologram_torch.eager.kernels.variants import applied, written
from hologram_torch.eager.storage.impl import Cell
from hologram_torch.eager.storage.storages import cell_of, make
from hologram_torch.eager.storage.values import is_here, store

aten = torch.ops.aten
_PREFIX = "_foreach_"
_TENSORS = "List[Tensor]"
_LISTS = (_TENSORS, "List[number]")
_OVERLOADS = {"List": ("Tensor",), "Tensor": ("Tensor",)} | dict.fromkeys(("Scalar", "ScalarList"), ("Tensor_Scalar", "Scalar", "Tensor"))
_LIFTED = (torch.float32, torch.float64)  # types whose ops take a number as an element of that type


def kernels() -> dict[OpOverload, Callable[..., Any]]:
    """For each op on lists whose op on one tensor has a row in the table, its kernel."""
    found = {}
    for op in _ops():
        single = _single(op)
        function = lookup(single) if single is not None else None
        if single is not None and function is not None:
            found[op] = _kernel(op, single, function)
    return found


def _ops() -> Iterator[OpOverload]:
    """The functional ops on lists and those in place, with at most one result."""
    for schema in torch._C._jit_get_all_schemas():
        namespace, _, name = schema.name.partition("::")
        if namespace == "aten" and name.startswith(_PREFIX) and not any(a.name == "out" for a in schema.arguments) and len(schema.returns) <= 1:
            yield getattr(getattr(aten, name), schema.overload_name or "default")


def _single(op: OpOverload) -> OpOverload | None:
    """The op on one tensor; None where there is none, or where its arguments are others."""
    packet = getattr(aten, op._schema.name.partition(_PREFIX)[2].removesuffix("_"), None)
    if packet is None or op is aten._foreach_copy_.default or any(a.name == "scalars" and str(a.type) == "Tensor" for a in op._schema.arguments):
        return None
    names = (*_OVERLOADS.get(op._schema.overload_name, ()), "default")
    ops = [getattr(packet, name) for name in names if name in packet.overloads()]
    return next((single for single in ops if lookup(single) is not None), None)


def _kernel(op: OpOverload, single: OpOverload, function: Callable[..., Any]) -> Callable[..., Any]:
    types = [str(a.type) for a in op._schema.arguments if not a.kwarg_only]
    numbers = types.index("List[number]") if "List[number]" in types else None
    in_place = bool(written(op))
    each = _each([of in _LISTS for of in types], function, any(a.name == "value" and a.kwarg_only for a in single._schema.arguments))

    def run(*args: Any, **options: Any) -> list[torch.Tensor] | None:
        if numbers is not None:
            args = (*args[:numbers], _elements(op, args[numbers], args[0]), *args[numbers + 1 :])
        if not in_place:
            return [make(x) for x in applied(op, each, args, options)]
        lists = [x for x, of in zip(args, types, strict=False) if of == _TENSORS]
        if len(args[0]) == 1 or not _reads_written(lists):
            write(args, options)
            return None
        for i in range(len(args[0])):
            write(tuple([x[i : i + 1] if of in _LISTS else x for x, of in zip(args, types, strict=False)]), options)
        return None

    def write(args: tuple[Any, ...], options: dict[str, Any]) -> None:
        for t, x in zip(args[0], applied(op, each, args, options), strict=True):
            store(op, t, x)

    return run


def _reads_written(lists: Sequence[Sequence[torch.Tensor]]) -> bool:
    """Whether a tensor of the first list shares its storage with one that is further along in a list: what is written to the one is read there."""
    first: dict[Cell, int] = {}
    for i, t in enumerate(lists[0]):
        first.setdefault(cell_of(t), i)
    return any(first.get(cell_of(t), i) < i for tensors in lists for i, t in enumerate(tensors) if is_here(t))


def _each(listed: Sequence[bool], function: Callable[..., Any], takes_value: bool) -> Callable[..., tuple[Any, ...]]:
    """``function`` of the i-th of each list, for every i. ``takes_value``: the fourth argument is named ``value`` there."""

    def each(*operands: Any, **options: Any) -> tuple[Any, ...]:
        found = []
        for i in range(len(operands[0])):
            args = [x[i] if of_each else x for x, of_each in zip(operands, listed, strict=False)]
            value = {"value": args.pop()} if takes_value and len(args) == 4 else {}
            found.append(function(*args, **options, **value))
        return tuple(found)

    return each


def _elements(op: OpOverload, numbers: Sequence[Any], tensors: Sequence[torch.Tensor]) -> list[Any]:
    """Numbers that may be others in the next step, as values of their tensors' types: what is recorded is then the same. Raises ArgumentError unless
    there is one for each tensor."""
    if len(numbers) != len(tensors):
        raise ArgumentError(f"{op.name()}: takes a number for each of {len(tensors)} tensors, not {len(numbers)}")
    return [
        wrap(constant(x, dtype_of(t.dtype))) if t.dtype in _LIFTED and type(x) is not complex else x for x, t in zip(numbers, tensors, strict=True)
    ]
