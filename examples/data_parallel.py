"""Data-parallel training: ``torchrun --nproc-per-node 2 examples/data_parallel.py``, or ``python examples/data_parallel.py --simulate 4``.

A small network learns what another one computes. Each rank reads its own rows of every batch, and gradients are averaged. With ``--zero`` each rank
keeps the optimiser's state of its share of the parameters alone: gradients are reduced and scattered, the share is updated, and all shares gathered.
With ``--checkpoints FOLDER`` the training goes on from the last checkpoint there, on any number of ranks, as ``torchrun --max-restarts`` asks for.
"""

from __future__ import annotations

import argparse
import math
from typing import Any

import numpy as np

import hologram as hg
import hologram.numpy as hnp
from hologram.distributed import BatchSampler, Mesh, NamedSharding, PartitionSpec, checkpoint

P = PartitionSpec
SIZES = (16, 64, 64, 4)
ROWS, BATCH = 1000, 48  # of the dataset, of a step of all ranks together
ALIGNED = 48  # of how many the vector of all weights is a multiple: any of 1, 2, 3, 4, 6, 8, 12, 16, 24, 48 ranks divide it
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


def flat(weights: list[Any]) -> Any:
    """All weights in one vector, filled up so that it divides among ranks."""
    vector = hnp.concatenate([hnp.ravel(w) for w in weights])
    return hnp.pad(vector, (0, -vector.size % ALIGNED))


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
        share = hg.lax.psum_scatter(flat(gradient), "data", tiled=True) / ranks
        momentum = MOMENTUM * momentum + share
        own = flat(weights).reshape(ranks, -1)[hg.lax.axis_index("data")]
        weights = unflat(hg.lax.all_gather(own - RATE * momentum, "data", tiled=True))
        return weights, momentum, hg.lax.pmean(value, "data")

    return hg.jit(hg.shard_map(step, mesh, (P(), P("data"), P("data"), P("data")), (P(), P("data"), P())))


def begin(mesh: Mesh, zero: bool) -> dict[str, Any]:
    """The state of the training before its first step."""
    weights = [hnp.asarray(w) for w in start(np.random.default_rng(2))]
    zeros = hnp.zeros_like(flat(weights)) if zero else [hnp.zeros_like(w) for w in weights]
    return {"weights": weights, "momentum": hg.device_put(zeros, NamedSharding(mesh, P("data"))) if zero else zeros, "step": 0}


def train(steps: int, zero: bool, folder: str | None = None, every: int = 10) -> list[float]:
    """The loss before each step from the last checkpoint on: the same on every rank."""
    mesh = hg.make_mesh((hg.distributed.process_count(),), "data")
    x = np.random.default_rng(1).normal(size=(ROWS, SIZES[0])).astype(np.float32)
    y = np.asarray(hg.jit(predict)(start(np.random.default_rng(1)), x))
    batches = BatchSampler(ROWS, BATCH, NamedSharding(mesh, P("data")), seed=3)
    step = sharded_step(mesh) if zero else replicated_step(mesh)
    state, losses = begin(mesh, zero), []
    if folder is not None and checkpoint.latest(folder) is not None:
        state = checkpoint.restore(folder, state)
    for i in range(state["step"], steps):
        weights, momentum, value = step(state["weights"], state["momentum"], *batches.batch((x, y), i))
        state = {"weights": weights, "momentum": momentum, "step": i + 1}
        losses.append(float(value))
        if folder is not None and (i + 1) % every == 0:
            checkpoint.save(folder, state, i + 1, keep=2, background=True)
    checkpoint.wait()
    return losses


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--zero", action="store_true", help="divide the optimiser's state among ranks")
    parser.add_argument("--checkpoints", metavar="FOLDER", help="save to this folder, and go on from what it has")
    parser.add_argument("--simulate", type=int, metavar="RANKS", help="play so many ranks in one process")
    options = parser.parse_args()
    if options.simulate:
        losses = hg.distributed.simulate(options.simulate).run(train, options.steps, options.zero, options.checkpoints)[0]
    else:
        hg.distributed.initialize()
        losses = train(options.steps, options.zero, options.checkpoints)
    if hg.distributed.process_index() == 0:
        first = options.steps - len(losses)
        print("\n".join(f"step {first + i:4}  loss {losses[i]:.4f}" for i in range(0, len(losses), max(1, len(losses) // 10))))


if __name__ == "__main__":
    main()
