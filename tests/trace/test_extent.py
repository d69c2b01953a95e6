"""Extents as functions traced with ``dynamic`` see them: what they can do, what is refused, and which sizes a program serves."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import ArgumentError, IndexOutOfRange, LeakedTracerError, ShapeError, TracedValueError
from hologram.graph.kernel.verify_bounds import Ranges
from tests.support.extent_steps import STEPS

# --- extents as traced functions see them ----------------------------------------------------------------------------

X = np.arange(15, dtype=np.float32).reshape(5, 3)


@functools.lru_cache
def _remembered(n: Any) -> int:
    return 1


@pytest.mark.parametrize(
    "look_up",
    [
        lambda t: t * {5: 2}.get(t.shape[0], 1),
        lambda t: t * 2 if t.shape in {(5, 3): "known"} else t,
        lambda t: t * 2 if t.shape[0] in {5, 6} else t,
        lambda t: t * _remembered(t.shape[0]),
        lambda t: t * _remembered(t.shape),
        lambda t: t * _remembered(t.size // 2 + 1),
    ],
)
def test_extents_are_not_looked_up(look_up: Callable[[Any], Any]) -> None:
    with pytest.raises(TracedValueError, match=r"hash\(.*symbolic.*test_extent.py"):
        hg.jit(look_up, dynamic={0: 0})(X)


@pytest.mark.parametrize(
    "read",
    [
        lambda n: n == 5,
        lambda n: n == 5.0,
        lambda n: n == np.int64(5),
        lambda n: np.int64(5) == n,
        lambda n: -n == -5,
        lambda n: 2 * n - 1 == 9,
        lambda n: n in range(9),
        lambda n: n < 5.5,
        lambda n: n // 2 > 2,
        lambda n: n**2 == 25,
        lambda n: bool(n - 2),
        lambda n: list(range(n)),
        lambda n: [7, 8][n],
        lambda n: float(n),
        lambda n: int(n),
        lambda n: n // -n,
    ],
)
def test_what_needs_the_value_of_an_extent_is_refused(read: Callable[[Any], Any]) -> None:
    with pytest.raises(TracedValueError, match="symbolic.*test_extent.py") as caught:
        hg.jit(lambda t: t if read(t.shape[0]) else 2 * t, dynamic=True)(X)
    assert "n0 = 5, n1 = 3" in "".join(caught.value.__notes__)


def test_comparisons_that_bounds_decide() -> None:
    def decided(t: Any) -> Any:
        n = t.shape[0]  # 2 or more
        answers = [n == n, n != 0, n != 1.0, n != 2.5, n != None, n != "n", n > 1, n >= 2, n > 1.5, bool(n), -n < 0, abs(-n) == n]  # noqa: E711
        assert all(answers) and not (n < 2 or n <= 1.9 or 2 * n == 3 or 0 > n or n == float("nan")), answers
        return t

    hg.jit(decided, dynamic=True)(X)


def test_arithmetic_of_extents() -> None:
    def count(t: Any) -> Any:
        n = t.shape[0]
        half = -(-n // 2)  # rounded up
        return n + 1, 2 * n, n - 7, n * n, n**3, half, n % 3, -n % 3, divmod(n, 4), n / 2, 1 / n, 1.5 * n, n**-1, np.float32(2) * n, np.int8(2) * n

    f = hg.jit(count, dynamic=True)
    for size in (2, 5, 8, 9):
        n = size
        want = [n + 1, 2 * n, n - 7, n * n, n**3, -(-n // 2), n % 3, -n % 3, n // 4, n % 4, n / 2, 1 / n, 1.5 * n, 1 / n, 2 * n, 2 * n]
        got = hg.tree.leaves(f(np.zeros(size)))
        np.testing.assert_allclose([float(x) for x in got], want, rtol=1e-6)


def test_extents_beside_tensors() -> None:
    def means(t: Any) -> Any:
        n = t.shape[0]
        return t.sum(axis=0) / n, n * t, t == n, hnp.sqrt(n), hg.asarray(n), hnp.maximum(t, n - 2), n

    f = hg.jit(means, dynamic={0: 0})
    for size in (2, 5, 6):
        x = X.ravel()[:size]
        want = [x.mean(), size * x, x == size, np.sqrt(size), size, np.maximum(x, size - 2), size]
        for g, w in zip(f(x), want, strict=True):
            np.testing.assert_allclose(g, w, rtol=1e-6)
        assert [g.dtype for g in f(x)] == [np.float32, np.float32, bool, np.float32, np.int64, np.float32, np.int64]


def test_what_is_cut_at_computed_extents() -> None:
    """Bounds that may be negative mean the other end; sizes where they are get a program of their own."""

    def parts(t: Any) -> Any:
        n = t.shape[0]
        return (
            t[n - 5 :],
            t[: n - 4],
            t[n // 3 : n // 2],
            t[-n:],
            t[(n - 5) // 2 : n],
            t[: -(n // 2)],
            t[n - 3 :: -1],
            t[n - 1],
            t[: (n - 6) % 4],
            t[: -(n // 4)],
        )

    f = hg.jit(parts, dynamic=True)
    for n in [2, 3, 4, 5, 6, 7, 8, 13, 5, 4]:
        x = np.arange(n, dtype=np.float32)
        for k, (got, want) in enumerate(zip(f(x), parts(x), strict=True)):
            np.testing.assert_array_equal(got, want, err_msg=f"part {k} of {n}")


# --- two symbols -----------------------------------------------------------------------------------------------------


def test_different_symbols_are_different_sizes() -> None:
    """Equal sizes share a symbol, so each answer holds for every call that its program serves."""
    f = hg.jit(lambda a, b: hnp.ones(()) * (a.shape == b.shape) + 2 * (3 * a.shape[0] + 1 == 3 * b.shape[0] + 1), dynamic=True)
    for n, m in [(5, 7), (5, 5), (7, 5), (2, 9), (9, 9), (1, 1), (1, 5), (0, 0)]:
        assert float(f(np.ones(n), np.ones(m))) == 3.0 * (n == m), (n, m)
    for undecidable in (lambda a, b: a if 2 * a.shape[0] == b.shape[0] else b, lambda a, b: a if a.shape[0] < b.shape[0] else b):
        with pytest.raises(TracedValueError, match="symbolic"):
            hg.jit(undecidable, dynamic=True)(np.ones(5), np.ones(10))
    with pytest.raises(TracedValueError, match="symbolic"):  # a static axis may have the size of a dynamic one
        hg.jit(lambda a, b: a if a.shape[0] == b.shape[0] else b, dynamic={0: 0})(np.ones(5), np.ones(10))


PAIRS: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "add": (lambda a, b: a + b, "n,k n,k"),
    "where": (lambda a, b: hnp.where(a > 0, a, b), "n,k n,k"),
    "matmul": (lambda a, b: a @ b, "k,n n,k"),
    "concatenate": (lambda a, b: hnp.concatenate([a, b], axis=1), "n,k n,m"),
    "stack": (lambda a, b: hnp.stack([a, b]), "n,k n,k"),
    "einsum-like": (lambda a, b: hnp.tensordot(a, b, axes=1), "k,n n,m"),
    "set": (lambda a, b: a.at[1:].set(b[1:]), "n,k n,k"),
    "take": (lambda a, b: hnp.take(a, hnp.arange(b.shape[0]), axis=0) + 0 * b[:, :1], "n,k n,k"),
}


@pytest.mark.parametrize("name", PAIRS)
def test_two_sizes_that_an_op_wants_equal(name: str) -> None:
    """Equal in a call: served. Different: a ShapeError, whatever was compiled before; or where the op allows it what NumPy's rules give."""
    f, shapes = PAIRS[name]
    g = hg.jit(f, dynamic=True)

    def argument(which: int, n: int) -> np.ndarray:
        sizes = {"n": n, "k": 3, "m": 4}
        shape = [sizes[s] for s in shapes.split()[which].split(",")]
        return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)

    for n, m in [(5, 5), (5, 7), (8, 8), (2, 9), (4, 4), (3, 3), (3, 5)]:
        a, b = argument(0, n), argument(1, m)
        try:
            want = np.asarray(f(hg.tensor(a), hg.tensor(b)))
        except ShapeError:
            with pytest.raises(ShapeError):
                g(a, b)
        else:
            np.testing.assert_array_equal(g(a, b), want)


def test_sizes_that_happen_to_fit() -> None:
    """One program serves all sizes, also those where this would not fit."""
    with pytest.raises(ShapeError, match=r"2\*n0 and n1 differ") as caught:
        hg.jit(lambda a, b: hnp.concatenate([a, a]) + b, dynamic=True)(np.ones(5), np.ones(10))
    assert "n0 = 5, n1 = 10" in "".join(caught.value.__notes__)


# --- what dynamic names ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dynamic", "args", "message"),
    [
        ({0: 2}, (X,), "dynamic names axis 2 of a, which has 2 axes"),
        ({"a": (0, -3)}, (X,), "dynamic names axis -3 of a, which has 2 axes"),
        ({"b": 0}, (X, 2.0), "dynamic names axis 0 of b, which has 0 axes"),
        ({1: 0}, (X, hg.tensor(1)), "dynamic names axis 0 of b, which has 0 axes"),
        ({0: 1}, ({"u": X[0], "v": 1},), "dynamic names axis 1 of a, which has 1 axes"),
        ({2: 0}, (X, X), "dynamic names argument 2, which this call does not have"),
        ({"c": 0}, (X, X), "dynamic names c, which this call does not have"),
    ],
)
def test_dynamic_names_what_a_call_has(dynamic: Any, args: Any, message: str) -> None:
    def f(a: Any, b: Any = None, *rest: Any, **more: Any) -> Any:
        return hg.tree.leaves(a)[0] * 2

    with pytest.raises(ArgumentError, match=message + ".*test_extent.py"):
        hg.jit(f, dynamic=dynamic)(*args)


def test_dynamic_of_what_may_be_left_out() -> None:
    def f(a: Any, b: Any = None) -> Any:
        return hg.tree.leaves(a)[0] * 2

    hg.jit(f, dynamic={"b": 0, 0: -1})(X)
    hg.jit(f, dynamic={"b": 0})(X, None)
    hg.jit(f, dynamic={0: -1, "a": 0})({"u": X, "step": 3})
    for options, message in [
        ({"dynamic": {0: 0}, "static_argnums": 0}, "dynamic: a is static"),
        ({"dynamic": {0: "x"}}, "axes of a are integers"),
        ({"dynamic": {0: (0, 1.5)}}, "axes of a are integers"),
    ]:
        with pytest.raises(ArgumentError, match=message):
            hg.jit(f, **options)


@pytest.mark.parametrize(
    "use",
    [
        lambda n: hnp.zeros((n,)),
        lambda n: hnp.ones(5)[:n],
        lambda n: hnp.ones(5)[n - 1],
        lambda n: hnp.ones(5) * n,
        lambda n: n / 2,
        lambda n: hg.asarray(n),
        lambda n: hg.jit(lambda t: t[:n])(X),
        lambda n: hg.jit(lambda t: hnp.reshape(t, (n * 3,)), dynamic=True)(X),
    ],
)
def test_extents_do_not_leave_their_trace(use: Callable[[Any], Any]) -> None:
    kept: list[Any] = []
    hg.jit(lambda t: kept.append(t.shape[0]) or t, dynamic=True)(X)
    with pytest.raises(LeakedTracerError, match="extent .* outside, its trace.*test_extent.py"):
        use(kept[0])


WEIGHTS = hg.tensor(np.arange(12, dtype=np.float32).reshape(4, 3))


@pytest.mark.parametrize(
    "flow",
    [
        lambda t: hg.fori_loop(0, 3, lambda i, c: c * t.shape[0] + t.size, t[0, 0]),
        lambda t: hg.while_loop(lambda c: c < t.shape[0], lambda c: c + 1, t[0, 0]),
        lambda t: hg.cond(t[0, 0] < 1, lambda c: c * t.shape[0], lambda c: c + WEIGHTS.sum() / t.size, t[0]),
        lambda t: hg.switch(1, [lambda c: c, lambda c: c + hnp.arange(t.shape[0]).sum()], t[0]),
        lambda t: hg.scan(lambda c, w: (c + w * t.shape[0], c), hnp.zeros(3), WEIGHTS),
        lambda t: hg.fori_loop(0, 3, lambda i, c: hg.fori_loop(0, 2, lambda j, d: d + t.shape[0] * i, c), t[0]),
        lambda t: hg.fori_loop(0, 3, lambda i, c: c + t.mean() + t[-1], t[0]),
        lambda t: hg.fori_loop(0, 3, lambda i, c: c + WEIGHTS[:, t.shape[0] - 5].sum(), t[0]),
        lambda t: hg.grad(lambda y: hg.fori_loop(0, 3, lambda i, c: hnp.sin(c) * t.shape[0], y))(t[0, 0]),
        lambda t: hg.vmap(lambda y: hg.fori_loop(0, 2, lambda i, c: c + y.sum() / t.shape[0], y[0]), in_axes=1)(t),
    ],
)
def test_control_flow_reads_what_sizes_make(flow: Callable[[Any], Any]) -> None:
    """What bodies make of extents, and of values with symbolic shapes, without their own arguments is computed before them."""
    made = hg.jit(flow, dynamic={0: 0})
    for n in (5, 7, 6):
        x = np.linspace(0, 1, 3 * n, dtype=np.float32).reshape(n, 3)
        for got, want in zip(hg.tree.leaves(made(x)), hg.tree.leaves(hg.jit(flow)(x)), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5)


def test_extents_of_bodies_belong_to_the_trace_around_them() -> None:
    def f(t: Any, u: Any) -> Any:
        kept: list[Any] = []
        total = hg.fori_loop(0, 3, lambda i, c: kept.append(u.shape[0]) or c + u.shape[0], t)
        return total + kept[0]

    assert float(hg.jit(f, dynamic={1: 0})(1.0, X)) == 21.0


@given(st.lists(st.integers(0, len(STEPS) - 1), min_size=1, max_size=4), st.lists(st.integers(2, 40), min_size=3, max_size=6))
def test_random_programs_over_sizes_that_vary(steps: list[int], sizes: list[int]) -> None:
    """NumPy's values for every size, in whatever order the sizes come."""

    def program(x: Any, xp: Any) -> Any:
        for k in steps:
            x = STEPS[k](x, x.shape[0], xp)
        return x

    f = hg.jit(lambda x: program(x, hnp), dynamic=True)
    for n in sizes:
        x = np.arange(n, dtype=np.float64) % 7
        try:
            with np.errstate(all="ignore"):
                want = program(x, np)
        except (IndexError, ZeroDivisionError):  # nothing is left to index or to divide by
            continue
        np.testing.assert_allclose(np.asarray(f(x)), want, rtol=1e-12)


def test_proofs_about_quotients_of_quotients_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each quotient is bounded once in a scope: where quotients stand in quotients the ways to one are many."""
    bounds_of, asked = Ranges.bounds_of, itertools.count(1)

    def counted(self: Ranges, e: Any, sign: int) -> list[Any]:
        assert next(asked) < 2000
        return bounds_of(self, e, sign)

    monkeypatch.setattr(Ranges, "bounds_of", counted)
    f = hg.jit(lambda x: functools.reduce(lambda x, k: STEPS[k](x, x.shape[0], hnp), (0, 7, 2, 0), x), dynamic=True)
    np.testing.assert_array_equal(np.asarray(f(np.arange(7.0))), [3.0])


BOUNDS = st.none() | st.integers(-5, 5)
SLICES = st.builds(slice, BOUNDS, BOUNDS, st.sampled_from([None, 1, 2, 3, -1, -2, -3]))


PUT_BACK: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any], Any], bool]] = {  # the program, what it writes, and whether beside the rest
    "set": (lambda x, at: x.at[at].set(2), lambda x: 0 * x + 2, True),
    "add": (lambda x, at: x.at[at].add(x[at] * 2), lambda x: 3 * x, True),
    "grad": (lambda x, at: hg.grad(lambda x: hnp.sum(x[at] ** 3))(x), lambda x: 3 * x**2, False),
    "grad of grad": (lambda x, at: hg.grad(lambda x: hnp.sum(hg.grad(lambda x: hnp.sum(x[at] ** 3))(x)))(x), lambda x: 6 * x, False),
}


@pytest.mark.costly(2)
@pytest.mark.parametrize("name", PUT_BACK)
@settings(max_examples=settings().max_examples // 5)
@given(SLICES, SLICES)
@example(slice(None, -2, 2), slice(None))
def test_what_is_put_back_where_a_slice_was_read_has_extents_of_every_size(name: str, rows: slice, columns: slice) -> None:
    """The verifier sees each extent on the way, also where nothing is left of a slice."""
    program, values, beside = PUT_BACK[name]
    where = (rows, columns)
    f = hg.jit(lambda x: program(x, where), dynamic=True)
    for m, n in ((9, 8), (2, 2), (3, 2), (2, 3), (6, 7)):
        x = np.arange(1.0, m * n + 1).reshape(m, n)
        want = x.copy() if beside else np.zeros_like(x)
        want[where] = values(x[where])
        np.testing.assert_allclose(np.asarray(f(x)), want, rtol=1e-12)


def test_updates_at_an_index_that_counts_from_the_end() -> None:
    """The verifier takes it that the extent is large enough, as the program does."""
    f = hg.jit(lambda x, rows, values: x.at[rows, -3].set(values), dynamic=True)
    for n, m in ((5, 7), (9, 4), (6, 3), (7, 2)):
        x, rows, values = np.zeros((n, m)), np.arange(n, dtype=np.uint64)[::-1].copy(), np.arange(1.0, n + 1)
        if m < 3:
            with pytest.raises(IndexOutOfRange):
                f(x, rows, values)
            continue
        want = x.copy()
        want[rows, -3] = values
        np.testing.assert_array_equal(f(x, rows, values), want)


def test_constant_indices_along_a_symbolic_axis() -> None:
    f = hg.jit(lambda x: (x[[0, -1, 2]], hnp.take(x, np.array([0, 5, -9]), mode="clip"), x[[-2]]), dynamic=True)
    for n in (5, 9, 3, 12):
        x = np.arange(float(n))
        for got, want in zip(f(x), (x[[0, -1, 2]], np.take(x, [0, 5, -9], mode="clip"), x[[-2]]), strict=True):
            np.testing.assert_array_equal(got, want)
    with pytest.raises(IndexOutOfRange):
        f(np.arange(2.0))
