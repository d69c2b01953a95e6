"""Derivatives of reductions and running values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hologram.errors import DifferentiationError
from hologram.ir.node import Node
from hologram.ir.op import TABLE, Op, Shape
from hologram.ir.symbolic import prod
from hologram.support.user_lines import located
from hologram.trace.recorder import cast_node
from hologram.transform.nodes import along, apply, div, full, joined, mul, number, permuted, reshaped, select, spread, sum_over
from hologram.transform.rules.rules import Tangents, attach, call, itself


def _kept(x: Node, shape: Shape, axes: Sequence[int]) -> Node:
    """A reduction's result over ``axes`` spread over what was reduced."""
    return spread(x, shape, [i for i in range(len(shape)) if i not in axes])


def _sum_transpose(ct: Node, linear: Any, x: Node, axes: tuple[int, ...]) -> tuple[Node]:
    return (_kept(ct, x.shape, axes),)


def _extreme_jvp(tangents: Tangents, out: Node, x: Node, axes: tuple[int, ...]) -> Node:
    """The mean tangent of the elements that are the extreme."""
    (t,) = tangents
    assert t is not None
    here = call("eq", x, _kept(out, x.shape, axes))
    count = sum_over(cast_node(here, x.dtype), axes)
    return div(sum_over(select(here, t, number(0, t)), axes), count)


def _prod_jvp(tangents: Tangents, out: Node, x: Node, axes: tuple[int, ...]) -> Node:
    """Each tangent times the product of the other elements: of those before it and those after it, so that zeros do no harm."""
    (t,) = tangents
    assert t is not None
    kept = [i for i in range(len(x.shape)) if i not in axes]
    rows = (*[x.shape[i] for i in kept], prod(x.shape[a] for a in axes))
    flat, flat_t = (reshaped(permuted(v, [*kept, *axes]), rows) for v in (x, t))
    last = len(kept)
    others = mul(_running_product(flat, last, False), _running_product(flat, last, True))
    return sum_over(mul(flat_t, others), (last,))


def _running_product(x: Node, axis: int, reverse: bool) -> Node:
    """The product of the elements before each one along ``axis``; of those after it if ``reverse``."""
    n = x.shape[axis]
    one = full(1, x.dtype, (*x.shape[:axis], 1, *x.shape[axis + 1 :]))
    if n == 0:
        return x
    rest = along(x, axis, 1, n) if reverse else along(x, axis, 0, n - 1)
    running = apply(TABLE["cumprod"], rest, attrs=(axis, reverse))
    return joined([running, one] if reverse else [one, running], axis)


attach("reduce_sum", jvp=itself(TABLE["reduce_sum"]), transpose=_sum_transpose)
attach("reduce_max", jvp=_extreme_jvp)
attach("reduce_min", jvp=_extreme_jvp)
attach("reduce_prod", jvp=_prod_jvp)


def _cumsum_transpose(ct: Node, linear: Any, x: Node, axis: int, reverse: bool) -> tuple[Node]:
    return (apply(TABLE["cumsum"], ct, attrs=(axis, not reverse)),)


def _scan_jvp(monoid: Op) -> Callable[..., Node]:
    """The jvp of a running value: pairs of value and tangent combine, over 1, 2, 4, … elements at a time."""

    def jvp(tangents: Tangents, out: Node, x: Node, axis: int, reverse: bool) -> Node:
        (t,) = tangents
        assert t is not None
        n = x.shape[axis]
        if not isinstance(n, int):
            raise located(DifferentiationError(f"a running {monoid} along an axis of symbolic extent {n} cannot be differentiated"))
        step = 1
        while step < n:
            early, late = (step, n), (0, n - step)
            if not reverse:
                early, late = late, early
            before, after = along(x, axis, *early), along(x, axis, *late)
            both = apply(monoid, before, after)
            tangent = monoid.jvp((along(t, axis, *early), along(t, axis, *late)), both, before, after)  # type: ignore[misc]
            x, t = (_with_ends(v, w, axis, step, reverse) for v, w in ((x, both), (t, tangent)))
            step *= 2
        return t

    return jvp


def _with_ends(x: Node, combined: Node, axis: int, step: int, reverse: bool) -> Node:
    """``combined``, with the ``step`` elements of ``x`` that nothing stands before."""
    n = x.shape[axis]
    return joined([combined, along(x, axis, n - step, n)] if reverse else [along(x, axis, 0, step), combined], axis)


attach("cumsum", jvp=itself(TABLE["cumsum"]), transpose=_cumsum_transpose)
for _name in ("cumprod", "cummax", "cummin"):
    attach(_name, jvp=_scan_jvp(TABLE[_name].monoid))  # type: ignore[arg-type]
