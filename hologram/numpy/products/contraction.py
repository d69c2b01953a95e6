"""The order in which more than two factors are multiplied: pairs of places among the factors that are left, of which each product is the last."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from hologram.errors import ArgumentError
from hologram.support.user_lines import located

Term = tuple[Sequence[Any], Sequence[Any]]  # labels and extents

MAX_OPTIMAL = 9  # operands, of which there are three to that power of splits
SYMBOLIC_EXTENT = 256  # what a symbol counts as


def contraction_path(what: str, terms: Sequence[Term], result: Sequence[Any], optimize: Any) -> Iterator[tuple[int, int]]:
    """The pairs that ``optimize`` names; none where the pair that costs least is to go first. Raises ArgumentError for another ``optimize``."""
    if optimize is True or optimize in ("auto", "greedy"):
        return iter(())
    if optimize is False:
        return iter([(0, 1)] + [(0, n) for n in range(len(terms) - 2, 0, -1)])
    if isinstance(optimize, str):
        if optimize != "optimal":
            raise located(ArgumentError(f"{what}: optimize is a bool, 'auto', 'greedy', 'optimal', or a list of pairs, not {optimize!r}"))
        return iter(_optimal(terms, result)) if 2 < len(terms) <= MAX_OPTIMAL else iter(())
    return iter(_given(what, optimize, len(terms)))


def _given(what: str, path: Any, count: int) -> list[tuple[int, int]]:
    pairs = []
    for step in path[1:] if len(path) and path[0] == "einsum_path" else path:
        if len(step) == 2 and all(0 <= i < count for i in step) and step[0] != step[1]:
            pairs.append((min(step), max(step)))
        elif count != len(step):  # the last step may name all that is left
            raise located(ArgumentError(f"{what}: {tuple(step)} is no pair of places among {count} factors"))
        count -= 1
    return pairs


def _optimal(terms: Sequence[Term], result: Sequence[Any]) -> list[tuple[int, int]]:
    """The pairs of least multiplications: those of every set of factors are least for one of its splits in two."""
    n = len(terms)
    sizes = {x: m if isinstance(m, int) else SYMBOLIC_EXTENT for labels, shape in terms for x, m in zip(labels, shape, strict=True)}
    own = [frozenset(labels) for labels, _ in terms]
    everything = (1 << n) - 1
    inside = [frozenset().union(*(own[i] for i in range(n) if s >> i & 1)) for s in range(1 << n)]
    kept = [inside[s] & (inside[everything ^ s] | frozenset(result)) if s & s - 1 else inside[s] for s in range(1 << n)]
    best: list[tuple[float, int]] = [(0.0, 0)] * (1 << n)
    for s in range(1, 1 << n):
        if not s & s - 1:
            continue
        found, part = (math.inf, 0), (s - 1) & s
        while part > s ^ part:  # one of each two complementary parts
            rest = s ^ part
            work = best[part][0] + best[rest][0] + math.prod(sizes[x] for x in kept[part] | kept[rest])
            found = min(found, (work, part))
            part = (part - 1) & s
        best[s] = found
    return _as_path(best, everything, n)


def _as_path(best: Sequence[tuple[float, int]], everything: int, n: int) -> list[tuple[int, int]]:
    left, pairs = [1 << i for i in range(n)], []

    def contract(s: int) -> None:
        part = best[s][1]
        if not part:
            return
        for half in (part, s ^ part):
            contract(half)
        i, j = sorted((left.index(part), left.index(s ^ part)))
        pairs.append((i, j))
        left[:] = [x for k, x in enumerate(left) if k not in (i, j)] + [s]

    contract(everything)
    return pairs
