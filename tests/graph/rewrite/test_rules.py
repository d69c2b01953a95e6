"""Every rewrite rule on its own: instantiated, applied, and compared with the reference at the rule's guarantee.

A rule in algebra is tried on its own pattern, over all combinations of special values; a rule that is a function, on its examples.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from hologram import dtypes
from hologram.dtypes import DType
from hologram.errors import DTypeError
from hologram.graph.rewrite.engine import rewrite_bottom_up, rewrite_top_down
from hologram.graph.rewrite.pattern import Var
from hologram.graph.rewrite.rewriter import Rewriter, Rule
from hologram.graph.rewrite.rule import FunctionRule, PatternRule, RuleSet
from hologram.graph.rewrite.rules import ALL, TOP_DOWN, complex_parts
from hologram.graph.verify_graph import verify_graph
from hologram.ir.graph import Graph
from hologram.ir.interpreter import evaluate
from hologram.ir.node import Node, const_value
from hologram.ir.traversal import topological
from tests.support.optable import REAL, mismatch, seeded, special_values

MAX_COMBINATIONS = 1500  # combinations of special values tried at a time
CONSTANTS: list[tuple[Any, ...]] = [(2, 4), (1, 3), (0.5, -0.25), (-3, 7), (0.0, -0.0), (float("inf"), 1.5), (float("nan"), 1)]
MANY_SHAPES = (dtypes.float32, dtypes.int32, dtypes.bool_)  # types for which every variable is also tried as a scalar


def builder() -> Rewriter:
    return Rewriter(lambda node: (), Counter())


def arguments_of(b: Rewriter) -> list[Node]:
    return sorted((n for n in b.table.values() if n.op.name == "input"), key=lambda n: n.attrs[0])


# --- values ----------------------------------------------------------------------------------------------------------


def friendly(d: DType, n: int, guarantee: str, rng: np.random.Generator) -> np.ndarray:
    """Values on which the guarantee says something: any for ``exact``; sums that no order of additions rounds for ``standard``; positive ones
    near 1 for ``fast``."""
    if not d.is_float:
        return rng.choice(special_values(d), n)
    if guarantee == "fast":
        return rng.uniform(0.5, 2, n).astype(d.np)
    values = np.array([-0.0, 0.0, 1.0, -1.0, 2.0, 3.0, 0.5, np.inf, -np.inf, np.nan]) if guarantee == "standard" else special_values(d)
    calm = values[np.isfinite(values.astype(np.float64))][:6]
    return np.where(rng.random(n) < 0.15, rng.choice(values, n), rng.choice(calm, n)).astype(d.np)


def assert_equal(got: np.ndarray, want: np.ndarray, guarantee: str, what: object) -> None:
    assert got.shape == want.shape and got.dtype == want.dtype
    if guarantee == "fast" and dtypes.of(want.dtype).is_float:
        tolerance = 64 * float(dtypes.ml_dtypes.finfo(want.dtype).eps)
        error = np.abs(got.astype(np.float64) - want.astype(np.float64))
        wrong = error > tolerance * (1 + np.abs(want.astype(np.float64)))
    else:
        wrong = mismatch(got, want, 2 if guarantee == "standard" else 0)
    assert not wrong.any(), f"{what}: {got[wrong][:4]} for {want[wrong][:4]}"


# --- rules in algebra ------------------------------------------------------------------------------------------------


def instances(rule: PatternRule, d: DType, every: list[tuple[Any, ...]] = CONSTANTS) -> Iterator[tuple[Rewriter, Node]]:
    """The rule's pattern on arguments of type ``d`` (or of a variable's own type), arrays and scalars, and on several constants."""
    variables = list({v.name: v for v in rule.pattern.variables()}.values())
    free = [v for v in variables if not v.const]
    n = 1 if not free else min(MAX_COMBINATIONS, int(np.prod([special_values(type_of(v, d)).size for v in free])))
    shapes = list(itertools.product([(n,), ()], repeat=len(free)))
    constants = [*every, *_ends(d)] if any(v.const for v in variables) else every[:1]
    for shape, constant in itertools.product(shapes if d in MANY_SHAPES or rule.where is not None else shapes[:1], constants):
        b = builder()
        values = iter(constant)
        own = iter(shape)
        m = {v.name: b.const(next(values), type_of(v, d)) if v.const else b.argument(type_of(v, d), *next(own)) for v in variables}
        try:
            node = rule.pattern.build(m, b, d)
        except DTypeError:
            continue  # the op does not take this type
        if node is not None:
            yield b, node


def _ends(d: DType) -> list[tuple[Any, Any]]:
    """The least and the greatest number of an integer type, as two constants; of a float type, those of its formats, too."""
    if d.is_float:
        least, tiny, largest = float(ml_dtypes.finfo(d.np).smallest_subnormal), d.format.least_normal, d.format.largest
        return [(least, -least), (tiny, largest), (-largest, tiny), (2.0 ** (math.frexp(largest)[1] - 1), 2)]
    if not d.is_integer:
        return []
    ends = int(np.iinfo(d.np).min), int(np.iinfo(d.np).max)
    return [ends, ends[::-1]]


def type_of(v: Var, d: DType) -> DType:
    return d if v.kinds is None or d.kind in v.kinds else dtypes.bool_


def combinations(arguments: list[Node], rng: np.random.Generator) -> list[np.ndarray]:
    """Special values in all combinations, thinned to the arguments' extent; one of them for a scalar."""
    grid = [g.ravel() for g in np.meshgrid(*[special_values(x.dtype) for x in arguments], indexing="ij")]
    out = []
    for x, g in zip(arguments, grid, strict=True):
        if not x.shape:
            out.append(rng.choice(special_values(x.dtype), ()))
        else:
            out.append(g if g.size == x.size else g[seeded("picks", g.size).permutation(g.size)[: int(x.size)]])
    return out


@pytest.mark.parametrize("rule", [r for r in ALL if isinstance(r, PatternRule)], ids=lambda r: r.name)
def test_rule_in_algebra(rule: PatternRule) -> None:
    fired = 0
    for d in [*REAL, dtypes.complex64, dtypes.complex128] if rule in complex_parts.RULES else REAL:  # no other rule meets complex numbers
        for b, node in instances(rule, d):
            out = rule.apply(node, b)
            if out is None:
                continue
            fired += 1
            out = b.fit(out, node.shape)
            assert out.shape == node.shape and out.dtype is node.dtype
            arguments = arguments_of(b)
            rng = seeded(rule.name, d.name)
            if rule.guarantee == "exact":
                arrays = combinations(arguments, rng)
            else:
                arrays = [friendly(x.dtype, int(x.size), rule.guarantee, rng).reshape(x.shape) for x in arguments]  # type: ignore[arg-type]
            want, got = evaluate(Graph(arguments, [node, out]), arrays)
            if rule.guarantee != "fast" or np.isfinite(want.astype(np.float64)).all():
                assert_equal(got, want, rule.guarantee, (d, node))
    assert fired, "the rule fires on no instance of its own pattern"


# --- rules that are functions ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", [r for r in ALL if isinstance(r, FunctionRule)], ids=lambda r: r.name)
def test_rule_on_its_examples(rule: FunctionRule) -> None:
    run = rewrite_top_down if rule in TOP_DOWN else rewrite_bottom_up
    total: Counter[str] = Counter()
    for d in REAL:
        b = builder()
        for node in rule.examples(b, d):
            before = Graph(arguments_of(b), [node])
            after = run(before, RuleSet([rule]), rule.guarantee, total)
            verify_graph(after)
            rng = seeded(rule.name, d.name)
            arrays = [friendly(x.dtype, int(x.size), rule.guarantee, rng).reshape(x.shape) for x in before.inputs]  # type: ignore[arg-type]
            assert_equal(evaluate(after, arrays)[0], evaluate(before, arrays)[0], rule.guarantee, (d, str(before)))
    assert total[rule.name], "the rule fires on none of its examples"


def test_every_rule_has_a_name_and_says_its_algebra() -> None:
    for r in ALL:
        assert isinstance(r, Rule) and r.name and r.algebra
    assert len({r.name for r in ALL}) == len(ALL)


# --- what fast promises ----------------------------------------------------------------------------------------------

FAST = [r for r in ALL if r.guarantee == "fast"]


EXTREMES: list[tuple[Any, ...]] = [*CONSTANTS[:5], (3e38, 3e38), (-3e38, 3e38), (1e30, 1e-30), (1e-30, 1e-30), (2.0**-126, 2.0**127)]


def rewritten(rule: Rule, d: DType) -> Iterator[tuple[list[Node], Node, Node]]:
    """Arguments, instances and rewritten instances."""
    if isinstance(rule, PatternRule):
        for b, node in instances(rule, d, EXTREMES):
            out = rule.apply(node, b)
            if out is not None:
                yield arguments_of(b), node, b.fit(out, node.shape)
        return
    assert isinstance(rule, FunctionRule)
    b = builder()
    for node in rule.examples(b, d):
        before = Graph(arguments_of(b), [node])
        after = (rewrite_top_down if rule in TOP_DOWN else rewrite_bottom_up)(before, RuleSet([rule]), "fast", Counter())
        yield before.inputs, node, after.outputs[0]


def widened(arguments: list[Node], node: Node) -> Graph:
    """An expression in float64; with it all that is added in it."""
    b = builder()
    wide = {x: b.argument(dtypes.float64 if x.dtype.is_float else x.dtype, *x.shape) for x in arguments}
    for n in topological([node]):
        if n.op.name == "const":
            wide[n] = b.const(const_value(n), dtypes.float64 if n.dtype.is_float else n.dtype)
        elif n not in wide:
            wide[n] = b(n.op, tuple(wide[x] for x in n.inputs), n.attrs)
    return Graph([wide[x] for x in arguments], [wide[node], *[wide[x] for x in _terms(node)]])


def _terms(node: Node) -> list[Node]:
    """What is added or subtracted in an expression."""
    return [x for n in topological([node]) if n.op.name in ("add", "sub", "reduce_sum") for x in n.inputs]


@pytest.mark.parametrize("rule", FAST, ids=lambda r: r.name)
def test_fast_rules_keep_finite_results(rule: Rule) -> None:
    """Finite operands of every magnitude: where an expression has its true result, which is finite, so has what it is rewritten to, but for
    roundings of what is added up."""
    for d in (dtypes.float32, dtypes.bfloat16):
        for arguments, node, out in rewritten(rule, d):
            rng = seeded(rule.name, d.name, "fast")
            for _ in range(1 if node.shape and int(node.size) > 100 else 12):
                _compare_finite(arguments, node, out, [_finite(x, rng) for x in arguments])


def _compare_finite(arguments: list[Node], node: Node, out: Node, arrays: list[np.ndarray]) -> None:
    info = dtypes.ml_dtypes.finfo(node.dtype.np if node.dtype.is_float else np.float32)
    true = widened(arguments, node)
    want, *terms = evaluate(true, [a.astype(x.dtype.np) for a, x in zip(arrays, true.inputs, strict=True)])
    before, after = evaluate(Graph(arguments, [node, out]), arrays)
    if not node.dtype.is_float:
        np.testing.assert_array_equal(after, before)
        return
    size = sum((np.abs(t) if t.shape == want.shape else np.sum(np.abs(t)) for t in terms), np.abs(want))
    bound = 64 * float(info.eps) * (size + any(n.op.name == "log" for n in topological([node])))
    with np.errstate(invalid="ignore"):
        right = (size <= float(info.max)) & (np.abs(before - want) <= bound)
        wrong = right & ~(np.abs(after - want) <= bound)
    text = str(Graph(arguments, [node, out]))
    assert not wrong.any(), f"{text}: {after[wrong][:3]}, not {want[wrong][:3]}, of {[a[wrong][:3] if a.shape == wrong.shape else a for a in arrays]}"


def _finite(x: Node, rng: np.random.Generator) -> np.ndarray:
    """Special values, the infinite ones excepted, and values of every magnitude."""
    n = int(x.size)
    if not x.dtype.is_float:
        return rng.choice(special_values(x.dtype), n).reshape(x.shape)  # type: ignore[arg-type]
    values = special_values(x.dtype)
    values = values[np.isfinite(values.astype(np.float64))]
    wide = np.where(rng.random(n) < 0.5, np.exp2(rng.uniform(-125, 127, n)) * rng.choice([-1.0, 1.0], n), rng.uniform(-100, 100, n))
    return np.where(rng.random(n) < 0.3, rng.choice(values, n), wide.astype(x.dtype.np)).reshape(x.shape)  # type: ignore[arg-type]
