"""Tables of twiddle factors, exact to the last bit or so of the type that they are rounded to."""

from __future__ import annotations

from typing import Any

import numpy as np

from hologram.graph.library.fft.sizes import convolution_length

TYPES = {"f32": np.float32, "f64": np.float64}


def roots(k: Any, n: int) -> np.ndarray:
    """exp(-2πi k/n) for integers ``k``, in double precision, from angles in the first octant."""
    octant, rest = np.divmod(8 * (np.asarray(k, np.int64) % n), n)
    rest = np.where(octant % 2, n - rest, rest)
    angle = (2 * np.pi) * (rest / (8.0 * n))
    c, s = np.cos(angle), np.sin(angle)
    swapped = (octant + 1) & 2 != 0  # in the octants 1, 2, 5 and 6
    real, imaginary = np.where(swapped, s, c), np.where(swapped, c, s)
    return np.where((octant >= 2) & (octant <= 5), -real, real) + 1j * np.where(octant < 4, -imaginary, imaginary)


def _all_roots(n: int) -> np.ndarray:
    """All n-th roots, from those of one octant where 8 divides n."""
    if n % 8:
        return roots(np.arange(n), n)
    first = roots(np.arange(n // 8 + 1), n)
    quarter = np.empty(n // 4 + 1, complex)
    quarter[: n // 8 + 1] = first
    quarter[n // 8 :] = (-first.imag - 1j * first.real)[::-1]
    out = np.empty(n, complex)
    for q, turn in enumerate((1, -1j, -1, 1j)):
        part = quarter[:-1]
        out[q * n // 4 : (q + 1) * n // 4] = part if turn == 1 else -part if turn == -1 else _turned(part, turn)
    return out


def _turned(x: np.ndarray, by: complex) -> np.ndarray:
    return x.imag - 1j * x.real if by == -1j else -x.imag + 1j * x.real


def planar(values: np.ndarray, kind: str) -> np.ndarray:
    """Real parts, then imaginary ones, along the last axis."""
    return np.concatenate([values.real, values.imag], -1).astype(TYPES[kind]).ravel()


def of_pass(r: int, m: int, kind: str) -> np.ndarray:
    """The factors of a pass: for each block those of all outputs but the first."""
    found = _all_roots(r * m)[np.outer(np.arange(m), np.arange(1, r))]
    return found.astype(_complex(kind)).view(TYPES[kind]).ravel()


def of_first(r: int, m: int, kind: str) -> np.ndarray:
    """The factors of a first pass: for each output but the first those of all blocks."""
    return planar(_all_roots(r * m)[np.outer(np.arange(1, r), np.arange(m))], kind)


def of_lanes(n: int, rows: int, lanes: int, kind: str) -> np.ndarray:
    """The factors between the halves of a transform, of the lanes of a block."""
    return planar(roots(np.outer(np.arange(rows), np.arange(lanes)), n), kind)


def of_blocks(n: int, rows: int, blocks: int, width: int, limit: int, kind: str) -> np.ndarray:
    """The same, of the blocks' first lanes."""
    starts = np.minimum(np.arange(blocks) * width, limit)
    return roots(np.outer(starts, np.arange(rows)), n).astype(_complex(kind)).view(TYPES[kind]).ravel()


def of_mirror(half: int, kind: str, post: bool, scale: float) -> np.ndarray:
    """g and v of :func:`hologram.backends.llvm.fft.kernels._mirror`."""
    w = roots(np.arange(half), 2 * half)
    v = -0.5j * w * scale if post else 1j * np.conj(w)
    out = planar(v, kind)
    out[0] = 0.5 * scale if post else 1.0
    return out


def of_convolution(n: int, kind: str, scale: float, which: int) -> np.ndarray:
    """Factors of a transform as a convolution: 0: those of its elements, 1: of the convolution's transform, 2: of the results."""
    m, k = convolution_length(n), np.arange(n, dtype=np.int64)
    chirp = roots(k * k % (2 * n), 2 * n)
    if which != 1:
        return planar(chirp * scale if which == 2 else chirp, kind)
    around = np.zeros(m, complex)
    around[:n] = np.conj(chirp)
    around[m - n + 1 :] = np.conj(chirp[1:])[::-1]
    return planar(np.fft.fft(around) / m, kind)


def of_scale(scale: float, kind: str) -> np.ndarray:
    """One number."""
    return np.array([scale], TYPES[kind])


def _complex(kind: str) -> Any:
    return np.complex64 if kind == "f32" else np.complex128
