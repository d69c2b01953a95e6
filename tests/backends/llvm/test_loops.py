"""Loops in machine code: what a step touches is what its body reads and writes; scalars and short vectors are in registers, in nests too."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp
from hologram.backends.llvm.graph import bodies
from hologram.settings import override

Function = Callable[..., Any]
ACCESS = re.compile(r"\b(load|store) (<[^>]*>|\w+)|@llvm\.(memcpy|masked\.\w+)")


def _graph_text(f: Function, *args: Any) -> str:
    text: str = hg.jit(f).lower(*args).as_text("llvm")
    return text[text.index("@graph(") :].partition("\n}")[0]


def _lines_in_loops(text: str) -> list[str]:
    """The instructions of the graph function that a loop runs."""
    blocks = {name: body for name, body in re.findall(r"^([\w.]+):[^\n]*\n(.*?)(?=^[\w.]+:|\Z)", text, re.DOTALL | re.MULTILINE)}
    flow = nx.DiGraph()
    flow.add_edges_from((name, target) for name, body in blocks.items() for target in re.findall(r"label %([\w.]+)", body))
    again = [part for part in nx.strongly_connected_components(flow) if len(part) > 1 or any(flow.has_edge(n, n) for n in part)]
    assert again, "no loop is left"
    return [line for part in again for name in part for line in blocks[name].splitlines()]


def _accesses(f: Function, *args: Any) -> set[str]:
    """What loops load, store and copy: ``load double``, ``store i64``, ``memcpy`` …"""
    lines = _lines_in_loops(_graph_text(f, *args))
    assert not any("call" in line and "@kernel" in line for line in lines), "kernels are part of the loop"
    return {" ".join(filter(None, m.groups())) for line in lines for m in ACCESS.finditer(line)}


A = np.random.default_rng(0).standard_normal((300, 300))


def _column(a: Any) -> Any:
    return hg.fori_loop(0, 300, lambda i, s: s + a[i, 3], 0.0)


def _search(a: Any) -> Any:
    return hg.while_loop(lambda i: a[i, 0] < 3.0, lambda i: i + 1, 0)


def _nested(a: Any) -> Any:
    return hg.fori_loop(0, 300, lambda i, s: hg.fori_loop(0, 300, lambda j, t: t * 0.5 + a[i, j] * a[j, i], s), 0.0)


def _while_in_scan(a: Any) -> Any:
    def count(x: Any) -> Any:
        return hg.while_loop(lambda s: (s[0] < 100.0) & (s[1] < 50), lambda s: (s[0] * x + 1.0, s[1] + 1), (0.0, 0))[1]

    return hg.scan(lambda n, row: (n + count(row[0]), None), 0, a)[0]


def _branches(a: Any) -> Any:
    def step(i: Any, s: Any) -> Any:
        return hg.switch(i % 3, [lambda s: s + a[i, 0], lambda s: s * 0.5, lambda s: s - a[i, 1]], s)

    return hg.fori_loop(0, 300, step, 0.0)


@pytest.mark.parametrize("f", [_column, _search, _nested, _while_in_scan, _branches])
def test_scalars_of_loops_are_in_registers(f: Function) -> None:
    assert _accesses(f, A) == {"load double"}


def _rows(a: Any) -> Any:
    return hg.scan(lambda c, row: (c * 0.5 + row[3] * row[7], c), a[0, 0], a)


def test_results_are_stored_once_a_step() -> None:
    assert _accesses(_rows, A) == {"load double", "store double"}
    assert sum("store double" in line for line in _lines_in_loops(_graph_text(_rows, A))) <= 8  # of steps that LLVM unrolls


def test_carries_are_stacked_before_the_next_ones_are_computed() -> None:
    """So no more than one of a carry and the next one needs a register."""

    def f(starts: Any) -> Any:
        return hg.scan(lambda c, _: ([v * f + 1.0 for f, v in zip(starts, c, strict=True)], c), starts, None, length=1000)

    lines = _lines_in_loops(_graph_text(f, [np.float64(k) for k in range(40)]))
    stores = [k for k, line in enumerate(lines) if "store double" in line]
    assert len(stores) == 40 and max(stores) < min(k for k, line in enumerate(lines) if "fma" in line or "fmul" in line)


def test_a_counter_beside_a_large_carry_is_in_a_register() -> None:
    def f(a: Any) -> Any:
        return hg.while_loop(lambda s: s[0] < 50, lambda s: (s[0] + 1, s[1] * 0.5 + 1.0), (0, a[0]))

    accesses = _accesses(f, A)
    assert "memcpy" not in accesses and not any("i64" in a for a in accesses)


@pytest.mark.parametrize("n", [2, 3, 4, 5, 8])
def test_short_vectors_are_in_registers(n: int) -> None:
    def f(w: Any, xs: Any) -> Any:
        return hg.scan(lambda c, x: (w @ c + x, c.sum()), xs[0] * 0, xs)

    text = _graph_text(f, A[:n, :n], A[:, :n].copy())
    assert not re.search(r"alloca \[\d+ x i8\]", text)
    assert {a.split()[0] for a in _accesses(f, A[:n, :n], A[:, :n].copy())} == {"load", "store"}
    assert not any("store <" in line for line in _lines_in_loops(text))  # what the carry's memory would take


def test_polls_of_signals_are_no_part_of_a_step() -> None:
    def f(n: Any) -> Any:
        return hg.scan(lambda s, _: (s * 0.5 + n, None), 0.0, None, length=10**7)[0]

    text = _graph_text(f, 1.0)
    assert text.count("@hg_poll") == 1
    innermost = [b for b in re.split(r"^[\w.]+:", text, flags=re.MULTILINE) if "fmul" in b]
    assert innermost and all("hg_poll" not in b and "and i64" not in b for b in innermost)


def test_kernels_know_which_arrays_are_apart() -> None:
    def f(a: Any, b: Any) -> Any:
        return hg.scan(lambda c, x: (c * x + b, None), a, hnp.arange(4.0))[0]

    text = hg.jit(f).lower(A[0], A[1]).as_text("llvm")
    assert "!alias.scope" in text and "!noalias" in text


# --- values ----------------------------------------------------------------------------------------------------------

SHAPES = ((), (3,), (32,), (33,), (100,))


@st.composite
def _steps(draw: st.DrawFn) -> tuple[list[tuple[int, ...]], list[tuple[str, int, int]], list[tuple[str, int]]]:
    """Carries' shapes; for each carry how its next value is made, from which others; and what is stacked."""
    shape = draw(st.sampled_from(SHAPES))
    shapes = [draw(st.sampled_from([shape, shape, ()])) for _ in range(draw(st.integers(1, 4)))]
    made = []
    for s in shapes:
        alike = [k for k, t in enumerate(shapes) if t == s]
        made.append(
            (draw(st.sampled_from(["keep", "swap", "add", "scale", "turn", "constant"])), draw(st.sampled_from(alike)), draw(st.sampled_from(alike)))
        )
    stacked = draw(st.lists(st.tuples(st.sampled_from(["before", "after", "sum"]), st.integers(0, len(shapes) - 1)), max_size=3))
    return shapes, made, stacked


def _next(how: str, x: Any, y: Any, constant: Any) -> Any:
    match how:
        case "keep" | "swap":
            return y
        case "add":
            return x + y
        case "scale":
            return x * 2 - 1
        case "turn":
            return y[::-1] if y.ndim else -y
    return constant + (x * 0)


@given(steps=_steps(), length=st.integers(1, 5), is_while=st.booleans(), checked=st.booleans())
@settings(max_examples=30, deadline=None)
def test_carries_of_all_sizes(steps: Any, length: int, is_while: bool, checked: bool) -> None:
    shapes, made, stacked = steps
    starts = [np.arange(np.prod(s, dtype=int), dtype=np.float64).reshape(s) + k for k, s in enumerate(shapes)]

    def body(carry: Any, constants: Any) -> tuple[Any, Any]:
        after = [_next(how, carry[i], carry[j], constants[k]) for k, (how, i, j) in enumerate(made)]
        return after, [carry[k] if what == "before" else after[k] if what == "after" else after[k].sum() for what, k in stacked]

    def f(carry: Any, constants: Any) -> Any:
        if is_while:
            return hg.while_loop(lambda s: s[0] < length, lambda s: (s[0] + 1, body(s[1], constants)[0]), (0, carry))
        return hg.scan(lambda c, _: body(c, constants), carry, None, length=length)

    with hg.disable_jit():
        want = hg.tree.leaves(f([hg.tensor(x) for x in starts], [hg.tensor(x * 3) for x in starts]))
    with override(checked=checked):
        found = hg.tree.leaves(hg.jit(f, precision="exact")(starts, [x * 3 for x in starts]))
    for x, y in zip(found, want, strict=True):
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


def test_arrays_beyond_the_stack_are_in_the_arena(monkeypatch: pytest.MonkeyPatch) -> None:
    xs = np.random.default_rng(1).standard_normal((20, 7))

    def f(xs: Any) -> Any:
        def step(c: Any, x: Any) -> Any:
            c = [hnp.sin(v) + x for v in c]
            return c, [v.sum() for v in c]

        return hg.scan(step, [xs[0] * k for k in range(5)], xs)

    want = [np.asarray(x) for x in hg.tree.leaves(hg.jit(f, precision="exact")(xs))]
    for limit in (0, 100, 500):
        monkeypatch.setattr(bodies, "MAX_GRAPH_STACK_BYTES", limit)
        with override(cache=False):
            found = hg.tree.leaves(hg.jit(lambda xs, limit=limit: (f(xs), limit), precision="exact")(xs)[0])
        for x, y in zip(found, want, strict=True):
            np.testing.assert_array_equal(np.asarray(x), y)
