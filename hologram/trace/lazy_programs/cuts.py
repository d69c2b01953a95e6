"""Where long chains of pending ops are cut.

A Python loop that reads nothing records its steps one upon another. What is recorded is realised from some depth on. Of small values that depth is
small: large programs take long to compile, and gain nothing. If the cut fell anywhere, each part of the chain would hold another part of the loop's
body, and be another program. So it falls where it fell before: behind the first node on the longest path that is deep enough and recorded like one
behind which a chain was cut already. Of a loop that leaves one program, or as many as its body has parts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from hologram.ir.leaves import const, leaf
from hologram.ir.node import Node
from hologram.ir.traversal import topological
from hologram.primitives.scalar.elementwise import mul
from hologram.trace.lazy import is_storable, realise, tensor_of
from hologram.trace.lazy_programs.immediate import MAX_ELEMENTS
from hologram.trace.operators import CUT_DEPTH, DEPTH_LIMIT
from hologram.trace.recorder import remember
from hologram.trace.tensor import Tensor

_EVERY = 64  # depths at which a chain is looked at

keepers: list[Callable[[], bool]] = []  # whether values wait for who records them, and cuts chains in another way

_cuts: dict[Any, None] = {}  # the forms of nodes behind which chains were cut


def relieve(t: Tensor) -> None:
    """Realises a part of what ``t`` is computed from, or all, where a chain of it is too long."""
    node: Any = t._node
    if node.depth <= DEPTH_LIMIT and (node.depth % _EVERY or math.prod(node.shape) > MAX_ELEMENTS or any([keeps() for keeps in keepers])):
        return
    order = _measured(node)
    if node.depth > DEPTH_LIMIT:
        realise(t)
    elif node.depth >= CUT_DEPTH + _EVERY and all([math.prod(x.shape) <= MAX_ELEMENTS for x in order]):
        at = _place(node)
        if not _is_leaf(at):
            realise(*[tensor_of(x) for x in _frontier(order, at)])
            _measured(node)


def _measured(node: Any) -> list[Any]:
    """The unrealised ops below ``node``, inputs first. Their depths are counted anew, as some below them may have been realised."""
    order: list[Any] = [x for x in topological([node], stop=_is_leaf) if not _is_leaf(x)]
    for x in order:
        x.depth = 1 + max([i.depth for i in x.inputs], default=-1)
    return order


def _is_leaf(x: Node) -> bool:
    return x.op is leaf or x.op is const


def _place(node: Any) -> Any:
    """The first node on the longest path to ``node`` that is deep enough and recorded like one behind which a chain was cut; else the last one worth
    memory, which is a leaf where there is none."""
    x, found = node, None
    while x.depth >= CUT_DEPTH:
        if _form(x) in _cuts:
            found = x
        x = max(x.inputs, key=_depth)
    if found is None:
        found = node
        while _is_inner(found):
            found = max(found.inputs, key=_depth)
        if not _is_leaf(found):
            remember(_cuts, _form(found), None)
    return found


def _depth(x: Any) -> int:
    return int(x.depth)


def _is_inner(x: Node) -> bool:
    """Whether a value is not worth memory, or may be taken unrounded by what reads it: then a cut behind it would show in the bits."""
    return x.op is mul or not is_storable(x) or (x.op.kind == "mark" and len(x.inputs) == 1)


def _form(x: Node) -> Any:
    """What is alike in each step of a loop: no numbers, nor whether operands are realised."""
    return x.op, x.dtype, x.shape, *[(i.op, i.shape, *[j.op for j in i.inputs]) for i in x.inputs]


def _frontier(order: list[Any], at: Any) -> list[Any]:
    """The node ``at``, and what else the nodes read that are computed from it; ``order`` has all of them, inputs first."""
    above = {at}
    for x in order:
        if any([i in above for i in x.inputs]):
            above.add(x)
    above.discard(at)
    read: dict[Any, None] = {at: None}
    waiting = [i for x in order if x in above for i in x.inputs]
    for i in waiting:  # which grows
        if i in above or _is_leaf(i):
            continue
        if _is_inner(i):
            above.add(i)
            waiting += i.inputs
        else:
            read[i] = None
    return list(read)
