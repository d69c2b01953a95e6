"""Fallback for ops without a kernel: torch decomposes them, or torch's CPU kernel runs them, or they are refused by name."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch._decomp import decomposition_table
from torch._ops import OpOverload

import hologram as hg
from hologram.errors import UnsupportedError
from hologram_torch import aten as table
from hologram_torch.eager.kernels import host, variants
from hologram_torch.eager.storage import values
from hologram_torch.eager.storage.storages import impl_of, make

_active = threading.local()


def _unsupported(op: OpOverload) -> UnsupportedError:
    return UnsupportedError(f"{op.name()} is not supported on device='hologram': move its arguments with .cpu()")


def run(op: OpOverload, *args: Any, **options: Any) -> Any:
    """Runs ``op``, which has no kernel. Raises UnsupportedError where nothing computes it."""
    return _way_of(op)(*args, **options)


@cache
def _way_of(op: OpOverload) -> Callable[..., Any]:
    if host.needs_host(op):
        return lambda *args, **options: host.run_on_host(op, *args, **options)
    functional = variants.functional_of(op)  # first: decompositions of ops that write may be in terms of themselves
    for of in (functional, op):
        if of in decomposition_table:
            return _factory(op) if _makes_from_numbers(op) else kernel(op, of)
    if op.is_view or not torch._C._dispatch_has_computed_kernel_for_dispatch_key(op.name(), "CPU"):
        raise _unsupported(op)
    return lambda *args, **options: host.run_on_host(op, *args, **options)


def _makes_from_numbers(op: OpOverload) -> bool:
    """Whether all tensors among the arguments are written, as in ``eye.out``."""
    return bool(variants.written(op)) and all(a.kwarg_only and a.name == "out" for a in op._schema.arguments if "Tensor" in str(a.type))


def _factory(op: OpOverload) -> Callable[..., Any]:
    """The kernel of an ``out`` variant from a row, or from torch's decomposition; both have to be told the type of the result."""
    row = _row_of(op)
    return variants.kernel(op, _on_values(decomposition_table[op]) if row is None else row, typed=True)


def _row_of(op: OpOverload) -> Callable[..., Any] | None:
    """The row of the op that makes what ``op`` writes, of the same arguments and options of its own; None where there is none."""
    needed = [a.name for a in op._schema.arguments if a not in variants.written(op)]
    for of in variants.overloads(op._schema.name.partition("::")[2]):
        if not of._schema.is_mutable and [a.name for a in of._schema.arguments if not a.kwarg_only] == needed:
            return table.lookup(of)
    return None


def kernel(op: OpOverload, of: OpOverload) -> Callable[..., Any]:
    """The kernel of ``op`` from torch's decomposition of ``of``, which is ``op`` or its functional form.

    It is recorded from templates, as functions of the table are, unless it writes to arguments without saying so in its schema.
    """
    decomposition = _guarded(of)
    templated: Callable[..., Any] | None = variants.kernel(op, _on_values(decomposition))

    def run(*args: Any, **options: Any) -> Any:
        nonlocal templated
        if templated is not None:
            try:
                return templated(*args, **options)
            except _WritesError:
                templated = None
        return decomposition(*args, **options)

    return run


def _guarded(of: OpOverload) -> Callable[..., Any]:
    """Torch's decomposition of ``of``, or its CPU kernel where the decomposition calls ``of`` again or gives up."""
    function = decomposition_table[of]

    def guarded(*args: Any, **options: Any) -> Any:
        running = _active.__dict__.setdefault("ops", [])
        if of in running:
            return host.run_on_host(of, *args, **options)
        running.append(of)
        try:
            found = function(*args, **options)
        finally:
            running.pop()
        return host.run_on_host(of, *args, **options) if found is NotImplemented else found

    return guarded


class _WritesError(Exception):
    """A decomposition has written to one of its arguments."""


def _on_values(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` of torch's tensors as a function of Tensors. Raises _WritesError where it writes to one."""

    def run(*args: Any, **options: Any) -> Any:
        made: list[tuple[torch.Tensor, hg.Tensor]] = []
        found = function(*[_stand_in(x, made) for x in args], **{name: _stand_in(x, made) for name, x in options.items()})
        if any(impl_of(t).value is not x for t, x in made):
            raise _WritesError
        return tuple(map(_held, found)) if isinstance(found, (tuple, list)) else _held(found)

    return run


def _stand_in(x: Any, made: list[tuple[torch.Tensor, hg.Tensor]]) -> Any:
    """``x`` with a tensor of the device for each Tensor in it; the pairs are added to ``made``."""
    if type(x) is hg.Tensor:
        made.append((make(x), x))
        return made[-1][0]
    return [_stand_in(e, made) for e in x] if type(x) is list else x


def _held(x: Any) -> Any:
    """The Tensor that a result holds; decompositions of ops that take no tensor make theirs on the CPU."""
    if not isinstance(x, torch.Tensor):
        return x
    return values.read(x) if values.is_here(x) else values.upload(x)
