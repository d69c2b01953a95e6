"""Discrete cosine transforms of the types 2 and 3, by real Fourier transforms (J. Makhoul, *A fast cosine transform in one and two dimensions*,
1980)."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

import hologram.numpy as hnp
from hologram.errors import ArgumentError, DTypeError, ShapeError
from hologram.fft import transforms
from hologram.numpy.arguments import axes_of, axis_of
from hologram.scipy.linalg.arguments import inexact
from hologram.support.user_lines import located
from hologram.trace.checks import choice, integer, items
from hologram.trace.tensor import Tensor

__all__ = ["dct", "dctn", "idct", "idctn"]


def _options(what: str, type: Any, norm: Any) -> tuple[int, str]:
    kind = integer(type, what, "type")
    if kind not in (2, 3):
        raise located(ArgumentError(f"{what}: the types 2 and 3 are there, not {kind}"))
    return kind, "backward" if norm is None else choice(norm, what, "norm", ("backward", "ortho", "forward"))


def _resized(x: Tensor, axis: int, n: Any, what: str) -> Tensor:
    """With ``n`` elements along an axis: cut, or with zeros at its end."""
    size = operator.index(x.shape[axis])
    wanted = size if n is None else integer(n, what, "n")
    if wanted < 1:
        raise located(ShapeError(f"{what}: a transform of {wanted} elements"))
    if wanted <= size:
        return x[(slice(None),) * axis + (slice(0, wanted),)]
    return hnp.pad(x, [(0, wanted - size if i == axis else 0) for i in range(x.ndim)])


def _turn(n: int, dtype: Any) -> Tensor:
    """Rotations by quarters of a step: ``exp(-iπk / 2n)``."""
    k = np.arange(n)
    return hnp.asarray(np.exp(-0.5j * np.pi * k / n).astype(np.complex128 if dtype == np.float64 else np.complex64))


def _second(x: Tensor) -> Tensor:
    """Type 2 along the last axis, not scaled: even elements first, then the odd ones from the end."""
    n = x.shape[-1]
    order = np.concatenate([np.arange(0, n, 2), np.arange(1, n, 2)[::-1]])
    spectrum = transforms.fft(x[..., order])
    return 2 * hnp.real(spectrum * _turn(n, x.dtype))


def _third(x: Tensor) -> Tensor:
    """Type 3 along the last axis, not scaled: 2n times the inverse of type 2."""
    n = x.shape[-1]
    reverse = hnp.concat([hnp.zeros_like(x[..., :1]), hnp.flip(x[..., 1:], axis=-1)], axis=-1)
    spectrum = (x - 1j * reverse) * hnp.conj(_turn(n, x.dtype))
    found = hnp.real(transforms.ifft(spectrum)) * n
    order = np.concatenate([np.arange(0, n, 2), np.arange(1, n, 2)[::-1]])
    return found[..., np.argsort(order)]


def _transformed(x: Tensor, axis: int, kind: int, norm: str, inverse: bool) -> Tensor:
    """One axis. The inverse of a type is the other one, divided by 2n."""
    lines = hnp.moveaxis(x, axis, -1)
    n = lines.shape[-1]
    first = np.ones(n)
    first[0] = math.sqrt(2)
    weights = hnp.asarray(first.astype(lines.dtype))
    second = (kind == 2) != inverse
    if norm == "ortho":
        out = _second(lines) / weights / math.sqrt(2 * n) if second else _third(lines * weights) / math.sqrt(2 * n)
    else:
        out = _second(lines) if second else _third(lines)
        out = out / (2 * n) if (norm == "forward") != inverse else out
    return hnp.moveaxis(out, -1, axis)


def _real(x: Any, what: str) -> Tensor:
    t = inexact(x, what)
    if t.dtype.kind == "c":
        raise located(DTypeError(f"{what} takes real numbers, not {t.dtype}"))
    if not t.ndim:
        raise located(ShapeError(f"{what} takes arrays, not scalars"))
    return t


def _one(what: str, x: Any, type: Any, n: Any, axis: Any, norm: Any, inverse: bool) -> Tensor:
    kind, scaling = _options(what, type, norm)
    t = _real(x, what)
    i = axis_of(axis, t.ndim, what)
    return _transformed(_resized(t, i, n, what), i, kind, scaling, inverse)


def _several(what: str, x: Any, type: Any, s: Any, axes: Any, norm: Any, inverse: bool) -> Tensor:
    kind, scaling = _options(what, type, norm)
    t = _real(x, what)
    extents: Sequence[Any] | None = None if s is None else items(s, what, "extents")
    if axes is None and extents is not None:
        axes = tuple(range(t.ndim - len(extents), t.ndim))
    named = [axis_of(a, t.ndim, what) for a in (axes if isinstance(axes, (tuple, list)) else axes_of(axes, t.ndim, what))]
    if extents is not None and len(extents) != len(named):
        raise located(ShapeError(f"{what}: {len(extents)} extents for {len(named)} axes"))
    for i, n in zip(named, extents if extents is not None else [None] * len(named), strict=True):
        t = _transformed(_resized(t, i, n, what), i, kind, scaling, inverse)
    return t


def dct(x: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Tensor:
    """Discrete cosine transform of the type 2 or 3 along ``axis``, of ``n`` elements (as many as there are by default).

    ``norm``: ``backward`` (None) does not scale, ``forward`` divides by 2n, ``ortho`` makes the transform orthogonal. Integers become float32. Raises
    ArgumentError for other options, DTypeError for complex numbers.

    >>> hg.scipy.fft.dct([1.0, 1.0], norm="ortho")
    Tensor([1.4142135, 0.       ], dtype=float32)
    """
    return _one("dct", x, type, n, axis, norm, False)


def idct(x: Any, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None) -> Tensor:
    """Inverse of :func:`dct`, with its options and errors.

    >>> hnp.round(hg.scipy.fft.idct(hg.scipy.fft.dct([1.0, 2.0, 4.0])), 4)
    Tensor([1., 2., 4.], dtype=float32)
    """
    return _one("idct", x, type, n, axis, norm, True)


def dctn(x: Any, type: int = 2, s: Any = None, axes: Any = None, norm: str | None = None) -> Tensor:
    """As :func:`dct`, along several axes (all by default, or the last ones that ``s`` has extents for).

    >>> hnp.round(hg.scipy.fft.dctn(hnp.ones((2, 2)), norm="ortho"), 4)
    Tensor([[2., 0.],
            [0., 0.]], dtype=float32)
    """
    return _several("dctn", x, type, s, axes, norm, False)


def idctn(x: Any, type: int = 2, s: Any = None, axes: Any = None, norm: str | None = None) -> Tensor:
    """Inverse of :func:`dctn`, with its options and errors.

    >>> hnp.round(hg.scipy.fft.idctn([[2.0, 0.0], [0.0, 0.0]], norm="ortho"), 4)
    Tensor([[1., 1.],
            [1., 1.]], dtype=float32)
    """
    return _several("idctn", x, type, s, axes, norm, True)
