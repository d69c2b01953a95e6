"""Layout of arrays in loops: where all that steps touch of an array is one place along an inner axis, that axis becomes the first.

``A[:, :, k]`` in a loop over k reads an element of each cache line. With the axis in front the window is a stretch of memory. So constants and
carries of a scan of which each use in the body is such a window are transposed before the loop, and carries back after it: two passes over what the
loop goes over once, if it makes about as many steps as the axis has places. Nothing is computed otherwise than before.
"""

from __future__ import annotations

from collections import Counter

from hologram.graph.memory.arena import LINE_BYTES
from hologram.ir.graph import Body, Graph
from hologram.ir.node import Builder, Node
from hologram.ir.op import Shape
from hologram.ir.symbolic import is_static, prod
from hologram.ir.traversal import users_of
from hologram.primitives.control import project, scan

MIN_BYTES = 2**15  # of an array: smaller ones stay in the first-level cache
MIN_SHARE = 0.5  # of an axis that steps go over


def arrange_windows(graph: Graph, fired: Counter[str]) -> Graph:
    """``graph`` with arrays in loops as their windows are; the graph itself where nothing changed."""
    nodes = graph.nodes()
    found = {n: axes for n in nodes if n.op is scan and (axes := _Uses(n).axes())}
    if not found:
        return graph
    fired["arrange-windows"] += len(found)
    build = Builder()
    image: dict[Node, Node] = {}
    for n in nodes:
        inputs = tuple([image[x] for x in n.inputs])
        if n in found:
            image[n] = _arranged(build, n, inputs, found[n])
        elif n.op is project and n.inputs[0] in found:
            image[n] = _result(build, n, inputs[0], found[n.inputs[0]])
        else:
            image[n] = build.like(n, inputs)
    return graph.mapped(image)


class _Uses:
    """What the body of a scan does with its constants and carries."""

    def __init__(self, node: Node) -> None:
        body, self.consts, self.carries, self.length, *_ = node.attrs
        self.graph: Graph = body.graph
        self.readers = users_of(self.graph.nodes())

    def axes(self) -> dict[int, int]:
        """By argument of the body the axis that is to be its first."""
        found = {}
        for i, x in enumerate(self.graph.inputs[: self.consts + self.carries]):
            axis = self._axis(x, self.graph.outputs[i - self.consts] if i >= self.consts else None)
            if axis is not None:
                found[i] = axis
        return found

    def _axis(self, x: Node, end: Node | None) -> int | None:
        """The axis of all windows of an argument; ``end``: what the step makes of it, if it is a carry."""
        if x.ndim < 2 or not is_static(x.size) or x.size * x.dtype.itemsize < MIN_BYTES:
            return None
        axes, waiting, seen = set[int](), [x], {x}
        while waiting:
            value = waiting.pop()
            if sum(o is value for o in self.graph.outputs) != (value is end):
                return None
            for reader in self.readers.get(value, []):
                axis = _window_axis(reader, value)
                if axis is None:
                    return None
                axes.add(axis)
                if reader.op.kind == "scatter" and reader not in seen:
                    seen.add(reader)
                    waiting.append(reader)
        if len(axes) != 1 or (end is not None and end not in seen):
            return None
        (axis,) = axes
        return axis if self._pays(x, axis) else None

    def _pays(self, x: Node, axis: int) -> bool:
        run = prod(x.shape[axis + 1 :]) * x.dtype.itemsize
        n = x.shape[axis]
        return axis > 0 and prod(x.shape[:axis]) > 1 and run < LINE_BYTES and is_static(self.length) and self.length >= MIN_SHARE * n  # type: ignore[operator]


def _window_axis(reader: Node, x: Node) -> int | None:
    """The axis along which a node reads or writes one place of ``x``, all of it along the others; None for any other use of it."""
    if reader.op.kind not in ("gather", "scatter") or reader.inputs[0] is not x or x in reader.inputs[1:]:
        return None
    axes, batch = reader.attrs[0], reader.attrs[-1]
    starts = reader.inputs[1 if reader.op.kind == "gather" else 2]
    if len(axes) != 1 or batch != 0 or starts.ndim != 0:
        return None
    (axis,) = axes
    size = reader.attrs[1][0] if reader.op.kind == "gather" else reader.inputs[1].shape[axis]
    return axis if size == 1 else None


def _order(ndim: int, axis: int) -> tuple[int, ...]:
    """The permutation that puts an axis in front."""
    return (axis, *(a for a in range(ndim) if a != axis))


def _first(shape: Shape, axis: int) -> Shape:
    return tuple(shape[a] for a in _order(len(shape), axis))


def _arranged(build: Builder, node: Node, inputs: tuple[Node, ...], axes: dict[int, int]) -> Node:
    """The scan over transposed arguments."""
    graph: Graph = node.attrs[0].graph
    given = tuple(build.transpose(x, _order(x.ndim, axes[i])) if i in axes else x for i, x in enumerate(inputs))
    return build(scan, given, (Body(_body(graph, axes)), *node.attrs[1:]))


def _body(graph: Graph, axes: dict[int, int]) -> Graph:
    """The body for arguments that have some axis in front."""
    build = Builder()
    image: dict[Node, Node] = {}
    moved: dict[Node, int] = {}
    for i, x in enumerate(graph.inputs):
        shape = _first(x.shape, axes[i]) if i in axes else x.shape
        image[x] = build(x.op, (), (x.attrs[0], shape, *x.attrs[2:]))
        if i in axes:
            moved[x] = axes[i]
    for n in graph.nodes():
        if n in image:
            continue
        inputs = tuple([image[x] for x in n.inputs])
        axis = moved.get(n.inputs[0]) if n.inputs else None
        if axis is None:
            image[n] = build.like(n, inputs)
        elif n.op.kind == "gather":
            window = build(n.op, inputs, ((0,), (1,), 0))
            image[n] = build.reshape(window, n.shape)
        else:
            x, updates, start = inputs
            image[n] = build(n.op, (x, build.reshape(updates, _first(updates.shape, axis)), start), ((0,), 0))
            moved[n] = axis
    return graph.mapped(image)


def _result(build: Builder, node: Node, loop: Node, axes: dict[int, int]) -> Node:
    """A result of the scan as it was before."""
    k, shape, dtype = node.attrs
    _, consts, carries, *_ = loop.attrs
    axis = axes.get(consts + k) if k < carries else None
    if axis is None:
        return build(project, (loop,), node.attrs)
    out = build(project, (loop,), (k, _first(shape, axis), dtype))
    order = _order(len(shape), axis)
    return build.transpose(out, tuple(order.index(a) for a in range(len(shape))))
