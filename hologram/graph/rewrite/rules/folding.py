"""Constant folding, and the laws that the op table states: idempotence, involution, commutative order; casts; empty arrays."""

from __future__ import annotations

import numpy as np

from hologram import dtypes
from hologram.dtypes import DType
from hologram.graph.multiply_add import product_of
from hologram.graph.rewrite.rewriter import Rewriter, Rule
from hologram.graph.rewrite.rule import rule_fn
from hologram.ir.node import Node, const_value

# --- constants -------------------------------------------------------------------------------------------------------


def _fold(node: Node, b: Rewriter) -> Node | None:
    if any(i.op.name != "const" for i in node.inputs):
        return None
    with np.errstate(all="ignore"):
        value = node.op.reference(*[np.asarray(const_value(i)) for i in node.inputs], *node.attrs)
    return b.const(value, node.dtype)


def _constant_sum(b: Rewriter, dtype: DType) -> list[Node]:
    return [b.make("add", b.const(2, dtype), b.const(1, dtype))]


def _constant_mad(b: Rewriter, dtype: DType) -> list[Node]:
    return [b.make("mad", b.const(2, dtype), b.const(3, dtype), b.const(0.5, dtype))] if dtype.is_float else []


@rule_fn(("@elementwise",), "fold", "f(c) = the reference's value", "exact", within=("const",), examples=_constant_sum)
def fold(node: Node, b: Rewriter) -> Node | None:
    return _fold(node, b) if node.op.exact else None


@rule_fn(("@elementwise",), "fold-inexact", "f(c) = the reference's value", "standard", within=("const",), examples=_constant_mad)
def fold_inexact(node: Node, b: Rewriter) -> Node | None:
    return None if node.op.exact else _fold(node, b)


# --- what the algebra column says ------------------------------------------------------------------------------------


def _commuted(b: Rewriter, dtype: DType) -> list[Node]:
    x, y = b.argument(dtype, 4), b.argument(dtype, 4)
    return [b.make("max", y, x)]


@rule_fn(("@commutative",), "commute", "x o y = y o x", "exact", examples=_commuted)
def commute(node: Node, b: Rewriter) -> Node | None:
    """Orders operands by their structure. Equal ranks (two leaves, or hashes that collide) take the order that is there already. A sum of two
    products keeps the user's order, which decides which of them is fused with it: inputs rank by their numbers, of which no result may depend."""
    x, y = node.inputs
    if node.op.name == "add" and product_of(x) is not None and product_of(y) is not None:
        return None
    if b.rank[x] > b.rank[y]:
        return b.make(node.op.name, y, x)
    if b.rank[x] == b.rank[y] and x is not y:
        return b.swapped(node)
    return None


def _twice_not(b: Rewriter, dtype: DType) -> list[Node]:
    name = "neg" if dtype.kind in "iuf" else "not"
    return [b.make(name, b.make(name, b.argument(dtype, 4)))]


@rule_fn(("@involution",), "involution", "f(f(x)) = x", "exact", over=("@involution",), examples=_twice_not)
def involution(node: Node, b: Rewriter) -> Node | None:
    return node.inputs[0].inputs[0] if node.inputs[0].op is node.op else None


def _twice_abs(b: Rewriter, dtype: DType) -> list[Node]:
    x = b.argument(dtype, 4)
    unary = [b.make("abs", b.make("abs", x))] if dtype.kind in "iuf" else []
    return [*unary, b.make("max", x, x)]


@rule_fn(("@idempotent",), "idempotence", "f(f(x)) = f(x), x o x = x", "exact", examples=_twice_abs, shallow=True)
def idempotence(node: Node, b: Rewriter) -> Node | None:
    x = node.inputs[0]
    if len(node.inputs) == 2:
        return x if x is node.inputs[1] else None
    return x if x.op is node.op else None


# --- casts -----------------------------------------------------------------------------------------------------------


def lossless(a: DType, b: DType) -> bool:
    """Whether every value of ``a`` is a value of ``b``."""
    if a is b or a.kind == "b":
        return True
    if a.is_complex or b.is_complex or b.kind == "b":
        return False
    if b.is_float:
        if a.is_float:
            return a.bits < b.bits
        return a.bits - (a.kind == "i") <= b.format.fraction_bits + 1
    return a.is_integer and (a.bits < b.bits and (a.kind == "u" or b.kind == "i"))


def _composes(first: DType, middle: DType, last: DType) -> bool:
    """Whether casting ``first`` to ``middle`` to ``last`` is one cast: nothing lost, or integers cut twice.

    A float saturates where an integer wraps, so an integer that comes back from a float must fit.
    """
    if lossless(first, middle):
        return not (first.is_integer and middle.is_float and last.is_integer) or lossless(first, last)
    return first.is_integer and middle.is_integer and last.is_integer and last.bits <= middle.bits


def _cast_chains(b: Rewriter, dtype: DType) -> list[Node]:
    x = b.argument(dtype, 4)
    through = (dtypes.float64, dtypes.int64, dtypes.int16)
    return [
        b.make("cast", b.make("cast", x, attrs=(m.name,)), attrs=(t.name,))
        for m in through
        for t in dtypes.ALL
        if not t.is_complex and _composes(dtype, m, t)
    ]


@rule_fn(("cast",), "cast-cast", "B(A(x)) = B(x) where A loses nothing that B keeps", "exact", over=("cast",), examples=_cast_chains)
def cast_cast(node: Node, b: Rewriter) -> Node | None:
    x = node.inputs[0].inputs[0]
    return b.make("cast", x, attrs=node.attrs) if _composes(x.dtype, node.inputs[0].dtype, node.dtype) else None


@rule_fn(
    ("cast", "bitcast"),
    "cast-same",
    "T(x) = x for x of type T",
    "exact",
    examples=lambda b, dtype: [b.make("cast", b.argument(dtype, 4), attrs=(dtype.name,))],
    shallow=True,
)
def cast_same(node: Node, b: Rewriter) -> Node | None:
    return node.inputs[0] if node.inputs[0].dtype is node.dtype else None


def _bits_twice(b: Rewriter, dtype: DType) -> list[Node]:
    if dtype.kind == "b":
        return []
    x = b.argument(dtype, 4)
    return [b.make("bitcast", b.make("bitcast", x, attrs=(f"uint{dtype.bits}",)), attrs=(f"int{dtype.bits}",))]


@rule_fn(("bitcast",), "bitcast-bitcast", "bits of bits of x = bits of x", "exact", over=("bitcast",), examples=_bits_twice)
def bitcast_bitcast(node: Node, b: Rewriter) -> Node | None:
    return b.make("bitcast", node.inputs[0].inputs[0], attrs=node.attrs)


# --- integer powers --------------------------------------------------------------------------------------------------


def _powers(b: Rewriter, dtype: DType) -> list[Node]:
    x = b.argument(dtype, 4)
    return [b.make("integer_pow", x, attrs=(n,)) for n in (-1, 0, 1, 2, 3, 4) if dtype.is_float or n >= 0] if dtype.kind in "iuf" else []


@rule_fn(("integer_pow",), "small-power", "x^0 = 1, x^1 = x, x^2 = x * x, x^3 = x * (x * x), x^-1 = 1 / x", "exact", examples=_powers)
def small_power(node: Node, b: Rewriter) -> Node | None:
    """The op's own products, so that a square is shared; those of narrow floats are not rounded on the way, and stay together."""
    x, n = node.inputs[0], node.attrs[0]
    if n in (0, 1):
        return x if n else b.const(1, node.dtype)
    if n == -1:
        return b.make("div", b.const(1, node.dtype), x)
    if not 2 <= n <= 4 or n > 2 and dtypes.compute_type(node.dtype) is not node.dtype:
        return None
    square = b.make("mul", x, x)
    return square if n == 2 else b.make("mul", x if n == 3 else square, square)


# --- empty arrays ----------------------------------------------------------------------------------------------------


def _nothing(b: Rewriter, dtype: DType) -> list[Node]:
    x = b.argument(dtype, 0, 3)
    return [b.make("max", x, x), b.make("transpose", x, attrs=((1, 0),))]


@rule_fn(
    ("@elementwise", "@movement", "@scan", "@gather", "@reduce"),
    "empty",
    "an array without elements is an empty broadcast",
    "exact",
    examples=_nothing,
)
def empty(node: Node, b: Rewriter) -> Node | None:
    return b.full(0, node.dtype, node.shape) if 0 in node.shape else None


def _sum_of_nothing(b: Rewriter, dtype: DType) -> list[Node]:
    return [b.make("reduce_sum", b.argument(dtype, 0, 3), attrs=((0,),))] if dtype.kind in "iuf" else []


@rule_fn(("@reduce",), "reduce-empty", "the reduction of no elements is its op's value", "exact", examples=_sum_of_nothing, shallow=True)
def reduce_empty(node: Node, b: Rewriter) -> Node | None:
    if 0 not in node.inputs[0].shape:
        return None
    assert node.op.empty is not None, f"{node.op} over no elements passed its type rule"
    return b.full(node.op.empty(node.dtype), node.dtype, node.shape)


RULES: list[Rule] = [empty, reduce_empty, fold, fold_inexact, cast_same, cast_cast, bitcast_bitcast, small_power, involution, idempotence]
