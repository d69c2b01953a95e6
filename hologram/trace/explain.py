"""What became of a function's program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hologram.trace.checks import as_function
from hologram.trace.jit import Jitted, jit
from hologram.trace.stages import Explanation


def explain(f: Callable[..., Any]) -> Callable[..., Explanation]:
    """The function that, called as ``f`` would be, tells how ``f`` was reduced, fused, planned and compiled."""
    jitted = f if isinstance(f, Jitted) else jit(as_function(f, "explain"))
    return lambda *args, **options: Explanation(jitted.lower(*args, **options))
