"""Derivatives and stacks of collectives (:mod:`hologram.primitives.host.collectives`), which are linear but for the extremes.

Transposes are those of the function of all ranks' arrays together: of a sum, the sum of the cotangents; of what everybody sends, what everybody
gets back. Over a vmap's axis, whose stack is in memory, the rules of batching say what becomes of a collective.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import hologram.primitives.host.collectives as ops
from hologram import dtypes
from hologram.control.replay import result
from hologram.ir.node import Node
from hologram.ir.op import TABLE, Op, transforms
from hologram.ir.symbolic import Int
from hologram.trace.recorder import constant, record
from hologram.transform.named_axes import LocalResults
from hologram.transform.nodes import along, apply, joined, moved, mul, number, reshaped, select, sum_over, zeros_like
from hologram.transform.rules.batching import stack_of

Results = tuple[Node | None, ...]
Flags = Sequence[bool]


def _parts(op: Op, rest: Sequence[Any]) -> tuple[tuple[Node, ...], tuple[Node, ...], tuple[Any, ...]]:
    """Arrays, the number of the example if there is one, and attributes, of a rule's inputs and attributes."""
    count = len(rest) - len(op.attrs)
    inputs, attrs = tuple(rest[:count]), tuple(rest[count:])
    xs = ops.operands(inputs, attrs)
    return xs, inputs[len(xs) :], attrs


def _on(op: Op, x: Node, index: tuple[Node, ...], attrs: tuple[Any, ...], like: Any = None) -> Node:
    """The one result of a collective, of the shape of ``like``, by default of ``x``."""
    return result(record(op, (x, *index), attrs), 0, x if like is None else like)


# --- derivatives -----------------------------------------------------------------------------------------------------


def _psum_jvp(tangents: Sequence[Node | None], out: Node, *rest: Any) -> Results:
    xs, index, attrs = _parts(ops.psum, rest)
    there = [t for t in tangents[: len(xs)] if t is not None]
    node = record(ops.psum, (*there, *index), attrs)
    sums = iter([result(node, i, t) for i, t in enumerate(there)])
    return tuple([None if t is None else next(sums) for t in tangents[: len(xs)]])


def _psum_transpose(cotangents: Results, linear: Flags, *rest: Any) -> Results:
    xs, index, _ = _parts(ops.psum, rest)
    return (*_psum_jvp(cotangents, xs[0], *rest), *[None] * len(index))


def _linear(op: Op) -> Callable[..., Results]:
    def jvp(tangents: Sequence[Node | None], out: Node, *rest: Any) -> Results:
        _, index, attrs = _parts(op, rest)
        assert tangents[0] is not None
        return (_on(op, tangents[0], index, attrs, out),)

    return jvp


def _transposed(op: Op, by: Callable[..., Node]) -> Callable[..., Results]:
    def transpose(cotangents: Results, linear: Flags, *rest: Any) -> Results:
        (x,), index, attrs = _parts(op, rest)
        (c,) = cotangents
        assert c is not None
        return (by(c, x, index, attrs), *[None] * len(index))

    return transpose


def rank_index(axes: tuple[str, ...], mesh: tuple[Any, ...]) -> Node:
    """The rank's number along axes of a mesh."""
    return result(record(ops.axis_index, (), (axes, _size(axes, mesh), mesh, "")), 0, _NUMBER)


def _size(axes: tuple[str, ...], mesh: tuple[Any, ...]) -> int:
    size: int = 1
    for a in axes:
        size *= mesh[1][mesh[0].index(a)]
    return size


class _Number:
    shape, dtype = (), dtypes.int64


_NUMBER = _Number()


def _only_at(c: Node, index: Node, rank: int) -> Node:
    """``c`` on one rank, zero on the others."""
    here = apply(TABLE["eq"], index, constant(rank, dtypes.int64))
    return select(here, c, zeros_like(c) if c.shape else number(0, c))


def _broadcast_back(c: Node, x: Node, index: tuple[Node, ...], attrs: tuple[Any, ...]) -> Node:
    source, axes, size, mesh, place = attrs
    return _only_at(_on(ops.psum, c, index, (axes, size, mesh, place)), index[0] if index else rank_index(axes, mesh), source)


def _permute_back(c: Node, x: Node, index: tuple[Node, ...], attrs: tuple[Any, ...]) -> Node:
    return _on(ops.ppermute, c, index, (tuple((d, s) for s, d in attrs[0]), *attrs[1:]))


transforms(ops.psum, jvp=_psum_jvp, transpose=_psum_transpose)
for _op, _back in (
    (ops.all_gather, lambda c, x, index, attrs: _on(ops.psum_scatter, c, index, attrs, x)),
    (ops.psum_scatter, lambda c, x, index, attrs: _on(ops.all_gather, c, index, attrs, x)),
    (ops.all_to_all, lambda c, x, index, attrs: _on(ops.all_to_all, c, index, attrs)),
    (ops.ppermute, _permute_back),
    (ops.pbroadcast, _broadcast_back),
):
    transforms(_op, jvp=_linear(_op), transpose=_transposed(_op, _back))


# --- replicated values -----------------------------------------------------------------------------------------------


def entered(xs: Sequence[Node], axes: tuple[str, ...], mesh: tuple[Any, ...]) -> list[Node]:
    """Values that are equal everywhere, as each rank reads them."""
    node = record(ops.enter_replicated, tuple(xs), (axes, mesh))
    return [result(node, i, x) for i, x in enumerate(xs)]


def left(x: Node, axes: tuple[str, ...], mesh: tuple[Any, ...]) -> Node:
    """What is equal on all ranks along ``axes``, as one value."""
    return record(ops.exit_replicated, (x,), (axes, mesh))


def _enter_jvp(tangents: Sequence[Node | None], out: Node, *rest: Any) -> Results:
    *_, axes, mesh = rest
    made = iter(entered([t for t in tangents if t is not None], axes, mesh))
    return tuple([None if t is None else next(made) for t in tangents])


def _enter_transpose(cotangents: Results, linear: Flags, *rest: Any) -> Results:
    """One sum of all cotangents, which is one value again."""
    *_, axes, mesh = rest
    there = [c for c in cotangents if c is not None]
    node = record(ops.psum, tuple(there), (axes, _size(axes, mesh), mesh, ""))
    sums = iter([left(result(node, i, c), axes, mesh) for i, c in enumerate(there)])
    return tuple([None if c is None else next(sums) for c in cotangents])


def _enter_batch(size: Int, batched: Flags, *rest: Any) -> Node:
    *xs, axes, mesh = rest
    return record(ops.enter_replicated, tuple([x if flag else stack_of(x, size) for x, flag in zip(xs, batched, strict=True)]), (axes, mesh))


def _exit_transpose(c: Node, linear: Flags, x: Node, axes: tuple[str, ...], mesh: tuple[Any, ...]) -> tuple[Node]:
    (on_each,) = entered([c], axes, mesh)
    return (_only_at(on_each, rank_index(axes, mesh), 0),)


transforms(ops.enter_replicated, jvp=_enter_jvp, transpose=_enter_transpose, batch=_enter_batch)
transforms(
    ops.exit_replicated,
    jvp=lambda ts, out, x, *attrs: left(ts[0], *attrs),
    transpose=_exit_transpose,
    batch=lambda size, batched, x, *attrs: left(x, *attrs),
)


# --- stacks ----------------------------------------------------------------------------------------------------------

AXIS_FIRST = (ops.all_gather, ops.psum_scatter, ops.all_to_all)  # ops whose first attribute is an axis


def _batch(op: Op, local: Callable[..., LocalResults]) -> Callable[..., Any]:
    """Over another axis than the one of the stack, the op on stacks; over that one, what ``local`` makes of the stacks."""

    def batch(size: Int, batched: Flags, *rest: Any) -> Any:
        xs, index, attrs = _parts(op, rest)
        if index and batched[-1]:
            return local(size, batched[:-1], xs, attrs)
        stacks = [x if flag else stack_of(x, size) for x, flag in zip(xs, batched, strict=False)]
        return record(op, (*stacks, *index), (attrs[0] + 1, *attrs[1:]) if op in AXIS_FIRST else attrs)

    return batch


def _reduced(reduction: str) -> Callable[..., LocalResults]:
    def local(size: int, batched: Flags, xs: Sequence[Node], attrs: Any) -> LocalResults:
        values = [_over_stack(reduction, x, size) if flag else _of_equal(reduction, x, size) for x, flag in zip(xs, batched, strict=True)]
        return LocalResults(tuple(values), stacked=False)

    return local


def _over_stack(reduction: str, x: Node, size: int) -> Node:
    return sum_over(x, (0,)) if reduction == "reduce_sum" else apply(TABLE[reduction], x, attrs=((0,),))


def _of_equal(reduction: str, x: Node, size: int) -> Node:
    return mul(x, number(size, x)) if reduction == "reduce_sum" else x


def _whole(x: Node, flag: bool, size: int) -> Node:
    return x if flag else stack_of(x, size)


def _gather_local(size: int, batched: Flags, xs: Sequence[Node], attrs: Any) -> LocalResults:
    return LocalResults((moved(_whole(xs[0], batched[0], size), 0, attrs[0]),), stacked=False)


def _scatter_local(size: int, batched: Flags, xs: Sequence[Node], attrs: Any) -> LocalResults:
    whole = sum_over(xs[0], (0,)) if batched[0] else _of_equal("reduce_sum", xs[0], size)
    return LocalResults((moved(whole, attrs[0], 0),), stacked=True)


def _turn_local(size: int, batched: Flags, xs: Sequence[Node], attrs: Any) -> LocalResults:
    x, axis = _whole(xs[0], batched[0], size), attrs[0] + 1
    order = [axis if i == 0 else 0 if i == axis else i for i in range(len(x.shape))]
    return LocalResults((apply(TABLE["transpose"], x, attrs=(tuple(order),)),), stacked=True)


def _permute_local(size: int, batched: Flags, xs: Sequence[Node], attrs: Any) -> LocalResults:
    """Runs of destinations whose sources follow one another are moved together."""
    x, source = _whole(xs[0], batched[0], size), {d: s for s, d in attrs[0]}
    parts, start = [], 0
    for d in range(1, size + 1):
        before, here = source.get(d - 1), source.get(d) if d < size else -1
        follows = here is None if before is None else here == before + 1
        if d < size and follows:
            continue
        first = source.get(start)
        like = along(x, 0, start, d)
        parts.append(zeros_like(like) if first is None else along(x, 0, first, first + d - start))
        start = d
    return LocalResults((joined(parts, 0) if len(parts) > 1 else parts[0],), stacked=True)


def _broadcast_local(size: int, batched: Flags, xs: Sequence[Node], attrs: Any) -> LocalResults:
    x, source = xs[0], attrs[0]
    value = reshaped(along(x, 0, source, source + 1), x.shape[1:]) if batched[0] else x
    return LocalResults((value,), stacked=False)


transforms(ops.psum, batch=_batch(ops.psum, _reduced("reduce_sum")))
transforms(ops.pmax, batch=_batch(ops.pmax, _reduced("reduce_max")))
transforms(ops.pmin, batch=_batch(ops.pmin, _reduced("reduce_min")))
transforms(ops.all_gather, batch=_batch(ops.all_gather, _gather_local))
transforms(ops.psum_scatter, batch=_batch(ops.psum_scatter, _scatter_local))
transforms(ops.all_to_all, batch=_batch(ops.all_to_all, _turn_local))
transforms(ops.ppermute, batch=_batch(ops.ppermute, _permute_local))
transforms(ops.pbroadcast, batch=_batch(ops.pbroadcast, _broadcast_local))
