"""Derivatives of a user's own in files: the rules of ``custom_jvp`` and ``custom_vjp``, traced into graphs.

In a file a rule is ``["jvp", captured, flags, graph]`` or ``["vjp", captured, flags, results, forward, backward]``. ``captured`` are arrays that
it closes over; ``flags`` tell of each argument whether it has a tangent, or a cotangent. The graphs take (captured, arguments, tangents) to the
tangents of all results, (captured, arguments) to results and residuals, and (captured, arguments, residuals, cotangents) to the cotangents of these.
What a function saw of its arguments are ``custom`` nodes without arguments or rules. A rule that reads what the function closes over is not saved.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hologram.control.replay import replayed
from hologram.control.tracing import Recorded, close_bodies
from hologram.errors import DifferentiationError, HologramError
from hologram.ir.graph import Graph
from hologram.ir.leaves import leaf
from hologram.ir.node import Node
from hologram.saved.attributes import COUNT, FLAG, refuse
from hologram.support.user_lines import located
from hologram.trace.recorder import leaf_node
from hologram.transform.custom import ReverseRule, Rule
from hologram.transform.nodes import has_tangents, zeros_like


class Lost(Rule):
    """Stands for a rule that is not in the file."""

    closure_error = "a loaded program has a part whose custom derivative is not in its file: export the derivative as a function of its own"

    def tangents(self, arguments: Any, given: Any) -> Any:
        raise located(DifferentiationError(self.closure_error))

    def stack(self, size: Any, batched: Any) -> Rule:
        return self


LOST = Lost()


class SavedJvp(Rule):
    """A forward derivative as a graph."""

    def __init__(self, captured: Sequence[Any], flags: Sequence[bool], graph: Graph) -> None:
        self.captured, self.flags, self.graph = list(captured), list(flags), graph

    def tangents(self, arguments: Sequence[Node], given: Sequence[Node | None]) -> Sequence[Node]:
        directions = [zeros_like(x) if t is None else t for x, t, flag in zip(arguments, given, self.flags, strict=True) if flag]
        return replayed(self.graph, [*map(leaf_node, self.captured), *arguments, *directions])

    def data(self, writer: Any) -> Any:
        return ["jvp", [writer.array(s) for s in self.captured], self.flags, writer.graph(self.graph)]

    def fits(self, value: Node, arguments: Sequence[Node], index: int) -> bool:
        """Whether this can be the rule of a function of ``arguments`` whose result number ``index`` is ``value``."""
        inputs = [*_types(self.captured), *_types(arguments), *_types(_flagged(arguments, self.flags))]
        return _types(self.graph.inputs) == inputs and _types(self.graph.outputs[index : index + 1]) == _types([value])


class SavedVjp(ReverseRule):
    """A reverse derivative as two graphs: ``forward`` gives the ``results`` results of the function, then the residuals; ``backward`` gives
    cotangents."""

    def __init__(self, captured: Sequence[Any], flags: Sequence[bool], results: int, forward: Graph, backward: Graph) -> None:
        super().__init__()
        self.captured, self.flags, self.results = list(captured), list(flags), results
        self.forward_graph, self.backward_graph = forward, backward

    def forward(self, arguments: Sequence[Node]) -> tuple[list[Node], list[Node]]:
        made = replayed(self.forward_graph, [*map(leaf_node, self.captured), *arguments])
        return made[: self.results], made[self.results :]

    def backward(self, arguments: Sequence[Node], residuals: Sequence[Node], cotangents: Sequence[Node]) -> list[Node | None]:
        made = iter(replayed(self.backward_graph, [*map(leaf_node, self.captured), *arguments, *residuals, *cotangents]))
        return [next(made) if flag else None for flag in self.flags]

    def pushed(self, arguments: Sequence[Node], given: Sequence[Node]) -> Sequence[Node]:
        raise located(DifferentiationError("a function with a custom_vjp has no derivative in forward mode: use grad or vjp"))

    def data(self, writer: Any) -> Any:
        captured = [writer.array(s) for s in self.captured]
        return ["vjp", captured, self.flags, self.results, writer.graph(self.forward_graph), writer.graph(self.backward_graph)]

    def fits(self, value: Node, arguments: Sequence[Node], index: int) -> bool:
        """As :meth:`SavedJvp.fits`."""
        given, out = [*_types(self.captured), *_types(arguments)], _types(self.forward_graph.outputs)
        results, residuals = out[: self.results], out[self.results :]
        return (
            _types(self.forward_graph.inputs) == given
            and _types(self.backward_graph.inputs) == [*given, *residuals, *results]
            and _types(self.backward_graph.outputs) == _types(_flagged(arguments, self.flags))
            and results[index : index + 1] == _types([value])
        )


def _types(values: Sequence[Any]) -> list[Any]:
    """Shapes and element types of nodes or storages."""
    return [(x.shape, x.dtype) if isinstance(x, Node) else (x.aval.shape, x.aval.dtype) for x in values]


def _flagged(arguments: Sequence[Node], flags: Sequence[bool]) -> list[Node]:
    return [x for x, flag in zip(arguments, flags, strict=True) if flag]


# --- from a user's functions -----------------------------------------------------------------------------------------


def traced(rule: Rule, arguments: Sequence[Node]) -> SavedJvp | SavedVjp | None:
    """``rule`` for arguments of these types as graphs; None for one that cannot be traced, or reads values of an enclosing function."""
    if isinstance(rule, (SavedJvp, SavedVjp)):
        return rule
    if rule is LOST or not arguments or not all(isinstance(n, int) for x in arguments for n in x.shape):
        return None
    try:
        return _reverse(rule, arguments) if isinstance(rule, ReverseRule) else _forward(rule, arguments)
    except HologramError:
        return None


def _forward(rule: Rule, arguments: Sequence[Node]) -> SavedJvp | None:
    flags = [has_tangents(x.dtype) for x in arguments]
    made = Recorded("export", [*arguments, *_flagged(arguments, flags)])
    with made.trace:
        directions = iter(made.arguments[len(flags) :])
        given = [next(directions) if flag else None for flag in flags]
        made.nodes = list(rule.tangents(made.arguments[: len(flags)], given))
    outer, (body,) = close_bodies([made])
    return SavedJvp([x.attrs[0] for x in outer], flags, body.graph) if _are_leaves(outer) else None


def _reverse(rule: ReverseRule, arguments: Sequence[Node]) -> SavedVjp | None:
    forward = Recorded("export", arguments)
    with forward.trace:
        results, residuals = rule.forward(forward.arguments)
        forward.nodes = [*results, *residuals]
    backward = Recorded("export", [*arguments, *residuals, *results])
    n, m = len(arguments), len(arguments) + len(residuals)
    with backward.trace:
        found = rule.backward(backward.arguments[:n], backward.arguments[n:m], backward.arguments[m:])
        backward.nodes = [x for x in found if x is not None]
    outer, bodies = close_bodies([forward, backward])
    if not _are_leaves(outer):
        return None
    return SavedVjp([x.attrs[0] for x in outer], [x is not None for x in found], len(results), bodies[0].graph, bodies[1].graph)


def _are_leaves(nodes: Sequence[Node]) -> bool:
    return all(x.op is leaf for x in nodes)


# --- from a file -----------------------------------------------------------------------------------------------------


def decoded(data: Any, reader: Any) -> SavedJvp | SavedVjp:
    """The rule again. Raises ProgramFileError."""
    if type(data) is not list or not data or len(data) != {"jvp": 4, "vjp": 6}.get(str(data[0])) or type(data[1]) is not list:
        raise refuse("a derivative", data)
    kind, numbers, marks, *rest = data
    if type(marks) is not list:
        raise refuse("a derivative", data)
    captured, flags = [reader.array(COUNT.decode(i, reader)) for i in numbers], [FLAG.decode(x, reader) for x in marks]
    if kind == "jvp":
        return SavedJvp(captured, flags, reader.body(rest[0]))
    return SavedVjp(captured, flags, COUNT.decode(rest[0], reader), reader.body(rest[1]), reader.body(rest[2]))
