"""Complex numbers and their parts. Conjugations and negations that torch leaves pending are computed where they are read."""

from __future__ import annotations

from hologram import numpy as hnp
from hologram.primitives.complex import parts as complexes
from hologram.trace.apply import node_of, wrap
from hologram.trace.recorder import record
from hologram.trace.tensor import Tensor
from hologram_torch.aten.registry import implements


@implements("resolve_conj", "resolve_neg")
def resolved(x: Tensor) -> Tensor:
    return x


@implements("_conj")
def conj(x: Tensor) -> Tensor:
    return hnp.conj(x)


@implements("_neg_view")
def negative(x: Tensor) -> Tensor:
    return -x


@implements("complex")
def complex_(real: Tensor, imag: Tensor) -> Tensor:
    """The number of these parts; sums and products would lose the signs of zeros, and infinities."""
    shape = hnp.broadcast_shapes(real.shape, imag.shape)
    return wrap(record(complexes.complex_, tuple(node_of(hnp.broadcast_to(x, shape)) for x in (real, imag))))


@implements("polar")
def polar(size: Tensor, angle: Tensor) -> Tensor:
    return complex_(size * hnp.cos(angle), size * hnp.sin(angle))


@implements("view_as_real", "view_as_real_copy")
def view_as_real(x: Tensor) -> Tensor:
    return hnp.stack([hnp.real(x), hnp.imag(x)], axis=-1)


@implements("view_as_complex", "view_as_complex_copy")
def view_as_complex(x: Tensor) -> Tensor:
    return complex_(x[..., 0], x[..., 1])
