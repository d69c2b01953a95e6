"""``precision="fast"``: finite operands whose true result is finite give it, for every op, for reductions, and for what is made of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram import dtypes, nn
from hologram.dtypes import DType
from hologram.ir.interpreter import evaluate
from hologram.primitives import Op
from hologram.trace.operators import node_of, wrap
from hologram.trace.recorder import record
from tests.support.optable import GUARDS, mismatch, one_op_graph, rows, signatures, special_values

R = np.random.default_rng(8)


def finite(d: DType, n: int = 40) -> np.ndarray:
    """The ends of the range, subnormal numbers, ones, zeros; numbers of every magnitude."""
    special = special_values(d)
    with np.errstate(over="ignore"):
        wide = (np.exp2(R.uniform(-126, 127, n)) * R.choice([-1.0, 1.0], n)).astype(d.np)
    values = np.concatenate([special, wide, R.uniform(-5, 5, n).astype(d.np)])
    return values[np.isfinite(values.astype(np.float64))]


def operands(types: tuple[DType, ...]) -> list[np.ndarray]:
    if len(types) < 3:
        return [g.ravel() for g in np.meshgrid(*[finite(d) for d in types])]
    return [R.choice(finite(d) if d.is_float else special_values(d), 500) for d in types]


def is_inside(row: Op, arrays: list[np.ndarray]) -> np.ndarray:
    """Where the operands are those for which the row states its bound."""
    kept = [a == b for a, b in zip(GUARDS[row.tests.get("guard")](arrays), arrays, strict=True)]
    if "high" in row.tests:
        kept += [(a >= row.tests["low"]) & (a <= row.tests["high"]) for a in arrays]
    return np.all(kept, axis=0)


def jitted(row: Op, attrs: tuple[Any, ...]) -> Callable[..., Any]:
    return lambda *arrays: wrap(record(row, tuple(node_of(a) for a in arrays), attrs))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
def test_elementwise(dtype: str, everything: bool) -> None:
    """All rows in one program: a row's result is the reference's, to its bound and one rounding."""
    d = dtypes.of(dtype)
    named = [row for row in rows("elementwise") if row.name not in ("cast", "mad")]  # a sum with a product may be rounded once
    cases = [(row, attrs, operands(types)) for row in named for types, attrs in signatures(row) if d in types]
    cases = cases if everything or dtype != "float64" else cases[::4]
    functions = [jitted(row, attrs) for row, attrs, _ in cases]
    program = hg.jit(lambda given: [f(*arrays) for f, arrays in zip(functions, given, strict=True)], precision="fast")
    for (row, attrs, arrays), got in zip(cases, program([arrays for _, _, arrays in cases]), strict=True):
        want = evaluate(one_op_graph(row, attrs, arrays), arrays)[0]
        ordinary = np.isfinite(want.astype(np.float64)) if dtypes.of(want.dtype).is_float else np.ones(want.shape, bool)
        bound = row.tests.get("ulps", 2) + 1 if dtypes.of(want.dtype).is_float else 0
        with np.errstate(invalid="ignore"):
            unsigned = [np.where(a == 0, np.abs(a), a) for a in (np.asarray(got), want)]  # zeros have no sign here
        inside = is_inside(row, arrays)
        wrong = ordinary & (mismatch(*unsigned, bound) & inside | ~np.isfinite(np.asarray(got)))
        assert not wrong.any(), f"{row}{attrs}: {np.asarray(got)[wrong][:3]}, not {want[wrong][:3]}, of {[a[wrong][:3] for a in arrays]}"


ROWS: dict[str, Callable[[Any], Any]] = {
    "softmax": nn.softmax,
    "log_softmax": nn.log_softmax,
    "logsumexp": lambda x: nn.logsumexp(x, axis=-1),
    "layer_norm": nn.layer_norm,
    "norm": lambda x: hg.linalg.norm(x, axis=-1),
    "max": lambda x: hnp.max(x, axis=-1),
    "min": lambda x: hnp.min(x, axis=-1),
    "sum": lambda x: hnp.sum(x / 64, axis=-1),
    "mean": lambda x: hnp.mean(x / 2, axis=-1),
    "cumsum": lambda x: hnp.cumsum(x / 64, axis=-1),
    "cummax": lambda x: hnp.maximum(hnp.max(x, axis=-1, keepdims=True), x),
    "median": lambda x: hnp.median(x, axis=-1),
    "less the largest, less its logarithm": lambda x: (x - hnp.max(x, -1, keepdims=True)) - hnp.log(hnp.sum(x * 0 + 2, -1, keepdims=True)),
    "quotient of rows": lambda x: x / (hnp.max(hnp.abs(x), axis=-1, keepdims=True)),
    "quotients of quotients": lambda x: (x / 1e30) / 1e-30,
    "products": lambda x: (x * 1e-20) * (hnp.max(hnp.abs(x), axis=-1, keepdims=True) * 1e-20),
    "softplus": nn.softplus,
    "gelu": nn.gelu,
    "sigmoid": nn.sigmoid,
    "logaddexp": lambda x: hnp.logaddexp(x, x[..., ::-1]),
    "sinc": lambda x: hnp.sinc(x),
}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_what_is_made_of_them(dtype: str) -> None:
    """Rows of equal numbers, of the largest, of the smallest, of every magnitude: as in ``exact``, to roundings of what is added up."""
    to = getattr(hnp, dtype)
    most, least, eps = float(hnp.finfo(to).max), float(hnp.finfo(to).smallest_normal), float(hnp.finfo(to).eps)
    n = 24
    levels = [most, -most, most / 3, 1e30, 1e3, 88.0, 1.0, 1e-3, least, least / 8, 0.0]
    x = np.stack([np.full(n, v) for v in levels] + [v * (1 - R.uniform(0, 1, n)) for v in levels[:9]]).astype(to)
    exact, fast = (hg.jit(lambda x: [f(x) for f in ROWS.values()], precision=p)(x) for p in ("exact", "fast"))
    for name, got, want in zip(ROWS, fast, exact, strict=True):
        g, w = np.asarray(got).astype(np.float64), np.asarray(want).astype(np.float64)
        sizes = np.where(np.isfinite(w), np.abs(w), 0.0)
        largest = np.max(sizes, axis=-1, keepdims=True) if w.ndim == 2 else sizes  # of a row, whose elements may be differences of such numbers
        with np.errstate(invalid="ignore"):
            wrong = np.isfinite(w) & ~(np.abs(g - w) <= 64 * eps * sizes + 16 * eps * np.minimum(largest, 10.0) + 8 * least)
        assert not wrong.any(), f"{name}: {g[wrong][:4]}, not {w[wrong][:4]}, in rows {np.argwhere(wrong)[:4].tolist()}"
