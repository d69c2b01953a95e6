"""Arrays that programs take: any dtype, shape, range of values and layout in memory, from a recipe that is a few words long.

This file depends on NumPy and ml_dtypes alone: scripts that reproduce a failure contain it as text.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
)  # fmt: skip
CONTENTS = ("tame", "whole", "normal", "unit", "positive", "repeated", "special", "wide")
LAYOUTS = ("plain", "fortran", "reversed", "strided", "transposed", "broadcast", "unaligned", "offset", "read-only", "swapped")


def dtype_of(name: str) -> np.dtype:
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


def content(dtype: str, shape: tuple[int, ...], kind: str, seed: int) -> np.ndarray:
    """A C-contiguous array.

    ``tame``: multiples of 1/8 within ±4, small integers: sums and products are nearly always exact. ``whole``: whole numbers within ±8. ``normal``:
    every bit of the significand is in use. ``unit``: within (0, 1). ``positive``: from 1/8 to 4. ``repeated``: three values. ``special``: zeros
    of both
    signs, infinities, NaN, subnormals and the ends of the range among tame ones. ``wide``: many magnitudes. ``index:n``: integers from 0 to n - 1.
    """
    rng = np.random.default_rng(seed)
    d = dtype_of(dtype)
    if kind.startswith("index:"):
        return rng.integers(0, max(1, int(kind[6:])), shape).astype(d)
    if d.kind == "b":
        return rng.random(shape) < 0.5
    if d.kind == "c":
        part = "float32" if d.itemsize == 8 else "float64"
        out = np.empty(shape, d)
        out.real, out.imag = content(part, shape, kind, seed + 1), content(part, shape, kind, seed + 2)
        return out
    if d.kind in "iu":
        return _integers(rng, d, shape, kind)
    return _floats(rng, shape, kind).astype(d)


def _integers(rng: Any, d: np.dtype, shape: tuple[int, ...], kind: str) -> np.ndarray:
    info = np.iinfo(d)
    low, high = max(-8, info.min), 8
    if kind in ("unit", "positive"):
        low = 1
    if kind == "repeated":
        low, high = max(-1, info.min), 1
    values = rng.integers(low, high, shape, endpoint=True).astype(d)
    if kind in ("special", "wide"):
        ends = np.array([info.min, info.max, info.max - 1, 0, 1, info.bits - 1, info.bits], object)
        picked = np.asarray(ends[rng.integers(0, ends.size, shape)]).astype(d)
        values = np.where(rng.random(shape) < (0.1 if kind == "special" else 0.4), picked, values)
    return np.asarray(values, d)


def _floats(rng: Any, shape: tuple[int, ...], kind: str) -> np.ndarray:
    match kind:
        case "whole":
            return rng.integers(-8, 9, shape).astype(np.float64)
        case "normal":
            return np.asarray(rng.standard_normal(shape))
        case "unit":
            return np.asarray(rng.uniform(0.03, 0.97, shape))
        case "positive":
            return np.asarray(rng.integers(1, 33, shape) / 8)
        case "repeated":
            return np.array([-1.5, 0.0, 2.0])[rng.integers(0, 3, shape)]
        case "wide":
            return np.asarray(np.exp2(rng.uniform(-12, 12, shape)) * rng.choice([-1.0, 1.0], shape))
    tame = rng.integers(-32, 33, shape) / 8
    if kind == "special":
        special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -6e-8, 5e-324, 3.0e38, -1.7e308, 65504.0])
        tame = np.where(rng.random(shape) < 0.1, special[rng.integers(0, special.size, shape)], tame)
    return np.asarray(tame)


def laid_out(a: np.ndarray, layout: str) -> np.ndarray:
    """An array of the same elements (``broadcast``: of the first along axis 0), laid out in memory as ``layout`` says."""
    match layout:
        case "fortran":
            return np.asfortranarray(a)
        case "reversed":
            flipped = tuple([slice(None, None, -1)] * a.ndim)
            return np.array(a[flipped])[flipped] if a.ndim else a
        case "strided":
            wide = np.zeros(tuple([2 * n + 1 for n in a.shape]), a.dtype)
            every = tuple([slice(1, None, 2)] * a.ndim)
            wide[every] = a
            return wide[every]
        case "transposed":
            return a.T.copy().T
        case "broadcast":
            return np.broadcast_to(a[:1], a.shape) if a.ndim and a.shape[0] else a
        case "unaligned":
            memory = np.zeros(a.nbytes + 1, np.uint8)
            out = memory[1:].view(a.dtype).reshape(a.shape) if a.size else a
            out[...] = a
            return out
        case "offset":
            memory = np.zeros(a.size + 3, a.dtype)
            memory[3:] = a.ravel()
            return memory[3:].reshape(a.shape)
        case "read-only":
            a = np.array(a)
            a.flags.writeable = False
            return a
        case "swapped":
            return a.astype(a.dtype.newbyteorder("S")) if a.dtype.isbuiltin == 1 and a.dtype.itemsize > 1 else a
    return a


def make(dtype: str, shape: tuple[int, ...], kind: str, seed: int, layout: str = "plain") -> np.ndarray:
    with np.errstate(all="ignore"):
        return laid_out(content(dtype, shape, kind, seed), layout)
