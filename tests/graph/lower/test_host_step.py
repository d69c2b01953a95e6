"""Host ops: routines as steps of a graph's one call; exceptions, loops, threads, forks, the disk cache; pure_callback."""

from __future__ import annotations

import gc
import itertools
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.backends.llvm.graph import host_calls, lapack
from hologram.errors import ArgumentError, DifferentiationError, DTypeError, ShapeError, TransformError, TreeError
from hologram.linalg import factors
from hologram.primitives import TABLE
from hologram.trace.operators import node_of
from tests.support.runner.threads import in_threads

F32 = hg.ShapeDtypeStruct((), np.float32)


def like(x: Any) -> hg.ShapeDtypeStruct:
    return hg.ShapeDtypeStruct(x.shape, x.dtype)


def double(x: Any, **options: Any) -> Any:
    return hg.pure_callback(lambda a: 2 * a, like(x), x, **options)


X = np.arange(6.0).reshape(2, 3)
positive = np.eye(4) * 3 + np.ones((4, 4))


# --- values ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("run", [lambda f: f, hg.jit, lambda f: hg.jit(f, precision="exact")], ids=["lazy", "jit", "exact"])
def test_a_callback_between_kernels(run: Any) -> None:
    got = run(lambda x: double(x + 1) - 3 * x)(X)
    np.testing.assert_array_equal(np.asarray(got), 2 * (X + 1) - 3 * X)


def test_pytrees_options_and_several_results() -> None:
    def f(pair: Any, scale: Any = 1) -> Any:
        assert all(isinstance(a, np.ndarray) for a in (*pair, scale))
        return {"sum": pair[0] + pair[1], "rest": [pair[0].astype(np.int8), scale * 2]}

    types = {"sum": hg.ShapeDtypeStruct((3,), "float64"), "rest": [hg.ShapeDtypeStruct((3,), np.int8), F32]}
    a, b = np.arange(3.0), np.ones(3)
    out = hg.jit(lambda a, b: hg.pure_callback(f, types, (a, b), scale=np.float32(4)))(a, b)
    np.testing.assert_array_equal(np.asarray(out["sum"]), a + b)
    assert np.asarray(out["rest"][0]).dtype == np.int8 and float(out["rest"][1]) == 8


def test_it_runs_once_a_call_for_all_results_and_not_for_none() -> None:
    calls = []

    def f(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        calls.append(x)
        return x + 1, x * 2

    run = hg.jit(lambda x: hg.pure_callback(f, (like(x), like(x)), x))
    run(X), run(X)
    assert len(calls) == 2
    one = hg.jit(lambda x: hg.pure_callback(f, (like(x), like(x)), x)[1])
    np.testing.assert_array_equal(np.asarray(one(X)), 2 * X)
    assert len(calls) == 3
    hg.jit(lambda x: (hg.pure_callback(f, (like(x), like(x)), x), x)[1])(X)
    assert len(calls) == 3


def test_a_callback_without_arguments() -> None:
    spec = hg.ShapeDtypeStruct((), np.float32)
    made = hg.jit(lambda x: x + hg.pure_callback(lambda: np.float32(3), spec))
    assert made(np.float32(1)).item() == 4
    assert hg.jit(lambda: hg.pure_callback(lambda: np.float32(3), spec))().item() == 3


def test_what_a_callback_keeps_and_gives_is_its_own() -> None:
    kept: list[np.ndarray] = []

    def f(x: np.ndarray) -> np.ndarray:
        kept.append(x)
        x += 1  # the argument is the function's
        return x

    run = hg.jit(lambda x: hg.pure_callback(f, like(x), x * 1.5) + 0)
    first = run(X)
    run(X + 1)
    np.testing.assert_array_equal(kept[0], X * 1.5 + 1)
    np.testing.assert_array_equal(np.asarray(first), X * 1.5 + 1)
    np.testing.assert_array_equal(X, np.arange(6.0).reshape(2, 3))


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 2)])
def test_zero_size(shape: tuple[int, ...]) -> None:
    x = np.zeros(shape)
    got = hg.jit(lambda x: hg.pure_callback(lambda a: (a, np.float32(a.size)), (like(x), F32), x))(x)
    assert got[0].shape == shape and float(got[1]) == 0


def test_arguments_of_symbolic_shape() -> None:
    run = hg.jit(lambda x: hg.pure_callback(lambda a: np.float64(a.sum()), hg.ShapeDtypeStruct((), "float64"), x * 2), dynamic=True)
    for n in (3, 5, 8):
        assert float(run(np.arange(float(n)))) == n * (n - 1)


def test_hologram_inside_a_callback() -> None:
    inner = hg.jit(lambda a: hnp.sum(a * a))
    run = hg.jit(lambda x: hg.pure_callback(lambda a: np.asarray(inner(a) + hnp.max(a)), hg.ShapeDtypeStruct((), x.dtype), x) * 2)
    assert float(run(X)) == 2 * ((X * X).sum() + X.max())
    traced = hg.jit(lambda x: run(x) + 1)  # called while its caller is traced
    assert float(traced(X)) == 2 * ((X * X).sum() + X.max()) + 1


# --- loops and branches ----------------------------------------------------------------------------------------------


def test_in_bodies_of_control_flow() -> None:
    def step(c: Any, x: Any) -> Any:
        y = double(c) + x
        return y, y

    carry, ys = hg.jit(lambda c: hg.scan(step, c, np.ones(5)))(np.float64(1))
    want = [3.0, 7.0, 15.0, 31.0, 63.0]
    np.testing.assert_array_equal(np.asarray(ys), want)
    assert float(carry) == 63
    assert float(hg.while_loop(lambda c: c < 100, double, np.float64(3))) == 192
    chosen = hg.jit(lambda p, x: hg.cond(p, double, lambda x: x + 0.5, x))
    assert float(chosen(True, 2.0)) == 4 and float(chosen(False, 2.0)) == 2.5


def test_large_carries_in_a_loop() -> None:
    start = np.random.default_rng(0).normal(size=5000)
    got = hg.jit(lambda c: hg.fori_loop(0, 4, lambda i, c: double(c) - 1.0, c))(start)
    np.testing.assert_allclose(np.asarray(got), start * 16 - 15, rtol=1e-12)


def test_a_factorization_in_a_scan() -> None:
    def step(a: Any, _: Any) -> Any:
        lower = hg.linalg.cholesky(a)
        return lower @ hnp.matrix_transpose(lower) * 1.5, lower[0, 0]

    last, corners = hg.jit(lambda a: hg.scan(step, a, None, length=3))(positive)
    np.testing.assert_allclose(np.asarray(last), positive * 1.5**3, rtol=1e-12)
    np.testing.assert_allclose(np.asarray(corners), 2 * 1.5 ** (np.arange(3) / 2), rtol=1e-12)


# --- exceptions ------------------------------------------------------------------------------------------------------


class Own(Exception):
    pass


@pytest.mark.parametrize("run", [lambda f: lambda x: hg.eval(f(x)), hg.jit], ids=["lazy", "jit"])
@pytest.mark.parametrize("size", [3, 100_000])  # with the GIL, and without
def test_an_exception_reaches_the_caller_and_the_program_goes_on(run: Any, size: int) -> None:
    fail = [False]

    def f(x: np.ndarray) -> np.ndarray:
        if fail[0]:
            raise Own("no luck")
        return x

    call = run(lambda x: hg.pure_callback(f, like(x), x * 2) + 1)
    x = np.ones(size)
    for turn in range(6):
        fail[0] = turn % 2 == 1
        if fail[0]:
            with pytest.raises(Own, match="no luck"):
                call(x)
        else:
            call(x)


def test_an_exception_leaves_a_loop() -> None:
    seen = []

    def f(x: np.ndarray) -> np.ndarray:
        seen.append(float(x))
        if x > 3:
            raise Own
        return x

    with pytest.raises(Own):
        hg.jit(lambda: hg.fori_loop(0, 100, lambda i, c: hg.pure_callback(f, like(c), c) + 1, np.float64(0)))()
    assert seen == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_nothing_leaks_when_it_fails() -> None:
    class FoldedConstant:
        pass

    alive: list[weakref.ref[FoldedConstant]] = []

    def f(x: np.ndarray) -> np.ndarray:
        held = FoldedConstant()
        alive.append(weakref.ref(held))
        raise Own(held)

    run = hg.jit(lambda x: hg.pure_callback(f, like(x), x) * 2)
    for _ in range(5):
        with pytest.raises(Own):
            run(X)
    gc.collect()
    assert len(alive) == 5 and all(r() is None for r in alive)


ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: hg.eval(hg.pure_callback(lambda x: x[0], like(X), X)), ShapeError, r"gave an array of shape \[3\] where \[2, 3\] was promised"),
    (lambda: hg.eval(hg.pure_callback(lambda x: x.astype(int), like(X), X)), DTypeError, "gave an array of int64 where float64 was promised"),
    (lambda: hg.eval(hg.pure_callback(lambda x: (x, x), like(X), X)), TreeError, "structure"),
    (lambda: hg.pure_callback(3, like(X), X), ArgumentError, "takes a function, not int"),  # type: ignore[arg-type]
    (lambda: hg.pure_callback(np.sin, 3.0, X), ArgumentError, "described by something with shape and dtype, not by a float"),
    (lambda: hg.pure_callback(np.sin, like(X), X, vmap_method="fast"), ArgumentError, "vmap_method 'fast'"),
    (lambda: hg.vmap(double)(X), TransformError, "vmap_method"),
    (lambda: hg.grad(lambda x: hnp.sum(double(x)))(X), DifferentiationError, "custom_jvp"),
    (lambda: hg.pure_callback(np.sin, like(X), "text"), ArgumentError, "pure_callback"),
]


@pytest.mark.parametrize(("act", "kind", "message"), ERRORS)
def test_error(act: Callable[[], Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message) as caught:
        act()
    assert "test_host_step.py" in str(caught.value)


# --- transforms ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["sequential", "expand_dims", "broadcast_all"])
def test_vmap(method: str) -> None:
    shapes = []

    def f(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        shapes.append((x.shape, y.shape))
        return np.asarray(x[..., :1] + y[..., 1:2])

    def call(x: Any, y: Any) -> Any:
        return hg.pure_callback(f, hg.ShapeDtypeStruct((1,), "float64"), x, y, vmap_method=method)

    y = np.array([10.0, 20.0])
    got = hg.jit(hg.vmap(call, in_axes=(0, None)))(X, y)
    np.testing.assert_array_equal(np.asarray(got), X[:, :1] + 20)
    want = {"sequential": [((3,), (2,))] * 2, "expand_dims": [((2, 3), (1, 2))], "broadcast_all": [((2, 3), (2, 2))]}[method]
    assert shapes == want
    nested = hg.vmap(hg.vmap(call, in_axes=(None, 0)), in_axes=(0, None))(X, np.stack([y, 2 * y]))
    np.testing.assert_array_equal(np.asarray(nested)[..., 0], X[:, :1] + [[20.0, 40.0]])


def test_a_derivative_of_its_own() -> None:
    @hg.custom_jvp
    def sine(x: Any) -> Any:
        return hg.pure_callback(np.sin, like(x), x)

    sine.defjvps(lambda t, out, x: t * hg.pure_callback(np.cos, like(x), x))
    np.testing.assert_allclose(np.asarray(hg.jit(hg.grad(lambda x: hnp.sum(sine(x) * 2)))(X)), 2 * np.cos(X))


@pytest.fixture
def other_threads_run_at_collections() -> Iterator[None]:
    """Collections come often, and run Python, so that threads take turns in the middle of C functions that make objects."""
    interval, threshold = sys.getswitchinterval(), gc.get_threshold()
    gc.callbacks.append(run_a_little)
    sys.setswitchinterval(1e-6)
    gc.set_threshold(2)
    yield
    gc.set_threshold(*threshold)
    sys.setswitchinterval(interval)
    gc.callbacks.remove(run_a_little)


def run_a_little(*_: Any) -> None:
    for _n in range(50):
        pass


def test_first_calls_in_many_threads(other_threads_run_at_collections: None) -> None:
    f = hg.jit(double)
    want = np.asarray(f(X))
    failed: list[BaseException] = []

    def call() -> None:
        try:
            for _ in range(100):
                host_calls._prepared.cache_clear()
                assert np.array_equal(np.asarray(f(X)), want)
        except BaseException as e:
            failed.append(e)

    threads = [threading.Thread(target=call) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed


# --- seeing inside, the disk cache -----------------------------------------------------------------------------------


def test_calls_are_counted() -> None:
    compiled = hg.jit(lambda x: double(x + 1) * 2).lower(X).compile()
    found = compiled.reduction()
    assert found.host_calls == 1 and found.kernels == 2
    assert "2 kernels and 1 call of the host" in str(found)


def test_factorizations_need_no_python() -> None:
    assert lapack.available()
    text = hg.jit(lambda x: hg.linalg.cholesky(x)).lower(positive).as_text("llvm")
    assert "hg_dpotrf" in text and "call i64 @hg_call_host" not in text


_ATTRIBUTES: dict[str, list[tuple[Any, ...]]] = {
    "lu_solve": [(False,), (True,)],
    "triangular_solve": list(itertools.product((False, True), repeat=3)),
    "lq": [(False,), (True,)],
    "svd": [("values",), ("reduced",), ("full",)],
    "eigh": [(False,), (True,)],
    "eig": [(False,), (True,)],
}


@pytest.mark.parametrize("name", sorted(lapack._DESCRIBED))
@pytest.mark.parametrize("dtype", sorted(lapack._LETTERS))
def test_every_routine_of_every_type_is_native(name: str, dtype: str) -> None:
    """Each variant of a factorization is one call of LAPACK, for each element type, and none of Python."""
    row, cases = TABLE[name], _ATTRIBUTES.get(name, [()])
    matrix = (positive + np.triu(positive)).astype(dtype)
    vectors = np.ones(4, np.int32)
    operands = [matrix, matrix, vectors, matrix][: row.arity] if name == "lu_solve" else [matrix] * (row.arity or 1)

    def every(*arrays: Any) -> Any:
        nodes = [node_of(hnp.asarray(a)) for a in arrays]
        return [factors.run(row, nodes, *attrs) for attrs in cases]

    text = hg.jit(every).lower(*operands).as_text("llvm")
    assert text.count(f"call void @hg_lapack_{name}(") == len(cases) and "call i64 @hg_call_host" not in text


@pytest.mark.parametrize("dtype", sorted(lapack._LETTERS))
def test_derivatives_of_factorizations_need_no_python(dtype: str) -> None:
    def f(x: Any) -> Any:
        return hnp.real(hnp.sum(hg.linalg.cholesky(x)) + hg.linalg.det(x) + hnp.sum(hg.linalg.solve(x, x + 1)))

    text = hg.jit(hg.grad(f)).lower(positive.astype(dtype)).as_text("llvm")
    assert text.count("@hg_lapack_") > 3 and "call i64 @hg_call_host" not in text


def test_without_scipy_python_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lapack, "available", lambda: False)
    lowered = hg.jit(lambda x: hg.linalg.cholesky(x + 0.0)).lower(positive)
    assert "call i64 @hg_call_host" in lowered.as_text("llvm")
    np.testing.assert_allclose(np.asarray(hg.jit(lambda x: hg.linalg.cholesky(x * 1.0))(positive)), np.linalg.cholesky(positive), rtol=1e-14)


_PROCESS = """
import sys
if {hidden}:
    sys.modules["scipy"] = None  # importing it fails
import numpy as np
import hologram as hg
from hologram.backends.llvm.toolchain import target
compiled = []
plain = target.compile_modules
def counting(texts, *rest, **options):
    compiled.extend("define i64 @graph(" in t for t in texts)
    return plain(texts, *rest, **options)
target.compile_modules = counting
x = np.eye(3) * 4
print(float(hg.jit(lambda x: hg.linalg.cholesky(x)[2, 2] + hg.fft.rfft(x)[0, 0].real)(x)), sum(compiled), "scipy.linalg" in sys.modules)
"""


def _run(hidden: bool) -> list[str]:
    root = Path(hg.__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", _PROCESS.format(hidden=hidden)], cwd=root, capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_code_from_the_disk_finds_this_process_s_routines() -> None:
    assert _run(False) == ["6.0", "1", "True"]
    assert _run(False) == ["6.0", "0", "True"]  # another process, at other addresses
    assert _run(True) == ["6.0", "1", "False"]  # code that wants SciPy is not loaded without it
    assert _run(True) == ["6.0", "0", "False"]


def test_code_with_a_callback_is_not_kept(disk_cache: Path) -> None:
    def entries() -> set[str]:
        return {p.name for p in disk_cache.iterdir() if p.suffix == ".hgo"}

    hg.jit(lambda x: x * 1.25)(X)  # the runtime itself
    before = entries()
    np.testing.assert_array_equal(np.asarray(hg.jit(lambda x: double(x) * 3.5)(X)), 7 * X)
    assert entries() == before


def test_callbacks_go_with_their_programs() -> None:
    def make() -> tuple[Any, weakref.ref[Any]]:
        def f(x: np.ndarray) -> np.ndarray:
            return x + 1

        run = hg.jit(lambda x: hg.pure_callback(f, like(x), x))
        run(X)
        return run, weakref.ref(f)

    run, alive = make()
    assert alive() is not None
    del run
    hg.clear_caches()
    gc.collect()
    assert alive() is None


# --- threads, forks --------------------------------------------------------------------------------------------------


def test_many_threads() -> None:
    rng = np.random.default_rng(3)
    stack = rng.normal(size=(40, 6, 6))
    stack = stack @ np.swapaxes(stack, -1, -2) + 6 * np.eye(6)
    want = np.linalg.inv(stack)
    run = hg.jit(lambda x: hg.linalg.inv(double(x) * 0.5))

    def work(seed: int) -> None:
        for k in range(10):
            scale = 1.0 + seed + k
            np.testing.assert_allclose(np.asarray(run(stack * scale)) * scale, want, rtol=1e-9)

    in_threads(work, 6)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_process() -> None:
    run = hg.jit(lambda x: hg.linalg.solve(x, double(x)))
    run(positive)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if np.allclose(np.asarray(run(positive)), 2 * np.eye(4)) else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    np.testing.assert_allclose(np.asarray(run(positive)), 2 * np.eye(4), atol=1e-12)


def test_batches_do_not_depend_on_threads() -> None:
    rng = np.random.default_rng(5)
    x = rng.normal(size=(500, 8, 8)).astype(np.float32)
    run = hg.jit(lambda x: tuple(hg.linalg.svd(x)) + tuple(hg.linalg.qr(x)))
    try:
        hg.set_num_threads(1)
        alone = [np.asarray(a) for a in run(x)]
        hg.set_num_threads(2)
        together = [np.asarray(a) for a in run(x)]
    finally:
        hg.set_num_threads(os.cpu_count() or 1)
    for a, b in zip(alone, together, strict=True):
        np.testing.assert_array_equal(a, b)
