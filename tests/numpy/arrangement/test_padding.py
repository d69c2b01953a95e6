"""Borders as NumPy makes them: every mode and option, in every type, lazily, jitted, of symbolic extents, and by gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import ArgumentError, ShapeError

OPTIONS: list[dict[str, Any]] = [
    {"mode": "edge"}, {"mode": "wrap"},
    *({"mode": mode, "reflect_type": kind} for mode in ("reflect", "symmetric") for kind in ("even", "odd")),
    *({"mode": mode, "stat_length": n} for mode in ("maximum", "minimum", "mean", "median") for n in (None, 1, 2, (2, 3), ((1, 2), (3, 9)))),
    *({"mode": "linear_ramp", "end_values": ends} for ends in (0, 7, (-3, 5), ((1, 2), (3, 4)))),
]  # fmt: skip
WIDTHS: list[Any] = [1, (0, 2), ((2, 1), (0, 0)), ((1, 3), (2, 2)), ((7, 0), (5, 9))]
TYPES = ["float32", "float64", "int32", "int64", "int8"]


def _name(options: dict[str, Any]) -> str:
    return " ".join(map(str, options.values()))


def _array(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return np.random.default_rng(sum(shape)).integers(-9, 9, shape).astype(dtype) * np.array(3, dtype)


@pytest.mark.parametrize("options", OPTIONS, ids=_name)
def test_borders(options: dict[str, Any], everything: bool) -> None:
    """In one type as a sample. Sums and ramps are rounded alike in float64, and in float32 up to the last digit."""
    for dtype in TYPES if everything else [TYPES[len(_name(options)) % len(TYPES)]]:
        x = _array((4, 5), dtype)
        for widths in WIDTHS:
            want = np.pad(x, widths, **options)
            for got in (hnp.pad(x, widths, **options), hg.jit(lambda x, w=widths: hnp.pad(x, w, **options))(x)):
                assert got.dtype == want.dtype
                np.testing.assert_allclose(got, want, rtol=2e-7 if dtype == "float32" else 0, atol=1e-14 if dtype == "float64" else 0)


def test_borders_that_a_function_makes() -> None:
    def filled(vector: Any, pair: tuple[int, int], axis: int, options: dict[str, Any]) -> None:
        vector[: pair[0]] = options["by"] * axis
        vector[vector.shape[0] - pair[1] :] = vector[pair[0]]

    x = _array((3, 4), "int64")
    for widths in (2, ((1, 2), (0, 3)), {1: (2, 1)}):
        want = np.pad(x, widths, filled, by=7)
        for got in (hnp.pad(x, widths, filled, by=7), hg.jit(lambda x, w=widths: hnp.pad(x, w, filled, by=7))(x)):
            np.testing.assert_array_equal(got, want)
    given = hnp.pad([1, 2], 1, lambda vector, pair, axis, options: vector.at[0].set(9))  # a new value, where assignment is not wanted
    np.testing.assert_array_equal(given, [9, 1, 2, 0])
    seen: list[dict[str, Any]] = []
    hnp.pad([1, 2], 1, lambda vector, pair, axis, options: seen.append(options), constant_values=3, by=7)
    assert seen == [{"constant_values": 3, "by": 7}]


@pytest.mark.parametrize("options", OPTIONS, ids=_name)
def test_borders_of_symbolic_extent(options: dict[str, Any]) -> None:
    if isinstance(options.get("stat_length", options.get("end_values")), tuple) and options["mode"] != "linear_ramp":
        options = options | {"stat_length": 3}
    padded = hg.jit(lambda x: hnp.pad(x, ((1, 2), (0, 3)), **options), dynamic=True)
    for shape in ((4, 5), (9, 6), (5, 17)):
        x = _array(shape, "float64")
        np.testing.assert_allclose(padded(x), np.pad(x, ((1, 2), (0, 3)), **options), rtol=0, atol=1e-14)


@pytest.mark.parametrize("options", OPTIONS, ids=_name)
def test_derivatives_of_borders(options: dict[str, Any]) -> None:
    """Borders are piecewise linear: the derivative in a direction is the difference."""
    x = _array((3, 4), "float64") + np.arange(12).reshape(3, 4) / 64  # no two elements are equal
    step = np.random.default_rng(1).normal(size=x.shape) / 1024
    f = lambda x: hnp.pad(x, ((2, 1), (3, 2)), **options)  # noqa: E731
    out, tangent = hg.jvp(f, (x,), (step,))
    np.testing.assert_allclose(f(x + step), np.asarray(out) + np.asarray(tangent), atol=1e-12)
    weights = np.random.default_rng(2).normal(size=out.shape)
    gradient = hg.grad(lambda x: hnp.sum(f(x) * weights))(x)
    np.testing.assert_allclose(hnp.sum(gradient * step), hnp.sum(tangent * weights), rtol=1e-9)


@pytest.mark.parametrize("mode", ["edge", "wrap", "reflect", "symmetric", "mean", "median", "maximum", "linear_ramp"])
def test_one_element_and_none(mode: str) -> None:
    x = np.array([[3.0]])
    np.testing.assert_array_equal(hnp.pad(x, 3, mode=mode), np.pad(x, 3, mode=mode))
    assert hnp.pad(np.zeros((0, 3)), ((0, 0), (0, 0)), mode=mode).shape == (0, 3)
    with pytest.raises(ShapeError):
        hnp.pad(np.zeros((0, 3)), 1, mode=mode)


def test_values_that_are_no_numbers() -> None:
    x = np.array([1.0, np.nan, np.inf, -2.0, np.inf, np.inf])
    for mode in ("maximum", "minimum", "median", "mean"):
        for n in (1, 2, 3, 4, None):
            np.testing.assert_array_equal(hnp.pad(x, 2, mode=mode, stat_length=n), np.pad(x, 2, mode=mode, stat_length=n))


def test_modes_and_options_that_are_not_there() -> None:
    assert hnp.pad(np.ones(2), 1, mode="empty").shape == (4,)
    for options in ({"mode": "reflekt"}, {"mode": "reflect", "reflect_type": "add"}):
        with pytest.raises(ArgumentError):
            hnp.pad(np.ones(3), 1, **options)
    taken = {"constant_values": "constant", "end_values": "linear_ramp", "reflect_type": "reflect symmetric"}
    taken["stat_length"] = "mean median maximum minimum"
    for mode in ("constant", "edge", "empty", "linear_ramp", "maximum", "mean", "median", "minimum", "reflect", "symmetric", "wrap"):
        for option, modes in taken.items():
            given = {option: "odd" if option == "reflect_type" else 2}
            if mode in modes.split():
                np.testing.assert_array_equal(hnp.pad(np.arange(3.0), 1, mode, **given), np.pad(np.arange(3.0), 1, mode, **given))
            else:
                with pytest.raises(ArgumentError, match=option):
                    hnp.pad(np.ones(3), 1, mode, **given)
    for options in ({"mode": "mean", "stat_length": 0}, {"mode": "linear_ramp", "end_values": [1, 2, 3]}):
        with pytest.raises(ShapeError):
            hnp.pad(np.ones(3), 1, **options)


def test_convolution_of_infinite_elements() -> None:
    """Elements of the shorter vector meet no zeros beyond the longer one."""
    a, b = np.array([0.0, np.inf, 2.0, 1.0]), np.array([np.inf, 1.0])
    for mode in ("full", "same", "valid"):
        np.testing.assert_array_equal(hnp.convolve(a, b, mode), np.convolve(a, b, mode))
        np.testing.assert_array_equal(hnp.correlate(a[:1], b, mode), np.correlate(a[:1], b, mode))
