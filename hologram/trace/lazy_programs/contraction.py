"""Whether the bits of a graph's results depend on the form of its program, by contraction.

A product that is added to something may be contracted with the sum: it is then not rounded. Whether it is depends on what stands beside it in one
kernel: on the order of two products in one sum, on whether a product is kept in memory for others, on how a reduction is unrolled. Programs by value
and programs whose sizes are symbols may differ there. Where a product has one user, the sum itself, and is the only one in it, they do not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from hologram.dtypes import DType
from hologram.ir.expression_builder import Rare, decompose
from hologram.ir.instruction import Ins
from hologram.ir.leaves import const
from hologram.ir.node import Node
from hologram.ir.op import Op
from hologram.primitives.scalar import elementwise as ew

_WITHOUT_SUMS = frozenset(
    ("mul", "div", "min", "max", "select", "neg", "abs", "sqrt", "floor", "ceil", "trunc", "round", "copysign", "cast", "bitcast")
)
_MOVING = ("movement", "gather", "mark")
_KNOWN = (*_MOVING, "leaf", "elementwise", "reduce", "scan")


def depends_on_form(order: Sequence[Node], roots: Sequence[Node], sizes: bool) -> bool:
    """Whether a program of the nodes in ``order`` may give other bits where other numbers are operands: ``sizes``, or integers alone."""
    users = Counter(x for node in order for x in node.inputs)
    users.update(roots)
    return any(_depends(x, users, sizes) for x in order)


def _depends(x: Node, users: Counter[Node], sizes: bool) -> bool:
    if x.dtype.kind not in "fc" or not x.inputs or x.op.kind in _MOVING:
        return False
    if x.dtype.kind == "c" or x.op.kind not in _KNOWN:
        return True
    if x.op.name in _WITHOUT_SUMS:
        return x.op.name == "cast" and _moved(x.inputs[0]).op is const  # whose value a rule may look for
    products = [i for i in x.inputs if _is_product(_moved(i))]
    if any(_moved(i).op.name == "select" for i in products):  # which folds where its condition is known
        return True
    if x.op.kind in ("reduce", "scan"):
        return sizes and x.op.monoid is ew.add and bool(products)
    return len(products) > 1 or (sizes and any(users[i] > 1 or _moved(i) is not i for i in products))


def _moved(x: Node) -> Node:
    """What is moved to give ``x``."""
    while x.inputs and x.op.kind in _MOVING:
        x = x.inputs[0]
    return x


def _is_product(x: Node) -> bool:
    """Whether a value may be a product when it is added to something."""
    if x.op.kind != "elementwise" or not x.dtype.is_float:
        return False
    if x.op.name in ("select", "neg", "copysign"):
        return any(_is_product(_moved(i)) for i in x.inputs)
    return _ends_in_product(x.op, tuple([i.dtype for i in x.inputs]), x.attrs)


@lru_cache(1024)
def _ends_in_product(op: Op, types: tuple[DType, ...], attrs: tuple[Any, ...]) -> bool:
    """Whether the last instruction of an op is a product."""
    return op is ew.mul or (op.lower is not None and _is_last_product(decompose(op, types, attrs)[2]))


def _is_last_product(x: Ins) -> bool:
    if isinstance(x, Rare):
        return _is_last_product(x.slow) or any(map(_is_last_product, x.args))
    if isinstance(x.op, str):
        return False
    if x.op.name in ("select", "neg", "abs", "copysign"):
        return any(map(_is_last_product, x.args))
    return _ends_in_product(x.op, tuple([a.dtype for a in x.args]), x.attrs)
