"""Assignment: ``x[key] = values`` changes ``x`` and every Tensor that shares elements with it (:mod:`hologram.numpy.indexing.views`)."""

from __future__ import annotations

import math
import threading
from typing import Any

from hologram.errors import LeakedTracerError, ReadOnlyError
from hologram.ir.node import Node
from hologram.ir.op import Shape
from hologram.numpy.arguments import array, permuted, reshaped, wrap
from hologram.numpy.creation import zeros
from hologram.numpy.indexing.slices import sliced_by
from hologram.numpy.indexing.updates import replaced, updated
from hologram.numpy.indexing.views import ELEMENT, Steps, View
from hologram.primitives.complex import parts as complexes
from hologram.primitives.indexing import gather, scatter_set
from hologram.primitives.movement import broadcast, reshape, slice_, transpose
from hologram.support import forks
from hologram.support.user_lines import located
from hologram.trace.recorder import Pending, current, record
from hologram.trace.tensor import Tensor

_lock = threading.RLock()  # held while the Tensors that share elements get their new values


@forks.in_child
def _after_fork() -> None:
    global _lock
    _lock = threading.RLock()


def assign(x: Tensor, key: Any, values: Any) -> None:
    """``x[key] = values``. Raises as :meth:`hologram.Tensor.__setitem__`; then nothing has changed.

    The new value is made of the old one without the lock, and made again if another thread has changed ``x`` meanwhile.
    """
    _check_writable(x, "x[i] = v")
    while True:
        node, storage = x._node, x._storage
        new = updated(x, key, values)
        with _lock:
            if x._node is node and x._storage is storage:
                _replaced(x, new)
                return


def replace(x: Tensor, new: Tensor) -> None:
    """``x[...] = new``, of ``x``'s shape and type. Raises as :func:`assign`."""
    _check_writable(x, "x[...] = v")
    with _lock:
        _replaced(x, new)


def share_elements(x: Tensor, y: Tensor) -> bool:
    """Whether an assignment to elements of ``x`` may change ``y``."""
    a, b = (getattr(t, "_alias", None) for t in (x, y))
    if x is y or a is None or b is None or a.aliases is None or a.aliases is not b.aliases:
        return x is y and x.size > 0
    common = _common(a.steps, b.steps)
    return x.size > 0 and y.size > 0 and not _are_disjoint(a.steps[common:], b.steps[common:])


def is_scalar(x: Tensor) -> bool:
    """Whether ``x`` is what NumPy has scalars for: an element that integers picked, or a number that is no view of an array."""
    view: View | None = getattr(x, "_alias", None)
    return view is ELEMENT or (view is None and not x._aval()[0])


def _check_writable(x: Tensor, what: str) -> None:
    """Raises ReadOnlyError for a Tensor that nobody may write to, LeakedTracerError where the assignment would be lost."""
    view: View | None = getattr(x, "_alias", None)
    if view is not None and view.frozen:
        raise located(ReadOnlyError(f"{what} on a read-only Tensor: {view.frozen}"))
    trace = current()
    if trace is not None and not trace.made(x._node):
        where = f"{what} on a Tensor from outside of {trace.name}, which is being traced, would be lost"
        raise located(LeakedTracerError(f"{where}: write x = x.at[i].set(v), and return it where it is wanted outside"))


def _replaced(x: Tensor, new: Tensor) -> None:
    view: View | None = getattr(x, "_alias", None)
    others = [] if view is None else _others(x, view, array(new, "x[i] = v"))
    _become(x, new)
    for other, value in others:
        _become(other, value)


def _become(x: Tensor, value: Tensor) -> None:
    if value._storage is None:
        x._node, x._storage, x._weak = value._node, None, False
    else:  # in this order, so that a thread that reads meets an old value or the new one
        x._storage, x._node, x._weak = value._storage, value._node, False


def _others(x: Tensor, view: View, new: Node) -> list[tuple[Tensor, Tensor]]:
    """What shares changed elements with ``x``, whose node becomes ``new``; with new values."""
    aliases, steps = view.aliases, view.steps
    assert aliases is not None
    members = [(t, t._alias.steps) for t in aliases.alive() if t is not x and t._alias.aliases is aliases and _is_readable(t)]
    alive = {own: t for t, own in members}
    found = []
    for t, own in members:
        common = _common(steps, own)
        if not _are_disjoint(steps[common:], own[common:]):
            _check_traced(t)
            found.append((t, wrap(_seen(t, own, alive, steps, common, new))))
    return found


def _seen(x: Tensor, own: Steps, alive: dict[Steps, Tensor], steps: Steps, common: int, new: Node) -> Node:
    """The new value of ``x``, to which the steps ``own`` lead, where that to which ``steps`` lead becomes ``new``; ``common`` steps are the same.

    It is read of what both are views of: of ``new`` itself, of an alias that is alive, or else of an array of no more than these two.
    """
    if common == len(steps):
        return _read(new, own[common:])
    for depth in range(common, -1, -1):
        base = alive.get(own[:depth])
        if base is not None:
            return _read(_written(array(base, "x[i] = v"), steps[depth:], new), own[depth:])
    _, _, shape, dtype, _ = own[common]
    both = _written(array(zeros(shape, dtype=dtype), "x[i] = v"), own[common:], array(x, "x[i] = v"))
    return _read(_written(both, steps[common:], new), own[common:])


def _is_readable(t: Tensor) -> bool:
    """Whether ``t`` has a value: not what was donated, nor what a trace that ended has left."""
    node, trace = t._node, current()
    return t._storage is not None or type(node) is Pending or (node is not None and trace is not None and trace.owns(node))


def _check_traced(t: Tensor) -> None:
    """Raises LeakedTracerError while tracing for a Tensor from outside of the trace, which must not come to hold a traced value."""
    trace = current()
    if trace is not None and not trace.made(t._node):
        what = f"x[i] = v, where x shares elements with a Tensor from outside of {trace.name}, which is being traced, would be lost there"
        raise located(LeakedTracerError(f"{what}: write x = x.at[i].set(v) or copy x first, and return what is wanted outside"))


# --- steps -----------------------------------------------------------------------------------------------------------


def _common(a: Steps, b: Steps) -> int:
    """How many steps are the same."""
    count = 0
    for x, y in zip(a, b, strict=False):
        if x is not y and x != y:
            break
        count += 1
    return count


def _are_disjoint(a: Steps, b: Steps) -> bool:
    """Whether two ways, which differ from their first steps on, certainly lead to different elements."""
    if not a or not b:
        return False
    (op, first, *_), (other, second, *_) = a[0], b[0]
    if op is slice_ and other is slice_:
        return any(_miss(x, y) for x, y in zip(zip(*first, strict=True), zip(*second, strict=True), strict=True))
    return {op, other} == {complexes.real, complexes.imag}


def _miss(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    """Whether two slices of an axis, each a start, a stop and a step, certainly have no element in common."""
    if not all(type(n) is int for n in (*a, *b)):
        return False
    x, y = range(*a), range(*b)
    if not x or not y or max(x[0], x[-1]) < min(y[0], y[-1]) or max(y[0], y[-1]) < min(x[0], x[-1]):
        return True
    return (x[0] - y[0]) % math.gcd(x.step, y.step) != 0


def _read(node: Node, steps: Steps) -> Node:
    for op, attrs, _, _, others in steps:
        node = record(op, (node, *others), attrs)
    return node


def _written(node: Node, steps: Steps, value: Node) -> Node:
    """``node`` after the elements to which ``steps`` lead have become ``value``."""
    if not steps:
        return value
    (op, attrs, _, _, others), rest = steps[0], steps[1:]
    if rest:
        value = _written(record(op, (node, *others), attrs), rest, value)
    if op is slice_:
        return replaced(node, list(zip(*attrs, strict=True)), value)
    if op is reshape:
        return reshaped(value, node.shape)
    if op is transpose:
        return permuted(value, [attrs[0].index(i) for i in range(len(attrs[0]))])
    if op is gather:
        axes, _, batch = attrs
        return record(scatter_set, (node, value, *others), (axes, batch))
    if op is broadcast:  # its elements are copies of one another
        return _first_copies(value, node.shape, attrs[1])
    re, im = (value, record(complexes.imag, (node,))) if op is complexes.real else (record(complexes.real, (node,)), value)
    return record(complexes.complex_, (re, im))


def _first_copies(node: Node, shape: Shape, dims: tuple[int, ...]) -> Node:
    """What an array of ``shape`` was before it was stretched, its axes to the axes ``dims`` of ``node``."""
    kept = {d: n for d, n in zip(dims, shape, strict=True)}
    return reshaped(sliced_by(node, [(0, kept.get(d, 1), 1) for d in range(len(node.shape))]), shape)
