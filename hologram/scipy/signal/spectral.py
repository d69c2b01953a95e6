"""Spectra of segments of signals (P. Welch, 1967), short-time Fourier transforms and their inverse, and the removal of trends."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import hologram.numpy as hnp
from hologram import dtypes
from hologram.errors import ArgumentError, ShapeError
from hologram.fft import transforms
from hologram.numpy.arguments import as_tensor, axis_of, wrap
from hologram.scipy.linalg.arguments import inexact
from hologram.scipy.signal.windows import window_of
from hologram.support.user_lines import located
from hologram.trace.checks import choice, integer, items
from hologram.trace.operators import promoted
from hologram.trace.tensor import Tensor

__all__ = ["csd", "detrend", "istft", "stft", "welch"]


def detrend(data: Any, axis: int = -1, type: str = "linear", bp: Any = 0, overwrite_data: bool = False) -> Tensor:
    """``data`` less the line, or for the type ``constant`` the mean, that fits it best along ``axis``.

    ``bp`` has the places where a new line begins. Integers become float32; ``overwrite_data`` is ignored. Raises ArgumentError for another type, or a
    place beyond the axis.

    >>> hnp.round(hg.scipy.signal.detrend([1.0, 2.0, 4.0]), 4)
    Tensor([ 0.1667, -0.3333,  0.1667], dtype=float32)
    """
    kind = choice(type, "detrend", "type", ("linear", "constant", "l", "c"))
    t = inexact(data, "detrend")
    i = axis_of(axis, t.ndim, "detrend")
    if kind[0] == "c":
        return t - hnp.mean(t, axis=i, keepdims=True)
    lines = hnp.moveaxis(t, i, -1)
    n = operator.index(lines.shape[-1])
    given = items(bp, "detrend", "places") if isinstance(bp, (list, tuple, np.ndarray)) else [bp]
    places = sorted({0, n, *[integer(p, "detrend", "bp") for p in given]})
    if places[0] < 0 or places[-1] > n:
        raise located(ArgumentError(f"detrend: a line cannot begin at {places[0] if places[0] < 0 else places[-1]} of {n} elements"))
    parts = [_without_line(lines[..., a:b]) for a, b in zip(places, places[1:], strict=False)]
    return hnp.moveaxis(hnp.concat(parts, axis=-1) if parts else lines, -1, i)


def _without_line(lines: Tensor) -> Tensor:
    """Lines through all points, in coordinates whose mean is 0."""
    n = lines.shape[-1]
    centred = lines - hnp.mean(lines, axis=-1, keepdims=True)
    if n == 1:
        return centred
    at = np.arange(n) - (n - 1) / 2
    weights = hnp.asarray((at / np.sum(at * at)).astype(dtypes.real_of(dtypes.of(lines.dtype)).np))
    places = hnp.asarray(at.astype(weights.dtype))
    return centred - hnp.sum(centred * weights, axis=-1, keepdims=True) * places


class _Segments(NamedTuple):
    """How a signal is cut: the window, and the elements of a segment, those that two share, and those of a transform."""

    window: Tensor
    length: int
    overlap: int
    transform: int


def _cut(what: str, extent: int, dtype: Any, window: Any, nperseg: Any, noverlap: Any, nfft: Any, default: int = 256) -> _Segments:
    samples, length = window_of(window, nperseg, extent, dtype, what, default)
    overlap = length // 2 if noverlap is None else integer(noverlap, what, "noverlap")
    transform = length if nfft is None else integer(nfft, what, "nfft")
    if not 0 <= overlap < length:
        raise located(ArgumentError(f"{what}: segments of {length} elements cannot share {overlap}"))
    if transform < length:
        raise located(ArgumentError(f"{what}: a transform of {transform} elements is shorter than a segment of {length}"))
    return _Segments(samples, length, overlap, transform)


def _places(extent: int, cut: _Segments) -> np.ndarray:
    """Indices (segments, length) of the elements of each segment."""
    step = cut.length - cut.overlap
    return np.arange((extent - cut.overlap) // step)[:, None] * step + np.arange(cut.length)


def _trend(how: Any, what: str) -> Callable[[Tensor], Tensor]:
    """What is taken from each segment."""
    if how is False or how is None:
        return lambda segments: segments
    if callable(how):
        return how
    return lambda segments: detrend(segments, type=choice(how, what, "detrend", ("linear", "constant")))


def _spectra(x: Tensor, cut: _Segments, trend: Callable[[Tensor], Tensor], onesided: bool) -> Tensor:
    """Transforms (…, segments, frequencies) of the segments of a signal."""
    segments = trend(x[..., _places(operator.index(x.shape[-1]), cut)]) * cut.window
    return transforms.rfft(segments, n=cut.transform) if onesided else transforms.fft(segments, n=cut.transform)


def _frequencies(cut: _Segments, fs: Any, onesided: bool, dtype: Any) -> Tensor:
    n = cut.transform
    k = np.fft.rfftfreq(n) if onesided else np.fft.fftfreq(n)
    return hnp.asarray(k.astype(dtype)) * fs


def _scale(what: str, scaling: str, cut: _Segments, fs: Any, names: tuple[str, str] = ("density", "spectrum")) -> Tensor:
    """What squares of transforms are multiplied by: power for each frequency, or in all."""
    if choice(scaling, what, "scaling", names) == "spectrum":
        return 1.0 / hnp.sum(cut.window) ** 2
    return 1.0 / (fs * hnp.sum(cut.window**2))


def _signals(what: str, *args: Any) -> list[Tensor]:
    """Arrays of one float or complex type, with an axis at least."""
    nodes, _, _ = promoted(what, args, dtypes.to_inexact)
    found = [wrap(n) for n in nodes]
    if not all(t.ndim for t in found):
        raise located(ShapeError(f"{what} takes arrays, not scalars"))
    return found


def csd(
    x: Any,
    y: Any,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Tensor, Tensor]:
    """Cross spectral density of two signals by Welch's method: ``(frequencies, density)``.

    - ``fs``: the sampling rate. ``window``: a name of :func:`get_window`, or samples.
    - ``nperseg`` (256, or as many as there are), ``noverlap`` (half of that) and ``nfft`` (``nperseg``): elements of a segment, of those that two
      share, and of a transform.
    - ``detrend``: ``constant``, ``linear``, False, or a function of segments.
    - ``return_onesided``: of real signals only frequencies from 0 on.
    - ``scaling``: ``density`` or ``spectrum``. ``average`` over segments: ``mean`` or ``median``.

    Frequencies are in the place of ``axis``. Raises ArgumentError for other options, ShapeError where the shapes do not fit.

    >>> frequencies, density = hg.scipy.signal.csd(np.eye(8)[0], np.eye(8)[0], detrend=False, window="boxcar")
    >>> density
    Tensor([0.125+0.j, 0.25 +0.j, 0.25 +0.j, 0.25 +0.j, 0.125+0.j], dtype=complex128)
    """
    found = _cross("csd", x, y, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average)
    return found[0], hnp.real(found[1]) if x is y else found[1]


def _cross(
    what: str,
    x: Any,
    y: Any,
    fs: Any,
    window: Any,
    nperseg: Any,
    noverlap: Any,
    nfft: Any,
    trend: Any,
    sided: Any,
    scaling: Any,
    axis: Any,
    average: Any,
) -> tuple[Tensor, Tensor]:
    first, second = _signals(what, x, y)
    i = axis_of(axis, first.ndim, what)
    axis_of(axis, second.ndim, what)
    first, second = hnp.moveaxis(first, axis, -1), hnp.moveaxis(second, axis, -1)
    extent = max(operator.index(first.shape[-1]), operator.index(second.shape[-1]))
    if not first.size or not second.size:
        raise located(ShapeError(f"{what}: a signal without elements"))
    first, second = (hnp.pad(t, [(0, 0)] * (t.ndim - 1) + [(0, extent - t.shape[-1])]) for t in (first, second))
    real = dtypes.real_of(dtypes.of(first.dtype)).np
    cut = _cut(what, extent, real, window, nperseg, noverlap, nfft)
    onesided = bool(sided) and first.dtype.kind != "c"
    take = _trend(trend, what)
    left = _spectra(first, cut, take, onesided)
    right = left if x is y else _spectra(second, cut, take, onesided)
    density = hnp.conj(left) * right * _scale(what, scaling, cut, fs)
    if onesided:
        double = np.full(density.shape[-1], 2.0)
        double[0] = 1.0
        if cut.transform % 2 == 0:
            double[-1] = 1.0
        density = density * hnp.asarray(double.astype(real))
    averaged = _average(what, density, average)
    return _frequencies(cut, fs, onesided, real), hnp.moveaxis(averaged, -1, i)


def _average(what: str, density: Tensor, average: str) -> Tensor:
    """Over segments. The median of squares is less than their mean, by a known factor."""
    if choice(average, what, "average", ("mean", "median")) == "mean":
        return hnp.mean(density, axis=-2)
    n = density.shape[-2]
    k = np.arange(1, (n - 1) // 2 + 1)
    bias = 1 + float(np.sum(1.0 / (2 * k + 1) - 1.0 / (2 * k)))
    parts = hnp.median(hnp.real(density), axis=-2) + 1j * hnp.median(hnp.imag(density), axis=-2)
    return (parts / bias).astype(density.dtype)


def welch(
    x: Any,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Tensor, Tensor]:
    """Power spectral density of a signal by Welch's method: ``(frequencies, density)``. Options and errors are those of :func:`csd`.

    >>> frequencies, density = hg.scipy.signal.welch(np.eye(8)[0], fs=8, detrend=False, window="boxcar")
    >>> frequencies
    Tensor([0., 1., 2., 3., 4.], dtype=float64)
    """
    found, density = _cross("welch", x, x, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average)
    return found, hnp.real(density)


def stft(
    x: Any,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: int = 256,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Any = False,
    return_onesided: bool = True,
    boundary: str | None = "zeros",
    padded: bool = True,
    axis: int = -1,
    scaling: str = "spectrum",
) -> tuple[Tensor, Tensor, Tensor]:
    """Short-time Fourier transform: ``(frequencies, times, transforms)``; frequencies are in the place of ``axis``, times in the last axis.

    ``boundary`` says what is put before and after the signal, half a segment each: ``zeros``, ``constant`` (its end), ``even`` or ``odd`` (its mirror
    image), or None. ``padded`` appends zeros, so that the last segment is whole. ``scaling`` is ``spectrum`` or ``psd``. The other options and errors
    are those of :func:`csd`.

    >>> frequencies, times, transforms = hg.scipy.signal.stft(np.ones(8), nperseg=4)
    >>> hnp.real(transforms[0])
    Tensor([0.75, 1.  , 1.  , 1.  , 0.25], dtype=float64)
    """
    (signal,) = _signals("stft", x)
    i = axis_of(axis, signal.ndim, "stft")
    lines = hnp.moveaxis(signal, i, -1)
    if not signal.size:
        raise located(ShapeError("stft: a signal without elements"))
    real = dtypes.real_of(dtypes.of(lines.dtype)).np
    cut = _cut("stft", operator.index(lines.shape[-1]), real, window, nperseg, noverlap, nfft)
    if boundary is not None:
        lines = _bounded(lines, cut.length // 2, choice(boundary, "stft", "boundary", ("zeros", "constant", "even", "odd")))
    step = cut.length - cut.overlap
    if padded:
        lines = hnp.pad(lines, [(0, 0)] * (lines.ndim - 1) + [(0, -(lines.shape[-1] - cut.length) % step)])
    onesided = bool(return_onesided) and lines.dtype.kind != "c"
    found = _spectra(lines, cut, _trend(detrend, "stft"), onesided) * hnp.sqrt(_scale("stft", scaling, cut, fs, ("psd", "spectrum")))
    at = (np.arange(found.shape[-2]) * step + (0 if boundary is not None else cut.length / 2)).astype(real)
    out = hnp.moveaxis(hnp.matrix_transpose(found), -2, i if i < signal.ndim - 1 else -2)
    return _frequencies(cut, fs, onesided, real), hnp.asarray(at) / fs, out


def _bounded(lines: Tensor, n: int, boundary: str) -> Tensor:
    """A signal with ``n`` elements before and after it."""
    if boundary == "zeros" or not n:
        return hnp.pad(lines, [(0, 0)] * (lines.ndim - 1) + [(n, n)])
    first, last = lines[..., :1], lines[..., -1:]
    if boundary == "constant":
        return hnp.concat([hnp.repeat(first, n, axis=-1), lines, hnp.repeat(last, n, axis=-1)], axis=-1)
    if lines.shape[-1] <= n:
        raise located(ShapeError(f"stft: a mirror image of {n} elements of a signal of {lines.shape[-1]}"))
    before, after = hnp.flip(lines[..., 1 : n + 1], axis=-1), hnp.flip(lines[..., -n - 1 : -1], axis=-1)
    if boundary == "odd":
        before, after = 2 * first - before, 2 * last - after
    return hnp.concat([before, lines, after], axis=-1)


def istft(
    Zxx: Any,
    fs: Any = 1.0,
    window: Any = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    input_onesided: bool = True,
    boundary: bool = True,
    time_axis: int = -1,
    freq_axis: int = -2,
    scaling: str = "spectrum",
) -> tuple[Tensor, Tensor]:
    """Inverse of :func:`stft`: ``(times, signal)``, with the options that it was called with. Time stays where it is: the axis of the
    frequencies is gone.

    ``boundary`` drops what the transform put before and after the signal. Raises ArgumentError for options, ShapeError for shapes that do not fit.

    >>> transforms = hg.scipy.signal.stft(np.arange(8.0), nperseg=4)[2]
    >>> hnp.round(hg.scipy.signal.istft(transforms, nperseg=4)[1], 6)
    Tensor([0., 1., 2., 3., 4., 5., 6., 7.], dtype=float64)
    """
    z = as_tensor(Zxx, "istft")
    times, frequencies = axis_of(time_axis, z.ndim, "istft"), axis_of(freq_axis, z.ndim, "istft")
    if times == frequencies:
        raise located(ShapeError(f"istft: transforms of shape {list(z.shape)}, times in axis {time_axis}, frequencies in axis {freq_axis}"))
    z = hnp.moveaxis(z if z.dtype.kind == "c" else z.astype("complex64"), (time_axis, freq_axis), (-2, -1))
    count, bins = operator.index(z.shape[-2]), operator.index(z.shape[-1])
    whole = 2 * (bins - 1) if input_onesided else bins
    real = dtypes.real_of(dtypes.of(z.dtype)).np
    length = whole if nperseg is None else nperseg
    points = whole + 1 if nfft is None and input_onesided and nperseg == whole + 1 else whole if nfft is None else nfft
    cut = _cut("istft", max(whole + 1, integer(length, "istft", "nperseg")), real, window, length, noverlap, points, length)
    frames = transforms.irfft(z, n=cut.transform) if input_onesided else transforms.ifft(z, n=cut.transform)
    step = cut.length - cut.overlap
    at = np.arange(count)[:, None] * step + np.arange(cut.length)
    factor = hnp.sum(cut.window) if choice(scaling, "istft", "scaling", ("spectrum", "psd")) == "spectrum" else hnp.sqrt(fs * hnp.sum(cut.window**2))
    frames = frames[..., : cut.length] * (cut.window * factor)
    extent = cut.length + (count - 1) * step
    total = hnp.zeros((*frames.shape[:-2], extent), dtype=frames.dtype).at[..., at].add(frames)
    weight = hnp.zeros(extent, dtype=real).at[at].add(hnp.broadcast_to(cut.window**2, at.shape))
    if boundary:
        half = cut.length // 2
        total, weight = total[..., half : extent - half], weight[half : extent - half]
    signal = total / hnp.where(weight > 1e-10, weight, 1.0)
    return hnp.arange(signal.shape[-1]).astype(real) / fs, hnp.moveaxis(signal, -1, times - (frequencies < times))
