"""The SDK beside NumPy and torch: ``python -m benchmarks.sdk``. Prints Markdown tables.

Every peer computes into an array that is there already (``out=``), as the SDK does. Cases of a table take turns in short rounds, so that a
machine that becomes slower becomes slower for all; a figure is the best round's time of one call.
"""

from __future__ import annotations

import argparse
import ctypes
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import hologram as hg

Call = Callable[[], Any]
SIZES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
TRANSFER = 10_000_000  # float32 elements
MEASURABLE = 1e-3  # seconds: a round is a group of calls at least this long
ROUNDS = 25


def best_of(calls: dict[str, Call], rounds: int = ROUNDS) -> dict[str, float]:
    """Seconds of one call of each, the best of ``rounds`` taken in turns."""
    repeats = {name: _repeats(call) for name, call in calls.items()}
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for name, call in calls.items():
            best[name] = min(best[name], _seconds(call, repeats[name]) / repeats[name])
    return best


def _repeats(call: Call) -> int:
    call()  # which may compile
    repeat = 1
    while (elapsed := _seconds(call, repeat)) < MEASURABLE:
        repeat = max(2 * repeat, int(repeat * MEASURABLE / max(elapsed, 1e-9)))
    return repeat


def _seconds(call: Call, repeat: int) -> float:
    start = time.perf_counter()
    for _ in range(repeat):
        call()
    return time.perf_counter() - start


def element_wise(executor: hg.Executor, op: str, n: int) -> dict[str, Call]:
    """An op of the SDK and its peers on ``n`` elements, each into memory of its own."""
    rng = np.random.default_rng(0)
    arrays = [rng.uniform(0.5, 2, n).astype(np.float32) for _ in range(1 if op == "relu" else 2)]
    buffers = [executor.allocate(n) for _ in arrays]
    for buffer, array in zip(buffers, arrays, strict=True):
        buffer.from_numpy(array)
    out, filled = executor.allocate(n), np.empty(n, np.float32)
    run = getattr(hg.ops, "vector_" + op)
    ufunc = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "relu": lambda a, out: np.maximum(a, 0, out=out)}[op]
    calls: dict[str, Call] = {"hologram": lambda: run(executor, *buffers, out), "NumPy": lambda: ufunc(*arrays, out=filled)}
    try:
        import torch
    except ImportError:
        return calls
    tensors, result = [torch.from_numpy(a.copy()) for a in arrays], torch.empty(n)
    function = {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "relu": lambda a, out: torch.clamp_min(a, 0, out=out)}[op]
    return calls | {"torch": lambda: function(*tensors, out=result)}


def transfers(executor: hg.Executor, n: int) -> list[tuple[str, dict[str, Call]]]:
    """What goes in and out of a buffer of ``n`` float32 elements, beside the plain way to move the same bytes."""
    source, target = np.ones(n, np.float32), np.zeros(n, np.float32)
    buffer, nbytes = executor.allocate(n), 4 * n
    data = source.tobytes()
    wrapped, into = hg.Buffer.wrap(source), hg.Buffer.wrap(target)

    def copied(to: np.ndarray, of: Any) -> Call:
        a, b = to.ctypes, of if isinstance(of, bytes) else of.ctypes  # which keep the arrays
        return lambda: ctypes.memmove(a, b, nbytes)

    other = np.zeros(n, np.float32)
    memory = buffer.to_numpy()
    return [
        ("in, from_numpy", {"hologram": lambda: buffer.from_numpy(source), "memcpy": copied(other, source)}),
        ("out, to the caller's array", {"hologram": lambda: np.copyto(target, buffer.to_numpy()), "memcpy": copied(target, other)}),
        ("wrapped memory to wrapped memory", {"hologram": lambda: hg.ops.memcpy(executor, wrapped, into), "memcpy": copied(target, source)}),
        ("out, to_bytes", {"hologram": buffer.to_bytes, "bytes(view)": lambda: bytes(memory.data)}),
        ("in, from_bytes", {"hologram": lambda: buffer.from_bytes(data), "memcpy": copied(other, data)}),
        ("to_numpy, no copy", {"hologram": buffer.to_numpy, "memcpy": copied(target, other)}),
    ]


def lifetimes(executor: hg.Executor) -> dict[str, Call]:
    """Memory made and given back."""
    array = np.zeros(1000, np.float32)
    calls: dict[str, Call] = {
        "allocate(1000), free": lambda: executor.allocate(1000).free(),
        "allocate_boundary, free": lambda: executor.allocate_boundary(0, 48, 256).free(),
        "Buffer.wrap": lambda: hg.Buffer.wrap(array),
        "allocate(1000000), free": lambda: executor.allocate(1_000_000).free(),
        "np.zeros(1000)": lambda: np.zeros(1000, np.float32),
        "np.zeros(1000000)": lambda: np.zeros(1_000_000, np.float32),
    }
    try:
        import torch
    except ImportError:
        return calls
    return calls | {"torch.zeros(1000)": lambda: torch.zeros(1000), "torch.zeros(1000000)": lambda: torch.zeros(1_000_000)}


def use_threads(n: int) -> None:
    """Has Hologram and torch use so many threads; NumPy has one."""
    hg.set_num_threads(n)
    try:
        import torch
    except ImportError:
        return
    torch.set_num_threads(n)


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [list(head), *map(list, rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="rounds of which the best counts")
    parser.add_argument("--largest", type=int, default=SIZES[-1], help="elements of the largest case")
    parser.add_argument("--threads", type=int, default=0, help="threads of Hologram and torch; 0: their own choice")
    options = parser.parse_args()
    if options.threads:
        use_threads(options.threads)
    with hg.Executor("cpu") as executor:
        print("Microseconds a call, results into memory that is there:\n")
        rows = []
        for op in ("add", "sub", "mul", "div", "relu"):
            for n in [8, *[n for n in SIZES if n <= options.largest]]:
                found = best_of(element_wise(executor, op, n), options.rounds)
                rows.append([op, f"{n:,}", *[f"{1e6 * seconds:,.2f}" for seconds in found.values()]])
        print(table(["op", "elements", *found], rows))
        n = min(TRANSFER, options.largest)
        print(f"\n{n:,} float32 in and out:\n")
        rows = []
        for what, calls in transfers(executor, n):
            own, peer = best_of(calls, options.rounds).values()
            rows.append([what, f"{1e3 * own:.3f} ms", f"{list(calls)[1]} {1e3 * peer:.3f} ms", f"{100 * peer / own:,.0f} %"])
        print(table(["", "hologram", "peer", "of the peer's speed"], rows))
        print("\nMade and given back, microseconds:\n")
        print(table(["", "µs"], [[name, f"{1e6 * s:.2f}"] for name, s in best_of(lifetimes(executor), options.rounds).items()]))


if __name__ == "__main__":
    main()
