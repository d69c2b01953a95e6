"""Fourier transform ops, along one or several axes at once.

``norm`` says which direction is divided by the number of elements: ``backward`` the inverse, ``forward`` the other, ``ortho`` each by its root.

- ``fft(x; axes, inverse, norm)`` of complex ``x``;
- ``rfft(x; axes, norm)`` of real ``x``: what ``fft`` gives for the first half, n // 2 + 1, of the last of ``axes``;
- ``irfft(x; axes, n, norm)``: the real array, of ``n`` elements along the last of ``axes``, of which ``x`` is such a half.

Source of the meaning: numpy.fft (pocketfft).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hologram import dtypes
from hologram.errors import DTypeError, ShapeError
from hologram.ir.op import Shape
from hologram.ir.symbolic import Int, floordiv
from hologram.primitives.host.host_op import Type, define_host_op

if TYPE_CHECKING:
    from hologram.ir.node import Node

_COMPLEX = {"float32": dtypes.complex64, "float64": dtypes.complex128}


def _check(name: str, x: Node, axes: tuple[int, ...], kind: str) -> None:
    if x.dtype.kind != kind or x.dtype.bits < 32:
        raise DTypeError(f"{name} does not take {x.dtype}")
    if not axes or len(set(axes)) != len(axes) or any(not 0 <= a < len(x.shape) for a in axes):
        raise ShapeError(f"{name}: axes {list(axes)} of shape {list(x.shape)}")
    if any(x.shape[a] == 0 for a in axes):
        raise ShapeError(f"{name}: no transform of 0 elements, shape {list(x.shape)} along axes {list(axes)}")


def _with(shape: Shape, axis: int, n: Int) -> Shape:
    return (*shape[:axis], n, *shape[axis + 1 :])


def _fft_results(inputs: tuple[Node, ...], attrs: tuple[Any, ...]) -> list[Type]:
    (x,) = inputs
    _check("fft", x, attrs[0], "c")
    return [(x.shape, x.dtype)]


def _rfft_results(inputs: tuple[Node, ...], attrs: tuple[Any, ...]) -> list[Type]:
    (x,), (axes, _) = inputs, attrs
    _check("rfft", x, axes, "f")
    return [(_with(x.shape, axes[-1], floordiv(x.shape[axes[-1]], 2) + 1), _COMPLEX[x.dtype.name])]


def _irfft_results(inputs: tuple[Node, ...], attrs: tuple[Any, ...]) -> list[Type]:
    (x,), (axes, n, _) = inputs, attrs
    _check("irfft", x, axes, "c")
    if x.shape[axes[-1]] != floordiv(n, 2) + 1:
        raise ShapeError(f"irfft: {n} elements have a half of {floordiv(n, 2) + 1}, not {x.shape[axes[-1]]}")
    return [(_with(x.shape, axes[-1], n), dtypes.real_of(x.dtype))]


def _fft(x: np.ndarray, axes: tuple[int, ...], inverse: bool, norm: str) -> list[np.ndarray]:
    transform = np.fft.ifftn if inverse else np.fft.fftn
    return [transform(x, axes=axes, norm=norm)]  # type: ignore[arg-type]


def _rfft(x: np.ndarray, axes: tuple[int, ...], norm: str) -> list[np.ndarray]:
    return [np.fft.rfftn(x, axes=axes, norm=norm)]  # type: ignore[arg-type]


def _irfft(x: np.ndarray, axes: tuple[int, ...], n: int, norm: str) -> list[np.ndarray]:
    sizes = [*[x.shape[a] for a in axes[:-1]], n]
    return [np.fft.irfftn(x, sizes, axes=axes, norm=norm)]  # type: ignore[arg-type]


_quiet = np.errstate(all="ignore")
fft = define_host_op("fft", 1, _fft_results, _quiet(_fft), "axes", "inverse", "norm", kinds="c")
rfft = define_host_op("rfft", 1, _rfft_results, _quiet(_rfft), "axes", "norm", kinds="f")
irfft = define_host_op("irfft", 1, _irfft_results, _quiet(_irfft), "axes", "n", "norm", kinds="c", sizes=("n",))
