"""Integer range analysis of one node: between which numbers the elements of a value are, from the ranges of what it is made of.

Ranges are pairs, both ends inclusive; a truth value is 0 or 1. What may overflow has the range of its type, and other values have none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from hologram.dtypes import DType
from hologram.ir.node import Node, const_value

Range: TypeAlias = "tuple[int, int]"
Ranges: TypeAlias = "Sequence[Range | None]"


def type_range(d: DType) -> Range | None:
    """All that a type holds; None for types of other than integers and truth values."""
    if d.kind == "b":
        return 0, 1
    if d.kind not in "iu":
        return None
    return (0, 2**d.bits - 1) if d.kind == "u" else (-(2 ** (d.bits - 1)), 2 ** (d.bits - 1) - 1)


def joined(ranges: Ranges) -> Range | None:
    """The range of values of which each is in one of ``ranges``."""
    known = [r for r in ranges if r is not None]
    return (min(r[0] for r in known), max(r[1] for r in known)) if known and len(known) == len(ranges) else None


def range_of(node: Node, inputs: Ranges) -> Range | None:
    """The range of ``node``, which is no control node, from those of its inputs.

    >>> from hologram.dtypes import int32
    >>> from hologram.graph.canonical.integer_ranges import range_of
    >>> from hologram.ir.node import Builder
    >>> b = Builder()
    >>> x = b.const(7, int32)
    >>> range_of(b.make("add", x, x), [(0, 9), (1, 2)])
    (1, 11)
    """
    limits = type_range(node.dtype)
    if limits is None:
        return None
    found = _found(node, inputs)
    return found if found is not None and limits[0] <= found[0] <= found[1] <= limits[1] else limits


def _found(node: Node, inputs: Ranges) -> Range | None:
    name, kind = node.op.name, node.op.kind
    if name == "const":
        value = int(const_value(node))
        return value, value
    if name == "iota":
        n = node.shape[node.attrs[1]]
        return (0, max(0, n - 1)) if isinstance(n, int) else None
    if kind == "movement" or name == "cast":
        return joined(inputs)
    if kind == "gather" or name in ("reduce_max", "reduce_min", "sort"):
        return inputs[0]
    if name == "select":
        return inputs[2] if inputs[0] == (0, 0) else inputs[1] if inputs[0] == (1, 1) else joined(inputs[1:])
    known = [r for r in inputs if r is not None]
    rule = _RULES.get(name)
    return rule(*known) if rule is not None and len(known) == len(inputs) else None


def _products(x: Range, y: Range) -> Range:
    ends = [a * b for a in x for b in y]
    return min(ends), max(ends)


def _remainder(x: Range, y: Range) -> Range | None:
    if y[0] < 1:
        return None
    return x if 0 <= x[0] and x[1] < y[0] else (0, y[1] - 1)


def _quotient(x: Range, y: Range) -> Range | None:
    return None if y[0] < 1 else (min(a // b for a in x for b in y), max(a // b for a in x for b in y))


def _common_bits(x: Range, y: Range) -> Range | None:
    most = [r[1] for r in (x, y) if r[0] >= 0]
    return (x[0] & y[0] if x[0] == x[1] and y[0] == y[1] else 0, min(most)) if most else None


def _shifted(x: Range, y: Range) -> Range | None:
    return (min(x[0] >> b for b in y), max(x[1] >> b for b in y)) if 0 <= y[0] and y[1] < 64 else None


def _truth(certain: bool, impossible: bool) -> Range:
    return (int(certain), int(not impossible))


_RULES: dict[str, Callable[..., Any]] = {
    "add": lambda x, y: (x[0] + y[0], x[1] + y[1]),
    "sub": lambda x, y: (x[0] - y[1], x[1] - y[0]),
    "neg": lambda x: (-x[1], -x[0]),
    "mul": _products,
    "max": lambda x, y: (max(x[0], y[0]), max(x[1], y[1])),
    "min": lambda x, y: (min(x[0], y[0]), min(x[1], y[1])),
    "abs": lambda x: x if x[0] >= 0 else (0, max(-x[0], x[1])),
    "rem": _remainder,
    "floordiv": _quotient,
    "and": _common_bits,
    "or": lambda x, y: (max(x[0], y[0]), max(x[1], y[1])) if joined([x, y, (0, 1)]) == (0, 1) else None,
    "shr": _shifted,
    "lt": lambda x, y: _truth(x[1] < y[0], x[0] >= y[1]),
    "le": lambda x, y: _truth(x[1] <= y[0], x[0] > y[1]),
    "eq": lambda x, y: _truth(x[0] == x[1] == y[0] == y[1], x[1] < y[0] or y[1] < x[0]),
    "ne": lambda x, y: _truth(x[1] < y[0] or y[1] < x[0], x[0] == x[1] == y[0] == y[1]),
}
