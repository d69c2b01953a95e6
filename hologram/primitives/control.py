"""Ops that hold graphs: a loop over the steps of a sequence, a loop with a condition, and a choice among branches.

A control node has several results. The node's own shape and type are those of result 0, and nobody reads it but ``project`` nodes, one a
result. Its graphs are :class:`~hologram.ir.graph.Body` attributes. They are closed: what a body reads from around it is an input.

- ``scan(body, consts, carries, length, reverse)``, inputs ``(*consts, *carries, *xs)``: the body takes ``(*consts, *carries, *xs[i])`` and gives
  ``(*carries, *ys[i])``. Results: the last carries and the stacked ys. Steps run from 0, or from ``length - 1`` down where ``reverse``.
- ``while(cond, body, consts)``, inputs ``(*consts, *carries)``: both graphs take them all; the body gives the next carries, the condition a bool.
- ``switch(branches)``, inputs ``(index, *operands)``: the results of the branch that the int64 ``index`` names, which is in range.

Loops may have one more attribute, ``progress``: the label of the bar that shows how many steps are done. It changes no result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hologram import dtypes
from hologram.dtypes import DType
from hologram.errors import DTypeError, ShapeError
from hologram.ir.graph import Body, bodies
from hologram.ir.interpreter import evaluate
from hologram.ir.node import Node
from hologram.ir.op import Op, Shape, register

Type = tuple[Shape, DType]
DERIVATIVE = " (derivative)"  # behind the label of a loop's bar


def _types(nodes: Sequence[Any]) -> list[Type]:
    return [(n.shape, n.dtype) for n in nodes]


def _require(what: str, found: list[Type], wanted: list[Type]) -> None:
    if found != wanted:
        differ = next((f"{d}{list(s)} for {e}{list(t)}" for (s, d), (t, e) in zip(found, wanted, strict=False) if (s, d) != (t, e)), "")
        raise ShapeError(f"{what}: {len(found)} values for {len(wanted)}; {differ}")


def scan_results(body: Body, carries: int, length: int) -> list[Type]:
    """Types of a scan's results."""
    types = _types(body.graph.outputs)
    return types[:carries] + [((length, *shape), dtype) for shape, dtype in types[carries:]]


def _infer_scan(inputs: tuple[Node, ...], attrs: tuple[Any, ...]) -> Type:
    body, consts, carries, length, *_ = attrs
    xs = inputs[consts + carries :]
    if any(not x.shape or x.shape[0] != length for x in xs):
        raise ShapeError(f"scan: sequences {[list(x.shape) for x in xs]} do not have the length {length}")
    given = _types(inputs[: consts + carries]) + [(x.shape[1:], x.dtype) for x in xs]
    _require("scan: arguments of the body", _types(body.graph.inputs), given)
    _require("scan: carries of the body", _types(body.graph.outputs[:carries]), _types(inputs[consts : consts + carries]))
    return scan_results(body, carries, length)[0]


def _infer_while(inputs: tuple[Node, ...], attrs: tuple[Any, ...]) -> Type:
    cond, body, consts, *_ = attrs
    for graph in (cond.graph, body.graph):
        _require("while: arguments of a body", _types(graph.inputs), _types(inputs))
    _require("while: the condition", _types(cond.graph.outputs), [((), dtypes.bool_)])
    _require("while: carries of the body", _types(body.graph.outputs), _types(inputs[consts:]))
    return inputs[consts].shape, inputs[consts].dtype


def _infer_switch(inputs: tuple[Node, ...], attrs: tuple[Any, ...]) -> Type:
    (branches,) = attrs
    if inputs[0].shape or inputs[0].dtype is not dtypes.int64:
        raise DTypeError(f"switch: the index is a scalar int64, not {inputs[0].dtype}{list(inputs[0].shape)}")
    results = _types(branches[0].graph.outputs)
    for branch in branches:
        _require("switch: arguments of a branch", _types(branch.graph.inputs), _types(inputs[1:]))
        _require("switch: results of a branch", _types(branch.graph.outputs), results)
    return results[0]


def _infer_project(inputs: tuple[Node, ...], attrs: tuple[Any, ...]) -> Type:
    _, shape, dtype = attrs
    return shape, dtypes.of(dtype)


def _run(body: Body, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    return evaluate(body.graph, arrays)


def _scan(*args: Any) -> list[np.ndarray]:
    *arrays, body, consts, carries, length, reverse = unlabelled(args)
    fixed, state, xs = arrays[:consts], arrays[consts : consts + carries], arrays[consts + carries :]
    stacks = [np.empty(shape, dtype.np) for shape, dtype in scan_results(body, carries, length)[carries:]]
    for i in reversed(range(length)) if reverse else range(length):
        out = _run(body, [*fixed, *state, *[x[i] for x in xs]])
        state = out[:carries]
        for stack, y in zip(stacks, out[carries:], strict=True):
            stack[i] = y
    return [*state, *stacks]


def _while(*args: Any) -> list[np.ndarray]:
    *arrays, cond, body, consts = unlabelled(args)
    fixed, state = arrays[:consts], arrays[consts:]
    while _run(cond, [*fixed, *state])[0]:
        state = _run(body, [*fixed, *state])
    return list(state)


def _switch(index: np.ndarray, *args: Any) -> list[np.ndarray]:
    *operands, branches = args
    return _run(branches[int(index)], operands)


def _project(results: list[np.ndarray], index: int, *_: Any) -> np.ndarray:
    return results[index]


def _control(name: str, infer: Any, reference: Any, *attrs: str, sizes: tuple[str, ...] = ()) -> Op:
    optional = () if name == "switch" else ("progress",)
    return register(Op(name, "control", None, infer, reference, attrs=attrs, optional=optional, kinds="biufc", cost=0, sizes=sizes))


scan = _control("scan", _infer_scan, _scan, "body", "consts", "carries", "length", "reverse", sizes=("length",))
while_ = _control("while", _infer_while, _while, "cond", "body", "consts")
switch = _control("switch", _infer_switch, _switch, "branches")
project = register(Op("project", "project", 1, _infer_project, _project, attrs=("index", "shape", "dtype"), kinds="biufc", cost=0, sizes=("shape",)))


def result_types(node: Node) -> list[Type]:
    """The types of all results of a node that has several; of a scan's stacked ones, those of an element."""
    return node.op.results(node.inputs, node.attrs) if node.op.results is not None else _types(bodies(node)[-1].graph.outputs)


def projected_types(node: Node) -> list[Type]:
    """The types of all results of a node that has several, as ``project`` nodes give them."""
    return scan_results(node.attrs[0], node.attrs[2], node.attrs[3]) if node.op is scan else result_types(node)


def progress_of(node: Node) -> tuple[str, ...]:
    """The label of a loop's bar, as the attributes end with it; empty for a loop without."""
    return label_of(node.attrs)


def label_of(values: Sequence[Any]) -> tuple[str, ...]:
    """The label at the end of a loop's attributes, or of its inputs and attributes; empty where there is none."""
    return (values[-1],) if type(values[-1]) is str else ()


def unlabelled(values: Sequence[Any]) -> Sequence[Any]:
    """The same without the label."""
    return values[:-1] if type(values[-1]) is str else values


def of_derivative(label: tuple[str, ...]) -> tuple[str, ...]:
    """The label of a loop's derivative."""
    return tuple([x if x.endswith(DERIVATIVE) else x + DERIVATIVE for x in label])


def with_bodies(node: Node, changed: Sequence[Body]) -> tuple[Any, ...]:
    """The attributes of a control node with other graphs in the places of its own."""
    return (tuple(changed),) if node.op is switch else (*changed, *node.attrs[len(changed) :])
