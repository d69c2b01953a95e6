"""Compiled PyTorch models beside eager mode and inductor: ``python -m benchmarks.torch.compile [--rounds N] [--no-cold]``.

All run in one process on as many threads and take turns; a figure is the median over rounds. A training step is the loss, its gradients and a step
of torch.optim.SGD, which is eager for all. The first call is that of a fresh process with empty caches, imports not counted.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

FRAMEWORKS = ("eager", "inductor", "hologram")
Call = Callable[[], Any]


class Block(nn.Module):
    """A transformer block: causal attention and a GELU perceptron of four times the width, each after a layer norm."""

    def __init__(self, width: int = 128, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def projected(self, x: torch.Tensor) -> torch.Tensor:
        """Queries, keys and values: (3, batch, heads, length, size of a head)."""
        batch, length, width = x.shape
        return self.qkv(self.before_attention(x)).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)

    def after_attention(self, x: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        """The block's result, of its input and what its heads have seen."""
        x = x + self.out(seen.transpose(1, 2).reshape(x.shape))
        return x + self.down(nn.functional.gelu(self.up(self.before_mlp(x))))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.projected(x)
        return self.after_attention(x, nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True))


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 64))


MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "MLP 256-512-512-64, batch 128": (mlp, (128, 256)),
    "transformer block 8x128x128, 4 heads": (Block, (8, 128, 128)),
}


def compiled(f: Any, framework: str) -> Any:
    """``f`` as the framework runs it."""
    if framework == "hologram":
        import hologram_torch.compile  # noqa: F401  registers the backend in a source tree
    return f if framework == "eager" else torch.compile(f, backend=framework)


def forward(model: nn.Module, x: torch.Tensor, framework: str) -> Call:
    f = compiled(model, framework)

    def call() -> torch.Tensor:
        with torch.no_grad():
            return f(x)

    return call


def training_step(model: nn.Module, x: torch.Tensor, framework: str) -> Call:
    optimiser = torch.optim.SGD(model.parameters(), lr=1e-4)
    loss = compiled(lambda x: model(x).square().mean(), framework)

    def call() -> None:
        optimiser.zero_grad()
        loss(x).backward()
        optimiser.step()

    return call


def addition(framework: str) -> Call:
    """What a call costs beside its work: eight numbers."""
    f, x = compiled(lambda a, b: a + b, framework), torch.ones(8)

    def call() -> torch.Tensor:
        with torch.no_grad():
            return f(x, x)

    return call


def alternated(calls: dict[str, Call], rounds: int, seconds: float) -> dict[str, float]:
    """The median time of each call in µs, the calls taking turns."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        for _ in range(5):
            call()
    for _ in range(rounds):
        for name, call in calls.items():
            per = _timed(call, 3)
            times[name].append(_timed(call, max(1, int(seconds / per))) * 1e6)
    return {name: statistics.median(found) for name, found in times.items()}


def _timed(call: Call, count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count


def first_call(framework: str) -> float:
    """Seconds of the first call of the compiled MLP in a fresh process with empty caches."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"HOLOGRAM_CACHE_DIR": folder, "TORCHINDUCTOR_CACHE_DIR": folder}
        command = [sys.executable, "-m", "benchmarks.torch.compile", "--first-call", framework]
        return float(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split()[-1])


def _first_call(framework: str) -> None:
    import torch._dynamo  # imported, as that of the framework, before the clock starts

    if framework == "hologram":
        import hologram_torch.compile  # noqa: F401
    else:
        import torch._inductor.compile_fx  # noqa: F401
    call = forward(mlp(), torch.randn(128, 256), framework)
    start = time.perf_counter()
    call()
    print(time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.15, help="for each framework, case and round")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--no-cold", action="store_true", help="without the first call")
    parser.add_argument("--first-call", choices=FRAMEWORKS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    if options.first_call:
        _first_call(options.first_call)
        return
    import hologram as hg

    hg.set_num_threads(options.threads)
    frameworks = [f for f in FRAMEWORKS if f != "inductor" or shutil.which("g++") or shutil.which("clang++")]
    if "inductor" not in frameworks:
        print("inductor is left out: it needs a C++ compiler")
    print(f"| µs per call, {options.threads} threads | {' | '.join(frameworks)} | hologram / best peer |\n|---|{'---|' * (len(frameworks) + 1)}")
    for name, measured in _cases(frameworks, options.rounds, options.seconds):
        peers = [t for f, t in measured.items() if f != "hologram"]
        print(f"| {name} | {' | '.join(f'{t:,.1f}' for t in measured.values())} | {measured['hologram'] / min(peers):.2f} |", flush=True)
    if not options.no_cold and "inductor" in frameworks:
        cold = {f: first_call(f) for f in ("inductor", "hologram")}
        print(f"| MLP, first call, s | | {cold['inductor']:.2f} | {cold['hologram']:.2f} | {cold['hologram'] / cold['inductor']:.2f} |")


def _cases(frameworks: list[str], rounds: int, seconds: float) -> Any:
    for name, (make, shape) in MODELS.items():
        model, x = make(), torch.randn(shape)
        for what, case in (("forward", forward), ("training step", training_step)):
            torch._dynamo.reset()
            yield f"{name}: {what}", alternated({f: case(model, x, f) for f in frameworks}, rounds, seconds)
    yield "a + b of 8 elements", alternated({f: addition(f) for f in frameworks}, rounds, seconds / 3)


if __name__ == "__main__":
    main()
