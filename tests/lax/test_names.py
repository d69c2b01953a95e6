"""Functions of ``hologram.lax``: under jit, grad and vmap against themselves, and each against JAX where that is installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import HologramError
from tests.support.optable import seeded

Case = tuple[Callable[..., Any], tuple[np.ndarray, ...]]


def floats(*shape: int) -> np.ndarray:
    return seeded("lax names", shape).standard_normal(shape)


X, IMAGES, KERNEL, SIGNAL = floats(5, 7), floats(2, 9, 8, 6), floats(3, 2, 6, 4), floats(4, 6, 7)
INTEGERS = seeded("lax names", "integers").integers(-90, 90, (4, 6)).astype(np.int32)
EDGES = np.array([0.5, 1.5, 2.5, -0.5, -2.5, np.inf, -np.inf, np.nan, 0.0, -0.0, 1e38, 1e-40, 3.14159265], np.float32)
LAST = ("NHWC", "HWIO", "NHWC")

# of the library, its numpy, and arrays; all but those of the second table have derivatives
SMOOTH: dict[str, Case] = {
    "conv strides": (lambda m, n, x, w: m.lax.conv_general_dilated(x, w, (2, 3), "SAME", dimension_numbers=LAST), (IMAGES, KERNEL)),
    "conv dilations": (
        lambda m, n, x, w: m.lax.conv_general_dilated(x, w, (1, 1), [(2, -1), (0, 3)], (2, 3), (1, 2), LAST),
        (IMAGES, KERNEL),
    ),
    "conv strides and dilations": (
        lambda m, n, x, w: m.lax.conv_general_dilated(x, w, (2, 1), [(2, 1), (0, 3)], (3, 2), (2, 1), LAST),
        (IMAGES, KERNEL),
    ),
    "conv groups": (lambda m, n, x, w: m.lax.conv_general_dilated(x, w, (1,), "VALID", feature_group_count=3), (SIGNAL, floats(9, 2, 3))),
    "conv groups of batches": (lambda m, n, x, w: m.lax.conv_general_dilated(x, w, (2,), "SAME", batch_group_count=2), (SIGNAL, floats(8, 6, 3))),
    "conv": (lambda m, n, x, w: m.lax.conv(x, w, (2,), "SAME"), (SIGNAL, floats(8, 6, 3))),
    "conv_transpose": (lambda m, n, x, w: m.lax.conv_transpose(x, w, (2, 3), "SAME"), (IMAGES, KERNEL)),
    "conv_transpose turned": (
        lambda m, n, x, w: m.lax.conv_transpose(x, w, (3, 1), "VALID", transpose_kernel=True),
        (IMAGES, floats(3, 2, 4, 6)),
    ),
    "patches": (lambda m, n, x: m.lax.conv_general_dilated_patches(x, (2, 3), (1, 2), "SAME", dimension_numbers=LAST), (IMAGES,)),
    "local": (
        lambda m, n, x, w: m.lax.conv_general_dilated_local(x, w, (2, 3), "SAME", (1, 2), dimension_numbers=("NHWC", "HWIO", "NCHW")),
        (IMAGES, floats(5, 3, 12, 4)),
    ),
    "reduce_window max": (lambda m, n, x: m.lax.reduce_window(x, -np.inf, m.lax.max, (2, 3), (1, 2), "SAME"), (X,)),
    "reduce_window min": (lambda m, n, x: m.lax.reduce_window(x, np.inf, n.minimum, (2, 2), (2, 2), "VALID"), (X,)),
    "reduce_window add": (
        lambda m, n, x: m.lax.reduce_window(x, 0.0, lambda a, b: a + b, (3, 2), (1, 1), [(1, 0), (0, 2)], None, (1, 2)),
        (X,),
    ),
    "reduce": (lambda m, n, x: m.lax.reduce(x, 0.0, m.lax.add, (1,)), (X,)),
    "gather": (
        lambda m, n, x: m.lax.gather(x, np.array([[3, 9], [-1, 2]]), m.lax.GatherDimensionNumbers((1, 2), (), (0, 1)), (2, 3), mode="clip"),
        (X,),
    ),
    "gather elements": (
        lambda m, n, x: m.lax.gather(x, np.array([[3, 1], [0, 2]]), m.lax.GatherDimensionNumbers((), (0, 1), (1, 0)), (1, 1)),
        (X,),
    ),
    "gather in batches": (
        lambda m, n, x: m.lax.gather(x, np.array([[[3], [1]]] * 4), m.lax.GatherDimensionNumbers((2,), (1,), (1,), (0,), (0,)), (1, 1, 7)),
        (SIGNAL,),
    ),
    "scatter": (
        lambda m, n, x, u: m.lax.scatter(x, np.array([[3], [1], [9]]), u, m.lax.ScatterDimensionNumbers((1,), (0,), (0,))),
        (X, floats(3, 7)),
    ),
    "scatter_add": (
        lambda m, n, x, u: m.lax.scatter_add(x, np.array([[3, 9], [-1, 2]]), u, m.lax.ScatterDimensionNumbers((1, 2), (), (0, 1)), mode="clip"),
        (X, floats(2, 2, 3)),
    ),
    "scatter_sub": (
        lambda m, n, x, u: m.lax.scatter_sub(x, np.array([[3], [3]]), u, m.lax.ScatterDimensionNumbers((1,), (0,), (0,))),
        (X, floats(2, 7)),
    ),
    "shapes": (lambda m, n, x: m.lax.broadcast_in_dim(m.lax.rev(x, (0,)), (5, 2, 7), (0, 2)), (X,)),
    "pad": (lambda m, n, x: m.lax.pad(x, x[0, 0], [(1, -1, 2), (-2, 3, 0)]), (X,)),
    "reshape": (lambda m, n, x: m.lax.collapse(m.lax.reshape(x, (7, 5), (1, 0)), 0), (X,)),
    "slice": (lambda m, n, x: m.lax.slice_in_dim(m.lax.slice(x, (0, 1), (5, 7), (2, 2)), 1, None), (X,)),
    "split": (lambda m, n, x: m.lax.concatenate(list(m.lax.split(x, (1, 4)))[::-1], 0), (X,)),
    "index": (lambda m, n, x: m.lax.index_take(m.lax.expand_dims(x, (1,)), (n.array([0, 2]), n.array([4, 0])), (0, 2)), (X,)),
    "cumulative": (lambda m, n, x: m.lax.cumlogsumexp(m.lax.cumsum(x, 1, reverse=True), 0), (X,)),
    "sort": (lambda m, n, x: m.lax.sort((n.floor(2 * x), x), dimension=0, num_keys=2)[1], (X,)),
    "clamp": (lambda m, n, x: m.lax.select_n(x > 0.3, m.lax.clamp(-0.5, x, 0.2), m.lax.integer_pow(x, 3)), (X,)),
    "products": (
        lambda m, n, x: m.lax.dot_general(x, x, (((1,), (1,)), ((), ())), precision="highest") + m.lax.dot(x, m.lax.transpose(x, (1, 0))),
        (X,),
    ),
    "ragged_dot": (lambda m, n, x, w: m.lax.ragged_dot(x, w, n.array([2, 0, 2])), (X, floats(3, 7, 4))),
    "triangular": (lambda m, n, x, b: m.lax.linalg.triangular_solve(x + 4 * n.eye(5), b, left_side=True, lower=True), (floats(5, 5), floats(5, 2))),
    "optimization_barrier": (lambda m, n, x: m.lax.optimization_barrier((x * x, x))[0], (X,)),
    "reduce_precision": (lambda m, n, x: m.lax.reduce_precision(x, 8, 7), (X,)),
}
OTHERS: dict[str, Case] = {
    "integers": (lambda m, n, x: (m.lax.div(x, x[::-1] | 1), m.lax.rem(x, x[::-1] | 1), m.lax.mulhi(x * 2**20, x * 2**13)), (INTEGERS,)),
    "shifts": (
        lambda m, n, x: (m.lax.shift_right_logical(x, abs(x) % 40), m.lax.shift_right_arithmetic(x, abs(x) % 40), m.lax.shift_left(x, abs(x) % 40)),
        (INTEGERS,),
    ),
    "bits": (lambda m, n, x: (m.lax.clz(x), m.lax.population_count(x), m.lax.bitcast_convert_type(x, np.uint8)), (INTEGERS,)),
    "casts": (
        lambda m, n, x: (m.lax.bitcast_convert_type(x, np.float64), m.lax.convert_element_type(x[..., 0], np.int8)),
        (INTEGERS.reshape(4, 3, 2),),
    ),
    "folds of bits": (lambda m, n, x: (m.lax.reduce_and(x, (0,)), m.lax.reduce_or(x, (1,)), m.lax.reduce_xor(x, (0, 1))), (INTEGERS,)),
    "folds": (lambda m, n, x: (m.lax.reduce_max(x, (0,)), m.lax.reduce_sum(x, (1,)), m.lax.argmin(x, 0, np.int32)), (INTEGERS,)),
    "rounding": (lambda m, n, x: (m.lax.round(x), m.lax.round(x, m.lax.RoundingMethod(1)), m.lax.reduce_precision(x, 5, 10)), (EDGES,)),
    "two folds": (
        lambda m, n, x: m.lax.reduce((x, x), (1.0, -np.inf), lambda a, b: (a[0] * b[0], n.maximum(a[1], b[1])), (0,)),
        (X,),
    ),
    "two folds of windows": (
        lambda m, n, x: m.lax.reduce_window((x, -x), (0.0, 0.0), lambda a, b: (a[0] + b[0], n.minimum(a[1], b[1])), (2, 2), (1, 1), "SAME"),
        (X,),
    ),
    "window maxima from a start": (lambda m, n, x: m.lax.reduce_window(x, 0.5, m.lax.max, (2, 2), (1, 1), "SAME", (2, 1)), (X,)),
    "gather filled": (
        lambda m, n, x: m.lax.gather(x, np.array([[3, 9], [-1, 2]]), m.lax.GatherDimensionNumbers((1, 2), (), (0, 1)), (2, 3), mode="fill"),
        (X,),
    ),
    "scatters": (
        lambda m, n, x: [
            f(x, np.array([[3], [3], [7]]), 2 * x[:3], m.lax.ScatterDimensionNumbers((1,), (0,), (0,)))
            for f in (m.lax.scatter_mul, m.lax.scatter_min, m.lax.scatter_max)
        ],
        (X,),
    ),
    "scatter_apply": (
        lambda m, n, x: m.lax.scatter_apply(
            x, np.array([[0], [3], [0]]), lambda v: 2 * v, m.lax.ScatterDimensionNumbers((1,), (0,), (0,)), update_shape=(3, 7)
        ),
        (X,),
    ),
    "fft": (lambda m, n, x: m.lax.fft(m.lax.fft(x, "RFFT", (5, 7)), m.lax.FftType.IRFFT, (5, 7)), (X,)),
    "iota": (lambda m, n, x: m.lax.broadcasted_iota(np.int32, (2, 3), 1) + m.lax.iota(np.int32, 3), (X,)),
    "eigh": (lambda m, n, x: m.lax.linalg.eigh(x @ x.T)[1], (X,)),
    "top_k": (lambda m, n, x: (m.lax.top_k(x, 3)[0], m.lax.approx_min_k(x, 2)[0]), (X,)),
}  # fmt: skip


def equal(got: Any, want: Any, rtol: float = 1e-9) -> None:
    gs, ws = hg.tree.leaves(got), hg.tree.leaves(want)
    assert len(gs) == len(ws) > 0
    for g, w in zip(gs, ws, strict=True):
        g, w = np.asarray(g), np.asarray(w)
        assert g.shape == w.shape and g.dtype == w.dtype
        np.testing.assert_allclose(g, w, rtol=rtol, atol=rtol)


@pytest.mark.costly(3)
@pytest.mark.parametrize("name", [*SMOOTH, *OTHERS])
def test_compiled_and_stacked(name: str) -> None:
    f, arrays = {**SMOOTH, **OTHERS}[name]
    g = lambda *xs: f(hg, hnp, *xs)  # noqa: E731
    want = g(*arrays)
    equal(hg.jit(g)(*arrays), want)
    stacks = [np.stack([x, x[::-1]]) for x in arrays]
    equal(hg.vmap(g)(*stacks), hg.tree.map(lambda *r: hnp.stack(r), want, g(*[x[::-1] for x in arrays])))


OWN_RULES = (
    "conv dilations",
    "conv groups of batches",
    "reduce_window max",
    "reduce",
    "optimization_barrier",
    "reduce_precision",
    "gather in batches",
)


@pytest.mark.costly(3)
@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives(name: str, everything: bool) -> None:
    """Reverse mode against differences along a line."""
    if not everything and name not in OWN_RULES:
        pytest.skip("made of functions with derivatives: with --all")
    f, arrays = SMOOTH[name]
    if name == "reduce_precision":  # whose derivative is that of what it rounds
        f, arrays = (lambda m, n, x: m.lax.reduce_precision(x, 11, 52)), (X,)
    loss = lambda *xs: hnp.sum(hnp.sin(f(hg, hnp, *xs)))  # noqa: E731
    slopes = hg.jit(hg.grad(loss, tuple(range(len(arrays)))))(*arrays)
    lines = [seeded("line", name, i).standard_normal(x.shape) for i, x in enumerate(arrays)]
    value = hg.jit(loss)
    step = 1e-6
    ahead, behind = (float(value(*[x + s * step * t for x, t in zip(arrays, lines, strict=True)])) for s in (1, -1))
    got = sum(float(hnp.sum(g * t)) for g, t in zip(slopes, lines, strict=True))
    assert got == pytest.approx((ahead - behind) / (2 * step), rel=1e-6, abs=1e-6)


@pytest.fixture
def jax(everything: bool) -> Any:
    if not everything:
        pytest.skip("against JAX with --all")
    module = pytest.importorskip("jax")
    with module.enable_x64(True):
        yield module


@pytest.mark.parametrize("name", [*SMOOTH, *OTHERS])
def test_against_jax(name: str, jax: Any) -> None:
    f, arrays = {**SMOOTH, **OTHERS}[name]
    given = [jax.numpy.asarray(x) for x in arrays]
    equal(f(hg, hnp, *arrays), f(jax, jax.numpy, *given))
    if name in SMOOTH:
        axes = tuple(range(len(arrays)))
        if "None, (1, 2)" not in name:
            want = jax.grad(lambda *xs: jax.numpy.sum(jax.numpy.sin(f(jax, jax.numpy, *xs))), axes)(*given)
            equal(hg.grad(lambda *xs: hnp.sum(hnp.sin(f(hg, hnp, *xs))), axes)(*arrays), want)


# what JAX's list has and this one lacks: primitives and their kin, several processes, tokens, and what is still to come
ABSENT = set(
    "ConvGeneralDilatedDimensionNumbers DotAlgorithm DotAlgorithmPreset DotDimensionNumbers PrecisionLike RaggedDotDimensionNumbers "
    "RandomAlgorithm Tolerance after_all all_gather all_to_all axis_index axis_size betainc "
    "conv_general_permutations conv_general_shape_tuple conv_shape_tuple conv_transpose_shape_tuple create_token dce_sink dtype eq_to_p igamma "
    "igamma_grad_a igammac pbroadcast pcast pmax pmean pmin ppermute precv psend pshuffle psum psum_scatter pswapaxes ragged_all_to_all "
    "ragged_dot_general random_gamma_grad reduce_window_shape_tuple rng_bit_generator rng_uniform scaled_dot stage zeta".split()
)


def test_the_public_list_of_jax_is_covered() -> None:
    lax = pytest.importorskip("jax.lax")
    theirs = {n for n in dir(lax) if not n.startswith("_") and not n.endswith("_p")}
    missing = theirs - set(hg.lax.__all__)
    assert missing <= ABSENT


@pytest.mark.parametrize(
    "work",
    [
        lambda: hg.lax.conv_general_dilated(IMAGES, KERNEL, (1, 1), "SAME"),
        lambda: hg.lax.conv_general_dilated(IMAGES, KERNEL, (1, 1), "ALL", dimension_numbers=LAST),
        lambda: hg.lax.conv_general_dilated(IMAGES, KERNEL, (1,), "SAME", dimension_numbers=LAST),
        lambda: hg.lax.conv_general_dilated(IMAGES, KERNEL, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIX", "NHWC")),
        lambda: hg.lax.conv_general_dilated(IMAGES > 0, KERNEL > 0, (1, 1), "SAME", dimension_numbers=LAST),
        lambda: hg.lax.conv_general_dilated(SIGNAL, floats(9, 2, 3), (1,), "SAME", feature_group_count=4),
        lambda: hg.lax.reduce_window(X, 0.0, hg.lax.add, (9, 9)),
        lambda: hg.lax.reduce_window(X, 0.0, hg.lax.add, (2,)),
        lambda: hg.lax.gather(X, np.array([[0.5]]), hg.lax.GatherDimensionNumbers((1,), (0,), (0,)), (1, 7)),
        lambda: hg.lax.gather(X, np.array([[0]]), hg.lax.GatherDimensionNumbers((1,), (0,), (0,)), (1, 8)),
        lambda: hg.lax.scatter(X, np.array([[0]]), floats(2, 7), hg.lax.ScatterDimensionNumbers((1,), (0,), (0,))),
        lambda: hg.lax.gather(X, np.zeros((9, 1), int), hg.lax.GatherDimensionNumbers((), (1,), (1,), (0,), (0,)), (1, 1)),
        lambda: hg.lax.gather(X, np.zeros((5, 1), int), hg.lax.GatherDimensionNumbers((), (1,), (1,), (0,), (1,)), (1, 1)),
        lambda: hg.lax.gather(X, np.array([[0]]), hg.lax.GatherDimensionNumbers((2, 1), (), (0,)), (1, 7)),
        lambda: hg.lax.gather(X, np.array([[0]]), hg.lax.GatherDimensionNumbers((3,), (0,), (0,)), (1, 7)),
        lambda: hg.lax.scatter(X, np.zeros((4, 1), int), np.ones(4), hg.lax.ScatterDimensionNumbers((), (1,), (1,), (0,), (0,))),
        lambda: hg.lax.scatter(X, np.zeros((5, 7, 2), int), np.ones((5, 7)), hg.lax.ScatterDimensionNumbers((), (), (), (0, 1), (1, 0))),
        lambda: hg.lax.slice(X, (0, 0), (6, 1)),
        lambda: hg.lax.broadcast_in_dim(X, (5, 7), (1, 0)),
        lambda: hg.lax.dot_general(X, X, (((1,), (1,)), ((), ())), np.float64),
        lambda: hg.lax.select_n(X, X),
        lambda: hg.lax.bitcast_convert_type(X.astype(np.float32), np.float64),
        lambda: hg.lax.fft(X, "DCT", (7,)),
    ],
)
def test_errors(work: Callable[[], Any]) -> None:
    with pytest.raises(HologramError):
        work()


@pytest.mark.parametrize(("shape", "axis"), [((0, 5), 0), ((0, 5), 1), ((4, 0), 0), ((4, 0), 1)])
def test_reductions_of_empty_arrays(shape: tuple[int, ...], axis: int) -> None:
    found = hg.lax.reduce(np.ones(shape, np.float32), 2.0, lambda a, b: a + b + a * b, (axis,))
    np.testing.assert_array_equal(found.numpy(), np.full(np.delete(shape, axis), 2.0, np.float32), strict=True)
