"""Products of matrices and tensors, as broadcast multiplications and a sum."""

from __future__ import annotations

import math
from builtins import sum as sum_of
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from hologram import dtypes
from hologram.dtypes import DType
from hologram.errors import ArgumentError, DTypeError, ShapeError
from hologram.ir.node import Node
from hologram.ir.op import Op
from hologram.ir.symbolic import Int
from hologram.numpy.along_axes.reductions import sum
from hologram.numpy.arguments import alike, array, as_tensor, axis_of, element_type, permuted, promoted_pair, reshaped, spread, wrap
from hologram.numpy.arrangement.manipulation import diagonal
from hologram.numpy.complexes import conj, conjugated
from hologram.numpy.elementwise.functions import FUNCTIONS
from hologram.numpy.indexing.views import viewed
from hologram.numpy.products.contraction import contraction_path
from hologram.numpy.products.subscripts import with_subscripts
from hologram.numpy.shaping.joining import concat
from hologram.numpy.shaping.shapes import moveaxis
from hologram.primitives.reductions import reduce_any, reduce_sum
from hologram.primitives.scalar import elementwise as ew
from hologram.support.user_lines import located
from hologram.trace.checks import items
from hologram.trace.operators import broadcast_node, broadcast_shapes, promoted
from hologram.trace.recorder import cast_node, record
from hologram.trace.replayed import replayed
from hologram.trace.tensor import Tensor

__all__ = ["cross", "dot", "einsum", "inner", "kron", "matmul", "matvec", "outer", "tensordot", "trace", "vdot", "vecdot", "vecmat"]

Labels = Sequence[Any]
Pairs = tuple[Sequence[int], Sequence[int]]

SOME = 256  # what a symbolic extent counts as where the cheapest order is chosen


def _summed(dtype: DType) -> Op:
    return reduce_any if dtype.kind == "b" else reduce_sum


def factors(what: str, arrays: Sequence[Any], preferred: Any) -> tuple[list[Node], DType, bool]:
    """``arrays`` in the type that products and sums are computed in, the type of the result, and whether that is weak.

    Narrow floats are computed in float32, where the product of two of them is exact.
    """
    nodes, dtype, weak = promoted(what, arrays)
    result = dtype
    if preferred is not None:
        result, weak = element_type(preferred), False
        if _loses(dtype, result):
            raise located(DTypeError(f"{what}: preferred_element_type {result} cannot hold sums of products of {dtype}"))
    working = dtypes.promote(dtypes.compute_type(dtype), dtypes.compute_type(result))
    return [cast_node(x, working) for x in nodes], result, weak


def _loses(dtype: DType, result: DType) -> bool:
    """Whether numbers become truth values, floats integers, or complex numbers real."""
    return result.rank < dtype.rank and not (dtype.is_integer and result.is_integer)


def _product_sum(a: Node, b: Node, result: DType, axis: int = -1) -> Node:
    """The sum over ``axis`` of ``a * b``, which broadcast."""
    shape = broadcast_shapes("matmul", [a.shape, b.shape])
    product = record(ew.mul, (broadcast_node(a, shape), broadcast_node(b, shape)))
    return cast_node(record(_summed(product.dtype), (product,), ((axis % len(shape),),)), result)


@replayed(2)
def matmul(x1: Any, x2: Any, /, *, precision: Any = None, preferred_element_type: Any = None) -> Tensor:
    """Matrix product of ``(…, m, k)`` and ``(…, k, n)``, whose leading axes broadcast; a vector is a row, or a column.

    The result ``(…, m, n)`` has the common type. Sums of narrow floats run in float32 and are rounded once. ``preferred_element_type``, here and in
    the other products, is the type of the result, in which products and sums are computed where it is the wider: int32 for int8, float32 for
    bfloat16. ``precision`` is taken, as JAX's is, and says nothing here: see the ``precision`` of ``hologram.jit``.

    Raises ShapeError where the extents do not fit, DTypeError for a preferred type of a lesser kind (integers for floats, reals for complex).

    >>> hnp.matmul([[1, 2], [3, 4]], [[5], [6]])
    Tensor([[17],
            [39]], dtype=int64)
    >>> hnp.matmul([[1.0, 2.0], [3.0, 4.0]], [1.0, 1.0])
    Tensor([3., 7.], dtype=float32)
    """
    (a, b), dtype, weak = factors("matmul", (x1, x2), preferred_element_type)
    if not a.shape or not b.shape:
        raise located(ShapeError(f"matmul takes arrays of at least one axis, not shapes {list(a.shape)} and {list(b.shape)}: multiply with *"))
    inner_extent = b.shape[-2] if len(b.shape) > 1 else b.shape[0]
    if a.shape[-1] != inner_extent:
        raise located(ShapeError(f"matmul: shapes {list(a.shape)} and {list(b.shape)} do not fit: {a.shape[-1]} columns meet {inner_extent} rows"))
    if len(b.shape) == 1:
        return wrap(_product_sum(a, b, dtype), weak)
    if len(a.shape) == 1:
        return wrap(_product_sum(reshaped(a, (*a.shape, 1)), b, dtype, -2), weak)
    broadcast_shapes("matmul", [a.shape[:-2], b.shape[:-2]])
    # summed over the last axis but one, so that a row of the result is computed from whole rows of x2
    return wrap(_product_sum(reshaped(a, (*a.shape, 1)), reshaped(b, (*b.shape[:-2], 1, *b.shape[-2:])), dtype, -2), weak)


@replayed(2)
def vecdot(x1: Any, x2: Any, /, *, axis: int = -1, precision: Any = None, preferred_element_type: Any = None) -> Tensor:
    """Dot products of vectors along ``axis``: the sum of ``conj(x1) * x2``.

    The other axes broadcast; ``preferred_element_type`` is as for :func:`matmul`. Raises ShapeError where the vectors' extents differ.

    >>> hnp.vecdot([[1, 2], [3, 4]], [1, 10])
    Tensor([21, 43], dtype=int64)
    """
    (a, b), dtype, weak = factors("vecdot", (x1, x2), preferred_element_type)
    moved = []
    for node in (conjugated(a), b):
        i = axis_of(axis, len(node.shape), "vecdot")
        moved.append(permuted(node, [*[j for j in range(len(node.shape)) if j != i], i]))
    if moved[0].shape[-1] != moved[1].shape[-1]:
        raise located(ShapeError(f"vecdot: extents {moved[0].shape[-1]} and {moved[1].shape[-1]} differ"))
    return wrap(_product_sum(moved[0], moved[1], dtype), weak)


@replayed(2)
def dot(x1: Any, x2: Any, /, *, precision: Any = None, preferred_element_type: Any = None) -> Tensor:
    """Dot product, as NumPy's: a product with a scalar, else the sum over the last axis of ``x1`` and the last but one of ``x2``.

    Of matrices :func:`matmul`. ``preferred_element_type`` and errors are as there.

    >>> hnp.dot([1, 2, 3], [4, 5, 6])
    Tensor(32, dtype=int64)
    """
    a, b = array(x1, "dot"), array(x2, "dot")
    if not a.shape or not b.shape:
        return _scaled("dot", x1, x2, preferred_element_type)
    if len(b.shape) <= 2:
        return matmul(wrap(a), wrap(b), preferred_element_type=preferred_element_type)
    return tensordot(wrap(a), wrap(b), axes=((len(a.shape) - 1,), (len(b.shape) - 2,)), preferred_element_type=preferred_element_type)


@replayed(2)
def inner(x1: Any, x2: Any, /, *, precision: Any = None, preferred_element_type: Any = None) -> Tensor:
    """Inner product: the sum of products over the last axes of both, whose other axes follow each other.

    ``preferred_element_type`` is as for :func:`matmul`. Raises ShapeError where the last extents differ.

    >>> hnp.inner([[1, 2], [3, 4]], [10, 1])
    Tensor([12, 34], dtype=int64)
    """
    a, b = array(x1, "inner"), array(x2, "inner")
    if not a.shape or not b.shape:
        return _scaled("inner", x1, x2, preferred_element_type)
    return tensordot(wrap(a), wrap(b), axes=((len(a.shape) - 1,), (len(b.shape) - 1,)), preferred_element_type=preferred_element_type)


def _scaled(what: str, x1: Any, x2: Any, preferred: Any) -> Tensor:
    """The product with a scalar."""
    if preferred is None:
        return FUNCTIONS["multiply"](x1, x2)
    (a, b), dtype, _ = factors(what, (x1, x2), preferred)
    return wrap(cast_node(record(ew.mul, (a, b)), dtype))


@replayed(2)
def outer(x1: Any, x2: Any, /) -> Tensor:
    """Outer product (m, n): every product of an element of ``x1`` with one of ``x2``, both flattened.

    >>> hnp.outer([1, 2], [3, 4, 5])
    Tensor([[ 3,  4,  5],
            [ 6,  8, 10]], dtype=int64)
    """
    a, b = map(wrap, alike((x1, x2), "outer"))
    return FUNCTIONS["multiply"](a.reshape((-1, 1)), b.reshape((1, -1)))


@replayed(2)
def tensordot(x1: Any, x2: Any, /, axes: Any = 2, *, precision: Any = None, preferred_element_type: Any = None) -> Tensor:
    """Sum of products over ``axes``: the last n of ``x1`` with the first n of ``x2``, or a pair of sequences of axes.

    The other axes of ``x1`` come first, then those of ``x2``. ``preferred_element_type`` is as for :func:`matmul`. Raises ShapeError where extents
    of a pair differ, an axis is named twice, or the axes do not pair.

    >>> hnp.tensordot([[1, 2], [3, 4]], [[5, 6], [7, 8]], axes=2)
    Tensor(70, dtype=int64)
    >>> hnp.tensordot([[1, 2], [3, 4]], [10, 1], axes=([0], [0]))
    Tensor([13, 24], dtype=int64)
    """
    a, b = array(x1, "tensordot"), array(x2, "tensordot")
    na, nb = len(a.shape), len(b.shape)
    if isinstance(axes, int):
        if not 0 <= axes <= min(na, nb):
            raise located(ShapeError(f"tensordot: {axes} axes of shapes {list(a.shape)} and {list(b.shape)}"))
        pairs = [*range(na - axes, na)], [*range(axes)]
    else:
        if len(sides := items(axes, "tensordot", "axes")) != 2:
            raise located(ArgumentError(f"tensordot: axes are a number, or those of both arrays, not {len(sides)} parts"))
        first, second = (v if isinstance(v, (tuple, list)) else (v,) for v in sides)
        pairs = [axis_of(i, na, "tensordot") for i in first], [axis_of(i, nb, "tensordot") for i in second]
    if len(pairs[0]) != len(pairs[1]):
        raise located(ShapeError(f"tensordot: axes {axes} do not pair"))
    return paired("tensordot", a, b, pairs, ([], []), preferred_element_type)


def paired(what: str, a: Node, b: Node, summed: Pairs, batch: Pairs, preferred: Any) -> Tensor:
    """The products of ``a`` and ``b`` summed over pairs of axes: (batch…, other axes of ``a``…, other axes of ``b``…). Axes count from the front.

    Raises ShapeError where an axis is named twice, or the extents of a pair differ.
    """
    left, right = [*summed[0], *batch[0]], [*summed[1], *batch[1]]
    if len(set(left)) != len(left) or len(set(right)) != len(right):
        raise located(ShapeError(f"{what}: an axis is named twice in {left} or in {right}"))
    for i, j in zip(left, right, strict=True):
        if a.shape[i] != b.shape[j]:
            raise located(ShapeError(f"{what}: extents {a.shape[i]} and {b.shape[j]} meet, axis {i} of {list(a.shape)} and {j} of {list(b.shape)}"))
    first, second = list(range(len(a.shape))), [len(a.shape) + j for j in range(len(b.shape))]
    for i, j in zip(left, right, strict=True):
        second[j] = i
    kept = [*batch[0], *[i for i in first if i not in left], *[j for j in second if j not in left]]
    return _contracted(what, [wrap(a), wrap(b)], [first, second], kept, preferred)


class _Term(NamedTuple):
    """A factor of a contraction: a label an axis."""

    node: Node
    labels: Labels


def _contracted(what: str, arrays: Sequence[Any], labels: Sequence[Labels], result: Labels, preferred: Any, optimize: Any = "auto") -> Tensor:
    """The product of ``arrays``, whose axes carry ``labels``, summed over every label that ``result`` lacks.

    Labels of one factor alone are summed first; of more than two factors, the pair whose product grows the operands least goes first, unless
    ``optimize`` says otherwise: see :func:`einsum`.
    """
    nodes, dtype, weak = factors(what, arrays, preferred)
    terms = [_Term(*term) for term in zip(nodes, labels, strict=True)]
    _extents(what, terms)
    for i, term in enumerate(terms):
        others = {x for t in terms[:i] + terms[i + 1 :] for x in t.labels}
        terms[i] = _product(what, [term], [x for x in term.labels if x in others or x in result]) if len(terms) > 1 else term
    path = contraction_path(what, [(t.labels, t.node.shape) for t in terms], result, optimize)
    while len(terms) > 2:
        pair = next(path, None)
        if pair is None:
            i, j, kept = min(_pairs(terms, result), key=lambda pair: _growth(terms[pair[0]], terms[pair[1]], pair[2]))
        else:
            i, j, kept = next(found for found in _pairs(terms, result) if found[:2] == pair)
        terms = [t for k, t in enumerate(terms) if k not in (i, j)] + [_product(what, [terms[i], terms[j]], kept)]
    return wrap(cast_node(_product(what, terms, result).node, dtype), weak)


def _pairs(terms: list[_Term], result: Labels) -> Iterator[tuple[int, int, Labels]]:
    """Every pair of terms, and the labels that their product keeps."""
    for j in range(len(terms)):
        for i in range(j):
            wanted = {*result, *(x for k, t in enumerate(terms) if k not in (i, j) for x in t.labels)}
            yield i, j, [x for x in dict.fromkeys((*terms[i].labels, *terms[j].labels)) if x in wanted]


def _growth(a: _Term, b: _Term, kept: Labels) -> int:
    """Elements of the product less those of its factors. A symbolic extent counts as :data:`SOME`."""
    sizes = {x: n if isinstance(n, int) else SOME for t in (a, b) for x, n in zip(t.labels, t.node.shape, strict=True)}
    return math.prod(sizes[x] for x in kept) - sum_of(math.prod(sizes[x] for x in t.labels) for t in (a, b))


def _meeting(name: Any, terms: Sequence[_Term]) -> str:
    """Which operands have a label, where that is a letter of the user's: their numbers and shapes."""
    if not isinstance(name, str):
        return ""
    of = [f"operand {i} of shape {list(t.node.shape)}" for i, t in enumerate(terms) if name in t.labels]
    return f", {name!r} of {' and '.join(of)}"


def _extents(what: str, terms: Sequence[_Term]) -> dict[Any, Int]:
    """The extent of every label: 1 stretches. Raises ShapeError where two others meet."""
    extents: dict[Any, Int] = {}
    for term in terms:
        for name, n in zip(term.labels, term.node.shape, strict=True):
            known = extents.setdefault(name, n)
            if known == 1:
                extents[name] = n
            elif n not in (1, known):
                raise located(ShapeError(f"{what}: extents {known} and {n} meet on one index{_meeting(name, terms)}"))
    return extents


def _product(what: str, terms: Sequence[_Term], kept: Labels) -> _Term:
    """The product of ``terms``, summed over every label that ``kept`` lacks."""
    extents = _extents(what, terms)
    summed = [x for x in extents if x not in kept]
    place = len(kept) - 1 if kept and _in_columns(terms, kept, summed) else len(kept)
    order = [*kept[:place], *summed, *kept[place:]]
    shape = tuple(extents[x] for x in order)
    product: Node | None = None
    for node, names in terms:
        ascending = sorted(range(len(names)), key=lambda i, names=names: order.index(names[i]))  # type: ignore[misc]
        placed = spread(permuted(node, ascending), shape, [order.index(names[i]) for i in ascending])
        product = placed if product is None else record(ew.mul, (product, placed))
    assert product is not None
    axes = tuple(range(place, place + len(summed)))
    return _Term(record(_summed(product.dtype), (product,), (axes,)) if axes else product, kept)


def _in_columns(terms: Sequence[_Term], kept: Labels, summed: Labels) -> bool:
    """Whether the last kept axis stands after the summed ones, so that a row of the result is computed from whole rows.

    So it is in a product of matrices; in a product with a vector, where that is how the matrix lies.
    """
    if not summed:
        return False
    with_last = [t.labels for t in terms if kept[-1] in t.labels]
    without = [t.labels for t in terms if kept[-1] not in t.labels]
    if any(x in labels for labels in without for x in kept if not any(x in other for other in with_last)):
        return True
    return all(labels[-1] == kept[-1] for labels in with_last)


def einsum(subscripts: str, /, *operands: Any, optimize: Any = "auto", precision: Any = None, preferred_element_type: Any = None) -> Tensor:
    """Sum of products by index notation, as NumPy's einsum.

    ``...`` stands for leading axes that broadcast, an index that one operand names twice for its diagonal. Without ``->`` the result has the
    indices that occur once, in alphabetical order. Three operands or more are multiplied pair by pair: the cheapest first (``optimize`` is True,
    ``"auto"`` or ``"greedy"``), in the order of least work of all (``"optimal"``, of up to nine operands), from left to right (False), or as a list
    of pairs says: places among the operands that are left, with each product behind the others. ``preferred_element_type`` and ``precision`` are as
    for :func:`matmul`.

    Each operand may be followed by the list of its indices instead, integers from 0 to 51 and ``...``, and the last one by that of the result.

    Raises ArgumentError where the subscripts do not parse, ShapeError where they do not fit the operands.

    >>> hnp.einsum("ij,jk->ik", [[1, 2], [3, 4]], [[1, 0], [0, 1]])
    Tensor([[1, 2],
            [3, 4]], dtype=int64)
    >>> hnp.einsum([[1, 2], [3, 4]], [0, 1], [5, 6], [1])
    Tensor([17, 39], dtype=int64)
    >>> hnp.einsum("ii", [[1, 2], [3, 4]])
    Tensor(5, dtype=int64)
    """
    subscripts, operands = with_subscripts("einsum", subscripts, *operands)
    inputs, arrow, output = subscripts.replace(" ", "").partition("->")
    terms = inputs.split(",")
    if len(terms) != len(operands):
        raise located(ArgumentError(f"einsum: {subscripts!r} names {len(terms)} operands, {len(operands)} are given"))
    arrays = [wrap(array(x, "einsum")) for x in operands]
    ranks = [x.ndim - len(t.replace("...", "")) for t, x in zip(terms, arrays, strict=True)]
    widest = max([r for t, r in zip(terms, ranks, strict=True) if "..." in t], default=0)
    of = [f"operand {i} of shape {list(x.shape)}" for i, x in enumerate(arrays)]
    labels = [_labels(t, r, widest, o, subscripts) for t, r, o in zip(terms, ranks, of, strict=True)]
    if arrow:
        result = _labels(output, widest if "..." in output else 0, widest, "the result", subscripts)
    else:
        names = [n for ls in labels for n in ls]
        result = [*range(-widest, 0), *sorted(n for n in set(names) if isinstance(n, str) and names.count(n) == 1)]
    if len(set(result)) != len(result):
        raise located(ArgumentError(f"einsum: {subscripts!r} has the index {next(n for n in result if result.count(n) > 1)!r} twice in its result"))
    unknown = [n for n in result if not any(n in ls for ls in labels)]
    if unknown:
        raise located(ArgumentError(f"einsum: {subscripts!r} has the index {unknown[0]!r} in its result, which no operand has"))
    diagonals = [_distinct(x, ls) for x, ls in zip(arrays, labels, strict=True)]
    if len(arrays) == 1 and preferred_element_type is None and len(diagonals[0][1]) == len(result):  # nothing is summed: a view
        moved = permuted(array(diagonals[0][0], "einsum"), [list(diagonals[0][1]).index(n) for n in result])
        return viewed(operands[0], array(arrays[0], "einsum"), moved)
    return _contracted("einsum", [x for x, _ in diagonals], [ls for _, ls in diagonals], result, preferred_element_type, optimize)


def _labels(term: str, leading: int, widest: int, of: str, subscripts: str) -> list[Any]:
    """One label an axis: letters, and negative numbers for the axes of ``...``."""
    before, dots, after = term.partition("...")
    if leading < 0 or (leading > 0 and not dots) or not (before + after).replace("...", "?").isalpha() and before + after:
        raise located(ArgumentError(f"einsum: the term {term!r} of {subscripts!r} does not fit {of}"))
    return [*before, *range(-leading, 0), *after]


def _distinct(x: Tensor, labels: Labels) -> tuple[Tensor, Labels]:
    """The diagonals of axes that have one label, and distinct labels."""
    labels = list(labels)
    while repeated := [n for n in labels if labels.count(n) > 1]:
        i, j = [k for k, n in enumerate(labels) if n == repeated[0]][:2]
        if x.shape[i] != x.shape[j]:
            raise located(ShapeError(f"einsum: the index {repeated[0]!r} has the extents {x.shape[i]} and {x.shape[j]} in one operand"))
        others = [k for k in range(len(labels)) if k not in (i, j)]
        x = diagonal(x, 0, i, j)
        labels = [*(labels[k] for k in others), repeated[0]]
    return x, labels


def trace(x: Any, /, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Tensor:
    """Trace: the sum of a diagonal of the matrices whose rows lie along ``axis1`` and whose columns lie along ``axis2``.

    ``offset`` and errors are those of :func:`diagonal`, the types those of :func:`sum`.

    >>> hnp.trace([[1, 2], [3, 4]])
    Tensor(5, dtype=int64)
    """
    return sum(diagonal(x, offset, axis1, axis2), -1, dtype=dtype)


def kron(x1: Any, x2: Any, /) -> Tensor:
    """Kronecker product: every element of ``x1`` times all of ``x2``, in blocks.

    The shape is the product of the two, axis by axis; the array with fewer axes gets leading ones.

    >>> hnp.kron([1, 10], [1, 2])
    Tensor([ 1,  2, 10, 20], dtype=int64)
    """
    a, b = map(wrap, alike((x1, x2), "kron"))
    n = max(a.ndim, b.ndim)
    if not n:
        return FUNCTIONS["multiply"](x1, x2)
    a, b = a.reshape((*[1] * (n - a.ndim), *a.shape)), b.reshape((*[1] * (n - b.ndim), *b.shape))
    apart = a.reshape([m for s in a.shape for m in (s, 1)]) * b.reshape([m for s in b.shape for m in (1, s)])
    return apart.reshape([s * t for s, t in zip(a.shape, b.shape, strict=True)])


def cross(x1: Any, x2: Any, /, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Tensor:
    """Cross product of vectors with three components along ``axis``; the other axes broadcast.

    ``axisa``, ``axisb`` and ``axisc`` are the axes in ``x1``, ``x2`` and the result, where they differ: ``axis`` stands for all three.
    Raises ShapeError for vectors of other lengths, two included.

    >>> hnp.cross([1, 0, 0], [0, 1, 0])
    Tensor([0, 0, 1], dtype=int64)
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    x1, x2 = promoted_pair("cross", x1, x2)
    a, b = moveaxis(x1, axisa, -1), moveaxis(x2, axisb, -1)
    if a.shape[-1] != 3 or b.shape[-1] != 3:
        raise located(ShapeError(f"cross takes vectors of three components, not shapes {list(a.shape)} and {list(b.shape)}"))
    (a0, a1, a2), (b0, b1, b2) = ([v[..., i : i + 1] for i in range(3)] for v in (a, b))
    return moveaxis(concat([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0], axis=-1), -1, axisc)


@replayed(2)
def vdot(x1: Any, x2: Any, /) -> Tensor:
    """Dot product of two arrays flattened, the first conjugated; a scalar in their common type. Raises ShapeError for other numbers of elements.

    >>> hnp.vdot([1 + 1j, 2], [1, 3])
    Tensor(7.-1.j, dtype=complex64)
    """
    a, b = conj(as_tensor(x1, "vdot")).reshape(-1), as_tensor(x2, "vdot").reshape(-1)
    if a.shape != b.shape:
        raise located(ShapeError(f"vdot takes as many elements twice, not {a.shape[0]} and {b.shape[0]}"))
    return sum(a * b, dtype=(a * b).dtype)


def matvec(x1: Any, x2: Any, /) -> Tensor:
    """Products of matrices ``(…, m, k)`` and vectors ``(…, k)``, whose other axes broadcast: ``(…, m)``.

    Raises ShapeError for fewer axes, or extents that do not fit.

    >>> hnp.matvec([[1, 2], [3, 4]], [1, 10])
    Tensor([21, 43], dtype=int64)
    """
    a, b = as_tensor(x1, "matvec"), as_tensor(x2, "matvec")
    if a.ndim < 2 or not b.ndim:
        raise located(ShapeError(f"matvec takes matrices and vectors, not shapes {list(a.shape)} and {list(b.shape)}"))
    return matmul(a, b[..., None])[..., 0]


def vecmat(x1: Any, x2: Any, /) -> Tensor:
    """Products of vectors ``(…, k)``, conjugated, and matrices ``(…, k, n)``, whose other axes broadcast: ``(…, n)``.

    Raises ShapeError for fewer axes, or extents that do not fit.

    >>> hnp.vecmat([1, 10], [[1, 2], [3, 4]])
    Tensor([31, 42], dtype=int64)
    """
    a, b = conj(as_tensor(x1, "vecmat")), as_tensor(x2, "vecmat")
    if not a.ndim or b.ndim < 2:
        raise located(ShapeError(f"vecmat takes vectors and matrices, not shapes {list(a.shape)} and {list(b.shape)}"))
    return matmul(a[..., None, :], b)[..., 0, :]
