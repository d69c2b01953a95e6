"""The rules of canonical reduction, in the order in which they are tried.

``SIMPLIFY`` runs with inputs first, ``SINK`` with users first: see :mod:`hologram.graph.rewrite`.
"""

from __future__ import annotations

from hologram.graph.rewrite import Rule, RuleSet
from hologram.graph.rules import arithmetic, broadcasts, comparison, folding, movement, reductions, sinking

SIMPLIFY = RuleSet([*folding.RULES, *comparison.RULES, *arithmetic.RULES, *movement.RULES, *broadcasts.RULES, *reductions.RULES, folding.commute])
SINK = RuleSet([*sinking.MEETING, *sinking.RULES])

ALL: list[Rule] = [*SIMPLIFY.rules, *sinking.RULES]

__all__ = ["ALL", "SIMPLIFY", "SINK"]
