"""Peepholes: an op and what its operands are, where its steps depend on nothing else. They are the same in every expression.

So it is where all rewrite rules that could fire at the op look no further (:attr:`hologram.graph.rewrite.rewriter.Rule.is_shallow`), where a sum sees
at once whether its operands are products, which it takes unrounded, and where what is reduced has extents above 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from hologram.backends.op_by_op.program import Draft, KnownStep, ready_draft
from hologram.graph.canonical.normal_form import RULES, USERS_FIRST
from hologram.graph.multiply_add import LOOKED_THROUGH, TO_INTEGERS
from hologram.graph.rewrite.rewriter import Rule
from hologram.ir.leaves import const, input_, leaf
from hologram.ir.node import Node
from hologram.ir.op import TABLE, Op
from hologram.primitives.reductions import reduce_sum
from hologram.primitives.scalar.elementwise import add, mul, sub

SUMS = (add, sub, reduce_sum)
KINDS = ("elementwise", "reduce")
Operand = tuple[int, ...] | int | Node  # of a step: input i of the node, (i,); input j of that, (i, j); what step k gave, k; a constant


class PeepholeStep(NamedTuple):
    """A step of a node, which computes ``part``."""

    part: Node
    known: KnownStep
    operands: tuple[Operand, ...]


def operands_that_matter(op: Op) -> frozenset[Op]:
    """The ops of operands on which the steps of an op depend. Raises ValueError where rules ask what an argument is."""
    found = RULES.operands_at("standard", op) | {op, const}
    if op in SUMS:
        found |= {mul, *[TABLE[name] for name in (*LOOKED_THROUGH, *TO_INTEGERS, "pad")]}
    if found & {leaf, input_}:
        raise ValueError(f"rules of {op.name} ask for arguments")
    return found


class Legalized(NamedTuple):
    """What is known of a graph in normal form: the canonical nodes, the legal ones that some become, and the steps of these. ``candidates`` gives the
    rules that could fire at a node."""

    made: Mapping[Any, Node]
    parts: Mapping[Node, list[Node]]
    drafts: Mapping[Node, Draft]
    candidates: Callable[[Node], tuple[Rule, ...]]

    def peepholes(self, order: Sequence[Any]) -> Mapping[Any, list[PeepholeStep]]:
        """The steps of pending nodes, as far as they are those of peepholes."""
        nodes = {x: self.made[x] for x in order if x.op.kind in KINDS}
        found = {x: _steps(self, node) for x, node in nodes.items() if self._is_peephole(node)}
        return {x: steps for x, steps in found.items() if steps is not None}

    def _is_peephole(self, node: Node) -> bool:
        are_shallow = all([r.is_shallow and r not in USERS_FIRST for r in self.candidates(node)])
        return are_shallow and (node.op not in SUMS or _sees_products(node))


def _sees_products(node: Node) -> bool:
    """Whether a sum sees at once which of its operands are products, and that no other is an integer near one."""
    names = {i.op.name for i in node.inputs}
    return LOOKED_THROUGH.isdisjoint(names) and ("mul" not in names or names.isdisjoint(TO_INTEGERS))


def _steps(of: Legalized, node: Node) -> list[PeepholeStep] | None:
    """The steps of a node; None where one reads something else than constants, the node's operands and theirs."""
    where: dict[Node, Operand] = {x: (i,) for i, x in reversed(list(enumerate(node.inputs)))}
    for i, x in enumerate(node.inputs):
        for j, y in enumerate(x.inputs):
            where.setdefault(y, (i, j))
    steps: list[PeepholeStep] = []
    for part in of.parts.get(node, [node]):
        if part.op is const:
            where.setdefault(part, part)
            continue
        draft = of.drafts.get(part) or ready_draft(part)  # a product that a sum takes here is computed elsewhere
        if draft is None or not all([x in where for x in draft.operands]):
            return None
        steps.append(PeepholeStep(part, draft.use, tuple([where[x] for x in draft.operands])))  # type: ignore[arg-type]  # steps are known
        where[part] = len(steps) - 1
    return steps


__all__ = ["KINDS", "Legalized", "Operand", "PeepholeStep", "operands_that_matter"]
