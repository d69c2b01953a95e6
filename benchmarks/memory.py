"""What a call costs in memory: page faults in the steady state, and the plan's peak beside its lower bound."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import numpy as np

from benchmarks.cases import CASES

NAMES = tuple(name for name, case in CASES.items() if case.group == "pipelines")
CALLS = 50


def measure() -> list[dict[str, Any]]:
    """One row for each pipeline, each in a process of its own."""
    rows = []
    for name in NAMES:
        done = subprocess.run([sys.executable, "-m", "benchmarks.memory", name], capture_output=True, text=True)
        rows.append(json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else {"case": name, "error": done.stderr.splitlines()[-1][:200]})
    return rows


def inspect(name: str) -> dict[str, Any]:
    import hologram as hg
    import hologram.numpy as hnp

    case = CASES[name]

    def function(*args: Any) -> Any:
        return case.function(hnp, *args)

    arguments = [hg.tensor(a) for a in case.arguments(np.random.default_rng(0))]
    jitted = hg.jit(function)
    plan = jitted.lower(*arguments).compile().memory_analysis()
    return {
        "case": name,
        "peak": plan.peak,
        "lower bound": plan.lower_bound,
        "page faults a call": faults_per_call(lambda: hg.block_until_ready(jitted(*arguments))),
    }


def faults_per_call(call: Any) -> float:
    import resource

    for _ in range(CALLS):
        call()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(CALLS):
        call()
    return (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / CALLS


if __name__ == "__main__":
    print(json.dumps(inspect(sys.argv[1])))
