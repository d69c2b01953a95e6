"""Lazy programs change an array where it is when nobody else holds its value, and only then."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import DonatedBufferError, IndexOutOfRange, IntegerRangeError, OutOfMemory
from hologram.settings import override
from hologram.trace import lazy
from hologram.trace.lazy_programs import known

N = 8192  # elements: more bytes than are copied sooner than counted


def realised(x: Any) -> Any:
    hg.eval(x)
    return x


def updated(x: Any, i: Any, value: float) -> Any:
    return realised(x.at[i].set(value))


@pytest.fixture
def index() -> Any:
    """An index in memory, and the program of an update compiled: the call that compiles donates nothing."""
    i = hg.tensor(np.int64(3))
    updated(realised(hnp.zeros(N)), i, 1.0)
    return i


def address(x: Any) -> int:
    return int(x._storage.data)


def test_a_value_that_is_let_go_is_changed_where_it_is(index: Any) -> None:
    x = realised(hnp.zeros(N))
    before = address(x)
    x = x.at[index].set(1.0)
    hg.eval(x)
    assert address(x) == before
    assert np.asarray(x).sum() == 1


HOLDERS: dict[str, Callable[[Any], Any]] = {
    "a Tensor": lambda x: x,
    "a NumPy view": np.asarray,
    "a part of it": lambda x: x[:5],
    "an expression": lambda x: x * 2.0,
    "an expression of an expression": lambda x: (x * 2.0).sum() + 1.0,
    "DLPack": lambda x: np.from_dlpack(x),
    "a memoryview": lambda x: memoryview(np.asarray(x)),
    "a closure of a function that is traced later": lambda x: hg.jit(lambda y: y + x),
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_a_value_that_somebody_holds_stays(index: Any, holder: str) -> None:
    x = realised(hnp.zeros(N))
    held = HOLDERS[holder](x)
    x = x.at[index].set(1.0)
    hg.eval(x)
    found = held(realised(hnp.zeros(N))) if callable(held) else held
    assert np.asarray(found).sum() in (0, 1 if "expression of" in holder else 0)
    assert np.asarray(x).sum() == 1


def test_the_pending_way_to_an_update_stays_right(index: Any) -> None:
    x = realised(hnp.ones(N))
    for _ in range(3):  # the first compiles
        y = x * 3.0
        z = realised(y.at[index].set(0.0))
        assert float(z.sum()) == 3 * (N - 1)
        assert float(y.sum()) == 3 * N
    w = x * 3.0
    del x
    z = realised(w.at[index].set(0.0))
    gc.collect()
    assert float(w.sum()) == 3 * N


def test_borrowed_memory_stays(index: Any) -> None:
    a = np.zeros(N, np.float32)
    x = hnp.asarray(a)
    x = x.at[index].set(1.0)
    hg.eval(x)
    assert a.sum() == 0


def test_a_transform_under_way_keeps_values(index: Any) -> None:
    def f(x: Any) -> Any:
        y = x * x
        hg.eval(y)
        y = y.at[index].set(0.0)
        hg.eval(y)
        return y.sum()

    for _ in range(3):
        g = np.asarray(hg.grad(f)(hnp.full(N, 2.0)))
        assert g[3] == 0 and g.sum() == 4 * (N - 1)


# --- loops of updates ------------------------------------------------------------------------------------------------

SIDE = 64  # of a matrix of more bytes than are copied sooner than counted
PART = 5


def assigned(x: Any, key: Any, value: Any) -> Any:
    x[key] = value
    return x


VECTOR = hg.tensor(np.arange(PART, dtype=np.float64))
ROW = hg.tensor(np.arange(SIDE, dtype=np.float64))

# Steps of a loop, for Hologram and NumPy alike: each takes a matrix and a counter.
STEPS: dict[str, Callable[[Any, int], Any]] = {
    "a float": lambda x, i: x.at[i, -i].set(i * 1.25),
    "an int": lambda x, i: x.at[i, 3].set(i),
    "a bool": lambda x, i: x.at[i, i].set(i % 2 == 0),
    "a NumPy index": lambda x, i: x.at[np.int8(i), np.uint64(3)].set(1.5),
    "a NumPy number": lambda x, i: x.at[i, 2].set(np.float32(i)),
    "a NumPy integer": lambda x, i: x.at[i, 2].set(np.int16(i)),
    "a Tensor": lambda x, i: x.at[i, 2].set(VECTOR.sum()),
    "added": lambda x, i: x.at[i, 1].add(i * 0.5),
    "subtracted": lambda x, i: x.at[i, 1].subtract(i * 0.5),
    "multiplied": lambda x, i: x.at[i, 1].multiply(i * 0.5),
    "the greater": lambda x, i: x.at[i, 1].max(i * 0.5),
    "assigned": lambda x, i: assigned(x, (i, i), i * 0.25),
    "a row": lambda x, i: assigned(x, i, ROW),
    "a row of numbers": lambda x, i: assigned(x, -i, i * 2.0),
    "a column": lambda x, i: assigned(x, (slice(None), i), i * 2.0),
    "a part of a row": lambda x, i: assigned(x, (3, slice(i, i + PART)), VECTOR),
    "a block": lambda x, i: assigned(x, (slice(i, i + PART), slice(2, 9)), float(i)),
    "what stands before": lambda x, i: x.at[i, 1].set(x[i - 1, 1] + 2.0),
    "the row before": lambda x, i: assigned(x, i, x[i - 1] * 0.5),
    "a number that is read": lambda x, i: x.at[i, 1].set(float(x[i, 2]) + i),
    "any of its modes": lambda x, i: x.at[i, 1].set(1.5, mode="drop"),
}


@pytest.mark.parametrize("name", STEPS)
def test_a_loop_compiles_at_its_first_steps_and_then_writes_in_place(name: str, compilations: list[Any]) -> None:
    step = STEPS[name]
    values = np.random.default_rng(0).random((SIDE, SIDE))
    x = realised(hg.tensor(values))
    for i in range(1, 3):
        x = step(x, i)
        hg.eval(x)
    compiled, place = len(compilations), address(x)
    for i in range(3, 20):
        x = step(x, i)
        hg.eval(x)
        assert address(x) == place
    assert len(compilations) == compiled


@pytest.mark.parametrize("name", STEPS)
def test_a_loop_in_place_gives_what_one_with_copies_gives(name: str) -> None:
    step = STEPS[name]
    values = np.random.default_rng(0).random((SIDE, SIDE))
    x, y = realised(hg.tensor(values)), realised(hg.tensor(values))
    held = []
    for i in range(1, 9):
        x = realised(step(x, i))
        held.append(np.asarray(y))
        y = realised(step(y, i))
    np.testing.assert_array_equal(np.asarray(x), np.asarray(y))
    np.testing.assert_array_equal(held[0], values)


def test_a_whole_array_times_a_number_that_changes_is_computed_where_it_is() -> None:
    x = realised(hnp.ones(N))
    places = set()
    for i in range(20):
        with override(op_by_op=False):
            x = x * (1.0 + i / 8)
            hg.eval(x)
        if i > 8:
            places.add(address(x))
    assert len(places) == 1


@pytest.mark.parametrize(
    ("dtype", "value", "error"),
    [(np.int8, 128, IntegerRangeError), (np.uint16, -1, IntegerRangeError), (np.float32, 1j, TypeError), (np.int64, 2**63, IntegerRangeError)],
)
def test_numbers_that_do_not_fit_raise(dtype: Any, value: Any, error: Any) -> None:
    x = hnp.zeros(5, dtype=dtype)
    with pytest.raises(error, match="does not fit"):
        x.at[1].set(value)
    with pytest.raises(error, match="does not fit"):
        x[1] = value
    assert not np.asarray(x).any()


@pytest.mark.parametrize("key", [5, -6, np.int64(5), (1, 0), (slice(0, 2), 3)])
def test_known_indices_out_of_range_raise_where_the_user_stands(key: Any) -> None:
    x = hnp.zeros(5)
    with pytest.raises(IndexOutOfRange, match="test_donation.py"):
        x.at[key].set(1.0)
    with pytest.raises(IndexOutOfRange, match="test_donation.py"):
        x[key] = 1.0
    with pytest.raises(IndexOutOfRange, match="test_donation.py"):
        x[key]


VALUES = [
    0.0,
    -0.0,
    1.5,
    -3,
    7,
    250,
    True,
    1e300,
    float("nan"),
    float("inf"),
    2**53 + 1,
    np.float64(0.1),
    np.float32(0.1),
    np.int64(-3),
    np.uint8(200),
]


@pytest.mark.filterwarnings("ignore:invalid value", "ignore:overflow")
@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint8, np.int64, np.uint64, np.float16, np.float32, np.float64, np.complex64])
def test_numbers_become_elements_as_in_traces(dtype: Any) -> None:
    x = hnp.ones(9, dtype=dtype)
    for value in VALUES:
        try:
            expected = np.asarray(hg.jit(lambda t, v=value: t.at[3].set(v))(x))
        except IntegerRangeError:
            continue
        assert np.asarray(x.at[3].set(value)).tobytes() == expected.tobytes(), value


def test_threads_that_realise_one_update_apply_it_once() -> None:
    x = realised(hnp.zeros(N))
    for i in range(200):
        x = x.at[3].add(1.0)
        read = x * 1.0
        threads = [threading.Thread(target=hg.eval, args=(t,)) for t in (x, read)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert float(x[3]) == float(read[3]) == i + 1


class Versions:
    """Values of a matrix: Tensors, and what NumPy has for each."""

    def __init__(self) -> None:
        first = np.random.default_rng(1).random((SIDE, SIDE))
        self.kept: list[tuple[Any, np.ndarray]] = [(hg.tensor(first), first.copy())]
        self.rows: list[tuple[Any, np.ndarray]] = []  # views of them

    def step(self, what: str, which: int, i: int, j: int, value: float) -> None:
        which %= len(self.kept)
        x, a = self.kept[which]
        if what in ("set", "add"):
            key = (i, j) if j % 3 else i if j % 2 else (slice(i, i + PART), j)
            b = a.copy()
            b[key] = b[key] + value if what == "add" else value
            x = getattr(x.at[key], what)(value)
            (self.kept.append if j % 4 == 0 else lambda pair: self.kept.__setitem__(which, pair))((x, b))
        elif what == "assign":
            x[i, j], a[i, j] = value, value
        elif what == "move":
            x[i], a[i] = x[j], a[j].copy()
        elif what == "view":
            self.rows.append((x[i], a[i]))
        elif what == "assign to a view" and self.rows:
            row, b = self.rows[which % len(self.rows)]
            row[j], b[j] = value, value
        elif what == "export":
            held = np.asarray(x)
            self.kept[which] = (x.at[i, j].set(value), a.copy())
            self.kept[which][1][i, j] = value
            hg.eval(self.kept[which][0])
            np.testing.assert_array_equal(held, a)
        elif what == "read":
            assert float(x[i, j]) == a[i, j]
        elif what == "drop" and len(self.kept) > 1:
            del self.kept[which]
        elif what == "eval":
            hg.eval(x)
        elif what == "copy":
            self.kept.append((x.__copy__(), a.copy()))


WHAT = ("set", "add", "assign", "move", "view", "assign to a view", "export", "read", "drop", "eval", "copy")
PLACE = st.integers(0, SIDE - 1)


@settings(deadline=None, max_examples=25)
@given(st.lists(st.tuples(st.sampled_from(WHAT), st.integers(0, 9), PLACE, PLACE, st.sampled_from([0.5, 1.25, -3.0])), min_size=3, max_size=25))
def test_every_version_keeps_its_values(program: list[tuple[str, int, int, int, float]]) -> None:
    versions = Versions()
    for step in program:
        versions.step(*step)
    for x, a in versions.kept + versions.rows:
        np.testing.assert_array_equal(np.asarray(x), a)


@pytest.mark.parametrize("when", ["before", "after"])
def test_an_interrupt_never_makes_an_update_twice(index: Any, when: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an interrupted update in place has left is refused, since nobody knows whether it has been made."""
    x = realised(hnp.zeros(N))
    hg.eval(x.at[index].add(1.0))  # compiled
    x = x.at[index].add(1.0)
    hg.eval(x)
    run = lazy.run

    def interrupted(executable: Any, inputs: Any, *rest: Any) -> Any:
        if when == "after":
            run(executable, inputs, *rest)
        raise KeyboardInterrupt

    x = x.at[index].add(1.0)
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(lazy, "run", interrupted)
        patched.setattr(known, "_realise", None)  # native code, which no interrupt ends halfway
        hg.eval(x)
    for read in (np.asarray, lambda x: hg.eval(x + 1), lambda x: float(x[3]), repr):
        with pytest.raises(DonatedBufferError, match="interrupted"):
            read(x)


def test_an_update_without_memory_can_be_made_again(index: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x = realised(hnp.zeros(N))
    hg.eval(x.at[index].add(1.0))
    x = x.at[index].add(1.0)

    def fails(*_: Any) -> Any:
        raise OutOfMemory("none is left")

    with monkeypatch.context() as patched, pytest.raises(OutOfMemory):
        patched.setattr(lazy, "run", fails)
        patched.setattr(known, "_realise", None)
        hg.eval(x)
    assert float(x[3]) == 1.0
