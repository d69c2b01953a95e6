"""Derivatives of gathers, scatters and sorts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hologram import dtypes
from hologram.ir.node import Node
from hologram.ir.op import TABLE, Op, Shape
from hologram.ir.symbolic import prod
from hologram.trace.operators import extent_node
from hologram.trace.recorder import cast_node
from hologram.transform.nodes import apply, div, full, moved, mul, number, reshaped, select, spread, sub, zeros_like
from hologram.transform.rules.batching import gathered
from hologram.transform.rules.rules import Tangents, attach, call


def _take_jvp(tangents: Tangents, out: Node, x: Node, indices: Node, axis: int) -> Node:
    (t, _) = tangents
    assert t is not None
    return apply(TABLE["take"], t, indices, attrs=(axis,))


def _take_transpose(ct: Node, linear: Sequence[bool], x: Node, indices: Node, axis: int) -> tuple[Node | None, ...]:
    return apply(TABLE["scatter_add"], zeros_like(x), indices, ct, attrs=(axis, 0)), None


attach("take", jvp=_take_jvp, transpose=_take_transpose)


# --- scatters --------------------------------------------------------------------------------------------------------
#
# Inputs are (x, indices, updates); updates whose index is out of range are dropped, and so have no derivative.


def _places(x: Node, indices: Node, axis: int) -> tuple[Node, Node]:
    """The indices moved into range, and whether they were there."""
    n = extent_node(x.shape[axis], dtypes.int64)
    wide = cast_node(indices, dtypes.int64)
    zero, last = number(0, wide), sub(n, number(1, n))
    there = call("and", call("ge", wide, zero), call("lt", wide, n))
    return call("min", call("max", wide, zero), last), there


def _over_updates(x: Node, updates: Shape, axis: int, places: int, batch: int) -> Node:
    """Something known of every index, spread over the updates; ``places`` axes of the updates belong to the indices."""
    return spread(x, updates, [*range(batch), *range(axis, axis + places)])


def _read(x: Node, indices: Node, updates: Node, axis: int, batch: int) -> Node:
    """What of ``x`` is where the updates go; zero where these are dropped."""
    if x.shape[axis] == 0:
        return zeros_like(updates)
    inside, there = _places(x, indices, axis)
    found = gathered(x, inside, axis, batch)
    return select(_over_updates(there, updates.shape, axis, len(indices.shape) - batch, batch), found, number(0, x))


def _scatter_jvp(op: Op) -> Callable[..., Node]:
    """Of a scatter that is linear in the array and the updates."""

    def jvp(tangents: Tangents, out: Node, x: Node, indices: Node, updates: Node, axis: int, batch: int) -> Node:
        t, _, u = tangents
        return apply(op, zeros_like(x) if t is None else t, indices, zeros_like(updates) if u is None else u, attrs=(axis, batch))

    return jvp


def _scatter_add_transpose(ct: Node, linear: Sequence[bool], x: Node, indices: Node, updates: Node, axis: int, batch: int) -> tuple[Node | None, ...]:
    return ct if linear[0] else None, None, _read(ct, indices, updates, axis, batch) if linear[2] else None


def _scatter_set_transpose(ct: Node, linear: Sequence[bool], x: Node, indices: Node, updates: Node, axis: int, batch: int) -> tuple[Node | None, ...]:
    """The elements that were replaced have no cotangent; of several updates of one place the last, which stayed, has it."""
    old = apply(TABLE["scatter_set"], ct, indices, zeros_like(updates), attrs=(axis, batch)) if linear[0] else None
    if not linear[2]:
        return old, None, None
    places = indices.shape[batch:]
    turns = spread(reshaped(apply(TABLE["iota"], attrs=((prod(places),), 0, "int64")), places), indices.shape, range(batch, len(indices.shape)))
    nobody = full(-1, dtypes.int64, (*x.shape[:batch], x.shape[axis]))
    stayed = apply(TABLE["scatter_set"], nobody, indices, turns, attrs=(batch, batch))
    here = call("eq", _read(stayed, indices, turns, batch, batch), turns)
    passed = _read(ct, indices, updates, axis, batch)
    return old, None, select(_over_updates(here, updates.shape, axis, len(places), batch), passed, number(0, ct))


def _scatter_extreme_jvp(tangents: Tangents, out: Node, x: Node, indices: Node, updates: Node, axis: int, batch: int) -> Node:
    """The mean tangent of the elements and updates that are the extreme of their place."""
    t, _, u = tangents
    old = cast_node(call("eq", x, out), x.dtype)
    new = cast_node(call("eq", updates, _read(out, indices, updates, axis, batch)), x.dtype)

    def gather_up(a: Node | None, b: Node | None) -> Node:
        return apply(TABLE["scatter_add"], zeros_like(x) if a is None else a, indices, zeros_like(updates) if b is None else b, attrs=(axis, batch))

    parts = gather_up(None if t is None else mul(t, old), None if u is None else mul(u, new))
    return div(parts, gather_up(old, new))


attach("scatter_add", jvp=_scatter_jvp(TABLE["scatter_add"]), transpose=_scatter_add_transpose)
attach("scatter_set", jvp=_scatter_jvp(TABLE["scatter_set"]), transpose=_scatter_set_transpose)
attach("scatter_max", jvp=_scatter_extreme_jvp)
attach("scatter_min", jvp=_scatter_extreme_jvp)


def _scatter_mul_jvp(tangents: Tangents, out: Node, x: Node, indices: Node, updates: Node, axis: int, batch: int) -> Node:
    """Each factor's tangent times the other factors: the product is divided by it, so that a factor of zero gives NaN."""
    t, _, u = tangents
    terms = zeros_like(x) if t is None else div(t, x)
    return mul(out, apply(TABLE["scatter_add"], terms, indices, zeros_like(updates) if u is None else div(u, updates), attrs=(axis, batch)))


attach("scatter_mul", jvp=_scatter_mul_jvp)


# --- sorts -----------------------------------------------------------------------------------------------------------


def _sort_jvp(tangents: Tangents, out: Node, x: Node, axis: int, descending: bool) -> Node:
    """Every element's tangent goes where the element goes."""
    (t,) = tangents
    assert t is not None
    last = len(x.shape) - 1
    order = moved(apply(TABLE["argsort"], x, attrs=(axis, descending)), axis, last)
    return moved(gathered(moved(t, axis, last), order, last, last), last, axis)


attach("sort", jvp=_sort_jvp)
