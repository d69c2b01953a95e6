"""One call of a function on symbolic arguments: what it computes, as a graph."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from hologram.errors import ArgumentError, ShapeError, TracedValueError
from hologram.ir.graph import Graph
from hologram.ir.node import Node
from hologram.ir.symbolic import Expr, substitute
from hologram.support.debug import noted
from hologram.support.user_lines import located, user_line
from hologram.trace import tree
from hologram.trace.call.signature import Call
from hologram.trace.diagnostics.origins import argument_paths
from hologram.trace.operators import node_as, operand, weak_default, wrap
from hologram.trace.recorder import Trace, thread_state
from hologram.trace.tree import Treedef


class Traced:
    """What tracing a call gives: the graph, the structure of the results, and what was assumed of symbolic extents, of which ``decisions`` are
    those by which calls get one program or another. Behind the results the graph may have the token of its effects."""

    __slots__ = ("graph", "out_tree", "assumptions", "decisions", "refused")

    def __init__(self, graph: Graph, out_tree: Treedef, assumptions: list[Expr], decisions: list[Expr], refused: str | None = None) -> None:
        self.graph, self.out_tree, self.assumptions, self.decisions = graph, out_tree, assumptions, decisions
        self.refused = refused  # where the function asked for the value of a symbolic extent, and went on: the error that it caught


def trace_call(name: str, function: Callable[..., Any], call: Call) -> Traced:
    """Runs ``function`` on fresh arguments of the call's types. What it raises passes through."""
    before = thread_state.trace, thread_state.levels, thread_state.stacks
    start = time.perf_counter_ns()
    try:
        with Trace(name, call.sizes) as trace, _sizes_noted(call):
            leaves = [wrap(trace.input(t.shape, t.dtype), t.weak) for t in call.types]
            args, options = call.arguments(leaves)
            trace.paths = partial(_paths, function, call)
            results, out_tree = tree.flatten(function(*args, **options))
            outputs = [_output(x, name) for x in results]
            if trace.last_token is not None:  # a result that no caller sees: what was called for its effect stays
                outputs.append(trace.last_token)
    finally:  # also where an interrupt came before the trace, or a transform in it, ended itself
        thread_state.trace, thread_state.levels, thread_state.stacks = before
    noted("tracing", start)
    assumed, decided = (list(dict.fromkeys(of)) for of in (trace.assumptions, trace.decisions))
    return Traced(trace.graph(outputs), out_tree, assumed, decided, trace.refused)


def _paths(function: Callable[..., Any], call: Call) -> list[str]:
    """How the leaves of a call are called, as :func:`hologram.trace.diagnostics.origins.argument_paths`, without those that are static."""
    args, options = call.arguments(list(range(len(call.types))))
    static = object()
    args = [static if i in call.statics else x for i, x in enumerate(args)]
    options = {name: x for name, x in options.items() if name not in call.statics}
    found = argument_paths(function, tuple(args), options)
    fixed = sum(1 for i in call.statics if isinstance(i, int))
    return found if not fixed else [p for p, x in zip(found, tree.leaves((tuple(args), options)), strict=True) if x is not static]


@contextlib.contextmanager
def _sizes_noted(call: Call) -> Iterator[None]:
    """An error about symbolic extents says what they are in this call."""
    try:
        yield
    except (ShapeError, TracedValueError) as e:
        if call.sizes:
            sizes = ", ".join(f"{symbol} = {n}" for symbol, n in call.sizes.items())
            where = "" if " (at " in str(e) else f", at {user_line(e)}"
            e.add_note(f"traced for extents that are symbols, by dynamic; in this call {sizes}{where}. Different symbols never have one size.")
        raise


def holds(assumptions: list[Expr], call: Call) -> bool:
    """Whether the call's sizes keep to what its program takes for granted."""
    return all(substitute(a, call.sizes) >= 0 for a in assumptions)  # type: ignore[operator]


def _output(x: Any, name: str) -> Node:
    try:
        node, dtype, weak = operand(x, name)
    except ArgumentError:
        raise located(ArgumentError(f"{name} returned a {type(x).__name__}: results are Tensors, numbers, and containers of them")) from None
    return node_as(node, weak_default(dtype) if weak else dtype)  # results are strong
