"""Why lazily recorded expressions are compiled, in words: which numbers are new, and whether programs have them as operands or by value."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from hologram import dtypes
from hologram.ir.leaves import const, leaf
from hologram.ir.node import Node
from hologram.settings import settings
from hologram.support.lru_cache import Recent
from hologram.trace.lazy_programs.structure import Numbers, places, scalar_operand

_EXPRESSIONS_LIMIT = 64  # sequences of ops of which the latest values are remembered

_values = Recent(_EXPRESSIONS_LIMIT)


def tell_miss(walk: Any, numbers: Numbers, before: Numbers | None, by_value: str | None) -> None:
    """Says on stderr why an expression is compiled, where ``explain_misses`` asks for it.

    ``before``: the numbers that its structure had; ``by_value``: why those that changed are no operands, if so.
    """
    if not settings.explain_misses:
        return
    ops = tuple(n.op for n in walk.order)
    earlier = _values.get(ops)
    _values.put(ops, values := list(_by_value(walk.order)))
    if before is not None:
        names = [n for _, of in places(walk.order) for n in of]
        tell(walk, *_compared(names, before, numbers, by_value))
    elif earlier is not None and earlier != values:
        names = [n for n, _ in values]
        tell(walk, *_compared(names, [v for _, v in earlier], [v for _, v in values], "these are part of its structure"))
    else:
        tell(walk, "compiled, because its structure is new")


def tell(walk: Any, what: str, *lines: str) -> None:
    """Says ``what`` on stderr of the expression of a walk, where ``explain_misses`` asks for it."""
    if settings.explain_misses:
        first = f"lazy expression of {len(walk.order)} nodes, {walk.roots[0].op.name}: {what}"
        print("\n  ".join([first, *lines]), file=sys.stderr)


def _compared(names: Sequence[str], before: Sequence[Any], now: Sequence[Any], by_value: str | None) -> list[str]:
    changed = [f"{n} changed: {_shown(a)} -> {_shown(b)}" for n, a, b in zip(names, before, now, strict=True) if a != b]
    if not changed:
        return ["compiled for the same numbers: it comes often, or the code had been evicted"]
    end = "from now on these are operands" if by_value is None else f"it is compiled by value: {by_value}"
    return ["compiled again, because", *dict.fromkeys(changed), end]


def _by_value(order: Sequence[Node]) -> Iterator[tuple[str, Any]]:
    """What the structure of an expression has: attributes that are no numbers, and floats that rewrite rules look for."""
    for node in order:
        if node.op is const:
            if node.dtype.kind in "fc":
                yield "a constant", node.attrs if scalar_operand(node.attrs) is None else "an operand"
        elif node.op is not leaf and node.op.kind != "mark":
            attrs = zip(node.op.attrs, node.attrs, strict=False)
            yield from ((f"{node.op.name}'s {name}", value) for name, value in attrs if name not in node.op.sizes)


def _shown(number: Any) -> Any:
    """An integer constant is its type and bytes."""
    is_constant = type(number) is tuple and len(number) == 2 and type(number[1]) is bytes
    return np.frombuffer(number[1], dtypes.of(number[0]).np)[0].item() if is_constant else number
