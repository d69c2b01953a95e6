"""Sorting.

``sort`` and ``argsort`` are stable. NaNs, all alike, come last, and first if ``descending``. ``sort`` puts -0.0 below 0.0, as ``min`` does; to
``argsort`` they are equal.

Backends sort *keys*, unsigned numbers of 32 or 64 bits that order as the elements do: ``sort_key`` makes them, ``sort_value`` brings elements
back, and between them are the kernels that a backend has ready, ``sort_keys`` and ``order_keys``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hologram import dtypes
from hologram.dtypes import DType
from hologram.errors import DTypeError, ShapeError
from hologram.primitives.elementwise import broadcast_shape, quiet
from hologram.primitives.op import Op, Shape, register


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

_UNSIGNED = {32: dtypes.uint32, 64: dtypes.uint64}
_SIGNED = {32: dtypes.int32, 64: dtypes.int64}
_INFINITY = {32: 0x7F80_0000, 64: 0x7FF0_0000_0000_0000}


def _infer_key(inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> tuple[Shape, DType]:
    d = inputs[0].dtype
    if d.kind not in "iuf" or d.bits not in _UNSIGNED:
        raise DTypeError(f"sort_key does not take {d}")
    return broadcast_shape("sort_key", inputs), _UNSIGNED[d.bits]


def _infer_value(inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> tuple[Shape, DType]:
    d, to = inputs[0].dtype, dtypes.of(attrs[0])
    if d.kind != "u" or d.bits not in _UNSIGNED or to.bits != d.bits:
        raise DTypeError(f"sort_value does not make {to} of {d}")
    return broadcast_shape("sort_value", inputs), to


def _lower_key(x: Any) -> Any:
    """Signed integers have their sign bit inverted; negative floats all bits, the others the sign; NaNs are the largest key."""
    d = x.dtype
    unsigned = _UNSIGNED[d.bits]
    bits = x.bitcast(unsigned)
    if d.kind == "u":
        return bits
    sign = 1 << (d.bits - 1)
    if d.kind == "i":
        return bits ^ sign
    flip = (x.bitcast(_SIGNED[d.bits]) >> (d.bits - 1)).bitcast(unsigned) | sign
    return ((bits & (sign - 1)) > _INFINITY[d.bits]).select(bits.const(2 * sign - 1), bits ^ flip)


def _lower_value(key: Any, to: str) -> Any:
    d = dtypes.of(to)
    if d.kind == "u":
        return key
    sign = 1 << (d.bits - 1)
    if d.kind == "i":
        return (key ^ sign).bitcast(d)
    return (key < sign).select(~key, key ^ sign).bitcast(d)


def _key(x: Any) -> Any:
    d = dtypes.of(x.dtype)
    bits = np.asarray(x).view(_UNSIGNED[d.bits].np)
    if d.kind == "u":
        return bits
    sign = bits.dtype.type(1 << (d.bits - 1))
    if d.kind == "i":
        return bits ^ sign
    return np.where(np.isnan(x), ~bits.dtype.type(0), np.where(bits & sign != 0, ~bits, bits ^ sign))


def _value(key: Any, to: str) -> Any:
    d = dtypes.of(to)
    if d.kind == "u":
        return key
    sign = key.dtype.type(1 << (d.bits - 1))
    if d.kind == "i":
        return (key ^ sign).view(d.np)
    return np.where(key & sign != 0, key ^ sign, ~key).view(d.np)


sort_key = register(Op("sort_key", "elementwise", 1, _infer_key, quiet(_key), lower=_lower_key, cost=4, kinds="iuf"))
sort_value = register(Op("sort_value", "elementwise", 1, _infer_value, quiet(_value), lower=_lower_value, attrs=("dtype",), cost=3, kinds="u"))

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


# keys (rows, n), stably by their bits from ``low`` on, give (rows, 2, n): the sorted ones are at [:, 0], what is at [:, 1] has no meaning
sort_keys = register(
    Op("sort_keys", "native", 1, _infer_native("sort_keys", (dtypes.uint32, dtypes.uint64), None), _sort_keys, attrs=("low",), kinds="u", cost=40)
)
# likewise the indices that sort the keys
order_keys = register(Op("order_keys", "native", 1, _infer_native("order_keys", (dtypes.uint64,), dtypes.int64), _order_keys, kinds="u", cost=60))
