"""The structure of lazily recorded graphs: their keys without their numbers, and which constants are arguments of every program."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from hologram import dtypes
from hologram.ir.aval import aval
from hologram.ir.graph import Body
from hologram.ir.leaves import const, input_, leaf
from hologram.ir.node import Node, const_value
from hologram.ir.op import Op
from hologram.primitives.markers import place
from hologram.trace.recorder import remember, storage_module

KNOWN_TO_RULES = frozenset((0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5))  # and what is not finite

_FORMS_LIMIT = 4096

MAX_SCALARS = 4096  # constants that are arguments of one program; further ones it has by value
MAX_DEVICE_SCALARS = 128  # the same on a device, where the arguments of a kernel have little room: 1 KiB is what OpenCL guarantees

Numbers = tuple[Any, ...]

# --- floats ----------------------------------------------------------------------------------------------------------

operands: dict[tuple[str, bytes], Any] = {}  # what :func:`scalar_operand` gave


def scalar_operand(attrs: tuple[Any, ...]) -> Any:
    """The storage of a constant that is an argument of every program; None for one that programs have by value."""
    try:
        return operands[attrs]
    except KeyError:
        storage = _storage_of_common(attrs) if attrs[0] in _COMMON else storage_of(attrs) if _is_operand(attrs) else None
        remember(operands, attrs, storage)
        return storage


_COMMON = {d.name: (struct.Struct(code), aval(d, ())) for d, code in ((dtypes.float32, "=f"), (dtypes.float64, "=d"))}


def _storage_of_common(attrs: tuple[Any, ...]) -> Any:
    """As :func:`scalar_operand`, in a third of the time."""
    form, of = _COMMON[attrs[0]]
    (value,) = form.unpack(attrs[1])
    return storage_module().of_number(of, value) if value - value == 0 and value not in KNOWN_TO_RULES else None


def _is_operand(attrs: tuple[str, bytes]) -> bool:
    dtype = dtypes.of(attrs[0])
    if dtype.kind not in "fc":
        return False
    value = complex(np.frombuffer(attrs[1], dtype.np)[0])
    return value.imag != 0 or (math.isfinite(value.real) and value.real not in KNOWN_TO_RULES)


def storage_of(attrs: tuple[str, bytes]) -> Any:
    """The storage of a constant."""
    return storage_module().of_bits(aval(dtypes.of(attrs[0]), ()), attrs[1])


_BLIND = ("add", "sub", "lt", "le", "gt", "ge", "eq", "ne", "max", "min")  # ops for which a float in a body is any float, but those known to rules

# --- structures ------------------------------------------------------------------------------------------------------


Form = tuple[tuple[Any, ...], Numbers]  # attributes without their numbers, and these

_forms: dict[tuple[Op, tuple[Any, ...]], Form] = {}
_is_size: dict[Op, tuple[bool, ...]] = {}  # of each attribute, those that an op may lack included


def form(op: Op, attrs: tuple[Any, ...]) -> Form:
    """The form of a node's attributes. Of a constant that is an integer all bits are one number."""
    key = op, attrs
    found = _forms.get(key)
    if found is None:
        if len(_forms) >= _FORMS_LIMIT:
            _forms.clear()
        found = _forms[key] = _make_form(op, attrs)
    return found


def _make_form(op: Op, attrs: tuple[Any, ...]) -> Form:
    if op is const:
        return ((attrs[0],), (attrs,)) if _is_number(attrs) else (attrs, ())
    if op.kind == "control":
        return _form_of_control(op, attrs)
    if not op.sizes:
        return attrs, ()
    which = _is_size.get(op)
    if which is None:
        which = _is_size[op] = tuple([name in op.sizes for name in op.attrs + op.optional])
    rest: list[Any] = []
    numbers: tuple[int, ...] = ()
    for is_size, value in zip(which, attrs, strict=False):
        if is_size:
            if type(value) is tuple:
                numbers += value
                value = len(value)
            else:
                numbers += (value,)
                value = 1
        rest.append(value)
    return tuple(rest), numbers


def _form_of_control(op: Op, attrs: tuple[Any, ...]) -> Form:
    """The form of attributes that hold bodies, whose numbers are the control node's."""
    rest: list[Any] = []
    numbers: Numbers = ()
    for name, value in op.named(attrs):
        held = [b for b in as_tuple(value) if type(b) is Body]
        for body in held:
            structure, own = _form_of_body(body)
            rest.append(structure)
            numbers += own
        if name in op.sizes:
            numbers += as_tuple(value)
        elif not held:
            rest.append(value)
    return tuple(rest), numbers


def _form_of_body(body: Body) -> Form:
    structure: list[Any] = []
    numbers: Numbers = ()
    number: dict[Node, int] = {}
    for x, rest, own in body_forms(body):
        number[x] = len(number)
        structure.append((x.op, rest, tuple([number[i] for i in x.inputs])))
        numbers += own
    return (tuple(structure), tuple([number[x] for x in body.graph.outputs])), numbers


def body_forms(body: Body) -> Iterator[tuple[Node, tuple[Any, ...], Numbers]]:
    """The nodes of a body, inputs first, with their forms. Floats are numbers, too, where no rule looks at them."""
    nodes = body.graph.nodes()
    blind = (*_BLIND, "mul") if not any(map(_may_double, nodes)) else _BLIND
    seen = {i for x in nodes if x.op.name not in blind for i in x.inputs} | set(body.graph.outputs)
    for x in nodes:
        if x.op is input_:
            index, shape, dtype, token = x.attrs
            yield x, (index, len(shape), dtype, token), shape
        elif x.op is const and x not in seen and _is_operand(x.attrs):
            yield x, x.attrs[:1], (x.attrs,)
        elif x.op.kind == "mark" and x.op is not place:  # which says how to differentiate, and nothing of values
            yield x, (), ()
        else:
            yield x, *form(x.op, x.attrs)


def _may_double(x: Node) -> bool:
    """Whether a node of a body may be a double or a half, into whose factor rules take another factor."""
    if x.op is const:
        return x.dtype.kind in "fc" and abs(const_value(x)) in (2, 0.5)
    return x.op.name in ("tanh", "sigmoid") or (x.op.name == "add" and x.inputs[0] is x.inputs[1])


def as_tuple(value: Any) -> tuple[Any, ...]:
    """What an attribute holds that is one thing, or several."""
    return value if type(value) is tuple else (value,)


def _is_number(attrs: tuple[Any, ...]) -> bool:
    """Whether a constant is an integer or a bool."""
    return attrs[0][0] not in "fc" and attrs[0] != "bfloat16"


def _names(op: Op, attrs: tuple[Any, ...]) -> tuple[str, ...]:
    """What the numbers of a node's attributes are called."""
    if op is const:
        return ("a constant",) if _is_number(attrs) else ()
    if op.kind == "control":
        return (f"a number in {op.name}",) * len(form(op, attrs)[1])
    return tuple([f"{op.name}'s {name}" for name, value in op.named(attrs) if name in op.sizes for _ in as_tuple(value)])


def places(order: Sequence[Node]) -> Iterator[tuple[Node, tuple[str, ...]]]:
    """The nodes of a walk that have numbers, and their names, in the order of the walk's ``numbers``."""
    for node in order:
        if node.op is leaf:
            yield node, ("an argument's shape",) * len(node.shape)
        elif node.attrs and (node.op.kind != "mark" or node.op is place) and not (node.op is const and scalar_operand(node.attrs) is not None):
            yield node, _names(node.op, node.attrs)


def clear_memos() -> None:
    """Forgets what is remembered of constants and attributes."""
    operands.clear()
    _forms.clear()
