"""Taylor mode: derivatives of all orders up to one along a curve, under the name of ``jax.experimental.jet``.

The function is recorded once. Its derivative along the curve is a graph of the same nodes and of the curve's derivatives, and differentiated again as
often as asked. Equal nodes are one node, so a rule of one op serves all orders, and what two terms have in common is computed once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from hologram import tree
from hologram.errors import ArgumentError
from hologram.ir.node import Node
from hologram.support.user_lines import located
from hologram.trace.checks import as_function
from hologram.trace.operators import wrap
from hologram.transform.arguments import cotangent_nodes, differentiable_node, result_nodes
from hologram.transform.differentiate import push
from hologram.transform.levels import Level, marked
from hologram.transform.nodes import mul, number, zeros_like

__all__ = ["jet"]


def jet(fun: Callable[..., Any], primals: Sequence[Any], series: Sequence[Any], *, factorial_scaled: bool = True) -> Any:
    """The value of ``fun`` and its derivatives of every order along a curve: ``(result, series of the result)``.

    ``primals`` are where the curve is, ``series`` for each of them its derivatives by the curve's parameter, as many for all: a list of values of the
    primal's structure, shapes and types. Of the result each leaf has the list of its derivatives in its place. With ``factorial_scaled=False`` both
    series are Taylor coefficients: the k-th derivatives over k!.

    All ops with derivatives, loops and custom derivatives included, have those of every order. Raises ArgumentError where numbers or structures
    differ, DifferentiationError as :func:`hologram.jvp` does.

    >>> from hologram.experimental.jet import jet
    >>> jet(hnp.sin, (0.0,), ([1.0, 0.0, 0.0],))
    (Tensor(0., dtype=float32), [Tensor(1., dtype=float32), Tensor(-0., dtype=float32), Tensor(-1., dtype=float32)])
    """
    as_function(fun, "jet")
    leaves, structure = tree.flatten(tuple(primals))
    given = [differentiable_node(x, "jet") for x in leaves]
    nodes, weak = [x for x, _ in given], [w for _, w in given]
    with Level() as level:
        marks = [marked(x) for x in nodes]
        curve = [marks, *_curve(series, structure, nodes, weak, factorial_scaled)]
        results, out_structure = result_nodes(fun(*tree.unflatten(structure, [wrap(m, w) for m, w in zip(marks, weak, strict=True)])), "jet")
        slopes = {x: slope for lower, higher in zip(curve, curve[1:], strict=False) for x, slope in zip(lower, higher, strict=True)}
        orders = _orders(level, results, slopes, len(curve) - 1)
    if not factorial_scaled:
        orders = [[mul(number(1 / math.factorial(k), x), x) for x in order] for k, order in enumerate(orders, 1)]
    derivatives = [[wrap(order[i]) for order in orders] for i in range(len(results))]
    return tree.unflatten(out_structure, [wrap(x) for x in results]), tree.unflatten(out_structure, derivatives)


def _orders(level: Level, results: Sequence[Node], slopes: dict[Node, Any], count: int) -> list[list[Node]]:
    """Derivatives of the results of every order up to ``count``, from those of the nodes of the curve."""
    orders: list[list[Node]] = []
    there: Sequence[Node] = results
    for _ in range(count):
        pushed = push(level, there, slopes, reverse=False)
        there = [zeros_like(x) if slope is None else slope for x, slope in zip(there, pushed, strict=True)]
        orders.append(list(there))
    return orders


def _curve(series: Sequence[Any], structure: Any, nodes: Sequence[Node], weak: Sequence[bool], factorial_scaled: bool) -> list[list[Node]]:
    """The curve's derivatives by order, each a mark, so that equal ones differ."""
    if not isinstance(series, (tuple, list)) or len(series) != len(structure.children):
        raise located(ArgumentError(f"jet: series has one list of derivatives for each of the {len(structure.children)} primals"))
    counts = {len(terms) if isinstance(terms, (tuple, list)) else -1 for terms in series}
    if len(counts) > 1 or -1 in counts:
        raise located(ArgumentError("jet: series has a list of derivatives for each primal, of as many orders"))
    curve = []
    for order in range(*counts or (0,)):
        found = cotangent_nodes(tuple(terms[order] for terms in series), structure, nodes, "jet", weak=weak)
        scale = 1 if factorial_scaled else math.factorial(order + 1)
        curve.append([marked(x if scale == 1 else mul(number(scale, x), x)) for x in found])
    return curve
