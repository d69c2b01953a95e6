"""Reductions over a short last axis: written out, in the written order, in kernels that go across the rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.graph.pipeline import canonicalise
from hologram.ir.interpreter import evaluate
from hologram.primitives.reductions import LANES
from tests.fuzz.thresholds import overridden
from tests.support.building import kernels, scheduled
from tests.support.kernel_interpreter import run_schedule
from tests.support.optable import mismatch, seeded

pytestmark = pytest.mark.costly(2)

REDUCTIONS = ("sum", "prod", "max", "min", "any", "all", "mean")


def arrays_of(n: int, *dtypes: str) -> list[np.ndarray]:
    rng = seeded(n, *dtypes)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 3e4])
    out = []
    for d in dtypes:
        x = rng.standard_normal((100, n)) * 3
        x = np.where(rng.random(x.shape) < 0.1, rng.choice(special, x.shape), x) if d.startswith("float") else x
        out.append(x.astype(d))
    return out


def check(program: Callable[..., Any], arrays: list[np.ndarray], most: int) -> None:
    graph = hg.make_graph(program)(*arrays)
    with np.errstate(all="ignore"):
        wanted = evaluate(graph, arrays)
        schedule = scheduled(canonicalise(graph, "exact"))
        interpreted = run_schedule(schedule, arrays)
    assert len(kernels(schedule)) <= most, "\n".join(map(str, kernels(schedule)))
    native = hg.jit(program, precision="exact")(*arrays)
    for want, got, run in zip(wanted, native if isinstance(native, (list, tuple)) else [native], interpreted, strict=True):
        assert not mismatch(np.asarray(got), want, 0).any()
        assert not mismatch(run, want, 0).any()


@pytest.mark.crossed
@pytest.mark.parametrize("n", [2, 3, 5, 7, 8, 9])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "bool"])
def test_written_out_reductions_give_the_references_bits(dtype: str, n: int) -> None:
    check(lambda x: [getattr(hnp, r)(x, axis=-1) for r in REDUCTIONS if not (r == "mean" and dtype in ("int8", "bool"))], arrays_of(n, dtype), 20)


def test_several_short_axes() -> None:
    check(lambda x: hnp.sum(x.reshape(100, 2, 3), axis=(1, 2)), arrays_of(6, "float32"), 1)


def normalised(x: Any) -> Any:
    return x / hnp.sqrt(hnp.sum(x * x, axis=-1, keepdims=True))


def squares(x: Any) -> Any:
    """Softmax with a square root for the exponential, whose bits are fixed."""
    e = hnp.sqrt(hnp.abs(x - hnp.max(x, axis=-1, keepdims=True)))
    return e / hnp.sum(e, axis=-1, keepdims=True)


def attracted(x: Any) -> Any:
    d = x[None, :, :] - x[:, None, :]
    return hnp.sum(d / hnp.sqrt(hnp.sum(d * d, axis=-1) + 1)[..., None], axis=1)


@pytest.mark.crossed
@pytest.mark.parametrize(("program", "most"), [(normalised, 1), (squares, 1), (attracted, 2)], ids=lambda p: getattr(p, "__name__", ""))
@pytest.mark.parametrize("n", [2, 3, 8])
def test_rows_of_a_few_elements_are_one_kernel(program: Callable[..., Any], most: int, n: int) -> None:
    check(program, arrays_of(n, "float32"), most)


def test_rows_longer_than_the_lanes_are_never_written_out() -> None:
    """However long a row may be that one nest computes side by side."""
    x = np.random.default_rng(0).standard_normal((3, 5, 2 * LANES + 1)).astype(np.float32)
    want = np.asarray(hg.jit(lambda x: (x * x).sum(-1), precision="exact")(x))
    with overridden({"hologram.graph.schedule.index_split.MAX_UNROLLED_EXTENT": 4 * LANES, "hologram.graph.schedule.index_split.MIN_BOX_RUN": 1}):
        np.testing.assert_array_equal(hg.jit(lambda x: (x * x).sum(-1), precision="exact")(x), want)


WHOLE = {
    "product": lambda x, y: hnp.sum(x * y, axis=-1),
    "square": lambda x, y: hnp.sum(x * x, axis=-1),
    "negated": lambda x, y: hnp.sum(-(x * y), axis=-1),
    "chain": lambda x, y: hnp.sum(x * y + x, axis=-1),
    "mean": lambda x, y: hnp.mean(x, axis=-1),
    "mean of products": lambda x, y: hnp.mean(x * y, axis=-1),
    "var": lambda x, y: hnp.var(x, axis=-1),
    "pairwise": lambda x, y: hnp.sum((x[:, None] - y[None]) ** 2, axis=-1),
    "norm": lambda x, y: x / hnp.sqrt(hnp.sum(x * x, axis=-1, keepdims=True)),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", WHOLE)
def test_extents_that_are_known_in_a_call_alone_give_the_same_bits(name: str, dtype: str) -> None:
    """Whether the axis is written out is no part of the result, in any precision."""
    program = WHOLE[name]
    symbolic = hg.jit(program, dynamic=True)
    for n in (2, 3, 4, 5, 7, 8, 9):
        x, y = (seeded(name, n, k).standard_normal((70, n)).astype(dtype) for k in range(2))
        assert not mismatch(np.asarray(symbolic(x, y)), np.asarray(hg.jit(program, dynamic=False)(x, y)), 0).any(), n
