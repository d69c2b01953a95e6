"""Effects: each is called once for each time that the program comes to it, in order, though nobody reads what it gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import ArgumentError, CheckError, DifferentiationError, ExportError, ShapeError, TransformError
from tests.support.devices.some_devices import available

F32 = hg.ShapeDtypeStruct((), "float32")


class Seen(list[Any]):
    """What effects were given."""

    def note(self, *values: Any) -> None:
        self.append(tuple(x.tolist() if isinstance(x, (np.ndarray, np.generic)) else x for x in values))

    def taken(self) -> list[Any]:
        out = [x[0] if len(x) == 1 else x for x in self]
        self.clear()
        return out


@pytest.fixture
def seen() -> Seen:
    return Seen()


@pytest.fixture(params=["lazy", "jit"])
def run(request: pytest.FixtureRequest) -> Callable[[Any], Any]:
    return hg.jit if request.param == "jit" else lambda f: f


def test_effects_run_in_each_call_and_in_order(run: Any, seen: Seen) -> None:
    def f(x: Any) -> Any:
        hg.debug.callback(seen.note, "a", x)
        hg.debug.callback(seen.note, "b")
        hg.debug.callback(seen.note, "c", x + 1)

    for x in (1.0, 2.0, 3.0):  # by Python, and natively
        assert run(f)(x) is None
        assert seen.taken() == [("a", x), "b", ("c", x + 1)]


def test_one_program_serves_all_calls(seen: Seen) -> None:
    f = hg.jit(lambda x: (hg.debug.callback(seen.note, x), x * 2)[1])
    assert [f(x).item() for x in (1.0, 2.0, 3.0)] == [2, 4, 6] and seen.taken() == [1, 2, 3]
    assert [x.item() for x in (f.lower(4.0).compile()(4.0), f(5.0))] == [8, 10] and seen.taken() == [4, 5]


def test_what_io_callback_gives_is_new_each_time(run: Any) -> None:
    count = iter(range(100))

    def of_two() -> Any:
        first, second = (hg.io_callback(lambda: np.float32(next(count)), F32) for _ in range(2))
        return second, first

    call = run(of_two)
    assert [tuple(map(float, call())) for _ in range(2)] == [(1, 0), (3, 2)]
    steps = run(lambda: hg.scan(lambda c, _: (c, hg.io_callback(lambda: np.float32(next(count)), F32)), 0, None, 3)[1])
    assert np.asarray(steps()).tolist() == [4, 5, 6]


def logged(seen: Seen) -> Callable[[Any, Any], Any]:
    def step(c: Any, x: Any) -> Any:
        hg.debug.callback(seen.note, c)
        return c + x, None

    return step


def test_loops_and_branches(run: Any, seen: Seen) -> None:
    run(lambda xs: hg.scan(logged(seen), 0, xs)[0])(np.arange(4))
    assert seen.taken() == [0, 0, 1, 3]
    run(lambda xs: hg.scan(logged(seen), 0, xs, reverse=True)[0])(np.arange(4))
    assert seen.taken() == [0, 3, 5, 6]
    branch = run(lambda p, x: hg.cond(p, lambda y: (hg.debug.callback(seen.note, y), y)[1], lambda y: y + 1, x))
    assert [int(branch(p, 5)) for p in (True, False, True)] == [5, 6, 5] and seen.taken() == [5, 5]
    nested = run(lambda xs: hg.scan(lambda c, x: (hg.cond(x > 1, lambda: logged(seen)(c, x)[0], lambda: c), None), 10, xs)[0])
    assert int(nested(np.arange(4))) == 15 and seen.taken() == [10, 12]


def test_a_condition_with_effects(run: Any, seen: Seen) -> None:
    def test(i: Any) -> Any:
        hg.debug.callback(seen.note, "test", i)
        return i < 2

    def step(i: Any) -> Any:
        hg.debug.callback(seen.note, "step", i)
        return i + 1

    assert int(run(lambda i: hg.while_loop(test, step, i))(0)) == 2
    assert seen.taken() == [("test", 0), ("step", 0), ("test", 1), ("step", 1), ("test", 2)]
    assert int(run(lambda i: hg.while_loop(test, lambda j: j + 1, i))(2)) == 2 and seen.taken() == [("test", 2)]


def test_stacks_of_examples(run: Any, seen: Seen) -> None:
    def f(x: Any) -> Any:
        hg.debug.callback(seen.note, x)
        hg.debug.callback(seen.note, "one for all")
        return x

    run(hg.vmap(f))(np.arange(3))
    assert seen.taken() == [0, 1, 2, "one for all"]
    run(hg.vmap(hg.vmap(f)))(np.arange(4).reshape(2, 2))
    assert seen.taken() == [0, 1, 2, 3, "one for all"]
    run(hg.vmap(lambda xs: hg.scan(logged(seen), 0, xs)[0]))(np.arange(4).reshape(2, 2))
    assert seen.taken() == [0, 0, 0, 2]
    run(hg.vmap(f))(np.zeros(0))
    assert seen.taken() in ([], ["one for all"])


def _doubled(seen: Seen) -> Callable[[Any], Any]:
    """Gives the double of a scalar, and notes it."""
    return lambda x: hg.io_callback(lambda v: (seen.append(float(v)), 2 * v)[1], hg.ShapeDtypeStruct((), np.float64), x)


@pytest.mark.parametrize("name", ["itself", "read", "nested", "looped", "branch", "alike", "differentiated"])
def test_what_effects_of_examples_gave_is_kept(seen: Seen, name: str) -> None:
    call, x = _doubled(seen), np.array([1.0, 2.0, 3.0])
    cases: dict[str, tuple[Callable[[], Any], Any, int]] = {
        "itself": (lambda: hg.vmap(call)(x), 2 * x, 3),
        "read": (lambda: hg.vmap(lambda e: (call(e) + 1, e))(x)[0], 2 * x + 1, 3),
        "nested": (lambda: hg.vmap(hg.vmap(lambda e: call(e) * e))(x[None]), 2 * x[None] ** 2, 3),
        "looped": (lambda: hg.vmap(lambda e: hg.scan(lambda c, _: (c + call(c), None), e, None, length=2)[0])(x), 9 * x, 6),
        "branch": (lambda: hg.vmap(lambda e: hg.cond(e > 1, call, lambda e: -e, e))(x), np.array([-1.0, 4.0, 6.0]), 2),
        "alike": (lambda: hg.vmap(lambda e: e + call(hnp.asarray(1.0, "float64")))(x), x + 2, 1),
        "differentiated": (lambda: hg.grad(lambda x: hnp.sum(hg.vmap(lambda e: e * hg.stop_gradient(call(e)))(x)))(x), 2 * x, 3),
    }
    run, want, calls = cases[name]
    got = run()
    np.testing.assert_allclose(got, want)
    np.testing.assert_allclose(got + 1, want + 1)
    assert len(seen) == calls


def test_examples_that_are_done_have_no_effects(run: Any, seen: Seen) -> None:
    def count(n: Any) -> Any:
        return hg.while_loop(lambda i: i < n, lambda i: (hg.debug.callback(seen.note, i, n), i + 1)[1], 0)

    assert np.asarray(run(hg.vmap(count))(np.array([1, 3]))).tolist() == [1, 3]
    assert seen.taken() == [(0, 1), (0, 3), (1, 3), (2, 3)]
    run(hg.vmap(hg.vmap(count)))(np.array([[1, 2], [0, 1]]))
    assert sorted(seen.taken()) == [(0, 1), (0, 1), (0, 2), (1, 2)]
    choice = hg.vmap(lambda p, x: hg.cond(p, lambda: (hg.debug.callback(seen.note, x), x)[1], lambda: x * 2))
    assert np.asarray(run(choice)(np.array([True, False, True]), np.arange(3))).tolist() == [0, 2, 2] and seen.taken() == [0, 2]


def loss(seen: Seen) -> Callable[[Any], Any]:
    def step(c: Any, x: Any) -> Any:
        hg.debug.callback(seen.note, x)
        return hnp.sin(c) * x, c

    return lambda x: hnp.sum(hg.scan(step, x, hnp.arange(1.0, 4.0))[0])


TRANSFORMED: dict[str, Any] = {
    "grad": lambda f: hg.grad(f)(0.5),
    "value_and_grad": lambda f: hg.value_and_grad(f)(0.5)[1],
    "jvp": lambda f: hg.jvp(f, (0.5,), (1.0,))[1],
    "checkpoint": lambda f: hg.grad(hg.checkpoint(f))(0.5),
    "vmap of grad": lambda f: hg.vmap(hg.grad(f), in_axes=None, axis_size=1)(0.5)[0],
    "grad of grad": lambda f: hg.grad(lambda x: hg.grad(f)(x))(0.5),
    "branches": lambda f: hg.grad(lambda x: hg.cond(x > 0, f, lambda y: y, x))(0.5),
    "while": lambda f: hg.jvp(lambda x: hg.while_loop(lambda c: c[0] < 1, lambda c: (c[0] + 1, f(c[1])), (0, x))[1], (0.5,), (1.0,))[1],
}


@pytest.mark.crossed
@pytest.mark.parametrize("passes", [(), ("bodies",)])
@pytest.mark.parametrize("name", TRANSFORMED)
def test_derivatives_go_round_effects_and_do_not_repeat_them(run: Any, seen: Seen, name: str, passes: tuple[str, ...]) -> None:
    with hg.settings.override(disabled_passes=passes):
        got = run(lambda: TRANSFORMED[name](loss(seen)))()
        assert seen.taken() == [1, 2, 3]
        silent = run(lambda: TRANSFORMED[name](loss(Seen())))()
    np.testing.assert_allclose(np.asarray(got), np.asarray(silent), rtol=1e-6)


def test_effects_of_stacks_of_loops_have_no_part_in_derivatives(seen: Seen) -> None:
    f = loss(seen)
    got = hg.jit(hg.grad(lambda x: hnp.sum(hg.vmap(f)(x))))(np.float32([0.5, 0.5]))
    assert seen.taken() == [1, 2, 3]  # one for all, as no argument depends on the example
    np.testing.assert_allclose(np.asarray(got), np.asarray(hg.grad(f)(0.5)), rtol=1e-6)


def test_gradients_can_be_seen(run: Any, seen: Seen) -> None:
    shown = hg.custom_vjp(lambda x: x)
    shown.defvjp(lambda x: (x, None), lambda _, g: (hg.debug.callback(seen.note, g), (g,))[1])
    run(hg.grad(lambda x: shown(x) * 3))(2.0)
    assert seen.taken() == [3]
    with pytest.raises(TransformError, match="has no place in the derivative of a loop"):
        run(hg.grad(lambda x: hg.scan(lambda c, _: (shown(c) * 3, None), x, None, 2)[0]))(2.0)


def test_what_would_be_called_again_is_refused() -> None:
    def step(c: Any, _: Any) -> Any:
        return hnp.sin(c) * hg.io_callback(lambda: np.float32(2), F32), None

    with pytest.raises(DifferentiationError, match="call it around the loop or branch"):
        hg.jit(hg.grad(lambda x: hg.scan(step, x, None, 2)[0]))(1.0)
    with pytest.raises(DifferentiationError, match="stop_gradient"):
        hg.jit(hg.grad(lambda x: hg.io_callback(np.sin, F32, x)))(1.0)
    with pytest.raises(DifferentiationError, match="computed again"):
        hg.jit(hg.grad(hg.checkpoint(lambda x: x * x * hg.io_callback(lambda a: a, F32, hg.stop_gradient(x)))))(1.0)
    product = hg.jit(hg.grad(lambda x: x * hg.io_callback(lambda a: a * 2, F32, hg.stop_gradient(x))))
    assert float(product(3.0)) == 6


def test_errors_of_effects_are_the_callers(run: Any) -> None:
    def fails(x: Any) -> Any:
        raise LookupError(f"no {x}")

    with pytest.raises(LookupError, match="no 2"):
        run(lambda xs: hg.scan(lambda c, x: (hg.cond(x > 1, lambda: hg.debug.callback(fails, x), lambda: None), (c, None))[1], 0, xs)[0])(
            np.arange(4)
        )
    with pytest.raises(ShapeError, match=r"io_callback: .* gave an array of shape \[2\]"):
        run(lambda x: hg.io_callback(lambda a: np.zeros(2, np.float32), F32, x))(1.0)
    with pytest.raises(ArgumentError, match="io_callback takes a function"):
        hg.io_callback(3, None)  # type: ignore[arg-type]


def test_shapes_and_graphs_of_functions_with_effects(seen: Seen) -> None:
    f = lambda x: (hg.debug.callback(seen.note, x), x * 2)[1]  # noqa: E731
    assert hg.eval_shape(f, 1.0) == F32
    assert "effect" in str(hg.make_graph(f)(1.0)) and not seen
    with pytest.raises(ExportError, match="it calls note"):
        hg.export(hg.jit(f), np.float32(1))


def test_a_trace_that_fails_leaves_nothing_behind(seen: Seen) -> None:
    def f(x: Any) -> Any:
        hg.debug.callback(seen.note, x)
        raise LookupError

    for g in (hg.jit(f), hg.vmap(f), hg.jit(hg.vmap(f))):
        with pytest.raises(LookupError):
            g(np.ones(2))
    hg.debug.callback(seen.note, "at once")
    assert seen.taken() == ["at once"]


@pytest.mark.parametrize("name", ["opencl", "cuda"])
def test_effects_on_devices(name: str, seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    device = available(name, monkeypatch)

    def f(xs: Any) -> Any:
        hg.debug.check(hnp.all(xs >= 0), "negative")
        return hg.scan(logged(seen), 0, xs)[0]

    g = hg.jit(f, device=device.name)
    for _ in range(3):
        hg.block_until_ready(g(np.arange(4)))
        assert seen.taken() == [0, 0, 1, 3]
    with pytest.raises(CheckError, match="negative"):
        hg.block_until_ready(g(np.array([1, -1, 2, 3])))


def test_effects_on_several_devices_are_ordered(seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    device = available("opencl", monkeypatch)

    def f(x: Any) -> Any:
        y = hg.device_put(x, device.name) * 2
        hg.debug.callback(seen.note, y)
        z = hg.device_put(y, "cpu") + 1
        hg.debug.callback(seen.note, z)
        hg.scan(logged(seen), 0.0, y)
        return z

    g = hg.jit(f)
    for _ in range(3):
        g(np.float32([1, 2]))
        assert seen.taken() == [[2, 4], [3, 5], 0, 2]


@pytest.mark.parametrize("dynamic", [True, False, "auto"])
def test_sizes_that_vary(dynamic: Any, seen: Seen) -> None:
    g = hg.jit(lambda x: (hg.debug.callback(seen.note, x.shape[0], x.sum()), x * 2)[1], dynamic=dynamic)
    for n in (2, 3, 4, 5):
        assert g(np.ones(n)).shape == (n,)
    assert seen.taken() == [(n, n) for n in (2, 3, 4, 5)]
