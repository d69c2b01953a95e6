"""What depends on constants alone: computed once, kept, shared, and let go."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram import nn
from hologram.backends import folded_constants
from hologram.backends.llvm.toolchain import target
from hologram.graph.schedule.tiles import panel_width
from hologram.ir.interpreter import evaluate
from hologram.settings import override
from tests.support.needs import needs_levels

Function = Callable[..., Any]


def _array(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed + sum(shape)).standard_normal(shape).astype(np.float32)


def _executable(f: Function, *args: Any, **options: Any) -> Any:
    return hg.jit(f, **options).lower(*args).compile().executable


def _held(f: Function, *args: Any, **options: Any) -> list[tuple[int, ...]]:
    """The shapes of what ``f`` holds."""
    ahead = _executable(f, *args, **options).execution_plan.initializer
    return [] if ahead is None else [x.shape for x in ahead.graph.outputs]


def _check(f: Function, *args: Any, precision: Any = "standard") -> None:
    """``f`` gives what it gives without holding anything: to rounding, in ``exact`` to the bit, which are the reference's bits."""
    made = hg.jit(f, precision=precision)
    got = np.asarray(made(*args))
    np.testing.assert_array_equal(np.asarray(made(*args)), got)
    with override(hold_limit=0):
        want = np.asarray(made(*args))
    if precision == "exact":
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(got, evaluate(hg.make_graph(f)(*args), [np.asarray(a) for a in args])[0])
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


# --- products --------------------------------------------------------------------------------------------------------


@pytest.mark.crossed
@pytest.mark.parametrize("precision", ["exact", "standard"])
@pytest.mark.parametrize("columns", [2, 33, 64, 100, 130])
@pytest.mark.parametrize("rows", [1, 2, 7, 60])
def test_factors_are_held_in_panels(rows: int, columns: int, precision: str) -> None:
    w, b, x = hg.tensor(_array(columns, 40)), hg.tensor(_array(columns)), _array(rows, 40)

    def f(x: Any) -> Any:
        return nn.relu(x @ w.T + b)

    _check(f, x, precision=precision)
    width = panel_width(columns, 4, target.host().tile)
    if rows > 3 or (columns >= 64 and precision != "exact"):
        assert _held(f, x, precision=precision) == [(-(-columns // width), 40, width)]
        with override(hold_limit=0):
            assert not _held(f, x, precision=precision)


@pytest.mark.parametrize(
    ("shape", "layout", "subscripts"),
    [
        ((20, 30), (30, 640), "ik,kn->in"),
        ((2, 9, 30), (96, 30), "bik,nk->bin"),
        ((2, 9, 30), (2, 96, 30), "bik,bnk->bin"),
        ((9, 30), (3, 40, 30), "ik,hnk->ihn"),
        ((9, 6, 5), (70, 5, 6), "ijk,nkj->in"),
        ((30, 9), (96, 30), "ki,nk->in"),
        ((9, 3000), (70, 3000), "ik,nk->in"),
    ],
)
def test_products_of_any_form(shape: tuple[int, ...], layout: tuple[int, ...], subscripts: str) -> None:
    w, x = hg.tensor(_array(*layout)), _array(*shape)

    def f(x: Any) -> Any:
        return hnp.einsum(subscripts, x, w)

    _check(f, x)
    np.testing.assert_allclose(np.asarray(hg.jit(f)(x)), np.einsum(subscripts, x, np.asarray(w)), rtol=1e-3, atol=1e-3)
    assert len(_held(f, x)) == 1


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("shape", [(1, 64, 256), (1, 3000, 1024), (1, 6400, 1024), (3, 200, 320), (2, 160, 40)])
def test_products_with_few_vectors(shape: tuple[int, int, int], turned: bool) -> None:
    rows, terms, columns = shape
    w, x = hg.tensor(_array(columns, terms) if turned else _array(terms, columns)), _array(rows, terms)
    _check(lambda x: hnp.tanh(x @ (w.T if turned else w) / 64), x)
    _check(lambda x: hnp.tanh(((w if turned else w.T) @ x.T).T / 64), x)


def test_a_sum_along_rows_holds_its_panels_alone() -> None:
    w, x = hg.tensor(_array(256, 320)), _array(320)
    assert _held(lambda x: hnp.tanh(w) @ x, x) == [(4, 320, 64)]


def test_a_large_matrix_is_summed_whole_and_not_in_bands() -> None:
    w, x = hg.tensor(_array(6400, 1024)), _array(1, 6400)
    f = hg.jit(lambda x: x @ w)
    assert _held(lambda x: x @ w, x) == [(16, 6400, 64)]
    assert f.lower(x).compile().reduction().kernels == 1
    np.testing.assert_allclose(np.asarray(f(x)), x @ np.asarray(w), rtol=1e-3, atol=1e-3)


def test_vectors_read_no_more_than_the_constants_bytes() -> None:
    w, x = hg.tensor(_array(1024, 320)).astype("float16"), _array(1, 320)
    assert not _held(lambda x: x @ w.astype("float32").T, x)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64", "int8"])
def test_element_types(dtype: str) -> None:
    w, x = hg.tensor(_array(70, 64) * 4).astype(dtype), hg.tensor(_array(8, 64) * 4).astype(dtype)

    def f(x: Any) -> Any:
        return hnp.matmul(x, w.T, preferred_element_type="int32" if dtype == "int8" else "float64" if dtype == "float64" else "float32")

    _check(f, x)
    assert len(_held(f, x)) == 1


def test_work_on_factors_is_done_ahead() -> None:
    w, scale, x = hg.tensor(_array(64, 48)), hg.tensor(_array(48)), _array(9, 64)

    def f(x: Any) -> Any:
        return x @ (hnp.tanh(w) * scale)

    _check(f, x)
    assert _held(f, x) == [(1, 64, 48)]
    assert "tanh" not in _executable(f, x).as_text("kernels")


def test_factors_that_lie_well_are_read_as_they_are() -> None:
    w = hg.tensor(_array(64, 96))
    assert not _held(lambda x: x @ w, _array(9, 64))


def test_convolutions() -> None:
    w, scale, mean, x = hg.tensor(_array(24, 8, 3, 3)), hg.tensor(_array(24)), hg.tensor(_array(24)), _array(2, 8, 9, 9)

    def f(x: Any) -> Any:
        y = nn.conv2d(x, w, padding=1)
        return (y - mean[:, None, None]) * hnp.exp(scale)[:, None, None]

    _check(f, x)
    assert "exp" not in _executable(f, x).as_text("kernels")
    assert (1, 8, 3, 3, 24) in _held(f, x)
    with override(hold_limit=0):
        before = _executable(f, x).reduction().kernels
    assert _executable(f, x).reduction().kernels < before  # weights are not put in order in each call


# --- other work ------------------------------------------------------------------------------------------------------


def test_work_is_done_once() -> None:
    w, v, x = hg.tensor(_array(300)), hg.tensor(_array(300, seed=1)), _array(300)

    def f(x: Any) -> Any:
        return x * hnp.exp(w) / hnp.sqrt(hnp.sum(v * v))

    _check(f, x)
    made = _executable(f, x)
    assert len(made.execution_plan.initializer.graph.outputs) == 3  # the exponentials, and the divisor's scale and reciprocal
    assert made.reduction().kernels == 1
    assert not {"exp", "sqrt", "div"} & set(made.as_text("kernels").split())


def test_what_would_grow_is_not_held() -> None:
    w, key, narrow = hg.tensor(_array(300)), hg.random.key(3), hg.tensor(_array(64, 64)).astype("bfloat16")
    assert not _held(lambda x: x + hnp.exp(w[:, None] + w[None, :]), _array(300, 300))
    assert not _held(lambda x: x + hg.random.normal(key, (300,)), _array(300))
    assert not _held(lambda x: x + narrow.astype("float32"), _array(64, 64))
    assert not _held(lambda x: x + hnp.sin(hnp.arange(300)), _array(300))


def test_the_last_row_of_an_odd_sum_of_pairs_is_not_held_for_each_row_of_the_result() -> None:
    w = hg.tensor(_array(255, 72)).astype("bfloat16")
    held = _held(lambda x: x.astype("bfloat16") @ w, _array(100, 255))
    assert not [shape for shape in held if 100 in shape]


def test_results_and_what_is_only_moved_are_not_held() -> None:
    w = hg.tensor(_array(300))
    assert not _held(lambda x: (x + 1, hnp.exp(w)), _array(300))
    assert not _held(lambda x: x + w[::-1] + hnp.roll(w, 3)[:1], _array(300))


def test_loops_keep_their_own_work() -> None:
    w, x = hg.tensor(_array(8, 8)), _array(8)

    def f(x: Any) -> Any:
        return hg.fori_loop(0, 5, lambda i, y: hnp.tanh(y @ hnp.exp(w)), x)

    _check(f, x)


# --- what is kept ----------------------------------------------------------------------------------------------------


def test_the_limit_bounds_what_a_program_holds() -> None:
    w, v, x = hg.tensor(_array(300)), hg.tensor(_array(300, seed=1)), _array(300)

    def f(x: Any) -> Any:
        return x * hnp.exp(w) + hnp.exp(v)

    for limit, count in ((0, 0), (1199, 0), (1200, 1), (2400, 2)):
        with override(hold_limit=limit):
            _check(f, x)
            assert len(_held(f, x)) == count


def test_reports_say_what_is_held() -> None:
    w, x = hg.tensor(_array(128, 64)), _array(9, 64)
    made = hg.jit(lambda x: x @ w.T).lower(x).compile()
    memory = made.memory_analysis()
    assert memory.held_bytes == memory.constant_bytes == 4 * 128 * 64
    assert "32,768 computed once and held" in str(memory)
    assert "transpose" in made.executable.initializer
    text = str(hg.explain(lambda x: x @ w.T)(x))
    assert "--- computed once ---" in text and "--- computed once ---" not in str(hg.explain(lambda x: x + 1)(x))


def test_programs_share_what_they_hold_and_let_it_go() -> None:
    w = hg.tensor(_array(128, 64))
    gc.collect()
    before = len(folded_constants._known)
    made = [_executable(lambda x: nn.relu(x @ w.T), _array(rows, 64)) for rows in (8, 20)]
    other = _executable(lambda x: x @ hg.tensor(np.asarray(w)).T, _array(8, 64))
    (one,), (same,), (different,) = (m.constants for m in (*made, other))
    assert one is same and one is not different
    assert len(folded_constants._known) == before + 2
    del made, other, one, same, different
    gc.collect()
    assert len(folded_constants._known) == before


def test_object_code_from_the_disk_cache_holds_the_same() -> None:
    x = _array(9, 64)
    results = []
    for seed in (1, 1, 2):
        w = hg.tensor(_array(100, 64, seed=seed))
        results.append((np.asarray(hg.jit(lambda x, w=w: hnp.exp(x @ w.T))(x)), np.exp(x @ np.asarray(w).T)))
    for got, want in results:
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def test_arrays_are_taken_as_they_are_when_a_function_is_traced() -> None:
    w, x = _array(100, 64), _array(9, 64)
    before = w.copy()
    f = hg.jit(lambda x: x @ w.T)
    f(x)
    w[:] = 0
    for _ in range(3):
        np.testing.assert_allclose(np.asarray(f(x)), x @ before.T, rtol=1e-4, atol=1e-4)


def test_a_tensor_that_is_assigned_to_keeps_its_old_value_in_programs() -> None:
    w, x = hg.tensor(_array(100, 64)), _array(9, 64)
    before = np.asarray(w).copy()
    f = hg.jit(lambda x: x @ w.T)
    f(x)
    w[0] = 0.0
    np.testing.assert_allclose(np.asarray(f(x)), x @ before.T, rtol=1e-4, atol=1e-4)


def test_many_threads_ask_at_once() -> None:
    w, x = hg.tensor(_array(100, 64)), _array(9, 64)
    functions = [hg.jit(lambda x, i=i: x @ w.T + i) for i in range(3)]
    got: list[Any] = [None] * 12

    def work(i: int) -> None:
        got[i] = np.asarray(functions[i % 3](x))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(12)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for i, y in enumerate(got):
        np.testing.assert_allclose(y, x @ np.asarray(w).T + i % 3, rtol=1e-4, atol=1e-4)


# --- transforms, files, symbols --------------------------------------------------------------------------------------


def test_transforms() -> None:
    w, x = hg.tensor(_array(70, 64)), _array(9, 64)

    def f(x: Any) -> Any:
        return hnp.sum(hnp.tanh(x @ hnp.exp(w).T) ** 2)

    _check(hg.grad(f), x)
    _check(hg.vmap(lambda row: hnp.tanh(w @ row)), x)
    assert _held(hg.grad(f), x)


def test_symbolic_extents() -> None:
    w = hg.tensor(_array(70, 64))
    f = hg.jit(lambda x: hnp.tanh(x @ hnp.exp(w).T), dynamic={0: 0})
    for rows in (1, 5, 64):
        x = _array(rows, 64)
        np.testing.assert_allclose(np.asarray(f(x)), np.tanh(x @ np.exp(np.asarray(w)).T), rtol=1e-4, atol=1e-4)


def test_saved_programs_compute_it_again(tmp_path: Any) -> None:
    w, x = hg.tensor(_array(70, 64)), _array(9, 64)
    program = hg.export(lambda x: x @ hnp.exp(w).T, x)
    want = np.asarray(program(x))
    program.save(tmp_path / "program.hg")
    assert (tmp_path / "program.hg").stat().st_size < 1.5 * 4 * 70 * 64
    np.testing.assert_array_equal(np.asarray(hg.load(tmp_path / "program.hg")(x)), want)


@pytest.mark.crossed
@needs_levels
@pytest.mark.parametrize("level", ["x86-64", "x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("stride", [1, 2])
def test_what_is_held_shares_the_constants_of_the_graph(level: str, stride: int) -> None:
    """Panels that are padded read the zero that the graph has, too: each constant is there once, as the compiler proves here."""
    x, w = _array(2, 17, 7, 7), _array(50, 17, 3, 3)
    with override(target=level, cache=False):
        for f, given in (
            (lambda x: hnp.sum(nn.conv2d(x, w, stride=stride, padding=1) ** 2), x),
            (lambda w: hnp.sum(nn.conv2d(x, w, stride=stride, padding=1) ** 2), w),
        ):
            hg.jit(hg.grad(f)).lower(given).as_text("kernels")
