"""Products for a library: large matrix products, which a device's library multiplies several times as fast as kernels of its own.

The library takes factors that stand in memory and writes the sums, or their rounding to the factors' type. So such a product has a kernel to itself,
whose reads are its two factors: the pass over memory that fusion would have saved is short beside the product.
"""

from __future__ import annotations

import itertools
from collections.abc import Set
from typing import NamedTuple

from hologram import dtypes
from hologram.dtypes import DType
from hologram.graph.fusion.groups import narrowest
from hologram.graph.legalize.variation import Variation
from hologram.graph.library.attention.nodes import is_widened, movement_source
from hologram.ir.index_maps import linear, propagate_index, variables
from hologram.ir.node import Node
from hologram.ir.symbolic import Int, is_static, split_linear
from hologram.ir.traversal import users_of
from hologram.primitives.scalar.elementwise import PRODUCTS

FACTORS = (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)  # types that the library multiplies


class LibraryProduct(NamedTuple):
    """``factors`` stand in memory, as ``dtype``; ``rounded`` is what alone may be computed beside the sums: they in the type of the factors."""

    factors: tuple[Node, Node]
    dtype: DType
    rounded: Node | None


def library_products(nodes: list[Node], least_flops: float) -> dict[Node, LibraryProduct]:
    """The matrix products of at least so many flops among ``nodes``, in topological order."""
    large = [n for n in nodes if n.op.name == "reduce_sum" and isinstance(n.inputs[0].size, int) and 2.0 * n.inputs[0].size >= least_flops]
    if not large:
        return {}
    varies, users = Variation(), users_of(nodes)
    for n in nodes:
        varies.note(n)
    return {n: found for n in large if (found := _product(n, varies, users.get(n, []))) is not None}


class ProductAxes(NamedTuple):
    """Of the terms of a product: those that are summed, and those of a batch, along which there are several products."""

    summed: Set[int]
    batch: Set[int]


def _product(node: Node, varies: Variation, users: list[Node]) -> LibraryProduct | None:
    terms, summed = node.inputs[0], node.attrs[0]
    if terms.op.name == "transpose":
        summed, terms = tuple(terms.attrs[0][i] for i in summed), terms.inputs[0]
    axes = product_axes(terms, set(summed), varies)
    left, right = (_in_memory(x, axes) for x in terms.inputs) if axes else (None, None)
    if left is None or right is None or left.dtype is not right.dtype or left.dtype not in FACTORS:
        return None
    only = users[0] if len(users) == 1 else None
    rounded = only if only is not None and only.op.name == "cast" and only.dtype is left.dtype else None
    return LibraryProduct((left, right), left.dtype, rounded)


def product_axes(terms: Node, summed: Set[int], varies: Variation) -> ProductAxes | None:
    """The axes of the terms of a matrix product. None where the terms are none: the factors share what is summed, and each has axes of its own."""
    if terms.op not in PRODUCTS:
        return None
    long = {i for i, n in enumerate(terms.shape) if n != 1}
    first, second = (varies.of(x) & long for x in terms.inputs)
    is_product = first - second and second - first and summed & long and summed & long <= first & second and first | second == long
    return ProductAxes(summed & long, (first & second) - summed) if is_product else None


def _in_memory(factor: Node, of: ProductAxes) -> Node | None:
    """What of a factor stands in memory: as narrow as it is, before it was moved if it is a matrix there, else as it was spread over the terms; None
    where that is no matrix either."""
    source, index = movement_source(factor, variables(factor.shape))
    if is_widened(source) and source.dtype is dtypes.float32:
        source, index = movement_source(source.inputs[0], index)
    if _is_matrix(linear(index, source.shape), factor, of):
        return source
    if factor.op.name != "broadcast":
        return None
    moved = factor.inputs[0]
    ((_, at, _),) = propagate_index(factor, variables(factor.shape), ())
    kept = moved.inputs[0] if moved.op.name == "cast" and narrowest(moved) is not moved else moved
    return kept if _is_matrix(linear(at, kept.shape), factor, of) else None


def _is_matrix(place: Int, factor: Node, of: ProductAxes) -> bool:
    """Whether elements at ``place``, in the variables of the terms' axes, are matrices at equal distances: the axes that are summed follow one
    another in memory as one, so do the factor's own, and those of the batch; neighbours of one of the first two are neighbours there."""
    steps = [split_linear(place, f"d{axis}") for axis in range(factor.ndim)]
    if any(s is None or not is_static(s[0]) for s in steps):
        return False
    moving = [i for i, s in enumerate(steps) if s[0] != 0]  # type: ignore[index]
    kinds = [[i for i in moving if i in of.summed], [i for i in moving if i not in of.summed | of.batch], [i for i in moving if i in of.batch]]
    as_one = all(steps[i][0] == steps[k][0] * factor.shape[k] for kind in kinds for i, k in itertools.pairwise(kind))  # type: ignore[index]
    return as_one and all(kinds[:2]) and 1 in [steps[kind[-1]][0] for kind in kinds[:2]]  # type: ignore[index]
