"""Expressions that are met for the first time, of ops that are known: native code runs them, with the bits of compiled programs."""

from __future__ import annotations

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
from hologram.backends.op_by_op import native_peepholes, ready_kernels
from hologram.backends.op_by_op.native_peepholes import known_peepholes
from hologram.settings import override
from hologram.trace import lazy
from hologram.trace.lazy_programs import immediate

pytestmark = pytest.mark.skipif(why_not_native() is not None, reason=f"no native calls: {why_not_native()}")

X = np.linspace(-2.5, 3.5, 37, dtype=np.float32)
Y = np.geomspace(0.1, 40, 37, dtype=np.float32)


@pytest.fixture(autouse=True)
def small_work_at_once() -> Iterator[None]:
    lazy.clear()
    with override(op_by_op=True, cache=False):
        yield
    lazy.clear()


def _runs() -> int:
    return known_peepholes().runs


def _compiled(f: Callable[..., Any], *args: Any) -> Any:
    with override(op_by_op=False):
        return np.asarray(f(*map(hg.tensor, args)))


def _teach(*ops: Callable[..., Any]) -> None:
    """Runs expressions of two operands: once for the kernels, and once more, of another size, with these ready."""
    for n in (5, 6):
        for f in ops:
            np.asarray(f(hg.tensor(X[:n]), hg.tensor(Y[:n])))


def _assert_run_at_first_sight(x: Any, y: Any, *expressions: Callable[[Any, Any], Any]) -> None:
    before = _runs()
    found = [np.asarray(f(x, y)) for f in expressions]
    assert _runs() == before + len(expressions)
    for f, of in zip(expressions, found, strict=True):
        assert of.tobytes() == _compiled(f, x, y).tobytes()


def test_an_expression_of_known_ops_is_not_walked_by_python(walks: list[int], compilations: list[Any]) -> None:
    x, y = hg.tensor(X), hg.tensor(Y)
    _teach(lambda x, y: hnp.sin(x) * y, lambda x, y: hnp.exp(x), lambda x, y: x + y)
    walks.clear()
    _assert_run_at_first_sight(x, y, lambda x, y: hnp.sin(x) + y, lambda x, y: hnp.exp(hnp.sin(x)) * y, lambda x, y: hnp.exp(x + y))
    assert len(walks) <= 3  # those of the compiled ones


def test_what_comes_again_is_pythons() -> None:
    x, y = hg.tensor(X), hg.tensor(Y)
    _teach(lambda x, y: hnp.sin(x) * y, lambda x, y: x + y)
    before = _runs()
    for _ in range(4):
        np.asarray(hnp.sin(x) + y)
    assert 1 <= _runs() - before <= 2  # that its leaves have been seen makes it another one


DIFFERENCES: dict[str, Callable[[Any, Any], Any]] = {
    "of a product and another number": lambda x, y: x * y - hnp.exp(x),
    "of a number and a product": lambda x, y: hnp.exp(x) - x * y,
    "of a product and its copy": lambda x, y: x * y - x * y,
    "of a product and the same, exchanged": lambda x, y: x * y - y * x,
    "of a product of copies and its copy": lambda x, y: hnp.exp(x) * y - hnp.exp(x) * y,
    "of two products": lambda x, y: x * y - hnp.exp(x) * y,
    "of a product that is read elsewhere": lambda x, y: hnp.exp((z := x * y) - y) + z,
    "of a scaled product": lambda x, y: x * 0.3 - y,
    "of a product and its floor": lambda x, y: (z := x * y) - hnp.floor(z),
    "of a product and its negative": lambda x, y: (z := x * y) - (-z),
    "of squares": lambda x, y: x * x - y * y,
    "of a square and itself": lambda x, y: (z := x * x) - z,
}


PARTS: tuple[Callable[[Any, Any], Any], ...] = (
    lambda x, y: x * y,
    lambda x, y: hnp.exp(x) * y,
    lambda x, y: x - y,
    lambda x, y: x * y - hnp.exp(y),
    lambda x, y: y - x * y,
    lambda x, y: x * y - x * x,
    lambda x, y: hnp.floor(x) - (-y),
    lambda x, y: x * 0.5 - y,
    lambda x, y: (z := x * y) - z * y,
)


@pytest.mark.parametrize("name", DIFFERENCES)
def test_sums_take_the_same_products_unrounded(name: str) -> None:
    x, y = hg.tensor(X), hg.tensor(Y)
    _teach(*PARTS)
    found = np.asarray(DIFFERENCES[name](x, y))
    assert found.tobytes() == _compiled(DIFFERENCES[name], X, Y).tobytes()


def test_several_values_at_once_and_scalars() -> None:
    x, y, s = hg.tensor(X), hg.tensor(Y), hg.tensor(np.float32(0.7))
    _teach(lambda x, y: hnp.sin(x) * y, lambda x, y: x + y, lambda x, y: x * s, lambda x, y: hnp.exp(x))
    _teach(lambda x, y: hnp.sin(s) * 0.3, lambda x, y: hnp.sin(s * s) * 0.3)
    before = _runs()
    a, b, c = hnp.sin(x) + y, hnp.exp(x * s), hnp.sin(s) * 0.25
    hg.eval(a, b, c)
    assert _runs() == before + 1
    for found, f in ((a, lambda x, y, s: hnp.sin(x) + y), (b, lambda x, y, s: hnp.exp(x * s)), (c, lambda x, y, s: hnp.sin(s) * 0.25)):
        assert np.asarray(found).tobytes() == _compiled(f, X, Y, np.float32(0.7)).tobytes()


def test_nothing_is_learnt_of_operands_that_are_one_node_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two casts of one array are one node of a program. So a quotient of them says nothing about quotients of other operands."""
    monkeypatch.setattr(ready_kernels, "REFERENCE_USES", 0)
    b = np.arange(1, 38, dtype=np.uint8)
    for n in (5, 6):
        a = hg.tensor(b[:n])
        np.asarray(hnp.floor(a / a))
        np.asarray(hnp.floor(hg.tensor(X[:n])) + a)
    found = np.asarray(hg.tensor(b) / hg.tensor(Y))
    assert found.tobytes() == _compiled(lambda b, y: b / y, b, Y).tobytes()


REDUCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "a sum": lambda x, y: hnp.sum(hnp.exp(x)),
    "a sum of products": lambda x, y: hnp.sum(x * y) + 1.5,
    "a maximum": lambda x, y: hnp.max(x + y) - hnp.min(x),
    "normalised": lambda x, y: (x - hnp.max(x)) / hnp.sum(y),
    "a mean": lambda x, y: hnp.mean(x + y),
    "divided": lambda x, y: hnp.exp(x) / 3.7 + y / 3.7,
    "all": lambda x, y: hnp.all(x < y),
}


@pytest.mark.parametrize("shape", [(37,), (6, 5), (2, 2, 3), (1,), (5, 1), (3000,), (7000,)])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_and_quotients(name: str, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ready_kernels, "REFERENCE_USES", 0)
    x, y = (np.linspace(a, a + 2, int(np.prod(shape)), dtype=np.float32).reshape(shape) for a in (-0.5, 0.3))
    _teach(*REDUCTIONS.values())
    _teach(lambda x, y: REDUCTIONS[name](x[None], y[None]), lambda x, y: REDUCTIONS[name](x[None, :, None] + y[:, None], y))
    found = np.asarray(REDUCTIONS[name](hg.tensor(x), hg.tensor(y)))
    assert found.tobytes() == _compiled(REDUCTIONS[name], x, y).tobytes()


def test_arrays_of_several_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ready_kernels, "REFERENCE_USES", 0)
    _teach(lambda x, y: hnp.sum(hnp.exp(x)) * y - hnp.max(y), lambda x, y: x / 0.7 - y)
    a, b = X[:30], Y[:8]

    def f(a: Any, b: Any) -> Any:
        return hnp.sum(hnp.exp(a)) * (b / 0.3) - hnp.max(a)

    before = _runs()
    found = np.asarray(f(hg.tensor(a), hg.tensor(b)))
    assert _runs() == before + 1 and found.tobytes() == _compiled(f, a, b).tobytes()


def test_reductions_run_at_first_sight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ready_kernels, "REFERENCE_USES", 0)
    _teach(lambda x, y: hnp.sum(hnp.exp(x)), lambda x, y: hnp.max(x + y) - x, lambda x, y: x / 0.7, lambda x, y: hnp.sum(y) / 3.3)
    x, y = hg.tensor(X), hg.tensor(Y)
    _assert_run_at_first_sight(x, y, lambda x, y: hnp.sum(x + y) / 3.7, lambda x, y: hnp.max(hnp.exp(x)) - y, lambda x, y: (x + y) / 0.3)


def test_shapes_play_no_part() -> None:
    _teach(lambda x, y: hnp.sin(x) * y, lambda x, y: hnp.exp(x), lambda x, y: x + 0.25)
    arrays = [np.linspace(0, 1, int(np.prod(s)), dtype=np.float32).reshape(s) for s in ((5,), (1,), (4, 3), (1, 1, 6), (900,))]
    before = _runs()
    found = [np.asarray(hnp.exp(hnp.sin(hg.tensor(a)))) for a in arrays]
    assert _runs() == before + len(arrays)
    empty = hnp.exp(hnp.sin(hnp.zeros((0, 3))))
    assert np.asarray(empty).shape == (0, 3)
    before = _runs()
    hg.eval(p := hnp.exp(hnp.sin(hg.tensor(X[:5]) + 0.25)), q := hnp.exp(hnp.sin(hg.tensor(X[:6]) + 0.25)))
    assert _runs() == before + 1 and p.shape == (5,) and q.shape == (6,)
    assert np.asarray(p).tobytes() == np.asarray(q)[:5].tobytes()
    for a, of in zip(arrays, found, strict=True):
        assert of.shape == a.shape and of.tobytes() == _compiled(lambda x: hnp.exp(hnp.sin(x)), a).tobytes()


def test_it_can_be_turned_off() -> None:
    _teach(lambda x, y: hnp.sin(x), lambda x, y: hnp.exp(x))
    before = _runs()
    with override(op_by_op=False):
        np.asarray(hnp.exp(hnp.sin(hg.tensor(X))))
    assert _runs() == before


def test_large_work_is_pythons() -> None:
    x = hg.tensor(np.linspace(0, 1, immediate.MAX_ELEMENTS, dtype=np.float32))
    _teach(lambda x, y: hnp.sin(x), lambda x, y: hnp.exp(x))
    before = _runs()
    np.asarray(hnp.exp(hnp.sin(x)))
    assert _runs() == before


@pytest.mark.parametrize("name", ["nans", "profile"])
def test_settings_that_look_at_each_run_see_it(name: str) -> None:
    x = hg.tensor(X)
    _teach(lambda x, y: hnp.sin(x) + y, lambda x, y: hnp.exp(x))
    before = _runs()
    with override(**{name: True}):
        np.asarray(hnp.exp(hnp.sin(x)))
        np.asarray(hnp.sin(hnp.exp(x)))
    assert _runs() == before


def test_values_that_were_read_before_are_kept() -> None:
    """A node below two expressions is computed twice at most."""
    x = hg.tensor(X)
    _teach(lambda x, y: hnp.sin(x) * y, lambda x, y: hnp.exp(x) + y)
    shared = hnp.sin(hnp.exp(x))
    first = np.asarray(shared * x)
    second = np.asarray(shared + x)
    assert shared._node is not None and shared._node.op.name == "leaf"
    assert first.tobytes() == _compiled(lambda x: hnp.sin(hnp.exp(x)) * x, X).tobytes()
    assert second.tobytes() == _compiled(lambda x: hnp.sin(hnp.exp(x)) + x, X).tobytes()


UNARY: tuple[Callable[[Any], Any], ...] = (
    hnp.sin,
    hnp.exp,
    hnp.abs,
    hnp.floor,
    hnp.tanh,
    lambda x: -x,
    lambda x: x.astype("float32"),
    lambda x: x.astype("int32"),
    lambda x: x * 0.3,
    lambda x: x + 1,
    lambda x: 2 - x,
    lambda x: x * 3,
    lambda x: x / 3.5,
    lambda x: x / 3,
    hnp.sum,
    hnp.max,
    lambda x: x - hnp.mean(x),
    lambda x: x * hnp.exp(-hnp.sum(x * x)),
    lambda x: hnp.sum(x) * x - 0.3,
    lambda x: hnp.logaddexp(0.3, x),
    lambda x: hnp.arctan2(hnp.max(x), x),
)
BINARY: tuple[Callable[[Any, Any], Any], ...] = (
    lambda x, y: x + y,
    lambda x, y: x - y,
    lambda x, y: x * y,
    hnp.maximum,
    hnp.minimum,
    lambda x, y: hnp.where(x > y, x, y),
    lambda x, y: hnp.where((x > y) | (x < 0.5), x, 0.3),
    lambda x, y: x / y,
    lambda x, y: hnp.sum(x * y),
)


@st.composite
def programs(draw: st.DrawFn) -> list[tuple[int, int, int]]:
    """Statements: an op, and the numbers of earlier values that it takes."""
    n = draw(st.integers(1, 6))
    n_ops = len(UNARY) + len(BINARY)
    return [(draw(st.integers(0, n_ops - 1)), draw(st.integers(0, 2 + i)), draw(st.integers(0, 2 + i))) for i in range(n)]


def _run(program: list[tuple[int, int, int]], values: list[Any]) -> Any:
    values = list(values)
    for op, a, b in program:
        values.append(UNARY[op](values[a]) if op < len(UNARY) else BINARY[op - len(UNARY)](values[a], values[b]))
    return values[-1]


@given(st.lists(programs(), min_size=4, max_size=10))
@examples(max_examples=60)
def test_any_expressions_have_the_bits_of_compiled_ones(drawn: list[list[tuple[int, int, int]]]) -> None:
    """One after the other, so that what the first ones teach serves the others."""
    sources = [X, Y, np.float32(0.7)]
    tensors = [hg.tensor(v) for v in sources]
    with np.errstate(all="ignore"):
        found = [np.asarray(_run(p, tensors)) for p in drawn]
        with override(op_by_op=False):
            wanted = [np.asarray(_run(p, [hg.tensor(v) for v in sources])) for p in drawn]
    for p, a, b in zip(drawn, found, wanted, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape, p
        np.testing.assert_array_equal(a, b, err_msg=str(p))
        np.testing.assert_array_equal(np.signbit(a), np.signbit(b)) if a.dtype.kind == "f" else None


def test_there_is_an_end_of_what_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each integer is another peephole. When there are too many, all are forgotten."""
    monkeypatch.setattr(native_peepholes, "MAX_PEEPHOLES", 20)
    x = hg.tensor(np.arange(7))
    for k in range(3, 60):
        np.testing.assert_array_equal(np.asarray(abs(x * k) + k), np.arange(7) * k + k)
        assert known_peepholes()._state.n_peepholes <= 20
    before = _runs()
    _teach(lambda x, y: hnp.sin(x) * y, lambda x, y: hnp.exp(x))
    np.testing.assert_array_equal(np.asarray(hnp.exp(hnp.sin(hg.tensor(X)))), np.asarray(hnp.exp(hg.tensor(np.asarray(hnp.sin(hg.tensor(X)))))))
    assert _runs() > before


def test_nothing_is_learnt_of_a_walk_whose_nodes_have_settled() -> None:
    """As another thread may settle them while kernels are compiled: native code then walks other nodes than Python did."""
    _teach(lambda x, y: hnp.sin(x), lambda x, y: hnp.exp(x))
    x, y = hg.tensor(X), hg.tensor(Y)
    inner = hnp.sin(x) - y
    outer = inner / (x - y)
    walk = lazy._Walk([outer._node])
    np.asarray(inner)
    before = known_peepholes()._state.n_peepholes
    assert lazy._at_once(walk) is None
    assert known_peepholes()._state.n_peepholes == before
