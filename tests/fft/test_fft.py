"""hologram.fft: values against NumPy, derivatives against finite differences and each other, vmap against a loop, errors."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import ArgumentError, DTypeError, ShapeError

fft = hg.fft
FROM_REAL = ("rfft", "ihfft", "rfftn", "rfft2")
ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
MANY = ("fftn", "ifftn", "rfftn", "irfftn", "fft2", "ifft2", "rfft2", "irfft2")


def numbers(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng([seed, *shape])
    x = rng.normal(size=shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.normal(size=shape)
    return x.astype(dtype)


def close(got: Any, want: np.ndarray) -> None:
    got = np.asarray(got)
    assert got.dtype == want.dtype and got.shape == want.shape
    scale = float(np.max(np.abs(want), initial=1.0))
    np.testing.assert_allclose(got, want, rtol=0, atol=20 * scale * float(np.finfo(want.dtype).eps))


def argument(name: str, shape: tuple[int, ...], wide: bool) -> np.ndarray:
    return numbers(shape, (np.float64 if wide else np.float32) if name in FROM_REAL else (np.complex128 if wide else np.complex64))


# --- values ----------------------------------------------------------------------------------------------------------


@pytest.mark.crossed
@pytest.mark.parametrize("norm", ["backward", "ortho", "forward", None])
@pytest.mark.parametrize("name", ONE)
def test_one_axis(name: str, norm: str | None) -> None:
    cases = itertools.product([(8,), (3, 7)], [None, 3, 16], [0, -1], [False, True])
    for shape, n, axis, wide in cases:
        if name in ("irfft", "hfft") and n is None and shape[axis] == 1:
            continue
        x, options = argument(name, shape, wide), {"n": n, "axis": axis, "norm": norm}
        close(getattr(fft, name)(x, **options), getattr(np.fft, name)(x, **options))


@pytest.mark.crossed
@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("name", MANY)
def test_several_axes(name: str, norm: str) -> None:
    x = argument(name, (3, 4, 6), True)
    every: list[dict[str, Any]] = [{}, {"axes": (0, 1)}, {"axes": (2, 0)}, {"axes": (-2, -3), "s": (5, 3)}]
    if not name.endswith("2"):
        every += [{"axes": (1,)}, {"axes": (0, 1, 2), "s": (2, 8, 6)}, {"axes": (1, 2, 0)}]
    for options in every:
        close(getattr(fft, name)(x, norm=norm, **options), getattr(np.fft, name)(x, norm=norm, **options))


def test_sizes_without_axes_are_of_the_last_ones() -> None:
    x = numbers((3, 4, 6), np.complex128)
    close(fft.fftn(x, s=(5, 3)), np.fft.fftn(x, s=(5, 3), axes=(-2, -1)))


def test_element_types() -> None:
    for given, wanted in ((np.float32, np.complex64), (np.float64, np.complex128), (np.int32, np.complex64), (np.bool_, np.complex64)):
        x = np.ones(4, given)
        assert np.asarray(fft.fft(x)).dtype == wanted and np.asarray(fft.rfft(x)).dtype == wanted
        assert np.asarray(fft.irfft(x)).dtype == np.zeros(0, wanted).real.dtype


@pytest.mark.parametrize("shape", [(0, 4), (2, 0, 4)])
def test_zero_size(shape: tuple[int, ...]) -> None:
    for name in ONE:
        x = argument(name, shape, True)
        close(hg.jit(getattr(fft, name))(x), getattr(np.fft, name)(x))


def test_frequencies() -> None:
    for n, d in itertools.product([1, 2, 7, 8], [1.0, 0.25]):
        close(fft.fftfreq(n, d=d, dtype=np.float64), np.fft.fftfreq(n, d))
        close(fft.rfftfreq(n, d=d, dtype=np.float64), np.fft.rfftfreq(n, d))
        assert np.asarray(fft.fftfreq(n)).dtype == np.float32


@pytest.mark.parametrize("axes", [None, 0, (0, 2), -1])
def test_shifts(axes: Any) -> None:
    x = numbers((3, 4, 5), np.float64)
    np.testing.assert_array_equal(np.asarray(fft.fftshift(x, axes=axes)), np.fft.fftshift(x, axes))
    np.testing.assert_array_equal(np.asarray(fft.ifftshift(x, axes=axes)), np.fft.ifftshift(x, axes))


def test_between_kernels() -> None:
    @hg.jit
    def smooth(x: Any, width: Any) -> Any:
        """Convolution with a Gaussian, on a ring."""
        filter_ = hnp.exp(-2 * (hnp.pi * width * fft.rfftfreq(x.shape[-1], dtype=x.dtype)) ** 2)
        return fft.irfft(fft.rfft(x - hnp.mean(x)) * filter_, n=x.shape[-1])

    x = numbers((5, 100), np.float64)
    want = np.fft.irfft(np.fft.rfft(x - x.mean()) * np.exp(-2 * (np.pi * 3.0 * np.fft.rfftfreq(100)) ** 2), 100)
    np.testing.assert_allclose(np.asarray(smooth(x, 3.0)), want, atol=1e-13)


def test_one_program_for_every_size() -> None:
    run = hg.jit(lambda x: (fft.fft(x), fft.rfft(x, axis=0)), dynamic=True)
    for shape in ((4, 5), (7, 2)):
        x = numbers(shape, np.float64)
        close(run(x)[0], np.fft.fft(x))
        close(run(x)[1], np.fft.rfft(x, axis=0))


@pytest.mark.parametrize("name", [n for n in fft.__all__ if n.endswith(("fft", "fft2", "fftn"))])
def test_symbolic_sizes_or_a_refusal(name: str) -> None:
    """Every transform of symbolic extents has NumPy's values, or says that it must know them."""
    x = numbers((6, 5), np.float64)
    try:
        got = hg.jit(getattr(fft, name), dynamic=True)(x)
    except ShapeError as e:
        assert "symbolic" in str(e)
    else:
        close(got, getattr(np.fft, name)(x))


def test_in_a_loop() -> None:
    x = numbers((16,), np.complex128)
    twice = hg.jit(lambda x: hg.fori_loop(0, 2, lambda i, y: fft.fft(y, norm="ortho"), x))(x)
    np.testing.assert_allclose(np.asarray(twice), np.roll(x[::-1], 1), atol=1e-14)


# --- derivatives -----------------------------------------------------------------------------------------------------

CASES = [(name, n, norm) for name in ONE for n, norm in ((None, "backward"), (5, "ortho"), (6, "forward"), (1, "backward"), (11, "backward"))]


def inner(x: Any, y: Any) -> float:
    """The real inner product of a tangent with a cotangent, which for complex numbers is conjugated."""
    return float(np.sum(np.asarray(x) * np.asarray(y)).real)


def check(f: Callable[[Any], Any], x: np.ndarray) -> None:
    t = numbers(x.shape, x.dtype, 1)
    out, pushed = hg.jit(lambda x, t: hg.jvp(f, (x,), (t,)))(x, t)
    np.testing.assert_allclose(np.asarray(pushed), np.asarray(f(x + t)) - np.asarray(f(x)), atol=1e-11)  # linear
    c = numbers(out.shape, np.asarray(out).dtype, 2)
    (pulled,) = hg.jit(lambda x, c: hg.vjp(f, x)[1](c))(x, c)
    assert np.asarray(pulled).dtype == x.dtype
    assert inner(pushed, c) == pytest.approx(inner(t, pulled), rel=1e-10, abs=1e-10)


@pytest.mark.parametrize(("name", "n", "norm"), CASES)
def test_derivatives(name: str, n: int | None, norm: str) -> None:
    check(lambda x: getattr(fft, name)(x, n=n, norm=norm, axis=0), argument(name, (8, 2), True))
    check(lambda x: getattr(fft, name)(x, n=n, norm=norm), argument(name, (2, 7), True))


@pytest.mark.parametrize("name", MANY)
def test_derivatives_along_several_axes(name: str) -> None:
    check(lambda x: getattr(fft, name)(x, axes=(2, 0), norm="ortho"), argument(name, (3, 2, 4), True))


def test_second_derivative_of_a_power_spectrum() -> None:
    x = numbers((6,), np.float64)
    hessian = np.asarray(hg.jit(hg.hessian(lambda x: hnp.sum(hnp.abs(fft.rfft(x)) ** 2)))(x))
    half = np.fft.rfft(np.eye(6))
    np.testing.assert_allclose(hessian, 2 * (half @ half.conj().T).real, atol=1e-12)


@pytest.mark.parametrize("name", [*ONE, "fftn", "irfftn"])
def test_vmap(name: str) -> None:
    x = argument(name, (3, 4, 5), True)
    f = getattr(fft, name)
    close(hg.jit(hg.vmap(f))(x), np.stack([getattr(np.fft, name)(a) for a in x]))
    close(hg.vmap(f, in_axes=2, out_axes=1)(x), np.stack([getattr(np.fft, name)(x[..., i]) for i in range(5)], axis=1))


# --- errors ----------------------------------------------------------------------------------------------------------

ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: fft.fft(np.ones(4), norm="unit"), ArgumentError, "norm is 'backward' or 'forward' or 'ortho', not 'unit'"),
    (lambda: fft.fft(np.ones(4), n=0), ShapeError, "no transform of 0 elements"),
    (lambda: fft.fft(np.ones((2, 0))), ShapeError, "no transform of 0 elements"),
    (lambda: fft.irfft(np.ones(1)), ShapeError, "no transform of 0 elements"),
    (lambda: fft.fft(np.ones(4), axis=1), ShapeError, "axis 1 of an array with 1 axes"),
    (lambda: fft.fft(np.ones(4), n=2.5), ArgumentError, "an integer, not float"),  # type: ignore[arg-type]
    (lambda: fft.fftn(np.ones((2, 3)), s=(2, 3), axes=(0,)), ShapeError, "2 sizes for 1 axes"),
    (lambda: fft.fftn(np.ones((2, 3)), axes=(0, 0)), ShapeError, "none twice"),
    (lambda: fft.rfft(np.ones(4, np.complex64)), DTypeError, "rfft takes real numbers, not complex64"),
    (lambda: fft.fft(np.ones(4, np.float16)), DTypeError, "fft does not take float16"),
    (lambda: fft.fftfreq(0), ShapeError, "no transform of 0 elements"),
    (lambda: fft.fftshift(np.ones(3), axes=2), ShapeError, "axis 2"),
]


@pytest.mark.parametrize(("act", "kind", "message"), ERRORS)
def test_error(act: Callable[[], Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message) as caught:
        act()
    assert "test_fft.py" in str(caught.value)


def test_no_axes_are_no_transform() -> None:
    x = np.arange(4.0).reshape(2, 2)
    for name in ("fftn", "ifftn", "fft2", "ifft2"):
        found = getattr(fft, name)(x, axes=())
        np.testing.assert_array_equal(found, x.astype(complex), strict=True)
    with pytest.raises(ArgumentError):
        fft.fftn(x, axes=(), norm="half")


@pytest.mark.parametrize("narrow", ["float16", "bfloat16"])
def test_integers_are_transformed_in_float32_where_floats_are_narrow(narrow: str) -> None:
    with hg.settings.override(default_float=narrow):
        np.testing.assert_allclose(fft.fft(np.arange(4)), np.fft.fft(np.arange(4)))
        assert fft.irfft(np.arange(4)).dtype == np.float32
