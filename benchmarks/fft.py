"""Fourier transforms beside NumPy, SciPy, JAX and torch: ``python -m benchmarks.fft [--only WORD] [--seconds N]``.

Powers of two from 2^6 to 2^22, mixed factors and primes, stacks of rows, two and three axes, from complex and from real numbers. Each framework lives
in a process of its own, so that no other's threads wait beside it; they take turns, twice a case. A figure is the least time of a call, in
microseconds, on arrays that are there, with results that are waited for. The last column is Hologram's time over the best of NumPy, SciPy and JAX;
torch's is MKL's.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.util
import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from benchmarks.process import Worker

ASKED = 0.8  # of the best of NumPy, SciPy and JAX
MIN_CALLS = 5
ROUNDS = 2
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


# --- one framework, in a process of its own -------------------------------------------------------------------------------------------------


def _operand(case: Case) -> np.ndarray:
    rng = np.random.default_rng(0)
    x = rng.normal(size=case.shape)
    if case.dtype.startswith("complex"):
        x = x + 1j * rng.normal(size=case.shape)
    return x.astype(case.dtype)


def _hologram(name: str, x: np.ndarray) -> Callable[[], Any]:
    import hologram as hg

    jitted, operand = hg.jit(getattr(hg.fft, name)), hg.tensor(x)
    return lambda: hg.block_until_ready(jitted(operand))


def _numpy(name: str, x: np.ndarray) -> Callable[[], Any]:
    return lambda: getattr(np.fft, name)(x)


def _scipy(name: str, x: np.ndarray) -> Callable[[], Any]:
    transform = getattr(importlib.import_module("scipy.fft"), name)
    return lambda: transform(x)


def _jax(name: str, x: np.ndarray) -> Callable[[], Any]:
    import jax

    jax.config.update("jax_enable_x64", True)  # for the cases of double precision
    compiled, operand = jax.jit(getattr(jax.numpy.fft, name)), jax.numpy.asarray(x)
    return lambda: compiled(operand).block_until_ready()


def _torch(name: str, x: np.ndarray) -> Callable[[], Any]:
    import torch

    transform, operand = getattr(torch.fft, name), torch.from_numpy(x)
    return lambda: transform(operand)


MAKERS = {"hologram": _hologram, "numpy": _numpy, "scipy": _scipy, "jax": _jax, "torch": _torch}


def measure(framework: str, case: Case, seconds: float) -> dict[str, float]:
    """The least time of a call in microseconds, and the first call in milliseconds."""
    call = MAKERS[framework](case.name, _operand(case))
    start = time.perf_counter()
    call()
    first = (time.perf_counter() - start) * 1e3
    best, count, end = float("inf"), 0, time.perf_counter() + seconds
    while count < MIN_CALLS or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        best = min(best, (time.perf_counter() - start) * 1e6)
        count += 1
    return {"time": best, "first": first}


def _serve(framework: str, seconds: float) -> None:
    """Answers the names of cases."""
    known = {str(case): case for case in cases()}
    for line in sys.stdin:
        print(json.dumps(measure(framework, known[line.strip()], seconds)), flush=True)


# --- all of them ----------------------------------------------------------------------------------------------------------------------------


def _row(case: Case, workers: dict[str, Worker]) -> tuple[dict[str, float], float]:
    """Microseconds of each framework, and milliseconds of Hologram's first call."""
    answers = [{f: worker.ask(str(case)) for f, worker in workers.items()} for _ in range(ROUNDS)]
    times = {f: min(a[f]["time"] for a in answers if "time" in a[f]) for f in workers if any("time" in a[f] for a in answers)}
    return times, answers[0]["hologram"]["first"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--seconds", type=float, default=0.2, help="for each case, framework and turn")
    parser.add_argument("--serve", choices=FRAMEWORKS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return _serve(options.serve, options.seconds)
    print(f"| case | {' | '.join(FRAMEWORKS)} | first call, ms | ratio |\n|---|{'---|' * (len(FRAMEWORKS) + 2)}")
    met = total = 0
    with contextlib.ExitStack() as stack:
        workers = {
            f: stack.enter_context(Worker("benchmarks.fft", "--serve", f, "--seconds", str(options.seconds)))
            for f in FRAMEWORKS
            if importlib.util.find_spec(f) is not None
        }
        for case in (c for c in cases() if options.only in str(c)):
            times, first = _row(case, workers)
            ratio = times["hologram"] / min(t for f, t in times.items() if f not in ("hologram", "torch"))
            cells = [f"{times[f]:.1f}" if f in times else "" for f in FRAMEWORKS]
            print(f"| {case} | {' | '.join(cells)} | {first:.0f} | {ratio:.2f} |", flush=True)
            met, total = met + (ratio <= ASKED), total + 1
    print(f"\nAt most {ASKED} of the best of NumPy, SciPy and JAX: {met} of {total}.")


if __name__ == "__main__":
    main()
