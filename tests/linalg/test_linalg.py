"""hologram.linalg: values against NumPy, derivatives against finite differences and each other, vmap against a loop."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.backends.llvm.graph import lapack
from hologram.errors import ShapeError, TracedValueError

la = hg.linalg
TYPES = [np.float32, np.float64, np.complex64, np.complex128]


def numbers(shape: tuple[int, ...], dtype: Any = np.float64, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng([seed, *shape])
    x = rng.normal(size=shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.normal(size=shape)
    return x.astype(dtype)


def well(shape: tuple[int, ...], dtype: Any = np.float64, seed: int = 0) -> np.ndarray:
    """Square matrices far from singular ones."""
    return numbers(shape, dtype, seed) + (2 * shape[-1] * np.eye(shape[-1])).astype(dtype)


def positive(shape: tuple[int, ...], dtype: Any = np.float64, seed: int = 0) -> np.ndarray:
    x = numbers(shape, dtype, seed)
    return x @ adjoint(x) + (shape[-1] * np.eye(shape[-1])).astype(dtype)


def adjoint(x: np.ndarray) -> np.ndarray:
    return np.swapaxes(x.conj(), -1, -2)


def close(got: Any, want: Any, factor: float = 200) -> None:
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape and got.dtype == want.dtype
    scale = float(np.max(np.abs(want), initial=1.0))
    np.testing.assert_allclose(got, want, rtol=0, atol=factor * scale * float(np.finfo(want.dtype).eps))


@pytest.fixture(params=["lapack", "numpy"])
def routines(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, everything: bool) -> str:
    """With SciPy's LAPACK, and as without SciPy: both are to give the same."""
    if request.param == "numpy":
        few = everything or request.node.get_closest_marker("crossed")
        if not few and request.node.callspec.params.get("dtype") in (np.float32, np.complex128):
            pytest.skip("in --all")
        monkeypatch.setattr(lapack, "available", lambda: False)
        hg.clear_caches()
    elif not lapack.available():
        pytest.skip("SciPy is not installed")
    return str(request.param)


# --- factorizations --------------------------------------------------------------------------------------------------

SQUARE = [(1, 1), (2, 2), (5, 5), (33, 33), (3, 4, 4), (2, 0, 3, 3), (0, 0)]
SHAPES = [(1, 1), (4, 3), (3, 4), (5, 5), (2, 6, 3), (2, 3, 6), (40, 7), (0, 3), (3, 0), (2, 0, 2, 3)]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SQUARE)
def test_cholesky(shape: tuple[int, ...], dtype: Any, routines: str) -> None:
    x = positive(shape, dtype)
    lower = np.asarray(la.cholesky(x))
    close(lower, np.linalg.cholesky(x))
    close(la.cholesky(x, upper=True), adjoint(lower))
    close(la.cholesky(np.tril(x)), lower)  # what is above the diagonal is not read


@pytest.mark.crossed(3)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("mode", ["reduced", "complete"])
@pytest.mark.parametrize("shape", SHAPES)
def test_qr(shape: tuple[int, ...], mode: str, dtype: Any, routines: str) -> None:
    x = numbers(shape, dtype)
    q, r = map(np.asarray, la.qr(x, mode=mode))
    want = np.linalg.qr(x, mode)  # type: ignore[call-overload]
    assert q.shape == want[0].shape and r.shape == want[1].shape
    close(q @ r, x)
    close(adjoint(q) @ q, np.broadcast_to(np.eye(q.shape[-1], dtype=dtype), (*q.shape[:-2], q.shape[-1], q.shape[-1])))
    np.testing.assert_array_equal(np.tril(r, -1), 0)


@pytest.mark.crossed(3)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_svd(shape: tuple[int, ...], full: bool, dtype: Any, routines: str) -> None:
    x = numbers(shape, dtype)
    u, s, vh = map(np.asarray, la.svd(x, full_matrices=full))
    want = np.linalg.svd(x, full_matrices=full)
    close(s, want[1])
    close(la.svdvals(x), want[1])
    assert u.shape == want[0].shape and vh.shape == want[2].shape
    k = min(shape[-2:])
    close((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], x)
    close(adjoint(u) @ u, np.broadcast_to(np.eye(u.shape[-1], dtype=dtype), (*u.shape[:-2], u.shape[-1], u.shape[-1])))
    close(vh @ adjoint(vh), np.broadcast_to(np.eye(vh.shape[-2], dtype=dtype), (*vh.shape[:-2], vh.shape[-2], vh.shape[-2])))


@pytest.mark.crossed(3)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SQUARE)
def test_eigh(shape: tuple[int, ...], dtype: Any, routines: str) -> None:
    x = positive(shape, dtype)
    w, v = map(np.asarray, la.eigh(x))
    close(w, np.linalg.eigvalsh(x), 500)
    close(la.eigvalsh(np.tril(x)), w, 500)
    close(x @ v, v * w[..., None, :], 500)
    close(adjoint(v) @ v, np.broadcast_to(np.eye(shape[-1], dtype=dtype), x.shape))


# --- systems ---------------------------------------------------------------------------------------------------------


@pytest.mark.crossed(3)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SQUARE)
def test_eig(shape: tuple[int, ...], dtype: Any, routines: str) -> None:
    x = numbers(shape, dtype)
    w, v = (np.asarray(r) for r in la.eig(x))
    assert w.shape == shape[:-1] and v.shape == shape and w.dtype == v.dtype == np.result_type(dtype, np.complex64)
    close(x @ v, v * w[..., None, :], 500)
    if v.size:
        tops = np.take_along_axis(v, np.argmax(abs(v), axis=-2, keepdims=True), axis=-2)
        np.testing.assert_allclose(np.linalg.norm(v, axis=-2), 1, rtol=1e-5)
        np.testing.assert_allclose(tops.imag, 0, atol=1e-6)
    values = np.asarray(la.eigvals(x))
    for power in (1, 2, 3):
        close(np.sum(values**power, axis=-1), np.trace(np.linalg.matrix_power(x, power), axis1=-2, axis2=-1).astype(w.dtype), 2000)
        close(np.sum(w**power, axis=-1), np.sum(values**power, axis=-1), 2000)
    if np.dtype(dtype).kind == "f":
        np.testing.assert_array_equal(np.sort(w.imag), np.sort(-w.imag))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    ("a", "b"),
    [((3, 3), (3,)), ((3, 3), (3, 2)), ((4, 3, 3), (3,)), ((4, 1, 3, 3), (5, 3, 2)), ((3, 3), (2, 3, 4)), ((0, 0), (0, 2)), ((3, 3), (3, 0))],
)
def test_solve(a: tuple[int, ...], b: tuple[int, ...], dtype: Any, routines: str) -> None:
    x1, x2 = well(a, dtype), numbers(b, dtype)
    close(la.solve(x1, x2), np.linalg.solve(x1, x2) if len(b) > 1 else np.linalg.solve(x1, x2[:, None])[..., 0])


@pytest.mark.crossed(3)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(1, 1), (4, 4), (3, 5, 5), (0, 0), (2, 0, 0)])
def test_inverse_and_determinant(shape: tuple[int, ...], dtype: Any, routines: str) -> None:
    x = well(shape, dtype)
    x[..., ::2, :] = x[..., ::2, :][..., ::-1, :]  # so that rows are exchanged
    close(la.inv(x), np.linalg.inv(x))
    close(la.det(x), np.linalg.det(x).astype(dtype))
    sign, logarithm = la.slogdet(x)
    want = np.linalg.slogdet(x)
    close(sign, np.asarray(want.sign))
    close(logarithm, np.asarray(want.logabsdet))


@pytest.mark.crossed(3)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("left", [False, True])
def test_triangular_solve(lower: bool, unit: bool, left: bool, dtype: Any, routines: str) -> None:
    a = well((2, 4, 4), dtype) if not unit else numbers((2, 4, 4), dtype) / 4
    triangle = np.tril(a) if lower else np.triu(a)
    if unit:
        triangle = (triangle * (1 - np.eye(4)) + np.eye(4)).astype(dtype)
    b = numbers((2, 4, 3) if left else (2, 3, 4), dtype)
    for transposed in (False, True):
        for conjugated in (False, True):
            op = np.swapaxes(triangle, -1, -2) if transposed else triangle
            op = op.conj() if conjugated else op
            options = {"lower": lower, "unit_diagonal": unit, "transpose_a": transposed, "conjugate_a": conjugated, "left_side": left}
            x = np.asarray(la.triangular_solve(a, b, **options))
            close(op @ x if left else x @ op, b)


def test_singular_matrices_give_what_is_not_finite(routines: str) -> None:
    x = np.array([[1.0, 2.0], [2.0, 4.0]])
    assert not np.isfinite(np.asarray(la.inv(x))).any()
    assert not np.isfinite(np.asarray(la.solve(x, np.ones(2)))).any()
    assert float(la.det(x)) == 0
    sign, logarithm = la.slogdet(x)
    assert float(sign) == 0 and float(logarithm) == -np.inf
    mixed = np.stack([np.eye(2), -np.eye(2)])
    lower = np.asarray(hg.jit(la.cholesky)(mixed))
    np.testing.assert_array_equal(lower[0], np.eye(2))
    assert np.isnan(np.tril(lower[1])[np.tril_indices(2)]).all()
    assert np.isinf(np.asarray(la.triangular_solve(np.zeros((1, 1)), np.ones(1)))).all()


def minors(x: np.ndarray, kept: int) -> np.ndarray:
    """The derivative number ``n - kept`` of the determinant, from its definition: signed minors of ``kept`` rows and columns."""
    n = x.shape[-1]
    out = np.zeros((n, n) * (n - kept), x.dtype)
    for rows in itertools.permutations(range(n), n - kept):
        for columns in itertools.permutations(range(n), n - kept):
            orders = [[*p, *(i for i in range(n) if i not in p)] for p in (rows, columns)]
            sign = np.linalg.det(np.eye(n)[orders[0]]) * np.linalg.det(np.eye(n)[orders[1]])
            rest = np.delete(np.delete(x, rows, 0), columns, 1)
            out[tuple(itertools.chain(*zip(rows, columns, strict=True)))] = sign * (np.linalg.det(rest) if kept else 1.0)
    return out


def of_rank(rank: int, n: int, dtype: Any) -> list[np.ndarray]:
    """Matrices of one rank: of random numbers, which elimination finds to be singular only nearly, of small integers, diagonal, shifted."""
    random = numbers((n, rank), dtype, 1) @ numbers((rank, n), dtype, 2)
    whole = np.round(numbers((n, rank), dtype, 3) * 2) @ np.round(numbers((rank, n), dtype, 4) * 2)
    diagonal = np.diag([0.0] * (n - rank) + [2.0] * rank).astype(dtype)
    return [random, whole.astype(dtype), diagonal, diagonal[::-1].copy(), np.roll(diagonal, 1, 0)]


@pytest.mark.costly(2)
@pytest.mark.parametrize(("n", "dtype"), [(1, np.float64), (3, np.float64), (4, np.float32), (2, np.complex128)])
def test_derivatives_of_determinants_of_every_rank(n: int, dtype: Any) -> None:
    """First and second, of stacks and of single matrices: the minors, whatever the rank."""
    stack = np.stack([x for rank in range(n + 1) for x in of_rank(rank, n, dtype)])
    stack = stack if n == 3 else stack[::2]
    holomorphic = np.dtype(dtype).kind == "c"
    gradient = hg.grad(la.det, holomorphic=holomorphic)

    def every(x: Any) -> Any:
        second = [jacobian(gradient, holomorphic=holomorphic) for jacobian in (hg.jacfwd, hg.jacrev)]
        return gradient(x), *[f(x) for f in second if n > 1]

    want = np.stack([minors(x, n - 1) for x in stack])
    first, *seconds = hg.jit(hg.vmap(every))(stack)
    close(first, want)
    close(hg.grad(lambda x: hnp.sum(la.det(x)), holomorphic=holomorphic)(stack), want)
    for second in seconds:
        close(second, np.stack([minors(x, n - 2) for x in stack]))
    singular = stack[1]
    close(gradient(singular), want[1])
    close(hg.jvp(la.det, (singular,), (want[1],))[1], np.sum(want[1] ** 2))


@pytest.mark.costly(3)
@pytest.mark.parametrize("n", [2, 3, 5])
def test_derivatives_of_determinants_of_symbolic_sizes(n: int) -> None:
    """One program serves every size, and every rank as one of its own does."""
    gradient = hg.grad(lambda x: hnp.sum(la.det(x)))
    dynamic = hg.jit(lambda x, t: (gradient(x), hg.jvp(gradient, (x,), (t,))[1]), dynamic=True)
    for x in (np.stack([x for rank in range(n + 1) for x in of_rank(rank, n, np.float64)]), np.zeros((n, n))):
        first, second = dynamic(x, np.ones_like(x))
        close(first, np.asarray(gradient(x)))
        close(second, np.asarray(hg.jvp(gradient, (x,), (np.ones_like(x),))[1]))


def test_derivatives_of_determinants_that_are_no_numbers_of_their_type() -> None:
    """The determinant over- or underflows, its gradient does not."""
    for size in (1e30, 1e-30):
        close(hg.grad(la.det)(np.diag([size, size]).astype(np.float32)) / np.float32(size), np.eye(2, dtype=np.float32))
    assert np.asarray(hg.jacfwd(la.det)(np.zeros((0, 0)))).shape == (0, 0)


def test_third_derivatives_of_determinants() -> None:
    """Those of a singular matrix are not known: NaN, not a wrong number."""
    third = hg.jacfwd(hg.jacfwd(hg.grad(la.det)))
    x = well((3, 3))
    close(third(x), minors(x, 0))
    assert np.isnan(np.asarray(third(np.diag([1.0, 2.0, 0.0])))).any()


def test_numbers_that_are_not(routines: str) -> None:
    x = np.full((3, 3), np.nan)
    for f in (la.cholesky, la.inv, la.det, la.svdvals, la.eigvalsh, la.eigvals):
        assert np.isnan(np.asarray(f(x)).reshape(-1)[-1])


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(4, 3), (3, 4), (2, 3, 3), (0, 2), (3, 0)])
def test_pseudo_inverse_and_rank(shape: tuple[int, ...], dtype: Any) -> None:
    x = numbers(shape, dtype)
    if x.size:
        x[..., -1, :] = x[..., 0, :]
    close(la.pinv(x), np.linalg.pinv(x, rcond=None, rtol=max(shape[-2:]) * np.finfo(dtype).eps) if x.size else np.linalg.pinv(x), 2000)
    np.testing.assert_array_equal(np.asarray(la.matrix_rank(x)), np.linalg.matrix_rank(x) if x.size else 0)
    if x.size:
        assert int(np.max(np.asarray(la.matrix_rank(x, rtol=0.9)))) <= min(shape[-2:])
    assert np.asarray(la.matrix_rank(x)).dtype == np.int64


@pytest.mark.crossed(3)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("columns", [(), (2,)])
@pytest.mark.parametrize("shape", [(6, 3), (3, 6), (4, 4)])
def test_least_squares(shape: tuple[int, int], columns: tuple[int, ...], dtype: Any) -> None:
    a, b = numbers(shape, dtype), numbers((shape[0], *columns), dtype, 1)
    x, residuals, rank, s = la.lstsq(a, b)
    want = np.linalg.lstsq(a, b, rcond=None)
    close(x, want[0], 2000)
    assert int(rank) == want[2]
    close(s, want[3])
    if shape[0] > shape[1]:
        close(residuals, want[1], 2000)
    else:
        np.testing.assert_allclose(np.asarray(residuals), 0, atol=1e-6)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64"])
def test_matrix_power_of_integers(dtype: str) -> None:
    x = np.array([[1, 1], [1, 0]], dtype)
    for n in (0, 1, 5, 80):
        got = hg.linalg.matrix_power(x, n)
        assert got.dtype == x.dtype
        np.testing.assert_array_equal(got, np.linalg.matrix_power(x, n))


@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, -1, -3])
def test_matrix_power(n: int) -> None:
    x = well((2, 3, 3)) / 4
    close(la.matrix_power(x, n), np.linalg.matrix_power(x, n))


# --- products and norms ----------------------------------------------------------------------------------------------


def test_products() -> None:
    a, b = numbers((2, 3)), numbers((2, 3), seed=1)
    close(la.cross(a, b), np.cross(a, b))
    close(la.cross(a.T, b.T, axis=0), np.cross(a.T, b.T, axis=0))
    close(la.cross(a[None], b[:, None]), np.cross(a[None], b[:, None]))
    close(la.outer(a[0], b[0]), np.outer(a[0], b[0]))
    close(la.trace(a, offset=1), np.trace(a, offset=1))
    close(la.diagonal(a, offset=-1), np.diagonal(a, offset=-1))
    close(la.matmul(a, b.T), a @ b.T)
    close(la.vecdot(a, b), np.sum(a * b, -1))
    close(la.tensordot(a, b, axes=((0, 1), (0, 1))), np.tensordot(a, b, axes=((0, 1), (0, 1))))
    close(la.matrix_transpose(a), a.T)


@pytest.mark.parametrize(
    "shapes", [((2, 3), (3, 4)), ((10, 2), (2, 30), (30, 3), (3, 5)), ((4,), (4, 5), (5,)), ((4,), (4, 2), (2, 3)), ((2, 3), (3, 4), (4,))]
)
def test_multi_dot(shapes: tuple[tuple[int, ...], ...]) -> None:
    arrays = [numbers(s) for s in shapes]
    close(la.multi_dot(arrays), np.asarray(np.linalg.multi_dot(arrays)))


@pytest.mark.parametrize(("dtype", "keepdims"), [(np.float64, False), (np.float32, True), (np.complex64, True), (np.complex128, False)])
def test_norms(keepdims: bool, dtype: Any) -> None:
    x = numbers((2, 3, 4), dtype)

    def all_norms(la: Any) -> list[Any]:
        found = [la.norm(x, keepdims=keepdims), la.norm(x[0], keepdims=keepdims), la.vector_norm(x)]
        for order in (0, 1, 2, 3, -1, 0.5, np.inf, -np.inf):
            found.append(la.vector_norm(x, axis=1, keepdims=keepdims, ord=order))
            found.append(la.vector_norm(x, axis=(0, 2), keepdims=keepdims, ord=order))
            found.append(la.norm(x[0, 0], order))
        for order in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
            found.append(la.matrix_norm(x, keepdims=keepdims, ord=order))
            found.append(la.norm(x, order, axis=(2, 0), keepdims=keepdims))
        return found

    for got, want in zip(hg.jit(lambda: all_norms(la))(), all_norms(np.linalg), strict=True):
        close(got, want)


def test_integers_become_floats() -> None:
    x = np.array([[4, 1], [1, 3]])
    for f in (la.cholesky, la.inv, la.det, la.svdvals, la.eigvalsh, la.norm):
        assert np.asarray(f(x)).dtype == np.float32
    close(la.solve(x, np.array([1, 2])), np.linalg.solve(x, [1, 2]).astype(np.float32))
    assert np.asarray(la.solve(x, np.array([1.0, 2.0]))).dtype == np.float64


@pytest.mark.parametrize(("left", "right", "axis"), [((3, 3), (3, 3, 3), 0), ((3, 5), (3, 4, 5), 0), ((3, 3), (4, 3, 3), -2), ((2, 3), (3,), -1)])
def test_cross_counts_the_axis_in_each_operand(left: tuple[int, ...], right: tuple[int, ...], axis: int) -> None:
    a, b = numbers(left), numbers(right, seed=1)
    np.testing.assert_allclose(np.asarray(la.cross(a, b, axis=axis)), np.linalg.cross(a, b, axis=axis), rtol=1e-12)
    np.testing.assert_allclose(np.asarray(la.cross(b, a, axis=axis)), np.linalg.cross(b, a, axis=axis), rtol=1e-12)


# --- derivatives -----------------------------------------------------------------------------------------------------


def hermitian(x: Any) -> Any:
    return 0.5 * (x + hnp.matrix_transpose(hnp.conj(x)))


def gauge(u: Any) -> Any:
    """What of orthonormal columns does not depend on their phases."""
    return hnp.abs(u) ** 2


Case = tuple[str, Callable[..., Any], list[np.ndarray]]


def differentiable(dtype: Any) -> list[Case]:
    tall, wide, a, p, b = (
        numbers((4, 3), dtype),
        numbers((3, 4), dtype),
        well((2, 3, 3), dtype),
        positive((2, 3, 3), dtype),
        numbers((2, 3, 2), dtype, 7),
    )
    rough = numbers((3, 3), dtype, 3)
    return [
        ("cholesky", lambda x: la.cholesky(hermitian(x)), [p]),
        ("upper", lambda x: la.cholesky(hermitian(x), upper=True), [p[0]]),
        ("solve", la.solve, [a, b]),
        ("solve_vector", la.solve, [a[0], b[0, :, 0]]),
        ("inv", la.inv, [a]),
        ("det", la.det, [rough]),
        ("slogdet", lambda x: tuple(la.slogdet(x)), [rough]),
        ("lower", lambda x, y: la.triangular_solve(x, y, lower=True), [a, b]),
        ("upper_transposed", lambda x, y: la.triangular_solve(x, y, transpose_a=True, conjugate_a=True), [a, b]),
        ("unit", lambda x, y: la.triangular_solve(x, y, lower=True, unit_diagonal=True), [a / 8, b]),
        ("right", lambda x, y: la.triangular_solve(x, y, left_side=False), [a, np.swapaxes(b, -1, -2)]),
        ("qr", lambda x: tuple(la.qr(x)), [tall]),
        ("qr_wide", lambda x: tuple(la.qr(x)), [wide]),
        ("qr_complete", lambda x: tuple(la.qr(x, mode="complete")), [rough]),
        ("svdvals", la.svdvals, [wide]),
        ("svd", lambda x: (gauge(la.svd(x, full_matrices=False).U), gauge(la.svd(x, full_matrices=False).Vh)), [tall]),
        ("svd_wide", lambda x: la.svd(x, full_matrices=False).U[:, :1] @ la.svd(x, full_matrices=False).Vh[:1], [wide]),
        ("svd_full", lambda x: gauge(la.svd(x).U), [rough]),
        ("eigvalsh", lambda x: la.eigvalsh(hermitian(x)), [p]),
        ("eigh", lambda x: gauge(la.eigh(hermitian(x)).eigenvectors), [p]),
        ("eigvals", la.eigvals, [a]),
        ("eig", lambda x: tuple(la.eig(x)), [a]),
        ("pinv", la.pinv, [tall]),
        ("pinv_wide", la.pinv, [wide]),
        ("lstsq", lambda x, y: la.lstsq(x, y).x, [tall, numbers((4, 2), dtype, 9)]),
        ("norm", la.norm, [tall]),
        ("nuc", lambda x: la.matrix_norm(x, ord="nuc"), [wide]),
        ("spectral", lambda x: la.matrix_norm(x, ord=2), [wide]),
        ("cubic", lambda x: la.vector_norm(x, ord=3), [tall]),
        ("matrix_power", lambda x: la.matrix_power(x / 4, -2), [a]),
        ("multi_dot", lambda x, y: la.multi_dot([x, y, x]), [tall, numbers((3, 4), dtype, 2)]),
    ]  # fmt: skip


REAL, COMPLEX = differentiable(np.float64), differentiable(np.complex128)


def leaves(x: Any) -> list[np.ndarray]:
    return [np.asarray(t) for t in hg.tree.leaves(x)]


def inner(xs: Any, ys: Any) -> float:
    """The real inner product of tangents with cotangents, which for complex numbers are conjugated."""
    return float(sum(np.sum(x * y).real for x, y in zip(leaves(xs), leaves(ys), strict=True)))


def directions(arrays: list[np.ndarray], seed: int) -> list[np.ndarray]:
    return [numbers(x.shape, x.dtype, seed + i) for i, x in enumerate(arrays)]


@pytest.mark.costly(3)
@pytest.mark.parametrize(("name", "f", "args"), [*REAL, *COMPLEX], ids=[*[c[0] for c in REAL], *["complex_" + c[0] for c in COMPLEX]])
def test_derivatives(name: str, f: Callable[..., Any], args: list[np.ndarray]) -> None:
    tangents = directions(args, 20)
    run = hg.jit(lambda args, tangents: hg.jvp(f, tuple(args), tuple(tangents)))
    out, pushed = run(args, tangents)
    h = 1e-6
    up, down = (leaves(f(*[x + s * t for x, t in zip(args, tangents, strict=True)])) for s in (h, -h))
    for a, b, t in zip(up, down, leaves(pushed), strict=True):
        np.testing.assert_allclose(t, (a - b) / (2 * h), rtol=2e-6, atol=2e-7 * max(1.0, float(np.max(np.abs(t)))))
    cotangents = directions(leaves(out), 40)
    pulled = hg.jit(lambda args, c: hg.vjp(f, *args)[1](hg.tree.unflatten(hg.tree.structure(out), c)))(args, cotangents)
    assert inner(pushed, cotangents) == pytest.approx(inner(tangents, pulled), rel=1e-8, abs=1e-9)


@pytest.mark.costly(3)
@pytest.mark.parametrize(("name", "f", "args"), REAL, ids=[c[0] for c in REAL])
def test_second_derivatives(name: str, f: Callable[..., Any], args: list[np.ndarray], everything: bool) -> None:
    if not everything and name in ("upper", "solve_vector", "right", "pinv_wide", "spectral", "matrix_power"):
        pytest.skip("in --all: the same rules as others")

    def loss(args: Any) -> Any:
        return sum((hnp.sum(hnp.sin(hnp.abs(x) + 0.5)) for x in hg.tree.leaves(f(*args))), 0.0)

    slope = hg.grad(loss)
    tangents = directions(args, 60)
    _, pushed = hg.jit(lambda args, tangents: hg.jvp(slope, (args,), (tangents,)))(args, tangents)
    h = 1e-5
    fast = hg.jit(slope)
    up, down = (leaves(fast([x + s * t for x, t in zip(args, tangents, strict=True)])) for s in (h, -h))
    for a, b, t in zip(up, down, leaves(pushed), strict=True):
        np.testing.assert_allclose(t, (a - b) / (2 * h), rtol=1e-5, atol=1e-5 * max(1.0, float(np.max(np.abs(t)))))


@pytest.mark.parametrize(("name", "f", "args"), REAL, ids=[c[0] for c in REAL])
def test_vmap(name: str, f: Callable[..., Any], args: list[np.ndarray]) -> None:
    stacks = [
        np.stack([x, x[..., ::-1] * 1.1, x + 0.1]) if name not in ("cholesky", "upper", "eigh", "eigvalsh") else np.stack([x, x * 1.5, x + 0.1])
        for x in args
    ]
    got = leaves(hg.jit(hg.vmap(f))(*stacks))
    one_by_one = [leaves(f(*[s[i] for s in stacks])) for i in range(3)]
    for g, *want in zip(got, *one_by_one, strict=True):
        np.testing.assert_allclose(np.abs(g), np.abs(np.stack(want)), rtol=1e-9, atol=1e-10)
    if len(args) > 1:
        shared = leaves(hg.vmap(f, in_axes=(None, 0))(args[0], stacks[1]))
        want = [leaves(f(args[0], s)) for s in stacks[1]]
        for g, *w in zip(shared, *want, strict=True):
            np.testing.assert_allclose(np.abs(g), np.abs(np.stack(w)), rtol=1e-9, atol=1e-10)


def test_gradients_of_hermitian_functions_are_hermitian() -> None:
    x = positive((4, 4))
    for f in (lambda x: hnp.sum(la.cholesky(x)), lambda x: la.eigvalsh(x)[0]):
        g = np.asarray(hg.grad(f)(x))
        np.testing.assert_allclose(g, g.T, atol=1e-14)


def test_the_factorization_is_shared_with_the_gradient() -> None:
    x, b = well((30, 30)), numbers((30, 2))
    text = str(hg.make_graph(hg.value_and_grad(lambda x, b: hnp.sum(la.solve(x, b) ** 2), argnums=(0, 1)))(x, b))
    assert text.count(" lu %") == 1 and text.count(" lu_solve %") == 2


# --- under transforms of control flow, with dynamic shapes -----------------------------------------------------------


def test_newton_in_a_loop() -> None:
    x = positive((5, 5))

    def step(i: Any, y: Any) -> Any:
        return 0.5 * (y + la.solve(y, x))

    root = np.asarray(hg.jit(lambda: hg.fori_loop(0, 20, step, np.eye(5)))())
    np.testing.assert_allclose(root @ root, x, rtol=1e-10)


def test_one_program_for_every_size() -> None:
    run = hg.jit(lambda x: (la.cholesky(x), la.inv(x), la.eigvalsh(x), la.det(x)), dynamic=True)
    for n in (2, 3, 7):
        x = positive((n, n)) / n
        for got, want in zip(run(x), (np.linalg.cholesky(x), np.linalg.inv(x), np.linalg.eigvalsh(x), np.linalg.det(x)), strict=True):
            np.testing.assert_allclose(np.asarray(got), want, rtol=1e-9, atol=1e-12)


UNARY = [
    "cholesky",
    "det",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "matrix_norm",
    "matrix_rank",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "svd",
    "svdvals",
    "trace",
]


@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (5, 3)], ids=str)
@pytest.mark.parametrize("name", UNARY)
def test_symbolic_sizes_or_a_refusal(name: str, shape: tuple[int, int]) -> None:
    """Every function of symbolic extents has the values that it has of known ones, or refuses them."""
    x = positive((5, 5))[: shape[0], : shape[1]]
    f = getattr(la, name)
    try:
        got = hg.jit(f, dynamic=True)(x)
    except (ShapeError, TracedValueError):
        pass
    else:
        for a, b in zip(hg.tree.leaves(got), hg.tree.leaves(f(x)), strict=True):
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-10, atol=1e-12)
