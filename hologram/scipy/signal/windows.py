"""Windows of spectral analysis, by name, as ``scipy.signal.get_window`` gives them."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

import hologram.numpy as hnp
from hologram import dtypes
from hologram.errors import ArgumentError, ShapeError
from hologram.numpy.arguments import as_tensor
from hologram.support.user_lines import located
from hologram.trace.checks import integer, number
from hologram.trace.tensor import Tensor

__all__ = ["get_window"]

_COSINES = {  # coefficients of sums of cosines
    "boxcar": (1.0,),
    "hann": (0.5, 0.5),
    "hamming": (0.54, 0.46),
    "blackman": (0.42, 0.50, 0.08),
    "nuttall": (0.3635819, 0.4891775, 0.1365995, 0.0106411),
    "blackmanharris": (0.35875, 0.48829, 0.14128, 0.01168),
    "flattop": (0.21557895, 0.41663158, 0.277263158, 0.083578947, 0.006947368),
}
_ALIASES = {"ones": "boxcar", "rect": "boxcar", "rectangular": "boxcar", "hanning": "hann", "black": "blackman", "bart": "bartlett", "cos": "cosine"}
_OTHERS = ("bartlett", "cosine", "gaussian", "kaiser", "tukey")


def _sampled(name: str, n: int, parameters: list[float]) -> np.ndarray:
    """``n`` samples of a symmetric window."""
    if n == 1:
        return np.ones(1)
    k = np.arange(n)
    if name in _COSINES:
        terms = [(-1) ** i * a * np.cos(2 * np.pi * i * k / (n - 1)) for i, a in enumerate(_COSINES[name])]
        return np.sum(terms, axis=0)
    if name == "bartlett":
        return 1 - np.abs(2 * k / (n - 1) - 1)
    if name == "cosine":
        return np.sin(np.pi / n * (k + 0.5))
    if name == "gaussian":
        return np.exp(-0.5 * ((k - (n - 1) / 2) / parameters[0]) ** 2)
    if name == "kaiser":
        return np.kaiser(n, parameters[0])
    return _tukey(k, n, parameters[0] if parameters else 0.5)


def _tukey(k: np.ndarray, n: int, share: float) -> np.ndarray:
    """Flat in the middle, with cosines at ``share`` of its length."""
    if share <= 0:
        return np.ones(n)
    edge = np.minimum(k, n - 1 - k) / (min(share, 1.0) * (n - 1) / 2)
    return np.where(edge < 1, 0.5 * (1 - np.cos(np.pi * edge)), 1.0)


def get_window(window: Any, Nx: int, fftbins: bool = True) -> Tensor:
    """A window (Nx,) by its name: periodic, or symmetric unless ``fftbins``.

    Names are boxcar, hann, hamming, blackman, nuttall, blackmanharris, flattop, bartlett, cosine and tukey; ``("tukey", alpha)``,
    ``("gaussian", std)`` and ``("kaiser", beta)`` have a parameter; a number is the beta of ``kaiser``. Raises ArgumentError for others.

    >>> hg.scipy.signal.get_window("hann", 4)
    Tensor([0. , 0.5, 1. , 0.5], dtype=float32)
    """
    return hnp.asarray(samples(window, Nx, bool(fftbins), "get_window"), dtype=dtypes.default_float)


def samples(window: Any, n: Any, periodic: bool, what: str) -> np.ndarray:
    """As :func:`get_window`, in float64."""
    size = integer(n, what, "Nx")
    if size < 0:
        raise located(ArgumentError(f"{what}: a window of {size} samples"))
    if isinstance(window, (int, float)) and not isinstance(window, bool):
        window = ("kaiser", window)
    name, *rest = window if isinstance(window, tuple) and window else (window,)
    name = _ALIASES.get(name, name) if isinstance(name, str) else name
    if not isinstance(name, str) or name not in (*_COSINES, *_OTHERS):
        known = ", ".join((*_COSINES, *_OTHERS))
        raise located(ArgumentError(f"{what}: there is no window {name!r}: there are {known}"))
    parameters = [number(p, what, f"the parameter of {name}") for p in rest]
    if name in ("gaussian", "kaiser") and len(parameters) != 1 or (name != "tukey" and name not in ("gaussian", "kaiser") and parameters):
        raise located(ArgumentError(f"{what}: {name} with {len(parameters)} parameters"))
    if not size:
        return np.ones(0)
    return _sampled(name, size + 1, parameters)[:-1] if periodic and size > 1 else _sampled(name, size, parameters)


def window_of(window: Any, nperseg: int | None, extent: int, dtype: Any, what: str, default: int = 256) -> tuple[Tensor, int]:
    """A window for segments of a signal of ``extent`` elements, by name or as an array, and how many elements it has."""
    if isinstance(window, (str, tuple)):
        length = default if nperseg is None else _positive(nperseg, what)
        length = min(length, extent)
        return hnp.asarray(samples(window, length, True, what).astype(dtype)), length
    t = as_tensor(window, what)
    if t.ndim != 1 or not 0 < operator.index(t.shape[0]) <= extent or (nperseg is not None and nperseg != t.shape[0]):
        raise located(ShapeError(f"{what}: a window of shape {list(t.shape)} for segments of {nperseg or t.shape} of {extent} elements"))
    return t.astype(dtype), t.shape[0]


def _positive(n: Any, what: str) -> int:
    length = integer(n, what, "nperseg")
    if length < 1:
        raise located(ArgumentError(f"{what}: nperseg is positive, not {length}"))
    return length
