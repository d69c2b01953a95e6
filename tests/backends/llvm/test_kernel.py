"""Rendering for machines other than this one, and for this one at every level of its instruction set, against the reference to the bit."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp
from hologram.backends.llvm.toolchain import target
from hologram.ir.graph import Graph
from hologram.ir.interpreter import evaluate
from hologram.settings import override
from tests.support.building import Draft
from tests.support.graphs.programs import PROGRAMS
from tests.support.graphs.random_graphs import arguments, exact_graphs, seeds, values_of
from tests.support.graphs.small_graphs import small_graphs
from tests.support.machines import EXTERNAL, LEVELS, TRIPLES, called, machine, module_text, runnable
from tests.support.op_batches import KINDS, batch_graph, runs_alone
from tests.support.optable import Case, assert_agree, cases_of, compiler, mismatch, rows, seeded

MAGIC = {"linux": b"\x7fELF", "macos": b"\xcf\xfa\xed\xfe", "windows": (b"\x64\x86", b"\x64\xaa")}
CASES_OF_A_ROW = 2
BATCH = 40


def sample() -> list[Case]:
    table = [r for k in KINDS for r in rows(k) if runs_alone(r)]
    return [case for row in table for case in itertools.islice(cases_of(row, False), CASES_OF_A_ROW)]


def batches(cases: list[Case]) -> list[tuple[Case, ...]]:
    return [tuple(cases[i : i + BATCH]) for i in range(0, len(cases), BATCH)]


# --- objects for other machines --------------------------------------------------------------------------------------


EVERY_MACHINE = [(level, "linux") for level in [*LEVELS, "aarch64"]] + [("x86-64", "macos"), ("x86-64", "windows")]


@pytest.mark.costly(2)
@pytest.mark.parametrize(("level", "system"), EVERY_MACHINE)
def test_the_op_table_compiles_for_every_machine(level: str, system: str, everything: bool) -> None:
    """Without calls of what is linked nowhere: rounding to whole numbers, conversions of halves, 128-bit division, vector functions. A third of the
    sample for each machine, which is twice or more for each case."""
    of, turn = machine(level, system), EVERY_MACHINE.index((level, system)) % 3
    for batch in batches(sample() if everything else sample()[turn::3]):
        assert called(target.assembly(module_text(batch_graph(batch), "exact", of), of)) <= EXTERNAL


@pytest.mark.crossed
@pytest.mark.parametrize("system", TRIPLES)
@pytest.mark.parametrize("level", ["x86-64", "x86-64-v4", "aarch64"])
def test_programs_become_objects_for_every_system(system: str, level: str) -> None:
    of = machine(level, system)
    for name, precision in (("softmax", "standard"), ("long_scan", "exact"), ("halves", "exact"), ("product", "fast"), ("symbolic", "exact")):
        d = Draft()
        ir = module_text(d.graph(*PROGRAMS[name][0](d)), precision, of)
        assert target.compile_ir(ir, of).startswith(MAGIC[system])
        assert called(target.assembly(ir, of)) <= EXTERNAL


def test_vectors_are_as_wide_as_the_machine() -> None:
    """Full registers of the level, and of no other."""
    d = Draft()
    x = d.input(100_000)
    graph = d.graph(d("add", x, d("mul", x, x)))
    register = {"x86-64": "xmm", "x86-64-v3": "ymm", "x86-64-v4": "zmm"}
    for level, name in register.items():
        of = machine(level, "linux")
        text = target.assembly(module_text(graph, "exact", of), of)
        adds = re.findall(r"v?addps\s.*?%([xyz]mm)", text)
        assert adds and set(adds[:2]) == {name}, f"{level}: {adds}"
    of = machine("aarch64", "linux")
    assert re.search(r"fadd\s+v\d+\.4s", target.assembly(module_text(graph, "exact", of), of))


@pytest.mark.parametrize(("precision", "fused"), [("exact", False), ("standard", True), ("fast", True)])
def test_products_and_sums_contract_where_that_is_allowed(precision: str, fused: bool) -> None:
    d = Draft()
    graph = d.graph(d("add", d("mul", d.input(1000), d.input(1000)), d.input(1000)))
    of = machine("x86-64-v3", "linux")
    assert ("vfmadd" in target.assembly(module_text(graph, precision, of), of)) == fused


# --- this machine, at every level ------------------------------------------------------------------------------------


@pytest.fixture(params=runnable(), ids=lambda level: level or "host")
def level(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def check(graph: Graph, arrays: list[np.ndarray], wanted: list[np.ndarray], level: str) -> None:
    with override(target=level):
        got = compiler()(graph, precision="exact").run_numpy(arrays)
    for out, g, w in zip(graph.outputs, got, wanted, strict=True):
        assert g.dtype == out.dtype.np and g.shape == out.shape
        wrong = mismatch(g, w, 0)
        assert not wrong.any(), f"{out!r} at {level or 'the host'}: {g[wrong][:4]}, not {w[wrong][:4]}"


def test_every_level_gives_the_references_bits(level: str) -> None:
    for batch in batches([c for c in sample() if c[0].exact]):
        graph = batch_graph(batch)
        arrays = [a for case in batch for a in case[2]]
        with override(target=level):
            got = compiler()(graph, precision="exact").run_numpy(arrays)
        for case, g, w in zip(batch, got, evaluate(graph, arrays), strict=True):
            assert_agree(case, g, w)


@pytest.mark.parametrize("name", [n for n in PROGRAMS if n not in ("softmax", "symbolic")])
def test_programs_run_at_every_level(name: str, level: str) -> None:
    d = Draft()
    graph = d.graph(*PROGRAMS[name][0](d))
    rng = seeded(name)
    arrays = []
    for x in graph.inputs:
        shape = [int(n) for n in x.shape]
        values = rng.integers(0, 50, shape) if x.dtype.is_integer else np.abs(rng.standard_normal(shape))
        arrays.append(values.astype(x.dtype.np))
    check(graph, arrays, evaluate(graph, arrays), level)


ROUNDINGS = ("floor", "ceil", "trunc", "round")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rounding_at_every_level(dtype: str, level: str) -> None:
    """Halves, their neighbours, signed zeros, subnormals, the edge of what has a fraction, infinities, NaN; in all precisions; sign and all."""
    digits = {"float32": 23, "float64": 52}[dtype]
    kind = np.dtype(dtype).type
    halves = np.arange(-9, 10) / 2
    edges = np.array([2.0 ** (digits + k) + d for k in (-2, -1, 0, 1) for d in (-1.5, -1, -0.5, 0, 0.5, 1)])
    tiny = np.array([np.finfo(dtype).smallest_subnormal, np.finfo(dtype).tiny, np.finfo(dtype).eps, 0.0])
    base = np.concatenate([halves, edges, tiny, np.array([np.finfo(dtype).max, 1e30, np.inf, np.nan])]).astype(dtype)
    exponents = seeded("rounding").integers(-5, digits + 3, 2000)
    base = np.concatenate([base, np.ldexp(seeded("fractions").uniform(1, 2, 2000), exponents).astype(dtype)])
    values = np.concatenate([f(g(base)) for f in (np.positive, np.negative) for g in (np.positive, lambda v: np.nextafter(v, kind(0)))])
    for count in (1, values.size):  # scalars, and vectors with a tail
        arrays = [values[:count] if count > 1 else values[3:4]]
        d = Draft()
        x = d.input(count, dtype=dtype)
        graph = d.graph(*(d(name, x) for name in ROUNDINGS))
        for precision in ("exact", "standard"):
            with override(target=level):
                got = compiler()(graph, precision=precision).run_numpy(arrays)
            for name, g, w in zip(ROUNDINGS, got, evaluate(graph, arrays), strict=True):
                wrong = (g.view(f"u{g.itemsize}") != w.view(f"u{w.itemsize}")) & ~(np.isnan(g) & np.isnan(w))
                assert not wrong.any(), f"{name} of {arrays[0][wrong][:4]}: {g[wrong][:4]}, not {w[wrong][:4]}"


INTEGERS = [f"{kind}int{bits}" for kind in ("", "u") for bits in (8, 16, 32, 64)]


def ends(dtype: str) -> np.ndarray:
    """The ends of a type of integers and their neighbours, what floats lie next to them, and numbers in between."""
    info = np.iinfo(dtype)
    near = [float(e) + d for e in (info.min, info.max, info.max + 1) for d in (-1.5, -1, -0.5, 0, 0.5, 1, 1.5)]
    rng = seeded(dtype)
    return np.concatenate([near, [np.nan, np.inf, -np.inf, -0.0, 1e30, -1e30], rng.standard_normal(200) * info.max, rng.standard_normal(200) * 3])


@pytest.mark.parametrize("dtype", INTEGERS)
def test_conversions_saturate_at_every_level(dtype: str, level: str) -> None:
    d = Draft()
    inputs = [d.input(ends(dtype).size, dtype=f) for f in ("float16", "float32", "float64")]
    graph = d.graph(*(d("cast", x, dtype) for x in inputs))
    with np.errstate(over="ignore"):
        arrays = [ends(dtype).astype(x.dtype.np) for x in inputs]
    check(graph, arrays, evaluate(graph, arrays), level)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_quotients_at_every_level(dtype: str, level: str) -> None:
    """Of any two of the largest, the smallest and others, by vectors and by a constant."""
    info = np.iinfo(dtype)
    some = seeded(dtype).integers(info.min, info.max, 25, dtype=dtype, endpoint=True)
    values = np.concatenate([np.array([info.min, info.min + 1, 0, 1, 2, 3, 7, info.max // 2, info.max - 1, info.max], dtype), some])
    x, y = (a.ravel().copy() for a in np.meshgrid(values, values))
    d = Draft()
    a, b = d.input(x.size, dtype=dtype), d.input(x.size, dtype=dtype)
    graph = d.graph(*(d(op, a, divisor) for op in ("floordiv", "rem", "fmod") for divisor in (b, d.const(7, dtype))))
    check(graph, [x, y], evaluate(graph, [x, y]), level)


@pytest.mark.crossed
@pytest.mark.parametrize("wide", ["float32", "float64"])
@pytest.mark.parametrize("narrow", ["float16", "bfloat16", "float32"])
def test_choices_between_a_number_and_a_cast_one_keep_the_sign_of_zero(narrow: str, wide: str, level: str) -> None:
    """Where LLVM sees ``min(number, x)`` of another type, a zero's sign may get lost."""
    special = np.array([0.0, -0.0, 1.0, -1.0, 1e-7, -1e-7, np.inf, -np.inf, np.nan, 3.0, -3.0, 0.5, -0.5, 0.0, -0.0])
    d = Draft()
    x, y = d.input(special.size, dtype=narrow), d.input(special.size, dtype=wide)
    made = []
    for source, cast in ((x, d("cast", x, wide)), (y, d("cast", y, narrow))):
        for number in (0.0, -0.0, 1.0):
            for op in ("lt", "le"):
                for compared in (source, cast):
                    limit, chosen = d.const(number, compared.dtype.name), d.const(number, cast.dtype.name)
                    for test in (d(op, compared, limit), d(op, limit, compared)):
                        made += [d("select", test, chosen, cast), d("select", test, cast, chosen)]
    other = d.input(special.size, dtype=narrow)
    casts = [d("cast", v, wide) for v in (x, other)]
    made += [d("select", d(op, x, other), *arms) for op in ("lt", "le") for arms in (casts, casts[::-1])]
    graph = d.graph(*made)
    arrays = [special.astype(x.dtype.np), special.astype(y.dtype.np), special[::-1].astype(x.dtype.np)]
    check(graph, arrays, evaluate(graph, arrays), level)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_extremes_of_special_values(dtype: str, level: str) -> None:
    """Every pair of them, in vectors, as scalars, and of values that another type had."""
    special = np.array([0.0, -0.0, 1.0, -1.0, 1e-7, np.inf, -np.inf, np.nan, -np.nan])
    pairs = np.array(list(itertools.product(special, repeat=2))).T
    for wide in ("float32", "float64"):
        d = Draft()
        x, y = (d.input(pairs.shape[1], dtype=dtype) for _ in "xy")
        cast = [d("cast", v, wide) for v in (x, y)]
        made = [d(op, *arms) for op in ("max", "min") for arms in ((x, y), cast, (cast[0], d("neg", cast[1])))]
        graph = d.graph(*made, *(d("cast", v, dtype) for v in made))
        arrays = [p.astype(x.dtype.np) for p in pairs]
        check(graph, arrays, evaluate(graph, arrays), level)
    d = Draft()
    x, y = (d.input(dtype=dtype) for _ in "xy")
    graph = d.graph(*(d(op, *arms) for op in ("max", "min") for arms in ((x, y), (d("neg", x), y))))
    for pair in pairs.T[:: 1 if dtype == "float32" else 7]:
        scalars = [np.asarray(v, x.dtype.np) for v in pair]
        check(graph, scalars, evaluate(graph, scalars), level)


LEVEL = st.sampled_from(runnable())


@given(small_graphs(), seeds, LEVEL)
def test_random_graphs_run_at_every_level(graph: Graph, seed: int, level: str) -> None:
    arrays = arguments(graph, seed, special=True)
    values = values_of(graph, arrays)
    check(graph, arrays, [values[o] for o in graph.outputs], level)


@given(exact_graphs(), seeds, LEVEL)
def test_paged_random_graphs_run_at_every_level(graph: Graph, seed: int, level: str) -> None:
    arrays = arguments(graph, seed, special=True)
    values = values_of(graph, arrays)
    check(graph, arrays, [values[o] for o in graph.outputs], level)


# --- few instructions ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_is_rare_is_one_function_whatever_the_width(dtype: str) -> None:
    x = np.concatenate([np.linspace(-1e6, 1e6, 67), [np.inf, np.nan, -0.0]]).astype(dtype)
    f = hg.jit(hnp.sin)
    with np.errstate(invalid="ignore"):
        one_by_one = np.array([hg.jit(hnp.sin)(v).numpy() for v in x])
    np.testing.assert_array_equal(f(x).numpy(), one_by_one)
    module = f.lower(x).compile().executable._source.module.llvm
    assert len(re.findall(r"define internal .* @hg\.sin\.\w+\.rare0\.v\d+\(.*#2", module)) == 1


@given(n=st.integers(1, 150), dtype=st.sampled_from(["int8", "float16", "float32", "float64"]))
def test_what_is_left_over_is_as_all_the_rest(n: int, dtype: str) -> None:
    x = np.random.default_rng(n).integers(-9, 9, (3, n)).astype(dtype)
    total, mapped = hg.jit(lambda x: (hnp.sum(x, axis=1), hnp.maximum(x * x - 3, 1)), precision="exact")(x)
    np.testing.assert_array_equal(total.numpy(), x.sum(axis=1))
    np.testing.assert_array_equal(mapped.numpy(), np.maximum(x * x - x.dtype.type(3), x.dtype.type(1)))
