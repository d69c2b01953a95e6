"""Elements and parts that native code reads are those that Python reads."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp
from hologram import dtypes
from hologram.backends.native.module import why_not_native
from hologram.errors import IndexOutOfRange
from hologram.numpy.indexing import picked
from hologram.trace.tensor import Tensor

pytestmark = pytest.mark.skipif(why_not_native() is not None, reason=f"no native calls: {why_not_native()}")

TYPES = [d for d in dtypes.ALL if not d.is_narrow_float]


@pytest.fixture(autouse=True, scope="module")
def native() -> Iterator[None]:
    """So much has been read that native code does."""
    x = hg.tensor(np.arange(3.0))
    for _ in range(picked.READS + 1):
        x[1]
    assert type(vars(Tensor)["__getitem__"]).__name__ == "operator"
    yield


def outcome(f: Any) -> Any:
    try:
        return f()
    except Exception as e:
        return type(e)


BOUNDS = st.one_of(st.none(), st.integers(-12, 12), st.sampled_from([2**40, -(2**70), 2**70]))
KEYS = st.one_of(
    BOUNDS,
    st.builds(slice, BOUNDS, BOUNDS, st.sampled_from([None, None, 1, 2, -1])),
    st.integers(-9, 9).map(np.int32),
    st.booleans(),
    st.just(Ellipsis),
    st.tuples(st.integers(-9, 9)),
)


@given(st.sampled_from(TYPES), st.sampled_from([(7,), (1,), (0,), (3, 2), ()]), KEYS)
def test_keys_choose_what_python_chooses(dtype: dtypes.DType, shape: tuple[int, ...], key: Any) -> None:
    values = np.arange(1, 1 + int(np.prod(shape))).reshape(shape).astype(dtype.np)
    x = hg.tensor(values)
    python = vars(Tensor)["__getitem__"].__wrapped__
    for _ in range(2):  # Python notes the Avals of vectors
        found, wanted = outcome(lambda: x[key]), outcome(lambda: python(x, key))
        if isinstance(wanted, type):
            assert found is wanted
            continue
        assert found.dtype is wanted.dtype and found.shape == wanted.shape
        np.testing.assert_array_equal(np.asarray(found), np.asarray(wanted))
        np.testing.assert_array_equal(np.asarray(found), values[key])
        assert hasattr(found, "_alias") == hasattr(wanted, "_alias")


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("name", ["__float__", "__int__", "item"])
def test_numbers_are_those_of_python(dtype: dtypes.DType, name: str) -> None:
    python = vars(Tensor)[name].__wrapped__
    for value in (0, 1, 77, 2**63 + 5 if dtype is dtypes.uint64 else 100):
        for x in (hg.tensor(np.asarray(value).astype(dtype.np)), hg.tensor(np.asarray([value]).astype(dtype.np)), hg.tensor(np.zeros(3, dtype.np))):
            found, wanted = outcome(getattr(x, name)), outcome(lambda x=x: python(x))
            assert type(found) is type(wanted) and found == wanted


def test_parts_are_views_and_elements_are_not() -> None:
    x = hg.tensor(np.arange(9.0))
    for _ in range(2):
        x = hg.tensor(np.arange(9.0))
        part, element = x[2:6], x[3]
        part[1] = 50.0
        assert x.tolist() == [0, 1, 2, 50, 4, 5, 6, 7, 8] and float(element) == 3.0
        x[2] = 20.0
        assert part.tolist() == [20, 50, 4, 5]
        with pytest.raises(hg.errors.ReadOnlyError):
            element[...] = 1.0


@pytest.mark.parametrize("read", [lambda x: x[3], lambda x: x[2:5]], ids=["element", "part"])
def test_borrowed_memory_is_copied_when_a_part_is_read(read: Any) -> None:
    values = np.arange(10.0)
    x = hg.asarray(values)
    read(x)
    values[:] = 0.0
    assert float(x[4]) == 4.0 and x[5:8].tolist() == [5.0, 6.0, 7.0] and x.tolist() == list(range(10))


def test_traces_and_transforms_see_their_own() -> None:
    x = np.arange(6.0)
    np.testing.assert_array_equal(hg.jit(lambda x: x[2] + x[1:4].sum())(x), 2 + 6)
    np.testing.assert_array_equal(hg.grad(lambda x: x[2] * x[2] + x[1:4].sum())(x), [0, 1, 5, 1, 0, 0])
    np.testing.assert_array_equal(hg.vmap(lambda x: x[1])(x.reshape(3, 2)), [1, 3, 5])
    t = hg.tensor(x)
    np.testing.assert_array_equal(hg.jit(lambda i: t[2] + i)(1.0), 3)
    np.testing.assert_array_equal(hg.grad(lambda y: y * t[4])(3.0), 4)


def test_pending_weak_and_donated_values() -> None:
    x = hg.tensor(np.arange(6.0))
    assert float((x * 2)[3]) == 6 and float(x.sum()) == 15
    assert float(hnp.asarray(2.5)) == 2.5 and int(hnp.asarray(3)) == 3
    y = hg.tensor(np.arange(6.0))
    hg.jit(lambda v: v + 1, donate_argnums=0)(y)
    assert outcome(lambda: y[2]) is outcome(lambda: vars(Tensor)["__getitem__"].__wrapped__(y, 2))


def test_errors_and_introspection() -> None:
    x = hg.tensor(np.arange(6.0))
    with pytest.raises(IndexOutOfRange):
        x[6]
    with pytest.raises(TypeError):
        x.__getitem__()
    with pytest.raises(TypeError):
        x.__getitem__(1, 2)
    assert list(inspect.signature(Tensor.item).parameters) == ["self", "index"]
    assert Tensor.item.__doc__ == vars(Tensor)["item"].__wrapped__.__doc__
    assert [float(v) for v in x] == list(range(6)) and x.item(4) == 4.0
