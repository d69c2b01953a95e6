"""Collectives: host ops on arrays of which each process, or each example of a ``vmap``, has one.

A named axis is an axis of a mesh of processes or of a ``vmap``. A node is over one or more axes of a mesh, ``mesh`` being its literal, or over one
axis of a vmap, ``mesh`` being (). The last input of the latter is the example's number, of which the vmap has the stack: so every collective depends
on it, and batching is what removes it. ``names`` are the axes, ``size`` is how many ranks or examples take part, ``place`` the user's line.

- ``psum``, ``pmax``, ``pmin``: of one or more arrays, each reduced over all ranks, in the order of ranks; every rank has the results.
- ``all_gather(x; axis)``: everyone's ``x``, stacked along a new axis at ``axis``.
- ``psum_scatter(x; axis)``: of the sum, the slice along ``axis`` whose number is the rank's.
- ``all_to_all(x; axis)``: the slices along ``axis``, slice ``i`` for rank ``i``, exchanged: slice ``j`` of the result is from rank ``j``.
- ``ppermute(x; pairs)``: what the rank gets by the pairs (source, destination) of ``pairs``; zeros where nobody sends.
- ``pbroadcast(x; source)``: the ``x`` of rank ``source``.
- ``axis_index()``: the rank's number along axes of a mesh.
- ``enter_replicated``: of one or more arrays, equal everywhere, as each rank reads them: their cotangents are the sums of the ranks', all in one.
- ``exit_replicated(x)``: ``x``, equal everywhere, as one value again: its cotangent goes to the first rank.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from hologram import dtypes
from hologram.errors import ArgumentError, DTypeError, ShapeError
from hologram.ir.op import Op, Shape, register
from hologram.primitives.host.collective_calls import Reference
from hologram.primitives.host.host_op import Type, define_host_op

if TYPE_CHECKING:
    from hologram.ir.node import Node

Inputs = tuple["Node", ...]
Attrs = tuple[Any, ...]
WHO = ("names", "size", "mesh", "place")  # the last attributes of every collective


def operands(inputs: Inputs, attrs: Attrs) -> Inputs:
    """The arrays among the inputs: all but the number of a vmap's example."""
    return inputs if attrs[-2] else inputs[:-1]


def _reduced(name: str) -> Callable[[Inputs, Attrs], list[Type]]:
    def results(inputs: Inputs, attrs: Attrs) -> list[Type]:
        xs = operands(inputs, attrs)
        for x in xs:
            if x.dtype.kind == "b" or (x.dtype.is_complex and name != "psum"):
                raise DTypeError(f"{name} does not take {x.dtype}")
        return [(x.shape, x.dtype) for x in xs]

    return results


def _along(name: str, inputs: Inputs, attrs: Attrs) -> tuple[Any, int, int]:
    """The array, the axis whose extent is the number of ranks, and that number."""
    (x,), axis, size = operands(inputs, attrs), attrs[0], attrs[-3]
    if not 0 <= axis < len(x.shape) or x.shape[axis] != size:
        raise ShapeError(f"{name}: axis {axis} of shape {list(x.shape)} over {size} ranks")
    return x, axis, size


def _gathered(inputs: Inputs, attrs: Attrs) -> list[Type]:
    (x,), axis, size = operands(inputs, attrs), attrs[0], attrs[-3]
    if not 0 <= axis <= len(x.shape):
        raise ShapeError(f"all_gather: a new axis {axis} of shape {list(x.shape)}")
    return [((*x.shape[:axis], size, *x.shape[axis:]), x.dtype)]


def _scattered(inputs: Inputs, attrs: Attrs) -> list[Type]:
    x, axis, _ = _along("psum_scatter", inputs, attrs)
    if x.dtype.kind == "b":
        raise DTypeError(f"psum_scatter does not take {x.dtype}")
    return [((*x.shape[:axis], *x.shape[axis + 1 :]), x.dtype)]


def _turned(inputs: Inputs, attrs: Attrs) -> list[Type]:
    x, _, _ = _along("all_to_all", inputs, attrs)
    return [(x.shape, x.dtype)]


def _same(inputs: Inputs, attrs: Attrs) -> list[Type]:
    (x,) = operands(inputs, attrs)
    return [(x.shape, x.dtype)]


def require_permutation(pairs: Sequence[tuple[int, int]], size: int) -> None:
    """Raises ArgumentError unless pairs (source, destination) are a permutation of some of ``size`` ranks."""
    for side in zip(*pairs, strict=True):
        if len(set(side)) < len(side) or not all(0 <= r < size for r in side):
            raise ArgumentError(f"ppermute: {list(pairs)} is no permutation of ranks below {size}")


def require_rank(source: int, size: int) -> None:
    """Raises ArgumentError unless ``source`` is one of ``size`` ranks."""
    if not 0 <= source < size:
        raise ArgumentError(f"pbroadcast: there is no rank {source} among {size}")


def _permuted(inputs: Inputs, attrs: Attrs) -> list[Type]:
    require_permutation(attrs[0], attrs[-3])
    return _same(inputs, attrs)


def _broadcast(inputs: Inputs, attrs: Attrs) -> list[Type]:
    require_rank(attrs[0], attrs[-3])
    return _same(inputs, attrs)


def _number(inputs: Inputs, attrs: Attrs) -> list[Type]:
    return [((), dtypes.int64)]


def _require_mesh(name: str, attrs: Attrs) -> None:
    """Raises ShapeError where the axes are not the mesh's, or the number of ranks is not theirs."""
    axes, size, mesh, _ = attrs[-4:]
    if mesh and (not set(axes) <= set(mesh[0]) or math.prod(mesh[1][mesh[0].index(a)] for a in axes) != size):
        raise ShapeError(f"{name}: axes {axes} of {size} ranks in the mesh {mesh}")


def _collective(name: str, rule: Any, *attrs: str) -> Op:
    def results(inputs: Inputs, given: Attrs) -> list[Type]:
        _require_mesh(name, given)
        found: list[Type] = rule(inputs, given)
        return found

    arity = 0 if name == "axis_index" else None
    return define_host_op(name, arity, results, Reference(name, results), *attrs, *WHO, kinds="biufc")


psum, pmax, pmin = (_collective(name, _reduced(name)) for name in ("psum", "pmax", "pmin"))
all_gather = _collective("all_gather", _gathered, "axis")
psum_scatter = _collective("psum_scatter", _scattered, "axis")
all_to_all = _collective("all_to_all", _turned, "axis")
ppermute = _collective("ppermute", _permuted, "pairs")
pbroadcast = _collective("pbroadcast", _broadcast, "source")
axis_index = _collective("axis_index", _number)
COLLECTIVES = (psum, pmax, pmin, all_gather, psum_scatter, all_to_all, ppermute, pbroadcast, axis_index)


def _first(inputs: Inputs, attrs: Attrs) -> tuple[Shape, Any]:
    return inputs[0].shape, inputs[0].dtype


def _identity(x: Any, *_: Any) -> Any:
    return x


def _all(inputs: Inputs, attrs: Attrs) -> list[Type]:
    return [(x.shape, x.dtype) for x in inputs]


def _as_they_are(*args: Any) -> list[Any]:
    return list(args[:-2])


enter_replicated = define_host_op("enter_replicated", None, _all, _as_they_are, "names", "mesh", kinds="biufc", cost=0)
exit_replicated = register(Op("exit_replicated", "mark", 1, _first, _identity, attrs=("names", "mesh"), kinds="biufc", cost=0))
