"""Peepholes: an op and what its operands are, where its steps depend on nothing else. They are the same in every expression.

So it is where all rewrite rules that could fire at the op look no further (:attr:`hologram.graph.rewrite.rewriter.Rule.is_shallow`), and where a sum
sees at once whether its operands are products, which it takes unrounded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from hologram.graph.canonical.normal_form import RULES, USERS_FIRST
from hologram.graph.multiply_add import LOOKED_THROUGH, TO_INTEGERS
from hologram.ir.leaves import const, input_, leaf
from hologram.ir.node import Node
from hologram.ir.op import TABLE, Op
from hologram.primitives.scalar.elementwise import add, mul, sub

if TYPE_CHECKING:
    from hologram.backends.op_by_op.one_pass import OnePass
    from hologram.backends.op_by_op.program import KnownStep

SUMS = (add, sub)
BEFORE = -1  # as an operand: what the step before gave


class PeepholeStep(NamedTuple):
    """A step of a node, which computes ``part``. Its operands are inputs of the node, ``(i,)``, inputs of these, ``(i, j)``, and ``BEFORE``."""

    part: Node
    known: KnownStep
    operands: tuple[tuple[int, ...] | int, ...]


def operands_that_matter(op: Op) -> frozenset[Op]:
    """The ops of operands on which the steps of an elementwise op depend. Raises ValueError where rules ask what an argument is."""
    found = RULES.operands_at("standard", op) | {op, const}
    if op in SUMS:
        found |= {mul, *[TABLE[name] for name in (*LOOKED_THROUGH, *TO_INTEGERS)]}
    if found & {leaf, input_}:
        raise ValueError(f"rules of {op.name} ask for arguments")
    return found


def peepholes(run: OnePass, order: Sequence[Any]) -> Mapping[Any, list[PeepholeStep]]:
    """The steps of the nodes of a graph that has been passed over, as far as they are those of peepholes."""
    computed = {x: run.made[x] for x in order if x.op.kind == "elementwise"}
    found = {x: _steps(run, node) for x, node in computed.items() if _is_peephole(run, node)}
    return {x: steps for x, steps in found.items() if steps is not None}


def _is_peephole(run: OnePass, node: Node) -> bool:
    return all([r.is_shallow and r not in USERS_FIRST for r in run.candidates(node)]) and (node.op not in SUMS or _sees_products(node))


def _sees_products(node: Node) -> bool:
    """Whether a sum sees at once which of its operands are products, and that no other is an integer near one."""
    names = {i.op.name for i in node.inputs}
    return LOOKED_THROUGH.isdisjoint(names) and ("mul" not in names or names.isdisjoint(TO_INTEGERS))


def _steps(run: OnePass, node: Node) -> list[PeepholeStep] | None:
    """The steps of a node; None where one reads something else than the node's operands and theirs."""
    where: dict[Node, tuple[int, ...] | int] = {x: (i,) for i, x in reversed(list(enumerate(node.inputs)))}
    for i, x in enumerate(node.inputs):
        for j, y in enumerate(x.inputs):
            where.setdefault(y, (i, j))
    steps = []
    for part in run.parts.get(node, [node]):
        draft = run.drafts.get(part)
        if draft is None or not all([x in where for x in draft.operands]):
            return None
        steps.append(PeepholeStep(part, draft.use, tuple([where[x] for x in draft.operands])))  # type: ignore[arg-type]  # steps are known
        where = {x: at for x, at in where.items() if at != BEFORE} | {part: BEFORE}
    return steps


__all__ = ["BEFORE", "PeepholeStep", "operands_that_matter", "peepholes"]
