"""Whether the bits of a graph may depend on which of its numbers are operands, by rules that look at the value of a number.

Sums take the products that they add up unrounded (:mod:`hologram.graph.multiply_add`), and a choice between values is gone where its condition is
known, or where both are the same. So a product behind a choice is rounded in a program with operands, and not in one by value, where a condition is
known by its numbers, or where numbers make nodes the same that are not so for others. Where two products become the same their difference is 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from typing import Any

from hologram.ir.graph import bodies
from hologram.ir.leaves import const, input_, leaf
from hologram.ir.node import Node
from hologram.ir.traversal import topological
from hologram.primitives.control import switch
from hologram.primitives.iota import iota
from hologram.trace.lazy_programs.structure import body_forms, form

_ARGUMENTS = (leaf, input_)
_SUMS = ("add", "sub", "reduce_sum")
_PRODUCTS = ("mul", "div", "pow", "select")  # and what may become one, or is chosen
_NEVER_PRODUCTS = frozenset("barrier add sub floor ceil trunc round sqrt exp log sin cos tanh".split())  # of which no rule makes one
_SEEN_THROUGH = ("neg", "select", "cast")  # besides movement: what may vanish, or what sums look through


def depends_on_values(order: Iterable[Node], varying: Set[Node], known: Iterable[Node] = ()) -> bool:
    """Whether a program of the nodes in ``order`` may give other bits where numbers of the nodes ``varying`` are operands. Values of more nodes,
    arguments of a body, may be ``known``."""
    sums: list[Node] = []
    loops: list[Node] = []
    differences: list[Node] = []
    for x in order:
        if x.op.kind == "control":
            loops.append(x)
        if x.dtype.kind not in "fc":
            continue
        if x.op.name == "cast" and (source := moved(x.inputs[0])) in varying and source.op is const:
            return True  # for the value of a constant a rule may look
        if x.op.name in _SUMS:
            sums += x.inputs
            if x.op.name == "sub" and all(map(_may_be_product, x.inputs)):
                differences.append(x)
    choices = _choices_of_products(sums)
    if choices or loops:
        by_numbers = _known_by_numbers(order, varying, known)
        if any([x.inputs[0] in by_numbers for x in choices]) or any([_loop_depends(x, x in varying, by_numbers) for x in loops]):
            return True
    return bool(choices or differences) and _may_coincide(choices + differences, varying)


def _loop_depends(x: Node, varies: bool, known: Set[Node]) -> bool:
    """The same of the bodies of a loop or a choice, of whose operands some are ``known``. Where a number of its own ``varies`` all of them may, and
    ranges of counters follow."""
    operands = x.inputs[x.op is switch :]
    for body in bodies(x):
        inputs = body.graph.inputs
        given = [i for i, o in zip(inputs, operands, strict=True) if o in known or (varies and i.dtype.is_integer)]
        if depends_on_values(body.graph.nodes(), {n for n, _, numbers in body_forms(body) if varies and numbers}, given):
            return True
    return False


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


def _known_by_numbers(order: Iterable[Node], varying: Set[Node], given: Iterable[Node]) -> set[Node]:
    """The nodes of whose values more may be known by the numbers of ``varying``: what follows from constants and counters among them, or what is
    ``given``, and what is made of no argument, in sizes that vary."""
    known = set(given)
    sized: set[Node] = set()
    from_arguments: set[Node] = set()
    for x in topological(order):
        if x in varying or not sized.isdisjoint(x.inputs):
            sized.add(x)
        if x.op in _ARGUMENTS or not from_arguments.isdisjoint(x.inputs):
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
        same[x] = numbers.setdefault(("same", x if x.op in _ARGUMENTS else (x.op, x.attrs, same_operands)), len(numbers))
        if moves_by_numbers and x.op.kind in ("movement", "mark") and x.inputs:
            alike[x] = alike_operands[0][0]
            continue
        key: Any = x if x.op in _ARGUMENTS else (x.op, form(x.op, x.attrs)[0] if x.op in vary else x.attrs, len(x.shape), alike_operands)
        if x.op is const:
            key = x.dtype if x.dtype in any_number else x.attrs
        alike[x] = numbers.setdefault(("alike", key), len(numbers))
        if member.setdefault(alike[x], same[x]) != same[x] and x.op is not const:
            return True
    return False
