"""Fused multiply-adds: which products sums take is a fact of the graph, so kernels, vectors, threads and backends give the same bits."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp
from hologram.backends.llvm.toolchain import target
from hologram.graph.multiply_add import fuse_products
from hologram.graph.pipeline import canonicalise, compile_to_plan
from hologram.ir.graph import Graph
from hologram.ir.node import Node
from hologram.settings import override
from tests.support.building import Draft
from tests.support.devices.c_harness import run as run_in_c
from tests.support.graphs.one_by_one import legalized, one_by_one, same
from tests.support.graphs.random_graphs import arguments, seeds
from tests.support.graphs.roundings import sums_of_products
from tests.support.needs import needs_compilers
from tests.support.optable import compiler

HAS_FMA = target.host().has("fma") or target.host().has("avx512f") or target.host().architecture == "aarch64"


# --- the rule ---------------------------------------------------------------------------------------------------------


def _ops(make: Callable[[Draft, Node, Node, Node], Any], dtype: str = "float32") -> list[str]:
    """The ops, in order of their names, of what a graph of three vectors becomes."""
    d = Draft()
    made = make(d, *(d.input(4, 6, dtype=dtype) for _ in range(3)))
    graph = fuse_products(d.graph(*(made if isinstance(made, tuple) else (made,))))
    return sorted(n.op.name for n in graph.nodes() if n.op.kind != "leaf")


CASES: dict[str, tuple[Callable[[Draft, Node, Node, Node], Any], str]] = {
    "sum": (lambda d, x, y, z: d("add", d("mul", x, y), z), "mad"),
    "either operand": (lambda d, x, y, z: d("add", z, d("mul", x, y)), "mad"),
    "difference": (lambda d, x, y, z: d("sub", z, d("mul", x, y)), "mad neg"),
    "difference from": (lambda d, x, y, z: d("sub", d("mul", x, y), z), "mad neg"),
    "two products": (lambda d, x, y, z: d("add", d("mul", x, y), d("mul", y, z)), "mad mul"),
    "negated": (lambda d, x, y, z: d("add", z, d("neg", d("mul", x, d.const(3.0)))), "mad"),
    "moved": (lambda d, x, y, z: d("add", d("transpose", z, (1, 0)), d("transpose", d("mul", x, y), (1, 0))), "mad transpose transpose transpose"),
    "twice": (lambda d, x, y, z: (lambda p: d("add", p, d("mul", p, z)))(d("mul", x, y)), "mad mul mul"),
    "read by two": (lambda d, x, y, z: (lambda p: (d("add", p, z), d("sub", p, y)))(d("mul", x, y)), "mad mad neg"),
    "returned": (lambda d, x, y, z: (lambda p: (d("add", p, z), p))(d("mul", x, y)), "mad mul"),
    "doubled": (lambda d, x, y, z: (lambda p: d("add", p, p))(d("mul", x, y)), "add mul"),
    "less its floor": (lambda d, x, y, z: (lambda p: d("sub", p, d("floor", p)))(d("mul", x, y)), "floor mul sub"),
    "its integer": (lambda d, x, y, z: (lambda p: d("sub", d("cast", d("cast", p, "int64"), "float32"), p))(d("mul", x, y)), "cast cast mul sub"),
    "floor of another": (lambda d, x, y, z: d("sub", d("mul", x, y), d("floor", d("mul", y, z))), "floor mad mul neg"),
    "broadcast": (lambda d, x, y, z: d("add", z, d("broadcast", d("reduce_max", z, (1,)), (4, 6), (0,))), "add broadcast reduce_max"),
    "cast": (lambda d, x, y, z: d("add", d("cast", d("mul", x, y), "float64"), d("cast", z, "float64")), "add cast cast mul"),
    "reduction": (lambda d, x, y, z: d("reduce_sum", d("mul", x, y), (1,)), "fused_mul reduce_sum"),
    "negated reduction": (lambda d, x, y, z: d("reduce_sum", d("neg", d("mul", x, y)), (1,)), "fused_mul neg reduce_sum"),
    "padded": (lambda d, x, y, z: d("reduce_sum", d("pad", d("mul", x, y), d.const(-0.0), (0, 0), (0, 2)), (1,)), "fused_mul pad pad reduce_sum"),
    "padded with 0": (lambda d, x, y, z: d("reduce_sum", d("pad", d("mul", x, y), d.const(0.0), (0, 0), (0, 2)), (1,)), "mul pad reduce_sum"),
    "maximum": (lambda d, x, y, z: d("reduce_max", d("mul", x, y), (1,)), "mul reduce_max"),
    "scan": (lambda d, x, y, z: d("cumsum", d("mul", x, y), 1, False), "cumsum mul"),
}


@pytest.mark.parametrize("name", CASES)
def test_sums_take_products(name: str) -> None:
    make, wanted = CASES[name]
    assert _ops(make) == wanted.split()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_fractions_of_products_lie_in_their_range(dtype: str) -> None:
    x = np.arange(1000).astype(dtype)
    for step in np.asarray([0.1, 0.3, 1 / 3, 0.7], dtype):
        parts = hg.jit(
            lambda x, s: (x * s - hnp.floor(x * s), hnp.modf(x * s)[0], hnp.ceil(s * x) - x * s, x * s - (x * s).astype("int64").astype(x.dtype))
        )
        p = x * step
        for found, wanted in zip(parts(x, step), (p - np.floor(p), np.modf(p)[0], np.ceil(p) - p, p - np.trunc(p)), strict=True):
            np.testing.assert_array_equal(found.numpy(), wanted)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int32"])
def test_products_of_other_types_are_rounded(dtype: str) -> None:
    assert _ops(lambda d, x, y, z: d("add", d("mul", x, y), z), dtype) == ["add", "mul"]


def test_nothing_is_fused_in_exact_or_with_the_pass_disabled() -> None:
    x = np.ones(5, np.float32)

    def f(x: Any) -> Any:
        return x * x + x, (x * x * x).sum()

    assert "mad" in hg.jit(f).lower(x).as_text("legalized") and "fused_mul" in hg.jit(f).lower(x).as_text("legalized")
    plain = hg.jit(f, precision="exact").lower(x).as_text("legalized")
    with override(disabled_passes=("multiply_add",)):
        disabled = hg.jit(f).lower(x).as_text("legalized")
    for text in (plain, disabled):
        assert "mad" not in text and "fused_mul" not in text


# --- bits -------------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not HAS_FMA, reason="the machine has no fused multiply-add")
@given(sums_of_products(), seeds, st.booleans())
def test_kernels_give_the_bits_of_their_nodesone_by_one(graph: Graph, seed: int, special: bool) -> None:
    arrays = arguments(graph, seed, special)
    legal = legalized(graph)
    note(str(legal))
    assert same(compiler()(graph, precision="standard").run_numpy(arrays), one_by_one(legal, arrays))


@given(sums_of_products(), seeds)
def test_vectors_and_threads_change_no_bit(graph: Graph, seed: int) -> None:
    arrays = arguments(graph, seed, False)
    want = compiler()(graph, precision="standard").run_numpy(arrays)
    with override(num_threads=2):
        assert same(compiler()(graph, precision="standard").run_numpy(arrays), want)
    if target.host().has("avx2") and target.host().has("fma"):
        with override(target="x86-64-v3"):
            assert same(compiler()(graph, precision="standard").run_numpy(arrays), want)


@needs_compilers
@pytest.mark.skipif(not HAS_FMA, reason="the machine has no fused multiply-add")
@given(sums_of_products(), seeds)
def test_the_walk_in_c_gives_the_cpus_bits(graph: Graph, seed: int) -> None:
    arrays = arguments(graph, seed, False)
    want = compiler()(graph, precision="standard").run_numpy(arrays)
    plan = compile_to_plan(canonicalise(graph, "standard"), "standard", target.host().tile)
    with tempfile.TemporaryDirectory() as folder:
        assert same(run_in_c(plan, arrays, Path(folder), "standard"), want)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_without_fused_multiply_adds_products_are_rounded(dtype: str) -> None:
    rng = np.random.default_rng(5)
    x, y, z = (rng.standard_normal(200).astype(dtype) for _ in range(3))
    with override(target="x86-64-v3,-fma" if target.host().architecture == "x86_64" else ""):
        if not (target.host().has("fma") or target.host().architecture == "aarch64"):
            got = hg.jit(lambda x, y, z: (x * y + z, z - x * y))(x, y, z)
            np.testing.assert_array_equal(got[0], x * y + z)
            np.testing.assert_array_equal(got[1], z - x * y)


def test_lazy_and_jitted_programs_agree() -> None:
    """Also where lazy results that read one product are computed one after the other."""
    rng = np.random.default_rng(6)
    a, b, c = (rng.standard_normal(1000).astype(np.float32) for _ in range(3))

    def f(a: Any, b: Any, c: Any) -> Any:
        p = a * b
        return p + c, p - a, (p * c).sum(), hnp.sqrt(hnp.abs(a * c - b * a))

    for lazy, jitted in zip(f(*map(hg.tensor, (a, b, c))), hg.jit(f)(a, b, c), strict=True):
        np.testing.assert_array_equal(lazy, jitted)


def test_the_order_of_arguments_changes_no_bit() -> None:
    rng = np.random.default_rng(7)
    a, b, c, d = (rng.standard_normal(1000).astype(np.float32) for _ in range(4))
    want = np.asarray(hg.jit(lambda a, b, c, d: a * b + c * d)(a, b, c, d))
    np.testing.assert_array_equal(hg.jit(lambda c, d, a, b: a * b + c * d)(c, d, a, b), want)
