"""Updates of views: a scatter to a slice or a transpose of an array, which is then written back, becomes a scatter to the array itself.

``x = x.at[2].set(x[2].at[i].set(v))`` changes the elements that ``v`` has. As it is written it copies the slice, and then writes all of the slice.
PyTorch's functional graphs are full of these, since there each assignment to a view is an update of the view and one of its base. What else reads
the updated view reads it of the updated array.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from hologram import dtypes
from hologram.graph.canonical.constant_windows import constant_corner
from hologram.ir.graph import Graph
from hologram.ir.node import Builder, Node
from hologram.ir.op import TABLE, Shape
from hologram.ir.symbolic import is_static

MIN_INDEX_BITS = 32  # of starts to which the corner of a slice is added


class _View(NamedTuple):
    """What a scatter writes to, as a view of ``array``: its window at ``corner`` of shape ``window``, of which the axes ``kept`` are those of the
    scatter's operand, in its order. ``whole`` is the node that is the updated array."""

    array: Node
    corner: tuple[int, ...]
    window: Shape
    kept: tuple[int, ...]
    whole: Node


def update_bases(graph: Graph, fired: Counter[str]) -> Graph:
    """``graph`` with scatters to arrays for those to views of them; the graph itself where nothing changed."""
    nodes = graph.nodes()
    found: dict[Node, _View] = {}
    for n in nodes:
        below = _updated(n)
        if below is not None and below not in found:
            view = _written_back(n, below)
            if view is not None:
                found[below] = view
    if not found:
        return graph
    b, image = Builder(), {}
    wholes = {view.whole: n for n, view in found.items()}
    updated: dict[Node, Node] = {}
    for n in nodes:
        if n in wholes:
            image[n] = updated[wholes[n]]
        elif n in found:
            updated[n] = _on_base(b, n, found[n], image)
            image[n] = _seen(b, updated[n], found[n], n.shape)
        else:
            image[n] = b.like(n, tuple([image[x] for x in n.inputs]))
    fired.update({"update-bases": len(found)})
    return graph.mapped(image)


def _updated(node: Node) -> Node | None:
    """The scatter to a view whose result ``node`` writes to the view's array; None for other nodes."""
    value = node.inputs[1] if node.op.name == "scatter_set" else node.inputs[0] if node.op.name == "transpose" else None
    while value is not None and value.op.name == "reshape" and node.op.name != "transpose":
        value = value.inputs[0]
    return value if value is not None and value.op.kind == "scatter" and value.attrs[1] == 0 else None


def _written_back(node: Node, scatter: Node) -> _View | None:
    of = scatter.inputs[0]
    if node.op.name == "transpose":
        if of.op.name != "transpose" or of.inputs[0].shape != node.shape or node.attrs[0] != _inverse(of.attrs[0]):
            return None
        (array,) = of.inputs
        return _View(array, (0,) * array.ndim, array.shape, of.attrs[0], node)
    corner = constant_corner(node)
    while of.op.name == "reshape":
        of = of.inputs[0]
    if corner is None or of.op.name != "slice" or of.inputs[0] is not node.inputs[0] or not all(map(is_static, of.inputs[0].shape)):
        return None
    starts, _, steps = of.attrs
    kept = _kept_axes(of.shape, of.inputs[0].shape, scatter.shape)
    window = _window(node)
    if tuple(starts) != tuple(corner) or of.shape != window or any(s != 1 for s in steps) or kept is None or not _is_wide(scatter, corner):
        return None
    return _View(of.inputs[0], tuple(corner), window, kept, node)


def _inverse(perm: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(perm.index(a) for a in range(len(perm)))


def _window(scatter: Node) -> Shape:
    """The shape of the windows of a scatter."""
    return tuple(scatter.inputs[1].shape[scatter.inputs[2].ndim - scatter.attrs[1] :])


def _kept_axes(window: Shape, whole: Shape, shape: Shape) -> tuple[int, ...] | None:
    """The axes of a slice that are left when it is reshaped to ``shape``: all but some of one element. None for other reshapes."""
    kept: list[int] = []
    spare = len(window) - len(shape)
    for a, n in enumerate(window):
        if len(kept) < len(shape) and shape[len(kept)] == n and not (spare and n == 1 and whole[a] != 1):
            kept.append(a)
        elif n == 1 and spare:
            spare -= 1
        else:
            return None
    return tuple(kept) if len(kept) == len(shape) else None


def _is_wide(scatter: Node, corner: list[int]) -> bool:
    return not any(corner) or all(s.dtype.bits >= MIN_INDEX_BITS for s in scatter.inputs[2:])


def _on_base(b: Builder, scatter: Node, view: _View, image: dict[Node, Node]) -> Node:
    """The scatter to the view's array. A window that does not lie in the view is dropped, as it was."""
    updates, *starts = [image[x] for x in scatter.inputs[1:]]
    places, array = scatter.inputs[2].shape, view.array
    sizes = scatter.inputs[1].shape[len(places) :]
    given = {view.kept[a]: (start, sizes[a], scatter.shape[a]) for a, start in zip(scatter.attrs[0], starts, strict=True)}
    moved: dict[int, Node] = {}
    for a, n in enumerate(array.shape):
        if a in given:
            moved[a] = _moved(b, *given[a], view.corner[a], n)
        elif view.window[a] != n:
            moved[a] = b.full(view.corner[a], dtypes.int64, places)
    axes = tuple(sorted(moved))
    order = sorted(range(len(view.kept)), key=view.kept.__getitem__)
    perm = (*range(len(places)), *[len(places) + a for a in order])
    window_of = {view.kept[a]: sizes[a] for a in order}
    windows = b.reshape(b.transpose(updates, perm), (*places, *[window_of.get(a, 1) for a in range(array.ndim)]))
    return b(scatter.op, (image[array], windows, *[moved[a] for a in axes]), (axes, 0))


def _moved(b: Builder, start: Node, size: int, extent: int, corner: int, n: int) -> Node:
    """A start in the view, of ``extent`` elements, as one in an array of ``n``, where nothing is if the window is not in the view."""
    if extent == n:
        return start
    here = b(TABLE["add"], (start, b.const(corner, start.dtype)))
    fits = b(TABLE["le"], (start, b.const(extent - size, start.dtype)))
    inside = b(TABLE["and"], (b(TABLE["ge"], (start, b.const(0, start.dtype))), fits))
    return b(TABLE["select"], (inside, here, b.const(n, start.dtype)))


def _seen(b: Builder, array: Node, view: _View, shape: Shape) -> Node:
    """The view of the updated array, as its other readers take it."""
    if view.window == array.shape and len(view.kept) == array.ndim:
        return b.transpose(array, view.kept)
    ends = tuple(at + n for at, n in zip(view.corner, view.window, strict=True))
    return b.reshape(b(TABLE["slice"], (array,), (view.corner, ends, (1,) * array.ndim)), shape)
