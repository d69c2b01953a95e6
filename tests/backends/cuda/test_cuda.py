"""The CUDA backend on a CUDA without a GPU (``fake_cuda.py``): programs, streams, captured calls, memory, errors."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp
from hologram.backends.build import build
from hologram.backends.c.dialects import CUDA
from hologram.backends.cuda import device as cuda_device
from hologram.backends.cuda import executable, library
from hologram.backends.device.backend import DeviceBackend
from hologram.errors import CompileError, DeviceError, OutOfMemory, UnsupportedError
from hologram.ir.graph import Graph
from hologram.ir.interpreter import evaluate
from hologram.ir.symbolic import var
from tests.support.building import Draft
from tests.support.devices.fake_cuda import FakeApi, FakeError
from tests.support.devices.some_devices import install
from tests.support.graphs.random_graphs import arguments, exact_graphs, seeds
from tests.support.graphs.small_graphs import small_graphs
from tests.support.graphs.transformer_block import block, gradient, shapes_of_block
from tests.support.needs import needs_compilers
from tests.support.op_batches import KINDS, batch_graph, runs_alone
from tests.support.optable import assert_agree, cases_of, mismatch, rows, seeded

pytestmark = needs_compilers


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeApi]:
    """Two devices that are not there."""
    fake = FakeApi(devices=2)
    install(fake, monkeypatch)
    yield fake
    hg.clear_caches()
    gc.collect()


def softmax(x: Any) -> Any:
    e = hnp.exp(x - hnp.max(x, axis=1, keepdims=True))
    return e / hnp.sum(e, axis=1, keepdims=True)


def expected(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def values(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def test_devices_are_listed(cuda: FakeApi) -> None:
    assert {"cuda:0", "cuda:1"} <= set(hg.devices()) and "sm_90" in hg.devices().details["cuda:0"]
    with pytest.raises(DeviceError, match="cuda:2"):
        hg.jit(softmax, device="cuda:2")


def test_a_program_runs(cuda: FakeApi) -> None:
    x = values(37, 100)
    y = hg.jit(softmax, device="cuda:1")(x)
    assert y.device == "cuda:1" and np.allclose(np.asarray(y), expected(x), rtol=1e-6)
    assert "__global__" in hg.jit(softmax, device="cuda").lower(x).as_text("cuda")


def test_calls_return_before_the_device_is_done(cuda: FakeApi) -> None:
    f = hg.jit(softmax, device="cuda")
    y = f(values(3, 40))
    assert cuda.streams[0]
    hg.block_until_ready(y)
    assert not cuda.streams[0]


def compiled(cuda: FakeApi, graph: Graph) -> Any:
    return build(DeviceBackend(cuda_device.found()[0][0]), graph, "exact")


def test_rows_of_the_table_give_the_reference(cuda: FakeApi, everything: bool) -> None:
    """A seeded tenth of the rows, a case each; with ``--all`` every row, four cases each."""
    rng = seeded("cuda")
    table = [r for k in KINDS for r in rows(k) if runs_alone(r)]
    for i in rng.permutation(len(table))[: None if everything else len(table) // 10]:
        cases = tuple(cases_of(table[i], False))
        some = tuple(cases[k] for k in rng.permutation(len(cases))[: 4 if everything else 1])
        graph, arrays = batch_graph(some), [a for case in some for a in case[2]]
        for case, got, want in zip(some, compiled(cuda, graph).run_numpy(arrays), evaluate(graph, arrays), strict=True):
            assert_agree(case, got, want)


def test_random_graphs_are_bitwise_the_reference(cuda: FakeApi, everything: bool) -> None:
    @settings(max_examples=100 if everything else 5)
    @given(st.one_of(exact_graphs(), small_graphs()), seeds)
    def check(graph: Graph, seed: int) -> None:
        arrays = arguments(graph, seed, True)
        program = compiled(cuda, graph)
        for _ in range(2):  # kernel by kernel, and captured
            for got, want in zip(program.run_numpy(arrays), evaluate(graph, arrays), strict=True):
                assert not mismatch(got, want, 0).any()

    check()


@pytest.mark.parametrize("n", [1, 70, 3072, 7003])
def test_scans_of_any_size_are_bitwise_the_reference(cuda: FakeApi, n: int) -> None:
    d, m = Draft(), var("n")
    x = d.input(2, m)
    graph = d.graph(d("cumsum", d.input(m), 0, False), d("add", d("cumsum", x, 1, True), x))
    arrays = [values(2, n), values(n)]
    for got, want in zip(compiled(cuda, graph).run_numpy(arrays), evaluate(graph, arrays, {"n": n}), strict=True):
        assert not mismatch(got, want, 0).any()


# --- captured calls --------------------------------------------------------------------------------------------------


def layers(x: Any, w: Any) -> Any:
    for _ in range(3):
        x = softmax(hnp.tanh(x @ w))
    return x, hnp.sum(x)


def on_host(x: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, Any]:
    for _ in range(3):
        x = expected(np.tanh(x @ w))
    return x, x.sum()


def test_the_third_call_is_one_launch(cuda: FakeApi) -> None:
    f = hg.jit(layers, device="cuda")
    w = hg.device_put(values(20, 20, seed=9), "cuda")
    results = []
    for k in range(5):
        before = cuda.counts.copy()
        x = values(6, 20, seed=k)
        results.append((f(x, w), on_host(x, np.asarray(w))))
        made = cuda.counts - before
        assert (made["graphs"], made["launches"] > 3) == ((0, True) if k == 0 else (1, False))
    for got, want in results:
        for g, v in zip(got, want, strict=True):
            assert np.allclose(np.asarray(g), v, rtol=1e-5)


def test_the_table_is_copied_only_where_addresses_changed(cuda: FakeApi) -> None:
    f = hg.jit(layers, device="cuda")
    x, w = (hg.device_put(values(20, 20, seed=s), "cuda") for s in (1, 2))
    copies = []
    for _ in range(6):
        before = cuda.counts["copies"]
        hg.block_until_ready(f(x, w))
        gc.collect()
        copies.append(cuda.counts["copies"] - before)
    assert copies[-1] == 0 and max(copies[1:]) == 1
    held = [f(x, w) for _ in range(40)]  # results that live on have other addresses; more calls under way than there are host copies of the table
    assert all(np.array_equal(np.asarray(a), np.asarray(held[0][0])) for a, _ in held)


def test_sizes_and_streams_have_graphs_of_their_own(cuda: FakeApi) -> None:
    f = hg.jit(layers, device="cuda")
    w = values(20, 20)
    for n, stream in [(4, 0), (4, 0), (7, 0), (7, 0), (4, 0)] + [(4, cuda.new_stream())] * 3:
        cuda.stream = stream
        x = values(n, 20, seed=n)
        assert np.allclose(np.asarray(f(x, w)[0]), on_host(x, w)[0], rtol=1e-5)
    assert len(cuda.graphs) == 3


def test_scans_are_captured_and_conditions_are_not(cuda: FakeApi) -> None:
    def scanned(x: Any) -> Any:
        return hg.scan(lambda c, a: (c * 0.5 + a, hnp.max(c)), x[0], x)

    def looped(x: Any) -> Any:
        return hg.while_loop(lambda c: hnp.sum(c) < 100, lambda c: c * 2, x)

    x = np.abs(values(9, 8)) + 1
    f, g = hg.jit(scanned, device="cuda"), hg.jit(looped, device="cuda")
    for _ in range(3):
        carry, ys = x[0], []
        for row in x:
            ys.append(carry.max())
            carry = carry * np.float32(0.5) + row
        got = f(x)
        assert np.allclose(np.asarray(got[0]), carry) and np.allclose(np.asarray(got[1]), ys)
        want = x
        while want.sum() < 100:
            want = want * 2
        assert np.allclose(np.asarray(g(x)), want)
    assert len(cuda.graphs) == 1


# --- narrow floats ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("older", [False, True])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_sums_and_products_of_halves_are_one_instruction(cuda: FakeApi, monkeypatch: pytest.MonkeyPatch, dtype: str, older: bool) -> None:
    """Of all kinds of operands, the same bits as by float32; NaNs are one there."""
    for name, text in CUDA.helpers.items() if older else ():
        monkeypatch.setitem(CUDA.helpers, name, text.replace("__CUDA_ARCH__ >= 900", "0"))
    bits = np.random.default_rng(0).integers(0, 2**16, (2, 20_000), np.uint16)
    edges = np.array([0, 1, 2, 0x7F, 0x80, 0x3FF, 0x400, 0x3C00, 0x3F80, 0x7BFF, 0x7C00, 0x7F7F, 0x7F80, 0x7FC0], np.uint16)
    edges = np.concatenate([edges, edges | 0x8000])
    x, y = (np.concatenate([part, e]) for part, e in zip(bits, np.meshgrid(edges, edges), strict=True) for e in [e.ravel()])
    a, b = (v.view(np.float16 if dtype == "float16" else ml_dtypes.bfloat16) for v in (x, y))

    def f(a: Any, b: Any) -> Any:
        return a + b, a - b, a * b, (a * b + a) * 1.5 - b

    on_device = hg.jit(f, device="cuda", precision="exact")
    text = on_device.lower(a, b).as_text("cuda")
    assert text.count("hg_add_") >= 2 and "hg_mul_" in text and "hg_sub_" in text
    for got, want in zip(on_device(a, b), hg.jit(f, precision="exact")(a, b), strict=True):
        got, want = np.asarray(got), np.asarray(want)
        nan = np.isnan(want.astype(np.float32))
        assert np.array_equal(np.isnan(got.astype(np.float32)), nan)
        assert np.array_equal(got.view(np.uint16)[~nan], want.view(np.uint16)[~nan])


# --- the library -----------------------------------------------------------------------------------------------------


@pytest.mark.crossed
@pytest.mark.parametrize("turned", ["", "left", "right"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_plain_large_products_are_the_librarys(cuda: FakeApi, monkeypatch: pytest.MonkeyPatch, dtype: str, turned: str) -> None:
    monkeypatch.setattr(library, "MIN_FLOPS", 2.0 * 40 * 50 * 3300)
    x, y = values(40, 3300), values(3300, 50)
    f = hg.jit(lambda a, b: (a.T if turned == "left" else a) @ (b.T if turned == "right" else b), device="cuda")
    a, b = (hnp.astype(hg.asarray(v), dtype) for v in (x.T if turned == "left" else x, y.T if turned == "right" else y))
    got = f(a, b)
    assert cuda.counts["products"] == 1 and "kernel0 is not launched, but cuBLAS: 40 x 3300 by 3300 x 50" in f.lower(a, b).as_text("cuda")
    assert got.dtype == dtype and np.allclose(np.asarray(hnp.astype(got, "float32")), x @ y, rtol=0.05, atol=1 if dtype == "bfloat16" else 1e-2)
    for g in (lambda a, b: hnp.tanh((a @ b) + 1), lambda a, b: (a * 2) @ b):  # by kernels of their own
        np.testing.assert_allclose(np.asarray(hg.jit(g, device="cuda")(x, y)), np.asarray(hg.jit(g)(x, y)), rtol=1e-3, atol=1e-2)
    assert cuda.counts["products"] == 3
    hg.jit(lambda a, b: a @ b, device="cuda", precision="exact")(x, y)
    hg.jit(lambda a, b: a @ b, device="cuda", dynamic={0: 0})(x, y)
    assert cuda.counts["products"] == 3


@pytest.mark.parametrize("spec", ["bij,bjk->bik", "bji,bjk->bik", "bij,bkj->bik", "bhij,bhjk->bhik", "bij,jk->bik", "ibj,bjk->bik", "bij,bjk->ikb"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_batches_of_products(cuda: FakeApi, monkeypatch: pytest.MonkeyPatch, spec: str, dtype: str) -> None:
    """By one call, whichever way the matrices lie; results in another order are moved afterwards."""
    sizes = {"b": 3, "h": 2, "i": 24, "j": 40, "k": 32}
    monkeypatch.setattr(library, "MIN_FLOPS", 2.0 * 24 * 40 * 32)
    x, y = (values(*(sizes[i] for i in part), seed=s) for s, part in enumerate(spec.partition("->")[0].split(",")))
    a, b = (hnp.astype(hg.asarray(v), dtype) for v in (x, y))
    got = hg.jit(lambda a, b: hnp.einsum(spec, a, b), device="cuda")(a, b)
    np.testing.assert_allclose(np.asarray(got.astype("float32")), np.einsum(spec, x, y), rtol=0.05, atol=0.3 if dtype == "bfloat16" else 1e-3)
    assert cuda.counts["products"] == 1


@pytest.mark.parametrize("f", [block, gradient])
def test_a_block_of_a_transformer(cuda: FakeApi, monkeypatch: pytest.MonkeyPatch, f: Any) -> None:
    """Products by the library between kernels of the program's own: the values are those of the CPU, to the precision of bfloat16."""
    monkeypatch.setattr(library, "MIN_FLOPS", 2.0 * 32 * 32 * 32)
    arrays = [values(*s, seed=i).astype(ml_dtypes.bfloat16) / (1 if i == 0 else 8) for i, s in enumerate(shapes_of_block(2, 16, 32))]
    compiled = hg.jit(f, device="cuda")
    for _ in range(2):
        for got, want in zip(hg.tree.leaves(compiled(*arrays)), hg.tree.leaves(hg.jit(f)(*arrays)), strict=True):
            got, want = (np.asarray(x).astype(np.float32) for x in (got, want))
            assert abs(got - want).max() <= 0.04 * abs(want).max()
    assert cuda.counts["products"] >= 2 * 6


def test_launches_supply_the_memory_that_products_of_halves_share(cuda: FakeApi) -> None:
    """Kernel by kernel, and captured."""
    x, w = (hnp.asarray(values(*shape)).astype("bfloat16") for shape in ((40, 48), (48, 64)))
    f = hg.jit(lambda x, w: hnp.exp(x @ w).sum(axis=1), device="cuda")
    assert "cp.async" in f.lower(x, w).compile().as_text("cuda")
    want = np.asarray(hg.jit(lambda x, w: hnp.exp(x @ w).sum(axis=1))(x, w).astype("float32"))
    for _ in range(3):
        np.testing.assert_allclose(np.asarray(f(x, w).astype("float32")), want, rtol=0.05)
    assert any(nbytes > 0 for nbytes in cuda.allowed.values())


def test_products_of_float32_are_rounded_by_request_alone(cuda: FakeApi) -> None:
    x, y = values(256, 96), values(96, 256)
    texts = {p: hg.jit(lambda a, b: a @ b, device="cuda", precision=p).lower(x, y).as_text("cuda") for p in ("exact", "standard", "fast", "tf32")}
    assert [name for name, text in texts.items() if "hg_mma_tf32" in text] == ["tf32"]
    got = np.asarray(hg.jit(lambda a, b: a @ b, device="cuda", precision="tf32")(x, y))
    assert 0 < abs(got - x @ y).max() < 96 * 2.0**-9 and np.allclose(got, x @ y, rtol=0.02, atol=0.05)
    cpu = [np.asarray(hg.jit(lambda a, b: a @ b, precision=p)(x, y)) for p in ("standard", "tf32")]
    assert np.array_equal(*cpu)


# --- arrays of other libraries ---------------------------------------------------------------------------------------


def test_arguments_of_other_libraries_are_used_where_they_are(cuda: FakeApi) -> None:
    f = hg.jit(lambda x: (x * 2, x), device="cuda")
    x = cuda.array(values(4, 24), stream=cuda.new_stream())
    cuda.counts.clear()
    doubled, same = f(x)
    assert cuda.counts["copies"] == 1  # of the result that is the argument, which the other library may change
    assert np.array_equal(np.asarray(doubled), values(4, 24) * 2) and np.array_equal(np.asarray(same), values(4, 24))
    assert same.__cuda_array_interface__["data"][0] != x.address


@pytest.mark.parametrize("case", ["off by 4 bytes", "transposed", "empty"])
def test_arrays_that_kernels_cannot_read_are_copied(cuda: FakeApi, case: str) -> None:
    x = cuda.array(values(0, 3) if case == "empty" else values(6, 8), offset=4 * (case == "off by 4 bytes"))
    if case == "transposed":
        x.values = x.values.T
    y = hg.jit(lambda x: x + 1, device="cuda")(x)
    want = values(0, 3) if case == "empty" else values(6, 8).T if case == "transposed" else values(6, 8)
    assert np.array_equal(np.asarray(y), want + 1)


def test_tensors_of_other_libraries_arrays_do_not_change(cuda: FakeApi) -> None:
    x = cuda.array(values(50))
    for made in (hg.asarray(x), hg.from_dlpack(x)):
        assert made.device == "cuda:0"
        y = made + 1
        cuda.finish()
        np.ctypeslib.as_array((ctypes.c_float * 50).from_address(x.address))[:] = 0
        assert np.array_equal(np.asarray(y), values(50) + 1)
        x = cuda.array(values(50))


def test_others_read_tensors_where_they_are(cuda: FakeApi) -> None:
    t = hg.jit(lambda x: x * 3, device="cuda")(values(5, 6))
    of = t.__cuda_array_interface__
    assert (of["shape"], of["typestr"], of["strides"], of["stream"]) == ((5, 6), "<f4", None, 1) and cuda.holds(of["data"][0])
    assert t.__dlpack_device__() == (2, 0)
    x = t.__dlpack__(stream=0)
    del t
    gc.collect()
    hg.clear_caches()
    assert x.address == of["data"][0] and np.array_equal(x.get(), values(5, 6) * 3)
    with pytest.raises(AttributeError, match="on cpu"):
        hg.tensor([1.0]).__cuda_array_interface__  # noqa: B018


def test_arrays_without_a_stream_come_after_the_current_one(cuda: FakeApi) -> None:
    """As PyTorch's are, whose interface names no stream."""
    cuda.stream = cuda.new_stream()
    x = cuda.array(values(50), stream=cuda.stream)

    class Unnamed:
        __cuda_array_interface__ = {k: v for k, v in x.__cuda_array_interface__.items() if k != "stream"}

    with hg.stream("cuda"):
        y = hg.jit(lambda a: a + 1, device="cuda")(Unnamed())
    assert np.array_equal(np.asarray(y), values(50) + 1)


def test_consumers_wait_in_the_stream_that_they_name(cuda: FakeApi) -> None:
    with hg.stream("cuda"):
        y = hg.jit(lambda a: a + 1, device="cuda")(values(50))
    theirs = cuda.new_stream()
    x = y.__dlpack__(stream=theirs)
    cuda.synchronize(theirs)
    assert np.array_equal(cuda.array_at(x.address, x.values), values(50) + 1)


def test_a_consumer_that_asks_for_a_copy_may_write_to_it(cuda: FakeApi) -> None:
    y = hg.jit(lambda a: a + 1, device="cuda")(values(50))
    for stream in (None, cuda.new_stream()):
        x = y.__dlpack__(stream=stream, copy=True)
        cuda.finish()
        assert np.array_equal(cuda.array_at(x.address, x.values), values(50) + 1)
        assert x.address != y.__cuda_array_interface__["data"][0] == y.__dlpack__(copy=False).address


def test_bfloat16_of_others(cuda: FakeApi) -> None:
    """The interface has no name for it, but the array has."""
    x = cuda.array(values(50).astype(ml_dtypes.bfloat16))
    x.dtype = "torch.bfloat16"  # type: ignore[attr-defined]
    y = hg.asarray(x)
    assert y.dtype == hnp.bfloat16 and np.array_equal(np.asarray(y), x.values)


def test_an_array_that_is_refused_says_why(cuda: FakeApi) -> None:
    class Followed:
        @property
        def __cuda_array_interface__(self) -> dict[str, Any]:
            raise RuntimeError("it requires grad: use detach()")

    class Unnamed:
        @property
        def __cuda_array_interface__(self) -> dict[str, Any]:
            raise KeyError("torch.float8_e5m2")

    with pytest.raises(DeviceError, match="use detach"):
        hg.asarray(Followed())
    with pytest.raises(UnsupportedError, match="no name for elements 'torch.float8_e5m2'"):
        hg.asarray(Unnamed())


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_types_without_a_name_in_the_interface(cuda: FakeApi, name: str) -> None:
    y = hg.jit(lambda a: a * 2, device="cuda")(hnp.ones(5, dtype=name))
    assert not hasattr(y, "__cuda_array_interface__") and y.astype("float32").tolist() == [2] * 5


@pytest.mark.parametrize("more, words", [({"mask": 1}, "mask"), ({"typestr": ">f4"}, "byte order")])
def test_an_array_whose_elements_mean_something_else_is_refused(cuda: FakeApi, more: dict[str, Any], words: str) -> None:
    x = cuda.array(values(50))

    class Other:
        __cuda_array_interface__ = {**x.__cuda_array_interface__, **more}

    for read in (hg.asarray, hg.jit(lambda a: a + 1, device="cuda")):
        with pytest.raises(UnsupportedError, match=words):
            read(Other())


def test_the_stream_that_is_another_in_each_thread_is_refused(cuda: FakeApi) -> None:
    f, y = hg.jit(lambda a: a + 1, device="cuda"), hg.device_put(values(50), "cuda")
    with pytest.raises(DeviceError, match="per-thread default stream"):
        y.__dlpack__(stream=2)
    cuda.stream = 2
    with pytest.raises(DeviceError, match="per-thread default stream"):
        f(y)
    with hg.stream("cuda"):
        assert np.array_equal(np.asarray(f(y)), values(50) + 1)


def test_finalisers_do_nothing_at_the_end(cuda: FakeApi) -> None:
    f = hg.jit(layers, device="cuda")
    for _ in range(3):
        f(values(6, 20), values(20, 20, seed=9))
    modules, graphs = set(cuda.modules), set(cuda.graphs)
    cuda.ended = True
    del f
    hg.clear_caches()
    gc.collect()
    assert modules and graphs and set(cuda.modules) == modules and set(cuda.graphs) == graphs


# --- lifetimes -------------------------------------------------------------------------------------------------------


def test_nothing_is_left(cuda: FakeApi) -> None:
    f = hg.jit(layers, device="cuda")
    for k in range(4):
        f(values(5, 20, seed=k), values(20, 20))
    assert cuda.live and cuda.graphs and cuda.modules
    del f
    hg.clear_caches()
    gc.collect()
    hg.clear_caches()
    assert not cuda.live and not cuda.host and not cuda.graphs and len(cuda.modules) <= 1  # that of copies stays with the device


def test_arguments_may_go_while_a_call_is_under_way(cuda: FakeApi) -> None:
    f = hg.jit(lambda x: softmax(x) + 1, device="cuda")
    x = values(4, 30)
    y = f(hg.device_put(x.copy(), "cuda"))
    gc.collect()
    z = f(values(4, 30, seed=5))
    assert np.allclose(np.asarray(y), expected(x) + 1) and z is not y


# --- errors ----------------------------------------------------------------------------------------------------------


def test_memory_that_is_not_there(cuda: FakeApi) -> None:
    cuda.memory_bytes = 2**20
    held = hg.device_put(values(100_000), "cuda")
    with pytest.raises(OutOfMemory, match=r"cuda:0 has no .* bytes for .*400,000"):
        hg.block_until_ready(hg.jit(lambda x: (x + 1, x * 2), device="cuda")(held))
    assert np.allclose(np.asarray(hg.jit(lambda x: hnp.sum(x), device="cuda")(held)), values(100_000).sum(), rtol=1e-3)


def test_calls_that_do_not_fit_captured_run_kernel_by_kernel(cuda: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(queue: Any, nbytes: int) -> Any:
        raise OutOfMemory(f"cuda:0 has no {nbytes} bytes")

    monkeypatch.setattr(executable, "_memory", full)
    f = hg.jit(layers, device="cuda")
    x, w = values(4, 20), values(20, 20)
    for _ in range(3):
        before = cuda.counts["launches"]
        assert np.allclose(np.asarray(f(x, w)[0]), on_host(x, w)[0], rtol=1e-5)
        assert cuda.counts["launches"] - before > 3
    assert not cuda.graphs and not cuda.host


def test_of_too_many_captured_calls_the_oldest_goes(cuda: FakeApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executable, "MAX_REPLAYS", 3)
    f = hg.jit(lambda x: hnp.cumsum(x, axis=0) @ x.T, device="cuda")
    x, streams = hg.device_put(values(6, 6), "cuda"), [hg.stream("cuda") for _ in range(6)]
    for s in streams:
        with s:
            for _ in range(2):
                assert np.allclose(np.asarray(f(x)), np.cumsum(values(6, 6), axis=0) @ values(6, 6).T, rtol=1e-4)
    (found,) = f._specialisations.values()
    assert [queue for _, queue in found.executable._calls] == [s._queue for s in streams[-3:]]


def test_captured_calls_go_with_their_stream(cuda: FakeApi) -> None:
    f = hg.jit(layers, device="cuda")
    x, w = values(4, 20), values(20, 20)
    for _ in range(3):
        with hg.stream("cuda"):
            for _ in range(2):
                hg.block_until_ready(f(x, w))
        gc.collect()
    assert len(cuda.graphs) <= 2  # of the last stream, and of the one before it at the most


def test_a_failure_surfaces_where_the_value_is_read(cuda: FakeApi) -> None:
    y = hg.jit(softmax, device="cuda")(values(3, 40))
    cuda.broken = "cudaErrorIllegalAddress: an illegal memory access was encountered"
    with pytest.raises(DeviceError, match="cuda:0 failed: cudaErrorIllegalAddress"):
        np.asarray(y)
    cuda.broken = None


def test_a_program_that_does_not_compile(cuda: FakeApi) -> None:
    found = cuda_device.found()[0][0]
    with pytest.raises(CompileError, match=r"(?s)cuda:0 does not compile a program:.*nonsense.*>\s+2 .*nonsense"):
        found.build('extern "C" __global__ void __launch_bounds__(32, 1) kernel0(const int *t) {\n  nonsense;\n}\n', ["kernel0"])


def test_cubins_are_kept_on_disk(cuda: FakeApi) -> None:
    x = values(3, 50)
    for _ in range(2):
        np.asarray(hg.jit(lambda x: hnp.cos(x) * 17, device="cuda")(x))
        hg.clear_caches()
    assert cuda.counts["compiled"] == 1


def test_why_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent() -> Any:
        raise ImportError("No module named 'cupy'")

    monkeypatch.setattr(cuda_device, "api", absent)
    cuda_device.found.cache_clear()
    assert "cupy" in str(cuda_device.found()[1]) and cuda_device.found()[0] == []
    fake = FakeApi()
    monkeypatch.setattr(fake, "count", lambda: (_ for _ in ()).throw(fake.errors[0]("cudaErrorInsufficientDriver")))
    monkeypatch.setattr(cuda_device, "api", lambda: fake)
    cuda_device.found.cache_clear()
    assert "cudaErrorInsufficientDriver" in str(cuda_device.found()[1])
    cuda_device.found.cache_clear()


@pytest.mark.parametrize("verb", ["new_stream", "begin_capture", "launch", "end_capture", "allocate_host", "copy", "launch_graph", "record"])
def test_a_context_that_is_lost_while_a_call_is_captured_or_replayed(cuda: FakeApi, verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(*_: Any) -> Any:
        raise FakeError("cudaErrorContextIsDestroyed: context is destroyed")

    x = values(20, 20)
    want = on_host(x, x)[0]
    for call in (1, 2):  # that which captures, and the next
        f = hg.jit(layers, device="cuda")
        for k in range(4):
            with monkeypatch.context() as patch:
                if k == call:
                    patch.setattr(cuda, verb, lost)
                try:
                    assert np.allclose(np.asarray(f(x, x)[0]), want, rtol=1e-5)
                except DeviceError as e:
                    assert k == call and "cuda:0 failed: cudaErrorContextIsDestroyed" in str(e)
        del f
    hg.clear_caches()
    gc.collect()
    hg.clear_caches()
    assert not cuda.live and not cuda.host and not cuda.graphs
