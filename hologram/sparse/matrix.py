"""What sparse matrices of all formats share: arguments, and the operators that are made of their products."""

from __future__ import annotations

from abc import ABC, abstractmethod
from importlib import import_module
from typing import Any, TypeVar

import numpy as np

import hologram.numpy as hnp
from hologram import dtypes
from hologram.errors import ArgumentError, IndexOutOfRange, ShapeError, UnsupportedError
from hologram.numpy.arguments import as_tensor, wrap
from hologram.support.user_lines import located
from hologram.trace.array_classes import known_array
from hologram.trace.checks import integer, items
from hologram.trace.operators import promoted
from hologram.trace.tensor import Tensor

__all__ = ["Matrix", "extents", "index_array", "parts_of", "scipy_sparse"]

M = TypeVar("M", bound="Matrix")


def extents(shape: Any, what: str) -> tuple[int, int]:
    """Two extents. Raises ShapeError for others."""
    given = [integer(n, what, "an extent") for n in items(shape, what, "extents")]
    if len(given) != 2 or min(given) < 0:
        raise located(ShapeError(f"{what}: a matrix has two extents, not {given}"))
    return given[0], given[1]


def parts_of(parts: Any, names: tuple[str, ...], what: str) -> list[Any]:
    """The arrays that a matrix is made of. Raises ArgumentError for others than these."""
    given = items(parts, what, "arrays")
    if len(given) != len(names):
        raise located(ArgumentError(f"{what} is made of ({', '.join(names)}), not of {len(given)} parts"))
    return given


def index_array(x: Any, what: str, role: str, below: int) -> Any:
    """Indices of one axis, unsigned. Raises IndexOutOfRange for known ones that are negative or not below a bound."""
    if isinstance(x, Tensor) and not is_known(x):
        if x.dtype.kind not in "iu":
            raise located(ArgumentError(f"{what}: {role} are integers, not {x.dtype}"))
        return x if x.dtype.kind == "u" else x.astype("uint32" if below < 2**32 else "uint64")
    known = known_array(x, what)
    if known.dtype.kind not in "iu" and known.size:
        raise located(ArgumentError(f"{what}: {role} are integers, not {known.dtype}"))
    if known.size and (int(known.min()) < 0 or int(known.max()) >= below):
        wrong = known.min() if known.min() < 0 else known.max()
        raise located(IndexOutOfRange(f"{what}: {role} are from 0 to {below - 1}, not {wrong}"))
    return hnp.asarray(known.astype(np.uint32 if below < 2**32 else np.uint64))


def is_known(x: Tensor) -> bool:
    """Whether the values are there: not while tracing."""
    try:
        np.asarray(x)
    except TypeError:
        return False
    return True


def scipy_sparse(what: str) -> Any:
    """SciPy's module. Raises UnsupportedError where it is not installed."""
    try:
        return import_module("scipy.sparse")
    except ImportError:
        raise located(UnsupportedError(f"{what} asks for SciPy, which is not installed: pip install scipy")) from None


class Matrix(ABC):
    """A sparse matrix: operators and attributes that all formats have."""

    __array_ufunc__ = None  # so that NumPy's arrays leave products to __rmatmul__
    ndim = 2
    data: Any
    shape: tuple[int, int]

    @property
    def dtype(self) -> Any:
        """Element type."""
        return self.data.dtype

    @property
    def nse(self) -> int:
        """How many elements are stored, zeros and duplicates included."""
        return int(self.data.shape[0])

    nnz = nse  # SciPy's name

    @abstractmethod
    def _product(self, data: Tensor, x: Tensor) -> Tensor:
        """With ``x`` (n,) or (n, k), of the type of ``data``, which stands for the matrix's own."""

    @abstractmethod
    def with_data(self: M, data: Any) -> M:
        """The matrix with other values (nse,) at the same places: derivatives by ``data`` go through it."""

    @property
    @abstractmethod
    def T(self) -> Any:
        """The transpose."""

    @abstractmethod
    def todense(self) -> Tensor:
        """The matrix (m, n) as an array; duplicates add up."""

    def __matmul__(self, other: Any) -> Tensor:
        if isinstance(other, Matrix):
            raise located(UnsupportedError("a product of two sparse matrices is not there: use todense for one of them"))
        what = f"{type(self).__name__} @"
        x = hnp.asarray(other) if isinstance(other, (Tensor, np.ndarray)) else as_tensor(other, what)  # which native code reads
        if x.ndim not in (1, 2) or x.shape[0] != self.shape[1]:
            raise located(ShapeError(f"{what}: a matrix of shape {list(self.shape)} and an array of shape {list(x.shape)}"))
        if x.dtype == self.dtype:
            return self._product(self.data, x)
        nodes, _, _ = promoted(what, (self.data, x))
        return self._product(wrap(nodes[0]), wrap(nodes[1]))

    def __rmatmul__(self, other: Any) -> Tensor:
        what = f"@ {type(self).__name__}"
        x = as_tensor(other, what)
        if x.ndim not in (1, 2) or x.shape[-1] != self.shape[0]:
            raise located(ShapeError(f"{what}: an array of shape {list(x.shape)} and a matrix of shape {list(self.shape)}"))
        found = self.T @ (x if x.ndim == 1 else x.T)
        return found if x.ndim == 1 else found.T

    def __mul__(self: M, other: Any) -> M:
        if isinstance(other, Matrix) or np.ndim(other) != 0:
            raise located(UnsupportedError(f"{type(self).__name__} *: only a scalar multiplies elements; use @ for products"))
        return self.with_data(self.data * other)

    __rmul__ = __mul__

    def __neg__(self: M) -> M:
        return self.with_data(-self.data)

    def astype(self: M, dtype: Any) -> M:
        """The matrix in another element type."""
        return self.with_data(self.data.astype(dtype))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({dtypes.of(self.dtype).name}{list(self.shape)}, nse={self.nse})"
