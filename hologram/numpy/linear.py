"""Products of matrices and tensors, as broadcast multiplications and a sum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hologram.dtypes import DType
from hologram.errors import ArgumentError, DTypeError, ShapeError
from hologram.numpy.arguments import array, axis_of, permuted, reshaped, spread, wrap
from hologram.numpy.complexes import conjugated
from hologram.numpy.elementwise import FUNCTIONS
from hologram.numpy.manipulation import diagonal
from hologram.numpy.reductions import sum
from hologram.primitives import elementwise as ew
from hologram.primitives.op import Op
from hologram.primitives.reductions import reduce_any, reduce_sum
from hologram.symbolic import Int
from hologram.trace.apply import broadcast_node, broadcast_shapes, promoted
from hologram.trace.node import Node
from hologram.trace.recorder import located, record
from hologram.trace.tensor import Tensor

__all__ = ["dot", "einsum", "inner", "matmul", "outer", "tensordot", "trace", "vecdot"]


def _summed(dtype: DType) -> Op:
    return reduce_any if dtype.kind == "b" else reduce_sum


def _product_sum(a: Node, b: Node, axis: int = -1) -> Node:
    """The sum over ``axis`` of ``a * b``, which broadcast."""
    shape = broadcast_shapes("matmul", [a.shape, b.shape])
    product = record(ew.mul, (broadcast_node(a, shape), broadcast_node(b, shape)))
    return record(_summed(product.dtype), (product,), ((axis % len(shape),),))


def matmul(x1: Any, x2: Any, /) -> Tensor:
    """The product of matrices ``(…, m, k)`` and ``(…, k, n)``, whose leading axes broadcast; a vector is a row, or a column."""
    (a, b), _, weak = promoted("matmul", (x1, x2))
    if not a.shape or not b.shape:
        raise located(ShapeError(f"matmul takes arrays of at least one axis, not shapes {list(a.shape)} and {list(b.shape)}: multiply with *"))
    inner_extent = b.shape[-2] if len(b.shape) > 1 else b.shape[0]
    if a.shape[-1] != inner_extent:
        raise located(ShapeError(f"matmul: shapes {list(a.shape)} and {list(b.shape)} do not fit: {a.shape[-1]} columns meet {inner_extent} rows"))
    if len(b.shape) == 1:
        return wrap(_product_sum(a, b), weak)
    if len(a.shape) == 1:
        return wrap(_product_sum(reshaped(a, (*a.shape, 1)), b, -2), weak)
    broadcast_shapes("matmul", [a.shape[:-2], b.shape[:-2]])
    # summed over the last axis but one, so that a row of the result is computed from whole rows of x2
    return wrap(_product_sum(reshaped(a, (*a.shape, 1)), reshaped(b, (*b.shape[:-2], 1, *b.shape[-2:])), -2), weak)


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Tensor:
    """The sum along ``axis`` of the products of ``x1``, conjugated, and ``x2``."""
    (a, b), _, weak = promoted("vecdot", (x1, x2))
    moved = []
    for node in (conjugated(a), b):
        i = axis_of(axis, len(node.shape), "vecdot")
        moved.append(permuted(node, [*[j for j in range(len(node.shape)) if j != i], i]))
    if moved[0].shape[-1] != moved[1].shape[-1]:
        raise located(ShapeError(f"vecdot: extents {moved[0].shape[-1]} and {moved[1].shape[-1]} differ"))
    return wrap(_product_sum(moved[0], moved[1]), weak)


def dot(x1: Any, x2: Any, /) -> Tensor:
    """NumPy's dot: a product with a scalar, else the sum over the last axis of ``x1`` and the last but one of ``x2``."""
    a, b = array(x1, "dot"), array(x2, "dot")
    if not a.shape or not b.shape:
        return FUNCTIONS["multiply"](x1, x2)
    if len(b.shape) <= 2:
        return matmul(wrap(a), wrap(b))
    return tensordot(wrap(a), wrap(b), axes=((len(a.shape) - 1,), (len(b.shape) - 2,)))


def inner(x1: Any, x2: Any, /) -> Tensor:
    """The sum of products over the last axes."""
    a, b = array(x1, "inner"), array(x2, "inner")
    if not a.shape or not b.shape:
        return FUNCTIONS["multiply"](x1, x2)
    return tensordot(wrap(a), wrap(b), axes=((len(a.shape) - 1,), (len(b.shape) - 1,)))


def outer(x1: Any, x2: Any, /) -> Tensor:
    """Every product of an element of ``x1`` with one of ``x2``."""
    a, b = wrap(array(x1, "outer")), wrap(array(x2, "outer"))
    return FUNCTIONS["multiply"](a.reshape((-1, 1)), b.reshape((1, -1)))


def tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Tensor:
    """The sum of products over ``axes``: the last n of ``x1`` with the first n of ``x2``, or a pair of sequences."""
    a, b = array(x1, "tensordot"), array(x2, "tensordot")
    na, nb = len(a.shape), len(b.shape)
    if isinstance(axes, int):
        pairs = [*range(na - axes, na)], [*range(axes)]
    else:
        first, second = (v if isinstance(v, (tuple, list)) else (v,) for v in axes)
        pairs = [axis_of(i, na, "tensordot") for i in first], [axis_of(i, nb, "tensordot") for i in second]
    if len(pairs[0]) != len(pairs[1]):
        raise located(ShapeError(f"tensordot: axes {axes} do not pair"))
    left = list(range(na))
    right = [na + i for i in range(nb)]
    for i, j in zip(*pairs, strict=True):
        right[j] = left[i]
    result = [i for i in left if i not in right] + [j for j in right if j not in left]
    return _contracted("tensordot", [wrap(a), wrap(b)], [left, right], result)


def _contracted(what: str, arrays: Sequence[Any], labels: Sequence[Sequence[Any]], result: Sequence[Any]) -> Tensor:
    """The product of ``arrays``, whose axes carry ``labels``, summed over every label that ``result`` lacks."""
    nodes, _, weak = promoted(what, arrays)
    extents: dict[Any, Int] = {}
    for node, names in zip(nodes, labels, strict=True):
        for name, n in zip(names, node.shape, strict=True):
            known = extents.setdefault(name, n)
            if known == 1:
                extents[name] = n
            elif n not in (1, known):
                raise located(ShapeError(f"{what}: extents {known} and {n} meet on one index"))
    order = [*result, *[x for x in extents if x not in result]]
    shape = tuple(extents[x] for x in order)
    product: Node | None = None
    for node, names in zip(nodes, labels, strict=True):
        ascending = sorted(range(len(names)), key=lambda i, names=names: order.index(names[i]))  # type: ignore[misc]
        placed = spread(permuted(node, ascending), shape, [order.index(names[i]) for i in ascending])
        product = placed if product is None else record(ew.mul, (product, placed))
    assert product is not None
    axes = tuple(range(len(result), len(order)))
    return wrap(record(_summed(product.dtype), (product,), (axes,)) if axes else product, weak)


def einsum(subscripts: str, /, *operands: Any) -> Tensor:
    """NumPy's einsum for operands that name no index twice; ``...`` stands for leading axes that broadcast.

    Raises ArgumentError where the subscripts do not parse, ShapeError where they do not fit the operands.
    """
    inputs, arrow, output = subscripts.replace(" ", "").partition("->")
    terms = inputs.split(",")
    if len(terms) != len(operands):
        raise located(ArgumentError(f"einsum: {subscripts!r} names {len(terms)} operands, {len(operands)} are given"))
    arrays = [wrap(array(x, "einsum")) for x in operands]
    ranks = [x.ndim - len(t.replace("...", "")) for t, x in zip(terms, arrays, strict=True)]
    widest = max([r for t, r in zip(terms, ranks, strict=True) if "..." in t], default=0)
    labels = [_labels(t, r, widest, subscripts) for t, r in zip(terms, ranks, strict=True)]
    if arrow:
        result = _labels(output, widest if "..." in output else 0, widest, subscripts)
    else:
        names = [n for ls in labels for n in ls]
        result = [*range(-widest, 0), *sorted(n for n in set(names) if isinstance(n, str) and names.count(n) == 1)]
    unknown = [n for n in result if not any(n in ls for ls in labels)]
    if unknown:
        raise located(ArgumentError(f"einsum: {subscripts!r} has an index in its result that no operand has"))
    return _contracted("einsum", arrays, labels, result)


def _labels(term: str, leading: int, widest: int, subscripts: str) -> list[Any]:
    """One label an axis: letters, and negative numbers for the axes of ``...``."""
    before, dots, after = term.partition("...")
    if leading < 0 or (leading > 0 and not dots) or not (before + after).replace("...", "?").isalpha() and before + after:
        raise located(ArgumentError(f"einsum: the term {term!r} of {subscripts!r} does not fit its operand"))
    labels = [*before, *range(-leading, 0), *after]
    if len(set(labels)) != len(labels):
        raise located(DTypeError(f"einsum: {term!r} names an index twice, which is not supported: use diagonal"))
    return labels


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """The sum of the diagonal of the last two axes."""
    return sum(diagonal(x, offset=offset), -1, dtype=dtype)
