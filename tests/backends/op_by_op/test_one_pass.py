"""Programs that are made in one pass over pending nodes: the steps and bits of the whole way, for graphs in normal form; None for all others."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from hologram.backends.native import storage
from hologram.backends.op_by_op import one_pass
from hologram.backends.op_by_op.one_pass import in_one_pass
from hologram.backends.op_by_op.program import OpByOp, clear, op_by_op
from hologram.graph.rewrite.rewriter import Rewriter, Rule
from hologram.ir.graph import Graph
from hologram.ir.leaves import input_, leaf
from hologram.ir.node import Node
from hologram.settings import override
from hologram.trace.recorder import Pending, pending
from tests.support.building import Draft
from tests.support.graphs.random_graphs import arguments, exact_graphs, seeds, smooth_graphs
from tests.support.graphs.roundings import quotients, sums_of_products
from tests.support.optable import compiler, mismatch


def _one_pass(graph: Graph, max_ns: float = 1e12) -> OpByOp | None:
    """The program of the graph as it is recorded lazily."""
    made: dict[Node, Pending] = {}
    for x in graph.nodes():
        inputs = tuple([made[i] for i in x.inputs])
        made[x] = pending(leaf, (), (None,), x.shape, x.dtype) if x.op is input_ else pending(x.op, inputs, x.attrs, x.shape, x.dtype)
    return in_one_pass(list(made.values()), [made[x] for x in graph.inputs], [made[x] for x in graph.outputs], max_ns)


def _assert_same_bits(graph: Graph, program: OpByOp, arrays: list[np.ndarray]) -> None:
    found = [storage.view(s) for s in program.run([storage.copy_of(a) for a in arrays])]
    for got, want in zip(found, compiler()(graph, precision="standard").run_numpy(arrays), strict=True):
        assert got.dtype == want.dtype and got.shape == want.shape
        assert not mismatch(got, want, 0).any()


@given(sums_of_products() | quotients() | exact_graphs() | smooth_graphs(), seeds)
def test_random_graphs_have_the_bits_of_compiled_programs(graph: Graph, seed: int) -> None:
    """That the steps are those of the whole way is verified wherever one is made."""
    op_by_op(graph, 1e12)  # compiles the kernels
    program = _one_pass(graph)
    if program is not None:
        _assert_same_bits(graph, program, arguments(graph, seed, False))


def _product_and_sum(d: Draft, x: Node, y: Node) -> list[Node]:
    return [d("add", d("mul", d("exp", x), y), d("sin", y))]


def _difference_less_a_product(d: Draft, x: Node, y: Node) -> list[Node]:
    return [d("sub", x, d("mul", d("tanh", x), d.input()))]


def _sums_that_share_a_product(d: Draft, x: Node, y: Node) -> list[Node]:
    product = d("mul", x, y)
    return [d("sub", d("exp", x), product), d("add", product, d("sin", product)), d("sub", product, d("sqrt", y))]


def _sums_of_sums(d: Draft, x: Node, y: Node) -> list[Node]:
    first = d("add", d("mul", x, y), d("exp", x))
    return [d("add", d("mul", first, y), first)]


def _moved(d: Draft, x: Node, y: Node) -> list[Node]:
    return [d("reshape", d.input(4, 10), (40,)), d("exp", x)]


def _constants(d: Draft, x: Node, y: Node) -> list[Node]:
    return [d("sub", d("exp", x), d("mul", y, d.const(0.75))), d("max", x, d.const(1.5))]


def _reductions(d: Draft, x: Node, y: Node) -> list[Node]:
    rows = d.input(5, 8)
    return [
        d("reduce_sum", d("exp", x), (0,)),
        d("reduce_max", rows, (0, 1)),
        d("add", d("reduce_sum", d("mul", x, y), (0,)), d("reduce_min", y, (0,))),
    ]


def _shared_divisors(d: Draft, x: Node, y: Node) -> list[Node]:
    by = d.input()
    mean = d("div", d("reduce_sum", y, (0,)), d.const(40.0))
    return [d("div", x, by), d("div", y, by), d("div", x, y), d("div", d("sub", x, mean), d.const(3.0)), d("add", d("mul", x, y), d("div", x, by))]


def _arguments_as_results(d: Draft, x: Node, y: Node) -> list[Node]:
    return [x, d("exp", y), x, d.const(2.0)]


@pytest.mark.parametrize(
    "outputs",
    [
        _product_and_sum,
        _difference_less_a_product,
        _sums_that_share_a_product,
        _sums_of_sums,
        _moved,
        _constants,
        _reductions,
        _shared_divisors,
        _arguments_as_results,
    ],
    ids=lambda f: f.__name__[1:],
)
def test_graphs_in_normal_form_are_taken(outputs: Callable[..., list[Node]]) -> None:
    d = Draft()
    graph = d.graph(*outputs(d, d.input(40), d.input(40)))
    arrays = [np.linspace(0.5, 1.5, x.size, dtype=np.float32).reshape(x.shape) for x in graph.inputs]  # type: ignore[arg-type]
    assert op_by_op(graph, 1e12) is not None
    program = _one_pass(graph)
    assert program is not None
    _assert_same_bits(graph, program, arrays)


def test_a_product_that_sums_alone_take_is_not_computed() -> None:
    d = Draft()
    x, y = d.input(40), d.input(40)
    graph = d.graph(d("add", d("mul", x, y), d("exp", x)))
    op_by_op(graph, 1e12)
    program = _one_pass(graph)
    assert program is not None and sorted(s.node.op.name for s in program.drafts) == ["exp", "mad"]


_OTHERS: dict[str, Callable[[Draft, Node], Any]] = {
    "a rule fires": lambda d, x: d("add", d("exp", x), d("exp", x)),
    "a rule fires below": lambda d, x: d("exp", d("mul", x, d.const(1.0))),
    "a rule that counts users fires": lambda d, x: d("add", d("tanh", x), d.const(1.0)),
    "equal but for order": lambda d, x: d("max", d("max", d("sin", x), x), d("max", x, d("sin", x))),
    "a long reduction": lambda d, x: d("reduce_sum", d("exp", d.input(4000)), (0,)),
    "a reduction of rows": lambda d, x: d("reduce_sum", d("exp", d.input(4, 10)), (1,)),
    "a sum of moved products": lambda d, x: d("reduce_sum", d("reshape", d("mul", x, d.input(40)), (4, 10)), (0, 1)),
    "a sum of narrow floats": lambda d, x: d("reduce_sum", d.input(40, dtype="float16"), (0,)),
    "a reduction of one element": lambda d, x: d("reduce_max", d.input(1), (0,)),
    "no elements": lambda d, x: d("exp", d.input(0)),
    "an argument without elements": lambda d, x: d("concatenate", d.input(0), x, 0),
    "a complex argument": lambda d, x: d("abs", d.input(40, dtype="complex64")),
    "a complex constant": lambda d, x: d("real", d.const(1j, "complex64")),
}


@pytest.mark.parametrize("name", _OTHERS)
def test_other_graphs_are_left(name: str) -> None:
    d = Draft()
    graph = d.graph(_OTHERS[name](d, d.input(40)))
    op_by_op(graph, 1e12)
    assert _one_pass(graph) is None


def test_nothing_is_compiled() -> None:
    clear()
    d = Draft()
    graph = d.graph(d("exp", d.input(40)))
    assert _one_pass(graph) is None
    op_by_op(graph, 1e12)
    assert _one_pass(graph) is not None and _one_pass(graph, 10) is None


def test_disabled_passes_go_the_whole_way() -> None:
    d = Draft()
    graph = d.graph(d("add", d("mul", d.input(40), d.input(40)), d.input(40)))
    op_by_op(graph, 1e12)
    with override(disabled_passes=("multiply_add",)):
        assert _one_pass(graph) is None


class _Tries(Rule):
    """A rule that makes a node and says nothing."""

    def apply(self, node: Node, b: Rewriter) -> Node | None:
        b.make("neg", node.inputs[0])
        return None


def test_what_rules_try_is_no_node_of_the_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = _Tries("tries", "nothing", "exact")
    monkeypatch.setattr(one_pass, "RULES", SimpleNamespace(index=lambda precision: lambda node: (rule,)))
    d = Draft()
    x = d.input(40)
    graph = d.graph(d("max", d("exp", x), d("neg", x)))
    op_by_op(graph, 1e12)
    program = _one_pass(graph)
    assert program is not None
    _assert_same_bits(graph, program, [np.linspace(0.5, 1.5, 40, dtype=np.float32)])
