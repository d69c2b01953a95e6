"""Sums of products in column form: tiles of rows that share reads, packed or not."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.backends.llvm.mixed_width import mixed_widths
from hologram.backends.llvm.toolchain import target
from hologram.graph.kernel.ir import Loop
from hologram.graph.kernel.verify import verify_kernel
from hologram.graph.schedule.tiles import CpuTileConfig, _rows_at_once, block_width, lanes
from hologram.ir.interpreter import evaluate
from hologram.settings import override
from tests.support.needs import needs_levels
from tests.support.optable import seeded

SHAPES = [
    (1, 1, 1),
    (2, 8, 16),
    (5, 9, 17),
    (6, 64, 64),
    (7, 33, 130),
    (13, 40, 100),
    (64, 16, 33),
    (97, 600, 70),
    (50, 513, 600),
    (48, 12, 16),
    (20, 33, 56),
    (9, 12, 40),
    (3, 5000, 20),
    (40, 20, 72),  # columns in equal parts
    (60, 600, 200),
]


def _operands(shape: tuple[int, int, int], dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    m, k, n = shape
    rng = np.random.default_rng(m * 7 + k * 5 + n)
    if np.dtype(dtype).kind in "iu":
        return rng.integers(-9, 9, (m, k)).astype(dtype), rng.integers(-9, 9, (k, n)).astype(dtype)
    return rng.standard_normal((m, k)).astype(dtype), rng.standard_normal((k, n)).astype(dtype)


def _close(got: Any, a: np.ndarray, b: np.ndarray) -> None:
    want = a.astype(np.float64) @ b.astype(np.float64)
    scale = np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64))
    eps = np.finfo(a.dtype).eps if a.dtype.kind == "f" else 0.0
    assert np.all(np.abs(np.asarray(got, np.float64) - want) <= 2 * eps * np.sqrt(a.shape[-1] + 4) * scale)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_matrix_products(shape: tuple[int, int, int], dtype: str) -> None:
    a, b = _operands(shape, dtype)
    _close(hg.jit(hnp.matmul)(a, b), a, b)


@pytest.mark.parametrize("level", ["x86-64", "x86-64-v3"])
@needs_levels
def test_any_number_of_rows_in_tiles_of_any_machine(level: str) -> None:
    with override(target=level, cache=False):
        for rows in range(2, 14):
            a, b = _operands((rows, 9, 33), "float32")
            _close(hg.jit(lambda a, b: a @ b)(a, b), a, b)


def test_a_tile_has_several_rows() -> None:
    for rows in range(2, 9):
        for n in range(2, 200):
            assert 2 <= _rows_at_once(n, CpuTileConfig(rows, 64)) <= min(n, rows)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_exact_products_have_the_references_bits(shape: tuple[int, int, int]) -> None:
    a, b = _operands(shape, "float32")
    graph = hg.make_graph(hnp.matmul)(a, b)
    (want,) = evaluate(graph, [a, b])
    got = hg.jit(hnp.matmul, precision="exact")(a, b)
    np.testing.assert_array_equal(np.asarray(got), want)


@pytest.mark.parametrize("precision", ["exact", "standard"])
@pytest.mark.parametrize("columns", [17, 20, 44, 56])
def test_columns_are_vectors_of_several_widths(columns: int, precision: Any) -> None:
    """What whole vectors leave of a row is half a vector, masked where it is less; sums have the reference's bits where order is kept."""
    a, b = _operands((13, 70, columns), "float32")
    scale = np.linspace(-2, 2, columns, dtype="float32")

    def f(x: Any, y: Any, s: Any) -> Any:
        return hnp.tanh(x @ y * s), x @ y + s

    expensive, cheap = hg.jit(f, precision=precision)(a, b, scale)
    if precision == "exact":
        np.testing.assert_array_equal(np.asarray(cheap), evaluate(hg.make_graph(f)(a, b, scale), [a, b, scale])[1])
    np.testing.assert_allclose(np.asarray(cheap), a @ b + scale, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(np.asarray(expensive), np.tanh(a @ b * scale), rtol=1e-4, atol=1e-4)
    _close(hg.jit(hnp.matmul)(a.astype("float64"), b.astype("float64")), a.astype("float64"), b.astype("float64"))


@needs_levels
def test_mixed_width_columns_take_no_more_than_their_vectors() -> None:
    a, b = _operands((64, 64, 56), "float32")
    with hg.settings.override(target="x86-64-v4"):
        text = hg.jit(hnp.matmul).lower(a, b).compile().as_text("llvm")
    assert all(f"phi <{width} x float>" in text for width in (32, 16, 8)) and "<64 x float>" not in text


def test_mixed_widths() -> None:
    assert [mixed_widths(n, 16) for n in (56, 44, 100, 18, 17)] == [[32, 16, 8], [32, 16], [64, 32, 8], [16, 8], [16, 1]]
    assert [mixed_widths(n, 16) for n in (64, 60, 25, 16, 8, 5)] == [[]] * 6  # one vector takes no more registers
    assert mixed_widths(3, 2) == [2, 1]


PAIRS: dict[str, Any] = {
    "x y": lambda x, y: hnp.matmul(x, y, preferred_element_type="float32"),
    "computed": lambda x, y: hnp.sum(x.astype("float32")[:, :, None] * y.astype("float32"), axis=1),
}


@pytest.mark.costly(3)
@pytest.mark.parametrize("shape", [(60, 70, 100), (70, 128, 5), (50, 33, 40), (9, 3, 40), (3, 2600, 64), (20, 2601, 64)], ids=str)
@pytest.mark.parametrize("name", PAIRS)
def test_products_of_bfloat16_by_pairs(name: str, shape: tuple[int, int, int]) -> None:
    """On machines that have the instruction, and on others: in float32, to the rounding of sums."""
    a, b = (x.astype(ml_dtypes.bfloat16) for x in _operands(shape, "float32"))
    wide = a.astype("float32"), b.astype("float32")
    _close(hg.jit(PAIRS[name])(a, b), *wide)
    _close(hg.jit(lambda x, y: hnp.matmul(x, y.T, preferred_element_type="float32"))(a, np.ascontiguousarray(b.T)), *wide)
    with hg.settings.override(target="-avx512bf16" if "avx512bf16" in target.host().features else ""):
        _close(hg.jit(PAIRS[name])(a, b), *wide)


@needs_levels
def test_pairs_of_bfloat16_are_one_instruction() -> None:
    """In ``exact`` there is none; of an odd number of terms the last is added."""
    a, b = (x.astype(ml_dtypes.bfloat16) for x in _operands((64, 64, 64), "float32"))

    def text(k: int, **options: Any) -> str:
        return hg.jit(hnp.matmul, **options).lower(a[:, :k], b[:k]).compile().as_text("llvm")

    with hg.settings.override(target="x86-64-v4,+avx512bf16"):
        assert "dpbf16ps.512" in text(64) and "dpbf16ps.512" in text(63)
        assert "dpbf16ps" not in text(64, precision="exact")
    with hg.settings.override(target="x86-64-v4"):
        assert "dpbf16ps" not in text(64)


def test_processors_that_are_slow_at_pairs_of_bfloat16_multiply_float32() -> None:
    of = {cpu: target.Target("x86_64-unknown-linux-gnu", cpu, "+avx512f,+avx512bf16").tile.pairs for cpu in ("znver4", "x86-64-v4", "emeraldrapids")}
    assert of == {"znver4": True, "x86-64-v4": True, "emeraldrapids": False}


def test_pairs_of_bfloat16_keep_infinities_and_nans() -> None:
    a, b = (x.astype(ml_dtypes.bfloat16) for x in _operands((20, 64, 64), "float32"))
    a[3, 5], a[4, 8], b[9, 7] = np.inf, np.nan, 0
    got = np.asarray(PAIRS["x y"](hg.tensor(a), hg.tensor(b)))
    want = a.astype("float32") @ b.astype("float32")
    assert np.array_equal(np.isnan(got), np.isnan(want)) and np.array_equal(np.isinf(got), np.isinf(want))


@pytest.mark.parametrize("shape", [(50, 300, 90), (97, 64, 33)], ids=str)
def test_transposed_factors(shape: tuple[int, int, int]) -> None:
    a, b = _operands(shape, "float32")
    _close(hg.jit(lambda x, y: x @ y.T)(a, np.ascontiguousarray(b.T)), a, b)
    _close(hg.jit(lambda x, y: x.T @ y)(np.ascontiguousarray(a.T), b), a, b)


def test_batches_share_or_bring_their_second_factor() -> None:
    rng = np.random.default_rng(3)
    a = rng.standard_normal((3, 2, 49, 40)).astype(np.float32)
    own, shared = rng.standard_normal((2, 40, 70)).astype(np.float32), rng.standard_normal((40, 70)).astype(np.float32)
    for b in (own, shared):
        _close(hg.jit(hnp.matmul)(a, b), a, b)


def test_prologue_and_epilogue_are_in_the_kernel() -> None:
    a, b = _operands((100, 300, 600), "float32")
    bias = np.linspace(-1, 1, 600, dtype=np.float32)

    @hg.jit
    def layer(x: Any, w: Any, c: Any) -> Any:
        return hnp.tanh(x @ (w * 0.5) + c)

    got = np.asarray(layer(a, b, bias))
    np.testing.assert_allclose(got, np.tanh(a @ (b * np.float32(0.5)) + bias), atol=2e-4)
    compiled = layer.lower(a, b, bias).compile()
    assert compiled.reduction().kernels == 1
    kernels = compiled.executable.execution_plan.kernels
    assert any(k.kernel.scratch for k in kernels), "the second factor's panels are packed"
    for k in kernels:
        verify_kernel(k.kernel)


def test_bits_do_not_depend_on_threads() -> None:
    a, b = _operands((200, 700, 600), "float32")
    f = hg.jit(hnp.matmul)
    statements = [s for k in f.lower(a, b).compile().executable.execution_plan.kernels for s in k.kernel.walk()]
    assert any(isinstance(s, Loop) and s.shared > 1 for s in statements), (
        "chunks share panels, which a thread packs once for all that it runs in turn"
    )
    results = []
    for n in (1, 2, 3):
        hg.set_num_threads(n)
        results.append(np.asarray(f(a, b)).copy())
    hg.set_num_threads(2)
    assert all(np.array_equal(results[0], r) for r in results)
    np.testing.assert_allclose(results[0], a @ b, atol=2e-3)


def test_gradients_of_products_are_products() -> None:
    """Sums over the last axis of products of broadcasts are summed down columns, sums of several products one by one."""
    rng = np.random.default_rng(5)
    g, h = rng.standard_normal((90, 50)).astype(np.float32), rng.standard_normal((90, 50)).astype(np.float32)
    v, w = rng.standard_normal((70, 50)).astype(np.float32), rng.standard_normal((70, 50)).astype(np.float32)

    @hg.jit
    def f(g: Any, h: Any, v: Any, w: Any) -> Any:
        return hnp.sum(g[:, None, :] * v[None] + h[:, None, :] * w[None], axis=-1)

    np.testing.assert_allclose(np.asarray(f(g, h, v, w)), g @ v.T + h @ w.T, atol=1e-4)
    kernels = f.lower(g, h, v, w).as_text("kernels")
    assert kernels.count("row = min") == 2


def test_terms_of_products_are_not_kept() -> None:
    a, b = np.ones((2000, 300), np.float32), np.ones((300, 500), np.float32)

    @hg.jit
    def f(x: Any, y: Any) -> Any:
        terms = x[:, :, None] * y[None]
        return hnp.sum(terms, axis=1), hnp.max(terms, axis=1)

    assert f.lower(a, b).compile().memory_analysis().peak < 10**7
    total, largest = f(a, b)
    assert float(total[0, 0]) == 300.0 and float(largest[3, 4]) == 1.0


@pytest.mark.parametrize("shape", [(64, 96), (72, 40), (8, 8)], ids=str)
def test_products_with_a_vector_read_the_matrix_as_it_lies(shape: tuple[int, int]) -> None:
    a, v = _operands((*shape, 1), "float32")[0].T.copy(), np.linspace(-1, 1, shape[1], dtype=np.float32)
    f = hg.jit(lambda x, y: x.T @ y)
    np.testing.assert_allclose(np.asarray(f(a, v)), a.T @ v, rtol=1e-4, atol=1e-4)
    assert "lanes t" in f.lower(a, v).as_text("kernels")  # across the columns of the matrix, not down them
    assert "lanes i" in hg.jit(hnp.matmul).lower(a.T.copy(), v[:, None]).as_text("kernels")  # a column is a vector


@pytest.mark.parametrize("rows", [64, 128, 136, 143, 144, 149, 256])
def test_long_rows_are_summed_one_after_the_other(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns that can be cut in pieces of equal length are; results of a piece stay in scratch."""
    from hologram.graph.legalize import reductions
    from hologram.graph.schedule import choose

    for module in (choose, reductions):
        monkeypatch.setattr(module, "MIN_ROW_BLOCKED_ARRAY_BYTES", 1)
    monkeypatch.setattr(reductions, "MIN_PIECE_BYTES", 1)
    monkeypatch.setattr(reductions, "ROW_BLOCK_PIECES", 8)
    hg.clear_caches()
    a, b = _operands((1, rows, 200), "float32")
    product, total = hg.jit(lambda x, y: x[0] @ y), hg.jit(lambda y: hnp.sum(y, axis=0))
    _close(product(a, b)[None], a, b)
    np.testing.assert_allclose(np.asarray(total(b)), b.sum(0), atol=1e-4)
    both = hg.jit(lambda y: (hnp.max(y, axis=0), hnp.argmin(y, axis=0), hnp.sum(y * y, axis=0)))(b)
    for got, want in zip(both, (b.max(0), b.argmin(0), (b * b).sum(0)), strict=True):
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-4)
    has_pieces = any(rows % pieces == 0 for pieces in range(8, rows // reductions.MIN_ROW_BLOCK + 1))
    assert ("serial g" in product.lower(a, b).as_text("kernels")) == has_pieces
    assert product.lower(a, b).compile().reduction().kernels == (2 if has_pieces else 1)
    assert hg.jit(hnp.matmul, precision="exact").lower(a, b).compile().reduction().kernels == 1
    hg.clear_caches()


@pytest.mark.parametrize("rows", [512, 1024])
def test_bits_of_a_product_do_not_depend_on_what_else_a_program_reads(rows: int) -> None:
    x, w = (seeded(rows).standard_normal(shape).astype(np.float32) for shape in ((rows,), (rows, 512)))
    others = [np.ones((rows, 512), np.float32) for _ in range(2**25 // w.nbytes)]
    among_many = hg.jit(lambda x, w, others: [x @ v for v in (w, *others)])(x, w, others)[0]
    np.testing.assert_array_equal(np.asarray(hg.jit(lambda x, w: x @ w)(x, w)), np.asarray(among_many))


@pytest.mark.parametrize("precision", ["exact", "standard"])
@pytest.mark.parametrize("columns", [1, 2, 3, 17, 130])
@pytest.mark.parametrize(("rows", "terms"), [(2, 8), (5, 9), (20, 8), (33, 40), (13, 300)])
@pytest.mark.parametrize("cheap", [False, True])
def test_elements_beside_their_sums(rows: int, terms: int, columns: int, precision: Any, cheap: bool) -> None:
    """What every term of a sum is multiplied with afterwards is as large as the terms: another pass over them, be the work on a sum cheap or
    expensive."""
    draw = seeded(f"{rows} {terms} {columns}")
    x, w = draw.standard_normal((rows, terms)).astype(np.float32), draw.standard_normal((terms, columns)).astype(np.float32)

    def f(np_: Any, x: Any, w: Any) -> Any:
        y = x @ w
        y = y + 1 if cheap else np_.tanh(y)
        return x[:, :, None] * y[:, None, :]

    got = np.asarray(hg.jit(lambda x, w: f(hnp, x, w), precision=precision)(x, w))
    np.testing.assert_allclose(got, f(np, x.astype(np.float64), w.astype(np.float64)), rtol=2e-5, atol=2e-4)


def test_products_summed_over_leading_axes_keep_no_terms() -> None:
    """The gradients of weights: all axes of a batch are summed, rows and columns stand behind them."""
    x, g = np.ones((8, 128, 256), np.float32), np.ones((8, 128, 500), np.float32)
    gradient = hg.jit(hg.grad(lambda w, x, g: hnp.sum((x @ w) * g)))
    w = np.ones((256, 500), np.float32)
    assert gradient.lower(w, x, g).compile().memory_analysis().peak < 10**7
    assert float(gradient(w, x, g)[3, 4]) == 1024.0


def test_rows_far_down_are_hinted_at() -> None:
    x = np.ones((1030, 2048), np.float32)
    kernels = hg.jit(lambda y: hnp.sum(y, axis=0)).lower(x).as_text("kernels")
    assert kernels.count("prefetch") == 1
    assert "prefetch" not in hg.jit(lambda y: hnp.sum(y, axis=0)).lower(x[:, :64].copy()).as_text("kernels")


@pytest.mark.parametrize("subscripts", ["ik,nk->in", "bik,bnk->bin", "k,nk->n", "nk,k->n"])
@pytest.mark.parametrize("rows", [1, 3, 4])
def test_few_vectors_go_along_the_memory_of_a_turned_matrix(subscripts: str, rows: int) -> None:
    sizes = {"i": rows, "b": 2, "n": 40, "k": 160}
    rng = np.random.default_rng(7)
    x, w = (rng.standard_normal([sizes[a] for a in axes]).astype(np.float32) for axes in subscripts.split("->")[0].split(","))
    f = hg.jit(lambda x, w: hnp.einsum(subscripts, x, w))
    np.testing.assert_allclose(np.asarray(f(x, w)), np.einsum(subscripts, x, w), rtol=1e-4, atol=1e-4)
    along = "lanes i from 0 count 160 with" in f.lower(x, w).compile().as_text("kernels")
    assert along == (rows < 4 or "i" not in subscripts)


def test_blocks_of_columns() -> None:
    """Equal parts where that leaves fewer lanes idle, else whole tiles."""
    assert [block_width(n, 64, 8) for n in (1, 56, 64, 72, 100, 128, 200, 300, 1000, 67)] == [1, 56, 64, 24, 50, 64, 40, 64, 64, 64]
    assert lanes(72, 24, 8) == 72 and lanes(100, 50, 8) == 112 and lanes(72, 64, 8) == 128


@pytest.mark.parametrize("rows", [4, 5, 7])
@pytest.mark.parametrize("terms", [1024, 4096])
def test_few_rows_of_a_large_turned_matrix(rows: int, terms: int) -> None:
    """Along its memory, or by panels, in parts where they would be too long: never element by element across it."""
    x, w = (np.random.default_rng(i).standard_normal(s).astype(np.float32) for i, s in enumerate(((rows, terms), (80, terms))))
    f = hg.jit(lambda x, w: x @ w.T)
    np.testing.assert_allclose(np.asarray(f(x, w)), x @ w.T, rtol=1e-3, atol=1e-3)
    kernels = f.lower(x, w).compile().as_text("kernels")
    assert "scratch" in kernels or "lanes i from 0 count 1024" in kernels


@pytest.mark.parametrize("prologue", [lambda x: x, hnp.tanh], ids=["plain", "computed"])
@pytest.mark.parametrize("transposed", [False, True])
def test_symbolic_rows(prologue: Any, transposed: bool) -> None:
    """One program has tiles for any number of rows, and kernels of smaller tiles for fewer. From 4 rows on the bits are those of static programs."""

    def f(x: Any, w: Any) -> Any:
        return hnp.maximum(hnp.matmul(prologue(x), hnp.matrix_transpose(w) if transposed else w), 0)

    w = seeded(0).standard_normal((40, 70)).astype(np.float32)
    w = w.T.copy() if transposed else w
    with override(verify=True):
        of_all, of_one = hg.jit(f, dynamic={0: 0}), hg.jit(f)
        for n in (9, 2, 3, 33, 5, 4, 14, 100, 13, 1):
            x = seeded(n).standard_normal((n, 40)).astype(np.float32)
            found, expected = np.asarray(of_all(x, w)), np.asarray(of_one(x, w))
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
            assert n < 4 or np.array_equal(found, expected)
    text = of_all.lower(np.ones((9, 40), np.float32), w).as_text("kernels")
    assert "row = min" in text or text.count("parallel p") > 1
