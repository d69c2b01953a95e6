"""The rewrite engine, its pattern language and the passes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hologram import dtypes
from hologram.dtypes import DType
from hologram.errors import CompileError, RewriteError
from hologram.graph.pass_manager import Context, Pass, Repeat, run_passes
from hologram.graph.pipeline import CANONICAL, canonicalise
from hologram.graph.rewrite.engine import rewrite_bottom_up, rewrite_top_down
from hologram.graph.rewrite.pattern import c, spelled, x, y
from hologram.graph.rewrite.rewriter import Rewriter
from hologram.graph.rewrite.rule import RuleSet, rule, rule_fn
from hologram.graph.rewrite.rules import ALL, SINK, as_markdown
from hologram.graph.verify_graph import verify_graph
from hologram.ir import symbolic
from hologram.ir.graph import Graph
from hologram.ir.interpreter import evaluate
from hologram.ir.node import Node, const_value
from hologram.primitives import TABLE
from hologram.settings import override
from hologram.support.precision import GUARANTEES

F32, I32 = dtypes.float32, dtypes.int32
ROOT = Path(__file__).parents[3]


class Sketch(Rewriter):
    """A builder for graphs in tests."""

    def __init__(self) -> None:
        super().__init__(lambda node: (), Counter())

    def graph(self, *outputs: Node) -> Graph:
        return Graph([n for n in self.table.values() if n.op.name == "input"], outputs)


def simplified(graph: Graph, *rules: Any, precision: str = "exact") -> Graph:
    return rewrite_bottom_up(graph, RuleSet(rules), precision, Counter())


def nothing(b: Rewriter, dtype: DType) -> list[Node]:
    return []


# --- patterns --------------------------------------------------------------------------------------------------------


def test_a_variable_that_the_left_does_not_bind_is_refused() -> None:
    with pytest.raises(RewriteError, match="bad: y does not occur"):
        rule("bad", "x = y", "exact", x + 1, y)
    with pytest.raises(RewriteError, match="bad: y does not occur"):
        rule("bad", "x = y", "exact", x + 1, lambda b, y: y)
    with pytest.raises(RewriteError, match="bad: y does not occur"):
        rule("bad", "x = x", "exact", x + 1, x, where=lambda y: True)


def test_an_unknown_guarantee_and_a_doubled_name_are_refused() -> None:
    with pytest.raises(RewriteError, match="guarantee"):
        rule("bad", "x * 1 = x", "mostly", x * 1, x)
    twice = rule("twice", "x * 1 = x", "exact", x * 1, x)
    with pytest.raises(RewriteError, match="two rules are called twice"):
        RuleSet([twice, twice])


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_literals_tell_zeros_apart(zero: float) -> None:
    s = Sketch()
    a = s.argument(F32, 3)
    graph = s.graph(s.make("add", a, s.const(zero, F32)))
    negative_only = rule("r", "x + -0 = x", "exact", x + -0.0, x)
    assert (simplified(graph, negative_only).outputs == [a]) is bool(np.signbit(zero))


def test_literals_match_only_what_a_type_holds() -> None:
    halves = rule("r", "x * 0.5 = x", "exact", x * 0.5, x)
    s = Sketch()
    a = s.argument(I32, 3)
    graph = s.graph(s.make("mul", a, s.const(0, I32)))
    assert simplified(graph, halves) is graph
    f = s.argument(dtypes.bfloat16, 3)
    assert simplified(s.graph(s.make("mul", f, s.const(0.5, dtypes.bfloat16))), halves).outputs == [f]


def test_bounds_that_a_type_keeps_by_itself_go() -> None:
    """``clip(x, 0, 255)`` of uint8; the least float8_e4m3fn is no -Inf, which that type has not."""
    s = Sketch()
    x = s.argument(dtypes.uint8, 3)
    clipped = s.make("min", s.make("max", x, s.const(0, dtypes.uint8)), s.const(255, dtypes.uint8))
    assert simplified(s.graph(clipped), *ALL).outputs == [x]
    narrower = s.make("min", x, s.const(254, dtypes.uint8))
    assert simplified(s.graph(narrower), *ALL).outputs != [x]
    f = s.argument(dtypes.float8_e4m3fn, 3)
    beside_nan = s.make("max", f, s.const(-np.inf, dtypes.float8_e4m3fn))
    assert simplified(s.graph(beside_nan), *ALL).outputs != [f]


def test_commutative_ops_match_both_ways_and_repeated_variables_are_one_node() -> None:
    s = Sketch()
    a, k = s.argument(F32, 3), s.const(1, F32)
    one = rule("r", "x * 1 = x", "exact", x * 1, x)
    assert simplified(s.graph(s.make("mul", k, a)), one).outputs == [a]
    same = rule("s", "x - x = 0", "exact", x - x, 0)
    other = s.graph(s.make("sub", a, s.argument(F32, 3)))
    assert simplified(other, same) is other


def test_a_scalar_result_is_broadcast() -> None:
    s = Sketch()
    p, a = s.argument(dtypes.bool_, 4), s.argument(F32)
    (out,) = simplified(s.graph(s.make("select", p, a, a)), rule("r", "p ? x : x = x", "exact", spelled("select")(y, x, x), x)).outputs
    assert out.op.name == "broadcast" and out.inputs == (a,) and out.shape == (4,)


# --- the engine ------------------------------------------------------------------------------------------------------


def test_a_rule_must_keep_shape_and_type() -> None:
    @rule_fn(("neg",), "cuts", "-x = x[0:1]", "exact", examples=nothing)
    def cuts(node: Node, b: Rewriter) -> Node:
        return b.make("slice", node.inputs[0], attrs=((0,), (1,), (1,)))

    s = Sketch()
    with pytest.raises(RewriteError, match="cuts"):
        simplified(s.graph(s.make("neg", s.argument(F32, 3))), cuts)


def test_a_circle_of_rules_is_named() -> None:
    there = rule("there", "x + y = x - -y", "exact", x + y, x - -y)
    back = rule("back", "x - -y = x + y", "exact", x - -y, x + y)
    s = Sketch()
    graph = s.graph(s.make("add", s.argument(F32, 3), s.argument(F32, 3)))
    with pytest.raises(RewriteError, match="circle: there, back"):
        simplified(graph, there, back)
    with pytest.raises(RewriteError, match="without end: (there, back|back, there)"):
        rewrite_top_down(graph, RuleSet([there, back]), "exact", Counter())


def test_a_movement_passes_a_network_of_shared_values_in_one_run() -> None:
    """Each value of a network of rounds has two users, which want the same movement of it once both are rewritten."""
    s = Sketch()
    a, b = s.argument(F32, 6), s.argument(F32, 6)
    for _ in range(20):
        a, b = s.make("add", a, b), s.make("mul", s.make("sub", a, b), b)
    graph = s.graph(s.make("reshape", s.make("add", a, b), attrs=((2, 3),)))
    fired: Counter[str] = Counter()
    sunk = rewrite_top_down(graph, SINK, "exact", fired)
    assert {n.op.name for n in sunk.nodes() if n.shape == (6,)} == {"input"}
    assert rewrite_top_down(sunk, SINK, "exact", Counter()) is sunk
    assert fired["sink-reshape"] == 61


def test_growth_without_end_is_named() -> None:
    counts = rule("counts", "x + c = x + (c + 1)", "exact", x + c, lambda b, x, c: b.make("add", x, b.const(const_value(c) + 1, c.dtype)))
    s = Sketch()
    graph = s.graph(s.make("add", s.argument(F32, 3), s.const(0.5, F32)))
    for run in (rewrite_bottom_up, rewrite_top_down):
        with pytest.raises(RewriteError, match="without end: counts"):
            run(graph, RuleSet([counts]), "exact", Counter())
    nests = rule("nests", "abs(x) = abs(abs(-x))", "exact", spelled("abs")(x), spelled("abs")(spelled("abs")(-x)))
    with pytest.raises(RewriteError, match="nests"):
        rewrite_top_down(s.graph(s.make("abs", s.argument(F32, 3))), RuleSet([nests]), "exact", Counter())


def test_guarantees_bound_the_rules_of_a_precision() -> None:
    rules = RuleSet(ALL)
    counts = [len(rules.at(p)) for p in GUARANTEES]
    assert counts == sorted(counts) and counts[0] < counts[2]
    with pytest.raises(ValueError, match="precise"):
        rules.at("precise")


def test_dead_code_goes_and_arguments_stay() -> None:
    s = Sketch()
    a, unused = s.argument(F32, 3), s.argument(I32, 2)
    dead = s.make("neg", a)
    zeroed = s.make("and", s.make("not", unused), s.const(0, I32))
    got = canonicalise(s.graph(s.make("abs", a), zeroed), "exact")
    assert [i.dtype for i in got.inputs] == [F32, I32]
    assert "neg" not in str(got) and "not" not in str(got) and dead.op.name == "neg"


def test_source_lines_are_carried_over() -> None:
    s = Sketch()
    a = s.argument(F32, 4, 3)
    moved = s.make("transpose", s.make("max", a, s.const(2, F32)), attrs=((1, 0),))
    graph = s.graph(s.make("mul", moved, s.const(1, F32)))
    graph.lines = {moved: ("model.py", 7), moved.inputs[0]: ("model.py", 6)}
    got = canonicalise(graph, "exact")
    assert got.lines[got.outputs[0]] in graph.lines.values()


def test_no_rule_fires_no_graph_is_made() -> None:
    s = Sketch()
    graph = s.graph(s.make("sub", s.argument(F32, 3), s.argument(F32, 3)))
    for p in GUARANTEES:
        assert canonicalise(graph, p) is graph


def test_tokens_are_forgotten() -> None:
    s = Sketch()
    a = s(TABLE["input"], (), (0, (3,), "float32", 42))
    assert canonicalise(Graph([a], [s.make("neg", a)]), "exact").inputs[0].attrs[3] is None


def test_common_subexpressions_become_one() -> None:
    s = Sketch()
    a, k = s.argument(F32, 3), s.argument(F32, 3)
    got = canonicalise(s.graph(s.make("sub", s.make("add", a, k), s.make("add", k, a))), "fast")
    assert got.outputs[0].inputs[0].op.name == "const"


@pytest.mark.parametrize("length", [3, 10_000])
def test_long_chains_neither_recurse_nor_take_quadratic_time(length: int) -> None:
    s = Sketch()
    a = node = s.argument(F32, 8, 8)
    for i in range(length):
        node = s.make("transpose", s.make("max", s.make("sub", node, a), s.const(i + 0.5, F32)), attrs=((1, 0),))
    context = Context("exact")
    got = canonicalise(s.graph(node), "exact", context)
    assert sum(context.rules().values()) < 12 * length + 12
    assert len([n for n in got.nodes() if n.op.name == "transpose"]) <= 1


def test_nested_concatenations_take_linear_time() -> None:
    s = Sketch()
    node, one = s.argument(F32, 1), s.argument(F32, 1)
    for _ in range(5000):
        node = s.make("concatenate", node, one, attrs=(0,))
    assert len(canonicalise(s.graph(node), "exact").outputs[0].inputs) == 5001


def test_work_with_a_second_user_is_not_done_twice() -> None:
    s = Sketch()
    shared = s.make("sqrt", s.argument(F32, 4, 3))
    part = s.make("slice", shared, attrs=((0, 0), (2, 3), (1, 1)))
    got = canonicalise(s.graph(part, s.make("neg", shared)), "fast")
    assert str(got).count("sqrt") == 1
    assert str(canonicalise(s.graph(part), "fast")).index("slice") < str(canonicalise(s.graph(part), "fast")).index("sqrt")


PROGRAM = """
from collections import Counter
from hologram import dtypes
from hologram.graph.pipeline import canonicalise
from hologram.graph.rewrite.rewriter import Rewriter
from hologram.ir.graph import Graph
b = Rewriter(lambda node: (), Counter())
xs = [b.argument(dtypes.float32, 3) for _ in range(4)]
terms = [b.make(op, xs[i], xs[j]) for op in ("add", "max", "mul") for i in range(4) for j in range(i)]
while len(terms) > 1:
    terms = [b.make("add", *terms[i : i + 2]) if i + 1 < len(terms) else terms[i] for i in range(0, len(terms), 2)]
print(canonicalise(Graph(xs, terms), "fast"))
"""


def test_the_result_does_not_depend_on_the_hash_seed() -> None:
    texts = set()
    for seed in ("1", "2"):
        env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
        texts.add(subprocess.run([sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, check=True, timeout=60).stdout)
    assert len(texts) == 1


# --- passes ----------------------------------------------------------------------------------------------------------


def identity_times_one() -> Graph:
    s = Sketch()
    return s.graph(s.make("neg", s.make("mul", s.argument(F32, 3), s.const(1, F32))))


def test_a_pass_prints_its_result_when_it_changed_something(capsys: pytest.CaptureFixture[str]) -> None:
    graph = identity_times_one()
    with override(debug=6):
        got = canonicalise(graph, "exact")
        assert "--- simplify: mul-one 1" in capsys.readouterr().err
        canonicalise(got, "exact")
    assert not capsys.readouterr().err


def test_a_pass_can_be_disabled() -> None:
    graph = identity_times_one()
    with override(disabled_passes=("simplify",)):
        assert canonicalise(graph, "exact") is graph


def test_rules_that_fired_are_counted_by_pass() -> None:
    context = Context("exact")
    canonicalise(identity_times_one(), "exact", context)
    assert context.fired["simplify"] == Counter({"mul-one": 1}) and context.rules()["mul-one"] == 1


def test_passes_have_names_of_their_own() -> None:
    passes = [q for p in CANONICAL for q in (p.passes if isinstance(p, Repeat) else (p,))]
    names = {"arguments", "complexes", "view_updates", "constant_windows", "bodies", "simplify", "loop_ranges", "loop_layout", "sink"}
    assert {p.name for p in passes} == names


def test_a_list_of_passes_takes_any_value() -> None:
    halve = Pass("halve", lambda n, context: n // 2 if n % 2 == 0 else n)
    assert run_passes(48, [Repeat((halve,))], Context("exact")) == 3


def test_what_a_pass_makes_is_verified() -> None:
    a = Sketch().argument(F32, 3)
    broken = Pass("breaks", lambda graph, context: Graph([a], [Node(TABLE["neg"], (a,), (), (4,), F32)]), verify_graph)
    with pytest.raises(CompileError, match="should be .* after the pass breaks"):
        run_passes(Graph([], []), [broken], Context("exact"))
    with override(verify=False):
        run_passes(Graph([], []), [broken], Context("exact"))


# --- canonical forms -------------------------------------------------------------------------------------------------


def softmax(s: Sketch, a: Node) -> Node:
    m, n = a.shape

    def keep(v: Node) -> Node:
        return s.make("broadcast", s.make("reshape", v, attrs=((m, 1),)), attrs=((m, n), (0, 1)))

    e = s.make("abs", s.make("sub", a, keep(s.make("reduce_max", a, attrs=((1,),)))))
    return s.make("div", e, keep(s.make("reduce_sum", e, attrs=((1,),))))


ROWS = """
graph(%0: float32[64, 128])
  %1 = reduce_max %0 axes=(1)  float32[64]
  %2 = broadcast %1 dims=(0)   float32[64, 128]
  %3 = sub %0 %2               float32[64, 128]
  %4 = abs %3                  float32[64, 128]
  %5 = reduce_sum %4 axes=(1)  float32[64]
  %6 = broadcast %5 dims=(0)   float32[64, 128]
  %7 = div %4 %6               float32[64, 128]
  return %7
"""


def assert_text(graph: Graph, text: str) -> None:
    assert [line.split() for line in str(graph).splitlines()] == [line.split() for line in text.strip().splitlines()]


def test_rows_in_canonical_form() -> None:
    """Per-row work is done once a row, and the axes of extent 1 are gone."""
    s = Sketch()
    graph = s.graph(softmax(s, s.argument(F32, 64, 128)))
    for precision in ("standard", "fast"):
        assert_text(canonicalise(graph, precision), ROWS)


def test_rows_in_symbolic_extents() -> None:
    s = Sketch()
    n = symbolic.var("n", 1)
    graph = s.graph(softmax(s, s.argument(F32, n, 128)))
    got = canonicalise(graph, "standard", Context("standard"))
    assert_text(got, ROWS.replace("64", "n"))
    values = [np.random.default_rng(0).uniform(0, 1, (5, 128)).astype(np.float32)]
    assert np.array_equal(evaluate(got, values, {"n": 5})[0], evaluate(graph, values, {"n": 5})[0])


MOVED = """
graph(%0: float32[n, 6])
  %1 = slice %0 start=(0,1) stop=(n,3) step=(1,1)  float32[n, 2]
  %2 = neg %1                                      float32[n, 2]
  return %2
"""


def test_movement_in_symbolic_extents() -> None:
    s = Sketch()
    n = symbolic.var("n", 1)
    split = s.make("reshape", s.make("neg", s.argument(F32, n, 6)), attrs=((n, 2, 3),))
    flat = s.make("reshape", s.make("transpose", s.make("transpose", split, attrs=((1, 2, 0),)), attrs=((2, 0, 1),)), attrs=((n, 6),))
    graph = s.graph(s.make("slice", s.make("slice", flat, attrs=((0, 1), (n, 5), (1, 1))), attrs=((0, 0), (n, 2), (1, 1))))
    assert_text(canonicalise(graph, "exact", Context("exact")), MOVED)


def test_scalars_are_brought_together() -> None:
    s = Sketch()
    a, k, m = s.argument(F32, 8), s.argument(F32), s.argument(F32)
    everywhere = s.make("broadcast", m, attrs=((8,), ()))
    node = s.make("add", s.make("add", s.make("add", a, k), s.const(3, F32)), everywhere)
    got = canonicalise(s.graph(node), "fast")
    (out,) = got.outputs
    assert sum(n.op.name == "add" and n.shape == (8,) for n in got.nodes()) == 1 and out.op.name == "add"


def test_the_documents_list_the_rules() -> None:
    assert as_markdown() in (ROOT / "docs" / "rules.md").read_text()
