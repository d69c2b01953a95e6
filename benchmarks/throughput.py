"""How fast the compiler takes a program: operations a second from trace to kernel IR, and the first call of a long chain."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import Any

import numpy as np

LENGTHS = (1_000, 10_000, 100_000)


def chain(length: int, x: Any, y: Any) -> Any:
    """``length`` element-wise operations, none of which can be simplified away."""
    for _ in range(length // 4):
        x = (x * x + 0.5) * 0.25 - y
    return x


def measure() -> list[dict[str, Any]]:
    """One row for each length, each in a process of its own without a disk cache."""
    rows = []
    for length in LENGTHS:
        command = [sys.executable, "-m", "benchmarks.throughput", str(length)]
        done = subprocess.run(command, env=dict(os.environ, HOLOGRAM_CACHE="0"), capture_output=True, text=True)
        rows.append(
            json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else {"operations": length, "error": done.stderr.splitlines()[-1][:200]}
        )
    return rows


def one(length: int) -> dict[str, Any]:
    import hologram as hg
    from hologram.graph.pipeline import canonicalise, compile_to_plan

    x, y = np.ones((2, 8), np.float32)
    hg.block_until_ready(hg.jit(lambda x, y: chain(8, x, y))(x, y))  # so that imports and the backend's start are not counted
    start = time.perf_counter()
    graph = hg.make_graph(lambda x, y: chain(length, x, y))(x, y)
    compile_to_plan(canonicalise(graph, "standard"))
    kernels = time.perf_counter() - start
    start = time.perf_counter()
    hg.block_until_ready(hg.jit(lambda x, y: chain(length, x, y))(x, y))
    return {"operations": length, "to kernels": 1e3 * kernels, "first call": 1e3 * (time.perf_counter() - start)}


if __name__ == "__main__":
    print(json.dumps(one(int(sys.argv[1]))))
