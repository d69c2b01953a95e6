"""Index-set splitting: boxes of an iteration space in which it is known what a concatenation or a pad reads.

Evaluated for one element, a concatenation looks into all of its pieces and selects. Cut at the edges of its pieces, the space falls into boxes, each
a loop nest of its own that reads one piece and stores into its part of the result. The nests share one kernel.

*When.* A select costs a compare and a masked load an element for every piece, a nest some tens of instructions of code and a few nanoseconds; and
neighbouring boxes in a row are not written in the order of memory. So an axis is cut where boxes are long runs of neighbouring elements
(:data:`MIN_BOX_RUN`), and it has more than :data:`MAX_SELECTED_PIECES` parts or is the outermost of a space of at least
:data:`MIN_SPLIT_ELEMENTS`, or :data:`MIN_SPLIT_LANES` if it is the innermost, too. A vector of many scalars is cut too. A short last axis (the
channels of an image put together) is cut into boxes that one nest computes together, so that memory is written in order. Interleaved pieces along an
axis are boxes of every second element, or third, or so: together along the last axis.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from hologram.dtypes import DType
from hologram.graph.kernel.ir import Buffer, Kernel, Store, Value
from hologram.ir.index_maps import Index, variables
from hologram.ir.instruction import Ins
from hologram.ir.node import Node
from hologram.ir.op import Shape
from hologram.ir.symbolic import Expr, Int, atoms, floordiv, mod, prod, split_linear

MIN_BOX_RUN = 64  # neighbouring elements a box has on average, along the cut axis and those after it
MIN_SPLIT_ELEMENTS = 1024  # elements below which a few selects are as good
MIN_SPLIT_LANES = 256  # the same along the innermost axis, where selects are made for each element
MAX_SELECTED_PIECES = 4  # parts along an axis that selects may look through
MAX_BOXES = 1024  # boxes of a space
MAX_UNROLLED_EXTENT = 8  # the longest last axis whose elements one nest computes together


class Box(NamedTuple):
    """The elements ``start + step * i`` for ``i`` in ``shape``."""

    start: tuple[int, ...]
    shape: Shape
    step: tuple[int, ...]

    def elements(self) -> Index:
        """Where its elements stand in the whole space, in terms of its own axes."""
        return tuple(a + s * v for a, s, v in zip(self.start, self.step, variables(self.shape), strict=True))

    def every(self, axis: int, count: int) -> list[Box]:
        """``count`` parts of it, of which each has every ``count``-th element along one axis."""
        n = self.shape[axis]
        assert mod(n, count) == 0
        shape, step = list(self.shape), list(self.step)
        shape[axis], step[axis] = floordiv(n, count), count * self.step[axis]
        starts = [(*self.start[:axis], self.start[axis] + i * self.step[axis], *self.start[axis + 1 :]) for i in range(count)]
        return [Box(start, tuple(shape), tuple(step)) for start in starts]


def whole_box(shape: Shape) -> Box:
    """All elements of a space."""
    return Box((0,) * len(shape), shape, (1,) * len(shape))


def is_large_concatenate(node: Node) -> bool:
    """Whether the node is put together from so many pieces that no loop should look through them for each element."""
    return (
        node.op.name == "concatenate"
        and len(node.inputs) > MAX_SELECTED_PIECES
        and (not isinstance(node.size, int) or node.size >= MIN_SPLIT_ELEMENTS)
    )


def split_index_set(shape: Shape, order: Iterable[Value]) -> list[list[Box]]:
    """The boxes into which a space is better cut, in C order, those together that one nest computes together; none where it stays whole.

    ``order``: what the elements of the whole space are made of.
    """
    edges = _edges(shape, order)
    cuts = {axis: found for axis, found in edges.items() if _pays(shape, axis, len(found) + 1)}
    while cuts and prod(len(found) + 1 for found in cuts.values()) > MAX_BOXES:  # type: ignore[operator]
        del cuts[min(cuts, key=lambda axis: len(cuts[axis]))]
    residues = {axis: n for axis, n in _residues(shape, order).items() if axis not in edges}
    within = {axis: shape[axis] for axis in edges if axis not in cuts and is_short_inner(shape, [axis])}
    last = max((axis for axis, n in enumerate(shape) if n != 1), default=0)
    if last in residues:
        within[last] = residues.pop(last)
    if not cuts and not within and not residues:
        return []
    nests = []
    for ranges in itertools.product(*(_ranges(n, cuts.get(axis, ())) for axis, n in enumerate(shape))):
        box = Box(tuple(a for a, _ in ranges), tuple(n for _, n in ranges), (1,) * len(shape))
        nests += [residue_boxes(part, within) for part in residue_boxes(box, residues)]
    return nests


def residue_boxes(box: Box, axes: Mapping[int, Int]) -> list[Box]:
    """The parts of a box at each index along ``axes``, modulo a number for each."""
    boxes = [box]
    for axis, count in axes.items():
        assert isinstance(count, int)
        boxes = [part for b in boxes for part in b.every(axis, count)]
    return boxes


def _residues(shape: Shape, order: Iterable[Value]) -> dict[int, int]:
    """For each axis the number, if any, modulo which it decides what is read: interleaved pieces."""
    axis_of = {v.name: axis for axis, e in enumerate(variables(shape)) for v in atoms(e)}
    out: dict[int, int] = {}
    for v in order:
        if not isinstance(v, Ins) or v.op != "inside":
            continue
        for what, count in _remainders(v.attrs[0]):
            names = {a.name for a in atoms(what)}
            axis = axis_of.get(names.pop()) if len(names) == 1 else None
            if axis is not None and count <= MAX_UNROLLED_EXTENT and out.setdefault(axis, count) != count:
                return {}
    return {axis: count for axis, count in out.items() if mod(shape[axis], count) == 0}


def _remainders(e: Int) -> list[tuple[Int, int]]:
    """``(x, n)`` of each ``x % n`` in an index expression, for integers n."""
    found = [a for m in e.terms for a in m if a.args] if isinstance(e, Expr) else []
    return [(a.args[0], a.args[1]) for a in found if a.key[0] == "mod" and isinstance(a.args[1], int)]


def is_short_inner(shape: Shape, axes: Sequence[int]) -> bool:
    """Whether ``axes``, neighbours, are so short, and the last, that one loop over all else computes their elements together."""
    before, n = prod(shape[: axes[0]]), prod(shape[a] for a in axes)
    long = not isinstance(before, int) or before >= MIN_BOX_RUN
    return isinstance(n, int) and 1 < n <= MAX_UNROLLED_EXTENT and long and all(m == 1 for m in shape[axes[-1] + 1 :])


def _ranges(n: Int, cuts: Iterable[int]) -> list[tuple[int, Int]]:
    """``(start, extent)`` of the parts of an axis."""
    found = sorted(cuts)
    if not found or not isinstance(n, int):
        return [(0, n)]
    return [(a, b - a) for a, b in itertools.pairwise([0, *found, n])]


def _pays(shape: Shape, axis: int, parts: int) -> bool:
    before, n, inner = prod(shape[:axis]), shape[axis], prod(m for m in shape[axis + 1 :] if isinstance(m, int))
    assert isinstance(n, int) and isinstance(inner, int)
    if n * inner < MIN_BOX_RUN * parts:
        return parts > MAX_SELECTED_PIECES and before == inner == 1  # a vector of scalars
    return parts > MAX_SELECTED_PIECES or (before == 1 and n * inner >= (MIN_SPLIT_LANES if inner == 1 else MIN_SPLIT_ELEMENTS))


def _edges(shape: Shape, order: Iterable[Value]) -> dict[int, set[int]]:
    """For each axis the indices where a guard on that axis alone begins or ends to hold."""
    axis_of = {str(v): axis for axis, v in enumerate(variables(shape)) if isinstance(v, Expr)}
    out: dict[int, set[int]] = {}
    for v in order:
        if not isinstance(v, Ins) or v.op != "inside":
            continue
        e, size = v.attrs
        names = {a.name for a in atoms(e)}
        axis = axis_of.get(next(iter(names))) if len(names) == 1 else None
        if axis is None or not isinstance(size, int):
            continue
        n, linear = shape[axis], split_linear(e, *names)
        if linear is None or not isinstance(n, int):
            continue
        step, first = linear
        if isinstance(step, int) and isinstance(first, int):
            found = {at for at in _crossings(step, first, size) if 0 < at < n}
            if found:
                out.setdefault(axis, set()).update(found)
    return out


def _crossings(step: int, first: int, size: int) -> tuple[int, int]:
    """The least ``i`` from which ``first + step*i`` is, or is no longer, at least 0 and at least ``size``."""
    if step > 0:
        return -(first // step), -((first - size) // step)
    return first // -step + 1, (first - size) // -step + 1


def share_scratch(kernels: Sequence[Kernel]) -> None:
    """Lets kernels of which only one will run use the same scratch."""
    shared: dict[tuple[DType, int], Buffer] = {}
    for k in kernels:
        of: dict[Buffer, Buffer] = {}
        for b in k.scratch:
            number = sum(b.dtype is o.dtype for o in of)
            of[b] = shared.setdefault((b.dtype, number), b)
            if of[b].size < b.size:  # type: ignore[operator]  # sizes of scratch are static
                of[b].size = b.size
        for s in k.walk():
            if isinstance(s, Store):
                s.buffer = of.get(s.buffer, s.buffer)
            elif isinstance(s, Ins) and s.op == "load":
                s.attrs = (of.get(s.attrs[0], s.attrs[0]), *s.attrs[1:])
        k.scratch = list(of.values())
    for i, b in enumerate(shared.values()):
        b.name = f"s{i}" if len(kernels) > 1 else b.name


def join_kernels(kernels: Sequence[Kernel]) -> Kernel:
    """One kernel of several that have the same parameters: it has all of their parallel iterations, in turn."""
    out = kernels[0]
    counts = [k.iterations for k in kernels if isinstance(k.iterations, int)]
    static = len(counts) == len(kernels)
    out.cost = sum(n * k.cost for n, k in zip(counts, kernels, strict=True)) / sum(counts) if static else max(k.cost for k in kernels)
    for k in kernels[1:]:
        out.body += k.body
        out.scratch += [b for b in k.scratch if b not in out.scratch]
        out.iterations, out.work = out.iterations + k.iterations, out.work + k.work
        out.ops += k.ops
        out.symbols = sorted({*out.symbols, *k.symbols})
    return out
