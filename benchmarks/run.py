"""Runs the benchmarks and writes Markdown, JSON and plots: ``python -m benchmarks.run [-w REGEX] [-f numpy,torch,jax] [--threads N]``.

Each framework lives in a process of its own that waits while another is measured; rounds take turns, a figure is the median over rounds. Results
are compared with NumPy's. Figures from one run may be compared with each other, not with those of another run.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import re
import statistics
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import compile_time, launches, memory, products, report, throughput
from benchmarks.cases import CASES, Case
from benchmarks.process import Worker
from hologram.backends.limits import limits
from hologram.settings import override

DEFAULT = ("hologram", "numpy", "torch", "jax", "numexpr")
THREAD_VARIABLES = ("HOLOGRAM_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


def main() -> None:
    options = _options()
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(options.threads)))
    frameworks = [f for f in options.frameworks.split(",") if importlib.util.find_spec({"inductor": "torch"}.get(f, f)) is not None]
    with override(num_threads=options.threads):
        most = limits()
    results: dict[str, Any] = {"threads": options.threads, "bandwidth": 1e9 / most.byte, "peak": 1e9 / most.operation, "frameworks": frameworks}
    moves, computes = (results[k] / 1e9 for k in ("bandwidth", "peak"))
    print(f"{options.threads} threads move {moves:.1f} GB/s and compute {computes:.1f} GFLOP/s", flush=True)
    results["cases"] = _measure([c for n, c in CASES.items() if re.search(options.workloads, n)], frameworks, options, results)
    if options.parts == "all":
        results["compile time"] = compile_time.measure(frameworks)
        results["throughput"] = throughput.measure()
        results["launches"] = launches.measure(frameworks)
        results["memory"] = memory.measure()
    report.write(results, options.output)
    rows = [r for r in results["cases"] if r["group"] == products.GROUP]
    if len(rows) == sum(c.group == products.GROUP for c in CASES.values()):
        products.document(results, report.cases(rows, frameworks, results["peak"]), Path("docs"))
    print(f"wrote {options.output}")


def _options() -> argparse.Namespace:
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-w", "--workloads", default=".", help="a regular expression: only cases whose name it finds")
    parser.add_argument("-f", "--frameworks", default=",".join(DEFAULT), help="in order; those that cannot be imported are left out")
    parser.add_argument("-r", "--rounds", type=int, default=3)
    parser.add_argument("-s", "--seconds", type=float, default=0.1, help="for each framework, case and round")
    parser.add_argument("--threads", type=int, default=available)
    parser.add_argument("--parts", choices=("all", "calls"), default="all", help="calls: without compile times and memory")
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results"))
    return parser.parse_args()


def _measure(cases: list[Case], frameworks: list[str], options: argparse.Namespace, machine: dict[str, Any]) -> list[dict[str, Any]]:
    """A row for each case. The floor is the larger of the bytes at the machine's bandwidth and the operations at its peak."""
    rows = []
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        workers = {f: stack.enter_context(Worker("benchmarks.worker", f, folder, str(options.seconds), quiet=True)) for f in frameworks}
        for case in cases:
            answers: dict[str, list[dict[str, Any]]] = {f: [] for f in frameworks if f in case.frameworks}
            for _ in range(options.rounds):
                for f, got in answers.items():
                    if not got or "error" not in got[-1]:
                        got.append(workers[f].ask(case.name))
            floor = max(case.nbytes / machine["bandwidth"], case.flops / machine["peak"])
            row = {"case": case.name, "group": case.group, "bytes": case.nbytes, "flops": case.flops, "floor": floor}
            row["results"] = {f: _summary(f, got, answers) for f, got in answers.items()}
            rows.append(row)
            print(report.line(row), flush=True)
    return rows


def _summary(framework: str, answers: list[dict[str, Any]], everyone: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    if "error" in answers[-1]:
        return {"error": answers[-1]["error"]}
    expected = everyone.get("numpy", [{}])[0].get("file")
    agrees = expected is None or framework == "numpy" or _agree(answers[0]["file"], expected)
    return {"time": statistics.median(a["time"] for a in answers), "first": answers[0]["first"], "agrees": agrees}


def _agree(ours: str, theirs: str) -> bool:
    a, b = np.load(ours), np.load(theirs)
    return len(a.files) == len(b.files) and all(np.allclose(a[k], b[k], rtol=1e-3, atol=1e-3 * np.abs(b[k]).max(initial=1e-6)) for k in b.files)


if __name__ == "__main__":
    main()
