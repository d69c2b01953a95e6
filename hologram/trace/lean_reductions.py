"""A lean path for reductions of one Tensor: what the general function recorded once for a type, a rank and an axis is recorded again on the spot."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from hologram.dtypes import DType
from hologram.ir.op import Op
from hologram.trace import operators, recorder
from hologram.trace.operators import CUT_DEPTH, own_leaf, relieve
from hologram.trace.recorder import Pending, remember
from hologram.trace.replayed import replayed

Function = TypeVar("Function", bound=Callable[..., Any])
Recorded = tuple[tuple[Any, ...], tuple[int, ...], DType]  # attributes, the axes that stay, and the type of the result


def lean_reduction(op: Op) -> Callable[[Function], Function]:
    """Decorates the function of anything array-like and an axis whose result, given nothing else, is ``op`` of it.

    A realised or pending Tensor of a type and rank that the function has met is recorded in a microsecond. What else the function is given, and
    arrays without elements, go through it.
    """

    def decorate(given: Function) -> Function:
        general = replayed(1)(given)
        known: dict[tuple[DType, int, int | None], Recorded] = {}

        def learn(x: Any, axis: Any) -> Any:
            result = general(x, axis)
            node, below = result._node, getattr(x, "_node", None)
            if type(node) is Pending and node.op is op and node.inputs == (below,) and (axis is None or type(axis) is int) and below is not None:
                rank = len(below.shape)
                axes = range(rank) if axis is None else (axis % rank,)
                remember(known, (below.dtype, rank, axis), (node.attrs, tuple([i for i in range(rank) if i not in axes]), node.dtype))
            return result

        @functools.wraps(general)
        def function(x: Any, /, axis: Any = None, *args: Any, **options: Any) -> Any:
            if args or options:
                return general(x, axis, *args, **options)
            if recorder.traces_in_progress or type(x) is not operators.tensor_class or x._weak or not (axis is None or type(axis) is int):
                return general(x, axis)
            below: Any = x._node or own_leaf(x)
            if type(below) is not Pending:
                return general(x, axis)
            shape = below.shape
            found = known.get((below.dtype, len(shape), axis))
            return learn(x, axis) if found is None or 0 in shape else _recorded(op, below, found)

        return function  # type: ignore[return-value]

    return decorate


def _recorded(op: Op, below: Any, found: Recorded) -> Any:
    """The Tensor of ``op`` of a pending node."""
    node = Pending()
    node.op, node.inputs, node.seen, node.array = op, (below,), False, None
    node.attrs, kept, node.dtype = found
    shape = below.shape
    node.shape = tuple([shape[i] for i in kept]) if kept else ()
    node.depth = below.depth + 1
    t = operators.tensor_class()
    t._node, t._storage, t._weak = node, None, False
    if node.depth > CUT_DEPTH:
        relieve(t)
    return t
