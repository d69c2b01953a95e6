"""Derivatives of the op table's rows: how tangents go through them, and how cotangents go back through those that are linear.

Conventions where mathematics leaves a choice are JAX's: half of the tangent each for equal operands of max and min, equal shares among the extremes
of a reduction, 0 for ``abs`` at 0, infinity for ``sqrt`` at 0, 0 for the roundings and for ``sign`` of real numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from hologram import dtypes
from hologram.errors import DifferentiationError
from hologram.numpy.arguments import extent_node
from hologram.primitives.batching import gathered
from hologram.primitives.movement import slice_extent
from hologram.primitives.op import TABLE, NoDerivative, Op, Shape, transforms
from hologram.symbolic import Int, prod
from hologram.trace.node import Node
from hologram.trace.recorder import cast_node, located
from hologram.transform.nodes import (
    add,
    along,
    apply,
    div,
    fit,
    full,
    has_tangents,
    joined,
    moved,
    mul,
    neg,
    number,
    padded,
    permuted,
    reshaped,
    select,
    sliced,
    spread,
    sub,
    sum_over,
    sum_to,
    total,
    zeros_like,
)

Tangents = Sequence[Node | None]
Partial = Callable[..., Node | None]


def _transforms(name: str, **rules: Callable[..., Any]) -> None:
    transforms(TABLE[name], **rules)


# --- elementwise -----------------------------------------------------------------------------------------------------


def _partials(*factors: Partial | None) -> Callable[..., Node | None]:
    """The jvp of an elementwise row from its partial derivatives, each a function of ``(out, *inputs, *attrs)``; None for one that is zero."""

    def jvp(tangents: Tangents, out: Node, *rest: Any) -> Node | None:
        terms = []
        for t, factor in zip(tangents, factors, strict=True):
            if t is not None and factor is not None:
                by = factor(out, *rest)
                if by is not None:
                    terms.append(mul(t, by))
        tangent = total(terms)
        return None if tangent is None else fit(tangent, out.shape)

    return jvp


def _call(name: str, *inputs: Node) -> Node:
    return apply(TABLE[name], *inputs)


def _one_minus_square(x: Node) -> Node:
    return sub(number(1, x), mul(x, x))


def _one_plus_square(x: Node) -> Node:
    return add(number(1, x), mul(x, x))


def _squares(x: Node, y: Node) -> Node:
    return add(mul(x, x), mul(y, y))


def _share(x: Node, out: Node, y: Node) -> Node:
    """What of a tangent ``x`` passes to ``out``, the larger or smaller of ``x`` and ``y``: all, nothing, or half where they are equal."""
    rest = select(_call("eq", x, y), number(0.5, x), number(1, x))
    return select(_call("eq", x, out), rest, number(0, x))


def _power_by_base(out: Node, x: Node, y: Node) -> Node:
    zero = _call("eq", y, number(0, y))
    lower = select(zero, number(1, y), sub(y, number(1, y)))
    return select(zero, number(0, y), mul(y, _call("pow", x, lower)))


def _power_by_exponent(out: Node, x: Node, y: Node) -> Node:
    safe = select(_call("eq", x, number(0, x)), number(1, x), x)
    return mul(_call("log", safe), out)


def _integer_power(out: Node, x: Node, n: int) -> Node | None:
    if n == 0:
        return None
    if n == 1:
        return number(1, x)
    if n == 2:
        return mul(number(2, x), x)
    return mul(number(n, x), apply(TABLE["integer_pow"], x, attrs=(n - 1,)))


def _sign_of(x: Node) -> Node:
    """1 or -1, of a zero too."""
    return _call("copysign", number(1, x), x)


def _acosh_slope(out: Node, x: Node) -> Node:
    """The reciprocal of two roots, which off the real axis is not the root of the product."""
    below, above = sub(x, number(1, x)), add(x, number(1, x))
    if x.dtype.is_complex:
        return mul(_call("rsqrt", below), _call("rsqrt", above))
    return _call("rsqrt", mul(below, above))


def _gauss(x: Node, scale: float) -> Node:
    return mul(number(scale * 2 / math.sqrt(math.pi), x), _call("exp", neg(mul(x, x))))


def _abs_jvp(tangents: Tangents, out: Node, x: Node) -> Node:
    """Of a complex number the part of the tangent along it, 0 at 0; of a real one at 0 the slope from above."""
    (t,) = tangents
    assert t is not None
    if not x.dtype.is_complex:
        return select(_call("ge", x, number(0, x)), t, neg(t))
    size = select(_call("eq", out, number(0, out)), number(1, out), out)  # not sign(x), which would count as constant in second derivatives
    return div(_call("real", mul(_call("conj", x), t)), size)


def _bessel_slope(out: Node, x: Node) -> Node:
    """i0e - i1e/x - sign(x)*i1e; 1/2 at 0."""
    zero = _call("eq", x, number(0, x))
    over = div(out, select(zero, number(1, x), x))
    slope = sub(_call("i0e", x), add(over, mul(_call("sign", x), out)))
    return select(zero, number(0.5, x), slope)


_PARTIALS: dict[str, tuple[Partial | None, ...]] = {
    "sqrt": (lambda out, x: div(number(0.5, out), out),),
    "copysign": (lambda out, x, y: mul(_sign_of(x), _sign_of(y)), None),
    "mad": (lambda out, a, b, c: b, lambda out, a, b, c: a, lambda out, a, b, c: number(1, c)),
    "max": (lambda out, x, y: _share(x, out, y), lambda out, x, y: _share(y, out, x)),
    "min": (lambda out, x, y: _share(x, out, y), lambda out, x, y: _share(y, out, x)),
    "rem": (lambda out, x, y: number(1, x), lambda out, x, y: neg(_call("floordiv", x, y))),
    "fmod": (lambda out, x, y: number(1, x), lambda out, x, y: neg(_call("trunc", div(x, y)))),
    "square": (lambda out, x: mul(number(2, x), x),),
    "reciprocal": (lambda out, x: neg(mul(out, out)),),
    "integer_pow": (_integer_power,),
    "exp": (lambda out, x: out,),
    "exp2": (lambda out, x: mul(number(math.log(2), x), out),),
    "expm1": (lambda out, x: add(out, number(1, x)),),
    "log": (lambda out, x: div(number(1, x), x),),
    "log2": (lambda out, x: div(number(1 / math.log(2), x), x),),
    "log10": (lambda out, x: div(number(1 / math.log(10), x), x),),
    "log1p": (lambda out, x: div(number(1, x), add(x, number(1, x))),),
    "sin": (lambda out, x: _call("cos", x),),
    "cos": (lambda out, x: neg(_call("sin", x)),),
    "tan": (lambda out, x: _one_plus_square(out),),
    "asin": (lambda out, x: _call("rsqrt", _one_minus_square(x)),),
    "acos": (lambda out, x: neg(_call("rsqrt", _one_minus_square(x))),),
    "atan": (lambda out, x: div(number(1, x), _one_plus_square(x)),),
    "atan2": (lambda out, y, x: div(x, _squares(x, y)), lambda out, y, x: div(neg(y), _squares(x, y))),
    "sinh": (lambda out, x: _call("cosh", x),),
    "cosh": (lambda out, x: _call("sinh", x),),
    "tanh": (lambda out, x: _one_minus_square(out),),
    "asinh": (lambda out, x: _call("rsqrt", _one_plus_square(x)),),
    "acosh": (_acosh_slope,),
    "atanh": (lambda out, x: div(number(1, x), _one_minus_square(x)),),
    "sigmoid": (lambda out, x: mul(out, sub(number(1, x), out)),),
    "pow": (_power_by_base, _power_by_exponent),
    "rsqrt": (lambda out, x: div(mul(number(-0.5, x), out), x),),
    "cbrt": (lambda out, x: div(number(1 / 3, x), mul(out, out)),),
    "hypot": (lambda out, x, y: div(x, out), lambda out, x, y: div(y, out)),
    "erf": (lambda out, x: _gauss(x, 1.0),),
    "erfinv": (lambda out, x: mul(number(math.sqrt(math.pi) / 2, x), _call("exp", mul(out, out))),),
    "erfc": (lambda out, x: _gauss(x, -1.0),),
    "erfcx": (lambda out, x: sub(mul(number(2, x), mul(x, out)), number(2 / math.sqrt(math.pi), x)),),
    "ndtr": (lambda out, x: _gauss(mul(number(math.sqrt(0.5), x), x), math.sqrt(0.125)),),
    "ndtri": (lambda out, x: mul(number(math.sqrt(2 * math.pi), x), _call("exp", mul(number(0.5, x), mul(out, out)))),),
    "lgamma": (lambda out, x: _call("digamma", x),),
    "digamma": (lambda out, x: apply(TABLE["polygamma"], x, attrs=(1,)),),
    "polygamma": (lambda out, x, order: apply(TABLE["polygamma"], x, attrs=(order + 1,)),),
    "i0e": (lambda out, x: sub(_call("i1e", x), mul(_call("sign", x), out)),),
    "i1e": (_bessel_slope,),
}


def _add_jvp(tangents: Tangents, out: Node, x: Node, y: Node) -> Node | None:
    tangent = total(tangents)
    return None if tangent is None else fit(tangent, out.shape)


def _sub_jvp(tangents: Tangents, out: Node, x: Node, y: Node) -> Node:
    a, b = tangents
    tangent = neg(b) if a is None and b is not None else a if b is None else sub(a, b)  # type: ignore[arg-type]
    return fit(tangent, out.shape)  # type: ignore[arg-type]


def _div_jvp(tangents: Tangents, out: Node, x: Node, y: Node) -> Node:
    """(a - b*out) / y: one division, which both cotangents share."""
    a, b = tangents
    if b is None:
        assert a is not None
        return fit(div(a, y), out.shape)
    change = mul(b, out)
    return div(neg(change) if a is None else sub(a, change), y)


def _select_jvp(tangents: Tangents, out: Node, c: Node, x: Node, y: Node) -> Node:
    _, a, b = tangents
    zero = number(0, out)
    return fit(select(c, zero if a is None else a, zero if b is None else b), out.shape)


def _cast_jvp(tangents: Tangents, out: Node, x: Node, dtype: str) -> Node | None:
    (t,) = tangents
    assert t is not None
    return cast_node(t, out.dtype) if has_tangents(out.dtype) else None


def _unary(f: Callable[[Node], Node]) -> Callable[..., Any]:
    """The transpose of a row of one input."""
    return lambda ct, linear, x, *attrs: (f(ct),)


def _to(x: Node, cotangent: Callable[[], Node], linear: bool) -> Node | None:
    return sum_to(cotangent(), x.shape) if linear else None


def _add_transpose(ct: Node, linear: Sequence[bool], x: Node, y: Node) -> tuple[Node | None, ...]:
    return _to(x, lambda: ct, linear[0]), _to(y, lambda: ct, linear[1])


def _sub_transpose(ct: Node, linear: Sequence[bool], x: Node, y: Node) -> tuple[Node | None, ...]:
    return _to(x, lambda: ct, linear[0]), _to(y, lambda: neg(ct), linear[1])


def _mul_transpose(ct: Node, linear: Sequence[bool], x: Node, y: Node) -> tuple[Node | None, ...]:
    return _to(x, lambda: mul(ct, y), linear[0]), _to(y, lambda: mul(x, ct), linear[1])


def _div_transpose(ct: Node, linear: Sequence[bool], x: Node, y: Node) -> tuple[Node | None, ...]:
    return _to(x, lambda: div(ct, y), linear[0]), None


def _select_transpose(ct: Node, linear: Sequence[bool], c: Node, x: Node, y: Node) -> tuple[Node | None, ...]:
    zero = number(0, ct)
    return None, _to(x, lambda: select(c, ct, zero), linear[1]), _to(y, lambda: select(c, zero, ct), linear[2])


for _name, _factors in _PARTIALS.items():
    if _name in TABLE:
        _transforms(_name, jvp=_partials(*_factors))
_transforms("abs", jvp=_abs_jvp)
_transforms("add", jvp=_add_jvp, transpose=_add_transpose)
_transforms("sub", jvp=_sub_jvp, transpose=_sub_transpose)
_transforms("neg", jvp=lambda ts, out, x: neg(ts[0]), transpose=_unary(neg))
_transforms("mul", jvp=_partials(lambda out, x, y: y, lambda out, x, y: x), transpose=_mul_transpose)
_transforms("div", jvp=_div_jvp, transpose=_div_transpose)
_transforms("select", jvp=_select_jvp, transpose=_select_transpose)
_transforms("cast", jvp=_cast_jvp, transpose=lambda ct, linear, x, dtype: (cast_node(ct, x.dtype),))
_transforms("mark", jvp=lambda ts, out, x, token: ts[0], transpose=lambda ct, linear, x, token: (ct,))
_transforms(
    "place",
    jvp=lambda ts, out, x, device: apply(TABLE["place"], ts[0], attrs=(device,)),
    transpose=lambda ct, linear, x, device: (apply(TABLE["place"], ct, attrs=("",)),),  # the place of the cotangent is where x is wanted
)
_transforms("barrier", jvp=lambda ts, out, x, after: None if ts[0] is None else fit(ts[0], out.shape))

# --- complex numbers -------------------------------------------------------------------------------------------------
#
# Cotangents pair with tangents as Re(c * t), without a conjugate, as in JAX: the cotangent of z for the real function Re(w * z) is w.


def _sign_jvp(tangents: Tangents, out: Node, x: Node) -> Node | None:
    """Of a complex number the part of the tangent across it, over its size; 0 at 0, and for real numbers everywhere."""
    (t,) = tangents
    assert t is not None
    if not x.dtype.is_complex:
        return None
    along = _call("real", mul(_call("conj", out), t))
    zero = _call("eq", x, number(0, x))
    size = cast_node(_call("abs", select(zero, number(1, x), x)), x.dtype)
    return select(zero, number(0, x), div(sub(t, mul(out, cast_node(along, x.dtype))), size))


def _complex_jvp(tangents: Tangents, out: Node, re: Node, im: Node) -> Node:
    parts = (zeros_like(x) if t is None else t for t, x in zip(tangents, (re, im), strict=True))
    return fit(_call("complex", *parts), out.shape)


def _complex_transpose(ct: Node, linear: Sequence[bool], re: Node, im: Node) -> tuple[Node | None, ...]:
    return _to(re, lambda: _call("real", ct), linear[0]), _to(im, lambda: neg(_call("imag", ct)), linear[1])


_transforms("sign", jvp=_sign_jvp)
_transforms("real", jvp=lambda ts, out, z: _call("real", ts[0]), transpose=_unary(lambda ct: _call("complex", ct, number(0, ct))))
_transforms("imag", jvp=lambda ts, out, z: _call("imag", ts[0]), transpose=_unary(lambda ct: _call("complex", number(0, ct), neg(ct))))
_transforms("conj", jvp=lambda ts, out, z: _call("conj", ts[0]), transpose=_unary(lambda ct: _call("conj", ct)))
_transforms("complex", jvp=_complex_jvp, transpose=_complex_transpose)

# --- movement --------------------------------------------------------------------------------------------------------


def _itself(row: Op) -> Callable[..., Node]:
    """The jvp of a linear row of one input."""
    return lambda tangents, out, x, *attrs: apply(row, tangents[0], attrs=attrs)


def _broadcast_transpose(ct: Node, linear: Any, x: Node, shape: Shape, dims: tuple[int, ...]) -> tuple[Node]:
    stretched = [d for n, d in zip(x.shape, dims, strict=True) if n == 1 and shape[d] != 1]
    new = [i for i in range(len(shape)) if i not in dims]
    return (reshaped(sum_over(ct, sorted([*new, *stretched])), x.shape),)


def _slice_transpose(ct: Node, linear: Any, x: Node, start: Any, stop: Any, step: Any) -> tuple[Node]:
    low: list[Int] = []
    high: list[Int] = []
    for axis, (n, a, b, s) in enumerate(zip(x.shape, start, stop, step, strict=True)):
        k = slice_extent(a, b, s)
        if s < 0:
            ct = along(ct, axis, k - 1, -1, -1)
            a, s = a + (k - 1) * s, -s
        if s > 1:
            ct = apart(ct, axis, s)
        size = ct.shape[axis]
        low.append(a if k != 0 else 0)
        high.append(n - low[-1] - size)
    return (padded(ct, low, high),)


def apart(x: Node, axis: int, step: int) -> Node:
    """``step - 1`` zeros between the elements along ``axis``."""
    k = x.shape[axis]
    if k == 0:
        return x
    shape = x.shape
    column = reshaped(x, (*shape[: axis + 1], 1, *shape[axis + 1 :]))
    nothing = [0] * len(column.shape)
    filled = padded(column, nothing, [step - 1 if i == axis + 1 else 0 for i in range(len(nothing))])
    return along(reshaped(filled, (*shape[:axis], k * step, *shape[axis + 1 :])), axis, 0, (k - 1) * step + 1)


def _pad_jvp(tangents: Tangents, out: Node, x: Node, fill: Node, low: Any, high: Any) -> Node:
    t, f = tangents
    return apply(TABLE["pad"], zeros_like(x) if t is None else t, number(0, fill) if f is None else f, attrs=(low, high))


def _pad_transpose(ct: Node, linear: Sequence[bool], x: Node, fill: Node, low: Any, high: Any) -> tuple[Node | None, ...]:
    stop = [a + n for a, n in zip(low, x.shape, strict=True)]
    inside = sliced(ct, low, stop) if linear[0] else None
    outside = None
    if linear[1]:
        holes = apply(TABLE["pad"], full(0, x.dtype, x.shape), number(1, fill), attrs=(low, high))
        outside = sum_over(select(_call("ne", holes, number(0, fill)), ct, number(0, ct)), range(len(ct.shape)))
    return inside, outside


def _concatenate_jvp(tangents: Tangents, out: Node, *rest: Any) -> Node:
    inputs, axis = rest[:-1], rest[-1]
    return joined([zeros_like(x) if t is None else t for t, x in zip(tangents, inputs, strict=True)], axis)


def _concatenate_transpose(ct: Node, linear: Sequence[bool], *rest: Any) -> tuple[Node | None, ...]:
    inputs, axis = rest[:-1], rest[-1]
    parts: list[Node | None] = []
    start: Int = 0
    for flag, x in zip(linear, inputs, strict=True):
        stop = start + x.shape[axis]
        parts.append(along(ct, axis, start, stop) if flag else None)
        start = stop
    return tuple(parts)


def _inverse(perm: Sequence[int]) -> list[int]:
    return sorted(range(len(perm)), key=perm.__getitem__)


_MOVES: dict[str, Callable[..., Any]] = {
    "reshape": lambda ct, linear, x, shape: (reshaped(ct, x.shape),),
    "transpose": lambda ct, linear, x, perm: (permuted(ct, _inverse(perm)),),
    "broadcast": _broadcast_transpose,
    "slice": _slice_transpose,
}
for _name, _rule in _MOVES.items():
    _transforms(_name, jvp=_itself(TABLE[_name]), transpose=_rule)
_transforms("pad", jvp=_pad_jvp, transpose=_pad_transpose)
_transforms("concatenate", jvp=_concatenate_jvp, transpose=_concatenate_transpose)

# --- reductions ------------------------------------------------------------------------------------------------------


def _kept(x: Node, shape: Shape, axes: Sequence[int]) -> Node:
    """A reduction's result over ``axes`` spread over what was reduced."""
    return spread(x, shape, [i for i in range(len(shape)) if i not in axes])


def _sum_transpose(ct: Node, linear: Any, x: Node, axes: tuple[int, ...]) -> tuple[Node]:
    return (_kept(ct, x.shape, axes),)


def _extreme_jvp(tangents: Tangents, out: Node, x: Node, axes: tuple[int, ...]) -> Node:
    """The mean tangent of the elements that are the extreme."""
    (t,) = tangents
    assert t is not None
    here = _call("eq", x, _kept(out, x.shape, axes))
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


_transforms("reduce_sum", jvp=_itself(TABLE["reduce_sum"]), transpose=_sum_transpose)
_transforms("reduce_max", jvp=_extreme_jvp)
_transforms("reduce_min", jvp=_extreme_jvp)
_transforms("reduce_prod", jvp=_prod_jvp)

# --- scans -----------------------------------------------------------------------------------------------------------


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


_transforms("cumsum", jvp=_itself(TABLE["cumsum"]), transpose=_cumsum_transpose)
for _name in ("cumprod", "cummax", "cummin"):
    _transforms(_name, jvp=_scan_jvp(TABLE[_name].monoid))  # type: ignore[arg-type]

# --- gathers ---------------------------------------------------------------------------------------------------------


def _take_jvp(tangents: Tangents, out: Node, x: Node, indices: Node, axis: int) -> Node:
    (t, _) = tangents
    assert t is not None
    return apply(TABLE["take"], t, indices, attrs=(axis,))


def _take_transpose(ct: Node, linear: Sequence[bool], x: Node, indices: Node, axis: int) -> tuple[Node | None, ...]:
    return apply(TABLE["scatter_add"], zeros_like(x), indices, ct, attrs=(axis, 0)), None


_transforms("take", jvp=_take_jvp, transpose=_take_transpose)

# --- scatters --------------------------------------------------------------------------------------------------------
#
# Inputs are (x, indices, updates); updates whose index is out of range are dropped, and so have no derivative.


def _places(x: Node, indices: Node, axis: int) -> tuple[Node, Node]:
    """The indices moved into range, and whether they were there."""
    n = extent_node(x.shape[axis], dtypes.int64)
    wide = cast_node(indices, dtypes.int64)
    zero, last = number(0, wide), sub(n, number(1, n))
    there = _call("and", _call("ge", wide, zero), _call("lt", wide, n))
    return _call("min", _call("max", wide, zero), last), there


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
    here = _call("eq", _read(stayed, indices, turns, batch, batch), turns)
    passed = _read(ct, indices, updates, axis, batch)
    return old, None, select(_over_updates(here, updates.shape, axis, len(places), batch), passed, number(0, ct))


def _scatter_extreme_jvp(tangents: Tangents, out: Node, x: Node, indices: Node, updates: Node, axis: int, batch: int) -> Node:
    """The mean tangent of the elements and updates that are the extreme of their place."""
    t, _, u = tangents
    old = cast_node(_call("eq", x, out), x.dtype)
    new = cast_node(_call("eq", updates, _read(out, indices, updates, axis, batch)), x.dtype)

    def gather_up(a: Node | None, b: Node | None) -> Node:
        return apply(TABLE["scatter_add"], zeros_like(x) if a is None else a, indices, zeros_like(updates) if b is None else b, attrs=(axis, batch))

    parts = gather_up(None if t is None else mul(t, old), None if u is None else mul(u, new))
    return div(parts, gather_up(old, new))


_transforms("scatter_add", jvp=_scatter_jvp(TABLE["scatter_add"]), transpose=_scatter_add_transpose)
_transforms("scatter_set", jvp=_scatter_jvp(TABLE["scatter_set"]), transpose=_scatter_set_transpose)
_transforms("scatter_max", jvp=_scatter_extreme_jvp)
_transforms("scatter_min", jvp=_scatter_extreme_jvp)


def _scatter_mul_jvp(tangents: Tangents, out: Node, x: Node, indices: Node, updates: Node, axis: int, batch: int) -> Node:
    """Each factor's tangent times the other factors: the product is divided by it, so that a factor of zero gives NaN."""
    t, _, u = tangents
    terms = zeros_like(x) if t is None else div(t, x)
    return mul(out, apply(TABLE["scatter_add"], terms, indices, zeros_like(updates) if u is None else div(u, updates), attrs=(axis, batch)))


_transforms("scatter_mul", jvp=_scatter_mul_jvp)

# --- sorts -----------------------------------------------------------------------------------------------------------


def _sort_jvp(tangents: Tangents, out: Node, x: Node, axis: int, descending: bool) -> Node:
    """Every element's tangent goes where the element goes."""
    (t,) = tangents
    assert t is not None
    last = len(x.shape) - 1
    order = moved(apply(TABLE["argsort"], x, attrs=(axis, descending)), axis, last)
    return moved(gathered(moved(t, axis, last), order, last, last), last, axis)


_transforms("sort", jvp=_sort_jvp)

# --- rows without a derivative ---------------------------------------------------------------------------------------

_ZERO = {
    "it is constant between its steps": ("floor", "ceil", "trunc", "round", "heaviside", "floordiv", "unit_scale", "nextafter"),
    "it reads bits": ("bitcast", "sort_key", "sort_value", "sort_keys", "order_keys"),
    "it stops derivatives": ("stop",),
    "it has no inputs": ("input", "const", "leaf", "iota", "example"),
    "its result is no real number": (
        *("eq", "ne", "lt", "le", "gt", "ge", "and", "or", "xor", "not", "signbit", "isnan", "isinf", "isfinite"),
        *("shl", "shr", "shl_low", "shr_low", "div_trunc", "ipow", "reduce_any", "reduce_all", "argmax", "argmin", "argsort"),
    ),
}
for _reason, _names in _ZERO.items():
    for _name in _names:
        _transforms(_name, jvp=NoDerivative(_reason))
_transforms("rem_trunc", jvp=_partials(*_PARTIALS["fmod"]))
