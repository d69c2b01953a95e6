"""Control flow: values against plain Python, in jit and outside, of every size and nesting; errors; interruption."""

from __future__ import annotations

import functools
import signal
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram import errors
from hologram.graph.pipeline import canonicalise
from hologram.graph.verify_graph import verify_graph
from hologram.ir.interpreter import evaluate
from tests.fuzz.thresholds import overridden

R = np.random.default_rng(5)


@pytest.fixture(params=[1, 2])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    hg.set_num_threads(request.param)
    yield request.param
    hg.set_num_threads(2)


def flat(x: Any) -> list[np.ndarray]:
    return [np.asarray(v) for v in hg.tree.leaves(x)]


def agree(f: Callable[..., Any], *args: Any, wanted: Any = None) -> Any:
    """The result of ``f`` in jit; outside of it, by the interpreter before and after canonical reduction, and ``wanted`` are the same."""
    jitted = flat(hg.jit(f)(*args))
    graph = hg.make_graph(f)(*args)
    canonical = canonicalise(graph, "standard")
    verify_graph(canonical)
    again = canonicalise(canonical, "standard")
    assert again is canonical or str(again) == str(canonical)
    arrays = [np.asarray(x) for x in hg.tree.leaves(args)]
    for other in (flat(f(*args)), evaluate(graph, arrays), evaluate(canonical, arrays), *([] if wanted is None else [flat(wanted)])):
        assert len(other) == len(jitted)
        for a, b in zip(jitted, other, strict=True):
            assert a.dtype == np.asarray(b).dtype or wanted is not None
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    return jitted


# --- scan ------------------------------------------------------------------------------------------------------------


@pytest.mark.crossed
@pytest.mark.parametrize("shape", [(), (4,), (37,), (100,), (3, 5), (40, 50), (0,)])
@pytest.mark.parametrize("reverse", [False, True])
def test_scan_of_any_size(shape: tuple[int, ...], reverse: bool, threads: int) -> None:
    x, xs = R.standard_normal(shape), R.standard_normal((7, *shape))

    def f(x: Any, xs: Any) -> Any:
        def step(c: Any, xi: Any) -> Any:
            new = c * 0.5 + hnp.sin(xi)
            return new, (new, c * xi)

        return hg.scan(step, x, xs, reverse=reverse)

    c, ys, zs = x, np.empty_like(xs), np.empty_like(xs)
    for i in range(7)[::-1] if reverse else range(7):
        new = c * 0.5 + np.sin(xs[i])
        ys[i], zs[i], c = new, c * xs[i], new
    agree(f, x, xs, wanted=(c, (ys, zs)))


@pytest.mark.parametrize("length", [0, 1, 2, 5, 6])
@pytest.mark.parametrize("size", [3, 500])
def test_scan_of_any_length(length: int, size: int) -> None:
    x = R.standard_normal(size).astype(np.float32)

    def f(x: Any) -> Any:
        return hg.scan(lambda c, _: ((c[1], c[0] + 1), c[0][:2]), (x, x * 2), None, length)

    a, b, ys = x, x * 2, []
    for _ in range(length):
        ys.append(a[:2])
        a, b = b, a + 1
    agree(f, x, wanted=((a, b), np.asarray(ys, np.float32).reshape(length, 2)))


def test_carries_that_rotate_stay_or_are_shared() -> None:
    x = R.standard_normal((300,))

    def f(x: Any) -> Any:
        def step(c: Any, i: Any) -> Any:
            a, b, fixed, s = c
            new = a + fixed * i
            return (b, new, fixed, new), (a, new, fixed, i)

        return hg.scan(step, (x, x + 1, x + 2, x + 3), hnp.arange(4, dtype=hnp.float64))

    a, b, s, rows = x, x + 1, x + 3, []
    for i in range(4):
        new = a + (x + 2) * i
        rows.append((a, new, x + 2, np.float64(i)))
        a, b, s = b, new, new
    agree(f, x, wanted=((a, b, x + 2, s), tuple(np.stack(column) for column in zip(*rows, strict=True))))


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "sum", "argmax", "sort"])
def test_long_work_beside_a_loop(name: str) -> None:
    """What preparation makes of long scans and reductions can be made again, as packing before loops does with the graph around them."""

    def f(x: Any, y: Any) -> Any:
        return hg.scan(lambda c, _: (c + hnp.max(y), None), 0.0, None, 5)[0], getattr(hnp, name)(x)

    for n in (3073, 6200, 20_000):
        args = [np.linspace(0.5, 1.5, n, dtype=np.float32), np.ones(84, np.float32)]
        got = hg.jit(f, precision="exact")(*args)
        for g, w in zip(got, evaluate(hg.make_graph(f)(*args), args), strict=True):
            np.testing.assert_array_equal(g, w)


def test_scan_updates_in_place_only_what_nobody_reads_later() -> None:
    x = R.standard_normal((5000,))

    def f(x: Any) -> Any:
        return hg.scan(lambda c, _: ((c[0] * 0.5 + 1, c[0][::-1] + c[1].sum()), None), (x, x), None, 3)[0]

    a = b = x
    for _ in range(3):
        a, b = a * 0.5 + 1, a[::-1] + b.sum()
    agree(f, x, wanted=(a, b))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float16", "float32", "float64"])
def test_carries_of_any_type(dtype: str) -> None:
    x = np.asarray([1, 0, 3]).astype(dtype)

    def f(x: Any) -> Any:
        return hg.scan(lambda c, xi: (~c if dtype == "bool" else c + xi, xi), x, hnp.stack([x, x, x]))

    agree(f, x)


def test_products_in_a_loop(threads: int) -> None:
    w, x = R.standard_normal((200, 200)), R.standard_normal((200, 200))

    def f(w: Any, x: Any) -> Any:
        return hg.scan(lambda c, _: (hnp.tanh(c @ w), c.sum()), x, None, 4)

    c, sums = x, []
    for _ in range(4):
        sums.append(c.sum())
        c = np.tanh(c @ w)
    agree(f, w, x, wanted=(c, np.asarray(sums)))


def test_reductions_and_reads_at_computed_places_in_a_loop() -> None:
    table, start = R.standard_normal(64), np.asarray(3)

    def f(table: Any, start: Any) -> Any:
        table = hnp.asarray(table)

        def step(c: Any, _: Any) -> Any:
            i, total = c
            row = table[(i * 7 + 1) % 64]
            return ((i * 7 + 1) % 64, total + row * table.max()), row

        return hg.scan(step, (start, hnp.zeros((), dtype=hnp.float64)), None, 50)

    i, total, rows = 3, 0.0, []
    for _ in range(50):
        i = (i * 7 + 1) % 64
        rows.append(table[i])
        total += table[i] * table.max()
    agree(f, table, start, wanted=((i, total), np.asarray(rows)))


class Pair(NamedTuple):
    a: Any
    b: Any


def test_pytrees_go_in_and_out() -> None:
    def f(x: Any) -> Any:
        def step(c: Any, xi: Any) -> Any:
            return Pair(c.a + xi["u"], {"n": c.b["n"] + 1, "none": None}), [xi["u"], (c.b["n"],)]

        return hg.scan(step, Pair(x[0], {"n": 0, "none": None}), {"u": x})

    x = R.standard_normal((3, 2))
    carry, ys = f(x)
    assert type(carry) is Pair and carry.b["none"] is None and type(ys) is list and type(ys[1]) is tuple
    agree(f, x, wanted=(Pair(x[0] + x.sum(0), {"n": 3, "none": None}), [x, (np.arange(3),)]))


def test_python_numbers_take_the_type_that_comes_back() -> None:
    c, _ = hg.scan(lambda c, x: (c + x, None), 0.0, np.ones(3, np.float32))
    assert c.dtype == np.float32
    c, _ = hg.scan(lambda c, x: (c + x, None), 0, np.ones(3))
    assert c.dtype == np.float64 and float(c) == 3
    c, _ = hg.scan(lambda c, x: (c * 2, None), np.float32(1), np.ones(3))
    assert c.dtype == np.float32 and float(c) == 8
    assert hg.fori_loop(0, 3, lambda i, v: v + i, 1).dtype == np.int64


def test_closures_over_traced_pending_and_realised_values() -> None:
    realised, pending, array = hnp.arange(3), hnp.arange(3) + 1, np.arange(3) * 2

    def f(x: Any) -> Any:
        y = x + 1
        return hg.scan(lambda c, _: (c + y * realised + pending + array, None), x, None, 2)[0]

    x = np.arange(3)
    agree(f, x, wanted=x + 2 * ((x + 1) * np.arange(3) + np.arange(3) + 1 + array))


def test_results_of_one_loop_are_computed_together() -> None:
    calls = hg.scan(lambda c, x: (c + x, c), 0.0, np.ones(4))
    assert float(calls[0]) == 4
    assert calls[1]._storage is not None or calls[1]._node.op.name == "leaf"


# --- while and for ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 4, 3000])
def test_while_loop(size: int, threads: int) -> None:
    x = np.abs(R.standard_normal(size)) + 0.5

    def f(x: Any) -> Any:
        return hg.while_loop(lambda c: (c[0].sum() < 1e6) & (c[1] < 50), lambda c: (c[0] * 1.5, c[1] + 1), (x, 0))

    n, v = 0, x
    while v.sum() < 1e6 and n < 50:
        v, n = v * 1.5, n + 1
    agree(f, x, wanted=(v, n))


def test_while_loop_that_never_runs_and_one_with_fixed_carries() -> None:
    agree(lambda x: hg.while_loop(lambda c: c[0] < 0, lambda c: (c[0] + 1, c[1]), (x, x * 2)), 3.0, wanted=(3.0, 6.0))
    agree(lambda x: hg.while_loop(lambda c: c[0] < c[1], lambda c: (c[0] + 1, c[1]), (x, x * 2)), 3.0, wanted=(6.0, 6.0))


def test_loops_over_no_elements() -> None:
    f = hg.jit(lambda x: hg.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1] * 2), (0, x[:0])))
    n, x = f(np.ones(3, np.float32))
    assert int(n) == 5 and x.shape == (0,)


@pytest.mark.parametrize(("low", "high"), [(0, 5), (-3, 2), (4, 4), (5, 1)])
def test_fori_loop_with_known_and_unknown_bounds(low: int, high: int) -> None:
    wanted = sum(range(low, high))
    agree(lambda x: hg.fori_loop(low, high, lambda i, v: v + i, x), 0, wanted=wanted)
    agree(lambda a, b: hg.fori_loop(a, b, lambda i, v: v + i, 0), low, high, wanted=wanted)


# --- branches --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pred", [True, False, 2.0, 0])
def test_cond(pred: Any) -> None:
    x = R.standard_normal(20)
    f = lambda p, x: hg.cond(p, lambda v, w: (v * 2, w), lambda v, w: (w, v - 1), x, x + 1)  # noqa: E731
    agree(f, pred, x, wanted=(x * 2, x + 1) if pred else (x + 1, x - 1))
    agree(lambda x: f(pred, x), x, wanted=(x * 2, x + 1) if pred else (x + 1, x - 1))


@pytest.mark.parametrize("index", [-5, 0, 1, 2, 9])
@pytest.mark.parametrize("dtype", ["int8", "uint64", "int64"])
def test_switch_clamps(index: int, dtype: str) -> None:
    if dtype == "uint64" and index < 0:
        index = 2**64 - 5
    i = np.asarray(index).astype(dtype)
    agree(lambda i, x: hg.switch(i, [lambda v: v, lambda v: v * 10, lambda v: -v], x), i, 3.0, wanted=[3.0, 30.0, -3.0][min(max(index, 0), 2)])


def test_branches_of_weak_and_strong_results() -> None:
    assert hg.cond(True, lambda: 1, lambda: hnp.asarray(2.0)).dtype == np.float32
    assert hg.cond(False, lambda x: x, lambda x: 0, np.float64(2)).dtype == np.float64


def test_only_one_branch_runs() -> None:
    def f(x: Any) -> Any:
        return hg.cond(x > 0, lambda v: v, lambda v: hg.while_loop(lambda c: c < 0, lambda c: c * 1.0, v), x)

    assert float(hg.jit(f)(2.0)) == 2.0  # the other one would never end


# --- nested, graph, seeing inside ------------------------------------------------------------------------------------


def nested(x: Any) -> Any:
    def outer(c: Any, i: Any) -> Any:
        inner = hg.fori_loop(0, i, lambda j, v: v + j * x[0], c)
        inner = hg.cond(inner.sum() > 10, lambda v: v - 1, lambda v: v * 2, inner)
        return hg.while_loop(lambda v: v.sum() > 100, lambda v: v * 0.5, inner), inner

    return hg.scan(outer, x, hnp.arange(6))


@pytest.mark.parametrize("size", [3, 400])
def test_nested(size: int, threads: int) -> None:
    x = R.standard_normal(size)
    c, ys = x, []
    for i in range(6):
        for j in range(i):
            c = c + j * x[0]
        c = c - 1 if c.sum() > 10 else c * 2
        ys.append(c)
        while c.sum() > 100:
            c = c * 0.5
    agree(nested, x, wanted=(c, np.stack(ys)))


def test_nothing_is_unrolled() -> None:
    lowered = hg.jit(lambda x: hg.fori_loop(0, 10**6, lambda i, v: v * 0.5 + 1, x)).lower(1.0)
    assert len(lowered.graph.nodes()) < 10
    text = lowered.as_text()
    assert "scan" in text and "mul" in text and "test_control.py" in text
    assert float(lowered.compile()(1.0)) == 2.0


def test_dead_results_are_not_computed() -> None:
    def f(x: Any) -> Any:
        return hg.scan(lambda c, _: ((c[0] + 1, hnp.sin(c[1])), hnp.exp(c[1])), (x, x), None, 5)[0][0]

    text = hg.jit(f).lower(np.ones(3)).compile().as_text("canonical")
    assert "sin" not in text and "exp" not in text
    agree(f, np.ones(3), wanted=np.full(3, 6.0))


def test_known_branches_and_empty_loops_vanish() -> None:
    f = lambda x: hg.fori_loop(2, 2, lambda i, v: v * 2, hg.switch(1, [lambda v: v, lambda v: v + 1], x))  # noqa: E731
    assert "switch" not in hg.jit(f).lower(1.0).compile().as_text("canonical")
    agree(f, 1.0, wanted=2.0)


def test_without_jit_bodies_run_as_python() -> None:
    seen: list[float] = []

    def step(c: Any, x: Any) -> Any:
        seen.append(float(x))
        return c + x, c

    with hg.disable_jit():
        c, ys = hg.scan(step, 0.0, np.arange(3.0))
        assert seen == [0.0, 1.0, 2.0] and float(c) == 3 and np.asarray(ys).tolist() == [0, 0, 1]
        assert int(hg.while_loop(lambda v: v < 5, lambda v: v + 2, 0)) == 6
        assert int(hg.cond(False, lambda v: v, lambda v: v + 1, 1)) == 2
        assert int(hg.switch(7, [lambda v: v, lambda v: v + 1], 1)) == 2


# --- associative_scan ------------------------------------------------------------------------------------------------


@pytest.mark.crossed
@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 7, 8, 33])
@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan(n: int, reverse: bool) -> None:
    x = R.integers(1, 5, (2, n))

    def f(x: Any) -> Any:
        return hg.associative_scan(lambda a, b: (a[0] + b[0], hnp.maximum(a[1], b[1])), (x, x), reverse=reverse, axis=1)

    turned = x[:, ::-1] if reverse else x
    sums, tops = np.cumsum(turned, 1), np.maximum.accumulate(turned, 1)
    agree(f, x, wanted=(sums[:, ::-1], tops[:, ::-1]) if reverse else (sums, tops))


# --- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: hg.scan(lambda c, x: (c[:1], None), np.ones(2), None, 3), errors.ShapeError, "init enters the body as float64[2] and leaves it as"),
        (lambda: hg.scan(lambda c, x: ({"a": c["a"] + 1.5}, None), {"a": np.ones(2, int)}, None, 3), errors.DTypeError, "init['a'] enters"),
        (lambda: hg.scan(lambda c, x: ((c, c), None), 1.0, None, 3), errors.TreeError, "structure"),
        (lambda: hg.scan(lambda c, x: c, 1.0, None, 3), errors.ArgumentError, "a tuple of two"),
        (lambda: hg.scan(lambda c, x: (c, None), 1.0), errors.ArgumentError, "length"),
        (lambda: hg.scan(lambda c, x: (c, None), 1.0, (np.ones(3), np.ones(4))), errors.ArgumentError, "xs[0] has 3 steps and xs[1] has 4"),
        (lambda: hg.scan(lambda c, x: (c, None), 1.0, np.ones(3), 4), errors.ArgumentError, "3 steps"),
        (lambda: hg.scan(lambda c, x: (c, None), 1.0, 2.0), errors.ShapeError, "scalar"),
        (lambda: hg.scan(lambda c, x: (c, "text"), 1.0, None, 2), errors.ArgumentError, "returned a str"),
        (lambda: hg.while_loop(lambda c: c, lambda c: c, np.ones(2)), errors.ShapeError, "condition is a scalar bool"),
        (lambda: hg.while_loop(lambda c: c, lambda c: c, 1.0), errors.DTypeError, "condition is a scalar bool"),
        (lambda: hg.while_loop(lambda c: c < 1, lambda c: c + 0.5, np.int64(0)), errors.DTypeError, "init_val enters"),
        (lambda: hg.while_loop(lambda: True, lambda: None, ()), errors.ArgumentError, "no value"),
        (lambda: hg.fori_loop(0, hnp.asarray(2.0), lambda i, v: v, 0), errors.DTypeError, "upper is a scalar integer"),
        (lambda: hg.cond(np.ones(2), lambda: 1, lambda: 2), errors.ShapeError, "predicate is a scalar"),
        (lambda: hg.cond(True, lambda x: x, lambda x: x[:1], np.ones(2)), errors.ShapeError, "result is float64[1] in false_fun"),
        (lambda: hg.cond(True, lambda x: x, lambda x: x > 0, np.ones(2)), errors.DTypeError, "element types must agree"),
        (lambda: hg.cond(True, lambda x: (x, x), lambda x: x, 1), errors.TreeError, "structure"),
        (lambda: hg.switch(0, []), errors.ArgumentError, "at least one branch"),
        (lambda: hg.switch(0.5, [lambda: 1, lambda: 2]), errors.DTypeError, "scalar integer"),
        (lambda: hg.cond(True, 3, lambda: 2), errors.ArgumentError, "takes a function"),
        (lambda: hg.associative_scan(lambda a, b: a, np.ones(3), axis=1), errors.IndexOutOfRange, "axis 1"),
    ],
)
def test_errors_name_the_leaf_and_the_line(call: Callable[[], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert words in str(caught.value) and "test_control.py" in str(caught.value)


def test_values_cannot_be_read_in_a_body() -> None:
    with pytest.raises(errors.TracedValueError):
        hg.scan(lambda c, x: (c if c > 0 else -c, None), 1.0, None, 3)


def test_a_value_of_a_body_cannot_leave_it() -> None:
    kept: list[Any] = []
    hg.scan(lambda c, x: (kept.append(c) or c + 1, None), 1.0, None, 3)
    with pytest.raises(errors.LeakedTracerError):
        hnp.sin(kept[0]).numpy()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs a timer that signals")
@pytest.mark.parametrize("size", [1, 4, 100_000])
def test_an_endless_loop_can_be_interrupted(size: int) -> None:
    f = hg.jit(lambda x: hg.while_loop(lambda c: c.sum() > -1, lambda c: c * 0.5 + 1, x))
    f.lower(np.ones(size)).compile()

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(KeyboardInterrupt):
            f(np.ones(size))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


# --- random programs -------------------------------------------------------------------------------------------------


def random_body(np_: Any, seed: int, carries: int, c: Any, xs: Any) -> Any:
    """A body of a few random operations on carries and elements: results that repeat, rotate or pass through are common."""
    r = np.random.default_rng(seed)
    values = [*c, *xs]
    for _ in range(r.integers(1, 7)):
        k, a, b = r.integers(6), values[r.integers(len(values))], values[r.integers(len(values))]
        values.append([a + b, a * b * 0.3, np_.sin(a), a - 0.5, a[::-1], a * 0 + b.sum() * 0.01][k])
    outs = tuple(values[r.integers(len(values))] for _ in range(carries))
    return outs, tuple(values[r.integers(len(values))] for _ in range(r.integers(0, 4)))


@pytest.mark.parametrize("seed", range(14))
def test_random_scans_alone_and_side_by_side(seed: int) -> None:
    r = np.random.default_rng(seed)
    carries, sequences, length, size = (int(r.integers(1, 5)), int(r.integers(0, 3)), int(r.integers(0, 5)), int(r.choice([1, 3, 40, 100, 2000])))
    reverse, x = bool(r.integers(2)), r.standard_normal((2, size))
    xs = tuple(r.standard_normal((length, size)) for _ in range(sequences))
    init = tuple(x[r.integers(2)] for _ in range(carries))
    seeds = (seed, seed + int(r.integers(2)))

    def both(init: Any, xs: Any) -> Any:
        return [hg.scan(lambda c, v, s=s: random_body(hnp, s, carries, c, v), init, xs, length, reverse=reverse) for s in seeds]

    for (carry, ys), s in zip(hg.jit(both)(init, xs), seeds, strict=True):
        state, rows = init, [()] * length
        for i in range(length)[::-1] if reverse else range(length):
            state, rows[i] = random_body(np, s, carries, state, tuple(v[i] for v in xs))
        for a, b in zip(carry, state, strict=True):
            np.testing.assert_allclose(np.asarray(a), b, atol=1e-9)
        for k, y in enumerate(ys):
            if length:
                np.testing.assert_allclose(np.asarray(y), np.stack([row[k] for row in rows]), atol=1e-9)


# --- results written past the caches ---------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [63, 64, 130])
def test_rows_written_past_the_caches(size: int) -> None:
    """Rows of stacked results, and carries that live there, start anywhere; those stores that pass by the caches need aligned addresses."""
    x = np.arange(5 * size, dtype=np.float32).reshape(5, size)

    def both(c: Any, row: Any) -> Any:
        c = hnp.where(row < 3, c, c * 0.5 + row)
        return c, (c, hnp.sin(c), row)

    def nested(c: Any, row: Any) -> Any:
        inner, rows = hg.scan(both, c, hnp.stack([row, row + 1]))
        return hg.cond(row[0] > size, lambda c: c + 1, lambda c: c * 2, inner), rows[0]

    for f in (both, nested):
        for reverse in (False, True):
            run = functools.partial(hg.scan, f, reverse=reverse)
            want = [np.asarray(a) for a in hg.tree.leaves(hg.jit(run, precision="exact")(x[0], x))]
            with overridden({"hologram.backends.llvm.memory.NONTEMPORAL_BYTES": 1}):
                got = [np.asarray(a) for a in hg.tree.leaves(hg.jit(run, precision="exact")(x[0], x))]
            for a, b in zip(got, want, strict=True):
                np.testing.assert_array_equal(a, b)
