"""Integers: divisors, and the bits they are made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from hologram import dtypes
from hologram.control.loops import while_loop
from hologram.errors import ArgumentError, DTypeError
from hologram.numpy.along_axes.reductions import any as any_
from hologram.numpy.along_axes.reductions import sum as sum_
from hologram.numpy.arguments import array, axis_of, wrap
from hologram.numpy.arrangement.manipulation import flip
from hologram.numpy.arrangement.padding import pad
from hologram.numpy.creation import broadcast_common
from hologram.numpy.elementwise.functions import FUNCTIONS, where
from hologram.numpy.shaping.shapes import moveaxis
from hologram.primitives.scalar.elementwise import popcount
from hologram.support.user_lines import located
from hologram.trace.checks import choice
from hologram.trace.operators import promoted
from hologram.trace.recorder import cast_node, record
from hologram.trace.tensor import Tensor

__all__ = ["bitwise_count", "gcd", "lcm", "packbits", "unpackbits"]


def _integers(what: str, x1: Any, x2: Any) -> tuple[Tensor, Tensor]:
    """Both as integers of one type and shape."""
    nodes, dtype, _ = promoted(what, (x1, x2))
    if not dtype.is_integer:
        raise located(DTypeError(f"{what} takes integers, not {dtype}"))
    a, b = broadcast_common(nodes, what)
    return wrap(a), wrap(b)


def _magnitudes(what: str, x1: Any, x2: Any) -> tuple[Tensor, Tensor, Any]:
    """Absolute values in the unsigned type, which holds that of the smallest integer too; and the type of the result."""
    a, b = _integers(what, x1, x2)
    unsigned = np.dtype(f"uint{8 * a.dtype.itemsize}")
    return FUNCTIONS["abs"](a).astype(unsigned), FUNCTIONS["abs"](b).astype(unsigned), a.dtype


def _divisor(a: Tensor, b: Tensor) -> Tensor:
    """The greatest common divisor of unsigned integers. Euclid's algorithm, as a loop of the compiled program."""

    def step(pair: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        a, b = pair
        return where(b == 0, a, b), where(b == 0, b, FUNCTIONS["remainder"](a, where(b == 0, 1, b)))

    return while_loop(lambda pair: any_(pair[1] != 0), step, (a, b))[0]


def gcd(x1: Any, x2: Any, /) -> Tensor:
    """Greatest common divisor, not negative; gcd(0, 0) is 0.

    The operands broadcast; the result has their common type. That of smallest integers alone (and 0) wraps to the smallest integer. Raises
    DTypeError for other types than integers.

    >>> hnp.gcd([12, 7], 18)
    Tensor([6, 1], dtype=int64)
    """
    a, b, dtype = _magnitudes("gcd", x1, x2)
    return _divisor(a, b).astype(dtype)


def lcm(x1: Any, x2: Any, /) -> Tensor:
    """Least common multiple, not negative unless it wraps around; 0 where an operand is 0.

    The operands broadcast; the result has their common type. Raises DTypeError for other types than integers.

    >>> hnp.lcm([4, 7], 6)
    Tensor([12, 42], dtype=int64)
    """
    a, b, dtype = _magnitudes("lcm", x1, x2)
    divisor = _divisor(a, b)
    return (a // where(divisor == 0, 1, divisor) * b).astype(dtype)


def bitwise_count(x: Any, /) -> Tensor:
    """Number of 1 bits in the absolute value of each element; uint8. Raises DTypeError for other types than integers and bool.

    >>> hnp.bitwise_count([7, 8, -3])
    Tensor([3, 1, 2], dtype=uint8)
    """
    node = array(x, "bitwise_count")
    if node.dtype.kind == "b":
        return wrap(cast_node(node, dtypes.uint8))
    if not node.dtype.is_integer:
        raise located(DTypeError(f"bitwise_count takes integers, not {node.dtype}"))
    magnitude = cast_node(array(FUNCTIONS["abs"](wrap(node)), "bitwise_count"), dtypes.of(f"uint{node.dtype.bits}"))
    return wrap(cast_node(record(popcount, (magnitude,)), dtypes.uint8))


def _bit_order(order: str, what: str) -> bool:
    return choice(order, what, "bitorder", ("big", "little")) == "big"


def packbits(x: Any, /, axis: int | None = None, bitorder: str = "big") -> Tensor:
    """Packs truth values into bits: eight neighbours along ``axis`` (of ``x`` flattened for None) become one uint8.

    An element counts as 1 where it is not zero; zeros fill the last byte. ``bitorder``: the first neighbour is the highest bit (``big``) or the
    lowest (``little``). Raises DTypeError for floats, ArgumentError for another order.

    >>> hnp.packbits([1, 0, 1, 0, 0, 0, 0, 0, 1])
    Tensor([160, 128], dtype=uint8)
    """
    big = _bit_order(bitorder, "packbits")
    node = array(x, "packbits")
    if node.dtype.kind not in "biu":
        raise located(DTypeError(f"packbits takes bools or integers, not {node.dtype}"))
    t = wrap(cast_node(node, dtypes.bool_))
    rows = t.reshape(-1) if axis is None else moveaxis(t, axis_of(axis, t.ndim, "packbits"), -1)
    n = rows.shape[-1]
    groups = pad(rows, [(0, 0)] * (rows.ndim - 1) + [(0, -n % 8)]).reshape((*rows.shape[:-1], (n + 7) // 8, 8))
    weights = np.uint8(1) << np.arange(8, dtype=np.uint8)
    packed = sum_(groups.astype(dtypes.uint8) * (weights[::-1].copy() if big else weights), -1, dtype=dtypes.uint8)
    return packed if axis is None else moveaxis(packed, -1, axis)


def unpackbits(x: Any, /, axis: int | None = None, count: int | None = None, bitorder: str = "big") -> Tensor:
    """Unpacks uint8 elements along ``axis`` (of ``x`` flattened for None) into their bits, uint8.

    ``count`` is how many to give: zeros beyond those that are there; negative, so many fewer than all. ``bitorder`` is that of :func:`packbits`.
    Raises DTypeError for other types than uint8, ArgumentError where more bits are left out than there are.

    >>> hnp.unpackbits(np.array([160], np.uint8))
    Tensor([1, 0, 1, 0, 0, 0, 0, 0], dtype=uint8)
    """
    big = _bit_order(bitorder, "unpackbits")
    node = array(x, "unpackbits")
    if node.dtype is not dtypes.uint8:
        raise located(DTypeError(f"unpackbits takes uint8, not {node.dtype}"))
    t = wrap(node)
    rows = t.reshape(-1) if axis is None else moveaxis(t, axis_of(axis, t.ndim, "unpackbits"), -1)
    bits = (rows[..., None] >> np.arange(8, dtype=np.uint8)) & 1
    bits = (flip(bits, axis=-1) if big else bits).reshape((*rows.shape[:-1], rows.shape[-1] * 8))
    total = bits.shape[-1]
    if count is not None:
        kept = count if count >= 0 else total + count
        if isinstance(kept, int) and kept < 0:
            raise located(ArgumentError(f"unpackbits: {-count} bits less than {total} are none"))
        bits = pad(bits[..., :kept], [(0, 0)] * (bits.ndim - 1) + [(0, max(kept - total, 0))])
    return bits if axis is None else moveaxis(bits, -1, axis)
