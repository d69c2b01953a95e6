"""Arguments and results of transformed functions as nodes."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np

from hologram.errors import ArgumentError, DifferentiationError
from hologram.ir.node import Node
from hologram.support.user_lines import located
from hologram.trace import tree
from hologram.trace.operators import SCALARS, node_as, operand, weak_default, weak_type, wrap
from hologram.trace.recorder import cast_node
from hologram.trace.tensor import Tensor
from hologram.trace.tree import Treedef
from hologram.transform.nodes import has_tangents


def array_node(x: Any, what: str) -> tuple[Node, bool]:
    """Anything array-like as a node, and whether it is weakly typed: then in the type that weak values are computed in. Raises ArgumentError for
    anything else."""
    node, dtype, weak = operand(x, what)
    return node_as(node, dtype if isinstance(node, Node) or not weak else weak_type(dtype)), weak


def own(value: Any) -> Any:
    """An argument that a transform hands on as it is, with Tensors of the function's own: an assignment to their elements is not seen outside."""
    return tree.map(lambda x: copy(x) if type(x) is Tensor else x, value)


def differentiable_node(x: Any, what: str) -> tuple[Node, bool]:
    """As :func:`array_node`. Raises DifferentiationError for a type without derivatives."""
    node, weak = array_node(x, what)
    if not has_tangents(node.dtype):
        advice = "cast it to a float type, or leave it out of argnums"
        raise located(DifferentiationError(f"{what}: an argument of type {node.dtype} has no derivative: {advice}"))
    return node, weak


def result_node(x: Any, what: str) -> Node:
    """A leaf of a function's result as a node of a strong type."""
    _require_result(x, what)
    node, dtype, weak = operand(x, what)
    return node_as(node, weak_default(dtype) if weak else dtype)


def _require_result(x: Any, what: str) -> None:
    if not (type(x) is Tensor or type(x) in SCALARS or isinstance(x, (np.ndarray, np.generic))):
        raise located(ArgumentError(f"{what}: the function returned a {type(x).__name__}: results are Tensors, numbers, and containers of them"))


def result_nodes(result: Any, what: str) -> tuple[list[Node], Treedef]:
    leaves, structure = tree.flatten(result)
    return [result_node(x, what) for x in leaves], structure


def results_as_typed(result: Any, what: str) -> tuple[list[Node], list[bool], Treedef]:
    """As :func:`result_nodes`, but weak results keep the type that they are computed in; and which of them are weak."""
    leaves, structure = tree.flatten(result)
    for x in leaves:
        _require_result(x, what)
    found = [array_node(x, what) for x in leaves]
    return [n for n, _ in found], [w for _, w in found], structure


def with_aux(returned: Any, what: str) -> tuple[Any, Any]:
    """What a function with ``has_aux`` returned, in its two parts. Raises ArgumentError where it is no pair."""
    if not isinstance(returned, (tuple, list)) or len(returned) != 2:
        raise located(ArgumentError(f"{what}: with has_aux the function returns (result, aux), not {tree.structure(returned)}"))
    return returned[0], returned[1]


def cotangent_nodes(
    given: Any, structure: Treedef, like: Sequence[Node], what: str, convert: bool = False, weak: Sequence[bool] | None = None
) -> list[Node]:
    """Tangents or cotangents, given by the caller, for the values ``like``; ``convert``: their type may be another, as that of ``weak`` ones may.

    Raises ArgumentError where structure, shape or type differ.
    """
    leaves, found = tree.flatten(given)
    if found != structure:
        raise located(ArgumentError(f"{what}: structure {found}, not {structure}"))
    nodes = []
    for x, value, flexible in zip(leaves, like, weak or [convert] * len(like), strict=True):
        node, dtype, adopts = operand(x, what)
        node = node_as(node, value.dtype if adopts or convert or flexible else dtype)
        if node.shape != value.shape or node.dtype is not value.dtype:
            raise located(ArgumentError(f"{what}: {dtype}{list(node.shape)} for a value of {value.dtype}{list(value.shape)}"))
        nodes.append(node)
    return nodes


def tensors(structure: Treedef, nodes: Sequence[Node], weak: Sequence[bool] | None = None) -> Any:
    """The pytree of ``nodes``, some of which may be in the places of ``weak`` values: as these they are scalars that stay weak, or have the type that
    others see."""
    return tree.unflatten(structure, [_tensor(n, w) for n, w in zip(nodes, weak or [False] * len(nodes), strict=True)])


def _tensor(node: Node, weak: bool) -> Tensor:
    return wrap(node, weak) if not weak or not node.shape else wrap(cast_node(node, weak_default(node.dtype)))
