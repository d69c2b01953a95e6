"""Reading realised Tensors, and moving their elements, compiles nothing and gives NumPy's bits; arrays that were handed out keep theirs."""

from __future__ import annotations

import gc
import itertools
import operator
import os
import subprocess
import sys
import threading
import warnings
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp
from hologram import dtypes
from hologram.errors import IndexOutOfRange, OutOfMemory
from hologram.trace import compiling, host_movement, lazy
from hologram.trace.recorder import storage_module

DTYPES = [d.np for d in dtypes.ALL]


def numbers(dtype: Any, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """Any bits: NaNs of all kinds too, and of bool both values."""
    rng = np.random.default_rng(seed)
    if dtype == np.bool_:
        return rng.random(shape) < 0.5
    size = int(np.prod(shape, dtype=np.int64))
    return np.frombuffer(rng.bytes(size * dtype.itemsize), dtype).reshape(shape)


def same(got: Any, want: Any) -> None:
    a, want = np.asarray(got), np.asarray(want)
    assert a.shape == want.shape and a.dtype == want.dtype
    assert a.tobytes() == want.tobytes()
    assert a.flags.writeable is not bool(a.shape)  # what NumPy makes of its scalars may be changed, too


# --- chains of movement ------------------------------------------------------------------------------------------------


def keys(data: Any, shape: tuple[int, ...]) -> Any:
    """A basic index of an array of ``shape`` in which integers are in range."""
    parts: list[Any] = []
    for n in shape[: data.draw(st.integers(0, len(shape)))]:
        bound = st.none() | st.integers(-n - 1, n + 1)
        slices = st.builds(slice, bound, bound, st.none() | st.integers(-3, 3).filter(bool))
        parts.append(data.draw(slices | st.integers(-n, n - 1) if n else slices))
        if data.draw(st.integers(0, 5)) == 0:
            parts.append(None)
    if len(parts) == len(shape) and data.draw(st.booleans()):
        parts.insert(data.draw(st.integers(0, len(parts))), ...)
    return parts[0] if len(parts) == 1 and data.draw(st.booleans()) else tuple(parts)


def reshaped(data: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape of as many elements."""
    sizes = [*data.draw(st.permutations(shape)), *data.draw(st.lists(st.just(1), max_size=2))]
    while len(sizes) > 1 and data.draw(st.booleans()):
        sizes[-2:] = [sizes[-2] * sizes[-1]]
    return tuple(sizes)


def axis(data: Any, shape: tuple[int, ...]) -> int:
    return data.draw(st.integers(-len(shape), len(shape) - 1))


Step = Callable[[Any, Any, Any], Any]  # (data, library, array) -> array
STEPS: dict[str, tuple[int, Callable[[Any, tuple[int, ...]], Step]]] = {}  # what a step needs: so many axes


def step(axes: int = 0) -> Any:
    def add(make: Any) -> Any:
        STEPS[make.__name__] = (axes, make)
        return make

    return add


@step()
def index(data: Any, shape: Any) -> Any:
    key = keys(data, shape)
    return lambda lib, x: x[key]


@step()
def reshape(data: Any, shape: Any) -> Any:
    to = reshaped(data, shape)
    return lambda lib, x: lib.reshape(x, to)


@step()
def ravel(data: Any, shape: Any) -> Any:
    return lambda lib, x: lib.ravel(x)


@step()
def transpose(data: Any, shape: Any) -> Any:
    order = tuple(data.draw(st.permutations(range(len(shape)))))
    return lambda lib, x: lib.permute_dims(x, order) if lib is hnp else np.transpose(x, order)


@step(1)
def swap(data: Any, shape: Any) -> Any:
    a, b = axis(data, shape), axis(data, shape)
    return lambda lib, x: lib.swapaxes(lib.moveaxis(x, a, b), a, b)


@step()
def flip(data: Any, shape: Any) -> Any:
    chosen = axis(data, shape) if shape and data.draw(st.booleans()) else None
    return lambda lib, x: lib.flip(x, axis=chosen)


@step()
def expand_and_squeeze(data: Any, shape: Any) -> Any:
    at = data.draw(st.integers(-len(shape) - 1, len(shape)))
    return lambda lib, x: lib.expand_dims(lib.squeeze(lib.expand_dims(x, at), at), at)


@step()
def broadcast(data: Any, shape: Any) -> Any:
    to = (data.draw(st.integers(0, 3)), *(data.draw(st.integers(0, 3)) if n == 1 else n for n in shape))
    return lambda lib, x: lib.broadcast_to(x, to)


@step(1)
def roll(data: Any, shape: Any) -> Any:
    shift, a = data.draw(st.integers(-7, 7)), data.draw(st.none() | st.just(axis(data, shape)))
    return lambda lib, x: lib.roll(x, shift, a)


@step(1)
def join(data: Any, shape: Any) -> Any:
    a = axis(data, shape)
    return lambda lib, x: lib.concatenate([x, lib.flip(x, axis=a)], axis=a)


@step()
def stack(data: Any, shape: Any) -> Any:
    at = data.draw(st.integers(0, len(shape)))
    return lambda lib, x: lib.stack([x, x], axis=at)


@step(1)
def repeat(data: Any, shape: Any) -> Any:
    a, n = axis(data, shape), data.draw(st.integers(0, 3))
    times = data.draw(st.lists(st.integers(0, 2), min_size=shape[a], max_size=shape[a])) if data.draw(st.booleans()) else n
    return lambda lib, x: lib.repeat(x, np.asarray(times, np.int64) if isinstance(times, list) else times, axis=a)


@step()
def tile(data: Any, shape: Any) -> Any:
    times = tuple(data.draw(st.lists(st.integers(0, 2), min_size=1, max_size=2)))
    return lambda lib, x: lib.tile(x, times)


@step(1)
def take(data: Any, shape: Any) -> Any:
    a = axis(data, shape)
    n = shape[a]
    places = np.array(data.draw(st.lists(st.integers(-n, n - 1), max_size=4)) if n else [], np.int64)
    return lambda lib, x: lib.take(x, places, axis=a)


@step(1)
def pad(data: Any, shape: Any) -> Any:
    widths = tuple(data.draw(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=len(shape), max_size=len(shape))))
    return lambda lib, x: lib.pad(x, widths, constant_values=0) if lib is hnp else np.pad(x, widths)


@step()
def copied(data: Any, shape: Any) -> Any:
    return lambda lib, x: lib.copy(x)


@step()
def part(data: Any, shape: Any) -> Any:
    of = data.draw(st.sampled_from(["real", "imag"]))
    return lambda lib, x: getattr(x, of) if x.dtype.kind == "c" else x


SHAPES = st.lists(st.sampled_from([0, 1, 2, 3, 5]), max_size=3).map(tuple)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_chains_of_movement_compile_nothing_and_have_the_bits_of_numpy(data: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiling, "compile_graph", lambda *args, **options: pytest.fail("compiled"))
        lazy.clear()
        want = numbers(data.draw(st.sampled_from(DTYPES)), data.draw(SHAPES), data.draw(st.integers(0, 9)))
        got = hg.tensor(want)
        for _ in range(data.draw(st.integers(1, 5))):
            axes, make = STEPS[data.draw(st.sampled_from(sorted(STEPS)))]
            if want.ndim >= axes and want.size <= 3000 and want.ndim < 6:
                run: Any = make(data, want.shape)
                want, got = np.asarray(run(np, want)), run(hnp, got)
            if data.draw(st.booleans()):
                same(got, want)
        same(got, want)
        same(got[...], want)
        assert str(got.tolist()) == str(want.tolist())
        hg.eval(got)
        same(got, want)
        assert np.asarray(got).flags.c_contiguous


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_elements_are_read_one_by_one(dtype: Any, compilations: list[Any]) -> None:
    values = numbers(dtype, (5, 7))
    for x, a in ((hg.tensor(values), values), (hg.tensor(values).T, values.T), (hg.tensor(values)[::-2, 1:], values[::-2, 1:])):
        for i, j in np.ndindex(*a.shape):
            same(x[i, j], a[i, j])
            same(x[i - a.shape[0]][j], a[i, j])
            assert str(x[i, j].item()) == str(a[i, j].item()) == str(x.item(i, j))
        assert len(x) == len(a)
        for row, r in zip(x, a, strict=True):
            for v, w in zip(row, r, strict=True):
                same(v, w)
        assert str([v for row in x for v in row.tolist()]) == str(a.ravel().tolist())
    assert not compilations


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d.kind != "c"], ids=str)
def test_numbers_are_those_of_numpy(dtype: Any, compilations: list[Any]) -> None:
    values = np.array([0, 1, 2, 3, 100]).astype(dtype)
    if dtype.kind == "i":
        values = np.concatenate([values, np.array([np.iinfo(dtype).min, -1, np.iinfo(dtype).max], dtype)])
    if dtype.kind == "u":
        values = np.append(values, np.array(np.iinfo(dtype).max, dtype))
    if dtype.kind == "f" and dtype != np.dtype(dtypes.float8_e4m3fn.np):
        values = np.append(values, np.array([-0.0, np.nan, np.inf, -1.5], dtype))
    x = hg.tensor(values)
    for i, v in enumerate(values):
        for convert in (float, bool, str, lambda y: y.item(), lambda y: type(y.item()), lambda y: y.tolist()):
            assert str(convert(x[i])) == str(convert(v))
        if np.isfinite(np.float64(v)):
            assert int(x[i]) == int(v)
        if dtype.kind in "iu":
            assert operator.index(x[i]) == int(v)
    assert not compilations


def test_other_ways_to_read(compilations: list[Any]) -> None:
    a = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
    x = hg.tensor(a)
    assert [float(v) for v in x[1, 2]] == a[1, 2].tolist()
    assert repr(x[0, :2]) == f"Tensor({np.array2string(a[0, :2], separator=', ', prefix='Tensor(')}, dtype=float32)"
    assert str(x[1, 1, 1]) == str(a[1, 1, 1]) and f"{x[1, 1, 1]:.3f}" == f"{a[1, 1, 1]:.3f}"
    assert x[2, 3, 4] > 10 and not x[0, 0, 0] == 1 and bool(x[1, 0, 0] != x[0, 0, 0]) and x[0, 0, 1] <= 1.5
    assert (x[1, 0, 0] > 3) & ~(x[0, 0, 1] > 3) and not (x[0, 0, 0] == 1) | (x[0, 0, 0] != 0)
    for got, want in zip(hnp.split(x, 2, axis=1), np.split(a, 2, axis=1), strict=True):
        same(got, want)
    same(hnp.unstack(x)[1], a[1])
    same(x.mT.reshape(-1)[7:9], a.transpose(0, 2, 1).reshape(-1)[7:9])
    same(hnp.pad(x, 1, mode="wrap"), np.pad(a, 1, mode="wrap"))
    same(hnp.diagonal(x, 1, 1, 2), np.diagonal(a, 1, 1, 2))
    same(hnp.take_along_axis(x, a[:, :1].astype(int) % 4, axis=1), np.take_along_axis(a, a[:, :1].astype(int) % 4, axis=1))
    same(x[np.array([2, 0]), :, [1, 1]], a[np.array([2, 0]), :, [1, 1]])
    same(x[:, a[0, :, 0] > 5], a[:, a[0, :, 0] > 5])
    same(hnp.concat([x[0], hnp.arange(5).reshape(1, 5)]), np.concatenate([a[0], np.arange(5, dtype=np.float32).reshape(1, 5)]))
    same(hnp.zeros((3, 2)), np.zeros((3, 2), np.float32))
    assert not compilations


def test_integers_of_numpy_are_indices(compilations: list[Any]) -> None:
    a = np.arange(20.0).reshape(4, 5)
    x = hg.tensor(a)
    for i in np.arange(4):
        same(x[i], a[i])
        same(x[i, np.uint8(3)], a[i, 3])
        same(x[np.int16(-1), 1:3], a[-1, 1:3])
        assert x[i]._storage is not None and x[i, i]._storage is not None
    assert not compilations


def test_errors_are_as_before() -> None:
    x = hg.tensor(np.arange(6.0).reshape(2, 3))
    for key in (2, (0, 3), (-3, 0), (0, 0, 0), 2**70, (0, -(2**65))):
        with pytest.raises(IndexOutOfRange, match=r"test_reading\.py"):
            x[key]
    with pytest.raises(hg.errors.ShapeError, match="step cannot be 0"):
        x[::0]


# --- memory ------------------------------------------------------------------------------------------------------------


def test_a_view_that_was_handed_out_keeps_its_bytes() -> None:
    a = np.arange(20_000, dtype=np.float32).reshape(100, 200)
    x = hg.tensor(a)
    views: list[tuple[Any, Any]] = [
        (np.asarray(v), np.array(w)) for v, w in ((x, a), (x.T, a.T), (x[10:], a[10:]), (x[:, ::2], a[:, ::2]), (x[3], a[3]))
    ]
    x[4:50, 3] = -1.0
    x[3] = 5.0
    np.asarray(x)
    x = x.at[7].set(3.0)
    hg.eval(x)
    for got, want in views:
        np.testing.assert_array_equal(got, want)
    assert float(x[3, 3]) == 5.0 and float(x[4, 3]) == -1.0 and float(x[7, 7]) == 3.0


def test_views_follow_assignments() -> None:
    a = np.arange(40.0).reshape(5, 8)
    x = hg.tensor(a)
    found = [[whole, whole[1:3], whole[2], whole[..., -1:, -2:], whole[::-1][1], whole[3, ..., 2:7:2]] for whole in (x, a)]
    for whole, part, row, corner, mirrored, strided in found:
        part[:, 3] = -5.0
        whole[2, 4] = 7.0
        row[5] = 9.0
        corner[...] = 1.0
        mirrored[0] = 2.0
        strided[1] = 3.0
        whole[:2] = 11.0
    for got, want in zip(*found, strict=True):
        np.testing.assert_array_equal(got, want)


def test_arrays_whose_shape_is_changed_are_the_readers_own() -> None:
    x = hg.tensor(np.arange(10_000.0).reshape(100, 100))
    t = x.T
    first = np.asarray(t)
    assert np.shares_memory(first, np.asarray(x))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy would rather not have it
        first.strides = first.strides[::-1]
    np.testing.assert_array_equal(np.asarray(t), np.asarray(x).T)


def test_large_views_are_not_copied_and_small_ones_hold_nothing(compilations: list[Any]) -> None:
    x = hg.tensor(np.arange(1 << 16, dtype=np.float64).reshape(256, 256))
    whole = np.asarray(x)
    for view in (x.T, x[::2], x.reshape(-1)[100:], hnp.broadcast_to(x, (50, 256, 256)), x[1:-1, 3:], x[:, None]):
        assert np.shares_memory(np.asarray(view), whole)
    for view in (x[3], x[1:9], x[:, 5], x[200:, 200:], x[::-1], x.T[:2]):
        assert not np.shares_memory(np.asarray(view), whole)
    assert not compilations
    held = weakref.ref(np.asarray(hg.tensor(np.zeros(1 << 16))))
    del whole
    gc.collect()
    assert held() is None


def live() -> int:
    gc.collect()
    return int(storage_module().statistics()["live"])


def test_a_small_part_does_not_keep_the_array() -> None:
    before = live()
    x = hg.tensor(np.zeros(1 << 20))
    kept = [x[5], x[7:9], np.asarray(x[100:40_000]), x[3:5].T, np.asarray(x.reshape(1024, 1024)[:, 4])]
    del x
    assert live() - before < 1 << 20
    assert kept


def test_the_limit_of_memory_holds_for_what_is_read() -> None:
    x = hg.tensor(np.arange(5.0))
    with hg.settings.override(memory_limit=1):
        for key in (3, slice(1, 3)):
            with pytest.raises(OutOfMemory):
                x[key]
    assert float(x[3]) == 3.0 and np.asarray(x[1:3]).tolist() == [1.0, 2.0]


def test_values_that_were_read_are_still_donated() -> None:
    step = hg.jit(lambda v: v * 2.0, donate_argnums=0)
    x = hg.tensor(np.ones(1 << 15, np.float32))
    step(hg.tensor(np.ones(1 << 15, np.float32)))
    for _ in range(3):
        assert float(x[5]) > 0 and float(x[7:9][1]) > 0
        place = x._storage.data
        y = step(x)
        assert y._storage.data == place
        x = y
    held = np.asarray(x.reshape(2, -1))
    want = held.copy()
    y = step(x)
    np.testing.assert_array_equal(held, want)
    np.testing.assert_array_equal(y, 2 * want.ravel())


def test_updates_of_values_that_were_read_are_made_in_place() -> None:
    x = hg.tensor(np.zeros(1 << 14, np.float64))
    places = set()
    for i in range(8):
        x[i + 1] = float(x[i]) + 1.0
        hg.eval(x)
        if i > 2:
            places.add(x._storage.data)
    assert float(x[8]) == 8.0 and len(places) == 1


def test_borrowed_memory_is_copied_when_a_part_is_read() -> None:
    a = np.arange(10.0)
    x = hg.asarray(a)
    v, part = x[3], x[2:5]
    a[:] = 0.0
    assert float(v) == 3.0 and np.asarray(part).tolist() == [2.0, 3.0, 4.0] and float(x[4]) == 4.0


def test_parts_are_recorded_in_traces_and_transforms() -> None:
    x = hg.tensor(np.arange(5.0))
    x[1], x[1:3]
    got = np.asarray(hg.grad(lambda v: v[1] * v[1:3].sum())(x))
    np.testing.assert_allclose(got, [0, 4, 1, 0, 0])
    np.testing.assert_allclose(hg.jit(lambda v: v[1] + x[2] * x[3:].sum())(x), 1 + 2 * 7)
    np.testing.assert_allclose(hg.vmap(lambda v: v[1] + x[3])(hg.tensor(np.ones((2, 3)))), [4, 4])


def test_threads_read_and_assign_at_the_same_time() -> None:
    x = hg.tensor(np.zeros((64, 64)))
    wrong: list[Any] = []

    def read() -> None:
        for i in range(300):
            row = np.asarray(x[i % 64, 1:5])
            if row.min() != row.max() or float(x.T[2, 3]) < 0:
                wrong.append(row)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for t in readers:
        t.start()
    for i in range(100):
        x[...] = float(i)
    for t in readers:
        t.join()
    assert not wrong


def test_threads_evaluate_what_others_assign_to() -> None:
    x, n = hnp.zeros(64), 64

    def work(k: int) -> None:
        for i in range(k, n, 4):
            x[i] = float(i)
            if i % 3 == 0:
                hg.eval(x)
            if i % 5 == 0:
                assert np.asarray(x[i:])[0] == i

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # threads take turns in the middle of assignments and evaluations
    try:
        for _ in range(5):
            x[...] = 0.0
            with ThreadPoolExecutor(4) as pool:
                list(pool.map(work, range(4)))
            np.testing.assert_array_equal(x, np.arange(64.0))
    finally:
        sys.setswitchinterval(interval)


# --- when to compile ---------------------------------------------------------------------------------------------------


def test_large_movement_is_compiled_when_it_comes_again(compilations: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_movement, "COMPILE_BYTES", 6 << 20)
    monkeypatch.setattr(host_movement, "COMPILE_NODE_BYTES", 0)
    a = np.arange(1 << 18, dtype=np.float64)
    x = hg.tensor(a)
    for shift in range(1, 4):  # programs of their own
        same(hnp.roll(x, shift), np.roll(a, shift))
    assert not compilations
    for _ in range(3):
        same(hnp.roll(x, 1), np.roll(a, 1))
    assert len(compilations) == 1


def test_without_native_code_reading_is_the_same() -> None:
    code = (
        "import numpy as np, hologram as hg, hologram.numpy as hnp\n"
        "a = np.arange(24, dtype=np.float32).reshape(4, 6); x = hg.tensor(a)\n"
        "assert float(x[1, -2]) == a[1, -2] and [float(v) for v in x[2]] == a[2].tolist()\n"
        "assert np.array_equal(x[::-1, 2:4], a[::-1, 2:4]) and np.array_equal(x.T[3], a.T[3]) and np.array_equal(hnp.roll(x, 3), np.roll(a, 3))\n"
        "assert int(x[0, 3]) == 3 and bool(x[0, 1]) and x[1, 1].item() == 7.0 and x[2, 2] > 13\n"
        "part = x[1:3]; part[0, 0] = -1.0; assert float(x[1, 0]) == -1.0\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "HOLOGRAM_NATIVE": "0"})


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize(
    "of", [lambda x: x, lambda x: x.T, lambda x: x[::-2, 1:], lambda x: x[:0], lambda x: x * 1.5], ids=["all", "T", "part", "none", "pending"]
)
def test_rolls_of_values_at_hand(of: Any, axis: int | None) -> None:
    """They are copied at once, the others recorded: with the same elements, and no memory of the argument."""
    a = np.arange(35, dtype=np.float32).reshape(5, 7)
    for shift in (0, 1, -3, 5, 7, 36):
        x = of(hg.tensor(a))
        wanted = np.roll(of(a), shift, axis)
        found = hnp.roll(x, shift, axis)
        np.testing.assert_array_equal(np.asarray(found), wanted)
        np.testing.assert_array_equal(np.asarray(hg.jit(lambda x, shift=shift: hnp.roll(x, shift, axis))(x)), wanted)
        if x.size:
            x[0, 0] = 100
            np.testing.assert_array_equal(np.asarray(found), wanted)


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "float64", "float16", "complex64", "bfloat16"])
@pytest.mark.parametrize("step", [1, 3, -2])
def test_slices_of_vectors(dtype: str, step: int) -> None:
    """As NumPy's, for all bounds; of views of any strides, too."""
    x = (hnp.arange(20) % 7).astype(dtype)[::step]
    host = np.asarray(x)
    bounds = [None, 0, 1, 3, len(host), len(host) + 1, -1, -3, -len(host), -len(host) - 2, 2**70, -(2**70)]
    for _ in range(2):  # natively from the second time on
        for start, stop in itertools.product(bounds, bounds):
            found = x[start:stop]
            assert found.dtype == x.dtype
            assert np.asarray(found).tobytes() == host[start:stop].tobytes()


def test_views_that_are_gone_and_views_that_stay() -> None:
    """An assignment reaches each view that is still there, however many came and went between."""
    x = hg.tensor(np.arange(50.0))
    kept = []
    for k in range(40):
        np.testing.assert_array_equal(x[k : k + 3], np.arange(k, k + 3))
        if k % 3 == 0:
            kept.append(x[k : k + 4])
            np.testing.assert_array_equal(kept[-1][1:3], np.arange(k + 1, k + 3))
    x[:] = -hnp.arange(50.0)
    for view, k in zip(kept, range(0, 40, 3), strict=True):
        np.testing.assert_array_equal(view, -np.arange(k, k + 4.0))
