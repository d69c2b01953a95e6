"""Views: Tensors that share elements, and assignments to them, against NumPy."""

from __future__ import annotations

import gc
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp
from hologram import errors
from hologram.errors import ReadOnlyError
from hologram.ir.interpreter import evaluate
from hologram.numpy.indexing import views

# --- which functions give views --------------------------------------------------------------------------------------

MATRIX = np.arange(12.0).reshape(3, 4)
ARRAYS = (
    MATRIX, np.arange(5.0), MATRIX + 1j * MATRIX, np.ones((1, 3, 1)), np.arange(6).reshape(2, 3), np.eye(3), np.eye(3) > 0,
    np.arange(24.0).reshape(2, 3, 4),
)  # fmt: skip
ARGUMENTS: list[tuple[Any, ...]] = [(), (0,), (1,), (2,), (-1,), (0, 1), ((4, 3),), ((0, 1),), ((3, 4),)]
DIFFERENT = {
    "frombuffer",  # which copies
    "nan_to_num",  # whose second argument is copy in NumPy
    "polyder", "polyint", "matrix_power",  # of order 0, and 1, their argument itself
}  # fmt: skip


def functions() -> Iterator[Any]:
    for own, numpy in ((hnp, np), (hg.linalg, np.linalg)):
        for name in own.__all__:
            f = getattr(own, name)
            if hasattr(numpy, name) and callable(f) and not isinstance(f, type) and name not in DIFFERENT:
                yield pytest.param(f, getattr(numpy, name), id=f"{own.__name__}.{name}")
    for name in ("astype", "clip", "conj", "copy", "flatten", "ravel", "repeat", "reshape", "round", "squeeze", "swapaxes", "take", "transpose"):
        yield pytest.param(*[lambda x, *args, name=name: getattr(x, name)(*args)] * 2, id=f"Tensor.{name}")
    for name in ("T", "mT", "real", "imag"):
        yield pytest.param(*[lambda x, name=name: getattr(x, name)] * 2, id=f"Tensor.{name}")
    for subscripts in ("ij->ji", "ii->i", "ij", "ij->i", "ijk->kij"):
        yield pytest.param(*[lambda x, xp=xp, s=subscripts: xp.einsum(s, x) for xp in (hnp, np)], id=f"einsum {subscripts}")


def arrays_in(result: Any) -> list[Any]:
    return [x for x in (result if isinstance(result, (tuple, list)) else [result]) if isinstance(x, (np.ndarray, hg.Tensor))]


def called(f: Callable[..., Any], x: Any, args: tuple[Any, ...]) -> list[Any] | None:
    """The arrays that a call gives; None for arguments that the function does not take."""
    try:
        return arrays_in(f(x, *args))
    except Exception:
        return None


def shares(a: hg.Tensor, b: hg.Tensor) -> bool:
    alias = getattr(a, "_alias", None)
    return a is b or (alias is not None and alias.aliases is not None and any(t is b for t in alias.aliases.alive()))


@pytest.mark.parametrize(("own", "numpy"), list(functions()))
def test_functions_give_views_where_numpy_does(own: Callable[..., Any], numpy: Callable[..., Any], request: pytest.FixtureRequest) -> None:
    name = request.node.callspec.id.rpartition(".")[2]
    if np.__version__.startswith("2.0.") and name in ("around", "round", "from_dlpack"):
        pytest.skip("NumPy 2.0 rounds integers by a view, and has other flags for arrays that are imported")
    for array in ARRAYS:
        for args in ARGUMENTS:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                want = called(numpy, array, args)
                x = hg.tensor(array)
                got = called(own, x, args) if want else None
                writable = [w.flags.writeable for w in want or ()]
            for g, w, may_write in zip(got or (), want or (), writable, strict=False):
                if type(g) is hg.Tensor and g.shape == w.shape and w.size:
                    assert shares(g, x) == np.shares_memory(w, array), (array.shape, args)
                    read_only = bool(getattr(getattr(g, "_alias", None), "frozen", ""))
                    assert read_only == (not may_write) or own is hnp.broadcast_arrays, (array.shape, args)


# --- random programs -------------------------------------------------------------------------------------------------

Step = Callable[[ModuleType, list[Any]], None]  # of a program: works on a list of arrays


@st.composite
def slices(draw: Any, n: int) -> slice:
    bound = st.none() | st.integers(-n - 1, n + 1)
    return slice(draw(bound), draw(bound), draw(st.sampled_from([None, None, 1, 2, -1, -2, 3])))


@st.composite
def keys(draw: Any, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """A basic index."""
    parts: list[Any] = []
    for n in shape[: draw(st.integers(0, len(shape)))]:
        parts.append(draw(st.integers(-n, n - 1)) if n and draw(st.integers(0, 3)) == 0 else draw(slices(n)))
        if draw(st.integers(0, 7)) == 0:
            parts.append(None)
    if draw(st.integers(0, 3)) == 0:
        parts.append(Ellipsis)
    return tuple(parts)


@st.composite
def movements(draw: Any, x: Any) -> Callable[[ModuleType, Any], Any]:
    """A function whose result is a view in NumPy, or may be."""
    shape = np.shape(x)
    n, size = len(shape), int(np.size(x))
    kind = draw(
        st.sampled_from(["index"] * 4 + ["reshape"] * 2 + ["T", "ravel", "flip", "swap", "expand", "squeeze", "split", "copy", "part", "frozen"])
    )
    if kind == "index":
        key = draw(keys(shape))
        return lambda xp, x: x[key]
    if kind == "reshape":
        target = draw(st.sampled_from([(a, b, size // a // b) for a in range(1, 7) for b in range(1, 7) if size and size % (a * b) == 0] or [shape]))
        return lambda xp, x: xp.reshape(x, target)
    if kind == "flip":
        axis = draw(st.sampled_from([None, *range(n)]))
        return lambda xp, x: xp.flip(x, axis=axis)
    if kind == "swap" and n > 1:
        a, b = draw(st.integers(0, n - 1)), draw(st.integers(-n, -1))
        return lambda xp, x: xp.moveaxis(x, a, b)
    if kind == "expand":
        axis = draw(st.integers(0, n))
        return lambda xp, x: xp.expand_dims(x, axis)
    if kind == "split" and n and shape[0]:
        part = draw(st.integers(0, shape[0] - 1))
        return lambda xp, x: xp.array_split(x, shape[0])[part]
    if kind == "part":
        which = draw(st.sampled_from(["real", "imag"]))
        return lambda xp, x: getattr(x, which)
    if kind == "frozen":
        return (lambda xp, x: xp.diagonal(x)) if n == 2 and draw(st.booleans()) else (lambda xp, x: xp.broadcast_to(x, (2, *shape)))
    if kind == "squeeze":
        return lambda xp, x: xp.squeeze(x)
    if kind == "copy":
        return lambda xp, x: (xp.asarray(x) * 2 + 1).copy()
    return (lambda xp, x: xp.transpose(x)) if kind == "T" else (lambda xp, x: xp.ravel(x))


def appended(i: int, f: Callable[[ModuleType, Any], Any]) -> Step:
    return lambda xp, pool: pool.append(f(xp, pool[i]))


def dropped(i: int) -> Step:
    def step(xp: ModuleType, pool: list[Any]) -> None:
        pool[i] = None

    return step


def assigned(i: int, key: tuple[Any, ...], value: Callable[[Any, list[Any]], Any]) -> Step:
    def step(xp: ModuleType, pool: list[Any]) -> None:
        pool[i][key] = value(pool[i][key], pool)

    return step


@st.composite
def assignments(draw: Any, i: int, x: Any) -> Step:
    key, number = draw(keys(np.shape(x))), draw(st.integers(-9, 9))
    how = draw(st.sampled_from(["number", "twice", "turned", "first"]))
    if how == "twice":
        return assigned(i, key, lambda old, pool: old * 2 + number)
    if how == "turned" and np.ndim(x[key]):
        return assigned(i, key, lambda old, pool: old[::-1])
    if how == "first":
        return assigned(i, key, lambda old, pool: pool[0].real.sum() if pool[0] is not None else number)
    return assigned(i, key, lambda old, pool: number)


@st.composite
def augmentations(draw: Any, i: int) -> Step:
    """In-place operators, as code of a package of ``settings.inplace_packages`` has them."""
    operator, value = draw(st.sampled_from("+*-")), draw(st.sampled_from([-3, 0, 2.5, "first", "itself"]))

    def step(xp: ModuleType, pool: list[Any]) -> None:
        other = {"first": 1 if pool[0] is None else pool[0].real.max(), "itself": pool[i]}.get(value, value)
        if operator == "+":
            pool[i] += other
        elif operator == "-":
            pool[i] -= other
        else:
            pool[i] *= other

    return step


def start(complexes: bool) -> np.ndarray:
    x = np.arange(24.0).reshape(4, 6)
    return x + 1j * x[::-1] if complexes else x


@st.composite
def programs(draw: Any, inplace: bool = False) -> tuple[bool, list[Step]]:
    """Views made, elements assigned, arrays let go: the steps are drawn while NumPy runs them, and those that it refuses must be refused."""
    complexes = draw(st.integers(0, 3)) == 0
    pool: list[Any] = [start(complexes)]
    steps: list[Step] = []
    for _ in range(draw(st.integers(2, 9))):
        i = draw(st.sampled_from([i for i, x in enumerate(pool) if x is not None]))
        kind = draw(st.integers(0, 9))
        if kind < 5:
            step = appended(i, draw(movements(pool[i])))
        elif kind < 9 or sum(x is not None for x in pool) == 1:
            step = draw(augmentations(i) if inplace and kind < 8 else assignments(i, pool[i]))
        else:
            step = dropped(i)
        steps.append(step if taken(step, np, pool) else refused(step))
    return complexes, steps


def taken(step: Step, xp: ModuleType, pool: list[Any]) -> bool:
    """Runs a step; whether the array lets elements be assigned to."""
    try:
        step(xp, pool)
    except (ValueError, TypeError) as e:
        assert "read-only" in str(e) or "item assignment" in str(e) or isinstance(e, ReadOnlyError), e
        return False
    return True


def refused(step: Step) -> Step:
    def refusing(xp: ModuleType, pool: list[Any]) -> None:
        with pytest.raises(ReadOnlyError if xp is hnp else (ValueError, TypeError)):
            step(xp, pool)

    return refusing


def run(xp: ModuleType, steps: list[Step], x: Any) -> list[Any]:
    """The arrays that are left at the end."""
    pool = [x]
    for step in steps:
        step(xp, pool)
    return [x for x in pool if x is not None]


def same(got: list[Any], want: list[Any]) -> None:
    assert len(got) == len(want)
    for g, w in zip(hg.block_until_ready(got), want, strict=True):
        assert g.shape == np.shape(w)
        np.testing.assert_array_equal(np.asarray(g), w)


@settings(max_examples=settings().max_examples // 5)
@given(programs())
def test_programs(program: Any) -> None:
    complexes, steps = program
    same(run(hnp, steps, hg.tensor(start(complexes))), run(np, steps, start(complexes)))


@pytest.mark.parametrize("jitted", [False, True])
@settings(max_examples=settings().max_examples // 5)
@given(programs(inplace=True))
def test_programs_with_inplace_operators(jitted: bool, program: Any) -> None:
    complexes, steps = program
    run_steps = hg.jit(lambda x: run(hnp, steps, x)) if jitted else (lambda x: run(hnp, steps, x))
    with hg.settings.override(inplace_packages=(__name__.partition(".")[0],)):
        same(run_steps(hg.tensor(start(complexes))), run(np, steps, start(complexes)))


def interpreted(f: Callable[..., Any], *args: np.ndarray) -> list[np.ndarray]:
    """What ``f`` gives, traced, and run without being compiled."""
    return evaluate(hg.make_graph(f)(*args), args)


def total(x: Any, steps: list[Step], xp: ModuleType) -> Any:
    """A number made of all arrays that are left; affine in ``x``, as the steps are."""
    left = enumerate(run(xp, steps, x), start=1)
    return sum(i * xp.sum(xp.real(part) * (3 + xp.arange(part.size).reshape(part.shape) % 5)) for i, part in left)


@given(programs())
def test_programs_while_tracing(program: Any) -> None:
    complexes, steps = program
    x = start(complexes)
    want = run(np, steps, x.copy())
    for g, w in zip(interpreted(lambda x: run(hnp, steps, x), x), want, strict=True):
        np.testing.assert_array_equal(g, w)
    (slope,) = interpreted(hg.grad(lambda x: total(x, steps, hnp)), x)
    direction = np.random.default_rng(3).integers(-3, 3, x.shape)
    change = total(x + direction, steps, np) - total(x.copy(), steps, np)
    np.testing.assert_allclose(np.sum(np.real(slope) * direction), change, rtol=1e-9, atol=1e-6)


@settings(max_examples=settings().max_examples // 10)
@given(programs())
def test_programs_compiled(program: Any) -> None:
    complexes, steps = program
    x = start(complexes)
    given = hg.tensor(x)
    same(hg.jit(lambda x: run(hnp, steps, x))(given), run(np, steps, x.copy()))
    hg.grad(lambda x: total(x, steps, hnp))(given)
    same([given], [x])  # the argument of a transformed function is its own


# --- single cases ----------------------------------------------------------------------------------------------------


def test_slices_write_through() -> None:
    a = hnp.arange(6.0)
    a[1:3][0] = 5.0
    b = a[1:5][::2]
    before = b * 1
    b[1] = 7
    a[1] = 9
    np.testing.assert_array_equal(a, [0, 9, 2, 7, 4, 5])
    np.testing.assert_array_equal(b, [9, 7])
    np.testing.assert_array_equal(before, [5, 3])
    for row in a.reshape(2, 3):
        row[0] += 100
    np.testing.assert_array_equal(a, [100, 9, 2, 107, 4, 5])


def test_augmented_assignment_makes_a_new_value() -> None:
    a = hnp.zeros(4)
    b = a[1:3]
    b += 5
    np.testing.assert_array_equal(a, np.zeros(4))
    a[1:3] += 5
    np.testing.assert_array_equal(a, [0, 5, 5, 0])


def test_elements_are_values() -> None:
    a = hg.tensor([1.0, 2.0])
    a[0], a[1] = a[1], a[0]
    np.testing.assert_array_equal(a, [2, 1])
    with pytest.raises(ReadOnlyError, match="value of its own.*test_views.py"):
        a[0][...] = 3
    cell = a[0, ...]
    cell[...] = 8
    first = a[0].reshape(1)  # of a value of its own
    first[0] = 5
    np.testing.assert_array_equal(a, [8, 1])


def test_reshaped_broadcasts_are_copies() -> None:
    """Where NumPy has to copy: rows that stand in one place cannot be strung together, columns of a single place can."""
    for shape, is_copy in (((8,), True), ((2, 2, 2), False)):
        x, base = hg.tensor([[1.0, 2.0, 3.0, 4.0]]), np.array([[1.0, 2.0, 3.0, 4.0]])
        got, want = (xp.reshape(xp.broadcast_to(a, (2, 4)), shape) for xp, a in ((hnp, x), (np, base)))
        for a in (x, base):
            a[0, 0] = 9.0
        np.testing.assert_array_equal(got, want)
        if is_copy:
            got[0] = want[0] = 5.0
            np.testing.assert_array_equal(got, want)
        else:
            with pytest.raises(ReadOnlyError):
                got[0] = 5.0


@pytest.mark.parametrize("wrapped", [lambda f: f, hg.jit])
def test_rows_at_computed_places(wrapped: Any) -> None:
    def f(x: Any, i: Any) -> Any:
        x = +x
        row, other = x[i], x[1:]
        row[:2] = 9
        x[1, i] = 5
        other[0, 0] = -1
        return x, row, other

    x, row, other = wrapped(f)(hg.tensor(MATRIX), hg.tensor(1))
    want = MATRIX.copy()
    want[1, :2] = -1, 5
    for got, w in ((x, want), (row, want[1]), (other, want[1:])):
        np.testing.assert_array_equal(got, w)


@pytest.mark.parametrize("work", [
    lambda x, v: x[1:].__setitem__(0, v),
    lambda x, v: x.T.__setitem__(0, v),
    lambda x, v: x.reshape(-1).__setitem__(0, v),
])  # fmt: skip
def test_views_of_what_is_outside_of_a_trace_are_not_assigned(work: Any) -> None:
    kept = hg.tensor(MATRIX)
    for f in (hg.jit(lambda v: work(kept, v)), lambda v: hg.scan(lambda c, _: (c, work(kept, c)), v, None, 2)):
        with pytest.raises(errors.LeakedTracerError, match=r"would be lost.*x\.at\[i\]\.set\(v\).*test_views.py"):
            f(hg.tensor(1.0))
    inner = hg.jit(lambda v: hg.scan(lambda c, _: (c, work(v, c)), v[0, 0], None, 2))
    with pytest.raises(errors.LeakedTracerError):
        inner(kept)
    np.testing.assert_array_equal(kept, MATRIX)


def test_disjoint_views_of_what_is_outside_stay_as_they_are() -> None:
    kept = hg.tensor(np.zeros(4))
    end = kept[2:]

    def f(v: Any) -> Any:
        own = +kept
        own[:2] = v
        return own, end * 1

    own, still = hg.jit(f)(1.0)
    np.testing.assert_array_equal(own, [1, 1, 0, 0])
    np.testing.assert_array_equal(still, [0, 0])


def test_views_whose_base_is_gone_share_still() -> None:
    for make in (
        lambda xp, a: (a[1:4], a[2:]),
        lambda xp, a: (a[::2], xp.broadcast_to(a[2:], (2, 3))),
        lambda xp, a: (xp.flip(a), a.reshape(5, 1).T),
    ):
        pairs = [make(hnp, hnp.arange(5.0)), make(np, np.arange(5.0))]
        gc.collect()
        for left, right in pairs:
            left[1] = 9.0
            if right.ndim == 1:
                right[1] = 5.0
        for got, want in zip(*pairs, strict=True):
            np.testing.assert_array_equal(got, want)


def test_views_keep_no_memory() -> None:
    base = hnp.arange(1000.0) * 1
    part = base[:3]
    hg.block_until_ready([base, part])
    storage = weakref.ref(base)
    del base
    gc.collect()
    assert storage() is None
    x = hnp.arange(4.0)
    for _ in range(50):
        x = x[::-1]
        x[0] += 1
    assert len(x._alias.steps) <= 2 * views.MIN_LIMIT and len(x._alias.aliases.members) <= 2 * views.MIN_LIMIT
    assert np.asarray(x).sum() == 56
    y = hnp.zeros(3)
    for _ in range(1000):
        y[0:1]
    assert len(y._alias.aliases.members) <= 2 * views.MIN_LIMIT


def test_strides_outlive_the_base() -> None:
    x = hg.tensor(MATRIX).T
    y = MATRIX.copy().T
    for _ in range(40):
        x, y = x[:], y[:]
    flat, numpy_flat = x.ravel(), y.ravel()  # a copy
    flat[0] = numpy_flat[0] = -5
    np.testing.assert_array_equal(x, y)


def test_donated_bases_are_let_go() -> None:
    a = hnp.arange(4.0) * 1
    b = a[1:3]
    hg.block_until_ready([a, b])
    hg.jit(lambda x: x + 1, donate_argnums=0)(a)
    b[0] = 5
    np.testing.assert_array_equal(b, [5, 2])
    with pytest.raises(errors.DonatedBufferError):
        a + 1


def test_what_fails_changes_nothing() -> None:
    a = hg.tensor(MATRIX)
    b = a[1:]
    with pytest.raises(errors.ShapeError):
        b[0] = np.ones(9)
    with pytest.raises(errors.IndexOutOfRange):
        b[7] = 0
    for read_only in (hnp.diagonal(a), hnp.broadcast_to(a, (2, 3, 4)), hnp.broadcast_to(a, (2, 3, 4))[0], a.imag):
        with pytest.raises(ReadOnlyError, match="read-only"):
            read_only[...] = 0
    np.testing.assert_array_equal(a, MATRIX)
    np.testing.assert_array_equal(b, MATRIX[1:])


def test_reshaping_says_whether_it_copies() -> None:
    a = hg.tensor(MATRIX)
    with pytest.raises(errors.ShapeError, match="copy=False"):
        a.T.reshape(-1, copy=False)
    a.reshape(-1, copy=True)[0] = 9
    a.flatten()[0] = 9
    np.testing.assert_array_equal(a, MATRIX)
    a.reshape(-1, copy=False)[0] = 9
    assert float(a[0, 0]) == 9


def test_views_of_symbolic_extents() -> None:
    def f(x: Any) -> Any:
        y = x * 1
        y[1:].reshape(-1)[0] = 5.0
        y.T[-1] = 7.0
        return y

    g = hg.jit(f, dynamic={0: (0,)})
    for n in (2, 5):
        x = np.arange(3.0 * n).reshape(n, 3)
        np.testing.assert_array_equal(g(x), f(x))


def test_clients_are_told_that_arrays_are_writable() -> None:
    compat = pytest.importorskip("scipy._lib.array_api_compat")
    extra = pytest.importorskip("scipy._lib.array_api_extra")
    a = hnp.arange(4.0)
    assert compat.is_writeable_array(a)
    part = a[1:]
    assert extra.at(part, 0).add(10) is part
    extra.at(part, 1).set(5.0, copy=True)
    np.testing.assert_array_equal(a, [0, 11, 2, 3])


def test_assignments_in_another_thread() -> None:
    a = hnp.zeros((64, 4))

    def work(i: int) -> None:
        for j in range(4):
            a[i][j : j + 1] = i + j

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(64)))
    np.testing.assert_array_equal(a, np.arange(64.0)[:, None] + np.arange(4.0))


@pytest.mark.parametrize(
    "part",
    [
        lambda a, i: (a, i),
        lambda a, i: (a, (slice(i, i + 1), ...)),
        lambda a, i: (a[i : i + 1], 0),
        lambda a, i: (a.reshape(-1)[8 * i : 8 * i + 8], ...),
    ],
    ids=["element", "slice", "view", "view of a view"],
)
def test_threads_assign_to_parts_of_an_array_at_the_same_time(part: Any) -> None:
    a, n = hnp.zeros((64, 8)), 64
    ready = threading.Barrier(4)

    def work(k: int) -> None:
        ready.wait()
        for i in range(k, n, 4):
            target, key = part(a, i)
            for j in range(3):
                target[key] = float(i + j)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # threads take turns in the middle of assignments
    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(4)))
    finally:
        sys.setswitchinterval(interval)
    np.testing.assert_array_equal(a, np.arange(2.0, n + 2.0)[:, None] + np.zeros(8))


@pytest.mark.parametrize("transformed", [
    lambda f: hg.jit(f), lambda f: hg.grad(f, argnums=1), lambda f: hg.vmap(f, in_axes=(None, 0)), lambda f: hg.jacfwd(f, argnums=1),
])  # fmt: skip
def test_arguments_are_a_functions_own(transformed: Any) -> None:
    def f(shared: Any, x: Any) -> Any:
        shared["a"][1:][0] = 5.0
        x[...] *= 2
        return hnp.sum(x * shared["a"][1])

    shared, x = hg.tensor(np.ones(3)), hg.tensor(np.ones(4))
    result = transformed(f)({"a": shared}, x)
    np.testing.assert_array_equal(result, {(): 40.0, (4,): np.full(4, 10.0)}[result.shape])
    np.testing.assert_array_equal(shared, np.ones(3))
    np.testing.assert_array_equal(x, np.ones(4))
