"""Profiles of programs on the CPU: the same bits, every step, times that fit into one another; threads, exceptions, and programs that others hold."""

from __future__ import annotations

import os
import threading
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import hologram as hg
import hologram.numpy as hnp
from hologram.backends.build import build
from hologram.backends.llvm.graph.module import render_module
from hologram.backends.llvm.toolchain import target
from hologram.backends.native import counters
from hologram.backends.native.pool import num_threads, set_num_threads
from hologram.errors import ArgumentError
from hologram.graph.lower.steps import all_steps
from hologram.ir.devices import backend
from hologram.ir.graph import Graph
from hologram.profiling.profile import Profile
from hologram.profiling.records import Kernel
from tests.support.graphs.random_graphs import arguments, exact_graphs, seeds
from tests.support.jitting import native_only

X = np.linspace(-1, 1, 300 * 200, dtype=np.float32).reshape(300, 200)
LATE = 1e-4  # seconds: what two clocks may differ by


def softmax(x: Any) -> Any:
    e = hnp.exp(x - hnp.max(x, axis=1, keepdims=True))
    return e / hnp.sum(e, axis=1, keepdims=True)


def outermost(p: Profile) -> list[Kernel]:
    return [k for k in p.kernels if k.parent is None]


def fits(p: Profile) -> None:
    """What must hold of all times."""
    for number, program in enumerate(p.programs):
        own = [k for k in outermost(p) if k.program == number]
        assert sum(k.seconds or 0.0 for k in own) <= program.seconds <= p.seconds + LATE
    for k in p.kernels:
        assert (k.seconds is None) == (k.calls == 0)
        if k.seconds is not None:
            assert 0 <= k.seconds / k.calls <= (k.longest_seconds or 0.0) * (1 + 1e-9) and all(0 <= t <= k.seconds + LATE for t in k.threads.values())
            assert 0 <= k.wait_seconds <= k.seconds * (1 + 1e-9)
            assert k.balance is None or 0 < k.balance <= 1 + 1e-9
    for e in p.events:
        assert -LATE <= e.start and e.start + e.seconds <= p.seconds + LATE


@given(exact_graphs(), seeds)
@settings(max_examples=25, deadline=None)
def test_counters_change_no_bit_and_see_every_step(graph: Graph, seed: int) -> None:
    executable = build(backend("cpu"), graph, "exact")
    given_, steps = arguments(graph, seed, special=True), list(all_steps(executable.execution_plan.steps))
    want = executable.run_numpy(given_)
    with hg.profile() as p:
        got = executable.run_numpy(given_)
    for g, w in zip(got, want, strict=True):
        assert g.tobytes() == w.tobytes()
    own = [k for k in p.kernels if p.programs[k.program].calls and k.program == 0]
    assert len(own) == len(steps) if steps else not own
    assert all(k.calls == 1 or k.kind == "copy" for k in own if k.parent is None)
    fits(p)


@pytest.mark.parametrize("checked", [False, True])
def test_programs_without_counters_are_what_they_were(checked: bool) -> None:
    """Before a profile and after it a program has the same text and the same object code; that with counters has others."""
    graph = hg.jit(softmax).lower(X).graph

    def generated() -> Any:
        with hg.settings.override(checked=checked, cache=False):
            made = backend("cpu").generate(_compilation(graph))
            return made.source.module.llvm, made.code.objects, "steps" in made.code.known

    before = generated()
    with hg.profile():
        inside = generated()
    assert generated() == before and not before[2] and "hg_profile" not in before[0]
    assert inside[1] != before[1] and inside[2] and "hg_profile" in inside[0]
    plan = _compilation(graph).execution_plan
    assert render_module(plan, plan.allocate({}), "standard", target.host(), checked) == before[0]


def _compilation(graph: Graph) -> Any:
    from hologram.graph.compilation import Compilation

    return Compilation(graph, "standard", backend("cpu").tile)


def test_a_jitted_function_is_found_again() -> None:
    """The specialisation with counters is another; that without serves calls after the profile as before."""
    traced = []

    @hg.jit
    def f(x: Any) -> Any:
        traced.append(None)
        return softmax(x)

    want = np.asarray(f(X)).tobytes()
    for _ in range(2):
        p = hg.profile(f, calls=3)(X)
        assert np.asarray(p.result).tobytes() == want and p.programs[0].calls == 3 and p.programs[0].name == "f"
    f(X)
    assert len(traced) == 2 and not hg.settings.profile


def test_what_a_profile_tells() -> None:
    @hg.jit
    def f(x: Any, w: Any) -> Any:
        return hnp.sum(hnp.tanh(x @ w), axis=1)

    w = np.ones((200, 64), np.float32)
    f(X, w)
    p = hg.profile(f, calls=2)(X, w)
    product = max(p.kernels, key=lambda k: k.flops or 0)
    assert "matmul" in product.name and product.kind == "kernel" and product.calls == 2
    assert product.flops is not None and 2 * 300 * 200 * 64 <= product.flops <= 2.1 * 300 * 200 * 64
    assert product.bytes is not None and product.bytes >= X.nbytes + w.nbytes
    line = f.__wrapped__.__code__.co_firstlineno + 2
    assert (__file__, line) in product.lines
    assert product.tile["accumulators"] > 1 and "lanes" in product.tile["loops"]
    assert p.measured.machine.threads == num_threads() and (p.measured.share_of_roofline(product) or 0) > 0
    assert {"tracing", "canonical reduction", "scheduling", "lowering", "linking", "pass fuse"} <= {x.name for x in p.phases}
    assert {e.kind for e in p.events} >= {"call", "launch"} and p.measured.memory["peak"] >= 300 * 4
    fits(p)


def test_loops_count_their_steps() -> None:
    @hg.jit
    def f(x: Any, a: Any) -> Any:
        def step(c: Any, _: Any) -> Any:
            return hnp.tanh(c @ a), hnp.sum(c)

        small = hg.while_loop(lambda s: s[1] < 1000, lambda s: (s[0] * 1.0001, s[1] + 1), (x[0, 0], 0))
        return hg.scan(step, x, None, length=20), small

    x, a = np.linspace(-1, 1, 64 * 128, dtype=np.float32).reshape(64, 128), np.full((128, 128), 0.01, np.float32)
    want = f(x, a)
    p = hg.profile(f, calls=2)(x, a)
    for got, expected in zip(hg.tree.leaves(p.result), hg.tree.leaves(want), strict=True):
        assert np.asarray(got).tobytes() == np.asarray(expected).tobytes()
    loops = {k.name: k for k in p.kernels if k.kind == "loop"}
    assert (loops["scan"].calls, loops["scan"].iterations) == (2, 40)
    assert (loops["while"].calls, loops["while"].iterations) == (2, 2000)
    inside = {k.name: k for k in p.kernels if k.parent is not None}
    product = next(k for name, k in inside.items() if "matmul" in name)
    assert product.calls == 40 and p.kernels[product.parent or 0] is loops["scan"] and (product.seconds or 0) <= (loops["scan"].seconds or 0)
    assert any(k.seconds is None and k.calls == 0 for k in inside.values()), "what is small is a part of its loop"
    fits(p)


def test_routines_of_the_host_and_branches() -> None:
    @hg.jit
    def f(x: Any) -> Any:
        y = hg.cond(x[0, 0] > 0, lambda a: a @ a, lambda a: a, x)
        return hnp.linalg.cholesky(y + 10 * hnp.eye(16, dtype="float32")), hnp.fft.fft(y)

    p = hg.profile(f)(np.eye(16, dtype=np.float32))
    kinds = {k.kind for k in p.kernels}
    assert {"host", "branch", "kernel"} <= kinds
    branch = next(i for i, k in enumerate(p.kernels) if k.kind == "branch")
    assert [k.calls for k in p.kernels if k.parent == branch and k.name != "copy"] == [1]
    fits(p)


def test_lazy_expressions() -> None:
    x = hg.tensor(X)
    line = test_lazy_expressions.__code__.co_firstlineno + 5
    with hg.profile() as p:
        for _ in range(2):
            float(hnp.sum(hnp.sin(x) * 2))
    assert [(program.name, program.calls) for program in p.programs] == [(f"expression at test_profile.py:{line}", 2)]
    assert hg.profile(lambda: hnp.exp(hg.tensor(X)))().programs[0].calls == 1, "results are made ready"


def test_saved_programs(tmp_path: Any) -> None:
    hg.export(softmax, X).save(tmp_path / "f")
    f = hg.load(tmp_path / "f")
    want = np.asarray(f(X)).tobytes()
    p = hg.profile(f)(X)
    assert np.asarray(p.result).tobytes() == want and [(x.name, x.calls) for x in p.programs] == [("softmax", 1)]
    fits(p)


def test_compiled_calls_and_those_by_address() -> None:
    """What was compiled before has a twin, which takes its place for a while."""
    made = hg.jit(softmax).lower(X).compile()
    out = np.empty_like(X)
    by_address = made.executable.bound()
    want = np.asarray(made(X))
    with hg.profile() as p:
        got = np.asarray(made(X))
        by_address(X.ctypes.data, out.ctypes.data)
    assert got.tobytes() == out.tobytes() == want.tobytes()
    assert sum(program.calls for program in p.programs) == (2 if native_only.args[0] is False else 1)
    after = hg.profile(lambda: None)()
    by_address(X.ctypes.data, out.ctypes.data)
    assert not after.programs


def test_copies_into_tensors() -> None:
    with hg.profile() as p:
        x = hg.tensor(X)
        hg.tensor(X[:4, :4])
    (copy,) = p.kernels
    assert (copy.kind, copy.calls, copy.bytes) == ("transfer", 1, X.nbytes) and set(copy.threads) == {"MainThread"}
    assert [(program.name, program.device) for program in p.programs] == [("copies", "cpu")] and x.shape == X.shape
    fits(p)


def test_ops_on_buffers() -> None:
    with hg.Executor("cpu") as executor:
        a, b = (executor.allocate(3000) for _ in range(2))
        a.fill(2.0)
        hg.ops.vector_add(executor, a, a, b)
        with hg.profile() as p:
            for _ in range(3):
                hg.ops.vector_add(executor, a, a, b)
        assert b.to_numpy()[0] == 4.0 and [program.calls for program in p.programs] == [3]


def test_programs_that_are_computed_once() -> None:
    """What depends on constants alone runs when the program is loaded; it is a program of its own."""
    w = hg.tensor(np.linspace(0, 1, 98304, dtype=np.float32))
    f = hg.jit(lambda x: hnp.mean(hnp.exp(w) * x))
    x = np.ones(98304, np.float32)
    p = hg.profile(f, calls=2)(x)
    calls = {program.name: program.calls for program in p.programs}
    assert calls == {"<lambda>": 2, "<lambda>, constants": 1}
    assert hg.profile(f)(x).programs[0].name == "<lambda>" and float(f(x)) == float(p.result)


def test_symbolic_sizes() -> None:
    f = hg.jit(softmax, dynamic=True)
    with hg.profile() as p:
        for n in (3, 70, 300):
            assert np.allclose(np.asarray(f(X[:n])).sum(1), 1, atol=1e-5)
    assert p.programs[0].calls == 3 and all(k.flops is None and k.bytes is None for k in p.kernels)
    fits(p)


# --- threads, exceptions, nesting ------------------------------------------------------------------------------------


def test_profiles_in_profiles() -> None:
    f = hg.jit(softmax)
    with hg.profile() as outer:
        f(X)
        with hg.profile() as inner:
            f(X)
            assert hg.settings.profile
        assert hg.settings.profile
        f(X)
    assert outer.programs[0].calls == 3 and inner.programs[0].calls == 1 and not hg.settings.profile
    fits(outer)
    fits(inner)


def test_exceptions_end_profiles() -> None:
    f = hg.jit(softmax)
    p = hg.profile()
    with pytest.raises(ZeroDivisionError), p:
        f(X)
        raise ZeroDivisionError
    assert p.programs[0].calls == 1 and not hg.settings.profile


def test_calls_that_fail_are_not_counted() -> None:
    def fails(x: np.ndarray) -> np.ndarray:
        raise ZeroDivisionError

    f = hg.jit(lambda x: hg.pure_callback(fails, hg.ShapeDtypeStruct((2,), "float32"), x) + 1)
    with hg.profile() as p:
        with pytest.raises(ZeroDivisionError):
            f(np.ones(2, np.float32))
    assert all(program.calls == 0 for program in p.programs)


def test_programs_in_callbacks_of_programs() -> None:
    inner = hg.jit(lambda x: hnp.sum(hnp.sin(x)))

    def host(x: np.ndarray) -> np.ndarray:
        return np.asarray(inner(np.array(x)))

    f = hg.jit(lambda x: hg.pure_callback(host, hg.ShapeDtypeStruct((), "float32"), x) * 2)
    f(X)
    p = hg.profile(f)(X)
    assert sorted(program.calls for program in p.programs) == [1, 1]
    fits(p)


def test_threads_run_one_program_while_profiles_come_and_go() -> None:
    f = hg.jit(softmax)
    want, wrong, stop = np.asarray(f(X)).tobytes(), [], threading.Event()

    def work() -> None:
        while not stop.is_set():
            if np.asarray(f(X)).tobytes() != want:
                wrong.append(None)

    threads = [threading.Thread(target=work, name=f"user-{i}") for i in range(3)]
    for t in threads:
        t.start()
    try:
        profiles = []
        for _ in range(6):
            with hg.profile() as p:
                for _ in range(20):
                    f(X)
                time.sleep(0.02)
            profiles.append(p)
    finally:
        stop.set()
        for t in threads:
            t.join()
    assert not wrong and all(sum(program.calls for program in p.programs) >= 20 for p in profiles)
    named = {e.thread for p in profiles for e in p.events if e.kind == "call"}
    assert "MainThread" in named and named & {"user-0", "user-1", "user-2"}
    for p in profiles:
        for e in p.events:
            assert e.seconds >= 0


@native_only
def test_kernels_are_shared_by_the_threads_of_the_pool() -> None:
    before = num_threads()
    set_num_threads(2)
    try:
        f = hg.jit(lambda x: hnp.sum(hnp.tanh(x) ** 2, axis=1))
        x = np.ones((3000, 3000), np.float32)
        f(x)
        for _ in range(100):  # where the machine is busy, a worker may come too late
            p = hg.profile(f, calls=3)(x)
            shared = max(p.kernels, key=lambda k: k.seconds or 0)
            if len(shared.threads) > 1:
                break
    finally:
        set_num_threads(before)
    (other,) = set(shared.threads) - {"MainThread"}
    assert other in ("hologram-1", "openmp-1") and shared.iterations % 3 == 0 and shared.chunks >= 6
    assert {"chunk", "launch", "call"} == {e.kind for e in p.events} and other in {e.thread for e in p.events}
    fits(p)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_forks_inside_of_profiles() -> None:
    f = hg.jit(softmax)
    with hg.profile() as p:
        f(X)
        child = os.fork()
        if child == 0:
            try:
                f(X)
                f(X)
                os._exit(0 if hg.settings.profile else 1)
            except BaseException:
                os._exit(2)
        assert os.waitpid(child, 0)[1] == 0
    assert p.programs[0].calls == 1, "the child counts in memory of its own"


def test_more_threads_than_lanes_share_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums stay right where all lanes are taken."""
    lanes = counters.recorder().lanes
    before = lanes.copy()
    f = hg.jit(softmax)
    with hg.profile():
        f(X)
    try:
        lanes[:, 0] = np.where(lanes[:, 0] == 0, 1, lanes[:, 0])
        lanes[:, 0] = 1
        with hg.profile() as p:
            for _ in range(5):
                f(X)
    finally:
        lanes[:, 0] = before[:, 0]
    assert p.programs[0].calls == 5 and all(k.calls == 5 for k in p.kernels)


# --- use ---------------------------------------------------------------------------------------------------------------


def test_misuse_is_told() -> None:
    p = hg.profile()
    with pytest.raises(ArgumentError, match="filled when its block ends"):
        p.table()
    with p:
        assert "under way" in str(p)
    with pytest.raises(ArgumentError, match="made already"), p:
        pass
    with pytest.raises(ArgumentError, match="calls is a number"):
        hg.profile(softmax, calls=0)
    with pytest.raises(ArgumentError):
        hg.profile(3)  # type: ignore[call-overload]


def test_nothing_ran() -> None:
    p = hg.profile(lambda: 3)()
    assert p.result == 3 and not p.kernels and not p.events and p.seconds >= 0 and "0 calls" in str(p)
