"""A PyTorch training loop whose layers, loss and features are Hologram's: ``python examples/torch_training_loop.py``.

A perceptron learns to tell two interleaved spirals apart. The loop is PyTorch's: modules, autograd, an optimiser. The points' features are a function
written in Hologram and wrapped for torch; the layers of the model are swapped for Hologram's in place. The same model in plain PyTorch takes
the same steps beside it.
"""

from __future__ import annotations

import argparse
import copy
import math
from typing import Any, NamedTuple

import torch

import hologram.numpy as hnp
import hologram_torch as ht


class Run(NamedTuple):
    """Losses by step, and the share of points that the trained model tells right."""

    losses: list[float]
    right: float


def spirals(points: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Points (n, 2) on two spirals, with some noise, and which spiral each is on (n,)."""
    turns = torch.sqrt(torch.rand(points)) * 3 * math.pi
    label = torch.randint(0, 2, (points,))
    angle = turns + math.pi * label
    xy = torch.stack([angle.cos(), angle.sin()], 1) * turns[:, None] / (3 * math.pi)
    return xy + 0.01 * torch.randn(points, 2), label


@ht.wrap
def waves(points: Any, frequencies: Any) -> Any:
    """Random Fourier features (Rahimi and Recht 2007): (n, 2) points and (2, k) frequencies give (n, 2k) sines and cosines."""
    phases = points @ frequencies
    return hnp.concatenate([hnp.sin(phases), hnp.cos(phases)], axis=1)


def torch_waves(points: torch.Tensor, frequencies: torch.Tensor) -> torch.Tensor:
    """As :func:`waves`, by torch."""
    phases = points @ frequencies
    return torch.cat([phases.sin(), phases.cos()], 1)


class Spirals(torch.nn.Module):
    """Learnt frequencies, then a perceptron. ``features`` is :func:`waves` or its twin."""

    def __init__(self, features: Any, width: int = 64) -> None:
        super().__init__()
        self.features = features
        self.frequencies = torch.nn.Parameter(3 * torch.randn(2, width))
        self.layers = torch.nn.Sequential(torch.nn.Linear(2 * width, width), torch.nn.GELU(), torch.nn.LayerNorm(width), torch.nn.Linear(width, 2))

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.layers(self.features(points, self.frequencies))
        return found


def train(model: torch.nn.Module, loss: torch.nn.Module, data: tuple[torch.Tensor, torch.Tensor], steps: int) -> Run:
    points, label = data
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        found = loss(model(points), label)
        found.backward()
        optimizer.step()
        losses.append(found.item())
    with torch.no_grad():
        right = (model(points).argmax(1) == label).float().mean().item()
    return Run(losses, right)


def run(steps: int = 200, points: int = 1000, seed: int = 0) -> dict[str, Run]:
    """Trains the model of Hologram's layers and its twin in plain PyTorch from the same start."""
    torch.manual_seed(seed)
    data = spirals(points)
    plain = Spirals(torch_waves)
    model = copy.deepcopy(plain)
    model.features = waves
    report = ht.convert(model)
    print(report)
    return {
        "hologram": train(model, ht.nn.CrossEntropyLoss(), data, steps),
        "torch": train(plain, torch.nn.CrossEntropyLoss(), data, steps),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="A PyTorch training loop whose layers, loss and features are Hologram's.")
    parser.add_argument("--steps", type=int, default=200)
    found = run(parser.parse_args().steps)
    for name, (losses, right) in found.items():
        print(f"{name:9} loss {losses[0]:.4f} -> {losses[-1]:.4f}, {right:.1%} of the points right")


if __name__ == "__main__":
    main()
