"""Symbolic extents as a traced function sees them: they count, but a comparison that depends on their value cannot be answered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from hologram.errors import TracedValueError
from hologram.symbolic import Expr, Int, bounds
from hologram.trace.recorder import located


class Extent(Expr):
    """An extent of a Tensor traced with ``dynamic``. Arithmetic gives Extents; comparing with a size that it may have is a TracedValueError."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, int) and not isinstance(other, bool):
            if _possible(self, other):
                _refuse(self, "==", other)
            return False
        return isinstance(other, Expr) and self.terms == other.terms

    __hash__ = Expr.__hash__

    def __lt__(self, other: Any) -> bool:
        return _ordered(self, "<", other)

    def __le__(self, other: Any) -> bool:
        return _ordered(self, "<=", other)

    def __gt__(self, other: Any) -> bool:
        return _ordered(self, ">", other)

    def __ge__(self, other: Any) -> bool:
        return _ordered(self, ">=", other)


def extent(n: Int) -> Int:
    """``n``, as an Extent where it is symbolic."""
    return Extent(n.terms) if isinstance(n, Expr) else n


def _arithmetic(name: str) -> Callable[[Any, Any], Int]:
    plain = getattr(Expr, name)
    return lambda self, other: extent(plain(self, other))


for _name in ("__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__floordiv__", "__mod__"):
    setattr(Extent, _name, _arithmetic(_name))


def _possible(n: Expr, size: int) -> bool:
    low, high = bounds(n)
    return (low is None or low <= size) and (high is None or size <= high)


def _ordered(n: Extent, sign: str, other: Any) -> bool:
    """The comparison where bounds decide it."""
    low, high = bounds(n - other)
    decided = {
        "<": (high is not None and high < 0, low is not None and low >= 0),
        "<=": (high is not None and high <= 0, low is not None and low > 0),
        ">": (low is not None and low > 0, high is not None and high <= 0),
        ">=": (low is not None and low >= 0, high is not None and high < 0),
    }[sign]
    if not any(decided):
        _refuse(n, sign, other)
    return decided[0]


def _refuse(n: Extent, sign: str, other: Any) -> NoReturn:
    advice = "one program serves all its sizes; leave the axis out of dynamic to branch on it"
    raise located(TracedValueError(f"{n} {sign} {other}: the extent {n} is symbolic, and {advice}"))
