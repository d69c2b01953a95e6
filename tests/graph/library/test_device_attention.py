"""Attention as one kernel on devices: its values in every dialect, masks, ends of blocks, and that no scores are planned."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram import dtypes, nn
from hologram.backends.c.analysis.gemm import GPU_TILE, MATRIX_UNIT_TILE
from hologram.backends.c.dialects import DIALECTS
from hologram.backends.c.grid import Mapping
from hologram.backends.c.scalars import Scalars
from hologram.backends.c.source import Program
from hologram.graph.execution_plan import ExecutionPlan
from hologram.graph.kernel.verify import verify_kernel
from hologram.graph.library.attention.device_kernel import MAX_VALUE_ROW_BYTES
from hologram.graph.pipeline import canonicalise, compile_to_plan
from tests.support.attention_forms import by_hand, eager, formula
from tests.support.devices.c_harness import SHARED_BYTES, run
from tests.support.devices.cuda_compilers import MAX_SPILLED_BYTES, NVCC, compile_with_nvcc
from tests.support.needs import needs_compilers, needs_opencl

Array = np.ndarray
F32, F64 = np.float32, np.float64
DIALECT_NAMES = ["c", "cuda", "metal"]


def _arrays(*shapes: tuple[int, ...], dtype: Any = F32) -> list[Array]:
    rng = np.random.default_rng([len(s) + sum(s) for s in shapes])
    return [rng.standard_normal(s).astype(dtype) for s in shapes]


def _schedule(f: Callable[..., Any], *args: Array, dialect: str = "cuda", precision: str = "standard") -> ExecutionPlan:
    """Of the kernels that a device of the dialect is given."""
    graph = canonicalise(hg.make_graph(f)(*args), precision)
    found = compile_to_plan(graph, precision, MATRIX_UNIT_TILE if DIALECTS[dialect].matrix_units else GPU_TILE)
    for k in found.kernels:
        verify_kernel(k.kernel)
    return found


def _results(f: Callable[..., Any], args: list[Array], dialect: str, folder: Path) -> list[Array]:
    return run(_schedule(f, *args, dialect=dialect), args, folder, "standard", dialect=dialect)


def _near(got: Any, want: Array, tolerance: float = 5e-6) -> None:
    np.testing.assert_allclose(np.asarray(got), want, rtol=tolerance, atol=tolerance)


# rows, keys, elements of a query, of a value: less than a block of each, ends of blocks, values too long for blocks of many rows
SIZES = [(65, 100, 33, 70), (64, 64, 64, 64), (16, 8, 8, 8), (130, 261, 24, 40), (20, 300, 16, 130), (40, 90, 300, 500)]


@needs_compilers
@pytest.mark.parametrize("dialect", DIALECT_NAMES)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_its_values_in_every_dialect(sizes: tuple[int, int, int, int], dialect: str, tmp_path: Path, everything: bool) -> None:
    rows, keys, depth, width = sizes
    if sizes != SIZES[0] and not everything:
        pytest.skip("with --all")
    q, k, v = _arrays((2, rows, depth), (2, keys, depth), (2, keys, width))
    (got,) = _results(by_hand, [q, k, v], dialect, tmp_path)
    _near(got, formula(q, k, v), max(5e-6, depth * 2.0**-24))  # an error of a score is a relative one of its weight


@needs_opencl
@pytest.mark.parametrize("sizes", [(33, 70, 24, 20), *SIZES], ids=str)
def test_opencl_runs_it(sizes: tuple[int, int, int, int], everything: bool) -> None:
    rows, keys, depth, width = sizes
    if sizes[0] != 33 and not everything:
        pytest.skip("with --all")
    q, k, v = _arrays((2, rows, depth), (2, keys, depth), (2, keys, width))
    f = hg.jit(by_hand, device="opencl")
    _near(f(q, k, v), formula(q, k, v))
    assert f.lower(q, k, v).compile().reduction().kernels == 1


# of which the second does not lie in whole pieces of memory
HALF_SIZES = [(130, 100, 40, 24), (33, 50, 20, 9), (16, 300, 64, 128), (128, 64, 64, 64)]


@pytest.mark.crossed
@needs_compilers
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("sizes", HALF_SIZES, ids=str)
def test_16_bit_floats_on_matrix_units(sizes: tuple[int, int, int, int], dtype: str, tmp_path: Path, everything: bool) -> None:
    """With a mask that row 3 sees no key by; results are rounded to 16 bits, and so are weights."""
    rows, keys, depth, width = sizes
    if (HALF_SIZES.index(sizes) > 1 or dtype == "float16") and not everything:
        pytest.skip("with --all")
    q, k, v = (x.astype(dtypes.of(dtype).np) for x in _arrays((2, rows, depth), (2, keys, depth), (2, keys, width)))
    seen = np.random.default_rng(1).random((rows, keys)) < 0.5
    seen[3] = False
    args = [q, k, v, seen]
    schedule = _schedule(nn.dot_product_attention, *args)
    mapping = Mapping(schedule.kernels[0].kernel, Scalars(DIALECTS["cuda"]), "standard")
    assert mapping.fragments and mapping.local == mapping.dynamic <= SHARED_BYTES
    assert {b.dtype.name for b in schedule.kernels[0].kernel.params if b.role == "in"} == {dtype, "bool"}
    (got,) = run(schedule, args, tmp_path, "standard", dialect="cuda")
    want = formula(*(x.astype(F32) for x in (q, k, v)), finish=lambda s: np.where(seen, s / np.sqrt(depth), -np.inf))
    eps = 2.0 ** (-8 if dtype == "bfloat16" else -11)
    np.testing.assert_allclose(got.astype(F32), np.where(np.isnan(want), 0, want), rtol=2 * eps, atol=2 * eps)


@needs_compilers
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_terms_beyond_the_last_key_are_none(dtype: str, tmp_path: Path) -> None:
    """What a query leaves in shared memory is in no other row's result: an infinite one makes its own NaN."""
    q, k, v = (x.astype(dtypes.of(dtype).np) for x in _arrays((40, 24), (70, 24), (70, 24)))
    q[33] = np.inf
    (got,) = run(_schedule(nn.dot_product_attention, q, k, v), [q, k, v], tmp_path, "standard", dialect="cuda")
    want = formula(*(x.astype(F32) for x in (q, k, v)), finish=lambda s: s / np.sqrt(24))
    np.testing.assert_allclose(got.astype(F32), want, rtol=2**-6, atol=2**-6)
    assert list(np.flatnonzero(np.isnan(want).any(1))) == [33]


@needs_compilers
@pytest.mark.parametrize("dialect", ["cuda", "metal"])
@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_8_bit_floats_are_read_as_such(dtype: str, dialect: str, tmp_path: Path) -> None:
    """And multiplied in float32: matrix units take 16 bits."""
    q, k, v = (x.astype(dtypes.of(dtype).np) for x in _arrays((2, 40, 24), (2, 70, 24), (2, 70, 24)))
    schedule = _schedule(nn.dot_product_attention, q, k, v)
    assert {b.dtype.name for b in schedule.kernels[0].kernel.params if b.role == "in"} == {dtype}
    (got,) = run(schedule, [q, k, v], tmp_path, "standard", dialect=dialect)
    want = formula(*(x.astype(F32) for x in (q, k, v)), finish=lambda s: s / np.sqrt(24))
    eps = 2.0 ** -(dtypes.of(dtype).format.fraction_bits + 1)
    np.testing.assert_allclose(got.astype(F32), want, rtol=1.01 * eps, atol=0.02)


@needs_compilers
def test_masks_and_other_work_on_scores(tmp_path: Path) -> None:
    """Of bools, added, causal, gathered; row 3 sees no key, row 5 none of the first block; heads that share keys."""
    q, k, v, far = _arrays((2, 3, 40, 16), (2, 1, 90, 16), (2, 1, 90, 24), (130,))
    seen = np.random.default_rng(1).random((40, 90)) < 0.5
    seen[3], seen[5, :80] = False, False
    bias = np.where(seen, 0.5, -np.inf).astype(F32)
    places = np.arange(40)[:, None] - np.arange(90) + 89

    def f(q: Any, k: Any, v: Any, seen: Any, bias: Any, far: Any, places: Any) -> Any:
        attend = nn.dot_product_attention
        gathered = by_hand(q, k, v, lambda s: hnp.tanh(s / 5) + far[places])
        return attend(q, k, v, seen), attend(q, k, v, bias), attend(q, k, v, is_causal=True), gathered

    of_bools, added, causal, gathered = _results(f, [q, k, v, seen, bias, far, places], "c", tmp_path)
    want = formula(q, k, v, lambda s: np.where(seen, s / 4, -np.inf))
    assert np.all(np.isnan(want[:, :, 3])) and not np.any(np.isnan(want[:, :, 5]))
    _near(of_bools, np.where(np.isnan(want), 0, want))
    _near(added, want)
    _near(causal, formula(q, k, v, lambda s: np.where(np.tri(40, 90, dtype=bool), s / 4, -np.inf)))
    _near(gathered, formula(q, k, v, lambda s: np.tanh(s / 5) + far[places]))


@pytest.mark.parametrize("dialect", ["opencl", *DIALECT_NAMES])
@pytest.mark.parametrize("dtype", [F32, F64])
def test_items_share_it_whatever_the_sizes(dialect: str, dtype: Any) -> None:
    """Every kernel is one of tiles, whose weights alone are shared memory, not more than there is."""
    if dialect == "metal" and dtype is F64:
        pytest.skip("Metal has no float64")
    for rows, keys, depth, width in [*SIZES[:-1], (1000, 1000, 512, 256), (200, 200, 128, 128), (200, 200, 512, 512), (100, 30, 64, 320)]:
        if width * np.dtype(dtype).itemsize > MAX_VALUE_ROW_BYTES:
            continue
        args = _arrays((rows, depth), (keys, depth), (keys, width), dtype=dtype)
        (low,) = _schedule(by_hand, *args, dialect=dialect).kernels
        mapping = Mapping(low.kernel, Scalars(DIALECTS[dialect]), "standard")
        assert mapping.tiles is not None and not mapping.workspace
        assert {b.name for b in low.kernel.scratch} - {b.name for b in mapping.register_scratch} == {"weights"}
        assert mapping.local <= DIALECTS[dialect].local_bytes


def test_no_scores_are_planned() -> None:
    q, k, v = _arrays((8, 512, 16), (8, 512, 16), (8, 512, 16))
    compiled = hg.jit(by_hand, device="null:0").lower(q, k, v).compile()
    assert compiled.memory_analysis().peak == 0 and compiled.reduction().kernels == 1


def test_derivatives_plan_blocks_of_scores() -> None:
    q = np.zeros((32, 1024, 32), F32)
    f = hg.value_and_grad(lambda q, k, v: hnp.sum(hnp.sin(nn.dot_product_attention(q, k, v))), argnums=(0, 1, 2))
    compiled = hg.jit(f, device="null:0").lower(q, q, q).compile()
    assert compiled.memory_analysis().peak < 32 * 1024 * 1024 * 4


def _gradients(attend: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    return hg.grad(lambda q, k, v: hnp.sum(hnp.sin(hnp.astype(attend(q, k, v, **options), "float32"))), argnums=(0, 1, 2))


def _grouped(q: Any, k: Any, v: Any) -> Any:
    """Heads that share keys."""
    x, y, z = (hnp.astype(a, "float32") for a in (q, k, v))
    return hnp.astype(hnp.einsum("brgt,btd->brgd", nn.softmax(hnp.einsum("brgd,btd->brgt", x, y)), z), q.dtype)


DERIVED: dict[str, tuple[Callable[..., Any], tuple[int, ...], tuple[int, ...], tuple[int, ...]]] = {
    "causal": (_gradients(nn.dot_product_attention, is_causal=True), (2, 130, 40), (2, 100, 40), (2, 100, 24)),
    "plain": (_gradients(nn.dot_product_attention), (2, 3, 128, 32), (2, 3, 80, 32), (2, 3, 80, 32)),
    "heads that share keys": (_gradients(_grouped), (2, 70, 3, 16), (2, 90, 16), (2, 90, 24)),
}


@needs_compilers
@pytest.mark.parametrize("case", DERIVED)
def test_derivatives_of_16_bit_floats_make_scores_again(case: str, tmp_path: Path, everything: bool) -> None:
    """No kernel reads or writes as many elements as there are scores, and all but sums of rows are products on matrix units."""
    if case != "causal" and not everything:
        pytest.skip("with --all")
    f, *shapes = DERIVED[case]
    args = [x.astype(dtypes.bfloat16.np) for x in _arrays(*shapes)]
    with eager(2**20):
        schedule = _schedule(f, *args)
    mappings = [Mapping(k.kernel, Scalars(DIALECTS["cuda"]), "standard") for k in schedule.kernels if k.group.nodes[0].op.kind == "attention"]
    assert len(mappings) >= 6 and all(m.dynamic for m in mappings)
    scores = args[0].size // args[0].shape[-1] * args[1].shape[-2]
    assert all(n.size < scores for k in schedule.kernels for n in k.bindings)
    want = hg.jit(f)(*(x.astype(F64) for x in args))
    for got, exact in zip(run(schedule, args, tmp_path, "standard", dialect="cuda"), want, strict=True):
        np.testing.assert_allclose(got.astype(F32), np.asarray(exact), rtol=2**-6, atol=2**-6 * np.abs(exact).max())


def test_exact_leaves_the_written_order() -> None:
    args = _arrays((40, 16), (50, 16), (50, 24))
    assert len(_schedule(by_hand, *args, precision="exact").kernels) == 3
    assert len(_schedule(by_hand, *args, precision="fast").kernels) == 1


@pytest.mark.skipif(NVCC is None, reason="there is no nvcc")
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("width", [64, 128, 256])
def test_it_stays_in_registers(width: int, dtype: str, arch: str, everything: bool) -> None:
    if (width, arch) != (128, "sm_90") and not everything:
        pytest.skip("with --all")
    args = _arrays(*[(2, 2048, width)] * 3, dtype=dtypes.of(dtype).np)
    for f in (nn.dot_product_attention, _gradients(nn.dot_product_attention)):
        if f is not nn.dot_product_attention and not (everything and dtype == "bfloat16"):
            continue
        text = Program([k.kernel for k in _schedule(f, *args).kernels], "cuda", "standard").text
        assert ("mma.sync" in text) == (dtype == "bfloat16" and (width <= 128 or f is not nn.dot_product_attention))
        assert max(compile_with_nvcc(text, arch).values()) <= MAX_SPILLED_BYTES
