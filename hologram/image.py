"""Names of ``jax.image``: arrays resampled along some of their axes, by one small matrix of weights for each."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Sequence
from typing import Any

from hologram import dtypes
from hologram import numpy as hnp
from hologram.errors import ArgumentError, ShapeError
from hologram.numpy.arguments import array, axes_of, cast, wrap
from hologram.support.user_lines import located
from hologram.trace.checks import items, shape_of
from hologram.trace.tensor import Tensor

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]


class ResizeMethod(enum.Enum):
    """How values between elements are found; texts such as ``"linear"`` name them, too.

    >>> hg.image.ResizeMethod.from_string("bicubic")
    <ResizeMethod.CUBIC: 4>
    """

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

    @staticmethod
    def from_string(s: str) -> ResizeMethod:
        """The method of a name. Raises ArgumentError for another text.

        >>> hg.image.ResizeMethod.from_string("lanczos3")
        <ResizeMethod.LANCZOS3: 2>
        """
        if s not in _NAMES:
            raise located(ArgumentError(f"resize: a method is one of {', '.join(_NAMES)}, not {s!r}"))
        return _NAMES[s]


_NAMES = {
    "nearest": ResizeMethod.NEAREST,
    **dict.fromkeys(("linear", "bilinear", "trilinear", "triangle"), ResizeMethod.LINEAR),
    "lanczos3": ResizeMethod.LANCZOS3,
    "lanczos5": ResizeMethod.LANCZOS5,
    **dict.fromkeys(("cubic", "bicubic", "tricubic"), ResizeMethod.CUBIC),
    **dict.fromkeys(("cubic-pytorch", "bicubic-pytorch"), ResizeMethod.CUBIC_PYTORCH),
    "area": ResizeMethod.AREA,
}


# --- weights ---------------------------------------------------------------------------------------------------------


def _triangle(distance: Tensor) -> Tensor:
    return hnp.maximum(0, 1 - distance)


def _lanczos(radius: int, distance: Tensor) -> Tensor:
    """A sine cardinal in the window of a wider one."""
    within = distance < radius
    return hnp.where(within, hnp.sinc(distance) * hnp.sinc(distance / radius), 0)


def _keys(a: float, distance: Tensor) -> Tensor:
    """Keys' cubic convolution of parameter ``a`` (Cubic convolution interpolation for digital image processing, 1981)."""
    d = distance
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return hnp.where(d < 1, near, hnp.where(d < 2, far, 0))


_KERNELS: dict[ResizeMethod, Callable[[Tensor], Tensor]] = {
    ResizeMethod.LINEAR: _triangle,
    ResizeMethod.LANCZOS3: functools.partial(_lanczos, 3),
    ResizeMethod.LANCZOS5: functools.partial(_lanczos, 5),
    ResizeMethod.CUBIC: functools.partial(_keys, -0.5),
    ResizeMethod.CUBIC_PYTORCH: functools.partial(_keys, -0.75),
}


def _weights(method: ResizeMethod, n: int, count: int, scale: Tensor, translation: Tensor, antialias: bool) -> Tensor:
    """The matrix (n, count) by which ``n`` elements become ``count``; elements are areas whose middles are at halves."""
    dtype = scale.dtype
    inverse = 1 / scale
    center = (hnp.arange(count, dtype=dtype) + 0.5 - translation) * inverse - 0.5
    there = hnp.arange(n, dtype=dtype)[:, None]
    clamped = method is ResizeMethod.CUBIC_PYTORCH and not antialias
    if method is ResizeMethod.AREA:
        half = 0.5 * inverse
        found = hnp.maximum(0, hnp.minimum(there + 0.5, center + half) - hnp.maximum(there - 0.5, center - half))
    else:
        kernel = _KERNELS[method]
        if method is ResizeMethod.CUBIC_PYTORCH and antialias:
            kernel = _KERNELS[ResizeMethod.CUBIC]
        width = hnp.maximum(inverse, 1.0) if antialias else hnp.ones((), dtype=dtype)
        found = kernel(hnp.abs(center - there) / width)
        if clamped:
            found = _edges_repeated(found, kernel, center, n)
    total = hnp.sum(found, axis=0, keepdims=True)
    certain = hnp.abs(total) > 1000 * float(hnp.finfo(dtype).eps)
    found = hnp.where(certain, found / hnp.where(certain, total, 1), 0)
    return found if clamped else hnp.where((center >= -0.5) & (center <= n - 0.5), found, 0)


def _edges_repeated(found: Tensor, kernel: Callable[[Tensor], Tensor], center: Tensor, n: int) -> Tensor:
    """The first and the last element stand for the two beyond them, too."""
    before = kernel(hnp.abs(center + 1)) + kernel(hnp.abs(center + 2))
    after = kernel(hnp.abs(center - n)) + kernel(hnp.abs(center - n - 1))
    return found.at[0].add(before).at[-1].add(after)


# --- functions -------------------------------------------------------------------------------------------------------


def _method(method: Any) -> ResizeMethod:
    return method if isinstance(method, ResizeMethod) else ResizeMethod.from_string(method)


def _as_float(x: Any, what: str) -> tuple[Tensor, Any]:
    """Floats or complex numbers in the type that sums are computed in, and the type of the result."""
    node = array(x, what)
    result = dtypes.to_inexact(node.dtype)
    return cast(wrap(node), dtypes.compute_type(result)), result


def resize(image: Any, shape: Sequence[int], method: str | ResizeMethod = "linear", antialias: bool = True, precision: Any = None) -> Tensor:
    """``image`` resampled to another ``shape`` of as many axes: along each axis by its own scale.

    ``method`` is a :class:`ResizeMethod` or its name: ``"nearest"``, ``"linear"``, ``"cubic"``, ``"cubic-pytorch"``, ``"lanczos3"``,
    ``"lanczos5"``, ``"area"``. With ``antialias`` kernels are wider where the result is smaller. Floats and complex numbers keep their type,
    integers give floats, but with ``"nearest"``, which keeps every type. ``precision`` is taken, and says nothing here. The image has derivatives.
    Raises ShapeError for another number of axes and for symbolic extents, ArgumentError for another method.

    >>> hg.image.resize(hnp.asarray([0.0, 10.0]), (4,))
    Tensor([ 0. ,  2.5,  7.5, 10. ], dtype=float32)
    >>> hg.image.resize(hnp.arange(6.0).reshape(2, 3), (1, 6), "nearest")
    Tensor([[3., 3., 4., 4., 5., 5.]], dtype=float32)
    """
    t, extents, chosen = hnp.asarray(image), _extents(image, shape, "resize"), _method(method)
    changed = [i for i, (n, m) in enumerate(zip(t.shape, extents, strict=True)) if n != m]
    if chosen is ResizeMethod.NEAREST:
        for i in changed:
            n, m = t.shape[i], extents[i]
            at = [min(int((2 * k + 1) * n / (2 * m)), n - 1) for k in range(m)]
            t = hnp.take(t, hnp.asarray(at, dtype="int64"), axis=i)
        return t
    found, result = _as_float(t, "resize")
    for i in changed:
        n, m = t.shape[i], extents[i]
        if n == 0:
            raise located(ShapeError(f"resize: shape {list(t.shape)} has no elements along axis {i}"))
        real = hnp.real(found).dtype
        scale = hnp.asarray(m / n, dtype=real) if m else hnp.ones((), dtype=real)
        found = _along(found, i, _weights(chosen, n, m, scale, hnp.zeros((), dtype=real), antialias))
    return cast(found, result)


def scale_and_translate(
    image: Any,
    shape: Sequence[int],
    spatial_dims: Sequence[int],
    scale: Any,
    translation: Any,
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: Any = None,
) -> Tensor:
    """``image`` scaled and moved along the axes ``spatial_dims``, in an array of ``shape``: element ``x`` comes to ``x * scale + translation``.

    ``scale`` and ``translation`` are vectors with a number for each of ``spatial_dims``; positions are those of edges, so the middle of element i is
    at i + 1/2. What lies outside of the image is 0; next to it, its edge with ``"cubic-pytorch"`` and no ``antialias``. Methods but ``"nearest"``
    and options are as for :func:`resize`. The image, the scale and the translation have derivatives. Raises ShapeError for other shapes and where
    another axis changes, ArgumentError for another method.

    >>> x = hnp.asarray([1.0, 2.0, 3.0])
    >>> hg.image.scale_and_translate(x, (4,), (0,), hnp.asarray([1.0]), hnp.asarray([0.5]), "linear")
    Tensor([1. , 1.5, 2.5, 3. ], dtype=float32)
    """
    what, chosen = "scale_and_translate", _method(method)
    if chosen is ResizeMethod.NEAREST:
        raise located(ArgumentError(f"{what}: 'nearest' is no method of it: take resize"))
    (found, result), extents = _as_float(image, what), _extents(image, shape, what)
    axes = axes_of(tuple(items(spatial_dims, what, "axes")), found.ndim, what) if len(spatial_dims) else ()
    order = [a % found.ndim for a in spatial_dims]
    (factors, _), (moves, _) = (_as_float(v, what) for v in (scale, translation))
    if factors.shape != (len(order),) or moves.shape != (len(order),):
        raise located(ShapeError(f"{what}: scale and translation are vectors of {len(order)}, not shapes {list(factors.shape)}, {list(moves.shape)}"))
    if other := [i for i, (n, m) in enumerate(zip(found.shape, extents, strict=True)) if n != m and i not in axes]:
        raise located(ShapeError(f"{what}: axis {other[0]}, which is not in spatial_dims, goes from {found.shape[other[0]]} to {extents[other[0]]}"))
    real = hnp.real(found).dtype
    for k, axis in enumerate(order):
        weights = _weights(chosen, found.shape[axis], extents[axis], factors[k].astype(real), moves[k].astype(real), antialias)
        found = _along(found, axis, weights)
    return cast(found, result)


def _extents(image: Any, shape: Any, what: str) -> tuple[int, ...]:
    extents, given = shape_of(shape, what), hnp.shape(image)
    if len(extents) != len(given):
        raise located(ShapeError(f"{what}: an image of shape {list(given)} becomes one of as many axes, not of shape {list(extents)}"))
    if not all(isinstance(n, int) for n in (*extents, *given)):
        raise located(ShapeError(f"{what}: extents are static, not {list(given)} and {list(extents)}"))
    return extents  # type: ignore[return-value]


def _along(t: Tensor, axis: int, weights: Tensor) -> Tensor:
    return hnp.moveaxis(hnp.tensordot(t, weights, axes=((axis,), (0,))), -1, axis)
