"""An encoder layer whose length varies: ``python -m benchmarks.torch.sizes [--rounds N] [--threads N]``.

512 wide with 8 heads, compiled with ``dynamic=True``, at lengths from 1 to 1,024 in an order that is not sorted. Eager mode, inductor and Hologram
take turns in one process: the best time of each length, their sum, and how many graphs Dynamo and how many programs Hologram made.
"""

from __future__ import annotations

import random
import time
from typing import Any

import torch
from torch import nn

from benchmarks.torch.compile import Block
from benchmarks.torch.options import rounds_and_threads
from hologram_torch.compile.backend import make_backend

WIDTH, HEADS = 512, 8
LENGTHS = (1, 2, 7, 16, 64, 130, 200, 276, 512, 921, 1024)


class Encoder(Block):
    def __init__(self) -> None:
        super().__init__(WIDTH, HEADS)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.projected(x)
        return self.after_attention(x, nn.functional.scaled_dot_product_attention(q, k, v))


def main() -> None:
    options = rounds_and_threads(__doc__, 10)
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
