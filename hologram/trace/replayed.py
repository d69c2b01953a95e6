"""Replayed recordings: functions whose ops follow from the types and shapes of Tensors, and from static arguments, are looked into once.

The nodes that such a function records for operands of certain types are remembered as a *recording*. The next call with like operands makes these
nodes again, without promotion, checks or type rules. Only pending nodes outside of traces and transforms are replayed; all else goes through the
function.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

from hologram.dtypes import DType
from hologram.ir.leaves import const, leaf
from hologram.ir.node import Node
from hologram.ir.op import MULTI_RESULT, Op, Shape
from hologram.ir.traversal import topological
from hologram.settings import settings
from hologram.trace import operators, recorder
from hologram.trace.operators import own_leaf
from hologram.trace.recorder import Pending

F = TypeVar("F", bound=Callable[..., Any])
MAX_STEPS = 96  # of a recording; in a longer one the function's own work is a small part
MAX_RECORDINGS = 256  # of one function; all are forgotten when there are more

_STATIC = frozenset((int, bool, str, type(None), DType, type))


class Recording(NamedTuple):
    """Nodes in order, numbered behind the operands and the ``constants``, the number of the result, and whether that is weak."""

    constants: list[Node]
    steps: list[tuple[Op, tuple[int, ...], tuple[Any, ...], Shape, DType]]
    result: int
    weak: bool


def replayed(n: int) -> Callable[[F], F]:
    """Decorates a function that records ops on its first ``n`` arguments, Tensors or sequences of them, and gives one Tensor, no view.

    What it records may depend on nothing but the operands' types, shapes and weakness, on which of them are the same, on settings, and on further
    arguments, which are static where a call is replayed.
    """

    def decorate(function: F) -> F:
        known: dict[Any, Recording | None] = {}

        @functools.wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            if recorder.traces_in_progress or recorder.levels_under_way() or recorder.pending_lines is not None:
                return function(*args, **options)
            nodes: list[Any] = []
            key: list[Any] = [settings.code]
            if not (_add_operands(args[:n], nodes, key) and _add_static(args[n:], key) and (not options or _add_static(options.items(), key))):
                return function(*args, **options)
            of = tuple(key)
            found = known.get(of)
            if found is not None:
                return _replay(found, nodes)
            result = function(*args, **options)
            if of not in known:
                if len(known) >= MAX_RECORDINGS:
                    known.clear()
                known[of] = _recording(result, nodes)
            return result

        return call  # type: ignore[return-value]

    return decorate


def _add_operands(values: Iterable[Any], nodes: list[Any], key: list[Any]) -> bool:
    """Adds the nodes of Tensors, and what a recording depends on of them; False where something is no Tensor that is pending or realised."""
    for x in values:
        kind = type(x)
        if kind is operators.tensor_class:
            node: Any = x._node or own_leaf(x)
            if type(node) is not Pending:
                return False
            key += (node.shape, node.dtype, x._weak)
            if node in nodes:
                key.append(nodes.index(node))
            nodes.append(node)
        elif kind is tuple or kind is list:
            key += (kind, len(x))
            if not _add_operands(x, nodes, key):
                return False
        else:
            return False
    return True


def _add_static(values: Iterable[Any], key: list[Any]) -> bool:
    """Adds static arguments; False where one is not."""
    for x in values:
        kind = type(x)
        if kind is tuple:
            key += (kind, len(x))
            if not _add_static(x, key):
                return False
        elif kind in _STATIC:
            key += (kind, x)
        elif kind is float and x == x:
            key += (kind, x, math.copysign(1.0, x))
        else:
            return False
    return True


def _recording(result: Any, operands: list[Any]) -> Recording | None:
    """What leads from operands to a result; None where that is not to be replayed."""
    if type(result) is not operators.tensor_class or type(result._node) is not Pending:
        return None
    if hasattr(result, "_alias") and _is_moved(result._node, operands):
        return None
    number: dict[Node, int] = {x: i for i, x in reversed(list(enumerate(operands)))}
    order = [x for x in topological([result._node], stop=number.__contains__) if x not in number]
    constants = [x for x in order if x.op is const]
    steps = [x for x in order if x.op is not const]
    if len(steps) > MAX_STEPS or any(x.op is leaf or x.op.kind in MULTI_RESULT or not x.inputs for x in steps):
        return None
    for i, x in enumerate((*constants, *steps), len(operands)):
        number[x] = i
    made = [(x.op, tuple([number[i] for i in x.inputs]), x.attrs, x.shape, x.dtype) for x in steps]
    return Recording(constants, made, number[result._node], result._weak)


def _is_moved(node: Node, operands: list[Any]) -> bool:
    """Whether a node only moves elements of an operand, whose view its Tensor may be; a view of what nobody else has is as good as none."""
    while node not in operands and node.inputs and node.op.kind in ("movement", "gather"):
        node = node.inputs[0]
    return node in operands


def _replay(found: Recording, nodes: list[Any]) -> Any:
    pending = recorder.pending
    nodes += found.constants
    for op, inputs, attrs, shape, dtype in found.steps:
        nodes.append(pending(op, tuple([nodes[i] for i in inputs]), attrs, shape, dtype))
    return operators.wrap(nodes[found.result], found.weak)


__all__ = ["replayed"]
