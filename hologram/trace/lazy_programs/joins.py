"""Joins of many values: what is joined is computed first, each value by itself, and NumPy joins it.

A list that grows has another structure in each step, whose program would be compiled for that step alone. Its values are small expressions, which are
like one another. A join that comes again gets its own program after all.
"""

from __future__ import annotations

import math
from typing import Any

from hologram.ir.leaves import const, leaf
from hologram.ir.node import Node
from hologram.primitives.movement import concatenate
from hologram.primitives.scalar.elementwise import mul, neg
from hologram.support.lru_cache import Recent
from hologram.trace.host_movement import COMPILE_BYTES, is_run
from hologram.trace.lazy_programs.cache import PROGRAM_LIMIT
from hologram.trace.recorder import pending

MIN_OPERANDS = 4  # of a join: of fewer there are few structures
RUNS = 3  # of one join without a program

_runs = Recent(PROGRAM_LIMIT)  # of joins, by the keys of their walks


def is_long(node: Any) -> bool:
    """Whether a node joins so many values that they may be computed before."""
    return node.op is concatenate and len(node.inputs) >= MIN_OPERANDS


def parts(walk: Any) -> list[Any]:
    """The nodes that are to be computed before the root of a walk, a long join that has no program; none where NumPy does not join them."""
    node = walk.order[0]
    if walk.device is not None or math.prod(node.shape) * node.dtype.itemsize > COMPILE_BYTES:
        return []
    found = [x for x in dict.fromkeys(map(_moved, node.inputs)) if not _is_at_hand(x)]
    runs = _runs.get(walk.key) or 0
    if not found or runs == RUNS:
        return []
    _runs.put(walk.key, runs + 1)
    return found


def _moved(x: Any) -> Any:
    """What a node moves; itself where it computes."""
    while x.op.kind == "movement" and len(x.inputs) == 1:
        x = x.inputs[0]
    return x


def _is_at_hand(x: Node) -> bool:
    """Whether NumPy joins a value without its being computed first."""
    return x.op is leaf or x.op is const or (is_run(x) and all([i.op is leaf or i.op is const for i in x.inputs]))


def stays_pending(x: Node) -> bool:
    """Whether a sum may take a value unrounded that is a product: then the node is not to become its value."""
    return x.op is mul or x.op is neg


def copy_of(x: Any) -> Any:
    """A node of its own that computes the same."""
    return pending(x.op, x.inputs, x.attrs, x.shape, x.dtype)


def joined(node: Any, instead: dict[Any, Any]) -> Any:
    """The join ``node`` of other nodes for some of those that it moves."""
    return pending(node.op, tuple([_replaced(x, instead) for x in node.inputs]), node.attrs, node.shape, node.dtype)


def _replaced(x: Any, instead: dict[Any, Any]) -> Any:
    chain = []
    while x not in instead and x.op.kind == "movement" and len(x.inputs) == 1:
        chain.append(x)
        x = x.inputs[0]
    x = instead.get(x, x)
    for move in reversed(chain):
        x = pending(move.op, (x,), move.attrs, move.shape, move.dtype)
    return x


def clear() -> None:
    """Forgets which joins have run."""
    _runs.clear()


__all__ = ["clear", "copy_of", "is_long", "joined", "parts", "stays_pending"]
