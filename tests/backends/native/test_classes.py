"""Jitted calls with containers of classes: served without tracing anew, and as Python code would serve them."""

from __future__ import annotations

import dataclasses
import gc
import sys
import threading
from collections import OrderedDict, namedtuple
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.backends.native.dispatch import why_not_native
from hologram.trace import tree
from hologram.trace.call import jit as jit_module

pytestmark = pytest.mark.skipif(why_not_native() is not None, reason="calls go through Python")


@hg.tree.register
@dataclasses.dataclass
class Plain:
    a: Any
    b: Any


@dataclasses.dataclass(frozen=True, slots=True)
class Slotted:
    a: Any
    b: Any
    name: str = "slotted"


hg.tree.register(Slotted, meta_fields=("name",))


class Pair(NamedTuple):
    a: Any
    b: Any


class Renewing(Pair):
    """A named tuple whose items are not what it gives."""

    def __iter__(self) -> Iterator[Any]:
        return iter((self[1], self[0]))


@hg.tree_util.register_pytree_node_class
class Flat:
    log: list[str] = []

    def __init__(self, a: Any, b: Any, data: Any = "flat") -> None:
        self.a, self.b, self.data = a, b, data

    def tree_flatten(self) -> Any:
        return (self.a, self.b), self.data

    @classmethod
    def tree_unflatten(cls, data: Any, children: Any) -> Flat:
        return cls(*children, data)


class Renewed:
    """Its parts are made anew each time, as an iterator."""

    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = a, b


hg.tree.register(
    Renewed, lambda x: (iter([(y := hnp.asarray(p)).astype(y.dtype).copy().block_until_ready() for p in (x.a, x.b)]), None), lambda _, c: Renewed(*c)
)


@dataclasses.dataclass
class Computed:
    inner: Any

    @property
    def half(self) -> Any:
        return self.inner * np.float32(0.5)


hg.tree.register(Computed, unflatten=lambda data, children: Computed(children[0] * 2), data_fields=("half",))

KINDS = {
    "dataclass": Plain,
    "slots": Slotted,
    "named tuple": Pair,
    "named tuple with an iterator": Renewing,
    "methods": Flat,
    "parts made anew": Renewed,
    "OrderedDict": lambda a, b: OrderedDict(z=a, a=b),
    "dict of integers": lambda a, b: {7: a, 3: b},
    "Partial": lambda a, b: hg.tree_util.Partial(hnp.add, a, b),
    "nested": lambda a, b: [Plain(Pair(a, None), Flat(b, (), ("data", 1))), {"s": Slotted(1.0, a)}],
}


def arrays(dtype: Any = np.float32) -> tuple[Any, Any]:
    a, b = hnp.asarray(np.arange(3, dtype=dtype)), hnp.asarray(np.arange(4, dtype=dtype) + 10)
    return a.block_until_ready(), b.block_until_ready()


def natively(f: Any, *args: Any, calls: int = 3) -> Any:
    """The result of the last of some calls, none of which but the first reaches Python code of ``jit``."""
    f(*args)
    seen: list[Any] = []
    own = jit_module.Jitted._specialised
    try:
        jit_module.Jitted._specialised = lambda self, call: seen.append(call) or own(self, call)  # type: ignore[method-assign, func-returns-value]
        for _ in range(calls):
            made = f(*args)
    finally:
        jit_module.Jitted._specialised = own  # type: ignore[method-assign]
    assert not seen, "the call went through Python"
    return made


def storage_count(x: Any) -> int:
    gc.collect()
    return sys.getrefcount(x._storage)


def equal(a: Any, b: Any) -> bool:
    (x, of), (y, like) = tree.flatten(a), tree.flatten(b)
    return of == like and all(np.array_equal(np.asarray(p), np.asarray(q)) for p, q in zip(x, y, strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_classes_are_served_natively(kind: str) -> None:
    x = KINDS[kind](*arrays())
    double = lambda p: tree.map(lambda v: v * 2, p)  # noqa: E731
    made = natively(hg.jit(double), x)
    with hg.settings.override(native=False):
        by_python = hg.jit(double)
        by_python(x)
        assert equal(made, by_python(x))
    assert type(made) is type(x)


def test_attributes_that_are_computed() -> None:
    x = Computed(np.asarray([2.0, 4.0], np.float32))
    made = natively(hg.jit(lambda p: tree.map(lambda v: v + 1, p)), x)
    assert np.array_equal(np.asarray(made.inner), [4.0, 6.0])  # halved twice, doubled twice, and 1 added between


def test_sparse_matrices_and_keywords() -> None:
    A = hg.sparse.CSR(([1.0, 2.0, 3.0], [0, 2, 1], [0, 2, 3]), shape=(2, 3))
    x = hnp.asarray([1.0, 10.0, 100.0])
    product = hg.jit(lambda A, x: A @ x)
    assert np.array_equal(np.asarray(natively(product, A, x)), [201.0, 30.0])
    scaled = natively(hg.jit(lambda A: A * 2), A)
    assert type(scaled) is hg.sparse.CSR
    assert scaled.shape == (2, 3)
    assert np.array_equal(np.asarray(scaled @ x), [402.0, 60.0])
    B = hg.sparse.BCOO.fromdense(np.asarray(A.todense()))
    assert np.array_equal(np.asarray(natively(product, B, x)), [201.0, 30.0])
    named = hg.jit(lambda *, pair, by: pair.a * by)
    for _ in range(3):
        assert np.array_equal(np.asarray(named(pair=Plain(x, None), by=2.0)), [2.0, 20.0, 200.0])


@pytest.mark.parametrize("kind", [Plain, Flat, Renewed])
def test_mutated_objects_are_read_anew(kind: Any) -> None:
    f = hg.jit(lambda p: tree.map(lambda v: v * 2, p))
    x = kind(*arrays())
    natively(f, x)
    a, b = arrays(np.int32)
    x.a = x.b = b
    made = tree.leaves(f(x))
    assert [np.asarray(v).tolist() for v in made] == [[20, 22, 24, 26]] * 2
    assert made[0].dtype == np.int32


def test_structure_and_data_decide() -> None:
    traced: list[Any] = []

    @hg.jit
    def f(p: Any) -> Any:
        traced.append(p.data)
        return p.a * (2 if p.data == "twice" else 3)

    a, b = arrays()
    for data, factor in (("twice", 2), ("thrice", 3), (("twice",), 3), (None, 3)) * 3:
        assert np.array_equal(np.asarray(f(Flat(a, b, data))), np.asarray(a) * factor)
    assert len(traced) == 4
    assert np.array_equal(np.asarray(f(Flat(a, [b, None], "twice"))), np.asarray(a) * 2)
    assert len(traced) == 5


def test_data_fields_of_dataclasses_decide() -> None:
    f = hg.jit(lambda p: p.a * len(p.name))
    a, b = arrays()
    for name in ("ab", "abc", "".join(["a", "b"])) * 3:
        assert np.array_equal(np.asarray(f(Slotted(a, b, name))), np.asarray(a) * len(name))


def test_subclasses_are_other_classes() -> None:
    @dataclasses.dataclass
    class Child(Plain):
        pass

    f = hg.jit(lambda p: p.a + p.b)
    a, _ = arrays()
    natively(f, Plain(a, a))
    with pytest.raises(hg.errors.HologramError, match="Child"):
        f(Child(a, a))
    hg.tree.register(Child)
    assert np.array_equal(np.asarray(f(Child(a, a))), np.asarray(a) * 2)


def test_a_container_that_is_registered_later_comes_apart_anew() -> None:
    Point = namedtuple("Point", "x y")  # noqa: PYI024
    f = hg.jit(lambda p: tree.leaves(p)[0] + 1)
    a, b = arrays()
    assert np.array_equal(np.asarray(natively(f, Point(a, b))), np.asarray(a) + 1)
    hg.tree.register(Point, lambda p: ((p.y, p.x), None), lambda _, children: Point(children[1], children[0]))
    assert np.array_equal(np.asarray(f(Point(a, b))), np.asarray(b) + 1)
    made = natively(hg.jit(lambda p: tree.map(lambda v: v + 1, p)), Point(a, b))
    assert np.array_equal(np.asarray(made.x), np.asarray(a) + 1)


class Moody:
    """Comes apart as it is told to."""

    mood: Any = None

    def __init__(self, a: Any) -> None:
        self.a = a


def _moody(x: Moody) -> Any:
    return Moody.mood(x) if Moody.mood is not None else ([x.a], "data")


hg.tree.register(Moody, _moody, lambda data, children: Moody(*children))


def _raise(error: BaseException) -> Any:
    raise error


@pytest.mark.parametrize(
    ("mood", "error"),
    [
        (lambda x: _raise(ValueError("in flatten")), ValueError),
        (lambda x: _raise(KeyboardInterrupt()), KeyboardInterrupt),
        (lambda x: ([x.a], ["not hashable"]), hg.errors.TreeError),
        (lambda x: ([x.a], np.ones(3)), hg.errors.TreeError),
        (lambda x: ([x.a],), ValueError),
        (lambda x: (3, "data"), TypeError),
    ],
)
def test_what_raises_while_it_is_taken_apart(mood: Any, error: Any) -> None:
    f = hg.jit(lambda p: p.a * 2)
    a, _ = arrays()
    x = Moody(a)
    natively(f, x)
    before = storage_count(a)
    try:
        Moody.mood = mood
        for _ in range(10):
            with pytest.raises(error):
                f(x)
    finally:
        Moody.mood = None
    assert np.array_equal(np.asarray(natively(f, x)), np.asarray(a) * 2)
    assert storage_count(a) <= before + 1


def test_attributes_that_are_gone() -> None:
    f = hg.jit(lambda p: p.a + 1)
    a, b = arrays()
    x = Plain(a, b)
    natively(f, x)
    del x.b
    with pytest.raises(AttributeError):
        f(x)


def test_what_raises_while_it_is_put_together() -> None:
    class Picky:
        allowed = True

        def __init__(self, a: Any) -> None:
            self.a = a

    def join(_: Any, children: Any) -> Any:
        return Picky(*children) if Picky.allowed else _raise(ValueError("picky"))

    hg.tree.register(Picky, lambda x: ((x.a,), None), join)
    f = hg.jit(lambda v: (Picky(v * 2), v + 1))
    a, _ = arrays()
    natively(f, a)
    Picky.allowed = False
    before = storage_count(a)
    for _ in range(10):
        with pytest.raises(ValueError, match="picky"):
            f(a)
    assert storage_count(a) <= before + 1


@pytest.mark.parametrize("kind", KINDS)
def test_reference_counts(kind: str) -> None:
    a, b = arrays()
    x = KINDS[kind](a, b)
    f = hg.jit(lambda p: tree.map(lambda v: v * 2, p))
    missed = KINDS[kind](a, 1.0)
    for p in (x, missed):
        natively(f, p)
    held = [a, b, a._storage, b._storage, x, type(x), *[d for d in ("flat", hnp.add)]]
    gc.collect()
    before = [sys.getrefcount(h) for h in held]
    for _ in range(50):
        f(x)
        f(missed)
    gc.collect()
    assert [sys.getrefcount(h) for h in held] == before


def test_donated_parts() -> None:
    f = hg.jit(lambda p: tree.map(lambda v: v + 1, p), donate_argnums=0)
    for kind in (Plain, Pair, Flat):
        for _ in range(4):
            x = kind(hnp.ones(1000) * 1, hnp.ones(2000) * 2)
            for leaf in (x.a, x.b):
                leaf.block_until_ready()
            given = x.a
            made = f(x)
            assert np.asarray(made.a).tolist() == [2.0] * 1000
            with pytest.raises(hg.errors.HologramError):
                np.asarray(given)


def test_code_of_a_class_may_take_other_arguments_away() -> None:
    f = hg.jit(lambda others, p: tree.map(lambda v: v + 1, (others, p)), donate_argnums=0)
    a, _ = arrays()

    def clear(x: Moody) -> Any:
        others.clear()
        others.append(0)
        return [x.a], "data"

    for _ in range(5):
        others: list[Any] = [hnp.ones(100000) * 3]
        others[0].block_until_ready()
        if _ > 1:
            Moody.mood = clear
        try:
            made = f(others, Moody(a))
        finally:
            Moody.mood = None
        assert np.asarray(made[0][0])[:2].tolist() == [4.0, 4.0]


def test_many_shapes() -> None:
    f = hg.jit(lambda p: p.a.sum() + p.b, dynamic=False)
    for _ in range(3):
        for n in range(1, 60):
            assert float(f(Flat(hnp.ones(n), 1.0))) == n + 1
            assert float(f(Plain(hnp.ones(n), 1.0))) == n + 1


def test_sizes_that_vary() -> None:
    f = hg.jit(lambda p: p.a.sum() + p.b)
    for _ in range(3):
        for n in range(1, 40):
            assert float(f(Pair(hnp.ones(n), 1.0))) == n + 1


def test_a_function_that_is_called_while_its_arguments_are_taken_apart() -> None:
    f = hg.jit(lambda p: p.a * 2)
    a, b = arrays()
    natively(f, Moody(a))

    def again(x: Moody) -> Any:
        Moody.mood = None
        assert np.array_equal(np.asarray(f(Moody(b))), np.asarray(b) * 2)
        f.clear_cache()
        return [x.a], "data"

    Moody.mood = again
    try:
        assert np.array_equal(np.asarray(f(Moody(a))), np.asarray(a) * 2)
    finally:
        Moody.mood = None


def test_threads() -> None:
    f = hg.jit(lambda p: tree.map(lambda v: v * 2, p))
    wrong: list[Any] = []

    def work(seed: int) -> None:
        values = [hnp.asarray(np.full(16, seed + i, np.float32)) for i in range(2)]
        for _ in range(300):
            for kind in (Plain, Pair, Flat, Renewed):
                made = tree.leaves(f(kind(*values)))
                if [float(np.asarray(m)[0]) for m in made] != [2.0 * seed, 2.0 * seed + 2]:
                    wrong.append(made)

    threads = [threading.Thread(target=work, args=(i * 10,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_arguments_that_are_results_as_they_are() -> None:
    f = hg.jit(lambda p: Plain(p.a * 2, p.b))
    a, b = arrays()
    made = natively(f, Plain(a, b))
    made.b[0] = 100.0
    assert np.asarray(made.b).tolist() == [100.0, 11.0, 12.0, 13.0]
    assert np.asarray(b).tolist() == [10.0, 11.0, 12.0, 13.0]
    borrowed = np.arange(4, dtype=np.float32)
    made = f(Plain(a, borrowed))
    made = f(Plain(a, hnp.asarray(borrowed)))
    borrowed[:] = 7
    assert np.asarray(made.b).tolist() == [0.0, 1.0, 2.0, 3.0]
    same = natively(hg.jit(lambda x: (x, [x])), a)
    same[0][0] = 5.0
    assert np.asarray(same[1][0]).tolist() == np.asarray(a).tolist() == [0.0, 1.0, 2.0]


def test_donated_arguments_that_are_results_as_they_are() -> None:
    f = hg.jit(lambda p: (p.a, p.a + 1, p.b * 2), donate_argnums=0)
    for _ in range(4):
        x = Plain(hnp.ones(100) * 3, hnp.ones(100) * 4)
        hg.block_until_ready((x.a, x.b))
        assert [np.asarray(v)[0] for v in f(x)] == [3.0, 4.0, 8.0]


def test_results_have_their_dictionary() -> None:
    f = hg.jit(lambda v: Plain(v + 1, v + 2))
    a, _ = arrays()
    made = natively(f, a)
    made.c = 1
    assert vars(made).keys() == {"a", "b", "c"}
