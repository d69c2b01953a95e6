"""Derivatives of rows on complex numbers.

Cotangents pair with tangents as Re(c * t), without a conjugate, as in JAX: the cotangent of z for the real function Re(w * z) is w.
"""

from __future__ import annotations

from collections.abc import Sequence

from hologram.ir.node import Node
from hologram.trace.recorder import cast_node
from hologram.transform.nodes import div, fit, mul, neg, number, select, sub, zeros_like
from hologram.transform.rules.rules import Tangents, attach, call, to_shape, unary


def _sign_jvp(tangents: Tangents, out: Node, x: Node) -> Node | None:
    """Of a complex number the part of the tangent across it, over its size; 0 at 0, and for real numbers everywhere."""
    (t,) = tangents
    assert t is not None
    if not x.dtype.is_complex:
        return None
    along = call("real", mul(call("conj", out), t))
    zero = call("eq", x, number(0, x))
    size = cast_node(call("abs", select(zero, number(1, x), x)), x.dtype)
    return select(zero, number(0, x), div(sub(t, mul(out, cast_node(along, x.dtype))), size))


def _complex_jvp(tangents: Tangents, out: Node, re: Node, im: Node) -> Node:
    parts = (zeros_like(x) if t is None else t for t, x in zip(tangents, (re, im), strict=True))
    return fit(call("complex", *parts), out.shape)


def _complex_transpose(ct: Node, linear: Sequence[bool], re: Node, im: Node) -> tuple[Node | None, ...]:
    return to_shape(re, lambda: call("real", ct), linear[0]), to_shape(im, lambda: neg(call("imag", ct)), linear[1])


attach("sign", jvp=_sign_jvp)
attach("real", jvp=lambda ts, out, z: call("real", ts[0]), transpose=unary(lambda ct: call("complex", ct, number(0, ct))))
attach("imag", jvp=lambda ts, out, z: call("imag", ts[0]), transpose=unary(lambda ct: call("complex", number(0, ct), neg(ct))))
attach("conj", jvp=lambda ts, out, z: call("conj", ts[0]), transpose=unary(lambda ct: call("conj", ct)))
attach("complex", jvp=_complex_jvp, transpose=_complex_transpose)
