"""Updates of views: a scatter to a slice or a transpose of an array, which is then written back, becomes a scatter to the array itself.

``x = x.at[2].set(x[2].at[i].set(v))`` changes the elements that ``v`` has. As it is written it copies the slice, and then writes all of the slice.
PyTorch's functional graphs are full of these, since there each assignment to a view is an update of the view and one of its base. What else reads
the updated view reads it of the updated array.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from hologram import dtypes
from hologram.graph.canonical.constant_windows import constant_corner
from hologram.ir.graph import Graph
from hologram.ir.node import Builder, Node
from hologram.ir.op import TABLE, Shape
from hologram.ir.symbolic import is_static

Axes = tuple[int | None, ...]

MIN_INDEX_BITS = 32  # of starts to which the corner of a slice is added


class _View(NamedTuple):
    """What a scatter writes to, as a view of ``array``: its window at ``corner`` of shape ``window``, then moved.

    ``chain``: the nodes of the view, from the array on. ``axes``: for each axis of the scatter's operand the axis of the array; None for an axis of
    one element that the array lacks. ``restored``: the movement of the updated array after which it is what the graph had.
    """

    array: Node
    corner: tuple[int, ...]
    window: Shape
    chain: tuple[Node, ...]
    axes: Axes
    restored: tuple[Node, ...]


def update_bases(graph: Graph, fired: Counter[str]) -> Graph:
    """``graph`` with scatters to arrays for those to views of them; the graph itself where nothing changed."""
    nodes = graph.nodes()
    views: dict[Node, _View] = {}
    wholes: dict[Node, Node] = {}  # nodes that are the updated arrays, with the scatters
    for n in nodes:
        scatter = _updated(n)
        if scatter is not None and scatter not in views and scatter not in wholes and n not in views:  # others are of the next round
            view = _written_back(n, scatter)
            if view is not None:
                views[scatter], wholes[n] = view, scatter
    if not views:
        return graph
    b = Builder()
    image: dict[Node, Node] = {}
    updated: dict[Node, Node] = {}
    for n in nodes:
        if n in wholes:
            image[n] = _again(b, views[wholes[n]].restored, updated[wholes[n]])
        elif n in views:
            updated[n] = _on_base(b, n, views[n], image)
            image[n] = _again(b, views[n].chain, updated[n])
        else:
            image[n] = b.like(n, tuple([image[x] for x in n.inputs]))
    fired.update({"update-bases": len(views)})
    return graph.mapped(image)


def _again(b: Builder, chain: Sequence[Node], array: Node) -> Node:
    """The same movement of another array."""
    for n in chain:
        array = b.like(n, (array,))
    return array


def _updated(node: Node) -> Node | None:
    """The scatter to a view whose result ``node`` may write back to the view's array; None for other nodes."""
    if node.op.name not in ("scatter_set", "transpose", "reshape"):
        return None
    below = _bottom(node.inputs[1] if node.op.name == "scatter_set" else node)
    return below if below.op.kind == "scatter" and below.attrs[1] == 0 and below is not node else None


def _bottom(node: Node) -> Node:
    while node.op.name in ("reshape", "transpose"):
        (node,) = node.inputs
    return node


def _chain(top: Node) -> list[Node]:
    """The reshapes and transposes that end with ``top``, the first one first."""
    found = []
    while top.op.name in ("reshape", "transpose"):
        found.append(top)
        (top,) = top.inputs
    return found[::-1]


def _followed(axes: Axes, chain: list[Node]) -> Axes | None:
    """Where the axes of an array are after movement ops: ``axes[i]`` stands for what axis i is at first. None where axes are split or joined."""
    for n in chain:
        if n.op.name == "transpose":
            axes = tuple(axes[a] for a in n.attrs[0])
        else:
            found = _reshaped(axes, n.inputs[0].shape, n.shape)
            if found is None:
                return None
            axes = found
    return axes


def _reshaped(axes: Axes, old: Shape, new: Shape) -> Axes | None:
    """The axes after a reshape that adds or drops axes of one element; which of these are which does not matter."""
    if [n for n in old if n != 1] != [n for n in new if n != 1]:
        return None
    others = iter([a for a, n in zip(axes, old, strict=True) if n != 1])
    ones = iter([a for a, n in zip(axes, old, strict=True) if n == 1])
    return tuple(next(ones, None) if n == 1 else next(others) for n in new)


def _written_back(node: Node, scatter: Node) -> _View | None:
    """The view that ``scatter`` updates, if ``node`` is its array, perhaps moved, with the updated view in its place."""
    is_window = node.op.name == "scatter_set"
    view = _sliced(node, scatter) if is_window else _moved_whole(node, scatter)
    if view is None or not all(is_static(n) for n in (*view.array.shape, *scatter.shape)):
        return None
    back = _followed(tuple(range(scatter.ndim)), _chain(node.inputs[1] if is_window else node))
    if back is not None and is_window:
        back = _reshaped(back, node.inputs[1].shape, _window(node))
    axes = _followed(tuple(range(view.array.ndim)), list(view.restored))
    sizes = _window(node) if is_window else node.shape
    if back is None or axes is None or not all(n == 1 or (s is not None and view.axes[s] == a) for a, n, s in zip(axes, sizes, back, strict=True)):
        return None
    return view if all(view.axes[a] is not None for a in scatter.attrs[0]) else None


def _window(scatter: Node) -> Shape:
    """The shape of the windows of a scatter."""
    return scatter.inputs[1].shape[scatter.inputs[2].ndim - scatter.attrs[1] :]


def _sliced(node: Node, scatter: Node) -> _View | None:
    """The view as the window of an array to which ``node`` writes."""
    corner, part, array = constant_corner(node), _bottom(scatter.inputs[0]), _bottom(node.inputs[0])
    if corner is None or part.op.name != "slice" or part.inputs[0] is not array:
        return None
    starts, _, steps = part.attrs
    restored, chain = _chain(node.inputs[0]), _chain(scatter.inputs[0])
    found = _followed(tuple(range(array.ndim)), restored)
    axes = _followed(tuple(range(part.ndim)), chain)
    if axes is None or found is None or any(s != 1 for s in steps):
        return None
    given = {a: (at, n) for a, at, n in zip(found, corner, _window(node), strict=True) if a is not None}
    if any(given.get(a, (0, 1)) != (at, n) for a, (at, n) in enumerate(zip(starts, part.shape, strict=True))):
        return None
    if any(starts) and any(s.dtype.bits < MIN_INDEX_BITS for s in scatter.inputs[2:]):
        return None
    return _View(array, starts, part.shape, (part, *chain), axes, tuple(restored))


def _moved_whole(node: Node, scatter: Node) -> _View | None:
    """The view as a transpose of an array of the shape of ``node``."""
    array, chain = _bottom(scatter.inputs[0]), _chain(scatter.inputs[0])
    if array.shape != node.shape or not any(n.op.name == "transpose" for n in chain):
        return None
    axes = _followed(tuple(range(array.ndim)), chain)
    return None if axes is None else _View(array, (0,) * array.ndim, array.shape, tuple(chain), axes, ())


def _on_base(b: Builder, scatter: Node, view: _View, image: dict[Node, Node]) -> Node:
    """The scatter to the view's array. A window that does not lie in the view is dropped, as it was."""
    updates, *starts = [image[x] for x in scatter.inputs[1:]]
    places, array = scatter.inputs[2].shape, view.array
    sizes = scatter.inputs[1].shape[len(places) :]
    moved: dict[int, Node] = {a: b.full(at, dtypes.int64, places) for a, at in enumerate(view.corner) if view.window[a] != array.shape[a]}
    for a, start in zip(scatter.attrs[0], starts, strict=True):
        axis = view.axes[a]
        assert axis is not None
        moved[axis] = _moved(b, start, sizes[a], scatter.shape[a], view.corner[axis], array.shape[axis])
    axis_of = {a: i for i, a in enumerate(view.axes) if a is not None}
    rest = [i for i, a in enumerate(view.axes) if a is None]  # of one element
    perm = [len(places) + i for i in (*rest, *[axis_of[a] for a in sorted(axis_of)])]
    windows = b.transpose(updates, (*range(len(places)), *perm))
    windows = b.reshape(windows, (*places, *[sizes[axis_of[a]] if a in axis_of else 1 for a in range(array.ndim)]))
    axes = tuple(sorted(moved))
    return b(scatter.op, (image[array], windows, *[moved[a] for a in axes]), (axes, 0))


def _moved(b: Builder, start: Node, size: Any, extent: Any, corner: int, n: Any) -> Node:
    """A start in the view, of ``extent`` elements, as one in an array of ``n``, where nothing is if the window is not in the view."""
    if extent == n:
        return start
    here = b(TABLE["add"], (start, b.const(corner, start.dtype)))
    fits = b(TABLE["le"], (start, b.const(extent - size, start.dtype)))
    inside = b(TABLE["and"], (b(TABLE["ge"], (start, b.const(0, start.dtype))), fits))
    return b(TABLE["select"], (inside, here, b.const(n, start.dtype)))
