"""Learns handwritten digits in PyTorch, compiled by Hologram: ``python examples/torch_digits.py``.

A small convolutional network on scikit-learn's 1,797 pictures of 8 x 8 pixels, one in five kept for the test. The same model is trained from the
same start in eager mode, with torch.compile's default backend where there is a C++ compiler, and with Hologram; the table says what each
learned, and what it took.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import nn

import hologram_torch

BATCH = 96


class Data(NamedTuple):
    """Pictures, float32 (n, 1, 8, 8) in 0..1, and labels, int64 (n,)."""

    pictures: torch.Tensor
    labels: torch.Tensor


class Outcome(NamedTuple):
    """The share of the test's digits that were read right, seconds of the first step, and the median of the others in µs."""

    accuracy: float
    first_step: float
    step: float


def load() -> tuple[Data, Data]:
    """What to learn from, and what to test with."""
    from sklearn.datasets import load_digits

    pictures, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    x = torch.from_numpy((pictures[order] / 16).astype(np.float32)).reshape(-1, 1, 8, 8)
    y = torch.from_numpy(labels[order].astype(np.int64))
    part = len(y) // 5
    return Data(x[part:], y[part:]), Data(x[:part], y[:part])


def network() -> nn.Module:
    """Two convolutions and a perceptron; the same weights at each call."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(),
        nn.Linear(512, 64), nn.GELU(), nn.Linear(64, 10),
    )  # fmt: skip


def backends() -> list[str]:
    """What the model is trained with: inductor only where there is a C++ compiler."""
    return ["eager", *(["inductor"] if shutil.which("g++") or shutil.which("clang++") else []), "hologram"]


def train(backend: str, learn: Data, test: Data, epochs: int) -> Outcome:
    model = network()
    loss: Callable[..., torch.Tensor] = lambda x, y: nn.functional.cross_entropy(model(x), y)  # noqa: E731
    if backend != "eager":
        loss = torch.compile(loss, backend=hologram_torch.backend if backend == "hologram" else backend)
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    times = []
    for _ in range(epochs):
        for batch in torch.randperm(len(learn.labels))[: len(learn.labels) // BATCH * BATCH].split(BATCH):
            start = time.perf_counter()
            optimiser.zero_grad()
            loss(learn.pictures[batch], learn.labels[batch]).backward()
            optimiser.step()
            times.append(time.perf_counter() - start)
    with torch.no_grad():
        accuracy = (model(test.pictures).argmax(1) == test.labels).float().mean().item()
    return Outcome(accuracy, times[0], statistics.median(times[1:]) * 1e6)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=10)
    options = parser.parse_args()
    learn, test = load()
    print(f"{'':10}{'read right':>12}{'first step, s':>16}{'step, µs':>12}")
    for backend in backends():
        found = train(backend, learn, test, options.epochs)
        print(f"{backend:10}{found.accuracy:>12.1%}{found.first_step:>16.2f}{found.step:>12,.0f}", flush=True)


if __name__ == "__main__":
    main()
