"""Distributions of integers and bools, orders, and choices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hologram import dtypes
from hologram.dtypes import DType
from hologram.errors import ArgumentError, DTypeError, ShapeError
from hologram.ir.node import Node
from hologram.ir.op import Op, Shape
from hologram.ir.symbolic import Expr, Int
from hologram.numpy.along_axes.reductions import argmax, cumsum
from hologram.numpy.along_axes.searching import searchsorted
from hologram.numpy.along_axes.sorting import argsort
from hologram.numpy.arguments import array, axis_of, element_type, reshaped, wrap
from hologram.numpy.elementwise.functions import FUNCTIONS, clip, where
from hologram.numpy.indexing.read import take, take_along_axis
from hologram.primitives.scalar import elementwise as ew
from hologram.primitives.scalar import mathematics
from hologram.random.continuous import gumbel, result_shape, unit
from hologram.random.keys import bits, blocks, count_of, fold_in
from hologram.support.user_lines import located
from hologram.trace.checks import shape_of
from hologram.trace.operators import broadcast_shapes, elementwise, extent_node
from hologram.trace.recorder import cast_node, constant
from hologram.trace.tensor import Tensor

WIDE = dtypes.uint64


def bernoulli(key: Any, p: Any = 0.5, shape: Any = None) -> Tensor:
    """Bernoulli distribution: True with probability ``p``; bool, of ``shape``, by default that of ``p``.

    >>> hg.random.bernoulli(hg.random.key(0), 0.5, (4,))
    Tensor([False, False,  True,  True], dtype=bool)
    """
    u = unit(key, result_shape(shape, "bernoulli", p), dtypes.default_float, "bernoulli")
    return elementwise(ew.lt, u, wrap(cast_node(array(p, "bernoulli"), dtypes.default_float)))


# --- integers --------------------------------------------------------------------------------------------------------


def _wide(op: Op, a: Tensor, b: Tensor | int) -> Tensor:
    return elementwise(op, a, wrap(constant(b, WIDE)) if isinstance(b, int) else b)


def _high(x: Tensor) -> Tensor:
    return _wide(ew.shr_low, x, 32)


def _low(x: Tensor) -> Tensor:
    return _wide(ew.and_, x, 0xFFFFFFFF)


def _high_product(a: Tensor, b: Tensor) -> Tensor:
    """The high 64 bits of a product of two uint64, by halves: no partial sum exceeds 64 bits."""
    middle = _high(a) * _low(b) + _high(_low(a) * _low(b))
    other = _low(a) * _high(b) + _low(middle)
    return _high(a) * _high(b) + _high(middle) + _high(other)


def _scaled(key: Any, shape: Shape, span: Tensor, narrow: bool) -> Tensor:
    """Uniform integers in ``[0, span)``: the integer part of a random fraction times ``span`` (uint64).

    The fraction has 64 bits where ``narrow``, that is ``span`` is at most 2**32, and 128 bits otherwise, so that the
    relative error of each integer's probability stays below 2**-32 or 2**-64.
    """
    if narrow:
        high, low = (wrap(cast_node(x, WIDE)) for x in blocks(key, shape, "randint"))
        return _high(high * span + _high(low * span))
    first, second = (bits(fold_in(key, i), shape, WIDE) for i in range(2))
    product = first * span
    carried = product + _high_product(second, span)
    carry = wrap(cast_node(array(elementwise(ew.lt, carried, product), "randint"), WIDE))
    return _high_product(first, span) + carry


def _bounds(minval: Any, maxval: Any, dtype: DType) -> tuple[Tensor, Tensor, bool]:
    """The lower bound and the span, as uint64 modulo 2**64, and whether the span is known to be at most 2**32."""
    if type(minval) is int and type(maxval) is int:
        low, high = -(2 ** (dtype.bits - 1)) if dtype.kind == "i" else 0, 2 ** (dtype.bits - (dtype.kind == "i"))
        if not low <= minval < maxval <= high:
            raise located(ArgumentError(f"randint: [{minval}, {maxval}) is empty or not within {dtype}"))
        if maxval - minval == 2**64:
            raise located(ArgumentError("randint: a range of 2**64 integers; hg.random.bits gives them all"))
        return wrap(constant(minval % 2**64, WIDE)), wrap(constant(maxval - minval, WIDE)), maxval - minval <= 2**32
    first, last = _clamped(minval, dtype, 0), _clamped(maxval, dtype, 1)
    filled = elementwise(ew.gt, last, first)
    low, high = (wrap(cast_node(array(x, "randint"), WIDE)) for x in (first, last))
    span = FUNCTIONS["minimum"](high - low - 1, wrap(constant(2**64 - 2, WIDE))) + 1  # of 2**64 integers all but one
    return low, where(filled, span, wrap(constant(0, WIDE))), dtype.bits <= 32


def _clamped(end: Any, dtype: DType, beyond: int) -> Tensor:
    """An end of a range as an integer from the least one of ``dtype`` to ``beyond`` its greatest one."""
    node = array(end, "randint")
    if not node.dtype.is_integer:
        node = cast_node(node, WIDE if dtype.kind == "u" else dtypes.int64)
    own, info = np.iinfo(node.dtype.np), np.iinfo(dtype.np)
    least, greatest = max(int(own.min), int(info.min)), min(int(own.max), int(info.max) + beyond)
    return clip(wrap(node), *(wrap(constant(x, node.dtype)) for x in (least, greatest)))


def randint(key: Any, shape: Any = None, minval: Any = 0, maxval: Any = None, dtype: Any = None) -> Tensor:
    """Uniformly distributed integers in ``[minval, maxval)``; ``minval`` where an array's range is empty.

    What an array's range has beyond ``dtype`` is left out. ``shape`` is by default that to which the ends broadcast; int64 unless ``dtype`` says
    otherwise. Raises DTypeError for a type that is no integer, ArgumentError where no ``maxval`` is given or a known range is empty.

    >>> hg.random.randint(hg.random.key(0), (4,), 0, 10)
    Tensor([4, 2, 9, 5], dtype=int64)
    """
    to = dtypes.default_int if dtype is None else element_type(dtype)
    if not to.is_integer:
        raise located(DTypeError(f"randint gives integers, not {to}"))
    if maxval is None:
        raise located(ArgumentError("randint takes maxval"))
    extents = result_shape(shape, "randint", minval, maxval)
    low, span, narrow = _bounds(minval, maxval, to)
    return wrap(cast_node(array(low + _scaled(key, extents, span, narrow), "randint"), to))


# --- orders and choices ----------------------------------------------------------------------------------------------


def permutation(key: Any, x: Any, axis: int = 0, independent: bool = False) -> Tensor:
    """Random permutation: ``x`` in random order along ``axis``, or ``0, …, x-1`` in random order for an integer ``x``.

    ``independent`` orders every row along ``axis`` by itself. The order is that of 64 random bits for each place.

    >>> hg.random.permutation(hg.random.key(0), 5)
    Tensor([1, 0, 4, 3, 2], dtype=int64)
    """
    if type(x) is int:
        axis_of(axis, 1, "permutation")
        return argsort(bits(key, (count_of(x, "permutation"),), WIDE))
    node = array(x, "permutation")
    axis = axis_of(axis, len(node.shape), "permutation")
    if independent:
        return take_along_axis(wrap(node), argsort(bits(key, node.shape, WIDE), axis), axis)
    return take(wrap(node), argsort(bits(key, (node.shape[axis],), WIDE)), axis=axis)


def shuffle(key: Any, x: Any, axis: int = 0) -> Tensor:
    """Shuffles ``x`` along ``axis``: a new Tensor, as Tensors do not change.

    >>> hg.random.shuffle(hg.random.key(0), hnp.asarray([10, 20, 30]))
    Tensor([20, 10, 30], dtype=int64)
    """
    return permutation(key, x, axis)


def categorical(key: Any, logits: Any, axis: int = -1, shape: Any = None) -> Tensor:
    """Categorical distribution: indices along ``axis`` with probabilities ``softmax(logits)``; int64.

    ``shape``, to which the other axes of ``logits`` broadcast, is by default theirs. By the largest of logits plus Gumbel noise. Raises ShapeError
    where they do not broadcast.

    >>> hg.random.categorical(hg.random.key(0), [0.0, 1.0, 0.0], shape=(5,))
    Tensor([1, 1, 1, 1, 2], dtype=int64)
    """
    node = array(logits, "categorical")
    node = cast_node(node, dtypes.compute_type(dtypes.to_inexact(node.dtype)))
    axis = axis_of(axis, len(node.shape), "categorical")
    others = node.shape[:axis] + node.shape[axis + 1 :]
    extents = others if shape is None else shape_of(shape, "categorical")
    if broadcast_shapes("categorical", [others, extents]) != extents:
        raise located(ShapeError(f"categorical: logits of shape {list(node.shape)} do not broadcast to shape {list(extents)}"))
    place = len(extents) - (len(others) - axis)  # of the reduced axis among the result's
    noise = gumbel(key, (*extents[:place], node.shape[axis], *extents[place:]), node.dtype)
    return argmax(noise + wrap(node), place)


def _weighted(key: Any, p: Node, shape: Shape, replace: bool) -> Tensor:
    """Indices with probabilities proportional to ``p``: by inversion, or, without replacement, the largest of log p plus Gumbel noise."""
    if replace:
        totals = cumsum(wrap(p))
        whole = totals[-1]
        u = unit(key, shape, p.dtype, "choice") * whole
        below = FUNCTIONS["nextafter"](whole, whole * 0)  # a product may be rounded up to the whole, behind the last element
        return where(whole > 0, searchsorted(totals, FUNCTIONS["minimum"](u, below), side="right"), 0)
    ranks = gumbel(key, p.shape, p.dtype) + elementwise(mathematics.log, wrap(p))
    return wrap(reshaped(array(argsort(-ranks)[: math.prod(shape)], "choice"), shape))


def _check_enough(wanted: Int, n: Int) -> None:
    if isinstance(n, Expr) or isinstance(wanted, Expr):
        raise located(ArgumentError(f"choice without replacement needs known numbers of elements, not {wanted} of {n}"))
    if wanted > n:
        raise located(ArgumentError(f"choice: {wanted} of {n} elements without replacement"))


def choice(key: Any, a: Any, shape: Any = (), replace: bool = True, p: Any = None, axis: int = 0) -> Tensor:
    """Random sample: elements of ``a`` along ``axis`` (or of ``0, …, a-1`` for an integer), each with probability ``p``, uniform for None.

    With replacement, weights without a positive sum choose the first element. Raises ArgumentError where more are wanted than there are, without
    replacement.

    >>> hg.random.choice(hg.random.key(0), hnp.asarray([10, 20, 30]), (2,), replace=False)
    Tensor([20, 10], dtype=int64)
    """
    extents = shape_of(shape, "choice")
    source = None if type(a) is int else wrap(array(a, "choice"))
    axis = 0 if source is None else axis_of(axis, source.ndim, "choice")
    n = count_of(a, "choice") if source is None else source.shape[axis]
    if not replace:
        _check_enough(math.prod(extents), n)
    if p is not None:
        weights = array(p, "choice")
        if weights.shape != (n,):
            raise located(ShapeError(f"choice: p has shape {list(weights.shape)}, not {[n]}"))
        indices = _weighted(key, cast_node(weights, dtypes.compute_type(dtypes.to_inexact(weights.dtype))), extents, replace)
    elif replace:
        indices = randint(key, extents, 0, wrap(extent_node(n, dtypes.int64)) if isinstance(n, Expr) else n)
    else:
        indices = wrap(reshaped(array(argsort(bits(key, (n,), WIDE))[: math.prod(extents)], "choice"), extents))
    return indices if source is None else take(source, indices, axis=axis)
