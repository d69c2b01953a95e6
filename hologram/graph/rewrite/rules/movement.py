"""Reshape, transpose, slice, pad and concatenate: cancelled and composed. Nothing is computed, so every rule is exact.

The order in which movements stand, from the output to the leaves: broadcast, reshape, transpose, slice.
"""

from __future__ import annotations

from hologram.dtypes import DType, int32
from hologram.graph.rewrite.rewriter import Rewriter, Rule
from hologram.graph.rewrite.rule import rule_fn
from hologram.graph.rewrite.rules.reshape_groups import groups, taken
from hologram.ir.node import Node, const_value
from hologram.ir.op import Shape
from hologram.ir.symbolic import Expr, Int, bounds

Bounds = tuple[tuple[Int, ...], tuple[Int, ...], tuple[int, ...]]


# --- reshape ---------------------------------------------------------------------------------------------------------


def _same_shape(b: Rewriter, dtype: DType) -> list[Node]:
    return [b.make("reshape", b.argument(dtype, 2, 3), attrs=((2, 3),))]


@rule_fn(("reshape",), "reshape-same", "reshape(x, shape of x) = x", "exact", examples=_same_shape)
def reshape_same(node: Node, b: Rewriter) -> Node | None:
    return node.inputs[0] if node.inputs[0].shape == node.shape else None


def _reshaped_twice(b: Rewriter, dtype: DType) -> list[Node]:
    return [b.make("reshape", b.make("reshape", b.argument(dtype, 2, 3), attrs=((6,),)), attrs=((3, 2),))]


@rule_fn(("reshape",), "reshape-reshape", "reshape(reshape(x)) = reshape(x)", "exact", over=("reshape",), examples=_reshaped_twice)
def reshape_reshape(node: Node, b: Rewriter) -> Node | None:
    return b.make("reshape", node.inputs[0].inputs[0], attrs=node.attrs)


def _reshaped_broadcasts(b: Rewriter, dtype: DType) -> list[Node]:
    row = b.make("broadcast", b.argument(dtype, 6), attrs=((4, 6), (1,)))
    return [b.make("reshape", row, attrs=(s,)) for s in ((2, 2, 6), (4, 2, 3), (4, 1, 6), (2, 2, 1, 3, 2))]


@rule_fn(
    ("reshape",),
    "reshape-broadcast",
    "reshape(broadcast(x)) = broadcast(reshape(x))",
    "exact",
    over=("broadcast",),
    examples=_reshaped_broadcasts,
)
def reshape_broadcast(node: Node, b: Rewriter) -> Node | None:
    below = node.inputs[0]
    moved = through_broadcast(below, node.shape)
    if moved is None:
        return None
    inner, dims = moved
    return b.make("broadcast", b.make("reshape", below.inputs[0], attrs=(inner,)), attrs=(node.shape, dims))


def through_broadcast(below: Node, shape: Shape) -> tuple[Shape, tuple[int, ...]] | None:
    """The shape to give the input of the broadcast ``below``, and dims, so that its broadcast is ``below`` in ``shape``; None if nothing is."""
    runs = groups(below.shape, shape)
    if runs is None:
        return None
    dims, source = below.attrs[1], below.inputs[0].shape
    kept: list[int] = []
    for olds, news in runs:
        covered = [a for a in olds if a in dims]
        if not covered:
            continue
        if len(covered) != len(olds) or any(source[dims.index(a)] != below.shape[a] for a in covered):
            return None
        kept.extend(news)
    return taken(shape, tuple(kept)), tuple(kept)


# --- transpose -------------------------------------------------------------------------------------------------------


def _unmoved(b: Rewriter, dtype: DType) -> list[Node]:
    return [b.make("transpose", b.argument(dtype, 2, 3), attrs=((0, 1),))]


@rule_fn(("transpose",), "transpose-identity", "transpose(x, (0, 1, ...)) = x", "exact", examples=_unmoved)
def transpose_identity(node: Node, b: Rewriter) -> Node | None:
    return node.inputs[0] if node.attrs[0] == tuple(range(node.ndim)) else None


def _transposed_twice(b: Rewriter, dtype: DType) -> list[Node]:
    return [b.make("transpose", b.make("transpose", b.argument(dtype, 2, 3, 4), attrs=((1, 2, 0),)), attrs=((1, 0, 2),))]


@rule_fn(
    ("transpose",),
    "transpose-transpose",
    "transpose(transpose(x, p), q) = transpose(x, p of q)",
    "exact",
    over=("transpose",),
    examples=_transposed_twice,
)
def transpose_transpose(node: Node, b: Rewriter) -> Node | None:
    below = node.inputs[0]
    return b.make("transpose", below.inputs[0], attrs=(taken(below.attrs[0], node.attrs[0]),))


def _moved_units(b: Rewriter, dtype: DType) -> list[Node]:
    return [b.make("transpose", b.argument(dtype, 2, 1, 3), attrs=((1, 0, 2),))]


@rule_fn(("transpose",), "transpose-units", "transpose(x) = reshape(x) where only axes of extent 1 move", "exact", examples=_moved_units)
def transpose_units(node: Node, b: Rewriter) -> Node | None:
    moving = [a for a in node.attrs[0] if node.inputs[0].shape[a] != 1]
    return b.make("reshape", node.inputs[0], attrs=(node.shape,)) if moving == sorted(moving) else None


def _transposed_broadcasts(b: Rewriter, dtype: DType) -> list[Node]:
    row = b.make("broadcast", b.argument(dtype, 3), attrs=((4, 3), (1,)))
    plane = b.make("broadcast", b.argument(dtype, 2, 3), attrs=((2, 5, 3), (0, 2)))
    return [b.make("transpose", row, attrs=((1, 0),)), b.make("transpose", plane, attrs=((2, 1, 0),))]


@rule_fn(
    ("transpose",),
    "transpose-broadcast",
    "transpose(broadcast(x)) = broadcast(transpose(x))",
    "exact",
    over=("broadcast",),
    examples=_transposed_broadcasts,
)
def transpose_broadcast(node: Node, b: Rewriter) -> Node | None:
    below = node.inputs[0]
    positions = [node.attrs[0].index(a) for a in below.attrs[1]]
    perm = tuple(sorted(range(len(positions)), key=positions.__getitem__))
    return b.make("broadcast", b.make("transpose", below.inputs[0], attrs=(perm,)), attrs=(node.shape, tuple(sorted(positions))))


# --- slice -----------------------------------------------------------------------------------------------------------


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


# --- pad and concatenate ---------------------------------------------------------------------------------------------


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


def _single_and_empty(b: Rewriter, dtype: DType) -> list[Node]:
    x = b.argument(dtype, 3)
    return [b.make("concatenate", x, attrs=(0,)), b.make("concatenate", x, b.argument(dtype, 0), x, attrs=(0,))]


@rule_fn(("concatenate",), "concatenate-empty", "concatenate(x, nothing) = x", "exact", examples=_single_and_empty)
def concatenate_empty(node: Node, b: Rewriter) -> Node | None:
    kept = [x for x in node.inputs if x.shape[node.attrs[0]] != 0]
    if len(kept) == 1:
        return kept[0]
    return b.make("concatenate", *kept, attrs=node.attrs) if len(kept) < len(node.inputs) else None


def _neighbours(b: Rewriter, dtype: DType) -> list[Node]:
    x = b.argument(dtype, 9)
    first, second, third = (b.make("slice", x, attrs=t) for t in (((0,), (3,), (1,)), ((3,), (7,), (1,)), ((7,), (9,), (1,))))
    down, further = b.make("slice", x, attrs=((8,), (5,), (-1,))), b.make("slice", x, attrs=((5,), (2,), (-1,)))
    return [b.make("concatenate", first, second, third, attrs=(0,)), b.make("concatenate", down, further, x, attrs=(0,))]


@rule_fn(("concatenate",), "concatenate-neighbours", "concatenate(x[a:b], x[b:c]) = x[a:c]", "exact", among=("slice",), examples=_neighbours)
def concatenate_neighbours(node: Node, b: Rewriter) -> Node | None:
    axis = node.attrs[0]
    parts: list[Node] = []
    for x in node.inputs:
        joined = _joined(parts[-1], x, axis, b) if parts else None
        if joined is None:
            parts.append(x)
        else:
            parts[-1] = joined
    return b.make("concatenate", *parts, attrs=(axis,)) if len(parts) < len(node.inputs) else None


def _joined(x: Node, y: Node, axis: int, b: Rewriter) -> Node | None:
    """One slice for two that continue each other along ``axis``."""
    if x.op.name != "slice" or y.op.name != "slice" or x.inputs != y.inputs:
        return None
    for a in range(x.ndim):
        same = [s[a] == t[a] for s, t in zip(x.attrs, y.attrs, strict=True)]
        if a != axis and not all(same):
            return None
    step = x.attrs[2][axis] if x.shape[axis] != 1 else y.attrs[2][axis] if y.shape[axis] != 1 else 1
    if y.shape[axis] != 1 and y.attrs[2][axis] != step or y.attrs[0][axis] != x.attrs[0][axis] + x.shape[axis] * step:
        return None
    shape = (*x.shape[:axis], x.shape[axis] + y.shape[axis], *x.shape[axis + 1 :])
    steps = (*x.attrs[2][:axis], step, *x.attrs[2][axis + 1 :])
    return b.make("slice", x.inputs[0], attrs=spans(x.attrs[0], shape, steps))


def _equal_pieces(b: Rewriter, dtype: DType) -> list[Node]:
    row = b.argument(dtype, 3)
    return [b.make("concatenate", *(b.make("broadcast", row, attrs=((n, 3), (1,))) for n in (2, 4)), attrs=(0,))]


@rule_fn(
    ("concatenate",),
    "concatenate-broadcasts",
    "concatenate of broadcasts of one x along a new axis = broadcast(x)",
    "exact",
    over=("broadcast",),
    examples=_equal_pieces,
)
def concatenate_broadcasts(node: Node, b: Rewriter) -> Node | None:
    first = node.inputs[0]
    x, dims = first.inputs[0], first.attrs[1]
    if node.attrs[0] in dims or not all(i.op is first.op and i.inputs[0] is x and i.attrs[1] == dims for i in node.inputs):
        return None
    return b.make("broadcast", x, attrs=(node.shape, dims))


# --- gather ----------------------------------------------------------------------------------------------------------


def _constant_index(b: Rewriter, dtype: DType) -> list[Node]:
    return [b.make("take", b.argument(dtype, 3, 5), b.const(2, int32), attrs=(1,))]


@rule_fn(("take",), "take-constant", "take(x, c) = x[c]", "exact", among=("const",), examples=_constant_index)
def take_constant(node: Node, b: Rewriter) -> Node | None:
    (x, index), (axis,) = node.inputs, node.attrs
    if index.op.name != "const" or isinstance(x.shape[axis], Expr):
        return None
    at = min(max(int(const_value(index)), 0), int(x.shape[axis]) - 1)
    start = tuple(at if a == axis else 0 for a in range(x.ndim))
    shape = tuple(1 if a == axis else n for a, n in enumerate(x.shape))
    return b.make("reshape", b.make("slice", x, attrs=spans(start, shape, (1,) * x.ndim)), attrs=(node.shape,))


RULES: list[Rule] = [
    reshape_same,
    reshape_reshape,
    reshape_broadcast,
    transpose_identity,
    transpose_transpose,
    transpose_units,
    transpose_broadcast,
    slice_whole,
    slice_normal,
    slice_slice,
    slice_broadcast,
    slice_transpose,
    slice_reshape,
    slice_pad,
    slice_concatenate,
    pad_nothing,
    pad_pad,
    pad_fill,
    concatenate_empty,
    concatenate_neighbours,
    concatenate_broadcasts,
    take_constant,
]
