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
from hologram.numpy.indexing.selection import Selection
from hologram.primitives.complex.parts import imag, real
from hologram.primitives.movement import broadcast, reshape, slice_, slice_extent, transpose
from hologram.support import forks
from hologram.trace.operators import node_of
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


# An index of integers, slices, None and Ellipsis, and the shape and type of what it chooses from: steps that are found once they are wanted.
Key = tuple[Any, Shape, DType]


def _steps_of(key: Any, shape: Shape, dtype: DType) -> Steps:
    """The steps that indexing with ``key`` records."""
    chosen = Selection(shape, key)
    steps: Steps = ()
    if any(triple != (0, n, 1) for triple, n in zip(chosen.triples, shape, strict=True)):
        steps = ((slice_, tuple(zip(*chosen.triples, strict=True)), shape, dtype, ()),)
    extents = tuple(slice_extent(*t) for t in chosen.triples)
    return steps if chosen.shape == extents else (*steps, (reshape, (chosen.shape,), extents, dtype, ()))


class View:
    """What Tensor._alias holds: the ``aliases``, the ``steps`` from the first of them to this one, and ``frozen``: why its elements cannot be
    assigned to, empty where they can. An element that integers picked is a scalar in NumPy: no view, and without aliases."""

    __slots__ = ("aliases", "count", "frozen", "_steps", "_keys")
    aliases: Aliases | None
    count: int  # of steps, about
    frozen: str
    _steps: Steps
    _keys: tuple[Key, ...]  # what comes after these

    @property
    def steps(self) -> Steps:
        with _lock:
            for key in self._keys:
                self._steps += _steps_of(*key)
            self._keys = ()
            return self._steps


def _view(aliases: Aliases | None, steps: Steps = (), frozen: str = "") -> View:
    view = View()
    view.aliases, view.frozen, view.count, view._steps, view._keys = aliases, frozen, len(steps), steps, ()
    return view


ELEMENT = _view(None, frozen="an element that integers pick is a value of its own, as a NumPy scalar: assign to the array that it is picked from")


def stays_weak(source: Any, node: Node) -> bool:
    """Whether what is moved out of ``source`` is weakly typed: a weak scalar that is a scalar still."""
    return type(source) is Tensor and source._weak and not node.shape


def element(source: Any, start: Node, node: Node) -> Tensor:
    """The Tensor of one element that integers picked of ``source``, whose node is ``start``."""
    weak = stays_weak(source, node)
    t = wrap(node_of(source) if weak and node is start else node, weak)
    t._alias = ELEMENT
    return t


def frozen(t: Tensor, why: str) -> Tensor:
    """``t``, to whose elements nobody may assign."""
    t._alias = _view(Aliases(t), frozen=why)
    return t


def viewed(source: Any, start: Node, node: Node, why: str = "", steps: Steps | None = None) -> Tensor:
    """The Tensor of ``node``, which was made of ``start``, the node of ``source``, by moving elements: a view where ``source`` is a Tensor.

    ``why`` says why its elements cannot be assigned to, where they cannot; ``steps`` lead from ``start`` to ``node``, by default as it was recorded.
    """
    if type(source) is not Tensor:
        return wrap(node)
    if node is start and stays_weak(source, node):
        start = node = node_of(source)
    path = _path(start, node) if steps is None else steps  # first: a deep expression is computed when it is wrapped, and is a leaf then
    t = wrap(node, stays_weak(source, node))
    with _lock:
        view = _shared(source)
        if view.aliases is not None:
            t._alias = _view(view.aliases, view.steps + path, why or view.frozen)
            view.aliases.members.append(weakref.ref(t))
    return t


def share(source: Tensor, t: Tensor, key: Key) -> None:
    """Notes that ``t`` is what ``key`` chooses of ``source``: a view, unless that is an element."""
    lock = _lock
    lock.acquire()  # in half the time of a with statement
    try:
        view = _shared(source)
        aliases = view.aliases
        if aliases is None:
            return
        t._alias = own = View()
        own.aliases, own.frozen, own.count, own._steps = aliases, view.frozen, view.count + 1, view._steps
        own._keys = (*view._keys, key) if view._keys else (key,)
        members = aliases.members
        if members[-1]() is None:  # most views are gone before the next one comes
            members[-1] = weakref.ref(t)
        else:
            members.append(weakref.ref(t))
    finally:
        lock.release()


def _path(start: Node, node: Node) -> Steps:
    steps: Steps = ()
    while node is not start:
        below = node.inputs[0]
        steps = ((node.op, node.attrs, below.shape, below.dtype, node.inputs[1:]), *steps)
        node = below
    return steps


def _shared(source: Tensor) -> View:
    """``source._alias``, of one that is about to have one alias more; that of an element stays without aliases."""
    try:
        view: View = source._alias
    except AttributeError:
        view = source._alias = _view(Aliases(source))
    aliases = view.aliases
    if aliases is not None and (len(aliases.members) >= aliases.limit or view.count % MIN_LIMIT == MIN_LIMIT - 1):
        return _pruned(source, aliases)
    return view


def _pruned(source: Tensor, aliases: Aliases) -> View:
    """``source._alias`` without those aliases that are gone. The last one left is the first of a new set: so steps do not pile up."""
    aliases.alive()
    aliases.limit = max(MIN_LIMIT, 2 * len(aliases.members))
    view: View = source._alias
    if len(aliases.members) == 1 and view.count:
        view = source._alias = _view(Aliases(source, strides(source)), frozen=view.frozen)
    return view


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
    return view is not None and view.aliases is not None and (view.count > 0 or view.aliases.strides is not None)


def _contiguous(shape: Shape) -> Strides:
    return tuple(prod(shape[i + 1 :]) for i in range(len(shape)))


def strides(x: Tensor) -> Strides | None:
    """How many elements apart the neighbours along each axis of ``x`` would lie in NumPy; None where that is not known."""
    steps = x._alias.steps
    found: Strides | None = x._alias.aliases.strides
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
        elif op is broadcast:
            found = _stretched(shape, found, *attrs)
        else:
            found = None
        if found is None:
            return None
    return found


def _stretched(shape: Shape, own: Strides, wanted: Shape, dims: tuple[int, ...]) -> Strides:
    """The strides after a broadcast of the axes to those with the numbers ``dims``: elements along an axis that is stretched, or new, are one."""
    kept = {d: s for d, n, s in zip(dims, shape, own, strict=True) if n == wanted[d]}
    return tuple(kept.get(d, 0) for d in range(len(wanted)))


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
