"""Matrices of coordinates."""

from __future__ import annotations

from typing import Any

import numpy as np

import hologram.numpy as hnp
from hologram.errors import ShapeError
from hologram.numpy.arguments import as_tensor
from hologram.sparse.matrix import Matrix, extents, index_array, parts_of, scipy_sparse
from hologram.sparse.products import scattered_product, sorted_product
from hologram.sparse.rows import CSR
from hologram.support.user_lines import located
from hologram.trace import tree
from hologram.trace.array_classes import known_array
from hologram.trace.tensor import Tensor

__all__ = ["BCOO"]


class BCOO(Matrix):
    """A sparse matrix (m, n) of coordinates: ``BCOO((data, indices), shape=(m, n))``, as JAX's.

    ``data`` (nse,) holds the elements at the rows and columns ``indices`` (nse, 2), in any order; duplicates add up. ``indices_sorted`` says that
    rows ascend, which makes products as fast as those of :class:`CSR`. It is a pytree, as that is. Raises ShapeError where the shapes do not fit,
    IndexOutOfRange for known indices beyond the matrix.

    >>> A = hg.sparse.BCOO(([1.0, 2.0, 3.0], [[0, 0], [1, 1], [0, 2]]), shape=(2, 3))
    >>> A @ hnp.asarray([1.0, 10.0, 100.0])
    Tensor([301.,  20.], dtype=float32)
    """

    def __init__(self, parts: tuple[Any, Any], *, shape: Any, indices_sorted: bool = False, unique_indices: bool = False) -> None:
        self.shape = extents(shape, "BCOO")
        data, indices = parts_of(parts, ("data", "indices"), "BCOO")
        self.data, places = as_tensor(data, "BCOO"), as_tensor(indices, "BCOO")
        if self.data.ndim != 1 or places.shape != (self.data.shape[0], 2):
            text = f"data of shape {list(self.data.shape)} with indices of shape {list(places.shape)}"
            raise located(ShapeError(f"BCOO: {text}: they are (nse,) and (nse, 2)"))
        self._rows = index_array(places[:, 0], "BCOO", "rows", max(self.shape[0], 1))
        self._columns = index_array(places[:, 1], "BCOO", "columns", max(self.shape[1], 1))
        self.indices_sorted, self.unique_indices = bool(indices_sorted), bool(unique_indices)

    @property
    def indices(self) -> Tensor:
        """Rows and columns (nse, 2), int32, or int64 where that is too narrow."""
        dtype = "int32" if max(self.shape) < 2**31 else "int64"
        return hnp.stack([self._rows.astype(dtype), self._columns.astype(dtype)], axis=1)

    @classmethod
    def fromdense(cls, x: Any, *, nse: int | None = None) -> BCOO:
        """The elements of a known matrix that are not 0, and zeros up to ``nse`` of them. Raises TracedValueError while tracing."""
        known = known_array(x, "BCOO.fromdense")
        if known.ndim != 2:
            raise located(ShapeError(f"BCOO.fromdense takes a matrix, not an array of shape {list(known.shape)}"))
        places = np.argwhere(known)
        values = known[tuple(places.T)]
        if nse is not None and nse < len(values):
            raise located(ShapeError(f"BCOO.fromdense: nse={nse} for {len(values)} elements that are not 0"))
        more = 0 if nse is None else nse - len(values)
        last = [[max(n - 1, 0) for n in known.shape]]
        places, values = np.concatenate([places, np.repeat(last, more, axis=0)]), np.concatenate([values, np.zeros(more, known.dtype)])
        return cls((values, places.astype(np.int64)), shape=known.shape, indices_sorted=True, unique_indices=not more)

    @classmethod
    def from_scipy_sparse(cls, matrix: Any) -> BCOO:
        """A matrix or array of ``scipy.sparse``, of any format."""
        found = matrix.tocoo()
        places = np.stack([found.row, found.col], axis=1)
        is_sorted = bool(np.all(found.row[1:] >= found.row[:-1]))
        return cls((found.data, places), shape=found.shape, indices_sorted=is_sorted)

    def to_scipy(self) -> Any:
        """The matrix as a ``scipy.sparse.coo_array``. Raises UnsupportedError without SciPy, TracedValueError while tracing."""
        rows, columns = np.asarray(self._rows).astype(np.int64), np.asarray(self._columns).astype(np.int64)
        return scipy_sparse("BCOO.to_scipy").coo_array((np.asarray(self.data), (rows, columns)), shape=self.shape)

    def todense(self) -> Tensor:
        return hnp.zeros(self.shape, dtype=self.dtype).at[self._rows, self._columns].add(self.data)

    @property
    def T(self) -> BCOO:
        return _made(self.data, self._columns, self._rows, (self.shape[::-1], False, self.unique_indices))

    def sort_indices(self) -> BCOO:
        """The matrix with its elements in the order of their rows, and columns within them."""
        order = hnp.lexsort([self._columns, self._rows])
        return _made(self.data[order], self._rows[order], self._columns[order], (self.shape, True, self.unique_indices))

    def tocsr(self) -> CSR:
        """The matrix of compressed rows; duplicates stay."""
        a = self if self.indices_sorted else self.sort_indices()
        return CSR((a.data, a._columns, a._pointers()), shape=self.shape)

    def _pointers(self) -> Tensor:
        """Where rows begin, of sorted ones."""
        return hnp.searchsorted(self._rows, hnp.arange(self.shape[0] + 1).astype(self._rows.dtype)).astype("uint32")

    def _product(self, data: Tensor, x: Tensor) -> Tensor:
        if self.indices_sorted and self.nse < 2**32:
            return sorted_product(data, self._rows, self._columns, x, self.shape[0])
        return scattered_product(data, self._rows, self._columns, x, self.shape[0])

    def with_data(self, data: Any) -> BCOO:
        return _made(data, self._rows, self._columns, (self.shape, self.indices_sorted, self.unique_indices))


def _made(data: Any, rows: Any, columns: Any, facts: tuple[Any, bool, bool]) -> BCOO:
    """A matrix of parts that fit, or of what transforms put in their place."""
    out = object.__new__(BCOO)
    out.data, out._rows, out._columns = data, rows, columns
    out.shape, out.indices_sorted, out.unique_indices = facts
    return out


tree.register(
    BCOO,
    unflatten=lambda facts, parts: _made(parts[0], parts[1], parts[2], facts),
    data_fields=("data", "_rows", "_columns"),
    meta_fields=("shape", "indices_sorted", "unique_indices"),
    keys=lambda a: [tree.FlattenedIndexKey(i) for i in range(3)],
)
