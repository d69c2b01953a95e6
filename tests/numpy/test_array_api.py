"""The Python Array API standard, 2025.12: names, keywords, inspection.

``array_api_xfails.txt`` lists what the standard's own test suite finds; it is run by hand.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import DTypeError

NAMES = """
e inf nan newaxis pi bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128
asarray empty empty_like eye from_dlpack full_like linspace meshgrid tril triu
astype broadcast_arrays broadcast_to can_cast finfo iinfo isdtype result_type
abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_invert bitwise_or bitwise_right_shift bitwise_xor ceil
conj copysign cos cosh divide equal exp expm1 floor floor_divide greater greater_equal hypot imag isfinite isinf isnan less less_equal log
log1p log2 log10 logaddexp logical_and logical_not logical_or logical_xor maximum minimum multiply negative nextafter not_equal positive pow
real reciprocal remainder round sign signbit sin sinh square sqrt subtract tan tanh trunc matmul matrix_transpose moveaxis nonzero reshape
unique_all unique_counts unique_inverse unique_values where __array_namespace_info__ __array_api_version__
""".split()
KEYWORDS = {
    "all": "axis keepdims", "any": "axis keepdims", "arange": "stop step dtype device", "argmax": "axis keepdims", "argmin": "axis keepdims",
    "argsort": "axis descending stable", "clip": "min max", "concat": "axis", "count_nonzero": "axis keepdims",
    "cumulative_prod": "axis dtype include_initial", "cumulative_sum": "axis dtype include_initial", "diff": "axis n prepend append",
    "expand_dims": "axis", "flip": "axis", "full": "dtype device", "max": "axis keepdims", "mean": "axis keepdims", "min": "axis keepdims",
    "ones": "dtype device", "ones_like": "dtype device", "permute_dims": "axes", "prod": "axis dtype keepdims", "repeat": "axis", "roll": "axis",
    "searchsorted": "side sorter", "sort": "axis descending stable", "squeeze": "axis", "stack": "axis", "std": "axis correction keepdims",
    "sum": "axis dtype keepdims", "take": "axis", "take_along_axis": "axis", "tensordot": "axes", "unstack": "axis",
    "var": "axis correction keepdims", "vecdot": "axis", "zeros": "dtype device", "zeros_like": "dtype device", "asarray": "dtype device copy",
    "tile": "", "astype": "copy device", "reshape": "copy", "eye": "k dtype device", "linspace": "num dtype device endpoint",
}  # fmt: skip


@pytest.mark.parametrize("name", [*NAMES, *KEYWORDS])
def test_names(name: str) -> None:
    assert hasattr(hnp, name)


@pytest.mark.parametrize("name", KEYWORDS)
def test_keywords(name: str) -> None:
    parameters = inspect.signature(getattr(hnp, name)).parameters
    for keyword in KEYWORDS[name].split():
        assert parameters[keyword].kind is not inspect.Parameter.POSITIONAL_ONLY


def test_inspection() -> None:
    info = hnp.__array_namespace_info__()
    assert info.capabilities() == {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": None}
    assert info.default_device() == "cpu" == info.devices()[0]
    assert isinstance(info.devices(), tuple)
    for device in info.devices():
        assert hnp.ones(2, device=device).device == device
    assert info.default_dtypes()["real floating"] == np.float32 and info.default_dtypes()["indexing"] == np.int64
    assert set(info.dtypes(kind="real floating")) == {"float32", "float64"}
    assert set(info.dtypes(kind=("bool", "unsigned integer"))) == {"bool", "uint8", "uint16", "uint32", "uint64"}
    assert len(info.dtypes()) == 13
    assert hg.tensor([1.0]).__array_namespace__() is hg.tensor([1.0]).__array_namespace__(api_version="2025.12") is hnp
    with pytest.raises(ValueError, match="'1999.12' is not supported"):
        hg.tensor([1.0]).__array_namespace__(api_version="1999.12")
    assert hnp.__array_api_version__ == "2025.12" and isinstance(hnp.meshgrid([1], [2]), tuple) and isinstance(hnp.broadcast_arrays([1], [2]), tuple)


@pytest.mark.parametrize("version", ["2021.12", "2022.12", "2023.12", "2024.12"])
def test_earlier_versions_have_lists(version: str) -> None:
    xp = hg.tensor([1.0]).__array_namespace__(api_version=version)
    assert xp.__array_api_version__ == "2024.12" and xp.sum is hnp.sum and xp.linalg is hnp.linalg and set(dir(hnp)) <= set(dir(xp))
    assert type(xp.__array_namespace_info__().devices()) is list and xp.__array_namespace_info__().capabilities()["boolean indexing"]
    for found, wanted in (
        (xp.meshgrid([1, 2], [3], indexing="ij"), hnp.meshgrid([1, 2], [3], indexing="ij")),
        (xp.broadcast_arrays([1], 2), [[1], [2]]),
    ):
        assert type(found) is list
        for got, want in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_hyperbolic_tangent_at_infinity(dtype: Any) -> None:
    """The sign of the zero is the standard's: that of the imaginary part."""
    y = np.array([-3.0, -1.0, -0.0, 0.0, 1.0, 2.0, 3.0, 1e16])
    for x in (np.inf, -np.inf):
        z = (np.full(8, x) + 1j * 0).astype(dtype)
        z.imag = y
        for f, at in ((hnp.tanh, z), (lambda z: -1j * hnp.tan(z), _rotated(z))):
            for got in (f(hg.tensor(at)), hg.jit(f)(at)):
                np.testing.assert_array_equal(np.real(got), np.sign(x))
                np.testing.assert_array_equal(np.imag(got), 0)
        assert np.signbit(np.imag(hnp.tanh(z))).tolist() == np.signbit(y).tolist()


def _rotated(z: np.ndarray) -> np.ndarray:
    """``i z``, without products of infinities and zeros."""
    made = z.copy()
    made.real, made.imag = -z.imag, z.real
    return made


def test_capabilities_while_tracing() -> None:
    """There are no values, so shapes cannot depend on them."""
    seen = {}
    hg.jit(lambda x: seen.update(hnp.__array_namespace_info__().capabilities()) or x)(np.ones(2))
    assert seen == {"boolean indexing": False, "data-dependent shapes": False, "max dimensions": None}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_floor_division_by_and_of_infinities(dtype: Any) -> None:
    """As NumPy by default; under the setting as the standard has it, lazily, traced, reflected, and beside programs of the other kind."""
    x, y = (g.ravel() for g in np.meshgrid(*[np.array([-np.inf, -7.5, -0.0, 0.0, 2.0, np.inf, np.nan], dtype)] * 2))
    with np.errstate(all="ignore"):
        numpys = np.floor_divide(x, y)
        standard = np.where(np.isinf(x) | np.isinf(y), x / y, numpys)
    run = hg.jit(lambda x, y: (x // y, hnp.floor_divide(x, y), divmod(x, y)[0]))
    for on, want in ((False, numpys), (True, standard), (False, numpys)):
        with hg.settings.override(standard_floor_divide=on):
            found = [*run(x, y), hg.tensor(x) // y, x // hg.tensor(y), hnp.floor_divide(x, y)]
            for got in found:
                np.testing.assert_array_equal(got, want)
                np.testing.assert_array_equal(np.signbit(got)[want == 0], np.signbit(want[want == 0]))
            np.testing.assert_array_equal((hnp.asarray([-np.inf, 5.0]) // 2.0), [-np.inf if on else np.nan, 2.0])
            np.testing.assert_array_equal(hg.tensor([7, -7]) // 2, [3, -4])


def test_rint_gives_floats_and_round_keeps_integers() -> None:
    for x in (np.array([1, -2]), np.array([True, False])):
        for f in (hnp.rint, hg.jit(hnp.rint)):
            assert f(x).dtype == np.float32
            np.testing.assert_array_equal(f(x), np.rint(x))
        np.testing.assert_array_equal(hnp.round(x), x)
        assert hnp.round(x).dtype == x.dtype


def test_limits_are_python_numbers() -> None:
    for d in (np.float32, np.complex64, hnp.ones(2)):
        limits = hnp.finfo(d)
        assert type(limits.eps) is float and limits.bits == 32 and limits.dtype == np.float32 and limits.tiny == limits.smallest_normal
    assert hnp.iinfo(np.int8).min == -128 and type(hnp.iinfo(np.uint64).max) is int


def test_differences_take_ends() -> None:
    x = np.array([[1, 4, 9], [2, 3, 5]])
    np.testing.assert_array_equal(hnp.diff(x, prepend=np.array([[0], [1]]), append=7), np.diff(x, prepend=np.array([[0], [1]]), append=7))
    np.testing.assert_array_equal(hnp.diff(x, axis=0, n=2, prepend=1), np.diff(x, axis=0, n=2, prepend=1))


def test_complex_numbers_are_moved_but_not_compared_by_operators() -> None:
    for d in (np.complex64, np.complex128):
        z = hnp.full((2, 3), 1 + 2j, dtype=d)
        np.testing.assert_array_equal(z.mT[1:], np.full((2, 2), 1 + 2j, d))
        x = np.arange(6).astype(d)
        np.testing.assert_array_equal(hnp.asarray(x)[np.array([4, 1])], x[[4, 1]])
        np.testing.assert_array_equal(hnp.asarray(x).at[np.array([4, 1])].set(7j), np.array([0, 7j, 2, 3, 7j, 5], d))
        for op in (hnp.floor, lambda z: z < z):
            with pytest.raises(DTypeError, match=np.dtype(d).name):
                op(z)
