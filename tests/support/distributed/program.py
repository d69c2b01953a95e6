"""A program that tests start as several processes: ``python -m tests.support.distributed.program FAULT TIMEOUT``.

Each rank prints a line of JSON: what it computed, and the error with which it ended, after a fault on rank 1.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from typing import Any

import numpy as np

import hologram as hg
from hologram.distributed import NamedSharding, PartitionSpec, initialize, make_array_from_process_local_data, process_count, process_index
from hologram.errors import DistributedError
from tests.support.distributed.cases import CASES, SHAPE

P = PartitionSpec


def mapped(f: Any) -> Any:
    """``f(part)`` of each rank's own array of ``SHAPE``, whose results are stacked."""
    mesh = hg.make_mesh((process_count(),), "i")
    run = hg.shard_map(lambda x: f(x[0])[None], mesh, P("i"), P("i"))
    return lambda own: np.asarray(run(make_array_from_process_local_data(NamedSharding(mesh, P("i")), own[None])).addressable_data()[0])


def own_array(rank: int, size: int = 32) -> np.ndarray:
    x = np.random.default_rng(rank).standard_normal(size).astype(np.float32) * 10.0 ** (rank - 1)
    return x.astype(np.float32)


def results() -> list[str]:
    """The bytes, in hexadecimal, of what this rank gets from every collective; of a large sum; of a gradient."""
    found = []
    x = own_array(process_index()).reshape(SHAPE)
    if process_count() == 4:
        found += [mapped(lambda one, case=case: case.run(one, "i"))(x) for case in CASES.values()]  # type: ignore[misc]
        found += [mapped(lambda one: hg.lax.psum(one.astype("bfloat16"), "i").astype("float32"))(x)]
    found += [mapped(lambda one: hg.lax.psum(one, "i"))(own_array(process_index(), 300_001))]
    mesh = hg.make_mesh((2, process_count() // 2), ("a", "b"))
    loss = hg.shard_map(lambda w, y: hg.lax.pmean((y @ w).var(), ("a", "b")), mesh, (P(), P("a", "b")), P(), check_vma=False)
    y = np.stack([own_array(r, 4) for r in range(8)])
    found += [np.asarray(g) for g in hg.jit(hg.grad(loss, argnums=(0, 1)))(own_array(9, 4 // mesh.shape["b"]), y)]
    return [np.ascontiguousarray(a).tobytes().hex() for a in found]


def fail(fault: str) -> None:
    """A fault on rank 1, and a collective that the others are in."""
    total = mapped(lambda one: hg.lax.psum(one, "i"))
    x = np.ones(3, np.float32)
    total(x)
    if process_index() == 1:
        if fault == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        elif fault == "hangs":
            time.sleep(5)
        elif fault == "interrupted":
            sys.stdin.read()  # until the test has seen the other one end
        elif fault == "differs":
            mapped(lambda one: hg.lax.pmax(one, "i"))(x)
    elif fault == "interrupted" and process_index() == 0:
        threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
    total(x)


def main() -> None:
    fault, timeout = sys.argv[1], float(sys.argv[2])
    if fault == "hangs" and os.environ["RANK"] == "1":
        time.sleep(2 * timeout)  # which is how long collectives wait, and not how long ranks wait for each other at the start
    initialize(timeout=timeout)
    said: dict[str, Any] = {"rank": process_index(), "results": results()}
    began = time.monotonic()
    try:
        fail(fault)
    except (DistributedError, KeyboardInterrupt) as e:
        said |= {"error": type(e).__name__, "message": str(e)}
    said["seconds"] = time.monotonic() - began
    print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
