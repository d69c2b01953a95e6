"""Complex numbers: every row that takes them against its reference, against mpmath and against C's special cases; the namespace."""

from __future__ import annotations

import cmath
import operator
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp
from hologram import dtypes
from hologram.errors import DTypeError, ShapeError
from hologram.ir.interpreter import evaluate
from hologram.ir.op import on_complex
from hologram.primitives import TABLE, Op
from hologram.primitives.complex.parts import Each, join
from hologram.trace.operators import elementwise, node_of
from hologram.trace.recorder import record
from tests.support.complex_rows import ELEMENTWISE, TYPES, attributes, each_type, tame_values
from tests.support.optable import assert_agree, compiler, mismatch, one_op_graph, seeded, special_values

ULPS = 4  # bound of the functions' errors, in units in the last place of the larger part


def eps(dtype: Any) -> float:
    return float(np.finfo(dtype).eps)


def spread_values(dtype: Any, n: int, rng: np.random.Generator) -> np.ndarray:
    """Of every magnitude and direction; on and near the unit circle, and near 1, where logarithms vanish; near the axes."""
    angles = rng.uniform(-np.pi, np.pi, n)
    wide = np.exp2(rng.uniform(-20, 20, n)) * np.exp(1j * angles)
    circle = np.exp(1j * angles)
    near_one = rng.choice([1, -1, 1j], n) + np.exp2(rng.uniform(-30, 0, n)) * np.exp(1j * angles)
    flat = wide.real + 1j * wide.imag * np.exp2(rng.uniform(-40, 0, n))
    return np.concatenate([wide, circle, near_one, flat]).astype(dtype)


def ulps_apart(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """The distance in units in the last place of the larger part of ``want``."""
    real = got.real.dtype
    with np.errstate(all="ignore"):
        distance = np.abs(got.astype(np.clongdouble) - want.astype(np.clongdouble))
        return distance / np.maximum(np.abs(want.astype(np.clongdouble)), np.finfo(real).tiny) / np.finfo(real).eps


def assert_close(row: Op, got: np.ndarray, want: np.ndarray, arrays: list[np.ndarray], ulps: float) -> None:
    """Finite results within ``ulps``; others of the same class in both parts, up to the signs that standards leave open beside NaNs."""
    if row.name == "acosh" and np.isnan(np.arccosh(complex(0, np.nan)).imag):  # older NumPy forgets the exact part
        want = np.where((arrays[0].real == 0) & np.isnan(arrays[0].imag), got, want)
    finite = np.isfinite(want)
    far = finite & ~(ulps_apart(got, want) <= ulps)
    for part in (np.real, np.imag):
        g, w = part(got), part(want)
        far |= ~finite & ((np.isnan(g) != np.isnan(w)) | (np.isinf(g) != np.isinf(w)))
    at = np.flatnonzero(far)[:5]
    assert not at.size, f"{row.name}: {got.ravel()[at]}, not {want.ravel()[at]}, of {[a.ravel()[at] for a in arrays]}"


# --- the table -------------------------------------------------------------------------------------------------------


@pytest.mark.crossed
@each_type
@pytest.mark.parametrize("row", ELEMENTWISE, ids=lambda r: r.name)
def test_a_row_gives_its_reference(row: Op, dtype: Any) -> None:
    """Arithmetic to the bit in ``exact``; functions within a bound; on all pairs of special parts, and on values of every size."""
    rng = seeded("complex", row.name, dtype)
    specials = special_values(dtypes.of(dtype))
    for attrs in attributes(row):
        if row.name == "pow":
            arrays = [spread_values(dtype, 200, rng) ** 0.1, tame_values(dtype, 800, rng)]
        else:
            values = np.concatenate([rng.permutation(specials), spread_values(dtype, 500, rng)])
            arrays = [values, *[rng.permutation(values) for _ in range((row.arity or 1) - 1)]]
        graph = one_op_graph(row, attrs, arrays)
        (want,) = evaluate(graph, arrays)
        (got,) = compiler()(graph, precision="exact").run_numpy(arrays)
        if row.exact and row.name not in ("abs", "sign", "sqrt"):
            assert_agree((row, attrs, arrays), got, want)
        else:
            bound = ULPS * 4 if row.name == "pow" else ULPS
            assert got.dtype == want.dtype
            assert_close(row, got, want, arrays, bound)


@each_type
def test_arithmetic_is_numpys(dtype: Any) -> None:
    """Sums, differences and quotients have NumPy's bits, products its values."""
    rng = seeded("numpy", dtype)
    values = np.concatenate([rng.permutation(special_values(dtypes.of(dtype))), spread_values(dtype, 500, rng)])
    other = rng.permutation(values)
    with np.errstate(all="ignore"):
        for f in (operator.add, operator.sub, operator.truediv):
            want, got = f(values, other), hg.jit(f, precision="exact")(values, other).numpy()
            assert not mismatch(got, want, 0).any(), f
        finite, partner = (tame_values(dtype, 500, rng) for _ in range(2))
        np.testing.assert_allclose(hg.jit(operator.mul)(finite, partner).numpy(), finite * partner, rtol=4 * eps(dtype))
        np.testing.assert_allclose(hg.jit(lambda z: z**-3)(finite).numpy(), finite**-3, rtol=16 * eps(dtype))


@pytest.mark.parametrize("precision", ["standard", "fast"])
def test_functions_in_other_precisions(precision: str) -> None:
    rng = seeded("precision")
    z = tame_values(np.complex64, 300, rng)
    for row in (r for r in ELEMENTWISE if r.arity == 1 and r.attrs == () and not r.name.startswith("is")):
        want = row.reference(z)
        got = hg.jit(lambda x, row=row: elementwise(row, x), precision=precision)(z).numpy()
        assert_close(row, got, want, [z], 64 if precision == "fast" else 8)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(mpmath, name) for name in ("sqrt", "exp", "expm1", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh")},
    **{name: getattr(mpmath, name) for name in ("asin", "acos", "atan", "asinh", "acosh", "atanh")},
    "log1p": lambda z: mpmath.log(1 + z),
    "log2": lambda z: mpmath.log(z) / mpmath.log(2),
    "log10": lambda z: mpmath.log(z) / mpmath.log(10),
    "abs": abs,
    "rsqrt": lambda z: 1 / mpmath.sqrt(z),
    "sigmoid": lambda z: 1 / (1 + mpmath.exp(-z)),
    "sign": lambda z: z / abs(z),
}


@pytest.mark.crossed
@each_type
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_accurate(name: str, dtype: Any, everything: bool) -> None:
    """Against 400 bits, wherever the result is normal."""
    rng = seeded("mpmath", name, dtype)
    z = spread_values(dtype, 2000 if everything else 40, rng)
    got = hg.jit(lambda x: elementwise(TABLE[name], x), precision="exact")(z).numpy()
    largest = float(np.finfo(dtype).max)
    with mpmath.workprec(400):
        for x, y in zip(z.tolist(), got.tolist(), strict=True):
            want = FUNCTIONS[name](mpmath.mpc(x))
            size = abs(want)
            if float(np.finfo(dtype).tiny) < size < largest / 2:
                assert abs(mpmath.mpc(y) - want) <= ULPS * eps(dtype) * size, (name, x, y, complex(want))


CMATH = ["sqrt", "exp", "log", "log10", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan", "asinh", "acosh", "atanh"]


@pytest.mark.parametrize("name", CMATH)
def test_special_cases_are_those_of_c(name: str) -> None:
    """Infinities, NaNs, signed zeros and branch cuts, as Python's cmath has them; signs beside NaNs and between two infinities are open."""
    parts = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 1e300, -1e300, np.inf, -np.inf, np.nan]
    grid = join(*np.meshgrid(np.array(parts), np.array(parts))).ravel()
    got = hg.jit(lambda x: elementwise(TABLE[name], x), precision="exact")(grid).numpy()
    checked = 0
    for z, g in zip(grid.tolist(), got.tolist(), strict=True):
        try:
            want = getattr(cmath, name)(z)
        except (ValueError, OverflowError):  # errors there are infinities and NaNs here
            continue
        hyperbolic, circular = (z.imag, z.real) if name == "tan" else (z.real, z.imag)
        if name in ("acosh", "tanh", "tan") and hyperbolic == 0 and np.isnan(circular):
            continue  # later versions of C's standard, and the Array API's, know more than Python
        checked += 1
        scale = max(abs(p) for p in (want.real, want.imag) if np.isfinite(p)) if np.isfinite([want.real, want.imag]).any() else 0.0
        for a, b in ((g.real, want.real), (g.imag, want.imag)):
            if np.isnan(b) or np.isinf(b):
                assert np.isnan(a) == np.isnan(b) and np.isinf(a) == np.isinf(b), (z, g, want)
            else:
                assert abs(a - b) <= ULPS * np.finfo(float).eps * scale, (z, g, want)
            if np.isfinite([z.real, z.imag]).any() and not np.isnan([z.real, z.imag]).any() and not np.isnan([want.real, want.imag]).any():
                if name not in ("tanh", "tan") or not np.isinf(hyperbolic):  # there the sign of the zero is the Array API's
                    assert np.signbit(a) == np.signbit(b), (z, g, want)
    assert checked > 60


def test_powers_at_the_edges() -> None:
    z = np.array([0, 0, 0, 2 + 1j, np.nan])
    w = np.array([0, 2 + 1j, -1, 0, 0])
    got = hnp.pow(z, w).numpy()
    np.testing.assert_array_equal(got[[0, 1, 3, 4]], [1, 0, 1, 1])
    assert np.isnan(got[2].real) and np.isnan(got[2].imag)


def test_a_row_takes_complex_numbers_once() -> None:
    row = TABLE["add"]
    with pytest.raises(ValueError, match="already"):
        on_complex(row, row.split, row.infer, row.reference)  # type: ignore[arg-type]


def test_types_do_not_mix_within_a_row() -> None:
    with pytest.raises(DTypeError, match="complex64 and float32 differ"):
        record(TABLE["add"], tuple(node_of(hnp.asarray(np.ones(3, d))) for d in (np.complex64, np.float32)))
    with pytest.raises(DTypeError, match="complex takes two"):
        record(TABLE["complex"], tuple(node_of(hnp.asarray(np.ones(3, d))) for d in (np.float32, np.float64)))
    with pytest.raises(DTypeError, match="real does not take float32"):
        record(TABLE["real"], (node_of(hnp.asarray(np.ones(3, np.float32))),))


# --- reductions, scans, scatters -------------------------------------------------------------------------------------

SHAPES = [(0, 3), (1, 4), (7,), (33, 2), (2, 97, 3), (4000,), (3, 3100)]


@pytest.mark.crossed
@each_type
@pytest.mark.parametrize("name", ["reduce_sum", "reduce_prod", "cumsum", "cumprod"])
def test_reductions_and_scans_give_their_reference(name: str, dtype: Any, everything: bool) -> None:
    """To the bit, at every extent around the pieces that real ones are cut in."""
    row = TABLE[name]
    for shape in SHAPES if everything else SHAPES[:5]:
        x = tame_values(dtype, shape, seeded(name, dtype, shape))
        n = len(shape)
        choices: list[tuple[Any, ...]] = [(a, r) for a in range(n) for r in (False, True)]
        if row.kind == "reduce":
            choices = [((a,),) for a in range(n)] + [(tuple(range(n)),)] + ([((0, 2),)] if n == 3 else [])
        for attrs in choices:
            graph = one_op_graph(row, attrs, [x])
            (want,) = evaluate(graph, [x])
            (got,) = compiler()(graph, precision="exact").run_numpy([x])
            assert_agree((row, attrs, [x]), got, want)


def test_sums_and_products_are_numpys() -> None:
    z = tame_values(np.complex128, (5, 6), seeded("sums"))
    for axis in (None, 0, 1):
        for name in ("sum", "prod", "mean", "var", "std"):
            np.testing.assert_allclose(getattr(hnp, name)(z, axis=axis).numpy(), getattr(np, name)(z, axis=axis), rtol=1e-12)
    for name in ("cumsum", "cumprod"):
        np.testing.assert_allclose(getattr(hnp, name)(z, axis=1).numpy(), getattr(np, name)(z, axis=1), rtol=1e-12)
    np.testing.assert_allclose(hnp.cumprod(z, axis=0, reverse=True).numpy(), np.cumprod(z[::-1], axis=0)[::-1], rtol=1e-12)
    assert hnp.prod(z[:0]).numpy() == 1 and hnp.var(z).dtype == np.float64
    np.testing.assert_array_equal(hnp.any(np.array([0j, 1j, -0.0]), keepdims=True).numpy(), [True])
    assert not hnp.all(np.array([0j, 1j])) and hnp.count_nonzero(np.array([0j, 1j, complex(0, np.nan)])) == 2


def test_nans_left_out() -> None:
    z = tame_values(np.complex128, (5, 6), seeded("nans"))
    z[1, 2], z[3, 0], z[4, 4] = complex(np.nan, 1), complex(2, np.nan), complex(np.inf, -np.inf)
    np.testing.assert_array_equal(hnp.nan_to_num(z).numpy(), np.nan_to_num(z))
    np.testing.assert_array_equal(hnp.round(z).numpy(), np.round(z))
    np.testing.assert_allclose(hnp.round(z, 1).real.numpy(), np.round(z.real, 1), rtol=1e-15)
    z[4, 4] = 1
    for name in ("nansum", "nanprod", "nanmean", "nanvar", "nanstd"):
        np.testing.assert_allclose(getattr(hnp, name)(z, axis=1).numpy(), getattr(np, name)(z, axis=1), rtol=1e-12)
    for name in ("nanmax", "nanmin"):
        np.testing.assert_array_equal(getattr(hnp, name)(z).numpy(), getattr(np, name)(z))


def test_products_of_a_symbolic_number_of_elements_are_refused() -> None:
    with pytest.raises(ShapeError, match="symbolic extent"):
        hg.jit(lambda z: hnp.prod(z), dynamic=True)(np.ones(3, np.complex64))
    np.testing.assert_array_equal(hg.jit(lambda z: hnp.sum(z * z), dynamic=True)(np.full(5, 1j, np.complex64)).numpy(), -5)


def test_updates() -> None:
    z = np.array([1j, 2, 3 - 1j, 0], np.complex64)
    at = np.array([0, 0, 2])
    want = z.copy()
    np.add.at(want, at, 1j)
    np.testing.assert_array_equal(hnp.asarray(z).at[at].add(1j).numpy(), want)
    moved = z * 2
    moved[at[1:]] = z[:2] + 1j
    np.testing.assert_array_equal(hg.jit(lambda z: (z * 2).at[at[1:]].set(z[:2] + 1j))(z).numpy(), moved)
    with pytest.raises(DTypeError, match="scatter_mul does not take complex64"):
        hnp.asarray(z).at[at].multiply(2j)


# --- products --------------------------------------------------------------------------------------------------------


@each_type
def test_products_of_arrays(dtype: Any) -> None:
    rng = seeded("products", dtype)
    a, b = tame_values(dtype, (17, 24), rng), tame_values(dtype, (24, 19), rng)
    u, v = a[0], a[1]
    bound = {"rtol": 64 * eps(dtype), "atol": 64 * eps(dtype)}
    np.testing.assert_allclose((hnp.asarray(a) @ b).numpy(), a @ b, **bound)
    np.testing.assert_allclose(hg.jit(hnp.matmul, precision="exact")(a, b).numpy(), a @ b, **bound)
    np.testing.assert_allclose(hnp.vecdot(u, v).numpy(), np.vecdot(u, v), **bound)
    np.testing.assert_allclose(hnp.vdot(u, v).numpy(), np.vdot(u, v), **bound)
    np.testing.assert_allclose(hnp.tensordot(a, b, axes=1).numpy(), np.tensordot(a, b, axes=1), **bound)
    np.testing.assert_allclose(hnp.einsum("ij,jk,k->i", a, b, b[0]).numpy(), np.einsum("ij,jk,k->i", a, b, b[0]), **bound)
    np.testing.assert_allclose(hnp.outer(u, v).numpy(), np.outer(u, v), **bound)
    np.testing.assert_allclose(hnp.cov(a).numpy(), np.cov(a, dtype=dtype), **bound)


# --- the pass --------------------------------------------------------------------------------------------------------


def test_what_only_moves_stays_whole() -> None:
    """Moved complex arrays are bits: nothing takes them apart."""
    text = hg.jit(lambda z: hnp.concatenate([z[::-1].reshape(2, 3), z.reshape(2, 3)])).lower(np.ones(6, np.complex64)).as_text("canonical")
    assert "real" not in text and "imag" not in text


def test_parts_put_together_and_taken_apart_again_vanish() -> None:
    text = hg.jit(lambda z: (z.real + 1, hnp.conj(hnp.conj(z)))).lower(np.ones(6, np.complex64)).as_text("canonical")
    assert "imag" not in text and "complex " not in text.replace("complex64", "")


def test_the_pass_cannot_be_disabled() -> None:
    from hologram.settings import override

    with override(disabled_passes=("complexes", "simplify")):
        np.testing.assert_array_equal(hg.jit(lambda z: z * z)(np.array([1j, 2])).numpy(), [-1, 4])


def test_no_kernel_computes_with_complex_values() -> None:
    from hologram.backends.compile import compile_graph

    z = tame_values(np.complex64, (8, 8), seeded("kernels"))
    graph = hg.make_graph(lambda z: hnp.sum(hnp.where(z.real > 0, hnp.exp(z) @ z, z / 2j), axis=0))(z)
    allowed = {"load", "real", "imag", "complex", "const", "select"}
    for line in compile_graph(graph).as_text("kernels").splitlines():
        if line.rstrip().endswith(": complex64"):
            assert line.split("= ")[1].split("(")[0] in allowed, line


def test_rows_that_move_are_split_where_their_inputs_are() -> None:
    assert {r.name for r in TABLE.values() if isinstance(r.split, Each) and r.split.moves} >= {"reshape", "slice", "gather", "select", "concatenate"}
    text = hg.jit(lambda z: hnp.flip(z * z).real).lower(np.ones(6, np.complex64)).as_text("canonical")
    assert "complex %" not in text


# --- random programs -------------------------------------------------------------------------------------------------

UNARY = [
    *(operator.neg, hnp.conj, hnp.sin, hnp.tanh, hnp.asinh, hnp.sqrt, lambda z: z**2, lambda z: z * 0.5j, lambda z: z[::-1]),
    *(lambda z: hnp.cumsum(z, axis=-1), lambda z: hnp.flip(z).reshape(z.shape), lambda z: z - hnp.mean(z), lambda z: z.real * 1j),
    *(lambda z: hnp.angle(z) + z, lambda z: z / (2 + hnp.abs(z)), lambda z: hnp.roll(z, 1), lambda z: hnp.where(z.imag > 0, z, 1j)),
    lambda z: z + hnp.sum(z, axis=0),
]
BINARY = [operator.add, operator.sub, operator.mul, lambda a, b: a / (b * hnp.conj(b) + 1), lambda a, b: hnp.where(a == b, a, b)]


@given(
    st.lists(st.tuples(st.integers(0, len(UNARY) + len(BINARY) - 1), st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=9),
    st.sampled_from(TYPES),
)
def test_random_programs(steps: list[tuple[int, int, int]], dtype: Any) -> None:
    """Compiled and lazy as the interpreter has it, and in ``exact`` close to it to rounding errors of functions alone."""
    inputs = [tame_values(dtype, 6, seeded("programs", i)) for i in range(2)]

    def program(*xs: Any) -> Any:
        pool = [hnp.asarray(x) for x in xs]
        for op, i, j in steps:
            a, b = pool[-1 - i % len(pool)], pool[-1 - j % len(pool)]
            pool.append(UNARY[op](a) if op < len(UNARY) else BINARY[op - len(UNARY)](a, b))  # type: ignore[operator]
        return pool[-1]

    graph = hg.make_graph(program)(*inputs)
    (want,) = evaluate(graph, inputs)
    scale = max(1.0, float(np.abs(want).max()))
    for got in (hg.jit(program)(*inputs), program(*inputs), hg.jit(program, precision="exact")(*inputs)):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got.numpy(), want, rtol=1e4 * eps(dtype), atol=1e4 * eps(dtype) * scale)


# --- the namespace ---------------------------------------------------------------------------------------------------


def test_parts() -> None:
    z = np.array([1 + 2j, -3 - 0j, complex(-0.0, 5)], np.complex64)
    x = np.array([1, -2, 3], np.float64)
    t = hnp.asarray(z)
    for got, want in ((t.real, z.real), (t.imag, z.imag), (t.conj(), z.conj()), (t.conjugate(), z.conj()), (hnp.angle(z), np.angle(z))):
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-6)
    np.testing.assert_array_equal(hnp.real(x).numpy(), x)
    np.testing.assert_array_equal(hnp.imag(x).numpy(), x * 0)
    np.testing.assert_array_equal(hnp.conj(x).numpy(), x)
    np.testing.assert_allclose(hnp.angle(x, deg=True).numpy(), [0, 180, 0])
    np.testing.assert_array_equal(hnp.iscomplex(z).numpy(), np.iscomplex(z))
    np.testing.assert_array_equal(hnp.isreal(z).numpy(), np.isreal(z))
    np.testing.assert_array_equal(hnp.isreal(x).numpy(), [True] * 3)
    assert hnp.iscomplexobj(t) and hnp.iscomplexobj(z) and hnp.iscomplexobj(1j) and hnp.iscomplexobj([1j]) and hnp.isrealobj(x) and hnp.isrealobj(2)


@pytest.mark.parametrize(
    ("x", "scalar", "dtype"),
    [
        (np.float32(1), 1j, np.complex64),
        (np.ones(2, np.float64), 1j, np.complex128),
        (np.ones(2, np.float16), 1j, np.complex64),
        (np.ones(2, np.int8), 1j, np.complex64),
        (np.ones(2, np.complex64), 1j, np.complex64),
        (np.ones(2, np.complex128), 2.5, np.complex128),
        (np.ones(2, np.complex64), np.ones(2, np.float64), np.complex128),
        (np.ones(2, np.complex64), np.ones(2, np.int64), np.complex64),
    ],
)
def test_promotion(x: Any, scalar: Any, dtype: Any) -> None:
    """Python's complex numbers take the precision of what they meet."""
    for f in (operator.add, operator.mul, operator.sub, operator.truediv, operator.pow):
        for a, b in ((hnp.asarray(x), scalar), (scalar, hnp.asarray(x))):
            assert f(a, b).dtype == hg.jit(f)(a, b).dtype == dtype


def test_zeros_of_scalars_keep_their_signs() -> None:
    z = hnp.asarray(np.array([complex(-0.0, -0.0)]))
    for _ in range(2):  # the second time what is remembered of the first
        for zero in (complex(-0.0, -0.0), 0j, complex(0.0, -0.0)):
            got = (z + zero).numpy()[0]
            assert (np.signbit(got.real), np.signbit(got.imag)) == (np.signbit(zero.real), np.signbit(zero.imag))


def test_creation() -> None:
    np.testing.assert_array_equal(hnp.full((2,), 1 + 2j, dtype=np.complex128).numpy(), np.full(2, 1 + 2j))
    np.testing.assert_array_equal(hnp.ones(2, dtype=complex).numpy(), np.ones(2, np.complex64))
    np.testing.assert_array_equal(hnp.eye(2, dtype=np.complex64).numpy(), np.eye(2))
    np.testing.assert_array_equal(hnp.arange(3, dtype=np.complex64).numpy(), [0, 1, 2])
    np.testing.assert_allclose(hnp.linspace(1j, 2, 5, dtype=np.complex128).numpy(), np.linspace(1j, 2, 5), rtol=1e-15)
    np.testing.assert_allclose(hnp.linspace(0, 1, 5, dtype=np.complex64).numpy(), np.linspace(0, 1, 5), rtol=1e-7)
    np.testing.assert_array_equal(hnp.asarray([1, 2j]).numpy(), np.array([1, 2j], np.complex64))
    assert hnp.asarray(1j).item() == 1j and complex(hnp.asarray(1j)) == 1j and bool(hnp.asarray(1j))


def test_casts() -> None:
    x = np.array([1.5, -2])
    z = np.array([1j, 0, 2])
    assert hnp.astype(hnp.asarray(x), np.complex64).dtype == np.complex64
    np.testing.assert_array_equal(hnp.astype(hnp.asarray(z), np.bool_).numpy(), [True, False, True])
    np.testing.assert_array_equal(hnp.astype(hnp.asarray(z), np.complex64).numpy(), z.astype(np.complex64))
    np.testing.assert_array_equal(hnp.astype(hnp.asarray(np.array([True])), complex).numpy(), [1])


Z = np.array([1j, 2])


@pytest.mark.parametrize(
    ("name", "f", "message"),
    [
        ("astype", lambda: hnp.asarray(Z).astype(np.float64), "lose the imaginary parts: take real"),
        ("integers", lambda: hnp.astype(hnp.asarray(Z), np.int32), "lose the imaginary parts"),
        ("asarray", lambda: hnp.asarray(Z, dtype=np.float32), "lose the imaginary parts"),
        ("asarray of a Tensor", lambda: hg.tensor(hg.tensor(Z), dtype=np.float32), "lose the imaginary parts"),
        ("sum", lambda: hnp.sum(Z, dtype=np.float32), "lose the imaginary parts"),
        ("full", lambda: hnp.full((2,), 1j, dtype=np.float32), "1j does not fit float32"),
        ("float()", lambda: float(hnp.asarray(1j)), r"float\(\) of a complex64 Tensor"),
        ("int()", lambda: int(hnp.asarray(1j)), r"int\(\) of a complex64 Tensor"),
        ("order", lambda: hnp.asarray(Z) < Z, "lt does not take complex128"),
        ("cummax", lambda: hnp.cummax(Z), "cummax does not take complex128"),
        ("floor", lambda: hnp.floor(Z), "floor does not take complex128"),
        ("atan2", lambda: hnp.atan2(Z, Z), "atan2 does not take complex128"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_what_has_no_meaning_is_refused(name: str, f: Callable[[], Any], message: str) -> None:
    with pytest.raises(DTypeError, match=message) as caught:
        f()
    assert "test_complex.py" in str(caught.value)


# --- extremes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["maximum", "minimum", "fmax", "fmin"])
def test_extremes_as_numpy_orders_them(name: str) -> None:
    """By real parts, then by imaginary ones; NaNs as NumPy has them; beside integers, floats and Python numbers."""
    parts = np.array([-np.inf, -1.0, -0.0, 0.0, 2.0, np.nan])
    z = np.array([complex(a, b) for a in parts for b in parts])
    f, reference = getattr(hnp, name), getattr(np, name)
    x, y = np.repeat(z, z.size), np.tile(z, z.size)
    for dtype in (np.complex64, np.complex128):
        for a, b in ((x, y), (y, x)):
            a, b = a.astype(dtype), b.astype(dtype)
            np.testing.assert_array_equal(hg.jit(f)(a, b), reference(a, b))
        for other in (np.arange(-3, 3, dtype=np.int32), np.float32(0.5), np.ones(6, bool), 1, 2.5, 1 + 1j):
            few = z[:6].astype(dtype)
            for got, want in ((f(few, other), reference(few, other)), (f(other, few), reference(other, few))):
                assert np.asarray(got).dtype == dtype
                np.testing.assert_array_equal(got, want.astype(dtype))
    np.testing.assert_array_equal(hnp.clip(z[:30].reshape(5, 6), -1j, 1 + 1j), np.clip(z[:30].reshape(5, 6), -1j, 1 + 1j))
    assert complex(hg.grad(lambda v: f(v, 1 + 0j), holomorphic=True)(np.complex128(2 + 1j))) == (1 if name in ("maximum", "fmax") else 0)
