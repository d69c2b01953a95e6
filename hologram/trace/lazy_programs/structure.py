"""The structure of lazily recorded graphs: their keys without their numbers, and which constants are arguments of every program."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from hologram import dtypes
from hologram.ir.aval import Aval, aval
from hologram.ir.leaves import const, leaf
from hologram.ir.node import Node
from hologram.ir.op import Op
from hologram.primitives.markers import place
from hologram.trace.recorder import remember, storage_module

_KNOWN_TO_RULES = frozenset((0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5))  # and what is not finite

MAX_SCALARS = 32  # constants that are arguments of one program; further ones it has by value

Numbers = tuple[Any, ...]

# --- floats ----------------------------------------------------------------------------------------------------------

_operands: dict[tuple[str, bytes], Any] = {}


def scalar_operand(attrs: tuple[Any, ...]) -> Any:
    """The storage of a constant that is an argument of every program; None for one that programs have by value."""
    try:
        return _operands[attrs]
    except KeyError:
        storage = storage_of(attrs) if _is_operand(attrs) else None
        remember(_operands, attrs, storage)
        return storage


def _is_operand(attrs: tuple[str, bytes]) -> bool:
    dtype = dtypes.of(attrs[0])
    if dtype.kind not in "fc":
        return False
    value = complex(np.frombuffer(attrs[1], dtype.np)[0])
    return value.imag != 0 or (math.isfinite(value.real) and value.real not in _KNOWN_TO_RULES)


def storage_of(attrs: tuple[str, bytes]) -> Any:
    """The storage of a constant."""
    return storage_module().of_bits(aval(dtypes.of(attrs[0]), ()), attrs[1])


# --- structures ------------------------------------------------------------------------------------------------------


class Form(NamedTuple):
    """Attributes without their numbers; these; and what each is called."""

    rest: Any
    numbers: Numbers
    names: tuple[str, ...]


_forms: dict[tuple[Op, tuple[Any, ...]], Form] = {}


def _form(op: Op, attrs: tuple[Any, ...]) -> Form:
    found = _forms.get((op, attrs))
    if found is None:
        found = _make_form(op, attrs)
        remember(_forms, (op, attrs), found)
    return found


def _make_form(op: Op, attrs: tuple[Any, ...]) -> Form:
    if op is const:
        integer = attrs[0][0] not in "fc" and attrs[0] != "bfloat16"
        return Form((attrs[0],), (attrs,), ("a constant",)) if integer else Form(attrs, (), ())
    rest: list[Any] = []
    numbers: list[int] = []
    names: list[str] = []
    for name, value in op.named(attrs):
        if name in op.sizes:
            rest.append(len(value))
            numbers += value
            names += [f"{op.name}'s {name}"] * len(value)
        else:
            rest.append(value)
    return Form(tuple(rest), tuple(numbers), tuple(names))


def split(key: tuple[Any, ...]) -> tuple[tuple[Any, ...], Numbers]:
    """A key's structure, and its numbers in order."""
    rest: list[Any] = list(key[:2])
    numbers: list[Any] = []
    op: Any = None
    add = rest.append
    for x in key[2:]:
        kind = type(x)
        if kind is Op:
            op = x
        elif kind is Aval:
            numbers += x.shape
            x = x.kind
        elif kind is tuple:
            found = _form(op, x)
            x = found.rest
            numbers += found.numbers
        add(x)
    return tuple(rest), tuple(numbers)


def places(order: Sequence[Node]) -> Iterator[tuple[Node, tuple[str, ...]]]:
    """The nodes of a walk that have numbers, and their names, as :func:`split` lists them."""
    for node in order:
        if node.op is leaf:
            yield node, ("an argument's shape",) * len(node.shape)
        elif node.attrs and (node.op.kind != "mark" or node.op is place) and not (node.op is const and scalar_operand(node.attrs) is not None):
            yield node, _form(node.op, node.attrs).names


def clear_memos() -> None:
    """Forgets what is remembered of constants and attributes."""
    _operands.clear()
    _forms.clear()
