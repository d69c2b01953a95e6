"""Matrices of a known structure: of diagonals that are constant, of polynomials, of tests.

Those made of vectors take stacks of them in the last axis. Those of known integers are computed on the host.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import hologram.numpy as hnp
from hologram import dtypes
from hologram.errors import ArgumentError, ShapeError
from hologram.numpy.arguments import alike, as_tensor, element_type
from hologram.scipy.linalg.arguments import inexact, vector
from hologram.support.user_lines import located
from hologram.trace.checks import choice, integer
from hologram.trace.operators import wrap
from hologram.trace.tensor import Tensor

__all__ = [
    "block_diag", "circulant", "companion", "convolution_matrix", "dft", "fiedler", "fiedler_companion", "hadamard", "hankel", "helmert", "hilbert",
    "invhilbert", "invpascal", "leslie", "pascal", "toeplitz",
]  # fmt: skip


def _size(n: Any, what: str, least: int = 0) -> int:
    size = integer(n, what, "n")
    if size < least:
        raise located(ArgumentError(f"{what}: n is at least {least}, not {size}"))
    return size


def _vectors(what: str, *args: Any) -> list[Tensor]:
    """Arrays of one type, with an axis at least."""
    return [t if t.ndim else t[None] for t in map(wrap, alike(args, what))]


def block_diag(*arrs: Any) -> Tensor:
    """The matrix that has matrices along its diagonal and zeros elsewhere; vectors and scalars are rows. None gives an empty row.

    Raises ShapeError for arrays of more than two axes.

    >>> hg.scipy.linalg.block_diag([[1, 2]], 3)
    Tensor([[1, 2, 0],
            [0, 0, 3]], dtype=int64)
    """
    blocks = [hnp.atleast_2d(wrap(x)) for x in alike(arrs, "block_diag")] if arrs else [hnp.zeros((1, 0))]
    if wrong := [b for b in blocks if b.ndim > 2]:
        raise located(ShapeError(f"block_diag takes matrices, not an array of shape {list(wrong[0].shape)}"))
    total = sum(b.shape[1] for b in blocks)
    rows, before = [], 0
    for b in blocks:
        rows.append(hnp.pad(b, ((0, 0), (before, total - before - b.shape[1]))))
        before += b.shape[1]
    return hnp.concat(rows, axis=0)


def toeplitz(c: Any, r: Any = None) -> Tensor:
    """Toeplitz matrices (…, m, n): the first column is ``c`` (…, m), the first row ``r`` (…, n), whose element 0 is not read; each diagonal is
    constant.

    By default ``r`` is the conjugate of ``c``. Stacks broadcast.

    >>> hg.scipy.linalg.toeplitz([1, 2, 3], [1, 4])
    Tensor([[1, 4],
            [2, 1],
            [3, 2]], dtype=int64)
    """
    column, row = _vectors("toeplitz", c, hnp.conj(as_tensor(c, "toeplitz")) if r is None else r)
    m, n = column.shape[-1], row.shape[-1]
    stack = hnp.broadcast_shapes(column.shape[:-1], row.shape[:-1])
    column, row = hnp.broadcast_to(column, (*stack, m)), hnp.broadcast_to(row, (*stack, n))
    diagonals = hnp.concat([hnp.flip(row[..., 1:], axis=-1), column], axis=-1)  # from the upper right corner to the lower left one
    return diagonals[..., np.arange(m)[:, None] - np.arange(n) + max(n - 1, 0)]


def hankel(c: Any, r: Any = None) -> Tensor:
    """Hankel matrix (m, n): the first column is ``c``, the last row ``r``, whose element 0 is not read; each antidiagonal is constant. Zeros without
    ``r``.

    >>> hg.scipy.linalg.hankel([1, 2, 3])
    Tensor([[1, 2, 3],
            [2, 3, 0],
            [3, 0, 0]], dtype=int64)
    """
    column, row = _vectors("hankel", c, hnp.zeros_like(as_tensor(c, "hankel")) if r is None else r)
    stack = hnp.broadcast_shapes(column.shape[:-1], row.shape[:-1])
    m, n = column.shape[-1], row.shape[-1]
    column, row = hnp.broadcast_to(column, (*stack, m)), hnp.broadcast_to(row, (*stack, n))
    return hnp.concat([column, row[..., 1:]], axis=-1)[..., np.arange(m)[:, None] + np.arange(n)]


def circulant(c: Any) -> Tensor:
    """Circulant matrices (…, n, n): the first column is ``c`` (…, n), each further one the last one moved down by one, around the end.

    >>> hg.scipy.linalg.circulant([1, 2, 3])
    Tensor([[1, 3, 2],
            [2, 1, 3],
            [3, 2, 1]], dtype=int64)
    """
    (column,) = _vectors("circulant", c)
    n = column.shape[-1]
    return column[..., (np.arange(n)[:, None] - np.arange(n)) % max(n, 1)]


def companion(a: Any) -> Tensor:
    """Companion matrices (…, n - 1, n - 1) of polynomials of coefficients ``a`` (…, n), the highest one first: their eigenvalues are the zeros.

    Raises ShapeError for fewer than two coefficients.

    >>> hg.scipy.linalg.companion([1.0, -3.0, 2.0])
    Tensor([[ 3., -2.],
            [ 1.,  0.]], dtype=float32)
    """
    (p,) = _vectors("companion", inexact(a, "companion"))
    if p.shape[-1] < 2:
        raise located(ShapeError(f"companion: a polynomial of {p.shape[-1]} coefficients: give two at least"))
    n = p.shape[-1] - 1
    first = (-p[..., 1:] / p[..., :1])[..., None, :]
    below = hnp.broadcast_to(hnp.eye(n - 1, n, dtype=p.dtype), (*p.shape[:-1], n - 1, n))
    return hnp.concat([first, below], axis=-2)


def convolution_matrix(a: Any, n: int, mode: str = "full") -> Tensor:
    """The Toeplitz matrix whose product with a vector of ``n`` elements is its convolution with ``a``, in a mode of :func:`hologram.numpy.convolve`.

    Raises ArgumentError for an ``n`` that is not positive, ShapeError for an empty ``a`` or one without axes.

    >>> hg.scipy.linalg.convolution_matrix([1, 2], 2)
    Tensor([[1, 0],
            [2, 1],
            [0, 2]], dtype=int64)
    """
    size, kind = _size(n, "convolution_matrix", 1), choice(mode, "convolution_matrix", "mode", ("full", "same", "valid"))
    t = as_tensor(a, "convolution_matrix")
    m = t.shape[-1] if t.ndim else 0
    if not m:
        raise located(ShapeError("convolution_matrix: an empty array, or a scalar"))
    widths = [(0, 0)] * (t.ndim - 1)
    whole = toeplitz(hnp.pad(t, (*widths, (0, size - 1))), hnp.pad(t[..., :1], (*widths, (0, size - 1))))
    extent = {"full": m + size - 1, "same": max(m, size), "valid": max(m, size) - min(m, size) + 1}[kind]
    start = {"full": 0, "same": (min(m, size) - 1) // 2, "valid": min(m, size) - 1}[kind]
    return whole[..., start : start + extent, :]


def dft(n: int, scale: str | None = None) -> Tensor:
    """The matrix (n, n) of the discrete Fourier transform; ``scale`` is None, "sqrtn" (divided by √n) or "n" (divided by n).

    >>> hnp.round(hnp.real(hg.scipy.linalg.dft(2)))
    Tensor([[ 1.,  1.],
            [ 1., -1.]], dtype=float32)
    """
    size = _size(n, "dft")
    kind = None if scale is None else choice(scale, "dft", "scale", ("sqrtn", "n"))
    k = np.arange(size)
    values = np.exp(-2j * np.pi * (np.outer(k, k) % max(size, 1)) / max(size, 1))
    divisor = {None: 1.0, "sqrtn": math.sqrt(max(size, 1)), "n": max(size, 1)}[kind]
    return hnp.asarray(values / divisor, dtype=dtypes.default_complex)


def fiedler(a: Any) -> Tensor:
    """Fiedler matrices (…, n, n): the distances ``|a[i] - a[j]|`` of the elements of ``a`` (…, n).

    >>> hg.scipy.linalg.fiedler([1, 4])
    Tensor([[0, 3],
            [3, 0]], dtype=int64)
    """
    (t,) = _vectors("fiedler", a)
    return hnp.abs(t[..., :, None] - t[..., None, :])


def fiedler_companion(a: Any) -> Tensor:
    """Fiedler's companion matrix (n - 1, n - 1), of five diagonals: its eigenvalues are the zeros of the polynomial ``a`` (n,), highest coefficient
    first.

    >>> hg.scipy.linalg.fiedler_companion([1.0, -3.0, 2.0])
    Tensor([[ 3., -2.],
            [ 1.,  0.]], dtype=float32)
    """
    p = vector(inexact(a, "fiedler_companion"), "fiedler_companion")
    if p.shape[0] < 2:
        return hnp.zeros((0, 0), dtype=p.dtype)
    n = p.shape[0] - 1
    monic = -p[1:] / p[0]
    if n == 1:
        return monic[:, None]
    coefficient = hnp.zeros((n, n), dtype=p.dtype)
    i, j = np.indices((n, n))
    for where, value in _fiedler_places(i, j, n):
        source = monic[value] if isinstance(value, np.ndarray) else hnp.full((n, n), value, dtype=p.dtype)
        coefficient = hnp.where(where, source, coefficient)
    return coefficient


def _fiedler_places(i: np.ndarray, j: np.ndarray, n: int) -> list[tuple[np.ndarray, Any]]:
    """Which elements have which coefficients (an index for each element), or ones."""
    last = n - 1
    return [
        ((i == 0) & (j == 0), np.zeros_like(i)),
        ((j - i == 1) & (i % 2 == 0), np.clip(j, 0, last)),
        ((j - i == 2) & (i % 2 == 0), 1.0),
        ((i - j == 1) & (j % 2 == 1), np.clip(i, 0, last)),
        ((i - j == 2) & (j % 2 == 1), 1.0),
        ((i == 1) & (j == 0), 1.0),
    ]


def hadamard(n: int, dtype: Any = None) -> Tensor:
    """Hadamard matrix (n, n) of ones and minus ones, in Sylvester's construction; int64 by default. Raises ArgumentError unless ``n`` is a power of
    2.

    >>> hg.scipy.linalg.hadamard(2)
    Tensor([[ 1,  1],
            [ 1, -1]], dtype=int64)
    """
    size = _size(n, "hadamard", 1)
    if size & (size - 1):
        raise located(ArgumentError(f"hadamard: n is a power of 2, not {size}"))
    out = np.ones((1, 1), np.int64)
    while len(out) < size:
        out = np.block([[out, out], [out, -out]])
    return hnp.asarray(out, dtype=None if dtype is None else element_type(dtype))


def helmert(n: int, full: bool = False) -> Tensor:
    """Helmert matrix (n - 1, n), whose rows are orthonormal and sum to 0; with ``full`` (n, n), the first row being constant.

    >>> hg.scipy.linalg.helmert(2)
    Tensor([[ 0.70710677, -0.70710677]], dtype=float32)
    """
    size = _size(n, "helmert", 1)
    k = np.arange(size, dtype=np.float64)[:, None]
    out = np.tril(np.ones((size, size)), -1) - np.diag(k[:, 0])
    out[0] = 1.0
    norm = np.sqrt(np.where(k == 0, size, k * (k + 1)))
    return hnp.asarray((out / norm)[0 if full else 1 :], dtype=dtypes.default_float)


def hilbert(n: int) -> Tensor:
    """Hilbert matrix (n, n): ``1 / (i + j + 1)``, in the default float.

    >>> hg.scipy.linalg.hilbert(2)
    Tensor([[1.        , 0.5       ],
            [0.5       , 0.33333334]], dtype=float32)
    """
    k = np.arange(_size(n, "hilbert"))
    return hnp.asarray(1.0 / (k[:, None] + k + 1), dtype=dtypes.default_float)


def _integers(n: int, element: Callable[[int, int], int], exact: bool, what: str) -> Tensor:
    """A matrix of integers, which Python computes: int64 if ``exact``, else the default float."""
    values = [[element(i, j) for j in range(n)] for i in range(n)]
    if exact and any(abs(v) >= 2**63 for row in values for v in row):
        raise located(ArgumentError(f"{what}: elements for n = {n} are beyond int64: leave out exact"))
    return hnp.asarray(np.array(values, np.int64 if exact else np.float64).reshape(n, n), dtype=None if exact else dtypes.default_float)


def invhilbert(n: int, exact: bool = False) -> Tensor:
    """Inverse of the Hilbert matrix (n, n): the default float, or int64 if ``exact``. Raises ArgumentError where that is too narrow.

    >>> hg.scipy.linalg.invhilbert(2)
    Tensor([[ 4., -6.],
            [-6., 12.]], dtype=float32)
    """
    size = _size(n, "invhilbert")

    def element(i: int, j: int) -> int:
        whole = math.comb(size + i, size - j - 1) * math.comb(size + j, size - i - 1) * math.comb(i + j, i) ** 2
        return (-1) ** (i + j) * (i + j + 1) * whole

    return _integers(size, element, exact, "invhilbert")


_KINDS = ("symmetric", "lower", "upper")


def pascal(n: int, kind: str = "symmetric", exact: bool = False) -> Tensor:
    """Pascal matrix (n, n) of binomial coefficients, ``symmetric``, ``lower`` or ``upper``: the default float, or int64 if ``exact``.

    >>> hg.scipy.linalg.pascal(3)
    Tensor([[1., 1., 1.],
            [1., 2., 3.],
            [1., 3., 6.]], dtype=float32)
    """
    form = choice(kind, "pascal", "kind", _KINDS)
    elements = {"symmetric": lambda i, j: math.comb(i + j, i), "lower": math.comb, "upper": lambda i, j: math.comb(j, i)}
    return _integers(_size(n, "pascal"), elements[form], exact, "pascal")


def invpascal(n: int, kind: str = "symmetric", exact: bool = False) -> Tensor:
    """Inverse of the Pascal matrix (n, n) of a kind: the default float, or int64 if ``exact``.

    >>> hg.scipy.linalg.invpascal(2)
    Tensor([[ 2., -1.],
            [-1.,  1.]], dtype=float32)
    """
    size, form = _size(n, "invpascal"), choice(kind, "invpascal", "kind", _KINDS)

    def element(i: int, j: int) -> int:
        sign = (-1) ** (i + j)
        if form != "symmetric":
            return sign * (math.comb(i, j) if form == "lower" else math.comb(j, i))
        return sign * sum(math.comb(k, i) * math.comb(k, j) for k in range(max(i, j), size))

    return _integers(size, element, exact, "invpascal")


def leslie(f: Any, s: Any) -> Tensor:
    """Leslie matrices (…, n, n) of a population: the first row is ``f`` (…, n), below the diagonal stands ``s`` (…, n - 1).

    Raises ShapeError where the extents do not fit.

    >>> hg.scipy.linalg.leslie([0.1, 2.0], [0.5])
    Tensor([[0.1, 2. ],
            [0.5, 0. ]], dtype=float32)
    """
    births, survival = _vectors("leslie", f, s)
    if not survival.shape[-1] or births.shape[-1] != survival.shape[-1] + 1:
        raise located(
            ShapeError(
                f"leslie: {births.shape[-1]} coefficients of births for {survival.shape[-1]} of survival: one more is asked for, and one of survival"
            )
        )
    n = births.shape[-1]
    below = hnp.pad(survival[..., :, None] * hnp.eye(n - 1, dtype=survival.dtype), (*[(0, 0)] * (survival.ndim - 1), (0, 0), (0, 1)))
    stack = hnp.broadcast_shapes(births.shape[:-1], survival.shape[:-1])
    return hnp.concat([hnp.broadcast_to(births, (*stack, n))[..., None, :], hnp.broadcast_to(below, (*stack, n - 1, n))], axis=-2)
