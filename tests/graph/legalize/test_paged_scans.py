"""Long scans: reversed, and what is computed from their results, without another pass over memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.graph.pipeline import canonicalise
from hologram.ir.interpreter import evaluate
from hologram.primitives.reductions import PAGE
from tests.support.building import kernels, scheduled
from tests.support.kernel_interpreter import run_schedule
from tests.support.optable import mismatch, seeded


def backwards(x: Any) -> Any:
    return hnp.cumulative_sum(x[..., ::-1], axis=-1)[..., ::-1]


# a program of a long array and one as long beside it, and how many kernels it becomes
PROGRAMS: dict[str, tuple[Callable[[Any, Any], Any], int]] = {
    "alone": (lambda x, y: hnp.cumulative_sum(x, axis=-1), 3),
    "backwards": (lambda x, y: backwards(x), 3),
    "backwards and on": (lambda x, y: hnp.sqrt(hnp.abs(backwards(x))) * 2, 3),
    "both": (lambda x, y: (hnp.cumulative_sum(x, axis=-1), hnp.cumulative_sum(x, axis=-1)[..., ::-1] + 1), 3),
    "with another": (lambda x, y: hnp.cumulative_sum(x, axis=-1) * y - hnp.abs(y), 3),
    "another backwards": (lambda x, y: backwards(x) - y, 3),
    "kept too": (lambda x, y: (lambda c: (c, c * c, hnp.abs(c)))(hnp.cumulative_sum(x, axis=-1)), 3),
    "by its last": (lambda x, y: (lambda c: c / c[..., -1:])(hnp.cumulative_sum(x, axis=-1)), 4),
    "reduced": (lambda x, y: hnp.max(hnp.abs(hnp.cumulative_sum(x, axis=-1)), axis=-1), 5),
    "two scans": (lambda x, y: hnp.cumulative_sum(x, axis=-1) + backwards(y), 7),
    "of a scan": (lambda x, y: hnp.cumulative_sum(hnp.abs(backwards(x)), axis=-1), 6),
    "part": (lambda x, y: (hnp.cumulative_sum(x, axis=-1) * 2)[..., 5:-3:2], 4),
}


@pytest.mark.crossed(2)
@pytest.mark.parametrize("shape", [(3 * PAGE,), (2 * PAGE + 5,), (PAGE + 1,), (3, PAGE + 7)], ids=str)
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_the_references(name: str, shape: tuple[int, ...]) -> None:
    program, most = PROGRAMS[name]
    for dtype in (np.float32, np.float16, np.int32):
        rng = seeded(name, *shape)
        arrays = [rng.integers(-8, 9, shape).astype(dtype) if dtype is not np.float32 else rng.standard_normal(shape).astype(dtype) for _ in range(2)]
        graph = hg.make_graph(program)(*arrays)
        wanted = evaluate(graph, arrays)
        schedule = scheduled(canonicalise(graph, "exact"))
        assert len(kernels(schedule)) <= most
        native = hg.jit(program, precision="exact")(*arrays)
        native = native if isinstance(native, tuple) else (native,)
        for want, got, run in zip(wanted, native, run_schedule(schedule, arrays), strict=True):
            assert not mismatch(np.asarray(got), want, 0).any()
            assert not mismatch(run, want, 0).any()


def test_derivatives_run_backwards_in_as_many_passes() -> None:
    x = np.ones(100_000, np.float32)
    compiled = hg.jit(hg.grad(lambda x: hnp.sum(hnp.cumulative_sum(x) * x))).lower(x).compile()
    assert compiled.reduction().kernels <= 6
