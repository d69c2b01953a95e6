"""Small expressions run op by op at first: what compiles when, who is told, and that results are those of programs."""

from __future__ import annotations

import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp
from hologram.backends.native.module import why_not_native
from hologram.errors import ShapeError
from hologram.settings import override
from hologram.trace import lazy
from hologram.trace.lazy_programs import immediate, numbers

X = np.linspace(0.5, 1.5, 300, dtype=np.float32)


@pytest.fixture(autouse=True)
def at_once() -> Iterator[None]:
    lazy.clear()
    with override(op_by_op=True, cache=False):
        yield


def _expression(x: Any) -> Any:
    return hnp.sqrt(hnp.exp(x) * x + 1) / x.sum()


def test_a_new_expression_compiles_nothing_and_one_that_keeps_coming_is_compiled(compilations: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(immediate.Immediate, "for_native_code", lambda self: None)
    x = hg.tensor(X)
    first = np.asarray(_expression(x))
    for _ in range(immediate.MAX_RUNS - 1):
        np.testing.assert_array_equal(np.asarray(_expression(x)), first)
    assert not compilations
    for _ in range(3):  # two runs at first sight are not counted
        np.testing.assert_array_equal(np.asarray(_expression(x)), first)
    assert len(compilations) == 1
    np.testing.assert_array_equal(np.asarray(_expression(x)), first)
    assert len(compilations) == 1


@pytest.mark.skipif(why_not_native() is not None, reason=f"no native calls: {why_not_native()}")
def test_native_code_runs_what_comes_again_until_compiling_pays(compilations: list[Any], walks: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbers, "BUDGET", 8e-2)
    x = hg.tensor(X)
    first = np.asarray(_expression(x))
    for _ in range(20):
        np.testing.assert_array_equal(np.asarray(_expression(x)), first)
    assert not compilations and len(walks) < immediate.KERNEL_RUNS + 3
    for _ in range(2000):
        np.testing.assert_array_equal(np.asarray(_expression(x)), first)
    assert len(compilations) == 1 and len(walks) < immediate.KERNEL_RUNS + 32


@pytest.mark.skipif(why_not_native() is not None, reason=f"no native calls: {why_not_native()}")
def test_what_numpy_moves_is_known_when_it_comes_again(walks: list[int]) -> None:
    x = hg.tensor(X)
    for _ in range(400):
        np.testing.assert_array_equal(np.asarray(x > 1), X > 1)
        np.testing.assert_array_equal(np.asarray(hg.block_until_ready(x.reshape(10, 30).T)), X.reshape(10, 30).T)
    assert len(walks) < 30


@pytest.mark.skipif(why_not_native() is not None, reason=f"no native calls: {why_not_native()}")
def test_native_code_serves_processes_that_never_wait() -> None:
    """It knows Tensors without a jitted function, or block_until_ready, having been looked at."""
    script = """
import numpy as np, hologram.numpy as hnp
from hologram.trace.lazy_programs import known
x = hnp.linspace(0, 1, 50)
for _ in range(40):
    np.asarray(hnp.exp(x) * x + 1)
assert known.realise_known([hnp.exp(x) * x + 1])
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_new_sizes_are_compiled_together_when_there_are_many(compilations: list[Any]) -> None:
    x = hg.tensor(X)
    for k in range(5, 250):
        np.testing.assert_array_equal(np.asarray(x[:k].max() + k), X[:k].max() + np.float32(k))
    assert len(compilations) <= 1


def _of_changing_numbers(x: Any, k: int) -> Any:
    y = (x[: 50 + k] * (k + 3))[:k] / 100.0
    return hnp.exp(y) - (k + 0.5)


def test_numbers_that_change_get_steps_for_all_of_them(compilations: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """After a few sets, each of which had steps of its own."""
    prepared: list[Any] = []
    for name in ("op_by_op", "op_by_op_in_one_pass"):
        real = getattr(immediate, name)
        monkeypatch.setattr(immediate, name, lambda *args, real=real: prepared.append(made := real(*args)) or made)
    x = hg.tensor(X)
    found = {k: np.asarray(_of_changing_numbers(x, k)) for k in range(5, 65)}
    assert not compilations and len([p for p in prepared if p is not None]) < 20
    with override(op_by_op=False):
        lazy.clear()
        for k in (5, 6, 30, 64):
            assert found[k].tobytes() == np.asarray(_of_changing_numbers(x, k)).tobytes()


@pytest.mark.skipif(why_not_native() is not None, reason=f"no native calls: {why_not_native()}")
def test_numbers_that_come_again_are_run_by_native_code(walks: list[int], compilations: list[Any]) -> None:
    """Though steps for all numbers have served them before."""

    def expression(k: int) -> Any:
        return hnp.exp(x[:k] * (k + 3)) - (k + 0.5)

    x = hg.tensor(X)
    for k in range(5, 45):
        np.asarray(expression(k))
    for _ in range(3):
        np.asarray(expression(44))
    walks.clear()
    np.asarray(expression(44))
    assert not walks and not compilations


def test_steps_for_all_numbers_are_compiled_in_the_end(compilations: list[Any]) -> None:
    x = hg.tensor(np.linspace(0.5, 1.5, 900, dtype=np.float32))
    for k in range(5, 845):
        np.asarray(_of_changing_numbers(x, k))
    assert 1 <= len(compilations) <= 2


@pytest.mark.parametrize("n", [10, 40, 100])
def test_long_expressions_that_never_come_again_compile_nothing(n: int, compilations: list[Any]) -> None:
    """Which of their numbers are equal, and which of them rules know, differs each time."""
    generator = np.random.default_rng(n)
    for _ in range(12):
        x, y = hg.tensor(X), X
        for number in generator.choice([-1.0, 0.5, 0.75, 1.0, 1.25], n).tolist():
            x, y = x * number + 0.25, y * np.float32(number) + np.float32(0.25)
        np.testing.assert_allclose(np.asarray(x), y, rtol=1e-5, atol=1e-5)
    assert not compilations


_STEPS: list[Callable[[Any, Any], Any]] = [
    lambda a, b: a + b,
    lambda a, b: a * b * 0.5,
    lambda a, b: hnp.sin(a) * b,
    lambda a, b: hnp.exp(-hnp.abs(a)) + b,
    lambda a, b: hnp.where(a > b, a, b * 0.25),
    lambda a, b: a - b.mean(),
    lambda a, b: hnp.roll(a, 3) + b,
    lambda a, b: a / (1 + hnp.sum(b * b)),
    lambda a, b: hnp.cumsum(a) * 0.01 + b,
    lambda a, b: a[::-1] * 0.3 + b * 0.7,
]


@given(
    st.lists(
        st.tuples(st.sampled_from(_STEPS), st.integers(1, 4), st.integers(1, 4), st.sampled_from([0.5, 0.75, 1.0, -1.0])), min_size=1, max_size=60
    )
)
def test_results_are_those_of_programs(steps: list[Any]) -> None:
    def expression(x: Any, y: Any) -> Any:
        values = [x, y]
        for step, i, j, number in steps:
            values.append(step(values[-min(i, len(values))], values[-min(j, len(values))]) * number)
        return values[-1] + values[-2]

    x, y = hg.tensor(X), hg.tensor(X[::-1].copy())
    found = np.asarray(expression(x, y))
    with override(op_by_op=False):
        expected = np.asarray(expression(x, y))
    assert found.tobytes() == expected.tobytes()


def test_large_arrays_and_other_ops_are_compiled_at_once(compilations: list[Any]) -> None:
    np.asarray(hnp.exp(hnp.zeros(immediate.MAX_ELEMENTS + 1)) + 1)
    assert len(compilations) == 1
    np.asarray(hnp.sort(hg.tensor(X)) * 2)
    assert len(compilations) == 2


def test_the_setting_turns_it_off(compilations: list[Any]) -> None:
    with override(op_by_op=False):
        np.asarray(_expression(hg.tensor(X)))
    assert len(compilations) == 1


def test_whoever_asks_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with override(explain_misses=True):
        np.asarray(_expression(hg.tensor(X)))
    assert "runs op by op" in capsys.readouterr().err


def test_a_profile_names_it() -> None:
    with hg.profile() as p:
        np.asarray(_expression(hg.tensor(X)))
    assert any("op by op" in str(phase) for phase in p.phases)


def test_several_roots_and_values_that_stay_pending() -> None:
    x = hg.tensor(X)
    a = hnp.exp(x)
    b, c = a * 2, a + x
    hg.eval(b, c)
    with override(op_by_op=False):
        lazy.clear()
        y = hg.tensor(X)
        d = hnp.exp(y)
        e, f = d * 2, d + y
        hg.eval(e, f)
    for got, want in ((b, e), (c, f), (a, d)):
        np.testing.assert_array_equal(np.asarray(got), np.asarray(want))


def test_results_share_no_memory_with_arguments() -> None:
    a = np.arange(6, dtype=np.float32)
    x = hg.tensor(a)
    y = hnp.flip(x).reshape(2, 3) + 0 * x.sum()
    before = np.array(y)
    x[0] = 100
    np.testing.assert_array_equal(np.asarray(y), before)


def test_errors_are_those_of_recording() -> None:
    with pytest.raises(ShapeError, match="test_immediate.py"):
        hg.tensor(X) + hg.tensor(X[:7])


def test_numpy_does_not_warn() -> None:
    x = hg.tensor(np.array([0.0, -1.0, np.inf, np.nan], np.float32))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.asarray(hnp.sqrt(x) / x + x * np.inf)
        np.asarray(hg.tensor(np.array([200, 100], np.uint8)) * 3)


def test_threads_share_programs() -> None:
    wanted = np.asarray(_expression(hg.tensor(X)))
    wrong: list[int] = []

    def work() -> None:
        for i in range(50):
            if not np.array_equal(np.asarray(_expression(hg.tensor(X))), wanted):
                wrong.append(i)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_structures_that_never_come_again_leave_nothing_behind() -> None:
    x = hg.tensor(X)
    for k in range(300):
        np.asarray((x * (k + 0.5))[: 3 + k % 7] - k)
    assert len(lazy._programs) <= lazy.PROGRAM_LIMIT


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 2)])
def test_views_of_no_element_are_moved_again_and_again(shape: tuple[int, ...]) -> None:
    x = hg.tensor(np.ones(shape))
    ways: list[Callable[[], Any]] = [lambda: hnp.split(x, [0]), lambda: (x[:0], x[1:]), lambda: (x.T * 2, hnp.flip(x) + x), lambda: (x[:0] - 1,)]
    for _ in range(6):
        for way in ways:
            assert all(np.asarray(part).size == 0 for part in way())
    for _ in range(4):
        value, moved = hg.jvp(lambda x: hnp.split(x, [0]), (np.ones(shape),), (np.ones(shape),))
        assert all(np.asarray(v).size == 0 for v in (*value, *moved))
