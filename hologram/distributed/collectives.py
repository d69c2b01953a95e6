"""Collectives over named axes: of ``vmap(axis_name=...)`` and of the meshes of ``shard_map``. Names and arguments are those of ``jax.lax``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import hologram.numpy as hnp
import hologram.primitives.host.collectives as ops
from hologram import dtypes
from hologram.control.tracing import Type, emit, strong_node
from hologram.errors import ArgumentError, AxisOutOfRange, HologramError, ShapeError
from hologram.ir.node import Node
from hologram.ir.op import Op
from hologram.support.user_lines import at_line, located
from hologram.trace import tree
from hologram.trace.checks import has_items, integer, items
from hologram.trace.operators import node_of, wrap
from hologram.trace.recorder import cast_node
from hologram.transform.named_axes import find
from hologram.transform.nodes import moved, reshaped

__all__ = [
    "all_gather", "all_to_all", "axis_index", "axis_size", "pbroadcast", "pmax", "pmean", "pmin", "ppermute", "psum", "psum_scatter",
]  # fmt: skip

Names = str | Sequence[str]


class _Over(NamedTuple):
    """The axes of one op: of one mesh, or one of a vmap."""

    axes: tuple[str, ...]
    size: int
    number: tuple[Node, ...]
    mesh: tuple[Any, ...]


def _over(names: Any, what: str) -> list[_Over]:
    """The axes that ``names`` mean, the first the slowest: together where they are of one mesh."""
    given = [names] if isinstance(names, str) else items(names, what, "axis names")
    if not given:
        raise located(ArgumentError(f"{what} takes at least one axis name"))
    if len(set(given)) < len(given):
        raise located(ArgumentError(f"{what}: axis names {given}: one stands there twice"))
    found = [find(name, what) for name in given]
    if found[0].mesh and all(a.mesh == found[0].mesh for a in found):
        return [_Over(tuple(a.name for a in found), int(np.prod([a.size for a in found])), (), found[0].mesh)]
    return [_Over((a.name,), a.size, () if a.number is None else (a.number,), a.mesh) for a in found]


def _size(over: Sequence[_Over]) -> int:
    return int(np.prod([o.size for o in over]))


def _emit(op: Op, xs: Sequence[Node], over: _Over, *settings: Any) -> list[Node]:
    """The results of one op, of the types that its definition says."""
    inputs, attrs = (*xs, *over.number), (*settings, over.axes, over.size, over.mesh, at_line() if over.mesh else "")
    assert op.results is not None
    found = _checked(op.results, inputs, attrs)
    return [node_of(x) for x in emit(op, inputs, attrs, [Type(shape, dtype, False) for shape, dtype in found])]


def _one(op: Op, x: Node, over: _Over, *settings: Any) -> Node:
    return _emit(op, [x], over, *settings)[0]


def _axis(axis: Any, ndim: int, what: str) -> int:
    found = integer(axis, what, "an axis")
    if not -ndim <= found < ndim:
        raise located(AxisOutOfRange(f"{what}: axis {found} of an array with {ndim} axes"))
    return found % ndim


def _divided(x: Node, axis: int, size: int, what: str) -> int:
    """How many elements of an axis each of ``size`` ranks has. Raises ShapeError where they are not equally many."""
    n = x.shape[axis]
    if not isinstance(n, int) or n % size:
        raise located(ShapeError(f"{what}: axis {axis} of shape {list(x.shape)} does not divide among {size}"))
    return n // size


def _merged(x: Node, axis: int) -> Node:
    """``x`` with an axis and the next as one."""
    return reshaped(x, (*x.shape[:axis], x.shape[axis] * x.shape[axis + 1], *x.shape[axis + 2 :]))


def _parted(x: Node, axis: int, outer: int) -> Node:
    """``x`` with an axis as two, the first of extent ``outer``."""
    return reshaped(x, (*x.shape[:axis], outer, x.shape[axis] // outer, *x.shape[axis + 1 :]))


# --- reductions ------------------------------------------------------------------------------------------------------


def _reduce(op: Op, x: Any, names: Names, number: Callable[[Any, int], Any]) -> Any:
    over = _over(names, op.name)
    leaves, structure = tree.flatten(x)
    arrays = [i for i, leaf in enumerate(leaves) if type(leaf) not in (bool, int, float, complex)]
    given = [strong_node(leaves[i], op.name) for i in arrays]
    counts = op is ops.psum
    nodes = [cast_node(n, dtypes.int64 if counts else dtypes.uint8) if n.dtype.kind == "b" else n for n in given]
    for one in over:
        nodes = _emit(op, nodes, one) if nodes else []
    if not counts:
        nodes = [cast_node(n, g.dtype) for n, g in zip(nodes, given, strict=True)]
    reduced = dict(zip(arrays, nodes, strict=True))
    return tree.unflatten(structure, [wrap(reduced[i]) if i in reduced else number(leaf, _size(over)) for i, leaf in enumerate(leaves)])


def psum(x: Any, axis_name: Names) -> Any:
    """Sum of ``x`` over all examples or ranks along named axes: each gets it. ``x`` is a pytree, whose leaves are reduced together.

    Elements are added in the order of ranks, floats of 16 bits in float32: the bits are the same in every run. A bool counts as an int64; a Python
    number gives its multiple. Raises AxisNameError for an axis that nothing around has.

    >>> hg.vmap(lambda x: hg.lax.psum(x, "i"), axis_name="i")(hnp.arange(3))
    Tensor([3, 3, 3], dtype=int64)
    """
    return _reduce(ops.psum, x, axis_name, lambda value, size: value * size)


def pmean(x: Any, axis_name: Names) -> Any:
    """Mean of ``x`` over all examples or ranks along named axes; see :func:`psum`. Of integers it is the mean itself, whatever their width holds.

    >>> hg.vmap(lambda x: x - hg.lax.pmean(x, "i"), axis_name="i")(hnp.asarray([1.0, 3.0]))
    Tensor([-1.,  1.], dtype=float32)
    """
    size = axis_size(axis_name)

    def wide(leaf: Any) -> Any:
        value = wrap(strong_node(leaf, "pmean"))
        return value.astype(dtypes.int64) if value.dtype.kind in "iu" and value.dtype.itemsize < 8 else value

    return tree.map(lambda total: total / size, psum(tree.map(wide, x), axis_name))


def pmax(x: Any, axis_name: Names) -> Any:
    """Maximum of ``x``, element by element, over all examples or ranks along named axes; NaN where one is NaN; a bool of bools. It has no derivative.

    >>> hg.vmap(lambda x: hg.lax.pmax(x, "i"), axis_name="i", out_axes=None)(hnp.asarray([1.0, 3.0]))
    Tensor(3., dtype=float32)
    """
    return _reduce(ops.pmax, x, axis_name, lambda value, size: value)


def pmin(x: Any, axis_name: Names) -> Any:
    """Minimum of ``x``, element by element, over all examples or ranks along named axes; NaN where one is NaN; a bool of bools. It has no derivative.

    >>> hg.vmap(lambda x: hg.lax.pmin(x, "i"), axis_name="i", out_axes=None)(hnp.asarray([1.0, 3.0]))
    Tensor(1., dtype=float32)
    """
    return _reduce(ops.pmin, x, axis_name, lambda value, size: value)


def psum_scatter(x: Any, axis_name: Names, *, scatter_dimension: int = 0, tiled: bool = False) -> Any:
    """Reduce-scatter: of the sum over named axes, each rank gets one slice along ``scatter_dimension``.

    That axis has as many elements as there are ranks, and is gone from the result; ``tiled``: a multiple, and stays. Raises ShapeError where it does
    not divide.

    >>> hg.vmap(lambda x: hg.lax.psum_scatter(x, "i"), axis_name="i")(hnp.asarray([[1, 2], [10, 20]]))
    Tensor([11, 22], dtype=int64)
    """
    over = _over(axis_name, "psum_scatter")

    def scattered(leaf: Any) -> Any:
        node = strong_node(leaf, "psum_scatter")
        axis = _axis(scatter_dimension, len(node.shape), "psum_scatter")
        each = _divided(node, axis, _size(over), "psum_scatter")
        if not tiled and each != 1:
            raise located(
                ShapeError(f"psum_scatter: axis {axis} of shape {list(node.shape)} has not one element for each of {_size(over)}: see tiled")
            )
        for one in over:
            node = _one(ops.psum_scatter, _parted(node, axis, one.size), one, axis)
        return wrap(node if tiled else reshaped(node, (*node.shape[:axis], *node.shape[axis + 1 :])))

    return tree.map(scattered, x)


# --- movement --------------------------------------------------------------------------------------------------------


def _gathered(node: Node, over: Sequence[_Over], axis: int) -> Node:
    """Everyone's array along a new axis."""
    first = True
    for one in reversed(over):
        node = _one(ops.all_gather, node, one, axis)
        node, first = node if first else _merged(node, axis), False
    return node


def all_gather(x: Any, axis_name: Names, *, axis: int = 0, tiled: bool = False) -> Any:
    """Everyone's ``x``, stacked along a new ``axis``; ``tiled``: joined along that axis. Of a pytree, each leaf.

    >>> hg.vmap(lambda x: hg.lax.all_gather(x, "i"), axis_name="i", out_axes=None)(hnp.arange(3))
    Tensor([0, 1, 2], dtype=int64)
    """
    over = _over(axis_name, "all_gather")

    def gathered(leaf: Any) -> Any:
        node = strong_node(leaf, "all_gather")
        at = _axis(axis, len(node.shape) + (not tiled), "all_gather")
        node = _gathered(node, over, at)
        return wrap(_merged(node, at) if tiled else node)

    return tree.map(gathered, x)


def all_to_all(x: Any, axis_name: Names, split_axis: int, concat_axis: int, *, tiled: bool = False) -> Any:
    """Transposes an array axis and named axes: slice ``j`` along ``split_axis`` goes to rank ``j``, and what comes from there is slice ``j`` along
    ``concat_axis``.

    ``split_axis`` has as many elements as there are ranks, and is gone from the result, which has a new axis; ``tiled``: it has a multiple of them,
    and slices are joined along ``concat_axis``. Raises ShapeError where it does not divide. Of a pytree, each leaf.

    >>> hg.vmap(lambda x: hg.lax.all_to_all(x, "i", 0, 0), axis_name="i")(hnp.asarray([[1, 2], [3, 4]]))
    Tensor([[1, 3],
            [2, 4]], dtype=int64)
    """
    over = _over(axis_name, "all_to_all")

    def exchanged(leaf: Any) -> Any:
        node = strong_node(leaf, "all_to_all")
        split, concat = (_axis(a, len(node.shape), "all_to_all") for a in (split_axis, concat_axis))
        each = _divided(node, split, _size(over), "all_to_all")
        if not tiled and each != 1:
            raise located(
                ShapeError(f"all_to_all: axis {split} of shape {list(node.shape)} has not one element for each of {_size(over)}: see tiled")
            )
        node = _exchanged(_parted(node, split, _size(over)), over, split)
        if tiled:
            return wrap(_merged(moved(node, split, concat), concat))
        node = reshaped(node, (*node.shape[: split + 1], *node.shape[split + 2 :]))
        return wrap(moved(node, split, concat))

    return tree.map(exchanged, x)


def _exchanged(node: Node, over: Sequence[_Over], axis: int) -> Node:
    """The slices along an axis exchanged, over one axis after the other."""
    shape, rest = node.shape, node.shape[axis + 1 :]
    node = reshaped(node, (*shape[:axis], *[one.size for one in over], *rest))
    for i, one in enumerate(over):
        node = _one(ops.all_to_all, node, one, axis + i)
    return reshaped(node, shape)


def ppermute(x: Any, axis_name: Names, perm: Sequence[tuple[int, int]]) -> Any:
    """Sends ``x`` along the pairs (source, destination) of ``perm``; who is no destination gets zeros. Of a pytree, each leaf.

    Raises ArgumentError for pairs that are no permutation of some of the ranks.

    >>> hg.vmap(lambda x: hg.lax.ppermute(x, "i", [(0, 1), (1, 2)]), axis_name="i")(hnp.asarray([1, 2, 3]))
    Tensor([0, 1, 2], dtype=int64)
    """
    over = _over(axis_name, "ppermute")
    pairs = tuple(_pair(p) for p in items(perm, "ppermute", "pairs"))
    _checked(ops.require_permutation, pairs, _size(over))
    move = _permuted if len(over) == 1 else _permuted_together
    return tree.map(lambda leaf: wrap(move(strong_node(leaf, "ppermute"), over, tuple(sorted(pairs)))), x)


def _checked(rule: Callable[..., Any], *args: Any) -> Any:
    """What a rule of an op's definition gives, or raises, then with the user's line."""
    try:
        return rule(*args)
    except HologramError as e:
        raise located(e) from None


def _pair(p: Any) -> tuple[int, int]:
    if not has_items(p) or len(p) != 2:
        raise located(ArgumentError(f"ppermute: {p!r} is no pair of a source and a destination"))
    source, destination = (integer(r, "ppermute", "a rank") for r in p)
    return source, destination


def _permuted(node: Node, over: Sequence[_Over], pairs: tuple[tuple[int, int], ...]) -> Node:
    return _one(ops.ppermute, node, over[0], pairs)


def _permuted_together(node: Node, over: Sequence[_Over], pairs: tuple[tuple[int, int], ...]) -> Node:
    """Over axes of several kinds: everyone's array is gathered, and one of them picked."""
    source = np.zeros(_size(over), np.int64)
    there = np.zeros(_size(over), np.bool_)
    for s, d in pairs:
        source[d], there[d] = s, True
    everyone, here = wrap(_gathered(node, over, 0)), _index(over)
    picked = hnp.take(everyone, hnp.asarray(source)[here], axis=0)
    return node_of(hnp.where(hnp.asarray(there)[here], picked, hnp.zeros_like(picked)))


def pbroadcast(x: Any, axis_name: Names, source: int) -> Any:
    """The ``x`` of rank number ``source`` along named axes, for all. Of a pytree, each leaf. Raises ArgumentError for a number that no rank has.

    >>> hg.vmap(lambda x: hg.lax.pbroadcast(x, "i", 1), axis_name="i")(hnp.asarray([1, 2, 3]))
    Tensor([2, 2, 2], dtype=int64)
    """
    over = _over(axis_name, "pbroadcast")
    rank = integer(source, "pbroadcast", "the source")
    _checked(ops.require_rank, rank, _size(over))
    ranks = np.unravel_index(rank, [one.size for one in over])

    def broadcast(leaf: Any) -> Any:
        node = strong_node(leaf, "pbroadcast")
        for one, of in zip(over, ranks, strict=True):
            node = _one(ops.pbroadcast, node, one, int(of))
        return wrap(node)

    return tree.map(broadcast, x)


# --- where one is ----------------------------------------------------------------------------------------------------


def _index(over: Sequence[_Over]) -> Any:
    numbers = [wrap(one.number[0] if one.number else _emit(ops.axis_index, [], one)[0]) for one in over]
    found = numbers[0]
    for one, number in zip(over[1:], numbers[1:], strict=True):
        found = found * one.size + number
    return found


def axis_index(axis_name: Names) -> Any:
    """The number of the example or rank along named axes, an int64 from 0 up; along several, the first is the slowest.

    >>> hg.vmap(lambda x: hg.lax.axis_index("i"), axis_name="i")(hnp.zeros(3))
    Tensor([0, 1, 2], dtype=int64)
    """
    return _index(_over(axis_name, "axis_index"))


def axis_size(axis_name: Names) -> int:
    """How many examples or ranks named axes have, a Python integer.

    >>> hg.vmap(lambda x: x / hg.lax.axis_size("i"), axis_name="i")(hnp.ones(4))
    Tensor([0.25, 0.25, 0.25, 0.25], dtype=float32)
    """
    return _size(_over(axis_name, "axis_size"))
