"""``settings.default_float`` and ``default_int``: types of what has none; NumPy's scalars beside arrays."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import IntegerRangeError, WideningWarning

FLOATS: dict[str, Callable[[], Any]] = {
    "zeros": lambda: hnp.zeros(2),
    "ones": lambda: hnp.ones((2, 2)),
    "empty": lambda: hnp.empty(1),
    "eye": lambda: hnp.eye(2),
    "linspace": lambda: hnp.linspace(0, 1, 3),
    "arange": lambda: hnp.arange(0, 1, 0.5),
    "a list": lambda: hnp.asarray([1.0, 2.0]),
    "a number": lambda: hnp.asarray(2.5),
    "a quotient of integers": lambda: hnp.arange(3) / 2,
    "a function of integers": lambda: hnp.sqrt(hnp.arange(3)),
    "a mean of integers": lambda: hnp.mean(hnp.arange(3)),
    "random numbers": lambda: hg.random.normal(hg.random.key(0), (2,)),
    "initial parameters": lambda: hg.nn.initializers.glorot_uniform(hg.random.key(0), (2, 2)),
    "a one-hot code": lambda: hg.nn.one_hot(hnp.arange(2), 2),
    "integers of two signs": lambda: hnp.ones(2, "uint64") + hnp.ones(2, "int64"),
    "a result of jit": lambda: hg.jit(lambda x: x * 0.1)(1.0),
    "a gradient": lambda: hg.grad(lambda x: x**2)(3.0),
}


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("name", FLOATS)
def test_floats_without_a_type(name: str, jitted: bool) -> None:
    f = hg.jit(FLOATS[name]) if jitted else FLOATS[name]
    for default in ("float32", "float64", "float32", "float64"):
        with hg.settings.override(default_float=default):
            assert f().dtype == np.dtype(default)


def test_what_has_a_type_keeps_it_and_complex_numbers_follow() -> None:
    f = hg.jit(lambda x: (x * 2.5 + 1, hnp.sin(x), x / 3))
    with hg.settings.override(default_float=np.float64):
        for dtype in ("float16", "float32", "float64"):
            assert {t.dtype for t in f(np.ones(2, dtype))} == {np.dtype(dtype)}
        assert (hnp.ones(2) * 1j).dtype == np.complex128 and (hnp.ones(2, "float32") * 1j).dtype == np.complex64
        assert hnp.finfo(hnp.zeros(1).dtype).bits == 64
    assert (hnp.ones(2) * 1j).dtype == np.complex64


def test_native_calls_follow_the_setting() -> None:
    f = hg.jit(lambda x: x + hnp.zeros(1))
    x = hg.tensor(1.0)
    for _ in range(3):
        assert f(x).dtype == np.float32
    with hg.settings.override(default_float="float64"):
        for _ in range(3):
            assert f(x).dtype == np.float64
    assert f(x).dtype == np.float32


def test_a_program_of_float64_runs_as_written() -> None:
    data = np.random.default_rng(0).standard_normal(50)

    def turbulence(rate: Any) -> Any:
        def step(carry: Any, x: Any) -> Any:
            energy, mixing = carry
            energy = energy + rate * np.sqrt(2) * (x - energy)
            return (energy, hnp.maximum(mixing, energy**2)), energy / 3

        return hg.scan(step, (hnp.zeros(()), hnp.zeros(())), data)

    with pytest.raises(hg.errors.DTypeError, match="enters the body as float32"):
        hg.jit(turbulence)(0.1)
    energy, mixing, kept = 0.0, 0.0, []
    for x in data:
        energy = energy + 0.1 * np.sqrt(2) * (x - energy)
        mixing = max(mixing, energy**2)
        kept.append(energy / 3)
    with hg.settings.override(default_float="float64"):
        (got, most), steps = hg.jit(turbulence)(0.1)
    np.testing.assert_allclose([float(got), float(most), *np.asarray(steps)], [energy, mixing, *kept], rtol=1e-13)


def test_integers_without_a_type() -> None:
    with hg.settings.override(default_int="int32"):
        count = hg.jit(lambda n: (n + 1, hnp.arange(3) + n, hg.fori_loop(0, 3, lambda i, c: c + i, 0)))
        assert {t.dtype for t in (*count(3), hnp.asarray([1, 2]), hnp.full(2, 7))} == {np.dtype("int32")}
        assert [np.asarray(t).tolist() for t in count(3)] == [4, [3, 4, 5], 3]
        assert (hnp.ones(2, "int64") + 1).dtype == np.int64
        with pytest.raises(IntegerRangeError, match="does not fit int32"):
            hnp.asarray([2**40])
    assert hnp.arange(3).dtype == np.int64


@pytest.mark.parametrize(("name", "value"), [("default_float", "int32"), ("default_int", "int8"), ("default_float", np.int64)])
def test_defaults_are_of_their_kind(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{name} is"):
        setattr(hg.settings, name, value)


# --- NumPy's scalars -------------------------------------------------------------------------------------------------

X = np.ones(3, np.float32)


def test_a_widened_array_is_told_of_once_a_line() -> None:
    def f(x: Any) -> Any:
        return x * np.sqrt(2)

    with pytest.warns(WideningWarning, match="a NumPy scalar of type float64 widens an array of float32 to float64") as told:
        assert hg.jit(f)(X).dtype == np.float64
        for _ in range(3):
            assert f(hg.tensor(X)).dtype == np.float64
    assert len(told) == 1 and told[0].filename == __file__ and told[0].lineno == f.__code__.co_firstlineno + 1


def test_what_is_not_widened_is_not_told_of() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = hg.tensor(X)
        found = [x * np.float32(2), x * 2.0, x.astype("float64") * np.float64(2), np.float64(2) + hnp.arange(3), hnp.asarray(2.5) * np.float64(2)]
        assert [t.dtype.name for t in found] == ["float32", "float32", "float64", "float64", "float64"]


@pytest.mark.parametrize("jitted", [False, True])
def test_weak_numpy_scalars(jitted: bool) -> None:
    f: Any = lambda x: (x * np.sqrt(2), np.float64(0.1) + x, hnp.maximum(x, np.float64(2)), x * np.complex128(1j))  # noqa: E731
    run = hg.jit(f) if jitted else f
    with warnings.catch_warnings(), hg.settings.override(weak_numpy_scalars=True):
        warnings.simplefilter("error")
        got = run(hg.tensor(X))
        assert [t.dtype.name for t in got] == ["float32", "float32", "float32", "complex64"]
        np.testing.assert_array_equal(np.asarray(got[0]), X * 2**0.5)
        assert run(hg.tensor(X.astype("float64")))[0].dtype == np.float64
    assert run(hg.tensor(X))[0].dtype == np.float64


def test_numbers_without_a_type_keep_the_precision_of_float64() -> None:
    cases = {
        "fftfreq": (lambda: hg.fft.fftfreq(7, 0.3), lambda: np.fft.fftfreq(7, 0.3)),
        "rfftfreq": (lambda: hg.fft.rfftfreq(7, 0.3), lambda: np.fft.rfftfreq(7, 0.3)),
        "get_window": (lambda: hg.scipy.signal.get_window("hann", 5), lambda: 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(5) / 5)),
        "hilbert": (lambda: hg.scipy.linalg.hilbert(3), lambda: 1 / (np.arange(3)[:, None] + np.arange(3) + 1)),
        "helmert": (lambda: hg.scipy.linalg.helmert(2), lambda: np.array([[1, -1]]) / np.sqrt(2)),
        "dft": (lambda: hg.scipy.linalg.dft(5).real, lambda: np.fft.fft(np.eye(5)).real),
        "expm": (lambda: hg.scipy.linalg.expm(np.diag([1, 2])), lambda: np.diag(np.exp([1, 2]))),
        "fftconvolve": (lambda: hg.scipy.signal.fftconvolve([3, 1], [3, 1]), lambda: np.convolve([3, 1], [3, 1])),
    }
    with hg.settings.override(default_float="float64"):
        for name, (own, reference) in cases.items():
            found = np.asarray(own())
            assert found.dtype == np.float64, name
            np.testing.assert_allclose(found, reference(), rtol=1e-13, atol=1e-14, err_msg=name)
    assert hg.fft.fftfreq(4).dtype == hg.scipy.linalg.hilbert(2).dtype == np.float32
