"""``checkpoint``: a function whose inner values are computed again for the derivative instead of being kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hologram.ir.leaves import const, leaf
from hologram.ir.node import Node
from hologram.primitives.markers import barrier
from hologram.trace import tree
from hologram.trace.checks import as_function
from hologram.trace.operators import wrap
from hologram.trace.recorder import current, record, transforming
from hologram.transform.arguments import array_node, result_nodes, tensors
from hologram.transform.custom import ReverseRule, wrapped
from hologram.transform.differentiate import pull, push
from hologram.transform.levels import Level, marked, replay
from hologram.transform.nodes import along, has_tangents, reshaped, zeros_like
from hologram.transform.transformed import Transformed


class _Recompute(ReverseRule):
    """Records the function's ops again, behind barriers that wait for the cotangents, and differentiates these."""

    transparent = True

    def __init__(self, level: Level, sources: list[Node], results: list[Node]) -> None:
        super().__init__()
        self.level, self.sources, self.results = level, sources, results

    def _again(self, arguments: Sequence[Node]) -> list[Node]:
        return replay(self.level, self.results, dict(zip(self.sources, arguments, strict=True)))

    def tangents(self, arguments: Sequence[Node], given: Sequence[Node | None]) -> Sequence[Node]:
        self._used.clear()  # each level computes again
        return super().tangents(arguments, given)

    def pushed(self, arguments: Sequence[Node], given: Sequence[Node]) -> Sequence[Node]:
        results = self._again(arguments)
        tangents = push(Level(), results, {x: t for x, t in zip(arguments, given, strict=True) if has_tangents(x.dtype)})
        return [zeros_like(r) if t is None else t for r, t in zip(results, tangents, strict=True)]

    def forward(self, arguments: Sequence[Node]) -> tuple[list[Node], list[Node]]:
        return self._again(arguments), []

    def backward(self, arguments: Sequence[Node], residuals: Sequence[Node], cotangents: Sequence[Node]) -> list[Node | None]:
        after = next((_first_element(c) for c in cotangents if c.size != 0), None)
        behind = list(arguments) if after is None else [record(barrier, (x, after)) for x in arguments]
        with Level() as level:
            marks = [marked(x) for x in behind]
            results = self._again(marks)
            tangents = {m: marked(m) for m in marks if has_tangents(m.dtype)}
            linear = push(level, results, dict(tangents), reverse=True)
        found = dict(zip(tangents, pull(level, list(tangents.values()), linear, cotangents), strict=True))
        return [found.get(m) for m in marks]


def _first_element(x: Node) -> Node:
    flat = reshaped(x, (x.size,))
    return reshaped(along(flat, 0, 0, 1), ())


def closure(level: Level, sources: Sequence[Node], results: Sequence[Node]) -> list[Node]:
    """Values from around the function that its ops on ``sources`` read: arguments like the others. In the body of a loop they may belong to a step,
    which is another one when the derivative is recorded."""
    between = level.between(sources, results, differentiable=False)
    inside = {*sources, *between}
    read = [x for node in between for x in level.definition(node)[1]]
    return [x for x in dict.fromkeys([*read, *results]) if x not in inside and x.op is not const and x.op is not leaf]


def checkpoint(f: Callable[..., Any]) -> Callable[..., Any]:
    """Rematerialization: ``f``, of which reverse mode keeps arguments and results only.

    What is between is computed again, from the arguments, where the derivative needs it. Values are the same; the memory plan shows that the inner
    values of the first pass are not alive in the second.

    >>> f = hg.checkpoint(lambda x: hnp.sin(hnp.sin(x)))
    >>> hg.grad(f)(0.0)
    Tensor(1., dtype=float32)
    """
    return Transformed(_checkpoint, as_function(f, "checkpoint"))


def _checkpoint(f: Callable[..., Any], _: tuple[()], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    if not transforming() and current() is None:
        return f(*args, **options)
    leaves, structure = tree.flatten((args, options))
    given = [array_node(x, "checkpoint") for x in leaves]
    with Level() as level:
        marks = [marked(x) for x, _ in given]
        some, named = tree.unflatten(structure, [wrap(m, weak) for m, (_, weak) in zip(marks, given, strict=True)])
        results, out = result_nodes(f(*some, **named), "checkpoint")
    around = closure(level, marks, results)
    rule = _Recompute(level, [*marks, *around], results)
    return tensors(out, wrapped(results, [*[x for x, _ in given], *around], rule))
