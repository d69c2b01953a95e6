"""What is measured. Each case is one function of a NumPy-like namespace ``xp`` and of arrays, the same for every framework."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

SIZES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
EVERYONE = ("hologram", "numpy", "torch", "inductor", "jax", "numexpr")
WITHOUT_EXPRESSIONS = tuple(f for f in EVERYONE if f != "numexpr")  # numexpr has element-wise expressions with one result only

Arrays = tuple[Any, ...]
Random = np.random.Generator


@dataclass(frozen=True)
class Case:
    """``nbytes`` is the least that must be moved: every input read once, every result written once. ``flops`` counts what products must compute, an
    operation in float64 as two."""

    name: str
    group: str
    function: Callable[..., Any]
    arguments: Callable[[Random], Arrays]
    nbytes: int
    frameworks: tuple[str, ...] = EVERYONE
    compiled: bool = True  # False: operation by operation, as lazy or eager arrays are used without jit
    flops: float = 0.0


def normal(r: Random, *shape: int) -> np.ndarray:
    return r.standard_normal(shape, dtype=np.float32)


def positive(r: Random, *shape: int) -> np.ndarray:
    return r.uniform(0.1, 2, shape).astype(np.float32)


# Operations, at every size: name, function, number of arrays, bytes an element, frameworks.
OPERATIONS: tuple[tuple[str, Callable[..., Any], int, int, tuple[str, ...]], ...] = (
    ("add", lambda xp, a, b: a + b, 2, 12, EVERYONE),
    ("multiply add", lambda xp, a, b, c: a * b + c, 3, 16, EVERYONE),
    ("divide", lambda xp, a, b: a / b, 2, 12, EVERYONE),
    ("square root", lambda xp, a: xp.sqrt(a), 1, 8, EVERYONE),
    ("exp", lambda xp, a: xp.exp(a), 1, 8, EVERYONE),
    ("log", lambda xp, a: xp.log(a), 1, 8, EVERYONE),
    ("tanh", lambda xp, a: xp.tanh(a), 1, 8, EVERYONE),
    ("sin", lambda xp, a: xp.sin(a), 1, 8, EVERYONE),
    ("power", lambda xp, a, b: a**b, 2, 12, EVERYONE),
    ("select", lambda xp, a, b: xp.where(a > b, a, 2 * b), 2, 12, EVERYONE),
    ("sum", lambda xp, a: xp.sum(a), 1, 4, WITHOUT_EXPRESSIONS),
    ("maximum of all", lambda xp, a: xp.max(a), 1, 4, WITHOUT_EXPRESSIONS),
    ("place of the maximum", lambda xp, a: xp.argmax(a), 1, 4, WITHOUT_EXPRESSIONS),
    ("running sum", lambda xp, a: xp.cumsum(a, axis=0), 1, 8, WITHOUT_EXPRESSIONS),
)


def gelu(xp: Any, x: Any) -> Any:
    return 0.5 * x * (1 + xp.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


def softmax(xp: Any, x: Any) -> Any:
    e = xp.exp(x - xp.max(x, axis=-1, keepdims=True))
    return e / xp.sum(e, axis=-1, keepdims=True)


def layer_norm(xp: Any, x: Any, scale: Any, shift: Any) -> Any:
    centred = x - xp.mean(x, axis=-1, keepdims=True)
    return centred / xp.sqrt(xp.mean(centred * centred, axis=-1, keepdims=True) + 1e-5) * scale + shift


def option_prices(xp: Any, spot: Any, strike: Any, years: Any) -> Any:
    """Black and Scholes, with a normal distribution function approximated by tanh."""
    rate, volatility = 0.02, 0.3

    def below(z: Any) -> Any:
        return 0.5 * (1 + xp.tanh(0.7978845608 * (z + 0.044715 * z * z * z)))

    width = volatility * xp.sqrt(years)
    high = (xp.log(spot / strike) + (rate + volatility * volatility / 2) * years) / width
    present = strike * xp.exp(-rate * years)
    call = spot * below(high) - present * below(high - width)
    return call, call - spot + present


def adam(xp: Any, weights: Any, gradient: Any, first: Any, second: Any) -> Any:
    first = 0.9 * first + 0.1 * gradient
    second = 0.999 * second + 0.001 * gradient * gradient
    return weights - 1e-3 * (first / 0.5) / (xp.sqrt(second / 0.3) + 1e-8), first, second


def heat(xp: Any, u: Any) -> Any:
    """One explicit step of the heat equation inside the boundary."""
    middle = u[1:-1, 1:-1]
    return middle + 0.2 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * middle)


def distances(xp: Any, a: Any, b: Any) -> Any:
    difference = a[:, None, :] - b[None, :, :]
    return xp.sqrt(xp.sum(difference * difference, axis=-1))


def standardised_columns(xp: Any, x: Any) -> Any:
    centred = x - xp.mean(x, axis=0, keepdims=True)
    return centred / (xp.sqrt(xp.mean(centred * centred, axis=0, keepdims=True)) + 1e-6)


def sixteen(xp: Any, x: Any, y: Any) -> Any:
    for _ in range(4):
        x = xp.sqrt(x * x + 0.5) * 0.9 - y
    return x


def leaves(xp: Any, tree: dict[str, Any]) -> Any:
    return sum(tree[k] for k in sorted(tree))


def photograph(xp: Any, picture: Any) -> Any:
    from examples.photo import develop

    return develop(xp, picture)[0]


def _operations() -> Iterator[Case]:
    for name, function, arrays, nbytes, frameworks in OPERATIONS:
        for n in SIZES:

            def arguments(r: Random, n: int = n, arrays: int = arrays) -> Arrays:
                return tuple(positive(r, n) for _ in range(arrays))

            yield Case(f"{name} {n}", name, function, arguments, nbytes * n, frameworks)


def _pipelines() -> Iterator[Case]:
    m = 1_000_000
    several, rows = WITHOUT_EXPRESSIONS, "pipelines"
    yield Case("gelu 1000000", rows, gelu, lambda r: (normal(r, m),), 8 * m)
    yield Case("gelu 10000000", rows, gelu, lambda r: (normal(r, 10 * m),), 80 * m)
    yield Case("option prices 1000000", rows, option_prices, lambda r: tuple(positive(r, m) for _ in range(3)), 20 * m, several)
    yield Case("adam 1000000", rows, adam, lambda r: (*(normal(r, m) for _ in range(3)), positive(r, m)), 28 * m, several)
    for n, k in ((64, 128), (1024, 1024), (4096, 4096)):
        yield Case(f"softmax {n}x{k}", rows, softmax, lambda r, n=n, k=k: (normal(r, n, k),), 8 * n * k, several)
        yield Case(
            f"layer norm {n}x{k}",
            rows,
            layer_norm,
            lambda r, n=n, k=k: (normal(r, n, k), normal(r, k), normal(r, k)),
            8 * n * k,
            several,
        )
    yield Case("standardised columns 4096x256", rows, standardised_columns, lambda r: (normal(r, 4096, 256),), 8 * 4096 * 256, several)
    yield Case("heat 2048x2048", rows, heat, lambda r: (normal(r, 2048, 2048),), 8 * 2048 * 2048, several)
    yield Case("distances 512x512x16", rows, distances, lambda r: (normal(r, 512, 16), normal(r, 512, 16)), 4 * 512 * 512, several)
    pixels = 1024 * 1024 * 3
    yield Case(
        "photograph 1024x1024",
        rows,
        photograph,
        lambda r: (r.integers(0, 256, (1024, 1024, 3), dtype=np.uint8),),
        5 * pixels,
        ("hologram", "numpy", "jax"),
    )


def _dispatch() -> Iterator[Case]:
    group = "dispatch"
    yield Case("add 8", group, lambda xp, a, b: a + b, lambda r: (normal(r, 8), normal(r, 8)), 96)
    yield Case("sixteen operations 8", group, sixteen, lambda r: (normal(r, 8), normal(r, 8)), 96)
    several = WITHOUT_EXPRESSIONS
    yield Case("twenty leaves 8", group, leaves, lambda r: ({f"leaf {i:02d}": normal(r, 8) for i in range(20)},), 21 * 32, several)
    lazy = tuple(f for f in several if f != "inductor")
    yield Case("sixteen operations 8, not jitted", group, sixteen, lambda r: (normal(r, 8), normal(r, 8)), 96, lazy, compiled=False)


# Products of particular shapes and layouts: name, function, shapes of the factors and of the result.
PRODUCTS: tuple[tuple[str, Callable[..., Any], tuple[int, ...], tuple[int, ...], tuple[int, ...]], ...] = (
    ("x.T y 512", lambda xp, x, y: x.T @ y, (512, 512), (512, 512), (512, 512)),
    ("x y.T 512", lambda xp, x, y: x @ y.T, (512, 512), (512, 512), (512, 512)),
    ("x.T y.T 512", lambda xp, x, y: x.T @ y.T, (512, 512), (512, 512), (512, 512)),
    ("matrix vector 4096", lambda xp, x, y: x @ y, (4096, 4096), (4096,), (4096,)),
    ("vector matrix 4096", lambda xp, x, y: x @ y, (4096,), (4096, 4096), (4096,)),
    ("x.T vector 4096", lambda xp, x, y: x.T @ y, (4096, 4096), (4096,), (4096,)),
    ("8 rows by 1024x1024", lambda xp, x, y: x @ y, (8, 1024), (1024, 1024), (8, 1024)),
    ("1024x1024 by 8 columns", lambda xp, x, y: x @ y, (1024, 1024), (1024, 8), (1024, 8)),
    ("outer 1024", lambda xp, x, y: x @ y, (1024, 1), (1, 1024), (1024, 1024)),
    ("16384 of 4x4", lambda xp, x, y: x @ y, (16384, 4, 4), (16384, 4, 4), (16384, 4, 4)),
    ("4096 of 8x8", lambda xp, x, y: x @ y, (4096, 8, 8), (4096, 8, 8), (4096, 8, 8)),
    ("2048 of 16x16", lambda xp, x, y: x @ y, (2048, 16, 16), (2048, 16, 16), (2048, 16, 16)),
    ("512 of 32x32", lambda xp, x, y: x @ y, (512, 32, 32), (512, 32, 32), (512, 32, 32)),
)


def _product(
    name: str, function: Callable[..., Any], first: tuple[int, ...], second: tuple[int, ...], result: tuple[int, ...], dtype: Any = np.float32
) -> Case:
    d = np.dtype(dtype)

    def arguments(r: Random) -> Arrays:
        arrays = (r.integers(-9, 10, s) if d.kind == "i" else r.standard_normal(s) for s in (first, second))
        return tuple(a.astype(d) for a in arrays)

    frameworks = tuple(f for f in WITHOUT_EXPRESSIONS if f != "numpy" or d.itemsize > 2)  # NumPy takes a second for 16-bit products
    nbytes = d.itemsize * sum(map(math.prod, (first, second, result)))
    flops = 2.0 * math.prod(result) * first[-1] * (2 if d == np.float64 else 1)
    return Case(f"{name}{'' if d == np.float32 else ' ' + d.name}", "products", function, arguments, nbytes, frameworks, flops=flops)


def _products() -> Iterator[Case]:
    def square(n: int, dtype: Any = np.float32) -> Case:
        return _product(f"{n}x{n}", lambda xp, x, y: x @ y, (n, n), (n, n), (n, n), dtype)

    yield from map(square, (16, 32, 64, 128, 256, 512, 1024, 2048))
    yield from (square(512, dtype) for dtype in (np.float64, ml_dtypes.bfloat16, np.float16, np.int32))
    yield from (_product(*row) for row in PRODUCTS)


CASES: dict[str, Case] = {case.name: case for case in (*_dispatch(), *_operations(), *_pipelines(), *_products())}
