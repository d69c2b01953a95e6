"""Fusion: which values are computed together in one kernel.

A *root* is a value that some kernel computes as such: an output, a reduction, a scan, or a value worth keeping because it is dear
and wanted more than once. Everything else is recomputed where it is wanted, in registers. A :class:`Group` is a set of roots that
share one iteration space ``shape``; if ``axes`` is set, its reductions and scans run along those neighbouring axes, and roots live
either at full level (one value an element) or at row level (one value a row).

Roots join a group greedily in topological order. The invariant: every root that a member reads is in an earlier group, or in
the same group and read exactly at the reader's own element or row. So groups in order of creation are a schedule.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from functools import partial
from typing import TypeAlias

from hologram import dtypes
from hologram.graph.bounded import Worklist
from hologram.graph.legalize.paged_scans import unpaged
from hologram.graph.legalize.short_reductions import taken_apart
from hologram.graph.library.attention.nodes import kept_for, made_again, of_scores
from hologram.graph.schedule.index_split import is_assembled
from hologram.ir.graph import Graph
from hologram.ir.index_maps import Guard, Index, requests, take_index, variables
from hologram.ir.leaves import Held
from hologram.ir.node import Node, topological
from hologram.ir.op import MULTIPLE, Shape
from hologram.ir.symbolic import is_static, var
from hologram.primitives.reductions import LAST

DEAR = 12  # cost from which a value is kept rather than computed twice
SPREAD = 8  # uses that a broadcast along a new axis stands for
MOST_ROOTS = 64  # of a group: memory is read and written in so many streams at a time, and each may take the place of what each reads
KERNEL_COST = 700  # cost at which a kernel is full: LLVM's time grows faster than linearly with a function's length
SWOLLEN, SWOLLEN_BYTES = 16, 2**24  # how many times larger than its sources, and how large, a value is computed twice rather than kept
SWOLLEN_DEAR = 10 * DEAR  # cost from which even such a value is kept
RESHAPES = 8  # how many compose in one index: one that mixes axes may double it
LOOK_BACK = 32  # groups tried for a root
_IN_MEMORY = ("leaf", "project", *MULTIPLE)

Axes: TypeAlias = tuple[int, ...]


class Group:
    """One kernel to be: its iteration space and its roots in topological order."""

    __slots__ = ("shape", "axes", "roots", "cost", "members")

    def __init__(self, shape: Shape, axes: Axes | None) -> None:
        self.shape, self.axes, self.cost = shape, axes, 0
        self.roots: list[Node] = []
        self.members: set[Node] = set()

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
        if reduction_axes(node) is not None and node.op.kind == "reduce" or is_last(node):
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


def is_last(node: Node) -> bool:
    """Whether the node is the last running value of a scan, a reduction made by :mod:`hologram.graph.legalize.reductions_scans`."""
    return node.op.kind == "scan" and node.attrs[1] == LAST


def is_alone(node: Node) -> bool:
    """Whether the node has a group of its own."""
    return node.op.kind in ("scatter", "native", "attention", "digits", "runs")


def reduction_axes(node: Node) -> Axes | None:
    """The axes along which a reduction or scan runs; None for other ops."""
    if node.op.kind == "reduce":
        return node.attrs[0] if node.op.monoid is not None else (node.attrs[0],)
    return (node.attrs[0],) if node.op.kind == "scan" else None


def space(node: Node) -> Shape:
    """The iteration space of a root: a reduction's is that of what it reduces, an unpaged scan's that of its pages."""
    base = unpaged(node)
    if base is not None:
        return base.shape
    return node.inputs[0].shape if reduction_axes(node) is not None else node.shape


def fuse(graph: Graph, halves: bool = False) -> list[Group | Call]:
    """Groups in an order in which they can run. ``halves``: what is kept to be read as float32, but is made of 16-bit floats, is kept as these."""
    from hologram.graph.fusion.rematerialize_rows import row_heads

    nodes = topological(graph.outputs)
    grouping = Grouping(nodes, find_roots(nodes, graph.outputs, halves))
    heads = row_heads(grouping, nodes, graph.outputs)
    return Grouping(nodes, grouping.roots - heads).groups if heads else grouping.groups


# --- roots -----------------------------------------------------------------------------------------------------------


def own_cost(node: Node) -> int:
    return node.op.cost if node.op.kind not in _IN_MEMORY else 0


def find_roots(nodes: list[Node], outputs: Iterable[Node], halves: bool = False) -> set[Node]:
    """Values that are computed as such."""
    roots = {n for n in nodes if n.op.kind in ("reduce", "scan") or is_alone(n) or unpaged(n) is not None or is_assembled(n)}
    roots.update(n for n in outputs if n.op.kind != "leaf" or n.op.name in ("const", "iota"))
    swollen = {n for n in blown_up(nodes) if isinstance(n.size, int) and n.size * n.dtype.itemsize >= SWOLLEN_BYTES}
    roots |= _cuts(nodes) - swollen
    roots |= _around_control(nodes) | _under_windows(nodes) | _gathered_twice(nodes) | kept_for(nodes, halves)
    inside = of_scores(nodes) | made_again(nodes, halves)
    roots = {n for n in roots - inside if n.size != 0} | {n for n in outputs if n in inside}
    dear = partial(_dear, nodes, roots, swollen, inside, halves)
    kept = roots | dear()
    apart = taken_apart(nodes, kept)
    return roots | dear(apart) if apart else kept


def _dear(nodes: list[Node], base: set[Node], swollen: set[Node], never: set[Node], halves: bool, apart: Set[Node] = frozenset()) -> set[Node]:
    """What is kept because several read it and it would cost much to compute again, unless kernels compute what is ``apart`` once anyway; and
    what lies behind so many reshapes that its place is dear. Nothing is computed again at any cost: that doubles with every step that reads the
    one before it twice."""
    uses, roots = _uses(nodes, base), set(base)
    cost: dict[Node, int] = {}
    mixed: dict[Node, int] = {}  # reshapes on the way from what is in memory
    for n in nodes:
        if n.op.kind in _IN_MEMORY:
            cost[n] = mixed[n] = 0
            continue
        total = own_cost(n) + sum(0 if x in roots else cost[x] for x in n.inputs)
        cost[n] = min(total, max(SWOLLEN_DEAR, 10 * DEAR))
        dear = DEAR if uses[n] < SPREAD or n.op.kind == "movement" else 2
        dear = SWOLLEN_DEAR if n in swollen else dear
        shared = uses[n] >= 2 and total >= dear and (n.op.kind != "movement" or n.op.cost > 0)
        mixed[n] = (n.op.name == "reshape") + max((0 if x in roots else mixed[x] for x in n.inputs), default=0)
        behind = mixed[n] > RESHAPES and n not in swollen
        if n not in never and ((shared and n not in apart) or behind):
            widened = halves and n.op.name == "cast" and n.dtype is dtypes.float32 and n.inputs[0].dtype.itemsize == 2 and n.inputs[0].dtype.is_float
            roots.add(n.inputs[0] if widened else n)
            cost[n] = own_cost(n)
    return roots


def blown_up(nodes: list[Node]) -> set[Node]:
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
        if computed_here and size >= SWOLLEN * source[n]:
            out.add(n)
    return out


def _cuts(nodes: list[Node]) -> set[Node]:
    """Long programs are cut into segments of bounded cost; what crosses a cut is kept, unless it is cheaply made of what crosses it anyway."""
    segment: dict[Node, int] = {}
    running, current = 0, 0
    reach: dict[Node, int] = {}  # the last segment that wants a value
    crossing: set[Node] = set()
    for n in nodes:
        if n.op.kind == "leaf":
            continue
        running += max(1, own_cost(n))
        if running > KERNEL_COST:
            running, current = 0, current + 1
        segment[n] = current
        for x in map(_source, n.inputs):
            reach[x] = current
            if segment.get(x, current) != current:
                crossing.add(x)
    return {n for n in crossing if n.op.kind not in ("leaf", *MULTIPLE)} - _remade(nodes, crossing, reach)


def _remade(nodes: list[Node], crossing: set[Node], reach: dict[Node, int]) -> set[Node]:
    """What need not be kept for the segments that want it: a few operations on one value that stands in memory as long, or on two."""
    made_of: dict[Node, tuple[frozenset[Node], int]] = {}
    out: set[Node] = set()
    for n in nodes:
        if n.op.kind == "leaf":
            made_of[n] = frozenset(), 0
        elif n.op.kind not in ("elementwise", "movement") or any(x not in made_of for x in n.inputs):
            made_of[n] = frozenset([n]), 0
        else:
            sources = frozenset[Node]().union(*(made_of[x][0] for x in n.inputs))
            cost = own_cost(n) + sum(made_of[x][1] for x in n.inputs)
            made_of[n] = sources, cost
            stays = len(sources) <= 2 and cost < DEAR and all(reach.get(s, 0) >= reach.get(n, 0) for s in sources)
            if n in crossing and sources and stays:
                out.add(n)
            elif n in crossing or cost >= DEAR:
                made_of[n] = frozenset([n]), 0
    return out


def _around_control(nodes: list[Node]) -> set[Node]:
    """What nodes of several results read and give, what kernels that a backend has ready read, and pairs that runs are of: it stands in memory."""
    roots = {n for n in nodes if n.op.kind == "project"}
    for n in nodes:
        if n.op.kind in ("native", *MULTIPLE):
            read = operands(n) if n.op.kind == "control" else n.inputs
            roots.update(x for x in read if x.op.name not in ("input", "leaf"))
        elif n.op.kind == "runs":
            roots.add(n.inputs[-2])
    return roots


def _gathered_twice(nodes: list[Node]) -> set[Node]:
    """What passes of radix sorts would gather both where they count and where they move it."""
    return {n.inputs[0] for n in nodes if n.op.kind == "digits" and _gathers(n.inputs[0])}


def _gathers(node: Node) -> bool:
    """Whether there is a gather among what makes ``node``, as far as that is computed element by element."""
    stack, seen = [node], set[Node]()
    while stack:
        n = stack.pop()
        if n.op.kind == "gather":
            return True
        if n not in seen and n.op.kind in ("elementwise", "movement"):
            seen.add(n)
            stack += n.inputs
    return False


def operands(node: Node) -> list[Node]:
    """What a control node reads, as it stands in memory: a reshape is what it reshapes."""
    out = []
    for x in node.inputs:
        while x.op.name == "reshape":
            (x,) = x.inputs
        out.append(x)
    return out


def _under_windows(nodes: list[Node]) -> set[Node]:
    """The factors of products of windows: read so often that none is computed, guarded at an edge or fetched from afar anew."""
    out: set[Node] = set()
    for n in nodes:
        if n.op.name != "mul" or n.inputs[0].op.name != "broadcast" or n.inputs[1].op.name != "broadcast":
            continue
        sources = [_windowed(f.inputs[0]) for f in n.inputs]
        for f, source, other in zip(n.inputs, sources, sources[::-1], strict=True):
            often = is_static(n.size) and n.size >= SPREAD * f.inputs[0].size  # type: ignore[operator]
            if often and source is not None and source.op.cost and source.op.kind not in _IN_MEMORY:
                out.add(source)
            elif often and source is None and other is not None and _is_moved(f.inputs[0]):
                out.add(f.inputs[0])
    return out


def _is_moved(n: Node) -> bool:
    """Whether ``n`` reads memory in another order than its own, or parts of it; what is held is in the order in which it is read."""
    if any(isinstance(a, Held) for a in _source(n).attrs):
        return False
    while n.op.name == "reshape":
        n = n.inputs[0]
    return n.op.kind == "movement"


def _windowed(n: Node) -> Node | None:
    """What ``n`` has windows of, None if it is no such thing."""
    found = False
    while n.op.kind == "movement" and not n.op.cost:
        found = found or n.op.name == "windows"
        n = n.inputs[0]
    return n if found else None


def _source(n: Node) -> Node:
    """What a movement moves or pads: that is kept, and read by index, rather than moved."""
    while n.op.kind == "movement" and (not n.op.cost or n.op.name == "pad"):
        n = n.inputs[0]
    return n


def _uses(nodes: list[Node], roots: set[Node]) -> dict[Node, int]:
    """How often a value is wanted: once a reader, but a movement passes on what its own readers want."""
    uses = dict.fromkeys(nodes, 0)
    for n in reversed(nodes):
        times = 1
        if n.op.kind == "movement" and n not in roots:
            times = max(1, uses[n])
            if n.op.name == "broadcast" and n.inputs[0].size != n.size:
                times = max(times, SPREAD)
        for x in set(n.inputs):
            uses[x] = min(uses[x] + times, SPREAD)  # more makes no difference, and doubles with every roll
    return uses


# --- groups ----------------------------------------------------------------------------------------------------------


class Reads:
    """What a root reads when it computes its element ``index``: other roots and where, and the cost on the way."""

    __slots__ = ("roots", "cost")

    def __init__(self) -> None:
        self.roots: dict[Node, set[tuple[Index, Guard]]] = {}
        self.cost = 0


class Grouping:
    """Roots in groups: ``groups`` in an order in which they can run, ``group_of`` the number of each root's."""

    def __init__(self, nodes: list[Node], roots: set[Node]) -> None:
        self.roots, self.blown_up = roots, blown_up(nodes)
        self.groups: list[Group | Call] = []
        self.group_of: dict[Node, int] = {}
        for n in nodes:
            if n.op.kind in MULTIPLE:
                self._place_control(n, [p for p in nodes if p.op.kind == "project" and p.inputs[0] is n])
            elif n in roots and n.op.kind != "project":
                self._place(n)

    def _place_control(self, node: Node, results: list[Node]) -> None:
        self.group_of.update(dict.fromkeys(results, len(self.groups)))
        self.groups.append(Call(node, results))

    def _place(self, root: Node) -> None:
        axes = reduction_axes(root)
        fresh = Group(space(root), axes)
        index = fresh.index_of(root)
        assert index is not None
        reads = self.reads(root, index, fresh)
        first = max((self.group_of[d] for d in reads.roots), default=-1)
        for k in range(max(first, len(self.groups) - LOOK_BACK, 0), len(self.groups)):
            g = self.groups[k]
            if isinstance(g, Group) and self._fits(g, root, axes, reads):
                break
        else:
            k = len(self.groups)
            self.groups.append(fresh)
            g = fresh
        g.axes = axes if g.axes is None else g.axes
        g.roots.append(root)
        g.members.add(root)
        g.cost += reads.cost
        self.group_of[root] = k

    def _is_product(self, root: Node) -> bool:
        """Whether a root sums terms much larger than what they are made of: its kernel wants all registers for itself."""
        return root.op.kind == "reduce" and root.inputs[0] in self.blown_up

    def _fits(self, g: Group, root: Node, axes: Axes | None, alone: Reads) -> bool:
        if len(g.roots) >= MOST_ROOTS or g.cost + alone.cost > KERNEL_COST or is_alone(root) or is_alone(g.roots[0]):
            return False
        if self._is_product(root) and any(self._is_product(m) for m in g.roots):
            return False
        if axes is not None and any(reduction_axes(m) is not None and m.op.kind != root.op.kind for m in g.roots):
            return False  # a scan goes by groups of its own width
        if any(m.op.kind == "scan" and is_last(m) != is_last(root) for m in g.roots):
            return False  # totals of pages come first; the scan itself is run again once the carries are known, rather than stored
        if axes is not None and (g.shape != space(root) or (g.axes is not None and g.axes != axes)):
            return False
        for m in (root, *g.roots):
            if is_assembled(m) and ((axes or g.axes) is not None or (g.cost + alone.cost) * len(m.inputs) > KERNEL_COST):
                return False  # the loops of rows are not cut in boxes, and each box has all of a kernel's code
        index = g.index_of(root, axes)
        if index is None:
            return False
        if axes is not None and g.axes is None and any(g.index_of(m, axes) != g.index_of(m) for m in g.roots):
            return False
        reads = self.reads(root, index, g)
        for d, places in reads.roots.items():
            if d in g.members and {p for p, _ in places} != {g.index_of(d, axes or g.axes)}:
                return False
        return True

    def reads(self, root: Node, index: Index, g: Group) -> Reads:
        """Follows a root's inputs down to other roots and leaves."""
        out = Reads()
        stack: Worklist[tuple[Node, Index, Guard]] = Worklist("fuse")
        if reduction_axes(root) is not None:
            stack.add([(root.inputs[0], variables(g.shape), ())])
            out.cost += root.op.cost
        elif (base := unpaged(root)) is not None:
            stack.add([(base, index, ())])
        elif is_alone(root):
            stack.add((x, variables(x.shape), ()) for x in root.inputs)
            out.cost += root.op.cost
        elif root.op.kind != "leaf":
            self._descend(root, index, (), stack, out)
        for node, at, guard in stack:
            if node.op.kind == "leaf":
                continue
            if node in self.roots:
                out.roots.setdefault(node, set()).add((at, guard))
            else:
                self._descend(node, at, guard, stack, out)
        return out

    def _descend(self, node: Node, at: Index, guard: Guard, stack: Worklist[tuple[Node, Index, Guard]], out: Reads) -> None:
        out.cost += node.op.cost
        if node.op.kind == "gather":
            where, then = take_index(node, at)
            stack.add([(node.inputs[1], where, guard)])
            stack.add([(node.inputs[0], then(var(f"taken{len(stack.waiting)}")), guard)])
        else:
            stack.add(requests(node, at, guard))
