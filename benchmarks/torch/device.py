"""``device="hologram"`` beside torch on the CPU: ``python -m benchmarks.torch.device``.

Both run in one process on as many threads and take turns; a figure is the median over rounds, in µs. An op on eight numbers is recorded, not
computed: it shows what recording costs, beside the same number of additions on the CPU. The others end with their values computed.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional as F

import hologram_torch
from benchmarks.torch.compile import alternated, mlp

Call = Callable[[], object]
DEVICES = {"hologram": hologram_torch.device(), "cpu": torch.device("cpu")}
SIZES = (1_000, 100_000, 1_000_000)


def recorded(device: torch.device) -> Call:
    """One op without autograd, as it is recorded."""
    a, b = torch.ones(8, device=device), torch.ones(8, device=device)

    def call() -> torch.Tensor:
        with torch.no_grad():
            return a + b

    return call


def chain(device: torch.device, size: int) -> Call:
    """Sixteen element-wise ops on ``size`` numbers."""
    x = torch.linspace(-1, 1, size, device=device)

    def call() -> torch.Tensor:
        y = x
        with torch.no_grad():
            for _ in range(4):
                y = torch.tanh(y * 1.01 + 0.1) - 0.5
        torch.hologram.synchronize()
        return y

    return call


def training_step(device: torch.device, optimiser: type[torch.optim.Optimizer], make: Callable[[], nn.Module] = mlp) -> Call:
    """The loss of a perceptron (256-512-512-64, GELU) on a batch of 128, its gradients and a step."""
    torch.manual_seed(0)
    model = make().to(device)
    step = optimiser(model.parameters(), lr=1e-3)  # type: ignore[call-arg]
    x, y = torch.randn(128, 256).to(device), torch.randint(64, (128,)).to(device)

    def call() -> None:
        step.zero_grad()
        F.cross_entropy(model(x), y).backward()
        step.step()

    return call


CASES: dict[str, Callable[[torch.device], Call]] = {
    "one op, recorded": recorded,
    **{f"16 element-wise ops on {n:,}": (lambda d, n=n: chain(d, n)) for n in SIZES},
    "training step of an MLP, SGD": lambda d: training_step(d, torch.optim.SGD),
    "training step of an MLP, Adam": lambda d: training_step(d, torch.optim.Adam),
}


def main() -> None:
    print(f"| case, µs | {' | '.join(DEVICES)} | ratio |")
    print("|---|---|---|---|")
    for name, make in CASES.items():
        found = alternated({device: make(d) for device, d in DEVICES.items()}, rounds=5, seconds=0.1)
        print(f"| {name} | {' | '.join(f'{found[device]:,.1f}' for device in DEVICES)} | {found['hologram'] / found['cpu']:.2f} |")


if __name__ == "__main__":
    main()
