"""Models whose weights are constants: ``python -m benchmarks.inference [--rounds N] [--no-inductor]``.

Hologram with the weights as arguments of each call and with the weights closed over, which it then holds in the order in which its loops read them;
torch in inference mode, and torch.compile with inductor's freezing, which does the like. Weights are laid out as torch.nn.Linear's. All run in one
process on as many threads and take turns, after a pause in which the threads of the one before fall asleep; a figure is the median over rounds.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

import hologram as hg
import hologram.numpy as hnp
from hologram import nn

PAUSE_S, ROUND_S = 0.25, 0.1
WIDTHS = (256, 512, 512, 64)
LENGTH, WIDTH, HEADS = 64, 256, 4
FRAMEWORKS = ("arguments", "held", "torch", "frozen")

Arrays = list[Any]
Model = Callable[[Any, Arrays], Any]


def _mlp(x: Any, weights: Arrays) -> Any:
    for i, (w, b) in enumerate(zip(weights[::2], weights[1::2], strict=True)):
        x = x @ w.T + b
        x = nn.relu(x) if 2 * i + 2 < len(weights) else x
    return x


def _torch_mlp(x: Any, weights: Arrays) -> Any:
    for i, (w, b) in enumerate(zip(weights[::2], weights[1::2], strict=True)):
        x = F.linear(x, w, b)
        x = F.relu(x) if 2 * i + 2 < len(weights) else x
    return x


def _convolution(x: Any, weights: Arrays) -> Any:
    w, scale, shift, mean, variance = weights
    y = nn.conv2d(x, w, padding=1)
    each = (slice(None), None, None)
    return nn.relu((y - mean[each]) * (scale / hnp.sqrt(variance + 1e-5))[each] + shift[each])


def _torch_convolution(x: Any, weights: Arrays) -> Any:
    w, scale, shift, mean, variance = weights
    return F.relu(F.batch_norm(F.conv2d(x, w, padding=1), mean, variance, scale, shift))


def _block(x: Any, weights: Arrays) -> Any:
    def heads(w: Any) -> Any:
        return (x @ w.T).reshape(-1, LENGTH, HEADS, WIDTH // HEADS).transpose(0, 2, 1, 3)

    q, k, v = map(heads, weights[:3])
    seen = nn.softmax(q @ k.transpose(0, 1, 3, 2) * (WIDTH // HEADS) ** -0.5, axis=-1) @ v
    x = x + seen.transpose(0, 2, 1, 3).reshape(x.shape) @ weights[3].T
    return x + nn.gelu(x @ weights[4].T) @ weights[5].T


def _torch_block(x: Any, weights: Arrays) -> Any:
    q, k, v = (F.linear(x, w).reshape(-1, LENGTH, HEADS, WIDTH // HEADS).transpose(1, 2) for w in weights[:3])
    x = x + F.linear(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(x.shape), weights[3])
    return x + F.linear(F.gelu(F.linear(x, weights[4])), weights[5])


def _shapes(width: int) -> list[tuple[int, ...]]:
    return [(width, width, 3, 3), *[(width,)] * 4]


MLP = [shape for a, b in zip(WIDTHS, WIDTHS[1:], strict=False) for shape in ((b, a), (b,))]
BLOCK = [*[(WIDTH, WIDTH)] * 4, (4 * WIDTH, WIDTH), (WIDTH, 4 * WIDTH)]
CASES: dict[str, tuple[Model, Model, list[tuple[int, ...]], tuple[int, ...]]] = {
    **{f"MLP {'-'.join(map(str, WIDTHS))}, batch {n}": (_mlp, _torch_mlp, MLP, (n, WIDTHS[0])) for n in (1, 8, 32, 128)},
    "3x3 convolution, norm, ReLU 1x64x56x56": (_convolution, _torch_convolution, _shapes(64), (1, 64, 56, 56)),
    "the same, 1x256x14x14": (_convolution, _torch_convolution, _shapes(256), (1, 256, 14, 14)),
    f"attention block 1x{LENGTH}x{WIDTH}": (_block, _torch_block, BLOCK, (1, LENGTH, WIDTH)),
}


def calls(case: str, frameworks: tuple[str, ...]) -> dict[str, Callable[[], Any]]:
    """What each framework calls, results compared."""
    of_hologram, of_torch, shapes, shape = CASES[case]
    rng = np.random.default_rng(0)
    arrays = [np.abs(rng.standard_normal(s) / 16).astype(np.float32) for s in shapes]
    arrays = [a * rng.choice(np.float32([-1, 1]), a.shape) if a.ndim > 1 else a + np.float32(0.5) for a in arrays]
    x = rng.standard_normal(shape).astype(np.float32)
    ours, theirs = [hg.tensor(a) for a in arrays], [torch.from_numpy(a) for a in arrays]
    given, of_x = torch.from_numpy(x), hg.tensor(x)
    with_arguments, held = hg.jit(of_hologram), hg.jit(lambda x: of_hologram(x, ours))
    module = _Frozen(of_torch, theirs).eval()
    made = {"arguments": lambda: with_arguments(of_x, ours), "held": lambda: held(of_x), "torch": lambda: module(given)}
    if "frozen" in frameworks:
        compiled = torch.compile(module)
        made["frozen"] = lambda: compiled(given)
    want = made["torch"]().numpy()
    for name, call in made.items():
        np.testing.assert_allclose(np.asarray(call()), want, rtol=1e-3, atol=1e-3, err_msg=f"{case}: {name}")
    return made


class _Frozen(torch.nn.Module):
    def __init__(self, model: Model, weights: Arrays) -> None:
        super().__init__()
        self.model, self.weights = model, torch.nn.ParameterList([torch.nn.Parameter(w, requires_grad=False) for w in weights])

    def forward(self, x: Any) -> Any:
        return self.model(x, list(self.weights))


def microseconds(call: Callable[[], Any]) -> float:
    """One round: the mean of as many calls as fill it, after a pause and calls that warm up."""
    time.sleep(PAUSE_S)
    start = time.perf_counter()
    for _ in range(3):
        call()
    count = max(1, int(ROUND_S * 3 / (time.perf_counter() - start)))
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--no-inductor", action="store_true")
    options = parser.parse_args()
    frameworks = FRAMEWORKS[:-1] if options.no_inductor else FRAMEWORKS
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    torch._inductor.config.freezing = not options.no_inductor
    print(f"| case | {' | '.join(frameworks)} | held / the best peer |\n|---|{'---:|' * (len(frameworks) + 1)}")
    with torch.inference_mode(options.no_inductor), torch.no_grad():
        for case in CASES:
            made = calls(case, frameworks)
            rounds = [{name: microseconds(made[name]) for name in frameworks} for _ in range(options.rounds)]
            found = {name: statistics.median(r[name] for r in rounds) for name in frameworks}
            ratio = found["held"] / min(found[name] for name in frameworks[2:])
            print(f"| {case} | {' | '.join(f'{found[n]:,.1f}' for n in frameworks)} | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()
