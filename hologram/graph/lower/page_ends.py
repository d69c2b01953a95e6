"""Ends of pages: where a page is filled up to its size, a loop over it runs over what there is.

An axis of symbolic extent is cut in pages of a static extent, and the last is filled up with the identity of the reduction or scan. A mask tells
which elements are there. They are the first ones, so the mask is the end of the loop; what it leaves out would change nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hologram.graph.kernel.ir import Acc, Accumulate, Loop, Prefetch, Store, Value
from hologram.ir.instruction import Ins
from hologram.ir.symbolic import Expr, Int, atoms, bounds, split_linear
from hologram.primitives.scalar.elementwise import fused_mul


def trim_page(loop: Loop, is_uniform_name: Callable[[str], bool]) -> None:
    """Ends ``loop`` where the mask of all that it accumulates and stores does, and takes the mask away.

    ``is_uniform_name``: of a name in an index expression, whether it is the same in all vector lanes around the loop, which end together.
    """
    if not isinstance(loop.extent, int) or loop.limit is not None or loop.start != 0 or not loop.accs:
        return
    masks = {_mask(s) for s in loop.body if not isinstance(s, Prefetch) and (not isinstance(s, Ins) or s.op == "scan")}
    if len(masks) != 1 or (mask := masks.pop()) is None:
        return
    limit = _end(mask, loop.var)
    if limit is not None and all(is_uniform_name(a.name) for a in atoms(limit)) and all(_knows(s, mask) for s in loop.body):
        loop.limit = limit
        loop.body = _unmasked(loop, mask)


def _mask(s: Any) -> Ins | None:
    """The mask where a statement accumulates elements that are there, else the identity, or stores these alone."""
    if isinstance(s, Store):
        return s.mask if isinstance(s.mask, Ins) and s.mask.op == "inside" else None
    if isinstance(s, Accumulate):
        return _mask_of_element(s.acc, s.args)
    return _mask_of_element(s.attrs[0], s.args) if isinstance(s, Ins) else None


def _mask_of_element(acc: Acc, args: tuple[Value, ...]) -> Ins | None:
    if acc.op.monoid is None or (found := _filled(args[0])) is None:
        return None
    mask, fill = found
    return mask if Ins.const(fill, acc.value_dtype).attrs == Ins.const(acc.op.identity(acc.value_dtype), acc.value_dtype).attrs else None


def _filled(x: Value) -> tuple[Ins, Any] | None:
    """The mask of a value, and the number that it is where that does not hold; of a product those of its factors. None where there is no such."""
    if not isinstance(x, Ins):
        return None
    if x.op is fused_mul:
        first, second = (_filled(factor) for factor in x.args)
        return (first[0], first[1] * second[1]) if first is not None and second is not None and first[0] is second[0] else None
    if x.opname != "select":
        return None
    mask, _, other = x.args
    if not isinstance(mask, Ins) or mask.op != "inside" or not isinstance(other, Ins) or other.op != "const":
        return None
    return mask, np.frombuffer(other.attrs[1], other.dtype.np)[0]


def _end(mask: Ins, name: str) -> Int | None:
    """Up to which value of the variable ``name`` the mask holds; None where it is not of that form, or static."""
    e, size = mask.attrs
    linear = split_linear(e, name)
    if linear is None or linear[0] != 1 or not isinstance(size, Expr):
        return None
    low, _ = bounds(linear[1])
    return size - linear[1] if low is not None and low >= 0 else None


def _knows(s: Any, mask: Ins) -> bool:
    """Whether a statement can do without the mask."""
    if not isinstance(s, Ins) or mask not in s.args:
        return True
    return (s.op == "load" or s.opname == "select") and mask not in s.args[1:]


def _unmasked(loop: Loop, mask: Ins) -> list[Any]:
    made: dict[Value, Value] = {}
    body: list[Any] = []
    for s in loop.body:
        if isinstance(s, Accumulate):
            body.append(Accumulate(s.acc, tuple(made.get(a, a) for a in s.args)))
        elif isinstance(s, Store):
            body.append(Store(s.buffer, s.index, made.get(s.value, s.value)))
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
