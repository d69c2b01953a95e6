"""Products for a library: large matrix products, which a device's library multiplies several times as fast as kernels of its own.

The library takes factors that stand in memory and writes the sums, or their rounding to the factors' type. So such a product has a kernel to itself,
whose reads are its two factors: the pass over memory that fusion would have saved is short beside the product.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Set
from typing import NamedTuple

from hologram import dtypes
from hologram.dtypes import DType
from hologram.graph.fusion.groups import narrowest
from hologram.graph.legalize.variation import Variation
from hologram.graph.library.attention.nodes import movement_source
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


def _product(node: Node, varies: Variation, users: list[Node]) -> LibraryProduct | None:
    terms = node.inputs[0]
    if terms.op.name == "transpose":
        terms = terms.inputs[0]
    summed = _summed_axes(node, terms, varies) if terms.op in PRODUCTS else None
    left, right = (_in_memory(x, summed) for x in terms.inputs) if summed else (None, None)
    if left is None or right is None or left.dtype is not right.dtype or left.dtype not in FACTORS:
        return None
    only = users[0] if len(users) == 1 else None
    rounded = only if only is not None and only.op.name == "cast" and only.dtype is left.dtype else None
    return LibraryProduct((left, right), left.dtype, rounded)


def _summed_axes(node: Node, terms: Node, varies: Variation) -> Set[int] | None:
    """The axes of the terms that the factors share, if these are summed and no others, as those of a batch of products are."""
    long = {i for i, n in enumerate(terms.shape) if n != 1}
    first, second = (varies.of(x) & long for x in terms.inputs)
    shared = first & second
    own = bool(first - second) and bool(second - first) and bool(shared) and first | second == long
    return shared if own and node.size * math.prod(terms.shape[i] for i in shared) == terms.size else None


def _in_memory(factor: Node, summed: Set[int]) -> Node | None:
    """What of a factor stands in memory: as narrow as it is, before it was moved if it is a matrix there, else as it was spread over the terms; None
    where that is no matrix either."""
    source, index = movement_source(factor, variables(factor.shape))
    if source.op.name == "cast" and source.dtype is dtypes.float32 and source.inputs[0].dtype.is_narrow_float:
        source, index = movement_source(source.inputs[0], index)
    if _is_matrix(linear(index, source.shape), factor, summed):
        return source
    if factor.op.name != "broadcast":
        return None
    moved = factor.inputs[0]
    ((_, at, _),) = propagate_index(factor, variables(factor.shape), ())
    kept = moved.inputs[0] if moved.op.name == "cast" and narrowest(moved) is not moved else moved
    return kept if _is_matrix(linear(at, kept.shape), factor, summed) else None


def _is_matrix(place: Int, factor: Node, summed: Set[int]) -> bool:
    """Whether elements at ``place``, in the variables of the terms' axes, are a matrix: the axes that are summed follow one another in memory as one,
    so do the others, and neighbours of one of the two are neighbours there."""
    steps = [split_linear(place, f"d{axis}") for axis in range(factor.ndim)]
    if any(s is None or not is_static(s[0]) for s in steps):
        return False
    last: list[Int] = []
    for of_sum in (True, False):
        axes = [(steps[i][0], factor.shape[i]) for i in range(factor.ndim) if steps[i][0] != 0 and (i in summed) == of_sum]  # type: ignore[index]
        if not axes or any(outer != inner * n for (outer, _), (inner, n) in itertools.pairwise(axes)):
            return False
        last.append(axes[-1][0])
    return 1 in last
