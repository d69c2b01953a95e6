"""Products that a device's library multiplies, and what devices keep in memory of narrow floats: a block of a transformer and its derivative."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram import dtypes
from hologram.backends.c.analysis.gemm import MATRIX_UNIT_TILE
from hologram.backends.cuda.library import gemm_of
from hologram.graph.execution_plan import ExecutionPlan
from hologram.graph.lower.lowered import Lowered
from hologram.graph.pipeline import canonicalise, compile_to_plan
from hologram.ir.symbolic import is_static
from tests.support.graphs.transformer_block import block, gradient, shapes_of_block

BATCH, LENGTH, WIDTH = 4, 512, 512
ROWS = BATCH * LENGTH
LEAST = 2.0 * ROWS * WIDTH * WIDTH  # flops of the smallest product with weights
SHAPES = shapes_of_block(BATCH, LENGTH, WIDTH)
PRODUCTS = {"block": 6, "gradient": 18}  # with weights: each has two more in the derivative


def _compiled(f: Any, dtype: str = "bfloat16", precision: str = "standard") -> ExecutionPlan:
    arguments = [np.zeros(s, dtypes.of(dtype).np) for s in SHAPES]
    graph = canonicalise(hg.make_graph(f)(*arguments), precision)
    return compile_to_plan(graph, precision, MATRIX_UNIT_TILE._replace(library_flops=LEAST))


def _steps(plan: ExecutionPlan) -> list[Lowered]:
    return [s for s in plan.steps if isinstance(s, Lowered)]


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
@pytest.mark.parametrize("f", [block, gradient])
def test_products_with_weights_are_the_librarys(f: Any, dtype: str) -> None:
    found = [g for s in _steps(_compiled(f, dtype)) if (g := gemm_of(s.kernel)) is not None and g.flops >= LEAST and g.batch == 1]
    assert len(found) == PRODUCTS[f.__name__]
    assert {g.left.dtype for g in found} == {g.right.dtype for g in found} == {dtypes.of(dtype)}


def test_none_is_in_exact_precision() -> None:
    kept = [s.kernel for s in _steps(_compiled(block, precision="exact")) if gemm_of(s.kernel) is not None]
    alone = [s.kernel for s in _steps(_compiled(block)) if gemm_of(s.kernel) is not None]
    assert len(kept) < len(alone)


@pytest.mark.parametrize("f", [block, gradient])
def test_what_is_kept_of_narrow_floats_is_narrow(f: Any) -> None:
    """No array of float32 as large as the argument is written, but for sums of several products, and attention's results."""
    written = [(s, n) for s in _steps(_compiled(f)) for n in s.writes() if is_static(n.size) and n.size >= ROWS * WIDTH]
    wide = {n.op.name for _, n in written if n.dtype is dtypes.float32}
    assert wide <= {"attention", "reduced_scores", "reduce_sum", "add"}
    assert sum(n.dtype is dtypes.float32 and n.op.name == "reduce_sum" for _, n in written) <= (0 if f is block else 3)


def test_attention_of_which_only_the_result_is_read_is_one_kernel() -> None:
    names = [n.op.name for s in _steps(_compiled(block)) for n in s.writes()]
    assert names.count("attention") == 1 and "reduced_scores" not in names


def test_heads_are_read_where_the_product_left_them() -> None:
    """The six products, two normalisations, attention and its rounding, the product of the non-linearity, and the last sum: nothing is copied."""
    plan = _compiled(block)
    assert len(_steps(plan)) == 12
    assert not any(s.is_copy for s in _steps(plan))


def test_sums_of_products_of_other_types_are_left() -> None:
    """A factor that is computed in float32 of narrow floats is no narrow float."""

    def f(x: Any, w: Any) -> Any:
        return hnp.matmul(hnp.exp(hnp.astype(x, "float32")), hnp.astype(w, "float32"))

    x, w = np.zeros((256, WIDTH), ml_dtypes.bfloat16), np.zeros((WIDTH, WIDTH), ml_dtypes.bfloat16)
    plan = compile_to_plan(canonicalise(hg.make_graph(f)(x, w), "standard"), "standard", MATRIX_UNIT_TILE._replace(library_flops=LEAST))
    assert all(gemm_of(s.kernel) is None for s in _steps(plan))
