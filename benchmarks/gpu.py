"""The benchmarks of a GPU: ``python -m benchmarks.gpu [--device NAME] [--scale N] [-w REGEX]``.

Writes ``benchmarks/results/gpu.md`` and ``gpu.json``, anew after each figure: for each case the time of a call, the share of what the device can do,
and the times of peers (PyTorch eager and compiled, JAX) that see the GPU, each in a process of its own. What the device can do is measured too: bytes
copied a second, and the flops of the fastest product among all. Without a GPU it says why, prints what an H200 should take, and fails.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks import process, report
from benchmarks.gpu_cases import CASES, COPY, PEAKS, PRODUCTS, predicted
from benchmarks.gpu_worker import FIRST, RUNNERS
from benchmarks.process import Answer

OURS, OWN = "hologram", "own kernels"
PEERS = [name for name in RUNNERS if name not in (OURS, OWN)]
RIVALS = ("torch.compile", "jax")  # whom a ratio is of
SECONDS = 0.3  # of a measurement
MAX_SECONDS = 100  # that a figure may take, compilation included
CACHES = ("HOLOGRAM_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "CUDA_CACHE_PATH", "JAX_COMPILATION_CACHE_DIR")


class Worker(process.Worker):
    """A process that measures a framework."""

    def __init__(self, framework: str, device: str, scale: int, **environment: str) -> None:
        environment = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "PYTHONDONTWRITEBYTECODE": "", **environment}
        super().__init__("benchmarks.gpu_worker", framework, device, str(scale), str(SECONDS), seconds=MAX_SECONDS, environment=environment)


def answers(device: str, scale: int, cases: list[str], end: float) -> Iterator[tuple[str, str, Answer]]:
    """Framework, case and answer, until ``end``: ours first, then first calls, then the peers, then our own kernels in the library's place."""
    for framework in (OURS, FIRST, *PEERS, OWN):
        if framework == FIRST:
            yield from _first_calls(device, scale, end)
            continue
        worker = Worker(framework, device, scale)
        try:
            for name in [c for c in cases if framework != OWN or c in PRODUCTS]:
                if time.monotonic() > end:
                    return
                yield framework, name, worker.ask(name)
        finally:
            worker.end()


def _first_calls(device: str, scale: int, end: float) -> Iterator[tuple[str, str, Answer]]:
    """Each twice: the second, which counts, finds Python's bytecode and files in memory."""
    for framework in (OURS, OURS, *(p for p in PEERS for _ in range(2))):
        if time.monotonic() > end:
            return
        with tempfile.TemporaryDirectory() as folder:
            worker = Worker(framework, device, scale, **{name: str(Path(folder, name)) for name in CACHES})
            yield framework, FIRST, worker.ask(FIRST)
            worker.end()


def rates(found: dict[str, dict[str, Answer]], n: int) -> tuple[float, dict[str, float]]:
    """Bytes a second of the fastest copy, and flops a second of the fastest product of each type, so far; those of an H200 until there are any."""
    copy = [CASES["copy"].nbytes(n) / a["time"] for a in found.get("copy", {}).values() if "time" in a]
    peaks = dict(PEAKS)
    for name in PRODUCTS:
        done = [CASES[name].flops(n) / a["time"] for a in found.get(name, {}).values() if "time" in a]
        peaks[CASES[name].dtype] = max(done, default=PEAKS[CASES[name].dtype])
    return max(copy, default=COPY), peaks


def markdown(title: str, found: dict[str, dict[str, Answer]], n: int) -> str:
    """All figures so far, as tables."""
    copy, peaks = rates(found, n)
    frameworks = [f for f in RUNNERS if any("time" in row.get(f, {}) for name, row in found.items() if name != FIRST)]
    rows, failures = [], []
    for name, row in found.items():
        failures += [f"- {name}, {f}: {a['error']}" for f, a in row.items() if "error" in a]
        if name == FIRST or OURS not in row or "time" not in row[OURS]:
            continue
        times = {f: a["time"] for f, a in row.items() if "time" in a}
        rival = min((times[f] for f in RIVALS if f in times), default=None)
        share = f"{predicted(CASES[name], n, copy, peaks) / times[OURS]:.0%}"
        cells = [f"{times[f] * 1e6:,.1f}" if f in times else "" for f in frameworks]
        rows.append([name, *cells, share, f"{rival / times[OURS]:.2f}" if rival else "", f"{row[OURS]['host'] * 1e6:,.1f}"])
    head = ["case", *(f"{f}, µs" for f in frameworks), "of the roofline", "best of compiled peers / ours", "until ours returns, µs"]
    parts = [
        f"# {title}",
        f"{n:,} elements. Copies {copy / 1e9:,.0f} GB/s; products " + ", ".join(f"{d} {r / 1e12:,.0f} TFLOP/s" for d, r in peaks.items()) + ".",
    ]
    parts.append(report.table(head, rows))
    first = {f: a for f, a in found.get(FIRST, {}).items() if "first" in a}
    if first:
        lines = [[f, f"{a['start'] * 1e3:,.0f}", f"{a['first'] * 1e3:,.0f}"] for f, a in first.items()]
        remark = "## First call of gelu\n\nIn a fresh process with empty caches; milliseconds."
        parts += [remark, report.table(["framework", "import, first array on the device", "first call"], lines)]
    if failures:
        parts += ["## Not measured", "\n".join(failures)]
    return "\n\n".join(parts) + "\n"


def expectation(n: int) -> str:
    """What an H200 should take, as a table."""
    rows = [[name, f"{c.nbytes(n):.3g}", f"{c.flops(n):.3g}", f"{predicted(c, n) * 1e6:,.1f}"] for name, c in CASES.items()]
    return report.table(["case", "bytes", "flops", "µs, at least"], rows) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", help="such as cuda:1")
    parser.add_argument("--scale", type=int, default=28, help="cases have 2^SCALE elements")
    parser.add_argument("-w", "--workloads", default=".", help="a regular expression: only cases whose name it finds")
    parser.add_argument("--seconds", type=float, default=480, help="after which nothing more is measured")
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results"))
    options = parser.parse_args()
    import hologram as hg
    from hologram.ir.devices import accelerator, resolve

    n, device = 1 << options.scale, resolve(options.device) if options.device else accelerator()
    if device is None:
        print(f"there is no GPU to measure:\n{hg.devices()}\n\nAn H200 should take:\n\n{expectation(n)}", file=sys.stderr)
        return 1
    title = hg.devices().details.get(device, device)
    print(title, flush=True)
    options.output.mkdir(parents=True, exist_ok=True)
    found: dict[str, dict[str, Answer]] = {}
    start = time.monotonic()
    cases = [name for name in CASES if re.search(options.workloads, name)]
    for framework, name, answer in answers(device, options.scale, cases, start + options.seconds):
        found.setdefault(name, {})[framework] = answer
        print(f"[{time.monotonic() - start:4.0f} s] {framework}: {name}: {_words(answer, name, found, n)}", flush=True)
        (options.output / "gpu.md").write_text(markdown(title, found, n))
        (options.output / "gpu.json").write_text(json.dumps({"device": title, "n": n, "cases": found}, indent=1))
    print(f"wrote {options.output / 'gpu.md'}")
    return int(not any("time" in row.get(OURS, {}) for row in found.values()))


def _words(answer: Answer, name: str, found: dict[str, dict[str, Answer]], n: int) -> str:
    if "error" in answer:
        return str(answer["error"])
    if name == FIRST:
        return f"{answer['start'] * 1e3:,.0f} ms to the first array, then {answer['first'] * 1e3:,.0f} ms"
    share = predicted(CASES[name], n, *rates(found, n)) / answer["time"]
    return f"{answer['time'] * 1e6:,.1f} µs, {share:.0%} of the roofline; returns after {answer['host'] * 1e6:,.1f} µs; first {answer['first']:.2f} s"


if __name__ == "__main__":
    sys.exit(main())
