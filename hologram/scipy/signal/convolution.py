"""Convolution and correlation of arrays of any number of axes, directly and by Fourier transforms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import hologram.numpy as hnp
from hologram import dtypes, nn
from hologram.control.loops import fori_loop
from hologram.errors import ArgumentError, ShapeError
from hologram.fft import transforms
from hologram.numpy.arguments import alike, axes_of, wrap
from hologram.support.user_lines import located
from hologram.trace.checks import choice
from hologram.trace.tensor import Tensor

__all__ = ["convolve", "convolve2d", "correlate", "correlate2d", "fftconvolve"]

MODES = ("full", "same", "valid")
CONVOLUTIONS = (nn.conv1d, nn.conv2d, nn.conv3d)


def _pair(what: str, in1: Any, in2: Any, axes: int | None = None) -> tuple[Tensor, Tensor]:
    """Both arrays, in one type, with as many axes, and with elements."""
    a, b = map(wrap, alike((in1, in2), what))
    if a.ndim != b.ndim or (axes is not None and a.ndim != axes):
        asked = "as many axes" if axes is None else f"{axes} axes"
        raise located(ShapeError(f"{what} takes arrays of {asked}, not of shapes {list(a.shape)} and {list(b.shape)}"))
    return a, b


def _ordered(what: str, a: Tensor, b: Tensor, mode: str, axes: Sequence[int]) -> tuple[Tensor, Tensor]:
    """For ``valid`` the larger one first. Raises ShapeError where neither is."""
    if mode != "valid":
        return a, b
    if all(a.shape[i] >= b.shape[i] for i in axes):
        return a, b
    if all(a.shape[i] <= b.shape[i] for i in axes):
        return b, a
    raise located(ShapeError(f"{what}: valid asks for one array that is the larger along each axis, not shapes {list(a.shape)} and {list(b.shape)}"))


def _kept(full: Tensor, first: Sequence[int], second: Sequence[int], mode: str, axes: Sequence[int], late: int = 0) -> Tensor:
    """The part of a full convolution of arrays of shapes ``first`` and ``second`` that a mode asks for.

    The middle is ambiguous where ``second`` is even: ``late`` is 1 for the later one, which SciPy takes in two axes' correlations.
    """
    at = [slice(None)] * full.ndim
    for i in axes:
        n, m = first[i], second[i]
        start, extent = {"full": (0, n + m - 1), "same": ((m - 1 + late) // 2, n), "valid": (m - 1, n - m + 1)}[mode]
        at[i] = slice(start, start + extent)
    return full[tuple(at)]


def _conv(a: Tensor, kernel: Tensor) -> Tensor:
    """The sums over windows of ``a``, padded so that all of them overlap, by a kernel that has been reversed."""
    if a.dtype.kind == "c":
        parts = [[_conv(x, y) for y in (hnp.real(kernel), hnp.imag(kernel))] for x in (hnp.real(a), hnp.imag(a))]
        return (parts[0][0] - parts[1][1] + 1j * (parts[0][1] + parts[1][0])).astype(a.dtype)
    padded = hnp.pad(a, [(m - 1, m - 1) for m in kernel.shape])
    if 1 <= a.ndim <= len(CONVOLUTIONS) and a.dtype.kind != "b":
        return CONVOLUTIONS[a.ndim - 1](padded[None, None], kernel[None, None])[0, 0]
    weights, shape = kernel.reshape((-1,)), tuple(n + m - 1 for n, m in zip(a.shape, kernel.shape, strict=True))

    def add(k: Any, total: Tensor) -> Tensor:
        window = hnp.dynamic_slice(padded, list(hnp.unravel_index(k, kernel.shape)), shape)
        return (total + window * weights[k]).astype(total.dtype)

    return fori_loop(0, math.prod(kernel.shape), add, hnp.zeros(shape, dtype=a.dtype))


def _direct(a: Tensor, b: Tensor, mode: str, what: str, late: int = 0) -> Tensor:
    axes = range(a.ndim)
    if not a.size or not b.size:
        raise located(ShapeError(f"{what}: an array without elements"))
    first, second = _ordered(what, a, b, mode, axes)
    flipped = [n < m for n, m in zip(a.shape, b.shape, strict=True)]
    large, small = (b, a) if flipped and all(flipped) else (a, b)  # convolution commutes, and a small kernel is the faster
    full = _conv(large, hnp.flip(small)) if a.ndim else a * b
    return _kept(full, first.shape, second.shape, mode, axes, late)


def fftconvolve(in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> Tensor:
    """Convolution by Fourier transforms of two arrays of as many axes, along ``axes`` (all by default); other axes broadcast.

    ``mode``: ``full`` has n + m - 1 elements, ``same`` as many as ``in1``, from the middle, ``valid`` those where the smaller array is inside the
    larger. Integers become the default float. Raises ShapeError where the shapes do not fit, ArgumentError for another mode.

    >>> hnp.round(hg.scipy.signal.fftconvolve([1.0, 2.0, 3.0], [1.0, 1.0]))
    Tensor([1., 3., 5., 3.], dtype=float32)
    """
    kind = choice(mode, "fftconvolve", "mode", MODES)
    a, b = _pair("fftconvolve", in1, in2)
    a, b = (x if x.dtype.kind in "fc" else x.astype(dtypes.default_float) for x in (a, b))
    along = axes_of(axes, a.ndim, "fftconvolve", lists=True)
    if not a.size or not b.size:
        raise located(ShapeError("fftconvolve: an array without elements"))
    if wrong := [i for i in range(a.ndim) if i not in along and a.shape[i] != b.shape[i] and 1 not in (a.shape[i], b.shape[i])]:
        raise located(ShapeError(f"fftconvolve: extents {a.shape[wrong[0]]} and {b.shape[wrong[0]]} of axis {wrong[0]} do not broadcast"))
    first, second = _ordered("fftconvolve", a, b, kind, along)
    if not along:
        return a * b
    extents = [first.shape[i] + second.shape[i] - 1 for i in along]
    fast = [_fast_length(n) for n in extents]
    if first.dtype.kind == "c":
        product = transforms.ifftn(transforms.fftn(first, s=fast, axes=along) * transforms.fftn(second, s=fast, axes=along), axes=along)
    else:
        product = transforms.irfftn(transforms.rfftn(first, s=fast, axes=along) * transforms.rfftn(second, s=fast, axes=along), s=fast, axes=along)
    return _kept(product, first.shape, second.shape, kind, along)


def _fast_length(n: int) -> int:
    """The least number from ``n`` on whose prime factors are 2, 3 and 5."""
    best, five = 1 << (n - 1).bit_length(), 1
    while five < best:
        three = five
        while three < best:
            best = min(best, three << max((-(-n // three) - 1).bit_length(), 0))
            three *= 3
        five *= 5
    return best


def convolve(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Tensor:
    """Convolution of two arrays of as many axes, of any number.

    ``mode`` and errors are those of :func:`fftconvolve`. ``method`` is ``direct``, ``fft``, or ``auto``, which is ``direct`` for integers, and for
    floats where that asks for less work.

    >>> hg.scipy.signal.convolve([1, 2, 3], [1, 1])
    Tensor([1, 3, 5, 3], dtype=int64)
    """
    return _convolved("convolve", *_pair("convolve", in1, in2), mode, method)


def _convolved(what: str, a: Tensor, b: Tensor, mode: str, method: str) -> Tensor:
    kind = choice(mode, what, "mode", MODES)
    way = choice(method, what, "method", ("auto", "direct", "fft"))
    if way == "auto":
        way = "fft" if a.dtype.kind in "fc" and _is_large(a.shape, b.shape) else "direct"
    return fftconvolve(a, b, kind) if way == "fft" else _direct(a, b, kind, what)


def _is_large(first: Sequence[int], second: Sequence[int]) -> bool:
    """Whether products by transforms are fewer: three transforms of n log n, each of whose steps costs about ten products."""
    direct = math.prod(n + m - 1 for n, m in zip(first, second, strict=True)) * min(math.prod(first), math.prod(second))
    total = math.prod(n + m - 1 for n, m in zip(first, second, strict=True))
    return direct > 30 * total * math.log2(max(total, 2))


def correlate(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Tensor:
    """Cross-correlation of two arrays of as many axes: the sums of ``in1[k + i] * conj(in2[i])``.

    ``mode``, ``method`` and errors are those of :func:`convolve`.

    >>> hg.scipy.signal.correlate([1, 2, 3], [0, 1], mode="valid")
    Tensor([2, 3], dtype=int64)
    """
    a, b = _pair("correlate", in1, in2)
    swapped = choice(mode, "correlate", "mode", MODES) == "valid" and any(n < m for n, m in zip(a.shape, b.shape, strict=True))
    if swapped:  # the same products, from the other end
        return hnp.conj(hnp.flip(_convolved("correlate", b, hnp.conj(hnp.flip(a)), mode, method)))
    return _convolved("correlate", a, hnp.conj(hnp.flip(b)), mode, method)


# --- two axes --------------------------------------------------------------------------------------------------------

_PADDING = {"wrap": "wrap", "symm": "symmetric"}


def convolve2d(in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0) -> Tensor:
    """Convolution of two matrices. Beyond ``in1`` lie ``fillvalue`` (``boundary="fill"``), its other side (``wrap``) or its mirror image (``symm``).

    ``mode`` and errors are those of :func:`convolve`.

    >>> hg.scipy.signal.convolve2d([[1, 2], [3, 4]], [[1, 1]])
    Tensor([[1, 3, 2],
            [3, 7, 4]], dtype=int64)
    """
    return _in_plane("convolve2d", *_pair("convolve2d", in1, in2, 2), mode, boundary, fillvalue)


def _in_plane(what: str, a: Tensor, b: Tensor, mode: str, boundary: str, fillvalue: Any, late: int = 0) -> Tensor:
    kind = choice(mode, what, "mode", MODES)
    edge = choice(boundary, what, "boundary", ("fill", "wrap", "symm"))
    plain = edge == "fill" and isinstance(fillvalue, (int, float, complex)) and fillvalue == 0
    if kind == "valid" or plain:
        return _direct(a, b, kind, what, late)
    if not a.size or not b.size:
        raise located(ShapeError(f"{what}: an array without elements"))
    m, n = b.shape
    wide = _extended(a, (m - 1, n - 1), edge, fillvalue)
    return _kept(_direct(wide, b, "valid", what), a.shape, b.shape, kind, (0, 1), late)


def _extended(a: Tensor, by: tuple[int, int], edge: str, fillvalue: Any) -> Tensor:
    """The matrix with rows and columns around it."""
    if edge == "fill":
        return hnp.pad(a, [(n, n) for n in by], constant_values=fillvalue)
    for axis, n in enumerate(by):
        extent = a.shape[axis]
        at = np.arange(-n, extent + n)
        if edge == "wrap":
            at = at % extent
        else:
            at = at % (2 * extent)
            at = np.where(at < extent, at, 2 * extent - 1 - at)
        a = hnp.take(a, at, axis=axis)
    return a


def correlate2d(in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0) -> Tensor:
    """Cross-correlation of two matrices: the sums of ``in1[k + i] * conj(in2[i])``. ``boundary`` and errors are those of :func:`convolve2d`.

    For ``valid`` with the smaller matrix first it is, as in SciPy, ``in1`` that is conjugated.

    >>> hg.scipy.signal.correlate2d([[1, 2], [3, 4]], [[0, 1]], mode="valid")
    Tensor([[2],
            [4]], dtype=int64)
    """
    a, b = _pair("correlate2d", in1, in2, 2)
    larger = [n >= m for n, m in zip(a.shape, b.shape, strict=True)]
    if choice(mode, "correlate2d", "mode", MODES) == "valid" and not all(larger):
        if any(n > m for n, m in zip(a.shape, b.shape, strict=True)):
            raise located(ArgumentError("correlate2d: valid asks for one matrix that is the larger along both axes"))
        return hnp.flip(_in_plane("correlate2d", b, hnp.conj(hnp.flip(a)), mode, boundary, fillvalue))
    return _in_plane("correlate2d", a, hnp.conj(hnp.flip(b)), mode, boundary, fillvalue, late=1)
