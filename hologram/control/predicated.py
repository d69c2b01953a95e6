"""Predicated bodies: bodies that change nothing where a predicate does not hold.

In a stack of examples every example takes every step, and those for which it is none of theirs keep what they had. A select for each result would go
over whole arrays. So the updates on the way from an argument to a result are left out by their places: a window at -1 does not lie in the array,
and is dropped. What is computed beside may be anything where the predicate does not hold, since nothing that is kept depends on it; loops with
conditions make no step there, and nothing is called for its effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import hologram.primitives.control as ops
from hologram import dtypes
from hologram.control.replay import emitted, replayed
from hologram.control.tracing import Recorded
from hologram.ir.graph import Graph, bodies
from hologram.ir.node import Node
from hologram.ir.op import TABLE
from hologram.ir.traversal import topological
from hologram.primitives.dropped_updates import dropped_unless
from hologram.primitives.host.effects import effect, is_effect
from hologram.primitives.indexing import keeps_what_it_drops
from hologram.primitives.markers import stop
from hologram.trace.recorder import constant, record
from hologram.transform.nodes import RECORDING, apply, has_tangents, select, zeros_like


def home(x: Node) -> Node | None:
    """The argument of a body of which ``x`` is made by updates, in loops and branches too; None for other values."""
    while True:
        if x.op.kind == "mark" or (x.op.kind == "scatter" and keeps_what_it_drops(x)):
            x = x.inputs[0]
        elif x.op is ops.project:
            k = _home_operand(x.inputs[0], x.attrs[0])
            if k is None:
                return None
            x = x.inputs[0].inputs[k]
        else:
            return x if x.op.name == "input" else None


def _home_operand(node: Node, index: int) -> int | None:
    """Which operand result ``index`` of a control node is made of by updates."""
    if node.op is ops.switch:
        k = _home_operand_of([b.graph for b in node.attrs[0]], index)
        return None if k is None else k + 1
    if node.op not in (ops.scan, ops.while_):
        return None
    graph = bodies(node)[-1].graph
    first, carries = (node.attrs[1], node.attrs[2]) if node.op is ops.scan else (node.attrs[2], len(graph.outputs))
    return first + index if index < carries and _home_argument(graph, index) == first + index else None


def _home_operand_of(branches: Sequence[Graph], index: int) -> int | None:
    """Which argument all branches make result ``index`` of."""
    found = {_home_argument(b, index) for b in branches}
    return found.pop() if len(found) == 1 else None


def _home_argument(graph: Graph, index: int) -> int | None:
    x = home(graph.outputs[index])
    return None if x is None else graph.inputs.index(x)


def predicated(graph: Graph, arguments: Sequence[Node], holds: Node, otherwise: Mapping[int, int]) -> list[Node]:
    """The results of ``graph``, recorded here on ``arguments``, where ``holds``; else result k is argument ``otherwise[k]``, the others anything."""
    kept = {k for k, i in otherwise.items() if home(graph.outputs[k]) is graph.inputs[i]}
    nodes = topological(graph.outputs)
    guarded = _ways(graph.outputs[k] for k in kept) | {n for n in nodes if is_effect(n)}
    guarded |= {n for n in nodes if n.op.kind == "control" and any(x.op is ops.while_ for x in _inside(n))}
    made = dict(zip(graph.inputs, arguments, strict=True))
    for n in nodes:
        if n not in made:
            inputs = tuple([made[x] for x in n.inputs])
            made[n] = _guarded(n, inputs, holds) if n in guarded else record(n.op, inputs, n.attrs)
    results = [made[x] for x in graph.outputs]
    return [select(holds, x, arguments[otherwise[k]]) if k in otherwise and k not in kept else x for k, x in enumerate(results)]


def _inside(node: Node) -> Iterator[Node]:
    """The node, and the nodes of its bodies."""
    yield node
    if node.op.kind == "control":
        for body in bodies(node):
            for n in body.graph.nodes():
                yield from _inside(n)


def _ways(results: Iterable[Node]) -> set[Node]:
    """The updates, loops and branches between results and their homes."""
    found: set[Node] = set()
    for x in results:
        while x.op.name != "input" and x not in found:
            if x.op is ops.project:
                node = x.inputs[0]
                found.add(node)
                k = _home_operand(node, x.attrs[0])
                assert k is not None
                x = node.inputs[k]
            else:
                found.add(x)
                x = x.inputs[0]
    return found


def _guarded(node: Node, inputs: tuple[Node, ...], holds: Node) -> Node:
    """A node on the way from an argument to a result, which keeps its operands where the predicate does not hold, or one with effects, which has
    none there."""
    if node.op is effect:
        return record(effect, (inputs[0], apply(TABLE["and"], inputs[1], holds), *inputs[2:]), node.attrs)
    if node.op.kind == "scatter":
        return dropped_unless(holds, True, node, inputs, RECORDING)
    if node.op is ops.scan:
        return _guarded_scan(node, inputs, holds)
    if node.op is ops.while_:
        return _guarded_while(node, inputs, holds)
    return _guarded_switch(node, inputs, holds) if node.op is ops.switch else record(node.op, inputs, node.attrs)


def _guarded_scan(node: Node, inputs: Sequence[Node], holds: Node) -> Node:
    body, consts, carries, *rest = node.attrs
    made = Recorded("scan", [holds, *body.graph.inputs])
    with made.trace:
        made.nodes = predicated(body.graph, made.arguments[1:], made.arguments[0], {k: consts + k for k in range(carries)})
    return emitted(ops.scan, [holds, *inputs[:consts]], inputs[consts:], [made], lambda bodies, n: (bodies[0], n, carries, *rest))


def _guarded_while(node: Node, inputs: Sequence[Node], holds: Node) -> Node:
    cond, body, consts, *rest = node.attrs
    test, step = (Recorded("while_loop", [holds, *body.graph.inputs]) for _ in range(2))
    with test.trace:
        test.nodes = [apply(TABLE["and"], test.arguments[0], *replayed(cond.graph, test.arguments[1:]))]
    with step.trace:
        step.nodes = replayed(body.graph, step.arguments[1:])
    return emitted(ops.while_, [holds, *inputs[:consts]], inputs[consts:], [test, step], lambda bodies, n: (*bodies, n, *rest))


def _guarded_switch(node: Node, inputs: Sequence[Node], holds: Node) -> Node:
    """The choice with one more branch, which passes on what the others update."""
    (branches,) = node.attrs
    traces = []
    for b in branches:
        traces.append(Recorded("switch", b.graph.inputs))
        with traces[-1].trace:
            traces[-1].nodes = replayed(b.graph, traces[-1].arguments)
    idle = Recorded("switch", branches[0].graph.inputs)
    with idle.trace:
        of = [_home_operand(node, k) for k in range(len(branches[0].graph.outputs))]
        idle.nodes = [zeros_like(x) if k is None else idle.arguments[k - 1] for k, x in zip(of, branches[0].graph.outputs, strict=True)]
    index = select(holds, inputs[0], constant(len(branches), dtypes.int64))
    return emitted(ops.switch, inputs[1:], (), [*traces, idle], lambda bodies, _: (tuple(bodies),), (index,))


def one_after_another(branches: Sequence[Graph], index: Node, *operands: Node) -> list[Node]:
    """The results of the branch that ``index`` names, of all branches run in turn, of which the others change nothing.

    A result that all branches make of one operand by updates goes from branch to branch: before its own branch, an example still has the operand.
    """
    calls_host = any(x.op.kind == "host" for b in branches for n in b.nodes() for x in _inside(n))  # with the operands as they were
    of = [None if calls_host else _home_operand_of(branches, k) for k in range(len(branches[0].outputs))]
    homes = {k: i for k, i in enumerate(of) if i is not None and i not in of[:k]}
    state, chosen = list(operands), list[Node]()
    for turn, b in enumerate(branches):
        here = apply(TABLE["eq"], index, constant(turn, dtypes.int64))
        given = [x if i in homes.values() else _moved_only_where(here, x) for i, x in enumerate(state)]
        values = predicated(b, given, here, homes)
        chosen = [select(here, v, c) for v, c in zip(values, chosen, strict=True)] if chosen else values
        for k, i in homes.items():
            state[i] = chosen[k] = values[k]
    return chosen


def _moved_only_where(holds: Node, x: Node) -> Node:
    """``x``, to whose derivative nothing comes where the predicate does not hold: an infinite slope of a branch not taken, times 0, would be NaN."""
    return select(holds, x, apply(stop, x)) if has_tangents(x.dtype) else x
