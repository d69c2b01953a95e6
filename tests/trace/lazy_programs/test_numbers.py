"""Numbers of lazily recorded programs: new ones find the compiled program, and give the bits that a program of their own gives."""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import CompileError, UnsupportedError
from hologram.settings import override
from hologram.support import debug
from hologram.trace import compiling, lazy
from hologram.trace.lazy_programs import cache, numbers
from hologram.trace.lazy_programs.structure import MAX_DEVICE_SCALARS
from tests.support.needs import needs_opencl

X = np.linspace(0.5, 1.5, 300, dtype=np.float32)
INTEGERS = np.arange(-40, 60)


pytestmark = pytest.mark.usefixtures("compiled_at_once", "handed_over_at_once")


def outer(xp: Any, x: Any, k: int) -> Any:
    return (xp.arange(k)[:, None] * xp.arange(k + 3)[None, :]).reshape(-1).sum()


# Steps with a number, for Hologram and NumPy alike.
STEPS: dict[str, Callable[[Any, Any, int], Any]] = {
    "an integer factor": lambda xp, x, k: x * k,
    "a float factor": lambda xp, x, k: x * (k + 0.75),
    "an integer of an integer array": lambda xp, x, k: xp.asarray(INTEGERS) * k + k,
    "a shift of bits": lambda xp, x, k: xp.asarray(INTEGERS) << (k % 9),
    "a large exponent": lambda xp, x, k: xp.asarray(INTEGERS) ** (k + 20),
    "roll": lambda xp, x, k: xp.roll(x, k),
    "zeros": lambda xp, x, k: xp.zeros(k) + 1,
    "a part": lambda xp, x, k: x[:k] * 3,
    "the rest": lambda xp, x, k: x[k:] - 1.5,
    "a maximum of a part": lambda xp, x, k: x[:k].max(),
    "a part of a reversed range": lambda xp, x, k: xp.arange(3 * k + 4)[::-1][:k] * x[:k],
    "a reversed part": lambda xp, x, k: x[::-1][:k],
    "every second element of a part": lambda xp, x, k: xp.abs(x[k : 2 * k : 2]),
    "a window": lambda xp, x, k: x[k : k + 9] * 2,
    "two parts joined": lambda xp, x, k: xp.concatenate([x[:k], x[k:]]) * 2,
    "padded": lambda xp, x, k: xp.pad(x, (k, k + 2)),
    "counted": lambda xp, x, k: xp.arange(k) * 2,
    "an outer product": outer,
    "a square": lambda xp, x, k: xp.zeros((k, k), xp.float32) + x[:k],
    "rows of an argument": lambda xp, x, k: xp.asarray(X[: 4 * k].reshape(k, 4)).max(1),
    "columns of an argument": lambda xp, x, k: xp.abs(xp.asarray(X[: 4 * k].reshape(4, k)).T),
    "a running maximum": lambda xp, x, k: xp.maximum(x[:k], x[k : 2 * k]),
    "a triangle": lambda xp, x, k: xp.tril(xp.ones((k, k))),
    "sorted": lambda xp, x, k: xp.sort(xp.sin(x[:k] * 50)) + 1,
    "the order": lambda xp, x, k: xp.argsort(xp.sin(x[: 4 * k].reshape(k, 4) * 50), axis=0),
    "a transform": lambda xp, x, k: abs(xp.fft.fft(xp.asarray(X[:k]))),
    "a real transform": lambda xp, x, k: xp.fft.rfft(xp.asarray(X[: k + 1])).real,
    "solved": lambda xp, x, k: xp.linalg.solve(xp.asarray(X[: k * k].reshape(k, k)[::-1] + 9 * np.eye(k, dtype=np.float32)), x[:k]),
}
# What NumPy has no function for, or in other bits.
SIZED: dict[str, Callable[[Any, int], Any]] = {
    "added at indices": lambda x, k: hnp.zeros(k).at[hnp.arange(2 * k) // 3].add(x[: 2 * k]),
    "multiplied at indices": lambda x, k: hnp.ones(k // 2 + 1).at[hnp.asarray(INTEGERS[:k]) % 3].multiply(x[:k]),
    "set at indices": lambda x, k: hnp.zeros((k, 3)).at[hnp.arange(k)[::-1], 1].set(x[:k]),
    "factors": lambda x, k: hg.linalg.qr(hnp.asarray(X[: k * k].reshape(k, k))),
    "eigenvalues": lambda x, k: hg.linalg.eigh(hnp.outer(x[:k], x[:k]) + hnp.eye(k)),
    "transformed and sorted": lambda x, k: hnp.sort(hnp.real(hg.fft.fft(hnp.asarray(X[:k]))) * 2),
    "singular values of tall matrices": lambda x, k: hg.linalg.svd(hnp.asarray(X[: 4 * k].reshape(k, 4))),
    "singular values of wide matrices": lambda x, k: hg.linalg.svd(hnp.asarray(X[: 17 * k].reshape(k, 17)), full_matrices=False),
    "least squares": lambda x, k: hnp.linalg.lstsq(hnp.asarray(X[: 4 * k].reshape(k, 4)) + hnp.eye(k, 4), x[:k])[0],
    "a determinant": lambda x, k: hnp.linalg.slogdet(hnp.asarray(X[: k * k].reshape(k, k)) + hnp.eye(k) * 9),
    "a real inverse transform": lambda x, k: hnp.fft.irfft(hnp.asarray(X[: k // 2 + 1]) * 1j, k),
    "the last of sums": lambda x, k: hnp.cumsum(x[:k])[-1],
    "a deviation": lambda x, k: hnp.std(x[:k], where=x[:k] > 0.6),
    "stacked factors": lambda x, k: hg.linalg.cholesky(hnp.broadcast_to(hnp.eye(4) * 3, (k, 4, 4)) + 0.5),
}


@pytest.mark.parametrize("name", SIZED)
def test_sizes_of_sorts_scatters_and_routines_are_operands(name: str, compilations: list[Any]) -> None:
    """With the bits of programs by value."""
    sizes = (7, 12, 5, 11, 16, 8)
    run = lambda k: [np.asarray(y) for y in hg.tree.leaves(SIZED[name](hg.tensor(X), k))]  # noqa: E731
    found = [run(k) for k in sizes]
    assert len(compilations) <= 4
    for k, got in zip(sizes, found, strict=True):
        lazy.clear()
        for g, w in zip(got, run(k), strict=True):
            assert g.dtype == w.dtype and g.shape == w.shape and g.tobytes() == w.tobytes(), k


@pytest.mark.parametrize("name", STEPS)
def test_nothing_is_compiled_after_the_second_number(name: str, compilations: list[Any]) -> None:
    step, x = STEPS[name], hg.tensor(X)
    tolerance = {"rtol": 1e-4, "atol": 1e-5} if name in ("a transform", "a real transform", "solved") else {"rtol": 1e-6}
    for k in (7, 12, 5, 8, *((31, 64) if name != "solved" else ())):
        np.testing.assert_allclose(np.asarray(step(hnp, x, k)), step(np, X, k), **tolerance)
    assert len(compilations) <= 2


def test_a_loop_over_a_counter_compiles_once_for_numbers_that_rules_do_not_know(compilations: list[Any]) -> None:
    x, expected = hg.tensor(INTEGERS), INTEGERS
    for i in range(40):
        x, expected = x * i + i, expected * i + i
        hg.eval(x)
        np.testing.assert_array_equal(np.asarray(x), expected)
    assert len(compilations) <= 2
    y = hg.tensor(X)
    hg.eval(*[y * float(i) for i in (0, 1, 2, -1)])
    compilations.clear()
    for i in range(3, 40):
        hg.eval(y * float(i))
    assert len(compilations) == 1


@pytest.mark.parametrize("n", [1, 20, 40, 100, 600])
def test_new_floats_compile_nothing_however_many(n: int, compilations: list[Any]) -> None:
    def polynomial(x: Any, first: float) -> Any:
        for i in range(n):
            x = x * 0.5 + (first + i)
        return x

    for k in range(40):  # so many numbers that constants are forgotten meanwhile
        if k == 4:
            compilations.clear()
        first = 0.1 + k / 64
        np.testing.assert_allclose(np.asarray(polynomial(hg.tensor(X), first)), polynomial(X, first), rtol=1e-5)
    assert not compilations


@needs_opencl
def test_a_device_has_more_floats_than_its_kernels_take_arguments_by_value() -> None:
    x, expected = hg.device_put(hg.tensor(X), "opencl"), X
    scalars = np.linspace(0.9, 1.1, 200).tolist()
    for s in scalars:
        x, expected = x * s, expected * np.float32(s)
    walk = lazy._walk([x._node])
    assert (len(walk.scalars), len(walk.storages)) == (MAX_DEVICE_SCALARS, 1)
    np.testing.assert_array_equal(np.asarray(x), expected)


def test_new_keys_and_sizes_of_random_numbers_compile_nothing(compilations: list[Any]) -> None:
    for i in range(6):
        hg.eval(hg.random.normal(hg.random.key(i), (5,)))
    assert len(compilations) <= 2
    got = [np.asarray(hg.random.uniform(hg.random.key(1), (n,))) for n in (6, 9, 14, 20)]
    assert len(compilations) <= 4
    lazy.clear()
    for g in got:
        np.testing.assert_array_equal(np.asarray(hg.random.uniform(hg.random.key(1), (len(g),))), g)


def test_sizes_zero_and_one_and_sizes_that_become_equal() -> None:
    lazy.clear()
    x = hg.tensor(X)
    for n, k in [(9, 4), (12, 7), (12, 12), (8, 0), (8, 1), (1, 1), (0, 0), (2, 2), (30, 2), (300, 299)]:
        y = hg.tensor(X[:n])
        np.testing.assert_array_equal(np.asarray(hnp.concatenate([y[:k], x[:k], y[k:]])), np.concatenate([X[:n][:k], X[:k], X[:n][k:]]))


def test_sizes_that_define_one_another_are_checked(compilations: list[Any]) -> None:
    """A reshape of n * m elements: another program where m is not what it was for n."""
    x = hg.tensor(X)
    for n, m in [(3, 4), (5, 7), (6, 2), (11, 9), (4, 4), (9, 3)]:
        got = np.asarray(hnp.abs(x[: n * m].reshape(n, m).T.reshape(-1)))
        np.testing.assert_array_equal(got, X[: n * m].reshape(n, m).T.reshape(-1))
    assert len(compilations) <= 3


# --- bits ------------------------------------------------------------------------------------------------------------

Pair = tuple[Any, Any]


def _fit(a: Any, b: Any) -> Any:
    """``b``, or something of the shape of ``a``."""
    return b if a.shape == b.shape else a - 0.75


OPS: list[Callable[[Any, Any, int], Pair]] = [
    lambda a, b, k: (a + _fit(a, b), b),
    lambda a, b, k: (a * _fit(a, b), b),
    lambda a, b, k: (a * 1.37, b),
    lambda a, b, k: (a * k - 0.3, b),
    lambda a, b, k: (hnp.exp(-abs(a)), b),
    lambda a, b, k: (hnp.sqrt(abs(a)), a),
    lambda a, b, k: (hnp.roll(a, k), b),
    lambda a, b, k: (a[: k + 9], b[: k + 9]),
    lambda a, b, k: (a[k:], b),
    lambda a, b, k: (a - a.mean(), b),
    lambda a, b, k: (a / a.sum(), b),
    lambda a, b, k: (hnp.cumsum(a), b),
    lambda a, b, k: (a * hnp.arange(a.shape[0]), b),
    lambda a, b, k: (a[::-1], b),
    lambda a, b, k: (hnp.pad(a, (k, 3)), b),
    lambda a, b, k: (hnp.maximum(a, a.max() * 0.5), b),
    lambda a, b, k: (hnp.where(_fit(a, b) > 0, a, k), b),
    lambda a, b, k: ((a[:, None] * a[None, :]).sum(1), b),
]


def _run(steps: list[tuple[int, int]], n: int) -> list[bytes]:
    rng = np.random.default_rng(n)
    a, b = (hg.tensor(rng.standard_normal(n).astype(np.float32)) for _ in range(2))
    for op, k in steps:
        a, b = OPS[op](a, b, k)
    results = a, a.max(), (a + _fit(a, b)).sum()
    hg.eval(*results)
    return [np.asarray(r).tobytes() for r in results]


@given(
    st.lists(st.integers(0, len(OPS) - 1), min_size=1, max_size=4),
    st.lists(st.tuples(st.sampled_from([20, 33, 57, 100, 129, 400, 3100]), st.integers(2, 9), st.integers(2, 9)), min_size=3, max_size=6),
)
def test_random_programs_have_the_bits_of_programs_by_value(ops: list[int], sets: list[tuple[int, int, int]]) -> None:
    def steps(k: int, m: int) -> list[tuple[int, int]]:
        return [(op, m if i % 2 else k) for i, op in enumerate(ops)]

    lazy.clear()
    found = [_run(steps(k, m), n) for n, k, m in sets]
    for (n, k, m), bits in zip(sets, found, strict=True):
        lazy.clear()
        assert _run(steps(k, m), n) == bits


# --- bounds, and what is told ----------------------------------------------------------------------------------------


def test_programs_are_kept_within_a_limit(compilations: list[Any]) -> None:
    x = hg.tensor(X)
    with override(program_limit=200_000):
        for i in range(12):
            y = x
            for _ in range(i + 2):
                y = hnp.sin(y)
            hg.eval(y)
            assert cache.programs.nbytes <= 200_000
        assert 1 <= len(cache.programs) < 12
        compiled = len(compilations)
        hg.eval(hnp.sin(hnp.sin(x)))
        assert len(compilations) == compiled + 1


def test_many_numbers_leave_nothing_behind(compilations: list[Any]) -> None:
    x = hg.tensor(X)
    for k in range(2, 290):
        hg.eval(x[:k].sum(), x * (k + 0.5), hnp.zeros(k) + 1)
    assert len(compilations) <= 4 and len(cache.programs) <= 4 and len(numbers.structures) <= 2


def test_evicted_programs_are_compiled_again(compilations: list[Any]) -> None:
    x = hg.tensor(X)
    for k in (5, 6, 7):
        hg.eval(x[:k].max())
    cache.programs.clear()
    for k in (8, 9, 10):
        assert float(x[:k].max()) == X[:k].max()
    assert len(compilations) <= 4


def test_misses_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    lazy.clear()
    x = hg.tensor(X)
    with override(explain_misses=True):
        for k in (5, 8, 11):
            hg.eval(hnp.zeros(k) + hg.tensor(INTEGERS)[:1] * k)
    text = capsys.readouterr().err
    assert text.count("lazy expression") == 2
    assert "its structure is new" in text and "broadcast's shape changed: 5 -> 8" in text and "a constant changed: 5 -> 8" in text
    assert "from now on these are operands" in text
    with override(explain_misses=True):
        hg.eval(x * 2)
        hg.eval(x * 2)
    assert capsys.readouterr().err.count("compiled") == 1


def _refuse_symbols(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on the compiler takes no symbols."""
    compile_graph = compiling.compile_graph

    def refuses(graph: Any, *args: Any, **options: Any) -> Any:
        if graph.symbols():
            raise UnsupportedError("no symbols")
        return compile_graph(graph, *args, **options)

    monkeypatch.setattr(compiling, "compile_graph", refuses)


def _explained(capsys: pytest.CaptureFixture[str], expressions: list[Any]) -> list[str]:
    """What is said of the compilations of expressions, which are recorded by functions."""
    lazy.clear()
    found = []
    with override(explain_misses=True):
        for f in expressions:
            hg.eval(f())
            found.append(capsys.readouterr().err)
    return found


def test_misses_tell_why_numbers_are_no_operands(capsys: pytest.CaptureFixture[str]) -> None:
    x = hg.tensor(X)
    told = _explained(capsys, [lambda k=k: hnp.zeros(k) + 1 for k in (5, 1, 9, 0)])
    assert "broadcast's shape changed: 5 -> 1\n  it is compiled by value: a size is below 2" in told[1]
    assert "from now on these are operands" in told[2] and "-> 9" in told[2]
    told = _explained(capsys, [lambda k=k: (x * 0.3) ** k for k in (3, 4)])
    assert "integer_pow's n changed: 3 -> 4\n  it is compiled by value: these are part of its structure" in told[1]
    told = _explained(capsys, [lambda k=k: x * 0.3 + k for k in (1.0, 2.0, 3.5, 4.5)])
    assert "a constant changed: 1.0 -> 2.0" in told[1] and "a constant changed: 2.0 -> an operand" in told[2] and not told[3]


def test_misses_tell_of_refusals_and_of_numbers_that_keep_coming(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    x = hg.tensor(np.arange(20_000, dtype=np.float32))
    told = _explained(capsys, [lambda k=k: x[:k].max() + 1 for k in (15_000, *[18_000] * 8)])
    assert "are operands" in told[1] and sum("compiled by value, because these numbers come often" in text for text in told) == 1
    _refuse_symbols(monkeypatch)
    told = _explained(capsys, [lambda k=k: x[:k].min() + 1 for k in (5, 8, 9)])
    assert "compiled by value after all\n  UnsupportedError: no symbols" in told[1]
    assert "it is compiled by value: numbers of this structure stay values" in told[2]


def test_what_the_compiler_refuses_keeps_programs_by_value(monkeypatch: pytest.MonkeyPatch, compilations: list[Any]) -> None:
    _refuse_symbols(monkeypatch)
    x = hg.tensor(X)
    for k in (5, 8, 11):
        assert float(x[:k].max()) == X[:k].max()
    assert len(compilations) == 3


def test_numbers_that_keep_coming_get_programs_by_value(compilations: list[Any]) -> None:
    """Those of large arrays at once; those of small ones where native code does not run them for all numbers."""
    x, large = hg.tensor(X), hg.tensor(np.arange(20_000, dtype=np.float32))
    for y, uses, change in ((x, 60, operator.add), (large, 2, operator.sub)):  # of two structures: the parts are of pending values, so not read
        compilations.clear()
        with override(debug=debug.TIMINGS if y is x else 0):
            for k in (5, 8, *[11] * uses):
                hg.eval(change(y, 0.25)[:k] * 0.75)
            assert len(compilations) == 2
            for _ in range(6):
                hg.eval(change(y, 0.25)[:11] * 0.75)
        assert len(compilations) == 3 and not compilations[-1].symbols()
    compilations.clear()
    for _ in range(70):
        for k in range(5, 80):
            hg.eval((x + 0.25)[:k] * 0.75)
    assert len(compilations) <= 9


def test_threads_share_programs(compilations: list[Any]) -> None:
    x = hg.tensor(X)
    wrong: list[Any] = []

    def work(first: int) -> None:
        for k in range(first, 250, 7):
            if float(x[::-1][:k].max()) != X[::-1][:k].max() or not np.array_equal(np.asarray(hnp.zeros(k) + 1), np.ones(k)):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(2 + i,)) for i in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong and len(compilations) <= 24


LONG = np.random.default_rng(0).standard_normal((4, 9001)).astype(np.float32)
SUMS: dict[str, Callable[[Any], Any]] = {
    "dot": lambda x: (x[0] * x[1]).sum(),
    "matrix product": lambda x: x @ x.T,
    "norm": lambda x: hnp.linalg.norm(x, axis=1),
    "softmax": lambda x: hg.nn.softmax(x, axis=1),
    "layer norm": lambda x: (x - x.mean(1, keepdims=True)) / hnp.sqrt(x.var(1, keepdims=True) + 1e-5) * 1.1 + 0.2,
    "neighbours": lambda x: x[:, 1:] * x[:, :-1] + x[:, 1:],
}


@pytest.mark.parametrize("name", SUMS)
def test_sums_of_products_have_the_bits_of_programs_by_value(name: str) -> None:
    """At sizes around a page, from which orders differ, and where an extent comes to 1."""
    lengths = (5, 17, 2, 700, 3071, 3072, 3073, 6145, 9001)
    lazy.clear()
    found = [np.asarray(SUMS[name](hg.tensor(LONG[:, :n]))) for n in lengths]
    for n, bits in zip(lengths, found, strict=True):
        lazy.clear()
        np.testing.assert_array_equal(bits, np.asarray(SUMS[name](hg.tensor(LONG[:, :n]))))


def test_a_defect_of_the_compiler_is_not_hidden_where_it_is_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    """Elsewhere the program by value serves."""
    real = compiling.compile_graph

    def fails(graph: Any, *args: Any, **options: Any) -> Any:
        if graph.symbols():
            raise CompileError("a defect")
        return real(graph, *args, **options)

    monkeypatch.setattr(compiling, "compile_graph", fails)
    for verify in (True, False):
        lazy.clear()
        with override(verify=verify):
            assert np.asarray(hnp.zeros(5) + 2).shape == (5,)
            if verify:
                with pytest.raises(CompileError, match="a defect"):
                    np.asarray(hnp.zeros(7) + 2)
            else:
                assert np.asarray(hnp.zeros(7) + 2).shape == (7,)
