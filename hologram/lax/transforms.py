"""Fourier transforms by their kind, and what depends on where a program runs."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

from hologram import fft as fourier
from hologram.errors import ArgumentError, ShapeError
from hologram.lax.shapes import integers
from hologram.numpy.arguments import as_tensor
from hologram.support.user_lines import located
from hologram.trace.tensor import Tensor

__all__ = ["FftType", "composite", "fft", "platform_dependent"]


class FftType(enum.Enum):
    """Kinds of Fourier transforms.

    >>> hg.lax.FftType["RFFT"]
    <FftType.RFFT: 2>
    """

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


def fft(x: Any, fft_type: Any, fft_lengths: Sequence[int]) -> Tensor:
    """Fourier transform over the last axes, whose lengths are those of the real or complex signal: an inverse real one has these.

    ``fft_type`` is a :class:`FftType` or its name. Raises ArgumentError for another kind, ShapeError for other lengths than those of ``x``.

    >>> hg.lax.fft(hnp.asarray([1.0, 0.0, 0.0, 0.0]), "RFFT", (4,))
    Tensor([1.+0.j, 1.+0.j, 1.+0.j], dtype=complex64)
    """
    name = fft_type.name if isinstance(fft_type, enum.Enum) else str(fft_type).upper()
    if name not in FftType.__members__:
        raise located(ArgumentError(f"fft: a kind is one of {', '.join(FftType.__members__)}, not {fft_type!r}"))
    t, lengths = as_tensor(x, "fft"), integers(fft_lengths, "fft", "a length")
    expected = [*lengths[:-1], lengths[-1] // 2 + 1] if lengths and name == "IRFFT" else lengths
    if not lengths or list(t.shape[-len(lengths) :]) != expected:
        raise located(ShapeError(f"fft: {name} of lengths {lengths} takes last axes of {expected}, not shape {list(t.shape)}"))
    return getattr(fourier, name.lower() + "n")(t, s=tuple(lengths), axes=tuple(range(-len(lengths), 0)))


def platform_dependent(*args: Any, default: Callable[..., Any] | None = None, **per_platform: Callable[..., Any]) -> Any:
    """What the function for this kind of device gives: that called ``cpu``, else the default.

    Raises ArgumentError where there is neither.

    >>> hg.lax.platform_dependent(2.0, cpu=lambda x: x + 1, tpu=lambda x: x)
    3.0
    """
    chosen = per_platform.get("cpu", default)
    if chosen is None:
        raise located(ArgumentError(f"platform_dependent: no function for cpu among {', '.join(per_platform)}, and no default"))
    return chosen(*args)


def composite(decomposition: Callable[..., Any], name: str, version: int = 0) -> Callable[..., Any]:
    """A function under a name, which says nothing here: the function itself.

    >>> hg.lax.composite(lambda x: x * 2, "double")(3)
    6
    """
    return decomposition
