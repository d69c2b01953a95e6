"""Fusion groups: nodes that become one kernel, and calls of loops, branches and host routines between them."""

from __future__ import annotations

from typing import TypeAlias

from hologram import dtypes
from hologram.graph.legalize.paged_scans import unpaged
from hologram.graph.library.attention.nodes import is_widened
from hologram.ir.index_maps import Index, variables
from hologram.ir.node import Node
from hologram.ir.op import Shape
from hologram.primitives.reductions import LAST

KERNEL_COST = 700  # cost at which a kernel is full: LLVM's time grows faster than linearly with a function's length
EXPANSION_RATIO, MIN_EXPANDING_BYTES = 16, 2**24  # how many times larger than its sources, and how large, a value is computed twice rather than kept
Axes: TypeAlias = tuple[int, ...]


class Group:
    """One kernel to be: its iteration space and its materialized values (``nodes``) in topological order; ``streams``: the large arrays that it reads
    and writes."""

    __slots__ = ("shape", "axes", "nodes", "cost", "members", "streams")

    def __init__(self, shape: Shape, axes: Axes | None) -> None:
        self.shape, self.axes, self.cost = shape, axes, 0
        self.nodes: list[Node] = []
        self.members: set[Node] = set()
        self.streams: set[Node] = set()

    def row_shapes(self) -> tuple[Shape, Shape]:
        """The shapes of a row-level value: with the reduced axes gone, and kept as 1."""
        axes = self.axes or ()
        gone = tuple(n for i, n in enumerate(self.shape) if i not in axes)
        return gone, tuple(1 if i in axes else n for i, n in enumerate(self.shape))

    def index_of(self, node: Node, axes: Axes | None = None) -> Index | None:
        """The element at which this group computes ``node``: at full level, at row level, or None where it cannot."""
        axes = self.axes if axes is None else axes
        full = variables(self.shape)
        base = unpaged(node)
        if base is not None and base.shape == self.shape:
            return full
        if reduction_axes(node) is not None and node.op.kind == "reduce" or is_scan_total(node):
            return tuple(v for i, v in enumerate(full) if i not in (axes or ())) if node.inputs[0].shape == self.shape else None
        if node.shape == self.shape:
            return full
        if axes is None:
            return None
        gone, kept = self.row_shapes()
        if node.shape == gone:
            return tuple(v for i, v in enumerate(full) if i not in axes)
        if node.shape == kept:
            return tuple(0 if i in axes else v for i, v in enumerate(full))
        return None


class Call:
    """A control node or a host op in the order of groups: it reads and writes memory, kernels of its own bodies or a routine do the work."""

    __slots__ = ("node", "results")

    def __init__(self, node: Node, results: list[Node]) -> None:
        self.node, self.results = node, results


def is_scan_total(node: Node) -> bool:
    """Whether the node is the last running value of a scan, a reduction made by :mod:`hologram.graph.legalize.scans`."""
    return node.op.kind == "scan" and node.attrs[1] == LAST


def is_unfusible(node: Node) -> bool:
    """Whether the node has a group of its own."""
    return node.op.kind in ("scatter", "native", "attention", "digits", "runs")


def reduction_axes(node: Node) -> Axes | None:
    """The axes along which a reduction or scan runs; None for other ops."""
    if node.op.kind == "reduce":
        return node.attrs[0] if node.op.monoid is not None else (node.attrs[0],)
    return (node.attrs[0],) if node.op.kind == "scan" else None


def iteration_space(node: Node) -> Shape:
    """The iteration space of a materialized value: a reduction's is that of what it reduces, an unpaged scan's that of its pages."""
    base = unpaged(node)
    if base is not None:
        return base.shape
    return node.inputs[0].shape if reduction_axes(node) is not None else node.shape


def operands(node: Node) -> list[Node]:
    """What a control node reads, as it stands in memory: a reshape is what it reshapes."""
    out = []
    for x in node.inputs:
        while x.op.name == "reshape":
            (x,) = x.inputs
        out.append(x)
    return out


def narrowest(n: Node) -> Node:
    """What is kept in the place of ``n``: of a narrow float that was widened, before or after it was moved, the narrow float itself where it stands.
    Units of matrices multiply these alone, and memory has less to move."""
    x = _before_moves(n)
    return _before_moves(x.inputs[0]) if is_widened(x) and x.dtype is dtypes.float32 else n


def _before_moves(x: Node) -> Node:
    while x.op.name in ("reshape", "transpose"):
        x = x.inputs[0]
    return x


def expanding_values(nodes: list[Node]) -> set[Node]:
    """Values much larger than all they are made of, such as the terms of a matrix product: large ones are computed twice rather than kept."""
    source: dict[Node, int] = {}
    out: set[Node] = set()
    for n in nodes:
        size = n.size
        if not isinstance(size, int):
            continue
        largest = max((source.get(x, size) for x in n.inputs), default=size)
        computed_here = n.op.kind in ("elementwise", "movement", "gather")
        source[n] = min(size, largest) if computed_here else size
        if computed_here and size >= EXPANSION_RATIO * source[n]:
            out.add(n)
    return out
