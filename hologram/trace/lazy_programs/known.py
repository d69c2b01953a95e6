"""Expressions that come again and again are handed to native code, which then realises them without Python (:mod:`hologram.backends.native.expressions`).

Handed over are expressions of one Tensor, whose numbers the program has by value, for the CPU. Those whose result may take the memory of an argument stay
with Python, which finds out who holds that, where the result is worth it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from hologram.trace.lazy_donation import MIN_DONATED_BYTES
from hologram.trace.lazy_programs.structure import operands
from hologram.trace.recorder import Pending

RUNS = 4  # of a program by Python before its expression is handed over, and again where native code did not find it


_realise: Callable[[Any], bool] | None = None  # of native code, once it has been told of an expression


@functools.cache
def _known_expressions() -> Any:
    """What native code knows; None where there is no native code. It needs LLVM, so it is imported when a program has run."""
    from hologram.backends.native import expressions

    return expressions.known_expressions(Pending, operands)


def realise_known(t: Any) -> bool:
    """Realises a Tensor whose expression native code knows; whether it did. The caller holds the lock under which nodes settle. Raises MemoryError, and
    what a program raises."""
    return _realise is not None and _realise(t)


def hand_over(walk: Any, executable: Any) -> None:
    """Counts a run of ``executable``, which computes all of ``walk`` by value, and hands the expression over when it is time. No node has settled."""
    global _realise
    if getattr(executable, "address", None) is None:
        return
    executable.lazy_runs += 1
    if executable.lazy_runs < RUNS:
        return
    executable.lazy_runs = 0
    known = _known_expressions()
    if known is None or any(of.nbytes >= MIN_DONATED_BYTES for _, of, _ in executable.reusable):
        return
    if known.add(walk.order, walk.roots, executable):
        _realise = known.realise


def clear() -> None:
    """Native code forgets all expressions."""
    if _realise is not None:
        _known_expressions().clear()
