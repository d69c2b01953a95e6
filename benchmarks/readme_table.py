"""Writes the table of README.md from the results of a run: ``python -m benchmarks.readme_table results.json --date 2026-01-31``.

The cases are those that the table has, in its order; the best framework of each is bold. The file has all of them: it is ``results.json`` of
``python -m benchmarks.run``, or an object with, by case, ``limit`` (the floor in seconds) and by framework ``time`` (seconds) and ``wrong``.
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

README = Path(__file__).parent.parent / "README.md"
NAMES = {"hologram": "Hologram", "numpy": "NumPy", "torch": "torch", "jax": "JAX"}
TABLE = re.compile(r"(<!-- measured.*?-->\n)(.*?)\n\n(\|.*?)\n(<!-- /measured -->)", re.DOTALL)
FIRST = "workload, µs a call"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("--date", default=datetime.date.today().isoformat(), help="of the run")
    options = parser.parse_args()
    README.write_text(with_results(README.read_text(), json.loads(options.results.read_text()), options.date))


def with_results(text: str, results: Mapping[str, Any], date: str) -> str:
    """The text of README.md with the figures of a run. Raises SystemExit for a case that is missing, failed or wrong."""
    found = TABLE.search(text)
    assert found, "README.md has a table between <!-- measured --> and <!-- /measured -->"
    measured = _by_case(results)
    rows = [(case, *_times(measured.get(case), case)) for case in cases_of(found[3])]
    return text[: found.start()] + found[1] + _machine(found[2], results, date) + "\n\n" + table(rows) + "\n" + found[4] + text[found.end() :]


def cases_of(table: str) -> list[str]:
    """The first column of a table, without its head."""
    return [line.split("|")[1].strip() for line in table.splitlines()[2:]]


def _by_case(results: Mapping[str, Any]) -> dict[str, tuple[float, dict[str, float | None]]]:
    """The floor and the times of frameworks, in seconds; None for what failed or is wrong."""
    if "cases" not in results:
        return {
            case: (row["limit"], {f: None if row[f].get("wrong", True) else row[f]["time"] for f in NAMES if f in row})
            for case, row in results.items()
        }
    rows = {row["case"]: (row["floor"], row["results"]) for row in results["cases"]}
    return {case: (floor, {f: got[f]["time"] if got[f].get("agrees") else None for f in NAMES if f in got}) for case, (floor, got) in rows.items()}


def _times(row: tuple[float, Mapping[str, float | None]] | None, case: str) -> tuple[dict[str, float], float | None]:
    """Microseconds by framework, and of the floor, if the case has one."""
    if row is None:
        raise SystemExit(f"the results lack the case {case}")
    floor, seconds = row
    if bad := [f for f, time in seconds.items() if time is None]:
        raise SystemExit(f"{case} failed or is wrong in {', '.join(bad)}")
    return {f: time * 1e6 for f, time in seconds.items() if time is not None}, floor * 1e6 or None


def _machine(sentence: str, results: Mapping[str, Any], date: str) -> str:
    """What stands before the table, with the date of the run, and the limits and threads if it tells them."""
    changes = [(r"\d{4}-\d\d-\d\d", date)]
    if "threads" in results:
        limits = f"{results['bandwidth'] / 1e9:.0f} GB/s of memory, {results['peak'] / 1e9:.0f} GFLOP/s"
        changes += [(r"\d+ GB/s of memory, \d+ GFLOP/s", limits), (r"(?:two|\d+) threads", f"{results['threads']} threads")]
    for pattern, new in changes:
        sentence, count = re.subn(pattern, new, sentence)
        assert count == 1, f"{pattern} stands {count} times before the table"
    return sentence


def table(rows: Sequence[tuple[str, Mapping[str, float], float | None]]) -> str:
    """Cases with the time of each framework and the floor, in microseconds; the shortest time is bold, several where they print alike."""
    lines = [f"| {' | '.join([FIRST, *NAMES.values(), 'floor'])} |", "|---" * (len(NAMES) + 2) + "|"]
    for case, times, floor in rows:
        texts = {f: figure(times[f]) if f in times else "" for f in NAMES}
        best = figure(min(times.values()))
        cells = [f"**{t}**" if t == best else t for t in texts.values()]
        lines.append(f"| {' | '.join([case, *cells, '' if floor is None else figure(floor)])} |")
    return "\n".join(lines)


def figure(microseconds: float) -> str:
    """Three digits, or whole microseconds."""
    decimals = 2 if microseconds < 9.995 else 1 if microseconds < 99.95 else 0
    return f"{microseconds:,.{decimals}f}"


if __name__ == "__main__":
    main()
