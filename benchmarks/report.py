"""Results as text lines, Markdown tables, JSON and plots."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import products

OURS = "hologram"
PARTS: dict[str, tuple[str, str, tuple[str, ...]]] = {  # by the name of the results: title, remark, columns
    "compile time": (
        "First calls",
        "Milliseconds. The import and the backend's start count only in what says *to result*.",
        ("case", "framework", "import", "first call", "second process", "process to result", "second process to result"),
    ),
    "throughput": ("Long programs", "Milliseconds, for a chain of operations.", ("operations", "to kernels", "first call")),
    "launches": ("Reduction", "Operations, and kernels launched.", ("case", "operations", "canonical", "kernels", "XLA's launches")),
    "memory": ("Memory", "Bytes of intermediates; page faults in a steady call.", ("case", "peak", "lower bound", "page faults a call")),
}


def line(row: dict[str, Any]) -> str:
    """A case on one line, for whoever watches."""
    cells = [f"{f} {_microseconds(r)}" for f, r in row["results"].items()]
    return f"{row['case']:34s} floor {row['floor'] * 1e6:10.2f} | " + "  ".join(cells)


def write(results: dict[str, Any], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    results = {"machine": f"{platform.machine()} {platform.system()}, Python {platform.python_version()}", **results}
    (folder / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    (folder / "results.md").write_text(markdown(results))
    plot(results["cases"], folder)
    products.plot(results, folder / "products.png")


def markdown(results: dict[str, Any]) -> str:
    threads, gigabytes = results["threads"], results["bandwidth"] / 1e9
    parts = [
        "# Measured",
        f"{results['machine']}; {threads} threads; memory gives {gigabytes:.1f} GB/s. Times are in microseconds a call, medians. The floor is "
        "the bytes that must be moved, at that bandwidth, or the operations of a product, at the peak of multiply-adds: data that stay in a cache "
        "can be faster. The ratio is Hologram's time to the best other's.",
    ]
    frameworks = results["frameworks"]
    for group, rows in _grouped(results["cases"]).items():
        parts.append(f"## {group.capitalize()}\n\n{cases(rows, frameworks, results.get('peak'))}")
    for name, (title, remark, columns) in PARTS.items():
        if rows := results.get(name):
            parts.append(f"## {title}\n\n{remark}\n\n{_figures(rows, columns)}")
    return "\n\n".join(parts) + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(cells) + " |" for cells in (head, ["---"] + ["---:"] * (len(head) - 1), *rows)]
    return "\n".join(lines)


def cases(rows: Sequence[dict[str, Any]], frameworks: Sequence[str], peak: float | None = None) -> str:
    """The table of cases of one group; of products with their share of the peak in place of the bandwidth."""
    counted = peak is not None and all(r.get("flops") for r in rows)
    head = ["case", "floor", *frameworks, "ratio", "× floor", "% of peak" if counted else "GB/s"]
    return table(head, [_case_cells(r, frameworks, peak if counted else None) for r in rows])


def ratio(row: dict[str, Any]) -> float | None:
    """Hologram's time to the best other's, where both have one."""
    times = {f: r["time"] for f, r in row["results"].items() if "time" in r}
    ours = times.pop(OURS, None)
    return ours / min(times.values()) if ours and times else None


def _case_cells(row: dict[str, Any], frameworks: Sequence[str], peak: float | None) -> list[str]:
    cells = [row["case"], f"{row['floor'] * 1e6:,.2f}"]
    cells += [_microseconds(row["results"][f]) if f in row["results"] else "" for f in frameworks]
    ours = row["results"].get(OURS, {}).get("time")
    r = ratio(row)
    if not ours:
        return [*cells, "", "", ""]
    rate = f"{row['bytes'] / ours / 1e9:.1f}" if peak is None else f"{row['flops'] / ours / peak:.0%}"
    return [*cells, f"{r:.2f}" if r else "", f"{ours / row['floor']:.2f}", rate]


def _microseconds(result: dict[str, Any]) -> str:
    if "time" not in result:
        return "error"
    return f"{result['time'] * 1e6:,.2f}{'' if result['agrees'] else ' WRONG'}"


def _grouped(rows: Iterable[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(row["group"], []).append(row)
    return groups


def _figures(rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> str:
    shown = [columns if "error" not in r else (columns[0], "error") for r in rows]
    return table(columns, [[_cell(r.get(c, "")) for c in names] for r, names in zip(rows, shown, strict=True)])


def _cell(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:,.1f}" if isinstance(value, float) else f"{value:,}"


def plot(rows: Iterable[dict[str, Any]], folder: Path) -> None:
    """For each operation the bandwidth against the size, one line for each framework."""
    try:
        import matplotlib
    except ImportError:
        return
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    groups = {g: r for g, r in _grouped(rows).items() if g not in ("pipelines", "dispatch", products.GROUP)}
    if not groups:
        return
    columns = min(4, len(groups))
    figure, axes = plt.subplots(
        -(-len(groups) // columns), columns, figsize=(4 * columns, 3 * -(-len(groups) // columns)), squeeze=False, layout="constrained"
    )
    for axis, (group, cases) in zip(axes.flat, groups.items(), strict=False):
        for framework in dict.fromkeys(f for c in cases for f in c["results"]):
            points = [
                (int(c["case"].split()[-1]), c["bytes"] / c["results"][framework]["time"] / 1e9)
                for c in cases
                if "time" in c["results"].get(framework, {})
            ]
            axis.loglog(*zip(*points, strict=True), marker=".", label=framework) if points else None
        axis.set(title=group, xlabel="elements", ylabel="GB/s")
    for axis in list(axes.flat)[len(groups) :]:
        axis.set_axis_off()
    axes[0, 0].legend()
    figure.savefig(folder / "operations.png", dpi=100)
    plt.close(figure)
