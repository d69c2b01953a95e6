"""One framework's programs of the loop benchmarks in a process of its own: ``python -m benchmarks.loop_worker FRAMEWORK FOLDER SECONDS``.

Reads a case's name a line, answers with a line of JSON. With no seconds, only first calls are measured.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import worker


def main(framework: str, folder: str, budget: float) -> None:
    importlib.import_module(framework.split("_")[0])  # before the programs, which ask whether it is Numba
    from benchmarks.loop_programs import CASES
    from benchmarks.loop_programs.frameworks import FRAMEWORKS, REFERENCE, Prepared, as_arrays, compared

    def arguments(name: str) -> tuple[Any, ...]:
        program, size = CASES[name]
        return program.arguments(np.random.default_rng(worker.SEED), *size)

    def prepare(name: str) -> Prepared:
        return FRAMEWORKS[framework](CASES[name][0], arguments(name))

    def save(name: str, result: Any) -> str:
        program = CASES[name][0]
        arrays = as_arrays(result) if framework == REFERENCE else compared(program, arguments(name), result)
        return worker.save_arrays(arrays, Path(folder, f"{framework}.npz"))

    def measure(call: Prepared) -> dict[str, Any]:
        if budget == 0 or framework == REFERENCE:
            return {}
        return {"time": worker.median_seconds(call, budget, least=1), "memory": call.planned()}

    _start(framework)
    worker.serve(prepare, save, measure)


def _start(framework: str) -> None:
    """A small function runs first, so that no case pays for a backend's start."""
    from benchmarks.loop_programs.frameworks import FRAMEWORKS
    from benchmarks.loop_programs.program import Program

    small = Program("start", "", lambda rng: (), lambda x: x + 1, lambda f, x: x + 1, lambda x: x + 1)
    FRAMEWORKS[framework](small, (np.zeros(8),))()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
