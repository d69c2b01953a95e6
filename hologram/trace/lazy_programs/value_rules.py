"""Whether the bits of a graph may depend on which of its numbers are operands, by rules that look at the value of a number.

Sums take the products that they add up unrounded (:mod:`hologram.graph.multiply_add`), and a choice between values is gone where its condition is
known, or where both are the same. So a product behind a choice is rounded in a program with operands, and not in one by value, where a condition is
known by its numbers, or where numbers make nodes the same that are not so for others. Where two products become the same their difference is 0.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any

from hologram.ir.graph import Body, bodies
from hologram.ir.leaves import const, leaf
from hologram.ir.node import Node
from hologram.ir.traversal import topological
from hologram.primitives.iota import iota
from hologram.trace.lazy_programs.structure import form

_SUMS = ("add", "sub", "reduce_sum")
_PRODUCTS = ("mul", "div", "pow", "select")  # and what may become one, or is chosen
_NEVER_PRODUCTS = frozenset("barrier add sub floor ceil trunc round sqrt exp log sin cos tanh".split())  # of which no rule makes one
_SEEN_THROUGH = ("neg", "select", "cast")  # besides movement: what may vanish, or what sums look through


def depends_on_values(order: Sequence[Node], varying: Set[Node]) -> bool:
    """Whether a program of the nodes in ``order``, users first, may give other bits where numbers of the nodes ``varying`` are operands."""
    sums: list[Node] = []
    for x in order:
        if x.op.kind == "control" and any([_body_depends(b, x in varying) for b in bodies(x)]):
            return True
        if x.dtype.kind in "fc":
            if x.op.name == "cast" and (source := moved(x.inputs[0])) in varying and source.op is const:
                return True  # for the value of a constant a rule may look
            if x.op.name in _SUMS:
                sums += x.inputs
    choices = _choices_of_products(sums)
    differences = [x for x in order if x.op.name == "sub" and x.dtype.kind in "fc" and all(map(_may_be_product, x.inputs))]
    if choices:
        known = _known_by_numbers(order, varying)
        if any([x.inputs[0] in known for x in choices]):
            return True
    return bool(choices or differences) and _may_coincide(choices + differences, varying)


def _body_depends(body: Body, varies: bool) -> bool:
    """The same of a body, some number of which ``varies``. What its arguments are is not known."""
    nodes = body.graph.nodes()
    if varies and any([x.op.name == "cast" and moved(x.inputs[0]).op is const for x in nodes]):
        return True
    sums = [i for x in nodes if x.op.name in _SUMS and x.dtype.kind in "fc" for i in x.inputs]
    return bool(_choices_of_products(sums)) or any([_body_depends(b, varies) for x in nodes if x.op.kind == "control" for b in bodies(x)])


def moved(x: Node) -> Node:
    """What is moved to give ``x``."""
    while x.inputs and x.op.kind in ("movement", "mark"):
        x = x.inputs[0]
    return x


def _may_be_product(x: Node) -> bool:
    """Whether a value, of which sums may take another one, may be a product that is moved or negated."""
    while x.inputs and (x.op.name == "neg" or x.op.kind in ("movement", "mark")):
        x = x.inputs[0]
    return x.op.name in _PRODUCTS or (x.op.name == "add" and x.inputs[0] is x.inputs[1])


def _becomes_product(x: Node) -> bool:
    """Whether rules may make a product of an elementwise node that sums do not look through."""
    return x.op.kind == "elementwise" and (x.op.name not in _NEVER_PRODUCTS or len(set(x.inputs)) < len(x.inputs))


def _is_end(x: Node) -> bool:
    """Whether sums do not look through a node."""
    return x.op.name not in _SEEN_THROUGH and x.op.kind not in ("movement", "mark")


def _choices_of_products(summed: Sequence[Node]) -> list[Node]:
    """The choices behind which the values ``summed`` may be products: rules make products of powers, quotients and more."""
    products: set[Node] = set()
    found: list[Node] = []
    for x in topological(summed, stop=_is_end):
        is_choice = x.op.name == "select"
        if _becomes_product(x) if _is_end(x) else not products.isdisjoint(x.inputs[is_choice:]):
            products.add(x)
            if is_choice:
                found.append(x)
    return found


def _known_by_numbers(order: Sequence[Node], varying: Set[Node]) -> set[Node]:
    """The nodes of whose values more may be known by the numbers of ``varying``: what follows from constants and counters among them, and what is
    made of no argument, in sizes that vary."""
    known: set[Node] = set()
    sized: set[Node] = set()
    from_arguments: set[Node] = set()
    for x in topological(order):
        if x in varying or not sized.isdisjoint(x.inputs):
            sized.add(x)
        if x.op is leaf or not from_arguments.isdisjoint(x.inputs):
            from_arguments.add(x)
        is_source = x.op is const or x.op is iota
        if not known.isdisjoint(x.inputs) or (x in varying if is_source else x in sized and x not in from_arguments and x.op.kind != "movement"):
            known.add(x)
    return known


def _may_coincide(roots: Sequence[Node], varying: Set[Node]) -> bool:
    """Whether other numbers may make two nodes that ``roots`` need the same: these have one rank, and compute the same of what differs by movement
    and numbers."""
    any_number = {x.dtype for x in varying if x.op is const}
    vary = {x.op for x in varying}
    moves_by_numbers = any([x.op.kind in ("movement", "mark") for x in varying])
    numbers: dict[Any, int] = {}  # of nodes that are the same, and of what may become the same
    same: dict[Node, int] = {}
    alike: dict[Node, int] = {}
    member: dict[int, int] = {}  # of those that are alike one
    for x in topological(roots):
        same_operands = tuple([same[i] for i in x.inputs])
        alike_operands = tuple([(alike[i], len(i.shape)) for i in x.inputs])
        if len(set(alike_operands)) < len(set(same_operands)):
            return True
        same[x] = numbers.setdefault(("same", x if x.op is leaf else (x.op, x.attrs, same_operands)), len(numbers))
        if moves_by_numbers and x.op.kind in ("movement", "mark") and x.inputs:
            alike[x] = alike_operands[0][0]
            continue
        key: Any = x if x.op is leaf else (x.op, form(x.op, x.attrs)[0] if x.op in vary else x.attrs, len(x.shape), alike_operands)
        if x.op is const:
            key = x.dtype if x.dtype in any_number else x.attrs
        alike[x] = numbers.setdefault(("alike", key), len(numbers))
        if member.setdefault(alike[x], same[x]) != same[x] and x.op is not const:
            return True
    return False
