"""Sums over processes beside torch.distributed's own and JAX's: ``python -m benchmarks.collectives [--ranks 2,4] [--rounds N]``.

Each rank is a process pinned to a core. Hologram's ``psum`` and torch's ``all_reduce`` (Gloo, both) take turns in the same processes, round by round;
JAX's collectives (Gloo) have processes of their own. Told are the median and the least time of a call on the first rank.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.ranks import pin, run_ranks

SIZES = {"4 B": 1, "64 KiB": 2**14, "64 MiB": 2**24}  # elements of float32
CALLS = {"4 B": 200, "64 KiB": 100, "64 MiB": 4}  # in a round
WARM_UP = 3  # calls that do not count

Call = Callable[[], Any]


def hologram_sum(elements: int) -> Call:
    import hologram as hg
    from hologram.distributed import NamedSharding, PartitionSpec, make_array_from_process_local_data, process_count

    mesh = hg.make_mesh((process_count(),), "ranks")
    by_rank = PartitionSpec("ranks")
    program = hg.jit(hg.shard_map(lambda x: hg.lax.psum(x, "ranks"), mesh, by_rank, PartitionSpec()))
    x = make_array_from_process_local_data(NamedSharding(mesh, by_rank), np.ones(elements, np.float32))
    return lambda: hg.block_until_ready(program(x))


def torch_sum(elements: int) -> Call:
    import torch

    x = torch.zeros(elements)
    return lambda: torch.distributed.all_reduce(x)


def jax_sum(elements: int) -> Call:
    import jax
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    mesh = Mesh(np.array(jax.devices()), ("ranks",))
    by_rank = PartitionSpec("ranks")
    program = jax.jit(jax.shard_map(lambda x: jax.lax.psum(x, "ranks"), mesh=mesh, in_specs=by_rank, out_specs=PartitionSpec()))
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, by_rank), np.ones(elements, np.float32))
    return lambda: jax.block_until_ready(program(x))


TOGETHER = {"hologram": hologram_sum, "torch": torch_sum}  # in the same processes


def start(framework: str) -> dict[str, Callable[[int], Call]]:
    """Joins the other ranks; the contenders of these processes."""
    if framework == "jax":
        import jax

        jax.config.update("jax_cpu_collectives_implementation", "gloo")
        jax.distributed.initialize(f"127.0.0.1:{os.environ['MASTER_PORT']}", int(os.environ["WORLD_SIZE"]), int(os.environ["RANK"]))
        return {"jax": jax_sum}
    import torch

    import hologram as hg

    torch.set_num_threads(1)
    hg.settings.num_threads = 1
    hg.distributed.initialize()
    return dict(TOGETHER)


def timed(call: Call, count: int) -> list[float]:
    out = []
    for _ in range(count):
        begun = time.perf_counter()
        call()
        out.append(time.perf_counter() - begun)
    return out


def rank_main(framework: str, rounds: int) -> None:
    pin()
    contenders = start(framework)
    for size, elements in SIZES.items():
        calls = {name: make(elements) for name, make in contenders.items()}
        times: dict[str, list[float]] = {name: [] for name in calls}
        for call in calls.values():
            timed(call, WARM_UP)
        for _ in range(rounds):
            for name, call in calls.items():
                times[name] += timed(call, CALLS[size])
        if os.environ["RANK"] == "0":
            print(json.dumps({"size": size, "times": {n: [statistics.median(t), min(t)] for n, t in times.items()}}), flush=True)


def measure(framework: str, ranks: int, rounds: int) -> dict[str, dict[str, list[float]]]:
    """The median and the least time of each contender of ``framework``, by size."""
    lines = run_ranks("benchmarks.collectives", ["--framework", framework, "--rounds", str(rounds)], ranks)
    return {found["size"]: found["times"] for found in lines}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", default="2,4", help="numbers of processes")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--framework", choices=("together", "jax"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.framework:
        rank_main(options.framework, options.rounds)
        return
    for ranks in map(int, options.ranks.split(",")):
        found = {size: dict(times) for size, times in measure("together", ranks, options.rounds).items()}
        for size, times in measure("jax", ranks, options.rounds).items():
            found.setdefault(size, {}).update(times)
        for size, times in found.items():
            told = "  ".join(f"{name} {median * 1e6:,.0f} (least {least * 1e6:,.0f})" for name, (median, least) in times.items())
            print(f"psum of {size}, {ranks} ranks, µs: {told}", flush=True)


if __name__ == "__main__":
    main()
