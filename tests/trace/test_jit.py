"""``jit``: signatures, pytrees, static and dynamic arguments, tracing rules."""

from __future__ import annotations

import copy
import functools
import inspect
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram import errors
from hologram.trace import tree
from tests.support.jitting import Counted, Point, X, Y, close

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


def test_options_that_are_none_name_no_arguments() -> None:
    f = hg.jit(lambda x: 2 * x, static_argnums=None, static_argnames=None, donate_argnums=None, donate_argnames=None)
    assert f(3) == 6


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
