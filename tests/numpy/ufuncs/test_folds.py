"""``reduce`` and ``accumulate`` of ufuncs against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import ArgumentError, AxisOutOfRange, DTypeError, ShapeError

FEW = settings(max_examples=settings().max_examples // 8)  # of each function
FOLDS = sorted(name for name in hnp.__all__ if isinstance(f := getattr(hnp, name), hnp.ufunc) and f.nin == 2 and f.nout == 1 and f.__name__ == name)
NUMPYS = {"atan2": "arctan2"}
NOT_NEGATIVE = ("power", "left_shift", "right_shift", "float_power", "bitwise_left_shift")
TOLERANCE = {"e": 2e-2, "f": 1e-4, "F": 1e-4, "d": 1e-10, "D": 1e-10}


class StepByStep:
    """A ufunc of NumPy's whose reductions of floats, by vector instructions, go wrong: of Python's numbers instead, one by one."""

    def __init__(self, f: np.ufunc) -> None:
        self.f = f

    def reduce(self, x: np.ndarray, *args: Any, **options: Any) -> Any:
        return self.run("reduce", x, *args, **options)

    def accumulate(self, x: np.ndarray, *args: Any, **options: Any) -> Any:
        return self.run("accumulate", x, *args, **options)

    def run(self, method: str, x: np.ndarray, *args: Any, **options: Any) -> Any:
        kind = getattr(self.f, method)(x, *args, **options).dtype  # raises where NumPy refuses
        if kind.kind not in "fc":
            return getattr(self.f, method)(x, *args, **options)
        return np.asarray(getattr(np.frompyfunc(self.f, 2, 1), method)(x.astype(kind).astype(object), *args, **options)).astype(kind)


def of_numpy(name: str) -> Any:
    f = getattr(np, NUMPYS.get(name, name))
    return StepByStep(f) if f in (np.power, np.arctan2, np.float_power) else f


@st.composite
def arrays(draw: Any, name: str, most: int = 6, least: int = 0) -> np.ndarray:
    d = np.dtype(draw(st.sampled_from("?bBilfdF")))
    shape = draw(st.lists(st.integers(least, most), min_size=1, max_size=3).map(tuple))
    low = 0 if d.kind in "bu" or name in NOT_NEGATIVE else -4
    values = draw(st.lists(st.integers(low, 3), min_size=int(np.prod(shape)), max_size=int(np.prod(shape))))
    x = np.array(values).reshape(shape)
    return (x / 2 if d.kind in "fc" else x).astype(d)


def outcome(call: Any) -> Any:
    """What NumPy gives; None where it refuses."""
    with np.errstate(all="ignore"):
        try:
            return call()
        except (TypeError, ValueError, IndexError):
            return None


def check(name: str, call: Any, x: np.ndarray) -> None:
    """``call(ufunc, array)`` gives what NumPy's does, lazily and jitted; where NumPy refuses, so do we."""
    f = getattr(hnp, name)
    kind = [row for row in f.types if row[0] == x.dtype.char]
    as_floats = kind and np.dtype(kind[0][-1]).kind == "f" and x.dtype.kind in "biu"  # NumPy's choice of a float type is another
    want = outcome(lambda: call(of_numpy(name), x.astype(kind[0][-1]) if as_floats else x))
    if want is None:
        with pytest.raises((TypeError, ValueError, IndexError)):
            call(f, x)
        return
    try:
        got = call(f, x)
    except DTypeError:  # types for which the function itself is refused, or does not fold
        assert x.dtype.char not in {row[0] for row in f.types} or x.dtype.kind in "biu"
        return
    assert got.shape == np.shape(want) and type(got) is hg.Tensor
    assert got.dtype == want.dtype
    rtol = TOLERANCE.get(got.dtype.char, 0)
    for result in (got, hg.jit(lambda x: call(f, x))(x)):
        np.testing.assert_allclose(np.asarray(result), want, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("name", FOLDS)
@FEW
@given(data=st.data())
def test_reduce(name: str, data: st.DataObject) -> None:
    x = data.draw(arrays(name))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1) | st.none() | st.lists(st.integers(0, x.ndim - 1), unique=True).map(tuple))
    keepdims = data.draw(st.booleans())
    check(name, lambda f, x: f.reduce(x, axis, keepdims=keepdims), x)


@pytest.mark.parametrize("name", FOLDS)
@FEW
@given(data=st.data())
def test_accumulate(name: str, data: st.DataObject) -> None:
    x = data.draw(arrays(name))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    check(name, lambda f, x: f.accumulate(x, axis), x)


@pytest.mark.parametrize("name", FOLDS)
@FEW
@given(data=st.data())
def test_where_and_initial(name: str, data: st.DataObject) -> None:
    x = data.draw(arrays(name))
    axis = data.draw(st.integers(0, x.ndim - 1))
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=x.shape[-1], max_size=x.shape[-1])), bool)
    options: dict[str, Any] = {"where": mask} if data.draw(st.booleans()) else {}
    if data.draw(st.booleans()):
        options["initial"] = True if x.dtype == bool else 2
    check(name, lambda f, x: f.reduce(x, axis, **options), x)


@given(name=st.sampled_from(["add", "multiply", "maximum", "divide", "hypot", "logaddexp"]), d=st.sampled_from("bfd"), data=st.data())
def test_dtype(name: str, d: str, data: st.DataObject) -> None:
    x = data.draw(arrays(name, least=1))
    assume(x.dtype.kind != "c")
    for method in ("reduce", "accumulate"):
        want = outcome(lambda m=method: getattr(of_numpy(name), m)(x, dtype=d))
        if want is not None:
            got = getattr(getattr(hnp, name), method)(x, dtype=d)
            assert got.dtype == want.dtype
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


@pytest.mark.crossed
@pytest.mark.parametrize("name", ["bitwise_xor", "gcd", "fmax", "logaddexp", "hypot", "logical_xor", "bitwise_and"])
@pytest.mark.parametrize("shape", [(1000,), (513, 3), (3, 257, 2)])
def test_long_folds_in_any_order(name: str, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(3)
    whole = name in ("gcd", "bitwise_xor", "bitwise_and")
    x = rng.integers(-1000, 1000, shape) * 6 if whole else rng.standard_normal(shape)
    if name == "fmax":
        x[rng.random(shape) < 0.3] = np.nan
    for axis in (None, *range(len(shape))):
        np.testing.assert_allclose(getattr(hnp, name).reduce(x, axis), getattr(np, name).reduce(x, axis), rtol=1e-12)


def test_folds_from_the_first_element_to_the_last() -> None:
    x = np.linspace(1.0, 1.1, 1000)
    np.testing.assert_array_equal(hnp.divide.reduce(x), np.divide.reduce(x))
    np.testing.assert_array_equal(hnp.divide.accumulate(x), np.divide.accumulate(x))
    assert hnp.subtract.reduce(np.int64(5)) == 5 and hnp.add.reduce(5) == 5 and hnp.logical_and.reduce(np.float32(2)).dtype == bool


def test_derivatives_and_batches_of_folds() -> None:
    x = np.array([[3.0, 0.5, 2.0, 1.5], [1.0, 2.0, 0.25, 4.0]])
    for name in ("add", "multiply", "maximum", "divide", "subtract", "hypot", "logaddexp", "power", "fmax"):
        for method in ("reduce", "accumulate"):
            f = lambda v, name=name, method=method: getattr(getattr(hnp, name), method)(v).sum()  # noqa: E731
            gradient = np.asarray(hg.grad(f)(x[0]))
            for i in range(4):
                h = np.zeros(4)
                h[i] = 1e-6
                assert gradient[i] == pytest.approx((float(f(x[0] + h)) - float(f(x[0] - h))) / 2e-6, rel=1e-5, abs=1e-8)
            stacked = hg.vmap(getattr(getattr(hnp, name), method))(x)
            np.testing.assert_allclose(stacked, getattr(getattr(np, name), method)(x, axis=1), rtol=1e-12)


def test_folds_are_refused() -> None:
    x = np.ones((2, 3))
    refused: list[tuple[Any, type[Exception], str]] = [
        (lambda: hnp.subtract.reduce(x, None), ShapeError, "depends on the order of the elements, so it takes one axis, not 2"),
        (lambda: hnp.divide.reduce(x, where=x > 0), ArgumentError, "divide has no identity, so with where it takes initial"),
        (lambda: hnp.maximum.reduce(x, where=x > 0), ArgumentError, "maximum has no identity"),
        (lambda: hnp.subtract.reduce(x[:0]), ShapeError, "no elements, and subtract has no identity"),
        (lambda: hnp.less.reduce(x), DTypeError, "less of float64 is bool, with which it cannot go on"),
        (lambda: hnp.logical_or.reduce(x, dtype="int32"), DTypeError, "the result is bool"),
        (lambda: hnp.add.reduce(x, 2), AxisOutOfRange, "axis 2"),
        (lambda: hnp.add.accumulate(3), ShapeError, "takes at least one axis"),
        (lambda: hnp.subtract.reduce(x, initial=[1, 2]), ShapeError, "initial is a scalar"),
        (lambda: hnp.hypot.reduce(x, where=np.ones(2, bool)), ShapeError, r"a mask of shape \[2\]"),
        (lambda: hg.jit(hnp.subtract.reduce, dynamic=True)(x), ShapeError, "symbolic extent"),
    ]
    for call, kind, message in refused:
        with pytest.raises(kind, match=message + ".*test_folds.py"):
            call()


def test_sums_of_symbolic_extent() -> None:
    f = hg.jit(lambda x: (hnp.add.reduce(x), hnp.maximum.accumulate(x)), dynamic=True)
    for n in (2, 5):
        total, running = f(np.arange(n))
        assert int(total) == n * (n - 1) // 2
        np.testing.assert_array_equal(running, np.arange(n))
