"""Per-row rematerialization: an expensive value of a row, such as the logarithm of its scale, is computed at the start of each row by its readers.

Fusion keeps what is expensive and wanted often. Where each reader of such a value walks a long row for each of its elements, computing it
again is a thousandth of the row's work. That saves a kernel, and writing and reading its results.
"""

from __future__ import annotations

from collections.abc import Iterable

from hologram.graph.fusion.grouping import Grouping
from hologram.graph.fusion.groups import Call, Group, is_unfusible, reduction_axes
from hologram.ir.index_maps import variables
from hologram.ir.node import Node
from hologram.ir.op import MULTI_RESULT
from hologram.ir.symbolic import Expr, Int, atoms

MIN_ROW_ELEMENTS = 1024  # elements of a row that hide a value's computation
MAX_REMATERIALIZED_COST = 64  # cost of a value beyond which it is not rematerialized


def rematerialized_per_row(grouping: Grouping, nodes: list[Node], outputs: Iterable[Node]) -> set[Node]:
    """The materialized values that need not be: their readers compute them at the start of each of their rows. Whole groups of them, each a kernel
    less."""
    candidates = _spread_along_rows(nodes) & grouping.materialized - set(outputs)
    for n in nodes:
        if n.op.kind in ("native", *MULTI_RESULT):
            candidates.difference_update(n.inputs)
    if not candidates:
        return candidates
    for g in grouping.groups:
        if isinstance(g, Group):
            for value in g.nodes:
                candidates -= _read_along(g, value, grouping, candidates)
    for g in grouping.groups:
        if isinstance(g, Call) or not candidates.issuperset(g.nodes):
            candidates.difference_update(() if isinstance(g, Call) else g.nodes)
    return candidates


def _spread_along_rows(nodes: list[Node]) -> set[Node]:
    """Elementwise values that are broadcast along a long last axis."""
    out: set[Node] = set()
    for n in nodes:
        if n.op.name != "broadcast" or not n.ndim or not isinstance(n.shape[-1], int) or n.shape[-1] < MIN_ROW_ELEMENTS:
            continue
        (x,), (shape, dims) = n.inputs, n.attrs
        if not dims or dims[-1] != len(shape) - 1 or x.shape[-1] == 1:
            while x.op.name == "reshape":
                x = x.inputs[0]
            if x.op.kind == "elementwise":
                out.add(x)
    return out


def _read_along(g: Group, value: Node, grouping: Grouping, candidates: set[Node]) -> set[Node]:
    """Those of ``candidates`` that ``value`` reads where its loop of lanes or its reduction goes along them, and itself where it is too expensive."""
    index = g.index_of(value)
    assert index is not None
    reads = grouping.reads(value, index, g)
    wanted = candidates & reads.values.keys()
    out = {value} if reads.cost > MAX_REMATERIALIZED_COST else set[Node]()
    if is_unfusible(value) or not wanted:
        return out | wanted
    along = _names(variables(g.shape)[i] for i in _inner_axes(g))
    last = g.shape[-1] if g.shape else 1
    if not isinstance(last, int) or last < MIN_ROW_ELEMENTS:
        return out | wanted
    for candidate in wanted:
        if any(along & _names(at) for at, _ in reads.values[candidate]):
            out.add(candidate)
    return out


def _inner_axes(g: Group) -> set[int]:
    axes = {a for r in g.nodes for a in reduction_axes(r) or ()}
    return axes | ({len(g.shape) - 1} if g.shape else set())


def _names(indices: Iterable[Int]) -> set[str]:
    return {a.name for e in indices if isinstance(e, Expr) for a in atoms(e)}
