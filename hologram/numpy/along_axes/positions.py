"""Which elements are true, and selection by them.

Functions whose result's size depends on values read them, so they raise TracedValueError while tracing unless they are given a ``size``.
"""

from __future__ import annotations

from typing import Any, overload

import numpy as np

from hologram import dtypes
from hologram.errors import ArgumentError, ShapeError
from hologram.ir.symbolic import prod
from hologram.numpy.along_axes.reductions import cumsum
from hologram.numpy.along_axes.searching import searchsorted
from hologram.numpy.arguments import array, reshaped, wrap
from hologram.numpy.creation import arange
from hologram.numpy.elementwise.functions import where as chosen
from hologram.numpy.shaping.joining import stack
from hologram.support.user_lines import located
from hologram.trace.checks import integer
from hologram.trace.convert import tensor
from hologram.trace.operators import extent_node
from hologram.trace.tensor import Tensor

__all__ = ["argwhere", "flatnonzero", "nonzero", "where"]


def known_values(x: Any, what: str) -> np.ndarray:
    """The values of ``x``. Raises TracedValueError while tracing."""
    return wrap(array(x, what))._view(f"{what}, whose result's size depends on the values,")


@overload
def where(condition: Any, x1: Any, x2: Any, /) -> Tensor: ...
@overload
def where(condition: Any, /, *, size: int | None = None, fill_value: int = 0) -> tuple[Tensor, ...]: ...
def where(condition: Any, x1: Any = None, x2: Any = None, /, *, size: int | None = None, fill_value: int = 0) -> Any:
    """Selects by element: ``x1`` where ``condition`` is not zero, else ``x2``.

    All three broadcast; the result has the values' common type. NaNs and infinities of the value that is not chosen do no harm, in derivatives
    neither. Without values :func:`nonzero` of ``condition``, whose ``size`` and ``fill_value`` these are. Raises ArgumentError for one value.

    >>> hnp.where([True, False], [1, 2], 0)
    Tensor([1, 0], dtype=int64)
    """
    if x1 is None and x2 is None:
        return nonzero(condition, size=size, fill_value=fill_value)
    if x1 is None or x2 is None or size is not None:
        raise located(ArgumentError("where takes a condition and two values, or a condition alone, and then size"))
    return chosen(condition, x1, x2)


def nonzero(x: Any, /, *, size: int | None = None, fill_value: int = 0) -> tuple[Tensor, ...]:
    """Indices of the elements that are not zero: a tuple with one int64 vector an axis.

    With ``size`` there are so many of them, cut off or filled up with ``fill_value``, which works while tracing, too. Raises TracedValueError
    while tracing without ``size``, ShapeError for a scalar.

    >>> hnp.nonzero([[0, 1], [2, 0]])
    (Tensor([0, 1], dtype=int64), Tensor([1, 0], dtype=int64))
    >>> hnp.nonzero([0, 5, 6], size=3, fill_value=-1)
    (Tensor([ 1,  2, -1], dtype=int64),)
    """
    node = array(x, "nonzero")
    if not node.shape:
        raise located(ShapeError("nonzero takes at least one axis"))
    if size is None:
        return tuple(tensor(i) for i in np.nonzero(known_values(x, "nonzero")))
    size = integer(size, "nonzero", "size")
    counts = cumsum(wrap(reshaped(node, (prod(node.shape),))).astype(dtypes.bool_))
    at = searchsorted(counts, arange(1, size + 1))
    there = at < counts.shape[0]
    out = []
    for n in (wrap(extent_node(n, dtypes.int64)) for n in reversed(node.shape)):
        out.append(chosen(there, at % n, fill_value))
        at = at // n
    return tuple(out[::-1])


def flatnonzero(x: Any, /, *, size: int | None = None, fill_value: int = 0) -> Tensor:
    """Indices of the elements of ``x`` flattened that are not zero; ``size`` and ``fill_value`` as for :func:`nonzero`.

    >>> hnp.flatnonzero([[0, 1], [2, 0]])
    Tensor([1, 2], dtype=int64)
    """
    return nonzero(wrap(array(x, "flatnonzero")).reshape(-1), size=size, fill_value=fill_value)[0]


def argwhere(x: Any, /, *, size: int | None = None, fill_value: int = 0) -> Tensor:
    """Indices of the elements that are not zero, as rows of an int64 matrix. ``size`` and ``fill_value`` are as for :func:`nonzero`.

    >>> hnp.argwhere([[0, 1], [2, 0]])
    Tensor([[0, 1],
            [1, 0]], dtype=int64)
    """
    return tensor(np.argwhere(known_values(x, "argwhere"))) if size is None else stack(nonzero(x, size=size, fill_value=fill_value), axis=-1)
