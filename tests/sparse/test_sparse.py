"""Sparse matrices beside dense ones and SciPy's: products, transposes, derivatives, types, errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import ArgumentError, HologramError, IndexOutOfRange, ShapeError, TracedValueError, UnsupportedError
from hologram.sparse import BCOO, CSR, products

rng = np.random.default_rng(5)
D = rng.standard_normal((6, 5)) * (rng.random((6, 5)) < 0.4)
X, Y, Z = rng.standard_normal(5), rng.standard_normal(6), rng.standard_normal((5, 3))
MATRICES: dict[str, Callable[[], Any]] = {
    "csr": lambda: CSR.fromdense(D),
    "csr_transposed": lambda: CSR.fromdense(D.T).T,
    "bcoo": lambda: BCOO.fromdense(D),
    "bcoo_unsorted": lambda: BCOO.fromdense(D.T).T,
    "bcoo_sorted": lambda: BCOO.fromdense(D.T).T.sort_indices(),
    "bcoo_to_csr": lambda: BCOO.fromdense(D.T).T.tocsr(),
}


def close(got: Any, want: Any) -> None:
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", MATRICES)
def test_products_and_transposes(name: str) -> None:
    a = MATRICES[name]()
    close(a @ X, D @ X)
    close(a @ Z, D @ Z)
    for y in (Y, hnp.asarray(Y), Y[None]):
        close(y @ a, np.asarray(y) @ D)
    close(a.T @ Y, D.T @ Y)
    close(a.T.T @ X, D @ X)
    close(a.todense(), D)
    close(-2 * a.T @ Y, -2 * D.T @ Y)
    close(hg.jit(lambda m, x: (m @ x, m.T @ (m @ x), m * 2))(a, X)[1], D.T @ (D @ X))
    assert isinstance(hg.jit(lambda m: m * 2)(a), type(a)) and a.shape == (6, 5) and a.nse == np.count_nonzero(D) == a.nnz


@pytest.mark.parametrize("name", MATRICES)
def test_derivatives_and_stacks(name: str) -> None:
    a = MATRICES[name]()
    loss = hg.jit(hg.grad(lambda d, x: hnp.sum((a.with_data(d) @ x) ** 2), argnums=(0, 1)))
    by_data, by_x = loss(a.data, X)
    close(by_x, 2 * D.T @ (D @ X))
    close(a.with_data(by_data).todense(), np.where(D != 0, 2 * np.outer(D @ X, X), 0))
    close(hg.jvp(lambda x: a @ x, (Z,), (2 * Z,))[1], 2 * D @ Z)
    close(hg.vmap(lambda x: a @ x)(Z.T), (D @ Z).T)
    close(hg.hessian(lambda x: hnp.sum((a @ x) ** 2))(X), 2 * D.T @ D)


def test_element_types() -> None:
    a = CSR.fromdense(D)
    single = a.astype("float32")
    assert (single @ X.astype(np.float32)).dtype == np.float32 and (single @ X).dtype == np.float64
    assert (a @ (X * 1j)).dtype == np.complex128 and (a @ [1, 2, 3, 4, 5]).dtype == np.float64
    assert a.indices.dtype == a.indptr.dtype == np.int32 and repr(single) == f"CSR(float32[6, 5], nse={a.nse})"
    close(CSR.fromdense(np.array([[0, 2], [3, 0]])) @ np.array([1, 10]), [20, 3])


def test_transposes_are_kept() -> None:
    a = CSR.fromdense(D)
    assert a.T is a.T and a.T.T is a
    assert hg.jit(lambda m: m.T @ Y)(CSR.fromdense(D)).shape == (5,)


@settings(max_examples=8)
@given(st.integers(0, 6), st.integers(0, 6), st.integers(0, 20), st.booleans(), st.integers(0, 10**6))
def test_coordinates_in_any_order_and_twice(m: int, n: int, count: int, several: bool, seed: int) -> None:
    r = np.random.default_rng(seed)
    count = count if m and n else 0
    rows, columns, data = r.integers(0, max(m, 1), count), r.integers(0, max(n, 1), count), r.integers(-9, 9, count).astype(np.float64)
    dense = np.zeros((m, n))
    np.add.at(dense, (rows, columns), data)
    a = BCOO((data, np.stack([rows, columns], axis=1)), shape=(m, n))
    x = r.integers(-9, 9, (n, 2) if several else n).astype(np.float64)
    for matrix in (a, a.tocsr(), a.sort_indices(), a.tocsr().T.T):
        close(matrix @ x, dense @ x)
        close(matrix.T.todense(), dense.T)


def test_scipys_matrices_go_in_and_out() -> None:
    sparse = pytest.importorskip("scipy.sparse", reason="SciPy, with which matrices are exchanged, is not installed")
    for found in (sparse.csr_array(D), sparse.coo_array(D), sparse.csc_matrix(D), sparse.lil_array(D)):
        for a in (CSR.from_scipy(found), BCOO.from_scipy_sparse(found)):
            close(a @ X, D @ X)
            close(a.to_scipy().toarray(), D)
    assert BCOO.from_scipy_sparse(sparse.csr_array(D)).indices_sorted


def test_padded_elements_count_for_nothing() -> None:
    a = BCOO.fromdense(D, nse=20)
    assert a.nse == 20 and not a.unique_indices
    close(a @ X, D @ X)


A = CSR.fromdense(D)
WRONG: list[tuple[Callable[[], Any], type[HologramError], str]] = [
    (lambda: A @ Y, ShapeError, r"\[6, 5\] and an array of shape \[6\]"),
    (lambda: X @ A, ShapeError, r"\[5\] and a matrix"),
    (lambda: A @ A, UnsupportedError, "two sparse"),
    (lambda: A * Y, UnsupportedError, "scalar"),
    (lambda: CSR(([1.0], [7], [0, 1]), shape=(1, 3)), IndexOutOfRange, "0 to 2, not 7"),
    (lambda: CSR(([1.0], [-1], [0, 1]), shape=(1, 3)), IndexOutOfRange, "not -1"),
    *[
        (lambda p=p: CSR(([1.0, 2.0], [0, 1], p), shape=(2, 3)), IndexOutOfRange, "begin with 0, do not fall and end with 2")
        for p in ([0, 2, 1], [1, 1, 2], [0, 1, 1], [0, 2, 0])
    ],
    (lambda: CSR(([1.0], [0], [0]), shape=(1, 3)), ShapeError, "indptr"),
    (lambda: CSR(([1.0], [0.5], [0, 1]), shape=(1, 3)), ArgumentError, "integers"),
    (lambda: CSR(1, shape=(1, 3)), ArgumentError, "sequence"),
    (lambda: CSR(([1.0], [0]), shape=(1, 3)), ArgumentError, "data, indices, indptr"),
    (lambda: CSR.fromdense(X), ShapeError, "takes a matrix"),
    (lambda: BCOO(([1.0], [0]), shape=(1, 1)), ShapeError, "nse, 2"),
    (lambda: BCOO(([1.0], [[0, 3]]), shape=(1, 3)), IndexOutOfRange, "columns"),
    (lambda: BCOO(([1.0], [[0, 0]]), shape=(1, 1, 1)), ShapeError, "two extents"),
    (lambda: BCOO.fromdense(D, nse=1), ShapeError, "nse=1"),
    (lambda: hg.jit(lambda x: CSR.fromdense(x) @ X)(D), TracedValueError, "trac"),
]


@pytest.mark.parametrize(("call", "kind", "text"), WRONG)
def test_errors_are_kind_and_located(call: Callable[[], Any], kind: type[HologramError], text: str) -> None:
    with pytest.raises(kind, match=text) as found:
        call()
    assert "test_sparse.py" in str(found.value)


@pytest.mark.parametrize("name", MATRICES)
def test_products_of_known_arrays_are_compiled_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second product records nothing: what would do so is taken away."""
    a = MATRICES[name]()
    wanted = [np.asarray(a @ x) for x in (X, hnp.asarray(X), Z)]

    def never(*_: Any) -> Any:
        raise AssertionError("recorded anew")

    monkeypatch.setattr(products._row_product, "f", never)
    monkeypatch.setattr(hnp, "segment_sum", never)
    for x, want in zip((X, hnp.asarray(X), Z), wanted, strict=True):
        np.testing.assert_array_equal(np.asarray(a @ x), want)
    with pytest.raises(AssertionError, match="recorded anew"):
        hg.jit(lambda a, x: a @ x)(a, X)
