"""All kernels of the device: of the ops in the table of ATen's ops, of their in-place and ``out`` variants, and of ops that are no functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._C import _dispatch_has_kernel_for_dispatch_key as has_kernel
from torch._decomp import decomposition_table
from torch._ops import OpOverload

from hologram_torch import aten
from hologram_torch.eager.kernels import determinants, fallback, foreach, host, indexing, memory, special, variants
from hologram_torch.eager.storage.storages import make

Kernels = dict[OpOverload, Callable[..., Any]]


def kernels() -> Kernels:
    """The kernels below autograd."""
    own = {**memory.kernels, **special.kernels, **foreach.kernels(), **indexing.kernels(), **determinants.kernels()}
    return {**_of_decompositions(), **_of_rows(), **own}


def differentiable() -> Kernels:
    """The kernels whose ops autograd differentiates: recurrent layers."""
    return special.recurrent()


def _of_rows() -> Kernels:
    """Kernels of the ops that have a row, and of their variants."""
    found: Kernels = {}
    for name in aten.names():
        packet, _, overload = name.partition("::")[2].partition(".")
        op = getattr(getattr(torch.ops.aten, packet), overload or "default")
        function = aten.lookup(op)
        if function is None or not _is_registrable(op):
            continue
        if _takes_device(op):
            found[op] = _factory(function)
        else:
            forms = [op, *filter(_is_registrable, variants.variants_of(op))]
            found |= {form: indexing.checked(form, op, variants.kernel(form, function)) for form in forms}
    return found


def _of_decompositions() -> Kernels:
    """Kernels of the ops that torch decomposes: else torch would allocate a result for their ``out`` variant to write to."""
    structured = "CompositeExplicitAutogradNonFunctional"
    ops = [op for op in decomposition_table if isinstance(op, OpOverload) and op.namespace == "aten" and has_kernel(op.name(), structured)]
    return {op: fallback.kernel(op, op) for op in ops if _is_registrable(op) and not op._schema.is_mutable and not host.needs_host(op)}


def _takes_device(op: OpOverload) -> bool:
    return any(a.name == "device" for a in op._schema.arguments)


def _is_registrable(op: OpOverload) -> bool:
    """Whether a row may be the kernel of ``op``.

    It may not for views, where autograd needs torch's own definition in other ops, and where the device of the result is an argument beside a tensor.
    """
    if has_kernel(op.name(), "CompositeImplicitAutograd") or op.is_view:
        return False
    return not (_takes_device(op) and any("Tensor" in str(a.type) for a in op._schema.arguments))


def _factory(function: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel of an op that makes a tensor from numbers. It is called for this device alone."""

    def run(*args: Any, device: Any = None, layout: Any = None, pin_memory: Any = None, **options: Any) -> torch.Tensor:
        return make(function(*args, **options))

    return run
