"""Ops on lists of tensors (``_foreach_*``), which torch's optimisers use: the op on one tensor that each stands for, and its arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch._ops import OpOverload, OpOverloadPacket

aten = torch.ops.aten
_PREFIX = "_foreach_"
TENSORS, NUMBERS = "List[Tensor]", "List[number]"  # types of arguments that have an item for each tensor
_KEYWORDS = {"addcmul": {3: "value"}, "addcdiv": {3: "value"}, "norm": {2: "dtype"}}  # arguments that the op on one tensor takes by name
_NAMES = {"norm": ("linalg_vector_norm",)}
_WITH_NUMBER = {"maximum": ("clamp_min", "maximum"), "minimum": ("clamp_max", "minimum")}  # torch's own bounds are tensors alone


class ListOp(NamedTuple):
    """An op on lists as an op on each tensor.

    ``packets``: the ops on one tensor, of which the first that has an overload for the arguments serves. ``listed``: which positional arguments have
    an item for each tensor; the others are the same for all. ``keywords``: the positions of arguments that the op on one tensor takes by name.
    """

    op: OpOverload
    packets: tuple[OpOverloadPacket, ...]
    listed: tuple[bool, ...]
    keywords: dict[int, str]

    def on_each(self, function: Callable[..., Any]) -> Callable[..., list[Any]]:
        """Returns the function of lists that calls ``function`` with the i-th item of each list, for every i."""
        count = max(len(self.listed) - len(self.keywords), 0)

        def run(*args: Any, **options: Any) -> list[Any]:
            found = []
            for i in range(max(len(x) for x, of_each in zip(args, self.listed, strict=False) if of_each)):
                own = [x[i] if of_each else x for x, of_each in zip(args, self.listed, strict=False)]
                named = {name: own[at] for at, name in self.keywords.items() if at < len(own)}
                found.append(function(*own[:count], **named, **options))
            return found

        return run


def list_ops() -> Iterator[ListOp]:
    """The functional and the in-place ops on lists with at most one result, but for those that take the numbers of all tensors in one tensor."""
    for schema in torch._C._jit_get_all_schemas():
        namespace, _, name = schema.name.partition("::")
        if namespace != "aten" or not name.startswith(_PREFIX) or len(schema.returns) > 1:
            continue
        if any(a.name == "out" or (a.name == "scalars" and str(a.type) == "Tensor") for a in schema.arguments):
            continue
        found = _list_op(getattr(getattr(aten, name), schema.overload_name or "default"))
        if found.packets:
            yield found


def _list_op(op: OpOverload) -> ListOp:
    name = op._schema.name.partition(_PREFIX)[2].removesuffix("_")
    names = _WITH_NUMBER.get(name) if op._schema.overload_name != "List" else None
    packets = [getattr(aten, n, None) for n in names or _NAMES.get(name, (name,))]
    listed = tuple([str(a.type) in (TENSORS, NUMBERS) for a in op._schema.arguments if not a.kwarg_only])
    keywords = {at: keyword for at, keyword in _KEYWORDS.get(name, {}).items() if at < len(listed)}
    return ListOp(op, tuple([p for p in packets if p is not None]), listed, keywords)
