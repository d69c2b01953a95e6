"""The benchmarks of a GPU: ``python -m benchmarks.gpu [--device NAME] [--scale N] [-w REGEX]``.

Writes ``benchmarks/results/gpu.md`` and ``gpu.json``: for each case the time of a call, the share of what the device can do, and the times of peers
(PyTorch eager and compiled, JAX) that see the GPU. What the device can do is measured first: bytes copied a second, and the flops of the fastest
product among all. Without a GPU it says why, prints what an H200 should take, and fails.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

# An NVIDIA H200: bytes a second that a copy moves, and flops a second by kind of arithmetic
COPY = 4.3e12
PEAKS = {"float32": 60e12, "bfloat16": 800e12}
LAUNCH_SECONDS = 2.5e-6  # of a kernel in a captured graph, at least
SECONDS = 0.5  # of a measurement


class Case(NamedTuple):
    """``make(xp, n)`` gives a function of arrays in a namespace, and the arrays' shapes; ``nbytes`` and ``flops`` of a call at size n."""

    make: Callable[[Any, int], tuple[Callable[..., Any], list[tuple[int, ...]]]]
    nbytes: Callable[[int], float]
    flops: Callable[[int], float] = lambda n: 0.0
    dtype: str = "float32"
    kernels: int = 1


def _gelu(xp: Any, n: int) -> Any:
    return lambda x: 0.5 * x * (1 + xp.tanh(0.7978845608 * (x + 0.044715 * x * x * x))), [(n,)]


def _chain(xp: Any, n: int) -> Any:
    def f(x: Any, y: Any) -> Any:
        z = x * y + 1
        return xp.sqrt(z * z + x) - y * z

    return f, [(n,), (n,)]


def _adam(xp: Any, n: int) -> Any:
    def f(p: Any, g: Any, m: Any, v: Any) -> Any:
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        return p - 0.001 * m / (xp.sqrt(v) + 1e-8), m, v

    return f, [(n,)] * 4


def _softmax(xp: Any, n: int) -> Any:
    def f(x: Any) -> Any:
        e = xp.exp(x - xp.amax(x, axis=-1, keepdims=True))
        return e / xp.sum(e, axis=-1, keepdims=True)

    return f, [(n // 4096, 4096)]


def _layer_norm(xp: Any, n: int) -> Any:
    def f(x: Any) -> Any:
        c = x - xp.mean(x, axis=-1, keepdims=True)
        return c / xp.sqrt(xp.mean(c * c, axis=-1, keepdims=True) + 1e-5)

    return f, [(n // 4096, 4096)]


def _small_kernels(xp: Any, n: int) -> Any:
    def f(x: Any) -> Any:
        for _ in range(10):
            x = xp.tanh(x @ x) + xp.sum(x)
        return x

    return f, [(32, 32)]


def _product(xp: Any, n: int) -> Any:
    side = _side(n)
    return lambda x, y: x @ y, [(side, side), (side, side)]


def _side(n: int) -> int:
    """Of a product that belongs to size ``n``: 8192 at 2^28."""
    return max(64, int(round((n / 4) ** 0.5)))


CASES = {
    "gelu": Case(_gelu, lambda n: 8 * n),
    "chain": Case(_chain, lambda n: 12 * n),
    "adam": Case(_adam, lambda n: 28 * n),
    "softmax": Case(_softmax, lambda n: 8 * n),
    "layer norm": Case(_layer_norm, lambda n: 8 * n),
    "sum": Case(lambda xp, n: (lambda x: xp.sum(x), [(n,)]), lambda n: 4 * n),
    "max": Case(lambda xp, n: (lambda x: xp.amax(x), [(n,)]), lambda n: 4 * n),
    "running sum": Case(lambda xp, n: (lambda x: xp.cumsum(x, 0), [(n,)]), lambda n: 12 * n),
    "sort": Case(lambda xp, n: (lambda x: xp.sort(x), [(n,)]), lambda n: 8 * n),
    "20 small kernels": Case(_small_kernels, lambda n: 0, kernels=20),
    "product float32": Case(_product, lambda n: 12 * _side(n) ** 2, lambda n: 2 * _side(n) ** 3),
    "product bfloat16": Case(_product, lambda n: 6 * _side(n) ** 2, lambda n: 2 * _side(n) ** 3, "bfloat16"),
}


def predicted(case: Case, n: int, copy: float = COPY, peaks: dict[str, float] = PEAKS) -> float:
    """Seconds of a call by the roofline: the larger of its bytes and its flops at the device's rates, no less than its launches take."""
    return max(case.nbytes(n) / copy, case.flops(n) / peaks[case.dtype], case.kernels * LAUNCH_SECONDS)


def _timed(call: Callable[[], Any], wait: Callable[[Any], Any]) -> float:
    """Median seconds of a call that is waited for, after a few."""
    for _ in range(4):
        wait(call())
    seconds, end = [], time.perf_counter() + SECONDS
    while time.perf_counter() < end or len(seconds) < 5:
        start = time.perf_counter()
        wait(call())
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def _hologram(case: Case, n: int, device: str) -> float:
    import hologram as hg
    import hologram.numpy as hnp

    f, shapes = case.make(hnp, n)
    arrays = [hg.device_put(hnp.astype(hnp.asarray(_values(s)), case.dtype), device) for s in shapes]
    jitted = hg.jit(f, device=device)
    return _timed(lambda: jitted(*arrays), hg.block_until_ready)


def _torch(case: Case, n: int, compiled: bool) -> float:
    import torch

    f, shapes = case.make(torch, n)
    arrays = [torch.from_numpy(_values(s)).to("cuda", getattr(torch, case.dtype)) for s in shapes]
    g = torch.compile(f) if compiled else f
    return _timed(lambda: g(*arrays), lambda y: torch.cuda.synchronize())


def _jax(case: Case, n: int) -> float:
    import jax

    f, shapes = case.make(jax.numpy, n)
    arrays = [jax.device_put(_values(s)).astype(case.dtype) for s in shapes]
    g = jax.jit(f)
    return _timed(lambda: g(*arrays), jax.block_until_ready)


def _values(shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(0).random(shape, np.float32)


def _peers() -> dict[str, Callable[[Case, int], float]]:
    """Those that see a GPU."""
    found: dict[str, Callable[[Case, int], float]] = {}
    if importlib.util.find_spec("torch") is not None:
        import torch

        if torch.cuda.is_available():
            found["torch"] = lambda case, n: _torch(case, n, False)
            found["torch.compile"] = lambda case, n: _torch(case, n, True)
    if importlib.util.find_spec("jax") is not None:
        import jax

        if jax.default_backend() != "cpu":
            found["jax"] = _jax
    return found


def _attempt(measure: Callable[[Case, int], float], case: Case, n: int) -> float | str:
    try:
        return measure(case, n)
    except Exception as e:  # a peer's failure is its result
        return f"{type(e).__name__}: {e}".splitlines()[0]


def _rates(device: str, n: int) -> tuple[float, dict[str, float]]:
    """Bytes a second of a copy on the device, and the flops a second of the best product there of each type."""
    copy = Case(lambda xp, n: (lambda x: x + 0, [(n,)]), lambda n: 8 * n)
    products = {c.dtype: c for name, c in CASES.items() if name.startswith("product")}
    peers = _peers()
    best = {}
    for dtype, case in products.items():
        seconds = [_attempt(m, case, n) for m in (lambda c, k: _hologram(c, k, device), *peers.values())]
        best[dtype] = case.flops(n) / min(s for s in seconds if isinstance(s, float))
    return copy.nbytes(n) / _hologram(copy, n, device), best


def _table(rows: list[dict[str, Any]], columns: list[str]) -> str:
    lines = ["| case | " + " | ".join(f"{c}, µs" for c in columns) + " | of the roofline |", "|---|" + "---|" * (len(columns) + 1)]
    for row in rows:
        cells = [f"{row[c] * 1e6:,.1f}" if isinstance(row.get(c), float) else str(row.get(c, "")) for c in columns]
        share = row["roofline"] / row["hologram"] if isinstance(row.get("hologram"), float) else None
        lines.append(f"| {row['case']} | " + " | ".join(cells) + f" | {f'{share:.0%}' if share else ''} |")
    return "\n".join(lines) + "\n"


def expectation(n: int) -> str:
    """What an H200 should take, as a table."""
    lines = ["| case | bytes | flops | µs, at least |", "|---|---|---|---|"]
    for name, case in CASES.items():
        lines.append(f"| {name} | {case.nbytes(n):.3g} | {case.flops(n):.3g} | {predicted(case, n) * 1e6:,.1f} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", help="such as cuda:1")
    parser.add_argument("--scale", type=int, default=28, help="cases have 2^SCALE elements")
    parser.add_argument("-w", "--workloads", default=".", help="a regular expression: only cases whose name it finds")
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results"))
    options = parser.parse_args()
    import hologram as hg
    from hologram.backends.devices import accelerator, resolve

    n, device = 1 << options.scale, resolve(options.device) if options.device else accelerator()
    if device is None:
        print(f"there is no GPU to measure:\n{hg.devices()}\n\nAn H200 should take:\n\n{expectation(n)}", file=sys.stderr)
        return 1
    copy, peaks = _rates(device, n)
    print(f"{hg.devices().details[device]}: copies {copy / 1e9:,.0f} GB/s, products {peaks}", flush=True)
    peers = _peers()
    rows = []
    for name, case in CASES.items():
        if re.search(options.workloads, name):
            row: dict[str, Any] = {"case": name, "roofline": predicted(case, n, copy, peaks)}
            row["hologram"] = _attempt(lambda c, k: _hologram(c, k, device), case, n)
            row.update({peer: _attempt(m, case, n) for peer, m in peers.items()})
            rows.append(row)
            print(row, flush=True)
    options.output.mkdir(parents=True, exist_ok=True)
    head = f"# {hg.devices().details[device]}\n\nCopies {copy / 1e9:,.0f} GB/s. {n:,} elements.\n\n"
    (options.output / "gpu.md").write_text(head + _table(rows, ["hologram", *peers]))
    (options.output / "gpu.json").write_text(json.dumps({"copy": copy, "peaks": peaks, "n": n, "cases": rows}, indent=1))
    print(f"wrote {options.output / 'gpu.md'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
