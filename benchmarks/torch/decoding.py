"""One token of a transformer with a static cache, in PyTorch: ``python -m benchmarks.torch.decoding [--rounds N] [--threads N]``.

Eight layers of 512 with 8 heads; keys and values of 2,048 positions are written by ``index_copy_``, as the static caches of model libraries do, and
attention reads all of them under a mask. Eager mode, inductor and Hologram take turns in one process: median and best over rounds. The floor is the
best time of reading the weights and the caches once, at the speed at which this process sums a larger array.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

import hologram_torch
from benchmarks.torch.compile import Block, compiled
from benchmarks.torch.options import rounds_and_threads

LAYERS, WIDTH, HEADS, POSITIONS = 8, 512, 8, 2048
READ_BYTES = 512 << 20  # of the array whose sum tells the memory's speed


class CachedBlock(Block):
    """A transformer block that takes one token, at ``position``, an int64 tensor of one element."""

    def __init__(self) -> None:
        super().__init__(WIDTH, HEADS)
        shape = 1, HEADS, POSITIONS, WIDTH // HEADS
        self.register_buffer("keys", torch.zeros(shape))
        self.register_buffer("values", torch.zeros(shape))

    def forward(self, x: torch.Tensor, position: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        q, k, v = self.projected(x)
        self.keys.index_copy_(2, position, k)
        self.values.index_copy_(2, position, v)
        return self.after_attention(x, nn.functional.scaled_dot_product_attention(q, self.keys, self.values, attn_mask=mask))


class Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(CachedBlock() for _ in range(LAYERS))

    def forward(self, x: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        mask = torch.arange(POSITIONS) <= position
        for block in self.blocks:
            x = block(x, position, mask[None, None, None])
        return x


def reading_seconds(nbytes: int) -> float:
    """The time of reading so many bytes of memory."""
    array = torch.ones(READ_BYTES // 4)
    array.sum()
    return min(_timed(array.sum) for _ in range(5)) * nbytes / READ_BYTES


def _timed(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def copies_of_caches(model: Decoder, x: torch.Tensor, position: torch.Tensor) -> int:
    """How often PyTorch assigns a whole cache in the graph that Hologram compiles."""
    with torch.no_grad():
        return hologram_torch.explain(model)(x, position).fallbacks["aten.copy_.default"]


def main() -> None:
    options = rounds_and_threads(__doc__, 30)
    model, x = Decoder(), torch.randn(1, 1, WIDTH)
    copies = copies_of_caches(model, x, torch.tensor([0]))
    steps = {name: compiled(model, name) for name in ("eager", "inductor", "hologram")}
    first, times = {}, {name: [] for name in steps}
    with torch.no_grad():
        for name, step in steps.items():
            first[name] = _timed(lambda step=step: step(x, torch.tensor([0])))
        for i in range(options.rounds):
            for name, step in steps.items():
                position = torch.tensor([(POSITIONS - options.rounds + i) % POSITIONS])
                times[name].append(_timed(lambda step=step, position=position: step(x, position)))
    weights, caches = (sum(t.nbytes for t in tensors) for tensors in (model.parameters(), model.buffers()))
    print(f"{options.threads} threads; weights {weights / 1e6:.1f} MB, caches {caches / 1e6:.1f} MB; {copies} copies of caches by PyTorch")
    floor = reading_seconds(weights + caches)
    print(f"reading both: {floor * 1e3:.2f} ms")
    for name, seconds in times.items():
        median = statistics.median(seconds)
        best = min(seconds)
        print(f"{name:9} {median * 1e3:8.2f} ms a token, at best {best * 1e3:.2f}, {best / floor:.2f} of reading; first call {first[name]:.2f} s")


if __name__ == "__main__":
    main()
