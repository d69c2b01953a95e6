"""The dispatcher's kernels for the device: of each op that the table of ATen's ops has a row of, of its variants, and of ops that are no functions.

They are registered when the device is first used: until then there is a fallback alone, which does that.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch
from torch._C import _dispatch_has_kernel_for_dispatch_key as has_kernel
from torch._ops import OpOverload
from torch.library import Library

Kernels = dict[OpOverload, Callable[..., Any]]
KEY = "PrivateUse1"
_libraries: list[Library] = []  # a kernel lives as long as its library
_lock = threading.Lock()
_complete = False


def register() -> None:
    """Registers the fallback, which registers the rest."""
    _libraries.append(Library("_", "IMPL"))
    _libraries[0].fallback(_fallback, KEY)


def _fallback(op: OpOverload, *args: Any, **options: Any) -> Any:
    from hologram_torch.devices import fallback

    with _lock:
        first = not _complete
        if first:
            _register_kernels()
    return op(*args, **options) if first else fallback.run(op, *args, **options)


def _register_kernels() -> None:
    global _complete
    from hologram_torch.devices import foreach, indexing, linear_algebra, memory, special

    library = Library("aten", "IMPL")
    _libraries.append(library)
    own = {**memory.kernels, **special.kernels, **foreach.kernels(), **indexing.kernels(), **linear_algebra.kernels()}
    for op, function in {**_of_decompositions(), **_of_rows(), **own}.items():
        library.impl(op, function, KEY)
    for op, function in special.recurrent().items():
        for key in (KEY, "Autograd" + KEY):
            library.impl(op, function, key)
    _complete = True


def _of_rows() -> Kernels:
    """Kernels of the ops that have a row, and of their variants."""
    from hologram_torch import aten as table
    from hologram_torch.devices import indexing, variants

    found: Kernels = {}
    for name in table.names():
        packet, _, overload = name.partition("::")[2].partition(".")
        op = getattr(getattr(torch.ops.aten, packet), overload or "default")
        function = table.lookup(op)
        if function is None or not _is_registrable(op):
            continue
        if _takes_device(op):
            found[op] = _factory(function)
        else:
            forms = [op, *filter(_is_registrable, variants.variants_of(op))]
            found |= {form: indexing.checked(form, op, variants.kernel(form, function)) for form in forms}
    return found


def _of_decompositions() -> Kernels:
    """Kernels of the ops that torch decomposes, where it would else allocate a result for their ``out`` variant to write to."""
    from torch._decomp import decomposition_table

    from hologram_torch.devices import fallback, host

    structured = "CompositeExplicitAutogradNonFunctional"
    ops = [op for op in decomposition_table if isinstance(op, OpOverload) and op.namespace == "aten" and has_kernel(op.name(), structured)]
    return {op: fallback.kernel(op, op) for op in ops if _is_registrable(op) and not op._schema.is_mutable and not host.needs_host(op)}


def _takes_device(op: OpOverload) -> bool:
    return any(a.name == "device" for a in op._schema.arguments)


def _is_registrable(op: OpOverload) -> bool:
    """Whether a kernel of a row may stand for ``op``: not where autograd needs torch's own definition in other ops, nor for views, nor where the
    result's device is an argument beside a tensor's."""
    if has_kernel(op.name(), "CompositeImplicitAutograd") or op.is_view:
        return False
    return not (_takes_device(op) and any("Tensor" in str(a.type) for a in op._schema.arguments))


def _factory(function: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel of an op that makes a tensor from numbers; where it is to be made is known by its being called."""
    from hologram_torch.devices.storage import make

    def run(*args: Any, device: Any = None, layout: Any = None, pin_memory: Any = None, **options: Any) -> torch.Tensor:
        return make(function(*args, **options))

    return run
