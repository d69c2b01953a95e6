"""Which public functions are ufuncs, and what is known of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hologram.numpy.elementwise.functions import FUNCTIONS
from hologram.numpy.ufuncs.ufunc import ufunc

# Beside the functions of the op table; ``arccos`` and the like stand there under both of their names.
_COMPOSED = frozenset(
    """
    bitwise_count conj deg2rad degrees divmod fabs float_power fmax fmin frexp gcd lcm ldexp logaddexp logaddexp2 logical_and logical_not logical_or
    logical_xor modf positive power rad2deg radians spacing
""".split()
)
_RESULTS = {"divmod": 2, "frexp": 2, "modf": 2}
_IDENTITIES: dict[str, Any] = {
    "add": 0, "multiply": 1, "bitwise_and": -1, "bitwise_or": 0, "bitwise_xor": 0, "logical_and": True, "logical_or": False, "logical_xor": False,
    "gcd": 0, "hypot": 0, "logaddexp": float("-inf"), "logaddexp2": float("-inf"),
}  # fmt: skip
_REORDERABLE = ("maximum", "minimum", "fmax", "fmin")  # those without identity


def ufuncs(names: dict[str, Any]) -> dict[str, ufunc]:
    """The ufunc of each public name whose function is elementwise; names of one function share it."""
    elementwise = {id(f) for f in FUNCTIONS.values()} | {id(names[name]) for name in _COMPOSED}
    made: dict[int, ufunc] = {}
    for f in names.values():
        if id(f) in elementwise and id(f) not in made:
            made[id(f)] = _ufunc(f)
    return {name: made[id(f)] for name, f in names.items() if id(f) in made}


def _ufunc(function: Callable[..., Any]) -> ufunc:
    name = function.__name__
    return ufunc(function, _RESULTS.get(name, 1), _IDENTITIES.get(name), name in _REORDERABLE)
