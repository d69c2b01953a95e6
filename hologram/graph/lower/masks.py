"""Masks of loops: the condition under which a loop accumulates or stores anything, and the loop without it."""

from __future__ import annotations

from typing import Any

import numpy as np

from hologram.graph.kernel.ir import Acc, Accumulate, Loop, Prefetch, Store, Value
from hologram.ir.instruction import Ins
from hologram.primitives.scalar.elementwise import fused_mul

_PRODUCTS = ("mul", fused_mul.name)


def mask_of_loop(loop: Loop) -> Ins | None:
    """The mask of all that ``loop`` accumulates and stores; None where there is none, or several."""
    masks = {_mask(s) for s in loop.body if not isinstance(s, Prefetch) and (not isinstance(s, Ins) or s.op == "scan")}
    return masks.pop() if len(masks) == 1 else None


def _mask(s: Any) -> Ins | None:
    """The mask where a statement accumulates elements that are there, else the identity, or stores these alone."""
    if isinstance(s, Store):
        return s.mask if isinstance(s.mask, Ins) else None
    if isinstance(s, Accumulate):
        return mask_of_element(s.acc, s.args)
    return mask_of_element(s.attrs[0], s.args) if isinstance(s, Ins) else None


def mask_of_element(acc: Acc, args: tuple[Value, ...]) -> Ins | None:
    """The mask where what is accumulated is the identity wherever that does not hold; None where there is none."""
    if acc.op.monoid is None or (found := filled(args[0])) is None:
        return None
    mask, fill = found
    return mask if Ins.const(fill, acc.value_dtype).attrs == Ins.const(acc.op.identity(acc.value_dtype), acc.value_dtype).attrs else None


def filled(x: Value) -> tuple[Ins, Any] | None:
    """The mask of a value, and the number that it is where that does not hold; of a product those of its factors. None where there is no such."""
    if not isinstance(x, Ins) or x.opname not in _PRODUCTS:
        return _chosen(x)
    first, second = (_chosen(factor) for factor in x.args)
    return (first[0], first[1] * second[1]) if first is not None and second is not None and first[0] is second[0] else None


def _chosen(x: Value) -> tuple[Ins, Any] | None:
    """The condition of a choice, and the number that is its other side."""
    if not isinstance(x, Ins) or x.opname != "select":
        return None
    mask, _, other = x.args
    if not isinstance(mask, Ins) or not isinstance(other, Ins) or other.op != "const":
        return None
    return mask, np.frombuffer(other.attrs[1], other.dtype.np)[0]


def can_do_without(loop: Loop, mask: Ins) -> bool:
    """Whether every statement of ``loop`` means something without the mask."""
    return all(_knows(s, mask) for s in loop.body)


def _knows(s: Any, mask: Ins) -> bool:
    if not isinstance(s, Ins) or mask not in s.args:
        return True
    return (s.op == "load" or s.opname == "select") and mask not in s.args[1:]


def unmasked(loop: Loop, mask: Ins) -> list[Any]:
    """The body of ``loop`` where the mask holds."""
    made: dict[Value, Value] = {}
    body: list[Any] = []
    for s in loop.body:
        if isinstance(s, Accumulate):
            body.append(Accumulate(s.acc, tuple(made.get(a, a) for a in s.args)))
        elif isinstance(s, Store):
            body.append(Store(s.buffer, s.index, made.get(s.value, s.value), None if s.mask is mask else s.mask))
        elif not isinstance(s, Ins):
            body.append(s)
        elif s.opname == "select" and s.args[0] is mask:
            made[s] = made.get(s.args[1], s.args[1])
        elif s is not mask:
            made[s] = _copy(s, mask, made)
            body.append(made[s])
    return body


def _copy(s: Ins, mask: Ins, made: dict[Value, Value]) -> Ins:
    """The instruction on what its operands have become."""
    if not any(a is mask or made.get(a, a) is not a for a in s.args):
        return s
    copy = Ins.load(*s.attrs) if s.op == "load" and s.args == (mask,) else s.copy(made, lambda a: a)
    copy.name, copy.extent, copy.assumed = s.name, s.extent, s.assumed
    return copy
