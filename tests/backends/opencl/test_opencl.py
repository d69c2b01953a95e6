"""OpenCL, on whatever device there is (PoCL in ``make test``): the op table and random graphs against the reference, whole functions, and faults."""

from __future__ import annotations

import gc
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp
from hologram.backends.build import build
from hologram.backends.device.executable import Executable
from hologram.backends.device.listing import numbered
from hologram.backends.opencl import device as opencl
from hologram.errors import CompileError, DeviceError, OutOfMemory
from hologram.ir import devices
from hologram.ir.devices import backend
from hologram.ir.graph import Graph
from hologram.ir.interpreter import evaluate
from hologram.primitives import Op
from hologram.settings import MAX_CODEGEN_LEVEL, override
from tests.support.building import Draft
from tests.support.graphs.random_graphs import arguments, error_bounds, exact_graphs, seeds, smooth_graphs, values_of
from tests.support.graphs.small_graphs import small_graphs
from tests.support.needs import needs_opencl
from tests.support.op_batches import KINDS, batch_graph, runs_alone
from tests.support.optable import assert_agree, cases_of, mismatch, rows, seeded

SHARE = {"elementwise": 1, "movement": 1}  # of a row's cases, else 2, without --all: the driver takes a fifth of a second to compile a kernel
ORDERED = ("reduce", "scan", "contraction")  # kinds of rows that standard precision may compute in another order


def compiled(graph: Graph, precision: str = "exact") -> Executable:
    executable: Executable = build(backend("opencl"), graph, precision)
    return executable


def the_device() -> Any:
    return devices.find("opencl")


# --- against the reference -------------------------------------------------------------------------------------------


@needs_opencl
@pytest.mark.parametrize("row", [r for k in KINDS for r in rows(k) if runs_alone(r)], ids=lambda r: r.name)
def test_opencl_gives_the_reference(row: Op, everything: bool) -> None:
    """Every row, in exact precision: bitwise where the row is exact."""
    batch = tuple(cases_of(row, everything))
    if not everything:
        rng = seeded("opencl", row.name)
        batch = tuple(batch[i] for i in rng.permutation(len(batch))[: SHARE.get(row.kind, 2)])
    for some in (batch[i : i + 16] for i in range(0, len(batch), 16)):
        graph, arrays = batch_graph(some), [a for case in some for a in case[2]]
        for case, got, want in zip(some, compiled(graph).run_numpy(arrays), evaluate(graph, arrays), strict=True):
            assert_agree(case, got, want)


@needs_opencl
@pytest.mark.parametrize("row", [r for k in ORDERED for r in rows(k)], ids=lambda r: r.name)
def test_standard_precision_gives_nearly_the_reference(row: Op) -> None:
    case = next(c for c in cases_of(row, True) if c[2][0].dtype == np.float32 and c[2][0].size > 100 or c[2][0].dtype == bool)
    graph = batch_graph((case,))
    (got,), (want,) = compiled(graph, "standard").run_numpy(case[2]), evaluate(graph, case[2])
    np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=1e-4, atol=1e-3)


@needs_opencl
@settings(max_examples=12)
@given(exact_graphs(), seeds, st.booleans())
def test_random_graphs_are_bitwise_the_reference(graph: Graph, seed: int, special: bool) -> None:
    """With all that the driver's compiler optimises, which it leaves in the other tests."""
    arrays = arguments(graph, seed, special)
    with override(codegen_level=MAX_CODEGEN_LEVEL):
        results = compiled(graph).run_numpy(arrays)
    for got, want in zip(results, evaluate(graph, arrays), strict=True):
        assert not mismatch(got, want, 0).any()


@needs_opencl
@settings(max_examples=8)
@given(small_graphs(), seeds)
def test_gathers_scatters_and_products_too(graph: Graph, seed: int) -> None:
    arrays = arguments(graph, seed, special=True)
    for got, want in zip(compiled(graph).run_numpy(arrays), evaluate(graph, arrays), strict=True):
        assert not mismatch(got, want, 0).any()


@needs_opencl
@settings(max_examples=8)
@given(smooth_graphs(), seeds)
def test_random_graphs_in_standard_precision(graph: Graph, seed: int) -> None:
    arrays = arguments(graph, seed, special=False)
    values = values_of(graph, arrays)
    bounds = error_bounds(graph, values)
    with override(codegen_level=MAX_CODEGEN_LEVEL):
        results = compiled(graph, "standard").run_numpy(arrays)
    for got, node, bound in zip(results, graph.outputs, bounds, strict=True):
        want = values[node]
        finite = np.isfinite(bound) & np.isfinite(want.astype(np.float64))
        assert (np.abs(got.astype(np.float64) - want.astype(np.float64)) <= bound + 1e-30)[finite].all()


# --- functions -------------------------------------------------------------------------------------------------------

X = np.random.default_rng(0).standard_normal((40, 300)).astype(np.float32)


def _softmax(x: Any) -> Any:
    e = hnp.exp(x - hnp.max(x, axis=1, keepdims=True))
    return e / hnp.sum(e, axis=1, keepdims=True)


def _layer_norm(x: Any) -> Any:
    c = x - hnp.mean(x, axis=1, keepdims=True)
    return c / hnp.sqrt(hnp.mean(c * c, axis=1, keepdims=True) + 1e-5)


FUNCTIONS: dict[str, Any] = {
    "softmax": _softmax,
    "layer_norm": _layer_norm,
    "gram": lambda x: x @ x.T,
    "both_sums": lambda x: (hnp.sum(x), hnp.sum(x, axis=0), hnp.max(x, axis=1)),
    "gradient": hg.grad(lambda x: hnp.sum(hnp.tanh(x) * x)),
    "gradient_of_softmax": hg.grad(lambda x: hnp.sum(_softmax(x) * x)),
    "mean_and_variance": lambda x: (hnp.mean(x), hnp.var(x, axis=1)),
    "running": lambda x: hnp.cumulative_sum(x, axis=1),
    "gathered": lambda x: x[hnp.asarray([3, 1, 3, 39])] * 2,
    "updated": lambda x: x.at[2:5].add(1.0),
}


@needs_opencl
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_agree_with_the_cpu(name: str) -> None:
    f = FUNCTIONS[name]
    got, want = hg.jit(f, device="opencl")(X), hg.jit(f)(X)
    for g, w in zip(hg.tree.leaves(got), hg.tree.leaves(want), strict=True):
        np.testing.assert_allclose(np.asarray(g), np.asarray(w), rtol=2e-5, atol=2e-5)


@needs_opencl
def test_reductions_have_one_order_on_every_device() -> None:
    """Bitwise the CPU's in exact, long ones among them."""
    x = np.random.default_rng(1).standard_normal(1_000_003).astype(np.float32)

    def f(x: Any) -> Any:
        return hnp.sum(x), hnp.max(x), hnp.sum(x[:9000].reshape(3, 3000), axis=1), hnp.argmax(x)

    for got, want in zip(hg.jit(f, device="opencl", precision="exact")(x), hg.jit(f, precision="exact")(x), strict=True):
        assert np.asarray(got).tobytes() == np.asarray(want).tobytes()


@needs_opencl
def test_one_program_serves_every_size() -> None:
    def both(x: Any) -> Any:
        return hnp.max(x, axis=1), hnp.sum(hnp.exp(x), axis=0)

    f = hg.jit(both, device="opencl", dynamic=True, precision="exact")
    g = hg.jit(both, dynamic=True, precision="exact")
    for shape in [(3, 5), (70, 4000), (1, 1)]:
        x = np.random.default_rng(2).standard_normal(shape).astype(np.float32)
        for got, want in zip(f(x), g(x), strict=True):
            np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-6, atol=1e-7)


@needs_opencl
def test_structure_of_arguments_and_results() -> None:
    f = hg.jit(lambda tree, k=1.0: {"a": tree["x"] * k, "same": tree["x"], "n": 3}, device="opencl")
    out = f({"x": X}, k=2.0)
    assert np.array_equal(np.asarray(out["a"]), X * 2) and np.array_equal(np.asarray(out["same"]), X) and int(out["n"]) == 3


@needs_opencl
def test_constants_are_closed_over() -> None:
    table = hg.tensor(X)
    f = hg.jit(lambda i: table[i] + 1, device="opencl")
    for i in (0, 7):
        np.testing.assert_array_equal(np.asarray(f(np.int64(i))), X[i] + 1)


@needs_opencl
def test_empty_arrays() -> None:
    f = hg.jit(lambda x: (x + 1, hnp.sum(x)), device="opencl")
    a, s = f(np.zeros((0, 3), np.float32))
    assert np.asarray(a).shape == (0, 3) and float(s) == 0.0


@needs_opencl
def test_intermediates_share_one_buffer() -> None:
    def f(x: Any) -> Any:
        for _ in range(4):
            x = hnp.cumulative_sum(_softmax(x @ x.T) @ x, axis=1)
        return x

    x = X[:30, :40] / 10
    np.testing.assert_allclose(np.asarray(hg.jit(f, device="opencl")(x)), np.asarray(hg.jit(f)(x)), rtol=1e-3, atol=1e-3)
    memory = hg.jit(f, device="opencl").lower(x).compile().memory_analysis()
    assert "peak" in str(memory)


@needs_opencl
def test_scratch_that_does_not_fit_goes_to_a_workspace() -> None:
    def shares(x: Any) -> Any:
        e = hnp.exp(x)
        return e / hnp.sum(e, axis=1, keepdims=True)

    x = np.random.default_rng(3).standard_normal((40, 9_000)).astype(np.float32)
    f = hg.jit(shares, device="opencl")
    assert "hg_workspace" in f.lower(x).compile().as_text("opencl")
    np.testing.assert_allclose(np.asarray(f(x)), np.asarray(hg.jit(shares)(x)), rtol=2e-5)


@needs_opencl
def test_text_of_every_stage() -> None:
    compiled = hg.jit(_softmax, device="opencl").lower(X).compile()
    assert "__kernel" in compiled.as_text("opencl") and "lanes" in compiled.as_text("kernels")
    with pytest.raises(ValueError, match="no stage 'llvm'"):
        compiled.as_text("llvm")


@needs_opencl
def test_threads_may_call_one_function() -> None:
    f = hg.jit(lambda x: _softmax(x @ x.T), device="opencl")
    want = np.asarray(f(X))
    wrong: list[int] = []

    def work(seed: int) -> None:
        for _ in range(5):
            if not np.array_equal(np.asarray(f(X)), want):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


# --- what is there, and what is not ----------------------------------------------------------------------------------


def test_devices_say_what_is_missing() -> None:
    found = hg.devices()
    assert found[0] == "cpu" and isinstance(found, list)
    assert {"cuda", "metal"} <= set(found.missing)
    assert ("opencl" in found.missing) == (opencl.found()[1] is not None)
    for name in found.missing:
        assert f"{name:12} not available" in str(found)


def test_a_device_that_is_not_there() -> None:
    with pytest.raises(DeviceError, match="device 'cuda:0' is not available: .*there is 'cpu'.*test_opencl"):
        hg.jit(lambda x: x, device="cuda:0")
    with pytest.raises(DeviceError, match="device 'tpu' is not available"):
        hg.jit(lambda x: x, device="tpu")
    with pytest.raises(DeviceError, match="opencl:99"):
        hg.jit(lambda x: x, device="opencl:99")


@pytest.fixture
def fresh_search() -> Any:
    """The devices are looked for anew, before the test and after it."""
    opencl.found.cache_clear()
    yield
    opencl.found.cache_clear()


def test_without_pyopencl(monkeypatch: pytest.MonkeyPatch, fresh_search: None) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyopencl", None)
    with pytest.raises(DeviceError, match="pyopencl cannot be imported.*pip install"):
        hg.jit(lambda x: x, device="opencl")
    assert "pyopencl" in hg.devices().missing["opencl"] and hg.devices() == ["cpu"]


@needs_opencl
def test_without_a_platform(monkeypatch: pytest.MonkeyPatch, fresh_search: None) -> None:
    import pyopencl as cl

    def none() -> Any:
        raise cl.LogicError("clGetPlatformIDs failed: PLATFORM_NOT_FOUND_KHR")

    monkeypatch.setattr(cl, "get_platforms", none)
    with pytest.raises(DeviceError, match="no OpenCL platform.*PLATFORM_NOT_FOUND_KHR"):
        hg.jit(lambda x: x, device="opencl")


@needs_opencl
def test_programs_of_gpus_come_from_the_disk_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    device = the_device()
    monkeypatch.setattr(device, "kind", "gpu")
    source = "__kernel void f(__global float *x) { x[get_global_id(0)] = 7.0f; }"
    assert set(device.build(source, ["f"])) == {"f"}

    def again(*_: Any) -> Any:
        raise AssertionError("compiled again")

    monkeypatch.setattr(device, "_compiled", again)
    assert set(device.build(source, ["f"])) == {"f"}
    monkeypatch.setattr(device, "_loaded", lambda *_: None)  # as where the driver has changed
    with pytest.raises(AssertionError, match="compiled again"):
        device.build(source, ["f"])


@needs_opencl
def test_a_program_that_does_not_compile_shows_its_lines() -> None:
    source = "\n".join([f"/* {i} */" for i in range(30)] + ["__kernel void f(__global float *x) {", "  x[0] = undeclared;", "}"])
    with pytest.raises(CompileError) as e:
        the_device().build(source, ["f"])
    assert "undeclared" in str(e.value) and ">   32   x[0] = undeclared;" in str(e.value) and "/* 3 */" not in str(e.value)


def test_numbered_source() -> None:
    assert numbered("a\nb", "no line is named") == "     1 a\n     2 b"
    assert numbered("a\nb", "<source>:2:1: error: b") == "     1 a\n>    2 b"


@needs_opencl
def test_out_of_memory_names_the_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    gc.collect()  # other tests may have left buffers on the device
    f = hg.jit(lambda x: x + 1, device="opencl")
    f(X)
    monkeypatch.setattr(the_device(), "largest_buffer", X.nbytes - 1)
    with pytest.raises(OutOfMemory, match=f"no {X.nbytes:,} bytes for argument 0.*it holds: .*test_opencl"):
        f(X)
    g = hg.jit(lambda x: hnp.broadcast_to(x[0, 0], (200, 300)) + 1, device="opencl")
    with pytest.raises(OutOfMemory, match=r"for argument 0"):
        g(X)
    monkeypatch.setattr(the_device(), "largest_buffer", X.nbytes)
    with pytest.raises(OutOfMemory, match=f"bytes for result 0.*it holds: argument 0 .* {X.nbytes:,}"):
        g(X)
    np.testing.assert_array_equal(np.asarray(f(X)), X + 1)  # and nothing is lost


@needs_opencl
def test_a_device_that_cannot_be_exact_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    device = the_device()
    monkeypatch.setattr(device, "divides_exactly", False)
    with pytest.raises(DeviceError, match="does not round float32 division"):
        hg.jit(lambda x: x + 1, device="opencl", precision="exact")(X)
    monkeypatch.setattr(device, "most_items", 64)
    with pytest.raises(DeviceError, match="work-groups have 64 items at most"):
        hg.jit(lambda x: x * 3, device="opencl")(X)
    monkeypatch.setattr(device, "has_double", False)
    with pytest.raises(DeviceError, match="no float64"):
        hg.jit(lambda x: x * 2, device="opencl")(X.astype(np.float64))


@needs_opencl
def test_a_failure_of_the_driver_is_a_device_error(monkeypatch: pytest.MonkeyPatch) -> None:
    device = the_device()
    f = hg.jit(lambda x: x + 1, device="opencl")
    f(X)

    def lost(*_: Any, **__: Any) -> Any:
        raise device.cl.RuntimeError("clEnqueueNDRangeKernel failed: DEVICE_NOT_AVAILABLE")

    with monkeypatch.context() as patch:
        patch.setattr(device.cl, "enqueue_nd_range_kernel", lost)
        with pytest.raises(DeviceError, match="opencl:0 failed: .*DEVICE_NOT_AVAILABLE.*test_opencl"):
            f(X)
    np.testing.assert_array_equal(np.asarray(f(X)), X + 1)


def test_the_cpu_is_a_device() -> None:
    assert devices.resolve("cpu") == "cpu"
    np.testing.assert_array_equal(np.asarray(hg.jit(lambda x: x + 1, device="cpu")(X)), X + 1)


@needs_opencl
def test_a_graph_of_only_constants_and_arguments() -> None:
    d = Draft()
    x = d.input(3)
    (got,) = compiled(d.graph(x)).run_numpy([np.arange(3, dtype=np.float32)])
    assert got.tolist() == [0, 1, 2]
