"""Derivatives of elementwise rows: arithmetic, functions, selection and casts; and of marks."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hologram.ir.node import Node
from hologram.ir.op import TABLE
from hologram.primitives.dropped_updates import update_for_select
from hologram.trace.recorder import cast_node
from hologram.transform.nodes import RECORDING, add, apply, div, fit, has_tangents, mul, neg, number, select, sub, total
from hologram.transform.rules.rules import Partial, Tangents, attach, call, partials, to_shape, unary


def _one_minus_square(x: Node) -> Node:
    return sub(number(1, x), mul(x, x))


def _one_plus_square(x: Node) -> Node:
    return add(number(1, x), mul(x, x))


def _squares(x: Node, y: Node) -> Node:
    return add(mul(x, x), mul(y, y))


def _share(x: Node, out: Node, y: Node) -> Node:
    """What of a tangent ``x`` passes to ``out``, the larger or smaller of ``x`` and ``y``: all, nothing, or half where they are equal."""
    rest = select(call("eq", x, y), number(0.5, x), number(1, x))
    return select(call("eq", x, out), rest, number(0, x))


def _power_by_base(out: Node, x: Node, y: Node) -> Node:
    """At the exponent 0 it is 0, of bases 0 and NaN too, and grows with the exponent by 1 / x."""
    zero = call("eq", y, number(0, y))
    lower = select(zero, number(1, y), sub(y, number(1, y)))
    usual = call("and", call("ne", x, number(0, x)), call("eq", x, x))
    at_zero = add(div(y, select(usual, x, number(1, x))), number(0, y))  # 0.0, not -0.0
    return select(zero, at_zero, mul(y, call("pow", x, lower)))


def _power_by_exponent(out: Node, x: Node, y: Node) -> Node:
    safe = select(call("eq", x, number(0, x)), number(1, x), x)
    return mul(call("log", safe), out)


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
    return call("copysign", number(1, x), x)


def _acosh_slope(out: Node, x: Node) -> Node:
    """The reciprocal of two roots, which off the real axis is not the root of the product."""
    below, above = sub(x, number(1, x)), add(x, number(1, x))
    if x.dtype.is_complex:
        return mul(call("rsqrt", below), call("rsqrt", above))
    return call("rsqrt", mul(below, above))


def _gauss(x: Node, scale: float) -> Node:
    return mul(number(scale * 2 / math.sqrt(math.pi), x), call("exp", neg(mul(x, x))))


def _abs_jvp(tangents: Tangents, out: Node, x: Node) -> Node:
    """Of a complex number the part of the tangent along it, 0 at 0; of a real one at 0 the slope from above."""
    (t,) = tangents
    assert t is not None
    if not x.dtype.is_complex:
        return select(call("ge", x, number(0, x)), t, neg(t))
    size = select(call("eq", out, number(0, out)), number(1, out), out)  # not sign(x), which would count as constant in second derivatives
    return div(call("real", mul(call("conj", x), t)), size)


def _bessel_slope(out: Node, x: Node) -> Node:
    """i0e - i1e/x - sign(x)*i1e; 1/2 at 0."""
    zero = call("eq", x, number(0, x))
    over = div(out, select(zero, number(1, x), x))
    slope = sub(call("i0e", x), add(over, mul(call("sign", x), out)))
    return select(zero, number(0.5, x), slope)


def _over(x: Node, y: Node) -> Node:
    """x / y, 0 where both are 0."""
    nothing = call("and", call("eq", x, number(0, x)), call("eq", y, number(0, y)))
    return div(x, select(nothing, number(1, y), y))


_PARTIALS: dict[str, tuple[Partial | None, ...]] = {
    "sqrt": (lambda out, x: div(number(0.5, out), out),),
    "copysign": (lambda out, x, y: mul(_sign_of(x), _sign_of(y)), None),
    "mad": (lambda out, a, b, c: b, lambda out, a, b, c: a, lambda out, a, b, c: number(1, c)),
    "max": (lambda out, x, y: _share(x, out, y), lambda out, x, y: _share(y, out, x)),
    "min": (lambda out, x, y: _share(x, out, y), lambda out, x, y: _share(y, out, x)),
    "rem": (lambda out, x, y: number(1, x), lambda out, x, y: neg(call("floordiv", x, y))),
    "fmod": (lambda out, x, y: number(1, x), lambda out, x, y: neg(call("trunc", div(x, y)))),
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
    "sin": (lambda out, x: call("cos", x),),
    "cos": (lambda out, x: neg(call("sin", x)),),
    "tan": (lambda out, x: _one_plus_square(out),),
    "asin": (lambda out, x: call("rsqrt", _one_minus_square(x)),),
    "acos": (lambda out, x: neg(call("rsqrt", _one_minus_square(x))),),
    "atan": (lambda out, x: div(number(1, x), _one_plus_square(x)),),
    "atan2": (lambda out, y, x: div(x, _squares(x, y)), lambda out, y, x: div(neg(y), _squares(x, y))),
    "sinh": (lambda out, x: call("cosh", x),),
    "cosh": (lambda out, x: call("sinh", x),),
    "tanh": (lambda out, x: _one_minus_square(out),),
    "asinh": (lambda out, x: call("rsqrt", _one_plus_square(x)),),
    "acosh": (_acosh_slope,),
    "atanh": (lambda out, x: div(number(1, x), _one_minus_square(x)),),
    "sigmoid": (lambda out, x: mul(out, sub(number(1, x), out)),),
    "pow": (_power_by_base, _power_by_exponent),
    "rsqrt": (lambda out, x: div(mul(number(-0.5, x), out), x),),
    "cbrt": (lambda out, x: div(number(1 / 3, x), mul(out, out)),),
    "hypot": (lambda out, x, y: _over(x, out), lambda out, x, y: _over(y, out)),  # 0 at the origin, a subgradient
    "erf": (lambda out, x: _gauss(x, 1.0),),
    "erfinv": (lambda out, x: mul(number(math.sqrt(math.pi) / 2, x), call("exp", mul(out, out))),),
    "erfc": (lambda out, x: _gauss(x, -1.0),),
    "erfcx": (lambda out, x: sub(mul(number(2, x), mul(x, out)), number(2 / math.sqrt(math.pi), x)),),
    "normal_within": (lambda out, x: mul(number(math.sqrt(2 / math.pi), x), call("exp", mul(number(-0.5, x), mul(x, x)))),),
    "ndtr": (lambda out, x: _gauss(mul(number(math.sqrt(0.5), x), x), math.sqrt(0.125)),),
    "ndtri": (lambda out, x: mul(number(math.sqrt(2 * math.pi), x), call("exp", mul(number(0.5, x), mul(out, out)))),),
    "lgamma": (lambda out, x: call("digamma", x),),
    "digamma": (lambda out, x: apply(TABLE["polygamma"], x, attrs=(1,)),),
    "polygamma": (lambda out, x, order: apply(TABLE["polygamma"], x, attrs=(order + 1,)),),
    "xlogy": (lambda out, x, y: call("log", y), lambda out, x, y: _over(x, y)),
    "xlog1py": (lambda out, x, y: call("log1p", y), lambda out, x, y: _over(x, add(y, number(1, y)))),
    "i0e": (lambda out, x: sub(call("i1e", x), mul(call("sign", x), out)),),
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
    if a is not None and b is not None and a.shape == b.shape == out.shape:
        updated = update_for_select(c, a, b, lambda update: True, RECORDING)
        if updated is not None:
            return updated
    zero = number(0, out)
    return fit(select(c, zero if a is None else a, zero if b is None else b), out.shape)


def _cast_jvp(tangents: Tangents, out: Node, x: Node, dtype: str) -> Node | None:
    (t,) = tangents
    assert t is not None
    return cast_node(t, out.dtype) if has_tangents(out.dtype) else None


def _add_transpose(ct: Node, linear: Sequence[bool], x: Node, y: Node) -> tuple[Node | None, ...]:
    return to_shape(x, lambda: ct, linear[0]), to_shape(y, lambda: ct, linear[1])


def _sub_transpose(ct: Node, linear: Sequence[bool], x: Node, y: Node) -> tuple[Node | None, ...]:
    return to_shape(x, lambda: ct, linear[0]), to_shape(y, lambda: neg(ct), linear[1])


def _mul_transpose(ct: Node, linear: Sequence[bool], x: Node, y: Node) -> tuple[Node | None, ...]:
    return to_shape(x, lambda: mul(ct, y), linear[0]), to_shape(y, lambda: mul(x, ct), linear[1])


def _div_transpose(ct: Node, linear: Sequence[bool], x: Node, y: Node) -> tuple[Node | None, ...]:
    return to_shape(x, lambda: div(ct, y), linear[0]), None


def _select_transpose(ct: Node, linear: Sequence[bool], c: Node, x: Node, y: Node) -> tuple[Node | None, ...]:
    zero = number(0, ct)
    return None, to_shape(x, lambda: select(c, ct, zero), linear[1]), to_shape(y, lambda: select(c, zero, ct), linear[2])


for _name, _factors in _PARTIALS.items():
    if _name in TABLE:
        attach(_name, jvp=partials(*_factors))
attach("rem_trunc", jvp=partials(*_PARTIALS["fmod"]))
attach("abs", jvp=_abs_jvp)
attach("add", jvp=_add_jvp, transpose=_add_transpose)
attach("sub", jvp=_sub_jvp, transpose=_sub_transpose)
attach("neg", jvp=lambda ts, out, x: neg(ts[0]), transpose=unary(neg))
attach("mul", jvp=partials(lambda out, x, y: y, lambda out, x, y: x), transpose=_mul_transpose)
attach("div", jvp=_div_jvp, transpose=_div_transpose)
attach("select", jvp=_select_jvp, transpose=_select_transpose)
attach("cast", jvp=_cast_jvp, transpose=lambda ct, linear, x, dtype: (cast_node(ct, x.dtype),))
attach("mark", jvp=lambda ts, out, x, token: ts[0], transpose=lambda ct, linear, x, token: (ct,))
attach(
    "place",
    jvp=lambda ts, out, x, device: apply(TABLE["place"], ts[0], attrs=(device,)),
    transpose=lambda ct, linear, x, device: (apply(TABLE["place"], ct, attrs=("",)),),  # the place of the cotangent is where x is wanted
)
attach("barrier", jvp=lambda ts, out, x, after: None if ts[0] is None else fit(ts[0], out.shape))
