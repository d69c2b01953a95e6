"""In-place and ``out`` variants of ATen's ops: their functional ops are found by the schemas, and their kernels made from those."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch._ops import OpOverload, OpOverloadPacket

from hologram.errors import DeviceError
from hologram_torch.eager.recording import templates
from hologram_torch.eager.storage.storages import make, make_strided, meta_of, resize
from hologram_torch.eager.storage.values import PLAIN, TENSORS, operand, result, store


def written(op: OpOverload) -> list[Any]:
    """The arguments that ``op`` writes to."""
    return [a for a in op._schema.arguments if a.alias_info is not None and a.alias_info.is_write]


def packet(name: str) -> OpOverloadPacket | None:
    return getattr(torch.ops.aten, name, None)


def overloads(name: str) -> Iterator[OpOverload]:
    """All ops of the name ``aten::name``."""
    found = packet(name)
    if found is not None:
        for overload in found.overloads():
            yield getattr(found, overload)


def _signature(arguments: list[Any]) -> list[tuple[str, str]]:
    return [(a.name, str(a.type)) for a in arguments]


def functional_of(op: OpOverload) -> OpOverload | None:
    """The op without side effects that computes what ``op`` writes; None where there is none, or where ``op`` writes nothing."""
    writes, arguments, name = written(op), list(op._schema.arguments), op._schema.name.partition("::")[2]
    if not writes:
        return None
    if all(a.kwarg_only for a in writes):
        kept = [a for a in arguments if a not in writes]
    elif name.endswith("_") and writes == arguments[:1]:
        name, kept = name[:-1], arguments
    else:
        return None
    wanted = _signature(kept)
    return next((f for f in overloads(name) if not f._schema.is_mutable and _signature(list(f._schema.arguments)) == wanted), None)


def variants_of(op: OpOverload) -> Iterator[OpOverload]:
    """The in-place and ``out`` variants of a functional op."""
    name = op._schema.name.partition("::")[2]
    for candidate in (*overloads(name + "_"), *overloads(name)):
        if candidate._schema.is_mutable and functional_of(candidate) is op:
            yield candidate


def kernel(op: OpOverload, function: Callable[..., Any], typed: bool = False) -> Callable[..., Any]:
    """The kernel of ``op`` from the table's function of its functional op.

    ``typed``: the function of an ``out`` variant takes the ``dtype`` of its result.
    """
    writes = written(op)
    if not writes:
        return _pointwise(op, function) if torch.Tag.pointwise in op.tags else _functional(op, function)
    if writes[0].kwarg_only:
        return _out(op, function, [a.name for a in writes], typed)
    if writes[0] != op._schema.arguments[0]:  # statistics beside a result: the function has written them
        return _functional(op, function)
    return _in_place(op, function)


def applied(op: OpOverload, function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Calls the table's function. Raises DeviceError, which names ``op``, for tensors that are elsewhere."""
    try:
        operands = [operand(x) for x in args]
        named = {name: operand(x) for name, x in options.items()} if options else options
    except DeviceError as e:
        raise DeviceError(f"{op.name()}: {e}") from None
    return templates.apply(function, operands, named)


def _functional(op: OpOverload, function: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any, **options: Any) -> Any:
        return result(applied(op, function, args, options))

    return run


def _pointwise(op: OpOverload, function: Callable[..., Any]) -> Callable[..., Any]:
    """As :func:`_functional`, with torch's strides where operands are not in C order."""

    def run(*args: Any, **options: Any) -> torch.Tensor:
        found = applied(op, function, args, options)
        for x in args:
            if type(x) not in PLAIN and (type(x) in TENSORS or isinstance(x, torch.Tensor)) and not x.is_contiguous():
                break
        else:
            return make(found)
        stride = op(*[meta_of(x) if isinstance(x, torch.Tensor) else x for x in args], **options).stride()
        return make_strided(found, stride)

    return run


def _in_place(op: OpOverload, function: Callable[..., Any]) -> Callable[..., Any]:
    def run(target: torch.Tensor, *args: Any, **options: Any) -> torch.Tensor:
        found = applied(op, function, (target, *args), options)
        store(op, target, found)
        return target

    return run


def _out(op: OpOverload, function: Callable[..., Any], names: list[str], typed: bool) -> Callable[..., Any]:
    def run(*args: Any, **options: Any) -> Any:
        targets = [options.pop(name) for name in names]
        if typed:
            options["dtype"] = targets[0].dtype
        found = applied(op, function, args, options)
        for target, value in zip(targets, found if type(found) in (tuple, list) else [found], strict=True):
            if target.shape != value.shape and not target.numel():
                resize(target, value.shape)
            store(op, target, value)
        return targets[0] if len(targets) == 1 else tuple(targets)

    return run
