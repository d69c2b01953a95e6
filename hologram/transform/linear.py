"""A function at a point: its value, and its derivative there as a linear map that can be pushed through and pulled back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hologram.ir.node import Node
from hologram.trace import tree
from hologram.trace.checks import as_function
from hologram.trace.operators import wrap
from hologram.trace.tree import Treedef
from hologram.transform.arguments import differentiable_node, results_as_typed, with_aux
from hologram.transform.differentiate import pull, push
from hologram.transform.levels import Level, marked, replay
from hologram.transform.nodes import zeros_like


class Linearised:
    """``f`` at ``args``: ``results`` (nodes, of ``structure``) and the linear map between tangents of ``inputs`` and of results.

    One made for ``reverse`` mode goes backward only, any other forward only. ``aux`` is the second part of what ``f`` returns, where that was
    asked for.
    """

    __slots__ = ("level", "inputs", "weak", "in_structure", "results", "weak_results", "structure", "aux", "tangents", "linear")

    def __init__(self, f: Callable[..., Any], args: Sequence[Any], what: str, has_aux: bool = False, reverse: bool = False) -> None:
        as_function(f, what)
        leaves, self.in_structure = tree.flatten(tuple(args))
        given = [differentiable_node(x, what) for x in leaves]
        self.inputs, self.weak = [x for x, _ in given], [w for _, w in given]
        with Level() as self.level:
            marks = [marked(x) for x in self.inputs]
            out = f(*tree.unflatten(self.in_structure, [wrap(m, weak) for m, (_, weak) in zip(marks, given, strict=True)]))
            self.aux: Any = None
            if has_aux:
                out, self.aux = with_aux(out, what)
            self.results, self.weak_results, self.structure = results_as_typed(out, what)
            self.tangents = [marked(x) for x in marks]
            self.linear = push(self.level, self.results, dict(zip(marks, self.tangents, strict=True)), reverse)

    def forward(self, tangents: Sequence[Node]) -> list[Node]:
        """Tangents of the results for those of the inputs."""
        there = [x for x in self.linear if x is not None]
        made = iter(replay(self.level, there, dict(zip(self.tangents, tangents, strict=True))))
        return [zeros_like(r) if x is None else next(made) for r, x in zip(self.results, self.linear, strict=True)]

    def backward(self, cotangents: Sequence[Node]) -> list[Node]:
        """Cotangents of the inputs for those of the results."""
        pulled = pull(self.level, self.tangents, self.linear, cotangents)
        return [zeros_like(x) if c is None else c for x, c in zip(self.inputs, pulled, strict=True)]


def tangents_of(f: Callable[..., Any], args: Sequence[Any], tangents: Callable[[Treedef, list[Node], list[bool]], Sequence[Node]], what: str) -> Any:
    """``(results, their tangents, which are weak, structure)`` of ``f`` at ``args`` in one direction, given for their structure and nodes."""
    as_function(f, what)
    leaves, structure = tree.flatten(tuple(args))
    given = [differentiable_node(x, what) for x in leaves]
    directions = tangents(structure, [x for x, _ in given], [w for _, w in given])
    with Level() as level:
        marks = [marked(x) for x, _ in given]
        out = f(*tree.unflatten(structure, [wrap(m, weak) for m, (_, weak) in zip(marks, given, strict=True)]))
        results, weak, out_structure = results_as_typed(out, what)
        found = dict(zip(marks, directions, strict=True))
        pushed = push(level, results, found, reverse=False)
    return results, [zeros_like(r) if t is None else t for r, t in zip(results, pushed, strict=True)], weak, out_structure
