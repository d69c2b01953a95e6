"""Views: Tensors that share elements, where NumPy's arrays would share memory.

A function whose result is a view in NumPy moves elements: its result's node is made of its argument's by slices, transposes, reshapes and the like.
:func:`viewed` notes these steps on the new Tensor. All Tensors that come of one another in this way are *aliases*. Their values stay immutable, and
reading one costs nothing; :mod:`hologram.numpy.indexing.assignment` gives all of them new values where elements of one are assigned.

Aliases know of one another weakly: a view keeps no base alive, and a base no views. ``Tensor._alias`` is not set before a Tensor has an alias.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any

from hologram.dtypes import DType
from hologram.ir.node import Node
from hologram.ir.op import Op, Shape
from hologram.ir.symbolic import Int, prod
from hologram.numpy.arguments import wrap
from hologram.primitives.complex.parts import imag, real
from hologram.primitives.movement import reshape, slice_, transpose
from hologram.support import forks
from hologram.trace.tensor import Tensor

# An op, its attributes, the shape and type of what it is applied to, and its other inputs.
Step = tuple[Op, tuple[Any, ...], Shape, DType, tuple[Node, ...]]
Steps = tuple[Step, ...]
Strides = tuple[Int, ...]

MIN_LIMIT = 16  # members, dead ones too, and steps, from which a set of aliases is searched for dead ones

_lock = threading.RLock()  # held while a set of aliases changes; by a finaliser in the same thread too


@forks.in_child
def _after_fork() -> None:
    global _lock
    _lock = threading.RLock()


class Aliases:
    """Tensors that share elements. ``strides`` are those of the first one, in elements; None where it is contiguous."""

    __slots__ = ("members", "limit", "strides")

    def __init__(self, first: Tensor, strides: Strides | None = None) -> None:
        self.members = [weakref.ref(first)]
        self.limit = MIN_LIMIT
        self.strides = strides

    def alive(self) -> list[Tensor]:
        with _lock:
            found = [t for r in self.members if (t := r()) is not None]
            if len(found) < len(self.members):
                self.members[:] = [weakref.ref(t) for t in found]
        return found


# What Tensor._alias holds: the aliases, the steps from the first of them to this one, and why its elements cannot be assigned to, if they cannot.
# An element that integers picked is a scalar in NumPy: no view, and without aliases.
View = tuple[Aliases | None, Steps, str]
ELEMENT: View = (None, (), "an element that integers pick is a value of its own, as a NumPy scalar: assign to the array that it is picked from")


def element(node: Node) -> Tensor:
    """The Tensor of one element that integers picked."""
    t = wrap(node)
    t._alias = ELEMENT
    return t


def frozen(t: Tensor, why: str) -> Tensor:
    """``t``, to whose elements nobody may assign."""
    t._alias = (Aliases(t), (), why)
    return t


def viewed(source: Any, start: Node, node: Node, why: str = "", steps: Steps | None = None) -> Tensor:
    """The Tensor of ``node``, which was made of ``start``, the node of ``source``, by moving elements: a view where ``source`` is a Tensor.

    ``why`` says why its elements cannot be assigned to, where they cannot; ``steps`` lead from ``start`` to ``node``, by default as it was recorded.
    """
    if type(source) is not Tensor or getattr(source, "_alias", None) is ELEMENT:
        return wrap(node)
    if steps is None:
        steps = _path(start, node)
    t = wrap(node)
    with _lock:
        aliases, before, reason = _first(source)
        if len(aliases.members) >= aliases.limit or (before and len(before) % MIN_LIMIT == 0):
            aliases, before, reason = _pruned(source, aliases)
        t._alias = (aliases, before + steps, why or reason)
        aliases.members.append(weakref.ref(t))
    return t


def _path(start: Node, node: Node) -> Steps:
    steps: Steps = ()
    while node is not start:
        below = node.inputs[0]
        steps = ((node.op, node.attrs, below.shape, below.dtype, node.inputs[1:]), *steps)
        node = below
    return steps


def _first(source: Tensor) -> Any:
    if getattr(source, "_alias", None) is None:
        source._alias = (Aliases(source), (), "")
    return source._alias


def _pruned(source: Tensor, aliases: Aliases) -> Any:
    """``source._alias`` without those aliases that are gone. The last one left is the first of a new set: so steps do not pile up."""
    aliases.alive()
    aliases.limit = max(MIN_LIMIT, 2 * len(aliases.members))
    if len(aliases.members) == 1 and source._alias[1]:
        source._alias = (Aliases(source, strides(source)), (), source._alias[2])
    return source._alias


# --- strides ---------------------------------------------------------------------------------------------------------


def is_contiguous(x: Any) -> bool:
    """Whether the elements of ``x`` would lie in C order in NumPy: a flattened ``x`` is then a view, else a copy."""
    if not _steps(x):
        return True
    shape = x._aval()[0]
    own = strides(x)
    return own is None or all(n == 1 or s == w for n, s, w in zip(shape, own, _contiguous(shape), strict=True)) or 0 in shape


def is_reshaped_in_place(x: Any, shape: Shape) -> bool:
    """Whether NumPy would reshape ``x`` without copying it."""
    if not _steps(x):
        return True
    own = strides(x)
    return own is None or _reshaped(x._aval()[0], own, shape) is not None


def _steps(x: Any) -> bool:
    view = getattr(x, "_alias", None) if type(x) is Tensor else None
    return view is not None and view[0] is not None and (bool(view[1]) or view[0].strides is not None)


def _contiguous(shape: Shape) -> Strides:
    return tuple(prod(shape[i + 1 :]) for i in range(len(shape)))


def strides(x: Tensor) -> Strides | None:
    """How many elements apart the neighbours along each axis of ``x`` would lie in NumPy; None where that is not known."""
    aliases, steps, _ = x._alias
    found: Strides | None = aliases.strides
    if found is None:
        found = _contiguous(steps[0][2] if steps else x._aval()[0])
    for op, attrs, shape, _, _ in steps:
        if op is slice_:
            found = tuple(s * step for s, step in zip(found, attrs[2], strict=True))
        elif op is transpose:
            found = tuple(found[i] for i in attrs[0])
        elif op is reshape:
            found = _reshaped(shape, found, attrs[0])
        elif op is real or op is imag:
            found = tuple(2 * s for s in found)
        else:
            found = None
        if found is None:
            return None
    return found


def _reshaped(shape: Shape, own: Strides, wanted: Shape) -> Strides | None:
    """The strides after a reshape in place; None where the elements would have to be copied.

    Each new axis follows those to its right, or starts where an old one does. Old axes at whose end no new one ends must follow one another.
    """
    if 0 in shape:
        return _contiguous(wanted)
    old = [(n, s) for n, s in zip(shape, own, strict=True) if n != 1]
    sizes = _contiguous(tuple(n for n, _ in old))
    ends = {below for below, n in zip(_contiguous(wanted), wanted, strict=True) if n != 1}
    for (_, s), size, (m, follower) in zip(old, sizes, old[1:], strict=False):
        if size not in ends and s != m * follower:
            return None
    starts = {size: s for size, (_, s) in zip(sizes, old, strict=True)}
    found: list[Int] = []
    distance: Int = 1
    for n, below in zip(reversed(wanted), reversed(_contiguous(wanted)), strict=True):
        if n != 1:
            distance = starts.get(below, distance)
        found.append(distance)
        distance = distance * n
    return tuple(reversed(found))
