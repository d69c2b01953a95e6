"""hologram.scipy.signal beside SciPy: convolutions, spectra, windows, derivatives, errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
import hologram.scipy.signal as hs
from hologram.errors import ArgumentError, HologramError, ShapeError
from hologram.scipy.signal.convolution import _fast_length

ss = pytest.importorskip("scipy.signal", reason="SciPy, with which results are compared, is not installed")
rng = np.random.default_rng(7)


def compare(name: str, *args: Any, rounding: float = 1e-9, **named: Any) -> None:
    got, want = (hg.tree.leaves(getattr(m, name)(*args, **named)) for m in (hs, ss))
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(np.asarray(g), w, rtol=rounding, atol=rounding, err_msg=f"{name}{named}")


def drawn(shape: tuple[int, ...], dtype: type) -> np.ndarray:
    imaginary = 1j * rng.standard_normal(shape) if dtype is complex else 0
    return (rng.standard_normal(shape) * 5 + imaginary).astype(dtype)


SHAPES = [((7,), (3,)), ((3,), (7,)), ((5, 6), (2, 3)), ((2, 3), (5, 6)), ((3, 2, 3, 2), (2, 2, 1, 1)), ((4, 4, 4), (2, 3, 1))]


@pytest.mark.crossed
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("dtype", [float, complex, int])
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_convolutions_and_correlations(shapes: Any, dtype: type, mode: str) -> None:
    a, b = (drawn(s, dtype) for s in shapes)
    for method in ("direct", "fft") if dtype is not int else ("direct",):
        compare("convolve", a, b, mode, method)
        compare("correlate", a, b, mode, method)


@pytest.mark.crossed
@pytest.mark.parametrize("boundary", ["fill", "wrap", "symm"])
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("dtype", [float, complex, int])
@pytest.mark.parametrize("shapes", [((5, 6), (2, 3)), ((2, 3), (5, 6)), ((4, 3), (4, 2))], ids=str)
def test_planes(shapes: Any, dtype: type, mode: str, boundary: str) -> None:
    a, b = (drawn(s, dtype) for s in shapes)
    compare("convolve2d", a, b, mode, boundary, 2)
    compare("correlate2d", a, b, mode, boundary, 2)


def test_convolutions_along_some_axes_broadcast_the_others() -> None:
    compare("fftconvolve", drawn((3, 8), float), drawn((1, 5), float), "same", axes=1)


def test_fast_lengths_have_small_factors_and_are_the_least() -> None:
    fft = pytest.importorskip("scipy.fft")
    assert [_fast_length(n) for n in range(1, 400)] == [fft.next_fast_len(n, True) for n in range(1, 400)]


X = rng.standard_normal((2, 300))
SEGMENTS: list[dict[str, Any]] = [
    {},
    {"nperseg": 63, "noverlap": 20, "nfft": 128, "fs": 10.0},
    {"scaling": "spectrum", "average": "median", "nperseg": 50},
    {"window": ("tukey", 0.3), "detrend": "linear", "nperseg": 32},
    {"detrend": False, "return_onesided": False, "nperseg": 40, "window": "blackmanharris"},
]


@pytest.mark.parametrize("options", SEGMENTS, ids=str)
def test_spectral_densities(options: dict[str, Any]) -> None:
    compare("welch", X, **options)
    compare("welch", X.T, axis=0, **options)
    compare("csd", X, X[::-1].copy(), **options)


TRANSFORMS: list[dict[str, Any]] = [
    {"nperseg": 63, "noverlap": 50},
    {"nperseg": 64, "boundary": "even"},
    {"nperseg": 64, "boundary": "odd", "scaling": "psd", "fs": 3.0},
    {"nperseg": 64, "boundary": "constant", "nfft": 100},
    {"nperseg": 64, "boundary": None, "padded": False, "window": "boxcar"},
]


@pytest.mark.parametrize("options", TRANSFORMS, ids=str)
def test_short_time_transforms_and_their_inverse(options: dict[str, Any]) -> None:
    compare("stft", X, **options)
    compare("stft", X.T, axis=0, **options)
    transforms = hs.stft(X[0], **options)[2]
    shared = {k: v for k, v in options.items() if k in ("nperseg", "noverlap", "nfft", "fs", "scaling", "window")}
    compare("istft", transforms.numpy(), boundary=options.get("boundary", "zeros") is not None, **shared)
    back = hs.istft(transforms, boundary=options.get("boundary", "zeros") is not None, **shared)[1].numpy()
    np.testing.assert_allclose(back[:280], X[0, :280], atol=1e-9)


@pytest.mark.parametrize(("times", "frequencies"), [(0, 1), (-2, 0), (1, -1), (-1, -2)])
def test_inverses_keep_the_axis_of_time(times: int, frequencies: int) -> None:
    z = drawn((9, 9, 9), complex)
    options: dict[str, Any] = {"nperseg": 16, "time_axis": times, "freq_axis": frequencies}
    np.testing.assert_allclose(hs.istft(z, **options)[1], ss.istft(z, **options)[1], atol=1e-12)


def test_trends() -> None:
    for options in ({}, {"type": "constant"}, {"bp": [100, 200]}, {"axis": 0}):
        compare("detrend", X, **options)


WINDOWS: list[Any] = [
    "boxcar", "hann", "hamming", "blackman", "nuttall", "blackmanharris", "flattop", "bartlett", "cosine", "tukey", ("tukey", 0.3),
    ("gaussian", 3.0), ("kaiser", 4.0), 5.0,
]  # fmt: skip


def test_windows() -> None:
    for window in WINDOWS:
        for n in (1, 7, 8):
            for periodic in (True, False):
                compare("get_window", window, n, periodic, rounding=1e-6)


def test_derivatives_stacks_and_types() -> None:
    kernel = rng.standard_normal(5)
    found = hg.jit(hg.vmap(lambda x: hs.fftconvolve(x, kernel, "same")))(X).numpy()
    np.testing.assert_allclose(found, [ss.convolve(x, kernel, "same") for x in X], atol=1e-12)
    slopes = [hg.grad(lambda k, m=m: hnp.sum(hs.convolve(X[0], k, "valid", m) ** 2))(kernel).numpy() for m in ("direct", "fft")]
    np.testing.assert_allclose(*slopes, rtol=1e-9)
    power = hg.grad(lambda x: hnp.sum(hs.welch(x, nperseg=64, detrend=False, window="boxcar", noverlap=0)[1]))(X[0, :128])
    np.testing.assert_allclose(power.numpy(), X[0, :128], atol=1e-9)  # Parseval: the mean of squares over two segments, times 2 · 64 / 2 / 64
    assert hs.stft(X.astype(np.float32), nperseg=64)[2].dtype == np.complex64 and hs.fftconvolve([1, 2], [1]).dtype == np.float32


WRONG: list[tuple[Callable[[], Any], type[HologramError], str]] = [
    (lambda: hs.convolve([1.0], [[1.0]]), ShapeError, "as many axes"),
    (lambda: hs.convolve([1.0], []), ShapeError, "without elements"),
    (lambda: hs.convolve([1.0], [1.0], "half"), ArgumentError, "mode"),
    (lambda: hs.convolve(np.ones((3, 5)), np.ones((5, 3)), "valid"), ShapeError, "larger"),
    (lambda: hs.convolve2d([1.0], [1.0]), ShapeError, "2 axes"),
    (lambda: hs.welch(X, nperseg=8, noverlap=8), ArgumentError, "share"),
    (lambda: hs.welch(X, nperseg=8, nfft=4), ArgumentError, "shorter"),
    (lambda: hs.welch(X, window="hat"), ArgumentError, "no window 'hat'"),
    (lambda: hs.welch(X, window=np.ones(301)), ShapeError, "window"),
    (lambda: hs.csd(X, X, scaling="loud"), ArgumentError, "scaling"),
    (lambda: hs.detrend(X, bp=[400]), ArgumentError, "400"),
    (lambda: hs.istft(X[0]), ShapeError, "istft"),
    (lambda: hs.get_window("kaiser", 8), ArgumentError, "parameters"),
]


@pytest.mark.parametrize(("call", "kind", "text"), WRONG)
def test_errors_are_kind_and_located(call: Callable[[], Any], kind: type[HologramError], text: str) -> None:
    with pytest.raises(kind, match=text) as found:
        call()
    assert "test_signal.py" in str(found.value)
