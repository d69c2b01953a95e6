"""Functions whose programs depend on which of two extents is larger, or on a remainder: few programs with symbols serve all sizes, with the bits and
errors of programs for each size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import ArgumentError, HologramError, ShapeError, TracedValueError
from hologram.ir.symbolic import var
from hologram.trace.call import specialisation
from hologram.trace.decisions import decided, least, most

RECTANGLES = [(5, 3), (7, 4), (9, 5), (3, 5), (4, 9), (6, 6), (1, 4)]
VECTORS = [(4,), (7,), (12,), (1,), (0,), (33,), (2,), (3,)]
STACKS = [(2, 3, 4), (3, 5, 4), (4, 6, 6), (5, 7, 9)]
FUNCTIONS: dict[str, tuple[Callable[[Any], Any], list[Any], str]] = {
    "diagonal": (hnp.diagonal, RECTANGLES, "f4"),
    "diagonal above": (lambda x: hnp.diagonal(x, 2), RECTANGLES, "f4"),
    "diagonal below": (lambda x: hnp.diagonal(x, -2), RECTANGLES, "i4"),
    "diagonals of a stack": (lambda x: hnp.diagonal(x, 0, 0, 2), STACKS, "f4"),
    "each diagonal": (hg.vmap(hnp.diagonal), STACKS, "f4"),
    "gradient of a trace": (hg.grad(lambda x: hnp.trace(x**2)), RECTANGLES, "f4"),
    "diag of vectors": (lambda x: (hnp.diag(x), hnp.diag(x, 2), hnp.diag(x, -1)), VECTORS, "f4"),
    "split": (lambda x: hnp.split(x, 3), [(6,), (9,), (12,), (7,), (3,)], "f4"),
    "array_split": (lambda x: hnp.array_split(x, 3), VECTORS, "f4"),
    "split at indices": (lambda x: hnp.split(x, [2, -3]), VECTORS, "f4"),
    "glu": (lambda x: hg.nn.glu(x, axis=0), [(4, 3), (6, 3), (7, 3), (10, 3)], "f4"),
    "gradient of glu": (hg.grad(lambda x: hg.nn.glu(x, axis=0).sum()), [(4, 3), (6, 3), (10, 3)], "f4"),
    "svd": (hg.linalg.svd, RECTANGLES, "f4"),
    "complex svd": (lambda x: hg.linalg.svd(x, full_matrices=False), RECTANGLES, "c8"),
    "each pinv": (hg.vmap(hg.linalg.pinv), STACKS, "f4"),
    "gradient of svd": (hg.grad(lambda x: (hg.linalg.svd(x, full_matrices=False).U ** 3).sum()), RECTANGLES, "f8"),
    "lstsq": (lambda x: hg.linalg.lstsq(x, x[:, 0]), RECTANGLES, "f4"),
    "qr": (lambda x: (hg.linalg.qr(x), hg.linalg.qr(x, mode="complete")), RECTANGLES, "f4"),
    "gradient of qr": (hg.grad(lambda x: hg.linalg.qr(x).R.sum()), RECTANGLES, "f8"),
    "irfft": (hg.fft.irfft, VECTORS, "c8"),
    "irfft of 7": (lambda x: hg.fft.irfft(x, n=7), VECTORS, "c8"),
    "irfft of rfft": (lambda x: hg.fft.irfft(hg.fft.rfft(x), n=x.shape[0]), VECTORS, "f4"),
    "gradient of irfft": (hg.grad(lambda x: (hg.fft.irfft(hg.fft.rfft(x)) ** 2).sum()), [(4,), (6,), (8,), (30,)], "f4"),
    "interp": (lambda x: hnp.interp(x * 2, hnp.sort(x), x**2), VECTORS, "f4"),
    "gradient of interp": (hg.grad(lambda x: hnp.interp(x * 2, hnp.sort(x), x**2).sum()), [(4,), (7,), (12,)], "f4"),
    "associative_scan": (lambda x: hg.associative_scan(hnp.multiply, x), [(4,), (7,), (0,), (2,), (3,), (9,), (30,)], "f4"),
    "reversed associative_scan": (lambda x: hg.associative_scan(hnp.add, x, reverse=True), [(5,), (4,), (6,)], "f4"),
    "gradient of associative_scan": (hg.grad(lambda x: hg.associative_scan(lambda a, b: a * b, x).sum()), [(4,), (7,), (1,)], "f4"),
}


def _array(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return (np.random.default_rng(shape).standard_normal(shape) * 4).astype(dtype)


def _results(f: Callable[[Any], Any], x: np.ndarray) -> Any:
    try:
        return [np.asarray(y) for y in hg.tree.leaves(f(x))]
    except HologramError as e:
        return type(e)


def _same(got: Any, want: Any) -> bool:
    if isinstance(want, type) or isinstance(got, type):
        return got is want
    return all(g.dtype == w.dtype and g.shape == w.shape and g.tobytes() == w.tobytes() for g, w in zip(got, want, strict=True))


@pytest.mark.costly(4)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_programs_with_symbols_give_the_bits_of_static_ones(name: str) -> None:
    f, shapes, dtype = FUNCTIONS[name]
    symbolic, automatic, static = (hg.jit(f, dynamic=d, precision="exact") for d in (True, "auto", False))
    for shape in shapes:
        x = _array(shape, dtype)
        want = _results(static, x)
        assert _same(_results(symbolic, x), want), shape
        assert _same(_results(automatic, x), want), shape
    assert all(not e.value.is_static for e in automatic._families._entries.values())


NEGATIVE: dict[str, Callable[[Any], Any]] = {
    "arange": lambda x: hnp.arange(x.shape[0] - x.shape[1]),
    "zeros": lambda x: hnp.zeros(x.shape[0] - x.shape[1]),
    "eye": lambda x: hnp.eye(x.shape[0] - 4),
    "full": lambda x: hnp.full((x.shape[0] - 4, 2), x[0, 0]),
    "broadcast_to": lambda x: hnp.broadcast_to(x[0, 0], (x.shape[0] - x.shape[1], 2)),
    "tile": lambda x: hnp.tile(x, (x.shape[0] - 4, 1)),
    "in a loop": lambda x: hg.fori_loop(0, 2, lambda i, c: c + hnp.ones((x.shape[0] - 4, 1)).sum(), 0.0),
    "in a branch": lambda x: hg.cond(x.sum() > 0, lambda: hnp.zeros(x.shape[0] - 4).sum(), lambda: hnp.ones(x.shape[0] - 4).sum()),
    "for each example": lambda x: hg.vmap(lambda r: r[0] * hnp.ones(x.shape[0] - x.shape[1]))(x),
}


@pytest.mark.parametrize("name", NEGATIVE)
def test_differences_of_extents_may_be_negative(name: str) -> None:
    """A shape is an error then, in whatever order sizes come; a count is 0."""
    f = NEGATIVE[name]
    for shapes in (RECTANGLES, RECTANGLES[::-1]):
        symbolic, automatic, static = (hg.jit(f, dynamic=d) for d in (True, "auto", False))
        for shape in shapes:
            x = _array(shape, "f4")
            want = _results(static, x)
            assert _same(_results(symbolic, x), want), shape
            assert _same(_results(automatic, x), want), shape


def test_calls_with_other_answers_get_programs_of_their_own() -> None:
    compiled: list[Any] = []

    @hg.jit(dynamic=True)
    def f(x: Any) -> Any:
        compiled.append(x.shape)
        return hg.linalg.svdvals(x)

    for shape in ((5, 3), (9, 4), (7, 6)):
        f(_array(shape, "f4"))
    assert len(compiled) == 1
    for shape in ((3, 5), (4, 9), (8, 2), (2, 3)):
        f(_array(shape, "f4"))
    assert len(compiled) == 2


def test_programs_of_one_signature_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit calls are compiled for their sizes."""
    monkeypatch.setattr("hologram.trace.call.jit.VARIANT_LIMIT", 3)
    assert specialisation.VARIANT_LIMIT > 3
    f = hg.jit(lambda x: hnp.array_split(x, 7), dynamic=True)
    for n in (7, 15, 23, 31, 39, 8, 71):
        for got, want in zip(f(np.arange(n)), np.array_split(np.arange(n), 7), strict=True):
            np.testing.assert_array_equal(np.asarray(got), want)
    symbolic = [e.value for e in f._specialisations._entries.values() if e.value.executable.dynamic]
    assert len(symbolic) == 3


def test_a_compiled_or_saved_program_is_one_answer(tmp_path: Any) -> None:
    made = hg.jit(hg.linalg.svdvals, dynamic=True).lower(_array((5, 3), "f4")).compile()
    x = _array((9, 4), "f4")
    np.testing.assert_array_equal(np.asarray(made(x)), np.asarray(hg.linalg.svdvals(x)))
    with pytest.raises(ArgumentError, match="n0 = 4"):
        made(_array((4, 9), "f4"))
    hg.export(hg.jit(hg.linalg.svdvals, dynamic=True), _array((5, 3), "f4")).save(tmp_path / "svd.hgp")
    loaded = hg.load(tmp_path / "svd.hgp")
    np.testing.assert_array_equal(np.asarray(loaded(x)), np.asarray(hg.linalg.svdvals(x)))
    with pytest.raises(HologramError):
        loaded(_array((4, 9), "f4"))


def test_errors_name_the_line() -> None:
    f = hg.jit(lambda x: hnp.split(x, 4), dynamic=True)
    f(np.ones(8, np.float32))
    with pytest.raises(ShapeError, match="does not divide into 4 equal parts.*test_decisions.py"):
        f(np.ones(9, np.float32))


@given(st.integers(-50, 50), st.integers(-50, 50))
def test_numbers_are_compared(a: int, b: int) -> None:
    assert decided(a) is (a >= 0) and least(a, b) == min(a, b) and most(a, b) == max(a, b)


def test_bounds_answer_and_unknown_sizes_are_refused() -> None:
    n = var("n", 2, 9)
    assert decided(n - 2) and not decided(n - 10)
    with pytest.raises(TracedValueError, match="is not known while tracing"):
        decided(n - 5)
