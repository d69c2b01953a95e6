"""Functions whose arguments depend on one another: each has a drawer of its own, and what several of those draw stands here."""

from __future__ import annotations

import functools
from collections.abc import Callable

from hologram import dtypes

from ..draft import Draft, Value
from ..program import DType, Literal

DRAWERS: dict[str, Callable[[Draft], list[Value]]] = {}


def drawer(*names: str) -> Callable[[Callable[..., list[Value]]], Callable[..., list[Value]]]:
    def add(f: Callable[..., list[Value]]) -> Callable[..., list[Value]]:
        for n in names:
            DRAWERS[n] = functools.partial(f, function=n)
        return f

    return add


def product_extents(d: Draft) -> tuple[int, int, int]:
    """Rows, terms and columns of a product: around widths of tiles, panels and pages; one of them may be long."""
    sizes = [d.extent(160) or 1 for _ in range(3)]
    if d.chance(0.08):
        sizes[d.integer(0, 2)] = d.pick((2047, 2049, 3072, 3073, 700))
        sizes = [min(s, 12) if s < 500 else s for s in sizes]
    while sizes[0] * sizes[1] * sizes[2] > 300_000:
        sizes[d.integer(0, 2)] = d.pick((1, 2, 3, 8, 17))
    return sizes[0], sizes[1], sizes[2]


def shaped(d: Draft, shape: tuple[int, ...], kinds: str = "f", content: str | None = None) -> Value:
    """A value of exactly this shape."""
    found = d.choose(lambda v: v.shape == shape and v.kind in kinds) if content is None and d.chance(0.7) else None
    return found or d.fresh(d.dtype(kinds), shape, content)


def index_array(d: Draft, n: int, shape: tuple[int, ...] | None = None) -> Value | Literal:
    """Integers in range (rarely some beyond it), as an argument, an array that the program holds, or a computed value."""
    shape = d.shape(d.pick((1, 1, 1, 2, 0)), 3000) if shape is None else shape
    dtype = d.pick(("int64", "int32", "int8", "uint8", "int16", "uint32", "uint64")) if n < 100 else "int64"
    if n == 0 or d.chance(0.04):
        shape = (0,)
    kind = f"index:{n}"
    if d.chance(0.3):
        return Literal(dtype, shape, kind, d.seed())
    v = d.fresh(dtype, shape, kind)
    return d.emit("numpy.subtract", v, n)[0] if d.chance(0.1) and dtypes.of(v.dtype).kind == "i" else v


def square(d: Draft, kinds: str = "fc") -> Value:
    n = d.pick((1, 2, 3, 4, 5, 8, 9, 16, 17, 33))
    shape = (n, n) if d.chance(0.7) else (d.integer(1, 3), n, n)
    return d.fresh(d.pick(("float32", "float64", "complex64", "complex128") if "c" in kinds else ("float32", "float64")), shape, "normal")


def positive_definite(d: Draft) -> Value:
    x = square(d)
    n = x.shape[-1]
    h = d.emit("numpy.conj", d.emit("numpy.matrix_transpose", x)[0])[0]
    product = d.emit("numpy.matmul", x, h)[0]
    return d.emit("numpy.add", product, d.emit("numpy.eye", n, dtype=DType(x.dtype))[0])[0]


PHASES = {"linalg.eigh": (1,), "linalg.svd": (0, 2), "linalg.qr": (0, 1)}  # results that are unique up to signs, or factors on the unit circle


def without_phase(d: Draft, function: str, results: list[Value]) -> list[Value]:
    """Of vectors that may have any phase, the absolute values: the rest of the program sees nothing else of them."""
    loose = [results[i] for i in PHASES.get(function, ())]
    d.pool = [v for v in d.pool if v.ref not in {x.ref for x in loose}]
    return [d.emit("numpy.absolute", v)[0] if any(v is x for x in loose) else v for v in results]
