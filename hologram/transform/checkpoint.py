"""``checkpoint``: a function whose inner values are computed again for the derivative instead of being kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hologram.ir.leaves import const, leaf
from hologram.ir.node import Node
from hologram.primitives.markers import barrier, custom
from hologram.trace import tree
from hologram.trace.checks import as_function, has_items, items
from hologram.trace.operators import wrap
from hologram.trace.recorder import current, record, transforming
from hologram.transform.arguments import array_node, results_as_typed, tensors
from hologram.transform.custom import ReverseRule, Rule, wrapped
from hologram.transform.differentiate import pull, push
from hologram.transform.levels import Level, marked, replay
from hologram.transform.nodes import along, has_tangents, reshaped, zeros_like
from hologram.transform.transformed import Transformed


class _Same(Rule):
    """The derivative of a value by the node that stands for it."""

    transparent = True

    def tangents(self, arguments: Sequence[Node], given: Sequence[Node | None]) -> Sequence[Node]:
        return [zeros_like(x) if t is None else t for x, t in zip(arguments, given, strict=True)]


class _Recompute(ReverseRule):
    """Records the function's ops again, behind barriers that wait for the cotangents, and differentiates these."""

    transparent = True

    def __init__(self, level: Level, sources: list[Node], results: list[Node], saved: list[Node]) -> None:
        super().__init__()
        self.level, self.sources, self.results, self.saved = level, sources, results, saved

    def _again(self, arguments: Sequence[Node], saved: bool = False) -> list[Node]:
        wanted = [*self.results, *self.saved] if saved else self.results
        return replay(self.level, wanted, dict(zip(self.sources, arguments, strict=True)))

    def tangents(self, arguments: Sequence[Node], given: Sequence[Node | None]) -> Sequence[Node]:
        self._used.clear()  # each level computes again
        return super().tangents(arguments, given)

    def pushed(self, arguments: Sequence[Node], given: Sequence[Node]) -> Sequence[Node]:
        results = self._again(arguments)
        tangents = push(Level(), results, {x: t for x, t in zip(arguments, given, strict=True) if has_tangents(x.dtype)})
        return [zeros_like(r) if t is None else t for r, t in zip(results, tangents, strict=True)]

    def forward(self, arguments: Sequence[Node]) -> tuple[list[Node], list[Node]]:
        found = self._again(arguments, saved=True)
        return found[: len(self.results)], found[len(self.results) :]

    def _with_saved(self, arguments: Sequence[Node], kept: Sequence[Node]) -> list[Node]:
        """The results, computed from the saved values; derivatives pass to what these were computed from."""
        values = dict(zip(self.sources, arguments, strict=True))
        for node, value in zip(self.saved, kept, strict=True):
            (anew,) = replay(self.level, [node], values)
            values[node] = record(custom, (value, anew), (_Same(), 0))
        return replay(self.level, self.results, values)

    def backward(self, arguments: Sequence[Node], residuals: Sequence[Node], cotangents: Sequence[Node]) -> list[Node | None]:
        after = next((_first_element(c) for c in cotangents if c.size != 0), None)
        behind = list(arguments) if after is None else [record(barrier, (x, after)) for x in arguments]
        with Level() as level:
            marks = [marked(x) for x in behind]
            results = self._with_saved(marks, residuals)
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


Policy = Callable[[Node], bool]


def checkpoint(f: Callable[..., Any] | None = None, *, policy: Policy | None = None, prevent_cse: bool = True, static_argnums: Any = ()) -> Any:
    """Rematerialization: ``f``, of which reverse mode keeps arguments and results only. Also called ``remat``; without ``f`` a decorator.

    What is between is computed again, from the arguments, where the derivative needs it. Values are the same; the memory plan shows that the inner
    values of the first pass are not alive in the second. ``policy``, one of :mod:`hologram.checkpoint_policies`, says which inner values are kept.
    Arguments at ``static_argnums`` are handed on as they are. ``prevent_cse`` is taken: what is computed again is never merged with the first.

    >>> f = hg.checkpoint(lambda x: hnp.sin(hnp.sin(x)))
    >>> hg.grad(f)(0.0)
    Tensor(1., dtype=float32)
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        static = tuple(items(static_argnums, "checkpoint", "positions") if has_items(static_argnums) else (static_argnums,))
        return Transformed(_checkpoint, as_function(function, "checkpoint"), policy, static)

    return decorate if f is None else decorate(f)


def _checkpoint(f: Callable[..., Any], given: tuple[Policy | None, tuple[int, ...]], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    policy, static = given
    if not transforming() and current() is None:
        return f(*args, **options)
    fixed = {i % len(args): args[i] for i in static}
    leaves, structure = tree.flatten(([x for i, x in enumerate(args) if i not in fixed], options))
    nodes = [array_node(x, "checkpoint") for x in leaves]
    with Level() as level:
        marks = [marked(x) for x, _ in nodes]
        some, named = tree.unflatten(structure, [wrap(m, weak) for m, (_, weak) in zip(marks, nodes, strict=True)])
        rest = iter(some)
        results, weak, out = results_as_typed(f(*[fixed[i] if i in fixed else next(rest) for i in range(len(args))], **named), "checkpoint")
    level.keep(marks, results)
    around = closure(level, marks, results)
    saved = [x for x in level.between(marks, results, differentiable=False) if policy(x)] if policy is not None else []
    rule = _Recompute(level, [*marks, *around], results, saved)
    return tensors(out, wrapped(results, [*[x for x, _ in nodes], *around], rule), weak)
