"""Operators that native code records are those that Python records, and everything else goes to Python."""

from __future__ import annotations

import gc
import inspect
import itertools
import operator
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.backends.native import recording
from hologram.backends.native.code.object_layout import UnknownLayout
from hologram.backends.native.module import why_not_native
from hologram.errors import HologramError
from hologram.ir.leaves import leaf
from hologram.trace import native_operators, operators, recorder
from hologram.trace.lazy_programs.known import _known_expressions
from hologram.trace.operators import DEPTH_LIMIT, lean_operators

pytestmark = pytest.mark.skipif(why_not_native() is not None, reason=f"no native calls: {why_not_native()}")

DTYPES = ("bool", "int8", "uint64", "bfloat16", "float32", "float64", "complex64")
SHAPES: tuple[tuple[int, ...], ...] = ((), (3,), (2, 3), (0,))
NUMBERS: tuple[Any, ...] = (0, 1, -1, 3, 2**70, 0.0, -0.0, 2.5, float("nan"), float("inf"), True, False, 2j, None, "text", [1, 2, 3], 300)


@pytest.fixture(scope="module", autouse=True)
def native() -> None:
    assert _known_expressions() is not None


def tensors(dtype: str) -> Iterator[Any]:
    for shape in SHAPES:
        x = hnp.ones(shape, dtype=dtype)
        yield x  # pending
        yield hg.block_until_ready(hnp.ones(shape, dtype=dtype) * 1)  # realised
        yield hg.tensor(np.ones(shape), dtype=dtype)  # without a node


def weak_tensors() -> Iterator[Any]:
    yield from (hnp.sin(2.5), hnp.add(1, 2), hnp.add(1.5, 2))


def described(result: Any, operands: tuple[Any, ...]) -> Any:
    """What was recorded: nothing of who the nodes are, but for those of the operands."""
    if result is NotImplemented:
        return result
    numbers = {x._node: i for i, x in reversed(list(enumerate(operands))) if isinstance(x, hg.Tensor)}
    return of_node(result._node, numbers), result._weak, result._storage


def of_node(node: Any, numbers: dict[Any, int]) -> Any:
    if node in numbers:
        return numbers[node]
    inputs = [of_node(x, numbers) for x in node.inputs]
    return node.op, None if node.op is leaf else node.attrs, node.shape, node.dtype, node.depth, node.seen, inputs


def outcome(function: Any, *args: Any) -> Any:
    try:
        return described(function(*args), args)
    except (HologramError, TypeError) as e:
        return type(e), str(e)


def same(native: Any, *args: Any) -> None:
    """One function after the other, twice, since the second call may find what the first one has learned."""
    for _ in range(2):
        expected = outcome(native.__wrapped__, *args)
        assert outcome(native, *args) == expected


def names_of(arity: int) -> list[str]:
    python = {n: getattr(f, "__wrapped__", f) for n, f in vars(hg.Tensor).items() if callable(f)}
    return [n for n, f in python.items() if f in lean_operators and lean_operators[f].arity == arity]


BINARY, UNARY = names_of(2), names_of(1)


def test_the_operators_are_found() -> None:
    assert {"__add__", "__rsub__", "__lt__", "__and__"} <= set(BINARY)
    assert set(UNARY) == {"__neg__", "__abs__", "__invert__"}
    assert all(type(vars(hg.Tensor)[name]).__name__ == "operator" for name in BINARY + UNARY)


@pytest.mark.costly(2)
@pytest.mark.parametrize("name", BINARY)
def test_binary_operators_record_what_python_records(name: str) -> None:
    native = vars(hg.Tensor)[name]
    for dtype in DTYPES:
        for x in tensors(dtype):
            for y in NUMBERS:
                same(native, x, y)
        for x, y in itertools.product(tensors(dtype), repeat=2):
            same(native, x, y)


@pytest.mark.parametrize("name", BINARY)
def test_types_that_differ_and_weak_ones(name: str) -> None:
    native = vars(hg.Tensor)[name]
    some = [next(tensors(d)) for d in DTYPES] + list(weak_tensors())
    for x, y in itertools.product(some, repeat=2):
        same(native, x, y)
    for x, y in itertools.product(weak_tensors(), NUMBERS):
        same(native, x, y)
    for y in (np.float32(2), np.ones(3), np.ones((2, 1), np.int8), np.array(3)):
        same(native, some[4], y)


@pytest.mark.parametrize("name", UNARY)
def test_unary_operators_record_what_python_records(name: str) -> None:
    native = vars(hg.Tensor)[name]
    for dtype in DTYPES:
        for x in tensors(dtype):
            same(native, x)
    for x in weak_tensors():
        same(native, x)


def ufuncs() -> list[str]:
    return sorted(n for n, f in vars(hnp).items() if isinstance(f, hnp.ufunc) and type(f.func).__name__ == "operator")


def test_functions_record_what_python_records() -> None:
    names = ufuncs()
    assert {"sin", "add", "maximum", "exp"} <= set(names)
    for name in names:
        f = getattr(hnp, name).func
        for dtype in ("int32", "float32", "complex64"):
            for x in tensors(dtype):
                same(f, *[x] * getattr(hnp, name).nin)
        x = next(tensors("float32"))
        same(f, *[2.5] * getattr(hnp, name).nin)
        same(f)
        same(f, x, x, x)


def test_traces_and_transforms_record_their_own() -> None:
    x = hg.tensor([1.0, 2.0, 3.0])
    f = lambda x: ((x + x) * x - x / 2.5 < 4) * -x  # noqa: E731
    for run in (f, hg.jit(f), hg.vmap(f), lambda x: hg.jvp(f, (x,), (x,))[0], hg.jit(hg.vmap(f))):
        for _ in range(3):
            np.testing.assert_allclose(np.asarray(run(x)), np.where([True, False, False], [-1.0, 0, 0], 0), atol=1e-6)
    np.testing.assert_allclose(np.asarray(hg.grad(lambda x: (x * x + x).sum())(x)), [3, 5, 7])
    np.testing.assert_allclose(np.asarray(hg.grad(hg.grad(lambda x: x * x * x))(hg.tensor(2.0))), 12)


def test_donated_and_leaked_tensors_are_refused() -> None:
    kept = []
    hg.jit(lambda x: kept.append(x) or x)(hg.tensor([1.0]))
    with pytest.raises(hg.errors.LeakedTracerError):
        kept[0] + kept[0]
    x = hg.tensor(np.ones(5000, np.float32))
    hg.jit(lambda x: x + 1, donate_argnums=0)(x)
    with pytest.raises(hg.errors.DonatedBufferError):
        x + x


def test_long_chains_are_realised_as_they_are_recorded() -> None:
    y = x = hg.tensor([1.0])
    for _ in range(DEPTH_LIMIT * 3):
        y = y + x
    assert float(y[0]) == DEPTH_LIMIT * 3 + 1


def test_subclasses_and_other_sides_have_their_say() -> None:
    class Other:
        def __radd__(self, x: Any) -> str:
            return "other"

        def __lt__(self, x: Any) -> str:
            return "less"

    x = hg.tensor([1.0, 2.0])
    assert x + Other() == "other"
    assert (x > Other()) == "less"
    with pytest.raises(TypeError):
        x + object()
    assert isinstance(x + np.ones(2, np.float32), hg.Tensor) and isinstance(np.ones(2, np.float32) + x, hg.Tensor)


def test_operators_are_described_and_bound() -> None:
    x = hg.tensor([1.0, 2.0])
    assert hg.Tensor.__add__.__name__ == "method" and inspect.signature(hg.Tensor.__add__) == inspect.signature(hg.Tensor.__add__.__wrapped__)
    np.testing.assert_array_equal(np.asarray(x.__add__(x)), [2, 4])
    np.testing.assert_array_equal(np.asarray(hg.Tensor.__add__(x, x)), [2, 4])
    np.testing.assert_array_equal(np.asarray(operator.add(x, 1.5)), [2.5, 3.5])
    assert inspect.signature(hnp.sin) is not None and hnp.sin.__name__ == "sin" and hnp.sin.nin == 1
    with pytest.raises(TypeError):
        hg.Tensor.__add__(x)
    with pytest.raises(TypeError):
        hg.Tensor.__add__(x, x, x)
    with pytest.raises(TypeError):
        hnp.add(x, y=x)


def test_settings_that_change_types_are_followed() -> None:
    x = hg.tensor([1, 2, 3], dtype="int32")
    for _ in range(3):
        assert (x / x).dtype == np.float32
    with hg.settings.override(default_float="float64"):
        assert (x / x).dtype == np.float64
    assert (x / x).dtype == np.float32


def test_operands_may_change_while_an_operator_is_recorded() -> None:
    """A collection may begin wherever an object is made, and run Python code: here it gives the operands other nodes."""
    x, y = hg.tensor(np.zeros(3)), hg.tensor(np.zeros(3))

    def change(phase: str, _: Any) -> None:
        x._node, y._node = None, None
        operators.weak_constants.clear()
        junk.extend(b"\x01" * n for n in range(40, 400, 8))

    junk: list[Any] = []
    thresholds = gc.get_threshold()
    for objects in [*range(1, 12)] * 4:
        assert (-x)._node is not None and (x * 2.5)._node is not None and (x + y)._node is not None
        x._node, y._node = None, None  # so that operators make leaves, too
        gc.collect()
        gc.callbacks.append(change)
        gc.set_threshold(objects)
        try:
            found = [x + y, x * 2.5, -y, x < 2.5, y - x]
        finally:
            gc.set_threshold(*thresholds)
            gc.callbacks.pop()
        junk.clear()
        for result, expected in zip(found, (0, 0, 0, True, 0), strict=True):
            np.testing.assert_array_equal(np.asarray(result), [expected] * 3)


def test_python_records_where_a_layout_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> int:
        raise UnknownLayout("another interpreter's")

    before = recorder.pending
    monkeypatch.setattr(native_operators, "_is_native", False)
    monkeypatch.setattr(recording, "slot_offset", fails)
    native_operators.make_native()
    assert recorder.pending is before and not native_operators._is_native


def test_memory_does_not_grow() -> None:
    import sys

    x = hg.tensor([1.0, 2.0])
    y = x + x
    node, before = x._node, None
    for i in range(2000):
        z = x * 2.5 - y
        del z
        if i == 1000:
            before = sys.getrefcount(node), sys.getrefcount(None) if sys.version_info < (3, 12) else 0, sys.getrefcount(node.dtype)
    after = sys.getrefcount(node), sys.getrefcount(None) if sys.version_info < (3, 12) else 0, sys.getrefcount(node.dtype)
    assert before is not None and all(abs(a - b) < 50 for a, b in zip(after, before, strict=True))
    assert operators.weak_constants
