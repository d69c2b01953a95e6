"""NumPy's names beside the standard, against NumPy: values, shapes and types, lazily and jitted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import ArgumentError, DTypeError, ShapeError, TracedValueError
from hologram.trace import tree
from tests.support.needs import of_numpy

R = np.random.default_rng(11)
INTEGERS = {d: R.integers(np.iinfo(d).min // 2, np.iinfo(d).max // 2, (3, 5)).astype(d) for d in (np.int8, np.int32, np.int64, np.uint8, np.uint64)}
FLOATS = {d: (np.exp2(R.uniform(-30, 30, (4, 6))) * R.choice([-1, 1], (4, 6))).astype(d) for d in (np.float32, np.float64)}
EDGES = {d: np.array([0, -0.0, np.inf, -np.inf, np.nan, np.finfo(d).max, np.finfo(d).tiny, np.finfo(d).tiny / 8, 1, -3], d) for d in FLOATS}


def close(got: Any, want: Any, types: bool, rtol: float) -> None:
    gs, ws = tree.leaves(got), tree.leaves(want)
    assert len(gs) == len(ws)
    for g, w in zip(gs, ws, strict=True):
        assert type(g) is hg.Tensor and g.shape == np.shape(w)
        assert not types or g.dtype == np.asarray(w).dtype
        np.testing.assert_allclose(np.asarray(g), w, rtol=rtol, atol=rtol if rtol else 0)


def check(f: Callable[..., Any], *arrays: np.ndarray, types: bool = True, rtol: float = 0.0, jit: bool = True) -> None:
    """``f(namespace, *arrays)`` gives what NumPy's does, lazily and jitted."""
    with np.errstate(all="ignore"):
        want = of_numpy(f, *arrays)
    close(f(hnp, *map(hg.tensor, arrays)), want, types, rtol)
    if jit:
        close(hg.jit(lambda *xs: f(hnp, *xs))(*arrays), want, types, rtol)


# --- integers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", INTEGERS, ids=lambda d: d.__name__)
def test_divisors(d: Any) -> None:
    a = INTEGERS[d] // d(7)
    b = np.where(np.arange(15).reshape(3, 5) % 4 == 0, 0, a[::-1]).astype(d)
    check(lambda xp, a, b: (xp.gcd(a, b), xp.gcd(a, b[0])), a, b)
    small = (a % d(11)).astype(d)
    check(lambda xp, a, b: (xp.lcm(a, b), xp.lcm(a[:1], b)), small, small[::-1].copy())
    low, high = np.iinfo(d).min, np.iinfo(d).max
    ends = np.array([low, low + 1, low // 2, low // 3, 0, 1, 6, high // 2 + 1, high - 1, high, *([-1, -6] if low else [])], d)
    check(lambda xp, a, b: (xp.gcd(a, b), xp.lcm(a, b)), ends[:, None], ends)  # magnitudes that the type does not hold, and products that wrap


@pytest.mark.parametrize("d", INTEGERS, ids=lambda d: d.__name__)
def test_bits(d: Any) -> None:
    assert "popcount" in hg.jit(hnp.bitwise_count).lower(INTEGERS[d]).as_text("canonical")
    check(lambda xp, a: xp.bitwise_count(a), np.concatenate([INTEGERS[d].ravel(), np.array([0, 1, np.iinfo(d).max, np.iinfo(d).min], d)]))


def test_packed_bits() -> None:
    x = INTEGERS[np.uint8]
    for n in (1, 8, 13, 16):
        flags = R.random((3, n)) < 0.5
        check(lambda xp, b: [xp.packbits(b, **o) for o in ({}, {"axis": 1}, {"axis": 0}, {"axis": -1, "bitorder": "little"})], flags)
    options = ({}, {"axis": 1}, {"axis": 0, "bitorder": "little"}, {"axis": 1, "count": 11}, {"count": -7}, {"axis": 1, "count": 60})
    check(lambda xp, x: [xp.unpackbits(x, **o) for o in options], x)


# --- floats ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", FLOATS, ids=lambda d: d.__name__)
def test_parts_of_floats(d: Any) -> None:
    for x in (FLOATS[d], EDGES[d]):
        check(lambda xp, x: (*xp.frexp(x), xp.spacing(x)), x)
    exponents = np.array([0, 1, -1, 40, -40, 200, -200, 1100, -1100, 2200, -2200, 2**30, -(2**30)], np.int32)
    check(lambda xp, x, n: xp.ldexp(x[:, None], n), np.concatenate([FLOATS[d].ravel()[:8], EDGES[d]]), exponents)


def test_ldexp_rounds_once() -> None:
    x = R.uniform(0.5, 1, 200)
    check(lambda xp, x, n: xp.ldexp(x, n), x, R.integers(-1080, -1020, 200).astype(np.int32))
    slope = hg.grad(lambda x: hnp.ldexp(x, 3) + hnp.frexp(x)[0])(np.float64(5.0))
    assert float(slope) == 8.125


def test_half_precision_parts() -> None:
    x = np.array([1.5, 6e-8, -65504, np.inf], np.float16)
    check(lambda xp, x: xp.frexp(x), x)


# --- tables ----------------------------------------------------------------------------------------------------------

X = R.standard_normal((4, 6))
V = R.standard_normal(7)
CUBE = R.standard_normal((3, 3, 3))
POINTS = R.standard_normal((200, 3))

TABLE: dict[str, Callable[..., Any]] = {
    "around": lambda xp, x: (xp.around(x, 2), xp.around(x)),
    "apply_along_axis": lambda xp, x: [
        xp.apply_along_axis(f, a, x) for a in (0, 1, -1) for f in (lambda r: r.sum(), lambda r: r * 2, lambda r: xp.outer(r[:2], r[1:4]))
    ],
    "apply_over_axes": lambda xp, x: (xp.apply_over_axes(xp.sum, x, (0, 1)), xp.apply_over_axes(xp.cumsum, x, [1])),
    "piecewise": lambda xp, x: (
        xp.piecewise(x, [x < -0.5, x > 0.5], [-1, lambda v: v * v]),
        xp.piecewise(x, [x < 0, x > 1], [lambda v, k: v - k, 2.0, lambda v, k: v + k], 3.0),
    ),
    "block": lambda xp, x: (xp.block([[x, x[:, :1]], [x[:2], x[2:, :1]]]), xp.block([x[0], x[1], 3.0]), xp.block(x)),
    "resize": lambda xp, x: (xp.resize(x, (5, 7)), xp.resize(x, 3), xp.resize(x, (2, 0)), xp.resize(x[:0], (2, 2))),
    "rollaxis": lambda xp, x: [xp.rollaxis(x[None], a, s) for a in (0, 1, -1) for s in (0, 1, 3)],
    "indices_from": lambda xp, x: (*xp.tril_indices_from(x), *xp.triu_indices_from(x, 1), *xp.diag_indices_from(x[:4, :4])),
    "mask_indices": lambda xp, x: (*xp.mask_indices(4, xp.triu, 1), *xp.mask_indices(3, xp.tril)),
    "matvec": lambda xp, x: (xp.matvec(x, x[0]), xp.matvec(x[None], x), xp.vecmat(x[:, 0], x), xp.vecmat(x.T, x)),
    "grids": lambda xp, x: (xp.mgrid[0:3, 1:5:2], xp.ogrid[0:3, 1:5:2], xp.mgrid[2:5]),
    "joined": lambda xp, x: (xp.r_[x[0], 3.0, 1.0:4.0], xp.c_[x[0], x[1]], xp.c_[x, x], x[xp.s_[1:3, ::2]], x[xp.index_exp[1]]),
    "shape and size": lambda xp, x: [xp.asarray(n) for n in (*xp.shape(x), xp.size(x), xp.size(x, 1))],
    "histogram2d": lambda xp, x: (
        *xp.histogram2d(POINTS[:, 0], POINTS[:, 1], bins=(4, 3)),
        *xp.histogram2d(POINTS[:, 0], POINTS[:, 1], bins=[-1.0, 0.0, 0.5], density=True),
    ),
    "histogramdd": lambda xp, x: xp.histogramdd(POINTS, bins=3, range=[(-2, 2), (-1, 1), (-3, 3)], density=True, weights=POINTS[:, 0] ** 2),
    "polynomials": lambda xp, x: [
        f(a, b) for f in (xp.polyadd, xp.polysub, xp.polymul) for a, b in ((x[0], x[1, :3]), (x[1, :3], x[0]), (x[0], x[1]))
    ],
    "polyder": lambda xp, x: [*[xp.polyder(x[0], m) for m in range(4)], *[xp.polyint(x[0], m) for m in range(3)], xp.polyint(x[0], 2, [1.5, -2.0])],
    "poly": lambda xp, x: (xp.poly(x[0]), xp.poly(x[0, :1]), *xp.polydiv(x[0], x[1, :3]), *xp.polydiv(x[0], x[1, :1])),
    "polyfit": lambda xp, x: (xp.polyfit(x[0], x[1], 2), xp.polyfit(x[0], x[1:4].T, 3), xp.polyfit(x[0], x[1], 1, w=x[2] ** 2)),
    "unwrap": lambda xp, x: xp.unwrap(x * 7),
    "vander": lambda xp, x: (xp.vander(x[0], 3), xp.vander(x[0], increasing=True)),
    "sinc": lambda xp, x: xp.sinc(x),
    "i0": lambda xp, x: xp.i0(x * 9),
    "complex vecmat": lambda xp, x: xp.vecmat(x[:, 0] + 1j, x * 1j),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLE)
def test_table(name: str) -> None:
    check(TABLE[name], X, types=False, rtol=1e-10, jit=name != "mask_indices")


@pytest.mark.parametrize("name", ["bartlett", "blackman", "hamming", "hanning"])
def test_windows(name: str) -> None:
    for n in (0, 1, 2, 7, 8):
        close(getattr(hnp, name)(n), getattr(np, name)(n), False, 1e-6)
    close(hnp.kaiser(9, 8.6), np.kaiser(9, 8.6), False, 1e-6)


def test_values_that_decide_shapes() -> None:
    x = np.array([0, 0, 3, 0, 5, 0])
    for trim in ("fb", "f", "b"):
        close(hnp.trim_zeros(x, trim), np.trim_zeros(x, trim), True, 0)
    assert hnp.trim_zeros(x[:2]).shape == (0,)
    np.testing.assert_allclose(np.sort_complex(np.asarray(hnp.roots(V))), np.sort_complex(np.roots(V)), rtol=1e-9)
    for f in (hnp.trim_zeros, hnp.roots):
        with pytest.raises(TracedValueError):
            hg.jit(f)(V)


# --- what NumPy does in place ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (7, 3), (3, 3, 3)])
@pytest.mark.parametrize("wrap", [False, True])
def test_fill_diagonal(shape: tuple[int, ...], wrap: bool) -> None:
    for values in (7.0, [1.0, 2.0]):
        want = np.arange(np.prod(shape), dtype=np.float64).reshape(shape)
        got = hnp.fill_diagonal(want, values, wrap=wrap)
        np.fill_diagonal(want, values, wrap=wrap)
        np.testing.assert_array_equal(got, want)


def test_place_and_put() -> None:
    for mask in (X > 0, X > 100, X < 100):
        want = X.copy()
        np.place(want, mask, [1.0, 2.0, 3.0])
        np.testing.assert_array_equal(hnp.place(X, mask, [1.0, 2.0, 3.0]), want)
        np.testing.assert_array_equal(hg.jit(lambda x, m: hnp.place(x, m, [1.0, 2.0, 3.0]))(X, mask), want)
    want = X.copy()
    np.put(want, [0, -1, 5], [1.0, 2.0])
    np.testing.assert_array_equal(hnp.put(X, [0, -1, 5], [1.0, 2.0]), want)


# --- kinds and types -------------------------------------------------------------------------------------------------


def test_kinds_of_types() -> None:
    for d in (np.int8, np.uint16, np.float32, np.float64, np.bool_, np.complex64):
        for kind in (np.generic, np.number, np.inexact, np.floating, np.integer, np.signedinteger, np.unsignedinteger, np.complexfloating, d):
            assert hnp.issubdtype(d, kind) == np.issubdtype(d, kind)
    assert hnp.issubdtype(hnp.bfloat16, hnp.floating) and not hnp.issubdtype(hnp.bfloat16, hnp.integer)
    assert hnp.issubdtype(hnp.ones(2), hnp.float32) and not hnp.issubdtype(hnp.float32, hnp.float64)
    assert [hnp.isscalar(x) for x in (1, 2.0, np.int8(1), hnp.ones(()), hnp.ones(1))] == [True, True, True, True, False]
    assert [hnp.iterable(x) for x in ([1], hnp.ones(2), hnp.ones(()), 3)] == [True, True, False, False]


def test_vectorize() -> None:
    f = hnp.vectorize(lambda a, b: hnp.where(a > b, a - b, a + b))
    np.testing.assert_allclose(f(X, X[0]), np.where(X > X[0], X - X[0], X + X[0]))
    assert float(f(1.0, 2.0)) == 3.0


@pytest.mark.parametrize(
    ("error", "work"),
    [
        (DTypeError, lambda: hnp.gcd(1.0, 2)),
        (DTypeError, lambda: hnp.bitwise_count(1.5)),
        (DTypeError, lambda: hnp.packbits(X)),
        (ArgumentError, lambda: hnp.packbits(X > 0, bitorder="middle")),
        (DTypeError, lambda: hnp.unpackbits(np.ones(3, np.int32))),
        (DTypeError, lambda: hnp.ldexp(X, 1.5)),
        (DTypeError, lambda: hnp.spacing(np.ones(2, np.float16))),
        (ArgumentError, lambda: hnp.hanning(3.5)),
        (ShapeError, lambda: hnp.polyadd(X, X)),
        (ShapeError, lambda: hnp.polydiv(V, [])),
        (ArgumentError, lambda: hnp.polyder(V, -1)),
        (ShapeError, lambda: hnp.polyfit(V, V[1:], 1)),
        (ShapeError, lambda: hnp.polyint(V, 2, [1.0, 2.0, 3.0])),
        (ArgumentError, lambda: hnp.block([[X], X])),
        (ArgumentError, lambda: hnp.piecewise(X, [X > 0], [1, 2, 3])),
        (ShapeError, lambda: hnp.apply_over_axes(lambda x, a: x.sum(), X, 0)),
        (ArgumentError, lambda: hnp.r_["0,2", 1]),
        (ShapeError, lambda: hnp.fill_diagonal(V, 1)),
        (ShapeError, lambda: hnp.fill_diagonal(CUBE[:2], 1)),
        (ShapeError, lambda: hnp.place(X, X[0] > 0, 1.0)),
        (ShapeError, lambda: hnp.matvec(V, V)),
        (ArgumentError, lambda: hnp.histogramdd(POINTS, bins=[2, 2])),
    ],
)  # fmt: skip
def test_errors(error: Any, work: Any) -> None:
    with pytest.raises(error):
        work()


def test_float_power_of_complex_numbers() -> None:
    check(lambda xp, z: (xp.float_power(z, 2), xp.float_power(z, z)), np.array([1 + 2j, -1j, 3], np.complex64), rtol=1e-12)
