"""Branches: ``cond`` and ``switch``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import hologram.primitives.control as ops
from hologram import dtypes
from hologram.control.tracing import TOKEN_TYPE, Operands, Traced, Type, as_node, close_bodies, emit_with_token, same_structure
from hologram.dtypes import DType
from hologram.errors import ArgumentError, DTypeError, ShapeError
from hologram.ir.node import Node
from hologram.ir.op import TABLE
from hologram.support.user_lines import located
from hologram.trace import effects, tree
from hologram.trace.call.jit import jit_is_disabled
from hologram.trace.checks import as_function, items
from hologram.trace.operators import common_type, wrap
from hologram.trace.recorder import cast_node, constant, record


def cond(pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any) -> Any:
    """Conditional: ``true_fun(*operands)`` where the scalar ``pred`` holds, else ``false_fun(*operands)``; one of them runs.

    Both are traced, and give results of one structure, and of the same shapes and types. ``pred`` is a bool, or a number that stands for
    ``pred != 0``. Raises ShapeError, DTypeError or TreeError where branches differ.

    >>> hg.cond(hnp.asarray(3.0) > 2, lambda x: x * 10, lambda x: x, hnp.asarray(7.0))
    Tensor(70., dtype=float32)
    """
    node, _ = as_node(pred, "cond: the predicate")
    if node.shape:
        raise located(ShapeError(f"cond: the predicate is a scalar, not of shape {list(node.shape)}"))
    if node.dtype.is_complex:
        raise located(DTypeError(f"cond: the predicate is a bool or a real number, not {node.dtype}"))
    if jit_is_disabled():
        return (true_fun if wrap(node) else false_fun)(*operands)
    index = cast_node(cast_node(node, dtypes.bool_), dtypes.int64)
    return _choose("cond", index, (false_fun, true_fun), operands, ("false_fun", "true_fun"))


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """Multi-way branch: ``branches[index](*operands)``, the scalar integer ``index`` clamped into range; one branch runs.

    All are traced, and give results of one structure, and of the same shapes and types. Raises as :func:`cond` does.

    >>> hg.switch(1, [hnp.sin, hnp.square, hnp.exp], hnp.asarray(3.0))
    Tensor(9., dtype=float32)
    """
    branches = [as_function(b, "switch") for b in items(branches, "switch", "functions")]
    if not branches:
        raise located(ArgumentError("switch takes at least one branch"))
    node, _ = as_node(index, "switch: the index")
    if node.shape or not node.dtype.is_integer:
        raise located(DTypeError(f"switch: the index is a scalar integer, not {node.dtype}{list(node.shape)}"))
    last = len(branches) - 1
    if jit_is_disabled():
        return branches[min(max(int(wrap(node)), 0), last)](*operands)
    if last == 0:
        return branches[0](*operands)
    top = constant(last, dtypes.int64)
    if node.dtype.name == "uint64":  # which int64 does not hold
        node = record(TABLE["min"], (node, constant(last, node.dtype)))
    node = record(TABLE["min"], (cast_node(node, dtypes.int64), top))
    node = record(TABLE["max"], (node, constant(0, dtypes.int64)))
    return _choose("switch", node, tuple(branches), operands, tuple(f"branches[{i}]" for i in range(last + 1)))


def _choose(what: str, index: Node, branches: Sequence[Callable[..., Any]], operands: tuple[Any, ...], names: Sequence[str]) -> Any:
    given = Operands(operands, what, "operands")

    def pack(leaves: list[Any]) -> tuple[Any, ...]:
        result: tuple[Any, ...] = tree.unflatten(given.treedef, leaves)
        return result

    traces = [Traced(what, f, given.types, pack) for f in branches]
    first = traces[0]
    for t, name in zip(traces[1:], names[1:], strict=True):
        same_structure(f"{what}: what {name} returns, beside {names[0]}", t.treedef, first.treedef)
    types = [_agree(what, traces, i, names) for i in range(len(first.nodes))]
    operand_nodes, token = given.nodes, None
    if any(t.has_effects for t in traces):
        token = len(types)
        for t in traces:
            t.thread_token(len(operand_nodes), token)
        types, operand_nodes = [*types, TOKEN_TYPE], [*operand_nodes, effects.token()]
    if not types:
        return first.result
    outer, bodies = close_bodies(traces)
    return tree.unflatten(first.treedef, emit_with_token(ops.switch, [index, *outer, *operand_nodes], (tuple(bodies),), types, token))


def _agree(what: str, traces: Sequence[Traced], i: int, names: Sequence[str]) -> Type:
    """The one type of result ``i`` of all branches; weak ones adopt it."""
    types = [t.types[i] for t in traces]
    strong = next((t for t in types if not t.weak), None)
    dtype: DType = common_type([(t, t.dtype, False) for t in types])[0] if strong is None else strong.dtype
    wanted = Type(types[0].shape, dtype, strong is None)
    for t, found, name in zip(traces, types, names, strict=True):
        where = f"result{traces[0].paths[i]}"
        if found.shape != wanted.shape:
            raise located(ShapeError(f"{what}: {where} is {types[0]} in {names[0]} and {found} in {name}: shapes must agree"))
        if found.dtype is not dtype:
            if not found.weak or (strong is not None and dtypes.promote_weak(dtype, found.dtype) is not dtype):
                raise located(DTypeError(f"{what}: {where} is {wanted} in one branch and {found} in {name}: element types must agree"))
            t.cast(i, dtype)
    return wanted
