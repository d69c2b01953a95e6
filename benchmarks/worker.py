"""One framework in a process of its own: ``python -m benchmarks.worker FRAMEWORK FOLDER SECONDS``.

Reads a case's name a line, answers with a line of JSON.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from benchmarks.cases import CASES
from benchmarks.frameworks import FRAMEWORKS, Call

MEASURABLE = 2e-3  # seconds: calls are timed in groups at least this long
SEED = 20

C = TypeVar("C", bound=Call)


def main(framework: str, folder: str, budget: float) -> None:
    def prepare(name: str) -> Call:
        return FRAMEWORKS[framework](CASES[name], CASES[name].arguments(np.random.default_rng(SEED)))

    def save(name: str, result: Any) -> str:
        return save_arrays(result if isinstance(result, (list, tuple)) else (result,), Path(folder, f"{framework}.npz"))

    serve(prepare, save, lambda call: {"time": median_seconds(call, budget)})


def serve(prepare: Callable[[str], C], save: Callable[[str, Any], str], measure: Callable[[C], dict[str, Any]]) -> None:
    """Answers each name that comes in: the seconds and the file of a first call, if the name is a new one, and what ``measure`` finds."""
    current: str = ""
    call: C | None = None
    for line in sys.stdin:
        name = line.strip()
        answer: dict[str, Any] = {}
        try:
            if name != current:
                current, call = name, prepare(name)
                start = time.perf_counter()
                result = call()
                answer["first"] = time.perf_counter() - start
                answer["file"] = save(name, result)
                del result
            assert call is not None
            answer |= measure(call)
        except Exception as e:  # one framework's trouble with one case does not end the run
            current, answer = "", {"error": f"{type(e).__name__}: {e}".splitlines()[0][:200]}
        print(json.dumps(answer), flush=True)


def median_seconds(call: Call, budget: float, least: int = 3) -> float:
    """The median over groups of calls, at least ``least``, of the time of one call."""
    repeat = 1
    while (elapsed := _seconds(call, repeat)) < MEASURABLE:
        repeat = max(2 * repeat, int(repeat * MEASURABLE / max(elapsed, 1e-9)))
    times, end = [elapsed / repeat], time.perf_counter() + budget
    while len(times) < least or time.perf_counter() < end:
        times.append(_seconds(call, repeat) / repeat)
    return statistics.median(times)


def _seconds(call: Call, repeat: int) -> float:
    start = time.perf_counter()
    for _ in range(repeat):
        call()
    return time.perf_counter() - start


def save_arrays(arrays: Iterable[Any], path: Path) -> str:
    np.savez(path, *map(_array, arrays))
    return str(path)


def _array(x: Any) -> np.ndarray:
    """``x`` for NumPy, bfloat16 as float32: files know no bfloat16, and torch hands none over."""
    if str(x.dtype).endswith("bfloat16"):
        return x.float().numpy() if hasattr(x, "float") else np.asarray(x).astype(np.float32)
    return np.asarray(x)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
