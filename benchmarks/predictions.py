"""Predicted times of a step beside measured ones, on 2, 4 and 8 processes of this machine: ``python -m benchmarks.predictions [--ranks 2,4,8]``.

The step is the gradient of a network of four layers, averaged over the ranks. The network between the processes is measured in the same run. Where
there are more ranks than cores, ranks take turns: ``ranks_per_core``.
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

WIDTH, LAYERS, ROWS = 512, 4, 256  # rows of a rank
CALLS = 30


def gradients(weights: Any, x: Any) -> Any:
    import hologram as hg
    import hologram.numpy as hnp

    def loss(weights: Any, x: Any) -> Any:
        for w in weights:
            x = hnp.tanh(x @ w)
        return hnp.mean(x * x)

    return hg.lax.pmean(hg.grad(loss)(weights, x), "ranks")


def rank_main(rounds: int) -> None:
    cores = pin()
    import hologram as hg
    from hologram.distributed import NamedSharding, PartitionSpec, make_array_from_process_local_data, measure_network, predict, process_count

    hg.settings.num_threads = 1
    hg.distributed.initialize()
    ranks = process_count()
    mesh, by_row = hg.make_mesh((ranks,), "ranks"), PartitionSpec("ranks")
    step = hg.shard_map(gradients, mesh, (PartitionSpec(), by_row), PartitionSpec())
    compiled = hg.jit(step)
    rng = np.random.default_rng(0)
    weights = tuple((rng.standard_normal((WIDTH, WIDTH)) / WIDTH**0.5).astype(np.float32) for _ in range(LAYERS))
    given = make_array_from_process_local_data(NamedSharding(mesh, by_row), rng.standard_normal((ROWS, WIDTH)).astype(np.float32))
    like = hg.ShapeDtypeStruct((ROWS * ranks, WIDTH), "float32", sharding=NamedSharding(mesh, by_row))
    turns = max(1.0, ranks / cores)
    for _ in range(rounds):
        network = measure_network()
        hg.block_until_ready(compiled(weights, given))
        times = []
        for _ in range(CALLS):
            begun = time.perf_counter()
            hg.block_until_ready(compiled(weights, given))
            times.append(time.perf_counter() - begun)
        if os.environ["RANK"] == "0":
            predicted = predict(step, mesh, network, measure=True, ranks_per_core=turns if turns > 1 else None)(weights, like).seconds
            print(json.dumps({"predicted": predicted, "measured": statistics.median(times)}), flush=True)
        hg.block_until_ready(compiled(weights, given))  # others wait here for the first


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", default="2,4,8", help="numbers of processes")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rank", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rank:
        rank_main(options.rounds)
        return
    for ranks in map(int, options.ranks.split(",")):
        for found in run_ranks("benchmarks.predictions", ["--rank", "--rounds", str(options.rounds)], ranks):
            predicted, measured = found["predicted"] * 1e3, found["measured"] * 1e3
            print(f"{ranks} ranks: predicted {predicted:.1f} ms, measured {measured:.1f} ms: {predicted / measured:.2f}", flush=True)


if __name__ == "__main__":
    main()
