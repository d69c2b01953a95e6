"""The page of measured figures: plots and tables from ``benchmarks/results``, or from the table in README.md where nothing was measured here."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import report
from docs.site.staging import ROOT, write_if_changed

STYLE = Path(__file__).with_name("matplotlibrc")
OURS, FLOOR = "Hologram", "floor"
MEASURED = re.compile(r"<!-- measured.*?-->\n(.*?)\n\n(\|.*?)\n<!-- /measured -->", re.DOTALL)
SUBJECTS = {  # of the cases of README.md: the first that fits
    "Networks": r"mlp|block|train",
    "Calls with eight elements": r"dispatch|lazy",
    "Derivatives and loops": r"\w+_grad|hessian|scan ",
    "Products, attention, convolutions": r"mat|linear|attention|conv",
    "Rows, sums, sorts, indices": r"softmax|layernorm|logsumexp|sum|cumsum|sort|take|scatter|pairwise|jacobi",
    "Elementwise": r"",
}
MARKERS = {
    "NumPy": ("o", "#e07a3f"),
    "torch": ("s", "#8c7ae6"),
    "inductor": ("P", "#d45d79"),
    "JAX": ("D", "#5aa469"),
    "numexpr": ("^", "#b59f3b"),
    FLOOR: ("|", "#808080"),
}
NAMES = {"hologram": OURS, "numpy": "NumPy", "jax": "JAX"}
HEAD = """# Measured figures

Plots of the benchmarks. [How they are measured](benchmarks.md) says what a figure is; [comparison](comparison.md) says where the others are better.

Each point is the time of a call divided by Hologram's in the same run: right of the line at 1 the others are slower, left of it they are faster. The
axis is logarithmic. The floor is what the machine allows: bytes at the bandwidth of memory, or operations at the peak of multiply-adds.
"""


@dataclass
class Row:
    """A case: the microseconds of a call by framework, and of the floor, where it has one."""

    case: str
    times: dict[str, float]


def from_readme(text: str) -> tuple[str, dict[str, list[Row]]]:
    """What README.md says of machine and date, and the cases of its table by subject."""
    found = MEASURED.search(text)
    assert found, "README.md has a table between <!-- measured --> and <!-- /measured -->"
    head, _, *lines = [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in found[2].splitlines()]
    groups: dict[str, list[Row]] = {}
    for case, *cells in lines:
        times = {name: float(cell.replace(",", "")) for name, cell in zip(head[1:], cells, strict=True) if cell}
        groups.setdefault(next(s for s, pattern in SUBJECTS.items() if re.match(pattern, case)), []).append(Row(case, times))
    return found[1].replace("\n", " "), groups


def from_results(results: dict[str, Any]) -> dict[str, list[Row]]:
    """The cases of ``results.json`` by group; operations, each a group of sizes there, by size. Results that are wrong are left out."""
    groups: dict[str, list[Row]] = {}
    for row in results["cases"]:
        times = {NAMES.get(f, f): r["time"] * 1e6 for f, r in row["results"].items() if "time" in r and r["agrees"]}
        operation = re.fullmatch(rf"{re.escape(row['group'])} (\d+)", row["case"])
        name = f"Operations on {int(operation[1]):,} elements" if operation else row["group"].capitalize()
        groups.setdefault(name, []).append(Row(row["case"], times | ({FLOOR: row["floor"] * 1e6} if row["floor"] else {})))
    return groups


def draw(rows: Sequence[Row], path: Path) -> None:
    """Times relative to Hologram's, a line for each case."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [r for r in rows if OURS in r.times]
    with matplotlib.rc_context(fname=STYLE):
        figure, axis = plt.subplots(figsize=(7.4, 0.9 + 0.27 * len(rows)))
        axis.axvline(1, color="#2a9aa6", linewidth=2, label=OURS)
        for name, (marker, colour) in MARKERS.items():
            points = [(r.times[name] / r.times[OURS], y) for y, r in enumerate(rows) if name in r.times]
            if points:
                axis.plot(*zip(*points, strict=True), marker, color=colour, label=name, markersize=9 if name == FLOOR else 5, clip_on=False)
        axis.set(xscale="log", yticks=range(len(rows)), yticklabels=[r.case for r in rows], ylim=(len(rows) - 0.4, -0.6))
        axis.set_xlabel(f"time of a call, relative to {OURS}")
        axis.xaxis.set_major_formatter(lambda x, _: f"{x:g}×")
        axis.grid(axis="both", linewidth=0.6)
        axis.tick_params(axis="y", length=0)
        figure.legend(loc="outside upper center", ncols=6, fontsize="small")
        figure.savefig(path, metadata={"Software": None})
        plt.close(figure)


def write(folder: Path, measured: Path, readme: Path = ROOT / "README.md") -> set[Path]:
    """Writes the page and its plots; gives their paths."""
    file = measured / "results.json"
    if file.exists():
        results = json.loads(file.read_text())
        groups, source = from_results(results), f"Measured on this machine by `make bench`: {results.get('machine', '')}."
        tables = report.markdown(results).replace("# Measured\n", "## Tables\n", 1).replace("\n## ", "\n### ").replace("### Tables", "## Tables")
    else:
        machine, groups = from_readme(readme.read_text())
        source = "`benchmarks/results` is not here: `make bench` measures on your machine and writes it. "
        source += f"These are the figures of [the overview](overview.md#measured): {machine}"
        tables = ""
    page, written = [HEAD, source], {folder / "measured.md"}
    for name, rows in groups.items():
        picture = folder / "figures" / f"{re.sub(r'[^a-z0-9]+', '_', name.lower())}.png"
        draw(rows, picture)
        written.add(picture)
        page += [f"## {name}", f"![Times relative to Hologram's: {name.lower()}](figures/{picture.name}){{.wide}}"]
    write_if_changed(folder / "measured.md", "\n\n".join([*page, tables]) + "\n")
    return written
