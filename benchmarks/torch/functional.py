"""Functions of torch's tensors by Hologram beside torch's own: ``python -m benchmarks.torch.functional [--rounds N] [--quick]``.

- operations on 8, 1K, 10K, 100K, 1M and 10M float32 without gradients;
- the same forward and backward;
- conversions between torch and Hologram, with a copy and without;
- pipelines: torch alone, torch with some steps by Hologram, all of it in one function of Hologram.

Both run in one process on as many threads, and take turns; a figure is the median over rounds, in microseconds a call.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

import hologram as hg
import hologram.numpy as hnp
import hologram_torch as ht
from hologram import nn
from hologram_torch import functional as F

T = torch.nn.functional
Call = Callable[[], Any]
# seconds: of a pause before each turn (the threads of whoever had the last one spin for a while before they sleep), of calls before it counts, of it
PAUSE, WARM, TURN = 0.01, 0.004, 0.02
SIZES = (8, 1_000, 10_000, 100_000, 1_000_000, 10_000_000)
GELU_TANH = "gelu tanh"
OPERATIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any], int]] = {
    "add": (F.add, torch.add, 2),
    "sub": (F.sub, torch.sub, 2),
    "mul": (F.mul, torch.mul, 2),
    "div": (F.div, torch.div, 2),
    "relu": (F.relu, torch.relu, 1),
    "sigmoid": (F.sigmoid, torch.sigmoid, 1),
    "tanh": (F.tanh, torch.tanh, 1),
    "gelu": (F.gelu, T.gelu, 1),
    GELU_TANH: (partial(F.gelu, approximate="tanh"), partial(T.gelu, approximate="tanh"), 1),
}


def measured(calls: dict[str, Call], rounds: int) -> dict[str, float]:
    """Microseconds of each call, which take turns: medians over rounds of the mean over a turn."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            time.sleep(PAUSE)
            count = max(1, calls_within(call, WARM) * round(TURN / WARM))
            start = time.perf_counter()
            for _ in range(count):
                call()
            times[name].append((time.perf_counter() - start) / count * 1e6)
    return {name: statistics.median(found) for name, found in times.items()}


def calls_within(call: Call, seconds: float) -> int:
    """How many calls of those begun within ``seconds`` end in them, the first, which wakes threads, not counted."""
    call()
    count, end = 0, time.perf_counter() + seconds
    while time.perf_counter() < end:
        call()
        count += 1
    return count


def report(title: str, calls: dict[str, Call], rounds: int) -> None:
    """Prints one line: the calls' times, and each as a part of the first's."""
    found = measured(calls, rounds)
    first = next(iter(found.values()))
    print(f"{title:34}" + "".join(f"  {name} {t:10.2f} ({t / first:5.2f})" for name, t in found.items()), flush=True)


def operations(sizes: tuple[int, ...], rounds: int) -> None:
    for name, (ours, theirs, arity) in OPERATIONS.items():
        for n in sizes:
            arguments = [torch.randn(n) for _ in range(arity)]
            report(f"{name} {n}", {"torch": partial(theirs, *arguments), "hologram": partial(ours, *arguments)}, rounds)


def gradient(f: Callable[..., Any], arguments: list[torch.Tensor], weights: torch.Tensor) -> Any:
    return torch.autograd.grad(f(*arguments), arguments, weights)


def gradients(sizes: tuple[int, ...], rounds: int) -> None:
    for name in ("mul", "gelu", GELU_TANH):
        ours, theirs, arity = OPERATIONS[name]
        for n in sizes:
            arguments = [torch.randn(n, requires_grad=True) for _ in range(arity)]
            calls = {k: partial(gradient, f, arguments, torch.randn(n)) for k, f in (("torch", theirs), ("hologram", ours))}
            report(f"{name} {n} and gradient", calls, rounds)


def conversions(sizes: tuple[int, ...], rounds: int) -> None:
    for n in sizes:
        x = torch.randn(n)
        t = hg.tensor(x.numpy())
        report(f"to hologram {n}", {"copied": partial(ht.from_torch, x, copy=True), "borrowed": partial(hg.from_dlpack, x)}, rounds)
        report(f"to torch {n}", {"copied": partial(ht.to_torch, t, copy=True), "shared": partial(ht.to_torch, t)}, rounds)


def eager(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    y = T.layer_norm(T.gelu(T.linear(x, w, b), approximate="tanh"), b.shape)
    return torch.sum(torch.softmax(y, -1) ** 2)


def hybrid(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """As :func:`eager`, with two of the steps by Hologram."""
    y = T.layer_norm(F.gelu(T.linear(x, w, b), "tanh"), b.shape)
    return torch.sum(F.softmax(y, -1) ** 2)


@ht.wrap
def whole(x: Any, w: Any, b: Any) -> Any:
    """As :func:`eager`, as one function of Hologram."""
    return hnp.sum(nn.softmax(nn.layer_norm(nn.gelu(x @ w.T + b))) ** 2)


def pipelines(rounds: int) -> None:
    for rows, width in ((32, 256), (512, 512)):
        arguments = [torch.randn(rows, width, requires_grad=True), torch.randn(width, width) / width**0.5, torch.zeros(width)]
        calls: dict[str, Call] = {"torch": partial(eager, *arguments), "hybrid": partial(hybrid, *arguments), "hologram": partial(whole, *arguments)}
        with torch.no_grad():
            report(f"pipeline {rows}x{width}", calls, rounds)
        both: dict[str, Call] = {
            name: partial(gradient_of_first, f, arguments) for name, f in (("torch", eager), ("hybrid", hybrid), ("hologram", whole))
        }
        report(f"pipeline {rows}x{width} and gradient", both, rounds)


def gradient_of_first(f: Callable[..., Any], arguments: list[torch.Tensor]) -> Any:
    return torch.autograd.grad(f(*arguments), arguments[0])


def main() -> None:
    parser = argparse.ArgumentParser(description="Functions of torch's tensors by Hologram beside torch's own.")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--quick", action="store_true", help="8, 10K and 1M elements only")
    parser.add_argument("--only", choices=("operations", "gradients", "conversions", "pipelines"))
    options = parser.parse_args()
    sizes = (8, 10_000, 1_000_000) if options.quick else SIZES
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads; microseconds a call, in parentheses parts of the first")
    parts: dict[str, Call] = {
        "operations": lambda: operations(sizes, options.rounds),
        "gradients": lambda: gradients(sizes, options.rounds),
        "conversions": lambda: conversions(sizes, options.rounds),
        "pipelines": lambda: pipelines(options.rounds),
    }
    for name, run in parts.items():
        if options.only in (None, name):
            run()


if __name__ == "__main__":
    main()
