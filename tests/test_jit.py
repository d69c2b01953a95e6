"""``jit``: signatures, pytrees, static and dynamic arguments, tracing rules, threads, stages."""

from __future__ import annotations

import copy
import functools
import gc
import inspect
import os
import subprocess
import sys
import textwrap
import threading
import time
from collections import namedtuple
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram import dtypes, errors, settings
from hologram.backends.cpu.runtime.module import why_not_native
from hologram.errors import ArgumentError
from hologram.trace import tree

X = np.arange(6, dtype=np.float32)
Y = np.array([1.0, -1.0, 2.0, 0.5, 3.0, -2.0], np.float32)
Point = namedtuple("Point", "x y")


def close(got: Any, want: Any) -> None:
    for g, w in zip(tree.leaves(got), tree.leaves(want), strict=True):
        w = np.asarray(w)
        assert type(g) is hg.Tensor and g.shape == w.shape and g.dtype == w.dtype
        np.testing.assert_allclose(np.asarray(g), w, rtol=1e-6)


class Counted:
    """A function that knows how often it was traced."""

    def __init__(self, f: Any) -> None:
        self.f, self.count = f, 0
        functools.update_wrapper(self, f)

    def __call__(self, *args: Any, **options: Any) -> Any:
        self.count += 1
        return self.f(*args, **options)


# --- calling ---------------------------------------------------------------------------------------------------------


def test_traced_once_for_a_signature() -> None:
    f = Counted(lambda a, b: a * b + 1)
    g = hg.jit(f)
    for k in range(4):
        close(g(hg.tensor(X + k), Y), (X + k) * Y + 1)
    assert f.count == 1
    close(g(X[:3], Y[:3]), X[:3] * Y[:3] + 1)
    assert f.count == 2


def test_mixed_arguments() -> None:
    f = Counted(lambda a, b: a + b)
    g = hg.jit(f)
    close(g(X, 2.5), X + np.float32(2.5))
    close(g(X, -1.0), X - 1)
    close(g(X, 2), X + 2)
    close(g(X, np.float64(2)), X + np.float64(2))
    close(g(np.arange(6), 2), np.arange(6) + 2)
    close(g(hg.tensor(X) * 2, Y), X * 2 + Y)  # a pending Tensor is realised for the call
    assert f.count == 5


def test_python_scalars_are_weak_arguments() -> None:
    g = hg.jit(lambda a, s: a * s)
    half = np.ones(3, np.float16)
    assert g(half, 2.0).dtype == np.float16 and g(half, 2).dtype == np.float16
    assert g(np.ones(3, np.int8), 3).dtype == np.int8
    assert g(np.ones(3, np.int8), 3.0).dtype == np.float32
    close(g(np.ones(3), 0.1), np.full(3, 0.1))  # not 0.1 rounded to float32
    close(hg.jit(lambda a, s: a * (s * 2 + 1) * hnp.sqrt(s))(np.ones(3), 0.1), np.ones(3) * (0.1 * 2 + 1) * np.sqrt(0.1))
    close(
        hg.jit(lambda s: (s, hnp.full(2, s), hnp.sum(s), hnp.where(np.array([True, False]), s, 0.0)))(0.5),
        [np.float32(0.5), np.full(2, 0.5, np.float32), np.float32(0.5), np.array([0.5, 0], np.float32)],
    )
    with pytest.raises(hg.errors.IntegerRangeError):
        g(np.ones(3), 2**70)


def test_pytrees_in_and_out() -> None:
    @hg.jit
    def f(p: Any, point: Any) -> Any:
        return {"sum": p["w"] + p["b"][0], "pair": (point.y, [point.x * 2]), "none": None}

    got = f({"w": X, "b": [Y, None]}, Point(X, Y))
    close(got, {"sum": X + Y, "pair": (Y, [X * 2]), "none": None})
    assert got["none"] is None and type(got["pair"]) is tuple


def test_registered_classes_pass_through() -> None:
    class State:
        def __init__(self, a: Any, b: Any) -> None:
            self.a, self.b = a, b

    tree.register(State, lambda s: ([s.a, s.b], None), lambda _, children: State(*children))
    got = hg.jit(lambda s: State(s.b, s.a + 1))(State(X, Y))
    close([got.a, got.b], [Y, X + 1])


def test_outputs_of_every_sort() -> None:
    @hg.jit
    def f(a: Any) -> Any:
        return a, a, 1.5, np.arange(3), a.T.shape[0], True

    close(f(X), (X, X, np.float32(1.5), np.arange(3), np.int64(6), np.bool_(True)))


def test_keywords_and_defaults() -> None:
    @hg.jit
    def f(a: Any, b: Any = 2.0, *, scale: Any = 3.0) -> Any:
        return a * b * scale

    close(f(X), X * 6)
    close(f(X, b=Y), X * Y * 3)
    close(f(a=X, scale=1.0), X * 2)
    close(f(X, Y, scale=Y), X * Y * Y)


def test_closures_over_arrays() -> None:
    weights = hg.tensor(Y)
    raw = Y.copy()
    f = hg.jit(lambda a: a * weights + raw)
    close(f(X), X * Y + Y)
    raw[:] = 0
    close(f(X), X * Y + Y)


def test_closure_over_a_pending_tensor() -> None:
    weights = hg.tensor(Y) * 2
    close(hg.jit(lambda a: a * weights)(X), X * Y * 2)


def test_decorator_forms() -> None:
    @hg.jit(static_argnames="n")
    def power(a: Any, n: int) -> Any:
        """Docs."""
        return a**n

    assert power.__name__ == "power" and power.__doc__ == "Docs." and callable(power.__wrapped__)
    assert list(inspect.signature(power).parameters) == ["a", "n"]
    assert "power" in repr(power)
    close(power(X, 2), X**2)
    close(hg.jit(functools.partial(power, n=3))(X), X**3)
    close(hg.jit(lambda a: a + 1)(X), X + 1)
    assert hg.jit(functools.partial(power, n=3)).__name__ == "power"


def test_methods() -> None:
    class Model:
        def __init__(self, k: float) -> None:
            self.k = k

        @hg.jit(static_argnums=0)
        def scaled(self, a: Any) -> Any:
            return a * self.k

        @staticmethod
        @hg.jit
        def doubled(a: Any) -> Any:
            return a * 2

    close(Model(3.0).scaled(X), X * 3)
    close(Model(4.0).scaled(X), X * 4)
    close(Model.doubled(X), X * 2)


def test_static_arguments() -> None:
    f = Counted(lambda a, n, mode: a * n if mode == "scale" else a + n)
    g = hg.jit(f, static_argnums=(1,), static_argnames=("mode",))
    close(g(X, 2, mode="scale"), X * 2)
    close(g(X, 2, mode="scale"), X * 2)
    close(g(X, 3, mode="scale"), X * 3)
    close(g(X, 3, mode="shift"), X + 3)
    assert f.count == 3
    close(g(X, 3, "shift"), X + 3)  # static by name means static by position too


def test_static_floats_key_on_their_bits() -> None:
    f = Counted(lambda a, s: hnp.copysign(a, s))
    g = hg.jit(f, static_argnums=1)
    assert not np.signbit(np.asarray(g(X, 0.0))).any()
    assert np.signbit(np.asarray(g(X, -0.0))).all()
    g(X, float("nan"))
    g(X, float("nan"))
    assert f.count == 3


@pytest.mark.parametrize("values", [(1, 1.0, True), ((1,), (1.0,), (True,)), ((0, (0.0,)), (0, (-0.0,))), (frozenset({1}), frozenset({1.0}))])
def test_static_values_that_are_equal_but_not_alike(values: Any) -> None:
    seen: list[Any] = []
    f = hg.jit(lambda x, s: (seen.append(s), x + len(seen))[1], static_argnums=1)
    for _ in range(2):
        assert [int(f(hg.tensor(0), v)) for v in values] == list(range(1, len(values) + 1))


def test_nested_jit_is_inlined() -> None:
    inner = Counted(lambda a: a * 2)
    jitted = hg.jit(inner)
    outer = hg.jit(lambda a: jitted(a) + jitted(a + 1))
    close(outer(X), X * 2 + (X + 1) * 2)
    assert inner.count == 2
    assert not jitted._specialisations.values()


def test_assignment_to_an_argument_is_not_seen_by_the_caller() -> None:
    @hg.jit
    def inner(x: Any) -> Any:
        x[0] = 100
        return x

    def outer(x: Any) -> Any:
        return inner(x) + x

    x = hg.tensor([1.0, 2.0])
    close(outer(x), np.float32([101, 4]))
    close(hg.jit(outer)(x), np.float32([101, 4]))
    with hg.disable_jit():
        close(outer(x), np.float32([101, 4]))
    close(x, np.float32([1, 2]))


def test_recursion_through_jit() -> None:
    @hg.jit(static_argnums=1)
    def f(a: Any, n: int) -> Any:
        return a if n == 0 else f(a, n - 1) * 2

    close(f(X, 3), X * 8)


def test_exceptions_pass_through_and_leave_no_trace() -> None:
    @hg.jit
    def f(a: Any) -> Any:
        raise KeyError("mine")

    for _ in range(2):
        with pytest.raises(KeyError, match="mine"):
            f(X)
    close(hg.tensor(X) + 1, X + 1)


def test_results_are_strong() -> None:
    assert (hg.jit(lambda s: s * 2)(3.0) * np.ones(2, np.float16)).dtype == np.float32


def test_donated_tensor_cannot_be_used_again() -> None:
    f = hg.jit(lambda a, b: a + b, donate_argnums=0)
    a = hg.tensor(X) * 1
    close(f(a, Y), X + Y)
    with pytest.raises(hg.errors.DonatedBufferError):
        a + 1


def test_exported_buffer_is_not_donated() -> None:
    a = hg.tensor(X) * 1
    view = np.asarray(a)
    hg.jit(lambda a: a + 1, donate_argnums=0)(a)
    np.testing.assert_array_equal(view, X)


def test_disable_jit() -> None:
    f = Counted(lambda a: a + 1)
    g = hg.jit(f)
    with hg.disable_jit():
        close(g(hg.tensor(X)), X + 1)
        close(g(hg.tensor(X)), X + 1)
    assert f.count == 2


def test_specialisations_are_bounded() -> None:
    f = hg.jit(lambda a, n: a + n, static_argnums=1)
    f._specialisations.limit = 8
    for n in range(40):
        close(f(X, n), X + n)
    assert len(f._specialisations) <= 8


# --- assignment to elements ------------------------------------------------------------------------------------------


def test_elements_of_what_a_trace_made_may_be_assigned() -> None:
    kept = hg.tensor(np.zeros(3))

    def f(x: Any) -> Any:
        made = [hg.tensor(np.arange(3.0)), hnp.zeros(3), x, hg.asarray(np.ones(3)), +kept, copy.copy(kept), hg.tensor([1.0, 2.0, 3.0])]
        assert repr(made[0]) == repr(hg.tensor(np.arange(3.0)))  # data has values while tracing, too
        for i, t in enumerate(made):
            t[1] = x[0] * i
        return made

    rows = [[0, 0, 2], [0, 5, 0], [5, 10, 5], [1, 15, 1], [0, 20, 0], [0, 25, 0], [1, 30, 3]]
    np.testing.assert_array_equal([np.asarray(t) for t in hg.jit(f)(np.full(3, 5.0))], rows)
    close(kept, np.zeros(3))


@pytest.mark.parametrize("of", [lambda: hg.tensor(np.zeros(3)), lambda: hnp.ones(3) * 0, lambda: hg.asarray(np.zeros(3))])
def test_elements_of_what_is_closed_over_are_not_assigned(of: Any) -> None:
    kept = of()

    def f(x: Any) -> Any:
        kept[0] = x[0]
        return kept * 2

    with pytest.raises(errors.LeakedTracerError, match=r"outside of f, .* x = x.at\[i\].set\(v\).*test_jit.py"):
        hg.jit(f)(np.ones(3))
    close(kept * 1, np.asarray(of()))
    with hg.disable_jit():  # where it is plain Python
        np.testing.assert_array_equal(hg.jit(f)(np.ones(3)), [2.0, 0.0, 0.0])


def test_bodies_assign_to_elements_of_their_own() -> None:
    def outer(x: Any) -> Any:
        return hg.scan(lambda c, _: (x.__setitem__(0, c) or c + 1, x), 0.0, None, 3)

    for call in (outer, hg.jit(outer)):
        with pytest.raises(errors.LeakedTracerError, match="outside of scan"):
            call(hg.tensor(np.ones(3)))

    changed = hg.jit(lambda v: v.__setitem__(0, 9.0) or v)  # a callee's argument is its own
    f = lambda x: hg.scan(lambda c, _: (c, changed(x)), 0.0, None, 2)[1] + x  # noqa: E731
    for call in (f, hg.jit(f)):
        close(call(hg.tensor(np.ones(2))), np.array([[10.0, 2.0], [10.0, 2.0]]))


# --- dynamic shapes --------------------------------------------------------------------------------------------------


def test_one_program_for_every_size() -> None:
    f = Counted(lambda a, b: (a * b - hnp.mean(a))[1:] + a[:-1])
    g = hg.jit(f, dynamic=True)
    for n in (2, 5, 9, 31):
        a, b = np.arange(n, dtype=np.float32), np.ones(n, np.float32)
        close(g(a, b), ((a * b - a.mean(dtype=np.float32))[1:] + a[:-1]).astype(np.float32))
    assert f.count == 1
    g(np.ones(1, np.float32), np.ones(1, np.float32))
    assert f.count == 2


def test_dynamic_axes_by_argument() -> None:
    f = Counted(lambda a: hnp.sum(a, axis=1) * a.shape[1])
    g = hg.jit(f, dynamic={0: 0})
    for n in (3, 4, 8):
        close(g(np.ones((n, 5), np.float32)), np.full(n, 25, np.float32))
    assert f.count == 1
    g(np.ones((3, 6), np.float32))
    assert f.count == 2


def test_slices_that_do_not_fit_get_a_program_of_their_own() -> None:
    f = Counted(lambda a: a[3:] * 2)
    g = hg.jit(f, dynamic=True)
    for n in (8, 2, 9, 2, 3):
        close(g(np.arange(n, dtype=np.float32)), np.arange(n, dtype=np.float32)[3:] * 2)
    assert f.count == 2  # one for every size from 3 on, one for size 2


@pytest.mark.parametrize("shift", [-7, -2, 0, 3, 5])
def test_rolls_beyond_a_symbolic_extent(shift: int) -> None:
    f = hg.jit(lambda x: (hnp.roll(x, shift, axis=0), hnp.roll(x, shift)), dynamic=True)
    for n in (9, 2, 3, 9, 4, 1, 0):
        x = np.arange(2.0 * n).reshape(n, 2)
        close(f(x), (np.roll(x, shift, axis=0), np.roll(x, shift)))


def test_results_of_symbolic_extent_that_read_nothing() -> None:
    f = hg.jit(lambda x: x - x, dynamic=True)
    for n in (3, 7000):
        close(f(np.ones(n, np.int32)), np.zeros(n, np.int32))


def test_equal_sizes_share_a_symbol() -> None:
    g = hg.jit(lambda a, b: a + b, dynamic=True)
    close(g(np.ones((4, 4)), np.ones((4, 4))), np.full((4, 4), 2.0))
    close(g(np.ones((3, 5)), np.ones((3, 5))), np.full((3, 5), 2.0))


# --- stages ----------------------------------------------------------------------------------------------------------


def test_reduction_counts_the_rules_that_fired() -> None:
    compiled = hg.jit(lambda a: hnp.transpose(hnp.transpose(a * 1 + 0)) * 1, precision="fast").lower(np.ones((3, 4), np.float32)).compile()
    reduction = compiled.reduction()
    assert reduction.rules["transpose-transpose"] == 1 and reduction.rules["mul-one"] == 1, reduction
    assert str(reduction).endswith("rules fired: " + ", ".join(f"{n} {k}" for n, k in sorted(reduction.rules.items(), key=lambda r: (-r[1], r[0]))))
    nothing = hg.jit(lambda a: hnp.sin(a)).lower(X).compile().reduction()
    assert not nothing.rules and "rules" not in str(nothing)
    looped = hg.jit(lambda a: hg.fori_loop(0, 3, lambda i, c: c * 1 + i, a)).lower(2.0).compile().reduction()
    assert looped.rules["mul-one"] == 1, looped
    assert "rules fired" in str(hg.explain(lambda a: a * 1 + a)(X))


def test_compiled_calls_refuse_sizes_that_their_program_does_not_hold_for() -> None:
    """Beyond those it would read out of range."""
    compiled = hg.jit(lambda a: a[4] + a[2:4], dynamic=True).lower(np.arange(8.0)).compile()
    close(compiled(np.arange(5.0)), np.array([6.0, 7.0]))
    with pytest.raises(ArgumentError, match="not n0 = 3: call the jitted function.*test_jit.py"):
        compiled(np.arange(3.0))


def test_make_graph_prints() -> None:
    text = str(hg.make_graph(lambda a, b: hnp.sum(a * b))(X, Y))
    assert text.splitlines() == [
        "graph(%0: float32[6], %1: float32[6])",
        "  %2 = mul %0 %1               float32[6]",
        "  %3 = reduce_sum %2 axes=(0)  float32[]",
        "  return %3",
    ]


def test_text_of_a_graph_tells_programs_apart() -> None:
    def texts(*functions: Any) -> set[str]:
        return {str(hg.make_graph(f)(X)) for f in functions}

    functions = (
        lambda a: a + 0.0,
        lambda a: a + -0.0,
        lambda a: a + 1e-45,
        lambda a: a + np.float32(np.nan),
        lambda a: a + np.array(0x7FC00001, np.uint32).view(np.float32)[()],
        lambda a: a.reshape(2, 3),
        lambda a: a.reshape(3, 2),
        lambda a: a[1:5],
        lambda a: a[0:4],
        lambda a: a.astype("int8"),
        lambda a: hnp.arange(6),
    )
    assert len(texts(*functions)) == len(functions)
    assert len(texts(lambda a: a + 1, lambda b: b + 1)) == 1


def test_common_subexpressions_vanish() -> None:
    graph = hg.make_graph(lambda a: (a + 1) * (a + 1))(X)
    assert sum(n.op.name == "add" for n in graph.nodes()) == 1
    network = graph.to_networkx()
    assert network.number_of_nodes() == len(graph.nodes())


def test_lower_and_compile() -> None:
    lowered = hg.jit(lambda a, b: a - b).lower(X, Y)
    assert "sub" in lowered.as_text("trace") and "# test_jit.py:" in lowered.as_text("trace")
    compiled = lowered.compile()
    close(compiled(X, Y), X - Y)
    with pytest.raises(ArgumentError, match="another signature"):
        compiled(X[:2], Y[:2])


def test_explained_misses(capsys: pytest.CaptureFixture[str]) -> None:
    @hg.jit(static_argnames="n")
    def f(a: Any, p: Any, n: int = 1) -> Any:
        return a * n

    assert f.explain_last_miss() is None
    f(X, {"w": Y})
    assert "first call" in f.explain_last_miss()
    f(X[:2], {"w": Y})
    assert "a changed shape: [6] -> [2]" in f.explain_last_miss()
    f(X, {"w": Y.astype(np.float64)})
    assert "p['w'] changed element type: float32 -> float64" in f.explain_last_miss()
    f(X, {"w": Y}, n=2)
    assert "static n changed: '(not given)' -> 2" in f.explain_last_miss()
    f(X, {"w": Y}, n=3)
    assert "static n changed: 2 -> 3" in f.explain_last_miss()
    f(X, {"v": Y}, n=3)
    assert "p['v'] is new" in f.explain_last_miss()
    f(X, {"w": 1.0})
    assert "p['w'] changed: float64[6] -> Python float" in f.explain_last_miss()
    with settings.override(explain_misses=True):
        f(X[:1], {"w": 1.0})
    assert "a changed shape" in capsys.readouterr().err


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


native_only = pytest.mark.skipif(why_not_native() is not None, reason=str(why_not_native()))


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
    failures: list[Any] = []

    def work(k: int) -> None:
        a = hg.tensor(X + k)
        want = ((X + k) * k).sum() + X + k
        for _ in range(300):
            got = np.asarray(g(a, float(k)))
            if not np.allclose(got, want):
                failures.append((k, got))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


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
