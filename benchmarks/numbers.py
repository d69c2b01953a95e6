"""Numbers that change from call to call, beside NumPy, JAX and torch: ``python -m benchmarks.numbers [-w REGEX] [-f hologram,numpy]``.

Each framework lives in a process of its own, with an empty disk cache. A figure is the median time of a turn with a number that was not met
before; what compiling takes is part of it, and the programs that are compiled are counted. Results are compared with NumPy's. Turns stop when
``--limit`` seconds are over. Writes ``benchmarks/results/numbers.md`` and ``numbers.json``. Fails where a result of Hologram is wrong or missing.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.util
import json
import os
import platform
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks import report
from benchmarks.number_cases import CASES, Case
from benchmarks.process import Answer, Worker

FRAMEWORKS = ("hologram", "numpy", "jax", "torch")
Row = dict[str, Any]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-w", "--workloads", default=".", help="a regular expression: only cases whose name it finds")
    parser.add_argument("-f", "--frameworks", default=",".join(FRAMEWORKS), help="those that cannot be imported are left out")
    parser.add_argument("--limit", type=float, default=3, help="seconds for the turns of one framework in one case")
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results"))
    options = parser.parse_args()
    found = [f for f in FRAMEWORKS if f in options.frameworks.split(",") and importlib.util.find_spec(f) is not None]
    rows = [_measured(case, found, options.limit) for name, case in CASES.items() if re.search(options.workloads, name)]
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "numbers.json").write_text(json.dumps(rows, indent=1) + "\n")
    (options.output / "numbers.md").write_text(markdown(rows, found))
    return int(any("time" not in r["results"].get("hologram", {"time": 0}) or r["wrong"] for r in rows))


def _measured(case: Case, frameworks: list[str], limit: float) -> Row:
    """The row of a case: each framework in a fresh process."""
    results: dict[str, Answer] = {}
    with tempfile.TemporaryDirectory() as folder:
        for f in (f for f in frameworks if f in case.frameworks):
            cache = {"HOLOGRAM_CACHE_DIR": tempfile.mkdtemp(dir=folder), "JAX_ENABLE_X64": "1", "TORCHINDUCTOR_CACHE_DIR": folder}
            with Worker("benchmarks.numbers", f, str(limit), seconds=60 + 10 * limit, quiet=True, environment=cache) as worker:
                results[f] = worker.ask(case.name)
    found = row(case, results)
    print(line(found), flush=True)
    return found


def row(case: Case, results: dict[str, Answer]) -> Row:
    """What was found of a case beside what is asked."""
    reference = next((results[f]["values"] for f in ("numpy", "jax", "torch") if "values" in results.get(f, {})), None)
    ours = results.get("hologram", {})
    asked = ([(f"{case.asked * 1e6:,.1f} µs", ours["time"] <= case.asked)] if case.asked and "time" in ours else []) + [
        (f"{most:g} × {f}", ours["time"] <= most * results[f]["time"])
        for f, most in case.asked_ratios
        if "time" in ours and "time" in results.get(f, {})
    ]
    if case.programs is not None and "programs" in ours:
        asked.append((f"{case.programs} programs", ours["programs"] <= case.programs))
    wrong = reference is not None and "values" in ours and not _agree(ours["values"], reference)
    return {"case": case.name, "results": results, "asked": asked, "met": all(m for _, m in asked) and not wrong, "wrong": wrong}


def _agree(ours: list[list[float]], theirs: list[list[float]]) -> bool:
    """Whether the results that both have, for the first numbers, are close."""
    return all(len(a) == len(b) and np.allclose(a, b, rtol=1e-3, atol=1e-5) for a, b in zip(ours, theirs, strict=False))


def line(found: Row) -> str:
    """A case on one line, for whoever watches."""
    cells = "  ".join(f"{f} {_cell(r)}" for f, r in found["results"].items())
    return f"{found['case']:56s} {cells} | {', '.join(a for a, _ in found['asked'])} | {'yes' if found['met'] else 'no'}"


def markdown(rows: list[Row], frameworks: list[str]) -> str:
    cells = [
        [r["case"], *(_cell(r["results"].get(f, {})) for f in frameworks), ", ".join(a for a, _ in r["asked"]), "yes" if r["met"] else "no"]
        for r in rows
    ]
    machine = f"{platform.machine()} {platform.system()}, Python {platform.python_version()}"
    head = f"{machine}. Microseconds a turn with a new number; programs compiled / turns."
    return f"# Numbers that change\n\n{head}\n\n{report.table(['case', *frameworks, 'asked', 'met'], cells)}\n"


def _cell(result: Answer) -> str:
    if "time" not in result:
        return str(result.get("error", "-"))
    programs = f" ({result['programs']}/{result['turns']})" if result.get("programs") is not None else ""
    return f"{result['time'] * 1e6:,.1f}{programs}"


# --- one framework, in a process of its own -----------------------------------------------------------------------------------------------


def _hologram() -> SimpleNamespace:
    import hologram as hg
    import hologram.numpy as hnp
    from hologram.trace import compiling

    count, compile_graph = [0], compiling.compile_graph

    def counted(*args: Any, **options: Any) -> Any:
        count[0] += 1
        return compile_graph(*args, **options)

    compiling.compile_graph = counted
    return SimpleNamespace(
        xp=hnp,
        copy_in=hg.tensor,
        done=hg.block_until_ready,
        set=lambda x, k, v: x.at[k].set(v),
        gradient=lambda f: hg.jit(hg.grad(f)),
        compiled=lambda model: importlib.import_module("torch").compile(model, backend="hologram"),
        programs=lambda: count[0],
    )


def _numpy() -> SimpleNamespace:
    def set_(x: Any, k: int, v: float) -> Any:
        y = x.copy()
        y[k] = v
        return y

    return SimpleNamespace(xp=np, copy_in=np.array, done=lambda x: x, set=set_, programs=lambda: None)


def _jax() -> SimpleNamespace:
    import jax
    import jax.numpy as jnp

    count = [0]

    def listen(event: str, seconds: float, **_: Any) -> None:
        count[0] += event.endswith("backend_compile_duration")

    jax.monitoring.register_event_duration_secs_listener(listen)
    gradient = lambda f: jax.jit(jax.grad(f))  # noqa: E731
    done = jax.block_until_ready
    return SimpleNamespace(xp=jnp, copy_in=jnp.asarray, done=done, set=lambda x, k, v: x.at[k].set(v), gradient=gradient, programs=lambda: count[0])


def _torch() -> SimpleNamespace:
    import torch

    def set_(x: Any, k: int, v: float) -> Any:
        y = x.clone()
        y[k] = v
        return y

    return SimpleNamespace(
        xp=torch,
        copy_in=lambda a: torch.from_numpy(np.array(a)),
        done=lambda x: x,
        set=set_,
        gradient=lambda f: torch.compile(torch.func.grad(f), dynamic=True),
        compiled=lambda model: torch.compile(model, dynamic=True),
        programs=lambda: torch._dynamo.utils.counters["stats"]["unique_graphs"] if "torch._dynamo" in sys.modules else None,
    )


def turns(framework: Any, case: Case, limit: float) -> Answer:
    """The answer of one framework: the median time of a turn, the programs that were compiled, and the first results."""
    before = framework.programs()
    turn = case.turns(framework)
    times: list[float] = []
    values: list[list[float]] = []
    end = time.perf_counter() + limit
    for i, k in enumerate(case.numbers):
        start = time.perf_counter()
        result = turn(k)
        times.append(time.perf_counter() - start)
        if len(values) < 4:
            values.append(np.asarray(result, dtype=np.float64).ravel()[:64].tolist())
        if i >= case.warm and time.perf_counter() > end:
            break
    programs = framework.programs()
    made = None if programs is None else programs - (before or 0)
    return {"time": statistics.median(times[case.warm :]), "turns": len(times), "programs": made, "values": values}


MAKERS: dict[str, Callable[[], SimpleNamespace]] = {"hologram": _hologram, "numpy": _numpy, "jax": _jax, "torch": _torch}


def _serve(name: str, limit: float) -> None:
    framework = MAKERS[name]()
    with contextlib.suppress(AttributeError):  # a backend starts before turns are timed
        np.asarray(framework.done(framework.copy_in(np.ones(3, np.float32)) + framework.copy_in(np.ones(3, np.float32))))
    for case in sys.stdin:
        try:
            answer = turns(framework, CASES[case.strip()], limit)
        except Exception as e:  # one framework's trouble with one case does not end the run
            answer = {"error": f"{type(e).__name__}: {e}".splitlines()[0][:200]}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] in FRAMEWORKS:
        os.environ.setdefault("OMP_NUM_THREADS", "2")
        _serve(sys.argv[1], float(sys.argv[2]))
    else:
        sys.exit(main())
