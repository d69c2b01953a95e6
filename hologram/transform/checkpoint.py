"""``checkpoint``: a function whose inner values are computed again for the derivative instead of being kept."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from hologram.primitives.marks import barrier
from hologram.trace import tree
from hologram.trace.apply import wrap
from hologram.trace.node import Node
from hologram.trace.recorder import current, record, transforming
from hologram.transform.arguments import array_node, result_nodes, tensors
from hologram.transform.custom import Rule, wrapped
from hologram.transform.differentiate import push
from hologram.transform.levels import Level, marked, replay
from hologram.transform.nodes import has_tangents, zeros_like


class _Recompute(Rule):
    """Records the function's ops again, on inputs behind barriers, and differentiates these."""

    def __init__(self, level: Level, sources: list[Node], results: list[Node]) -> None:
        self.level, self.sources, self.results = level, sources, results

    def tangents(self, arguments: Sequence[Node], given: Sequence[Node | None]) -> Sequence[Node]:
        again = [record(barrier, (x,)) for x in arguments]
        results = replay(self.level, self.results, dict(zip(self.sources, again, strict=True)))
        directions = {x: t for x, t in zip(again, given, strict=True) if t is not None}
        pushed = push(Level(), results, directions)
        return [zeros_like(r) if t is None else t for r, t in zip(results, pushed, strict=True)]


def _closure(level: Level, sources: Sequence[Node], results: Sequence[Node]) -> list[Node]:
    """Values from around the function that its ops on ``sources`` read and that may have derivatives."""
    between = level.between(sources, results, differentiable=False)
    inside = {*sources, *between}
    found: dict[Node, None] = {}
    for node in between:
        for x in level.definition(node)[1]:
            if x not in inside and x.inputs and has_tangents(x.dtype):
                found[x] = None
    return list(found)


def checkpoint(f: Callable[..., Any]) -> Callable[..., Any]:
    """``f``, of which only arguments and results are kept for reverse mode: what is between is computed again, from the arguments, where the
    derivative needs it. Values are the same; the memory plan shows that the inner values of the first pass are not alive in the second."""

    @functools.wraps(f)
    def checkpointed(*args: Any, **options: Any) -> Any:
        if not transforming() and current() is None:
            return f(*args, **options)
        leaves, structure = tree.flatten((args, options))
        given = [array_node(x, "checkpoint") for x in leaves]
        with Level() as level:
            marks = [marked(x) for x, _ in given]
            some, named = tree.unflatten(structure, [wrap(m, weak) for m, (_, weak) in zip(marks, given, strict=True)])
            results, out = result_nodes(f(*some, **named), "checkpoint")
        around = _closure(level, marks, results)
        rule = _Recompute(level, [*marks, *around], results)
        return tensors(out, wrapped(results, [*[x for x, _ in given], *around], rule))

    return checkpointed
