"""The index of rules by the ops of operands leaves out none that could fire."""

from __future__ import annotations

import random

import pytest

from hologram.graph.rewrite import rule
from hologram.graph.rewrite.rules import ALL
from hologram.ir.op import TABLE, Op

RULES = rule.RuleSet(ALL).at("fast")
OPS = list(TABLE.values())


@pytest.mark.parametrize("op", [op for op in OPS if any(not rule._heads(op).isdisjoint(r.heads) for r in RULES)], ids=lambda op: op.name)
def test_all_relevant_rules_are_tried(op: Op) -> None:
    heads = [r for r in RULES if not rule._heads(op).isdisjoint(r.heads)]
    tried = rule._tried_at(RULES)
    picked = random.Random(op.name)
    arity = op.arity if isinstance(op.arity, int) and op.arity > 0 else 2
    for _ in range(200):
        inputs, kinds = picked.choices(OPS, k=arity), "".join(picked.choices("fiubc", k=arity))
        assert [r for r in tried(op, inputs) if r.relevant(inputs, kinds)] == [r for r in heads if r.relevant(inputs, kinds)]
