"""Expressions of known structure and new numbers are realised by native code, with the results that Python gives them."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.backends.native.module import why_not_native
from hologram.errors import NonFiniteError, OutOfMemory
from hologram.settings import override
from hologram.support import debug
from hologram.trace import lazy
from hologram.trace.lazy_programs import cache, known

pytestmark = [
    pytest.mark.skipif(why_not_native() is not None, reason=f"no native calls: {why_not_native()}"),
    pytest.mark.usefixtures("compiled_at_once", "handed_over_at_once"),
]

X = np.linspace(0.5, 1.5, 2000, dtype=np.float32)
INTEGERS = np.arange(-40, 60)
NUMBERS = (9, 14, 5, 31, 30, 13, 12, 7, 29, 6, 10, 8)  # the first two are compiled, the third is handed over

EXPRESSIONS: dict[str, Callable[[Any, Any, int], Any]] = {
    "a part": lambda xp, x, k: x[:k] * 3,
    "a sum": lambda xp, x, k: x[:k].sum(),
    "zeros": lambda xp, x, k: xp.zeros(k) + 1,
    "a window": lambda xp, x, k: (x + 1)[k : k + 9] * 2,
    "a reversed part": lambda xp, x, k: (x * 2)[::-1][:k] + 1,
    "two sizes that are equal": lambda xp, x, k: x[:k] * x[k : 2 * k],
    "a square": lambda xp, x, k: xp.zeros((k, k), xp.float32) + x[:k],
    "rows": lambda xp, x, k: (x + 1)[: 4 * k].reshape(k, 4).max(1),
    "padded": lambda xp, x, k: xp.pad(x[:k] + 1, (k, k + 2)),
    "shifted": lambda xp, x, k: xp.roll(x * 2, k),
    "an integer factor": lambda xp, x, k: xp.asarray(INTEGERS) * k + k,
    "a negative factor": lambda xp, x, k: xp.asarray(INTEGERS) * -k - k,
    "an unsigned factor": lambda xp, x, k: xp.asarray(INTEGERS.astype(np.uint8)) * np.uint8(k),
    "a large unsigned factor": lambda xp, x, k: xp.asarray(INTEGERS.astype(np.uint64)) * np.uint64(2**63 + k),
    "a float factor": lambda xp, x, k: x[:k] * (k + 0.75),
    "counted": lambda xp, x, k: xp.arange(k) * 2 + k,
    "a running sum": lambda xp, x, k: xp.cumsum(x[:k] - x[:k].mean())[2:] + 5,
    "a triangle": lambda xp, x, k: xp.tril(xp.ones((k, k))) + 1,
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_new_numbers_run_without_python(name: str, walks: list[int]) -> None:
    f, x = EXPRESSIONS[name], hg.tensor(X)
    for k in NUMBERS:
        got, wanted = np.asarray(f(hnp, x, k)), f(np, X, k)
        assert got.shape == wanted.shape
        np.testing.assert_allclose(got, wanted, rtol=2e-6)
    assert len(walks) <= 7  # of twelve numbers: some are beyond the powers of two that others had


def test_structures_are_told_from_others(walks: list[int]) -> None:
    """All of them, in an order that a seed gives, each time with other numbers."""
    rng, x = np.random.default_rng(7), hg.tensor(X)
    for _ in range(12):
        for name in rng.permutation(list(EXPRESSIONS)):
            k = int(rng.integers(2, 33))
            np.testing.assert_allclose(np.asarray(EXPRESSIONS[name](hnp, x, k)), EXPRESSIONS[name](np, X, k), rtol=2e-6, err_msg=f"{name} {k}")
    assert len(walks) < 10 * len(EXPRESSIONS)


def test_numbers_that_break_a_condition_are_pythons() -> None:
    """Sizes 0 and 1, sizes that were equal and are not, and fixed ones that change."""
    x = hg.tensor(X)
    for n, m in [(9, 9), (14, 14), (5, 5), (8, 8), (5, 1), (1, 5), (7, 7), (1, 1), (0, 0), (6, 6), (0, 1)]:
        if n != m and 1 not in (n, m):
            continue
        np.testing.assert_array_equal(np.asarray(x[:n] * x[:m]), X[:n] * X[:m])
    for n, m in [(3, 4), (5, 7), (6, 2), (11, 9), (4, 4), (9, 3), (2, 8), (8, 2)]:
        np.testing.assert_array_equal(np.asarray(hnp.abs((x + 1)[: n * m].reshape(n, m).T.reshape(-1))), (X + 1)[: n * m].reshape(n, m).T.reshape(-1))
    for k, step in [(9, 2), (14, 2), (5, 2), (8, 2), (8, 3), (9, 3), (7, 2)]:
        np.testing.assert_array_equal(np.asarray((x + 1)[:k:step] * 2), (X + 1)[:k:step] * 2)


def test_intermediates_have_room_at_all_sizes() -> None:
    """A program whose intermediates need memory of its own, from small sizes to large ones and back."""
    x = hg.tensor(X)
    for k in (9, 14, 20, 33, 100, 130, 500, 900, 1000, 1900, 2000, 40, 1025, 1500, 3, 2):
        y, wanted = x[:k], X[:k].astype(np.float64)
        ranks = hnp.cumsum(hnp.exp(y - y.mean())) / hnp.exp(y - y.max()).sum()
        np.testing.assert_allclose(np.asarray(ranks), np.cumsum(np.exp(wanted - wanted.mean())) / np.exp(wanted - wanted.max()).sum(), rtol=1e-5)
    assert any(e.sizes.lifetimes for e in cache.programs.values() if e.sizes is not None)


def test_small_sizes_do_not_take_the_place_of_large_ones(walks: list[int]) -> None:
    """Native code forgets everything when a setting changes. What it gets for a small size then serves the large ones that it had before."""
    x = hg.tensor(X)
    for k in (9, 14, 5, 1900, 1800, 1700, 1600):
        hg.eval(x[:k].max())
    known.clear()
    for _ in range(2 << known.MAX_BACK_OFF):
        hg.eval(x[:6].max())
    walks.clear()
    assert float(x[:7].max()) == X[6] and float(x[:1850].max()) == X[1849]
    assert not walks


def test_several_results_of_one_expression(walks: list[int]) -> None:
    x = hg.tensor(X)
    for k in NUMBERS:
        y = x[:k] * 2
        a, b = y + 1, y.sum()
        hg.eval(a, b)
        np.testing.assert_array_equal(np.asarray(a), X[:k] * 2 + 1)
        np.testing.assert_allclose(np.asarray(b), (X[:k] * 2).sum(), rtol=1e-6)
    assert len(walks) <= 7


def test_programs_may_go() -> None:
    x = hg.tensor(X)
    for k in NUMBERS[:5]:
        hg.eval(x[:k].max())
    cache.programs.clear()
    gc.collect()
    for k in NUMBERS:
        assert float(x[:k].max()) == X[:k].max()


def test_many_structures_do_not_pile_up() -> None:
    from hologram.backends.native.expressions import MAX_EXPRESSIONS

    x = hg.tensor(X)
    for k in range(2, 600):
        hg.eval(x[:k].sum(), x * (k + 0.5), hnp.zeros(k) + k)
    assert len(known._known_expressions()) <= min(64, MAX_EXPRESSIONS)


def test_memory_that_cannot_be_had() -> None:
    x = hg.tensor(X)
    for k in NUMBERS[:5]:
        hg.eval(hnp.zeros((k, k)) + x[:k])
    gc.collect()
    with override(memory_limit=1), pytest.raises(OutOfMemory, match="test_structures.py"):
        hg.eval(hnp.zeros((31, 31)) + x[:31])
    assert np.asarray(hnp.zeros((30, 30)) + x[:30]).shape == (30, 30)


def test_settings_are_followed(walks: list[int]) -> None:
    x = hg.tensor(X)
    for k in NUMBERS[:6]:
        hg.eval(x[:k] * 3)
    before = len(walks)
    hg.eval(x[:13] * 3)
    assert len(walks) == before
    with override(debug=debug.TIMINGS):
        hg.eval(x[:11] * 3)
    assert len(walks) == before + 1
    with override(nans="on"), pytest.raises(NonFiniteError):
        for k in NUMBERS[:6]:
            hg.eval((x - x)[:k] / (x - x)[:k])
    lazy.clear()
    np.testing.assert_array_equal(np.asarray(x[:12] * 3), X[:12] * 3)
