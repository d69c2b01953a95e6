"""An encoder layer whose length varies: ``python -m benchmarks.torch.sizes [--rounds N] [--threads N]``.

512 wide with 8 heads, compiled with ``dynamic=True``, at lengths from 1 to 1,024 in an order that is not sorted. Eager mode, inductor and Hologram
take turns in one process: the best time of each length, their sum, and how many graphs Dynamo and how many programs Hologram made.
"""

from __future__ import annotations

import argparse
import random
import time
from typing import Any

import torch
from torch import nn

import hologram as hg
from hologram_torch.compile.backend import make_backend

WIDTH, HEADS = 512, 8
LENGTHS = (1, 2, 7, 16, 64, 130, 200, 276, 512, 921, 1024)


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.before_attention, self.before_mlp = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        q, k, v = self.qkv(self.before_attention(x)).view(batch, length, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        seen = nn.functional.scaled_dot_product_attention(q, k, v)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.down(nn.functional.gelu(self.up(self.before_mlp(x))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    hg.set_num_threads(options.threads)
    torch.manual_seed(0)
    model, programs = Encoder().eval(), []
    steps: dict[str, Any] = {
        "eager": model,
        "inductor": torch.compile(model, dynamic=True),
        "hologram": torch.compile(model, dynamic=True, backend=make_backend(lambda stage, module, writer: programs.append(writer))),
    }
    lengths = random.Random(0).sample(LENGTHS, len(LENGTHS))
    best: dict[tuple[str, int], float] = {}
    with torch.no_grad():
        for i in range(options.rounds + 1):
            for length in lengths:
                x = torch.randn(1, length, WIDTH)
                for name, step in steps.items():
                    start = time.perf_counter()
                    step(x)
                    seconds = time.perf_counter() - start
                    if i:  # the first round compiles
                        best[name, length] = min(best.get((name, length), seconds), seconds)
    for length in LENGTHS:
        print(f"{length:5}", *[f"{name} {best[name, length] * 1e3:9.3f} ms" for name in steps])
    total = {name: sum(best[name, length] for length in LENGTHS) for name in steps}
    print("  sum", *[f"{name} {seconds * 1e3:9.3f} ms" for name, seconds in total.items()])
    print(f"{len(programs)} programs of Hologram; {total['hologram'] / total['inductor']:.2f} of inductor's time")


if __name__ == "__main__":
    main()
