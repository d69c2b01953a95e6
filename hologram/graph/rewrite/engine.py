"""The rewrite engine: two ways of running rules over a graph.

:func:`rewrite_bottom_up` takes every node to normal form once its inputs
are there; :func:`rewrite_top_down` starts at the outputs and knows how many users a node has, so that it can push work towards the leaves
without doing it twice. Both are iterative, take time linear in the graph where few rules fire, and go in an order that depends on nothing
but the graph. Dead code vanishes because only what the outputs need is visited.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable
from typing import Any

from hologram.errors import RewriteError
from hologram.graph.rewrite.rewriter import MAX_NESTED_REWRITES, MAX_REWRITES_PER_NODE, Rewriter, Watch
from hologram.graph.rewrite.rule import RuleSet
from hologram.ir.graph import Graph
from hologram.ir.node import Node


def rewrite_bottom_up(graph: Graph, rules: RuleSet, precision: str, fired: Counter[str], watch: Watch | None = None) -> Graph:
    """Every node in normal form, from the leaves up; the graph itself where no rule fires. Counts firings by rule in ``fired``, and shows them to
    ``watch``.

    Raises :class:`RewriteError` where rules run in a circle or without end, or where one changes a shape or type.
    """
    nodes = graph.nodes()
    b = Rewriter(rules.index(precision), fired, _fuel(nodes), watch)
    normal: dict[Node, Node] = {}
    lines = graph.lines
    for node in nodes:
        here = b.intern(node, tuple([normal[i] for i in node.inputs]))
        line = b.line = lines.get(node)
        target = None if here in normal else b.step(here)
        if target is None:
            _settle(node, here, line, normal, b)
        else:
            _normalise(node, here, target, line, normal, b)
    return _result(graph, normal, b.lines)


def _normalise(root: Node, first: Node, made: tuple[Node, str], line: Any, normal: dict[Node, Node], b: Rewriter) -> None:
    """Fills ``normal`` for ``root`` and for all that rules make of it, with a stack in place of recursion. ``root`` is interned as ``first``,
    of which a rule has made ``made``."""
    stack = [root, made[0]]
    pending = {first: made}  # a rule has fired here, and what it made is on the stack
    _refuse_circle([made[0]], pending)
    while stack:
        node = stack[-1]
        if node in normal:
            stack.pop()
            continue
        missing = [i for i in node.inputs if i not in normal]
        if missing:
            if pending:
                _refuse_circle(missing, pending)
            stack.extend(reversed(missing))
            continue
        here = b.intern(node, tuple([normal[i] for i in node.inputs]))
        if here not in normal:
            target: tuple[Node, str] | None = pending.get(here)
            if target is None:
                target = b.step(here)
            elif target[0] not in normal:
                _refuse_circle([here], pending)
            if target is None:
                _settle(here, here, line, normal, b)
            elif target[0] in normal:
                pending.pop(here, None)
                normal[here] = normal[target[0]]
            else:
                pending[here] = target
                _refuse_circle([target[0]], pending)
                stack.append(target[0])
                continue
        normal[node] = normal[here]
        stack.pop()


def _settle(node: Node, here: Node, line: Any, normal: dict[Node, Node], b: Rewriter) -> None:
    """Notes that ``node`` is ``here`` in normal form, where no rule fires."""
    if here not in normal:
        normal[here] = here
        b.rank_node(here)
        if line is not None:
            b.lines.setdefault(here, line)
    normal[node] = normal[here]


def _refuse_circle(nodes: list[Node], pending: dict[Node, tuple[Node, str]]) -> None:
    """Raises where one of ``nodes`` waits for its own result, or where far too many wait."""
    for n in nodes:
        if n in pending:
            raise RewriteError(f"rules run in a circle: {_names(list(pending.values())[list(pending).index(n) :])}")
    if len(pending) > MAX_NESTED_REWRITES:
        raise RewriteError(f"rules run without end: {_names(list(pending.values())[-64:])}")


def _names(steps: Iterable[tuple[Node, str]]) -> str:
    return ", ".join(dict.fromkeys(name for _, name in steps))


def rewrite_top_down(graph: Graph, rules: RuleSet, precision: str, fired: Counter[str], watch: Watch | None = None) -> Graph:
    """Rules tried from the outputs down, each node before its inputs; the graph itself where no rule fires.

    Rules see how many users a node has. One run need not reach a normal form. Raises as :func:`rewrite_bottom_up` does.
    """
    candidates = rules.index(precision)
    order = graph.nodes()
    if not any(map(candidates, order)):
        return graph
    b = Rewriter(candidates, fired, _fuel(order), watch)
    for node in order:
        b.table.setdefault((node.op, node.inputs, node.attrs), node)
    b.users = count_users(order, graph.outputs)
    normal = _rewrite_users_first(graph, order, b)
    done: dict[Node, Node] = {i: i for i in graph.inputs}
    for root in graph.outputs:
        _rebuild(root, normal, done, b)
    return _result(graph, done, {**graph.lines, **b.lines})


def _rewrite_users_first(graph: Graph, order: list[Node], b: Rewriter) -> dict[Node, tuple[Node, Any]]:
    """What each node becomes where it stands, and its line: nodes in the order of their depths, so that all users of a node come before it, those
    that rules make included. So what all users want of a node is known when its turn comes, however they share what lies between."""
    depths = _Depths(order)
    normal: dict[Node, tuple[Node, Any]] = {i: (i, None) for i in graph.inputs}
    waiting = [(-depths.of(root), n, root, None) for n, root in enumerate(graph.outputs)]
    heapq.heapify(waiting)
    pushed = len(waiting)
    while waiting:
        _, _, node, line = heapq.heappop(waiting)
        if node in normal:
            continue
        line = b.line = graph.lines.get(node, line)
        top = _rewrite_to_fixpoint(node, b)
        normal[node] = top, line
        for i in top.inputs:
            if i not in normal:
                heapq.heappush(waiting, (-depths.of(i), pushed, i, line))
                pushed += 1
    return normal


class _Depths:
    """The longest path below each node, of those that rules make, too."""

    def __init__(self, order: list[Node]) -> None:
        self._known: dict[Node, int] = {}
        for node in order:
            self.of(node)

    def of(self, node: Node) -> int:
        known, stack = self._known, [node]
        while stack:
            top = stack[-1]
            missing = [i for i in top.inputs if i not in known]
            if missing:
                stack += missing
                continue
            known[top] = 1 + max([known[i] for i in top.inputs], default=0)
            stack.pop()
        return known[node]


def _rebuild(root: Node, normal: dict[Node, tuple[Node, Any]], done: dict[Node, Node], b: Rewriter) -> None:
    """Fills ``done`` for ``root`` and all below: what nodes become, on what their inputs become."""
    stack = [root]
    entered: set[Node] = set()
    while stack:
        node = stack[-1]
        if node in done:
            stack.pop()
            continue
        top, line = normal[node]
        missing = [i for i in top.inputs if i not in done]
        entered.add(node)
        if missing:
            if any(i in entered for i in missing):
                raise RewriteError(f"rules run in a circle: {', '.join(b.fired)}")
            stack.extend(reversed(missing))
            continue
        made = done[node] = b.intern(top, tuple([done[i] for i in top.inputs]))
        if line is not None:
            b.lines.setdefault(made, line)
        stack.pop()


def _rewrite_to_fixpoint(node: Node, b: Rewriter) -> Node:
    """Applies rules at ``node`` until none fires."""
    trail: list[tuple[Node, str]] = []
    while (step := b.step(node)) is not None:
        trail.append(step)
        if len(trail) > MAX_NESTED_REWRITES:
            raise RewriteError(f"rules run without end: {_names(trail[-64:])}")
        _move_users(node, step[0], b)
        node = step[0]
    return node


def count_users(order: list[Node], outputs: Iterable[Node]) -> dict[Node, int]:
    """How many nodes of ``order``, and outputs, read each of them."""
    users = dict.fromkeys(order, 0)
    for node in order:
        for i in dict.fromkeys(node.inputs):
            users[i] += 1
    for node in outputs:
        users[node] += 1
    return users


def _move_users(old: Node, new: Node, b: Rewriter) -> None:
    """Keeps ``b.users`` true after ``new`` took the place of ``old``."""
    users = b.users
    assert users is not None
    stack = [] if users.get(new) else [new]
    users.setdefault(new, 0)
    while stack:  # what is new uses its inputs
        for i in dict.fromkeys(stack.pop().inputs):
            if not users.get(i):
                stack.append(i)
            users[i] = users.get(i, 0) + 1
    users[new] += users[old]
    users[old] = 0
    stack = [old]
    while stack:  # what is dead does not
        for i in dict.fromkeys(stack.pop().inputs):
            users[i] -= 1
            if not users[i]:
                stack.append(i)


def _fuel(nodes: list[Node]) -> int:
    return MAX_REWRITES_PER_NODE * len(nodes) + MAX_NESTED_REWRITES


def _result(graph: Graph, image: dict[Node, Node], lines: dict[Node, Any]) -> Graph:
    inputs, outputs = [image[i] for i in graph.inputs], [image[o] for o in graph.outputs]
    if inputs == graph.inputs and outputs == graph.outputs:
        return graph
    return Graph(inputs, outputs, lines)
