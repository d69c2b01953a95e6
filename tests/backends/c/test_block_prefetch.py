"""Factors on matrix units that are prefetched a block ahead: the bits that panels give, one copy of what products share, no reads beyond memory.

The emulation spoils what a copy replaces as soon as it is issued, does it as late as the wait for it, and stops where memory ends.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram import dtypes, nn
from hologram.backends.c.analysis import block_prefetch
from hologram.backends.c.analysis.block_prefetch import MAX_BYTES, BlockPrefetch
from hologram.backends.c.analysis.gemm import MATRIX_UNIT_TILE
from hologram.backends.c.dialects import CUDA
from hologram.backends.c.grid import Mapping
from hologram.backends.c.scalars import Scalars
from hologram.backends.c.source import Program
from hologram.graph.execution_plan import ExecutionPlan
from hologram.graph.pipeline import canonicalise, compile_to_plan
from tests.support.attention_forms import eager
from tests.support.devices.c_harness import SHARED_BYTES, run
from tests.support.devices.cuda_compilers import MAX_SPILLED_BYTES, NVCC, compile_with_nvcc
from tests.support.needs import needs_compilers

Sizes = tuple[int, int, int, int]
# rows, keys, elements of a query, of a value
BLOCKS: dict[str, Sizes] = {
    "one block": (128, 64, 64, 64),
    "two": (128, 128, 32, 64),
    "three, of which the last is ragged": (130, 136, 40, 24),
    "whole blocks, queries longer than a permutation of banks": (256, 256, 96, 128),
    "a group has two blocks of rows": (1100, 130, 16, 16),
}


def _gradients(q: Any, k: Any, v: Any) -> Any:
    return hg.grad(lambda *x: hnp.sum(hnp.sin(hnp.astype(nn.dot_product_attention(*x), "float32"))), argnums=(0, 1, 2))(q, k, v)


def _masked(q: Any, k: Any, v: Any) -> Any:
    return nn.dot_product_attention(q, k, v, is_causal=True)


def _args(sizes: Sizes, dtype: str = "bfloat16", heads: tuple[int, ...] = ()) -> list[np.ndarray]:
    rows, keys, depth, width = sizes
    rng = np.random.default_rng(rows + keys)
    return [rng.standard_normal((*heads, *s)).astype(dtypes.of(dtype).np) for s in ((rows, depth), (keys, depth), (keys, width))]


def _plan(f: Callable[..., Any], args: list[np.ndarray]) -> ExecutionPlan:
    return compile_to_plan(canonicalise(hg.make_graph(f)(*args), "standard"), "standard", MATRIX_UNIT_TILE)


def _schedule(f: Callable[..., Any], args: list[np.ndarray]) -> ExecutionPlan:
    """As if everything were large."""
    with eager(2**12):
        return _plan(f, args)


def _mappings(plan: ExecutionPlan) -> list[Mapping]:
    kernels = [k.kernel for k in plan.kernels if k.group.nodes[0].op.kind == "attention"]
    return [Mapping(k, Scalars(CUDA), "standard") for k in kernels]


def _prefetched(f: Callable[..., Any], args: list[np.ndarray]) -> list[BlockPrefetch]:
    return [m.prefetch for m in _mappings(_schedule(f, args)) if m.prefetch is not None]


@needs_compilers
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", BLOCKS)
@pytest.mark.parametrize("f", [nn.dot_product_attention, _masked, _gradients], ids=["attention", "causal", "gradients"])
def test_bits_are_those_of_panels(
    f: Callable[..., Any], name: str, dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, everything: bool
) -> None:
    sizes = BLOCKS[name]
    quick = {nn.dot_product_attention: ("two", "a group has two blocks of rows"), _gradients: ("three, of which the last is ragged",)}
    if (name not in quick.get(f, ()) or dtype == "float16") and not everything:
        pytest.skip("with --all")
    if f is _gradients and name == "one block":
        pytest.skip("no scores to make again")
    args, results = _args(sizes, dtype), []
    for most in (0, MAX_BYTES):
        monkeypatch.setattr(block_prefetch, "MAX_BYTES", most)
        plan = _schedule(f, args)
        found = [m.prefetch is not None for m in _mappings(plan)]
        assert found and any(found) == (most > 0 and sizes[1] > 64)
        results.append([x.tobytes() for x in run(plan, args, tmp_path, "standard", groups=2, dialect="cuda")])
    assert results[0] == results[1]


def test_what_does_not_depend_on_the_block_is_brought_once() -> None:
    """Queries are kept; keys and values are walked, two blocks of them."""
    (found,) = _prefetched(nn.dot_product_attention, _args((256, 256, 64, 64)))
    assert [(t.lines, t.pieces) for t in found.kept] == [(128, 8)] and [(t.lines, t.pieces) for t in found.walked] == [(64, 8)] * 2
    assert found.nbytes == 128 * 128 + 2 * 2 * 64 * 128 <= SHARED_BYTES


def test_products_share_the_factor_that_both_read() -> None:
    """The gradient by queries reads keys as rows of scores and as terms, that by keys queries."""
    found = _prefetched(_gradients, _args((256, 256, 64, 64)))
    two = [p for p in found if len(p.kept) == 2 and p.placing == [] and any(len(run) == 3 for run in p.runs.values())]
    assert len(two) == 2 and all(sum(t.lines == 64 for t in p.walked) == 2 for p in two)
    assert {len(p.of_rows) > 0 for p in two} == {True, False} == {len(p.of_columns) > 0 for p in two}


@pytest.mark.parametrize(
    ("sizes", "reason"),
    [((128, 64, 64, 64), "no loop"), ((128, 256, 20, 64), "queries that are not whole pieces"), ((128, 256, 512, 64), "too much for shared memory")],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_others_go_by_panels(sizes: Sizes, reason: str) -> None:
    (mapping,) = _mappings(_schedule(nn.dot_product_attention, _args(sizes)))
    assert mapping.prefetch is None and mapping.fragments and mapping.dynamic <= SHARED_BYTES


@pytest.mark.skipif(NVCC is None, reason="there is no nvcc")
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize("f", [nn.dot_product_attention, _masked, _gradients], ids=["attention", "causal", "gradients"])
@pytest.mark.parametrize("width", [64, 128])
def test_two_groups_have_registers(f: Callable[..., Any], width: int, arch: str, everything: bool) -> None:
    """Of whole blocks; it is ptxas that says whether 128 registers are enough."""
    if (f, width, arch) != (_gradients, 64, "sm_90") and not everything:
        pytest.skip("with --all")
    plan = _plan(f, _args((2048, 2048, width, width), heads=(2,)))
    assert f is _masked or all(m.resident == 2 for m in _mappings(plan) if m.prefetch is not None)
    text = Program([k.kernel for k in plan.kernels], "cuda", "standard").text
    assert max(compile_with_nvcc(text, arch).values()) <= MAX_SPILLED_BYTES
