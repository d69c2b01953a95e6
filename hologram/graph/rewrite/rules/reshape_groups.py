"""Axis groups of reshapes: which axes a reshape merges and splits, for the rules that move reshapes."""

from __future__ import annotations

from typing import TypeVar

from hologram.ir.op import Shape
from hologram.ir.symbolic import Expr, Int, mod

T = TypeVar("T")
Group = tuple[tuple[int, ...], tuple[int, ...]]


def groups(old: Shape, new: Shape) -> list[Group] | None:
    """``old`` and ``new`` cut, from the left, into the smallest runs of axes with equal numbers of elements: ``(old axes, new axes)``.

    An axis of extent 1 that has no partner of extent 1 is a run by itself, with nothing on the other side. None where symbols leave open
    how the runs match, and for arrays without elements.
    """
    if 0 in old or 0 in new:
        return None
    out: list[Group] = []
    i = j = 0
    while i < len(old) or j < len(new):
        a: Int | None = old[i] if i < len(old) else None
        b: Int | None = new[j] if j < len(new) else None
        if a == 1 and b != 1:
            out.append(((i,), ()))
            i += 1
        elif b == 1 and a != 1:
            out.append(((), (j,)))
            j += 1
        else:
            ends = _run(old, new, i, j)
            if ends is None:
                return None
            out.append((tuple(range(i, ends[0])), tuple(range(j, ends[1]))))
            i, j = ends
    return out


def _run(old: Shape, new: Shape, i: int, j: int) -> tuple[int, int] | None:
    """Ends of the smallest run that starts at axes ``i`` and ``j``."""
    if i == len(old) or j == len(new):
        return None
    a, b = old[i], new[j]
    i, j = i + 1, j + 1
    while a != b:
        lags = _lags(a, b)
        if lags is None or (i == len(old) if lags else j == len(new)):
            return None
        if lags:
            a, i = a * old[i], i + 1
        else:
            b, j = b * new[j], j + 1
    return i, j


def _lags(a: Int, b: Int) -> bool | None:
    """Whether ``a`` has to grow to meet ``b`` (else ``b`` has to); None where symbols leave that open."""
    if not isinstance(a, Expr) and not isinstance(b, Expr):
        return a < b
    if mod(b, a) == 0:
        return True
    return False if mod(a, b) == 0 else None


def taken(xs: tuple[T, ...], axes: tuple[int, ...]) -> tuple[T, ...]:
    """The elements of ``xs`` at ``axes``."""
    return tuple(xs[a] for a in axes)


def rest(ndim: int, axes: tuple[int, ...]) -> tuple[int, ...]:
    """The axes that are not in ``axes``."""
    return tuple(i for i in range(ndim) if i not in axes)
