"""Arguments by position mean what they mean in NumPy, SciPy and JAX: an argument in another's place would be a wrong number without an error."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import scipy.special

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import ArgumentError, DTypeError, ShapeError
from hologram.trace import tree

R = np.random.default_rng(5)
X = R.standard_normal((3, 3))
W = np.array([1.0, 5.0, 2.0])


def check(f: Callable[..., Any], *arrays: np.ndarray, rtol: float = 0.0) -> None:
    """``f(namespace, *arrays)`` gives what NumPy's does, lazily and jitted."""
    want = tree.leaves(f(np, *arrays))
    for got in (f(hnp, *map(hg.tensor, arrays)), hg.jit(lambda *xs: f(hnp, *xs))(*arrays)):
        for g, w in zip(tree.leaves(got), want, strict=True):
            assert g.shape == np.shape(w)
            np.testing.assert_allclose(g, w, rtol=rtol, atol=rtol)


# what comes first in NumPy stands under another name, or its place is one where nothing but None has a meaning
SAME = {
    "repetitions": "reps", "sections": "indices_or_sections", "x1": "a", "x2": "b", "n_rows": "N", "n_cols": "M", "values": "vals", "which": "a",
    "conditions": "condlist", "choices": "choicelist", "indices": "ind",
}  # fmt: skip
LIBRARIES = [
    (hnp, "numpy", "jax.numpy"),
    (hg.linalg, "numpy.linalg", "jax.numpy.linalg"),
    (hg.fft, "numpy.fft", "scipy.fft"),
    (hg.nn, "jax.nn"),
    (hg.random, "jax.random"),
    (hg.lax, "jax.lax"),
    *[(getattr(hg.scipy, m), f"scipy.{m}") for m in ("interpolate", "linalg", "ndimage", "signal", "special")],
]
ELSEWHERE = {
    "dot_product_attention": "PyTorch's order, and its layout: docs/from_numpy_and_jax.md",
    "map_coordinates": "JAX's order",
    "sqrtm": "JAX's order",
}


def by_position(f: Any) -> list[str]:
    try:
        parameters = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


def misplaced(here: list[str], there: list[str]) -> list[tuple[str, str]]:
    """Options that stand where another option is expected: positions from the first that both name as options."""
    pairs = list(zip(here, there, strict=False))
    return [(a, b) for i, (a, b) in enumerate(pairs) if i and a != b and SAME.get(a, a) != b and (a in there or b in here or i > 2)]


def functions(module: ModuleType) -> Iterator[tuple[str, Callable[..., Any]]]:
    for name in dir(module):
        f = getattr(module, name)
        if not name.startswith("_") and callable(f) and not inspect.isclass(f) and name not in ELSEWHERE:
            yield name, f


@pytest.mark.parametrize("here, names", [(m, names) for m, *names in LIBRARIES], ids=lambda x: getattr(x, "__name__", ""))
def test_options_stand_where_libraries_have_them(here: ModuleType, names: list[str]) -> None:
    found = []
    for name in names:
        try:
            found.append(importlib.import_module(name))
        except ImportError:
            print(f"{name} is not installed: its positions are not compared")
    wrong = {}
    for name, f in functions(here):
        theirs = [by_position(getattr(m, name)) for m in found if callable(getattr(m, name, None)) and not inspect.isclass(getattr(m, name))]
        theirs = [t for t in theirs if t and t[0] != "x1"]  # ufuncs' data stand first, and nothing else
        if theirs and all(misplaced(by_position(f), t) for t in theirs):
            wrong[name] = (by_position(f), theirs)
    assert not wrong


REDUCED = """
    all any argmax argmin amax amin max min mean prod sum std var ptp median
    nanmax nanmin nanargmax nanargmin nanmean nanmedian nansum nanprod nanstd nanvar
"""


@pytest.mark.parametrize("name", REDUCED.split())
def test_what_stands_behind_out(name: str) -> None:
    """All of NumPy's arguments by position, of functions and methods; an array for results is refused."""
    places = by_position(getattr(np, name))[2:]
    given = {"dtype": np.dtype("float64"), "out": None, "overwrite_input": False, "keepdims": True, "ddof": 1, "initial": 3.0, "where": X > 0}
    values = [given[p] for p in places if not name.startswith("nan") or p not in ("initial", "where")]
    check(lambda xp, x: getattr(xp, name)(x, 0, *values), X, rtol=1e-12)
    if hasattr(X, name) and name not in ("all", "any"):  # whose methods take dtype in front of out, against what NumPy says of them
        np.testing.assert_allclose(getattr(hg.tensor(X), name)(0, *values), getattr(X, name)(0, *values), rtol=1e-12)
    at = places.index("out")
    for wrong in (np.zeros(3), True):
        with pytest.raises(ArgumentError, match="keepdims=True" if wrong is True and "keepdims" in by_position(getattr(hnp, name)) else "out="):
            getattr(hnp, name)(X, 0, *values[:at], wrong)
    with pytest.raises(TypeError):
        getattr(hnp, name)(X, 0, *values[:at], None, out=None)


BEHIND: list[Callable[..., Any]] = [
    lambda xp, x: xp.cumsum(x, 0, np.float64, None), lambda xp, x: xp.clip(x, -0.5, 0.5, None), lambda xp, x: xp.round(x, 1, None),
    lambda xp, x: xp.percentile(x, [20, 70], 0, None, False, "nearest", True), lambda xp, x: xp.nanquantile(x, 0.3, 1, None, True, "lower"),
    lambda xp, x: xp.take(x, xp.asarray([0, 5, -7]), 1, None, "clip"), lambda xp, x: xp.trace(x, 1, 0, 1, None, None),
    lambda xp, x: xp.concatenate([x, x], 1, None), lambda xp, x: xp.stack([x, x], 1, None), lambda xp, x: xp.dot(x, x, None),
    lambda xp, x: xp.outer(x, x, None), lambda xp, x: xp.compress([True, False, True], x, 1, None),
    lambda xp, x: xp.choose(xp.asarray([2, 0, 1]), [x[0], x[1], x[2]], None, "wrap"), lambda xp, x: xp.sort(x, 0, "stable", None),
    lambda xp, x: xp.argsort(x, -1, None), lambda xp, x: xp.partition(x, 1, 0, "introselect"), lambda xp, x: xp.zeros((2, 3), np.float64, "F"),
    lambda xp, x: xp.full_like(x, 2.0, None, "K", True, (4, 2)), lambda xp, x: xp.ones_like(x, np.int32, "C", False, (2,)),
    lambda xp, x: xp.copy(x, "K"),
    lambda xp, x: x.clip(-0.5, 0.5, None), lambda xp, x: x.round(1, None), lambda xp, x: x.take(xp.asarray([0, 5]), 1, None, "wrap"),
    lambda xp, x: x.cumprod(1, None, None), lambda xp, x: x.argsort(0, "stable"), lambda xp, x: x.dot(x, None),
    lambda xp, x: x.compress([True], 0, None),
]  # fmt: skip


@pytest.mark.parametrize("call", BEHIND)
def test_neutral_arguments_at_their_places(call: Callable[..., Any]) -> None:
    check(call, X, rtol=1e-12)


def test_averages() -> None:
    check(lambda xp, x, w: [xp.average(x, 0, w), xp.average(x, axis=1, weights=w), xp.average(x, weights=x), xp.average(x)], X, W, rtol=1e-12)
    check(
        lambda xp, x, w: [xp.average(x, 0, w, True), xp.average(x, None, None, True), xp.average(x, 1, x * x, True, keepdims=True)], X, W, rtol=1e-12
    )
    cube, weights = R.standard_normal((3, 2, 3)), R.uniform(1, 2, (3, 3))
    check(lambda xp, x, w: [xp.average(x, (0, 2), w), xp.average(x, (2, 0), w), xp.average(x, (-1, 0), w)], cube, weights, rtol=1e-12)
    check(lambda xp, x, w: xp.average(x, 1, w), R.standard_normal((4, 3)), np.array([2, 1, 1]))
    for axis, w in ((None, W), (0, W[:2]), (0, X[:, :1])):
        with pytest.raises(ShapeError, match="average"):
            hnp.average(X, axis, w)


def test_crosses_of_axes() -> None:
    y = R.standard_normal((3, 3))
    check(lambda xp, x, y: [xp.cross(x, y, 0), xp.cross(x, y, 0, 1, 0), xp.cross(x, y, axisc=0), xp.cross(x, y, axis=0)], X, y, rtol=1e-12)


def test_nan_to_num_by_position() -> None:
    check(lambda xp, x: [xp.nan_to_num(x, True), xp.nan_to_num(x, True, 7.0, 8.0, 9.0)], np.array([1.0, np.nan, np.inf, -np.inf]))
    check(lambda xp, x: xp.nan_to_num(x, True, 2.0), np.array([1 + 1j, complex(np.nan, 1)]))
    with pytest.raises(ArgumentError, match="copy=False"):
        hnp.nan_to_num(X, False)


@pytest.mark.parametrize("axis", [None, 0, (1, 0), -1])
def test_logsumexp_of_factors(axis: Any) -> None:
    b = np.where(X > 0.5, 0.0, R.standard_normal(X.shape))
    x = np.where(b == 0, np.inf, 700 * X)  # a factor of 0 hides what it is of
    for keepdims in (False, True):
        for want in (scipy.special.logsumexp(x, axis, b, keepdims, True),):
            for f in (hnp.logsumexp, hg.scipy.special.logsumexp, hg.jit(hg.nn.logsumexp, static_argnums=(1, 3, 4))):
                got = f(x, axis, b, keepdims, True)
                np.testing.assert_allclose(got[0], want[0], rtol=1e-12)
                np.testing.assert_array_equal(got[1], want[1])
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(hnp.logsumexp(X, axis, b), scipy.special.logsumexp(X, axis, b), rtol=1e-12)
    some = X > -0.3
    np.testing.assert_allclose(hnp.logsumexp(X, axis, where=some), np.log(np.sum(np.exp(X), axis, where=some)), rtol=1e-12)
    np.testing.assert_allclose(hg.nn.logmeanexp(X, axis, some), np.log(np.mean(np.exp(X), axis, where=some)), rtol=1e-12)


def test_logsumexp_of_factors_has_derivatives() -> None:
    b = np.array([1.0, 0.0, -0.25])
    x = np.array([0.3, 0.1, -1.0])
    slopes = b * np.exp(x) / np.sum(b * np.exp(x))
    np.testing.assert_allclose(hg.grad(lambda x: hnp.logsumexp(x, b=b))(x), slopes, rtol=1e-12)
    np.testing.assert_allclose(hg.grad(lambda b: hnp.logsumexp(x, b=b))(b), np.exp(x) / np.sum(b * np.exp(x)), rtol=1e-12)


def test_standardize_with_given_moments() -> None:
    nn = hg.nn
    np.testing.assert_allclose(nn.standardize(X, 0, X.mean(0), X.var(0)), nn.standardize(X, 0), rtol=1e-12)
    np.testing.assert_allclose(nn.standardize(X, 1, 2.0, 4.0, 0.0), (X - 2.0) / 2.0, rtol=1e-12)
    some = np.arange(3) < 2
    want = (X - X[:, :2].mean(1, keepdims=True)) / np.sqrt(X[:, :2].var(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(nn.standardize(X, where=some), want, rtol=1e-12)


@pytest.mark.parametrize("b", [None, np.array([1.0, 2.0, -1.0])], ids=["no factors", "factors"])
def test_logsumexp_of_complex_numbers(b: Any) -> None:
    x = np.array([1 + 1j, 2 - 4j, -2 + 3j])
    np.testing.assert_allclose(hnp.logsumexp(x, b=b), scipy.special.logsumexp(x, b=b), rtol=1e-12)
    logs, signs = hnp.logsumexp(x, b=b, return_sign=True)
    wanted = scipy.special.logsumexp(x, b=b, return_sign=True)
    assert logs.dtype == np.float64
    np.testing.assert_allclose(logs, wanted[0], rtol=1e-12)
    np.testing.assert_allclose(signs, wanted[1], rtol=1e-12)
    np.testing.assert_allclose(hnp.logsumexp(np.array([2 + 10j])), np.log(np.exp(2 + 10j)), rtol=1e-12)


@pytest.mark.parametrize("name", ["mean", "var", "std", "nanmean", "nanvar", "nanstd"])
def test_statistics_in_integers_are_an_error_of_types(name: str) -> None:
    for x in (X, np.arange(3)):
        with pytest.raises(DTypeError, match=f"{name} is computed in floats"):
            getattr(hnp, name)(x, dtype="int32")


def test_asarray_takes_a_type_by_position() -> None:
    assert hnp.asarray([1, 2], np.float32).dtype == np.float32
    assert hg.asarray(np.zeros(2), "int8").dtype == np.int8


def test_polyfit_takes_options_by_position() -> None:
    check(lambda xp, x, y, w: xp.polyfit(x, y, 1, None, False, w), np.arange(3.0), X[0], W, rtol=1e-9)
    with pytest.raises(ArgumentError, match="full and cov"):
        hnp.polyfit(np.arange(3.0), X[0], 1, None, True)


def test_modes_of_positions_in_flattened_arrays() -> None:
    indices = (np.array([0, -1, 5, 2]), np.array([3, 7, -9, 0]))
    for mode in ("wrap", "clip"):
        for order in "CF":
            np.testing.assert_array_equal(hnp.ravel_multi_index(indices, (3, 4), mode, order), np.ravel_multi_index(indices, (3, 4), mode, order))
    with pytest.raises(ArgumentError, match="mode"):
        hnp.ravel_multi_index(indices, (3, 4), "F")


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "uint32", "uint64"])
def test_positions_in_flattened_arrays_are_int64(kind: str) -> None:
    shape, indices = (100, 300), (np.array([99, 100 - 1], kind), np.array([2, 120], kind))
    flat = np.array([120, 7], kind)
    for f, g in (
        (hnp.ravel_multi_index, hnp.unravel_index),
        (hg.jit(hnp.ravel_multi_index, static_argnums=1), hg.jit(hnp.unravel_index, static_argnums=1)),
    ):
        got = (f(indices, shape), *g(flat, shape))
        for found, want in zip(got, (np.ravel_multi_index(indices, shape), *np.unravel_index(flat, shape)), strict=True):
            assert found.dtype == np.int64
            np.testing.assert_array_equal(found, want)


def test_positions_in_flattened_arrays_are_integers() -> None:
    for call in (lambda: hnp.unravel_index(0.5, (2, 2)), lambda: hnp.ravel_multi_index(([0.5], [0]), (2, 2)), lambda: hnp.unravel_index(X, (9, 9))):
        with pytest.raises(DTypeError, match="integers"):
            call()


def test_complex_geomspace_of_real_ends_goes_through_the_plane() -> None:
    want = np.geomspace(-1, 16, 5, dtype=np.complex128)
    for ends in ((-1, 16), (np.float64(-1), 16.0), (hg.tensor(np.float64(-1)), 16)):
        np.testing.assert_allclose(hnp.geomspace(*ends, 5, dtype="complex128"), want, rtol=1e-12, atol=1e-12)
    with pytest.raises(ArgumentError, match="end is 0"):
        hnp.geomspace(0, 10)
