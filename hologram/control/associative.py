"""``associative_scan``: running values of any associative function, in logarithmic depth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hologram import tree
from hologram.errors import ArgumentError, IndexOutOfRange, ShapeError
from hologram.ir.symbolic import Int, floordiv, is_static
from hologram.support.user_lines import located
from hologram.trace.checks import as_function, integer
from hologram.trace.decisions import decided
from hologram.trace.operators import node_of, wrap
from hologram.trace.recorder import plain
from hologram.trace.symbolic_extent import extent
from hologram.trace.tensor import Tensor, namespace
from hologram.transform.nodes import placed


def associative_scan(fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """Parallel prefix scan: ``y[i] = fn(y[i-1], x[i])`` along ``axis`` for an associative ``fn``, evaluated on pairs, so that steps run in parallel.

    ``elems`` is a pytree of arrays that agree in the extent of ``axis``; ``fn`` takes and gives pytrees of its structure and works element by element
    along that axis. ``reverse`` runs from the other end. The order of combination follows from the extent alone. Raises ArgumentError, ShapeError or
    TreeError where this does not hold.

    >>> hg.associative_scan(hnp.add, hnp.asarray([1, 2, 3, 4]))
    Tensor([ 1,  3,  6, 10], dtype=int64)
    """
    as_function(fn, "associative_scan")
    hnp = namespace()
    leaves, treedef = tree.flatten(elems)
    arrays = [hnp.asarray(x) for x in leaves]
    if not arrays:
        raise located(ArgumentError("associative_scan takes at least one array"))
    axes = [_axis(x, axis) for x in arrays]
    extents = dict.fromkeys(plain(x.shape[a]) for x, a in zip(arrays, axes, strict=True))
    if len(extents) > 1:
        raise located(ShapeError(f"associative_scan: extents {list(extents)} along the axis differ"))

    def combine(a: list[Tensor], b: list[Tensor]) -> list[Tensor]:
        out, structure = tree.flatten(fn(tree.unflatten(treedef, a), tree.unflatten(treedef, b)))
        if structure != treedef:
            raise located(ArgumentError(f"associative_scan: fn returned {structure} for {treedef}"))
        return out

    def cut(xs: list[Tensor], start: int, stop: Any, step: int = 1) -> list[Tensor]:
        return [x[(slice(None),) * a + (slice(start, stop, step),)] for x, a in zip(xs, axes, strict=True)]

    def woven(even: list[Tensor], odd: list[Tensor], n: Int) -> list[Tensor]:
        return [_interleave(hnp, x, y, a, n) for x, y, a in zip(even, odd, axes, strict=True)]

    def run(xs: list[Tensor]) -> list[Tensor]:
        n = plain(xs[0].shape[axes[0]])
        if not decided(n - 2):
            return xs
        pairs = run(combine(cut(xs, 0, extent(n - 1), 2), cut(xs, 1, None, 2)))
        even = cut(xs, 0, 1)
        if n != 2:
            rest = combine(cut(pairs, 0, extent(floordiv(n - 1, 2))), cut(xs, 2, None, 2))
            even = [hnp.concat([x, y], axis=a) for x, y, a in zip(even, rest, axes, strict=True)]
        return woven(even, pairs, n)

    flipped = (lambda xs: [hnp.flip(x, axis=a) for x, a in zip(xs, axes, strict=True)]) if reverse else (lambda xs: xs)
    return tree.unflatten(treedef, flipped(run(flipped(arrays))))


def _axis(x: Tensor, axis: int) -> int:
    axis = integer(axis, "associative_scan", "an axis")
    if not -x.ndim <= axis < x.ndim:
        raise located(IndexOutOfRange(f"associative_scan: axis {axis} of shape {list(x.shape)}"))
    return axis % x.ndim


def _interleave(hnp: Any, even: Tensor, odd: Tensor, axis: int, count: Int) -> Tensor:
    """``even[0], odd[0], even[1], …`` along ``axis``, ``count`` in all; ``even`` is as long as ``odd`` or longer by one."""
    n, m = plain(even.shape[axis]), plain(odd.shape[axis])
    head = (slice(None),) * axis
    if not is_static(n - m):  # each with gaps between its elements, so that a cotangent's way back cuts and pads nothing
        first = hnp.reshape(hnp.arange(extent(count)) % 2 == 0, (-1, *(1,) * (even.ndim - axis - 1)))
        return hnp.where(first, _with_gaps(even, axis, 0, count), _with_gaps(odd, axis, 1, count))
    paired = hnp.stack([even[(*head, slice(0, m))], odd], axis=axis + 1)
    paired = hnp.reshape(paired, (*even.shape[:axis], 2 * m, *even.shape[axis + 1 :]))
    return paired if n == m else hnp.concat([paired, even[(*head, slice(m, None))]], axis=axis)


def _with_gaps(x: Tensor, axis: int, start: int, count: Int) -> Tensor:
    """``x`` at every second of ``count`` places along ``axis``, from ``start`` on."""
    node = node_of(x)
    shape = (*node.shape[:axis], count, *node.shape[axis + 1 :])
    along = [i == axis for i in range(len(shape))]
    return wrap(placed(node, shape, [start if here else 0 for here in along], [2 if here else 1 for here in along]))
