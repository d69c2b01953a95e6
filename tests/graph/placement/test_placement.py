"""Graphs on several devices: the minimum cut against brute force, parts against the whole, placement by hand and by cost."""

from __future__ import annotations

import itertools
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp
from hologram.backends import rates as measured
from hologram.errors import DeviceError
from hologram.graph.pipeline import canonicalise, compile_to_plan
from hologram.graph.placement.device_parts import by_hand, is_placed, parts
from hologram.graph.placement.min_cut import NEVER, Problem, Rates, Value, minimum_cut, place, problem_of
from hologram.ir.devices import find
from hologram.ir.graph import Graph
from hologram.ir.interpreter import evaluate
from tests.support.building import Draft
from tests.support.graphs.random_graphs import arguments, exact_graphs, seeds
from tests.support.needs import needs_opencl
from tests.support.optable import mismatch

X = np.random.default_rng(0).standard_normal((30, 40)).astype(np.float32)
CPU = Rates(call=0.0, launch=1_000.0, operation=0.1, byte=0.02)
GPU = Rates(call=20_000.0, launch=5_000.0, operation=1e-4, byte=1e-3, transfer=10_000.0, transfer_byte=0.05)

# --- the cut ---------------------------------------------------------------------------------------------------------


@st.composite
def problems(draw: Any) -> Problem:
    """Up to nine vertices in topological order, some of them at home on one side; values with up to four readers."""
    costs = st.sampled_from([0.0, 0.001, 1.0, 2.5, 7.0, 1e3])
    problem = Problem()
    for _ in range(draw(st.integers(1, 9))):
        cpu, device = draw(costs), draw(costs)
        pinned = draw(st.sampled_from(["", "", "", "cpu", "device"]))
        problem.vertex(NEVER if pinned == "device" else cpu, NEVER if pinned == "cpu" else device)
    n = len(problem.on_cpu)
    for source in range(n - 1):
        readers = draw(st.sets(st.integers(source + 1, n - 1), max_size=4))
        if readers:
            problem.values.append(Value(source, tuple(sorted(readers)), draw(costs), draw(costs)))
    return problem


@settings(max_examples=150)
@given(problems())
def test_the_cut_costs_as_little_as_any_choice(problem: Problem) -> None:
    best = min(problem.cost(chosen) for chosen in itertools.product([False, True], repeat=len(problem.on_cpu)))
    assert problem.cost(minimum_cut(problem)) == pytest.approx(best, abs=1e-9)


def test_a_value_is_carried_once_however_many_read_it() -> None:
    problem = Problem()
    problem.vertex(0.0, NEVER)
    for _ in range(5):
        problem.vertex(4.0, 0.0)
    problem.values = [Value(0, (1, 2, 3, 4, 5), 10.0, 10.0)]
    assert minimum_cut(problem) == [False, True, True, True, True, True]


# --- parts -----------------------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(exact_graphs(), seeds, st.integers(0, 2**32 - 1))
def test_parts_are_the_whole(graph: Graph, seed: int, choice: int) -> None:
    """However the nodes are dealt out to three devices, the parts, run in order, give the graph's results."""
    rng = np.random.default_rng(choice)
    where: dict[Any, str] = {}
    for n in graph.nodes():
        if n.op.kind != "leaf":
            where[n] = where[n.inputs[0]] if n.op.kind == "project" else "abc"[rng.integers(3)]
    found = parts(graph, where)
    arrays = arguments(graph, seed, special=True)
    values = dict(zip(graph.inputs, arrays, strict=True))
    for part in found:
        values.update(zip(part.outputs, evaluate(part.graph, [values[x] for x in part.inputs]), strict=True))
    for x, want in zip(graph.outputs, evaluate(graph, arrays), strict=True):
        got = values[x] if x in values else evaluate(Graph(graph.inputs, [x]), arrays)[0]
        assert not mismatch(got, want, 0).any()


# --- by hand ---------------------------------------------------------------------------------------------------------


def _split(devices: tuple[str, str]) -> Any:
    first, second = devices

    def f(x: Any) -> Any:
        a = hg.device_put(hnp.tanh(x) @ x.T, first)
        b = hg.device_put(hnp.sum(a * a, axis=1), second)
        return a, b + 1, hg.device_put(b * 2, "cpu")

    return f


def _plain(x: np.ndarray) -> list[np.ndarray]:
    a = np.tanh(x) @ x.T
    b = (a * a).sum(axis=1)
    return [a, b + 1, b * 2]


@needs_opencl
@pytest.mark.parametrize("devices", [("opencl:0", "cpu"), ("cpu", "opencl:0"), ("opencl:0", "opencl:0")])
@pytest.mark.parametrize("run", [hg.jit, lambda f: hg.jit(f, device="opencl"), lambda f: hg.jit(f, device="auto")], ids=["jit", "opencl", "auto"])
def test_a_graph_split_by_hand(devices: tuple[str, str], run: Any) -> None:
    got = run(_split(devices))(X)
    assert [g.device for g in got] == [*devices, "cpu"]
    for g, w in zip(got, _plain(X), strict=True):
        np.testing.assert_allclose(np.asarray(g), w, rtol=1e-4, atol=1e-4)


def test_a_graph_split_over_two_null_devices() -> None:
    first, second = find("null:0"), find("null:1")
    for d in (first, second):
        d.counts.clear()
    a, b, c = hg.jit(lambda x: _split(("null:0", "null:1"))(x)[:2] + (x,))(X)
    assert (a.device, b.device, c.device) == ("null:0", "null:1", "cpu")
    assert first.counts["launches"] >= 1 and first.counts["bytes_out"] == 30 * 4 and second.counts["bytes_in"] == 30 * 4
    assert second.counts["launches"] == 1


@needs_opencl
def test_derivatives_and_vmap_of_a_split_graph() -> None:
    def f(x: Any) -> Any:
        a = hg.device_put(hnp.sin(x) * x, "opencl")
        return hnp.sum(hg.device_put(a * a, "cpu") * x)

    def plain(x: Any) -> Any:
        a = hnp.sin(x) * x
        return hnp.sum(a * a * x)

    want = np.asarray(hg.grad(plain)(X))
    for g in (hg.grad(f), hg.jit(hg.grad(f))):
        np.testing.assert_allclose(np.asarray(g(X)), want, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(np.asarray(hg.vmap(f)(X)), np.asarray(hg.vmap(plain)(X)), rtol=1e-4, atol=1e-4)
    _, tangent = hg.jvp(f, (X,), (X,))
    np.testing.assert_allclose(np.asarray(tangent), np.asarray(hg.jvp(plain, (X,), (X,))[1]), rtol=1e-4)


def test_what_cannot_be_placed_says_so() -> None:
    with pytest.raises(DeviceError, match="add has values on null:0 and on null:1: .*test_placement"):
        hg.jit(lambda x: hg.device_put(x, "null:0") + hg.device_put(x, "null:1"))(X)
    with pytest.raises(DeviceError, match="scan has values on null:0 and on null:1: .*test_placement"):
        hg.jit(lambda x: hg.scan(lambda c, y: (hg.device_put(c + y, "null"), hg.device_put(y, "null:1")), x[0], x))(X)
    with pytest.raises(DeviceError, match="device 'nowhere' is not available.*test_placement"):
        hg.jit(lambda x: hg.device_put(x, "nowhere"))(X)


@needs_opencl
def test_a_loop_is_on_the_device_that_it_names() -> None:
    f = hg.jit(lambda x: hg.scan(lambda c, y: (hg.device_put(c, "opencl") + y, y), x[0], x)[0] * 2)
    y = f(X)
    assert y.device == "opencl:0"
    np.testing.assert_allclose(np.asarray(y), 2 * (X[0] + X.sum(axis=0)), rtol=1e-4, atol=1e-4)


@needs_opencl
def test_a_function_for_a_device_keeps_it_inside_of_others() -> None:
    f = hg.jit(lambda x, k: hnp.tanh(x) * k, device="opencl")
    for y in (hg.jit(lambda x: f(x, 2.0) + 1)(X), hg.vmap(lambda r: f(r, 2.0) + 1)(X), hg.jit(lambda x: f(x, 2.0) + 1, device="opencl")(X)):
        assert y.device == "opencl:0"
        np.testing.assert_allclose(np.asarray(y), np.tanh(X) * 2 + 1, rtol=1e-5, atol=1e-6)
    g = hg.grad(lambda x: hnp.sum(f(x, 2.0)))(X)
    np.testing.assert_allclose(np.asarray(g), 2 / np.cosh(X) ** 2, rtol=1e-4, atol=1e-5)
    assert hg.scan(lambda c, r: (c + f(r, 1.0), None), X[0] * 0, X)[0].device == "opencl:0"


def test_nothing_is_placed_unless_asked() -> None:
    graph = hg.make_graph(lambda x: hg.scan(lambda c, y: (c + y, y), x[0], x))(X)
    assert not is_placed(graph.nodes())
    assert set(by_hand(graph, "cpu").values()) == {"cpu"}


def test_what_is_placed_on_the_cpu_alone_is_one_program() -> None:
    """Clients of the Array API ask for each array on the device of others. In a process of its own: no device's code may be needed."""
    code = """import numpy as np, hologram as hg, hologram.numpy as hnp, sys
f = hg.jit(lambda x: hnp.zeros(3, device=x.device) + hg.scan(lambda c, y: (c + hg.device_put(y, "cpu"), y), 0.0, x)[0])
assert f(np.ones(3)).tolist() == [3, 3, 3] == f(np.ones(3)).tolist()
assert "[part" not in f.lower(np.ones(3)).as_text("plan") and "hologram.backends.device.runtime" not in sys.modules"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_results_that_nobody_computes() -> None:
    table = hg.tensor([1.0, 2.0])
    a, b, c, d, e = hg.jit(lambda x: (hg.device_put(x, "null"), 1.5, x, table, hnp.arange(3)))(X)
    assert a.device == "null:0" and float(b) == 1.5 and np.array_equal(np.asarray(c), X) and d.tolist() == [1, 2] and e.tolist() == [0, 1, 2]


def test_explain_shows_the_parts() -> None:
    text = str(hg.explain(hg.jit(_split(("null:0", "null:1"))))(X))
    assert "--- placement ---\nplaced by hand\npart 0 on cpu: " in text and "part 2 on null:1" in text
    assert "reads float32[30, 30] of part 0" in text and "[part 1 on null:0]" in text
    compiled = hg.jit(_split(("null:0", "null:1"))).lower(X).compile()
    assert compiled.as_text("placement") in text and "place" in compiled.as_text("trace")
    assert compiled.reduction().kernels == 4 and compiled.cost_analysis().bytes_moved > X.nbytes
    assert "[part 3 on cpu]" in str(compiled.memory_analysis())  # which brings the last result back


# --- by cost ---------------------------------------------------------------------------------------------------------


def _graph(f: Any, *args: Any) -> Graph:
    return canonicalise(hg.make_graph(f)(*args), "standard")


def _busy(x: Any) -> Any:
    for _ in range(30):
        x = hnp.tanh(x) * 1.5
    return x


@settings(max_examples=40)
@given(exact_graphs(), st.booleans(), st.sampled_from([0.0, 1.0, 300.0]), st.sampled_from([0.01, 5.0]))
def test_small_graphs_are_placed_as_well_as_any_choice(graph: Graph, there: bool, transfer: float, operation: float) -> None:
    cpu, device = Rates(0.0, 1.0, 1.0, 0.1), Rates(0.0, 20.0, operation, 0.01, transfer, 0.1)
    at_device = [there and i == 0 for i in range(len(graph.inputs))]
    problem, of = problem_of(graph, at_device, cpu, device)
    free = [i for i, costs in enumerate(zip(problem.on_cpu, problem.on_device, strict=True)) if NEVER not in costs]
    assume(len(free) <= 11)
    best = float("inf")
    for choice in itertools.product([False, True], repeat=len(free)):
        chosen = [c == NEVER for c in problem.on_cpu]
        for i, c in zip(free, choice, strict=True):
            chosen[i] = c
        best = min(best, problem.cost(chosen))
    found = place(graph, at_device, cpu, device)
    assert found.cost == pytest.approx(best, abs=0.1) and found.cost <= min(found.cpu_cost, found.device_cost) + 0.1
    assert set(found.where) == {n for n in graph.nodes() if n.op.kind != "leaf"}


def test_small_graphs_stay_on_the_cpu_and_large_ones_leave_it() -> None:
    small, large = (_graph(_busy, np.ones(n, np.float32)) for n in (100, 3_000_000))
    assert not any(place(small, [False], CPU, GPU).where.values())
    found = place(large, [False], CPU, GPU)
    assert all(found.where.values()) and found.cost == found.device_cost < found.cpu_cost
    copied = _graph(lambda x: x + 1, np.ones(3_000_000, np.float32))
    assert not any(place(copied, [False], CPU, GPU).where.values())  # two transfers for one addition
    tiny = _graph(lambda x: hnp.tanh(x), np.ones(3_000, np.float32))
    assert not any(place(tiny, [False], CPU, Rates(1e7, 0.0, 0.0, 0.0, 1.0, 0.0)).where.values())  # a call that nothing is worth
    assert all(place(copied, [True], CPU, GPU).where.values())  # it is there already


def test_mixed_graphs_are_cut() -> None:
    def f(x: Any) -> Any:
        return hg.linalg.cholesky(hnp.eye(20) + hnp.sum(_busy(x)))

    found = place(_graph(f, np.ones(3_000_000, np.float32)), [False], CPU, GPU)
    assert len(set(found.where.values())) == 2 and found.cost < min(found.cpu_cost, found.device_cost)
    assert all(not there for n, there in found.where.items() if n.op.name == "cholesky")
    assert "operations on the CPU and" in str(found)


def test_loops_cost_what_their_steps_do() -> None:
    scan = _graph(lambda x: hg.scan(lambda c, y: (c + y, hnp.sum(c)), x[0], x), np.ones((500, 8), np.float32))
    loop = _graph(lambda x: hg.while_loop(lambda c: c[0] < 9, lambda c: c + 1, x), np.ones(8, np.float32))
    branch = _graph(lambda x: hg.cond(x[0] > 0, _busy, lambda a: a, x), np.ones(3_000_000, np.float32))
    for graph in (scan, loop):
        found = place(graph, [False], CPU, GPU)
        assert not any(found.where.values()) and found.device_cost > 100 * GPU.launch
    assert place(branch, [False], CPU, GPU).cost > 0


@needs_opencl
def test_auto_on_a_device_that_a_value_is_on(monkeypatch: pytest.MonkeyPatch) -> None:
    f = hg.jit(lambda x: hnp.sum(x * x), device="auto")
    want = float(np.sum(X * X))
    assert f(X).device == "cpu"
    x, near = hg.device_put(X, "opencl"), Rates(500.0, 100.0, 1e-4, 1e-3, 10_000.0, 0.05)
    for rates, device in [({"cpu": CPU, "opencl:0": near}, "opencl:0"), ({"cpu": CPU, "opencl:0": Rates(1e9, 1e9, 1.0, 1.0, 1.0, 1.0)}, "cpu")]:
        monkeypatch.setattr(measured, "rates", rates.__getitem__)
        f.clear_cache()
        y = f(x)
        assert y.device == device and float(y) == pytest.approx(want, rel=1e-4)
        assert "opencl:0 or the CPU: " in str(hg.explain(f)(x))


@needs_opencl
def test_auto_takes_the_gpu_for_what_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    device = find("opencl")
    monkeypatch.setattr(device, "kind", "gpu")
    monkeypatch.setattr(measured, "rates", {"cpu": CPU, "opencl:0": GPU}.__getitem__)
    f = hg.jit(lambda x: hnp.sqrt(hnp.tanh(x)), device="auto")
    large, small = np.ones(1_000_000, np.float32), np.ones(3, np.float32)
    assert f(small).device == "cpu" and f(large).device == "opencl:0"
    np.testing.assert_allclose(np.asarray(f(large))[:3], np.asarray(f(small)), rtol=1e-5)
    assert hg.jit(lambda x: x + 1, device="auto", dynamic=True)(X).device == "cpu"  # of no known size
    monkeypatch.setattr(device, "has_double", False)
    assert f(large.astype(np.float64)).device == "cpu"


def test_auto_without_a_gpu_is_the_cpu() -> None:
    assert hg.jit(lambda x: x + 1, device="auto")(X).device == "cpu"


def test_rates_are_measured_once_and_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    measured.rates.cache_clear()
    found = measured.rates("cpu")
    assert found.launch >= 0 and found.operation > 0 and found.byte >= 0 and found.call == found.transfer == 0
    measured.rates.cache_clear()

    def again(device: Any) -> Any:
        raise AssertionError("measured again")

    monkeypatch.setattr(measured, "_measured", again)
    assert measured.rates("cpu") == measured.known("cpu") == found
    assert measured.rates("null:0") == measured.NULL and "GB/s" in str(found)


def test_the_chain_is_a_kernel_each() -> None:
    assert len(compile_to_plan(canonicalise(measured._sums(), "standard")).kernels) == measured.CHAIN


@needs_opencl
def test_rates_of_a_device() -> None:
    found = measured.rates("opencl:0")
    assert found.transfer > 0 and found.transfer_byte >= 0 and "a transfer" in str(found)


def test_a_graph_without_operations() -> None:
    d = Draft()
    x = d.input(3)
    found = place(d.graph(x), [False], CPU, GPU)
    assert not found.where and found.cost == 0
