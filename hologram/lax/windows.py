"""Reductions of sliding windows: ``reduce_window``."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hologram import numpy as hnp
from hologram import tree
from hologram.errors import ArgumentError, ShapeError
from hologram.ir.node import Node
from hologram.ir.op import Op
from hologram.ir.symbolic import Int, floordiv
from hologram.lax.reductions import ADD, MAX, MIN, as_start, folded, identity_of, known_monoid
from hologram.lax.shapes import cut_or_padded, in_order, integers
from hologram.numpy.arguments import array, wrap
from hologram.primitives.reductions import REDUCED_BY, argmax, argmin, highest, lowest
from hologram.support.user_lines import located
from hologram.trace.decisions import decided, most
from hologram.trace.recorder import assume, plain
from hologram.trace.tensor import Tensor
from hologram.transform.custom import custom_jvp
from hologram.transform.nodes import apart, apply, sum_over
from hologram.transform.rules.convolution import windowed

__all__ = ["padtype_to_pads", "reduce_window"]

Pads = list[tuple[Int, Int]]


def padtype_to_pads(in_shape: Sequence[int], window_shape: Sequence[int], window_strides: Sequence[int], padding: Any) -> Pads:
    """How many elements before and behind each axis ``padding`` stands for: ``"VALID"``, ``"SAME"``, ``"SAME_LOWER"``, or the pairs themselves.

    Same: there are as many windows as a stride fits into the extent, the odd element lies behind (lower: before). Raises ArgumentError for another
    padding, ShapeError for other than one pair an axis.

    >>> hg.lax.padtype_to_pads((5, 6), (3, 2), (2, 1), "SAME")
    [(1, 1), (0, 1)]
    """
    if not isinstance(padding, str):
        pairs = [tuple(integers(pair, "padding", "a width")) for pair in padding]
        if len(pairs) != len(in_shape) or any(len(pair) != 2 for pair in pairs):
            raise located(ShapeError(f"padding {list(padding)} is not one pair for each of {len(in_shape)} axes"))
        return [(low, high) for low, high in pairs]
    name = padding.upper()
    if name == "VALID":
        return [(0, 0)] * len(in_shape)
    if name not in ("SAME", "SAME_LOWER"):
        raise located(ArgumentError(f"padding is 'SAME', 'SAME_LOWER', 'VALID', or pairs of integers, not {padding!r}"))
    found: Pads = []
    for n, k, s in zip(in_shape, window_shape, window_strides, strict=True):
        total = _same_padding(n, k, s)
        low = total // 2 if name == "SAME" else total - total // 2
        found.append((low, total - low))
    return found


def _same_padding(n: Int, window: Int, step: int) -> Int:
    """Widths around an axis such that its last window begins at the last multiple of ``step`` below ``n``."""
    if isinstance(n, int) and isinstance(window, int):
        return max((-(-n // step) - 1) * step + window - n, 0)
    n = plain(n)
    assume(n - 1)
    total = floordiv(n - 1, step) * step + window - n
    return total if decided(window - step) else most(total, 0)


class Slide:
    """Windows that slide over some axes of an array: sizes, strides, widths of padding, distances between elements of the array and of windows."""

    __slots__ = ("axes", "base", "dilations", "pads", "shape", "sizes", "steps")

    def __init__(self, shape: Sequence[Int], sizes: Any, steps: Any, padding: Any, base: Any, dilations: Any) -> None:
        rank = len(shape)
        given = [[1] * rank if v is None else integers(v, "reduce_window", "a number an axis") for v in (sizes, steps, base, dilations)]
        if any(len(v) != rank for v in given) or any(n < 1 for v in given for n in v):
            raise located(ShapeError(f"reduce_window: {[*map(list, given)]} are not numbers from 1 up for each axis of shape {list(shape)}"))
        self.sizes, self.steps, self.base, self.dilations = map(tuple, given)
        extents: Any = shape
        spread: list[Any] = [(n - 1) * b + 1 if n != 0 else 0 for n, b in zip(extents, self.base, strict=True)]
        spans = [(k - 1) * d + 1 for k, d in zip(self.sizes, self.dilations, strict=True)]
        self.pads = padtype_to_pads(extents, spans, self.steps, padding)
        pads: Any = self.pads
        for n, span, (low, high) in zip(spread, spans, pads, strict=True):
            if isinstance(n, int) and n + low + high < span:
                raise located(ShapeError(f"reduce_window: no window of {list(self.sizes)} fits into shape {list(shape)} with padding {self.pads}"))
        self.shape = tuple(shape)
        rows = zip(self.sizes, self.steps, self.base, self.pads, strict=True)
        self.axes = tuple(i for i, (k, s, b, pads) in enumerate(rows) if (k, s, b, *pads) != (1, 1, 1, 0, 0))

    @property
    def rest(self) -> tuple[int, ...]:
        """The axes along which nothing slides."""
        return tuple(i for i in range(len(self.shape)) if i not in self.axes)

    def of(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """What there is for the axes that windows slide over."""
        return tuple(values[i] for i in self.axes)

    def gathered(self, t: Tensor) -> Tensor:
        """``t`` as (all other axes, 1, sliding axes…)."""
        extents = [t.shape[i] for i in self.axes]
        return in_order(t, (*self.rest, *self.axes), (math.prod(t.shape[i] for i in self.rest), 1, *extents))

    @property
    def is_padded(self) -> bool:
        """Whether windows hold other than elements of the array."""
        pads: Any = self.of(self.pads)
        return any(b > 1 for b in self.of(self.base)) or any(not isinstance(n, int) or n > 0 for pair in pads for n in pair)

    def there(self) -> Node:
        """Which places of the windows are elements of the array: (1, 1, places in a window…, windows…)."""
        extents: Any = self.of(self.shape)
        return self.over(array(hnp.ones((1, 1, *extents), dtype=bool), "reduce_window"), False)

    def restored(self, t: Tensor) -> Tensor:
        """(All other axes, 1, windows…) as the result has it."""
        order = (*self.rest, *self.axes)
        whole = t.reshape((*[self.shape[i] for i in self.rest], *t.shape[2:]))
        return in_order(whole, [order.index(i) for i in range(len(order))])

    def over(self, node: Node, fill: Any) -> Node:
        """The windows of (rest, 1, axes…) amid ``fill``: (rest, 1, places in a window…, windows…)."""
        value = fill if isinstance(fill, Node) else array(hnp.asarray(fill).astype(node.dtype.np), "reduce_window")
        for i, step in enumerate(self.of(self.base)):
            node = apart(node, 2 + i, step, value)
        low, high = ([0, 0, *[pair[side] for pair in self.of(self.pads)]] for side in (0, 1))
        return windowed(cut_or_padded(node, low, high, value), self.of(self.sizes), self.of(self.steps), self.of(self.dilations))


def reduce_window(
    operand: Any,
    init_value: Any,
    computation: Callable[[Any, Any], Any],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Any:
    """Fold of the elements of every window by an associative function.

    ``computation(a, b)`` combines elements; ``init_value``, a scalar, is combined once with each window; padding counts for nothing. Windows have
    ``window_dimensions`` elements, ``window_dilation`` apart, and start every ``window_strides``-th element. With a ``base_dilation`` above 1 there
    is padding between the elements of ``operand``, too. ``padding`` is as in :func:`padtype_to_pads`, for the shape of ``operand`` itself. Sums,
    products and extremes are recognized. The derivative of extremes is that of the first extreme of a window, row by row. Of pytrees of arrays as
    :func:`reduce`.

    Raises ShapeError where no window fits, ArgumentError for other paddings.

    >>> x = hnp.arange(16.0).reshape(4, 4)
    >>> hg.lax.reduce_window(x, -hnp.inf, hg.lax.max, (2, 2), (2, 2))
    Tensor([[ 5.,  7.],
            [13., 15.]], dtype=float32)
    >>> hg.lax.reduce_window(hnp.arange(4.0), 0.0, hg.lax.add, (3,), padding="SAME")
    Tensor([1., 3., 6., 5.], dtype=float32)
    """
    leaves, structure = tree.flatten(operand)
    arrays = [hnp.asarray(x) for x in leaves]
    if not arrays or any(t.shape != arrays[0].shape for t in arrays):
        raise located(ArgumentError(f"reduce_window takes arrays of one shape, not {[list(t.shape) for t in arrays]}"))
    given = tree.flatten_up_to(structure, init_value)
    firsts = [as_start(x, t) for x, t in zip(given, arrays, strict=True)]
    slide = Slide(arrays[0].shape, window_dimensions, window_strides, padding, base_dilation, window_dilation)
    monoid = known_monoid(computation, arrays[0]._aval()[1]) if structure is tree.LEAF else None
    rows = [slide.gathered(t) for t in arrays]
    if monoid is not None and slide.axes:
        found = [_by_monoid(slide, monoid, rows[0], firsts[0], given[0])]
    else:
        seen = [_places_first(slide, slide.over(array(t, "reduce_window"), 0)) for t in rows]
        found = folded(seen, firsts, computation, structure, _places_first(slide, slide.there()) if slide.is_padded else None)
    return tree.unflatten(structure, [slide.restored(t) for t in found])


def _places_first(slide: Slide, seen: Node) -> Tensor:
    rank = len(slide.axes)
    order = [*range(2, 2 + rank), 0, 1, *range(2 + rank, len(seen.shape))]
    return in_order(wrap(seen), order, (math.prod(slide.of(slide.sizes)), *seen.shape[:2], *seen.shape[2 + rank :]))


def _by_monoid(slide: Slide, monoid: Op, t: Tensor, first: Tensor, given: Any) -> Tensor:
    d = t._aval()[1]
    identity = identity_of(monoid, d)
    neutral = isinstance(given, (int, float, np.generic, np.ndarray)) and np.array_equal(given, identity)
    if monoid in (MAX, MIN) and d.is_float:
        total = window_extreme(slide, monoid, t)
    else:
        seen = slide.over(array(t, "reduce_window"), array(first, "reduce_window") if neutral else identity)  # a zero has the sign that was given
        axes = tuple(range(2, 2 + len(slide.axes)))
        total = wrap(sum_over(seen, axes) if monoid is ADD else apply(REDUCED_BY[monoid], seen, attrs=(axes,)))
    if neutral:
        return total
    return wrap(apply(monoid, *(array(x, "reduce_window") for x in hnp.broadcast_arrays(first, total))))


# --- extremes --------------------------------------------------------------------------------------------------------


@functools.partial(custom_jvp, nondiff_argnums=(0, 1))
def window_extreme(slide: Any, monoid: Op, x: Tensor) -> Tensor:
    """The largest or the smallest element of each window that ``slide.over`` sees. The derivative is that of the first of them, row by row."""
    node = array(x, "reduce_window")
    fill = lowest(node.dtype) if monoid is MAX else highest(node.dtype)
    seen = slide.over(node, fill)
    return wrap(apply(REDUCED_BY[monoid], seen, attrs=(tuple(range(2, 2 + _rank(seen))),)))


@window_extreme.defjvp
def _of_the_first_extreme(slide: Any, monoid: Op, primals: tuple[Tensor], tangents: tuple[Tensor]) -> tuple[Tensor, Tensor]:
    (x,), (t,) = primals, tangents
    node = array(x, "reduce_window")
    fill = lowest(node.dtype) if monoid is MAX else highest(node.dtype)
    seen, directions = (_in_a_row(v) for v in (slide.over(node, fill), slide.over(array(t, "reduce_window"), 0)))
    first = wrap(apply(argmax if monoid is MAX else argmin, array(seen, "reduce_window"), attrs=(2,)))
    here = hnp.expand_dims(first, axis=2) == hnp.arange(seen.shape[2]).reshape((-1, *[1] * (seen.ndim - 3)))
    return window_extreme(slide, monoid, x), wrap(sum_over(array(hnp.where(here, directions, 0), "reduce_window"), (2,)))


def _rank(seen: Node) -> int:
    return (len(seen.shape) - 2) // 2


def _in_a_row(seen: Node) -> Tensor:
    """Windows with their places in one axis."""
    rank = _rank(seen)
    return wrap(seen).reshape((*seen.shape[:2], math.prod(seen.shape[2 : 2 + rank]), *seen.shape[2 + rank :]))
