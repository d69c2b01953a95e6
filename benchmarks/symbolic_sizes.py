"""Programs for any size beside programs for one: ``python -m benchmarks.symbolic_sizes [--sizes 64,256,1008] [--only WORD]``.

A function is jitted twice: with ``dynamic=False``, and as it is by default, after calls of several sizes have made its axes symbolic. Both take turns
on the same arrays, on one thread; a figure is the least processor time of a call, and their ratio.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import hologram as hg
import hologram.numpy as hnp
from hologram import nn

LEARNED_FROM = (100, 130, 170, 190, 210)  # sizes of the calls before
SECONDS = 0.06  # of calls for a figure
MOST = 1.1  # asked of the ratio from 64 elements an axis on


class Case(NamedTuple):
    """A function, and the shapes of its float32 arguments for a size."""

    function: Callable[..., Any]
    shapes: Callable[[int], list[tuple[int, ...]]]


def _distances(a: Any) -> Any:
    return hnp.sqrt(((a[:, None] - a[None]) ** 2).sum(-1) + 1)


def _layer_norm(a: Any) -> Any:
    return (a - a.mean(-1, keepdims=True)) / hnp.sqrt(a.var(-1, keepdims=True) + 1e-5)


def _attention(q: Any, k: Any, v: Any) -> Any:
    return nn.softmax(q @ hnp.swapaxes(k, -1, -2) / 8) @ v


def _stencil(a: Any) -> Any:
    return 4 * a[1:-1, 1:-1] - a[2:, 1:-1] - a[:-2, 1:-1] - a[1:-1, 2:] - a[1:-1, :-2]


def _mlp_loss(w: Any, v: Any, x: Any) -> Any:
    return (nn.gelu(x @ w) @ v).sum()


CASES = {
    "product": Case(lambda a, b: a @ b, lambda n: [(n, n)] * 2),
    "product of rows": Case(lambda a, b: a @ b.T, lambda n: [(n, n)] * 2),
    "product of columns": Case(lambda a, b: a.T @ b, lambda n: [(n, n)] * 2),
    "linear layer": Case(lambda x, w: x @ w.T, lambda n: [(n, 512), (512, 512)]),
    "gradient of weights": Case(lambda x, y: x.T @ y, lambda n: [(n, 512)] * 2),
    "scores": Case(lambda q, k: hnp.einsum("bqhd,bkhd->bhqk", q, k), lambda n: [(2, n, 4, 32)] * 2),
    "batched product": Case(lambda p, v: p @ v, lambda n: [(8, n, n), (8, n, 64)]),
    "attention": Case(_attention, lambda n: [(8, n, 64)] * 3),
    "matrix and vector": Case(lambda a, x: a @ x, lambda n: [(n, n), (n,)]),
    "vector and matrix": Case(lambda a, x: x @ a, lambda n: [(n, n), (n,)]),
    "softmax": Case(nn.softmax, lambda n: [(n, n)]),
    "layer norm": Case(_layer_norm, lambda n: [(n, 256)]),
    "sums of rows": Case(lambda a: a.sum(1), lambda n: [(n, n)]),
    "sums of columns": Case(lambda a: a.sum(0), lambda n: [(n, n)]),
    "positions": Case(lambda a: a.argmax(1), lambda n: [(n, n)]),
    "distances": Case(_distances, lambda n: [(n, 16)]),
    "scan": Case(lambda a: hnp.cumsum(a, 1), lambda n: [(n, n)]),
    "scan down columns": Case(lambda a: hnp.cumsum(a, 0), lambda n: [(n, n)]),
    "sort": Case(hnp.sort, lambda n: [(n * n,)]),
    "GELU": Case(nn.gelu, lambda n: [(n, n)]),
    "sum with the transpose": Case(lambda a: a.T + a, lambda n: [(n, n)]),
    "stencil": Case(_stencil, lambda n: [(n, n)]),
    "concatenation": Case(lambda a, b: hnp.concatenate([a, b]), lambda n: [(n, n)] * 2),
    "gradient of an MLP": Case(hg.grad(_mlp_loss, (0, 1)), lambda n: [(256, 512), (512, 256), (n, 256)]),
}


def _arrays(case: Case, n: int) -> list[Any]:
    rng = np.random.default_rng(n)
    return [hg.tensor(rng.standard_normal(shape).astype(np.float32)) for shape in case.shapes(n)]


def least_seconds(functions: list[Callable[..., Any]], arrays: list[Any]) -> list[float]:
    """The least processor time of each function's calls, which take turns."""

    def seconds(f: Callable[..., Any]) -> float:
        start = time.thread_time()
        f(*arrays)
        return time.thread_time() - start

    least = [seconds(f) for f in functions for _ in range(2)][1::2]
    for _ in range(max(3, min(200, int(SECONDS / max(least[0], 1e-7))))):
        least = [min(t, seconds(f)) for t, f in zip(least, functions, strict=True)]
    return least


def measure(case: Case, sizes: list[int]) -> list[tuple[float, float]]:
    """For each size the seconds of the static program, and the ratio of the symbolic one to it."""
    static, of_any = hg.jit(case.function, dynamic=False), hg.jit(case.function)
    for n in LEARNED_FROM:
        of_any(*_arrays(case, n))
    out = []
    for n in sizes:
        one, other = least_seconds([static, of_any], _arrays(case, n))
        out.append((one, other / one))
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="64,256,777,1008", help="extents of axes")
    parser.add_argument("--only", default="", metavar="WORD", help="cases whose names have it")
    arguments = parser.parse_args()
    sizes = [int(n) for n in arguments.sizes.split(",")]
    hg.settings.num_threads = 1
    print("| case | " + " | ".join(f"{n}, us | ratio" for n in sizes) + " | |\n|---|" + "---:|---:|" * len(sizes) + "---|")
    for name, case in CASES.items():
        if arguments.only in name:
            found = measure(case, sizes)
            cells = " | ".join(f"{seconds * 1e6:,.1f} | {ratio:.2f}" for seconds, ratio in found)
            print(f"| {name} | {cells} | {'yes' if all(r <= MOST for _, r in found) else 'no'} |", flush=True)


if __name__ == "__main__":
    main()
