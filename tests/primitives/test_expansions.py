"""Mathematical functions: at most 2 ULP from the true value everywhere, with and without FMA, and C99's special cases."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest

from hologram import dtypes
from hologram.dtypes import DType
from hologram.ir.graph import Graph
from hologram.ir.leaves import input_
from hologram.ir.node import Builder
from hologram.primitives import TABLE, Op
from hologram.primitives import expansions as vector_math
from tests.support.optable import compiler, special_values
from tests.support.scalar_code import run
from tests.support.ulps import ulps, ulps_of_float64

ROWS = [TABLE[name] for name in vector_math.__all__]
UNARY = [row for row in ROWS if row.arity == 1]
LIMIT = 2.0
by_name = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
with_and_without_fma = pytest.mark.parametrize("fused", [True, False], ids=["fused", "unfused"])

MPMATH: dict[str, Callable[..., Any]] = {
    "atan2": mpmath.atan2,
    "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
    "erf": mpmath.erf,
    "erfc": lambda x: mpmath.erfc(min(x, 40)),  # mpmath fails where the result is far below the least number
    "erfinv": mpmath.erfinv,
    "exp2": lambda x: mpmath.power(2, x),
    "expm1": mpmath.expm1,
    "hypot": mpmath.hypot,
    "log10": mpmath.log10,
    "log1p": mpmath.log1p,
    "log2": lambda x: mpmath.log(x) / mpmath.log(2),
    "pow": mpmath.power,
    "rsqrt": lambda x: 1 / mpmath.sqrt(x),
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
}


# --- arguments and errors --------------------------------------------------------------------------------------------


def random_bits(d: DType, n: int, rng: np.random.Generator) -> np.ndarray:
    """Numbers of every exponent, both signs; infinities included, NaN left out."""
    x = rng.integers(0, 2**d.bits, n, np.dtype(f"uint{d.bits}")).view(d.np)
    return x[~np.isnan(x)]


def arguments(row: Op, d: DType, n: int) -> list[np.ndarray]:
    """Half of every exponent, half from the range that the row names."""
    rng = np.random.default_rng(zlib.crc32(f"{row.name} {d}".encode()))
    columns = []
    for _ in range(row.arity or 1):
        bits = random_bits(d, n // 2 + n // 100, rng)[: n // 2]
        columns.append(np.concatenate([bits, rng.uniform(row.tests["low"], row.tests["high"], n - n // 2).astype(d.np)]))
    if row.name == "pow":  # results near both ends of the range are where an error of the logarithm shows
        with np.errstate(all="ignore"):
            ends = rng.uniform(-0.99, 0.99, n - n // 2) * float(np.log2(np.finfo(d.np).max)) / np.log2(columns[0][n // 2 :].astype(np.float64))
        columns[1][n // 2 :] = np.clip(np.nan_to_num(ends), -1e30, 1e30)
    return columns


WIDER = {dtypes.float32: np.float64, dtypes.float64: np.longdouble}


def reference(row: Op, arrays: list[np.ndarray]) -> np.ndarray:
    """The true values to half a unit of a wider type, where the machine has one."""
    return np.asarray(row.reference(*(a.astype(WIDER[dtypes.of(a.dtype)]) for a in arrays)))


def assert_close(row: Op, arrays: list[np.ndarray], got: np.ndarray, want: np.ndarray) -> None:
    error = ulps(got, want)
    at = int(np.argmax(error))
    limit = LIMIT if np.finfo(want.dtype).nmant > np.finfo(got.dtype).nmant else LIMIT + 0.5  # the reference is rounded itself
    assert error[at] <= limit, f"{row.name}{[a[at] for a in arrays]} is {want[at]!r}, not {got[at]!r}: {error[at]:.3f} ULP"
    sign = (np.signbit(got) != np.signbit(want)) & ~np.isnan(want)
    assert not sign.any(), f"{row.name}{[a[sign][0] for a in arrays]} has the wrong sign"


# --- accuracy of the decompositions ----------------------------------------------------------------------------------


@by_name
@with_and_without_fma
def test_float32(row: Op, fused: bool, everything: bool) -> None:
    arrays = arguments(row, dtypes.float32, 2_000_000 if everything else 60_000)
    assert_close(row, arrays, run(row, arrays, fused), reference(row, arrays))


def true_values(row: Op, arrays: list[np.ndarray]) -> list[Any]:
    f = MPMATH.get(row.name) or getattr(mpmath, row.name)
    with mpmath.workprec(120):
        return [f(*(mpmath.mpf(float(x)) for x in xs)) for xs in zip(*arrays, strict=True)]


@by_name
def test_float64(row: Op, everything: bool) -> None:
    """Against mpmath, on arguments whose true value is real and finite."""
    arrays = arguments(row, dtypes.float64, 20_000 if everything else 600)
    plain = np.isfinite(reference(row, arrays))
    for a in arrays:
        plain &= np.isfinite(a)
    arrays = [a[plain] for a in arrays]
    want = true_values(row, arrays)
    for fused in (True, False):
        for i, (g, w) in enumerate(zip(run(row, arrays, fused).tolist(), want, strict=True)):
            error = ulps_of_float64(g, w)
            assert error <= LIMIT, f"{row.name}{[a[i] for a in arrays]} is {mpmath.nstr(w, 20)}, not {g!r}: {error:.3f} ULP"


@pytest.mark.parametrize("d", [dtypes.float32, dtypes.float64], ids=repr)
@with_and_without_fma
@by_name
def test_special_values(row: Op, d: DType, fused: bool) -> None:
    grid = np.meshgrid(*[special_values(d)] * (row.arity or 1))
    arrays = [g.ravel() for g in grid]
    assert_close(row, arrays, run(row, arrays, fused), reference(row, arrays))


# --- exactness -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [dtypes.float32, dtypes.float64], ids=repr)
def test_powers_of_two_are_exact(d: DType) -> None:
    info = np.finfo(d.np)
    exponents = np.arange(info.minexp - info.nmant, info.maxexp).astype(d.np)
    powers = np.ldexp(np.ones((), d.np), exponents.astype(np.int32))
    for fused in (True, False):
        np.testing.assert_array_equal(run(TABLE["exp2"], [exponents], fused), powers)
        np.testing.assert_array_equal(run(TABLE["log2"], [powers], fused), exponents)
        np.testing.assert_array_equal(run(TABLE["pow"], [np.full_like(exponents, 2), exponents], fused), powers)


@pytest.mark.parametrize("d", [dtypes.float32, dtypes.float64], ids=repr)
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_near_multiples_of_a_right_angle(name: str, d: DType) -> None:
    """Where the reduction cancels most, on both sides of the limit between its two ways, and for the worst argument known."""
    row = TABLE[name]
    n = np.unique(np.concatenate([np.arange(1, 2000), np.geomspace(2000, 2.0**24, 2000).round()]))
    near = (n * np.pi / 2).astype(d.np)
    worst = np.array([6381956970095103 * 2.0**797 if d is dtypes.float64 else 16367173 * 2.0**72], d.np)
    x = np.concatenate([near, np.nextafter(near, np.inf, dtype=d.np), np.nextafter(near, -np.inf, dtype=d.np), worst, -worst])
    for fused in (True, False):
        got = run(row, [x], fused)
        if d is dtypes.float32:
            assert_close(row, [x], got, reference(row, [x]))
        else:
            error = [ulps_of_float64(g, w) for g, w in zip(got.tolist(), true_values(row, [x]), strict=True)]
            assert max(error) <= LIMIT


@with_and_without_fma
def test_erfc_where_its_polynomial_is_steep(fused: bool) -> None:
    """Between 7 and 16 an error of the variable of its polynomial weighs most; at each of the first points one way has erred by more."""
    row = TABLE["erfc"]
    worst = np.array([7.870583613992555, 7.787308132487498, 13.94057529343815, 14.453256517090152, 14.667445484021268])
    for got, want in zip(run(row, [worst], fused).tolist(), true_values(row, [worst]), strict=True):
        assert ulps_of_float64(got, want) <= 1.6
    x = np.random.default_rng(7).uniform(7.0, 16.0, 300_000)
    assert_close(row, [x], run(row, [x], fused), reference(row, [x]))


# --- the compiled functions ------------------------------------------------------------------------------------------


FAR_TAILS: dict[str, Callable[[np.ndarray], list[np.ndarray]]] = {  # arguments of results that are 0, made of large numbers
    "erfc": lambda x: [x],
    "exp": lambda x: [-x],
    "exp2": lambda x: [-x],
    "ndtr": lambda x: [-x],
    "pow": lambda x: [np.full_like(x, 0.5), x],
    "sigmoid": lambda x: [-x],
}


@pytest.mark.parametrize("d", [dtypes.float32, dtypes.float64], ids=repr)
@pytest.mark.parametrize("name", FAR_TAILS)
def test_results_that_are_zero_take_no_operation_that_underflows(name: str, d: DType) -> None:
    """Masks of scores give such results. Many processors take a hundred times as long for an operation that underflows."""

    def watch(ins: Any, operands: list[Any], result: np.ndarray) -> None:
        if ins.op.name in ("mul", "div") and result.dtype.kind == "f":
            is_product = np.all([o != 0 for o in np.broadcast_arrays(*operands)], axis=0)
            assert not np.any(is_product & (np.abs(result) < np.finfo(d.np).tiny)), f"{ins.op.name} of {operands} is {result}"

    arrays = FAR_TAILS[name](np.array([np.inf, np.finfo(d.np).max, 1e9, 1100.0], d.np))
    np.testing.assert_array_equal(run(TABLE[name], arrays, fused=False, watch=watch), np.zeros(4, d.np))


@pytest.mark.crossed
@pytest.mark.parametrize("d", [dtypes.float32, dtypes.float64], ids=repr)
@by_name
def test_compiled(row: Op, d: DType, everything: bool) -> None:
    """As code of this machine, on many values."""
    arrays = arguments(row, d, 4_000_000 if everything else 300_000)
    build = Builder()
    inputs = [build(input_, (), (i, a.shape, d.name, None)) for i, a in enumerate(arrays)]
    graph = Graph(inputs, [build(row, tuple(inputs), ())])
    (got,) = compiler()(graph, precision="standard").run_numpy(arrays)
    assert_close(row, arrays, got, reference(row, arrays))


# --- the polynomials -------------------------------------------------------------------------------------------------


def test_coefficients_are_those_of_the_tool() -> None:
    root = Path(__file__).parents[2]
    sys.path.insert(0, str(root / "tools"))
    try:
        import minimax
    finally:
        sys.path.pop(0)
    held = {p.stem: p.read_text() for p in minimax.FOLDER.glob("*.py")}
    for name in ("TANH", "COSH"):
        assert minimax.table(name, minimax.FITS[name]) in held["exponential"]
    assert sorted(name for names in minimax.FILES.values() for name in names) == sorted(minimax.FITS)
    assert all(f"\n{name} = {{" in held[file] for file, names in minimax.FILES.items() for name in names)
