"""The rules of canonical reduction, in the order in which they are tried.

``SIMPLIFY`` runs with inputs first, ``SINK`` with users first: see :mod:`hologram.graph.rewrite`.
"""

from __future__ import annotations

from hologram.graph.rewrite import Rule, RuleSet
from hologram.graph.rules import arithmetic, broadcasts, comparison, folding, functions, movement, parts, reductions, sinking

SIMPLIFY = RuleSet(
    [
        *folding.RULES,
        *comparison.RULES,
        *arithmetic.RULES,
        *parts.RULES,
        *functions.MEETING,
        *movement.RULES,
        *broadcasts.RULES,
        *reductions.RULES,
        folding.commute,
    ]
)
USERS_FIRST: list[Rule] = [*sinking.RULES, *functions.RULES]
SINK = RuleSet([*sinking.MEETING, *USERS_FIRST])

ALL: list[Rule] = [*SIMPLIFY.rules, *USERS_FIRST]


def as_markdown() -> str:
    """The table of rules for ``docs/rules.md``."""
    bar = "\\|"  # a bare one would end the cell
    when = {r.name: "users" if r in USERS_FIRST else "inputs" for r in ALL}
    rows = [f"| {r.name} | `{r.algebra.replace('|', bar)}` | {r.guarantee} | {when[r.name]} |" for r in ALL]
    return "\n".join(["| rule | algebra | guarantee | first |", "|---|---|---|---|", *rows]) + "\n"


__all__ = ["ALL", "SIMPLIFY", "SINK", "USERS_FIRST", "as_markdown"]
