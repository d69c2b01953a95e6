"""Host ops: ops that torch's CPU kernels run on computed values instead of being recorded.

By the tags of their schemas these are the ops that draw random numbers, from torch's CPU generator, and those whose results' shapes or existence
depend on values. Ops that nothing else computes (:mod:`fallback`) run here too.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tag
from torch._ops import OpOverload

from hologram.errors import TracedValueError
from hologram.trace import recorder
from hologram_torch.eager.identity import NAME
from hologram_torch.eager.kernels.variants import written
from hologram_torch.eager.storage import values
from hologram_torch.eager.storage.storages import impl_of, make, resize

_TAGS = {Tag.nondeterministic_seeded, Tag.dynamic_output_shape, Tag.data_dependent_output}


def needs_host(op: OpOverload) -> bool:
    """Whether ``op`` cannot be recorded."""
    return not _TAGS.isdisjoint(op.tags)


class _Copies:
    """CPU copies of the device's tensors, one for each; those that are written are copies of their own."""

    def __init__(self) -> None:
        self.of: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def take(self, x: Any, write: bool) -> Any:
        if isinstance(x, torch.Tensor):
            return self._tensor(x, write) if x.device.type == NAME else x
        if type(x) in (list, tuple):
            return [self.take(e, write) for e in x]
        if isinstance(x, torch.device):
            return torch.device("cpu")
        return x

    def _tensor(self, t: torch.Tensor, write: bool) -> torch.Tensor:
        if id(t) not in self.of:
            if impl_of(t).unwritten:
                copy = torch.empty(t.shape, dtype=t.dtype)
            else:
                copy = values.host(t)
            self.of[id(t)] = t, copy.clone() if write else copy
        return self.of[id(t)][1]

    def give(self, x: Any) -> Any:
        """Converts a result of the CPU's op: a copy that was handed in becomes the tensor that it was made of."""
        if isinstance(x, torch.Tensor):
            given = next((t for t, copy in self.of.values() if copy is x), None)
            return make(values.upload(x)) if given is None else given
        if type(x) in (list, tuple):
            return type(x)(self.give(e) for e in x)
        return x


def run_on_host(op: OpOverload, *args: Any, **options: Any) -> Any:
    """Runs ``op`` by torch's CPU kernel on copies, and writes back what ``op`` writes. Raises TracedValueError while a template is made."""
    if recorder.current() is not None:
        raise TracedValueError(f"{op.name()} needs values, which do not exist while a template is made")
    names = {a.name for a in written(op)}
    copies, arguments = _Copies(), op._schema.arguments
    taken = [copies.take(x, a.name in names) for x, a in zip(args, arguments, strict=False)]
    found = op(*taken, **{name: copies.take(x, name in names) for name, x in options.items()})
    for a, x in [*zip(arguments, args, strict=False), *[(a, options.get(a.name)) for a in arguments if a.kwarg_only]]:
        if a.name in names and values.is_here(x):
            _write_back(op, x, copies.of[id(x)][1])
    return copies.give(found)


def _write_back(op: OpOverload, t: torch.Tensor, copy: torch.Tensor) -> None:
    if t.shape != copy.shape:
        resize(t, copy.shape)
    values.store(op, t, values.upload(copy))
