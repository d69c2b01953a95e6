"""Products whose rows have their terms far apart in memory: tiles pack their rows, or the factor is kept transposed. The bits are those of a product
that does neither."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.graph.fusion import materialize
from hologram.graph.schedule import tiles
from hologram.settings import override

PACKED = [(512, 300, 128), (509, 256, 70), (300, 1030, 33), (1024, 257, 200)]  # rows, terms, columns
TRANSPOSED = [(256, 256, 256), (300, 260, 512), (512, 2100, 300), (257, 4097, 256)]
PROGRAMS: dict[str, Callable[..., Any]] = {
    "a product": lambda a, b: a.T @ b,
    "of what is computed": lambda a, b: (hnp.maximum(a, 0) * a).T @ b,
    "with an epilogue": lambda a, b: hnp.maximum((a * 0.5).T @ b, 0) + 1,
    "of a batch": lambda a, b: hnp.einsum("zqm,zqn->zmn", hnp.stack([a, -a]), hnp.stack([b, b + 1])),
}


def _operands(shape: tuple[int, int, int], dtype: str = "float32") -> tuple[np.ndarray, np.ndarray]:
    m, k, n = shape
    rng = np.random.default_rng(m + k + n)
    return rng.standard_normal((k, m)).astype(dtype), rng.standard_normal((k, n)).astype(dtype)


def _kernels(f: Callable[..., Any], *args: Any) -> str:
    return str(hg.jit(f).lower(*args).as_text("kernels"))


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("shape", PACKED + TRANSPOSED, ids=str)
def test_bits_are_those_of_a_product_that_packs_nothing(shape: tuple[int, int, int], name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = _operands(shape)
    f = PROGRAMS[name]
    found = np.asarray(hg.jit(f)(a, b))
    with override(checked=True):
        np.testing.assert_array_equal(hg.jit(f)(a, b), found)
    monkeypatch.setattr(tiles, "MAX_PANEL_TILES", 1)
    monkeypatch.setattr(materialize, "transposed_factors", lambda nodes, materialized: set())
    plain = hg.jit(lambda a, b: (f(a, b), hnp.float32(0)))  # another program, which is compiled anew
    assert "scratch rows" not in plain.lower(a, b).as_text("kernels")
    np.testing.assert_array_equal(plain(a, b)[0], found)
    np.testing.assert_allclose(found, f(hg.tensor(a.astype(np.float64)), hg.tensor(b.astype(np.float64))), rtol=1e-3, atol=2e-3)


@pytest.mark.parametrize("shape", PACKED[:2], ids=str)
def test_tiles_pack_rows_that_are_far_apart(shape: tuple[int, int, int]) -> None:
    a, b = _operands(shape)
    text = _kernels(lambda a, b: (a * 0.5).T @ b, a, b)
    assert text.count("scratch rows") == 1 and text.count(" mul(") == 1  # what is packed is computed once, not for each row and block of columns


@pytest.mark.parametrize("shape", TRANSPOSED, ids=str)
def test_factors_of_many_columns_are_kept_transposed(shape: tuple[int, int, int]) -> None:
    a, b = _operands(shape)
    text = _kernels(lambda a, b: a.T @ b, a, b)
    assert "scratch rows" not in text and f"b1[{shape[1]}*q+t]" in text.split("\n\n")[0]


def test_factors_of_any_number_of_terms_are_kept_transposed() -> None:
    """A batch of any size: the copy is a small part of the work, however many terms there are."""
    a, b = _operands((300, 500, 512))
    f = hg.jit(lambda a, b: a.T @ b, dynamic={0: {0: "n"}, 1: {0: "n"}})
    assert "b1[n0*q+t]" in f.lower(a, b).as_text("kernels").split("\n\n")[0]
    for terms in (1, 3, 255, 500):
        np.testing.assert_array_equal(f(a[:terms], b[:terms]), hg.jit(lambda a, b: a.T @ b, dynamic=False)(a[:terms], b[:terms]))


@pytest.mark.parametrize("dtype", ["float64", "int32", "float16", "bfloat16"])
@pytest.mark.parametrize("shape", [PACKED[1], TRANSPOSED[1]], ids=str)
def test_other_types(shape: tuple[int, int, int], dtype: str) -> None:
    a, b = _operands(shape, "float64")
    a, b = (np.asarray(hg.tensor(np.round(x * 4)).astype(dtype)) for x in (a, b))
    np.testing.assert_allclose(
        np.asarray(hg.jit(lambda a, b: a.T @ b)(a, b), np.float64), a.astype(np.float64).T @ b.astype(np.float64), rtol=1e-2, atol=1e-2
    )


def test_what_is_near_is_read_where_it_is() -> None:
    a, b = _operands((64, 300, 128))
    assert "scratch" not in _kernels(lambda a, b: a.T @ b, a, b)
    a, b = _operands((512, 100, 128))  # few lines for a row of tiles: they stay in the first cache
    assert "scratch" not in _kernels(lambda a, b: a.T @ b, a, b)


@pytest.mark.parametrize(
    ("rows", "terms", "columns", "packs"), [(48, 512, 512, True), (32, 512, 512, False), (32, 512, 2048, True), (8, 512, 2048, False)]
)
def test_few_rows_pack_what_they_share_where_no_cache_keeps_it(
    rows: int, terms: int, columns: int, packs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(rows + columns)
    a, b = rng.standard_normal((rows, terms)).astype(np.float32), rng.standard_normal((terms, columns)).astype(np.float32)
    f = hg.jit(lambda a, b: hnp.maximum(a @ b, 0))
    assert ("scratch" in f.lower(a, b).as_text("kernels")) == packs
    monkeypatch.setattr(tiles, "MIN_PACKED_ROWS", 1 << 30)
    monkeypatch.setattr(tiles, "MIN_PACKED_ROWS_OF_LARGE", 1 << 30)
    plain = hg.jit(lambda a, b: (hnp.maximum(a @ b, 0), hnp.float32(0)))
    assert "scratch" not in plain.lower(a, b).as_text("kernels")
    np.testing.assert_array_equal(f(a, b), plain(a, b)[0])
