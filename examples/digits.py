"""Learns handwritten digits: ``python examples/digits.py``.

A multilayer perceptron on scikit-learn's 1,797 pictures of 8 x 8 pixels, one in five kept for the test. Loss, gradient and the step of Adam
are one native call. Writes out/digits.png: the loss, and the digits that were misread.
"""

from __future__ import annotations

import argparse
import math
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import hologram as hg
import hologram.numpy as hnp
from hologram import nn

SIZES = (64, 128, 64, 10)
BATCH = 64


class Data(NamedTuple):
    """Pictures, float32 (n, 64) in 0..1, and labels, int64 (n,)."""

    pictures: np.ndarray
    labels: np.ndarray


def load(rng: np.random.Generator) -> tuple[Data, Data]:
    """What to learn from, and what to test with."""
    from sklearn.datasets import load_digits

    pictures, labels = load_digits(return_X_y=True)
    order = rng.permutation(len(labels))
    pictures, labels = (pictures[order] / 16).astype(np.float32), labels[order].astype(np.int64)
    part = len(labels) // 5
    return Data(pictures[part:], labels[part:]), Data(pictures[:part], labels[:part])


def start(rng: np.random.Generator) -> list[dict[str, Any]]:
    """A layer each: weights of variance 2 / inputs (He et al. 2015), and no bias."""
    return [
        {"weight": rng.normal(0, np.sqrt(2 / n), (n, m)).astype(np.float32), "bias": np.zeros(m, np.float32)}
        for n, m in zip(SIZES, SIZES[1:], strict=False)
    ]


def logits(layers: list[dict[str, Any]], x: Any) -> Any:
    *hidden, last = layers
    for layer in hidden:
        x = nn.relu(x @ layer["weight"] + layer["bias"])
    return x @ last["weight"] + last["bias"]


def loss(layers: list[dict[str, Any]], x: Any, y: Any) -> Any:
    return nn.cross_entropy(logits(layers, x), y)


@hg.jit
def adam(state: tuple[Any, Any, Any], count: Any, x: Any, y: Any, rate: Any = 2e-3) -> tuple[tuple[Any, Any, Any], Any]:
    """One step (Kingma and Ba 2015) from ``state``, the layers with the running means of gradients and of their squares; the loss before it."""
    layers, mean, square = state
    value, gradient = hg.value_and_grad(loss)(layers, x, y)
    mean = hg.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, gradient)
    square = hg.tree.map(lambda s, g: 0.999 * s + 0.001 * g * g, square, gradient)
    mean_weight, square_weight = 1 - 0.9**count, 1 - 0.999**count
    layers = hg.tree.map(lambda p, m, s: p - rate * (m / mean_weight) / (hnp.sqrt(s / square_weight) + 1e-8), layers, mean, square)
    return (layers, mean, square), value


@hg.jit
def read(layers: list[dict[str, Any]], x: Any) -> Any:
    """The digit that each picture is taken for."""
    return hnp.argmax(logits(layers, x), axis=1)


def train(data: Data, epochs: int, rng: np.random.Generator) -> tuple[list[dict[str, Any]], list[float]]:
    """The layers after ``epochs`` times through ``data`` in batches, and the mean loss of each epoch."""
    from rich.progress import track

    layers = start(rng)
    zeros = hg.tree.map(np.zeros_like, layers)
    state, count, losses = (layers, zeros, zeros), 0, []
    for _ in track(range(epochs), description="learning"):
        order = rng.permutation(len(data.labels))
        values = []
        for i in range(0, len(order) - BATCH + 1, BATCH):
            batch, count = order[i : i + BATCH], count + 1
            state, value = adam(state, np.float32(count), data.pictures[batch], data.labels[batch])
            values.append(value)
        losses.append(float(np.mean([float(v) for v in values])))
    return state[0], losses


def accuracy(layers: list[dict[str, Any]], data: Data) -> float:
    return float(np.mean(np.asarray(read(layers, data.pictures)) == data.labels))


def draw(losses: list[float], layers: list[dict[str, Any]], test: Data, path: Path, most: int = 12) -> None:
    """The loss on the left, up to ``most`` misread digits on the right: what each is taken for, and what it is."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    taken = np.asarray(read(layers, test.pictures))
    misread = np.flatnonzero(taken != test.labels)
    figure = plt.figure(figsize=(12, 5), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(1, 1.1))
    axis = left.subplots()
    axis.semilogy(np.arange(1, len(losses) + 1), losses)
    axis.set(title="mean loss of each epoch", xlabel="epoch", ylabel="cross entropy")
    axis.grid(alpha=0.3)
    right.suptitle(f"{len(misread)} of {len(taken)} misread")
    columns = max(1, math.ceil(math.sqrt(min(len(misread), most))))
    for place, i in enumerate(misread[:most]):
        axis = right.add_subplot(math.ceil(min(len(misread), most) / columns), columns, place + 1)
        axis.set_axis_off()
        axis.imshow(test.pictures[i].reshape(8, 8), cmap="gray_r")
        axis.set_title(f"read {taken[i]}, is {test.labels[i]}", fontsize=10)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=Path("out/digits.png"))
    options = parser.parse_args()
    if not all(map(find_spec, ("matplotlib", "sklearn"))):
        parser.exit(1, "this example needs matplotlib and scikit-learn: pip install '.[demo]'\n")

    rng = np.random.default_rng(options.seed)
    learn, test = load(rng)
    layers, losses = train(learn, options.epochs, rng)
    print(f"loss {losses[0]:.3f} after the first epoch, {losses[-1]:.5f} after the last")
    print(f"read right: {accuracy(layers, learn):.2%} of what was learnt from, {accuracy(layers, test):.2%} of the test")
    draw(losses, layers, test, options.output)
    print(f"wrote {options.output}")


if __name__ == "__main__":
    main()
