"""Sinking of movement ops below the ops that they move, towards the leaves: elementwise ops then stand next to one another, and slices leave less to
do.

Users first: what has a second user is not computed twice. All exact: nothing is computed otherwise than before.
"""

from __future__ import annotations

from hologram.dtypes import DType
from hologram.graph.rewrite.rewriter import Rewriter, Rule
from hologram.graph.rewrite.rule import rule_fn
from hologram.graph.rewrite.rules import movement, slices
from hologram.graph.rewrite.rules.broadcasts import broadcast_broadcast, broadcast_same
from hologram.graph.rewrite.rules.reductions import reduced_axes
from hologram.graph.rewrite.rules.reshape_groups import groups, rest, taken
from hologram.ir.node import Node
from hologram.ir.op import TABLE


def _maxima(b: Rewriter, dtype: DType) -> Node:
    return b.make("max", b.make("max", b.argument(dtype, 4, 6), b.argument(dtype)), b.argument(dtype, 4, 6))


def _below_elementwise(node: Node, b: Rewriter) -> Node | None:
    f = node.inputs[0]
    if not b.has_one_use(f) or not any(i.shape for i in f.inputs):
        return None  # of scalars nothing is moved
    return b(f.op, tuple(b(node.op, (i,), node.attrs) if i.shape else i for i in f.inputs), f.attrs)


@rule_fn(
    ("transpose", "slice"),
    "sink-elementwise",
    "move(f(x, y)) = f(move(x), move(y))",
    "exact",
    over=("@elementwise",),
    examples=lambda b, dtype: [
        b.make("transpose", _maxima(b, dtype), attrs=((1, 0),)),
        b.make("slice", _maxima(b, dtype), attrs=((3, 1), (0, 6), (-2, 1))),
    ],
)
def sink_elementwise(node: Node, b: Rewriter) -> Node | None:
    return _below_elementwise(node, b)


@rule_fn(
    ("reshape",),
    "sink-reshape",
    "reshape(f(x, y)) = f(reshape(x), reshape(y)) where no broadcast is in the way",
    "exact",
    over=("@elementwise",),
    examples=lambda b, dtype: [b.make("reshape", _maxima(b, dtype), attrs=((24,),))],
)
def sink_reshape(node: Node, b: Rewriter) -> Node | None:
    inputs = node.inputs[0].inputs
    if any(i.op.name == "broadcast" and movement.through_broadcast(i, node.shape) is None for i in inputs):
        return None
    return _below_elementwise(node, b)


def _transposed_pads(b: Rewriter, dtype: DType) -> list[Node]:
    return [b.make("transpose", b.make("pad", b.argument(dtype, 2, 3), b.const(1, dtype), attrs=((1, 0), (0, 2))), attrs=((1, 0),))]


@rule_fn(("transpose",), "sink-transpose-pad", "transpose(pad(x)) = pad(transpose(x))", "exact", over=("pad",), examples=_transposed_pads)
def transpose_pad(node: Node, b: Rewriter) -> Node | None:
    below, perm = node.inputs[0], node.attrs[0]
    if not b.has_one_use(below):
        return None
    x, fill = below.inputs
    return b.make("pad", b.make("transpose", x, attrs=node.attrs), fill, attrs=tuple(taken(w, perm) for w in below.attrs))


def _transposed_concatenations(b: Rewriter, dtype: DType) -> list[Node]:
    return [b.make("transpose", b.make("concatenate", b.argument(dtype, 2, 3), b.argument(dtype, 4, 3), attrs=(0,)), attrs=((1, 0),))]


@rule_fn(
    ("transpose",),
    "sink-transpose-concatenate",
    "transpose(concatenate(x, y)) = concatenate of transposes",
    "exact",
    over=("concatenate",),
    examples=_transposed_concatenations,
)
def transpose_concatenate(node: Node, b: Rewriter) -> Node | None:
    below = node.inputs[0]
    if not b.has_one_use(below):
        return None
    return b.make("concatenate", *[b.make("transpose", i, attrs=node.attrs) for i in below.inputs], attrs=(node.attrs[0].index(below.attrs[0]),))


@rule_fn(("slice",), "sink-slice-pad", "pad(x)[i] = pad(x[j])", "exact", over=("pad",), examples=slices.sliced_pads)
def slice_pad(node: Node, b: Rewriter) -> Node | None:
    return slices.below_pad(node, b) if b.has_one_use(node.inputs[0]) else None


@rule_fn(
    ("slice",),
    "sink-slice-concatenate",
    "concatenate(x, y)[i] = concatenate of slices",
    "exact",
    over=("concatenate",),
    examples=slices.sliced_concatenations,
)
def slice_concatenate(node: Node, b: Rewriter) -> Node | None:
    return slices.below_concatenate(node, b) if b.has_one_use(node.inputs[0]) else None


def _transposed_reshapes(b: Rewriter, dtype: DType) -> list[Node]:
    return [b.make("transpose", b.make("reshape", b.argument(dtype, 6, 5), attrs=((2, 3, 5),)), attrs=((2, 0, 1),))]


@rule_fn(
    ("transpose",),
    "sink-transpose-reshape",
    "transpose(reshape(x)) = reshape(transpose(x)) where runs move whole",
    "exact",
    over=("reshape",),
    examples=_transposed_reshapes,
)
def transpose_reshape(node: Node, b: Rewriter) -> Node | None:
    below, perm = node.inputs[0], node.attrs[0]
    x = below.inputs[0]
    runs = groups(x.shape, below.shape)
    if runs is None:
        return None
    olds_of = {news[0]: olds for olds, news in runs if news}
    order: list[int] = []
    at = 0
    while at < len(perm):
        news = next((n for _, n in runs if n and n[0] == perm[at]), None)
        if news is None or perm[at : at + len(news)] != news:
            return None
        order.extend(olds_of[news[0]])
        at += len(news)
    order.extend(a for olds, news in runs if not news for a in olds)
    return b.make("reshape", b.make("transpose", x, attrs=(tuple(order),)), attrs=(node.shape,))


def _sliced_reductions(b: Rewriter, dtype: DType) -> list[Node]:
    x = b.argument(dtype, 5, 4)
    return [b.make("slice", b.make(n, x, attrs=a), attrs=((1,), (4,), (2,))) for n, a in (("reduce_max", ((1,),)), ("argmin", (1,)))]


@rule_fn(("slice",), "sink-slice-reduce", "reduce(x)[i] = reduce(x[i])", "exact", over=("@reduce",), examples=_sliced_reductions)
def slice_reduce(node: Node, b: Rewriter) -> Node | None:
    below = node.inputs[0]
    if not b.has_one_use(below):
        return None
    x, axes = below.inputs[0], reduced_axes(below)
    cut = dict(zip(rest(x.ndim, axes), zip(*node.attrs, strict=True), strict=True))
    spans = [cut.get(a, (0, n, 1)) for a, n in enumerate(x.shape)]
    return b(below.op, (b.make("slice", x, attrs=tuple(zip(*spans, strict=True))),), below.attrs)


def _sliced_scans(b: Rewriter, dtype: DType) -> list[Node]:
    return [b.make("slice", b.make("cummax", b.argument(dtype, 5, 4), attrs=(1, True)), attrs=((4, 0), (0, 4), (-2, 1)))]


@rule_fn(
    ("slice",), "sink-slice-scan", "scan(x)[i] = scan(x[i]) where i leaves the scanned axis whole", "exact", over=("@scan",), examples=_sliced_scans
)
def slice_scan(node: Node, b: Rewriter) -> Node | None:
    below = node.inputs[0]
    axis = below.attrs[0]
    if not b.has_one_use(below) or node.shape[axis] != below.shape[axis] or node.attrs[2][axis] != 1:
        return None
    return b(below.op, (b.make("slice", below.inputs[0], attrs=node.attrs),), below.attrs)


def _sliced_convolutions(b: Rewriter, dtype: DType) -> list[Node]:
    if dtype.kind not in TABLE["convolution"].kinds:
        return []
    out = b.make("convolution", b.argument(dtype, 2, 2, 1, 9), b.argument(dtype, 2, 3, 1, 2), attrs=((2,), (3,)))
    return [
        b.make("slice", out, attrs=((0, 0, 0, 1), (2, 2, 3, 3), (1, 1, 1, 1))),
        b.make("slice", out, attrs=((1, 0, 2, 0), (2, 2, -1, 3), (1, 1, -2, 2))),
    ]


@rule_fn(
    ("slice",),
    "sink-slice-convolution",
    "convolution(x, w)[i] = convolution(x[j], w[k])",
    "exact",
    over=("convolution",),
    examples=_sliced_convolutions,
)
def slice_convolution(node: Node, b: Rewriter) -> Node | None:
    below = node.inputs[0]
    groups_, n, o, *space = zip(*node.attrs, strict=True)
    if not b.has_one_use(below) or any(step < 1 for _, _, step in space):
        return None
    (x, w), (steps, dilations) = below.inputs, below.attrs
    seen = [groups_, n, (0, x.shape[2], 1)]
    for (start, _, every), count, size, step, dilation in zip(space, node.shape[3:], w.shape[3:], steps, dilations, strict=True):
        seen.append((start * step, (start + (count - 1) * every) * step + (size - 1) * dilation + 1, 1))
    part = b.make("slice", x, attrs=tuple(zip(*seen, strict=True)))
    weights = b.make("slice", w, attrs=tuple(zip(groups_, o, *((0, m, 1) for m in w.shape[2:]), strict=True)))
    return b.make("convolution", part, weights, attrs=(tuple(s * every for s, (_, _, every) in zip(steps, space, strict=True)), dilations))


def _nested_concatenations(b: Rewriter, dtype: DType) -> list[Node]:
    pair = b.make("concatenate", b.argument(dtype, 2), b.argument(dtype, 3), attrs=(0,))
    return [b.make("concatenate", b.argument(dtype, 4), pair, attrs=(0,))]


@rule_fn(
    ("concatenate",),
    "concatenate-concatenate",
    "concatenate(x, concatenate(y, z)) = concatenate(x, y, z)",
    "exact",
    among=("concatenate",),
    examples=_nested_concatenations,
)
def concatenate_concatenate(node: Node, b: Rewriter) -> Node | None:
    """All levels at once, so that a chain of concatenations takes linear time."""
    parts: list[Node] = []
    stack = list(reversed(node.inputs))
    while stack:
        x = stack.pop()
        if x.op is node.op and x.attrs == node.attrs and b.has_one_use(x):
            stack.extend(reversed(x.inputs))
        else:
            parts.append(x)
    return b.make("concatenate", *parts, attrs=node.attrs) if len(parts) > len(node.inputs) else None


# a movement on its way down meets others
ADJACENT: list[Rule] = [
    movement.reshape_same,
    movement.reshape_reshape,
    movement.reshape_broadcast,
    movement.transpose_identity,
    movement.transpose_transpose,
    movement.transpose_units,
    movement.transpose_broadcast,
    slices.slice_whole,
    slices.slice_slice,
    slices.slice_broadcast,
    slices.slice_transpose,
    slices.slice_reshape,
    slices.slice_pad,
    slices.slice_concatenate,
    broadcast_same,
    broadcast_broadcast,
]

RULES: list[Rule] = [
    concatenate_concatenate,
    sink_elementwise,
    sink_reshape,
    transpose_pad,
    transpose_concatenate,
    transpose_reshape,
    slice_pad,
    slice_concatenate,
    slice_reduce,
    slice_scan,
    slice_convolution,
]
