"""Fourier transforms beside NumPy, SciPy, JAX and torch: ``python -m benchmarks.fft [--only WORD] [--seconds N]``.

Powers of two from 2^6 to 2^22, mixed factors and primes, stacks of rows, two and three axes, from complex and from real numbers. All frameworks run
in one process and take turns; a figure is the least time of a call, in microseconds, on arrays that are there, with results that are waited for. The
last column is Hologram's time over the best of NumPy, SciPy and JAX; torch's is MKL's.
"""

from __future__ import annotations

import argparse
import importlib
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import torch

import hologram as hg

ASKED = 0.8  # of the best of NumPy, SciPy and JAX
MIN_CALLS = 5
FRAMEWORKS = ("hologram", "numpy", "scipy", "jax", "torch")


class Case(NamedTuple):
    """A transform by its name, and the array that it takes."""

    name: str
    shape: tuple[int, ...]
    dtype: str

    def __str__(self) -> str:
        return f"{self.name} {'x'.join(map(str, self.shape))} {self.dtype}"


def cases() -> Iterator[Case]:
    for k in range(6, 23, 2):
        yield Case("fft", (2**k,), "complex64")
        yield Case("rfft", (2**k,), "float32")
    for k in (8, 12, 16, 20):
        yield Case("fft", (2**k,), "complex128")
        yield Case("irfft", (2 ** (k - 1) + 1,), "complex64")
    for n in (100, 1000, 1155, 3**7, 5**5, 46_656, 10**5, 10**6, 127, 997, 10_007, 100_003):
        yield Case("fft", (n,), "complex64")
    for n in (1000, 1001, 10_007, 10**6):
        yield Case("rfft", (n,), "float32")
    for shape in ((1000, 7), (1000, 17), (1000, 64), (1000, 100), (1000, 127), (256, 1024)):
        yield Case("fft", shape, "complex64")
        yield Case("rfft", shape, "float32")
    for shape in ((127, 127), (512, 512), (1000, 1000), (2048, 2048), (64, 64, 64), (100, 100, 100)):
        yield Case("fftn", shape, "complex64")
        yield Case("rfftn", shape, "float32")
    yield Case("fftn", (512, 512), "complex128")


def _calls(case: Case) -> dict[str, Callable[[], Any]]:
    """A call of each framework that is installed."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=case.shape)
    if case.dtype.startswith("complex"):
        x = x + 1j * rng.normal(size=case.shape)
    x = x.astype(case.dtype)
    ours, theirs, tensor = hg.tensor(x), jnp.asarray(x), torch.from_numpy(x)
    jitted, compiled = hg.jit(getattr(hg.fft, case.name)), jax.jit(getattr(jnp.fft, case.name))
    found = {
        "hologram": lambda: hg.block_until_ready(jitted(ours)),
        "numpy": lambda: getattr(np.fft, case.name)(x),
        "jax": lambda: compiled(theirs).block_until_ready(),
        "torch": lambda: getattr(torch.fft, case.name)(tensor),
    }
    try:
        scipy = importlib.import_module("scipy.fft")
    except ImportError:
        return found
    return found | {"scipy": lambda: getattr(scipy, case.name)(x)}


def measure(case: Case, seconds: float) -> tuple[dict[str, float], float]:
    """Microseconds of each framework, and milliseconds of Hologram's first call."""
    calls = _calls(case)
    start = time.perf_counter()
    calls["hologram"]()
    first = (time.perf_counter() - start) * 1e3
    for call in calls.values():
        call()
    best, count, end = dict.fromkeys(calls, float("inf")), 0, time.perf_counter() + seconds
    while count < MIN_CALLS or time.perf_counter() < end:
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            best[name] = min(best[name], (time.perf_counter() - start) * 1e6)
        count += 1
    return best, first


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each case")
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)  # for the cases of double precision
    print(f"| case | {' | '.join(FRAMEWORKS)} | first call, ms | ratio |\n|---|{'---|' * (len(FRAMEWORKS) + 2)}")
    met = total = 0
    for case in cases():
        if options.only in str(case):
            times, first = measure(case, options.seconds)
            ratio = times["hologram"] / min(t for name, t in times.items() if name not in ("hologram", "torch"))
            cells = [f"{times[f]:.1f}" if f in times else "" for f in FRAMEWORKS]
            print(f"| {case} | {' | '.join(cells)} | {first:.0f} | {ratio:.2f} |", flush=True)
            met, total = met + (ratio <= ASKED), total + 1
    print(f"\nAt most {ASKED} of the best of NumPy, SciPy and JAX: {met} of {total}.")


if __name__ == "__main__":
    main()
