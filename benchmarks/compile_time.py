"""First calls, each in a process of its own: from trace to result, with an empty disk cache, then with what the process before left there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from typing import Any

import numpy as np

from benchmarks.cases import CASES
from benchmarks.frameworks import FRAMEWORKS

NAMES = ("add 1000", "gelu 1000000", "softmax 1024x1024", "layer norm 1024x1024", "option prices 1000000", "photograph 1024x1024")
COMPILERS = ("hologram", "jax", "inductor")
ROUNDS = 3


def first_call(framework: str, name: str) -> dict[str, float]:
    """Milliseconds of the import, and of the first call; another function ran before, so that the backend's start is not counted."""
    start = time.perf_counter()
    __import__({"inductor": "torch"}.get(framework, framework))
    imported = time.perf_counter() - start
    make = FRAMEWORKS[framework]
    make(CASES["sixteen operations 8"], CASES["sixteen operations 8"].arguments(np.random.default_rng(0)))()
    call = make(CASES[name], CASES[name].arguments(np.random.default_rng(0)))
    start = time.perf_counter()
    call()
    return {"import": 1e3 * imported, "first call": 1e3 * (time.perf_counter() - start)}


def measure(frameworks: list[str]) -> list[dict[str, Any]]:
    rows = []
    for name in NAMES:
        for framework in (f for f in COMPILERS if f in frameworks and f in CASES[name].frameworks):
            row: dict[str, Any] = {"case": name, "framework": framework}
            cold, warm = zip(*(_pair(framework, name) for _ in range(ROUNDS)), strict=True)
            row["import"] = min(p["import"] for p in cold)
            row["first call"] = min(p["first call"] for p in cold)
            row["process to result"] = min(p["process"] for p in cold)
            if framework == "hologram":  # the others' disk caches are off by default, or do not keep machine code
                row["second process"] = min(p["first call"] for p in warm)
                row["second process to result"] = min(p["process"] for p in warm)
            rows.append(row)
    return rows


def _pair(framework: str, name: str) -> tuple[dict[str, float], dict[str, float]]:
    """A process with empty caches, and one after it; for all but Hologram the second is not needed."""
    with tempfile.TemporaryDirectory() as caches:
        environment = dict(os.environ, HOLOGRAM_CACHE_DIR=os.path.join(caches, "hologram"), TORCHINDUCTOR_CACHE_DIR=os.path.join(caches, "inductor"))
        cold = _process(framework, name, environment)
        return cold, _process(framework, name, environment) if framework == "hologram" else cold


def _process(framework: str, name: str, environment: dict[str, str]) -> dict[str, float]:
    start = time.perf_counter()
    command = [sys.executable, "-m", "benchmarks.compile_time", framework, name]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return {**json.loads(done.stdout.splitlines()[-1]), "process": 1e3 * (time.perf_counter() - start)}


if __name__ == "__main__":
    print(json.dumps(first_call(sys.argv[1], sys.argv[2])))
