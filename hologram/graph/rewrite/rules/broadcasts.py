"""Hoisting of broadcasts above the ops that read them, so that what is the same for a row or for the whole array is computed once.

An elementwise op commutes with a broadcast whatever its arithmetic: exact.
"""

from __future__ import annotations

from hologram.dtypes import DType
from hologram.graph.rewrite.rewriter import Rewriter, Rule
from hologram.graph.rewrite.rule import rule_fn
from hologram.graph.rewrite.rules.reshape_groups import taken
from hologram.ir.node import Node
from hologram.ir.op import Shape
from hologram.ir.symbolic import Expr


def _whole(b: Rewriter, dtype: DType) -> list[Node]:
    return [b.make("broadcast", b.argument(dtype, 3), attrs=((3,), (0,)))]


@rule_fn(("broadcast",), "broadcast-same", "broadcast(x, shape of x) = x", "exact", examples=_whole)
def broadcast_same(node: Node, b: Rewriter) -> Node | None:
    return node.inputs[0] if node.inputs[0].shape == node.shape else None


def _twice(b: Rewriter, dtype: DType) -> list[Node]:
    return [b.make("broadcast", b.make("broadcast", b.argument(dtype, 3), attrs=((2, 3), (1,))), attrs=((4, 2, 3), (1, 2)))]


@rule_fn(("broadcast",), "broadcast-broadcast", "broadcast(broadcast(x)) = broadcast(x)", "exact", over=("broadcast",), examples=_twice)
def broadcast_broadcast(node: Node, b: Rewriter) -> Node | None:
    below = node.inputs[0]
    return b.make("broadcast", below.inputs[0], attrs=(node.shape, taken(node.attrs[1], below.attrs[1])))


def _stretched(b: Rewriter, dtype: DType) -> list[Node]:
    return [b.make("broadcast", b.argument(dtype, 3, 1), attrs=((3, 4), (0, 1)))]


@rule_fn(("broadcast",), "broadcast-units", "broadcast(x) = broadcast(reshape(x)) without axes of extent 1", "exact", examples=_stretched)
def broadcast_units(node: Node, b: Rewriter) -> Node | None:
    x, (shape, dims) = node.inputs[0], node.attrs
    kept = tuple(a for a, n in enumerate(x.shape) if n != 1)
    if len(kept) == x.ndim:
        return None
    return b.make("broadcast", b.make("reshape", x, attrs=(taken(x.shape, kept),)), attrs=(shape, taken(dims, kept)))


def _unit_axes(b: Rewriter, dtype: DType) -> list[Node]:
    return [b.make("broadcast", b.argument(dtype, 3), attrs=((1, 3, 1), (1,)))]


@rule_fn(("broadcast",), "broadcast-adds-units", "broadcast(x) = reshape(x) where all new axes have extent 1", "exact", examples=_unit_axes)
def broadcast_adds_units(node: Node, b: Rewriter) -> Node | None:
    x, (shape, dims) = node.inputs[0], node.attrs
    if taken(shape, dims) != x.shape or any(n != 1 for a, n in enumerate(shape) if a not in dims):
        return None
    return b.make("reshape", x, attrs=(shape,))


def _scalar_and_array(b: Rewriter, dtype: DType) -> list[Node]:
    everywhere = b.make("broadcast", b.argument(dtype), attrs=((4,), ()))
    return [b.make("max", everywhere, b.argument(dtype, 4))]


@rule_fn(
    ("@elementwise",), "implicit-scalar", "f(broadcast(s), x) = f(s, x) for a scalar s", "exact", among=("broadcast",), examples=_scalar_and_array
)
def implicit_scalar(node: Node, b: Rewriter) -> Node | None:
    inputs = tuple(i.inputs[0] if i.op.name == "broadcast" and not i.inputs[0].shape else i for i in node.inputs)
    if inputs == node.inputs or not any(i.shape for i in inputs):
        return None
    return b(node.op, inputs, node.attrs)


def _all_broadcast(b: Rewriter, dtype: DType) -> list[Node]:
    rows = [b.make("broadcast", b.argument(dtype, 4), attrs=((3, 4), (1,))) for _ in range(2)]
    scalars = [b.make("broadcast", b.argument(dtype), attrs=((3,), ())) for _ in range(2)]
    cross = [b.make("broadcast", b.argument(dtype, n), attrs=((2, 3, 4), (a,))) for a, n in ((0, 2), (1, 3))]
    return [b.make("max", *rows), b.make("max", *scalars), b.make("max", *cross), b.make("cast", rows[0], attrs=("float64",))]


@rule_fn(
    ("@elementwise",), "broadcast-out", "f(broadcast(x), broadcast(y)) = broadcast(f(x, y))", "exact", among=("broadcast",), examples=_all_broadcast
)
def broadcast_out(node: Node, b: Rewriter) -> Node | None:
    """Along the axes that no input has; inputs that have fewer of the others are broadcast along those. Where all of these axes have one element
    nothing is computed twice, and what came of it would be a reshape, which sinks below ``f`` again."""
    wide = [i for i in node.inputs if i.shape]
    if any(i.op.name != "broadcast" for i in wide):
        return None
    used = tuple(sorted({a for i in wide for a in i.attrs[1]}))
    if all(n == 1 for a, n in enumerate(node.shape) if a not in used):
        return None
    inner = taken(node.shape, used)
    inputs = tuple(_along(i, used, inner, b) if i.shape else i for i in node.inputs)
    return b.make("broadcast", b(node.op, inputs, node.attrs), attrs=(node.shape, used))


def _along(x: Node, axes: tuple[int, ...], shape: Shape, b: Rewriter) -> Node:
    """The broadcast ``x`` along ``axes`` only, which have the extents ``shape``."""
    dims = tuple(axes.index(a) for a in x.attrs[1])
    return b.make("broadcast", x.inputs[0], attrs=(shape, dims)) if shape else x.inputs[0]


def _per_row_factors(b: Rewriter, dtype: DType) -> list[Node]:
    if dtype.kind == "b":
        return []
    x, rows = b.argument(dtype, 3, 4), [b.make("broadcast", b.argument(dtype, 3), attrs=((3, 4), (0,))) for _ in range(2)]
    return [b.make(op, b.make(op, x, rows[0]), rows[1]) for op in ("add", "mul")]


def _rows_together(node: Node, b: Rewriter) -> Node | None:
    """``(x o r) o s`` as ``x o (r o s)`` where ``r`` and ``s`` are broadcast alike and ``x`` is not."""
    for inner, s in (node.inputs, node.inputs[::-1]):
        if inner.op is not node.op or s.op.name != "broadcast":
            continue
        for x, r in (inner.inputs, inner.inputs[::-1]):
            if r.op.name == "broadcast" and r.attrs == s.attrs and x.op.name != "broadcast":
                return b.make(node.op.name, x, b.make(node.op.name, r, s))
    return None


_ROWS = "(x o r) o s = x o (r o s) for r, s broadcast alike"


@rule_fn(("add", "mul"), "rows-together", _ROWS, "exact", among=("broadcast",), examples=_per_row_factors)
def rows_together(node: Node, b: Rewriter) -> Node | None:
    return _rows_together(node, b) if node.dtype.is_integer else None


@rule_fn(("add",), "rows-together-float", _ROWS, "fast", among=("broadcast",), examples=_per_row_factors)
def rows_together_float(node: Node, b: Rewriter) -> Node | None:
    return _rows_together(node, b) if node.dtype.is_float else None


# --- counting --------------------------------------------------------------------------------------------------------


def _planes(b: Rewriter, dtype: DType) -> list[Node]:
    return [b.make("iota", attrs=((3, 4), 1, dtype.name))] if dtype.kind in "iuf" else []


@rule_fn(("iota",), "iota-row", "iota(shape, axis) = broadcast(iota(extent))", "exact", examples=_planes)
def iota_row(node: Node, b: Rewriter) -> Node | None:
    shape, axis, dtype = node.attrs
    if len(shape) == 1:
        return None
    return b.make("broadcast", b.make("iota", attrs=((shape[axis],), 0, dtype)), attrs=(shape, (axis,)))


def _sliced_counts(b: Rewriter, dtype: DType) -> list[Node]:
    if not dtype.is_integer:
        return []
    return [b.make("slice", b.make("iota", attrs=((9,), 0, dtype.name)), attrs=t) for t in (((8,), (-1,), (-1,)), ((1,), (8,), (3,)))]


@rule_fn(("slice",), "slice-iota", "iota[a::s] = iota * s + a", "exact", over=("iota",), examples=_sliced_counts)
def slice_iota(node: Node, b: Rewriter) -> Node | None:
    (start,), _, (step,) = node.attrs
    if not node.dtype.is_integer or isinstance(start, Expr) or node.ndim != 1:
        return None
    count = b.make("iota", attrs=(node.shape, 0, node.dtype.name))
    wrapped = [_wrap(v, node.dtype) for v in (step, int(start))]
    return b.make("add", b.make("mul", count, b.const(wrapped[0], node.dtype)), b.const(wrapped[1], node.dtype))


def _wrap(v: int, dtype: DType) -> int:
    v %= 1 << dtype.bits
    return v - (1 << dtype.bits) if dtype.kind == "i" and v >> (dtype.bits - 1) else v


def _cast_counts(b: Rewriter, dtype: DType) -> list[Node]:
    return [b.make("cast", b.make("iota", attrs=((9,), 0, "int64")), attrs=(dtype.name,))] if dtype.kind in "iuf" else []


@rule_fn(("cast",), "cast-iota", "T(iota) = iota of type T where T holds every index", "exact", over=("iota",), examples=_cast_counts)
def cast_iota(node: Node, b: Rewriter) -> Node | None:
    x = node.inputs[0]
    extent = x.shape[x.attrs[1]]
    if node.dtype.kind not in "iuf" or isinstance(extent, Expr):
        return None
    if extent - 1 > min(_largest_index(x.dtype), _largest_index(node.dtype)):
        return None
    return b.make("iota", attrs=(x.attrs[0], x.attrs[1], node.dtype.name))


def _largest_index(dtype: DType) -> int:
    """The largest n such that 0, 1, …, n are all values of ``dtype``."""
    if dtype.is_float:
        return 2 ** (dtype.format.fraction_bits + 1)
    return 2 ** (dtype.bits - (dtype.kind == "i")) - 1


def _one_place(b: Rewriter, dtype: DType) -> list[Node]:
    return [b.make("iota", attrs=((1,), 0, dtype.name))] if dtype.kind in "iuf" else []


@rule_fn(("iota",), "iota-one", "iota(1) = 0", "exact", examples=_one_place)
def iota_one(node: Node, b: Rewriter) -> Node | None:
    return b.full(0, node.dtype, node.shape) if node.attrs[0][node.attrs[1]] == 1 else None


RULES: list[Rule] = [
    broadcast_same,
    broadcast_broadcast,
    broadcast_units,
    broadcast_adds_units,
    implicit_scalar,
    broadcast_out,
    rows_together,
    rows_together_float,
    iota_one,
    iota_row,
    slice_iota,
    cast_iota,
]
