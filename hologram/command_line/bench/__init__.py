"""Measures this machine and this installation in some seconds: calls, memory, arithmetic, a matrix product, a fused chain, compiling.

Hologram, NumPy and what limits both take turns, and the fastest of many rounds counts. `python -m benchmarks.run` measures more.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from typing import TYPE_CHECKING, Any

from hologram.command_line.options import add_json
from hologram.command_line.result import Result, Table

if TYPE_CHECKING:
    from hologram.command_line.bench.timing import Measured

HELP = "short measures of this machine, beside NumPy and the machine's limits"
SECONDS = 1.5  # of a measure
BUSY = 0.5  # of the threads, by the average load


def add_arguments(command: argparse.ArgumentParser) -> None:
    add_json(command)
    command.add_argument("--seconds", type=_seconds, default=SECONDS, help="how long each measure takes turns (default: %(default)s)")


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is no time")
    return seconds


def run(options: argparse.Namespace) -> Result:
    from hologram.command_line.bench.measures import MEASURES
    from hologram.command_line.bench.timing import measured

    start = time.perf_counter()
    machine = _machine()
    found = measured(MEASURES, options.seconds)
    data: dict[str, Any] = {
        "machine": machine,
        "disturbed": _is_disturbed(machine),
        "measures": [m.as_dict() for m in found],
        "seconds": round(time.perf_counter() - start, 1),
    }
    title = ", ".join(f"{name} {value}" for name, value in machine.items())
    columns = ("measure", "Hologram", "NumPy", "limit", "unit", "of the limit")
    notes = "\n".join([f"  {m.name}: {m.about}" for m in found])
    if data["disturbed"]:
        notes += "\n\nOther programs were running: this machine can do better. `hologram doctor` names them."
    return Result(data, [Table(title, [_row(m) for m in found], columns, frozenset([1, 2, 3, 5])), "\n" + notes])


def _machine() -> dict[str, Any]:
    import numpy

    from hologram.backends.llvm.toolchain import target
    from hologram.backends.native.pool import num_threads
    from hologram.version import __version__

    load = round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None
    return {"processor": target.host().cpu, "threads": num_threads(), "hologram": __version__, "NumPy": numpy.__version__, "load": load}


def _is_disturbed(machine: dict[str, Any]) -> bool:
    """Whether others computed before the measures began."""
    return machine["load"] is not None and machine["load"] > BUSY * machine["threads"]


def _row(m: Measured) -> tuple[str, ...]:
    share = m.share_of_limit
    return (m.name, *(_number(x) for x in (m.hologram, m.numpy, m.limit)), m.unit, "" if share is None else f"{share:.0%}")


def _number(x: float | None) -> str:
    """Three digits."""
    return "" if x is None else f"{x:,.{max(0, 2 - math.floor(math.log10(x)))}f}" if x > 0 else "0"
