"""Checked mode: an index beyond its buffer is an error, memory that nobody wrote is not a number, and all else gives the same bits."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as of_hypothesis

import hologram as hg
import hologram.numpy as hnp
from hologram.backends.llvm.toolchain import target
from hologram.backends.native import guarded_memory, storage
from hologram.backends.native.code.checked import POISON
from hologram.errors import BoundsError, CompileError
from hologram.graph import pipeline
from hologram.graph.kernel.ir import Loop, Store
from hologram.ir.graph import Graph
from hologram.ir.instruction import Ins
from hologram.settings import override
from hologram.trace.compiling import compile_graph
from tests.support.graphs.random_graphs import arguments, seeds
from tests.support.graphs.small_graphs import small_graphs
from tests.support.kernel_runs import compiled, rendered
from tests.support.machines import EXTERNAL, TRIPLES, called, machine, runnable
from tests.support.optable import compiler

# Kernels that access every element of x or y, some of the first and the last in one vector. ``row1`` is 0: any other value leads beyond an end.
# Each stands for a way in which memory is accessed.
HEAD = "kernel(x: {d}[{x}] in, at: int64[{a}] in, off: int64[1] in, y: {d}[{y}] out)\n"
CHUNK = "  parallel p from 0 count 4 repeating\n    row1 = load(off, 0) : int64 assumed\n"
Sizes = tuple[int, int, int]  # of x, at and y


def rows(*lines: str) -> str:
    """A kernel's body, indented as a block of the parallel loop."""
    return CHUNK + "".join(f"    {line}\n" for line in lines)


LANES = "lanes i from 0 count {n}"
KERNELS: dict[str, tuple[Sizes, str]] = {
    "scalar load": ((4, 1, 4), rows("v1 = load(x, p+row1) : {d}", "y[p] = v1")),
    "scalar store": ((4, 1, 4), rows("v1 = load(x, p) : {d}", "y[p+row1] = v1")),
    "masked scalar load": ((2, 1, 4), rows("v1 = inside(p, 2) : bool", "v2 = load(v1, x, p+row1) : {d}", "y[p] = v2")),
    "masked scalar store": ((4, 1, 2), rows("v1 = inside(p, 2) : bool", "v2 = load(x, p) : {d}", "y[p+row1] = v2 where v1")),
    "vector load": ((256, 1, 256), rows("lanes i from 0 count 64", "  v1 = load(x, i+64*p+row1) : {d}", "  y[i+64*p] = v1")),
    "vector store": ((256, 1, 256), rows("lanes i from 0 count 64", "  v1 = load(x, i+64*p) : {d}", "  y[i+64*p+row1] = v1")),
    "load with a tail": ((148, 1, 148), rows("lanes i from 0 count 37", "  v1 = load(x, i+37*p+row1) : {d}", "  y[i+37*p] = v1")),
    "store with a tail": ((148, 1, 148), rows("lanes i from 0 count 37", "  v1 = load(x, i+37*p) : {d}", "  y[i+37*p+row1] = v1")),
    "tail alone": ((12, 1, 12), rows("lanes i from 0 count 3", "  v1 = load(x, i+3*p+row1) : {d}", "  y[i+3*p] = v1")),
    "masked load": (
        (20, 1, 37),
        rows("lanes i from 0 count 37", "  v1 = inside(i, 20) : bool", "  v2 = load(v1, x, i+row1) : {d}", "  y[i] = v2"),
    ),
    "load of a masked row": (
        (148, 1, 148),
        rows("v1 = inside(p, 4) : bool", "lanes i from 0 count 37", "  v2 = load(v1, x, i+37*p+row1) : {d}", "  y[i+37*p] = v2"),
    ),
    "masked store": (
        (37, 1, 20),
        rows("lanes i from 0 count 37", "  v1 = inside(i, 20) : bool", "  v2 = load(x, i) : {d}", "  y[i+row1] = v2 where v1"),
    ),
    "reversed load": ((256, 1, 256), rows("lanes i from 0 count 64", "  v1 = load(x, 255-i-64*p+row1) : {d}", "  y[i+64*p] = v1")),
    "reversed store": ((148, 1, 148), rows("lanes i from 0 count 37", "  v1 = load(x, i+37*p) : {d}", "  y[147-i-37*p+row1] = v1")),
    "load shared by lanes": (
        (4, 1, 148),
        rows("lanes i from 0 count 37", "  v1 = load(x, p+row1) : {d}", "  y[i+37*p] = v1"),
    ),
    "strided load": ((511, 1, 256), rows("lanes i from 0 count 64", "  v1 = load(x, 2*i+128*p+row1) : {d}", "  y[i+64*p] = v1")),
    "strided load with a tail": ((442, 1, 148), rows("lanes i from 0 count 37", "  v1 = load(x, 3*i+111*p+row1) : {d}", "  y[i+37*p] = v1")),
    "reversed strided load": ((511, 1, 256), rows("lanes i from 0 count 64", "  v1 = load(x, 510-2*i-128*p+row1) : {d}", "  y[i+64*p] = v1")),
    "masked strided load": (
        (39, 1, 64),
        rows("lanes i from 0 count 64", "  v1 = inside(i, 20) : bool", "  v2 = load(v1, x, 2*i+row1) : {d}", "  y[i] = v2"),
    ),
    "stores side by side": (
        (512, 1, 512),
        rows(
            "lanes i from 0 count 64",
            "  v1 = load(x, i+64*p) : {d}",
            "  v2 = load(x, i+64*p+256) : {d}",
            "  y[2*i+128*p+row1] = v1",
            "  y[2*i+128*p+row1+1] = v2",
        ),
    ),
    "strided store": ((148, 1, 442), rows("lanes i from 0 count 37", "  v1 = load(x, i+37*p) : {d}", "  y[3*i+111*p+row1] = v1")),
    "far load": ((4 * 36 * 20 + 4, 1, 148), rows("lanes i from 0 count 37", "  v1 = load(x, 80*i+p+row1) : {d}", "  y[i+37*p] = v1")),
    "gather": (
        (50, 148, 148),
        rows("lanes i from 0 count 37", "  taken2 = load(at, i+37*p) : int64", "  v3 = load(x, taken2+row1) : {d}", "  y[i+37*p] = v3"),
    ),
    "masked gather": (
        (50, 148, 148),
        rows(
            "lanes i from 0 count 37",
            "  taken2 = load(at, i+37*p) : int64",
            "  v3 = inside(taken2, 50) : bool",
            "  v4 = load(v3, x, taken2+row1) : {d}",
            "  y[i+37*p] = v4",
        ),
    ),
    "scatter": (
        (148, 148, 50),
        rows("lanes i from 0 count 37", "  taken2 = load(at, i+37*p) : int64", "  v3 = load(x, i+37*p) : {d}", "  y[taken2+row1] = v3"),
    ),
    "serial scatter": (
        (148, 148, 50),
        rows("serial i from 0 count 37", "  taken2 = load(at, i+37*p) : int64", "  v3 = load(x, i+37*p) : {d}", "  y[taken2+row1] = v3"),
    ),
    "transposed block": (
        (4 * 33 * 35, 1, 4 * 33 * 35),
        rows("serial q from 0 count 33", "  lanes t from 0 count 35", "    v1 = load(x, q+33*t+1155*p+row1) : {d}", "    y[35*q+t+1155*p] = v1"),
    ),
    "reduced row": (
        (4 * 133, 1, 4),
        rows("lanes i from 0 count 133 with a0 = reduce_sum {d} -> {d}", "  v1 = load(x, i+133*p+row1) : {d}", "  a0 <- v1", "y[p] = a0"),
    ),
    "result of a reduced row": (
        (4 * 133, 1, 4),
        rows("lanes i from 0 count 133 with a0 = reduce_sum {d} -> {d}", "  v1 = load(x, i+133*p) : {d}", "  a0 <- v1", "y[p+row1] = a0"),
    ),
    "mixed-width columns": (
        (4 * 56 * 9, 1, 4 * 56),
        rows(
            "lanes i from 0 count 56",
            "  serial q from 0 count 9 with a0 = reduce_sum {d} -> {d}",
            "    v1 = load(x, i+56*q+504*p+row1) : {d}",
            "    a0 <- v1",
            "  y[i+56*p] = a0",
        ),
    ),
    "running value": (
        (4 * 53, 1, 4 * 53),
        rows(
            "lanes i from 0 count 53 with a0 = cumsum {d} -> {d}",
            "  v1 = load(x, i+53*p+row1) : {d}",
            "  v2 = scan(v1, a0) : {d}",
            "  y[i+53*p] = v2",
        ),
    ),
    "scratch": (
        (148, 1, 148),
        "  scratch s: {d}[37]\n"
        + rows(
            "lanes i from 0 count 37",
            "  v1 = load(x, i+37*p) : {d}",
            "  s[i+row1] = v1",
            "lanes j from 0 count 37",
            "  v2 = load(s, j) : {d}",
            "  y[j+37*p] = v2",
        ),
    ),
    "sums in scratch": (
        (148, 1, 148),
        "  scratch s: {d}[37]\n"
        + rows(
            "lanes i from 0 count 37",
            "  v1 = load(x, i+37*p) : {d}",
            "  s[i] = v1",
            "lanes j from 0 count 37",
            "  v2 = load(s, j+row1) : {d}",
            "  v3 = load(x, j+37*p) : {d}",
            "  v4 = add(v2, v3) : {d}",
            "  y[j+37*p] = v4",
        ),
    ),
    "load of scratch by a place": (
        (37, 148, 148),
        "  scratch s: {d}[37]\n"
        + rows(
            "lanes i from 0 count 37",
            "  v1 = load(x, i) : {d}",
            "  s[i] = v1",
            "lanes j from 0 count 37",
            "  taken2 = load(at, j+37*p) : int64",
            "  v3 = load(s, taken2+row1) : {d}",
            "  y[j+37*p] = v3",
        ),
    ),
}
TYPES = ["float32", "float64", "int64", "uint8", "bool", "float16"]
WRONG = [1, -1, 2**45, -(2**45), 2**62]
VIOLATION = re.compile(r"element (-?\d+) of (\w+), which has (\d+), would have been (read|written) by a kernel.*?: (.*)\n(kernel\((?s:.*))")


def operands(sizes: Sizes, dtype: str) -> list[np.ndarray]:
    """x, and places in x or y of which the first and the last are some."""
    rng = np.random.default_rng(0)
    at = rng.integers(0, min(sizes[0], sizes[2]), sizes[1])
    at[-1:] = min(sizes[0], sizes[2]) - 1
    at[: sizes[1] - 1][:1] = 0
    return [rng.integers(0, 2 if dtype == "bool" else 5, sizes[0]).astype(dtype), at]


def kernel_text(name: str, dtype: str) -> tuple[str, list[np.ndarray]]:
    sizes, body = KERNELS[name]
    return (HEAD + body).format(d=dtype, x=sizes[0], a=sizes[1], y=sizes[2]), operands(sizes, dtype)


def sums(name: str) -> bool:
    return "reduce_" in KERNELS[name][1] or "cumsum" in KERNELS[name][1] or "add(" in KERNELS[name][1]


def check_reported(run: Callable[..., Any], arrays: list[np.ndarray], off: int) -> None:
    with pytest.raises(BoundsError) as e:
        run(*arrays, np.array([off]))
    found = VIOLATION.match(str(e.value))
    assert found is not None, str(e.value)
    index, size = int(found[1]), int(found[3])
    assert not 0 <= index < size
    assert abs(index - off) <= max(2 * size, 4 * 36 * 20 + 4), f"{index} is far from what the index expression gives"
    assert f"{found[2]}:" in found[6] and "row1" in found[5] and found[5] in found[6]
    assert ("= load(" in found[5]) == (found[4] == "read")


FINE = np.array([0])


@pytest.mark.parametrize("name", KERNELS)
def test_a_wrong_index_is_reported(name: str) -> None:
    text, arrays = kernel_text(name, "float32")
    run = compiled(text)
    for got, want in zip(run(*arrays, FINE), compiled(text, checked=False)(*arrays, FINE), strict=True):
        written = ~poisoned(got)
        np.testing.assert_array_equal(got[written], want[written])
        assert written.all() or "store" in name or "scatter" in name
    for off in WRONG:
        check_reported(run, arrays, off)
    run(*arrays, FINE)  # nothing is left of the error


@pytest.mark.parametrize("level", runnable()[1:])
def test_a_wrong_index_is_reported_at_every_level(level: str, everything: bool) -> None:
    names = list(KERNELS)
    for name in names if everything else names[runnable().index(level) :: 4]:
        text, arrays = kernel_text(name, "float32")
        run = compiled(text, level)
        run(*arrays, FINE)
        for off in WRONG:
            check_reported(run, arrays, off)


@pytest.mark.parametrize("dtype", TYPES[1:])
def test_a_wrong_index_is_reported_for_every_width(dtype: str, everything: bool) -> None:
    names = [name for name in KERNELS if not sums(name) or dtype not in ("bool", "float16")]  # which are not added
    for name in names if everything else names[TYPES.index(dtype) :: 5]:
        text, arrays = kernel_text(name, dtype)
        run = compiled(text)
        run(*arrays, FINE)
        for off in (1, -1):
            check_reported(run, arrays, off)


def by_many_chunks(text: str) -> str:
    """The kernel with 4,000 chunks, which do what its four do."""
    head, _, body = text.partition("\n")
    body = body.replace("parallel p from 0 count 4 ", "parallel c from 0 count 4000 ")
    body = body.replace("row1 = load", "taken9 = index(c%4) : int64\n    row1 = load")
    return f"{head}\n" + re.sub(r"\bp\b", "taken9", body)


@pytest.mark.parametrize("name", ["scalar load", "store with a tail", "gather", "scatter", "scratch"])
def test_threads_report_too(name: str, threads: Any) -> None:
    threads(3)
    text, arrays = kernel_text(name, "float32")
    run = compiled(by_many_chunks(text), cost=3000.0)
    for off in (0, *WRONG):
        if off:
            check_reported(run, arrays, off)
        else:
            run(*arrays, FINE)


@pytest.mark.parametrize("system", TRIPLES)
@pytest.mark.parametrize("level", ["x86-64-v4", "aarch64"])
def test_checks_compile_for_every_system(system: str, level: str) -> None:
    of = machine(level, system)
    for name in ("store with a tail", "gather"):
        _, module = rendered(kernel_text(name, "float32")[0], of, True)
        assert called(target.assembly(module, of)) <= EXTERNAL


def test_it_says_which_access() -> None:
    text, arrays = kernel_text("gather", "float32")
    with pytest.raises(BoundsError, match=r"element 1000 of x, which has 50, would have been read by a kernel.*: v\d+ = load\(x, row1\+taken2\)"):
        arrays[1][20] = 1000
        compiled(text)(*arrays, FINE)


# --- compilers that err ----------------------------------------------------------------------------------------------


@pytest.fixture
def shifted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A compiler whose kernels read every element one place too far, and whose verifier is off."""
    lower = pipeline.lower_groups

    def wrong(*args: Any) -> Any:
        found = lower(*args)
        steps = found.steps
        for step in steps:
            for s in step.kernel.walk() if hasattr(step, "kernel") else ():
                if isinstance(s, Ins) and s.op == "load":
                    s.attrs = (s.attrs[0], s.attrs[1] + 1)
        return found

    monkeypatch.setattr(pipeline, "lower_groups", wrong)
    with override(verify=False):
        yield


X = np.ones((6, 40), np.float32)
SMALL = np.ones((6, 4), np.float32)
PROGRAMS: dict[str, tuple[Callable[..., Any], list[np.ndarray]]] = {
    "elements": (lambda x: x + 1, [X]),
    "many elements": (lambda x: hnp.exp(x), [np.ones(300_000, np.float32)]),
    "rows": (lambda x: x - x.sum(axis=1, keepdims=True), [X]),
    "product": (lambda x, y: x @ y, [X, X.T.copy()]),
    "gather": (lambda x, i: x[i], [X, np.array([5, 0])]),
    "scatter": (lambda x, i: x.at[i].add(1.0), [X, np.array([5, 0])]),
    "small loop": (lambda x: hg.scan(lambda c, r: (c + r, c * r), x[0], x), [SMALL]),
    "loop": (lambda x: hg.scan(lambda c, r: (c + r @ r, r), 0.0, x), [np.ones((6, 400), np.float32)]),
    "endless loop": (lambda x: hg.while_loop(lambda c: hnp.sum(c) > -1.0, lambda c: c * 0.5, x), [SMALL]),
    "branches": (lambda x: hg.cond(x[0, 0] > 0, lambda y: y + 1, lambda y: y - 1, x), [X]),
    "attention": (lambda q: hg.nn.dot_product_attention(q, q, q), [np.ones((2, 70, 2, 16), np.float32)]),
}


@pytest.mark.usefixtures("shifted")
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_compiler_that_errs_is_found(name: str, dynamic: bool) -> None:
    f, arrays = PROGRAMS[name]
    if dynamic and name not in ("elements", "many elements", "rows"):
        return
    with override(checked=True, cache=False), pytest.raises(BoundsError):
        hg.block_until_ready(hg.jit(f, dynamic=dynamic)(*arrays))


@pytest.mark.usefixtures("shifted")
def test_every_way_in_reports() -> None:
    with override(checked=True, cache=False):
        with pytest.raises(BoundsError):
            (hnp.asarray(X) * 2 + 1).numpy()
        with override(native=False), pytest.raises(BoundsError):
            hg.jit(lambda x: x * 3)(X).numpy()
        run: Any = compile_graph(hg.jit(lambda x: x * 5).lower(X).graph)
        with pytest.raises(BoundsError):
            run.bound()(X.ctypes.data, np.empty_like(X).ctypes.data)


def test_a_buffer_that_is_taken_for_larger_than_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    lower = pipeline.lower_groups

    def wrong(*args: Any) -> Any:
        found = lower(*args)
        steps = found.steps
        steps[0].kernel.params[0].size += 1
        return found

    monkeypatch.setattr(pipeline, "lower_groups", wrong)
    with override(checked=True, cache=False), pytest.raises(CompileError, match=r"takes b0 for 241 elements of float32, but it is float32\[240\]"):
        hg.jit(lambda x: x + 11)(X)


# --- memory ----------------------------------------------------------------------------------------------------------


def poisoned(a: np.ndarray) -> np.ndarray:
    """Which elements hold what memory holds before it is written."""
    bits = a.view(f"u{a.itemsize}")
    return np.asarray(bits == np.frombuffer(POISON.to_bytes(8, "little"), bits.dtype)[0])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_poison_is_no_number(dtype: str) -> None:
    from hologram import dtypes

    assert np.isnan(np.frombuffer(POISON.to_bytes(8, "little"), dtypes.of(dtype).np).astype(np.float64)).all()


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "float16"])
def test_what_is_not_written_is_poison(dtype: str) -> None:
    text = f"kernel(x: {dtype}[40] in, y: {dtype}[40] out)\n  parallel p from 0 count 1\n    lanes i from 0 count 20\n"
    text += f"      v0 = load(x, i) : {dtype}\n      y[i] = v0\n"
    (got,) = compiled(text)(np.ones(40, dtype))
    assert (got[:20] == 1).all() and poisoned(got[20:]).all()


def test_scratch_begins_as_poison() -> None:
    text = "kernel(x: float32[64] in, y: float32[64] out)\n  scratch s: float32[32]\n  parallel p from 0 count 2\n    lanes i from 0 count 32\n"
    text += "      v0 = load(s, i) : float32\n      y[i+32*p] = v0\n"
    assert poisoned(compiled(text)(np.ones(64, np.float32))[0]).all()


@pytest.mark.parametrize("n", [7, 1000, 200_000])
def test_an_intermediate_that_is_not_written_gives_no_number(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where its place in the arena held another one before."""
    lower = pipeline.lower_groups

    def forgets(fused: Any, *args: Any) -> Any:
        """The last kernel of those that write to the arena, not in place, writes nothing."""
        found = lower(fused, *args)
        last = [s for s in found.steps if not s.in_place and not set(s.bindings) & set(fused.computed)][-1]
        _without_stores(last.kernel.body)
        return found

    def f(x: Any) -> Any:
        for _ in range(4):
            x = hnp.cumsum(hnp.flip(x))
        return x

    x = np.ones(n, np.float32)
    with override(checked=True, cache=False):
        assert np.isfinite(hg.jit(f)(x).numpy()).all()
        monkeypatch.setattr(pipeline, "lower_groups", forgets)
        assert np.isnan(hg.jit(f)(x).numpy()).any()


def _without_stores(body: list[Any]) -> None:
    body[:] = [s for s in body if not isinstance(s, Store)]
    for s in body:
        if isinstance(s, Loop):
            _without_stores(s.body)


def test_donated_memory_is_not_poisoned() -> None:
    with override(checked=True):
        f = hg.jit(lambda x, y: (x * 2 + y, y + 1), donate_argnums=(0,))
        for _ in range(3):
            got, other = f(hg.tensor(X), hg.tensor(X))
            np.testing.assert_array_equal(got.numpy(), X * 3)
            np.testing.assert_array_equal(other.numpy(), X + 1)


def test_memory_lies_between_pages_that_nobody_may_touch() -> None:
    if not Path("/proc/self/maps").exists():
        pytest.skip("only Linux shows what is mapped")
    hg.clear_caches()
    before = len(guarded_memory._blocks)
    with override(checked=True):
        for n in (1, 64, 4096, 100_000):
            made = storage.copy_of(np.ones(n, np.uint8))
            end = made.data + -(-n // 64) * 64 if n <= 4096 else None
            assert end is None or end % guarded_memory.PAGE == 0
            regions = [line.split()[:2] for line in Path("/proc/self/maps").read_text().splitlines()]
            spans = [(*(int(x, 16) for x in r.split("-")), kind) for r, kind in regions]
            inside = next((low, high) for low, high, _ in spans if low <= made.data < high)
            assert all(any(low <= at < high and kind.startswith("---") for low, high, kind in spans) for at in (inside[0] - 1, inside[1]))
        assert len(guarded_memory._blocks) > before
        del made
        hg.clear_caches()
    assert len(guarded_memory._blocks) == before


def test_where_the_system_gives_no_pages_there_are_no_guards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guarded_memory, "MAX_BLOCKS", 0)
    with override(checked=True):
        hg.clear_caches()
        np.testing.assert_array_equal(hg.jit(lambda x: x + 13)(X).numpy(), X + 13)


def test_beyond_the_end_the_process_stops() -> None:
    code = """
import ctypes, faulthandler, sys
faulthandler.disable()
from hologram.backends.native import guarded_memory
place = guarded_memory.allocate(64)
(ctypes.c_uint8 * 64).from_address(place)[63] = 1
print("alive", flush=True)
ctypes.c_uint8.from_address(place + 64 if sys.argv[1] == "end" else place - guarded_memory.PAGE).value = 1
print("still alive", flush=True)
"""
    for end in ("end", "start"):
        done = subprocess.run([sys.executable, "-c", code, end], capture_output=True, text=True)
        assert done.stdout == "alive\n" and done.returncode != 0


# --- nothing else changes --------------------------------------------------------------------------------------------


@of_hypothesis(max_examples=10)
@given(small_graphs(), seeds)
def test_random_graphs_give_the_same_bits(graph: Graph, seed: int) -> None:
    arrays = arguments(graph, seed, special=True)
    precision = ("exact", "fast")[seed % 2]
    want = compiler()(graph, precision=precision).run_numpy(arrays)
    with override(checked=True):
        got = compiler()(graph, precision=precision).run_numpy(arrays)
    for g, w in zip(got, want, strict=True):
        assert g.dtype == w.dtype and g.tobytes() == w.tobytes()


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_give_the_same_bits(name: str) -> None:
    f, arrays = PROGRAMS[name]
    if name == "endless loop":
        return
    want = hg.jit(f)(*arrays)
    with override(checked=True):
        got = hg.jit(f)(*arrays)
    for g, w in zip(hg.tree.leaves(got), hg.tree.leaves(want), strict=True):
        np.testing.assert_array_equal(np.asarray(g), np.asarray(w))


def test_a_function_is_compiled_anew_under_the_setting() -> None:
    f = hg.jit(lambda x: x * 7)
    for checked in (False, True, False):
        with override(checked=checked):
            f(X)
            assert ("hg_violated" in f.lower(X).as_text("llvm")) == checked
