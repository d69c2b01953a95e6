"""``torch.compile`` for tensors on a CUDA device, on a CUDA without a GPU (``cuda_stand_in.py``): beside eager mode on the CPU."""

from __future__ import annotations

import dataclasses
import gc
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch._subclasses.meta_utils import MetaTensorDescriber

import hologram as hg
from hologram.backends.cuda import device as cuda_device
from hologram.backends.cuda.device import Device
from hologram.errors import DeviceError
from hologram_torch.bridge import cuda as bridge
from hologram_torch.compile.backend import make_backend
from hologram_torch.compile.report import Explanation, recorder
from tests.support.devices.fake_cuda import FakeError
from tests.support.needs import needs_compilers
from tests.support.torch.cuda_stand_in import CUDA, PromptApi, StandIn

pytestmark = [
    needs_compilers,
    # of torch's own, while Dynamo traces an optimiser
    *map(pytest.mark.filterwarnings, ("ignore:Profiler record function", "ignore:.*torch.jit.script_method.* is deprecated:DeprecationWarning")),
]


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    """One device that is not there. Tensors in compiled graphs are on it, but for those that ``on_host`` picks."""
    api = PromptApi()
    device = Device(api, 0)  # type: ignore[arg-type]
    monkeypatch.setattr(cuda_device, "found", lambda: ([device], None))
    stand_in = StandIn(api)
    monkeypatch.setattr(bridge, "device_of", lambda x: torch.device("cpu") if stand_in.on_host(x) else CUDA)
    monkeypatch.setattr(bridge, "empty_on", lambda device: stand_in.empty)
    monkeypatch.setattr(bridge, "raw_stream", lambda device: lambda: api.stream)
    monkeypatch.setattr(bridge, "is_capturing", lambda: api.capturing_outside)
    monkeypatch.setattr(bridge, "sent", stand_in.send)
    torch._dynamo.reset()
    torch.manual_seed(0)
    yield stand_in
    torch._dynamo.reset()
    hg.clear_caches()
    gc.collect()


def compiled(f: Any, found: Explanation | None = None, **options: Any) -> Any:
    return torch.compile(f, backend=make_backend(recorder(found if found is not None else Explanation())), **options)


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(24, 40), nn.GELU(), nn.LayerNorm(40), nn.Linear(40, 5))


def test_a_graph_is_one_program_on_the_device(there: StandIn) -> None:
    found = Explanation()
    m, x = mlp(), torch.randn(7, 24)
    with torch.no_grad():
        want = m(x)
        fast, given = compiled(there.module(m), found), there.tensor(x)
        for _ in range(4):  # the second call is captured, the others are replayed
            there.api.counts.clear()
            y = fast(given)
            torch.testing.assert_close(y, want, rtol=1e-4, atol=1e-5)
    assert there.api.holds(y.data_ptr())
    assert there.api.counts["graphs"] == 1 and there.api.counts["launches"] == 0
    (program,) = found.programs
    assert program.devices == ("cuda:0",) and program.segments == 1 and not program.fallbacks


def test_training_is_two_programs_whose_results_outlive_everything(there: StandIn) -> None:
    found = Explanation()
    want, x = mlp(), torch.randn(7, 24)
    m = mlp()
    m.load_state_dict(want.state_dict())
    want(x).square().sum().backward()
    y = compiled(there.module(m), found)(there.tensor(x))
    y.square().sum().backward()
    assert [(p.stage, p.devices, len(p.fallbacks)) for p in found.programs] == [("forward", ("cuda:0",), 0), ("backward", ("cuda:0",), 0)]
    gradients = [p.grad for p in m.parameters()]
    del m, y
    torch._dynamo.reset()
    gc.collect()
    for got, p in zip(gradients, want.parameters(), strict=True):
        assert there.api.holds(got.data_ptr())
        torch.testing.assert_close(got, p.grad, rtol=1e-4, atol=1e-5)


def test_memory_comes_back(there: StandIn) -> None:
    m, x = there.module(mlp()), there.tensor(torch.randn(7, 24))
    fast = compiled(m)
    live = []
    for _ in range(5):
        m.zero_grad()
        fast(x).sum().backward()
        gc.collect()
        live.append(len(there.api.live))
    assert live[-1] == live[-2] == live[-3]


def test_an_optimiser_writes_to_the_parameters(there: StandIn) -> None:
    """Its step counts are on the CPU: computed there, and brought to the device by one copy."""
    there.on_host = lambda x: x.ndim == 0
    generator = torch.Generator().manual_seed(3)
    values = [(torch.randn(shape, generator=generator), torch.randn(shape, generator=generator)) for shape in ((5, 4), (5,), (3, 5))]
    wanted, parameters = [p.clone() for p, _ in values], [there.tensor(p) for p, _ in values]
    for these in (wanted, parameters):
        for p, (_, g) in zip(these, values, strict=True):
            p.grad = g if these is wanted else there.tensor(g)
    reference, optimiser = (torch.optim.AdamW(ps, lr=0.01, foreach=True) for ps in (wanted, parameters))
    found = Explanation()
    step = compiled(optimiser.step, found)
    addresses = [p.data_ptr() for p in parameters]
    for _ in range(3):
        there.sent = there.allocated = 0
        reference.step()
        step()
    torch.testing.assert_close(parameters, wanted, rtol=1e-5, atol=1e-7)
    assert [p.data_ptr() for p in parameters] == addresses and there.sent == 1 and there.allocated == 0
    assert found.programs[-1].devices == ("cpu", "cuda:0") and not found.programs[-1].fallbacks


def test_statistics_and_caches_are_updated_in_place(there: StandIn) -> None:
    def step(cache: torch.Tensor, row: torch.Tensor, norm: nn.Module) -> torch.Tensor:
        cache[:, 2] = norm(row)
        return cache.sum(1)

    want, given, row = torch.zeros(3, 4, 5), there.tensor(torch.zeros(3, 4, 5)), torch.randn(3, 5)
    reference, norm = nn.BatchNorm1d(5), there.module(nn.BatchNorm1d(5))
    address = given.data_ptr()
    with torch.no_grad():
        expected, y = step(want, row, reference), compiled(step)(given, there.tensor(row), norm)
    torch.testing.assert_close((given, y, norm.running_var), (want, expected, reference.running_var))
    assert given.data_ptr() == address and norm.num_batches_tracked.item() == 1


def test_results_that_are_views_and_arguments(there: StandIn) -> None:
    def f(x: torch.Tensor) -> Any:
        y = x * 2
        return y, y[1:], y.T, x[:, 1], x, torch.arange(3.0)

    x = torch.randn(4, 6)
    given = there.tensor(x)
    got = compiled(f)(given)
    torch.testing.assert_close(got, f(x))
    y, part, turned, column, same, _ = got
    assert part.data_ptr() == y.data_ptr() + 24 and turned.data_ptr() == y.data_ptr()
    assert same is given and column.data_ptr() == given.data_ptr() + 4


def test_what_pytorch_computes_runs_between_programs(there: StandIn) -> None:
    found = Explanation()

    def f(x: torch.Tensor) -> torch.Tensor:
        return torch.special.airy_ai(x * 2) + nn.functional.dropout(x, 0.5).abs()

    x = torch.rand(50, 40) + 1
    fast = compiled(f, found)
    torch.manual_seed(5)
    want = f(x)
    torch.manual_seed(5)
    torch.testing.assert_close(fast(there.tensor(x)), want, rtol=1e-4, atol=1e-5)
    assert set(found.fallbacks) == {"aten.special_airy_ai.default", "aten.bernoulli.p"}


def test_sizes_that_vary(there: StandIn) -> None:
    fast = compiled(lambda x: torch.softmax(x @ x.T, -1).sum(0), dynamic=True)
    for n in (3, 5, 8, 5):
        x = torch.randn(n, 6)
        torch.testing.assert_close(fast(there.tensor(x)), torch.softmax(x @ x.T, -1).sum(0), rtol=1e-4, atol=1e-5)


def test_arguments_that_begin_anywhere(there: StandIn) -> None:
    """Kernels read 16 bytes at once: arguments at other addresses are copied, and what is assigned to them is copied back."""
    fast = compiled(lambda x: x.mul_(2))
    values = torch.randn(65)
    base = there.tensor(values)
    fast(base[1:])
    fast(base[1:])
    torch.testing.assert_close(base[1:], values[1:] * 4)
    assert base[0] == values[0]


def test_an_index_out_of_range_is_told_by_the_next_call(there: StandIn) -> None:
    fast = compiled(lambda table, i: table[i] + 1)
    table, good, bad = (there.tensor(x) for x in (torch.randn(5, 8), torch.tensor([0, 4]), torch.tensor([0, 7])))
    torch.testing.assert_close(fast(table, good), table[good] + 1)
    fast(table, bad)
    with pytest.raises(IndexError, match="out of range in an earlier call of the compiled graph's .*index"):
        fast(table, good)
    torch.testing.assert_close(fast(table, good), table[good] + 1)


def test_graphs_that_pytorch_captures_are_launched_kernel_by_kernel(there: StandIn) -> None:
    m, x = there.module(mlp()), there.tensor(torch.randn(7, 24))
    with torch.no_grad():
        fast = compiled(m)
        want = [fast(x) for _ in range(3)][-1]
        there.api.capturing_outside = True
        there.api.counts.clear()
        torch.testing.assert_close(fast(x), want)
    assert there.api.counts["graphs"] == there.api.counts["copies"] == 0 and there.api.counts["launches"] > 1


def test_memory_of_a_captured_graph(there: StandIn) -> None:
    """Intermediates are in memory of the graph, which nothing else has until all kernels are launched, and which the graph keeps."""
    m, x = there.module(mlp()), there.tensor(torch.randn(7, 24))
    free: list[int] = []
    launch = there.api.launch

    def observed(*args: Any) -> None:
        free.append(len(there.pool))
        launch(*args)

    with torch.no_grad(), pytest.MonkeyPatch.context() as patch:
        fast = compiled(m)
        fast(x)
        there.api.capturing_outside = True
        patch.setattr(there.api, "launch", observed)
        result = fast(x)
    assert free and not any(free) and len(there.pool) == 1
    del result
    gc.collect()
    assert len(there.pool) == 2 and all(there.api.holds(address) for address, _ in there.pool)


@pytest.fixture
def matmul() -> Iterator[Any]:
    """PyTorch's settings of products on CUDA, as they were afterwards."""
    settings = torch.backends.cuda.matmul
    before = settings.fp32_precision
    yield settings
    settings.fp32_precision = before


def test_a_full_device_takes_what_pytorch_keeps_for_reuse(there: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    x = there.tensor(torch.randn(64, 64))
    kept = [there.tensor(torch.empty(1 << 20))]
    limit = sum(a.nbytes for a in there.api.live.values()) + (24 << 10)  # there is room for the result
    monkeypatch.setattr(torch.cuda, "empty_cache", kept.clear)
    f = lambda x: torch.softmax(x @ x, -1) @ x.sin()  # noqa: E731
    with torch.no_grad():
        fast = compiled(f)
        there.api.memory_bytes = limit
        torch.testing.assert_close(fast(x), f(x), rtol=1e-4, atol=1e-5)
        assert not kept


def test_failures_of_the_driver(there: StandIn) -> None:
    fast, x = compiled(lambda x: x.softmax(-1) @ x), there.tensor(torch.randn(8, 8))
    want = fast(x)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(there.api, "launch", failing)
        with pytest.raises(DeviceError, match="cuda:0 failed: cudaErrorLaunchFailure"):
            fast(x)
    torch.testing.assert_close(fast(x), want)


def failing(*args: Any) -> None:
    raise FakeError("cudaErrorLaunchFailure")


def test_threads(there: StandIn) -> None:
    m = there.module(mlp())
    inputs = [torch.randn(7, 24) for _ in range(3)]
    results: dict[int, torch.Tensor] = {}
    with torch.no_grad():
        fast = compiled(m)
        want = [fast(there.tensor(x)).clone() for x in inputs]

    def work(i: int) -> None:
        with torch.no_grad():
            x = there.tensor(inputs[i])
            results[i] = [fast(x) for _ in range(10)][-1]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    torch.testing.assert_close([results[i] for i in range(3)], want)


def test_float32_products_in_the_precision_that_pytorch_is_told(there: StandIn, matmul: Any) -> None:
    found: list[str] = []

    def observe(stage: str, module: Any, writer: Any) -> None:
        found.extend(e.precision for e in writer.executables)

    x = there.tensor(torch.randn(8, 8))
    fast, exact = (torch.compile(lambda x: x @ x, backend=make_backend(observe, precision)) for precision in ("standard", "exact"))
    for asked in ("ieee", "tf32"):
        matmul.fp32_precision = asked
        fast(x)
    torch._dynamo.reset()
    exact(x)
    assert found == ["standard", "tf32", "exact"]


def test_16_bit_floats_and_autocast(there: StandIn) -> None:
    def f(m: nn.Module, x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16):  # the tensors are the CPU's to PyTorch
            return m(x)

    m, x = mlp(), torch.randn(7, 24)
    want = f(m, x)
    got = compiled(f)(there.module(m), there.tensor(x))
    assert got.dtype is want.dtype
    torch.testing.assert_close(got, want, rtol=2e-2, atol=2e-2)


def test_a_program_of_a_second_device_is_pytorchs_where_hologram_has_none(there: StandIn) -> None:
    found = Explanation()
    bridge_device = bridge.device_of
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bridge, "device_of", lambda x: torch.device("cuda", 1) if x.ndim == 2 else bridge_device(x))
        f = lambda x, y: (x * 2 + 1, y * 3)  # noqa: E731
        x, y = torch.randn(3, 4), torch.randn(6)
        torch.testing.assert_close(compiled(f, found)(x, there.tensor(y)), f(x, y))
    (program,) = found.programs
    assert program.devices == ("cuda:0",) and {x.op for x in program.fallbacks} == {"aten.mul.Tensor", "aten.add.Tensor"}
    assert "device 'cuda:1' is not available" in program.fallbacks[0].reason


@pytest.fixture
def described(there: StandIn, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """Dynamo too sees tensors in the device's memory as CUDA's. That is without derivatives: a build of PyTorch for the CPU has no streams of CUDA
    for its autograd."""
    describe = MetaTensorDescriber.describe_tensor

    def of_device(self: Any, t: torch.Tensor, **options: Any) -> Any:
        made = describe(self, t, **options)
        return dataclasses.replace(made, device=CUDA) if there.api.holds(t.data_ptr()) else made

    monkeypatch.setattr(MetaTensorDescriber, "describe_tensor", of_device)
    monkeypatch.setattr(bridge, "device_of", lambda x: x.device)
    return there


def test_tensors_that_a_graph_makes_on_the_device(described: StandIn) -> None:
    found = Explanation()

    def f(x: torch.Tensor) -> torch.Tensor:
        positions = torch.arange(x.shape[0], device=x.device)
        mask = torch.full((x.shape[0], x.shape[0]), float("-inf"), device=x.device).triu(1)
        seen = torch.where(positions.unsqueeze(1) > 1, x, 0.5)  # the number is a tensor on the CPU
        return torch.softmax(seen @ seen.T + mask, -1) + torch.zeros_like(mask)

    x = torch.randn(6, 4)
    with torch.no_grad():
        torch.testing.assert_close(compiled(f, found)(described.tensor(x)), f(x), rtol=1e-4, atol=1e-5)
    (program,) = found.programs
    assert (program.devices, program.segments, program.fallbacks) == (("cuda:0",), 1, ()) and described.sent == 0


def test_numbers_on_the_cpu_are_brought_by_one_copy(described: StandIn) -> None:
    found = Explanation()

    def f(x: torch.Tensor, rate: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
        step = step + 1
        return x * rate / step + rate

    x, rate, step = torch.randn(6, 4), torch.tensor(0.1, dtype=torch.float64), torch.tensor(3)
    with torch.no_grad():
        torch.testing.assert_close(compiled(f, found)(described.tensor(x), rate, step), f(x, rate, step))
    assert described.sent == 1 and found.programs[0].devices == ("cpu", "cuda:0") and not found.fallbacks


def test_what_crosses_devices_is_pytorchs(described: StandIn) -> None:
    found = Explanation()
    f = lambda x: (x * 2 + 1).cpu() + 1  # noqa: E731
    with torch.no_grad():
        torch.testing.assert_close(compiled(f, found)(described.tensor(torch.ones(5))), torch.full((5,), 4.0))
    (program,) = found.programs
    assert program.devices == ("cuda:0", "cpu")
    assert [(x.op, "is on cuda:0, and the result on cpu" in x.reason) for x in program.fallbacks] == [("aten._to_copy.default", True)]


def test_routines_of_the_host_are_pytorchs_on_the_device(described: StandIn) -> None:
    found = Explanation()
    a = torch.randn(4, 4)
    a = a @ a.T + torch.eye(4)
    f = lambda a: torch.linalg.cholesky(a * 2) + 1  # noqa: E731
    with torch.no_grad():
        torch.testing.assert_close(compiled(f, found)(described.tensor(a)), f(a), rtol=1e-4, atol=1e-5)
    assert any("a routine of the host" in x.reason for x in found.programs[0].fallbacks)


def test_why_hologram_has_no_such_device(described: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_device, "found", lambda: ([], "CuPy cannot be imported"))
    found = Explanation()
    with torch.no_grad():
        torch.testing.assert_close(compiled(lambda x: x * 2, found)(described.tensor(torch.ones(5))), torch.full((5,), 2.0))
    (fallback,) = found.programs[0].fallbacks
    assert "device 'cuda:0' is not available: CuPy cannot be imported" in fallback.reason
