"""Expressions that come again are realised by native code, with the results that Python gives them."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp
from hologram.backends.native.module import why_not_native
from hologram.errors import NonFiniteError, OutOfMemory
from hologram.settings import override
from hologram.trace import lazy
from hologram.trace.lazy_programs import cache, immediate, known

pytestmark = pytest.mark.skipif(why_not_native() is not None, reason=f"no native calls: {why_not_native()}")


@pytest.fixture(params=["compiled", "op by op"])
def at_once(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Expressions are compiled at once, and handed over at their first run; or small ones run op by op, and are handed over at their second."""
    monkeypatch.setattr(known, "RUNS", 1)
    monkeypatch.setattr(immediate, "KERNEL_RUNS", 0)
    monkeypatch.setattr(lazy, "MOVED_PER_WALK", 1)
    lazy.clear()
    with override(op_by_op=request.param == "op by op"):
        yield
    lazy.clear()


def ready(x: Any) -> Any:
    return hg.block_until_ready(x)


def test_what_has_run_before_runs_without_python(walks: list[int]) -> None:
    with override(op_by_op=False):
        x = hg.tensor(np.arange(6.0))
        for i in range(40):
            y = ready((x + i / 7) * x - x)
            np.testing.assert_allclose(np.asarray(y), (np.arange(6.0) + i / 7) * np.arange(6.0) - np.arange(6.0))
    assert len(walks) < 20  # 0, 1 and 2 are numbers that programs have by value; and native code forgets all where a program goes


EXPRESSIONS: dict[str, Callable[[Any, Any], Any]] = {
    "one operand twice": lambda x, y: x * x,
    "two operands": lambda x, y: x * y,
    "two, exchanged": lambda x, y: y * x,
    "a difference": lambda x, y: x - y,
    "exchanged": lambda x, y: y - x,
    "shared": lambda x, y: (x + y) * (x + y),
    "a shared node": lambda x, y: (lambda z: z * z)(x + y),
    "a float": lambda x, y: x * 1.25,
    "another float": lambda x, y: x * 3.75,
    "a zero": lambda x, y: x * 0.0,
    "a negative zero": lambda x, y: x * -0.0,
    "a one": lambda x, y: x * 1.0,
    "a NaN": lambda x, y: x + float("nan"),
    "an infinity": lambda x, y: x * float("inf"),
    "an integer": lambda x, y: x * 3,
    "another integer": lambda x, y: x * 5,
    "a sum": lambda x, y: x.sum(),
    "a mean": lambda x, y: x.mean() + y,
    "an axis": lambda x, y: x.reshape(2, 3).sum(axis=0),
    "another axis": lambda x, y: x.reshape(2, 3).sum(axis=1),
    "another shape": lambda x, y: x.reshape(3, 2).sum(axis=0),
    "a slice": lambda x, y: x[1:4] + y[1:4],
    "another slice": lambda x, y: x[2:5] + y[1:4],
    "a comparison": lambda x, y: hnp.where(x < y, x, y),
    "another": lambda x, y: hnp.where(x <= y, x, y),
    "an update": lambda x, y: x.at[2].set(7.5) + y,
    "an update elsewhere": lambda x, y: x.at[3].set(7.5) + y,
    "a function": lambda x, y: hnp.sin(x) + hnp.exp(-y),
    "a cast": lambda x, y: (x + y).astype("float32"),
    "an integer cast": lambda x, y: (x + y).astype("int32"),
    "a product": lambda x, y: x.reshape(2, 3) @ y.reshape(3, 2),
    "a sort": lambda x, y: hnp.sort(x) - y,
    "a cumulative sum": lambda x, y: hnp.cumsum(x + y),
    "a constant": lambda x, y: x + hnp.arange(6.0),
    "a result of several": lambda x, y: hg.linalg.qr(x.reshape(3, 2) + y.reshape(3, 2))[1],
    "another of them": lambda x, y: hg.linalg.qr(x.reshape(3, 2) + y.reshape(3, 2))[0],
    "two of them": lambda x, y: (lambda q, r: q @ r)(*hg.linalg.qr(x.reshape(3, 2) + y.reshape(3, 2))),
    "a loop": lambda x, y: hg.fori_loop(0, 3, lambda i, x: x * y + i, x),
    "nothing but constants": lambda x, y: hnp.arange(6.0) * 2,
}


def test_each_expression_is_told_from_the_others(at_once: None) -> None:
    """All of them, again and again, with other operands each time, in the order that a seed gives."""
    rng = np.random.default_rng(0)
    for _ in range(6):
        for name in rng.permutation(list(EXPRESSIONS)):
            a, b = rng.standard_normal((2, 6))
            found = ready(EXPRESSIONS[name](hg.tensor(a), hg.tensor(b)))
            with np.errstate(all="ignore"), override(op_by_op=True):
                expected = hg.jit(EXPRESSIONS[name], dynamic=False)(a, b)
            np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-12, atol=1e-12, err_msg=name)
            np.testing.assert_array_equal(np.signbit(np.asarray(found)), np.signbit(np.asarray(expected)), err_msg=name)
    assert known._realise is not None and len(known._known_expressions()) > 20


@pytest.mark.parametrize("dtype", ["int32", "float32", "float64", "complex64"])
@pytest.mark.parametrize("shape", [(), (1,), (5,), (2, 3), (0,)])
def test_types_and_shapes_are_told_from_others(at_once: None, dtype: str, shape: tuple[int, ...]) -> None:
    whole = (np.arange(np.prod(shape, dtype=int)) + 2).reshape(shape)
    a = whole.astype(dtype)
    for other in ("int32", "float32", "float64", "complex64"):
        for _ in range(3):
            x, y = hg.tensor(a), hg.tensor(whole.astype(other))
            found = ready(x * y + x)
            np.testing.assert_allclose(np.asarray(found), whole * whole + whole, rtol=1e-6)
            assert found.shape == shape


def test_what_is_read_twice_is_kept(at_once: None, walks: list[int]) -> None:
    """A pending value that a second expression needs is computed once more at most, natively too."""
    for _ in range(4):
        x = hg.tensor(np.arange(1.0, 5.0))
        y = hnp.exp(x) * x
        z, w, v = y + 1.5, y * 2.5, y - 3.5
        expected = np.exp(np.arange(1.0, 5.0)) * np.arange(1.0, 5.0)
        for found, e in ((z, expected + 1.5), (w, expected * 2.5), (v, expected - 3.5), (y, expected)):
            np.testing.assert_allclose(np.asarray(ready(found)), e, rtol=1e-14)
        assert y._node.op.name == "leaf"


def test_several_are_realised_together(at_once: None, walks: list[int]) -> None:
    """Values that share work, one of them twice, one realised already, one that only another needs."""
    for k in range(12):
        x = hg.tensor(np.arange(4.0) + k)
        y = x * x
        z, w, done = y + 1.25, y - x, ready(x + 2.5)
        hg.eval(z, w, done, z)
        assert y._storage is None
        for found, e in (
            (z, (np.arange(4.0) + k) ** 2 + 1.25),
            (w, (np.arange(4.0) + k) ** 2 - np.arange(4.0) - k),
            (done, np.arange(4.0) + k + 2.5),
        ):
            np.testing.assert_array_equal(np.asarray(found), e)
    assert len(walks) < 12
    for k in range(5):  # two results of a program that computes one
        a, b = x + 1.5, x + 1.5
        hg.eval(*((b, a) if k % 2 else (a, b)))
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


def test_results_of_one_op_that_others_hold(at_once: None) -> None:
    """What an op gives is computed together, for whoever holds it: nobody, or a pending value."""
    rng = np.random.default_rng(0)
    for k in range(12):
        a = rng.standard_normal((4, 3))
        q, r = hg.linalg.qr(hg.tensor(a) * 1.5)
        held = r if k % 3 else r * 2.5
        del r
        np.testing.assert_allclose(np.asarray(ready(q + 0.5)), np.linalg.qr(a * 1.5)[0] + 0.5, atol=1e-12)
        np.testing.assert_allclose(np.asarray(held), np.linalg.qr(a * 1.5)[1] * (1.0 if k % 3 else 2.5), atol=1e-12)


N = 1 << 16


def address(x: Any) -> int:
    return int(x._storage.data)


HOLDERS: dict[str, tuple[Callable[[Any], Any], Callable[[np.ndarray], Any]]] = {  # of a Tensor, and what of its elements they show
    "a Tensor": (lambda x: x, lambda a: a),
    "a view": (lambda x: x[1:], lambda a: a[1:]),
    "a pending view": (lambda x: x.reshape(2, -1), lambda a: a.reshape(2, -1)),
    "a pending expression": (lambda x: x * 2.0, lambda a: a * 2.0),
    "an array": (np.asarray, lambda a: a),
    "an array of a part": (lambda x: np.asarray(x[5:10]), lambda a: a[5:10]),
    "a memoryview": (lambda x: memoryview(np.asarray(x)), lambda a: a),
    "DLPack": (np.from_dlpack, lambda a: a),
    "a closure": (lambda x: lambda: x, lambda a: a),
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_values_that_somebody_holds_are_not_written_over(holder: str, at_once: None) -> None:
    x = ready(hnp.zeros(N, dtype="float32"))
    for i in range(12):
        hold, shown = HOLDERS[holder]
        held = hold(x) if i % 3 == 2 else None
        before = np.array(np.asarray(x))
        x = ready(x.at[i].set(i + 1.0))
        assert float(x.sum()) == sum(range(1, i + 2))
        if held is not None:
            np.testing.assert_array_equal(np.asarray(held() if callable(held) else held), shown(before))
        del held
        gc.collect(0)


def test_updates_write_in_place_natively(at_once: None, walks: list[int]) -> None:
    x = ready(hnp.zeros(N, dtype="float32"))
    for i in range(4):
        x = ready(x.at[i].set(1.0))
    place = address(x)
    walks.clear()
    for i in range(100):
        x = ready(x.at[i].add(1.0)) if i % 2 else ready(x.at[i].set(1.0))
    assert len(walks) <= 6 and address(x) == place
    y = ready(hnp.zeros(N, dtype="float32"))
    for i in range(100):
        y[i] = 2.0
        ready(y)
    assert float(y.sum()) == 200


def test_the_longest_programs_copy_without_native_code(at_once: None, walks: list[int]) -> None:
    """A copy of a large array takes long: Python makes it, and gives up the interpreter's lock."""
    x = ready(hnp.zeros(1 << 21, dtype="float32"))
    kept = []
    for i in range(5):
        kept.append(x)
        x = ready(x.at[i].set(1.0))
    assert [float(k.sum()) for k in kept] == [0, 1, 2, 3, 4]


def test_settings_are_followed(at_once: None, walks: list[int]) -> None:
    x = hg.tensor([1.0, 2.0, 3.0])
    for _ in range(3):
        ready(x * x + x)
    assert len(known._known_expressions()) > 0
    with override(debug=2):
        assert len(known._known_expressions()) == 0
        walks.clear()
        ready(x * x + x)
        assert walks
    with override(nans="on"), pytest.raises(NonFiniteError):
        for _ in range(3):
            ready((x - x) / (x - x))


def test_programs_may_go(at_once: None) -> None:
    x = hg.tensor([1.0, 2.0, 3.0])
    for on in (False, True):  # steps are not the cache's: they stay
        lazy.clear()
        with override(op_by_op=on):
            for _ in range(3):
                ready(x * x + x)
            assert len(known._known_expressions()) > 0
            cache.programs.clear()
            gc.collect()
            assert len(known._known_expressions()) == on
    np.testing.assert_array_equal(np.asarray(ready(x * x + x)), [2, 6, 12])


def test_many_expressions_do_not_pile_up(at_once: None, monkeypatch: pytest.MonkeyPatch) -> None:
    from hologram.backends.native import expressions

    monkeypatch.setattr(expressions, "MAX_EXPRESSIONS", 8)
    x = hg.tensor(np.arange(40.0))
    for _ in range(3):
        for k in range(1, 30):
            np.testing.assert_array_equal(np.asarray(ready(x[:k] + x[-k:])), np.arange(40.0)[:k] + np.arange(40.0)[-k:])
    assert len(known._known_expressions()) <= 8


def test_memory_that_cannot_be_had(at_once: None) -> None:
    x = ready(hnp.ones(1 << 14))
    for _ in range(3):
        ready(hnp.broadcast_to(x, (8, 1 << 14)) * 1.5)
    y = hnp.broadcast_to(x, (8, 1 << 14)) * 1.5
    with override(memory_limit=1):
        for _ in range(2):
            with pytest.raises(OutOfMemory, match="test_known"):
                ready(y)
    np.testing.assert_array_equal(np.asarray(y), 1.5)


def test_an_expression_may_go_while_it_runs(at_once: None) -> None:
    """A collection may begin wherever an object is made, and run Python code: here it clears the caches, and uses the memory that was freed."""
    junk: list[Any] = []

    def forget(phase: str, _: Any) -> None:
        lazy.clear()
        junk.extend(b"\x01" * n for n in range(100, 3000, 8))

    def multiples() -> list[Any]:
        return [x * (i + 1.5) for i in range(9)]

    x = hg.tensor(np.arange(5.0))
    thresholds = gc.get_threshold()
    for objects in range(1, 30):  # until a collection begins
        for _ in range(3):
            hg.eval(*multiples())
        assert len(known._known_expressions()) > 0
        results = multiples()
        gc.collect()
        gc.callbacks.append(forget)
        gc.set_threshold(objects)
        try:
            hg.eval(*results)
        finally:
            gc.set_threshold(*thresholds)
            gc.callbacks.pop()
        junk.clear()
        for i, y in enumerate(results):
            np.testing.assert_array_equal(np.asarray(y), np.arange(5.0) * (i + 1.5))
            assert y.dtype == np.float64


def test_threads(at_once: None) -> None:
    """Threads realise the same pending values, and their own, while others do."""
    x = hg.tensor(np.arange(100.0))
    wrong: list[Any] = []

    def work(k: int) -> None:
        for i in range(200):
            y = (x + float(i)) * x
            shared.append(y)
            z = shared[(7 * i) % len(shared)]
            found = np.asarray(ready(z - x)), np.asarray(ready(y)), np.asarray(ready(z))
            if not np.array_equal(found[0], found[2] - np.arange(100.0)) or found[1][1] != i + 1:
                wrong.append((k, i))

    shared: list[Any] = [x + 1.0]
    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


# --- random programs -------------------------------------------------------------------------------------------------

STEPS = ("add", "sub", "mul", "where", "scale", "int", "set", "assign", "slice", "flip", "sum", "sin", "read", "hold", "drop", "eval")
STEP = st.tuples(st.sampled_from(STEPS), st.integers(0, 7), st.integers(0, 7), st.sampled_from([0.5, -0.0, 1.0, 2.75]))


def random_program(xp: Any, x: Any, program: list[tuple[str, int, int, float]]) -> list[Any]:
    """Values that a program of steps on numbered values has made, in NumPy or lazily."""
    lazily = xp is hnp
    values = [x, x + 1.0, x * 0.5]
    read = []
    for what, i, j, c in program:
        a, b = values[i % len(values)], values[j % len(values)]
        if what in ("add", "sub", "mul"):
            values.append({"add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b}[what](a, b))
        elif what == "where":
            values.append(xp.where(a < b, a, b))
        elif what == "scale":
            values.append(a * c)
        elif what == "int":
            values.append(a + j)
        elif what == "set":
            y = a.at[i].set(c) if lazily else a.copy()
            if not lazily:
                y[i] = c
            values[i % len(values)] = y
        elif what == "assign":
            y = a.copy() if not lazily else a.__copy__()
            y[j] = c
            values[i % len(values)] = y
        elif what == "slice":
            values.append(xp.concatenate([a[j:], a[:j]]))
        elif what == "flip":
            values.append(a[::-1])
        elif what == "sum":
            values.append(a - a.sum())
        elif what == "sin":
            values.append(xp.sin(a))
        elif what == "read":
            read.append(np.array(ready(a) if lazily else a))
        elif what == "hold":
            read.append(np.asarray(ready(a)) if lazily else a.copy())
        elif what == "eval":
            hg.eval(*(values[: 1 + j] if lazily else ()))
        elif len(values) > 3:
            del values[i % len(values)]
    return read + [np.array(ready(v) if lazily else v) for v in values]


@examples(deadline=None, max_examples=40)
@given(st.lists(STEP, min_size=4, max_size=20), st.booleans())
def test_programs_of_steps_have_the_values_of_numpy(program: list[tuple[str, int, int, float]], large: bool) -> None:
    """Each program runs several times, so that native code knows its expressions; whatever is held keeps its value."""
    n = 4096 if large else 8
    runs, known.RUNS = known.RUNS, 1
    try:
        for k in range(3):
            a = np.linspace(0.1, 1.0 + k, n)
            expected = random_program(np, a, program)
            for found, e in zip(random_program(hnp, hg.tensor(a), program), expected, strict=True):
                np.testing.assert_allclose(found, e, rtol=1e-9, atol=1e-9 * max(1.0, float(np.max(np.abs(e)))))
    finally:
        known.RUNS = runs
