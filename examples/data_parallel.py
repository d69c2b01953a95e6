"""Data-parallel training: ``torchrun --nproc-per-node 2 examples/data_parallel.py``, or ``python examples/data_parallel.py --simulate 4``.

A small network learns what another one computes. Each rank draws its own part of every batch, and gradients are averaged. With ``--zero`` each rank
keeps the optimiser's state of its share of the parameters alone: gradients are reduced and scattered, the share is updated, and all shares gathered.
"""

from __future__ import annotations

import argparse
import math
from typing import Any

import numpy as np

import hologram as hg
import hologram.numpy as hnp
from hologram.distributed import Mesh, NamedSharding, PartitionSpec

P = PartitionSpec
SIZES = (16, 64, 64, 4)
BATCH = 64  # of all ranks together
RATE, MOMENTUM = 0.05, 0.9


def start(rng: np.random.Generator) -> list[np.ndarray]:
    """The weights of each layer."""
    return [rng.normal(0, 1 / math.sqrt(n), (n, m)).astype(np.float32) for n, m in zip(SIZES, SIZES[1:], strict=False)]


def predict(weights: list[Any], x: Any) -> Any:
    for w in weights[:-1]:
        x = hnp.tanh(x @ w)
    return x @ weights[-1]


def loss(weights: list[Any], x: Any, y: Any) -> Any:
    return hnp.mean((predict(weights, x) - y) ** 2)


def replicated_step(mesh: Mesh) -> Any:
    """``(weights, momentum, x, y)`` to ``(weights, momentum, loss)``; every rank has all of the momentum."""

    def step(weights: list[Any], momentum: list[Any], x: Any, y: Any) -> Any:
        value, gradient = hg.lax.pmean(hg.value_and_grad(loss)(weights, x, y), "data")
        momentum = hg.tree.map(lambda m, g: MOMENTUM * m + g, momentum, gradient)
        return hg.tree.map(lambda w, m: w - RATE * m, weights, momentum), momentum, value

    return hg.jit(hg.shard_map(step, mesh, (P(), P(), P("data"), P("data")), P()))


def flat(weights: list[Any], parts: int) -> Any:
    """All weights in one vector, filled up to a multiple of ``parts``."""
    vector = hnp.concatenate([hnp.ravel(w) for w in weights])
    return hnp.pad(vector, (0, -vector.size % parts))


def unflat(vector: Any) -> list[Any]:
    ends = np.cumsum([n * m for n, m in zip(SIZES, SIZES[1:], strict=False)])
    return [
        vector[end - n * m : end].reshape(n, m) for end, n, m in zip(map(int, ends), SIZES, SIZES[1:], strict=False)
    ]  # fmt: skip


def sharded_step(mesh: Mesh) -> Any:
    """As :func:`replicated_step`; the momentum is a vector that is divided among ranks."""
    ranks = mesh.shape["data"]

    def step(weights: list[Any], momentum: Any, x: Any, y: Any) -> Any:
        value, gradient = hg.value_and_grad(loss)(weights, x, y)
        share = hg.lax.psum_scatter(flat(gradient, ranks), "data", tiled=True) / ranks
        momentum = MOMENTUM * momentum + share
        own = flat(weights, ranks).reshape(ranks, -1)[hg.lax.axis_index("data")]
        weights = unflat(hg.lax.all_gather(own - RATE * momentum, "data", tiled=True))
        return weights, momentum, hg.lax.pmean(value, "data")

    return hg.jit(hg.shard_map(step, mesh, (P(), P("data"), P("data"), P("data")), (P(), P("data"), P())))


def train(steps: int, zero: bool) -> list[float]:
    """The loss before each step: the same on every rank."""
    ranks, rank = hg.distributed.process_count(), hg.distributed.process_index()
    mesh = hg.make_mesh((ranks,), "data")
    by_rank = NamedSharding(mesh, P("data"))
    teacher, weights = start(np.random.default_rng(1)), start(np.random.default_rng(2))
    step = sharded_step(mesh) if zero else replicated_step(mesh)
    momentum = hg.device_put(np.zeros_like(flat(weights, ranks)), by_rank) if zero else [np.zeros_like(w) for w in weights]
    losses = []
    for i in range(steps):
        share = slice(rank * (BATCH // ranks), (rank + 1) * (BATCH // ranks))
        x = np.random.default_rng(i).normal(size=(BATCH, SIZES[0])).astype(np.float32)[share]
        batch = [hg.make_array_from_process_local_data(by_rank, a) for a in (x, np.asarray(predict(teacher, x)))]
        weights, momentum, value = step(weights, momentum, *batch)
        losses.append(float(value))
    return losses


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--zero", action="store_true", help="divide the optimiser's state among ranks")
    parser.add_argument("--simulate", type=int, metavar="RANKS", help="play so many ranks in one process")
    options = parser.parse_args()
    if options.simulate:
        losses = hg.distributed.simulate(options.simulate).run(train, options.steps, options.zero)[0]
    else:
        hg.distributed.initialize()
        losses = train(options.steps, options.zero)
    if hg.distributed.process_index() == 0:
        print("\n".join(f"step {i:4}  loss {losses[i]:.4f}" for i in range(0, len(losses), max(1, len(losses) // 10))))


if __name__ == "__main__":
    main()
