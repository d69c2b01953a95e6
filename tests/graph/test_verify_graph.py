"""The verifier of graphs, and that the compiler calls each verifier on all that it makes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram import dtypes
from hologram.errors import CompileError
from hologram.graph import pipeline, verify_graph
from hologram.graph.memory import call_sizes
from hologram.ir.graph import Graph
from hologram.ir.node import Builder, Node
from hologram.ir.op import TABLE
from hologram.ir.symbolic import var
from hologram.settings import override, settings

F32 = dtypes.float32
B = Builder()


def argument(index: int, *shape: Any) -> Node:
    return B(TABLE["input"], (), (index, shape, "float32", None))


def node(name: str, *inputs: Node, attrs: tuple[Any, ...] = (), shape: tuple[Any, ...] = (3,), dtype: Any = F32) -> Node:
    """A node as nobody checked it."""
    return Node(TABLE[name], inputs, attrs, shape, dtype)


def scanned(**wrong: Any) -> Graph:
    """The sum of a carry and five elements of a sequence, where ``wrong`` says no other."""
    scan = hg.make_graph(lambda c, x: hg.scan(lambda c, x: (c + x, c * x), c, x)[1])(np.ones(2, np.float32), np.ones((5, 2), np.float32))
    (project,) = scan.outputs
    attrs = tuple(wrong.get(name, old) for name, old in zip(("index", "shape", "dtype"), project.attrs, strict=True))
    return Graph(scan.inputs, [Node(project.op, project.inputs, attrs, attrs[1], dtypes.of(attrs[2]))])


A = argument(0, 3)
N = var("n")
MALFORMED: dict[str, tuple[Callable[[], Graph], str]] = {
    "shape": (lambda: Graph([A], [node("neg", A, shape=(4,))]), "should be float32"),
    "type": (lambda: Graph([A], [node("neg", A, dtype=dtypes.float64)]), "should be float32"),
    "no row": (lambda: Graph([A], [Node(replace(TABLE["neg"]), (A,), (), (3,), F32)]), "has an op that is not in the op table"),
    "arity": (lambda: Graph([A], [node("add", A)]), "has 1 inputs, not 2"),
    "attributes": (lambda: Graph([A], [node("neg", A, attrs=(1,))]), "has 1 attributes, not 0"),
    "refused": (lambda: Graph([A], [node("transpose", A, attrs=((0, 1),))]), "is refused by its op"),
    "trips the rule": (lambda: Graph([A], [node("reduce_sum", A, attrs=(None,), shape=())]), "is refused by its op"),
    "interning": (lambda: Graph([A], [node("neg", A), node("neg", A)]), "is there twice"),
    "no input": (lambda: Graph([node("neg", A)], [A]), "input 0"),
    "order": (lambda: Graph([argument(1, 3)], [A]), "input 0"),
    "stranger": (lambda: Graph([A], [argument(7, 3)]), "is no input of this graph"),
    "unbound shape": (lambda: Graph([A], [B(TABLE["iota"], (), ((N,), 0, "int64"))]), "depends on n, which no input binds"),
    "unbound bounds": (lambda: Graph([A], [node("slice", A, attrs=((N,), (N + 1,), (1,)), shape=(1,))]), "depends on n, which no input binds"),
    "no results": (lambda: Graph([A], [node("project", A, attrs=(0, (3,), "float32"))]), "which has but one"),
    "result": (lambda: scanned(index=2), "picks result 2 of 2"),
    "shape of a result": (lambda: scanned(shape=(4, 2)), r"should be float32\[5, 2\]"),
    "type of a result": (lambda: scanned(dtype="int32"), r"should be float32\[5, 2\]"),
    "body": (lambda: _broken_body(), "is there twice in the body of"),
}


def _broken_body() -> Graph:
    graph = scanned()
    (project,) = graph.outputs
    body = project.inputs[0].attrs[0]
    add = body.graph.outputs[0]
    body.graph = Graph(body.graph.inputs, [node(add.op.name, *add.inputs, attrs=add.attrs, shape=add.shape), add])
    return graph


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_graph_is_refused(name: str) -> None:
    make, trouble = MALFORMED[name]
    with pytest.raises(CompileError, match=f"{trouble}.*after a pass"):
        verify_graph.verify_graph(make(), "after a pass")


def test_well_formed_graphs_pass() -> None:
    verify_graph.verify_graph(scanned())
    x = argument(0, N, 3)
    verify_graph.verify_graph(Graph([x], [B(TABLE["slice"], (x,), ((1, 0), (N, 3), (1, 1))), B(TABLE["iota"], (), ((N + 1,), 0, "int64"))]))


def test_graphs_kernels_and_plans_are_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the setting on, of a program and of the bodies and values computed ahead in it; with it off, nothing is."""
    graphs, kernels, plans = [], [], []
    for module in (verify_graph, pipeline):
        monkeypatch.setattr(module, "verify_graph", lambda graph, when="", interned=True, around=None: graphs.append(when))
    monkeypatch.setattr(pipeline, "verify_kernel", kernels.append)
    monkeypatch.setattr(call_sizes, "verify_allocation", lambda asked, plan: plans.append(plan))
    w = hg.tensor(np.arange(4096, dtype=np.float32).reshape(64, 64))

    def f(x: Any) -> Any:
        return hg.scan(lambda c, y: (hnp.tanh(c @ w) + y, hnp.sort(c)), hnp.cumsum(x[0]) * 1 + hnp.tanh(w).sum(0), x)

    def made(on: bool) -> Any:
        with override(verify=on, cache=False):
            return hg.jit(f).lower(np.ones((5, 64), np.float32)).compile().executable.execution_plan

    made(False)
    assert not graphs and not kernels and not plans
    found = made(True)
    assert {*kernels} == {k.kernel for k in found.kernels + found.initializer.kernels} and len(plans) >= 3
    stages = {when for when in graphs}
    assert {
        "after tracing",
        "after the pass simplify",
        "after the pass legalize",
        "after the pass loop_bodies",
        "after the pass fold_constants",
    } <= stages


def test_the_setting_reaches_processes_that_tests_start() -> None:
    assert settings.verify
    subprocess.run([sys.executable, "-c", "import hologram as hg; assert hg.settings.verify"], check=True)
