"""Arrays larger than memory: Dask with Tensors as blocks, fused, beside Dask with NumPy blocks: ``python -m benchmarks.dask_blocks``.

Two workers of ``distributed``, each with a memory limit; arrays are several times as large as both limits together, and are made block by block by
the same cheap function on both sides. With Tensors these blocks are made again for each use, unless ``--keep``. The best of some runs counts; results
are compared; the peak is what a worker's process held at most, in all cases so far.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

STEPS, DEPTH = 100, 10  # of the stencil, and how many of them a block does before it meets its neighbours


def block_of(block_info: Any = None) -> Any:
    """One block: a small set of random numbers, repeated."""
    if not block_info:  # Dask asks for the type
        return np.empty((0, 0))
    base = np.random.default_rng(block_info[None]["chunk-location"][0]).normal(size=8191)
    return np.resize(base, block_info[None]["chunk-shape"])


def source(rows: int, columns: int, blocks: int, tensors: bool) -> Any:
    """An array of (rows * blocks, columns), in blocks of rows."""
    import dask.array as da

    import hologram as hg

    made = da.map_blocks(block_of, chunks=((rows,) * blocks, (columns,)), dtype=np.float64, meta=np.empty((0, 0)))
    return made.map_blocks(hg.asarray, meta=hg.tensor(np.empty((0, 0)))) if tensors else made


def standardise(x: Any) -> Any:
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    return (np.tanh(z) * z).mean(axis=0)


def matmul(x: Any) -> Any:
    z = np.tanh(x - x.mean(axis=0))
    return z.T @ z


def svd(x: Any) -> Any:
    import dask.array as da

    z = np.tanh(x) + 0.1 * np.sin(3 * x)
    return da.linalg.svd(z)[1]


def numpy_steps(u: Any) -> Any:
    for _ in range(DEPTH):
        u = u + 0.1 * (np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1) - 4 * u)
    return u


def tensor_steps(u: Any) -> Any:
    import hologram as hg
    import hologram.numpy as hnp

    def step(i: Any, v: Any) -> Any:
        return v + 0.1 * (hnp.roll(v, 1, 0) + hnp.roll(v, -1, 0) + hnp.roll(v, 1, 1) + hnp.roll(v, -1, 1) - 4 * v)

    return hg.fori_loop(0, DEPTH, step, u)


def stencil(x: Any) -> Any:
    steps = numpy_steps if isinstance(x._meta, np.ndarray) else tensor_steps
    for _ in range(STEPS // DEPTH):
        x = x.map_overlap(steps, depth={0: DEPTH, 1: 0}, boundary={0: "periodic"}, meta=x._meta)
    return x.sum(axis=0)


CASES: dict[str, tuple[Callable[[Any], Any], int, float]] = {  # the program, columns, and how much of --memory the array takes
    "standardise": (standardise, 512, 1.0),
    "matmul": (matmul, 256, 1.0),
    "svd": (svd, 64, 1.0),
    "stencil": (stencil, 1024, 0.125),
}


def measure(name: str, nbytes: int, blocks: int, runs: int, recompute: bool, whole: bool = False) -> dict[str, Any]:
    """Seconds of both sides, and whether their results agree."""
    import hologram as hg

    program, columns, part = CASES[name]
    rows = max(int(nbytes * (1.0 if whole else part)) // (8 * columns * blocks), 4 * DEPTH)
    best: dict[bool, float] = {}
    results: dict[bool, Any] = {}
    for _ in range(runs):
        for tensors in (True, False):
            array = program(source(rows, columns, blocks, tensors))
            start = time.perf_counter()
            results[tensors] = np.asarray((hg.dask.fuse(array, recompute=recompute) if tensors else array).compute())
            best[tensors] = min(best.get(tensors, np.inf), time.perf_counter() - start)
    scale = np.abs(results[False]).max()
    return {
        "case": name,
        "MiB": rows * columns * blocks * 8 >> 20,
        "numpy": best[False],
        "hologram": best[True],
        "agree": bool(np.abs(results[True] - results[False]).max() <= 1e-9 * scale),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-w", "--which", nargs="*", default=list(CASES), choices=list(CASES))
    parser.add_argument("--limit", type=int, default=512, help="MiB of a worker")
    parser.add_argument("--times", type=float, default=4.0, help="how many times larger than all workers' memory the arrays are")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--blocks", type=int, default=256)
    parser.add_argument("--keep", action="store_true", help="blocks between their uses")
    parser.add_argument("--whole", action="store_true", help="the stencil's array is as large as the others': NumPy's blocks take half an hour")
    parser.add_argument("--runs", type=int, default=2)
    options = parser.parse_args()

    from distributed import Client, LocalCluster

    import hologram.dask  # noqa: F401

    memory = f"{options.limit}MiB"
    with (
        LocalCluster(n_workers=options.workers, threads_per_worker=1, memory_limit=memory, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster) as client,
    ):
        print(f"{options.workers} workers of {memory}")
        print("| case | array, MiB | NumPy blocks, s | fused Tensors, s | ratio | agree | peak of a worker, MiB |")
        print("|---|---|---|---|---|---|---|")
        for name in options.which:
            nbytes = int(options.limit * options.workers * options.times) << 20
            m = measure(name, nbytes, options.blocks, options.runs, not options.keep, options.whole)
            peak = max(client.run(peak_of_process).values()) >> 20
            ratio = m["hologram"] / m["numpy"]
            print(f"| {name} | {m['MiB']} | {m['numpy']:.2f} | {m['hologram']:.2f} | {ratio:.2f} | {m['agree']} | {peak} |", flush=True)


def peak_of_process() -> int:
    """Bytes that this process held at most."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


if __name__ == "__main__":
    main()
