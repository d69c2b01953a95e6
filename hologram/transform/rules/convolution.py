"""Derivatives and stacks of windows and convolutions.

A convolution is linear in either factor, and its transposes are convolutions: with respect to ``w`` the cotangent's elements are the window, with
steps and dilations swapped; with respect to ``x`` the window is turned round and slides over the cotangent, put amid zeros. Steps are taken by
phases: elements of ``x`` whose places are equal modulo the step are in windows at the same places. So nothing is multiplied by zeros for steps.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from hologram.ir.node import Node
from hologram.ir.op import TABLE, Shape, transforms
from hologram.ir.symbolic import Int, bounds, floordiv
from hologram.trace.decisions import decided
from hologram.transform.nodes import (
    along,
    apart,
    apply,
    full,
    has_tangents,
    joined,
    moved,
    padded,
    permuted,
    placed,
    reshaped,
    sliced,
    sum_over,
    total,
)

Flags = Sequence[bool]
Integers = tuple[int, ...]


def windowed(x: Node, sizes: Shape, steps: Integers, dilations: Integers) -> Node:
    return apply(TABLE["windows"], x, attrs=(tuple(sizes), tuple(steps), tuple(dilations)))


def convolved(x: Node, w: Node, steps: Integers, dilations: Integers) -> Node:
    return apply(TABLE["convolution"], x, w, attrs=(tuple(steps), tuple(dilations)))


def _amid_zeros(ct: Node, space: Sequence[Int], sizes: Shape, steps: Integers, dilations: Integers, first: Integers) -> Node:
    """A cotangent of windows such that a window turned round, of the same dilations, slides over it once for each element of ``space``, whose
    elements are numbered from ``first``."""
    lead = len(ct.shape) - len(steps)
    counts = ct.shape[lead:]
    for i, step in enumerate(steps):
        ct = apart(ct, lead + i, step)
    low = [0] * lead + [(k - 1) * d - f for k, d, f in zip(sizes, dilations, first, strict=True)]
    high = [0] * lead + [n + f - (q - 1) * s - 1 for n, q, s, f in zip(space, counts, steps, first, strict=True)]
    return _widened(ct, low, high)


def _widened(x: Node, low: Sequence[Int], high: Sequence[Int]) -> Node:
    """``x`` amid zeros; where a width is negative, so much is cut off. Of unknown sign are symbolic widths behind ``x`` alone."""
    start = [-a if isinstance(a, int) and a < 0 else 0 for a in low]
    stop = [n + b if isinstance(b, int) and b < 0 else n for n, b in zip(x.shape, high, strict=True)]
    before = [w if not isinstance(w, int) or w > 0 else 0 for w in low]
    after = [_not_negative(w, n) for w, n in zip(high, x.shape, strict=True)]
    wide = padded(sliced(x, start, stop), before, after)
    return sliced(wide, [0] * len(low), [n + a + b for n, a, b in zip(x.shape, low, high, strict=True)])


def _not_negative(width: Int, extent: Int) -> Int:
    """``width``, 0 if that is negative; where a symbolic one may be either, as much as it is at most. It takes off at most ``extent``."""
    if isinstance(width, int):
        return max(width, 0)
    lowest, highest = bounds(width)
    if lowest is not None and lowest >= 0:
        return width
    whole = width + extent if highest is None else highest
    return whole - min(0, bounds(whole)[0] or 0)


def turned_round(w: Node, rank: int) -> Node:
    """``w`` read backward along its last ``rank`` axes."""
    lead, sizes = w.shape[: len(w.shape) - rank], w.shape[len(w.shape) - rank :]
    zeros, ones = [0] * len(lead), [1] * len(lead)
    return sliced(w, [*zeros, *[n - 1 for n in sizes]], [*lead, *[-1] * rank], [*ones, *[-1] * rank])


def by_input(ct: Node, w: Node, space: Sequence[Int], steps: Integers, dilations: Integers, first: Integers) -> Node:
    """The transpose of a convolution with respect to ``x``: a part of its space, from ``first`` on, of the extents ``space``."""
    rank = len(steps)
    for axis, (step, dilation) in enumerate(zip(steps, dilations, strict=True)):
        if step > 1:
            by = _by_divisor if math.gcd(step, dilation) > 1 else _by_phases
            return by(ct, w, space, steps, dilations, first, axis)
    over = _amid_zeros(ct, space, w.shape[3:], steps, dilations, first)
    return convolved(over, moved(turned_round(w, rank), 2, 1), (1,) * rank, dilations)


def _at_axis(values: Sequence[Any], axis: int, value: Any) -> tuple[Any, ...]:
    return (*values[:axis], value, *values[axis + 1 :])


def _by_divisor(ct: Node, w: Node, space: Sequence[Int], steps: Integers, dilations: Integers, first: Integers, axis: int) -> Node:
    """As :func:`by_input`, where step and dilation have a common divisor along an axis: only its multiples are in windows, all else gets zeros."""
    common, n = math.gcd(steps[axis], dilations[axis]), space[axis]
    low = -first[axis] % common
    extents = _at_axis(space, axis, _count(n, low, common))
    if extents[axis] == 0:
        return full(0, ct.dtype, (*ct.shape[:2], w.shape[2], *space))
    steps, dilations = (_at_axis(values, axis, values[axis] // common) for values in (steps, dilations))
    multiples = by_input(ct, w, extents, steps, dilations, _at_axis(first, axis, (first[axis] + low) // common))
    ones = (1,) * multiples.ndim
    starts = _at_axis((0,) * multiples.ndim, 3 + axis, low)
    return placed(multiples, _at_axis(multiples.shape, 3 + axis, n), starts, _at_axis(ones, 3 + axis, common))


def _count(n: Int, first: int, step: int) -> Int:
    """How many of ``first``, ``first + step``, … are below ``n``."""
    return max(0, -((first - n) // step)) if isinstance(n, int) else floordiv(n + (step - 1 - first), step)


def _by_phases(ct: Node, w: Node, space: Sequence[Int], steps: Integers, dilations: Integers, first: Integers, axis: int) -> Node:
    """As :func:`by_input`, without zeros between the elements of ``ct`` along one axis, whose step and dilation have no common divisor.

    Element ``i`` is a sum over the places ``k`` of windows of which ``k * dilation`` is ``i`` modulo ``step``. They are every ``step``-th from one
    on, the same for all elements of a phase, and so a phase is a convolution with a step of 1. Neighbouring phases of equally many places, which
    read the same elements of ``ct``, are channels of one convolution.
    """
    at, step, dilation, size, n = 3 + axis, steps[axis], dilations[axis], w.shape[3 + axis], space[axis]
    count = _count(n, 0, step)  # of each phase: the last few may lie beyond the space
    extents, inverse = _at_axis(space, axis, count), pow(dilation, -1, step)

    def windows_of(phase: int) -> tuple[int, Int, int]:
        """The number of the first window, how many places there are, and the first place."""
        place = (first[axis] + phase) * inverse % step
        return (first[axis] + phase - place * dilation) // step, _count(size, place, step) if decided(size - 1 - place) else 0, place

    parts = []
    for (window, places), alike in itertools.groupby(map(windows_of, range(step)), lambda found: found[:2]):
        phases = [place for *_, place in alike]
        of = range(phases[0], phases[-1] + 1)
        parts.append(_of_phases(ct, w, extents, _at_axis(steps, axis, 1), dilations, _at_axis(first, axis, window), at, step, of, places))
    together = joined(parts, at + 1) if len(parts) > 1 else parts[0]
    return along(reshaped(together, (*together.shape[:at], count * step, *together.shape[at + 2 :])), at, 0, n)


def _of_phases(
    ct: Node,
    w: Node,
    space: Sequence[Int],
    steps: Integers,
    dilations: Integers,
    first: Integers,
    at: int,
    step: int,
    phases: range,
    places: Int,
) -> Node:
    """The elements of ``phases``, which have so many places in a window, on an axis after ``at``."""
    shape = (*ct.shape[:2], len(phases), w.shape[2], *space)
    if places != 0:
        part = reshaped(by_input(ct, _places_of(w, at, step, phases, places), space, steps, dilations, first), shape)
    else:
        part = full(0, ct.dtype, shape)
    return moved(part, 2, at + 1)


def _places_of(w: Node, axis: int, step: int, phases: range, places: Int) -> Node:
    """Weights (groups, o, phases * c, …) of which ``axis`` holds the places ``phase``, ``phase + step``, … of a phase."""
    n = w.shape[axis]
    missing: list[Int] = [0] * len(w.shape)
    missing[axis] = max(0, places * step - n) if isinstance(n, int) and isinstance(places, int) else step - 1  # at most
    whole = along(padded(w, [0] * len(w.shape), missing), axis, 0, places * step)
    apart_ = reshaped(whole, (*w.shape[:axis], places, step, *w.shape[axis + 1 :]))
    turned = moved(along(apart_, axis + 1, phases.start, phases.stop), axis + 1, 2)
    return reshaped(turned, (*w.shape[:2], len(phases) * w.shape[2], *w.shape[3:axis], places, *w.shape[axis + 1 :]))


def _by_weights(ct: Node, x: Node, sizes: Shape, steps: Integers, dilations: Integers) -> Node:
    """The transpose of a convolution with respect to ``w``. What no window reaches is cut off first."""
    rank = len(steps)
    reach = [(q - 1) * s + (k - 1) * d + 1 for q, k, s, d in zip(ct.shape[3:], sizes, steps, dilations, strict=True)]
    seen = sliced(x, [0] * (3 + rank), [*x.shape[:3], *reach])
    return moved(convolved(moved(seen, 2, 1), moved(ct, 2, 1), dilations, steps), 2, 1)


def _convolution_jvp(tangents: Sequence[Node | None], out: Node, x: Node, w: Node, steps: Integers, dilations: Integers) -> Node:
    dx, dw = tangents
    by_x = None if dx is None else convolved(dx, w, steps, dilations)
    by_w = None if dw is None else convolved(x, dw, steps, dilations)
    tangent = total([by_x, by_w])
    assert tangent is not None
    return tangent


def _convolution_transpose(ct: Node, linear: Flags, x: Node, w: Node, steps: Integers, dilations: Integers) -> tuple[Node | None, Node | None]:
    return (
        by_input(ct, w, x.shape[3:], steps, dilations, (0,) * len(steps)) if linear[0] else None,
        _by_weights(ct, x, w.shape[3:], steps, dilations) if linear[1] else None,
    )


def _merged(x: Node, axis: int) -> Node:
    """The stack's axis, which comes first, as the outer part of ``axis`` of one example."""
    x = moved(x, 0, axis)
    return reshaped(x, (*x.shape[:axis], x.shape[axis] * x.shape[axis + 1], *x.shape[axis + 2 :]))


def _unmerged(x: Node, axis: int, size: Int, extent: Int) -> Node:
    return moved(reshaped(x, (*x.shape[:axis], size, extent, *x.shape[axis + 1 :])), axis, 0)


def _convolution_batch(size: Int, batched: Flags, x: Node, w: Node, steps: Integers, dilations: Integers) -> Node:
    """Stacks of one factor lie beside its rows, those of both are groups."""
    if batched[0] and batched[1]:
        groups = x.shape[1]
        return _unmerged(convolved(_merged(x, 0), _merged(w, 0), steps, dilations), 0, size, groups)
    if batched[0]:
        return _unmerged(convolved(_merged(x, 1), w, steps, dilations), 1, size, x.shape[2])
    return _unmerged(convolved(x, _merged(w, 1), steps, dilations), 2, size, w.shape[2])


def _windows_transpose(ct: Node, linear: Flags, x: Node, sizes: Shape, steps: Integers, dilations: Integers) -> tuple[Node]:
    """Each element gets the sum over the windows' places: of place k the window that has the element there.

    Windows of the same sizes slide over the cotangent amid zeros; wanted are the pairs (k, size - 1 - k) of places before and places now, which are
    every (size - 1)-th of all pairs.
    """
    rank = len(sizes)
    lead = len(x.shape) - rank
    over = windowed(_amid_zeros(ct, x.shape[lead:], sizes, steps, dilations, (0,) * rank), sizes, (1,) * rank, dilations)
    order = [*range(lead), *[a for i in range(rank) for a in (lead + i, lead + rank + i)], *range(lead + 2 * rank, len(over.shape))]
    pairs = reshaped(permuted(over, order), (*x.shape[:lead], *[k * k for k in sizes], *x.shape[lead:]))
    for i, k in enumerate(sizes):
        assert isinstance(k, int)
        if k > 1:
            pairs = along(pairs, lead + i, k - 1, k * k - 1, k - 1)
    return (sum_over(pairs, range(lead, lead + rank)),)


def _windows_jvp(tangents: Sequence[Node | None], out: Node, x: Node, *attrs: Any) -> Node | None:
    (t,) = tangents
    assert t is not None
    return windowed(t, *attrs) if has_tangents(x.dtype) else None


transforms(TABLE["windows"], jvp=_windows_jvp, transpose=_windows_transpose, batch=lambda size, batched, x, *attrs: windowed(x, *attrs))
transforms(TABLE["convolution"], jvp=_convolution_jvp, transpose=_convolution_transpose, batch=_convolution_batch)
