"""device="hologram": models train to the weights that they have on the CPU, and what is recorded runs as few kernels."""

from __future__ import annotations

import math
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import hologram_torch
from hologram.settings import override
from hologram.trace import lazy
from hologram.trace.lazy_programs import known
from hologram_torch.eager.recording import pending

pytestmark = pytest.mark.costly(2)

DEVICE = hologram_torch.device()
CPU = torch.device("cpu")


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, 8)
        self.project = nn.Linear(8, 24)
        self.out = nn.Linear(8, 4)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        q, k, v = self.project(self.embed(tokens)).unflatten(-1, (3, 2, 4)).permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(seen.transpose(1, 2).flatten(2).mean(1))


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Dropout(0.2), nn.Linear(16, 4))


def cnn() -> nn.Module:
    first = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2))
    return nn.Sequential(first, nn.Conv2d(4, 6, 3), nn.ReLU(), nn.Flatten(), nn.Linear(24, 4))


def numbers(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(1))


MODELS: dict[str, tuple[Callable[[], nn.Module], torch.Tensor]] = {
    "mlp": (mlp, numbers(10, 8)),
    "cnn": (cnn, numbers(10, 1, 8, 8)),
    "attention": (Attention, (numbers(10, 6).abs() * 4).long()),
}
OPTIMISERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01),
    "Adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.01, foreach=False),
    "AdamW foreach": lambda p: torch.optim.AdamW(p, lr=0.01, foreach=True),
}


def trained(model: str, optimiser: str, device: torch.device, steps: int = 3) -> tuple[dict[str, torch.Tensor], list[float]]:
    torch.manual_seed(0)
    make, x = MODELS[model]
    net, x, y = make().to(device), x.to(device), (torch.arange(10) % 4).to(device)
    opt = OPTIMISERS[optimiser](net.parameters())
    losses = []
    for _ in range(steps):
        opt.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return {name: v.cpu() for name, v in net.state_dict().items()}, losses


@pytest.mark.parametrize(("model", "optimiser"), [("mlp", "SGD"), ("mlp", "AdamW"), ("mlp", "AdamW foreach"), ("cnn", "Adam"), ("attention", "SGD")])
def test_training_gives_the_weights_of_the_cpu(model: str, optimiser: str) -> None:
    weights, losses = trained(model, optimiser, DEVICE)
    wanted, wanted_losses = trained(model, optimiser, CPU)
    torch.testing.assert_close(weights, wanted, rtol=2e-5, atol=2e-6)
    torch.testing.assert_close(losses, wanted_losses, rtol=1e-5, atol=1e-6)


def test_gradients_accumulate() -> None:
    found = []
    for device in (DEVICE, CPU):
        torch.manual_seed(0)
        net = mlp().eval().to(device)
        x = numbers(4, 8).to(device)
        for part in x.split(2):
            net(part).square().sum().backward()
        found.append([p.grad.cpu() for p in net.parameters() if p.grad is not None])
    torch.testing.assert_close(*found)


def test_second_derivatives() -> None:
    p = torch.tensor([1.0, 2.0], device=DEVICE, requires_grad=True)
    (g,) = torch.autograd.grad((p**3).sum(), p, create_graph=True)
    g.sum().backward()
    assert p.grad is not None and p.grad.tolist() == [6, 12]


@pytest.mark.parametrize("layer", [nn.LSTM, nn.GRU])
def test_recurrent_layers(layer: Any) -> None:
    found = []
    for device in (DEVICE, CPU):
        torch.manual_seed(0)
        net = layer(3, 4, batch_first=True).to(device)
        out, _ = net(numbers(2, 5, 3).to(device))
        out.sum().backward()
        found.append((out.cpu(), [p.grad.cpu() for p in net.parameters() if p.grad is not None]))
    torch.testing.assert_close(*found)


def test_running_statistics_are_kept() -> None:
    found = []
    for device in (DEVICE, CPU):
        net = nn.BatchNorm1d(3).to(device)
        net(numbers(5, 3).to(device))
        found.append({name: v.cpu() for name, v in net.state_dict().items()} | {"out": net.eval()(numbers(5, 3).to(device)).detach().cpu()})
    torch.testing.assert_close(*found)


# --- laziness --------------------------------------------------------------------------------------------------------


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The programs run from now on."""
    torch.hologram.synchronize()
    ran: list[Any] = []
    plain = lazy.run

    def counting(executable: Any, *rest: Any) -> list[Any]:
        ran.append(executable)
        return plain(executable, *rest)

    monkeypatch.setattr(lazy, "run", counting)
    monkeypatch.setattr(known, "_realise", None)  # native code runs no program
    monkeypatch.setattr(known, "RUNS", 10**9)
    return ran


def test_a_chain_is_one_kernel_when_it_is_read(runs: list[Any]) -> None:
    x = torch.ones(1000, device=DEVICE)
    torch.hologram.synchronize()
    runs.clear()
    y = x
    for _ in range(4):
        y = torch.relu(y * 1.5 - 0.25).add_(1)
    assert not runs
    with override(op_by_op=False):
        y.sum().item()
    assert len(runs) == 1 and runs[0].reduction().kernels <= 2
    y.tolist()
    assert len(runs) == 1, "what was alive has been computed with what was read"


@pytest.mark.parametrize(("optimiser", "first"), [("SGD", 2), ("Adam", 8)])  # Adam's scalars change: they become arguments
def test_a_training_step_is_one_program_in_every_turn(optimiser: str, first: int, runs: list[Any]) -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4)).to(DEVICE)
    x, y = numbers(10, 8).to(DEVICE), (torch.arange(10) % 4).to(DEVICE)
    opt = OPTIMISERS[optimiser](net.parameters())
    for _ in range(first + 3):
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()
        opt.step()
    assert len(runs) == first + 3 and len(set(map(id, runs[first:]))) == 1
    assert runs[-1].reduction().kernels < runs[-1].reduction().traced / 2


def test_loops_that_nobody_reads_are_cut_after_whole_turns(runs: list[Any]) -> None:
    x = torch.ones(4, device=DEVICE)
    total = torch.zeros((), device=DEVICE)
    torch.hologram.synchronize()
    runs.clear()
    for _ in range(600):
        x = torch.cos(x * 0.5 + 1)
        total += (x - 1).abs().sum()
    assert 3 < len(runs) < 12 and len(set(map(id, runs))) <= 3
    assert abs(x[0].item() - math.cos(x[0].item() * 0.5 + 1)) < 1e-5


def test_values_that_nobody_reads_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending, "MAX_RECORDED", 50)
    x = torch.ones(4, device=DEVICE)
    kept = [x + i for i in range(120)]
    assert len(pending.alive()) < 50 and kept[-1].tolist() == [120] * 4


def resident() -> int:
    """Bytes of memory that the process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the memory a process holds is read from /proc")
def test_memory_does_not_grow(everything: bool) -> None:
    net = mlp().to(DEVICE)
    opt = torch.optim.SGD(net.parameters(), lr=0.01)
    x = numbers(64, 8).to(DEVICE)

    def turns(count: int) -> int:
        for _ in range(count):
            opt.zero_grad()
            out = net(x)
            out[0] += 1
            out.square().mean().backward()
            opt.step()
        return resident()

    before = turns(100)
    assert turns(10_000 if everything else 300) - before < 8 << 20


def test_torch_functions_of_functions() -> None:
    x = torch.arange(6.0, device=DEVICE).reshape(2, 3)
    assert torch.func.vmap(lambda row: row.sum())(x).tolist() == [3, 12]
    assert torch.func.grad(lambda t: (t**2).sum())(x).tolist() == (2 * x).tolist()
