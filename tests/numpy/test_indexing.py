"""Indices of all kinds, read and written, against NumPy; what is out of range; assignments."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import ArgumentError, DTypeError, IndexOutOfRange, ShapeError, TracedValueError

X = np.random.default_rng(0).standard_normal((4, 5, 6)).astype(np.float32)
L, J, K = np.array([0, 2, -1, 2]), np.array([[1], [3]]), np.array([[0, 1], [4, -2]])

KEYS: dict[str, Any] = {
    "integer": np.index_exp[1],
    "integers": np.index_exp[1, 2, 3],
    "slice": np.index_exp[1:3],
    "steps": np.index_exp[::2, ::-1],
    "negative step": np.index_exp[3:0:-2, 1, ...],
    "None and Ellipsis": np.index_exp[None, ..., 2],
    "all": np.index_exp[()],
    "nothing": np.index_exp[3:1],
    "array": np.index_exp[L],
    "array on axis 1": np.index_exp[:, L],
    "arrays apart": np.index_exp[L, :, L],
    "arrays together": np.index_exp[L, L],
    "integer and array apart": np.index_exp[0, :, L],
    "integer and array": np.index_exp[0, L],
    "slice, integer, array": np.index_exp[:, 0, L],
    "array, None, slice, integer": np.index_exp[L, None, :, 1],
    "arrays across None": np.index_exp[:, L, None, 1],
    "arrays across an Ellipsis of no axes": np.index_exp[None, L, ..., 1, 2],
    "integer and array across an Ellipsis of no axes": np.index_exp[None, 1, ..., L, 2],
    "Ellipsis of no axes before arrays": np.index_exp[None, ..., L, 1, 2],
    "Ellipsis of no axes behind arrays": np.index_exp[None, L, 1, 2, ...],
    "arrays broadcast": np.index_exp[J, K],
    "array at the end": np.index_exp[..., K],
    "slices and an array": np.index_exp[1:3, K, ::2],
    "flip and an array": np.index_exp[::2, J, ::-1],
    "empty slice and an array": np.index_exp[2:2, L],
    "list": np.index_exp[[0, 1], [1, 2], [2, 3]],
    "empty list": np.index_exp[[]],
    "array of no axes": np.index_exp[np.array(2)],
    "mask of all": np.index_exp[X > 0],
    "mask of two axes": np.index_exp[X[:, :, 0] > 0],
    "mask of the last axes": np.index_exp[:, X[0] > 0],
    "mask and array": np.index_exp[X[:, 0, 0] > 0, :, L[:1]],
    "True": np.index_exp[True],
    "False": np.index_exp[False],
    "None, True, integer": np.index_exp[None, True, 1],
}
each_key = pytest.mark.parametrize("name", KEYS)


@each_key
def test_reading(name: str) -> None:
    key = KEYS[name]
    got, want = np.asarray(hnp.asarray(X)[key]), X[key]
    assert got.shape == want.shape and got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


@each_key
def test_setting(name: str) -> None:
    key = KEYS[name]
    chosen = X[key]
    values = np.random.default_rng(1).standard_normal(chosen.shape).astype(np.float32)
    for v in (values, 7.0, values[..., :1] if chosen.ndim else values):
        want = X.copy()
        want[key] = v
        np.testing.assert_array_equal(hnp.asarray(X).at[key].set(v), want)
    assigned, want = hnp.array(X), X.copy()
    assigned[key] = values
    want[key] = values
    np.testing.assert_array_equal(assigned, want)


UFUNCS = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide, "min": np.minimum, "max": np.maximum}


@each_key
def test_updating(name: str) -> None:
    key = KEYS[name]
    values = np.random.default_rng(2).uniform(0.5, 2, X[key].shape).astype(np.float32)
    results = hg.jit(lambda x, v: [getattr(x.at[key], method)(v) for method in UFUNCS])(X, values)
    for got, ufunc in zip(results, UFUNCS.values(), strict=True):
        want = X.copy()
        ufunc.at(want, key, values)
        np.testing.assert_allclose(got, want, rtol=1e-6)


MIXED: dict[str, Any] = {
    "element": lambda i, j: np.index_exp[i, j, 2],
    "row": lambda i, j: np.index_exp[i],
    "column": lambda i, j: np.index_exp[:, i],
    "window": lambda i, j: np.index_exp[i, 1:4, j],
    "last": lambda i, j: np.index_exp[..., i],
    "steps": lambda i, j: np.index_exp[i, ::2, ::-1],
    "scalars apart": lambda i, j: np.index_exp[i, :, j],
    "scalar and array": lambda i, j: np.index_exp[i, K, 1:3],
    "new axes": lambda i, j: np.index_exp[None, i, None, -1],
    "empty": lambda i, j: np.index_exp[i, 3:1],
}


@pytest.mark.costly(2)
@pytest.mark.parametrize("name", MIXED)
def test_computed_integers_among_others(name: str) -> None:
    """Read, set and added to eagerly, jitted, stacked and differentiated; negative ones count from the end."""
    key = MIXED[name]
    read = lambda x, i, j: hnp.asarray(x)[key(i, j)]  # noqa: E731
    put = lambda x, v, i, j: hnp.asarray(x).at[key(i, j)].set(v)  # noqa: E731
    more = lambda x, v, i, j: hnp.asarray(x).at[key(i, j)].add(v)  # noqa: E731
    jitted = [hg.jit(f) for f in (read, put, more)]
    pairs = [(0, 0), (3, -1), (-4, 2), (-1, 3)]
    for i, j in pairs:
        want = X[key(i, j)]
        v = np.random.default_rng(1).standard_normal(want.shape).astype(np.float32)
        changed, added = X.copy(), X.copy()
        changed[key(i, j)] = v
        np.add.at(added, key(i, j), v)
        at = hnp.asarray(i), hnp.asarray(j, dtype="int32")
        for functions in ((read, put, more), jitted):
            np.testing.assert_array_equal(functions[0](hnp.asarray(X), *at).numpy(), want)
            np.testing.assert_array_equal(functions[1](hnp.asarray(X), v, *at).numpy(), changed)
            np.testing.assert_allclose(functions[2](hnp.asarray(X), v, *at).numpy(), added, rtol=1e-6)
        back = np.zeros_like(X)
        np.add.at(back, key(i, j), v)
        _, pull = hg.vjp(lambda x, at=at: read(x, *at), X)
        np.testing.assert_allclose(pull(v)[0].numpy(), back)
        _, pull = hg.vjp(lambda x, v, at=at: put(x, v, *at), X, v)
        dx, dv = pull(X)
        kept = X.copy()
        kept[key(i, j)] = 0
        np.testing.assert_array_equal(dx.numpy(), kept)
        if name != "scalar and array":  # of several updates of one element the last has the cotangent
            np.testing.assert_array_equal(dv.numpy(), want)
    many = tuple(np.array(column) for column in zip(*pairs, strict=True))
    stack = np.stack([X + k for k in range(4)])
    np.testing.assert_array_equal(hg.vmap(read)(stack, *many).numpy(), [stack[k][key(i, j)] for k, (i, j) in enumerate(pairs)])
    np.testing.assert_array_equal(hg.vmap(read, (None, 0, 0))(X, *many).numpy(), [X[key(i, j)] for i, j in pairs])
    for k, (i, j) in enumerate(pairs):
        stack[k][key(i, j)] = 7
    given = np.stack([X + k for k in range(4)])
    np.testing.assert_array_equal(hg.vmap(lambda x, i, j: put(x, 7.0, i, j))(given, *many).numpy(), stack)


@pytest.mark.parametrize("name", [n for n in MIXED if n != "empty"])
def test_mixed_indices_are_one_gather_or_scatter_of_their_window(name: str) -> None:
    key = MIXED[name]
    for f, op in ((lambda x, i, j: x[key(i, j)], "gather"), (lambda x, i, j: x.at[key(i, j)].set(1.0), "scatter_set")):
        text = hg.jit(f).lower(X, 1, 2).as_text("canonical")
        others = "scatter_set" if op == "gather" else "gather"
        assert text.count(f"{op} ") == 1 and not any(word in text for word in (others, "slice %0", "pad ", "transpose %0"))


def test_bools_are_combined_as_such() -> None:
    x = hnp.array([True, False, False, True])
    assert np.asarray(x.at[np.array([1, 1, 0])].add([True, True, False])).tolist() == [True, True, False, True]
    assert np.asarray(x.at[np.array([0, 1])].multiply([False, True])).tolist() == [False, False, False, True]


def test_computed_indices_out_of_range() -> None:
    x, i = np.arange(4, dtype=np.float32), np.array([0, 5, -1, -9, 1])
    read, filled, added, clipped = hg.jit(
        lambda x, i: (x[i], x.at[i].get(mode="fill"), x.at[i].add(1.0), x.at[i].set(9.0, mode="clip")),
    )(x, i)
    np.testing.assert_array_equal(read, [0, 3, 3, 0, 1])
    np.testing.assert_array_equal(filled, [0, np.nan, 3, np.nan, 1])
    np.testing.assert_array_equal(added, [1, 2, 2, 4])
    np.testing.assert_array_equal(clipped, [9, 9, 2, 9])


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "complex64"])
def test_what_is_filled_by_default(dtype: str) -> None:
    """As a gather of ``hologram.lax`` fills."""
    x, numbers = hnp.zeros(3, dtype=dtype), hg.lax.GatherDimensionNumbers((), (0,), (0,))
    got = x.at[np.array([0, 7])].get(mode="fill")
    assert got.dtype == x.dtype
    np.testing.assert_array_equal(got, hg.lax.gather(x, np.array([[0], [7]]), numbers, (1,), mode="fill"))
    limits = {"bool": True, "int8": -128, "uint64": 2**64 - 1}
    np.testing.assert_array_equal(got[1], np.asarray(limits.get(dtype, np.nan), dtype))


def test_several_computed_indices_out_of_range() -> None:
    x, i = np.arange(4, dtype=np.float32).reshape(2, 2), np.array([0, 5, -1, -9, 1])
    read, filled, written = hg.jit(lambda x, i: (x[i, i], x.at[i, -i].get(mode="fill", fill_value=-1.0), x.at[i, i].set(9.0)))(x, i)
    np.testing.assert_array_equal(read, [0, 3, 3, 0, 3])
    np.testing.assert_array_equal(filled, [0, -1, 3, -1, 3])
    np.testing.assert_array_equal(written, [[9, 1], [2, 9]])


@pytest.mark.parametrize(
    ("error", "work"),
    [
        (IndexOutOfRange, lambda x: x[9]),
        (IndexOutOfRange, lambda x: x[np.array([9])]),
        (IndexOutOfRange, lambda x: x[1, 1, 1, 1]),
        (IndexOutOfRange, lambda x: x[..., ...]),
        (IndexOutOfRange, lambda x: x[np.ones(3, bool)]),
        (IndexOutOfRange, lambda x: x.at[9].set(1)),
        (IndexOutOfRange, lambda x: x.at[[7]].set(1)),
        (ShapeError, lambda x: x.at[:2].set(np.ones(9))),
        (ShapeError, lambda x: x[np.zeros(3, int), np.zeros(2, int)]),
        (ShapeError, lambda x: x[np.zeros(0, int), np.zeros(2, int)]),
        (ShapeError, lambda x: x.at[np.zeros((2, 3), int), [0, 1]].add(1)),
        (ShapeError, lambda x: x.at[[0, 1]].set(np.ones(9))),
        (DTypeError, lambda x: x[np.array([0.5])]),
        (DTypeError, lambda x: x.at[0].set(1j)),
        (ArgumentError, lambda x: x["a"]),
        (ArgumentError, lambda x: x.at[0].set(1, mode="wrap")),
        (TracedValueError, hg.jit(lambda x: x[x > 0])),
        (TracedValueError, hg.jit(lambda x: x.at[x > 0].set(np.ones(7)))),
    ],
)
def test_errors(error: Any, work: Any) -> None:
    with pytest.raises(error):
        work(hnp.asarray(X))


# --- known indices out of range --------------------------------------------------------------------------------------

BEYOND: list[tuple[Any, ...]] = [
    (9,), (-9,), (1, 9), (9, 1), (slice(None), -9), (slice(1, None), 9, slice(None, None, -1)), (9, slice(None), 1), (Ellipsis, 99),
    (9, slice(None), 9), ([0, 9, -1, -9],), (slice(None), [0, 9]), ([0, 9], [5, 0]), ([0, 3, -9], slice(None), [1, 9, 0]), (9, [0, 1]),
    (1, slice(None), [[0], [-7]]), (None, 9), ([[0, 9]], None, 1), (0, 2, 1), (np.uint64(2**63), 0), (np.array([1, 2**63], np.uint64),),
    (10**30,), ([True, False, True, True], 9),
]  # fmt: skip


def resolved(key: tuple[Any, ...], shape: tuple[int, ...], beyond: Callable[[int, int], int]) -> tuple[Any, ...]:
    """``key`` with indices counted from the front, and ``beyond(index, extent)`` for those out of range."""
    rest = len(shape) - sum(p is not None and p is not Ellipsis for p in key)
    dots = [i for i, p in enumerate(key) if p is Ellipsis] or [len(key)]
    parts = [*key[: dots[0]], *[slice(None)] * rest, *key[dots[0] + 1 :]]
    extents = iter(shape)
    return tuple(p if p is None else _resolved(p, next(extents), beyond) for p in parts)


def _resolved(part: Any, n: int, beyond: Callable[[int, int], int]) -> Any:
    if isinstance(part, slice):
        start, stop, step = part.indices(n)
        return slice(start, None if stop < 0 else stop, step)
    if isinstance(part, list) and isinstance(part[0], bool):
        return np.flatnonzero(part)
    at = np.vectorize(lambda i: i % n if -n <= i < n else beyond(i, n), otypes=[np.int64])(np.asarray(part, object))
    return at if at.ndim else int(at)


def test_modes_of_take_and_put() -> None:
    x = hg.tensor(X[0, 0])
    for mode in (None, "raise"):
        for work in (lambda: hnp.take(x, [0, 9], mode=mode), lambda: hnp.put(x, [0, -9], 1, mode=mode)):  # noqa: B023
            with pytest.raises(IndexOutOfRange):
                work()
    np.testing.assert_array_equal(hnp.take(x, [0, 9, -9], mode="clip"), X[0, 0][[0, 5, 0]])
    np.testing.assert_array_equal(hnp.put(x, [9, 1], [7, 8], mode="clip"), [*X[0, 0][:1], 8, *X[0, 0][2:5], 7])
    np.testing.assert_array_equal(hnp.put(x, [9, 1], [7, 8], mode="drop"), [*X[0, 0][:1], 8, *X[0, 0][2:]])


@pytest.mark.parametrize("places", [[7, -3, -13, 100], np.array([127, -128, 2], np.int8), np.array([[250], [3]], np.uint8), -1], ids=str)
@pytest.mark.parametrize("mode", ["clip", "wrap"])
def test_modes_of_indices_out_of_range(mode: str, places: Any) -> None:
    """Of known and of computed ones, along axes of known and of symbolic extent."""
    for x in (np.arange(5.0), np.arange(1500.0).reshape(5, 300)):
        for axis in (None, x.ndim - 1):
            want = np.take(x, np.asarray(places, np.int64), axis, mode=mode)
            known = lambda x: hnp.take(x, places, axis, mode=mode)  # noqa: B023, E731
            computed = lambda x, i: hnp.take(x, i, axis, mode=mode)  # noqa: B023, E731
            for dynamic in (False, True):
                np.testing.assert_array_equal(hg.jit(known, dynamic=dynamic)(x), want)
                np.testing.assert_array_equal(hg.jit(computed, dynamic=dynamic)(x, np.asarray(places)), want)
        changed = x.copy()
        np.put(changed, np.asarray(places, np.int64), [-1.0, -2.0], mode=mode)
        np.testing.assert_array_equal(hnp.put(x, places, [-1.0, -2.0], mode=mode), changed)
        np.testing.assert_array_equal(hg.jit(lambda x: hnp.put(x, places, [-1.0, -2.0], mode=mode), dynamic=True)(x), changed)


@pytest.mark.parametrize("key", BEYOND, ids=str)
def test_modes_hold_for_known_indices(key: tuple[Any, ...]) -> None:
    x = X[:4, :3, :2].copy()
    wide = np.pad(x, [(0, 1)] * 3, constant_values=np.nan)
    inside = tuple(slice(n) for n in x.shape)
    at = resolved(key, x.shape, lambda i, n: n)  # what is beyond is the last of one element more
    near = resolved(key, x.shape, lambda i, n: 0 if i < 0 else n - 1)
    t = hg.tensor(x)
    beyond = bool(np.isnan(wide[at]).any())
    for mode in ("fill", "drop"):
        np.testing.assert_array_equal(t.at[key].get(mode=mode), wide[at])
        np.testing.assert_array_equal(t.at[key].get(mode=mode, fill_value=-1), np.where(np.isnan(wide[at]), -1, wide[at]))
        written = wide.copy()
        written[at] = 7
        np.testing.assert_array_equal(t.at[key].set(7, mode=mode), written[inside])
        added = wide.copy()
        np.add.at(added, at, 2)
        np.testing.assert_array_equal(t.at[key].add(2, mode=mode), added[inside])
    np.testing.assert_array_equal(t.at[key].get(mode="clip"), x[near])
    clipped = x.copy()
    clipped[near] = 7
    np.testing.assert_array_equal(t.at[key].set(7, mode="clip"), clipped)
    for mode in (None, "promise_in_bounds"):
        with pytest.raises(IndexOutOfRange) if beyond else contextlib.nullcontext():
            t.at[key].set(7, mode=mode)
        with pytest.raises(IndexOutOfRange) if beyond else contextlib.nullcontext():
            t.at[key].get(mode=mode)


def test_assignment_rebinds() -> None:
    t = hnp.arange(6.0)
    before, twice = +t, t * 2
    alias, copied = t, copy.copy(t)
    t[2:4] = 0
    np.testing.assert_array_equal(alias, [0, 1, 0, 0, 4, 5])
    for other in (before, copied, twice / 2):
        np.testing.assert_array_equal(other, [0, 1, 2, 3, 4, 5])
    t[t > 3] += 10
    np.testing.assert_array_equal(t, [0, 1, 0, 0, 14, 15])


def test_assignment_while_tracing() -> None:
    @hg.jit
    def f(x: Any, i: Any) -> Any:
        y = x * 1
        y[y > 2] = 0
        y[i] += 5
        return x, y

    x, y = f(np.arange(5.0), np.array([0, 0, 4]))
    np.testing.assert_array_equal(x, np.arange(5.0))
    np.testing.assert_array_equal(y, [5, 1, 2, 0, 5])


@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_along_an_axis(axis: int | None) -> None:
    order = np.argsort(X, axis=axis) if axis is not None else np.argsort(X, axis=None)
    np.testing.assert_array_equal(hnp.take_along_axis(X, order, axis), np.take_along_axis(X, order, axis))
    np.testing.assert_array_equal(hg.jit(lambda x, i: hnp.take_along_axis(x, i, axis))(X, order), np.take_along_axis(X, order, axis))
    want = X.copy()
    values = np.arange(order.size, dtype=np.float32).reshape(order.shape)
    np.put_along_axis(want, order, values, axis)
    np.testing.assert_array_equal(hnp.put_along_axis(X, order, values, axis), want)
    np.testing.assert_array_equal(hg.jit(lambda x, i, v: hnp.put_along_axis(x, i, v, axis))(X, order, values), want)


def test_along_an_axis_others_broadcast() -> None:
    i = np.array([[[0]], [[3]]])
    np.testing.assert_array_equal(hnp.take_along_axis(X, i, 0), np.take_along_axis(X, i, 0))
    for x, places in ((X[:, :1], np.zeros((2, 7, X.shape[2]), int)), (X[:, :, :1], np.argsort(X, axis=0))):  # those of the array, too
        np.testing.assert_array_equal(hnp.take_along_axis(x, places, 0), np.take_along_axis(x, places, 0))
    with pytest.raises(ShapeError):
        hnp.take_along_axis(X, np.zeros((4, 3, 6), int), 0)


def test_symbolic_extents() -> None:
    f = hg.jit(lambda x, i, v: (x[i], x.at[i].add(v), x.at[1:].multiply(2.0)), dynamic={0: (0,)})
    for n in (3, 50):
        x, i, v = np.arange(n, dtype=np.float32), np.array([0, -1, 0]), np.array([1, 2, 3], np.float32)
        read, added, doubled = f(x, i, v)
        want = x.copy()
        np.add.at(want, i, v)
        np.testing.assert_array_equal(read, x[i])
        np.testing.assert_array_equal(added, want)
        np.testing.assert_array_equal(doubled, np.where(np.arange(n) > 0, x * 2, x))


def test_known_indices_beside_computed_ones_along_a_symbolic_extent() -> None:
    f = hg.jit(lambda x, i: (x[np.array([0, -1, 1]), i], x[np.array([0, -1, 1]), -1, i], x.at[np.array([0, -1, 1]), i].add(1.0)), dynamic={0: (1,)})
    for n in (2, 40):
        x, i = np.arange(3 * n * n, dtype=np.float32).reshape(3, n, n), np.array([0, 1, -1])
        known = np.array([0, -1, 1])
        want = x.copy()
        want[known, i] += 1
        for got, expected in zip(f(x, i), (x[known, i], x[known, -1, i], want), strict=True):
            np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("key", [1, slice(0, 3), np.array([0, 2, 2]), np.array([True, False, True, False])], ids=str)
@pytest.mark.parametrize("values", [-1.5, 2.0, np.float32(-2.5), np.array(0.5)], ids=str)
@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "min", "max"])
def test_integers_are_updated_by_floats_and_cast_once(name: str, values: Any, key: Any) -> None:
    ufunc = getattr(np, {"min": "minimum", "max": "maximum"}.get(name, name))
    for dtype in ("int8", "uint8", "int64"):
        x = np.array([6, 5, 3, 2**62 + 1 if dtype == "int64" else 100], dtype)
        floats = x.astype(np.float64)
        ufunc.at(floats, key, values)
        named = np.isin(np.arange(4), np.arange(4)[key])
        want = np.where(named, np.clip(np.trunc(floats), np.iinfo(dtype).min, 2.0**53).astype(dtype), x)
        for got in (getattr(hg.tensor(x).at[key], name)(values), hg.jit(lambda x, v: getattr(x.at[key], name)(v))(x, values)):
            assert got.dtype == x.dtype
            np.testing.assert_array_equal(got, want)
