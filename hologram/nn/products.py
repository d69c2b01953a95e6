"""The general product of two arrays."""

from __future__ import annotations

from typing import Any

from hologram.errors import ArgumentError
from hologram.ir.node import Node
from hologram.numpy.arguments import array, axis_of
from hologram.numpy.linear import paired
from hologram.support.user_lines import located
from hologram.trace.tensor import Tensor

__all__ = ["dot_general"]


def dot_general(a: Any, b: Any, /, dimension_numbers: Any, preferred_element_type: Any = None) -> Tensor:
    """Products of ``a`` and ``b`` summed over pairs of axes, in batches: JAX's ``lax.dot_general``.

    ``dimension_numbers`` is ``((axes of a, axes of b) to sum over, (axes of a, axes of b) to keep as batches)``. The result has the batch axes, then
    the other axes of ``a``, then those of ``b``. ``preferred_element_type`` is its type, as in ``hologram.numpy.matmul``.

    Raises ArgumentError for other dimension numbers, AxisOutOfRange for an axis that is not there, ShapeError for one named twice and for pairs of
    different extents, DTypeError for a preferred type of a lesser kind.

    >>> a, b = hnp.ones((5, 2, 3)), hnp.ones((5, 3, 4))
    >>> hg.nn.dot_general(a, b, (((2,), (1,)), ((0,), (0,)))).shape
    (5, 2, 4)
    """
    x, y = array(a, "dot_general"), array(b, "dot_general")
    try:
        (summed_a, summed_b), (batch_a, batch_b) = (tuple(map(tuple, pair)) for pair in dimension_numbers)
        paired_up = len(summed_a) == len(summed_b) and len(batch_a) == len(batch_b)
    except (TypeError, ValueError):
        paired_up = False
    if not paired_up:
        expected = "((axes of a, axes of b) to sum over, (axes of a, axes of b) to keep), as many of a as of b"
        raise located(ArgumentError(f"dot_general: dimension_numbers are {expected}, not {dimension_numbers!r}"))
    summed, batch = ((_axes(x, first), _axes(y, second)) for first, second in ((summed_a, summed_b), (batch_a, batch_b)))
    return paired("dot_general", x, y, summed, batch, preferred_element_type)


def _axes(x: Node, axes: tuple[Any, ...]) -> list[int]:
    return [axis_of(i, len(x.shape), "dot_general") for i in axes]
