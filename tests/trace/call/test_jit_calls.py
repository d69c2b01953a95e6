"""Calls of jitted functions as they run: natively, from many threads, around forks."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import textwrap
import threading
import time
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram import dtypes, errors, settings
from hologram.trace import tree
from tests.support.jitting import Counted, X, Y, close, native_only
from tests.support.runner.threads import in_threads

# --- threads ---------------------------------------------------------------------------------------------------------


def test_one_signature_is_compiled_once() -> None:
    def slow(a: Any) -> Any:
        time.sleep(0.05)
        return a + 1

    f = Counted(slow)
    g = hg.jit(f)
    start = threading.Barrier(8)
    results: list[Any] = []

    def work() -> None:
        start.wait()
        results.append(np.asarray(g(X)))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert f.count == 1 and len(results) == 8
    for r in results:
        np.testing.assert_array_equal(r, X + 1)


def test_a_trace_belongs_to_its_thread() -> None:
    inside, done = threading.Event(), threading.Event()
    seen: list[Any] = []

    def slow(a: Any) -> Any:
        inside.set()
        done.wait(5)
        return a * 2

    thread = threading.Thread(target=lambda: seen.append(hg.jit(slow)(X)))
    thread.start()
    inside.wait(5)
    close(hg.tensor(X) + Y, X + Y)  # recorded lazily, and realised, while the other thread traces
    close(hg.jit(lambda a: a + 3)(X), X + 3)
    done.set()
    thread.join()
    close(seen[0], X * 2)


def test_argument_returned_as_it_is() -> None:
    source = X.copy()
    same, other = hg.jit(lambda a, b: (a, b + 1))(source, Y)
    source[:] = 0
    close((same, other), (X, Y + 1))
    t = hg.tensor(X)
    close(hg.jit(lambda a: a)(t), X)


def test_long_trace() -> None:
    def f(a: Any) -> Any:
        for _ in range(20_000):
            a = a * 0.5 + 1.0
        return a

    graph = hg.make_graph(f)(X)
    assert len(graph.nodes()) == 40_003


def test_clear_caches_traces_again() -> None:
    f = Counted(lambda a: a + 1)
    g = hg.jit(f)
    g(X)
    g.clear_cache()
    g(X)
    assert f.count == 2


# --- native calls ----------------------------------------------------------------------------------------------------


def frames_of(call: Any) -> int:
    """How many Python functions run in ``call()``, itself excepted."""
    count = -1

    def observe(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(observe)
    try:
        call()
    finally:
        sys.setprofile(None)
    return count


@native_only
@pytest.mark.parametrize(
    ("f", "args", "options"),
    [
        (lambda a, b: a + b, (X, Y), {}),
        (lambda a, s: a * s, (hg.tensor(X), 2.5), {}),
        (lambda a, n, flag: a * n + flag, (hg.tensor(X), 3, True), {}),
        (lambda p: {"sum": p["w"] + p["b"][0], "none": None}, ({"w": X, "b": (hg.tensor(Y), None)},), {}),
        (lambda a, *, scale, shift: a * scale + shift, (X,), {"shift": 1.0, "scale": 2.0}),
        (lambda a: [hnp.sum(a), (a + 1, a - 1)], (X,), {}),
        (lambda: hnp.arange(3) + 1, (), {}),
        (lambda a: a[1:] - a[:-1], (hg.tensor(X),), {}),
    ],
)
def test_no_python_between_caller_and_kernels(f: Any, args: Any, options: Any) -> None:
    g = hg.jit(f)
    first = g(*args, **options)
    assert frames_of(lambda: g(*args, **options)) == 0
    close(g(*args, **options), tree.map(np.asarray, first))


@native_only
@pytest.mark.parametrize("dtype", [d.np for d in dtypes.ALL if d.kind != "c"], ids=str)
def test_numpy_scalars_are_native_arguments(dtype: np.dtype) -> None:
    """Each of its own type, beside arrays without axes and Python numbers, which are others."""
    values = np.array([0, 1, 3]).astype(dtype)
    g = hg.jit(lambda a, s: (hnp.broadcast_to(s, a.shape), {"twice": hnp.concat([s, s], axis=None)}))

    def check(got: Any, v: Any) -> None:
        for t, n in zip(tree.leaves(got), (6, 2), strict=True):
            assert t.dtype == np.asarray(v).dtype
            np.testing.assert_array_equal(np.asarray(t), np.full(n, v))

    for v in [*values, *values[::-1]]:
        check(g(X, v), v)
        assert frames_of(lambda v=v: g(X, v)) == 0
    check(g(X, np.asarray(values[2])), values[2])
    check(g(X, hg.tensor(values[1])), values[1])
    for v in (np.float64(2), np.int8(2), np.uint64(2), np.bool_(True)):
        check(g(X, v), v)
    assert [np.asarray(g(X, v)[0]).dtype.kind for v in (True, 1, 1.0)] == ["b", "i", "f"]
    for v in values:
        check(g(X, v), v)
        assert frames_of(lambda v=v: g(X, v)) == 0


@native_only
def test_sizes_of_dynamic_axes_that_come_again_are_native() -> None:
    """Native code keeps each size apart; those for which an assumption fails have programs of their own."""
    f = Counted(lambda a, b, s: (a[2:] * s + hnp.sum(b), {"both": hnp.concat([a, b]), "rows": hnp.cumsum(a * b.shape[0])}))
    g = hg.jit(f, dynamic={0: 0, 1: 0})

    def check(n: int, m: int) -> None:
        a, b = np.arange(n, dtype=np.float32) % 5, np.arange(m, dtype=np.float32) % 3
        close(g(a, b, 2.0), (a[2:] * 2 + b.sum(), {"both": np.concatenate([a, b]), "rows": np.cumsum(a * np.float32(m))}))

    sizes = [(n, m) for n in (7, 2, 1, 9, 4000) for m in (7, 5, 3, 4000)]
    for _ in range(3):
        for n, m in sizes:
            check(n, m)
    traced = f.count
    for n, m in sizes:
        a, b = np.arange(n, dtype=np.float32), np.arange(m, dtype=np.float32)
        assert frames_of(lambda a=a, b=b: g(a, b, 2.0)) == 0
        check(n, m)
    assert f.count == traced < len(sizes)


@native_only
def test_donated_buffers_of_dynamic_axes() -> None:
    g = hg.jit(lambda a: (a * 2, a[::-1] + 1), dynamic=True, donate_argnums=0)
    for n in (5, 5, 5, 8, 8, 8, 5):
        x = np.arange(n, dtype=np.float32)
        t = hg.tensor(x)
        close(g(t), (x * 2, x[::-1] + 1))
        with pytest.raises(errors.DonatedBufferError):
            t.numpy()


@native_only
def test_native_calls_keep_specialisations_apart() -> None:
    f = Counted(lambda a, n: a * n)
    g = hg.jit(f, static_argnames="n")
    for _ in range(3):
        close(g(X, 2), X * 2)
        close(g(X, n=3), X * 3)
        close(g(hg.tensor(X), 2), X * 2)
        close(g(X.astype(np.float64), 2), X.astype(np.float64) * 2)
        close(g(X[:3], 2), X[:3] * 2)
        close(g(X[::2], 2), X[::2] * 2)  # not contiguous: Python copies it
        assert g(X, True).dtype == np.float32
    assert f.count == 5
    for args, options in (((X, 2), {}), ((X,), {"n": 3}), ((hg.tensor(X), 2), {}), ((X[:3], 2), {})):
        assert frames_of(lambda args=args, options=options: g(*args, **options)) == 0


@native_only
def test_native_calls_go_to_python_while_tracing() -> None:
    inner = hg.jit(lambda a: a * 2)
    close(inner(X), X * 2)
    outer = hg.jit(lambda a: inner(a) + inner(X))
    close(outer(Y), Y * 2 + X * 2)
    assert sum(n.op.name == "mul" for n in hg.make_graph(lambda a: inner(a))(X).nodes()) == 1


def test_python_path_serves_where_native_is_off() -> None:
    with settings.override(native=False):
        g = hg.jit(lambda a, b: {"s": a + b})
        for _ in range(2):
            close(g(X, Y), {"s": X + Y})
        assert g._dispatch is None


def test_changed_settings_are_heeded_by_native_calls() -> None:
    traced = []

    @hg.jit
    def f(x: Any) -> Any:
        traced.append(1)
        return x + 0

    for _ in range(3):
        close(f(X), X)
    with settings.override(disabled_passes=("simplify",)):
        for _ in range(3):
            close(f(X), X)
        assert len(traced) == 2
    with settings.override(native=False):
        close(f(X), X)
    for _ in range(3):
        close(f(X), X)
    assert len(traced) == 2  # under the settings of the beginning, the program of the beginning


def test_results_outlive_the_function() -> None:
    g = hg.jit(lambda a: a * 2 + 1)
    kept = [g(X) for _ in range(3)]
    del g
    gc.collect()
    close(kept, [X * 2 + 1] * 3)


def test_calls_from_many_threads() -> None:
    g = hg.jit(lambda a, s: hnp.sum(a * s) + a)

    def work(k: int) -> None:
        a = hg.tensor(X + k)
        want = ((X + k) * k).sum() + X + k
        for _ in range(300):
            np.testing.assert_allclose(np.asarray(g(a, float(k))), want, rtol=1e-5, atol=1e-8)

    in_threads(work, 8)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_fork() -> None:
    g = hg.jit(lambda a: hnp.sum(a * 2))
    close(g(X), np.float32(30))
    child = os.fork()
    if child == 0:
        ok = float(g(X)) == 30 and float(hg.jit(lambda a: a.sum())(X)) == 15 and float((hg.tensor(X) + 1).sum()) == 21
        os._exit(0 if ok else 1)
    assert os.waitpid(child, 0)[1] == 0
    close(g(X), np.float32(30))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_fork_while_other_threads_compile() -> None:
    code = """
        import os, signal, threading, time
        import numpy as np, hologram as hg, hologram.numpy as hnp

        x = hg.tensor(np.ones(5, np.float32))
        hg.jit(lambda a: a)(x)  # loads the compiler: what one thread is importing at a fork no child can ever import

        def work():
            while True:
                hg.jit(lambda a: hnp.sin(a) + 1)(x)
                (x + 1).sum().numpy()
                time.sleep(0.001)  # threads that hand the GIL to one another starve a third one, which forks

        for _ in range(2):
            threading.Thread(target=work, daemon=True).start()
        for k in range(12):
            time.sleep(0.02)
            child = os.fork()
            if child == 0:
                signal.alarm(20)
                ok = float(hg.jit(lambda a: (a * 2 + k).sum())(x)) == 5 * (2 + k) and float((x - 1).sum()) == 0
                os._exit(0 if ok else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        print("done")
        """
    environment = {**os.environ, "HOLOGRAM_CACHE": "0"}
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", textwrap.dedent(code)], env=environment, capture_output=True, text=True, timeout=120)
    assert done.stdout == "done\n", done


def test_a_constant_that_is_returned_is_a_tensor_of_the_callers() -> None:
    held = hg.tensor(np.ones(40, np.float32))
    f = hg.jit(lambda x: (x + 1, held))
    x = hg.tensor(np.zeros(3, np.float32))
    for _ in range(4):
        _, got = f(x)
    got[0] = 5
    hg.jit(lambda y: y * 2, donate_argnums=0)(f(x)[1])
    np.testing.assert_array_equal(np.asarray(f(x)[1]), np.ones(40))
    np.testing.assert_array_equal(np.asarray(held), np.ones(40))
