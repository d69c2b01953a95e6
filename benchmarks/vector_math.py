"""Accuracy and speed of the mathematical functions: largest error in ULP and nanoseconds an element, in cache, on one thread.

``python benchmarks/vector_math.py [name ...] [--points N]`` prints a table, for this machine and for the same without FMA.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

import hologram as hg
from hologram import dtypes
from hologram.dtypes import DType
from hologram.primitives import TABLE, Op
from hologram.primitives import expansions as vector_math
from hologram.settings import override
from hologram.trace.operators import elementwise

TYPES = (dtypes.float32, dtypes.float64)
TARGETS = {"": "as it is", "-fma,-avx512f": "without FMA"}  # AVX-512 contains FMA
SIZES = (4096, 12288)  # times are a slope between them, so that the cost of a call does not count
WIDER = {dtypes.float32: np.float64, dtypes.float64: np.longdouble}


def arguments(row: Op, d: DType, n: int) -> list[np.ndarray]:
    """Half of every exponent and both signs, half from the range that the row names."""
    rng = np.random.default_rng(n)
    columns = []
    for _ in range(row.arity or 1):
        bits = rng.integers(0, 2**d.bits, n // 2, np.dtype(f"uint{d.bits}")).view(d.np)
        plain = rng.uniform(row.tests["low"], row.tests["high"], n - n // 2).astype(d.np)
        columns.append(np.concatenate([np.nan_to_num(bits, nan=1.0, posinf=np.inf, neginf=-np.inf), plain]))
    return columns


def largest_error(row: Op, f: Any, arrays: list[np.ndarray]) -> float:
    """In units of the last place of the true value; infinite where one of the two is NaN or infinite and the other is not that."""
    got = np.asarray(f(*arrays))
    want = np.asarray(row.reference(*(a.astype(WIDER[dtypes.of(a.dtype)]) for a in arrays)))
    info = np.finfo(got.dtype)
    with np.errstate(all="ignore"):
        rounded = want.astype(got.dtype)
        exponent = np.maximum(np.frexp(want)[1] - 1, info.minexp)
        distance = np.ldexp(np.abs(got.astype(want.dtype) - want), info.nmant - exponent)
        same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
        return float(np.where(np.isfinite(got) & np.isfinite(rounded), distance, np.where(same, 0.0, np.inf)).max())


def nanoseconds(f: Any, arrays: list[np.ndarray], repeat: int = 40, rounds: int = 8) -> float:
    """The best time an element, on arguments from the range that the row names."""
    best = []
    for n in SIZES:
        some = [np.ascontiguousarray(a[-n:]) for a in arrays]
        f(*some)
        times = []
        for _ in range(repeat):
            start = time.perf_counter_ns()
            for _ in range(rounds):
                f(*some)
            times.append(time.perf_counter_ns() - start)
        best.append(min(times) / rounds)
    return (best[1] - best[0]) / (SIZES[1] - SIZES[0])


def measure(row: Op, d: DType, points: int) -> list[str]:
    cells = []
    for target in TARGETS:
        with override(target=target):
            f = hg.jit(lambda *xs: elementwise(row, *xs))
            arrays = arguments(row, d, max(points, 2 * SIZES[-1]))
            cells += [f"{largest_error(row, f, arrays):.2f}", f"{nanoseconds(f, arrays):.2f}"]
    return cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="functions; all without any")
    parser.add_argument("--points", type=int, default=1_000_000, help="arguments a function is tried on")
    options = parser.parse_args()
    hg.set_num_threads(1)
    print("| function | type | " + " | ".join(f"ULP {how} | ns {how}" for how in TARGETS.values()) + " |")
    print("|" + "---|" * (2 + 2 * len(TARGETS)))
    for name in options.names or vector_math.__all__:
        for d in TYPES:
            print("| " + " | ".join([name, d.name, *measure(TABLE[name], d, options.points)]) + " |", flush=True)


if __name__ == "__main__":
    main()
