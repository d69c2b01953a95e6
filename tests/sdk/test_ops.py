"""The SDK's ops against NumPy: every row, element types, sizes, results in place and overlapping, native calls and calls by Python."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hologram as hg
from hologram.errors import ArgumentError, ClosedExecutorError, DTypeError, FreedBufferError, ShapeError
from hologram.sdk.operation import Operation
from hologram.sdk.table import ROWS, Array
from hologram.settings import override
from tests.support.needs import needs_opencl


def _softmax(a: np.ndarray) -> np.ndarray:
    e = np.exp(a.astype(np.float64) - a.max())
    return e / e.sum()


def _gelu(a: np.ndarray) -> np.ndarray:
    x = a.astype(np.float64)
    return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def _product_log(t: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.where(t == 0, 0.0, t * np.log(np.where(t == 0, 1.0, x)))


REFERENCES: dict[str, Callable[..., Any]] = {
    "vector_add": np.add,
    "vector_sub": np.subtract,
    "vector_mul": np.multiply,
    "vector_div": lambda a, b: a / b if a.dtype.kind == "f" else np.where(b == 0, 0, a // np.where(b == 0, 1, b)),
    "vector_min": np.minimum,
    "vector_max": np.maximum,
    "vector_mad": lambda a, b, c: a * b + c,
    "vector_abs": np.abs,
    "vector_neg": np.negative,
    "vector_relu": lambda a: np.maximum(a, 0),
    "vector_sqrt": np.sqrt,
    "vector_exp": np.exp,
    "vector_log": np.log,
    "vector_clip": np.clip,
    "scalar_add": np.add,
    "scalar_mul": np.multiply,
    "sigmoid": lambda a: 1 / (1 + np.exp(-a.astype(np.float64))),
    "tanh": np.tanh,
    "gelu": _gelu,
    "softmax": _softmax,
    "reduce_sum": np.sum,
    "reduce_min": np.min,
    "reduce_max": np.max,
    "mse_loss": lambda p, t: np.mean((p - t) ** 2),
    "cross_entropy_loss": lambda p, t: -np.sum(_product_log(t, p)),
    "binary_cross_entropy_loss": lambda p, t: -np.mean(_product_log(t, p) + _product_log(1 - t, 1 - p)),
    "gemm": np.matmul,
    "matvec": np.matmul,
    "memcpy": lambda a: a,
    "fill": lambda value: value,
}
TOLERANCE = {np.float32: 3e-5, np.float64: 1e-12}
DTYPES = {"f": (np.float32, np.float64), "i": (np.int8, np.int32, np.int64), "u": (np.uint8, np.uint32)}
CASES = st.sampled_from([(r.name, dtype) for r in ROWS.values() if not r.by_size for kind in r.kinds for dtype in DTYPES[kind]])


@pytest.fixture(scope="module")
def executor() -> Iterator[hg.Executor]:
    with hg.Executor("cpu") as made:
        yield made


def _data(name: str, shape: tuple[int, ...], dtype: Any, rng: np.random.Generator) -> np.ndarray:
    if np.dtype(dtype).kind != "f":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    if name in ("pred", "target"):
        return rng.uniform(0.01, 0.99, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def _buffer(executor: hg.Executor, array: np.ndarray, spare: int = 0) -> hg.Buffer:
    made = executor.allocate(array.size + spare, array.dtype)
    made.to_numpy()[: array.size] = array.reshape(-1)
    return made


def _check(executor: hg.Executor, name: str, sizes: dict[str, int], dtype: Any, seed: int, spare: int = 0, calls: int = 2) -> None:
    """Calls the op with sizes as they are, and compares with NumPy; then again, which is a native call."""
    row, rng = ROWS[name], np.random.default_rng(seed)
    inputs = {a.name: _data(a.name, a.shape(sizes), dtype, rng) for a in row.arrays[:-1]}
    numbers: dict[str, Any] = {"min_val": -0.5, "max_val": 0.75, "scalar": 1.25, "value": 3.5}
    if np.dtype(dtype).kind != "f":
        numbers = {"min_val": 3, "max_val": 90, "scalar": 5, "value": 7}
    given = {p: numbers[p] for p in row.parameters if isinstance(p, str)}
    with np.errstate(all="ignore"):
        wanted = REFERENCES[name](*inputs.values(), *[np.dtype(dtype).type(v) for v in given.values()])
    buffers = {n: _buffer(executor, x, spare) for n, x in inputs.items()}
    out = buffers[row.result.name] = executor.allocate(row.result.count(sizes) + spare, dtype)
    arguments = [buffers[p.name] if isinstance(p, Array) else given[p] for p in row.parameters]
    explicit = list(sizes.values()) if spare or row.by_size else []
    for _ in range(calls):
        out.fill(99)
        returned = getattr(hg.ops, name)(executor, *arguments, *explicit)
        found = out.to_numpy()[: row.result.count(sizes)].reshape(row.result.shape(sizes))
        _compare(found, wanted, dtype)
        assert np.all(out.to_numpy()[row.result.count(sizes) :] == 99)
        assert (returned == float(found)) if row.gives_number else returned is None
    for n, x in inputs.items():
        np.testing.assert_array_equal(buffers[n].to_numpy()[: x.size], x.reshape(-1))


def _compare(found: np.ndarray, wanted: Any, dtype: Any) -> None:
    if np.dtype(dtype).kind == "f":
        tolerance = TOLERANCE[dtype]
        np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)
    else:
        np.testing.assert_array_equal(found, np.broadcast_to(wanted, found.shape).astype(dtype))


@pytest.mark.parametrize("name", ROWS)
def test_every_op_is_numpys(executor: hg.Executor, name: str) -> None:
    row = ROWS[name]
    for dtype in [d for k in row.kinds for d in DTYPES[k]]:
        sizes = {e: n for e, n in zip(row.sizes, (37, 21, 53), strict=False)}
        _check(executor, name, sizes, dtype, seed=1)
        _check(executor, name, sizes, dtype, seed=2, spare=5)


@given(
    name=st.sampled_from([r.name for r in ROWS.values() if not r.by_size]), n=st.integers(1, 20_000), spare=st.integers(0, 3), seed=st.integers(0, 9)
)
def test_one_program_serves_every_size(executor: hg.Executor, name: str, n: int, spare: int, seed: int) -> None:
    _check(executor, name, {"n": n}, np.float32, seed, spare)


@given(m=st.integers(1, 70), n=st.integers(1, 70), k=st.integers(1, 70), spare=st.integers(0, 2), dtype=st.sampled_from([np.float32, np.float64]))
def test_products_are_right_for_every_shape(executor: hg.Executor, m: int, n: int, k: int, spare: int, dtype: Any) -> None:
    _check(executor, "gemm", {"m": m, "n": n, "k": k}, dtype, m, spare, calls=1)
    _check(executor, "matvec", {"m": m, "n": n}, dtype, n, spare, calls=1)


@pytest.mark.parametrize("native", [True, False])
def test_calls_by_python_are_the_same(executor: hg.Executor, native: bool) -> None:
    with override(native=native):
        _check(executor, "vector_add", {"n": 100}, np.float32, 0)
        _check(executor, "reduce_sum", {"n": 100}, np.float64, 0)
        _check(executor, "memcpy", {"n": 100}, np.int32, 0)


# --- memory -------------------------------------------------------------------------------------------------------------------


@given(
    n=st.integers(1, 300),
    a=st.integers(0, 40),
    b=st.integers(0, 40),
    out=st.integers(0, 40),
    name=st.sampled_from(["vector_sub", "softmax", "memcpy"]),
)
def test_results_may_overlap_arguments(executor: hg.Executor, n: int, a: int, b: int, out: int, name: str) -> None:
    memory = np.random.default_rng(n).standard_normal(400).astype(np.float32)
    arrays = [memory[a : a + n].copy(), memory[b : b + n].copy()][: len(ROWS[name].arrays) - 1]
    wanted = REFERENCES[name](*arrays)
    before = memory.copy()
    views = [hg.Buffer.wrap(memory[i : i + n]) for i in (a, b)][: len(arrays)]
    getattr(hg.ops, name)(executor, *views, hg.Buffer.wrap(memory[out : out + n]))
    _compare(memory[out : out + n], wanted, np.float32)
    untouched = np.ones(400, bool)
    untouched[out : out + n] = False
    np.testing.assert_array_equal(memory[untouched], before[untouched])


def test_results_in_place_natively(executor: hg.Executor) -> None:
    a, b = _buffer(executor, np.arange(50, dtype=np.float32)), _buffer(executor, np.full(50, 2, np.float32))
    for _ in range(3):
        hg.ops.vector_add(executor, a, b, a)
    np.testing.assert_array_equal(a.to_numpy(), np.arange(50) + 6)


def test_wrapped_arrays_are_read_and_written_where_they_are(executor: hg.Executor) -> None:
    x, y = np.arange(12, dtype=np.float32).reshape(3, 4), np.zeros((4, 3), np.float32)
    for _ in range(2):
        y.fill(0)
        hg.ops.vector_exp(executor, hg.Buffer.wrap(x), hg.Buffer.wrap(y))
        np.testing.assert_allclose(y.reshape(-1), np.exp(x).reshape(-1), rtol=1e-6)


@pytest.mark.parametrize("op", ["gemm", "vector_add"])
@pytest.mark.parametrize("off", [0, 4])
def test_large_results_at_any_address(executor: hg.Executor, op: str, off: int) -> None:
    m, n = 2600, 2600  # a result of more than 24 MiB, which passes the caches by where it is aligned to lines
    raw = np.zeros(m * n + 32, np.float32)
    first = next(i for i in range(16) if (raw.ctypes.data + 4 * i) % 64 == off)
    out = raw[first : first + m * n]
    row = np.arange(n, dtype=np.float32)
    arguments = [np.ones(m, np.float32), row] if op == "gemm" else [np.tile(row - 1, m), np.ones(m * n, np.float32)]
    for _ in range(3):
        out.fill(0)
        buffers = [hg.Buffer.wrap(x) for x in (*arguments, out)]
        getattr(hg.ops, op)(executor, *buffers, *((m, n, 1) if op == "gemm" else ()))
        np.testing.assert_array_equal(out.reshape(m, n)[::1000], np.broadcast_to(row, (3, n)))
        np.testing.assert_array_equal(raw[first + m * n :], 0)


# --- forms of calls and their errors --------------------------------------------------------------------------------------------


def test_keywords_in_any_order(executor: hg.Executor) -> None:
    a, b = _buffer(executor, np.full(8, 5, np.float32)), _buffer(executor, np.full(8, 3, np.float32))
    out = executor.allocate(8)
    for _ in range(2):
        hg.ops.vector_sub(executor, b=b, a=a, out=out)
        np.testing.assert_array_equal(out.to_numpy(), 2)
        hg.ops.vector_sub(out=out, executor=executor, a=b, b=a, n=8)
        np.testing.assert_array_equal(out.to_numpy(), -2)
        hg.ops.vector_sub(executor, a, b, out, n=None)
        np.testing.assert_array_equal(out.to_numpy(), 2)


def test_numbers_of_any_kind(executor: hg.Executor) -> None:
    a, out = _buffer(executor, np.arange(8, dtype=np.float32)), executor.allocate(8)
    for scalar in (2, 2.0, True, np.float32(2), np.float64(2), np.int64(2), np.array(2.0)):
        for _ in range(2):
            hg.ops.scalar_mul(executor, a, out, scalar)
            np.testing.assert_array_equal(out.to_numpy(), np.arange(8) * np.float32(scalar))


def test_numbers_beyond_the_type_are_infinite(executor: hg.Executor) -> None:
    out = executor.allocate(3)
    for value in (1e300, np.float64(1e300), 10**200):
        for _ in range(2):
            hg.ops.fill(executor, out, value)
            assert np.isposinf(out.to_numpy()).all()


def test_sizes_of_numpy_are_sizes(executor: hg.Executor) -> None:
    a, out = _buffer(executor, np.arange(8, dtype=np.float32)), executor.allocate(8)
    for n in (np.int64(6), 6, np.int64(6), 6):
        out.fill(0)
        hg.ops.vector_neg(executor, a, out, n)
        np.testing.assert_array_equal(out.to_numpy(), [0, -1, -2, -3, -4, -5, 0, 0])


def test_ops_at_the_top_level_take_float32(executor: hg.Executor) -> None:
    a, out = _buffer(executor, np.arange(8, dtype=np.float32)), executor.allocate(8)
    for _ in range(2):
        hg.vector_add_f32(executor, a, a, out, 8)
        np.testing.assert_array_equal(out.to_numpy(), 2 * np.arange(8))
    doubles = executor.allocate(8, np.float64)
    with pytest.raises(DTypeError, match="vector_add_f32: takes float32, not float64"):
        hg.vector_add_f32(executor, doubles, doubles, doubles)
    assert not [name for name in ROWS if not callable(getattr(hg, name + "_f32"))]


def test_functions_describe_themselves() -> None:
    assert hg.ops.vector_add.__name__ == "vector_add"
    assert str(inspect.signature(hg.ops.vector_clip)) == "(executor, a, out, min_val, max_val, n=None)"
    assert "tanh form" in hg.ops.gelu.__doc__
    assert "-mean(" in hg.ops.binary_cross_entropy_loss.__doc__
    assert {"gemm", "gemm_f32"} <= set(dir(hg.ops))
    with pytest.raises(AttributeError, match="vector_pow"):
        _ = hg.ops.vector_pow


def test_bad_arguments_raise(executor: hg.Executor) -> None:
    a, out = executor.allocate(8), executor.allocate(8)
    longer, doubles, whole = executor.allocate(9), executor.allocate(8, np.float64), executor.allocate(8, np.int32)
    read_only = np.zeros(8, np.float32)
    read_only.flags.writeable = False
    add, ops = hg.ops.vector_add, hg.ops
    for error, words, call in [
        (ArgumentError, "missing a required argument: 'out'", lambda: add(executor, a, a)),
        (ArgumentError, "executor is an Executor, not a Buffer", lambda: add(a, a, a, out)),
        (ArgumentError, "b is a Buffer, not a list", lambda: add(executor, a, [1.0], out)),
        (ArgumentError, "unexpected keyword argument 'c'", lambda: add(executor, a, a, out, c=1)),
        (ArgumentError, "n is an integer, not 2.5", lambda: add(executor, a, a, out, 2.5)),
        (ShapeError, "n is at least 1, not 0", lambda: add(executor, a, a, out, 0)),
        (ShapeError, "differ in size.*b has 9.*say how many", lambda: add(executor, a, longer, out)),
        (ShapeError, "a has 8 elements, 9 are needed", lambda: add(executor, a, longer, longer, 9)),
        (ShapeError, "out has 8 elements, 3 x 3 are needed", lambda: ops.gemm(executor, longer, longer, out, 3, 3, 3)),
        (DTypeError, "differ in type: a is float32, b is float64", lambda: add(executor, a, doubles, out)),
        (DTypeError, "vector_exp: takes floats, not int32", lambda: ops.vector_exp(executor, whole, whole)),
        (DTypeError, "scalar = 0.5 is no int32", lambda: ops.scalar_add(executor, whole, whole, 0.5)),
        (DTypeError, "scalar = 1099511627776 is no int32", lambda: ops.scalar_add(executor, whole, whole, 2**40)),
        (DTypeError, "value = 1000.* is no float32", lambda: ops.fill(executor, out, 10**400)),
        (DTypeError, r"scalar = array\(0.5\) is no int32", lambda: ops.scalar_add(executor, whole, whole, np.array(0.5))),
        (ArgumentError, "scalar is a number, not a ndarray", lambda: ops.scalar_add(executor, a, out, np.zeros(1))),
        (ArgumentError, "scalar is a number, not a str", lambda: ops.scalar_add(executor, a, out, "2")),
        (ArgumentError, "wraps a read-only array", lambda: add(executor, a, a, hg.Buffer.wrap(read_only))),
    ]:
        for _ in range(2):
            with pytest.raises(error, match=words):
                call()


def test_ends_are_noticed_by_native_calls() -> None:
    executor, other = hg.Executor("cpu"), hg.Executor("cpu")
    a, out = executor.allocate(8), executor.allocate(8)
    for _ in range(3):
        hg.ops.vector_neg(executor, a, out)
    hg.ops.vector_neg(other, a, out)  # buffers of one executor serve another on the same device
    a.free()
    with pytest.raises(FreedBufferError, match="it was freed"):
        hg.ops.vector_neg(executor, a, out)
    executor.cleanup()
    with pytest.raises(ClosedExecutorError, match="vector_neg: executor .* has ended"):
        hg.ops.vector_neg(executor, out, out)
    with pytest.raises(FreedBufferError, match="its executor has ended"):
        hg.ops.vector_neg(other, out, out)


def test_clearing_forgets_programs() -> None:
    with hg.Executor("cpu") as executor:
        a = _buffer(executor, np.arange(4, dtype=np.float32))
        neg = Operation(ROWS["vector_neg"], "vector_neg", None)
        for _ in range(2):
            neg.call(executor, a, a)
            assert len(neg._dispatch) == 1
            hg.clear_caches()
            assert len(neg._dispatch) == 0
        np.testing.assert_array_equal(a.to_numpy(), np.arange(4))


def test_ops_run_while_others_are_traced(executor: hg.Executor) -> None:
    a, out = _buffer(executor, np.arange(4, dtype=np.float32)), executor.allocate(4)

    def square(x: Any) -> Any:
        hg.ops.vector_neg(executor, a, out)
        return x * x

    x = np.full(3, 2, np.float32)
    for transform in (hg.jit, lambda f: hg.jit(hg.vmap(f)), lambda f: hg.vmap(hg.grad(f)), hg.jacrev):
        for _ in range(2):
            out.fill(9)
            assert transform(square)(x).shape[0] == 3
            np.testing.assert_array_equal(out.to_numpy(), [0, -1, -2, -3])


def test_threads_share_ops(executor: hg.Executor) -> None:
    def use(number: int) -> None:
        n = 1000 * number + 7
        a, out = _buffer(executor, np.full(n, number, np.float32)), executor.allocate(n)
        for _ in range(50):
            hg.ops.vector_mul(executor, a, a, out)
            assert (out.to_numpy() == number * number).all()
            assert hg.ops.reduce_max(executor, a, out, n) == number

    failures: list[Exception] = []

    def guarded(number: int) -> None:
        try:
            use(number)
        except Exception as e:
            failures.append(e)

    threads = [threading.Thread(target=guarded, args=(i,)) for i in range(1, 9)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


WITHOUT_NATIVE = """
import gc, numpy as np, hologram as hg
from hologram.backends.native.module import why_not_native
assert why_not_native() == "settings.native is off"
with hg.Executor("cpu") as executor:
    a, b, page = executor.allocate(100), executor.allocate(100), executor.allocate_boundary(3, 48, 256)
    a.from_numpy(np.arange(100))
    for _ in range(2):
        hg.ops.vector_add(executor, a, a, b)
        assert hg.ops.reduce_sum(executor, b, page) == 9900
    hg.ops.softmax(executor, b, b)
    hg.ops.memcpy(executor, a, b)
    assert b.to_bytes() == np.arange(100, dtype=np.float32).tobytes()
    wrapped = hg.Buffer.wrap(np.full(1000, 2, np.float32))
    hg.ops.vector_neg(executor, wrapped, wrapped)
    view, other = page.to_numpy()[3:], wrapped.to_numpy()[5:]
    page.free()
    del wrapped
    gc.collect()
    assert (other == -2).all() and 3 not in executor._pool.free_classes()
    del view
    assert 3 in executor._pool.free_classes()
print("done")
"""


def test_everything_works_without_native_calls() -> None:
    environment = os.environ | {"HOLOGRAM_NATIVE": "0"}
    done = subprocess.run([sys.executable, "-c", WITHOUT_NATIVE], capture_output=True, text=True, env=environment)
    assert done.stdout.strip() == "done", done.stderr


def test_forms_of_calls_are_bounded(executor: hg.Executor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hologram.sdk.operation.CALL_LIMIT", 4)
    neg = Operation(ROWS["vector_neg"], "vector_neg", None)
    a, out = _buffer(executor, np.arange(40, dtype=np.float32)), executor.allocate(40)
    for n in [*range(1, 40), *range(1, 40)]:
        neg.call(executor, a, out, n)
        np.testing.assert_array_equal(out.to_numpy()[:n], -np.arange(n))
    assert len(neg._told) <= 4
    assert len(neg._dispatch) <= 4


@needs_opencl
def test_opencl_executors_give_the_same() -> None:
    with hg.Executor("opencl") as executor:
        assert executor.backend == "opencl"
        for name in ("vector_add", "gelu", "reduce_sum", "softmax", "vector_clip", "memcpy", "fill"):
            _check(executor, name, {"n": 500}, np.float32, 0)
        _check(executor, "gemm", {"m": 7, "n": 9, "k": 11}, np.float32, 0)


def test_import_stays_light() -> None:
    code = "import sys, hologram as hg; hg.Executor, hg.backend, hg.Buffer; print([m for m in ('torch', 'pyopencl', 'cupy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
