"""Loop blocking: each region of :mod:`hologram.graph.blocking.score_regions` becomes a scan over blocks of one axis.

The exits of one level become one ``scan`` over the blocks of the region's axis. Its body makes what it needs of the region again, for its block: it
takes slices of what has the axis, all of what has not, and the number of the block's first element, for indices. Exits that have the axis are
stacked, sums over it are carried. What is left over behind the last whole block is done once more, after the loop. Sums over the axis then have
not the canonical reduction order.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from hologram import dtypes
from hologram.dtypes import DType
from hologram.graph.blocking.score_regions import NotLocal, Region, Search, axis_of_input, size_of
from hologram.graph.size_conditions import SizeConditions
from hologram.ir.graph import Body, Graph
from hologram.ir.index_maps import is_simple
from hologram.ir.node import Builder, Node
from hologram.ir.op import TABLE, Shape
from hologram.ir.symbolic import prod
from hologram.ir.traversal import CycleError, post_order, reachable
from hologram.primitives.control import project, scan

BLOCK_BYTES = 2**20  # of an entry that a loop computes at a time, about: what the caches of a core have room for
DEVICE_BLOCK_BYTES = 2**25  # on a device, whose kernels want many rows and cost a launch each
MIN_SIZE_RATIO = 8  # an entry is so many times larger than the sums over rows that a loop carries, or it is left
MIN_BLOCK_ROWS = 64  # of a block, where the axis is that of rows: as many as a kernel of attention takes at once

Canonical = Callable[[Graph], Graph]


def block_regions(
    graph: Graph, canonical: Canonical, first_level: int = 0, nbytes: int | None = None, conditions: SizeConditions | None = None
) -> Graph:
    """``graph``, which is canonical, with loops for the exits of its regions, from a level on; the graph itself where it has none.
    ``canonical`` reduces the bodies that it makes;
    ``nbytes``: of a block of an entry, about, :data:`BLOCK_BYTES` for None; ``conditions`` is told for which symbols static graphs have none."""
    search = Search(graph.nodes(), graph.outputs)
    if conditions is not None:
        search.require_none(conditions)
    if not search.entries:
        return graph
    loops: dict[Node, _Loop] = {}
    light = _weights(search.nodes)
    for region in search.regions():
        for level, exits in itertools.groupby(sorted(region.levels, key=region.levels.__getitem__), key=region.levels.__getitem__):
            here = list(exits)
            size = _block(region, here, BLOCK_BYTES if nbytes is None else nbytes)
            if level >= first_level and size:
                loop = _Loop(region, here, size, search.nodes, light)
                loops.update(dict.fromkeys(loop.exits, loop))
    return _rewritten(graph, loops, canonical) if loops else graph


def _block(region: Region, exits: list[Node], nbytes: int) -> int:
    """How many elements of the axis a block of about ``nbytes`` has; 0 where it does not pay to cut it."""
    n, total = region.seed.shape[region.axis], _nbytes(region.seed)
    assert isinstance(n, int)
    wanted = max(1, nbytes * n // total)
    if region.rows == 0:
        return 0 if wanted >= n else max(d for d in range(1, wanted + 1) if n % d == 0)
    least = -(-MIN_BLOCK_ROWS // region.rows)
    wanted = max(least, wanted // least * least)
    carried = sum(_nbytes(e) for e in exits if region.axis_of(e) is None)
    return 0 if 2 * wanted > n or total < MIN_SIZE_RATIO * carried else wanted


def _nbytes(node: Node) -> int:
    return size_of(node) * node.dtype.itemsize


def _rewritten(graph: Graph, loops: dict[Node, _Loop], canonical: Canonical) -> Graph:
    """The graph with the loops' results for their exits; the old graph where loops wait for each other."""
    b = Builder()
    made: dict[Node, Node] = {}
    try:
        order = post_order([*graph.inputs, *graph.outputs], lambda n: loops[n].needs() if n in loops else n.inputs)
    except CycleError:
        return graph
    for n in order:
        if n in loops:
            if n not in made:
                made.update(loops[n].emit(b, made, graph.lines, canonical))
        else:
            made[n] = b.like(n, tuple([made[x] for x in n.inputs]))
    return graph.mapped(made)


def _weights(nodes: Sequence[Node]) -> dict[Node, int]:
    """Of each node, of how many elements in memory it is made, element by element; its own size where that is less."""
    out: dict[Node, int] = {}
    for n in nodes:
        size = n.size if isinstance(n.size, int) else 2**62
        inside = n.op.kind == "elementwise" or is_simple(n) or n.op.name in ("const", "iota")
        out[n] = min(size, sum(out[x] for x in n.inputs)) if inside else size
    return out


class _Loop:
    """The loop of some exits of a region. ``wanted``: what a body computes, by node and the axis in it; ``given``: what it is given."""

    def __init__(self, region: Region, exits: list[Node], size: int, nodes: Sequence[Node], light: dict[Node, int]) -> None:
        self.region, self.exits, self.size, self.light = region, exits, size, light
        self.extent: int = region.seed.shape[region.axis]  # type: ignore[assignment]
        self.given: dict[tuple[Node, int | None], None] = {}
        self.wanted: dict[tuple[Node, int | None], tuple[tuple[Node, int | None], ...]] = {}
        self.indexed = False
        for key in reachable([(e, self.region.axis_of(e)) for e in exits], lambda key: self.wanted.get(key, ())):
            inputs = self._inputs(*key)
            if inputs is None:
                self.given[key] = None
            else:
                self.wanted[key] = inputs
        number = {n: i for i, n in enumerate(nodes)}
        self.given = dict.fromkeys(sorted(self.given, key=lambda key: (number[key[0]], key[1] or 0)))
        self.order = sorted(self.wanted, key=lambda key: (number[key[0]], -1 if key[1] is None else key[1]))

    def needs(self) -> list[Node]:
        return [n for n, _ in self.given]

    def _inputs(self, node: Node, axis: int | None) -> tuple[tuple[Node, int | None], ...] | None:
        """What a body makes a node of; None where it is given the node itself, or its slice."""
        if node in self.exits and axis is None:
            (x,) = node.inputs
            return ((x, self.region.axes[x]),)
        if node.op.name == "const":
            return ()
        if node.op.name == "iota":
            self.indexed |= node.attrs[1] == axis
            return ()
        inside = axis is not None and (node in self.exits or node in self.region.axes)
        if not inside and not is_simple(node) and self.light[node] == node.size:
            return None
        if axis is None:
            return tuple([(x, None) for x in node.inputs])
        try:
            return tuple([(x, axis_of_input(node, k, axis) if x.shape else None) for k, x in enumerate(node.inputs)])
        except NotLocal:
            return None

    # --- outside -------------------------------------------------------------------------------------------------------

    def emit(self, b: Builder, made: dict[Node, Node], lines: dict[Node, Any], canonical: Canonical) -> dict[Node, Node]:
        """The loop, with the nodes that its exits become."""
        count, rest = divmod(self.extent, self.size)
        whole = self.extent - rest
        values = [made[n] for n in self.needs()]
        fixed = [x for x, (_, axis) in zip(values, self.given, strict=True) if axis is None]
        cut = [(x, axis) for x, (_, axis) in zip(values, self.given, strict=True) if axis is not None]
        carried = [e for e in self.exits if self.region.axis_of(e) is None]
        stacked = [e for e in self.exits if self.region.axis_of(e) is not None]
        starts = [b.full(0, _sum_type(e), e.shape) for e in carried]
        xs = [_blocks(b, x, axis, count, self.size) for x, axis in cut]
        if self.indexed:
            first = b(TABLE["mul"], (b(TABLE["iota"], (), ((count,), 0, "int64")), b.full(self.size, dtypes.int64, (count,))))
            xs.append(first)
        body = Body(canonical(self._body(fixed, starts, xs, carried, stacked, lines)))
        node = b(scan, (*fixed, *starts, *xs), (body, len(fixed), len(starts), count, False))
        out: dict[Node, Node] = {}
        for i, (e, start) in enumerate(zip(carried, starts, strict=True)):
            out[e] = b(project, (node,), (i, start.shape, start.dtype.name))
        for i, e in enumerate(stacked, len(carried)):
            axis = self.region.axis_of(e)
            assert axis is not None
            shape = (count, *_with(e.shape, axis, self.size))
            out[e] = _joined(b, b(project, (node,), (i, shape, e.dtype.name)), axis)
        if rest:
            ends = [_slice(b, x, axis, whole, self.extent) for x, axis in cut]
            last = self._copy(b, dict(zip(self.given, self._arguments(fixed, ends), strict=True)), rest, b.full(whole, dtypes.int64, ()))
            for e in self.exits:
                axis, more = self.region.axis_of(e), last[e, self.region.axis_of(e)]
                out[e] = b(TABLE["add"], (out[e], more)) if axis is None else b(TABLE["concatenate"], (out[e], more), (axis,))
        return {e: b.cast(x, e.dtype) for e, x in out.items()}

    def _arguments(self, fixed: list[Node], cut: list[Node]) -> list[Node]:
        """What is fixed and what is cut, in the order of ``given``."""
        first, second = iter(fixed), iter(cut)
        return [next(first) if axis is None else next(second) for _, axis in self.given]

    # --- inside --------------------------------------------------------------------------------------------------------

    def _body(self, fixed: list[Node], starts: list[Node], xs: list[Node], carried: list[Node], stacked: list[Node], lines: dict[Node, Any]) -> Graph:
        b = Builder()
        shapes = [*((x.shape, x.dtype) for x in (*fixed, *starts)), *((x.shape[1:], x.dtype) for x in xs)]
        arguments = [b(TABLE["input"], (), (i, shape, d.name, None)) for i, (shape, d) in enumerate(shapes)]
        before, slices = arguments[len(fixed) : len(fixed) + len(starts)], arguments[len(fixed) + len(starts) :]
        offset = slices.pop() if self.indexed else None
        given = self._arguments(arguments[: len(fixed)], slices)
        here = self._copy(b, dict(zip(self.given, given, strict=True)), self.size, offset)
        sums = [b(TABLE["add"], (x, here[e, None])) for x, e in zip(before, carried, strict=True)]
        where = {here[key]: lines[key[0]] for key in self.order if key[0] in lines}
        return Graph(arguments, [*sums, *[here[e, self.region.axis_of(e)] for e in stacked]], where)

    def _copy(self, b: Builder, made: dict[Any, Node], size: int, offset: Node | None) -> dict[Any, Node]:
        """All that is wanted, for a block of ``size`` that begins at ``offset``, made of what is given."""
        for key in self.order:
            node, axis = key
            inputs = tuple([made[x] for x in self.wanted[key]])
            if node in self.exits and axis is None:
                made[key] = b(node.op, (b.cast(inputs[0], _sum_type(node)),), node.attrs)
            elif node.op.name == "iota" and node.attrs[1] == axis:
                made[key] = self._indices(b, node, size, offset)
            else:
                made[key] = b(node.op, inputs, node.attrs if axis is None else _attrs(node, axis, size))
        return made

    @staticmethod
    def _indices(b: Builder, node: Node, size: int, offset: Node | None) -> Node:
        shape, axis, name = node.attrs
        here = b(node.op, (), (_with(shape, axis, size), axis, name))
        assert offset is not None
        return b(TABLE["add"], (here, b.cast(offset, here.dtype)))


def _attrs(node: Node, axis: int, size: int) -> tuple[Any, ...]:
    """The attributes of a node whose axis has another extent."""
    match node.op.name:
        case "reshape" | "broadcast" | "iota":
            return (_with(node.attrs[0], axis, size), *node.attrs[1:])
        case "slice":
            start, stop, step = node.attrs
            return start, _with(stop, axis, size), step
    return node.attrs


def _sum_type(e: Node) -> DType:
    """What sums over blocks are carried in: narrow floats are rounded once, at the end."""
    return dtypes.compute_type(e.dtype)


def _with(shape: Shape, axis: int, n: int) -> Shape:
    return (*shape[:axis], n, *shape[axis + 1 :])


def _blocks(b: Builder, x: Node, axis: int, count: int, size: int) -> Node:
    """The blocks of an axis, in front."""
    whole, before, after = _slice(b, x, axis, 0, count * size), x.shape[:axis], x.shape[axis + 1 :]
    if prod(before) == 1:
        return b(TABLE["reshape"], (whole,), ((count, *before, size, *after),))
    cut = b(TABLE["reshape"], (whole,), ((*before, count, size, *after),))
    return b(TABLE["transpose"], (cut,), ((axis, *[i for i in range(cut.ndim) if i != axis]),))


def _joined(b: Builder, x: Node, axis: int) -> Node:
    """The inverse of :func:`_blocks`, where nothing is left over."""
    count, before, size, after = x.shape[0], x.shape[1 : axis + 1], x.shape[axis + 1], x.shape[axis + 2 :]
    if prod(before) != 1:
        x = b(TABLE["transpose"], (x,), ((*range(1, axis + 1), 0, *range(axis + 1, x.ndim)),))
    return b(TABLE["reshape"], (x,), ((*before, count * size, *after),))


def _slice(b: Builder, x: Node, axis: int, start: int, stop: int) -> Node:
    if start == 0 and stop == x.shape[axis]:
        return x
    return b.slice_axis(x, axis, start, stop)
