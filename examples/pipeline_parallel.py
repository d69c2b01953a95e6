"""A pipeline of stages: ``torchrun --nproc-per-node 2 examples/pipeline_parallel.py``, or with ``--simulate 2``.

Each rank has some layers of a network. A batch goes through in microbatches (Huang et al. 2019): at each tick a rank computes its layers for one of
them and hands the result on, so that all ranks work at once but for the first and last ticks. The derivative goes through the same way back.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import hologram as hg
import hologram.numpy as hnp
from hologram.distributed import Mesh, NamedSharding, PartitionSpec

P = PartitionSpec
WIDTH, LAYERS = 24, 4
MICROBATCHES, ROWS = 4, 8
RATE = 0.2


def start(seed: int) -> np.ndarray:
    """The weights of all layers."""
    return (np.random.default_rng(seed).normal(size=(LAYERS, WIDTH, WIDTH)) / WIDTH**0.5).astype(np.float32)


def layers(weights: Any, x: Any) -> Any:
    for w in weights:
        x = x + hnp.tanh(x @ w)
    return x


def pipeline(weights: Any, microbatches: Any) -> Any:
    """All microbatches (number, rows, width) through all stages; ``weights`` are this rank's. The result is the same on every rank."""
    stages, stage = hg.lax.axis_size("stage"), hg.lax.axis_index("stage")
    onward = [(i, i + 1) for i in range(stages - 1)]
    handed, results = hnp.zeros_like(microbatches[0]), []
    for tick in range(len(microbatches) + stages - 1):
        fresh = microbatches[min(tick, len(microbatches) - 1)]
        result = layers(weights, hnp.where(stage == 0, fresh, handed))
        handed = hg.lax.ppermute(result, "stage", onward)
        if tick >= stages - 1:
            results.append(result)
    is_last = stage == stages - 1
    return hg.lax.psum(hnp.where(is_last, hnp.stack(results), 0.0), "stage")


def training_step(mesh: Mesh) -> Any:
    """``(weights, x, y)`` to ``(weights, loss)``."""
    run = hg.shard_map(pipeline, mesh, (P("stage"), P()), P())

    def loss(weights: Any, x: Any, y: Any) -> Any:
        return hnp.mean((run(weights, x) - y) ** 2)

    def step(weights: Any, x: Any, y: Any) -> Any:
        value, gradient = hg.value_and_grad(loss)(weights, x, y)
        return hg.tree.map(lambda w, g: w - RATE * g, weights, gradient), value

    return hg.jit(step)


def train(steps: int) -> list[float]:
    """The loss before each step: the same on every rank."""
    mesh = hg.make_mesh((hg.distributed.process_count(),), "stage")
    weights = hg.device_put(start(0), NamedSharding(mesh, P("stage")))
    x = np.random.default_rng(1).normal(size=(MICROBATCHES, ROWS, WIDTH)).astype(np.float32)
    y = np.asarray(layers(hnp.asarray(start(2)), x))
    step, losses = training_step(mesh), []
    for _ in range(steps):
        weights, value = step(weights, x, y)
        losses.append(float(value))
    return losses


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--simulate", type=int, metavar="RANKS", help="play so many ranks in one process")
    options = parser.parse_args()
    if options.simulate:
        losses = hg.distributed.simulate(options.simulate).run(train, options.steps)[0]
    else:
        hg.distributed.initialize()
        losses = train(options.steps)
    if hg.distributed.process_index() == 0:
        print("\n".join(f"step {i:4}  loss {losses[i]:.4f}" for i in range(0, len(losses), max(1, len(losses) // 10))))


if __name__ == "__main__":
    main()
