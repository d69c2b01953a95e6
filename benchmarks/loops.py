"""Loops with indexed updates, beside JAX and Numba: ``python -m benchmarks.loops [-w REGEX] [-f hologram,jax,numba] [--first] [--json FILE]``.

Each framework lives in a process of its own; rounds take turns, a figure is the median over rounds. A result is compared with NumPy's. A call that
takes longer than ``--limit`` seconds is ended, and told. ``--first`` measures first calls only, each in a fresh process with an empty disk cache.
Writes ``benchmarks/results/loops.md`` and ``loops.json``. Fails where a result of Hologram is wrong or missing.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import re
import statistics
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import loop_report
from benchmarks.loop_programs import CASES
from benchmarks.loop_programs.frameworks import MODULES, REFERENCE, agree, runs
from benchmarks.process import Answer, Worker
from hologram.backends.limits import Limits, limits
from hologram.settings import override

DEFAULT = ("hologram", "jax", "numba")
THREAD_VARIABLES = ("HOLOGRAM_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
SLOW = 2.0  # seconds: a call that takes longer is measured in one round


def main() -> int:
    options = _options()
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(options.threads)))
    asked = options.frameworks.split(",")
    frameworks = [f for f, module in MODULES.items() if module in asked and module != REFERENCE and importlib.util.find_spec(module) is not None]
    names = [name for name in CASES if re.search(options.workloads, name)]
    results: dict[str, Any] = {"threads": options.threads, "frameworks": frameworks, "first": options.first, "cases": []}
    measure = _first_calls if options.first else _calls
    for name, answers in measure(names, frameworks, options):
        results["cases"].append(row := loop_report.row(name, answers, None if options.first else _floor(name, options.threads), options.first))
        print(loop_report.line(row), flush=True)
        loop_report.write(results, options.output, options.json)
    return int(any("time" not in r["results"].get("hologram", {"time": 0}) or r["wrong"] for r in results["cases"]))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-w", "--workloads", default=".", help="a regular expression: only cases whose name it finds")
    parser.add_argument("-f", "--frameworks", default=",".join(DEFAULT), help="those that cannot be imported are left out")
    parser.add_argument("-r", "--rounds", type=int, default=3)
    parser.add_argument("-s", "--seconds", type=float, default=0.1, help="for each framework, case and round")
    parser.add_argument("--limit", type=float, default=60, help="seconds for an answer: first call, or calls of a round")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    parser.add_argument("--first", action="store_true", help="first calls only, in fresh processes")
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--json", type=Path, help="where the figures go; in the folder of --output, without it")
    return parser.parse_args()


def _floor(name: str, threads: int) -> float | None:
    """The least seconds of the bytes that the case must move, by one thread or all: what fits into a cache is there."""
    program, size = CASES[name]
    if program.nbytes is None:
        return None
    return min(_limits(n).seconds(program.nbytes(*size), 0)[0] for n in {1, threads})


@cache
def _limits(threads: int) -> Limits:
    with override(num_threads=threads):
        return limits()


def _worker(framework: str, folder: str, options: argparse.Namespace, seconds: float) -> Worker:
    """A process with an empty disk cache."""
    cache = {"HOLOGRAM_CACHE_DIR": tempfile.mkdtemp(dir=folder)}
    return Worker("benchmarks.loop_worker", framework, folder, str(seconds), seconds=options.limit, quiet=True, environment=cache)


def _calls(names: list[str], frameworks: list[str], options: argparse.Namespace) -> Iterator[tuple[str, dict[str, Answer]]]:
    """Names of cases, and of each framework the medians over rounds."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        workers = {f: stack.enter_context(_worker(f, folder, options, options.seconds)) for f in (REFERENCE, *frameworks)}
        for name in names:
            expected = workers[REFERENCE].ask(name)
            rounds: dict[str, list[Answer]] = {f: [] for f in frameworks if runs(f, CASES[name][0])}
            for _ in range(options.rounds):
                for f, answers in rounds.items():
                    if not answers or ("error" not in answers[-1] and answers[-1]["time"] < SLOW):
                        answers.append(workers[f].ask(name))
            yield name, {f: _summary(name, answers, expected) for f, answers in rounds.items()}


def _first_calls(names: list[str], frameworks: list[str], options: argparse.Namespace) -> Iterator[tuple[str, dict[str, Answer]]]:
    """Names of cases, and of each framework the first call: the best of all rounds, each in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        expectations = _worker(REFERENCE, folder, options, 0)
        for name in names:
            expected = expectations.ask(name)
            found: dict[str, list[Answer]] = {f: [] for f in frameworks if runs(f, CASES[name][0])}
            for _ in range(options.rounds):
                for f, answers in found.items():
                    with _worker(f, folder, options, 0) as worker:
                        answer = worker.ask(name)
                        answers.append({**answer, "time": answer["first"]} if "first" in answer else answer)
            yield name, {f: _summary(name, sorted(a, key=lambda a: a.get("time", 0))[:1], expected) for f, a in found.items()}
        expectations.end()


def _summary(name: str, answers: list[Answer], expected: Answer) -> Answer:
    errors = [a["error"] for a in answers if "error" in a]
    if errors:
        return {"error": errors[0]}
    found = {"time": statistics.median(a["time"] for a in answers), "first": answers[0]["first"]}
    if answers[-1].get("memory") is not None:
        found["memory"] = answers[-1]["memory"]
    if "error" in expected:
        return {**found, "unchecked": expected["error"]}
    with np.load(answers[0]["file"]) as ours, np.load(expected["file"]) as theirs:
        return {**found, "agrees": agree(CASES[name][0], [ours[k] for k in ours.files], [theirs[k] for k in theirs.files])}


if __name__ == "__main__":
    sys.exit(main())
