"""Matrices of compressed rows."""

from __future__ import annotations

from typing import Any

import numpy as np

import hologram.numpy as hnp
from hologram.errors import IndexOutOfRange, ShapeError
from hologram.numpy.arguments import as_tensor
from hologram.sparse.matrix import Matrix, extents, index_array, is_known, parts_of, scipy_sparse
from hologram.sparse.products import row_product, segments_of
from hologram.support.user_lines import located
from hologram.trace import tree
from hologram.trace.array_classes import known_array
from hologram.trace.tensor import Tensor

__all__ = ["CSR"]


class CSR(Matrix):
    """A sparse matrix (m, n) of compressed rows: ``CSR((data, indices, indptr), shape=(m, n))``, as SciPy's ``csr_array``.

    ``data`` and ``indices``, the columns, hold the elements of row i from ``indptr[i]`` to ``indptr[i + 1]``. It is a pytree: an argument and a
    result of jitted functions. ``A @ x`` and ``x @ A`` take vectors and matrices; gradients by the elements are those of ``A.with_data(data)``.
    Raises ShapeError where the shapes do not fit, IndexOutOfRange for known columns beyond the matrix, and for known pointers that do not begin with
    0, fall, or do not end with the number of elements.

    >>> A = hg.sparse.CSR(([1.0, 2.0, 3.0], [0, 2, 1], [0, 2, 3]), shape=(2, 3))
    >>> A @ hnp.asarray([1.0, 10.0, 100.0])
    Tensor([201.,  30.], dtype=float32)
    """

    def __init__(self, parts: tuple[Any, Any, Any], *, shape: Any) -> None:
        self.shape = extents(shape, "CSR")
        data, indices, indptr = parts_of(parts, ("data", "indices", "indptr"), "CSR")
        self.data = as_tensor(data, "CSR")
        self._columns = index_array(indices, "CSR", "indices", max(self.shape[1], 1))
        self._pointers = index_array(indptr, "CSR", "pointers", self.data.size + 1)
        self._transpose: CSR | None = None
        if self.data.ndim != 1 or self._columns.shape != self.data.shape or self._pointers.shape != (self.shape[0] + 1,):
            parts_text = f"data {list(self.data.shape)}, indices {list(self._columns.shape)} and indptr {list(self._pointers.shape)}"
            raise located(ShapeError(f"CSR: {parts_text} are not those of a matrix of shape {list(self.shape)}"))
        if is_known(self._pointers):
            _check_rows(np.asarray(self._pointers).astype(np.int64), self.data.size)

    @property
    def indices(self) -> Tensor:
        """Columns (nse,) of the elements, int32, or int64 where that is too narrow."""
        return self._columns.astype("int32" if self.shape[1] < 2**31 else "int64")

    @property
    def indptr(self) -> Tensor:
        """Where rows begin, and the last one ends: (m + 1,)."""
        return self._pointers.astype("int32" if self.nse < 2**31 else "int64")

    @classmethod
    def fromdense(cls, x: Any) -> CSR:
        """The elements of a known matrix that are not 0. Raises TracedValueError while tracing."""
        known = known_array(x, "CSR.fromdense")
        if known.ndim != 2:
            raise located(ShapeError(f"CSR.fromdense takes a matrix, not an array of shape {list(known.shape)}"))
        rows, columns = np.nonzero(known)
        pointers = np.searchsorted(rows, np.arange(known.shape[0] + 1))
        return cls((known[rows, columns], columns, pointers), shape=known.shape)

    @classmethod
    def from_scipy(cls, matrix: Any) -> CSR:
        """A matrix or array of ``scipy.sparse``, of any format."""
        found = matrix.tocsr()
        return cls((found.data, found.indices, found.indptr), shape=found.shape)

    def to_scipy(self) -> Any:
        """The matrix as a ``scipy.sparse.csr_array``. Raises UnsupportedError without SciPy, TracedValueError while tracing."""
        parts = (np.asarray(self.data), np.asarray(self.indices), np.asarray(self.indptr))
        return scipy_sparse("CSR.to_scipy").csr_array(parts, shape=self.shape)

    def todense(self) -> Tensor:
        rows = segments_of(self._pointers, self.nse)
        return hnp.zeros(self.shape, dtype=self.dtype).at[rows, self._columns].add(self.data)

    @property
    def T(self) -> CSR:
        """The transpose, of compressed rows too: sorted once, and kept by the matrix, if its values are known."""
        if self._transpose is not None:
            return self._transpose
        rows = segments_of(self._pointers, self.nse)
        order = hnp.argsort(self._columns, stable=True)
        columns = rows[order].astype(self._columns.dtype)
        pointers = hnp.searchsorted(self._columns[order], hnp.arange(self.shape[1] + 1).astype(self._columns.dtype))
        made = _made(self.data[order], columns, pointers.astype(self._pointers.dtype), self.shape[::-1])
        try:
            for part in (made.data, columns, pointers):
                np.asarray(part)
        except TypeError:  # while tracing
            return made
        self._transpose, made._transpose = made, self
        return made

    def _product(self, data: Tensor, x: Tensor) -> Tensor:
        return row_product(data, self._columns, self._pointers, x)

    def with_data(self, data: Any) -> CSR:
        return _made(data, self._columns, self._pointers, self.shape)


def _made(data: Any, columns: Any, pointers: Any, shape: Any) -> CSR:
    """A matrix of parts that fit, or of what transforms put in their place."""
    out = object.__new__(CSR)
    out.data, out._columns, out._pointers, out.shape, out._transpose = data, columns, pointers, shape, None
    return out


tree.register(
    CSR,
    unflatten=lambda facts, parts: _made(parts[0], parts[1], parts[2], facts[0]),
    data_fields=("data", "_columns", "_pointers"),
    meta_fields=("shape",),
    keys=lambda a: [tree.FlattenedIndexKey(i) for i in range(3)],
)


def _check_rows(pointers: np.ndarray, count: int) -> None:
    """Raises IndexOutOfRange for pointers whose rows do not hold each element once."""
    if pointers[0] != 0 or pointers[-1] != count or (np.diff(pointers) < 0).any():
        shown = pointers.tolist() if pointers.size <= 8 else [*pointers[:4].tolist(), "…", *pointers[-2:].tolist()]
        raise located(IndexOutOfRange(f"CSR: pointers begin with 0, do not fall and end with {count}, the number of elements, unlike {shown}"))
