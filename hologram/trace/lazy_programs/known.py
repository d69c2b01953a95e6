"""Expressions that come again are handed to native code, which then realises them without Python: see :mod:`hologram.backends.native.expressions`.

Handed over are expressions whose numbers the program has by value, for the CPU. Native code finds out who holds the memory of arguments as
:mod:`hologram.trace.lazy_programs.donation` does.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from hologram.trace.lazy_programs.donation import MAX_NODES, MIN_DONATED_BYTES
from hologram.trace.lazy_programs.structure import KNOWN_TO_RULES, MAX_SCALARS, operands
from hologram.trace.native_operators import make_native
from hologram.trace.recorder import Pending

RUNS = 4  # of a program by Python before its expression is handed over, and again where native code did not find it


_realise: Callable[..., bool] | None = None  # of native code, once it has been told of an expression


@functools.cache
def _known_expressions() -> Any:
    """What native code knows; None where there is no native code. It needs LLVM, so it is imported when a program has run."""
    from hologram.backends.native import expressions

    found = expressions.known_expressions(Pending, operands, KNOWN_TO_RULES, MAX_SCALARS)
    if found is not None:
        make_native()
    return found


def realise_known(tensors: Sequence[Any]) -> bool:
    """Realises Tensors whose expression native code knows; whether it did. Raises MemoryError. Its caller holds the lock of nodes that settle."""
    return _realise is not None and _realise(*tensors)


def hand_over(walk: Any, asked: int, executable: Any) -> bool:
    """Counts a run of ``executable``, which computes all of ``walk`` by value, and hands the expression over when it is time. The first ``asked``
    nodes are wanted; none has settled.

    Whether native code may run it at once, though ``walk`` refers to the memory of arguments.
    """
    global _realise
    if getattr(executable, "address", None) is None:
        return False
    executable.lazy_runs += 1
    if executable.lazy_runs < RUNS:
        return False
    executable.lazy_runs = 0
    known = _known_expressions()
    storages = walk.storages
    donors = [
        (i, d)
        for i, of, numbers in executable.reusable
        for d in numbers
        if of.nbytes >= MIN_DONATED_BYTES and d < len(storages) and storages[d].aval is of and len(walk.order) <= MAX_NODES
    ]
    if known is None or not known.add(walk.order, asked, walk.roots, executable, donors):
        return False
    _realise = known.realise
    return not donors


def clear() -> None:
    """Native code forgets all expressions."""
    if _realise is not None:
        _known_expressions().clear()
