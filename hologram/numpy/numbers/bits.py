"""The bits of arrays as other types: what NumPy does with memory, as values."""

from __future__ import annotations

from typing import Any

from hologram import dtypes
from hologram.dtypes import DType
from hologram.errors import DTypeError, ShapeError
from hologram.ir.node import Node
from hologram.numpy.along_axes.reductions import sum
from hologram.numpy.arguments import array, element_type, wrap
from hologram.numpy.creation import arange
from hologram.numpy.elementwise.functions import FUNCTIONS
from hologram.numpy.shaping.joining import stack
from hologram.primitives import TABLE
from hologram.primitives.scalar import elementwise as ew
from hologram.support.user_lines import located
from hologram.trace.recorder import record
from hologram.trace.tensor import Tensor

__all__ = ["bitcast", "same_width", "viewed_as"]


def same_width(node: Node, to: DType) -> Node:
    """The bits of elements as another type of the same width."""
    return node if node.dtype is to else record(ew.bitcast, (node,), (to.name,))


def bitcast(x: Any, dtype: Any, what: str) -> Tensor:
    """The bits of ``x`` as another type: a narrower one has a last axis of the parts of each element, the lowest bits first, which a wider one takes
    away. Raises DTypeError for bool and complex types, ShapeError where that axis has another extent."""
    node, to = array(x, what), element_type(dtype)
    d = node.dtype
    if d is to:
        return wrap(node)
    if d.kind in "bc" or to.kind in "bc":
        raise located(DTypeError(f"{what}: from {d} to {to}"))
    if d.bits == to.bits:
        return wrap(same_width(node, to))
    return _narrowed(node, to) if d.bits > to.bits else _widened(node, to, what)


def _places(d: DType, to: DType) -> Tensor:
    """By how many bits the parts of a wide element are shifted."""
    narrow, wide = sorted((d.bits, to.bits))
    return arange(wide // narrow).astype(f"uint{wide}") * narrow


def _narrowed(node: Node, to: DType) -> Tensor:
    words = wrap(same_width(node, dtypes.of(f"uint{node.dtype.bits}")))
    parts = FUNCTIONS["right_shift"](words[..., None], _places(node.dtype, to)).astype(f"uint{to.bits}")
    return wrap(same_width(array(parts, "view"), to))


def _widened(node: Node, to: DType, what: str) -> Tensor:
    many = to.bits // node.dtype.bits
    if not node.shape or node.shape[-1] != many:
        raise located(ShapeError(f"{what}: {many} elements of {node.dtype} make one of {to}, and the shape is {list(node.shape)}"))
    parts = wrap(same_width(node, dtypes.of(f"uint{node.dtype.bits}"))).astype(f"uint{to.bits}")
    whole = sum(FUNCTIONS["left_shift"](parts, _places(node.dtype, to)), axis=-1, dtype=f"uint{to.bits}")
    return wrap(same_width(array(whole, what), to))


def viewed_as(x: Any, dtype: Any) -> Tensor:
    """The bytes of ``x`` as another type, as ``ndarray.view`` has them: the last axis gets longer or shorter, where widths differ.

    Raises ShapeError where it has no such length, DTypeError for bool beside other types.
    """
    t, to = wrap(array(x, "view")), element_type(dtype)
    d = t._aval()[1]
    if d is to:
        return t
    parts = dtypes.real_of(to)
    if d.is_complex:
        t, d = stack([t.real, t.imag], axis=-1).reshape((*t.shape[:-1], -1)), dtypes.real_of(d)
    if to.is_complex:
        pairs = _apart(viewed_as(t, parts.np), 2)
        return wrap(record(TABLE["complex"], tuple(array(pairs[..., i], "view") for i in range(2))))
    if d.bits == to.bits:
        return bitcast(t, to, "view")
    if not t.ndim:
        raise located(ShapeError(f"view: a scalar of {d} as {to}"))
    if d.bits > to.bits:
        return bitcast(t, to, "view").reshape((*t.shape[:-1], -1))
    return bitcast(_apart(t, to.bits // d.bits), to, "view")


def _apart(t: Tensor, many: int) -> Tensor:
    if not t.ndim or t.shape[-1] % many:
        raise located(ShapeError(f"view: the last axis of shape {list(t.shape)} is no multiple of {many}"))
    return t.reshape((*t.shape[:-1], t.shape[-1] // many, many))
