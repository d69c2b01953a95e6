"""The two walks that derivatives are made of: tangents forward, cotangents back through what is linear."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from hologram.errors import DifferentiationError
from hologram.ir.node import Node
from hologram.ir.op import Op
from hologram.support.user_lines import located
from hologram.transform.levels import Level, keeping_lines
from hologram.transform.nodes import accumulated


class _Mode(threading.local):
    reverse = False


_mode = _Mode()


def in_reverse_mode() -> bool:
    """Whether the tangents that rules are asked for will be pulled back, and never have values."""
    return _mode.reverse


def push(level: Level, results: Sequence[Node], tangents: dict[Node, Any], reverse: bool | None = None) -> list[Any]:
    """Tangents of ``results``, None for zero, from those of the level's inputs, to which the tangents of everything between are added.

    ``reverse``: they are symbols, to be pulled back; by default as in the push that is under way.
    Raises DifferentiationError for an op without a rule.
    """
    before = _mode.reverse
    if reverse is not None:
        _mode.reverse = reverse
    try:
        return _push(level, results, tangents)
    finally:
        _mode.reverse = before


def _push(level: Level, results: Sequence[Node], tangents: dict[Node, Any]) -> list[Any]:
    with keeping_lines() as at:
        for node in level.between(tangents, results):
            op, inputs, attrs = level.definition(node)
            given = tuple([tangents.get(x) for x in inputs])
            if all(t is None for t in given):
                continue  # behind a rule that found a tangent to be zero
            if op.jvp is None:
                raise located(DifferentiationError(f"{op.name} cannot be differentiated"))
            at(node)
            tangent = op.jvp(given, node, *inputs, *attrs)
            if tangent is not None:
                tangents[node] = tangent
    return [tangents.get(x) for x in results]


def pull(
    level: Level, inputs: Sequence[Node], results: Sequence[Node | None], cotangents: Sequence[Any], given: Mapping[Node, Any] | None = None
) -> list[Any]:
    """Cotangents of ``inputs``, None for zero, from those of ``results``, which are linear in them.

    ``given``: cotangents that some inputs have already, to which theirs are added. Raises DifferentiationError for an op that has no rule for
    reverse mode.
    """
    sums: dict[Node, Any] = dict(given or {})
    for x, c in zip(results, cotangents, strict=True):
        if x is not None and c is not None:
            _accumulate(sums, x, c)
    between = level.between(inputs, list(sums), linear=True)
    linear = {*inputs, *between}
    with keeping_lines() as at:
        for node in reversed(between):
            cotangent = sums.pop(node, None)
            if cotangent is None:
                continue
            op, operands, attrs = level.definition(node)
            flags = tuple([x in linear for x in operands])
            at(node)
            for x, c in zip(operands, _transposed(op, sums, cotangent, flags, operands, attrs), strict=True):
                if c is not None:
                    _accumulate(sums, x, c)
    return [sums.get(x) for x in inputs]


def _transposed(
    op: Op, sums: dict[Node, Any], cotangent: Any, flags: Sequence[bool], operands: Sequence[Node], attrs: Sequence[Any]
) -> Sequence[Any]:
    """Cotangents of ``operands``; where they have those of ``sums`` in them, these are taken out there."""
    if op.accumulate is not None:
        there = [sums.pop(x, None) if flag else None for x, flag in zip(operands, flags, strict=True)]
        found: Sequence[Any] = op.accumulate(there, cotangent, flags, *operands, *attrs)
        return found
    if op.transpose is None:
        raise located(DifferentiationError(f"{op.name} has no rule for reverse mode: use jvp or jacfwd"))
    made: Sequence[Any] = op.transpose(cotangent, flags, *operands, *attrs)
    return made


def _accumulate(sums: dict[Node, Any], x: Node, cotangent: Any) -> None:
    there = sums.get(x)
    sums[x] = cotangent if there is None else _sum(there, cotangent)


def _sum(a: Any, b: Any) -> Any:
    if isinstance(a, tuple):
        return tuple(y if x is None else x if y is None else _sum(x, y) for x, y in zip(a, b, strict=True))
    return accumulated(a, b)
