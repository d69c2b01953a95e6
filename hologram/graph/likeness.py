"""Whether two graphs that differ in numbers, constants in one and arguments in the other, are computed in the same way.

Legalization must find the same ops on the same operands: then sums have one order, and take the same products unrounded. Signs may stand elsewhere: a
constant takes them up, an argument cannot. They round nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hologram.graph.multiply_add import product_of
from hologram.graph.pass_manager import Context, run_passes
from hologram.graph.pipeline import LEGALIZE, canonicalise
from hologram.graph.schedule.tiles import TileConfig
from hologram.ir.graph import Graph
from hologram.ir.leaves import const, input_
from hologram.ir.node import Node, const_value

_PLAIN = frozenset("add sub mul div neg square abs exp log sin cos sqrt max min select lt le gt ge eq ne and or not floor ceil trunc round".split())
_SEEN_THROUGH = ("reshape", "transpose", "slice")


def are_alike(by_value: Graph, with_arguments: Graph, values: Sequence[Any], precision: str, tile: TileConfig | None, hold: int) -> bool:
    """Whether programs of both graphs compute the same, for any values. ``with_arguments`` has further inputs, behind those of ``by_value``, for some
    constants, which have these ``values``, NumPy's scalars."""
    numbering: dict[Any, int] = {}
    given = dict(enumerate(values, len(by_value.inputs)))
    first, second = (_legalized(g, precision, tile, hold) for g in (by_value, with_arguments))
    if _chooses_products(second, given) and not all(map(_keeps_order, by_value.nodes())):
        return False
    return _outputs(first, given, numbering) == _outputs(second, given, numbering)


def _legalized(graph: Graph, precision: str, tile: TileConfig | None, hold: int) -> Graph:
    legal: Graph = run_passes(canonicalise(graph, precision), LEGALIZE, Context(precision, tile, hold))
    return legal


def _chooses_products(graph: Graph, given: dict[int, Any]) -> bool:
    """Whether a sum of two products, one of which it takes unrounded, depends on the inputs ``given``."""
    depends: set[Node] = set()
    for x in graph.nodes():
        if (x.op is input_ and x.attrs[0] in given) or not depends.isdisjoint(x.inputs):
            depends.add(x)
            if x.op.name == "mad" and product_of(x.inputs[2], padded=True) is not None:
                return True
    return False


def _keeps_order(x: Node) -> bool:
    """Whether sums of two products that are made of such nodes alone are so from the start, and keep the user's order: that of others may depend on
    the bits of constants (:func:`hologram.graph.rewrite.rules.folding.commute`)."""
    kind = x.op.kind
    if kind == "movement":
        return x.op.name in _SEEN_THROUGH or x.inputs[0].op.kind == "leaf"
    return kind == "leaf" or (kind == "elementwise" and x.op.name in _PLAIN)


def _outputs(graph: Graph, given: dict[int, Any], numbering: dict[Any, int]) -> list[int]:
    """The numbers of a graph's results: those of two graphs are the same where they are computed alike, but for signs."""
    numbers: dict[Node, Any] = {}  # values of constants, of the inputs ``given``, and of what is made of these
    found: dict[Node, int] = {}
    for x in graph.nodes():
        value = _value(x, given, numbers)
        if value is not None:
            numbers[x] = value
            key: Any = x.dtype, _without_sign(value)
        elif x.op.name == "neg":
            found[x] = found[x.inputs[0]]
            continue
        else:
            key = _form(x, tuple([found[i] for i in x.inputs]))
        found[x] = numbering.setdefault(key, len(numbering))
    return [found[x] for x in graph.outputs]


def _value(x: Node, given: dict[int, Any], numbers: dict[Node, Any]) -> Any:
    """The value of a node that is made of numbers alone; None for others."""
    if x.op is const:
        return const_value(x)
    if x.op is input_:
        return given.get(x.attrs[0])
    if x.op.kind != "elementwise" or not all([i in numbers for i in x.inputs]):
        return None
    with np.errstate(all="ignore"):
        return np.asarray(x.op.reference(*[np.asarray(numbers[i]) for i in x.inputs], *x.attrs))[()]


def _without_sign(value: Any) -> bytes:
    return np.asarray(abs(value) if value.dtype.kind != "b" else value).tobytes()


def _form(x: Node, operands: tuple[int, ...]) -> Any:
    """What a node computes of its operands, whatever their order where it makes no difference."""
    name = "add" if x.op.name == "sub" else x.op.name
    if name == "mad":
        operands = (*sorted(operands[:2]), operands[2])
    elif name == "add" or "commutative" in x.op.algebra:
        operands = tuple(sorted(operands))
    return name, x.attrs, x.shape, x.dtype, operands
