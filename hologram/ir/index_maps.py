"""Index propagation: which elements of its inputs an element of an op's result is made of.

An element is named by a tuple of integer expressions, one an axis. ``guard`` is a tuple of ``(expression, size)``: the element is
wanted only where ``0 <= expression < size`` for all of them (beyond the edge of a ``pad``, or in another piece of a
``concatenate``, nothing may be read). What the bounds of an expression decide is no guard.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

from hologram.ir.node import Node
from hologram.ir.op import Shape
from hologram.ir.symbolic import Int, bounds, floordiv, is_static, mod, recombine, var

Index: TypeAlias = tuple[Int, ...]
Guard: TypeAlias = tuple[tuple[Int, Int], ...]
InputElement: TypeAlias = tuple[Node, Index, Guard]


@lru_cache(4096)
def variables(shape: Shape) -> Index:
    """One variable an axis, named by its number; an axis of extent 1 is always at 0."""
    return tuple(0 if n == 1 else var(f"d{i}", 0, n - 1 if isinstance(n, int) else None) for i, n in enumerate(shape))


def linear(index: Index, shape: Shape) -> Int:
    """The position of an element in C order."""
    at: Int = 0
    for i, n in zip(index, shape, strict=True):
        at = recombine(at, n, i)
    return at


def delinear(at: Int, shape: Shape) -> list[Int]:
    """The element that stands at a position in C order. The outermost axis that is not of extent 1 has no remainder taken of it."""
    outermost = next((k for k, n in enumerate(shape) if n != 1), None)
    out: list[Int] = [0] * len(shape)
    for k in reversed(range(len(shape))):
        if k == outermost:
            out[k] = at
            break
        if shape[k] != 1:
            out[k] = mod(at, shape[k])
            at = floordiv(at, shape[k])
    return out


def reshape_index(index: Index, to: Shape, of: Shape) -> Index:
    """The element of an array of shape ``of`` that stands at ``index`` once reshaped ``to``. Axes are matched in groups of equal size."""
    out: list[Int] = []
    i = j = 0
    while i < len(to) or j < len(of):
        i0, j0 = i, j
        a: Int = 1
        b: Int = 1
        if i < len(to):
            a, i = to[i], i + 1
        if j < len(of):
            b, j = of[j], j + 1
        while a != b:
            if i < len(to) and (j >= len(of) or _smaller(a, b)):
                a, i = a * to[i], i + 1
            elif j < len(of):
                b, j = b * of[j], j + 1
            else:
                raise AssertionError((to, of))
        while i < len(to) and to[i] == 1:
            i += 1
        while j < len(of) and of[j] == 1:
            j += 1
        if to[i0:i] == of[j0:j]:
            out += index[i0:i]
        else:
            out += delinear(linear(index[i0:i], to[i0:i]), of[j0:j])
    return tuple(out)


def _smaller(a: Int, b: Int) -> bool:
    if isinstance(a, int) and isinstance(b, int):
        return a < b
    if isinstance(a, int) or isinstance(b, int):
        return isinstance(a, int)
    return sum(map(len, a.terms)) < sum(map(len, b.terms))


def _through_slice(node: Node, index: Index) -> Index:
    start, _, step = node.attrs
    return tuple(a + i * s for a, i, s in zip(start, index, step, strict=True))


def _through_transpose(node: Node, index: Index) -> Index:
    (perm,) = node.attrs
    out: list[Int] = [0] * len(perm)
    for i, p in enumerate(perm):
        out[p] = index[i]
    return tuple(out)


def _through_broadcast(node: Node, index: Index) -> Index:
    shape, dims = node.attrs
    return tuple(0 if n == 1 else index[d] for n, d in zip(node.inputs[0].shape, dims, strict=True))


def _certainly_inside(e: Int, size: Int) -> bool | None:
    """Whether ``0 <= e < size``; None where the bounds of ``e`` leave that open."""
    low, high = bounds(e)
    least, most = bounds(e - size)
    if (high is not None and high < 0) or (least is not None and least >= 0):
        return False
    return True if low is not None and low >= 0 and most is not None and most < 0 else None


def is_certainly_inside(e: Int, size: Int) -> bool:
    """Whether ``0 <= e < size`` for all values of the variables."""
    return bool(_certainly_inside(e, size))


def _propagate_through_pad(node: Node, index: Index, guard: Guard) -> list[InputElement]:
    """The array's element, the fill, or both."""
    x, fill = node.inputs
    low, high = node.attrs
    at = tuple(i - a for i, a in zip(index, low, strict=True))
    checks = [(i, n) for i, n, a, b in zip(at, x.shape, low, high, strict=True) if a != 0 or b != 0]
    known = [_certainly_inside(*c) for c in checks]
    if False in known:
        return [(fill, (), guard)]
    open_ = tuple(c for c, k in zip(checks, known, strict=True) if k is None)
    return [(x, at, guard + open_), (fill, (), guard)] if open_ else [(x, at, guard)]


def _propagate_through_concatenate(node: Node, index: Index, guard: Guard) -> list[InputElement]:
    """The element of each input of a ``concatenate`` that may stand at ``index``."""
    (axis,) = node.attrs
    sizes = tuple(x.shape[axis] for x in node.inputs)
    offsets = _offsets(sizes)
    low, high = bounds(index[axis])
    first, last = 0, len(sizes)
    if low is not None and high is not None and all(map(is_static, (*offsets, node.shape[axis]))):
        first, last = bisect_right(offsets, low) - 1, bisect_right(offsets, high)  # type: ignore[type-var]
    out: list[InputElement] = []
    for i in range(max(first, 0), last):
        at = index[axis] - offsets[i]
        inside = _certainly_inside(at, sizes[i])
        where = (*index[:axis], at, *index[axis + 1 :])
        if inside:
            return [(node.inputs[i], where, guard)]
        if inside is None:
            out.append((node.inputs[i], where, (*guard, (at, sizes[i]))))
    return out or [(node.inputs[0], index, (*guard, (index[axis], sizes[0])))]  # nowhere: where a guard of the reader's does not hold


@lru_cache(256)
def _offsets(sizes: tuple[Int, ...]) -> list[Int]:
    """Where the pieces of a concatenation begin."""
    return list(itertools.accumulate(sizes[:-1], initial=0))


def _through_windows(node: Node, index: Index) -> Index:
    sizes, steps, dilations = node.attrs
    rank = len(sizes)
    lead = len(index) - 2 * rank
    windows = zip(index[lead : lead + rank], index[lead + rank :], steps, dilations, strict=True)
    return (*index[:lead], *[q * s + k * d for k, q, s, d in windows])


_SIMPLE: dict[str, Callable[[Node, Index], Index]] = {
    "reshape": lambda n, i: reshape_index(i, n.shape, n.inputs[0].shape),
    "transpose": _through_transpose,
    "broadcast": _through_broadcast,
    "slice": _through_slice,
    "windows": _through_windows,
}


def is_simple(node: Node) -> bool:
    """Whether the node is a movement each of whose elements is one of its input's, without guards."""
    return node.op.name in _SIMPLE


def propagate_index(node: Node, index: Index, guard: Guard) -> list[InputElement]:
    """The elements that element ``index`` of an elementwise or movement node is made of."""
    kind = node.op.kind
    if kind == "elementwise":
        return [(x, index if x.shape else (), guard) for x in node.inputs]
    simple = _SIMPLE.get(node.op.name)
    if simple is not None:
        return [(node.inputs[0], simple(node, index), guard)]
    if node.op.name == "pad":
        return _propagate_through_pad(node, index, guard)
    return _propagate_through_concatenate(node, index, guard)


def propagate_through_gather(node: Node, index: Index) -> tuple[Index, Callable[[Index], Index]]:
    """For a ``gather``: where its arrays of starts are read, and from the starts found there the element of ``x``."""
    axes, _, batch = node.attrs
    rank = node.inputs[1].ndim
    offsets = index[rank:]

    def element(starts: Index) -> Index:
        first = dict(zip(axes, starts, strict=True))
        return (*index[:batch], *(w + first.get(batch + k, 0) for k, w in enumerate(offsets)))

    return index[:rank], element
