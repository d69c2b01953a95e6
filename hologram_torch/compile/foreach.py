"""Torch's ops on lists of tensors, in which its optimisers are written, as one op for each tensor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch._ops import OpOverload

aten = torch.ops.aten
_PREFIX = "_foreach_"
_VALUES = ("addcmul", "addcdiv")  # whose factor is an option of the op on one tensor
_BOUNDS = {"maximum": aten.clamp_min, "minimum": aten.clamp_max}  # the names with a number for the second tensor
_PER_TENSOR = ("Tensor[]", "List[Tensor]", "Scalar[]", "List[number]")


def foreach_decompositions() -> dict[OpOverload, Callable[..., Any]]:
    """From each op on lists that gives new tensors to the function that writes it as ops on tensors."""
    found: dict[OpOverload, Callable[..., Any]] = {}
    for op in _functional_ops():
        single = _single(op)
        if single is not None:
            found[op] = _each(op, single)
    return found


def _functional_ops() -> Iterator[OpOverload]:
    for schema in torch._C._jit_get_all_schemas():
        namespace, _, name = schema.name.partition("::")
        if namespace == "aten" and name.startswith(_PREFIX) and not schema.is_mutable and len(schema.returns) == 1:
            yield getattr(getattr(aten, name), schema.overload_name or "default")


def _single(op: OpOverload) -> Callable[..., Any] | None:
    """The op on one tensor; None where there is none, and for ops that take the numbers of all tensors in one."""
    name = op._schema.name.partition(_PREFIX)[2]
    if any(a.name == "scalars" and str(a.type) == "Tensor" for a in op._schema.arguments):
        return None
    if name in _VALUES:
        packet = getattr(aten, name)
        return lambda x, a, b, value=1: packet(x, a, b, value=value)
    if name in _BOUNDS and op._overloadname != "List":
        return _BOUNDS[name]
    if name == "norm":
        return lambda x, order=2, dtype=None: aten.linalg_vector_norm(x, order, dtype=dtype)
    return getattr(aten, name, None)


def _each(op: OpOverload, single: Callable[..., Any]) -> Callable[..., Any]:
    """``single`` for each tensor of the lists, which belong together by place; other arguments are the same for all."""
    listed = [str(a.type) in _PER_TENSOR for a in op._schema.arguments]

    def run(*args: Any, **options: Any) -> list[Any]:
        count = max(len(x) for x, of_each in zip(args, listed, strict=False) if of_each)
        return [single(*[x[i] if of_each else x for x, of_each in zip(args, listed, strict=False)], **options) for i in range(count)]

    return run
