"""Constant windows: an update of elements that are known becomes a select over the array where the whole array is computed or read anyway.

The front end writes ``x.at[1:3].set(v)`` as a scatter, as it does where the start is computed: derivatives and batches are then those of scatters,
and what touches a window does not touch the rest. A scatter is never fused with what makes ``x`` or what reads the result, though, while a select
costs next to nothing in a kernel that goes over the array even so. So it becomes one unless the window is small, ``x`` stands in memory, and what
reads the result wants it in memory, or only a part of it.
"""

from __future__ import annotations

from collections import Counter

from hologram import dtypes
from hologram.graph.rewrite.rules.movement import uniform_integer
from hologram.ir.graph import Graph
from hologram.ir.node import Builder, Node
from hologram.ir.op import TABLE
from hologram.ir.symbolic import is_static, prod
from hologram.ir.traversal import users_of

MIN_ELEMENTS = 256  # of an array, below which a select is as cheap as its window
MIN_RATIO = 8  # how many times as large as a window an array is whose other elements should be left alone
_COMPUTED = ("elementwise", "movement", "gather")


def select_windows(graph: Graph, fired: Counter[str]) -> Graph:
    """``graph`` with selects for scatters to constant windows; the graph itself where nothing changed."""
    nodes = graph.nodes()
    if not any(n.op.kind == "scatter" for n in nodes):
        return graph
    b, readers, outputs = Builder(), users_of(nodes), set(graph.outputs)
    image: dict[Node, Node] = {}
    changed = 0
    for n in nodes:
        inputs = tuple([image[x] for x in n.inputs])
        corner = constant_corner(n)
        if corner is None or (_is_in_memory(inputs[0]) and _is_small(n) and _leaves_alone(n, readers, outputs)):
            image[n] = b.like(n, inputs)
        else:
            image[n] = _selected(b, n, inputs, corner)
            changed += 1
    fired.update({"select-windows": changed} if changed else {})
    return graph.mapped(image) if changed else graph


def constant_corner(node: Node) -> list[int] | None:
    """Where the one window of a scatter begins, along each axis of the array; None for other nodes, and where that is not known, or outside."""
    if node.op.kind != "scatter":
        return None
    (x, updates, *starts), (axes, batch) = node.inputs, node.attrs
    if prod(starts[0].shape[batch:]) != 1:
        return None
    corner = [0] * x.ndim
    for s, a in zip(starts, axes, strict=True):
        at, n, size = uniform_integer(s), x.shape[a], updates.shape[starts[0].ndim + a - batch]
        if at is None or not isinstance(n, int) or not isinstance(size, int) or not 0 <= at <= n - size:
            return None
        corner[a] = at
    return corner


def _is_in_memory(x: Node) -> bool:
    while x.op.name == "reshape":
        (x,) = x.inputs
    return x.op.kind not in _COMPUTED and x.op.name not in ("const", "iota")


def _is_part(size: object, of: Node) -> bool:
    """Whether that many elements are few of an array."""
    return isinstance(size, int) and is_static(of.size) and size * MIN_RATIO <= of.size  # type: ignore[operator]


def _is_small(scatter: Node) -> bool:
    x, updates = scatter.inputs[:2]
    return _is_part(updates.size, x) and x.size >= MIN_ELEMENTS  # type: ignore[operator]


def _leaves_alone(value: Node, readers: dict[Node, list[Node]], outputs: set[Node]) -> bool:
    """Whether all that reads ``value`` takes it as it stands in memory, or a part of it."""
    for r in readers.get(value, ()):
        if r.op.kind == "control" or (r.op.kind == "scatter" and r.inputs[0] is value and value not in r.inputs[1:]):
            continue
        if r.op.kind == "gather" or r.op.name == "slice":
            if not _is_part(r.size, value):
                return False
        elif r.op.name != "reshape" or not _leaves_alone(r, readers, outputs):
            return False
    return True


def _selected(b: Builder, node: Node, inputs: tuple[Node, ...], corner: list[int]) -> Node:
    """The updates where they belong, and the array, or its identity, beside them."""
    x, updates, *starts = inputs
    batch = node.attrs[1]
    window = b.reshape(updates, (*updates.shape[:batch], *updates.shape[starts[0].ndim :]))
    beyond = tuple(n - at - size for n, at, size in zip(x.shape, corner, window.shape, strict=True))
    attrs = tuple(corner), beyond

    def placed(part: Node, fill: Node) -> Node:
        return b(TABLE["pad"], (part, fill), attrs)

    if node.op.monoid is not None:
        return b(node.op.monoid, (x, placed(window, b.const(node.op.identity(x.dtype), x.dtype))))
    if window.shape == x.shape:
        return window
    here = placed(b.full(True, dtypes.bool_, window.shape), b.const(False, dtypes.bool_))
    return b(TABLE["select"], (here, placed(window, b.const(0, x.dtype)), x))
