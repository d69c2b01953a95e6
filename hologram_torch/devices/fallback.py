"""What becomes of an op that has no kernel of its own: the host runs it, torch decomposes it into others, or it is refused by name."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache
from typing import Any

from torch._decomp import decomposition_table
from torch._ops import OpOverload

from hologram.errors import UnsupportedError
from hologram_torch.devices import host, variants

_active = threading.local()


def _unsupported(op: OpOverload) -> UnsupportedError:
    return UnsupportedError(f"{op.name()} is not supported on device='hologram': move its arguments with .cpu()")


def run(op: OpOverload, *args: Any, **options: Any) -> Any:
    """``op`` without a kernel of its own. Raises UnsupportedError where there is no way."""
    return _way_of(op)(*args, **options)


@cache
def _way_of(op: OpOverload) -> Callable[..., Any]:
    if host.needs_host(op):
        return lambda *args, **options: host.run_on_host(op, *args, **options)
    functional = variants.functional_of(op)  # first: decompositions of ops that write may be in terms of themselves
    if functional is not None and functional in decomposition_table:
        return _written(op, _decomposition(op, functional))
    if op in decomposition_table:
        return _decomposition(op, op)
    raise _unsupported(op)


def _decomposition(op: OpOverload, of: OpOverload) -> Callable[..., Any]:
    """Torch's decomposition of ``of``, which is ``op`` or its functional form. Raises UnsupportedError where it is in terms of ``of`` itself, or
    gives up."""
    function = decomposition_table[of]

    def guarded(*args: Any, **options: Any) -> Any:
        running = _active.__dict__.setdefault("ops", [])
        if of in running:
            raise _unsupported(op)
        running.append(of)
        try:
            found = function(*args, **options)
        finally:
            running.pop()
        if found is NotImplemented:
            raise _unsupported(op)
        return found

    return guarded


def _written(op: OpOverload, function: Callable[..., Any]) -> Callable[..., Any]:
    """``op``, which writes what ``function`` computes, of torch's tensors."""
    names = [a.name for a in variants.written(op)]

    def run(*args: Any, **options: Any) -> Any:
        targets = [options.pop(name) if name in options else args[0] for name in names]
        found = function(*args, **options)
        for target, new in zip(targets, found if isinstance(found, (tuple, list)) else [found], strict=True):
            if target.shape != new.shape and not target.numel():
                target.resize_(new.shape)
            target.copy_(new)
        return targets[0] if len(targets) == 1 else tuple(targets)

    return run
