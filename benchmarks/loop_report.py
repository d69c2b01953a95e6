"""Figures of the loop benchmarks as rows, lines and tables: what was asked, and whether it is met."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.loop_programs import CASES
from benchmarks.loop_programs.frameworks import MODULES
from benchmarks.loop_programs.program import Asked
from benchmarks.process import Answer

OURS = "hologram"
PEERS = ("jax", "numba")
FIRST_CALLS = Asked(jax=0.7, numba=0.3)

Row = dict[str, Any]


def row(name: str, results: dict[str, Answer], floor: float | None = None, first: bool = False) -> Row:
    """A case's figures: of calls, whose least time is ``floor``, or of first calls."""
    program, size = CASES[name]
    steps = program.steps(*size) if program.steps and not first else None
    found: Row = {"case": name, "group": program.group, "steps": steps, "floor": floor, "results": results}
    found["requirements"] = list(_requirements(found, FIRST_CALLS if first else program.asked))
    found["wrong"] = results.get(OURS, {}).get("agrees") is False
    found["met"] = _met(found)
    return found


def _requirements(found: Row, asked: Asked) -> Iterator[dict[str, Any]]:
    """What is asked, by name, and what was found: multiples of a peer's time or the floor, seconds a step. None: nothing to compare with."""
    times: dict[str, float] = {}
    for f, r in found["results"].items():
        if "time" in r and r.get("agrees", True):
            times[MODULES[f]] = min(r["time"], times.get(MODULES[f], r["time"]))  # Numba's better one, with threads or without
    ours = times.get(OURS)
    for peer in PEERS:
        if (most := getattr(asked, peer)) is not None:
            yield {"of": peer, "most": most, "found": ours / times[peer] if ours and peer in times else None}
    if asked.floor is not None:
        yield {"of": "floor", "most": asked.floor, "found": ours / found["floor"] if ours and found["floor"] else None}
    if asked.step is not None:
        yield {"of": "step", "most": asked.step, "found": ours / found["steps"] if ours and found["steps"] else None}


def _met(found: Row) -> bool | None:
    """Whether all that could be compared is met; None where nothing could."""
    ours = found["results"].get(OURS)
    if ours is None:
        return None
    if "time" not in ours or found["wrong"]:
        return False
    judged = [r["found"] <= r["most"] for r in found["requirements"] if r["found"] is not None]
    return all(judged) if judged else None


# --- text -------------------------------------------------------------------------------------------------------------------------------


def line(found: Row) -> str:
    """A case on one line, for whoever watches."""
    cells = [f"{f} {_time(r)}" for f, r in found["results"].items()]
    return f"{found['case']:42s} {'  '.join(cells)} | {_asked(found)} | {_verdict(found)}"


def markdown(results: dict[str, Any]) -> str:
    machine = f"{platform.machine()} {platform.system()}, Python {platform.python_version()}; {results['threads']} threads"
    groups: dict[str, list[Row]] = {}
    for found in results["cases"]:
        groups.setdefault(found["group"], []).append(found)
    what = "First calls in fresh processes" if results["first"] else "Calls"
    parts = [
        f"# Loops with indexed updates\n\n{machine}. {what}, in microseconds; a step in nanoseconds. "
        "Ratios are Hologram's time to the peer's or the floor's. Memory is what the plans have for intermediates, in MiB.",
        *(f"## {group.capitalize()}\n\n{_table(rows, results['frameworks'])}" for group, rows in groups.items()),
    ]
    errors = [f"- {r['case']}, {f}: {text}" for r in results["cases"] for f, a in r["results"].items() if (text := _trouble(a))]
    if errors:
        parts.append("## Not measured, wrong, or not compared\n\n" + "\n".join(errors))
    return "\n\n".join(parts) + "\n"


def _table(rows: list[Row], frameworks: list[str]) -> str:
    head = ["case", "floor", *frameworks, "a step", *(f"first, {f}" for f in frameworks), "memory", "found / asked", "met"]
    return report.table(head, [_cells(r, frameworks) for r in rows])


def _cells(found: Row, frameworks: list[str]) -> list[str]:
    results = found["results"]
    ours = results.get(OURS, {})
    floor = f"{found['floor'] * 1e6:,.1f}" if found["floor"] else ""
    step = f"{ours['time'] / found['steps'] * 1e9:,.1f}" if found["steps"] and "time" in ours else ""
    firsts = [f"{results[f]['first'] * 1e3:,.0f} ms" if "first" in results.get(f, {}) else "" for f in frameworks]
    memory = " / ".join(f"{results[f]['memory'] / 2**20:,.1f}" if "memory" in results.get(f, {}) else "-" for f in frameworks)
    return [
        found["case"],
        floor,
        *(_time(results[f]) if f in results else "" for f in frameworks),
        step,
        *firsts,
        memory,
        _asked(found),
        _verdict(found),
    ]


def _asked(found: Row) -> str:
    return ", ".join(_requirement(r) for r in found["requirements"])


def _requirement(asked: dict[str, Any]) -> str:
    if asked["of"] == "step":
        value = "?" if asked["found"] is None else f"{asked['found'] * 1e9:,.1f}"
        return f"{value} / {asked['most'] * 1e9:,.0f} ns a step"
    value = "?" if asked["found"] is None else f"{asked['found']:.2f}"
    return f"{value} / {asked['most']:g} × {asked['of']}"


def _verdict(found: Row) -> str:
    return {True: "yes", False: "no", None: "?"}[found["met"]]


def _time(result: Answer) -> str:
    if "time" not in result:
        return "error"
    return f"{result['time'] * 1e6:,.1f}{'' if result.get('agrees', True) else ' WRONG'}"


def _trouble(result: Answer) -> str:
    if "error" in result:
        return str(result["error"])
    if "unchecked" in result:
        return f"no reference: {result['unchecked']}"
    return "" if result["agrees"] else "another result than NumPy's"


def write(results: dict[str, Any], folder: Path, figures: Path | None = None) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (figures or folder / "loops.json").write_text(json.dumps(results, indent=1) + "\n")
    (folder / "loops.md").write_text(markdown(results))
