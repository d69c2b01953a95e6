"""Programs that jitted functions share whose graphs differ in numbers alone."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.settings import override
from hologram.trace.call import shared_programs

X = np.linspace(-1.5, 2.5, 97, dtype=np.float32)
Y = np.linspace(0.3, 7.0, 97, dtype=np.float32)
M = np.random.default_rng(3).standard_normal((8, 24)).astype(np.float32)
N = np.arange(-40, 57)

# what takes numbers k and c, and arguments
FORMS: dict[str, tuple[Callable[[Any, Any], Callable[..., Any]], tuple[np.ndarray, ...]]] = {
    "product": (lambda k, c: lambda x: x * k, (X,)),
    "product and sum": (lambda k, c: lambda x, y: x * k + y * c, (X, Y)),
    "product less number": (lambda k, c: lambda x, y: x * y - k, (X, Y)),
    "number less product": (lambda k, c: lambda x, y: k - x * y, (X, Y)),
    "negated": (lambda k, c: lambda x, y: y - (-(x * k)), (X, Y)),
    "quotient": (lambda k, c: lambda x, y: x / k + y, (X, Y)),
    "quotients of rows": (lambda k, c: lambda m: m / k - m, (M,)),
    "number over": (lambda k, c: lambda y: k / y + c, (Y,)),
    "chain": (lambda k, c: lambda x: (x * k) * c + k, (X,)),
    "sums": (lambda k, c: lambda x: (x + k) + c, (X,)),
    "mean": (lambda k, c: lambda x: hnp.mean(x * k) + c, (X,)),
    "sum of products": (lambda k, c: lambda x, y: hnp.sum((x * k) * y), (X, Y)),
    "sum of numbers": (lambda k, c: lambda m: hnp.sum(m * k + c, axis=1), (M,)),
    "choice": (lambda k, c: lambda x, y: hnp.where(x > k, x * c, y) + x, (X, Y)),
    "clip": (lambda k, c: lambda x: hnp.clip(x, -abs(k), abs(c)) + x, (X,)),
    "power": (lambda k, c: lambda y: y**k + c, (Y,)),
    "tanh": (lambda k, c: lambda x: (hnp.tanh(x) + 1) * k, (X,)),
    "sigmoid": (lambda k, c: lambda x: (x * k) * 2 + c, (X,)),
    "softmax": (lambda k, c: lambda m: hg.nn.softmax(m * k, axis=-1), (M,)),
    "matmul": (lambda k, c: lambda m: (m @ m.T) * k + c, (M,)),
    "attention": (lambda k, c: lambda m: hg.nn.softmax((m @ m.T) * k, axis=-1) @ m, (M,)),
    "gradient": (lambda k, c: hg.grad(lambda x: hnp.sum(hnp.tanh(x * k) ** 2 + c * x)), (X,)),
    "gradient of a choice": (lambda k, c: hg.grad(lambda x, y: (k / hnp.where(x * y > c, y, hnp.tanh(x) - x * c)).sum(), argnums=(0, 1)), (X, Y)),
    "products with signs": (lambda k, c: lambda x, y: y * x + -(x * k) + (-(y * c) - x * k), (X, Y)),
    "a product that comes late": (lambda k, c: lambda x, y: hnp.sum((1 + hnp.tanh(y)) + x * c), (X, Y)),
    "products of activations": (lambda k, c: lambda x, y: hg.nn.silu(y) + x * c, (X, Y)),
    "vmap": (lambda k, c: hg.vmap(lambda r: hnp.sum(r * k) + c), (M,)),
    "difference": (lambda k, c: lambda x: (x * k) - (x * c), (X,)),
    "folded": (lambda k, c: lambda x: x + hnp.exp(hnp.float32(k) * 0.1), (X,)),
    "counter": (lambda k, c: lambda x: x * (hnp.arange(97) * k) + hnp.arange(97), (X,)),
    "loop": (lambda k, c: lambda x: hg.fori_loop(0, 5, lambda i, a: a * k + x, x) + c, (X,)),
    "integers": (lambda k, c: lambda n: (n * int(k) + int(c)) // 3, (N,)),
    "integer quotient": (lambda k, c: lambda n: n // (int(k) or 7) + n % (int(c) or 3), (N,)),
    "index": (lambda k, c: lambda x, n: x[(n + int(k)) % 97], (X, N)),
    "comparison": (lambda k, c: lambda n: hnp.sum(n < int(k)), (N,)),
}
NUMBERS = [
    (3.0, 0.7),
    (3.25, 0.7),
    (5.5, -1.3),
    (-7.125, 11.0),
    (4.0, 3.0),
    (0.3, 0.3),
    (2.0, 0.5),
    (1.0, -1.0),
    (0.0, -0.0),
    (9.5, 8.0),
    (3, 7),
    (6, 5),
]


def _bits(x: Any) -> Any:
    return [(np.asarray(v).dtype, np.asarray(v).tobytes()) for v in hg.tree.leaves(x)]


@pytest.mark.parametrize("precision", ["standard", "exact"])
@pytest.mark.parametrize("name", FORMS)
def test_bits_do_not_depend_on_what_ran_before(name: str, precision: str) -> None:
    make, args = FORMS[name]

    def run(k: Any, c: Any) -> Any:
        return _bits(hg.jit(make(k, c), precision=precision)(*args))

    shared_programs.clear()
    shared = [run(*n) for n in NUMBERS]
    again = [run(*n) for n in NUMBERS[::-1]][::-1]
    for n, a, b in zip(NUMBERS, shared, again, strict=True):
        shared_programs.clear()
        assert run(*n) == a == b, n


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "complex64", "int8", "uint32", "bool"])
def test_types(dtype: str) -> None:
    x = hnp.arange(6).astype(dtype)
    forms: list[Callable[[Any], Callable[..., Any]]] = [lambda k: lambda x: x * k, lambda k: lambda x: x + k, lambda k: lambda x: x / k]
    for make in forms:
        for k in (3, 5, 7.5, 11.5, 2.5j, 3.5j):
            shared = hg.jit(make(k))(x)
            shared_programs.clear()
            made = hg.jit(make(k))(x)
            assert made.dtype == shared.dtype
            assert np.asarray(made).tobytes() == np.asarray(shared).tobytes()


def _closure(k: Any) -> Callable[..., Any]:
    return lambda x: hnp.sin(x * k) + k


def _default(k: Any) -> Callable[..., Any]:
    return lambda x, *, k=k: hnp.sin(x * k) + k


_k: Any = 0


def _global(k: Any) -> Callable[..., Any]:
    global _k
    _k = k
    return lambda x: hnp.sin(x * _k) + _k


@pytest.mark.parametrize("make", [_closure, _default, _global])
def test_one_program_for_all_numbers(make: Callable[..., Any], compilations: list[Any]) -> None:
    shared_programs.clear()
    for k in [3, 5, 7, 0.3, 100, 11.25]:
        f = hg.jit(make(k))
        for _ in range(3):
            np.testing.assert_allclose(f(X), np.sin(X * np.float32(k)) + np.float32(k), rtol=1e-5)
    assert len(compilations) == 2


def test_the_same_function_again_is_not_compiled_again(compilations: list[Any]) -> None:
    shared_programs.clear()
    for _ in range(3):
        hg.jit(lambda x: hnp.exp(x) @ x)(X)
    assert len(compilations) == 1


def test_numbers_that_decide_shapes_and_branches(compilations: list[Any]) -> None:
    def make(k: int) -> Callable[..., Any]:
        return lambda x: x[:k] * k if k % 2 else hnp.broadcast_to(x[:1] - k, (k, 2))

    for k in [3, 4, 5, 6, 3, 7]:
        expected = X[:k] * k if k % 2 else np.broadcast_to(X[:1] - k, (k, 2))
        np.testing.assert_array_equal(hg.jit(make(k))(X), expected.astype(np.float32))


def test_donated_arguments_and_native_calls() -> None:
    for k in (3.5, 4.5, 5.5, 6.5):
        f = hg.jit(_scaled(k), donate_argnums=0)
        for _ in range(3):
            x = hg.tensor(X)
            np.testing.assert_allclose(f(x), X * k + 1, rtol=1e-5)
            with pytest.raises(hg.errors.HologramError):
                x + 1


def _scaled(k: float) -> Callable[..., Any]:
    return lambda x: x * k + 1


def test_scalar_results_do_not_take_the_memory_of_numbers() -> None:
    x = hg.tensor(np.float32(1.5))
    for k in (3.5, 4.5, 5.5, 6.5):
        f = hg.jit(_scaled(k))
        assert [float(f(x)) for _ in range(4)] == [1.5 * k + 1] * 4


def _weighted(w: Any, k: float) -> Callable[..., Any]:
    return lambda x: x * w + k


def test_closed_over_values() -> None:
    w = hg.tensor(Y)
    for weights in (w, hg.tensor(Y * 2), w):
        for k in (3.5, 4.5, 5.5):
            got = hg.jit(_weighted(weights, k))(X)
            np.testing.assert_allclose(got, X * np.asarray(weights) + np.float32(k), rtol=1e-5)


def test_large_values_go_with_their_function() -> None:
    class Note:
        pass

    note, w = Note(), hg.tensor(np.ones(1 << 19, np.float32))
    f = hg.jit((lambda w, note: lambda x: x + w * (note is not None))(w, note))
    f(np.ones(1 << 19, np.float32))
    found = weakref.ref(note)
    del f, w, note
    gc.collect()
    assert found() is None
    assert all(f.nbytes < 1 << 20 for f in shared_programs._families.values())


def test_profiles_count_shared_programs() -> None:
    fs = [hg.jit(_scaled(k)) for k in (3.5, 4.5, 5.5)]
    for f in fs:
        f(X)
    with override(profile=True):
        for f, k in zip(fs, (3.5, 4.5, 5.5), strict=True):
            np.testing.assert_allclose(f(X), X * np.float32(k) + 1, rtol=1e-5, atol=1e-5)


def test_threads() -> None:
    shared_programs.clear()
    wrong: list[Any] = []

    def work(first: int) -> None:
        for k in range(first, first + 20):
            if not np.allclose(hg.jit(_scaled(k + 0.25))(X), X * np.float32(k + 0.25) + 1, rtol=1e-5, atol=1e-5):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(10 * i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_programs_show_what_was_traced() -> None:
    for k in (3.5, 4.5, 5.5):
        f = hg.jit(_scaled(k))
        f(X)
        assert str(k) in f.lower(X).compile().as_text("canonical")
