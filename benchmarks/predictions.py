"""Predicted times of a step beside measured ones, on 2, 4 and 8 processes of this machine: ``python -m benchmarks.predictions [--ranks 2,4,8]``.

The programs: the gradient of a network of four layers, averaged over the ranks; a block of a network whose weights are divided over the ranks; steps
of a stencil, whose rows are; a step with divided weights; attention to keys that go round a ring. What the network costs is measured in each round,
before the steps and behind them, as the machine's other work changes. Told are the medians over the rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from typing import Any

import numpy as np

from benchmarks.ranks import pin, run_ranks
from hologram.distributed import Network
from hologram.distributed import PartitionSpec as P

WIDTH, LAYERS, ROWS = 512, 4, 256  # rows of a rank
CALLS = 30
STENCIL_STEPS = 8
HEADS, LENGTH, HEAD_WIDTH = 4, 256, 64  # of attention; places of a rank


def data_parallel(rng: Any, ranks: int) -> tuple[Any, Any, tuple[Any, ...]]:
    """The gradients, their specs, and the arrays: whole ones."""
    import hologram as hg
    import hologram.numpy as hnp

    def loss(weights: Any, x: Any) -> Any:
        for w in weights:
            x = hnp.tanh(x @ w)
        return hnp.mean(x * x)

    weights = tuple(_weights(rng, WIDTH, WIDTH) for _ in range(LAYERS))
    return lambda weights, x: hg.lax.pmean(hg.grad(loss)(weights, x), "ranks"), (P(), P("ranks"), P()), (weights, _weights(rng, ROWS * ranks, WIDTH))


def tensor_parallel(rng: Any, ranks: int) -> tuple[Any, Any, tuple[Any, ...]]:
    import hologram as hg
    import hologram.numpy as hnp

    def block(x: Any, up: Any, down: Any) -> Any:
        for _ in range(LAYERS):
            x = x + hg.lax.psum(hnp.tanh(x @ up) @ down, "ranks")
        return x

    hidden = 4 * WIDTH * ranks  # a rank has as many columns of any number of ranks
    arrays = _weights(rng, ROWS, WIDTH), _weights(rng, WIDTH, hidden), _weights(rng, hidden, WIDTH)
    return block, (P(), P(None, "ranks"), P("ranks"), P()), arrays


def stencil(rng: Any, ranks: int) -> tuple[Any, Any, tuple[Any, ...]]:
    import hologram as hg
    import hologram.numpy as hnp

    right, left = [(i, (i + 1) % ranks) for i in range(ranks)], [(i, (i - 1) % ranks) for i in range(ranks)]

    def steps(x: Any) -> Any:
        for _ in range(STENCIL_STEPS):
            above, below = hg.lax.ppermute(x[-1:], "ranks", right), hg.lax.ppermute(x[:1], "ranks", left)
            wide = hnp.concatenate([above, x, below])
            x = (wide[:-2] + wide[2:] + hnp.roll(x, 1, axis=1) + hnp.roll(x, -1, axis=1)) / 4
        return x

    return steps, (P("ranks"), P("ranks")), (_weights(rng, 4 * WIDTH * ranks, WIDTH),)


def sharded_weights(rng: Any, ranks: int) -> tuple[Any, Any, tuple[Any, ...]]:
    """A step of which each rank has a part of the weights between the steps: gathered before they are used, gradients reduced to the parts."""
    import hologram as hg
    import hologram.numpy as hnp

    def loss(weights: Any, x: Any) -> Any:
        for w in weights:
            x = hnp.tanh(x @ w)
        return hnp.mean(x * x)

    def step(parts: Any, x: Any) -> Any:
        slopes = hg.grad(loss)(hg.lax.all_gather(parts, "ranks", tiled=True), x)
        return hg.tree.map(lambda w, g: w - 0.1 * g / ranks, parts, hg.lax.psum_scatter(slopes, "ranks", tiled=True))

    weights = tuple(_weights(rng, WIDTH, WIDTH) for _ in range(LAYERS))
    return step, (P("ranks"), P("ranks"), P("ranks")), (weights, _weights(rng, ROWS * ranks, WIDTH))


def ring_attention(rng: Any, ranks: int) -> tuple[Any, Any, tuple[Any, ...]]:
    import hologram as hg
    import hologram.numpy as hnp

    onward = [(i, (i + 1) % ranks) for i in range(ranks)]

    def attend(q: Any, k: Any, v: Any) -> Any:
        total, out = hnp.zeros((*q.shape[:-1], 1), q.dtype), hnp.zeros_like(q)
        for hop in range(ranks):
            coming = hg.lax.ppermute((k, v), "ranks", onward) if hop + 1 < ranks else (k, v)
            weights = hnp.exp(q @ hnp.swapaxes(k, 1, 2) / q.shape[-1] ** 0.5)
            total, out = total + weights.sum(-1, keepdims=True), out + weights @ v
            k, v = coming
        return out / total

    by_place = P(None, "ranks")
    return attend, (by_place,) * 4, tuple([_weights(rng, HEADS * LENGTH * ranks, HEAD_WIDTH).reshape(HEADS, -1, HEAD_WIDTH) for _ in range(3)])


PROGRAMS = (data_parallel, tensor_parallel, stencil, sharded_weights, ring_attention)


def _weights(rng: Any, rows: int, columns: int) -> np.ndarray:
    return (rng.standard_normal((rows, columns)) / columns**0.5).astype(np.float32)


def rank_main(rounds: int) -> None:
    cores = pin()
    import hologram as hg
    from hologram.distributed import NamedSharding, measure_network, predict, process_count

    hg.settings.num_threads = 1
    hg.distributed.initialize()
    ranks = process_count()
    mesh = hg.make_mesh((ranks,), "ranks")
    turns = ranks / cores if ranks >= cores else None  # as many ranks as cores leave none to the messages
    for program in PROGRAMS:
        f, (*specs, out), arrays = program(np.random.default_rng(0), ranks)
        step = hg.shard_map(f, mesh, tuple(specs), out)
        compiled = hg.jit(step)
        shardings = [NamedSharding(mesh, spec) for spec in specs]
        given = [hg.tree.map(lambda a, s=s: hg.device_put(a, s), x) for x, s in zip(arrays, shardings, strict=True)]
        like = [hg.tree.map(lambda a, s=s: hg.ShapeDtypeStruct(a.shape, "float32", sharding=s), x) for x, s in zip(arrays, shardings, strict=True)]
        for _ in range(rounds):
            before = measure_network()
            times = []
            for _ in range(CALLS):
                begun = time.perf_counter()
                hg.block_until_ready(compiled(*given))
                times.append(time.perf_counter() - begun)
            network = Network(*[statistics.mean(figures) for figures in zip(before, measure_network(), strict=True)])
            if os.environ["RANK"] == "0":
                predicted = predict(step, mesh, network, measure=True, ranks_per_core=turns)(*like).seconds
                found = {"program": program.__name__, "predicted": predicted, "measured": statistics.median(times)}
                print(json.dumps(found), flush=True)
            measure_network()  # the others wait here for the first


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", default="2,4,8", help="numbers of processes")
    parser.add_argument("--rounds", type=int, default=5, help="of each program")
    parser.add_argument("--rank", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rank:
        rank_main(options.rounds)
        return
    for ranks in map(int, options.ranks.split(",")):
        lines = run_ranks("benchmarks.predictions", ["--rank", "--rounds", str(options.rounds)], ranks)
        for program in PROGRAMS:
            of_program = [found for found in lines if found["program"] == program.__name__]
            predicted, measured = (1e3 * statistics.median([found[what] for found in of_program]) for what in ("predicted", "measured"))
            name = program.__name__.replace("_", " ")
            print(f"{ranks} ranks, {name}: predicted {predicted:.1f} ms, measured {measured:.1f} ms: {predicted / measured:.2f}", flush=True)


if __name__ == "__main__":
    main()
