"""Products beside the machine's limits: the peak of multiply-adds, a roofline (Williams and others 2009), what docs/products.md shows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

GROUP = "products"
MARKS = "<!-- measured -->", "<!-- /measured -->"


def plot(results: dict[str, Any], path: Path) -> None:
    """Operations a second against operations a byte, a colour for each framework, under the limits of bandwidth and peak."""
    rows = [r for r in results["cases"] if r["group"] == GROUP]
    try:
        import matplotlib
    except ImportError:
        return
    if not rows:
        return
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(9, 5.5), layout="constrained")
    intensities = sorted(r["flops"] / r["bytes"] for r in rows)
    ends = [intensities[0] / 2, results["peak"] / results["bandwidth"], intensities[-1] * 2]
    axis.loglog(ends, [min(x * results["bandwidth"], results["peak"]) / 1e9 for x in ends], color="black", label="limit")
    for framework in results["frameworks"]:
        points = [(r["flops"] / r["bytes"], r["flops"] / t / 1e9) for r in rows if (t := r["results"].get(framework, {}).get("time"))]
        if points:
            axis.scatter(*zip(*points, strict=True), s=18, alpha=0.8, label=framework)
    axis.set(title=f"Products, {results['threads']} threads", xlabel="operations a byte", ylabel="GFLOP/s")
    axis.grid(alpha=0.3)
    axis.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=80)
    plt.close(figure)


def document(results: dict[str, Any], table: str, folder: Path) -> None:
    """Puts the table into products.md, between its marks, and the plot beside it."""
    threads = f"{results['threads']} thread{'s' if results['threads'] > 1 else ''}"
    machine = f"{threads}, {results['bandwidth'] / 1e9:.0f} GB/s, {results['peak'] / 1e9:.0f} GFLOP/s"
    text = f"{MARKS[0]}\nMicroseconds a call, medians of one run; {machine}.\n\n{table}\n{MARKS[1]}"
    page = folder / "products.md"
    page.write_text(re.sub(f"{MARKS[0]}.*{MARKS[1]}", lambda _: text, page.read_text(), flags=re.DOTALL))
    plot(results, folder / "products.png")
