"""Matrix products, and what looks like them, as devices compute them by tiles and on matrix units."""

from __future__ import annotations

from typing import Any

from tests.support.building import Draft, product


def _dense(d: Draft) -> list[Any]:
    """A layer: bias and rectifier after the product, an exponential before it; rows and columns that fill no whole blocks."""
    x, w, bias = d.input(37, 45), d.input(45, 70), d.input(70)
    y = d("add", product(d, d("square", x), w), d.spread(bias, (37, 70), 1))
    return [d("max", y, d.const(0))]


def _distances(d: Draft) -> list[Any]:
    """No product: the largest difference of two rows, for all pairs; neighbours in memory are terms on both sides."""
    x, y = d.input(20, 33), d.input(18, 33)
    left, right = d.spread(d("transpose", x, (1, 0)), (33, 20, 18), 0, 1), d.spread(d("transpose", y, (1, 0)), (33, 20, 18), 0, 2)
    return [d("reduce_max", d("abs", d("sub", left, right)), (0,))]


def _batches(d: Draft) -> list[Any]:
    return [product(d, d.input(3, 19, 40), d.input(3, 40, 130))]


def _half_products(d: Draft) -> list[Any]:
    x, y = (d("cast", d.input(*shape, dtype="bfloat16"), "float32") for shape in ((33, 32), (32, 48)))
    return [d("cast", product(d, x, y), "bfloat16")]


def _halves_of(kind: str, n: int, k: int, m: int) -> Any:
    def make(d: Draft) -> list[Any]:
        x, y = (d("cast", d.input(*shape, dtype=kind), "float32") for shape in ((n, k), (k, m)))
        return [d("max", product(d, x, y), d.const(0))]

    return make


def _turned_halves(d: Draft) -> list[Any]:
    """Both factors lie the other way, and terms fill no whole panel."""
    x, y = (d("cast", d("transpose", d.input(*shape, dtype="bfloat16"), (1, 0)), "float32") for shape in ((40, 56), (72, 40)))
    return [d("cast", product(d, x, y), "bfloat16")]


def _halves_apart(d: Draft) -> list[Any]:
    """Factors that do not lie in whole pieces: every second element, and rows of an odd length."""
    x, y = d.part(d.input(40, 100, dtype="float16"), 1, 0, 100, 2), d.input(50, 71, dtype="float16")
    return [product(d, d("cast", x, "float32"), d("cast", y, "float32"))]


MATRIX_UNITS = {
    "turned_halves": _turned_halves,
    "halves_apart": _halves_apart,
    "wide": _halves_of("bfloat16", 130, 40, 264),
    "whole": _halves_of("bfloat16", 64, 64, 64),
    "ragged": _halves_of("float16", 70, 83, 131),
    "small": _halves_of("bfloat16", 30, 50, 40),
    "pieces": _halves_of("float16", 40, 72, 88),
    "long": _halves_of("float16", 32, 3100, 32),
    "tf32": _halves_of("float32", 70, 83, 131),
}


def _long_product(d: Draft) -> list[Any]:
    return [product(d, d.input(16, 3100), d.input(3100, 17))]


PRODUCTS = {"long_product": _long_product, "dense": _dense, "distances": _distances, "batches": _batches, "half_products": _half_products}
