"""Slices and pads: cancelled, composed, and moved below other movement ops. Nothing is computed, so every rule is exact."""

from __future__ import annotations

from hologram.dtypes import DType
from hologram.graph.rewrite.rewriter import Rewriter
from hologram.graph.rewrite.rule import rule_fn
from hologram.graph.rewrite.rules.reshape_groups import groups, taken
from hologram.ir.node import Node
from hologram.ir.op import Shape
from hologram.ir.symbolic import Expr, Int, bounds

Bounds = tuple[tuple[Int, ...], tuple[Int, ...], tuple[int, ...]]


def span(start: Int, extent: Int, step: int) -> tuple[Int, Int, int]:
    """``(start, stop, step)`` in the one form used for ``extent`` elements: it ends right after the last, and one element has step 1."""
    if extent == 1:
        step = 1
    return start, start + (extent - 1) * step + (1 if step > 0 else -1), step


def spans(starts: tuple[Int, ...], shape: Shape, steps: tuple[int, ...]) -> Bounds:
    """Attributes of the slice from ``starts`` in ``steps`` whose result has ``shape``."""
    columns = [span(*t) for t in zip(starts, shape, steps, strict=True)]
    return tuple(t[0] for t in columns), tuple(t[1] for t in columns), tuple(t[2] for t in columns)


def _whole(b: Rewriter, dtype: DType) -> list[Node]:
    return [b.make("slice", b.argument(dtype, 4, 3), attrs=((0, 0), (4, 3), (1, 1)))]


@rule_fn(("slice",), "slice-whole", "x[:] = x", "exact", examples=_whole)
def slice_whole(node: Node, b: Rewriter) -> Node | None:
    x = node.inputs[0]
    return x if node.shape == x.shape and all(s == 1 or n == 1 for s, n in zip(node.attrs[2], x.shape, strict=True)) else None


def _loose(b: Rewriter, dtype: DType) -> list[Node]:
    x = b.argument(dtype, 9)
    return [b.make("slice", x, attrs=((1,), (9,), (3,))), b.make("slice", x, attrs=((8,), (1,), (-9,)))]


@rule_fn(("slice",), "slice-normal", "x[a:b:s] ends right after its last element; one element has step 1", "exact", examples=_loose)
def slice_normal(node: Node, b: Rewriter) -> Node | None:
    return _resliced(b, node.inputs[0], node, spans(node.attrs[0], node.shape, node.attrs[2]))


def _resliced(b: Rewriter, x: Node, like: Node, attrs: Bounds) -> Node | None:
    """The slice ``attrs`` of ``x``, where symbols leave no doubt that it has the shape of ``like``."""
    out = b.make("slice", x, attrs=attrs)
    return out if out.shape == like.shape else None


def _sliced_twice(b: Rewriter, dtype: DType) -> list[Node]:
    x = b.argument(dtype, 12)
    odd, back = b.make("slice", x, attrs=((1,), (12,), (2,))), b.make("slice", x, attrs=((11,), (-1,), (-1,)))
    return [
        b.make("slice", odd, attrs=((4,), (-1,), (-2,))),
        b.make("slice", back, attrs=((11,), (-1,), (-1,))),
        b.make("slice", back, attrs=((2,), (8,), (1,))),
    ]


@rule_fn(("slice",), "slice-slice", "x[a::s][b::t] = x[a + b*s::s*t]", "exact", over=("slice",), examples=_sliced_twice)
def slice_slice(node: Node, b: Rewriter) -> Node | None:
    inner, (starts, _, steps) = node.inputs[0], node.attrs
    composed = tuple(a + s * t for a, s, t in zip(inner.attrs[0], starts, inner.attrs[2], strict=True))
    strides = tuple(s * t for s, t in zip(steps, inner.attrs[2], strict=True))
    return _resliced(b, inner.inputs[0], node, spans(composed, node.shape, strides))


def _sliced_broadcasts(b: Rewriter, dtype: DType) -> list[Node]:
    return [b.make("slice", b.make("broadcast", b.argument(dtype, 5), attrs=((4, 5), (1,))), attrs=((3, 1), (0, 5), (-1, 2)))]


@rule_fn(("slice",), "slice-broadcast", "broadcast(x)[i, j] = broadcast(x[j])", "exact", over=("broadcast",), examples=_sliced_broadcasts)
def slice_broadcast(node: Node, b: Rewriter) -> Node | None:
    below = node.inputs[0]
    x, dims = below.inputs[0], below.attrs[1]
    if any(n != below.shape[a] for n, a in zip(x.shape, dims, strict=True)):
        return None  # a stretched axis: broadcast-units comes first
    part = b.make("slice", x, attrs=tuple(taken(t, dims) for t in node.attrs))
    return b.make("broadcast", part, attrs=(node.shape, dims))


def _sliced_transposes(b: Rewriter, dtype: DType) -> list[Node]:
    return [b.make("slice", b.make("transpose", b.argument(dtype, 4, 5), attrs=((1, 0),)), attrs=((4, 1), (0, 4), (-2, 1)))]


@rule_fn(("slice",), "slice-transpose", "transpose(x)[i, j] = transpose(x[j, i])", "exact", over=("transpose",), examples=_sliced_transposes)
def slice_transpose(node: Node, b: Rewriter) -> Node | None:
    below = node.inputs[0]
    perm = below.attrs[0]
    back = tuple(perm.index(a) for a in range(node.ndim))
    return b.make("transpose", b.make("slice", below.inputs[0], attrs=tuple(taken(t, back) for t in node.attrs)), attrs=(perm,))


def _sliced_reshapes(b: Rewriter, dtype: DType) -> list[Node]:
    split = b.make("reshape", b.argument(dtype, 6, 4), attrs=((2, 3, 4),))
    unit = b.make("reshape", b.argument(dtype, 6), attrs=((6, 1),))
    return [b.make("slice", split, attrs=((0, 0, 1), (2, 3, 3), (1, 1, 1))), b.make("slice", unit, attrs=((5, 0), (1, 1), (-2, 1)))]


@rule_fn(
    ("slice",),
    "slice-reshape",
    "reshape(x)[i] = reshape(x[i]) where i cuts axes that the reshape keeps",
    "exact",
    over=("reshape",),
    examples=_sliced_reshapes,
)
def slice_reshape(node: Node, b: Rewriter) -> Node | None:
    below, (starts, stops, steps) = node.inputs[0], node.attrs
    x = below.inputs[0]
    cut = [a for a in range(node.ndim) if node.shape[a] != below.shape[a] or steps[a] != 1]
    kept = {news[0]: olds[0] for olds, news in groups(x.shape, below.shape) or () if len(olds) == len(news) == 1}
    if not all(a in kept for a in cut):
        return None
    start, stop, step = [0] * x.ndim, list(x.shape), [1] * x.ndim
    for a in cut:
        start[kept[a]], stop[kept[a]], step[kept[a]] = starts[a], stops[a], steps[a]
    return b.make("reshape", b.make("slice", x, attrs=(tuple(start), tuple(stop), tuple(step))), attrs=(node.shape,))


def sliced_pads(b: Rewriter, dtype: DType) -> list[Node]:
    padded = b.make("pad", b.argument(dtype, 5), b.const(1, dtype), attrs=((2,), (3,)))
    return [
        b.make("slice", padded, attrs=t)
        for t in (((3,), (6,), (1,)), ((6,), (2,), (-2,)), ((0,), (2,), (1,)), ((1,), (9,), (1,)), ((7,), (10,), (1,)))
    ]


@rule_fn(
    ("slice",), "slice-pad", "pad(x)[i] = x[j], or the fill, where i stays on one side of the edges", "exact", over=("pad",), examples=sliced_pads
)
def slice_pad(node: Node, b: Rewriter) -> Node | None:
    out = below_pad(node, b)
    return out if out is not None and (out.op.name != "pad" or pad_nothing.apply(out, b) is not None) else None


def below_pad(node: Node, b: Rewriter) -> Node | None:
    """A slice of a pad as a pad of a slice; the fill where none of the array is left; None where symbols leave open what is."""
    below = node.inputs[0]
    x, fill = below.inputs
    starts, shape, steps = [], [], []
    lows, highs = [], []
    for a in range(node.ndim):
        piece = _inside(node.attrs[0][a], node.shape[a], node.attrs[2][a], below.attrs[0][a], x.shape[a])
        if piece is None:
            return None
        start, extent, low, high = piece
        if extent == 0:
            return b.fit(fill, node.shape)
        starts.append(start)
        shape.append(extent)
        steps.append(node.attrs[2][a])
        lows.append(low)
        highs.append(high)
    part = b.make("slice", x, attrs=spans(tuple(starts), tuple(shape), tuple(steps)))
    return b.make("pad", part, fill, attrs=(tuple(lows), tuple(highs)))


def _inside(start: Int, extent: Int, step: int, low: Int, n: Int) -> tuple[Int, Int, Int, Int] | None:
    """Of ``extent`` elements from ``start`` along an axis padded by ``low``: where those in the array start there, how many they are, and how
    many lie before and after them; None where symbols leave that open."""
    last = start + (extent - 1) * step
    first_in, last_in = min_max(start, last)
    if _certain(first_in, low) and _certain(low + n - 1, last_in):
        return start - low, extent, 0, 0
    if any(isinstance(v, Expr) for v in (start, extent, low, n)):
        return None
    hits = [k for k in _range(int(start), int(extent), step, int(low), int(n))]
    if not hits:
        return 0, 0, 0, 0
    return start + hits[0] * step - low, len(hits), hits[0], extent - 1 - hits[-1]


def _range(start: int, extent: int, step: int, low: int, n: int) -> range:
    """The ``k`` below ``extent`` for which ``low <= start + k*step < low + n``."""
    if step > 0:
        first, beyond = -(-(low - start) // step), -(-(low + n - start) // step)
    else:
        first, beyond = -(-(start - low - n + 1) // -step), (start - low) // -step + 1
    return range(max(first, 0), min(beyond, extent))


def min_max(a: Int, b: Int) -> tuple[Int, Int]:
    """``a`` and ``b`` in order; as they are where symbols leave that open."""
    return (a, b) if not _certain(a, b) else (b, a)


def _certain(a: Int, b: Int) -> bool:
    """Whether a >= b is certain."""
    low, _ = bounds(a - b)
    return low is not None and low >= 0


def sliced_concatenations(b: Rewriter, dtype: DType) -> list[Node]:
    both = b.make("concatenate", b.argument(dtype, 4, 3), b.argument(dtype, 2, 3), b.argument(dtype, 5, 3), attrs=(0,))
    cuts = (((1, 0), (4, 3), (2, 1)), ((2, 1), (8, 3), (1, 1)), ((10, 0), (5, 3), (-1, 1)), ((9, 2), (2, -1), (-3, -1)), ((0, 0), (11, 3), (4, 2)))
    return [b.make("slice", both, attrs=t) for t in cuts]


@rule_fn(
    ("slice",), "slice-concatenate", "concatenate(x, y)[i] = y[j] where i stays in y", "exact", over=("concatenate",), examples=sliced_concatenations
)
def slice_concatenate(node: Node, b: Rewriter) -> Node | None:
    out = below_concatenate(node, b)
    return out.inputs[0] if out is not None and len(out.inputs) == 1 else None


def below_concatenate(node: Node, b: Rewriter) -> Node | None:
    """A slice of a concatenation as the concatenation of slices; None where symbols leave open which."""
    below = node.inputs[0]
    axis = below.attrs[0]
    starts, _, steps = node.attrs
    start, extent, step = starts[axis], node.shape[axis], steps[axis]
    if any(isinstance(v, Expr) for v in (start, extent, *(x.shape[axis] for x in below.inputs))):
        return None
    parts = []
    low = 0
    for x in below.inputs:
        n = int(x.shape[axis])
        hits = _range(int(start), int(extent), step, low, n)
        if hits:
            own = (*starts[:axis], start + hits[0] * step - low, *starts[axis + 1 :])
            shape = (*node.shape[:axis], len(hits), *node.shape[axis + 1 :])
            parts.append(b.make("slice", x, attrs=spans(own, shape, steps)))
        low += n
    if step < 0:
        parts.reverse()
    return b.make("concatenate", *parts, attrs=(axis,))


def _unpadded(b: Rewriter, dtype: DType) -> list[Node]:
    return [b.make("pad", b.argument(dtype, 3), b.const(1, dtype), attrs=((0,), (0,)))]


@rule_fn(("pad",), "pad-nothing", "pad(x, 0, 0) = x", "exact", examples=_unpadded)
def pad_nothing(node: Node, b: Rewriter) -> Node | None:
    return node.inputs[0] if all(w == 0 for side in node.attrs for w in side) else None


def _padded_twice(b: Rewriter, dtype: DType) -> list[Node]:
    fill = b.const(1, dtype)
    return [b.make("pad", b.make("pad", b.argument(dtype, 3), fill, attrs=((1,), (2,))), fill, attrs=((4,), (0,)))]


@rule_fn(("pad",), "pad-pad", "pad(pad(x, c), c) = pad(x, c)", "exact", over=("pad",), examples=_padded_twice)
def pad_pad(node: Node, b: Rewriter) -> Node | None:
    below, fill = node.inputs
    if below.inputs[1] is not fill:
        return None
    widths = tuple(tuple(v + w for v, w in zip(mine, its, strict=True)) for mine, its in zip(node.attrs, below.attrs, strict=True))
    return b.make("pad", below.inputs[0], fill, attrs=widths)


def _padded_with_itself(b: Rewriter, dtype: DType) -> list[Node]:
    fill = b.const(1, dtype)
    return [
        b.make("pad", b.make("broadcast", fill, attrs=((3,), ())), fill, attrs=((1,), (2,))),
        b.make("pad", b.argument(dtype, 0), fill, attrs=((1,), (2,))),
    ]


@rule_fn(("pad",), "pad-fill", "pad(c, c) = c, and so is what pads nothing", "exact", examples=_padded_with_itself)
def pad_fill(node: Node, b: Rewriter) -> Node | None:
    x, fill = node.inputs
    return b.fit(fill, node.shape) if 0 in x.shape or x.op.name == "broadcast" and x.inputs[0] is fill else None
