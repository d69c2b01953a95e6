"""A program that tests start as several processes: a training step with overlap, its prediction, and an interrupt beside a collective.

Each rank prints a line of JSON.
"""

from __future__ import annotations

import hashlib
import json
import signal
import time
from typing import Any

import numpy as np

import hologram as hg
from hologram.distributed import NamedSharding, PartitionSpec, make_array_from_process_local_data, measure_network, predict, process_index
from tests.support.distributed.overlap import SIZE, gradients, weights

P = PartitionSpec
REPEATS = 7


def step_and_arguments() -> tuple[Any, Any, tuple[Any, ...]]:
    mesh = hg.make_mesh((hg.distributed.process_count(),), "x")
    step = hg.jit(hg.shard_map(gradients, mesh, (P(), P("x")), P()))
    own = np.random.default_rng(process_index()).standard_normal((SIZE, SIZE)).astype(np.float32)
    x = make_array_from_process_local_data(NamedSharding(mesh, P("x")), own)
    return mesh, step, ([hg.tensor(w) for w in weights()], x)


def results() -> str:
    """A digest of the updated weights."""
    _, step, args = step_and_arguments()
    return hashlib.sha256(b"".join(np.asarray(w).tobytes() for w in step(*args))).hexdigest()


def step_time() -> float:
    """Seconds of a step, the least of some."""
    _, step, args = step_and_arguments()
    best = float("inf")
    for _ in range(REPEATS):
        start = time.perf_counter()
        for w in step(*args):
            w.block_until_ready()
        best = min(best, time.perf_counter() - start)
    return best


def predicted_time() -> float:
    mesh, step, args = step_and_arguments()
    return predict(step, mesh, measure_network(), measure=True)(*args).seconds


def interrupted() -> float:
    """Seconds until an interrupt of a wait, for a rank that comes too late, ends the step."""
    _, step, args = step_and_arguments()
    if process_index() == 1:
        time.sleep(4.0)
        return 0.0

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 1.0)
    start = time.monotonic()
    try:
        step(*args)
    except KeyboardInterrupt:
        return time.monotonic() - start
    return -1.0


def main() -> None:
    hg.distributed.initialize(timeout=60.0)
    said = {"rank": process_index(), "results": results(), "network": measure_network(), "predicted": predicted_time(), "measured": step_time()}
    if hg.distributed.process_count() == 2:
        import hologram.primitives.host.lanes as lanes

        said |= {"interrupted": interrupted(), "left": len(lanes._under_way)}
    print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
