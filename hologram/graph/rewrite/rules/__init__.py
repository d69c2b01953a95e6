"""The rules of canonical reduction, in the order in which they are tried.

``SIMPLIFY`` runs with inputs first, ``SINK`` with users first: see :mod:`hologram.graph.rewrite.engine`.
"""

from __future__ import annotations

from hologram.graph.rewrite.rewriter import Rule
from hologram.graph.rewrite.rule import RuleSet
from hologram.graph.rewrite.rules import (
    arithmetic,
    broadcasts,
    comparison,
    complex_parts,
    folding,
    functions,
    movement,
    reductions,
    sink_movement,
    updates,
)

SIMPLIFY = RuleSet(
    [
        *folding.RULES,
        *comparison.RULES,
        *arithmetic.RULES,
        *complex_parts.RULES,
        *functions.DOUBLED_SIGMOID,
        *movement.RULES,
        *broadcasts.RULES,
        *reductions.RULES,
        folding.commute,
    ]
)
TOP_DOWN: list[Rule] = [*sink_movement.RULES, *functions.RULES, *updates.RULES]
SINK = RuleSet([*sink_movement.ADJACENT, *TOP_DOWN])

ALL: list[Rule] = [*SIMPLIFY.rules, *TOP_DOWN]


def as_markdown() -> str:
    """The table of rules for ``docs/rules.md``."""
    bar = "\\|"  # a bare one would end the cell
    when = {r.name: "users" if r in TOP_DOWN else "inputs" for r in ALL}
    rows = [f"| {r.name} | `{r.algebra.replace('|', bar)}` | {r.guarantee} | {when[r.name]} |" for r in ALL]
    return "\n".join(["| rule | algebra | guarantee | first |", "|---|---|---|---|", *rows]) + "\n"


__all__ = ["ALL", "SIMPLIFY", "SINK", "TOP_DOWN", "as_markdown"]
