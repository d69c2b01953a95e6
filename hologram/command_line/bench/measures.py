"""What ``hologram bench`` measures."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import hologram as hg
import hologram.numpy as hnp
from hologram.backends.limits import limits
from hologram.command_line.bench.timing import Call, Measure
from hologram.settings import override

SMALL, LARGE = 8, 1 << 24  # elements
BUSY, CHAIN = 1 << 18, 32  # elements, and multiply-adds of each
ROWS = 1024  # of a matrix
GB, GFLOP, NS, MS = 1e9, 1e9, 1e-9, 1e-3
_XS = (0.7978845608, 0.044715)


def _gelu(tanh: Callable[[Any], Any], x: Any) -> Any:
    a, b = (np.float32(c) for c in _XS)
    return np.float32(0.5) * x * (np.float32(1) + tanh(a * (x + b * x * x * x)))


def _incremented(x: Any) -> Any:
    return x + np.float32(1)


def _chained(x: Any, a: Any) -> Any:
    for _ in range(CHAIN):
        x = x * a + a
    return x


def _array(n: int) -> np.ndarray:
    return np.random.default_rng(n).standard_normal(n, dtype=np.float32)


def dispatch() -> Measure:
    x = _array(SMALL)
    t, f = hg.tensor(x), hg.jit(operator.add)
    about = f"a jitted sum of two arrays of {SMALL} elements; the limit is a call of a function in C that does nothing"
    limit = Call(operator.is_, (x, t))
    return Measure("call", about, "ns", NS, Call(f, (t, t)), Call(np.add, (x, x)), limit)


def bandwidth() -> Measure:
    x = _array(LARGE)
    t, f, one = hg.tensor(x), hg.jit(_incremented), np.float32(1)
    nbytes = 2 * x.nbytes
    about = f"x + 1 of {x.nbytes >> 20} MiB, bytes read and written; the limit is what memory gives"
    limit = limits().seconds(nbytes, 0)[0]
    return Measure("memory", about, "GB/s", GB, Call(f, (t,)), Call(np.add, (x, one)), limit, nbytes, True)


def arithmetic() -> Measure:
    t, f, a = hg.tensor(np.ones(BUSY, np.float32)), hg.jit(_chained), np.float32(0.5)
    about = f"{CHAIN} multiply-adds of each element of an array in the cache, float32; the limit is multiply-adds in registers"
    work = 2 * BUSY * CHAIN
    return Measure("multiply-adds", about, "GFLOP/s", GFLOP, Call(f, (t, a)), None, limits().seconds(0, work)[0], work, True)


def product() -> Measure:
    x = _array(ROWS * ROWS).reshape(ROWS, ROWS)
    t, f = hg.tensor(x), hg.jit(hnp.matmul)
    about = f"a matrix product of {ROWS} x {ROWS}, float32; the limit is multiply-adds in registers"
    work = 2 * ROWS**3
    return Measure("product", about, "GFLOP/s", GFLOP, Call(f, (t, t)), Call(np.matmul, (x, x)), limits().seconds(0, work)[0], work, True)


def chain() -> Measure:
    x = _array(LARGE)
    t, f = hg.tensor(x), hg.jit(lambda x: _gelu(hnp.tanh, x))
    about = f"gelu of {x.nbytes >> 20} MiB, a chain of nine operations; the limit is what memory gives"
    limit = limits().seconds(2 * x.nbytes, 0)[0]
    return Measure("fused chain", about, "ms", MS, Call(f, (t,)), Call(_gelu, (np.tanh, x)), limit)


def compiling() -> Measure:
    x = _array(SMALL)

    def compile_anew() -> Any:
        with override(cache=False):
            hg.clear_caches()
            return hg.jit(lambda x: _gelu(hnp.tanh, x)).lower(x).compile()

    return Measure("compiling", "the same chain compiled anew, without the disk cache", "ms", MS, Call(compile_anew))


MEASURES: Sequence[Callable[[], Measure]] = (dispatch, bandwidth, arithmetic, product, chain, compiling)
