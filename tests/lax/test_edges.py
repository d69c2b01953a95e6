"""Edges of ``hologram.lax``: reductions of nothing, padding that counts for nothing, complex numbers, transposes of linear maps."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram import lax
from hologram.errors import ArgumentError, AxisOutOfRange, DifferentiationError, DTypeError, ShapeError
from tests.support.optable import seeded

RNG = seeded("lax edges")


def numbers(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    found = RNG.standard_normal(shape)
    return (found + 1j * RNG.standard_normal(shape) if np.dtype(dtype).kind == "c" else found).astype(dtype)


@pytest.mark.parametrize("dtype", ["bool", "int8", "int32", "uint8", "float16", "float32", "float64", "complex64"])
def test_extremes_of_nothing_are_the_ends_of_the_type(dtype: str) -> None:
    d = np.dtype(dtype)
    ends = (False, True) if d.kind == "b" else (-np.inf, np.inf) if d.kind in "fc" else (np.iinfo(d).min, np.iinfo(d).max)
    for f, end in zip((lax.reduce_max, lax.reduce_min), ends, strict=True):
        for run in (f, hg.jit(f, static_argnums=1)):
            got = run(np.zeros((2, 0, 3), d), (1,))
            assert got.dtype == d and got.tolist() == [[end] * 3] * 2
            assert run(np.zeros((0, 3), d), (1,)).shape == (0,)


def test_extremes_of_complex_numbers_are_those_of_pairs() -> None:
    z = np.array([[1 + 2j, 1 - 3j, 0], [4j, -1, 2j]], np.complex64)
    np.testing.assert_array_equal(lax.reduce_max(z, (1,)).numpy(), z.max(1))
    np.testing.assert_array_equal(hg.jit(lambda z: lax.reduce_min(z, (0, 1)))(z).numpy(), z.min())


def folded_by_hand(x: np.ndarray, first: float, f: Callable[[Any, Any], Any], size: int, pads: tuple[int, int], base: int) -> np.ndarray:
    places = {pads[0] + i * base: v for i, v in enumerate(x)}
    length = pads[0] + (len(x) - 1) * base + 1 + pads[1]
    windows = [[places[k] for k in range(i, i + size) if k in places] for i in range(length - size + 1)]
    return np.array([functools.reduce(f, w, first) for w in windows], x.dtype)


@pytest.mark.parametrize("first", [0.0, 1.0, 5.0, -2.0])
@pytest.mark.parametrize("f", [lax.add, lax.mul, lax.max, lax.min, lambda a, b: a + b + a * b], ids=["add", "mul", "max", "min", "other"])
def test_padding_counts_for_nothing_whatever_windows_start_from(f: Any, first: float) -> None:
    x = np.array([0.5, 2.0, -1.0, 3.0, 4.0], np.float32)
    plain = lambda a, b: np.float32(f(np.float32(a), np.float32(b)))  # noqa: E731
    for pads, base in itertools.product([(0, 0), (1, 2), (3, 0)], [1, 3]):
        run = lambda x, pads=pads, base=base: lax.reduce_window(x, np.float32(first), f, (3,), None, [pads], (base,))  # noqa: E731
        want = folded_by_hand(x, first, plain, 3, pads, base)
        np.testing.assert_allclose(run(x).numpy(), want, rtol=1e-6)
        np.testing.assert_allclose(hg.jit(run)(x).numpy(), want, rtol=1e-6)


def test_windows_of_pytrees_are_padded_by_nothing() -> None:
    x = np.array([1.0, 2.0, 3.0], np.float32)
    both = lambda a, b: (a[0] * b[0], a[1] + b[1])  # noqa: E731
    products, sums = lax.reduce_window((x, x), (1.0, 10.0), both, (3,), padding="SAME")
    assert products.tolist() == [2, 6, 6] and sums.tolist() == [13, 16, 15]


def test_windows_of_padding_alone_are_what_they_start_from() -> None:
    for f, first in ((lax.add, 0.0), (lax.add, -0.0), (lax.mul, 1.0), (lax.max, -np.inf), (lax.add, 3.0)):
        got = lax.reduce_window(np.float32([-0.0]), first, f, (1,), None, [(1, 1)]).numpy()
        assert got[0] == got[2] == first and np.signbit(got[0]) == np.signbit(first)


def test_windows_that_do_not_start_from_the_identity_have_derivatives() -> None:
    x = numbers(5)
    for f, first in ((lax.add, 2.0), (lax.mul, 2.0), (lax.max, -0.1)):
        run = lambda x, f=f, first=first: lax.reduce_window(x, first, f, (2,), padding="SAME").sum()  # noqa: E731
        step = np.float32(1e-2)
        want = [float(run(x + step * e) - run(x - step * e)) / (2 * step) for e in np.eye(5, dtype=np.float32)]
        np.testing.assert_allclose(hg.grad(run)(x).numpy(), want, atol=2e-2)


def test_tangents_and_cotangents_are_rounded_like_values() -> None:
    x, t = numbers(4), numbers(4)
    f = lambda x: lax.reduce_precision(x, 5, 3)  # noqa: E731
    want = f(t).numpy()
    np.testing.assert_array_equal(hg.jvp(f, (x,), (t,))[1].numpy(), want)
    np.testing.assert_array_equal(hg.jit(lambda t: hg.vjp(f, x)[1](t)[0])(t).numpy(), want)
    np.testing.assert_array_equal(hg.vmap(lambda x, t: hg.vjp(f, x)[1](t)[0])(x, t).numpy(), want)
    np.testing.assert_array_equal(hg.jvp(lambda x: hg.vjp(f, x)[1](x)[0], (x,), (t,))[1].numpy(), want)
    np.testing.assert_array_equal(hg.jvp(hg.vmap(f), (x,), (t,))[1].numpy(), want)


def convolved_by_hand(x: np.ndarray, w: np.ndarray, steps: tuple[int, int]) -> np.ndarray:
    seen = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], (2, 3))[:, :, :: steps[0], :: steps[1]]
    return np.einsum("nchwij,ocij->nohw", seen, w)


def test_same_padding_is_that_of_the_array_without_its_dilation() -> None:
    windows = lambda n, *options: lax.reduce_window(np.arange(1, n + 1), 0, lax.add, *options).tolist()  # noqa: E731
    for padding in ("SAME", "SAME_LOWER", "VALID"):
        assert windows(6, (3,), (3,), padding, (2,)) == [3, 3, 9]
    assert windows(5, (2,), (2,), "SAME", (3,), (2,)) == [0, 2, 2, 0, 4, 4, 0]
    assert windows(5, (2,), (2,), "VALID", (3,), (2,)) == [1, 0, 3, 3, 0, 5]


def test_convolutions_of_complex_numbers() -> None:
    x, w = numbers(2, 3, 7, 6, dtype=np.complex64), numbers(4, 3, 3, 2, dtype=np.complex64)
    for kernel in (w, w.real):
        want = convolved_by_hand(x, kernel, (2, 1))
        np.testing.assert_allclose(lax.conv(x, kernel, (2, 1), "VALID").numpy(), want, rtol=1e-4, atol=1e-4)
    grouped = lax.conv_general_dilated(np.concatenate([x, x], 1), np.concatenate([w, 2 * w]), (2, 1), "VALID", feature_group_count=2)
    np.testing.assert_allclose(grouped.numpy(), np.concatenate([want := convolved_by_hand(x, w, (2, 1)), 2 * want], 1), rtol=1e-4, atol=1e-4)
    pulled = hg.jit(lambda x: hg.vjp(lambda x: lax.conv(x, w, (2, 1), "VALID"), x)[1](want)[0])(x)  # a linear map's transpose
    assert np.isclose((pulled.numpy() * x).sum(), (want * want).sum(), rtol=1e-4)
    with pytest.raises(DTypeError, match="takes numbers, not bool"):
        lax.conv(np.ones((1, 1, 3), bool), np.ones((1, 1, 2), bool), (1,), "VALID")


def test_the_logistic_function_of_complex_numbers() -> None:
    z = np.array([1 + 2j, -30 + 1j, 200 - 3j, -80 + 0.5j, 3.1j, 0], np.complex64)
    wide = z.astype(np.complex128)
    np.testing.assert_allclose(lax.logistic(z).numpy(), np.exp(wide) / (1 + np.exp(wide)), rtol=1e-5)
    s = lax.logistic(z[0]).numpy()
    np.testing.assert_allclose(hg.grad(lambda z: hnp.real(lax.logistic(z)))(z[0]).numpy(), s * (1 - s), rtol=1e-5)


def test_conjugates_of_real_floats_are_complex() -> None:
    for dtype, wide in (("bfloat16", "complex64"), ("float32", "complex64"), ("float64", "complex128"), ("complex64", "complex64"), ("int8", "int8")):
        found = hg.jit(lax.conj)(hnp.ones(2, dtype))
        assert found.dtype == np.dtype(wide) and found.tolist() == [1, 1]
    assert hg.grad(lambda x: hnp.real(lax.conj(x) ** 2))(3.0) == 6.0
    assert hnp.conj(np.ones(2)).dtype == np.float64


def test_orders_of_axes_that_are_none_say_what_is_wrong() -> None:
    x = hnp.zeros((2, 3, 4))
    for f in (hnp.transpose, hnp.permute_dims, lax.transpose):
        for axes, message in (((0, 0, 1), "2 missing; 0 more than once"), ((0, 1), "2 missing"), ((0, 1, 2, 1), "1 more than once")):
            with pytest.raises(ShapeError, match=message):
                f(x, axes)
        with pytest.raises(AxisOutOfRange):
            f(x, (0, 1, 3))
    with pytest.raises(ArgumentError, match="transpose takes a sequence of axes"):
        lax.transpose(x, None)  # type: ignore[arg-type]


def scanned(x: Any) -> Any:
    return lax.scan(lambda c, a: (c * 2 + a, c - a), x[0] * 0, x)


MATRIX = numbers(4, 4)
LINEAR = {
    "scan": scanned,
    "fori_loop": lambda x: lax.fori_loop(0, 3, lambda i, c: MATRIX @ c + i * c, x),
    "cond": lambda x: lax.cond(True, lambda x: x * 2, lambda x: x * 3, x),
    "map": lambda x: lax.map(lambda a: a * 2, x),
    "a checkpoint": hg.checkpoint(lambda x: MATRIX @ x),
    "a checkpoint in a scan": lambda x: lax.scan(hg.checkpoint(lambda c, a: (MATRIX @ c + a, c[0])), x, x),
    "a scan in a scan": lambda x: lax.scan(lambda c, a: (scanned(c)[1] + a, scanned(x)[0]), x, x),
    "jit": hg.jit(lambda x: MATRIX @ x),
    "vmap": hg.vmap(lambda x: x * 2),
    "solve": lambda x: hg.linalg.solve(MATRIX, x),
    "reduce_precision": lambda x: lax.reduce_precision(x, 8, 20),
}


@pytest.mark.costly(2)
@pytest.mark.parametrize("name", LINEAR)
def test_linear_maps_are_transposed(name: str) -> None:
    f = LINEAR[name]
    matrix = lambda g, n: np.stack([np.concatenate([np.ravel(y) for y in hg.tree.leaves(g(e))]) for e in np.eye(n, dtype=np.float32)])  # noqa: E731
    forward = matrix(f, 4)
    out = hg.eval_shape(f, np.zeros(4, np.float32))
    sizes = [int(np.prod(s.shape)) for s in hg.tree.leaves(out)]

    def transposed(v: np.ndarray) -> Any:
        parts = np.split(v, np.cumsum(sizes)[:-1])
        leaves = [p.reshape(s.shape) for p, s in zip(parts, hg.tree.leaves(out), strict=True)]
        return hg.linear_transpose(f, np.zeros(4, np.float32))(hg.tree.unflatten(hg.tree.structure(out), leaves))[0]

    np.testing.assert_allclose(matrix(transposed, sum(sizes)), forward.T, rtol=1e-3, atol=1e-4)


def test_what_is_not_linear_is_refused() -> None:
    for f in (lambda x: x * x, lambda x: hnp.sin(x), hg.vmap(lambda x: x**2)):
        with pytest.raises(DifferentiationError, match="not linear"):
            hg.linear_transpose(f, np.zeros(3, np.float32))


NUMBERS = lax.GatherDimensionNumbers((), (0,), (0,))
X = np.arange(6.0)
REFUSED: dict[str, Callable[[], Any]] = {
    **{f"scan unroll={u!r}": lambda u=u: lax.scan(lambda c, x: (c + x, c), 0.0, X, unroll=u) for u in (-1, 2.5, "a", None)},
    **{f"fori_loop unroll={u!r}": lambda u=u: lax.fori_loop(0, 3, lambda i, c: c + i, 0, unroll=u) for u in (-1, 2.5, "a")},
    "a tuple of a condition": lambda: lax.while_loop(lambda c: (c < 0,), lambda c: c, 0),
    "a complex predicate": lambda: lax.cond(1j, lambda: 1.0, lambda: 2.0),
    "sort flattened": lambda: lax.sort(X, dimension=None),
    "cumsum flattened": lambda: lax.cumsum(X, axis=None),
    "cumprod flattened": lambda: lax.cumprod(X, axis=None),
    "cummax flattened": lambda: lax.cummax(X, axis=None),
    "cummin flattened": lambda: lax.cummin(X, axis=None),
    "precision": lambda: lax.conv_general_dilated(hnp.ones((1, 4, 8)), hnp.ones((4, 4, 3)), (1,), "VALID", precision="bad"),
    "an axis collapsed twice": lambda: lax.gather(X, np.array([[1], [2]]), NUMBERS._replace(collapsed_slice_dims=(0, 0)), (1,)),
}


@pytest.mark.parametrize("case", REFUSED)
def test_arguments_without_a_meaning_are_refused(case: str) -> None:
    with pytest.raises((ArgumentError, DTypeError, ShapeError)):
        REFUSED[case]()


@pytest.mark.parametrize("unroll", [True, False, 0, 1, 3, np.int64(2)])
def test_unroll_changes_nothing(unroll: Any) -> None:
    last, rows = lax.scan(lambda c, x: (c + x, c), 0.0, X, unroll=unroll)
    assert float(last) == 15.0 and rows.shape == (6,)
    assert lax.fori_loop(0, 3, lambda i, c: c + i, 0, unroll=unroll) == 3
