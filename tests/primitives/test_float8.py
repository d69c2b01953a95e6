"""8-bit floats: casts against exact rounding, arithmetic against ml_dtypes, promotion, and what it is to have no infinity."""

from __future__ import annotations

import operator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram import dtypes, nn
from hologram.backends.c.analysis.gemm import GPU_TILE
from hologram.dtypes import DType
from hologram.errors import DTypeError
from hologram.graph.pipeline import compile_to_plan
from hologram.primitives.scalar.elementwise import cast_reference
from hologram.settings import override
from tests.support.building import Draft
from tests.support.comparing import close
from tests.support.devices.c_harness import run
from tests.support.needs import needs_compilers
from tests.support.optable import mismatch

E4M3, E5M2 = dtypes.float8_e4m3fn, dtypes.float8_e5m2
both = pytest.mark.parametrize("d", [E4M3, E5M2], ids=repr)
WIDER = [dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64]
INTEGERS = [d for d in dtypes.ALL if d.is_integer or d.kind == "b"]
R = np.random.default_rng(8)


def every(d: DType) -> np.ndarray:
    """The numbers of all 256 bit patterns."""
    return np.arange(256, dtype=np.uint8).view(d.np)


def decoded(d: DType) -> np.ndarray:
    """The values of the positive patterns up to that of what is beyond the range, as if it were a number, by the definition of the format."""
    fraction_bits, least, last = (3, -6, 0x7F) if d is E4M3 else (2, -14, 0x7C)
    patterns = np.arange(last + 1)
    exponent, fraction = patterns >> fraction_bits, (patterns & (1 << fraction_bits) - 1) / 2.0**fraction_bits
    return np.where(exponent == 0, fraction * 2.0**least, (1 + fraction) * 2.0 ** (exponent - 1 + least))


def nearest(x: np.ndarray, d: DType) -> np.ndarray:
    """The bits of the numbers of ``d`` nearest to ``x``, ties to even. Midpoints are exact in float64."""
    with np.errstate(invalid="ignore"):  # signalling NaNs
        values, wide = decoded(d), x.astype(np.float64)
    middle = (values[1:] + values[:-1]) / 2
    size = np.abs(wide)
    below = np.searchsorted(middle, size, side="left")  # the number of midpoints below
    tie = (below < middle.size) & (size == middle[np.minimum(below, middle.size - 1)]) & (below % 2 == 1)
    found = np.where(np.isnan(wide), 0x7F if d is E4M3 else 0x7E, below + tie)
    return (found | np.where(np.signbit(wide), 0x80, 0)).astype(np.uint8)


def around(d: DType, of: DType) -> np.ndarray:
    """Numbers of the type ``of`` where rounding to ``d`` decides: values, midpoints, their neighbours; ends; any bits."""
    if of.bits == 16:
        return np.arange(65536, dtype=np.uint16).view(of.np)
    values = decoded(d)
    edges = np.concatenate([values, (values[1:] + values[:-1]) / 2, [values[-1] * 2, np.inf, 0.5 * values[1], 0.49 * values[1]]]).astype(of.np)
    edges = np.concatenate([edges, -edges])
    with np.errstate(all="ignore"):
        near = [np.nextafter(edges, of.np.type(end)) for end in (-np.inf, np.inf)]
        words = R.integers(0, 2**of.bits - 1, 20_000, f"u{of.itemsize}", endpoint=True).view(of.np)
        return np.concatenate([edges, *near, words, (R.normal(size=20_000) * 200).astype(of.np), np.array([np.nan, -np.nan], of.np)])


def bits(x: Any) -> np.ndarray:
    return np.asarray(x).view(np.uint8)


# --- casts -----------------------------------------------------------------------------------------------------------


@both
def test_all_numbers_are_their_values(d: DType) -> None:
    positive = np.asarray(hnp.astype(every(d)[: decoded(d).size - 1], "float64"))
    np.testing.assert_array_equal(positive, decoded(d)[:-1])


@both
@pytest.mark.parametrize("to", [E4M3, E5M2, *WIDER], ids=repr)
def test_widening_has_the_bits_of_ml_dtypes(d: DType, to: DType) -> None:
    """NaNs too, of both signs."""
    want = every(d).astype(to.np)
    for got in (hg.jit(lambda x: x.astype(to))(every(d)), hg.tensor(every(d)).astype(to), cast_reference(every(d), to.name)):
        np.testing.assert_array_equal(np.asarray(got).view(f"u{to.itemsize}"), want.view(f"u{to.itemsize}"))


@both
@pytest.mark.parametrize("of", WIDER, ids=repr)
def test_narrowing_rounds_once(d: DType, of: DType) -> None:
    x = around(d, of)
    want = nearest(x, d)
    for got in (hg.jit(lambda x: x.astype(d))(x), hg.tensor(x, dtype=d), cast_reference(x, d.name)):
        np.testing.assert_array_equal(bits(got), want)
    if of is not dtypes.float64:  # which NumPy rounds twice, by way of float32
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(bits(x.astype(d.np)), want)


@both
def test_without_instructions_for_float16(d: DType) -> None:
    """Narrow floats of either size by the same code on bits."""
    with override(target="x86-64"):
        for of in (dtypes.float16, dtypes.float32):
            x = around(d, of)
            np.testing.assert_array_equal(bits(hg.jit(lambda x: x.astype(d) * 1)(x)), nearest(x, d))
        x = around(d, dtypes.float32)
        with np.errstate(all="ignore"):
            want = x.astype(np.float16)
        assert not mismatch(np.asarray(hg.jit(lambda x: x.astype("float16") * 1)(x)), want, 0).any()
        np.testing.assert_array_equal(np.asarray(hg.jit(lambda x: x.astype("float32"))(every(d))), every(d).astype(np.float32))


@both
@pytest.mark.parametrize("of", INTEGERS, ids=repr)
def test_integers_round_once_and_back_saturate(d: DType, of: DType) -> None:
    info = np.iinfo(of.np) if of.is_integer else None
    ends = [0, 1] if info is None else [info.min, info.max, *range(max(info.min, -70_000), min(info.max, 70_000), 7), 17, 19]
    x = np.array(ends, of.np)
    np.testing.assert_array_equal(bits(hg.jit(lambda x: x.astype(d))(x)), nearest(x, d))
    back = np.asarray(hg.jit(lambda x: x.astype(of))(every(d)))
    np.testing.assert_array_equal(back, cast_reference(every(d).astype(np.float64), of.name))


@both
def test_python_numbers_round_once(d: DType) -> None:
    """As arguments, which native code converts, and as constants."""
    f = hg.jit(lambda x, y: x * y)
    one = hnp.ones((), dtype=d)
    x = np.concatenate([around(d, dtypes.float64)[:1500:7], [np.nan]])
    want = nearest(x, d)
    np.testing.assert_array_equal([bits(f(one, v)) for v in x.tolist()], want)
    np.testing.assert_array_equal([bits(hnp.full((), v, dtype=d)) for v in x.tolist()], want)


# --- arithmetic ------------------------------------------------------------------------------------------------------

OPS = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv}


@both
@pytest.mark.parametrize("op", OPS)
def test_arithmetic_of_all_pairs_is_that_of_ml_dtypes(d: DType, op: str) -> None:
    x, y = (a.ravel() for a in np.meshgrid(every(d), every(d)))
    with np.errstate(all="ignore"):
        want = OPS[op](x, y)
    for precision in ("exact", "standard"):
        got = np.asarray(hg.jit(OPS[op], precision=precision)(x, y))
        assert got.dtype == d.np and not mismatch(got, want, 0).any()


@both
@pytest.mark.parametrize("name", ["sqrt", "exp", "log", "tanh", "sin", "negative", "abs", "floor", "isnan", "isinf", "isfinite", "signbit"])
def test_functions_are_those_of_float32_rounded(d: DType, name: str) -> None:
    x = every(d)
    with np.errstate(all="ignore"):
        want = getattr(np, name)(x.astype(np.float64))
        want = want.astype(np.float32).astype(d.np) if want.dtype.kind == "f" else want
    got = np.asarray(hg.jit(getattr(hnp, name))(x))
    assert got.dtype == want.dtype and not mismatch(got, want, 0).any()


@both
def test_an_op_rounds_its_result_and_a_second_op_reads_that(d: DType) -> None:
    x = np.array([1.0, 17.0, 0.3]).astype(d.np)
    factor, term = (np.array(v).astype(d.np) for v in (1.375, 0.0625))
    for f, want in ((lambda x: x * 1.375 + x, x * factor + x), (lambda x: (x + 0.0625) * 3, (x + term) * np.array(3).astype(d.np))):
        assert want.dtype == d.np
        np.testing.assert_array_equal(bits(hg.jit(f)(x)), bits(want))
        np.testing.assert_array_equal(bits(f(hg.tensor(x))), bits(want))


@both
def test_sums_and_products_accumulate_in_float32(d: DType) -> None:
    ones = np.ones(300, d.np)  # whose running sum in 8 bits would stop at 16, or 8
    assert float(hnp.sum(ones)) == float(np.float32(300).astype(d.np)) and float(hnp.mean(ones)) == 1
    assert float(hnp.cumulative_sum(ones)[-1]) == float(np.float32(300).astype(d.np))
    x, y = (R.normal(size=s).astype(d.np) for s in ((20, 33), (33, 18)))
    want = (x.astype(np.float32) @ y.astype(np.float32)).astype(d.np)
    for f in (hnp.matmul, hg.jit(hnp.matmul)):
        got = np.asarray(f(x, y))
        assert got.dtype == d.np and not mismatch(got, want, 1).any()
    wide = np.asarray(hnp.matmul(x, y, preferred_element_type="float32"))
    np.testing.assert_allclose(wide, x.astype(np.float32) @ y.astype(np.float32), rtol=1e-5, atol=1e-5)


@both
def test_transforms_and_sizes_that_vary(d: DType) -> None:
    x = np.linspace(-2, 2, 12).astype(d.np)
    gradient = hg.grad(lambda x: (x.astype("float32") ** 2).sum())(x)
    assert gradient.dtype == d.np
    np.testing.assert_array_equal(bits(gradient), bits(x + x))
    np.testing.assert_array_equal(bits(hg.grad(lambda x: hnp.sum(x * x))(x)), bits(x + x))
    rows = x.reshape(3, 4)
    np.testing.assert_array_equal(bits(hg.vmap(lambda r: r * r[0])(rows)), bits(rows * rows[:, :1]))
    f = hg.jit(lambda x: hnp.sum(x * 2), dynamic={"x": {0: "n"}})
    for n in (1, 7, 12):
        assert float(f(x[:n])) == float((x[:n] * x.dtype.type(2)).astype(np.float32).sum().astype(d.np))
    total, seen = hg.scan(lambda c, v: (c + v, c), hnp.zeros((), dtype=d), x)
    assert total.dtype == seen.dtype == d.np


# --- no infinity -----------------------------------------------------------------------------------------------------


def test_beyond_the_range_is_nan_where_there_is_no_infinity() -> None:
    x = hg.tensor([400.0, -400.0]).astype("float8_e4m3fn")
    assert np.isnan((x + x).astype("float32").numpy()).all()
    assert np.isnan(float(hnp.full((), np.inf, dtype="float8_e4m3fn")))
    y = hg.tensor([50_000.0, -50_000.0]).astype("float8_e5m2")
    assert (y + y).astype("float32").tolist() == [np.inf, -np.inf]


@both
def test_order_with_nans_of_both_signs(d: DType) -> None:
    x = R.permutation(every(d))
    wide = x.astype(np.float64)
    for axis_first in (x, R.permutation(np.tile(x, 20))):
        got = np.asarray(hnp.sort(axis_first)).astype(np.float64)
        np.testing.assert_array_equal(got, np.sort(axis_first.astype(np.float64)))
    numbers = wide[~np.isnan(wide)]
    assert (float(hnp.nanmax(x)), float(hnp.nanmin(x))) == (numbers.max(), numbers.min())
    assert wide[int(hnp.nanargmax(x))] == numbers.max() and np.isnan(float(hnp.max(x)))
    low = hnp.full((4,), float(numbers.min()), dtype=d)
    assert float(hnp.max(low)) == float(hnp.nanmax(low)) == numbers.min()
    filled = hnp.full((3,), float(numbers.min()), dtype=d).at[np.array([0, 1])].max(low[:2])
    assert filled.astype("float64").tolist() == [numbers.min()] * 3


@both
def test_pools_of_the_lowest_numbers(d: DType) -> None:
    lowest = -d.format.largest
    x = hnp.full((1, 1, 4), lowest, dtype=d)
    assert np.asarray(nn.max_pool1d(x, 2, padding=1)).astype(np.float64).ravel().tolist() == [lowest] * 3


# --- promotion -------------------------------------------------------------------------------------------------------


@both
def test_promotion_is_jaxs(d: DType) -> None:
    x = hnp.ones(2, dtype=d)
    for other in INTEGERS:
        assert (x * hnp.ones(2, dtype=other)).dtype == hnp.result_type(other, d) == d.np
    for number in (True, 2, 2.5):
        assert (x + number).dtype == (number * x).dtype == d.np
    for other in [e for e in dtypes.ALL if e.kind in "fc" and e is not d]:
        with pytest.raises(DTypeError, match=f"8-bit floats do not promote.*test_float8.py:{_line(1)}"):
            x + hnp.ones(2, dtype=other)
        assert not hnp.can_cast(d, other) and not hnp.can_cast(other, d)
        assert (x.astype(other) + hnp.ones(2, dtype=other)).dtype == other.np
    with pytest.raises(DTypeError, match="complex"):
        x + 1j
    with pytest.raises(DTypeError, match="do not promote"):
        x * np.float32(2)
    assert hnp.where(x > 0, x, -1).dtype == d.np


def _line(after: int) -> int:
    import sys

    return sys._getframe(1).f_lineno + after


# --- around ----------------------------------------------------------------------------------------------------------


@both
def test_printing_and_limits(d: DType) -> None:
    x = hg.tensor([1.0, -0.25]).astype(d)
    assert repr(x) == f"Tensor([1, -0.25], dtype={d.name})" and getattr(hnp, d.name) == d.np and x.tolist() == [1.0, -0.25]
    limits = hnp.finfo(d)
    assert (limits.bits, limits.max, limits.smallest_normal) == ((8, 448, 2.0**-6) if d is E4M3 else (8, 57344, 2.0**-14))
    assert (limits.max, limits.smallest_normal) == (d.format.largest, d.format.least_normal)
    assert hnp.issubdtype(d.np, hnp.floating) and hnp.isdtype(d.np, "real floating")


@pytest.mark.parametrize("d", [e for e in dtypes.ALL if e.is_float], ids=repr)
def test_formats_are_those_of_ml_dtypes(d: DType) -> None:
    info, form, words = dtypes.ml_dtypes.finfo(d.np), d.format, f"u{d.itemsize}"
    assert (form.fraction_bits, form.largest, form.least_normal) == (info.nmant, float(info.max), float(info.tiny))
    assert form.greatest == int(np.array(np.inf if form.has_infinity else info.max).astype(d.np).view(words))
    assert form.nan == int(np.array(np.nan).astype(d.np).view(words))


@both
def test_random_numbers(d: DType) -> None:
    x = np.asarray(hg.random.uniform(hg.random.key(1), (4000,), dtype=d)).astype(np.float64)
    step = 2.0**-d.format.fraction_bits
    assert set(x) == set(np.arange(0, 1, step))
    assert abs(np.asarray(hg.random.normal(hg.random.key(1), (4000,), dtype=d)).astype(np.float64).mean()) < 0.1


@both
def test_functions_of_several_types(d: DType) -> None:
    """Those that count, or weigh, by float32."""
    x = hg.tensor(np.linspace(0, 1, 40)).astype(d)
    counts, edges = hnp.histogram(x, bins=4)
    assert edges.dtype == np.float32 and int(counts.sum()) == 40
    assert counts.tolist() == np.histogram(np.asarray(x).astype(np.float32), bins=4)[0].tolist()
    assert hnp.bincount(hg.tensor([0, 1, 1]), weights=x[:3]).dtype == hnp.histogramdd(x)[0].dtype == np.float32
    rows = x.reshape(4, 10)
    assert nn.cross_entropy(rows, rows).dtype == nn.cross_entropy(rows, hg.tensor([1, 2, 3, 4])).dtype == d.np
    assert hg.special.rel_entr(x, x).dtype == hg.special.kl_div(x, x).dtype == d.np


@both
def test_linear_algebra_asks_for_float32(d: DType) -> None:
    with pytest.raises(DTypeError, match="cast to float32"):
        hg.linalg.inv(hnp.eye(2, dtype=d))
    with pytest.raises(DTypeError, match=f"nextafter does not take {d}"):
        hnp.nextafter(hnp.ones(2, dtype=d), hnp.ones(2, dtype=d))


def test_values_leave_and_come_back() -> None:
    x = {d.name: hnp.astype(np.linspace(-3, 3, 7), d.np) for d in (E4M3, E5M2)}
    close({k: v.astype("float32") for k, v in x.items()}["float8_e5m2"], np.linspace(-3, 3, 7).astype(E5M2.np).astype(np.float32))
    f = hg.jit(lambda tree: {k: v * 2 for k, v in tree.items()})
    assert {k: v.dtype for k, v in f(x).items()} == {d.name: d.np for d in (E4M3, E5M2)}


# --- kernels in C ----------------------------------------------------------------------------------------------------


@needs_compilers
@pytest.mark.parametrize("dialect", ["c", "cuda", "metal"])
def test_casts_in_c(dialect: str, tmp_path: Path) -> None:
    sources = [dtypes.float32, dtypes.float16, dtypes.int16, dtypes.uint8] + ([dtypes.float64, dtypes.int64] if dialect != "metal" else [])
    d = Draft()
    arrays = [around(E5M2, s) if s.is_float else R.integers(0, np.iinfo(s.np).max, 900, s.np) for s in sources]
    inputs = [d.input(a.size, dtype=s.name) for a, s in zip(arrays, sources, strict=True)]
    ups = [d.input(256, dtype=e.name) for e in (E4M3, E5M2)]
    down = [d("cast", x, e.name) for x in inputs for e in (E4M3, E5M2)]
    graph = d.graph(*down, *[d("cast", x, t) for x in ups for t in ("float32", "int8", "bool", "float8_e5m2")])
    given = [*arrays, *map(every, (E4M3, E5M2))]
    got = run(compile_to_plan(graph, "exact"), given, tmp_path, dialect=dialect)
    wanted = [nearest(a, e) for a in arrays for e in (E4M3, E5M2)]
    for g, w in zip(got, wanted, strict=False):
        np.testing.assert_array_equal(bits(g), w)
    rest = iter(got[len(wanted) :])
    for x in given[-2:]:
        for t in ("float32", "int8", "bool", "float8_e5m2"):
            want = cast_reference(x, t)
            g = next(rest)
            assert g.dtype == want.dtype and g.tobytes() == want.tobytes()


@needs_compilers
@pytest.mark.parametrize("dialect", ["c", "cuda", "metal"])
def test_products_in_c(dialect: str, tmp_path: Path) -> None:
    """By panels of float32: no matrix unit takes them."""
    d = Draft()
    x, y = (d("cast", d.input(*s, dtype="float8_e4m3fn"), "float32") for s in ((33, 32), (32, 48)))
    total = d("reduce_sum", d("mul", *(d("broadcast", v, (33, 32, 48), axes) for v, axes in ((x, (0, 1)), (y, (1, 2))))), (1,))
    graph = d.graph(d("cast", total, "float8_e4m3fn"))
    arrays = [R.integers(-3, 4, n.shape).astype(E4M3.np) for n in graph.inputs]
    (got,) = run(compile_to_plan(graph, "standard", GPU_TILE), arrays, tmp_path, "standard", dialect=dialect)
    want = (arrays[0].astype(np.float32) @ arrays[1].astype(np.float32)).astype(E4M3.np)
    np.testing.assert_array_equal(bits(got), bits(want))
