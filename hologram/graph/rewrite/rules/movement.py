"""Reshape, transpose and concatenate: cancelled and composed; the list of all movement rules. Nothing is computed, so every rule is exact.

The order in which movements stand, from the output to the leaves: broadcast, reshape, transpose, slice."""

from __future__ import annotations

from hologram.dtypes import DType, int32
from hologram.graph.rewrite.rewriter import Rewriter, Rule
from hologram.graph.rewrite.rule import rule_fn
from hologram.graph.rewrite.rules.reshape_groups import groups, taken
from hologram.graph.rewrite.rules.slices import (
    pad_fill,
    pad_nothing,
    pad_pad,
    slice_broadcast,
    slice_concatenate,
    slice_normal,
    slice_pad,
    slice_reshape,
    slice_slice,
    slice_transpose,
    slice_whole,
    spans,
)
from hologram.ir.node import Node, const_value
from hologram.ir.op import Shape
from hologram.ir.symbolic import Expr

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


# --- pad and concatenate ---------------------------------------------------------------------------------------------


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


def _constant_starts(b: Rewriter, dtype: DType) -> list[Node]:
    x, two, row = b.argument(dtype, 3, 5), b.const(2, int32), b.argument(dtype, 4, 3, 5)
    same = b.make("broadcast", two, attrs=((4, 2), ()))
    return [
        b.make("gather", x, two, attrs=((1,), (1,), 0)),
        b.make("gather", x, b.const(0, int32), two, attrs=((0, 1), (2, 3), 0)),
        b.make("gather", row, same, attrs=((2,), (2,), 1)),
    ]


@rule_fn(
    ("gather",),
    "gather-constant",
    "gather(x, c) = broadcast(x[c : c + size])",
    "exact",
    among=("const", "broadcast"),
    examples=_constant_starts,
)
def gather_constant(node: Node, b: Rewriter) -> Node | None:
    (x, *starts), (axes, sizes, batch) = node.inputs, node.attrs
    start, stop = [0] * x.ndim, list(x.shape)
    for s, a, size in zip(starts, axes, sizes, strict=True):
        at, n = uniform_integer(s), x.shape[a]
        if at is None or isinstance(n, Expr) or isinstance(size, Expr) or n < size:
            return None
        start[a] = min(max(at, 0), n - size)
        stop[a] = start[a] + size
    window = b.make("slice", x, attrs=(tuple(start), tuple(stop), (1,) * x.ndim))
    places = starts[0].ndim - batch
    return b.make("broadcast", window, attrs=(node.shape, (*range(batch), *range(batch + places, node.ndim))))


def uniform_integer(x: Node) -> int | None:
    """The integer that all elements of ``x`` are; None where they may differ."""
    while x.op.name in ("broadcast", "reshape"):
        (x,) = x.inputs
    return int(const_value(x)) if x.op.name == "const" else None


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
    gather_constant,
]
