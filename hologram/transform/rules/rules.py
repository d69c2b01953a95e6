"""What the derivatives of rows are written with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hologram.ir.node import Node
from hologram.ir.op import TABLE, Op, transforms
from hologram.transform.nodes import apply, fit, mul, sum_to, total

Tangents = Sequence[Node | None]
Partial = Callable[..., Node | None]


def attach(name: str, **rules: Callable[..., Any]) -> None:
    """Gives the row ``name`` its rules; see :func:`hologram.ir.op.transforms`."""
    transforms(TABLE[name], **rules)


def partials(*factors: Partial | None) -> Callable[..., Node | None]:
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


def call(name: str, *inputs: Node) -> Node:
    """The row ``name``, without attributes, on ``inputs``."""
    return apply(TABLE[name], *inputs)


def unary(f: Callable[[Node], Node]) -> Callable[..., Any]:
    """The transpose of a row of one input."""
    return lambda ct, linear, x, *attrs: (f(ct),)


def to_shape(x: Node, cotangent: Callable[[], Node], linear: bool) -> Node | None:
    """The cotangent of the operand ``x``, of which a scalar has the sum; None where the row is not linear in it."""
    return sum_to(cotangent(), x.shape) if linear else None


def itself(row: Op) -> Callable[..., Node]:
    """The jvp of a linear row of one input."""
    return lambda tangents, out, x, *attrs: apply(row, tangents[0], attrs=attrs)
