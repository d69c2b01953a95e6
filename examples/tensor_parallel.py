"""A tensor-parallel transformer block: ``torchrun --nproc-per-node 2 examples/tensor_parallel.py``, or with ``--simulate 4``.

Each rank has some of the heads of attention and some of the hidden units of the network behind it (Shoeybi et al. 2019). The first matrix of each
half is divided by its columns and the second by its rows, so that each half ends with one sum over ranks; its derivative begins with another.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import hologram as hg
import hologram.numpy as hnp
from hologram import nn
from hologram.distributed import Mesh, NamedSharding, PartitionSpec

P = PartitionSpec
WIDTH, HEADS, HIDDEN = 32, 4, 128
BATCH, LENGTH = 4, 16
RATE = 0.1

SPECS = {
    "norm 1": P(),
    "query key value": P(None, None, "model"),  # (width, 3, heads, width of a head): a rank has some heads
    "out": P("model"),  # (heads, width of a head, width)
    "norm 2": P(),
    "up": P(None, "model"),  # (width, hidden): a rank has some hidden units
    "down": P("model"),  # (hidden, width)
}


def start(seed: int) -> dict[str, np.ndarray]:
    rng, head = np.random.default_rng(seed), WIDTH // HEADS
    shapes = {"query key value": (WIDTH, 3, HEADS, head), "out": (HEADS, head, WIDTH), "up": (WIDTH, HIDDEN), "down": (HIDDEN, WIDTH)}
    fan_in = {"query key value": WIDTH, "out": WIDTH, "up": WIDTH, "down": HIDDEN}
    weights = {name: (rng.normal(size=shape) / fan_in[name] ** 0.5).astype(np.float32) for name, shape in shapes.items()}
    return weights | {"norm 1": np.ones(WIDTH, np.float32), "norm 2": np.ones(WIDTH, np.float32)}


def block(w: dict[str, Any], x: Any) -> Any:
    """``x`` is (batch, length, width), the same on every rank; ``w`` are this rank's parts of the weights."""
    seen = nn.layer_norm(x, w["norm 1"])
    q, k, v = (hnp.einsum("blw,whd->bhld", seen, w["query key value"][:, i]) for i in range(3))
    attended = nn.dot_product_attention(q, k, v, is_causal=True)
    x = x + hg.lax.psum(hnp.einsum("bhld,hdw->blw", attended, w["out"]), "model")
    hidden = nn.gelu(nn.layer_norm(x, w["norm 2"]) @ w["up"])
    return x + hg.lax.psum(hidden @ w["down"], "model")


def training_step(mesh: Mesh) -> Any:
    """``(weights, x, y)`` to ``(weights, loss)``."""
    run = hg.shard_map(block, mesh, (SPECS, P()), P())

    def loss(weights: dict[str, Any], x: Any, y: Any) -> Any:
        return hnp.mean((run(weights, x) - y) ** 2)

    def step(weights: dict[str, Any], x: Any, y: Any) -> Any:
        value, gradient = hg.value_and_grad(loss)(weights, x, y)
        return hg.tree.map(lambda w, g: w - RATE * g, weights, gradient), value

    return hg.jit(step)


def train(steps: int) -> list[float]:
    """The loss before each step: the same on every rank."""
    mesh = hg.make_mesh((hg.distributed.process_count(),), "model")
    weights = {name: hg.device_put(w, NamedSharding(mesh, SPECS[name])) for name, w in start(0).items()}
    rng = np.random.default_rng(1)
    x = rng.normal(size=(BATCH, LENGTH, WIDTH)).astype(np.float32)
    y = np.roll(x, 1, axis=1)  # each place is to say what stood before it
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
