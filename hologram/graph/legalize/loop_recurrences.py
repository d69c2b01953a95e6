"""Shorter recurrences: what a step computes from the step before it is what the processor waits for. Where the order of operands is free, those that
come late enter last.

The loop is as slow as its longest chain from a carry to that carry's next value. All else of later steps is computed meanwhile. In a body's scalars

- a minimum, maximum or other associative op of three operands and more is a tree in which a late operand is near the root (tree height reduction);
- ``select(c, d, max(x, y))``, where ``y`` is late, is ``select(y > select(c, most, x), y, select(c, d, x))``: one comparison and one choice after
  ``y``. The same holds for minima, and for the other side of the choice.

Integers wrap, and minima of floats are those of an order; so results are the same, bit by bit. This is for targets whose loops run on scalars in
registers.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence

import numpy as np

from hologram.graph.legalize.loop_steps import with_changed_steps
from hologram.ir.graph import Graph
from hologram.ir.node import Builder, Node
from hologram.ir.traversal import users_of
from hologram.primitives.control import scan

MAX_NODES = 512  # of a body: a larger one has more to do than to wait
MAX_CARRIES = 16  # scalars among them

_EXTREMES = ("max", "min")
_EXTREME_STEPS = 2  # a comparison and a choice

Arrivals = dict[Node, int]  # how many steps of the chain come before a value; values that do not depend on it are not there
_EARLY = -1


def shorten_recurrences(graph: Graph) -> Graph:
    """``graph`` with loops whose steps wait less for one another; the graph itself where there are none."""
    return with_changed_steps(graph, _shortened)


def _shortened(loop: Node) -> Graph | None:
    """The body of a loop with a shorter recurrence; None where there is nothing to gain."""
    before: Graph = loop.attrs[0 if loop.op is scan else 1].graph
    consts, carries = (loop.attrs[1], loop.attrs[2]) if loop.op is scan else (loop.attrs[2], len(before.outputs))
    if len(before.nodes()) > MAX_NODES or not any(map(_is_free, before.nodes())):
        return None
    body = before
    for rewrite in (_reordered, _chosen_last):
        body = _with(body, _arrivals(body, consts, carries), rewrite)
    return None if body is before else body


def _with(body: Graph, late: Arrivals, rewrite: Callable[[Builder, Node, dict[Node, Node], Arrivals, dict[Node, list[Node]]], Node | None]) -> Graph:
    """``body`` with what ``rewrite`` makes of its nodes; itself where that is nothing."""
    if not late:
        return body
    build, readers = Builder(), users_of(body.nodes())
    for x in body.outputs:
        readers.setdefault(x, []).append(x)  # which is one more than any node
    image: dict[Node, Node] = {}
    changed = False
    for n in body.nodes():
        made = rewrite(build, n, image, late, readers) if n in late and not n.shape else None
        changed = changed or made is not None
        image[n] = made or build(n.op, tuple([image[x] for x in n.inputs]), n.attrs)
    return body.mapped(image) if changed else body


# --- what is late ----------------------------------------------------------------------------------------------------


def _arrivals(body: Graph, consts: int, carries: int) -> Arrivals:
    """When the values that the slowest chain leads to come, by the number of steps from its carries. Empty where no carry waits for more than one."""
    arguments = body.inputs[consts : consts + carries]
    scalars = [k for k, x in enumerate(arguments) if _is_single(x)]
    if not scalars or len(scalars) > MAX_CARRIES:
        return {}
    chains = {k: _chain(body, arguments[k]) for k in scalars}
    around = {k: chain.get(body.outputs[k], 0) for k, chain in chains.items()}
    longest = max(around.values())
    if longest <= 1:
        return {}
    slow = {k for k, steps in around.items() if steps == longest}
    while more := {j for j in scalars if j not in slow and any(body.outputs[j] in chains[k] for k in slow)}:
        slow |= more
    late: Arrivals = {}
    for k in slow:
        for n, steps in chains[k].items():
            late[n] = max(steps, late.get(n, 0))
    return late


def _chain(body: Graph, carry: Node) -> Arrivals:
    """The single elements that are computed from ``carry``, and by how many steps."""
    chain = {carry: 0}
    for n in body.nodes():
        if n.op.kind in ("elementwise", "movement") and _is_single(n):
            before = [chain[x] for x in n.inputs if x in chain]
            if before:
                chain[n] = max(before) + _steps(n)
    return chain


def _is_single(n: Node) -> bool:
    return all(extent == 1 for extent in n.shape)


def _steps(n: Node) -> int:
    if n.op.kind == "movement":
        return 0
    return _EXTREME_STEPS if n.op.name in _EXTREMES else max(1, n.op.cost)


# --- trees -----------------------------------------------------------------------------------------------------------


def _reordered(build: Builder, root: Node, image: dict[Node, Node], late: Arrivals, readers: dict[Node, list[Node]]) -> Node | None:
    """The root of a tree of one op as the tree that is ready first; None for other nodes, and where that is no sooner."""
    if not _is_free(root) or _is_inside(root, readers):
        return None
    leaves = _leaves(root, readers)
    if any(x.shape for x in leaves):
        return None
    waiting = [(late.get(x, _EARLY), i, image[x]) for i, x in enumerate(leaves)]
    heapq.heapify(waiting)
    number, steps = len(leaves), _steps(root)
    while len(waiting) > 1:
        (first, _, x), (second, _, y) = heapq.heappop(waiting), heapq.heappop(waiting)
        ready = max(first, second)
        heapq.heappush(waiting, (ready if ready == _EARLY else ready + steps, number, build(root.op, (x, y))))
        number += 1
    ((ready, _, made),) = waiting
    return made if ready < late[root] else None


def _is_free(n: Node) -> bool:
    """Whether an op gives the same bits in any order of operands: integers wrap, and what is idempotent rounds nothing."""
    algebra = n.op.algebra
    return n.op.kind == "elementwise" and algebra >= {"commutative", "associative"} and (n.dtype.kind in "biu" or "idempotent" in algebra)


def _is_inside(n: Node, readers: dict[Node, list[Node]]) -> bool:
    """Whether a node is part of a larger tree: only one like it reads it."""
    return len(readers[n]) == 1 and readers[n][0].op is n.op and readers[n][0] is not n and not readers[n][0].shape


def _leaves(root: Node, readers: dict[Node, list[Node]]) -> list[Node]:
    """The operands of the tree at ``root``, from left to right."""
    leaves, stack = list[Node](), list(root.inputs[::-1])
    while stack:
        x = stack.pop()
        if x.op is root.op and x.dtype is root.dtype and _is_inside(x, readers):
            stack += x.inputs[::-1]
        else:
            leaves.append(x)
    return leaves


# --- choices ---------------------------------------------------------------------------------------------------------


def _chosen_last(build: Builder, n: Node, image: dict[Node, Node], late: Arrivals, readers: dict[Node, list[Node]]) -> Node | None:
    """A choice between the extreme of a late value and another one, and something else, as a choice that compares the late value alone."""
    if n.op.name != "select":
        return None
    condition, *sides = n.inputs
    for side, v in enumerate(sides):
        other = sides[1 - side]
        if v.op.name not in _EXTREMES or v.dtype.kind not in "iu" or len(readers[v]) != 1:
            continue
        x, y = sorted(v.inputs, key=lambda x: late.get(x, _EARLY))
        if late.get(y, _EARLY) <= max(late.get(w, _EARLY) for w in (condition, x, other)) or any(w.shape for w in (condition, x, y, other)):
            continue
        return _compared_last(build, v, side == 0, [image[w] for w in (condition, x, y, other)])
    return None


def _compared_last(build: Builder, extreme: Node, first: bool, values: Sequence[Node]) -> Node:
    """``select(condition, extreme(x, y), other)``, or with the sides exchanged, in which ``y`` is compared and chosen, and no more."""
    condition, x, y, other = values
    greater = extreme.op.name == "max"
    limits = np.iinfo(extreme.dtype.np)
    never = build.const(limits.max if greater else limits.min, extreme.dtype)  # which no value surpasses

    def chosen(a: Node, b: Node) -> Node:
        return build.make("select", condition, a, b) if first else build.make("select", condition, b, a)

    bound, otherwise = chosen(x, never), chosen(x, other)
    return build.make("select", build.make("lt", bound, y) if greater else build.make("lt", y, bound), y, otherwise)


__all__ = ["shorten_recurrences"]
