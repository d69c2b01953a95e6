"""Arithmetic: identities, inverses, signs, strength reduction, reassociation of constants.

What IEEE 754 says decides the guarantee: ``x + 0.0`` is not ``x`` for -0.0, ``x - x`` is not 0 for Inf, and sums and products of floats do
not reassociate. Integers wrap, so for them the ring's laws are exact.
"""

from __future__ import annotations

import math
from typing import Any

from hologram.graph.rewrite.pattern import Apply, c, d, spelled, x, y, z
from hologram.graph.rewrite.rewriter import Rewriter, Rule
from hologram.graph.rewrite.rule import rule
from hologram.ir.node import Node, const_value
from hologram.primitives.reductions import highest, lowest

abs_, sqrt, rsqrt, square, reciprocal, copysign = map(spelled, ("abs", "sqrt", "rsqrt", "square", "reciprocal", "copysign"))
exp, log, power, maximum, minimum, floordiv, rem = map(spelled, ("exp", "log", "pow", "max", "min", "floordiv", "rem"))


def law(name: str, algebra: str, pattern: Apply, build: Any, **more: Any) -> list[Rule]:
    """A law of rings: exact for integers, fast for floats."""
    return [
        rule(name, algebra, "exact", pattern, build, kinds="iu", **more),
        rule(f"{name}-float", algebra, "fast", pattern, build, kinds="f", **more),
    ]


def _value(node: Node) -> float:
    return float(const_value(node))


def _has_exact_reciprocal(c: Node) -> bool:
    """Whether ``c`` is a power of two whose reciprocal is normal and finite: dividing by it and multiplying by the reciprocal round alike."""
    v = _value(c)
    is_power = math.isfinite(v) and v != 0 and abs(math.frexp(v)[0]) == 0.5
    return is_power and _tiny(c) <= abs(1 / v) <= c.dtype.format.largest


def _tiny(c: Node) -> float:
    return c.dtype.format.least_normal


def _times_reciprocal(b: Rewriter, x: Node, c: Node) -> Node:
    return b.make("mul", x, b.const(1 / _value(c), c.dtype))


def _is_power_of_two(c: Node) -> bool:
    v = int(const_value(c))
    return v > 0 and v & (v - 1) == 0


def _shifted_right(b: Rewriter, x: Node, c: Node) -> Node:
    """The floor of a quotient: the right shift of a signed number fills with its sign."""
    return b.make("shr", x, b.const(int(const_value(c)).bit_length() - 1, c.dtype))


def _low_bits(b: Rewriter, x: Node, c: Node) -> Node:
    """What is left has the sign of the divisor, which is positive."""
    return b.make("and", x, b.const(int(const_value(c)) - 1, c.dtype))


def _invertible(c: Node) -> bool:
    v = _value(c)
    return math.isfinite(v) and v != 0 and _tiny(c) <= abs(1 / v) < 1 / _tiny(c)


def _in_range(x: float, like: Node) -> bool:
    """Whether a constant made of others is finite in their type, and no subnormal number, which has lost digits."""
    return x == 0 or _tiny(like) <= abs(x) <= like.dtype.format.largest


def _keeps_sum(c: Node, d: Node) -> bool:
    return not c.dtype.is_float or all(_in_range(total, c) for total in (_value(c) + _value(d), _value(c) - _value(d)))


def _keeps_product(c: Node, d: Node) -> bool:
    if not c.dtype.is_float:
        return True
    product = _value(c) * _value(d)
    return _in_range(product, c) and (product != 0 or 0 in (_value(c), _value(d)))


IDENTITIES: list[Rule] = [
    rule("add-zero", "x + -0 = x", "exact", x + -0.0, x),
    rule("add-positive-zero", "x + 0 = x", "fast", x + 0.0, x, kinds="f"),
    rule("zero-sub", "-0 - x = -x", "exact", -0.0 - x, -x),
    rule("positive-zero-sub", "0 - x = -x", "fast", 0.0 - x, -x, kinds="f"),
    rule("mul-one", "x * 1 = x", "exact", x * 1, x),
    rule("mul-minus-one", "x * -1 = -x", "exact", x * -1, -x),
    *law("mul-zero", "x * 0 = 0", x * 0, 0),
    rule("mul-negative-zero", "x * -0 = 0", "fast", x * -0.0, 0, kinds="f"),
    rule("div-one", "x / 1 = x", "exact", x / 1, x),
    rule("div-minus-one", "x / -1 = -x", "exact", x / -1, -x),
    rule("zero-div", "0 / x = 0", "fast", 0 / x, 0),
    rule("div-self", "x / x = 1", "fast", x / x, 1),
    *law("sub-self", "x - x = 0", x - x, 0),
    *law("add-sub", "(x + y) - y = x", (x + y) - y, x),
    *law("sub-add", "(x - y) + y = x", (x - y) + y, x),
    *law("sub-sum", "x - (x + y) = -y", x - (x + y), -y),
    *law("sub-difference", "x - (x - y) = y", x - (x - y), y),
    rule("mul-div", "(x * y) / y = x", "fast", (x * y) / y, x),
    rule("div-mul", "(x / y) * y = x", "fast", (x / y) * y, x),
]

SIGNS: list[Rule] = [
    rule("add-neg", "x + -y = x - y", "exact", x + -y, x - y),
    rule("sub-neg", "x - -y = x + y", "exact", x - -y, x + y),
    rule("sub-constant", "x - c = x + -c", "exact", x - c, x + -c),
    *law("neg-sub", "-(x - y) = y - x", -(x - y), y - x),
    *law("neg-left-sub", "-x - y = -(x + y)", -x - y, -(x + y)),
    rule("mul-neg", "-x * y = -(x * y)", "exact", -x * y, -(x * y)),
    rule("neg-mul-constant", "-(x * c) = x * -c", "exact", -(x * c), x * -c),
    rule("neg-div", "-x / y = -(x / y)", "exact", -x / y, -(x / y)),
    rule("div-neg", "x / -y = -(x / y)", "exact", x / -y, -(x / y)),
    rule("neg-div-constant", "-(x / c) = x / -c", "exact", -(x / c), x / -c),
    rule("neg-constant-div", "-(c / x) = -c / x", "exact", -(c / x), -c / x),
    rule("abs-neg", "|-x| = |x|", "exact", abs_(-x), abs_(x), kinds="if"),
    rule("abs-unsigned", "|x| = x", "exact", abs_(x), x, kinds="u"),
    rule("abs-square", "|x * x| = x * x", "exact", abs_(x * x), x * x, kinds="f"),
    rule("square-abs", "|x| * |x| = x * x", "exact", abs_(x) * abs_(x), x * x),
    rule("square-neg", "-x * -x = x * x", "exact", -x * -x, x * x),
    rule("copysign-self", "copysign(x, x) = x", "exact", copysign(x, x), x),
    rule("copysign-abs", "copysign(|x|, y) = copysign(x, y)", "exact", copysign(abs_(x), y), copysign(x, y)),
    rule("copysign-neg", "copysign(-x, y) = copysign(x, y)", "exact", copysign(-x, y), copysign(x, y)),
    rule("abs-copysign", "|copysign(x, y)| = |x|", "exact", abs_(copysign(x, y)), abs_(x)),
]

STRENGTH: list[Rule] = [
    rule("double", "x + x = x * 2", "exact", x + x, x * 2, kinds="iuf"),
    rule("square", "square(x) = x * x", "exact", square(x), x * x),
    rule("reciprocal", "reciprocal(x) = 1 / x", "exact", reciprocal(x), 1 / x),
    rule("div-power-of-two", "x / 2^k = x * 2^-k", "exact", x / c, _times_reciprocal, where=_has_exact_reciprocal),
    rule("floordiv-power-of-two", "x // 2^k = x >> k", "exact", floordiv(x, c), _shifted_right, kinds="iu", where=_is_power_of_two),
    rule("rem-power-of-two", "x % 2^k = x & 2^k - 1", "exact", rem(x, c), _low_bits, kinds="iu", where=_is_power_of_two),
    rule("div-constant", "x / c = x * (1 / c)", "fast", x / c, _times_reciprocal, where=_invertible),
    rule("reciprocal-reciprocal", "1 / (1 / x) = x", "fast", 1 / (1 / x), x),
    rule("sqrt-sqrt", "sqrt(x) * sqrt(x) = x", "fast", sqrt(x) * sqrt(x), x),
    rule("sqrt-square", "sqrt(x * x) = |x|", "fast", sqrt(x * x), abs_(x)),
]

POWERS: list[Rule] = [
    rule("power-zero", "x ** 0 = 1", "exact", power(x, 0.0), 1),
    rule("power-negative-zero", "x ** -0 = 1", "exact", power(x, -0.0), 1),
    rule("power-one", "x ** 1 = x", "exact", power(x, 1), x),
    rule("power-two", "x ** 2 = x * x", "standard", power(x, 2), x * x),
    rule("power-three", "x ** 3 = x * x * x", "fast", power(x, 3), (x * x) * x),
    rule("power-four", "x ** 4 = (x * x) * (x * x)", "fast", power(x, 4), (x * x) * (x * x)),
    rule("power-minus-one", "x ** -1 = 1 / x", "standard", power(x, -1), 1 / x),
    rule("power-half", "x ** 0.5 = sqrt(x)", "fast", power(x, 0.5), sqrt(x)),  # for -0 and -Inf they differ
    rule("one-power", "1 ** x = 1", "exact", power(1, x), 1),
    rule("reciprocal-sqrt", "1 / sqrt(x) = rsqrt(x)", "standard", 1 / sqrt(x), rsqrt(x)),
    rule("div-sqrt", "x / sqrt(y) = x * rsqrt(y)", "fast", x / sqrt(y), x * rsqrt(y)),
    rule("exp-exp", "exp(x) * exp(y) = exp(x + y) for x unlike y", "fast", exp(x) * exp(y), exp(x + y), where=lambda x, y: x is not y),
    rule("log-exp", "log(exp(x)) = x", "fast", log(exp(x)), x),
    rule("exp-log", "exp(log(x)) = x", "fast", exp(log(x)), x),
]


def _outward(x: Node, y: Node) -> bool:
    """Whether a constant beside ``x`` may move past ``y``: neither is one, and a scalar sum does not become an array's."""
    return x.op.name != "const" and y.op.name != "const" and (bool(x.shape) or not y.shape)


def _scalars_beside_array(x: Node, y: Node, z: Node) -> bool:
    return bool(x.shape) and not y.shape and not z.shape


CONSTANTS: list[Rule] = [
    *law("add-constants", "(x + c) + d = x + (c + d)", (x + c) + d, x + (c + d), where=_keeps_sum),
    *law("mul-constants", "(x * c) * d = x * (c * d)", (x * c) * d, x * (c * d), where=_keeps_product),
    *law("sub-from-constants", "c - (x + d) = (c - d) - x", c - (x + d), (c - d) - x, where=_keeps_sum),
    *law("add-difference-constants", "(c - x) + d = (c + d) - x", (c - x) + d, (c + d) - x, where=_keeps_sum),
    *law("add-constant-out", "(x + c) + y = (x + y) + c", (x + c) + y, (x + y) + c, where=_outward),
    rule("mul-constant-out", "(x * c) * y = (x * y) * c", "exact", (x * c) * y, (x * y) * c, where=_outward, kinds="iu"),
    *law("sub-constant-out", "x - (y + c) = (x - y) + -c", x - (y + c), (x - y) + -c, where=_outward),
    *law("add-scalars", "(x + s) + t = x + (s + t) for scalars s, t", (x + y) + z, x + (y + z), where=_scalars_beside_array),
    rule("mul-scalars", "(x * s) * t = x * (s * t) for scalars s, t", "exact", (x * y) * z, x * (y * z), where=_scalars_beside_array, kinds="iu"),
    *law("add-multiple", "x + x * c = x * (c + 1)", x + x * c, x * (c + 1)),
    *law("add-multiples", "x * c + x * d = x * (c + d)", x * c + x * d, x * (c + d), where=_keeps_sum),
    rule("factor", "x * y + x * z = x * (y + z)", "exact", x * y + x * z, x * (y + z), kinds="iu"),
    rule("factor-difference", "x * y - x * z = x * (y - z)", "exact", x * y - x * z, x * (y - z), kinds="iu"),
]


def _is_least(c: Node) -> bool:
    return bool(const_value(c) == lowest(c.dtype))


def _is_greatest(c: Node) -> bool:
    return bool(const_value(c) == highest(c.dtype))


EXTREMES: list[Rule] = [
    rule("max-constants", "max(max(x, c), d) = max(x, max(c, d))", "exact", maximum(maximum(x, c), d), maximum(x, maximum(c, d))),
    rule("min-constants", "min(min(x, c), d) = min(x, min(c, d))", "exact", minimum(minimum(x, c), d), minimum(x, minimum(c, d))),
    rule("max-again", "max(x, max(x, y)) = max(x, y)", "exact", maximum(x, maximum(x, y)), maximum(x, y)),
    rule("min-again", "min(x, min(x, y)) = min(x, y)", "exact", minimum(x, minimum(x, y)), minimum(x, y)),
    rule("min-max", "min(x, max(x, y)) = x", "exact", minimum(x, maximum(x, y)), x, kinds="iu"),
    rule("max-min", "max(x, min(x, y)) = x", "exact", maximum(x, minimum(x, y)), x, kinds="iu"),
    rule("max-lowest", "max(x, -Inf) = x", "exact", maximum(x, -math.inf), x),
    rule("min-highest", "min(x, Inf) = x", "exact", minimum(x, math.inf), x),
    rule("max-least-integer", "max(x, c) = x for the least integer c", "exact", maximum(x, c), x, kinds="iu", where=_is_least),
    rule("min-greatest-integer", "min(x, c) = x for the greatest integer c", "exact", minimum(x, c), x, kinds="iu", where=_is_greatest),
    rule("max-neg", "max(-x, -y) = -min(x, y)", "exact", maximum(-x, -y), -minimum(x, y), kinds="f"),
    rule("min-neg", "min(-x, -y) = -max(x, y)", "exact", minimum(-x, -y), -maximum(x, y), kinds="f"),
    rule("max-of-signs", "max(x, -x) = |x|", "exact", maximum(x, -x), abs_(x), kinds="if"),
]

_ROUNDINGS = ("floor", "ceil", "trunc", "round")
ROUNDINGS: list[Rule] = [
    rule(f"{f}-of-{g}", f"{f}({g}(x)) = {g}(x)", "exact", spelled(f)(spelled(g)(x)), spelled(g)(x)) for f in _ROUNDINGS for g in _ROUNDINGS if f != g
]

RULES: list[Rule] = [*IDENTITIES, *SIGNS, *STRENGTH, *POWERS, *CONSTANTS, *EXTREMES, *ROUNDINGS]
