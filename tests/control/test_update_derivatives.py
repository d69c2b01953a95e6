"""Derivatives and stacks of loops with updates: random programs, against the same programs with their loops written out in Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp

ROWS, COLUMNS, LENGTH = 4, 20, 3
SHAPES = (2, ROWS, COLUMNS)
Step = tuple[Any, ...]


class Loops:
    """Loops and branches of Hologram. ``loop`` takes the numbers of its steps, which may be values of a trace."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def loop(self, count: Any, body: Callable[[Any, Any], Any], state: Any) -> Any:
        if self.kind == "while":
            return hg.while_loop(lambda c: c[0] < count, lambda c: (c[0] + 1, body(c[0], c[1])), (0, state))[1]
        if self.kind == "scan":
            return hg.scan(lambda s, i: (body(i, s), None), state, hnp.arange(count))[0]
        return hg.fori_loop(0, count, hg.checkpoint(body) if self.kind == "checkpoint" else body, state)

    @staticmethod
    def chosen(which: Any, branches: list[Callable[[Any], Any]], state: Any) -> Any:
        return hg.switch(which % len(branches), branches, state)


class Plain:
    """The same as Python runs it."""

    @staticmethod
    def loop(count: Any, body: Callable[[Any, Any], Any], state: Any) -> Any:
        for i in range(int(count)):
            state = body(i, state)
        return state

    @staticmethod
    def chosen(which: Any, branches: list[Callable[[Any], Any]], state: Any) -> Any:
        return branches[int(which) % len(branches)](state)


def key_of(how: str, i: Any, a: int) -> Any:
    row, column = (i + a) % ROWS, (i * 5 + a) % (COLUMNS - 5)
    if how == "window":
        return row, hnp.arange(5) + column
    return {"row": row, "element": (row, column), "column": (slice(None), column), "last": (row - ROWS, -1 - column)}[how]


def value_of(x: Any, i: Any) -> Any:
    """Something of what was read, away from 0 where factors of 0 have no derivative."""
    return x * (0.5 + 0.125j) + 0.25 * i if hg.dtypes.of(x.dtype).is_complex else 0.6 + 0.3 * hnp.sin(x + i)


def run(steps: list[Step], on: Any, state: Any, extra: Any, i: Any) -> Any:
    """One step of the loop: updates of two arrays, of which a third, ``extra``, is only read."""
    for op, target, how, source, a, b, around in steps:
        read = (*state, extra)[source]

        def update(s: Any, i: Any = i, op: str = op, target: int = target, how: str = how, a: int = a, b: int = b, read: Any = read) -> Any:
            new = getattr(s[target].at[key_of(how, i, a)], op)(value_of(read[key_of(how, i, b)], i))
            return tuple(new if k == target else x for k, x in enumerate(s))

        if around == "branch":
            state = on.chosen(i + b, [update, lambda s: s, lambda s, update=update: update(update(s))], state)
        elif around == "loop":
            state = on.loop(2, lambda j, s, update=update, i=i: update(s, i=i + j), state)
        elif around == "where":
            state = tuple(hnp.where((i + b) % 2 == 0, new, old) for new, old in zip(update(state), state, strict=True))
        elif around == "swap":
            state = update(state)[::-1]
        else:
            state = update(state)
    return state


def program(steps: list[Step], on: Any, offset: Any = 0, count: Any = LENGTH) -> Callable[[Any, Any], Any]:
    def f(x: Any, extra: Any) -> Any:
        read = hnp.asarray(extra)
        return hnp.stack(on.loop(count, lambda i, s: run(steps, on, s, read, i + offset), (x[0], x[1])))

    return f


def programs(ops: list[str]) -> st.SearchStrategy[list[Step]]:
    return st.lists(
        st.tuples(
            st.sampled_from(ops),
            st.integers(0, 1),
            st.sampled_from(["row", "element", "column", "window", "last"]),
            st.integers(0, 2),
            st.integers(0, 6),
            st.integers(0, 6),
            st.sampled_from(["", "", "branch", "loop", "swap", "where"]),
        ),
        min_size=1,
        max_size=3,
    )


REAL = programs(["set", "set", "add", "multiply", "min", "max"])
FEW = settings(max_examples=settings().max_examples // 10)  # of each test, which compiles two programs an example
DTYPES = {"float32": 2e-3, "float64": 1e-9, "complex128": 1e-9}


def arrays(dtype: str, *shapes: tuple[int, ...]) -> list[np.ndarray]:
    random = np.random.default_rng(5)
    made = [random.uniform(0.5, 1.5, s) + (1j * random.uniform(-0.5, 0.5, s) if dtype.startswith("c") else 0) for s in shapes]
    return [x.astype(dtype) for x in made]


def close(got: Any, want: Any, dtype: str = "float64") -> None:
    for a, b in zip(hg.tree.leaves(got), hg.tree.leaves(want), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=DTYPES[dtype], atol=DTYPES[dtype])


def weighted(f: Callable[..., Any]) -> Callable[..., Any]:
    """A number made of the results of ``f``, different for each element."""

    def loss(*args: Any) -> Any:
        y = f(*args)
        return (hnp.real(y * hnp.conj(y)) * hnp.cos(hnp.arange(y.size, dtype="float32")).reshape(y.shape).astype(hnp.real(y).dtype)).sum()

    return loss


@FEW
@given(REAL, st.sampled_from(["fori", "scan", "checkpoint"]), st.sampled_from(["float32", "float64"]))
def test_gradients(steps: list[Step], kind: str, dtype: str) -> None:
    x, extra = arrays(dtype, SHAPES, SHAPES[1:])
    found = hg.jit(hg.grad(weighted(program(steps, Loops(kind))), argnums=(0, 1)))(x, extra)
    close(found, hg.jit(hg.grad(weighted(program(steps, Plain)), argnums=(0, 1)))(x, extra), dtype)


@FEW
@given(programs(["set", "add"]), st.sampled_from(["fori", "scan"]))
def test_gradients_of_complex_updates(steps: list[Step], kind: str) -> None:
    x, extra = arrays("complex128", SHAPES, SHAPES[1:])
    found = hg.jit(hg.grad(weighted(program(steps, Loops(kind))), argnums=(0, 1)))(x, extra)
    close(found, hg.jit(hg.grad(weighted(program(steps, Plain)), argnums=(0, 1)))(x, extra), "complex128")


@FEW
@given(REAL, st.sampled_from(["fori", "while"]))
def test_forward_mode(steps: list[Step], kind: str) -> None:
    x, extra, t, u = arrays("float64", SHAPES, SHAPES[1:], SHAPES, SHAPES[1:])
    found = hg.jit(lambda *a: hg.jvp(program(steps, Loops(kind)), a[:2], a[2:]))(x, extra, t, u)
    close(found, hg.jit(lambda *a: hg.jvp(program(steps, Plain), a[:2], a[2:]))(x, extra, t, u))


@FEW
@given(REAL)
def test_forward_and_reverse_mode_agree(steps: list[Step]) -> None:
    x, extra, t, u, c = arrays("float64", SHAPES, SHAPES[1:], SHAPES, SHAPES[1:], SHAPES)
    f = program(steps, Loops("fori"))
    pushed = hg.jit(lambda *a: hg.jvp(f, a[:2], a[2:])[1])(x, extra, t, u)
    pulled = hg.jit(lambda x, extra, c: hg.vjp(f, x, extra)[1](c))(x, extra, c)
    np.testing.assert_allclose((c * np.asarray(pushed)).sum(), sum((a * np.asarray(b)).sum() for a, b in zip((t, u), pulled, strict=True)), rtol=1e-9)


@FEW
@given(programs(["set", "add", "multiply", "max"]), st.sampled_from(["fori", "checkpoint"]))
def test_second_derivatives(steps: list[Step], kind: str) -> None:
    x, extra, t = arrays("float64", SHAPES, SHAPES[1:], SHAPES)

    def twice(on: Any) -> Any:
        gradient = hg.grad(weighted(program(steps, on)))
        return hg.jit(lambda x, extra, t: hg.jvp(lambda x: gradient(x, extra), (x,), (t,))[1])(x, extra, t)

    close(twice(Loops(kind)), twice(Plain))


@FEW
@given(REAL, st.sampled_from(["fori", "while", "scan"]), st.booleans(), st.booleans())
def test_stacks(steps: list[Step], kind: str, together: bool, counted: bool) -> None:
    """Examples with starts of their own, and in while loops so many steps of their own."""
    xs, extra = arrays("float64", (3, *SHAPES), SHAPES[1:])
    xs = xs[:1] if together else xs
    offsets, counts = np.array([0, 3, 1]), np.array([2, 0, 3]) if counted and kind == "while" else np.full(3, LENGTH)

    def of_example(x: Any, offset: Any, count: Any) -> Any:
        return program(steps, Loops(kind), offset, count if kind == "while" else LENGTH)(x, extra)

    found = hg.jit(hg.vmap(of_example, in_axes=(None if together else 0, 0, 0)))(xs[0] if together else xs, offsets, counts)
    examples = zip([xs[0]] * 3 if together else xs, offsets, counts, strict=True)
    wanted = [np.asarray(program(steps, Plain, int(o), int(n))(hnp.asarray(x), extra)) for x, o, n in examples]
    close(found, np.stack(wanted))


@FEW
@given(REAL)
def test_gradients_of_stacks(steps: list[Step]) -> None:
    xs, extra = arrays("float64", (2, *SHAPES), SHAPES[1:])
    offsets = np.array([0, 2])
    found = hg.jit(hg.vmap(lambda x, o: hg.grad(weighted(program(steps, Loops("fori"), o)))(x, extra)))(xs, offsets)
    wanted = [np.asarray(hg.jit(hg.grad(weighted(program(steps, Plain, int(o)))))(x, extra)) for x, o in zip(xs, offsets, strict=True)]
    close(found, np.stack(wanted))


# --- what random programs do not reach ------------------------------------------------------------------------------


def test_a_gradient_agrees_with_finite_differences() -> None:
    steps = [("multiply", 0, "window", 2, 0, 1, "branch"), ("set", 1, "row", 0, 2, 3, ""), ("max", 0, "column", 1, 0, 0, "loop")]
    x, extra, t = arrays("float64", SHAPES, SHAPES[1:], SHAPES)
    loss = hg.jit(weighted(program(steps, Loops("fori"))))  # type: ignore[arg-type]
    slope = (float(loss(x + 1e-6 * t, extra)) - float(loss(x - 1e-6 * t, extra))) / 2e-6
    np.testing.assert_allclose((np.asarray(hg.grad(loss)(x, extra)) * t).sum(), slope, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "uint64", "int64"])
def test_examples_that_are_done_keep_their_arrays(dtype: str) -> None:
    """Whatever type starts have, and where updates at the end of an array would be."""

    def f(n: Any) -> Any:
        return hg.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1].at[c[0].astype(dtype)].add(1.0)), (0, hnp.zeros(300)))[1]

    counts = np.array([0, 5, 120, 1])
    np.testing.assert_array_equal(np.asarray(hg.jit(hg.vmap(f))(counts)), np.arange(300) < counts[:, None])


def test_branches_of_a_stack_read_the_operands_and_not_one_another() -> None:
    def f(which: Any, x: Any) -> Any:
        branches = [
            lambda x: (x.at[0].set(7.0), x[0], x),
            lambda x: (x.at[1].set(x[0]), x[1], x),
            lambda x: (x, hg.while_loop(lambda v: v < x[0], lambda v: v + 1, 0.0), x.at[2].add(1.0)),
        ]
        return hg.switch(which, branches, x)

    xs, which = np.arange(20.0).reshape(4, 5), np.array([2, 0, 1, 2])
    found = hg.jit(hg.vmap(f))(which, xs)
    wanted = [f(int(w), hnp.asarray(x)) for w, x in zip(which, xs, strict=True)]
    for k in range(3):
        np.testing.assert_array_equal(np.asarray(found[k]), np.stack([np.asarray(w[k]) for w in wanted]))


def test_loops_and_choices_inside_of_what_an_example_skips() -> None:
    def step(c: Any) -> Any:
        i, x, n = c
        x = hg.fori_loop(0, 2, lambda k, x: x.at[i + k].add(x[k]), x)
        x = hg.cond(i % 2 == 0, lambda x: x.at[0].set(x[1] + i), lambda x: hg.while_loop(lambda x: x[1] < 9, lambda x: x.at[1].add(4.0), x), x)
        return i + 1, x, n

    def f(x: Any, n: Any, on: Any = hg) -> Any:
        return on.while_loop(lambda c: c[0] < c[2], step, (0, x, n))[1]

    class Python:
        @staticmethod
        def while_loop(cond: Any, body: Any, c: Any) -> Any:
            while bool(cond(c)):
                c = body(c)
            return c

    xs, counts = np.random.default_rng(1).uniform(0, 2, (4, 8)), np.array([0, 3, 1, 5])
    wanted = [np.asarray(f(hnp.asarray(x), int(n), Python)) for x, n in zip(xs, counts, strict=True)]
    np.testing.assert_allclose(np.asarray(hg.jit(hg.vmap(f))(xs, counts)), np.stack(wanted), rtol=1e-12)


def test_host_functions_in_branches_see_the_operands() -> None:
    seen: list[float] = []

    def look(x: np.ndarray) -> np.ndarray:
        seen.append(float(x[0]))
        return x[:1]

    def f(which: Any, x: Any) -> Any:
        shape = hg.ShapeDtypeStruct((1,), np.float64)
        return hg.cond(which, lambda x: x.at[:1].set(hg.pure_callback(look, shape, x, vmap_method="sequential")), lambda x: x.at[0].set(-5.0), x)

    found = hg.vmap(f)(np.array([True, False]), np.array([[1.0, 2.0], [3.0, 4.0]]))
    assert np.asarray(found).tolist() == [[1.0, 2.0], [-5.0, 4.0]]
    assert set(seen) <= {1.0, 3.0}
