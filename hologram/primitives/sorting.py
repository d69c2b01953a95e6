"""Sort ops, and the keys and passes that they consist of.

``sort`` and ``argsort`` are stable. NaNs, all alike, come last, and first if ``descending``. ``sort`` puts -0.0 below 0.0, as ``min`` does; to
``argsort`` they are equal.

Backends sort *keys*, unsigned numbers that order as the elements do: ``sort_key`` makes them of the elements' bits, ``sort_value`` brings these
back. Between them are the kernels that a backend has ready, ``sort_keys`` and ``order_keys``, or, for long rows on devices, passes of a radix sort,
each ``digit_counts``, a running sum and ``digit_move``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hologram import dtypes
from hologram.dtypes import DType
from hologram.errors import DTypeError, ShapeError
from hologram.ir.op import TABLE, Op, Shape, register
from hologram.ir.symbolic import floordiv
from hologram.primitives.scalar.elementwise import broadcast_shape, quiet


def _infer_sorted(name: str, result: DType | None) -> Any:
    def infer(inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> tuple[Shape, DType]:
        (x,), (axis, _) = inputs, attrs
        if x.dtype.kind not in "biuf":
            raise DTypeError(f"{name} does not take {x.dtype}")
        if not 0 <= axis < len(x.shape):
            raise ShapeError(f"{name}: axis {axis} of shape {list(x.shape)}")
        return x.shape, result or x.dtype

    return infer


def _ordered(x: np.ndarray, axis: int, descending: bool, zeros: bool) -> np.ndarray:
    """The indices that sort ``x``, by the keys that every backend uses; ``zeros``: the two of them are equal."""
    wide: Any = x.astype(np.float64) if x.dtype.kind not in "biu" else x
    if wide.dtype.kind == "f":
        bits = (wide + 0.0 if zeros else wide).view(np.int64)
        bits = np.where(np.isnan(wide), np.int64(2**63 - 1), bits)
        wide = np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits)
    return np.argsort(~wide if descending else wide, axis=axis, kind="stable")


def _sort(x: np.ndarray, axis: int, descending: bool) -> np.ndarray:
    return np.take_along_axis(x, _ordered(x, axis, descending, False), axis)


def _argsort(x: np.ndarray, axis: int, descending: bool) -> np.ndarray:
    return _ordered(x, axis, descending, True).astype(np.int64)


sort = register(Op("sort", "sort", 1, _infer_sorted("sort", None), _sort, attrs=("axis", "descending"), kinds="biuf", cost=40))
argsort = register(Op("argsort", "sort", 1, _infer_sorted("argsort", dtypes.int64), _argsort, attrs=("axis", "descending"), kinds="biuf", cost=60))

# --- keys ------------------------------------------------------------------------------------------------------------

_UNSIGNED = {8: dtypes.uint8, 16: dtypes.uint16, 32: dtypes.uint32, 64: dtypes.uint64}
_SIGNED = {8: dtypes.int8, 16: dtypes.int16, 32: dtypes.int32, 64: dtypes.int64}


def unsigned_of(bits: int) -> DType:
    """The unsigned integers of so many bits."""
    return _UNSIGNED[bits]


def _infer_key(inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> tuple[Shape, DType]:
    d, of = inputs[0].dtype, dtypes.of(attrs[0])
    if d.kind != "u" or of.kind not in "iuf" or of.bits != d.bits:
        raise DTypeError(f"a {d} is no key, and not the bits, of a {of}")
    return broadcast_shape("sort_key", inputs), d


def _lower_key(bits: Any, of: str) -> Any:
    """Signed integers have their sign bit inverted; negative floats all bits, the others the sign; NaNs are the largest key."""
    d, unsigned = dtypes.of(of), bits.dtype
    if d.kind == "u":
        return bits
    sign = 1 << (d.bits - 1)
    if d.kind == "i":
        return bits ^ sign
    flip = (bits.bitcast(_SIGNED[d.bits]) >> (d.bits - 1)).bitcast(unsigned) | sign
    return ((bits & (sign - 1)) > d.format.greatest).select(bits.const(2 * sign - 1), bits ^ flip)


def _lower_value(key: Any, to: str) -> Any:
    d = dtypes.of(to)
    if d.kind == "u":
        return key
    sign = 1 << (d.bits - 1)
    if d.kind == "i":
        return key ^ sign
    return (key < sign).select(~key, key ^ sign)


def _key(bits: Any, of: str) -> Any:
    d = dtypes.of(of)
    if d.kind == "u":
        return bits
    sign = bits.dtype.type(1 << (d.bits - 1))
    if d.kind == "i":
        return bits ^ sign
    is_nan = bits & ~sign > bits.dtype.type(d.format.greatest)
    return np.where(is_nan, ~bits.dtype.type(0), np.where(bits & sign != 0, ~bits, bits ^ sign))


def _value(key: Any, to: str) -> Any:
    d = dtypes.of(to)
    if d.kind == "u":
        return key
    sign = key.dtype.type(1 << (d.bits - 1))
    return key ^ sign if d.kind == "i" else np.where(key & sign != 0, key ^ sign, ~key)


# of the bits of an element, and back
sort_key = register(Op("sort_key", "elementwise", 1, _infer_key, quiet(_key), lower=_lower_key, attrs=("dtype",), cost=4, kinds="u"))
sort_value = register(Op("sort_value", "elementwise", 1, _infer_key, quiet(_value), lower=_lower_value, attrs=("dtype",), cost=3, kinds="u"))

# --- what backends have ready ----------------------------------------------------------------------------------------


def _infer_native(name: str, kinds: tuple[DType, ...], result: DType | None) -> Any:
    def infer(inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> tuple[Shape, DType]:
        (keys,) = inputs
        if keys.dtype not in kinds or len(keys.shape) != 2:
            raise DTypeError(f"{name} does not take {keys.dtype}{list(keys.shape)}")
        rows, n = keys.shape
        return (rows, 2, n), result or keys.dtype

    return infer


def _with_rest(sorted_: np.ndarray) -> np.ndarray:
    return np.stack([sorted_, sorted_], axis=1)


def _sort_keys(keys: np.ndarray, low: int) -> np.ndarray:
    order = np.argsort(keys >> keys.dtype.type(low), axis=-1, kind="stable")
    return _with_rest(np.take_along_axis(keys, order, -1))


def _order_keys(keys: np.ndarray) -> np.ndarray:
    return _with_rest(np.argsort(keys, axis=-1, kind="stable").astype(np.int64))


_KEYS = tuple(_UNSIGNED.values())

# keys (rows, n), stably by their bits from ``low`` on, give (rows, 2, n): the sorted ones are at [:, 0], what is at [:, 1] has no meaning
sort_keys = register(Op("sort_keys", "native", 1, _infer_native("sort_keys", _KEYS, None), _sort_keys, attrs=("low",), kinds="u", cost=40))
# likewise the indices that sort the keys
order_keys = register(Op("order_keys", "native", 1, _infer_native("order_keys", (dtypes.uint64,), dtypes.int64), _order_keys, kinds="u", cost=60))

# --- passes of radix sorts -------------------------------------------------------------------------------------------
#
# A pass sorts rows of *items*, unsigned numbers (rows, n), stably by the digit of ``bits`` bits from ``low`` on. Rows are cut in tiles of ``tile``
# items, of which the last may be shorter, and a *block* is so many tiles: ``digit_counts`` gives (rows, tiles, digits), how many items of every tile
# have a digit, in whole blocks. The running sum of these counts, block by block, digit by digit, is ``upto`` (rows, digits, blocks): where the items
# of a block that have a digit end. With both, ``digit_move`` brings every item to its position.
#
# What is beyond a row's end is counted as if it were the largest items, which stand last.

Finish = tuple[tuple[str, tuple[Any, ...], int | None], ...]  # ops, their attributes, and a constant second operand


def _digits(items: np.ndarray, low: int, bits: int) -> np.ndarray:
    return (items >> items.dtype.type(low)).astype(np.int64) & ((1 << bits) - 1)


def _infer_counts(inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> tuple[Shape, DType]:
    (items,), (low, bits, tile, block) = inputs, attrs
    if items.dtype not in _KEYS or len(items.shape) != 2 or not 0 <= low < low + bits <= items.dtype.bits:
        raise DTypeError(f"there are no digits of bits {low} to {low + bits} in {items.dtype}{list(items.shape)}")
    rows, n = items.shape
    return (rows, floordiv(n + (tile * block - 1), tile * block) * block, 1 << bits), dtypes.uint32


def _digit_counts(items: np.ndarray, low: int, bits: int, tile: int, block: int) -> np.ndarray:
    rows, n = items.shape
    digits = np.full((rows, -(-n // (tile * block)) * tile * block), (1 << bits) - 1)
    digits[:, :n] = _digits(items, low, bits)
    out = np.zeros((rows, digits.shape[1] // tile, 1 << bits), np.uint32)
    np.add.at(out, (np.arange(rows)[:, None], np.arange(digits.shape[1]) // tile, digits), np.uint32(1))
    return out


def finished_type(d: DType, finish: Finish) -> DType:
    """The type of what ``finish`` makes of items of type ``d``."""
    for name, attrs, _ in finish:
        d = dtypes.of(attrs[0]) if name in ("cast", "bitcast") else d
    return d


def _infer_move(inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> tuple[Shape, DType]:
    (items, counts, upto), (low, bits, tile, block, finish) = inputs, attrs
    shape, d = _infer_counts((items,), (low, bits, tile, block))
    ends = (shape[0], shape[2], floordiv(shape[1], block))
    if (counts.shape, counts.dtype, upto.shape, upto.dtype) != (shape, d, ends, d):
        raise ShapeError(f"digit_move takes counts {d}{list(shape)} and ends {d}{list(ends)}")
    return items.shape, finished_type(items.dtype, finish)


def _digit_move(items: np.ndarray, counts: np.ndarray, upto: np.ndarray, low: int, bits: int, tile: int, block: int, finish: Finish) -> np.ndarray:
    out: Any = np.take_along_axis(items, np.argsort(_digits(items, low, bits), axis=-1, kind="stable"), -1)
    for name, attrs, constant in finish:
        operands = (out,) if constant is None else (out, out.dtype.type(constant))
        out = TABLE[name].reference(*operands, *attrs)
    return np.asarray(out)


_PASS = ("low", "bits", "tile", "block")
digit_counts = register(Op("digit_counts", "digits", 1, _infer_counts, _digit_counts, attrs=_PASS, kinds="u", cost=10))
# what is moved goes through the ops of ``finish`` on its way
digit_move = register(Op("digit_move", "digits", 3, _infer_move, _digit_move, attrs=(*_PASS, "finish"), kinds="u", cost=40))
