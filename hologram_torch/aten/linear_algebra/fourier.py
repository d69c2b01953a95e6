"""Fourier transforms of ``torch.fft``, in those of :mod:`hologram.fft`."""

from __future__ import annotations

from collections.abc import Sequence

from hologram.fft import transforms as fft
from hologram.trace.tensor import Tensor
from hologram_torch.aten.registry import implements
from hologram_torch.aten.types import cast, type_of

_FORWARD = ("backward", "ortho", "forward")  # hologram.fft's norm, by torch's number: as it is, over the root of n, over n
_INVERSE = ("forward", "ortho", "backward")


@implements("_fft_c2c")
def complex_to_complex(x: Tensor, dim: Sequence[int], normalization: int, forward: bool) -> Tensor:
    if not dim:
        return x
    transform, norms = (fft.fftn, _FORWARD) if forward else (fft.ifftn, _INVERSE)
    return transform(x, axes=tuple(dim), norm=norms[normalization])


@implements("_fft_r2c")
def real_to_complex(x: Tensor, dim: Sequence[int], normalization: int, onesided: bool) -> Tensor:
    transform = fft.rfftn if onesided else fft.fftn
    return transform(x if onesided else cast(x, type_of(x).to_complex()), axes=tuple(dim), norm=_FORWARD[normalization])


@implements("_fft_c2r")
def complex_to_real(x: Tensor, dim: Sequence[int], normalization: int, last_dim_size: int) -> Tensor:
    sizes = (*[x.shape[d] for d in dim[:-1]], last_dim_size)
    return fft.irfftn(x, s=sizes, axes=tuple(dim), norm=_INVERSE[normalization])
