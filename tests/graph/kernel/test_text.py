"""Kernel IR as text: what is printed reads back, prints again and renders the same. And what the verifier refuses."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable

import pytest
from hypothesis import given

from hologram.backends.llvm.kernel import KernelWriter
from hologram.backends.llvm.scalars import Functions
from hologram.backends.llvm.toolchain.target import Target
from hologram.errors import CompileError
from hologram.graph.kernel.ir import Accumulate, Buffer, Kernel, Loop, Store
from hologram.graph.kernel.parser import parse_integer, parse_kernel
from hologram.graph.kernel.printer import print_kernel
from hologram.graph.kernel.verify import verify_kernel
from hologram.ir.graph import Graph
from hologram.ir.instruction import Ins
from hologram.ir.symbolic import floordiv, mod, substitute, var
from hologram.primitives import TABLE, Op
from tests.support.building import Draft, kernels, scheduled, softmax
from tests.support.graphs.programs import PROGRAMS
from tests.support.graphs.random_graphs import exact_graphs
from tests.support.graphs.small_graphs import small_graphs
from tests.support.op_batches import KINDS, batch_graph, runs_alone
from tests.support.optable import cases_of, rows

TARGETS = [Target("x86_64-unknown-linux-gnu", "x86-64"), Target("x86_64-unknown-linux-gnu", "x86-64-v4", "+avx512f,+avx512bw,+avx2,+f16c")]


def rendered(kernel: Kernel, target: Target) -> str:
    functions = Functions.of(target)
    return KernelWriter(kernel, functions, "exact", target).render("kernel") + "".join(functions.text.values())


def divides_values(text: str) -> bool:
    """How large a value in an index may be, which decides how it is divided, is not in the text."""
    return re.search(r"(taken|row)\d*[^,\[\]]*(//|%)", text) is not None


def check_round_trip(graph: Graph) -> None:
    for kernel in kernels(scheduled(graph)):
        text = print_kernel(kernel)
        again = parse_kernel(text)
        verify_kernel(again)
        assert print_kernel(again) == text
        if kernel.ready is None and not divides_values(text):
            for target in TARGETS:
                assert rendered(again, target) == rendered(kernel, target), text


@given(small_graphs())
def test_kernels_of_random_graphs_read_back(graph: Graph) -> None:
    check_round_trip(graph)


@given(exact_graphs())
def test_paged_kernels_of_random_graphs_read_back(graph: Graph) -> None:
    check_round_trip(graph)


@pytest.mark.parametrize("row", [r for k in KINDS for r in rows(k) if runs_alone(r)], ids=lambda r: r.name)
def test_kernels_of_the_op_table_read_back(row: Op, everything: bool) -> None:
    check_round_trip(batch_graph(tuple(itertools.islice(cases_of(row, everything), None if everything else 12))))


@pytest.mark.parametrize("name", PROGRAMS)
def test_kernels_of_programs_read_back(name: str) -> None:
    d = Draft()
    check_round_trip(d.graph(*PROGRAMS[name][0](d)))


def test_index_expressions_read_back() -> None:
    n, i, j = var("n0"), var("i"), var("j")
    for e in (0, -3, n, 4 * n * i - j + 7, floordiv(3 * i + j, n), mod(i + j, 7) * n, floordiv(mod(i, n) + 3 * j, 5), floordiv(i, n * j + 1)):
        back = parse_integer(str(e))
        assert str(back) == str(e)
        for values in ({"n0": 5, "i": 13, "j": 4}, {"n0": 1, "i": 0, "j": 9}):
            assert substitute(back, values) == substitute(e, values)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "kernel(b0: float32[3])x",
        "kernel(b0 float32[3] in)",
        "kernel(b0: float32[3] in)\n  parallel p from 0 count 3\n    nonsense\n",
        "kernel(b0: float32[3] in)\n  parallel p from 0 count 3 with a0 = sum\n",
        "kernel(b0: float32[3] in)\n  parallel p from 0 count p if p else 0\n",
        "kernel(b0: float32[3] in)\n  parallel p from 0 count 3\n    b0[p] = v7\n",
        "kernel(b0: float32[3] in)\n  parallel p from 0 count 3\n    v0 = load(b9, p) : float32\n",
        "kernel(b0: float32[3] in)\n  parallel p from 0 count 3\n    v0 = nothing(p) : float32\n",
        "kernel(b0: float31[3] in)\n",
    ],
)
def test_what_is_no_kernel_is_refused(text: str) -> None:
    with pytest.raises(CompileError):
        parse_kernel(text)


# --- the verifier ----------------------------------------------------------------------------------------------------

GOOD = """\
kernel(b0: float32[320] in, b1: float32[320] out, b2: float32[8] out, n0: symbol)
  scratch s0: float32[40]
  v0 = const(float32, 0x40000000) : float32
  parallel p from 0 count 8
    lanes i from 0 count 40 with a1 = reduce_max float32 -> float32
      v2 = load(b0, i+40*p) : float32
      v3 = exp(v2) : float32
      s0[i] = v3
      a1 <- v3
    lanes i from 0 count 40
      v4 = inside(i, n0) : bool
      v5 = load(s0, i) : float32
      v6 = sub(v5, a1) : float32
      v7 = cast(v6, int64) : int64
      taken1 = cast(v6, int64) : int64 below 960
      v9 = load(v4, b0, (taken1//3)) : float32
      v10 = mul(v9, v0) : float32
      b1[i+40*p] = v10 where v4
    b2[p] = a1
"""

# (what is replaced, by what, what the error says)
DEFECTS = [
    ("b2: float32[8] out", "b2: float32[8] out, b2: float32[8] out", "one name"),
    ("n0: symbol", "b2: symbol", "one name"),
    ("parallel p from 0", "serial p from 0", "beside the parallel loop"),
    ("parallel p from 0", "parallel p from 1", "from 0"),
    ("count 8\n", "count 8 below 7\n", "from 0"),
    ("    lanes i from 0 count 40\n", "    parallel i from 0 count 40\n", "outermost"),
    ("    lanes i from 0 count 40\n", "    lanes p from 0 count 40\n", "hides"),
    ("    lanes i from 0 count 40\n", "    lanes i from j count 40\n", "j is not known"),
    ("      s0[i] = v3\n", "      lanes t from 0 count 4\n        s0[i] = v3\n", "inside another"),
    ("v6 = sub(v5, a1)", "v6 = sub(v3, a1)", "after its block"),
    ("      a1 <- v3\n", "", "updated 0 times"),
    ("      a1 <- v3\n", "      a1 <- v3\n      a1 <- v3\n", "updated 2 times"),
    ("    lanes i from 0 count 40\n", "    lanes i from 0 count 40 shared by 2\n", "what parallel iterations share"),
    ("    lanes i from 0 count 40\n", "    serial i from 0 count 40 shared by 2\n", "what parallel iterations share"),  # it writes a result
    ("v3 = exp(v2)", "v3 = add(v2, a1)", "before its loop is done"),
    ("a1 <- v3", "a1 <- v0, v3", "takes float32"),
    ("      s0[i] = v3\n      a1 <- v3\n", "      serial q from 0 count 2\n        a1 <- v3\n", "updated 0 times"),
    ("reduce_max float32 -> float32", "reduce_max float32 -> int64", "does not give"),
    ("reduce_max float32 -> float32", "reduce_any float32 -> float32", "does not give"),
    ("reduce_max float32 -> float32", "reduce_max float16 -> float16", "does not give"),
    ("reduce_max float32 -> float32", "add float32 -> float32", "no reduction"),
    ("v3 = exp(v2) : float32", "v3 = exp(v2) : float64", "gives a float32"),
    ("v3 = exp(v2)", "v3 = exp(v2, v2)", "1 operands"),
    ("v3 = exp(v2)", "v3 = reduce_sum(v2)", "no elementwise op"),
    ("v3 = exp(v2)", "v3 = transpose(v2)", "no elementwise op"),
    ("v6 = sub(v5, a1)", "v6 = sub(v5, v4)", "differ"),
    ("b0: float32[320] in", "b0: float16[320] in", "a float32 is loaded"),
    ("v2 = load(b0, i+40*p)", "v2 = load(b1, i+40*p)", "only written"),
    ("v2 = load(b0, i+40*p)", "v2 = load(b0, i+40*p+320)", "outside of b0"),
    ("v2 = load(b0, i+40*p)", "v2 = load(b0, i+40*p+1)", "may lie outside of b0"),
    ("v2 = load(b0, i+40*p)", "v2 = load(b0, i+40*p-1)", "may lie outside of b0"),
    ("b1[i+40*p] = v10", "b1[i+41*p] = v10", "may lie outside of b1"),
    ("s0[i] = v3", "s0[i+p] = v3", "may lie outside of s0"),
    ("int64 below 960", "int64 below 961", "may lie outside of b0"),
    (" below 960", "", "may lie outside of b0"),
    ("b2[p] = a1", "b2[p//2] = a1", "iterations of parallel loops"),
    ("      v9 = load", "      taken2 = cast(v6, int64) : int64\n      taken1 = cast(v6, int64) : int64\n      v9 = load", "hides"),
    ("      s0[i] = v3\n", "      taken1 = cast(v3, int64) : int64\n      s0[i] = v3\n", "the name of two values"),
    ("v2 = load(b0, i+40*p)", "v2 = load(b0, i+40*t)", "t is not known"),
    ("v2 = load(b0, i+40*p)", "v2 = load(v0, b0, i+40*p)", "at most a mask"),
    ("(taken1//3)", "(taken2//3)", "taken2 is not known"),
    ("taken1 = cast(v6, int64) : int64 below 960", "taken1 = abs(v6) : float32", "goes through a float32"),
    ("b1[i+40*p] = v10", "b0[i+40*p] = v10", "only read"),
    ("b1[i+40*p] = v10", "b1[i+40*p] = v7", "a int64 is stored"),
    ("where v4", "where v10", "mask is a bool"),
    ("v4 = inside(i, n0) : bool", "v4 = inside(i, n1) : bool", "n1 is not known"),
    ("v4 = inside(i, n0) : bool", "v4 = inside(i, n0) : int64", "gives a bool"),
    ("v0 = const(float32, 0x40000000)", "v0 = const(float32, 0x4000)", "bits"),
    ("    b2[p] = a1\n", "  b2[0] = v0\n", "beside the parallel loop"),
    ("      s0[i] = v3\n", "      serial q from 0 count 1 below i\n        s0[i] = v3\n", "differs between lanes"),
    ("      b1[i+40*p] = v10", "      serial q from taken1 count 2\n        b1[i+40*p] = v10", "differs between lanes"),
]


def test_well_formed_kernel_verifies() -> None:
    kernel = parse_kernel(GOOD)
    verify_kernel(kernel)
    assert str(kernel) == GOOD


@pytest.mark.parametrize(("old", "new", "trouble"), DEFECTS)
def test_verifier_names_the_defect(old: str, new: str, trouble: str) -> None:
    assert GOOD.count(old) == 1
    with pytest.raises(CompileError, match=trouble):
        verify_kernel(parse_kernel(GOOD.replace(old, new)))


def loop_of(kernel: Kernel, kind: str) -> Loop:
    return next(s for s in kernel.walk() if isinstance(s, Loop) and s.kind == kind)


def _undeclared(kernel: Kernel) -> None:
    (store,) = (s for s in kernel.walk() if isinstance(s, Store) and s.buffer.name == "b2")
    store.buffer = Buffer("b7", store.buffer.dtype, "out", store.buffer.size)


def _twice(kernel: Kernel) -> None:
    body = loop_of(kernel, "lanes").body
    body.append(body[0])


def _foreign_accumulator(kernel: Kernel) -> None:
    first, second = (s for s in kernel.walk() if isinstance(s, Loop) and s.kind == "lanes")
    value = next(s for s in second.body if isinstance(s, Ins) and s.opname == "mul")
    second.body.append(Accumulate(first.accs[0], (value,)))


def _sized_scratch(kernel: Kernel) -> None:
    kernel.scratch[0].size = var("n0")


def _iterations(kernel: Kernel) -> None:
    kernel.iterations = 9


def _stranger(kernel: Kernel) -> None:
    ins = next(s for s in kernel.walk() if isinstance(s, Ins) and s.opname == "exp")
    ins.op = "rare"


def _half(kernel: Kernel) -> None:
    """Narrow floats are cast before they compute."""
    d = Draft()
    x = d.input(10, dtype="float16")
    (other,) = kernels(d.schedule(d("neg", x)))
    loop = loop_of(other, "lanes")
    load = next(s for s in loop.body if isinstance(s, Ins) and s.opname == "load")
    kernel.params, kernel.body, kernel.iterations, kernel.scratch = other.params, other.body, other.iterations, []
    loop.body.append(Ins(TABLE["neg"], (load,), (), load.dtype))


def _ready(kernel: Kernel) -> None:
    kernel.ready = ("sort_keys_uint32", (40, 0))


@pytest.mark.parametrize(
    ("damage", "trouble"),
    [
        (_undeclared, "b7 is not declared"),
        (_twice, "a second time"),
        (_foreign_accumulator, "does not have that accumulator"),
        (_sized_scratch, "scratch buffer s0"),
        (_iterations, "9 iterations"),
        (_stranger, "'rare'"),
        (_half, "compute in float32"),
        (_ready, "has no body"),
    ],
)
def test_verifier_names_what_no_text_says(damage: Callable[[Kernel], None], trouble: str) -> None:
    kernel = parse_kernel(GOOD)
    damage(kernel)
    with pytest.raises(CompileError, match=trouble):
        verify_kernel(kernel)


def test_verifier_shows_the_statement_and_the_kernel() -> None:
    with pytest.raises(CompileError) as e:
        verify_kernel(parse_kernel(GOOD.replace("v3 = exp(v2) : float32", "v3 = exp(v2) : float64")))
    first, *rest = str(e.value).splitlines()
    assert first == "malformed kernel, exp gives a float32: v3 = exp(v2) : float64"
    assert rest[0].startswith("kernel(")


def test_malformed_kernel_prints() -> None:
    d = Draft()
    (kernel,) = kernels(d.schedule(softmax(d, d.input(8, 40))))
    loop_of(kernel, "lanes").body.pop(0)
    assert "?" in str(kernel)


def test_kernel_that_a_backend_has_ready_reads_back() -> None:
    text = "kernel(b0: uint32[12] in, b1: uint32[24] out, n0: symbol)\n  ready sort_keys_uint32(n0, 0) 3 times\n"
    kernel = parse_kernel(text)
    verify_kernel(kernel)
    assert str(kernel) == text and kernel.iterations == 3 and kernel.ready == ("sort_keys_uint32", (var("n0"), 0))


def test_parsed_kernel_knows_its_iterations() -> None:
    assert parse_kernel(GOOD).iterations == 8
