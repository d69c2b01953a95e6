"""``hologram.numpy`` against NumPy: values, types, shapes."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram import dtypes
from hologram.errors import ShapeError
from hologram.primitives import TABLE
from hologram.trace import tree
from tests.support.needs import of_numpy

R = np.random.default_rng(3)
V = R.standard_normal(7).astype(np.float32)
M = R.standard_normal((4, 5)).astype(np.float32)
C = R.standard_normal((2, 3, 4)).astype(np.float32)
I = R.integers(-9, 9, (3, 4)).astype(np.int32)  # noqa: E741
U = R.integers(0, 200, (3, 4)).astype(np.uint8)
B = I > 0


def close(got: Any, want: Any, types: bool = True) -> None:
    gs, ws = tree.leaves(got), tree.leaves(want)
    assert len(gs) == len(ws)
    for g, w in zip(gs, ws, strict=True):
        w = np.asarray(w)
        assert type(g) is hg.Tensor and g.shape == w.shape
        if types:
            assert g.dtype == w.dtype
        np.testing.assert_allclose(np.asarray(g).astype(np.float64), w.astype(np.float64), rtol=2e-6, atol=1e-6)


def check(f: Any, *args: Any, types: bool = True) -> None:
    """``f(namespace, *args)`` gives the same lazily and jitted as in NumPy."""
    want = of_numpy(f, *args)
    close(f(hnp, *[hg.tensor(a) if isinstance(a, np.ndarray) else a for a in args]), want, types)
    close(hg.jit(lambda *xs: f(hnp, *xs))(*args), want, types)


MANIPULATIONS: dict[str, Any] = {
    "reshape": lambda xp, x: xp.reshape(x, (5, -1)),
    "ravel": lambda xp, x: xp.ravel(x),
    "permute_dims": lambda xp, x: xp.permute_dims(x[None], (2, 0, 1)),
    "transpose": lambda xp, x: xp.transpose(x),
    "matrix_transpose": lambda xp, x: xp.matrix_transpose(x[None]),
    "swapaxes": lambda xp, x: xp.swapaxes(x[None], 0, -1),
    "moveaxis": lambda xp, x: xp.moveaxis(x[None, :, None], (0, -1), (-1, 1)),
    "squeeze": lambda xp, x: (xp.squeeze(x[None, :, None]), xp.squeeze(x[None, :, None], axis=0)),
    "expand_dims": lambda xp, x: (xp.expand_dims(x, axis=1), xp.expand_dims(x, axis=(0, -1))),
    "atleast": lambda xp, x: (xp.atleast_1d(x[0, 0]), xp.atleast_2d(x[0]), xp.atleast_3d(x[0]), xp.atleast_3d(x)),
    "broadcast_to": lambda xp, x: xp.broadcast_to(x[:, None], (2, 4, 3, 5)),
    "broadcast_arrays": lambda xp, x: list(xp.broadcast_arrays(x, x[0], x[:, :1])),
    "concat": lambda xp, x: (xp.concat([x, x[:2]]), xp.concat([x, x], axis=-1), xp.concat([x, x[0]], axis=None) if False else x),
    "concatenate": lambda xp, x: xp.concatenate((x, x), 1),
    "flattened concat": lambda xp, x: xp.concatenate((x, x[:1]), axis=None),
    "append": lambda xp, x: xp.append(x, x[:1], axis=0),
    "stack": lambda xp, x: (xp.stack([x, x]), xp.stack([x, x], axis=-1)),
    "stacks": lambda xp, x: (xp.vstack([x, x[0]]), xp.hstack([x, x]), xp.hstack([x[0], x[1]]), xp.dstack([x, x]), xp.column_stack([x[:, 0], x])),
    "unstack": lambda xp, x: xp.unstack(x, axis=1),
    "split": lambda xp, x: (list(xp.split(x, 2)), list(xp.split(x, [1, 3], axis=1)), list(xp.array_split(x, 3))),
    "flip": lambda xp, x: (xp.flip(x), xp.flip(x, axis=0), xp.flip(x, axis=(-1,)), xp.flipud(x), xp.fliplr(x)),
    "rot90": lambda xp, x: [xp.rot90(x, k) for k in range(-1, 4)],
    "roll": lambda xp, x: (xp.roll(x, 3), xp.roll(x, -2, axis=1), xp.roll(x, (1, 2), axis=(0, 1)), xp.roll(x, 11, axis=0)),
    "repeat": lambda xp, x: (xp.repeat(x, 3), xp.repeat(x, 2, axis=1), xp.repeat(x, np.array([0, 1, 2, 3]), axis=0)),
    "tile": lambda xp, x: (xp.tile(x, 2), xp.tile(x, (2, 1, 3))),
    "pad": lambda xp, x: (xp.pad(x, 1), xp.pad(x, ((0, 1), (2, 0)), constant_values=7), xp.pad(x, (1, 2))),
    "pad edge": lambda xp, x: xp.pad(x, ((1, 2), (0, 3)), mode="edge"),
    "pad reflect": lambda xp, x: (xp.pad(x, ((1, 2), (3, 0)), mode="reflect"), xp.pad(x, 2, mode="symmetric")),
    "pad wrap": lambda xp, x: xp.pad(x, ((1, 2), (0, 3)), mode="wrap"),
    "diff": lambda xp, x: (xp.diff(x), xp.diff(x, axis=0, n=2)),
    "diagonal": lambda xp, x: [xp.diagonal(x, offset=k) for k in (-5, -2, 0, 3, 5)],
    "trace": lambda xp, x: xp.trace(x, offset=1),
    "tril": lambda xp, x: (xp.tril(x, k=1), xp.triu(x, k=-1), xp.tril(x)),
}


@pytest.mark.parametrize("name", MANIPULATIONS)
def test_manipulation(name: str) -> None:
    check(MANIPULATIONS[name], M)


REDUCTIONS: dict[str, Any] = {
    **{
        name: lambda xp, x, name=name: [
            getattr(xp, name)(x, **o) for o in ({}, {"axis": 1}, {"axis": -1, "keepdims": True}, {"axis": (0, 2)}, {"axis": None, "keepdims": True})
        ]
        for name in ("sum", "prod", "max", "min", "mean", "any", "all", "var", "std", "count_nonzero")
    },
    "argmax": lambda xp, x: (xp.argmax(x), xp.argmax(x, axis=1), xp.argmax(x, axis=0, keepdims=True)),
    "argmin": lambda xp, x: (xp.argmin(x), xp.argmin(x, axis=1), xp.argmin(x, keepdims=True)),
    "correction": lambda xp, x: (xp.var(x, axis=0, ddof=1), xp.std(x, axis=0, correction=1)),
    "cumsum": lambda xp, x: (xp.cumsum(x), xp.cumsum(x, axis=1), xp.cumulative_sum(x, axis=0, include_initial=True)),
    "cumprod": lambda xp, x: (xp.cumprod(x, axis=1), xp.cumulative_prod(x, axis=0, include_initial=True)),
    "ptp": lambda xp, x: xp.ptp(x, axis=1),
    "average": lambda xp, x: xp.average(x, axis=0),
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reduction(name: str) -> None:
    check(REDUCTIONS[name], C)


def test_sums_widen() -> None:
    for array in (U, B, I, np.ones(3, np.int8), np.ones(3, np.uint32)):
        close(hnp.sum(array), np.sum(array))
        close(hnp.prod(array), np.prod(array))
        close(hnp.cumsum(array, axis=0), np.cumsum(array, axis=0))
        assert hnp.mean(array).dtype == np.float32
    assert hnp.sum(U, dtype="uint8").dtype == np.uint8
    assert hnp.sum(np.ones(3, np.float16)).dtype == np.float16


def test_half_precision_statistics_do_not_overflow() -> None:
    x = np.full(1000, 1000, np.float16)
    assert float(hnp.mean(x)) == 1000 and hnp.mean(x).dtype == np.float16
    assert float(hnp.var(x)) == 0


def test_empty_reductions() -> None:
    empty = np.zeros((0, 3), np.float32)
    check(lambda xp, x: (xp.sum(x, axis=0), xp.prod(x, axis=0), xp.any(x, axis=0), xp.all(x), xp.sum(x, axis=1)), empty)
    assert np.isnan(np.asarray(hnp.mean(empty, axis=0))).all()


@pytest.mark.skipif("exp" not in TABLE, reason="no exp")
def test_logsumexp() -> None:
    x = np.array([[1000.0, 1000.0], [-np.inf, -np.inf], [np.inf, 0.0]], np.float32)
    close(hnp.logsumexp(x, axis=1), np.array([1000 + np.log(2), -np.inf, np.inf], np.float32))
    close(hnp.logsumexp(M, axis=0, keepdims=True), np.log(np.exp(M).sum(0, keepdims=True)))


PRODUCTS: dict[str, Any] = {
    "matmul": lambda xp, a, b: (xp.matmul(a, b.T), a[0] @ b.T, a @ b[0], a[0] @ b[0], a[None] @ b.T[None]),
    "batched": lambda xp, a, b: xp.matmul(a[:, None, :], b[:, :, None]),
    "dot": lambda xp, a, b: (xp.dot(a, b.T), xp.dot(a[0], b[0]), xp.dot(a, np.float32(2))),
    "vecdot": lambda xp, a, b: (xp.vecdot(a, b), xp.vecdot(a, b, axis=0)),
    "inner": lambda xp, a, b: xp.inner(a, b),
    "outer": lambda xp, a, b: xp.outer(a[0], b[1]),
    "tensordot": lambda xp, a, b: (xp.tensordot(a, b.T, axes=1), xp.tensordot(a, b, axes=2), xp.tensordot(a, b, axes=((1,), (1,)))),
    "einsum": lambda xp, a, b: [
        xp.einsum(s, *x)
        for s, x in (
            ("ij,kj->ik", (a, b)), ("ij,ij", (a, b)), ("ij->ji", (a,)), ("ij->", (a,)), ("...j,kj->...k", (a[None], b)), ("ij,kj", (a, b)),
            ("i,j->ij", (a[0], b[0])),
        )
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", PRODUCTS)
def test_product(name: str) -> None:
    check(PRODUCTS[name], M, M[::-1].copy())


def test_integer_and_bool_products() -> None:
    close(hnp.matmul(I, I.T), I @ I.T)
    close(hnp.matmul(B, B.T), B @ B.T)


CREATIONS: dict[str, Any] = {
    "zeros": lambda xp: (xp.zeros(3, dtype="float32"), xp.ones((2, 2), dtype="int8"), xp.full((2,), 7.5, dtype="float64"), xp.full((), True)),
    "like": lambda xp: (xp.zeros_like(M), xp.ones_like(I), xp.full_like(M, 3), xp.zeros_like(M, dtype="int16")),
    "arange": lambda xp: (xp.arange(5), xp.arange(2, 9, 3), xp.arange(9, 2, -2), xp.arange(0), xp.arange(5, 2), xp.arange(3, dtype="float64")),
    "arange of floats": lambda xp: (xp.arange(0.0, 1.0, 0.1, dtype="float32"), xp.arange(1.5, dtype="float64")),
    "linspace": lambda xp: [xp.linspace(-1, 2, n, dtype=d, endpoint=e) for n in (0, 1, 2, 50) for d in ("float32", "float64") for e in (True, False)],
    "eye": lambda xp: (
        xp.eye(3, dtype="float32"),
        xp.eye(2, 4, k=1, dtype="int64"),
        xp.eye(3, k=-1, dtype="float32"),
        *[xp.eye(2, 3, k=k, dtype="float32") for k in (-9, -2, 3, 9)],
        *[xp.tri(2, 3, k, dtype="float32") for k in (-9, 9)],
        xp.tri(3, 4, 1, dtype="float32"),
    ),
    "meshgrid": lambda xp: (list(xp.meshgrid(V, V[:3])), list(xp.meshgrid(V, V[:3], V[:2], indexing="ij"))),
}


@pytest.mark.parametrize("name", CREATIONS)
def test_creation(name: str) -> None:
    want = CREATIONS[name](np)
    close(CREATIONS[name](hnp), want)
    close(hg.jit(lambda: CREATIONS[name](hnp))(), want)


def test_diagonals_beyond_all_integers() -> None:
    close(hnp.eye(2, 3, k=2**70), np.zeros((2, 3), np.float32))
    close(hnp.tril(np.ones((2, 3)), k=-(2**70)), np.zeros((2, 3)))


def test_default_types() -> None:
    assert hnp.zeros(2).dtype == hnp.linspace(0, 1, 3).dtype == hnp.arange(1.0).dtype == np.float32
    assert hnp.arange(3).dtype == hnp.full(2, 1).dtype == np.int64
    assert hnp.empty(2).shape == (2,) and hnp.empty_like(M).shape == M.shape
    assert hnp.array([1.0]).dtype == np.float32


INDICES: dict[str, Any] = {
    "integers": np.index_exp[1, -1],
    "slices": np.index_exp[1:, ::2],
    "negative steps": np.index_exp[::-1, 4:0:-3],
    "clamped": np.index_exp[-100:100, 50:],
    "empty": np.index_exp[3:1, :0],
    "empty backwards": np.index_exp[0:3:-1],
    "None": np.index_exp[None, :, None, 2],
    "Ellipsis": np.index_exp[..., 0],
    "Ellipsis of nothing": np.index_exp[1, ..., 2],
    "full": np.index_exp[()],
    "numpy integers": np.index_exp[np.int64(2), np.uint8(1)],
    "list": ([0, 2, -1],),
    "array": (np.array([[0, 1], [3, -4]]),),
    "array on the last axis": (slice(1, 3), np.array([4, 0])),
    "two arrays": (np.array([0, 1]), np.array([[1], [-1]])),
    "array and integer": (np.array([0, 1]), 2),
    "array and None": (None, np.array([0, 1])),
    "empty list": ([],),
    "mask": (M[:, 0] > 0,),
    "mask of all axes": (M > 0,),
}


@pytest.mark.parametrize("name", INDICES)
def test_indexing(name: str) -> None:
    key = INDICES[name]
    check(lambda xp, x: x[key], M)


def test_arrays_apart_come_first() -> None:
    key = (np.array([0, 1]), slice(None), np.array([2, 3]))
    check(lambda xp, x: x[key], C)


def test_computed_indices() -> None:
    check(lambda xp, x, i: x[i], M, np.array([2, -1, 0]))
    check(lambda xp, x, i: x[:, i], M, np.array(3))
    check(lambda xp, x, i: xp.take(x, i, axis=1), M, np.array([[0, 4]], np.uint8))
    check(lambda xp, x, i: xp.take(x, i), M, np.array([7, 3]))
    check(lambda xp, x, i: xp.take_along_axis(x, i, axis=1), M, np.argsort(M, axis=1))
    close(hnp.take(M, hg.tensor([100, -100]), axis=0), M[[3, 0]])  # what cannot be checked is clamped
    check(lambda xp, x: xp.compress([True, False, True, True], x, axis=0), M)


def test_masks_of_tensors() -> None:
    t = hg.tensor(M)
    close(t[t > 0], M[M > 0])


def test_where_and_clip() -> None:
    check(lambda xp, x: (xp.where(x > 0, x, 0.0 * x), xp.clip(x, -0.5, 0.5), xp.clip(x, None, x[0]), xp.where(x[0] > 0, x, x[:, :1])), M)
    assert hnp.where(True, np.ones(2, np.float16), 0.0).dtype == np.float16
    nan = np.array([np.nan], np.float32)
    close(hnp.where(np.array([False]), nan, 1.0), np.ones(1, np.float32))


def test_logical_functions() -> None:
    check(lambda xp, x, b: (xp.logical_and(x, b), xp.logical_or(x, b), xp.logical_xor(x, b), xp.logical_not(x)), I, B)


def test_rounding() -> None:
    check(lambda xp, x: (xp.round(x), xp.floor(x), xp.ceil(x), xp.trunc(x), xp.rint(x), xp.round(x, 1)), M)
    for f in (hnp.round, hnp.floor, hnp.ceil, hnp.trunc):
        close(f(I), I)


def test_special_elementwise() -> None:
    x = np.array([np.nan, np.inf, -np.inf, 0.0, 3.0, -4.0], np.float32)
    check(lambda xp, x: (xp.nan_to_num(x), xp.isnan(x), xp.isinf(x), xp.isfinite(x), xp.sign(x), xp.signbit(x)), x)
    with np.errstate(all="ignore"):
        check(lambda xp, x: (xp.hypot(x, 3.0), xp.hypot(x, x), xp.isclose(x, x), xp.isclose(x, x + 1e-9, equal_nan=True)), x)
    check(lambda xp, x: (xp.degrees(x), xp.radians(x), xp.positive(x), xp.square(x), xp.divmod(x, 2.0)), M)


NAMES = [n for n in dir(hnp) if isinstance(ufunc := getattr(np, n, None), np.ufunc) and ufunc.signature is None]


@pytest.mark.parametrize("name", NAMES)
def test_elementwise_names_mean_what_they_mean_in_numpy(name: str) -> None:
    ufunc = getattr(np, name)
    for array in (np.array([0.25, 0.5, 0.75], np.float32), np.array([1, 2, 3], np.int32), np.array([True, False, True])):
        args = [array] * ufunc.nin
        try:
            with np.errstate(all="ignore"):
                want = ufunc(*args)
        except TypeError:
            continue
        if array.dtype.kind != "f" and (want[0] if isinstance(want, tuple) else want).dtype.kind != array.dtype.kind:
            continue  # float functions of integers have a test of their own
        if array.dtype.kind == "b" and want.dtype.kind == "i":
            continue  # NumPy takes bool for int8 there
        try:
            got = getattr(hnp, name)(*args)
        except hg.errors.DTypeError:
            assert array.dtype.kind == "b"
            continue
        if name == "reciprocal" and array.dtype.kind == "i":
            continue  # NumPy's is an integer; here, as in the Array API, it takes floats
        close(got, want)


def test_comparing_arrays() -> None:
    check(lambda xp, x: (xp.allclose(x, x + 1e-9), xp.allclose(x, x + 1), xp.array_equal(x, x), xp.array_equal(x, x[:1])), M)


def test_types() -> None:
    assert hnp.float32 == np.float32 and hnp.bfloat16.itemsize == 2 and hnp.bool == np.bool_
    assert hnp.finfo(hnp.bfloat16).bits == 16 and hnp.finfo(hg.tensor(1.0)).eps == np.finfo(np.float32).eps
    assert hnp.iinfo("int8").max == 127
    assert hnp.result_type(hg.tensor(1), 2.5, np.float16) == np.float16
    assert hnp.can_cast("int8", "int16") and not hnp.can_cast("int16", "int8") and hnp.can_cast(hg.tensor(1), "int64")
    assert hnp.isdtype(np.float32, "real floating") and hnp.isdtype(np.int8, ("bool", "integral")) and not hnp.isdtype(np.int8, np.int16)
    close(hnp.astype(M * 100, "int16"), (M * 100).astype(np.int16))
    close(hg.tensor(M).astype(np.float64), M.astype(np.float64))
    assert hnp.pi == np.pi and hnp.newaxis is None


def test_casts_saturate() -> None:
    x = np.array([np.nan, np.inf, -np.inf, 300.0, -300.0], np.float32)
    close(hnp.astype(x, "int8"), np.array([0, 127, -128, 127, -128], np.int8))
    for found in (hnp.astype(np.arange(2), None), hnp.arange(2).astype(None)):  # type: ignore[arg-type]
        close(found, np.arange(2, dtype=np.float32))


ARRAY_API = """
abs acos acosh add all any arange argmax argmin asarray asin asinh astype atan atan2 atanh bitwise_and bitwise_invert bitwise_left_shift bitwise_or
bitwise_right_shift bitwise_xor broadcast_arrays broadcast_to can_cast ceil clip concat conj copysign cos cosh count_nonzero cumulative_prod
cumulative_sum diff divide empty empty_like equal exp expand_dims expm1 eye finfo flip floor floor_divide from_dlpack full full_like greater
greater_equal hypot iinfo imag isdtype isfinite isinf isnan less less_equal linspace log log10 log1p log2 logaddexp logical_and logical_not logical_or
logical_xor matmul matrix_transpose max maximum mean meshgrid min minimum moveaxis multiply negative nextafter not_equal ones ones_like permute_dims
positive pow prod real reciprocal remainder repeat reshape result_type roll round sign signbit sin sinh sqrt square squeeze stack std subtract sum
take take_along_axis tan tanh tensordot tile tril triu trunc unstack var vecdot where zeros zeros_like
""".split()


def test_array_api_names() -> None:
    waiting = {"argsort", "sort", "searchsorted", "unique_all", "nonzero"}
    assert not [n for n in ARRAY_API if n not in waiting and not hasattr(hnp, n)]


def test_reading_is_exact_at_page_sizes() -> None:
    for n in (3071, 3072, 3073):
        x = R.standard_normal(n).astype(np.float32)
        np.testing.assert_allclose(float(hnp.sum(x)), x.sum(dtype=np.float64), rtol=1e-4)


def test_dtypes_have_one_object() -> None:
    for d in dtypes.ALL:
        assert getattr(hnp, d.name) == d.np and np.dtype(getattr(hnp, d.name)) is d.np


def test_import_is_light() -> None:
    code = "import sys, hologram; print([m for m in ('llvmlite', 'networkx', 'torch', 'hologram.graph', 'hologram.trace') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    code = "import sys, hologram as hg; hg.jit, hg.numpy, hg.tensor; print([m for m in ('llvmlite', 'networkx', 'torch') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def _gelu(xp: Any, x: Any) -> Any:
    return 0.5 * x * (1 + xp.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


def _softmax(xp: Any, x: Any) -> Any:
    e = xp.exp(x - xp.max(x, axis=-1, keepdims=True))
    return e / xp.sum(e, axis=-1, keepdims=True)


def _layer_norm(xp: Any, x: Any) -> Any:
    c = x - xp.mean(x, axis=-1, keepdims=True)
    return c / xp.sqrt(xp.mean(c * c, axis=-1, keepdims=True) + 1e-5)


def _adam(xp: Any, p: Any) -> Any:
    m, v = 0.9 * p + 0.1, 0.999 * p * p + 0.001
    return p - 1e-3 * m / (xp.sqrt(v) + 1e-8), m, v


def _stencil(xp: Any, x: Any) -> Any:
    return 0.25 * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])


@pytest.mark.parametrize("f", [_gelu, _softmax, _layer_norm, _adam, _stencil])
@pytest.mark.parametrize("shape", [(4, 5), (33, 129)])
def test_programs(f: Any, shape: tuple[int, int]) -> None:
    check(f, R.standard_normal(shape).astype(np.float32))
    x = R.standard_normal(shape).astype(np.float32)
    np.testing.assert_allclose(
        np.asarray(tree.leaves(hg.jit(lambda a: f(hnp, a), dynamic=True)(x))[0]), tree.leaves(f(np, x))[0], rtol=1e-5, atol=1e-6
    )


# --- pad -------------------------------------------------------------------------------------------------------------

FILLS: list[Any] = [5, 2.5, (4,), [4, 6], ((4, 6),), ((4,), (6,)), ((1, 2), (3, 4)), np.array([[1, 2], [3, 4]]), np.int8(3), [np.float32(1), 2]]


@pytest.mark.crossed
@pytest.mark.parametrize("fill", FILLS, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.complex64])
def test_pad_takes_fills_as_numpy_does(fill: Any, dtype: Any) -> None:
    """One number, a pair, a number or a pair for each axis; before, after, or on neither side of an axis."""
    x = np.arange(6).reshape(2, 3).astype(dtype)
    for widths in (1, ((2, 1), (0, 3)), (0, 2)):
        want = np.pad(x, widths, constant_values=fill)
        np.testing.assert_array_equal(hnp.pad(x, widths, constant_values=fill), want)
        if isinstance(fill, (list, tuple, np.ndarray)):
            traced = hg.jit(lambda x, f, widths=widths: hnp.pad(x, widths, constant_values=f))
            np.testing.assert_array_equal(traced(x, np.asarray(fill, dtype)), want)


def test_pad_with_computed_fills() -> None:
    x = np.ones(3)
    f = lambda a, b: hnp.pad(x, 2, constant_values=(a, b))  # noqa: E731
    np.testing.assert_array_equal(hg.jit(f)(2.0, 3.0), [2, 2, 1, 1, 1, 3, 3])
    assert [float(g) for g in hg.grad(lambda a, b: hnp.sum(f(a, b)), (0, 1))(2.0, 3.0)] == [2.0, 2.0]
    for fill in ((1, 2, 3), ((1, 2), (3, 4)), [[[1]]]):
        with pytest.raises(ShapeError, match="constant_values of shape"):
            hnp.pad(x, 1, constant_values=fill)
