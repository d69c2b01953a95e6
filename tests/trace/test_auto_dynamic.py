"""``jit(dynamic="auto")``: axes whose sizes vary turn symbolic, and neither results nor errors change."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import ArgumentError, HologramError, ShapeError
from tests.support.extent_steps import STEPS


def array(*shape: int, dtype: str = "float32") -> np.ndarray:
    return np.random.default_rng(list(shape)).standard_normal(shape).astype(dtype)


def shapes(f: Any) -> list[str]:
    """The types for which ``f`` has programs."""
    return [", ".join(map(repr, s.record.types)) for s in f._specialisations.values()]


def same(got: Any, want: Any) -> None:
    for g, w in zip(hg.tree.leaves(got), hg.tree.leaves(want), strict=True):
        g, w = np.asarray(g), np.asarray(w)
        assert g.dtype == w.dtype and g.shape == w.shape
        np.testing.assert_array_equal(g, w)


def test_the_third_size_compiles_one_program_for_all() -> None:
    f = hg.jit(lambda x, y: hnp.sum(x * y, axis=1))
    for n in (5, 7, 9, 11, 300, 5, 7, 2):
        np.testing.assert_allclose(f(array(n, 3), array(3)), array(n, 3) @ array(3), rtol=1e-5, atol=1e-6)
    assert shapes(f) == ["float32[5, 3], float32[3]", "float32[7, 3], float32[3]", "float32[n0, 3], float32[3]"]
    assert "x changed shape: [7, 3] -> [n0, 3]" in f.explain_last_miss()


def test_what_never_changes_stays_static() -> None:
    """An axis that turns up with another size later turns symbolic then."""
    f = hg.jit(lambda x: 2 * x)
    for n in (5, 6, 7, 8):
        same(f(array(n, 3)), 2 * array(n, 3))
    assert shapes(f)[2:] == ["float32[n0, 3]"]
    for n, m in ((5, 4), (6, 9), (8, 8), (3, 3)):
        same(f(array(n, m)), 2 * array(n, m))
    assert shapes(f)[2:] == ["float32[n0, 3]", "float32[n0, n1]", "float32[n0, n0]"]


def test_axes_that_vary_together_turn_symbolic_together() -> None:
    f = hg.jit(lambda x, y: x[:, None] + y)
    for n in (4, 5, 6, 9):
        same(f(array(n), array(n)), array(n)[:, None] + array(n))
    assert shapes(f)[2:] == ["float32[n0], float32[n0]"]


def test_sizes_that_become_equal_or_different() -> None:
    """Equal sizes share a symbol: the others are another program, of which each call takes its own."""
    f = hg.jit(lambda x, y: (x.shape == y.shape) * 10 + hnp.sum(x) * hnp.sum(y), precision="exact")
    rng = np.random.default_rng(0)
    for n, m in [(3, 4), (5, 4), (6, 7), (7, 7), (8, 2), (9, 9), (3, 3), *rng.integers(0, 6, (20, 2)).tolist()]:
        x, y = array(n), array(m)
        same(f(x, y), hg.jit(lambda x, y: (x.shape == y.shape) * 10 + hnp.sum(x) * hnp.sum(y), precision="exact", dynamic=False)(x, y))
    assert sum("n0" in s for s in shapes(f)) <= 6  # either of 0, of 1, equal or different


def _batches(order: Any, f: Any) -> int:
    parameters = {"w": array(8, 16), "b": array(16), "v": array(16, 4)}
    for n in order:
        f(parameters, array(n, 8), array(n, 4))
    return len(f._specialisations)


def _loss(p: Any, x: Any, y: Any) -> Any:
    return hnp.mean((hnp.tanh(x @ p["w"] + p["b"]) @ p["v"] - y) ** 2)


def test_gradients_of_batches_in_random_order_are_three_programs() -> None:
    f = hg.jit(hg.value_and_grad(_loss))
    order = np.random.default_rng(1).permutation(np.arange(2, 513))
    assert _batches(order, f) == 3
    assert _batches([1], f) == 4  # which broadcasts, so it has one of its own
    g = hg.jit(hg.value_and_grad(_loss), dynamic=False)
    parameters = {"w": array(8, 16), "b": array(16), "v": array(16, 4)}
    for n in (2, 3, 64, 333):
        for got, want in zip(*[hg.tree.leaves(h(parameters, array(n, 8), array(n, 4))) for h in (f, g)], strict=True):
            np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * 2 if x.shape[0] > 5 else x,
        lambda x: sum((x[i] for i in range(x.shape[0])), x[0]),
        lambda x: x * {5: 2.0}.get(x.shape[0], 3.0),
        lambda x: x.reshape(-1, 2 if x.shape[0] % 2 == 0 else 1),
        lambda x: x * float(np.sqrt(len(x))),
        lambda x: x + np.arange(x.shape[0]),
    ],
)
def test_functions_that_depend_on_a_size_stay_static(function: Callable[[Any], Any]) -> None:
    f = hg.jit(function, precision="exact")
    for n in (4, 5, 6, 7, 8, 4):
        same(f(array(n)), hg.jit(function, precision="exact", dynamic=False)(array(n)))
    assert shapes(f) == [f"float32[{n}]" for n in (4, 5, 6, 7, 8)]


def test_misses_tell_why_sizes_stay_static(capsys: pytest.CaptureFixture[str]) -> None:
    f = hg.jit(lambda x: x * 2 if x.shape[0] > 5 else x)
    with hg.settings.override(explain_misses=True):
        for n in (4, 5, 6):
            f(array(n))
    assert f.explain_last_miss() in capsys.readouterr().err
    assert "x changed shape: [5] -> [6]\n  its sizes stay static, because with symbols: n0 > 5 is not known while tracing" in f.explain_last_miss()


def test_a_refusal_that_the_function_catches_counts() -> None:
    """It might do something else with a size that it knows."""

    def function(x: Any) -> Any:
        try:
            return x * int(x.shape[0])
        except TypeError:
            return x * 0

    f = hg.jit(function)
    for n in (4, 5, 6, 7):
        same(f(array(n)), array(n) * np.float32(n))
    assert shapes(f) == [f"float32[{n}]" for n in (4, 5, 6, 7)]


def test_what_failed_is_traced_with_symbols_once() -> None:
    traced: list[Any] = []

    def function(x: Any) -> Any:
        traced.append(x.shape)
        return x * 2 if x.shape[0] > 5 else x

    f = hg.jit(function)
    for n in range(4, 12):
        f(array(n))
    assert len(traced) == 9 and sum(not isinstance(s[0], int) for s in traced) == 1


def test_errors_do_not_change() -> None:
    """A call that is wrong raises what it raises for its own sizes, and does not keep others from being served."""
    f, g = (hg.jit(lambda x, y: x + y, dynamic=d) for d in ("auto", False))
    for n, m in ((4, 4), (5, 5), (6, 6), (7, 8), (9, 3), (9, 9), (10, 11)):
        found = []
        for h in (f, g):
            try:
                found.append(np.asarray(h(array(n), array(m))).tobytes())
            except HologramError as e:
                found.append(type(e))
                assert "symbol" not in str(e).partition(" (at ")[0] + "".join(getattr(e, "__notes__", [])) and e.__context__ is None
        assert found[0] == found[1] and (n == m or found[0] is ShapeError)
    assert "float32[n0], float32[n0]" in shapes(f)


def test_guards_that_fail() -> None:
    """What a program takes for granted of sizes is checked in each call."""

    def function(x: Any) -> Any:
        return x[x.shape[0] - 5 :], x[:3]

    f = hg.jit(function)
    for n in (9, 8, 7, 6, 4, 3, 2, 12, 4, 5):
        same(f(array(n)), (array(n)[n - 5 :], array(n)[:3]))


def test_sizes_0_and_1_have_programs_of_their_own() -> None:
    f = hg.jit(lambda x, y: x + y)
    for n in (5, 0, 6, 1, 7, 0, 1, 8):
        for m in {n, 1}:
            same(f(array(n), array(m)), array(n) + array(m))
    assert not any("n0" in s and ("[0]" in s) for s in shapes(f))


def test_false_stays_static() -> None:
    f = hg.jit(lambda x: x + 1, dynamic=False)
    for n in (4, 5, 6, 7):
        f(array(n))
    assert shapes(f) == [f"float32[{n}]" for n in (4, 5, 6, 7)]
    assert hg.jit(lambda x: x)._signature.dynamic is not False
    with pytest.raises(ArgumentError, match="dynamic is a bool, 'auto' or a dict.*not 'always'"):
        hg.jit(lambda x: x, dynamic="always")


def test_static_arguments_and_types_are_families_of_their_own() -> None:
    f = hg.jit(lambda x, k: x * k, static_argnums=1)
    for n in (4, 5):
        f(array(n), 2)
    for n in (6, 7):
        f(array(n), 3)
        f(array(n, dtype="float64"), 2)
    assert not any("n0" in s for s in shapes(f))
    f(array(8), 2)
    assert sum("n0" in s for s in shapes(f)) == 1


def test_many_sizes_are_served_natively() -> None:
    f = hg.jit(lambda d, x: {"y": d["a"] * 2, "z": hnp.sum(x)})
    for _ in range(3):
        for n in range(2, 150):
            found = f({"a": array(n)}, array(n))
            np.testing.assert_array_equal(found["y"], 2 * array(n))
    assert len(f._specialisations) == 3 and len(f._dispatch) == 148
    for n in (149, 2, 77):
        same(f({"a": array(n)}, array(n))["y"], 2 * array(n))


def test_closed_over_arrays_and_donated_arguments() -> None:
    weights = hg.tensor(array(3, 4))
    f = hg.jit(lambda x: hnp.tanh(x) @ weights + hnp.exp(weights).sum(), donate_argnums=0, precision="exact")
    for n in (4, 5, 6, 7, 8, 6, 7):
        x = hg.tensor(array(n, 3))
        same(f(x), hg.jit(lambda x: hnp.tanh(x) @ weights + hnp.exp(weights).sum(), precision="exact", dynamic=False)(array(n, 3)))


def test_threads_share_one_program() -> None:
    f = hg.jit(lambda x: hnp.cumsum(x * 2), precision="exact")
    wrong: list[int] = []

    def work(seed: int) -> None:
        for n in np.random.default_rng(seed).integers(2, 60, 60).tolist():
            x = np.ones(n, np.float32)
            if not np.array_equal(f(x), 2 * np.arange(1, n + 1, dtype=np.float32)):
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong and sum("n0" in s for s in shapes(f)) == 1 and len(shapes(f)) < 12


def _module_level(x: Any) -> Any:
    return x + 1


def test_pickled_functions_keep_the_way() -> None:
    for way in ("auto", False, True):
        assert pickle.loads(pickle.dumps(hg.jit(_module_level, dynamic=way)))._signature.dynamic == way  # noqa: S301


def test_clearing_forgets_sizes() -> None:
    f = hg.jit(lambda x: x + 1)
    for n in (4, 5):
        f(array(n))
    f.clear_cache()
    f(array(6))
    assert shapes(f) == ["float32[6]"]


@settings(max_examples=settings().max_examples // 4)
@given(st.lists(st.integers(0, len(STEPS) - 1), min_size=1, max_size=4), st.lists(st.integers(0, 40), min_size=4, max_size=9))
@example([0, 7], [5, 6, 7, 1, 0, 9])
def test_random_programs_in_whatever_order_sizes_come(steps: list[int], sizes: list[int]) -> None:
    def program(x: Any, xp: Any) -> Any:
        for k in steps:
            x = STEPS[k](x, x.shape[0], xp)
        return x

    f = hg.jit(lambda x: program(x, hnp), precision="exact")
    g = hg.jit(lambda x: program(x, hnp), precision="exact", dynamic=False)
    for n in sizes:
        x = np.arange(n, dtype=np.float64) % 7
        found: list[Any] = []
        for h in (f, g):
            try:
                found.append(np.asarray(h(x)))
            except (HologramError, ZeroDivisionError) as e:
                found.append(type(e))
        if isinstance(found[1], type):
            assert found[0] is found[1]
        else:
            same(found[0], found[1])
