"""What became of a function's program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hologram.trace.call.jit import Jitted, jit
from hologram.trace.call.stages import Explanation
from hologram.trace.checks import as_function


def explain(f: Callable[..., Any]) -> Callable[..., Explanation]:
    """Shows how a function is compiled: called as ``f`` would be, the result tells how ``f`` was reduced, fused, planned and compiled:
    printed, as a page for a browser (``.html(path)``), as data (``.data()``, ``.json(path)``).

    Raises ArgumentError for what is no function.

    >>> def double(x):
    ...     return x + x
    >>> report = hg.explain(double)(hnp.ones(3))
    >>> [line for line in str(report).splitlines() if line.startswith("---")]
    ['--- traced ---', '--- canonical ---', '--- kernels ---', '--- reduction ---', '--- memory ---', '--- cost ---']
    """
    jitted = f if isinstance(f, Jitted) else jit(as_function(f, "explain"))
    return lambda *args, **options: Explanation(jitted.lower(*args, **options))
