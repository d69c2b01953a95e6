"""Attention as one kernel: what is recognised and what is not, its values, masks, ends of blocks, kernels, memory, threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram import nn
from hologram.errors import ArgumentError
from hologram.graph.library.attention.kernel import BLOCK_KEYS, BLOCK_ROWS
from hologram.settings import override
from tests.fuzz.thresholds import overridden
from tests.support.attention_forms import by_hand, formula
from tests.support.needs import needs_levels

Array = np.ndarray
F32, F64 = np.float32, np.float64


def _arrays(*shapes: tuple[int, ...], dtype: Any = F32) -> list[Array]:
    rng = np.random.default_rng([len(s) + sum(s) for s in shapes])
    return [rng.standard_normal(s).astype(dtype) for s in shapes]


def _kernels(f: Callable[..., Any], *args: Any, **options: Any) -> int:
    return int(hg.jit(f, **options).lower(*args).compile().reduction().kernels)


def _near(got: Any, want: Array) -> None:
    tolerance = 2e-6 if np.asarray(got).dtype == F32 else 1e-13
    np.testing.assert_allclose(np.asarray(got), want, rtol=tolerance, atol=tolerance)


# rows, keys, elements of a query, of a value: ends of tiles, of vectors, of blocks of rows and of keys
SIZES = [
    (16, 8, 8, 8),
    (17, 9, 10, 11),
    (64, 64, 64, 64),
    (65, 100, 33, 70),
    (100, BLOCK_KEYS, 16, 130),
    (20, BLOCK_KEYS + 1, 8, 16),
    (130, 3 * BLOCK_KEYS + 5, 24, 40),
]


@pytest.mark.parametrize("dtype", [F32, F64])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_its_values_in_one_kernel(sizes: tuple[int, int, int, int], dtype: Any) -> None:
    rows, keys, depth, width = sizes
    q, k, v = _arrays((2, rows, depth), (2, keys, depth), (2, keys, width), dtype=dtype)
    _near(hg.jit(by_hand)(q, k, v), formula(q, k, v))
    assert _kernels(by_hand, q, k, v) == 1


@needs_levels
@pytest.mark.parametrize("target", ["x86-64", "x86-64-v3"])
def test_other_machines(target: str) -> None:
    q, k, v = _arrays((3, 70, 20), (3, 300, 20), (3, 300, 33))
    with override(target=target):
        _near(hg.jit(by_hand)(q, k, v), formula(q, k, v))


@pytest.mark.parametrize(
    "shapes", [((40, 16), (30, 16)), ((1, 40, 16), (1, 30, 16)), ((1, 3, 40, 16), (1, 3, 30, 16)), ((2, 3, 1, 40, 16), (2, 3, 1, 30, 16))]
)
def test_any_number_of_axes(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    q, k, v = _arrays(shapes[0], shapes[1], shapes[1])
    _near(hg.jit(by_hand)(q, k, v), formula(q, k, v))
    assert _kernels(by_hand, q, k, v) == 1


def test_no_row_of_scores_is_planned() -> None:
    q, k, v = _arrays((8, 512, 16), (8, 512, 16), (8, 512, 16))
    assert hg.jit(by_hand).lower(q, k, v).compile().memory_analysis().peak == 0


def test_heads_that_share_keys() -> None:
    q, k, v = _arrays((2, 4, 33, 16), (2, 1, 40, 16), (2, 1, 40, 24))
    _near(hg.jit(by_hand)(q, k, v), formula(q, k, v))
    assert _kernels(by_hand, q, k, v) == 1


def test_axes_in_another_order() -> None:
    """Groups of heads, queries first: by einsum."""
    q, k = _arrays((2, 40, 3, 2, 16), (2, 24, 3, 16))

    def grouped(q: Any, k: Any) -> Any:
        return hnp.einsum("brhgt,bthd->brhgd", nn.softmax(hnp.einsum("brhgd,bthd->brhgt", q, k)), k)

    by_head = k.transpose(0, 2, 1, 3)[:, :, None]
    want = formula(q.transpose(0, 2, 3, 1, 4), by_head, by_head, lambda s: s)
    _near(hg.jit(grouped)(q, k), want.transpose(0, 3, 1, 2, 4))
    assert _kernels(grouped, q, k) == 1


@pytest.mark.parametrize("terms", ["hbre,teb,bhrt,td,rhbd", "rbe,ebt,tbr,tdh,bhrd", "bre,bte,rtb,tdb,dbr"])
def test_axes_in_any_order(terms: str) -> None:
    """One of each pair of heads is of extent 1; values that are not side by side are read as they are, by separate kernels."""
    extents = {"b": 3, "h": 1, "r": 40, "t": 300, "e": 16, "d": 24}
    q, k, s, v, out = terms.split(",")
    arrays = _arrays(*(tuple(extents[c] for c in x) for x in (q, k, v)))

    def f(a: Any, b: Any, c: Any) -> Any:
        return hnp.einsum(f"{s},{v}->{out}", nn.softmax(hnp.einsum(f"{q},{k}->{s}", a, b), axis=s.index("t")), c)

    a, b, c = (x.astype(F64) for x in arrays)
    e = np.exp(np.einsum(f"{q},{k}->{s}", a, b))
    _near(hg.jit(f)(*arrays), np.einsum(f"{s},{v}->{out}", e / e.sum(s.index("t"), keepdims=True), c))
    assert (_kernels(f, *arrays) > 2) == (v == "tdb")


def test_vmap_of_one_head() -> None:
    q, k, v = _arrays((2, 3, 30, 16), (2, 3, 40, 16), (2, 3, 40, 24))
    mapped = hg.vmap(hg.vmap(lambda q, k, v: nn.softmax(0.3 * q @ k.T) @ v))
    _near(hg.jit(mapped)(q, k, v), formula(q, k, v))
    assert _kernels(mapped, q, k, v) == 1


# --- between the products --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("keys", [50, 2 * BLOCK_KEYS + 20])
def test_masks(keys: int) -> None:
    """Row 3 sees no key, row 5 none of the first block."""
    q, k, v = _arrays((2, 40, 16), (2, keys, 16), (2, keys, 24))
    seen = np.random.default_rng(1).random((40, keys)) < 0.5
    seen[3], seen[5, : keys - 10] = False, False
    bias = np.where(seen, 0.5, -np.inf).astype(F32)

    def masked(s: Array) -> Array:
        return np.where(seen, s / 4, -np.inf)

    want = formula(q, k, v, masked)
    assert np.all(np.isnan(want[:, 3])) and not np.any(np.isnan(want[:, 5]))
    plain = hg.jit(lambda q, k, v, b: nn.dot_product_attention(q, k, v, b))
    _near(plain(q, k, v, bias), want)
    _near(plain(q, k, v, seen), np.where(np.isnan(want), 0, want))
    assert _kernels(plain, q, k, v, bias) == _kernels(plain, q, k, v, seen) == 1


def test_causal() -> None:
    q, k, v = _arrays((2, 300, 16), (2, 300, 16), (2, 300, 24))

    def causal(q: Any, k: Any, v: Any) -> Any:
        return nn.dot_product_attention(q, k, v, is_causal=True)

    _near(hg.jit(causal)(q, k, v), formula(q, k, v, lambda s: np.where(np.tri(300, dtype=bool), s / 4, -np.inf)))
    assert _kernels(causal, q, k, v) == 1


def test_any_work_on_scores() -> None:
    """A cap, used twice, and a bias of each head, of each distance, and gathered."""
    q, k, v, heads, far = _arrays((3, 40, 16), (3, 300, 16), (3, 300, 24), (3,), (340,))
    places = np.arange(40)[:, None] - np.arange(300) + 299

    def capped(q: Any, k: Any, v: Any, heads: Any, far: Any) -> Any:
        t = hnp.tanh(q @ hnp.matrix_transpose(k) / 5)
        return nn.softmax(t * 5 + t * t + heads[:, None, None] + far[places]) @ v

    def finish(s: Array) -> Array:
        t = np.tanh(s / 5)
        return np.asarray(t * 5 + t * t + heads[:, None, None] + far[places])

    _near(hg.jit(capped)(q, k, v, heads, far), formula(q, k, v, finish))
    assert "taken" in hg.jit(capped).lower(q, k, v, heads, far).as_text("kernels")
    assert _kernels(capped, q, k, v, heads, far) == 1


def test_keys_that_are_computed_are_computed_once() -> None:
    x, w = _arrays((40, 16), (16, 16))

    def self_attention(x: Any, w: Any) -> Any:
        return by_hand(x, hnp.exp(x @ w), x * 2)

    _near(hg.jit(self_attention)(x, w), formula(x, np.exp(x.astype(F64) @ w), x * 2))
    assert _kernels(self_attention, x, w) == 3  # keys, values, attention


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_special_values_are_those_of_separate_kernels(value: float) -> None:
    q, k, v = _arrays((33, 16), (2 * BLOCK_KEYS + 20, 16), (2 * BLOCK_KEYS + 20, 24))
    q[3, 2], k[7, 5], v[300, 1] = value, value, value
    got = np.asarray(hg.jit(by_hand)(q, k, v))
    want = np.asarray(hg.jit(by_hand, precision="exact")(q, k, v))
    assert _kernels(by_hand, q, k, v, precision="exact") > 1
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-6)


# --- precision, types, threads ---------------------------------------------------------------------------------------


def test_exact_leaves_the_written_order() -> None:
    q, k, v = _arrays((40, 16), (50, 16), (50, 24))
    assert _kernels(by_hand, q, k, v, precision="exact") == 3
    assert _kernels(by_hand, q, k, v, precision="fast") == 1
    _near(hg.jit(by_hand, precision="fast")(q, k, v), formula(q, k, v))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_16_bit_arguments_compute_in_float32(dtype: str) -> None:
    q, k, v = (hnp.astype(hg.tensor(x), dtype) for x in _arrays((40, 16), (50, 16), (50, 24)))
    got = hg.jit(nn.dot_product_attention)(q, k, v)
    want = formula(*(np.asarray(hnp.astype(x, "float32")) for x in (q, k, v)), finish=lambda s: s / 4)
    eps = 2**-11 if dtype == "float16" else 2**-8
    assert str(got.dtype) == dtype
    np.testing.assert_allclose(np.asarray(hnp.astype(got, "float32")), want, rtol=1.01 * eps, atol=1e-6)


@pytest.mark.parametrize("factors", ["float16", "float32", "float64"])
@pytest.mark.parametrize("scores", ["float32", "float64"])
@pytest.mark.parametrize("values", ["float16", "float32", "float64"])
def test_each_part_may_have_a_type_of_its_own(factors: str, scores: str, values: str) -> None:
    def f(q: Any, k: Any, v: Any) -> Any:
        s = (q.astype(factors) @ hnp.swapaxes(k.astype(factors), -1, -2)).astype(scores) * 0.3
        return nn.softmax(s, axis=-1) @ v.astype(values)

    q, k, v = _arrays((2, 33, 16), (2, 40, 16), (2, 40, 16))
    want = np.asarray(hg.jit(f, precision="exact")(q, k, v))
    got = np.asarray(hg.jit(f)(q, k, v))
    assert got.dtype == want.dtype
    tolerance = 2e-3 if factors == "float16" else 2e-6
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def test_bits_do_not_depend_on_threads() -> None:
    q, k, v = _arrays((3, 200, 16), (3, 300, 16), (3, 300, 24))
    f = hg.jit(by_hand)
    results = []
    for n in (1, 2, 3):
        hg.set_num_threads(n)
        results.append(np.asarray(f(q, k, v)).copy())
    hg.set_num_threads(2)
    assert all(np.array_equal(results[0], r) for r in results)


def test_the_last_rows_twice_are_the_same_bits() -> None:
    """Chunks overlap where rows are not blocks: a row's bits do not depend on its place in one."""
    q, k, v = _arrays((2 * BLOCK_ROWS + 9, 16), (300, 16), (300, 24))
    whole, part = (np.asarray(hg.jit(by_hand)(x, k, v)) for x in (q, q[: BLOCK_ROWS + 1]))
    np.testing.assert_array_equal(whole[: BLOCK_ROWS + 1], part)


# --- what is left as it is -------------------------------------------------------------------------------------------


def test_scores_that_are_wanted_elsewhere_stay() -> None:
    q, k, v = _arrays((40, 16), (50, 16), (50, 24))

    def weights_too(q: Any, k: Any, v: Any) -> Any:
        p = nn.softmax(0.3 * q @ k.T)
        return p, p @ v

    p, out = hg.jit(weights_too)(q, k, v)
    np.testing.assert_allclose(np.asarray(p).sum(-1), 1, rtol=1e-6)
    _near(out, formula(q, k, v))
    assert _kernels(weights_too, q, k, v) == 3


@pytest.mark.parametrize(
    "scores",
    [
        pytest.param(lambda s: s - hnp.mean(s, axis=-1, keepdims=True), id="rows depend on each other's keys"),
        pytest.param(lambda s: s + hnp.flip(s, axis=-1), id="two keys"),
        pytest.param(lambda s: s + hnp.mean(s), id="all"),
    ],
)
def test_scores_that_no_block_of_keys_gives(scores: Callable[[Any], Any]) -> None:
    q, k, v = _arrays((40, 16), (50, 16), (50, 24))

    def f(q: Any, k: Any, v: Any) -> Any:
        return nn.softmax(scores(q @ k.T)) @ v

    assert _kernels(f, q, k, v) > 1
    exact = np.asarray(hg.jit(f, precision="exact")(q, k, v))
    np.testing.assert_allclose(np.asarray(hg.jit(f)(q, k, v)), exact, rtol=1e-4, atol=1e-5)


def test_one_query_stays() -> None:
    q, k, v = _arrays((1, 16), (300, 16), (300, 24))
    _near(hg.jit(by_hand)(q, k, v), formula(q, k, v))
    assert _kernels(by_hand, q, k, v) > 1


@pytest.mark.parametrize("f", [by_hand, nn.dot_product_attention])
def test_gradients(f: Callable[..., Any]) -> None:
    args = _arrays((2, 20, 8), (2, 24, 8), (2, 24, 16), dtype=F64)
    weights = _arrays((2, 20, 16), dtype=F64)[0]

    def loss(*args: Any) -> Any:
        return hnp.sum(f(*args) * weights)

    got = hg.jit(hg.value_and_grad(loss, argnums=(0, 1, 2)))(*args)
    exact = hg.jit(hg.value_and_grad(loss, argnums=(0, 1, 2)), precision="exact")(*args)
    for x, y in zip([got[0], *got[1]], [exact[0], *exact[1]], strict=True):
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("options", ["causal", "seen", "added", "row of a mask"])
def test_by_rows_it_is_the_same(options: str) -> None:
    """Value, and derivatives in both modes, with rows left over."""
    rng = np.random.default_rng(4)
    q, k, v, c = (rng.standard_normal(s) for s in ((2, 3, 37, 8), (2, 3, 20, 8), (2, 3, 20, 9), (2, 3, 37, 9)))
    masks = {"seen": rng.random((37, 20)) < 0.8, "added": rng.standard_normal((3, 37, 20)), "row of a mask": rng.random(20) < 0.8}
    given: dict[str, Any] = {"mask": masks.get(options), "is_causal": options == "causal"}

    def attention(rows: int) -> Callable[..., Any]:
        return lambda *a: nn.dot_product_attention(*a, **given, rows=rows)

    def everything(rows: int) -> Any:
        f = attention(rows)
        value, pull = hg.vjp(f, q, k, v)
        return [value, *pull(c), hg.jvp(f, (q, k, v), (q + 1, k - 1, v * 2))[1]]

    for got, want in zip(hg.jit(everything, static_argnums=0)(10), everything(0), strict=True):
        np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-11, atol=1e-12)
    stacked = hg.vmap(attention(16))(q, k, v) if given["mask"] is None or given["mask"].ndim < 3 else attention(64)(q, k, v)
    np.testing.assert_allclose(np.asarray(stacked), np.asarray(attention(0)(q, k, v)), rtol=1e-12, atol=1e-13)


def test_derivatives_keep_a_block_of_scores() -> None:
    """Where ``rows`` says so; what is not differentiated is one kernel whatever its size."""
    q, k, v = _arrays((4, 512, 16), (4, 256, 16), (4, 256, 16))

    def peak(rows: int | None) -> int:
        f = hg.grad(lambda *a: hnp.sum(nn.dot_product_attention(*a, rows=rows) ** 2), argnums=(0, 1, 2))
        return int(hg.jit(f).lower(q, k, v).compile().memory_analysis().peak)

    assert peak(64) < 4 * 512 * 256 * 4 < peak(0) == peak(None)
    assert _kernels(nn.dot_product_attention, q, k, v) == 1


@pytest.mark.parametrize("keys", [900, 1030, 1300])
def test_causal_in_parts(keys: int) -> None:
    """Keys behind a part cost it nothing."""
    rows = nn.attention.MAX_PARTS * nn.attention.MIN_QUERIES + 6
    q, k, v = _arrays((2, rows, 16), (2, keys, 16), (2, keys, 8))

    def causal(q: Any, k: Any, v: Any) -> Any:
        return nn.dot_product_attention(q, k, v, is_causal=True)

    _near(hg.jit(causal)(q, k, v), formula(q, k, v, lambda s: np.where(np.tri(rows, keys, dtype=bool), s / 4, -np.inf)))
    scores = [int(n.inputs[0].size) for n in hg.make_graph(causal)(q, k, v).nodes() if n.op.name == "reduce_max"]
    assert len(scores) == nn.attention.MAX_PARTS and sum(scores) < 0.75 * 2 * rows * keys


def test_queries_without_elements_see_all_keys_alike() -> None:
    _, _, v = _arrays((1,), (1,), (3, 2))
    got = nn.dot_product_attention(np.ones((4, 0), v.dtype), np.ones((3, 0), v.dtype), v)
    np.testing.assert_allclose(np.asarray(got), np.broadcast_to(v.mean(0), (4, 2)), rtol=1e-6)


def test_rows_are_a_number_of_queries() -> None:
    q, k, v = _arrays((4, 8), (4, 8), (4, 8))
    with pytest.raises(ArgumentError, match="rows is a number of queries"):
        nn.dot_product_attention(q, k, v, rows=-1)
    with pytest.raises(ArgumentError, match="not 2.5"):
        nn.dot_product_attention(q, k, v, rows=2.5)  # type: ignore[arg-type]


def test_many_layers_share_their_kernel() -> None:
    x = _arrays((2, 32, 16))[0]

    def layers(x: Any) -> Any:
        for _ in range(3):
            x = nn.dot_product_attention(x, x, x, is_causal=True)
        return x

    kernels = hg.jit(layers).lower(x).compile().executable.execution_plan.kernels
    assert len(kernels) == 3 and len({str(k.kernel) for k in kernels}) == 1


def test_a_number_of_heads_that_varies() -> None:
    """One program, one kernel."""
    f = hg.jit(by_hand, dynamic=dict.fromkeys(range(3), 0))
    assert f.lower(*_arrays((3, 20, 16), (3, 24, 16), (3, 24, 16))).compile().reduction().kernels == 1
    for heads in (1, 2, 3, 7):
        q, k, v = _arrays((heads, 70, 16), (heads, 300, 16), (heads, 300, 16))
        _near(f(q, k, v), formula(q, k, v))


@pytest.mark.parametrize("causal", [False, True])
def test_numbers_of_queries_and_keys_that_vary(causal: bool) -> None:
    """One kernel, which holds no scores, with the bits of the static one from the sizes on where that is a kernel, too."""

    def f(q: Any, k: Any, v: Any) -> Any:
        scores = q @ hnp.swapaxes(k, -1, -2)
        if causal:
            scores = hnp.where(hnp.arange(q.shape[1])[:, None] >= hnp.arange(k.shape[1]), scores, -hnp.inf)
        return nn.softmax(scores) @ v

    of_any, of_one = hg.jit(f, dynamic={0: {1: "n"}, 1: {1: "m"}, 2: {1: "m"}}), hg.jit(f, dynamic=False)
    for rows, keys in ((1, 1), (3, 2), (16, 8), (17, 300), (63, 257), (64, 256), (65, 2 * BLOCK_KEYS), (130, 2 * BLOCK_KEYS + 2)):
        q, k, v = _arrays((2, rows, 16), (2, keys, 16), (2, keys, 24))
        got, want = np.asarray(of_any(q, k, v)), np.asarray(of_one(q, k, v))
        _near(got, want)
        assert rows < 16 or got.tobytes() == want.tobytes(), (rows, keys)
    assert of_any.lower(*_arrays((2, 20, 16), (2, 24, 16), (2, 24, 24))).compile().reduction().kernels == 1


@pytest.mark.parametrize("queries", [{2: "n"}, {1: "g", 2: "n"}], ids=["rows", "groups and rows"])
def test_groups_of_queries_that_share_keys_of_any_number(queries: dict[int, str]) -> None:
    def f(q: Any, k: Any, v: Any) -> Any:
        return nn.softmax(hnp.einsum("bgnd,bmd->bgnm", q, k)) @ v[:, None]

    q, k, v = _arrays((2, 4, 50, 16), (2, 60, 16), (2, 60, 24))
    of_any = hg.jit(f, dynamic={0: queries, 1: {1: "m"}, 2: {1: "m"}})
    assert of_any.lower(q, k, v).compile().reduction().kernels == 1
    np.testing.assert_array_equal(np.asarray(of_any(q, k, v)), np.asarray(hg.jit(f, dynamic=False)(q, k, v)))


@pytest.mark.parametrize("keys", [2, 3, 9, 33])
def test_blocks_of_fewer_keys_than_a_tile(keys: int) -> None:
    q, k, v = _arrays((20, 4), (keys, 4), (keys, 9))
    for block in (1, 3, 8):
        with overridden({"hologram.graph.library.attention.kernel.BLOCK_KEYS": block, "hologram.graph.library.attention.match.MIN_KEYS": 2}):
            _near(hg.jit(by_hand)(q, k, v), formula(q, k, v))
