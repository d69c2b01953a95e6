"""Programs for sizes that are known in a call alone: their loops are those of programs for one size, and so are their bits."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.backends.llvm import memory
from hologram.graph.schedule.choose import part_starts
from hologram.graph.schedule.tiles import PACK_BYTES
from hologram.ir.symbolic import substitute, var
from hologram.primitives.reductions import PAGE
from hologram.settings import override
from tests.support.needs import needs_levels

Shapes = Callable[[int], list[tuple[int, ...]]]


def _steps(x: Any, w: Any, u: Any) -> Any:
    """Of a recurrent network: what does not depend on the state is one product for all of them."""
    return hg.scan(lambda h, x: (hnp.tanh(x @ w + h @ u), None), hnp.zeros((8, 16), x.dtype), x)[0]


CASES: dict[str, tuple[Callable[..., Any], Shapes]] = {
    "product": (lambda a, b: a @ b, lambda n: [(n, n), (n, n)]),
    "product of rows": (lambda a, b: a @ b.T, lambda n: [(n, n), (n, n)]),
    "product of columns": (lambda a, b: a.T @ b, lambda n: [(n, n), (n, n)]),
    "product of few rows": (lambda a, b: a @ b.T, lambda n: [(7, n), (n, n)]),
    "product of few terms": (lambda a, b: a @ b.T, lambda n: [(n, 5), (n, 5)]),
    "batched product": (lambda a, b: a @ b, lambda n: [(3, n, 20), (3, 20, n)]),
    "sums of rows": (lambda a: a.sum(1), lambda n: [(n, 40)]),
    "sums of rows of any length": (lambda a: a.sum(1), lambda n: [(n, n)]),
    "positions": (lambda a: a.argmax(1), lambda n: [(n, n)]),
    "distances": (lambda a: ((a[:, None] - a[None]) ** 2).sum(-1), lambda n: [(n, 6)]),
    "distances of long points": (lambda a: ((a[:, None] - a[None]) ** 2).sum(-1), lambda n: [(n, 40)]),
    "distances of a batch": (lambda a: ((a[:, :, None] - a[:, None]) ** 2).sum(-1), lambda n: [(3, n, 40)]),
    "distances of batches": (lambda a: ((a[:, :, None] - a[:, None]) ** 2).sum(-1), lambda n: [(n, 7, 40)]),
    "gradient of weights": (lambda x, y: x.T @ y, lambda n: [(n, 300), (n, 260)]),
    "softmax": (lambda a: hg.nn.softmax(a), lambda n: [(3, n)]),
    "scan": (lambda a: hnp.cumsum(a, 1), lambda n: [(3, n)]),
    "reversed scan": (lambda a: hnp.cumsum(a[:, ::-1], 1)[:, ::-1] * 2, lambda n: [(3, n)]),
    "attention": (lambda q, k: hg.nn.softmax(q @ hnp.swapaxes(k, -1, -2)) @ k, lambda n: [(2, n, 16), (2, n, 16)]),
    "interleaved pieces": (lambda a, b: hnp.stack([a * 2, a + b], -1).reshape(a.shape[0], -1), lambda n: [(n, n), (n, n)]),
    "convolution": (lambda a, w: hg.lax.conv(a, w, (1, 1), "SAME"), lambda n: [(n, 3, 9, 9), (5, 3, 3, 3)]),
    "steps": (_steps, lambda n: [(n, 8, 20), (20, 16), (16, 16)]),
    "count": (lambda a: (a > 1).sum(), lambda n: [(n, n)]),
    "products so far": (lambda a: hnp.cumprod(a, 1), lambda n: [(3, n)]),
}


def _arrays(shapes: list[tuple[int, ...]], dtype: Any = np.float32) -> list[np.ndarray]:
    rng = np.random.default_rng(sum(map(sum, shapes)))
    return [(1 + rng.standard_normal(s) / 50).astype(dtype) for s in shapes]


def _of_any_size(name: str) -> Any:
    """The function of a case, jitted for axes of any size."""
    f, shapes = CASES[name]
    axes = [{a: "n" for a, (m, n) in enumerate(zip(*of, strict=True)) if m != n} for of in zip(shapes(2), shapes(3), strict=True)]
    return hg.jit(f, dynamic={i: of for i, of in enumerate(axes) if of})


def _assert_same_bits(f: Callable[..., Any], arrays: list[np.ndarray], of_any: Callable[..., Any]) -> None:
    got, want = (np.asarray(g(*arrays)) for g in (of_any, hg.jit(f, dynamic=False)))
    assert got.dtype == want.dtype and got.shape == want.shape
    assert got.tobytes() == want.tobytes(), [a.shape for a in arrays]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CASES)
def test_bits_are_those_of_static_programs(name: str, dtype: str) -> None:
    f, shapes = CASES[name]
    of_any = _of_any_size(name)
    for n in (2, 5, 17, 47, 48, 49, 64, 100, 129)[2 if name == "attention" else 0 :]:  # of fewer queries static programs make separate kernels
        _assert_same_bits(f, _arrays(shapes(n), dtype), of_any)


@pytest.mark.parametrize("name", ["scan", "reversed scan", "products so far", "softmax"])
def test_pages(name: str) -> None:
    f, shapes = CASES[name]
    of_any = _of_any_size(name)
    for n in (1, PAGE - 1, PAGE, PAGE + 1, 3 * PAGE, 3 * PAGE + 5):
        _assert_same_bits(f, _arrays(shapes(n)), of_any)


def test_nothing() -> None:
    for name in ("product", "product of rows", "sums of rows", "scan", "distances"):
        f, shapes = CASES[name]
        _assert_same_bits(f, _arrays(shapes(0)), _of_any_size(name))


@pytest.mark.parametrize("name", ["product", "product of rows", "product of columns"])
def test_rows_pack_what_they_share(name: str) -> None:
    f, shapes = CASES[name]
    text = _of_any_size(name).lower(*_arrays(shapes(100))).as_text("kernels")
    assert "shared by" in text and "scratch" in text


@pytest.mark.parametrize(("name", "kernels"), [("interleaved pieces", 1), ("steps", 3), ("attention", 1)])
def test_as_many_kernels_as_static_programs_have(name: str, kernels: int) -> None:
    f, shapes = CASES[name]
    jitted = _of_any_size(name), hg.jit(f, dynamic=False)
    of_any, of_one = (j.lower(*_arrays(shapes(64))).compile().reduction().kernels for j in jitted)
    assert of_any == of_one == kernels


def test_interleaved_pieces_are_written_without_selects() -> None:
    f, shapes = CASES["interleaved pieces"]
    text = _of_any_size("interleaved pieces").lower(*_arrays(shapes(64))).as_text("kernels")
    assert "select" not in text and "inside" not in text


@pytest.mark.parametrize("transposed", [False, True])
def test_more_terms_than_a_panel_has(transposed: bool) -> None:
    """Such a panel is not packed."""
    terms = PACK_BYTES // (4 * 16) + 3  # of the narrowest tile
    a, b = _arrays([(50, terms), (70, terms) if transposed else (terms, 70)])
    f = hg.jit((lambda a, b: a @ b.T) if transposed else (lambda a, b: a @ b), dynamic=True)
    np.testing.assert_allclose(np.asarray(f(a, b)), a.astype(np.float64) @ (b.T if transposed else b), rtol=1e-4)


@needs_levels
@pytest.mark.parametrize("level", ["x86-64", "x86-64-v3"])
def test_products_on_any_machine(level: str) -> None:
    with override(target=level, cache=False):
        f, shapes = CASES["product of rows"]
        of_any = _of_any_size("product of rows")
        for n in (5, 50, 77):
            _assert_same_bits(f, _arrays(shapes(n)), of_any)


def test_parts_of_any_number_of_rows_cover_them() -> None:
    for together in (2, 3, 4):
        for rows in range(1, 40):
            starts = [substitute(s, {"n": rows}) for s in part_starts(var("n"), together)]
            length = -(-rows // together)
            assert {s + i for s in starts for i in range(length)} == set(range(rows))  # type: ignore[operator]


def test_one_division_tells_where_all_rows_of_an_iteration_are() -> None:
    _, shapes = CASES["distances of long points"]
    kernel = _of_any_size("distances of long points").lower(*_arrays(shapes(100))).as_text("kernels")
    along_the_first_axis, *_ = kernel.split("parallel")[1:]
    assert set(re.findall(r"(\S)(?://|%)n0", along_the_first_axis)) == {"p"}  # of nothing that differs from row to row


def test_divisions_by_sizes_stand_before_loops() -> None:
    """LLVM leaves them in a loop, since a divisor may be 0 where the loop has no iterations."""
    _, shapes = CASES["batched product"]
    text = _of_any_size("batched product").lower(*_arrays(shapes(100))).as_text("llvm")
    blocks = re.findall(r"^(\w+):(.*?)(?=^\w+:|^})", text, re.MULTILINE | re.DOTALL)
    sums = [code for label, code in blocks if "fmuladd" in code and f"label %{label}" in code]
    assert sums and not any("udiv" in code or "urem" in code for code in sums)


WRITERS: dict[str, Callable[[Any], Any]] = {
    "elements": lambda a: a + 1,
    "two results": lambda a: (a + 1, a * 2),
    "rows": lambda a: hg.nn.softmax(a),
    "tiles": lambda a: a @ a.T,
    "bools": lambda a: a > 1,
}


@pytest.mark.parametrize("columns", [64, 100, 1024])
@pytest.mark.parametrize("name", WRITERS)
def test_large_results_pass_the_caches_by(name: str, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a call finds them large, and rows start at lines of the cache: each of these ways has the same bits."""
    f = WRITERS[name]
    (a,) = _arrays([(70, columns)])
    want = [np.asarray(x) for x in hg.tree.leaves(hg.jit(f, dynamic=False)(a))]
    monkeypatch.setattr(memory, "NONTEMPORAL_BYTES", 16_384)
    g = hg.jit(f, dynamic={0: {0: "n", 1: "m"}})
    assert "!nontemporal" in g.lower(a).as_text("llvm") or want[0].dtype == bool
    for rows in (20, 70):
        for got, all_rows in zip(hg.tree.leaves(g(a[:rows])), want, strict=True):
            expected = all_rows[:rows] if all_rows.shape[1] == columns else all_rows[:rows, :rows]
            np.testing.assert_array_equal(np.asarray(got), expected)
