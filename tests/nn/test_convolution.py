"""Convolutions and pooling against torch.nn.functional: values, derivatives, types, errors."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp
from hologram import nn
from hologram.errors import ArgumentError, DTypeError, ShapeError
from hologram.graph.kernel.ir import Accumulate, Loop
from hologram.ir.instruction import Ins
from hologram.ir.interpreter import evaluate
from hologram.ir.symbolic import split_linear

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.costly(2)
F = torch.nn.functional


def draws(*shapes: tuple[int, ...], dtype: Any = np.float32) -> list[np.ndarray]:
    rng = np.random.default_rng(sum(map(sum, shapes)))
    return [rng.standard_normal(s).astype(dtype) for s in shapes]


def agree(ours: Callable[..., Any], theirs: Callable[..., Any], *arrays: np.ndarray) -> None:
    """Value and derivatives by every argument."""
    leaves = [torch.tensor(a, requires_grad=True) for a in arrays]
    want = theirs(*leaves)
    scale = 1e-4 if arrays[0].dtype == np.float32 else 1e-11
    got, pull = hg.vjp(hg.jit(ours), *arrays)
    np.testing.assert_allclose(got.numpy(), want.detach().numpy(), rtol=scale, atol=scale)
    (ct,) = draws(tuple(want.shape), dtype=arrays[0].dtype)
    want.backward(torch.tensor(ct))
    for g, leaf in zip(hg.jit(pull)(ct), leaves, strict=True):
        np.testing.assert_allclose(g.numpy(), leaf.grad.numpy(), rtol=scale, atol=10 * scale)


# --- convolutions ----------------------------------------------------------------------------------------------------

CASES: list[dict[str, Any]] = [
    {},
    {"padding": 1},
    {"padding": "same", "dilation": 2},
    {"padding": "valid"},
    {"stride": 2, "padding": 1},
    {"stride": 3, "dilation": 2, "padding": 2},
    {"groups": 2, "padding": 1},
]


@pytest.mark.crossed
@pytest.mark.parametrize("options", CASES, ids=str)
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_convolutions_and_their_derivatives(rank: int, options: dict[str, Any]) -> None:
    space, sizes = (13, 11, 9)[:rank], (3, 2, 3)[:rank]
    x, w, b = draws((2, 4, *space), (6, 4 // options.get("groups", 1), *sizes), (6,))
    name = f"conv{rank}d"
    agree(lambda x, w, b: getattr(nn, name)(x, w, b, **options), lambda x, w, b: getattr(F, name)(x, w, b, **options), x, w, b)


@pytest.mark.crossed
@pytest.mark.parametrize("options", [{}, {"stride": 2, "padding": 1, "output_padding": 1}, {"dilation": 2, "groups": 2, "padding": 3}], ids=str)
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_transposed_convolutions_and_their_derivatives(rank: int, options: dict[str, Any]) -> None:
    x, w, b = draws((2, 4, *(7, 6, 5)[:rank]), (4, 3, *(3, 2, 3)[:rank]), (3 * options.get("groups", 1),))
    name = f"conv_transpose{rank}d"
    agree(lambda x, w, b: getattr(nn, name)(x, w, b, **options), lambda x, w, b: getattr(F, name)(x, w, b, **options), x, w, b)


SIZES = [
    ((2, 8, 9, 56), (16, 8, 3, 3)),  # several windows a row of tiles
    ((1, 9, 12, 70), (7, 9, 3, 3)),
    ((2, 17, 7, 7), (50, 17, 3, 3)),
    ((1, 64, 6, 33), (64, 64, 1, 1)),
    ((3, 3, 40, 41), (10, 3, 7, 7)),
]


@pytest.mark.crossed
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shapes", SIZES, ids=str)
@pytest.mark.parametrize("stride", [1, 2])
def test_tiles_and_tails(shapes: Any, stride: int, dtype: str) -> None:
    x, w = draws(*shapes, dtype=dtype)
    agree(lambda x, w: nn.conv2d(x, w, stride=stride, padding=1), lambda x, w: F.conv2d(x, w, stride=stride, padding=1), x, w)


PHASES = [  # extent, window, stride, padding, dilation
    (14, 3, 2, 1, 1),
    (15, 4, 2, 1, 1),  # as many places in each phase
    (13, 1, 2, 0, 1),  # a phase without any
    (17, 2, 4, 1, 1),
    (16, 4, 4, 0, 1),  # windows side by side
    (19, 7, 3, 5, 1),
    (19, 3, 3, 2, 2),
    (15, 2, 2, 1, 3),
    (17, 3, 2, 2, 2),  # only every second element is in a window
    (19, 3, 6, 3, 4),
    (9, 1, 4, 0, 6),
]


@pytest.mark.parametrize("problem", PHASES, ids=str)
def test_derivatives_of_strides_by_phases(problem: tuple[int, int, int, int, int]) -> None:
    """Along two axes where a window is small enough to make that quick."""
    extent, size, stride, padding, dilation = problem
    rank = 2 if size < 4 and dilation == 1 else 1
    name, ours = f"conv{rank}d", {"stride": stride, "padding": padding, "dilation": dilation}
    x, w = draws((2, 3, *(extent, extent + 1)[:rank]), (5, 3, *[size] * rank))
    agree(lambda x, w: getattr(nn, name)(x, w, **ours), lambda x, w: getattr(F, name)(x, w, **ours), x, w)
    turned, more = f"conv_transpose{rank}d", {**ours, "padding": min(padding, size // 2), "output_padding": stride - 1}
    y, w = draws((2, 5, *(6, 5)[:rank]), (5, 3, *[size] * rank))
    np.testing.assert_allclose(getattr(nn, turned)(y, w, **more), getattr(F, turned)(*map(torch.tensor, (y, w)), **more), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("dilation", "phases"), [(1, [16 * 2 * 2]), (2, [16 * 4 * 4]), (3, [16 * 2 * 2] * 4)])
def test_derivatives_of_strides_multiply_no_zeros(dilation: int, phases: list[int]) -> None:
    """Beside the convolution's own sums: those of all four phases in one; of the one that has any; of each."""
    x, w = draws((2, 16, 32, 32), (16, 16, 4, 4))

    def loss(x: Any, w: Any) -> Any:
        return hnp.sum(nn.conv2d(x, w, stride=2, dilation=dilation) ** 2)

    def extents(kernel: Any) -> list[int]:
        loops = [s for s in kernel.walk() if isinstance(s, Loop) and s.accs]
        return [s.extent * sum(isinstance(t, Accumulate) and t.acc is s.accs[0] for t in s.body) for s in loops]

    schedule = hg.jit(hg.grad(loss)).lower(x, w).compile().executable.execution_plan
    sums = [n for k in schedule.kernels for n in extents(k.kernel)]
    assert sorted(sums) == sorted([16 * 4 * 4, *phases])


@pytest.mark.parametrize("channels", [9, 400])  # the second: sums that the written order cuts in pages
def test_places_of_windows_are_written_out(channels: int) -> None:
    """No step of a sum along channels and windows divides to find its place; in ``exact`` the bits stay the reference's."""
    x, w = draws((1, channels, 4, 40), (8, channels, 3, 3))
    lowered = hg.jit(nn.conv2d).lower(x, w)
    kernels = [k.kernel for k in lowered.compile().executable.execution_plan.kernels]
    (loop,) = [s for k in kernels for s in k.walk() if isinstance(s, Loop) and s.accs]
    places = [s.attrs[1] for s in loop.body if isinstance(s, Ins) and s.op == "load"]
    assert loop.extent == channels and all(split_linear(e, loop.var) is not None for e in places)
    exact = hg.jit(nn.conv2d, precision="exact")
    (expected,) = evaluate(hg.make_graph(nn.conv2d)(x, w), [x, w])
    np.testing.assert_array_equal(np.asarray(exact(x, w)), expected)


def test_packed_sums_where_phases_leave_holes() -> None:
    """What is packed is computed after what the whole chunk asks for: whether its phase has an element at all."""
    x, w, u = draws((2, 2, 4, 4, 4, 2), (2, 2, 4, 5, 3), (2, 2, 4, 5, 3))
    options = {"stride": (3, 2, 1), "padding": (1, 2, 3), "output_padding": (2, 1, 0), "groups": 2, "dilation": (4, 4, 4)}
    transposed = lambda f: lambda x, w, u: f(x[..., 0] + x[..., 1], w + u, None, **options)  # noqa: E731
    agree(transposed(nn.conv_transpose3d), transposed(F.conv_transpose3d), x, w, u)


@pytest.mark.parametrize("multiplier", [1, 2])
@pytest.mark.parametrize("stride", [1, 2])
def test_depthwise(stride: int, multiplier: int) -> None:
    x, w = draws((2, 5, 18, 37), (5 * multiplier, 1, 3, 3))
    options = {"stride": stride, "padding": 1, "groups": 5}
    agree(lambda x, w: nn.conv2d(x, w, **options), lambda x, w: F.conv2d(x, w, **options), x, w)


@st.composite
def problems(draw: Any) -> tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]:
    rank = draw(st.integers(1, 2))
    groups, c, o = (draw(st.integers(1, n)) for n in (3, 9, 9))
    options = {name: tuple(draw(st.integers(low, 3)) for _ in range(rank)) for name, low in (("stride", 1), ("padding", 0), ("dilation", 1))}
    sizes = [draw(st.integers(1, 4)) for _ in range(rank)]
    space = [
        max(1, (k - 1) * d + 1 - 2 * p) + draw(st.integers(0, 20)) for k, d, p in zip(sizes, options["dilation"], options["padding"], strict=True)
    ]
    return (draw(st.integers(1, 2)), groups * c, *space), (groups * o, c, *sizes), {**options, "groups": groups}


@settings(max_examples=settings.default.max_examples // 4)
@given(problems())
def test_any_parameters(problem: Any) -> None:
    *shapes, options = problem
    x, w = draws(*shapes, dtype=np.float64)
    name = f"conv{len(shapes[0]) - 2}d"
    agree(lambda x, w: getattr(nn, name)(x, w, **options), lambda x, w: getattr(F, name)(x, w, **options), x, w)


def test_channels_last() -> None:
    x, w, b = draws((2, 9, 10, 4), (6, 2, 3, 3), (6,))
    first = nn.conv2d(x.transpose(0, 3, 1, 2), w, b, groups=2, padding=1)
    last = hg.jit(lambda x, w, b: nn.conv2d(x, w, b, groups=2, padding=1, data_format="NHWC"))(x, w, b)
    np.testing.assert_allclose(last.numpy().transpose(0, 3, 1, 2), first.numpy(), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(
        nn.max_pool2d(x, 2, data_format="NHWC").numpy().transpose(0, 3, 1, 2), nn.max_pool2d(x.transpose(0, 3, 1, 2), 2).numpy()
    )


def test_one_image() -> None:
    x, w = draws((4, 9, 10), (6, 4, 3, 3))
    np.testing.assert_allclose(nn.conv2d(x, w).numpy(), nn.conv2d(x[None], w).numpy()[0])
    np.testing.assert_allclose(nn.avg_pool2d(x, 2).numpy(), nn.avg_pool2d(x[None], 2).numpy()[0])


@pytest.mark.parametrize("shapes", [((1, 5, 9, 40), (20, 5, 3, 3)), ((2, 350, 5, 6), (9, 350, 3, 3)), ((2, 4, 12, 35), (4, 1, 3, 3))], ids=str)
def test_exact_has_the_references_bits(shapes: Any) -> None:
    x, w = draws(*shapes)
    f = lambda x, w: nn.conv2d(x, w, padding=1, groups=x.shape[1] // w.shape[1])  # noqa: E731
    (want,) = evaluate(hg.make_graph(f)(x, w), [x, w])
    np.testing.assert_array_equal(hg.jit(f, precision="exact")(x, w).numpy(), want)


def test_threads_make_no_difference() -> None:
    x, w = draws((4, 16, 30, 56), (32, 16, 3, 3))
    loss = lambda x, w: hnp.sum(hnp.square(nn.conv2d(x, w, padding=1)))  # noqa: E731
    seen = []
    for n in (1, 3):
        hg.set_num_threads(n)
        try:
            seen.append([g.numpy() for g in hg.jit(hg.grad(loss, argnums=(0, 1)))(x, w)])
        finally:
            hg.set_num_threads(0)
    for a, b in zip(*seen, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int32", "uint8"])
def test_other_types(dtype: str) -> None:
    x, w = (np.round(4 * a).clip(0, 9) for a in draws((1, 30, 6, 7), (4, 30, 3, 3)))
    want = F.conv2d(torch.tensor(x), torch.tensor(w)).numpy()
    got = nn.conv2d(hnp.astype(hnp.asarray(x), dtype), hnp.astype(hnp.asarray(w), dtype))
    assert got.dtype == hnp.asarray(x).astype(dtype).dtype
    mask = 0xFF if dtype == "uint8" else ~0
    exact = want.astype(np.int64) & mask if dtype in ("uint8", "int32") else want
    np.testing.assert_allclose(hnp.astype(got, hnp.float32).numpy(), exact, rtol={"float16": 5e-4, "bfloat16": 4e-3}.get(dtype, 0))


def test_forward_mode_and_second_order() -> None:
    x, w, dx, dw = draws((1, 2, 6, 5), (3, 2, 3, 2), (1, 2, 6, 5), (3, 2, 3, 2), dtype=np.float64)
    f = lambda x, w: nn.conv2d(x, w, stride=(2, 1), padding=1)  # noqa: E731
    _, tangent = hg.jvp(f, (x, w), (dx, dw))
    np.testing.assert_allclose(tangent.numpy(), (f(dx, w) + f(x, dw)).numpy(), rtol=1e-12, atol=1e-12)

    def loss(w: Any) -> Any:
        return hnp.sum(f(x, w) ** 3)

    hessian = hg.jit(hg.hessian(loss))(w).numpy()
    want = torch.autograd.functional.hessian(lambda w: (F.conv2d(torch.tensor(x), w, stride=(2, 1), padding=1) ** 3).sum(), torch.tensor(w)).numpy()
    np.testing.assert_allclose(hessian, want, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("axes", [(0, None), (None, 0), (0, 0)])
def test_stacks(axes: Any) -> None:
    x, w = draws((3, 2, 4, 8, 9), (3, 6, 2, 3, 3))
    given = [a if i == 0 else a[0] for a, i in zip((x, w), axes, strict=True)]
    f = lambda x, w: nn.conv2d(x, w, groups=2, padding=1)  # noqa: E731
    got = hg.jit(hg.vmap(f, axes))(*given).numpy()
    for k in range(3):
        want = f(*[a[k] if i == 0 else a for a, i in zip(given, axes, strict=True)]).numpy()
        np.testing.assert_allclose(got[k], want, rtol=1e-5, atol=1e-5)


def test_any_number_of_images() -> None:
    f = hg.jit(lambda x, w: nn.max_pool2d(nn.conv2d(x, w, padding=1), 2), dynamic={0: {0: "n"}})
    for n in (1, 3):
        x, w = draws((n, 3, 8, 10), (5, 3, 3, 3))
        want = F.max_pool2d(F.conv2d(torch.tensor(x), torch.tensor(w), padding=1), 2)
        np.testing.assert_allclose(f(x, w).numpy(), want.numpy(), rtol=1e-5, atol=1e-5)


def test_errors_of_convolutions() -> None:
    x, w = draws((1, 4, 5, 6), (6, 4, 3, 3))
    with pytest.raises(ShapeError, match="channels"):
        nn.conv2d(x, w, groups=2)
    with pytest.raises(ShapeError, match="no window"):
        nn.conv2d(x, w, dilation=3)
    with pytest.raises(ShapeError, match="axes"):
        nn.conv1d(x, w)
    with pytest.raises(ShapeError, match="bias"):
        nn.conv2d(x, w, np.zeros(5, np.float32))
    with pytest.raises(ArgumentError, match="stride"):
        nn.conv2d(x, w, stride=0)
    with pytest.raises(ArgumentError, match="'same'"):
        nn.conv2d(x, w, stride=2, padding="same")
    with pytest.raises(ArgumentError, match="padding"):
        nn.conv2d(x, w, padding="full")
    with pytest.raises(ArgumentError, match="data_format"):
        nn.conv2d(x, w, data_format="CHWN")
    with pytest.raises(ArgumentError, match="output_padding"):
        nn.conv_transpose2d(x, w, output_padding=1)
    with pytest.raises(DTypeError, match="complex"):
        nn.conv2d(x.astype(np.complex64), w)


# --- pooling ---------------------------------------------------------------------------------------------------------


def pool_options(dilations: tuple[int, ...]) -> list[dict[str, Any]]:
    every = itertools.product([2, 3], [None, 1, 3], [0, 1], [False, True], dilations)
    return [{"kernel_size": k, "stride": s, "padding": p, "ceil_mode": c, **({"dilation": d} if d > 1 else {})} for k, s, p, c, d in every]


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_max_pool(rank: int) -> None:
    (x,) = draws((2, 3, *(11, 8, 7)[:rank]))
    x = np.round(2 * x)  # ties
    name = f"max_pool{rank}d"
    for options in pool_options((1, 2))[:: 3 * rank]:
        agree(lambda x, o=options: getattr(nn, name)(x, **o), lambda x, o=options: getattr(F, name)(x, **o), x)


@pytest.mark.crossed
@pytest.mark.parametrize("count_include_pad", [True, False])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_avg_pool(rank: int, count_include_pad: bool) -> None:
    (x,) = draws((2, 3, *(11, 8, 7)[:rank]))
    name = f"avg_pool{rank}d"
    for options in pool_options((1,))[:: max(1, rank**2 - 1)]:
        options["count_include_pad"] = count_include_pad
        agree(lambda x, o=options: getattr(nn, name)(x, **o), lambda x, o=options: getattr(F, name)(x, **o), x)


@pytest.mark.parametrize("size", [1, 4, 5, 11, (3, None), (2, 7)], ids=str)
def test_adaptive_avg_pool(size: Any) -> None:
    (x,) = draws((2, 3, 11, 10))
    agree(lambda x: nn.adaptive_avg_pool2d(x, size), lambda x: F.adaptive_avg_pool2d(x, size), x)


def test_pools_of_special_values() -> None:
    x = np.array([[[1, np.nan, 2, np.inf, -np.inf, -np.inf, -0.0, 0.0]]], np.float32)
    np.testing.assert_array_equal(nn.max_pool1d(x, 2).numpy(), F.max_pool1d(torch.tensor(x), 2).numpy())
    np.testing.assert_array_equal(nn.max_pool1d(np.array([[[-3, -7, 5]]], np.int32), 2, 1, 1).numpy(), [[[-3, -3, 5, 5]]])
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(nn.adaptive_avg_pool1d(x, 5).numpy(), F.adaptive_avg_pool1d(torch.tensor(x), 5).numpy())


def test_errors_of_pools() -> None:
    (x,) = draws((1, 4, 5, 6))
    with pytest.raises(ArgumentError, match="half"):
        nn.max_pool2d(x, 2, padding=2)
    with pytest.raises(ShapeError, match="no window"):
        nn.avg_pool2d(x, 9)
    with pytest.raises(ArgumentError, match="output_size"):
        nn.adaptive_avg_pool2d(x, (1, 2, 3))
    with pytest.raises(DTypeError, match="bool"):
        nn.max_pool2d(x > 0, 2)
