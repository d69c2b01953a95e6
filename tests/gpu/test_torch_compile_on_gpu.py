"""``torch.compile(backend="hologram")`` on a CUDA device, beside eager mode there: values, training, memory, streams, captured graphs."""

from __future__ import annotations

import copy
import gc
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

import hologram_torch  # noqa: E402
from hologram.backends.cuda import device as cuda_device  # noqa: E402

DEVICES, REASON = cuda_device.found()
DEVICE = "cuda"
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not DEVICES, reason=f"Hologram has no CUDA device: {REASON}"),
    pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch has no CUDA device"),
    # of torch's own, while Dynamo traces an optimiser
    *map(pytest.mark.filterwarnings, ("ignore:Profiler record function", "ignore:.*torch.jit.script_method.* is deprecated:DeprecationWarning")),
]


@pytest.fixture(autouse=True)
def fresh() -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)


def compiled(f: Any, **options: Any) -> Any:
    return torch.compile(f, backend="hologram", **options)


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 64))


class Block(nn.Module):
    """A transformer's block; its attention is written by hand, or PyTorch's."""

    def __init__(self, by_hand: bool) -> None:
        super().__init__()
        self.before, self.after = nn.LayerNorm(64), nn.LayerNorm(64)
        self.heads, self.out = nn.Linear(64, 192), nn.Linear(64, 64)
        self.feed = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64))
        self.by_hand = by_hand

    def forward(self, x: Any) -> Any:
        q, k, v = (h.unflatten(-1, (4, 16)).transpose(1, 2) for h in self.heads(self.before(x)).chunk(3, -1))
        if self.by_hand:
            scores = q @ k.mT / 4
            hidden = torch.ones(scores.shape[-2:], dtype=torch.bool, device=x.device).triu(1)
            seen = torch.softmax(scores.masked_fill(hidden, float("-inf")), -1) @ v
        else:
            seen = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).flatten(2))
        return x + self.feed(self.after(x))


def convnet() -> nn.Module:
    stem = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(inplace=True), nn.MaxPool2d(2))
    return nn.Sequential(stem, nn.Conv2d(16, 32, 3, 2), nn.GroupNorm(4, 32), nn.SiLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 5))


MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "mlp": (mlp, (128, 256)),
    "block by hand": (lambda: Block(True), (3, 40, 64)),
    "block": (lambda: Block(False), (3, 40, 64)),
    "convnet": (convnet, (4, 3, 20, 20)),
}
OPTIMISERS: dict[str, Any] = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=1e-3),
    "AdamW, capturable": lambda p: torch.optim.AdamW(p, lr=1e-3, capturable=True),
    "AdamW, fused": lambda p: torch.optim.AdamW(p, lr=1e-3, fused=True),
}


def alike(name: str, dtype: Any) -> tuple[nn.Module, nn.Module, Any]:
    """A model of :data:`MODELS` twice, and its argument."""
    make, shape = MODELS[name]
    m = make().to(DEVICE, dtype)
    return m, copy.deepcopy(m), torch.randn(shape, device=DEVICE, dtype=dtype)


@pytest.mark.parametrize("name", MODELS)
def test_inference(name: str) -> None:
    reference, m, x = alike(name, torch.float32)
    fast = compiled(m.eval())
    with torch.no_grad():
        want = reference.eval()(x)
        for _ in range(4):  # the first call runs kernel by kernel, the second is captured
            torch.testing.assert_close(fast(x), want, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", MODELS)
def test_training(name: str) -> None:
    """In float64, so that small differences do not grow over the steps."""
    reference, m, x = alike(name, torch.float64)
    for model, call in ((reference, reference), (m, compiled(m))):
        optimiser = torch.optim.AdamW(model.parameters(), 1e-3)
        for _ in range(4):
            optimiser.zero_grad()
            call(x).square().mean().backward()
            optimiser.step()
    for got, want in zip(m.state_dict().values(), reference.state_dict().values(), strict=True):
        torch.testing.assert_close(got, want, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", OPTIMISERS)
def test_optimisers(name: str) -> None:
    reference, m, _ = alike("mlp", torch.float32)
    steps: list[Any] = []
    for model in (reference, m):
        optimiser = OPTIMISERS[name](list(model.parameters()))
        steps.append(optimiser.step if model is reference else compiled(optimiser.step))
    addresses = [p.data_ptr() for p in m.parameters()]
    for _ in range(3):
        for p, q in zip(reference.parameters(), m.parameters(), strict=True):
            p.grad = torch.randn_like(p)
            q.grad = p.grad.clone()
        for step in steps:
            step()
    assert [p.data_ptr() for p in m.parameters()] == addresses
    torch.testing.assert_close(list(m.parameters()), list(reference.parameters()), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", MODELS)
def test_autocast(name: str, dtype: Any) -> None:
    reference, m, x = alike(name, torch.float32)

    def gradient(model: Any, call: Any) -> Any:
        with torch.autocast(DEVICE, dtype):
            y = call(x)
        y.float().square().mean().backward()
        return y.float(), next(model.parameters()).grad

    torch.testing.assert_close(gradient(m, compiled(m)), gradient(reference, reference), rtol=5e-2, atol=2e-2)


def test_one_program_a_graph() -> None:
    _, m, x = alike("mlp", torch.float32)
    found = hologram_torch.explain(lambda x: m(x).square().mean())(x)
    assert [(p.devices, p.segments, p.fallbacks) for p in found.programs] == [((f"{DEVICE}:0",), 1, ())]


def test_dropout_draws_of_the_generator_of_the_device() -> None:
    fast = compiled(lambda x: nn.functional.dropout(x, 0.25) * 2)
    x = torch.ones(100_000, device=DEVICE)
    torch.cuda.manual_seed(3)
    y, z = fast(x), fast(x)
    torch.cuda.manual_seed(3)
    assert torch.equal(fast(x), y) and not torch.equal(y, z)
    assert y.unique().tolist() == pytest.approx([0, 8 / 3]) and (y == 0).float().mean().item() == pytest.approx(0.25, abs=0.01)


@pytest.mark.parametrize("dynamic", [None, True])
def test_sizes_that_vary(dynamic: bool | None) -> None:
    f = lambda x: torch.softmax(x @ x.T, -1).sum(0)  # noqa: E731
    fast = compiled(f, dynamic=dynamic)
    for n in (3, 70, 8, 70):
        x = torch.randn(n, 60, device=DEVICE)
        torch.testing.assert_close(fast(x), f(x), rtol=1e-4, atol=1e-5)


def test_graph_breaks_and_work_of_pytorch_between() -> None:
    def f(x: Any) -> Any:
        y = torch.special.airy_ai(x * 2) + 1
        torch._dynamo.graph_break()
        return y.cumsum(0) @ x.T

    x = torch.rand(30, 30, device=DEVICE)
    torch.testing.assert_close(compiled(f)(x), f(x), rtol=1e-4, atol=1e-4)


def test_caches_are_updated_in_place() -> None:
    def step(cache: Any, row: Any, i: int) -> Any:
        cache[:, i] = row * 2
        return torch.softmax(cache, 1).sum(1)

    cache, row = torch.zeros(4, 16, 32, device=DEVICE), torch.randn(4, 32, device=DEVICE)
    want, address = cache.clone(), cache.data_ptr()
    fast = compiled(step)
    for i in range(5):
        torch.testing.assert_close(fast(cache, row, i), step(want, row, i))
    assert cache.data_ptr() == address and torch.equal(cache, want)


def test_work_goes_to_the_current_stream() -> None:
    fast, x = compiled(lambda a: a * 2 + 1), torch.zeros(1 << 22, device=DEVICE)
    fast(x)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(20):
            x = fast(x)
        y = x.sum()
    stream.synchronize()
    assert y.item() == (2**20 - 1) * float(1 << 22)


def test_calls_neither_copy_nor_wait() -> None:
    _, m, x = alike("mlp", torch.float32)
    with torch.no_grad():
        fast = compiled(m)
        for _ in range(4):
            fast(x)
        DEVICES[0].counts.clear()
        torch.cuda.set_sync_debug_mode("error")
        try:
            y = fast(x)
        finally:
            torch.cuda.set_sync_debug_mode("default")
    assert not any(name.startswith("copies") for name in DEVICES[0].counts) and y.is_cuda


def test_memory_is_pytorchs_and_comes_back() -> None:
    _, m, x = alike("convnet", torch.float32)
    fast = compiled(m)
    live = []
    for _ in range(8):
        m.zero_grad()
        fast(x).square().mean().backward()
        gc.collect()
        live.append((torch.cuda.memory_allocated(), DEVICES[0].runtime.pool.statistics()["live"]))
    assert live[-1] == live[-2] == live[-3]
    y = fast(x)
    del fast, m
    torch._dynamo.reset()
    gc.collect()
    assert torch.isfinite(y).all()


def test_arguments_that_begin_anywhere() -> None:
    base = torch.randn(65, device=DEVICE)
    want = base.clone()
    fast = compiled(lambda x: x.mul_(2))
    fast(base[1:])
    want[1:] *= 2
    assert torch.equal(base, want)


def test_an_index_out_of_range_is_told_by_the_next_call() -> None:
    fast = compiled(lambda table, i: table[i] + 1)
    table, good, bad = torch.randn(5, 8, device=DEVICE), torch.tensor([0, 4], device=DEVICE), torch.tensor([0, 7], device=DEVICE)
    assert torch.equal(fast(table, good), table[good] + 1)
    fast(table, bad)
    torch.cuda.synchronize()
    with pytest.raises(IndexError, match="out of range in an earlier call"):
        fast(table, good)
    assert torch.equal(fast(table, good), table[good] + 1)


def test_a_captured_graph_repeats_the_call() -> None:
    _, m, x = alike("mlp", torch.float32)
    with torch.no_grad():
        fast = compiled(m)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                fast(x)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = fast(x)
        for _ in range(3):
            x.copy_(torch.randn_like(x))
            fast(torch.randn_like(x))  # other calls come between
            graph.replay()
            torch.testing.assert_close(y, m(x), rtol=1e-3, atol=1e-4)


def test_precision_of_products_is_pytorchs() -> None:
    x = torch.randn(512, 512, device=DEVICE)
    exact = x.double() @ x.double()
    errors = {}
    for precision in ("ieee", "tf32"):
        torch.backends.cuda.matmul.fp32_precision = precision
        try:
            errors[precision] = (compiled(lambda x: x @ x)(x) - exact).abs().max().item()
        finally:
            torch.backends.cuda.matmul.fp32_precision = "none"
    assert errors["ieee"] < 1e-3 < errors["tf32"] < 0.5


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="there are fewer than two CUDA devices")
def test_a_second_device() -> None:
    x = torch.randn(30, 40, device="cuda:1")
    f = lambda x: torch.softmax(x @ x.T, -1)  # noqa: E731
    y = compiled(f)(x)
    assert y.device == x.device
    torch.testing.assert_close(y, f(x), rtol=1e-4, atol=1e-5)
