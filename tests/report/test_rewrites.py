"""What a report says about rules: each firing before and after, and nothing that changes what they do."""

from __future__ import annotations

from collections import Counter
from typing import Any

import hologram as hg
import hologram.numpy as hnp
from hologram.graph.pipeline import canonicalise
from hologram.graph.rewrite.engine import rewrite_bottom_up
from hologram.graph.rewrite.rules import SIMPLIFY
from hologram.report.data.rewrites import expressions


def traced() -> Any:
    return hg.make_graph(lambda x: (x * 1.0 + 0.0) ** 2)(hnp.ones((4, 3)))


def test_watching_changes_nothing() -> None:
    seen: list[Any] = []
    counts = Counter[str](), Counter[str]()
    plain = rewrite_bottom_up(traced(), SIMPLIFY, "standard", counts[0])
    watched = rewrite_bottom_up(traced(), SIMPLIFY, "standard", counts[1], lambda *firing: seen.append(firing))
    assert str(plain) == str(watched) and counts[0] == counts[1] == Counter(rule.name for rule, *_ in seen)
    assert all(before.shape == after.shape and before.dtype is after.dtype for _, before, after, _ in seen)
    assert {line[0] for *_, line in seen} == {__file__}


def test_firings_are_shown_before_and_after() -> None:
    steps = hg.explain(lambda x: (x + x) * 1.0)(hnp.ones(3)).data()["parts"][0]["rewrites"]["steps"]
    shown = {(s["before"], s["after"]) for s in steps}
    assert ("mul(a, 1.0)", "a") in shown
    assert all(s["where"].get("a", "float32[3]") == s["type"] == "float32[3]" for s in steps)


def test_letters_stand_for_what_both_share() -> None:
    graph = canonicalise(hg.make_graph(lambda x, y: (x + y) * (x - y))(hnp.ones(3), hnp.ones(3)), "standard")
    (product,) = graph.outputs
    total, _ = product.inputs
    before, after, leaves = expressions(product, total)
    assert after in ("a", "add(a, b)") and set(leaves.values()) == {"float32[3]"}
    assert before.startswith("mul(")


def test_those_of_bodies_are_shown_again_when_another_program_had_them() -> None:
    def looped(x: Any) -> Any:
        return hg.fori_loop(0, 7, lambda i, c: c * 1.0 + hnp.sin(c), x)

    found = [hg.explain(looped)(hnp.ones(5)).data()["parts"][0]["rewrites"]["rules"] for _ in range(2)]
    assert found[0] == found[1]
